"""translators: the textbook's base model by attend and by PyTorch: tokens a second, greedily and by beams."""
import json
import os
import random
import re
import subprocess
import tempfile

import bert
import translator
from decoders import generated, keep_most
from encoders import output
from table import line

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS, SECONDS, ITEMS = 2, "3", 8
SEARCHES = {"greedy": {}, f"beams {translator.BEAMS}": {"beams": translator.BEAMS}}


def sources(shape):
    rng = random.Random(1)
    return [[rng.randrange(translator.END + 1, translator.SHAPES[shape]) for _ in range(translator.SOURCE)]
            for _ in range(ITEMS)]


def by_torch(shape, threads):
    """{"rates": tokens a second, "tokens": of the first source}"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sources.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(sources(shape), file)
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
        return json.loads(output([bert.PYTHON, "-B", os.path.join(HERE, "translate_torch.py"), shape, path, str(threads),
                                  SECONDS], env, threads))


def check(shape, found):
    """The translations of the same weights are the same."""
    for title, search in SEARCHES.items():
        request = {"tokens": sources(shape)[:1], "min_tokens": translator.MOST, "max_tokens": translator.MOST, **search}
        own = generated(translator.folder(shape), request)
        assert own[0][0]["tokens"] == found[title], f"{shape}, {title}: PyTorch has other tokens"


def by_attend(build, shape):
    """{workers: {case: tokens a second}} of bench_translate, at the processor's own level."""
    out = subprocess.run([os.path.join(build, "bench", "bench_translate")], check=True, timeout=900,
                         stdout=subprocess.PIPE, env=dict(os.environ, SHAPE=shape)).stdout.decode()
    found = {}
    for case, workers, rate in re.findall(
            rf"^{shape} (\w.* x\d+), (\d) workers? \| [\d.]+ ms a step, [\d.]+ ms, ([\d.]+) tokens/s", out, re.M):
        found.setdefault(int(workers), {})[case] = float(rate)
    return found


def measure(build, shape):
    ours, theirs = {}, {}  # {threads: {case: seconds a token}}
    counts = range(1, 1 + min(2, len(os.sched_getaffinity(0))))
    for _ in range(ROUNDS):
        for workers, found in by_attend(build, shape).items():
            keep_most(ours.setdefault(workers, {}), found)
        for threads in counts:
            found = by_torch(shape, threads)
            keep_most(theirs.setdefault(threads, {}), found["rates"])
    check(shape, found["tokens"])
    for threads, found in theirs.items():
        for case, seconds in found.items():
            own = ours[threads][case]
            line(f"{shape} {case}, {threads} thread{'s'[:threads - 1]}; PyTorch", f"{1 / own:.1f} /s",
                 f"{1 / seconds:.1f} /s", seconds / own)


def translators(build, _):
    """Of 32 tokens 32 others. The sources are part of the time."""
    for shape in translator.SHAPES:
        measure(build, shape)
