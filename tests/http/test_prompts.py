"""test_prompts: what stands in front of texts. A prompt and a text are the bits of the two as one text; rows that a
model leaves out of its vectors are left out of a mean that is computed anew."""
import json
import os
import re
import shutil
import tempfile
import unittest

import numpy

from support import Case, Raw, Server, attend, head_of, wait_until
from test_openai import RANDOM, SIZES, WORDS
from test_whole import GOLDEN, write_json

PROMPTS = {"query": "the cat ", "passage": "a mat", "none": ""}
TEXTS = ["sat on a mat .", "é", "cat"]
ON = ("--text-embeddings-inference", "true", "--default-model", "m")


def prompted_folder(folder, usual=None, prompts=PROMPTS, **pooling):
    """A golden model with prompts, as sentence-transformers save it."""
    shutil.copytree(os.path.join(GOLDEN, "bert-b"), folder, dirs_exist_ok=True)
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(WORDS) + "\n")
    write_json(folder, "modules.json", [{"path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
                                        for i, name in enumerate(("Transformer", "Pooling"))])
    write_json(folder, "1_Pooling/config.json", {"word_embedding_dimension": 24, "pooling_mode": "mean", **pooling})
    write_json(folder, "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": usual})
    return folder


class Stopping(Case):
    def test_texts_that_are_being_cut_are_cut_off(self):
        """A stopping server asks no longer than drain_ms for tokens, either."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = prompted_folder(folder, prompts={"long": "the cat " * 1900})
        server = Server({"models": {"m": {"transformer": path}}}, *ON, "--drain-ms", "50", "--drain-delay-ms", "0",
                        "--max-pairs", str(10 ** 15), "--max-items", "1000000")
        self.addCleanup(server.kill)
        body = json.dumps({"text": [""] * 60000, "prompt_name": "long", "truncate": 5})
        with Raw(server) as raw:
            raw.send(head_of("/v1/models/m/encode", len(body)) + body.encode())
            wait_until(lambda: re.search(r"^attend_running 1$", server.get("/metrics").body.decode(), re.M))
            server.signal()
            self.assertEqual(raw.answer().status, 503)
        self.assertEqual(server.wait(), 3, server.stderr())


class Prompts(Case):
    def folder(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def start(self, definition=None, *args, **folder):
        self.path = prompted_folder(self.folder(), **folder)
        server = Server({"models": {"m": {"transformer": self.path, **(definition or {})}}}, *ON, *args)
        self.addCleanup(server.stop)
        self.post = lambda path, **request: self.ok(server.post(path, request))
        self.encode = lambda **request: self.post("/v1/models/m/encode", **request)
        return server

    def vectors(self, texts, **more):
        return self.encode(text=texts, **more)["outputs"]

    def with_prompt(self, prompt, texts=TEXTS, **more):
        """Vectors of prompt and text as one."""
        return self.vectors([prompt + text for text in texts], prompt="", **more)

    def test_the_prompt_and_the_text_as_one(self):
        self.start()
        plain = self.with_prompt("")
        self.assertEqual(self.vectors(TEXTS), plain)
        self.assertEqual(self.vectors(TEXTS, prompt_name="none"), plain)
        for name in ("query", "passage"):
            right = self.with_prompt(PROMPTS[name])
            self.assertNotEqual(right, plain)
            self.assertEqual(self.vectors(TEXTS, prompt_name=name), right)
            self.assertEqual(self.vectors(TEXTS, prompt=PROMPTS[name]), right)
            self.assertEqual(self.vectors(TEXTS[0], prompt_name=name), right[0])
            got = self.post("/v1/embeddings", input=TEXTS, model="m", prompt_name=name)
            self.assertEqual([one["embedding"] for one in got["data"]], right)
            whole = self.encode(text=[PROMPTS[name] + text for text in TEXTS])["usage"]
            self.assertEqual(got["usage"]["prompt_tokens"], whole["tokens"])
            got = self.post("/v1/embeddings", input=TEXTS, model="m", prompt=PROMPTS[name], prompt_name=None)
            self.assertEqual([one["embedding"] for one in got["data"]], right)
            self.assertEqual(self.post("/embed", inputs=TEXTS, normalize=False, prompt_name=name), right)
        self.assertEqual(self.post("/embed", inputs=TEXTS, normalize=False, prompt_name=""), plain)
        self.assertEqual(self.vectors(TEXTS, prompt_name=""), plain)
        rows = self.vectors(TEXTS[0], prompt_name="query", pool="none")
        self.assertEqual(rows, self.vectors(PROMPTS["query"] + TEXTS[0], pool="none"))

    def test_places_are_those_of_the_text(self):
        self.start()
        text = "É sat"
        bare = self.encode(text=text, return_tokens=True)
        got = self.encode(text=text, return_tokens=True, prompt_name="query")
        self.assertEqual(got["strings"], ["[CLS]", "the", "cat", "[UNK]", "sat", "[SEP]"])
        for places in ("offsets", "byte_offsets"):
            self.assertEqual(got[places], [[0, 0]] * 3 + bare[places][1:])

    def test_the_usual_one(self):
        server = self.start(usual="query")
        described = self.ok(server.get("/v1/models/m"))
        self.assertEqual((described["prompts"], described["prompt"]), (PROMPTS, PROMPTS["query"]))
        right = self.with_prompt(PROMPTS["query"])
        self.assertEqual(self.vectors(TEXTS), right)
        self.assertEqual(self.vectors(TEXTS, prompt=""), self.with_prompt(""))
        self.assertEqual(self.post("/embed", inputs=TEXTS, normalize=False), right)
        ids = self.encode(text=TEXTS[0], return_tokens=True, prompt="")["tokens"]
        self.assertEqual(self.encode(tokens=ids)["outputs"], self.vectors(TEXTS[0], prompt=""))
        told = self.post("/v1/models/m/tokenize", text=TEXTS[0])
        self.assertEqual(told["tokens"], ids)

    def test_names_without_a_text(self):
        """What sentence-transformers write of a model that has no prompts."""
        for prompts, usual in (({"query": None, "document": ""}, "query"), ({}, "document")):
            with self.subTest(prompts=prompts):
                server = self.start(usual=usual, prompts=prompts)
                self.assertEqual(self.vectors(TEXTS), self.with_prompt(""))
                server.stop()

    def test_the_definition_chooses(self):
        for said, prompt in (("passage", PROMPTS["passage"]), ("on ", "on "), ("", "")):
            with self.subTest(said=said):
                server = self.start({"prompt": said}, usual="query")
                self.assertEqual(self.ok(server.get("/v1/models/m"))["prompt"], prompt)
                self.assertEqual(self.vectors(TEXTS), self.with_prompt(prompt))
                server.stop()

    def test_rows_of_the_prompt_are_left_out(self):
        server = self.start(usual="query", include_prompt=False)
        prompt = len(self.encode(text=PROMPTS["query"].strip(), prompt="", return_tokens=True)["tokens"]) - 1
        rows = self.vectors(TEXTS, pool="none")
        for pool in ("mean", "max", "mean_sqrt_len", "weighted_mean", "cls", "last"):
            for item, vector in zip(rows, self.vectors(TEXTS, pool=pool)):
                left, numbers = numpy.array(item)[prompt:], numpy.arange(prompt, len(item)) + 1
                right = {"mean": left.mean(0), "max": left.max(0), "mean_sqrt_len": left.sum(0) / len(left) ** 0.5,
                         "weighted_mean": numbers @ left / numbers.sum(), "cls": item[0], "last": item[-1]}[pool]
                numpy.testing.assert_allclose(vector, right, rtol=1e-5, atol=1e-6)
        self.assertEqual(self.vectors(TEXTS, prompt=""), self.with_prompt(""))
        alone = [self.vectors([text])[0] for text in TEXTS]
        self.assertEqual(self.vectors(TEXTS), alone)
        answer = server.post("/v1/models/m/encode", {"text": TEXTS, "truncate": 3})
        self.refused(answer, "/text/0", "nothing is left")
        bare = self.vectors(TEXTS, prompt=" ", special_tokens=False, pool="mean")
        self.assertEqual(bare, self.vectors(TEXTS, prompt="", special_tokens=False))

    def test_ranking(self):
        """Each with its prompt, or the default one."""
        query, documents = "cat", ["a", "the cat sat", "é"]
        for prompts, of_query, of_document in (
                ({"query": "the ", "document": "a ", "passage": "on "}, "the ", "a "),
                ({"query": "the ", "passage": "on ", "corpus": "a "}, "the ", "on "),
                ({"query": "the ", "corpus": "a "}, "the ", "a "), ({"sat": "sat "}, "sat ", "sat "),
                ({"query": None, "document": None, "sat": "sat "}, "", "")):
            with self.subTest(prompts=prompts):
                usual = "sat" if "sat" in prompts else None
                server = self.start(usual=usual, prompts=prompts, include_prompt=False)
                first, *others = self.vectors([query], prompt=of_query, normalize=True) + \
                    self.vectors(documents, prompt=of_document, normalize=True)
                scores = {r["index"]: r["relevance_score"] for r in
                          self.post("/v1/rerank", model="m", query=query, documents=documents)["results"]}
                numpy.testing.assert_allclose([scores[i] for i in range(3)], numpy.array(others) @ first, atol=1e-6)
                server.stop()

    def test_a_query_that_is_cut_within_its_prompt(self):
        server = self.start(prompts={"query": "the cat on a mat"}, include_prompt=False)
        answer = server.post("/v1/rerank", {"model": "m", "query": "sat", "documents": ["cat", "a"], "truncate": 5})
        self.assertEqual((answer.status, answer.json["error"]["param"]), (400, "query"), answer)

    def test_pairs_have_it_in_front_of_the_first(self):
        definition = dict(RANDOM, **SIZES, kind="encoder", classes=1, tokenizer=prompted_folder(self.folder()))
        self.start(dict(definition, prompt=PROMPTS["query"]))
        pairs = [["cat", text] for text in TEXTS]
        right = self.post("/v1/models/m/classify", text=[[PROMPTS["query"] + a, b] for a, b in pairs], prompt="")
        self.assertEqual(self.post("/v1/models/m/classify", text=pairs)["outputs"], right["outputs"])
        (told,), (bare,) = (self.encode(text=pairs[:1], return_tokens=True, **more)["offsets"]
                            for more in ({}, {"prompt": ""}))
        self.assertEqual(told, [[0, 0]] * 3 + bare[1:])
        scores = self.post("/v1/rerank", model="m", query="cat", documents=TEXTS)["results"]
        self.assertEqual({one["index"]: [one["relevance_score"]] for one in scores}, dict(enumerate(right["outputs"])))

    def refused(self, answer, pointer, *words):
        self.assertEqual((answer.status, answer.json["pointer"]), (400, pointer), answer)
        for word in words:
            self.assertIn(word, answer.json["detail"])

    def test_errors(self):
        server = self.start()
        for request, pointer, words in (
                ({"text": "a", "prompt_name": "querry"}, "/prompt_name", 'unknown prompt name'),
                ({"text": "a", "prompt_name": "query\0"}, "/prompt_name", "unknown prompt name"),
                ({"text": "a", "prompt_name": "query", "prompt": "x"}, "/prompt_name", "send one"),
                ({"text": "a", "prompt": 1}, "/prompt", "prompt must be a string"),
                ({"tokens": [1], "prompt": "a"}, "/prompt", 'prompt requires texts'),
                ({"tokens": [1], "prompt_name": "query"}, "/prompt_name", 'prompt_name requires texts')):
            with self.subTest(request=request):
                self.refused(server.post("/v1/models/m/encode", request), pointer, words)
        answer = server.post("/v1/embeddings", {"input": "a", "model": "m", "prompt_name": "x"})
        self.assertEqual((answer.status, answer.json["error"]["param"]), (400, "prompt_name"), answer)
        answer = server.post("/embed", {"inputs": "a", "prompt_name": "x"})
        self.assertEqual(answer.status, 400, answer)
        self.assertIn("at /prompt_name", answer.json["error"])

    def test_files_that_are_wrong(self):
        def refused(definition, document, *words):
            path = prompted_folder(self.folder())
            if document is not None:
                write_json(path, "config_sentence_transformers.json", document)
            config = os.path.join(path, "attend.json")
            write_json(path, "attend.json", {"models": {"m": {"transformer": path, **definition}}})
            status, _, told = attend("check", "--config", config)
            self.assertEqual(status, 2, told)
            for word in words:
                self.assertIn(word, told)
        name = "config_sentence_transformers.json"
        refused({}, [], name, "is not an object")
        refused({}, {"prompts": []}, name, "prompts: needs an object")
        refused({}, {"prompts": {"a": 1}}, name, "prompts: a: needs a text")
        refused({}, {"prompts": {"a": "b" * 20000}}, name, "prompts: a: longer than 16384 bytes")
        refused({}, {"prompts": {str(i): "" for i in range(257)}}, name, "prompts: more than 256")
        refused({"prompt": "b" * 20000}, None, "prompt: longer than 16384 bytes")
        refused({}, {"prompts": {"a": ""}, "default_prompt_name": 1}, name, "default_prompt_name: needs a name")
        refused({}, {"prompts": {"a": ""}, "default_prompt_name": "b"}, name, '"b" is not among the prompts')
        refused({"prompt": 1}, None, "prompt: needs a text")
        refused({"prompt": "a", "tokenizer": False}, None, "prompt: the model has no tokenizer")


if __name__ == "__main__":
    unittest.main()
