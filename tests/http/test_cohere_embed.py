"""test_cohere_embed: Cohere's forms of embeddings, v1 and v2: vectors bit for bit those of /v1/embeddings, prompts by the
type of input, every mistake in its form of errors. Its own client is in tests/clients."""
import shutil
import tempfile
import unittest

from support import Server, ServerCase
from test_openai import OpenAi
from test_prompts import PROMPTS, prompted_folder

TEXTS = ["the cat sat", "é", "on a \"mat\" ."]


class Embed(OpenAi, ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.mkdtemp()
        prompts = dict(PROMPTS, clustering="on ")
        folder = prompted_folder(cls.folder, prompts=prompts, usual="none")
        return Server({"models": {"m": {"transformer": folder}, "demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}},
                      "--max-items", "50")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder)

    def post(self, version=1, **request):
        return self.server.post(f"/v{version}/embed", dict({"texts": TEXTS}, **request))

    def vectors(self, **request):
        answer = self.ok(self.server.post("/v1/embeddings", dict({"input": TEXTS}, **request)))
        return [one["embedding"] for one in answer["data"]], answer["usage"]["prompt_tokens"]

    def test_vectors(self):
        right, tokens = self.vectors()
        meta = {"billed_units": {"input_tokens": tokens}}
        for version, more, by_type in ((1, {}, False), (1, {"embedding_types": None, "truncate": None}, False), (2, {}, True),
                                       (1, {"embedding_types": ["float"]}, True), (2, {"embedding_types": ["float"], "images": None}, True)):
            with self.subTest(version=version, more=more):
                answer = self.ok(self.post(version, **more))
                self.assertEqual(list(answer), ["id", "embeddings", "texts", "meta", "response_type"])
                self.assertRegex(answer["id"], "^embed-[0-9a-f]{16}$")
                self.assertEqual(answer["embeddings"], {"float": right} if by_type else right)
                self.assertEqual((answer["texts"], answer["meta"]), (TEXTS, meta))
                self.assertEqual(answer["response_type"], "embeddings_by_type" if by_type else "embeddings_floats")
        self.assertEqual(self.ok(self.post(texts=TEXTS[0]))["embeddings"], self.vectors(input=TEXTS[0])[0])
        self.assertEqual(self.ok(self.post(output_dimension=3))["embeddings"], self.vectors(dimensions=3)[0])
        self.assertEqual(self.ok(self.post(model="m", texts=[""]))["texts"], [""])

    def test_what_texts_are_for(self):
        """The prompt that the model has for it; else its default one."""
        for kind, name in (("search_query", "query"), ("search_document", "passage"), ("clustering", "clustering"),
                           ("classification", "none"), (None, "none")):
            with self.subTest(kind=kind):
                self.assertEqual(self.ok(self.post(input_type=kind))["embeddings"], self.vectors(prompt_name=name)[0])

    def test_long_texts(self):
        long = ["cat " * 600]
        right = self.vectors(input=long, truncate=True)[0]
        for more in ({}, {"truncate": "END"}):
            self.assertEqual(self.ok(self.post(texts=long, **more))["embeddings"], right)
        self.assertEqual(self.ok(self.post(texts=long, max_tokens=5))["embeddings"], self.vectors(input=long, truncate=5)[0])
        self.error(self.post(texts=long, truncate="NONE"), 400, "invalid_request", "texts[0]", "context length")

    def test_what_the_definition_cuts(self):
        for said, more, right in ((4, {}, 4), (4, {"truncate": "END"}, True), (4, {"max_tokens": 6}, 6), (False, {"truncate": "END"}, True)):
            server = Server({"models": {"m": {"transformer": self.folder, "truncate": said}}})
            self.addCleanup(server.stop)
            answer = self.ok(server.post("/v1/embed", dict({"texts": ["cat " * 600]}, **more)))
            self.assertEqual(answer["embeddings"], self.vectors(input=["cat " * 600], truncate=right)[0])
        self.error(server.post("/v2/embed", {"texts": ["cat " * 600]}), 400, "invalid_request", "texts[0]", "context length")

    def test_wrong_requests(self):
        for request, param, words in (
                ({"texts": []}, "texts", "the list is empty"), ({"texts": [1]}, "texts[0]", ""), ({"texts": None}, "texts", ""),
                ({"model": "nobody"}, "model", "Available: m"), ({"model": "demo"}, "model", "attention"),
                ({"input_type": "image"}, "input_type", "search_query"), ({"input_type": 1}, "input_type", ""),
                ({"embedding_types": ["int8"]}, "embedding_types", '["float"]'), ({"embedding_types": []}, "embedding_types", ""),
                ({"embedding_types": ["float", "int8"]}, "embedding_types", ""), ({"output_dimension": 0}, "output_dimension", "at least 1"),
                ({"output_dimension": 99}, "output_dimension", ""), ({"truncate": "START"}, "truncate", "truncated at their end"),
                ({"truncate": True}, "truncate", ""), ({"max_tokens": 0}, "max_tokens", ""), ({"max_tokens": 1}, "max_tokens", "special tokens to each text"),
                ({"max_tokens": 5, "truncate": "NONE"}, "max_tokens", "excludes "), ({"images": ["a"]}, "images", "images is not supported"),
                ({"inputs": []}, "inputs", "inputs is not supported"), ({"input": "a"}, "input", '"texts"')):
            for version in (1, 2):
                with self.subTest(version=version, request=request):
                    answer = self.post(version, **request)
                    status, code = (404, "model_not_found") if request.get("model") == "nobody" else (400, "invalid_request")
                    self.error(answer, status, code, param, words)
                    self.assertTrue(answer.json["message"].startswith(answer.json["error"]["message"]), answer)
        self.error(self.server.post("/v2/embed", {}), 400, "invalid_request", "texts", "missing")
        self.error(self.post(texts=["a"] * 51), 413, "too_large")
        self.error(self.server.get("/v1/embed"), 405, "method_not_allowed")


if __name__ == "__main__":
    unittest.main()
