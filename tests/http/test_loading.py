"""test_loading: models that are large enough to be loaded by several threads: their digest, errors,
what is said meanwhile."""
import hashlib
import json
import math
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

from support import BIN, MODE, PATIENCE, Case, Server, attend, clean_environment, preloaded


def tree_digest(data):
    leaves = (hashlib.sha256(data[at:at + 65536]).digest() for at in range(0, len(data), 65536))
    return "sha256-tree-64KiB:" + hashlib.sha256(b"".join(leaves)).hexdigest()


def usual(number):
    """What a definition is without them, said in other ways: models with equal definitions would be loaded once."""
    said = [("kv_heads", 8), ("causal", False), ("score", "scaled_dot"), ("weighting", "softmax"), ("projection", "linear")]
    return {key: value for bit, (key, value) in enumerate(said) if number >> bit & 1}


def write_random(path, shapes, last=b""):
    """A safetensors file of random numbers from 0.007 to 0.035; `last` are its last bytes. Returns those of all
    numbers."""
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    numbers = bytearray(random.Random(at).randbytes(at))
    numbers[3::4] = b"\x3c" * (at // 4)
    if last:
        numbers[-len(last):] = last
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + numbers)
    return bytes(numbers)


class LargeModels(Case):
    """Their digest is a tree, and their numbers are read and packed by all threads."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, width, models, last=b""):
        """Layers that share a file of one layer, of this width; `last` are its last bytes."""
        shapes = {f"{role}.{part}": [width] if part == "bias" else [width, width]
                  for role in ("query", "key", "value", "output") for part in ("weight", "bias")}
        numbers = write_random(os.path.join(self.folder, f"{width}.safetensors"), shapes, last)
        with open(os.path.join(self.folder, "attend.json"), "w") as file:
            json.dump({"models": {f"m{i}": dict({"checkpoint": f"{width}.safetensors", "heads": 8}, **usual(i))
                                  for i in range(models)}}, file)
        return numbers

    def check(self, workers):
        return attend("check", "--config", os.path.join(self.folder, "attend.json"), "--workers",
                      str(workers))

    def test_digest(self):
        """As config/README.md has it: below 16 MiB and from there on, by one thread and by some."""
        for width, member, digest in ((1016, "sha256", lambda n: hashlib.sha256(n).hexdigest()),
                                      (1040, "digest", tree_digest)):
            shown = digest(self.write(width, 3)).split(":")[-1][:12]
            expected = f" {member}={shown}"
            for workers in (1, 3) if MODE == "release" else (3,):
                with self.subTest(width, workers=workers):
                    status, _, err = self.check(workers)
                    self.assertEqual(status, 0, err)
                    said = [line for line in err.splitlines() if line.startswith("model ")]
                    self.assertEqual([line.split(":")[0] for line in said],
                                     ["model m0", "model m1", "model m2"])
                    for line in said:
                        self.assertTrue(line.endswith(expected), line)

    def test_description_and_metric(self):
        digest = tree_digest(self.write(1040, 1))
        server = Server({"models": {"m": {"checkpoint": "1040.safetensors", "heads": 8}}},
                        folder=self.folder)
        self.addCleanup(server.stop)
        said = self.ok(server.get("/v1/models/m"))
        self.assertEqual((said["digest"], "sha256" in said), (digest, False))
        self.assertIn(f'attend_model_info{{model="m",digest="{digest}",'.encode(),
                      server.get("/metrics").body)

    def test_the_first_that_is_wrong_is_told(self):
        """Whichever thread has it, and whichever of them is found first."""
        for width in (512, 1040):
            self.write(width, 8, last=struct.pack("<f", float("nan")))
            for workers in (1, 4) if MODE == "release" else (4,):
                status, _, err = self.check(workers)
                self.assertEqual((status, err.splitlines()[-1]), (
                    2, f"attend: model m0: {width}.safetensors: tensor \"output.bias\" holds a "
                    "number that is not finite"))

    def test_what_will_be_loaded_is_told_first(self):
        """After the version, before any model; only if much is loaded."""
        self.write(1040, 4)
        line = "loading 4 models from 1040.safetensors (69 MB as float32)"
        if MODE != "tsan":
            self.assertEqual(self.check(2)[2].splitlines()[0], line)
        process = self.begin()
        said = [self.message(process) for _ in range(3)]
        self.assertRegex(said[0], r"^attend [0-9.]+ \(commit ")
        self.assertEqual(said[1], line)
        while said[-1].startswith("loaded "):  # where it takes seconds
            said[-1] = self.message(process)
        self.assertRegex(said[2], "^model m0: ")
        self.write(1040, 5)
        process.send_signal(signal.SIGHUP)
        while not said[-1].startswith("reloaded in"):
            said.append(self.message(process))
        self.assertIn("loading 5 models from 1040.safetensors (87 MB as float32)", said)
        self.end(process)
        self.write(512, 2)
        said = [text for text in self.check(2)[2].splitlines() if not text.startswith("loaded ")]
        self.assertRegex(said[0], "^model m0: ")  # nothing tells that it will be loaded

    @unittest.skipUnless(MODE == "release", "a sanitizer must be loaded first")
    def test_a_stop_does_not_wait(self):
        """Not for numbers that will never be read."""
        shim, library = preloaded("hang.c")
        self.addCleanup(shutil.rmtree, shim, True)
        with open(os.path.join(shim, "read"), "wb"):
            pass
        self.write(1040, 16)
        process = self.begin({"LD_PRELOAD": library, "HANG": shim})
        while not self.message(process).startswith("loading 16 models"):
            continue
        self.assertIn("SIGTERM received: stopping", self.end(process))

    def begin(self, env=None):
        process = subprocess.Popen(
            [BIN, "--listen", "127.0.0.1:0", "--workers", "3", "--config",
             os.path.join(self.folder, "attend.json")], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=clean_environment(env))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        return process

    def message(self, process):
        """What the next line of the log says."""
        line = process.stderr.readline().decode()
        self.assertTrue(line, "the log has ended")
        return re.search(r' msg="(.*)"', line).group(1)

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, err)
        return err.decode()

    def test_what_needs_no_numbers_is_told_before_they_are_read(self):
        self.write(512, 8, last=struct.pack("<f", float("nan")))
        path = os.path.join(self.folder, "attend.json")
        with open(path) as file:
            config = json.load(file)
        config["models"]["m6"]["heads"] = 7
        with open(path, "w") as file:
            json.dump(config, file)
        for workers in (1, 4):
            status, _, err = self.check(workers)
            self.assertEqual(status, 2)
            self.assertIn("attend: model m6: ", err)


class Peak(Case):
    """The memory that a process holds while it loads a transformer."""
    WIDTH, FORWARD = 512, 2048
    PROGRAM = 20e6  # at most, for all that is no model
    MARGIN = 4e6

    def write(self, folder, layers, vocabulary):
        """A BERT of random weights."""
        shapes = {"embeddings.word_embeddings.weight": [vocabulary, self.WIDTH],
                  "embeddings.position_embeddings.weight": [64, self.WIDTH],
                  "embeddings.token_type_embeddings.weight": [2, self.WIDTH]}
        norms, products = ["embeddings"], {}
        for i in range(layers):
            place = f"encoder.layer.{i}."
            norms += [place + "attention.output", place + "output"]
            for name in ("self.query", "self.key", "self.value", "output.dense"):
                products[f"{place}attention.{name}"] = [self.WIDTH, self.WIDTH]
            products[place + "intermediate.dense"] = [self.FORWARD, self.WIDTH]
            products[place + "output.dense"] = [self.WIDTH, self.FORWARD]
        for name, shape in products.items():
            shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
        for name in norms:
            shapes |= {f"{name}.LayerNorm.{part}": [self.WIDTH] for part in ("weight", "bias")}
        os.mkdir(folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
            json.dump({"model_type": "bert", "architectures": ["BertModel"], "num_attention_heads": 8,
                       "hidden_size": self.WIDTH, "intermediate_size": self.FORWARD, "num_hidden_layers": layers,
                       "vocab_size": vocabulary, "max_position_embeddings": 64, "type_vocab_size": 2}, file)
        return len(write_random(os.path.join(folder, "model.safetensors"), shapes))

    def beside(self, folder, mode):
        """The most bytes that are held beside the model."""
        server = Server({"models": {"m": {"transformer": folder, "compute": mode}}}, "--workers", "2")
        try:
            return server.most_resident() - self.ok(server.get("/v1/models/m"))["bytes"]
        finally:
            server.stop()

    @unittest.skipUnless(MODE == "release", "a sanitizer takes more")
    def test_one_layer_at_a_time_is_in_memory_twice(self):
        """Its numbers are read as float32 before its matrices are packed. A table of tokens is there once."""
        with tempfile.TemporaryDirectory() as folder:
            large, small = (os.path.join(folder, name) for name in ("large", "small"))
            self.assertGreater(self.write(large, 2, 18000), 60e6)
            self.write(small, 1, 2)
            least = self.beside(small, "float32")
            self.assertLess(least, 4 * self.WIDTH * (4 * self.WIDTH + 2 * self.FORWARD) + self.PROGRAM)
            for mode in ("float32", "int8", "int8-block"):
                with self.subTest(mode):
                    self.assertLess(self.beside(large, mode), least + self.MARGIN)


if __name__ == "__main__":
    unittest.main()
