"""tensors: a safetensors file of numpy's arrays of float32."""
import json
import struct


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, numbers in tensors.items():
        header[name] = {"dtype": "F32", "shape": numbers.shape, "data_offsets": [at, at + numbers.nbytes]}
        at += numbers.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for numbers in tensors.values():
            file.write(numbers.tobytes())
