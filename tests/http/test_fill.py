"""test_fill: masked language models over HTTP: the most likely tokens of masked positions beside what published code
computes, alone and in company, at every level of the processor, and what is refused."""
import json
import os
import shutil
import tempfile
import unittest

import numpy

import golden
from support import Server, ServerCase, safetensors_bytes
from test_whole import read_safetensors as read_tensors

LEVELS = "portable", "avx2", None  # None: the best
TOP = 7
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(48)] + ["a\"b"]


def softmax(logits):
    powers = numpy.exp(numpy.float64(logits) - max(logits))
    return powers / powers.sum()


def write_folder(folder, name, words=None, drop=(), config=None, **changes):
    """A golden model with other tensors, and with these words."""
    os.makedirs(folder)
    tensors = read_tensors(os.path.join(golden.MODELS, name, "model.safetensors"))
    tensors = {name: x for name, x in tensors.items() if not name.startswith(tuple(drop))}
    tensors.update(changes)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(safetensors_bytes({name: (list(x.shape), x.ravel().tolist()) for name, x in tensors.items()}))
    with open(os.path.join(golden.MODELS, name, "config.json"), encoding="utf-8") as file:
        said = {**json.load(file), **(config or {})}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(said, file)
    if words:
        with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(words) + "\n")
    return {"transformer": folder}


class Fill(ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
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

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder, ignore_errors=True)

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

    # --- texts ---

    def test_texts(self):
        self.assertEqual(self.ok(self.server.get("/v1/models/words"))["tokens"]["mask"], 4)
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
        self.refused("words", "/return_top", "from 0 to 64", return_top=65, **masks)
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
