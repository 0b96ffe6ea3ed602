"""test_logit_score: causal rerankers: the logit of one token, less that of another, at the last row of a text. Beside the
log probabilities of /score and the rows of /encode, for folders of sentence-transformers and for definitions."""
import json
import os
import shutil
import tempfile

import numpy

import golden
from folders import read_tensors
from support import Case, Server, ServerCase, attend
from test_classify_tokens import WORDS

YES, NO = 9, 4
TRANSFORMER = {"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}
SCORE = {"path": "1_LogitScore", "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}
POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
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


class LogitScore(ServerCase):
    MODELS = {"tied": "qwen2-a", "own": "llama-a"}

    @classmethod
    def start(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
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

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder, ignore_errors=True)

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
                ("qwen2-a", USUAL, (SCORE, POOLING), "in this order, not sentence_transformers.models.Pooling here"),
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

    def test_definitions(self):
        usual = golden.definition("qwen2-a")
        for wrong in ([], [1, 2, 3], ["yes", "no"], [-1], [1.5], 7, {"true": 1}):
            self.refused(dict(usual, logit_score=wrong), "logit_score: needs a list of one or two token ids")
        for change, words in (({"logit_score": [88]}, "logit_score: token 88 is outside the vocabulary of 88"),
                              ({"logit_score": [5, 5]}, "logit_score: both tokens are 5"),
                              ({"task": "classify_tokens"}, "logit_score: the task must be classify"),
                              ({"classes": 2}, "classes: 2, but logit_score gives one"),
                              ({"labels": ["a", "b"]}, "labels: 2 names of 1 classes")):
            self.refused({**usual, "logit_score": [1, 2], **change}, words)
        self.refused({"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 1, "width": 8, "heads": 1,
                      "feed_forward": 8, "vocabulary": 9, "logit_score": [1]}, "logit_score: not available with random")

    def test_activations(self):
        definition = write_reranker(os.path.join(self.folder, "model"), "qwen2-a", USUAL, activation_fn="torch.nn.ReLU")
        self.refused(definition, "config_sentence_transformers.json: activation_fn: \"torch.nn.ReLU\" is not supported")
