"""test_encode: whole encoders over HTTP: their numbers, their forms, their names, every mistake."""
import base64
import json
import math
import os
import random
import shutil
import struct
import tempfile
import threading
import unittest

import golden
from forms import bits, message_v2, pack, read_base64, read_safetensors, read_v2, rectangle, shape_of
from support import MODE, ROOT, Case, Raw, Server, ServerCase, attend, chunked, head_of

GOLDEN = os.path.join(ROOT, "tests", "golden", "models")
FOLDERS = sorted(name for name in os.listdir(GOLDEN)
                 if os.path.exists(os.path.join(GOLDEN, name, "cases.json")))
DECODERS = [name for name in FOLDERS if name.startswith(("gpt2", "llama", "min", "mistral", "qwen", "smol"))
            and not any(word in name for word in ("bidirectional", "-cls", "-tags"))]
ALL_DECODERS = (*DECODERS, "narrow")
SAFETENSORS = "application/x-safetensors"
RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 32,
          "heads": 4, "feed_forward": 64, "vocabulary": 50}
MODELS = {"small": RANDOM, "bert": {"transformer": os.path.join(GOLDEN, "bert-b")},
          "vit": {"transformer": os.path.join(GOLDEN, "vit-a")},
          "t5": {"transformer": os.path.join(GOLDEN, "t5-b")},
          "mean": dict(RANDOM, pool="mean", normalize=True),
          "demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}
TEXTS = [[1, 2, 3, 4, 5], [6], [], [7, 8, 9]]
ALL = {"return_hidden": ["encoder.*", "encoder.*.self.input"], "return_attention": True}
LENS, ROWS = [len(text) for text in TEXTS], 5


def path_of(model, what="encode"):
    return f"/v1/models/{model}/{what}"


def drawn(seed, *counts, vocabulary=50):
    rng = random.Random(seed)
    return [[rng.randrange(vocabulary) for _ in range(n)] for n in counts]


class Golden(ServerCase):
    """The numbers of published code, through the whole server."""

    @classmethod
    def start(cls):
        return Server({"models": {name: {"transformer": os.path.join(GOLDEN, name)}
                                  for name in FOLDERS}})

    def near(self, actual, expected, what):
        """In the shape of `actual`, which has no padding."""
        if isinstance(actual, list):
            for i, a in enumerate(actual):
                self.near(a, expected[i], what)
        else:
            self.assertLessEqual(abs(actual - expected), 1e-4 + 1e-4 * abs(expected), what)

    def test_numbers(self):
        for name in FOLDERS:
            with open(os.path.join(GOLDEN, name, "cases.json")) as file:
                cases = [case for case in json.load(file) if case["kind"] == "encode"]
            for case in cases:
                request = {"tokens": case["tokens"]} if "tokens" in case else \
                    {"embeddings": case["input_hidden_states"]}
                if "token_types" in case:
                    request["token_types"] = case["token_types"]
                request.update(return_hidden="all", return_attention=True)
                with self.subTest(model=name, case=case["name"]):
                    answer = self.ok(self.server.post(path_of(name), dict(request, pool="none")))
                    self.compare(answer, case["expected"], request)

    def compare(self, answer, expected, request):
        items = request.get("tokens") or request["embeddings"]
        self.assertEqual([len(item) for item in answer["outputs"]], [len(item) for item in items])
        self.near(answer["outputs"], expected["last_hidden_state"], "outputs")
        if not expected["hidden_states"]:  # a long item
            return
        layers = len(expected["hidden_states"]) - 1
        hidden, attention = list(answer["hidden"]), list(answer["attention"])
        stack = "decoder" if answer["model"] in DECODERS else "encoder"
        self.assertEqual(hidden, [f"{stack}.{i}" for i in range(layers + 1)])
        self.assertEqual(attention, [f"{stack}.{i}.self" for i in range(layers)])
        for name, right in zip(hidden, expected["hidden_states"]):
            self.near(answer["hidden"][name], right, name)
        for name, right in zip(attention, expected["attentions"]):
            self.near(answer["attention"][name], right, name)
        self.assertEqual(answer["usage"], {"tokens": sum(len(item) for item in items),
                                           "cached": 0, "generated": 0})

    def test_pools(self):
        for name in FOLDERS:
            with open(os.path.join(GOLDEN, name, "cases.json")) as file:
                case = next((case for case in json.load(file) if case["kind"] == "encode"), None)
            if not case:
                continue
            field = "tokens" if "tokens" in case else "input_hidden_states"
            request = {"tokens" if field == "tokens" else "embeddings": case[field]}
            if "token_types" in case:
                request["token_types"] = case["token_types"]
            for pool, expected in case["expected"]["pooled"].items():
                with self.subTest(model=name, pool=pool):
                    answer = self.ok(self.server.post(path_of(name), dict(request, pool=pool)))
                    self.near(answer["outputs"], expected, pool)


class BothWays(ServerCase):
    """Families of decoders that attend in both directions: encoders."""

    @classmethod
    def start(cls):
        return Server({"models": {name: {"transformer": os.path.join(GOLDEN, name)} for name in FOLDERS
                                  if "bidirectional" in name or name == "modernbert-a"}})

    def test_it_is_an_encoder(self):
        for name in ("qwen2-bidirectional", "qwen3-bidirectional", "llama-bidirectional"):
            about = self.ok(self.server.get(f"/v1/models/{name}"))
            self.assertEqual(about["kind"], "encoder")
            self.assertNotIn("window", about)
            self.assertIn("encoder.1.self", json.dumps(about))
            self.problem(self.server.post(path_of(name, "generate"), {"tokens": [1]}), 404, "not-found")
            self.problem(self.server.post(path_of(name, "score"), {"tokens": [1], "targets": [1]}), 404, "not-found")
            answer = self.ok(self.server.post(path_of(name), {"tokens": [3, 1, 4], "return_attention": True}))
            for rows in answer["attention"]["encoder.0.self"]:
                self.assertTrue(all(weight > 0 for row in rows for weight in row))

    def test_a_window_has_two_sides(self):
        for name, bases in (("qwen2-bidirectional-window", [1e6, 1e6, 1e6]), ("modernbert-a", [16e4, 1e4, 1e4, 16e4])):
            with self.subTest(model=name):
                self.has_windows(name, [3, 1, 4, 1, 5, 9, 2, 6], bases)

    def has_windows(self, name, tokens, bases):
        about = self.ok(self.server.get(f"/v1/models/{name}"))
        self.assertEqual((about["window"], about["window_layers"]), (5, [1, 2]))
        parts = [piece for piece in about["pieces"] if piece["kind"] == "attention"]
        self.assertEqual([part.get("window") for part in parts], [None, 5, 5, None][:len(parts)])
        self.assertEqual([part["rope"]["base"] for part in parts], bases)
        asked = {"tokens": tokens, "return_hidden": ["encoder.*.self.input"], "return_attention": True}
        answer = self.ok(self.server.post(path_of(name), asked))
        for layer in range(len(parts)):
            weights = answer["attention"][f"encoder.{layer}.self"]
            for i, row in enumerate(weights[0]):
                self.assertEqual([j for j, weight in enumerate(row) if weight > 0],
                                 [j for j in range(8) if layer not in (1, 2) or abs(i - j) < 5])
            alone = self.ok(self.server.post(path_of(name, f"layers/encoder.{layer}.self/attention"), {
                "queries": answer["hidden"][f"encoder.{layer}.self.input"], "return_attention": True}))
            self.assertEqual(alone["attention_weights"], weights)

    def test_an_item_has_its_bits_in_company(self):
        for name in ("qwen2-bidirectional-window", "qwen3-bidirectional", "modernbert-a"):
            texts = drawn(5, 7, 1, 12, 30)
            for pool in ("none", "mean", "last", "cls"):
                answer = self.ok(self.server.post(path_of(name), {"tokens": texts, "pool": pool}))["outputs"]
                for text, right in zip(texts, answer):
                    alone = self.ok(self.server.post(path_of(name), {"tokens": text, "pool": pool}))
                    self.assertEqual(alone["outputs"], right)


class Projected(ServerCase):
    """Models whose embeddings have a width of their own."""

    @classmethod
    def start(cls):
        return Server({"models": {name: golden.definition(name) for name in ("electra-a", "albert-a")}})

    def test_the_embeddings_of_a_request_have_that_width(self):
        for name in ("electra-a", "albert-a"):
            about = self.ok(self.server.get(f"/v1/models/{name}"))
            self.assertEqual((about["width"], about["embedding_width"]), (24, 16))
            with open(os.path.join(GOLDEN, name, "model.safetensors"), "rb") as file:
                (_, numbers), = [tensor for key, tensor in read_tensors(file.read())[0].items()
                                 if key.endswith("word_embeddings.weight")]
            texts = drawn(3, 5, 1, 17)
            rows = [[list(numbers[16 * token:16 * token + 16]) for token in text] for text in texts]
            whole = self.ok(self.server.post(path_of(name), {"tokens": texts}))["outputs"]
            self.assertEqual(self.ok(self.server.post(path_of(name), {"embeddings": rows}))["outputs"], whole)
            problem = self.problem(self.server.post(path_of(name), {"embeddings": [[[0] * 24]]}), 400, "invalid-request")
            self.assertIn("expected 16 (the model's embedding width)", problem["detail"])
            inputs = {one["name"]: one["shape"] for one in self.ok(self.server.get(f"/v2/models/{name}"))["inputs"]}
            self.assertEqual(inputs["inputs_embeds"], [-1, -1, 16])

    def test_an_item_has_its_bits_in_company(self):
        for name in ("electra-a", "albert-a"):
            texts = drawn(5, 7, 1, 12, 30)
            answer = self.ok(self.server.post(path_of(name), {"tokens": texts}))["outputs"]
            for text, right in zip(texts, answer):
                self.assertEqual(self.ok(self.server.post(path_of(name), {"tokens": text}))["outputs"], right)


class Embed(ServerCase):
    """Folders of sentence-transformers: what they pool is what the library makes of the tokens."""

    @classmethod
    def start(cls):
        return golden.serve(golden.cases("embed"))

    def test_numbers(self):
        for name, case in golden.cases("embed"):
            with self.subTest(model=name):
                answer = self.ok(self.server.post(path_of(name), {"tokens": case["tokens"]}))["outputs"]
                self.assertEqual(shape_of(answer), shape_of(case["expected"]["embeddings"]))
                for actual, right in zip(answer, case["expected"]["embeddings"]):
                    for a, b in zip(actual, right):
                        self.assertLessEqual(abs(a - b), 1e-4 + 1e-4 * abs(b))


def write_narrow(source, folder, dtype):
    """The model of that folder with numbers that 16 bits have: as this type, and as float32."""
    with open(os.path.join(source, "model.safetensors"), "rb") as file:
        tensors, _ = read_tensors(file.read())
    numbers = {"BF16": lambda x: struct.unpack("<f", b"\0\0" + struct.pack("<f", x)[2:])[0],
               "F16": lambda x: struct.unpack("<e", struct.pack("<e", x))[0]}[dtype]
    paths = []
    for kept in (dtype, "F32"):
        path = shutil.copytree(source, os.path.join(folder, f"{dtype}-{kept}"))
        header, data = {}, b""
        for name, (shape, values) in tensors.items():
            raw = pack(kept, [numbers(x) for x in values])
            header[name] = {"dtype": kept, "shape": shape,
                            "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        text = json.dumps(header).encode()
        with open(os.path.join(path, "model.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + data)
        paths.append(path)
    return paths


def read_tensors(body):
    """Those of float32: [shape, numbers] by name."""
    length, = struct.unpack("<Q", body[:8])
    header = json.loads(body[8:8 + length])
    found = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            first, end = entry["data_offsets"]
            raw = body[8 + length + first:8 + length + end]
            found[name] = entry["shape"], struct.unpack(f"<{len(raw) // 4}f", raw)
    return found, header


class Narrow(ServerCase):
    """Numbers that 16 bits have are kept so, whatever the file's type, unless a definition says
    otherwise: that changes no bit."""

    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        models = {}
        for dtype, source in (("BF16", "llama-a"), ("F16", "gpt2-a"), ("BF16", "bert-b")):
            home = os.path.join(cls.folder.name, source)
            narrow, wide = write_narrow(os.path.join(GOLDEN, source), home, dtype)
            models[source] = {"transformer": narrow}
            models[source + "-32"] = {"transformer": wide}
            models[source + "-said"] = {"transformer": narrow, "weights": "float32"}
        return Server({"models": models})

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_the_form_changes_no_bit(self):
        for source, kept in (("llama-a", "bfloat16"), ("gpt2-a", "float16"), ("bert-b", "bfloat16")):
            abouts = [self.ok(self.server.get(f"/v1/models/{source}{end}"))
                      for end in ("", "-32", "-said")]
            self.assertEqual([about["weights"] for about in abouts], [kept, kept, "float32"])
            self.assertEqual(len({about["sha256"] for about in abouts}), 1)
            self.assertLess(abouts[0]["bytes"], 0.75 * abouts[2]["bytes"])
            asked = {"tokens": [[5, 9, 31, 2, 44, 17, 17, 60, 1], [3], [2] * 12],
                     "return_hidden": "all", "return_attention": True}
            answers = [self.ok(self.server.post(path_of(source + end), asked))
                       for end in ("", "-32", "-said")]
            for answer in answers:
                del answer["model"]
            self.assertEqual(answers[0], answers[1])
            self.assertEqual(answers[0], answers[2])

    def test_tokens_to_come_are_the_same(self):
        for source in ("llama-a", "gpt2-a"):
            asked = {"tokens": [[5, 9, 31], [7]], "max_tokens": 9, "temperature": 1, "seed": 4}
            first, *others = [self.ok(self.server.post(path_of(source + end, "generate"), asked))
                              for end in ("", "-32", "-said")]
            for other in others:
                self.assertEqual(other["sequences"], first["sequences"])


class Decoder(ServerCase):
    """A decoder's rows see those before them alone."""

    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folders = {name: os.path.join(GOLDEN, name) for name in DECODERS}
        folders["narrow"] = cls.narrow(folders["qwen2-a"])
        return Server({"models": {name: {"transformer": path} for name, path in folders.items()}})

    @classmethod
    def narrow(cls, folder):
        """The same model, each row of which sees three at most."""
        path = shutil.copytree(folder, os.path.join(cls.folder.name, "narrow"))
        config = os.path.join(path, "config.json")
        with open(config, encoding="utf-8") as file:
            words = json.load(file)
        words.update(use_sliding_window=True, sliding_window=3, max_window_layers=0)
        with open(config, "w", encoding="utf-8") as file:
            json.dump(words, file)
        return path

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def test_v2_logits(self):
        """Their log_softmax is what /score says, row by row; behind valid rows are zeros."""
        ids, mask = [[3, 1, 4, 1], [5, 9, 0, 0]], [[1, 1, 1, 1], [1, 1, 0, 0]]
        for name in ALL_DECODERS:
            message = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [2, 4], "data": sum(ids, [])},
                                  {"name": "attention_mask", "datatype": "INT64", "shape": [2, 4],
                                   "data": sum(mask, [])}],
                       "outputs": [{"name": "logits"}, {"name": "last_hidden_state"}]}
            about = self.ok(self.server.get(f"/v2/models/{name}"))
            self.assertEqual([output["name"] for output in about["outputs"]], ["last_hidden_state", "logits"])
            vocabulary = about["outputs"][1]["shape"][2]
            for binary in (False, True):
                asked = dict(message, parameters={"binary_data_output": binary})
                answer = self.server.post(f"/v2/models/{name}/infer", asked)
                self.assertEqual(answer.status, 200, answer)
                shape, raw = read_v2(answer.headers, answer.body)[1]["logits"]
                self.assertEqual(shape, [2, 4, vocabulary])
                logits = struct.unpack(f"<{8 * vocabulary}f", raw)
                scored = self.ok(self.server.post(path_of(name, "score"), {
                    "tokens": [[3], [5]], "targets": [[1, 4, 1], [9]]}))["log_probabilities"]
                for item, targets in enumerate(([1, 4, 1], [9])):
                    for row, target in enumerate(targets):
                        of = logits[(4 * item + row) * vocabulary:][:vocabulary]
                        log_sum = math.log(sum(math.exp(x - max(of)) for x in of)) + max(of)
                        self.assertAlmostEqual(of[target] - log_sum, scored[item][row], places=4)
                self.assertEqual(set(logits[6 * vocabulary:]), {0.0})

    def test_a_row_may_see_a_window_alone(self):
        about = self.ok(self.server.get("/v1/models/narrow"))
        self.assertEqual(about["window"], 3)
        answer = self.ok(self.server.post(path_of("narrow"), {
            "tokens": [3, 1, 4, 1, 5], "return_attention": ["decoder.0.self"]}))
        for head in answer["attention"]["decoder.0.self"]:
            for i, row in enumerate(head):
                self.assertEqual([j for j, weight in enumerate(row) if weight > 0],
                                 list(range(max(0, i - 2), i + 1)))

    def test_some_layers_may_have_a_window(self):
        about = self.ok(self.server.get("/v1/models/qwen2-window"))
        self.assertEqual((about["window"], about["window_layers"]), (4, [1, 2]))
        answer = self.ok(self.server.post(path_of("qwen2-window"), {
            "tokens": [3, 1, 4, 1, 5, 9], "return_attention": True}))["attention"]
        for layer in range(3):
            for head in answer[f"decoder.{layer}.self"]:
                self.assertEqual([sum(weight > 0 for weight in row) for row in head],
                                 [1, 2, 3, 4, 4, 4] if layer else [1, 2, 3, 4, 5, 6])

    def test_some_layers_may_lack_rotary_positions(self):
        about = self.ok(self.server.get("/v1/models/smollm3-a"))
        self.assertEqual([piece.get("rope") for piece in about["pieces"] if piece["kind"] == "attention"],
                         [{"base": 2e6}] * 3 + [None])
        tokens = [7, 7, 7, 7, 7, 7]
        asked = {"tokens": [tokens], "return_hidden": ["decoder.*.self.input"], "return_attention": True}
        answer = self.ok(self.server.post(path_of("smollm3-a"), asked))
        for layer in range(4):
            alone = self.ok(self.server.post(path_of("smollm3-a", f"layers/decoder.{layer}.self/attention"), {
                "queries": answer["hidden"][f"decoder.{layer}.self.input"], "return_attention": True}))
            self.assertEqual(alone["attention_weights"], answer["attention"][f"decoder.{layer}.self"])
        # Equal tokens are equal rows in every layer: without positions, keys are alike.
        spread = [max(row) - min(row) for layer in (2, 3) for row in [answer["attention"][f"decoder.{layer}.self"][0][0][-1]]]
        self.assertGreater(spread[0], 1e-3)
        self.assertLess(spread[1], 1e-6)

    def test_beginnings_have_the_bits_of_the_whole(self):
        text = [5, 9, 31, 2, 44, 17, 17, 47, 1]
        for name in ALL_DECODERS:
            whole = self.ok(self.server.post(path_of(name), {"tokens": text}))["outputs"]
            starts = [text[:n] for n in range(1, len(text))]
            with self.subTest(model=name):
                answer = self.ok(self.server.post(path_of(name), {"tokens": starts}))
                self.assertEqual(answer["outputs"], [whole[:len(start)] for start in starts])

    def test_an_attention_alone_gives_the_weights_that_the_model_gave(self):
        for name in ALL_DECODERS:
            asked = {"tokens": [[3, 1, 4, 1, 5], [9, 2]], "return_hidden": ["decoder.1.self.input"],
                     "return_attention": ["decoder.1.self"]}
            whole = self.ok(self.server.post(path_of(name), asked))
            rows = whole["hidden"]["decoder.1.self.input"]
            alone = self.ok(self.server.post(path_of(name, "layers/decoder.1.self/attention"),
                                             {"queries": rows, "return_attention": True}))
            self.assertEqual(alone["attention_weights"], whole["attention"]["decoder.1.self"])

    def test_what_it_has(self):
        for name in DECODERS:
            about = self.ok(self.server.get(f"/v1/models/{name}"))
            self.assertEqual(about["kind"], "decoder")
            self.assertIn("decoder.0.self", json.dumps(about))
            problem = self.problem(self.server.post(path_of(name, "attention"), {}), 404, "not-found")
            self.assertIn("/v1/models/{model}/encode", problem["detail"])
            problem = self.problem(self.server.post(path_of(name), {
                "tokens": [1], "return_attention": ["encoder.0.self"]}), 400, "invalid-request")
            self.assertIn("Available: decoder.0.self to", problem["detail"])
            message = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 2],
                                   "data": [3, 1]}]}
            answer = self.ok(self.server.post(f"/v2/models/{name}/infer", message))
            rows = self.ok(self.server.post(path_of(name), {"tokens": [3, 1]}))["outputs"]
            self.assertEqual(answer["outputs"][0]["data"], sum(rows, []))

    def test_positions_end(self):
        for name in DECODERS:
            longest = self.ok(self.server.get(f"/v1/models/{name}"))["positions"]
            self.ok(self.server.post(path_of(name), {"tokens": [1] * longest}))
            self.problem(self.server.post(path_of(name), {"tokens": [1] * (longest + 1)}), 400,
                         "invalid-request")


class Encode(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS, "default_model": "demo"})

    def post(self, request, model="small", headers=None):
        return self.server.post(path_of(model), request, headers)

    def answer(self, request, model="small"):
        return self.ok(self.post(request, model))

    # --- what there is ---

    def test_rows_are_ragged_and_one_item_is_no_batch(self):
        answer = self.answer(dict(ALL, tokens=TEXTS))
        self.assertEqual([len(item) for item in answer["outputs"]], LENS)
        self.assertEqual({len(row) for item in answer["outputs"] for row in item}, {32})
        self.assertEqual(answer["usage"]["tokens"], 9)
        for item, text in enumerate(TEXTS):
            alone = self.answer(dict(ALL, tokens=text)) if text else None
            if alone is None:
                continue
            self.assertEqual(alone["outputs"], answer["outputs"][item])
            for group in ("hidden", "attention"):
                self.assertEqual(alone[group], {name: whole[item]
                                                for name, whole in answer[group].items()})

    def test_empty_batches_and_items(self):
        usage = {"tokens": 0, "cached": 0, "generated": 0}
        self.assertEqual(self.answer({"tokens": []}),
                         {"model": "small", "outputs": [], "usage": usage})
        self.assertEqual(self.answer({"tokens": [[], []], "return_hidden": True}),
                         {"model": "small", "outputs": [[], []],
                          "hidden": {"encoder.2": [[], []]}, "usage": usage})
        self.assertEqual(self.answer({"tokens": [], "pool": "mean"})["outputs"], [])

    def test_padding_counts_for_nothing(self):
        right = self.answer(dict(ALL, tokens=TEXTS))
        padded = [text + [99, -1, 2000][:ROWS - len(text)] + [0] * (ROWS - len(text) - 3)
                  for text in TEXTS]
        answer = self.answer(dict(ALL, tokens=padded, valid_lens=LENS))
        self.assertEqual(answer, right)
        self.assertEqual(self.answer({"tokens": padded[3], "valid_lens": 3})["outputs"],
                         right["outputs"][3])

    def test_embeddings_are_what_a_lookup_gives(self):
        """Hidden states are those of the embedding; a model without tokens takes embeddings."""
        rows = [[[0.5] * 32, [-1.5] * 32], [[2] * 32]]
        answer = self.answer({"embeddings": rows, "return_hidden": "all"}, "vit")
        self.assertEqual(answer["hidden"]["encoder.0"], rows)
        cut = self.answer({"embeddings": [rows[0], rows[1] * 2], "valid_lens": [2, 1]}, "vit")
        self.assertEqual(cut["outputs"], answer["outputs"])
        self.problem(self.post({"tokens": [[1]]}, "vit"), 400, "invalid-request", "/tokens")

    def test_token_types(self):
        zeros = self.answer({"tokens": [1, 2]}, "bert")["outputs"]
        self.assertEqual(self.answer({"tokens": [1, 2], "token_types": [0, 0]}, "bert")["outputs"],
                         zeros)
        self.assertNotEqual(self.answer({"tokens": [1, 2], "token_types": [0, 1]},
                                        "bert")["outputs"], zeros)

    def test_pools(self):
        rows = self.answer({"tokens": TEXTS[0]}, "bert")["outputs"]
        columns = list(zip(*rows))
        for pool, expected in (("cls", rows[0]), ("last", rows[-1]), ("max", list(map(max, columns))),
                               ("mean", [sum(c) / len(c) for c in columns])):
            request = {"tokens": [TEXTS[0], TEXTS[3]], "pool": pool}
            pooled = self.answer(request, "bert")["outputs"]
            self.close_to(pooled[0], expected, 1e-6, pool)
            self.assertEqual(self.answer(dict(request, tokens=TEXTS[0]), "bert")["outputs"],
                             pooled[0])
            cut = self.answer(dict(request, dimensions=5), "bert")["outputs"]
            self.assertEqual(cut, [vector[:5] for vector in pooled])
            length = sum(x * x for x in cut[0]) ** 0.5
            unit = self.answer(dict(request, dimensions=5, normalize=True), "bert")["outputs"]
            self.close_to(unit[0], [x / length for x in cut[0]], 1e-6, "normalized")
        self.assertEqual(len(self.answer({"tokens": [1], "pool": "pooler"}, "bert")["outputs"]), 24)

    def test_defaults_are_the_models(self):
        vector = self.answer({"tokens": [1, 2, 3]}, "mean")["outputs"]
        self.close_to(sum(x * x for x in vector), 1, 1e-5)
        same = self.answer({"tokens": [1, 2, 3], "pool": "mean", "normalize": True})["outputs"]
        self.assertEqual(vector, same)
        rows = self.answer({"tokens": [1, 2, 3], "pool": "none"}, "mean")["outputs"]
        self.assertEqual(rows, self.answer({"tokens": [1, 2, 3]})["outputs"])

    def test_names(self):
        everything = self.answer(dict(ALL, tokens=TEXTS))
        for names, want in ((["encoder.-1"], ["encoder.2"]), (True, ["encoder.2"]),
                            ("all", ["encoder.0", "encoder.1", "encoder.2"]),
                            (["encoder.2", "encoder.0", "encoder.2"], ["encoder.0", "encoder.2"]),
                            (["encoder.-1.self.input", "encoder.1"],
                             ["encoder.1", "encoder.1.self.input"])):
            hidden = self.answer({"tokens": TEXTS, "return_hidden": names})["hidden"]
            self.assertEqual(sorted(hidden), want)
            for name in want:
                self.assertEqual(hidden[name], everything["hidden"][name])
        self.assertEqual(everything["hidden"]["encoder.2"], everything["outputs"])
        for names in (False, []):
            answer = self.answer({"tokens": TEXTS, "return_hidden": names,
                                  "return_attention": names})
            self.assertEqual(sorted(answer), ["model", "outputs", "usage"])
        some = self.answer({"tokens": TEXTS, "return_attention": ["encoder.-1.self"]})["attention"]
        self.assertEqual(some, {"encoder.1.self": everything["attention"]["encoder.1.self"]})

    def test_forms_of_attention(self):
        heads = self.answer({"tokens": TEXTS, "return_attention": True})["attention"]
        self.assertEqual(shape_of(heads["encoder.0.self"][0]), [4, 5, 5])
        for row in (row for head in heads["encoder.0.self"][0] for row in head):
            self.close_to(sum(row), 1, 1e-5)
        average = self.answer({"tokens": TEXTS, "return_attention": "average"})["attention"]
        for name, items in average.items():
            for item, text in enumerate(TEXTS):
                mean = [[sum(head[q][k] for head in heads[name][item]) / 4
                         for k in range(len(text))] for q in range(len(text))]
                self.close_to(items[item], mean, 1e-6, name)
        named = {"of": ["encoder.1.self"], "as": "average"}
        self.assertEqual(self.answer({"tokens": TEXTS, "return_attention": named})["attention"],
                         {"encoder.1.self": average["encoder.1.self"]})

    def thumbnail(self, weights, side):
        n = len(weights[0]) if weights else 0
        r = min(side, n)
        cut = [i * n // r for i in range(r + 1)] if r else [0]
        return [int(255 * max(head[q][k] for q in range(cut[i], cut[i + 1])
                              for k in range(cut[j], cut[j + 1])) + 0.5)
                for head in weights for i in range(r) for j in range(r)]

    def test_thumbnails(self):
        heads = self.answer({"tokens": TEXTS, "return_attention": True})["attention"]
        for side in (1, 2, 3, 64):
            wish = {"of": ["encoder.*.self"], "as": {"thumbnails": side}}
            answer = self.answer({"tokens": TEXTS, "return_attention": wish})
            self.assertNotIn("attention", answer)
            for name, items in answer["thumbnails"].items():
                for item, picture in enumerate(items):
                    r = min(side, LENS[item])
                    self.assertEqual(picture["shape"], [4, r, r])
                    self.assertEqual(list(base64.b64decode(picture["base64"])),
                                     self.thumbnail(heads[name][item], side), (name, item))
        alone = self.answer({"tokens": TEXTS[0], "return_attention": wish})["thumbnails"]
        self.assertEqual(alone["encoder.1.self"], answer["thumbnails"]["encoder.1.self"][0])

    def test_head_masks(self):
        plain = self.answer({"tokens": TEXTS[0]})["outputs"]
        ones = self.answer({"tokens": TEXTS[0], "head_mask": {"encoder.*.self": [1, 1, 1, 1]}})
        self.assertEqual(ones["outputs"], plain)
        pruned = self.answer({"tokens": TEXTS[0], "head_mask": {"encoder.0.self": [1, 0, 1, 0.5]},
                              "return_hidden": ["encoder.0", "encoder.1"]})
        both = self.answer({"tokens": TEXTS[0], "return_hidden": "all"})
        self.assertEqual(pruned["hidden"]["encoder.0"], both["hidden"]["encoder.0"])
        self.assertNotEqual(pruned["hidden"]["encoder.1"], both["hidden"]["encoder.1"])

    def test_the_encoder_of_a_seq2seq(self):
        answer = self.answer(dict(ALL, tokens=TEXTS), "t5")
        self.assertEqual([len(item) for item in answer["outputs"]], LENS)
        problem = self.problem(self.server.post(path_of("t5", "attention"), {}), 404, "not-found")
        self.assertIn("(seq2seq)", problem["detail"])
        self.assertIn("/v1/models/{model}/encode", problem["detail"])

    # --- what descriptions and metrics say of them ---

    def test_descriptions(self):
        models = {m["name"]: m for m in self.server.get("/v1/models").json["models"]}
        self.assertEqual(set(models), set(MODELS))
        for name in MODELS:
            one = self.server.get(f"/v1/models/{name}").json
            self.assertEqual({key: one[key] for key in models[name]}, models[name])  # test_openai has the others
        self.assertNotIn("kind", models["demo"])
        bert = models["bert"]
        self.assertEqual([bert[key] for key in ("kind", "family", "layers", "heads", "width",
                                                "vocabulary", "token_types", "positions", "pooler",
                                                "pool", "normalize", "source")],
                         ["encoder", "bert", 2, 3, 24, 64, 3, 24, True, "none", False,
                          "model.safetensors"])
        self.assertEqual(bert["attentions"], ["encoder.0.self", "encoder.1.self"])
        self.assertEqual(bert["tokens"], {"pad": 0})
        self.assertEqual(len(bert["sha256"]), 64)
        self.assertGreaterEqual(bert["bytes"], 4 * bert["parameters"])
        self.assertEqual((models["mean"]["pool"], models["mean"]["normalize"]), ("mean", True))
        self.assertNotIn("vocabulary", models["vit"])
        self.assertEqual(models["t5"]["kind"], "seq2seq")

    def test_v2_descriptions(self):
        for name, inputs, outputs in (
                ("bert", ["input_ids", "attention_mask", "token_type_ids", "inputs_embeds"],
                 ["last_hidden_state", "pooler_output"]),
                ("small", ["input_ids", "attention_mask", "inputs_embeds"], ["last_hidden_state"]),
                ("vit", ["attention_mask", "inputs_embeds"],
                 ["last_hidden_state", "pooler_output"])):
            told = self.server.get(f"/v2/models/{name}").json
            self.assertEqual([t["name"] for t in told["inputs"]], inputs)
            self.assertEqual([t["name"] for t in told["outputs"]], outputs)
            self.assertEqual(self.server.get(f"/v2/models/{name}/ready").status, 200)

    def test_tokens_are_counted(self):
        before = self.server.metric("attend_tokens_total", 'work="encode"')
        self.answer({"tokens": TEXTS})
        self.post({"tokens": [[1, 50]]})
        self.assertEqual(self.server.metric("attend_tokens_total", 'work="encode"'), before + 9)

    # --- attentions called alone ---

    def test_an_attention_alone_gives_the_weights_that_the_model_gave(self):
        for model in ("small", "bert", "t5"):
            whole = self.answer(dict(ALL, tokens=[TEXTS[0], TEXTS[3]]), model)
            for name, weights in whole["attention"].items():
                rows = whole["hidden"][name + ".input"]
                answer = self.ok(self.server.post(path_of(model, f"layers/{name}/attention"),
                                                  {"queries": rows, "return_attention": True}))
                self.assertEqual(answer["model"], model)
                self.assertEqual(answer["attention_weights"], weights, (model, name))

    def test_heads_of_an_attention(self):
        rows = self.answer(dict(ALL, tokens=TEXTS[0]))["hidden"]["encoder.1.self.input"]
        answer = self.ok(self.server.post(path_of("small", "layers/encoder.1.self/heads"),
                                          {"queries": rows}))
        self.assertEqual((answer["rows"], len(answer["heads"])), (5, 4))

    def test_layers_that_are_not_there(self):
        for name in ("encoder.2.self", "encoder.0", "decoder.0.self", "encoder.*.self", "%00"):
            problem = self.problem(self.server.post(path_of("small", f"layers/{name}/attention"),
                                                    {}), 404, "not-found")
            self.assertIn("encoder.0.self, encoder.1.self", problem["detail"])
        self.problem(self.server.post(path_of("demo", "layers/encoder.0.self/attention"), {}), 404,
                     "not-found")
        self.problem(self.server.post(path_of("none", "layers/encoder.0.self/attention"), {}), 404,
                     "unknown-model")

    def test_the_default_is_a_layer(self):
        request = {"queries": [[1, 0, 0, 1]]}
        both = {"small": RANDOM, "demo": MODELS["demo"]}
        for config, status in (({"models": both}, 200), ({"models": {"small": RANDOM}}, 404),
                               ({"models": both, "default_model": "small"}, 404)):
            server = Server(config)
            answer = server.post("/v1/attention", request)
            self.assertEqual(answer.status, status, answer)
            for word in ("demo",) if status == 200 else ("the default model, small, does", "/encode"):
                self.assertIn(word, answer.body.decode())
            server.stop()

    def test_paths_that_a_kind_has_not(self):
        for model, what, has in (("small", "attention", "/encode"), ("small", "generate", "/heads"),
                                 ("small", "score", "/encode"), ("small", "x/y", "/encode"),
                                 ("demo", "encode", "/attention"), ("demo", "score", "/heads")):
            problem = self.problem(self.server.post(path_of(model, what), {}), 404, "not-found")
            self.assertIn(f"/v1/models/{{model}}{has}", problem["detail"])
            self.assertIn(model, problem["detail"])
        for model, has in (("small", "/encode"), ("demo", "/heads")):
            problem = self.problem(self.server.post(f"/v1/models/{model}", {}), 405, "method-not-allowed")
            self.assertIn(f"GET, HEAD; for the model, use POST /v1/models/{{model}}", problem["detail"])
            self.assertIn(has, problem["detail"])
        problem = self.problem(self.server.post("/v1/models/none", {}), 405, "method-not-allowed")
        self.assertEqual(problem["detail"], "this path supports GET, HEAD")
        answer = self.server.get(path_of("small"))
        self.assertEqual((answer.status, answer.headers["allow"]), (405, "POST"))
        self.problem(self.server.post(path_of("none"), {}), 404, "unknown-model")

    # --- forms ---

    def tensors(self, answer):
        """Safetensors as bytes by name: what they have of the items, and zeros behind it."""
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["content-type"], SAFETENSORS)
        return read_safetensors(answer.body)

    def test_safetensors_are_rectangles(self):
        right = self.answer(dict(ALL, tokens=TEXTS))
        tensors, metadata = self.tensors(self.post(dict(ALL, tokens=TEXTS), "small",
                                                   {"Accept": SAFETENSORS}))
        self.assertEqual(json.loads(metadata["usage"]), right["usage"])
        self.assertEqual(metadata["model"], "small")
        self.assertEqual(tensors.pop("valid_lens"), ("I32", [4], pack("I32", LENS)))
        shapes = {"outputs": [4, ROWS, 32]}
        arrays = {"outputs": right["outputs"]}
        for group, shape in (("hidden", [4, ROWS, 32]), ("attention", [4, 4, ROWS, ROWS])):
            for name, array in right[group].items():
                arrays[f"{group}.{name}"] = array
                shapes[f"{group}.{name}"] = shape
        self.assertEqual(set(tensors), set(arrays))
        for name, array in arrays.items():
            self.assertEqual(tensors[name], ("F32", shapes[name],
                                             bits(rectangle(array, shapes[name]))), name)

    def test_safetensors_of_vectors_and_thumbnails(self):
        wish = {"of": ["encoder.1.self"], "as": {"thumbnails": 2}}
        request = {"tokens": [TEXTS[0], TEXTS[1]], "pool": "max", "return_attention": wish}
        right = self.answer(request)
        tensors, _ = self.tensors(self.post(request, "small", {"Accept": SAFETENSORS}))
        self.assertEqual(tensors["outputs"], ("F32", [2, 32], bits(right["outputs"])))
        kind, shape, data = tensors["thumbnails.encoder.1.self"]
        self.assertEqual((kind, shape), ("U8", [2, 4, 2, 2]))
        first, second = (base64.b64decode(p["base64"])
                         for p in right["thumbnails"]["encoder.1.self"])
        self.assertEqual(data, first + b"".join(second[h:h + 1] + bytes(3) for h in range(4)))

    def test_one_item_as_bytes(self):
        request = {"tokens": TEXTS[0], "valid_lens": 3, "return_attention": "average"}
        right = self.answer(request)
        tensors, _ = self.tensors(self.post(request, "small", {"Accept": SAFETENSORS}))
        self.assertEqual(tensors["valid_lens"], ("I32", [], pack("I32", [3])))
        self.assertEqual(tensors["outputs"],
                         ("F32", [5, 32], bits(rectangle(right["outputs"], [5, 32]))))
        answer = self.answer(dict(request, encoding_format="base64"))
        self.assertEqual(answer["valid_lens"], 3)
        self.assertEqual(read_base64(answer["outputs"]),
                         ([5, 32], bits(rectangle(right["outputs"], [5, 32]))))
        vector = self.answer(dict(request, encoding_format="base64", pool="cls"))["outputs"]
        self.assertEqual(read_base64(vector), ([32], bits(right["outputs"][0])))

    def test_base64_answers(self):
        right = self.answer(dict(ALL, tokens=TEXTS))
        answer = self.answer(dict(ALL, tokens=TEXTS, encoding_format="base64"))
        self.assertEqual(answer["valid_lens"], LENS)
        self.assertEqual(read_base64(answer["outputs"]),
                         ([4, ROWS, 32], bits(rectangle(right["outputs"], [4, ROWS, 32]))))
        for name, array in right["attention"].items():
            shape = [4, 4, ROWS, ROWS]
            self.assertEqual(read_base64(answer["attention"][name]),
                             (shape, bits(rectangle(array, shape))))
        alike = self.answer({"tokens": [[1, 2], [3, 4]], "encoding_format": "base64"})
        self.assertEqual(read_base64(alike["outputs"])[0], [2, 2, 32])

    def test_safetensors_requests(self):
        types = [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
        fields = {"tokens": [[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]], "token_types": types,
                  "valid_lens": [5, 2]}
        for kind in ("I32", "I64"):
            header, data = {"__metadata__": {"return_hidden": '["encoder.1"]', "pool": "mean"}}, b""
            for name, value in fields.items():
                raw = pack(kind, value)
                header[name] = {"dtype": kind, "shape": shape_of(value),
                                "data_offsets": [len(data), len(data) + len(raw)]}
                data += raw
            text = json.dumps(header).encode()
            body = struct.pack("<Q", len(text)) + text + data
            answer = self.server.post(path_of("bert"), body, {"Content-Type": SAFETENSORS,
                                                              "Accept": "application/json"})
            right = self.answer(dict(fields, return_hidden=["encoder.1"], pool="mean"), "bert")
            self.assertEqual(self.ok(answer), right)
            self.tensors(self.server.post(path_of("bert"), body, {"Content-Type": SAFETENSORS}))

    def test_base64_embeddings(self):
        rows = [[[0.25] * 32, [1] * 32]]
        right = self.answer({"embeddings": rows}, "vit")
        packed = {"dtype": "F32", "shape": [1, 2, 32],
                  "base64": base64.b64encode(bits(rows)).decode()}
        self.assertEqual(self.answer({"embeddings": packed}, "vit"), right)
        self.problem(self.post({"tokens": packed}), 400, "invalid-request", "/tokens")

    # --- the Open Inference Protocol ---

    def infer(self, inputs, model="bert", **more):
        return self.server.post(f"/v2/models/{model}/infer", message_v2(inputs, **more))

    def test_v2(self):
        ids, mask = [[1, 2, 3], [4, 5, 0]], [[1, 1, 1], [1, 1, 0]]
        types = [[0, 1, 1], [0, 0, 2]]
        inputs = {"input_ids": ("INT64", ids), "attention_mask": ("INT64", mask),
                  "token_type_ids": ("INT64", types)}
        right = self.answer({"tokens": ids, "valid_lens": [3, 2], "token_types": types}, "bert")
        pooled = self.answer({"tokens": ids, "valid_lens": [3, 2], "token_types": types,
                              "pool": "pooler"}, "bert")["outputs"]
        expected = {"last_hidden_state": ([2, 3, 24], bits(rectangle(right["outputs"], [2, 3, 24]))),
                    "pooler_output": ([2, 24], bits(pooled))}
        for names in (None, ["last_hidden_state"], ["pooler_output"],
                      ["pooler_output", "last_hidden_state"]):
            for binary in (False, True):
                outputs = {} if names is None else {"outputs": [{"name": n} for n in names]}
                answer = self.infer(inputs, parameters={"binary_data_output": binary}, id="x",
                                    **outputs)
                self.assertEqual(answer.status, 200, answer)
                message, arrays = read_v2(answer.headers, answer.body)
                names = names or ["last_hidden_state"]
                self.assertEqual(list(arrays), names)
                self.assertEqual(arrays, {name: expected[name] for name in names})
                self.assertEqual((message["model_name"], message["id"]), ("bert", "x"))

    def test_v2_mistakes(self):
        ids = ("INT64", [[1, 2, 3], [4, 5, 0]])
        for inputs, more, where in (
                ({"input_ids": ids, "attention_mask": ("INT64", [[1, 0, 1], [1, 1, 1]])}, {}, "0/2"),
                ({"input_ids": ("INT64", [[1, 64]])}, {}, "token 64"),
                ({"input_ids": ("INT64", [1, 2])}, {}, "1 dimensions"),
                ({"input_ids": ("FP32", [[1, 2]])}, {}, "INT64 or INT32"),
                ({"queries": ids}, {}, "expected input_ids"),
                ({}, {}, "\"input_ids\" is missing"),
                ({"input_ids": ids}, {"outputs": [{"name": "logits"}]}, "no language modeling head"),
                ({"input_ids": ids}, {"outputs": [{"name": "logit"}]}, "pooler_output")):
            answer = self.infer(inputs, **more)
            self.assertEqual(answer.status, 400, answer)
            self.assertIn(where, answer.json["error"])
        answer = self.infer({"input_ids": ids}, "small", outputs=[{"name": "pooler_output"}])
        self.assertIn("no pooler", answer.json["error"])
        rows = ("FP32", [[[0.5] * 32]])
        self.assertEqual(self.infer({"inputs_embeds": rows}, "vit").status, 200)

    def test_v2_both_outputs_behind_a_last_norm(self):
        "Of ViT the last hidden state that /encode shows is not what leaves the last norm."
        rows = [[[0.5] * 32, [-0.25, 1] * 16]]
        right = {"last_hidden_state": self.answer({"embeddings": rows}, "vit")["outputs"],
                 "pooler_output": self.answer({"embeddings": rows, "pool": "pooler"},
                                              "vit")["outputs"]}
        answer = self.infer({"inputs_embeds": ("FP32", rows)}, "vit",
                            outputs=[{"name": name} for name in right])
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(read_v2(answer.headers, answer.body)[1],
                         {name: (shape_of(array), bits(array)) for name, array in right.items()})

    # --- mistakes ---

    def test_mistakes(self):
        for request, pointer in (
                ({}, "/tokens"), ({"tokens": [[1], [50]]}, "/tokens/1/0"),
                ({"tokens": [1, -1]}, "/tokens/1"), ({"tokens": [[1.5]]}, "/tokens/0/0"),
                ({"tokens": [["a"]]}, "/tokens/0/0"), ({"tokens": "a"}, "/tokens"),
                ({"tokens": [[1]], "embeddings": []}, "/embeddings"),
                ({"embeddings": [[[1, 2]]]}, "/embeddings/0/0"),
                ({"tokens": [[1]], "token_types": [[0]]}, "/token_types"),
                ({"tokens": [[1]], "valid_lens": [2]}, "/valid_lens/0"),
                ({"tokens": [[]], "pool": "cls"}, "/tokens/0"),
                ({"tokens": [[1]], "pool": "pooler"}, "/pool"),
                ({"tokens": [[1]], "pool": "best"}, "/pool"),
                ({"tokens": [[1]], "normalize": True}, "/normalize"),
                ({"tokens": [[1]], "dimensions": 1}, "/dimensions"),
                ({"tokens": [[1]], "pool": "max", "dimensions": 33}, "/dimensions"),
                ({"tokens": [[1]], "return_hidden": ["encoder.0", "encoder.3"]}, "/return_hidden/1"),
                ({"tokens": [[1]], "return_attention": ["encoder.2.self"]}, "/return_attention/0"),
                ({"tokens": [[1]], "return_attention": {"of": ["x"], "as": "heads"}},
                 "/return_attention/of/0"),
                ({"tokens": [[1]], "head_mask": {"encoder.0.self": [1]}},
                 "/head_mask/encoder.0.self"),
                ({"input_ids": [[1]]}, "/input_ids"), ({"trace": {}}, "/trace"),
                ({"tokens": [[1]], "encoding_format": "hex"}, "/encoding_format")):
            with self.subTest(request=request):
                self.problem(self.post(request), 400, "invalid-request", pointer)
        self.problem(self.post({"tokens": [[1] * 25]}, "bert"), 400, "invalid-request", "/tokens/0")
        self.problem(self.post(b'{"tokens":[[1,}'), 400, "invalid-json", offset=14)

    def test_beyond_float32(self):
        answer = self.post({"tokens": [[1, 2]], "head_mask": {"encoder.0.self": [3e38] * 4}})
        problem = self.problem(answer, 422, "not-finite")
        self.assertIn("encoder.0", problem["detail"])

    def test_media(self):
        self.problem(self.post({"tokens": [1]}, "small", {"Accept": "text/html"}), 406,
                     "not-acceptable")
        self.problem(self.post({"tokens": [1]}, "small", {"Content-Type": "text/plain"}), 415,
                     "unsupported-media-type")
        self.settled()


class Limits(Case):
    def test_limits(self):
        server = Server({"models": {"small": RANDOM}}, "--max-items", "3", "--max-pairs", "2000",
                        "--max-answer-bytes", "30000")
        for request, headers, limit in (
                ({"tokens": [[1]] * 4}, {}, "max_items"),
                ({"tokens": [[1] * 16]}, {}, "max_pairs"),  # 16 * 16 pairs, 4 heads, 2 layers
                ({"tokens": [[1] * 14, [1] * 6], "return_hidden": "all",
                  "return_attention": True}, {}, "max_answer_bytes"),
                # Little that is there, but a rectangle of zeros.
                ({"tokens": [[1] * 15, [], []], "valid_lens": [0, 0, 0], "return_hidden": "all",
                  "return_attention": True}, {"Accept": SAFETENSORS}, "max_answer_bytes")):
            answer = server.post(path_of("small"), request, headers)
            self.problem(answer, 413, "too-large", limit=limit)
        self.ok(server.post(path_of("small"), {"tokens": [[1] * 15]}))
        server.stop()


class Bits(Case):
    """Every variant of a request gives the numbers that it gives alone on one worker."""

    BODIES = [("small", dict(ALL, tokens=drawn(1, 5, 1, 70, 0, 130))),
              ("small", {"tokens": drawn(2, 65, 3), "pool": "mean"}),
              ("bert", dict(ALL, tokens=drawn(3, 24, 7, 2))),
              ("bert", {"tokens": drawn(4, 3, 9), "pool": "pooler", "normalize": True}),
              ("t5", dict(ALL, tokens=drawn(5, 40, 66))),
              ("vit", {"embeddings": [[[0.1 * i] * 32 for i in range(9)], [[1] * 32]],
                       "return_hidden": "all"})]

    @classmethod
    def setUpClass(cls):
        server = cls.serve("--workers", "1")
        cls.alone = [cls.asked(server, model, body) for model, body in cls.BODIES]
        server.stop()

    @classmethod
    def serve(cls, *args):
        return Server({"models": MODELS}, *args)

    @staticmethod
    def asked(server, model, body, **options):
        return server.post(path_of(model), body, **options)

    def compare(self, server, connection=None):
        for (model, body), alone in zip(self.BODIES, self.alone):
            self.assertEqual(alone.status, 200, alone)
            answer = self.asked(server, model, body, connection=connection)
            self.assertEqual(answer.body, alone.body)

    def test_any_number_of_workers(self):
        for args in (("--workers", "1"), ("--workers", "3"), ("--workers", "2", "--merge=false")):
            with self.subTest(args):
                server = self.serve(*args)
                self.compare(server)
                server.stop()

    def test_in_company(self):
        server = self.serve("--workers", "2")
        wrong, stop = [], threading.Event()

        def other(seed):
            connection, rng = server.connect(), random.Random(seed)
            while not stop.is_set():
                model, body = rng.choice([m for m in self.BODIES if m[0] in ("small", "t5")])
                body = dict(body, tokens=drawn(seed, rng.randrange(1, 60)))
                if self.asked(server, model, body, connection=connection).status != 200:
                    wrong.append(seed)
            connection.close()

        threads = [threading.Thread(target=other, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(4 if MODE == "release" else 1):
                self.compare(server)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        server.stop()

    def test_each_item_alone_and_in_any_order(self):
        server = self.serve()
        for (model, body), alone in zip(self.BODIES, self.alone):
            field = "tokens" if "tokens" in body else "embeddings"
            whole = alone.json
            order = list(range(len(body[field])))
            random.Random(7).shuffle(order)
            mixed = self.ok(self.asked(server, model,
                                       dict(body, **{field: [body[field][i] for i in order]})))
            self.assertEqual(mixed["outputs"], [whole["outputs"][i] for i in order])
            for group in ("hidden", "attention"):
                for name, items in whole.get(group, {}).items():
                    self.assertEqual(mixed[group][name], [items[i] for i in order])
        server.stop()

    def test_with_and_without_what_lies_between(self):
        server = self.serve()
        for (model, body), alone in zip(self.BODIES, self.alone):
            for more in ({"return_hidden": False, "return_attention": False},
                         {"return_attention": "average"},
                         {"return_attention": {"of": ["encoder.*.self"], "as": {"thumbnails": 8}}},
                         {"return_hidden": ["encoder.1.self.input"]}):
                answer = self.ok(self.asked(server, model, dict(body, **more)))
                self.assertEqual(answer["outputs"], alone.json["outputs"])
        server.stop()

    def test_chunks(self):
        server = self.serve()
        for (model, body), alone in zip(self.BODIES, self.alone):
            text = json.dumps(body).encode()
            for sizes in ([1] * 200 + [len(text) - 200], [7] * (len(text) // 7) + [len(text) % 7]):
                with Raw(server) as raw:
                    raw.send(head_of(path_of(model), None, "Content-Type: application/json",
                                     "Transfer-Encoding: chunked"))
                    raw.send(chunked(text, [n for n in sizes if n > 0]))
                    answer = raw.answer()
                self.assertEqual((answer.status, answer.body), (200, alone.body))
        server.stop()


class Command(Case):
    """`attend run NAME --encode` answers with the bytes that HTTP gives."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server({"models": MODELS})
        cls.config = os.path.join(cls.server.folder, "attend.json")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def run_model(self, *args, data=b""):
        """(exit status, standard output, standard error)"""
        return attend("run", *args, "--config", self.config, data=data)

    def test_one_request(self):
        for request in (dict(ALL, tokens=TEXTS), {"tokens": TEXTS[0], "pool": "max"}):
            body = json.dumps(request).encode()
            status, out, err = self.run_model("small", "--encode", data=body)
            self.assertEqual(status, 0, err)
            self.assertEqual(out, self.server.post(path_of("small"), body).body)
        header = json.dumps({"tokens": {"dtype": "I32", "shape": [1, 2], "data_offsets": [0, 8]}})
        body = struct.pack("<Q", len(header)) + header.encode() + pack("I32", [[3, 4]])
        _, out, _ = self.run_model("--binary", "--encode", "small", data=body)
        self.assertEqual(out, self.server.post(path_of("small"), body,
                                                       {"Content-Type": SAFETENSORS}).body)

    def test_lines(self):
        texts = [{"tokens": text, "pool": "mean"} for text in TEXTS if text] + [{"tokens": [[50]]}]
        status, out, _ = self.run_model("small", "--encode", "--lines",
                                        data="".join(json.dumps(t) + "\n" for t in texts).encode())
        self.assertEqual(status, 1)
        lines = out.splitlines()
        for request, line in zip(texts[:-1], lines):
            self.assertEqual(line, self.server.post(path_of("small"), request).body)
        self.assertEqual(json.loads(lines[-1])["pointer"], "/tokens/0/0")

    def test_misuse(self):
        for args, words in ((("small",), "ask it to --encode"), (("small", "--score"), "cannot score"),
                            (("demo", "--encode"), "cannot encode"),
                            (("small", "--encode", "--heads"), "a second question")):
            status, out, err = self.run_model(*args, data=b"{}")
            self.assertEqual((status, out), (2, b""))
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()
