"""test_fleet: three attends behind HAProxy with docker/haproxy.cfg; restarted and killed, they lose
nothing. The long version is `make bench ARGS=rolling`."""
import http.client
import json
import re
import select
import signal
import socket
import ssl
import subprocess
import threading
import unittest

from fleet import BODY, CONFIGURATION, PATH, Clients, Fleet, Wrk
from needs import needs
from support import JSON_TYPE, PATIENCE, TOY, Case, wait_until

# What HAProxy cannot keep to ask again: more than tune.bufsize.
LARGE = json.dumps({"queries": [TOY["queries"][0]] * 3000}).encode()


@needs("deploy", "haproxy", "openssl")
class Behind(Case):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet()
        cls.addClassCleanup(cls.fleet.end)
        cls.proxy = cls.fleet.proxy

    def under_load(self, what, large=0):
        """Does that while wrk and clients ask, `large` of these with bodies that HAProxy cannot ask
        again. None may lose anything."""
        wrk, clients = Wrk(self.proxy, 8), [Clients(self.proxy, 4 - large)]
        try:
            clients += [Clients(self.proxy, large, LARGE)] if large else []
            before = self.all_answer(clients)
            what()
            self.assertTrue(wait_until(lambda: min(self.answers(clients, before)) > 10))
        finally:
            told = [c.end() for c in clients] + [wrk.end()]
        self.assertEqual([lost for _, lost in told], [[]] * len(clients) + [0],
                         self.proxy.log()[-3000:])
        self.assertGreater(min(answered for answered, _ in told), 20)

    def answers(self, clients, before):
        return [c.answered - count for c, count in zip(clients, before)]

    def all_answer(self, clients):
        """Waits until each of them has had answers; how many these are."""
        self.assertTrue(wait_until(lambda: min(c.answered for c in clients) > 10))
        return [c.answered for c in clients]

    def test_rolling_restart_loses_nothing(self):
        def restart_all():
            for i in range(3):
                self.fleet.restart(i)

        pids = [server.pid for server in self.fleet.servers]
        self.under_load(restart_all, large=2)
        self.assertFalse(set(pids) & {server.pid for server in self.fleet.servers})

    def test_killed_replica_loses_nothing_that_fits(self):
        def kill_one():
            self.fleet.kill(1)
            self.proxy.wait("replica1", "DOWN")
            self.fleet.start(1)

        self.under_load(kill_one)

    def ask(self, body, into):
        connection = self.proxy.connect()
        connection.request("POST", PATH, body, JSON_TYPE)
        response = connection.getresponse()
        into.append((response.status, response.read()))
        connection.close()

    def stuck(self, i, body):
        """Asks until replica `i`, which is stopped, holds a request; kills it. The statuses."""
        name, server = f"replica{i}", self.fleet.servers[i]
        server.signal(signal.SIGSTOP)
        answers, threads = [], []
        while not wait_until(lambda: int(self.proxy.replicas()[name]["scur"]) > 0, 0.2):
            self.assertLess(len(threads), 200)
            if self.proxy.replicas()[name]["status"] != "UP":  # HAProxy was quicker; once more
                server.signal(signal.SIGCONT)
                self.proxy.wait(name, "UP")
                server.signal(signal.SIGSTOP)
            threads.append(threading.Thread(target=self.ask, args=(body, answers)))
            threads[-1].start()
        self.fleet.kill(i)
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), len(threads))
        self.proxy.wait(name, "DOWN")
        self.fleet.start(i)
        return sorted(status for status, _ in answers)

    def test_what_a_killed_replica_held(self):
        """Small: another one is asked. Large: the one request that it held is lost, and says so."""
        self.assertEqual(set(self.stuck(0, BODY)), {200})
        self.assertGreater(len(LARGE), 65536)
        *others, last = self.stuck(2, LARGE)
        self.assertEqual((set(others) - {200}, last), (set(), 502))

    def get(self, path, headers=None):
        connection = self.proxy.connect()
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, body

    def test_what_is_not_shown_outside(self):
        for path in ("/metrics", "/healthz", "/readyz", "/health", "/ping", "/%6detrics", "/metrics?x", "/metric%73?",
                     "https://localhost/metrics", "/%72eadyz"):
            with self.subTest(path):
                response, body = self.get(path)
                self.assertEqual(response.status, 404, body)
                self.assertEqual(response.getheader("Content-Type"), "application/problem+json")
                self.assertEqual(json.loads(body)["status"], 404)
                self.assertNotIn(b"attend_", body)
        for path in ("//metrics", "/metrics/", "/x/../metrics", "/metrics%3f", "/metrics;x"):
            with self.subTest(path):
                response, body = self.get(path)
                self.assertGreaterEqual(response.status, 400)
                self.assertNotIn(b"attend_", body)
        for path in ("/", "/v1/models", "/v2/health/ready", "/openapi.json"):
            self.assertEqual(self.get(path)[0].status, 200, path)

    def test_one_address_has_so_many_connections(self):
        with open(CONFIGURATION) as file:
            limit = int(re.search(r"sc0_conn_cur gt (\d+)", file.read()).group(1))
        sockets = []
        try:
            for _ in range(limit + 20):
                sockets.append(socket.socket())
                sockets[-1].setblocking(False)  # one that is refused may be reset while it connects
                sockets[-1].connect_ex(("127.0.0.1", self.proxy.port))

            def refused():
                return len(select.select(sockets, [], [], 0)[0])

            self.assertTrue(wait_until(lambda: refused() >= 20))
            self.assertLess(refused(), 40)  # a few of the tests before may still be there
        finally:
            for each in sockets:
                each.close()
        self.assertTrue(wait_until(self.is_served))

    def is_served(self):
        try:
            return self.get("/v1/models")[0].status == 200
        except OSError:
            return False

    def test_identifiers(self):
        told = [self.get("/v1/models")[0].getheader("X-Request-Id") for _ in range(2)]
        self.assertTrue(all(told))
        self.assertNotEqual(*told)
        own = self.get("/v1/models", {"X-Request-Id": "of-the-client"})[0]
        self.assertEqual(own.getheader("X-Request-Id"), "of-the-client")
        for name in told + ["of-the-client"]:  # the log is written after the answer
            self.assertTrue(wait_until(lambda n=name: n in self.proxy.log()), name)

    def test_errors_come_through(self):
        for body, status in ((b"{", 400), (b'{"queries":[[[1]]]}', 400)):
            answers = []
            self.ask(body, answers)
            self.assertEqual(answers[0][0], status, answers)
            self.assertIn("type", json.loads(answers[0][1]))

    def test_http_2_and_1(self):
        for asked, version in (("--http2", "2"), ("--http1.1", "1.1")):
            out = subprocess.run(["curl", "-sS", "--cacert", self.proxy.certificate, asked, "-w",
                                  "\n%{http_version} %{http_code}", "-d", "@-", "-H",
                                  "Content-Type: application/json",
                                  f"https://127.0.0.1:{self.proxy.port}{PATH}"], input=BODY,
                                 stdout=subprocess.PIPE, check=True, timeout=PATIENCE).stdout
            body, told = out.rsplit(b"\n", 1)
            self.assertEqual(told.decode(), f"{version} 200")
            self.assertEqual(body, self.fleet.servers[0].attend(TOY).body)

    def test_no_plain_text_and_no_old_tls(self):
        with socket.create_connection(("127.0.0.1", self.proxy.port), 10) as plain:
            plain.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertFalse(plain.recv(100).startswith(b"HTTP/1.1 200"))
        context = ssl.create_default_context(cafile=self.proxy.certificate)
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        old = http.client.HTTPSConnection("127.0.0.1", self.proxy.port, timeout=PATIENCE,
                                          context=context)
        self.assertRaises(OSError, old.connect)


if __name__ == "__main__":
    unittest.main()
