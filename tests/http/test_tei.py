"""test_tei: the paths of text-embeddings-inference: numbers bit for bit those of /encode and /classify, every
mistake in its form of errors; and nothing of it where the setting is off. Hugging Face's own client is in tests/clients."""
import os
import tempfile
import unittest

from support import Case, Server, ServerCase
from test_openai import RANDOM, SIZES, WORDS
from test_prompts import prompted_folder
from test_whole import write_json

TEXTS = ["the cat", "a mat .", "É sat"]
ON = ("--text-embeddings-inference", "true")
KEY = "alice-0123456789-abcdef"


class Tei(Case):
    def error(self, answer, status, kind, *words):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers.get("content-type"), "application/json")
        self.assertEqual(list(answer.json), ["error", "error_type"], answer)
        self.assertEqual(answer.json["error_type"], kind)
        for word in words:
            self.assertIn(word, answer.json["error"])


def write_words(folder):
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(WORDS) + "\n")
    encoder = dict(RANDOM, **SIZES, tokenizer=folder, kind="encoder", positions="learned", max_positions=12)
    return {"vectors": dict(encoder, pool="cls"), "ranker": dict(encoder, classes=1),
            "sorter": dict(encoder, labels=["no", 'a "b"', "ä"])}


class Served(Tei, ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        demo = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
        return Server({"models": {"demo": demo, **write_words(cls.folder.name)}}, *ON, "--max-items", "50",
                      "--default-model", "vectors")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def embed(self, **request):
        return self.ok(self.server.post("/embed", request))

    def encode(self, model="vectors", **request):
        outputs = self.ok(self.server.post(f"/v1/models/{model}/encode", dict({"truncate": True}, **request)))["outputs"]
        return outputs if isinstance(outputs[0], list) else [outputs]

    def classify(self, model, **request):
        return self.ok(self.server.post(f"/v1/models/{model}/classify", dict({"truncate": True}, **request)))["outputs"]


class Paths(Served):
    def test_other_names_of_paths(self):
        """What its probes ask, and its path for OpenAI's form: there without the setting, too."""
        for path in ("/health", "/ping"):
            self.assertEqual(self.server.get(path).body, self.server.get("/readyz").body)
        request = {"model": "vectors", "input": TEXTS}
        first, second = (self.ok(self.server.post(path, request)) for path in ("/v1/embeddings", "/embeddings"))
        self.assertEqual(first["data"], second["data"])


    def test_the_root(self):
        """What the default model is for: vectors, or classes."""
        self.assertEqual(self.ok(self.server.post("/", {"inputs": TEXTS})), self.embed(inputs=TEXTS))
        self.error(self.server.post("/", {"inputs": []}), 400, "Validation", "at /inputs")
        self.assertEqual(self.server.get("/").headers["content-type"].split(";")[0], "text/html")
        self.assertEqual(self.server.request("PUT", "/", b"{}").status, 405)
        with tempfile.TemporaryDirectory() as folder:
            server = Server({"models": write_words(folder)}, *ON, "--default-model", "sorter", "--page", "false")
            self.addCleanup(server.stop)
            request = {"inputs": [["a mat"], ["the", "cat"]]}
            self.assertEqual(self.ok(server.post("/", request)), self.ok(server.post("/predict", request)))
            self.assertEqual(server.get("/").status, 404)


class Embed(Served):
    def test_the_vectors_of_encode(self):
        for given in (TEXTS, TEXTS[:1], TEXTS[0], "cat " * 50):
            for more in ({}, {"dimensions": 5}):
                with self.subTest(given=given, more=more):
                    right = self.encode(text=given, normalize=True, **more)
                    self.assertEqual(self.embed(inputs=given, **more), right)
                    raw = self.encode(text=given, **more)
                    self.assertEqual(self.embed(inputs=given, normalize=False, **more), raw)
                    self.assertNotEqual(raw, right)
        right = self.encode("ranker", text=TEXTS, pool="mean", normalize=True)
        self.assertEqual(self.embed(inputs=TEXTS, model="ranker"), right)
        ids = [[2, 4, 5, 3], [7]]
        right = self.ok(self.server.post("/v1/models/vectors/encode", {"tokens": ids, "normalize": True}))["outputs"]
        self.assertEqual(self.embed(inputs=ids), right)
        self.assertEqual(self.embed(inputs=ids[0]), right[:1])

    def test_what_else_clients_send(self):
        right = self.embed(inputs=TEXTS)
        for more in ({"truncate": None}, {"truncate": True}, {"truncate": False}, {"prompt_name": None},
                     {"truncation_direction": "Right"}, {"truncation_direction": "right"}, {"dimensions": None}):
            with self.subTest(more=more):
                self.assertEqual(self.embed(inputs=TEXTS, **more), right)

    def test_wrong_requests(self):
        for request, words in (
                ({}, '"inputs" is missing'), ({"inputs": []}, "the list is empty"), ({"inputs": [["a", "b"]]}, "at /inputs/0"),
                ({"inputs": "a", "normalize": 1}, "at /normalize"), ({"inputs": "a", "truncate": 5}, "at /truncate"),
                ({"inputs": "a", "truncation_direction": "left"}, "truncated at their end"),
                ({"inputs": "a", "prompt_name": "query"}, "prompt_name"), ({"input": "a"}, 'use "inputs"'),
                ({"inputs": ["a", "cat " * 50], "truncate": False}, "at /inputs/1"), ({"inputs": [[1, 99]]}, "at /inputs/0/1"),
                ({"inputs": "a", "dimensions": 99}, "at /dimensions"), ({"inputs": "a", "model": "demo"}, "at /model")):
            with self.subTest(request=request):
                self.error(self.server.post("/embed", request), 400, "Validation", words)
        self.error(self.server.post("/embed", b"{"), 400, "Validation", "byte")
        self.error(self.server.post("/embed", {"inputs": ["a"] * 51}), 413, "Validation", "max_items")
        self.error(self.server.post("/embed", {"inputs": "a", "model": "nobody"}), 404, "Validation", "no model")
        self.error(self.server.get("/embed"), 405, "Validation", "POST")
        self.error(self.server.post("/info", {}), 405, "Validation", "GET")


class EmbedAll(Served):
    def ask(self, **request):
        return self.ok(self.server.post("/embed_all", request))

    def test_the_rows_of_encode(self):
        for given in (TEXTS, TEXTS[:1], "cat " * 50, ""):
            with self.subTest(given=given):
                right = self.encode(text=[given] if isinstance(given, str) else given, pool="none")
                self.assertEqual(self.ask(inputs=given), right)
        ids = [[2, 4, 5, 3], [7]]
        right = self.ok(self.server.post("/v1/models/vectors/encode", {"tokens": ids, "pool": "none"}))["outputs"]
        self.assertEqual(self.ask(inputs=ids), right)
        self.assertEqual(self.ask(inputs=ids[0]), right[:1])

    def test_wrong_requests(self):
        for request, words in (({}, '"inputs" is missing'), ({"inputs": []}, "the list is empty"), ({"inputs": "a", "normalize": True}, "POST /embed"),
                               ({"inputs": "a", "dimensions": 4}, "POST /embed"), ({"inputs": "a", "prompt_name": "query"}, "no prompts")):
            with self.subTest(request=request):
                self.error(self.server.post("/embed_all", request), 400, "Validation", words)


class Similarity(Served):
    def ask(self, source, sentences, **more):
        return self.server.post("/similarity", {"inputs": {"source_sentence": source, "sentences": sentences}, **more})

    def test_the_cosines_of_embed(self):
        for sentences in (TEXTS, TEXTS[:1], ["cat " * 50, "", "É"]):
            vectors = self.embed(inputs=sentences + ["the cat"])
            right = [sum(a * b for a, b in zip(one, vectors[-1])) for one in vectors[:-1]]
            for more in ({}, {"parameters": None}, {"parameters": {}}, {"parameters": {"truncate": True, "truncation_direction": "right"}}):
                got = self.ok(self.ask("the cat", sentences, **more))
                self.assertEqual(len(got), len(right))
                for one, other in zip(got, right):
                    self.assertAlmostEqual(one, other, 5)
        self.assertAlmostEqual(self.ok(self.ask("a mat", ["a mat"]))[0], 1, 6)

    def test_the_order_of_rerank(self):
        """Which has the same cosines, to the last bit."""
        got = self.ok(self.ask("the cat", TEXTS))
        ranked = self.ok(self.server.post("/v1/rerank", {"model": "vectors", "query": "the cat", "documents": TEXTS}))["results"]
        self.assertEqual(got, [one["relevance_score"] for one in sorted(ranked, key=lambda one: one["index"])])

    def test_wrong_requests(self):
        for request, words in (
                ({}, '"inputs" is missing'), ({"inputs": ["a"]}, "must be an object"), ({"inputs": {"sentences": ["a"]}}, '"source_sentence" is missing (at /inputs/source_sentence)'),
                ({"inputs": {"source_sentence": "a"}}, "at /inputs/sentences"), ({"inputs": {"source_sentence": "a", "sentences": []}}, "at least one"),
                ({"inputs": {"source_sentence": "a", "sentences": ["b", 1]}}, "at /inputs/sentences/1"), ({"source_sentence": "a"}, '"inputs" is an object'),
                ({"inputs": {"source_sentence": "a", "sentences": ["b"], "c": 1}}, 'unknown member "c" of inputs (at /inputs/c)'),
                ({"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"truncate": 1}}, "at /parameters/truncate"),
                ({"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"truncation_direction": "left"}}, "truncated at their end"),
                ({"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"prompt_name": "query"}}, "at /parameters/prompt_name"),
                ({"inputs": {"source_sentence": "a", "sentences": ["b"]}, "parameters": {"prompt_name": 1}}, "at /parameters/prompt_name"),
                ({"inputs": {"source_sentence": "a", "sentences": ["b", "cat " * 50]}, "parameters": {"truncate": False}}, "at /inputs/sentences/1"),
                ({"inputs": {"source_sentence": "cat " * 50, "sentences": ["b"]}, "parameters": {"truncate": False}}, "at /inputs/source_sentence"),
                ({"inputs": {"source_sentence": "a", "sentences": ["b"]}, "truncate": True}, '"parameters"')):
            with self.subTest(request=request):
                self.error(self.server.post("/similarity", request), 400, "Validation", words)
        self.error(self.ask("a", ["b"] * 50), 413, "Validation", "max_items")
        self.error(self.ask("a", ["b" * (256 * 1024)]), 400, "Validation", "at /inputs")


class Tokens(Served):
    def tokenize(self, **request):
        return self.ok(self.server.post("/tokenize", dict({"model": "vectors"}, **request)))

    def test_the_tokens_of_tokenize(self):
        for texts in (TEXTS, ["", "ÉÉ catmat"]):
            for special in (True, False):
                right = self.ok(self.server.post("/v1/models/vectors/tokenize", {"text": texts, "special_tokens": special}))
                got = self.tokenize(inputs=texts, add_special_tokens=special)
                self.assertEqual([[one["id"] for one in text] for text in got], right["tokens"])
                for text, tokens, strings, places in zip(texts, got, right["strings"], right["byte_offsets"]):
                    for token, string, (begin, end) in zip(tokens, strings, places):
                        self.assertEqual(list(token), ["id", "text", "special", "start", "stop"])
                        stands = not token["special"]
                        self.assertEqual(token["text"], text.encode()[begin:end].decode() if stands else string)
                        self.assertEqual((token["start"], token["stop"]), (begin, end) if stands else (None, None))
        self.assertEqual(self.tokenize(inputs=TEXTS[0]), self.tokenize(inputs=TEXTS[:1]))

    def test_parts_of_characters(self):
        """Of a tokenizer of bytes."""
        letters = {chr(c): i for i, c in enumerate([*range(33, 127), *range(161, 173), *range(174, 512)])}
        model = {"tokenizer": self.folder.name + "/bytes", **RANDOM, **SIZES, "vocabulary": 500, "kind": "encoder"}
        os.mkdir(model["tokenizer"])
        letters_of = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        write_json(model["tokenizer"], "tokenizer.json", {
            "model": {"type": "BPE", "vocab": letters, "merges": []}, "decoder": letters_of, "pre_tokenizer": letters_of})
        server = Server({"models": {"bytes": model}}, *ON)
        self.addCleanup(server.stop)
        [got] = self.ok(server.post("/tokenize", {"inputs": "aé😀"}))
        self.assertEqual(got[0], {"id": letters["a"], "text": "a", "special": False, "start": 0, "stop": 1})
        for one in got:
            self.assertEqual(one["text"], "aé😀".encode()[one["start"]:one["stop"]].decode("utf-8", "replace"))
        self.assertEqual(self.ok(server.post("/decode", {"ids": [one["id"] for one in got]})), ["aé😀"])

    def test_a_prompt(self):
        """Places are those behind it."""
        server = Server({"models": {"m": {"transformer": prompted_folder(self.folder.name + "/prompted", usual="passage")}}}, *ON)
        self.addCleanup(server.stop)

        def ask(**request):
            return server.post("/tokenize", dict({"inputs": ["cat", "É"]}, **request))
        for name, prompt in (({}, "a mat"), ({"prompt_name": "query"}, "the cat "), ({"prompt_name": "none"}, "")):
            right = self.ok(ask(inputs=[prompt + "cat", prompt + "É"], prompt_name="none"))
            self.assertEqual(self.ok(ask(**name)), right)
        self.error(ask(prompt_name="no"), 400, "Validation", "at /prompt_name")
        small = Server({"models": {"m": {"transformer": self.folder.name + "/prompted"}}}, *ON, "--max-body-bytes", "400")
        self.addCleanup(small.stop)
        request = {"inputs": [""] * 40, "prompt_name": "query"}
        self.assertEqual(len(self.ok(small.post("/tokenize", dict(request, prompt_name="none")))), 40)
        self.error(small.post("/tokenize", dict(request, inputs=[""] * 51)), 413, "Validation", "max_body_bytes")
        self.assertEqual(len(self.ok(small.post("/tokenize", dict(request, inputs=[""] * 50)))), 50)

    def test_texts_of_tokens(self):
        for ids in ([[2, 4, 5, 3], [5], []], [2, 4, 5, 3]):
            for skips in (True, False):
                right = self.ok(self.server.post("/v1/models/vectors/detokenize", {"tokens": ids, "special_tokens": not skips}))["text"]
                got = self.ok(self.server.post("/decode", {"model": "vectors", "ids": ids, "skip_special_tokens": skips}))
                self.assertEqual(got, [right] if isinstance(right, str) else right)
        self.assertEqual(self.ok(self.server.post("/decode", {"ids": [4, 5]})), ["the cat"])

    def test_wrong_requests(self):
        for path, request, words in (
                ("/tokenize", {}, '"inputs" is missing'), ("/tokenize", {"inputs": []}, "the list is empty"), ("/tokenize", {"inputs": [1]}, "at /inputs/0"),
                ("/tokenize", {"inputs": "a", "ids": [1]}, "POST /decode"), ("/tokenize", {"inputs": "a", "prompt_name": "x"}, "no prompts"),
                ("/decode", {}, '"ids" is missing'), ("/decode", {"ids": []}, "the list is empty"), ("/decode", {"ids": [99]}, "at /ids/0"),
                ("/decode", {"ids": [[1], [2, -1]]}, "at /ids/1/1"), ("/decode", {"inputs": "a"}, "POST /tokenize"),
                ("/decode", {"tokens": [1]}, '"ids"'), ("/tokenize", {"inputs": "a", "model": "demo"}, "at /model")):
            with self.subTest(path=path, request=request):
                self.error(self.server.post(path, request), 400, "Validation", words)
        self.error(self.server.post("/tokenize", {"inputs": ["a"] * 51}), 413, "Validation", "max_items")
        self.assertEqual(self.server.post("/tokenize", {"inputs": "a"}, {"Accept": "application/x-safetensors"}).status, 406)


class Rerank(Served):
    def test_the_scores_of_pairs_in_order(self):
        texts = TEXTS + ["", "cat " * 50, TEXTS[0]]
        for raw in (False, True):
            function = {"function": "none"} if raw else {}
            scores = [one[0] for one in self.classify("ranker", text=[["cat", one] for one in texts], **function)]
            order = sorted(range(len(texts)), key=lambda i: (-scores[i], i))
            right = [{"index": i, "score": scores[i]} for i in order]
            told = [{"index": i, "text": texts[i], "score": scores[i]} for i in order]
            request = {"query": "cat", "texts": texts, "raw_scores": raw}
            self.assertEqual(self.ok(self.server.post("/rerank", request)), right)
            self.assertEqual(self.ok(self.server.post("/rerank", dict(request, return_text=True))), told)

    def test_wrong_requests(self):
        for request, words in (({"texts": ["a"]}, '"query" is missing'), ({"query": "a"}, '"texts" is missing'),
                               ({"query": "a", "texts": []}, "the list is empty"), ({"query": "a", "texts": "b"}, "at /texts"),
                               ({"query": "a", "texts": [1]}, "at /texts/0"), ({"query": "a", "documents": []}, '"texts"'),
                               ({"query": "a", "texts": ["cat " * 50], "truncate": False}, "at /texts/0"),
                               ({"query": "a", "texts": ["b"], "model": "sorter"}, "several classes"),
                               ({"query": "a", "texts": ["b"], "model": "vectors"}, "without a classifier")):
            with self.subTest(request=request):
                self.error(self.server.post("/rerank", request), 400, "Validation", words)


class Predict(Served):
    def ranked(self, scores, labels):
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [{"score": scores[i], "label": labels[i]} for i in order]

    def test_the_classes_in_order(self):
        labels = ["no", 'a "b"', "ä"]
        pairs = [["the", "cat sat"], ["a", ""]]
        for raw in (False, True):
            more = {"function": "none"} if raw else {}
            def ask(inputs):
                return self.ok(self.server.post("/predict", {"inputs": inputs, "model": "sorter", "raw_scores": raw}))
            one = [self.ranked(scores, labels) for scores in self.classify("sorter", text=TEXTS, **more)]
            two = [self.ranked(scores, labels) for scores in self.classify("sorter", text=pairs, **more)]
            self.assertEqual(ask(TEXTS[0]), one[0])
            self.assertEqual(ask(TEXTS[:1]), one[0])
            self.assertEqual(ask(pairs[0]), two[0])
            self.assertEqual(ask([[text] for text in TEXTS]), one)
            self.assertEqual(ask([TEXTS[:1], pairs[0], TEXTS[2:], pairs[1]]), [one[0], two[0], one[2], two[1]])
            self.assertEqual(ask(pairs[:1]), two[:1])

    def test_wrong_requests(self):
        for request, words in (({}, '"inputs" is missing'), ({"inputs": []}, "the list is empty"),
                               ({"inputs": ["a", "b", "c"]}, "at most two texts"), ({"inputs": [["a", "b", "c"]]}, "a third"),
                               ({"inputs": [[]]}, "one or two strings"), ({"inputs": [["a"], "b"]}, "cannot be mixed"),
                               ({"inputs": 5}, "list of lists of one or two"),
                               ({"inputs": "a", "parameters": {}}, "raw_scores"),
                               ({"inputs": "cat " * 50, "truncate": False}, "at /inputs")):
            with self.subTest(request=request):
                self.error(self.server.post("/predict", dict({"model": "sorter"}, **request)), 400, "Validation", words)
        self.error(self.server.post("/predict", {"inputs": "a"}), 400, "Validation", "Available: ranker, sorter")


class Info(Tei):
    def info(self, models, *settings):
        server = Server({"models": models}, *ON, *settings)
        self.addCleanup(server.stop)
        return server.get("/info")

    def test_the_model_in_its_words(self):
        with tempfile.TemporaryDirectory() as folder:
            models = write_words(folder)
            for name, kind in (("vectors", {"embedding": {"pooling": "cls"}}),
                               ("ranker", {"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}}),
                               ("sorter", {"classifier": {"id2label": {"0": "no", "1": 'a "b"', "2": "ä"},
                                                          "label2id": {"no": 0, 'a "b"': 1, "ä": 2}}})):
                info = self.ok(self.info(models, "--default-model", name, "--workers", "1"))
                self.assertEqual((info["model_id"], info["served_model_name"], info["model_type"]), (name, name, kind))
                self.assertEqual((info["max_input_length"], info["tokenization_workers"]), (12, 1))
                self.assertIs(info["auto_truncate"], True)
            self.assertEqual(self.ok(self.info(models))["model_id"], "vectors")
            endless = dict(RANDOM, **SIZES, kind="decoder")
            self.assertEqual(self.ok(self.info({"gpt": endless}))["max_input_length"], 2 ** 31 - 1)
        self.error(self.info({"demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}), 404, "Validation", "texts")


class Told(Served):
    def test_other_paths_tell_of_them(self):
        detail = self.problem(self.server.post("/nothing", {}), 404, "not-found")["detail"]
        for path in ("POST /v1/embeddings", "/openapi.json"):
            self.assertIn(path, detail)


class Off(Tei):
    def test_without_the_setting_there_is_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Server({"models": write_words(folder)})
            self.addCleanup(server.stop)
            for path in ("/embed", "/embed_all", "/embed_sparse", "/similarity", "/rerank", "/predict", "/tokenize", "/decode"):
                self.error(server.post(path, {"inputs": "a"}), 404, "Validation", "the setting text_embeddings_inference")
            self.error(server.get("/info"), 404, "Validation", "the setting text_embeddings_inference")
            self.assertEqual(server.post("/", {"inputs": "a"}).status, 405)


if __name__ == "__main__":
    unittest.main()
