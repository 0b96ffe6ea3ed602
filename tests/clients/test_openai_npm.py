"""test_openai_npm: OpenAI's own client, npm's openai, gets what its service would tell: vectors, texts, models, errors."""
import json
import os
import subprocess
import unittest

from needs import needs, npm
from support import PATIENCE, ROOT, Server
from test_completions import LISTS, PATH, Completing
from test_openai import BARE, IDS, KEY, TEXTS, Served, f32_bits


class Called:
    """Calls of OpenAI's own client, unchanged."""

    def call(self, *calls, key="none", server=None):
        address = f"http://127.0.0.1:{(server or self.server).port}/v1"
        done = subprocess.run(["node", os.path.join(ROOT, "tests", "clients", "openai.mjs"), npm("clients"), address, key],
                              input=json.dumps([{"call": call, "arguments": given} for call, *given in calls]).encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)


@needs("clients", "node", "npm:openai")
class Embeddings(Called, Served):
    def embed(self, **request):
        return "embeddings.create", dict({"model": "bert"}, **request)

    def test_vectors(self):
        """Asked for none, the client asks for base64, and decodes it."""
        requests = [{"input": TEXTS}, {"input": TEXTS[0]}, {"input": IDS}, {"input": IDS[0]}, {"input": TEXTS, "dimensions": 3},
                    {"input": TEXTS, "user": "me", "model": "unit"}]
        calls = [self.embed(**request, **form) for request in requests for form in ({}, {"encoding_format": "float"})]
        results = self.call(*calls)
        for i, request in enumerate(requests):
            right = self.ok(self.post(dict({"model": "bert"}, **request)))
            for result in results[2 * i:2 * i + 2]:
                with self.subTest(request=request):
                    got = result["value"]
                    self.assertEqual([f32_bits(one["embedding"]) for one in got["data"]],
                                     [f32_bits(one["embedding"]) for one in right["data"]])
                    self.assertEqual((got["usage"], got["model"]), (right["usage"], right["model"]))
        packed = self.call(self.embed(input=TEXTS, encoding_format="base64"))[0]["value"]
        self.assertIsInstance(packed["data"][0]["embedding"], str)

    def test_models(self):
        listed, one, none = self.call(("models.list",), ("models.retrieve", "bert"), ("models.retrieve", "nobody"))
        answer = self.ok(self.server.get("/v1/models"))
        self.assertEqual(listed["value"], answer["data"])
        self.assertEqual(one["value"], self.ok(self.server.get("/v1/models/bert")))
        self.assertEqual((none["thrown"], none["status"], none["code"]), ("NotFoundError", 404, "model_not_found"))
        self.assertIn("Available: ", none["message"])

    def test_errors(self):
        results = self.call(self.embed(model="nobody", input="a"), self.embed(input=["a", ""]), self.embed(input=[[1, 99]]),
                            self.embed(input="a", dimensions=99), self.embed(input="a", model="demo"),
                            ("embeddings.create", {"input": "a"}), self.embed(input="a", extra=1),
                            self.embed(input=["a"] * 51))
        self.assertEqual([(one["thrown"], one["status"], one.get("param"), one.get("code")) for one in results], [
            ("NotFoundError", 404, "model", "model_not_found"), ("BadRequestError", 400, "input[1]", "invalid_request"),
            ("BadRequestError", 400, "input[0][1]", "invalid_request"), ("BadRequestError", 400, "dimensions", "invalid_request"),
            ("BadRequestError", 400, "model", "invalid_request"), ("BadRequestError", 400, "model", "invalid_request"),
            ("BadRequestError", 400, "extra", "invalid_request"), ("APIError", 413, None, "too_large")])
        for one in results:
            self.assertEqual(one["type"], "invalid_request_error")
            self.assertRegex(one["requestID"], r"^[0-9a-f]+$")
        self.assertEqual(results[1]["message"], "400 the text is empty")

    def test_keys(self):
        path = os.path.join(self.folder.name, "keys")
        with open(path, "w", encoding="utf-8") as file:
            file.write(KEY + "\n")
        os.chmod(path, 0o600)
        server = Server({"models": {"bert": BARE}}, "--api-key-file", path)
        self.addCleanup(server.stop)
        calls = (self.embed(input=[1]), ("models.list",), ("models.retrieve", "bert"))
        for one in self.call(*calls, key="sk-somebody-else-0123", server=server):
            self.assertEqual((one["thrown"], one["status"]), ("AuthenticationError", 401))
        self.assertEqual([list(one) for one in self.call(*calls, key=KEY, server=server)], [["value"]] * 3)


@needs("clients", "node", "npm:openai")
class Completions(Called, Completing):
    def test_completions(self):
        request = {"model": "gpt", "prompt": ["hello w", "e"], "n": 2, "seed": 7, "stop": ["ld"]}
        whole, stream, wrong, none = self.call(
            ("completions.create", request), ("completions.create", dict(request, stream=True)),
            ("completions.create", dict(request, prompt=["e", ""])), ("completions.create", dict(request, model="nobody")))
        right = self.ok(self.server.post(PATH, request))["choices"]
        self.assertEqual(whole["value"]["choices"], right)
        texts = [""] * 4
        for event in stream["value"]:
            texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
        self.assertEqual(texts, [one["text"] for one in right])
        whole, stream = (one["value"] for one in self.call(
            ("completions.create", dict(request, logprobs=2)), ("completions.create", dict(request, logprobs=2, stream=True))))
        right = self.ok(self.server.post(PATH, dict(request, logprobs=2)))["choices"]
        self.assertEqual(whole["choices"], right)
        lists = [{name: [] for name in LISTS} for _ in right]
        for event in stream:
            for name in LISTS:
                lists[event["choices"][0]["index"]][name] += event["choices"][0]["logprobs"][name]
        self.assertEqual(lists, [one["logprobs"] for one in right])
        (echoed,) = self.call(("completions.create", dict(request, echo=True, stream=True)))
        self.assertEqual([event["choices"][0]["text"] for event in echoed["value"]][:2], ["hello w"] * 2)
        self.assertEqual((wrong["thrown"], wrong["param"]), ("BadRequestError", "prompt[1]"))
        self.assertEqual((none["thrown"], none["code"]), ("NotFoundError", "model_not_found"))


if __name__ == "__main__":
    unittest.main()
