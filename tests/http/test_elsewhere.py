"""test_elsewhere: paths that clients of other services ask for and that are not here: each says what there is instead, in
the form that its client shows; and errors of known paths below /v1 have OpenAI's member, too."""
import os
import re
import unittest

from support import ROOT, Server, ServerCase

MODELS = {"models": {"demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}}
with open(os.path.join(ROOT, "server", "route", "elsewhere.c"), encoding="utf-8") as source:
    TABLE = re.findall(r'\{"(/[^"]+)", ERROR_(\w+),', source.read())


class Elsewhere(ServerCase):
    @classmethod
    def start(cls):
        return Server(MODELS)

    def sentence(self, answer, form):
        """What the clients of this form show."""
        if form == "TEI":
            return answer.json["error"]
        return answer.json["message"] if form == "COHERE" else answer.json["error"]["message"]

    def test_each_path_in_its_form(self):
        self.assertGreater(len(TABLE), 20)
        for path, form in TABLE:
            for more in ("/a", "/a/b?c=d") if path == "/v1/chat/completions" else ("", "/", "/a/b?c=d", "?a=b"):
                for method in ("GET", "POST", "DELETE"):
                    with self.subTest(path=path + more, method=method):
                        answer = self.server.request(method, path + more, b"{}" if method == "POST" else None)
                        self.assertEqual((answer.status, answer.headers["content-type"]), (404, "application/json"), answer)
                        self.assertRegex(self.sentence(answer, form), r"(GET|POST) /|images")
                        self.assertEqual("message" in answer.json, form == "COHERE")

    def test_what_only_begins_alike(self):
        for path in ("/v1/chats", "/v1/embedder", "/apis", "/v1/chatty/completions"):
            answer = self.server.post(path, {})
            self.problem(answer, 404, "not-found")
            self.assertEqual("error" in answer.json, path.startswith("/v1/"))

    def test_openais_member_beside_a_problem(self):
        for path, body, code, param in (
                ("/v1/models/none", None, "model_not_found", None), ("/v1/nothing", None, "not_found", None),
                ("/v1/models/demo/attention", {"queries": [[1]]}, "invalid_request", "queries[0]"),
                ("/v1/models/demo/encode", {}, "not_found", None)):
            with self.subTest(path=path):
                answer = self.server.get(path) if body is None else self.server.post(path, body)
                error = answer.json["error"]
                self.assertEqual(list(error), ["message", "type", "param", "code"])
                self.assertEqual((error["code"], error["param"]), (code, param), answer)
                self.assertEqual(error["message"], answer.json["detail"])
                self.assertEqual(answer.headers["content-type"], "application/problem+json")
        self.assertIn("demo", self.server.get("/v1/models/none").json["error"]["message"])
        self.assertNotIn("error", self.server.get("/nothing").json)

    def test_a_slash_at_the_end(self):
        for path in ("/v1/models", "/v1/models/demo", "/v2", "/v2/models/demo/ready"):
            first, second = (self.server.get(path + end) for end in ("", "/"))
            self.assertEqual((first.status, first.body), (200, second.body))
        answer = self.server.post("/v1/models/demo/attention/?a=b", {"queries": [[1, 2, 3, 4]]})
        self.assertEqual(answer.status, 200)


if __name__ == "__main__":
    unittest.main()
