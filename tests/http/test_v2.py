"""test_v2: the Open Inference Protocol, with clients that are not ours, and with broken messages."""
import asyncio
import json
import random
import signal
import struct
import unittest

import aiohttp

from compare import OracleCase
from forms import bits, pack, read_v2, shape_of, v2
from support import (PATIENCE, Case, Layer, Raw, Server, ServerCase, chunked, randoms,
                     wait_until)

INFER = "/v2/models/demo/infer"
ONE = [[[1, 0, 0, 1], [0, 1, 1, 0]]]


class V2Case(Case):
    """Checks of this protocol's answers."""

    def error(self, answer, status, *words):
        self.assertIsNotNone(answer, f"no answer where {status} was due")
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers.get("content-type"), "application/json", answer)
        self.assertEqual(list(answer.json), ["error"], answer)
        for word in words:
            self.assertIn(word, answer.json["error"])
        return answer.json["error"]


class Clients(V2Case, OracleCase):
    """aiohttp as the transport of messages as Triton's and KServe's clients write them: header
    names in lower case, no Content-Type. Answers are compared with the native form's, bit for
    bit."""

    @classmethod
    def make_layers(cls):
        return {"plain": Layer(1, 12, 3), "odd": Layer(2, 7, 3, head_size=5, key_size=9,
                                                       value_size=4, output_size=6)}

    def send(self, method, path, body=None, headers=None, **options):
        """(status, headers with names in lower case, body) through aiohttp."""
        async def send():
            timeout = aiohttp.ClientTimeout(total=PATIENCE)
            async with aiohttp.ClientSession(timeout=timeout,
                                             skip_auto_headers=["Content-Type"]) as session:
                url = f"http://127.0.0.1:{self.server.port}{path}"
                async with session.request(method, url, data=body, headers=headers,
                                           **options) as answer:
                    return (answer.status, {k.lower(): v for k, v in answer.headers.items()},
                            await answer.read())
        return asyncio.run(send())

    def infer(self, model, message, path="/v2/models/{}/infer", **options):
        body, length = message
        headers = {} if length is None else {"inference-header-content-length": str(length)}
        status, headers, body = self.send("POST", path.format(model), body, headers, **options)
        self.assertEqual(status, 200, body[:500])
        self.assertEqual(headers["content-type"], "application/octet-stream"
                         if "inference-header-content-length" in headers else "application/json")
        answer, arrays = read_v2(headers, body)
        self.assertEqual((answer["model_name"], answer["model_version"]), (model, "1"))
        return answer, arrays

    def draw(self, name, b, q, k, seed=0):
        layer, rng = self.layers[name], random.Random(seed)
        return {"queries": randoms(rng, b, q, layer.query_size),
                "keys": randoms(rng, b, k, layer.key_size),
                "values": randoms(rng, b, k, layer.value_size),
                "valid_lens": [rng.randrange(k + 1) for _ in range(b)],
                "mask": [[[rng.random() < 0.8 for _ in range(k)] for _ in range(q)]
                         for _ in range(b)]}

    def native(self, name, request):
        answer = self.ok(self.server.attend(dict(request, return_attention=True), name))
        return {member: (shape_of(answer[member]), bits(answer[member]))
                for member in ("outputs", "attention_weights")}

    def test_every_mixture_of_binary_and_json(self):
        for seed, name in enumerate(self.layers):
            request = self.draw(name, 2, 5, 7, seed)
            right = self.native(name, request)
            names = list(request)
            for mixture in range(1 << len(names)):
                binary = [n for i, n in enumerate(names) if mixture >> i & 1]
                outputs = (["outputs"], ["attention_weights"], ["outputs", "attention_weights"],
                           ["attention_weights", "outputs"])[mixture % 4]
                back = outputs[mixture // 4 % 2:]
                with self.subTest(binary=binary, outputs=outputs, back=back):
                    order = dict(random.Random(mixture).sample(list(request.items()), len(request)))
                    message = v2(order, binary, outputs, back, nested=mixture % 3 == 0,
                                 integers=("INT32", "INT64")[mixture % 2])
                    answer, arrays = self.infer(name, message)
                    self.assertEqual([o["name"] for o in answer["outputs"]], outputs)
                    self.assertEqual(arrays, {n: right[n] for n in outputs})
                    for output in answer["outputs"]:
                        self.assertEqual("data" not in output, output["name"] in back)

    def test_only_outputs_unless_more_is_named(self):
        request = self.draw("plain", 1, 3, 4)
        right = self.native("plain", request)
        for more in ({}, {"outputs": []}):
            answer, arrays = self.infer("plain", v2(request, **more))
            self.assertEqual(arrays, {"outputs": right["outputs"]})
        _, arrays = self.infer("plain", v2(request, ["keys"], binary_outputs=True))
        self.assertEqual(arrays, {"outputs": right["outputs"]})
        # the answer is binary although nothing of the request was
        body, length = v2(request, binary_outputs=True)
        self.assertIsNone(length)
        status, headers, body = self.send("POST", "/v2/models/plain/infer", body)
        self.assertIn("inference-header-content-length", headers)
        self.assertEqual(read_v2(headers, body)[1], {"outputs": right["outputs"]})

    def test_parameters(self):
        request = {n: a for n, a in self.draw("plain", 2, 4, 4).items() if n in
                   ("queries", "keys", "values")}
        plain = self.native("plain", request)
        for parameters in ({"causal": True}, {"causal": True, "causal_offset": -1,
                                              "empty_rows": "uniform"},
                           {"causal": True, "causal_offset": [0, 2]}, {"select": "hard"},
                           {"causal": True, "causal_offset": "end"},
                           {"select": "sample", "seed": 5}):
            with self.subTest(parameters):
                asked = dict(request, **parameters)
                right = self.native("plain", asked)
                _, arrays = self.infer("plain", v2(asked, ["queries"], list(right), list(right)))
                self.assertEqual(arrays, right)
                self.assertNotEqual(arrays, plain)

    def test_self_attention_needs_queries_alone(self):
        request = {"queries": self.draw("plain", 2, 3, 3)["queries"]}
        _, arrays = self.infer("plain", v2(request, ["queries"]))
        self.assertEqual(arrays["outputs"], self.native("plain", request)["outputs"])

    def test_the_version_and_the_query_string(self):
        request = self.draw("plain", 1, 2, 2)
        right = self.native("plain", request)["outputs"]
        for path in ("/v2/models/{}/versions/1/infer", "/v2/models/{}/infer?a=b&c"):
            _, arrays = self.infer("plain", v2(request), path)
            self.assertEqual(arrays["outputs"], right)

    def test_any_content_type(self):
        message = v2(self.draw("plain", 1, 2, 2), ["queries"])
        headers = {"inference-header-content-length": str(message[1])}
        for kind in ("application/octet-stream", "application/json", "text/plain",
                     "application/x-www-form-urlencoded", ""):
            status, _, body = self.send("POST", "/v2/models/plain/infer", message[0],
                                        dict(headers, **{"content-type": kind}))
            self.assertEqual(status, 200, body)

    def test_a_large_message_in_chunks(self):
        request = self.draw("plain", 3, 120, 200)
        right = self.native("plain", request)
        body, length = v2(request, ["queries", "values", "mask"], list(right), list(right))
        self.assertGreater(len(body), 100000)

        async def parts():
            for at in range(0, len(body), 7001):
                yield body[at:at + 7001]
        status, headers, body = self.send("POST", "/v2/models/plain/infer", parts(),
                                          {"inference-header-content-length": str(length)})
        self.assertEqual(status, 200, body[:300])
        self.assertEqual(read_v2(headers, body)[1], right)

    def test_compressed_bodies_are_refused(self):
        body, _ = v2(self.draw("plain", 1, 2, 2))
        status, headers, body = self.send("POST", "/v2/models/plain/infer", body, compress="gzip")
        self.assertEqual((status, headers["content-type"]), (415, "application/json"))
        self.assertIn("Content-Encoding", json.loads(body)["error"])

    def test_what_the_server_says_of_itself(self):
        def get(path, **options):
            status, headers, body = self.send("GET", path, **options)
            self.assertEqual((status, headers["content-type"]), (200, "application/json"), path)
            return json.loads(body)
        server = get("/v2?x=y")
        self.assertEqual((server["name"], server["extensions"]), ("attend", ["binary_tensor_data"]))
        self.assertRegex(server["version"], r"^\d+\.\d+")
        self.assertEqual(get("/v2/health/live"), {"live": True})
        self.assertEqual(get("/v2/health/ready"), {"live": True, "ready": True})
        self.assertEqual(get("/v2/models"), {"models": ["plain", "odd"]})
        self.assertEqual(get("/v2/models/odd/ready"), {"name": "odd", "ready": True})
        self.assertEqual(get("/v2/models/odd/versions/1/ready?"), {"name": "odd", "ready": True})
        optional = {"parameters": {"optional": True}}
        expected = {
            "name": "plain", "versions": ["1"], "platform": "attend",
            "inputs": [{"name": "queries", "datatype": "FP32", "shape": [-1, -1, 12]},
                       {"name": "keys", "datatype": "FP32", "shape": [-1, -1, 12], **optional},
                       {"name": "values", "datatype": "FP32", "shape": [-1, -1, 12], **optional},
                       {"name": "valid_lens", "datatype": "INT32", "shape": [-1], **optional},
                       {"name": "mask", "datatype": "BOOL", "shape": [-1, -1, -1], **optional}],
            "outputs": [{"name": "outputs", "datatype": "FP32", "shape": [-1, -1, 12]},
                        {"name": "attention_weights", "datatype": "FP32",
                         "shape": [-1, 3, -1, -1], **optional}]}
        self.assertEqual(get("/v2/models/plain"), expected)
        self.assertEqual(get("/v2/models/plain/versions/1"), expected)
        odd = get("/v2/models/odd")
        self.assertEqual([i["shape"][-1] for i in odd["inputs"][:3]], [7, 9, 4])
        self.assertEqual(["parameters" in i for i in odd["inputs"]],
                         [False, False, False, True, True])
        self.assertEqual(odd["outputs"][0]["shape"], [-1, -1, 6])
        for path in ("/v2", "/v2/health/live", "/v2/models/odd"):
            status, headers, body = self.send("HEAD", path)
            self.assertEqual((status, body), (200, b""))
            self.assertGreater(int(headers["content-length"]), 0)


class Broken(V2Case, ServerCase):
    """Messages that break naive servers, byte by byte as they would come."""

    @classmethod
    def start(cls):
        return Server(None, "--max-body-bytes", "100000", "--max-items", "50")

    def setUp(self):
        self.right = self.ok(self.server.attend({"queries": ONE}, "demo"))["outputs"]

    def tearDown(self):
        self.alive()
        self.settled()

    def post(self, raw, body, *headers, path=INFER):
        """One request on an open connection, its header names in lower case, and the answer."""
        lines = [f"POST {path} HTTP/1.1", "host: test", f"content-length: {len(body)}", *headers]
        raw.send(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
        return raw.answer()

    def ask(self, body, *headers, **options):
        with Raw(self.server) as raw:
            return self.post(raw, body, *headers, **options)

    def right_answer(self, answer):
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(read_v2(answer.headers, answer.body)[1]["outputs"],
                         ([1, 2, 4], bits(self.right)))
        return answer

    def binary(self, json_length=None, shape=(1, 2, 4), size=32, data=None, block=None, **more):
        """A message whose queries are binary: as said, or right; and the header."""
        entry = {"name": "queries", "shape": list(shape), "datatype": "FP32"}
        if size is not None:
            entry["parameters"] = {"binary_data_size": size}
        if data is not None:
            entry["data"] = data
        text = json.dumps(dict({"inputs": [entry]}, **more)).encode()
        length = len(text) if json_length is None else json_length(len(text))
        body = text + (pack("FP32", ONE) if block is None else block)
        return body, f"inference-header-content-length: {length}"

    def test_lower_case_and_no_content_type(self):
        with Raw(self.server) as raw:
            for _ in range(3):
                self.right_answer(self.post(raw, *self.binary()))

    def test_unaligned_blocks(self):
        for blanks in range(8):
            body, header = self.binary(id="x" * blanks)
            self.right_answer(self.ask(body, header))

    def test_messages_in_pieces(self):
        body, header = self.binary()
        head = f"POST {INFER} HTTP/1.1\r\nhost: x\r\n{header}\r\n"
        with Raw(self.server) as raw:
            for size in (1, 2, 3, 5, 64):
                raw.send(head + "transfer-encoding: chunked\r\n\r\n")
                raw.send(chunked(body, [size]))
                self.right_answer(raw.answer())
            for cut in range(1, len(body), 9):
                raw.send(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body[:cut])
                raw.send(body[cut:])
                self.right_answer(raw.answer())

    def test_the_length_of_the_json(self):
        for change, words in ((lambda n: 0, ("described in JSON",)), (lambda n: n + 33, ("and the body has",)),
                              (lambda n: 2 ** 63, ("and the body has",)),
                              (lambda n: 2 ** 64, ("not an integer",)),
                              (lambda n: -1, ("not an integer",)),
                              (lambda n: f"{n}.0", ("not an integer",)),
                              (lambda n: "", ("not an integer",)),
                              (lambda n: n - 1, ("at byte",)), (lambda n: n + 1, ("at byte",))):
            body, header = self.binary(change)
            with self.subTest(header):
                self.error(self.ask(body, header), 400, *words)
        body, header = self.binary()
        self.error(self.ask(body), 400)  # all of it would be JSON
        self.error(self.ask(body, header, header.replace(": ", ": 1")), 400, "not an integer")
        with Raw(self.server) as raw:  # not known before the end
            raw.send(f"POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
                     f"inference-header-content-length: {len(body) + 1}\r\n\r\n")
            raw.send(chunked(body, [50]))
            self.error(raw.answer(), 400)

    def test_sizes(self):
        floats = pack("FP32", ONE)
        for message, words in (
                (self.binary(block=floats[:-1]), ("ends after 31 of the 32",)),
                (self.binary(block=floats + b"x"), ("extra bytes",)),
                (self.binary(block=b""), ("ends after 0 of the 32",)),
                (self.binary(size=31), ("is 31", "needs 32")),
                (self.binary(size=33, block=floats + b"x"), ("is 33", "needs 32")),
                (self.binary(size=-32), ("non-negative",)),
                (self.binary(size=32.0), ("non-negative",)),
                (self.binary(size="32"), ("non-negative",)),
                (self.binary(size=None), ("is missing",)),
                (self.binary(data=[1] * 8), ("exclude each other",)),
                (self.binary(shape=(4, 4611686018427387906, 4)), ("too large",)),
                (self.binary(shape=(4, 4611686018427387906)), ("2 dimensions",)),
                (self.binary(shape=(2 ** 62, 1, 4), size=2 ** 63 - 1), ("too large",)),
                (self.binary(shape=(1, 2 ** 63, 4)), ()),
                (self.binary(shape=(1, -2, 4)), ("negative",)),
                (self.binary(shape=(1, 2.0, 4)), ("negative",)),
                (self.binary(shape=(1, 1, 8)), ("query_size",)),
                (self.binary(shape=(2, 4)), ("2 dimensions",)),
                (self.binary(shape=()), ("1 to 4",)),
                (self.binary(shape=(1, 1, 1, 2, 4)), ("1 to 4",)),
                (self.binary(shape=(1, 2 ** 40, 4), size=2 ** 44), ("ends after 32 of the",))):
            with self.subTest(message):
                self.error(self.ask(*message), 400, *words)
        self.error(self.ask(*self.binary(shape=(51, 1, 4), size=16 * 51)), 413, "max_items")

    def test_what_an_input_may_not_be(self):
        def entry(**more):
            return dict({"name": "queries", "datatype": "FP32", "shape": [1, 2, 4],
                         "data": ONE}, **more)
        for inputs, words in (
                ([], ("queries", "missing")),
                ([entry(name="query")], ("query", "expected queries, keys")),
                ([entry(name=None)], ("name",)), ([entry(name=7)], ("name",)),
                ([entry(), entry()], ("/inputs/1/name", "duplicate")),
                ([entry(datatype="FP64")], ("FP32",)), ([entry(datatype=None)], ("datatype",)),
                ([entry(shape=None)], ("shape",)), ([entry(data=None)], ("is missing",)),
                ([entry(data={})], ("array",)), ([entry(data="AAAA")], ("array",)),
                ([entry(data=[1] * 7)], ("7 elements, expected 8",)), ([entry(data=[1] * 9)], ("9 elements, expected 8",)),
                ([entry(data=[[[1] * 4]])], ("dimension 1",)),
                ([entry(data=[[[1] * 4, [1] * 3]])], ("/inputs/0/data/0/1",)),
                ([entry(data=[[[1] * 4], [[1] * 4]])], ("dimension 0",)),
                ([entry(data=[[1] * 4] * 2)], ("dimensions",)),
                ([entry(data=[1] * 7 + [None])], ("null",)),
                ([entry(data=[1] * 7 + [1e39])], ("float32",)),
                ([entry(parameters={"binary_data_size": 32}, data=None)], ("header",)),
                ([entry(), entry(name="mask", datatype="BOOL", shape=[1, 2, 2], data=[2] * 4)],
                 ("/inputs/1/data/0",)),
                ([entry(), entry(name="valid_lens", datatype="INT32", shape=[1], data=[3])],
                 ("/inputs/1/data/0",)),
                ([entry(), entry(name="valid_lens", datatype="INT32", shape=[2], data=[1, 1])],
                 ("(at /inputs/1)",)),
                ([entry(), entry(name="keys", shape=[2, 2, 4], data=[ONE[0]] * 2)], ("keys",)),
                ([entry(), entry(name="keys", shape=[1, 0, 4], data=[]),
                  entry(name="values", shape=[1, 1, 4], data=[[[0] * 4]])],
                 ("(at /inputs/2/data/0)",)),
                ([1], ("object",)), ({}, ("array",)), (None, ("missing",))):
            with self.subTest(inputs):
                self.error(self.ask(json.dumps({"inputs": inputs}).encode()), 400, *words)

    def test_binary_numbers_that_may_not_be(self):
        mask = {"name": "mask", "datatype": "BOOL", "shape": [1, 2, 2],
                "parameters": {"binary_data_size": 4}}
        lens = {"name": "valid_lens", "datatype": "INT64", "shape": [1],
                "parameters": {"binary_data_size": 8}}
        queries = {"name": "queries", "datatype": "FP32", "shape": [1, 2, 4], "data": ONE}
        for other, block in ((mask, b"\0\1\1\2"), (lens, struct.pack("<q", 3)),
                             (lens, struct.pack("<q", -1)), (lens, struct.pack("<q", 2 ** 32 + 1))):
            text = json.dumps({"inputs": [other, queries]}).encode()
            header = f"inference-header-content-length: {len(text)}"
            self.error(self.ask(text + block, header), 400, "(at /inputs/0)")
        for number in ("nan", "inf", "-inf"):
            block = struct.pack("<8f", *[float(number)] * 8)
            self.error(self.ask(*self.binary(block=block)), 422)

    def test_outputs_and_parameters_that_may_not_be(self):
        for more in ({"outputs": [{"name": "output"}]}, {"outputs": [{}]}, {"outputs": {}},
                     {"outputs": [{"name": "outputs"}] * 2}, {"outputs": [{"name": "outputs"}] * 3},
                     {"outputs": [{"name": "outputs", "parameters": {"binary_data": 1}}]},
                     {"parameters": []}, {"parameters": {"causal": "true"}},
                     {"parameters": {"causal_offset": "begin"}}, {"parameters": {"seed": -1}},
                     {"parameters": {"causal_offset": [1, 2]}},
                     {"parameters": {"select": "best"}}, {"parameters": {"empty_rows": 0}},
                     {"parameters": {"timeout": -1}}, {"parameters": {"timeout": 1.5}},
                     {"parameters": {"binary_data_output": "yes"}}, {"id": 7},
                     {"id": ["x"]}, {"id": "x" * 65535}):
            with self.subTest(more):
                body = dict(json.loads(v2({"queries": ONE})[0]), **more)
                self.error(self.ask(json.dumps(body).encode()), 400)

    def test_text_that_is_no_json(self):
        good = v2({"queries": ONE})[0]
        for body in (b"", b"{", b"[]", b"1", b"null", good[:-1], good + b"}", good + b" x",
                     b"\xef\xbb\xbf" + good, b"\0" + good, good.replace(b":", b"=", 1),
                     good.decode().encode("utf-16"), b'{"x":' + b"[" * 90000,
                     b'{"inputs":[{"data":' + b"[" * 90000,
                     b'{"inputs":' + b"[" * 90000, b'{"x":tru}', b'{"x":"\\q"}', b'{"x":"\x01"}'):
            with self.subTest(body[:40]):
                self.error(self.ask(body), 400)
        # where nobody needs the text it is looked at all the same
        for member in (b'"foo":"\xff\xfe"', b'"\xff":1', b'"foo":[{"a":"\xc3"}]',
                       b'"foo":"\\ud800"', b'"\\udc00":0'):
            with self.subTest(member):
                self.error(self.ask(b"{" + member + b"," + good[1:]), 400, "byte")

    def test_keys_in_any_order_and_keys_that_mean_nothing(self):
        odd = {"a": [{"b": [[], {}, "]}"]}, 1e400, "\\\" ü"], "": None, "inputs ": {"inputs": []}}
        queries = {"data": [1, 0, 0, 1, 0, 1, 1, 0], "shape": [1, 2, 4], "datatype": "FP32",
                   "parameters": {"x": odd}, "name": "queries"}
        rng = random.Random(3)
        for _ in range(24):
            entry = dict(rng.sample(list({**queries, **odd}.items()), len(queries) + len(odd)))
            message = {"inputs": [entry], "outputs": [{"z": odd, "name": "outputs"}],
                       "parameters": {"priority": odd, "timeout": 9000000}, **odd}
            message = dict(rng.sample(list(message.items()), len(message)))
            text = json.dumps(message, ensure_ascii=False).replace("Infinity", "1e400")
            self.right_answer(self.ask(text.encode()))

    def test_the_id_comes_back_as_it_was_sent(self):
        for raw in ('"42"', '""', '"a\\u0041\\n\\"\\\\\\/"', '"\u00e4\U0001f600"', '"' + "i" * 65534 + '"'):
            body = v2({"queries": ONE}, id="@")[0].replace(b'"@"', raw.encode())
            answer = self.right_answer(self.ask(body))
            self.assertIn(b'"id":' + raw.encode(), answer.body)
        for parameter in ("causal", "causal_offset", "select", "seed", "empty_rows", "timeout",
                          "binary_data_output"):
            self.right_answer(self.ask(v2({"queries": ONE}, parameters={parameter: None})[0]))
        for absent in (b'"id":null,', b""):
            body = v2({"queries": ONE}, id="@")[0].replace(b'"id":"@",', absent)
            self.assertNotIn(b'"id"', self.right_answer(self.ask(body)).body)

    def test_paths(self):
        body = v2({"queries": ONE})[0]
        for path, word in (("/v2/health", ""), ("/v2/repository/index", ""),
                           ("/v2/models/demo/versions/0", "version"), ("/v2/models/demo/stats", ""),
                           ("/v2/models/none", "demo"), ("/v2/models/none/ready", "demo")):
            with self.subTest(path):
                self.error(self.server.get(path), 404, word)
        for path, word in (("/v2/models/demo/versions/2/infer", "version"),
                           ("/v2/models/none/infer", "demo"), ("/v2/repository/index", "")):
            with self.subTest(path):
                self.error(self.ask(body, path=path), 404, word)
        for path in ("/v2", "/v2/health/live", "/v2/models", "/v2/models/demo"):
            answer = self.ask(body, path=path)
            self.error(answer, 405)
            self.assertEqual(answer.headers["allow"], "GET, HEAD")
        answer = self.server.get(INFER)
        self.error(answer, 405)
        self.assertEqual(answer.headers["allow"], "POST")
        self.error(self.server.request("PUT", "/v2/models/demo"), 405)

    def test_refusals_by_the_head(self):
        body = v2({"queries": ONE})[0]
        self.error(self.ask(body, "content-encoding: gzip"), 415)
        self.right_answer(self.ask(body, "accept: text/html"))
        self.right_answer(self.ask(body, "accept: application/octet-stream"))
        self.error(self.ask(body, "x-timeout-ms: soon"), 400)
        self.error(self.ask(body, "transfer-encoding: chunked"), 400)
        self.error(self.ask(body, "content-length: 5"), 400)
        with Raw(self.server) as raw:
            raw.send(f"POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n")
            self.error(raw.answer(), 501)
        with Raw(self.server) as raw:
            raw.send(f"POST {INFER} HTTP/1.1\r\nhost: x\r\ncontent-length: 100001\r\n\r\n")
            self.error(raw.answer(), 413, "max_body_bytes")

    def test_bodies_over_the_limit(self):
        with Raw(self.server) as raw:
            raw.send(f"POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            raw.send(chunked(b'{"x":"' + b"y" * 150000 + b'"}', [5000]))
            self.error(raw.answer(), 413, "max_body_bytes")
        with Raw(self.server) as raw:  # one that has no end is answered in its midst
            raw.send(f"POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
            try:
                for _ in range(14):
                    raw.send(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
            except (ConnectionResetError, BrokenPipeError):
                pass
            self.error(raw.answer(), 413, "max_body_bytes")

    def test_mutations(self):
        """Bytes changed, dropped and added by chance: 200 or 4xx, in this protocol's form."""
        rng = random.Random(11)
        whole = [self.binary(), (v2({"queries": ONE, "valid_lens": [1]}, nested=True)[0], None)]
        codes = set()
        for turn in range(400):
            with Raw(self.server) as raw:
                body, header = whole[turn % 2]
                body = bytearray(body)
                for _ in range(rng.randrange(1, 4)):
                    at = rng.randrange(len(body))
                    what = rng.randrange(3)
                    if what == 0:
                        del body[at]
                    elif what == 1:
                        body.insert(at, rng.choice(b'[]{}",:0-9.eE\\ntf \x00\xff'))
                    else:
                        body[at] = rng.randrange(256)
                answer = self.post(raw, bytes(body), *([header] if header else []))
                self.assertIsNotNone(answer, bytes(body))
                codes.add(answer.status)
                if answer.status != 200:
                    self.assertIn(answer.status, (400, 413, 422))
                    self.error(answer, answer.status)
        self.assertTrue({200, 400} <= codes, codes)


class Early(V2Case, ServerCase):
    """Data that come before it is known what they are."""
    BOUND = 1 << 20  # bytes of text

    def tearDown(self):
        self.alive()
        self.settled()

    @staticmethod
    def entry(name, size):
        """An input whose data come first, in so many bytes."""
        numbers = "1,0,0,1,0,1,1,0]"
        return (f'{{"data":[{" " * (size - 1 - len(numbers))}{numbers},"name":"{name}",'
                '"shape":[1,2,4],"datatype":"FP32"}')

    def infer(self, *entries):
        body = f'{{"inputs":[{",".join(entries)}]}}'.encode()
        return self.server.request("POST", INFER, body)

    def test_the_bound(self):
        plain = self.server.request("POST", INFER, v2({"queries": ONE}, id=None)[0]).json
        self.assertEqual(self.infer(self.entry("queries", self.BOUND)).json, plain)
        half = self.BOUND // 2
        self.assertEqual(self.infer(self.entry("queries", half), self.entry("keys", half),
                                    json.dumps({"name": "values", "shape": [1, 2, 4],
                                                "datatype": "FP32", "data": ONE})).json, plain)
        words = ("1048576 bytes", '"name", "shape" and "datatype" before "data"')
        self.error(self.infer(self.entry("queries", self.BOUND + 1)), 400, *words,
                   "(at /inputs/0/data)")
        self.error(self.infer(self.entry("queries", half), self.entry("keys", half + 1)), 400,
                   *words, "(at /inputs/1/data)")

    def test_what_was_kept_is_given_back_at_once(self):
        """Nothing is kept while the rest comes; behind it the connection serves on."""
        def charged():
            return self.server.metric("attend_inflight_bytes")
        body = b'{"inputs":[{"data":[' + b"0.5," * (self.BOUND // 4 - 1)
        with Raw(self.server) as raw:
            raw.send(f"POST {INFER} HTTP/1.1\r\nhost: x\r\n"
                     f"content-length: {len(body) + 1000}\r\n\r\n")
            raw.send(body)
            self.assertTrue(wait_until(lambda: charged() > self.BOUND))
            raw.send(b"0.5,")
            self.assertTrue(wait_until(lambda: charged() == 0))
            raw.send(b"," * 996)
            self.error(raw.answer(), 400, "1048576 bytes")
            raw.send(f"GET {INFER[:-6]} HTTP/1.1\r\nhost: x\r\n\r\n")
            self.assertEqual(raw.answer().status, 200)


class Slow(V2Case, unittest.TestCase):
    """Times, and the end."""

    def test_a_body_that_does_not_come(self):
        server = Server(None, "--body-timeout-ms", "300")
        try:
            with Raw(server) as raw:
                raw.send(f"POST {INFER} HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{{")
                self.error(raw.answer(), 408)
        finally:
            server.stop()

    def test_timeouts_in_microseconds(self):
        rng = random.Random(1)
        server = Server(None, "--workers", "1", "--io-threads", "1")
        try:
            large = {"queries": randoms(rng, 1, 400, 512)}
            body, length = v2(large, ["queries"], parameters={"timeout": 1})
            answer = server.request("POST", "/v2/models/base/infer", body,
                                    {"Inference-Header-Content-Length": str(length)})
            self.error(answer, 504)
            for timeout in (0, 60000000, 2 ** 63 - 1):
                body, _ = v2({"queries": ONE}, parameters={"timeout": timeout})
                self.assertEqual(server.request("POST", INFER, body).status, 200)
        finally:
            server.stop()

    def test_a_full_budget(self):
        server = Server(None, "--memory-budget-bytes", "200000")
        try:
            body, length = v2({"queries": [[[0.5] * 4] * 20000]}, ["queries"])
            answer = server.request("POST", INFER, body,
                                    {"Inference-Header-Content-Length": str(length)})
            self.error(answer, 413, "memory_budget_bytes")
            self.assertNotIn("retry-after", answer.headers)
        finally:
            server.stop()

    def test_only_what_is_asked_for_counts_against_the_limit(self):
        server = Server(None, "--max-answer-bytes", "4096")
        try:
            queries = {"queries": [[[0.5] * 512]]}  # outputs alone may be more than the limit as text
            for outputs, binary, status in ((["outputs"], [], 413), (["outputs"], ["outputs"], 200),
                                            (["attention_weights"], [], 200),
                                            (["attention_weights"], ["attention_weights"], 200),
                                            (["attention_weights", "outputs"], [], 413)):
                with self.subTest(outputs=outputs, binary=binary):
                    body, _ = v2(queries, outputs=outputs, binary_outputs=binary)
                    answer = server.request("POST", "/v2/models/base/infer", body)
                    self.assertEqual(answer.status, status, answer)
                    if status == 413:
                        self.error(answer, 413, "max_answer_bytes")
        finally:
            server.stop()

    def test_draining(self):
        server = Server(None, "--drain-delay-ms", str(2000 * PATIENCE))
        connection = server.connect()
        self.assertEqual(server.get("/v2/health/ready", connection=connection).status, 200)
        server.signal()
        self.assertTrue(wait_until(lambda: server.get("/v2/health/ready").status == 503))
        for path in ("/v2/health/ready", "/v2/models/demo/ready"):
            self.error(server.get(path), 503, "stopping")
        self.assertEqual(server.get("/v2/health/live").json, {"live": True})
        body = v2({"queries": ONE})[0]
        self.assertEqual(server.request("POST", INFER, body).status, 200)
        connection.close()
        server.signal()  # the second one ends the delay, and the server
        self.assertEqual(server.wait(), 128 + signal.SIGTERM)

    def test_metrics_have_the_paths_as_labels(self):
        server = Server()
        try:
            server.request("POST", INFER, v2({"queries": ONE})[0])
            server.get("/v2/models/demo/versions/7")
            server.get("/v2/nothing")
            for route, method, code in (("/v2/models/{model}/infer", "POST", 200),
                                        ("/v2/models/{model}/versions/{version}", "GET", 404),
                                        ("/v2 none", "GET", 404)):
                line = (f'attend_http_requests_total{{route="{route}",method="{method}",'
                        f'code="{code}"}} 1\n').encode()
                # a request is counted when its answer has left
                self.assertTrue(wait_until(lambda: line in server.get("/metrics").body), line)
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main()
