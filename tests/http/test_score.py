"""test_score: decoders say how likely tokens are: their numbers, their forms, every mistake."""
import json
import math
import os
import struct
import unittest

import golden
from forms import bits, read_base64, read_safetensors
from support import Server, ServerCase, attend

SAFETENSORS = "application/x-safetensors"
RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 2, "width": 32,
          "heads": 4, "feed_forward": 64, "vocabulary": 50}
MODELS = {"small": RANDOM, "encoder": dict(RANDOM, kind="encoder"),
          "demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}
TOKENS, TARGETS = [[1, 2, 3], [6], [7, 8]], [[4, 5], [9, 10, 11], [12]]
LENS, ROWS = [len(targets) for targets in TARGETS], [4, 3, 2]
ASKED = {"tokens": TOKENS, "targets": TARGETS}
ALL = dict(ASKED, return_top=5, return_lens=7, return_hidden="all", return_attention=True)


class Golden(ServerCase):
    """The numbers of published code, through the whole server."""

    @classmethod
    def start(cls):
        return golden.serve(golden.cases("decode", source=False))

    def test_log_probabilities(self):
        for name, case in golden.cases("decode", source=False):
            with self.subTest(model=name, case=case["name"]):
                answer = self.ok(self.server.post(f"/v1/models/{name}/score", {
                    "tokens": [tokens[:1] for tokens in case["tokens"]], "targets": case["targets"]}))
                for got, wanted in zip(answer["log_probabilities"], case["expected"]["log_probabilities"]):
                    for a, b in zip(got, wanted):
                        self.assertLessEqual(abs(a - b), 1e-4 + 1e-4 * abs(b))


class Score(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS, "default_model": "demo"})

    def post(self, request, model="small", headers=None):
        return self.server.post(f"/v1/models/{model}/score", request, headers)

    def answer(self, request, model="small"):
        return self.ok(self.post(request, model))

    def test_what_there_is(self):
        answer = self.answer(ALL)
        self.assertEqual([len(item) for item in answer["log_probabilities"]], LENS)
        self.assertEqual([len(item) for item in answer["top"]], LENS)
        self.assertEqual([len(item) for item in answer["hidden"]["decoder.2"]], ROWS)
        self.assertEqual([len(item[0]) for item in answer["attention"]["decoder.1.self"]], ROWS)
        self.assertEqual(answer["usage"], {"tokens": sum(ROWS), "cached": 0, "generated": 0})

    def test_the_likeliest(self):
        """All of them have a probability of 1 together, and the target's is among them."""
        answer = self.answer(dict(ASKED, return_top=64))
        for item, targets in enumerate(TARGETS):
            for place, target in enumerate(targets):
                top = answer["top"][item][place]
                likely = {entry["token"]: entry["log_probability"] for entry in top}
                self.assertEqual(sorted(likely), list(range(50)))
                self.assertEqual(likely[target], answer["log_probabilities"][item][place])
                self.assertEqual(top, sorted(top, key=lambda e: (-e["log_probability"], e["token"])))
                self.close_to(sum(map(math.exp, likely.values())), 1, 1e-5)

    def test_the_last_state_says_what_the_model_says(self):
        """To the last bit, whichever list is the longer one. Each state's list of all tokens sums to 1."""
        for top, lens in ((5, 5), (2, 64), (64, 3), (1, 50)):
            answer = self.answer(dict(ASKED, return_top=top, return_lens=lens))
            self.assertEqual(list(answer["lens"]), [f"decoder.{i}" for i in range(3)])
            for item, places in enumerate(answer["lens"]["decoder.2"]):
                for likely, right in zip(places, answer["top"][item], strict=True):
                    self.assertEqual([len(likely), len(right)], [min(lens, 50), min(top, 50)])
                    self.assertEqual(likely[:top], right[:lens])
        alone = self.answer(dict(ASKED, return_lens=50))
        self.assertNotIn("top", alone)
        self.assertEqual(alone["lens"], answer["lens"])
        for item in (item for state in alone["lens"].values() for item in state):
            for place in item:
                self.assertEqual(sorted(entry["token"] for entry in place), list(range(50)))
                self.close_to(sum(math.exp(entry["log_probability"]) for entry in place), 1, 1e-5)

    def test_one_item_alone_has_the_same_numbers(self):
        together = self.answer(ALL)
        for item in range(3):
            alone = self.answer(dict(ALL, tokens=TOKENS[item], targets=TARGETS[item]))
            for name in ("log_probabilities", "top"):
                self.assertEqual(alone[name], together[name][item])
            for group in ("lens", "hidden", "attention"):
                self.assertEqual(alone[group], {name: whole[item] for name, whole in together[group].items()})

    def test_a_text_cut_elsewhere_has_the_same_numbers(self):
        text = [1, 2, 3, 4, 5, 6, 7]
        whole = self.answer({"tokens": text[:1], "targets": text[1:]})["log_probabilities"]
        for cut in range(2, 7):
            part = self.answer({"tokens": text[:cut], "targets": text[cut:]})["log_probabilities"]
            self.assertEqual(part, whole[cut - 1:])

    def test_padding_counts_for_nothing(self):
        padded = dict(ALL, tokens=[item + [99] * (3 - len(item)) for item in TOKENS], valid_lens=[3, 1, 2],
                      targets=[item + [-1] * (3 - len(item)) for item in TARGETS], target_lens=LENS)
        self.assertEqual(self.answer(padded), self.answer(ALL))

    def test_encode_shows_the_same(self):
        rows = self.answer(dict(ALL, tokens=[1, 2], targets=[3, 4]))
        encoded = self.ok(self.server.post("/v1/models/small/encode", {
            "tokens": [1, 2, 3], "return_hidden": "all", "return_attention": True}))
        self.assertEqual(rows["hidden"], encoded["hidden"])
        self.assertEqual(rows["attention"], encoded["attention"])

    def test_an_empty_batch(self):
        self.assertEqual(self.answer({"tokens": [], "targets": []}), {
            "model": "small", "log_probabilities": [], "usage": {"tokens": 0, "cached": 0, "generated": 0}})
        nothing = {"tokens": [], "targets": [], "return_top": 2, "return_lens": 3}
        self.assertEqual(self.answer(nothing)["lens"], {f"decoder.{i}": [] for i in range(3)})
        tensors, _ = read_safetensors(self.post(nothing, headers={"Accept": SAFETENSORS}).body)
        self.assertEqual(tensors["lens.decoder.2.token"], ("I32", [0, 0, 3], b""))

    def same_lists(self, tensors, stem, lists, count):
        """Two tensors say what lists of likely tokens say, with zeros behind each item's."""
        for name, dtype, kind in (("token", "I32", "i"), ("log_probability", "F32", "f")):
            rows = [[[entry[name] for entry in place] for place in item] for item in lists]
            rows = [item + [[0] * count] * (3 - len(item)) for item in rows]
            numbers = [number for item in rows for place in item for number in place]
            self.assertEqual(tensors[f"{stem}.{name}"],
                             (dtype, [3, 3, count], struct.pack(f"<{len(numbers)}{kind}", *numbers)))

    def test_bytes_are_the_same_numbers(self):
        text = self.answer(ALL)
        coded = self.answer(dict(ALL, encoding_format="base64"))
        self.assertEqual([coded["valid_lens"], coded["target_lens"]], [ROWS, LENS])
        self.assertEqual([coded["top"], coded["lens"]], [text["top"], text["lens"]])
        tensors, metadata = read_safetensors(self.post(ALL, headers={"Accept": SAFETENSORS}).body)
        padded = [row + [0] * (3 - len(row)) for row in text["log_probabilities"]]
        self.assertEqual(read_base64(coded["log_probabilities"]), ([3, 3], bits(padded)))
        self.assertEqual(tensors["log_probabilities"], ("F32", [3, 3], bits(padded)))
        self.same_lists(tensors, "top", text["top"], 5)
        for name, likely in text["lens"].items():
            self.same_lists(tensors, f"lens.{name}", likely, 7)
        self.assertEqual(tensors["valid_lens"][2] + tensors["target_lens"][2], struct.pack("<6i", *ROWS, *LENS))
        self.assertEqual(json.loads(metadata["usage"]), text["usage"])

    def test_what_is_refused(self):
        for request, pointer in (({"tokens": [[1]]}, "/targets"), ({"targets": [[1]]}, "/tokens"),
                                 ({"tokens": [[1]], "targets": [[1, 2, 50]]}, "/targets/0/2"),
                                 ({"tokens": [[1], [2]], "targets": [[1]]}, "/targets"),
                                 ({"tokens": [[1], []], "targets": [[1], [2]]}, "/tokens/1"),
                                 ({"tokens": [[1], [2]], "targets": [[1], []]}, "/targets/1"),
                                 (dict(ASKED, pool="mean"), "/pool"), (dict(ASKED, num_beams=2), "/num_beams"),
                                 (dict(ASKED, return_top=65), "/return_top"),
                                 (dict(ASKED, return_lens=65), "/return_lens"),
                                 (dict(ASKED, return_lens=-1), "/return_lens"),
                                 (dict(ASKED, return_lens=True), "/return_lens"),
                                 (dict(ASKED, return_lens="all"), "/return_lens"),
                                 (dict(ASKED, return_lens=2.5), "/return_lens")):
            self.problem(self.post(request), 400, "invalid-request", pointer)
        for model, path in (("small", "generate"), ("small", "encode"), ("encoder", "encode")):
            self.problem(self.server.post(f"/v1/models/{model}/{path}", {"tokens": [1], "return_lens": 1}), 400,
                         "invalid-request", "/return_lens")
        for model in ("encoder", "demo"):
            detail = self.problem(self.post(ASKED, model), 404, "not-found")["detail"]
            self.assertNotIn("/score", detail)

    def test_the_command_gives_the_same_bytes(self):
        config = os.path.join(self.server.folder, "attend.json")
        status, out, _ = attend("run", "small", "--score", "--config", config, data=json.dumps(ALL).encode())
        self.assertEqual((status, out), (0, self.post(ALL).body))
        for model in ("encoder", "demo"):
            status, _, words = attend("run", model, "--score", "--config", config, data=b"{}")
            self.assertEqual(status, 2)
            self.assertIn("cannot score", words)

    def test_tokens_are_counted(self):
        before = self.server.metric("attend_tokens_total", 'work="score"')
        self.answer(ASKED)
        self.assertEqual(self.server.metric("attend_tokens_total", 'work="score"'), before + sum(ROWS))


if __name__ == "__main__":
    unittest.main()
