"""translator_make: writes the folder of a translator: translator_make.py FOLDER SHAPE (python3-numpy).

Its tensors have the names of PyTorch's nn.Transformer. So that tokens vary, attention is sharp, what is added to a row is
small beside it, and the last norm's factors have both signs: else the tied output says again and again what came in.
"""
import json
import os
import sys

import numpy

from tensors import write_safetensors
from translator import BEGIN, END, EPSILON, FORWARD, HEADS, LAYERS, PAD, SHAPES, WIDTH

CONFIGURATION = {
    "model_type": "transformer", "heads": HEADS, "norm": "post", "norm_eps": EPSILON, "activation": "relu",
    "positions": "sinusoid", "scale_embedding": True, "tie_output": True, "begin": BEGIN, "end": END, "pad": PAD}


def draw(tokens):
    """{name: its numbers}"""
    rng = numpy.random.default_rng(1)
    tensors = {}

    def noise(scale, *shape):
        return rng.standard_normal(shape, dtype=numpy.float32) * numpy.float32(scale)

    def matrix(name, out, size, part=".", scale=1.0):
        tensors[f"{name}{part}weight"] = noise(scale * size ** -0.5, out, size)
        tensors[f"{name}{part}bias"] = noise(0.05, out)

    def norm(name, middle=1.0, spread=0.05):
        tensors[f"{name}.weight"] = middle + noise(spread, WIDTH)
        tensors[f"{name}.bias"] = noise(0.05, WIDTH)

    tensors["embedding.weight"] = noise(0.1, tokens, WIDTH)
    for half, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "multihead_attn"])):
        for i in range(LAYERS):
            layer = f"{half}.layers.{i}"
            for attention in attentions:
                matrix(f"{layer}.{attention}", 3 * WIDTH, WIDTH, ".in_proj_")
                queries_keys, values = numpy.split(tensors[f"{layer}.{attention}.in_proj_weight"], [2 * WIDTH])
                queries_keys *= 2
                values /= 2
                matrix(f"{layer}.{attention}.out_proj", WIDTH, WIDTH)
            matrix(f"{layer}.linear1", FORWARD, WIDTH)
            matrix(f"{layer}.linear2", WIDTH, FORWARD, scale=0.2)
            for number in range(1, len(attentions) + 2):
                norm(f"{layer}.norm{number}")
    norm("encoder.norm")
    norm("decoder.norm", 0.0, 1.0)
    return tensors


def main(folder, shape):
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), draw(SHAPES[shape]))
    config = os.path.join(folder, "config.json")
    with open(config + ".new", "w", encoding="utf-8") as file:
        json.dump(CONFIGURATION, file, indent=2)
    os.replace(config + ".new", config)


main(*sys.argv[1:])
