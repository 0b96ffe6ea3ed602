#!/usr/bin/env python3
"""train: the small vocabularies in tests/tokenizer/trained, from the texts of Debian's packages.

    tests/tokenizer/train.py [NAME ...]

They are kept, since other versions of the packages give others: this says where they come from. The
pieces of BPE, WordPiece and WordLevel are counted here; SentencePiece trains BPE with byte fallback
and Unigram, and gives its table of normalization. Takes a minute.
"""
import collections
import io
import json
import os
import random
import re
import sys
import unicodedata
import zlib

sys.dont_write_bytecode = True
import texts  # noqa: E402  (writes no bytecode)
from vocabularies import WRITTEN  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "trained")
LANGUAGES = ("de", "fr", "es", "pt_BR", "ru", "uk", "ja", "ko", "zh_CN", "tr", "vi", "el", "pl", "fi")
SCRIPTS = ("ar", "he", "hi", "th", "ta", "bn", "ka", "hy", "am", "km", "my", "si", "te", "ur", "chr")


def sample():
    """Lines: half of them English, then code, other languages, emoji."""
    rng = random.Random(3)

    def some(found, size):
        """So many bytes of them, which depend on nothing but the list."""
        found, made = list(found), []
        while size > 0:
            text = rng.choice(found)
            made.append(text)
            size -= len(text.encode())
        return made

    made = some(texts.english(), 700_000) + some(texts.code(), 250_000)
    for language in LANGUAGES:
        made += some(texts.prose()[language], 40_000)
    for language in SCRIPTS:
        made += [" ".join(some(texts.names()[language], 60)) for _ in range(120)]
    made += texts.east_asian() + [" ".join(some(texts.emoji(), 20)) for _ in range(300)]
    rng.shuffle(made)
    return [line for text in made for line in text.split("\n") if line.strip()]


def merged(word, pair, joined):
    made, at = [], 0
    while at < len(word):
        if at + 1 < len(word) and (word[at], word[at + 1]) == pair:
            made.append(joined)
            at += 2
        else:
            made.append(word[at])
            at += 1
    return tuple(made)


def pairs_of(counts, merges, join):
    """The most frequent pairs, each joined before the next is sought; of equal ones the first by name."""
    words, pairs, where = dict(counts), collections.Counter(), collections.defaultdict(set)
    for word, count in words.items():
        for pair in zip(word, word[1:]):
            pairs[pair] += count
            where[pair].add(word)
    made = []
    while len(made) < merges:
        best = max(pairs.items(), key=lambda item: (item[1], item[0]))[0]
        joined = join(*best)
        made.append(best)
        for word in list(where[best]):
            count = words.pop(word)
            for pair in zip(word, word[1:]):
                pairs[pair] -= count
                where[pair].discard(word)
            longer = merged(word, best, joined)
            words[longer] = words.get(longer, 0) + count
            for pair in zip(longer, longer[1:]):
                pairs[pair] += count
                where[pair].add(longer)
        del pairs[best]
    return made


def byte_pairs(lines):
    """Merges of a byte-level BPE; its vocabulary are the bytes, and what each merge makes."""
    counts = collections.Counter()
    for line in lines:
        for word in re.findall(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+", line + "\n"):
            counts[tuple(WRITTEN[byte] for byte in word.encode())] += 1
    return pairs_of(counts, 3000, lambda a, b: a + b)


def suffix_pairs(lines):
    """As CLIP's: bytes of words in lower case, of which the last one has </w> behind it."""
    counts = collections.Counter()
    for line in lines:
        for word in re.findall(r"'(?:[sdmt]|ll|ve|re)|[^\W\d_]+|\d|[^\s\w]+", line.lower()):
            *first, last = (WRITTEN[byte] for byte in word.encode())
            counts[(*first, last + "</w>")] += 1
    return pairs_of(counts, 1000, lambda a, b: a + b)


def word_pieces(lines, uncased):
    """BERT's: letters that are frequent, then what joins most; a piece that begins no word has ## before it."""
    counts = collections.Counter()
    for line in lines:
        if uncased:
            line = "".join(c for c in unicodedata.normalize("NFD", line.lower()) if unicodedata.category(c) != "Mn")
        for word in re.findall(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+|[^\s\w]|_", line):
            counts[(word[0], *("##" + c for c in word[1:]))] += 1
    letters = collections.Counter()
    for word, count in counts.items():
        for letter in word:
            letters[letter] += count
    alphabet = sorted(letter for letter, _ in letters.most_common(900))
    known = {word: count for word, count in counts.items() if all(letter in alphabet for letter in word)}
    join = lambda a, b: a + b.removeprefix("##")  # noqa: E731  (a name for it says no more)
    made = [join(*pair) for pair in pairs_of(known, 2100, join)]
    return ["[PAD]", *(f"[unused{n}]" for n in range(4)), "[UNK]", "[CLS]", "[SEP]", "[MASK]",
            *dict.fromkeys(alphabet + made)]


def words(lines):
    counts = collections.Counter(word for line in lines for word in re.findall(r"\w+|[^\w\s]+", line))
    return [word for word, _ in counts.most_common(1500)]


def sentence_pieces(lines, **options):
    """The model, as SentencePiece saves it."""
    import sentencepiece
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, num_threads=1,
                                             minloglevel=2, input_sentence_size=0, **options)
    return out.getvalue()


def bpe_model(lines):
    """As Llama's: bytes stand for what no piece has, digits stand alone, blanks are kept."""
    return sentence_pieces(lines, model_type="bpe", vocab_size=2600, byte_fallback=True, split_digits=True,
                           character_coverage=0.99, normalization_rule_name="identity",
                           remove_extra_whitespaces=False, allow_whitespace_only_pieces=True)


def unigram_model(lines):
    """As T5's."""
    return sentence_pieces(lines, model_type="unigram", vocab_size=2600, character_coverage=0.995, pad_id=0, eos_id=1,
                           unk_id=2, bos_id=-1, normalization_rule_name="nmt_nfkc")


def save(name, value):
    text = json.dumps(value, separators=(",", ":")) + "\n"
    with open(os.path.join(OUT, name + ".json"), "w", encoding="ascii") as file:
        file.write(text)
    print(f"{name}.json: {len(text)} bytes")


def save_model(name, model):
    with open(os.path.join(OUT, name + ".model.z"), "wb") as file:
        file.write(zlib.compress(model, 9))
    print(f"{name}.model.z: {os.path.getsize(os.path.join(OUT, name + '.model.z'))} bytes")


MADE = {
    "bytes": lambda lines: save("bytes", [" ".join(pair) for pair in byte_pairs(lines)]),
    "suffix": lambda lines: save("suffix", [" ".join(pair) for pair in suffix_pairs(lines)]),
    "cased": lambda lines: save("cased", word_pieces(lines, False)),
    "uncased": lambda lines: save("uncased", word_pieces(lines, True)),
    "words": lambda lines: save("words", words(lines)),
    "bpe": lambda lines: save_model("bpe", bpe_model(lines)),
    "unigram": lambda lines: save_model("unigram", unigram_model(lines)),
}


def main(chosen):
    if set(chosen) - set(MADE):
        sys.exit(f"what can be trained: {' '.join(MADE)}")
    os.makedirs(OUT, exist_ok=True)
    lines = sample()
    print(f"{len(lines)} lines, {sum(len(line.encode()) for line in lines) / 1e6:.2f} MB")
    for name, make in MADE.items():
        if not chosen or name in chosen:
            make(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
