"""test_clip: CLIP's text tower over HTTP beside a plain computation in float64: the pooled row by both rules, alone
and in company, at each instruction set; which tower of a folder a definition names; tokenizers of such folders."""
import json
import os
import unittest

import numpy as np

import clip
import golden
from folders import read_tensors
from jina import write
from support import FolderCase, Server, attend

# Ends in the middle, twice, and none; the greatest token is 39.
ITEMS = [[3, 39, 5, 7], [39, 2, 39, 4], [9], [7, 7, 4, 39, 7, 12, 39], [4, 5, 6, 8, 30, 38, 12, 11, 10]]


class Clip(FolderCase):
    @classmethod
    def start(cls):
        rng = np.random.default_rng(13)
        text = {"greatest": clip.text_config(), "seven": clip.text_config(eos_token_id=7)}
        cls.said = {**text, "whole": text["greatest"], "old": clip.text_config(eos_token_id=39, hidden_act="quick_gelu")}
        cls.given = {name: clip.tensors(said, rng, name != "seven") for name, said in cls.said.items()}
        cls.models = {}
        for name, given in cls.given.items():
            said = cls.said[name]
            if name in ("whole", "old"):
                # The older form: a second object, whose values and defaults hold.
                two = {"text_config": dict(said, hidden_act="gelu", eos_token_id=2), "text_config_dict": said} if name == "old" \
                    else {"text_config": said}
                said = {"model_type": "clip", "architectures": ["CLIPModel"], "logit_scale_init_value": 2.6592,
                        "projection_dim": 16, "vision_config": {"model_type": "clip_vision_model", "hidden_size": 24}, **two}
                given = {**given, "logit_scale": np.float32([1.5]), "visual_projection.weight": np.zeros((16, 24), np.float32),
                         "vision_model.embeddings.class_embedding": np.zeros(24, np.float32)}
            folder = write(os.path.join(cls.folder, name), said, given)
            cls.models[name] = {"transformer": folder, **({"tower": "text"} if name in ("whole", "old") else {})}
        cls.models["unit"] = dict(cls.models["greatest"], normalize=True)
        return Server({"models": cls.models})

    def near(self, got, right):
        got, right = np.array(got), np.array(right)
        self.assertEqual(got.shape, right.shape)
        self.assertTrue((np.abs(got - right) <= 1e-4 + 1e-4 * np.abs(right)).all(), np.abs(got - right).max())

    def right(self, name, item):
        _, _, outputs, pooled, projected = clip.compute(self.said[name], self.given[name], item)
        return outputs, pooled if projected is None else projected

    def test_the_golden_folder_is_what_it_computes(self):
        folder = os.path.join(golden.MODELS, "clip-text-a")
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file), clip.golden_cases(read_tensors(os.path.join(folder, "model.safetensors"))))

    def test_vectors(self):
        for level in ("portable", "avx2", "avx512"):
            server = Server({"models": self.models}, env={"ATTEND_CPU": level})
            self.addCleanup(server.stop)
            for name in self.said:
                with self.subTest(level=level, model=name):
                    right = [self.right(name, item) for item in ITEMS]
                    all_ = self.ok(server.post(f"/v1/models/{name}/encode", {"tokens": ITEMS}))["outputs"]
                    self.near(all_, [vector for _, vector in right])
                    rows = self.ok(server.post(f"/v1/models/{name}/encode", {"tokens": ITEMS, "pool": "none"}))["outputs"]
                    for i, item in enumerate(ITEMS):
                        self.near(rows[i], right[i][0])
                        alone = self.ok(server.post(f"/v1/models/{name}/encode", {"tokens": [item]}))["outputs"]
                        self.assertEqual(alone[0], all_[i])
        unit = [vector / np.linalg.norm(vector) for _, vector in (self.right("greatest", item) for item in ITEMS)]
        self.near(self.ok(self.server.post("/v1/models/unit/encode", {"tokens": ITEMS}))["outputs"], unit)

    def test_the_pooler_requires_tokens(self):
        rows = [[[0.5] * 24] * 3]
        problem = self.problem(self.server.post("/v1/models/seven/encode", {"embeddings": rows}), 400, "invalid-request", "/pool")
        self.assertIn("requires tokens, not embeddings", problem["detail"])
        self.ok(self.server.post("/v1/models/seven/encode", {"embeddings": rows, "pool": "last"}))

    def refused(self, definition, words):
        path = os.path.join(self.folder, "refused.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"models": {"m": definition}}, file)
        status, _, errors = attend("check", "--config", path)
        self.assertNotEqual(status, 0)
        self.assertIn(words, errors)

    def test_which_tower(self):
        folder = self.models["whole"]["transformer"]
        self.refused({"transformer": folder, "tower": "image"}, 'tower: "image" is not one of text, vision')
        self.refused({"transformer": folder, "tower": "vision"}, "vision_model.encoder.layers.0")
        self.refused({"transformer": folder}, "vision_model.encoder.layers.0")
        self.refused(dict(self.models["seven"], tower="text"), "tower: a model of model_type clip_text_model has only one")
        self.refused({"transformer": {"random": {"seed": 1}}, "tower": "text", "kind": "encoder", "layers": 1, "width": 8,
                      "heads": 1, "feed_forward": 8, "vocabulary": 9}, "tower: requires a config.json")
        self.refused(dict(self.models["seven"], end=[3, 4]), "end: the pooler of this model needs one token")

    # --- tokenizers ---

    def tokenizer_folder(self, name, files):
        said = clip.text_config(eos_token_id=29, bos_token_id=28)
        folder = write(os.path.join(self.folder, name), said, clip.tensors(said, np.random.default_rng(3), True))
        for file_name, text in files.items():
            with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
                file.write(text)
        return {"transformer": folder}

    def test_tokenizer(self):
        """tokenizer.json as CLIP's folders have it: the end of a word is marked, texts are lower-case."""
        words = list("abcst") + [c + "</w>" for c in "abcst"] + ["ca", "cat</w>", "sa", "sat</w>", "!", "!</w>", "'", "'</w>", "'s</w>"]
        vocab = {word: i for i, word in enumerate(words)}
        vocab.update({"<|startoftext|>": 28, "<|endoftext|>": 29})
        merges = ["c a", "ca t</w>", "s a", "sa t</w>", "' s</w>"]
        added = [{"id": i, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": i == 28,
                  "special": True} for word, i in (("<|startoftext|>", 28), ("<|endoftext|>", 29))]
        pattern = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
        whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
                 "normalizer": {"type": "Sequence", "normalizers": [
                     {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}]},
                 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                     {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": True},
                     {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
                 "post_processor": {"type": "RobertaProcessing", "sep": ["<|endoftext|>", 29], "cls": ["<|startoftext|>", 28],
                                    "trim_offsets": False, "add_prefix_space": False},
                 "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                 "model": {"type": "BPE", "dropout": None, "unk_token": "<|endoftext|>", "continuing_subword_prefix": "",
                           "end_of_word_suffix": "</w>", "fuse_unk": False, "vocab": vocab, "merges": merges}}
        models = {"json": self.tokenizer_folder("json", {"tokenizer.json": json.dumps(whole)})}
        server = Server({"models": models})
        self.addCleanup(server.stop)
        ids = lambda text: [28] + [vocab[word] for word in text] + [29]
        for text, pieces in (("Cat  SAT!", ["cat</w>", "sat</w>", "!</w>"]), ("cats", ["ca", "t", "s</w>"]),
                             ("a cat's", ["a</w>", "cat</w>", "'s</w>"])):
            got = self.ok(server.post("/v1/models/json/encode", {"text": [text], "return_tokens": True}))
            self.assertEqual(got["tokens"], [ids(pieces)])


if __name__ == "__main__":
    unittest.main()
