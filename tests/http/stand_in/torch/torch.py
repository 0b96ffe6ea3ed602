"""torch: as much of PyTorch as the commands of the documentation use, in numpy; for where there is no PyTorch.

MultiheadAttention has the names and shapes of torch.nn.MultiheadAttention with `batch_first`, and
random weights."""
import os
import sys
import types

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import torch_file  # of tests/http

RANDOM = np.random.default_rng(0)


class Tensor(np.ndarray):
    def numpy(self):
        return np.asarray(self)

    def detach(self):
        return self

    def triu(self, diagonal):
        return tensor(np.triu(self, diagonal))

    def bool(self):
        return self.astype(bool)


def tensor(x):
    return np.asarray(x).view(Tensor)


def randn(*shape):
    return tensor(RANDOM.standard_normal(shape, dtype=np.float32))


def save(state, path):
    torch_file.write_arrays(path, state)


def ones(*shape):
    return tensor(np.ones(shape, np.float32))


class MultiheadAttention:
    def __init__(self, embed_dim, num_heads, batch_first=False):
        assert batch_first, "this stand-in knows no other layout"
        self.heads = num_heads
        self.state = {"in_proj_weight": randn(3 * embed_dim, embed_dim) / np.float32(embed_dim ** 0.5),
                      "in_proj_bias": randn(3 * embed_dim),
                      "out_proj.weight": randn(embed_dim, embed_dim) / np.float32(embed_dim ** 0.5),
                      "out_proj.bias": randn(embed_dim)}

    def state_dict(self):
        return self.state

    def split(self, x, weight, bias):
        """[b][h][n][d] of [b][n][h * d]"""
        y = x @ weight.T + bias
        return y.reshape(*y.shape[:2], self.heads, -1).transpose(0, 2, 1, 3)

    def __call__(self, query, key, value, attn_mask):
        """Outputs and None; `attn_mask` is true where a key is hidden."""
        weights, biases = np.split(self.state["in_proj_weight"], 3), np.split(self.state["in_proj_bias"], 3)
        q, k, v = (self.split(x.astype(np.float64), w, b) for x, w, b in zip((query, key, value), weights, biases))
        scores = np.where(attn_mask, -np.inf, q @ k.transpose(0, 1, 3, 2) / q.shape[-1] ** 0.5)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        context = (shares / shares.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(query.shape)
        return tensor(context @ self.state["out_proj.weight"].T + self.state["out_proj.bias"]), None


nn = types.SimpleNamespace(MultiheadAttention=MultiheadAttention)
