"""test_openai: OpenAI's forms: vectors bit for bit those of /encode, every mistake and every status in its form of errors.
Its own client is in tests/clients."""
import base64
import json
import os
import struct
import tempfile
import time
import unittest

from support import PATIENCE, ROOT, Case, Raw, Server, ServerCase, chunked, head_of, wait_until
from test_encode_faults import spiked, write_bert

PATH = "/v1/embeddings"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "on", "mat", ".", "a", "é"]
TEXTS = ["the cat", "a mat .", "É sat"]
IDS = [[2, 4, 5, 3], [7], [10, 8]]
RANDOM = {"transformer": {"random": {"seed": 1}}}
SIZES = {"layers": 2, "width": 16, "heads": 2, "feed_forward": 32, "vocabulary": 20}
BARE = dict(RANDOM, **SIZES, kind="encoder")
VIT = os.path.join(ROOT, "tests", "golden", "models", "vit-a")
DEMO = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
KEY = "alice-0123456789-abcdef"


def floats(text):
    """The numbers of a vector in base64."""
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def f32_bits(vector):
    return struct.pack(f"<{len(vector)}f", *vector)


class OpenAi(Case):
    """Checks of errors in OpenAI's form."""

    def error(self, answer, status, code, param=None, *words, kind="invalid_request_error"):
        self.assertIsNotNone(answer, f"no answer where {status} {code} was due")
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers.get("content-type"), "application/json", answer)
        self.assertLessEqual({"error"}, set(answer.json), answer)
        error = answer.json["error"]
        self.assertEqual(list(error), ["message", "type", "param", "code"], answer)
        self.assertEqual((error["type"], error["param"], error["code"]), (kind, param, code), answer)
        for word in words:
            self.assertIn(word, error["message"])
        return error


class Served(OpenAi, ServerCase):
    settings = ("--access-log", "all", "--max-body-bytes", "1000000", "--max-items", "50")

    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(cls.folder.name, "vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(WORDS) + "\n")
        text = dict(RANDOM, **SIZES, tokenizer=cls.folder.name)
        return Server({"models": {
            "demo": DEMO,
            "bert": dict(text, kind="encoder", positions="learned", max_positions=8),
            "unit": dict(text, kind="encoder", pool="cls", normalize=True),
            "gpt": dict(text, kind="decoder"),
            "pair": dict(text, kind="seq2seq"),
            "bare": BARE,
            "vit": {"transformer": VIT}}}, *cls.settings)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def post(self, request, headers=None, **options):
        return self.server.post(PATH, request, headers, **options)

    def vectors(self, **request):
        """The vectors of an answer, which is whole."""
        answer = self.ok(self.post(request))
        self.assertEqual(list(answer), ["object", "data", "model", "usage"])
        self.assertEqual((answer["object"], answer["model"]), ("list", request["model"]))
        for i, one in enumerate(answer["data"]):
            self.assertEqual((list(one), one["object"], one["index"]),
                             (["object", "index", "embedding"], "embedding", i))
        return [one["embedding"] for one in answer["data"]], answer["usage"]

    def encoded(self, model, **request):
        """What /encode makes of it."""
        answer = self.ok(self.server.post(f"/v1/models/{model}/encode", request))
        return answer["outputs"], answer["usage"]["tokens"]


class Embeddings(Served):
    def test_the_same_as_encode(self):
        """The model's own pool, or the mean; its normalize; and bits that are those of base64, too."""
        for model in ("bert", "unit", "gpt", "pair", "bare"):
            pool = {} if model == "unit" else {"pool": "mean"}
            for native, given in (("text", TEXTS), ("tokens", IDS), ("text", TEXTS[0]), ("tokens", IDS[0])):
                for more in ({}, {"dimensions": 5}):
                    if model == "bare" and native == "text":
                        continue
                    with self.subTest(model=model, given=given, more=more):
                        right, tokens = self.encoded(model, **{native: given}, **pool, **more)
                        right = right if isinstance(right[0], list) else [right]
                        got, usage = self.vectors(model=model, input=given, **more)
                        self.assertEqual(got, right)
                        self.assertEqual(usage, {"prompt_tokens": tokens, "total_tokens": tokens})
                        packed, _ = self.vectors(model=model, input=given, encoding_format="base64", **more)
                        self.assertEqual([f32_bits(floats(one)) for one in packed], [f32_bits(one) for one in right])
                        self.assertEqual(self.vectors(model=model, input=given, encoding_format="float", **more)[0], got)

    def test_many(self):
        """More than one piece of the answer, and more than one worker."""
        texts = [" ".join(["cat", "mat", "the", "a"][(i + j) % 4] for j in range(i % 5 + 1)) for i in range(50)]
        right = self.encoded("unit", text=texts)[0]
        self.assertEqual(self.vectors(model="unit", input=texts)[0], right)
        packed = self.vectors(model="unit", input=texts, encoding_format="base64")[0]
        self.assertEqual([f32_bits(floats(one)) for one in packed], [f32_bits(one) for one in right])

    def test_the_order_of_fields_and_the_cuts_of_the_body(self):
        right = self.post({"model": "bert", "input": TEXTS}).body
        for body in (json.dumps({"input": TEXTS, "model": "bert", "user": "me"}),
                     json.dumps({"user": "", "input": TEXTS, "encoding_format": "float", "model": "bert"}),
                     json.dumps({"input": TEXTS, "truncate": False, "model": "bert"}, indent=3)):
            self.assertEqual(self.post(body.encode()).body, right)
            for size in (1, 7):
                with Raw(self.server) as raw:
                    raw.send(head_of(PATH, None, "Transfer-Encoding: chunked") +
                             chunked(body.encode(), [size] * (len(body) // size + 1)))
                    self.assertEqual(raw.answer().body, right)

    def test_a_long_text_goes_to_a_worker(self):
        text = "the cat sat on a mat . " * 5000
        right = self.encoded("gpt", text=text[:200], pool="mean")[0]
        self.assertEqual(self.vectors(model="gpt", input=[text[:200]])[0], [right])
        cut = self.encoded("bert", text=text, pool="mean", truncate=True)[0]
        self.assertEqual(self.vectors(model="bert", input=text, truncate=True)[0], [cut])
        self.assertEqual(self.vectors(model="bert", input=[text, "a"], truncate=3)[0],
                         self.encoded("bert", text=[text, "a"], pool="mean", truncate=3)[0])
        self.error(self.post({"model": "nobody", "input": text}), 404, "model_not_found", "model")
        self.error(self.post({"model": "bert", "input": ["a", text]}), 400, "invalid_request", "input[1]",
                   "35002 tokens exceed the model's context length of 8", 'set "truncate": true')

    def test_what_is_wrong_with_input(self):
        for given, param, words in (
                (None, "input", "expected a string, a list of strings, a list of tokens, or a list of lists of tokens"),
                (5, "input", "expected a string"), (True, "input", "expected a string"),
                ({}, "input", "expected a string"), ({"text": "a"}, "input", "expected a string"),
                ("", "input", "the text is empty"), (["a", ""], "input[1]", "the text is empty"),
                ([], "input", "the list is empty"), ([[]], "input[0]", "no vector"),
                ([[1], []], "input[1]", "no vector"), ([None], "input[0]", "expected a string"),
                (["a", 5], "input[1]", "expected a string"), (["a", ["b"]], "input[1]", "got a list"),
                ([["a", "b"]], "input[0]", "got a list"), ([1, "a"], "input[1]", ""),
                ([1.5], "input[0]", "integer"), ([1, [2]], "input[1]", ""), ([[1], 2], "input[1]", ""),
                ([[1], ["a"]], "input[1][0]", ""), ([[[1]]], "input[0][0]", ""), ([[1], None], "input[1]", ""),
                ([1, 20], "input[1]", "token 20 is out of range: the vocabulary"),
                ([[1], [2, -1]], "input[1][1]", "token -1 is out of range: the vocabulary"),
                (4000000000, "input", "expected a string"), ([4000000000], "input[0]", ""),
                (list(range(9)), "input", "9 tokens exceed the model's context length of 8: shorten the input"),
                ("the cat sat on the mat .", "input", "9 tokens exceed the model's context length of 8")):
            with self.subTest(given=given):
                self.error(self.post({"model": "bert", "input": given}), 400, "invalid_request", param, words)
        self.error(self.post({"model": "bert"}), 400, "invalid_request", "input", "is missing")
        self.error(self.post({"model": "bare", "input": "a"}), 400, "invalid_request", "input", "has no tokenizer")

    def test_null_is_nothing(self):
        names = ("encoding_format", "dimensions", "user", "truncate")
        right = self.post({"model": "bert", "input": "a"}).body
        self.assertEqual(self.post({"model": "bert", "input": "a", **{name: None for name in names}}).body, right)
        self.assertEqual(self.post({"model": "bert", "input": "a", "user": "u" * 16000}).body, right)

    def test_what_is_wrong_with_other_fields(self):
        for name, values, words in (
                ("model", (5, ["bert"]), "must be a string"),
                ("encoding_format", ("int8", 1), 'must be "float" or "base64"'),
                ("dimensions", (0, -1, 1.5, "4"), "must be an integer of at least 1"),
                ("dimensions", (17,), "17 dimensions exceed the 16 of the model's embeddings"),
                ("user", (5, {}), "user must be a string"),
                ("user", ("u" * 17000,), "longer than 16384 bytes"),
                ("truncate", (0, "yes", -1), "must be true or false, or an integer of at least 1")):
            for value in values:
                with self.subTest(name=name, value=value):
                    self.error(self.post(dict({"model": "bert", "input": "a"}, **{name: value})), 400,
                               "invalid_request", name, words)
        self.error(self.post({"model": "bert", "input": [1], "truncate": True}), 400, "invalid_request", "truncate",
                   '"input" contains token ids')

    def test_unknown_fields(self):
        for name, words in (("text", 'use "input" for texts'), ("tokens", 'use "input" for token ids, too'),
                            ("pool", "POST /v1/models/NAME/encode accepts another"),
                            ("truncate_prompt_tokens", 'use "truncate"'), ("dimension", '"dimensions"'),
                            ("a~b/c", "unknown field")):
            with self.subTest(name=name):
                self.error(self.post({"model": "bert", "input": "a", name: 1}), 400, "invalid_request", name, words)
        self.error(self.post(b'{"input":"a","input":"b"}'), 400, "invalid_request", "input", "duplicate ")

    def test_no_json(self):
        for body, words in ((b"", "the body is empty"), (b'{"input":"a"', "unexpected end of the body"), (b'{"input":["a",}', "at byte 14"),
                            (b'{"input":[[1,}', "at byte 13"), (b'{"input":[ NaN]}', "at byte 11"),
                            (b'{"input":"\x80"}', "at byte 10")):
            with self.subTest(body=body):
                self.error(self.post(body), 400, "invalid_json", None, words)
        self.error(self.post(b"[]"), 400, "invalid_request", None, "must be a JSON object")

    def test_models(self):
        for name in ("nobody", "", "x" * 65, "bert\0", "Bert"):
            self.error(self.post({"input": "a", "model": name}), 404, "model_not_found", "model",
                       "Available: bert, unit, gpt, pair, bare")
        self.error(self.post({"input": "a", "model": "demo"}), 400, "invalid_request", "model",
                   "the model demo (attention) does not support /v1/embeddings")
        self.error(self.post({"input": [1], "model": "vit"}), 400, "invalid_request", "model", "without token embeddings")
        self.error(self.post({"input": "a"}), 400, "invalid_request", "model", "is missing. Available: bert, unit")

    def test_without_a_name_the_only_one_is_asked(self):
        server = Server({"models": {"demo": DEMO, "one": BARE}})
        self.addCleanup(server.stop)
        self.assertEqual(self.ok(server.post(PATH, {"input": [1]}))["model"], "one")
        none = Server({"models": {"demo": DEMO}})
        self.addCleanup(none.stop)
        self.error(none.post(PATH, {"input": [1]}), 400, "invalid_request", "model", "no loaded model supports /v1/embeddings")

    def test_headers(self):
        good = {"model": "bert", "input": "a"}
        body = json.dumps(good).encode()
        for accept in ("*/*", "application/json", "text/html, */*;q=0.1"):
            self.assertEqual(self.post(good, {"Accept": accept}).status, 200)
        for accept in ("application/x-safetensors", "text/html", "application/json;q=0"):
            self.error(self.post(good, {"Accept": accept}), 406, "not_acceptable", None, "application/json")
        for kind in ("application/x-safetensors", "application/octet-stream", "text/plain"):
            self.error(self.post(good, {"Content-Type": kind}), 415, "unsupported_media_type", None, "application/json")
        self.error(self.post(good, {"Content-Encoding": "gzip"}), 415, "unsupported_media_type")
        self.assertEqual(self.server.request("POST", PATH, body).status, 200)
        for method in ("GET", "PUT", "DELETE"):
            answer = self.server.request(method, PATH)
            self.error(answer, 405, "method_not_allowed", None, "POST")
            self.assertEqual(answer.headers["allow"], "POST")
        self.assertEqual(self.server.request("HEAD", PATH).status, 405)
        self.error(self.post(good, {"X-Timeout-Ms": "soon"}), 400, "invalid_request", None, "X-Timeout-Ms")
        self.error(self.server.request("POST", PATH, None, {"Transfer-Encoding": "gzip"}), 501,
                   "unsupported_transfer_encoding", kind="server_error")
        self.assertEqual(self.server.request("POST", PATH + "?api-version=1", body).status, 200)
        self.problem(self.server.post("/v1/embedding", good), 404, "not-found")
        self.assertEqual(self.server.post(PATH + "/", good).status, 200)

    def test_limits(self):
        error = self.error(self.post({"model": "bert", "input": ["a"] * 51}), 413, "too_large", None, "max_items")
        self.assertEqual(error["message"], "more than 50 texts (setting max_items)")
        self.error(self.post({"model": "bert", "input": [[1]] * 51}), 413, "too_large", None, "max_items")
        self.error(self.post({"model": "bert", "input": "a" * 1000000}), 413, "too_large", None, "max_body_bytes")
        with Raw(self.server) as raw:  # of a body whose end nobody knows
            raw.send(head_of(PATH, None, "Transfer-Encoding: chunked") +
                     chunked(b'{"input":"' + b"a" * 2100000, [2100010])[:-5])
            self.error(raw.answer(), 413, "too_large", None, "max_body_bytes")
        server = Server({"models": {"bare": BARE}}, "--max-answer-bytes", "2500")
        self.addCleanup(server.stop)
        for more, few, many in (({}, 5, 10), ({"encoding_format": "base64"}, 10, 20), ({"dimensions": 2}, 15, 30)):
            self.assertEqual(server.post(PATH, dict(more, input=[[1]] * few)).status, 200)
            self.error(server.post(PATH, dict(more, input=[[1]] * many)), 413, "too_large", None, "max_answer_bytes")

    def test_log_and_metrics(self):
        def line(name):
            def found():
                return [json.loads(l) for l in self.server.lines if f'"{name}"' in l]
            self.assertTrue(wait_until(found))
            return found()[0]
        label = f'route="{PATH}"'
        before = self.server.metric("attend_tokens_total", 'work="encode"')
        self.post({"input": IDS, "model": "bert"}, {"X-Request-Id": "vectors-1"})
        self.post({"input": [99], "model": "bert"}, {"X-Request-Id": "vectors-2"})
        self.post({"input": [9], "model": "who"}, {"X-Request-Id": "vectors-3"})
        told = [line(f"vectors-{i}") for i in (1, 2, 3)]
        self.assertEqual([(one["route"], one.get("model"), one["status"], one.get("error")) for one in told],
                         [(PATH, "bert", 200, None), (PATH, "bert", 400, "invalid-request"),
                          (PATH, None, 404, "unknown-model")])
        self.assertEqual(told[0]["tokens"], 7)
        self.assertEqual(self.server.metric("attend_tokens_total", 'work="encode"') - before, 7)
        for code in (200, 400, 404):
            self.assertGreaterEqual(self.server.metric("attend_http_requests_total", f'{label},method="POST",code="{code}"'), 1)


class Statuses(OpenAi):
    """Statuses that need a server in trouble."""

    def start(self, *args, models=None, folder=None):
        server = Server({"models": models or {"bare": BARE}}, *args, folder=folder)
        self.addCleanup(server.kill)
        return server

    def test_keys(self):
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(KEY + "\n")
        self.addCleanup(os.unlink, file.name)
        os.chmod(file.name, 0o600)
        server = self.start("--api-key-file", file.name)
        for headers in ({}, {"Authorization": "Bearer sk-wrong-0123456789"}):
            answer = server.post(PATH, {"input": [1]}, headers)
            self.error(answer, 401, "invalid_api_key")
            self.assertIn("Bearer", answer.headers["www-authenticate"])
        self.assertEqual(server.post(PATH, {"input": [1]}, {"Authorization": f"Bearer {KEY}"}).status, 200)

    def test_a_body_that_does_not_come(self):
        server = self.start("--body-timeout-ms", "300")
        with Raw(server) as raw:
            raw.send(head_of(PATH, 9) + b"{")
            self.error(raw.answer(), 408, "too_slow")

    def test_beyond_float32(self):
        with tempfile.TemporaryDirectory() as folder:
            server = self.start(models={"spiked": write_bert(folder, "spiked", spiked)}, folder=folder)
            self.assertEqual(server.post(PATH, {"input": [[1], [2]]}).status, 200)
            self.error(server.post(PATH, {"input": [[1], [2, 9]]}), 422, "not_finite", None, "value 1 of item 1 exceeds the float32 range")

    def test_a_full_budget(self):
        server = self.start("--memory-budget-bytes", "200000")
        answer = server.post(PATH, {"input": [[1] * 100] * 500})
        self.error(answer, 413, "too_large", None, "memory_budget_bytes")

    def test_deadline(self):
        """Nothing here would end within a test's patience, if it was computed to its end."""
        server = self.start("--workers", "1", "--deadline-ms", "500", "--max-pairs", str(10 ** 15),
                            models={"deep": dict(BARE, layers=3000, width=8, heads=2, feed_forward=8)})
        self.error(server.post(PATH, {"input": [7] * 3000}), 504, "deadline_exceeded", kind="server_error")

    def test_a_full_queue(self):
        server = self.start("--workers", "1", "--max-queue", "1", "--merge=false", "--max-pairs", str(10 ** 15),
                            models={"deep": dict(BARE, layers=3000, width=8, heads=2, feed_forward=8)})
        body = json.dumps({"input": [7] * 3000}).encode()

        def becomes(name, value):
            self.assertTrue(wait_until(lambda: server.metric(name) == value), name)

        def refused():
            with Raw(server) as waits:
                waits.send(head_of(PATH, len(body)) + body)
                becomes("attend_queue_depth", 1)
                answer = server.post(PATH, {"input": [1]}, {"X-Timeout-Ms": "1"})
            if answer.status == 504:
                return False
            self.error(answer, 429, "rate_limit_exceeded", kind="rate_limit_error")
            self.assertIn("retry-after", answer.headers)
            return True
        with Raw(server) as runs:
            runs.send(head_of(PATH, len(body)) + body)
            becomes("attend_running", 1)
            self.assertTrue(wait_until(refused))

    def test_a_stop(self):
        server = self.start("--drain-ms", str(1000 * PATIENCE))
        connection = server.connect()
        self.assertEqual(server.post(PATH, {"input": [1]}, connection=connection).status, 200)
        with Raw(server) as raw:
            raw.send(head_of(PATH, 100) + b"{")
            self.assertTrue(wait_until(lambda: server.metric("attend_connections") >= 3))
            server.signal()
            answer = raw.answer()
            self.error(answer, 503, "draining", kind="server_error")
        connection.close()
        self.assertEqual(server.wait(), 0)

    def test_pages(self):
        page = "https://a.example"
        server = self.start("--cors-origins", page)
        answer = server.request("OPTIONS", PATH, headers={"Origin": page, "Access-Control-Request-Method": "POST"})
        self.assertEqual((answer.status, answer.headers["access-control-allow-methods"]), (204, "POST"))
        for request, status in (({"input": [1]}, 200), ({"input": []}, 400)):
            answer = server.post(PATH, request, {"Origin": page})
            self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (status, page))


class Models(Served):
    def test_the_list(self):
        answer = self.ok(self.server.get("/v1/models"))
        self.assertEqual(list(answer), ["models", "object", "data"])
        self.assertEqual(answer["object"], "list")
        self.assertEqual([one["id"] for one in answer["data"]], [one["name"] for one in answer["models"]])
        for one in answer["data"]:
            self.assertEqual(list(one), ["id", "object", "created", "owned_by"])
            self.assertEqual((one["object"], one["owned_by"]), ("model", "attend"))
            self.assertTrue(abs(time.time() - one["created"]) < 10 * PATIENCE, one)

    def test_one(self):
        answer = self.ok(self.server.get("/v1/models"))
        for native, one in zip(answer["models"], answer["data"]):
            whole = self.ok(self.server.get(f"/v1/models/{one['id']}"))
            self.assertEqual(whole.pop("pieces", None) is not None, "family" in native)
            self.assertEqual(list(whole), list(native) + list(one))
            self.assertEqual(whole, dict(native, **one))

    def test_v2_has_names_alone(self):
        self.assertEqual(list(self.ok(self.server.get("/v2/models"))), ["models"])


if __name__ == "__main__":
    unittest.main()
