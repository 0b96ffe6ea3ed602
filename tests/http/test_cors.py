"""test_cors: pages of named origins may read answers, others may not, and off is off."""
import json
import os
import shutil
import tempfile
import unittest

from support import (TOY, Case, Raw, Server, ServerCase, attend, chunked, head_of)

PAGE, OTHER, LOCAL = "https://a.example", "https://b.example:8443", "http://localhost:3000"
KEY = "0123456789-abcdefghij"
EXPOSED = {"x-request-id", "server-timing", "inference-header-content-length", "retry-after",
           "www-authenticate"}
TAKEN = {"authorization", "content-type", "accept", "x-request-id", "x-timeout-ms", "traceparent",
         "tracestate", "inference-header-content-length", "*"}
POSTS = ["/v1/attention", "/v1/models/demo/attention", "/v1/models/demo/heads",
         "/v2/models/demo/infer", "/v2/models/none/versions/1/infer"]
GETS = ["/v1/models", "/v1/models/demo", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v2",
        "/v2/health/live", "/v2/models/demo/ready"]


def words(text):
    return {word.strip().lower() for word in text.split(",")}


def ask(origin, method="POST", **more):
    return dict({"Origin": origin, "Access-Control-Request-Method": method}, **more)


class Cors(ServerCase):
    def no_cors(self, answer, varies=True):
        self.assertEqual([n for n in answer.headers if n.startswith("access-control")], [], answer)
        self.assertEqual(answer.headers.get("vary"), "Origin" if varies else None)

    def allowed(self, answer, origin=PAGE):
        self.assertEqual(answer.headers.get("access-control-allow-origin"), origin, answer)
        self.assertEqual(answer.headers.get("vary"), "Origin")
        self.assertEqual(words(answer.headers["access-control-expose-headers"]), EXPOSED)
        self.assertNotIn("access-control-allow-credentials", answer.headers)

    def preflight(self, answer, methods, origin=PAGE):
        self.assertEqual((answer.status, answer.body), (204, b""), answer)
        self.allowed(answer, origin)
        self.assertEqual(words(answer.headers["access-control-allow-methods"]), methods)
        self.assertEqual(words(answer.headers["access-control-allow-headers"]), TAKEN)
        self.assertTrue(0 < int(answer.headers["access-control-max-age"]) <= 86400)
        self.assertIn("x-request-id", answer.headers)
        self.assertNotIn("content-type", answer.headers)
        self.assertNotIn("content-length", answer.headers)


class Named(Cors):
    @classmethod
    def start(cls):
        return Server(None, "--cors-origins", f"{PAGE}, {LOCAL}", "--body-timeout-ms", "600",
                      "--max-body-bytes", "20000", "--max-items", "8")

    def test_answers(self):
        for origin in (PAGE, LOCAL):
            answer = self.server.attend(TOY, headers={"Origin": origin})
            self.ok(answer)
            self.allowed(answer, origin)
            self.assertIn("server-timing", answer.headers)
            for path in GETS:
                answer = self.server.get(path, headers={"Origin": origin})
                self.assertEqual(answer.status, 200)
                self.allowed(answer, origin)
                self.allowed(self.server.request("HEAD", path, headers={"Origin": origin}), origin)

    def test_errors(self):
        page = {"Origin": PAGE}
        for answer, status in (
                (self.server.get("/none", headers=page), 404),
                (self.server.get("/v1/models/none", headers=page), 404),
                (self.server.get("/v1/attention", headers=page), 405),
                (self.server.post("/v1/attention", b"{", page), 400),
                (self.server.post("/v2/models/demo/infer", b"{", page), 400),
                (self.server.post("/v1/attention", {"queries": [[]] * 9}, page), 413),
                (self.server.post("/v1/attention", TOY, dict(page, Accept="text/html")), 406),
                (self.server.post("/v1/attention", TOY, dict(page, **{"Content-Encoding": "x"})),
                 415),
                (self.server.post("/v1/attention", bytes(30000), page), 413)):
            self.assertEqual(answer.status, status, answer)
            self.allowed(answer)
        for fields, status in ((["Content-Length: 5", "Transfer-Encoding: chunked"], 400),
                               (["Transfer-Encoding: gzip"], 501), (["Host: two"], 400)):
            with Raw(self.server) as raw:
                raw.send(head_of("/v1/attention", None, f"Origin: {PAGE}", *fields))
                answer = raw.answer()
                self.assertEqual(answer.status, status)
                self.allowed(answer)

    def test_answers_past_libmicrohttpd(self):
        """A body without end, and one that takes too long: the request is known, and its page."""
        for origin in (PAGE, OTHER):
            check = self.allowed if origin == PAGE else lambda a: self.no_cors(a, varies=False)
            with Raw(self.server) as raw:
                raw.send(head_of("/v1/attention", None, "Transfer-Encoding: chunked",
                                 f"Origin: {origin}") + chunked(b" " * 45000, [5000]))
                answer = raw.answer()
                self.problem(answer, 413, "too-large", limit="max_body_bytes")
                check(answer)
            with Raw(self.server) as raw:
                raw.send(head_of("/v1/attention", 100, f"Origin: {origin}") + b"{")
                answer = raw.answer()
                self.problem(answer, 408, "too-slow")
                check(answer)
        with Raw(self.server) as raw:  # the page of the request before is not this one's
            raw.send(head_of("/healthz", None, f"Origin: {PAGE}", method="GET"))
            self.allowed(raw.answer())
            raw.send(head_of("/v1/attention", 100) + b"{")
            self.no_cors(raw.answer(), varies=False)

    def test_preflight(self):
        connection = self.server.connect()
        for path in POSTS:
            for more in ({}, {"Access-Control-Request-Headers": "authorization,content-type"},
                         {"Access-Control-Request-Private-Network": "true"}):
                answer = self.server.request("OPTIONS", path, headers=ask(PAGE, **more),
                                             connection=connection)
                self.preflight(answer, {"post"})
        for path in GETS:
            answer = self.server.request("OPTIONS", path, headers=ask(LOCAL, "GET"),
                                         connection=connection)
            self.preflight(answer, {"get", "head"}, LOCAL)
        self.assertEqual(self.server.attend(TOY, connection=connection).status, 200)
        connection.close()
        self.assertGreater(self.server.metric("attend_http_requests_total",
                                              'method="OPTIONS",code="204"'), 0)

    def test_what_is_no_preflight(self):
        for headers in ({}, {"Origin": PAGE}, ask(OTHER),
                        {"Access-Control-Request-Method": "POST"}):
            answer = self.server.request("OPTIONS", "/v1/attention", headers=headers)
            self.problem(answer, 405, "method-not-allowed")
            self.assertNotIn("access-control-allow-methods", answer.headers)
        self.assertEqual(self.server.request("OPTIONS", "/none", headers=ask(PAGE)).status, 404)
        self.assertEqual(self.server.request("GET", "/v1/attention", headers=ask(PAGE)).status, 405)
        self.assertEqual(self.server.request("OPTIONS", "/v1/attention", b"body",
                                             headers=ask(PAGE)).status, 405)
        with Raw(self.server) as raw:
            raw.send(head_of("/v1/attention", None, f"Origin: {PAGE}", f"Origin: {PAGE}",
                             "Access-Control-Request-Method: POST", method="OPTIONS"))
            answer = raw.answer()
            self.assertEqual(answer.status, 405)
            self.no_cors(answer)

    def test_other_origins(self):
        for origin in (OTHER, "null", "", "*", PAGE + "/", PAGE.upper(), PAGE + ":443",
                       "https://a.example.evil", "http://a.example", f"{PAGE}, {LOCAL}",
                       PAGE + "\t" + LOCAL, "https://b.example"):
            answer = self.server.attend(TOY, headers={"Origin": origin})
            self.assertEqual(answer.status, 200)
            self.no_cors(answer)
            self.no_cors(self.server.get("/none", headers={"Origin": origin}))
            self.no_cors(self.server.request("OPTIONS", "/v1/attention", headers=ask(origin)))
        self.no_cors(self.server.attend(TOY))


class Any(Cors):
    @classmethod
    def start(cls):
        return Server(None, "--cors-origins=*")

    def test_any_origin(self):
        for origin in (PAGE, "null", "chrome-extension://abc"):
            self.allowed(self.server.attend(TOY, headers={"Origin": origin}), "*")
            self.preflight(self.server.request("OPTIONS", "/v1/attention", headers=ask(origin)),
                           {"post"}, "*")
        self.no_cors(self.server.attend(TOY))


class WithKeys(Cors):
    @classmethod
    def start(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        with open(os.open(os.path.join(cls.folder, "keys"), os.O_CREAT | os.O_WRONLY, 0o600),
                  "w") as file:
            file.write(KEY)
        return Server({"api_key_file": "keys", "cors_origins": PAGE}, folder=cls.folder)

    def test_a_page_with_a_key(self):
        """As a browser goes about it: the question bears no key, the request does."""
        self.preflight(self.server.request("OPTIONS", "/v1/attention", headers=ask(
            PAGE, **{"Access-Control-Request-Headers": "authorization,content-type"})), {"post"})
        key = {"Origin": PAGE, "Authorization": f"Bearer {KEY}"}
        self.allowed(self.server.attend(TOY, headers=key))
        answer = self.server.attend(TOY, headers={"Origin": PAGE})
        self.problem(answer, 401, "unauthorized")
        self.allowed(answer)  # so that the page can tell what is wrong
        self.assertIn("www-authenticate", words(answer.headers["access-control-expose-headers"]))
        for path, origin in (("/none", PAGE), ("/v1/attention", OTHER)):
            answer = self.server.request("OPTIONS", path, headers=ask(origin))
            self.assertEqual(answer.status, 401)
            self.assertNotIn("access-control-allow-methods", answer.headers)


class Off(Cors):
    def test_nothing_is_said(self):
        for headers in ({}, {"Origin": PAGE}):
            self.no_cors(self.server.attend(TOY, headers=headers), varies=False)
            self.no_cors(self.server.get("/none", headers=headers), varies=False)
        answer = self.server.request("OPTIONS", "/v1/attention", headers=ask(PAGE))
        self.assertEqual((answer.status, answer.headers["allow"]), (405, "POST"))
        self.no_cors(answer, varies=False)


class Settings(Case):
    def test_what_is_no_list_of_origins(self):
        for value, why in ((f"{PAGE}/", "ends with a path"), ("null", "anybody can make one"),
                           (f"*,{PAGE}", "cannot be in a list"), ("a.example", "is not an origin"),
                           ("https://a.example:443", "browsers leave out")):
            for command in ("serve", "check"):
                status, out, err = attend(command, "--listen", "127.0.0.1:0", "--cors-origins",
                                          value)
                self.assertEqual((status, out), (2, b""))
                self.assertEqual(len(err.splitlines()), 1)
                self.assertIn("attend: command line: --cors-origins: ", err)
                self.assertIn(why, err)
        status, out, err = attend("check", env={"ATTEND_CORS_ORIGINS": PAGE})
        self.assertEqual((status, json.loads(out)["cors_origins"]), (0, PAGE), err)


if __name__ == "__main__":
    unittest.main()
