"""test_compute: models in 8 bits: every route answers, near float32, with the same bits at every level, with any number
of workers and in any company; what is told of them; every mistake.
"""
import json
import math
import os
import random
import re
import shutil
import signal
import tempfile
import threading
import unittest

import numpy

from support import (GOLDEN, Layer, Server, ServerCase, attend, flat, randoms, read_safetensors, safetensors_bytes,
                     wait_until)

MODES = ("float32", "int8", "int8-block")
NEAR = {"int8": 0.1, "int8-block": 0.05}  # the most error, of rms numbers
WORDS = ("portable", "avx2", "avx2vnni", "avx512", "avx512vnni")
WIDE = {"transformer": {"random": {"seed": 5}}, "kind": "encoder", "layers": 2, "width": 72, "heads": 6,
        "feed_forward": 200, "vocabulary": 90}
WHOLES = {"encoder": dict(WIDE, classes=3),
          "turned": dict(WIDE, kv_heads=2, norm="pre", norm_kind="rms", gated=True, activation="silu", positions="rotary",
                         pool="mean", normalize=True),
          "decoder": dict(WIDE, kind="decoder"),
          "learned": dict(WIDE, kind="decoder", norm="pre", activation="gelu", positions="learned",
                          max_positions=150),
          "pair": dict(WIDE, kind="seq2seq", activation="gelu"),
          "t5": {"transformer": os.path.join(GOLDEN, "models", "t5-v11")},  # with a head of its own
          "sort": {"transformer": {"builtin": "sort"}}}
LAYERS = {"layer": Layer(11, 72, 4, kv_heads=2), "grouped": Layer(12, 72, 4, projection="grouped"),
          "additive": Layer(13, 48, 2, score="additive", score_size=9)}
CHANCE = random.Random(7)
TOKENS = [[CHANCE.randrange(30) for _ in range(n)] for n in (9, 1, 16, 4)]
TARGETS = [[CHANCE.randrange(30) for _ in range(n)] for n in (3, 8, 1, 5)]
SEEN = {"return_hidden": "all", "return_attention": True}
ROWS = {name: randoms(CHANCE, 2, 7, LAYERS["layer"].query_size) for name in ("queries", "keys")}
NARROW = {name: randoms(CHANCE, 2, 7, 48) for name in ("queries", "keys")}


def asked():
    """[(model, path, request)]: of every route, and of what it can tell."""
    trace = {"attention": "encoder.1.self", "item": 2, "head": 3, "query": 5}
    for model in ("encoder", "turned", "sort"):
        yield model, "encode", dict(SEEN, tokens=TOKENS)
        yield model, "encode", {"tokens": TOKENS, "pool": "mean", "head_mask": {
            "encoder.1.self": [1, 0, 0.5, 1] if model == "sort" else [1, 0, 0.5, 1, 1, 0]}}
        yield model, "heads", {"tokens": TOKENS}
    yield "encoder", "encode", {"tokens": TOKENS, "trace": trace}
    yield "encoder", "classify", {"tokens": TOKENS}
    yield "encoder", "layers/encoder.1.self/attention", dict(ROWS, return_attention=True)
    for model in ("decoder", "learned"):
        yield model, "encode", dict(SEEN, tokens=TOKENS)
        yield model, "score", {"tokens": TOKENS, "targets": TARGETS, "return_lens": 2, "return_hidden": "all"}
    for model in ("decoder", "learned", "pair", "t5"):
        texts = {"tokens": TOKENS, "targets": TARGETS}
        yield model, "score", dict(texts, return_top=3)
        yield model, "heads", {"tokens": TOKENS[:2], "targets": TARGETS[:2]}
        yield model, "generate", {"tokens": TOKENS, "max_tokens": 12, "return_top": 2}
        yield model, "generate", {"tokens": TOKENS, "max_tokens": 12, "stream": True}
        yield model, "generate", {"tokens": TOKENS, "max_tokens": 6, "temperature": 1, "seed": 4}
        yield model, "generate", {"tokens": TOKENS, "max_tokens": 6, "beams": 3, "returns": 2, "return_search": True}
    for model, rows in (("layer", ROWS), ("grouped", ROWS), ("additive", NARROW)):
        yield model, "attention", dict(rows, return_attention=True, valid_lens=[7, 3])
        yield model, "attention", dict(rows, trace={"item": 1, "head": 1, "query": 6}, head_mask=[0.5] * (
            2 if model == "additive" else 4))
        yield model, "heads", rows


ASKED = list(asked())
# Numbers that do not depend on a choice, and so are near each other.
SMOOTH = ("outputs", "hidden", "log_probabilities", "scores")


def modes(definitions):
    """The models in every mode, by names such as layer-int8."""
    return {f"{name}-{mode}": dict(definition, compute=mode)
            for name, definition in definitions.items() for mode in MODES}


def numbers(answer):
    return numpy.array([x for field in SMOOTH for x in leaves(answer.get(field, []))])


def leaves(x):
    return [y for part in x.values() for y in leaves(part)] if isinstance(x, dict) else flat(x)


class Case(ServerCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        layers = {name: layer.definition(cls.folder, name) for name, layer in LAYERS.items()}
        cls.models = modes(dict(WHOLES, **layers))
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder)

    @classmethod
    def start(cls):
        return cls.serve("--workers", "1")

    @classmethod
    def serve(cls, *args, env=None):
        return Server({"models": cls.models}, *args, env=env, folder=cls.folder)

    @staticmethod
    def ask(server, mode, connection=None):
        """The answers to all that is asked, of models in a mode."""
        own = connection or server.connect()
        answers = [server.post(f"/v1/models/{model}-{mode}/{path}", request, connection=own)
                   for model, path, request in ASKED]
        if not connection:
            own.close()
        return answers

    def compare(self, answers, others, what):
        for (model, path, request), one, other in zip(ASKED, answers, others, strict=True):
            self.assertEqual(one.status, 200, (model, path, one))
            bodies = [one.body, other.body]
            if "stream" in request:  # which item's event is sent first depends on time
                bodies = [sorted(body.split(b"\n\n")) for body in bodies]
            self.assertEqual(*bodies, (model, path, what))


class Numbers(Case):
    def test_every_route_answers_near_float32(self):
        exact = self.ask(self.server, "float32")
        for mode, most in NEAR.items():
            for (model, path, request), answer, right in zip(ASKED, self.ask(self.server, mode), exact, strict=True):
                with self.subTest(model=model, path=path, mode=mode, request=list(request)):
                    self.assertEqual((answer.status, right.status), (200, 200), answer)
                    # the sorter's choices are near ties once a head is hidden
                    if path in ("heads", "generate") or (model == "sort" and "head_mask" in request):
                        continue
                    got, wanted = numbers(answer.json), numbers(right.json)
                    self.assertGreater(len(wanted), 0)
                    error = math.sqrt(numpy.mean((got - wanted) ** 2) / numpy.mean(wanted ** 2))
                    self.assertGreater(error, 0)
                    self.assertLess(error, most)

    def test_generated_tokens_have_the_scores_of_score(self):
        for model in ("decoder", "learned", "pair", "t5"):
            for mode in NEAR:
                path = f"/v1/models/{model}-{mode}/"
                made = self.ok(self.server.post(path + "generate", {"tokens": TOKENS, "max_tokens": 12, "return_top": 2}))
                targets = [texts[0]["tokens"] for texts in made["sequences"]]
                scored = self.ok(self.server.post(path + "score", {"tokens": TOKENS, "targets": targets,
                                                                   "return_top": 2}))
                for item, (sequence,) in enumerate(made["sequences"]):
                    self.assertEqual(sequence["log_probabilities"], scored["log_probabilities"][item], (model, mode))
                    self.assertEqual(sequence["top"], scored["top"][item])

    def test_what_is_told(self):
        for name in list(WHOLES) + list(LAYERS):
            told = {mode: self.ok(self.server.get(f"/v1/models/{name}-{mode}")) for mode in MODES}
            self.assertEqual(len({about["sha256"] for about in told.values()}), 1)
            for mode, about in told.items():
                self.assertEqual(about["compute"], mode)
                self.assertEqual(self.server.metric("attend_model_info", f'model="{name}-{mode}",sha256="{about["sha256"]}"'), 1)
                self.assertEqual(self.server.metric("attend_model_info", f',compute="{mode}"'), len(WHOLES) + len(LAYERS))
                line = re.search(f'msg="model {name}-{mode}: (.*)"', self.server.stderr()).group(1)
                self.assertEqual(re.findall(r"compute=(\S+)", line), [] if mode == "float32" else [mode])


class Bits(Case):
    def test_every_level(self):
        """float32 has other bits at other levels."""
        first = {mode: self.ask(self.server, mode) for mode in NEAR}
        levels = []
        for word in WORDS:
            server = self.serve("--workers", "1", env={"ATTEND_CPU": word})
            if server.told(r"\bkernels (\w+)").group(1) == word:
                levels.append(word)
                for mode, answers in first.items():
                    self.compare(answers, self.ask(server, mode), (mode, word))
            server.stop()
        self.assertEqual(levels[0], "portable")

    def test_any_number_of_workers_and_any_company(self):
        first = {mode: self.ask(self.server, mode) for mode in MODES}
        for args in (["--workers", "1"], ["--workers", "2"], ["--workers", "2", "--no-merge"],
                     ["--workers", "2", "--prefix-cache-bytes", "1000000"]):
            server = self.serve(*args)
            others, threads = {}, []
            for turn, mode in enumerate(MODES * 2):
                threads.append(threading.Thread(target=lambda turn=turn, mode=mode: others.update(
                    {(turn, mode): self.ask(server, mode)})))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len(others), len(threads))
            for (_, mode), answers in others.items():
                self.compare(first[mode], answers, (mode, args))
            server.stop()

    def test_an_item_alone(self):
        for mode in NEAR:
            for model, path, field in (("turned", "encode", "outputs"), ("decoder", "score", "log_probabilities"),
                                       ("pair", "score", "log_probabilities"), ("t5", "score", "log_probabilities")):
                request = {"tokens": TOKENS, "targets": TARGETS} if path == "score" else {"tokens": TOKENS}
                path = f"/v1/models/{model}-{mode}/{path}"
                together = self.ok(self.server.post(path, request))[field]
                for item, row in enumerate(together):
                    alone = {name: [value[item]] for name, value in request.items()}
                    self.assertEqual(self.ok(self.server.post(path, alone))[field], [row], (model, mode, item))


class Definitions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data if isinstance(data, bytes) else json.dumps(data).encode())
        return path

    def check(self, definition, *args, env=None, **settings):
        """What `attend check` says of a model m."""
        path = self.write("attend.json", dict(settings, models={"m": definition}))
        status, _, err = attend("check", "--config", path, *args, env=env)
        return status, err

    def test_who_decides(self):
        """The definition before the config.json of a custom model, before the setting: and there the command line before
        the environment, before the file."""
        tensors, _ = read_safetensors(os.path.join(GOLDEN, "models", "torch-post", "model.safetensors"))
        with open(os.path.join(GOLDEN, "models", "torch-post", "config.json"), "rb") as file:
            told = json.load(file)
        for folder, more in (("silent", {}), ("custom", {"compute": "int8-block"})):
            self.write(f"{folder}/model.safetensors", safetensors_bytes(tensors))
            self.write(f"{folder}/config.json", dict(told, **more))
        layer, silent, custom = {"random": {"seed": 1}, "query_size": 8, "heads": 2}, {"transformer": "silent"}, {
            "transformer": "custom"}
        for definition, args, env, settings, mode in (
                (layer, (), {}, {}, None), (layer, (), {}, {"compute": "int8"}, "int8"),
                (layer, (), {"ATTEND_COMPUTE": "int8-block"}, {"compute": "int8"}, "int8-block"),
                (layer, ("--compute", "int8"), {"ATTEND_COMPUTE": "int8-block"}, {}, "int8"),
                (dict(layer, compute="float32"), ("--compute", "int8"), {}, {}, None),
                (silent, ("--compute", "int8"), {}, {}, "int8"), (silent, (), {}, {}, None),
                (dict(silent, compute="int8-block"), ("--compute", "int8"), {}, {}, "int8-block"),
                (custom, ("--compute", "int8"), {}, {}, "int8-block"),
                (dict(custom, compute="float32"), ("--compute", "int8"), {}, {}, None)):
            status, err = self.check(definition, *args, env=env, **settings)
            self.assertEqual(status, 0, err)
            self.assertEqual(re.findall(r"compute=(\S+)", err), [mode] if mode else [], (definition, args, env))

    def test_layers_of_a_checkpoint(self):
        status, err = self.check({"checkpoint": os.path.join(GOLDEN, "models", "bert-b"), "layers": "all",
                                  "compute": "int8"})
        self.assertEqual(status, 0, err)
        self.assertEqual(re.findall(r"model (m\.\d): heads=.* compute=int8 ", err), ["m.0", "m.1"])

    def test_wrong_words(self):
        words = "is not one of float32, int8, int8-block"
        layer, whole = {"random": {"seed": 1}, "query_size": 8, "heads": 2}, {"transformer": {"builtin": "sort"}}
        for definition in (layer, whole):
            for value, problem in (("int4", f'"int4" {words}'), ("", f'"" {words}'), (8, "needs a string, not an integer"),
                                   (None, "needs a string, not null")):
                status, err = self.check(dict(definition, compute=value))
                self.assertEqual((status, err), (2, f"attend: model m: compute: {problem}\n"))
        status, err = self.check(layer, compute="int4")
        self.assertEqual((status, err), (2, 'attend: compute in attend.json: "int4" is not one of float32|int8|int8-block\n'
                                         .replace("attend.json", os.path.join(self.folder, "attend.json"))))

    def test_what_cannot_be_quantized_is_named(self):
        """By its tensor in a model, by its role in a layer; in the other mode it can."""
        many = "int8 has at most 66000 inputs of a matrix, and this one has 70000; use int8-block\n"
        large = "a weight of 1e+08 is too large for int8-block; use int8\n"
        deep = dict(WIDE, width=8, heads=2, feed_forward=70000, vocabulary=5)
        cases = [
            ({"random": {"seed": 1}, "query_size": 70000, "key_size": 4, "value_size": 4, "hidden": 4, "output_size": 4,
              "heads": 2}, "int8", "query: " + many),
            (deep, "int8", 'tensor "encoder.layers.0.linear2.weight": ' + many),
            (dict(deep, kind="seq2seq", decoder={"feed_forward": 70000}, encoder={"feed_forward": 8}), "int8",
             'tensor "decoder.layers.0.linear2.weight": ' + many)]
        small = {f"{role}.weight": ([4, 4], [0.5] * 16) for role in ("query", "key", "value", "output")}
        for role in ("query", "output"):
            path = self.write(f"{role}.safetensors", safetensors_bytes(
                dict(small, **{f"{role}.weight": ([4, 4], [0.5] * 15 + [-1e8])})))
            cases.append(({"checkpoint": path, "heads": 2}, "int8-block", f"{role}: {large}"))
        for model, name in (("gpt2-b", "wte.weight"), ("gpt2-b", "h.1.mlp.c_proj.weight"), ("t5-v11", "lm_head.weight"),
                            ("bert-b", "pooler.dense.weight")):
            folder = os.path.join(self.folder, name)
            shutil.copytree(os.path.join(GOLDEN, "models", model), folder)
            tensors, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
            name, = (known for known in tensors if known.endswith(name))
            tensors[name][1][-1] = 1e8
            with open(os.path.join(folder, "model.safetensors"), "wb") as file:
                file.write(safetensors_bytes(tensors))
            cases.append(({"transformer": folder}, "int8-block", f'{folder[-120:]}: tensor "{name}": {large}'))
        for definition, mode, problem in cases:
            with self.subTest(problem):
                status, err = self.check(dict(definition, compute=mode))
                self.assertEqual((status, err), (2, f"attend: model m: {problem}"))
                status, err = self.check(dict(definition, compute="int8-block" if mode == "int8" else "int8"))
                self.assertTrue(status == 0 or "self-test failed" in err, err)

    def test_a_reload_applies_the_setting(self):
        models = {"silent": {"random": {"seed": 1}, "query_size": 8, "heads": 2},
                  "said": {"random": {"seed": 1}, "query_size": 8, "heads": 2, "compute": "int8-block"},
                  "sort": {"transformer": {"builtin": "sort"}}}
        self.write("attend.json", {"models": models})
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"))
        self.addCleanup(server.kill)
        for turn, (settings, more, mode, changed) in enumerate((
                ({"compute": "int8"}, {}, "int8", "changed: silent, sort"),
                ({"compute": "int8"}, {}, "int8", "nothing changed"),
                ({"compute": "int8"}, {"compute": "int8"}, "int8", "changed: sort"),
                ({"compute": "int8-block"}, {"compute": "int8"}, "int8", "changed: silent"),
                ({}, {}, "float32", "changed: silent, sort"))):
            models["sort"] = dict({"transformer": {"builtin": "sort"}}, **more)
            self.write("attend.json", dict(settings, models=models))
            server.signal(signal.SIGHUP)
            wait_until(lambda: server.metric("attend_reloads_total", 'result="ok"') > turn)
            server.told(rf"(?s)(reloaded in .*){{{turn + 1}}}")
            self.assertEqual(re.findall(r"reloaded in .*?; (.*?)\"", server.stderr())[-1], changed)
            modes = {model["name"]: model["compute"] for model in server.get("/v1/models").json["models"]}
            self.assertEqual(modes, {"silent": settings.get("compute", "float32"), "said": "int8-block", "sort": mode})
        self.assertNotIn("requires a restart", server.stderr())
        server.stop()

    def test_inspect_says_the_sizes(self):
        """Of a model that is large enough for its matrices to count: as much as the server reports, or nearly."""
        chance, width = numpy.random.default_rng(1), 256
        tensors = {f"{name}.weight": chance.normal(size=shape) * 0.05 for name, shape in (
            ("self_attn.in_proj", (3 * width, width)), ("self_attn.out_proj", (width, width)), ("linear1", (1024, width)),
            ("linear2", (width, 1024)), ("norm1", (width,)), ("norm2", (width,)))}
        tensors = {"layers.0." + name.replace("in_proj.", "in_proj_"): x for name, x in tensors.items()}
        tensors.update({f"layers.0.{name}": numpy.zeros(size) for name, size in (
            ("self_attn.in_proj_bias", 3 * width), ("self_attn.out_proj.bias", width), ("linear1.bias", 1024),
            ("linear2.bias", width), ("norm1.bias", width), ("norm2.bias", width))})
        self.write("large/model.safetensors", safetensors_bytes(
            {name: (list(x.shape), x.ravel().tolist()) for name, x in tensors.items()}))
        self.write("large/config.json", {"model_type": "transformer", "heads": 4, "positions": "none"})
        self.inspect_agrees("large")

    def test_inspect_counts_projected_positions(self):
        """The positions of DeBERTa are float32 in every mode; what they are computed from is not kept."""
        width = buckets = 256
        shapes = {"embeddings.word_embeddings": (8, width), "embeddings.LayerNorm": (width,),
                  "encoder.rel_embeddings": (2 * buckets, width)}
        for name in ("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj",
                     "attention.self.pos_key_proj", "attention.self.pos_query_proj", "attention.output.dense",
                     "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"):
            shapes["encoder.layer.0." + name] = (width,) if name.endswith("LayerNorm") else (width, width)
        self.write("far/model.safetensors", safetensors_bytes(
            {f"{name}.{part}": (list(size), [0.01] * int(numpy.prod(size))) for name, shape in shapes.items()
             for part, size in (("weight", shape), ("bias", shape[:1])) if part == "weight" or "_embeddings" not in name}))
        self.write("far/config.json", {
            "model_type": "deberta-v2", "hidden_size": width, "intermediate_size": width, "num_hidden_layers": 1,
            "num_attention_heads": 4, "vocab_size": 8, "type_vocab_size": 0, "layer_norm_eps": 1e-7,
            "hidden_act": "gelu", "relative_attention": True, "share_att_key": False, "pos_att_type": ["c2p", "p2c"],
            "position_biased_input": False, "position_buckets": buckets, "max_position_embeddings": 512})
        self.inspect_agrees("far")

    def inspect_agrees(self, folder):
        status, out, _ = attend("inspect", folder, cwd=self.folder)
        self.assertEqual(status, 0)
        sizes = {mode: float(size) for size, mode in re.findall(r"([\d.]+) MB as (float32|int8\S*?)[,;\n]", out.decode())}
        self.assertEqual(list(sizes), list(MODES))
        self.write("attend.json", {"models": modes({"m": {"transformer": folder}})})
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"))
        for mode, size in sizes.items():
            took = server.get(f"/v1/models/m-{mode}").json["bytes"]
            self.assertLess(abs(took - size * 1e6), 0.03e6, (mode, sizes))
        server.stop()


if __name__ == "__main__":
    unittest.main()
