"""test_chat: OpenAI's chat completions: the messages that /generate makes of rendered prompts, in texts, log probabilities and
streams; the defaults of a folder; growing conversations; and every mistake. Clients from npm are in tests/clients."""
import contextlib
import json
import os
import tempfile
import unittest

from folders import write_folder
from support import Server
from test_completions import LETTERS, Completing, string_of
from test_openai import RANDOM, SIZES
from test_text import GPT2, Served

PATH = "/v1/chat/completions"
END = "<|end|>"
TEMPLATE = ("{% for m in messages %}{% if m.content == 'hello fail' %}{{ raise_exception('no: ' ~ m.role) }}{% endif %}"
            "{{ {'system': 'o', 'user': 'h', 'tool': 'd'}.get(m.role, 'w') }}{{ m.content | trim }}{{ word or eos_token }}"
            "{% endfor %}{% if add_generation_prompt %}w{% endif %}")
HELLO = [{"role": "user", "content": "hello w"}]
SAID = ("tokens", "log_probabilities")


def write_letters(folder, **config):
    os.mkdir(folder)
    for name, said in ("tokenizer.json", LETTERS), ("tokenizer_config.json", dict({"eos_token": END}, **config)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(said, file)


class Chat(Completing):
    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        talks, mute = (os.path.join(cls.folder.name, name) for name in ("talks", "mute"))
        write_letters(talks, chat_template=TEMPLATE)
        write_letters(mute)
        letters = dict(RANDOM, **SIZES, kind="decoder", tokenizer=talks)
        return Server({"models": {"gpt": dict(letters, end=19), "endless": letters,
                                  "pair": dict(letters, kind="seq2seq", end=19, generate={"beams": 3}),
                                  "cool": dict(letters, generate={"temperature": 0.5, "top_p": 0.7, "top_k": 3}),
                                  "greedy": dict(letters, generate={"temperature": 0}),
                                  "short": dict(letters, positions="learned", max_positions=24),
                                  "mute": dict(letters, tokenizer=mute), "bert": dict(letters, kind="encoder"),
                                  "large": dict(letters, positions="learned", max_positions=4096)},
                       "prefix_cache_bytes": 1 << 20, "memory_budget_bytes": 16 << 20})

    def post(self, **request):
        return self.server.post(PATH, dict({"model": "gpt", "messages": HELLO}, **request))

    def chat(self, **request):
        return self.complete(**dict({"max_tokens": 16}, **request))

    def contents(self, **request):
        choices = self.chat(**request)["choices"]
        for one in choices:
            self.assertEqual((one["message"]["role"], one["message"]["refusal"]), ("assistant", None))
        return [one["message"]["content"] for one in choices]

    def render(self, model="gpt", **request):
        return self.ok(self.server.post(f"/v1/models/{model}/render", dict({"messages": HELLO}, **request)))

    def rendered(self, model="gpt", messages=None, **request):
        """The sequences that /generate makes of the rendered prompt."""
        tokens = self.render(model, messages=messages or HELLO, add_generation_prompt=True)["tokens"]
        return self.generate(model, tokens=[tokens], return_text=True, **request)

    def test_the_same_as_generate(self):
        two = [{"role": "system", "content": "world"}] + HELLO + [{"role": "assistant", "content": "ell"}, {"role": "user", "content": "h"}]
        for more in ({}, {"messages": two, "n": 3, "seed": 5, "top_p": 0.9}, {"temperature": 0, "messages": two},
                     {"max_tokens": 4, "temperature": 2, "stop": ["e", "wor"], "n": 9, "seed": 2}, {"max_completion_tokens": 3, "max_tokens": 9},
                     {"n": 2, "min_p": 0.2, "presence_penalty": 1, "frequency_penalty": -0.5, "no_repeat_ngram": 3, "top_k": -1,
                      "logit_bias": {"13": 2, "2": -100}, "ignore_eos": True, "repetition_penalty": 1.7, "min_tokens": 4}):
            own = {"returns" if name == "n" else name: value for name, value in more.items()}
            own["max_tokens"] = own.pop("max_completion_tokens", own.get("max_tokens", 16))
            right, answer = self.rendered(**own), self.chat(**more)
            [sequences] = right["sequences"]
            self.assertEqual([one["message"]["content"] for one in answer["choices"]], [one["text"] for one in sequences])
            self.assertEqual([one["finish_reason"] for one in answer["choices"]],
                             ["length" if one["finish"] == "length" else "stop" for one in sequences])
            self.assertEqual([one["index"] for one in answer["choices"]], list(range(len(sequences))))
            tokens, generated = right["usage"]["tokens"], right["usage"]["generated"]
            self.assertEqual(answer["usage"], {"prompt_tokens": tokens, "completion_tokens": generated, "total_tokens": tokens + generated,
                                               "prompt_tokens_details": {"cached_tokens": 0}})
            self.assertEqual((answer["object"], answer["model"]), ("chat.completion", "gpt"))
            self.assertRegex(answer["id"], "^chatcmpl-[0-9a-f]{16}$")

    def test_streams(self):
        """A message's role is an event of its own, without log probabilities."""
        for more in ({}, {"n": 3, "seed": 4, "logprobs": True, "top_logprobs": 2}, {"temperature": 0},
                     {"stop": "w", "temperature": 2, "n": 9, "logprobs": True}):
            right = self.chat(**more)
            events = self.events(**dict({"max_tokens": 16}, **more))
            texts, ends, logs = ([start() for _ in right["choices"]] for start in (str, str, list))
            begun = set()
            for event in events:
                self.assertEqual(list(event), ["id", "object", "created", "model", "choices"])
                self.assertEqual(event["object"], "chat.completion.chunk")
                (one,) = event["choices"]
                index, delta = one["index"], one["delta"]
                if index not in begun:
                    self.assertEqual((delta, one["logprobs"]), ({"role": "assistant", "content": ""}, None))
                    begun.add(index)
                else:
                    self.assertNotIn("role", delta)
                self.assertEqual(ends[index], "")
                self.assertEqual(one["finish_reason"] is not None, "content" not in delta)
                texts[index] += delta.get("content", "")
                ends[index] = one["finish_reason"] or ""
                logs[index] += (one["logprobs"] or {"content": []})["content"]
            self.assertEqual(texts, [one["message"]["content"] for one in right["choices"]])
            self.assertEqual(ends, [one["finish_reason"] for one in right["choices"]])
            self.assertEqual(logs, [(one["logprobs"] or {"content": []})["content"] for one in right["choices"]])
            told = self.events(stream_options={"include_usage": True}, **dict({"max_tokens": 16}, **more))
            self.assertEqual((told[-1]["choices"], told[-1]["usage"]), ([], right["usage"]))

    def test_log_probabilities(self):
        """Those of /generate to the last bit, with the bytes that each token adds."""
        pieces, seen = sorted(GPT2["vocab"], key=GPT2["vocab"].get), set()

        def told(token, log):
            raw = END.encode() if token == 19 else pieces[token].replace("Ġ", " ").encode("latin-1")
            return {"token": END if token == 19 else string_of(pieces[token]), "logprob": log, "bytes": list(raw)}

        for top in (0, 3, 64):
            [sequences] = self.rendered(returns=6, seed=3, temperature=3, return_top=top)["sequences"]
            choices = self.chat(n=6, seed=3, temperature=3, logprobs=True, top_logprobs=top)["choices"]
            for choice, sequence in zip(choices, sequences):
                right = [dict(told(token, log), top_logprobs=[told(one["token"], one["log_probability"]) for one in likely])
                         for token, log, likely in zip(*(sequence[name] for name in SAID), sequence.get("top", [[]] * 99))]
                self.assertEqual(choice["logprobs"], {"content": right, "refusal": None})
                seen |= {one["token"] for one in right}
        self.assertTrue({"bytes:\\xc3", " world", END} <= seen, seen)
        self.assertIsNone(self.chat()["choices"][0]["logprobs"])

    def test_messages(self):
        """Parts are lines of one text, and developers are the system: as their templates know it."""
        right = self.contents(messages=[{"role": "system", "content": "w\nw"}, *HELLO, {"role": "tool", "content": "d", "tool_call_id": "1"}])
        parts = [{"type": "text", "text": "w"}] * 2
        self.assertEqual(self.contents(messages=[{"role": "developer", "content": parts}, {"role": "user", "content": [{"type": "text", "text": "hello w"}]},
                                                 {"role": "tool", "content": "d", "name": "x", "tool_calls": [], "refusal": None}]), right)

    def test_variables(self):
        for more in ({"word": "hell"}, {"word": "w", "messages": [{"role": "user", "content": "d"}]}):
            tokens = self.render(chat_template_kwargs=more, add_generation_prompt=True)["tokens"]
            right = self.generate(tokens=[tokens], return_text=True)
            self.assertEqual(self.contents(chat_template_kwargs=more), [right["sequences"][0][0]["text"]])
        with self.templates(shows="{{ documents[0] }}{{ strftime_now('%H') }}{{ add_generation_prompt }}{{ tools }}") as server:
            request = {"messages": HELLO, "documents": ["helo"], "now": "2026-11-30T09:00:00"}
            text = self.ok(server.post("/v1/models/shows/render", request))["text"]
            self.assertEqual(text, "helo09FalseNone")
            lengths = [len(self.ok(server.post("/v1/models/shows/tokenize", {"text": said, "special_tokens": False}))["tokens"])
                       for said in (text.replace("False", "True"), text)]
            for more, length in (({}, lengths[0]), ({"add_generation_prompt": False}, lengths[1])):
                usage = self.ok(server.post(PATH, dict(request, max_tokens=1, **more)))["usage"]
                self.assertEqual(usage["prompt_tokens"], length)

    @contextlib.contextmanager
    def templates(self, **templates):
        """A server of models that have these templates."""
        models = {}
        for name, text in templates.items():
            with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as file:
                file.write(text)
            models[name] = dict(RANDOM, **SIZES, kind="decoder", tokenizer=os.path.join(self.folder.name, "mute"),
                                chat_template=os.path.join(self.folder.name, name))
        with Served(models) as server:
            yield server

    def test_the_last_message_goes_on(self):
        """After its text, without the blanks at its end if the template trims it."""
        begun = HELLO + [{"role": "assistant", "content": " hell"}]
        self.assertEqual(self.render(messages=begun)["text"], f"hhello w{END}whell{END}")
        for content, text in ((" hell", "whell"), ("hell  ", "whell"), ("", "w"), ([{"type": "text", "text": "hell"}, {"type": "text", "text": "w"}], "whell\nw")):
            messages, text = HELLO + [{"role": "assistant", "content": content}], f"hhello w{END}{text}"
            if isinstance(content, str):  # the template adds texts
                self.assertEqual(self.render(messages=messages, continue_final_message=True)["text"], text)
            tokens = self.ok(self.server.post("/v1/models/gpt/tokenize", {"text": text, "special_tokens": False}))["tokens"]
            right = self.generate(tokens=[tokens], return_text=True)["sequences"][0][0]["text"]
            self.assertEqual(self.contents(messages=messages, continue_final_message=True), [right])
        both = {"continue_final_message": True, "add_generation_prompt": True}
        for request, words in (({"messages": begun, **both}, "excludes"), ({"chat_template_kwargs": {"messages": []}}, "leaves out the text")):
            answer = self.post(**dict({"continue_final_message": True}, **request))
            self.error(answer, 400, "invalid_request", "continue_final_message", words)
        with self.templates(keeps="{% for m in messages %}<|im_start|>{{ m.role }}|{{ m.content }}<|im_end|>{% endfor %}",
                            parts="{% for m in messages %}{% for p in m.content %}{{ p.text }}.{% endfor %}{% endfor %}") as server:
            def ends(model, content):
                answer = server.post(f"/v1/models/{model}/render", {"messages": [{"role": "user", "content": content}], "continue_final_message": True})
                return self.ok(answer)["text"]

            for text in ("hell  ", "  hell", "\u3000h\u00a0", "|", "<", "i", "", "\0 ", "user|u", "x CONTINUE_FINAL_MESSAGE_TAG"):
                self.assertEqual(ends("keeps", text), "<|im_start|>user|" + text)
            self.assertEqual(ends("parts", [{"text": "a"}, {"text": "b "}, {"image": 1}]), "a.b ")
            for content in None, [], [{"image": 1}], {"text": "a"}:
                answer = server.post("/v1/models/keeps/render", {"messages": [{"role": "user", "content": content}], "continue_final_message": True})
                self.problem(answer, 400, "invalid-request", "/continue_final_message")
            self.problem(server.post("/v1/models/keeps/render", {"messages": [], "continue_final_message": True}), 400, "invalid-request",
                         "/continue_final_message")

    def test_the_model_has_its_defaults(self):
        """Its temperature if it has one, else 1; its other options; and any number of tokens."""
        for model, more in (("cool", {"temperature": 0.5, "top_p": 0.7, "top_k": 3}), ("greedy", {"temperature": 0}), ("gpt", {"temperature": 1})):
            right = self.rendered(model, seed=7, **more)["sequences"][0][0]["text"]
            self.assertEqual(self.contents(model=model, seed=7), [right])
        self.assertEqual(self.contents(model="pair"), [self.rendered("pair")["sequences"][0][0]["text"]])
        for do_sample, temperature in ((None, 1), (False, 0), (True, 0.6)):
            path = os.path.join(self.folder.name, f"m{do_sample}")
            write_folder(path, "gpt2-a", ["<s>", "</s>", "[UNK]", "user", "hello"])
            for name, said in (("generation_config.json", dict({"temperature": 0.6}, **({} if do_sample is None else {"do_sample": do_sample}))),
                               ("tokenizer_config.json", {"chat_template": "{{ messages[0].content }}"})):
                with open(os.path.join(path, name), "w", encoding="utf-8") as file:
                    json.dump(said, file)
            with Served({"m": {"transformer": path}}) as server:
                right = self.ok(server.post("/v1/models/m/generate", {"tokens": [[4]], "temperature": temperature, "return_text": True, "max_tokens": 9,
                                                                      "seed": 3}))
                answer = self.ok(server.post(PATH, {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9, "seed": 3}))
                self.assertEqual(answer["choices"][0]["message"]["content"], right["sequences"][0][0]["text"])

    def test_as_many_tokens_as_there_is_room_for(self):
        forever = {"ignore_eos": True, "max_tokens": None}
        usage = self.chat(model="short", **forever)["usage"]
        self.assertEqual(usage["total_tokens"], 25)  # the last token is not fed
        # A 32nd of the memory: keys and values of a token, and at most 21 bytes of text, which are at most 6 each in JSON.
        fits = (16 << 20) // 32 // (2 * 2 * 16 * 4 + 21 + 6 * 21)
        self.assertEqual(self.chat(model="large", **forever)["usage"]["completion_tokens"], fits)
        self.assertEqual(self.chat(model="large", n=2, **forever)["usage"]["completion_tokens"], fits // 2 * 2)
        self.assertLess(self.chat(model="large", logprobs=True, top_logprobs=20, **forever)["usage"]["completion_tokens"], fits // 2)
        large = dict(RANDOM, **SIZES, kind="decoder", tokenizer=os.path.join(self.folder.name, "talks"))
        for settings, tokens in (({"max_pairs": 4 * 100 * 100}, 96), ({"max_answer_bytes": 20000}, 20000 // 2 // 126),
                                 ({"memory_budget_bytes": 1 << 20, "max_pairs": 4 * 50 * 50}, 46), ({"max_tokens": 33}, 33),
                                 ({"max_answer_bytes": 3800}, 16)):
            with Served({"m": large}, **settings) as server:
                answer = self.ok(server.post(PATH, {"messages": HELLO, "ignore_eos": True}))
                self.assertEqual(answer["usage"]["completion_tokens"], tokens, settings)
                if "max_pairs" in settings:  # one more token is too many
                    self.error(server.post(PATH, {"messages": HELLO, "max_tokens": tokens + 1}), 413, "too_large")
                    two = self.ok(server.post(PATH, {"messages": HELLO, "ignore_eos": True, "n": 2}))["usage"]["completion_tokens"]
                    self.assertLess(two, 2 * tokens)
        self.error(self.post(model="short", max_tokens=99), 400, "invalid_request", "max_tokens", "context length of 24")
        self.error(self.post(model="short", max_completion_tokens=99), 400, "invalid_request", "max_completion_tokens", "context length of 24")
        self.error(self.post(model="short", messages=HELLO * 20), 400, "invalid_request", "messages", "context length of 24: shorten the conversation")

    def test_the_end_of_a_message(self):
        """The end token of the template's folder counts beside the model's, which may have none."""
        likely = {"temperature": 0, "max_tokens": 5, "logit_bias": {"19": 100}, "model": "endless"}
        for more, tokens, reason in (({}, 1, "stop"), ({"ignore_eos": True}, 5, "length"), ({"min_tokens": 3}, 4, "stop")):
            answer = self.chat(**likely, **more)
            self.assertEqual((answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]), (tokens, reason), more)
        self.assertEqual(self.ok(self.server.post("/v1/models/endless/generate", {"tokens": [[1]], "max_tokens": 5, "logit_bias": {"19": 100}}))
                         ["usage"]["generated"], 5)

    def test_a_conversation_that_grows(self):
        """Its beginning is in the prefix cache, in blocks of 64 tokens."""
        messages = [{"role": "user", "content": "hello world" * 40}]
        request = {"model": "large", "temperature": 0, "max_tokens": 70, "ignore_eos": True}
        first = self.chat(messages=messages, **request)
        self.assertEqual(first["usage"]["prompt_tokens_details"], {"cached_tokens": 0})
        messages += [first["choices"][0]["message"], {"role": "user", "content": "hello"}]
        second = self.chat(messages=messages, **request)
        before = first["usage"]["prompt_tokens"]
        self.assertGreaterEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], before // 64 * 64)
        [text] = [one["message"]["content"] for one in second["choices"]]
        self.assertEqual(text, self.rendered("large", messages, temperature=0, max_tokens=70, ignore_eos=True)["sequences"][0][0]["text"])

    def test_a_template_that_fails(self):
        for stream in False, True:
            answer = self.post(messages=[{"role": "user", "content": "hello fail"}], stream=stream)
            self.error(answer, 400, "invalid_request", None, "chat template: line 1, column ", "no: user")

    def test_what_is_wrong(self):
        image = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]
        for request, param, words in (
                ({"messages": None}, "messages", "missing"), ({"messages": []}, "messages", "at least one"), ({"messages": "hello"}, "messages", "a list"),
                ({"messages": ["hello"]}, "messages[0]", "an object"), ({"messages": [{}]}, "messages[0].role", '"assistant"'),
                ({"messages": HELLO + [{"role": "robot", "content": ""}]}, "messages[1].role", '"tool"'),
                ({"messages": HELLO + [{"role": "user"}]}, "messages[1].content", "a text"), ({"messages": [{"role": "user", "content": []}]}, "messages[0].content", "a text"),
                ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "text parts"),
                ({"messages": [{"role": "user", "content": image}]}, "messages[0].content[1]", "images, audio and files are not supported"),
                ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0]", "a part must be"),
                ({"messages": HELLO + [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}]}, "messages[1].tool_calls", "tools are not supported"),
                ({"messages": [{"role": "assistant", "content": "", "tool_calls": {}}]}, "messages[0].tool_calls", 'remove "tool_calls"'),
                ({"messages": [{"role": "assistant", "content": "", "function_call": {"name": "f"}}]}, "messages[0].function_call", 'remove "function_call"'),
                ({"messages": [{"role": "user\0x", "content": ""}]}, "messages[0].role", "must be"), ({"modalities": ["text\0audio"]}, "modalities", "must be"),
                ({"response_format": {"type": "text\0json"}}, "response_format", "must be"), ({"audio": {"voice": "x"}}, "audio", "not supported"),
                ({"prediction": {}}, "prediction", "not supported"), ({"web_search_options": {}}, "web_search_options", "not supported"),
                ({"tools": [{"type": "function"}]}, "tools", "tools are not supported: POST /v1/models/NAME/render"), ({"tools": {}}, "tools", "not supported"),
                ({"functions": [{}]}, "functions", "not supported"), ({"tool_choice": "required"}, "tool_choice", "not supported"),
                ({"tool_choice": {"type": "function"}}, "tool_choice", "not supported"), ({"function_call": {"name": "x"}}, "function_call", "not supported"),
                ({"response_format": {"type": "json_object"}}, "response_format", "structured output is not supported"),
                ({"response_format": "text"}, "response_format", "structured output"), ({"modalities": ["text", "audio"]}, "modalities", "audio is not supported"),
                ({"modalities": "text"}, "modalities", "must be"), ({"chat_template_kwargs": []}, "chat_template_kwargs", "an object"),
                ({"documents": {}}, "documents", "a list"), ({"now": "soon"}, "now", "a time"), ({"logprobs": 2}, "logprobs", "true or false"),
                ({"top_logprobs": 2}, "top_logprobs", 'requires "logprobs"'), ({"logprobs": True, "top_logprobs": 65}, "top_logprobs", "from 0 to 64"),
                ({"logprobs": True, "top_logprobs": True}, "top_logprobs", "from 0 to 64"), ({"n": 2, "temperature": 0}, "n", "identical"),
                ({"n": 2, "model": "greedy"}, "n", "identical"), ({"stream_options": {"include_usage": True}}, "stream_options", "stream"),
                ({"max_completion_tokens": 0}, "max_completion_tokens", "at least 1"), ({"logit_bias": {"99": 1}}, "logit_bias[99]", "are 0 to 19"),
                ({"prompt": "hello"}, "prompt", 'use "messages"'), ({"truncate": True}, "truncate", "shorten"), ({"echo": True}, "echo", "continue_final_message"),
                ({"reasoning_effort": "low"}, "reasoning_effort", "chat_template_kwargs"), ({"beams": 2}, "beams", "/generate"),
                ({"chat_template": "x"}, "chat_template", "definition"), ({"message": []}, "message", 'messages'), ({"temperature": 3e9}, None, None),
                ({"tool_choice": "auto\0"}, "tool_choice", "not supported"),
                ({"model": "mute"}, "model", 'without a chat template) does not support /v1/chat/completions: set "chat_template" in its definition'), ({"model": "bert"}, "model", "encoder")):
            with self.subTest(request=request):
                answer = self.post(**request)
                if param is None:
                    self.assertEqual(answer.status, 200)
                else:
                    self.error(answer, 400, "invalid_request", param, words)
        self.error(self.post(model="nobody"), 404, "model_not_found", "model", "Available: gpt, endless, pair")
        self.error(self.server.get(PATH), 405, "method_not_allowed")
        self.error(self.post(max_tokens=10 ** 9), 413, "too_large")
        self.assertEqual(self.chat()["usage"]["prompt_tokens"], 5)

    def test_memory(self):
        """A conversation that cannot fit is too large, and nothing stays charged, whatever becomes of a request."""
        self.error(self.post(messages=[{}] * 300000), 413, "too_large", None, "memory budget")
        with Served({"m": dict(RANDOM, **SIZES, kind="decoder", tokenizer=os.path.join(self.folder.name, "talks"))}, memory_budget_bytes=64 << 20) as server:
            many, text = [{}] * 100000, "a" * 200000  # as they are kept, and while they are read
            both = {"messages": many, "documents": ["a" * 645000]}
            self.error(server.post(PATH, both), 413, "too_large", None, "the memory budget is")
            self.problem(server.post("/v1/models/m/render", both), 413, "too-large")
            for _ in range(4):
                self.error(server.post(PATH, {"messages": many}), 400, "invalid_request", "messages[0].role")
                self.error(server.post(PATH, {"messages": many, "tools": 1}), 400, "invalid_request", "tools")
                self.error(server.post(PATH, dict({"documents": many}, messages=HELLO, max_tokens=0)), 400, "invalid_request", "max_tokens")
                self.ok(server.post("/v1/models/m/render", {"messages": HELLO, "documents": many}))
                self.ok(server.post(PATH, {"messages": HELLO, "documents": [text], "max_tokens": 1}))

    def test_long_values(self):
        """A worker parses them, and reports the same as of short ones."""
        long = {"role": "user", "content": "h" * 600}
        right = self.chat(messages=[long, *HELLO])["choices"]
        others = {"metadata": ["a" * 600, {}], "user": "u" * 600, "documents": ["d" * 600], "chat_template_kwargs": {"x": "v" * 600}}
        self.assertEqual(self.chat(messages=[long, *HELLO], **others)["choices"], right)
        twice = json.dumps({"model": "gpt", "messages": [dict(long, name="twice")]}).replace("name", "role").encode()
        self.error(self.server.post(PATH, twice), 400, "invalid_request", "messages", "duplicate key")
        for request, param, words in (({"messages": [long, {"role": "user"}]}, "messages[1].content", "a text"), ({"messages": "h" * 600}, "messages", "a list"),
                                      ({"documents": long}, "documents", "a list"), ({"chat_template_kwargs": [long]}, "chat_template_kwargs", "an object"),
                                      ({"tools": [long]}, "tools", "not supported"), ({"tool_choice": long}, "tool_choice", "not supported"),
                                      ({"response_format": long}, "response_format", "structured output"), ({"metadata": "m" * 4200000}, "metadata", "longer than 4194304"),
                                      ({"messages": [long], "chat_template_kwargs": {"a": ["b" * 600, 10 ** 30]}}, "chat_template_kwargs", "out of range")):
            self.error(self.post(**request), 400, "invalid_request", param, words)
        for request, words in (({"tools": long}, "tools must be a list"), ({"tools": [long, 10 ** 30]}, "out of range")):
            answer = self.server.post("/v1/models/gpt/render", dict({"messages": [long]}, **request))
            self.problem(answer, 400, "invalid-request", "/tools")
            self.assertIn(words, answer.json["detail"])

    def test_an_io_thread_parses_no_conversation(self):
        """Jansson takes a fifth of a microsecond for a byte of many objects, and frees them as slowly."""
        many = [{}] * 100000
        with Served({"m": dict(RANDOM, **SIZES, kind="decoder", tokenizer=os.path.join(self.folder.name, "talks"))}, memory_budget_bytes=1 << 29) as server:
            for request in {"messages": many}, {"messages": HELLO, "chat_template_kwargs": {"x": many}, "max_tokens": 1}, {"messages": HELLO, "documents": many,
                                                                                                                      "top_logprobs": 1}:
                self.assertIn(server.post(PATH, request).status, (200, 400))
            self.ok(server.post("/v1/models/m/render", {"messages": HELLO, "tools": many}))
            self.assertLess(server.computed("attend-io"), server.computed("attend-worker"))

    def test_fields_without_effect(self):
        right = self.chat()["choices"]
        nulls = dict.fromkeys(("max_completion_tokens", "temperature", "top_p", "n", "stop", "seed", "stream", "stream_options", "logprobs", "top_logprobs",
                               "presence_penalty", "frequency_penalty", "logit_bias", "user", "top_k", "min_p", "ignore_eos", "response_format", "tools",
                               "functions", "tool_choice", "function_call", "parallel_tool_calls", "metadata", "store", "service_tier", "modalities",
                               "documents", "chat_template_kwargs", "add_generation_prompt", "continue_final_message", "now", "safety_identifier",
                               "prompt_cache_key", "prompt_cache_retention", "verbosity", "audio", "prediction", "web_search_options",
                               "reasoning_effort"))
        self.assertEqual(self.chat(**nulls)["choices"], right)
        others = {"tools": [], "functions": [], "tool_choice": "auto", "function_call": "none", "parallel_tool_calls": True, "metadata": {"a": "b" * 20000},
                  "store": False, "service_tier": "auto", "modalities": ["text"], "response_format": {"type": "text"}, "user": "u",
                  "safety_identifier": "s", "prompt_cache_key": "k", "prompt_cache_retention": "24h", "verbosity": "low"}
        self.assertEqual(self.chat(**others)["choices"], right)

    def test_models_that_chat(self):
        names = [one["id"] for one in self.server.get("/v1/models").json["data"]]
        tasks = {name: "chat" in self.server.get(f"/v1/models/{name}").json["tasks"] for name in names}
        self.assertEqual({name for name, chats in tasks.items() if not chats}, {"mute", "bert"})


del Completing  # its tests are test_completions'

if __name__ == "__main__":
    unittest.main()
