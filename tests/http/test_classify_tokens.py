"""test_classify_tokens: heads on models over HTTP: the scores that published code computes, at every CPU level;
entities beside a plain form of Hugging Face's token classification; and what is refused."""
import json
import os
import random
import unittest

import numpy

import golden
from folders import read_tensors, write_folder
from forms import bits, read_base64, read_safetensors
from support import Case, FolderCase, Server, attend

PATHS = {"token_classify": "classify_tokens", "classify": "classify", "question": "question"}
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC", "B-a-b", "I-a-b", "x-O"]
STRATEGIES = ("none", "simple", "first", "average", "max")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "##s", "##ing", "##a", "##b", "a", "b", "c", "walk", "new", "york", ",", ".",
         "e", "é", "##é", "##ork", "##", "ß", "\U0001f600"]
PIECES = ["<pad>", "<s>", "</s>", "<unk>", "▁", "▁a", "▁b", "▁walk", "ing", "s", "a", "b", "c", ",", ".", "é", "▁é"]


# --- the pipeline of transformers, in a plain form --------------------------------------------------

def is_inside(text, piece, start, end, marked, unknown):
    """Does the token continue a word?"""
    if unknown:
        return False
    if marked:
        return len(piece) != len(text[start:end])
    return start > 0 and " " not in text[start - 1:start + 1]


def tag(label):
    return label[2:] if label[:2] in ("B-", "I-") else label


def entities(text, tokens, strategy):
    """`tokens`: (scores, start, end, whether it continues a word) of each that is not added around the text."""
    words = []
    for token in tokens:
        if strategy in ("none", "simple") or not words or not token[3]:
            words.append([])
        words[-1].append(token)
    found = []
    for word in words:
        rows = numpy.float32([token[0] for token in word])
        scores = {"average": lambda: rows.mean(axis=0, dtype=numpy.float64).astype(numpy.float32),
                  "max": lambda: rows[rows.max(axis=1).argmax()]}.get(strategy, lambda: rows[0])()
        best = int(scores.argmax())
        found.append((LABELS[best], float(scores[best]), word[0][1], word[-1][2]))
    groups = []
    for one in found:
        last = groups[-1][-1][0] if groups else None
        if last is not None and strategy != "none" and tag(one[0]) == tag(last) and not one[0].startswith("B-"):
            groups[-1].append(one)
        else:
            groups.append([one])
    answer = []
    for group in groups:
        label = group[0][0] if strategy == "none" else group[0][0].split("-", 1)[-1]
        start, end = group[0][2], group[-1][3]
        if label != "O":
            answer.append({"label": label, "score": sum(one[1] for one in group) / len(group), "start": start,
                           "end": end, "text": text[start:end]})
    return answer


# --- models -----------------------------------------------------------------------------------------

def write_tagger(folder, name, write):
    """A golden model with sharp random classes, and a tokenizer that `write` makes."""
    rng = numpy.random.default_rng(5)
    model = write_folder(folder, name, config={"id2label": {str(i): label for i, label in enumerate(LABELS)}}, **{
        "classifier.weight": numpy.float32(rng.normal(0, 1, (len(LABELS), 24))),
        "classifier.bias": numpy.float32(rng.normal(0, 0.5, len(LABELS)))})
    write(folder)
    return model


def write_words(folder):
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(WORDS) + "\n")


def write_pieces(folder):
    special = [{"id": i, "content": PIECES[i], "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for i in range(4)]
    around = {name: {"id": name, "ids": [PIECES.index(name)], "tokens": [name]} for name in ("<s>", "</s>")}
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    document = {"version": "1.0", "added_tokens": special, "normalizer": None, "pre_tokenizer": space,
                "post_processor": {"type": "TemplateProcessing", "single": single, "pair": single + [
                    {"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": around}, "decoder": space,
                "model": {"type": "Unigram", "unk_id": 3, "byte_fallback": False,
                          "vocab": [[piece, -float(i)] for i, piece in enumerate(PIECES)]}}
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)


def draw_text(rng, parts):
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 14)))


class Golden(Case):
    def test_scores_of_golden_models(self):
        """Beside published code, and with the same bits alone as in company; classes that int8 computes are near."""
        found = [(name, case) for kind in PATHS for name, case in golden.cases(kind)]
        self.assertGreaterEqual(len(found), 8)
        models = {name: golden.definition(name) for name, _ in found}
        models.update({f"{name}-int8": dict(models[name], compute="int8-block") for name in list(models)})
        for level in ("portable", "avx2", "avx512"):
            server = Server({"models": models}, env={"ATTEND_CPU": level})
            self.addCleanup(server.kill)
            for name, case in found:
                with self.subTest(level=level, model=name):
                    self.compare(server, name, case)
            server.stop()

    def compare(self, server, name, case):
        path = f"/v1/models/{name}/{PATHS[case['kind']]}"
        request = {field: case[field] for field in ("tokens", "token_types") if case.get(field)}

        def ask(path, request):
            """The logits; of a question, those of the first and the last token of an answer, as two columns."""
            if case["kind"] != "question":
                return self.ok(server.post(path, dict(request, function="none")))["outputs"]
            answer = self.ok(server.post(path, request))
            return [list(map(list, zip(*item))) for item in zip(answer["start"], answer["end"])]
        outputs = ask(path, request)
        expected = case["expected"]
        right = expected.get("logits") or [list(map(list, zip(*item)))
                                           for item in zip(expected["start_logits"], expected["end_logits"])]
        self.assertEqual(len(outputs), len(right))
        for i, (got, wanted) in enumerate(zip(outputs, right)):
            numpy.testing.assert_allclose(got, wanted, 1e-4, 1e-4)
            alone = {field: [rows[i]] for field, rows in request.items()}
            self.assertEqual(ask(path, alone), [got])
        if case["kind"] != "question":
            self.compare_v2(server, name, request, outputs)
        near = ask(path.replace(name, f"{name}-int8"), request)
        for got, wanted in zip(near, right):
            error = numpy.float64(got) - wanted
            self.assertLess(numpy.abs(error).max(), 0.25 * max(1, numpy.sqrt(numpy.square(wanted).mean())))


    def compare_v2(self, server, name, request, outputs):
        """The logits of the Open Inference Protocol, for a padded batch, have the same bits, beside the hidden states."""
        widest = max(map(len, request["tokens"]))
        names = {"tokens": "input_ids", "token_types": "token_type_ids"}
        inputs = {names[field]: [item + [0] * (widest - len(item)) for item in value] for field, value in request.items()}
        inputs["attention_mask"] = [[int(i < len(item)) for i in range(widest)] for item in request["tokens"]]
        shape = [len(request["tokens"]), widest]
        asked = {"inputs": [{"name": field, "datatype": "INT64", "shape": shape, "data": sum(value, [])}
                            for field, value in inputs.items()],
                 "outputs": [{"name": "logits"}, {"name": "last_hidden_state"}]}
        answer = self.ok(server.post(f"/v2/models/{name}/infer", asked))
        got = {one["name"]: numpy.float64(one["data"]).reshape(one["shape"]) for one in answer["outputs"]}
        hidden = self.ok(server.post(f"/v1/models/{name}/encode", dict(request, pool="none", normalize=False)))["outputs"]
        told = {one["name"]: one for one in self.ok(server.get(f"/v2/models/{name}"))["outputs"]}
        self.assertEqual(len(told["logits"]["shape"]), got["logits"].ndim)
        self.assertEqual(told["logits"]["shape"][-1], got["logits"].shape[-1])
        for i, (item, rows) in enumerate(zip(outputs, hidden)):
            self.assertEqual(got["last_hidden_state"][i][:len(rows)].tolist(), rows)
            if got["logits"].ndim == 2:
                self.assertEqual(got["logits"][i].tolist(), item)
            else:
                self.assertEqual(got["logits"][i][:len(item)].tolist(), item)
                self.assertFalse(got["logits"][i][len(item):].any())


class ClassifyTokens(FolderCase):
    @classmethod
    def start(cls):
        cls.models = {"words": write_tagger(os.path.join(cls.folder, "words"), "bert-tags", write_words),
                      "pieces": write_tagger(os.path.join(cls.folder, "pieces"), "roberta-tags", write_pieces),
                      "decoder": golden.definition("qwen2-tags"), "classes": golden.definition("qwen2-cls"),
                      "asks": golden.definition("bert-qa")}
        # a decoder with one class, and the tokenizer of another model
        cls.models["ranks"] = dict(golden.definition("qwen3-cls"), tokenizer=os.path.join(cls.folder, "words"))
        cls.config = os.path.join(cls.folder, "attend.json")
        with open(cls.config, "w", encoding="utf-8") as file:
            json.dump({"models": cls.models}, file)
        return Server({"models": cls.models, "text_embeddings_inference": True})

    def post(self, model, request, what="classify_tokens", **headers):
        return self.server.post(f"/v1/models/{model}/{what}", request, headers)

    def ask(self, model, **request):
        return self.ok(self.post(model, request))

    def refused(self, model, pointer, words, **request):
        problem = self.problem(self.post(model, request), 400, "invalid-request", pointer)
        self.assertIn(words, problem["detail"])

    # --- entities ---

    def entities_are(self, model, texts, marked, unknown):
        told = self.ask(model, text=texts, return_tokens=True, truncate=True)
        seen = set()
        for strategy in STRATEGIES:
            answer = self.ask(model, text=texts, group=strategy, truncate=True)
            self.assertEqual(list(answer), ["model", "entities", "usage"])
            self.assertEqual(len(answer["entities"]), len(texts))
            for i, text in enumerate(texts):
                tokens = [(scores, *place, is_inside(text, piece, *place, marked, token == unknown))
                          for scores, place, piece, token in list(zip(told["outputs"][i], told["offsets"][i], told["strings"][i],
                                                                      told["tokens"][i]))[1:-1]]
                right = entities(text, tokens, strategy)
                got = answer["entities"][i]
                with self.subTest(model=model, strategy=strategy, text=text):
                    self.assertEqual([{**one, "score": 0} for one in got], [{**one, "score": 0} for one in right])
                    numpy.testing.assert_allclose([one["score"] for one in got], [one["score"] for one in right], 1e-5)
                seen.update(one["label"] for one in right)
        self.assertGreater(len(seen), 5)

    def test_entities_are_those_of_the_pipeline(self):
        rng = random.Random(47)
        parts = ["walk", "walking", " ", " ", "new", "york", "as", "abs", "b", "bing", ", ", ".", "é", "ß", "zzz", "yorks",
                 "\U0001f600", "aé", "c"]
        texts = [draw_text(rng, parts) for _ in range(120)]
        self.entities_are("words", texts, True, WORDS.index("[UNK]"))
        parts = ["walk", "walking", " ", " ", "  ", "a", "b", "bs", "cab", ",", ".", "é", "zz", "\U0001f600", " é"]
        texts = [draw_text(rng, parts) for _ in range(120)]
        self.entities_are("pieces", texts, False, PIECES.index("<unk>"))

    def test_entities_of_one_text_and_of_none(self):
        both = self.ask("words", text=["walking a new york", "b"], group="simple")["entities"]
        self.assertEqual(self.ask("words", text="walking a new york", group="simple")["entities"], both[0])
        self.assertEqual(self.ask("words", text=[], group="simple")["entities"], [])
        self.assertEqual(self.ask("words", text=["", " "], group="max")["entities"], [[], []])
        self.assertEqual(self.ask("words", text="", group="average")["entities"], [])
        self.assertEqual(self.ask("words", text="walking", group="none", special_tokens=False, return_tokens=True)["tokens"],
                         [WORDS.index("walk"), WORDS.index("##ing")])

    # --- forms ---

    def test_every_form_has_the_same_bits(self):
        request = {"tokens": [[1, 2, 3], [4, 5, 6]], "token_types": [[0, 0, 1], [0, 1, 1]], "return_hidden": True}
        right = self.ask("words", **request)
        self.assertEqual(list(right), ["model", "outputs", "labels", "hidden", "usage"])
        self.assertEqual(right["labels"], LABELS)
        for row in right["outputs"][0]:
            self.assertAlmostEqual(sum(row), 1, 5)
        coded = self.ask("words", encoding_format="base64", **request)
        self.assertEqual(read_base64(coded["outputs"]), ([2, 3, 9], bits(right["outputs"])))
        answer = self.post("words", request, Accept="application/x-safetensors")
        tensors, about = read_safetensors(answer.body)
        self.assertEqual(tensors["outputs"], ("F32", [2, 3, 9], bits(right["outputs"])))
        self.assertEqual(json.loads(about["labels"]), LABELS)
        ragged = self.ask("words", tokens=[[1, 2, 3], [], [4]])["outputs"]
        self.assertEqual([len(item) for item in ragged], [3, 0, 1])
        self.assertEqual(self.ask("words", tokens=[1, 2, 3])["outputs"], ragged[0])

    def test_what_is_computed_beside_changes_no_bits(self):
        texts = ["walking a new york", "b", "as, as", "c b a"] * 12
        right = self.ask("words", text=texts)["outputs"]
        self.assertEqual([self.ask("words", text=text)["outputs"] for text in texts[:4]], right[:4])
        self.assertEqual(self.ask("words", text=texts, return_attention=True)["outputs"], right)

    # --- mistakes ---

    def test_wrong_requests(self):
        self.refused("words", "/group", "requires \"text\", not tokens: entities are parts of a text", tokens=[[1]],
                     group="simple")
        self.refused("words", "/group", "single texts, not pairs", text=[["a", "b"]], group="simple")
        self.refused("words", "/group", 'must be "none", "simple", "first", "average" or "max"', text="a", group="last")
        self.refused("words", "/function", 'with "group" the function is "softmax"', text="a", group="none",
                     function="none")
        self.refused("words", "/pool", "/encode", tokens=[1], pool="cls")
        self.refused("words", "/prompt", "/encode", text="a", prompt="b")
        problem = self.problem(self.post("classes", {"tokens": [1], "group": "max"}, "classify"), 400, "invalid-request",
                               "/group")
        self.assertIn("POST /v1/models/NAME/classify_tokens", problem["detail"])
        self.ask("words", text="a", group="none", function="softmax")
        for model, path, what in (("words", "classify", "(encoder without a classifier)"),
                                  ("classes", "classify_tokens", "(decoder without a classifier of tokens)"),
                                  ("classes", "generate", "(decoder without a language modeling head)")):
            problem = self.problem(self.post(model, {"tokens": [1]}, path), 404, "not-found")
            self.assertIn(what, problem["detail"])
        status = self.post("words", {"text": "a", "group": "simple"}, Accept="application/x-safetensors").status
        self.assertEqual(status, 406)

    # --- decoders ---

    def test_decoders_rank_by_their_last_row(self):
        documents = ["walking a new york", "b", "as, as", "c b a"]
        pairs = [["new york", one] for one in documents]
        scores = self.ok(self.post("ranks", {"text": pairs, "function": "none"}, "classify"))["outputs"]
        rows = self.ok(self.post("ranks", {"text": pairs}, "encode"))["outputs"]
        weight = read_tensors(os.path.join(golden.MODELS, "qwen3-cls", "model.safetensors"))["score.weight"]
        numpy.testing.assert_allclose([one[0] for one in scores], [weight[0] @ item[-1] for item in rows], 1e-4, 1e-4)
        ranked = self.ok(self.server.post("/v1/rerank", {"model": "ranks", "query": "new york", "documents": documents}))
        order = sorted(range(len(documents)), key=lambda i: -scores[i][0])
        self.assertEqual([one["index"] for one in ranked["results"]], order)
        likely = self.ok(self.post("ranks", {"text": pairs}, "classify"))["outputs"]
        self.assertEqual([one["relevance_score"] for one in ranked["results"]], [likely[i][0] for i in order])

    def test_other_services_classify_texts_alone(self):
        """A classifier of tokens is none of texts: its embeddings are."""
        for path, request in (("/predict", {"inputs": "a"}), ("/rerank", {"query": "a", "texts": ["b"]})):
            answer = self.server.post(path, {"model": "words", **request})
            self.assertEqual(answer.status, 400)
            self.assertIn(f"(encoder without a classifier) does not support {path}", answer.json["error"])
        answer = self.ok(self.server.post("/v1/rerank", {"model": "words", "query": "a", "documents": ["b", "a"]}))
        self.assertEqual([one["index"] for one in answer["results"]], [1, 0])

    # --- questions ---

    def test_scores_of_the_ends_of_an_answer(self):
        answer = self.ok(self.post("asks", {"tokens": [[1, 2, 3], [4]], "return_hidden": True}, "question"))
        self.assertEqual(list(answer), ["model", "start", "end", "hidden", "usage"])
        self.assertEqual([len(item) for item in answer["start"] + answer["end"]], [3, 1, 3, 1])
        alone = self.ok(self.post("asks", {"tokens": [1, 2, 3]}, "question"))
        self.assertEqual((alone["start"], alone["end"]), (answer["start"][0], answer["end"][0]))
        coded = self.ok(self.post("asks", {"tokens": [[1, 2, 3], [4]], "encoding_format": "base64"}, "question"))
        self.assertEqual((coded["start"], coded["end"]), (answer["start"], answer["end"]))
        self.assertEqual(self.post("asks", {"tokens": [1]}, "question", Accept="application/x-safetensors").status, 406)
        problem = self.problem(self.post("asks", {"tokens": [1], "function": "none"}, "question"), 400, "invalid-request",
                               "/function")
        self.assertIn("/v1/models/NAME/classify", problem["detail"])
        problem = self.problem(self.post("words", {"tokens": [1]}, "question"), 404, "not-found")
        self.assertIn("(encoder without a question answering head)", problem["detail"])
        for model, tasks in (("asks", ["encode", "question"]), ("words", ["encode", "classify_tokens"]),
                             ("decoder", ["encode", "classify_tokens"]), ("classes", ["encode", "classify"])):
            about = self.ok(self.server.get(f"/v1/models/{model}"))
            self.assertEqual(about["tasks"], tasks)
            self.assertEqual("labels" in about, model != "asks")
        _, out, _ = attend("inspect", os.path.join(golden.MODELS, "bert-qa"))
        self.assertIn("  a head that answers questions from a text\n", out.decode())
        body = b'{"tokens": [[1, 2, 3]]}'
        status, out, err = attend("run", "asks", "--question", "--config", self.config, data=body)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.rstrip(), self.post("asks", body, "question").body.rstrip())

    # --- commands ---

    def test_run_and_inspect(self):
        body = json.dumps({"text": ["walking", "b"], "group": "first"}).encode()
        status, out, err = attend("run", "words", "--classify-tokens", "--config", self.config, data=body)
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.rstrip(), self.post("words", body).body.rstrip())
        status, _, err = attend("run", "classes", "--classify-tokens", "--config", self.config, data=body)
        self.assertEqual(status, 2)
        self.assertIn("without a classifier of tokens: it cannot classify tokens", err)
        _, out, _ = attend("inspect", os.path.join(self.folder, "words"))
        self.assertIn("  a classifier of tokens with 9 classes, function softmax: O, B-PER, I-PER, B-LOC", out.decode())


if __name__ == "__main__":
    unittest.main()
