"""bodies: the text of requests, made of normally distributed float32 numbers in their shortest
decimals, as a client's library would write them."""
import itertools
import json
import random
import struct

DISTINCT = 2048  # rows: larger requests repeat them


def shortest(x):
    """The shortest text that reads back as the float32 nearest to x."""
    bits = struct.pack("<f", x)
    for digits in range(6, 10):
        text = f"{struct.unpack('<f', bits)[0]:.{digits}g}"
        if struct.pack("<f", float(text)) == bits:
            break
    return text


def rows_of(width, count, seed=0):
    """`count` rows as text."""
    rng = random.Random(seed)
    return ["[" + ",".join(shortest(rng.gauss(0, 1)) for _ in range(width)) + "]"
            for _ in range(count)]


def parts(b, q, k, d, names=("queries", "keys", "values"), lengths=True):
    """A request of b items, an item's rows at a time; valid_lens from k/2 to k, or none."""
    row = itertools.cycle(rows_of(d, min(DISTINCT, b * (q + 2 * k))))
    for name in names:
        yield f'{"{" if name == names[0] else ","}"{name}":['.encode()
        for item in range(b):
            rows = itertools.islice(row, q if name == "queries" else k)
            yield (("," if item else "") + "[" + ",".join(rows) + "]").encode()
        yield b"]"
    rng = random.Random(0)
    lens = [rng.randint(k // 2, k) for _ in range(b)]
    yield f',"valid_lens":{json.dumps(lens)}}}'.encode() if lengths else b"}"


def write(path, *shape, **options):
    """The request as a file; returns its path."""
    with open(path, "wb") as file:
        file.writelines(parts(*shape, **options))
    return path
