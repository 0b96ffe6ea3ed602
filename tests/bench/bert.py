"""bert: a BERT of random weights in a folder as Hugging Face saves it, and what is asked of it.

    BERT=tiny python3 tests/bench/bert.py     makes build/bert/tiny and prints its path; else mini, base

A folder is made once, by bert_make.py. Without BERT it is base, of 438 MB.
"""
import json
import os
import random
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = "/usr/bin/python3"  # Debian's, to which numpy, torch and onnx of its packages belong
SHAPES = {"base": (12, 768, 12, 3072), "mini": (6, 384, 12, 1536), "tiny": (2, 128, 2, 512)}
SHAPE = os.environ.get("BERT") or "base"
if SHAPE not in SHAPES:
    raise SystemExit(f"BERT={SHAPE}: there are {', '.join(SHAPES)}")
NAME = f"bert-{SHAPE}"
LAYERS, WIDTH, HEADS, FORWARD = SHAPES[SHAPE]
VOCABULARY, POSITIONS, TYPES, EPSILON = 30522, 512, 2, 1e-12

# The lengths of the items: bench_stack has the same.
CASES = {"b1 s16": [16], "b1 s128": [128], "b8 s128": [128] * 8,
         "b32 s8..128": [8 + 120 * (11 * i % 32) // 31 for i in range(32)]}


def batches():
    """{case: the tokens of its items}."""
    rng = random.Random(2)
    return {case: [[rng.randrange(1000, VOCABULARY) for _ in range(length)] for length in lengths]
            for case, lengths in CASES.items()}


def write_bodies(where):
    """A request of each case, as a file: {case: its path}."""
    paths = {}
    for case, tokens in batches().items():
        paths[case] = os.path.join(where, f"{NAME} {case}.json".replace(" ", "-"))
        with open(paths[case], "w", encoding="utf-8") as file:
            json.dump({"tokens": tokens, "pool": "mean"}, file)
    return paths


def folder():
    """Where the model lies; made if it is not there: config.json comes last."""
    path = os.path.join(ROOT, "build", "bert", SHAPE)
    if not os.path.exists(os.path.join(path, "config.json")):
        maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bert_make.py")
        subprocess.run([PYTHON, "-B", maker, path], check=True)
    return path


if __name__ == "__main__":
    print(folder())
