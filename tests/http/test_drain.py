"""test_drain: how a server stops: what was accepted is answered, what does not come is refused."""
import contextlib
import http.client
import json
import random
import signal
import socket
import threading
import time
import unittest

from support import (BIG, BIG_PATH, PATIENCE, SLOW, TOY, Case, Raw, Server, Trickle, chunked, head_of,
                     wait_until, with_trickles)

BODY = json.dumps(TOY).encode()
PATH = "/v1/attention"
CHUNKED = "Transfer-Encoding: chunked"


def slow_uploads():
    """Requests with a body that a trickle sends for longer than the patience: (head, body) each."""
    body = b" " * (100 * PATIENCE) + BODY
    return [(head_of(PATH, len(body)), body), (head_of(PATH, None, CHUNKED), chunked(body, [1]))]


class Stopping(Case):
    FAR = [word for name in ("header-timeout", "body-timeout", "idle-timeout", "drain")
           for word in (f"--{name}-ms", str(2000 * PATIENCE))]

    def start(self, *args, **options):
        server = Server(None, *args, **options)
        self.addCleanup(server.kill)
        return server

    @with_trickles
    def test_requests_in_every_phase(self):
        """SIGTERM loses nothing that was accepted; idle and new connections do not hold it up."""
        server = self.start("--workers", "1", "--drain-ms", str(500 * PATIENCE))
        with contextlib.ExitStack() as stack:
            idle, used, uploading, heading = (stack.enter_context(Raw(server))
                                              for _ in range(4))
            used.send(head_of(PATH, len(BODY)) + BODY)
            self.assertEqual(used.answer().status, 200)
            computing = [stack.enter_context(Raw(server)) for _ in range(4)]
            for raw in computing:
                raw.send(head_of(BIG_PATH, len(BIG)) + BIG)
            head, body = slow_uploads()[0]
            trickle = stack.enter_context(Trickle(uploading.send(head), body))
            heading.send(head_of(PATH, len(BODY))[:40])
            time.sleep(0.1)
            server.signal()
            self.assertTrue(wait_until(lambda: self.unready(server)))
            trickle.finish()
            heading.send(head_of(PATH, len(BODY))[40:] + BODY)
            for name, raw in [("computing", r) for r in computing] + [("uploading", uploading)]:
                answer = raw.answer()
                self.assertIsNotNone(answer, f"lost while {name}")
                self.assertEqual(answer.status, 200, name)
                self.assertEqual(answer.headers.get("connection", "").lower(), "close", name)
            answer = heading.answer()
            self.assertTrue(answer is None or answer.status in (200, 503), answer)
            self.assertEqual(server.wait(), 0, server.stderr())
            self.assertTrue(idle.closed() and used.closed())

    def unready(self, server):
        """New connections are refused, or told that the server is going."""
        try:
            with Raw(server) as raw:
                answer = raw.send(head_of("/readyz", method="GET")).answer()
                return answer is None or answer.status == 503
        except OSError:
            return True

    def test_slow_reader_gets_its_whole_answer(self):
        server = self.start()
        rows = ",".join(["[0.123456,0.2345678,0.3456789,0.4567891]"] * 400)
        body = f'{{"queries":[[{rows}]],"return_attention":true}}'.encode()
        whole = server.attend(body, "demo").body
        with Raw(server) as raw:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            raw.send(head_of("/v1/models/demo/attention", len(body)) + body)
            raw.socket.recv(1, socket.MSG_PEEK)
            server.signal()
            server.told("received: draining")
            self.assertEqual(raw.answer().body, whole)
        self.assertEqual(server.wait(), 0, server.stderr())

    def test_idle_server_stops_at_once(self):
        """It waits for none of its deadlines: they are further away than the patience here."""
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start(*self.FAR)
            server.get("/healthz")
            raws = [Raw(server) for _ in range(3)]
            server.signal(number)
            self.assertEqual(server.wait(), 0, server.stderr())
            for raw in raws:
                raw.socket.close()

    def test_half_a_head_does_not_hold_it_up(self):
        """Whoever has said next to nothing is let go, whoever is in the middle of a head is told."""
        server = self.start(*self.FAR)
        with contextlib.ExitStack() as stack:
            one, some, kept = (stack.enter_context(Raw(server)) for _ in range(3))
            kept.send(head_of(PATH, len(BODY)) + BODY)
            self.assertEqual(kept.answer().status, 200)
            one.send(b"P")
            some.send(head_of(PATH, 5)[:30])
            look = max(0.7, 0.25 * SLOW)
            time.sleep(look)  # until the server has looked at the kept connection
            kept.send(head_of(PATH, 5)[:30])
            time.sleep(look)  # and sees that there is something new
            server.signal()
            for raw in (some, kept):
                self.problem(raw.answer(), 503, "draining")
            self.assertTrue(one.closed())
            self.assertEqual(one.data, b"")
            self.assertEqual(server.wait(), 0, server.stderr())

    def test_backlog_is_served(self):
        """Many connections at the very moment of the signal: each is answered or refused whole."""
        server = self.start()
        raws = []
        for _ in range(60):
            raws.append(Raw(server).send(head_of(PATH, len(BODY)) + BODY))
        server.signal()
        answers = [raw.answer() for raw in raws]
        for raw in raws:
            raw.socket.close()
        self.assertEqual(server.wait(), 0, server.stderr())
        self.assertEqual([a is not None and a.status for a in answers], [200] * 60)

    @with_trickles
    def test_second_signal_ends_at_once(self):
        server = self.start(*self.FAR)
        with Raw(server) as raw:
            head, body = slow_uploads()[0]
            raw.send(head[:-2] + b"Expect: 100-continue\r\n\r\n")
            self.assertEqual(raw.answer().status, 100)
            with Trickle(raw, body):
                server.signal()
                server.told("received: draining")
                time.sleep(0.3)
                self.assertIsNone(server.process.poll(), "did not wait for the upload")
                server.signal()
                self.assertEqual(server.wait(), 128 + signal.SIGTERM)

    def test_drain_deadline(self):
        """What is not done in drain_ms gets 503 or a closed connection; the exit status says so."""
        server = self.start("--workers", "1", "--drain-ms", "100", "--body-timeout-ms",
                            str(2000 * PATIENCE))
        with contextlib.ExitStack() as stack:
            raws = [stack.enter_context(Raw(server)) for _ in range(8)]
            for raw in raws:
                raw.send(head_of(BIG_PATH, len(BIG)) + BIG)
            stuck = stack.enter_context(Raw(server))
            stuck.send(head_of(PATH, len(BODY)) + BODY[:40])
            # One computes, others have arrived whole and wait: these get their 503.
            self.assertTrue(wait_until(lambda: server.metric("attend_queue_depth") > 1))
            server.signal()
            statuses = []
            for raw in raws:
                answer = raw.answer()
                statuses.append(answer.status if answer else None)
                if answer and answer.status == 503:
                    self.problem(answer, 503, "draining")
            self.assertIn(503, statuses)
            self.assertLessEqual(set(statuses), {200, 503, None})
            self.assertEqual(server.wait(), 3, server.stderr())

    def test_drain_delay(self):
        """While /readyz says 503 the server still serves, so that a balancer can look away first."""
        server = self.start("--drain-delay-ms", str(2000 * PATIENCE))
        kept = server.connect()
        self.assertNotIn("connection", server.get("/healthz", connection=kept).headers)
        server.signal()
        self.assertTrue(wait_until(lambda: server.get("/readyz").status == 503))
        self.problem(server.get("/readyz"), 503, "draining")
        self.assertEqual(server.get("/healthz").status, 200)
        answer = server.attend(TOY, connection=kept)  # and then not on this connection any more
        self.assertEqual((answer.status, answer.headers["connection"].lower()), (200, "close"))
        self.assertEqual(server.attend(TOY).status, 200)
        server.signal()  # the second one ends the delay, and the server
        self.assertEqual(server.wait(), 128 + signal.SIGTERM)

    def test_a_stop_loses_no_request(self):
        """Clients on kept connections are told to leave them before the listener closes; whoever
        comes in the delay is served. Only who asks on no new connection afterwards is refused."""
        server = self.start("--drain-delay-ms", str(300 * SLOW))
        clients = [threading.Thread(target=self.until_refused, args=(server,)) for _ in range(20)]
        self.lost = []
        for client in clients:
            client.start()
        time.sleep(0.2)
        server.signal()
        self.assertEqual(server.wait(), 0, server.stderr())
        for client in clients:
            client.join()
        self.assertEqual(self.lost, [])

    def until_refused(self, server):
        """Requests until no connection can be made; anything else that goes wrong is a loss."""
        connection = server.connect()
        while True:
            try:
                if not connection.sock:
                    connection.connect()
            except ConnectionRefusedError:
                return
            try:
                answer = server.attend(TOY, connection=connection)
                if answer.status != 200:
                    self.lost.append(answer)
            except (OSError, http.client.HTTPException) as e:
                if not self.refuses(server):  # else the listener closed with it in its backlog
                    self.lost.append(repr(e))
                return
            time.sleep(random.uniform(0, 0.02))

    def refuses(self, server):
        try:
            server.connect().connect()
        except ConnectionRefusedError:
            return True
        return False


class Incomplete(Case):
    """Requests that do not come whole hold no stop up: each is told why it ends."""
    FAR = Stopping.FAR

    def start(self, *args):
        server = Server(None, *args)
        self.addCleanup(server.kill)
        return server

    def uploads(self):
        """Requests of which the rest never comes: what is sent of each."""
        parts = chunked(BODY, [9])
        sized = [head_of(PATH, len(BODY)) + BODY[:size] for size in (0, 1, 50, len(BODY) - 1)]
        coded = [head_of(PATH, None, CHUNKED) + part for part in (
            b"", b"1", b"9\r", b"9;x=", parts[:7], parts[:12], parts[:14], parts[:15], parts[:-5],
            parts[:-3], parts[:-2], parts[:-1], parts[:-2] + b"A: b")]
        return sized + coded + [head_of(PATH, len(BODY)) + b"not JSON"]

    def test_stalled_uploads(self):
        for admin in ((), ("--admin-listen", "127.0.0.1:0")):
            with self.subTest(admin=admin), contextlib.ExitStack() as stack:
                server = self.start(*self.FAR, *admin, "--access-log", "all", "--io-threads", "3")
                ports = [server.port] + ([server.admin] if admin else [])
                raws = [stack.enter_context(Raw(server)).send(data)
                        for data in self.uploads() * 8]
                asking = [stack.enter_context(Raw(server, port=port)) for port in ports]
                for raw in asking:
                    raw.send(head_of("/healthz", 9, "Expect: 100-continue", method="GET"))
                    self.assertEqual(raw.answer().status, 100)
                v2 = stack.enter_context(Raw(server))
                v2.send(head_of("/v2/models/demo/infer", 9) + b"{")
                count = len(raws) + len(asking) + 1
                self.assertTrue(wait_until(lambda: self.open(server) >= count))
                server.signal()
                for raw in raws + asking:
                    self.problem(raw.answer(), 503, "draining")
                    self.assertTrue(raw.closed())
                    self.assertEqual(bytes(raw.data), b"")
                answer = v2.answer()
                self.assertEqual((answer.status, list(answer.json)), (503, ["error"]))
                self.assertEqual(server.wait(), 0, server.stderr())
                lines = [json.loads(line) for line in server.lines if line.startswith("{")]
                refused = [line for line in lines if line["status"] == 503]
                self.assertEqual({line["error"] for line in refused}, {"draining"})
                self.assertEqual(len(refused), count)
                self.assertNotIn("drain timeout", server.stderr())

    def open(self, server):
        """Connections of both addresses, without the one that asks."""
        return server.metric("attend_connections") - 1

    def test_stalled_uploads_of_megabytes(self):
        """What they hold is given back (the sanitizers look)."""
        body = b'{"queries":[[' + b"[1,2,3,4]," * 300000
        server = self.start(*self.FAR, "--io-threads", "1")
        with contextlib.ExitStack() as stack:
            raws = [stack.enter_context(Raw(server)) for _ in range(3)]
            for raw in raws:
                raw.send(head_of(PATH, 2 * len(body)) + body)
            server.signal()
            for raw in raws:
                self.problem(raw.answer(), 503, "draining")
            self.assertEqual(server.wait(), 0, server.stderr())

    @with_trickles
    def test_a_body_that_goes_on_is_read_on(self):
        """However slowly: it is answered, when others that had stopped have long been refused."""
        server = self.start(*self.FAR)
        with contextlib.ExitStack() as stack:
            stalled = stack.enter_context(Raw(server)).send(head_of(PATH, 99) + b"{")
            slow = [stack.enter_context(Raw(server)).send(head) for head, _ in slow_uploads()]
            trickles = [stack.enter_context(Trickle(raw, body))
                        for raw, (_, body) in zip(slow, slow_uploads())]
            self.assertTrue(wait_until(lambda: self.open(server) >= 3))
            server.signal()
            self.problem(stalled.answer(), 503, "draining")
            for trickle in trickles:
                begun = trickle.sent
                self.assertTrue(wait_until(lambda t=trickle, n=begun: t.sent > n + 50))
            self.assertIsNone(server.process.poll())
            for raw, trickle in zip(slow, trickles):
                trickle.finish()
                self.assertEqual(raw.answer().status, 200)
        self.assertEqual(server.wait(), 0, server.stderr())

    @with_trickles
    def test_a_body_that_goes_on_for_ever(self):
        """At the end of drain_ms it is refused, too. It was never accepted whole: none is lost."""
        server = self.start("--drain-ms", str(1500 * SLOW))
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(Raw(server)).send(head) for head, _ in slow_uploads()]
            for raw, (_, body) in zip(slow, slow_uploads()):
                stack.enter_context(Trickle(raw, body))
            head = stack.enter_context(Raw(server)).send(head_of(PATH, 9)[:30])
            self.assertTrue(wait_until(lambda: self.open(server) >= 3))
            server.signal()
            for raw in slow + [head]:
                self.problem(raw.answer(), 503, "draining")
                self.assertTrue(raw.closed())
            self.assertEqual(server.wait(), 0, server.stderr())
        server_says = server.stderr()
        self.assertRegex(server_says, "drain timeout \(drain_ms\): aborting 0 requests, rejecting 2 incomplete ones")

    def test_no_time_to_drain(self):
        """Whatever has not arrived is refused at once; silent connections are let go."""
        server = self.start("--drain-ms", "1", "--admin-listen", "127.0.0.1:0")
        with contextlib.ExitStack() as stack:
            idle, used, silent, body, header = (stack.enter_context(Raw(server)) for _ in range(5))
            used.send(head_of(PATH, len(BODY)) + BODY)
            self.assertEqual(used.answer().status, 200)
            silent.send(b"\r\n")
            body.send(head_of(PATH, len(BODY)) + BODY[:-1])
            header.send(head_of(PATH, len(BODY))[:-1])
            self.assertTrue(wait_until(lambda: server.metric("attend_connections", '"main"',
                                                             admin=True) == 5))
            self.assertTrue(wait_until(lambda: server.metric("attend_http_requests_total",
                                                             "/v1/attention", admin=True) == 1))
            server.signal()
            for raw in (body, header):
                self.problem(raw.answer(), 503, "draining")
            for raw in (idle, used, silent):
                self.assertTrue(raw.closed())
                self.assertEqual(bytes(raw.data), b"")
            self.assertEqual(server.wait(), 0, server.stderr())


if __name__ == "__main__":
    unittest.main()
