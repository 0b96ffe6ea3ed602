"""test_tokenizers: tokenizers of every kind, over HTTP, beside what Hugging Face's library answered (tests/tokenizer/record)."""
import json
import os
import sys
import tempfile
import unittest
import zlib

from support import ROOT, Server, ServerCase

sys.path.insert(0, os.path.join(ROOT, "tests", "tokenizer"))
import kinds  # noqa: E402  (after the path is known)

RANDOM = {"transformer": {"random": {"seed": 1}}, "kind": "decoder", "layers": 1, "width": 4, "heads": 1, "feed_forward": 4}
with open(os.path.join(ROOT, "tests", "tokenizer", "answers.z"), "rb") as file:
    KEPT = json.loads(zlib.decompress(file.read()))


class Tokenizers(ServerCase):
    @classmethod
    def start(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.longest, models = {}, {}
        for kind in KEPT["kinds"]:
            made = {**kinds.SMALL, **kinds.PARTS}[kind]()
            folder = os.path.join(cls.folder.name, kind)
            os.makedirs(folder)
            with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as out:
                json.dump(made, out)
            cls.longest[kind] = made["truncation"] and made["truncation"]["max_length"]
            models[kind] = dict(RANDOM, tokenizer=folder, vocabulary=max(4, kinds.size(made)))
        return Server({"models": models})

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def ask(self, kind, what, **request):
        return self.ok(self.server.post(f"/v1/models/{kind}/{what}", request))

    def compare(self, kind, kept, numbers, pair, bare):
        """Asks for texts of one form at once: single or pairs, with or without the tokens around them."""
        asked = [KEPT["texts"][n] for n in numbers]
        text = [[one["text"], one["pair"]] if pair else one["text"] for one in asked]
        cut = {"truncate": self.longest[kind]} if self.longest[kind] else {}
        answer = self.ask(kind, "tokenize", text=text, special_tokens=not bare, **cut)
        spelt = {name: self.ask(kind, "detokenize", tokens=answer["tokens"], special_tokens=name == "whole")["text"]
                 for name in ("text", "whole")}
        for at, n in enumerate(numbers):
            for name, found in (("ids", answer["tokens"]), ("offsets", answer["offsets"]), *spelt.items()):
                if name in kept:
                    self.assertEqual(found[at], kept[name][n], f"{kind}: {name} of {json.dumps(asked[at])}")

    def test_texts(self):
        for kind, kept in KEPT["kinds"].items():
            forms = {}
            for n, ids in enumerate(kept["ids"]):
                question = KEPT["texts"][n]
                if ids is not None:
                    forms.setdefault(("pair" in question, question.get("bare", False)), []).append(n)
            self.assertGreaterEqual(len(forms), 3)
            for form, numbers in forms.items():
                self.compare(kind, kept, numbers, *form)

    def test_tokens_that_no_text_has(self):
        for kind, kept in KEPT["kinds"].items():
            for name in ("text", "whole"):
                found = self.ask(kind, "detokenize", tokens=kept["spelt"]["ids"], special_tokens=name == "whole")["text"]
                self.assertEqual(found, kept["spelt"][name], f"{kind}: {name}")


if __name__ == "__main__":
    unittest.main()
