"""test_memory: the n-th allocation fails, for every n, on the request path and at start."""
import json
import mmap
import os
import random
import shutil
import struct
import subprocess
import threading
import time
import unittest

from forms import base64_fields, safetensors, v2
from mixed import KNOWING, WHOLE, WHOLES, requests, whole_requests
from support import (BIN, JSON_TYPE, MODE, PATIENCE, TOY, Case, Layer, Raw, Server, attend, chunked,
                     clean_environment, head_of, preloaded, randoms, wait_until)


@unittest.skipIf(MODE == "tsan", "its runtime must be loaded first")
class FailingAllocations(Case):
    """Under the address sanitizer, whose allocator is called by what is loaded before it, nothing
    leaks either."""

    @classmethod
    def setUpClass(cls):
        cls.folder, cls.library = preloaded("failmalloc.c")
        layer = Layer(21, 20, 5)
        cls.config = {"models": {"toy": layer.definition(cls.folder, "toy")}}
        cls.whole = {"models": {"whole": WHOLE}}
        cls.both = dict(KNOWING, models=dict(cls.config["models"], **WHOLES))
        rng = random.Random(1)
        cls.bodies = [json.dumps(body).encode() for body in (
            {"queries": [randoms(rng, 4, 20)] * 2, "keys": [randoms(rng, 6, 20)] * 2,
             "valid_lens": [3, 6], "return_attention": True},
            {"queries": [randoms(rng, 2, 20), randoms(rng, 70, 20)], "causal": True,
             "mask": [[[1, 0], [1, 1]], [[1] * 70] * 70], "window": [3, 3],
             "head_mask": [1, 1, 0, 1, 1], "return_attention": "average",
             "trace": {"item": 1, "head": 2, "query": 60}},
            # arrays that grow into kept blocks, and an answer of several pieces
            {"queries": [[1] * 20], "keys": [[i % 7, 1] * 10 for i in range(5000)],
             "return_attention": True})]
        small = {"queries": [randoms(rng, 2, 20)] * 2, "bias": [[0.5, -1], [2, 3]],
                 "valid_lens": [1, 2], "select": "hard", "causal_offset": "end"}
        cls.bodies += [json.dumps(base64_fields(small, "F16")).encode(),
                       safetensors(small, "F16", "I64")]
        # a large head beside those pieces: they are copied out
        cls.fields = [[], [], [f"X-Fill-{i}: " + "x" * 4000 for i in range(5)], [], []]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def setUp(self):
        path = os.path.join(self.folder, "control")
        with open(path, "wb") as file:
            file.write(bytes(24))
        self.file = open(path, "r+b")
        self.control = mmap.mmap(self.file.fileno(), 24)
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + ":verify_asan_link_order=0"
        self.env = {"LD_PRELOAD": self.library, "FAILMALLOC": path, "ASAN_OPTIONS": options}

    def tearDown(self):
        self.control.close()
        self.file.close()

    def arm(self, n, sticky=False):
        self.control[0:24] = struct.pack("<qqq", n, int(sticky), 0)

    def disarm(self):
        """Returns how many allocations failed since arm()."""
        failed = struct.unpack("<q", self.control[16:24])[0]
        self.control[0:8] = bytes(8)
        return failed

    @staticmethod
    def asked(server, message):
        """The answer on a connection of its own; None if there was no memory for one."""
        try:
            with Raw(server) as raw:
                return raw.send(message).answer()
        except (ConnectionResetError, BrokenPipeError):
            return None

    def every_allocation(self, body, fields, sticky, path="/v1/attention", config=None):
        server = Server(config or self.config, "--workers", "2", env=self.env, folder=self.folder)
        message = head_of(path, len(body), *fields) + body
        types = dict(JSON_TYPE, **dict(field.split(": ") for field in fields))
        if not body.startswith(b"{"):
            types = {"Content-Type": "application/x-safetensors"}
            message = message.replace(b"application/json", types["Content-Type"].encode(), 1)
        try:
            right = [server.request("POST", path, body, types).body for _ in range(3)][0]
            quiet, n, refused = 0, 0, 0
            while quiet < 3:
                n += 1
                self.assertLess(n, 3000, "never comes to an end")
                self.arm(n, sticky)
                answer = self.asked(server, message)
                failed = self.disarm()
                if answer is not None:
                    self.assertIn(answer.status, (200, 503), (n, answer))
                    if answer.status == 200:
                        self.assertEqual(answer.body, right, n)
                    else:
                        refused += 1
                        if path.startswith("/v2"):
                            self.assertEqual(list(answer.json), ["error"], answer)
                        else:
                            self.problem(answer, 503, "out-of-memory")
                        self.assertIn("retry-after", answer.headers)
                quiet = 0 if failed else quiet + 1
                again = server.request("POST", path, body, types)
                self.assertEqual((again.status, again.body), (200, right), f"after n = {n}")
            if not sticky:  # else the refusal itself finds no memory
                self.assertGreater(refused, 3, "no allocation of the request's own has failed")
            self.assertGreaterEqual(server.metric("attend_rejected_total", 'reason="memory"'),
                                    refused)
            self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
            self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1),
                            "connections that could not be taken are counted still")
        finally:
            server.stop()

    def test_one_allocation_of_a_request_fails(self):
        for body, fields in zip(self.bodies, self.fields):
            with self.subTest(body[:30]):
                self.every_allocation(body, fields, False)

    def test_all_allocations_from_one_on_fail(self):
        for body, fields in zip(self.bodies, self.fields):
            with self.subTest(body[:30]):
                self.every_allocation(body, fields, True)

    def test_allocations_of_the_inference_protocol(self):
        request = {"queries": randoms(random.Random(2), 2, 3, 20), "valid_lens": [1, 3]}
        body, length = v2(request, ["valid_lens"], ["outputs", "attention_weights"], ["outputs"],
                          id="x", parameters={"causal": True, "causal_offset": [0, 1]})
        shape = b'"shape":[2,3,20],"datatype":"FP32",'  # is to come behind the data
        late = body.replace(shape, b"", 1).replace(b"},{", b"," + shape[:-1] + b"},{", 1)
        self.assertEqual(len(late), len(body))
        for sticky in (False, True):
            self.every_allocation(late, [f"Inference-Header-Content-Length: {length}"], sticky,
                                  "/v2/models/toy/infer")

    def test_allocations_of_whole_models(self):
        names = {"return_hidden": ["encoder.*", "encoder.1.self.input"] * 30,
                 "return_attention": {"of": ["encoder.*.self"], "as": {"thumbnails": 2}},
                 "head_mask": {"encoder.0.self": [1, 0.5]}, "valid_lens": [3, 1]}
        trace = {"attention": "encoder.1.self", "item": 0, "head": 1, "query": 2}
        for request, fields in (({"pool": "mean", "dimensions": 2, "return_attention": True,
                                  "trace": trace}, []),
                                (dict(names, encoding_format="base64"), []),
                                (names, ["Accept: application/x-safetensors"])):
            body = json.dumps(dict(request, tokens=[[1, 2, 3], [4, 5]])).encode()
            for sticky in (False, True):
                with self.subTest(body[:30], sticky=sticky):
                    self.every_allocation(body, fields, sticky, "/v1/models/whole/encode",
                                          self.whole)

    def test_allocations_of_other_answers(self):
        self.other_answers(self.config, ("/healthz", "/metrics", "/v1/models", "/v1/models/toy",
                                         "/nowhere", "/v2", "/v2/models", "/v2/models/toy",
                                         "/v2/models/toy/ready", "/v2/nowhere"))
        self.other_answers(self.whole, ("/v1/models/whole", "/v2/models/whole",
                                        "/v1/models/whole/none"))

    def other_answers(self, config, paths):
        server = Server(config, env=self.env, folder=self.folder)
        try:
            for path in paths:
                expected, quiet, n = server.get(path).status, 0, 0
                while quiet < 3:
                    n += 1
                    self.assertLess(n, 1000)
                    self.arm(n)
                    answer = self.asked(server, head_of(path, method="GET"))
                    quiet = 0 if self.disarm() else quiet + 1
                    if answer is not None:
                        self.assertIn(answer.status, (expected, 503), (path, n, answer))
                    self.assertEqual(server.get(path).status, expected, (path, n))
        finally:
            server.stop()

    def test_start(self):
        """`attend run` with the n-th allocation failing: the right answer, or a word and no crash."""
        path = os.path.join(self.folder, "run.json")
        with open(path, "w") as file:
            json.dump(self.config, file)
        for lines, body in (([], self.bodies[0]), (["--lines"], self.bodies[0] + b"\n" + self.bodies[0])):
            with self.subTest(lines=lines):
                self.run_with_failures(["run", "toy", "--config", path, *lines], body)

    def run_with_failures(self, words, body):
        right = attend(*words, data=body)[1]
        quiet, n, refused = 0, 0, 0
        while quiet < 3:
            n += 1 if MODE == "release" else 5
            self.assertLess(n, 3000, "never comes to an end")
            self.arm(n)
            done = subprocess.run([BIN, *words], input=body,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  env=clean_environment(self.env), timeout=PATIENCE)
            quiet = 0 if self.disarm() else quiet + 1
            if MODE == "asan" and b"CHECK failed: sanitizer_" in done.stderr:
                continue  # a thread of which the sanitizer's own part found no memory
            if done.returncode == 0:
                self.assertEqual(done.stdout, right, n)
            else:
                refused += 1
                self.assertEqual(done.returncode, 1, (n, done.stderr))  # nothing read is wrong
                self.assertTrue(done.stderr, f"says nothing for n = {n}")
        self.assertGreater(refused, 10)

    def start_with(self, n, path):
        """A server whose n-th allocation fails while it starts: it serves, or says why not."""
        self.arm(n)
        process = subprocess.Popen([BIN, "serve", "--config", path], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment(self.env))
        ready = b"listening on" in process.stdout.readline()
        failed = self.disarm()
        if ready:
            process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        if MODE == "asan" and b"CHECK failed: sanitizer_" in err:
            return failed, False  # a thread of which the sanitizer's own part found no memory
        self.assertEqual(process.returncode, 0 if ready else 1, (n, err))
        self.assertNotIn(b"Sanitizer", err, n)
        if not ready:
            self.assertRegex(err, rb"(?m)^attend: .*([Mm]emory|thread|start)", n)
        return failed, ready

    def test_start_of_a_server(self):
        """All that comes before the ready line, with a page of settings."""
        path = os.path.join(self.folder, "serve.json")
        with open(path, "w") as file:
            json.dump(dict(self.config, listen="127.0.0.1:0", workers=2, io_threads=2,
                           max_body_bytes=1000000, max_answer_bytes=1000000, max_queue=7,
                           memory_budget_bytes=10000000, max_items=50, max_pairs=100000,
                           max_connections=9, idle_timeout_ms=900, header_timeout_ms=800,
                           body_timeout_ms=700, answer_timeout_ms=600, deadline_ms=500,
                           drain_ms=400, merge=False, default_model="toy", gemm="packed",
                           access_log="all", log_level="warning",
                           prefix_cache_bytes=100000), file)
        quiet, n, refused = 0, 0, 0
        while quiet < 3:
            n += 1 if MODE == "release" else 5
            self.assertLess(n, 3000, "never comes to an end")
            failed, ready = self.start_with(n, path)
            quiet = 0 if failed else quiet + 1
            refused += not ready
        self.assertTrue(ready)
        self.assertGreater(refused, 100 if MODE == "release" else 20)

    def test_every_request(self):
        """Of each kind: the right answer, or 503, or none; and then the right one again."""
        server = Server(self.both, "--workers", "2", "--io-threads", "1", "--access-log", "all",
                        env=self.env, folder=self.folder)
        self.addCleanup(server.kill)
        kinds = requests("toy", 20, 5) + whole_requests()
        for sticky in (False, True):
            for request in kinds:
                with self.subTest(request.name, sticky=sticky):
                    self.every_failure(server, request, sticky)
        self.assertTrue(wait_until(
            lambda: server.metric("attend_inflight_bytes") == server.metric("attend_prefix_bytes")))
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))
        server.stop()
        self.assertNotIn("Sanitizer", server.stderr())

    def every_failure(self, server, request, sticky):
        right, quiet, n, message = request.ask(server), 0, 0, request.message()
        while quiet < 3:
            n += 1
            self.assertLess(n, 1000, "never comes to an end")
            self.arm(n, sticky)
            answer = self.asked(server, message)
            quiet = 0 if self.disarm() else quiet + 1
            if answer:
                self.assertIn(answer.status, (right.status, 503), (n, answer))
            if answer and answer.status == right.status:
                self.assertTrue(request.agrees(answer.body, right.body), (n, answer))
            again = request.ask(server)
            self.assertEqual(again.status, right.status, n)
            self.assertTrue(request.agrees(again.body, right.body), (n, again))
        self.assertGreater(n, 6)

    def test_a_stop_without_memory(self):
        """In the middle of requests, and nothing can be allocated any more."""
        for _ in range(3):
            server = Server(self.both, env=self.env, folder=self.folder)
            raws = [(r, Raw(server)) for r in requests("toy", 20, 5) + whole_requests()]
            for request, raw in raws:
                message = request.message()
                raw.send(message[:-7])
            self.arm(1, True)
            server.signal()
            for request, raw in raws:
                try:
                    raw.send(request.message()[-7:])
                    answer = raw.answer()
                except (ConnectionResetError, BrokenPipeError, AssertionError):
                    answer = None
                if answer:
                    self.assertIn(answer.status, (200, 304, 400, 404, 503))
                raw.socket.close()
            self.assertIn(server.wait(), (0, 3), server.stderr())
            self.assertGreater(self.disarm(), 0)
            self.assertNotIn("Sanitizer", server.stderr())

    def test_documents_of_every_kind(self):
        """Memory ends while Jansson reads what takes the most of it: refused as with memory, or for
        want of it. What is read to a wrong end would be told as somebody's mistake."""
        pairs = ",".join(f'"k{i}":{i}' for i in range(3000))
        documents = {"long string": '{"listen":"%s"}' % ("x" * 300000), "long key":
                     '{"%s":1}' % ("k" * 300000), "numbers": "[%s]" % ",".join("1" * 100000),
                     "objects": "[%s]" % ",".join(["{}"] * 5000), "pairs": "{%s}" % pairs,
                     "nested": '{"models":%s1%s}' % ('{"m":' * 1000, "}" * 1000)}
        path = os.path.join(self.folder, "document.json")
        command = ["check", "--config", path]
        for name, text in documents.items():
            with open(path, "w") as file:
                file.write(text)
            self.arm(1 << 40)
            right = attend(*command, env=self.env)
            self.assertEqual(right[0], 2, right)
            most = (1 << 40) - struct.unpack("<q", self.control[0:8])[0]
            rng, wanting = random.Random(most), 0
            for n in sorted(rng.sample(range(1, most + 1), min(most, 60 if MODE == "release" else 12))):
                self.arm(n, True)
                status, out, err = attend(*command, env=self.env)
                self.assertTrue((status, out, err) == right or
                                (status == 1 and ("no memory" in err or "out of memory" in err)), (name, n, err[:300]))
                wanting += status == 1
            self.assertGreater(wanting, 5 if MODE == "release" else 0, name)


class GivingBack(Case):
    @unittest.skipUnless(MODE == "release", "a sanitizer keeps what is freed")
    def test_memory_of_large_requests_goes_back(self):
        body = json.dumps({"queries": [[[1, 0, 0, 1]] * 200] * 10,
                           "return_attention": True}).encode()
        server = Server()
        try:
            server.attend(body)
            before, peak = server.resident(), 0
            clients = [threading.Thread(target=lambda: [server.attend(body) for _ in range(3)])
                       for _ in range(24)]
            for client in clients:
                client.start()
            while any(client.is_alive() for client in clients):
                peak = max(peak, server.resident())
                time.sleep(0.01)
            self.assertGreater(peak, before + 40e6, "the requests were not large enough to tell")
            self.assertTrue(wait_until(lambda: server.resident() < before + 20e6),
                            (before, peak, server.resident()))
        finally:
            server.stop()


    @unittest.skipUnless(MODE == "release", "a sanitizer takes more and keeps what is freed")
    def test_blocks_are_kept_for_a_while(self):
        """The second request finds memory that the first one left; later it goes back."""
        body = json.dumps({"queries": [[[1, 0, 0, 1]] * 200] * 10,
                           "return_attention": True}).encode()
        server = Server()
        try:
            for _ in range(2):
                # a slow machine may ask when it has gone back already: then again
                self.assertTrue(wait_until(lambda: server.attend(body) and
                                           1e6 < server.metric("attend_kept_bytes") < 65e6))
            self.assertTrue(wait_until(lambda: server.metric("attend_kept_bytes") == 0))
            server.attend(body)
            before = server.resident()  # and without any connection, too
            self.assertTrue(wait_until(lambda: server.resident() < before - 1e6))
        finally:
            server.stop()


class Peak(Case):
    NUMBERS = 2.4e6  # of the request: 20 MB of text

    @unittest.skipUnless(MODE == "release", "a sanitizer takes more")
    def test_memory_of_a_large_request(self):
        """Above idle, at most 2.2 times its float32 numbers, whatever the shapes."""
        rng = random.Random(2)
        rows = [",".join(f"{rng.gauss(0, 1):.6f}" for _ in range(512)) for _ in range(50)]

        def batch(sizes):
            return "[" + ",".join(
                "[" + ",".join("[" + rng.choice(rows) + "]" for _ in range(n)) + "]"
                for n in sizes) + "]"

        shapes = {"even": ([64] * 24, [64] * 24),
                  "ragged": ([rng.randint(32, 96) for _ in range(24)],
                             [rng.randint(32, 96) for _ in range(24)]),
                  "one item": ([1536], [1536]), "few queries": ([16] * 35, [64] * 35)}
        for name, (q, k) in shapes.items():
            body = '{"queries":%s,"keys":%s,"values":%s}' % (batch(q), batch(k), batch(k))
            with self.subTest(name):
                server = Server()
                try:
                    self.assertEqual(server.attend(TOY).status, 200)
                    before = server.resident()
                    self.assertEqual(server.attend(body.encode(), "base").status, 200)
                    carried = 4 * 512 * (sum(q) + 2 * sum(k))
                    self.assertGreater(carried, 4 * 0.9 * self.NUMBERS)
                    self.assertLess(server.most_resident() - before, 2.2 * carried)
                finally:
                    server.stop()


class LargeAnswer(Case):
    def test_answer_of_very_many_numbers(self):
        """14 million weights in short rows, which could be cut into many pieces: libmicrohttpd takes
        few only, and aborts where it can't."""
        server = Server()
        try:
            answer = server.attend({"queries": [[[1, 0, 0, 1]] * 200] * 170,
                                    "valid_lens": [1] * 170, "return_attention": True})
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.body.count(b"[1,0,0,"), 2 * 200 * 170)
            self.assertEqual(server.attend(TOY).status, 200)
        finally:
            server.stop()

    def test_large_answer_beside_a_large_head(self):
        """The list of an answer's pieces and the request's head share a connection's memory."""
        body = json.dumps({"queries": [[[1, 0, 0, 1]] * 500], "valid_lens": [1],
                           "return_attention": True}).encode()
        server = Server()
        try:
            right = server.attend(body).body
            answered = 0
            for size in [*range(1, 34, 8), *range(36, 48), 47.5, 48, 60]:
                fields, left = [], int(size * 1024)
                while left > 0:
                    fields.append("X-Fill: " + "x" * min(left, 4000))
                    left -= len(fields[-1]) + 2
                with Raw(server) as raw:
                    raw.send(head_of("/v1/attention", len(body), *fields))
                    try:
                        answer = raw.send(body).answer()
                    except (ConnectionResetError, BrokenPipeError):
                        answer = None
                if answer and answer.status == 200:
                    self.assertEqual(answer.body, right, size)
                    answered += 1
                self.assertEqual(server.attend(TOY).status, 200, size)
            self.assertGreater(answered, 10)
        finally:
            server.stop()

    def test_large_answer_beside_many_fields(self):
        """So do entries for the fields of head and trailer, and what the client has sent ahead."""
        body = json.dumps({"queries": [[[1, 0, 0, 1]] * 1400], "valid_lens": [1],
                           "return_attention": True}).encode()
        ahead = head_of("/healthz", method="GET") * 1500
        server = Server()
        try:
            right, answered = server.attend(body).body, 0
            for fields, trailers in ((100, None), (160, None), (170, None), (300, None),
                                     (330, None), (360, None), (0, 100), (0, 340), (0, 360),
                                     (150, 200), (160, 220)):
                with self.subTest(fields=fields, trailers=trailers), Raw(server) as raw:
                    many = ["A:b"] * fields
                    if trailers is None:
                        message, end = body[:-1], body[-1:]
                        head = head_of("/v1/attention", len(body), *many)
                    else:
                        message = chunked(body, [len(body)])[:-len(b"0\r\n\r\n")]
                        end = b"0\r\n" + b"A:b\r\n" * trailers + b"\r\n"
                        head = head_of("/v1/attention", None, "Transfer-Encoding: chunked", *many)
                    raw.send(head + message)
                    time.sleep(0.1)  # so that the end is read together with what follows it
                    raw.send(end + ahead)
                    answer = raw.answer()  # where there is no room at all: 431, or none
                    if answer and answer.status == 200:
                        self.assertTrue(answer.body == right)
                        answered += 1
                    self.assertEqual(server.attend(TOY).status, 200)
            self.assertGreater(answered, 7)
        finally:
            server.stop()


class Budget(Case):
    def test_memory_budget(self):
        server = Server(None, "--memory-budget-bytes", "2000000")
        try:
            row = [0.5] * 512
            answer = server.attend({"queries": [[row] * 1500]}, "base")
            problem = self.problem(answer, 413, "too-large", limit="memory_budget_bytes")
            self.assertIn("the memory budget is", problem["detail"])
            self.assertNotIn("retry-after", answer.headers)  # it would never fit
            self.assertEqual(server.attend(TOY).status, 200)
            self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
            self.assertGreaterEqual(server.metric("attend_rejected_total"), 1)
        finally:
            server.stop()

    @unittest.skipUnless(MODE == "release", "a sanitizer takes minutes")
    def test_a_client_is_not_in_its_own_way(self):
        """One request after the other, of which two do not fit: what the last one held is free."""
        server = Server(None, "--io-threads", "1", "--memory-budget-bytes", str(300 << 20),
                        "--max-answer-bytes", str(1 << 30))
        connection = server.connect()
        try:
            body = json.dumps({"queries": [[1, 0, 0, 1]] * 2500, "return_attention": True}).encode()
            for _ in range(4):
                answer = server.request("POST", "/v1/attention", body, JSON_TYPE,
                                        connection=connection)
                self.assertEqual(answer.status, 200, answer)
        finally:
            connection.close()
            server.stop()


if __name__ == "__main__":
    unittest.main()
