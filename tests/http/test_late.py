"""test_late: late interaction over HTTP: folders as ColBERT, PyLate and sentence-transformers write them, beside an oracle
in numpy: the marker, the padding of queries, the tokens without a vector, and MaxSim of /v1/rerank; what is refused."""
import json
import math
import os
import shutil
import string
import tempfile
import unittest

import numpy

import golden
from folders import read_tensors, write_folder
from support import Server, ServerCase, attend, safetensors_bytes
from test_fill import LEVELS

WIDTH, HEADS, SIZE, LONGEST = 24, 3, 7, 32
WORDS = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", "!", "[Q] ", "[D]"]
WORDS += [f"w{i}" for i in range(54 - len(WORDS))]
TEXTS = ["w3, w5.", "w7 w8! w9 w9", "w1", "w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15"]
QUERIES = ["w5 w9", "w3 . w4", "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12"]
ST = "sentence_transformers."
IDENTITY = "torch.nn.modules.linear.Identity"


# --- the oracle ---

def normal(x, scale, shift):
    x = x - x.mean(axis=1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-12) * scale + shift


def bert(tensors, ids, attended):
    """The last hidden states of BERT, whose rows attend to the tokens of the mask alone."""
    def linear(x, name):
        return x @ t[name + ".weight"].T + t[name + ".bias"]
    t = {name: numpy.float64(x) for name, x in tensors.items()}
    stem = "bert.embeddings."
    x = (t[stem + "word_embeddings.weight"][ids] + t[stem + "position_embeddings.weight"][:len(ids)] +
         t[stem + "token_type_embeddings.weight"][0])
    x = normal(x, t[stem + "LayerNorm.weight"], t[stem + "LayerNorm.bias"])
    for layer in "01":
        stem = f"bert.encoder.layer.{layer}."
        q, k, v = (linear(x, f"{stem}attention.self.{part}").reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
                   for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS)
        scores[:, :, ~numpy.array(attended, bool)] = -math.inf
        powers = numpy.exp(scores - scores.max(axis=2, keepdims=True))
        context = (powers / powers.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), WIDTH)
        x = normal(linear(context, stem + "attention.output.dense") + x, t[stem + "attention.output.LayerNorm.weight"],
                   t[stem + "attention.output.LayerNorm.bias"])
        inner = linear(x, stem + "intermediate.dense")
        inner = inner * (1 + numpy.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        x = normal(linear(inner, stem + "output.dense") + x, t[stem + "output.LayerNorm.weight"],
                   t[stem + "output.LayerNorm.bias"])
    return x


class Recipe:
    """What a folder says of its texts."""

    def __init__(self, **said):
        self.marker = {"query": "[unused0]", "document": "[unused1]"}
        self.length = {"query": 10, "document": 12}
        self.expands, self.attends, self.filler, self.fixed = True, False, "[MASK]", True
        self.skipped, self.skips, self.only = list(string.punctuation), ["document"], None
        self.__dict__.update(said)

    def tokens(self, text, role, cut=True):
        """The tokens of a text, which of them are attended to, and which have a vector."""
        words = text
        for mark in ".,!":
            words = words.replace(mark, f" {mark} ")
        ids = [WORDS.index(word) for word in words.split()]
        marker = [WORDS.index(self.marker[role])] if self.marker[role] else []
        longest = self.length[role]
        if cut and longest:
            ids = ids[:longest - 2 - len(marker)]
        ids = [WORDS.index("[CLS]"), *marker, *ids, WORDS.index("[SEP]")]
        own = len(ids)
        if role == "query" and self.expands:
            ids += [WORDS.index(self.filler)] * (self.length[role] - own)
        attended = [1] * own + [int(self.attends)] * (len(ids) - own)
        kept = [not (role in self.skips and WORDS[i] in self.skipped) for i in ids]
        if role == "document" and self.only is not None:
            kept = [good and i in self.only for good, i in zip(kept, ids)]
        return ids, attended, kept

    def vectors(self, tensors, layers, text, role, cut=True):
        ids, attended, kept = self.tokens(text, role, cut)
        x = bert(tensors, ids, attended)
        for layer in layers:
            x = x @ numpy.float64(layer).T
        return (x / numpy.linalg.norm(x, axis=1, keepdims=True))[kept], [i for i, good in enumerate(kept) if good]


def max_similarity(query, document):
    return float((query @ document.T).max(axis=1).sum())


# --- the folders ---

def put(folder, name, content):
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content) if isinstance(content, bytes) else json.dump(content, file)


def put_tensors(folder, name, **tensors):
    put(folder, name, safetensors_bytes({key: (list(x.shape), x.ravel().tolist()) for key, x in tensors.items()}))


def tokenizer():
    """WordPiece with the markers as added tokens, one of which ends with a blank."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[Q] ", "[D]"]
    ends = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    return {"added_tokens": [{"id": WORDS.index(word), "content": word, "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True} for word in special],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": ends, "pair": ends + ends,
                               "special_tokens": {word: {"id": word, "ids": [WORDS.index(word)], "tokens": [word]}
                                                  for word in ("[CLS]", "[SEP]")}},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {word: i for i, word in enumerate(WORDS)}}}


def matrix(rows, columns, seed):
    return numpy.float32(numpy.random.default_rng(seed).normal(0, 0.5, (rows, columns)))


def dense(at, layer, **changes):
    """A folder's file of a dense layer, as sentence-transformers saves it for token embeddings."""
    said = {"in_features": layer.shape[1], "out_features": layer.shape[0], "bias": False, "activation_function": IDENTITY,
            "module_input_name": "token_embeddings", "module_output_name": "token_embeddings", **changes}
    put(at, "config.json", {key: x for key, x in said.items() if x is not ...})
    put_tensors(at, "model.safetensors", **{"linear.weight": layer})


class Folder:
    """A folder, its recipe and its layers."""

    def __init__(self, at, recipe, layers):
        self.at, self.recipe, self.layers = at, recipe, layers
        self.definition = {"transformer": at}

    def document(self, name, **changes):
        """Changes values of a document of the folder; ... removes one."""
        path = os.path.join(self.at, name)
        with open(path, encoding="utf-8") as file:
            said = {**json.load(file), **changes}
        put(self.at, name, {key: x for key, x in said.items() if x is not ...})
        return self


def colbert(at, recipe=None, metadata=None, projection=True):
    layer = matrix(SIZE, WIDTH, 3)
    write_folder(at, "bert-mlm", WORDS, ["cls."], {"architectures": ["HF_ColBERT"]},
                 **({"linear.weight": layer} if projection else {}))
    if metadata is not False:
        put(at, "artifact.metadata", {"query_maxlen": 10, "doc_maxlen": 12, "dim": SIZE, "similarity": "cosine",
                                      "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "mask_punctuation": True,
                                      "attend_to_mask_tokens": False, "checkpoint": "/x/y", **(metadata or {})})
    return Folder(at, recipe or Recipe(), [layer])


def pylate(at, recipe=None, model="bert-mlm", **said):
    write_folder(at, model, None, ["cls."])
    with open(os.path.join(at, "config.json"), encoding="utf-8") as file:
        layer = matrix(SIZE, json.load(file)["hidden_size"], 4)
    put(at, "tokenizer.json", tokenizer())
    put(at, "modules.json", [{"idx": 0, "name": "0", "path": "", "type": ST + "models.Transformer"},
                             {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}])
    dense(os.path.join(at, "1_Dense"), layer, module_input_name=..., module_output_name=..., use_residual=False)
    put(at, "config_sentence_transformers.json",
        {"model_type": "ColBERT", "prompts": {"query": "", "document": ""}, "default_prompt_name": None,
         "similarity_fn_name": "MaxSim", "query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 10,
         "document_length": 12, "attend_to_expansion_tokens": False, "do_query_expansion": True,
         "skiplist_words": [",", ".", "w9", "absent"], **said})
    recipe = recipe or Recipe(skipped=[",", ".", "w9"])
    recipe.marker = {"query": "[Q] ", "document": "[D]"}
    return Folder(at, recipe, [layer])


def multi_vector(at, recipe=None, mask=None, order=(2, 3), **said):
    """As sentence-transformers saves a MultiVectorEncoder: the markers are prompts."""
    layers = [matrix(9, WIDTH, 5), matrix(SIZE, 9, 6)]
    write_folder(at, "bert-mlm", None, ["cls."])
    put(at, "tokenizer.json", tokenizer())
    names = {0: ("", "base.modules.transformer.Transformer"), 1: ("1_Dense", "base.modules.dense.Dense"),
             2: ("2_MultiVectorMask", "multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask"),
             3: ("3_Normalize", "base.modules.normalize.Normalize"), 4: ("4_Dense", "base.modules.dense.Dense")}
    put(at, "modules.json", [{"idx": i, "name": str(i), "path": names[n][0], "type": ST + names[n][1]}
                             for i, n in enumerate((0, 1, 4, *order))])
    dense(os.path.join(at, "1_Dense"), layers[0])
    dense(os.path.join(at, "4_Dense"), layers[1], module_output_name=None)
    put(at, "2_MultiVectorMask/config.json", mask or {"skiplist_words": ["!", "w5"], "skiplist_tasks": ["query", "document"],
                                                      "keep_only_token_ids": None})
    put(at, "3_Normalize/config.json", {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"})
    put(at, "config_sentence_transformers.json", {"model_type": "MultiVectorEncoder", "similarity_fn_name": "maxsim",
                                                  "prompts": {"query": "[Q] ", "document": "[D] "}})
    put(at, "sentence_bert_config.json",
        {"transformer_task": "feature-extraction", "query_length": None, "document_length": 12,
         "query_expansion": {"strategy": "fixed", "attend": True, "token": None, "length": 10}, **said})
    recipe = recipe or Recipe(skipped=["!", "w5"], skips=["query", "document"], attends=True)
    recipe.marker = {"query": "[Q] ", "document": "[D]"}
    return Folder(at, recipe, layers)


class Late(ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")

        def at(name):
            return os.path.join(cls.folder, name)
        cls.tensors = read_tensors(os.path.join(golden.MODELS, "bert-mlm", "model.safetensors"))
        cls.folders = {
            "colbert": colbert(at("colbert")),
            "attending": colbert(at("attending"), Recipe(attends=True, skips=[]),
                                 {"attend_to_mask_tokens": True, "mask_punctuation": False}),
            "usual": colbert(at("usual"), Recipe(length={"query": 32, "document": 220}), False),
            "pylate": pylate(at("pylate")),
            "plain": pylate(at("plain"), Recipe(expands=False), do_query_expansion=False, skiplist_words=None),
            "multi": multi_vector(at("multi")),
            "least": multi_vector(at("least"), Recipe(skips=[], only=[WORDS.index("w3"), WORDS.index("w9")], filler="[PAD]",
                                                      length={"query": 10, "document": None}, fixed=False),
                                  {"keep_only_token_ids": [WORDS.index("w3"), WORDS.index("w9")]}, (3, 2),
                                  document_length=None,
                                  query_expansion={"strategy": "min", "token": "[PAD]", "length": 10}),
        }
        cls.folders["unmarked"] = pylate(at("unmarked"), Recipe(skipped=[]), query_prefix="", document_prefix="",
                                         skiplist_words=[])
        cls.folders["unmarked"].recipe.marker = {"query": "", "document": ""}
        cls.models = {name: folder.definition for name, folder in cls.folders.items()}
        decoder = write_folder(at("decoder"), "qwen2-a", None, (), {"architectures": ["HF_ColBERT"]},
                               **{"linear.weight": matrix(SIZE, 32, 8)})
        cls.models["decoder"] = decoder
        for name, query in ("window", {}), ("window_bare", {"do_query_expansion": False}):
            cls.models[name] = pylate(at(name), None, "qwen2-bidirectional-window", **query).definition
        return Server({"models": cls.models, "default_model": "colbert"}, "--text-embeddings-inference", "true")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def ask(self, model, server=None, **request):
        return self.ok((server or self.server).post(f"/v1/models/{model}/encode", request))

    def right(self, name, text, role, cut=True):
        folder = self.folders[name]
        return folder.recipe.vectors(self.tensors, folder.layers, text, role, cut)

    # --- numbers ---

    def test_texts(self):
        for level in LEVELS:
            server = self.server if level is None else Server({"models": self.models}, env={"ATTEND_CPU": level})
            try:
                for name, folder in self.folders.items():
                    for role, texts in ("query", QUERIES), ("document", TEXTS):
                        with self.subTest(level=level, model=name, role=role):
                            texts = [text for text in texts if any(folder.recipe.tokens(text, role)[2])]
                            self.compare(name, role, texts, server)
            finally:
                if server is not self.server:
                    server.stop()

    def compare(self, name, role, texts, server):
        cut = self.folders[name].recipe.fixed or role == "document"
        got = self.ask(name, server, text=texts, role=role, truncate=cut)
        for text, outputs, positions in zip(texts, got["outputs"], got["positions"], strict=True):
            vectors, kept = self.right(name, text, role, cut)
            self.assertEqual(positions, kept)
            numpy.testing.assert_allclose(outputs, vectors, 1e-4, 1e-4)
            alone = self.ask(name, server, text=text, role=role, truncate=cut)
            self.assertEqual((alone["outputs"], alone["positions"]), (outputs, positions))

    def test_defaults(self):
        got = self.ask("colbert", text=TEXTS)  # texts are documents, of any length
        self.assertEqual(got, self.ask("colbert", text=TEXTS, role="document", pool="multi_vector"))
        for text, outputs in zip(TEXTS, got["outputs"], strict=True):
            numpy.testing.assert_allclose(outputs, self.right("colbert", text, "document", False)[0], 1e-4, 1e-4)
        long = self.ask("colbert", text=QUERIES[2], role="query")["outputs"]  # which is not padded
        numpy.testing.assert_allclose(long, self.right("colbert", QUERIES[2], "query", False)[0], 1e-4, 1e-4)
        cut = self.ask("colbert", text=QUERIES[2], role="query", truncate=6)["outputs"]
        self.assertEqual(len(cut), 10)
        ids = self.folders["colbert"].recipe.tokens("w3 w5", "document")[0]
        tokens = self.ask("colbert", tokens=ids)  # which are fed as they are
        self.assertEqual(tokens["positions"], list(range(len(ids))))
        numpy.testing.assert_allclose(tokens["outputs"], self.right("colbert", "w3 w5", "document")[0], 1e-4, 1e-4)
        bare = self.ask("colbert", text="w3 w5", special_tokens=False, role="query", return_tokens=True)
        self.assertEqual(bare["tokens"], [WORDS.index("w3"), WORDS.index("w5")])
        told = self.ask("colbert", text="w3", role="query", return_tokens=True)
        self.assertEqual(told["tokens"], self.folders["colbert"].recipe.tokens("w3", "query")[0])
        prompt = self.ask("pylate", text="w3", role="query", prompt="w4 ", return_tokens=True)["tokens"]
        self.assertEqual(prompt, self.folders["pylate"].recipe.tokens("w4 w3", "query")[0])
        mean = self.ask("colbert", text="w3 w5", pool="mean")["outputs"]  # without marker and projection
        rows = bert(self.tensors, [WORDS.index(word) for word in ("[CLS]", "w3", "w5", "[SEP]")], [1] * 4)
        numpy.testing.assert_allclose(mean, rows.mean(axis=0), 1e-4, 1e-4)

    def test_rerank(self):
        for name in "colbert", "pylate", "multi":
            for query in QUERIES:
                with self.subTest(model=name, query=query):
                    vectors = self.right(name, query, "query")[0]
                    right = [max_similarity(vectors, self.right(name, text, "document")[0]) for text in TEXTS]
                    order = sorted(range(len(TEXTS)), key=lambda i: -right[i])
                    request = {"model": name, "query": query, "documents": TEXTS}
                    got = self.ok(self.server.post("/v1/rerank", request))["results"]
                    self.assertEqual([one["index"] for one in got], order)
                    numpy.testing.assert_allclose([one["relevance_score"] for one in got], [right[i] for i in order], 1e-4)
                    for one in got:
                        alone = dict(request, documents=[TEXTS[one["index"]]])
                        alone = self.ok(self.server.post("/v1/rerank", alone))["results"][0]["relevance_score"]
                        self.assertEqual(alone, one["relevance_score"])

    def test_padding_in_windows(self):
        """Padding changes no bit of the other rows, in layers with a window and without."""
        for query in QUERIES[:2]:
            padded = self.ask("window", text=query, role="query")
            bare = self.ask("window_bare", text=query, role="query")
            own = len(bare["outputs"])
            self.assertEqual((len(padded["outputs"]), padded["outputs"][:own]), (10, bare["outputs"]))
            self.assertEqual(len({json.dumps(row) for row in padded["outputs"]}), 10)

    def test_decoder(self):
        tokens, layer = [[5, 6, 7, 8], [9]], numpy.float64(matrix(SIZE, 32, 8))
        hidden = self.ask("decoder", tokens=tokens, pool="none")["outputs"]
        got = self.ask("decoder", tokens=tokens)
        for rows, outputs, positions in zip(hidden, got["outputs"], got["positions"], strict=True):
            x = numpy.float64(rows) @ layer.T
            numpy.testing.assert_allclose(outputs, x / numpy.linalg.norm(x, axis=1, keepdims=True), 1e-4, 1e-4)
            self.assertEqual(positions, list(range(len(rows))))

    # --- responses ---

    def test_descriptions(self):
        for name in self.folders:
            model = self.ok(self.server.get(f"/v1/models/{name}"))
            self.assertEqual((model["pool"], model["dimensions"]), ("multi_vector", SIZE))
            self.assertIn("multi_vector", model["tasks"])
            self.assertEqual(model["roles"], ["document", "query"])
            status, told, _ = attend("inspect", self.folders[name].at)
            self.assertEqual(status, 0)
            self.assertIn(b"pool multi_vector", told)
            self.assertIn(b"; queries: ", told)
            answer = self.server.post("/v1/embeddings", {"model": name, "input": "w3"})
            self.assertEqual(answer.status, 400)
            self.assertIn("the embeddings of this model are multi-vector", answer.body.decode())

    # --- what is refused ---

    def test_requests(self):
        def refused(model, pointer, words, **request):
            answer = self.server.post(f"/v1/models/{model}/encode", request)
            self.assertIn(words, self.problem(answer, 400, "invalid-request", pointer)["detail"])
        refused("colbert", "/role", '"document" or "query"', text="w3", role="passage")
        refused("colbert", "/role", "requires texts", tokens=[4, 5], role="query")
        refused("colbert", "/role", 'requires "pool": "multi_vector"', text="w3", role="query", pool="mean")
        refused("colbert", "/truncate", "adds 3 special tokens", text="w3", truncate=2)
        refused("colbert", "/text", "exceed the model's context length of 32", text="w3 " * 40)
        refused("colbert", "/is_query", 'use "role"', text="w3", is_query=True)
        refused("colbert", "/tokens/1", "no token of this item has a vector", tokens=[[4], []])
        refused("least", "/text/1", "no token of this item has a vector", text=["w3", "w4"])
        answer = self.server.post("/v1/models/colbert/score", {"text": "w3", "role": "query"})
        self.assertEqual(answer.status, 404)

    def test_folders(self):
        def reason(make, *files, words, **changes):
            name = os.path.join(self.folder, f"broken{len(os.listdir(self.folder))}")
            folder = make(name, **changes)
            for file, said in files:
                folder.document(file, **said)
            config = name + ".json"
            with open(config, "w", encoding="utf-8") as out:
                json.dump({"models": {"m": folder.definition}}, out)
            status, _, told = attend("check", "--config", config)
            self.assertNotEqual(status, 0, words)
            self.assertIn(words, told)
        metadata, sentences, modules = "artifact.metadata: ", "config_sentence_transformers.json: ", "modules.json: "
        for key, value, words in (
                ("query_maxlen", 0, "query_maxlen: "), ("doc_maxlen", "long", "doc_maxlen: "),
                ("query_maxlen", 2, "query_maxlen: 2, less than the 3 special tokens of each query"),
                ("doc_maxlen", 2, "doc_maxlen: 2, less than the 3 special tokens of each document"),
                ("query_maxlen", 33, "query_maxlen: queries are padded to 33 tokens, but the model has 32 positions"),
                ("query_token_id", "[X]", 'query_token_id: "[X]" is not a token of vocab.txt'),
                ("doc_token_id", 7, "doc_token_id: "), ("dim", 8, 'dim: 8, but tensor "linear.weight" has 7 rows'),
                ("mask_punctuation", "yes", "mask_punctuation: "), ("attend_to_mask_tokens", 1, "attend_to_mask_tokens: "),
                ("similarity", "l2", "similarity: "), ("interaction", "flipr", "interaction: ")):
            reason(colbert, words=metadata + words, metadata={key: value})
        reason(colbert, words='no tensor "linear.weight", the projection of HF_ColBERT', projection=False)
        for key, value, words in (
                ("query_prefix", "[X]", 'query_prefix: "[X]" is not a token of tokenizer.json'),
                ("document_prefix", 1, "document_prefix: "), ("query_length", 1.5, "query_length: "),
                ("document_length", -1, "document_length: "), ("do_query_expansion", "no", "do_query_expansion: "),
                ("attend_to_expansion_tokens", 0, "attend_to_expansion_tokens: "),
                ("skiplist_words", [1], "skiplist_words: "), ("skiplist_words", ["w"] * 4097, "skiplist_words: more than 4096 words"),
                 ("skiplist_words", ".", "skiplist_words: ")):
            reason(pylate, words=sentences + words, **{key: value})
        reason(pylate, ("tokenizer.json", {"post_processor": None}), query_length=1, do_query_expansion=False,
               words=sentences + "query_length: 1, the marker alone")

        def unreadable(at, text):
            folder = colbert(at)
            put(at, "artifact.metadata", text)
            return folder
        reason(unreadable, words="artifact.metadata, line 1", text=b"{")
        reason(unreadable, words="artifact.metadata: is not an object\n", text=b"[]")

        def unmarked(at):
            folder = colbert(at, metadata=False)
            path = os.path.join(at, "vocab.txt")
            with open(path, "rb") as file:
                words = file.read()
            put(at, "vocab.txt", words.replace(b"[unused0]", b"other"))
            return folder
        reason(unmarked, words=': defaults of artifact.metadata: query_token_id: "[unused0]" is not a token of vocab.txt')
        dense_file, mask_file = "1_Dense/config.json", "2_MultiVectorMask/config.json"
        reason(pylate, (dense_file, {"module_input_name": "sentence_embedding"}),
               words='module 1_Dense: module_input_name: "sentence_embedding" is not supported; supported: token_embeddings')
        for said, words in (({"skiplist_words": "."}, "skiplist_words: "), ({"skiplist_tasks": 3}, "skiplist_tasks: "),
                            ({"keep_only_token_ids": ["w3"]}, "keep_only_token_ids: "), ({"skips": 3}, 'unknown key "skips"')):
            reason(multi_vector, (mask_file, said), words="module 2_MultiVectorMask: " + words)
        reason(multi_vector, (mask_file, {"keep_only_token_ids": [54]}),
               words=": module 2_MultiVectorMask: keep_only_token_ids: 54 is outside the vocabulary of 54 tokens")
        length = {"strategy": "fixed", "length": 10}
        for said, words in ((dict(length, strategy="most"), "query_expansion: strategy: "),
                            ({"length": 10}, "query_expansion: strategy: required"),
                            ({"strategy": "min"}, "query_expansion: length: required"),
                            (dict(length, attend="x"), "query_expansion: attend: "),
                            (dict(length, token="[X]"), 'query_expansion: token: "[X]" is not a token of tokenizer.json'),
                            (dict(length, length=1), "query_expansion: length: 1, less than the 2 special tokens"),
                            (dict(length, length=33), "query_expansion: length: queries are padded to 33 tokens"),
                            (dict(length, more=1), "more"), ("fixed", "query_expansion: ")):
            reason(multi_vector, words=words, query_expansion=said)
        reason(multi_vector, words="query_length: 5, less than the 10 tokens of query_expansion",
               query_expansion={"strategy": "min", "length": 10}, query_length=5)
        reason(multi_vector, words="query_expansion: requires a MultiVectorMask", order=(3,))
        reason(multi_vector, words="a Normalize is required", order=(2,))
        reason(multi_vector, ("3_Normalize/config.json", {"module_input_name": ...}),
               words="module 3_Normalize: module_input_name: required: token_embeddings")


if __name__ == "__main__":
    unittest.main()
