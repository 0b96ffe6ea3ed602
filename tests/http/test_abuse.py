"""test_abuse: clients that leave, and more of them than can be served: nobody else is disturbed."""
import contextlib
import json
import shutil
import socket
import struct
import tempfile
import threading
import unittest

from attackers import CROWD, CROWDED, crowd, crowd_body
from needs import needs
from support import MODE, TOY, Case, Raw, Server, head_of, wait_until

PATH = "/v1/attention"
HEAD = head_of(PATH, 80000)


class Leaving(Case):
    """Clients that go away in the middle hold nothing from then on, in a house that is small."""

    def abort(self, server, data, hard):
        """Sends and leaves in one breath."""
        raw = Raw(server)
        raw.send(data)
        if hard:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.socket.close()

    def test_aborted_uploads_hold_no_connection(self):
        """The reaper would find them twice a second: of 20 connections they would take all."""
        server = Server(None, "--max-connections", "20")
        self.addCleanup(server.stop)
        statuses = []
        for turn in range(100):
            for data in (HEAD + b" " * 20000, HEAD + b"{" + b" " * 60000, HEAD[:40]):
                self.abort(server, data, turn % 2)
            statuses.append(server.get("/healthz").status)
        self.assertEqual(statuses, [200] * 100)
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))

    def test_half_closed_uploads_are_let_go(self):
        """Long before any deadline."""
        server = Server(None, "--header-timeout-ms", "600000", "--body-timeout-ms", "600000")
        self.addCleanup(server.stop)
        for data in (HEAD + b" " * 20000, HEAD[:40], b"", HEAD + b"{" + b" " * 79000):
            held = [Raw(server).send(data) for _ in range(15)]
            for raw in held:
                raw.socket.shutdown(socket.SHUT_WR)
            for raw in held:
                self.assertTrue(raw.closed(), len(data))
                raw.socket.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))

    def test_pipelined_requests_before_the_end_are_answered(self):
        """A client that has closed its half counts as gone if a request of it waits for a worker for more than two
        milliseconds. On a busy machine one does: then all are sent again."""
        server = Server()
        self.addCleanup(server.stop)
        body = json.dumps(TOY).encode()
        post = head_of(PATH, len(body)) + body
        gone = 0

        def all_answered(count):
            nonlocal gone
            with Raw(server) as raw:
                raw.send((post + head_of("/healthz", method="GET")) * count)
                raw.socket.shutdown(socket.SHUT_WR)
                statuses = [answer.status for answer in iter(raw.answer, None)]
            missing = 2 * count - len(statuses)
            self.assertEqual(statuses, [200] * len(statuses))
            self.assertEqual(missing % 2, 0, "a request that is not computed has no answer")
            gone += missing > 0
            self.assertEqual(server.metric("attend_client_aborts_total", 'phase="queue"'), gone)
            return missing == 0

        for count in (1, 3, 20):
            self.assertTrue(wait_until(lambda most=count: all_answered(most)))
        self.assertEqual(server.metric("attend_client_aborts_total"), gone)


class Intruders(Case):
    """What speaks something else, or stops in the middle, is closed by the server, or told."""

    def test_other_tongues(self):
        server = Server(None, "--header-timeout-ms", "800")
        self.addCleanup(server.stop)
        before = len(server.stderr())
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2
        for data, statuses in (
                (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), (None, 505)), (hello, (None, 400)),
                (hello[:11], (None, 408)), (b"\x16\x03\x01\x00\x0a\n\n\n", (None, 400)),
                (b"SSH-2.0-OpenSSH_9.2\r\n", (None, 400)), (b"\0" * 100, (400, 408)),
                (b"A" * 100000, (400, 408, 414, 431)), (b"GET /healthz\r\n\r\n", (None, 400)),
                (b"GET /healthz HTTP/1.1\r\n\r\n", (400,)), (b"*1\r\n$4\r\nPING\r\n", (None, 400))):
            for _ in range(20):
                with self.subTest(data[:20]), Raw(server) as raw:
                    raw.send(data)
                    answer = raw.answer()
                    self.assertIn(answer and answer.status, statuses)
                    self.assertTrue(raw.closed())
                if 408 in statuses:
                    break  # these take their time
        self.assertLess(len(server.stderr()) - before, 2000, "the log is flooded")
        self.assertEqual(server.get("/healthz").status, 200)

    def test_offers_to_speak_something_else_are_ignored(self):
        server = Server()
        self.addCleanup(server.stop)
        for offer in ("Upgrade: h2c", "Upgrade: websocket", "Upgrade: TLS/1.2"):
            with Raw(server) as raw:
                raw.send(head_of("/healthz", None, offer, "Connection: Upgrade", method="GET"))
                self.assertEqual(raw.answer().status, 200)

    def test_bodies_that_end_too_soon(self):
        """By the end of the stream: nothing is computed, and all is freed."""
        server = Server()
        self.addCleanup(server.stop)
        coded = head_of(PATH, None, "Transfer-Encoding: chunked")
        for data in (HEAD + b'{"queries"', HEAD, coded, coded + b"5", coded + b"5\r\nabc",
                     coded + b"5\r\nabcde\r\n", coded + b"5\r\nabcde\r\n0\r\n"):
            with self.subTest(data[-10:]), Raw(server) as raw:
                raw.send(data)
                raw.socket.shutdown(socket.SHUT_WR)
                answer = raw.answer()
                self.assertIn(answer and answer.status, (None, 400, 408))
                self.assertTrue(raw.closed())
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))


class Overload(Case):
    BUDGET = 256 << 20

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = crowd_body(self.folder)
        with open(self.path, "rb") as file:
            self.body = file.read()

    def start(self, *args, **settings):
        server = Server(dict(CROWDED, **settings), *args)
        self.addCleanup(server.stop)
        return server

    @needs("test", "wrk")
    def test_a_crowd_gets_answers_or_refusals(self):
        server = self.start(memory_budget_bytes=self.BUDGET)
        clients, most, over = (CROWD if MODE == "release" else 300), [0], threading.Event()

        def look():
            while not over.wait(0.05):
                most[0] = max(most[0], server.metric("attend_inflight_bytes"))

        looking = threading.Thread(target=look)
        looking.start()
        try:
            for seconds in range(3, 60, 3):  # as many as it takes for one answer
                came = crowd(server.port, self.path, clients, seconds)
                if came["good"]:
                    break
        finally:
            over.set()
            looking.join()
        self.assertEqual((came["other"], came["broken"]), (0, 0), came)
        self.assertGreater(came["good"], 0)
        self.assertGreater(most[0], 0)
        self.assertLessEqual(most[0], self.BUDGET)
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0
                                   and server.metric("attend_connections") == 1))
        self.assertEqual([server.attend(self.body).status for _ in range(20)], [200] * 20)

    def held(self, server, body, *headers):
        """A connection whose request waits for a place in the queue, which is full for now."""
        raw = Raw(server)
        raw.send(head_of(PATH, len(body), *headers) + body)
        return raw

    def large(self, rows):
        return b'{"queries":[[' + b",".join([b"[" + b",".join([b"0.5"] * 512) + b"]"] * rows) + b"]]}"

    def crowd_out(self, server):
        """Fills the queue for a second or so: large requests, one worker, one place."""
        body = self.large(1500 if MODE == "release" else 600)
        large = []
        for _ in range(50):  # on a busy machine they may be through before one looks
            large += [self.held(server, body) for _ in range(4)]
            if wait_until(lambda: server.metric("attend_queue_depth") >= 1, 2, 0.001):
                return large
        self.fail("the queue does not fill")

    def test_who_waits_for_a_place(self):
        """Bodies that are not read yet wait for a while, in order, and are answered or refused; who
        will not wait or leaves is let go."""
        server = self.start("--workers", "1", "--io-threads", "1", max_queue=1, merge=False)
        large = self.crowd_out(server)
        waiting = [self.held(server, self.body) for _ in range(10)]
        hasty = self.held(server, self.body, "X-Timeout-Ms: 1")
        asking = Raw(server).send(head_of(PATH, len(self.body), "Expect: 100-continue"))
        gone = [self.held(server, self.body) for _ in range(10)]
        for raw in gone:
            raw.socket.close()
        self.assertIn(asking.answer().status, (100, 429))
        self.assertIn(hasty.answer().status, (200, 429, 504))
        for raw in large + waiting:
            answer = raw.answer()
            self.assertIn(answer.status, (200, 429))
            if answer.status == 429:
                self.problem(answer, 429, "overloaded")
        for raw in waiting:  # whatever it was, the connection is as good as before
            raw.send(head_of("/healthz", method="GET"))
            self.assertEqual(raw.answer().status, 200)
        for raw in large + waiting + [hasty, asking]:
            raw.socket.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        self.assertEqual(server.attend(self.body).status, 200)

    def occupy(self, server):
        """One request that is computed and one that has the queue's only place, for a while."""
        body = self.large(1200 if MODE == "release" else 200)
        large = [self.held(server, body) for _ in range(3)]
        wait_until(lambda: server.metric("attend_queue_depth") >= 1, 1, 0.001)
        return large

    def let_in(self, server, body, *headers):
        """Comes while the queue is full, whose places are then left: was it full all the while, and
        the status of the answer, which may come before the body is sent."""
        busy = self.occupy(server)
        with Raw(server) as raw:
            raw.send(head_of(PATH, len(body), *headers))
            # The one I/O thread has seen that head when it has answered twice.
            full = min(server.metric("attend_queue_depth") for _ in range(2)) >= 1
            for each in busy:
                each.socket.close()
            if headers:
                answer = raw.answer()
                if answer.status != 100:
                    return full, answer.status
            with contextlib.suppress(OSError):  # it has been refused meanwhile
                raw.send(body)
            answer = raw.answer()
            return full, answer and answer.status

    def test_large_bodies_wait_too(self):
        """And those that are not sent before they are asked for. They wait for a time: whose place
        comes too late is refused, and comes again."""
        server = self.start("--workers", "1", "--io-threads", "1", max_queue=1, merge=False)
        large = self.large(540)
        for headers in ((), ("Expect: 100-continue",)):
            seen = []

            def waits(words=headers):
                seen.append(self.let_in(server, large, *words))
                return seen[-1] == (True, 200)

            self.assertTrue(wait_until(waits), seen)
            self.assertLessEqual({status for _, status in seen}, {200, 429}, headers)
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))

    def test_waiting_longer_than_a_body_may_take(self):
        """Who is ended while it waits, its body there already, is let go."""
        server = self.start("--workers", "1", "--io-threads", "1", max_queue=1, merge=False,
                            body_timeout_ms=400)
        raws = self.occupy(server) + [self.held(server, self.body) for _ in range(40)]
        for raw in raws:
            answer = raw.answer()
            self.assertIn(answer and answer.status, (200, 408, 429))
            raw.socket.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))

    def test_waiting_at_the_end(self):
        """SIGTERM while requests wait for a place: all are answered, and the server ends."""
        server = self.start("--workers", "1", "--io-threads", "1", max_queue=1, merge=False)
        raws = self.crowd_out(server) + [self.held(server, self.body) for _ in range(10)]
        server.signal()
        for raw in raws:
            answer = raw.answer()
            self.assertIn(answer and answer.status, (200, 429, 503))
            raw.socket.close()
        self.assertEqual(server.wait(), 0, server.stderr())

    def test_the_end_at_once(self):
        """The drain's deadline cuts off those that wait, too."""
        server = Server(dict(CROWDED, max_queue=1, merge=False, drain_ms=1), "--workers", "1",
                        "--io-threads", "1")
        self.addCleanup(server.kill)
        raws = self.crowd_out(server) + [self.held(server, self.body) for _ in range(10)]
        server.signal()
        self.assertIn(server.wait(), (0, 3), server.stderr())
        for raw in raws:
            raw.socket.close()


if __name__ == "__main__":
    unittest.main()
