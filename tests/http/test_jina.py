"""test_jina: JinaBERT over HTTP beside its published code in float64: long items, alone and in company, at each
instruction set; classifiers; and folders as they are published."""
import json
import os
import unittest

import numpy as np

import golden
import jina
from folders import read_tensors
from support import FolderCase, Server

LENGTHS = (1, 7, 16, 90, 300)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "mat"]


class Jina(FolderCase):
    @classmethod
    def start(cls):
        rng = np.random.default_rng(11)
        cls.said = {"twelve": jina.config(num_attention_heads=12), "eight": jina.config(num_attention_heads=8),
                    "ranks": jina.config(architectures=["JinaBertForSequenceClassification"], num_labels=1,
                                         id2label={"0": "LABEL_0"}, num_attention_heads=12)}
        cls.given = {name: jina.tensors(said, rng, int(name == "ranks")) for name, said in cls.said.items()}
        cls.models = {name: {"transformer": jina.write(os.path.join(cls.folder, name), cls.said[name], given)}
                      for name, given in cls.given.items()}
        cls.tokens = [[int(t) for t in rng.integers(0, 40, n)] for n in LENGTHS]
        cls.sentences = jina.write(os.path.join(cls.folder, "sentences"), cls.said["twelve"], cls.given["twelve"])
        for name, text in {"modules.json": json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                                       {"idx": 1, "name": "1", "path": "1_Pooling",
                                                        "type": "sentence_transformers.models.Pooling"}]),
                           "1_Pooling/config.json": json.dumps({"word_embedding_dimension": 24, "pooling_mode_mean_tokens": True}),
                           "vocab.txt": "\n".join(WORDS) + "\n"}.items():
            os.makedirs(os.path.dirname(os.path.join(cls.sentences, name)), exist_ok=True)
            with open(os.path.join(cls.sentences, name), "w", encoding="utf-8") as file:
                file.write(text)
        return Server({"models": {**cls.models, "sentences": {"transformer": cls.sentences}}})

    def near(self, got, right):
        got, right = np.array(got), np.array(right)
        self.assertEqual(got.shape, right.shape)
        self.assertTrue((np.abs(got - right) <= 1e-4 + 1e-4 * np.abs(right)).all(), np.abs(got - right).max())

    def test_the_golden_folders_are_what_it_computes(self):
        for name, (said, _) in jina.GOLDEN.items():
            folder = os.path.join(golden.MODELS, name)
            with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
                stored = json.load(file)
            self.assertEqual(json.dumps(stored), json.dumps(
                jina.golden_cases(name, said, read_tensors(os.path.join(folder, "model.safetensors")))))

    def test_rows(self):
        for level in ("portable", "avx2", "avx512"):
            server = Server({"models": self.models}, env={"ATTEND_CPU": level})
            self.addCleanup(server.stop)
            for name in ("twelve", "eight"):
                with self.subTest(level=level, model=name):
                    right = [jina.compute(self.said[name], self.given[name], item) for item in self.tokens]
                    asked = {"tokens": self.tokens, "return_attention": ["encoder.1.self"]}
                    all_ = self.ok(server.post(f"/v1/models/{name}/encode", asked))
                    for i, (states, weights, *_) in enumerate(right):
                        self.near(all_["outputs"][i], states[-1])
                        self.near(all_["attention"]["encoder.1.self"][i], weights[1])
                        alone = self.ok(server.post(f"/v1/models/{name}/encode", {"tokens": [self.tokens[i]]}))
                        self.assertEqual(alone["outputs"][0], all_["outputs"][i])

    def test_a_classifier_reads_the_pooler(self):
        got = self.ok(self.server.post("/v1/models/ranks/classify", {"tokens": self.tokens, "function": "none"}))
        self.near(got["outputs"], [jina.compute(self.said["ranks"], self.given["ranks"], item)[3] for item in self.tokens])

    def test_a_sentence(self):
        """As in a folder of sentence-transformers: the mean of all rows."""
        got = self.ok(self.server.post("/v1/models/sentences/encode", {"text": ["the cat", "the cat sat the mat"]}))
        items = [[2, 4, 5, 3], [2, 4, 5, 6, 4, 7, 3]]
        self.near(got["outputs"], [jina.compute(self.said["twelve"], self.given["twelve"], item)[0][-1].mean(0) for item in items])

    def test_the_context_length(self):
        said = self.ok(self.server.get("/v1/models/twelve"))
        self.assertEqual((said["family"], said["positions"]), ("jina_bert", 8192))


if __name__ == "__main__":
    unittest.main()
