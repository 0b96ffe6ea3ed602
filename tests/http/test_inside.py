"""test_inside: what decoders show of the tokens that they generate: hidden states and attention of the passes that
chose them, as lists, pictures and base64; every mistake."""
import base64
import struct

from support import Server, ServerCase

RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 3, "width": 32, "heads": 4,
          "feed_forward": 64, "vocabulary": 50}
MODELS = {"small": RANDOM, "shared": dict(RANDOM, kv_heads=2, norm="pre")}
TEXTS = [[1, 2, 3], [6], [7, 8, 9, 10, 11]]
ASKED = {"tokens": TEXTS, "max_tokens": 7}
DRAWN = dict(ASKED, temperature=1, returns=3, seed=5)
SEARCHED = dict(ASKED, beams=4, returns=3)
ENDING = dict(DRAWN, stop_tokens=list(range(0, 50, 5)))
ALL = {"return_hidden": ["decoder.*", "decoder.*.self.input"], "return_attention": True}


def pictured(weights, most):
    """The bytes of one head's picture."""
    rows, columns = len(weights), len(weights[0])
    high, wide = min(rows, most), min(columns, most)
    return bytes(int(255 * max(w for row in weights[i * rows // high:(i + 1) * rows // high]
                               for w in row[j * columns // wide:(j + 1) * columns // wide]) + 0.5)
                 for i in range(high) for j in range(wide))


def array(part):
    """Shape and bytes of an array in base64."""
    assert part["dtype"] == "F32"
    return part["shape"], base64.b64decode(part["base64"])


def packed(rows):
    numbers = flat(rows)
    return struct.pack(f"<{len(numbers)}f", *numbers)


def flat(rows):
    return [x for row in rows for x in (flat(row) if isinstance(row, list) else [row])]


class Inside(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS, "default_model": "small"})

    def post(self, request, model="small", what="generate", headers=None):
        return self.server.post(f"/v1/models/{model}/{what}", request, headers)

    def answer(self, request, model="small", what="generate"):
        return self.ok(self.post(request, model, what))

    def scored(self, text, tokens, fields, model):
        return self.answer({"tokens": text, "targets": tokens, **fields}, model, "score")

    def is_as_scored(self, sequence, text, fields, model):
        """Row t of all parts is that of the pass that chose token t; of weights it sees the keys before the last."""
        right = self.scored(text, sequence["tokens"], fields, model)
        count, first = len(sequence["tokens"]), len(text) - 1
        self.assertEqual(sequence["log_probabilities"], right["log_probabilities"])
        self.assertEqual(sorted(sequence.get("hidden", {})), sorted(right.get("hidden", {})))
        for name, rows in sequence.get("hidden", {}).items():
            self.assertEqual(rows, right["hidden"][name][first:], name)
        self.assertEqual(sorted(sequence.get("attention", {})), sorted(right.get("attention", {})))
        for name, weights in sequence.get("attention", {}).items():
            whole = right["attention"][name]
            if fields["return_attention"] == "average":
                weights, whole = [weights], [whole]
            self.assertEqual(weights, [head[first:] for head in whole], name)
            self.assertEqual({(len(head), len(head[0])) for head in weights}, {(count, first + count)})

    def test_what_the_score_shows(self):
        for model in MODELS:
            for request in (ASKED, DRAWN, SEARCHED):
                for fields in (ALL, {"return_hidden": True}, {"return_attention": "average"},
                               {"return_attention": ["decoder.-1.self"], "return_hidden": ["decoder.0"]}):
                    plain, answer = self.answer(request, model), self.answer(dict(request, **fields), model)
                    for text, before, sequences in zip(TEXTS, plain["sequences"], answer["sequences"]):
                        self.assertEqual(len(before), len(sequences))
                        for same, sequence in zip(before, sequences):
                            self.is_as_scored(sequence, text, fields, model)
                            for part in ("hidden", "attention"):
                                sequence.pop(part, None)
                            self.assertEqual(sequence, same)
                    self.assertEqual(answer["usage"], plain["usage"])

    def test_one_item_alone(self):
        together = self.answer(dict(DRAWN, temperature=0, returns=1, **ALL))
        for text, sequences in zip(TEXTS, together["sequences"]):
            self.assertEqual(self.answer(dict(ASKED, tokens=text, **ALL))["sequences"], sequences)

    def test_masked_heads(self):
        masks = {"head_mask": {"decoder.0.self": [0, 1, 0.5, 1], "decoder.2.self": [1, 0, 1, 1]}}
        answer = self.answer(dict(ASKED, **ALL, **masks))
        self.assertNotEqual(answer["sequences"], self.answer(dict(ASKED, **ALL))["sequences"])
        for text, [sequence] in zip(TEXTS, answer["sequences"]):
            self.is_as_scored(sequence, text, dict(ALL, **masks), "small")
        for text, sequences in zip(TEXTS, self.answer(dict(SEARCHED, **ALL, **masks))["sequences"]):
            for sequence in sequences:
                self.is_as_scored(sequence, text, dict(ALL, **masks), "small")

    def test_pictures(self):
        for most in (1, 3, 64):
            for request in (ASKED, dict(ASKED, encoding_format="base64")):
                pictures = self.answer(dict(request, return_attention={"of": ["decoder.*.self"],
                                                                       "as": {"thumbnails": most}}))
                whole = self.answer(dict(ASKED, return_attention=True))
                for [sequence], [right] in zip(pictures["sequences"], whole["sequences"]):
                    self.assertEqual(sorted(sequence["thumbnails"]), sorted(right["attention"]))
                    for name, picture in sequence["thumbnails"].items():
                        weights = right["attention"][name]
                        self.assertEqual(picture["shape"],
                                         [4, min(most, len(weights[0])), min(most, len(weights[0][0]))])
                        self.assertEqual(base64.b64decode(picture["base64"]),
                                         b"".join(pictured(head, most) for head in weights))

    def test_base64_is_of_all_sequences(self):
        """Rectangles, with zeros behind what a sequence has."""
        for request in (ASKED, DRAWN, ENDING, dict(ENDING, tokens=TEXTS[0]), dict(ASKED, tokens=TEXTS[0]),
                        SEARCHED, dict(SEARCHED, returns=1), dict(SEARCHED, tokens=TEXTS[0], returns=2)):
            lists = self.answer(dict(request, **ALL))
            arrays = self.answer(dict(request, **ALL, encoding_format="base64"))
            sequences = flat(lists["sequences"])
            keys = (5 if request["tokens"] is TEXTS else 3) + 6  # the last token is not fed
            for name, part in arrays["hidden"].items():
                shape, got = array(part)
                self.assertEqual(shape, [len(sequences), 7, 32])
                self.assertEqual(got, packed([s["hidden"][name] + [[0.0] * 32] * (7 - len(s["tokens"]))
                                              for s in sequences]))
            for name, part in arrays["attention"].items():
                shape, got = array(part)
                self.assertEqual(shape, [len(sequences), 4, 7, keys])
                right = []
                for s in sequences:
                    for head in s["attention"][name]:
                        rows = [row + [0.0] * (keys - len(row)) for row in head]
                        right += rows + [[0.0] * keys] * (7 - len(rows))
                self.assertEqual(got, packed(right))
            for kept, whole in zip(flat(arrays["sequences"]), flat(lists["sequences"])):
                self.assertEqual(kept, {k: v for k, v in whole.items() if k not in ("hidden", "attention")})

    def test_early_ends(self):
        answer = self.answer(dict(ENDING, max_tokens=20, **ALL))
        counts = [len(s["tokens"]) for sequences in answer["sequences"] for s in sequences]
        self.assertGreater(len(set(counts)), 1)
        for text, sequences in zip(TEXTS, answer["sequences"]):
            for sequence in sequences:
                self.is_as_scored(sequence, text, ALL, "small")

    def test_an_empty_batch(self):
        for fields in ({}, {"encoding_format": "base64"}):
            answer = self.answer(dict(ASKED, tokens=[], **ALL, **fields))
            self.assertEqual(answer["sequences"], [])
            if fields:
                self.assertEqual({name: part["shape"] for name, part in answer["attention"].items()},
                                 {f"decoder.{i}.self": [0, 4, 0, 0] for i in range(3)})

    def test_what_is_refused(self):
        for fields, pointer in (({"stream": True, "return_hidden": True}, "/stream"),
                                ({"stream": True, "return_hidden": ["decoder.0"]}, "/stream"),
                                ({"stream": True, "return_attention": "average"}, "/stream"),
                                ({"return_hidden": ["decoder.4"]}, "/return_hidden/0"),
                                ({"return_attention": ["encoder.0.self"]}, "/return_attention/0"),
                                ({"head_mask": {"decoder.0.self": [1]}}, "/head_mask/decoder.0.self"),
                                ({"trace": {"attention": "decoder.0.self"}}, "/trace")):
            with self.subTest(fields=fields):
                self.problem(self.post(dict(ASKED, **fields)), 400, "invalid-request", pointer=pointer)

    def test_limits(self):
        """Counted before anything is computed: what all tokens that may come would take."""
        server = Server({"models": {"small": RANDOM}, "max_answer_bytes": 20000})
        self.addCleanup(server.kill)
        for fields, status in (({}, 200), ({"return_hidden": ["decoder.3"]}, 200), (ALL, 413),
                               ({"return_attention": True}, 413), ({"return_attention": ["decoder.0.self"]}, 200),
                               ({"return_attention": {"of": ["decoder.0.self"], "as": {"thumbnails": 2}}}, 200),
                               (dict(ALL, encoding_format="base64"), 413),
                               ({"return_hidden": "all", "encoding_format": "base64"}, 200)):
            with self.subTest(fields=fields):
                answer = server.post("/v1/models/small/generate", dict(ASKED, **fields))
                self.assertEqual(answer.status, status, answer)
