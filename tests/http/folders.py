"""folders: models of tests/golden/models with other tensors, settings and words."""
import json
import os
import struct

import numpy

from golden import MODELS
from support import safetensors_bytes


def read_tensors(path):
    """Name -> array; the numbers are F32."""
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    about = json.loads(data[8:start])
    about.pop("__metadata__", None)
    return {name: numpy.frombuffer(data, "<f4", int(numpy.prod(one["shape"])),
                                   start + one["data_offsets"][0]).reshape(one["shape"])
            for name, one in about.items()}


def write_folder(folder, name, words=None, drop=(), config=None, under="", **changes):
    """A model with other tensors, its own ones below a module, other members of config.json, and with these words."""
    os.makedirs(folder)
    tensors = read_tensors(os.path.join(MODELS, name, "model.safetensors"))
    tensors = {under + name: x for name, x in tensors.items() if not any(part in name for part in drop)}
    tensors.update(changes)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(safetensors_bytes({name: (list(x.shape), x.ravel().tolist()) for name, x in tensors.items()}))
    with open(os.path.join(MODELS, name, "config.json"), encoding="utf-8") as file:
        said = {**json.load(file), **(config or {})}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(said, file)
    if words:
        with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(words) + "\n")
    return {"transformer": folder}
