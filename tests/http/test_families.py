"""test_families: checkpoints of every family, served by the program, beside the families' own code.

The files are made by families.py; what must be answered is computed by modules.py in float64. A
failure says the family, the model, the request, which tensor of the answer, and the worst error.
"""
import hashlib
import json
import math
import os
import shutil
import signal
import tempfile

import numpy as np

import families
import modules
import torch_file
from families import DTYPES, FAMILIES, File
from support import MODE, ROOT, Case, Server, attend

WEIGHTS = 2e-6  # absolute; outputs: times the root of the hidden size


class Ask:
    """One request: what is sent, and what a module must answer to it."""

    def __init__(self, what, queries, keys=None, values=None, lens=None, causal=None, offset=None,
                 head_mask=None, bias=None, window=None):
        """Rows are [b] arrays [rows, size]; `offset` is one for all, [b], or "end"; `bias` is [b]
        arrays [q, k] or [heads, q, k]."""
        self.what, self.queries = what, queries
        self.keys, self.values, self.lens = keys, values, lens
        self.causal, self.offset, self.head_mask = causal, offset, head_mask
        self.bias, self.window = bias, window

    def json(self):
        request = {"return_attention": True}
        for field, value in (("queries", self.queries), ("keys", self.keys),
                             ("values", self.values), ("bias", self.bias)):
            if value is not None:
                request[field] = [item.tolist() for item in value]
        for field, value in (("valid_lens", self.lens), ("causal", self.causal),
                             ("causal_offset", self.offset), ("head_mask", self.head_mask),
                             ("window", self.window)):
            if value is not None:
                request[field] = value
        return request

    def mask(self, module, item, q, k, past):
        """What is added to the scores of an item."""
        visible = np.ones((q, k), bool)
        if module.causal if self.causal is None else self.causal:
            visible = np.tril(visible, past)
        if self.lens is not None:
            visible &= np.arange(k) < np.broadcast_to(self.lens[item], q)[:, None]
        if self.window is not None:
            visible &= np.triu(np.ones((q, k), bool), past - self.window[0])
            visible &= np.tril(np.ones((q, k), bool), past + self.window[1])
        bias = 0.0 if self.bias is None else self.bias[item]
        return np.where(visible, bias, modules.HIDDEN)

    def right(self, module):
        """(outputs [q, size], weights [heads, q, k]) of each item."""
        keys = self.queries if self.keys is None else self.keys
        values = keys if self.values is None else self.values
        for item, (hidden, states, others) in enumerate(zip(self.queries, keys, values)):
            past = self.offset[item] if isinstance(self.offset, list) else self.offset or 0
            if past == "end":
                past = len(states) - len(hidden)
            mask = self.mask(module, item, len(hidden), len(states), past)
            yield module(hidden, states, others, mask, past, self.head_mask)


def arrays(rng, *shape):
    """Numbers of unit scale, as float32 has them."""
    return rng.normal(0, 1, shape).astype(np.float32).astype(np.float64)


def draw(rng, served, q, k, b=2):
    """(queries, keys, values) for a layer: keys and values only where they are others."""
    sizes = served.module.sizes()
    queries = arrays(rng, b, q, sizes["query_size"])
    if not served.cross and q == k:
        return queries, None, None
    keys = arrays(rng, b, k, sizes["key_size"])
    if sizes["value_size"] == sizes["key_size"]:
        return queries, keys, None
    return queries, keys, arrays(rng, b, k, sizes["value_size"])


def ragged(rng, served):
    """Items that agree in no size."""
    sizes = served.module.sizes()
    shapes = (5, 9), (1, 4), (7, 6), (2, 20)
    queries = [arrays(rng, q, sizes["query_size"]) for q, _ in shapes]
    keys = [arrays(rng, k, sizes["key_size"]) for _, k in shapes]
    values = None if sizes["value_size"] == sizes["key_size"] else \
        [arrays(rng, k, sizes["value_size"]) for _, k in shapes]
    return Ask("a ragged batch", queries, keys, values, causal=True, offset=[4, 3, 0, -1])


def asks(served, rng):
    """The requests that each layer gets."""
    module = served.module
    q, k = (5, 8) if served.cross else (7, 7)
    yield Ask("valid_lens", *draw(rng, served, q, k), lens=[k - 2, k])
    lens = rng.integers(1, k + 1, (2, q))
    lens[0, 1] = 0
    yield Ask("valid_lens of each query", *draw(rng, served, q, k), lens=lens.tolist())
    yield Ask(f"causal: {not module.causal}", *draw(rng, served, q, k), causal=not module.causal)
    yield Ask("causal_offset", *draw(rng, served, 4, 9), offset=3)
    yield Ask("causal_offset of each item", *draw(rng, served, 4, 9), causal=True, offset=[6, -1])
    yield Ask("causal_offset far off", *draw(rng, served, 3, 9), causal=False, offset=40000)
    yield Ask("causal_offset from the end", *draw(rng, served, 3, 9), causal=True, offset="end")
    head_mask = np.linspace(0, 1.5, module.heads).tolist() if module.heads > 1 else [0.5]
    yield Ask("head_mask", *draw(rng, served, q, k), head_mask=head_mask)
    yield ragged(rng, served)
    yield Ask("bias and window", *draw(rng, served, 6, 9), causal=True, offset=2, window=[3, 1],
              bias=arrays(rng, 2, module.heads, 6, 9))
    if getattr(module, "table", None) is not None:  # every bucket, on both sides
        yield Ask("distances beyond the last bucket", *draw(rng, served, 2, 300, b=1), causal=False,
                  offset=150)
        yield Ask("a long pass", *draw(rng, served, 70, 70, b=1))


class FamilyCase(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def serve(self, models):
        server = Server({"models": models}, folder=self.folder)
        self.addCleanup(server.kill)
        return server

    def near(self, got, want, allowed, what):
        got = np.array(got, np.float64)
        self.assertEqual(got.shape, want.shape, f"{what}: shape")
        if not want.size:
            return
        errors = np.abs(got - want)
        at = np.unravel_index(np.argmax(errors), errors.shape)
        where = ", ".join(map(str, at))
        self.assertLessEqual(errors[at], allowed,
                             f"{what} is off by {errors[at]:.3g} at [{where}]: {got[at]:.9g}, not "
                             f"{want[at]:.9g}; {np.mean(errors > allowed):.1%} are beyond "
                             f"{allowed:.3g}")

    def ask(self, server, name, served, ask, family):
        """Asks, compares, and returns the answer."""
        what = f"{family}, model {name}, {ask.what}"
        request = ask.json()
        answer = server.attend(request, name)
        self.assertEqual(answer.status, 200, f"{what}: {answer}")
        answer = answer.json
        del request["return_attention"]
        alone = self.ok(server.attend(request, name))
        self.assertEqual(alone["outputs"], answer["outputs"], f"{what}: without the weights")
        self.assertEqual(len(answer["outputs"]), len(ask.queries), f"{what}: items")
        for item, (outputs, weights) in enumerate(ask.right(served.module)):
            hidden = served.module.sizes().get("hidden", outputs.shape[-1])
            got = answer["attention_weights"][item]
            self.near(got, weights, WEIGHTS, f"{what}: attention_weights of item {item}")
            self.assertTrue((np.array(got)[weights == 0] == 0).all(),
                            f"{what}: a hidden key weighs something in item {item}")
            self.near(answer["outputs"][item], outputs, WEIGHTS * math.sqrt(hidden),
                      f"{what}: outputs of item {item}")
        return answer

    def described(self, server, name, served, family):
        """What the service says of the layer."""
        what = f"{family}, model {name}"
        said = self.ok(server.get(f"/v1/models/{name}"))
        for field, value in served.module.sizes().items():
            self.assertEqual(said[field], value, f"{what}: {field}")
        self.assertEqual(said["sha256"], digest(served.module),
                         f"{what}: the tensors in use are not those of the file")


def digest(module):
    """The SHA-256 of the layer's tensors as float32: weight, then bias, role by role."""
    total = hashlib.sha256()
    for weight, bias in module.roles():
        total.update(np.ascontiguousarray(weight, "<f4").tobytes())
        if bias is not None:
            total.update(np.ascontiguousarray(bias, "<f4").tobytes())
    return total.hexdigest()


class Families(FamilyCase):
    """A server for each family: all its layers by `auto` and by name, in every type of numbers."""

    def check(self, family):
        layout = FAMILIES[family][0]
        file, layers = families.make(family)
        path = families.write_single(self.folder, family, file)
        models = {}
        for label, served in layers.items():
            models[label] = dict(served.definition, checkpoint=path)
            models[f"{label}-{layout}"] = dict(models[label], layout=layout)
        converted = {}
        for dtype in DTYPES[1:]:
            file, converted[dtype] = families.make(family, dtype)
            path = families.write_single(self.folder, dtype, file)
            for label, served in converted[dtype].items():
                models[f"{label}-{dtype}"] = dict(served.definition, checkpoint=path)
        server = self.serve(models)
        for label, served in layers.items():
            with self.subTest(family=family, model=label):
                self.described(server, label, served, family)
                rng = np.random.default_rng(1)
                for ask in asks(served, rng):
                    answer = self.ask(server, label, served, ask, family)
                named = f"{label}-{layout}"
                self.described(server, named, served, family)
                again = self.ok(server.attend(ask.json(), named))
                self.assertEqual(dict(again, model=label), answer, f"{family}, model {named}")
                if not served.cross:
                    self.decodes(server, label, served, family)
            for dtype in DTYPES[1:]:
                with self.subTest(family=family, model=label, dtype=dtype):
                    name, served = f"{label}-{dtype}", converted[dtype][label]
                    self.described(server, name, served, family)
                    self.ask(server, name, served, next(asks(served, rng)), family)
        server.stop()

    def decodes(self, server, name, served, family):
        """One query after the keys so far gets what the last row of the whole pass gets."""
        rng = np.random.default_rng(8)
        states, _, _ = draw(rng, served, 9, 9)
        whole = Ask("the whole pass", states, causal=True)
        step = Ask("a step of decoding", states[:, -1:], states, causal=True, offset="end")
        passed = self.ask(server, name, served, whole, family)
        stepped = self.ask(server, name, served, step, family)
        what = f"{family}, model {name}, a step beside the whole pass"
        outputs, weights = np.array(passed["outputs"]), np.array(passed["attention_weights"])
        hidden = served.module.sizes().get("hidden", 1)
        self.near(stepped["outputs"], outputs[:, -1:], WEIGHTS * math.sqrt(hidden),
                  f"{what}: outputs")
        self.near(stepped["attention_weights"], weights[:, :, -1:], WEIGHTS,
                  f"{what}: attention_weights")


class Shards(FamilyCase):
    """The same layers out of three files with an index: a weight and its bias are not in one."""

    def check(self, family):
        file, layers = families.make(family, "BF16")
        index = families.write_sharded(self.folder, "sharded", file)
        server = self.serve({label: dict(served.definition, checkpoint=index)
                             for label, served in layers.items()})
        for label, served in layers.items():
            with self.subTest(family=family, model=label):
                self.described(server, label, served, family)
                ask = next(asks(served, np.random.default_rng(1)))
                self.ask(server, label, served, ask, family)
        server.stop()


def add_tests(case):
    for family in FAMILIES:
        def test(self, family=family):
            self.check(family)
        setattr(case, f"test_{family.replace('-', '_')}", test)


add_tests(Families)
add_tests(Shards)


class Npz(FamilyCase):
    """numpy's own files, for the plain layout."""

    def test_stored_deflated_and_in_fortrans_order(self):
        models = {}
        for dtype in ("F32", "F64", "F16"):
            file = File(77, dtype)
            served = families.plain(file, width=2500)["all"]  # more than is read at a time
            for compressed in (False, True):
                for fortran in (False, True):
                    name = f"{dtype}{'-deflated' * compressed}{'-fortran' * fortran}"
                    path = families.write_npz(self.folder, name, file, compressed, fortran)
                    models[name] = dict(served.definition, checkpoint=path), served
        server = self.serve({name: definition for name, (definition, _) in models.items()})
        for name, (_, served) in models.items():
            with self.subTest(model=name):
                self.described(server, name, served, "npz")
                ask = next(asks(served, np.random.default_rng(1)))
                self.ask(server, name, served, ask, "npz")
        server.stop()


class Layers(FamilyCase):
    """One definition serves every layer, and each answers as its own model would."""

    def test_all_layers_of_a_folder(self):
        for family, label in (("gpt2", "layer"), ("t5", "decoder")):
            file, layers = families.make(family)
            folder = os.path.join(self.folder, family)
            os.mkdir(folder)
            families.write_single(folder, "model", file)
            with open(os.path.join(folder, "config.json"), "w") as out:
                json.dump(families.CONFIGS[family], out)
            prefix = {} if label == "layer" else {"prefix": label + "."}
            server = self.serve({"m": dict(prefix, checkpoint=family, layers="all")})
            names = [m["name"] for m in self.ok(server.get("/v1/models"))["models"]]
            self.assertEqual(names, [f"m.{i}" for i in range(len(names))])
            found = {m["sha256"]: m["name"] for m in self.ok(server.get("/v1/models"))["models"]}
            served = [(found.get(digest(one.module)), one) for one in layers.values()]
            asked = 0
            for name, one in served:
                if name and not one.cross:
                    self.ask(server, name, one, next(asks(one, np.random.default_rng(2))), family)
                    asked += 1
            self.assertGreater(asked, 0, family)
            server.signal(signal.SIGHUP)
            server.told(f"reloaded in .* ms: {len(names)} models; nothing changed")
            server.stop()


class Overrides(FamilyCase):
    """What a definition says goes before what is usual in the family."""

    def check(self, family, label, becomes=None, less=(), **more):
        """Serves a layer with more or less in its definition; its module then has the attributes
        `becomes`."""
        file, layers = families.make(family)
        path = families.write_single(self.folder, family, file)
        served = layers[label]
        definition = dict(served.definition, **more, checkpoint=path)
        for key in less:
            del definition[key]
        for attribute, value in (becomes or {}).items():
            setattr(served.module, attribute, value)
        self.serves(definition, served, f"{family} with {more}, without {list(less)}")

    def serves(self, definition, served, what):
        with self.subTest(what):
            server = self.serve({"m": definition})
            self.described(server, "m", served, what)
            for ask in asks(served, np.random.default_rng(1)):
                self.ask(server, "m", served, ask, what)
            server.stop()

    def test_causal(self):
        self.check("llama", "layer1", {"causal": False}, causal=False)
        self.check("gpt2", "layer1", {"causal": False}, causal=False)
        self.check("clip", "vision_model.1", {"causal": True}, causal=True)

    def test_rope(self):
        self.check("llama", "layer1", {"rope_theta": 500.0}, rope={"base": 500})
        self.check("qwen2", "layer1", {"rope_theta": 10000.0}, less=["rope"])

    def test_heads_that_the_file_tells(self):
        self.check("llama", "layer1", less=["kv_heads"])
        self.check("qwen2", "layer0", less=["kv_heads"])

    def test_relative_bias(self):
        self.check("t5", "encoder.1", {"max_distance": 40, "bidirectional": False},
                   relative_bias={"max_distance": 40, "bidirectional": False})
        self.check("t5", "decoder.0", {"bidirectional": True},
                   relative_bias={"bidirectional": True})

    def renamed(self, family, label, names):
        """A layer's tensors under plain names, in a file of their own."""
        file, layers = families.make(family)
        plain = File(0)
        for name, theirs in names.items():
            plain.tensors[f"{name}.weight"] = file.tensors[f"{theirs}.weight"]
        return families.write_single(self.folder, f"plain-{family}", plain), layers[label]

    def test_rotary_positions_under_plain_names(self):
        stem = "model.layers.2.self_attn"
        path, served = self.renamed("llama", "layer2", {
            "query": f"{stem}.q_proj", "key": f"{stem}.k_proj", "value": f"{stem}.v_proj",
            "output": f"{stem}.o_proj"})
        self.serves({"checkpoint": path, "heads": 4, "kv_heads": 2, "causal": True,
                     "rope": {"base": 10000}}, served, "plain names with rope")

    def test_relative_positions_under_plain_names(self):
        stem = "encoder.block.0.layer.0.SelfAttention"
        path, served = self.renamed("t5", "encoder.0", {
            "query": f"{stem}.q", "key": f"{stem}.k", "value": f"{stem}.v", "output": f"{stem}.o",
            "relative_bias": f"{stem}.relative_attention_bias"})
        self.serves({"checkpoint": path, "heads": 3, "scale": 1, "relative_bias": {
            "max_distance": 128, "bidirectional": True}}, served, "plain names with a table")

    def test_tensors_named_outright(self):
        file, layers = families.make("bert")
        path = families.write_single(self.folder, "bert", file)
        stem = "bert.encoder.layer.11.attention."
        server = self.serve({"m": {"checkpoint": path, "heads": 4, "tensors": {
            "query": f"{stem}self.query", "key": f"{stem}self.key", "value": f"{stem}self.value",
            "output": f"{stem}output.dense"}}})
        self.described(server, "m", layers["layer11"], "bert, named outright")
        server.stop()


class Measures(FamilyCase):
    def test_heads_are_measured_on_the_weights_with_positions(self):
        for family, label in (("llama", "layer0"), ("t5", "decoder.1"), ("gpt2", "layer1")):
            file, layers = families.make(family)
            served = layers[label]
            path = families.write_single(self.folder, family, file)
            server = self.serve({"m": dict(served.definition, checkpoint=path)})
            ask = Ask("heads", arrays(np.random.default_rng(2), 2, 12,
                                      served.module.sizes()["query_size"]))
            request = ask.json()
            del request["return_attention"]
            got = self.ok(server.post("/v1/models/m/heads", request))["heads"]
            weights = np.stack([weights for _, weights in ask.right(served.module)])
            positions = np.arange(12)
            distance = np.abs(positions[:, None] - positions)
            for measure, want in (
                    ("confidence", weights.max(-1).mean(axis=(0, 2))),
                    ("distance", (weights * distance).sum(-1).mean(axis=(0, 2)))):
                self.near([head[measure] for head in got], want, 1e-5 * (1 + abs(want).max()),
                          f"{family}, model {label}, {measure} of the heads")
            server.stop()


class Inspect(FamilyCase):
    """`attend inspect` lists the tensors and the layers, as models that can be served as they are."""

    def inspect(self, *words):
        status, out, err = attend("inspect", *words, cwd=self.folder)
        self.assertEqual((status, err), (0, ""), words)
        return out.decode()

    def tensors_are_listed(self, text, file, what):
        lines = [line.split(None, 1) for line in text.splitlines() if line.startswith("  ")]
        listed = {}
        for words in lines:
            if len(words) == 2 and words[1].startswith("["):
                shape, name = words[1][1:].split("]", 1)
                listed[name.strip()] = words[0], [int(n) for n in shape.split(",") if n.strip()]
        held = {name: (dtype, list(array.shape)) for name, (dtype, array) in file.tensors.items()}
        self.assertEqual(listed, held, what)

    def models_of(self, text, what):
        """The configuration in what inspect prints: from a lone "{" on."""
        lines = text.splitlines()
        self.assertIn("{", lines, f"{what}: no model can be served:\n{text}")
        return json.loads("\n".join(lines[lines.index("{"):]))

    def check(self, family):
        layout = FAMILIES[family][0]
        file, layers = families.make(family)
        if family in families.CONFIGS:
            with open(os.path.join(self.folder, "config.json"), "w") as out:
                json.dump(families.CONFIGS[family], out)
        path = families.write_single(self.folder, family, file)
        words = [path] + self.heads_said(family, layers)
        text = self.inspect(*words)
        self.tensors_are_listed(text, file, family)
        self.assertIn(f"layout {layout}", text)
        config = self.models_of(text, family)
        many = {"bert": 12, "torch-encoder": 12}.get(family, len(layers))
        self.assertEqual(len(config["models"]), many, text)
        self.checked(config)
        self.served_right(config, layers, family)
        self.assertEqual(json.loads(self.models_only(*words)), config, f"{family}: --models")

    def heads_said(self, family, layers):
        """Where no config.json tells the number of heads and the checkpoint does not, it is said."""
        if family in families.CONFIGS:
            return []
        heads = {served.definition.get("heads") for served in layers.values()}
        self.assertEqual(len(heads), 1, family)
        return ["--heads", str(*heads)] if any(heads) else []

    def models_only(self, *words):
        status, out, err = attend("inspect", *words, "--models", "--check", cwd=self.folder)
        self.assertEqual(status, 0, err)
        return out

    def checked(self, config):
        """`attend check` takes it as it is."""
        path = os.path.join(self.folder, "inspected.json")
        with open(path, "w") as out:
            json.dump(config, out)
        status, _, err = attend("check", "--config", path)
        self.assertEqual(status, 0, err)

    def served_right(self, config, layers, family):
        """Every layer is among the models; with the family's config.json beside the file they
        compute what they must."""
        server = self.serve(config["models"])
        models = self.ok(server.get("/v1/models"))["models"]
        found = {model["sha256"]: model["name"] for model in models}
        self.assertEqual(len(found), len(models), "two models are the same layer")
        for label, served in layers.items():
            with self.subTest(family=family, layer=label):
                name = found.get(digest(served.module))
                self.assertIsNotNone(name, f"{family}, layer {label} is not among {list(models)}")
                if family in families.CONFIGS:
                    self.described(server, name, served, family)
                    rng = np.random.default_rng(4)
                    ask = Ask("as inspect has it", *draw(rng, served, 4, 99), offset=95)
                    self.ask(server, name, served, ask, family)
        server.stop()

    def test_positions_that_config_json_tells(self):
        for family, config, becomes in (
                ("t5", {"num_heads": 3, "relative_attention_max_distance": 40},
                 {"max_distance": 40}),
                ("llama", {"num_attention_heads": 4, "rope_parameters": {
                    "rope_type": "default", "rope_theta": 300.0}}, {"rope_theta": 300.0})):
            file, layers = families.make(family)
            for served in layers.values():
                for attribute, value in becomes.items():
                    setattr(served.module, attribute, value)
            with open(os.path.join(self.folder, "config.json"), "w") as out:
                json.dump(config, out)
            path = families.write_single(self.folder, family, file)
            self.served_right(self.models_of(self.inspect(path), family), layers, family)

    def test_shards(self):
        """config.json lies beside the index; the file may be named by its whole path, too."""
        file, layers = families.make("gpt2", "F16")
        path = families.write_sharded(self.folder, "sharded", file)
        with open(os.path.join(self.folder, "sharded", "config.json"), "w") as out:
            json.dump(families.CONFIGS["gpt2"], out)
        for name in (path, os.path.join(self.folder, path)):
            text = self.inspect(name)
            self.tensors_are_listed(text, file, "shards")
            config = self.models_of(text, "shards")
            self.checked(config)
            self.served_right(config, layers, "gpt2")

    def test_npz(self):
        file = File(5)
        layers = families.plain(file)
        path = families.write_npz(self.folder, "plain", file, compressed=True)
        text = self.inspect(path, *self.heads_said("plain", layers))
        self.assertIn("layout plain", text)
        config = self.models_of(text, "npz")
        self.checked(config)
        self.served_right(config, layers, "plain")

    def test_torch(self):
        """PyTorch's file alone in a folder; within the checkpoint of a training run."""
        file = File(5)
        layers = families.plain(file)
        for folder, inside in (("torch", None), ("run", "state_dict")):
            os.mkdir(os.path.join(self.folder, folder))
            torch_file.write(os.path.join(self.folder, folder, "pytorch_model.bin"),
                             {name: (dtype, list(array.shape), array.tobytes())
                              for name, (dtype, array) in file.tensors.items()}, inside)
            text = self.inspect(folder, *self.heads_said("plain", layers))
            self.tensors_are_listed(text, file, "torch")
            config = self.models_of(text, "torch")
            self.checked(config)
            self.served_right(config, layers, "plain")

    def test_what_cannot_be_inspected(self):
        torch = os.path.join(ROOT, "tests", "golden", "torch")
        for name, content in (("empty.safetensors", b""), ("text.safetensors", b"not a checkpoint"),
                              ("cut.npz", b"PK\x03\x04"), ("x.index.json", b"{}")):
            with open(os.path.join(self.folder, name), "wb") as out:
                out.write(content)
        for words in (["missing.safetensors"], ["empty.safetensors"], ["text.safetensors"],
                      ["cut.npz"], ["x.index.json"], ["."], [], ["--models"], ["a", "b"],
                      ["--what", "empty.safetensors"], [os.path.join(torch, "legacy.bin")],
                      *([os.path.join(torch, "refused", name)]
                        for name in sorted(os.listdir(os.path.join(torch, "refused"))))):
            with self.subTest(words):
                status, out, err = attend("inspect", *words, cwd=self.folder)
                self.assertEqual((status, out), (2, b""), err)
                self.assertEqual(len(err.strip().splitlines()), 1, err)

    def test_a_file_without_layers(self):
        file = File(6)
        file.linear("dense", 4, 4)
        path = families.write_single(self.folder, "dense", file)
        text = self.inspect(path)
        self.tensors_are_listed(text, file, "dense")
        self.assertNotIn("{", text.splitlines())
        self.assertIn("no layer", text)


add_tests(Inspect)


class Size(FamilyCase):
    """A real encoder's worth of tensors in one file: only what is used is read."""
    LAYERS, WIDTH, SERVED = 12, 768, 7

    def write(self, path):
        """BertModel in the size of its first release, 340 MB, as a file with holes: numbers lie
        only in the layer that is supported, the others are zeros that were never written."""
        file = File(3)
        stem = f"encoder.layer.{self.SERVED}.attention"
        for role in ("query", "key", "value"):
            file.linear(f"{stem}.self.{role}", self.WIDTH, self.WIDTH)
        file.linear(f"{stem}.output.dense", self.WIDTH, self.WIDTH)
        header, places, end = {}, [], 0
        for name, shape in self.tensors():
            begin, end = end, end + 4 * math.prod(shape)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
            if name in file.tensors:
                places.append((begin, file.tensors[name][1]))
        text = json.dumps(header).encode()
        with open(path, "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for begin, array in places:
                out.seek(8 + len(text) + begin)
                out.write(array.tobytes())
            out.truncate(8 + len(text) + end)
        return families.Served({"layer": self.SERVED, "heads": 12}, modules.Bert(
            file.get, 12, f"{stem}.self", f"{stem}.output"))

    def tensors(self):
        d = self.WIDTH
        yield "embeddings.word_embeddings.weight", [30522, d]
        for i in range(self.LAYERS):
            layer = f"encoder.layer.{i}"
            for stem, shape in ([(f"attention.self.{r}", [d, d]) for r in ("query", "key", "value")]
                                + [("attention.output.dense", [d, d]),
                                   ("intermediate.dense", [4 * d, d]),
                                   ("output.dense", [d, 4 * d])]):
                yield f"{layer}.{stem}.weight", shape
                yield f"{layer}.{stem}.bias", shape[:1]

    def test_a_layer_of_a_large_file(self):
        path = os.path.join(self.folder, "large.safetensors")
        served = self.write(path)
        self.assertGreater(os.path.getsize(path), 340e6 * 0.9)
        server = self.serve({"m": dict(served.definition, checkpoint="large.safetensors")})
        with open(f"/proc/{server.pid}/io") as io:
            read = int(io.readline().split()[1])  # rchar: whatever was read, from wherever
        self.described(server, "m", served, "bert")
        if MODE == "release":
            self.assertLess(server.resident(), 60e6, "bytes resident")
        self.assertLess(read, 30e6, "bytes read to serve a layer of 9.4 MB")
        ask = next(asks(served, np.random.default_rng(1)))
        self.ask(server, "m", served, ask, "bert")
        server.stop()


class Messages(FamilyCase):
    """What cannot be served is refused in one sentence that names it and says what would do."""

    def refused(self, definition, *words):
        with open(os.path.join(self.folder, "attend.json"), "w") as out:
            json.dump({"models": {"m": definition}}, out)
        with self.subTest(definition=definition):
            status, _, err = attend("check", "--config", os.path.join(self.folder, "attend.json"))
            self.assertEqual(status, 2, err)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
            for word in words:
                self.assertIn(word, err)

    def written(self, family, change=None):
        """The file's name; `change` works on the file before it is written."""
        file, _ = families.make(family)
        if change:
            change(file)
        return families.write_single(self.folder, family, file)

    def test_which_layer_is_not_told(self):
        for family, words in (
                ("bert", ("layer", "bert.encoder.layer.0.", "bert.encoder.layer.1.")),
                ("gpt2", ("layer", "transformer.h.0.", "transformer.h.1.")),
                ("llama", ("layer", "model.layers.0.", "model.layers.1.")),
                ("torch-encoder", ("layer", "layers.0.self_attn.")),
                ("d2l-dot", ("prefix", "blks.block0.attention.", "blks.block1.attention."))):
            self.refused({"checkpoint": self.written(family), "heads": 2}, *words)
        for family, words in (
                ("clip", ("prefix", "text_model.", "vision_model.")),
                ("t5", ("prefix", "encoder.", "decoder.")),
                ("whisper", ("prefix", "model.encoder.", "model.decoder.")),
                ("torch-transformer", ("prefix", "encoder.", "decoder."))):
            self.refused({"checkpoint": self.written(family), "heads": 2, "layer": 0}, *words)

    def test_a_layer_that_is_not_there(self):
        for family, more in (("bert", {"layer": 12}), ("gpt2", {"layer": 3}),
                             ("t5", {"prefix": "decoder.", "layer": 2}), ("llama", {"layer": 99}),
                             ("whisper", {"prefix": "model.encoder.", "layer": 2})):
            self.refused(dict({"checkpoint": self.written(family), "heads": 2}, **more), "layer")
        path = self.written("clip")
        self.refused({"checkpoint": path, "heads": 2, "layer": 0, "prefix": "image_model."},
                     "prefix", "text_model.")
        self.refused({"checkpoint": path, "heads": 2, "layer": 0, "prefix": "text_model"},
                     "prefix", "text_model.")

    def test_names_of_another_family(self):
        for family, layout in (("bert", "gpt2"), ("gpt2", "bert"), ("t5", "whisper"),
                               ("llama", "t5"), ("llama", "clip"), ("clip", "d2l"),
                               ("vit", "clip"), ("plain", "torch"), ("d2l-dot", "plain")):
            self.refused({"checkpoint": self.written(family), "heads": 2, "layout": layout},
                         "layout", layout)
        self.refused({"checkpoint": self.written("whisper"), "heads": 4, "layout": "llama",
                      "prefix": "model.encoder.", "layer": 0}, "layout", "those of whisper")

    def test_tensors_that_are_missing(self):
        for family, name, more in (
                ("bert", "bert.encoder.layer.1.attention.output.dense.weight", {"layer": 1}),
                ("vit", "encoder.layer.0.attention.attention.value.weight", {"layer": 0}),
                ("gpt2", "transformer.h.2.attn.c_proj.weight", {"layer": 2}),
                ("llama", "model.layers.0.self_attn.v_proj.weight", {"layer": 0}),
                ("clip", "text_model.encoder.layers.1.self_attn.k_proj.weight",
                 {"prefix": "text_model.", "layer": 1}),
                ("t5", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
                 {"prefix": "encoder.", "layer": 1}),
                ("whisper", "model.decoder.layers.0.encoder_attn.out_proj.weight",
                 {"prefix": "model.decoder.layers.0.encoder_attn."})):
            path = self.written(family, lambda file, name=name: file.tensors.pop(name))
            self.refused(dict({"checkpoint": path, "heads": 3 if family == "t5" else 2}, **more),
                         name)

    def test_tensors_that_do_not_fit(self):
        name = "transformer.h.0.attn.c_attn.weight"

        def turned(file):
            dtype, array = file.tensors[name]
            file.tensors[name] = dtype, np.ascontiguousarray(array.T)
        self.refused({"checkpoint": self.written("gpt2", turned), "heads": 4, "layer": 0}, name)
        path = self.written("llama")
        self.refused({"checkpoint": path, "heads": 3, "layer": 0}, "heads")
        self.refused({"checkpoint": path, "heads": 4, "kv_heads": 4, "layer": 0},
                     "16 columns are not 4 heads of 8")
        path = self.written("bert")
        self.refused({"checkpoint": path, "heads": 5, "layer": 0}, "heads")
        self.refused({"checkpoint": path, "heads": 4, "layer": 0, "query_size": 25}, "query_size")

    def test_tensors_of_the_wrong_type_and_numbers(self):
        name = "bert.encoder.layer.0.attention.self.key.weight"

        def typed(file):
            file.add(name, np.ones((24, 24)), "I64")

        def unread(file):
            file.add(name, np.ones((24, 24)), "F8_E4M3")

        def infinite(file):
            file.tensors[name][1][3, 5] = np.inf
        for change in (typed, unread, infinite):
            self.refused({"checkpoint": self.written("bert", change), "heads": 4, "layer": 0}, name)

    def test_what_would_make_it_another_layer(self):
        def biased(file):
            file.normal("bias_k", 1, 1, 15)
            file.normal("bias_v", 1, 1, 15)
        self.refused({"checkpoint": self.written("torch-bare", biased), "heads": 5}, "bias_k")

    def test_shards(self):
        file, _ = families.make("gpt2")
        index = families.write_sharded(self.folder, "sharded", file)
        path = os.path.join(self.folder, index)
        definition = {"checkpoint": index, "heads": 4, "layer": 0}
        with open(path) as source:
            right = json.load(source)
        name = "transformer.h.0.attn.c_proj.weight"
        for place in ("../other.safetensors", "sub/other.safetensors", ".."):
            wrong = dict(right, weight_map=dict(right["weight_map"], **{name: place}))
            with open(path, "w") as out:
                json.dump(wrong, out)
            self.refused(definition, name, "named without a folder", "model.safetensors.index.json")
        shard = right["weight_map"][name]
        others = [other for other in right["weight_map"].values() if other != shard]
        wrong = dict(right, weight_map=dict(right["weight_map"], **{name: others[0]}))
        with open(path, "w") as out:
            json.dump(wrong, out)
        self.refused(definition, name, others[0])
        with open(path, "w") as out:
            json.dump(right, out)
        os.remove(os.path.join(self.folder, "sharded", shard))
        self.refused(definition, shard)
