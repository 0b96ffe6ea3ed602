"""test_names: models whose names have two parts, as those of Hugging Face's hub: plain and encoded in paths, in bodies, in
lists, in the log; and paths below a model that are none. Aliases, and one definition under two names."""
import json
import os
import shutil
import signal
import tempfile
import threading
import unittest
import urllib.parse

from support import Case, Server, ServerCase, attend, resident, wait_until
from test_openai import RANDOM, SIZES

NAME = "BAAI/bge-small-en-v1.5"
LONGEST = "a" * 96 + "/" + "b" * 96
WHOLE = dict(RANDOM, **SIZES, kind="encoder")
LAYER = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
TOY = {"queries": [[1, 2, 3, 4]]}


class Names(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": {NAME: WHOLE, "BAAI": LAYER, "one/two": LAYER, LONGEST: LAYER}}, "--access-log", "all")

    def test_in_paths(self):
        for name, below, body in ((NAME, "/encode", {"tokens": [1, 2]}), ("one/two", "/attention", TOY),
                                  (LONGEST, "/attention", TOY), (NAME, "/layers/encoder.0.self/attention", {"queries": [[0] * 16]})):
            plain = self.ok(self.server.post(f"/v1/models/{name}{below}", body))
            encoded = self.ok(self.server.post(f"/v1/models/{urllib.parse.quote(name, safe='')}{below}", body))
            self.assertEqual(plain, encoded)
            self.assertTrue(plain["model"].startswith(name), plain["model"])
            self.assertEqual(self.ok(self.server.get(f"/v1/models/{name}"))["name"], name)
            self.assertEqual(self.ok(self.server.get(f"/v2/models/{name}"))["name"], name)
            self.assertEqual(self.server.get(f"/v2/models/{name}/ready").status, 200)

    def test_in_bodies_and_lists(self):
        got = self.ok(self.server.post("/v1/embeddings", {"model": NAME, "input": [1, 2]}))
        self.assertEqual(got["model"], NAME)
        self.assertEqual({m["name"] for m in self.ok(self.server.get("/v1/models"))["models"]},
                         {NAME, "BAAI", "one/two", LONGEST})
        answer = self.server.post("/v1/embeddings", {"model": LONGEST + "c", "input": [1, 2]})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (404, "model_not_found"), answer)
        self.assertIn(NAME, answer.json["error"]["message"])

    def test_what_is_below_a_model_of_one_part(self):
        self.ok(self.server.post("/v1/models/BAAI/attention", TOY))
        for answer in (self.server.post("/v1/models/BAAI/run", TOY), self.server.get("/v1/models/BAAI/run")):
            self.assertIn("the model BAAI (attention) does not support this path", self.problem(answer, 404, "not-found")["detail"])
        for path in ("/v1/models/none/none", "/v1/models/one/three", f"/v1/models/{NAME}/x"):
            self.problem(self.server.post(path, TOY), 404, "not-found")
        self.problem(self.server.get("/v1/models/one"), 404, "unknown-model")
        self.problem(self.server.get("/v1/models/one%2Fthree"), 404, "unknown-model")
        self.assertEqual(self.server.get("/v2/models/BAAI/run").status, 404)

    def test_in_the_log_and_the_metrics(self):
        answer = self.server.post(f"/v1/models/{NAME}/encode", {"tokens": [1]})
        wait_until(lambda: answer.headers["x-request-id"] in "".join(self.server.lines))
        (line,) = [json.loads(line) for line in self.server.lines if answer.headers["x-request-id"] in line]
        self.assertEqual(line["model"], NAME)
        self.assertIn(f'model="{NAME}"', self.server.get("/metrics").body.decode())


class Aliases(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, models, **settings):
        with open(os.path.join(self.folder, "attend.json"), "w", encoding="utf-8") as file:
            json.dump({"models": models, **settings}, file)

    def start(self, *args):
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"), *args)
        self.addCleanup(server.stop)
        return server

    def test_more_names_for_one_load(self):
        self.write({"bge": dict(WHOLE, aliases=[NAME, "text-embedding-3-small"]), "toy": dict(LAYER, aliases=["layer/one"])},
                   default_model="layer/one")
        server = self.start()
        right = self.ok(server.post("/v1/embeddings", {"input": [1, 2]}))  # of several models one, whatever its names
        for name in ("bge", NAME, "text-embedding-3-small"):
            got = self.ok(server.post("/v1/embeddings", {"input": [1, 2], "model": name}))
            self.assertEqual((got["model"], got["data"]), (name, right["data"]))
            part = self.ok(server.post(f"/v1/models/{name}/layers/encoder.0.self/attention", {"queries": [[0] * 16]}))
            self.assertIn(name, part["model"])
            self.assertEqual(self.ok(server.get(f"/v1/models/{name}")).get("root"), None if name == "bge" else "bge")
        self.assertEqual(self.ok(server.post("/v1/attention", TOY))["model"], "layer/one")
        listed = {m["id"]: m.get("root") for m in self.ok(server.get("/v1/models"))["data"]}
        self.assertEqual(listed, {"bge": None, NAME: "bge", "text-embedding-3-small": "bge", "toy": None, "layer/one": "toy"})

    def test_an_alias_that_is_switched(self):
        """No request is lost, and each is answered by the one or the other."""
        first, second = dict(LAYER), dict(LAYER, random={"seed": 2})
        self.write({"one": dict(first, aliases=["now"]), "two": second})
        server = self.start()
        right = [self.ok(server.post(f"/v1/models/{name}/attention", TOY))["outputs"] for name in ("one", "two")]
        seen, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                seen.append(self.ok(server.post("/v1/models/now/attention", TOY))["outputs"])
        asking = threading.Thread(target=ask)
        asking.start()
        self.assertTrue(wait_until(lambda: len(seen) > 5))
        self.write({"one": first, "two": dict(second, aliases=["now"])})
        server.signal(signal.SIGHUP)
        server.told("changed: [^;\n]*now")
        self.assertTrue(wait_until(lambda: seen[-1] == right[1]))
        stop.set()
        asking.join()
        self.assertEqual([right.index(one) for one in seen], sorted(right.index(one) for one in seen))

    def test_one_definition_under_two_names(self):
        """It is loaded once."""
        big = dict(WHOLE, width=512, heads=8, feed_forward=2048, layers=4, weights="float32")
        self.write({"a": big, "b": big})
        two = self.start()
        self.write({"a": big})
        one = self.start()
        self.assertLess(resident(two.pid), resident(one.pid) + 20e6)
        request = {"tokens": [1, 2, 3], "pool": "mean"}
        got = [self.ok(two.post(f"/v1/models/{name}/encode", request)) for name in "ab"]
        self.assertEqual([one["model"] for one in got], ["a", "b"])
        self.assertEqual(got[0]["outputs"], got[1]["outputs"])
        part = self.ok(two.post("/v1/models/b/layers/encoder.0.self/attention", {"queries": [[0] * 512]}))
        self.assertIn("b", part["model"])

    def test_what_is_refused(self):
        for models, words in (({"a": dict(LAYER, aliases="b")}, "model a: aliases: needs a list of names"),
                              ({"a": dict(LAYER, aliases=["b/encode"])}, 'aliases: "b/encode" is not a model name'),
                              ({"a": dict(LAYER, aliases=[1])}, "is not a model name"),
                              ({"a": dict(LAYER, aliases=["b"]), "b": LAYER}, "there is another model b"),
                              ({"a": dict(LAYER, aliases=["b", "b"])}, "there is another model b")):
            self.write(models)
            status, _, told = attend("check", "--config", os.path.join(self.folder, "attend.json"))
            self.assertEqual(status, 2, told)
            self.assertIn(words, told)


if __name__ == "__main__":
    unittest.main()
