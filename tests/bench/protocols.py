"""protocols: one request in each of its forms, beside the others."""
import array
import base64
import itertools
import json
import os
import struct

import bodies
from large import CLIENTS, SHAPE, cpu_per_request, program
from load import wrk
from support import Server, flat
from table import line

NATIVE, V2 = "/v1/models/base/attention", "/v2/models/base/infer"
TENSORS = ("queries", "keys", "values")
ROUNDS = 4


class Form:
    """A body and how it is sent."""

    def __init__(self, folder, name, body, path, headers):
        self.name, self.body, self.path, self.headers = name, body, path, headers
        self.file = os.path.join(folder, name)
        with open(self.file, "wb") as file:
            file.write(body)
        self.rate = 0


def safetensors(arrays, lens):
    parts = [(name, "F32", shape, raw) for name, (shape, raw) in arrays.items()]
    parts.append(("valid_lens", "I32", [len(lens)], array.array("i", lens).tobytes()))
    header, at = {}, 0
    for name, dtype, shape, raw in parts:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(raw for *_, raw in parts)


def v2(arrays, lens):
    """The body, and how many bytes of it are JSON."""
    inputs = [{"name": name, "datatype": "FP32", "shape": shape,
               "parameters": {"binary_data_size": len(raw)}}
              for name, (shape, raw) in arrays.items()]
    inputs.append({"name": "valid_lens", "datatype": "INT32", "shape": [len(lens)], "data": lens})
    text = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    return text + b"".join(raw for _, raw in arrays.values()), len(text)


def in_base64(arrays, lens):
    fields = {name: {"dtype": "F32", "shape": shape, "base64": base64.b64encode(raw).decode()}
              for name, (shape, raw) in arrays.items()}
    return json.dumps(dict(fields, valid_lens=lens, encoding_format="base64")).encode()


def forms_of(folder):
    """The large request as text, with the same numbers in every other form."""
    text = b"".join(bodies.parts(*SHAPE))
    request = json.loads(text)
    b, q, k, d = SHAPE
    rows = {"queries": q, "keys": k, "values": k}
    arrays = {name: ([b, rows[name], d], array.array("f", flat(request[name])).tobytes())
              for name in TENSORS}
    lens = request["valid_lens"]
    binary, size = v2(arrays, lens)
    json_type, octets = "application/json", "application/octet-stream"
    return [Form(folder, "JSON", text, NATIVE, {"Content-Type": json_type}),
            Form(folder, "base64", in_base64(arrays, lens), NATIVE, {"Content-Type": json_type}),
            Form(folder, "safetensors", safetensors(arrays, lens), NATIVE,
                 {"Content-Type": "application/x-safetensors"}),
            Form(folder, "v2", binary, V2, {"Content-Type": octets,
                                           "Inference-Header-Content-Length": str(size)})]


def protocols(folder, build):
    all_forms = forms_of(folder)
    text, coded, native, other = all_forms
    server = Server()
    for form, _ in itertools.product(all_forms, range(2)):
        answer = server.request("POST", form.path, form.body, form.headers)
        assert answer.status == 200, (form.name, answer)
    for _ in range(ROUNDS):  # taking turns
        for form in all_forms:
            load = wrk(server.port, form.file, CLIENTS, 2, form.path, headers=form.headers)
            form.rate = max(form.rate, load.rate)
    cost = {form.name: sum(cpu_per_request(server, form.body, path=form.path,
                                           headers=form.headers)) for form in all_forms}
    server.stop()
    layer = program(build, "bench_request", text.file)[1]
    line(f"safetensors of {len(native.body) / 1e6:.1f} MB; JSON of {len(text.body) / 1e6:.1f} MB",
         f"{native.rate:.1f} /s", f"{text.rate:.1f} /s", native.rate / text.rate, ">= 1.3",
         native.rate >= 1.3 * text.rate)
    beyond = cost["safetensors"] - layer
    line("CPU of each beyond the layer; the layer alone, one thread", f"{beyond:.2f} ms",
         f"{layer:.2f} ms", beyond / layer, "<= 0.25", beyond <= 0.25 * layer)
    line("v2 with binary data; safetensors", f"{other.rate:.1f} /s", f"{native.rate:.1f} /s",
         other.rate / native.rate, ">= 0.95", other.rate >= 0.95 * native.rate)
    line(f"base64 in JSON, {len(coded.body) / 1e6:.1f} MB; JSON", f"{coded.rate:.1f} /s",
         f"{text.rate:.1f} /s", coded.rate / text.rate)
    print("    CPU of each: " + ", ".join(f"{name} {ms:.2f} ms" for name, ms in cost.items()))
