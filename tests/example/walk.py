#!/usr/bin/env python3
"""walk: a pointer network walks through points of the plane, each time to the nearest one left.

    python3 tests/example/walk.py [URL]

URL is that of a server with tests/example/attend.json. Each step is one request: the query is the
present point (and a constant 1, as the score has no bias), the keys are all points, and the mask
hides those where the walk has been. The weights are the distribution over the next point.
"""
import math
import random
import sys

from ask import URL, ask

PATH = "/v1/models/pointer-example/attention"


def some_points(seed, count=12):
    """In the unit square."""
    rng = random.Random(seed)
    return [[round(rng.random(), 3), round(rng.random(), 3)] for _ in range(count)]


def step(url, points, here, left):
    """(the point that is pointed at, its probability)"""
    request = {"queries": [points[here] + [1]], "keys": points,
               "mask": [[point in left for point in range(len(points))]],
               "return_pointers": True, "return_attention": True}
    answer, _ = ask(url, PATH, request)
    pointer = answer["pointers"][0][0]  # [head][query]
    return pointer, answer["attention_weights"][0][0][pointer]


def walk(url, points):
    """[(point, its probability, the point that is truly nearest)] of each step from point 0 on."""
    here, left, steps = 0, set(range(1, len(points))), []
    while left:
        nearest = min(left, key=lambda point: math.dist(points[here], points[point]))
        here, probability = step(url, points, here, left)
        left.remove(here)
        steps.append((here, probability, nearest))
    return steps


def main(url):
    points = some_points(seed=1)
    steps = walk(url, points)
    print(f"from point {0:2} at {points[0]}")
    for here, probability, nearest in steps:
        truth = "the nearest" if here == nearest else f"nearer was {nearest}"
        print(f"  to point {here:2} at {str(points[here]):14} "
              f"with {100 * probability:5.1f} %: {truth}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else URL)
