"""test_lens: what each hidden state says of the tokens to come, beside the formulas in plain floats, of models of
published families: their hidden states through their own last norm and output.
"""
import math
import os
import unittest
from typing import NamedTuple, Optional

import golden
from oracle import dot
from support import Server, ServerCase, read_safetensors


class Way(NamedTuple):
    """From a hidden state to logits: the names of the tensors, and what else is to be known."""
    matrix: str
    bias: Optional[str] = None
    norm: Optional[str] = None  # its weight and, where it has one, its bias
    rms: bool = False
    scale: float = 1
    above_one: bool = False  # the norm's factor is 1 + its weight
    cap: float = 0
    source: bool = False


WAYS = {"gpt2-a": Way("transformer.wte", norm="transformer.ln_f"),
        "llama-a": Way("lm_head", norm="model.norm", rms=True),
        "llama-b": Way("model.embed_tokens", norm="model.norm", rms=True),
        "qwen2-a": Way("model.embed_tokens", norm="model.norm", rms=True),
        "gemma2-a": Way("model.embed_tokens", norm="model.norm", rms=True, above_one=True, cap=4),
        "bart-a": Way("model.shared", bias="final_logits_bias", source=True),
        "marian-a": Way("model.shared", bias="final_logits_bias", source=True),
        "t5-a": Way("shared", norm="decoder.final_layer_norm", rms=True, scale=32 ** -0.5, source=True),
        "t5-v11": Way("lm_head", norm="decoder.final_layer_norm", rms=True, source=True)}
TEXTS, TARGETS = [[5, 8, 3], [9], [2, 2]], [[7, 1], [3, 4, 50], [6]]


class Twin:
    def __init__(self, name, way):
        self.way = way
        self.tensors, _ = read_safetensors(os.path.join(golden.MODELS, name, "model.safetensors"))
        (_, width), numbers = self.tensors[way.matrix + ".weight"]
        self.rows = [numbers[at:at + width] for at in range(0, len(numbers), width)]

    def norm(self, x):
        mean = 0 if self.way.rms else math.fsum(x) / len(x)
        variance = math.fsum((v - mean) ** 2 for v in x) / len(x)
        weight = self.tensors[self.way.norm + ".weight"][1]
        _, bias = self.tensors.get(self.way.norm + ".bias", (None, [0] * len(x)))
        root = math.sqrt(variance + (1e-6 if self.way.rms else 1e-5))
        return [(v - mean) / root * (self.way.above_one + w) + b for v, w, b in zip(x, weight, bias)]

    def log_probabilities(self, state, normed):
        x = self.norm(state) if self.way.norm and not normed else state
        bias = self.tensors[self.way.bias][1] if self.way.bias else [0] * len(self.rows)
        logits = [dot(x, row) * self.way.scale + b for row, b in zip(self.rows, bias)]
        if self.way.cap:
            logits = [self.way.cap * math.tanh(logit / self.way.cap) for logit in logits]
        most = max(logits)
        total = math.log(math.fsum(math.exp(logit - most) for logit in logits))
        return [logit - most - total for logit in logits]


class Lens(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": {name: golden.definition(name) for name in WAYS}})

    def ask(self, name, **fields):
        return self.ok(self.server.post(f"/v1/models/{name}/score", dict(tokens=TEXTS, targets=TARGETS, **fields)))

    def check(self, likely, right):
        """A list of the likeliest tokens of a place."""
        logs = [entry["log_probability"] for entry in likely]
        self.assertEqual(logs, sorted(logs, reverse=True))
        self.assertEqual(len({entry["token"] for entry in likely}), len(likely))
        for entry in likely:
            self.assertLessEqual(abs(entry["log_probability"] - right[entry["token"]]), 1e-4)
        self.assertLess(sum(log > logs[-1] + 1e-4 for log in right), len(likely))

    def test_every_state_of_every_family(self):
        for name, way in WAYS.items():
            twin = Twin(name, way)
            answer = self.ask(name, return_lens=6, return_top=6, return_hidden="all")
            states = [state for state in answer["hidden"] if state.startswith("decoder.") and state.count(".") == 1]
            self.assertEqual(list(answer["lens"]), states)
            self.assertEqual(answer["lens"][states[-1]], answer["top"])
            for state in states:
                with self.subTest(model=name, state=state):
                    for text, targets, likely, rows in zip(TEXTS, TARGETS, answer["lens"][state],
                                                           answer["hidden"][state], strict=True):
                        self.assertEqual(len(likely), len(targets))
                        first = 0 if way.source else len(text) - 1
                        for place, row in zip(likely, rows[first:], strict=True):
                            self.check(place, twin.log_probabilities(row, state == states[-1]))

    def test_nothing_else_changes(self):
        """A lens changes no other number, in whatever company it is asked."""
        for name in WAYS:
            with self.subTest(model=name):
                whole = self.ask(name, return_lens=3, return_top=4, return_hidden="all")
                lens = whole.pop("lens")
                self.assertEqual(self.ask(name, return_top=4, return_hidden="all"), whole)
                self.assertEqual(self.ask(name, return_lens=3)["lens"], lens)
                for item, (tokens, targets) in enumerate(zip(TEXTS, TARGETS)):
                    alone = self.ok(self.server.post(f"/v1/models/{name}/score", {
                        "tokens": tokens, "targets": targets, "return_lens": 3}))
                    self.assertEqual(alone["lens"], {state: likely[item] for state, likely in lens.items()})

    def test_what_it_may_need_is_counted(self):
        """An answer beyond the limit is refused before anything is computed."""
        server = Server({"models": {"gpt2": golden.definition("gpt2-a")}, "max_answer_bytes": 20000})
        self.addCleanup(server.stop)
        request = {"tokens": [1, 2], "targets": [3, 4]}
        self.ok(server.post("/v1/models/gpt2/score", dict(request, return_lens=30)))
        self.ok(server.post("/v1/models/gpt2/score", dict(request, return_top=64)))
        body = self.problem(server.post("/v1/models/gpt2/score", dict(request, return_lens=64)), 413, "too-large")
        self.assertEqual(body["limit"], "max_answer_bytes")


if __name__ == "__main__":
    unittest.main()
