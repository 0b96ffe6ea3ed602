"""test_example: the trained models of tests/example, and their scripts."""
import contextlib
import io
import json
import math
import os
import random
import re
import subprocess
import sys
import unittest

from oracle import Oracle
from support import PATIENCE, ROOT, Server, ServerCase, clean_environment, read_safetensors

EXAMPLE = os.path.join(ROOT, "tests", "example")
TRANSLATE = os.path.join(EXAMPLE, "translate")
sys.path[:0] = [TRANSLATE, EXAMPLE]

import prune  # noqa: E402
import translate  # noqa: E402
import walk  # noqa: E402
from grammar import bleu  # noqa: E402
from ring import ring  # noqa: E402

HEADS = "heads-example"


def trained_layer():
    """The oracle with the example's weights."""
    tensors, _ = read_safetensors(os.path.join(EXAMPLE, "heads.safetensors"))
    with open(os.path.join(EXAMPLE, "attend.json"), encoding="utf-8") as file:
        return Oracle(json.load(file)["models"][HEADS], tensors)


class ExampleCase(ServerCase):
    """A server with the examples' own configuration."""

    @classmethod
    def start(cls):
        return Server(None, "--config", os.path.join(EXAMPLE, "attend.json"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.server.port}"

    def run_script(self, *command):
        """The lines that it prints."""
        done = subprocess.run([sys.executable, os.path.join(EXAMPLE, command[0]), self.url, *command[1:]],
                              stdout=subprocess.PIPE, env=clean_environment({"PYTHONIOENCODING": "utf-8"}), check=True,
                              timeout=PATIENCE)
        return done.stdout.decode().splitlines()


class Example(ExampleCase):
    """Of layers."""

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
        lines = self.run_script("walk.py")
        self.assertEqual(len(lines), 12)
        self.assertRegex(lines[1], r"^  to point +\d+ at \[.*\] +with +[\d.]+ %: ")


class Translator(ExampleCase):
    """Its sequences as text, and what it looks at."""

    def texts(self, sentence, how):
        return [translate.text_of(found["tokens"])
                for found in translate.generate(self.url, [sentence], how)[0]]

    def test_statements(self):
        """Greedily or by beams: where one translation is likely, it is found."""
        for sentence, right in {
                "The girl's black cats do not sleep.": "les chats noirs de la fille ne dorment pas .",
                "He will never give the children these round apples.":
                    "il ne va jamais donner ces pommes rondes aux enfants .",
                "My pretty sister always waits for them.": "ma jolie sœur les attend toujours .",
                "She shows the king a white horse.": "elle montre un cheval blanc au roi ."}.items():
            for how in (translate.GREEDY, translate.BEAMS):
                with self.subTest(sentence=sentence, how=how):
                    self.assertEqual(self.texts(sentence, how), [right])

    def test_beams_find_the_likeliest_question(self):
        """It does not begin with the likeliest word."""
        sentence, wanted = "Does the young king love the queen?", "est-ce que le jeune roi aime la reine ?"
        greedy, = translate.generate(self.url, [sentence], translate.GREEDY)[0]
        beams = translate.generate(self.url, [sentence], {**translate.BEAMS, "returns": 3})[0]
        texts = [translate.text_of(found["tokens"]) for found in beams]
        self.assertEqual(texts[0], wanted)
        self.assertIn(translate.text_of(greedy["tokens"]), texts[1:])
        self.assertGreater(sum(beams[0]["log_probabilities"]), greedy["score"] + 0.1)
        scores = [found["score"] for found in beams]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for found in beams:
            total = math.fsum(found["log_probabilities"])
            self.assertAlmostEqual(found["score"], total / len(found["tokens"]) ** 0.75, delta=1e-5)
            self.assertEqual(found["finish"], "end")
        self.assertAlmostEqual(greedy["score"], math.fsum(greedy["log_probabilities"]), delta=1e-5)

    def test_quality(self):
        greedy, _, count = translate.quality(self.url, translate.GREEDY)
        beams, right, _ = translate.quality(self.url, translate.BEAMS)
        self.assertEqual(count, 200)
        self.assertGreater(greedy, 0.96)
        self.assertGreater(beams, 0.99)
        self.assertGreaterEqual(right, 190)

    def test_what_is_not_a_question_is_right(self):
        pairs = [pair for pair in translate.held_out() if pair[0].endswith(".")]
        found = translate.generate(self.url, [english for english, _ in pairs], translate.GREEDY)
        wrong = [pair for pair, sequences in zip(pairs, found)
                 if translate.text_of(sequences[0]["tokens"]) != pair[1]]
        self.assertEqual(wrong, [])

    def test_cross_attention_is_at_the_word_that_is_translated(self):
        for sentence, pairs in {
                "The girl's black cat never sleeps.": "chat cat, noir black, fille girl, dort sleeps, jamais never",
                "My small mice hear some grey chairs.": "petites small, souris mice, entendent hear, chaises chairs, "
                                                        "grises grey",
                "He gave the tired doctor a red key.": "donné gave, clé key, rouge red, médecin doctor, "
                                                       "fatigué tired"}.items():
            english = translate.words_of(sentence) + ["<eos>"]
            tokens = translate.generate(self.url, [sentence], translate.BEAMS)[0][0]["tokens"]
            french = [translate.FRENCH[token] for token in tokens]
            weights = translate.looks(self.url, sentence, tokens)
            for name, size in {"encoder.1.self": (len(english), len(english)), "decoder.1.self": (len(french),) * 2,
                               "decoder.1.cross": (len(french), len(english))}.items():
                self.assertEqual((len(weights[name]), len(weights[name][0])), size)
                for row in weights[name]:
                    self.assertAlmostEqual(math.fsum(row), 1, delta=1e-5)
            cross = weights["decoder.1.cross"]
            for pair in pairs.split(", "):
                word, meant = pair.split()
                row = cross[french.index(word)]
                with self.subTest(sentence=sentence, word=word):
                    self.assertEqual(english[row.index(max(row))], meant)

    def test_decoder_does_not_look_ahead(self):
        sentence = "The dog runs."
        tokens = translate.generate(self.url, [sentence], translate.GREEDY)[0][0]["tokens"]
        for i, row in enumerate(translate.looks(self.url, sentence, tokens)["decoder.1.self"]):
            self.assertEqual(row[i + 1:], [0] * (len(row) - i - 1))

    def test_pictures(self):
        lines = self.run_script("translate/translate.py", "The girl's black cat never sleeps.")
        self.assertEqual([line for line in lines if line.endswith(")")],
                         [f"{title} ({name})" for name, title in translate.PICTURES])
        row, = [line for line in lines if line.startswith("  noir  ")][1:]
        self.assertEqual(row.split(), ["noir", "█████"])

    def test_usage(self):
        """Where the first word is no URL, or the sentence has no word; another script tells the former, too."""
        for script, words, said in (
                ("translate/translate.py", ["The girl sleeps."], "usage: translate.py [URL [SENTENCE]], such as"),
                ("translate/translate.py", [self.url, " "], "usage: translate.py [URL [SENTENCE]], such as"),
                ("walk.py", ["nowhere"], "'nowhere' is no URL, such as")):
            done = subprocess.run([sys.executable, os.path.join(EXAMPLE, script), *words], stderr=subprocess.PIPE,
                                  check=False)
            self.assertEqual(done.returncode, 1)
            self.assertTrue(done.stderr.decode().startswith(said), done.stderr)

    def test_unknown_words_are_refused(self):
        for how, said in (("The girl eats.", "eats"), ("Le chat.", "le chat")):
            with self.assertRaises(SystemExit) as refused:
                translate.generate(self.url, [how], translate.GREEDY)
            self.assertEqual(str(refused.exception), f"not in english.txt: {said}")

    def test_bleu(self):
        def of(said, right):
            return bleu(said.split(), right.split())
        self.assertEqual(of("a b c", "a b c"), 1)
        self.assertEqual(of("a b c", "d e f"), 0)
        self.assertAlmostEqual(of("a b b c d", "a b c d e f"), math.exp(-0.2) * 0.8 ** 0.5 * 0.75 ** 0.25)
        self.assertAlmostEqual(of("a a a", "a a"), (2 / 3) ** 0.5 * 0.5 ** 0.25)


if __name__ == "__main__":
    unittest.main()
