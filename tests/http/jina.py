"""jina: JinaBERT, as the model code that is published with jina-embeddings-v2 computes it, in float64.

The layers of BERT without positions in the sum of the embeddings. A score falls by the distance of query and key times
a slope of the head (ALiBi, in both directions). The feed-forward is mlp.wo(gelu(a) * b), where a and b are the halves
of mlp.gated_layers. A classifier reads tanh(pooler.dense) of the first row.
"""
import json
import math
import os

import numpy as np

from golden import MODELS
from support import safetensors_bytes

SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 20}


def config(**changes):
    """What config.json of a published model says, in small."""
    names = "jinaai/jina-bert-implementation--"
    return {"_name_or_path": "jinaai/jina-bert-implementation", "model_max_length": 8192,
            "architectures": ["JinaBertModel"], "attention_probs_dropout_prob": 0.0,
            "auto_map": {"AutoConfig": names + "configuration_bert.JinaBertConfig",
                         "AutoModel": names + "modeling_bert.JinaBertModel"},
            "classifier_dropout": None, "gradient_checkpointing": False, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
            "initializer_range": 0.02, "layer_norm_eps": 1e-12, "max_position_embeddings": 8192, "model_type": "bert",
            "pad_token_id": 0, "position_embedding_type": "alibi", "torch_dtype": "float32",
            "transformers_version": "4.26.0", "type_vocab_size": 2, "use_cache": True, "feed_forward_type": "geglu",
            "emb_pooler": "mean", "attn_implementation": "torch", **SIZES, **changes}


def tensors(said, rng, labels=0):
    d, f = said["hidden_size"], said["intermediate_size"]
    prefix = "bert." if labels else ""
    all_ = {}

    def linear(name, out, size, bias=True):
        all_[f"{prefix}{name}.weight"] = rng.normal(0, size ** -0.5, (out, size))
        if bias:
            all_[f"{prefix}{name}.bias"] = rng.normal(0, 0.3, out)

    def norm(name):
        all_[f"{prefix}{name}.weight"] = rng.normal(1, 0.2, d)
        all_[f"{prefix}{name}.bias"] = rng.normal(0, 0.2, d)
    for name, rows in (("word", said["vocab_size"]), ("token_type", said["type_vocab_size"])):
        all_[f"{prefix}embeddings.{name}_embeddings.weight"] = rng.normal(0, 1, (rows, d))
    norm("embeddings.LayerNorm")
    for i in range(said["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        for name in ("query", "key", "value"):
            linear(f"{layer}attention.self.{name}", d, d)
        linear(f"{layer}attention.output.dense", d, d)
        norm(f"{layer}attention.output.LayerNorm")
        linear(f"{layer}mlp.gated_layers", 2 * f, d, bias=False)
        linear(f"{layer}mlp.wo", d, f)
        norm(f"{layer}mlp.layernorm")
    linear("pooler.dense", d, d)
    if labels:
        prefix = ""
        linear("classifier", labels, d)
    return {name: x.astype(np.float32) for name, x in all_.items()}


def slopes(heads):
    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start ** i for i in range(n)]
    if math.log2(heads).is_integer():
        return power_of_2(heads)
    below = 2 ** math.floor(math.log2(heads))
    return power_of_2(below) + slopes(2 * below)[0::2][:heads - below]


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def compute(said, given, tokens, types=None):
    """Of one item: hidden states, attention weights of each layer [H, n, n], pooler, and logits if there is a head."""
    w = {name.removeprefix("bert."): x.astype(np.float64) for name, x in given.items()}
    n, d, heads = len(tokens), said["hidden_size"], said["num_attention_heads"]

    def linear(name, x):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def norm(name, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x ** 2).mean(-1, keepdims=True) + said["layer_norm_eps"])
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]
    x = w["embeddings.word_embeddings.weight"][tokens]
    x = norm("embeddings.LayerNorm", x + w["embeddings.token_type_embeddings.weight"][types or [0] * n])
    far = np.abs(np.arange(n)[:, None] - np.arange(n)[None])
    states, weights = [x], []
    for i in range(said["num_hidden_layers"]):
        layer = f"encoder.layer.{i}."
        q, k, v = (linear(f"{layer}attention.self.{name}", x).reshape(n, heads, -1).transpose(1, 0, 2)
                   for name in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(d // heads) - np.array(slopes(heads))[:, None, None] * far
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        weights.append(scores / scores.sum(-1, keepdims=True))
        context = (weights[-1] @ v).transpose(1, 0, 2).reshape(n, d)
        x = norm(f"{layer}attention.output.LayerNorm", linear(f"{layer}attention.output.dense", context) + x)
        gated, plain = np.split(linear(f"{layer}mlp.gated_layers", x), 2, axis=-1)
        x = norm(f"{layer}mlp.layernorm", linear(f"{layer}mlp.wo", gelu(gated) * plain) + x)
        states.append(x)
    pooler = np.tanh(linear("pooler.dense", x[0]))
    logits = linear("classifier", pooler) if "classifier.weight" in w else None
    return states, weights, pooler, logits


def write(folder, said, given):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(said, indent=1, sort_keys=True) + "\n")
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(safetensors_bytes({name: (list(x.shape), x.ravel().tolist()) for name, x in given.items()}))
    return folder


# --- tests/golden/models/jina-bert-*: this file as a program writes them ---

CLASSES = {"architectures": ["JinaBertForSequenceClassification"], "num_attention_heads": 4,
           "id2label": {"0": "L0", "1": "L1", "2": "L2"}, "label2id": {"L0": 0, "L1": 1, "L2": 2}}


def numbers(x):
    return [numbers(one) for one in x] if isinstance(x, (list, tuple, np.ndarray)) and np.ndim(x[0]) else \
        [float(f"{one:.9g}") for one in x]


def golden_cases(name, said, given):
    """The cases of cases.json."""
    rng = np.random.default_rng(7)
    tokens, types = ([[int(t) for t in rng.integers(0, most, n)] for n in (1, 5, 13, 34)] for most in (said["vocab_size"], 2))
    asked = {"name": "types", "tokens": tokens, "token_types": types, "source": "tests/http/jina.py float64"}
    found = [compute(said, given, *one) for one in zip(tokens, types)]
    if name == "jina-bert-cls":
        return [{**asked, "kind": "classify", "expected": {"logits": [numbers(logits) for _, _, _, logits in found]}}]
    few = found[:3]  # the last item is long: its outputs alone
    return [{**asked, "kind": "encode", "tokens": tokens[:3], "token_types": types[:3], "expected": {
                "last_hidden_state": [numbers(states[-1]) for states, *_ in few],
                "hidden_states": [[numbers(states[i]) for states, *_ in few] for i in range(said["num_hidden_layers"] + 1)],
                "attentions": [[numbers(weights[i]) for _, weights, *_ in few] for i in range(said["num_hidden_layers"])],
                "pooled": {"mean": [numbers(states[-1].mean(0)) for states, *_ in few],
                           "cls": [numbers(states[-1][0]) for states, *_ in few],
                           "pooler": [numbers(pooler) for _, _, pooler, _ in few]}}},
            {**asked, "name": "long", "kind": "encode", "tokens": tokens[3:], "token_types": types[3:], "expected": {
                "last_hidden_state": [numbers(found[3][0][-1])], "hidden_states": [], "attentions": [],
                "pooled": {"mean": [numbers(found[3][0][-1].mean(0))]}}}]


GOLDEN = {"jina-bert-a": (config(), 3), "jina-bert-cls": (config(**CLASSES), 4)}

if __name__ == "__main__":
    for folder_name, (said_, seed) in GOLDEN.items():
        given_ = tensors(said_, np.random.default_rng(seed), len(said_.get("id2label", ())))
        folder_ = write(os.path.join(MODELS, folder_name), said_, given_)
        with open(os.path.join(folder_, "cases.json"), "w", encoding="utf-8") as cases_:
            cases_.write(json.dumps(golden_cases(folder_name, said_, given_)) + "\n")
