"""gte: GTE v1.5 and multilingual, as the model code that is published with them (Alibaba-NLP/new-impl) computes them, in
float64.

The layers of BERT with rotary positions and packed matrices: the thirds of attention.qkv_proj are queries, keys and
values; the halves of mlp.up_gate_proj are up and gate, and the feed-forward is mlp.down_proj(up * gelu(gate)). A
classifier reads tanh(pooler.dense) of the first row.
"""
import json
import os

import numpy

from golden import MODELS
from jina import numbers
from pairs import activate
from support import safetensors_bytes

D, HEADS, FORWARD, LAYERS, TOKENS = 24, 3, 36, 2, 50
# As the published folders say it; keys without an effect on the outputs are there, too.
CONFIG = {"architectures": ["NewModel"], "attention_probs_dropout_prob": 0.0,
          "auto_map": {"AutoModel": "Alibaba-NLP/new-impl--modeling.NewModel"}, "classifier_dropout": 0.0,
          "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": D, "initializer_range": 0.02,
          "intermediate_size": FORWARD, "layer_norm_eps": 1e-12, "layer_norm_type": "layer_norm",
          "logn_attention_clip1": False, "logn_attention_scale": False, "max_position_embeddings": 64,
          "model_type": "new", "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "pack_qkv": True,
          "pad_token_id": 0, "position_embedding_type": "rope", "rope_scaling": None, "rope_theta": 500000,
          "type_vocab_size": 0, "unpad_inputs": False, "use_memory_efficient_attention": False, "vocab_size": TOKENS}
NTK = {"factor": 2.0, "type": "ntk"}
SNOWFLAKE = {"architectures": ["GteModel"], "auto_map": {"AutoModel": "modeling_hf_alibaba_nlp_gte.GteModel"},
             "matryoshka_dimensions": [8], "model_type": "gte", "pad_token_id": 1, "rope_theta": 160000,
             "type_vocab_size": 1, "unpad_inputs": "true", "use_memory_efficient_attention": "true"}


def norm(x, tensors, name, epsilon=1e-12):
    x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def linear(x, tensors, name):
    return x @ tensors[f"{name}.weight"].T + tensors.get(f"{name}.bias", 0)


def rotate(x, frequencies):
    """x: [n, heads, size]; pairs are halves of a head."""
    angle = numpy.outer(numpy.arange(len(x)), frequencies)[:, None]
    a, b = numpy.split(x, 2, axis=-1)
    return numpy.concatenate((a * numpy.cos(angle) - b * numpy.sin(angle), a * numpy.sin(angle) + b * numpy.cos(angle)), -1)


class Gte:
    """A model with random tensors, which it writes, and what it computes."""

    def __init__(self, folder, under="", heads=(), **config):
        self.config = {**CONFIG, **config}
        rng = numpy.random.default_rng(5)
        shapes = {"embeddings.word_embeddings.weight": (TOKENS, D)}
        norms = ["embeddings.LayerNorm"]
        if self.config["type_vocab_size"]:
            shapes["embeddings.token_type_embeddings.weight"] = (self.config["type_vocab_size"], D)
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}."
            shapes.update({layer + "attention.qkv_proj.weight": (3 * D, D), layer + "attention.qkv_proj.bias": (3 * D,),
                           layer + "attention.o_proj.weight": (D, D), layer + "attention.o_proj.bias": (D,),
                           layer + "mlp.up_gate_proj.weight": (2 * FORWARD, D),
                           layer + "mlp.down_proj.weight": (D, FORWARD), layer + "mlp.down_proj.bias": (D,)})
            norms += [layer + "attn_ln", layer + "mlp_ln"]
        if "pooler" in heads:
            shapes.update({"pooler.dense.weight": (D, D), "pooler.dense.bias": (D,)})
        outside = {}  # tensors that are no members of the model within the head
        if "classifier" in heads:
            outside.update({"classifier.weight": (1, D), "classifier.bias": (1,)})
        if "lm_head" in heads:
            outside.update({"lm_head.dense.weight": (D, D), "lm_head.dense.bias": (D,), "lm_head.decoder.bias": (TOKENS,)})
            norms.append("lm_head.norm")
        for name in norms:
            (outside if name.startswith("lm_head") else shapes).update({f"{name}.weight": (D,), f"{name}.bias": (D,)})
        draw = {name: rng.normal(name in {f"{one}.weight" for one in norms}, 0.3, shape)
                for name, shape in {**shapes, **outside}.items()}
        self.tensors = {name: numpy.float32(x) for name, x in draw.items()}
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "model.safetensors"), "wb") as file:
            file.write(safetensors_bytes({(under if name in shapes else "") + name: (list(x.shape), x.ravel().tolist())
                                          for name, x in self.tensors.items()}))
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(self.config, indent=1, sort_keys=True) + "\n")
        self.definition = {"transformer": folder}
        self.tensors = {name: numpy.float64(x) for name, x in self.tensors.items()}

    def frequencies(self):
        base, size, scaling = self.config["rope_theta"], D // HEADS, self.config["rope_scaling"]
        exponents = numpy.arange(0, size, 2) / size
        if not scaling:
            return base ** -exponents
        return (base * scaling["factor"]) ** -exponents / scaling["factor"] ** (2 / size)

    def run(self, tokens, types=None):
        """Hidden states, and attention weights [heads, n, n] of each layer."""
        t, n = self.tensors, len(tokens)
        x = t["embeddings.word_embeddings.weight"][tokens]
        if self.config["type_vocab_size"]:
            x = x + t["embeddings.token_type_embeddings.weight"][types or [0] * n]
        x = norm(x, t, "embeddings.LayerNorm")
        states, attentions = [x], []
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}."
            q, k, v = (part.reshape(n, HEADS, -1)
                       for part in numpy.split(linear(x, t, layer + "attention.qkv_proj"), 3, axis=-1))
            q, k = rotate(q, self.frequencies()), rotate(k, self.frequencies())
            scores = numpy.einsum("ihd,jhd->hij", q, k) / numpy.sqrt(D / HEADS)
            weights = numpy.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            context = numpy.einsum("hij,jhd->ihd", weights, v).reshape(n, D)
            x = norm(x + linear(context, t, layer + "attention.o_proj"), t, layer + "attn_ln")
            up, gate = numpy.split(linear(x, t, layer + "mlp.up_gate_proj"), 2, axis=-1)
            x = norm(x + linear(up * activate("gelu", gate), t, layer + "mlp.down_proj"), t, layer + "mlp_ln")
            states.append(x)
            attentions.append(weights)
        return states, attentions

    def hidden(self, tokens):
        return self.run(tokens)[0][-1]

    def pooled(self, tokens):
        return numpy.tanh(linear(self.hidden(tokens)[0], self.tensors, "pooler.dense"))

    def score(self, tokens):
        return linear(self.pooled(tokens), self.tensors, "classifier")

    def logits(self, tokens):
        x = activate("gelu", linear(self.hidden(tokens), self.tensors, "lm_head.dense"))
        return norm(x, self.tensors, "lm_head.norm") @ self.tensors["embeddings.word_embeddings.weight"].T + \
            self.tensors["lm_head.decoder.bias"]


# --- tests/golden/models/gte-*: this file as a program writes them ---

GOLDEN = {"gte-a": ((), {"rope_scaling": NTK, "type_vocab_size": 2}),
          "gte-cls": (("pooler", "classifier"), {"architectures": ["NewForSequenceClassification"], "rope_scaling": NTK,
                                                 "id2label": {"0": "LABEL_0"}, "type_vocab_size": 1})}


def write_golden(name):
    heads, config = GOLDEN[name]
    one = Gte(os.path.join(MODELS, name), "new." if heads else "", heads, **config)
    rng = numpy.random.default_rng(7)
    tokens = [[int(t) for t in rng.integers(0, TOKENS, n)] for n in (1, 6, 13, 40)]
    case = {"name": "some", "kind": "encode", "tokens": tokens, "source": "tests/http/gte.py float64"}
    if heads:
        case.update(kind="classify", expected={"logits": [numbers(one.score(item)) for item in tokens]})
        cases = [case]
    else:
        types = [[int(t) for t in rng.integers(0, 2, len(item))] for item in tokens]
        ran = [one.run(*item) for item in zip(tokens, types)]
        cases = [{**case, "tokens": tokens[:3], "token_types": types[:3], "expected": {
                     "last_hidden_state": [numbers(states[-1]) for states, _ in ran[:3]],
                     "hidden_states": [[numbers(states[i]) for states, _ in ran[:3]] for i in range(LAYERS + 1)],
                     "attentions": [[numbers(weights[i]) for _, weights in ran[:3]] for i in range(LAYERS)],
                     "pooled": {"mean": [numbers(states[-1].mean(0)) for states, _ in ran[:3]],
                                "cls": [numbers(states[-1][0]) for states, _ in ran[:3]]}}},
                 {**case, "name": "long", "tokens": tokens[3:], "token_types": types[3:], "expected": {
                     "last_hidden_state": [numbers(ran[3][0][-1])], "hidden_states": [], "attentions": [],
                     "pooled": {"mean": [numbers(ran[3][0][-1].mean(0))]}}}]
    with open(os.path.join(MODELS, name, "cases.json"), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases) + "\n]\n")


if __name__ == "__main__":
    for golden_name in GOLDEN:
        write_golden(golden_name)
