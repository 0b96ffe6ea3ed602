"""test_bombs: no body costs much more than the numbers it may carry.

What a request may hold while it is read and computed: four times its float32 numbers and 64 kB; and
for each item of the batch a record. Keys and values that the queries stand for count as numbers. A
body that is refused may have been anything: two bytes are the least that a number takes. The text
of an answer is counted for itself; it has a limit of its own.
"""
import base64
import json
import re
import struct
import threading
import unittest

from support import MODE, Case, Server, wait_until

ROOM = 64 << 10
ITEM = 160  # bytes of an item's record
ANSWER = 16  # bytes that the text of a number of the answer may take
LARGE = 30 << 20 if MODE == "release" else 2 << 20
SAFETENSORS = {"Content-Type": "application/x-safetensors"}
BINARY = dict(SAFETENSORS, Accept="application/x-safetensors")
WIDE, HEADS = "/v1/models/wide/attention", "/v1/models/demo/heads"
V2 = "/v2/models/demo/infer"


class Bomb:
    """A body, what it is answered with, and what it may cost."""

    def __init__(self, name, body, statuses, path="/v1/attention", headers=None, rows=None, width=4,
                 items=1):
        """`rows` of queries that are keys and values, too; None: it is refused."""
        self.name, self.body, self.path, self.headers = name, body, path, headers or {}
        self.statuses = statuses
        numbers = len(body) // 2 if rows is None else 3 * rows * width
        self.bound = 4 * 4 * numbers + ROOM + (ITEM + ANSWER) * items + (rows or 0) * width * ANSWER


def flood(field, unit, path="/v1/attention"):
    body = b'{"' + field + b'":[' + unit * (LARGE // len(unit)) + b"0]}"
    return Bomb(f"{field} of {unit}", body, (400, 413), path)


def listed(unit, count):
    return b'{"queries":[' + b",".join([unit] * count) + b"]}"


def base64_array(shape, size):
    array = {"dtype": "F32", "shape": shape, "base64": base64.b64encode(bytes(size)).decode()}
    return json.dumps({"queries": array}).encode()


def safetensors_of(header, size=0):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


def one_tensor(dtype, shape, size):
    return safetensors_of({"queries": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}},
                          size)


def v2_inputs(count):
    one = {"name": "queries", "datatype": "FP32", "shape": [1, 0, 4], "data": []}
    return json.dumps({"inputs": [one] * count}).encode()


def bombs():
    row, many = b"[0,0,0,0]", 100000 if MODE == "release" else 10000
    tensors = {f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(many)}
    yield from (flood(field, unit, HEADS if field == b"gradients" else "/v1/attention")
                for field, unit in ((b"queries", b"{},"), (b"keys", b"0,"), (b"values", b"[[],[]],"),
                                    (b"valid_lens", b"0,"), (b"mask", b"[],[[]],"),
                                    (b"bias", b"[],[[]],"), (b"segments", b"[0],[0,0],"),
                                    (b"gradients", b'"",'), (b"window", b"0,"), (b"x", b"{},")))
    yield Bomb("brackets", b"[" * 1000000, (400,))
    yield Bomb("brackets in a field", b'{"queries":' + b"[" * 1000000, (400,))
    yield Bomb("nested objects", b'{"select":' + b'{"a":' * 200000, (400,))
    yield Bomb("long string", b'{"select":"' + b"x" * LARGE + b'"}', (400,))
    yield Bomb("long name", b'{"' + b"x" * LARGE + b'":1}', (400,))
    yield Bomb("unknown fields", b'{' + b",".join(b'"x%d":0' % i for i in range(many)) + b"}",
               (400,))
    yield Bomb("much work", b'{"queries":[[' + b",".join([row] * 1000000) + b"]]}", (413,))
    yield Bomb("a large answer", b'{"return_attention":true,"queries":[[' +
               b",".join([row] * 100000) + b"]]}", (413,))
    yield Bomb("empty items", listed(b"[]", 65536), (200,), rows=0, items=65536)
    yield Bomb("more empty items", listed(b"[]", 65537), (413,), items=65537)
    yield Bomb("items of a row", listed(b"[" + row + b"]", 65536), (200,), rows=65536, items=65536)
    yield Bomb("ragged items", listed(b"[],[" + row + b"]", 30000), (200,), rows=30000, items=60000)
    yield Bomb("self-attention", listed(b"[" + b",".join([row] * 1000) + b"]", 1), (200,),
               rows=1000)
    for items, status, counted in ((65536, 413, 0), (513, 413, 0), (512, 200, 512)):
        yield Bomb(f"a shape of {items} items", base64_array([items, 0, 4], 0), (status,), rows=0,
                   items=counted)
        yield Bomb(f"a tensor of {items} items", one_tensor("F32", [items, 0, 4], 0), (status,),
                   headers=BINARY, rows=0, items=counted)
        yield Bomb(f"an input of {items} items",
                   v2_inputs(1).replace(b"[1, 0, 4]", b"[%d,0,4]" % items), (status,), V2, rows=0,
                   items=counted)
    yield Bomb("a shape beyond its bytes", base64_array([1, 1 << 40, 4], 0), (400, 413), rows=0)
    yield Bomb("a shape beyond all bytes", base64_array([1 << 62, 1 << 62, 4], 0), (400, 413), rows=0)
    yield Bomb("wide base64", base64_array([1, 2000, 512], 2000 * 2048), (200,), WIDE, rows=2000,
               width=512)
    yield Bomb("wide halves", one_tensor("F16", [1, 2000, 512], 2000 * 1024), (200,), WIDE, BINARY,
               2000, 512)
    yield Bomb("many tensors", safetensors_of(tensors), (400, 413), headers=SAFETENSORS)
    yield Bomb("a header of any size", struct.pack("<Q", (1 << 63) - 1) + b"{" * 1000, (400, 413),
               headers=SAFETENSORS)
    yield Bomb("many inputs", v2_inputs(many), (400, 413), V2)
    yield Bomb("many parameters", b'{"parameters":{' +
               b",".join(b'"x%d":[[]]' % i for i in range(many)) + b'},"inputs":[]}', (400, 413), V2)


class Peak(threading.Thread):
    """Looks at the memory of requests all the time."""

    def __init__(self, server):
        super().__init__()
        self.server, self.most, self.resident, self.over = server, 0, 0, False

    def run(self):
        connection = self.server.connect()
        while not self.over:
            text = self.server.get("/metrics", connection=connection).body.decode()
            now = int(re.search(r"^attend_inflight_bytes (\d+)", text, re.M).group(1))
            self.most = max(self.most, now)
            self.resident = max(self.resident, self.server.resident())
        connection.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()


class Bombs(Case):
    @classmethod
    def setUpClass(cls):
        cls.bombs = list(bombs())

    def setUp(self):
        wide = {"random": {"seed": 1}, "query_size": 512, "heads": 8}
        demo = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
        self.server = Server({"models": {"demo": demo, "wide": wide}, "default_model": "demo"})
        self.addCleanup(self.server.stop)

    def send(self, bomb):
        return self.server.post(bomb.path, bomb.body, bomb.headers)

    def test_each_alone(self):
        for bomb in self.bombs:
            with self.subTest(bomb.name), Peak(self.server) as peak:
                answer = self.send(bomb)
                self.assertIn(answer.status, bomb.statuses, answer)
            with self.subTest(bomb.name):
                self.assertLessEqual(peak.most, bomb.bound)
            self.assertTrue(wait_until(lambda: self.server.metric("attend_inflight_bytes") == 0))

    def test_all_in_parallel(self):
        self.send(self.bombs[-1])
        before, wrong = self.server.resident(), []

        def throw(bomb):
            status = self.send(bomb).status
            if status not in bomb.statuses + (429,):
                wrong.append((bomb.name, status))

        throwers = [threading.Thread(target=throw, args=(bomb,)) for bomb in self.bombs]
        with Peak(self.server) as peak:
            for thrower in throwers:
                thrower.start()
            for thrower in throwers:
                thrower.join()
        self.assertEqual(wrong, [])
        self.assertLessEqual(peak.most, sum(bomb.bound for bomb in self.bombs))
        sent = sum(len(bomb.body) for bomb in self.bombs)
        if MODE == "release":  # where most of them are floods
            self.assertLess(peak.most, sent / 2)
            self.assertLess(peak.resident - before, sent)
        self.assertTrue(wait_until(lambda: self.server.metric("attend_inflight_bytes") == 0))
        self.assertEqual(self.server.get("/healthz").status, 200)


if __name__ == "__main__":
    unittest.main()
