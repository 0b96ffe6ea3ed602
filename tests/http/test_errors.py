"""test_errors: each type of errors is explained at the path that errors name, and on the page server/docs/errors.md."""
import os
import re
import unittest

from support import ROOT, Server, ServerCase

MODELS = {"models": {"demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}}
LINE = re.compile(r"(\d{3}) /problems/([a-z-]+) ([A-Z].*)")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Errors(ServerCase):
    @classmethod
    def start(cls):
        return Server(MODELS)

    def text(self, path):
        answer = self.server.get(path)
        self.assertEqual((answer.status, answer.headers["content-type"]), (200, "text/plain; charset=utf-8"), answer)
        return answer.body.decode()

    def types(self):
        """Status and title of each type in the list of all."""
        lines = self.text("/problems").splitlines()
        found = [LINE.fullmatch(line).groups() for line in lines]
        self.assertGreater(len(found), 15)
        return {slug: (int(status), title) for status, slug, title in found}

    def test_each_type_is_explained(self):
        for slug, (status, title) in self.types().items():
            with self.subTest(slug=slug):
                text = self.text(f"/problems/{slug}")
                self.assertRegex(text, rf"\A{status} {title}\n\nCause: .+\.\nExample: .+\nRemedy: .+\.\n\Z")
                self.assertEqual(self.text(f"/problems/{slug}/"), text)
                head = self.server.request("HEAD", f"/problems/{slug}")
                self.assertEqual((head.status, head.headers["content-length"]), (200, str(len(text.encode()))))
        self.assertEqual(self.text("/problems/"), self.text("/problems"))

    def test_each_slug_of_the_server(self):
        """The table has an explanation of each slug, except of what no client gets."""
        slugs = set(re.findall(r'\{\s*\d{3}, "([a-z-]+)"', read("server", "route", "problems.c")))
        self.assertEqual(slugs - {"ok", "gone"}, set(self.types()))

    def test_what_errors_name(self):
        """The type of an error that was sent leads to its explanation."""
        for method, path, body, headers in (("POST", "/v1/attention", b"{", {}), ("POST", "/v1/attention", b"{}", {}),
                                            ("GET", "/nothing", None, {}), ("GET", "/v1/models/none", None, {}),
                                            ("GET", "/v1/attention", None, {}),
                                            ("POST", "/v1/attention", b"{}", {"Accept": "text/html"}),
                                            ("POST", "/v1/attention", b"{}", {"Content-Type": "text/plain"}),
                                            ("POST", "/v1/attention", b"{}", {"Host": "a b"})):
            error = self.server.request(method, path, body, dict({"Content-Type": "application/json"}, **headers))
            with self.subTest(error=error.json):
                self.assertEqual(self.text(error.json["type"]).splitlines()[0], f"{error.status} {error.json['title']}")

    def test_other_names(self):
        for path in ("/problems/none", "/problems/ok", "/problems/gone", "/problems/Invalid-json", "/problems/%00"):
            self.assertIn("/problems", self.problem(self.server.get(path), 404, "not-found")["detail"])
        for path in ("/problems/a/b", "/problem"):
            self.problem(self.server.get(path), 404, "not-found")
        answer = self.server.post("/problems", {})
        self.problem(answer, 405, "method-not-allowed")

    def test_the_page(self):
        rows = re.findall(r"(?m)^\| (\d{3}) \| `([a-z-]+)` \|", read("server", "docs", "errors.md"))
        self.assertEqual({slug: int(status) for status, slug in rows},
                         {slug: status for slug, (status, _) in self.types().items()})
        self.assertEqual(len(rows), len(self.types()))


if __name__ == "__main__":
    unittest.main()
