#!/usr/bin/env python3
"""corpus: strings that a tokenizer is asked for: drawn, but the same ones each time from the same texts.

    tests/tokenizer/corpus.py [COUNT [SEED]] >FILE

Writes one question a line, as ORACLES in README.md says: {"text": ...}, one in fifteen with "pair",
one in twenty with "bare". All are well-formed UTF-8. First come some that are known to be awkward.
"""
import json
import random
import sys

sys.dont_write_bytecode = True
import texts  # noqa: E402  (writes no bytecode)

SPECIAL = ["[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "<|endoftext|>",
           "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>",
           "<extra_id_0>", "<0x0A>", "<0xE2>", "<bos>", "<eos>", "<start_of_turn>", "\u2581", "\u2581\u2581", "##", "##ing",
           "\u0120the", "\u010a", "</w>", "<one>", "< two >", "three", "Four", "five\u2581", "\u00e9t\u00e9"]
BLANKS = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u180e",
          "\u2000", "\u2003", "\u2009", "\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff",
          " \t ", "\n ", " \n", "        "]
CONTROLS = [chr(c) for c in [*range(0x20), *range(0x7f, 0xa0), 0xad, 0x34f, 0x61c, 0x200c, 0x200d, 0x200e, 0x202a, 0x202e,
                             0x2066, 0x2069, 0xe0001, 0xe0061, 0xe007f, 0xfff9, 0xfffb, 0xfffd, 0xfffe, 0xffff, 0x1fffe,
                             0x10ffff, 0xe000, 0xf0000, 0xfdd0]]
SHORT = ["I'm", "you'RE", "we'Ve", "don't", "it's", "THEY'LL", "he'd", "I\u2019m", "o'clock", "'s", "'", "''", "\u017fun",
         "'\u017f", "Stra\u00dfe", "STRASSE", "\u0130stanbul", "\u0131", "\u01c5", "\ufb01x", "\ufb03", "\u1e9e", "\u03a3\u0391\u03a3", "\u03c3\u03c2",
         "\u212b", "\u00c5", "A\u030a", "\u1100\u1161\u11a8", "\uac01", "\u0958", "\u2126", "\u00bd", "\u2168", "\u2460", "\uff21\uff42\uff11", "\uff76\uff9e",
         "\u337f", "\u0e33", "\u0eb3", "\u0f77", "\u1d15e", "\U0001d400", "\U0001d7d8", "\u0660\u0661", "\u09e6", "\u00b2", "\u00b5", "\u2103"]
NUMBERS = ["0", "7", "12", "123", "1234", "12345", "1,234.56", "-1", "+1e10", "0x1F", "3.14", "1/2", "50%", "$9.99", "\u20ac5", "1st",
           "2\u00b2", "a1", "1a", "v1.2.3", "2026-01-02", "12:34", "0000000", "\u0968\u0969", "\u4e09\u5341", "\u00bc"]
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
AWKWARD = ["", " ", "  ", "\n", "\0", "a", "\u00e9", "e\u0301", "\U0001f600", "\u200d", "\ufe0f", "\u0301", " \u0301", "\u2581", "\u2581 ", " \u2581",
           "a\u2581b", "a ", " a", " a ", "a  b", "a\nb", "a\r\nb", "\r", "\t", "a\0b", "\ufffd", "\ufeffa", "\u3000", "\u3000a", "\xa0a\xa0",
           "a\u00adb", "\u4e2d", "a\u4e2db", "\uac00", "\u0e01\u0e33", "[MASK]", " [MASK] ", "a[MASK]b", "[mask]", "<s></s>", "<s", "s>",
           "</s>" * 3, "\u00df" * 40, "\u0130" * 40, "\ufb03" * 40, "\ufdfa", "\ufdfa" * 20, "\u0344", "\u0f73\u0f75", "\u1e9b\u0323",
           "a" * 99, "a" * 100, "a" * 101, "\u4e2d" * 101, "\U0001f600" * 101, "a" * 513, " " * 513, "\n" * 300, "." * 513,
           "ab" * 400, "\u0301" * 400, "a" + "\u0301\u0323" * 200, "\u200d" * 99, "\U0001f1e9\U0001f1ea" * 33, "x" * 5000, "\u2581" * 99]


class Corpus:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.assigned = texts.assigned()
        self.categories = sorted(self.assigned)
        self.code = texts.code()
        self.english = texts.english()
        self.names, self.prose = texts.names(), {}
        for language in sorted({*texts.prose(), *texts.windows()}):
            self.prose[language] = texts.prose().get(language, []) + texts.windows().get(language, [])
        # A kind of text, and how often it is drawn.
        self.kinds = {self.foreign: 16, self.named: 6, self.paragraph: 8, self.program: 8, self.asian: 3, self.emoji: 6,
                      self.normal: 8, self.breaks: 4, self.marked: 6, self.blanks: 5, self.controls: 4, self.points: 6,
                      self.long: 1, self.mutated: 8, self.special: 8, self.short: 6, self.numbers: 4, self.mixed: 5}

    def some(self, least, most, drawn, between=""):
        return between.join(drawn() for _ in range(self.rng.randint(least, most)))

    def part(self, text, longest):
        """Some of a text, which may begin and end anywhere."""
        if len(text) > longest:
            at = self.rng.randrange(len(text) - longest)
            text = text[at:at + self.rng.randint(1, longest)]
        return text

    def foreign(self):
        return self.part(self.rng.choice(self.prose[self.rng.choice(list(self.prose))]), 300)

    def named(self):
        names = self.names[self.rng.choice(list(self.names))]
        return self.some(1, 5, lambda: self.rng.choice(names), self.rng.choice([" ", ", ", "", "; ", "\n"]))

    def paragraph(self):
        return self.part(self.rng.choice(self.english), 400)

    def program(self):
        return self.part(self.rng.choice(self.code), 300)

    def asian(self):
        return self.some(1, 3, lambda: self.rng.choice(texts.east_asian()), "\n")

    def emoji(self):
        """Sequences, also torn and put together wrongly."""
        def one():
            text = self.rng.choice(texts.emoji())
            kind = self.rng.random()
            if kind < 0.2:
                text = text[:self.rng.randint(1, len(text))]
            elif kind < 0.3:
                text = "".join(self.rng.sample(text, len(text)))
            elif kind < 0.4:
                text += self.rng.choice(["\u200d", "\ufe0f", "\ufe0e", "\U0001f3fd", "\u20e3", "\U000e0067\U000e007f"])
            return text
        return self.some(1, 6, one, self.rng.choice(["", "", " ", "a", "\u200d"]))

    def normal(self):
        return self.some(1, 5, lambda: self.rng.choice(texts.normalization()), self.rng.choice(["", " ", "x"]))

    def breaks(self):
        return self.some(1, 3, lambda: self.rng.choice(texts.breaks()))

    def marked(self):
        """Letters below marks of every class, in any order and number."""
        def one():
            base = chr(self.rng.choice(self.assigned[self.rng.choice(["Ll", "Lu", "Lo", "Nd", "Po", "Zs"])]))
            marks = [chr(self.rng.choice(self.assigned[self.rng.choice(["Mn", "Mn", "Mn", "Mc", "Me"])]))
                     for _ in range(self.rng.choice([0, 1, 1, 2, 3, 8]))]
            return base + "".join(marks)
        return self.some(1, 12, one)

    def blanks(self):
        words = self.rng.choice(self.english).split() or ["a"]
        return self.some(1, 8, lambda: self.rng.choice(["", self.rng.choice(words)]) + self.rng.choice(BLANKS))

    def controls(self):
        return self.some(1, 8, lambda: self.rng.choice(["", "a", " ", "b c", "\u4e2d"]) + self.rng.choice(CONTROLS))

    def points(self):
        """Characters of every category, some of no category at all."""
        def one():
            kind = self.rng.random()
            if kind < 0.9:
                return chr(self.rng.choice(self.assigned[self.rng.choice(self.categories)]))
            code = self.rng.randrange(0x110000)
            return chr(code) if not 0xd800 <= code < 0xe000 else " "
        return self.some(1, 20, one, self.rng.choice(["", "", " "]))

    def long(self):
        kind, count = self.rng.randrange(5), self.rng.choice([90, 101, 300, 2000])
        if kind == 0:
            return self.some(1, 4, lambda: chr(self.rng.choice(self.assigned[self.rng.choice(["Ll", "Lo", "So"])]))) * count
        if kind == 1:
            return "".join(self.rng.choices("abcdefghijklmnopqrstuvwxyz", k=count))
        if kind == 2:
            return "".join(map(chr, self.rng.choices(self.assigned["Lo"], k=count)))
        if kind == 3:
            return self.rng.choice(MARKS + " \n0") * count
        return self.rng.choice(self.code).replace("\n", "").replace(" ", "")[:count]

    def mutated(self):
        """Bytes of a text changed, left out or put in, and what is no UTF-8 then left out or replaced."""
        data = bytearray(self.part(self.any(), 60).encode())
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randrange(len(data) + 1)
            data[at:at + self.rng.randrange(2)] = self.rng.choice([b"", bytes([self.rng.randrange(256)])])
        return data.decode("utf-8", self.rng.choice(["ignore", "replace"]))

    def special(self):
        def one():
            text = self.rng.choice(SPECIAL)
            kind = self.rng.random()
            if kind < 0.1:
                return text.upper() if text.islower() else text.lower()
            if kind < 0.2:
                return text[self.rng.randrange(len(text)):]
            return text
        word = self.rng.choice([self.short, self.named, self.numbers])
        return self.some(1, 5, lambda: self.rng.choice(["", " ", "  ", "a", word(), " a", "b ", "\n"]) + one())

    def short(self):
        return self.some(1, 6, lambda: self.rng.choice(SHORT), self.rng.choice([" ", "", " - "]))

    def numbers(self):
        return self.some(1, 6, lambda: self.rng.choice([self.rng.choice(NUMBERS), self.rng.choice(MARKS) * self.rng.randint(1, 3)]),
                         self.rng.choice(["", " "]))

    def mixed(self):
        return self.some(2, 4, lambda: self.part(self.any(), 40), self.rng.choice(["", " ", "\n"]))

    def any(self):
        """Of those that draw from no other kind."""
        return self.rng.choice([self.foreign, self.named, self.paragraph, self.program, self.asian, self.emoji,
                                self.normal, self.marked, self.short, self.special])()

    def text(self):
        return self.rng.choices(list(self.kinds), list(self.kinds.values()))[0]()

    def question(self):
        question = {"text": self.text()}
        if self.rng.random() < 1 / 15:
            question["pair"] = self.text()
        if self.rng.random() < 1 / 20:
            question["bare"] = True
        return question


def questions(count, seed=1):
    """The awkward ones, each alone, in a pair and bare, and so many that are drawn."""
    made = [{"text": text} for text in AWKWARD]
    made += [{"text": one, "pair": other} for one, other in zip(AWKWARD, AWKWARD[7:] + AWKWARD[:7])]
    made += [{"text": text, "bare": True} for text in AWKWARD]
    corpus = Corpus(seed)
    return made[:count] + [corpus.question() for _ in range(count - len(made))]


def characters():
    """Every character that there is, within a word, alone, and behind another one: private ones only here and there."""
    private = ((0xE000, 0xF8FF), (0xF0000, 0x10FFFF))
    for first, last, _ in texts.ages():
        step = 97 if any(begin <= first <= end for begin, end in private) else 1
        for code in range(first, last + 1, step):
            yield {"text": f"a{chr(code)}b {chr(code)}{chr(code)}"}


if __name__ == "__main__":
    for made in questions(int((sys.argv + ["100000"])[1]), int((sys.argv + ["", "1"])[2])):
        sys.stdout.buffer.write(json.dumps(made, ensure_ascii=False).encode() + b"\n")
