"""references: requests of every kind with the bytes of their right answers.

Each is asked once on a quiet server and checked: small ones beside the oracle, and their other forms
bit for bit beside JSON; large ones beside numpy. Of whole models each item is checked beside what it
gets alone. As an answer depends on nothing but its request, every later one must be the same bytes.
"""
import json
import math
import random
from dataclasses import dataclass

import numpy
import wholes
from compare import WEIGHTS
from covering import covering
from families import safetensors as checkpoint_bytes
from forms import base64_fields, bits, read_safetensors, read_v2, safetensors, v2
from modules import Plain
from test_combinations import MODELS, REQUESTS, Maker, has_meaning, name_of
from test_forms import FormCase
from test_forms import Safetensors as Forms

JSON, ST = "application/json", "application/x-safetensors"
WIDE, HEADS = 256, 8  # the large requests' model
LARGE = [(2, 40, 60), (8, 100, 130), (12, 96, 128)]  # items, queries, keys


@dataclass
class Reference:
    """What is asked, and what must come back."""
    path: str
    headers: dict
    body: bytes
    right: bytes


class Wide:
    """A layer of a usual size, as a checkpoint and in numpy."""

    def __init__(self):
        rng = numpy.random.default_rng(5)
        self.tensors = {}
        for role in ("query", "key", "value", "output"):
            self.tensors[f"{role}.weight"] = rng.normal(0, WIDE ** -0.5, (WIDE, WIDE))
            self.tensors[f"{role}.bias"] = rng.normal(0, 1, WIDE)
        self.tensors = {n: t.astype(numpy.float32) for n, t in self.tensors.items()}
        self.module = Plain(lambda name: self.tensors[name].astype(numpy.float64), HEADS)

    def definition(self, folder, name):
        with open(f"{folder}/{name}.safetensors", "wb") as file:
            file.write(checkpoint_bytes({n: ("F32", t) for n, t in self.tensors.items()}))
        return {"checkpoint": name + ".safetensors", "heads": HEADS}

    def request(self, shape, seed):
        rng, (b, q, k) = numpy.random.default_rng(seed), shape
        arrays = [rng.normal(0, 1, (b, n, WIDE)).astype(numpy.float32) for n in (q, k, k)]
        lens = rng.integers(1, k + 1, b)
        return arrays, lens

    def outputs(self, arrays, lens):
        queries, keys, values = (a.astype(numpy.float64) for a in arrays)
        hidden = numpy.finfo(numpy.float64).min
        mask = [numpy.where(numpy.arange(keys.shape[1]) < n, 0.0, hidden)[None].repeat(
            queries.shape[1], 0) for n in lens]
        return numpy.stack([self.module(*item)[0] for item in zip(queries, keys, values, mask)])


class References(FormCase):
    """Asks the server and keeps what it has checked."""

    def __init__(self, server, layers, wide):
        super().__init__()
        self.server, self.layers, self.wide, self.kept = server, layers, wide, []

    def keep(self, path, headers, body):
        answer = self.server.request("POST", path, body, headers)
        self.assertEqual(answer.status, 200, answer)
        self.kept.append(Reference(path, headers, body, answer.body))
        return answer

    def small(self, judge, step):
        """`judge` is an OracleCase on this server. Every `step`-th of them is asked."""
        table = covering({**MODELS, **REQUESTS}, has_meaning, strength=2)
        for n, row in list(enumerate(table))[::step]:
            name = name_of(row)
            request = Maker(self.layers[name], row, n).request()
            judge.agrees(name, request)
            path, text = f"/v1/models/{name}/attention", json.dumps(request).encode()
            right = self.arrays(self.keep(path, {"Content-Type": JSON}, text))
            if row["form"] == "batched":
                self.other_forms(path, request, right)
            if n % 8 == 0:
                judge.measures_agree(name, request)
                self.keep(f"/v1/models/{name}/heads", {"Content-Type": JSON}, text)

    def other_forms(self, path, request, right):
        binary = self.keep(path, {"Content-Type": ST}, safetensors(request))
        self.assertEqual(self.binary(binary), right)
        asked = dict(base64_fields(request), encoding_format="base64")
        self.assertEqual(Forms.base64(self, request, path), right)
        self.keep(path, {"Content-Type": JSON}, json.dumps(asked).encode())

    def large(self, name, count):
        """The first so many of them."""
        for seed, shape in enumerate(LARGE[:count]):
            arrays, lens = self.wide.request(shape, seed)
            fields = dict(zip(("queries", "keys", "values"), (a.tolist() for a in arrays)))
            request = dict(fields, valid_lens=lens.tolist())
            path = f"/v1/models/{name}/attention"
            answer = self.keep(path, {"Content-Type": JSON}, json.dumps(request).encode())
            got = numpy.array(answer.json["outputs"])
            off = numpy.abs(got - self.wide.outputs(arrays, lens)).max()
            self.assertLess(off, WEIGHTS * math.sqrt(WIDE), f"outputs of {shape}")
            binary = self.keep(path, {"Content-Type": ST}, safetensors(request))
            right = self.arrays(answer)
            self.assertEqual(self.binary(binary), right)
            self.protocol(name, request, right["outputs"])

    def whole(self, count):
        """So many drawn requests to each whole model, in every form."""
        for n in range(count):
            for model in wholes.MODELS:
                asked = wholes.request(model, random.Random(f"soak {n} {model}"))
                answers = {post.form: self.keep(post.path, post.headers, post.body)
                           for post in wholes.posts(model, asked)}
                right = answers["json"].json["outputs"]
                self.items_alone(model, asked, right)
                if "safetensors" in answers and "valid_lens" not in asked:
                    tensors, _ = read_safetensors(answers["safetensors"].body)
                    self.assertEqual(tensors["outputs"][2], bits(right))
        tokens = json.dumps({"tokens": [9, 4, 27, 4, 13]}).encode()
        rows = self.keep("/v1/models/whole-sort/encode", {"Content-Type": JSON}, tokens).json["outputs"]
        self.assertEqual([row.index(max(row)) for row in rows], [4, 4, 9, 13, 27])

    def decoders(self, count):
        """So many drawn texts to each decoder: at once, the first one alone as a stream, and what was chosen, scored."""
        for n in range(count):
            for model in wholes.DECODERS:
                asked = wholes.text_request(random.Random(f"soak {n} {model}"), n)
                right = self.tokens(model, "generate", asked).json["sequences"]
                chosen = [sequence["tokens"] for [sequence] in right]
                scored = self.tokens(model, "score", {"tokens": asked["tokens"], "targets": chosen}).json
                self.assertEqual(scored["log_probabilities"],
                                 [sequence["log_probabilities"] for [sequence] in right])
                events = self.tokens(model, "generate", dict(asked, tokens=asked["tokens"][0], stream=True)).body
                told = [json.loads(line[6:]) for line in events.split(b"\n") if line.startswith(b"data: ")]
                self.assertEqual([event["token"] for event in told if "token" in event], chosen[0])

    def searches(self, count):
        """So many drawn searches of each decoder and of each model with an encoder, too; and what was found, scored."""
        for n in range(count):
            for model in (*wholes.DECODERS, *wholes.PAIRS):
                asked = wholes.search_request(random.Random(f"soak search {n} {model}"))
                found = self.tokens(model, "generate", asked).json["sequences"]
                texts = [text for text, sequences in zip(asked["tokens"], found) for _ in sequences]
                every = [sequence for sequences in found for sequence in sequences]
                scored = self.tokens(model, "score", {
                    "tokens": texts, "targets": [sequence["tokens"] for sequence in every]}).json
                self.assertEqual(scored["log_probabilities"], [sequence["log_probabilities"] for sequence in every])
        for model in wholes.PAIRS:
            self.tokens(model, "score", {"tokens": [[1, 2, 3], [4]], "targets": [[5], [6, 7]], "return_hidden": "all",
                                         "return_attention": True})

    def tokens(self, model, what, asked):
        return self.keep(f"/v1/models/{model}/{what}", {"Content-Type": JSON}, json.dumps(asked).encode())

    def items_alone(self, model, asked, right):
        """Each item's outputs are those that it gets in no company."""
        for i, outputs in enumerate(right):
            alone = {name: value[i] if name in ("tokens", "embeddings", "valid_lens") else value
                     for name, value in asked.items()}
            if asked.get("tokens", asked.get("embeddings"))[i]:  # [] would be an empty batch
                answer = self.server.post(f"/v1/models/{model}/encode", alone)
                self.assertEqual(answer.json["outputs"], outputs, alone)

    def protocol(self, name, request, right):
        """The Open Inference Protocol, in JSON and in binary."""
        for binary in ((), ("queries", "keys", "values")):
            body, length = v2(request, binary=binary, outputs=["outputs"],
                              binary_outputs=["outputs"] if binary else None)
            headers = {"Inference-Header-Content-Length": str(length)} if length else {}
            answer = self.keep(f"/v2/models/{name}/infer", headers, body)
            self.assertEqual(read_v2(answer.headers, answer.body)[1]["outputs"], right)
