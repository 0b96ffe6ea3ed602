"""test_page: the page at /: its head, its two forms, and what may run in it."""
import base64
import glob
import gzip
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import (BIN, PATIENCE, ROOT, TOY, Case, Raw, Server, ServerCase, attend, head_of,
                     wait_until)

MOST = 80000  # bytes of the page as browsers get it
PACK = os.path.join(ROOT, "server", "page", "pack")
PAGE = "https://a.example"
KEY = "0123456789-abcdefghij"
ALWAYS = {"vary": "Accept-Encoding", "cache-control": "no-cache",
          "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
          "cross-origin-opener-policy": "same-origin",
          "cross-origin-resource-policy": "same-origin"}
OF_200 = {"content-type": "text/html; charset=utf-8"}


def source_of(text, name):
    """The policy's word for the page's element of this name."""
    found = re.findall(rf"<{name}>(.*?)</{name}>".encode(), text, re.S)
    digest = hashlib.sha256(found[0]).digest()
    return f"{name}-src 'sha256-{base64.b64encode(digest).decode()}'"


def policy_of(text):
    return "; ".join(["default-src 'none'", source_of(text, "script"), source_of(text, "style"),
                      "connect-src 'self'", "img-src blob: data:", "base-uri 'none'",
                      "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
                      "frame-ancestors 'none'"])


def asks(coding):
    return {"Accept-Encoding": coding}


class Page(ServerCase):
    """The page of a server that is set up as it comes."""

    def page(self, coding=None, method="GET", **headers):
        """The answer, with a request that says nothing but this of codings."""
        with Raw(self.server) as raw:
            fields = [f"Accept-Encoding: {coding}"] if coding is not None else []
            fields += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            raw.send(head_of("/", None, *fields, "Connection: close", method=method))
            answer = raw.answer(head=True)
            raw.closed()
            answer.body = bytes(raw.data)
            return answer

    def says(self, answer, fields):
        self.assertEqual({name: answer.headers.get(name) for name in fields}, fields)

    def test_the_head(self):
        plain, packed = self.page(), self.page("gzip")
        policy = policy_of(plain.body)
        for answer in (plain, packed):
            self.assertEqual(answer.status, 200)
            self.says(answer, dict(ALWAYS, **OF_200))
            self.assertEqual(answer.headers["content-security-policy"], policy)
            self.assertEqual(int(answer.headers["content-length"]), len(answer.body))
            self.assertRegex(answer.headers["etag"], r'\A"[!#-~]+"\Z')
            self.assertIn("x-request-id", answer.headers)
            self.assertNotIn("www-authenticate", answer.headers)
        self.assertNotIn("content-encoding", plain.headers)
        self.assertEqual(packed.headers["content-encoding"], "gzip")
        self.assertNotEqual(plain.headers["etag"], packed.headers["etag"])

    def test_both_forms_are_the_same_text(self):
        plain, packed = self.page().body, self.page("gzip").body
        self.assertEqual(gzip.decompress(packed), plain)
        self.assertLess(len(packed), MOST)
        self.assertLess(len(packed), len(plain))
        self.assertTrue(plain.startswith(b"<!doctype html>"))
        self.assertTrue(plain.rstrip().endswith((b"</html>", b"</script>")))  # minify leaves the first one out
        plain.decode("utf-8")

    def test_it_is_whole(self):
        """One style, one script, and nothing that would have to be fetched or would not run."""
        text = self.page().body.decode()
        self.assertEqual((text.count("</style>"), text.count("</script>")), (1, 1))
        markup = re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S)
        self.assertNotRegex(markup, r"(?i)<(script|style|iframe|object|embed|base)\b|stylesheet")
        self.assertNotRegex(markup, r"(?i)\s(on\w+|style|src)\s*=")
        self.assertTrue(text.split("<script>")[1].startswith('"use strict";'))

    def test_codings(self):
        for coding, packed in (("gzip, deflate, br", True), ("GZIP;q=0.5", True), ("*", True),
                               ("x-gzip", True), ("identity;q=0, gzip;q=0.2", True), ("", False),
                               ("br", False), ("gzip;q=0", False), ("gzip;q=0, *", False),
                               ("gzip;q=0.1, identity;q=0.2", False), ("*;q=0", False),
                               ("identity;q=0, gzip;q=0", False)):
            with self.subTest(coding=coding):
                answer = self.page(coding)
                self.assertEqual(answer.headers.get("content-encoding"), "gzip" if packed else None)
                self.says(answer, ALWAYS)
        with Raw(self.server) as raw:  # fields combine
            raw.send(head_of("/", None, "Accept-Encoding: br", "Accept-Encoding: gzip",
                             method="GET"))
            self.assertEqual(raw.answer().headers["content-encoding"], "gzip")

    def test_who_has_it_is_told_so(self):
        plain, packed = self.page(), self.page("gzip")
        tags = [plain.headers["etag"], packed.headers["etag"]]
        for coding, whole in ((None, plain), ("gzip", packed)):
            tag = whole.headers["etag"]
            for known in (tag, ", ".join(tags), "W/" + tag, f'"x", "y,z",W/{tag}', "*"):
                for method in ("GET", "HEAD"):
                    with self.subTest(coding=coding, known=known, method=method):
                        answer = self.page(coding, method, If_None_Match=known)
                        self.assertEqual((answer.status, answer.body), (304, b""), answer)
                        self.says(answer, {name: whole.headers[name] for name in
                                           ("etag", "vary", "cache-control",
                                            "content-security-policy")})
                        self.assertNotIn("content-type", answer.headers)
                        self.assertNotIn("content-encoding", answer.headers)
                        self.assertEqual(answer.headers.get("content-length"),
                                         whole.headers["content-length"])
            # Who has the other form alone cannot use this one's: RFC 9110, 13.1.2.
            other_form = next(t for t in tags if t != tag)
            for other in (other_form, "W/" + other_form, '"x"', tag.strip('"'), tag[:-2] + '"', "",
                          "W/"):
                answer = self.page(coding, If_None_Match=other)
                self.assertEqual((answer.status, answer.body), (200, whole.body))
        with Raw(self.server) as raw:  # fields combine, and the connection goes on
            raw.send(head_of("/", None, 'If-None-Match: "x"', f"If-None-Match: {tags[0]}",
                             'If-None-Match: "y"', method="GET") +
                     head_of("/healthz", None, method="GET"))
            self.assertEqual(raw.answer(head=True).status, 304)
            self.assertEqual(raw.answer().json, {"status": "ok"})
        answer = self.server.get("/healthz", headers={"If-None-Match": "*"})
        self.assertEqual((answer.status, answer.json), (200, {"status": "ok"}))

    def test_head(self):
        for coding in (None, "gzip"):
            whole, head = self.page(coding), self.page(coding, "HEAD")
            self.assertEqual((head.status, head.body), (200, b""))
            for answer in (whole, head):
                del answer.headers["x-request-id"], answer.headers["date"]
            self.assertEqual(head.headers, whole.headers)

    def test_paths_and_methods(self):
        whole = self.page().body
        for target in ("/?", "/?model=a/b", "http://x", "http://x/", "HTTPS://x:80?y"):
            with Raw(self.server) as raw:
                raw.send(head_of(target, method="GET"))
                answer = raw.answer()
                self.assertEqual((answer.status, answer.body), (200, whole), target)
        for target in ("//", "/index.html", "/%00", "/.", "/page.css", "http://x//"):
            with Raw(self.server) as raw:
                raw.send(head_of(target, method="GET"))
                self.problem(raw.answer(), 404, "not-found")
        for target in ("/#", "/?model=a/b#c", "*"):
            with Raw(self.server) as raw:
                raw.send(head_of(target, method="GET"))
                self.problem(raw.answer(), 400, "bad-framing")
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            answer = self.server.request(method, "/", b"{}")
            self.problem(answer, 405, "method-not-allowed")
            self.assertEqual(answer.headers["allow"], "GET, HEAD")

    def test_how_it_is_counted(self):
        def counted():
            """The codes; a request is counted a little later than its connection is closed."""
            text = self.server.get("/metrics").body.decode()
            return set(re.findall(r'requests_total{route="/",method="GET",code="(\w+)"}', text))

        self.page()
        self.page(If_None_Match="*")
        self.assertTrue(wait_until(lambda: counted() == {"200", "304"}), counted())


class Doors(Case):
    """Where it is, and where it is not."""

    def start(self, *args, **options):
        server = Server(*args, **options)
        self.addCleanup(server.kill)
        return server

    def test_off(self):
        for args, options in ((({"page": False},), {}), ((None, "--page", "off"), {}),
                              ((None, "--page=false"), {}),
                              ((None,), {"env": {"ATTEND_PAGE": "off"}})):
            server = self.start(*args, **options)
            none = self.problem(server.get("/none"), 404, "not-found")
            for headers in ({}, {"If-None-Match": "*"}):
                self.assertEqual(self.problem(server.get("/", headers=headers), 404, "not-found"),
                                 none)
            self.problem(server.request("POST", "/", b"{}"), 404, "not-found")
            self.ok(server.attend(TOY))
            self.assertNotIn('route="/"', server.get("/metrics").body.decode())
            server.stop()
        status, out, _ = attend("check", "--page", "perhaps")
        self.assertEqual((status, out), (2, b""))

    def test_keys(self):
        """The page is open: it asks for the key that all else needs."""
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.open(os.path.join(folder, "keys"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(KEY)
        server = self.start({"api_key_file": "keys"}, folder=folder)
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {KEY}"}):
            self.assertEqual(server.get("/", headers=headers).status, 200)
        self.assertEqual(server.request("POST", "/", b"{}").status, 405)
        for path in ("/none", "/index.html", "/v1/models", "/openapi.json", "/metrics"):
            self.problem(server.get(path), 401, "unauthorized")
        server.stop()
        server = self.start({"api_key_file": "keys", "page": False}, folder=folder)
        self.problem(server.get("/"), 401, "unauthorized")  # as any path that there is not
        server.stop()

    def test_the_admin_address(self):
        server = self.start(None, "--admin-listen", "127.0.0.1:0")
        for method in ("GET", "HEAD", "POST"):
            self.assertEqual(server.ask_admin("/", method).status, 404)
        self.assertEqual(server.get("/").status, 200)
        server.stop()

    def test_pages_of_other_origins(self):
        server = self.start(None, "--cors-origins", PAGE)
        with Raw(server) as raw:
            raw.send(head_of("/", None, f"Origin: {PAGE}", "Accept-Encoding: gzip", method="GET"))
            while b"\r\n\r\n" not in raw.data:
                self.assertTrue(raw.more())
            head = bytes(raw.data).split(b"\r\n\r\n")[0].split(b"\r\n")
            self.assertEqual([line for line in head if line.startswith(b"Vary: ")],
                             [b"Vary: Origin", b"Vary: Accept-Encoding"])
            self.assertIn(f"Access-Control-Allow-Origin: {PAGE}".encode(), head)
        answer = server.request("OPTIONS", "/", headers={
            "Origin": PAGE, "Access-Control-Request-Method": "GET"})
        self.assertEqual((answer.status, answer.headers["access-control-allow-methods"]),
                         (204, "GET, HEAD"))
        server.stop()

    def test_while_it_drains(self):
        """Open as long as the server is, which closes each connection behind its answer."""
        server = self.start(None, "--drain-delay-ms", str(2000 * PATIENCE))
        server.signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: server.get("/readyz").status == 503))
        answer = server.get("/")
        self.assertEqual((answer.status, answer.headers["connection"]), (200, "close"))
        server.signal(signal.SIGTERM)  # the second one ends the delay, and the server
        self.assertEqual(server.wait(), 128 + signal.SIGTERM)

    def test_the_access_log(self):
        server = self.start(None, "--access-log", "all")
        size = len(server.get("/").body)
        self.assertEqual(server.get("/", headers={"If-None-Match": "*"}).status, 304)
        server.stop()
        lines = [line for line in server.lines if '"route":"/"' in line]
        told = [(int(re.search(r'"status":(\d+)', line).group(1)),
                 int(re.search(r'"bytes_out":(\d+)', line).group(1))) for line in lines]
        self.assertEqual(sorted(told), [(200, size), (304, 0)])


class Packing(Case):
    """How the page is put together."""

    def test_who_changes_a_part_builds_the_program_anew(self):
        """By what make itself says that it knows: the parts, then the page, then who holds it."""
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MODE")}
        said = subprocess.run(["make", "-pn", "MODE=release", "build/release/attend"], cwd=ROOT,
                              env=env, stdout=subprocess.PIPE, check=True).stdout.decode()
        needs = dict(re.findall(r"^(build/release/server/\S+): (.*)$", said, re.M))
        page = "build/release/server/page/page.html"
        self.assertIn(page, needs["build/release/server/describe/page.o"].split())
        self.assertIn(page + ".gz", needs["build/release/server/describe/page.o"].split())
        self.assertIn(page, needs[page + ".gz"].split())
        parts = {os.path.relpath(path, ROOT) for depth in ("*", "*/*")
                 for path in glob.glob(os.path.join(ROOT, "server", "page", depth))}
        self.assertEqual(set(needs[page].split("|")[0].split()), parts)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def pack(self, **files):
        for name, text in files.items():
            with open(os.path.join(self.folder, name.replace("_", ".")), "w") as file:
                file.write(text)
        done = subprocess.run([PACK, os.path.join(self.folder, "index.html")], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    INDEX = """<!-- index: a page. -->
<!doctype html>
  <link rel="stylesheet" href="a.css">
  <script src="b.js" defer></script>
<title>t</title>
  <link rel="stylesheet" href="b.css">
<script src="a.js" defer></script>
<body>
  <p>text</p>
</body>
"""

    def test_all_becomes_one(self):
        parts = {"index_html": self.INDEX, "a_css": "/* a: x */\n\np {\n  top: 0; /* y */\n}\n",
                 "b_css": "q { left: 1px }", "b_js": "// b: x\n\nconst B = f();\n  // why\n\t  B(B); // and\n",
                 "a_js": "const A = 'a&/*; const c = 1';"}
        expected = (r"""<!doctype html><style>p{top:0}q{left:1px}\s*</style>\s*<title>t</title><p>text</p>"""
                    r"""<script>"use strict";let B=f\(\);B\(B\);\s*let A="a&/\*; const c = 1";\s*</script>\s*""")
        status, out, err = self.pack(**parts)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, rf"\A{expected}\Z")

    def test_what_cannot_be_packed(self):
        good = {"index_html": self.INDEX, "a_css": "", "b_css": "q { }", "a_js": "1;", "b_js": "2;"}
        self.assertEqual(self.pack(**good)[0], 0)
        for change, why in (({"a_js": "'</SCRIPT'"}, "a.js has"), ({"b_css": "</style"}, "b.css has"),
                            ({"b_js": "'<!--'"}, "b.js has"),
                            ({"index_html": self.INDEX + "<script>1</script>"}, "no line that names"),
                            ({"index_html": self.INDEX.replace("defer", "async")}, "no line that"),
                            ({"index_html": self.INDEX.replace("</body>", "")}, "no </body>"),
                            ({"index_html": "<p>\n</body>\n"}, "no stylesheet"),
                            ({"index_html": self.INDEX.replace("b.js", "c.js")}, "c.js is missing")):
            with self.subTest(change=change):
                status, out, err = self.pack(**dict(good, **change))
                self.assertEqual((status, out), (1, ""))
                self.assertRegex(err, rf"\Apack: .*{why}.*\n\Z")

    def test_what_is_no_program(self):
        good = {"index_html": self.INDEX, "a_css": "", "b_css": "q { }", "a_js": "1;", "b_js": "2 +;"}
        status, _, err = self.pack(**good)
        self.assertEqual(status, 1)
        self.assertRegex(err, r"unexpected .*\n(.*\n)*pack: .*b.js cannot be made short\n")

    def test_a_carriage_return(self):
        good = {"index_html": self.INDEX, "a_css": "", "b_css": "q { }", "a_js": "1;", "b_js": "f('\\r');"}
        status, _, err = self.pack(**good)
        self.assertEqual((status, err), (1, "pack: a carriage return stands in a script\n"))

    def test_the_program_has_what_is_packed(self):
        done = subprocess.run([PACK, os.path.join(ROOT, "server", "page", "index.html")],
                              check=True, stdout=subprocess.PIPE)
        with open(BIN, "rb") as file:
            self.assertTrue(done.stdout in file.read(), "the page in the program is another one")


if __name__ == "__main__":
    unittest.main()
