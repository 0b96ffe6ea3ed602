"""modules: attention as the families' own code computes it, in numpy's float64.

Written from the models' source (transformers' modeling_*.py, torch's multi_head_attention_forward,
the d2l book), each module in the words of its family: whole matrices of scores, additive masks,
Conv1D, repeat_kv, rotate_half, relative_position_bucket. Nothing here is shared with the program
or with oracle.py.

A module is made from a function that gives tensors by name, and is called with one item:
hidden states [q, size], the states that keys (and values) are made of [k, size], `mask` [q, k] or
[heads, q, k], which is added to the scores and is the least of all numbers where a key is hidden,
and `past`: how many positions stand before the first query, as with a cache of keys. It returns the
outputs [q, size] and the weights [heads, q, k]. roles() are the layer's matrices as [out, in] with
their biases: query, key, value, output, and what else it has.
"""
import math

import numpy as np

HIDDEN = np.finfo(np.float64).min  # torch.finfo(dtype).min


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def linear(x, weight, bias=None):
    """torch.nn.functional.linear."""
    y = x @ weight.T
    return y if bias is None else y + bias


def split_heads(x, heads):
    """[n, heads * d] as [heads, n, d]."""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def merge_heads(x):
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def probabilities(scores, mask):
    """Softmax under an additive mask, as all of them do it; a row that sees nothing is zero (here
    the families' own code would give the mean of what it must not look at)."""
    return softmax(scores + mask) * (mask > HIDDEN / 2).any(axis=-1, keepdims=True)


def masked_heads(weights, head_mask):
    """BertSelfAttention: attention_probs = attention_probs * head_mask."""
    return weights if head_mask is None else weights * np.asarray(head_mask)[:, None, None]


class Module:
    """What the tests ask of all of them."""
    causal = False
    kv_heads = None  # as many as heads

    def roles(self):
        raise NotImplementedError

    def sizes(self):
        """What the service says of the layer."""
        matrices = [weight for weight, _ in self.roles()]
        query, key, value, output = matrices[:4]
        return {"heads": self.heads, "kv_heads": self.kv_heads or self.heads,
                "query_size": query.shape[1], "key_size": key.shape[1],
                "value_size": value.shape[1], "hidden": query.shape[0],
                "output_size": output.shape[0], "causal": self.causal,
                "parameters": sum(w.size + (0 if b is None else b.size)
                                  for w, b in self.roles())}


class Bert(Module):
    """BertSelfAttention and the dense of BertSelfOutput; the same in RoBERTa and ViT."""

    def __init__(self, get, heads, attention, output):
        self.heads = heads
        self.query, self.key, self.value = (
            (get(f"{attention}.{role}.weight"), get(f"{attention}.{role}.bias"))
            for role in ("query", "key", "value"))
        self.dense = get(f"{output}.dense.weight"), get(f"{output}.dense.bias")

    def roles(self):
        return [self.query, self.key, self.value, self.dense]

    def __call__(self, hidden, states, values, mask, past=0, head_mask=None):
        query = split_heads(linear(hidden, *self.query), self.heads)
        key = split_heads(linear(states, *self.key), self.heads)
        value = split_heads(linear(values, *self.value), self.heads)
        scores = query @ key.transpose(0, 2, 1)
        scores = scores / math.sqrt(query.shape[-1])
        probs = probabilities(scores, mask)
        context = masked_heads(probs, head_mask) @ value
        return linear(merge_heads(context), *self.dense), probs


class Clip(Module):
    """CLIPAttention. Its text model makes a causal mask."""

    def __init__(self, get, heads, stem, causal):
        self.heads, self.causal = heads, causal
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            (get(f"{stem}.{role}_proj.weight"), get(f"{stem}.{role}_proj.bias"))
            for role in ("q", "k", "v", "out"))

    def roles(self):
        return [self.q_proj, self.k_proj, self.v_proj, self.out_proj]

    def __call__(self, hidden, states, values, mask, past=0, head_mask=None):
        head_dim = len(self.q_proj[0]) // self.heads
        queries = split_heads(linear(hidden, *self.q_proj), self.heads)
        keys = split_heads(linear(states, *self.k_proj), self.heads)
        values = split_heads(linear(values, *self.v_proj), self.heads)
        weights = np.einsum("hqd,hkd->hqk", queries, keys) * head_dim ** -0.5
        weights = probabilities(weights, mask)
        context = np.einsum("hqk,hkd->hqd", masked_heads(weights, head_mask), values)
        return linear(merge_heads(context), *self.out_proj), weights


class Gpt2(Module):
    """GPT2Attention: Conv1D keeps its weight as [in, out]."""
    causal = True

    def __init__(self, get, heads, stem):
        self.heads = heads
        self.c_attn = get(f"{stem}.c_attn.weight"), get(f"{stem}.c_attn.bias")
        self.c_proj = get(f"{stem}.c_proj.weight"), get(f"{stem}.c_proj.bias")

    @staticmethod
    def conv1d(x, weight, bias):
        return bias + x @ weight  # torch.addmm

    def roles(self):
        weights = np.split(self.c_attn[0], 3, axis=1)
        biases = np.split(self.c_attn[1], 3)
        return [(w.T, b) for w, b in zip(weights, biases)] + [(self.c_proj[0].T, self.c_proj[1])]

    def __call__(self, hidden, states, values, mask, past=0, head_mask=None):
        query = np.split(self.conv1d(hidden, *self.c_attn), 3, axis=1)[0]
        key = np.split(self.conv1d(states, *self.c_attn), 3, axis=1)[1]
        value = np.split(self.conv1d(values, *self.c_attn), 3, axis=1)[2]
        query, key, value = (split_heads(x, self.heads) for x in (query, key, value))
        weights = np.matmul(query, key.swapaxes(-1, -2)) / value.shape[-1] ** 0.5
        weights = probabilities(weights, mask)
        context = np.matmul(masked_heads(weights, head_mask), value)
        return self.conv1d(merge_heads(context), *self.c_proj), weights


class T5(Module):
    """T5Attention: no biases, no scale, and where it has a table, T5's relative positions."""

    def __init__(self, get, heads, stem, table=None, bidirectional=True, causal=False,
                 max_distance=128):
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.o = (get(f"{stem}.{role}.weight") for role in "qkvo")
        self.table = None if table is None else get(table)
        self.bidirectional, self.max_distance = bidirectional, max_distance

    def roles(self):
        named = [self.q, self.k, self.v, self.o]
        return [(w, None) for w in named + ([] if self.table is None else [self.table])]

    @staticmethod
    def relative_position_bucket(relative_position, bidirectional, num_buckets, max_distance):
        relative_buckets = 0
        if bidirectional:
            num_buckets //= 2
            relative_buckets = (relative_position > 0).astype(np.int64) * num_buckets
            relative_position = np.abs(relative_position)
        else:
            relative_position = -np.minimum(relative_position, 0)
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        large = np.maximum(relative_position, 1).astype(np.float32)  # log(0) is not looked at
        relative_position_if_large = max_exact + (
            np.log(large / np.float32(max_exact)) / np.float32(math.log(max_distance / max_exact))
            * np.float32(num_buckets - max_exact)).astype(np.int64)
        relative_position_if_large = np.minimum(relative_position_if_large, num_buckets - 1)
        return relative_buckets + np.where(is_small, relative_position, relative_position_if_large)

    def compute_bias(self, query_length, key_length, past):
        context_position = past + np.arange(query_length)[:, None]
        memory_position = np.arange(key_length)[None, :]
        bucket = self.relative_position_bucket(memory_position - context_position,
                                               self.bidirectional, len(self.table),
                                               self.max_distance)
        return self.table[bucket].transpose(2, 0, 1)

    def __call__(self, hidden, states, values, mask, past=0, head_mask=None):
        query_states = split_heads(linear(hidden, self.q), self.heads)
        key_states = split_heads(linear(states, self.k), self.heads)
        value_states = split_heads(linear(values, self.v), self.heads)
        scores = np.matmul(query_states, key_states.transpose(0, 2, 1))
        if self.table is not None:
            scores = scores + self.compute_bias(len(hidden), len(states), past)
        weights = probabilities(scores, mask)
        context = np.matmul(masked_heads(weights, head_mask), value_states)
        return linear(merge_heads(context), self.o), weights


class Llama(Module):
    """LlamaAttention; Qwen2Attention is the same with biases of q, k, v and another base."""
    causal = True

    def __init__(self, get, heads, kv_heads, stem, biases=False, rope_theta=10000.0):
        self.heads, self.kv_heads, self.rope_theta = heads, kv_heads, rope_theta
        self.q_proj, self.k_proj, self.v_proj = (
            (get(f"{stem}.{r}_proj.weight"), get(f"{stem}.{r}_proj.bias") if biases else None)
            for r in "qkv")
        self.o_proj = get(f"{stem}.o_proj.weight"), None

    def roles(self):
        return [self.q_proj, self.k_proj, self.v_proj, self.o_proj]

    def rotary_emb(self, position_ids, dim):
        inv_freq = 1.0 / self.rope_theta ** (np.arange(0, dim, 2) / dim)
        freqs = np.outer(position_ids, inv_freq)
        emb = np.concatenate((freqs, freqs), axis=-1)
        return np.cos(emb), np.sin(emb)

    @staticmethod
    def rotate_half(x):
        x1, x2 = np.split(x, 2, axis=-1)
        return np.concatenate((-x2, x1), axis=-1)

    def apply_rotary_pos_emb(self, x, cos, sin):
        return x * cos + self.rotate_half(x) * sin

    @staticmethod
    def repeat_kv(states, n_rep):
        heads, length, dim = states.shape
        expanded = np.broadcast_to(states[:, None], (heads, n_rep, length, dim))
        return expanded.reshape(heads * n_rep, length, dim)

    def __call__(self, hidden, states, values, mask, past=0, head_mask=None):
        query = split_heads(linear(hidden, *self.q_proj), self.heads)
        key = split_heads(linear(states, *self.k_proj), self.kv_heads)
        value = split_heads(linear(values, *self.v_proj), self.kv_heads)
        dim = query.shape[-1]
        query = self.apply_rotary_pos_emb(query,
                                          *self.rotary_emb(past + np.arange(len(hidden)), dim))
        key = self.apply_rotary_pos_emb(key, *self.rotary_emb(np.arange(len(states)), dim))
        groups = self.heads // self.kv_heads
        key, value = self.repeat_kv(key, groups), self.repeat_kv(value, groups)
        weights = probabilities(query @ key.transpose(0, 2, 1) / math.sqrt(dim), mask)
        context = masked_heads(weights, head_mask) @ value
        return linear(merge_heads(context), *self.o_proj), weights


class Whisper(Module):
    """WhisperAttention: the queries are scaled before the product, k_proj has no bias."""

    def __init__(self, get, heads, stem, causal):
        self.heads, self.causal = heads, causal
        self.q_proj, self.v_proj, self.out_proj = (
            (get(f"{stem}.{role}_proj.weight"), get(f"{stem}.{role}_proj.bias"))
            for role in ("q", "v", "out"))
        self.k_proj = get(f"{stem}.k_proj.weight"), None

    def roles(self):
        return [self.q_proj, self.k_proj, self.v_proj, self.out_proj]

    def __call__(self, hidden, states, values, mask, past=0, head_mask=None):
        scaling = (len(self.q_proj[0]) // self.heads) ** -0.5
        query = split_heads(linear(hidden, *self.q_proj) * scaling, self.heads)
        key = split_heads(linear(states, *self.k_proj), self.heads)
        value = split_heads(linear(values, *self.v_proj), self.heads)
        weights = probabilities(np.matmul(query, key.transpose(0, 2, 1)), mask)
        output = np.matmul(masked_heads(weights, head_mask), value)
        return linear(merge_heads(output), *self.out_proj), weights


class TorchMultihead(Module):
    """torch.nn.functional.multi_head_attention_forward, packed or with matrices of their own."""

    def __init__(self, get, heads, stem, packed=True, bias=True):
        self.heads = heads
        if packed:
            weights = np.array_split(get(f"{stem}in_proj_weight"), 3)
        else:
            weights = [get(f"{stem}{role}_proj_weight") for role in "qkv"]
        biases = np.array_split(get(f"{stem}in_proj_bias"), 3) if bias else [None] * 3
        self.in_proj = list(zip(weights, biases))
        self.out_proj = (get(f"{stem}out_proj.weight"),
                         get(f"{stem}out_proj.bias") if bias else None)

    def roles(self):
        return self.in_proj + [self.out_proj]

    def __call__(self, query, key, value, mask, past=0, head_mask=None):
        q, k, v = (linear(x, *proj) for x, proj in zip((query, key, value), self.in_proj))
        head_dim = q.shape[1] // self.heads
        q, k, v = (x.reshape(len(x), self.heads, head_dim).transpose(1, 0, 2)
                   for x in (q, k, v))
        weights = probabilities((q * math.sqrt(1.0 / head_dim)) @ k.transpose(0, 2, 1), mask)
        output = masked_heads(weights, head_mask) @ v
        output = output.transpose(1, 0, 2).reshape(len(query), -1)
        return linear(output, *self.out_proj), weights


class D2lMultihead(Module):
    """The book's MultiHeadAttention over DotProductAttention."""

    def __init__(self, get, heads, stem, bias=False):
        self.heads = heads
        self.W_q, self.W_k, self.W_v, self.W_o = (
            (get(f"{stem}W_{r}.weight"), get(f"{stem}W_{r}.bias") if bias else None)
            for r in "qkvo")

    def roles(self):
        return [self.W_q, self.W_k, self.W_v, self.W_o]

    def __call__(self, queries, keys, values, mask, past=0, head_mask=None):
        queries, keys, values = (
            x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)  # transpose_qkv
            for x in (linear(queries, *self.W_q), linear(keys, *self.W_k),
                      linear(values, *self.W_v)))
        scores = queries @ keys.swapaxes(1, 2) / math.sqrt(queries.shape[-1])
        weights = probabilities(scores, mask)
        output = masked_heads(weights, head_mask) @ values
        return linear(output.transpose(1, 0, 2).reshape(output.shape[1], -1), *self.W_o), weights


class D2lAdditive(Module):
    """The book's AdditiveAttention: it pools the values as they are."""
    heads = 1

    def __init__(self, get, stem, value_size):
        self.W_q, self.W_k, self.w_v = (get(f"{stem}{r}.weight") for r in ("W_q", "W_k", "w_v"))
        self.value_size = value_size

    def roles(self):
        return [(w, None) for w in (self.W_q, self.W_k, self.w_v)]

    def sizes(self):
        return {"heads": 1, "query_size": self.W_q.shape[1], "key_size": self.W_k.shape[1],
                "value_size": self.value_size, "output_size": self.value_size,
                "score": "additive", "projection": "none"}

    def __call__(self, queries, keys, values, mask, past=0, head_mask=None):
        queries, keys = linear(queries, self.W_q), linear(keys, self.W_k)
        features = np.tanh(queries[:, None, :] + keys[None, :, :])
        scores = linear(features, self.w_v)[..., 0]
        weights = probabilities(scores[None], mask)
        return masked_heads(weights, head_mask)[0] @ values, weights


class Plain(Module):
    """Matrices under their own names, as anybody would write it: a loop over the heads."""

    def __init__(self, get, heads, kv_heads=None, stem="", bias=True):
        self.heads, self.kv_heads = heads, kv_heads or heads
        self.query, self.key, self.value, self.output = (
            (get(f"{stem}{role}.weight"), get(f"{stem}{role}.bias") if bias else None)
            for role in ("query", "key", "value", "output"))

    def roles(self):
        return [self.query, self.key, self.value, self.output]

    def __call__(self, queries, keys, values, mask, past=0, head_mask=None):
        q, k, v = (linear(x, *role) for x, role in
                   ((queries, self.query), (keys, self.key), (values, self.value)))
        d, d_v = q.shape[1] // self.heads, v.shape[1] // self.kv_heads
        contexts, weights = [], []
        for head in range(self.heads):
            own = slice(head * d, (head + 1) * d)
            at = head * self.kv_heads // self.heads
            theirs, value = slice(at * d, (at + 1) * d), slice(at * d_v, (at + 1) * d_v)
            scores = q[:, own] @ k[:, theirs].T / math.sqrt(d)
            weights.append(probabilities(scores, mask if mask.ndim == 2 else mask[head]))
            factor = 1.0 if head_mask is None else head_mask[head]
            contexts.append(factor * weights[-1] @ v[:, value])
        return linear(np.concatenate(contexts, axis=1), *self.output), np.stack(weights)
