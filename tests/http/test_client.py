"""test_client: server/client/attend.py, with numpy and without it: every form, errors, one connection kept open."""
import contextlib
import http.client
import importlib.util
import json
import math
import os
import random
import socket
import sys
import tempfile
import threading
import unittest
from unittest import mock

from needs import needs
from support import PATIENCE, ROOT, TOY, Case, Server, ServerCase, f32, flat, randoms

try:
    import numpy
except ImportError:
    numpy = None

KEY = "a-key-of-the-tests-0123"
RAGGED = [[[1, 0, 0, 1]], [[0, 1, 1, 0], [1, 1, 0, 0]]]
FORMS = ("json", "base64", "safetensors")


def load(with_numpy):
    """The client as a module of its own, in a world with numpy or without."""
    path = os.path.join(ROOT, "server", "client", "attend.py")
    spec = importlib.util.spec_from_file_location("attend", path)
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {} if with_numpy else {"numpy": None}):
        spec.loader.exec_module(module)
    return module


PLAIN = load(False)


def lists(value):
    """An answer without arrays."""
    if isinstance(value, dict):
        return {name: lists(part) for name, part in value.items()}
    if isinstance(value, list):
        return [lists(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


class Stub:
    """A server that says what it is told: for each connection the answers to its requests, one after the other. It
    keeps what it was asked. A connection is closed after its last answer."""

    def __init__(self, *connections):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked = []
        self.closed = threading.Semaphore(0)  # a connection has been
        self.thread = threading.Thread(target=self.serve, args=connections, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)  # which wakes the thread
        self.thread.join(PATIENCE)
        self.socket.close()

    def serve(self, *connections):
        for answers in connections:
            with contextlib.suppress(OSError):
                connection, _ = self.socket.accept()
                with connection, connection.makefile("rb") as lines:
                    for answer in answers:
                        head = [lines.readline()]
                        while head[-1].strip():
                            head.append(lines.readline())
                        length = [int(h.split(b":")[1]) for h in head if h.lower().startswith(b"content-length")]
                        self.asked.append((b"".join(head).decode(), lines.read(sum(length))))
                        connection.sendall(answer)
            self.closed.release()


def answer(status=200, body=b'{"model":"m","outputs":[]}', *headers, kind="application/json"):
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def problem(status, *headers, **fields):
    return answer(status, json.dumps(dict(fields, status=status)).encode(), *headers,
                  kind="application/problem+json")


class Plain(ServerCase):
    """Without numpy; the lists that come back are the server's."""

    attend = PLAIN

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.server.port}"

    def client(self, *args, **more):
        client = self.attend.Client(*(args or (self.url,)), **more)
        self.addCleanup(client.close)
        return client

    def arrays(self, fields):
        """The arguments of a call, in the kind that this class is about."""
        return fields

    def right(self, path, fields):
        """What the server itself answers to this as JSON, in float32 as it is."""
        return self.ok(self.server.post(path, fields))

    def check(self, fields, form, model="demo"):
        got = self.client(model=model).attention(**self.arrays(fields), form=form)
        wanted = self.right(f"/v1/models/{model}/attention", fields)
        self.assertEqual(got.keys(), wanted.keys())
        for name, value in wanted.items():
            if name == "model":
                self.assertEqual(got[name], value)
            else:
                self.close_to(lists(got[name]), value, 0 if form == "json" else 1e-7)
        return got

    def test_every_field_in_every_form(self):
        rng = random.Random(1)
        fields = {"queries": randoms(rng, 2, 3, 4), "keys": randoms(rng, 2, 5, 4), "values": randoms(rng, 2, 5, 4),
                  "valid_lens": [[5, 4, 3], [2, 5, 5]], "mask": [[True, False, True, True, True]] * 3,
                  "bias": randoms(rng, 2, 2, 3, 5), "causal": True, "causal_offset": [1, 2], "window": [4, 4],
                  "head_mask": [1, 0.5], "segments": [[2, 3], [1, 4]], "return_attention": True,
                  "return_pointers": True, "empty_rows": "zero"}
        for form in FORMS:
            with self.subTest(form):
                got = self.check(fields, form)
                self.assertIn("segment_weights", got)

    def test_self_attention_and_scalars(self):
        for form in FORMS:
            with self.subTest(form):
                self.check({"queries": TOY["queries"], "causal": True, "causal_offset": 1, "select": "sample",
                            "seed": 7, "return_attention": "average"}, form)

    def test_ragged(self):
        for form in ("json", "base64"):
            with self.subTest(form):
                got = self.check({"queries": RAGGED, "valid_lens": [[1], [2, 1]]}, form)
                self.assertEqual([len(item) for item in got["outputs"]], [1, 2])
        with self.assertRaisesRegex(ValueError, "the items of queries differ in shape"):
            self.client(model="demo").attention(self.arrays({"queries": RAGGED})["queries"], form="safetensors")

    def test_a_single_item(self):
        for form in FORMS:
            with self.subTest(form):
                self.check({"queries": [[1, 0, 0, 1]]}, form)

    def test_nothing(self):
        client = self.client(model="demo")
        for form in ("json", "base64"):
            for queries in ([], [[], []], [[], [[1, 0, 0, 1]]]):
                with self.subTest(form, queries=queries):
                    got = lists(client.attention(queries, form=form)["outputs"])
                    self.assertEqual([len(item) for item in got], [len(item) for item in queries])
        self.assertEqual(lists(self.attend._read(b"", "F32", [2, 0, 4])), [[], []])
        self.assertEqual(lists(self.attend._read(b"", "F32", [0, 2, 4])), [])

    def test_heads(self):
        for form in FORMS:
            with self.subTest(form):
                fields = {"queries": TOY["queries"], "gradients": TOY["queries"]}
                got = self.client().heads(**self.arrays(fields), model="demo", form=form)
                self.assertEqual(dict(got), self.right("/v1/models/demo/heads", fields))
        with self.assertRaisesRegex(ValueError, "needs the name of a model"):
            self.client().heads(TOY["queries"])

    def test_what_heads_are_worth(self):
        drawn = {"transformer": {"random": {"seed": 1}}, "layers": 2, "width": 8, "heads": 2, "feed_forward": 8,
                 "vocabulary": 9}
        server = Server({"models": {"decoder": dict(drawn, kind="decoder"), "encoder": dict(drawn, kind="encoder")}})
        self.addCleanup(server.stop)
        asked = {"tokens": [[1, 2], [3]], "targets": [[4], [5, 6]], "attentions": ["decoder.-1.self"]}
        with self.attend.Client(f"http://127.0.0.1:{server.port}", model="decoder") as client:
            right = server.post("/v1/models/decoder/heads", asked).json
            self.assertEqual(dict(client.worth(**asked)), right)
            *events, last = client.stream_worth(**asked)
            self.assertEqual(last, right)
            self.assertEqual({(e["attention"], e["head"]): e["loss"] for e in events},
                             {("decoder.1.self", head): loss for head, loss in enumerate(right["heads"]["decoder.1.self"])})
            right = server.post("/v1/models/encoder/heads", {"tokens": [1, 2]}).json
            self.assertEqual(dict(client.worth([1, 2], model="encoder")), right)
            with self.assertRaises(self.attend.Error) as refused:
                list(client.stream_worth([1, 2], [3], model="encoder"))
            self.assertEqual((refused.exception.status, refused.exception.pointer), (400, "/targets"))

    def encoded(self, fields, form):
        """An answer of the model that sorts, beside what the server itself says."""
        got = lists(self.client(model="sort").encode(**self.arrays(fields), form=form))
        wanted = self.right("/v1/models/sort/encode", fields)
        if form != "json":
            self.assertEqual(got.pop("valid_lens"), [len(item) for item in fields.get("tokens") or fields["embeddings"]])
        self.assertEqual(got.keys(), wanted.keys())
        self.assertEqual((got["usage"], got["model"]), (wanted["usage"], "sort"))
        for group in ("hidden", "attention"):
            self.assertEqual(got.get(group, {}).keys(), wanted.get(group, {}).keys())
            for name, value in wanted.get(group, {}).items():
                self.assertEqual([f32(x) for x in flat(got[group][name])], [f32(x) for x in flat(value)])
        self.assertEqual([f32(x) for x in flat(got["outputs"])], [f32(x) for x in flat(wanted["outputs"])])
        return got

    def test_encode_in_every_form(self):
        rng = random.Random(2)
        for inputs in ({"tokens": [[9, 4, 27], [3, 1, 2]]}, {"embeddings": randoms(rng, 2, 3, 32)}):
            for form in FORMS:
                with self.subTest(form, inputs=list(inputs)):
                    self.encoded({**inputs, "return_hidden": ["encoder.*", "encoder.-1.self.input"],
                                  "return_attention": True, "head_mask": {"encoder.1.self": [1, 0, 1, 0.5]}}, form)
                    got = self.encoded({**inputs, "pool": "mean", "dimensions": 3, "normalize": True}, form)
                    self.assertEqual([len(item) for item in got["outputs"]], [3, 3])

    def test_encode_sorts(self):
        for form in FORMS:
            with self.subTest(form):
                got = lists(self.client(model="sort").encode([9, 4, 27, 4, 13], form=form)["outputs"])
                self.assertEqual([row.index(max(row)) for row in got], [4, 4, 9, 13, 27])

    def test_ragged_tokens(self):
        client = self.client(model="sort")
        for form in ("json", "base64"):
            with self.subTest(form):
                got = client.encode([[5], [3, 2]], form=form, pool="mean", valid_lens=[1, 1])
                self.assertEqual(got["usage"]["tokens"], 2)
                self.assertEqual(lists(got["outputs"])[1], lists(client.encode([3], form=form, pool="mean"))["outputs"])
        with self.assertRaisesRegex(ValueError, "the items of tokens differ in shape"):
            client.encode([[5], [3, 2]], form="safetensors")

    def test_thumbnails(self):
        for form in FORMS:
            with self.subTest(form):
                got = lists(self.client(model="sort").encode(
                    [[2, 1], [4, 3]], form=form, head_mask=self.arrays({"encoder.0.self": [1, 1, 1, 0]}),
                    return_attention={"of": ["encoder.2.self"], "as": {"thumbnails": 2}}))
                first = got["thumbnails"]["encoder.2.self"][0]
                self.assertEqual([len(first), len(first[0]), len(first[0][0])], [4, 2, 2])
                self.assertTrue(all(0 <= byte <= 255 for head in first for row in head for byte in row))

    def test_one_attention_of_a_whole_model(self):
        client = self.client(model="sort")
        for form in FORMS:
            with self.subTest(form):
                whole = client.encode([9, 4, 27], form=form, return_attention=["encoder.1.self"],
                                      return_hidden=["encoder.1.self.input"])
                rows = whole["hidden"]["encoder.1.self.input"]
                alone = client.attention(rows, layer="encoder.1.self", form=form, return_attention=True)
                self.assertEqual(lists(alone["attention_weights"]), lists(whole["attention"]["encoder.1.self"]))
                self.assertEqual(len(client.heads([lists(rows)], layer="encoder.1.self", form=form)["heads"]), 4)

    def test_encode_needs_a_model(self):
        with self.assertRaisesRegex(ValueError, r"encode\(\) needs the name of a model"):
            self.client().encode([1])
        with self.assertRaisesRegex(ValueError, "needs the name of a model"):
            self.client().attention(TOY["queries"], layer="encoder.0.self")
        self.refused(lambda: self.client(model="sort").encode([[1], [99]]), 400, pointer="/tokens/1/0")
        self.refused(lambda: self.client(model="demo").encode([1]), 404)

    def test_generate_needs_a_decoder(self):
        with self.assertRaisesRegex(ValueError, r"generate\(\) needs the name of a model"):
            self.client().generate([1])
        self.refused(lambda: self.client(model="sort").generate([[1]]), 404)
        self.refused(lambda: list(self.client(model="sort").stream([[1]])), 404)

    def test_score_needs_a_decoder(self):
        with self.assertRaisesRegex(ValueError, r"score\(\) needs the name of a model"):
            self.client().score([1], [2])
        for form in FORMS:
            self.refused(lambda form=form: self.client(model="sort").score([[1]], [[2]], form=form, target_lens=[1]),
                         404)

    def test_models(self):
        models = self.client().models()
        self.assertEqual(list(models), ["words", "story", "sort", "demo", "base", "additive"])
        self.assertEqual(models["demo"]["query_size"], 4)

    def test_what_comes_with_an_answer(self):
        got = self.client().attention(TOY["queries"], request_id="mine-1")
        self.assertEqual(got.request_id, "mine-1")
        self.assertEqual(list(got.timing), ["decode", "queue", "compute", "encode"])
        self.assertTrue(all(ms >= 0 for ms in got.timing.values()))

    def refused(self, call, status, **wanted):
        with self.assertRaises(self.attend.Error) as caught:
            call()
        error = caught.exception
        self.assertEqual(error.status, status, error)
        for name, value in wanted.items():
            self.assertEqual(getattr(error, name), value, name)
        return error

    def test_errors_say_where(self):
        client = self.client(model="demo")
        error = self.refused(lambda: client.attention([[[1, 0, 0, 1], [0, 1]]], request_id="mine-2"), 400,
                             pointer="/queries/0/1", title="Invalid request", request_id="mine-2",
                             type="/problems/invalid-request", limit=None, offset=None, retry_after=None)
        self.assertEqual(str(error), f"400 Invalid request: {error.detail} (pointer /queries/0/1)")
        self.refused(lambda: client.attention(TOY["queries"], model="no/such"), 404)
        self.refused(lambda: client.attention(TOY["queries"], nonsense=1), 400, pointer="/nonsense")
        self.assertEqual(client.attention(TOY["queries"])["model"], "demo", "the connection goes on")

    def test_numbers_that_json_has_not(self):
        client = self.client(model="demo")
        hidden = {"queries": TOY["queries"], "bias": [[0, -math.inf], [0, 0]], "return_attention": "average"}
        with self.assertRaises(ValueError):
            client.attention(**hidden)
        got = client.attention(**self.arrays(hidden), form="safetensors")
        self.assertEqual(lists(got["attention_weights"])[0][0], [1, 0])

    def test_what_is_no_form_and_no_url(self):
        with self.assertRaisesRegex(ValueError, "'xml', not one of json, base64, safetensors"):
            self.client().attention(TOY["queries"], form="xml")
        for url in ("127.0.0.1:8080", "ftp://127.0.0.1", "http://"):
            with self.subTest(url), self.assertRaisesRegex(ValueError, "not the URL of a server"):
                self.attend.Client(url)

    def test_numbers_of_the_wrong_kind(self):
        client = self.client(model="demo")
        for name, value in (("valid_lens", [1.5]), ("mask", [[0.0, -1.0], [0.0, 0.0]]), ("queries", [[["a"] * 4]])):
            with self.subTest(name), self.assertRaises(TypeError):
                client.attention(**self.arrays({"queries": TOY["queries"], name: value}), form="safetensors")

    def test_a_body_that_is_too_large(self):
        """Refused before it is read, while it is being sent."""
        server = Server({"max_body_bytes": 1000})
        self.addCleanup(server.stop)
        client = self.client(f"http://127.0.0.1:{server.port}")
        self.refused(lambda: client.attention([[[0.5] * 4] * 100_000]), 413, limit="max_body_bytes")
        self.assertEqual(client.attention([[1, 0, 0, 1]])["model"], "demo", "the connection is opened again")

    def test_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "keys")
            with open(path, "w", encoding="ascii") as file:
                file.write(KEY + "\n")
            os.chmod(path, 0o600)
            server = Server(None, "--api-key-file", path)
        self.addCleanup(server.stop)
        url = f"http://127.0.0.1:{server.port}"
        self.refused(lambda: self.client(url).models(), 401)
        self.assertIn("demo", self.client(url, api_key=KEY).models())

    def test_one_connection(self):
        with Stub([answer()] * 3) as stub:
            client = self.client(stub.url + "/below/")
            for _ in range(2):
                client.attention([], model="a b", request_id="x")
            client.attention([])
        self.assertEqual([head.splitlines()[0] for head, _ in stub.asked],
                         ["POST /below/v1/models/a%20b/attention HTTP/1.1"] * 2 +
                         ["POST /below/v1/attention HTTP/1.1"])

    def test_opened_again_where_the_server_has_closed_it(self):
        with Stub([answer()], [answer(), answer()]) as stub:
            client = self.client(stub.url, timeout=PATIENCE)
            client.attention([])
            self.assertTrue(stub.closed.acquire(timeout=PATIENCE))
            client.attention([])
            client.attention([])
        self.assertEqual(len(stub.asked), 3)

    def test_a_server_that_closes_at_once_is_not_asked_for_ever(self):
        with Stub([], []) as stub, self.assertRaises(ConnectionError):
            self.client(stub.url).models()
        free = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        free.close()
        with self.assertRaises(ConnectionRefusedError):
            self.client(url).models()

    def test_an_answer_that_is_cut_off(self):
        with Stub([answer()[:-5]], [answer()]) as stub:
            client = self.client(stub.url)
            with self.assertRaises(http.client.IncompleteRead):
                client.attention([])
            self.assertEqual(client.attention([])["model"], "m")

    def test_a_server_that_is_silent(self):
        with Stub([b"", b""]) as stub:
            with self.assertRaises(TimeoutError):
                self.client(stub.url, timeout=0.001).attention([])  # and a second more for the network
        self.assertIn("X-Timeout-Ms: 1\r\n", stub.asked[0][0])

    def test_the_timeout_is_the_servers_too(self):
        with Stub([answer(), answer()]) as stub:
            client = self.client(stub.url, timeout=2.5)
            client.attention([])
            client.timeout = 1e6
            client.attention([])
        self.assertIn("X-Timeout-Ms: 2500\r\n", stub.asked[0][0])
        self.assertIn("X-Timeout-Ms: 86400000\r\n", stub.asked[1][0])

    def test_what_is_refused_for_now(self):
        with Stub([problem(429, "Retry-After: 3", title="Too much", detail="the queue is full", limit="max_queue"),
                   answer(502, b"<html>no upstream</html>", "Retry-After: soon", kind="text/html"),
                   answer(500, b"[]"), answer()]) as stub:
            client = self.client(stub.url)
            error = self.refused(lambda: client.attention([]), 429, retry_after=3, limit="max_queue")
            self.assertEqual(str(error), "429 Too much: the queue is full (limit max_queue)")
            self.refused(lambda: client.attention([]), 502, retry_after=None, title="Bad Gateway",
                         detail="<html>no upstream</html>")
            self.refused(lambda: client.attention([]), 500, detail="[]")
            self.assertEqual(client.attention([])["model"], "m")


@needs("test", "numpy")
class WithNumpy(Plain):
    """Arrays in, and arrays out where the answer is not text."""

    attend = load(True)
    KINDS = {"valid_lens": "i4", "segments": "i4", "causal_offset": "i8"}

    def arrays(self, fields):
        def array(name, value):
            try:
                return numpy.array(value, self.KINDS.get(name) if value != [1.5] else None)
            except ValueError:  # ragged
                return [numpy.array(item) for item in value]
        return {name: array(name, value) if isinstance(value, list) and name != "window" else value
                for name, value in fields.items()}

    def test_arrays_come_back(self):
        client = self.client(model="demo")
        for form in ("base64", "safetensors"):
            got = client.attention(numpy.eye(4), form=form, return_pointers=True)
            self.assertEqual((got["outputs"].dtype, got["outputs"].shape), (numpy.float32, (4, 4)))
        self.assertEqual(got["pointers"].dtype, numpy.int64)
        self.assertIsInstance(client.attention(numpy.eye(4))["outputs"], list)
        for item in client.attention([numpy.eye(4), numpy.ones((1, 4))], form="base64")["outputs"]:
            self.assertEqual(item.dtype, numpy.float32)

    def test_every_kind_of_number(self):
        client = self.client(model="demo")
        wanted = client.attention(numpy.eye(4).tolist())["outputs"]
        for kind in ("f2", "f4", "f8", ">f4", "i1", "u8"):
            for form in FORMS:
                with self.subTest(kind, form=form):
                    self.close_to(lists(client.attention(numpy.eye(4, dtype=kind), form=form)["outputs"]),
                                  wanted, 1e-7)


def singles(value):
    """The numbers of an answer, which are written as short as they can be, as float32."""
    if isinstance(value, dict):
        return {name: singles(part) for name, part in value.items()}
    if isinstance(value, list):
        return [singles(part) for part in value]
    return f32(value) if isinstance(value, float) else value


class Whole(ServerCase):
    """Whole encoders, in every form, with numpy and without."""

    TEXTS = [[1, 2, 3], [4, 5, 0]]
    ASKED = {"valid_lens": [3, 2], "return_hidden": ["encoder.*"], "return_attention": True,
             "head_mask": {"encoder.0.self": [1, 0.5]}}

    @classmethod
    def start(cls):
        small = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 8, "heads": 2,
                 "feed_forward": 16, "vocabulary": 9}
        return Server({"models": {"small": small, "sorts": dict(small, labels=["a", 'b "c"']), "decoder": dict(small, kind="decoder", vocabulary=50)}})

    def clients(self, **options):
        for module in [PLAIN] + ([load(True)] if numpy else []):
            with module.Client(f"http://127.0.0.1:{self.server.port}", "small", **options) as client:
                yield client

    def test_a_decoder_goes_on(self):
        asked = {"tokens": [[1, 2], [3]], "max_tokens": 5, "min_tokens": 5, "return_top": 2, "model": "decoder"}
        for client in self.clients():
            whole = client.generate(**asked)
            events = list(client.stream(**asked))
            self.assertEqual(events[-1], {"usage": whole["usage"]})
            for item, [sequence] in enumerate(whole["sequences"]):
                own = [event for event in events[:-1] if event["item"] == item]
                self.assertEqual([event["token"] for event in own[:-1]], sequence["tokens"])
                self.assertEqual([event["top"] for event in own[:-1]], sequence["top"])
                self.assertEqual(own[-1]["score"], sequence["score"])
            with self.assertRaises(Exception) as caught:
                list(client.stream([[1]], top_p=2, model="decoder"))
            self.assertEqual((caught.exception.status, caught.exception.pointer), (400, "/top_p"))
            stream = client.stream(**asked)
            next(stream)
            stream.close()
            self.assertEqual(client.generate(**asked)["sequences"], whole["sequences"])

    def cut(self, name, item, length):
        """An item without the zeros behind it."""
        return [[row[:length] for row in head[:length]] for head in item] if name == "attention" else item[:length]

    def test_every_form(self):
        right = self.server.post("/v1/models/small/encode", dict(self.ASKED, tokens=self.TEXTS)).json
        right = singles(right)
        for form in FORMS:
            for client in self.clients(form=form):
                got = singles(lists(client.encode(self.TEXTS, **self.ASKED)))
                self.assertEqual((got["model"], got["usage"]), ("small", right["usage"]))
                for i, length in enumerate((3, 2)):
                    self.assertEqual(self.cut("outputs", got["outputs"][i], length), right["outputs"][i])
                    for group in ("hidden", "attention"):
                        self.assertEqual(list(got[group]), list(right[group]))
                        for name, items in got[group].items():
                            self.assertEqual(self.cut(group, items[i], length), right[group][name][i])
                self.assertEqual(got.get("valid_lens", [3, 2]), [3, 2])

    def test_vectors_and_thumbnails(self):
        wish = {"of": ["encoder.1.self"], "as": {"thumbnails": 2}}
        request = {"tokens": self.TEXTS[0], "pool": "mean", "return_attention": wish}
        right = self.server.post("/v1/models/small/encode", request).json
        for form in FORMS:
            for client in self.clients(form=form):
                got = singles(lists(client.encode(**request)))
                self.assertEqual(got["outputs"], singles(right["outputs"]))
                [picture] = got["thumbnails"].values()
                self.assertEqual([len(picture), len(picture[0]), len(picture[0][0])], [2, 2, 2])
                self.assertEqual(got.get("valid_lens", 3), 3)

    def test_classes(self):
        right = self.server.post("/v1/models/sorts/classify", {"tokens": self.TEXTS}).json
        for form in FORMS:
            for client in self.clients(form=form):
                got = singles(lists(client.classify(self.TEXTS, model="sorts")))
                self.assertEqual((got["outputs"], got["labels"]), (singles(right["outputs"]), ["a", 'b "c"']))
                alone = client.classify(self.TEXTS[0], model="sorts", function="none")
                self.assertEqual(len(lists(alone["outputs"])), 2)

    def test_mistakes(self):
        for client in self.clients():
            with self.assertRaisesRegex(Exception, "token 9") as caught:
                client.encode([[9]])
            self.assertEqual(caught.exception.pointer, "/tokens/0/0")
            client.model = None
            with self.assertRaisesRegex(ValueError, "encode.. needs the name of a model"):
                client.encode([[1]])


if __name__ == "__main__":
    unittest.main()
