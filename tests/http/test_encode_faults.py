"""test_encode_faults: whole encoders when something is wrong: deadlines, clients that leave, budgets, limits, numbers
beyond float32, a stop, a reload."""
import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import tempfile
import threading
import unittest

from support import (MODE, PATIENCE, ROOT, Case, Raw, Server, attend, head_of, read_safetensors,
                     safetensors_bytes, wait_until)

BERT = os.path.join(ROOT, "tests", "golden", "models", "bert-b")
SMALL = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 32,
         "heads": 4, "feed_forward": 64, "vocabulary": 50}
# One step of it would take minutes with so many tokens; so would all its steps together, each of them short.
WIDE = dict(SMALL, layers=1, width=16, heads=8, feed_forward=16)
DEEP = dict(SMALL, layers=3000, width=8, heads=2, feed_forward=8)
LONG = {"wide": {"tokens": [7] * 250000, "pool": "mean"},
        "deep": {"tokens": [7] * 3000, "pool": "mean"}}
# Long enough to be met in its work, and not longer.
SOME = {"tokens": [[i % 50 for i in range(3000 if MODE == "release" else 500)]], "pool": "mean"}
TEXT = {"tokens": [[1, 2, 3], [4]], "return_hidden": True, "return_attention": True}
NO_END = ("--max-pairs", str(10 ** 15))


def path_of(model):
    return f"/v1/models/{model}/encode"


class Faults(Case):
    def start(self, *args, models=None, folder=None):
        self.server = Server({"models": models or {"small": SMALL}}, *NO_END, *args, folder=folder)
        self.addCleanup(self.server.kill)
        return self.server

    def post(self, request, model="small", **headers):
        return self.server.post(path_of(model), request,
                                {name.replace("_", "-"): value for name, value in headers.items()})

    def becomes(self, name, value, labels=""):
        self.assertTrue(wait_until(lambda: self.server.metric(name, labels) == value),
                        (name, labels, self.server.metric(name, labels), self.server.stderr()))

    def idle(self):
        for name in ("attend_running", "attend_queue_depth", "attend_inflight_bytes"):
            self.becomes(name, 0)

    @contextlib.contextmanager
    def running(self, model, request=None, *headers):
        """A request that is being computed, on a connection of its own. One that was answered before it was met is sent
        again."""
        body = json.dumps(request or LONG[model]).encode()
        met = False
        while not met:
            with Raw(self.server) as raw:
                raw.send(head_of(path_of(model), len(body), *headers) + body)
                self.assertTrue(wait_until(lambda: self.server.metric("attend_running") == 1 or
                                           select.select([raw.socket], [], [], 0)[0]), self.server.stderr())
                met = not select.select([raw.socket], [], [], 0)[0]
                if met:
                    yield raw


class Deadlines(Faults):
    """Nothing here would end within a test's patience, if it was computed to its end."""

    def late(self, model):
        """Waits until a request with a deadline was met in its work, and returns its answer."""
        timeout = 100
        while timeout < 1000 * PATIENCE:
            timeout *= 2
            body = json.dumps(LONG[model]).encode()
            with Raw(self.server) as raw:
                raw.send(head_of(path_of(model), len(body), f"X-Timeout-Ms: {timeout}") + body)
                answers, met = [], []
                reader = threading.Thread(target=lambda: answers.append(raw.answer()))
                reader.start()
                while reader.is_alive() and not met:
                    if self.server.metric("attend_running") == 1:
                        met.append(timeout)
                reader.join()
            if met:
                return answers[0]
        return self.fail("it is never met in its work")

    def test_deadlines(self):
        """Within a step, and between steps; the one worker is free again, and there is nothing left."""
        self.start("--workers", "1", models={"small": SMALL, "wide": WIDE, "deep": DEEP})
        right = self.post(TEXT)
        self.idle()
        late = 0
        for model in ("wide", "deep"):
            self.problem(self.late(model), 504, "deadline-exceeded")
            self.idle()
            self.assertEqual(self.post(TEXT).body, right.body)
            now = self.server.metric("attend_rejected_total", 'reason="deadline"')
            self.assertGreater(now, late)
            late = now
        self.server.stop()

    def test_the_server_has_a_deadline_too(self):
        self.start("--workers", "1", "--deadline-ms", "500", models={"deep": DEEP})
        self.problem(self.post(LONG["deep"], "deep"), 504, "deadline-exceeded")
        self.problem(self.post(LONG["deep"], "deep", X_Timeout_Ms="100000"), 504,
                     "deadline-exceeded")
        self.idle()
        self.server.stop()

    def test_a_client_that_leaves(self):
        """Its work is given up, and others are answered beside it."""
        self.start("--workers", "1", models={"small": SMALL, "wide": WIDE, "deep": DEEP})
        right = self.post(TEXT)
        for left, model in enumerate(("wide", "deep")):
            with self.running(model):
                for _ in range(3):
                    self.assertEqual(self.post(TEXT).body, right.body)
                self.assertEqual(self.server.metric("attend_running"), 1)
            self.becomes("attend_client_aborts_total", left + 1)
            self.idle()
            self.assertEqual(self.post(TEXT).body, right.body)
        self.server.stop()

    def test_clients_that_leave_the_queue(self):
        self.start("--workers", "1", "--merge=false", models={"small": SMALL, "deep": DEEP})
        with self.running("deep"), contextlib.ExitStack() as stack:
            body = json.dumps(LONG["deep"]).encode()
            for n in range(3):
                stack.enter_context(Raw(self.server)).send(
                    head_of(path_of("deep"), len(body)) + body)
                self.becomes("attend_queue_depth", n + 1)
        self.idle()
        self.becomes("attend_client_aborts_total", 4)
        self.ok(self.post(TEXT))
        self.server.stop()


class Budgets(Faults):
    def test_memory(self):
        """A request that alone does not fit is too large; one that does not fit beside another comes later."""
        models = {"small": SMALL, "deep": DEEP}
        self.start("--workers", "1", models=models)
        with self.running("deep"):
            held = int(self.server.metric("attend_inflight_bytes"))
        self.server.stop()

        self.start("--workers", "1", "--memory-budget-bytes", str(held // 2), models=models)
        problem = self.problem(self.post(LONG["deep"], "deep"), 413, "too-large",
                               limit="memory_budget_bytes")
        self.assertIn("the memory budget is", problem["detail"])
        self.ok(self.post(TEXT))
        self.idle()
        self.server.stop()

        self.start("--workers", "1", "--memory-budget-bytes", str(held * 19 // 10), models=models)
        with self.running("deep"):
            answer = self.post(LONG["deep"], "deep")
            self.problem(answer, 429, "overloaded")
            self.assertIn("retry-after", answer.headers)
            self.ok(self.post(TEXT))
        self.idle()
        self.assertEqual(self.server.metric("attend_rejected_total", 'reason="budget"'), 1)
        with self.running("deep"):  # now it fits
            pass
        self.idle()
        self.server.stop()

    def test_a_full_queue(self):
        self.start("--workers", "1", "--max-queue", "1", "--merge=false", models={"deep": DEEP})
        body = json.dumps(LONG["deep"]).encode()

        def refused():
            """The one that waits does so until the one before it has had a share of the worker."""
            with Raw(self.server) as waits:
                waits.send(head_of(path_of("deep"), len(body)) + body)
                self.becomes("attend_queue_depth", 1)
                answer = self.post({"tokens": [1]}, "deep", X_Timeout_Ms="1")
            if answer.status == 504:
                return False
            self.problem(answer, 429, "overloaded")
            self.assertIn("retry-after", answer.headers)
            return True
        with self.running("deep"):
            self.assertTrue(wait_until(refused))
        self.idle()
        self.server.stop()

    def limited(self, setting, value):
        server = Server({"models": {"small": SMALL}}, "--" + setting.replace("_", "-"), str(value))
        self.addCleanup(server.kill)

        def post(request, **headers):
            return server.post(path_of("small"), request, headers)
        return server, post

    def test_pairs_of_all_layers(self):
        """Just so many, and one more; padding is no work."""
        server, post = self.limited("max_pairs", 4 * 2 * 25)
        for tokens in ([1] * 5, [[1] * 3, [2] * 4], [[]] * 3):
            self.ok(post({"tokens": tokens}))
        self.ok(post({"tokens": [[1] * 30] * 2, "valid_lens": [4, 3]}))
        for tokens in ([1] * 6, [[1] * 4, [2] * 3, [3]]):
            problem = self.problem(post({"tokens": tokens}), 413, "too-large", limit="max_pairs")
            self.assertIn("in 2 layers", problem["detail"])
        server.stop()

    def test_items(self):
        server, post = self.limited("max_items", 2)
        self.ok(post({"tokens": [[1], [2]]}))
        self.ok(post({"tokens": [1] * 3}))
        self.problem(post({"tokens": [[1], [2], [3]]}), 413, "too-large", limit="max_items")
        self.problem(post({"tokens": [[], [], []]}), 413, "too-large", limit="max_items")
        server.stop()

    def test_bytes_of_the_answer(self):
        """Whatever makes it large: of each what fits, and what does not. Zeros behind an item count, too."""
        server, post = self.limited("max_answer_bytes", 24000)
        tokens = [[1] * 20, [2]]
        self.ok(post({"tokens": tokens}))
        for fits, more in (({}, {"return_hidden": "all"}),
                           ({"return_attention": "average"}, {"return_attention": True}),
                           ({"return_hidden": ["encoder.0"]}, {"return_hidden": ["encoder.*"]})):
            self.ok(post(dict(fits, tokens=tokens[0])))
            self.problem(post(dict(more, tokens=tokens)), 413, "too-large",
                         limit="max_answer_bytes")
        as_bytes = {"Accept": "application/x-safetensors"}
        small = {"tokens": [[1] * 20] + [[2] + [0] * 19] * 9, "valid_lens": [20] + [1] * 9}
        self.ok(post(small))
        self.problem(post(small, **as_bytes), 413, "too-large", limit="max_answer_bytes")
        self.ok(post(dict(small, pool="max")))
        server.stop()


def write_bert(folder, name, change):
    """A folder of the golden model, whose tensors change(tensors) has changed: name -> (shape, flat list)."""
    path = os.path.join(folder, name)
    os.mkdir(path)
    tensors, _ = read_safetensors(os.path.join(BERT, "model.safetensors"))
    change(tensors)
    with open(os.path.join(path, "model.safetensors"), "wb") as file:
        file.write(safetensors_bytes(tensors))
    shutil.copy(os.path.join(BERT, "config.json"), path)
    return {"transformer": name}


D = 24  # the model's width
LAYER = "bert.encoder.layer."


def spike(tensors):
    """Column 0 of every token is 1 or -1, but that of token 9 nearly 5, from the first norm to the last: layers add
    nothing to it."""
    for name, (_, numbers) in tensors.items():
        if name.endswith(("output.dense.weight", "output.dense.bias", "beta", "token_type_embeddings.weight",
                          "position_embeddings.weight")):
            numbers[:] = [0] * len(numbers)
        if name.endswith("gamma"):
            numbers[:] = [1] * len(numbers)
    words = tensors["bert.embeddings.word_embeddings.weight"][1]
    for token in range(64):
        words[token * D:token * D + D] = [1 if (x + token) % 2 else -1 for x in range(D)]
    words[9 * D:10 * D] = [1000] + [0] * (D - 1)


def large(*names, row=0, number=2e38):
    """Only with token 9 a product with that row exceeds the float32 range."""
    def change(tensors):
        spike(tensors)
        for name in names:
            tensors[name][1][row * D:row * D + D] = [number] + [0] * (D - 1)
    return change


spiked = large(LAYER + "0.attention.self.value.weight")


class Numbers(Faults):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        self_1 = LAYER + "1.attention.self."
        cls.models = {name: write_bert(cls.folder, name, change) for name, change in (
            ("spiked", spiked), ("up", large(LAYER + "1.intermediate.dense.weight", number=1e38)),
            ("head", large(self_1 + "query.weight", self_1 + "key.weight", row=8, number=1.2e19)),
            ("product", large(self_1 + "query.weight", self_1 + "key.weight", row=8,
                              number=2.2e19)),
            ("pooler", large("bert.pooler.dense.weight")))}
        cls.models["small"] = SMALL

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def begin(self, *args):
        return self.start(*args, models=self.models, folder=self.folder)

    def fault(self, request, model, *words):
        problem = self.problem(self.post(request, model), 422, "not-finite")
        for word in words:
            self.assertIn(word, problem["detail"])

    def test_layer_part_item_and_row(self):
        self.begin()
        right = self.post(TEXT, "spiked")
        self.ok(right)
        for tokens, row, item in (([[9]], 0, 0), ([[1, 2], [], [3, 4, 9, 9]], 2, 2), ([5, 9], 1, 0)):
            self.fault({"tokens": tokens}, "spiked",
                       f"encoder.0.self: the projection of value {row} of item {item} exceeds")
        padded = {"tokens": [[1, 9], [2, 3]], "valid_lens": [1, 2]}  # the 9 is not read
        self.ok(self.post(padded, "spiked"))
        self.fault({"tokens": [[1], [3, 9]]}, "up",
                   "encoder layer 1: the feed-forward of position 1 of item 1 exceeds")
        self.fault({"tokens": [[], [3, 9]]}, "head",
                   "encoder.1.self: a score of query 1 of item 1 exceeds")
        pooled = {"tokens": [[1], [9]], "pool": "cls"}
        self.ok(self.post(pooled, "pooler"))
        self.fault(dict(pooled, pool="pooler"), "pooler", "item 1")
        self.assertEqual(self.post(TEXT, "spiked").body, right.body)
        self.idle()
        self.server.stop()

    def test_a_head_that_is_masked_is_at_fault_in_its_trace(self):
        self.begin()
        masked = {"tokens": [[1, 2], [9, 4]], "head_mask": {"encoder.1.self": [1, 0, 1]}}
        trace = {"attention": "encoder.1.self", "item": 1, "head": 2, "query": 1}
        self.ok(self.post(masked, "head"))
        self.ok(self.post(dict(masked, trace=trace), "head"))
        self.fault(dict(masked, trace=dict(trace, head=1)), "head",
                   "encoder.1.self: a score of query 0 of item 1")
        product = {"tokens": [[1, 2], [3, 4]], "return_attention": True}  # the scores are not beyond
        self.ok(self.post(product, "product"))
        self.ok(self.post(dict(product, trace=trace), "product"))
        self.fault(dict(product, trace=dict(trace, head=1)), "product",
                   "encoder.1.self: a number in the trace of query 1 of item 1 in head 1")
        self.server.stop()

    def test_of_merged_requests_one_is_at_fault(self):
        """The others get their right answers, and its own error names its own places."""
        self.begin("--workers", "1")
        texts = [{"tokens": [[n, 7] * 9] * 30, "return_attention": ["encoder.0.self"]}
                 for n in range(20, 31)]
        texts.insert(5, {"tokens": [[1] * 20, [2, 9]] + [[3] * 20] * 30})
        right = [self.post(text, "spiked").body for text in texts]
        self.assertIn(b"1 of item 1", right[5])
        bodies = [json.dumps(text).encode() for text in texts]

        def merged():
            return (self.server.metric("attend_batch_requests_sum") -
                    self.server.metric("attend_batch_requests_count"))

        def crowd():
            """All of them at once, behind one that keeps the worker busy."""
            some = json.dumps(SOME).encode()
            with contextlib.ExitStack() as stack:
                busy = stack.enter_context(Raw(self.server))
                busy.send(head_of(path_of("small"), len(some)) + some)
                raws = [stack.enter_context(Raw(self.server)) for _ in bodies]
                for raw, body in zip(raws, bodies):
                    raw.send(head_of(path_of("spiked"), len(body)) + body[:-1])
                for raw in raws:
                    raw.send(b"}")
                answers = [raw.answer() for raw in raws]
                self.assertEqual(busy.answer().status, 200)
            for n, (answer, expected) in enumerate(zip(answers, right)):
                self.assertEqual((answer.status, answer.body), (422 if n == 5 else 200, expected))
            return merged() > before + 5

        before = merged()
        self.assertTrue(wait_until(crowd))
        self.idle()
        self.server.stop()


class Stops(Faults):
    def test_what_runs_is_answered(self):
        self.start("--workers", "1")
        right = self.post(SOME).body
        with self.running("small", SOME) as raw:
            self.server.signal()
            answer = raw.answer()
            self.assertEqual((answer.status, answer.body), (200, right))
        self.assertEqual(self.server.wait(), 0, self.server.stderr())

    def test_what_does_not_end_is_given_up(self):
        self.start("--workers", "1", "--drain-ms", "100", models={"wide": WIDE, "deep": DEEP})
        with self.running("deep") as raw, Raw(self.server) as waits:
            body = json.dumps(LONG["wide"]).encode()
            waits.send(head_of(path_of("wide"), len(body)) + body)
            self.becomes("attend_queue_depth", 1)
            self.server.signal()
            for one in (raw, waits):
                answer = one.answer()
                if answer:
                    self.problem(answer, 503, "draining")
            self.assertEqual(self.server.wait(), 3, self.server.stderr())


class Reloads(Faults):
    """Models are exchanged under requests: each is answered by one of both, whole."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.sets = [{"small": SMALL, "bert": {"transformer": BERT}},
                     {"small": dict(SMALL, transformer={"random": {"seed": 2}}, layers=3, heads=2),
                      "bert": write_bert(self.folder, "other", lambda tensors: tensors[
                          "bert.embeddings.word_embeddings.weight"][1].reverse())}]
        self.bodies = [json.dumps(body).encode() for body in (
            TEXT, {"tokens": [[5, 6, 7] * 3] * 9, "pool": "mean"},
            {"tokens": [3, 4], "trace": {"attention": "encoder.-1.self", "item": 0, "head": 1,
                                         "query": 1}})]

    def put(self, which):
        path = os.path.join(self.folder, "attend.json")
        with open(path + ".new", "w") as file:
            json.dump({"models": self.sets[which]}, file)
        os.replace(path + ".new", path)

    def asks(self):
        return [(model, body) for model in ("small", "bert") for body in self.bodies]

    def client(self, seed, stop):
        rng, connection = random.Random(seed), self.server.connect()
        while not stop.is_set():
            n = rng.randrange(len(self.asks()))
            model, body = self.asks()[n]
            answer = self.server.post(path_of(model), body, connection=connection)
            if answer.body not in (self.right[0][n], self.right[1][n]):
                self.wrong.append((n, answer))
            self.counts[answer.body == self.right[1][n]] += 1
        connection.close()

    def test_reloads_under_requests(self):
        self.right, self.wrong, self.counts = [], [], [0, 0]
        for which in (1, 0):
            self.start(models=self.sets[which], folder=self.folder)
            self.right.insert(0, [self.post(body, model).body for model, body in self.asks()])
            self.server.stop()
        self.assertFalse(set(self.right[0]) & set(self.right[1]))
        self.put(0)
        self.start("--workers", "2", models=self.sets[0], folder=self.folder)
        stop = threading.Event()
        clients = [threading.Thread(target=self.client, args=(seed, stop)) for seed in range(4)]
        for client in clients:
            client.start()
        try:
            for turn in range(1, 13 if MODE == "release" else 5):
                self.put(turn % 2)
                self.server.signal(signal.SIGHUP)
                self.becomes("attend_reloads_total", turn, 'result="ok"')
                seen = self.counts[turn % 2]
                self.assertTrue(wait_until(lambda: self.counts[turn % 2] > seen or self.wrong))
                body = self.post(TEXT).body  # a request that begins now gets the new set
                self.assertEqual(body, self.right[turn % 2][0])
        finally:
            stop.set()
            for client in clients:
                client.join()
        self.assertEqual(self.wrong, [])
        self.idle()
        self.server.stop()

    def test_a_long_request_keeps_its_model(self):
        """What runs in a model that is gone goes on, and is given up as ever."""
        self.sets[0]["deep"] = DEEP
        self.put(0)
        self.start("--workers", "1", models=self.sets[0], folder=self.folder)
        with self.running("deep"):
            self.put(1)
            self.server.signal(signal.SIGHUP)
            self.becomes("attend_reloads_total", 1, 'result="ok"')
            self.problem(self.post({"tokens": [1]}, "deep"), 404, "unknown-model")
            self.ok(self.post(TEXT))
            self.assertEqual(self.server.metric("attend_running"), 1)
        self.idle()
        self.server.stop()

    def test_a_reload_that_fails_changes_nothing(self):
        self.start(models=self.sets[0], folder=self.folder)
        right = self.post(TEXT).body
        self.sets[1]["bert"] = {"transformer": "nowhere"}
        self.put(1)
        self.server.signal(signal.SIGHUP)
        self.becomes("attend_reloads_total", 1, 'result="failed"')
        self.assertEqual(self.post(TEXT).body, right)
        self.server.stop()


class Command(Faults):
    """attend run NAME --encode: what is refused is said in one line."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.models = {"small": SMALL, "spiked": write_bert(self.folder, "spiked", spiked),
                       "layer": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}

    def run_model(self, *args, request=None, models=None):
        path = os.path.join(self.folder, "attend.json")
        with open(path, "w") as file:
            json.dump({"models": models or self.models}, file)
        data = request if isinstance(request, bytes) else json.dumps(request).encode()
        status, out, err = attend("run", *args, "--config", path, data=data, cwd=self.folder)
        return status, out, re.sub(r"^attend: model .*: loading.*\n", "", err, flags=re.M)

    def refused(self, status, request, *args, words=()):
        got = self.run_model(*args, request=request)
        self.assertEqual(got[:2], (status, b""), got)
        self.assertRegex(got[2], r"\Aattend: .*\n\Z")
        for word in words:
            self.assertIn(word, got[2])

    def test_requests(self):
        for request, words in (
                ({"tokens": [[1], [50]]}, ["token 50", "/tokens/1/0"]),
                ({"tokens": [1], "trace": {}}, ["/trace"]), ({}, ['"tokens" is missing']),
                (b'{"tokens":[1', []), (b"", []), ({"queries": [[1]]}, ["queries"])):
            with self.subTest(request=request):
                self.refused(1, request, "small", "--encode", words=words)
        self.refused(1, {"tokens": [[1], [2, 9]]}, "spiked", "--encode",
                     words=["encoder.0.self", "1 of item 1"])
        self.refused(1, {"tokens": [1] * 9}, "small", "--encode", "--max-pairs", "100",
                     words=["max_pairs"])
        self.refused(1, SOME, "small", "--encode", "--memory-budget-bytes", "100000",
                     words=["memory_budget_bytes"])
        self.refused(1, b"\x10\0\0\0\0\0\0\0{", "small", "--encode", "--binary")

    def test_words(self):
        text = {"tokens": [1]}
        for args, words in ((("none", "--encode"), 'no model "none"; there are: '),
                            (("layer", "--encode"), "cannot encode"),
                            (("small",), "--encode"), (("small", "--encode", "--heads"), "a second question")):
            self.refused(2, text, *args, words=[words])
        status, out, err = attend("run", "small", "no-such-file", "--encode", "--config",
                                  os.path.join(self.folder, "attend.json"))
        self.assertEqual((status, out), (1, b""), err)
        self.assertIn("no-such-file", err)

    def test_lines(self):
        """Each refused line has its problem; what is at fault in its numbers, too."""
        texts = [{"tokens": [1, 2]}, {"tokens": [[3], [9]]}, {"tokens": [64]}, {"tokens": [4]}]
        data = "".join(json.dumps(text) + "\n" for text in texts).encode()
        status, out, err = self.run_model("spiked", "--encode", "--lines", request=data)
        self.assertEqual(status, 1)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line.get("status") for line in lines], [None, 422, 400, None])
        self.assertEqual([line.get("line") for line in lines], [None, 2, 3, None])
        self.assertEqual(lines[2]["pointer"], "/tokens/0")
        self.assertIn("value 0 of item 1", lines[1]["detail"])
        self.assertIn("2 of 4 requests were refused", err)


if __name__ == "__main__":
    unittest.main()
