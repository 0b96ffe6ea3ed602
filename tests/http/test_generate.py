"""test_generate: decoders go on from texts: greedy and drawn, at once and as a stream; every mistake."""
import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import time
import unittest

import golden
from support import BIN, JSON_TYPE, MODE, PATIENCE, Server, ServerCase, attend, clean_environment, wait_until

SAFETENSORS = "application/x-safetensors"
RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 2, "width": 32,
          "heads": 4, "feed_forward": 64, "vocabulary": 50}
# Drawing it is most of what these tests take under the thread sanitizer.
LARGE = dict(RANDOM, layers=4, width=256, feed_forward=1024, vocabulary=4000 if MODE == "tsan" else 20000)
MODELS = {"small": RANDOM, "large": LARGE, "encoder": dict(RANDOM, kind="encoder"),
          "demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}
TEXTS = [[1, 2, 3], [6], [7, 8, 9, 10, 11]]
ASKED = {"tokens": TEXTS, "max_tokens": 7}
LONG = {"tokens": [[1], [2, 3, 4]], "max_tokens": 8, "min_tokens": 8}
DRAWN = dict(ASKED, temperature=1, returns=3, seed=5)


@unittest.skipIf(MODE == "tsan", "what threads share is met in Shared and Stream")
class Golden(ServerCase):
    """The tokens and the numbers of published code, through the whole server."""

    @classmethod
    def start(cls):
        return golden.serve(golden.cases("generate", source=False))

    def test_greedy(self):
        for name, case in golden.cases("generate", source=False):
            with self.subTest(model=name, case=case["name"]):
                answer = self.ok(self.server.post(f"/v1/models/{name}/generate", {
                    "tokens": case["tokens"], "max_tokens": case["max_tokens"]}))
                right = case["expected"]
                for item, [sequence] in enumerate(answer["sequences"]):
                    self.assertEqual(sequence["tokens"], right["tokens"][item])
                    self.assertEqual(sequence["finish"], right["finish"][item])
                    for a, b in zip(sequence["log_probabilities"], right["log_probabilities"][item]):
                        self.assertLessEqual(abs(a - b), 1e-4 + 1e-4 * abs(b))


def events_of(text):
    """[(kind, what)] of a stream that is whole."""
    assert text.endswith("\n\n"), text[-80:]
    events = []
    for block in text[:-2].split("\n\n"):
        lines = block.split("\n")
        kind = lines.pop(0)[len("event: "):] if lines[0].startswith("event: ") else "message"
        assert len(lines) == 1 and lines[0].startswith("data: "), block
        events.append((kind, json.loads(lines[0][len("data: "):])))
    return events


def put_together(events, texts, returns):
    """The answer that a stream's events are."""
    sequences = [[{"tokens": [], "log_probabilities": []} for _ in range(returns)] for _ in texts]
    for kind, event in events[:-1]:
        assert kind == "message", event
        sequence = sequences[event["item"]][event["sequence"]]
        if "token" in event:
            assert "finish" not in sequence
            sequence["tokens"].append(event["token"])
            sequence["log_probabilities"].append(event["log_probability"])
            if "top" in event:
                sequence.setdefault("top", []).append(event["top"])
        else:
            sequence |= {"finish": event["finish"], "score": event["score"]}
    return {"sequences": sequences, "usage": events[-1][1]["usage"]}


class Case(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS, "default_model": "demo"})

    def post(self, request, model="small", headers=None):
        return self.server.post(f"/v1/models/{model}/generate", request, headers)

    def answer(self, request, model="small"):
        return self.ok(self.post(request, model))

    def serve(self, models, **settings):
        """A server of its own."""
        server = Server(dict(settings, models=models))
        self.addCleanup(server.kill)
        return server


@unittest.skipIf(MODE == "tsan", "what threads share is met in Shared and Stream")
class Generate(Case):
    def test_what_there_is(self):
        answer = self.answer(dict(ASKED, return_top=4))
        self.assertEqual(len(answer["sequences"]), 3)
        for [sequence] in answer["sequences"]:
            self.assertEqual(sorted(sequence), ["finish", "log_probabilities", "score", "tokens", "top"])
            self.assertEqual([len(sequence[name]) for name in ("tokens", "log_probabilities", "top")], [7, 7, 7])
            self.assertEqual(sequence["finish"], "length")
            self.assertEqual([top[0]["token"] for top in sequence["top"]], sequence["tokens"])
            self.close_to(sequence["score"], sum(sequence["log_probabilities"]), 1e-4)
        self.assertEqual(answer["usage"], {"tokens": 9, "cached": 0, "generated": 21})

    def test_scores_are_the_same_numbers(self):
        """Of what was generated, at once or in steps, alone or together, /score says the same."""
        for model in ("small", "large"):
            for request in (dict(ASKED, return_top=2), dict(DRAWN, return_top=2)):
                answer = self.answer(request, model)
                for text, sequences in zip(TEXTS, answer["sequences"]):
                    for sequence in sequences:
                        scored = self.ok(self.server.post(f"/v1/models/{model}/score", {
                            "tokens": text, "targets": sequence["tokens"], "return_top": 2}))
                        self.assertEqual(scored["log_probabilities"], sequence["log_probabilities"])
                        self.assertEqual(scored["top"], sequence["top"])

    def test_one_item_alone_has_the_same_tokens(self):
        for request in (ASKED, dict(DRAWN, temperature=0, returns=1)):
            together = self.answer(request)
            for item, text in enumerate(TEXTS):
                self.assertEqual(self.answer(dict(request, tokens=text))["sequences"], together["sequences"][item])

    def test_padding_counts_for_nothing(self):
        padded = dict(ASKED, tokens=[text + [-1] * (5 - len(text)) for text in TEXTS], valid_lens=[3, 1, 5])
        self.assertEqual(self.answer(padded), self.answer(ASKED))

    def test_a_text_cut_elsewhere_goes_on_the_same(self):
        whole = self.answer({"tokens": [1, 2], "max_tokens": 9}, "large")["sequences"][0]
        self.assertEqual(whole["finish"], "length")
        for cut in range(1, 9):
            part = self.answer({"tokens": [1, 2] + whole["tokens"][:cut], "max_tokens": 9 - cut},
                               "large")["sequences"][0]
            self.assertEqual(part["tokens"], whole["tokens"][cut:])
            self.assertEqual(part["log_probabilities"], whole["log_probabilities"][cut:])

    def test_seeds(self):
        first = self.answer(DRAWN)
        self.assertEqual(self.answer(DRAWN), first)
        self.assertNotEqual(self.answer(dict(DRAWN, seed=6))["sequences"], first["sequences"])
        tokens = [sequence["tokens"] for sequences in first["sequences"] for sequence in sequences]
        self.assertEqual(len(tokens), len(set(map(tuple, tokens))))
        self.assertEqual(first["usage"], {"tokens": 9, "cached": 0, "generated": sum(map(len, tokens))})
        one = dict(DRAWN, top_k=1, temperature=0.5)
        for sequences, [greedy] in zip(self.answer(one)["sequences"], self.answer(ASKED)["sequences"]):
            for sequence in sequences:
                self.assertEqual(sequence, greedy)
        self.assertEqual(self.answer(dict(DRAWN, top_p=1e-9))["sequences"], self.answer(one)["sequences"])

    def test_what_is_left_out(self):
        greedy = self.answer(ASKED)["sequences"][0][0]["tokens"]
        banned = self.answer(dict(ASKED, banned_tokens=greedy))["sequences"]
        self.assertFalse(set(greedy) & {token for [sequence] in banned for token in sequence["tokens"]})
        once = self.answer(dict(ASKED, no_repeat_ngram=1, max_tokens=40, min_tokens=40))["sequences"]
        for text, [sequence] in zip(TEXTS, once):
            self.assertEqual(len(set(text + sequence["tokens"])), len(text) + 40)
        strong = self.answer(dict(ASKED, repetition_penalty=1e6, max_tokens=20, min_tokens=20))["sequences"]
        for text, [sequence] in zip(TEXTS, strong):
            self.assertEqual(len(set(text + sequence["tokens"])), len(text) + 20)
        self.assertIn("every token is banned", self.problem(self.post(dict(ASKED, banned_tokens=list(range(50)))), 400,
                                                     "invalid-request")["detail"])

    def test_a_bias_in_a_search(self):
        """It is added to log probabilities there; those that are told stay the model's own."""
        [[best, *_]] = self.answer({"tokens": [[1, 2]], "max_tokens": 3, "beams": 2, "logit_bias": {"7": 100}, "min_tokens": 3})["sequences"]
        self.assertEqual(best["tokens"], [7, 7, 7])
        self.assertTrue(all(number < 0 for number in best["log_probabilities"]))
        self.assertGreater(best["score"], 90)
        [[one]] = self.answer({"tokens": [[1, 2]], "max_tokens": 3, "logit_bias": {"7": 100}})["sequences"]
        self.assertEqual(one["tokens"], [7, 7, 7])

    def test_a_text_that_does_not_end(self):
        likely = {"tokens": [[1, 2]], "max_tokens": 9, "logit_bias": {"2": 100}}
        for more in ({}, {"beams": 3}, {"temperature": 1}):
            for ignores, tokens, finish in ((False, [2], "end"), (True, [2] * 9, "length")):
                [[first, *_]] = self.answer(dict(likely, **more, ignore_eos=ignores))["sequences"]
                self.assertEqual((first["tokens"], first["finish"]), (tokens, finish), more)

    def test_the_end(self):
        asked = {"tokens": [1, 2], "max_tokens": 9, "no_repeat_ngram": 1}
        [whole] = self.answer(asked, "large")["sequences"]
        last = whole["tokens"][4]
        [ended] = self.answer(dict(asked, stop_tokens=[last]), "large")["sequences"]
        self.assertEqual((ended["tokens"], ended["finish"]), (whole["tokens"][:5], "stop"))
        [later] = self.answer(dict(asked, stop_tokens=[last], min_tokens=8), "large")["sequences"]
        self.assertNotIn(last, later["tokens"][:8])
        [default] = self.answer({"tokens": [1], "min_tokens": 64})["sequences"]
        self.assertEqual((len(default["tokens"]), default["finish"]), (64, "length"))

    def test_positions(self):
        server = self.serve({"gpt": golden.definition("gpt2-a")})
        positions = server.get("/v1/models/gpt").json["positions"]

        def ask(tokens, **more):
            return server.post("/v1/models/gpt/generate", dict(more, tokens=[[1] * tokens]))
        tokens = self.ok(ask(positions - 4, min_tokens=99))["sequences"][0][0]["tokens"]
        self.assertEqual(len(tokens), 5)
        self.ok(ask(positions - 4, max_tokens=5))
        self.problem(ask(positions - 4, max_tokens=6), 400, "invalid-request", "/max_tokens")
        self.problem(ask(positions + 1), 400, "invalid-request", "/tokens/0")

    def test_an_empty_batch(self):
        self.assertEqual(self.answer({"tokens": []}), {
            "model": "small", "sequences": [], "usage": {"tokens": 0, "cached": 0, "generated": 0}})

    def test_what_is_refused(self):
        for request, pointer in (({}, "/tokens"), ({"tokens": [[1], []]}, "/tokens/1"),
                                 ({"tokens": [[1], [2, 50]]}, "/tokens/1/1"),
                                 (dict(ASKED, max_tokens=0), "/max_tokens"),
                                 (dict(ASKED, max_tokens=1.5), "/max_tokens"),
                                 (dict(ASKED, min_tokens=-1), "/min_tokens"),
                                 (dict(ASKED, returns=2), "/returns"), (dict(ASKED, returns=0), "/returns"),
                                 (dict(ASKED, temperature=-0.1), "/temperature"),
                                 (dict(ASKED, temperature="1"), "/temperature"),
                                 (dict(ASKED, top_p=0), "/top_p"), (dict(ASKED, top_p=1.01), "/top_p"),
                                 (dict(ASKED, top_k=-2), "/top_k"), (dict(ASKED, seed=-1), "/seed"),
                                 (dict(ASKED, repetition_penalty=0), "/repetition_penalty"),
                                 (dict(ASKED, no_repeat_ngram=-1), "/no_repeat_ngram"),
                                 (dict(ASKED, min_p=-0.1), "/min_p"), (dict(ASKED, frequency_penalty=3), "/frequency_penalty"),
                                 (dict(ASKED, logit_bias={"50": 1}), "/logit_bias/50"), (dict(ASKED, logit_bias={"1": "a"}), "/logit_bias/1"),
                                 (dict(ASKED, logit_bias={"1": 1e3}), "/logit_bias/1"), (dict(ASKED, ignore_eos=0), "/ignore_eos"),
                                 (dict(ASKED, stop_tokens=[1, 50]), "/stop_tokens/1"),
                                 (dict(ASKED, stop_tokens=3), "/stop_tokens"),
                                 (dict(ASKED, banned_tokens=[-1]), "/banned_tokens/0"),
                                 (dict(ASKED, return_top=65), "/return_top"), (dict(ASKED, stream=1), "/stream"),
                                 (dict(ASKED, beams=65), "/beams"), (dict(ASKED, targets=[[1]]), "/targets"),
                                 (dict(ASKED, trace={}), "/trace"),
                                 (dict(ASKED, max_new_tokens=4), "/max_new_tokens")):
            with self.subTest(pointer=pointer):
                self.problem(self.post(request), 400, "invalid-request", pointer)
        self.problem(self.post(ASKED, headers={"Accept": SAFETENSORS}), 406, "not-acceptable")
        for model in ("encoder", "demo"):
            detail = self.problem(self.post(ASKED, model), 404, "not-found")["detail"]
            self.assertNotIn("/generate", detail)
        self.problem(self.server.post("/v1/models/small/encode", ASKED), 400, "invalid-request", "/max_tokens")

    def test_limits(self):
        self.problem(self.post({"tokens": [1], "max_tokens": 2000000}), 413, "too-large")
        server = self.serve({"small": RANDOM}, max_items=5, memory_budget_bytes=4000000)
        def ask(**request):
            return server.post("/v1/models/small/generate", request)
        problem = self.problem(ask(tokens=[[1]] * 3, returns=2, temperature=1), 413, "too-large")
        self.assertEqual(problem["limit"], "max_items")
        problem = self.problem(ask(tokens=[[1]] * 5, max_tokens=30000), 413, "too-large")
        self.assertEqual(problem["limit"], "memory_budget_bytes")
        # what was refused gives its memory back when its connection has been answered
        self.assertTrue(wait_until(lambda: ask(tokens=[[1]] * 5, max_tokens=30).status == 200))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))

    def test_the_command_gives_the_same_bytes(self):
        config = os.path.join(self.server.folder, "run.json")
        with open(config, "w") as file:
            json.dump({"models": {name: MODELS[name] for name in ("small", "encoder")}}, file)
        status, out, _ = attend("run", "small", "--generate", "--config", config, data=json.dumps(DRAWN).encode())
        self.assertEqual((status, out), (0, self.post(DRAWN).body))
        streamed = json.dumps(dict(DRAWN, stream=True)).encode()
        status, out, _ = attend("run", "small", "--generate", "--config", config, data=streamed)
        self.assertEqual(status, 0)
        together = put_together(events_of(out.decode()), TEXTS, 3)
        self.assertEqual(together["sequences"], self.answer(DRAWN)["sequences"])
        banned = json.dumps(dict(DRAWN, stream=True, banned_tokens=list(range(50)))).encode()
        status, out, words = attend("run", "small", "--generate", "--config", config, data=banned)
        self.assertEqual((status, out), (1, b""))
        self.assertIn("every token is banned", words)
        status, out, words = attend("run", "small", "--generate", "--lines", "--config", config,
                                    data=json.dumps(DRAWN).encode() + b"\n" + streamed + b"\n")
        self.assertEqual((status, len(out.splitlines())), (1, 2))
        self.assertEqual(json.loads(out.splitlines()[0])["sequences"], together["sequences"])
        self.assertIn(b"a line is a whole answer", out)
        status, _, words = attend("run", "encoder", "--generate", "--config", config, data=b"{}")
        self.assertEqual(status, 2)
        self.assertIn("cannot generate", words)

    def test_a_stream_that_cannot_be_written_ends(self):
        """Nothing more is computed then: all 20 000 tokens would take minutes."""
        config = os.path.join(self.server.folder, "attend.json")
        request = json.dumps({"tokens": [1], "max_tokens": 20000, "min_tokens": 20000, "stream": True}).encode()
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BIN, "run", "large", "--generate", "--config", config], input=request, stdout=full,
                                  stderr=subprocess.PIPE, env=clean_environment(), timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write the answer", done.stderr)


class Shared(Case):
    """What requests have in common: counters, the prefix cache, the bounds of sequences."""

    def test_tokens_are_counted(self):
        def counts():
            return [self.server.metric("attend_tokens_total", f'work="{work}"') for work in ("generate", "choose")]
        before = counts()
        self.answer(ASKED)
        self.assertEqual(counts(), [before[0] + 9, before[1] + 21])
        self.post(dict(ASKED, stream=True))
        self.assertTrue(wait_until(lambda: counts() == [before[0] + 18, before[1] + 42]))

    def test_what_tokens_took_is_told(self):
        """One first token of a request, and as many rounds behind it as its longest sequence has tokens more."""
        server = self.serve({"small": RANDOM}, access_log="all")

        def counts():
            return [server.metric("attend_token_duration_seconds_count", f'token="{which}"') for which in ("first", "next")]
        for request, rounds in (({"tokens": [3], "max_tokens": 1}, 0), (LONG, 7), (dict(LONG, stream=True), 7)):
            before = counts()
            self.assertEqual(server.post("/v1/models/small/generate", request).status, 200)
            self.assertTrue(wait_until(lambda: counts() == [before[0] + 1, before[1] + rounds]))
        self.assertTrue(wait_until(lambda: sum('"generated"' in line for line in server.lines) == 3))
        lines = [json.loads(line) for line in server.lines if '"generated"' in line]
        self.assertEqual([(line["tokens"], line["generated"]) for line in lines], [(1, 1), (4, 16), (4, 16)])
        for line in lines:
            self.assertGreater(line["first_token_ms"], 0)
            self.assertLessEqual(line["first_token_ms"], line["total_ms"])

    def test_beginnings_that_are_known(self):
        """Blocks of 64 tokens, of a text and of what was generated: the same answer, and `cached` says how many."""
        server = self.serve({"small": RANDOM, "large": LARGE}, prefix_cache_bytes=1 << 24)
        text = [i * 7 % 50 for i in range(200)]

        def go_on(tokens, cached, model="small", **more):
            asked = dict({"tokens": tokens, "max_tokens": 80, "min_tokens": 80, "return_top": 2}, **more)
            plain = self.answer(asked, model)
            answer = self.ok(server.post(f"/v1/models/{model}/generate", asked))
            self.assertEqual(answer["sequences"], plain["sequences"])
            self.assertEqual((plain["usage"]["cached"], answer["usage"]["cached"]), (0, cached))
            streamed = server.post(f"/v1/models/{model}/generate", dict(asked, stream=True)).body.decode()
            self.assertIn('"generated"', streamed)
            return answer["sequences"]
        [said] = go_on(text, 0)
        self.assertEqual(server.metric("attend_prefix_limit_bytes"), 1 << 24)
        self.assertEqual(self.server.metric("attend_prefix_limit_bytes"), 0)
        self.assertGreater(server.metric("attend_prefix_bytes"), 4 * 64 * 2 * 2 * 32 * 4)
        go_on(text + said["tokens"] + [1, 2, 3], 256)  # 280 were there but for the last, which was never fed
        go_on(text[:193], 192)
        go_on(text[:192], 128)  # one token has to be fed
        go_on([text, text[:64] + [0] * 64, [49] + text], 192 + 64, temperature=1, returns=2)
        if MODE != "tsan":  # it takes the same locks
            go_on(text, 0, "large")
        self.assertGreater(server.metric("attend_tokens_total", 'work="recall"'), 192)
        self.assertEqual(self.server.metric("attend_tokens_total", 'work="recall"'), 0)
        self.assertTrue(wait_until(
            lambda: server.metric("attend_inflight_bytes") == server.metric("attend_prefix_bytes")))
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: server.metric("attend_reloads_total", 'result="ok"') == 1))
        go_on(text, 0)

    def test_beginnings_have_so_much_memory_and_no_more(self):
        server = self.serve({"small": RANDOM}, prefix_cache_bytes=100000)
        for i in range(20):
            self.ok(server.post("/v1/models/small/generate", {"tokens": [i] * 130, "max_tokens": 1}))
        self.assertLessEqual(server.metric("attend_prefix_bytes"), 100000)
        answer = self.ok(server.post("/v1/models/small/generate", {"tokens": [19] * 130, "max_tokens": 1}))
        self.assertEqual(answer["usage"]["cached"], 128)
        self.assertEqual(self.ok(server.post("/v1/models/small/generate", {
            "tokens": [0] * 130, "max_tokens": 1}))["usage"]["cached"], 0)
        server = self.serve({"small": RANDOM}, prefix_cache_bytes=1 << 20, memory_budget_bytes=1 << 21)
        for i in range(8):
            self.ok(server.post("/v1/models/small/generate", {"tokens": [i] * 700, "max_tokens": 1}))
        full = server.metric("attend_prefix_bytes")
        self.assertGreater(full, 900000)
        self.ok(server.post("/v1/models/small/generate", {"tokens": [1], "max_tokens": 2500}))
        self.assertLess(server.metric("attend_prefix_bytes"), full)  # requests come first
        config = {"models": {"small": RANDOM}, "prefix_cache_bytes": 100000, "memory_budget_bytes": 199999}
        path = os.path.join(server.folder, "small.json")
        with open(path, "w") as file:
            json.dump(config, file)
        status, _, words = attend("serve", "--config", path, "--listen", "127.0.0.1:0")
        self.assertEqual(status, 2)
        self.assertIn("prefix_cache_bytes: 100000 is more than half of the memory budget", words)

    def test_so_many_sequences_and_no_more(self):
        server = self.serve({"large": LARGE}, max_sequences=3, max_tokens=20000)
        asked = {"tokens": [[1], [2]], "max_tokens": 20000, "min_tokens": 20000, "stream": True}
        problem = self.problem(server.post("/v1/models/large/generate", {"tokens": [[1]] * 4}), 413, "too-large")
        self.assertEqual((problem["limit"], problem["detail"]),
                         ("max_sequences", "4 sequences exceed the limit of 3 at the same time"))
        problem = self.problem(server.post("/v1/models/large/generate", dict(asked, max_tokens=20001)), 413,
                               "too-large")
        self.assertEqual(problem["limit"], "max_tokens")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("POST", "/v1/models/large/generate", json.dumps(asked), JSON_TYPE)
        response = connection.getresponse()
        self.assertIn(b"token", response.readline())
        self.assertEqual((server.metric("attend_sequences"), server.metric("attend_sequences_limit")), (2, 3))
        width, layers = LARGE["width"], LARGE["layers"]
        self.assertEqual(server.metric("attend_sequence_bytes"), 2 * 20000 * layers * 2 * width * 4)
        self.ok(server.post("/v1/models/large/generate", {"tokens": [1], "max_tokens": 2}))
        problem = self.problem(server.post("/v1/models/large/generate", {"tokens": [[1], [2]]}), 429, "overloaded")
        self.assertIn("max_sequences, 3", problem["detail"])
        self.assertEqual(server.metric("attend_sequences"), 2)
        response.close()
        connection.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_sequences") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_sequence_bytes") == 0))


class Stream(Case):
    def test_the_same_answer(self):
        for model in ("small", "large"):
            for request in (ASKED, dict(ASKED, return_top=64), DRAWN, dict(ASKED, stop_tokens=list(range(25)))):
                answer = self.answer(request, model)
                streamed = self.post(dict(request, stream=True), model)
                self.assertEqual(streamed.status, 200)
                self.assertEqual(streamed.headers["content-type"], "text/event-stream")
                events = events_of(streamed.body.decode())
                together = put_together(events, TEXTS, request.get("returns", 1))
                self.assertEqual(together, {name: answer[name] for name in ("sequences", "usage")})

    def test_readers_of_events_ask_for_nothing_else(self):
        for accept in ("text/event-stream", "text/event-stream;q=0.5, application/x-safetensors", "text/event-stream, text/html"):
            for stream, kind in ((True, "text/event-stream"), (False, "application/json")):
                answer = self.post(dict(ASKED, stream=stream), "small", {"Accept": accept})
                self.assertEqual((answer.status, answer.headers["content-type"]), (200, kind), answer)
        for accept in ("text/html", "text/event-stream;q=0"):
            self.assertEqual(self.post(dict(ASKED, stream=True), "small", {"Accept": accept}).status, 406)

    def test_long_ones(self):
        long = 60 if MODE == "tsan" else 300
        request = {"tokens": [[i] for i in range(20)], "max_tokens": long, "return_top": 8, "min_tokens": long}
        streamed = events_of(self.post(dict(request, stream=True)).body.decode())
        answer = self.answer(request)
        self.assertEqual(put_together(streamed, request["tokens"], 1)["sequences"], answer["sequences"])

    def test_a_refusal_has_its_status(self):
        self.problem(self.post(dict(ASKED, stream=True, top_p=0)), 400, "invalid-request", "/top_p")
        self.problem(self.post(dict(ASKED, stream=True, banned_tokens=list(range(50)))), 400, "invalid-request")

    def test_the_connection_stays(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/v1/models/small/generate", json.dumps(dict(ASKED, stream=True)), JSON_TYPE)
            events_of(connection.getresponse().read().decode())
        connection.close()

    def open_stream(self, server, request, model="large"):
        """A connection of which the header and the first event have been read."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("POST", f"/v1/models/{model}/generate", json.dumps(dict(request, stream=True)), JSON_TYPE)
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        self.assertIn(b"token", response.readline())
        return connection, response

    def test_tokens_come_one_by_one(self):
        """The first ones are read long before the last one is computed."""
        server = self.serve({"large": LARGE})
        connection, response = self.open_stream(server, {"tokens": [1], "max_tokens": 20000, "min_tokens": 20000})
        self.assertGreater(server.metric("attend_running"), 0)
        response.close()
        connection.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        self.ok(server.post("/v1/models/large/generate", {"tokens": [1], "max_tokens": 2}))

    def test_a_reader_that_does_not_read(self):
        server = self.serve({"small": RANDOM}, answer_timeout_ms=300)
        request = {"tokens": [[1]] * 10, "max_tokens": 3000, "min_tokens": 3000, "return_top": 64}
        body = json.dumps(dict(request, stream=True)).encode()
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.port))
            s.sendall(b"POST /v1/models/small/generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\n\r\n" % len(body) + body)
            other = self.ok(server.post("/v1/models/small/generate", {"tokens": [1], "max_tokens": 2}))
            self.assertEqual(len(other["sequences"][0]["tokens"]), 2)
            self.assertTrue(wait_until(
                lambda: server.metric("attend_rejected_total", 'reason="slow_reader"') == 1))
            self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))

    def test_a_silence(self):
        """Others' texts hold up a stream for more than a millisecond: it says that it is there. What it says else is
        the same."""
        server = self.serve({"large": LARGE}, stream_silence_ms=1)
        request = {"tokens": [1], "max_tokens": 3000, "min_tokens": 3000}
        right = self.answer(dict(request, max_tokens=40, min_tokens=40), "large")["sequences"][0]["tokens"]
        connection, response = self.open_stream(server, request)
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as other:
            body = json.dumps({"tokens": [[1] * 400] * 8, "max_tokens": 1}).encode()
            other.sendall(b"POST /v1/models/large/generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n" % len(body) + body)
            said, tokens = set(), right[:1]
            while len(tokens) < 40 or b": \n" not in said:
                line = response.readline()
                if line.startswith(b"data: "):
                    tokens.append(json.loads(line[6:])["token"])
                else:
                    said.add(line)
        self.assertEqual(tokens[:40], right)
        self.assertEqual(said, {b"\n", b": \n"})
        response.close()
        connection.close()

    def test_clients_that_leave_at_any_moment(self):
        """Reset before the first token, between two, and while the last ones are sent: nothing is left behind."""
        server, chance = self.serve(MODELS), random.Random(3)
        for _ in range(6):
            sockets = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(40)]
            for s in sockets:
                request = {"tokens": [[1], [2, 3]], "max_tokens": chance.choice([1, 5, 300]), "stream": True}
                body = json.dumps(request).encode()
                s.sendall(b"POST /v1/models/%s/generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n" % (chance.choice([b"small", b"large"]), len(body)) + body)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            chance.shuffle(sockets)
            for s in sockets:
                time.sleep(chance.random() * 0.005)  # a moment: whichever it is, all has to be well
                s.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        server.stop()

    def test_a_stop_ends_it_with_its_reason(self):
        server = self.serve({"large": LARGE}, drain_ms=200)
        connection, response = self.open_stream(server, {"tokens": [1], "max_tokens": 20000, "min_tokens": 20000})
        server.signal()
        kind, problem = events_of("data: {}\n\n" + response.read().decode().lstrip("\n"))[-1]
        self.assertEqual((kind, problem["status"]), ("error", 503))
        connection.close()
        self.assertEqual(server.wait(), 3)

    def test_deadlines(self):
        """The whole may take a second; how many tokens come before its end is the machine's affair."""
        server = self.serve({"large": LARGE}, generate_deadline_ms=1000)
        request = {"tokens": [1], "max_tokens": 20000, "min_tokens": 20000}
        late = "deadline-exceeded"

        def ends_behind_its_header():
            streamed = server.post("/v1/models/large/generate", dict(request, stream=True))
            if streamed.status == 200:
                kind, problem = events_of(streamed.body.decode())[-1]
                self.assertEqual((kind, problem["type"], problem["status"]), ("error", f"/problems/{late}", 504))
                return True
            self.problem(streamed, 504, late)
            return False
        self.assertTrue(wait_until(ends_behind_its_header))
        self.problem(server.post("/v1/models/large/generate", request), 504, late)
        self.problem(server.post("/v1/models/large/generate", request, {"X-Timeout-Ms": "50"}), 504, late)

    def test_a_pause(self):
        """With deadline_ms a millisecond no first token comes in time, whatever the whole may take."""
        server = self.serve({"large": LARGE}, deadline_ms=1)
        self.problem(server.post("/v1/models/large/generate", {"tokens": [[1] * 400] * 8}), 504, "deadline-exceeded")


if __name__ == "__main__":
    unittest.main()
