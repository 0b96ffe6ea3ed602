"""test_whole_heads: what each head of a whole model is worth: the numbers are those of requests with head_mask, bit for
bit; as a stream; every mistake.
"""
import http.client
import json
import math
import os
import random
import socket
import struct
import time
import unittest

import golden
import wholes
from support import JSON_TYPE, MODE, PATIENCE, Server, ServerCase, attend, f32, flat, wait_until
from test_generate import events_of

RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 3, "width": 32,
          "heads": 4, "feed_forward": 64, "vocabulary": 50}
LARGE = dict(RANDOM, layers=12 if MODE == "release" else 6, width=128, heads=32, feed_forward=512, vocabulary=500)
MODELS = {"small": RANDOM, "large": LARGE, "encoder": dict(RANDOM, kind="encoder"),
          "vectors": dict(RANDOM, kind="encoder", norm="pre", pool="mean", normalize=True),
          "pair": dict(RANDOM, kind="seq2seq", decoder={"layers": 2, "heads": 2}),
          "limited": dict(RANDOM, positions="learned", max_positions=8),
          "demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}
TOKENS, TARGETS = [[1, 2, 3], [6], [7, 8]], [[4, 5], [9, 10, 11], [12]]
ASKED = {"tokens": TOKENS, "targets": TARGETS}
LONG = {"tokens": [[i % 50 for i in range(60)]] * 4, "targets": [[7] * 20] * 4}  # of "large": seconds, a head little




class Case(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS, "default_model": "demo"})

    def post(self, request, model="small", headers=None, server=None):
        return (server or self.server).post(f"/v1/models/{model}/heads", request, headers)

    def answer(self, request, model="small"):
        return self.ok(self.post(request, model))

    def serve(self, models, **settings):
        """A server of its own."""
        server = Server(dict(settings, models=models))
        self.addCleanup(server.kill)
        return server

    def masked(self, request, name, heads, head):
        """The request without a head, on top of what it masks itself."""
        mask = dict(request.get("head_mask", {}))
        mask[name] = list(mask.get(name, [1] * heads))
        mask[name][head] = 0
        return dict(request, head_mask=mask)

    def total(self, model, request):
        """The sum of what /score gives, as the server sums: float32 numbers, in float64, one after the other."""
        scored = {field: value for field, value in request.items() if field != "attentions"}
        answer = self.ok(self.server.post(f"/v1/models/{model}/score", scored))
        total = 0.0
        for log in flat(answer["log_probabilities"]):
            total += f32(log)
        return total

    def check_scores(self, model, request, chance=None, most=None):
        """Every head, or `most` of them, against a request of its own."""
        answer = self.answer(request, model)
        full = self.total(model, request)
        self.assertEqual(answer["measure"], "log_probability")
        self.assertEqual(f32(answer["log_probability"]), f32(full))
        heads = [(name, head) for name, losses in answer["heads"].items() for head in range(len(losses))]
        self.assertEqual(sorted(map(tuple, answer["ranking"])), sorted(heads))
        order = [answer["heads"][name][head] for name, head in answer["ranking"]]
        self.assertEqual(order, sorted(order))
        for name, head in heads if most is None else chance.sample(heads, min(most, len(heads))):
            without = self.total(model, self.masked(request, name, len(answer["heads"][name]), head))
            self.assertEqual(f32(answer["heads"][name][head]), f32(full - without), (model, name, head))
        return answer

    def outputs(self, model, request):
        return [f32(x) for x in flat(self.ok(self.server.post(f"/v1/models/{model}/encode", request))["outputs"])]

    def check_outputs(self, model, request):
        answer = self.answer(request, model)
        full = self.outputs(model, request)
        self.assertEqual(answer["measure"], "outputs")
        self.assertNotIn("log_probability", answer)
        for name, losses in answer["heads"].items():
            for head, loss in enumerate(losses):
                without = self.outputs(model, self.masked(request, name, len(losses), head))
                change = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(without, full)))
                self.assertTrue(math.isclose(loss, change / math.sqrt(math.fsum(x * x for x in full)), rel_tol=1e-6))
        return answer


class Numbers(Case):
    def test_a_decoder(self):
        answer = self.check_scores("small", ASKED)
        self.assertEqual(list(answer), ["model", "measure", "log_probability", "heads", "ranking", "usage"])
        self.assertEqual({name: len(losses) for name, losses in answer["heads"].items()},
                         {f"decoder.{i}.self": 4 for i in range(3)})
        self.assertEqual(answer["usage"], {"tokens": 9, "cached": 0, "generated": 0})

    def test_both_stacks(self):
        answer = self.check_scores("pair", ASKED)
        self.assertEqual({name: len(losses) for name, losses in answer["heads"].items()}, {
            "encoder.0.self": 4, "encoder.1.self": 4, "encoder.2.self": 4, "decoder.0.self": 2, "decoder.0.cross": 2,
            "decoder.1.self": 2, "decoder.1.cross": 2})

    def test_an_encoder(self):
        self.check_outputs("encoder", {"tokens": TOKENS})
        self.check_outputs("encoder", {"tokens": TOKENS, "pool": "cls", "dimensions": 5, "normalize": True})
        self.check_outputs("vectors", {"tokens": TOKENS})
        self.check_outputs("vectors", {"tokens": TOKENS, "pool": "none", "valid_lens": [2, 1, 2]})
        row = [random.Random(3).random() for _ in range(32)]
        self.check_outputs("encoder", {"embeddings": [row, row[::-1]]})

    def test_its_own_mask_stays(self):
        mask = {"decoder.0.self": [0.5, 1, 0, 1], "decoder.2.self": [1, 0, -2, 1]}
        answer = self.check_scores("small", dict(ASKED, head_mask=mask))
        self.assertEqual((answer["heads"]["decoder.0.self"][2], answer["heads"]["decoder.2.self"][1]), (0, 0))
        self.check_scores("pair", dict(ASKED, head_mask={"encoder.1.self": [1, 0.25, 1, 1], "decoder.1.cross": [1, 0]}))
        self.check_outputs("encoder", {"tokens": TOKENS, "head_mask": {"encoder.2.self": [1, 1, 0, 3]}})

    def test_those_that_are_named(self):
        everything = self.answer(ASKED, "pair")
        for names, meant in ((["decoder.0.cross"], ["decoder.0.cross"]),
                             (["decoder.1.self", "encoder.-1.self"], ["encoder.2.self", "decoder.1.self"]),
                             (["encoder.*.self", "encoder.1.self"], [f"encoder.{i}.self" for i in range(3)])):
            answer = self.answer(dict(ASKED, attentions=names), "pair")
            self.assertEqual(list(answer["heads"]), meant)
            self.assertEqual(answer["heads"], {name: everything["heads"][name] for name in meant})
            self.assertEqual(answer["ranking"], [entry for entry in everything["ranking"] if entry[0] in meant])

    def test_equal_heads_are_in_order(self):
        mask = {"decoder.*.self": [0, 0, 0, 0]}
        answer = self.answer(dict(ASKED, head_mask=mask))
        self.assertEqual(answer["ranking"], [[f"decoder.{i}.self", head] for i in range(3) for head in range(4)])
        self.assertEqual(list(flat(list(answer["heads"].values()))), [0] * 12)

    def test_one_item(self):
        request = {"tokens": TOKENS[0], "targets": TARGETS[0]}
        batch = {"tokens": TOKENS[:1], "targets": TARGETS[:1]}
        self.assertEqual(self.answer(request), self.answer(batch))

    def test_lengths(self):
        padded = {"tokens": [[1, 2, 3], [6, 0, 0], [7, 8, 0]], "valid_lens": [3, 1, 2],
                  "targets": [[4, 5, 0], [9, 10, 11], [12, 0, 0]], "target_lens": [2, 3, 1]}
        for model in ("small", "pair"):
            self.assertEqual(self.answer(padded, model), self.answer(ASKED, model))

    def test_an_empty_batch(self):
        for model in ("small", "pair"):
            answer = self.answer({"tokens": [], "targets": []}, model)
            self.assertEqual((answer["log_probability"], set(flat(list(answer["heads"].values())))), (0, {0}))
        self.assertEqual(set(flat(list(self.answer({"tokens": []}, "encoder")["heads"].values()))), {0})

    def test_safetensors(self):
        header = {"__metadata__": {"attentions": '["decoder.-1.self"]'}}
        for at, name in enumerate(("tokens", "targets")):
            header[name] = {"dtype": "I32", "shape": [2, 2], "data_offsets": [16 * at, 16 * at + 16]}
        text = json.dumps(header).encode()
        body = struct.pack("<Q", len(text)) + text + struct.pack("<8i", 1, 2, 3, 4, 4, 5, 6, 7)
        answer = self.ok(self.post(body, headers={"Content-Type": "application/x-safetensors"}))
        self.assertEqual(answer, self.answer({"tokens": [[1, 2], [3, 4]], "targets": [[4, 5], [6, 7]],
                                              "attentions": ["decoder.-1.self"]}))

    def test_a_large_one(self):
        """Several workers, rows in tiles. Under a sanitizer the heads of one layer: those of three take minutes."""
        chance = random.Random(5)
        layers = (0, 3, 7) if MODE == "release" else (3,)
        request = {"tokens": [[chance.randrange(500) for _ in range(n)] for n in (150, 3, 40)],
                   "targets": [[chance.randrange(500) for _ in range(n)] for n in (5, 30, 1)],
                   "attentions": [f"decoder.{layer}.self" for layer in layers]}
        self.check_scores("large", request, chance, 8)

    def test_beside_others(self):
        """Many at a time, merged or not, have the numbers that each has alone."""
        bodies = [{"tokens": [[i, 2, 3]], "targets": [[i + 1] * (i + 1)]} for i in range(12)]
        alone = [self.answer(body, "pair") for body in bodies]
        connections = [http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE) for _ in bodies]
        for connection, body in zip(connections, bodies):
            connection.request("POST", "/v1/models/pair/heads", json.dumps(body), JSON_TYPE)
        for connection, right in zip(connections, alone):
            self.assertEqual(json.loads(connection.getresponse().read()), right)
            connection.close()


class Families(Case):
    """Norms before and behind, rotary, relative and learned positions, gates, grouped heads."""

    @classmethod
    def start(cls):
        cls.cases = {name: case for name, case in golden.cases("decode")}
        drawn = {**wholes.DECODERS, **wholes.PAIRS}
        return Server({"models": drawn | {name: golden.definition(name) for name in cls.cases}})

    def test_drawn(self):
        chance = random.Random(7)
        for model in (*wholes.DECODERS, *wholes.PAIRS):
            with self.subTest(model=model):
                self.check_scores(model, {
                    "tokens": [[chance.randrange(32) for _ in range(n)] for n in (5, 1, 9)],
                    "targets": [[chance.randrange(32) for _ in range(n)] for n in (3, 6, 1)]})

    def test_published(self):
        chance = random.Random(8)
        for model, case in self.cases.items():
            with self.subTest(model=model):
                sources = "source_tokens" in case
                tokens = case["source_tokens"] if sources else [item[:1] for item in case["tokens"]]
                self.check_scores(model, {"tokens": tokens, "targets": case["targets"]}, chance, 12)


class Refused(Case):
    def test_fields(self):
        for model, request, pointer in (
                ("small", dict(ASKED, attentions=["decoder.3.self"]), "/attentions/0"),
                ("small", dict(ASKED, attentions=["decoder.0.self", "encoder.0.self"]), "/attentions/1"),
                ("small", dict(ASKED, attentions=["decoder.0"]), "/attentions/0"),
                ("small", dict(ASKED, attentions=[7]), "/attentions/0"),
                ("small", dict(ASKED, attentions=[]), "/attentions"),
                ("small", dict(ASKED, attentions="decoder.0.self"), "/attentions"),
                ("small", dict(ASKED, attentions=None), "/attentions"),
                ("small", dict(ASKED, stream=1), "/stream"),
                ("small", dict(ASKED, return_top=1), "/return_top"),
                ("small", dict(ASKED, return_hidden=True), "/return_hidden"),
                ("small", dict(ASKED, return_attention=True), "/return_attention"),
                ("small", dict(ASKED, return_tokens=True), "/return_tokens"),
                ("small", dict(ASKED, encoding_format="base64"), "/encoding_format"),
                ("small", dict(ASKED, trace={"attention": "decoder.0.self", "item": 0, "head": 0, "query": 0}), "/trace"),
                ("small", dict(ASKED, max_tokens=3), "/max_tokens"),
                ("small", dict(ASKED, pool="mean"), "/pool"),
                ("small", dict(ASKED, gradients=[[1]]), "/gradients"),
                ("small", dict(ASKED, embeddings=[[1]]), "/embeddings"),
                ("small", dict(ASKED, head_mask={"decoder.0.self": [1]}), "/head_mask/decoder.0.self"),
                ("small", {"tokens": TOKENS}, "/targets"),
                ("small", {"targets": TARGETS}, "/tokens"),
                ("small", dict(ASKED, tokens=[[1], [50], [2]]), "/tokens/1/0"),
                ("small", dict(ASKED, targets=[[1], [], [2]]), "/targets/1"),
                ("limited", {"tokens": [[1] * 7], "targets": [[1, 2, 3]]}, "/targets/0"),
                ("encoder", ASKED, "/targets"),
                ("encoder", {"tokens": TOKENS, "target_lens": [1, 1, 1]}, "/target_lens"),
                ("encoder", {"tokens": TOKENS, "return_top": 3}, "/return_top"),
                ("encoder", {"tokens": TOKENS, "return_hidden": "all"}, "/return_hidden"),
                ("encoder", {"tokens": TOKENS, "attentions": ["decoder.0.self"]}, "/attentions/0"),
                ("encoder", {"tokens": TOKENS, "beams": 2}, "/beams"),
                ("encoder", {"tokens": TOKENS, "function": "none"}, "/function"),
                ("vectors", {"tokens": [[1], []]}, "/tokens/1"),
                ("pair", dict(ASKED, attentions=["encoder.0.cross"]), "/attentions/0"),
                ("pair", dict(ASKED, pool="mean"), "/pool")):
            with self.subTest(model=model, pointer=pointer):
                self.problem(self.post(request, model), 400, "invalid-request", pointer)
        detail = self.problem(self.post(dict(ASKED, attentions=["decoder.9.self"])), 400, "invalid-request")["detail"]
        self.assertEqual(detail, 'unknown attention "decoder.9.self". Available: decoder.0.self to decoder.2.self; use * '
                                 'for all layers, -1 for the last')

    def test_elsewhere(self):
        for path in ("encode", "score", "generate"):
            problem = self.problem(self.server.post(f"/v1/models/small/{path}", {"attentions": ["decoder.0.self"]}), 400,
                                   "invalid-request", "/attentions")
            self.assertIn("/v1/models/NAME/heads", problem["detail"])
        self.problem(self.server.post("/v1/models/small/score", dict(ASKED, stream=True)), 400, "invalid-request",
                     "/stream")
        self.problem(self.post({"queries": [[1, 2, 3, 4]], "attentions": ["a"]}, "demo"), 400, "invalid-request",
                     "/attentions")
        self.problem(self.post({"queries": [[1, 2, 3, 4]], "stream": True}, "demo"), 400, "invalid-request", "/stream")

    def test_forms(self):
        safetensors = {"Accept": "application/x-safetensors"}
        self.problem(self.post(ASKED, headers=safetensors), 406, "not-acceptable")
        for accept in ("text/html", "text/event-stream;q=0"):
            self.problem(self.post(dict(ASKED, stream=True), headers={"Accept": accept}), 406, "not-acceptable")
        plain = {"queries": [[1, 2, 3, 4]]}
        self.problem(self.post(plain, "demo", {"Accept": "text/event-stream"}), 406, "not-acceptable")
        self.ok(self.post(plain, "demo"))
        self.assertEqual(self.post(ASKED, headers={"Content-Type": "text/plain"}).status, 415)
        self.assertEqual(self.server.get("/v1/models/small/heads").status, 405)

    def test_limits(self):
        pairs = sum(n * n for n in (4, 3, 2)) * 4  # of one layer
        # All three layers; and without each of four heads what is left of them: three, two and one.
        least = pairs * 3 + 4 * pairs * (3 + 2 + 1)
        server = self.serve({"small": RANDOM}, max_pairs=least)
        self.ok(self.post(ASKED, server=server))
        server = self.serve({"small": RANDOM}, max_pairs=least - 1)
        problem = self.problem(self.post(ASKED, server=server), 413, "too-large", limit="max_pairs")
        self.assertIn("attentions", problem["detail"])
        self.ok(self.post(dict(ASKED, attentions=["decoder.-1.self"]), server=server))
        server = self.serve({"small": RANDOM}, max_items=2, memory_budget_bytes=3000000)
        self.problem(self.post(ASKED, server=server), 413, "too-large", limit="max_items")
        long = {"tokens": [[1] * 600] * 2, "targets": [[1] * 600] * 2}
        self.problem(self.post(long, server=server), 413, "too-large", limit="memory_budget_bytes")
        self.assertTrue(wait_until(lambda: self.post({"tokens": [1], "targets": [2]}, server=server).status == 200))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        server = self.serve({"large": LARGE}, max_answer_bytes=1024)
        self.problem(self.post(ASKED, "large", server=server), 413, "too-large", limit="max_answer_bytes")

    def test_pairs_of_both_stacks(self):
        source, own, across = 3 * 3 * 4, 2 * 2 * 2, 2 * 3 * 2  # of one layer: heads are 4, and 2 of the decoder
        decoder = 2 * (own + across)
        least = 3 * source + decoder
        least += sum(4 * (left * source + decoder) for left in (3, 2, 1))
        least += sum(2 * 2 * left * (own + across) for left in (2, 1))
        request = {"tokens": [1, 2, 3], "targets": [4, 5]}
        server = self.serve({"pair": MODELS["pair"]}, max_pairs=least)
        self.ok(self.post(request, "pair", server=server))
        server = self.serve({"pair": MODELS["pair"]}, max_pairs=least - 1)
        self.problem(self.post(request, "pair", server=server), 413, "too-large", limit="max_pairs")


class Streamed(Case):
    def test_the_same_answer(self):
        for model, request in (("small", ASKED), ("pair", ASKED), ("encoder", {"tokens": TOKENS}), ("large", ASKED),
                               ("small", dict(ASKED, attentions=["decoder.1.self"]))):
            with self.subTest(model=model):
                answer = self.answer(request, model)
                streamed = self.post(dict(request, stream=True), model)
                self.assertEqual((streamed.status, streamed.headers["content-type"]), (200, "text/event-stream"))
                *events, (kind, last) = events_of(streamed.body.decode())
                self.assertEqual((kind, last), ("message", answer))
                heads = {(event["attention"], event["head"]): event["loss"] for _, event in events}
                self.assertEqual(len(heads), len(events))
                self.assertEqual(heads, {(name, head): loss for name, losses in answer["heads"].items()
                                         for head, loss in enumerate(losses)})

    def test_the_order(self):
        """The last layers come first, and a source's behind the decoder's."""
        *events, _ = events_of(self.post(dict(ASKED, stream=True), "pair").body.decode())
        order = list(dict.fromkeys(event["attention"] for _, event in events))
        self.assertEqual(order, ["decoder.1.self", "decoder.1.cross", "decoder.0.self", "decoder.0.cross",
                                 "encoder.2.self", "encoder.1.self", "encoder.0.self"])

    def test_readers_of_events_ask_for_nothing_else(self):
        for accept in ("text/event-stream", "text/event-stream;q=0.5, application/x-safetensors"):
            for stream, kind in ((True, "text/event-stream"), (False, "application/json")):
                answer = self.post(dict(ASKED, stream=stream), headers={"Accept": accept})
                self.assertEqual((answer.status, answer.headers["content-type"]), (200, kind), answer)

    def test_a_refusal_has_its_status(self):
        self.problem(self.post(dict(ASKED, stream=True, attentions=["x"])), 400, "invalid-request", "/attentions/0")
        self.problem(self.post({"tokens": TOKENS, "stream": True}), 400, "invalid-request", "/targets")
        self.problem(self.post(dict(ASKED, stream=True), "encoder"), 400, "invalid-request", "/targets")

    def test_the_connection_stays(self):
        connection = self.server.connect()
        for model in ("small", "pair", "small"):
            connection.request("POST", f"/v1/models/{model}/heads", json.dumps(dict(ASKED, stream=True)), JSON_TYPE)
            events_of(connection.getresponse().read().decode())
        connection.close()

    def open_stream(self, server, request, model="large"):
        """A connection of which the header and the first event have been read."""
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("POST", f"/v1/models/{model}/heads", json.dumps(dict(request, stream=True)), JSON_TYPE)
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        self.assertIn(b"loss", response.readline())
        return connection, response

    def test_heads_come_one_by_one(self):
        """The first one is read long before the last one is computed; a client that leaves ends it."""
        server = self.serve({"large": LARGE})
        connection, response = self.open_stream(server, LONG)
        self.assertGreater(server.metric("attend_running"), 0)
        response.close()
        connection.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        self.ok(self.post(ASKED, "large", server=server))

    def test_a_stop_ends_it_with_its_reason(self):
        server = self.serve({"large": LARGE}, drain_ms=200)
        connection, response = self.open_stream(server, LONG)
        server.signal()
        kind, problem = events_of("data: {}\n\n" + response.read().decode().lstrip("\n"))[-1]
        self.assertEqual((kind, problem["status"]), ("error", 503))
        connection.close()
        self.assertEqual(server.wait(), 3)

    def test_clients_that_leave_at_any_moment(self):
        server, chance = self.serve(MODELS), random.Random(3)
        for _ in range(4):
            sockets = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(30)]
            for s in sockets:
                body = json.dumps(dict(ASKED, stream=chance.random() < 0.7)).encode()
                s.sendall(b"POST /v1/models/%s/heads HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n" % (chance.choice([b"small", b"large", b"pair"]), len(body)) + body)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            chance.shuffle(sockets)
            for s in sockets:
                time.sleep(chance.random() * 0.005)  # a moment: whichever it is, all has to be well
                s.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        server.stop()


class Limits(Case):
    def test_deadlines(self):
        """How long the first head takes is the machine's affair: the time grows until one comes in it."""
        server, late = self.serve({"large": LARGE}), "deadline-exceeded"

        def ends_behind_its_header(ms):
            streamed = self.post(dict(LONG, stream=True), "large", {"X-Timeout-Ms": str(ms)}, server)
            if streamed.status == 200:
                kind, problem = events_of(streamed.body.decode())[-1]
                self.assertEqual((kind, problem["type"], problem["status"]), ("error", f"/problems/{late}", 504))
                return True
            self.problem(streamed, 504, late)
            return False
        self.assertTrue(any(ends_behind_its_header(100 * 4 ** i) for i in range(6)))
        server = self.serve({"large": LARGE}, generate_deadline_ms=200)
        self.problem(self.post(LONG, "large", server=server), 504, late)
        self.problem(self.post(LONG, "large", {"X-Timeout-Ms": "50"}, server), 504, late)

    def test_a_pause(self):
        """With deadline_ms a millisecond no first head comes in time, whatever the whole may take."""
        server = self.serve({"large": LARGE}, deadline_ms=1)
        self.problem(self.post(LONG, "large", server=server), 504, "deadline-exceeded")

    def test_a_client_that_leaves(self):
        server = self.serve({"large": LARGE})
        body = json.dumps(LONG).encode()
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as s:
            s.sendall(b"POST /v1/models/large/heads HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                      b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.assertTrue(wait_until(lambda: server.metric("attend_running") == 1))
        self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        self.assertIn('route="/v1/models/{model}/heads",method="POST",code="200"} 0\n', server.get("/metrics").body.decode())

    def test_rows_are_counted(self):
        def count(work):
            return self.server.metric("attend_tokens_total", f'work="{work}"')
        before = count("score"), count("encode")
        self.answer(ASKED)
        self.answer({"tokens": TOKENS}, "encoder")
        self.assertEqual((count("score"), count("encode")), (before[0] + 9, before[1] + 6))
        self.post(dict(ASKED, stream=True))
        self.assertTrue(wait_until(lambda: count("score") == before[0] + 18))


class Command(Case):
    def test_the_same_bytes(self):
        config = os.path.join(self.server.folder, "attend.json")
        for model, request in (("small", ASKED), ("pair", ASKED), ("encoder", {"tokens": TOKENS})):
            body = json.dumps(request).encode()
            status, out, _ = attend("run", model, "--heads", "--config", config, data=body)
            self.assertEqual((status, out), (0, self.post(request, model).body))
        streamed = json.dumps(dict(ASKED, stream=True)).encode()
        status, out, _ = attend("run", "small", "--heads", "--config", config, data=streamed)
        self.assertEqual((status, events_of(out.decode())[-1][1]), (0, self.answer(ASKED)))
        status, out, _ = attend("run", "small", "--heads", "--lines", "--config", config,
                                data=json.dumps(ASKED).encode() + b"\n" + streamed + b"\n")
        self.assertEqual((status, len(out.splitlines())), (1, 2))
        self.assertEqual(json.loads(out.splitlines()[0]), self.answer(ASKED))
        self.assertIn(b"a line is a whole answer", out)


if __name__ == "__main__":
    unittest.main()
