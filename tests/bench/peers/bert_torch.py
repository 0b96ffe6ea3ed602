"""bert_torch: BERT by PyTorch, as one writes it, and as nn.TransformerEncoder with its fast path.

    bert_torch.py MODEL CASES THREADS SECONDS     prints milliseconds, {form: {case: ...}}, as JSON

MODEL is the folder of bert.py, CASES the file that bert_onnx.py writes. Debian: python3-torch.
"""
import json
import os
import sys
import time

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import bert_make  # noqa: E402  (after the path is known)
from bert import EPSILON, FORWARD, HEADS, LAYERS, POSITIONS, TYPES, VOCABULARY, WIDTH  # noqa: E402

# What the parts of a layer are called here and in the file.
PARTS = {"query": "attention.self.query", "key": "attention.self.key",
         "value": "attention.self.value", "out": "attention.output.dense",
         "norm1": "attention.output.LayerNorm", "up": "intermediate.dense",
         "down": "output.dense", "norm2": "output.LayerNorm"}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, FORWARD), nn.Linear(FORWARD, WIDTH)
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, eps=EPSILON) for _ in range(2))

    def forward(self, x, bias):
        def heads(y):
            return y.view(y.shape[0], y.shape[1], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / (WIDTH // HEADS) ** 0.5 + bias
        context = torch.matmul(torch.softmax(scores, dim=-1), value)
        context = context.permute(0, 2, 1, 3).contiguous()
        x = self.norm1(self.out(context.view(context.shape[0], context.shape[1], WIDTH)) + x)
        return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)


class Bert(nn.Module):
    """(tokens, mask) -> (the last hidden state, its mean over the tokens that are no padding)."""

    def __init__(self, weights):
        super().__init__()
        self.word, self.position, self.token_type = (
            nn.Embedding(rows, WIDTH) for rows in (VOCABULARY, POSITIONS, TYPES))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.layer = nn.ModuleList(Layer() for _ in range(LAYERS))
        names = {f"{n}.weight": f"embeddings.{n}_embeddings.weight"
                 for n in ("word", "position", "token_type")}
        for kind in ("weight", "bias"):
            names[f"norm.{kind}"] = f"embeddings.LayerNorm.{kind}"
            names.update({f"layer.{i}.{ours}.{kind}": f"encoder.layer.{i}.{theirs}.{kind}"
                          for i in range(LAYERS) for ours, theirs in PARTS.items()})
        self.load_state_dict({ours: torch.from_numpy(weights[theirs].copy())
                              for ours, theirs in names.items()})
        self.eval()

    def embed(self, tokens):
        positions = torch.arange(tokens.shape[1]).unsqueeze(0)
        return self.norm(self.word(tokens) + self.token_type(torch.zeros_like(tokens))
                         + self.position(positions))

    def forward(self, tokens, mask):
        bias = (1.0 - mask[:, None, None, :].to(torch.float32)) * -10000.0
        x = self.embed(tokens)
        for layer in self.layer:
            x = layer(x, bias)
        return x, mean(x, mask)


def mean(x, mask):
    real = mask[:, :x.shape[1]].to(torch.float32)
    return (x * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)


def fast(model):
    """The same weights in nn.TransformerEncoder: a fused call for each layer, and no padding."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, FORWARD, 0.0, "gelu", EPSILON,
                                       batch_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=True).eval()
    for to, source in zip(encoder.layers, model.layer):
        projections = (source.query, source.key, source.value)
        for kind in ("weight", "bias"):
            parts = [getattr(part, kind) for part in projections]
            getattr(to.self_attn, "in_proj_" + kind).data = torch.cat(parts)
        to.self_attn.out_proj, to.linear1, to.linear2 = source.out, source.up, source.down
        to.norm1, to.norm2 = source.norm1, source.norm2

    def run(tokens, mask):
        hidden = None if bool(mask.all()) else mask == 0  # a mask that hides nothing costs time
        return mean(encoder(model.embed(tokens), src_key_padding_mask=hidden), mask)

    return run


def padded(items):
    """(tokens, mask) of lists of different lengths."""
    longest = max(map(len, items))
    tokens = [item + [0] * (longest - len(item)) for item in items]
    mask = [[1] * len(item) + [0] * (longest - len(item)) for item in items]
    return torch.tensor(tokens), torch.tensor(mask)


def best(run, seconds):
    """Milliseconds of the best run, of two or of as many as there is time for."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 2 or time.perf_counter() < end:
        begun = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begun))
    return min(times)


def main(folder, cases, threads, seconds):
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(False)
    model = Bert(bert_make.read_safetensors(os.path.join(folder, "model.safetensors")))
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    quick, found = fast(model), {"eager": {}, "fast path": {}}
    with open(cases, encoding="utf-8") as file:
        cases = json.load(file)
    for case, told in cases.items():
        tokens, mask = padded(told["tokens"])
        right = torch.tensor(told["embeddings"])
        for form, run in (("eager", lambda *x: model(*x)[1]), ("fast path", quick)):
            off = float((run(tokens, mask) - right).abs().max() / right.abs().max())
            assert off < 1e-3, f"{form}, {case}: wrong by {off}"
            found[form][case] = best(lambda run=run: run(tokens, mask), float(seconds))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
