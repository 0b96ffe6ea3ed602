"""pairs: small models of an encoder and a decoder as the kin of BART write them, and what they answer.

`make` fills a families.File with the tensors of a type under their published names and returns its
config.json; `Pair` is the whole model in float64, as the published code computes it, written down once
more: what the types differ in stands in `KIN`.
"""
import math
from typing import NamedTuple

import numpy as np

from families import File


class Kin(NamedTuple):
    """pre: norms stand before the branches, and one behind the last layer; embedded: one behind the
    embedding. positions: a table that is stored, or how it is computed; first: its first row in use."""
    pre: bool
    embedded: bool
    positions: str
    first: int
    activation: str
    biased: bool = True  # final_logits_bias is stored


KIN = {"bart": Kin(False, True, "stored", 2, "gelu"),
       "mbart": Kin(True, True, "stored", 2, "gelu"),
       "m2m_100": Kin(True, False, "wide", 2, "relu", biased=False),
       "pegasus": Kin(True, False, "halves", 0, "relu"),
       "marian": Kin(False, False, "halves", 0, "swish")}

SIZES = {"d_model": 24, "vocab_size": 40, "max_position_embeddings": 30,
         "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 32,
         "decoder_layers": 3, "decoder_attention_heads": 4, "decoder_ffn_dim": 40}


# --- files -----------------------------------------------------------------------------------------

def add_norm(file, stem, size):
    file.add(f"{stem}.weight", 1 + file.rng.uniform(-0.2, 0.2, size))
    file.add(f"{stem}.bias", file.rng.uniform(-0.2, 0.2, size))


def add_attention(file, stem, size):
    for role in ("q", "k", "v", "out"):
        file.linear(f"{stem}.{role}_proj", size, size)
    add_norm(file, f"{stem}_layer_norm", size)


def add_stack(file, name, kin, config):
    size, hidden = config["d_model"], config[f"{name}_ffn_dim"]
    stem = f"model.{name}"
    for i in range(config[f"{name}_layers"]):
        layer = f"{stem}.layers.{i}"
        add_attention(file, f"{layer}.self_attn", size)
        if name == "decoder":
            add_attention(file, f"{layer}.encoder_attn", size)
        file.linear(f"{layer}.fc1", hidden, size)
        file.linear(f"{layer}.fc2", size, hidden)
        add_norm(file, f"{layer}.final_layer_norm", size)
    if kin.positions == "stored":
        file.normal(f"{stem}.embed_positions.weight", config["max_position_embeddings"] + 2, size)
    if kin.embedded:
        add_norm(file, f"{stem}.layernorm_embedding", size)
    if kin.pre:
        add_norm(file, f"{stem}.layer_norm", size)


def make(model_type, seed=1, apart=0, **changes):
    """(file, config.json) of a drawn model. `apart`: its decoder has a table of so many tokens."""
    kin, file = KIN[model_type], File(seed)
    config = {**SIZES, "model_type": model_type, "activation_function": kin.activation,
              "scale_embedding": True, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2,
              "decoder_start_token_id": 2, **changes}
    size, tokens = config["d_model"], config["vocab_size"]
    if apart:
        config.update(share_encoder_decoder_embeddings=False, decoder_vocab_size=apart)
        file.normal("model.encoder.embed_tokens.weight", tokens, size, size=size ** -0.5)
        file.normal("model.decoder.embed_tokens.weight", apart, size, size=size ** -0.5)
    else:
        file.normal("model.shared.weight", tokens, size, size=size ** -0.5)
    for name in ("encoder", "decoder"):
        add_stack(file, name, kin, config)
    if kin.biased:
        file.normal("final_logits_bias", 1, apart or tokens)
    return file, config


# --- what they compute -----------------------------------------------------------------------------

def activate(name, x):
    if name == "gelu":
        return x * np.array([0.5 * (1 + math.erf(one / math.sqrt(2))) for one in x.flat]).reshape(x.shape)
    return np.maximum(x, 0) if name == "relu" else x / (1 + np.exp(-x))


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def sinusoids(kind, positions, size):
    half = size // 2
    steps = np.arange(half) / (half - 1 if kind == "wide" else half)
    angles = np.asarray(positions)[:, None] * 10000.0 ** -steps
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


class Pair:
    """A whole model in float64."""

    def __init__(self, file, config):
        self.get, self.has = file.get, file.tensors.__contains__
        self.config, self.kin = config, KIN[config["model_type"]]

    def linear(self, stem, x):
        return x @ self.get(f"{stem}.weight").T + self.get(f"{stem}.bias")

    def norm(self, stem, x):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return x * self.get(f"{stem}.weight") + self.get(f"{stem}.bias")

    def table(self, name):
        own = f"model.{name}.embed_tokens.weight"
        return self.get(own if self.has(own) else "model.shared.weight")

    def embed(self, name, tokens):
        size = self.config["d_model"]
        scale = math.sqrt(size) if self.config["scale_embedding"] else 1
        rows = self.table(name)[tokens] * scale
        positions = self.kin.first + np.arange(len(tokens))
        if self.kin.positions == "stored":
            rows = rows + self.get(f"model.{name}.embed_positions.weight")[positions]
        else:
            rows = rows + sinusoids(self.kin.positions, positions, size)
        return self.norm(f"model.{name}.layernorm_embedding", rows) if self.kin.embedded else rows

    def attend(self, name, stem, queries, keys, causal):
        heads = self.config[f"{name}_attention_heads"]
        q, k, v = (self.linear(f"{stem}.{role}_proj", x).reshape(len(x), heads, -1).swapaxes(0, 1)
                   for role, x in (("q", queries), ("k", keys), ("v", keys)))
        scores = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])
        if causal:
            scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
        context = (softmax(scores) @ v).swapaxes(0, 1).reshape(len(queries), -1)
        return self.linear(f"{stem}.out_proj", context)

    def branch(self, norm, x, function):
        """A residual branch; its norm stands before it, or behind the sum."""
        if self.kin.pre:
            return x + function(self.norm(norm, x))
        return self.norm(norm, x + function(x))

    def stack(self, name, tokens, memory=None):
        x = self.embed(name, tokens)
        for i in range(self.config[f"{name}_layers"]):
            layer = f"model.{name}.layers.{i}"

            def feed_forward(rows, layer=layer):
                inner = activate(self.config["activation_function"], self.linear(f"{layer}.fc1", rows))
                return self.linear(f"{layer}.fc2", inner)

            def to_itself(rows, layer=layer):
                return self.attend(name, f"{layer}.self_attn", rows, rows, memory is not None)

            def across(rows, layer=layer):
                return self.attend(name, f"{layer}.encoder_attn", rows, memory, False)
            x = self.branch(f"{layer}.self_attn_layer_norm", x, to_itself)
            if memory is not None:
                x = self.branch(f"{layer}.encoder_attn_layer_norm", x, across)
            x = self.branch(f"{layer}.final_layer_norm", x, feed_forward)
        return self.norm(f"model.{name}.layer_norm", x) if self.kin.pre else x

    def encode(self, source):
        return self.stack("encoder", source)

    def score(self, source, targets):
        """The log probability of each target, given the source and those before it."""
        begin = self.config["decoder_start_token_id"]
        rows = self.stack("decoder", [begin, *targets[:-1]], self.encode(source))
        logits = rows @ self.table("decoder").T
        if self.has("final_logits_bias"):
            logits = logits + self.get("final_logits_bias")[0]
        logits = logits - logits.max(-1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return logs[np.arange(len(targets)), targets]
