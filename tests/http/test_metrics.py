"""test_metrics: what /metrics says: its form, its sums, and that each thing that happens counts."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

from needs import needs
from prometheus import Broken, Scrape
from support import MODE, PATIENCE, TOY, Case, Layer, Raw, Server, head_of, wait_until

PATH = "/v1/attention"
BODY = json.dumps(TOY).encode()
BASE = "/v1/models/base/attention"
REASONS = {"queue", "budget", "connections", "http_2", "draining", "deadline", "memory", "unauthorized",
           "too_large", "slow_head", "slow_body", "slow_reader"}


def long_body(rows):
    """Self-attention on `rows` rows of the model base: much work."""
    row = "[" + ",".join(["1,0,2,0.5"] * 128) + "]"
    return ('{"queries":[[' + ",".join([row] * rows) + "]]}").encode()


LONG = long_body(4000 if MODE == "release" else 800)


class Metrics(Case):
    """A server of its own for each test, and a connection that scrapes it."""

    def start(self, *args, config=None, folder=None, ends=0):
        server = Server(config, *args, folder=folder)
        self.addCleanup(server.stop, ends)
        self.connection = server.connect()
        self.addCleanup(self.connection.close)
        self.server = server
        return server

    def scrape(self):
        answer = self.server.get("/metrics", connection=self.connection)
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["content-type"],
                         "text/plain; version=0.0.4; charset=utf-8")
        return Scrape(answer.body)

    def reaches(self, count, name, **labels):
        """Waits until a count is there; it must not be passed."""
        self.assertTrue(wait_until(lambda: self.scrape().value(name, **labels) >= count),
                        self.scrape().samples)
        self.assertEqual(self.scrape().value(name, **labels), count)

    def rejected(self, count, reason):
        """As many were rejected for this reason, and none for another."""
        self.reaches(count, "attend_rejected_total", reason=reason)
        values = self.scrape().values("attend_rejected_total", "reason")
        self.assertEqual({r for r, n in values.items() if n}, {reason} if count else set())

    def aborted(self, phase, clients=1):
        """So many clients have left, all in this phase, and nothing counts as rejected."""
        self.reaches(clients, "attend_client_aborts_total", phase=phase)
        now = self.scrape()
        self.assertEqual(now.value("attend_client_aborts_total"), clients)
        self.assertEqual(now.value("attend_rejected_total"), 0)


class Busy(Metrics):
    def traffic(self):
        """Some of everything; returns how many answers there were by code."""
        codes = {}
        for method, path, body, headers in (
                [("POST", PATH, BODY, {})] * 7 + [("POST", "/v1/models/demo/heads", BODY[:-1], {})] +
                [("POST", PATH, b"{", {})] * 3 + [("POST", "/v1/models/none/attention", BODY, {})] +
                [(m, p, None, {}) for m in ("GET", "HEAD", "PUT", "OPTIONS", "NONSENSE")
                 for p in ("/healthz", "/v1/models", "/v1/models/demo", "/v2", "/v2/x", "/?a=\"")] +
                [("POST", PATH, BODY, {"Content-Type": "text/html"}),
                 ("POST", PATH, BODY, {"Accept": "image/png"}),
                 ("POST", "/v2/models/demo/infer", b"{}", {})]):
            answer = self.server.request(method, path, body,
                                         dict({"Content-Type": "application/json"}, **headers))
            codes[answer.status] = codes.get(answer.status, 0) + 1
        return codes


class Form(Busy):
    def test_codes_stages_and_batches_add_up(self):
        self.start("--workers", "1")
        before = self.scrape()
        codes = self.traffic()
        after = None

        def settled():
            nonlocal after
            after = self.scrape()
            return after.value("attend_stage_duration_seconds_count", stage="write") == 7 and \
                after.value("attend_http_requests_total") >= sum(codes.values()) + 1
        self.assertTrue(wait_until(settled))
        after.follows(before)
        counted = {}
        for (name, labels), value in after.samples.items():
            labels = dict(labels)
            if name == "attend_http_requests_total" and labels["route"] != "/metrics" and value:
                counted[int(labels["code"])] = counted.get(int(labels["code"]), 0) + value
        self.assertEqual(counted, codes)
        for (name, labels), value in after.samples.items():
            if name == "attend_http_requests_total" and value:
                self.assertEqual(value, after.samples.get(
                    ("attend_http_request_duration_seconds_count", labels)), labels)
        for stage in ("decode", "queue", "compute", "encode", "write"):
            self.assertEqual(
                after.value("attend_stage_duration_seconds_count", stage=stage), 7, stage)
        self.assertEqual(after.value("attend_batch_requests_sum"), 7)
        self.assertEqual(after.value("attend_batch_rows_sum"), 7 * 2)
        self.assertEqual(after.value("attend_batch_requests_count"),
                         after.value("attend_batch_rows_count"))

    def test_what_is_there_from_the_start(self):
        server = self.start("--max-connections", "99", "--max-queue", "7", "--workers", "3",
                            "--io-threads", "2", "--memory-budget-bytes", "5000000")
        first = self.scrape()
        self.assertEqual(set(first.values("attend_rejected_total", "reason")), REASONS)
        self.assertEqual(first.value("attend_rejected_total"), 0)
        self.assertEqual(first.values("attend_client_aborts_total", "phase"),
                         {"body": 0, "queue": 0, "answer": 0})
        self.assertEqual(first.values("attend_reloads_total", "result"), {"ok": 0, "failed": 0})
        for name, value in (("attend_queue_limit", 7), ("attend_workers", 3),
                            ("attend_io_threads", 2), ("attend_inflight_limit_bytes", 5000000),
                            ("attend_queue_depth", 0), ("attend_running", 0),
                            ("attend_models", 6), ("attend_build_info", 1),
                            ("attend_log_dropped_total", 0), ("attend_log_suppressed_total", 0)):
            self.assertEqual(first.value(name), value, name)
        self.assertGreater(self.scrape().value("attend_io_longest_turn_seconds"), 0)
        self.assertEqual(first.value("attend_connections", listener="main"), 1)
        self.assertEqual(first.value("attend_connections_limit", listener="main"), 99)
        self.assertEqual(first.value("attend_connections_total", listener="main"), 1)
        for _ in range(3):
            server.get("/healthz")
        self.assertEqual(self.scrape().value("attend_connections_total", listener="main"), 4)
        for model in server.get("/v1/models").json["models"]:
            self.assertEqual(first.value(
                "attend_model_info", model=model["name"], sha256=model["sha256"],
                source=model["source"], layout=model.get("layout") or model["family"]), 1)

    def test_the_process(self):
        server = self.start()
        first = self.scrape()
        self.assertEqual(first.value("process_threads"),
                         len(os.listdir(f"/proc/{server.pid}/task")))
        self.assertEqual(first.value("process_open_fds"), server.descriptors())
        with open(f"/proc/{server.pid}/limits") as file:
            limit = re.search(r"Max open files\s+(\d+)", file.read()).group(1)
        self.assertEqual(first.value("process_max_fds"), int(limit))
        self.assertLess(abs(first.value("process_resident_memory_bytes") - server.resident()),
                        server.resident() / 2)
        self.assertGreater(first.value("process_virtual_memory_bytes"),
                           first.value("process_resident_memory_bytes"))
        with open("/proc/uptime") as file:
            up = float(file.read().split()[0])
        with open(f"/proc/{server.pid}/stat") as file:
            ticks = int(file.read().rsplit(")", 1)[1].split()[19])
        age = up - ticks / os.sysconf("SC_CLK_TCK")
        began = first.value("process_start_time_seconds")
        self.assertLess(abs(first.value("attend_models_loaded_timestamp_seconds") - began), age + 1)
        server.attend(TOY)
        second = self.scrape()
        self.assertEqual(second.value("process_start_time_seconds"), began)
        self.assertGreater(second.value("process_cpu_seconds_total"),
                           first.value("process_cpu_seconds_total"))

    def test_a_file_may_be_called_anything(self):
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        layer = Layer(3, 8, 2)
        name = 'a"b\\c{},=é\u2028'
        self.start(config={"models": {"m": layer.definition(folder, name)}}, folder=folder)
        escaped = (name + ".safetensors").replace("\\", "\\\\").replace('"', '\\"')
        self.assertEqual(self.scrape().value("attend_model_info", model="m", source=escaped), 1)

    def test_the_reader_of_these_tests_is_strict(self):
        head = "# HELP a A.\n# TYPE a counter\n"
        good = head + 'a{x="1"} 1\na{x="\\"\\\\\\n"} 2.5e-1\n'
        self.assertEqual(Scrape(good).value("a"), 1.25)
        histogram = '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} %d\nh_bucket{le="+Inf"} 2\n' \
                    "h_sum 3\nh_count %d\n"
        Scrape(histogram % (1, 2))
        for text in (good[:-1], good + "\n", good + head, "# HELP a A.\na 1\n", "a 1\n", head,
                     head + "a 1\na 2\n", head + "a -1\n", head + "a one\n", head + "a  1\n",
                     head + 'a{x="1",} 1\n', head + 'a{x="1"y="2"} 1\n', head + 'a{x="\\t"} 1\n',
                     head + 'a{x="1",x="2"} 1\n', head + "b 1\n", head + "a 1 \n", "# hello\n" + good,
                     head.replace("counter", "number") + "a 1\n", histogram % (3, 2),
                     histogram % (1, 3), (histogram % (1, 2)).replace("h_sum 3\n", ""),
                     (histogram % (1, 2)).replace("+Inf", "2")):
            with self.subTest(text=text):
                self.assertRaises(Broken, Scrape, text)
        self.assertRaises(Broken, Scrape(head + "a 1\n").follows, Scrape(head + "a 2\n"))
        self.assertRaises(Broken, Scrape(head + "a 1\n").follows, Scrape(good))


class Rejections(Metrics):
    """Each reason counts once for each time, and alone."""

    def busy(self, stack, waiting=0):
        """One request is computed, as many wait."""
        raws = []
        for n in range(1 + waiting):
            raws.append(stack.enter_context(Raw(self.server)))
            raws[-1].send(head_of(BASE, len(LONG)) + LONG)
            name, count = ("attend_queue_depth", n) if n else ("attend_running", 1)
            self.assertTrue(wait_until(lambda: self.scrape().value(name) == count), name)
        return raws

    def test_queue(self):
        self.start("--workers", "1", "--max-queue", "1", "--merge=false")
        small = long_body(20)
        for _ in range(10):  # on a machine that is busy itself, what fills the queue may end before the last one comes
            with contextlib.ExitStack() as stack:
                raws = self.busy(stack, 1)
                # Without patience it does not wait for a place.
                answer = self.server.post(BASE, small, {"X-Timeout-Ms": "1"})
                self.assertEqual([raw.answer().status for raw in raws], [200, 200])
            if answer.status == 429:
                break
        self.problem(answer, 429, "overloaded")
        self.rejected(1, "queue")

    def test_budget(self):
        self.start("--memory-budget-bytes", "8000000")
        share = long_body(200)
        with contextlib.ExitStack() as stack:
            for n in range(40):  # on one connection: what has ended there is free for the next
                answer = self.server.request("POST", BASE, share, connection=self.connection)
                if answer.status != 200:
                    break
                before = self.scrape().value("attend_inflight_bytes")
                held = stack.enter_context(Raw(self.server))
                held.send(head_of(BASE, len(share)) + share[:-1])
                self.assertTrue(wait_until(lambda: self.scrape().value("attend_inflight_bytes")
                                           > before + 4 * 512 * 199))
            self.assertGreater(n, 0)  # it fits alone
            self.problem(answer, 429, "overloaded")
        self.rejected(1, "budget")

    def test_what_never_fits_the_budget(self):
        self.start("--memory-budget-bytes", "2000000")
        body = long_body(1500)
        self.problem(self.server.post(BASE, body), 413, "too-large", limit="memory_budget_bytes")
        self.rejected(1, "too_large")

    def test_connections(self):
        self.start("--max-connections", "1")
        self.scrape()
        with Raw(self.server) as raw:
            self.problem(raw.send(head_of("/healthz", method="GET")).answer(), 503, "not-ready")
        self.rejected(1, "connections")
        self.assertEqual(self.scrape().value("attend_connections_total"), 1)

    def test_deadline(self):
        self.start("--workers", "1")
        answer = self.server.post(BASE, LONG, headers={"X-Timeout-Ms": "1"})
        self.problem(answer, 504, "deadline-exceeded")
        self.rejected(1, "deadline")

    def test_too_large(self):
        self.start("--max-body-bytes", "1000", "--max-items", "2")
        with Raw(self.server) as raw:  # told by its head
            raw.send(head_of(PATH, 1001))
            self.problem(raw.answer(), 413, "too-large")
        self.rejected(1, "too_large")
        answer = self.server.attend({"queries": [[[1, 0, 0, 1]]] * 3})
        self.problem(answer, 413, "too-large", limit="max_items")
        self.rejected(2, "too_large")
        with Raw(self.server) as raw:  # and one without end
            raw.send(head_of(PATH, None, "Transfer-Encoding: chunked"))
            with contextlib.suppress(OSError):
                for _ in range(10):
                    raw.send(b"100\r\n" + b" " * 256 + b"\r\n")
            self.problem(raw.answer(), 413, "too-large")
        self.rejected(3, "too_large")

    def test_slow_head_and_body(self):
        for setting, sent, reason in (("--header-timeout-ms", head_of(PATH, 9)[:20], "slow_head"),
                                      ("--body-timeout-ms", head_of(PATH, 9), "slow_body")):
            with self.subTest(reason):
                self.start(setting, "200")
                with Raw(self.server) as raw:
                    self.problem(raw.send(sent).answer(), 408, "too-slow")
                self.rejected(1, reason)
                self.assertEqual(self.scrape().value("attend_client_aborts_total"), 0)

    def test_slow_reader(self):
        self.start("--answer-timeout-ms", "200")
        with unread(self.server) as s:
            self.rejected(1, "slow_reader")
            s.settimeout(PATIENCE)
            with self.assertRaises(ConnectionResetError):  # else the system keeps what is not sent
                while s.recv(65536):
                    pass
        now = self.scrape()
        self.assertEqual(now.value("attend_client_aborts_total"), 0)
        self.assertEqual(now.value("attend_stage_duration_seconds_count", stage="encode"), 1)
        self.assertEqual(now.value("attend_stage_duration_seconds_count", stage="write"), 0)

    def test_not_ready_is_an_answer(self):
        """Who is told that the server stops asked for nothing else."""
        self.start("--drain-delay-ms", str(2000 * PATIENCE), ends=128 + signal.SIGTERM)
        self.server.signal()
        self.assertTrue(wait_until(
            lambda: self.server.get("/readyz", connection=self.connection).status == 503))
        self.rejected(0, "draining")
        self.server.signal()  # the second one ends the delay, and the server


@contextlib.contextmanager
def unread(server):
    """A request whose answer is larger than all buffers, and of which nothing is read."""
    rows = ",".join(["[1,0,0,1]"] * 2000)
    body = f'{{"queries":[[{rows}]],"return_attention":true}}'.encode()  # some 50 MB come back
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", server.port))
        s.sendall(head_of(PATH, len(body)) + body)
        s.recv(1, socket.MSG_PEEK)
        yield s


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


class Aborts(Metrics):
    def test_in_the_body(self):
        self.start()
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, len(BODY)) + BODY[:30])
            self.assertTrue(wait_until(
                lambda: self.scrape().value("attend_inflight_bytes") > 0))
        self.aborted("body")
        self.assertEqual(self.scrape().value("attend_http_requests_total", code=499), 1)

    def test_in_the_queue(self):
        """One client resets its connection. The other closes its sending half, which counts the same."""
        self.start("--workers", "1", "--merge=false")
        with contextlib.ExitStack() as stack:
            first, second, third = Rejections.busy(self, stack, 2)
            reset(second.socket)
            third.socket.shutdown(socket.SHUT_WR)
            self.aborted("queue", 2)
            self.assertEqual(first.answer().status, 200)
            self.assertIsNone(third.answer())
        self.assertEqual(self.scrape().value("attend_http_requests_total", code=499), 2)

    def test_in_the_answer(self):
        self.start()
        with unread(self.server) as s:
            reset(s)
        self.aborted("answer")
        self.assertEqual(
            self.scrape().value("attend_stage_duration_seconds_count", stage="write"), 0)

    def test_in_the_head_there_is_no_request(self):
        self.start()
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, 9)[:20])
            self.assertTrue(wait_until(
                lambda: self.scrape().value("attend_connections", listener="main") == 2))
        self.assertTrue(wait_until(
            lambda: self.scrape().value("attend_connections", listener="main") == 1))
        now = self.scrape()
        self.assertEqual(now.value("attend_client_aborts_total"), 0)
        self.assertEqual(now.value("attend_rejected_total"), 0)


LUA = """wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[%s]==]
function done(summary)
  print(string.format("answers %%d failed %%d", summary.requests, summary.errors.status))
end
"""


class UnderLoad(Metrics):
    @needs("test", "wrk")
    def test_scrapes_beside_wrk(self):
        """Every text is whole and none goes back, whoever counts meanwhile."""
        server = self.start()
        failures, scrapes = [], [0] * 3
        over = threading.Event()

        def look(index):
            connection = server.connect()
            try:
                last = None
                while not over.is_set():
                    now = Scrape(server.get("/metrics", connection=connection).body)
                    if last:
                        now.follows(last)
                    last = now
                    scrapes[index] += 1
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
            finally:
                connection.close()

        threads = [threading.Thread(target=look, args=(i,)) for i in range(len(scrapes))]
        for thread in threads:
            thread.start()
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(LUA % BODY.decode())
            script.flush()
            done = subprocess.run(["wrk", "-t1", "-c8", "-d2s", "-s", script.name,
                                   f"http://127.0.0.1:{server.port}{PATH}"],
                                  stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(failures, [])
        self.assertGreater(min(scrapes), 1)
        answers, failed = map(int, re.search(rb"answers (\d+) failed (\d+)", done.stdout).groups())
        self.assertEqual(failed, 0)
        self.assertTrue(wait_until(
            lambda: self.scrape().value("attend_connections", listener="main") == 1))
        now = self.scrape()
        counted = now.value("attend_http_requests_total", route=PATH, code=200)
        gone = now.value("attend_http_requests_total", route=PATH) - counted
        self.assertTrue(answers <= counted <= answers + 8, (answers, counted))
        self.assertLessEqual(gone, 8)  # wrk ends in the middle of what its connections do
        stages = {stage: now.value("attend_stage_duration_seconds_count", stage=stage)
                  for stage in ("decode", "queue", "compute", "encode", "write")}
        self.assertEqual({stages[s] for s in ("decode", "queue", "compute", "encode")}, {counted})
        self.assertEqual(
            stages["write"] + now.value("attend_client_aborts_total", phase="answer"), counted)
        self.assertEqual(now.value("attend_batch_requests_sum"), counted)
        self.assertEqual(now.value("attend_batch_rows_sum"), 2 * counted)


if __name__ == "__main__":
    unittest.main()
