"""test_fill: masked language models over HTTP: the most likely tokens of masked positions beside what published code
computes, alone and in company, at every level of the processor, and what is refused."""
import json
import os
import unittest

import numpy

import golden
from folders import read_tensors, write_folder
from pairs import activate
from support import FolderCase, Server, attend

LEVELS = "portable", "avx2", None  # None: the best
TOP = 7
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(47)] + ["w" * 100, "a\"b"]


def softmax(logits):
    powers = numpy.exp(numpy.float64(logits) - max(logits))
    return powers / powers.sum()


# Heads whose transform makes rows of the embedding's width: the names of the transform, the matrix and its bias.
TRANSFORMS = {"albert": ("albert-a", "AlbertForMaskedLM", "predictions", "predictions.decoder", "predictions.bias"),
          "electra": ("electra-a", "ElectraForMaskedLM", "generator_predictions", "generator_lm_head",
                      "generator_lm_head.bias")}
EMBEDDED = {"word_embeddings.weight": 54, "position_embeddings.weight": 32, "token_type_embeddings.weight": 2,
            "LayerNorm.weight": 0, "LayerNorm.bias": 0}


def gelu_new(x):
    return x / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x ** 3)))


class TransformHead:
    """A head for masked tokens of ALBERT or ELECTRA, and what it makes of hidden states, in float64. `own`: its matrix
    is not the table of tokens; `width`: of random embeddings instead of golden ones, whose width is 16."""

    def __init__(self, family, own=False, width=None):
        rng = numpy.random.default_rng(11)
        self.name, self.of, transform, self.matrix, bias = TRANSFORMS[family]
        self.under, self.act = f"{family}.", gelu_new if family == "albert" else lambda x: activate("gelu", x)
        e = width or 16
        self.config = {"architectures": [self.of], "tie_word_embeddings": not own, "embedding_size": e}

        def draw(*shape, mean=0, spread=0.2):
            return numpy.float32(rng.normal(mean, spread, shape))
        self.layers = draw(e, 24), draw(e), draw(e, mean=1), draw(e), draw(54, spread=1)
        self.tensors = dict(zip((f"{transform}.{end}" for end in ("dense.weight", "dense.bias", "LayerNorm.weight",
                                                                  "LayerNorm.bias")), self.layers))
        self.tensors[bias] = self.layers[4]
        if width:
            self.tensors.update({f"{self.under}embeddings.{end}": draw(*([rows] if rows else []), e)
                                 for end, rows in EMBEDDED.items()})
            self.tensors[f"{self.under}encoder.embedding_hidden_mapping_in.weight"] = draw(24, e)
        stored = read_tensors(os.path.join(golden.MODELS, self.name, "model.safetensors"))
        word = "embeddings.word_embeddings.weight"
        self.table = draw(54, e, spread=1) if own else self.tensors.get(self.under + word, stored[word])
        if own:
            self.tensors[f"{self.matrix}.weight"] = self.table

    def write(self, folder, config=None, drop=None, **changes):
        tensors = {name: x for name, x in {**self.tensors, **changes}.items() if name != drop}
        return write_folder(folder, self.name, config={**self.config, **(config or {})}, under=self.under, **tensors)

    def logits(self, rows):
        weight, bias, factor, shift, added = map(numpy.float64, self.layers)
        x = self.act(numpy.float64(rows) @ weight.T + bias)
        x -= x.mean(-1, keepdims=True)
        return (x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * factor + shift) @ self.table.T + added


class Fill(FolderCase):
    @classmethod
    def start(cls):
        cls.cases = list(golden.cases("mask_lm"))
        table = read_tensors(os.path.join(golden.MODELS, "bert-mlm", "model.safetensors"))[
            "bert.embeddings.word_embeddings.weight"]

        def made(name, *args, **more):
            return write_folder(os.path.join(cls.folder, name), *args, **more)
        cls.models = {name: golden.definition(name) for name, _ in cls.cases}
        cls.models.update(words=made("words", "bert-mlm", WORDS),
                          mask_less=made("mask_less", "bert-mlm", WORDS[:4] + ["w"] + WORDS[5:]),
                          bare=golden.definition("bert-a"),
                          headless=made("headless", "bert-mlm", drop=["cls."]),
                          own=made("own", "bert-mlm", config={"tie_word_embeddings": False},
                                   **{"cls.predictions.decoder.weight": -table}),
                          huge=made("huge", "bert-mlm", **{"cls.predictions.transform.dense.weight":
                                                           numpy.full((24, 24), 3e38, numpy.float32)}))
        return Server({"models": cls.models})

    def post(self, model, server=None, **request):
        return (server or self.server).post(f"/v1/models/{model}/fill", request)

    def ask(self, model, server=None, **request):
        return self.ok(self.post(model, server, **request))

    def refused(self, model, pointer, words, **request):
        self.assertIn(words, self.problem(self.post(model, **request), 400, "invalid-request", pointer)["detail"])

    def compare(self, got, right, positions):
        self.assertEqual([one["position"] for one in got], positions)
        for one in got:
            chances = softmax(right[one["position"]])
            best = numpy.argsort(-chances, kind="stable")[:TOP].tolist()
            self.assertEqual([token["token"] for token in one["top"]], best)
            numpy.testing.assert_allclose([token["probability"] for token in one["top"]], chances[best], 1e-4, 1e-4)

    # --- numbers ---

    def test_golden_models(self):
        self.assertGreaterEqual(len(self.cases), 4)
        for level in LEVELS:
            server = self.server if level is None else Server({"models": {name: golden.definition(name)
                                                                          for name, _ in self.cases}},
                                                              env={"ATTEND_CPU": level})
            try:
                for name, case in self.cases:
                    with self.subTest(model=name, level=level):
                        request = {field: case[field] for field in ("tokens", "token_types") if field in case}
                        right = case["expected"]["logits"]
                        got = self.ask(name, server, positions="all", return_top=TOP, **request)["masks"]
                        for item, logits in zip(got, right, strict=True):
                            self.compare(item, logits, list(range(len(logits))))
                        for i, item in enumerate(got):  # alone and in company
                            alone = self.ask(name, server, positions="all", return_top=TOP,
                                             **{field: value[i] for field, value in request.items()})["masks"]
                            self.assertEqual(alone, item)
            finally:
                if server is not self.server:
                    server.stop()

    def test_transforms_to_the_width_of_the_embedding(self):
        """Beside what the head makes of published hidden states; with the table of tokens stored again, too."""
        cases = {name: case for name, case in golden.cases("encode") if name in ("albert-a", "electra-a")}
        heads = {(family, how): TransformHead(family, own=how == "own") for family in TRANSFORMS
                 for how in ("tied", "own", "stored")}
        models = {f"{family}-{how}": head.write(os.path.join(self.folder, f"{family}-{how}"), **(
            {f"{head.matrix}.weight": head.table} if how == "stored" else {})) for (family, how), head in heads.items()}
        models.update({f"{name}-int8": dict(model, compute="int8-block") for name, model in list(models.items())})
        for level in LEVELS:
            server = Server({"models": models}, env={"ATTEND_CPU": level} if level else None)
            self.addCleanup(server.kill)
            for (family, how), head in heads.items():
                name, case = f"{family}-{how}", cases[head.name]
                with self.subTest(model=name, level=level):
                    request = {field: case[field] for field in ("tokens", "token_types")}
                    whole = dict(request, positions="all", return_top=TOP)
                    got = self.ask(name, server, **whole)["masks"]
                    for i, (item, rows) in enumerate(zip(got, case["expected"]["last_hidden_state"], strict=True)):
                        self.compare(item, head.logits(rows), list(range(len(rows))))
                        one = {field: value[i] for field, value in request.items()}
                        self.assertEqual(self.ask(name, server, positions="all", return_top=TOP, **one)["masks"], item)
                    near = self.ask(f"{name}-int8", server, **whole)["masks"]
                    for item, of_item in zip(near, got, strict=True):
                        numpy.testing.assert_allclose([mask["top"][0]["probability"] for mask in item],
                                                      [mask["top"][0]["probability"] for mask in of_item], 0, 0.2)
                    self.compare_weights(server, name, head, request, case["expected"]["last_hidden_state"])
            server.stop()

    def compare_weights(self, server, name, head, request, hidden):
        """SPLADE's weights are of the same logits."""
        got = self.ok(server.post(f"/v1/models/{name}/encode", dict(request, pool="sparse")))["sparse"]
        for item, rows in zip(got, hidden, strict=True):
            weights = numpy.zeros(54)
            weights[item["indices"]] = item["values"]
            right = numpy.log1p(numpy.maximum(head.logits(rows), 0)).max(axis=0)
            numpy.testing.assert_allclose(weights, right, 1e-4, 1e-4)

    def test_other_transforms(self):
        """ELECTRA's has a GELU, whatever the layers have; ALBERT's has the layers' activation. Embeddings may be wider
        than the model."""
        heads = {"albert": TransformHead("albert"), "electra": TransformHead("electra"),
                 "wide": TransformHead("albert", width=56)}
        heads["albert"].act = heads["wide"].act = lambda x: numpy.maximum(x, 0)
        server = Server({"models": {name: head.write(os.path.join(self.folder, f"relu-{name}"), {"hidden_act": "relu"})
                                    for name, head in heads.items()}})
        self.addCleanup(server.stop)
        request = {"tokens": [[5, 6, 7], [8]]}
        for name, head in heads.items():
            with self.subTest(model=name):
                hidden = self.ok(server.post(f"/v1/models/{name}/encode", request))["outputs"]
                got = self.ask(name, server, positions="all", return_top=TOP, **request)["masks"]
                for item, rows in zip(got, hidden, strict=True):
                    self.compare(item, head.logits(rows), list(range(len(rows))))
                self.compare_weights(server, name, head, request, hidden)

    def test_transforms_that_lack_a_part(self):
        for family, end in (("albert", "predictions.dense.weight"), ("albert", "predictions.LayerNorm.weight"),
                            ("electra", "generator_predictions.dense.weight")):
            model = TransformHead(family).write(os.path.join(self.folder, f"lacks-{end}"), drop=end)
            self.assertIn(f'there is no tensor "{end}" of the masked language modeling head', self.check(model))
        square = {"predictions.dense.weight": numpy.zeros((24, 24), numpy.float32)}
        self.assertIn('tensor "predictions.dense.weight" has 24 times 24 numbers here, not 16 times 24',
                      self.check(TransformHead("albert").write(os.path.join(self.folder, "square"), **square)))

    def check(self, model):
        path = model["transformer"] + ".json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"models": {"m": model}}, file)
        return attend("check", "--config", path)[2]

    def test_inspect(self):
        def told(model):
            return attend("inspect", model["transformer"])[1].decode()
        self.assertIn("a masked language modeling head: cls.predictions.decoder, tied to the token embeddings",
                      told(self.models["words"]))
        self.assertIn("cls.predictions.decoder, a matrix of its own", told(self.models["own"]))
        self.assertNotIn("masked", told(self.models["bare"]))

    def test_named_positions(self):
        name, case = self.cases[0]
        request = {field: case[field] for field in ("tokens", "token_types") if field in case}
        positions = [[len(item) - 1] for item in case["tokens"]]
        got = self.ask(name, positions=positions, return_top=TOP, **request)["masks"]
        for item, logits, of_item in zip(got, case["expected"]["logits"], positions, strict=True):
            self.compare(item, logits, of_item)
        self.assertEqual(len(self.ask(name, positions=positions, **request)["masks"][0][0]["top"]), 5)

    def test_a_matrix_of_its_own(self):
        """Its logits without the bias have the other sign."""
        name, case = "bert-mlm", dict(self.cases)["bert-mlm"]
        bias = read_tensors(os.path.join(golden.MODELS, name, "model.safetensors"))["cls.predictions.bias"]
        request = {field: case[field][0] for field in ("tokens", "token_types")}
        right = [2 * numpy.float64(bias) - row for row in case["expected"]["logits"][0]]
        self.compare(self.ask("own", positions=[1, 4], return_top=TOP, **request)["masks"], right, [1, 4])

    def test_the_lens(self):
        """The last hidden state predicts what the model does."""
        name, case = self.cases[0]
        answer = self.ask(name, tokens=case["tokens"], positions="all", return_top=3, return_lens=2)
        layers = self.ok(self.server.get(f"/v1/models/{name}"))["layers"]
        self.assertEqual(list(answer["lens"]), [f"encoder.{i}" for i in range(layers + 1)])
        for masks, lens in zip(answer["masks"], answer["lens"][f"encoder.{layers}"], strict=True):
            for mask, of_lens in zip(masks, lens, strict=True):
                self.assertEqual([one["token"] for one in of_lens], [one["token"] for one in mask["top"][:2]])

    def test_eight_bits(self):
        models = {name: dict(golden.definition(name), compute="int8-block") for name, _ in self.cases}
        server = Server({"models": models})
        try:
            for name, case in self.cases:
                got = self.ask(name, server, tokens=case["tokens"], positions="all", return_top=1)["masks"]
                chances = [[mask["top"][0]["probability"] for mask in item] for item in got]
                right = self.ask(name, tokens=case["tokens"], positions="all", return_top=1)["masks"]
                for item, of_item in zip(chances, right, strict=True):
                    numpy.testing.assert_allclose(item, [mask["top"][0]["probability"] for mask in of_item], 0, 0.2)
        finally:
            server.stop()

    def test_random_models(self):
        """An encoder of random numbers has a head without a transform: the table of tokens."""
        sizes = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 8, "heads": 2,
                 "feed_forward": 8, "vocabulary": 9}
        server = Server({"models": {"tied": dict(sizes, tie_output=True), "bare": sizes,
                                    "int8": dict(sizes, tie_output=True, compute="int8"),
                                    "sparse": dict(sizes, tie_output=True, pool="sparse")}})
        self.addCleanup(server.stop)
        tasks = {name: self.ok(server.get(f"/v1/models/{name}"))["tasks"] for name in ("tied", "bare", "sparse")}
        self.assertEqual([("fill" in tasks[name], "sparse" in tasks[name]) for name in ("tied", "bare", "sparse")],
                         [(True, True), (False, False), (True, True)])
        request = {"tokens": [[1, 2, 3], [4]], "positions": "all", "return_top": 9}
        got = self.ask("tied", server, **request)["masks"]
        for item, near in zip(got, self.ask("int8", server, **request)["masks"], strict=True):
            for mask, of_int8 in zip(item, near, strict=True):
                self.assertEqual(sorted(one["token"] for one in mask["top"]), list(range(9)))
                self.assertAlmostEqual(sum(one["probability"] for one in mask["top"]), 1, delta=1e-5)
                self.assertAlmostEqual(mask["top"][0]["probability"], of_int8["top"][0]["probability"], delta=0.2)
        weights = self.ok(server.post("/v1/models/sparse/encode", {"tokens": [1, 2, 3]}))["sparse"]
        self.assertEqual(weights["indices"], sorted(weights["indices"]))

    def test_many_positions(self):
        items = [[5, 6, 7]] * 4000  # 64 KB of positions
        got = self.ask("words", tokens=items, positions=[[0, 1, 2]] * len(items), return_top=1)["masks"]
        self.assertEqual(len(got), len(items))
        self.assertEqual(got[0], got[-1])
        self.refused("words", "/positions", "longer than 262144 bytes", tokens=[1], positions=[10 ** 9] * 30000)

    # --- texts ---

    def test_texts(self):
        about = self.ok(self.server.get("/v1/models/words"))
        self.assertEqual((about["tokens"]["mask"], about["tokenizer"]["mask"]), (4, "[MASK]"))
        answer = self.ask("words", text=["w3 [MASK] w5", "[MASK] [MASK]"], return_tokens=True)
        self.assertEqual([[one["position"] for one in item] for item in answer["masks"]], [[2], [1, 2]])
        self.assertEqual(answer["strings"][0], ["[CLS]", "w3", "[MASK]", "w5", "[SEP]"])
        for one in (token for item in answer["masks"] for mask in item for token in mask["top"]):
            self.assertEqual(one["string"], WORDS[one["token"]])
        alone = self.ask("words", text="w3 [MASK] w5")
        self.assertEqual(alone["masks"], answer["masks"][0])
        self.assertEqual(self.ask("words", tokens=answer["tokens"])["masks"], answer["masks"])
        every = self.ask("words", text="w3", positions="all", return_top=54)["masks"][0]["top"]
        self.assertEqual(sorted(one["string"] for one in every), sorted(WORDS))  # one with a quote
        self.assertNotIn("string", self.ask("bert-mlm", tokens=[1], positions=[0])["masks"][0]["top"][0])

    def test_other_results(self):
        answer = self.ask("words", text="w3 [MASK]", return_hidden=True, return_attention="average",
                          encoding_format="base64")
        self.assertEqual(sorted(answer), sorted(["model", "masks", "hidden", "attention", "valid_lens", "usage"]))
        self.assertEqual(answer["masks"], self.ask("words", text="w3 [MASK]")["masks"])
        self.assertIn("trace", self.ask("words", text="w3 [MASK]",
                                          trace={"attention": "encoder.0.self", "item": 0, "head": 0, "query": 1}))

    # --- what is refused ---

    def test_requests(self):
        masks = dict(tokens=[[5, 4], [6, 7]])
        self.refused("words", "/tokens/1", "no mask token ([MASK], token 4)", **masks)
        self.refused("words", "/text", "no mask token", text="w3")
        self.refused("bert-mlm", "/positions", "no tokenizer, which knows the mask token", **masks)
        self.refused("mask_less", "/positions", "no mask token", **masks)
        self.refused("words", "/positions", "embeddings have no mask token", embeddings=[[0] * 24])
        self.refused("words", "/positions", "a batch requires a list", positions=[1], **masks)
        self.refused("words", "/positions", "a single item requires one list", positions=[[1]], tokens=[1, 2])
        self.refused("words", "/positions", "1 items, but tokens has 2", positions=[[1]], **masks)
        self.refused("words", "/positions/1/0", "position 2 is outside the 2 tokens", positions=[[1], [2]], **masks)
        self.refused("words", "/positions/1", "outside the 2 tokens", positions=[0, 5], tokens=[1, 2])
        self.refused("words", "/positions/1", "must ascend, but 1 follows 1", positions=[1, 1], tokens=[1, 2])
        self.refused("words", "/positions/0", "an integer of at least 0", positions=[-1], tokens=[1, 2])
        self.refused("words", "/positions/1", "must be a list of positions", positions=[[1], 2], **masks)
        self.refused("words", "/positions/0", "has no positions", positions=[[], [1]], **masks)
        self.refused("words", "/positions", "\"masks\", \"all\"", positions="first", **masks)
        self.refused("words", "/tokens/0", "an empty item has no token", positions="all", tokens=[[], [1]])
        self.refused("words", "/return_top", "from 1 to 64", return_top=0, **masks)
        self.refused("words", "/return_top", "from 1 to 64", return_top=65, **masks)
        self.refused("words", "/pool", "POST /v1/models/NAME/encode", pool="mean", **masks)
        problem = self.problem(self.server.post("/v1/models/words/encode", dict(masks, positions="all")), 400,
                               "invalid-request", "/positions")
        self.assertIn("POST /v1/models/NAME/fill", problem["detail"])
        self.problem(self.server.post("/v1/models/words/fill", {"tokens": [4]},
                                      {"Accept": "application/x-safetensors"}), 406, "not-acceptable")

    def test_models(self):
        for model in "bare", "headless":
            problem = self.problem(self.post(model, tokens=[1], positions=[0]), 404, "not-found")
            self.assertIn("without a masked language modeling head", problem["detail"])
            self.assertNotIn("/fill", problem["detail"])
        self.assertIn("no tensors of its head", self.ok(self.server.get("/v1/models/headless"))["notes"][0])
        self.problem(self.post("huge", tokens=[1], positions=[0]), 422, "not-finite")


if __name__ == "__main__":
    unittest.main()
