#!/usr/bin/python3
"""speed: how fast SentencePiece makes tokens of the lines of a file, in one thread.

    tests/tokenizer/speed.py MODEL TEXT       prints MB/s, of the best of several turns, and how many tokens
"""
import sys
import time

import sentencepiece

TURNS = 3


def main(model, path):
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines, best, tokens = text.split("\n"), float("inf"), 0
    for _ in range(TURNS):
        start = time.perf_counter()
        tokens = sum(len(processor.encode(line)) for line in lines)
        best = min(best, time.perf_counter() - start)
    print(f"{len(text.encode()) / best / 1e6:.2f} MB/s {tokens} tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
