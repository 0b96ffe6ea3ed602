"""test_adapter: LoRA adapters as PEFT saves them, merged at load, beside folders that the test merges with numpy: the
same digests and answers; and the adapters that are refused."""
import json
import math
import os
import re
import shutil
import struct
import tempfile

import numpy

import torch_file
from families import HELD, bfloat16, safetensors
from golden import MODELS
from support import Case, Server, attend
from test_whole import write_json

# Members as PEFT 0.17 writes them, all of them off.
CONFIG = {
    "alpha_pattern": {}, "auto_mapping": None, "base_model_name_or_path": "someone/base", "bias": "none",
    "corda_config": None, "eva_config": None, "exclude_modules": None, "fan_in_fan_out": False, "inference_mode": True,
    "init_lora_weights": True, "layer_replication": None, "layers_pattern": None, "layers_to_transform": None,
    "loftq_config": {}, "lora_alpha": 16, "lora_bias": False, "lora_dropout": 0.05, "megatron_config": None,
    "megatron_core": "megatron.core", "modules_to_save": None, "peft_type": "LORA", "qalora_group_size": 16, "r": 4,
    "rank_pattern": {}, "revision": None, "target_modules": ["query", "value"], "target_parameters": None,
    "task_type": "FEATURE_EXTRACTION", "trainable_token_indices": None, "use_dora": False, "use_qalora": False,
    "use_rslora": False}


def read(path):
    """name -> (type, array) of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack_from("<Q", data)
    header, tensors = json.loads(data[8:8 + size]), {}
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = numpy.frombuffer(data[8 + size + begin:8 + size + end], HELD[entry["dtype"]])
        tensors[name] = entry["dtype"], array.reshape(entry["shape"])
    return tensors


def merged(weight, a, b, scale, turned):
    """The float32 numbers nearest to W + scale B A, or with `turned` its transpose: the sums are in float64."""
    total = numpy.zeros((b.shape[0], a.shape[1]))
    for k in range(a.shape[0]):
        total = total + numpy.outer(b[:, k].astype(numpy.float64), a[k].astype(numpy.float64))
    if turned:
        total = total.T
    return (weight.astype(numpy.float64) + scale * total).astype(numpy.float32)


class Adapters(Case):
    def setUp(self):
        self.rng = numpy.random.default_rng(8)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def copy(self, golden, tensors=None, name="base"):
        """A golden folder, with other tensors: (its path, its tensors)."""
        folder = os.path.join(self.folder, name)
        shutil.copytree(os.path.join(MODELS, golden), folder, dirs_exist_ok=True)
        path = os.path.join(folder, "model.safetensors")
        tensors = tensors or read(path)
        with open(path, "wb") as file:
            file.write(safetensors(tensors))
        return folder, tensors

    def draw(self, *shape):
        return self.rng.normal(0, 0.3, shape).astype(numpy.float32)

    def adapter(self, tensors, name="adapter", **members):
        folder = os.path.join(self.folder, name)
        write_json(folder, "adapter_config.json", {**CONFIG, **members})
        with open(os.path.join(folder, "adapter_model.safetensors"), "wb") as file:
            file.write(safetensors(tensors))
        return folder

    def make(self, tensors, modules, rank=4, scale=4.0, turned=(), told=lambda module: module, default="", dtype="F32"):
        """The tensors of an adapter for these modules; `tensors` become the merged ones. The adapter calls a module what
        `told` says."""
        made = {}
        for module in modules:
            weight = tensors[module + ".weight"][1]
            if tensors[module + ".weight"][0] == "BF16":
                weight = (weight.astype(numpy.uint32) << 16).view(numpy.float32)
            across = module in turned
            out, size = reversed(weight.shape) if across else weight.shape
            a, b = self.draw(rank, size), self.draw(out, rank)
            if dtype == "BF16":
                held = bfloat16(a), bfloat16(b)
                a, b = ((x.astype(numpy.uint32) << 16).view(numpy.float32) for x in held)
            else:
                held = a, b
            for letter, matrix in zip("AB", held):
                made[f"base_model.model.{told(module)}.lora_{letter}{default}.weight"] = dtype, matrix
            tensors[module + ".weight"] = "F32", merged(weight, a, b, scale, across)
        return made

    def both(self, definition, other, paths):
        """Two models that must be one: their digests and their answers."""
        server = Server({"models": {"m": definition, "other": other}})
        self.addCleanup(server.stop)
        about = [self.ok(server.get(f"/v1/models/{name}")) for name in ("m", "other")]
        self.assertEqual(about[0]["sha256"], about[1]["sha256"])
        for path, body in paths.items():
            answers = [self.ok(server.post(f"/v1/models/{name}/{path}", body)) for name in ("m", "other")]
            for answer in answers:
                del answer["model"]
            self.assertEqual(*answers)
        return about[0]

    ENCODE = {"encode": {"tokens": [[3, 9, 4, 2], [7, 1]], "return_hidden": True}}
    GENERATE = {"generate": {"tokens": [[3, 9, 4, 2]], "max_tokens": 5, "return_top": 3}}

    def test_linear_layers(self):
        """BERT: names with another beginning than the file's, in float32 and bfloat16, alone and in 8 bits."""
        for told in (lambda m: m, lambda m: "bert." + m, lambda m: "0.auto_model." + m):
            for dtype, default in (("F32", ""), ("BF16", ".default")):
                base, tensors = self.copy("bert-a")
                modules = sorted(n[:-7] for n, (_, x) in tensors.items() if n.startswith("encoder.") and x.ndim == 2)
                self.assertGreater(len(modules), 10)
                adapter = self.adapter(self.make(tensors, modules, told=told, default=default, dtype=dtype))
                other, _ = self.copy("bert-a", tensors, "other")
                for compute in ("float32", "int8", "int8-block"):
                    about = self.both({"transformer": base, "adapter": adapter, "compute": compute},
                                      {"transformer": other, "compute": compute}, self.ENCODE)
                self.assertEqual(about["adapters"], [{"name": "adapter", "base": "someone/base", "modules": len(modules)}])

    def test_a_file_with_a_longer_beginning(self):
        """bert-b's tensors begin with "bert.", the adapter is of BertModel."""
        base, tensors = self.copy("bert-b")
        modules = ["bert.encoder.layer.0.attention.self.query", "bert.encoder.layer.1.output.dense"]
        made = self.make(tensors, modules, told=lambda module: module[5:])
        self.both({"transformer": base, "adapter": self.adapter(made)},
                  {"transformer": self.copy("bert-b", tensors, "other")[0]}, self.ENCODE)

    def test_conv1d(self):
        """GPT-2's matrices are stored the other way, queries, keys and values together."""
        base, tensors = self.copy("gpt2-b")
        modules = [f"h.0.{name}" for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")]
        made = self.make(tensors, modules, turned=modules, told=lambda module: "transformer." + module)
        self.both({"transformer": base, "adapter": self.adapter(made, fan_in_fan_out=True)},
                  {"transformer": self.copy("gpt2-b", tensors, "other")[0]}, self.GENERATE)

    def test_packed_matrices(self):
        """A matrix of queries, keys and values, or of both halves of a feed-forward, is one module."""
        for golden, modules in (("gte-a", ["attention.qkv_proj", "mlp.up_gate_proj", "mlp.down_proj"]),
                                ("nomic-a", ["attn.Wqkv", "mlp.fc12"])):
            base, tensors = self.copy(golden)
            layer = "encoder.layer.1." if golden == "gte-a" else "encoder.layers.1."
            made = self.make(tensors, [layer + module for module in modules])
            for compute in ("float32", "int8"):
                about = self.both({"transformer": base, "adapter": self.adapter(made), "compute": compute},
                                  {"transformer": self.copy(golden, tensors, "other")[0], "compute": compute}, self.ENCODE)
                self.assertEqual(about["adapters"][0]["modules"], len(modules))

    def test_bfloat16(self):
        """A model in bfloat16 has float32 numbers where an adapter changes it, and keeps the others."""
        base, tensors = self.copy("llama-a")
        tensors = {name: ("BF16", bfloat16(x)) for name, (_, x) in tensors.items()}
        self.copy("llama-a", tensors)
        modules = ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj", "lm_head"]
        made = self.make(tensors, modules)
        about = self.both({"transformer": base, "adapter": self.adapter(made)},
                          {"transformer": self.copy("llama-a", tensors, "other")[0]}, self.GENERATE)
        self.assertEqual(about["weights"], "mixed")

    def test_encoder_and_decoder(self):
        base, tensors = self.copy("marian-a")
        modules = ["model.encoder.layers.0.self_attn.q_proj", "model.decoder.layers.0.encoder_attn.v_proj",
                   "model.decoder.layers.1.fc1"]
        made = self.make(tensors, modules)
        source = {"generate": {"tokens": [[3, 9, 4]], "max_tokens": 5}}
        self.both({"transformer": base, "adapter": self.adapter(made)},
                  {"transformer": self.copy("marian-a", tensors, "other")[0]}, source)

    def test_tables(self):
        """lora_embedding_A is [rank, tokens]; PEFT saves the table itself, too."""
        base, tensors = self.copy("llama-a")
        table = tensors["model.embed_tokens.weight"][1]
        a, b = self.draw(4, table.shape[0]), self.draw(table.shape[1], 4)
        stem = "base_model.model.model.embed_tokens."
        made = {stem + "lora_embedding_A": ("F32", a), stem + "lora_embedding_B": ("F32", b),
                stem + "base_layer.weight": ("F32", table)}
        tensors["model.embed_tokens.weight"] = "F32", merged(table, a, b, 4.0, True)
        self.both({"transformer": base, "adapter": self.adapter(made)},
                  {"transformer": self.copy("llama-a", tensors, "other")[0]}, self.GENERATE)
        made[stem + "base_layer.weight"] = "F32", table * numpy.float32(1.5)
        self.refused(base, self.adapter(made), 'differs from "model.embed_tokens.weight": the adapter is for another model')
        right = self.adapter({**made, stem + "base_layer.weight": ("F32", table)}, "first")
        self.refused(base, [right, self.adapter(made)], 'differs from "model.embed_tokens.weight"')
        made[stem + "base_layer.weight"] = "F32", table[:-1]
        self.refused(base, self.adapter(made), 'differs from "model.embed_tokens.weight": the adapter is for another model')

    def test_scales_and_patterns(self):
        """The first pattern that matches the end of a module's path sets its rank or its alpha."""
        query, key, value = (f"encoder.layer.{i}.attention.self.{name}" for i, name in
                             ((0, "query"), (0, "key"), (1, "value")))
        cases = (({"use_rslora": True}, query, 4, 16 / math.sqrt(4)),
                 ({"lora_alpha": 2.5, "r": 3}, query, 3, 2.5 / 3),
                 ({"rank_pattern": {"query": 2}}, query, 2, 8.0),
                 ({"rank_pattern": {"uery": 2}}, query, 4, 4.0),
                 ({"alpha_pattern": {r"layer\.\d+\.attention\.self\.(key|value)": 1, "value": 100}}, value, 4, 0.25),
                 ({"alpha_pattern": {"value": 100, ".*": 1}}, key, 4, 0.25),
                 ({"alpha_pattern": {"^bert.encoder.layer.0.*key": 12}, "rank_pattern": {"self.key": 6}}, key, 6, 2.0),
                 ({"alpha_pattern": {"^encoder.layer.0.*key": 12}}, key, 4, 4.0))
        for members, module, rank, scale in cases:
            base, tensors = self.copy("bert-a")
            made = self.make(tensors, [module], rank, scale, told=lambda module: "bert." + module)
            self.both({"transformer": base, "adapter": self.adapter(made, **members)},
                      {"transformer": self.copy("bert-a", tensors, "other")[0]}, {})

    def test_several(self):
        """They are merged in their order, each rounded to float32."""
        base, tensors = self.copy("bert-a")
        module = "encoder.layer.0.attention.self.query"
        first = self.adapter(self.make(tensors, [module]), "first")
        second = self.adapter(self.make(tensors, [module, "encoder.layer.1.output.dense"], 2, 8.0), "second", r=2)
        about = self.both({"transformer": base, "adapter": [first, second + "/"]},
                          {"transformer": self.copy("bert-a", tensors, "other")[0]}, self.ENCODE)
        self.assertEqual([(a["name"], a["modules"]) for a in about["adapters"]], [("first", 1), ("second", 2)])
        write_json(self.folder, "attend.json", {"models": {"m": {"transformer": "base", "adapter": ["first", "second"]}}})
        status, _, error = attend("check", "--config", os.path.join(self.folder, "attend.json"))
        self.assertEqual(status, 0)
        self.assertEqual(re.findall(r'adapter="(\w+)"', error), ["first", "second"])

    def test_file_of_torch(self):
        """adapter_model.bin, which older versions of PEFT wrote."""
        base, tensors = self.copy("bert-a")
        made = self.make(tensors, ["encoder.layer.0.attention.self.query", "encoder.layer.1.output.dense"])
        adapter = self.adapter(made)
        os.remove(os.path.join(adapter, "adapter_model.safetensors"))
        torch_file.write_arrays(os.path.join(adapter, "adapter_model.bin"), {name: array for name, (_, array) in made.items()})
        self.both({"transformer": base, "adapter": adapter},
                  {"transformer": self.copy("bert-a", tensors, "other")[0]}, self.ENCODE)
        status, out, error = attend("inspect", adapter)
        self.assertEqual(status, 0, error)
        self.assertIn("adapter: LoRA for someone/base, 2 modules, rank 4, ", out.decode())

    def test_unused_modules(self):
        """A head that this model does not use may have matrices, too."""
        base, tensors = self.copy("bert-b")
        query, head = "bert.encoder.layer.0.attention.self.query", "cls.predictions.transform.dense"
        made = self.make(dict(tensors), [query, head])
        about = self.both({"transformer": base, "adapter": self.adapter(made)},
                          {"transformer": base, "adapter": self.adapter({n: t for n, t in made.items() if query in n}, "one")},
                          self.ENCODE)
        self.assertIn("adapter adapter: 1 of its 2 modules are not used by this model", about["notes"])
        self.refused(base, self.adapter({n: t for n, t in made.items() if head in n}), "it changes no tensor that this model uses")

    def test_inspect(self):
        _, tensors = self.copy("bert-a")
        made = self.make(tensors, ["encoder.layer.0.attention.self.query"])
        made.update(self.make(tensors, ["encoder.layer.0.attention.self.key"], 8))
        folder = self.adapter(made, rank_pattern={"key": 8})
        status, out, error = attend("inspect", folder)
        self.assertEqual(status, 0, error)
        self.assertIn("adapter: LoRA for someone/base, 2 modules, rank 4 to 8, 768 numbers", out.decode())
        self.assertIn(f'{{"transformer": "someone/base", "adapter": "{folder}"}}', out.decode())
        status, out, error = attend("inspect", self.adapter(made, use_dora=True))
        self.assertEqual(status, 0, error)
        self.assertIn('cannot be merged into a model: ', out.decode())
        self.assertIn('adapter_config.json: "use_dora": true is not supported', out.decode())

    # --- what is refused ---

    def refused(self, base, adapter, message, **more):
        write_json(self.folder, "attend.json", {"models": {"m": {"transformer": base, "adapter": adapter, **more}}})
        status, out, error = attend("check", "--config", os.path.join(self.folder, "attend.json"))
        self.assertEqual(status, 2, (out, error))
        self.assertRegex(error, r"^attend: model m: adapter: [^\n]+\n$")
        self.assertIn(message, error)

    def test_configs_that_are_refused(self):
        base, tensors = self.copy("bert-a")
        made = self.make(tensors, ["encoder.layer.0.attention.self.query"])
        for members, message in (
                ({"peft_type": "LOHA"}, 'peft_type: "LOHA" is not supported; only "LORA" is'),
                ({"peft_type": None}, 'peft_type: "" is not supported'),
                ({"r": 0}, "r: needs an integer from 1"), ({"r": 2.5}, "r: needs an integer from 1"),
                ({"lora_alpha": "16"}, "lora_alpha: needs a number"),
                ({"use_rslora": 1}, "use_rslora: needs true or false"),
                ({"bias": "all"}, 'bias: "all" is not supported; only "none" is'),
                ({"bias": None}, 'bias: "" is not supported'),
                ({"use_dora": True}, '"use_dora": true is not supported'),
                ({"lora_bias": True}, '"lora_bias": true is not supported'),
                ({"modules_to_save": ["classifier"]}, '"modules_to_save": ["classifier"] is not supported'),
                ({"trainable_token_indices": [5]}, '"trainable_token_indices": [5] is not supported'),
                ({"target_parameters": ["x"]}, '"target_parameters": ["x"] is not supported'),
                ({"layer_replication": [[0, 2]]}, '"layer_replication": [[0,2]] is not supported'),
                ({"alora_invocation_tokens": [1]}, '"alora_invocation_tokens": [1] is not supported'),
                ({"use_qalora": True}, '"use_qalora": true is not supported'),
                ({"megatron_config": {"a": 1}}, '"megatron_config": {"a":1} is not supported'),
                ({"use_bdlora": {"nblocks": 2}}, '"use_bdlora": {"nblocks":2} is not supported'),
                ({"kasa_config": {"beta": 1}}, '"kasa_config": {"beta":1} is not supported'),
                ({"of_the_future": 1}, '"of_the_future": 1 is not supported'),
                ({"init_lora_weights": "pissa"}, 'init_lora_weights: "pissa" is not supported: it also changes'),
                ({"init_lora_weights": "olora"}, 'init_lora_weights: "olora" is not supported'),
                ({"init_lora_weights": "loftq"}, 'init_lora_weights: "loftq" is not supported'),
                ({"rank_pattern": ["query"]}, "rank_pattern: needs an object"),
                ({"rank_pattern": {"query": "8"}}, 'rank_pattern: "query" needs a number'),
                ({"rank_pattern": {"query": 2.5}}, "rank_pattern: 2.5 is not an integer from 1"),
                ({"rank_pattern": {"query": 1e9}}, "is not an integer from 1"),
                ({"alpha_pattern": {"(query": 8}}, 'alpha_pattern: "(query": '),
                ({"alpha_pattern": {"(.+)+\\d\\d\\d": 8}}, "alpha_pattern: its expressions take too long"),
                ({"rank_pattern": {"query": 8}}, "A is [4, 32] and B [32, 4], but adapter_config.json has rank 8")):
            with self.subTest(members=members):
                self.refused(base, self.adapter(made, **members), message)
        folder = self.adapter(made)
        for text, message in (("[]", "is not an object"), ("{", "adapter_config.json"), ("{}", 'peft_type: ""')):
            with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
                file.write(text)
            self.refused(base, folder, message)

    def test_tensors_that_are_refused(self):
        base, tensors = self.copy("bert-a")
        query, key = ("encoder.layer.0.attention.self." + name for name in ("query", "key"))
        made = self.make(tensors, [query])
        a, b = (f"base_model.model.{query}.lora_{letter}.weight" for letter in "AB")
        x = self.draw(4, 32)
        stem = "base_model.model.embeddings.word_embeddings."
        for change, message in (
                ({a: None}, f'"{b}" is there without the other of its pair'),
                ({b: None}, f'"{a}" is there without the other of its pair'),
                ({a: None, b: None}, "has no tensors"),
                ({a.replace(".weight", ".default.weight"): x}, 'has two tensors like "lora_A.weight"'),
                ({a: x[0]}, "has 1 dimensions, but must have 2"),
                ({a: x[:3]}, "A is [3, 32] and B [32, 4], but adapter_config.json has rank 4"),
                ({a: x[:, :31]}, f'A is [4, 31] and B [32, 4], which do not fit "{query}.weight" of [32, 32]'),
                ({a: x * numpy.float32("inf")}, "holds a number that is not finite"),
                ({a: numpy.full((4, 32), 3e38, numpy.float32), b: numpy.full((32, 4), 3e38, numpy.float32)},
                 f'tensor "{query}.weight" holds a number that is not finite with its adapter'),
                ({a: x.astype(numpy.int64)}, "is of type I64"),
                ({a[len("base_model.model."):]: x}, "is not supported: only matrices of LoRA are, named base_model.model."),
                ({"base_model.model.lora_A.weight": x}, "is not supported"),
                ({f"base_model.model.{query}.lora_magnitude_vector": x}, "is not supported"),
                ({"base_model.model.classifier.weight": x}, '"base_model.model.classifier.weight" is not supported'),
                ({a.replace(query, "x" * 600): x}, "is not supported"),
                ({f"base_model.model.{key}.base_layer.weight": x}, "is there without the other of its pair"),
                ({a.replace(query, "encoder.layer.9.q"): x, b.replace(query, "encoder.layer.9.q"): x.T},
                 'module "encoder.layer.9.q": there is no tensor of it in model.safetensors'),
                ({a.replace(query, "bert." + query): x, b.replace(query, "bert." + query): x.T},
                 f'another module of the adapter changes "{query}.weight", too'),
                ({stem + "lora_A.weight": self.draw(4, 32), stem + "lora_B.weight": self.draw(80, 4)},
                 'is a table of embeddings, but the adapter has lora_A for it'),
                ({f"base_model.model.{key}.lora_embedding_A": x, f"base_model.model.{key}.lora_embedding_B": x.T},
                 'is no table of embeddings, but the adapter has lora_embedding_A for it')):
            changed = {**made, **{name: ("I64" if array.dtype == numpy.int64 else "F32", numpy.ascontiguousarray(array))
                                  for name, array in change.items() if array is not None}}
            for name, array in change.items():
                if array is None:
                    changed.pop(name)
            with self.subTest(message=message):
                if "with its adapter" in message:  # the merged numbers are the model's
                    write_json(self.folder, "attend.json", {"models": {"m": {"transformer": base,
                                                                             "adapter": self.adapter(changed)}}})
                    status, _, error = attend("check", "--config", os.path.join(self.folder, "attend.json"))
                    self.assertEqual(status, 2)
                    self.assertIn(message, error)
                    continue
                self.refused(base, self.adapter(changed), message)

    def test_definitions_that_are_refused(self):
        base, tensors = self.copy("bert-a")
        adapter = self.adapter(self.make(tensors, ["encoder.layer.0.attention.self.query"]))
        for said, message in ((1, "needs the path of a folder, or a list of such"), ("", "needs the path of a folder"),
                              ([adapter, 1], "needs the path of a folder"), ([], "needs 1 to 16 folders"),
                              ([adapter] * 17, "needs 1 to 16 folders"), ("nowhere", "nowhere"), (base, "adapter_config.json")):
            self.refused(base, said, message)
        self.refused({"random": {"seed": 1}}, adapter, "a randomly initialized model cannot have one", kind="encoder", layers=1,
                     width=4, heads=1, feed_forward=4, vocabulary=9)
        os.remove(os.path.join(adapter, "adapter_model.safetensors"))
        self.refused(base, adapter, "has no adapter_model.safetensors")

    def test_tables_that_two_places_use(self):
        """An adapter changes one of the places; of the numbers that both have, that would be none."""
        for golden, module, shape in (("gpt2-b", "wte", (96, 24)), ("t5-a", "shared", None)):
            base, tensors = self.copy(golden)
            rows, width = tensors[module + ".weight"][1].shape
            stem = f"base_model.model.{module}."
            made = {stem + "lora_embedding_A": ("F32", self.draw(4, rows)), stem + "lora_embedding_B": ("F32", self.draw(width, 4))}
            self.refused(base, self.adapter(made), "uses its token embeddings in two places")
        base, tensors = self.copy("bart-a")
        copies = [n for n in tensors if n.endswith("embed_tokens.weight") or n == "lm_head.weight"]
        self.assertTrue(copies)
        for name in copies:
            rows, width = tensors[name][1].shape
            stem = f"base_model.model.{name[:-7]}."
            made = {stem + "lora_A.weight": ("F32", self.draw(4, width)), stem + "lora_B.weight": ("F32", self.draw(rows, 4))}
            self.refused(base, self.adapter(made), "uses its token embeddings in two places")
