"""differences: where answers part: the question, the field and its place, and both values."""
import array
import json
import os
from itertools import zip_longest

import forms
from support import nest

NUMBERS = {"F32": "f", "I32": "i", "I64": "q", "U8": "B"}


def differences(before, after):
    """(way, question, answer, the other's) for each pair that differs."""
    for way in after.answers:
        for pair in zip(before.asked, before.answers.get(way, ()), after.answers[way]):
            if pair[1] != pair[2]:
                yield (way, *pair)


def place(old, new):
    """Where two answers begin to differ, in words."""
    for (was_at, was), (at, now) in zip_longest(parts(old), parts(new), fillvalue=("nothing", "")):
        if was_at != at:
            return f"{at} stands where {was_at} was"
        if was != now:
            return f"{at} is {now[:200]}, was {was[:200]}"
    n = len(os.path.commonprefix([old.body, new.body]))
    return f"byte {n} of the body begins {new.body[n:][:40]!r}, was {old.body[n:][:40]!r}"


def parts(answer):
    """(place, value as text), the status first and the headers last."""
    yield "status", str(answer.status)
    try:
        yield from leaves(read(answer))
    except (ValueError, LookupError, AssertionError):  # some other text
        for n, line in enumerate(answer.body.decode("latin-1").splitlines(), 1):
            yield f"line {n}", line
    for name, value in sorted(answer.headers.items()):
        yield f"header {name}", value


def read(answer):
    """A body as nested objects, numbers of JSON as they are written."""
    headers, body = answer.headers, answer.body
    if "inference-header-content-length" in headers:
        message, arrays = forms.read_v2(headers, body)
        return {"json": message, **{name: array_of("F32", *read) for name, read in arrays.items()}}
    if headers.get("content-type") in ("application/x-safetensors", "application/octet-stream"):
        tensors, metadata = forms.read_safetensors(body)
        return {"metadata": metadata, **{name: array_of(*read) for name, read in tensors.items()}}
    return json.loads(body, parse_float=str, parse_int=str, object_hook=of_base64)


def array_of(dtype, shape, raw):
    return {"dtype": dtype, "shape": shape,
            "numbers": nest(array.array(NUMBERS[dtype], raw).tolist(), shape)}


def of_base64(value):
    if "base64" not in value:
        return value
    return array_of(value.get("dtype", "U8"), [int(n) for n in value["shape"]], forms.read_base64(value)[1])


def leaves(value, path=""):
    children = value.items() if isinstance(value, dict) else \
        enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from leaves(child, f"{path}/{key}")
    if not children:
        yield path or "/", str(value)
