"""test_attention: the numbers: golden vectors, a float64 oracle, shapes, what a query may see."""
import array
import glob
import hashlib
import json
import math
import os
import random
import re
import signal
import tempfile
import unittest

from compare import OracleCase
from support import GOLDEN, Case, Layer, Server, ServerCase, attend, f32, flat, randoms, read_golden


class Golden(Case):
    """Every file of tests/golden: the checkpoint served, its request asked, its answer compared."""

    def check(self, path):
        name = os.path.splitext(os.path.basename(path))[0]
        definition, tensors, request, expected = read_golden(path)
        if tensors:
            definition["checkpoint"] = path
        server = Server({"models": {name: definition}})
        try:
            answer = self.ok(server.attend(request, name))
            hidden = self.ok(server.get(f"/v1/models/{name}"))["hidden"]
        finally:
            server.stop()
        self.assertEqual(set(answer), {"model", *expected})
        self.close_to(answer["outputs"], expected["outputs"], 2e-6 * math.sqrt(hidden), "outputs")
        for member in sorted(set(expected) - {"outputs"}):
            self.close_to(answer[member], expected[member], 2e-6, member)
        for want, got in zip(flat(expected["attention_weights"]),
                             flat(answer["attention_weights"])):
            if want == 0:
                self.assertEqual(got, 0, "a hidden key weighs exactly nothing")

    def test_every_file(self):
        paths = sorted(glob.glob(os.path.join(GOLDEN, "*.safetensors")))
        self.assertGreater(len(paths), 15, "the golden files are missing")
        for path in paths:
            with self.subTest(os.path.basename(path)):
                self.check(path)


class Requests(OracleCase):
    """Requests of every form against float64 attention in Python."""

    @classmethod
    def make_layers(cls):
        return {
            "plain": Layer(1, 12, 3),
            "nobias": Layer(2, 8, 2, bias=False),
            "gqa": Layer(3, 16, 4, kv_heads=2),
            "mqa": Layer(4, 12, 4, kv_heads=1, head_size=5),
            "odd": Layer(5, 7, 3, head_size=5, key_size=9, value_size=4, output_size=6),
            "wide": Layer(6, 100, 5),
            "split": Layer(7, 12, 3, projection="none"),
            "loud": Layer(8, 8, 2, scale=1.0),
        }

    def inputs(self, name, b, q, k, seed=0):
        """Queries, keys and values of normal numbers; q and k may be lists, one per item."""
        layer, rng = self.layers[name], random.Random(seed)
        qs = q if isinstance(q, list) else [q] * b
        ks = k if isinstance(k, list) else [k] * b
        return {"queries": [randoms(rng, n, layer.query_size) for n in qs],
                "keys": [randoms(rng, n, layer.key_size) for n in ks],
                "values": [randoms(rng, n, layer.value_size) for n in ks]}

    def check(self, name, request, average=True):
        """Asks for all weights, and for their average, and compares both. Returns the former."""
        answer = self.agrees(name, dict(request, return_attention=True))
        if average:
            mean = self.agrees(name, dict(request, return_attention="average"))
            self.assertEqual(mean["outputs"], answer["outputs"])
        return answer

    def test_every_layer(self):
        for name in self.layers:
            with self.subTest(name):
                self.check(name, self.inputs(name, 2, 4, 6))

    def test_shapes(self):
        for b, q, k in ((1, 1, 1), (1, 1, 17), (1, 17, 1), (3, 2, 5), (1, 65, 70), (2, 33, 130),
                        (9, 1, 3)):
            with self.subTest(b=b, q=q, k=k):
                self.check("gqa", self.inputs("gqa", b, q, k))

    def test_ragged(self):
        self.check("plain", self.inputs("plain", 4, [3, 1, 0, 5], [2, 7, 4, 1]))
        self.check("odd", self.inputs("odd", 3, [1, 70, 2], [65, 3, 0]))

    def test_empty_cases(self):
        layer = self.layers["plain"]
        self.assertEqual(self.ok(self.server.attend({"queries": []}))["outputs"], [])
        answer = self.ok(self.server.attend({"queries": [[]], "return_attention": True}))
        self.assertEqual(answer["outputs"], [[]])
        self.assertEqual(answer["attention_weights"], [[[], [], []]])
        rows = randoms(random.Random(1), 2, layer.query_size)
        answer = self.ok(self.server.attend({"queries": [rows], "keys": [[]],
                                             "return_attention": True}))
        bias = layer.tensors["output.bias"][1]
        got = [[[f32(x) for x in row] for row in item] for item in answer["outputs"]]
        self.assertEqual(got, [[bias, bias]], "nothing to see: the bias alone")
        self.assertEqual(answer["attention_weights"], [[[[], []]] * 3])
        answer = self.ok(self.server.attend({"queries": [[]], "keys": [rows],
                                             "return_attention": True}))
        self.assertEqual((answer["outputs"], answer["attention_weights"]), ([[]], [[[]] * 3]))
        self.ok(self.server.attend({"queries": [rows], "keys": [[]], "empty_rows": "uniform"}))

    def test_self_attention(self):
        rng = random.Random(3)
        queries = [randoms(rng, 5, 12), randoms(rng, 2, 12)]
        implied = self.check("plain", {"queries": queries})
        spelled = self.ok(self.server.attend({"queries": queries, "keys": queries,
                                              "values": queries, "return_attention": True}))
        self.assertEqual(implied, spelled)
        keys = [randoms(rng, 3, 12), randoms(rng, 4, 12)]
        implied = self.check("plain", {"queries": queries, "keys": keys})
        spelled = self.ok(self.server.attend({"queries": queries, "keys": keys, "values": keys,
                                              "return_attention": True}))
        self.assertEqual(implied, spelled)

    def test_unbatched(self):
        request = dict(self.inputs("plain", 1, 3, 4), valid_lens=[2], return_attention=True)
        for extra in ({}, {"valid_lens": [[1, 4, 0]]}, {"causal": True, "causal_offset": [1]}):
            with self.subTest(extra):
                batched = dict(request, **extra)
                single = {k: v[0] if isinstance(v, list) else v for k, v in batched.items()}
                whole = self.ok(self.server.attend(batched))
                one = self.ok(self.server.attend(single))
                self.assertEqual(one["outputs"], whole["outputs"][0])
                self.assertEqual(one["attention_weights"], whole["attention_weights"][0])

    def test_valid_lens(self):
        request = self.inputs("plain", 3, 4, 6)
        self.check("plain", dict(request, valid_lens=[6, 0, 3]))
        self.check("plain", dict(request, valid_lens=[[1, 2, 3, 6], [0, 0, 0, 0], [6, 0, 6, 1]]))
        self.check("plain", dict(request, valid_lens=None))
        self.check("gqa", dict(self.inputs("gqa", 2, 70, 130), valid_lens=[129, 64]))
        ragged = self.inputs("plain", 2, [2, 3], [5, 1])
        self.check("plain", dict(ragged, valid_lens=[[5, 0], [1, 0, 1]]))

    def test_empty_rows_uniform(self):
        request = self.inputs("plain", 2, 2, 5)
        self.check("plain", dict(request, valid_lens=[0, 3], empty_rows="uniform"))
        self.check("plain", dict(request, valid_lens=[0, 3], empty_rows="zero"))

    def test_masks(self):
        rng = random.Random(5)
        request = self.inputs("plain", 2, 4, 6)
        shared = [[rng.random() < 0.5 for _ in range(6)] for _ in range(4)]
        shared[1] = [False] * 6
        self.check("plain", dict(request, mask=shared))
        own = [[[rng.randrange(2) for _ in range(6)] for _ in range(4)] for _ in range(2)]
        self.check("plain", dict(request, mask=own))
        self.check("plain", dict(request, mask=own, valid_lens=[4, 5], causal=True))
        ragged = self.inputs("plain", 2, [2, 3], [4, 1])
        self.check("plain", dict(ragged, mask=[[[1, 0, 1, 1], [0, 0, 0, 1]], [[1], [0], [1]]]))

    def test_bias(self):
        rng = random.Random(6)
        request = self.inputs("gqa", 2, 3, 5)
        for shape in ((3, 5), (2, 3, 5), (2, 4, 3, 5)):
            with self.subTest(shape):
                self.check("gqa", dict(request, bias=randoms(rng, *shape)))
        self.check("gqa", dict(request, bias=randoms(rng, 2, 4, 3, 5), valid_lens=[2, 4]))

    def test_causal(self):
        request = self.inputs("plain", 2, 4, 6)
        for extra in ({}, {"causal_offset": 2}, {"causal_offset": -2}, {"causal_offset": [0, 3]},
                      {"causal_offset": "end"}):
            with self.subTest(extra):
                self.check("plain", dict(request, causal=True, **extra))
        self.check("plain", dict(self.inputs("plain", 2, [3, 2], [5, 2]), causal=True,
                                 causal_offset="end"))
        self.check("gqa", dict(self.inputs("gqa", 1, 130, 130), causal=True), average=False)

    def test_window(self):
        request = self.inputs("plain", 1, 7, 9)
        for window in ([0, 0], [1, 1], [2, 0], [-1, 1], [3, -1], [-1, -1], [100, 100]):
            for extra in ({}, {"causal": True}, {"causal_offset": 3}, {"causal_offset": "end"}):
                with self.subTest(window=window, **extra):
                    self.check("plain", dict(request, window=window, **extra), average=False)

    def test_head_mask(self):
        request = self.inputs("plain", 2, 3, 4)
        answer = self.check("plain", dict(request, head_mask=[1, 0, 0.5]))
        whole = self.check("plain", request)
        self.assertEqual(answer["attention_weights"], whole["attention_weights"])
        self.check("plain", dict(request, head_mask=[0, 0, 0]))

    def test_everything_at_once(self):
        rng = random.Random(7)
        request = self.inputs("mqa", 2, 5, 7)
        self.check("mqa", dict(request, valid_lens=[7, 4], mask=[[rng.random() < 0.7
                                                                  for _ in range(7)]
                                                                 for _ in range(5)],
                               bias=randoms(rng, 2, 5, 7), causal=True, causal_offset="end",
                               window=[3, 1], head_mask=[1, 2, 0, -1], empty_rows="uniform"))

    def test_what_is_not_asked_for_is_not_sent(self):
        request = self.inputs("plain", 1, 2, 3)
        for extra in ({}, {"return_attention": False}):
            answer = self.ok(self.server.attend(dict(request, **extra)))
            self.assertEqual(sorted(answer), ["model", "outputs"])

    def test_garbage_in_hidden_keys_changes_no_bit(self):
        for name in ("plain", "gqa", "split"):
            for q, k in ((3, 6), (40, 100)):
                request = dict(self.inputs(name, 2, q, k), valid_lens=[k // 2, 1],
                               return_attention=True)
                clean = self.server.attend(request, name)
                self.ok(clean)
                for garbage in (3e38, -3e38, 0, 1e-40):
                    dirty = json.loads(json.dumps(request))
                    for item, n in enumerate(request["valid_lens"]):
                        for j in range(n, k):
                            dirty["keys"][item][j] = [garbage] * len(dirty["keys"][item][j])
                            dirty["values"][item][j] = [-garbage] * len(dirty["values"][item][j])
                    with self.subTest(name=name, q=q, garbage=garbage):
                        self.assertEqual(self.server.attend(dirty, name).body, clean.body)

    def test_garbage_under_a_mask_changes_no_bit(self):
        request = dict(self.inputs("plain", 1, 2, 4), mask=[[1, 0, 1, 1], [1, 0, 1, 0]],
                       return_attention=True)
        clean = self.server.attend(request)
        self.ok(clean)
        for garbage in (3e38, -3e38):
            request["keys"][0][1] = [garbage] * 12
            request["values"][0][1] = [garbage, -garbage] * 6
            self.assertEqual(self.server.attend(request).body, clean.body)

    def test_large_scores_do_not_overflow(self):
        request = self.inputs("split", 1, 3, 5)
        request["queries"] = [[[x * 1e10 for x in row] for row in request["queries"][0]]]
        request["keys"] = [[[x * 1e10 for x in row] for row in request["keys"][0]]]
        answer = self.ok(self.server.attend(dict(request, return_attention=True), "split"))
        for row in (row for head in answer["attention_weights"][0] for row in head):
            self.assertAlmostEqual(math.fsum(row), 1, places=6)

    def test_overflow_is_refused(self):
        request = self.inputs("plain", 1, 2, 3)
        huge = [[[3e38] * 12] * 3]
        for field in ("queries", "keys", "values"):
            with self.subTest(field):
                bad = dict(request, **{field: huge if field != "queries" else [huge[0][:2]]})
                self.problem(self.server.attend(bad), 422, "not-finite")
        scores = {"queries": [[[3e38] * 12]], "keys": [[[3e38] * 12]], "values": [[[1] * 12]]}
        self.problem(self.server.attend(scores, "split"), 422, "not-finite")
        self.ok(self.server.attend(self.inputs("plain", 1, 1, 1)))
        self.settled()

    def test_model_descriptions(self):
        models = {m["name"]: m for m in self.ok(self.server.get("/v1/models"))["models"]}
        self.assertEqual(list(models), list(self.layers))
        for name, layer in self.layers.items():
            one = self.ok(self.server.get(f"/v1/models/{name}"))
            self.assertEqual({key: one[key] for key in models[name]}, models[name])  # test_openai has the others
            expected = {"score": "scaled_dot", "weighting": "softmax",
                        "projection": layer.projection, "heads": layer.heads,
                        "kv_heads": layer.kv_heads, "query_size": layer.query_size,
                        "key_size": layer.key_size, "value_size": layer.value_size,
                        "output_size": layer.output_size, "causal": False}
            self.assertEqual({k: one.get(k) for k in expected}, expected)
            self.assertRegex(one["sha256"], r"^[0-9a-f]{64}$")
            if layer.projection == "linear":
                self.assertEqual(one["source"], name + ".safetensors")
                self.assertEqual(one["bias"], layer.bias)
                self.assertEqual(one["parameters"],
                                 sum(len(numbers) for _, numbers in layer.tensors.values()))

    def test_engine_is_told(self):
        """Kernels of our own where there are vectors for them, OpenBLAS elsewhere, or as forced."""
        level = self.server.told(r"\bkernels (portable|avx2|avx512)\b").group(1)
        self.server.told(rf"\bkernels {level}, text (portable|avx2|{level})\b")
        own = os.environ.get("ATTEND_GEMM") or ("openblas" if level == "portable" else "packed")
        for name, engine in (("plain", own), ("split", "none")):
            with self.subTest(name):
                self.assertEqual(self.ok(self.server.get(f"/v1/models/{name}"))["engine"], engine)
                self.server.told(rf"model {name}: .*\bengine={engine}\b" if engine == "openblas"
                                 else rf"model {name}: (?!.*engine=)")
        for forced in ("packed", "openblas"):
            server = Server(None, "--gemm", forced)
            engine = self.ok(server.get("/v1/models/base"))["engine"]
            server.stop()
            self.assertEqual(engine, forced)

    def test_digest_of_a_checkpoint(self):
        layer = self.layers["plain"]
        digest = hashlib.sha256()
        for role in ("query", "key", "value", "output"):
            for part in ("weight", "bias"):
                digest.update(array.array("f", layer.tensors[f"{role}.{part}"][1]).tobytes())
        self.assertEqual(self.ok(self.server.get("/v1/models/plain"))["sha256"],
                         digest.hexdigest())


class BuiltIn(ServerCase):
    """What serves without a configuration."""

    def test_the_models(self):
        names = [m["name"] for m in self.ok(self.server.get("/v1/models"))["models"]]
        self.assertEqual(names, ["words", "story", "sort", "demo", "base", "additive"])
        demo = self.ok(self.server.get("/v1/models/demo"))
        self.assertEqual((demo["query_size"], demo["heads"], demo["source"]), (4, 2, "random"))

    def test_models_in_the_program_say_so_and_take_text(self):
        models = {m["name"]: m for m in self.ok(self.server.get("/v1/models"))["models"]}
        self.assertEqual({n: m.get("builtin") for n, m in models.items()},
                         {"words": "words", "story": "story", "sort": "sort", "demo": None, "base": None, "additive": None})
        self.assertEqual({n: m["tokenizer"] for n, m in models.items() if "tokenizer" in m},
                         dict.fromkeys(["words", "story"], {"kind": "WordLevel", "file": "words.txt", "tokens": 110}))
        split = self.ok(self.server.post("/v1/models/words/tokenize", {"text": "The zebra, because it was tired."}))
        self.assertEqual(split["strings"], ["the", "<unk>", ",", "because", "it", "was", "tired", "."])
        for adjective, noun in (("tired", 1), ("wide", 16)):  # the animal, the street
            rows = self.ok(self.server.post("/v1/models/words/encode", {
                "text": f"The animal did not cross the street because it was too {adjective}."}))["outputs"]
            self.assertEqual(max(range(32), key=rows[8].__getitem__), noun)
        for text in ("The dog did not catch the", ". The dog did not catch the"):
            [made] = self.ok(self.server.post("/v1/models/story/generate", {"text": text}))["sequences"]
            self.assertEqual((made["finish"], made["tokens"][-1]), ("end", 33))

    def test_a_warning_that_these_are_for_demonstration(self):
        """Once at the start, and from `attend check`; not where a configuration names models, were they the same."""
        warning = "no models configured: serving the built-in demo models"
        status, printed, err = attend("check")
        self.assertEqual((status, err.count(f"warning: {warning}")), (0, 1))
        self.assertNotIn(warning, attend("run", "demo", data=b'{"queries":[]}')[2])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "attend.json")
            for content, warned in ((b"{}", 1), (printed, 0)):
                with open(path, "wb") as file:
                    file.write(content)
                self.assertEqual(attend("check", "--config", path)[2].count(warning), warned)
                server = Server(None, "--config", path)
                self.addCleanup(server.kill)
                server.signal(signal.SIGHUP)
                server.told("reloaded in")
                server.stop()
                said = re.findall("level=warning.*" + warning, server.stderr())
                self.assertEqual(len(said), 2 * warned, "at the start, and of the reload")

    def test_additive_pooling(self):
        values = [[float(4 * i + j) for j in range(4)] for i in range(10)]
        answer = self.ok(self.server.attend({
            "queries": [[[0.5] * 20], [[-0.5] * 20]], "keys": [[[1, 1]] * 10] * 2,
            "values": [values] * 2, "valid_lens": [2, 6], "return_attention": True}, "additive"))
        for item, n in enumerate((2, 6)):  # equal keys weigh the same, in the textbook and here
            row = answer["attention_weights"][item][0][0]
            self.assertEqual(row, [row[0]] * n + [0] * (10 - n))
            for j in range(4):
                self.assertAlmostEqual(answer["outputs"][item][0][j],
                                       sum(v[j] for v in values[:n]) / n, places=5)

    def test_the_example(self):
        answer = self.ok(self.server.attend({
            "queries": [[[1, 0, 0, 1], [0, 1, 1, 0]]],
            "keys": [[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]],
            "values": [[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]],
            "valid_lens": [2], "return_attention": True}))
        self.assertEqual(answer["model"], "demo")
        self.assertEqual(list(answer), ["model", "outputs", "attention_weights"])
        for head in answer["attention_weights"][0]:
            for row in head:
                self.assertEqual(row[2], 0)
                self.assertAlmostEqual(row[0] + row[1], 1, places=6)


if __name__ == "__main__":
    unittest.main()
