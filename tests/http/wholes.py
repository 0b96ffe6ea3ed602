"""wholes: whole models that need no file, and drawn requests to them in every form that there is: what the soak and
tests/bytes ask.
"""
import json
from typing import NamedTuple

import forms
from support import JSON_TYPE, randoms

ST = "application/x-safetensors"
DRAWN = {"transformer": {"random": {"seed": 3}}, "kind": "encoder", "layers": 2, "width": 24,
         "heads": 4, "feed_forward": 40, "vocabulary": 32}
MODELS = {"whole": DRAWN,
          "whole-turned": dict(DRAWN, layers=3, kv_heads=2, norm="pre", norm_kind="rms", gated=True,
                               activation="silu", positions="rotary"),
          "whole-learned": dict(DRAWN, positions="learned", max_positions=16, activation="gelu",
                                pool="mean", normalize=True),
          "whole-sort": {"transformer": {"builtin": "sort"}}}
DECODERS = {"decoder": dict(DRAWN, kind="decoder"),
            "decoder-turned": dict(MODELS["whole-turned"], kind="decoder")}
PAIRS = {"both": dict(DRAWN, kind="seq2seq"),
         "both-turned": dict(DRAWN, kind="seq2seq", norm="pre", activation="gelu", positions="learned",
                             max_positions=60, decoder={"layers": 3, "heads": 3})}
VOCABULARY, LONGEST = 32, 16  # of all of them
WIDTHS = {name: definition.get("width", 32) for name, definition in MODELS.items()}
HIDDEN = (False, False, True, "all", ["encoder.*"], ["encoder.-1.self.input", "encoder.0"])
ATTENTION = (False, False, True, "average", ["encoder.0.self"],
             {"of": ["encoder.-1.self"], "as": "average"},
             {"of": ["encoder.*.self"], "as": {"thumbnails": 3}})


class Post(NamedTuple):
    form: str
    path: str
    headers: dict
    body: bytes


def request(model, rng):
    """A request with a meaning."""
    even, items = rng.random() < 0.4, rng.randrange(1, 6)
    pool = rng.choice((None, "none", "cls", "mean", "max", "last"))
    fewest = 1 if pool not in (None, "none") or "pool" in MODELS[model] else 0
    counts = [rng.randrange(1 if even else fewest, LONGEST + 1)] * items if even else \
        [rng.randrange(fewest, LONGEST + 1) for _ in range(items)]
    asked = {"tokens": [[rng.randrange(VOCABULARY) for _ in range(n)] for n in counts]}
    if even and rng.random() < 0.3:
        asked = {"embeddings": randoms(rng, items, counts[0], WIDTHS[model])}
    if rng.random() < 0.3:
        asked["valid_lens"] = [rng.randrange(fewest, n + 1) for n in counts]
    if pool:
        asked["pool"] = pool
    if fewest and pool != "none":
        asked.update(rng.choice(({}, {"dimensions": 5}, {"normalize": True},
                                 {"dimensions": 7, "normalize": False})))
    for field, values in (("return_hidden", HIDDEN), ("return_attention", ATTENTION)):
        if (value := rng.choice(values)) is not False:
            asked[field] = value
    if rng.random() < 0.2:
        asked["head_mask"] = {"encoder.0.self": [1, 0, 0.5, 1], "encoder.-1.self": [1, 1, 0, 1]}
    return asked


def text_request(rng, n):
    """Texts that a decoder is to go on from: every other time what comes next is drawn."""
    return {"tokens": [[rng.randrange(VOCABULARY) for _ in range(rng.randrange(1, 90))]
                       for _ in range(rng.randrange(1, 5))],
            "max_tokens": rng.randrange(1, 40), "return_top": rng.randrange(3), "seed": n,
            "temperature": n % 2}


def search_request(rng):
    """A search from such texts."""
    beams = rng.randrange(2, 6)
    return {"tokens": [[rng.randrange(VOCABULARY) for _ in range(rng.randrange(1, 40))]
                       for _ in range(rng.randrange(1, 4))],
            "max_tokens": rng.randrange(1, 16), "beams": beams, "returns": rng.randrange(1, beams + 1),
            "length_penalty": rng.choice((0.5, 1, 2)), "early_stopping": rng.choice((False, True, "never"))}


def posts(model, asked):
    """The request in the forms that have it, in those of the answer."""
    path = f"/v1/models/{model}/encode"

    def post(form, body, path=path, **headers):
        body = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        return Post(form, path, {n.replace("_", "-"): value for n, value in headers.items()}, body)

    yield post("json", asked, **JSON_TYPE)
    yield post("json to safetensors", asked, Accept=ST, **JSON_TYPE)
    yield post("base64", dict(forms.base64_fields(asked), encoding_format="base64"), **JSON_TYPE)
    rows = asked.get("tokens") or asked.get("embeddings")
    if not rows or len({len(item) for item in rows}) > 1:
        return
    body = forms.safetensors(asked)
    yield post("safetensors", body, Content_Type=ST)
    yield post("safetensors to json", body, Content_Type=ST, Accept="application/json")
    if "tokens" not in asked or not rows[0]:
        return
    message = v2(rows, asked.get("valid_lens"))
    yield post("v2", message, f"/v2/models/{model}/infer", **JSON_TYPE)
    yield post("v2 binary", dict(message, parameters={"binary_data_output": True}),
               f"/v2/models/{model}/infer", **JSON_TYPE)


def v2(tokens, lens):
    """The tokens as a message of the Open Inference Protocol, in the names of ONNX's exports."""
    shape = [len(tokens), len(tokens[0])]
    inputs = {"input_ids": tokens}
    if lens:
        inputs["attention_mask"] = [[int(k < n) for k in range(shape[1])] for n in lens]
    return {"inputs": [{"name": name, "datatype": "INT64", "shape": shape, "data": sum(rows, [])}
                       for name, rows in inputs.items()]}
