"""oracle: what must be answered: attention in Python floats, the formulas as they stand.

A layer is a model definition, as in a configuration, and the tensors of its checkpoint: name ->
(shape, numbers in order). A request and its answer are what goes over HTTP, as Python objects.
"""
import math
from operator import mul


def dot(x, y):
    return sum(map(mul, x, y))


def cut(x, parts):
    """x in so many pieces of one size."""
    size = len(x) // parts
    return [x[i * size:(i + 1) * size] for i in range(parts)]


def depth(x):
    return 1 + max(map(depth, x), default=0) if isinstance(x, list) else 0


def softmax(scores):
    """The weights of {key: score}."""
    top = max(scores.values(), default=0.0)
    powers = {j: math.exp(s - top) for j, s in scores.items()}
    total = math.fsum(powers.values())
    return {j: p / total for j, p in powers.items()}


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def philox(key, counter):
    """Philox4x32-10."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & 0xFFFFFFFF, a >> 32 ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def number_drawn(seed, item, head, row):
    """What decides which key a query draws: 0 <= u < 1."""
    return philox((seed & 0xFFFFFFFF, seed >> 32), (item, head, row, 0))[0] / 2 ** 32


# --- tensors ---------------------------------------------------------------------------------------

def torch_names(tensors):
    """Tensors of torch.nn.MultiheadAttention under plain names."""
    plain = {}
    roles = ("query", "key", "value")
    for n, role in enumerate(roles):
        if "in_proj_weight" in tensors:
            (rows, columns), numbers = tensors["in_proj_weight"]
            plain[f"{role}.weight"] = ([rows // 3, columns], cut(numbers, 3)[n])
        else:
            plain[f"{role}.weight"] = tensors[f"{role[0]}_proj_weight"]
        if "in_proj_bias" in tensors:
            (rows,), numbers = tensors["in_proj_bias"]
            plain[f"{role}.bias"] = ([rows // 3], cut(numbers, 3)[n])
    for part in ("weight", "bias"):
        if f"out_proj.{part}" in tensors:
            plain[f"output.{part}"] = tensors[f"out_proj.{part}"]
    return plain


def plain_names(definition, tensors):
    """The layer's tensors under the names of its roles."""
    if definition.get("layout") == "torch":
        return torch_names(tensors)
    plain = dict(tensors)
    for role, stem in definition.get("tensors", {}).items():
        for end in ("", ".weight", ".bias"):
            if stem + end in tensors:
                plain[role + end] = tensors[stem + end]
    return plain


class Matrix:
    """y = x W^T + b."""

    def __init__(self, tensors, stem):
        (self.out, self.size), numbers = tensors[stem + ".weight"]
        self.rows = cut(numbers, self.out)
        self.bias = tensors[stem + ".bias"][1] if stem + ".bias" in tensors else [0.0] * self.out

    def times(self, x):
        return [dot(row, x) + b for row, b in zip(self.rows, self.bias)]

    def heads(self, x, heads, grouped):
        """x projected, cut into heads; each sees its own slice of x where they are grouped."""
        slices = cut(x, heads) if grouped else [x] * heads
        rows, bias = cut(self.rows, heads), cut(self.bias, heads)
        return [[dot(row, slices[h]) + b for row, b in zip(rows[h], bias[h])]
                for h in range(heads)]


# --- requests --------------------------------------------------------------------------------------

def unbatched(request):
    """Is the request one item, written without the batch?"""
    queries = request["queries"]
    return bool(queries) and bool(queries[0]) and not isinstance(queries[0][0], list)


def batched(request):
    """The same request with the batch dimension where it was left out."""
    if not unbatched(request):
        return request
    request = dict(request)
    for field in ("queries", "keys", "values", "valid_lens", "segments", "gradients"):
        if request.get(field) is not None:
            request[field] = [request[field]]
    if depth(request.get("bias")) == 3:
        request["bias"] = [request["bias"]]
    return request


class Item:
    """One item of a batched request: its rows, and who may see what."""

    def __init__(self, request, number, causal):
        def own(field, shared):
            """The item's part of a field, which is one for all items where it is that shallow."""
            value = request.get(field)
            return value if value is None or depth(value) == shared else value[number]

        self.request, self.number = request, number
        keys = request.get("keys", request["queries"])
        self.queries, self.keys = request["queries"][number], keys[number]
        self.values = request.get("values", keys)[number]
        self.segments, self.lens = own("segments", 0), own("valid_lens", 0)
        self.mask, self.bias = own("mask", 2), own("bias", 2)
        self.bias_by_head = depth(self.bias) == 3
        self.gradients = own("gradients", 0)
        self.causal = request.get("causal", causal)
        self.left, self.right = request.get("window", [-1, -1])
        self.offset = own("causal_offset", 0) or 0
        if self.offset == "end":
            self.offset = len(self.keys) - len(self.queries)

    def sees(self, i, j):
        place = i + self.offset
        length = self.lens[i] if isinstance(self.lens, list) else self.lens
        return ((length is None or j < length) and (self.mask is None or self.mask[i][j])
                and (not self.causal or j <= place)
                and (self.left < 0 or j >= place - self.left)
                and (self.right < 0 or j <= place + self.right))

    def seen(self, i):
        return [j for j in range(len(self.keys)) if self.sees(i, j)]

    def bias_of(self, head, i, j):
        if self.bias is None:
            return 0.0
        return (self.bias[head] if self.bias_by_head else self.bias)[i][j]


# --- the layer -------------------------------------------------------------------------------------

class Oracle:
    """A layer's answers."""

    def __init__(self, definition, tensors):
        projection = definition.get("projection", "linear")
        tensors = plain_names(definition, tensors)
        self.heads = definition.get("heads", 1)
        self.kv_heads = definition.get("kv_heads", self.heads)
        self.score = definition.get("score", "scaled_dot")
        self.scale = definition.get("scale")
        self.sigmoid = definition.get("weighting") == "sigmoid"
        self.causal = definition.get("causal", False)
        self.grouped = projection == "grouped"
        roles = [] if projection == "none" else ["query", "key", "value"]
        if definition.get("output_projection", projection != "none"):
            roles.append("output")
        self.matrix = {role: Matrix(tensors, role) for role in roles}
        columns = (self.matrix["value"].out if "value" in self.matrix
                   else definition.get("value_size", definition["query_size"]))
        self.value_head_size = columns // self.kv_heads
        # The score's parameters: matrices as rows.
        self.score_query, self.score_key, self.score_weight = (
            cut(numbers, shape[0]) for shape, numbers in
            (tensors.get(f"score.{role}", ([1], [])) for role in ("query", "key", "weight")))
        self.score_vector = tensors.get("score.vector", ([1], []))[1]

    # --- one query and one key ---

    def compare(self, q, k):
        """The score of a query and a key of one head."""
        return self.product(self.compared("query", q), self.compared("key", k)) * self.factor(q)

    def compared(self, role, x):
        """A query or a key of one head as a score compares it."""
        if self.score == "additive":
            return [dot(row, x) for row in (self.score_query if role == "query" else self.score_key)]
        if self.score == "bilinear" and role == "query":
            return [dot(row, x) for row in self.score_weight]
        return x

    def product(self, q, k):
        if self.score == "additive":
            return sum(v * math.tanh(x + y) for v, x, y in zip(self.score_vector, q, k))
        return dot(q, k)

    def factor(self, q):
        if self.score != "scaled_dot":
            return 1.0
        return 1 / math.sqrt(len(q)) if self.scale is None else self.scale

    def rows(self, role, rows, heads):
        """Rows as heads: [row][head][size]."""
        matrix = self.matrix.get(role)
        return [matrix.heads(x, heads, self.grouped) if matrix else cut(x, heads) for x in rows]

    # --- one query of one head ---

    def weigh_segments(self, item, query, keys, scores):
        """Weights on two levels, and those of the segments."""
        within, levels, begin = {}, {}, 0
        for s, size in enumerate(item.segments):
            own = {j: scores[j] for j in range(begin, begin + size) if j in scores}
            begin += size
            if own:
                within[s] = softmax(own)
                mean = [sum(w * keys[j][x] for j, w in within[s].items())
                        for x in range(len(keys[0]))]
                levels[s] = self.compare(query, mean)
        levels = softmax(levels)
        weights = {j: levels[s] * w for s, own in within.items() for j, w in own.items()}
        return weights, [levels.get(s, 0.0) for s in range(len(item.segments))]

    def choose(self, item, head, i, scores, weights):
        """The heaviest key, the first one on a tie, or the drawn one."""
        if item.request.get("select") != "sample":
            by = scores if item.segments is None else weights
            return max(by, key=by.get)
        u = number_drawn(item.request.get("seed", 0), item.number, head, i)
        total, last = 0.0, -1
        for j, w in weights.items():
            if w > 0 and total <= u:
                total, last = total + w, j
        return last

    def attend(self, item, head, i, query, keys, chosen):
        """(weights [k], segment weights, pointer) of query row i in a head, whose vector and whose
        keys are given."""
        k, seen = len(item.keys), item.seen(i)
        if not seen:
            weight = 1 / max(k, 1) if item.request.get("empty_rows") == "uniform" else 0.0
            return [weight] * k, [0.0] * len(item.segments or []), -1
        scores = {j: self.compare(query, keys[j]) + item.bias_of(head, i, j) for j in seen}
        levels = []
        if item.segments is not None:
            weights, levels = self.weigh_segments(item, query, keys, scores)
        elif self.sigmoid:
            weights = {j: sigmoid(s) for j, s in scores.items()}
        else:
            weights = softmax(scores)
        pointer = self.choose(item, head, i, scores, weights)
        if item.request.get("select", "soft") != "soft":
            pointer = pointer if chosen is None else chosen
            weights = {pointer: 1.0}
        return [weights.get(j, 0.0) for j in range(k)], levels, pointer

    # --- requests ---

    def compute(self, item, chosen):
        """All of one item, by head and row: weights, segment weights, pointers and contexts; and
        the outputs by row."""
        queries = self.rows("query", item.queries, self.heads)
        keys = self.rows("key", item.keys, self.kv_heads)
        values = self.rows("value", item.values, self.kv_heads)
        factors = item.request.get("head_mask") or [1.0] * self.heads
        done = Computed(item)
        for head in range(self.heads):
            shared = head // (self.heads // self.kv_heads)
            own_keys, own_values = [k[shared] for k in keys], [v[shared] for v in values]
            rows = [self.attend(item, head, i, query[head], own_keys,
                                None if chosen is None else chosen[head][i])
                    for i, query in enumerate(queries)]
            done.weights.append([row[0] for row in rows])
            done.segment_weights.append([row[1] for row in rows])
            done.pointers.append([row[2] for row in rows])
            done.contexts.append([[factors[head] * sum(w * own_values[j][x]
                                                       for j, w in enumerate(weights) if w)
                                   for x in range(self.value_head_size)]
                                  for weights, _, _ in rows])
        output = self.matrix.get("output")
        for i in range(len(queries)):
            context = [x for own in done.contexts for x in own[i]]
            done.outputs.append(output.times(context) if output else context)
        return done

    def items(self, request, chosen):
        """Every item's, for a batched request."""
        return [self.compute(Item(request, n, self.causal), None if chosen is None else chosen[n])
                for n in range(len(request["queries"]))]

    def answer(self, request, chosen=None):
        """What must be answered, but for the model's name. `chosen` are pointers for hard and
        sample to take instead of one's own: where keys differ by less than rounding."""
        alone = unbatched(request)
        items = self.items(batched(request), [chosen] if alone and chosen is not None else chosen)
        answer = {"outputs": [item.outputs for item in items]}
        wanted = request.get("return_attention", False)
        if wanted:
            answer["attention_weights"] = [item.weights if wanted is True
                                           else average(item.weights) for item in items]
        if wanted is True and request.get("segments") is not None:
            answer["segment_weights"] = [item.segment_weights for item in items]
        if request.get("return_pointers"):
            answer["pointers"] = [item.pointers for item in items]
        return {name: member[0] for name, member in answer.items()} if alone else answer

    def trace(self, request, chosen=None):
        """What must be answered as the trace that the request asks for."""
        asked, alone = request["trace"], unbatched(request)
        n, head, i = asked["item"], asked["head"], asked["query"]
        item, shared = Item(batched(request), n, self.causal), head // (self.heads // self.kv_heads)
        query = self.rows("query", item.queries, self.heads)[i][head]
        keys = [x[shared] for x in self.rows("key", item.keys, self.kv_heads)]
        values = [x[shared] for x in self.rows("value", item.values, self.kv_heads)]
        if chosen is not None:
            chosen = (chosen if alone else chosen[n])[head][i]
        weights = self.attend(item, head, i, query, keys, chosen)[0]
        seen, q = item.seen(i), self.compared("query", query)
        sides = [self.compared("key", key) for key in keys]
        products = {j: self.product(q, sides[j]) for j in seen}
        nothing = [0.0] * len(q)
        return {"query": q if seen else nothing,
                "keys": [side if j in seen else nothing for j, side in enumerate(sides)],
                "products": [products.get(j) for j in range(len(keys))],
                "scores": [products[j] * self.factor(query) + item.bias_of(head, i, j)
                           if j in seen else None for j in range(len(keys))],
                "weights": weights,
                "values": [value if j in seen or weights[j] else [0.0] * len(value)
                           for j, value in enumerate(values)],
                "context": [sum(w * value[x] for w, value in zip(weights, values) if w)
                            for x in range(self.value_head_size)]}

    # --- measures ---

    def contribution(self, head, context):
        """What a head's context adds to the output row."""
        begin, output = head * len(context), self.matrix.get("output")
        if output:
            return [dot(row[begin:begin + len(context)], context) for row in output.rows]
        return [0.0] * begin + context + [0.0] * (len(context) * (self.heads - head - 1))

    def measure(self, head, items, gradients):
        """One head's measures, michel with gradients; the share is left to who knows the others'."""
        rows = [row for item in items for row in item.seeing()]
        weights = [item.weights[head][i] for item, i, _ in rows]
        added = [self.contribution(head, item.contexts[head][i]) for item, i, _ in rows]
        measured = {
            "confidence": mean(map(max, weights)),
            "entropy": mean(entropy(line) / math.log(m) if m > 1 else 0.0
                            for line, (_, _, m) in zip(weights, rows)),
            "distance": mean(sum(w * abs(i - j) for j, w in enumerate(line))
                             for line, (_, i, _) in zip(weights, rows)),
            "norm": mean(map(norm, added)),
            "delta": quotient(norm(x for c in added for x in c),
                              norm(x for item, i, _ in rows for x in item.outputs[i]))}
        if self.sigmoid:
            measured["entropy"] = None
        if gradients:
            measured["michel"] = mean(abs(math.fsum(
                dot(c, item.gradients[i]) for c, (item, i, _) in zip(added, rows) if item is own))
                for own in items)
        return measured

    def measures(self, request, chosen=None):
        """What must be answered about the heads, but for the model's name."""
        alone = unbatched(request)
        items = self.items(batched(request), [chosen] if alone and chosen is not None else chosen)
        rows = [row for item in items for row in item.seeing()]
        gradients = request.get("gradients") is not None
        heads = [self.measure(head, items, gradients) for head in range(self.heads)]
        total = math.fsum(head["norm"] for head in heads)
        for head in heads:
            head["share"] = quotient(head["norm"], total)
        divergence = [[mean(jensen_shannon(item.weights[a][i], item.weights[b][i])
                            for item, i, _ in rows) for b in range(self.heads)]
                      for a in range(self.heads)]
        by = "michel" if gradients else "delta"
        return {"rows": len(rows), "heads": heads,
                "divergence": None if self.sigmoid else divergence,
                "ranking": sorted(range(self.heads), key=lambda head: heads[head][by])}


class Computed:
    """What became of an item."""

    def __init__(self, item):
        self.seen = [len(item.seen(i)) for i in range(len(item.queries))]
        self.gradients = item.gradients
        self.weights, self.segment_weights, self.pointers, self.contexts = [], [], [], []  # [h][q]
        self.outputs = []  # [q]

    def seeing(self):
        """The rows that see something: (this, row, how many keys)."""
        return [(self, i, m) for i, m in enumerate(self.seen) if m]


def average(heads):
    """Weights [h][q][k] as their mean over the heads."""
    return [[math.fsum(column) / len(heads) for column in zip(*rows)] for rows in zip(*heads)]


def mean(numbers):
    numbers = list(numbers)
    return quotient(math.fsum(numbers), len(numbers))


def quotient(a, b):
    return a / b if b else 0.0


def norm(x):
    return math.sqrt(math.fsum(a * a for a in x))


def entropy(weights):
    return -math.fsum(w * math.log(w) for w in weights if w > 0)


def jensen_shannon(x, y):
    """The divergence of two distributions, by the natural logarithm."""
    between = entropy([(a + b) / 2 for a, b in zip(x, y)])
    return between - (entropy(x) + entropy(y)) / 2
