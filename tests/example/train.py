#!/usr/bin/env python3
"""train: makes the weights of the two examples anew: heads.safetensors and pointer.safetensors.

It needs numpy and about a minute. The same numpy on the same machine writes the same files; the
server, the examples and the tests need only these.
"""
import json
import os
import random
import struct

import numpy as np

from ring import PLACES, TARGETS, WIDTH, ring

HERE = os.path.dirname(os.path.abspath(__file__))


def write(name, weights):
    """A safetensors file beside this script."""
    header, data = {}, b""
    for role, matrix in weights.items():
        raw = matrix.astype("<f4").tobytes()
        header[role] = {"dtype": "F32", "shape": list(matrix.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(HERE, name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def train(weights, gradients, steps, rate, decay):
    """Adam with decoupled weight decay: `gradients(weights)` is asked once a step. The rate rises
    for 100 steps, then falls along half a cosine."""
    mean = {role: np.zeros_like(w) for role, w in weights.items()}
    square = {role: np.zeros_like(w) for role, w in weights.items()}
    for t in range(1, steps + 1):
        now = rate * min(1, t / 100) * (0.505 + 0.495 * np.cos(np.pi * t / steps))
        for role, gradient in gradients(weights).items():
            mean[role] += 0.1 * (gradient - mean[role])
            square[role] += 0.01 * (gradient ** 2 - square[role])
            step = mean[role] / (1 - 0.9 ** t) / (np.sqrt(square[role] / (1 - 0.99 ** t)) + 1e-8)
            weights[role] -= (now * (step + decay * weights[role])).astype(np.float32)


def softmax(scores):
    """Over the last axis."""
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# --- a layer with more heads than its task needs -------------------------------------------------

HEADS = 8
SIZE = WIDTH // HEADS  # of a head


def rings(seed, count):
    """(tokens [count, PLACES, WIDTH], targets [count, PLACES, TARGETS])"""
    rng = random.Random(seed)
    tokens, targets = zip(*(ring(rng) for _ in range(count)))
    return np.array(tokens, np.float32), np.array(targets, np.float32)


def split(rows):
    return rows.reshape(len(rows), PLACES, HEADS, SIZE).transpose(0, 2, 1, 3)


def join(heads):
    return heads.transpose(0, 2, 1, 3).reshape(len(heads), PLACES, WIDTH)


def forward(w, x, kept):
    """The outputs, and what backward needs; kept [b, HEADS] is 1 for a head and 0 for none."""
    q, k, v = (split(x @ w[role + ".weight"].T) for role in ("query", "key", "value"))
    a = softmax(q @ k.swapaxes(2, 3) / np.float32(np.sqrt(SIZE)))
    context = join(a @ v * kept[:, :, None, None])
    return context @ w["output.weight"].T, (q, k, v, a, context)


def backward(w, x, kept, saved, dy):
    """The gradients of the weights from that of the outputs."""
    q, k, v, a, context = saved

    def product(left, right):
        return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])

    dc = split(dy @ w["output.weight"]) * kept[:, :, None, None]
    da = dc @ v.swapaxes(2, 3)
    ds = a * (da - (da * a).sum(-1, keepdims=True)) / np.float32(np.sqrt(SIZE))
    return {"query.weight": product(join(ds @ k), x),
            "key.weight": product(join(ds.swapaxes(2, 3) @ q), x),
            "value.weight": product(join(a.swapaxes(2, 3) @ dc), x),
            "output.weight": product(dy, context)}


def train_heads():
    rng = np.random.default_rng(1)
    tokens, targets = rings(1, 1024)
    order = rng.permutation(HEADS)
    weights = {role + ".weight": (rng.uniform(-1, 1, (rows, WIDTH)) * np.sqrt(3 / WIDTH))
               .astype(np.float32)
               for role, rows in (("query", WIDTH), ("key", WIDTH), ("value", WIDTH),
                                  ("output", TARGETS))}

    def gradients(w):
        """In three rings of ten only the first heads of the order are there, at random how many:
        so the first learn what matters most, and the last to be done without."""
        some = rng.integers(0, len(tokens), 16)
        first = np.where(rng.random(16) < 0.3, rng.integers(1, HEADS + 1, 16), HEADS)
        kept = (order < first[:, None]).astype(np.float32)
        outputs, saved = forward(w, tokens[some], kept)
        dy = 2 * (outputs - targets[some]) / outputs.size * TARGETS
        return backward(w, tokens[some], kept, saved, dy)

    train(weights, gradients, steps=2000, rate=0.005, decay=0.05)
    write("heads.safetensors", weights)
    tokens, targets = rings(2, 16)
    outputs, _ = forward(weights, tokens, np.ones((16, HEADS), np.float32))
    print(f"heads: loss {((outputs - targets) ** 2).mean():.4f} on rings that it has not seen")


# --- a pointer to the nearest point --------------------------------------------------------------

POINTS = 16
HIDDEN = 32


def point(w, here, keys):
    """(scores [b, k], hidden [b, k, HIDDEN], queries [b, 3]) of the keys [b, k, 2]."""
    queries = np.concatenate([here, np.ones((len(here), 1), np.float32)], 1)
    hidden = np.tanh((queries @ w["score.query"].T)[:, None] + keys @ w["score.key"].T)
    return hidden @ w["score.vector"], hidden, queries


def train_pointer():
    rng = np.random.default_rng(1)
    weights = {"score.query": rng.normal(0, 2, (HIDDEN, 3)),
               "score.key": rng.normal(0, 2, (HIDDEN, 2)),
               "score.vector": rng.normal(0, 1 / np.sqrt(HIDDEN), HIDDEN)}
    weights = {role: w.astype(np.float32) for role, w in weights.items()}

    def gradients(w):
        """Of the cross entropy with the nearest point, among few points or many."""
        sets = rng.random((256, POINTS, 2)).astype(np.float32)
        here, keys = sets[:, 0], sets[:, 1:]
        hidden_key = np.arange(POINTS - 1) >= rng.integers(2, POINTS, (256, 1))
        distance = ((keys - here[:, None]) ** 2).sum(2) + 9 * hidden_key
        scores, hidden, queries = point(w, here, keys)
        ds = softmax(np.where(hidden_key, np.float32(-1e30), scores))
        ds[np.arange(256), distance.argmin(1)] -= 1
        ds /= 256
        dh = ds[:, :, None] * w["score.vector"] * (1 - hidden ** 2)
        return {"score.query": dh.sum(1).T @ queries,
                "score.key": dh.reshape(-1, HIDDEN).T @ keys.reshape(-1, 2),
                "score.vector": (ds[:, :, None] * hidden).sum((0, 1))}

    train(weights, gradients, steps=3000, rate=0.02, decay=0)
    write("pointer.safetensors", weights)
    right = [step for _ in range(200) for step in walk(weights, rng.random((12, 2)))]
    print(f"pointer: {100 * np.mean(right):.1f} % of {len(right)} steps through sets of 12 points "
          "go to the nearest one")


def walk(weights, points):
    """For each step of a walk through the points, whether it goes to the nearest one left."""
    points = points.astype(np.float32)
    here, left, right = 0, list(range(1, len(points))), []
    while left:
        keys = points[left]
        scores, _, _ = point(weights, points[here][None], keys[None])
        chosen = scores[0].argmax()
        right.append(chosen == ((keys - points[here]) ** 2).sum(1).argmin())
        here = left.pop(chosen)
    return right


if __name__ == "__main__":
    train_heads()
    train_pointer()
