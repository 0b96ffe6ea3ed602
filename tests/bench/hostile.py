"""hostile: the longest stretch for which a body keeps an I/O thread from its other connections.

Each body goes to a server of its own, which has one I/O thread and says of it, in
attend_io_longest_turn_seconds, how long it was busy between two looks at its sockets. Large bodies,
at the limit of 256 MiB: numbers that must be converted, numbers that must be looked at, arrays
whose end gives most away, and memory that must be given back; and an answer of 100 MB.
"""
import base64
import json
import math
import socket
import struct
import threading

from support import JSON_TYPE, Server
from table import line

ROOM = 240_000_000  # bytes of the array that hurts
PART = 1 << 20
BINARY_TYPE = {"Content-Type": "application/x-safetensors"}
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8, "U8": 1}
WIDTH = 64
MODELS = {"models": {"plain": {"projection": "none", "heads": 1, "query_size": WIDTH}},
          "io_threads": 1, "workers": 1, "memory_budget_bytes": 4 << 30, "max_answer_bytes": 1 << 30,
          "deadline_ms": 300_000}


def repeated(piece, size):
    """`size` bytes of repeated pieces, a part at a time."""
    part = piece * (PART // len(piece))
    for left in range(size, 0, -len(part)):
        yield part[:left]


def safetensors(*tensors):
    """(parts, length) of a body of (name, dtype, shape, piece), whose numbers are repeated pieces;
    the last piece may stand behind them."""
    header, at = {}, 0
    for name, dtype, shape, *_ in tensors:
        size = math.prod(shape) * SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()

    def parts():
        yield struct.pack("<Q", len(text)) + text
        for _, dtype, shape, piece, *last in tensors:
            end = b"".join(last)
            yield from repeated(piece, math.prod(shape) * SIZES[dtype] - len(end))
            yield end

    return parts, 8 + len(text) + at


def floats(dtype, items=None):
    rows = ROOM // SIZES[dtype] // WIDTH
    shape = [items, rows // items, WIDTH] if items else [rows, WIDTH]
    return safetensors(("queries", dtype, shape, b"\x00\x3c" * 4))


def rows_and(name, dtype, piece, *last):
    """A square of numbers beside queries of its side, and a mistake that is found behind both."""
    side = math.isqrt(ROOM // SIZES[dtype])
    return safetensors(("queries", "F32", [side, WIDTH], bytes(4)),
                       (name, dtype, [side, side], piece, *last),
                       ("causal_offset", "I64", [3], bytes(8)))


def lengths():
    count = ROOM // 8
    return safetensors(("queries", "F32", [1, 1, WIDTH], bytes(4)),
                       ("valid_lens", "I64", [1, count], bytes(8)))


def in_base64(dtype, first):
    """The text before its type and shape, or behind them."""
    rows = ROOM * 3 // 4 // SIZES[dtype] // WIDTH // 3 * 3
    text_size = rows * WIDTH * SIZES[dtype] // 3 * 4
    form = f'"dtype":"{dtype}","shape":[{rows},{WIDTH}]'.encode()
    head, tail = (b'{"queries":{"base64":"', b'",' + form + b"}}") if first else \
        (b'{"queries":{' + form + b',"base64":"', b'"}}')

    def parts():
        yield head
        yield from repeated(base64.b64encode(bytes(3 * 256)), text_size)
        yield tail

    return parts, len(head) + text_size + len(tail)


def text(head, piece, tail, count=None):
    count = count or ROOM // len(piece)

    def parts():
        yield head
        yield from repeated(piece, count * len(piece))
        yield tail

    return parts, len(head) + count * len(piece) + len(tail)


def items(count):
    """So many items of one short row."""
    item = b"[[" + b",".join([b"1"] * WIDTH) + b"]]"
    return text(b'{"queries":[', item + b",", item + b"]}", count - 1)


def bodies():
    """name -> (parts, length, headers)."""
    last = ("[" + ",".join(["0.5"] * WIDTH) + "]").encode()
    row, one = last + b",", b'{"queries":[[' + last + b"]]"
    hidden = struct.pack("<f", float("-inf"))
    return {
        "F16": (*floats("F16"), BINARY_TYPE),
        "F16, 65 536 items": (*floats("F16", 65536), BINARY_TYPE),
        "BF16": (*floats("BF16"), BINARY_TYPE),
        "F64": (*floats("F64"), BINARY_TYPE),
        "F32": (*floats("F32"), BINARY_TYPE),
        "a bias, -inf at its end": (*rows_and("bias", "F32", bytes(4), hidden), BINARY_TYPE),
        "a bias of -inf": (*rows_and("bias", "F32", hidden), BINARY_TYPE),
        "a mask of U8": (*rows_and("mask", "U8", b"\1"), BINARY_TYPE),
        "lengths of I64": (*lengths(), BINARY_TYPE),
        "F16 in base64": (*in_base64("F16", False), JSON_TYPE),
        "F16 in base64, type last": (*in_base64("F16", True), JSON_TYPE),
        "F64 in base64, type last": (*in_base64("F64", True), JSON_TYPE),
        "decimal rows": (*text(b'{"queries":[[', row, last + b"]]}"), JSON_TYPE),
        "decimal rows, then no JSON": (*text(b'{"queries":[[', row, b"x"), JSON_TYPE),
        "rows without numbers": (*text(b'{"queries":[[', b"[],", b"[]]]}"), JSON_TYPE),
        "65 536 items": (*items(65536), JSON_TYPE),
        "a decimal mask": (*text(one + b',"mask":[[[', b"1,", b"1]]]}"), JSON_TYPE),
        "decimal lengths": (*text(one + b',"valid_lens":[[', b"1,", b"1]]}"), JSON_TYPE),
        "an answer of 100 MB": (*text(b'{"return_attention":true,"queries":[[', row, last + b"]]}",
                                      3300), JSON_TYPE),
    }


def begin(server, length, headers):
    """A connection on which a request's header has been sent."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    connection.sendall(f"POST /v1/attention HTTP/1.1\r\nHost: a\r\n{fields}"
                       f"Content-Length: {length}\r\nConnection: close\r\n\r\n".encode())
    return connection


def status_of(connection):
    """Reads the whole answer."""
    first = b""
    try:
        while got := connection.recv(PART):
            first = first or got
    except ConnectionResetError:
        pass
    connection.close()
    return first[9:12].decode()


def send(server, parts, length, headers):
    connection = begin(server, length, headers)

    def write():
        try:
            for part in parts():
                connection.sendall(part)
        except OSError:
            pass  # refused before its end

    writer = threading.Thread(target=write)
    writer.start()
    status = status_of(connection)
    writer.join()
    return status


def together(server, count):
    """Bodies whose last bytes arrive at the same time."""
    parts, length = items(4000)
    body = b"".join(parts())
    connections = [begin(server, length, JSON_TYPE) for _ in range(count)]
    for connection in connections:
        connection.sendall(body[:-1])
    for connection in connections:
        connection.sendall(body[-1:])
    return ", ".join(set(map(status_of, connections)))


def longest(act):
    """In milliseconds, the least of three servers: others may have had the processor. And what
    `act` says of the last one."""
    best = 1e9
    for _ in range(3):
        server = Server(MODELS)
        said = act(server)
        best = min(best, server.metric("attend_io_longest_turn_seconds") * 1e3)
        server.stop()
    return best, said


def hostile(_):
    for name, (parts, length, headers) in bodies().items():
        ms, status = longest(lambda server: send(server, parts, length, headers))
        line(f"longest turn of an I/O thread: {name}, {length / 1e6:.0f} MB ({status})",
             f"{ms:.1f} ms", "", "", "< 5 ms", ms < 5)
    ms, status = longest(lambda server: together(server, 50))
    line(f"longest turn of an I/O thread: 50 bodies end together ({status})",
         f"{ms:.1f} ms", "", "", "< 20 ms", ms < 20)
