"""ring: the task that the example's layer is trained for: tokens on a ring look at each other.

A token is its content, a flag that one token of the ring carries, a constant, and a code of its
place. The layer has to say, for every token, the content of the one before, of the one behind
(times 0.8), of the flagged one (times 0.6), and the mean of all contents: four things, which four
heads can do. The targets are noisy, as data are.
"""
import math

PLACES, CONTENT, NOISE = 64, 8, 0.2
WIDTH, TARGETS = 64, 4 * CONTENT
CODE = [[round(wave(2 * math.pi * turns * place / PLACES), 4)
         for turns in range(1, 28) for wave in (math.cos, math.sin)] for place in range(PLACES)]


def ring(rng, places=PLACES):
    """(tokens [places][WIDTH], targets [places][TARGETS]) of one ring, from a random.Random. Where
    there are more places than codes, these begin anew."""
    contents = [[round(rng.gauss(0, 1), 4) for _ in range(CONTENT)] for _ in range(places)]
    flagged = int(rng.random() * places)
    mean = [math.fsum(column) / places for column in zip(*contents)]
    tokens, targets = [], []
    for i, content in enumerate(contents):
        tokens.append(content + [int(i == flagged), 1] + CODE[i % PLACES])
        exact = (contents[i - 1] + [0.8 * x for x in contents[(i + 1) % places]]
                 + [0.6 * x for x in contents[flagged]] + mean)
        targets.append([x + rng.gauss(0, NOISE) for x in exact])
    return tokens, targets
