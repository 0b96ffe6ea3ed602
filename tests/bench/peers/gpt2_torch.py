"""gpt2_torch: a text's first token by PyTorch, as one writes GPT-2.

    gpt2_torch.py TOKENS THREADS SECONDS     prints {"text": tokens a second, "token": the first one}, as JSON

TOKENS is a file with a list of tokens; the model is the folder of gpt2.py. Debian: python3-torch.
"""
import json
import os
import sys

import torch
from torch import nn
from bert_torch import best, bert_make

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import gpt2  # noqa: E402  (after the path is known)


class Gpt2:
    def __init__(self, weights):
        self.weights = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}

    def norm(self, x, name):
        return nn.functional.layer_norm(x, (gpt2.WIDTH,), self.weights[name + ".weight"], self.weights[name + ".bias"],
                                        gpt2.EPSILON)

    def project(self, x, name):
        return torch.addmm(self.weights[name + ".bias"], x, self.weights[name + ".weight"])

    def layer(self, x, name, hidden):
        query, key, value = (part.view(len(x), gpt2.HEADS, -1).transpose(0, 1) for part in self.project(
            self.norm(x, name + ".ln_1"), name + ".attn.c_attn").split(gpt2.WIDTH, dim=1))
        scores = torch.matmul(query, key.transpose(1, 2)) / query.shape[2] ** 0.5 + hidden
        context = torch.matmul(torch.softmax(scores, dim=-1), value).transpose(0, 1).reshape(len(x), gpt2.WIDTH)
        x = x + self.project(context, name + ".attn.c_proj")
        inner = self.project(self.norm(x, name + ".ln_2"), name + ".mlp.c_fc")
        inner = 0.5 * inner * (1 + torch.tanh(0.7978845608028654 * (inner + 0.044715 * inner ** 3)))
        return x + self.project(inner, name + ".mlp.c_proj"), key, value

    def first(self, tokens):
        """The token that comes next, and keys and values of all layers, for those behind it."""
        x = self.weights["wte.weight"][tokens] + self.weights["wpe.weight"][:len(tokens)]
        hidden = torch.full((len(tokens), len(tokens)), float("-inf")).triu(1)
        kept = []
        for i in range(gpt2.LAYERS):
            x, *rows = self.layer(x, f"h.{i}", hidden)
            kept.append(rows)
        return int(torch.mv(self.weights["wte.weight"], self.norm(x[-1], "ln_f")).argmax()), kept


def main(path, threads, seconds):
    torch.set_num_threads(int(threads))
    torch.set_grad_enabled(False)
    weights = bert_make.read_safetensors(os.path.join(gpt2.folder(), "model.safetensors"))
    model = Gpt2({name[name.startswith("transformer.") and len("transformer."):]: array
                  for name, array in weights.items()})
    with open(path, encoding="utf-8") as file:
        tokens = torch.tensor(json.load(file))
    print(json.dumps({"text": 1e3 * len(tokens) / best(lambda: model.first(tokens), float(seconds)),
                      "token": model.first(tokens)[0]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
