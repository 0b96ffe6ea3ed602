"""mixed: one request of every kind that there is, for tests in which the host is at fault."""
import json
import random
import re

from forms import base64_fields, safetensors, v2
from support import JSON_TYPE, randoms

BINARY = {"Content-Type": "application/x-safetensors"}


def without_created(body):
    """A description without the second in which its model was loaded: a reload is in another one."""
    return re.sub(rb'"created":\d+', b"", body)


class Request:
    """A request; `exact`: its answer is the same each time, or its member of this name is."""

    def __init__(self, name, path, body=None, headers=None, exact=True):
        self.name, self.path, self.body, self.exact = name, path, body, exact
        self.method = "GET" if body is None else "POST"
        self.headers = headers or (JSON_TYPE if body is not None else {})

    def ask(self, server, **options):
        return server.request(self.method, self.path, self.body, self.headers, **options)

    def agrees(self, body, right):
        """May both be bodies of its answer?"""
        if self.exact is True:
            return without_created(body) == without_created(right)
        return not self.exact or json.loads(body)[self.exact] == json.loads(right)[self.exact]

    def message(self):
        """Its bytes on the wire."""
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: test"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body is not None:
            lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + (self.body or b"")


# The whole models of which whole_requests ask, and what else their server is told.
WHOLE = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 8, "heads": 2,
         "feed_forward": 16, "vocabulary": 9}
WHOLES = {"whole": WHOLE, "texts": dict(WHOLE, kind="decoder"), "both": dict(WHOLE, kind="seq2seq")}
KNOWING = {"prefix_cache_bytes": 12000}  # room for a block of 64 tokens, which comes and goes


def whole_requests():
    """Requests of a server that has WHOLES."""
    here, accept = "/v1/models/whole", {"Accept": "application/x-safetensors"}
    plain = {"tokens": [[1, 2, 3], [4, 5], []], "return_hidden": True, "return_attention": True,
             "trace": {"attention": "encoder.-1.self", "item": 0, "head": 1, "query": 2}}
    pooled = {"tokens": [[1, 2, 3], [4, 5, 6]], "valid_lens": [3, 1], "pool": "mean",
              "return_attention": {"of": ["encoder.*.self"], "as": {"thumbnails": 2}}}
    long = {"tokens": [[n % 9 for n in range(200)], [7] * 90], "pool": "max",
            "return_attention": "average"}
    spoken = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [2, 3],
                          "data": [1, 2, 3, 4, 5, 0]},
                         {"name": "attention_mask", "datatype": "INT64", "shape": [2, 3],
                          "data": [1, 1, 1, 1, 1, 0]}]}
    return [Request(name, here + path, json.dumps(body).encode(), dict(JSON_TYPE, **headers))
            for name, path, body, headers in (
                ("encode", "/encode", plain, {}), ("encode long", "/encode", long, {}),
                ("encode binary", "/encode", pooled, accept),
                ("inside", "/layers/encoder.1.self/attention", {"queries": [[[1] * 8] * 3]}, {}))] + [
        Request("v2 tokens", "/v2/models/whole/infer", json.dumps(spoken).encode()),
        Request("encode wrong", here + "/encode", b'{"tokens":[[1,9]]}', exact=False),
        Request("embeddings", "/v1/embeddings", b'{"input":[[1,2,3],[4,5]],"model":"whole"}'),
        Request("embeddings wrong", "/v1/embeddings", b'{"input":[[1,9]],"model":"whole"}', exact=False),
        Request("whole model", here)] + decoder_requests() + pair_requests()


def decoder_requests():
    here, spoken = "/v1/models/texts", {
        "inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 2], "data": [1, 2]}],
        "outputs": [{"name": "logits"}]}
    scored = {"tokens": [[1, 2], [3]], "targets": [[4], [5, 6]], "return_top": 2, "return_lens": 3,
              "return_hidden": True}
    drawn = {"tokens": [[1, 2, 3], [4]], "max_tokens": 5, "temperature": 1, "returns": 2, "return_top": 2}
    shown = {"tokens": [[1, 2, 3], [4]], "max_tokens": 3, "return_hidden": "all", "return_attention": True,
             "head_mask": {"decoder.0.self": [1, 0.5]}}
    pictures = {"tokens": [1, 2], "max_tokens": 3, "encoding_format": "base64", "return_hidden": True,
                "return_attention": {"of": ["decoder.*.self"], "as": {"thumbnails": 2}}}
    searched = {"tokens": [[1, 2, 3], [4]], "max_tokens": 5, "beams": 3, "returns": 2, "return_search": True}
    known = {"tokens": [[n % 9 for n in range(150)]] * 2, "max_tokens": 4}  # how much of it was is not said
    return [Request(name, here + path, json.dumps(body).encode(), exact=exact) for name, path, body, exact in (
        ("score", "/score", scored, True), ("generate", "/generate", drawn, "sequences"),
        ("generate shown", "/generate", shown, True), ("generate pictures", "/generate", pictures, "sequences"),
        ("generate known", "/generate", known, "sequences"), ("generate searched", "/generate", searched, "sequences"),
        ("stream", "/generate", dict(drawn, stream=True), True))] + [
        Request("logits", "/v2/models/texts/infer", json.dumps(spoken).encode())]


def pair_requests():
    """Of a model of an encoder and a decoder."""
    here = "/v1/models/both"
    scored = {"tokens": [[1, 2], [3]], "targets": [[4], [5, 6]], "return_hidden": True, "return_attention": True,
              "trace": {"attention": "decoder.-1.cross", "item": 1, "head": 1, "query": 1}}
    shown = {"tokens": [[1, 2, 3], [4]], "targets": [[5], []], "max_tokens": 3, "return_hidden": "all",
             "return_attention": ["encoder.0.self", "decoder.*.cross"], "head_mask": {"decoder.0.cross": [1, 0.5]}}
    searched = {"tokens": [[1, 2, 3], [4]], "max_tokens": 4, "beams": 2, "return_search": True,
                "return_hidden": ["encoder.*"]}
    coded = dict(shown, encoding_format="base64")
    spoken = {"inputs": [{"name": name, "datatype": "INT64", "shape": [1, len(data)], "data": data}
                         for name, data in (("input_ids", [1, 2, 3]), ("decoder_input_ids", [4, 5]))],
              "outputs": [{"name": "logits"}, {"name": "encoder_last_hidden_state"}]}
    binary = {name: value for name, value in scored.items() if name != "trace"}
    return [Request(name, here + path, json.dumps(body).encode()) for name, path, body in (
        ("score of both", "/score", scored), ("generate of both", "/generate", shown),
        ("generate of both base64", "/generate", coded), ("search of both", "/generate", searched),
        ("stream of both", "/generate", {"tokens": [[1, 2], [3]], "max_tokens": 3, "stream": True}))] + [
        Request("score of both binary", here + "/score", json.dumps(binary).encode(),
                dict(JSON_TYPE, Accept="application/x-safetensors")),
        Request("cross alone", here + "/layers/decoder.0.cross/attention", json.dumps(
            {"queries": [[[1] * 8] * 3], "keys": [[[2] * 8] * 2]}).encode()),
        Request("v2 of both", "/v2/models/both/infer", json.dumps(spoken).encode()),
        Request("model of both", here)]


def requests(model, width, heads):
    """Requests of a server whose default model is `model`, of that width and so many heads."""
    rng = random.Random(5)

    def rows(*shape):
        return randoms(rng, *shape, width)

    plain = {"queries": rows(2, 3), "keys": rows(2, 5), "valid_lens": [2, 5],
             "return_attention": True}
    ragged = {"queries": [rows(2), rows(7), []], "keys": [rows(3), rows(4), rows(1)],
              "mask": [[[1, 0, 1]] * 2, [[1, 1, 0, 1]] * 7, []], "return_pointers": True}
    even = {"queries": rows(2, 3), "bias": randoms(rng, 2, 3, 3), "select": "sample", "seed": 7}
    measured = dict(plain, gradients=rows(2, 3))
    measured.pop("return_attention")
    wide = {"queries": rows(1, 60), "keys": rows(1, 500), "return_attention": "average",
            "head_mask": [1] * heads}
    tokens = {"queries": rows(2, 3), "valid_lens": [1, 3]}
    infer, size = v2(tokens, ["valid_lens"], ["outputs", "attention_weights"], ["outputs"])
    spoken = v2(tokens, [], ["outputs"], [])[0]
    here = f"/v1/models/{model}"
    return [Request(name, "/v1/attention", json.dumps(body).encode()) for name, body in (
        ("plain", plain), ("ragged", ragged), ("sampled", even), ("wide", wide),
        ("base64", base64_fields(even, "F16")),
        ("base64 answer", dict(plain, encoding_format="base64")),
        ("segments", {"queries": rows(1, 2), "keys": rows(1, 6), "segments": [[2, 4]],
                      "return_attention": True}))] + [
        Request("safetensors", "/v1/attention", safetensors(even, "BF16", "I32"), BINARY),
        Request("heads", here + "/heads", json.dumps(measured).encode()),
        Request("v2", f"/v2/models/{model}/infer", spoken),
        Request("v2 binary", f"/v2/models/{model}/infer", infer,
                dict(JSON_TYPE, **{"Inference-Header-Content-Length": str(size)})),
        Request("wrong", "/v1/attention", b'{"queries":[[[1,"x"]]]}', exact=False),
        Request("models", "/v1/models"), Request("model", here),
        Request("openapi", "/openapi.json"), Request("health", "/healthz"), Request("page", "/"),
        Request("packed page", "/", headers={"Accept-Encoding": "gzip"}),
        Request("known page", "/", headers={"If-None-Match": "*"}),
        Request("metrics", "/metrics", exact=False), Request("v2 models", "/v2/models"),
        Request("nowhere", "/nowhere", exact=False),
        Request("refused early", "/nowhere", b"[" * 5000, exact=False)]
