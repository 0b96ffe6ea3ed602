"""test_trace: how one query's weights come about: beside the oracle, and beside the other answers."""
import json
import os
import random
import unittest

from compare import WEIGHTS, OracleCase
from covering import covering
from forms import base64_fields, safetensors
from support import Layer, attend, flat, randoms
from test_combinations import MODELS, REQUESTS, Maker, has_meaning, make_layers, name_of

MEMBERS = ["query", "keys", "products", "scores", "weights", "values", "context"]
ST = "application/x-safetensors"


def layers_and_more():
    rope = Layer(7, 16, 2, causal=True, rope={"base": 10000})
    bare = Layer(9, 6, 2, projection="none")
    return {"toy": Layer(8, 4, 2), "rope": rope, "bare": bare, **make_layers()}


def drawn(request, heads, rng):
    """A trace of some query of the request, or None: it has no query."""
    items = request["queries"]
    if items and items[0] and not isinstance(items[0][0], list):
        items = [items]
    some = [n for n, rows in enumerate(items) if rows]
    if not some:
        return None
    item = rng.choice(some)
    return {"item": item, "head": rng.randrange(heads), "query": rng.randrange(len(items[item]))}


class Trace(OracleCase):
    make_layers = staticmethod(layers_and_more)

    def ask(self, request, model="toy"):
        return self.ok(self.server.attend(request, model))

    def rows_agree(self, got, right, what):
        """Numbers where numbers must be, null where null."""
        self.assertEqual([x is None for x in got], [x is None for x in right], what)
        for a, b in zip(got, right):
            if b is not None:
                self.assertLessEqual(abs(a - b), 1e-5 * (1 + abs(b)), what)

    def trace_agrees(self, got, right):
        self.assertEqual(list(got), MEMBERS)
        for name in MEMBERS:
            if name in ("keys", "values"):
                self.assertEqual([len(row) for row in got[name]], [len(row) for row in right[name]])
                self.rows_agree(list(flat(got[name])), list(flat(right[name])), name)
            else:
                self.rows_agree(got[name], right[name], name)
        self.close_to(got["weights"], right["weights"], WEIGHTS, "weights")

    def test_any_two_things_together(self):
        """Every kind of model, every kind of request: nothing else of the answer changes, and the
        weights are those that are answered."""
        rng = random.Random(1)
        for n, row in enumerate(covering({**MODELS, **REQUESTS}, has_meaning, strength=2)):
            with self.subTest(n=n, **row):
                name = name_of(row)
                layer, request = self.layers[name], Maker(self.layers[name], row, n).request()
                asked = drawn(request, layer.heads, rng)
                answer = self.ask(request, name)
                chosen = self.chosen(name, request, answer)
                traced = self.ask(dict(request, trace=asked), name)
                self.assertEqual(list(traced), list(answer) + ["trace"])
                trace = traced.pop("trace")
                self.assertEqual(traced, answer)
                self.trace_agrees(trace, layer.oracle.trace(dict(request, trace=asked), chosen))
                weights = self.ask(dict(request, return_attention=True), name)["attention_weights"]
                item = weights if row["form"] == "unbatched" else weights[asked["item"]]
                self.assertEqual(trace["weights"], item[asked["head"]][asked["query"]])

    def test_the_context_is_what_a_layer_without_matrices_puts_out(self):
        rng = random.Random(2)
        request = {"queries": [randoms(rng, 70, 6)], "head_mask": [1, 0]}
        outputs = self.ask(dict(request, head_mask=[1, 1]), "bare")["outputs"]
        for head in (0, 1):
            for query in (0, 33, 69):
                trace = self.ask(dict(request, trace={"item": 0, "head": head, "query": query}),
                                 "bare")["trace"]
                self.assertEqual(trace["context"], outputs[0][query][3 * head:3 * head + 3])

    def test_queries_and_keys_are_turned(self):
        """At equal places they are as if they had not been turned: a product tells how far away the
        key is, and nothing else."""
        rng = random.Random(3)
        row = randoms(rng, 16)
        request = {"queries": [[row] * 9], "trace": {"item": 0, "head": 1, "query": 5}}
        near = self.ask(request, "rope")["trace"]
        self.assertEqual([x is None for x in near["products"]], [False] * 6 + [True] * 3)
        far = self.ask(dict(request, causal_offset=3), "rope")["trace"]
        self.assertNotEqual(near["query"], far["query"])
        self.assertEqual(near["keys"][:6], far["keys"][:6])
        other = self.ask(dict(request, trace={"item": 0, "head": 1, "query": 8}), "rope")["trace"]
        self.assertEqual(far["products"], other["products"])
        self.assertLess(abs(near["products"][2] - other["products"][5]), 1e-5)

    def test_one_item_and_no_keys(self):
        trace = self.ask({"queries": [[1, 2, 3, 4]], "trace": {"item": 0, "head": 1, "query": 0}})
        self.assertEqual(len(trace["trace"]["keys"]), 1)
        self.assertEqual(trace["trace"]["weights"], [1])
        none = self.ask({"queries": [[1, 2, 3, 4]], "keys": [], "values": [],
                         "trace": {"item": 0, "head": 1, "query": 0}})["trace"]
        self.assertEqual(none, {"query": [0, 0], "keys": [], "products": [], "scores": [],
                                "weights": [], "values": [], "context": [0, 0]})

    def test_a_long_trace_is_cut_into_pieces(self):
        """Some pieces of the answer, each of its parts longer than one."""
        rng = random.Random(4)
        request = {"queries": [randoms(rng, 1, 4)], "keys": [randoms(rng, 4000, 4)],
                   "mask": [[[j % 3 > 0 for j in range(4000)]]], "return_attention": True}
        asked = {"item": 0, "head": 1, "query": 0}
        answer = self.ask(dict(request, trace=asked))
        self.trace_agrees(answer["trace"],
                          self.layers["toy"].oracle.trace(dict(request, trace=asked)))
        self.assertEqual(answer["trace"]["weights"], answer["attention_weights"][0][1][0])

    # --- forms ---

    def test_every_form_of_request_gives_the_same_trace(self):
        rng = random.Random(5)
        request = {"queries": randoms(rng, 2, 3, 4), "causal": True,
                   "trace": {"item": 1, "head": 0, "query": 2}}
        right = self.ask(request)
        path, as_json = "/v1/models/toy/attention", {"Content-Type": ST, "Accept": "application/json"}
        for headers in (as_json, {"Content-Type": ST}):
            answer = self.server.post(path, safetensors(request), headers)
            self.assertEqual(self.ok(answer), right)
            self.assertEqual(answer.headers["content-type"], "application/json")
        self.assertEqual(self.ask(base64_fields(request)), right)
        asked = self.server.post(path, request, {"Content-Type": "application/json",
                                                 "Accept": ST + ", application/json;q=0.5"})
        self.assertEqual(self.ok(asked), right)

    def test_a_trace_has_no_binary_form(self):
        """Its lists are numbers where other arrays are base64, and safetensors has none."""
        request = {"queries": [[1, 2, 3, 4], [4, 3, 2, 1]], "trace": {"item": 0, "head": 0, "query": 1}}
        right, coded = self.ask(request), self.ask(dict(request, encoding_format="base64"))
        self.assertEqual(coded["trace"], right["trace"])
        self.assertIn("base64", coded["outputs"])
        for body, headers in ((request, {"Content-Type": "application/json"}),
                              (safetensors(request), {"Content-Type": ST})):
            problem = self.problem(
                self.server.post("/v1/models/toy/attention", body, dict(headers, Accept=ST)), 406,
                "not-acceptable")
            self.assertIn("trace", problem["detail"])

    def test_v2_knows_no_trace(self):
        request = {"inputs": [{"name": "queries", "datatype": "FP32", "shape": [1, 1, 4],
                               "data": [1, 2, 3, 4]}],
                   "parameters": {"trace": {"item": 9, "head": 9, "query": 9}}}
        answer = self.server.post("/v2/models/toy/infer", request)
        self.assertEqual([output["name"] for output in self.ok(answer)["outputs"]], ["outputs"])

    def test_run_gives_the_same_bytes(self):
        request = {"queries": [[1, 2, 3, 4], [4, 3, 2, 1]], "trace": {"item": 0, "head": 1, "query": 1}}
        body = json.dumps(request).encode()
        right = self.server.post("/v1/models/toy/attention", body, {"Content-Type": "application/json"})
        config = os.path.join(self.folder, "attend.json")
        status, out, err = attend("run", "toy", "--config", config, "--workers", "1", data=body)
        self.assertEqual((status, out.rstrip(b"\n")), (0, right.body), err)

    # --- what is refused ---

    def test_what_is_not_there(self):
        request = {"queries": [[[1, 2, 3, 4]] * 2, [], [[1, 2, 3, 4]] * 3]}
        one = {"queries": [[1, 2, 3, 4]]}
        for body, trace, pointer, told in (
                (request, (3, 0, 0), "item", "there are 3 items"),
                (request, (0, 2, 0), "head", "there are 2 heads"),
                (request, (0, 0, 2), "query", "there are 2 queries"),
                (request, (1, 0, 0), "query", "there are 0 queries"),
                (request, (2, 0, 3), "query", "there are 3 queries"),
                (request, (2 ** 62, 0, 0), "item", str(2 ** 62)),
                (one, (1, 0, 0), "item", "there are 1 items"),
                (one, (0, 0, 1), "query", "there are 1 queries"),
                ({"queries": []}, (0, 0, 0), "item", "there are 0 items")):
            with self.subTest(trace=trace, **body):
                asked = dict(zip(("item", "head", "query"), trace))
                problem = self.problem(self.server.attend(dict(body, trace=asked), "toy"), 400,
                                       "invalid-request", "/trace/" + pointer)
                self.assertIn(told, problem["detail"])

    def test_what_is_no_trace(self):
        right = {"item": 0, "head": 0, "query": 0}
        for trace, pointer in (
                (None, ""), (True, ""), ([0, 0, 0], ""), ("all", ""), ({}, ""),
                ({"item": 0, "head": 0}, ""), (dict(right, item=None), "/item"),
                (dict(right, head=1.0), "/head"), (dict(right, query="0"), "/query"),
                (dict(right, query=-1), "/query"), (dict(right, row=0), "/row"),
                (dict(right, attention="encoder.0.self"), "/attention"),
                (dict(right, **{"a/b": 0}), ""), (dict(right, **{"": 0}), ""),
                (dict(right, **{"x" * 41: 0}), "")):
            with self.subTest(trace=trace):
                self.problem(self.server.attend({"queries": [[1, 2, 3, 4]], "trace": trace}, "toy"),
                             400, "invalid-request", "/trace" + pointer)
        twice = b'{"queries":[[1,2,3,4]],"trace":{"item":0,"head":0,"query":0,"head":0}}'
        self.problem(self.server.attend(twice, "toy"), 400, "invalid-request", "/trace")

    def test_what_is_too_large(self):
        """It counts for the answer."""
        request = {"queries": [[1, 2, 3, 4]], "keys": [[1, 2, 3, 4]] * 2000}
        words = ("run", "demo", "--workers", "1", "--max-answer-bytes")
        asked = json.dumps(dict(request, trace={"item": 0, "head": 0, "query": 0})).encode()
        self.assertEqual(attend(*words, "200000", data=json.dumps(request).encode())[0], 0)
        self.assertEqual(attend(*words, "300000", data=asked)[0], 0)
        for most in ("200000", "224100"):  # before it is planned, and as it is
            status, _, err = attend(*words, most, data=asked)
            self.assertEqual(status, 1)
            self.assertIn("max_answer_bytes", err)

    def test_measures_have_none(self):
        request = {"queries": [[1, 2, 3, 4]], "trace": {"item": 0, "head": 0, "query": 0}}
        problem = self.problem(self.server.post("/v1/models/toy/heads", request), 400,
                               "invalid-request", "/trace")
        self.assertIn("/attention", problem["detail"])

    def test_what_is_beyond_float32(self):
        """A product may be where the score is not."""
        row = [2e19, 0, 0, 0, 0, 0]
        request = {"queries": [[row]], "head_mask": [1, 0]}
        tensors = dict(request, values=[[[float("inf") if x == 4 else 1 for x in range(6)]]])
        headers, path = {"Content-Type": ST, "Accept": "application/json"}, "/v1/models/bare/attention"
        asked = {"item": 0, "head": 1, "query": 0}
        self.ask(request, "bare")
        self.ask(dict(request, trace=asked), "bare")
        self.problem(self.server.attend(dict(request, trace=dict(asked, head=0)), "bare"), 422,
                     "not-finite")
        self.ok(self.server.post(path, safetensors(tensors), headers))
        problem = self.problem(self.server.post(path, safetensors(dict(tensors, trace=asked)), headers),
                               422, "not-finite")
        self.assertIn("query 0 of item 0 in head 1", problem["detail"])


if __name__ == "__main__":
    unittest.main()
