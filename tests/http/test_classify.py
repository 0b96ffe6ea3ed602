"""test_classify: encoders with a classifier over HTTP: their scores beside what published code put out of their
encoders, in every form, and what is refused."""
import json
import os
import unittest

import numpy

import golden
from folders import read_tensors, write_folder as write_golden
from forms import bits, read_base64, read_safetensors
from support import FolderCase, Server, attend

SAFETENSORS = "application/x-safetensors"
CLASS = "ForSequenceClassification"
RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 32, "heads": 4,
          "feed_forward": 64, "vocabulary": 50}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "mat"]
FUNCTIONS = {"none": lambda s: s, "sigmoid": lambda s: 1 / (1 + numpy.exp(-s)),
             "softmax": lambda s: numpy.exp(s) / numpy.exp(s).sum()}


class Head:
    """The classifier of a family: its tensors, and what they make of an item's first row, in float64."""

    def __init__(self, seed, first, classes, act, size, count):
        rng = numpy.random.default_rng(seed)
        self.first, self.classes, self.act = first, classes, act
        self.tensors = {f"{classes}.weight": rng.normal(0, 1, (count, size)), f"{classes}.bias": rng.normal(0, 1, count)}
        if act:  # else the first layer is the pooler, which the model has
            self.tensors.update({f"{first}.weight": rng.normal(0, size ** -0.5, (size, size)),
                                 f"{first}.bias": rng.normal(0, 0.5, size)})
        self.tensors = {name: numpy.float32(x) for name, x in self.tensors.items()}

    def scores(self, row, model):
        """`model`: its own tensors by the ends of their names."""
        def dense(stem, x):
            tensors = {**model, **self.tensors}
            weight, bias = (next(numpy.float64(tensors[name]) for name in tensors if name.endswith(f"{stem}.{kind}"))
                            for kind in ("weight", "bias"))
            return weight @ x + bias
        return dense(self.classes, (self.act or numpy.tanh)(dense(self.first, numpy.float64(row))))


HEADS = {"bert-a": Head(1, "pooler.dense", "classifier", None, 32, 3),
         "bert-b": Head(2, "pooler.dense", "classifier", None, 24, 1),
         "roberta-b": Head(3, "classifier.dense", "classifier.out_proj", numpy.tanh, 24, 2),
         "distilbert-b": Head(4, "pre_classifier", "classifier", lambda x: numpy.maximum(x, 0), 24, 5)}


def write_folder(folder, name, head, config=None, words=None, **changes):
    """A golden model with a classifier; without the pooler, where the classifier has a first layer of its own."""
    return write_golden(folder, name, words, ["pooler"] if head.act else [],
                               {"architectures": [CLASS], **(config or {})}, **{**head.tensors, **changes})


class Classify(FolderCase):
    @classmethod
    def start(cls):
        models = {name: write_folder(os.path.join(cls.folder, name), name, head) for name, head in HEADS.items()}
        huge = {"classifier.weight": numpy.full((3, 32), 3e38, numpy.float32)}
        names = {"0": "no", "1": 'a "b"', "2": "ä"}
        models["huge"] = write_folder(os.path.join(cls.folder, "huge"), "bert-a", HEADS["bert-a"], **huge)
        models["words"] = write_folder(os.path.join(cls.folder, "words"), "bert-a", HEADS["bert-a"],
                                       {"id2label": names, "problem_type": "multi_label_classification"}, WORDS)
        models.update(whole={"transformer": os.path.join(golden.MODELS, "bert-a")}, bare=RANDOM,
                      drawn=dict(RANDOM, labels=["a", "b"], function="none", pool="mean"),
                      decoder=dict(RANDOM, kind="decoder"))
        cls.config = os.path.join(cls.folder, "attend.json")
        with open(cls.config, "w", encoding="utf-8") as file:
            json.dump({"models": models}, file)
        return Server({"models": models})

    def post(self, model, request, what="classify", **headers):
        return self.server.post(f"/v1/models/{model}/{what}", request,
                                {name.replace("_", "-"): value for name, value in headers.items()})

    def ask(self, model, what="classify", **request):
        return self.ok(self.post(model, request, what))

    def refused(self, model, pointer, words, **request):
        problem = self.problem(self.post(model, request), 400, "invalid-request", pointer)
        self.assertIn(words, problem["detail"])

    # --- numbers ---

    def test_v2(self):
        """The logits of classes are an output of their own; only one of both heads is computed."""
        inputs = [{"name": "input_ids", "datatype": "INT64", "shape": [1, 3], "data": [1, 2, 3]}]

        def infer(model, *names):
            return self.server.post(f"/v2/models/{model}/infer", {"inputs": inputs, "outputs": [{"name": name} for name in names]})
        right = self.ok(self.post("bert-a", {"tokens": [[1, 2, 3]], "function": "none"}))["outputs"]
        got = self.ok(infer("bert-a", "logits"))["outputs"]
        self.assertEqual([(one["name"], one["shape"], one["data"]) for one in got], [("logits", [1, 3], right[0])])
        answer = infer("bert-a", "pooler_output", "logits")
        self.assertEqual(answer.status, 400)
        self.assertIn("exclude each other: name one of both (at /outputs/1)", answer.json["error"])
        answer = infer("whole", "logits")
        self.assertEqual(answer.status, 400)
        self.assertIn("no language modeling head and no classes: it has no logits (at /outputs/0)", answer.json["error"])

    def test_scores_of_golden_models(self):
        for name, head in HEADS.items():
            model = read_tensors(os.path.join(golden.MODELS, name, "model.safetensors"))
            with open(os.path.join(golden.MODELS, name, "cases.json"), encoding="utf-8") as file:
                cases = json.load(file)
            for case in cases:
                request = {field: case[field] for field in ("tokens", "token_types") if field in case}
                right = [head.scores(rows[0], model) for rows in case["expected"]["last_hidden_state"]]
                for function, make in FUNCTIONS.items():
                    with self.subTest(model=name, case=case["name"], function=function):
                        answer = self.ask(name, function=function, **request)
                        self.assertEqual(len(answer["outputs"]), len(right))
                        for got, scores in zip(answer["outputs"], right):
                            numpy.testing.assert_allclose(got, make(scores), 1e-4, 1e-5)
                        self.assertEqual(answer["usage"]["tokens"], sum(len(item) for item in case["tokens"]))

    def test_functions_that_models_choose(self):
        for name, function in (("bert-a", "softmax"), ("bert-b", "sigmoid"), ("words", "sigmoid"), ("drawn", "none")):
            with self.subTest(model=name):
                self.assertEqual(self.ok(self.server.get(f"/v1/models/{name}"))["function"], function)
                self.assertEqual(self.ask(name, tokens=[[1, 2]])["outputs"],
                                 self.ask(name, tokens=[[1, 2]], function=function)["outputs"])
        self.assertEqual(self.ok(self.server.get("/v1/models/words"))["labels"], ["no", 'a "b"', "ä"])
        self.assertEqual(self.ask("words", tokens=[1])["labels"], ["no", 'a "b"', "ä"])
        self.assertEqual(self.ask("bert-b", tokens=[1])["labels"], ["LABEL_0"])
        self.assertNotIn("labels", self.ok(self.server.get("/v1/models/whole")))

    def test_bits_do_not_depend_on_what_is_computed_beside(self):
        texts = [[1, 2, 3, 4, 5], [6], [7, 8, 9], [1] * 12] * 9
        for name in ("bert-a", "roberta-b", "distilbert-b", "drawn"):
            with self.subTest(model=name):
                right = self.ask(name, tokens=texts)["outputs"]
                more = self.ask(name, tokens=texts, return_hidden="all", return_attention=True)
                self.assertEqual(more["outputs"], right)
                self.assertEqual(len(more["attention"]["encoder.0.self"]), len(texts))
                self.assertEqual([self.ask(name, tokens=text)["outputs"] for text in texts[:4]], right[:4])
                padded = [text + [3] * (12 - len(text)) for text in texts]
                self.assertEqual(self.ask(name, tokens=padded, valid_lens=[len(t) for t in texts])["outputs"], right)

    def test_encoding_stays_what_it_was(self):
        request = {"tokens": [[1, 2, 3], [4]], "return_hidden": True}
        for more in ({}, {"pool": "pooler"}, {"pool": "mean", "normalize": True}):
            right = self.post("whole", dict(request, **more), "encode").body
            self.assertEqual(self.post("bert-a", dict(request, **more), "encode").body,
                             right.replace(b'"whole"', b'"bert-a"'))
        self.assertEqual(len(self.ask("drawn", "encode", tokens=[[1], [2]])["outputs"][0]), 32)

    # --- requests and forms ---

    def test_every_form_has_the_same_bits(self):
        request = {"tokens": [[1, 2, 3], [4, 5, 6]], "return_hidden": True}
        right = self.ask("words", **request)
        self.assertEqual(list(right), ["model", "outputs", "labels", "hidden", "usage"])
        numbers = bits(right["outputs"])
        coded = self.ask("words", encoding_format="base64", **request)
        self.assertEqual(read_base64(coded["outputs"]), ([2, 3], numbers))
        self.assertEqual((coded["labels"], coded["valid_lens"]), (right["labels"], [3, 3]))
        answer = self.post("words", request, Accept=SAFETENSORS)
        self.assertEqual(answer.status, 200)
        tensors, about = read_safetensors(answer.body)
        self.assertEqual(tensors["outputs"], ("F32", [2, 3], numbers))
        self.assertEqual(json.loads(about["labels"]), right["labels"])
        self.assertEqual(json.loads(about["usage"]), right["usage"])

    def test_one_item_and_none(self):
        both = self.ask("words", tokens=[[1, 2], [3]])
        alone = self.ask("words", tokens=[1, 2])
        self.assertEqual(alone["outputs"], both["outputs"][0])
        self.assertEqual(alone["labels"], both["labels"])
        self.assertEqual(self.ask("words", tokens=[])["outputs"], [])
        rows = [[0.5] * 32, [0.25] * 32]
        self.assertEqual(len(self.ask("bert-a", embeddings=rows)["outputs"]), 3)

    def test_texts_and_pairs(self):
        answer = self.ask("words", text=["the cat", "mat"], return_tokens=True)
        self.assertEqual(answer["tokens"], [[2, 4, 5, 3], [2, 7, 3]])
        self.assertEqual(list(answer), ["model", "outputs", "labels", "tokens", "strings", "offsets", "byte_offsets",
                                        "usage"])
        self.assertEqual(answer["outputs"], self.ask("words", tokens=answer["tokens"])["outputs"])
        pair = self.ask("words", text=[["the cat", "mat"]])["outputs"]
        ids, types = [2, 4, 5, 3, 7, 3], [0, 0, 0, 0, 1, 1]
        self.assertEqual(pair, self.ask("words", tokens=[ids], token_types=[types])["outputs"])
        self.assertNotEqual(pair, self.ask("words", tokens=[ids])["outputs"])
        cut = self.ask("words", text="the cat sat", truncate=4, special_tokens=True)["outputs"]
        self.assertEqual(cut, self.ask("words", tokens=[2, 4, 5, 3])["outputs"])

    def test_masked_heads_and_traces(self):
        request = {"tokens": [[1, 2, 3]], "head_mask": {"encoder.*.self": [0, 0, 0, 0]}}
        self.assertNotEqual(self.ask("bert-a", **request)["outputs"], self.ask("bert-a", tokens=[[1, 2, 3]])["outputs"])
        traced = {"attention": "encoder.-1.self", "item": 0, "head": 1, "query": 0}
        answer = self.ask("bert-a", tokens=[[1, 2, 3]], trace=traced)
        self.assertEqual(answer["outputs"], self.ask("bert-a", tokens=[[1, 2, 3]])["outputs"])
        self.assertEqual(list(answer), ["model", "outputs", "labels", "trace", "usage"])

    # --- mistakes ---

    def test_wrong_requests(self):
        self.refused("words", "/function", 'must be "none", "softmax" or "sigmoid"', tokens=[1], function="tanh")
        self.refused("words", "/pool", "/encode", tokens=[1], pool="cls")
        self.refused("words", "/tokens/1", "an empty item has no class", tokens=[[1], []])
        problem = self.problem(self.post("bert-a", {"tokens": [1], "function": "none"}, "encode"), 400,
                               "invalid-request", "/function")
        self.assertIn("/v1/models/NAME/classify", problem["detail"])
        for model, what in (("bare", "(encoder without a classifier)"), ("decoder", "(decoder without a classifier)")):
            problem = self.problem(self.post(model, {"tokens": [1]}), 404, "not-found")
            self.assertIn(what, problem["detail"])
            self.assertNotIn("/classify", problem["detail"])
        problem = self.problem(self.post("words", {}, "scores"), 404, "not-found")
        self.assertIn("/v1/models/{model}/classify", problem["detail"])
        self.assertEqual(self.server.get("/v1/models/words/classify").status, 405)

    def test_scores_beyond_float32(self):
        for function in FUNCTIONS:
            problem = self.problem(self.post("huge", {"tokens": [[1], [2, 3]], "function": function}), 422, "not-finite")
            self.assertIn("the score of a class of item", problem["detail"])
        self.ask("huge", "encode", tokens=[[1], [2, 3]], pool="pooler")

    # --- commands ---

    def test_run_gives_the_same_bytes(self):
        body = json.dumps({"tokens": [[1, 2], [3]]}).encode()
        status, out, err = attend("run", "words", "--classify", "--config", self.config, data=body)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.rstrip(), self.post("words", body).body.rstrip())
        status, _, err = attend("run", "bare", "--classify", "--config", self.config, data=body)
        self.assertEqual(status, 2)
        self.assertIn("the model bare is of the kind encoder without a classifier: it cannot classify", err)

    def test_check_and_inspect_tell_the_classes(self):
        status, _, err = attend("check", "--config", self.config)
        self.assertEqual(status, 0, err)
        self.assertIn("classes=5", err)
        status, out, _ = attend("inspect", os.path.join(self.folder, "words"))
        self.assertEqual(status, 0)
        self.assertIn('  a classifier of 3 classes, function sigmoid: no, a "b", ä\n', out.decode())
        _, out, _ = attend("inspect", os.path.join(self.folder, "bert-b"))
        self.assertIn("  a classifier of 1 class, function sigmoid: LABEL_0\n", out.decode())


if __name__ == "__main__":
    unittest.main()
