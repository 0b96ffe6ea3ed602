"""test_whole: whole models from their folders: what attend check and attend inspect say of them, and a
start in which memory runs out at each place where it may."""
import json
import os
import re
import shutil
import struct
import tempfile
import unittest

import numpy

import torch_file
from folders import read_tensors
from support import MODE, ROOT, Case, Server, attend, preloaded, safetensors_bytes

GOLDEN = os.path.join(ROOT, "tests", "golden", "models")
TRANSLATOR = os.path.join(ROOT, "tests", "example", "translate")
STRIDE = 17 if MODE == "release" else 59
DRAWN = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 16,
         "heads": 2, "feed_forward": 24, "vocabulary": 30}


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def sentence_folder(folder, base="bert-b", width=24):
    """A golden model as sentence-transformers save it: pooled, through a dense layer, normalised."""
    shutil.copytree(os.path.join(GOLDEN, base), folder, dirs_exist_ok=True)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"),
             ("3_Normalize", "Normalize")]
    write_json(folder, "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)])
    write_json(folder, "1_Pooling/config.json",
               {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True})
    write_json(folder, "2_Dense/config.json",
               {"in_features": width, "out_features": 4, "bias": True,
                "activation_function": "torch.nn.modules.activation.Tanh"})
    with open(os.path.join(folder, "2_Dense/model.safetensors"), "wb") as file:
        file.write(safetensors_bytes({"linear.weight": ([4, width], [0.125] * 4 * width),
                                      "linear.bias": ([4], [1.0] * 4)}))


def classifier_folder(folder, base="bert-b", width=24):
    """A golden model with a classifier of two classes behind its pooler."""
    shutil.copytree(os.path.join(GOLDEN, base), folder)
    tensors = {name: (list(x.shape), x.ravel().tolist())
               for name, x in read_tensors(os.path.join(folder, "model.safetensors")).items()}
    tensors.update({"classifier.weight": ([2, width], [0.5] * 2 * width), "classifier.bias": ([2], [0.0, 1.0])})
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(safetensors_bytes(tensors))
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    write_json(folder, "config.json", {**config, "architectures": ["BertForSequenceClassification"],
                                       "id2label": {"0": "no", "1": "yes"}})


class Whole(Case):
    def setUp(self):
        self.folder, self.library = preloaded("failmalloc.c")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def check(self, models, **options):
        write_json(self.folder, "attend.json", {"models": models})
        return attend("check", "--config", "attend.json", cwd=self.folder, **options)

    def test_every_family_is_told(self):
        models = {name: {"transformer": os.path.join(GOLDEN, name)}
                  for name in sorted(os.listdir(GOLDEN))}
        status, _, err = self.check({**models, "drawn": DRAWN})
        self.assertEqual(status, 0, err)
        for what in ("bert-b: kind=encoder layers=2 heads=3 width=24 feed_forward=96 vocabulary=64",
                     "t5-b: kind=seq2seq layers=3", "family=vit", "family=marian", "family=d2l",
                     "bart-b: kind=seq2seq", "drawn: kind=encoder"):
            self.assertIn(what, err)

    def test_one_mistake_is_one_line(self):
        status, _, err = self.check({"b": {"transformer": os.path.join(GOLDEN, "bert-b"),
                                           "vocabulary": 5}})
        self.assertEqual(status, 2)
        self.assertIn("attend: model b: ", err)
        self.assertIn("vocabulary: 5 in the configuration, but tensor", err)

    def test_shards_and_archives(self):
        """The same numbers make the same model, in files of every kind."""
        source = os.path.join(GOLDEN, "distilbert-b")
        tensors = read_tensors(os.path.join(source, "model.safetensors"))
        for name in ("npz", "shards", "torch", "torch-shards"):
            os.mkdir(os.path.join(self.folder, name))
            shutil.copy(os.path.join(source, "config.json"), os.path.join(self.folder, name))
        numpy.savez(os.path.join(self.folder, "npz", "weights.npz"),
                    **{name: numpy.asfortranarray(x) if i % 2 else x
                       for i, (name, x) in enumerate(tensors.items())})
        index = {}
        for i in range(2):
            file, some = f"model-{i}.safetensors", {}
            for name in list(tensors)[i::2]:
                some[name] = (list(tensors[name].shape), tensors[name].ravel().tolist())
                index[name] = file
            with open(os.path.join(self.folder, "shards", file), "wb") as out:
                out.write(safetensors_bytes(some))
        write_json(self.folder, "shards/model.safetensors.index.json", {"weight_map": index})
        torch_file.write_arrays(os.path.join(self.folder, "torch", "pytorch_model.bin"), tensors)
        index = {}
        for i in range(2):
            file, some = f"pytorch_model-{i}.bin", {name: tensors[name] for name in list(tensors)[i::2]}
            torch_file.write_arrays(os.path.join(self.folder, "torch-shards", file), some)
            index.update(dict.fromkeys(some, file))
        write_json(self.folder, "torch-shards/pytorch_model.bin.index.json", {"weight_map": index})
        status, _, err = self.check({"whole": {"transformer": source}, "npz": {"transformer": "npz"},
                                     "shards": {"transformer": "shards"}, "torch": {"transformer": "torch"},
                                     "torch-shards": {"transformer": "torch-shards"}})
        self.assertEqual(status, 0, err)
        digests = re.findall(r"sha256=(\w+)", err)
        self.assertEqual((len(digests), len(set(digests))), (5, 1), err)
        with open(os.path.join(self.folder, "shards", "pytorch_model.bin"), "wb") as out:  # is not read
            out.write(b"no checkpoint")
        self.assertEqual(self.check({"shards": {"transformer": "shards"}})[0], 0)

    def test_inspect(self):
        folder = os.path.join(self.folder, "mini")
        sentence_folder(folder)
        status, out, err = attend("inspect", "mini", cwd=self.folder)
        self.assertEqual((status, err), (0, ""))
        said = out.decode()
        for what in ("model: family bert, kind encoder: layers 2, heads 3, width 24",
                     "pool mean, then a dense layer, normalize", 'layers begin with "bert."',
                     "ignored: bert.embeddings.position_ids", " numbers: 0.07 MB as stored, 0.07 MB",
                     'its definition: {"transformer": "mini"}'):
            self.assertIn(what, said)
        _, out, _ = attend("inspect", TRANSLATOR, cwd=self.folder)  # a file of 16 bits
        self.assertIn("226730 numbers: 0.45 MB as stored, 0.91 MB as float32", out.decode())
        write_json(self.folder, "mute/config.json", {"model_type": "transformer", "heads": 4})
        shutil.copy(os.path.join(TRANSLATOR, "model.safetensors"), os.path.join(self.folder, "mute"))
        _, out, _ = attend("inspect", "mute", cwd=self.folder)
        self.assertIn("note: no decoder start token: /score and /generate are not available; "
                      "set \"begin\" in the definition\n", out.decode())
        # the reason for refused modules is printed, and a printed definition was tried
        with open(os.path.join(folder, "modules.json"), encoding="utf-8") as file:
            modules = file.read()
        write_json(folder, "modules.json", {})
        _, out, _ = attend("inspect", "mini", cwd=self.folder)
        self.assertIn("note: it cannot be served as a model: mini: modules.json: is not a list",
                      out.decode())
        with open(os.path.join(folder, "modules.json"), "w", encoding="utf-8") as file:
            file.write(modules)
        plain = os.path.join(GOLDEN, "torch-encoder-b")
        _, out, _ = attend("inspect", plain, "--heads", "8", cwd=self.folder)
        self.assertIn(f'its definition: {{"transformer": "{plain}"}}', out.decode())
        # the model may lie in a folder of its own
        inner = os.path.join(folder, "0_Transformer")
        os.mkdir(inner)
        for name in ("config.json", "model.safetensors"):
            os.rename(os.path.join(folder, name), os.path.join(inner, name))
        with open(os.path.join(folder, "modules.json"), encoding="utf-8") as file:
            modules = json.load(file)
        modules[0]["path"] = "0_Transformer"
        write_json(folder, "modules.json", modules)
        _, again, _ = attend("inspect", "mini", cwd=self.folder)
        self.assertIn("pool mean, then a dense layer", again.decode())
        layers = json.loads(again.decode()[again.decode().index("\n{\n"):])["models"]
        status, _, err = self.check(layers)
        self.assertEqual(status, 0, err)

    def test_inspect_says_why_not(self):
        folder = os.path.join(self.folder, "m")
        shutil.copytree(os.path.join(GOLDEN, "bert-b"), folder)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        write_json(folder, "config.json", {**config, "position_embedding_type": "relative_key"})
        _, out, _ = attend("inspect", "m", cwd=self.folder)
        self.assertIn("note: it cannot be served as a model: ", out.decode())
        self.assertIn("position_embedding_type: has an unsupported value", out.decode())
        shutil.copy(os.path.join(GOLDEN, "torch-encoder-b", "model.safetensors"), folder)
        os.unlink(os.path.join(folder, "config.json"))
        _, out, _ = attend("inspect", "m", cwd=self.folder)
        self.assertIn("heads: required", out.decode())
        _, out, _ = attend("inspect", "m", "--heads", "3", cwd=self.folder)
        self.assertIn("model: family plain, kind encoder: layers 3, heads 3", out.decode())
        self.assertIn('its definition: {"transformer": "m", "heads": 3}', out.decode())

    def many_allocations(self, run, good):
        """`run(env)` gives (status, standard error); good(…) of the run in which nothing failed. Most of
        the allocations are Jansson's, and much like each other: one of so many is made to fail."""
        control, seen = os.path.join(self.folder, "control"), set()
        env = {"LD_PRELOAD": self.library, "FAILMALLOC": control, "ASAN_OPTIONS":
               os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + ":verify_asan_link_order=0"}
        n = 0
        while True:
            n += STRIDE
            with open(control, "wb") as file:
                file.write(struct.pack("<qqq", n, 0, 0))
            status, err = run(env)
            with open(control, "rb") as file:
                failed = struct.unpack("<qqq", file.read())[2]
            self.assertIn(status, (0, 1), (n, err))
            if status:
                seen.add(err)
                self.assertNotIn("Sanitizer", err)
            if not failed:
                self.assertTrue(good(status), (n, err))
                return seen
            self.assertLess(n, 16000, "never comes to an end")

    @unittest.skipUnless(MODE in ("release", "asan"), "other sanitizers must be loaded first")
    def test_no_memory(self):
        folder = os.path.join(self.folder, "mini")
        sentence_folder(folder)
        classifier_folder(os.path.join(self.folder, "sorts"))
        models = {"mini": {"transformer": "mini", "heads": 3}, "drawn": dict(DRAWN, classes=2),
                  "sorts": {"transformer": "sorts", "layers": 1},
                  "pair": dict(DRAWN, kind="seq2seq", layers=1),
                  "bart": {"transformer": os.path.join(GOLDEN, "bart-b"), "layers": 1}}

        def run(env):
            status, _, err = self.check(models, env=env)
            return status, err
        seen = self.many_allocations(run, lambda status: status == 0)
        self.assertGreater(len(seen), 10)
        for err in seen:
            self.assertRegex(err, "no memory|out of memory|Cannot allocate memory")


class Positions(Case):
    def test_how_scores_depend_on_distances(self):
        kinds = {"deberta-v3-a": "disentangled", "jina-bert-a": "alibi", "mpnet-a": None}
        server = Server({"models": {name: {"transformer": os.path.join(GOLDEN, name)} for name in kinds}})
        for name, kind in kinds.items():
            self.assertEqual(server.get(f"/v1/models/{name}").json.get("position_scores"), kind, name)
        server.stop()


class Dense(Case):
    """What stands behind the pooling, computed anew from the rows."""

    def test_two_layers_with_residuals(self):
        root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, root)
        width, out, chance = 24, 5, numpy.random.default_rng(3)
        sentence_folder(root)
        layers = [(width, width, True, "activation.Tanh"), (out, width, False, "linear.Identity")]
        kinds = ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
        write_json(root, "modules.json", [{"path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
                                          for i, kind in enumerate(kinds)])
        weights = []
        for i, (rows, columns, bias, act) in enumerate(layers, 2):
            tensors = {"linear.weight": chance.normal(size=(rows, columns)).astype("<f4")}
            if bias:
                tensors["linear.bias"] = chance.normal(size=rows).astype("<f4")
            if rows != columns:
                tensors["residual.weight"] = chance.normal(size=(rows, columns)).astype("<f4")
            weights.append(tensors)
            write_json(root, f"{i}_Dense/config.json", {
                "in_features": columns, "out_features": rows, "bias": bias, "use_residual": True,
                "activation_function": "torch.nn.modules." + act})
        torch_file.write_arrays(os.path.join(root, "2_Dense", "pytorch_model.bin"), weights[0])
        os.remove(os.path.join(root, "2_Dense", "model.safetensors"))
        with open(os.path.join(root, "3_Dense", "model.safetensors"), "wb") as file:
            file.write(safetensors_bytes({n: (list(x.shape), x.ravel().tolist()) for n, x in weights[1].items()}))
        server = Server({"models": {"m": {"transformer": root}}})
        self.addCleanup(server.stop)
        self.assertEqual(self.ok(server.get("/v1/models/m"))["dimensions"], out)
        request = {"tokens": [[1, 2, 3], [4]]}
        rows = self.ok(server.post("/v1/models/m/encode", dict(request, pool="none", normalize=False)))["outputs"]
        first, second = weights
        for pool, weigh in (("mean", lambda n: numpy.ones(n) / n), ("mean_sqrt_len", lambda n: numpy.ones(n) / n ** 0.5),
                            ("weighted_mean", lambda n: numpy.arange(1, n + 1) / (n * (n + 1) / 2))):
            got = self.ok(server.post("/v1/models/m/encode", dict(request, pool=pool)))["outputs"]
            for item, vector in zip(rows, got):
                x = weigh(len(item)) @ numpy.array(item)
                x = numpy.tanh(first["linear.weight"] @ x + first["linear.bias"]) + x
                x = second["linear.weight"] @ x + second["residual.weight"] @ x
                numpy.testing.assert_allclose(vector, x / numpy.linalg.norm(x), atol=2e-6)


if __name__ == "__main__":
    unittest.main()
