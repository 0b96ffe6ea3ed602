"""gpt2: a GPT-2 of random weights in a folder as Hugging Face saves it, and the same for llama.cpp.

    GPT=tiny python3 tests/bench/gpt2.py     makes build/gpt2/tiny and prints its path; else mini, base

A folder is made once, by gpt2_make.py. Without GPT it is base, of 498 MB, and 883 MB for llama.cpp.
"""
import os
import subprocess

from bert import PYTHON, ROOT

# As bench_generate has them.
SHAPES = {"base": (12, 768, 12, 50257), "mini": (6, 384, 6, 50257), "tiny": (2, 128, 2, 1000)}
SHAPE = os.environ.get("GPT") or "base"
if SHAPE not in SHAPES:
    raise SystemExit(f"GPT={SHAPE}: there are {', '.join(SHAPES)}")
NAME = f"gpt2-{SHAPE}"
LAYERS, WIDTH, HEADS, VOCABULARY = SHAPES[SHAPE]
POSITIONS, EPSILON = 1024, 1e-5


def folder():
    """Where the model lies; made if a file is not there: config.json comes last."""
    path = os.path.join(ROOT, "build", "gpt2", SHAPE)
    if not all(os.path.exists(os.path.join(path, name)) for name in ("model-q8_0.gguf", "config.json")):
        maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt2_make.py")
        subprocess.run([PYTHON, "-B", maker, path], check=True)
    return path


if __name__ == "__main__":
    print(folder())
