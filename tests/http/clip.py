"""clip: the text tower of CLIP as Hugging Face transformers computes it, in float64.

Token and position embeddings, pre-norm layers whose rows attend to earlier ones, quick_gelu, final_layer_norm. The
pooled row is that of the end token: where eos_token_id is 2, the row of the greatest token; else the first row of
eos_token_id, or row 0. text_projection maps it, without a bias.
"""
import json
import math
import os

import numpy as np

from golden import MODELS
from jina import numbers, write

SIZES = {"hidden_size": 24, "intermediate_size": 28, "num_attention_heads": 3, "num_hidden_layers": 2, "vocab_size": 40,
         "max_position_embeddings": 40, "projection_dim": 16}


def text_config(**changes):
    return {"model_type": "clip_text_model", "architectures": ["CLIPTextModel"], "attention_dropout": 0.0, "dropout": 0.0,
            "hidden_act": "quick_gelu", "initializer_factor": 1.0, "initializer_range": 0.02, "layer_norm_eps": 1e-05,
            "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "torch_dtype": "float32", **SIZES, **changes}


def tensors(said, rng, projected):
    d, f, all_ = said["hidden_size"], said["intermediate_size"], {}

    def linear(name, out, size):
        all_[f"text_model.{name}.weight"] = rng.normal(0, size ** -0.5, (out, size))
        all_[f"text_model.{name}.bias"] = rng.normal(0, 0.3, out)

    def norm(name):
        all_[f"text_model.{name}.weight"] = rng.normal(1, 0.2, d)
        all_[f"text_model.{name}.bias"] = rng.normal(0, 0.2, d)
    for name, rows in (("token", said["vocab_size"]), ("position", said["max_position_embeddings"])):
        all_[f"text_model.embeddings.{name}_embedding.weight"] = rng.normal(0, 1, (rows, d))
    for i in range(said["num_hidden_layers"]):
        layer = f"encoder.layers.{i}."
        for name in ("q", "k", "v", "out"):
            linear(f"{layer}self_attn.{name}_proj", d, d)
        linear(f"{layer}mlp.fc1", f, d)
        linear(f"{layer}mlp.fc2", d, f)
        norm(f"{layer}layer_norm1")
        norm(f"{layer}layer_norm2")
    norm("final_layer_norm")
    if projected:
        all_["text_projection.weight"] = rng.normal(0, d ** -0.5, (said["projection_dim"], d))
    return {name: x.astype(np.float32) for name, x in all_.items()}


def end_row(said, tokens):
    if said["eos_token_id"] == 2:
        return int(np.argmax(tokens))
    return tokens.index(said["eos_token_id"]) if said["eos_token_id"] in tokens else 0


def compute(said, given, tokens):
    """Of one item: hidden states, attention weights of each layer [H, n, n], the outputs, the pooled row, and its
    projection if there is one."""
    w = {name.removeprefix("text_model."): x.astype(np.float64) for name, x in given.items()}
    n, d, heads = len(tokens), said["hidden_size"], said["num_attention_heads"]

    def linear(name, x):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(name, x):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + said["layer_norm_eps"]) * w[f"{name}.weight"] + w[f"{name}.bias"]
    x = w["embeddings.token_embedding.weight"][tokens] + w["embeddings.position_embedding.weight"][:n]
    states, weights = [x], []
    for i in range(said["num_hidden_layers"]):
        layer = f"encoder.layers.{i}."
        y = norm(f"{layer}layer_norm1", x)
        q, k, v = (linear(f"{layer}self_attn.{name}_proj", y).reshape(n, heads, -1).transpose(1, 0, 2) for name in "qkv")
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(d // heads)
        scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        weights.append(scores / scores.sum(-1, keepdims=True))
        x = x + linear(f"{layer}self_attn.out_proj", (weights[-1] @ v).transpose(1, 0, 2).reshape(n, d))
        y = linear(f"{layer}mlp.fc1", norm(f"{layer}layer_norm2", x))
        x = x + linear(f"{layer}mlp.fc2", y / (1 + np.exp(-1.702 * y)))
        states.append(x)
    outputs = norm("final_layer_norm", x)
    pooled = outputs[end_row(said, tokens)]
    projected = w["text_projection.weight"] @ pooled if "text_projection.weight" in w else None
    return states, weights, outputs, pooled, projected


# --- tests/golden/models/clip-text-a: this file as a program writes it ---

GOLDEN = text_config(eos_token_id=7)


def golden_cases(given):
    rng = np.random.default_rng(5)
    tokens = [[int(t) for t in rng.integers(8, 40, n)] for n in (1, 6, 17)]
    tokens[1][3] = tokens[1][5] = tokens[2][16] = 7
    found = [compute(GOLDEN, given, item) for item in tokens]
    return [{"name": "ends", "kind": "encode", "tokens": tokens, "source": "tests/http/clip.py float64", "expected": {
        "last_hidden_state": [numbers(one[2]) for one in found],
        "hidden_states": [[numbers(one[0][i]) for one in found] for i in range(3)],
        "attentions": [[numbers(one[1][i]) for one in found] for i in range(2)],
        "pooled": {"mean": [numbers(one[2].mean(0)) for one in found], "cls": [numbers(one[2][0]) for one in found],
                   "pooler": [numbers(one[3]) for one in found]}}}]


if __name__ == "__main__":
    given_ = tensors(GOLDEN, np.random.default_rng(2), False)
    folder_ = write(os.path.join(MODELS, "clip-text-a"), GOLDEN, given_)
    with open(os.path.join(folder_, "cases.json"), "w", encoding="utf-8") as cases_:
        cases_.write(json.dumps(golden_cases(given_)) + "\n")
