"""test_framing: HTTP itself: lengths, codings, methods, types, pipelines, clients that dawdle."""
import json
import re
import signal
import socket
import struct
import time
import unittest

from support import (PATIENCE, SLOW, TOY, Case, Raw, Server, ServerCase, chunked, head_of,
                     wait_until)

BODY = json.dumps(TOY).encode()
PATH = "/v1/attention"
LIMIT = 100000  # max_body_bytes here


class Framing(ServerCase):
    @classmethod
    def start(cls):
        return Server(None, "--max-body-bytes", str(LIMIT))

    def tearDown(self):
        self.alive()
        self.settled()

    def refused(self, head, status, slug, closes=True, **where):
        """The bytes of `head` alone are answered with that problem, then the connection ends."""
        with self.subTest(head=head[:80], slug=slug), Raw(self.server) as raw:
            raw.send(head)
            problem = self.problem(raw.answer(), status, slug, **where)
            if closes:
                self.assertTrue(raw.closed(), "the connection stays open")
            return problem

    # --- contradictions ---

    def test_length_and_coding_together(self):
        self.refused(head_of(PATH, 5, "Transfer-Encoding: chunked"), 400, "bad-framing")
        self.refused(head_of(PATH, None, "Transfer-Encoding: chunked", "Content-Length: 5"),
                     400, "bad-framing")

    def test_two_lengths(self):
        self.refused(head_of(PATH, 5, "Content-Length: 6"), 400, "bad-framing")
        self.refused(head_of(PATH, 5, "content-length: 7"), 400, "bad-framing")

    def test_lengths_that_are_none(self):
        for length in ("-1", "+5", "5x", "0x10", "", "5,6", "1 2", "1e3", "99999999999999999999999"):
            with self.subTest(length), Raw(self.server) as raw:
                raw.send(head_of(PATH, length))
                answer = raw.answer()
                if answer is not None:
                    self.assertIn(answer.status, (400, 413), answer)
                    self.assertTrue(raw.closed())

    def test_two_hosts(self):
        self.refused(head_of(PATH, 5, "Host: other"), 400, "bad-framing")

    def test_header_names_that_are_no_tokens(self):
        for line in ("Bad Name: x", "Bad(Name: x", "Bad\x7fName: x", "Caf\xe9: x", "@: x"):
            with self.subTest(line), Raw(self.server) as raw:
                raw.send(head_of(PATH, 5, line))
                answer = raw.answer()
                if answer is not None:
                    self.assertEqual(answer.status, 400, answer)
                    self.assertTrue(raw.closed())

    def test_unknown_codings(self):
        for coding in ("gzip", "gzip, chunked", "identity", "chunked, chunked", "chunkedx", "xchunked"):
            self.refused(head_of(PATH, None, f"Transfer-Encoding: {coding}"), 501,
                         "unsupported-transfer-encoding")
        for coding in ("chunked, gzip", "chunked,identity", "gzip, chunked, br"):
            self.refused(head_of(PATH, None, f"Transfer-Encoding: {coding}"), 400, "bad-framing")

    def test_chunked_in_any_case(self):
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, None, "Transfer-Encoding: CHUNKED")).send(chunked(BODY, [10]))
            self.assertEqual(raw.answer().status, 200)

    def test_broken_chunks(self):
        for body in (b"xyz\r\n", b"-5\r\nhello\r\n", b"5\r\nhelloX\r\n0\r\n\r\n",
                     b"ffffffffffffffffff\r\nx\r\n"):
            with self.subTest(body), Raw(self.server) as raw:
                raw.send(head_of(PATH, None, "Transfer-Encoding: chunked")).send(body)
                answer = raw.answer()
                if answer is not None:
                    self.assertIn(answer.status, (400, 413), answer)
                    self.assertTrue(raw.closed())

    # --- too large ---

    def test_length_over_the_limit(self):
        for length in (LIMIT + 1, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1):
            with self.subTest(length), Raw(self.server) as raw:
                raw.send(head_of(PATH, length))
                answer = raw.answer()
                if length < 1 << 63 or answer.json.get("type"):
                    self.problem(answer, 413, "too-large", limit="max_body_bytes")
                else:
                    self.assertEqual(answer.status, 413)
                self.assertTrue(raw.closed())

    def test_length_over_the_limit_is_answered_at_once_with_expect(self):
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, LIMIT + 1, "Expect: 100-continue"))
            self.problem(raw.answer(), 413, "too-large", limit="max_body_bytes")
            self.assertTrue(raw.closed())

    def test_the_answer_can_be_read_by_who_sends_on(self):
        """A client that uploads without looking still gets to read the refusal."""
        for size in (LIMIT + 1, 900000, 4000000):
            with self.subTest(size), Raw(self.server) as raw:
                raw.send(head_of(PATH, size))
                time.sleep(0.05)
                sent = 0
                try:
                    while sent < min(size, 900000):
                        raw.send(b" " * min(50000, size - sent))
                        sent += 50000
                except (ConnectionResetError, BrokenPipeError):
                    self.fail(f"the connection was reset after {sent} bytes")
                self.problem(raw.answer(), 413, "too-large")
                self.assertTrue(raw.closed())
                self.assertFalse(getattr(raw, "reset", False), "ended by a reset")

    def test_other_early_refusals_can_be_read_too(self):
        size = 90000
        for head, status in ((head_of("/nowhere", size), 404),
                             (head_of(PATH, size).replace(b"application/json", b"text/plain"), 415),
                             (head_of("/v1/models/none/attention", size), 404)):
            with self.subTest(status=status), Raw(self.server) as raw:
                raw.send(head)
                time.sleep(0.05)
                for _ in range(size // 10000):
                    raw.send(b" " * 10000)
                answer = raw.answer()
                self.assertIsNotNone(answer)
                self.assertEqual(answer.status, status)
                raw.closed()
                self.assertFalse(getattr(raw, "reset", False), "ended by a reset")

    def test_chunked_body_over_the_limit(self):
        for total in (LIMIT * 2, LIMIT * 9):
            with self.subTest(total), Raw(self.server) as raw:
                raw.send(head_of(PATH, None, "Transfer-Encoding: chunked"))
                body = b'{"queries":[[[1,2,3,4]]]' + b" " * total + b"}"
                try:
                    raw.send(chunked(body, [5000]))
                    answer = raw.answer()
                except (ConnectionResetError, BrokenPipeError):
                    answer = None
                if total == LIMIT * 2:
                    self.problem(answer, 413, "too-large", limit="max_body_bytes")
                elif answer is not None:
                    self.assertEqual(answer.status, 413)

    def test_endless_chunked_upload_is_cut_off(self):
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, None, "Transfer-Encoding: chunked"))
            part, begun, cut = b"8000\r\n" + b" " * 32768 + b"\r\n", time.monotonic(), False
            while not cut and time.monotonic() - begun < PATIENCE:
                try:
                    raw.send(part)
                    time.sleep(0.002)
                except (ConnectionResetError, BrokenPipeError, socket.timeout):
                    cut = True
            self.assertTrue(cut, "the server reads for ever")

    def test_body_of_exactly_the_limit(self):
        body = b'{"queries":[[[1,2,3,4]]]' + b" " * (LIMIT - 25) + b"}"
        self.assertEqual(len(body), LIMIT)
        self.assertEqual(self.server.attend(body).status, 200)
        self.assertEqual(self.server.attend(body + b" ").status, 413)

    # --- expectations ---

    def test_expect_continue(self):
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, len(BODY), "Expect: 100-continue"))
            self.assertEqual(raw.answer().status, 100)
            raw.send(BODY)
            self.assertEqual(raw.answer().status, 200)

    def test_expect_is_not_encouraged_without_memory(self):
        """When the budget is taken, a client that asks first need not upload for nothing."""
        server = Server(None, "--memory-budget-bytes", "40000")
        raws = []
        try:
            for _ in range(20):
                raws.append(Raw(server).send(head_of(PATH, 500, "Expect: 100-continue")))
                answer = raws[-1].answer()
                if answer.status != 100:
                    break
            self.problem(answer, 429, "overloaded")
            self.assertTrue(raws[-1].closed())
        finally:
            for raw in raws:
                raw.socket.close()
            server.stop()

    def test_expect_is_not_encouraged_for_what_never_fits(self):
        server = Server(None, "--memory-budget-bytes", "8000")
        self.addCleanup(server.stop)
        with Raw(server) as raw:
            answer = raw.send(head_of(PATH, 500, "Expect: 100-continue")).answer()
            self.problem(answer, 413, "too-large", limit="memory_budget_bytes")
            self.assertNotIn("retry-after", answer.headers)

    # --- types, methods, paths ---

    def test_content_types(self):
        for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON",
                     "application/json;charset=UTF-8", "application/json ; a=b"):
            with self.subTest(kind):
                self.ok(self.server.attend(TOY, headers={"Content-Type": kind}))
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                     "multipart/form-data; boundary=x", "json", "text/json"):
            with self.subTest(kind):
                self.problem(self.server.attend(TOY, headers={"Content-Type": kind}), 415,
                             "unsupported-media-type")

    def test_no_content_type_is_json(self):
        self.ok(self.server.request("POST", PATH, BODY))

    def test_content_encodings(self):
        for coding in ("gzip", "deflate", "br", "zstd", "gzip, identity", "x"):
            with self.subTest(coding):
                self.problem(self.server.attend(TOY, headers={"Content-Encoding": coding}), 415,
                             "unsupported-media-type")
        self.ok(self.server.attend(TOY, headers={"Content-Encoding": "identity"}))

    def test_methods(self):
        for method, path, allow in (("GET", PATH, {"POST"}), ("PUT", PATH, {"POST"}),
                                    ("DELETE", PATH, {"POST"}), ("HEAD", PATH, {"POST"}),
                                    ("BREW", PATH, {"POST"}), ("OPTIONS", PATH, {"POST"}),
                                    ("GET", "/v1/models/demo/attention", {"POST"}),
                                    ("POST", "/v1/models", {"GET", "HEAD"}),
                                    ("POST", "/v1/models/demo", {"GET", "HEAD"}),
                                    ("POST", "/healthz", {"GET", "HEAD"}),
                                    ("DELETE", "/metrics", {"GET", "HEAD"}),
                                    ("PUT", "/readyz", {"GET", "HEAD"})):
            with self.subTest(method=method, path=path):
                answer = self.server.request(method, path)
                self.assertEqual(answer.status, 405, answer)
                self.assertEqual(set(re.split(r",\s*", answer.headers["allow"])), allow)
                if method != "HEAD":
                    self.problem(answer, 405, "method-not-allowed")

    def test_unknown_paths(self):
        for path in ("/nowhere", "/v1", "/v1/", "/v1/attentionx", "/V1/attention",
                     "/v1/models/demo/attention/x",
                     "//v1/attention", "/v1/models/demo/run", "/%2e%2e/etc/passwd", "/v1/../healthz"):
            with self.subTest(path):
                self.problem(self.server.get(path), 404, "not-found")
                self.problem(self.server.post(path, TOY), 404, "not-found")

    def test_unknown_models(self):
        for name in ("nobody", "DEMO", "demo%00", "demo%2fattention", "x" * 500, "d%c3%a9mo"):
            with self.subTest(name):
                self.problem(self.server.attend(TOY, name), 404, "unknown-model")
                self.problem(self.server.get(f"/v1/models/{name}"), 404, "unknown-model")

    def test_query_strings_are_ignored(self):
        self.ok(self.server.post(PATH + "?a=b&c=/v1", TOY))
        self.assertEqual(self.server.get("/healthz?x").status, 200)

    def test_accept(self):
        for accept in ("*/*", "application/json", "application/*", "text/html, */*;q=0.1",
                       "application/json;q=0.5", "text/html,application/json", ""):
            with self.subTest(accept):
                self.ok(self.server.attend(TOY, headers={"Accept": accept}))
        for accept in ("text/html", "image/*", "application/json;q=0", "text/html;q=1, image/png",
                       "application/json;q=0, */*;q=0"):
            with self.subTest(accept):
                self.problem(self.server.attend(TOY, headers={"Accept": accept}), 406,
                             "not-acceptable")

    def test_head(self):
        for path in ("/healthz", "/readyz", "/metrics", "/v1/models", "/v1/models/demo"):
            with self.subTest(path), Raw(self.server) as raw:
                raw.send(head_of(path, method="HEAD")).send(head_of("/healthz", method="GET"))
                first = raw.answer(head=True)
                self.assertEqual(first.status, 200)
                self.assertGreater(int(first.headers["content-length"]), 0)
                self.assertEqual(raw.answer().status, 200)

    # --- connections ---

    def test_keep_alive_and_close(self):
        with Raw(self.server) as raw:
            for _ in range(5):
                raw.send(head_of(PATH, len(BODY)) + BODY)
                self.assertEqual(raw.answer().status, 200)
            raw.send(head_of(PATH, len(BODY), "Connection: close") + BODY)
            answer = raw.answer()
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.headers.get("connection", "").lower(), "close")
            self.assertTrue(raw.closed())

    def test_http_1_0(self):
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, len(BODY)).replace(b"HTTP/1.1", b"HTTP/1.0") + BODY)
            self.assertEqual(raw.answer().status, 200)
            self.assertTrue(raw.closed())

    def test_connection_survives_a_refusal(self):
        """What was read whole and refused does not cost the connection."""
        with Raw(self.server) as raw:
            for body in (b"{", b'{"queries":[[[1,2,3]]]}', BODY):
                raw.send(head_of(PATH, len(body)) + body)
                self.assertEqual(raw.answer().status, 200 if body is BODY else 400)

    def test_pipelined_requests_are_answered_in_order(self):
        requests = []
        for i in range(20):
            body = json.dumps({"queries": [[[1, 2, 3, 4]] * (20 - i)]}).encode()
            requests.append(head_of(PATH, len(body), f"X-Request-Id: number-{i}") + body)
            requests.append(head_of("/healthz", None, f"X-Request-Id: health-{i}", method="GET"))
        with Raw(self.server) as raw:
            raw.send(b"".join(requests))
            for i in range(20):
                answer = raw.answer()
                self.assertEqual(answer.headers["x-request-id"], f"number-{i}")
                self.assertEqual(len(answer.json["outputs"][0]), 20 - i)
                self.assertEqual(raw.answer().headers["x-request-id"], f"health-{i}")

    def test_half_closed_after_a_full_request(self):
        for path in ("/healthz", "/v1/models"):
            with self.subTest(path), Raw(self.server) as raw:
                raw.send(head_of(path, method="GET"))
                raw.socket.shutdown(socket.SHUT_WR)
                answer = raw.answer()
                self.assertIsNotNone(answer)
                self.assertEqual(answer.status, 200)

    def test_clients_that_leave_at_every_byte(self):
        """Reset or closed anywhere in head or body: nothing stays behind."""
        message = head_of(PATH, len(BODY)) + BODY
        self.server.get("/healthz")
        before = self.server.descriptors()
        for at in range(0, len(message), 3):
            raw = Raw(self.server).send(message[:at])
            if at % 2:
                raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.socket.close()
        self.assertTrue(wait_until(lambda: self.server.descriptors() <= before + 2),
                        f"{self.server.descriptors()} descriptors, {before} before")

    def test_clients_that_leave_without_their_answer(self):
        rows = [[0.5] * 4] * 400
        body = json.dumps({"queries": [rows], "return_attention": True}).encode()
        before = self.server.descriptors()
        for hard in (False, True) * 10:
            raw = Raw(self.server).send(head_of(PATH, len(body)) + body)
            if hard:
                raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raw.socket.close()
        self.settled()
        self.assertTrue(wait_until(lambda: self.server.descriptors() <= before + 2))

    def test_garbage(self):
        for garbage in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                        b"\0" * 100, b"\r\n" * 50, b"GET\r\n\r\n", b"hello\r\n\r\n",
                        b"GET / HTTP/9.9\r\n\r\n", bytes(range(256)) * 4):
            with self.subTest(garbage[:20]), Raw(self.server) as raw:
                raw.send(garbage)
                raw.socket.shutdown(socket.SHUT_WR)
                answer = raw.answer()
                if answer is not None:
                    self.assertIn(answer.status // 100, (4, 5), answer)

    def test_header_block_too_large(self):
        with Raw(self.server) as raw:
            try:
                raw.send(head_of(PATH, 5, *[f"X-{i}: {'y' * 1000}" for i in range(200)]))
                answer = raw.answer()
            except (ConnectionResetError, BrokenPipeError):
                answer = None
            if answer is not None:
                self.assertIn(answer.status, (400, 413, 431), answer)

    # --- what every answer carries ---

    def test_request_id(self):
        answer = self.server.attend(TOY, headers={"X-Request-Id": "abc-123_x.Y"})
        self.assertEqual(answer.headers["x-request-id"], "abc-123_x.Y")
        made = [self.server.get("/healthz").headers["x-request-id"] for _ in range(3)]
        self.assertEqual(len(set(made)), 3)
        for bad in ("x" * 10000, "a b", "caf\xe9", 'q"uote', "<script>"):
            with self.subTest(bad[:20]):
                answer = self.server.attend(TOY, headers={"X-Request-Id": bad})
                if answer.status == 200:
                    self.assertNotEqual(answer.headers["x-request-id"], bad)
        answer = self.server.post("/nowhere", b"", headers={"X-Request-Id": "lost"})
        self.assertEqual(answer.headers["x-request-id"], "lost")

    def test_server_timing(self):
        timing = self.server.attend(TOY).headers["server-timing"]
        for stage in ("decode", "queue", "compute", "encode"):
            self.assertRegex(timing, rf"\b{stage};dur=\d+(\.\d+)?")

    def test_operations(self):
        self.assertEqual(self.server.get("/readyz").status, 200)
        answer = self.server.get("/metrics")
        self.assertTrue(answer.headers["content-type"].startswith("text/plain"))
        text = answer.body.decode()
        for name in ("attend_http_requests_total", "attend_http_request_duration_seconds_bucket",
                     "attend_http_request_duration_seconds_count", "attend_stage_duration_seconds",
                     "attend_queue_depth", "attend_inflight_bytes", "attend_build_info",
                     "process_resident_memory_bytes"):
            self.assertIn("\n" + name, "\n" + text)
        for line in text.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) \w+ .+|\w+(\{.*\})? [-+0-9.eEInfNa]+)$")

    def test_metrics_count(self):
        before = self.server.metric("attend_http_requests_total", 'code="200"')
        for _ in range(5):
            self.server.attend(TOY)
        self.assertTrue(wait_until(lambda: self.server.metric(
            "attend_http_requests_total", 'code="200"') >= before + 5))
        buckets = {}
        for line in self.server.get("/metrics").body.decode().splitlines():
            match = re.match(r'attend_http_request_duration_seconds_bucket\{(.*)le="([^"]+)"(.*)\} '
                             r"(\S+)", line)
            if match:
                buckets.setdefault(match.group(1) + match.group(3), []).append(
                    (float(match.group(2).replace("+Inf", "inf")), float(match.group(4))))
        self.assertTrue(buckets)
        for series in buckets.values():
            self.assertEqual([c for _, c in sorted(series)], sorted(c for _, c in series))


GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /v1/attention HTTP/1.1\r\nHost: x\r\n"


class Heads(ServerCase):
    """Heads in raw bytes: what does not parse cleanly is refused, whatever else is sent along."""

    @classmethod
    def start(cls):
        return Server(None, "--header-timeout-ms", "20000")

    def tearDown(self):
        self.alive()
        self.settled()

    def refused(self, data, parts=1, ours=True):
        """One answer, 400 bad-framing, and the end, although a request seems to follow. Not ours is
        the answer to what libmicrohttpd refuses by itself; it may say its head twice."""
        step = -(-len(data) // parts)
        with self.subTest(data=data[:120], parts=parts), Raw(self.server) as raw:
            for at in range(0, len(data), step):
                raw.send(data[at:at + step])
                if parts > 1:
                    time.sleep(0.001)
            answer = raw.answer()
            self.assertEqual(answer.status, 400, answer)
            if ours:
                self.problem(answer, 400, "bad-framing")
            self.assertTrue(raw.closed(), "the connection stays open")
            self.assertEqual(bytes(raw.data) if ours else raw.data.count(b" 200 "), b"" if ours else 0,
                             "a second answer")

    def answered(self, data, statuses, before=None):
        """Those answers in that order, whether the bytes come at once or in parts."""
        for size in (len(data), max(1, len(data) // 7)):
            with self.subTest(data=data[:120], size=size), Raw(self.server) as raw:
                if before:
                    raw.send(before)
                    self.assertEqual(raw.answer().status, 200)
                for at in range(0, len(data), size):
                    raw.send(data[at:at + size])
                    time.sleep(0.001)
                for status in statuses:
                    answer = raw.answer()
                    self.assertIsNotNone(answer)
                    self.assertEqual(answer.status, status, answer)

    def test_folded_fields(self):
        length = b"%d" % len(GET)
        for data in (POST + b"Content-Length:\r\n " + length + b"\r\n\r\n",
                     POST + b"Content-Length:\r\n\t" + length + b"\r\n\r\n",
                     POST + b"Content-Length: \r\n  " + length + b"\r\nX: y\r\n\r\n",
                     POST + b"Content-Length:\n " + length + b"\n\n",
                     POST + b"Content-Length: 0\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
                     POST + b"Content-Length: 2\r\n 9\r\n\r\n",
                     POST + b"X: y\r\n z\r\nContent-Length: " + length + b"\r\n\r\n",
                     POST + b"X: y\r\n \r\nContent-Length: " + length + b"\r\n\r\n",
                     POST + b"X: y\r\n\t\r\n\r\n", POST + b"X:\n a\n\n", POST + b"X:\n \n\n",
                     POST + b"X:    \n ab\n\n", POST + b"X: y\r\n z\r\n w\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\n X: 1\r\nHost: x\r\n\r\n"):
            self.refused(data + GET)
            self.refused(GET[:-2] + b"Connection: close\r\n y\r\n\r\n" + GET)
        for more in (b"Y: 1\r\n" * 300, b"Y: " + b"1" * 4000 + b"\r\n", b"Y: " + b"1" * 15000 + b"\r\n"):
            for parts in (1, 7):
                self.refused(POST + b"X:\r\n y\r\n" + more + b"\r\n" + GET, parts)
                self.refused(POST + b"A: b\r\nX: z\r\n y\r\n" + more + b"B: c\r\n\r\n" + GET, parts)
        get = b"GET /healthz HTTP/1.1\r\n"
        self.refused(get + b"Host:\r\n x\r\nX: y\r\n\r\n" + GET)
        self.refused(get + b"X: 1\r\nHost: x\r\n y\r\n\r\n" + GET)

    def test_folds_at_every_place_of_the_buffer(self):
        """Whether the pieces are put together in place or elsewhere depends on where they lie."""
        for pad in list(range(64)) + [24 * 1024 - 70 + i for i in range(0, 64, 3)]:
            for fold in (b"X:\n a\n", b"X:\r\n abcdefghijkl\r\n", b"X:      \r\n  ab\r\n"):
                data = b"GET /healthz HTTP/1.1\r\nHost: x\r\nP: " + b"p" * pad + b"\r\n" + fold
                with self.subTest(pad=pad, fold=fold), Raw(self.server) as raw:
                    raw.send(data)
                    raw.send(b"\r\n" + GET)
                    self.problem(raw.answer(), 400, "bad-framing")
                    self.assertTrue(raw.closed())

    def test_lines_without_a_name(self):
        for line in (b": x", b":", b":x", b": ", b"\0X: y", b"\0", b"\0: y", b"\0\0", b":\0"):
            for data in (POST + b"Content-Length: 2\r\n" + line + b"\r\n\r\n",
                         POST + line + b"\r\nContent-Length: 2\r\n\r\n",
                         POST + b"Content-Length: 2\r\n" + line + b"\r\nX: y\r\n\r\n",
                         POST + line + b"\r\n\r\n", POST + b"X: y\r\n" + line + b"\r\n",
                         b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + line + b"\r\n"):
                self.refused(data + GET)

    def test_nul_and_bare_cr(self):
        for field in (b"Content-Length: 25\0 99", b"Content-Length: 2\0",
                      b"Transfer-Encoding: chunked\0, gzip", b"Transfer-Encoding: chunked\0",
                      b"X: y\0", b"X: \0", b"X:\0", b"X: y\0\0\0", b"X: y\rContent-Length: 5",
                      b"X: y\r"):
            self.refused(POST + field + b"\r\n\r\n" + GET)
            self.refused(POST + field + b"\r\nY: z\r\n\r\n" + GET)
        self.refused(POST + b"Content-Length: \0" + b"2\r\n\r\n" + GET, ours=False)
        for target in (b"/healthz\0", b"/healthz\0/x", b"/healthz\0?x", b"/healthz?\0", b"/healthz?a\0b",
                       b"/healthz?a=b\0&c", b"/healthz\0HTTP/1.1", b"\0", b"/healthz\rX", b"/\x7f",
                       b"/healthz?\tx"):
            self.refused(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        self.refused(b"GET\0 /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        self.refused(b"GE\0T /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + GET)

    def test_targets_that_are_none(self):
        for target in (b"/metrics#x", b"/healthz#", b"/healthz?a#b", b"/healthz?#", b"#", b"*#",
                       b"http://x/healthz#y", b"/caf\xc3\xa9", b"/healthz?\xff", b"/\x80",
                       b"http://x/healthz?\xe9", b"http://user@x/healthz", b"http://user:word@x/healthz",
                       b"http://@x/healthz", b"https://x@",
                       b"http:///healthz", b"http://", b"http://?x", b"http://h,b/healthz",
                       b"http://h:x/healthz", b"http://h:80:80/healthz", b"http://[::1/healthz",
                       b"http://:80/healthz", b"healthz", b"x/healthz", b"?", b"*x", b"x:80",
                       b"/health z", b"/healthz ", b"/healthz?a b", b"* "):
            self.refused(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        for method in (b"GET", b"HEAD", b"BREW", b"options"):
            with self.subTest(method), Raw(self.server) as raw:
                raw.send(method + b" * HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
                self.assertEqual(raw.answer(head=method == b"HEAD").status, 400)
                self.assertTrue(raw.closed())
        self.refused(POST.replace(b"/v1/attention", b"*") + b"Content-Length: 0\r\n\r\n" + GET)

    def test_targets_of_other_methods(self):
        for line in (b"CONNECT x:80", b"OPTIONS healthz", b"POST v1/attention"):
            self.refused(line + b" HTTP/1.1\r\nHost: x\r\n\r\n" + GET)

    def test_a_host_is_needed(self):
        for version in (b"1.1", b"1.2", b"1.9"):
            for fields in (b"", b"X: y\r\n", b"Hosts: x\r\n"):
                self.refused(b"GET /healthz HTTP/" + version + b"\r\n" + fields + b"\r\n" + GET)
                self.refused(b"POST /v1/attention HTTP/" + version + b"\r\n" + fields +
                             b"Content-Length: %d\r\n\r\n" % len(GET) + GET)

    def test_the_server_as_a_whole(self):
        """OPTIONS * names the methods; a body with it is read and means nothing."""
        with Raw(self.server) as raw:
            for body in (b"", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"):
                raw.send(b"OPTIONS * HTTP/1.1\r\nHost: x\r\n" + body + b"\r\n" +
                         (b"hello" if b"5" in body else b"5\r\nhello\r\n0\r\n\r\n" if body else b""))
                answer = raw.answer()
                self.assertEqual((answer.status, answer.body), (204, b""))
                self.assertEqual(answer.headers["allow"], "GET, HEAD, OPTIONS, POST")
                self.assertIn("x-request-id", answer.headers)
        self.refused(b"OPTIONS * HTTP/1.1\r\nHost: a,b\r\n\r\n" + GET)
        self.problem(self.server.request("OPTIONS", "/*"), 404, "not-found")

    def test_hosts_that_are_none(self):
        for host in (b"user@x", b"user:word@x", b"x/healthz", b"x/", b"http://x", b"x, y", b"x,y", b",",
                     b"x y", b"x?y", b"x#y", b"x\\y", b"x:port", b"x:80:80", b"x:-1", b"::1", b"[::1",
                     b"[]", b"[::1]x", b"[::1]:x", b"x[::1]", b"<x>", b'"x"', b"caf\xc3\xa9", b"@", b"/"):
            self.refused(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n" + GET)
            self.refused(POST.replace(b"Host: x", b"Host: " + host) +
                         b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY + GET)

    def test_control_characters_in_fields(self):
        for c in [bytes([c]) for c in range(1, 32) if c not in (9, 10, 13)] + [b"\x7f"]:
            for field in (b"X: a" + c + b"b", b"X: " + c, b"X: a" + c, b"Accept: */*" + c,
                          b"User-Agent: " + c + b"[31mred", b"Cookie: a=b" + c + b"; d",
                          b"Host: x" + c):
                head = b"GET /healthz HTTP/1.1\r\n" + (b"" if b"Host" in field else b"Host: x\r\n")
                self.refused(head + field + b"\r\n\r\n" + GET)

    def test_bad_heads_in_parts_and_behind_good_ones(self):
        for bad in (POST + b"Content-Length:\r\n 34\r\n\r\n", POST + b"Content-Length: 2\r\n: x\r\n\r\n",
                    POST + b"Content-Length: 2\0\r\n\r\n"):
            for parts in (2, 5, 60):
                self.refused(bad + GET, parts)
            with self.subTest(bad=bad), Raw(self.server) as raw:
                raw.send(GET + POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY + bad + GET)
                self.assertEqual([raw.answer().status for _ in range(3)], [200, 200, 400])
                self.assertTrue(raw.closed())
                self.assertEqual(bytes(raw.data), b"")

    def test_nothing_is_taken_for_a_request_behind_trailers(self):
        head = POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY, [9])[:-2]
        for trailer in (b"A: b\r\n:\r\n", b":\r\n\r\n", b": x\r\n\r\n", b"A: b\r\n\0X: y\r\n",
                        b"A: b\r\n c\r\n\r\n", b"A: b\r\n\r\n"):
            with self.subTest(trailer=trailer), Raw(self.server) as raw:
                raw.send(head + trailer + GET)
                self.assertIn(raw.answer().status, (200, 400))
                self.assertTrue(raw.closed())
                self.assertEqual(bytes(raw.data), b"")

    def test_honest_heads(self):
        """Every shape of head that is allowed passes."""
        get, host = b"GET /healthz HTTP/1.1\r\n", b"Host: x\r\n"
        fields = (b"hOsT: x\r\n", b"Host:x\r\n", b"Host:\t x\r\n", b"Host: x  \r\n", b"Host: x\t\r\n",
                  b"Host: x:80\r\n", b"Host: x:\r\n", b"Host: a_b-c.example.:8080 \r\n",
                  b"Host: 127.0.0.1:1\r\n", b"Host: [::1]\r\n", b"Host: [fe80::1%25eth0]:80\r\n",
                  b"Host: a!$&'()*+;=%41~\r\n",
                  b"Host:\r\n", b"Host: \t \r\n", host + b"X:\r\n", host + b"X: \r\nY:\r\n",
                  host + b"X: y\r\nX: y\r\nx: z\r\n", b"X: a:b::c\r\n" + host,
                  host + b"Cookie: a=b; c=d; e=\"f g\"\r\n", host + b"Cookie: a\r\nCookie: b=c\r\n",
                  host + b"Cookie:\r\n", b"Cookie: =;;=,\r\n" + host + b"Z: z\r\n",
                  host + b"X: caf\xe9 \x80\xff\ty\r\n", host + b"X: \"a\\\"b\"\r\n",
                  host + b"!#$%&'*+-.^_`|~09aZ: x\r\n", host + b"A: b\r\n" * 300,
                  host + b"X: " + b"y" * 30000 + b"\r\n",
                  host + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 300) for i in range(100)),
                  host + b"Cookie: " + b"a=b; " * 150 + b"\r\n", host + b"Expect: 200-ok\r\n",
                  host + b"Connection: keep-alive\r\n", host + b"Content-Length: 0\r\n",
                  host + b"Content-Length:0\r\nA: b \r\n", b"Content-Length:   0\r\n" + host)
        for some in fields:
            self.answered(get + some + b"\r\n", [200], before=GET)
            self.answered((get + some + b"\r\n") * 3 + GET, [200] * 4)
            self.answered((get + some + b"\r\n").replace(b"\r\n", b"\n") * 2 + GET, [200] * 3)
        self.answered(b"\r\n\r\n" + GET + b"\r\n" + GET, [200, 200])
        self.answered(b"GET   /healthz HTTP/1.1\r\n" + host + b"\r\n" + GET, [200, 200])
        self.answered(b"GET /healthz HTTP/1.0\r\n\r\n", [200])
        self.answered(b"GET /healthz HTTP/1.0\n\n", [200])
        self.answered(b"GET /healthz HTTP/1.1\nHost: x\r\nA: b\n\r\n" + GET, [200, 200])
        for query in (b"?", b"?a", b"?a=b", b"?a=b&c=d", b"?&&", b"?=", b"?a+b=%41%00+c", b"??", b"?a?b",
                      b"?" + b"q" * 5000, b"?" + b"a=b&" * 300):
            self.answered(b"GET /healthz" + query + b" HTTP/1.1\r\n" + host + b"\r\n" + GET, [200, 200])
        for target in (b"http://x/healthz", b"http://[::1]/healthz", b"HTTP://x:80/healthz", b"http://x/healthz?a=b@c",
                       b"/healthz?http://a@b"):
            self.answered(b"GET " + target + b" HTTP/1.1\r\n" + host + b"\r\n" + GET, [200, 200])
        self.answered(b"GET /a@b HTTP/1.1\r\n" + host + b"\r\n" + GET, [404, 200])
        self.answered(b"OPTIONS * HTTP/1.1\r\n" + host + b"\r\n" + GET, [204, 200])
        self.answered(b"GET /caf%c3%a9%20x HTTP/1.1\r\n" + host + b"\r\n" + GET, [404, 200])

    def test_honest_bodies(self):
        sized = POST + b"Content-Length: %d\r\n" % len(BODY)
        coded = POST + b"Transfer-Encoding: chunked\r\n"
        parts = chunked(BODY, [7, 30])
        self.answered((sized + b"\r\n" + BODY) * 3 + GET, [200] * 4)
        self.answered((coded + b"\r\n" + parts) * 3 + GET, [200] * 4)
        self.answered(sized + b"Cookie: a=b; c\r\nX:\r\n\r\n" + BODY + GET, [200] * 2)
        self.answered(sized + b"Expect: 100-continue\r\n\r\n" + BODY + GET, [100, 200, 200])
        self.answered(sized + b"X: " + b"y" * 20000 + b"\r\n\r\n" + BODY + GET, [200] * 2)
        self.answered(coded + b"Trailer: A, B\r\n\r\n" + parts[:-2] + b"A: b\r\nB:\r\n\r\n", [200],
                      before=GET)

    def test_many_arguments_are_no_burden(self):
        """None is read, so none is kept: a line of them is no work."""
        for query in (b"a&" * 1000, b"a=b&" * 5000, b"=" * 20000, b"&" * 20000):
            with self.subTest(query=query[:8]), Raw(self.server) as raw:
                before = self.server.computed()
                raw.send(b"GET /healthz?" + query + b" HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
                self.assertEqual([raw.answer().status for _ in range(2)], [200, 200])
                self.assertLess(self.server.computed() - before, 1 * SLOW)

    def test_more_fields_than_fit_are_refused(self):
        for fields in (b"A: b\r\n" * 3000, b"Cookie: " + b"a;" * 3000 + b"\r\n"):
            with self.subTest(fields=fields[:8]), Raw(self.server) as raw:
                before = self.server.computed()
                raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")
                answer = raw.answer()
                self.assertTrue(answer is None or answer.status in (400, 413, 431), answer)
                self.assertTrue(raw.closed())
                self.assertLess(self.server.computed() - before, 1 * SLOW)


class Slow(Case):
    """Clients that take their time, on servers that do not."""

    def serve(self, *args):
        """All deadlines but those that are named are so far away that nothing ends by them."""
        far = [word for name in ("header", "body", "answer", "idle")
               for word in (f"--{name}-timeout-ms", str(4000 * PATIENCE))]
        far = [word for pair in zip(far[::2], far[1::2]) if pair[0] not in args for word in pair]
        server = Server(None, *args, *far)
        self.addCleanup(server.stop)
        return server

    def ends(self, server, raw, statuses):
        """The connection ends, by one of those answers or by a mere close."""
        answer = raw.answer()
        if answer is not None:
            self.assertIn(answer.status, statuses, answer)
            self.assertTrue(raw.closed())
        self.assertEqual(server.get("/healthz").status, 200)
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))

    def drip(self, server, raw, data, statuses):
        """Sends a byte every 50 ms, which no inactivity timeout would catch, until it is ended."""
        raw.socket.setblocking(False)
        for i in range(len(data)):
            try:
                raw.socket.send(data[i:i + 1])
                part = raw.socket.recv(65536)
                raw.data += part
                break
            except BlockingIOError:
                pass
            except (ConnectionResetError, BrokenPipeError):
                break
            time.sleep(0.05)
        else:
            self.fail("still open when all is sent")
        raw.socket.setblocking(True)
        if raw.data:
            self.ends(server, raw, statuses)

    def test_body_that_stops(self):
        server = self.serve("--body-timeout-ms", "400")
        with Raw(server) as raw:
            raw.send(head_of(PATH, len(BODY)) + BODY[:-5])
            self.ends(server, raw, (408,))
        with Raw(server) as raw:
            raw.send(head_of(PATH, None, "Transfer-Encoding: chunked") + b"5\r\n" + BODY[:5])
            self.ends(server, raw, (408,))

    def test_body_that_drips(self):
        server = self.serve("--body-timeout-ms", "500")
        with Raw(server) as raw:
            raw.send(head_of(PATH, len(BODY)))
            self.drip(server, raw, BODY, (408,))

    def test_headers_that_drip(self):
        server = self.serve("--header-timeout-ms", "500")
        with Raw(server) as raw:
            self.drip(server, raw, head_of(PATH, 5, "X-Long: " + "y" * 300), (408,))

    def test_headers_that_stop(self):
        server = self.serve("--header-timeout-ms", "400")
        with Raw(server) as raw:
            raw.send(b"POST /v1/attention HTTP/1.1\r\nHost: x\r\n")
            self.ends(server, raw, (408,))

    def test_a_second_head_that_drips_on_a_used_connection(self):
        server = self.serve("--header-timeout-ms", "500")
        with Raw(server) as raw:
            raw.send(head_of(PATH, len(BODY)) + BODY)
            self.assertEqual(raw.answer().status, 200)
            self.drip(server, raw, head_of(PATH, 5, "X-Long: " + "y" * 300), (408,))

    def test_an_empty_line_is_no_request(self):
        """What may follow a request's body neither begins the next one nor gets an answer."""
        server = self.serve("--header-timeout-ms", "400")
        with Raw(server) as raw, Raw(server) as fresh:
            fresh.send(b"\r\n")
            raw.send(head_of(PATH, len(BODY)) + BODY)
            self.assertEqual(raw.answer().status, 200)
            time.sleep(0.7)
            raw.send(b"\r\n")
            self.assertTrue(fresh.closed())
            self.assertEqual(fresh.data, b"")
            raw.socket.settimeout(1)
            self.assertFalse(raw.closed())
            self.assertEqual(raw.data, b"")
            raw.socket.settimeout(PATIENCE)
            raw.send(head_of(PATH, len(BODY)) + BODY)
            self.assertEqual(raw.answer().status, 200)

    def test_idle_connection(self):
        server = self.serve("--idle-timeout-ms", "1000", "--header-timeout-ms", "60000")
        with Raw(server) as raw:
            raw.send(head_of(PATH, len(BODY)) + BODY)
            self.assertEqual(raw.answer().status, 200)
            self.assertTrue(raw.closed())

    def test_reader_that_does_not_read(self):
        server = self.serve("--answer-timeout-ms", "700")
        rows = ",".join(["[0.123456,0.2345678,0.3456789,0.4567891]"] * 1200)
        body = f'{{"queries":[[{rows}]],"return_attention":true}}'.encode()
        raw = Raw(server)
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.send(head_of(PATH, len(body)) + body)
        raw.socket.recv(1, socket.MSG_PEEK)  # the answer has begun, and is far from its end
        self.assertTrue(wait_until(lambda: server.metric("attend_rejected_total",
                                                         'reason="slow_reader"') == 1))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0),
                        "the answer nobody reads is kept")
        raw.socket.close()
        self.assertEqual(server.attend(TOY).status, 200)

    def test_connection_limit(self):
        server = self.serve("--max-connections", "20")
        idle = []
        try:
            for _ in range(40):
                idle.append(Raw(server))
            refused = 0
            for raw in idle:
                try:
                    raw.send(head_of("/healthz", method="GET"))
                    answer = raw.answer()
                except (ConnectionResetError, BrokenPipeError):
                    continue
                if answer is not None and answer.status == 503:
                    refused += 1
                else:
                    self.assertTrue(answer is None or answer.status == 200, answer)
            self.assertGreater(refused, 0, "no connection was told")
        finally:
            for raw in idle:
                raw.socket.close()
        self.assertTrue(wait_until(lambda: server.attend(TOY).status == 200))


class Http2(Case):
    """HTTP/2 without TLS, by prior knowledge."""
    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])

    def receive(self, client):
        with client:
            client.settimeout(PATIENCE)
            return b"".join(iter(lambda: client.recv(4096), b""))

    def test_one_sentence(self):
        server = Server()
        self.addCleanup(server.stop)
        server.process.send_signal(signal.SIGSTOP)  # so that the bytes are there when the connection is
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(self.PREFACE)
        server.process.send_signal(signal.SIGCONT)
        got = self.receive(client)
        self.assertEqual(got[:9], bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        size, kind, stream, last, code = *struct.unpack(">HB", got[10:13]), *struct.unpack(">III", got[14:26])
        self.assertEqual((size, kind, stream, last, code), (len(got) - 18, 7, 0, 0, 13), got)
        self.assertEqual(got[26:], b"this server supports only HTTP/1.1: use a proxy for HTTP/2")
        server.told("a client spoke HTTP/2: this server supports only HTTP/1.1: use a proxy for HTTP/2")
        self.assertIn('attend_rejected_total{reason="http_2"} 1', server.get("/metrics").body.decode())
        self.ok(server.get("/healthz"))

    def test_bytes_that_come_late(self):
        server = Server()
        self.addCleanup(server.stop)

        def accepted():
            return int(re.search(r"^attend_connections_total(?:{[^}]*})? (\d+)$", client.send(asked).answer().body.decode(), re.M)[1])
        asked = head_of("/metrics", method="GET")
        with Raw(server) as client, socket.create_connection(("127.0.0.1", server.port)) as first:
            self.assertTrue(wait_until(lambda: accepted() == 2))  # now it is libmicrohttpd's
            first.sendall(self.PREFACE)
            first.settimeout(PATIENCE)
            self.assertEqual(first.recv(4096).split(b"\r\n")[0], b"HTTP/1.1 505 HTTP Version Not Supported")


if __name__ == "__main__":
    unittest.main()
