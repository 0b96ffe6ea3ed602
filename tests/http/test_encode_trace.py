"""test_encode_trace: how one query's weights come about within a whole model: beside the formulas, beside what the
model shows of itself, and beside the attention called alone."""
import json
import math
import os
import struct
import unittest

from forms import base64_fields, pack
from support import ROOT, Server, ServerCase, attend, nest, read_safetensors

MODELS = os.path.join(ROOT, "tests", "golden", "models")
SAFETENSORS = "application/x-safetensors"
RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 32,
          "heads": 4, "feed_forward": 64, "vocabulary": 50}
TEXTS = [[1, 2, 3, 4, 5, 6, 7], [8], [], [9, 10, 11, 12]]
MEMBERS = ["query", "keys", "products", "scores", "weights", "values", "context"]
SHOWN = {"return_hidden": ["encoder.*.self.input"], "return_attention": True}
HUGE = 3e19  # a product of two numbers near it exceeds the float32 range


def asking(layer=0, item=0, head=0, query=0):
    return {"attention": f"encoder.{layer}.self", "item": item, "head": head, "query": query}


def times(row, matrix, bias=None):
    """matrix row + bias"""
    sums = [math.fsum(a * b for a, b in zip(row, weights)) for weights in matrix]
    return [a + b for a, b in zip(sums, bias or [0] * len(sums))]


def tensors_of(name):
    """The checkpoint's tensors as nested lists."""
    found, _ = read_safetensors(os.path.join(MODELS, name, "model.safetensors"))
    return {key: nest(numbers, shape) for key, (shape, numbers) in found.items()}


def bucket(distance, buckets=12, most=128):
    """T5's, in both directions."""
    half = buckets // 2
    first, n, exact = (half if distance > 0 else 0), abs(distance), half // 2
    if n < exact:
        return first + n
    wide = exact + int(math.log(n / exact) / math.log(most / exact) * (half - exact))
    return first + min(wide, half - 1)


class Trace(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": {"small": RANDOM, "sort": {"transformer": {"builtin": "sort"}},
                                  "bert": {"transformer": os.path.join(MODELS, "bert-b")},
                                  "vit": {"transformer": os.path.join(MODELS, "vit-a")},
                                  "t5": {"transformer": os.path.join(MODELS, "t5-b")}}})

    def post(self, request, model="small", headers=None):
        return self.server.post(f"/v1/models/{model}/encode", request, headers)

    def ask(self, request, model="small"):
        return self.ok(self.post(request, model))

    # --- numbers ---

    def adds_up(self, trace):
        """What follows from each other."""
        self.assertEqual(list(trace), MEMBERS)
        self.close_to(trace["products"], [times(trace["query"], [key])[0] for key in trace["keys"]],
                      1e-4)
        greatest = max(trace["scores"])
        parts = [math.exp(score - greatest) for score in trace["scores"]]
        self.close_to(trace["weights"], [part / math.fsum(parts) for part in parts], 1e-5)
        self.close_to(trace["context"], times(trace["weights"], list(zip(*trace["values"]))), 1e-5)

    def test_products_times_the_scale_are_scores(self):
        weights, d = tensors_of("bert-b"), 8
        for layer in (0, 1):
            for head in (0, 2):
                answer = self.ask(dict(SHOWN, tokens=TEXTS, trace=asking(layer, 3, head, 2)), "bert")
                trace, rows = answer["trace"], answer["hidden"][f"encoder.{layer}.self.input"][3]
                self.adds_up(trace)
                self.close_to(trace["scores"], [x / math.sqrt(d) for x in trace["products"]], 1e-6)
                for role, given, found in (("query", rows[2:3], [trace["query"]]),
                                           ("key", rows, trace["keys"]),
                                           ("value", rows, trace["values"])):
                    name = f"bert.encoder.layer.{layer}.attention.self.{role}."
                    matrix, bias = weights[name + "weight"], weights[name + "bias"]
                    self.close_to(found, [times(row, matrix, bias)[head * d:head * d + d]
                                          for row in given], 1e-5, role)

    def test_relative_positions_are_in_the_scores_alone(self):
        table = tensors_of("t5-b")["encoder.block.0.layer.0.SelfAttention."
                                   "relative_attention_bias.weight"]
        for layer in (0, 2):  # all layers have the first one's table
            for head in (0, 1, 2):
                for query in (0, 5):
                    trace = self.ask({"tokens": TEXTS, "trace": asking(layer, 0, head, query)},
                                     "t5")["trace"]
                    self.adds_up(trace)
                    added = [b - a for a, b in zip(trace["products"], trace["scores"])]
                    self.close_to(added, [table[bucket(key - query)][head] for key in range(7)],
                                  1e-4)

    def test_bits_are_those_of_the_model_and_of_the_layer_alone(self):
        """Nothing else of the answer changes, either."""
        for model in ("small", "sort", "bert", "t5"):
            right = self.ask(dict(SHOWN, tokens=TEXTS), model)
            for name, rows in right["hidden"].items():
                asked = {"attention": name[:-len(".input")], "item": 3, "head": 1, "query": 2}
                answer = self.ask(dict(SHOWN, tokens=TEXTS, trace=asked), model)
                self.assertEqual(list(answer), ["model", "outputs", "hidden", "attention", "trace",
                                                "usage"])
                trace = answer.pop("trace")
                self.assertEqual(answer, right)
                attention = asked.pop("attention")
                self.assertEqual(trace["weights"], right["attention"][attention][3][1][2])
                alone = self.ok(self.server.post(f"/v1/models/{model}/layers/{attention}/attention",
                                                 {"queries": rows, "trace": asked}))
                self.assertEqual(trace, alone["trace"])

    def test_the_trace_depends_on_its_item_alone(self):
        right = self.ask({"tokens": TEXTS[3], "trace": asking(1, 0, 3, 2)})["trace"]
        for more in ({"tokens": TEXTS}, {"tokens": [TEXTS[0], [1], [], TEXTS[3]]},
                     {"tokens": [text + [99] * (8 - len(text)) for text in TEXTS],
                      "valid_lens": [7, 1, 0, 4]},
                     {"tokens": TEXTS, "return_attention": "average"},
                     {"tokens": TEXTS[:2] + [[5]] + TEXTS[3:], "pool": "mean",
                      "return_attention": {"of": ["encoder.*.self"], "as": {"thumbnails": 2}}}):
            self.assertEqual(self.ask(dict(more, trace=asking(1, 3, 3, 2)))["trace"], right)

    def test_a_head_that_is_masked_has_a_trace_all_the_same(self):
        request = {"tokens": TEXTS[0], "trace": asking(0, 0, 2, 6)}
        right = self.ask(request)
        masked = self.ask(dict(request, head_mask={"encoder.0.self": [1, 1, 0, 1]}))
        self.assertEqual(masked["trace"], right["trace"])
        self.assertNotEqual(masked["outputs"], right["outputs"])

    def test_embeddings(self):
        rows = [[0.25 * (i % 5) for i in range(32)], [0.5] * 32, [-1] * 32]
        trace = self.ask({"embeddings": rows, "trace": asking(1, 0, 1, 2)}, "vit")["trace"]
        self.adds_up(trace)
        self.assertEqual(len(trace["keys"]), 3)

    def test_names(self):
        last = self.ask({"tokens": [1, 2], "trace": asking(1, query=1)})["trace"]
        self.assertEqual(last, self.ask({"tokens": [1, 2], "trace": asking(-1, query=1)})["trace"])
        self.assertNotEqual(last, self.ask({"tokens": [1, 2], "trace": asking(query=1)})["trace"])

    # --- forms ---

    def test_a_trace_is_json(self):
        request = {"tokens": [TEXTS[0], TEXTS[0][::-1]], "trace": asking(1, 1, 3, 6)}
        right = self.ask(request)
        coded = self.ask(dict(request, encoding_format="base64"))
        self.assertEqual(coded["trace"], right["trace"])
        self.assertIn("base64", coded["outputs"])
        tensors = {"__metadata__": {"trace": json.dumps(request["trace"])},
                   "tokens": {"dtype": "I32", "shape": [2, 7], "data_offsets": [0, 56]}}
        header = json.dumps(tensors).encode()
        body = struct.pack("<Q", len(header)) + header + pack("I32", request["tokens"])
        for sent, kind in ((request, "application/json"), (body, SAFETENSORS)):
            for accept in ({}, {"Accept": SAFETENSORS + ", application/json;q=0.5"}):
                answer = self.post(sent, headers=dict(accept, **{"Content-Type": kind}))
                self.assertEqual(self.ok(answer), right)
            answer = self.post(sent, headers={"Content-Type": kind, "Accept": SAFETENSORS})
            self.assertIn("trace", self.problem(answer, 406, "not-acceptable")["detail"])

    def test_base64_requests(self):
        rows = [[[0.25 * (i % 5) for i in range(32)], [0.5] * 32]]
        request = {"embeddings": rows, "trace": asking(0, 0, 1, 1)}
        coded = dict(request, embeddings=base64_fields({"queries": rows})["queries"])
        self.assertEqual(self.ask(coded, "vit"), self.ask(request, "vit"))

    def test_v2_knows_no_trace(self):
        request = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 2],
                               "data": [1, 2]}]}
        right = self.ok(self.server.post("/v2/models/small/infer", request))
        asked = dict(request, parameters={"trace": asking(9, 9, 9, 9)})
        self.assertEqual(self.ok(self.server.post("/v2/models/small/infer", asked)), right)

    def test_run_gives_the_same_bytes(self):
        body = json.dumps({"tokens": TEXTS, "trace": asking(1, 0, 1, 1)}).encode()
        config = os.path.join(self.server.folder, "attend.json")
        status, out, err = attend("run", "small", "--encode", "--config", config, data=body)
        self.assertEqual((status, out), (0, self.post(body).body), err)

    # --- what is refused ---

    def test_what_is_not_there(self):
        one = TEXTS[0]
        for tokens, trace, pointer, told in (
                (TEXTS, asking(2), "attention", "Available: encoder.0.self to encoder.1.self"),
                (TEXTS, asking("*"), "attention", "names 2 attentions"),
                (TEXTS, dict(asking(), attention="encoder.0"), "attention", "unknown attention"),
                (TEXTS, dict(asking(), attention="decoder.0.self"), "attention", "unknown attention"),
                (TEXTS, asking(0, 4), "item", "there are 4 items"),
                (TEXTS, asking(0, 0, 4), "head", "there are 4 heads"),
                (TEXTS, asking(0, 3, 0, 4), "query", "there are 4 queries"),
                (TEXTS, asking(0, 2), "query", "there are 0 queries"),
                (TEXTS, asking(0, 2 ** 62), "item", str(2 ** 62)),
                (one, asking(0, 1), "item", "there are 1 items"),
                (one, asking(0, 0, 0, 7), "query", "there are 7 queries"),
                ([], asking(), "item", "there are 0 items")):
            with self.subTest(tokens=tokens, trace=trace):
                problem = self.problem(self.post({"tokens": tokens, "trace": trace}), 400,
                                       "invalid-request", "/trace/" + pointer)
                self.assertIn(told, problem["detail"])
        padded = {"tokens": [one], "valid_lens": [3], "trace": asking(0, 0, 0, 3)}
        self.problem(self.post(padded), 400, "invalid-request", "/trace/query")

    def test_what_is_no_trace(self):
        right, lacking = asking(), asking()
        del lacking["attention"]
        for trace, pointer in (
                (None, ""), (True, ""), ([right], ""), ("encoder.0.self", ""), ({}, ""),
                (lacking, ""), ({"attention": "encoder.0.self"}, ""),
                (dict(right, attention=None), "/attention"), (dict(right, attention=0), "/attention"),
                (dict(right, attention=["encoder.0.self"]), "/attention"),
                (dict(right, attention=""), "/attention"), (dict(right, item=None), "/item"),
                (dict(right, head=1.0), "/head"), (dict(right, query=-1), "/query"),
                (dict(right, layer=0), "/layer"), (dict(right, **{"a/b": 0}), "")):
            with self.subTest(trace=trace):
                problem = self.problem(self.post({"tokens": [1, 2], "trace": trace}), 400,
                                       "invalid-request", "/trace" + pointer)
                if pointer == "/layer":
                    self.assertIn('"attention", "item", "head" and "query"', problem["detail"])
        self.problem(self.post({"tokens": [1, 2], "trace": dict(right, attention="x\u00e4" * 30)}),
                     400, "invalid-request", "/trace/attention")

    def test_what_is_too_large(self):
        """It counts for the answer: before it is planned, and as it is."""
        config = os.path.join(self.server.folder, "attend.json")
        request = {"tokens": [1] * 400, "pool": "mean"}
        words = ("run", "small", "--encode", "--config", config, "--workers", "1",
                 "--max-answer-bytes")
        asked = json.dumps(dict(request, trace=asking(0, 0, 0, 399))).encode()
        self.assertEqual(attend(*words, "20000", data=json.dumps(request).encode())[0], 0)
        self.assertEqual(attend(*words, "200000", data=asked)[0], 0)
        for most in ("20000", "125000"):
            status, _, err = attend(*words, most, data=asked)
            self.assertEqual(status, 1, most)
            self.assertIn("max_answer_bytes", err)


if __name__ == "__main__":
    unittest.main()
