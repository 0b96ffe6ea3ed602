#!/usr/bin/env python3
"""tokenizer: how fast a tokenizer makes tokens, beside Hugging Face's libraries, and how much memory it takes.

    tests/bench/tokenizer.py build/release

GPT-2's and BERT's vocabularies, and two models of SentencePiece beside SentencePiece; English text and text in many languages, some 2 MB each, that others wrote (tests/
tokenizer/texts.py). Each library encodes line by line in one thread. Needs what `make deps-tokenizer` installs.
"""
import os
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "tokenizer"))
import kinds  # noqa: E402  (after the path is known)
import texts  # noqa: E402
from oracles import PYTHON  # noqa: E402
from vocabularies import model_bytes  # noqa: E402
from table import line  # noqa: E402

BYTES = 2_000_000
PLACE = os.path.join(ROOT, "build", "tokenizer")
LIBRARIES = {"native": ("tokenizers (Rust)", 1.5), "script": ("@huggingface/tokenizers (JavaScript)", 20)}


def written(name, pieces):
    """A file of so many bytes, some pieces of text by chance, with lines as they are."""
    rng, parts, size = random.Random(1), [], 0
    while size < BYTES:
        parts.append(rng.choice(pieces).strip())
        size += len(parts[-1].encode()) + 1
    path = os.path.join(PLACE, name + ".txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(part for part in parts if part))
    return path


def ours(build, vocabulary, path):
    out = subprocess.run([os.path.join(build, "bench", "bench_tokenizer"), vocabulary, path], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    memory, speed = re.search(r"([\d.]+) MB, read", out), re.search(r"([\d.]+) MB/s \| (\d+) tokens", out)
    return float(speed.group(1)), int(speed.group(2)), float(memory.group(1))


def theirs(command, env=None):
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout
    speed, tokens = re.match(r"([\d.]+) MB/s (\d+) tokens", out).groups()
    return float(speed), int(tokens)


def scripted(library, vocabulary, path):
    env = dict(os.environ, NODE_PATH=os.path.join(PLACE, "node_modules"), RAYON_NUM_THREADS="1",
               TOKENIZERS_PARALLELISM="false")
    return theirs(["node", os.path.join(ROOT, "tests", "tokenizer", "speed.cjs"), library, vocabulary, path], env)


def bytes_of_vocabulary(vocabulary):
    """Of the pieces, and of the merges as they stand in a file."""
    import json
    with open(vocabulary, encoding="utf-8") as file:
        model = json.load(file)["model"]
    pairs = (merge if isinstance(merge, str) else " ".join(merge) for merge in model.get("merges", ()))
    return sum(len(text.encode()) + 1 for text in (*model["vocab"], *pairs))


def sentencepiece(build, files):
    """Models as SentencePiece saves them, in turns with SentencePiece itself."""
    for name in ("unigram", "bpe"):
        model = os.path.join(PLACE, name + ".model")
        with open(model, "wb") as file:
            file.write(model_bytes(name))
        for what, path in files.items():
            speed, count, _ = ours(build, model, path)
            other, tokens = theirs([PYTHON, os.path.join(ROOT, "tests", "tokenizer", "speed.py"), model, path])
            line(f"sentencepiece {name}, {what}{'' if tokens == count else f' ({tokens - count:+} tokens)'}",
                 f"{speed:.1f} MB/s", f"{other:.2f} MB/s", speed / other, ">= 3", speed >= 3 * other)


def main(build):
    prose = [text for messages in texts.prose().values() for text in messages]
    files = {"English": written("english", texts.english()), "many languages": written("mixed", prose)}
    sentencepiece(build, files)
    for name in ("gpt2", "bert"):
        kinds.main([name])
        vocabulary = os.path.join(kinds.OUT, name + ".json")
        for what, path in files.items():
            speed, count, memory = ours(build, vocabulary, path)
            for library, (called, wanted) in LIBRARIES.items():
                other, tokens = scripted(library, vocabulary, path)
                line(f"{name}, {what}, to {called}{'' if tokens == count else f' ({tokens - count:+} tokens)'}",
                     f"{speed:.1f} MB/s", f"{other:.2f} MB/s", speed / other, f">= {wanted}", speed >= wanted * other)
        sizes = {"the bytes of its tokenizer.json": os.path.getsize(vocabulary) / 1e6,
                 "those of its pieces and merges alone": bytes_of_vocabulary(vocabulary) / 1e6}
        for what, size in sizes.items():
            line(f"{name}, memory to {what}", f"{memory:.2f} MB", f"{size:.2f} MB", memory / size, "<= 3", memory <= 3 * size)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
