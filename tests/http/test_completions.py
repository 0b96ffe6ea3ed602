"""test_completions: OpenAI's completions: texts and log probabilities that are those of /generate, streams, and every
mistake in its form of errors. Its own client is in tests/clients."""
import codecs
import json
import os
import tempfile
import unittest

from support import Server, ServerCase
from test_openai import OpenAi
from test_text import GPT2, LETTERS, RANDOM, SIZES

PATH = "/v1/completions"
LISTS = ["tokens", "token_logprobs", "top_logprobs", "text_offset"]
# At the beginning of a text its first two tokens are written alike.
BLANKS = {"model": {"type": "WordLevel", "unk_token": "?", "vocab": {"a": 0, "▁a": 1, "▁": 2, "b": 3, "?": 4, "<0xC3>": 5, "<0xA9>": 6}},
          "decoder": {"type": "Sequence", "decoders": [
              {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
              {"type": "ByteFallback"}, {"type": "Fuse"}]},
          "added_tokens": [{"id": 19, "content": "<|end|>", "special": True}]}


def bytes_of(piece):
    """The bytes that a piece of LETTERS stands for."""
    return piece.replace("Ġ", " ").encode("latin-1")


def string_of(piece):
    """What OpenAI's service calls it."""
    try:
        return bytes_of(piece).decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in bytes_of(piece))


class Completing(OpenAi, ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, tokenizer in ("letters", LETTERS), ("blanks", BLANKS):
            os.mkdir(os.path.join(cls.folder.name, name))
            with open(os.path.join(cls.folder.name, name, "tokenizer.json"), "w", encoding="utf-8") as file:
                json.dump(tokenizer, file)
        lettered = dict(RANDOM, **SIZES, tokenizer=os.path.join(cls.folder.name, "letters"), end=19)
        return Server({"models": {"gpt": dict(lettered, kind="decoder"),
                                  "pair": dict(lettered, kind="seq2seq", generate={"beams": 3}),
                                  "short": dict(lettered, kind="decoder", positions="learned", max_positions=6),
                                  "bert": dict(lettered, kind="encoder"),
                                  "blank": dict(lettered, kind="decoder", tokenizer=os.path.join(cls.folder.name, "blanks")),
                                  "naked": dict(RANDOM, **SIZES, kind="decoder")}})

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def post(self, **request):
        return self.server.post(PATH, dict({"model": "gpt", "prompt": "hello w"}, **request))

    def complete(self, **request):
        return self.ok(self.post(**request))

    def generate(self, model="gpt", **request):
        """The same of our own path."""
        return self.ok(self.server.post(f"/v1/models/{model}/generate", dict({"temperature": 1, "max_tokens": 16}, **request)))

    def events(self, **request):
        answer = self.post(stream=True, **request)
        self.assertEqual((answer.status, answer.headers["content-type"]), (200, "text/event-stream"), answer)
        lines = answer.body.decode().split("\n\n")
        self.assertEqual(lines[-2:], ["data: [DONE]", ""])
        return [json.loads(line[len("data: "):]) for line in lines[:-2]]


class Completions(Completing):
    def test_the_same_as_generate(self):
        for prompts, more in ((["hello w"], {}), (["hello w", "e"], {"n": 3, "seed": 5, "top_p": 0.9}), (["ell"], {"temperature": 0}),
                              (["hello", "w"], {"max_tokens": 4, "temperature": 2, "stop": ["e", "wor"]}),
                              (["hello w", "e"], {"n": 2, "seed": 5, "top_k": 2, "repetition_penalty": 1.7, "min_tokens": 9}),
                              (["hello w", "e"], {"n": 2, "min_p": 0.2, "presence_penalty": 1, "frequency_penalty": -0.5, "no_repeat_ngram": 3,
                                                  "logit_bias": {"13": 2, "2": -100}, "ignore_eos": True, "top_k": -1})):
            own = {"returns" if name == "n" else name: value for name, value in more.items()}
            right = self.generate(text=prompts, **own)
            answer = self.complete(prompt=prompts, **more)
            sequences = [one for item in right["sequences"] for one in item]
            self.assertEqual([one["text"] for one in answer["choices"]], [one["text"] for one in sequences])
            self.assertEqual([one["finish_reason"] for one in answer["choices"]],
                             ["length" if one["finish"] == "length" else "stop" for one in sequences])
            self.assertEqual([one["index"] for one in answer["choices"]], list(range(len(sequences))))
            tokens, generated = right["usage"]["tokens"], right["usage"]["generated"]
            self.assertEqual(answer["usage"], {"prompt_tokens": tokens, "completion_tokens": generated,
                                               "total_tokens": tokens + generated})
            self.assertEqual((answer["object"], answer["model"]), ("text_completion", "gpt"))

    def test_each_option_counts(self):
        """In the same drawing."""
        request = {"n": 3, "seed": 5, "temperature": 2}
        texts = [[one["text"] for one in self.complete(**request, **more)["choices"]]
                 for more in ({}, {"top_k": 1}, {"repetition_penalty": 5}, {"presence_penalty": -2}, {"frequency_penalty": 2},
                              {"logit_bias": {"13": 3}}, {"no_repeat_ngram": 1}, {"min_p": 1}, {"top_k": -1}, {"logit_bias": {}})]
        self.assertEqual(len(set(map(tuple, texts[:7]))), 7, texts)
        self.assertEqual(len(set(texts[1])), 1)
        self.assertEqual(texts[7:], [texts[1], texts[0], texts[0]])

    def test_the_end_of_the_model(self):
        """It ends a text where it is likely, unless a request ignores it, or it may not come yet."""
        end = self.server.get("/v1/models/gpt").json["tokens"]["end"]
        likely = {"temperature": 0, "max_tokens": 5, "logit_bias": {str(end[0] if isinstance(end, list) else end): 100}}
        for more, tokens, reason in (({}, 1, "stop"), ({"ignore_eos": True}, 5, "length"), ({"ignore_eos": False}, 1, "stop"),
                                     ({"min_tokens": 3}, 4, "stop")):
            answer = self.complete(**likely, **more)
            self.assertEqual((answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]), (tokens, reason), more)

    def test_prompts_of_tokens(self):
        right = self.complete(n=2)["choices"]
        for prompt in ([13, 14], [[13, 14]]):
            self.assertEqual(self.complete(prompt=prompt, n=2)["choices"], right)
        self.assertEqual(self.complete(prompt=[])["choices"], [])

    def test_an_encoder_and_a_decoder(self):
        """A model that searches draws here, unless the temperature is 0."""
        right = self.generate("pair", text="hello w")["sequences"][0]["text"]
        self.assertEqual(self.complete(model="pair")["choices"][0]["text"], right)
        right = self.generate("pair", text="hello w", temperature=0, beams=1)["sequences"][0]["text"]
        self.assertEqual(self.complete(model="pair", temperature=0)["choices"][0]["text"], right)

    def test_the_prompt_in_front(self):
        for prompt, texts in ((["hello w", "é\"\n"], ["hello w", "é\"\n"]), ([[13, 14], [8, 9]], ["hello w", "é"]), ([13, 4], ["hello "])):
            if prompt[0] == "hello w":
                prompt, texts = prompt[:1], texts[:1]
            bare, both = (self.complete(prompt=prompt, n=2, echo=echo)["choices"] for echo in (False, True))
            self.assertEqual([one["text"] for one in both],
                             [texts[i // 2] + one["text"] for i, one in enumerate(bare)])

    def test_as_many_as_there_is_room_for(self):
        self.assertLessEqual(self.complete(model="short")["usage"]["completion_tokens"], 5)
        self.error(self.post(model="short", max_tokens=16), 400, "invalid_request", "max_tokens", "context length")
        long = {"model": "short", "prompt": "hello hello hello hello hello"}
        self.error(self.post(**long), 400, "invalid_request", "prompt", 'set "truncate": true')
        self.assertEqual(self.complete(**long, truncate=True)["usage"]["prompt_tokens"], 6)
        self.assertEqual(self.complete(**long, truncate=2)["usage"]["prompt_tokens"], 2)
        self.error(self.post(model="short", prompt=[1], truncate=True), 400, "invalid_request", "truncate", "token ids")
        self.error(self.post(n=2, temperature=0), 400, "invalid_request", "n", "identical texts")

    def test_answers_have_names_of_their_own(self):
        names = [self.complete(max_tokens=1)["id"] for _ in range(20)]
        self.assertEqual(len(set(names)), 20)
        for name in names:
            self.assertRegex(name, "^cmpl-[0-9a-f]{16}$")

    def test_streams(self):
        for more in ({}, {"n": 3, "seed": 4}, {"prompt": ["hello", "w"], "temperature": 0}, {"stop": "w", "temperature": 2}):
            right = self.complete(**more)
            events = self.events(**more)
            texts, ends = [""] * len(right["choices"]), [None] * len(right["choices"])
            for event in events:
                self.assertEqual(list(event), ["id", "object", "created", "model", "choices"])
                (one,) = event["choices"]
                self.assertIsNone(ends[one["index"]])
                texts[one["index"]] += one["text"]
                ends[one["index"]] = one["finish_reason"]
            self.assertEqual(len({event["id"] for event in events}), 1)
            self.assertEqual(texts, [one["text"] for one in right["choices"]])
            self.assertEqual(ends, [one["finish_reason"] for one in right["choices"]])
            told = self.events(stream_options={"include_usage": True}, **more)
            self.assertEqual((told[-1]["choices"], told[-1]["usage"]), ([], right["usage"]))
            self.assertEqual(len(told), len(events) + 1)

    def test_a_stream_with_the_prompt_in_front(self):
        """In events of its own, cut between characters where it is long."""
        for more in ({"n": 2, "seed": 4}, {"prompt": ["é\"\n", "w" + 1500 * "é", "ell"], "stop": "w", "temperature": 2},
                     {"prompt": [[13, 14], [8, 9, 19]], "temperature": 0}, {"prompt": [19]}, {"model": "pair", "temperature": 0}):
            right, bare = self.complete(echo=True, **more), self.complete(**more)
            texts, pieces = [""] * len(right["choices"]), [[] for _ in right["choices"]]
            for event in self.events(echo=True, **more):
                (one,) = event["choices"]
                pieces[one["index"]].append(one["text"])
                texts[one["index"]] += one["text"]
            self.assertEqual(texts, [one["text"] for one in right["choices"]])
            for got, whole, behind in zip(pieces, right["choices"], bare["choices"]):
                prompt = whole["text"][:len(whole["text"]) - len(behind["text"])]
                fronts = -(-len(prompt.encode()) // 1023) if len(prompt) > 1000 else len(prompt) > 0
                self.assertEqual("".join(got[:fronts]), prompt)
                self.assertTrue(all(len(one.encode()) <= 1024 for one in got))

    def told(self, sequence, top):
        """The four lists that a sequence of /generate should be, whose tokens are those of LETTERS."""
        pieces = sorted(GPT2["vocab"], key=GPT2["vocab"].get)
        lists, before = {name: [] for name in LISTS}, b""
        for i, token in enumerate(sequence["tokens"]):
            lists["tokens"].append(string_of(pieces[token]))
            lists["token_logprobs"].append(sequence["log_probabilities"][i])
            likely = {string_of(pieces[one["token"]]): one["log_probability"] for one in sequence["top"][i]} if top else {}
            lists["top_logprobs"].append(dict(likely, **{string_of(pieces[token]): sequence["log_probabilities"][i]}))
            lists["text_offset"].append(len(codecs.getincrementaldecoder("utf-8")("replace").decode(before)))
            before += bytes_of(pieces[token]) if token != 19 else b""
        return lists

    def test_log_probabilities(self):
        """The same numbers, to the last bit; tokens as the text that they add, in characters or in bytes."""
        seen = set()
        for more in ({"logprobs": 2}, {"logprobs": 5, "n": 40, "seed": 3, "temperature": 3}, {"logprobs": 0}, {"logprobs": 64, "max_tokens": 3},
                     {"logprobs": 1, "prompt": ["hello", "w"], "temperature": 0}, {"logprobs": 3, "stop": ["r", "or"], "n": 6, "temperature": 2},
                     {"logprobs": 2, "model": "pair", "n": 4, "prompt": [[13, 14], [8, 9]]}):
            own = {"returns" if name == "n" else name: value for name, value in more.items() if name not in ("prompt", "logprobs", "model")}
            prompt, top = more.get("prompt", ["hello w"]), more["logprobs"]
            own["text" if isinstance(prompt[0], str) else "tokens"] = prompt
            right = self.generate(more.get("model", "gpt"), return_top=top, return_text=True, **own)
            sequences = [one for item in right["sequences"] for one in item]
            choices = self.complete(**dict({"prompt": prompt}, **more))["choices"]
            self.assertEqual([one["text"] for one in choices], [one["text"] for one in sequences])
            for choice, sequence in zip(choices, sequences):
                got = choice["logprobs"]
                self.assertEqual(list(got), LISTS)
                self.assertEqual(got, self.told(sequence, top))
                self.assertTrue(all(min(top, 20) <= len(one) <= top + 1 for one in got["top_logprobs"]))
                self.assertTrue(all(one[token] == log for one, token, log in
                                    zip(got["top_logprobs"], got["tokens"], got["token_logprobs"])))
                seen |= set(got["tokens"])
        self.assertTrue({"bytes:\\xc3", "bytes:\\xa9", " world", "<|end|>"} <= seen, seen)

    def test_log_probabilities_of_a_stream(self):
        """An event has those of its own token, and all together are those of the whole answer."""
        for more in ({"logprobs": 2}, {"logprobs": 5, "n": 20, "seed": 3, "temperature": 3}, {"logprobs": 0, "temperature": 0},
                     {"logprobs": 1, "stop": ["ell", "wor", "r"], "n": 9, "temperature": 2}, {"logprobs": 3, "model": "pair"},
                     {"logprobs": 4, "model": "blank", "prompt": [19], "n": 9, "temperature": 3}):
            right = self.complete(**more)["choices"]
            lists = [{name: [] for name in LISTS} for _ in right]
            for event in self.events(**more):
                (one,) = event["choices"]
                self.assertEqual(list(one["logprobs"]), LISTS)
                self.assertEqual({len(part) for part in one["logprobs"].values()}, {0 if one["finish_reason"] else 1})
                for name, part in one["logprobs"].items():
                    lists[one["index"]][name] += part
            self.assertEqual(lists, [one["logprobs"] for one in right])

    def test_tokens_that_are_written_alike(self):
        """The one that was chosen has the name, or else the likeliest; what the tokenizer does not know has its number."""
        request = {"model": "blank", "prompt": [19], "logprobs": 64, "max_tokens": 1}
        others = {f"token_id:{i}" for i in range(7, 19)} | {"<|end|>"}
        chosen = set()
        for seed in range(40):
            one = self.ok(self.post(seed=seed, temperature=4, **request))["choices"][0]
            native = self.generate("blank", tokens=[[19]], temperature=4, seed=seed, return_top=64, max_tokens=1, return_text=True)["sequences"][0][0]
            logs = {likely["token"]: likely["log_probability"] for likely in native["top"][0]}
            token, (top,) = native["tokens"][0], one["logprobs"]["top_logprobs"]
            self.assertEqual(set(top), others | {"a", "", "b", "?", "bytes:\\xc3", "bytes:\\xa9"})
            self.assertEqual(top["a"], logs[token] if token < 2 else max(logs[0], logs[1]))
            self.assertEqual(top[one["logprobs"]["tokens"][0]], native["log_probabilities"][0])
            chosen.add(token)
        self.assertTrue({0, 1} <= chosen)

    def test_without_log_probabilities(self):
        for more in ({}, {"logprobs": None}, {"logprobs": False}):
            self.assertIsNone(self.complete(**more)["choices"][0]["logprobs"])
            self.assertTrue(all(event["choices"][0]["logprobs"] is None for event in self.events(**more)))
        self.assertEqual(self.complete(prompt=[], logprobs=2)["choices"], [])
        self.assertEqual(self.events(prompt=[], logprobs=2), [])

    def test_a_stream_that_fails(self):
        """Where the failure comes with the first token it has its status; behind it, it is an event."""
        own = {"text": "hello", "temperature": 1, "banned_tokens": list(range(20))}
        self.problem(self.server.post("/v1/models/gpt/generate", own), 400, "invalid-request")
        self.error(self.post(stream=True, prompt=""), 400, "invalid_request", "prompt")

    def test_what_is_wrong(self):
        for request, param, words in (
                ({"prompt": None}, None, "prompt"), ({"prompt": 1}, "prompt", "string"), ({"prompt": ""}, "prompt", "at least one"),
                ({"prompt": ["hello", ""]}, "prompt[1]", "at least one"), ({"prompt": [["hello"]]}, "prompt[0]", ""),
                ({"prompt": [[1], [99]]}, "prompt[1][0]", "vocabulary"), ({"model": "bert"}, "model", "encoder"),
                ({"model": "naked"}, "model", "without a tokenizer"), ({"model": 1}, "model", "string"),
                ({"max_tokens": 0}, "max_tokens", "/score"), ({"max_tokens": -1}, "max_tokens", "at least 1"),
                ({"max_tokens": 0, "echo": True, "logprobs": 1}, "max_tokens", "POST /v1/models/NAME/score"),
                ({"echo": True, "logprobs": 0}, "echo", "POST /v1/models/NAME/score"),
                ({"echo": True, "logprobs": 2, "stream": True}, "echo", "is not supported"),
                ({"temperature": -1}, "temperature", ""), ({"top_p": 2}, "top_p", ""),
                ({"n": 0}, "n", ""), ({"n": 2, "temperature": 0}, "n", "identical"), ({"stop": [""]}, "stop[0]", "1 to 1024"),
                ({"seed": -1}, "seed", ""), ({"echo": 1}, "echo", ""),
                ({"stream": 1}, "stream", ""), ({"stream_options": 1}, "stream_options", ""), ({"user": 1}, "user", ""),
                ({"stream_options": {"include_usage": 1}, "stream": True}, "stream_options", "include_usage"),
                ({"stream_options": {"include_usage": True}}, "stream_options", "stream"),
                ({"logprobs": 65}, "logprobs", "from 0 to 64"), ({"logprobs": -1}, "logprobs", "0 to 64"), ({"logprobs": True}, "logprobs", "0 to 64"),
                ({"logprobs": 1.5}, "logprobs", "0 to 64"), ({"logprobs": ""}, "logprobs", "0 to 64"), ({"logprobs": {}}, "logprobs", "0 to 64"),
                ({"logit_bias": {"1": 100.5}}, "logit_bias[1]", "-100 to 100"), ({"logit_bias": {"1": None}}, "logit_bias[1]", "a number"),
                ({"logit_bias": {"99": 1}}, "logit_bias[99]", "are 0 to 19"), ({"logit_bias": {"01": 1}}, "logit_bias[01]", "not a token id"),
                ({"logit_bias": {"hello": 1}}, "logit_bias.hello", "not a token id"), ({"logit_bias": {"-1": 1}}, "logit_bias.-1", "not a token id"),
                ({"logit_bias": {"99999999999": 1}}, "logit_bias[99999999999]", "not a token id"), ({"logit_bias": [[1, 1]]}, "logit_bias", "an object"),
                ({"logit_bias": {"é" * 60: 1}}, None, "not a token id"),
                ({"best_of": 2}, "best_of", ""), ({"suffix": "a"}, "suffix", ""), ({"ignore_eos": 1}, "ignore_eos", "true or false"),
                ({"presence_penalty": 2.5}, "presence_penalty", "a number from -2 to 2"), ({"frequency_penalty": "1"}, "frequency_penalty", "a number"),
                ({"min_p": 1.5}, "min_p", "from 0 to 1"), ({"beams": 4}, "beams", "/generate"), ({"top_k": -2}, "top_k", "integer"), ({"messages": []}, "messages", "use POST /v1/chat/completions"), ({"prompts": 1}, "prompts", "prompt")):
            with self.subTest(request=request):
                answer = self.post(**request)
                if param is None:
                    self.assertEqual(answer.status, 400)
                else:
                    self.error(answer, 400, "invalid_request", param, words)
        self.error(self.server.post(PATH, {"model": "gpt"}), 400, "invalid_request", "prompt", "missing")
        self.error(self.post(model="nobody"), 404, "model_not_found", "model", "gpt, pair, short")
        self.error(self.server.post(PATH, {"prompt": "a"}), 400, "invalid_request", "model", "missing")
        self.error(self.server.get(PATH), 405, "method_not_allowed")
        self.error(self.post(max_tokens=10 ** 9), 413, "too_large")

    def test_fields_that_are_null(self):
        right = self.complete()["choices"]
        nulls = dict.fromkeys(("max_tokens", "temperature", "top_p", "n", "stop", "seed", "echo", "stream", "stream_options",
                               "logprobs", "suffix", "best_of", "presence_penalty", "frequency_penalty", "logit_bias", "user", "truncate",
                               "top_k", "min_tokens", "repetition_penalty", "min_p", "no_repeat_ngram", "ignore_eos"))
        self.assertEqual(self.complete(**nulls)["choices"], right)
        self.assertEqual(self.complete(best_of=1, user="u" * 16000)["choices"], right)
        self.assertEqual(self.complete(stop=["never there " * 80] * 16)["choices"], right)
        twice = b'{"model":"gpt","prompt":"hello w","stop":null,"stop":"a"}'
        self.error(self.server.post(PATH, twice), 400, "invalid_request", "stop", "duplicate ")
        self.assertLessEqual(self.complete(model="short", max_tokens=None)["usage"]["completion_tokens"], 5)


if __name__ == "__main__":
    unittest.main()
