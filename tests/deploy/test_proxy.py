"""test_proxy: docker/nginx.conf before a real attend: the same bytes, attend's own refusals.

Needs nginx, openssl, and a curl that speaks HTTP/2."""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from needs import needs
from support import (PATIENCE, TOY, Case, Raw, Server, clean_environment,
                     head_of, safetensors_bytes, wait_until)
from test_nginx_conf import CONF, conf_text

NAME = "attend.example"
SAFETENSORS = {"Content-Type": "application/x-safetensors"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx:
    """nginx with our configuration, but for where things are."""

    def __init__(self, backend, change=()):
        """`backend` is a port; `change` are further replacements, (what, by what)."""
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        os.chmod(self.folder, 0o755)  # started by root, its workers are somebody else
        self.certify()
        self.log = open(os.path.join(self.folder, "log"), "w+")
        for _ in range(5):  # somebody may have taken the port in the meantime
            self.port = free_port()
            self.write(backend, change)
            self.process = subprocess.Popen(
                ["nginx", "-e", "stderr", "-p", self.folder, "-c", self.path, "-g", "daemon off;"],
                stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=clean_environment())
            if wait_until(lambda: self.process.poll() is not None or self.listens()):
                if self.process.poll() is None:
                    return
        raise AssertionError(self.said())

    def certify(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout",
                        os.path.join(self.folder, "tls.key"), "-out",
                        os.path.join(self.folder, "tls.crt")],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def write(self, backend, change):
        text = conf_text()
        for what, by in (("listen 443 ", f"listen 127.0.0.1:{self.port} "),
                         ("server 127.0.0.1:8080 ", f"server 127.0.0.1:{backend} "),
                         ("/etc/nginx/tls/", self.folder + "/"), ("/tmp/nginx-", self.folder + "/nginx-"),
                         ("/run/nginx", self.folder + "/nginx"),
                         ("/var/log/nginx/", self.folder + "/"), *change):
            if what not in text:
                raise AssertionError(f"{what} is not in {CONF}")
            text = text.replace(what, by)
        self.path = os.path.join(self.folder, "nginx.conf")
        with open(self.path, "w") as file:
            file.write(text)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def said(self):
        with open(os.path.join(self.folder, "log")) as file:
            return file.read()

    def stored(self):
        """Files that it has written for bodies and answers."""
        return [name for part in ("body", "proxy")
                for _, _, names in os.walk(os.path.join(self.folder, "nginx-" + part))
                for name in names]

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def context(self):
        return ssl.create_default_context(cafile=os.path.join(self.folder, "tls.crt"))

    def curl(self, path, *args, data=None, http="--http2"):
        """(status, version of HTTP, headers as text, body)."""
        out = os.path.join(self.folder, f"out-{threading.get_ident()}")
        words = ["curl", "-sS", http, "--cacert", os.path.join(self.folder, "tls.crt"), "--resolve",
                 f"{NAME}:{self.port}:127.0.0.1", "-D", out + ".head", "-o", out, "-w",
                 "%{http_code} %{http_version}", "--max-time", str(PATIENCE), *args]
        if data is not None:
            words += ["--data-binary", "@-"]
        done = subprocess.run(words + [f"https://{NAME}:{self.port}{path}"], input=data,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise AssertionError(f"curl: {done.returncode} {done.stderr}\n{self.said()}")
        status, version = done.stdout.decode().split()
        with open(out, "rb") as body, open(out + ".head") as head:
            return int(status), version, head.read().lower(), body.read()

    def raw(self, name=NAME):
        """A TLS connection, to be spoken to in HTTP/1.1."""
        plain = Raw(self)
        plain.socket = self.context().wrap_socket(plain.socket, server_hostname=name)
        return plain


def post_head(path, *fields):
    return head_of(path, None, *fields).replace(b"Host: test", b"Host: " + NAME.encode())


@needs("deploy", "nginx", "openssl")
class Proxy(Case):
    def nginx(self, server, *change):
        proxy = Nginx(server.port, change)
        self.addCleanup(proxy.stop)
        return proxy

    def pair(self, *args, config=None, folder=None, change=()):
        server = Server(config, *args, folder=folder)
        self.addCleanup(server.kill)
        return server, self.nginx(server, *change)

    def ends(self, server, proxy):
        """Nothing went wrong that nobody looked at, and nothing was stored."""
        self.assertEqual(proxy.stored(), [])
        self.assertNotRegex(proxy.said(), r"\[(alert|emerg|crit)\]")
        proxy.stop()
        server.stop()


class Same(Proxy):
    def test_the_same_bytes(self):
        server, proxy = self.pair()
        body = json.dumps(TOY).encode()
        tensors = safetensors_bytes({"queries": ([1, 2, 4], [1, 0, 0, 1, 0, 1, 1, 0])})
        v2 = json.dumps({"inputs": [{"name": "queries", "datatype": "FP32", "shape": [1, 1, 4],
                                     "data": [1, 2, 3, 4]}]}).encode()
        bad = b"{\"queries\": 1}"
        for path, data, headers in (("/v1/attention", body, {}),
                                    ("/v1/attention?x=%2F%41", body, {}),
                                    ("/v1/attention", body, {"Accept": "application/x-safetensors"}),
                                    ("/v1/attention", tensors, SAFETENSORS),
                                    ("/v2/models/demo/infer", v2, {}),
                                    ("/v1/attention", bad, {}), ("/v2/models/no/infer", v2, {})):
            direct = server.post(path, data, headers)
            words = [w for name, value in dict({"Content-Type": "application/json"},
                                               **headers).items() for w in ("-H", f"{name}: {value}")]
            for http_version, flag in (("2", "--http2"), ("1.1", "--http1.1")):
                for more in ((), ("-H", "Transfer-Encoding: chunked")):
                    status, version, head, answer = proxy.curl(
                        path, *words, "-H", "X-Request-Id: mine", *more, data=data, http=flag)
                    self.assertEqual((status, version, answer),
                                     (direct.status, http_version, direct.body))
                    self.assertIn(f"content-type: {direct.headers['content-type']}\n", head)
                    self.assertIn("x-request-id: mine\n", head)
                    self.assertEqual("server-timing" in head, direct.status == 200)
        for path in ("/v2/health/ready", "/openapi.json", "/v1/models", "/v1//models",
                     "/v1/models/%64emo", "/none"):
            direct = server.get(path)
            self.assertEqual(proxy.curl(path)[::3], (direct.status, direct.body), path)
        self.ends(server, proxy)

    def test_the_page(self):
        """Its head comes through, in either form, and who has it is told so."""
        server, proxy = self.pair()
        for coding in ("identity", "gzip"):
            direct = server.get("/", headers={"Accept-Encoding": coding})
            words = ("-H", f"Accept-Encoding: {coding}")
            status, _, head, answer = proxy.curl("/", *words)
            self.assertEqual((status, answer), (200, direct.body))
            for name in ("etag", "vary", "content-security-policy", "x-content-type-options"):
                self.assertIn(f"{name}: {direct.headers[name]}\n".lower(), head)
            self.assertEqual("content-encoding: gzip\n" in head, coding == "gzip")
            known = ("-H", f"If-None-Match: {direct.headers['etag']}")
            self.assertEqual(proxy.curl("/", *words, *known)[0], 304)
        self.ends(server, proxy)

    def test_large_bodies_both_ways(self):
        """And nothing of them is stored on the way."""
        rows = 200000
        server, proxy = self.pair()
        numbers = [(i * 37 % 1000) / 500 - 1 for i in range(rows * 4)]
        tensors = safetensors_bytes({"queries": ([1, rows, 4], numbers),
                                     "keys": ([1, 1, 4], [1] * 4), "values": ([1, 1, 4], [1] * 4)})
        text = json.dumps({"queries": [[numbers[i:i + 4] for i in range(0, rows * 4, 4)]],
                           "keys": [[[1, 1, 1, 1]]], "values": [[[1, 1, 1, 1]]]}).encode()
        for data, headers in ((tensors, dict(SAFETENSORS, Accept="application/json")), (text, {})):
            direct = server.post("/v1/attention", data, headers)
            self.assertEqual(direct.status, 200)
            self.assertGreater(len(direct.body), rows * 20)
            words = [w for name, value in dict({"Content-Type": "application/json"},
                                               **headers).items() for w in ("-H", f"{name}: {value}")]
            for flag in ("--http2", "--http1.1"):
                status, _, _, answer = proxy.curl("/v1/attention", *words, data=data, http=flag)
                self.assertEqual((status, answer == direct.body), (200, True))
        self.ends(server, proxy)

    def test_expect_continue(self):
        server, proxy = self.pair()
        body = json.dumps(TOY).encode()
        with proxy.raw() as raw:
            raw.send(post_head("/v1/attention", f"Content-Length: {len(body)}",
                               "Expect: 100-continue"))
            self.assertEqual(raw.answer().status, 100)
            raw.send(body)
            self.assertEqual(raw.answer().body, server.attend(TOY).body)
        self.ends(server, proxy)

    def test_many_at_once(self):
        server, proxy = self.pair()
        right, body = server.attend(TOY).body, json.dumps(TOY).encode()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(proxy.curl, "/v1/attention", "-H", "Content-Type: application/json",
                                data=body) for _ in range(24)]
            for job in jobs:
                self.assertEqual(job.result()[::3], (200, right))
        self.ends(server, proxy)


class Backend:
    """In attend's place: keeps what it is sent."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heads, self.connections = [], 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as file:
            while True:
                lines = []
                while (line := file.readline()) not in (b"\r\n", b""):
                    lines.append(line.decode("latin-1").strip())
                if not lines:
                    return
                fields = dict((n.lower(), v) for n, v in (l.split(": ", 1) for l in lines[1:]))
                file.read(int(fields.get("content-length", 0)))
                self.heads.append((lines[0], fields))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


class Passed(Proxy):
    def test_what_attend_gets(self):
        backend = Backend()
        self.addCleanup(backend.listener.close)
        proxy = self.nginx(backend)
        sent = {"authorization": "Bearer 0123456789-abcdef", "x-request-id": "mine",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "tracestate": "a=b", "x-timeout-ms": "70", "origin": "https://a.example",
                "inference-header-content-length": "7", "accept": "application/x-safetensors",
                "content-type": "application/json", "user-agent": "me"}
        words = [w for name, value in sent.items() for w in ("-H", f"{name}: {value}")]
        path = "/v1/models/a%2Fb/attention?q=%20"
        for flag in ("--http2", "--http1.1"):
            for _ in range(5):
                self.assertEqual(proxy.curl(path, *words, "-H", "Expect: 100-continue",
                                            data=b"{}", http=flag)[3], b"ok")
        self.assertEqual(len(backend.heads), 10)
        for line, fields in backend.heads:
            self.assertEqual(line, f"POST {path} HTTP/1.1")
            self.assertEqual(fields, dict(sent, host=NAME, **{"content-length": "2"}))
        self.assertLessEqual(backend.connections, 2)  # kept: at most one of each process
        proxy.stop()


class Refused(Proxy):
    def test_early_refusals_are_read(self):
        """Of bodies that are still being sent: attend has answered and stops reading."""
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.open(os.path.join(folder, "keys"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write("0123456789-abcdefghij")
        server, proxy = self.pair("--max-body-bytes", "1000000", folder=folder,
                                  config={"api_key_file": "keys"})
        key = ("-H", "Authorization: Bearer 0123456789-abcdefghij")
        data = b" " * 4000000
        for flag in ("--http2", "--http1.1"):
            for words, status, slug in (((), 401, "unauthorized"), (key, 413, "too-large")):
                got, _, head, body = proxy.curl("/v1/attention", *words, "-H", "Expect:", data=data,
                                                http=flag)
                self.assertEqual((got, json.loads(body)["type"]), (status, f"/problems/{slug}"))
                self.assertEqual("www-authenticate: bearer\n" in head, status == 401)
        self.assertEqual(proxy.curl("/v1/attention", *key, data=json.dumps(TOY).encode())[0], 415)
        self.assertEqual(proxy.curl("/v1/models", *key)[0], 200)
        self.assertEqual(proxy.curl("/v1/models")[0], 401)
        with proxy.raw() as raw:  # larger than even nginx lets through
            raw.send(post_head("/v1/attention", f"Content-Length: {258 << 20}"))
            self.assertEqual(raw.answer().status, 413)
        self.ends(server, proxy)

    def test_slow_bodies_end_at_attends_deadline(self):
        server, proxy = self.pair("--body-timeout-ms", "800")
        with proxy.raw() as raw, proxy.raw() as silent:
            for each in (raw, silent):
                each.send(post_head("/v1/attention", "Content-Length: 5000"))
            for _ in range(3):
                raw.send(b" ")
                time.sleep(0.1)
            for each in (silent, raw):
                self.problem(each.answer(), 408, "too-slow")
        self.ends(server, proxy)

    def test_slow_readers_end_at_attends_deadline(self):
        server, proxy = self.pair("--answer-timeout-ms", "600")
        rows = 400000
        tensors = safetensors_bytes({"queries": ([1, rows, 4], [0.123456789] * (4 * rows)),
                                     "keys": ([1, 1, 4], [1] * 4),
                                     "values": ([1, 1, 4], [0.7654321] * 4)})
        with proxy.raw() as raw:
            raw.send(post_head("/v1/attention", f"Content-Length: {len(tensors)}",
                               "Accept: application/json")
                     .replace(b"application/json", b"application/x-safetensors", 1) + tensors)
            raw.data += raw.socket.recv(100)
            self.assertIn(b" 200 ", raw.data)
            self.assertTrue(wait_until(lambda: server.metric("attend_rejected_total",
                                                             'reason="slow_reader"') == 1))
            length = int(re.search(rb"Content-Length: (\d+)", raw.data + raw.socket.recv(2000))
                         .group(1))
            self.assertTrue(raw.closed())
            self.assertLess(len(raw.data), length)
        self.assertEqual(server.get("/healthz").status, 200)
        self.ends(server, proxy)

    def test_other_names_and_the_inside(self):
        server, proxy = self.pair()
        with self.assertRaises(ssl.SSLError):
            proxy.raw("other.example")
        with proxy.raw() as raw:
            raw.send(b"GET /v1/models HTTP/1.1\r\nHost: other.example\r\n\r\n")
            self.assertEqual(raw.answer().status, 421)
        self.assertEqual(proxy.curl("/v1/models")[0], 200)
        for path in ("/metrics", "/metrics?x", "/%6detrics", "//metrics", "/healthz", "/readyz", "/health", "/ping"):
            status, _, head, body = proxy.curl(path)
            self.assertEqual((status, json.loads(body)["status"]), (404, 404), path)
            self.assertIn("content-type: application/problem+json", head)
        with Raw(proxy) as raw:  # without TLS
            raw.send(head_of("/v1/attention", 2) + b"{}")
            self.assertEqual(raw.answer().status, 400)
        old = proxy.context()
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.subTest("TLS 1.1"), self.assertRaises((ssl.SSLError, OSError)):
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
            with socket.create_connection(("127.0.0.1", proxy.port), 10) as plain:
                old.wrap_socket(plain, server_hostname=NAME)
        said = server.get("/metrics").body.decode()
        self.assertIn('attend_http_requests_total{route="/v1/models"', said)
        for route in ("metrics", "healthz", "readyz"):
            self.assertNotIn(f'attend_http_requests_total{{route="/{route}"', said)
        self.ends(server, proxy)

    def test_who_asked_is_logged(self):
        server, proxy = self.pair("--access-log", "all")
        own = proxy.curl("/v1/models", "-H", "X-Request-Id: of-the-client")
        self.assertIn("x-request-id: of-the-client\n", own[2])
        given = [re.search(r"x-request-id: (\w+)", proxy.curl("/v1/models")[2]).group(1)
                 for _ in range(2)]
        self.assertNotEqual(*given)
        path = os.path.join(proxy.folder, "access.log")

        def logged():
            with open(path) as file:
                return [json.loads(line) for line in file.read().splitlines()]

        self.assertTrue(wait_until(lambda: len(logged()) == 3))
        for line, name in zip(logged(), ["of-the-client", *given]):
            self.assertEqual((line["client"], line["request_id"], line["method"], line["status"]),
                             ("127.0.0.1", name, "GET", 200))
        self.ends(server, proxy)

    def test_one_address_has_so_many_connections(self):
        server, proxy = self.pair(change=[("limit_conn clients 128;", "limit_conn clients 1;")])
        body = json.dumps(TOY).encode()
        with proxy.raw() as raw:
            # The proxy asks for the body once the connection counts. A second one that came sooner
            # could be the one that counts.
            raw.send(post_head("/v1/attention", f"Content-Length: {len(body)}",
                               "Expect: 100-continue"))
            self.assertEqual(raw.answer().status, 100)
            self.assertEqual(proxy.curl("/v1/models")[0], 429)
            raw.send(body)
            self.assertEqual(raw.answer().status, 200)
        self.assertTrue(wait_until(lambda: proxy.curl("/v1/models")[0] == 200))
        self.ends(server, proxy)

    def test_attend_is_down(self):
        server, proxy = self.pair()
        server.stop()
        self.assertEqual(proxy.curl("/v1/models")[0], 502)
        proxy.stop()


if __name__ == "__main__":
    unittest.main()
