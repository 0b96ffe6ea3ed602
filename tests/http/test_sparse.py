"""test_sparse: sparse embeddings over HTTP: the weights of tokens beside what published code computes of the same
logits, alone and in company, at every level of the processor, and what is refused."""
import json
import os
import threading
import unittest

import numpy

import golden
import torch_file
from support import FolderCase, Server, attend, safetensors_bytes
from test_fill import LEVELS, WORDS, write_folder

MODULES = "sentence_transformers.sparse_encoder.models."
HOWS = {"max": {}, "sum": {"pooling_strategy": "sum"}, "twice": {"activation_function": "log1p_relu"},
        "both": {"pooling_strategy": "sum", "activation_function": "log1p_relu"}}
LARGE = {"vocabulary": 3001, "width": 24}  # more rows and tokens than go through the matrix at once


def weights(logits, how):
    """The weight of each token, as SpladePooling of sentence-transformers computes it."""
    z = numpy.log1p(numpy.maximum(numpy.float64(logits), 0))
    if "activation_function" in how:
        z = numpy.log1p(z)
    return z.sum(axis=0) if how.get("pooling_strategy") == "sum" else z.max(axis=0)


def add_modules(model, how, more=()):
    """The modules of a folder of sentence-transformers."""
    folder = model["transformer"]
    types = [MODULES + "MLMTransformer", MODULES + "SpladePooling", *more]
    with open(os.path.join(folder, "modules.json"), "w", encoding="utf-8") as file:
        json.dump([{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_module", "type": name}
                   for i, name in enumerate(types)], file)
    for i in range(1, len(types)):
        os.makedirs(os.path.join(folder, f"{i}_module"), exist_ok=True)
    with open(os.path.join(folder, "1_module", "config.json"), "w", encoding="utf-8") as file:
        json.dump(how, file)
    return model


def large(folder):
    """bert-mlm with random tokens."""
    rng = numpy.random.default_rng(5)
    table = numpy.float32(rng.normal(0, 1, (LARGE["vocabulary"], LARGE["width"])))
    bias = numpy.float32(rng.normal(-2, 0.5, LARGE["vocabulary"]))
    positions = numpy.float32(rng.normal(0, 1, (400, LARGE["width"])))
    return write_folder(folder, "bert-mlm", config={"vocab_size": LARGE["vocabulary"], "max_position_embeddings": 400},
                        **{"bert.embeddings.word_embeddings.weight": table, "cls.predictions.bias": bias,
                           "bert.embeddings.position_embeddings.weight": positions})


def own_weights(rows, tokens, layer, special):
    """The greatest weight of each token, as FlagEmbedding computes it for bge-m3."""
    found = {}
    for row, token in zip(rows, tokens, strict=True):
        w = float(numpy.float64(layer["weight"][0]) @ numpy.float64(row) + layer["bias"][0])
        if token not in special and w > 0:
            found[token] = max(w, found.get(token, 0))
    return dict(sorted(found.items()))


def add_own(model, seed=7, width=24, torch=False, **changes):
    """sparse_linear of bge-m3 in a folder, maybe as PyTorch's file; returns its tensors, too."""
    rng = numpy.random.default_rng(seed)
    layer = {"weight": numpy.float32(rng.normal(0, 0.5, (1, width))), "bias": numpy.float32([0.1]), **changes}
    if torch:
        torch_file.write_arrays(os.path.join(model["transformer"], "sparse_linear.pt"), layer)
        return layer
    with open(os.path.join(model["transformer"], "sparse_linear.safetensors"), "wb") as file:
        file.write(safetensors_bytes({name: (list(x.shape), x.ravel().tolist()) for name, x in layer.items()}))
    return layer


class Sparse(FolderCase):
    @classmethod
    def start(cls):

        def at(name):
            return os.path.join(cls.folder, name)
        cls.cases = list(golden.cases("mask_lm"))
        cls.models = {how: add_modules(write_folder(at(how), "bert-mlm", WORDS), said) for how, said in HOWS.items()}
        cls.models.update({name: golden.definition(name) for name, _ in cls.cases}, large=large(at("large")),
                          bare=golden.definition("bert-a"),
                          huge=write_folder(at("huge"), "bert-mlm", **{"cls.predictions.transform.dense.weight":
                                                                       numpy.full((24, 24), 3e38, numpy.float32)}))
        for name, of, words in ("own", "bert-a", None), ("own_words", "bert-mlm", WORDS):
            cls.models[name] = write_folder(at(name), of, words)
        cls.own = {"own": add_own(cls.models["own"], width=32), "own_words": add_own(cls.models["own_words"], torch=True)}
        return Server({"models": cls.models, "default_model": "max"}, "--text-embeddings-inference", "true")

    def ask(self, model, server=None, **request):
        return self.ok((server or self.server).post(f"/v1/models/{model}/encode", request))

    def refused(self, path, pointer, words, **request):
        self.assertIn(words, self.problem(self.server.post(path, request), 400, "invalid-request", pointer)["detail"])

    def compare(self, got, right):
        self.assertEqual(got["indices"], numpy.flatnonzero(right > 0).tolist())
        numpy.testing.assert_allclose(got["values"], right[right > 0], 1e-4, 1e-4)

    # --- numbers ---

    def test_golden_models(self):
        for level in LEVELS:
            server = self.server if level is None else Server({"models": self.models}, env={"ATTEND_CPU": level})
            try:
                for name, case in self.cases:
                    request = {field: case[field] for field in ("tokens", "token_types") if field in case}
                    for model, how in [(name, {})] + [(model, HOWS[model]) for model in HOWS if name == "bert-mlm"]:
                        with self.subTest(model=model, level=level):
                            pool = {"pool": "sparse"} if model == name else {}  # else that of the folder
                            got = self.ask(model, server, **pool, **request)["sparse"]
                            for item, logits in zip(got, case["expected"]["logits"], strict=True):
                                self.compare(item, weights(logits, how))
                            for i, item in enumerate(got):  # alone and in company
                                one = {field: value[i] for field, value in request.items()}
                                self.assertEqual(self.ask(model, server, **pool, **one)["sparse"], item)
            finally:
                if server is not self.server:
                    server.stop()

    def logits(self, tokens):
        """Of one item, by the Open Inference Protocol."""
        answer = self.ok(self.server.post("/v2/models/large/infer", {
            "inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, len(tokens)], "data": tokens}],
            "outputs": [{"name": "logits"}]}))
        return numpy.float32(answer["outputs"][0]["data"]).reshape(len(tokens), LARGE["vocabulary"])

    def test_many_rows(self):
        """More than go through the matrix together, in one request and in several at once."""
        rng = numpy.random.default_rng(6)
        items = [rng.integers(0, LARGE["vocabulary"], n).tolist() for n in (1, 300, 17, 128, 2, 131)]
        right = [weights(self.logits(item), {}) for item in items]
        alone = [self.ask("large", tokens=item, pool="sparse")["sparse"] for item in items]
        for got, weight in zip(alone, right, strict=True):
            self.compare(got, weight)
        self.assertEqual(self.ask("large", tokens=items, pool="sparse")["sparse"], alone)
        found = {}

        def send(i):
            found[i] = self.ask("large", tokens=items[i % len(items)], pool="sparse")["sparse"]
        threads = [threading.Thread(target=send, args=(i,)) for i in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(24):
            self.assertEqual(found[i], alone[i % len(items)])

    def test_eight_bits(self):
        server = Server({"models": {"max": dict(self.models["max"], compute="int8-block")}})
        try:
            _, case = self.cases[0]
            for got, logits in zip(self.ask("max", server, tokens=case["tokens"], token_types=case["token_types"])["sparse"],
                                   case["expected"]["logits"], strict=True):
                found = numpy.zeros(len(logits[0]))
                found[got["indices"]] = got["values"]
                numpy.testing.assert_allclose(found, weights(logits, {}), 0, 0.2)
        finally:
            server.stop()

    def is_own(self, got, right):
        self.assertEqual(got["indices"], list(right))
        numpy.testing.assert_allclose(got["values"], list(right.values()), 1e-4, 1e-4)

    def test_rows_that_weigh_their_own_tokens(self):
        """Beside golden hidden states, alone and in company; special tokens have no weight."""
        for name, case in golden.cases("encode"):
            if name == "bert-a":
                request = {field: case[field] for field in ("tokens", "token_types") if field in case}
                got = self.ask("own", pool="sparse", **request)["sparse"]
                for i, item in enumerate(got):
                    rows = case["expected"]["last_hidden_state"][i]
                    self.is_own(item, own_weights(rows, case["tokens"][i], self.own["own"], {0}))
                    one = {field: value[i] for field, value in request.items()}
                    self.assertEqual(self.ask("own", pool="sparse", **one)["sparse"], item)
        texts = ["w3 w5 w3 w9 w5 w1 w3 w2", "w7 [MASK]"]
        answer = self.ask("own_words", text=texts, pool="sparse", return_tokens=True)
        rows = self.ask("own_words", text=texts)["outputs"]
        for i, item in enumerate(answer["sparse"]):
            self.is_own(item, own_weights(rows[i], answer["tokens"][i], self.own["own_words"], set(range(5))))
            self.assertEqual(item["strings"], [WORDS[token] for token in item["indices"]])
        ranked = self.ok(self.server.post("/embed_sparse", {"inputs": texts, "model": "own_words"}))
        self.assertEqual([[one["index"] for one in item] for item in ranked], [item["indices"] for item in answer["sparse"]])
        pieces = self.ok(self.server.get("/v1/models/own"))
        self.assertEqual(sum(one["parameters"] for one in pieces["pieces"]), pieces["parameters"])
        self.refused("/v1/models/own/encode", "/pool", "require tokens, not embeddings", embeddings=[[0] * 32], pool="sparse")

    # --- responses ---

    def test_responses(self):
        self.assertEqual(self.ok(self.server.get("/v1/models/max"))["pool"], "sparse")
        self.assertEqual(self.ok(self.server.get("/v1/models/max"))["tasks"], ["encode", "fill", "sparse"])
        self.assertEqual(self.ok(self.server.get("/v1/models/own"))["tasks"], ["encode", "sparse"])
        for name in ("max", "own"):
            about = self.ok(self.server.get(f"/v1/models/{name}"))
            self.assertEqual(about["pools"][:2] + about["pools"][-1:], ["none", "cls", "sparse"])
            self.assertEqual("pooler" in about["pools"], about["pooler"])
        answer = self.ask("max", text=["w3 w5", "a\"b"], return_tokens=True)
        self.assertNotIn("outputs", answer)
        for item in answer["sparse"]:
            self.assertEqual(item["strings"], [WORDS[i] for i in item["indices"]])
        plain = self.ask("max", tokens=answer["tokens"])
        self.assertEqual([{"indices": one["indices"], "values": one["values"]} for one in answer["sparse"]], plain["sparse"])
        self.assertEqual(self.ask("max", text="w3 w5")["sparse"], plain["sparse"][0])
        self.assertEqual(self.ask("max", tokens=[])["sparse"], [])
        more = self.ask("max", tokens=[[5, 6]], return_hidden=True, return_attention=True, encoding_format="base64")
        self.assertEqual(sorted(more), sorted(["model", "sparse", "hidden", "attention", "valid_lens", "usage"]))
        self.assertIn("outputs", self.ask("max", tokens=[[5, 6]], pool="mean"))
        self.assertIn("heads", self.ok(self.server.post("/v1/models/max/heads", {"tokens": [[5, 6]]})))

    def test_text_embeddings_inference(self):
        right = self.ask("max", text=["w3 w5", "w7"])["sparse"]
        got = self.ok(self.server.post("/embed_sparse", {"inputs": ["w3 w5", "w7"]}))
        self.assertEqual([([one["index"] for one in item], [one["value"] for one in item]) for item in got],
                         [(item["indices"], item["values"]) for item in right])
        one = self.ok(self.server.post("/embed_sparse", {"inputs": "w3 w5"}))
        self.assertEqual(one, got[:1])
        self.assertEqual(self.ok(self.server.get("/info"))["model_type"], {"embedding": {"pooling": "splade"}})
        self.assertEqual(len(self.ok(self.server.post("/embed_all", {"inputs": "w3"}))[0][0]), 24)
        problem = self.server.post("/embed_sparse", {"inputs": "w3", "normalize": False})
        self.assertEqual(problem.status, 400)
        self.assertIn("POST /embed (at /normalize)", problem.body.decode())
        problem = self.server.post("/embed_sparse", {"inputs": [1], "model": "bare"})
        self.assertEqual(problem.status, 400)
        self.assertIn("without sparse embeddings", problem.body.decode())

    def test_rerank(self):
        texts = ["w3 w5", "w7 w7 w8", "w5", "a\"b w20"]
        query, *documents = self.ask("max", text=["w5 w9", *texts])["sparse"]

        def dot(one):
            weight = dict(zip(one["indices"], one["values"]))
            return sum(weight.get(i, 0) * x for i, x in zip(query["indices"], query["values"]))
        right = sorted(((dot(one), -i) for i, one in enumerate(documents)), reverse=True)
        got = self.ok(self.server.post("/v1/rerank", {"model": "max", "query": "w5 w9", "documents": texts}))["results"]
        self.assertEqual([one["index"] for one in got], [-i for _, i in right])
        numpy.testing.assert_allclose([one["relevance_score"] for one in got], [score for score, _ in right], 1e-6)

    # --- what is refused ---

    def test_requests(self):
        path, tokens = "/v1/models/max/encode", [[5, 6]]
        self.refused("/v1/models/bare/encode", "/pool", "neither a masked language modeling head nor", tokens=tokens, pool="sparse")
        self.refused(path, "/dimensions", "neither cut nor normalized", tokens=tokens, dimensions=2)
        self.refused(path, "/normalize", "neither cut nor normalized", tokens=tokens, normalize=True)
        self.refused(path, "/tokens/1", "an empty item", tokens=[[5], []])
        self.refused("/v1/models/max/heads", "/pool", "not measured for sparse", tokens=tokens, pool="sparse")
        sparse = "the embeddings of this model are sparse: use POST /v1/models/NAME/encode"
        for path, request in (("/v1/embeddings", {"input": "w3"}), ("/v1/embed", {"texts": ["w3"]}),
                              ("/embed", {"inputs": "w3"}),
                              ("/similarity", {"inputs": {"source_sentence": "w3", "sentences": ["w5"]}})):
            with self.subTest(path=path):
                answer = self.server.post(path, dict(request, model="max"))
                self.assertEqual(answer.status, 400)
                self.assertIn(sparse, answer.body.decode())
        binary = {"Accept": "application/x-safetensors"}
        problem = self.problem(self.server.post("/v1/models/max/encode", {"tokens": tokens}, binary), 406, "not-acceptable")
        self.assertIn("the only format of sparse embeddings", problem["detail"])
        self.problem(self.server.post("/v1/models/huge/encode", {"tokens": [1], "pool": "sparse"}), 422, "not-finite")

    def test_folders(self):
        def reason(name, how, more=(), config=None, **definition):
            model = add_modules(write_folder(os.path.join(self.folder, name), "bert-mlm", config=config), how, more)
            file = os.path.join(self.folder, name + ".json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"models": {"m": dict(model, **definition)}}, out)
            status, _, told = attend("check", "--config", file)
            self.assertNotEqual(status, 0)
            return told
        self.assertIn('pooling_strategy: "mean" is not supported; supported: max, sum',
                      reason("bad-pool", {"pooling_strategy": "mean"}))
        self.assertIn('activation_function: "tanh" is not supported; supported: relu, log1p_relu',
                      reason("bad-act", {"activation_function": "tanh"}))
        for name, changes, words in (("no-weight", {"weight": numpy.zeros((1, 23), numpy.float32)}, "not 1 times 24"),
                                     ("no-bias", {"bias": numpy.zeros(2, numpy.float32)}, "2 numbers here, not 1")):
            model = write_folder(os.path.join(self.folder, name), "bert-mlm")
            add_own(model, **changes)
            file = os.path.join(self.folder, name + ".json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump({"models": {"m": model}}, out)
            self.assertIn(words, attend("check", "--config", file)[2])
        self.assertIn("Normalize after a SpladePooling is not supported",
                      reason("normal", {}, ["sentence_transformers.models.Normalize"]))
        self.assertIn('pool: "sparse" requires a masked language modeling head or sparse_linear',
                      reason("model", {}, config={"architectures": ["BertModel"]}))


if __name__ == "__main__":
    unittest.main()
