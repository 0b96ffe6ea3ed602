"""test_beams: searches with beams, beside a plain one over /score; their settings, forms and every mistake."""
import json
import os
import random
import unittest

import beams
import golden
from support import Server, ServerCase, attend, wait_until

RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 2, "width": 32,
          "heads": 4, "feed_forward": 64, "vocabulary": 50}
MODELS = {"small": RANDOM,
          "turned": dict(RANDOM, layers=3, width=24, heads=3, norm="pre", norm_kind="rms", gated=True,
                         activation="silu", positions="rotary", vocabulary=40),
          "ends": dict(RANDOM, transformer={"random": {"seed": 3}}, vocabulary=12, end=[2, 3, 5]),
          "forced": dict(RANDOM, transformer={"random": {"seed": 4}}, vocabulary=30, forced_end=7)}
ENDS = {"small": [2], "turned": [2], "ends": [2, 3, 5], "forced": [2]}
VOCABULARY = {"small": 50, "turned": 40, "ends": 12, "forced": 30}
TEXTS = [[1, 2, 3], [6], [7, 8, 9, 10, 11]]
ASKED = {"tokens": TEXTS, "beams": 3, "returns": 3, "max_tokens": 7}


class Golden(ServerCase):
    """What a search finds over the log probabilities of published code."""

    @classmethod
    def start(cls):
        return golden.serve(golden.cases("search"))

    def test_searches(self):
        searches = 0
        for name, case in golden.cases("search"):
            with self.subTest(model=name, case=case["name"]):
                tokens = case.get("source_tokens", case.get("tokens"))
                answer = self.ok(self.server.post(f"/v1/models/{name}/generate", dict(case["request"], tokens=tokens)))
                for got, wanted in zip(answer["sequences"], case["expected"], strict=True):
                    self.assertEqual([sequence["tokens"] for sequence in got], wanted["tokens"])
                    self.assertEqual([sequence["finish"] for sequence in got], wanted["finish"])
                    for sequence, score in zip(got, wanted["score"], strict=True):
                        self.assertLessEqual(abs(sequence["score"] - score), 1e-4 + 1e-4 * abs(score))
                searches += 1
        self.assertGreater(searches, 100)


class Case(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS})

    def post(self, request, model="small", headers=None):
        return self.server.post(f"/v1/models/{model}/generate", request, headers)

    def answer(self, request, model="small"):
        return self.ok(self.post(request, model))

    def serve(self, models, **settings):
        server = Server(dict(settings, models=models))
        self.addCleanup(server.kill)
        return server

    def same(self, model, request):
        """The service finds what a plain search finds, to the last bit, and by the same ways."""
        answer = beams.numbers(self.answer(dict(request, return_search=True), model))
        for item, text in enumerate(request["tokens"]):
            done, steps = beams.search(
                beams.asker(self.server, model, text), request["beams"], request["max_tokens"], ENDS[model],
                request.get("stop_tokens", ()), request.get("length_penalty", 1.0),
                request.get("early_stopping", False), request.get("min_tokens", 0),
                request.get("banned_tokens", ()), 7 if model == "forced" else None)
            self.assertEqual(answer["search"][item], beams.as_search(steps))
            self.assertEqual(answer["sequences"][item], beams.as_answer(done, request.get("returns", 1)))
        return answer


class Beams(Case):
    def test_a_plain_search_finds_the_same(self):
        chance = random.Random(5)
        for _ in range(40):
            model = chance.choice(list(MODELS))
            words = VOCABULARY[model]
            width = chance.choice([2, 2, 3, 4, 7])
            request = {"tokens": [[chance.randrange(words) for _ in range(chance.choice([1, 2, 5, 70]))]
                                  for _ in range(chance.randrange(1, 4))],
                       "beams": width, "returns": chance.randrange(1, width + 1),
                       "max_tokens": chance.choice([1, 2, 5, 12]),
                       "length_penalty": chance.choice([1.0, 0.0, 0.6, 2.0, -1.0]),
                       "early_stopping": chance.choice([False, True, "never"])}
            if chance.random() < 0.3:
                request["min_tokens"] = chance.randrange(6)
            if chance.random() < 0.3:
                request["stop_tokens"] = [chance.randrange(words) for _ in range(3)]
            if chance.random() < 0.2:
                request["banned_tokens"] = [chance.randrange(words) for _ in range(3)]
            with self.subTest(model=model, request=request):
                self.same(model, request)

    def test_ways_of_more_than_a_block(self):
        """Keys are kept in blocks of 64: ways end and fork in front of, on and behind the ends of these."""
        self.same("small", {"tokens": [[1] * 60, [2] * 3], "beams": 4, "returns": 4, "max_tokens": 75, "min_tokens": 70})

    def test_what_there_is(self):
        answer = self.answer(dict(ASKED, return_top=4))
        self.assertEqual(sorted(answer), ["model", "sequences", "usage"])
        for text, sequences in zip(TEXTS, answer["sequences"]):
            self.assertEqual(len(sequences), 3)
            self.assertEqual(sequences, sorted(sequences, key=lambda s: -s["score"]))
            for sequence in sequences:
                self.close_to(sequence["score"], sum(sequence["log_probabilities"]) / len(sequence["tokens"]), 1e-5)
                scored = self.ok(self.server.post("/v1/models/small/score", {
                    "tokens": text, "targets": sequence["tokens"], "return_top": 4}))
                self.assertEqual(scored["log_probabilities"], sequence["log_probabilities"])
                self.assertEqual(scored["top"], sequence["top"])
        tokens = sum(len(s["tokens"]) for sequences in answer["sequences"] for s in sequences)
        self.assertEqual(answer["usage"], {"tokens": 9, "cached": 0, "generated": tokens})

    def test_one_item_alone_finds_the_same(self):
        together = self.answer(dict(ASKED, return_search=True))
        for item, text in enumerate(TEXTS):
            alone = self.answer(dict(ASKED, tokens=text, return_search=True))
            self.assertEqual(alone["sequences"], together["sequences"][item])
            self.assertEqual(alone["search"], together["search"][item])

    def test_a_beginning_that_is_known_changes_nothing(self):
        server = self.serve({"small": RANDOM}, prefix_cache_bytes=1 << 20)
        request = {"tokens": [[n % 50 for n in range(150)], [n % 50 for n in range(70)] + [3]], "beams": 3,
                   "returns": 3, "max_tokens": 9, "return_search": True}
        right = self.answer(request)
        for _ in range(3):
            answer = self.ok(server.post("/v1/models/small/generate", request))
            for name in ("sequences", "search"):
                self.assertEqual(answer[name], right[name])

    def test_fewer_may_be_found(self):
        """With one token that is not banned there is one way."""
        request = {"tokens": [[1, 2], [3]], "beams": 4, "returns": 3, "max_tokens": 5, "min_tokens": 5,
                   "banned_tokens": [token for token in range(12) if token != 9], "return_search": True}
        answer = self.answer(request, "ends")
        for sequences, steps in zip(answer["sequences"], answer["search"]):
            self.assertEqual([s["tokens"] for s in sequences], [[9] * 5])
            self.assertEqual([len(step) for step in steps], [1, 1, 1, 1, 0])
        self.assertEqual(answer["usage"]["generated"], 10)
        none = dict(request, banned_tokens=list(range(12)))
        self.assertIn("every token is banned", self.problem(self.post(none, "ends"), 400, "invalid-request")["detail"])

    def test_one_beam_is_greedy(self):
        greedy = self.answer({"tokens": TEXTS, "max_tokens": 7})
        self.assertEqual(self.answer({"tokens": TEXTS, "max_tokens": 7, "beams": 1, "length_penalty": 3,
                                      "early_stopping": "never"}), greedy)

    def test_an_empty_batch(self):
        self.assertEqual(self.answer({"tokens": [], "beams": 4, "return_search": True}), {
            "model": "small", "sequences": [], "search": [], "usage": {"tokens": 0, "cached": 0, "generated": 0}})

    def test_defaults_of_a_model(self):
        searching = dict(RANDOM, generate={"beams": 3, "length_penalty": 0.5, "early_stopping": True})
        server = self.serve({"searching": searching, "drawing": dict(RANDOM, generate={"temperature": 1}),
                             "banning": dict(RANDOM, generate={"banned_tokens": [11, 3, 11], "top_p": 0.7})})
        told = server.get("/v1/models/searching").json["generate"]
        self.assertEqual([told["beams"], told["length_penalty"], told["early_stopping"], told["banned_tokens"]],
                         [3, 0.5, True, []])
        banning = server.get("/v1/models/banning")
        self.assertEqual(banning.json["generate"]["banned_tokens"], [11, 3])
        self.assertIn(b'"top_p":0.7,', banning.body)  # not 0.69999999999999996

        def ask(model, **more):
            return server.post(f"/v1/models/{model}/generate", dict(more, tokens=TEXTS, max_tokens=7))
        right = self.answer(dict(ASKED, length_penalty=0.5, early_stopping=True))["sequences"]
        self.assertEqual(self.ok(ask("searching", returns=3))["sequences"], right)
        greedy = self.answer({"tokens": TEXTS, "max_tokens": 7})["sequences"]
        for more in ({"beams": 1}, {"temperature": 0}):
            self.assertEqual(self.ok(ask("searching", **more))["sequences"], greedy)
        drawn = self.answer({"tokens": TEXTS, "max_tokens": 7, "temperature": 1, "seed": 4})["sequences"]
        self.assertEqual(self.ok(ask("searching", temperature=1, seed=4))["sequences"], drawn)
        self.assertEqual(self.ok(ask("drawing", seed=4))["sequences"], drawn)
        self.assertEqual(self.ok(ask("drawing", beams=3, returns=3))["sequences"], self.answer(ASKED)["sequences"])
        self.assertIn('"beams": 1', self.problem(ask("searching", stream=True), 400, "invalid-request",
                                                 "/stream")["detail"])
        self.assertEqual(ask("searching", stream=True, beams=1).status, 200)

    def test_what_is_refused(self):
        for more, pointer in (({"beams": 0}, "/beams"), ({"beams": 65}, "/beams"), ({"beams": 2.0}, "/beams"),
                              ({"returns": 4}, "/returns"), ({"temperature": 1}, "/temperature"),
                              ({"length_penalty": None}, "/length_penalty"),
                              ({"early_stopping": "always"}, "/early_stopping"), ({"stream": True}, "/stream"),
                              ({"num_beams": 3}, "/num_beams"), ({"targets": [[1]] * 3}, "/targets"),
                              ({"beams": 1, "returns": 1, "return_search": True}, "/return_search")):
            with self.subTest(more=more):
                self.problem(self.post(dict(ASKED, **more)), 400, "invalid-request", pointer)
        for ask, request in (("score", {"tokens": [1], "targets": [2]}), ("encode", {"tokens": [1]})):
            for name in ("beams", "length_penalty", "early_stopping", "return_search"):
                self.problem(self.server.post(f"/v1/models/small/{ask}", dict(request, **{name: 1})), 400,
                             "invalid-request", f"/{name}")

    def test_limits(self):
        server = self.serve({"small": RANDOM}, max_sequences=12, max_items=64)

        def ask(**request):
            return server.post("/v1/models/small/generate", dict(request, max_tokens=3))
        self.ok(ask(tokens=[[1]] * 3, beams=4))
        self.assertEqual(self.problem(ask(tokens=[[1]] * 4, beams=4), 413, "too-large")["limit"], "max_sequences")
        self.assertEqual(self.problem(ask(tokens=[[1]] * 4, beams=20), 413, "too-large")["limit"], "max_items")
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))

    def test_the_command_gives_the_same_bytes(self):
        config = os.path.join(self.server.folder, "attend.json")
        request = dict(ASKED, return_search=True, return_top=2)
        status, out, _ = attend("run", "small", "--generate", "--config", config, data=json.dumps(request).encode())
        self.assertEqual((status, out), (0, self.post(request).body))
        coded = self.answer(dict(request, encoding_format="base64"))
        self.assertEqual(coded, self.answer(request))


if __name__ == "__main__":
    unittest.main()
