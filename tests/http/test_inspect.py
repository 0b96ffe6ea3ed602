"""test_inspect: attend inspect: what it prints is a configuration that attend check takes."""
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

from support import (BIN, MODE, PATIENCE, Case, Server, attend, clean_environment, preloaded,
                     safetensors_bytes)


def tensors_of(names):
    """name -> shape, filled with small numbers."""
    rng = random.Random(5)
    filled = {}
    for name, shape in names.items():
        count = 1
        for size in shape:
            count *= size
        filled[name] = (shape, [rng.uniform(-1, 1) for _ in range(count)])
    return filled


def stems(prefix, names, rows, columns, bias=True):
    """Square or nearly so: the last of the names leads back from rows to columns."""
    shapes = {}
    for name in names:
        out, size = (columns, rows) if name == names[-1] else (rows, columns)
        shapes[f"{prefix}{name}.weight"] = [out, size]
        if bias:
            shapes[f"{prefix}{name}.bias"] = [out]
    return shapes


PROJ = ["q_proj", "k_proj", "v_proj", "out_proj"]
TABLE = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def families():
    """Family -> (shapes by name, config.json, names of the models that are to be printed)."""
    bert, gpt2, t5, llama, whisper, clip, torch = ({} for _ in range(7))
    for i in range(11):
        bert.update(stems(f"bert.encoder.layer.{i}.attention.",
                          ["self.query", "self.key", "self.value", "output.dense"], 8, 8))
    for i in range(2):
        gpt2.update({f"h.{i}.attn.bias": [1, 1, 3, 3], f"h.{i}.attn.c_attn.weight": [8, 24],
                     f"h.{i}.attn.c_attn.bias": [24], f"h.{i}.attn.c_proj.weight": [8, 8],
                     f"h.{i}.attn.c_proj.bias": [8]})
        t5.update(stems(f"encoder.block.{i}.layer.0.SelfAttention.", "qkvo", 12, 8, False))
        t5.update(stems(f"decoder.block.{i}.layer.0.SelfAttention.", "qkvo", 12, 8, False))
        t5.update(stems(f"decoder.block.{i}.layer.1.EncDecAttention.", "qkvo", 12, 8, False))
        at = f"model.layers.{i}.self_attn."
        llama.update({at + "q_proj.weight": [16, 8], at + "k_proj.weight": [8, 8],
                      at + "v_proj.weight": [8, 8], at + "o_proj.weight": [8, 16]})
        for at in ("encoder.layers.{}.self_attn.", "decoder.layers.{}.self_attn.",
                   "decoder.layers.{}.encoder_attn."):
            whisper.update(stems("model." + at.format(i), PROJ, 8, 8))
            whisper.pop("model." + at.format(i) + "k_proj.bias")
        for tower in ("text", "vision"):
            clip.update(stems(f"{tower}_model.encoder.layers.{i}.self_attn.", PROJ, 8, 8))
        for at in (f"encoder.layers.{i}.self_attn.", f"decoder.layers.{i}.self_attn.",
                   f"decoder.layers.{i}.multihead_attn."):
            torch.update({at + "in_proj_weight": [24, 8], at + "in_proj_bias": [24],
                          at + "out_proj.weight": [8, 8], at + "out_proj.bias": [8]})
    t5.update({"encoder." + TABLE: [32, 3], "decoder." + TABLE: [32, 3]})
    pair = [f"{stack}{i}" for i in range(2) for stack in ("encoder", "decoder")]
    cross = ["decoder0-cross", "decoder1-cross"]
    return {
        "bert": (bert, {"num_attention_heads": 2}, [f"layer{i}" for i in range(11)]),
        "gpt2": (gpt2, {"n_head": 2}, ["layer0", "layer1"]),
        "t5": (t5, None, pair + cross),
        "llama": (llama, {"num_attention_heads": 4, "rope_theta": 5e5}, ["layer0", "layer1"]),
        "whisper": (whisper, {"encoder_attention_heads": 2, "decoder_attention_heads": 4},
                    pair + cross),
        "clip": (clip, None, ["text0", "text1", "vision0", "vision1"]),
        "torch": (torch, None, ["layer0", "layer0-2", "layer0-cross", "layer1", "layer1-2",
                                "layer1-cross"]),
    }


class Inspect(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content if isinstance(content, bytes) else json.dumps(content).encode())

    def inspect(self, *args):
        return attend("inspect", *args, cwd=self.folder)

    def test_every_family_is_a_configuration(self):
        for family, (shapes, config, names) in families().items():
            with self.subTest(family):
                self.write("w.safetensors", safetensors_bytes(tensors_of(shapes)))
                self.write("config.json", config or {})
                status, out, err = self.inspect("w.safetensors", "--models", "--heads", "4")
                self.assertEqual(status, 0, err)
                self.assertEqual(set(json.loads(out)["models"]), {f"w.{n}" for n in names})
                self.assertNotIn("cannot be served", err)
                self.write("attend.json", out)
                status, out, err = attend("check", "--config", "attend.json", cwd=self.folder)
                self.assertEqual(status, 0, err)
                for name in names:
                    self.assertRegex(err, rf"(?m)^model w\.{name}: (.* )?layout={family}\b")

    def test_the_text_lists_tensors_and_ends_with_the_models(self):
        shapes, config, _ = families()["llama"]
        self.write("w.safetensors", safetensors_bytes(tensors_of(shapes)))
        self.write("config.json", config)
        status, text, err = self.inspect("w.safetensors")
        self.assertEqual((status, err), (0, ""))
        for name, shape in shapes.items():
            self.assertRegex(text.decode(), rf"(?m)^  F32   \[{shape[0]}, {shape[1]}\] +{name}$")
        models = self.inspect("w.safetensors", "--models")[1]
        self.assertTrue(text.endswith(b"\n\n" + models))
        self.assertIn(b"layout llama: 2 layers can be served", text)

    def test_models_are_called_after_their_file_or_folder(self):
        bytes_ = safetensors_bytes(tensors_of(families()["llama"][0]))
        cache = "hub/models--some--tiny-llama/snapshots/0123"
        for folder, name, words, stem in (
                ("bert", "model.safetensors", "bert", "bert"),
                ("bert", "model.safetensors", "bert/", "bert"),
                ("bert", "model.safetensors", "bert/model.safetensors", "bert"),
                ("odd name", "layer.v1.safetensors", "odd name", "layer.v1"),
                (cache, "model.safetensors", cache, "tiny-llama")):
            with self.subTest(words):
                os.makedirs(os.path.join(self.folder, folder), exist_ok=True)
                self.write(os.path.join(folder, name), bytes_)
                status, out, err = self.inspect(words, "--models")
                self.assertEqual(status, 0, err)
                models = json.loads(out)["models"]
                self.assertEqual(list(models), [f"{stem}.layer0", f"{stem}.layer1"])
                self.assertEqual(models[f"{stem}.layer0"]["checkpoint"], words)
        status, out, err = attend("inspect", ".", "--models", cwd=os.path.join(self.folder, "bert"))
        self.assertEqual(list(json.loads(out)["models"]), ["bert.layer0", "bert.layer1"], err)

    def test_a_configuration_is_written_where_it_is_to_lie(self):
        bytes_ = safetensors_bytes(tensors_of(families()["llama"][0]))
        for folder in ("etc", "etc/models", "models"):
            os.mkdir(os.path.join(self.folder, folder))
        for path in ("etc/models/a.safetensors", "models/b.safetensors"):
            self.write(path, bytes_)
            status, out, err = self.inspect(path, "-o", "etc/attend.json", "--heads", "4")
            self.assertEqual((status, out), (0, b""), err)
            self.assertIn("the base of rope is a guess", err)
            status, _, err = attend("check", "--config", "etc/attend.json", cwd=self.folder)
            self.assertEqual(status, 0, err)
            status, _, err = self.inspect(path, "-o", "etc/attend.json", "--heads", "4")
            self.assertEqual(status, 1, err)
            self.assertIn("etc/attend.json: File exists", err)
            os.remove(os.path.join(self.folder, "etc/attend.json"))
        self.write("etc/x.safetensors", safetensors_bytes(tensors_of({"x": [1]})))
        status, _, err = self.inspect("etc/x.safetensors", "-o", "etc/attend.json")
        self.assertEqual(status, 2, err)
        self.assertIn("no layer of it is recognized", err)
        self.assertEqual(sorted(os.listdir(os.path.join(self.folder, "etc"))),
                         ["models", "x.safetensors"])

    def test_heads_that_no_definition_says_are_those_of_config_json(self):
        os.mkdir(os.path.join(self.folder, "llama"))
        self.write("llama/model.safetensors", safetensors_bytes(tensors_of(families()["llama"][0])))
        self.write("attend.json", {"models": {"m": {"checkpoint": "llama", "layer": 1}}})
        status, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
        self.assertEqual(status, 2, err)
        self.assertIn("model m: llama: heads: required with projection linear, and no config.json "
                      "beside the checkpoint contains it; look for num_heads or num_attention_heads "
                      "where the checkpoint is from (attend inspect llama --models --heads N ", err)
        self.write("llama/config.json", {"num_attention_heads": 4, "num_key_value_heads": 2})
        told = "model m: heads=4 and kv_heads=2 are from config.json"
        status, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
        self.assertEqual(status, 0, err)
        self.assertIn(told, err)
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"))
        self.addCleanup(server.stop)
        server.told("level=info .*" + told)
        model = self.ok(server.get("/v1/models/m"))
        self.assertEqual((model["heads"], model["kv_heads"], model["source"]),
                         (4, 2, "model.safetensors"))
        self.write("llama/config.json", {"num_attention_heads": 2})
        server.signal(signal.SIGHUP)
        server.told("level=info .*model m: heads=2 and kv_heads=1 are from config.json")
        server.told("reloaded in .*; changed: m")
        self.write("llama/config.json", {"num_attention_heads": 3})
        status, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
        self.assertEqual(status, 2, err)
        self.assertIn("model m: llama: config.json says 3 heads: heads: 3 do not divide", err)

    def test_numbers_are_read_only_when_they_are_to_be_checked(self):
        """A file of 1 GB that is a hole but for its header and the first tensor, which is not finite."""
        header, end = {}, 0
        for name, shape in stems("", ["W_q", "W_k", "W_v", "W_o"], 8192, 8192, False).items():
            begin, end = end, end + 4 * shape[0] * shape[1]
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        with open(os.path.join(self.folder, "w.safetensors"), "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text + struct.pack("<f", float("nan")))
            out.truncate(8 + len(text) + end)
        status, out, err = self.inspect("w.safetensors", "--models", "--heads=64")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(json.loads(out)["models"]["w"]["heads"], 64)
        status, out, err = self.inspect("w.safetensors", "--models", "--check")
        self.assertEqual((status, out), (2, b""))
        self.assertIn('cannot be served: tensor "W_q.weight" holds a number that is not fin', err)

    def test_broken_files_and_wrong_words(self):
        self.write("w.safetensors", b"\x07\0\0\0\0\0\0\0{\"a\":1}")
        for args, word in ((["w.safetensors"], "tensor \"a\""), (["none"], "No such file"),
                           (["/dev"], "is a directory"), ([], "inspect needs a file"),
                           (["a", "b"], "not 'b'"),
                           (["a", "-o"], "-o needs the name of a file"), (["a", "--model"], "not '--model'"),
                           (["a", "--heads"], "--heads needs a number from 1 to 4096, not ''"),
                           (["a", "--heads", "0"], "not '0'"), (["a", "--heads=x"], "not 'x'"),
                           (["--heads", "4097", "a"], "not '4097'")):
            with self.subTest(args):
                status, out, err = self.inspect(*args)
                self.assertEqual((status, out), (2, b""), err)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertIn(word, err)

    def test_broken_documents_beside_the_tensors_are_told(self):
        """As loading would; the layers are listed without them."""
        shapes = stems("", ["W_q", "W_k", "W_v", "W_o"], 4, 4)
        os.mkdir(os.path.join(self.folder, "m"))
        self.write("m/model.safetensors", safetensors_bytes(tensors_of(shapes)))
        self.write("attend.json", {"models": {"m": {"transformer": "m"}}})
        for name, content, ignored in (
                ("config.json", b'{"model_type":', True), ("config.json", b"[]", True),
                ("config.json", None, False), ("config.json", {"model_type": 5}, False),
                ("modules.json", b"[", True), ("modules.json", {}, True),
                ("modules.json", [{"type": "x"}], True), ("modules.json", None, True)):
            path = os.path.join(self.folder, "m", name)
            with self.subTest(name, content=content):
                if content is None:
                    os.symlink("nowhere", path)
                else:
                    self.write("m/" + name, content)
                status, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
                self.assertEqual(status, 2, err)
                reason = re.search("model m: (.*)", err).group(1)
                self.assertIn(name, reason)
                status, out, err = self.inspect("m", "--heads", "2")
                self.assertEqual((status, err), (0, ""), out)
                self.assertIn("\nnote: it cannot be served as a model: " + reason + "\n",
                              out.decode())
                self.assertIn(b"layout d2l: 1 layer can be served", out)
                status, out, err = self.inspect("m", "--models", "--heads", "2")
                self.assertEqual((status, list(json.loads(out)["models"])), (0, ["m"]), err)
                self.assertEqual("it is ignored" in err and name in err, ignored, err)
            os.remove(path)

    def test_a_broken_modules_json_hides_where_the_tensors_are(self):
        os.makedirs(os.path.join(self.folder, "m", "0_Transformer"))
        self.write("m/0_Transformer/model.safetensors", safetensors_bytes(tensors_of({"x": [1]})))
        self.write("m/modules.json", b"[")
        for args in (["m"], ["m", "--models"]):
            status, out, err = self.inspect(*args)
            self.assertEqual((status, out), (2, b""), err)
            self.assertIn("m/modules.json, line 1, column 1: ", err)

    def test_what_cannot_be_written_is_a_failure(self):
        self.write("w.safetensors",
                   safetensors_bytes(tensors_of(stems("", ["W_q", "W_k", "W_v", "W_o"], 4, 4))))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BIN, "inspect", "w.safetensors"], stdout=full, cwd=self.folder,
                                  stderr=subprocess.PIPE, env=clean_environment(None),
                                  timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write", done.stderr)

    def test_a_path_must_fit_into_json(self):
        path = os.path.join(self.folder.encode(), b"\xff.safetensors")
        with open(path, "wb") as file:
            file.write(safetensors_bytes(tensors_of({"x": [1]})))
        status, _, err = self.inspect(b"\xff.safetensors")
        self.assertEqual(status, 2)
        self.assertIn("a path in a definition is UTF-8", err)

    def test_no_more_than_512_layers_are_listed(self):
        names = {}
        for i in range(600):
            names.update({f"h.{i}.attn.c_attn.weight": [2, 6], f"h.{i}.attn.c_proj.weight": [2, 2]})
        self.write("w.safetensors", safetensors_bytes(tensors_of(names)))
        status, out, err = self.inspect("w.safetensors", "--models")
        self.assertEqual(status, 0, err)
        self.assertEqual(len(json.loads(out)["models"]), 512)
        self.assertIn("heads is unknown", err)
        self.assertIn("only the first 512 layers are listed", err)

    def test_what_config_json_tells_otherwise_is_told(self):
        """By the log at the start and at a reload, and by check; a definition that says it, never."""
        self.write("w.safetensors", safetensors_bytes(tensors_of(families()["llama"][0])))
        self.write("config.json", {"rope_theta": 5e5, "model_type": "cohere"})
        model = {"checkpoint": "w.safetensors", "layer": 1, "heads": 4}
        base = "model llama: config.json says rope_theta 500000, but the base here is 10000"
        kind = "model llama: layout llama is not known to fit config.json's model_type cohere"
        self.write("attend.json", {"models": {"llama": model}})
        status, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
        self.assertEqual(status, 0, err)
        self.assertIn("warning: " + base, err)
        self.assertIn("warning: " + kind, err)
        self.write("attend.json", {"models": {"llama": dict(model, rope={"base": 5e5})}})
        _, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
        self.assertNotIn("rope_theta", err)
        self.write("attend.json", {"models": {"llama": model}})
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"))
        self.addCleanup(server.stop)
        server.told("level=warning .*" + base)
        self.write("config.json", {"rope_theta": 7e5})
        self.write("attend.json", {"models": {"llama": dict(model, layer=0)}})
        server.signal(signal.SIGHUP)
        server.told("level=warning .*model llama: config.json says rope_theta 700000")

    def test_a_file_name_is_one_word(self):
        """What is in it is neither taken for a word of the line nor parted nor a control character."""
        name = "my  big model heads=9 " + "and so on " * 8 + "\t\x7f.safetensors"
        self.write(name, safetensors_bytes(tensors_of(families()["llama"][0])))
        self.write("attend.json", {"models": {"m": {"checkpoint": name, "layer": 1, "heads": 4}}})
        status, _, err = attend("check", "--config", "attend.json", cwd=self.folder)
        self.assertEqual(status, 0, err)
        self.assertIn(' source="' + name.replace("\t\x7f", "??") + '"', err)

    def test_models_tell_their_layout_and_positions(self):
        random_layer = {"random": {"seed": 1}, "query_size": 8, "heads": 2}
        self.write("w.safetensors", safetensors_bytes(tensors_of(families()["llama"][0])))
        server = Server({"models": {
            "llama": {"checkpoint": "w.safetensors", "layer": 1, "heads": 4},
            "plain": random_layer,
            "both": {**random_layer, "rope": {"base": 500},
                     "relative_bias": {"bidirectional": False, "buckets": 8}}}}, folder=self.folder)
        self.addCleanup(server.stop)
        server.told(r'msg="model llama: heads=4 kv_heads=2 size=8 causal=true rope=10000 layout=llama '
                    r'source=w\.safetensors sha256=[0-9a-f]{12}"')
        server.told(r'msg="model both: heads=2 size=8 rope=500 relative_bias=8 max_distance=128 '
                    r'bidirectional=false source=random sha256=[0-9a-f]{12}"')
        told = {m["name"]: m for m in self.ok(server.get("/v1/models"))["models"]}
        self.assertEqual({n: m["layout"] for n, m in told.items()},
                         {"llama": "llama", "plain": "none", "both": "none"})
        self.assertEqual((told["llama"]["rope"], told["llama"]["kv_heads"], told["llama"]["causal"]),
                         ({"base": 10000.0}, 2, True))
        self.assertEqual((told["llama"]["place"], told["llama"]["scale"]),
                         ("model.layers.1.self_attn.", 0.5))
        self.assertNotIn("place", told["plain"])
        self.assertEqual(told["both"]["rope"], {"base": 500.0})
        self.assertEqual(told["both"]["relative_bias"],
                         {"buckets": 8, "max_distance": 128, "bidirectional": False})
        self.assertFalse({"rope", "relative_bias"} & set(told["plain"]))


@unittest.skipUnless(MODE == "release", "a sanitizer brings its own allocator")
class FailingAllocations(Case):
    def test_every_allocation_may_fail(self):
        """A sentence and a status, or all of the answer; never a signal."""
        folder, library = preloaded("failmalloc.c")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        shapes = {name: shape for name, shape in families()["gpt2"][0].items() if "h.0." in name}
        with open(os.path.join(folder, "w.safetensors"), "wb") as file:
            file.write(safetensors_bytes(tensors_of(shapes)))
        control, seen = os.path.join(folder, "control"), []
        env = {"LD_PRELOAD": library, "FAILMALLOC": control}
        for n in range(1, 2000):
            with open(control, "wb") as file:
                file.write(struct.pack("<qqq", n, 0, 0))
            status, out, err = attend("inspect", "w.safetensors", "--models", "--check",
                                      cwd=folder, env=env)
            self.assertIn(status, (0, 1), (n, err))
            if status == 0:
                self.assertEqual(list(json.loads(out)["models"]), ["w.layer0"], n)
            else:
                seen.append(err)
            with open(control, "rb") as file:
                if struct.unpack("<qqq", file.read())[2] == 0:
                    break
        else:
            self.fail("never comes to an end")
        self.assertGreaterEqual(sum("out of memory" in err for err in seen), 3, seen)  # definition, layers, trial


if __name__ == "__main__":
    unittest.main()
