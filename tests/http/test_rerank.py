"""test_rerank: documents in the order in which they fit a query, by classifiers of pairs, bit for bit those of /classify,
and by the cosine of vectors; every mistake in OpenAI's form of errors."""
import os
import struct
import tempfile
import unittest

from support import Server
from test_openai import RANDOM, SIZES, WORDS, OpenAi, ServerCase, f32_bits

PATH = "/v1/rerank"
QUERY = "the cat"
DOCUMENTS = ["a mat .", "the cat sat", "", "cat cat cat", "on a mat", "é"]


class Rerank(OpenAi, ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(cls.folder.name, "vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(WORDS) + "\n")
        text = dict(RANDOM, **SIZES, tokenizer=cls.folder.name)
        encoder = dict(text, kind="encoder", positions="learned", max_positions=12)
        return Server({"models": {
            "ranker": dict(encoder, classes=1),
            "raw": dict(encoder, classes=1, function="none"),
            "sorter": dict(encoder, labels=["a", "b"]),
            "long": dict(text, kind="encoder", classes=1),
            "vectors": dict(encoder, pool="mean"),
            "gpt": dict(text, kind="decoder"),
            "bare": dict(RANDOM, **SIZES, kind="encoder")}}, "--max-body-bytes", "1000000", "--max-items", "3000")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def post(self, request, **options):
        return self.server.post(PATH, request, **options)

    def results(self, **request):
        answer = self.ok(self.post(request))
        self.assertEqual(list(answer), ["id", "object", "model", "results", "meta", "usage"])
        self.assertRegex(answer["id"], "^rerank-[0-9a-f]{16}$")
        self.assertEqual((answer["object"], answer["model"], answer["meta"]), ("list", request["model"], {}))
        self.assertEqual(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"])
        return answer["results"]

    def refused(self, request, param, *words, code="invalid_request", status=400):
        answer = self.post(request)
        self.error(answer, status, code, param, *words)
        for word in words:
            self.assertIn(word, answer.json["message"])

    # --- by a classifier ---

    def classified(self, model, documents, query=QUERY):
        pairs = [[query, one] for one in documents]
        outputs = self.ok(self.server.post(f"/v1/models/{model}/classify", {"text": pairs, "truncate": True}))["outputs"]
        return [one[0] for one in outputs]

    def test_the_scores_of_pairs_in_order(self):
        for model in ("ranker", "raw"):
            scores = self.classified(model, DOCUMENTS)
            order = sorted(range(len(DOCUMENTS)), key=lambda i: -scores[i])
            got = self.results(model=model, query=QUERY, documents=DOCUMENTS)
            self.assertEqual(got, [{"index": i, "relevance_score": scores[i], "document": {"text": DOCUMENTS[i]}}
                                   for i in order])

    def test_coheres_newer_path(self):
        request = {"model": "ranker", "query": QUERY, "documents": DOCUMENTS, "top_n": 2}
        first, second = (self.ok(self.server.post(path, request)) for path in (PATH, "/v2/rerank"))
        self.assertEqual(first["results"], second["results"])
        self.error(self.server.post("/v2/rerank", {"model": "ranker", "query": QUERY}), 400, "invalid_request", "documents")
        self.assertEqual(self.server.get("/v2/rerank").status, 405)

    def test_of_equal_ones_the_first(self):
        got = self.results(model="ranker", query=QUERY, documents=["a mat", "the", "a mat", "the", "a mat"])
        groups = [[one["index"] for one in got if one["document"]["text"] == text] for text in ("a mat", "the")]
        self.assertEqual(groups, [[0, 2, 4], [1, 3]])

    def test_how_many_and_what_is_told(self):
        right = self.results(model="ranker", query=QUERY, documents=DOCUMENTS)
        bare = [{"index": one["index"], "relevance_score": one["relevance_score"]} for one in right]
        for more, expected in (({"top_n": 2}, right[:2]), ({"top_n": 6}, right), ({"top_n": 100}, right),
                               ({"top_n": None}, right), ({"return_documents": False}, bare),
                               ({"return_documents": False, "top_n": 1}, bare[:1]),
                               ({"return_documents": None}, right), ({"user": "u"}, right),
                               ({"max_chunks_per_doc": None, "max_tokens_per_doc": None, "rank_fields": None}, right), ({"max_chunks_per_doc": 10}, right)):
            with self.subTest(more=more):
                self.assertEqual(self.results(model="ranker", query=QUERY, documents=DOCUMENTS, **more), expected)

    def test_documents_as_objects(self):
        right = self.results(model="ranker", query=QUERY, documents=DOCUMENTS)
        mixed = [{"text": one} if i % 2 else one for i, one in enumerate(DOCUMENTS)]
        self.assertEqual(self.results(model="ranker", query=QUERY, documents=mixed), right)

    def test_many(self):
        """More documents than are computed together, each with what must be escaped."""
        documents = [" ".join(WORDS[4 + (i * j) % 8] for j in range(i % 9)) + '"\\\n\x01' * (i % 3) for i in range(3000)]
        scores = self.classified("ranker", documents)
        got = self.results(model="ranker", query=QUERY, documents=documents)
        order = sorted(range(len(documents)), key=lambda i: -scores[i])
        self.assertEqual([one["index"] for one in got], order)
        self.assertEqual([one["relevance_score"] for one in got], [scores[i] for i in order])
        self.assertEqual([one["document"]["text"] for one in got], [documents[i] for i in order])
        self.assertEqual(self.results(model="ranker", query=QUERY, documents=documents, top_n=7), got[:7])

    def test_long_ones_are_cut(self):
        long = ["cat " * 50, "mat"]
        cut = self.results(model="ranker", query=QUERY, documents=long)
        self.assertEqual(self.results(model="ranker", query=QUERY, documents=long, truncate=True), cut)
        self.assertEqual(self.results(model="ranker", query=QUERY, documents=long, truncate=None), cut)
        self.assertEqual(len(self.results(model="ranker", query=QUERY, documents=long, truncate=6)), 2)
        self.refused({"model": "ranker", "query": QUERY, "documents": long, "truncate": False}, "documents[0]", "12")

    # --- by vectors ---

    def test_the_cosine_of_vectors(self):
        for model in ("vectors", "gpt"):
            documents = [one for one in DOCUMENTS if one] + ["the cat"]
            request = {"text": documents + [QUERY], "pool": "mean", "normalize": True}
            vectors = self.ok(self.server.post(f"/v1/models/{model}/encode", request))["outputs"]
            vectors = [struct.unpack(f"<{len(one)}f", f32_bits(one)) for one in vectors]
            scores = [sum(a * b for a, b in zip(one, vectors[-1])) for one in vectors[:-1]]
            got = self.results(model=model, query=QUERY, documents=documents)
            self.assertEqual([f32_bits([one["relevance_score"]]) for one in got],
                             [f32_bits([scores[one["index"]]]) for one in got])
            self.assertEqual([one["index"] for one in got],
                             sorted(range(len(documents)), key=lambda i: (-scores[i], i)))
            self.assertEqual(got[0]["index"], len(documents) - 1)
            self.assertAlmostEqual(got[0]["relevance_score"], 1, 5)

    # --- mistakes ---

    def test_wrong_requests(self):
        right = {"model": "ranker", "query": QUERY, "documents": DOCUMENTS}
        for change, param, words in (
                ({"query": None}, "query", "must be a string"), ({"query": 1}, "query", "must be a string"),
                ({"query": "cat " * 20000}, "query", "longer"),
                ({"documents": None}, "documents", "expected a list of strings"),
                ({"documents": "a text"}, "documents", "expected a list of strings"),
                ({"documents": []}, "documents", "the list is empty"),
                ({"documents": ["a", 1]}, "documents[1]", 'an object with "text"'),
                ({"documents": ["a", ["b"]]}, "documents[1]", "got a list"),
                ({"documents": [{"title": "a"}]}, "documents[0]", 'one member, "text"'),
                ({"documents": ["a", {}]}, "documents[1]", 'one member, "text"'),
                ({"documents": ["a", {"text": "b", "title": "c"}]}, "documents[1]", 'one member, "text"'),
                ({"documents": [{"text": 1}]}, "documents[0]", "must be a string"),
                ({"top_n": 0}, "top_n", "at least 1"), ({"top_n": "3"}, "top_n", "integer"),
                ({"return_documents": 1}, "return_documents", "true or false"),
                ({"truncate": 0}, "truncate", "truncate must be"), ({"texts": []}, "texts", '"documents"'),
                ({"top_k": 1}, "top_k", '"top_n"'), ({"max_tokens_per_doc": 1}, "max_tokens_per_doc", '"truncate"'),
                ({"max_chunks_per_doc": 0}, "max_chunks_per_doc", "at least 1"), ({"max_tokens_per_doc": 2}, "max_tokens_per_doc", "is not supported"),
                ({"rank_fields": ["text"]}, "rank_fields", "objects with"), ({"model": "sorter"}, "model", "several classes"),
                ({"model": "bare"}, "model", "without a tokenizer")):
            with self.subTest(change=change):
                self.refused(dict(right, **change), param, words)
        for field in ("query", "documents"):
            self.refused({name: right[name] for name in right if name != field}, field, "is missing")
        self.refused(dict(right, model="none"), "model", "no model has this name", code="model_not_found", status=404)
        self.refused({"query": QUERY, "documents": DOCUMENTS}, "model", "is missing")

    def test_broken_json(self):
        for text, at in (('{"documents":[{"text" "a"}]}', 22), ('{"documents":[{"te\nxt":"a"}]}', 18),
                         ('{"documents":[{"text":"a"', None), ('{"documents":[{"text":"a"]}', 25),
                         ('{"documents":[{5:1}]}', 15), ('{"documents":[{"text":}]}', 22)):
            with self.subTest(text=text):
                error = self.error(self.post(text.encode()), 400, "invalid_json")
                if at is not None:
                    self.assertIn(f"at byte {at}", error["message"])

    def test_a_query_that_would_be_computed_too_often(self):
        """It becomes tokens once, and no more documents are read than there may be pairs."""
        query = "cat " * 15000
        request = {"model": "long", "query": query, "documents": ["a"] * 3000, "truncate": False}
        before = self.server.most_resident()
        self.refused(request, None, "max_pairs", "2 heads in 2 layers", code="too_large", status=413)
        self.assertLess(self.server.most_resident(), before + 100e6)
        self.assertEqual(len(self.results(**dict(request, truncate=12))), 3000)
        self.refused(dict(request, model="ranker"), "documents[0]", "15004 tokens exceed the model's context length of 12")

    def test_errors_about_the_query_of_vectors(self):
        request = {"model": "vectors", "query": "cat " * 50, "documents": ["a", "b"], "truncate": False}
        self.refused(request, "query", "12")
        self.refused(dict(request, query="a", documents=["a", "cat " * 50]), "documents[1]", "12")


class OneModel(unittest.TestCase):
    def test_a_model_that_is_not_named(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
                file.write("\n".join(WORDS) + "\n")
            model = dict(RANDOM, **SIZES, kind="encoder", tokenizer=folder)
            models = {"a": dict(model, classes=1), "b": dict(model, classes=1), "c": dict(model, labels=["x", "y"])}
            for settings, name in (((), None), (("--default-model", "b"), "b"), (("--default-model", "c"), None)):
                with self.subTest(settings=settings):
                    server = Server({"models": models}, *settings)
                    self.addCleanup(server.stop)
                    answer = server.post(PATH, {"query": QUERY, "documents": DOCUMENTS})
                    self.assertEqual(answer.status, 200 if name else 400, answer)
                    if name:
                        self.assertEqual(answer.json["model"], name)


if __name__ == "__main__":
    unittest.main()
