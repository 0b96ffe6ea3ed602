"""test_admin: the second address, for health and metrics alone."""
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import unittest

from support import (BIN, MODE, PATIENCE, TOY, Case, Raw, Server, Trickle, attend, clean_environment,
                     head_of, wait_until, with_trickles)
from test_process import Folder

ADMIN = ("--admin-listen", "127.0.0.1:0")
PATHS = ("/healthz", "/readyz", "/metrics", "/v2/health/live", "/v2/health/ready")
MOST = 64  # connections of the admin address
SIZE = 4096 if MODE == "release" else 1536  # of models that take a while to load


def get(port, path):
    """(status, body) at a port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def scrape(port):
    """Asks for metrics on many connections at once, again and again, until they are cut off."""
    request = head_of("/metrics", method="GET")
    scrapers = []
    try:
        for _ in range(48):
            scrapers.append(socket.create_connection(("127.0.0.1", port), PATIENCE))
        while all(scraper.sendall(request) is None for scraper in scrapers):
            for scraper in scrapers:
                if not scraper.recv(1 << 20):
                    return
    except OSError:
        pass
    finally:
        for scraper in scrapers:
            scraper.close()


class Paths(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(None, *ADMIN)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_the_same_as_on_the_main_address(self):
        for path in PATHS:
            main, admin = self.server.get(path), self.server.ask_admin(path)
            self.assertEqual((main.status, admin.status), (200, 200), path)
            self.assertEqual(main.headers["content-type"], admin.headers["content-type"])
            if path != "/metrics":
                self.assertEqual(main.body, admin.body)
            self.assertEqual(self.server.ask_admin(path, "HEAD").body, b"")
            self.assertEqual(self.server.ask_admin(path, "POST", b"{}").status, 405, path)

    def test_nothing_else(self):
        for path in ("/", "/v1/models", "/v1/models/demo", "/openapi.json", "/none"):
            detail = self.problem(self.server.ask_admin(path), 404, "not-found")["detail"]
            self.assertIn("admin address", detail)
            self.assertIn("/metrics", detail)
        answer = self.server.ask_admin("/v1/attention", "POST", json.dumps(TOY).encode())
        self.problem(answer, 404, "not-found")
        for path in ("/v2", "/v2/models/demo/ready", "/v2/models"):
            answer = self.server.ask_admin(path)
            self.assertEqual(answer.status, 404)
            self.assertIn("admin address", answer.json["error"])
        answer = self.server.ask_admin("*", "OPTIONS")
        self.assertEqual((answer.status, answer.headers["allow"]), (204, "GET, HEAD, OPTIONS"))

    def test_metrics_know_both(self):
        kept = [Raw(self.server, port=self.server.admin) for _ in range(3)]
        try:
            for raw in kept:
                self.assertEqual(raw.send(head_of("/healthz", method="GET")).answer().status, 200)
            # What the tests before have closed may still be on its way out.
            for listener, count in (("admin", 3), ("main", 1)):
                self.assertTrue(wait_until(lambda: self.server.metric(
                    "attend_connections", f'listener="{listener}"') == count), listener)
            self.assertEqual(self.server.metric("attend_connections_limit", '"admin"'), MOST)
            self.assertEqual(self.server.metric("attend_connections_limit", '"main"'), 1024)
        finally:
            for raw in kept:
                raw.socket.close()


class Crowds(Case):
    """Neither address can be used up from the other, nor the admin one by who keeps what he opens."""

    def start(self, *args):
        server = Server(None, *ADMIN, *args)
        self.addCleanup(server.stop)
        return server

    def test_a_full_house(self):
        server = self.start("--max-connections", "4", "--workers", "1", "--io-threads", "1")
        raws = [Raw(server) for _ in range(4)]
        self.assertTrue(wait_until(lambda: b'attend_connections{listener="main"} 4' in
                                   server.ask_admin("/metrics").body))
        self.assertEqual(server.get("/healthz").status, 503)
        for path in PATHS:
            self.assertEqual(server.ask_admin(path).status, 200)
        for raw in raws:
            raw.socket.close()
        self.assertTrue(wait_until(lambda: server.get("/healthz").status == 200))

    def test_main_threads_that_are_busy(self):
        """One thread for all that the main address has, and a large answer on its way in it."""
        server = self.start("--workers", "1", "--io-threads", "1")
        with Raw(server) as slow, Raw(server) as raw:
            slow.send(head_of("/v1/attention", 1 << 20)).send(b'{"queries":')
            body = json.dumps(TOY).encode()
            raw.send((head_of("/v1/attention", len(body)) + body) * 500)
            for path in PATHS:
                self.assertEqual(server.ask_admin(path).status, 200)
            for _ in range(500):
                self.assertEqual(raw.answer().status, 200)

    def test_a_prober_that_keeps_all(self):
        server = self.start()
        kept = []
        for i in range(3 * MOST):
            raw = Raw(server, port=server.admin)
            kept.append(raw)
            if i % 2:  # others stay silent, or stop in the middle of a head
                raw.send(b"GET /healthz HTTP/1.1\r\nHost: t\r\n" + b"\r\n" * (i % 4 == 1))
                if i % 4 == 1:
                    self.assertEqual(raw.answer().status, 200, i)
            if i % 16 == 0:
                self.assertEqual(server.ask_admin("/healthz").status, 200, i)
        for path in PATHS:
            self.assertEqual(server.ask_admin(path).status, 200)
        # The oldest were ended, no more than had to be.
        self.assertTrue(kept[0].closed())
        self.assertTrue(kept[1].closed())
        self.assertEqual(kept[-1].send(b"\r\n").answer().status, 200)
        self.assertLessEqual(server.metric("attend_connections", '"admin"'), 2 * MOST)
        self.assertGreaterEqual(server.metric("attend_connections", '"admin"'), MOST // 2)
        self.assertEqual(server.attend(TOY).status, 200)
        for raw in kept:
            raw.socket.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_connections", '"admin"') == 0))

    def test_all_at_once(self):
        """More than the hard bound at the same moment: each has an answer or is ended."""
        server = self.start()
        server.process.send_signal(signal.SIGSTOP)  # so that it sees all of them at once
        raws = [Raw(server, port=server.admin) for _ in range(4 * MOST)]
        server.process.send_signal(signal.SIGCONT)
        answered = 0
        for raw in raws:
            try:
                raw.send(head_of("/healthz", None, "Connection: close", method="GET"))
                answer = raw.answer()
            except (BrokenPipeError, ConnectionResetError):
                answer = None
            if answer:
                if answer.status != 200:
                    self.assertIn("admin address", self.problem(answer, 503, "not-ready")["detail"])
                answered += answer.status == 200
            raw.socket.close()
        self.assertGreaterEqual(answered, MOST - 1)
        self.assertEqual(server.ask_admin("/healthz").status, 200)

    def test_slow_probes_are_ended(self):
        server = self.start("--header-timeout-ms", "300")
        with Raw(server, port=server.admin) as raw:
            self.assertEqual(raw.send(b"GET /healthz HTTP/1.1\r\n").answer().status, 408)
            self.assertTrue(raw.closed())


class Life(Folder):
    """It is there before the models are, and until all is over."""

    def begin(self, *args, env=None, size=SIZE):
        config = self.write("attend.json", {"models": {
            f"slow{i}": {"random": {"seed": i}, "query_size": size, "heads": 2}
            for i in range(2)}})
        process = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--config", config,
                                    *ADMIN, *args], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment(env))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        line = process.stdout.readline()
        found = re.fullmatch(rb"admin listening on 127\.0\.0\.1:(\d+)\n", line)
        self.assertTrue(found, line)
        return process, int(found.group(1))

    def test_while_models_are_loaded(self):
        process, port = self.begin()
        status, body = get(port, "/readyz")
        self.assertEqual((status, json.loads(body)["type"]), (503, "/problems/not-ready"))
        self.assertRegex(json.loads(body)["detail"],
                         "^([01] of 2 models are loaded|the models are being loaded)$")
        self.assertEqual(get(port, "/v2/health/ready")[0], 503)
        self.assertEqual(get(port, "/healthz")[0], 200)
        self.assertEqual(get(port, "/v2/health/live")[0], 200)
        status, text = get(port, "/metrics")
        self.assertEqual(status, 200)
        self.assertIn(b"attend_build_info", text)
        self.assertNotIn(b"attend_models ", text)
        line = process.stdout.readline()
        self.assertRegex(line, rb"^listening on 127\.0\.0\.1:\d+\n$")
        self.assertEqual(get(port, "/readyz")[0], 200)
        self.assertIn(b"attend_models 2\n", get(port, "/metrics")[1])
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (0, b""), err)

    def test_stop_while_models_are_loaded(self):
        process, port = self.begin()
        self.assertEqual(get(port, "/readyz")[0], 503)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (0, b""), err)

    def test_models_that_cannot_be_loaded(self):
        config = self.write("attend.json", {"models": {"a": {"checkpoint": "none.safetensors"}}})
        status, out, err = attend("serve", "--listen", "127.0.0.1:0", "--config", config, *ADMIN)
        self.assertEqual(status, 2, err)
        self.assertIn("none.safetensors", err)
        self.assertNotIn(b"\nlistening", out)

    def test_scrapes_until_the_end(self):
        """The admin address counts the main one's connections: these are forgotten after it."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            for way in ("--listen=127.0.0.1:%d" % taken.getsockname()[1], None, None):
                process, port = self.begin(*([way] if way else []), size=512)
                scraper = threading.Thread(target=scrape, args=(port,))
                scraper.start()
                if not way:
                    self.assertRegex(process.stdout.readline(), rb"^listening on ")
                    process.send_signal(signal.SIGTERM)
                out, err = process.communicate(timeout=PATIENCE)
                scraper.join()
                self.assertEqual((process.returncode, out), (1 if way else 0, b""), err)
                self.assertEqual(b"cannot listen" in err, way is not None, err)

    def test_threads_have_names(self):
        """As `top -H` shows them."""
        def names(pid):
            found = []
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/comm") as file:
                    found.append(file.read().strip())
            return sorted(name for name in found if name.startswith("attend"))

        process, _ = self.begin()
        self.assertTrue(wait_until(lambda: "attend-load" in names(process.pid)))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        server = Server(None, *ADMIN, "--workers", "2", "--io-threads", "1", "--access-log", "all")
        try:
            expected = ["attend"] + ["attend-accept", "attend-io", "attend-log",
                                     "attend-reaper", "attend-worker"] * 2
            expected += ["attend"] * (MODE == "tsan")  # which has a thread of its own
            wait_until(lambda: names(server.pid) == sorted(expected))
            self.assertEqual(names(server.pid), sorted(expected))
        finally:
            server.stop()

    @with_trickles
    def test_stays_while_it_drains(self):
        server = Server(None, *ADMIN, "--drain-ms", "60000")
        with Raw(server) as raw, Raw(server, port=server.admin) as kept:
            self.assertEqual(kept.send(head_of("/readyz", method="GET")).answer().status, 200)
            body = b" " * (100 * PATIENCE) + json.dumps(TOY).encode()
            trickle = Trickle(raw.send(head_of("/v1/attention", len(body))), body)
            self.addCleanup(trickle.hurry.set)
            server.signal()
            self.assertTrue(wait_until(lambda: server.ask_admin("/readyz").status == 503))
            with self.assertRaises(OSError):
                for _ in range(100 * PATIENCE):  # until the main socket is closed
                    Raw(server).socket.close()
                    time.sleep(0.01)
            for _ in range(3):
                answer = server.ask_admin("/readyz")
                self.problem(answer, 503, "draining")
            self.assertEqual(server.ask_admin("/healthz").status, 200)
            # those that were opened above are closed when the server has seen their end
            self.assertTrue(wait_until(lambda: b'attend_connections{listener="main"} 1' in
                                       server.ask_admin("/metrics").body))
            self.assertEqual(kept.send(head_of("/readyz", method="GET")).answer().status, 503)
            trickle.finish()
            self.assertEqual(raw.answer().status, 200)
        self.assertEqual(server.wait(), 0)
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", server.admin), 1)

    def test_open_probes_hold_no_stop_up(self):
        server = Server(None, *ADMIN)
        raws = [Raw(server, port=server.admin) for _ in range(8)]
        for raw in raws[::2]:
            self.assertEqual(raw.send(head_of("/healthz", method="GET")).answer().status, 200)
        server.stop()
        for raw in raws:
            raw.socket.close()

    def test_no_descriptor_is_left(self):
        server = Server(None, *ADMIN)
        for path in PATHS:
            server.ask_admin(path)
        self.assertTrue(wait_until(lambda: server.metric("attend_connections", '"admin"') == 0))
        before = server.descriptors()
        for _ in range(50):
            server.ask_admin("/healthz")
        self.assertTrue(wait_until(lambda: server.descriptors() <= before))
        server.stop()


class Settings(Folder):
    def test_the_address_of_listen(self):
        for command in ("serve", "check"):
            status, _, err = attend(command, "--listen", "127.0.0.1:8123",
                                    "--admin-listen", "127.0.0.1:8123")
            self.assertEqual(status, 2, err)
            self.assertIn("admin_listen", err)
            self.assertIn("another port", err)
        self.assertEqual(attend("check", "--listen", "127.0.0.1:8123",
                                "--admin-listen", "127.0.0.1:8124")[0], 0)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            status, out, err = attend("serve", "--listen", "127.0.0.1:0",
                                      "--admin-listen", address)
            self.assertEqual(status, 1, err)
            self.assertIn("admin_listen", err)
            self.assertIn(address, err)
            self.assertEqual(out, b"")
            self.assertEqual(attend("check", "--admin-listen", address)[0], 0)

    def test_health_asks_it(self):
        server = Server(None, *ADMIN, "--max-connections", "1")
        try:
            admin = {"ATTEND_ADMIN_LISTEN": f"0.0.0.0:{server.admin}",
                     "ATTEND_LISTEN": f"127.0.0.1:{server.port}"}
            with Raw(server):
                self.assertTrue(wait_until(lambda: server.get("/healthz").status == 503))
                self.assertEqual(attend("health", env=admin)[0], 0)
                self.assertEqual(attend("health", env={"ATTEND_LISTEN": admin["ATTEND_LISTEN"]})[0],
                                 1)
        finally:
            server.stop()

    def test_descriptors_are_reserved_for_it(self):
        def limit(hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

        words = ("--listen", "127.0.0.1:0", "--max-connections", "50", "--workers", "1")
        needs = 50 + 384 + 7  # what one door needs, with one I/O thread
        status, _, err = attend("serve", *words, *ADMIN, preexec_fn=limit(needs))
        self.assertEqual(status, 2, err)
        self.assertIn("descriptors", err)
        server = Server(None, *words[2:], preexec=limit(needs))
        server.stop()


if __name__ == "__main__":
    unittest.main()
