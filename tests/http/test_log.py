"""test_log: what the access log and standard error say, and that nobody waits for who reads them."""
import calendar
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from support import (BIN, MODE, PATIENCE, TOY, Case, Raw, Server, ServerCase, chunked,
                     clean_environment, head_of, wait_until)

BODY = json.dumps(TOY).encode()
PATH = "/v1/attention"
HEAVY_PATH = "/v1/models/base/attention"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

# Keys of a line. What is not always there, in the order of the stages of a request.
ALWAYS = {"time", "request_id", "listener", "client", "method", "route", "path", "status",
          "bytes_in", "bytes_out", "total_ms"}
STAGES = ["decode_ms", "queue_ms", "compute_ms", "encode_ms", "write_ms"]
HOSTILE = [b"\x1b[31mred", b"\xff\xfe\xe9", b'"quote\\back', b"\xc3\xa9\xf0\x9f\x98\x80", b"\x7f\x01",
           b"\xc3", b"\xed\xa0\x80", b"z" * 9000, b"\xc3\xa9" * 3000, b'"' * 3000]


def heavy(rows):
    """Self-attention on `rows` rows of the model base: little text, much work."""
    row = b"[" + b",".join([b"1,0,2,0.5"] * 128) + b"]"
    return b'{"queries":[[' + b",".join([row] * rows) + b"]]}"


HEAVY = heavy(2000 if MODE == "release" else 500)
LONG_ANSWER = ('{"queries":[[' + ",".join(["[0.123456,0.2345678,0.3456789,0.4567891]"] * 1200) +
               ']],"return_attention":true}').encode()


def strict(line):
    """The line as JSON, of which every key comes once."""
    def once(pairs):
        if len({k for k, _ in pairs}) != len(pairs):
            raise AssertionError(f"a key comes twice: {line}")
        return dict(pairs)
    return json.loads(line, object_pairs_hook=once)


def logged(server):
    """The lines of the access log so far."""
    return [strict(line) for line in server.lines if line.startswith("{")]


class Logged(Case):
    def start(self, *args, config=None, **options):
        server = Server(config, *args, **options)
        self.addCleanup(server.kill)
        return server

    def line(self, server, name):
        """The line of the request with that identifier, once it has ended."""
        def found():
            return [l for l in logged(server) if l.get("request_id") == name]
        self.assertTrue(wait_until(found), f"no line of {name} in {server.lines}")
        self.assertEqual(len(found()), 1)
        return found()[0]

    def check(self, line, status, error, stages, *more):
        """The line has exactly the keys that it should."""
        self.assertEqual(line["status"], status, line)
        self.assertEqual(line.get("error"), error, line)
        keys = ALWAYS | {s + "_ms" for s in stages.split()} | set(more) | ({"error"} if error else set())
        self.assertEqual(set(line), keys, line)
        self.assertRegex(line["time"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual(line["listener"], "main")
        self.assertEqual(line["client"], "127.0.0.1")
        spent = sum(line.get(stage, 0) for stage in STAGES)
        self.assertLessEqual(spent, line["total_ms"] + 0.01, line)
        return line


class Access(Logged, ServerCase):
    """Each way that a request can end has a line that says so."""

    @classmethod
    def start(cls):
        return Server(None, "--access-log", "all", "--max-body-bytes", "40000000", "--workers", "1",
                      "--merge=false")

    def hasty(self):
        """A server that does not wait long for who is slow."""
        words = [word for name in ("header", "body", "answer")
                 for word in (f"--{name}-timeout-ms", "400")]
        server = Server(None, "--access-log", "all", *words)
        self.addCleanup(server.stop)
        return server

    def said(self, name, *checked):
        return self.check(self.line(self.server, name), *checked)

    def test_answered(self):
        answer = self.server.post(PATH, BODY, {
            "X-Request-Id": "ok-1", "traceparent": f"00-{TRACE}-{PARENT}-01", "User-Agent": "me/1"})
        line = self.said("ok-1", 200, None, "decode queue compute encode write", "model", "trace_id",
                         "parent_id", "agent")
        self.assertEqual((line["trace_id"], line["parent_id"]), (TRACE, PARENT))
        self.assertEqual((line["method"], line["route"], line["path"], line["model"], line["agent"]),
                         ("POST", PATH, PATH, "demo", "me/1"))
        self.assertEqual((line["bytes_in"], line["bytes_out"]), (len(BODY), len(answer.body)))
        # Server-Timing is of the same source.
        timing = dict(re.findall(r"(\w+);dur=([\d.]+)", answer.headers["server-timing"]))
        self.assertEqual({k: float(v) for k, v in timing.items()},
                         {s[:-3]: line[s] for s in STAGES[:-1]})

    def test_the_clock_is_that_of_the_host(self):
        before = time.time()
        self.server.get("/healthz", headers={"X-Request-Id": "clock"})
        line = self.said("clock", 200, None, "write")
        after = time.time()
        stamp = time.strptime(line["time"][:19] + " UTC", "%Y-%m-%dT%H:%M:%S %Z")
        seconds = calendar.timegm(stamp)
        self.assertTrue(int(before) - 1 <= seconds <= after + 1, (line["time"], before, after))

    def test_without_work(self):
        for method, path, route, more in (
                ("GET", "/healthz", "/healthz", ()), ("HEAD", "/healthz", "/healthz", ()),
                ("GET", "/v1/models/base", "/v1/models/{model}", ("model",)),
                ("GET", "/v2/models/demo/ready", "/v2/models/{model}/ready", ("model",))):
            name = "plain-" + method + path.replace("/", "-")
            answer = self.server.request(method, path, headers={"X-Request-Id": name})
            line = self.said(name, 200, None, "write", *more)
            self.assertEqual((line["method"], line["route"], line["path"]), (method, route, path))
            self.assertEqual(line["bytes_out"], len(answer.body))

    def test_refused(self):
        toy = BODY.decode()
        nothing = '{"queries":[[[3e38,3e38,3e38,3e38]]]}'
        cases = [
            ("POST", "/nowhere", "x", {}, 404, "not-found", "write", ()),
            ("POST", "/v2/nowhere", "", {}, 404, "not-found", "write", ()),
            ("POST", "/v1/models/nobody/attention", toy, {}, 404, "unknown-model", "write", ("model",)),
            ("GET", PATH, None, {}, 405, "method-not-allowed", "write", ()),
            ("POST", PATH, toy, {"Accept": "text/html"}, 406, "not-acceptable", "write", ()),
            ("POST", PATH, toy, {"Content-Type": "text/html"}, 415, "unsupported-media-type",
             "write", ()),
            ("POST", PATH, toy, {"Content-Encoding": "gzip"}, 415, "unsupported-media-type",
             "write", ()),
            ("POST", PATH, toy, {"X-Timeout-Ms": "no"}, 400, "invalid-request", "write", ()),
            ("POST", PATH, "{", {}, 400, "invalid-json", "decode write", ("model",)),
            ("POST", PATH, "{}", {}, 400, "invalid-request", "decode write", ("model",)),
            ("POST", PATH, "{]" + " " * 100000, {}, 400, "invalid-json", "decode write", ("model",)),
            ("POST", "/v2/models/demo/infer", "{}", {}, 400, "invalid-request", "decode write",
             ("model",)),
            ("POST", PATH, nothing, {}, 422, "not-finite", "decode queue compute write", ("model",)),
        ]
        for i, (method, path, body, headers, status, slug, stages, more) in enumerate(cases):
            name = f"refused-{i}"
            with self.subTest(path=path, slug=slug):
                answer = self.server.request(method, path, body, dict(
                    {"Content-Type": "application/json", "X-Request-Id": name}, **headers))
                self.assertEqual(answer.headers["x-request-id"], name)
                line = self.said(name, status, slug, stages, *more)
                self.assertEqual(line["bytes_out"], len(answer.body))

    def test_refused_for_their_framing(self):
        for i, (head, status, slug) in enumerate((
                (head_of(PATH, 5, "Content-Length: 6", "X-Request-Id: framing-0"), 400,
                 "bad-framing"),
                (head_of(PATH, None, "Transfer-Encoding: gzip", "X-Request-Id: framing-1"), 501,
                 "unsupported-transfer-encoding"),
                (head_of(PATH, 50000000, "X-Request-Id: framing-2"), 413, "too-large"))):
            with Raw(self.server) as raw:
                answer = raw.send(head).answer()
                self.assertEqual(answer.headers["x-request-id"], f"framing-{i}")
                line = self.said(f"framing-{i}", status, slug, "write")
                self.assertEqual(line["bytes_in"], 0)

    def test_deadline(self):
        self.server.post(HEAVY_PATH, HEAVY, {"X-Request-Id": "late", "X-Timeout-Ms": "1"})
        line = self.line(self.server, "late")
        stages = "decode queue write" + (" compute" if "compute_ms" in line else "")
        self.check(line, 504, "deadline-exceeded", stages, "model")

    def test_client_goes_during_its_upload(self):
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, len(BODY), "X-Request-Id: upload", "Expect: 100-continue"))
            self.assertEqual(raw.answer().status, 100)
            raw.send(BODY[:40])
        line = self.said("upload", 499, "gone", "decode", "model")
        self.assertEqual((line["bytes_in"], line["bytes_out"]), (40, 0))

    def leave_behind(self, turn):
        """The line of a client that has left while another one's request was computed."""
        with Raw(self.server) as first:
            first.send(head_of(HEAVY_PATH, len(HEAVY), f"X-Request-Id: first-{turn}") + HEAVY)
            wait_until(lambda: self.server.metric("attend_running") == 1, 2)
            body = heavy(100)
            with Raw(self.server) as raw:
                raw.send(head_of(HEAVY_PATH, len(body), f"X-Request-Id: waits-{turn}") + body)
                wait_until(lambda: self.server.metric("attend_queue_depth") == 1, 1)
            line = self.line(self.server, f"waits-{turn}")
            self.assertEqual(first.answer().status, 200)
        self.said(f"first-{turn}", 200, None, "decode queue compute encode write", "model")
        return line

    def test_client_goes_while_it_waits(self):
        """On a busy machine the other request may be done before; then once more."""
        lines = (self.leave_behind(turn) for turn in range(50))
        line = next((line for line in lines if line["status"] != 200), None)
        self.assertIsNotNone(line, "fifty clients got their answers, and had left")
        stages = "decode queue" + (" compute" if "compute_ms" in line else "")
        self.check(line, 499, "gone", stages, "model")

    def dawdle(self, server, name):
        """A client whose answer has begun and does not fit in what it reads."""
        raw = Raw(server)
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.send(head_of(PATH, len(LONG_ANSWER), "X-Request-Id: " + name) + LONG_ANSWER)
        raw.socket.recv(1, socket.MSG_PEEK)
        return raw

    def test_client_goes_during_its_answer(self):
        raw = self.dawdle(self.server, "cut")
        raw.socket.close()
        line = self.said("cut", 200, "cut-off", "decode queue compute encode write", "model")
        self.assertGreater(line["bytes_out"], 1 << 20)

    def test_slow_reader(self):
        server = self.hasty()
        with self.dawdle(server, "reader"):
            line = self.check(self.line(server, "reader"), 200, "slow-reader",
                              "decode queue compute encode write", "model")
            self.assertGreater(line["write_ms"], 300)

    def test_slow_body(self):
        server = self.hasty()
        with Raw(server) as raw:
            raw.send(head_of(PATH, len(BODY), "X-Request-Id: slow") + BODY[:10])
            answer = raw.answer()
        self.assertEqual((answer.status, answer.headers["x-request-id"]), (408, "slow"))
        self.check(self.line(server, "slow"), 408, "too-slow", "decode", "model")

    def test_slow_head_has_an_identifier(self):
        with Raw(self.hasty()) as raw:
            answer = raw.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: never").answer()
        self.assertEqual(answer.status, 408)
        self.assertRegex(answer.headers["x-request-id"], r"^[0-9a-f]{16}$")

    def test_broken_chunks(self):
        with Raw(self.server) as raw:
            raw.send(head_of(PATH, None, "Transfer-Encoding: chunked", "X-Request-Id: chunks") +
                     b"5\r\n{\"que\r\nnonsense\r\n\r\n")
            raw.answer()
        self.said("chunks", 400, "bad-framing", "decode", "model")

    def test_endless_body(self):
        """What is refused in the middle of a body, past libmicrohttpd."""
        server = Server(None, "--access-log", "all", "--max-body-bytes", "1000")
        self.addCleanup(server.kill)
        with Raw(server) as raw:
            raw.send(head_of(PATH, None, "Transfer-Encoding: chunked", "X-Request-Id: endless") +
                     chunked(b" " * 5000, [1000])[:-5])
            answer = raw.answer()
            self.assertEqual((answer.status, answer.headers["x-request-id"]), (413, "endless"))
        self.check(self.line(server, "endless"), 413, "too-large", "decode", "model")
        server.stop()

    # --- what clients send ---

    def test_invalid_traces_are_ignored(self):
        for i, value in enumerate((
                f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01",
                f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01-x", f"00-{TRACE}-{PARENT}",
                f'00-{TRACE[:-1]}"-{PARENT}-01', "", "\xff" * 55)):
            name = f"untraced-{i}"
            answer = self.server.attend(TOY, headers={"X-Request-Id": name, "traceparent": value})
            self.assertEqual(answer.status, 200)
            self.assertNotIn("traceparent", answer.headers)
            self.said(name, 200, None, "decode queue compute encode write", "model")
        self.server.attend(TOY, headers={"X-Request-Id": "later",
                                         "TraceParent": f"cc-{TRACE}-{PARENT}-01-more"})
        self.assertEqual(self.line(self.server, "later")["trace_id"], TRACE)

    def test_hostile_text(self):
        """Whatever a client sends: one line of ASCII, JSON, not too long."""
        for i, text in enumerate(HOSTILE):
            name = f"hostile-{i}"
            for method, path, fields in (
                    (b"GET", b"/" + text, b""), (b"GET", b"/x", b"User-Agent: " + text + b"\r\n"),
                    (text, b"/x", b""), (b"GET", b"/v1/models/" + text, b""),
                    (b"GET", b"/x", b"traceparent: " + text + b"\r\n")):
                with Raw(self.server) as raw:
                    raw.send(method + b" " + path + b" HTTP/1.1\r\nHost: x\r\nX-Request-Id: " +
                             name.encode() + b"\r\n" + fields + b"\r\n")
                    raw.answer()
            with Raw(self.server) as raw:
                raw.send(b"GET /x HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + text + b"\r\n\r\n")
                raw.answer()
        escaped = "/v1/models/%0a%22%5c%1b%ff%c3%a9"
        self.server.get(escaped, headers={"X-Request-Id": "escaped"})
        self.assertEqual(self.line(self.server, "escaped")["model"], '\n"\\\x1b\ufffd\xe9')
        lines = [line for line in self.server.lines if "hostile" in line]
        self.assertGreater(len(lines), 2 * len(HOSTILE))
        for line in self.server.lines[1:]:
            self.assertRegex(line, r"^\{[\x20-\x7e]*\}\n$")
            self.assertLess(len(line), 2048)
            strict(line)
        self.assertEqual(self.line(self.server, "escaped")["path"], escaped)
        for line in self.server.stderr().splitlines():
            self.assertRegex(line, r"^[\x20-\x7e]*$")

    def test_secrets_are_not_told(self):
        for path in ("/v1/attention?key=secret-1", "http://user:secret-2@host/v1/attention?secret-3",
                     "/nowhere?secret-4", "/nowhere#secret-5"):
            with Raw(self.server) as raw:
                raw.send(head_of(path, len(BODY), "Authorization: Bearer secret-6",
                                 "Cookie: secret-7") + BODY)
                raw.answer()
        self.server.get("/healthz", headers={"X-Request-Id": "after-secrets"})
        self.line(self.server, "after-secrets")
        self.assertIn(PATH, [l["path"] for l in logged(self.server)])
        self.assertNotIn("secret-", "".join(self.server.lines) + self.server.stderr())


class Errors(Logged):
    def test_only_what_went_wrong(self):
        server = self.start("--access-log", "errors", "--slow-ms", "3600000")
        with Raw(server) as raw:
            raw.send(head_of(PATH, 100, "X-Request-Id: gone", "Expect: 100-continue"))
            self.assertEqual(raw.answer().status, 100)
            raw.send(b"{")
        self.assertEqual(server.get("/healthz", headers={"X-Request-Id": "well"}).status, 200)
        self.assertEqual(server.get("/nowhere", headers={"X-Request-Id": "lost"}).status, 404)
        with Raw(server) as raw:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.send(head_of(PATH, len(LONG_ANSWER), "X-Request-Id: cut") + LONG_ANSWER)
            raw.socket.recv(1, socket.MSG_PEEK)
        for name in ("gone", "lost", "cut"):
            self.line(server, name)
        self.assertEqual({l["request_id"] for l in logged(server)}, {"gone", "lost", "cut"})
        server.stop()

    def test_what_is_slow(self):
        server = self.start("--access-log", "errors", "--slow-ms", "1")
        body = heavy(200)
        answer = server.post(HEAVY_PATH, body, {"X-Request-Id": "slow"})
        self.assertEqual(answer.status, 200)
        line = self.line(server, "slow")
        self.check(line, 200, None, "decode queue compute encode write", "model")
        self.assertGreater(line["total_ms"], 1)
        server.stop()

    def test_probes(self):
        """Of what comes to the admin address, only what went wrong, even where all is logged."""
        server = self.start("--access-log", "all", "--admin-listen", "127.0.0.1:0")
        for port, path, name in ((server.admin, "/healthz", "probe"), (server.admin, "/none", "lost"),
                                 (server.port, "/healthz", "asked")):
            with Raw(server, port=port) as raw:
                raw.send(head_of(path, None, f"X-Request-Id: {name}", method="GET")).answer()
        for name in ("lost", "asked"):
            self.line(server, name)
        server.stop()
        self.assertEqual({(l["request_id"], l["listener"], l["status"]) for l in logged(server)},
                         {("lost", "admin", 404), ("asked", "main", 200)})

    def test_off(self):
        server = self.start()
        server.get("/nowhere")
        server.stop()
        self.assertEqual(len(server.lines), 1)


class Readers(Logged):
    """Whoever should read the logs and does not."""

    def raw_start(self, *args, **options):
        """A server whose standard output is a pipe of ours: (process, port)."""
        process = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", *args],
                                   stdout=subprocess.PIPE, env=clean_environment(),
                                   **dict({"stderr": subprocess.DEVNULL}, **options))
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close()))
        text = b""
        while b"listening on" not in text or not text.endswith(b"\n"):
            part = os.read(process.stdout.fileno(), 4096)
            self.assertTrue(part, text)
            text += part
        return process, int(re.search(rb":(\d+)\n", text).group(1))

    def hammer(self, port, count, path="/healthz"):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as s:
            for i in range(count):
                s.sendall(head_of(path, None, "X-Request-Id: " + "r" * 60, method="GET"))
                data = b""
                while not data.endswith(b"}\n") or b"\r\n\r\n" not in data:
                    part = s.recv(4096)
                    self.assertTrue(part, f"closed after {i} requests")
                    data += part

    def ends(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_standard_output_blocked(self):
        """Several times what a pipe holds; who reads then is told what is missing."""
        process, port = self.raw_start("--access-log", "all")
        self.hammer(port, 6000)
        written = lost = 0
        while written + lost < 6000:
            line = strict(process.stdout.readline().decode("ascii"))
            lost += line.get("log_lost", 0)
            written += "log_lost" not in line
        self.assertEqual(written + lost, 6000)
        self.assertGreater(lost, 0)
        self.ends(process)

    def test_standard_output_closed(self):
        process, port = self.raw_start("--access-log", "all")
        process.stdout.close()
        self.hammer(port, 50)
        self.ends(process)

    def test_standard_error_blocked(self):
        """By complaints of libmicrohttpd: of each kind one is said, so they do not even fill it; and
        by a pipe that is full from the start."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, b"x" * 4096)
        except BlockingIOError:
            pass
        os.set_blocking(write, True)
        process, port = self.raw_start("--log-level", "debug", stderr=write)
        os.close(write)
        self.hammer(port, 300)
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), 20) as s:
                s.sendall(b"\x16\x03\x01 garbage\r\n\r\n")
        process.send_signal(signal.SIGHUP)
        self.hammer(port, 300)
        self.ends(process)
        os.close(read)

    def test_terminal_that_is_held(self):
        """Says that it takes more, and does not return from a write."""
        master, slave = os.openpty()
        process = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--access-log", "all"],
                                   stdout=slave, stderr=subprocess.DEVNULL, env=clean_environment())
        self.addCleanup(lambda: (process.kill(), process.wait(), os.close(master)))
        os.close(slave)
        text = b""
        while not re.search(rb":(\d+)\r?\n", text):
            text += os.read(master, 4096)
        self.hammer(int(re.search(rb":(\d+)\r?\n", text).group(1)), 3000)
        self.ends(process)

    def blind_start(self, redirections):
        """A server whose standard streams are no use to tell a port: (process, port)."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen(
            ["sh", "-c", 'exec "$0" serve --access-log all --log-level debug '
             f"--listen 127.0.0.1:{port} {redirections}", BIN], env=clean_environment())
        self.addCleanup(lambda: (process.kill(), process.wait()))

        def up():
            try:
                self.hammer(port, 1)
                return True
            except OSError:
                return False
        self.assertTrue(wait_until(up))
        return process, port

    def test_all_standard_streams_closed_from_the_start(self):
        process, port = self.blind_start("<&- >&- 2>&-")
        self.hammer(port, 50)
        self.ends(process)

    def test_full_disk(self):
        """/dev/full takes nothing, ever: all is counted, but the lines that would tell so."""
        process, port = self.blind_start(">/dev/full 2>/dev/full")
        self.hammer(port, 50)

        def dropped():
            with socket.create_connection(("127.0.0.1", port), 20) as s:
                s.sendall(head_of("/metrics", None, "Connection: close", method="GET"))
                text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
            return int(re.search(r"\nattend_log_dropped_total (\d+)\n", text).group(1))
        self.assertTrue(wait_until(lambda: dropped() > 50))
        self.ends(process)

    def test_disk_that_is_full_for_a_while(self):
        """A file that may not grow, in the middle of a line, and then may: no line is cut, and one
        tells how many are missing."""
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(lambda: subprocess.run(["rm", "-r", folder], check=True))
        path = os.path.join(folder, "log")
        with open(path, "wb") as file:
            process = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--access-log", "all"],
                                       stdout=file, stderr=subprocess.DEVNULL,
                                       env=clean_environment())
        self.addCleanup(lambda: (process.kill(), process.wait()))

        def text():
            with open(path, encoding="ascii") as file:
                return file.read()
        self.assertTrue(wait_until(lambda: text().endswith("\n")))
        port = int(re.search(r":(\d+)\n", text()).group(1))
        no_limit = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        limit = len(text()) + 1000  # two lines and a half
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, no_limit[1]))
        self.hammer(port, 100)
        self.assertTrue(wait_until(lambda: len(text()) == limit), "the limit was not reached")
        self.assertNotEqual(text()[-1], "\n")
        asked = 0

        def dropped():
            nonlocal asked
            asked += 1
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                return int(re.search(rb"^attend_log_dropped_total (\d+)$", answer.read(), re.M)[1])
        self.assertTrue(wait_until(lambda: dropped() > 0), "no line is lost")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, no_limit)
        self.assertTrue(wait_until(lambda: "log_lost" in text()), "it is not told")
        self.hammer(port, 10)
        self.ends(process)
        lines = [strict(line) for line in text().splitlines()[1:]]
        lost = sum(line.get("log_lost", 0) for line in lines)
        self.assertGreater(lost, 0)
        self.assertEqual(lost + len([l for l in lines if "log_lost" not in l]), 110 + asked)


class Complaints(Logged):
    def test_no_descriptors(self):
        """Said once and then counted, also when the server stops before the time for it."""
        server = self.start()
        kept = server.connect()
        self.assertEqual(server.attend(TOY, connection=kept).status, 200)
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (server.descriptors(), before[1]))
        raws = [Raw(server) for _ in range(3)]
        server.told("cannot accept")
        self.assertTrue(wait_until(lambda: server.metric(
            "attend_log_suppressed_total", connection=kept) > 0), "it does not try again")
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        for raw in raws:
            self.assertEqual(raw.send(head_of("/healthz", method="GET")).answer().status, 200)
            raw.socket.close()
        kept.close()
        server.stop()
        said = re.findall(r'cannot accept: (.*)"', server.stderr())
        self.assertEqual(len(said), 2, said)
        self.assertRegex(said[0], "Too many open files")
        self.assertRegex(said[1], r"^\d+ more like this$")

    def test_full_house(self):
        server = self.start("--max-connections", "1")
        with Raw(server) as first:
            self.assertEqual(first.send(head_of("/healthz", method="GET")).answer().status, 200)
            seen = set()
            for _ in range(5):
                with Raw(server) as raw:
                    answer = raw.answer()
                detail = self.problem(answer, 503, "not-ready")["detail"]
                self.assertIn("all 1 (max_connections) are open", detail)
                self.assertRegex(answer.headers["x-request-id"], r"^[0-9a-f]{16}$")
                seen.add(answer.headers["x-request-id"])
            self.assertEqual(len(seen), 5)
        server.stop()
        said = re.findall(r'level=warning msg="a connection was refused: (.*)"', server.stderr())
        self.assertEqual(said, [detail, "4 more like this"])

    def test_garbage_does_not_flood_the_log(self):
        for level in ("info", "debug"):
            server = self.start("--log-level", level)
            before = len(server.stderr().splitlines())
            for _ in range(100):
                with Raw(server) as raw:
                    raw.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 garbage\r\n\r\n")
                    raw.closed()
            self.assertEqual(server.attend(TOY).status, 200)
            server.stop()
            self.assertLess(len(server.stderr().splitlines()) - before, 20)

    def test_lines_have_their_time(self):
        server = self.start()
        server.stop()
        lines = server.stderr().splitlines()
        self.assertGreater(len(lines), 2)
        for line in lines:
            self.assertRegex(line, r'^time=20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z level=\w+ msg=".*"$')

    def test_a_draining_server_names_its_refusals(self):
        server = self.start("--drain-ms", "5000")
        with Raw(server) as raw:
            raw.send(b"GET /healthz HT")
            self.assertTrue(wait_until(lambda: server.metric("attend_connections") >= 2))
            server.signal()
            answer = raw.answer()
        self.problem(answer, 503, "draining")
        self.assertRegex(answer.headers["x-request-id"], r"^[0-9a-f]{16}$")
        self.assertEqual(server.wait(), 0)


class Load(Logged):
    def test_every_line_under_load(self):
        """Eight clients at once, on several threads: no line is lost, torn or mixed with another."""
        server = self.start("--access-log", "all", "--io-threads", "3")
        sockets = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(8)]
        rounds = 60
        for number in range(rounds):
            for i, s in enumerate(sockets):
                s.sendall(head_of(PATH, len(BODY), f"X-Request-Id: load-{i}-{number}") + BODY +
                          head_of("/nowhere", None, f"X-Request-Id: none-{i}-{number}", method="GET"))
        for s in sockets:
            s.settimeout(PATIENCE)
            data = b""
            while data.count(b"HTTP/1.1 404") < rounds:
                self.assertTrue(select.select([s], [], [], PATIENCE)[0])
                data += s.recv(1 << 20)
            s.close()
        server.stop()
        names = [l["request_id"] for l in logged(server)]
        self.assertEqual(sorted(names), sorted(f"{kind}-{i}-{n}" for kind in ("load", "none")
                                               for i in range(8) for n in range(rounds)))


if __name__ == "__main__":
    unittest.main()
