"""test_question: answers to questions over HTTP, beside a plain form of Hugging Face's question answering pipeline over the
windows of its tokenizers; and what is refused."""
import json
import os
import random
import unittest

import numpy

import golden
from folders import write_folder
from support import FolderCase, Server, attend

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "##s", "##ing", "##a", "##b", "a", "b", "c", "walk", "new", "york", ",", ".",
         "e", "é", "##é", "##ork", "##", "ß", "\U0001f600"]
PARTS = ["walk", "walking", " ", " ", "new", "york", "as", "abs", "b", "bing", ", ", ".", "é", "ß", "zzz", "\U0001f600", "c"]
LENGTH = 32


def softmax(x):
    x = numpy.exp(numpy.float64(x) - max(x))
    return x / x.sum()


def pipeline(windows, top, most):
    """`windows`: (start logits, end logits, places of the context's tokens, number of the first one) of a question; the
    logits begin with those of the first token, of no answer. The answers, best first: (score, start, end)."""
    found, none = {}, 1
    for start, end, places, first in windows:
        start, end = softmax(start), softmax(end)
        none = min(none, start[0] * end[0])
        spans = numpy.tril(numpy.triu(numpy.outer(start[1:], end[1:])), most - 1)
        for i, j in zip(*numpy.nonzero(spans)):
            key = (first + i, first + j)
            found[key] = max(found.get(key, (0,)), (spans[i, j], places[i][0], places[j][1]))
    best = sorted(found.values(), key=lambda one: -one[0])[:top]
    return best if best and best[0][0] >= none else [(0, 0, 0)]


def cut(count, room, stride):
    """The first and the last tokens of the windows."""
    begin, windows = 0, []
    while not windows or windows[-1][1] < count:
        windows.append((begin, min(begin + room, count)))
        begin += room - stride
    return windows


def write_reader(folder, name, none):
    """A golden model with sharp logits, and a tokenizer. `none`: what is added to the logits of no answer."""
    sharp = numpy.float32(numpy.random.default_rng(3).normal(0, 1, (2, 24)) * none)
    return write_folder(folder, name, WORDS, **{"qa_outputs.weight": sharp})


class Question(FolderCase):
    @classmethod
    def start(cls):
        cls.models = {f"{name}-{scale}": write_reader(os.path.join(cls.folder, f"{name}-{scale}"), f"{name}-qa", scale)
                      for name in ("bert", "distilbert") for scale in (1, -1)}
        cls.readers = list(cls.models)
        cls.models["bare"] = golden.definition("bert-qa")
        strict = os.path.join(cls.folder, "strict")  # no word stands for unknown ones
        os.makedirs(strict)
        with open(os.path.join(strict, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump({"model": {"type": "WordLevel", "vocab": {"a": 1, "b": 2}},
                       "pre_tokenizer": {"type": "Whitespace"}}, file)
        cls.models["strict"] = dict(golden.definition("bert-qa"), tokenizer=strict)
        cls.config = os.path.join(cls.folder, "attend.json")
        with open(cls.config, "w", encoding="utf-8") as file:
            json.dump({"models": cls.models}, file)
        return Server({"models": cls.models, "max_items": 64})

    def post(self, request, model="bert-1", **headers):
        return self.server.post(f"/v1/models/{model}/question", request, headers)

    def ask(self, model="bert-1", **request):
        return self.ok(self.post(request, model))

    def refused(self, pointer, words, model="bert-1", **request):
        problem = self.problem(self.post(request, model), 400, "invalid-request", pointer)
        self.assertIn(words, problem["detail"])

    def oracle(self, model, question, context, top, most, stride):
        """The answers of the pipeline, from the logits of the same path for each window's tokens."""
        tokenize = f"/v1/models/{model}/tokenize"
        q = self.ok(self.server.post(tokenize, {"text": question, "special_tokens": False}))["tokens"]
        told = self.ok(self.server.post(tokenize, {"text": context, "special_tokens": False}))
        c, places = told["tokens"], told["offsets"]
        before, after = [WORDS.index("[CLS]"), *q, WORDS.index("[SEP]")], [WORDS.index("[SEP]")]
        room = LENGTH - len(before) - len(after)
        stride = min(128, room // 2) if stride is None else stride
        windows = []
        for begin, end in cut(len(c), room, stride):
            tokens = before + c[begin:end] + after
            types = {"token_types": [0] * len(before) + [1] * (end - begin + 1)} if model.startswith("bert") else {}
            logits = self.ask(model, tokens=tokens, **types)
            kept = [0, *range(len(before), len(before) + end - begin)]
            windows.append(([logits["start"][i] for i in kept], [logits["end"][i] for i in kept], places[begin:end], begin))
        return pipeline(windows, top, most), len(windows)

    def check_answers(self, models, rounds):
        """Random questions; returns the spans, the number of questions without an answer, and the numbers of windows."""
        rng = random.Random(7)
        seen, none, cuts = set(), 0, set()
        for model in models:
            for _ in range(rounds):
                questions = ["".join(rng.choice(PARTS) for _ in range(rng.randrange(1, 9))) for _ in range(4)]
                contexts = ["".join(rng.choice(PARTS) for _ in range(rng.choice([3, 12, 40, 120]))) for _ in range(4)]
                more = rng.choice([{}, {"return_top": 5}, {"return_top": 64, "max_answer": 2}, {"max_answer": 1},
                                   {"stride": 0}, {"stride": 5, "return_top": 3}])
                answer = self.ask(model, question=questions, context=contexts, **more)
                self.assertEqual(list(answer), ["model", "answers", "usage"])
                self.assertEqual(len(answer["answers"]), 4)
                for question, context, got in zip(questions, contexts, answer["answers"]):
                    right, windows = self.oracle(model, question, context, more.get("return_top", 1),
                                                 more.get("max_answer", 30), more.get("stride"))
                    with self.subTest(model=model, question=question, context=context, more=more):
                        self.assertEqual([(one["start"], one["end"]) for one in got], [one[1:] for one in right])
                        numpy.testing.assert_allclose([one["score"] for one in got], [one[0] for one in right], 1e-5, 1e-12)
                        for one in got:
                            self.assertEqual(list(one), ["text", "score", "start", "end"])
                            self.assertEqual(one["text"], context[one["start"]:one["end"]])
                    seen.update(one[1:] for one in right)
                    none += right == [(0, 0, 0)]
                    cuts.add(windows)
                alone = self.ask(model, question=questions[0], context=contexts[0], **more)["answers"]
                self.assertEqual(alone, answer["answers"][0])
        return seen, none, cuts

    def test_answers_are_those_of_the_pipeline(self):
        seen, none, cuts = self.check_answers(self.readers, 12)
        self.assertGreater(len(seen), 50)
        self.assertGreater(none, 5)
        self.assertGreater(max(cuts), 4)

    def test_answers_at_every_level_and_in_eight_bits(self):
        models = {"bert-1": self.models["bert-1"], "bert-int8": dict(self.models["bert-1"], compute="int8-block")}
        for level in "portable", "avx2", None:  # None: the best
            with self.subTest(level=level):
                self.server = Server({"models": models}, env={"ATTEND_CPU": level} if level else None)  # of this test alone
                self.addCleanup(self.server.kill)
                self.assertGreater(max(self.check_answers(models, 4)[2]), 1)
                self.server.stop()

    def test_answers_without_a_context(self):
        nothing = [{"text": "", "score": 0, "start": 0, "end": 0}]
        self.assertEqual(self.ask(question="b", context="")["answers"], nothing)
        self.assertEqual(self.ask(question=["", "a"], context=["", " "], return_top=3)["answers"], [nothing, nothing])
        self.assertEqual(self.ask(question=[], context=[])["answers"], [])

    def test_wrong_requests(self):
        self.refused("/context", 'the field "context" is missing', question="a")
        self.refused("/question", 'the field "question" is missing', context="a")
        self.refused("/context", "2 contexts for 1 questions", question=["a"], context=["a", "b"])
        self.refused("/context", 'expected a string, as "question" is', question="a", context=["a"])
        self.refused("/context", 'expected a list of strings, as "question" is', question=["a"], context="a")
        self.refused("/question", "expected a string, or a list of strings", question=1, context="a")
        self.refused("/context/1", "expected a string", question=["a", "b"], context=["a", ["b"]])
        self.refused("/text", 'excludes "question"', question="a", context="a", text="b")
        self.refused("/text", 'excludes "question"', text="b", question="a", context="a")
        for field, value in (("tokens", [1]), ("valid_lens", 1), ("token_types", [0]), ("return_tokens", True),
                             ("return_hidden", True), ("return_attention", True), ("truncate", True),
                             ("special_tokens", False), ("encoding_format", "base64")):
            self.refused(f"/{field}", f'{field} excludes "question"', question="a", context="a", **{field: value})
        for field in ("return_top", "max_answer", "stride"):
            self.refused(f"/{field}", 'requires "question" and "context"', tokens=[1], **{field: 3})
        for top in (0, 65):
            self.refused("/return_top", "an integer from 1 to 64", question="a", context="b", return_top=top)
        self.refused("/max_answer", "from 1 to 512", question="a", context="b", max_answer=0)
        self.refused("/stride", "at least 0", question="a", context="b", stride=-1)
        self.refused("/question", "no room is left for the context", question="a " * 40, context="b")
        self.refused("/question/1", "the question has 32 tokens", question=["a", "a " * 29], context=["b", "b"])
        self.refused("/stride", "the stride is 28, but must be smaller than a window, which has 28 tokens", question="a",
                     context="b " * 40, stride=28)
        self.ask(question="a", context="b", stride=28)
        self.refused("/question", "this model has no tokenizer", "bare", question="a", context="b")
        self.assertEqual(self.post({"question": "a", "context": "b"}, Accept="application/x-safetensors").status, 406)
        problem = self.problem(self.server.post("/v1/models/bert-1/encode", {"question": "a"}), 400, "invalid-request",
                               "/question")
        self.assertIn("POST /v1/models/NAME/question", problem["detail"])

    def test_errors_name_the_text(self):
        lost = 'the tokenizer has no token for "c", at byte 2 of the text'
        self.refused("/question", lost, "strict", question="b c", context="a")
        self.refused("/context", lost, "strict", question="a", context="b c")
        self.refused("/question/1", lost, "strict", question=["a", "a c"], context=["a", "b c"])
        self.refused("/context/1", lost, "strict", question=["a", "a"], context=["a", "b c"])
        # without special tokens there is no score of no answer
        answers = self.ask("strict", question="b", context="a b")["answers"]
        self.assertGreater(answers[0]["score"], 0)
        self.assertEqual(self.ask("strict", question="b", context="")["answers"],
                         [{"text": "", "score": 0, "start": 0, "end": 0}])

    def test_limits_count_windows(self):
        self.assertEqual(len(self.ask(question="a", context="b " * 91, stride=27)["answers"]), 1)
        answer = self.post({"question": "a", "context": "b " * 92, "stride": 27})
        problem = self.problem(answer, 413, "too-large")
        self.assertEqual(problem["limit"], "max_items")
        self.assertIn("more than 64 windows", problem["detail"])

    def test_run(self):
        body = json.dumps({"question": ["a new york"], "context": ["walking. b " * 20], "return_top": 3}).encode()
        status, out, err = attend("run", "bert-1", "--question", "--config", self.config, data=body)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.rstrip(), self.post(body).body.rstrip())


if __name__ == "__main__":
    unittest.main()
