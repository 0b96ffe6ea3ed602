"""bert_make: writes the folder of a BERT of random weights: bert_make.py FOLDER (python3-numpy).

The weights have the scale of trained ones; biases and norms differ from 0 and 1, so that one in a
wrong place shows.
"""
import json
import os
import struct
import sys

import numpy

from bert import EPSILON, FORWARD, HEADS, LAYERS, POSITIONS, TYPES, VOCABULARY, WIDTH


def linear(name, out, size):
    return {name + ".weight": [out, size], name + ".bias": [out]}


def norm(name):
    return {name + ".weight": [WIDTH], name + ".bias": [WIDTH]}


def layer(place):
    tensors = {}
    for role in ("self.query", "self.key", "self.value", "output.dense"):
        tensors |= linear(f"{place}attention.{role}", WIDTH, WIDTH)
    tensors |= norm(place + "attention.output.LayerNorm")
    tensors |= linear(place + "intermediate.dense", FORWARD, WIDTH)
    tensors |= linear(place + "output.dense", WIDTH, FORWARD)
    return tensors | norm(place + "output.LayerNorm")


def shapes():
    """{name of a tensor: its shape}, in Hugging Face's names and order."""
    tables = {"word": VOCABULARY, "position": POSITIONS, "token_type": TYPES}
    tensors = {f"embeddings.{table}_embeddings.weight": [rows, WIDTH]
               for table, rows in tables.items()}
    tensors |= norm("embeddings.LayerNorm") | linear("pooler.dense", WIDTH, WIDTH)
    for i in range(LAYERS):
        tensors |= layer(f"encoder.layer.{i}.")
    return dict(sorted(tensors.items()))


def numbers(rng, name, shape):
    drawn = rng.standard_normal(shape, dtype=numpy.float32)
    if name.endswith(".bias"):
        drawn *= 0.05
    elif "LayerNorm" in name:
        drawn *= 0.1
        drawn += 1
    else:
        drawn *= 0.04
    return drawn


def write_safetensors(path):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes().items():
        end = at + 4 * int(numpy.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    rng = numpy.random.default_rng(1)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes().items():
            file.write(numbers(rng, name, shape).data)


def read_safetensors(path):
    """{name: its numbers}, as they lie in the file."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    data = numpy.memmap(path, dtype=numpy.float32, mode="r", offset=8 + size)
    header.pop("__metadata__", None)
    return {name: data[slice(*(at // 4 for at in entry["data_offsets"]))].reshape(entry["shape"])
            for name, entry in header.items()}


CONFIGURATION = {
    "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1,
    "classifier_dropout": None, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": WIDTH, "initializer_range": 0.02, "intermediate_size": FORWARD,
    "layer_norm_eps": EPSILON, "max_position_embeddings": POSITIONS, "model_type": "bert",
    "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "pad_token_id": 0,
    "position_embedding_type": "absolute", "torch_dtype": "float32",
    "transformers_version": "4.40.0", "type_vocab_size": TYPES, "use_cache": True,
    "vocab_size": VOCABULARY}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"))
    config = os.path.join(folder, "config.json")
    with open(config + ".new", "w", encoding="utf-8") as file:
        json.dump(CONFIGURATION, file, indent=2)
    os.replace(config + ".new", config)


if __name__ == "__main__":
    main(sys.argv[1])
