"""gpt2_make: writes the folder of a GPT-2 of random weights: gpt2_make.py FOLDER (python3-numpy).

Beside config.json and model.safetensors there is the same model for llama.cpp, with matrices of
float32, of float16 and of bytes: model-f32.gguf, model-f16.gguf and model-q8_0.gguf. Weights are
large enough for tokens to vary.
"""
import json
import os
import struct
import sys

import numpy

from gpt2 import EPSILON, HEADS, LAYERS, NAME, POSITIONS, VOCABULARY, WIDTH
from tensors import write_safetensors

# A layer's parts: the name in the folder, that in the other file, and the shape [in, out] of its matrix.
PARTS = [("ln_1", "attn_norm", None), ("attn.c_attn", "attn_qkv", (WIDTH, 3 * WIDTH)),
         ("attn.c_proj", "attn_output", (WIDTH, WIDTH)), ("ln_2", "ffn_norm", None),
         ("mlp.c_fc", "ffn_up", (WIDTH, 4 * WIDTH)), ("mlp.c_proj", "ffn_down", (4 * WIDTH, WIDTH))]
CONFIGURATION = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
    "layer_norm_epsilon": EPSILON, "model_type": "gpt2", "n_ctx": POSITIONS, "n_embd": WIDTH,
    "n_head": HEADS, "n_layer": LAYERS, "n_positions": POSITIONS, "tie_word_embeddings": True,
    "vocab_size": VOCABULARY}


def draw():
    """{name in the folder: its numbers}"""
    rng = numpy.random.default_rng(1)

    def noise(scale, *shape):
        return rng.standard_normal(shape, dtype=numpy.float32) * numpy.float32(scale)
    tensors = {"wte.weight": noise(0.6, VOCABULARY, WIDTH), "wpe.weight": noise(0.6, POSITIONS, WIDTH)}
    places = [(f"h.{i}.{ours}", shape) for i in range(LAYERS) for ours, _, shape in PARTS]
    for place, shape in places + [("ln_f", None)]:
        tensors[f"{place}.weight"] = noise(0.06, *shape) if shape else 1 + noise(0.05, WIDTH)
        tensors[f"{place}.bias"] = noise(0.05, shape[1] if shape else WIDTH)
    return tensors


# --- GGUF, version 3: words, then where each tensor lies, then their numbers at multiples of 32 ---

ALIGNMENT = 32


def q8_0(numbers):
    """Blocks of 32 numbers: a scale, as float16, and 32 bytes."""
    blocks = numpy.ascontiguousarray(numbers).reshape(-1, 32)
    scale = numpy.abs(blocks).max(axis=1, keepdims=True) / numpy.float32(127)
    made = numpy.empty(len(blocks), dtype=[("scale", "<f2"), ("bytes", "i1", 32)])
    made["scale"] = scale[:, 0]
    made["bytes"] = numpy.rint(blocks / numpy.where(scale > 0, scale, 1))
    return made


# How matrices are kept: the number of the form in the file, and the numbers in it.
FORMS = {"f32": (0, lambda numbers: numbers.astype("<f4")),
         "f16": (1, lambda numbers: numbers.astype("<f2")), "q8_0": (8, q8_0)}


def text_of(value):
    return struct.pack("<Q", len(value)) + value.encode()


def word_of(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + text_of(value)
    return struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)


def other_names(tensors):
    """The same by the names of llama.cpp, matrices [out, in]. The output is the table of tokens."""
    yield "token_embd.weight", tensors["wte.weight"]
    yield "position_embd.weight", tensors["wpe.weight"]
    places = [(f"blk.{i}.{theirs}", f"h.{i}.{ours}") for i in range(LAYERS) for ours, theirs, _ in PARTS]
    for theirs, ours in places + [("output_norm", "ln_f")]:
        yield f"{theirs}.weight", tensors[f"{ours}.weight"].T
        yield f"{theirs}.bias", tensors[f"{ours}.bias"]


def write_gguf(path, tensors, form):
    words = {"general.architecture": "gpt2", "general.name": NAME, "gpt2.context_length": POSITIONS,
             "gpt2.embedding_length": WIDTH, "gpt2.feed_forward_length": 4 * WIDTH,
             "gpt2.block_count": LAYERS, "gpt2.attention.head_count": HEADS,
             "gpt2.attention.layer_norm_epsilon": EPSILON, "gpt2.vocab_size": VOCABULARY,
             "tokenizer.ggml.model": "no_vocab"}
    table, data, at = [], [], 0
    for name, numbers in other_names(tensors):
        matrix = numbers.ndim == 2 and name != "position_embd.weight"
        kind, kept = FORMS[form if matrix else "f32"]
        raw = kept(numbers).tobytes()
        shape = numbers.shape[::-1]
        table.append(text_of(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, at))
        data.append(raw + bytes(-len(raw) % ALIGNMENT))
        at += len(data[-1])
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(table), len(words)))
        for name, value in words.items():
            file.write(text_of(name) + word_of(value))
        file.write(b"".join(table))
        file.write(bytes(-file.tell() % ALIGNMENT))
        for raw in data:
            file.write(raw)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    tensors = draw()
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    for form in FORMS:
        write_gguf(os.path.join(folder, f"model-{form}.gguf"), tensors, form)
    config = os.path.join(folder, "config.json")
    with open(config + ".new", "w", encoding="utf-8") as file:
        json.dump(CONFIGURATION, file, indent=2)
    os.replace(config + ".new", config)


main(sys.argv[1])
