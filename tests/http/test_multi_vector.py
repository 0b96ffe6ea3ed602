"""test_multi_vector: multi-vector embeddings over HTTP: a vector of unit length for each position but the first, beside
golden hidden states times the matrix, alone and in company, at every level of the processor; MaxSim of /v1/rerank."""
import json
import os
import unittest

import numpy

import golden
import torch_file
from forms import read_base64, read_safetensors
from support import FolderCase, Server, attend, safetensors_bytes
from test_fill import LEVELS, WORDS, write_folder

DENSE = "sentence_transformers.models."


def add_projection(model, width, size=5, seed=3, form="safetensors", **changes):
    """colbert_linear of bge-m3 in a folder; returns its tensors, too."""
    rng = numpy.random.default_rng(seed)
    layer = {"weight": numpy.float32(rng.normal(0, 0.5, (size, width))), "bias": numpy.float32(rng.normal(0, 0.1, size)),
             **changes}
    layer = {name: x for name, x in layer.items() if x is not None}
    path = os.path.join(model["transformer"], f"colbert_linear.{form}")
    if form == "npz":
        numpy.savez(path, **layer)
        return layer
    if form == "pt":
        torch_file.write_arrays(path, layer)
        return layer
    with open(path, "wb") as file:
        file.write(safetensors_bytes({name: (list(x.shape), x.ravel().tolist()) for name, x in layer.items()}))
    return layer


def vectors(rows, layer, dimensions=None):
    """What FlagEmbedding computes for bge-m3 of an item's hidden states."""
    x = numpy.float64(rows)[1:] @ numpy.float64(layer["weight"]).T + layer.get("bias", 0)
    x = x[:, :dimensions]
    return x / numpy.linalg.norm(x, axis=1, keepdims=True)


class MultiVector(FolderCase):
    @classmethod
    def start(cls):

        def at(name):
            return os.path.join(cls.folder, name)
        cls.case = next(case for name, case in golden.cases("encode") if name == "bert-a")
        cls.models = {name: write_folder(at(name), of, words) for name, of, words in
                      (("a", "bert-a", None), ("npz", "bert-a", None), ("words", "bert-mlm", WORDS),
                       ("huge", "bert-a", None), ("torch", "bert-a", None))}
        cls.layer = {"a": add_projection(cls.models["a"], 32),
                     "npz": add_projection(cls.models["npz"], 32, 40, form="npz", bias=None),
                     "torch": add_projection(cls.models["torch"], 32, form="pt"),
                     "words": add_projection(cls.models["words"], 24)}
        add_projection(cls.models["huge"], 32, weight=numpy.full((5, 32), 3e38, numpy.float32))
        cls.models["words"]["pool"] = "multi_vector"
        cls.models["bare"] = golden.definition("bert-a")
        return Server({"models": cls.models, "default_model": "words"}, "--text-embeddings-inference", "true")

    def ask(self, model, server=None, **request):
        return self.ok((server or self.server).post(f"/v1/models/{model}/encode", request))

    def refused(self, pointer, words, model="a", path="encode", **request):
        answer = self.server.post(f"/v1/models/{model}/{path}", request)
        self.assertIn(words, self.problem(answer, 400, "invalid-request", pointer)["detail"])

    # --- numbers ---

    def test_golden_models(self):
        fit = [i for i, item in enumerate(self.case["tokens"]) if len(item) > 1]
        request = {field: [self.case[field][i] for i in fit] for field in ("tokens", "token_types") if field in self.case}
        hidden = [self.case["expected"]["last_hidden_state"][i] for i in fit]
        self.assertGreater(len({len(item) for item in request["tokens"]}), 1)
        for level in LEVELS:
            server = self.server if level is None else Server({"models": self.models}, env={"ATTEND_CPU": level})
            try:
                for model in "a", "npz", "torch":
                    with self.subTest(model=model, level=level):
                        got = self.ask(model, server, pool="multi_vector", **request)
                        self.assertNotIn("vector_lens", got)
                        for i, item in enumerate(got["outputs"]):
                            numpy.testing.assert_allclose(item, vectors(hidden[i], self.layer[model]), 1e-4, 1e-4)
                            self.assertEqual(got["positions"][i], list(range(1, len(hidden[i]))))
                            one = {name: x[i] for name, x in request.items()}
                            alone = self.ask(model, server, pool="multi_vector", **one)
                            self.assertEqual((alone["outputs"], alone["positions"]), (item, got["positions"][i]))
            finally:
                if server is not self.server:
                    server.stop()

    def test_fields(self):
        tokens = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
        hidden = self.ask("a", tokens=tokens)["outputs"]
        cut = self.ask("a", tokens=tokens, pool="multi_vector", dimensions=3, normalize=True)["outputs"]
        for item, rows in zip(cut, hidden, strict=True):
            numpy.testing.assert_allclose(item, vectors(rows, self.layer["a"], 3), 1e-4, 1e-4)
        mean = self.ask("a", tokens=tokens, pool="mean")["outputs"]  # which does not go through the projection
        numpy.testing.assert_allclose(mean, [numpy.mean(rows, axis=0) for rows in hidden], 1e-5, 1e-5)
        self.assertEqual(self.ask("a", tokens=[], pool="multi_vector")["outputs"], [])
        text = self.ask("words", text=["w3 w5", "w7"], return_tokens=True, return_hidden=True)
        self.assertEqual([len(x) for x in text["outputs"]], [len(x) - 1 for x in text["tokens"]])

    def test_rectangles(self):
        tokens = [[5, 6, 7, 8], [9, 10], [11, 12, 13]]
        right = self.ask("a", tokens=tokens, pool="multi_vector")
        answer = self.server.post("/v1/models/a/encode", {"tokens": tokens, "pool": "multi_vector"},
                                  {"Accept": "application/x-safetensors"})
        self.assertEqual(answer.status, 200)
        types = {"F32": numpy.float32, "I32": numpy.int32}
        got = {name: numpy.frombuffer(data, types[dtype]).reshape(shape)
               for name, (dtype, shape, data) in read_safetensors(answer.body)[0].items()}
        self.assertEqual(got["vector_lens"].tolist(), [3, 1, 2])
        self.assertEqual(got["outputs"].shape, (3, 3, 5))
        for i, n in enumerate([3, 1, 2]):
            self.assertEqual(got["outputs"][i, :n].tolist(), numpy.float32(right["outputs"][i]).tolist())
            self.assertEqual(got["positions"][i, :n].tolist(), right["positions"][i])
            self.assertFalse(got["outputs"][i, n:].any())

    def test_base64_and_v2(self):
        right = self.ask("words", tokens=[5, 6, 7])
        got = self.ask("words", tokens=[5, 6, 7], encoding_format="base64")
        shape, data = read_base64(got["outputs"])
        self.assertEqual(numpy.frombuffer(data, numpy.float32).reshape(shape).tolist(), numpy.float32(right["outputs"]).tolist())
        self.assertEqual((got["positions"], got["vector_lens"], got["valid_lens"]), ([1, 2], 2, 3))
        for tokens in [5, 6, 7], [5]:  # the hidden states of /v2 are those of all positions
            infer = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, len(tokens)], "data": tokens}]}
            output = self.ok(self.server.post("/v2/models/words/infer", infer))["outputs"][0]
            self.assertEqual((output["name"], output["shape"]), ("last_hidden_state", [1, len(tokens), 24]))
            self.assertEqual(output["data"], sum(self.ask("words", tokens=tokens, pool="none", normalize=False)["outputs"], []))

    # --- responses ---

    def test_descriptions(self):
        model = self.ok(self.server.get("/v1/models/words"))
        self.assertEqual((model["pool"], model["dimensions"]), ("multi_vector", 5))
        self.assertIn("multi_vector", model["tasks"])
        self.assertEqual(model["pools"][-1], "multi_vector")
        self.assertEqual(sum(one["parameters"] for one in model["pieces"]), model["parameters"])
        self.assertNotIn("multi_vector", self.ok(self.server.get("/v1/models/bare"))["tasks"])
        self.assertNotIn("heads", self.ask("a", tokens=[[5, 6]]))
        self.assertIn("heads", self.ok(self.server.post("/v1/models/words/heads", {"tokens": [[5, 6]]})))

    def test_rerank(self):
        texts = ["w3 w5", "w7 w7 w8", "w5", "a\"b w20"]
        query, *documents = [numpy.float64(x) for x in self.ask("words", text=["w5 w9", *texts])["outputs"]]
        right = sorted(((float((query @ one.T).max(axis=1).sum()), -i) for i, one in enumerate(documents)), reverse=True)
        request = {"model": "words", "query": "w5 w9", "documents": texts}
        got = self.ok(self.server.post("/v1/rerank", request))["results"]
        self.assertEqual([one["index"] for one in got], [-i for _, i in right])
        numpy.testing.assert_allclose([one["relevance_score"] for one in got], [score for score, _ in right], 1e-5)
        alone = [self.ok(self.server.post("/v1/rerank", dict(request, documents=[text])))["results"][0]["relevance_score"]
                 for text in texts]
        self.assertEqual([alone[one["index"]] for one in got], [one["relevance_score"] for one in got])

    # --- what is refused ---

    def test_requests(self):
        pool, tokens = {"pool": "multi_vector"}, [[5, 6]]
        self.refused("/pool", "no colbert_linear", "bare", tokens=tokens, **pool)
        self.refused("/pool", "not measured for multi-vector", path="heads", tokens=tokens, **pool)
        self.refused("/dimensions", "6 dimensions exceed the 5", tokens=tokens, dimensions=6, **pool)
        self.refused("/normalize", "always normalized", tokens=tokens, normalize=False, **pool)
        self.refused("/tokens/1", "require 2 positions", tokens=[[5, 6], [5]], **pool)
        self.refused("/tokens/0", "require 2 positions", tokens=[[]], **pool)
        words = "the embeddings of this model are multi-vector: use POST /v1/models/NAME/encode"
        for path, request in (("/v1/embeddings", {"input": "w3"}), ("/v1/embed", {"texts": ["w3"]}),
                              ("/embed", {"inputs": "w3"}),
                              ("/similarity", {"inputs": {"source_sentence": "w3", "sentences": ["w5"]}})):
            with self.subTest(path=path):
                answer = self.server.post(path, dict(request, model="words"))
                self.assertEqual(answer.status, 400)
                self.assertIn(words, answer.body.decode())
        self.problem(self.server.post("/v1/models/huge/encode", {"tokens": [1, 2], **pool}), 422, "not-finite")

    def test_folders(self):
        def reason(name, add=True, modules=(), changes=None, **definition):
            model = write_folder(os.path.join(self.folder, name), "bert-a")
            folder = model["transformer"]
            if add:
                add_projection(model, 32, **(changes or {}))
            if modules:
                with open(os.path.join(folder, "modules.json"), "w", encoding="utf-8") as file:
                    json.dump([{"path": path, "type": DENSE + kind} for path, kind in modules], file)
                for path, config in (("1_p", {"pooling_mode": "mean"}),
                                     ("2_d", {"in_features": 32, "out_features": 4, "bias": False,
                                              "activation_function": "torch.nn.modules.linear.Identity"})):
                    os.makedirs(os.path.join(folder, path))
                    with open(os.path.join(folder, path, "config.json"), "w", encoding="utf-8") as file:
                        json.dump(config, file)
                with open(os.path.join(folder, "2_d", "model.safetensors"), "wb") as file:
                    file.write(safetensors_bytes({"linear.weight": ([4, 32], [0.5] * 128)}))
            file = os.path.join(self.folder, name + ".json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"models": {"m": dict(model, **definition)}}, out)
            status, _, told = attend("check", "--config", file)
            self.assertNotEqual(status, 0)
            return told
        zeros = numpy.zeros
        self.assertIn("the width is 32", reason("narrow", changes={"weight": zeros((5, 31), numpy.float32)}))
        self.assertIn("4 numbers here, not 5", reason("short", changes={"bias": zeros(4, numpy.float32)}))
        self.assertIn('needs a matrix "weight"', reason("none", changes={"weight": None}))
        self.assertIn('pool: "multi_vector" requires colbert_linear', reason("pool", add=False, pool="multi_vector"))
        self.assertIn("colbert_linear beside a Dense module",
                      reason("both", modules=(("", "Transformer"), ("1_p", "Pooling"), ("2_d", "Dense"))))


if __name__ == "__main__":
    unittest.main()
