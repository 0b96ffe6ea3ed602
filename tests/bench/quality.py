"""quality: how far int8 and int8-block are from float32: trained models on what they are for, and
BERT-base and GPT-2 of random weights, number by number."""
import json
import math
import os
import random
import sys

import bert
import gpt2
from support import Server, flat
from table import line

HERE = os.path.dirname(os.path.abspath(__file__))
TRANSLATE = os.path.join(os.path.dirname(HERE), "example", "translate")
sys.path[:0] = [TRANSLATE, os.path.dirname(TRANSLATE)]
import translate  # noqa: E402  (after its folder is known)

MODES = ("float32", "int8", "int8-block")


def in_each_mode(name, folder, measure):
    """{mode: what `measure` finds out from a server with this model}."""
    found = {}
    for mode in MODES:
        server = Server({"models": {name: {"transformer": folder, "compute": mode}}})
        try:
            found[mode] = measure(server)
        finally:
            server.stop()
    return found


def answer(response):
    assert response.status == 200, response.body[:500]
    return response.json


def rms(values):
    numbers = list(values)
    return math.sqrt(math.fsum(x * x for x in numbers) / len(numbers))


# --- trained models ---

def sorted_right(server):
    """The share of places at which the built-in model names the token that comes next."""
    rng = random.Random(3)
    tokens = [[rng.randrange(32) for _ in range(rng.randint(3, 16))] for _ in range(1000)]
    rows = answer(server.post("/v1/models/sort/encode", {"tokens": tokens}))["outputs"]
    right = [row.index(max(row[:32])) == token
             for item, given in zip(rows, tokens) for row, token in zip(item, sorted(given))]
    return sum(right) / len(right)


def translations(server):
    """(right sentences of those that training has left out, by beams; the log probabilities of the right ones)."""
    url = f"http://127.0.0.1:{server.port}"
    sources, targets = zip(*translate.held_out())
    number = {word: i for i, word in enumerate(translate.FRENCH)}
    _, right, count = translate.quality(url, translate.BEAMS)
    scored = answer(server.post(translate.MODEL + "/score", {
        "tokens": [translate.tokens_of(source) for source in sources],
        "targets": [[number[word] for word in target.split()] + [translate.END] for target in targets]}))
    return right, count, [math.fsum(item) for item in scored["log_probabilities"]]


def trained():
    for mode, share in in_each_mode("sort", {"builtin": "sort"}, sorted_right).items():
        line(f"sorting numbers, {mode}: right places", f"{100 * share:.2f} %")
    found = in_each_mode("translate-example", TRANSLATE, translations)
    for mode, (right, count, logs) in found.items():
        off = [a - b for a, b in zip(logs, found["float32"][2])]
        line(f"translating, 4 beams, {mode}: right sentences", f"{right} of {count}",
             f"{found['float32'][0]} of {count}")
        line(f"translating, {mode}: log p of a sentence, rms off float32", f"{rms(off):.4f}",
             f"mean {math.fsum(logs) / len(logs):.3f}")


# --- random weights ---

def embeddings(server):
    tokens = [item for items in bert.batches().values() for item in items]
    return answer(server.post("/v1/models/bert/encode", {"tokens": tokens, "pool": "mean"}))["outputs"]


def cosine(a, b):
    return math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


def scores(server):
    """(log probabilities of random tokens, the likeliest token at each place)."""
    rng = random.Random(4)
    tokens = [[rng.randrange(gpt2.VOCABULARY) for _ in range(128)] for _ in range(8)]
    found = answer(server.post("/v1/models/gpt2/score", {
        "tokens": [item[:1] for item in tokens], "targets": [item[1:] for item in tokens], "return_top": 1}))
    return list(flat(found["log_probabilities"])), [row[0]["token"] for item in found["top"] for row in item]


def random_weights():
    found = in_each_mode("bert", bert.folder(), embeddings)
    for mode in MODES[1:]:
        off = [a - b for a, b in zip(flat(found[mode]), flat(found["float32"]))]
        least = min(map(cosine, found[mode], found["float32"]))
        line(f"{bert.NAME}, mean embedding, {mode}: rms off float32", f"{rms(off):.4f}",
             f"{rms(flat(found['float32'])):.3f}", rms(off) / rms(flat(found["float32"])))
        line(f"{bert.NAME}, mean embedding, {mode}: greatest off, least cosine", f"{max(map(abs, off)):.3f}",
             f"{least:.5f}")
    found = in_each_mode("gpt2", gpt2.folder(), scores)
    logs, best = found["float32"]
    for mode in MODES[1:]:
        off = [a - b for a, b in zip(found[mode][0], logs)]
        same = sum(a == b for a, b in zip(found[mode][1], best))
        line(f"{gpt2.NAME}, {mode}: log p of a token, rms off float32", f"{rms(off):.4f}",
             f"mean {math.fsum(logs) / len(logs):.2f}")
        line(f"{gpt2.NAME}, {mode}: the same likeliest token", f"{100 * same / len(best):.1f} %")


def quality(_):
    trained()
    random_weights()
