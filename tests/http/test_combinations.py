"""test_combinations: every kind of model with every kind of request, beside the oracle."""
import glob
import os
import random
import unittest
from itertools import product

from compare import OracleCase
from covering import covering
from oracle import Oracle, philox
from support import GOLDEN, Case, Layer, f32, randoms, read_golden

# --- the models ------------------------------------------------------------------------------------

MODELS = {"score": ["scaled_dot", "dot", "additive", "bilinear"],
          "projection": ["linear", "none", "grouped"],
          "weighting": ["softmax", "sigmoid"]}


def name_of(row):
    return "-".join(row[factor] for factor in MODELS)


def sizes_of(projection, unequal, kv_heads):
    """Arguments of a layer: sizes that differ wherever they may; `unequal`: the keys' too."""
    if projection == "linear":
        return {"query_size": 10, "heads": 4, "kv_heads": kv_heads, "head_size": 3, "key_size": 9,
                "key_head_size": 5 if unequal else 3, "value_size": 7, "output_size": 6}
    if projection == "grouped":
        return {"query_size": 12, "heads": 4, "kv_heads": kv_heads, "key_size": 8,
                "key_head_size": 2 if unequal else 3, "value_size": 4}
    if unequal:  # plain pooling
        return {"query_size": 7, "heads": 1, "key_head_size": 5, "value_size": 4}
    return {"query_size": 8, "heads": 2, "kv_heads": min(kv_heads, 2), "value_size": 6,
            "output_size": 5 if kv_heads == 1 else None}


def make_layers():
    layers = {}
    for n, levels in enumerate(product(*MODELS.values())):
        row = dict(zip(MODELS, levels))
        unequal = row["score"] in ("additive", "bilinear")
        more = {"scale": 0.7} if row["score"] == "scaled_dot" and n % 2 else {}
        layers[name_of(row)] = Layer(
            100 + n, bias=n % 3 != 0, projection=row["projection"], score=row["score"],
            weighting=row["weighting"], causal=n % 5 == 0, **more,
            **sizes_of(row["projection"], unequal, (4, 2, 1)[n % 3]))
    return layers


# --- the requests ----------------------------------------------------------------------------------

FORMS = {"batched": ([4, 4], [6, 6]), "ragged": ([3, 0, 2, 5, 1], [5, 4, 0, 7, 1]),
         "unbatched": ([3], [5]), "long": ([9], [130])}
REQUESTS = {"form": list(FORMS),
            "visible": ["all", "lens", "lens by query", "mask", "mask by item", "causal", "window",
                        "everything"],
            "bias": ["none", "shared", "by item", "by head"],
            "select": ["soft", "hard", "sample"],
            "segments": [False, True],
            "empty_rows": ["zero", "uniform"],
            "head_mask": ["none", "some", "all"],
            "return_attention": [False, True, "average"],
            "return_pointers": [False, True]}


def refusal(row):
    """The field that is told where a combination has no meaning, else None. Fits parts of rows."""
    soft, segments = row.get("select", "soft") == "soft", row.get("segments", False)
    sigmoid = "sigmoid" in (row.get("weighting"), row.get("model", "").split("-")[-1])
    if segments and not soft:
        return "/select"
    if row.get("empty_rows") == "uniform" and (not soft or segments):
        return "/empty_rows"
    if sigmoid and row.get("select") == "sample":
        return "/select"
    return "/segments" if sigmoid and segments else None


def has_meaning(row):
    return refusal(row) is None


class Maker:
    """Makes the request that a row describes, with numbers of its own."""

    def __init__(self, layer, row, seed):
        self.layer, self.row, self.rng = layer, row, random.Random(seed)
        self.qs, self.ks = FORMS[row["form"]]
        self.shapes = list(zip(self.qs, self.ks))

    def request(self):
        layer, row = self.layer, self.row
        request = {"queries": [randoms(self.rng, q, layer.query_size) for q in self.qs],
                   "keys": [randoms(self.rng, k, layer.key_size) for k in self.ks],
                   "values": [randoms(self.rng, k, layer.value_size) for k in self.ks],
                   "seed": self.rng.randrange(2 ** 53)}
        request.update(self.visible(row["visible"]))
        if row["bias"] != "none":
            request["bias"] = self.bias()
        if row["segments"]:
            request["segments"] = [self.segments(k) for k in self.ks]
        if row["head_mask"] != "none":
            request["head_mask"] = self.head_mask()
        if row.get("gradients"):
            request["gradients"] = [randoms(self.rng, q, layer.output_size) for q in self.qs]
        for field in ("select", "empty_rows", "return_attention", "return_pointers"):
            request[field] = row[field]
        return self.unbatch(request) if row["form"] == "unbatched" else request

    def visible(self, kind):
        rng = self.rng
        lens = [[rng.randrange(k + 1) for _ in range(q)] for q, k in self.shapes]
        masks = [[[rng.random() < 0.6 for _ in range(k)] for _ in range(q)]
                 for q, k in self.shapes]
        return {"all": {"causal": False},
                "lens": {"valid_lens": [rng.randrange(k + 1) for k in self.ks]},
                "lens by query": {"valid_lens": lens, "causal": False},
                "mask": {"mask": self.shared(masks)},
                "mask by item": {"mask": masks},
                "causal": {"causal": True, "causal_offset": self.offset()},
                "window": {"window": [rng.randrange(-1, 3), rng.randrange(3)],
                           "causal_offset": self.offset()},
                "everything": {"valid_lens": [max(k - 1, 0) for k in self.ks], "mask": masks,
                               "causal": True, "causal_offset": "end", "window": [4, -1]}}[kind]

    def shared(self, planes):
        """One plane for all items, where they are of one shape."""
        return planes[0] if len(set(self.shapes)) == 1 else planes

    def offset(self):
        return self.rng.choice([0, 2, -1, "end", [self.rng.randrange(-2, 4) for _ in self.qs]])

    def bias(self):
        heads = self.layer.heads
        if self.row["bias"] == "by head":
            return [randoms(self.rng, heads, q, k) for q, k in self.shapes]
        planes = [randoms(self.rng, q, k) for q, k in self.shapes]
        return self.shared(planes) if self.row["bias"] == "shared" else planes

    def segments(self, k):
        """Four lengths that sum to k; some are 0."""
        ends = sorted(self.rng.randrange(k + 1) for _ in range(3))
        return [b - a for a, b in zip([0] + ends, ends + [k])]

    def head_mask(self):
        if self.row["head_mask"] == "all":
            return [0] * self.layer.heads
        factors = [f32(self.rng.choice([0, 1, 0.3, -2])) for _ in range(self.layer.heads)]
        factors[self.rng.randrange(len(factors))] = 0
        return factors

    def unbatch(self, request):
        per_item = {"queries", "keys", "values", "valid_lens", "segments", "gradients"}
        if self.row["visible"] in ("mask by item", "everything"):
            per_item.add("mask")
        if self.row["bias"] in ("by item", "by head"):
            per_item.add("bias")
        if isinstance(request.get("causal_offset"), list):
            per_item.add("causal_offset")
        return {field: value[0] if field in per_item else value
                for field, value in request.items()}


# --- the tests -------------------------------------------------------------------------------------

class TheOracle(Case):
    """What everything else is compared with."""

    def test_golden_vectors(self):
        """They were rounded to float32 once: nothing else may differ."""
        paths = sorted(glob.glob(os.path.join(GOLDEN, "*.safetensors")))
        self.assertGreater(len(paths), 15, "the golden files are missing")
        for path in paths:
            with self.subTest(os.path.basename(path)):
                definition, tensors, request, expected = read_golden(path)
                answer = Oracle(definition, tensors).answer(request)
                self.assertEqual(set(answer), set(expected))
                for member, right in expected.items():
                    self.close_to(answer[member], right, 2e-7, member)

    def test_known_random_numbers(self):
        """The generator's published test vectors."""
        full = 0xFFFFFFFF
        for key, counter, numbers in (
                ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
                ((full, full), (full,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
                ((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
                 (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))):
            self.assertEqual(philox(key, counter), numbers)


class Combinations(OracleCase):
    """One server with a model of every score, projection and weighting."""

    make_layers = staticmethod(make_layers)

    def test_any_three_things_together(self):
        table = covering({**MODELS, **REQUESTS}, has_meaning)
        self.assertGreater(len(table), 150)
        for n, row in enumerate(table):
            with self.subTest(n=n, **row):
                name = name_of(row)
                self.agrees(name, Maker(self.layers[name], row, n).request())

    def test_measures_of_every_model(self):
        few = {"form": ["batched", "ragged", "unbatched"],
               "visible": ["all", "lens by query", "everything"], "bias": ["none", "by head"]}
        table = covering({"model": list(self.layers), **REQUESTS, **few,
                          "gradients": [False, True]}, has_meaning, strength=2)
        for n, row in enumerate(table):
            with self.subTest(n=n, **row):
                self.measures_agree(row["model"],
                                    Maker(self.layers[row["model"]], row, n).request())

    def test_measures_of_nothing(self):
        for name in ("dot-linear-softmax", "additive-grouped-sigmoid"):
            for request in ({"queries": [], "keys": [], "values": []},
                            {"queries": [[], []], "keys": [[], []], "values": [[], []]}):
                with self.subTest(name=name, **request):
                    self.assertEqual(self.measures_agree(name, request)["rows"], 0)
                    self.measures_agree(name, dict(request, gradients=request["queries"]))

    def test_what_has_no_meaning_is_refused(self):
        plain = {factor: levels[0] for factor, levels in {**MODELS, **REQUESTS}.items()}
        kinds = {factor: {**MODELS, **REQUESTS}[factor]
                 for factor in ("weighting", "select", "segments", "empty_rows")}
        refused = 0
        for levels in product(*kinds.values()):
            row = {**plain, **dict(zip(kinds, levels))}
            name, pointer = name_of(row), refusal(row)
            with self.subTest(**dict(zip(kinds, levels))):
                request = Maker(self.layers[name], row, 1).request()
                for path in ("attention", "heads"):
                    answer = self.server.post(f"/v1/models/{name}/{path}", request)
                    if pointer is None:
                        self.ok(answer)
                    else:
                        refused += 1
                        self.problem(answer, 400, "invalid-request", pointer)
        self.assertEqual(refused, 2 * 16)
        self.settled()


if __name__ == "__main__":
    unittest.main()
