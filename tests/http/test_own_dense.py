"""test_own_dense: embeddings of voyage models: a dense layer among the model's own tensors, beside golden hidden states
times its matrix."""
import os
import unittest

import numpy

import golden
from folders import write_folder
from support import FolderCase, Server
from test_fill import LEVELS
from test_whole import write_json

MODEL, SIZE, WIDTH = "qwen3-bidirectional", 40, 24
MATRIX = numpy.float32(numpy.random.default_rng(9).normal(0, 0.3, (SIZE, WIDTH)))
MODULES = [{"path": "", "type": "sentence_transformers.models.Transformer"},
           {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
           {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]


def write_voyage(folder, width):
    """As the published one: the decoder is a member named model, and the layer is not in it."""
    model = write_folder(folder, MODEL, config={"is_causal": None, "use_bidirectional_attention": True,
                                                "architectures": ["Qwen3ForCausalLM"], "num_labels": SIZE},
                         under="model.", **{"linear.weight": MATRIX})
    write_json(folder, "modules.json", MODULES)
    write_json(folder, "1_Pooling/config.json", {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True})
    return model


class OwnDense(FolderCase):
    @classmethod
    def start(cls):
        cls.models = {"voyage": write_voyage(os.path.join(cls.folder, "voyage"), WIDTH),
                      "wide": write_voyage(os.path.join(cls.folder, "wide"), SIZE)}
        cls.models["int8"] = dict(cls.models["voyage"], compute="int8-block")
        return Server({"models": cls.models})

    def ask(self, server, model, **request):
        return self.ok(server.post(f"/v1/models/{model}/encode", request))["outputs"]

    def test_golden_vectors(self):
        for level in LEVELS:
            server = self.server if level is None else Server({"models": self.models}, env={"ATTEND_CPU": level})
            if server is not self.server:
                self.addCleanup(server.kill)
            for case in (case for name, case in golden.cases("encode") if name == MODEL):
                with self.subTest(level=level, case=case["name"]):
                    right = [numpy.mean(numpy.float64(rows) @ MATRIX.T, axis=0)
                             for rows in case["expected"]["last_hidden_state"]]
                    right = [vector / numpy.linalg.norm(vector) for vector in right]
                    got = self.ask(server, "voyage", tokens=case["tokens"])
                    numpy.testing.assert_allclose(got, right, 1e-4, 1e-4)
                    self.assertEqual([self.ask(server, "voyage", tokens=item) for item in case["tokens"]], got)
                    self.assertEqual(self.ask(server, "wide", tokens=case["tokens"]), got)
                    numpy.testing.assert_allclose(self.ask(server, "int8", tokens=case["tokens"]), right, 0, 0.05)
                    few = self.ask(server, "voyage", tokens=case["tokens"], dimensions=8)
                    cut = [numpy.float64(vector[:8]) / numpy.linalg.norm(vector[:8]) for vector in right]
                    numpy.testing.assert_allclose(few, cut, 1e-4, 1e-4)

    def test_the_description(self):
        about = self.ok(self.server.get("/v1/models/voyage"))
        self.assertEqual((about["kind"], about["pool"], about["normalize"]), ("encoder", "mean", True))
        self.assertEqual(about["parameters"], sum(one["parameters"] for one in about["pieces"]))


if __name__ == "__main__":
    unittest.main()
