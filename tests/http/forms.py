"""forms: one request in every form that the server takes, and every answer as plain arrays.

A request is the native JSON object. The forms are made here, independently of the program: as
safetensors, as JSON with base64 arrays, and as messages of the Open Inference Protocol v2 in the
way in which its clients (Triton's, KServe's) write them.
"""
import base64
import json
import struct

from support import flat

FLOATS = ("queries", "keys", "values", "bias", "head_mask", "gradients", "embeddings")
INTEGERS = ("valid_lens", "segments", "causal_offset", "tokens", "token_types")
V2_PARAMETERS = ("causal", "causal_offset", "select", "seed", "empty_rows")
PACK = {"F32": "f", "F64": "d", "F16": "e", "I32": "i", "I64": "q", "BOOL": "B", "U8": "B",
        "FP32": "f", "INT32": "i", "INT64": "q"}


def shape_of(x):
    return [len(x)] + (shape_of(x[0]) if x and isinstance(x[0], list) else []) \
        if isinstance(x, list) else []


def pack(dtype, array):
    """As BF16 only what it holds exactly."""
    if dtype == "BF16":
        return b"".join(struct.pack("<f", n)[2:] for n in flat(array))
    numbers = [int(n) if dtype in ("BOOL", "U8") else n for n in flat(array)]
    return struct.pack(f"<{len(numbers)}{PACK[dtype]}", *numbers)


def bits(array):
    """The bytes of a nested list of float32 numbers: what is compared bit for bit."""
    return pack("F32", array)


# --- safetensors -----------------------------------------------------------------------------------

def safetensors(request, floats="F32", integers="I64", flags="BOOL", shapes=None):
    """The request as a safetensors body. `shapes` are those of arrays without numbers."""
    header, data, metadata = {}, b"", {}
    for field, value in request.items():
        dtype = floats if field in FLOATS else flags if field == "mask" else \
            integers if field in INTEGERS else None
        if dtype is None or isinstance(value, (str, dict)):
            metadata[field] = json.dumps(value)
            continue
        raw = pack(dtype, value)
        header[field] = {"dtype": dtype, "shape": (shapes or {}).get(field) or shape_of(value),
                         "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    if metadata:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(body):
    """name -> (dtype, shape, bytes), and the metadata."""
    (size,) = struct.unpack_from("<Q", body)
    header = json.loads(body[8:8 + size])
    metadata = header.pop("__metadata__", {})
    data, used, tensors = body[8 + size:], 0, {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if begin != used:
            raise AssertionError(f"{name} begins at {begin}, not {used}")
        used = end
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
    if used != len(data):
        raise AssertionError(f"{len(data) - used} bytes belong to no tensor")
    return tensors, metadata


# --- base64 ----------------------------------------------------------------------------------------

def base64_array(value, dtype="F32"):
    return {"dtype": dtype, "shape": shape_of(value),
            "base64": base64.b64encode(pack(dtype, value)).decode()}


def base64_fields(request, dtype="F32"):
    """The request with its arrays of floats as base64: one object, or one for each item."""
    def field(x):
        ragged = any(shape_of(part) != shape_of(x[0]) for part in x)
        return [base64_array(part, dtype) for part in x] if ragged else base64_array(x, dtype)
    return {name: field(value) if name in FLOATS and not isinstance(value, dict) else value
            for name, value in request.items()}


def read_base64(value):
    """The (shape, bytes) of an array in an answer, which is one object."""
    return value["shape"], base64.b64decode(value["base64"], validate=True)


# --- the Open Inference Protocol -------------------------------------------------------------------

V2_TYPES = {"queries": "FP32", "keys": "FP32", "values": "FP32", "valid_lens": "INT32",
            "mask": "BOOL"}


def v2(request, binary=(), outputs=None, binary_outputs=None, nested=False, integers="INT32",
       **more):
    """(body, length of its JSON) of the request. `binary` names the inputs whose numbers stand
    behind the JSON; `outputs` the outputs, of which those in `binary_outputs` come back so;
    `more` are further members. The length is None if nothing is binary."""
    inputs, blocks, parameters = [], b"", {}
    for field, value in request.items():
        if field in V2_PARAMETERS:
            parameters[field] = value
            continue
        datatype = integers if field == "valid_lens" else V2_TYPES[field]
        entry = {"name": field, "shape": shape_of(value), "datatype": datatype}
        if field in binary:
            raw = pack(datatype, value)
            entry["parameters"] = {"binary_data_size": len(raw)}
            blocks += raw
        else:
            entry["data"] = value if nested else list(flat(value))
        inputs.append(entry)
    message = {"id": "", "inputs": inputs}
    if outputs is not None:
        message["outputs"] = [
            {"name": name} if binary_outputs is None else
            {"name": name, "parameters": {"binary_data": name in binary_outputs}}
            for name in outputs]
    elif binary_outputs:
        parameters["binary_data_output"] = True
    if parameters:
        message["parameters"] = parameters
    message.update(more)
    text = json.dumps(message, separators=(",", ":")).encode()
    return text + blocks, len(text) if binary else None


def message_v2(inputs, **more):
    """A request of JSON alone; `inputs` by name, each with its datatype and array."""
    return dict({"inputs": [{"name": name, "datatype": kind, "shape": shape_of(array), "data": list(flat(array))}
                            for name, (kind, array) in inputs.items()]}, **more)


def rectangle(array, shape):
    """A ragged nested list with zeros behind what it has."""
    if len(shape) == 1:
        return list(array) + [0] * (shape[0] - len(array))
    empty = [0] if len(shape) == 0 else []
    return [rectangle(array[i] if i < len(array) else empty, shape[1:]) for i in range(shape[0])]


def read_v2(headers, body):
    """(the JSON, name -> (shape, bytes)) of an answer; header names are in lower case."""
    length = headers.get("inference-header-content-length")
    text = body if length is None else body[:int(length)]
    message, blocks = json.loads(text), body[len(text):]
    arrays = {}
    for output in message["outputs"]:
        if output["datatype"] != "FP32":
            raise AssertionError(f"{output['name']} is {output['datatype']}")
        size = output.get("parameters", {}).get("binary_data_size")
        if (size is None) == ("data" not in output):
            raise AssertionError(f"{output['name']} has both data and binary data, or neither")
        raw, blocks = (bits(output["data"]), blocks) if size is None else \
            (blocks[:size], blocks[size:])
        arrays[output["name"]] = (output["shape"], raw)
    if blocks:
        raise AssertionError(f"{len(blocks)} bytes belong to no output")
    return message, arrays
