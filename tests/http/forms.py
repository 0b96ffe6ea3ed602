"""forms: messages of the Open Inference Protocol v2 as its clients (Triton's, KServe's) write them,
and answers of every form as plain arrays: made here, independently of the program."""
import base64
import json
import struct

from support import flat, raw_numbers, shape_of

V2_PARAMETERS = ("causal", "causal_offset", "select", "seed", "empty_rows")
DTYPES = {"FP32": "F32", "INT32": "I32", "INT64": "I64", "BOOL": "BOOL"}


def bits(array):
    """The bytes of a nested list of float32 numbers: what is compared bit for bit."""
    return raw_numbers(array, "F32")


# --- answers of the native form --------------------------------------------------------------------

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


def read_base64(value):
    """The (shape, bytes) of an array in an answer, which is one object."""
    if value["dtype"] != "F32":
        raise AssertionError(f"an array of {value['dtype']}")
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
            raw = raw_numbers(value, DTYPES[datatype])
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
