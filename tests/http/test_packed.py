"""test_packed: encoders with packed matrices, beside their formulas in float64: GTE v1.5 and multilingual, with their
heads and their scaling of rotary positions; the heads of NomicBERT; and rotary positions of another encoder whose base
follows the length of an item."""
import os
import unittest

import numpy

import golden
from folders import read_tensors, write_folder
from gte import D, NTK, SNOWFLAKE, Gte, linear, norm
from pairs import activate
from support import FolderCase, Server
from test_fill import LEVELS, softmax

NOMIC = "nomic-a", "nomic-ntk", "nomic-gelu"
TEXTS = [[1, 2, 3], list(range(4, 41)), [7], [49, 0, 49, 5, 8, 13, 21]]


class Packed(FolderCase):
    @classmethod
    def start(cls):
        def made(name, *args, **config):
            return Gte(os.path.join(cls.folder, name), *args, **config)
        cls.gte = {"base": made("base", rope_scaling=NTK), "plain": made("plain", type_vocab_size=2),
                   "snowflake": made("snowflake", **SNOWFLAKE),
                   "rerank": made("rerank", "new.", ("pooler", "classifier"), type_vocab_size=1, rope_scaling=NTK,
                                  architectures=["NewForSequenceClassification"]),
                   "weights": made("weights", "new.", ("classifier",), type_vocab_size=1,
                                   architectures=["NewModel", "NewForTokenClassification"], id2label={"0": "LABEL_0"}),
                   "masked": made("masked", "new.", ("lm_head",), architectures=["NewForMaskedLM"])}
        rng = numpy.random.default_rng(6)
        cls.head = {name: numpy.float32(rng.normal(0, 0.4, shape)) for name, shape in {
            "bert.pooler.dense.weight": (D, D), "bert.pooler.dense.bias": (D,),
            "classifier.weight": (3, D), "classifier.bias": (3,)}.items()}
        transform = "cls.predictions.transform."
        cls.fill = {name: numpy.float32(rng.normal(name.endswith("norm.weight"), 0.4, shape)) for name, shape in {
            transform + "dense.weight": (D, D), transform + "layer_norm.weight": (D,),
            transform + "layer_norm.bias": (D,)}.items()}
        cls.models = {name: one.definition for name, one in cls.gte.items()}
        cls.models["classes"] = write_folder(
            os.path.join(cls.folder, "classes"), "nomic-a", under="bert.", **cls.head,
            config={"architectures": ["NomicBertForSequenceClassification"]})
        cls.models["fill"] = write_folder(
            os.path.join(cls.folder, "fill"), "nomic-a", under="bert.", **cls.fill,
            config={"architectures": ["NomicBertForMaskedLM"]})
        cls.models["dynamic"] = write_folder(
            os.path.join(cls.folder, "dynamic"), "nomic-ntk",
            config={"rotary_scaling_factor": None, "max_position_embeddings": 8,
                    "rope_parameters": {"factor": 2.0, "rope_theta": 1000, "rope_type": "dynamic"}})
        cls.models["longer"] = write_folder(
            os.path.join(cls.folder, "longer"), "jina-v3-a",
            config={"max_position_embeddings": 16, "rope_parameters": {"factor": 3, "rope_theta": 20000, "rope_type": "dynamic"}})
        for compute in ("int8", "int8-block"):
            cls.models[compute] = dict(cls.models["base"], compute=compute)
            cls.models.update({f"{name}-{compute}": dict(golden.definition(name), compute=compute) for name in NOMIC})
        cls.models.update({name: golden.definition(name) for name in NOMIC})
        return Server({"models": cls.models})

    def ask(self, server, model, path, **request):
        return self.ok((server or self.server).post(f"/v1/models/{model}/{path}", request))["outputs"]

    def test_gte_at_every_level(self):
        for level in LEVELS:
            server = self.server if level is None else Server({"models": self.models}, env={"ATTEND_CPU": level})
            if server is not self.server:
                self.addCleanup(server.kill)
            for name, one in self.gte.items():
                with self.subTest(level=level, model=name):
                    got = self.ask(server, name, "encode", tokens=TEXTS)
                    for tokens, rows in zip(TEXTS, got):
                        numpy.testing.assert_allclose(rows, one.hidden(tokens), 1e-4, 1e-4)
                    self.assertEqual([self.ask(server, name, "encode", tokens=item) for item in TEXTS], got)

    def test_nomic_at_every_level(self):
        """The numbers are those of the published code; company changes no bit, above and below the trained length."""
        for level in LEVELS:
            server = self.server if level is None else Server({"models": self.models}, env={"ATTEND_CPU": level})
            if server is not self.server:
                self.addCleanup(server.kill)
            for name in NOMIC:
                cases = [case for model, case in golden.cases("encode") if model == name]
                tokens = [item for case in cases for item in case["tokens"]]
                right = [rows for case in cases for rows in case["expected"]["last_hidden_state"]]
                for compute in ("", "-int8", "-int8-block"):
                    with self.subTest(level=level, model=name + compute):
                        got = self.ask(server, name + compute, "encode", tokens=tokens)
                        self.assertEqual([self.ask(server, name + compute, "encode", tokens=item) for item in tokens], got)
                        for mine, rows in zip(got, right):
                            self.assertLess(numpy.abs(numpy.subtract(mine, rows)).mean(), 0.06)
                            if not compute:
                                numpy.testing.assert_allclose(mine, rows, 1e-4, 1e-4)

    def test_a_base_as_transformers_writes_it(self):
        for case in (case for model, case in golden.cases("encode") if model == "nomic-ntk"):
            right = self.ask(None, "nomic-ntk", "encode", tokens=case["tokens"])
            self.assertEqual(self.ask(None, "dynamic", "encode", tokens=case["tokens"]), right)

    def test_positions_beyond_those_that_a_model_was_trained_for(self):
        problem = self.problem(self.server.post("/v1/models/longer/encode", {"tokens": [list(range(49))]}), 400,
                               "invalid-request")
        self.assertIn("exceed the model's context length of 48", problem["detail"])

    def test_bytes(self):
        for compute in ("int8", "int8-block"):
            got = self.ask(None, compute, "encode", tokens=TEXTS)
            for tokens, rows in zip(TEXTS, got):
                self.assertLess(numpy.abs(numpy.subtract(rows, self.gte["base"].hidden(tokens))).mean(), 0.06)
            self.assertEqual([self.ask(None, compute, "encode", tokens=item) for item in TEXTS], got)

    def test_heads_of_gte(self):
        for got, tokens in zip(self.ask(None, "rerank", "classify", tokens=TEXTS, function="none"), TEXTS):
            numpy.testing.assert_allclose(got, self.gte["rerank"].score(tokens), 1e-4, 1e-4)
        for got, tokens in zip(self.ask(None, "weights", "classify_tokens", tokens=TEXTS, function="none"), TEXTS):
            one = self.gte["weights"]
            numpy.testing.assert_allclose(got, linear(one.hidden(tokens), one.tensors, "classifier"), 1e-4, 1e-4)
        self.compare_fill("masked", TEXTS[1], self.gte["masked"].logits(TEXTS[1]))

    def compare_fill(self, model, tokens, right):
        """The most likely tokens of the third position."""
        answer = self.ok(self.server.post(f"/v1/models/{model}/fill", {"tokens": [tokens], "positions": [[2]], "return_top": 5}))
        chances = softmax(right[2])
        found = answer["masks"][0][0]["top"]
        self.assertEqual([one["token"] for one in found], numpy.argsort(-chances)[:5].tolist())
        numpy.testing.assert_allclose([one["probability"] for one in found], numpy.sort(chances)[::-1][:5], 1e-4, 1e-4)

    def test_heads_of_nomic(self):
        case = next(case for name, case in golden.cases("encode") if name == "nomic-a")
        rows = [numpy.float64(item) for item in case["expected"]["last_hidden_state"]]
        request = {key: case[key] for key in ("tokens", "token_types") if key in case}
        got = self.ask(None, "classes", "classify", function="none", **request)
        for scores, item in zip(got, rows):
            pooled = numpy.tanh(linear(item[0], self.head, "bert.pooler.dense"))
            numpy.testing.assert_allclose(scores, linear(pooled, self.head, "classifier"), 1e-4, 1e-4)
        if "token_types" in request:
            return
        table = read_tensors(os.path.join(golden.MODELS, "nomic-a", "model.safetensors"))["embeddings.word_embeddings.weight"]
        for tokens, item in zip(case["tokens"], rows):
            if len(tokens) > 2:
                x = activate("silu", linear(item, self.fill, "cls.predictions.transform.dense"))
                self.compare_fill("fill", tokens, norm(x, self.fill, "cls.predictions.transform.layer_norm") @ table.T)


if __name__ == "__main__":
    unittest.main()
