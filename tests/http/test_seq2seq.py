"""test_seq2seq: models of an encoder and a decoder: their numbers beside published code's, what is shown of both, how
answers begin, their forms, every mistake."""
import http.client
import itertools
import json
import math
import os
import struct
import unittest

import beams
import golden
from forms import bits, message_v2, read_base64, read_safetensors, read_v2, rectangle
from support import Server, ServerCase, attend, wait_until
from test_generate import events_of, put_together

SAFETENSORS = "application/x-safetensors"
RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "seq2seq", "layers": 2, "width": 32,
          "heads": 4, "feed_forward": 64, "vocabulary": 50}
MODELS = {"small": RANDOM, "other": dict(RANDOM, norm="pre", positions="learned", max_positions=20, activation="gelu",
                                         decoder={"layers": 1, "heads": 2, "feed_forward": 48}),
          "bare": dict(RANDOM, tie_output=False), "encoder": dict(RANDOM, kind="encoder"), "demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}
SOURCES, TARGETS = [[1, 2, 3], [6], [7, 8]], [[4, 5], [9, 10, 11], [12]]
ROWS, LENS = [len(source) for source in SOURCES], [len(targets) for targets in TARGETS]
ASKED = {"tokens": SOURCES, "targets": TARGETS}
ALL = dict(ASKED, return_top=5, return_lens=3, return_hidden="all", return_attention=True)


class Golden(ServerCase):
    """The numbers of published code, through the whole server."""

    @classmethod
    def start(cls):
        return golden.serve(golden.cases("decode", source=True))

    def near(self, got, wanted):
        if isinstance(wanted, list):
            self.assertEqual(len(got), len(wanted))
            for a, b in zip(got, wanted):
                self.near(a, b)
        else:
            self.assertLessEqual(abs(got - wanted), 1e-4 + 1e-4 * abs(wanted))

    def test_scores(self):
        """Behind the same sources and targets: log probabilities, every hidden state, every attention."""
        for name, case in golden.cases("decode", source=True):
            with self.subTest(model=name, case=case["name"]):
                right = case["expected"]
                answer = self.ok(self.server.post(f"/v1/models/{name}/score", {
                    "tokens": case["source_tokens"], "targets": case["targets"], "return_hidden": "all",
                    "return_attention": True}))
                self.near(answer["log_probabilities"], right["log_probabilities"])
                last = max(int(part.split(".")[1]) for part in answer["hidden"] if part.startswith("encoder."))
                if "encoder_last_hidden_state" in right:
                    self.near(answer["hidden"][f"encoder.{last}"], right["encoder_last_hidden_state"])
                for layer, states in enumerate(right.get("hidden_states", [])):
                    self.near(answer["hidden"][f"decoder.{layer}"], states)
                for kind, member in (("self", "self_attention"), ("cross", "cross_attention")):
                    for layer, weights in enumerate(right.get(member, [])):
                        self.near(answer["attention"][f"decoder.{layer}.{kind}"], weights)

    def test_greedy(self):
        for name, case in golden.cases("generate", source=True):
            if case.get("method", "greedy") != "greedy":
                continue
            with self.subTest(model=name, case=case["name"]):
                answer = self.ok(self.server.post(f"/v1/models/{name}/generate", {
                    "tokens": case["source_tokens"], "max_tokens": case["max_tokens"], "beams": 1}))
                right = case["expected"]
                for item, [sequence] in enumerate(answer["sequences"]):
                    self.assertEqual(sequence["tokens"], right["tokens"][item])
                    self.assertEqual(sequence["finish"], right["finish"][item])
                    logs = right["log_probabilities"][item]  # but that of an end that was forced
                    self.near(sequence["log_probabilities"][:len(logs)], logs)


class Case(ServerCase):
    @classmethod
    def start(cls):
        return Server({"models": MODELS, "default_model": "demo"})

    def post(self, what, request, model="small", headers=None):
        return self.server.post(f"/v1/models/{model}/{what}", request, headers)

    def answer(self, what, request, model="small"):
        return self.ok(self.post(what, request, model))

    def serve(self, models, **settings):
        server = Server(dict(settings, models=models))
        self.addCleanup(server.kill)
        return server


class Score(Case):
    def test_what_there_is(self):
        answer = self.answer("score", ALL)
        self.assertEqual([len(item) for item in answer["log_probabilities"]], LENS)
        self.assertEqual(sorted(answer["hidden"]),
                         [f"{stack}.{n}" for stack in ("decoder", "encoder") for n in range(3)])
        for name, states in answer["hidden"].items():
            self.assertEqual([len(item) for item in states], ROWS if name.startswith("encoder") else LENS)
        self.assertEqual(sorted(answer["attention"]), ["decoder.0.cross", "decoder.0.self", "decoder.1.cross",
                                                       "decoder.1.self", "encoder.0.self", "encoder.1.self"])
        for name, weights in answer["attention"].items():
            rows, keys = (ROWS, ROWS) if name.startswith("encoder") else (LENS, ROWS if "cross" in name else LENS)
            self.assertEqual([[len(item), len(item[0]), len(item[0][0])] for item in weights],
                             [[4, n, k] for n, k in zip(rows, keys)])
            for item in weights:
                for row in (row for head in item for row in head):
                    self.close_to(sum(row), 1, 1e-5)
        self.assertEqual(answer["usage"], {"tokens": sum(ROWS) + sum(LENS), "cached": 0, "generated": 0})

    def test_encode_shows_the_same_of_the_encoder(self):
        encoded = self.answer("encode", {"tokens": SOURCES, "return_hidden": "all", "return_attention": True})
        scored = self.answer("score", ALL)
        for group in ("hidden", "attention"):
            self.assertEqual(encoded[group], {name: part for name, part in scored[group].items() if "encoder" in name})
        self.problem(self.post("encode", {"tokens": SOURCES, "return_hidden": ["decoder.0"]}), 400, "invalid-request",
                     "/return_hidden/0")

    def test_one_item_alone_has_the_same_numbers(self):
        together = self.answer("score", ALL)
        for item in range(3):
            alone = self.answer("score", dict(ALL, tokens=SOURCES[item], targets=TARGETS[item]))
            for name in ("log_probabilities", "top"):
                self.assertEqual(alone[name], together[name][item])
            for group in ("lens", "hidden", "attention"):
                self.assertEqual(alone[group], {name: whole[item] for name, whole in together[group].items()})

    def test_padding_counts_for_nothing(self):
        padded = dict(ALL, tokens=[item + [99] * (3 - len(item)) for item in SOURCES], valid_lens=ROWS,
                      targets=[item + [-1] * (3 - len(item)) for item in TARGETS], target_lens=LENS)
        self.assertEqual(self.answer("score", padded), self.answer("score", ALL))

    def test_targets_depend_on_their_source(self):
        same = {"targets": [[4, 5, 6]] * 3, "tokens": [[1, 2], [1, 2], [2, 1]]}
        logs = self.answer("score", same)["log_probabilities"]
        self.assertEqual(logs[0], logs[1])
        self.assertNotEqual(logs[0], logs[2])

    def test_an_empty_source(self):
        """There is nothing to attend to: weights of no keys, and an answer all the same."""
        answer = self.answer("score", {"tokens": [[], [1]], "targets": [[2, 3], [4]], "return_attention": True})
        self.assertEqual(answer["attention"]["decoder.0.cross"][0], [[[], []]] * 4)
        self.assertEqual(answer["attention"]["encoder.0.self"][0], [[]] * 4)

    def test_an_empty_batch(self):
        self.assertEqual(self.answer("score", {"tokens": [], "targets": []}), {
            "model": "small", "log_probabilities": [], "usage": {"tokens": 0, "cached": 0, "generated": 0}})

    def test_an_attention_alone_gives_the_same_weights(self):
        """Across, queries are the rows behind its norm, and keys what the encoder puts out."""
        shown = self.answer("score", dict(ASKED, return_hidden=["decoder.1.cross.input", "encoder.-1"],
                                          return_attention=["decoder.1.cross"]), "small")
        alone = self.answer("layers/decoder.1.cross/attention", {
            "queries": shown["hidden"]["decoder.1.cross.input"], "keys": shown["hidden"]["encoder.2"],
            "return_attention": True})
        self.assertEqual(alone["attention_weights"], shown["attention"]["decoder.1.cross"])

    def test_a_cross_attention_alone_requires_keys(self):
        """Its queries are rows of the decoder, which it never attends to."""
        for what in "attention", "heads":
            problem = self.problem(self.post(f"layers/decoder.0.cross/{what}", {"queries": [[1] * 32]}), 400,
                                   "invalid-request", "/keys")
            self.assertIn('cross-attention requires "keys"', problem["detail"])
        self.answer("layers/decoder.0.self/attention", {"queries": [[1] * 32]})

    def test_a_trace_across(self):
        asked = dict(ASKED, return_attention=["decoder.1.cross"],
                     trace={"attention": "decoder.1.cross", "item": 0, "head": 2, "query": 1})
        answer = self.answer("score", asked)
        self.assertEqual(answer["trace"]["weights"], answer["attention"]["decoder.1.cross"][0][2][1])
        self.assertEqual(len(answer["trace"]["keys"]), 3)
        self.problem(self.post("score", dict(asked, trace=dict(asked["trace"], query=2))), 400, "invalid-request",
                     "/trace/query")

    def test_masks_of_heads(self):
        right = self.answer("score", ASKED)["log_probabilities"]
        for name in ("encoder.*.self", "decoder.-1.self", "decoder.0.cross"):
            masked = self.answer("score", dict(ASKED, head_mask={name: [1, 0, 1, 1]}))["log_probabilities"]
            self.assertNotEqual(masked, right)
            self.assertEqual(self.answer("score", dict(ASKED, head_mask={name: [1] * 4}))["log_probabilities"], right)

    def test_bytes_are_the_same_numbers(self):
        asked = dict(ASKED, return_hidden=True, return_attention="average")
        text = self.answer("score", asked)
        coded = self.answer("score", dict(asked, encoding_format="base64"))
        tensors, metadata = read_safetensors(self.post("score", asked, headers={"Accept": SAFETENSORS}).body)
        self.assertEqual([coded["valid_lens"], coded["target_lens"]], [ROWS, LENS])
        self.assertEqual(tensors["valid_lens"][2] + tensors["target_lens"][2], struct.pack("<6i", *ROWS, *LENS))
        for group, name, width in (("hidden", "encoder.2", 32), ("hidden", "decoder.2", 32),
                                   ("attention", "encoder.1.self", 3), ("attention", "decoder.1.self", 3),
                                   ("attention", "decoder.0.cross", 3)):
            padded = [[row + [0] * (width - len(row)) for row in item] + [[0] * width] * (3 - len(item))
                      for item in text[group][name]]
            self.assertEqual(read_base64(coded[group][name]), ([3, 3, width], bits(padded)))
            self.assertEqual(tensors[f"{group}.{name}"], ("F32", [3, 3, width], bits(padded)))
        self.assertEqual(json.loads(metadata["usage"]), text["usage"])

    def test_rows_in_place_of_tokens(self):
        table = {"tokens": [[n] for n in range(50)], "return_hidden": ["encoder.0"]}
        self.answer("encode", table)
        answer = self.answer("score", {"embeddings": [[[0.5] * 32, [0.25] * 32]], "targets": [[1, 2]]})
        self.assertEqual(len(answer["log_probabilities"][0]), 2)

    def test_what_is_refused(self):
        for request, pointer in (({"tokens": [[1]]}, "/targets"), ({"targets": [[1]]}, "/tokens"),
                                 ({"tokens": [[1]], "targets": [[1, 50]]}, "/targets/0/1"),
                                 ({"tokens": [[50]], "targets": [[1]]}, "/tokens/0/0"),
                                 ({"tokens": [[1], [2]], "targets": [[1]]}, "/targets"),
                                 ({"tokens": [[1]], "targets": [[]]}, "/targets/0"),
                                 (dict(ASKED, return_attention=["decoder.2.cross"]), "/return_attention/0"),
                                 (dict(ASKED, head_mask={"decoder.0.cross": [1]}), "/head_mask/decoder.0.cross"),
                                 (dict(ASKED, pool="mean"), "/pool"), (dict(ASKED, beams=2), "/beams")):
            with self.subTest(pointer=pointer):
                self.problem(self.post("score", request), 400, "invalid-request", pointer)
        for targets, tokens, pointer in (([1] * 21, [1], "/targets"), ([1], [1] * 21, "/tokens")):
            self.problem(self.post("score", {"tokens": tokens, "targets": targets}, "other"), 400, "invalid-request",
                         pointer)
        self.answer("score", {"tokens": [1] * 20, "targets": [1] * 20}, "other")

    def test_the_command_gives_the_same_bytes(self):
        config = os.path.join(self.server.folder, "attend.json")
        for what, request in (("score", ALL), ("generate", {"tokens": SOURCES, "beams": 2, "max_tokens": 4}),
                              ("generate", {"tokens": SOURCES, "max_tokens": 4, "return_hidden": True})):
            status, out, _ = attend("run", "small", f"--{what}", "--config", config, data=json.dumps(request).encode())
            self.assertEqual((status, out), (0, self.post(what, request).body))
        streamed = {"tokens": SOURCES, "max_tokens": 4, "stream": True}
        status, out, _ = attend("run", "small", "--generate", "--config", config, data=json.dumps(streamed).encode())
        self.assertEqual((status, out), (0, self.post("generate", streamed).body))

    def test_rows_are_counted(self):
        before = self.server.metric("attend_tokens_total", 'work="score"')
        self.answer("score", ASKED)
        self.assertEqual(self.server.metric("attend_tokens_total", 'work="score"'), before + sum(ROWS) + sum(LENS))

    def test_it_is_described(self):
        told = self.server.get("/v1/models/other").json
        self.assertEqual((told["kind"], told["encoder"]["layers"], told["decoder"]["layers"]), ("seq2seq", 2, 1))
        self.assertEqual((told["decoder"]["heads"], told["decoder"]["feed_forward"]), (2, 48))
        self.assertEqual((told["target_vocabulary"], told["target_positions"]), (50, 20))
        self.assertEqual(told["attentions"], ["encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross"])
        self.assertEqual(told["tokens"]["begin"], 1)
        self.assertEqual(told["generate"]["beams"], 1)


class Protocol(Case):
    """The Open Inference Protocol: the encoder alone, or both where the decoder is fed."""

    OUTPUTS = "last_hidden_state", "logits", "encoder_last_hidden_state"

    def infer(self, inputs, outputs=(), model="small", **more):
        arrays = {name: ("FP32" if name == "inputs_embeds" else "INT64", array) for name, array in inputs.items()}
        if outputs:
            more["outputs"] = [{"name": name} for name in outputs]
        return self.server.post(f"/v2/models/{model}/infer", message_v2(arrays, **more))

    def arrays(self, *args, **more):
        answer = self.infer(*args, **more)
        self.assertEqual(answer.status, 200, answer)
        return read_v2(answer.headers, answer.body)[1]

    def test_both(self):
        """Fed is the token that begins, and all targets but the last: the rows, and of the logits the logarithms, are
        those of /score, whatever is named and whichever form it has."""
        inputs = {"input_ids": [[1, 2, 3], [6, 0, 0], [7, 8, 9]], "attention_mask": [[1, 1, 1], [1, 0, 0], [1, 1, 0]],
                  "decoder_input_ids": [[1, 4, 30], [1, 9, 10], [1, 30, 30]],
                  "decoder_attention_mask": [[1, 1, 0], [1, 1, 1], [1, 0, 0]]}
        for model in ("small", "other"):
            right = self.answer("score", dict(ASKED, return_hidden=True), model)
            hidden = {part.split(".")[0]: rows for part, rows in right["hidden"].items()}
            wanted = {"last_hidden_state": rectangle(hidden["decoder"], [3, 3, 32]),
                      "encoder_last_hidden_state": rectangle(hidden["encoder"], [3, 3, 32])}
            for names in ((), self.OUTPUTS, self.OUTPUTS[::-1], ["logits"], ["encoder_last_hidden_state"]):
                for binary in (False, True):
                    found = self.arrays(inputs, names, model, parameters={"binary_data_output": binary})
                    self.assertEqual(list(found), list(names or ["last_hidden_state"]))
                    for name in set(found) & set(wanted):
                        self.assertEqual(found[name], ([3, 3, 32], bits(wanted[name])))
                    if "logits" in found:
                        self.check_logits(found["logits"], right["log_probabilities"])

    def check_logits(self, found, scores):
        shape, raw = found
        self.assertEqual(shape, [3, 3, 50])
        logits = struct.unpack("<450f", raw)
        for item, targets in enumerate(TARGETS):
            for row in range(3):
                of = logits[(3 * item + row) * 50:][:50]
                if row >= len(targets):
                    self.assertEqual(set(of), {0.0})
                    continue
                log_sum = math.log(sum(math.exp(x - max(of)) for x in of)) + max(of)
                self.assertAlmostEqual(of[targets[row]] - log_sum, scores[item][row], places=5)

    def test_the_encoder_alone(self):
        rows = self.answer("encode", {"tokens": [[1, 2, 3]]})["outputs"]
        for names in ((), ["last_hidden_state"], ["encoder_last_hidden_state"]):
            [found] = self.arrays({"input_ids": [[1, 2, 3]]}, names).values()
            self.assertEqual(found, ([1, 3, 32], bits(rows)))

    def test_rows_in_place_of_tokens(self):
        rows, fed = [[[0.5] * 32, [-1.0] * 32]], [[1, 4]]
        right = self.answer("score", {"embeddings": rows, "targets": [[4, 5]], "return_hidden": True})
        found = self.arrays({"inputs_embeds": rows, "decoder_input_ids": fed})
        self.assertEqual(found["last_hidden_state"][1], bits(right["hidden"]["decoder.2"]))

    def test_nothing_of_something(self):
        """No rows of an item, no items at all."""
        for ids, fed, shape in (([[1, 2]], [[]], [1, 0, 50]), ([[]], [[3, 1]], [1, 2, 50])):
            shape_found, raw = self.arrays({"input_ids": ids, "decoder_input_ids": fed}, ["logits"])["logits"]
            self.assertEqual((shape_found, len(raw)), (shape, 4 * 50 * shape[1]))
        message = {"inputs": [{"name": name, "datatype": "INT64", "shape": [0, n], "data": []}
                              for name, n in (("input_ids", 2), ("decoder_input_ids", 3))],
                   "outputs": [{"name": name} for name in self.OUTPUTS]}
        answer = self.ok(self.server.post("/v2/models/small/infer", message))
        self.assertEqual([output["shape"] for output in answer["outputs"]], [[0, 3, 32], [0, 3, 50], [0, 2, 32]])

    def test_it_is_described(self):
        told = self.server.get("/v2/models/other").json
        self.assertEqual([tensor["name"] for tensor in told["inputs"]],
                         ["input_ids", "attention_mask", "inputs_embeds", "decoder_input_ids",
                          "decoder_attention_mask"])
        self.assertEqual({tensor["name"]: tensor["shape"] for tensor in told["outputs"]},
                         {"last_hidden_state": [-1, -1, 32], "logits": [-1, -1, 50],
                          "encoder_last_hidden_state": [-1, -1, 32]})

    def test_what_is_refused(self):
        both = {"input_ids": [[1, 2], [3, 4]], "decoder_input_ids": [[1, 2], [1, 3]]}
        for inputs, names, model, where in (
                ({"input_ids": [[1]]}, ["logits"], "small", 'logits require the input "decoder_input_ids" (at /outputs/0)'),
                ({"input_ids": [[1]], "decoder_attention_mask": [[1]]}, (), "small", 'the input "decoder_input_ids" (at /inputs/1'),
                (both, ["logits"], "bare", "no language modeling head and no classes: it has no logits (at /outputs/0)"),
                ({"input_ids": [[1]]}, ["logits"], "bare", "no language modeling head and no classes: it has no logits (at /outputs/0)"),
                (both, ["pooler_output"], "small", "no pooler (at /outputs/0)"),
                (dict(both, decoder_input_ids=[[1, 2]]), (), "small", "1 items, but input_ids has 2"),
                (dict(both, decoder_input_ids=[[1, 2], [1, 50]]), (), "small",
                 "token 50 is out of range: the vocabulary is 0 to 49, at /1/1 of the array (at /inputs/1)"),
                (dict(both, decoder_attention_mask=[[1, 0], [0, 1]]), (), "small", "at /1/1 of the array (at /inputs/2)"),
                (dict(both, decoder_attention_mask=[[1], [1]]), (), "small", "1 numbers, but the item has 2 positions"),
                (dict(both, decoder_input_ids=[[1] * 21] * 2), (), "other", "21 tokens exceed the decoder's context length of 20"),
                ({"input_ids": [[1]], "decoder_input_ids": [[1]]}, (), "encoder", "expected input_ids"),
                ({"decoder_input_ids": [[1]]}, (), "small", '"input_ids" is missing')):
            with self.subTest(where=where):
                answer = self.infer(inputs, names, model)
                self.assertEqual(answer.status, 400, answer)
                self.assertIn(where, answer.json["error"])

    def test_limits(self):
        """What both would take is counted, before anything is computed."""
        few, short = (self.serve({"small": RANDOM}, **limit) for limit in ({"max_pairs": 100}, {"max_answer_bytes": 4000}))
        for server, length, name, status in (
                (few, 2, "logits", 200), (few, 3, "logits", 413),  # 8 (1 + n n + n) pairs in all layers and heads
                (short, 8, "encoder_last_hidden_state", 200), (short, 8, "logits", 413)):
            message = message_v2({"input_ids": ("INT64", [[1]]), "decoder_input_ids": ("INT64", [[1] * length])},
                                 outputs=[{"name": name}])
            self.assertEqual(server.post("/v2/models/small/infer", message).status, status)


class Generate(Case):
    def test_scores_are_the_same_numbers(self):
        for model in ("small", "other"):
            for more in ({}, {"temperature": 1, "returns": 3, "seed": 5}, {"beams": 3, "returns": 3}):
                answer = self.answer("generate", dict(more, tokens=SOURCES, max_tokens=6, return_top=2), model)
                for source, sequences in zip(SOURCES, answer["sequences"]):
                    for sequence in sequences:
                        scored = self.answer("score", {"tokens": source, "targets": sequence["tokens"],
                                                       "return_top": 2}, model)
                        self.assertEqual(scored["log_probabilities"], sequence["log_probabilities"])
                        self.assertEqual(scored["top"], sequence["top"])
                tokens = sum(len(s["tokens"]) for sequences in answer["sequences"] for s in sequences)
                self.assertEqual(answer["usage"], {"tokens": sum(ROWS) + 3, "cached": 0, "generated": tokens})

    def test_a_plain_search_finds_the_same(self):
        for model in ("small", "other"):
            for source in SOURCES:
                for width, early, penalty in ((2, False, 1.0), (4, True, 0.6), (3, "never", 2.0)):
                    done, steps = beams.search(beams.asker(self.server, model, source=source), width, 9, [2],
                                               penalty=penalty, early=early)
                    answer = beams.numbers(self.answer("generate", {
                        "tokens": source, "beams": width, "returns": width, "length_penalty": penalty,
                        "early_stopping": early, "max_tokens": 9, "return_search": True}, model))
                    self.assertEqual(answer["search"], beams.as_search(steps))
                    self.assertEqual(answer["sequences"], beams.as_answer(done, width))

    def test_answers_begin_as_they_are_told(self):
        for model in ("small", "other"):
            whole = self.answer("generate", {"tokens": SOURCES, "max_tokens": 8, "min_tokens": 8}, model)["sequences"]
            for cut in (1, 3, 7):
                begins = [sequence["tokens"][:cut] for [sequence] in whole]
                part = self.answer("generate", {"tokens": SOURCES, "targets": begins, "max_tokens": 8 - cut,
                                                "min_tokens": 8 - cut}, model)
                for [all], [rest] in zip(whole, part["sequences"]):
                    self.assertEqual(rest["tokens"], all["tokens"][cut:])
                    self.assertEqual(rest["log_probabilities"], all["log_probabilities"][cut:])
                self.assertEqual(part["usage"]["tokens"], sum(ROWS) + 3 * (1 + cut))
        asked = {"tokens": SOURCES, "targets": [[4, 5, -1], [-1] * 3, [9, -1, -1]], "target_lens": [2, 0, 1],
                 "max_tokens": 4}
        self.assertEqual(self.answer("generate", asked), self.answer("generate", {
            "tokens": SOURCES, "targets": [[4, 5], [], [9]], "max_tokens": 4}))

    def test_what_is_shown_is_what_a_score_shows(self):
        asked = {"tokens": SOURCES, "max_tokens": 5, "min_tokens": 5, "return_hidden": "all", "return_attention": True}
        answer = self.answer("generate", asked)
        chosen = [sequence["tokens"] for [sequence] in answer["sequences"]]
        scored = self.answer("score", {"tokens": SOURCES, "targets": chosen, "return_hidden": "all",
                                       "return_attention": True})
        for group in ("hidden", "attention"):
            for name, part in scored[group].items():
                if name.startswith("encoder"):
                    self.assertEqual(answer[group][name], part)
                else:
                    self.assertEqual([sequence[group][name] for [sequence] in answer["sequences"]], part)
        with_beams = dict(asked, beams=2, return_hidden=["encoder.*"], return_attention=["encoder.*.self"])
        searched = self.answer("generate", with_beams)
        for group in ("hidden", "attention"):
            self.assertEqual(searched[group], answer[group])

    def test_streams(self):
        for request in ({"tokens": SOURCES, "max_tokens": 6},
                        {"tokens": SOURCES, "max_tokens": 6, "temperature": 1, "returns": 2,
                         "targets": [[1], [], [2]]}):
            events = events_of(self.post("generate", dict(request, stream=True)).body.decode())
            right = self.answer("generate", request)
            self.assertEqual(put_together(events, SOURCES, request.get("returns", 1)),
                             {"sequences": right["sequences"], "usage": right["usage"]})

    def test_a_stream_that_is_left_ends(self):
        server = self.serve({"small": dict(RANDOM, width=256, layers=4, feed_forward=1024)})
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/v1/models/small/generate", json.dumps({
            "tokens": [[1] * 30], "max_tokens": 20000, "min_tokens": 20000, "stream": True}),
            {"Content-Type": "application/json"})
        response = connection.getresponse()
        self.assertIn(b"token", response.readline())
        response.close()
        connection.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))

    def test_positions(self):
        tokens = self.answer("generate", {"tokens": [1] * 20, "min_tokens": 99}, "other")["sequences"][0]["tokens"]
        self.assertEqual(len(tokens), 20)
        for request, pointer in (({"tokens": [1] * 21}, "/tokens"), ({"tokens": [1], "max_tokens": 21}, "/max_tokens"),
                                 ({"tokens": [1], "targets": [1] * 20}, "/targets"),
                                 ({"tokens": [1], "targets": [1] * 3, "max_tokens": 18}, "/max_tokens")):
            self.problem(self.post("generate", request, "other"), 400, "invalid-request", pointer)

    def test_what_was_found_shows_what_its_score_does(self):
        inside = {"return_hidden": ["decoder.*", "encoder.-1"], "return_attention": ["decoder.*.cross", "decoder.*.self"]}
        for model in ("small", "other"):
            answer = self.answer("generate", {"tokens": SOURCES, "beams": 4, "returns": 3, "max_tokens": 7, **inside},
                                 model)
            for item, (source, sequences) in enumerate(zip(SOURCES, answer["sequences"])):
                for sequence in sequences:
                    score = self.answer("score", {"tokens": source, "targets": sequence["tokens"], **inside}, model)
                    for name, states in answer["hidden"].items():
                        self.assertEqual(states[item], score["hidden"].pop(name))
                    self.assertEqual(sequence["hidden"], score["hidden"])
                    self.assertEqual(sequence["attention"], score["attention"])

    def test_what_is_refused(self):
        asked = {"tokens": SOURCES, "max_tokens": 4}
        for more, pointer in (({"targets": [[1]]}, "/targets"), ({"targets": [[1], [2], [50]]}, "/targets/2/0"),
                              ({"target_lens": [1, 1, 1]}, "/target_lens"), ({"trace": {}}, "/trace"),
                              ({"stream": True, "return_hidden": ["encoder.0"]}, "/stream"),
                              ({"decoder_start_token_id": 2}, "/decoder_start_token_id")):
            with self.subTest(more=more):
                self.problem(self.post("generate", dict(asked, **more)), 400, "invalid-request", pointer)
        for name, hint in ("forced_begin", '"targets"'), ("forced_bos_token_id", '"targets"'), ("forced_end", "own token"):
            problem = self.problem(self.post("generate", dict(asked, **{name: 2})), 400, "invalid-request", "/" + name)
            self.assertIn(hint, problem["detail"])
        self.problem(self.post("generate", asked, headers={"Accept": SAFETENSORS}), 406, "not-acceptable")
        self.problem(self.post("generate", asked, "encoder"), 404, "not-found")

    def test_a_sum_beyond_float32(self):
        """A way that is followed has a sum that is told, and is a number."""
        problem = self.problem(self.post("generate", {
            "tokens": list(range(50)), "beams": 2, "max_tokens": 3, "repetition_penalty": 1e38, "return_search": True,
            "targets": list(range(50))}), 422, "not-finite")
        self.assertIn("its sum of log probabilities", problem["detail"])

    def test_without_the_token_that_begins(self):
        """The refusal says what is missing, as do the log and the description."""
        models = {"mute": dict(RANDOM, begin=None), "bare": dict(RANDOM, tie_output=False)}
        lack = {"mute": '"begin" in its definition, the decoder start token', "bare": "a language modeling head"}
        server = self.serve(models)
        for name, what in itertools.product(models, ("score", "generate")):
            problem = self.problem(server.post(f"/v1/models/{name}/{what}", ASKED), 404, "not-found")
            self.assertIn(f"(seq2seq without {lack[name]}) does not support this path. Available: POST "
                          "/v1/models/{model}/heads, /v1/models/{model}/encode", problem["detail"])
        status, _, err = attend("run", "mute", "--generate", "--config",
                                os.path.join(server.folder, "attend.json"), data=b"{}")
        self.assertEqual(status, 2)
        self.assertIn(f"the kind seq2seq without {lack['mute']}: it cannot generate", err)
        model = self.ok(server.get("/v1/models/mute"))
        self.assertIn("no decoder start token", model["notes"][0])
        self.assertNotIn("generate", model)

    def test_limits(self):
        server = self.serve({"small": RANDOM}, max_pairs=4 * 2 * (9 + 2 * 4 + 2 * 2 * 3))  # of the request below
        request = {"tokens": [1, 2, 3], "max_tokens": 2, "beams": 2}
        self.ok(server.post("/v1/models/small/generate", request))
        for more in ({"tokens": [1, 2, 3, 4]}, {"max_tokens": 3}, {"beams": 3}, {"targets": [1]}):
            problem = self.problem(server.post("/v1/models/small/generate", dict(request, **more)), 413, "too-large")
            self.assertEqual(problem["limit"], "max_pairs")


if __name__ == "__main__":
    unittest.main()
