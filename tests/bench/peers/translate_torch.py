"""translate_torch: the textbook's Transformer by PyTorch, keys and values kept: translations, greedy and by beams.

    translate_torch.py SHAPE SOURCES THREADS SECONDS     prints JSON:
        {"rates": {"greedy x1": tokens a second, ...}, "tokens": {"greedy": those of the first source, ...}}

SHAPE is one of translator.py's, SOURCES a file with a list of lists of tokens. No translation ends before it has as many
tokens as it may have. Debian: python3-torch.
"""
import json
import math
import os
import sys

import torch
from torch.nn import functional
from bert_torch import best, bert_make

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import translator  # noqa: E402  (after the path is known)
from translator import BEAMS, BEGIN, END, EPSILON, HEADS, LAYERS, MOST, WIDTH  # noqa: E402

SIZE = WIDTH // HEADS  # of a head


def positions(count):
    angles = torch.outer(torch.arange(count), 10000 ** (-torch.arange(0, WIDTH, 2) / WIDTH))
    return torch.stack([torch.sin(angles), torch.cos(angles)], dim=2).reshape(count, WIDTH)


def attend(query, key, value):
    """[items, heads, rows, SIZE] each; the heads of a row side by side: [items, rows, WIDTH]"""
    weights = torch.softmax(torch.matmul(query, key.transpose(2, 3)) / math.sqrt(SIZE), dim=3)
    return torch.matmul(weights, value).transpose(1, 2).flatten(2)


def heads(x, parts):
    """[items, rows, parts * WIDTH] -> of each part [items, heads, rows, SIZE]"""
    return x.view(x.shape[0], x.shape[1], parts, HEADS, SIZE).permute(2, 0, 3, 1, 4)


class Translator:
    def __init__(self, weights):
        self.weights = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
        self.table = self.weights["embedding.weight"]
        self.positions = positions(512)

    def linear(self, x, name, rows=slice(None), part="."):
        return functional.linear(x, self.weights[f"{name}{part}weight"][rows], self.weights[f"{name}{part}bias"][rows])

    def project(self, x, name, rows, parts):
        """Some of an attention's queries, keys and values."""
        return heads(self.linear(x, name, rows, ".in_proj_"), parts)

    def norm(self, x, name):
        return functional.layer_norm(x, (WIDTH,), self.weights[name + ".weight"], self.weights[name + ".bias"], EPSILON)

    def forward(self, x, layer):
        return self.linear(functional.relu(self.linear(x, layer + ".linear1")), layer + ".linear2")

    def embed(self, tokens, first):
        return self.table[tokens] * math.sqrt(WIDTH) + self.positions[first:first + tokens.shape[1]]

    def encode(self, tokens):
        """What the decoder's layers see of the sources: keys and values of each."""
        x = self.embed(tokens, 0)
        for i in range(LAYERS):
            layer = f"encoder.layers.{i}"
            context = attend(*self.project(x, layer + ".self_attn", slice(None), 3))
            x = self.norm(x + self.linear(context, layer + ".self_attn.out_proj"), layer + ".norm1")
            x = self.norm(x + self.forward(x, layer), layer + ".norm2")
        x = self.norm(x, "encoder.norm")
        return [self.project(x, f"decoder.layers.{i}.multihead_attn", slice(WIDTH, None), 2).contiguous()
                for i in range(LAYERS)]


class Decoding:
    """Translations under way, as many of each source, which lie side by side and see its keys."""

    def __init__(self, model, tokens, each):
        self.model, self.each, self.count = model, each, 0
        self.sources = model.encode(tokens)
        self.kept = [torch.empty(2, len(tokens) * each, HEADS, MOST, SIZE) for _ in range(LAYERS)]

    def across(self, x, layer, source):
        """The rows of a source's translations are rows of one item."""
        rows = x.view(-1, self.each, WIDTH)
        query = self.model.project(rows, layer + ".multihead_attn", slice(WIDTH), 1)[0]
        context = attend(query, *source).reshape(-1, 1, WIDTH)
        return self.model.linear(context, layer + ".multihead_attn.out_proj")

    def step(self, tokens):
        """The logits [translations, V] behind these tokens, one of each."""
        model, at = self.model, self.count
        x = model.embed(tokens[:, None], at)
        for i, (kept, source) in enumerate(zip(self.kept, self.sources)):
            layer = f"decoder.layers.{i}"
            query, key, value = model.project(x, layer + ".self_attn", slice(None), 3)
            kept[0, :, :, at:at + 1], kept[1, :, :, at:at + 1] = key, value
            context = attend(query, kept[0, :, :, :at + 1], kept[1, :, :, :at + 1])
            x = model.norm(x + model.linear(context, layer + ".self_attn.out_proj"), layer + ".norm1")
            x = model.norm(x + self.across(x, layer, source), layer + ".norm2")
            x = model.norm(x + model.forward(x, layer), layer + ".norm3")
        self.count += 1
        return torch.matmul(model.norm(x, "decoder.norm")[:, 0], model.table.T)

    def reorder(self, parents):
        for kept in self.kept:
            kept[:, :, :, :self.count] = kept[:, parents, :, :self.count]


def greedy(model, sources):
    decoding = Decoding(model, sources, 1)
    token, chosen = torch.full((len(sources),), BEGIN), []
    for _ in range(MOST):
        logits = decoding.step(token)
        logits[:, END] = -math.inf
        token = logits.argmax(dim=1)
        chosen.append(token)
    return torch.stack(chosen, dim=1)


def search(model, sources):
    """The best beam of each source."""
    items = len(sources)
    decoding = Decoding(model, sources, BEAMS)
    token, chosen = torch.full((items * BEAMS,), BEGIN), torch.empty(items * BEAMS, 0, dtype=torch.long)
    sums = torch.tensor([0.0] + [-math.inf] * (BEAMS - 1)).repeat(items, 1)  # one beam at first
    first = torch.arange(items)[:, None] * BEAMS
    for _ in range(MOST):
        logs = torch.log_softmax(decoding.step(token), dim=1)
        logs[:, END] = -math.inf
        tokens = logs.shape[1]
        sums, places = (sums[:, :, None] + logs.view(items, BEAMS, tokens)).flatten(1).topk(BEAMS)
        parents, token = (first + places // tokens).flatten(), (places % tokens).flatten()
        chosen = torch.cat([chosen[parents], token[:, None]], dim=1)
        decoding.reorder(parents)
    return chosen.view(items, BEAMS, MOST)[:, 0]


def main(shape, path, threads, seconds):
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(False)
    model = Translator(bert_make.read_safetensors(os.path.join(translator.folder(shape), "model.safetensors")))
    with open(path, encoding="utf-8") as file:
        sources = torch.tensor(json.load(file))
    found = {"rates": {}, "tokens": {}}
    for title, translate in (("greedy", greedy), (f"beams {BEAMS}", search)):
        for items in (1, len(sources)):
            some = sources[:items]
            milliseconds = best(lambda: translate(model, some), float(seconds))
            found["rates"][f"{title} x{items}"] = 1e3 * items * MOST / milliseconds
        found["tokens"][title] = translate(model, sources[:1])[0].tolist()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
