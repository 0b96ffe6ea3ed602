"""test_example: the trained layer and the pointer network of tests/example, and their scripts."""
import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import unittest

from oracle import Oracle
from support import PATIENCE, ROOT, Server, ServerCase, clean_environment, read_safetensors

EXAMPLE = os.path.join(ROOT, "tests", "example")
sys.path.insert(0, EXAMPLE)

import prune  # noqa: E402
import walk  # noqa: E402
from ring import ring  # noqa: E402

HEADS = "heads-example"


def trained_layer():
    """The oracle with the example's weights."""
    tensors, _ = read_safetensors(os.path.join(EXAMPLE, "heads.safetensors"))
    with open(os.path.join(EXAMPLE, "attend.json"), encoding="utf-8") as file:
        return Oracle(json.load(file)["models"][HEADS], tensors)


class Example(ServerCase):
    """A server with the example's own configuration."""

    @classmethod
    def start(cls):
        return Server(None, "--config", os.path.join(EXAMPLE, "attend.json"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.server.port}"

    def measured(self):
        """(tokens, targets, outputs of all heads, what the server says of the heads)"""
        tokens, targets = prune.held_out()
        whole = prune.outputs_without(self.url, tokens, [])
        return tokens, targets, whole, prune.measure(self.url, tokens, targets, whole)

    def test_pruned_outputs_are_those_of_the_oracle(self):
        layer = trained_layer()
        tokens, _ = ring(random.Random(5), 20)
        for dropped in ([], [3], [2], [0, 3, 4, 6, 7], [0, 1, 2, 3, 4, 5, 6]):
            with self.subTest(dropped=dropped):
                request = {"queries": [tokens], "head_mask": prune.mask_without(dropped)}
                outputs = self.ok(self.server.attend(request, HEADS))["outputs"]
                self.close_to(outputs, layer.answer(request)["outputs"], 2e-6 * 8)

    def test_the_ranking_tells_what_can_go(self):
        tokens, targets, whole, measured = self.measured()
        ranking = measured["ranking"]
        self.assertEqual(sorted(ranking), list(range(prune.HEADS)))
        michel = [head["michel"] for head in measured["heads"]]
        self.assertEqual(ranking, sorted(range(prune.HEADS), key=michel.__getitem__))
        losses = [prune.loss(prune.outputs_without(self.url, tokens, [head]), targets)
                  for head in ranking]
        base = prune.loss(whole, targets)
        self.assertLess(base, 0.05, "the layer does its task: the targets' noise is 0.04")
        self.assertLess(abs(losses[0] - base), 0.01 * base, "the first head is not missed")
        self.assertGreater(losses[-1], 2 * base, "the last head is")
        five = prune.outputs_without(self.url, tokens, ranking[:5])
        self.assertLess(prune.loss(five, targets), 1.5 * base, "three heads of eight suffice")

    def test_delta_is_the_change_that_pruning_makes(self):
        tokens, _, whole, measured = self.measured()
        for head, measures in enumerate(measured["heads"]):
            pruned = prune.outputs_without(self.url, tokens, [head])
            self.assertAlmostEqual(measures["delta"], prune.change(pruned, whole), delta=1e-6)

    def test_the_walk_visits_every_point_and_mostly_the_nearest(self):
        nearest = steps = 0
        for seed in range(100, 110):
            points = walk.some_points(seed, count=seed - 92)
            tour = walk.walk(self.url, points)
            self.assertEqual(sorted(point for point, _, _ in tour), list(range(1, len(points))))
            self.assertTrue(all(0 < probability <= 1 for _, probability, _ in tour))
            self.assertAlmostEqual(tour[-1][1], 1, delta=1e-6, msg="a single point is certain")
            nearest += sum(point == truth for point, _, truth in tour)
            steps += len(tour)
        self.assertGreaterEqual(nearest, 0.9 * steps, f"{nearest} of {steps}")

    def test_the_tables_of_prune(self):
        prune.PLACES, prune.ROUNDS = 128, 1
        with contextlib.redirect_stdout(io.StringIO()) as out:
            prune.main(self.url)
        measures, pruning = out.getvalue().split("\n\n")
        self.assertEqual(len(measures.splitlines()), 1 + prune.HEADS)
        rows = re.findall(r"^(none|\d[\d ]*) +([\d.]+) +([\d.]+) % +([\d.]+) ms$", pruning, re.M)
        self.assertEqual(len(rows), prune.HEADS)
        changes = [float(row[2]) for row in rows]
        self.assertEqual((changes[0], changes), (0, sorted(changes)))

    def test_walk_is_a_program(self):
        done = subprocess.run([sys.executable, os.path.join(EXAMPLE, "walk.py"), self.url],
                              stdout=subprocess.PIPE, env=clean_environment(), check=True,
                              timeout=PATIENCE)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(len(lines), 12)
        self.assertRegex(lines[1], r"^  to point +\d+ at \[.*\] +with +[\d.]+ %: ")


if __name__ == "__main__":
    unittest.main()
