"""test_pieces: the pieces that the description of a whole model tells: its graph, beside the tensors of its file."""
import os
import re
import unittest

from support import ROOT, FolderCase, Server
from folders import read_tensors
from test_classify import HEADS, write_folder
from test_whole import classifier_folder, sentence_folder
from wholes import DECODERS, MODELS, PAIRS

GOLDEN = os.path.join(ROOT, "tests", "golden", "models")
NAMES = sorted(os.listdir(GOLDEN))
DRAWN = {"transformer": {"random": {"seed": 1}}, "layers": 2, "width": 16, "heads": 2, "feed_forward": 24, "vocabulary": 30}

# Which tensors of a file are a piece's, by the last word of its name. Of tables that several pieces share the tests
# say where they count.
BERT = {"embeddings": r"embeddings\.(?!position_ids)", "self": r"layer\.{i}\.attention\.",
        "feed_forward": r"layer\.{i}\.(intermediate|output)\.", "pooler": r"pooler\."}
GPT2 = {"embeddings": r"(wte|wpe)\.", "self": r"\bh\.{i}\.(attn\.c_|ln_1)", "feed_forward": r"\bh\.{i}\.(mlp|ln_2)",
        "norm": r"ln_f\.", "output": r"^$"}
LLAMA = {"embeddings": r"embed_tokens", "self": r"layers\.{i}\.(self_attn\.\w_|input_layernorm)",
         "feed_forward": r"layers\.{i}\.(mlp|post_attention_layernorm)", "norm": r"model\.norm|^norm", "output": "lm_head"}
T5 = {"self": r"{side}\.block\.{i}\.layer\.0\.", "cross": r"decoder\.block\.{i}\.layer\.1\.",
      "feed_forward": r"{side}\.block\.{i}\.layer\.({last})\.", "norm": r"{side}\.final_layer_norm"}
BART = {"self": r"{side}\.layers\.{i}\.self_attn", "cross": r"{side}\.layers\.{i}\.encoder_attn",
        "feed_forward": r"{side}\.layers\.{i}\.(fc|final_layer_norm)"}


def tensors_of(name):
    return read_tensors(os.path.join(GOLDEN, name, "model.safetensors"))


def pieces_of(table, piece, tensors):
    """The tensors that are this piece's."""
    word = piece["name"].split(".")[-1]
    pattern = table[word].replace("{i}", str(piece.get("layer", ""))).replace("{side}", piece["side"])
    pattern = pattern.replace("{last}", "1" if piece["side"] == "encoder" else "2")
    return {name: x for name, x in tensors.items() if re.search(pattern, name)}


class Pieces(FolderCase):
    @classmethod
    def start(cls):
        for name, make in (("sorts", classifier_folder), ("sentence", sentence_folder)):
            make(os.path.join(cls.folder, name))
        first = write_folder(os.path.join(cls.folder, "first"), "roberta-b", HEADS["roberta-b"])
        models = {**{name: {"transformer": os.path.join(GOLDEN, name)} for name in NAMES}, **MODELS, **DECODERS, **PAIRS,
                  "first": first, "sorts": {"transformer": os.path.join(cls.folder, "sorts")},
                  "sentence": {"transformer": os.path.join(cls.folder, "sentence")},
                  "drawn": dict(DRAWN, kind="encoder", classes=3), "untied": dict(DRAWN, kind="decoder", tie_output=False),
                  "relative": dict(DRAWN, kind="seq2seq", positions="relative", decoder={"layers": 1}),
                  "alibi": dict(DRAWN, kind="decoder", positions=["learned", "alibi"], max_positions=9),
                  "short": {"transformer": os.path.join(GOLDEN, "bert-b"), "layers": 1},
                  "half": {"transformer": os.path.join(GOLDEN, "t5-b"), "kind": "encoder"},
                  "layer": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}
        return Server({"models": models})

    def described(self, name):
        said = self.ok(self.server.get(f"/v1/models/{name}"))
        return said, {piece["name"]: piece for piece in said["pieces"]}

    def each(self, check):
        """check(description, its pieces by their names) of every whole model."""
        for one in self.ok(self.server.get("/v1/models"))["models"]:
            if "family" in one:
                with self.subTest(model=one["name"]):
                    check(*self.described(one["name"]))

    # --- what holds of all ---

    def test_parameters_add_up(self):
        def check(said, pieces):
            self.assertEqual(sum(p["parameters"] for p in said["pieces"]), said["parameters"])
            self.assertEqual(len(pieces), len(said["pieces"]), "a name occurs twice")
        self.each(check)

    def test_the_list_goes_without(self):
        for one in self.ok(self.server.get("/v1/models"))["models"]:
            self.assertNotIn("pieces", one)
            whole = self.ok(self.server.get(f"/v1/models/{one['name']}"))
            self.assertEqual({key: whole[key] for key in one}, one)
        self.assertNotIn("pieces", self.ok(self.server.get("/v1/models/layer")))

    def test_the_order_is_that_of_the_data(self):
        def check(said, pieces):
            order = []
            for side in ("encoder", "decoder"):
                sizes = said.get(side, said if said["kind"] == side else None)
                if not sizes:
                    continue
                words = ("self", "cross", "feed_forward") if side == "decoder" and "encoder" in said else ("self", "feed_forward")
                before, behind = ("embeddings",), ("norm", "pooler", "dense", "classifier", "output")
                order += [f"{side}.{word}" for word in before if f"{side}.{word}" in pieces]
                order += [f"{side}.{i}.{word}" for i in range(sizes["layers"]) for word in words]
                order += [f"{side}.{word}" for word in behind if f"{side}.{word}" in pieces]
            self.assertEqual([p["name"] for p in said["pieces"]], order)
            self.assertEqual({n for n, p in pieces.items() if p["kind"] == "attention"}, set(said["attentions"]))
        self.each(check)

    def test_forms(self):
        """Of every piece: its members, its place, and what it costs by its sizes."""
        def check(said, pieces):
            for name, piece in pieces.items():
                words = name.split(".")
                self.assertEqual(piece["side"], words[0])
                self.assertEqual(piece.get("layer"), int(words[1]) if len(words) == 3 else None)
                self.assertEqual(piece["kind"], {"self": "attention", "cross": "attention", "dense": "pooler"}.get(words[-1], words[-1]))
                sizes, costs = said.get(piece["side"], said), piece["multiply_adds"]
                d, heads = sizes["width"], sizes["heads"]
                size = sizes.get("head_size", d // heads)
                kept = sizes.get("kv_heads", heads) * size
                if piece["kind"] == "attention":
                    self.assertEqual(piece["shape"], [d, heads, size, d])
                    across = words[-1] == "cross"
                    made = 2 * kept * (said["encoder"]["width"] if across else d)
                    asked = 2 * heads * size * d
                    self.assertEqual(costs, {"token": asked, "pair": 2 * heads * size, "key": made} if across else
                                     {"token": asked + made, "pair": 2 * heads * size})
                    continue
                self.assertEqual(list(costs), ["token"])
                if piece["kind"] in ("embeddings", "norm"):
                    embedded = said.get("embedding_width", 0) if piece["kind"] == "embeddings" else 0
                    self.assertEqual(costs["token"], embedded * d)
                    self.assertEqual(piece["shape"][-2:] if embedded else piece["shape"][-1:],
                                     [embedded, d] if embedded else [d])
                    continue
                if piece["kind"] == "feed_forward":
                    self.assertEqual(piece["shape"], [d, sizes["feed_forward"], d])
                    convolution = 3 * d * d if said["name"] == "deberta-v2-conv" and piece["layer"] == 0 else 0
                    self.assertIn(costs["token"] - convolution,
                                  (2 * d * sizes["feed_forward"], 3 * d * sizes["feed_forward"]))
                    continue
                self.assertEqual(costs["token"], sum(a * b for a, b in zip(piece["shape"], piece["shape"][1:])))
                self.assertEqual(piece["shape"][0], d)
        self.each(check)

    # --- beside the tensors of files ---

    def beside(self, name, table, known=()):
        """Each piece has the numbers of its tensors, and multiplies by those that are matrices."""
        said, pieces = self.described(name)
        tensors = tensors_of(name)
        for piece in pieces.values():
            if piece["name"] in known:
                continue
            with self.subTest(model=name, piece=piece["name"]):
                own = pieces_of(table, piece, tensors)
                if not piece.get("tied"):
                    self.assertEqual(piece["parameters"], sum(x.size for x in own.values()), sorted(own))
                if piece["kind"] in ("attention", "feed_forward"):
                    matrices = sum(x.size for n, x in own.items() if x.ndim == 2 and "relative" not in n)
                    costs = piece["multiply_adds"]
                    self.assertEqual(costs["token"] + costs.get("key", 0), matrices)
        return said, pieces

    def test_bert(self):
        said, pieces = self.beside("bert-b", BERT)
        self.assertEqual(list(pieces)[0], "encoder.embeddings")
        self.assertEqual(pieces["encoder.embeddings"]["shape"], [said["vocabulary"], 24])
        self.assertEqual(pieces["encoder.pooler"]["shape"], [24, 24])
        self.assertEqual(list(self.described("short")[1]),
                         ["encoder.embeddings", "encoder.0.self", "encoder.0.feed_forward", "encoder.pooler"])

    def test_gpt2(self):
        said, pieces = self.beside("gpt2-b", GPT2)
        output = pieces["decoder.output"]
        self.assertEqual((output["parameters"], output["tied"], output["shape"]), (0, True, [said["width"], said["vocabulary"]]))
        self.assertEqual(output["multiply_adds"], {"token": said["width"] * said["vocabulary"]})
        self.assertIn("decoder.norm", pieces)

    def test_llama(self):
        for name, tied in (("llama-a", False), ("llama-b", True), ("qwen2-a", True)):
            said, pieces = self.beside(name, LLAMA)
            self.assertEqual(pieces["decoder.output"].get("tied", False), tied)
            self.assertLess(said["kv_heads"], said["heads"])
            self.assertEqual(pieces["decoder.0.feed_forward"]["multiply_adds"]["token"], 3 * said["width"] * said["feed_forward"])

    def test_t5(self):
        """What both stacks read is the encoder's, and the table of distances that of its first layer."""
        tables = ("encoder.embeddings", "decoder.embeddings", "decoder.output")
        for name, tied in (("t5-a", True), ("t5-b", True), ("t5-v11", False)):
            said, pieces = self.beside(name, T5, known=tables)
            shared = said["vocabulary"] * said["width"]
            self.assertEqual([pieces[table]["parameters"] for table in tables], [shared, 0, 0 if tied else shared])
            self.assertEqual([pieces[table].get("tied", False) for table in tables], [False, True, tied])
        buckets = tensors_of("t5-b")["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"].size
        _, pieces = self.described("t5-b")
        self.assertEqual(pieces["encoder.0.self"]["parameters"] - pieces["encoder.1.self"]["parameters"], buckets)
        half, alone = self.described("half")
        self.assertEqual(half["kind"], "encoder")
        self.assertEqual(alone, {n: p for n, p in pieces.items() if p["side"] == "encoder"})

    def test_bart(self):
        """Positions and the norm behind them are of each stack alone, and the output has numbers of its own besides."""
        tables = ("encoder.embeddings", "decoder.embeddings", "decoder.output")
        said, pieces = self.beside("bart-b", BART, known=tables)
        tensors, d = tensors_of("bart-b"), said["width"]

        def beside_tokens(side):
            return sum(x.size for n, x in tensors.items() if re.search(rf"{side}\.(embed_positions|layernorm_embedding)\.", n))
        added = sum(x.size for n, x in tensors.items() if n.endswith("final_logits_bias"))
        self.assertEqual([pieces[table]["parameters"] for table in tables],
                         [said["vocabulary"] * d + beside_tokens("encoder"), beside_tokens("decoder"), added])
        self.assertTrue(beside_tokens("decoder") > 0 and pieces["decoder.embeddings"]["tied"] and pieces["decoder.output"]["tied"])

    def test_a_table_of_each(self):
        _, pieces = self.described("d2l-a")
        self.assertGreater(pieces["decoder.embeddings"]["parameters"], 0)
        self.assertFalse([n for n, p in pieces.items() if "tied" in p])

    def test_rows_alone(self):
        """What takes no tokens has no embeddings."""
        _, pieces = self.described("vit-a")
        self.assertNotIn("encoder.embeddings", pieces)
        self.assertIn("encoder.norm", pieces)

    # --- heads ---

    def test_classifiers(self):
        """Behind the pooler, which is a piece of its own, or with a first matrix."""
        _, pieces = self.described("sorts")
        self.assertEqual([pieces[f"encoder.{word}"]["shape"] for word in ("pooler", "classifier")], [[24, 24], [24, 2]])
        self.assertEqual(pieces["encoder.classifier"]["parameters"], 24 * 2 + 2)
        self.assertEqual(pieces["encoder.classifier"]["multiply_adds"], {"token": 24 * 2})
        _, pieces = self.described("first")
        self.assertNotIn("encoder.pooler", pieces)
        self.assertEqual(pieces["encoder.classifier"]["shape"], [24, 24, 2])
        self.assertEqual(pieces["encoder.classifier"]["parameters"], sum(x.size for x in HEADS["roberta-b"].tensors.values()))
        _, pieces = self.described("drawn")
        self.assertEqual(pieces["encoder.classifier"],
                         {"name": "encoder.classifier", "kind": "classifier", "side": "encoder", "shape": [16, 16, 3],
                          "parameters": 16 * 16 + 16 + 16 * 3 + 3, "multiply_adds": {"token": 16 * 16 + 16 * 3}})

    def test_a_dense_layer(self):
        said, pieces = self.described("sentence")
        self.assertEqual(said["pieces"][-1], {"name": "encoder.dense", "kind": "pooler", "side": "encoder", "shape": [24, 4],
                                              "parameters": 24 * 4 + 4, "multiply_adds": {"token": 24 * 4}})
        self.assertIn("encoder.pooler", pieces)

    # --- drawn ---

    def test_drawn(self):
        """Word by word, of a small one."""
        attention = {"kind": "attention", "layer": 0, "shape": [24, 4, 6, 24], "parameters": 4 * (24 * 24 + 24) + 2 * 24}
        forward = {"kind": "feed_forward", "layer": 0, "shape": [24, 40, 24], "parameters": 2 * 24 * 40 + 40 + 24 + 2 * 24,
                   "multiply_adds": {"token": 2 * 24 * 40}}
        itself = dict(attention, multiply_adds={"token": 4 * 24 * 24, "pair": 48})
        across = dict(attention, multiply_adds={"token": 2 * 24 * 24, "pair": 48, "key": 2 * 24 * 24})
        said, _ = self.described("both")
        got = [p for p in said["pieces"] if p.get("layer", 0) == 0]
        self.assertEqual(got, [
            {"name": "encoder.embeddings", "kind": "embeddings", "side": "encoder", "shape": [32, 24], "parameters": 32 * 24,
             "multiply_adds": {"token": 0}},
            dict(itself, name="encoder.0.self", side="encoder"), dict(forward, name="encoder.0.feed_forward", side="encoder"),
            {"name": "decoder.embeddings", "kind": "embeddings", "side": "decoder", "shape": [32, 24], "parameters": 0,
             "multiply_adds": {"token": 0}, "tied": True},
            dict(itself, name="decoder.0.self", side="decoder"), dict(across, name="decoder.0.cross", side="decoder"),
            dict(forward, name="decoder.0.feed_forward", side="decoder"),
            {"name": "decoder.output", "kind": "output", "side": "decoder", "shape": [24, 32], "parameters": 0,
             "multiply_adds": {"token": 24 * 32}, "tied": True}])

    def test_no_output(self):
        """A decoder whose output is not its table, and that has no other, has none."""
        self.assertNotIn("decoder.output", self.described("untied")[1])

    def test_builtin(self):
        said, pieces = self.described("whole-sort")
        self.assertEqual([p["kind"] for p in said["pieces"] if "layer" in p], ["attention", "feed_forward"] * said["layers"])
        self.assertEqual(pieces["encoder.embeddings"]["shape"], [said["vocabulary"], said["width"]])


if __name__ == "__main__":
    unittest.main()
