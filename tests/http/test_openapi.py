"""test_openapi: /openapi.json describes every route, request and response, and its examples are what the server does.

Needs Debian's python3-jsonschema. tests/clients checks that the document is valid."""
import json
import os
import re
import shutil
import struct
import tempfile
import unittest

import jsonschema

from support import ROOT, Case, Server, safetensors_bytes

# The configuration of tests/example whose server each operation's examples are sent to; "": a server without one. A name of
# two words is a single example. The web UI, the metrics and the document itself have no examples.
EXAMPLES = {
    "": """attend attendWith attendInside measureHeads measureInside describeModel listModels health ready teiHealth
        teiPing v2Server v2Live v2Ready v2Models v2Model v2ModelVersion v2ModelReady v2ModelReadyVersion v2Infer v2InferVersion""",
    "attend.json": "generate beam_search",
    "tasks.json": """embed teiEmbeddings complete chat rerank rerankV2 cohereEmbed cohereEmbedV2 encode classify classifyTokens answerQuestion fill score generate
        tokenize detokenize render teiRoot teiEmbed teiEmbedAll teiEmbedSparse teiSimilarity teiTokenize teiDecode teiRerank teiPredict teiInfo"""}
# These differ between runs, releases and processors. Random ids differ, too.
VOLATILE = ("created", "version", "bytes", "engine", "tokenization_workers")
WITHOUT_EXAMPLE = ("openapi",)  # its response is JSON, but the document would contain itself
ITEM = [[[1, 0, 0, 1], [0, 1, 1, 0]]]
ASK = {"queries": ITEM, "return_attention": True, "return_pointers": True}
SAFETENSORS = "application/x-safetensors"
V2 = "/v2/models/demo"
DEMO = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
# All there is to say of a model, in one or the other.
MODELS = {"demo": DEMO, "turned": dict(DEMO, rope={"base": 500}, key_size=6),
          "near": dict(DEMO, relative_bias={"max_distance": 16}, value_size=6),
          "sum": dict(DEMO, score="additive", score_size=3)}


WHOLE = {"transformer": {"random": {"seed": 1}}, "kind": "encoder", "layers": 2, "width": 4,
         "heads": 2, "feed_forward": 8, "vocabulary": 9}
TEXT = {"tokens": [[1, 2], [3]]}
WORDS = {"model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2}},
         "pre_tokenizer": {"type": "Whitespace"}}


def path_of(template):
    """A path with the names that it needs."""
    model = ("words" if "tokenize" in template else "tags" if "/classify_tokens" in template else "reads" if "/question" in template else "sorts" if "/classify" in template else
             "whole" if "/encode" in template or "/render" in template or "{layer}" in template else "demo")
    return template.replace("{model}", model).replace("{layer}", "encoder.0.self").replace("{slug}", "invalid-json")


def request_of(template):
    if template.endswith("/tokenize"):
        return {"text": "a b"}
    if template == "/v1/completions":
        return {"model": "words", "prompt": "a b"}
    if template == "/v1/chat/completions":
        return {"model": "words", "messages": [{"role": "user", "content": "a b"}]}
    if template in ("/v1/embeddings", "/embeddings"):
        return {"model": "whole", "input": [1, 2]}
    if template in ("/embed", "/embed_all"):
        return {"model": "whole", "inputs": [1, 2]}
    return (infer() if template.startswith("/v2/models") else TEXT if re.search("/encode$|/classify(_tokens)?$|/question$|/detokenize$", template) else ASK)


def queries(shape, data):
    return {"name": "queries", "datatype": "FP32", "shape": shape, "data": data}


def infer(**more):
    return dict({"inputs": [queries([1, 2, 4], [1, 0, 0, 1, 0, 1, 1, 0])]}, **more)


def strict(schema):
    """The schema, with no room for members that it does not tell of."""
    if isinstance(schema, list):
        return [strict(x) for x in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: strict(x) for key, x in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


class OpenApi(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        with open(os.path.join(cls.folder.name, "tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(WORDS, file)
        cls.server = Server({"models": dict(MODELS, whole=WHOLE, decoder=dict(WHOLE, kind="decoder"),
                                            reads=dict(WHOLE, task="question", tokenizer=cls.folder.name),
                                            tags=dict(WHOLE, labels=["O", "B-a", "I-a"], task="classify_tokens",
                                                      tokenizer=cls.folder.name),
                                            sorts=dict(WHOLE, labels=["a", "b", "c"], tokenizer=cls.folder.name),
                                            ranks=dict(WHOLE, classes=1, tokenizer=cls.folder.name),
                                            words=dict(WHOLE, kind="seq2seq", decoder={"layers": 1}, tokenizer=cls.folder.name),
                                            both=dict(WHOLE, kind="seq2seq", decoder={"layers": 1})),
                             "default_model": "demo"},
                            "--max-items", "64", "--text-embeddings-inference", "true")
        cls.metrics = cls.server.get("/metrics").body.decode()
        answer = cls.server.get("/openapi.json")
        cls.answer, cls.document = answer, answer.json
        cls.schemas = cls.document["components"]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def schema(self, schema):
        """A validator of one of the document's schemas, whose references lead into it."""
        return jsonschema.Draft202012Validator({"allOf": [schema], "components": self.schemas})

    def told(self, schema, answer):
        """The answer is as the schema says, and has nothing besides."""
        self.schema(schema).validate(answer)
        jsonschema.Draft202012Validator({"allOf": [strict(schema)],
                                         "components": strict(self.schemas)}).validate(answer)

    def operation(self, method, path):
        """The operation that a path belongs to."""
        for template, item in self.document["paths"].items():
            pattern = re.sub(r"\\\{(model|layer|slug)\\\}", "[^/]+", re.escape(template))
            if re.fullmatch(pattern, path) and method.lower() in item:
                return item[method.lower()]
        return self.fail(f"{method} {path} is not in the document")

    def response(self, operation, status):
        response = operation["responses"].get(str(status))
        self.assertIsNotNone(response, f"{operation['operationId']} does not tell of {status}")
        return self.resolved(response)

    def resolved(self, part):
        """A part of the document, or the component that it refers to."""
        if "$ref" not in part:
            return part
        kind, name = part["$ref"].split("/")[2:]
        return self.schemas[kind][name]

    def holds(self, method, path, answer, status):
        """The answer is one that the document promises."""
        self.assertEqual(answer.status, status, answer)
        response = self.response(self.operation(method, path), status)
        self.assertIn("x-request-id", answer.headers)
        for name, header in response.get("headers", {}).items():
            header = self.resolved(header)
            if name in ("X-Request-Id", "Server-Timing"):
                self.schema(header["schema"]).validate(answer.headers[name.lower()])
        kind = answer.headers["content-type"].split(";")[0]
        self.assertIn(kind, response["content"])
        if kind.endswith("json"):
            self.told(response["content"][kind]["schema"], answer.json)

    def test_the_document_holds_together(self):
        self.assertEqual(self.answer.headers["content-type"], "application/json")
        names = [o["operationId"] for item in self.document["paths"].values()
                 for o in item.values()]
        self.assertEqual(len(names), len(set(names)))
        for schema in self.schemas["schemas"].values():
            jsonschema.Draft202012Validator.check_schema(schema)
        for header in self.schemas["headers"].values():
            jsonschema.Draft202012Validator.check_schema(header["schema"])
        used = set(re.findall(r'"#/components/(\w+)/(\w+)"', self.answer.body.decode()))
        used |= {("securitySchemes", name) for need in self.document["security"] for name in need}
        self.assertEqual(used, {(kind, name) for kind, all in self.schemas.items() for name in all})

    def test_descriptions_stand_once(self):
        """What is long is a component, and not said at each path again."""
        text = re.findall(r'"description": "([^"]{100,})"', json.dumps(self.document["paths"]))
        self.assertEqual(sorted(text), sorted(set(text)))

    def test_every_path_answers(self):
        """Every path of the document, with every method of it; and no others."""
        for template, item in self.document["paths"].items():
            path = path_of(template)
            with self.subTest(path=path):
                if "get" in item:
                    self.holds("GET", path, self.server.get(path), 200)
                    self.assertEqual(self.server.request("HEAD", path).status, 200)
                    self.assertEqual(self.server.request("POST", path, b"").status, 400 if "post" in item else 405)
                else:
                    answer = self.server.get(path)
                    self.assertEqual((answer.status, answer.headers["allow"]), (405, "POST"))

    def test_every_route_is_in_the_document(self):
        """The metrics of a new server have series of each computed route; the server names the methods of each path."""
        computed = re.findall(r'^attend_http_requests_total\{route="(/[^"]*)",method="(\w+)",code="200"', self.metrics, re.M)
        self.assertGreater(len(computed), 14)
        for path, method in computed:
            self.assertIn(method.lower(), self.document["paths"][path])
        for path, item in self.document["paths"].items():
            answer = self.server.request("PUT", path_of(path))
            with self.subTest(path=path):
                self.assertEqual(answer.status, 405)
                methods = set(answer.headers["allow"].lower().split(", ")) - {"head"}
                self.assertEqual(set(item), methods | {"post"} if path == "/" else methods)  # which is /embed or /predict

    def operations(self):
        """(path, method, operation) of all."""
        return [(path, method, operation) for path, item in self.document["paths"].items()
                for method, operation in item.items()]

    def test_every_operation_is_summarized(self):
        tags = {tag["name"] for tag in self.document["tags"]}
        for path, method, operation in self.operations():
            with self.subTest(method=method, path=path):
                self.assertRegex(operation["summary"], r"^[A-Z][^\n]{3,59}(?<!\.)$")
                self.assertRegex(operation["description"], r"^[A-Z].*\.$")
                self.assertLessEqual(len(re.findall(r"\.( |$)", operation["description"])), 4)
                self.assertLessEqual(set(operation["tags"]), tags)

    def examples(self, content):
        """The examples of a body by their names, of all its media types."""
        return {name: (kind, example["value"]) for kind, media in content.items()
                for name, example in media.get("examples", {}).items()}

    def test_every_json_body_has_an_example(self):
        for path, method, operation in self.operations():
            bodies = [self.resolved(operation["requestBody"])] if method == "post" else []
            bodies += [self.response(operation, status) for status in operation["responses"] if status[0] == "2"]
            for body in bodies if operation["operationId"] not in WITHOUT_EXAMPLE else []:
                for kind, media in body["content"].items():
                    with self.subTest(method=method, path=path, kind=kind):
                        if kind in ("application/json", "text/event-stream"):
                            self.assertTrue(media.get("examples"))
                        for example in media.get("examples", {}).values():
                            self.schema(media["schema"]).validate(example["value"])

    def test_examples_are_what_the_server_does(self):
        """A request example, or a GET with the examples of its parameters, gets the response example of its name."""
        places = {name: configuration for configuration, names in EXAMPLES.items()
                  for name in re.findall(r"generate beam_search|\w+", names)}
        exchanges = []
        for path, method, operation in self.operations():
            name = operation["operationId"]
            requests = self.examples(self.resolved(operation["requestBody"])["content"]) if method == "post" else None
            responses = self.examples(self.response(operation, 200)["content"])
            if requests is not None:
                self.assertEqual(set(requests), set(responses), name)
            self.assertEqual(bool(responses), name in places, name)
            for example, response in responses.items():
                filled = path
                for parameter in operation.get("parameters", []):
                    if parameter.get("in") == "path":
                        value = parameter.get("example") or parameter["examples"][example]["value"]
                        filled = filled.replace("{" + parameter["name"] + "}", value)
                exchanges.append((places.pop(f"{name} {example}", places[name]), method.upper(), filled,
                                  json.dumps(requests[example][1]) if requests else None, response))
        self.assertGreater(len(exchanges), 40)
        for configuration in EXAMPLES:
            server = Server(None, *(["--config", os.path.join(ROOT, "tests", "example", configuration)] if configuration else []))
            self.addCleanup(server.kill)
            for place, method, path, body, (kind, expected) in exchanges:
                if place == configuration:
                    with self.subTest(configuration=configuration, path=path, body=body):
                        answer = server.request(method, path, body, {"Content-Type": "application/json"} if body else {})
                        self.assertEqual((answer.status, answer.headers["content-type"].split(";")[0]), (200, kind), answer)
                        if kind == "text/event-stream":
                            self.same(self.events(answer.body.decode()), self.events(expected))
                        else:
                            self.same(answer.json, expected, part=path == "/v1/models")
            server.stop()
        self.assertNotIn("generate beam_search", places)

    def events(self, text):
        """The data of server-sent events."""
        lines = text.split("\n\n")
        self.assertEqual(lines.pop().strip(), "")
        self.assertTrue(all(line.startswith("data: ") for line in lines), lines)
        return [line[6:] if line == "data: [DONE]" else json.loads(line[6:]) for line in lines]

    def same(self, actual, expected, part=False):
        """JSON but for what is volatile; with `part`, of lists of objects at least what is expected, by name or id."""
        if isinstance(expected, dict):
            self.assertEqual(list(actual), list(expected))
            for key, value in expected.items():
                if key not in VOLATILE:
                    self.same(actual[key], value, part)
        elif isinstance(expected, list):
            if part and expected and isinstance(expected[0], dict):
                names = [x.get("name", x.get("id")) for x in expected]
                actual = [x for x in actual if x.get("name", x.get("id")) in names]
            self.assertEqual(len(actual), len(expected))
            for a, e in zip(actual, expected):
                self.same(a, e, part)
        elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
            self.assertAlmostEqual(actual, expected, delta=1e-6 + 2e-6 * abs(expected))  # processors sum in other orders
        elif isinstance(expected, str):
            random = r"^((?:chat)?cmpl|rerank|embed)-[0-9a-f]{16}$"
            self.assertEqual(re.sub(random, r"\1-", actual), re.sub(random, r"\1-", expected))
        else:
            self.assertEqual(actual, expected)

    def test_models_are_described_whole(self):
        self.holds("GET", "/v1/models", self.server.get("/v1/models"), 200)
        described, optional = {}, {}
        for name in MODELS:
            for path in (f"/v1/models/{name}", f"/v2/models/{name}"):
                answer = self.server.get(path)
                self.holds("GET", path, answer, 200)
                described[name] = answer.json if "/v1/" in path else described[name]
                optional[name] = [t.get("parameters") for t in answer.json.get("inputs", [])]
        self.assertEqual(described["turned"]["rope"], {"base": 500})
        self.assertEqual(described["near"]["relative_bias"]["max_distance"], 16)
        self.assertEqual(described["sum"]["score_size"], 3)
        true = {"optional": True}
        self.assertEqual(optional["demo"], [None] + [true] * 4)
        self.assertEqual(optional["turned"], [None, None, None, true, true])

    def test_answers_of_attention(self):
        for path in ("/v1/attention", "/v1/models/demo/attention"):
            for more in ({}, {"encoding_format": "base64"}, {"return_attention": "average"},
                         {"queries": [[[1, 0, 0, 1]], []]}, {"queries": ITEM[0]},
                         {"segments": [[1, 1]]}, {"queries": [], "return_attention": False},
                         {"queries": [[], [[1, 2, 3, 4]]], "encoding_format": "base64"}):
                with self.subTest(path=path, more=more):
                    request = dict(ASK, **more)
                    self.taken("AttentionRequest", request)
                    self.holds("POST", path, self.server.post(path, request), 200)
            binary = self.server.post(path, ASK, {"Accept": SAFETENSORS})
            self.holds("POST", path, binary, 200)
            body = safetensors_bytes({"queries": ([1, 2, 4], [1, 0, 0, 1, 0, 1, 1, 0])})
            for kind in (SAFETENSORS, "application/octet-stream"):
                self.holds("POST", path, self.server.post(path, body, {"Content-Type": kind}), 200)

    def test_whole_models_are_described(self):
        for name in ("whole", "sorts", "decoder", "both"):
            for path in (f"/v1/models/{name}", f"/v2/models/{name}"):
                self.holds("GET", path, self.server.get(path), 200)

    def test_answers_of_encode(self):
        path = "/v1/models/whole/encode"
        thumbnails = {"of": ["encoder.-1.self"], "as": {"thumbnails": 3}}
        traced = {"attention": "encoder.-1.self", "item": 0, "head": 1, "query": 0}
        for more in ({}, {"trace": traced}, {"encoding_format": "base64"}, {"tokens": [1, 2, 3]}, {"pool": "mean"},
                     {"pool": "max", "dimensions": 2, "normalize": True, "tokens": [[4]]},
                     {"return_hidden": "all", "return_attention": True}, {"valid_lens": [1, 1]},
                     {"return_hidden": ["encoder.0.self.input"], "return_attention": "average"},
                     {"return_attention": thumbnails}, {"valid_lens": None, "tokens": []},
                     {"return_attention": thumbnails, "tokens": [5], "encoding_format": "base64",
                      "valid_lens": 1, "head_mask": {"encoder.*.self": [1, 0.5]}}):
            with self.subTest(more=more):
                request = dict(TEXT, **more)
                self.taken("EncodeRequest", request)
                self.holds("POST", path, self.server.post(path, request), 200)
        self.taken("EncodeRequest", {"embeddings": [[[1, 2, 3, 4]]], "token_types": [[0]]})
        binary = self.server.post(path, TEXT, {"Accept": SAFETENSORS})
        self.holds("POST", path, binary, 200)
        schema = self.schema(self.schemas["schemas"]["EncodeRequest"])
        for request in ({}, {"tokens": 1}, dict(TEXT, extra=1), dict(TEXT, pool="best"),
                        dict(TEXT, dimensions=0), dict(TEXT, return_hidden="some"),
                        dict(TEXT, return_attention={"of": ["encoder.0.self"]}),
                        dict(TEXT, embeddings=[[1, 2, 3, 4]]), dict(TEXT, head_mask=[1, 1]),
                        dict(TEXT, trace={"item": 0, "head": 1, "query": 0}),
                        dict(TEXT, return_attention={"of": [], "as": {"thumbnails": 65}})):
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.assertEqual(self.server.post(path, request).status, 400)

    def test_answers_of_classify(self):
        path = "/v1/models/sorts/classify"
        for more in ({}, {"tokens": [1, 2, 3], "function": "none"}, {"encoding_format": "base64", "return_hidden": True},
                     {"function": "sigmoid", "return_attention": "average", "valid_lens": [1, 1]},
                     {"tokens": [], "function": "softmax", "head_mask": {"encoder.*.self": [1, 0.5]}}):
            with self.subTest(more=more):
                request = dict(TEXT, **more)
                self.taken("ClassifyRequest", request)
                self.holds("POST", path, self.server.post(path, request), 200)
        self.taken("ClassifyRequest", {"text": [["a", "b"]], "truncate": True, "return_tokens": True})
        self.holds("POST", path, self.server.post(path, TEXT, {"Accept": SAFETENSORS}), 200)
        schema = self.schema(self.schemas["schemas"]["ClassifyRequest"])
        for request in ({}, dict(TEXT, function="best"), dict(TEXT, pool="cls"), dict(TEXT, dimensions=1),
                        dict(TEXT, normalize=True)):
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.assertEqual(self.server.post(path, request).status, 400)

    def test_answers_of_classify_tokens(self):
        path = "/v1/models/tags/classify_tokens"
        for more in ({}, {"tokens": [1, 2, 3], "function": "none"}, {"encoding_format": "base64", "return_hidden": True},
                     {"function": "sigmoid", "return_attention": "average", "valid_lens": [1, 1]}):
            with self.subTest(more=more):
                request = dict(TEXT, **more)
                self.taken("ClassifyTokensRequest", request)
                self.holds("POST", path, self.server.post(path, request), 200)
        for text in ("a b", ["a b", "b", ""]):
            for group in ("none", "simple", "first", "average", "max"):
                request = {"text": text, "group": group, "return_tokens": True}
                self.taken("ClassifyTokensRequest", request)
                self.holds("POST", path, self.server.post(path, request), 200)
        self.holds("POST", path, self.server.post(path, TEXT, {"Accept": SAFETENSORS}), 200)
        schema = self.schema(self.schemas["schemas"]["ClassifyTokensRequest"])
        for request in ({}, dict(TEXT, group="last"), dict(TEXT, pool="cls"), dict(TEXT, prompt="a")):
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.assertEqual(self.server.post(path, request).status, 400)

    def test_answers_of_question(self):
        path = "/v1/models/reads/question"
        for more in ({}, {"tokens": [1, 2, 3]}, {"encoding_format": "base64", "return_hidden": True}, {"valid_lens": [1, 1]}):
            with self.subTest(more=more):
                request = dict(TEXT, **more)
                self.taken("QuestionRequest", request)
                self.holds("POST", path, self.server.post(path, request), 200)
        for question, context in (("a", "b a"), (["a"], [""]), (["a", "b"], ["b a", "a a b"]), ([], [])):
            for more in ({}, {"return_top": 3, "max_answer": 2, "stride": 0}):
                with self.subTest(question=question, more=more):
                    request = dict(more, question=question, context=context)
                    self.taken("QuestionRequest", request)
                    self.holds("POST", path, self.server.post(path, request), 200)
        schema = self.schema(self.schemas["schemas"]["QuestionRequest"])
        for request in ({}, dict(TEXT, function="none"), dict(TEXT, pool="cls"), {"question": "a"}, {"context": "a"},
                        {"question": "a", "context": "a", "text": "a"}, {"question": "a", "context": "b", "return_top": 0}):
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.assertEqual(self.server.post(path, request).status, 400)

    def test_answers_of_generate(self):
        path = "/v1/models/decoder/generate"
        for more in ({}, {"tokens": [1]}, {"tokens": []}, {"return_top": 2},
                     {"temperature": 1, "returns": 2, "top_k": 3, "top_p": 0.5, "seed": 4, "stop_tokens": [5],
                      "banned_tokens": [6], "repetition_penalty": 1.5, "no_repeat_ngram": 3, "min_tokens": 1,
                      "min_p": 0.1, "presence_penalty": -2, "frequency_penalty": 2, "logit_bias": {"3": 1.5}, "ignore_eos": True}):
            request = dict(TEXT, max_tokens=3, **more) if "tokens" not in more else dict(more, max_tokens=3)
            self.taken("GenerateRequest", request)
            self.holds("POST", path, self.server.post(path, request), 200)
        for more in ({"beams": 2}, {"beams": 3, "returns": 2, "return_search": True, "early_stopping": "never",
                                    "length_penalty": -0.5}, {"beams": 2, "return_search": True, "tokens": [1]}):
            request = dict(dict(TEXT, max_tokens=3), **more)
            self.taken("GenerateRequest", request)
            self.holds("POST", path, self.server.post(path, request), 200)
        answer = self.server.post(path, dict(TEXT, stream=True))
        self.assertIn(answer.headers["content-type"], self.response(self.operation("POST", path), 200)["content"])
        self.holds("POST", path, self.server.post(path, dict(TEXT, top_p=0)), 400)

    def test_requests_to_score(self):
        request = {"tokens": [[1, 2], [3]], "targets": [[4], [5, 6]]}
        for more in ({}, {"valid_lens": [1, 1], "target_lens": [1, 2]}, {"return_top": 64},
                     {"return_lens": 64}, {"tokens": [1], "targets": [2], "valid_lens": 1, "target_lens": None},
                     {"return_hidden": ["decoder.0"], "return_attention": "average",
                      "head_mask": {"decoder.*.self": [1, 0.5]}, "encoding_format": "base64"}):
            self.taken("ScoreRequest", dict(request, **more))
        schema = self.schema(self.schemas["schemas"]["ScoreRequest"])
        for wrong in ({}, {"tokens": [1]}, {"targets": [1]}, dict(request, return_top=65), dict(request, return_lens=65),
                      dict(request, pool="mean"), dict(request, targets=1)):
            self.assertFalse(schema.is_valid(wrong))
        self.holds("POST", "/v1/models/whole/score", self.server.post("/v1/models/whole/score", request), 404)

    def test_texts(self):
        for text, targets in (("a b", [1]), (["a", "b c"], [[1], [2]]), ([["a", "b"]], [[1]])):
            shown = {"text": text, "special_tokens": True, "truncate": 4, "return_tokens": True}
            for what, request in (("encode", shown), ("score", dict(shown, targets=targets)),
                                  ("generate", dict(shown, max_tokens=2, truncate=True)),
                                  ("generate", dict(text=text, max_tokens=9, stop=["a", "b", "c", " "], temperature=9)),
                                  ("generate", dict(text=text, max_tokens=2, stop="a", return_text=False)),
                                  ("tokenize", {"text": text, "special_tokens": False, "truncate": 3})):
                with self.subTest(text=text, what=what):
                    path = f"/v1/models/words/{what}"
                    self.taken(f"{what.capitalize()}Request", request)
                    self.holds("POST", path, self.server.post(path, request), 200)
        path = "/v1/models/words/detokenize"
        for tokens in ([1, 2], [[1], [2, 0]], []):
            request = {"tokens": tokens, "special_tokens": False}
            self.taken("DetokenizeRequest", request)
            self.holds("POST", path, self.server.post(path, request), 200)
        self.holds("POST", path, self.server.post(path, {"tokens": [9]}), 400)
        self.holds("POST", "/v1/models/whole/tokenize", self.server.post("/v1/models/whole/tokenize", {"text": "a"}), 404)

    def check_dialect(self, path, name, right, good, bad):
        """Requests that differ from one in these fields are taken, or refused, by the schema and the server alike."""
        schema = self.schema(self.schemas["schemas"][name])
        for more in ({},) + good:
            with self.subTest(path=path, more=more):
                self.taken(name, dict(right, **more))
                self.holds("POST", path, self.server.post(path, dict(right, **more)), 200)
        for more in bad:
            with self.subTest(path=path, more=more):
                self.assertFalse(schema.is_valid(dict(right, **more)))
                self.holds("POST", path, self.server.post(path, dict(right, **more)), 400)
        for status, body, headers in ((400, b"{", {}), (404, dict(right, model="none"), {}),
                                      (415, b"a", {"Content-Type": "text/plain"}), (406, right, {"Accept": SAFETENSORS})):
            self.holds("POST", path, self.server.post(path, body, headers), status)

    def test_rerank(self):
        right = {"model": "ranks", "query": "a", "documents": ["a b", {"text": "b"}]}
        self.check_dialect("/v1/rerank", "RerankRequest", right,
                           ({"top_n": 1}, {"top_n": None, "return_documents": None, "truncate": None, "user": "me"},
                            {"return_documents": False}, {"truncate": 9}, {"truncate": False}, {"model": "words"}),
                           ({"query": 1}, {"documents": "a"}, {"documents": []}, {"documents": [1]}, {"documents": [{}]},
                            {"documents": [{"text": "a", "b": 1}]}, {"top_n": 0}, {"return_documents": 1}, {"truncate": 0},
                            {"user": 1}, {"model": 1}, {"texts": []}))

    def test_text_embeddings_inference(self):
        wrong = ({"truncate": 1}, {"truncation_direction": "left"}, {"model": 1}, {"extra": 1})
        self.check_dialect("/embed", "TeiEmbedRequest", {"model": "words", "inputs": "a b"},
                           ({"inputs": ["a", "b"]}, {"inputs": [1, 2]}, {"inputs": [[1], [2]]}, {"normalize": False},
                            {"dimensions": 2, "truncate": None, "truncation_direction": "Right", "prompt_name": None}),
                           ({"inputs": []}, {"inputs": 1}, {"inputs": [["a"]]}, {"normalize": 1}, {"dimensions": 0},
                            {"prompt_name": 1}) + wrong)
        self.check_dialect("/rerank", "TeiRerankRequest", {"model": "ranks", "query": "a", "texts": ["a b", "b"]},
                           ({"raw_scores": True}, {"return_text": True, "truncate": False}),
                           ({"texts": []}, {"texts": "a"}, {"query": None}, {"raw_scores": 1}, {"return_text": 1}) + wrong)
        self.check_dialect("/predict", "TeiPredictRequest", {"model": "sorts", "inputs": "a b"},
                           ({"inputs": ["a"]}, {"inputs": ["a", "b"]}, {"inputs": [["a"], ["a", "b"]]},
                            {"raw_scores": True, "truncate": None}),
                           ({"inputs": []}, {"inputs": ["a", "b", "a"]}, {"inputs": [["a", "b", "a"]]}, {"inputs": [[]]},
                            {"raw_scores": 1}) + wrong)

    def test_cohere(self):
        for path in ("/v1/embed", "/v2/embed"):
            self.check_dialect(path, "CohereEmbedRequest", {"model": "words", "texts": ["a b", "a"]},
                               ({"texts": "a"}, {"input_type": "clustering", "truncate": "NONE", "max_tokens": None, "images": None},
                                {"embedding_types": ["float"], "output_dimension": 2}, {"input_type": None, "max_tokens": 9}),
                               ({"texts": []}, {"texts": [1]}, {"input_type": "image"}, {"embedding_types": ["int8"]}, {"embedding_types": []},
                                {"output_dimension": 0}, {"truncate": "START"}, {"max_tokens": 0}, {"images": []}, {"input": "a"}, {"model": 1}))

    def test_the_rest_of_text_embeddings_inference(self):
        for path, name, right, good, bad in (
                ("/embed_all", "TeiEmbedAllRequest", {"inputs": "a b"}, ({"inputs": ["a", "b a"]}, {"inputs": [1, 2]}, {"truncate": True}),
                 ({"inputs": []}, {"normalize": True}, {"dimensions": 2})),
                ("/similarity", "TeiSimilarityRequest", {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
                 ({"parameters": None}, {"parameters": {"truncate": True, "truncation_direction": "Right", "prompt_name": None}}),
                 ({"inputs": "a"}, {"inputs": {"source_sentence": "a", "sentences": []}}, {"inputs": {"sentences": ["a"]}},
                  {"inputs": {"source_sentence": "a", "sentences": ["b"], "c": 1}}, {"parameters": {"normalize": True}}, {"truncate": True})),
                ("/tokenize", "TeiTokenizeRequest", {"inputs": "a b"}, ({"inputs": ["a", ""]}, {"add_special_tokens": False, "prompt_name": None}),
                 ({"inputs": []}, {"inputs": [["a"]]}, {"add_special_tokens": 1}, {"ids": [1]})),
                ("/decode", "TeiDecodeRequest", {"ids": [1, 2]}, ({"ids": [[1], [2, 1], []]}, {"skip_special_tokens": False}),
                 ({"ids": []}, {"ids": "a"}, {"ids": [-1]}, {"inputs": "a"}))):
            self.check_dialect(path, name, dict(right, model="words"), good, bad + ({"model": 1}, {"extra": 1}))

    def test_embeddings(self):
        path = "/v1/embeddings"
        for more in ({}, {"encoding_format": "base64", "dimensions": 2, "user": "me"}, {"input": ["a", "b c"], "truncate": 1},
                     {"input": [1, 2]}, {"input": [[1], [2, 0]]}, {"truncate": True, "encoding_format": "float"}):
            request = dict({"model": "words", "input": "a b"}, **more)
            with self.subTest(request=request):
                self.taken("EmbeddingsRequest", request)
                self.holds("POST", path, self.server.post(path, request), 200)
        schema = self.schema(self.schemas["schemas"]["EmbeddingsRequest"])
        for more in ({"input": ""}, {"input": []}, {"input": [""]}, {"input": [[]]}, {"input": 1}, {"input": ["a", 1]},
                     {"input": [["a"]]}, {"model": 1}, {"encoding_format": "int8"}, {"dimensions": 0}, {"user": 1},
                     {"truncate": 0}, {"text": "a"}):
            request = dict({"model": "words", "input": "a b"}, **more)
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.holds("POST", path, self.server.post(path, request), 400)
        request = {"model": "words", "input": "a b"}
        for status, body, headers in ((400, b"{", {}), (404, dict(request, model="none"), {}),
                                      (406, request, {"Accept": SAFETENSORS}), (413, dict(request, input=["a"] * 65), {}),
                                      (415, request, {"Content-Type": SAFETENSORS})):
            self.holds("POST", path, self.server.post(path, body, headers), status)

    def test_completions(self):
        path = "/v1/completions"
        for more in ({}, {"n": 2, "stop": "b", "echo": True, "seed": 3, "top_p": 0.5, "max_tokens": 2, "user": "me"},
                     {"prompt": ["a", "b c"], "temperature": 0, "stop": ["a", "x"], "logprobs": None, "logit_bias": {}},
                     {"min_p": 0.1, "presence_penalty": -2, "frequency_penalty": 2, "logit_bias": {"3": 1.5}, "ignore_eos": True,
                      "top_k": -1, "no_repeat_ngram": 2},
                     {"logprobs": 2, "max_tokens": 3}, {"logprobs": 0}, {"logprobs": False}, {"logprobs": 64, "n": 3},
                     {"prompt": [1, 2], "stream": True, "echo": True, "stream_options": {"include_usage": True}}, {"prompt": [[1], [2, 0]]},
                     {"prompt": [], "stop": None, "seed": None, "best_of": 0, "suffix": "", "presence_penalty": 0}):
            request = dict({"model": "words", "prompt": "a b"}, **more)
            with self.subTest(request=request):
                self.taken("CompletionsRequest", request)
                answer = self.server.post(path, request)
                if request.get("stream"):
                    self.assertEqual(answer.headers["content-type"], "text/event-stream")
                else:
                    self.holds("POST", path, answer, 200)
        schema = self.schema(self.schemas["schemas"]["CompletionsRequest"])
        for more in ({"prompt": 1}, {"prompt": None}, {"n": 0}, {"stop": ""}, {"stop": [1]}, {"seed": -1},
                     {"top_p": 0}, {"temperature": -1}, {"max_tokens": 0}, {"echo": 1}, {"logprobs": 65}, {"logprobs": -1}, {"logprobs": True}, {"logprobs": ""}, {"best_of": 2},
                     {"logit_bias": {"1": 200}}, {"logit_bias": {"x": 1}}, {"min_p": 2}, {"ignore_eos": 1}, {"frequency_penalty": 3}, {"suffix": "x"}, {"stream_options": 1}, {"text": "a"}):
            request = dict({"model": "words", "prompt": "a b"}, **more)
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.holds("POST", path, self.server.post(path, request), 400)

    def test_answers_of_an_encoder_and_a_decoder(self):
        shown = {"return_hidden": "all", "return_attention": True}
        trace = {"attention": "decoder.0.cross", "item": 1, "head": 1, "query": 1}
        for what, name, asked in (
                ("score", "Score", {"tokens": [[1, 2], [3]], "targets": [[4], [5, 6]]}),
                ("generate", "Generate", {"tokens": [[1, 2], [3]], "targets": [[4], []], "max_tokens": 3})):
            path = f"/v1/models/both/{what}"
            for more in ({}, shown, dict(shown, encoding_format="base64"),
                         {"target_lens": [1, 0] if what == "generate" else [1, 1], "valid_lens": [1, 1]},
                         {"return_attention": {"of": ["encoder.*.self", "decoder.0.cross"], "as": {"thumbnails": 2}}},
                         {"trace": trace} if what == "score" else {"beams": 2, "return_search": True},
                         {"head_mask": {"decoder.*.cross": [1, 0.5]}, "return_attention": "average"}):
                with self.subTest(what=what, more=more):
                    request = dict(asked, **more)
                    self.taken(f"{name}Request", request)
                    self.holds("POST", path, self.server.post(path, request), 200)
            request = {"embeddings": [[1, 2, 3, 4]], "targets": [5]}
            self.taken(f"{name}Request", request)
            self.holds("POST", path, self.server.post(path, request), 200)
        self.assertFalse(self.schema(self.schemas["schemas"]["GenerateRequest"]).is_valid(
            {"tokens": [1], "embeddings": [[1, 2, 3, 4]]}))

    def test_answers_of_attentions_of_whole_models(self):
        for what in ("attention", "heads"):
            path = f"/v1/models/whole/layers/encoder.1.self/{what}"
            self.holds("POST", path, self.server.post(path, ASK), 200)
            path = f"/v1/models/whole/layers/none/{what}"
            self.holds("POST", path, self.server.post(path, ASK), 404)

    def test_v2_of_whole_models(self):
        path = "/v2/models/whole/infer"
        request = {"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 2],
                               "data": [1, 2]}], "outputs": [{"name": "last_hidden_state"}]}
        self.taken("V2Request", request)
        self.holds("POST", path, self.server.post(path, request), 200)
        path = "/v2/models/both/infer"
        fed = dict(request["inputs"][0], name="decoder_input_ids")
        request = {"inputs": request["inputs"] + [fed, dict(fed, name="decoder_attention_mask", data=[1, 0])],
                   "outputs": [{"name": "logits"}, {"name": "encoder_last_hidden_state"}]}
        self.taken("V2Request", request)
        self.holds("POST", path, self.server.post(path, request), 200)

    def test_answers_of_heads(self):
        path = "/v1/models/demo/heads"
        for more in ({}, {"gradients": [[[1, 2, 3, 4], [4, 3, 2, 1]]]},
                     {"encoding_format": "base64"}):
            request = dict(ASK, **more)
            self.taken("HeadsRequest", request)
            self.holds("POST", path, self.server.post(path, request), 200)

    def test_answers_of_heads_of_whole_models(self):
        scored = {"tokens": [[1, 2], [3]], "targets": [[4], [5]]}
        for model, request in (("decoder", scored), ("both", dict(scored, attentions=["decoder.*.cross"])),
                               ("whole", TEXT), ("whole", dict(TEXT, pool="mean", normalize=True, dimensions=2)),
                               ("words", {"text": "a b", "targets": [1]}),
                               ("decoder", dict(scored, target_lens=[1, 1], head_mask={"decoder.0.self": [0, 1]}))):
            path = f"/v1/models/{model}/heads"
            with self.subTest(model=model, request=request):
                self.taken("HeadImportanceRequest", request)
                self.holds("POST", path, self.server.post(path, request), 200)
        path, schema = "/v1/models/decoder/heads", self.schema(self.schemas["schemas"]["HeadImportanceRequest"])
        self.holds("POST", path, self.server.post(path, scored, {"Accept": SAFETENSORS}), 406)
        self.taken("HeadImportanceRequest", dict(scored, stream=True))
        self.assertEqual(self.server.post(path, dict(scored, stream=True)).headers["content-type"], "text/event-stream")
        for more in ({"attentions": []}, {"attentions": "decoder.0.self"}, {"stream": 1}, {"return_top": 1},
                     {"return_hidden": True}, {"encoding_format": "base64"}, {"tokens": 1}):
            request = dict(scored, **more)
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.holds("POST", path, self.server.post(path, request), 400)

    def test_problems(self):
        path = "/v1/attention"
        for status, body, headers in (
                (400, b"{", {}), (400, {"queries": [[[1]]]}, {}), (400, {}, {}),
                (406, ASK, {"Accept": "text/html"}),
                (406, {"queries": [[[1, 2, 3, 4]], []]}, {"Accept": SAFETENSORS}),
                (415, ASK, {"Content-Type": "text/plain"}),
                (415, ASK, {"Content-Encoding": "gzip"}),
                (413, {"queries": [[]] * 65}, {}),
                (422, {"queries": [[[3e38, 3e38, 3e38, 3e38]]]}, {})):
            with self.subTest(status=status, headers=headers):
                self.holds("POST", path, self.server.post(path, body, headers), status)
        for method, path in (("GET", "/v1/models/none"), ("POST", "/v1/models/none/attention"),
                             ("POST", "/v1/models/none/heads")):
            self.holds(method, path, self.server.request(method, path, b"{}"), 404)

    def test_answers_of_v2(self):
        both = [{"name": "attention_weights"}, {"name": "outputs"}]
        for path in (V2 + "/infer", V2 + "/versions/1/infer"):
            for more in ({}, {"id": "a \"b\""}, {"outputs": both},
                         {"parameters": {"causal": True, "causal_offset": "end", "timeout": 9999999,
                                         "other": None}}):
                request = infer(**more)
                self.taken("V2Request", request)
                self.holds("POST", path, self.server.post(path, request), 200)
            for accept in ("text/html", SAFETENSORS, "*/*;q=0"):  # nothing is read of it
                self.holds("POST", path, self.server.post(path, infer(), {"Accept": accept}), 200)
            right = self.server.post(path, infer(outputs=both)).json["outputs"]
            answer = self.server.post(path, infer(outputs=both,
                                                  parameters={"binary_data_output": True}))
            self.holds("POST", path, answer, 200)
            self.assertEqual(answer.headers["content-type"], "application/octet-stream")
            size = int(answer.headers["inference-header-content-length"])
            head = json.loads(answer.body[:size])
            self.told(self.schemas["schemas"]["V2Response"], head)
            sizes = [o["parameters"]["binary_data_size"] for o in head["outputs"]]
            self.assertEqual(sizes, [4 * len(o["data"]) for o in right])
            numbers = [x for o in right for x in o["data"]]
            self.assertEqual(answer.body[size:], struct.pack(f"<{len(numbers)}f", *numbers))

    def test_errors_of_v2(self):
        path = V2 + "/infer"
        for status, body, headers in ((400, b"{", {}), (400, {}, {}), (400, infer(inputs=[]), {}),
                                      (400, infer(outputs=[{"name": "x"}]), {}),
                                      (413, infer(inputs=[queries([65, 1, 4], [1] * 260)]), {}),
                                      (422, infer(inputs=[queries([1, 1, 4], [3e38] * 4)]), {}),
                                      (415, infer(), {"Content-Encoding": "gzip"})):
            with self.subTest(status=status, body=body):
                self.holds("POST", path, self.server.post(path, body, headers), status)
        for method, path in (("GET", "/v2/models/none"), ("GET", "/v2/models/none/ready"),
                             ("POST", "/v2/models/none/infer")):
            self.holds(method, path, self.server.request(method, path, b"{}"), 404)

    def test_keys(self):
        """What the document says of keys is so: which paths need one, and what a stranger is told."""
        key = "0123456789-abcdefghij"
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.open(os.path.join(folder, "keys"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(key)
        server = Server({"models": {"demo": DEMO, "whole": WHOLE}, "default_model": "demo",
                         "api_key_file": "keys", "text_embeddings_inference": True}, folder=folder)
        self.addCleanup(server.kill)
        self.assertEqual(self.document["security"], [{}, {"key": []}])
        for template, item in self.document["paths"].items():
            path = path_of(template)
            for method, operation in item.items():
                body = json.dumps(request_of("/embed" if template == "/" else template))
                for token, challenge in ((None, "Bearer"),
                                         (key + "x", 'Bearer error="invalid_token"'), (key, None)):
                    headers = {"Authorization": f"Bearer {token}"} if token else {}
                    answer = server.request(method.upper(), path, body if method == "post" else
                                            None, dict(headers, **{"Content-Type":
                                                                   "application/json"}))
                    with self.subTest(path=path, token=token):
                        if challenge is None or operation.get("security") == []:
                            # no model of this server can classify, fill, score or generate, and none has a tokenizer
                            wants_more = path.startswith("/v1/models/") and path.endswith((
                                "/classify", "/classify_tokens", "/question", "/fill", "/score", "/generate", "tokenize")) or path in ("/v1/completions", "/v1/chat/completions")
                            # these name no model here, or one without a chat template
                            asks_none = path.endswith("/render") or path in ("/v1/rerank", "/v2/rerank", "/v1/embed", "/v2/embed", "/rerank", "/predict", "/similarity", "/embed_sparse",
                                                 "/tokenize", "/decode")
                            self.assertEqual(answer.status, 404 if wants_more else 400 if asks_none else 200)
                            continue
                        self.holds(method, path, answer, 401)
                        told = self.resolved(self.response(operation, 401)["headers"]["WWW-Authenticate"])
                        self.schema(told["schema"]).validate(challenge)
                        self.assertEqual(answer.headers["www-authenticate"], challenge)
        server.stop()

    def taken(self, name, request):
        self.schema(self.schemas["schemas"][name]).validate(request)

    def test_what_the_schema_refuses_the_server_refuses(self):
        schema = self.schema(self.schemas["schemas"]["AttentionRequest"])
        for request in ({}, {"queries": 1}, dict(ASK, extra=1), dict(ASK, causal=1),
                        dict(ASK, window=[1]), dict(ASK, window=[1, -2]), dict(ASK, select="all"),
                        dict(ASK, seed=-1), dict(ASK, seed=2 ** 53), dict(ASK, empty_rows=None),
                        dict(ASK, return_attention="yes"), dict(ASK, return_pointers=1),
                        dict(ASK, encoding_format="hex"), dict(ASK, mask=True),
                        dict(ASK, valid_lens=-1), dict(ASK, gradients=ITEM),
                        dict(ASK, causal_offset="begin"), dict(ASK, segments=[["a"]]),
                        dict(ASK, trace={"item": 0, "head": 0}), dict(ASK, trace=[0, 0, 0]),
                        dict(ASK, trace={"item": 0, "head": 0, "query": -1}),
                        dict(ASK, trace={"item": 0, "head": 0, "query": 0, "row": 0}),
                        {"queries": {"dtype": "I8", "shape": [1, 1, 4], "base64": "AAAA"}},
                        {"queries": {"dtype": "F32", "shape": [0]}}):
            with self.subTest(request=request):
                self.assertFalse(schema.is_valid(request))
                self.assertEqual(self.server.attend(request).status, 400)


if __name__ == "__main__":
    unittest.main()
