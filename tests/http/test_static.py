"""test_static: static embeddings: a table of tokens whose rows are averaged, without layers. Folders of
sentence-transformers (a StaticEmbedding module) and of model2vec."""
import os
import shutil
import tempfile

import numpy

from families import safetensors
from support import Case, Server, attend
from test_whole import write_json

WORDS = ["[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "mat", "."]
TEXTS = ["the cat sat", "mat", "the the cat . dog"]
TOKENS = [[3, 4, 5], [6], [3, 3, 4, 7, 0]]
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "decoder": None, "added_tokens": [],
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}}
TABLE = numpy.random.default_rng(4).normal(0, 1, (8, 12)).astype(numpy.float32)
NORMALIZE = {"path": "1_Normalize", "type": "sentence_transformers.models.Normalize"}


def module(path):
    return {"path": path, "type": "sentence_transformers.models.StaticEmbedding"}


def means(normalize):
    rows = numpy.array([TABLE[tokens].astype(numpy.float64).mean(0) for tokens in TOKENS])
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True) if normalize else rows


class Static(Case):
    def folder(self, within="", tensors=None, modules=None, config=None):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.makedirs(os.path.join(folder, within), exist_ok=True)
        if modules:
            write_json(folder, "modules.json", modules)
        if config is not None:
            write_json(folder, os.path.join(within, "config.json"), config)
        write_json(folder, os.path.join(within, "tokenizer.json"), TOKENIZER)
        write_json(folder, os.path.join(within, "tokenizer_config.json"), {"model_max_length": 2})
        with open(os.path.join(folder, within, "model.safetensors"), "wb") as file:
            file.write(safetensors(tensors or {"embedding.weight": ("F32", TABLE)}))
        return folder

    def serve(self, folder, **definition):
        server = Server({"models": {"m": {"transformer": folder, **definition}}})
        self.addCleanup(server.stop)
        return server

    def check(self, folder, normalize, definition=None):
        server = self.serve(folder, **(definition or {}))
        about = self.ok(server.get("/v1/models/m"))
        self.assertEqual((about["kind"], about["family"], about["width"], about["vocabulary"], about["pool"],
                          about["normalize"], about["parameters"], about["attentions"]),
                         ("encoder", "static", 12, 8, "mean", normalize, 96, []))
        right = means(normalize)
        for body in ({"text": TEXTS}, {"tokens": TOKENS}, {"text": TEXTS, "special_tokens": False},
                     {"text": TEXTS, "truncate": True}):
            answer = self.ok(server.post("/v1/models/m/encode", body))
            numpy.testing.assert_allclose(answer["outputs"], right, rtol=1e-5, atol=1e-6)
            self.assertEqual(answer["usage"]["tokens"], 9)
        for tokens, vector in zip(TOKENS, answer["outputs"]):  # the same bits alone
            self.assertEqual(self.ok(server.post("/v1/models/m/encode", {"tokens": tokens}))["outputs"], vector)
        answer = self.ok(server.post("/v1/embeddings", {"model": "m", "input": TEXTS}))
        numpy.testing.assert_allclose([one["embedding"] for one in answer["data"]], right, rtol=1e-5, atol=1e-6)
        return server

    def test_a_module_of_sentence_transformers(self):
        self.check(self.folder("0_StaticEmbedding", modules=[module("0_StaticEmbedding")], config={}), False)
        self.check(self.folder(modules=[module("")]), False)

    def test_it_may_be_normalized(self):
        self.check(self.folder(modules=[module("."), NORMALIZE]), True)

    def test_a_folder_of_model2vec(self):
        tensors = {"embeddings": ("F32", TABLE)}
        config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True, "hidden_dim": 12}
        self.check(self.folder(tensors=tensors, config=config), True)
        self.check(self.folder(tensors=tensors, config=dict(config, normalize=None)), False)
        self.check(self.folder(tensors=tensors, config=config, modules=[module(".")]), False)
        self.check(self.folder(tensors=tensors, config=config), False, {"normalize": False})

    def test_in_eight_bits_it_is_the_same(self):
        self.check(self.folder(modules=[module("")]), False, {"compute": "int8"})

    def test_what_it_does_not_have(self):
        server = self.serve(self.folder(modules=[module("")]))
        rows = self.ok(server.post("/v1/models/m/encode", {"tokens": TOKENS, "pool": "none"}))
        self.assertEqual([[len(row) for row in item] for item in rows["outputs"]], [[12] * len(t) for t in TOKENS])
        for path, body in (("generate", {"tokens": [3]}),
                           ("classify", {"tokens": [3]})):
            self.problem(server.post(f"/v1/models/m/{path}", body), 404, "not-found")
        for field, text in (("return_attention", ": the model has none"),
                            ("return_hidden", ". Available: encoder.0 to encoder.0")):
            problem = self.problem(server.post("/v1/models/m/encode", {"tokens": [3], field: ["encoder.1"]}), 400,
                                   "invalid-request")
            self.assertTrue(problem["detail"].endswith(f'"encoder.1"{text}'), problem["detail"])
        problem = self.problem(server.post("/v1/models/m/layers/encoder.0.self/attention", {"queries": [[1]]}), 404,
                               "not-found")
        self.assertEqual(problem["detail"], "the model m has no attention")
        answer = self.ok(server.post("/v1/models/m/encode", {
            "tokens": [3, 4], "return_attention": True, "return_hidden": "all"}))
        self.assertNotIn("attention", answer)
        self.assertEqual(list(answer["hidden"]), ["encoder.0"])

    def refused(self, folder, message):
        path = os.path.join(folder, "attend.json")
        write_json(folder, "attend.json", {"models": {"m": {"transformer": folder}}})
        status, out, error = attend("check", "--config", path)
        self.assertEqual(status, 2, (out, error))
        self.assertIn(message, error)

    def test_what_is_refused(self):
        one = {"embeddings": ("F32", TABLE)}
        config = {"model_type": "model2vec"}
        self.refused(self.folder(tensors={"table": ("F32", TABLE)}, config=config),
                     'there is no tensor "embedding.weight"')
        self.refused(self.folder(tensors={"embeddings": ("F32", TABLE[0])}, config=config), "has 1 dimensions")
        for name in ("weights", "mapping"):
            self.refused(self.folder(tensors={**one, name: ("F32", TABLE[:, 0])}, config=config),
                         f'unexpected tensor "{name}" in a static model')
        self.refused(self.folder(tensors={"embeddings": ("F32", TABLE[:7])}, config=config), "has 8 tokens, but the model has 7")
        pooling = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
        self.refused(self.folder(modules=[module(""), pooling]), "LogitScore; Dense, MultiVectorMask, Normalize")
        self.refused(self.folder(modules=[NORMALIZE, module("")]), "LogitScore; Dense, MultiVectorMask, Normalize")

    def test_inspect_shows_it(self):
        status, out, error = attend("inspect", self.folder(modules=[module("")]))
        self.assertEqual(status, 0, error)
        self.assertIn("family static, kind encoder: layers 0, width 12, vocabulary 8", out.decode())
        self.assertIn("pool mean", out.decode())
