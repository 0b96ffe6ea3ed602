"""test_forms: the answer in every form is the same answer, and who gets it in which."""
import json
import random
import unittest

from compare import OracleCase
from forms import base64_fields, pack, read_base64, read_safetensors, safetensors, shape_of
from support import TOY, Case, Layer, Raw, ServerCase, attend, head_of, randoms

ST, OCTETS, JSON = "application/x-safetensors", "application/octet-stream", "application/json"
PATH = "/v1/models/{}/attention"


class FormCase(Case):
    def post(self, body, content=ST, accept=None, path="/v1/attention"):
        headers = {"Content-Type": content} if content else {}
        if accept is not None:
            headers["Accept"] = accept
        return self.server.request("POST", path, body, headers)

    def binary(self, answer, kind=ST):
        """The answer's tensors, name -> (shape, bytes); pointers are I64, all others F32."""
        self.assertEqual((answer.status, answer.headers.get("content-type")), (200, kind), answer)
        tensors, metadata = read_safetensors(answer.body)
        for name, (dtype, _, _) in tensors.items():
            self.assertEqual(dtype, "I64" if name == "pointers" else "F32")
        self.assertIn("model", metadata)
        return {name: (shape, raw) for name, (_, shape, raw) in tensors.items()}

    def arrays(self, answer):
        """The same of an answer in JSON."""
        return {name: (shape_of(value), pack("I64" if name == "pointers" else "F32", value))
                for name, value in self.ok(answer).items() if name != "model"}


class Safetensors(FormCase, OracleCase):
    """The answer in one form is the answer in every other, bit for bit."""

    @classmethod
    def make_layers(cls):
        return {"plain": Layer(1, 12, 3), "odd": Layer(2, 7, 3, head_size=5, key_size=9,
                                                       value_size=4, output_size=6)}

    def requests(self, name, seed):
        layer, rng = self.layers[name], random.Random(seed)
        b, q, k = 3, 4, 6
        base = {"queries": randoms(rng, b, q, layer.query_size),
                "keys": randoms(rng, b, k, layer.key_size),
                "values": randoms(rng, b, k, layer.value_size)}
        mask = [[[rng.random() < 0.7 for _ in range(k)] for _ in range(q)] for _ in range(b)]
        yield dict(base)
        yield dict(base, valid_lens=[2, 6, 0], return_attention=True)
        yield dict(base, valid_lens=[[1, 2, 3, 0]] * b, mask=mask, bias=randoms(rng, b, 3, q, k),
                   head_mask=[1, 0, 0.5], return_attention="average", empty_rows="uniform")
        yield dict(base, mask=mask[0], bias=randoms(rng, q, k), causal=True, causal_offset="end",
                   window=[2, -1], return_pointers=True, return_attention=True)
        yield dict(base, select="sample", seed=9, causal_offset=[0, 1, 2], causal=True,
                   return_pointers=True)
        yield dict(base, segments=[[1, 2, 3], [0, 6, 0], [2, 2, 2]], return_attention=True)
        yield {field: value[0] for field, value in base.items()} | {"return_attention": True,
                                                                    "valid_lens": [1, 2, 3, 4]}

    def test_every_form_is_the_same_request(self):
        for name in self.layers:
            for number, request in enumerate(self.requests(name, 5)):
                with self.subTest(model=name, number=number):
                    path, text = PATH.format(name), json.dumps(request).encode()
                    right = self.arrays(self.post(text, JSON, path=path))
                    self.assertEqual(self.binary(self.post(text, JSON, ST, path)), right)
                    for integers, flags in (("I64", "BOOL"), ("I32", "U8")):
                        body = safetensors(request, integers=integers, flags=flags)
                        self.assertEqual(self.binary(self.post(body, path=path)), right)
                        self.assertEqual(self.arrays(self.post(body, ST, JSON, path)), right)
                    self.assertEqual(self.base64(request, path), right)

    def base64(self, request, path):
        """Asked with arrays in base64, answered so."""
        asked = dict(base64_fields(request), encoding_format="base64")
        answer = self.ok(self.post(json.dumps(asked).encode(), JSON, path=path))
        del answer["model"]
        return {name: (shape_of(value), pack("I64", value)) if name == "pointers"
                else read_base64(value) for name, value in answer.items()}

    def test_metadata_words_may_be_bare(self):
        request = {"queries": randoms(random.Random(3), 2, 3, 12)}
        right = self.arrays(self.post(json.dumps(dict(request, select="hard")).encode(), JSON))
        body = safetensors(dict(request, select="hard"))
        self.assertEqual(self.binary(self.post(body)), right)
        bare = body.replace(b'"\\"hard\\""', b'"hard"    ')
        self.assertNotEqual(bare, body)
        self.assertEqual(self.binary(self.post(bare)), right)

    def test_empty_batches(self):
        for shape in ([0, 3, 12], [2, 0, 12], [0, 12]):
            with self.subTest(shape):
                body = safetensors({"queries": []}, shapes={"queries": shape})
                self.assertEqual(self.binary(self.post(body)), {"outputs": (shape, b"")})

    def test_an_empty_batch_keeps_the_shape_that_was_said(self):
        shapes = {"queries": [0, 5, 12], "keys": [0, 7, 12], "segments": [0, 2]}
        request = {"queries": [], "keys": [], "segments": [], "return_attention": True}
        answered = self.binary(self.post(safetensors(request, shapes=shapes)))
        self.assertEqual({name: shape for name, (shape, _) in answered.items()},
                         {"outputs": [0, 5, 12], "attention_weights": [0, 3, 5, 7],
                          "segment_weights": [0, 3, 5, 2]})
        request = {"queries": {"dtype": "F32", "shape": [0, 5, 12], "base64": ""},
                   "return_attention": "average", "encoding_format": "base64"}
        answered = self.ok(self.post(json.dumps(request).encode(), JSON))
        self.assertEqual([answered[n]["shape"] for n in ("outputs", "attention_weights")],
                         [[0, 5, 12], [0, 5, 5]])
        for name, shape in (("queries", [0, 1 << 31, 12]), ("keys", [0, 1 << 31, 12]),
                            ("segments", [0, 1 << 31])):
            with self.subTest(name):
                request = {"queries": [], "keys": [], "segments": []}
                body = safetensors(request, shapes=dict(shapes, **{name: shape}))
                self.problem(self.post(body), 413, "too-large", limit="max_pairs")

    def test_heads_are_measured_in_json(self):
        request = {"queries": randoms(random.Random(4), 2, 3, 12),
                   "gradients": randoms(random.Random(5), 2, 3, 12)}
        path = "/v1/models/plain/heads"
        right = self.ok(self.post(json.dumps(request).encode(), JSON, path=path))
        for accept in (None, "*/*", JSON, f"{ST}, {JSON}", f"{ST}, */*;q=0.1"):
            self.assertEqual(self.ok(self.post(safetensors(request), ST, accept, path)), right)
        for accept in (ST, OCTETS, f"{JSON};q=0, */*"):
            self.problem(self.post(safetensors(request), ST, accept, path), 406, "not-acceptable")

    def test_run(self):
        """`attend run MODEL --binary`."""
        request = next(self.requests("plain", 6))
        config = ["--config", f"{self.folder}/attend.json"]
        body = safetensors(request)
        status, out, err = attend("run", "plain", "--binary", *config, data=body)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, self.post(body, path=PATH.format("plain")).body)
        status, out, _ = attend("run", "plain", "--binary", "--heads", *config, data=body)
        self.assertEqual((status, list(json.loads(out))[0]), (0, "model"))
        status, out, err = attend("run", "plain", "--binary", *config, data=b'{"queries":[]}')
        self.assertEqual((status, out), (1, b""))
        self.assertIn("attend: ", err)


class Negotiation(FormCase, ServerCase):
    def test_accept(self):
        text = json.dumps(TOY).encode()
        body = safetensors(TOY)
        same, none = object(), None
        for accept, kind in ((None, same), ("*/*", same), ("application/*", same), (JSON, JSON),
                             (f"{JSON}, */*", JSON), (f"{JSON}, text/plain, */*", JSON),
                             (ST, ST), (OCTETS, OCTETS), (f"{ST}, {JSON}", ST),
                             (f"{JSON};q=0.9, {ST};q=0.8", JSON),
                             (f"{OCTETS}, {ST}", ST), (f"{OCTETS}, {ST};q=0.5", OCTETS),
                             (f"{ST}, */*", ST), (f"{JSON};q=0, */*", ST), ("text/html", none),
                             (f"{ST};q=0, {OCTETS};q=0, */*", JSON), ("*/*;q=0", none)):
            for content, sent in ((JSON, text), (None, text), (ST, body), (OCTETS, body)):
                with self.subTest(accept=accept, content=content):
                    answer = self.post(sent, content, accept)
                    if kind is none:
                        self.problem(answer, 406, "not-acceptable")
                        continue
                    wanted = kind if kind is not same else ST if sent is body else JSON
                    self.assertEqual((answer.status, answer.headers["content-type"]), (200, wanted))

    def test_accept_of_several_fields(self):
        text = json.dumps(TOY).encode()
        with Raw(self.server) as raw:
            raw.send(head_of("/v1/attention", len(text), "Accept: text/html", f"Accept: {ST}"))
            raw.send(text)
            self.binary(raw.answer())

    def test_content_types(self):
        text, body = json.dumps(TOY).encode(), safetensors(TOY)
        self.assertEqual(self.post(text, "Application/JSON; charset=utf-8").status, 200)
        self.assertEqual(self.post(body, "application/X-SafeTensors;x=1").status, 200)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                     "multipart/form-data; boundary=x"):
            problem = self.problem(self.post(text, kind), 415, "unsupported-media-type")
            for taken in (JSON, ST, OCTETS):
                self.assertIn(taken, problem["detail"])

    def test_a_body_that_is_not_what_it_says(self):
        self.assertEqual(self.post(json.dumps(TOY).encode(), ST).status, 400)
        self.assertEqual(self.post(safetensors(TOY), JSON).status, 400)
        self.assertEqual(self.post(b"", ST).status, 400)

    def test_ragged_answers_are_json(self):
        ragged = json.dumps({"queries": [[[1, 2, 3, 4]], [[1, 2, 3, 4], [5, 6, 7, 8]]]}).encode()
        right = self.ok(self.post(ragged, JSON))
        self.assertEqual([len(item) for item in right["outputs"]], [1, 2])
        for accept in (f"{ST}, {JSON}", f"{ST}, */*", f"{ST}, {JSON};q=0.1"):
            self.assertEqual(self.ok(self.post(ragged, JSON, accept)), right)
        for accept in (ST, OCTETS, f"{JSON};q=0, */*"):
            self.problem(self.post(ragged, JSON, accept), 406, "not-acceptable")
        self.settled()

    def test_segments_that_differ_in_number_are_json(self):
        request = {"queries": [[[1, 0, 0, 1]]] * 2, "keys": [[[1, 0, 0, 0], [0, 1, 0, 0]]] * 2,
                   "segments": [[2], [1, 1]], "return_attention": True}
        text = json.dumps(request).encode()
        right = self.ok(self.post(text, JSON))
        self.assertEqual([len(item[0][0]) for item in right["segment_weights"]], [1, 2])
        for accept in (f"{ST}, {JSON}", f"{ST}, */*"):
            self.assertEqual(self.ok(self.post(text, JSON, accept)), right)
        self.problem(self.post(text, JSON, ST), 406, "not-acceptable")
        # Where no weights of segments are asked for, nothing in the answer differs in shape.
        self.binary(self.post(json.dumps(dict(request, return_attention=False)).encode(), JSON, ST))
        self.alive()

    def test_errors_are_problems_whatever_is_accepted(self):
        wrong = safetensors({"queries": [[[1, 2, 3]]]})
        self.problem(self.post(wrong, ST, ST), 400, "invalid-request", pointer="/queries")


if __name__ == "__main__":
    unittest.main()
