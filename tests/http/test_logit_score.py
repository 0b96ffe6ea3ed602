"""test_logit_score: rerankers of several modules. The logit of one token, less that of another, at the last row of a
text: beside the log probabilities of /score and the rows of /encode, for folders of sentence-transformers and for
definitions. And a Pooling with a Dense of scores: beside golden hidden states."""
import json
import os
import shutil
import tempfile

import numpy

import golden
from folders import read_tensors
from support import Case, FolderCase, Server, attend, safetensors_bytes
from test_classify_tokens import WORDS

YES, NO = 9, 4
TRANSFORMER = {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
SCORE = {"path": "1_LogitScore", "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}
POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
DENSE = {"path": "2_Dense", "type": "sentence_transformers.base.modules.dense.Dense"}
NORMALIZE = {"path": "3_Normalize", "type": "sentence_transformers.sentence_transformer.modules.normalize.Normalize"}
LEVELS = "portable", "avx2", None  # None: the best
USUAL = {"true_token_id": YES, "false_token_id": NO, "module_input_name": "causal_logits"}
QUERY, DOCUMENTS = "new york", ["walking a new york", "b", "as, as", "c b a", ""]


def write(folder, name, value):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        if isinstance(value, str):
            file.write(value)
        else:
            json.dump(value, file)


def write_reranker(folder, name, score, modules=(TRANSFORMER, SCORE), **sentences):
    """A golden decoder as CrossEncoder.save_pretrained writes it, with the tokenizer of another model."""
    shutil.copytree(os.path.join(golden.MODELS, name), folder)
    write(folder, "modules.json", list(modules))
    write(folder, "1_LogitScore/config.json", score)
    write(folder, "vocab.txt", "\n".join(WORDS) + "\n")
    if sentences:
        write(folder, "config_sentence_transformers.json", {"model_type": "CrossEncoder", **sentences})
    return {"transformer": folder}


def write_scorer(folder, name, mode, count=1, modules=(TRANSFORMER, POOLING, DENSE), pooling=(), words=True, **dense):
    """A golden model as a CrossEncoder of Transformer, Pooling and Dense is saved. Returns the Dense's tensors, too."""
    shutil.copytree(os.path.join(golden.MODELS, name), folder)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        width = json.load(file)["hidden_size"]
    rng = numpy.random.default_rng(count)
    layer = {"linear.weight": numpy.float32(rng.normal(0, 0.5, (count, width))),
             "linear.bias": numpy.float32(rng.normal(0, 0.5, count))}
    if not dense.get("bias", True):
        del layer["linear.bias"]
    write(folder, "modules.json", list(modules))
    write(folder, "1_Pooling/config.json", {"embedding_dimension": width, "pooling_mode": mode, "include_prompt": True,
                                            **dict(pooling)})
    write(folder, "2_Dense/config.json", {
        "in_features": width, "out_features": count, "bias": True, "activation_function": "torch.nn.modules.linear.Identity",
        "module_input_name": "sentence_embedding", "module_output_name": "scores", **dense})
    with open(os.path.join(folder, "2_Dense", "model.safetensors"), "wb") as file:
        file.write(safetensors_bytes({name: (list(x.shape), x.ravel().tolist()) for name, x in layer.items()}))
    if words:
        write(folder, "vocab.txt", "\n".join(WORDS) + "\n")
    return {"transformer": folder}, layer


def pooled(rows, mode):
    x = numpy.float64(rows)
    weights = numpy.arange(1, len(x) + 1)[:, None]
    return {"cls": lambda: x[0], "lasttoken": lambda: x[-1], "mean": lambda: x.mean(0), "max": lambda: x.max(0),
            "mean_sqrt_len_tokens": lambda: x.sum(0) / len(x) ** 0.5,
            "weightedmean": lambda: (x * weights).sum(0) / weights.sum()}[mode]()


def qwen_tokenizer():
    """A small tokenizer.json in the form of Qwen's: byte-level BPE, a frame of special tokens, and no post-processor that
    adds tokens."""
    special = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)] + list("IQD<>:?.ĠĊ")
    vocab = {piece: i for i, piece in enumerate(letters + ["ĊĊ", "Ċ<", "?Ċ"])}
    pattern = {"Regex": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                        r"|\s+(?!\S)|\s+"}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {"version": "1.0", "normalizer": {"type": "NFC"}, "post_processor": bytes_, "decoder": bytes_,
            "added_tokens": [{"id": len(vocab) + i, "content": one, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": one[1] == "|"} for i, one in enumerate(special)],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}, bytes_]},
            "model": {"type": "BPE", "vocab": vocab, "merges": ["Ċ Ċ", "Ċ <", "? Ċ"]}}


class LogitScore(FolderCase):
    MODELS = {"tied": "qwen2-a", "own": "llama-a"}

    @classmethod
    def start(cls):
        path = lambda name: os.path.join(cls.folder, name)
        models = {name: write_reranker(path(name), source, USUAL) for name, source in cls.MODELS.items()}
        models["alone"] = write_reranker(path("alone"), "llama-a", {"true_token_id": YES, "false_token_id": None})
        models["raw"] = write_reranker(path("raw"), "qwen2-a", USUAL, activation_fn="torch.nn.modules.linear.Identity")
        models["prompted"] = write_reranker(path("prompted"), "qwen2-a", USUAL, prompts={"query": "walk, "},
                                            default_prompt_name="query")
        models["turned"] = dict(models["tied"], logit_score=[NO, YES], labels=["fits"], function="none")
        models["chat"] = write_reranker(path("chat"), "qwen2-a", USUAL)
        os.unlink(os.path.join(path("chat"), "vocab.txt"))
        write(path("chat"), "tokenizer.json", qwen_tokenizer())
        with open(os.path.join(path("chat"), "config.json"), encoding="utf-8") as file:
            write(path("chat"), "config.json", dict(json.load(file), max_position_embeddings=256))
        models["defined"] = dict(golden.definition("qwen2-a"), tokenizer=path("tied"), logit_score=[YES, NO])
        return Server({"models": models, "text_embeddings_inference": True})

    def ask(self, model, path, **request):
        return self.ok(self.server.post(f"/v1/models/{model}/{path}", request))

    def scores(self, model, **request):
        return [one[0] for one in self.ask(model, "classify", **request)["outputs"]]

    def test_the_difference_of_two_logits(self):
        items = [[5, 7, 3], [8], [10, 11, 12, 13, 14, 15, 16, 17], [3, 3]]
        for model in ("tied", "own", "defined"):
            with self.subTest(model=model):
                got = self.scores(model, tokens=items, function="none")
                said = [numpy.float64(self.ask(model, "score", tokens=items, targets=[[token]] * len(items))
                                      ["log_probabilities"])[:, 0] for token in (YES, NO)]
                numpy.testing.assert_allclose(got, said[0] - said[1], 1e-4, 1e-4)
                self.assertEqual(got, [self.scores(model, tokens=[item], function="none")[0] for item in items])
                likely = self.scores(model, tokens=items)
                numpy.testing.assert_allclose(likely, 1 / (1 + numpy.exp(-numpy.float64(got))), 1e-6)
        self.assertEqual(self.scores("tied", tokens=items), self.scores("defined", tokens=items))
        self.assertEqual(self.scores("turned", tokens=items), [-one for one in self.scores("raw", tokens=items)])

    def test_the_logit_of_one_token(self):
        items = [[5, 7, 3], [8], [3, 3]]
        rows = self.ask("alone", "encode", tokens=items)["outputs"]
        head = read_tensors(os.path.join(golden.MODELS, "llama-a", "model.safetensors"))["lm_head.weight"]
        got = self.scores("alone", tokens=items, function="none")
        numpy.testing.assert_allclose(got, [head[YES] @ numpy.float32(item[-1]) for item in rows], 1e-4, 1e-4)

    def test_documents_in_order(self):
        for model in ("tied", "own", "raw", "turned"):
            with self.subTest(model=model):
                scores = self.scores(model, text=[[QUERY, one] for one in DOCUMENTS])
                order = sorted(range(len(DOCUMENTS)), key=lambda i: -scores[i])
                wanted = [(i, scores[i]) for i in order]
                answer = self.ok(self.server.post("/v1/rerank", {"model": model, "query": QUERY, "documents": DOCUMENTS}))
                self.assertEqual([(one["index"], one["relevance_score"]) for one in answer["results"]], wanted)
                answer = self.ok(self.server.post("/rerank", {"model": model, "query": QUERY, "texts": DOCUMENTS}))
                self.assertEqual([(one["index"], one["score"]) for one in answer], wanted)

    def test_the_prompt_precedes_the_query(self):
        wanted = self.scores("tied", text=[["walk, " + QUERY, one] for one in DOCUMENTS])
        self.assertEqual(self.scores("prompted", text=[[QUERY, one] for one in DOCUMENTS]), wanted)
        answer = self.ok(self.server.post("/v1/rerank", {"model": "prompted", "query": QUERY, "documents": DOCUMENTS}))
        self.assertEqual([one["relevance_score"] for one in answer["results"]], sorted(wanted, reverse=True))

    def test_a_frame_around_the_texts(self):
        """The documented way to send a chat template: the tokens of the pair are those of the whole text."""
        before = "<|im_start|>system\nis it so?<|im_end|>\n<|im_start|>user\n<Instruct>: rank\n<Query>: how warm?\n"
        documents = [f"<Document>: {one}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
                     for one in ("sea is warm.", "a cat")]
        tokens = lambda text: self.ask("chat", "tokenize", text=text)["tokens"]
        for one in documents:
            self.assertEqual(tokens(before) + tokens(one), tokens(before + one))
        wanted = self.scores("chat", text=[before + one for one in documents])
        self.assertEqual(self.scores("chat", text=[[before, one] for one in documents]), wanted)

    def test_its_description(self):
        for model, label, function in (("tied", "LABEL_0", "sigmoid"), ("raw", "LABEL_0", "none"), ("turned", "fits", "none")):
            about = self.ok(self.server.get(f"/v1/models/{model}"))
            self.assertEqual((about["labels"], about["function"]), ([label], function))
            self.assertEqual(about["parameters"], sum(one["parameters"] for one in about["pieces"]))
            self.assertIn({"name": "decoder.classifier", "parameters": 0, "tied": True},
                          [{key: one.get(key) for key in ("name", "parameters", "tied")} for one in about["pieces"]])
        said = [self.ask(model, "generate", tokens=[[5, 7]], max_tokens=5) for model in ("tied", "raw")]
        self.assertEqual(said[0]["sequences"], said[1]["sequences"])


class Scores(Case):
    """A Dense of scores after the Pooling."""
    FORMS = [("bert-a", mode, {}) for mode in ("cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean")] + [
        ("bert-a", "cls", {"count": 3}), ("qwen2-a", "lasttoken", {"bias": False}), ("qwen2-a", "mean", {"count": 2})]

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def ask(self, server, model, path, **request):
        return self.ok(server.post(f"/v1/models/{model}/{path}", request))

    def test_scores_of_golden_models(self):
        models, layers = {}, {}
        cases = {name: case for name, case in golden.cases("encode") if name in ("bert-a", "qwen2-a")}
        for i, (name, mode, dense) in enumerate(self.FORMS):
            models[f"m{i}"], layers[i] = write_scorer(os.path.join(self.folder, f"m{i}"), name, mode, words=False, **dense)
            models[f"int8-{i}"] = dict(models[f"m{i}"], compute="int8-block")
        for level in LEVELS:
            server = Server({"models": models}, env={"ATTEND_CPU": level} if level else None)
            self.addCleanup(server.kill)
            for i, (name, mode, dense) in enumerate(self.FORMS):
                with self.subTest(level=level, model=name, mode=mode, dense=dense):
                    case, layer = cases[name], layers[i]
                    request = {field: case[field] for field in ("tokens", "token_types") if field in case}
                    got = self.ask(server, f"m{i}", "classify", function="none", **request)
                    right = [layer["linear.weight"] @ pooled(rows, mode) + layer.get("linear.bias", 0)
                             for rows in case["expected"]["last_hidden_state"]]
                    numpy.testing.assert_allclose(got["outputs"], right, 1e-4, 1e-4)
                    self.assertEqual(got["labels"], [f"LABEL_{label}" for label in range(len(right[0]))])
                    for at, item in enumerate(got["outputs"]):  # alone and in company
                        one = {field: value[at] for field, value in request.items()}
                        self.assertEqual(self.ask(server, f"m{i}", "classify", function="none", **one)["outputs"], item)
                    near = self.ask(server, f"int8-{i}", "classify", function="none", **request)["outputs"]
                    numpy.testing.assert_allclose(near, right, 0.1, 0.3)
            server.stop()

    def test_documents_in_order(self):
        path = os.path.join(self.folder, "m")
        models = {"m": write_scorer(path, "qwen2-a", "lasttoken", bias=False)[0],
                  "many": write_scorer(os.path.join(self.folder, "many"), "bert-a", "cls", 2, words=False)[0]}
        models.update(named=dict(models["m"], labels=["fits"], function="none", task="classify"),
                      logits=dict(models["m"], logit_score=[YES, NO]))
        server = Server({"models": models})
        self.addCleanup(server.stop)
        scores = [one[0] for one in self.ask(server, "m", "classify", text=[[QUERY, one] for one in DOCUMENTS])["outputs"]]
        order = sorted(range(len(DOCUMENTS)), key=lambda i: -scores[i])
        answer = self.ok(server.post("/v1/rerank", {"model": "m", "query": QUERY, "documents": DOCUMENTS}))
        self.assertEqual([(one["index"], one["relevance_score"]) for one in answer["results"]],
                         [(i, scores[i]) for i in order])
        about = {name: self.ok(server.get(f"/v1/models/{name}")) for name in models}
        self.assertEqual([(about[name]["labels"], about[name]["function"], about[name]["pool"]) for name in
                          ("m", "named", "many")], [(["LABEL_0"], "sigmoid", "none"), (["fits"], "none", "none"),
                                                    (["LABEL_0", "LABEL_1"], "none", "none")])
        self.assertEqual(about["m"]["parameters"], sum(one["parameters"] for one in about["m"]["pieces"]))
        self.assertEqual(about["m"]["tasks"].count("generate"), 0)  # its language modeling head is not used
        self.assertEqual(about["logits"]["tasks"].count("generate"), 1)
        rows = self.ask(server, "m", "encode", tokens=[3, 4])["outputs"]
        self.assertEqual(len(rows), 2)
        stored = sum(os.path.getsize(os.path.join(path, name, "model.safetensors")) for name in (".", "2_Dense"))
        self.assertGreater(stored, 4 * about["m"]["parameters"])


class Wrong(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def refused(self, definition, *words):
        write(self.folder, "attend.json", {"models": {"m": definition}})
        status, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
        self.assertEqual(status, 2, err)
        for word in words:
            self.assertIn(word, err)

    def test_folders(self):
        place = "module 1_LogitScore: "
        for name, score, modules, words in (
                ("qwen2-a", {}, (SCORE,), place + "true_token_id: needs a token id"),
                ("qwen2-a", dict(USUAL, true_token_id=-1), (SCORE,), place + "true_token_id: needs a token id"),
                ("qwen2-a", dict(USUAL, false_token_id="no"), (SCORE,), place + "false_token_id: needs a token id"),
                ("qwen2-a", dict(USUAL, false_token=3), (SCORE,), place + "unknown"),
                ("qwen2-a", dict(USUAL, module_input_name="logits"), (SCORE,),
                 "module_input_name: \"logits\" is not supported; supported: causal_logits"),
                ("qwen2-a", dict(USUAL, true_token_id=88), (SCORE,),
                 "modules.json: LogitScore: token 88 is outside the vocabulary of 88"),
                ("qwen2-a", dict(USUAL, true_token_id=NO), (SCORE,), "LogitScore: both tokens are 4"),
                ("qwen2-a", USUAL, (POOLING, SCORE), "modules.json: LogitScore is only supported directly after a Transformer"),
                ("qwen2-a", USUAL, (SCORE, POOLING), "modules.json: sentence_transformers.models.Pooling is not supported here; supported after"),
                ("bert-a", USUAL, (SCORE,), "LogitScore: needs a decoder with a language modeling head"),
                ("qwen2-bidirectional", USUAL, (SCORE,), "needs a decoder with a language modeling head"),
                ("t5-a", USUAL, (SCORE,), "needs a decoder with a language modeling head")):
            with self.subTest(name=name, score=score, modules=len(modules)):
                folder = os.path.join(self.folder, "model")
                shutil.rmtree(folder, ignore_errors=True)
                definition = write_reranker(folder, name, score, (TRANSFORMER,) + modules)
                write(folder, "1_Pooling/config.json", {"pooling_mode": "lasttoken"})
                os.unlink(os.path.join(folder, "vocab.txt"))
                self.refused(definition, words)

    def test_scores(self):
        place = "module 2_Dense: "
        usual = (TRANSFORMER, POOLING, DENSE)
        for name, more, words in (
                ("bert-a", {"activation_function": "torch.nn.modules.activation.Tanh"},
                 place + "activation_function: of scores must be Identity"),
                ("bert-a", {"use_residual": True}, place + "use_residual: not supported for scores"),
                ("bert-a", {"pooling": {"include_prompt": False}}, place + "include_prompt: false is not supported"),
                ("bert-a", {"module_output_name": "logits"},
                 'module_output_name: "logits" is not supported; supported: sentence_embedding'),
                ("bert-a", {"module_input_name": "token_embeddings"}, 'module_input_name: "token_embeddings" is not supported'),
                ("bert-a", {"in_features": 31}, "in_features: 31 for the dense layer of the scores, but the width is 32"),
                ("bert-a", {"out_features": 2}, 'tensor "linear.weight" has 1 times 32 numbers here, not 2 times 32'),
                ("bert-a", {"modules": usual + (NORMALIZE,)}, "modules.json: sentence_transformers.sentence_"),
                ("bert-a", {"modules": usual + (dict(DENSE),)}, "sentence_transformers.base.modules.dense.Dense is not supported here"),
                ("bert-a", {"modules": (TRANSFORMER, DENSE), "module_input_name": "token_embeddings"},
                 place + "module_output_name: scores are only supported directly after Transformer and Pooling"),
                ("bert-a", {"modules": (TRANSFORMER, POOLING, {"path": "3_Dense", "type": DENSE["type"]}, DENSE)},
                 place + "module_output_name: scores are only supported directly after Transformer and Pooling"),
                ("bert-a", {"modules": ({"path": "", "type": "sentence_transformers.models.StaticEmbedding"}, DENSE)},
                 place + "module_output_name: scores are only supported directly after Transformer and Pooling"),
                ("t5-a", {}, "modules.json: a Dense of scores needs an encoder or a decoder alone")):
            with self.subTest(name=name, more=more):
                folder = os.path.join(self.folder, "model")
                shutil.rmtree(folder, ignore_errors=True)
                model = write_scorer(folder, "bert-a", "mean", words=False, **more)[0]
                for one in "config.json", "model.safetensors":
                    shutil.copy(os.path.join(golden.MODELS, name, one), folder)
                os.makedirs(os.path.join(folder, "3_Dense"), exist_ok=True)
                write(folder, "3_Dense/config.json", {"in_features": 32, "out_features": 32, "activation_function":
                                                      "torch.nn.modules.activation.Tanh"})
                shutil.copy(os.path.join(folder, "2_Dense", "model.safetensors"), os.path.join(folder, "3_Dense"))
                self.refused(model, words)
        folder = os.path.join(self.folder, "task")
        model = write_scorer(folder, "bert-a", "mean", words=False)[0]
        self.refused(dict(model, task="classify_tokens"), "modules.json: Dense: the task must be classify")
        self.refused(dict(model, classes=2), "classes: 2, but modules.json: Dense gives 1")
        self.refused(dict(model, labels=["a", "b"]), "labels: 2 names of 1 classes")

    def test_definitions(self):
        usual = golden.definition("qwen2-a")
        for wrong in ([], [1, 2, 3], ["yes", "no"], [-1], [1.5], 7, {"true": 1}):
            self.refused(dict(usual, logit_score=wrong), "logit_score: needs a list of one or two token ids")
        for change, words in (({"logit_score": [88]}, "logit_score: token 88 is outside the vocabulary of 88"),
                              ({"logit_score": [5, 5]}, "logit_score: both tokens are 5"),
                              ({"task": "classify_tokens"}, "logit_score: the task must be classify"),
                              ({"classes": 2}, "classes: 2, but logit_score gives 1"),
                              ({"labels": ["a", "b"]}, "labels: 2 names of 1 classes")):
            self.refused({**usual, "logit_score": [1, 2], **change}, words)
        self.refused({"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 1, "width": 8, "heads": 1,
                      "feed_forward": 8, "vocabulary": 9, "logit_score": [1]}, "logit_score: not available with random")

    def test_activations(self):
        definition = write_reranker(os.path.join(self.folder, "model"), "qwen2-a", USUAL, activation_fn="torch.nn.ReLU")
        self.refused(definition, "config_sentence_transformers.json: activation_fn: \"torch.nn.ReLU\" is not supported")
