"""test_translators: folders of Marian, M2M100 and NLLB as they are published, with sentencepiece models and without a
tokenizer.json: text to text, and languages that requests name."""
import json
import os
import shutil
import struct
import tempfile

import pairs
from families import safetensors
from golden import MODELS
from support import Case, Server, attend
from test_whole import write_json

UNKNOWN, CONTROL, NORMAL = 2, 3, 1
BLANK = "\u2581"
ENGLISH = [BLANK + word for word in ("the", "house", "is", "small", "cat")] + [".", BLANK, "s", "c"]
FRENCH = [BLANK + word for word in ("la", "maison", "est", "petite", "chat")] + [".", BLANK, "e"]
SPECIAL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]


def varint(n):
    out = b""
    while n > 0x7f:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def sentencepiece(pieces, bpe=False):
    """The bytes of a model of these (piece, type), or normal pieces, the better ones first."""
    out = b""
    for i, piece in enumerate(pieces):
        piece, kind = (piece, NORMAL) if isinstance(piece, str) else piece
        out += field(1, field(1, piece.encode()) + b"\x15" + struct.pack("<f", -i / 10) + b"\x18" + varint(kind))
    return out + field(2, b"\x18" + varint(2 if bpe else 1)) + field(3, field(1, b"identity"))


def number(pieces, *more):
    """vocab.json of the pieces that are texts, with </s> and <unk> first."""
    texts = ["</s>", "<unk>"] + [piece for piece in dict.fromkeys(pieces) if isinstance(piece, str)]
    return {piece: i for i, piece in enumerate(texts + list(more))}


class Translators(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def marian(self, more=(), config=None, **changes):
        """The golden marian-a, whose 100 tokens get names: its folder and its vocab.json."""
        for name in ("config.json", "model.safetensors"):
            shutil.copy(os.path.join(MODELS, "marian-a", name), self.folder)
        self.write("source.spm", sentencepiece(SPECIAL + ENGLISH + ["x"]))  # vocab.json lacks x
        self.write("target.spm", sentencepiece(SPECIAL + FRENCH))
        vocabulary = number(ENGLISH + FRENCH + list(more))
        vocabulary.update({f"{BLANK}word{i}": i for i in range(len(vocabulary), 99)}, **{"<pad>": 99})
        vocabulary.update(changes)
        write_json(self.folder, "vocab.json", vocabulary)
        if config:
            write_json(self.folder, "tokenizer_config.json", config)
        return vocabulary

    def pair(self, kind, size, pieces, tokenizer_class, vocabulary=None, **config):
        """A drawn model of this many tokens with a model of sentencepiece."""
        file, told = pairs.make(kind, vocab_size=size)
        self.write("model.safetensors", safetensors(file.tensors))
        write_json(self.folder, "config.json", told)
        self.write("sentencepiece.bpe.model", sentencepiece(pieces))
        write_json(self.folder, "tokenizer_config.json", {"tokenizer_class": tokenizer_class, **config})
        if vocabulary:
            write_json(self.folder, "vocab.json", vocabulary)

    def serve(self, **definition):
        server = Server({"models": {"m": {"transformer": self.folder, **definition}}})
        self.addCleanup(server.stop)
        return server

    def tokens(self, server, text, **more):
        return self.ok(server.post("/v1/models/m/tokenize", {"text": text, **more}))["tokens"]

    def translates(self, server, text, ids, words, **more):
        """The translation of a text is that of its tokens, and its words are those of the target."""
        asked = {"max_tokens": 8, "min_tokens": 5, **more}
        answer = self.ok(server.post("/v1/models/m/generate", {"text": text, **asked}))["sequences"]
        for name in ("source_language", "target_language"):
            asked.pop(name, None)
        plain = self.ok(server.post("/v1/models/m/generate", {"tokens": ids, **asked}))["sequences"]
        for one, other in zip(answer, plain):
            self.assertEqual(one["tokens"], other["tokens"])
            self.assertEqual(one["log_probabilities"], other["log_probabilities"])
            text = "".join(words.get(token, "") for token in one["tokens"]).replace(BLANK, " ")
            self.assertEqual(one["text"].strip(), text.strip())
        self.assertTrue(any(one["text"] for one in answer), answer)
        return answer

    def refused(self, message):
        write_json(self.folder, "attend.json", {"models": {"m": {"transformer": self.folder}}})
        status, out, error = attend("check", "--config", os.path.join(self.folder, "attend.json"))
        self.assertEqual(status, 2, (out, error))
        self.assertIn(message, error)
        return error

    def test_marian(self):
        vocabulary = self.marian()
        ids = [vocabulary[BLANK + word] for word in ("the", "house", "is", "small")] + [vocabulary["."], 0]
        server = self.serve()
        about = self.ok(server.get("/v1/models/m"))
        self.assertEqual((about["tokenizer"]["file"], about["tokenizer"]["tokens"]), ("source.spm", 100))
        self.assertEqual(self.tokens(server, "the  house is small."), ids)
        self.assertEqual(self.tokens(server, "the house", special_tokens=False), ids[:2])
        self.assertEqual(self.tokens(server, "thex \u00e9"), [ids[0], 1, vocabulary[BLANK], 1, 0])  # not in vocab.json, in neither
        self.assertEqual(self.tokens(server, "the</s>the"), [ids[0], 0, ids[0], 0])
        words = {i: piece for piece, i in vocabulary.items() if piece not in ("</s>", "<pad>", "<unk>")}
        self.translates(server, "the house is small.", ids, words)
        self.translates(server, "the house is small.", ids, words, beams=3, returns=3)
        status, out, error = attend("inspect", self.folder)
        self.assertEqual(status, 0, error)
        self.assertIn("family marian", out.decode())

    def test_codes_of_marian(self):
        vocabulary = self.marian([">>fra<<", ">>deu_Latn<<"])
        ids = [vocabulary[BLANK + word] for word in ("the", "house")] + [0]
        server = self.serve()
        self.assertEqual(self.tokens(server, ">>fra<< the house"), [vocabulary[">>fra<<"], *ids])
        self.assertEqual(self.tokens(server, ">>deu_Latn<<the house"), [vocabulary[">>deu_Latn<<"], *ids])

    def problems(self, server, *cases):
        for body, pointer, detail in cases:
            with self.subTest(body=body):
                problem = self.problem(server.post("/v1/models/m/generate", {"max_tokens": 2, **body}), 400, "invalid-request")
                self.assertEqual(problem["pointer"], pointer)
                self.assertIn(detail, problem["detail"])

    def test_target_language_of_marian(self):
        """The code precedes the source."""
        vocabulary = self.marian([">>fra<<", ">>deu_Latn<<"])
        ids = [vocabulary[BLANK + word] for word in ("the", "house")] + [0]
        server = self.serve()
        self.assertEqual(self.ok(server.get("/v1/models/m"))["languages"], ["fra", "deu_Latn"])
        for code in ("fra", "deu_Latn"):
            answer = self.ok(server.post("/v1/models/m/generate", {"text": "the house", "target_language": code, "max_tokens": 4,
                                                                   "return_tokens": True}))
            self.assertEqual(answer["tokens"], [vocabulary[f">>{code}<<"], *ids])
            plain = self.ok(server.post("/v1/models/m/generate", {"tokens": answer["tokens"], "max_tokens": 4}))
            self.assertEqual(answer["sequences"][0]["log_probabilities"], plain["sequences"][0]["log_probabilities"])
        self.problems(server,
                      ({"text": "a", "target_language": "fr"}, "/target_language", "unknown language"),
                      ({"text": "a", "target_language": "fra\0"}, "/target_language", "unknown language"),
                      ({"text": "a", "target_language": ""}, "/target_language", "unknown language"),
                      ({"text": "a", "target_language": 1}, "/target_language", "must be a string"),
                      ({"text": "a", "source_language": "fra"}, "/source_language", "does not name the source's language"),
                      ({"tokens": [1], "target_language": "fra"}, "/target_language", "requires texts"),
                      ({"text": "a", "tgt_lang": "fra"}, "/tgt_lang", '"target_language"'),
                      ({"text": "a", "src_lang": "fra"}, "/src_lang", '"source_language"'))

    def test_languages_of_m2m100(self):
        """The one of the target is the first token that is generated, that of the source its first."""
        vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
        for piece in ENGLISH:
            vocabulary[piece] = len(vocabulary)
        first = len(vocabulary)
        self.pair("m2m_100", first + 108, SPECIAL + ENGLISH, "M2M100Tokenizer", vocabulary)
        server = self.serve()
        ids = [vocabulary[BLANK + word] for word in ("the", "house")] + [2]
        languages = self.ok(server.get("/v1/models/m"))["languages"]
        self.assertEqual((len(languages), languages[:3], languages[-1]), (100, ["af", "am", "ar"], "zu"))
        for source, target in (("fr", "af"), ("zu", "zu"), (None, "fr"), ("am", None)):
            asked = {name: code for name, code in (("source_language", source), ("target_language", target)) if code}
            answer = self.ok(server.post("/v1/models/m/generate", {"text": ["the house"], "max_tokens": 4, "min_tokens": 4,
                                                                   "return_tokens": True, **asked}))
            tokens = [first + languages.index(source or "en"), *ids]
            self.assertEqual(answer["tokens"], [tokens])
            sequence = answer["sequences"][0][0]
            if not target:
                continue
            forced = first + languages.index(target)
            self.assertEqual(sequence["tokens"][0], forced)
            plain = self.ok(server.post("/v1/models/m/generate", {"tokens": tokens, "targets": [forced], "max_tokens": 3,
                                                                  "min_tokens": 3}))["sequences"][0]
            self.assertEqual(sequence["tokens"][1:], plain["tokens"])
            self.assertEqual(sequence["log_probabilities"][1:], plain["log_probabilities"])
        self.problems(server,
                      ({"text": "a", "source_language": "xx"}, "/source_language", "unknown language"),
                      ({"text": "a", "source_language": "fr", "special_tokens": False}, "/source_language", "requires special tokens"),
                      ({"text": "a", "target_language": "fr", "targets": [5]}, "/target_language", "exclude each other"))
        server.stop()
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        self.marian()
        self.problems(self.serve(), ({"text": "a", "target_language": "fra"}, "/target_language", "has no tokens of languages"))

    def test_m2m100(self):
        pieces = SPECIAL + ENGLISH + FRENCH[:-3] + ["y"]
        vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
        for piece in ENGLISH + FRENCH[:-3]:
            vocabulary[piece] = len(vocabulary)
        self.pair("m2m_100", len(vocabulary) + 108, pieces, "M2M100Tokenizer", vocabulary)
        first = len(vocabulary)  # af, am, ar, ...
        server = self.serve()
        ids = [vocabulary[BLANK + word] for word in ("the", "house", "is", "small")] + [vocabulary["."], 2]
        self.assertEqual(self.tokens(server, "the house is small."), [first + 18, *ids])  # en
        self.assertEqual(self.tokens(server, "y__af__the"), [first + 18, vocabulary[BLANK], 3, first, ids[0], 2])
        words = {i: piece for piece, i in vocabulary.items() if piece not in ("<s>", "</s>", "<pad>", "<unk>")}
        self.translates(server, "the house is small.", [first + 18, *ids], words, beams=2,
                        banned_tokens=[0, 1, 3, *range(first, first + 108)])

    def test_nllb(self):
        pieces = SPECIAL + ENGLISH + FRENCH[:-3]
        offset, first = 1, len(pieces) + 1
        self.pair("m2m_100", first + 203, pieces, "NllbTokenizer", src_lang="fra_Latn")
        ids = [pieces.index(BLANK + word) + offset for word in ("the", "house")] + [2]
        server = self.serve()
        self.assertEqual(self.tokens(server, "the house"), [first + 56, *ids])
        self.assertEqual(self.tokens(server, "ace_Arab<mask>", special_tokens=False), [first, first + 202])
        server.stop()
        write_json(self.folder, "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer", "legacy_behaviour": True})
        server = self.serve()
        self.assertEqual(self.tokens(server, "the house"), [*ids, first + 46])  # eng_Latn
        write_json(self.folder, "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer", "src_lang": "fr"})
        self.refused('src_lang: "fr" is no language of this tokenizer')

    def test_what_is_refused(self):
        self.marian(config={"separate_vocabs": True})
        self.refused("separate_vocabs: true is not supported")
        self.marian(config={"tokenizer_class": "MarianTokenizer"}, **{".": -1})
        self.refused('vocab.json: ".": needs an id')
        vocabulary = self.marian()
        del vocabulary["<unk>"]
        write_json(self.folder, "vocab.json", vocabulary)
        self.refused('vocab.json: has no "<unk>"')
        write_json(self.folder, "vocab.json", [1])
        self.refused("vocab.json: is needed beside a sentencepiece model of MarianTokenizer (")
        os.remove(os.path.join(self.folder, "vocab.json"))
        self.refused("vocab.json: is needed beside a sentencepiece model of MarianTokenizer (")
        self.marian()
        self.write("target.spm", b"\x0a\x05")
        self.assertEqual(self.refused(": target.spm: byte 1: ").count(".spm"), 1)
        self.marian()
        with open(os.path.join(self.folder, "vocab.json"), "w", encoding="utf-8") as file:
            file.write("{")
        self.refused("vocab.json")
