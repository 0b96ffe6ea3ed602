"""compare: answers beside the oracle's: tolerances, and keys that rounding may choose."""
import math
import shutil
import tempfile

from oracle import number_drawn, unbatched
from support import Server, ServerCase, flat

WEIGHTS = 2e-6  # absolute; outputs: times the root of the hidden size
MEASURES = 1e-5  # relative and absolute
CHOICE = 4e-6  # of a weight or a sum of weights: within it either of two keys is right


class OracleCase(ServerCase):
    """A server of `layers` by name, which make_layers() makes; the first one is the default."""

    @classmethod
    def start(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        cls.layers = cls.make_layers()
        models = {name: layer.definition(cls.folder, name) for name, layer in cls.layers.items()}
        return Server({"models": models, "default_model": next(iter(models))}, folder=cls.folder)

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            shutil.rmtree(cls.folder, ignore_errors=True)

    def agrees(self, name, request):
        """Asks, and compares whatever is answered with the oracle. Returns the answer."""
        layer = self.layers[name]
        answer = self.ok(self.server.attend(request, name))
        chosen = self.chosen(name, request, answer)
        right = layer.oracle.answer(request, chosen)
        self.assertEqual(answer["model"], name)
        self.assertEqual(sorted(answer), sorted(["model", *right]), "the members of the answer")
        whole = layer.oracle.answer(dict(request, return_attention=True), chosen)
        sum_of_row = greatest_sum(whole["attention_weights"])  # not 1 where they are sigmoids
        self.close_to(answer["outputs"], right["outputs"],
                      WEIGHTS * math.sqrt(layer.hidden) * max(1, sum_of_row), "outputs")
        for member in ("attention_weights", "segment_weights"):
            if member in right:
                self.weights_agree(answer[member], right[member], member)
                if not layer.oracle.sigmoid:
                    self.rows_sum_to_one(answer[member], right[member])
        return answer

    def weights_agree(self, got, right, what):
        self.close_to(got, right, WEIGHTS, what)
        for a, b in zip(flat(got), flat(right)):
            self.assertEqual(a == 0, b == 0, f"{what}: exact zeros at hidden keys only")

    def rows_sum_to_one(self, got, right):
        if right and not isinstance(right[0], list):
            if any(right):
                self.assertLess(abs(math.fsum(got) - 1), 1e-6, "a row's sum")
            return
        for a, b in zip(got, right):
            self.rows_sum_to_one(a, b)

    def measures_agree(self, name, request):
        """Asks for the measures of the heads, which come with the weights and pointers that the
        request would get as attention, and compares them with the oracle. Returns the answer."""
        oracle = self.layers[name].oracle
        asked = {field: value for field, value in request.items() if field != "gradients"}
        attention = self.agrees(name, asked)
        answer = self.ok(self.server.post(f"/v1/models/{name}/heads", request))
        right = oracle.measures(request, self.chosen(name, asked, attention))
        beside = {k: v for k, v in attention.items() if k != "outputs"}
        self.assertEqual(sorted(answer), sorted([*right, *beside]), "the members of the answer")
        self.assertEqual({k: answer[k] for k in beside}, beside, "as on the attention path")
        self.assertEqual(answer["rows"], right["rows"])
        self.assertEqual(len(answer["heads"]), len(right["heads"]))
        for head, (got, want) in enumerate(zip(answer["heads"], right["heads"])):
            self.assertEqual(sorted(got), sorted(want))
            for measure in want:
                self.near(got[measure], want[measure], f"{measure} of head {head}")
        self.same_shape(answer["divergence"], right["divergence"], "divergence")
        for got, want in zip(flat(answer["divergence"]), flat(right["divergence"])):
            self.near(got, want, "divergence")
        self.ranking_agrees(answer["ranking"], right["heads"])
        return answer

    def near(self, got, right, what):
        if right is None:
            self.assertIsNone(got, what)
        else:
            self.assertLessEqual(abs(got - right), MEASURES * (1 + abs(right)),
                                 f"{what}: {got}, not {right}")

    def ranking_agrees(self, ranking, heads):
        """In order but for heads that differ by less than rounding; of equals the first is first."""
        self.assertEqual(sorted(ranking), list(range(len(heads))))
        values = [head.get("michel", head["delta"]) for head in heads]
        for a, b in zip(ranking, ranking[1:]):
            self.assertLessEqual(values[a], values[b] + 2 * MEASURES, f"{a} before {b}")
            if values[a] == values[b] == 0:
                self.assertLess(a, b, "heads that do nothing")

    # --- keys that are chosen ---

    def chosen(self, name, request, answer):
        """The keys that the server chose, each of which must be as good as any; None where nothing
        was to choose."""
        if request.get("select", "soft") == "soft" and not request.get("return_pointers"):
            return None
        if "pointers" not in answer:
            more = self.ok(self.server.attend(dict(request, return_pointers=True), name))
            self.assertEqual({k: v for k, v in more.items() if k != "pointers"}, answer,
                             "asking for pointers changes the answer")
            answer = more
        soft = self.layers[name].oracle.answer(dict(request, select="soft", return_attention=True,
                                                    return_pointers=True))
        self.choices_are_right(request, answer["pointers"], soft)
        return answer["pointers"]

    def choices_are_right(self, request, pointers, soft):
        self.same_shape(pointers, soft["pointers"], "pointers")
        weights, right = soft["attention_weights"], soft["pointers"]
        if unbatched(request):
            pointers, weights, right = [pointers], [weights], [right]
        for i, (got, heads) in enumerate(zip(pointers, weights)):
            for h, rows in enumerate(heads):
                for r, row in enumerate(rows):
                    u = number_drawn(request.get("seed", 0), i, h, r)
                    good = got[h][r] == -1 if right[i][h][r] == -1 else \
                        choice_is_right(row, got[h][r], request.get("select"), u)
                    self.assertTrue(good, f"key {got[h][r]} of item {i}, head {h}, row {r}: "
                                          f"{row}, u {u}")


def greatest_sum(weights):
    """The greatest sum of a row of nested lists."""
    if weights and isinstance(weights[0], list):
        return max(map(greatest_sum, weights))
    return math.fsum(weights)


def choice_is_right(weights, key, select, u):
    """Is a key as good a choice as the soft weights of its row allow?"""
    if not (isinstance(key, int) and 0 <= key < len(weights) and weights[key] > 0):
        return False
    if select != "sample":
        return weights[key] >= max(weights) - CHOICE
    before = math.fsum(weights[:key])
    return before <= u + CHOICE and before + weights[key] >= u - CHOICE
