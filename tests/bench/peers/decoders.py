"""decoders: a GPT-2 by attend and by llama.cpp: tokens a second of sequences and of a prompt; this one by PyTorch, too."""
import json
import os
import random
import re
import subprocess
import tempfile

import bert
import gpt2
from encoders import keep_best, output
from support import attend
from table import line

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = 2
# Our models of bench_generate, llama.cpp's file beside each, and what is wanted by case and threads.
MODELS = {"float32": ("f32", {("x1", 1): 1.2, ("x1", 2): 1.35, ("x8", 1): 2.1, ("x16", 1): 2.7, ("x8", 2): 2.5,
                              ("x16", 2): 3.2, ("text", 1): 3.2, ("text", 2): 3.2}),
          "bfloat16": ("f16", {("x1", 1): 1.15}), "int8-block": ("q8_0", {})}


def by_llama(peers, kind, threads):
    script = os.path.join(HERE, "node_llama", "decoder.mjs")
    model = os.path.join(gpt2.folder(), f"model-{kind}.gguf")
    return json.loads(output(["node", script, peers, model, str(threads), str(gpt2.VOCABULARY)],
                             os.environ, threads))


def generated(folder, request):
    """The sequences of attend's answer, by the model in the folder."""
    with tempfile.TemporaryDirectory() as made:
        config = os.path.join(made, "attend.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"models": {"model": {"transformer": folder}}}, file)
        status, answer, reason = attend("run", "model", "--generate", "--config", config, data=json.dumps(request).encode())
    assert status == 0, reason
    return json.loads(answer)["sequences"]


def by_torch(threads):
    """Tokens a second of a text of 512, whose next token is the one that attend has for it."""
    text = [random.Random(1).randrange(gpt2.VOCABULARY) for _ in range(512)]
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "tokens.json")
        with open(tokens, "w", encoding="utf-8") as file:
            json.dump(text, file)
        command = [bert.PYTHON, "-B", os.path.join(HERE, "gpt2_torch.py"), tokens, str(threads), "10"]
        found = json.loads(output(command, os.environ, threads))
    own = generated(gpt2.folder(), {"tokens": text, "max_tokens": 1})
    assert own[0]["tokens"] == [found["token"]], "PyTorch has another token"
    return found["text"]


def by_attend(build):
    """{(model, workers): {case: tokens a second}} of bench_generate, at the processor's own level."""
    out = subprocess.run([os.path.join(build, "bench", "bench_generate")], check=True, timeout=900,
                         stdout=subprocess.PIPE).stdout.decode()
    found = {}
    for case, workers, model, rate in re.findall(
            rf"{gpt2.NAME} (x\d+) after 16, (\d) workers?(?:, (\S+))? \| [\d.]+ ms a step, ([\d.]+) tok", out):
        found.setdefault((model or "float32", int(workers)), {})[case] = float(rate)
    for workers, model, rate in re.findall(
            rf"{gpt2.NAME} text of 512, (\d) workers?, (\S+) \| [\d.]+ ms, ([\d.]+) tok", out):
        found.setdefault((model, int(workers)), {})["text"] = float(rate)
    return found


def keep_most(best, found):
    keep_best(best, {case: 1 / rate for case, rate in found.items()})


def decoders(build, peers):
    """As the figures of encoders: each model beside llama.cpp's of the same size."""
    ours, theirs = {}, {}  # {(model, threads): {case: seconds a token}}
    torch = {}  # {threads: tokens a second}
    counts = range(1, 1 + min(2, len(os.sched_getaffinity(0))))
    for _ in range(ROUNDS):
        for key, found in by_attend(build).items():
            keep_most(ours.setdefault(key, {}), found)
        for threads in counts:
            torch[threads] = max(torch.get(threads, 0), by_torch(threads))
            for model, (kind, _) in MODELS.items():
                keep_most(theirs.setdefault((model, threads), {}), by_llama(peers, kind, threads))
    for (model, threads), found in theirs.items():
        kind, targets = MODELS[model]
        for case, seconds in found.items():
            own, wanted = ours[model, threads][case], targets.get((case, threads))
            line(f"{gpt2.NAME} {case}, {threads} thread{'s'[:threads - 1]}, {model}; llama.cpp {kind.upper()}",
                 f"{1 / own:.1f} /s", f"{1 / seconds:.1f} /s", seconds / own, wanted and f">= {wanted}",
                 wanted and seconds / own >= wanted)
    for threads, rate in torch.items():
        own = 1 / ours["float32", threads]["text"]
        line(f"{gpt2.NAME} text, {threads} thread{'s'[:threads - 1]}; PyTorch", f"{own:.1f} /s", f"{rate:.1f} /s",
             own / rate, ">= 1.5", own / rate >= 1.5)
