"""translator: the textbook's base model with random weights, in a folder with config.json, and its shapes.

    python3 tests/bench/translator.py base     makes build/translator/base and prints its path; or t5-small, opus-mt

A folder is made once, by translator_make.py: 193 MB, 243 and 296. The shapes, which are those of bench_translate, are
T5-small's and OPUS-MT's by their sizes alone: what is computed is the same in all.
"""
import os
import subprocess
import sys

from bert import PYTHON, ROOT

SHAPES = {"base": 8000, "t5-small": 32128, "opus-mt": 58101}  # tokens
LAYERS, WIDTH, HEADS, FORWARD, EPSILON = 6, 512, 8, 2048, 1e-5
PAD, BEGIN, END = 0, 1, 2
SOURCE, MOST, BEAMS = 32, 32, 4  # of what is translated


def folder(shape):
    """Where the model lies; made if it is not there: config.json comes last."""
    path = os.path.join(ROOT, "build", "translator", shape)
    if not os.path.exists(os.path.join(path, "config.json")):
        maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "translator_make.py")
        subprocess.run([PYTHON, "-B", maker, path, shape], check=True)
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SHAPES:
        sys.exit(__doc__)
    print(folder(sys.argv[1]))
