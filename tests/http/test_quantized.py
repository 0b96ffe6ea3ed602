"""test_quantized: models of every family compute in bytes: how far their numbers are from published code's."""
import math

import golden
from support import Server, ServerCase, flat

# The root of the mean square of the errors, in parts of the numbers'. Models so small are the worst case: each
# sum has few numbers, and errors do not average out. Some are so narrow that a block is a whole column.
MOST = {"float32": 1e-4, "int8": 0.1, "int8-block": 0.05}
NARROW = {"qwen2-a": 0.06, "modernbert-a": 0.06, "t5-b": 0.12}


def rms(values):
    numbers = list(values)
    return math.sqrt(math.fsum(x * x for x in numbers) / len(numbers))


class Quantized(ServerCase):
    @classmethod
    def start(cls):
        names = {name for kind in ("encode", "decode") for name, _ in golden.cases(kind)}
        return Server({"models": {f"{name}-{mode}": dict(golden.definition(name), compute=mode)
                                  for name in names for mode in MOST}})

    def errors(self, path, name, request, field, wanted):
        """{mode: the error of a field}."""
        off = {}
        for mode in MOST:
            answer = self.ok(self.server.post(f"/v1/models/{name}-{mode}/{path}", request))
            off[mode] = rms([a - b for a, b in zip(flat(answer[field]), flat(wanted))]) / rms(flat(wanted))
        return off

    def are_near(self, name, off):
        for mode, most in dict(MOST, **{"int8-block": NARROW.get(name, MOST["int8-block"])}).items():
            self.assertLessEqual(off[mode], most, mode)
        self.assertGreater(min(off["int8"], off["int8-block"]), 1e-3)  # bytes have been computed with

    def test_outputs(self):
        for name, case in golden.cases("encode"):
            request = {"pool": "none", **{key: case[key] for key in ("tokens", "token_types") if key in case}}
            if "input_hidden_states" in case:
                request["embeddings"] = case["input_hidden_states"]
            with self.subTest(model=name, case=case["name"]):
                self.are_near(name, self.errors("encode", name, request, "outputs", case["expected"]["last_hidden_state"]))

    def test_log_probabilities(self):
        for name, case in golden.cases("decode"):
            request = {"tokens": case["source_tokens"], "targets": case["targets"]} if "source_tokens" in case else \
                {"tokens": [tokens[:1] for tokens in case["tokens"]], "targets": case["targets"]}
            with self.subTest(model=name, case=case["name"]):
                self.are_near(name, self.errors("score", name, request, "log_probabilities",
                                                case["expected"]["log_probabilities"]))

    def test_a_score_is_what_was_generated(self):
        """The log probabilities of generated tokens, step by step and of each hypothesis, bit for bit."""
        for name, case in golden.cases("generate", source=False):
            for mode in MOST:
                path = f"/v1/models/{name}-{mode}/"
                request = {"tokens": case["tokens"], "max_tokens": case["max_tokens"]}
                with self.subTest(model=name, case=case["name"], mode=mode):
                    for more in {}, {"beams": 3, "returns": 3}:
                        found = self.ok(self.server.post(path + "generate", request | more))["sequences"]
                        for text, sequences in zip(case["tokens"], found, strict=True):
                            targets = [sequence["tokens"] for sequence in sequences]
                            scored = self.ok(self.server.post(path + "score", {
                                "tokens": [text] * len(targets), "targets": targets}))
                            self.assertEqual(scored["log_probabilities"],
                                             [sequence["log_probabilities"] for sequence in sequences])
