"""test_pairs: drawn models of the kin of BART, served by the program, beside their own code in float64.

The golden models have BART and Marian as they are published; these have what no golden one does: norms
before the branches, positions of other kinds, tables of tokens that are apart, and every activation.
"""
import json
import os
import shutil
import tempfile
import unittest

import numpy as np

import families
import pairs
from support import Case, Server

LOGS, ROWS = 2e-5, 2e-5  # of log probabilities; of rows, of the largest number
MODELS = {model_type: {"model_type": model_type} for model_type in pairs.KIN}
MODELS["marian-apart"] = {"model_type": "marian", "apart": 33}
MODELS["mbart-relu"] = {"model_type": "mbart", "activation_function": "relu", "scale_embedding": False}
MODELS["pegasus-gelu"] = {"model_type": "pegasus", "activation_function": "gelu", "d_model": 36}


class Pairs(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.models = {}
        for seed, (name, how) in enumerate(MODELS.items()):
            file, config = pairs.make(seed=seed, **how)
            os.mkdir(os.path.join(cls.folder, name))
            families.write_single(os.path.join(cls.folder, name), "model", file)
            with open(os.path.join(cls.folder, name, "config.json"), "w") as out:
                json.dump(config, out)
            cls.models[name] = pairs.Pair(file, config)
        cls.server = Server({"models": {name: {"transformer": name} for name in MODELS}},
                            folder=cls.folder)
        cls.addClassCleanup(cls.server.kill)

    def texts(self, name, rng):
        config = self.models[name].config
        targets = config.get("decoder_vocab_size", config["vocab_size"])
        return [(rng.integers(0, config["vocab_size"], n).tolist(),
                 rng.integers(0, targets, m).tolist()) for n, m in ((7, 9), (1, 1), (21, 4), (3, 20))]

    def test_scores(self):
        for name, model in self.models.items():
            texts = self.texts(name, np.random.default_rng(5))
            answer = self.ok(self.server.post(f"/v1/models/{name}/score", {
                "tokens": [source for source, _ in texts], "targets": [t for _, t in texts]}))
            for item, (source, targets) in enumerate(texts):
                with self.subTest(model=name, item=item):
                    right = model.score(source, targets)
                    worst = np.abs(np.array(answer["log_probabilities"][item]) - right)
                    self.assertLessEqual((worst / (1 + np.abs(right))).max(), LOGS)

    def test_encoders(self):
        for name, model in self.models.items():
            sources = [source for source, _ in self.texts(name, np.random.default_rng(6))]
            answer = self.ok(self.server.post(f"/v1/models/{name}/encode", {"tokens": sources}))
            for item, source in enumerate(sources):
                with self.subTest(model=name, item=item):
                    right = model.encode(source)
                    worst = np.abs(np.array(answer["outputs"][item]) - right).max()
                    self.assertLessEqual(worst, ROWS * np.abs(right).max())

    def test_what_is_generated_is_what_scores_say(self):
        for name, model in self.models.items():
            sources = [source for source, _ in self.texts(name, np.random.default_rng(7))]
            for beams in (1, 3):
                answer = self.ok(self.server.post(f"/v1/models/{name}/generate", {
                    "tokens": sources, "max_tokens": 6, "beams": beams}))
                for item, (source, [sequence]) in enumerate(zip(sources, answer["sequences"])):
                    with self.subTest(model=name, beams=beams, item=item):
                        right = model.score(source, sequence["tokens"])
                        worst = np.abs(np.array(sequence["log_probabilities"]) - right)
                        self.assertLessEqual((worst / (1 + np.abs(right))).max(), LOGS)


if __name__ == "__main__":
    unittest.main()
