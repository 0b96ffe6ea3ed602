#!/usr/bin/env python3
"""prune: which heads of a trained layer matter; what the output loses and what time is won without
the others.

    python3 tests/example/prune.py [URL]

URL is that of a server with tests/example/attend.json. Its layer of 8 heads is asked about rings
of tokens (ring.py) that it has not been trained on.
"""
import math
import random
import statistics
import sys

from ask import URL, ask
from ring import ring

MODEL = "/v1/models/heads-example"
HEADS = 8
NAMES = ("confidence", "entropy", "distance", "delta", "michel")
PLACES = 2048  # of the ring that is timed
ROUNDS = 9  # of requests, of which the median is told


def held_out(seed=2, rings=16):
    """(tokens [b][q][WIDTH], targets [b][q][TARGETS])"""
    rng = random.Random(seed)
    tokens, targets = zip(*(ring(rng) for _ in range(rings)))
    return list(tokens), list(targets)


def mask_without(dropped):
    return [int(head not in dropped) for head in range(HEADS)]


def outputs_without(url, tokens, dropped):
    request = {"queries": tokens, "head_mask": mask_without(dropped)}
    return ask(url, MODEL + "/attention", request)[0]["outputs"]


def numbers(nested):
    return [x for item in nested for row in item for x in row]


def squares(a, b):
    """The sum of the squared differences."""
    return math.fsum((x - y) ** 2 for x, y in zip(numbers(a), numbers(b)))


def loss(outputs, targets):
    """The mean squared error."""
    return squares(outputs, targets) / len(numbers(targets))


def loss_gradients(outputs, targets):
    """How the loss changes with each output."""
    n = len(numbers(targets))
    return [[[2 * (y - t) / n for y, t in zip(*rows)] for rows in zip(*items)]
            for items in zip(outputs, targets)]


def change(outputs, whole):
    """How far the outputs are from those of all heads, relative to their length."""
    return math.sqrt(squares(outputs, whole) / math.fsum(x * x for x in numbers(whole)))


def measure(url, tokens, targets, whole):
    """What the server says about the heads on this batch."""
    request = {"queries": tokens, "gradients": loss_gradients(whole, targets)}
    return ask(url, MODEL + "/heads", request)[0]


def show_measures(url, tokens, targets, measured):
    """A line for each head, the least important first, and what it costs to do without."""
    print("head" + "".join(f"{name:>12}" for name in NAMES) + "  loss without")
    for head in measured["ranking"]:
        line = "".join(f"{measured['heads'][head][name]:12.2g}" for name in NAMES)
        without = loss(outputs_without(url, tokens, [head]), targets)
        print(f"{head:4}{line}{without:14.4f}")


def compute_times(url, ranking):
    """Milliseconds without none, one, two ... of the heads. Each round asks for all of them, so
    that whatever else the machine does slows all alike."""
    tokens, _ = ring(random.Random(3), PLACES)
    requests = [{"queries": tokens, "head_mask": mask_without(ranking[:count])}
                for count in range(HEADS)]
    rounds = [[ask(url, MODEL + "/attention", request)[1] for request in requests]
              for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds)]


def show_pruning(url, tokens, targets, whole, ranking):
    """Drops the heads of the ranking one after the other."""
    print("heads dropped      loss  output changes by     compute")
    for count, time in enumerate(compute_times(url, ranking)):
        dropped = ranking[:count]
        outputs = outputs_without(url, tokens, dropped)
        print(f"{' '.join(map(str, dropped)) or 'none':13}{loss(outputs, targets):10.4f}"
              f"{100 * change(outputs, whole):17.1f} %{time:9.2f} ms")


def main(url):
    tokens, targets = held_out()
    whole = outputs_without(url, tokens, [])
    measured = measure(url, tokens, targets, whole)
    show_measures(url, tokens, targets, measured)
    print()
    show_pruning(url, tokens, targets, whole, measured["ranking"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else URL)
