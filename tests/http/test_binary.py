"""test_binary: a request as safetensors, or with its arrays in base64, is the same request."""
import json
import random
import shutil
import struct
import tempfile
import unittest

from forms import base64_fields, safetensors
from support import Layer, Raw, Server, ServerCase, chunked, f32, nest, randoms

BINARY_TYPE = {"Content-Type": "application/x-safetensors"}
SIZE, HEADS = 12, 3
AS_JSON = dict(BINARY_TYPE, Accept="application/json")
INF, NAN = float("inf"), float("nan")


def rough(rng, *shape):
    """Numbers that every type of floats holds exactly."""
    return nest([rng.randrange(-40, 41) / 8 for _ in range(numbers(shape))], shape)


def numbers(shape):
    count = 1
    for n in shape:
        count *= n
    return count


def batch(draw=rough, seed=1, q=3, k=5, **more):
    rng = random.Random(seed)
    return dict({name: draw(rng, 2, rows, SIZE)
                 for name, rows in (("queries", q), ("keys", k), ("values", k))}, **more)


RNG = random.Random(7)
REQUESTS = [
    batch(),
    batch(valid_lens=[5, 2], return_attention=True, return_pointers=True),
    batch(valid_lens=[[5, 2, 0], [1, 2, 3]], empty_rows="uniform", return_attention="average"),
    batch(mask=[[1, 0, 1, 1, 0]] * 3, bias=rough(RNG, 3, 5), head_mask=[1, 0.5, 0]),
    batch(mask=[[[0, 0, 1, 1, 0]] * 3, [[1, 1, 1, 1, 1]] * 3], bias=rough(RNG, 2, HEADS, 3, 5),
          causal=True, causal_offset=[1, -1], window=[2, 2]),
    batch(segments=[[1, 4, 0], [2, 2, 1]], return_attention=True),
    batch(select="sample", seed=12345, return_pointers=True, causal=True, causal_offset="end"),
    {name: value[0] for name, value in batch(seed=3).items()},
    dict({name: value[0] for name, value in batch(seed=4).items()}, valid_lens=4,
         bias=rough(RNG, HEADS, 3, 5), segments=[2, 3], causal_offset=1),
    {"queries": rough(RNG, 1, 4, SIZE)},
]


class Binary(ServerCase):
    toy_model = "toy"

    @classmethod
    def start(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        config = {"models": {"base": Layer(31, SIZE, HEADS).definition(cls.folder, "base"),
                             "toy": Layer(32, 4, 2).definition(cls.folder, "toy")}}
        return Server(config, "--max-body-bytes", str(1 << 20), folder=cls.folder)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def send(self, body, headers=AS_JSON, path="/v1/models/base/attention"):
        return self.server.post(path, body, headers)

    def right(self, request, path="/v1/models/base/attention"):
        answer = self.server.post(path, request)
        self.ok(answer)
        return answer.body

    # --- the same ---

    def test_every_type_of_numbers_gives_the_same_bytes(self):
        for request in REQUESTS:
            right = self.right(request)
            for floats, integers, flags in (("F32", "I32", "BOOL"), ("F16", "I64", "U8"),
                                            ("BF16", "I32", "U8"), ("F64", "I64", "BOOL")):
                with self.subTest(sorted(request), floats=floats):
                    answer = self.send(safetensors(request, floats, integers, flags))
                    self.assertEqual((answer.status, answer.body), (200, right))
                    answer = self.server.attend(base64_fields(request, floats), "base")
                    self.assertEqual((answer.status, answer.body), (200, right))

    def test_float32_of_all_kinds(self):
        request = batch(randoms, seed=9, return_attention=True)
        request["queries"][0][0] = [f32(x) for x in (1e-45, -1e-40, 1e-3, 3e4, -0.0, 0.1)] * 2
        right = self.right(request)
        self.assertEqual(self.send(safetensors(request)).body, right)
        self.assertEqual(self.server.attend(base64_fields(request), "base").body, right)

    def test_ragged_batches_base64_fields(self):
        rng = random.Random(5)
        request = {"queries": [rough(rng, n, SIZE) for n in (2, 1, 4)],
                   "keys": [rough(rng, n, SIZE) for n in (3, 6, 1)],
                   "bias": [rough(rng, HEADS, q, k) for q, k in ((2, 3), (1, 6), (4, 1))],
                   "valid_lens": [2, 6, 1], "return_attention": True}
        request["values"] = request["keys"]
        self.assertEqual(self.server.attend(base64_fields(request), "base").body, self.right(request))

    def test_heads_take_gradients(self):
        path = "/v1/models/base/heads"
        request = batch(gradients=rough(RNG, 2, 3, SIZE))
        right = self.right(request, path)
        self.assertEqual(self.send(safetensors(request), AS_JSON, path).body, right)
        self.assertEqual(self.server.post(path, base64_fields(request, "F64")).body, right)
        self.problem(self.send(safetensors(request)), 400, "invalid-request", "/gradients")

    def test_octet_stream_is_the_same(self):
        request = REQUESTS[0]
        answer = self.send(safetensors(request), {"Content-Type": "application/octet-stream",
                                             "Accept": "application/json"})
        self.assertEqual(answer.body, self.right(request))

    def test_the_body_may_be_cut_anywhere(self):
        request = REQUESTS[4]
        right = self.right(request)
        forms = ((safetensors(request), "application/x-safetensors"),
                 (json.dumps(base64_fields(request)).encode(), "application/json"))
        for body, kind in forms:
            for sizes in ((1,), (7,), (8, 1, 100), (9, 500, 3), (len(body) - 1, 1)):
                with self.subTest(kind, sizes=sizes), Raw(self.server) as raw:
                    head = (f"POST /v1/models/base/attention HTTP/1.1\r\nHost: test\r\n"
                            f"Content-Type: {kind}\r\nAccept: application/json\r\n"
                            f"Transfer-Encoding: chunked\r\n\r\n").encode()
                    answer = raw.send(head + chunked(body, sizes)).answer()
                    self.assertEqual((answer.status, answer.body), (200, right))

    # --- numbers that are not finite ---

    def test_minus_infinity_hides_the_key(self):
        for shape in ((3, 5), (2, 3, 5)):
            bias, rng = rough(RNG, *shape), random.Random(2)
            hidden = [rng.random() < 0.4 for _ in range(numbers(shape))]
            flat_bias = [x for part in ([bias] if len(shape) == 2 else bias)
                         for row in part for x in row]
            infinite = nest([-INF if h else x for h, x in zip(hidden, flat_bias)], shape)
            zero = nest([0 if h else x for h, x in zip(hidden, flat_bias)], shape)
            mask = nest([0 if h else 1 for h in hidden], shape)
            right = self.right(batch(bias=zero, mask=mask, return_attention=True))
            for request in (batch(bias=infinite, return_attention=True),
                            batch(bias=infinite, mask=[[1] * 5] * 3, return_attention=True)):
                self.assertEqual(self.send(safetensors(request)).body, right)
                answer = self.server.attend(base64_fields(request), "base")
                self.assertEqual(answer.body, right)

    def test_minus_infinity_for_each_head(self):
        """Each head weighs as all heads do under its mask."""
        rng = random.Random(4)
        for b in (1, 2):
            hidden = [[[[rng.random() < 0.4 for _ in range(5)] for _ in range(3)]
                       for _ in range(HEADS)] for _ in range(b)]
            bias = rough(rng, b, HEADS, 3, 5)
            infinite = [[[[-INF if h else x for h, x in zip(*rows)] for rows in zip(*grids)]
                         for grids in zip(*heads)] for heads in zip(hidden, bias)]
            whole = {name: value[:b] for name, value in batch().items()}
            extra = {"mask": [[1, 1, 1, 0, 1]] * 3} if b == 2 else {}
            request = dict(whole, bias=infinite, return_attention=True, **extra)
            if b == 1:  # the form of one item alone
                request = {n: x[0] if isinstance(x, list) else x for n, x in request.items()}
            weights = self.send(safetensors(request)).json["attention_weights"]
            weights = weights if b == 2 else [weights]
            for head in range(HEADS):
                mask = [[[int(not h and extra.get("mask", [[1] * 5])[0][j] == 1)
                          for j, h in enumerate(row)] for row in item[head]] for item in hidden]
                alone = self.server.attend(dict(whole, bias=[item[head] for item in bias],
                                                mask=mask, return_attention=True), "base").json
                for i in range(b):
                    self.close_to(weights[i][head], alone["attention_weights"][i][head], 1e-6)

    def test_other_numbers_matter_where_they_are_seen(self):
        for bad in (INF, -INF, NAN):
            for name in ("queries", "keys", "values"):
                request = batch(valid_lens=[4, 4])
                request[name][1][0][3] = bad
                self.problem(self.send(safetensors(request)), 422, "not-finite")
                self.problem(self.server.attend(base64_fields(request, "F16"), "base"), 422,
                             "not-finite")
            for name in ("keys", "values"):
                request = batch(valid_lens=[4, 4], return_attention=True)
                right = self.right(request)
                request[name][1][4][3] = bad
                self.assertEqual(self.send(safetensors(request)).body, right)
        self.alive()

    # --- what is refused ---

    def test_refusals_say_where(self):
        good, rng = batch(), random.Random(3)
        for change, pointer in (({"valid_lens": [5, 6]}, "/valid_lens/1"),
                                ({"valid_lens": [[5, 5, 5], [5, 5, -1]]}, "/valid_lens/1/2"),
                                ({"keys": rough(rng, 2, 5, SIZE + 1)}, "/keys"),
                                ({"values": rough(rng, 2, 4, SIZE)}, "/values/0"),
                                ({"mask": [[1] * 4] * 3}, "/mask/0"),
                                ({"casual": True}, "/casual"), ({"causal": 1}, "/causal")):
            with self.subTest(pointer):
                self.problem(self.send(safetensors(dict(good, **change))), 400, "invalid-request",
                             pointer)
        self.problem(self.server.attend(dict(good, keys={"dtype": "F32", "shape": [1, SIZE],
                                                         "base64": "AAAA"}), "base"),
                     400, "invalid-request", "/keys/base64")
        self.alive()

    def test_json_that_is_called_safetensors(self):
        answer = self.server.post("/v1/attention", {"queries": [[[1, 2]]]}, BINARY_TYPE)
        self.assertEqual(answer.status, 400)
        self.assertIn("looks like JSON", answer.json["detail"])

    def test_a_list_of_objects_that_no_machine_can_address(self):
        bias = [{"dtype": "F32", "shape": [1, 1, 1], "base64": "AAAAAA=="},
                {"dtype": "F32", "shape": [2147483647, 715827883, 3], "base64": ""}]
        answer = self.server.attend({"queries": rough(RNG, 2, 1, SIZE), "bias": bias})
        self.assertEqual((answer.status, answer.json["pointer"]), (400, "/bias/1/shape"))
        self.assertIn("too large for the address space", answer.json["detail"])

    def test_bodies_that_are_too_short_or_too_long(self):
        body = safetensors(REQUESTS[1])
        for size in (0, 5, 8, 60, len(body) - 1):
            self.problem(self.send(body[:size]), 400, "invalid-request")
        self.problem(self.send(body + b"\0"), 400, "invalid-request")
        huge = struct.pack("<Q", 1 << 40) + b"{}"
        self.assertIn("is over 16384 bytes",
                      self.problem(self.send(huge), 400, "invalid-request")["detail"])
        self.problem(self.send(safetensors(batch(q=9000, k=9000))), 413, "too-large",
                     limit="max_body_bytes")
        self.problem(self.send(json.dumps(REQUESTS[0]).encode()), 400, "invalid-request")
        self.alive()
        self.settled()


if __name__ == "__main__":
    unittest.main()
