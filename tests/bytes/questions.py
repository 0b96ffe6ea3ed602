"""questions: what two programs are asked, and the models they are asked about.

Everything is drawn with fixed seeds, so that the questions are the same every time.
"""
import glob
import json
import os
import random
import shutil
import struct
from types import SimpleNamespace
from typing import NamedTuple

import families
import forms
import test_attention
import test_bits
import test_openai
import test_text
import wholes
from covering import covering
from oracle import batched
from support import GOLDEN, JSON_TYPE, ROOT, TOY, randoms, read_golden
from test_combinations import MODELS, REQUESTS, Maker, has_meaning, make_layers, name_of

ST = "application/x-safetensors"
GOLDEN_MODELS = os.path.join(GOLDEN, "models")
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus")
PART = b"\x1e"  # what divides the inputs of the fuzz targets
# The models that the inputs of the fuzz targets are for, in the order of tests/fuzz/fuzz.c.
FUZZED = [
    {"random": {"seed": 1}, "query_size": 4, "heads": 2},
    {"projection": "none", "query_size": 2, "heads": 1},
    {"random": {"seed": 2}, "score": "additive", "query_size": 2, "key_size": 3, "value_size": 1,
     "heads": 2, "hidden": 4, "output_size": 3},
    {"random": {"seed": 3}, "query_size": 8, "heads": 4, "kv_heads": 2, "rope": {"base": 10000},
     "causal": True},
    {"random": {"seed": 4}, "weighting": "sigmoid", "query_size": 2, "heads": 2},
    {"random": {"seed": 5}, "score": "bilinear", "query_size": 2, "heads": 1}]
# Weights out of nothing, wider than those of the tests, and what no checkpoint brings along.
WIDE = {"wide": {"random": {"seed": 7}, "query_size": 160, "heads": 8, "kv_heads": 2, "bias": True},
        "turned": {"random": {"seed": 8}, "query_size": 96, "heads": 6, "rope": {"base": 500}},
        "placed": {"random": {"seed": 9}, "query_size": 64, "heads": 4, "relative_bias": {
            "max_distance": 20, "bidirectional": True, "buckets": 8}},
        "slices": {"random": {"seed": 10}, "query_size": 64, "heads": 4, "projection": "grouped"}}


class Question(NamedTuple):
    """A request, or, where the method is "RUN", the words of a command line and its input."""
    of: str  # the set that it belongs to
    name: str
    method: str
    path: str
    headers: dict
    body: bytes


# --- the models -----------------------------------------------------------------------------------

def make_models(folder):
    """Writes the checkpoints and returns name -> (definition, its sizes)."""
    models = {}
    for layers in (make_layers(), test_attention.Requests.make_layers(), test_bits.LAYERS):
        for name, layer in layers.items():
            models[name] = layer.definition(folder, name), layer
    for family in families.FAMILIES:
        file, served = families.make(family)
        own = os.path.join(folder, family)
        os.mkdir(own)
        path = f"{family}/{families.write_single(own, 'model', file)}"
        with open(os.path.join(own, "config.json"), "w") as out:
            json.dump(families.CONFIGS.get(family, {}), out)
        for label, layer in served.items():
            models[f"{family}.{label}"] = (dict(layer.definition, checkpoint=path),
                                           SimpleNamespace(**layer.module.sizes()))
    npz = families.write_npz(folder, "archive", families.make("plain")[0], compressed=True)
    shards = families.write_sharded(folder, "shards", families.make("bert", "BF16")[0])
    for path, like in ((npz, "plain.all"), (shards, "bert.layer11")):
        models[path.split("/")[0]] = dict(models[like][0], checkpoint=path), models[like][1]
    random_ones = dict(WIDE, **{f"fuzzed{n}": model for n, model in enumerate(FUZZED)})
    for name, definition in random_ones.items():
        models[name] = definition, drawn_sizes(**definition)
    for path in golden_paths():
        name = os.path.basename(path).split(".")[0]
        definition, tensors, _, _ = read_golden(path)
        if tensors:
            definition["checkpoint"] = shutil.copy(path, folder).rpartition("/")[2]
        models["golden-" + name] = definition, None
    for name, definition in wholes.MODELS.items():
        models[name] = definition, None
    for name in sorted(os.listdir(GOLDEN_MODELS)):
        place = f"golden-models/{name}"
        shutil.copytree(os.path.join(GOLDEN_MODELS, name), os.path.join(folder, place),
                        ignore=shutil.ignore_patterns("cases.json"))
        models["whole-" + name] = {"transformer": place}, None
    return models


def drawn_sizes(query_size, heads, key_size=None, value_size=None, output_size=None, **_):
    return SimpleNamespace(query_size=query_size, heads=heads, key_size=key_size or query_size,
                           value_size=value_size or query_size,
                           output_size=output_size or query_size)


def golden_paths():
    return sorted(glob.glob(os.path.join(GOLDEN, "*.safetensors")))


# --- a request in every form ----------------------------------------------------------------------

def is_even(x):
    """Is a nested list of one shape?"""
    return not isinstance(x, list) or (
        all(map(is_even, x)) and len({str(forms.shape_of(part)) for part in x}) < 2)


def posts(of, name, model, request, rng, path="attention"):
    """The request in every form that has it, in those of the answer."""
    path = f"/v1/models/{model}/{path}"
    floats = rng.choice(("F32", "F32", "F64", "F16", "BF16"))

    def post(form, body, path=path, **headers):
        body = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        return Question(of, f"{name} {form}", "POST", path,
                        {n.replace("_", "-"): value for n, value in headers.items()}, body)

    yield post("json", request, **JSON_TYPE)
    if not path.endswith("heads"):
        yield post("json to safetensors", request, Accept=ST, **JSON_TYPE)
    yield post("base64", dict(forms.base64_fields(request, floats), encoding_format="base64"))
    said = {field: value for field, value in request.items() if value is not None}
    if not all(map(is_even, said.values())):
        return
    body = forms.safetensors(said, floats, rng.choice(("I32", "I64")), rng.choice(("BOOL", "U8")))
    yield post("safetensors", body, Content_Type=ST)
    yield post("safetensors to json", body, Content_Type=ST, Accept="application/json")
    if path.endswith("heads"):
        return
    spoken = {field: value for field, value in batched(said).items()
              if field in forms.V2_TYPES or field in forms.V2_PARAMETERS}
    outputs = ["outputs", "attention_weights"] if said.get("return_attention") else None
    path = f"/v2/models/{model}/infer"
    yield post("v2", forms.v2(spoken, outputs=outputs, nested=rng.random() < 0.5, id=name)[0], path)
    body, length = forms.v2(spoken, [f for f in spoken if f in forms.V2_TYPES], outputs,
                            outputs or ["outputs"], integers=rng.choice(("INT32", "INT64")))
    yield post("v2 binary", body, path, Inference_Header_Content_Length=str(length))


# --- the requests ---------------------------------------------------------------------------------

class Drawn(Maker):
    """A request of any kind. Some have no meaning, and some lack a field that the model needs."""

    def __init__(self, layer, weighting, rng):
        row = {}
        while not row or not has_meaning(row) and rng.random() < 0.95:
            row = {factor: rng.choice(levels) for factor, levels in REQUESTS.items()}
            row.update(weighting=weighting, gradients=rng.random() < 0.3)
        super().__init__(layer, row, rng.random())
        form, long = row["form"], rng.random() < 0.06
        items = {"batched": 2, "long": 1, "unbatched": 1}.get(form, rng.randrange(5))
        few = range(0 if form == "ragged" else 1, 10)
        self.shapes = [(rng.choice((17, 40) if long else few),
                        rng.choice((70, 130) if long else few)) for _ in range(items)]
        if form != "ragged":
            self.shapes = self.shapes[:1] * items
        own = layer.query_size == layer.key_size or rng.random() < 0.02
        self.own_keys = own and rng.random() < 0.2
        self.own_values = self.own_keys or rng.random() < (
            0.2 if layer.key_size == layer.value_size else 0.02)
        if self.own_keys:
            self.shapes = [(q, q) for q, _ in self.shapes]
        self.qs, self.ks = [q for q, _ in self.shapes], [k for _, k in self.shapes]

    def request(self):
        request, rng = super().request(), self.rng
        for field, left_out in (("keys", self.own_keys), ("values", self.own_values)):
            if left_out:
                del request[field]
        for field in ("seed", "select", "empty_rows", "return_pointers", "return_attention"):
            if rng.random() < 0.2:
                del request[field]
        digits, odd = rng.choice((None, None, 0, 1, 3)), rng.random() < 0.1
        return {field: self.told(value, digits, odd) if field in forms.FLOATS else value
                for field, value in request.items()}

    def told(self, x, digits, odd):
        """The numbers shorter, and some of them as far from 1 as half precision goes."""
        if isinstance(x, list):
            return [self.told(part, digits, odd) for part in x]
        if odd and self.rng.random() < 0.1:
            return self.rng.choice((0, -0.0, 6e4, 6e-8, 1e-42, -1, 7))
        return x if digits is None else round(x, digits) if digits else round(x)


NONSENSE = (None, True, -1, 9, 0.5, 2 ** 31, 2 ** 53, 3e38, 1e39, "x", "end", [], [[]], [[[]]], {},
            [1], [[0.5]], [[[3e38]]], {"dtype": "F32"})


def spoiled(request, rng):
    """The request with something wrong in it, in most cases."""
    request = json.loads(json.dumps(request))
    field = rng.choice(list(request) + ["mask", "window", "causal_offset", "valid_lens", "keyz"])
    kind, at = rng.randrange(5), request.get(field)
    if kind == 0 or not isinstance(at, list):
        request[field] = rng.choice(NONSENSE)
    elif kind == 1:
        del request[field]
    else:  # some list within gets longer, shorter, or another end
        while at and isinstance(at[0], list) and rng.random() < 0.7:
            at = rng.choice(at)
        at[len(at) - 1:] = ([], at[-1:] * 2, [rng.choice(NONSENSE)])[kind - 2]
    return request


def bitten(body, rng):
    """The body with a byte lost, changed or added, or cut short."""
    at, kind = rng.randrange(len(body)), rng.randrange(4)
    if rng.random() < 0.6:  # among the names and brackets, not the numbers
        at = rng.choice([n for n, byte in enumerate(body[:20000]) if byte in b'{}[]":,abelnqrstuv'])
    new = b"" if kind == 0 else bytes([rng.choice(b'{}[],:"0-9e. x\\\0\xff')])
    return body[:at] + new + (body[at + (kind < 2):] if kind < 3 else b"")


def golden():
    for path in golden_paths():
        name = "golden-" + os.path.basename(path).split(".")[0]
        request = read_golden(path)[2]
        yield from posts("golden", name, name, request, random.Random(name))
        yield from posts("golden", name + " heads", name, request, random.Random(name), "heads")


def table(models):
    for n, row in enumerate(covering({**MODELS, **REQUESTS}, has_meaning)):
        request = Maker(models[name_of(row)][1], row, n).request()
        yield from posts("table", str(n), name_of(row), request, random.Random(n))
    kinds = {"model": list(make_layers()), **REQUESTS, "gradients": [False, True]}
    for n, row in enumerate(covering(kinds, has_meaning, strength=2)):
        request = Maker(models[row["model"]][1], row, n).request()
        yield from posts("table", f"{n} heads", row["model"], request, random.Random(n), "heads")


def drawn(models, count):
    """Random requests to models of every kind, and the same spoiled."""
    sized = [name for name, (_, sizes) in models.items() if sizes]
    for n in range(count):
        rng = random.Random(f"drawn {n}")
        model = sized[n % len(sized)] if n < len(sized) else rng.choice(sized)
        definition, sizes = models[model]
        request = Drawn(sizes, definition.get("weighting"), rng).request()
        path = "heads" if "gradients" in request or rng.random() < 0.1 else "attention"
        asked = list(posts("random", str(n), model, request, rng, path))
        yield from asked
        if len(asked[0].body) > 20000:
            continue
        for q in rng.sample(asked, 2):
            yield q._replace(of="wrong", name=q.name + " bitten", body=bitten(q.body, rng))
        for more in range(2):
            yield asked[0]._replace(of="wrong", name=f"{n} spoiled {more}",
                                    body=json.dumps(spoiled(request, rng)).encode())


# --- whole models ---------------------------------------------------------------------------------

def encoded(of, name, model, asked):
    for post in wholes.posts(model, asked):
        yield Question(of, f"{name} {post.form}", "POST", *post[1:])


def golden_wholes():
    """Each published model's case, with everything that it shows."""
    for name in sorted(os.listdir(GOLDEN_MODELS)):
        with open(os.path.join(GOLDEN_MODELS, name, "cases.json")) as file:
            case = json.load(file)[0]
        asked = {"tokens": case["tokens"]} if "tokens" in case else \
            {"embeddings": case["input_hidden_states"]}
        if "token_types" in case:
            asked["token_types"] = case["token_types"]
        asked.update(pool="none", return_hidden="all", return_attention=True)
        yield from encoded("whole", name, f"whole-{name}", asked)


def drawn_wholes(count):
    """Random requests to whole models, the same spoiled, and one attention of each alone."""
    for n in range(count):
        rng = random.Random(f"whole {n}")
        model = list(wholes.MODELS)[n % len(wholes.MODELS)]
        asked = wholes.request(model, rng)
        posts_of = list(encoded("whole", f"{n} {model}", model, asked))
        yield from posts_of
        q = rng.choice(posts_of)
        yield q._replace(name=q.name + " bitten", body=bitten(q.body, rng))
        yield posts_of[0]._replace(name=f"{n} {model} spoiled",
                                   body=json.dumps(spoiled(asked, rng)).encode())
    for model, width in wholes.WIDTHS.items():
        body = {"queries": randoms(random.Random(model), 2, 3, width), "return_attention": True}
        for layer in ("encoder.1.self", "encoder.9.self"):
            for what in ("attention", "heads"):
                yield Question("whole", f"{model} {layer} {what}", "POST",
                               f"/v1/models/{model}/layers/{layer}/{what}", JSON_TYPE,
                               json.dumps(body).encode())


# --- what the fuzz targets have found -------------------------------------------------------------

def corpus(target):
    for path in sorted(glob.glob(os.path.join(CORPUS, "fuzz_" + target, "*"))):
        with open(path, "rb") as file:
            yield os.path.basename(path)[:10], file.read()


def framed(data):
    header, _, rest = data.partition(PART)
    return struct.pack("<Q", len(header)) + header + rest


def found():
    """Their inputs as requests, each to the model that it is for."""
    for target in ("json", "exchange", "safetensors", "v2"):
        for name, data in corpus(target):
            if len(data) < 3:
                continue
            how, model, body = data[0], data[1] % len(FUZZED), data[2:]
            form, path, headers = {"json": "j", "v2": "v"}.get(target, "s"), "attention", {}
            if target == "json" and chr(how) not in "bh":
                continue
            if target == "exchange":
                form, model = chr(how).lower(), (data[1] >> 1) % len(FUZZED)
                path = "heads" if chr(how).isupper() else path
                headers = {"Accept": ST} if data[1] & 1 else {}
            elif chr(how) == "h" or target == "safetensors" and how & 2:
                path = "heads"
            if form == "v":
                text, _, rest = body.partition(PART)
                if how & 1:
                    headers["Inference-Header-Content-Length"] = str(len(text) + (how >> 1 & 1))
                path, body = "infer", text + rest
            elif form == "s":
                body = framed(body) if target == "exchange" or how & 1 else body
            headers["Content-Type"] = ST if form == "s" else "application/json"
            version = "v2" if form == "v" else "v1"
            yield Question("corpus", f"{target} {name}", "POST",
                           f"/{version}/models/fuzzed{model}/{path}", headers, body)


# --- what is no attention -------------------------------------------------------------------------

def surface(models):
    """The texts of the other paths, and what a path or a head gets that is refused."""
    paths = ["/", "/openapi.json", "/healthz", "/readyz", "/v1/models", "/v1/models/nobody", "/v2",
             "/v2/health/live", "/v2/health/ready", "/v2/models", "/nowhere", "/v1/attention",
             "/metrics"]
    for name in models:
        paths += [f"/v1/models/{name}", f"/v2/models/{name}", f"/v2/models/{name}/ready"]
    body, here = json.dumps(TOY).encode(), "/v1/models/fuzzed0"
    asked = [("GET", path, {}, b"") for path in paths]
    asked += [("HEAD", path, {}, b"") for path in paths[:4]]
    asked += [(verb, path, {}, b"") for verb in ("PUT", "DELETE", "OPTIONS")
              for path in ("/", "/v1/models", here + "/heads", "/v2", "/nowhere")]
    asked += [("GET", "/", headers, b"")
              for headers in ({"Accept-Encoding": "gzip"}, {"If-None-Match": "*"})]
    asked += [("POST", path, JSON_TYPE, body) for path in (
        here, "/v1/heads", "/v1/models/nobody/attention", "/v2/models/nobody/infer", "/metrics",
        here + "/attention?x=y", *(f"/v2/models/fuzzed0/versions/{n}/infer" for n in (1, 2)))]
    asked += [("POST", here + "/attention", headers, body) for headers in (
        {}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=utf-8"},
        {"Accept": "text/html"}, {"Accept": ST + ", */*;q=0.1"}, {"Content-Encoding": "gzip"},
        {"Accept": "application/octet-stream"}, {"X-Timeout-Ms": "soon"},
        {"Origin": "https://a.example"})]
    asked += [("POST", here + "/attention", JSON_TYPE, json.dumps(large).encode()) for large in (
        {"queries": [[]] * 2001}, {"queries": [[[0] * 4] * 900]},
        {"queries": [[[0] * 4] * 800], "return_attention": True})]
    for n, (method, path, headers, sent) in enumerate(asked):
        yield Question("surface", str(n), method, path, headers, sent)


# --- texts ----------------------------------------------------------------------------------------

def text_models(folder):
    """Writes their tokenizers into `folder`; returns the definitions."""
    os.makedirs(os.path.join(folder, "words"))
    with open(os.path.join(folder, "words", "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(test_openai.WORDS) + "\n")
    os.makedirs(os.path.join(folder, "letters"))
    with open(os.path.join(folder, "letters", "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(test_text.LETTERS, file)
    encoder = dict(test_text.RANDOM, **test_text.SIZES, kind="encoder", tokenizer="words")
    letters = dict(test_text.RANDOM, **test_text.SIZES, tokenizer="letters")
    return {"text-vectors": dict(encoder, pool="cls"), "text-classes": dict(encoder, labels=["no", "yes", "ä"]),
            "text-ranks": dict(encoder, classes=1), "text-gpt": dict(letters, kind="decoder"),
            "text-pair": dict(letters, kind="seq2seq")}


def texts():
    """What becomes of texts, in our words and in those of other services, but answers that have names of their own."""
    words = ["the cat", "", "a mat . É", "the [SEP] dog\n\"", "cat " * 40]
    letters = ["hello world", "é\ufffd\x00", "w" * 50, " wor"]
    of = "/v1/models/text-{}/{}".format
    asked = [(of(name, "tokenize"), {"text": text, "special_tokens": special, **more})
             for name, some in (("vectors", words), ("gpt", letters)) for text in (some, *some)
             for special in (True, False) for more in ({}, {"truncate": 3})]
    asked += [(of("gpt", "detokenize"), {"tokens": [[1, 2, 19], [8, 9, 8]], "special_tokens": special}) for special in (True, False)]
    for text in (words[:1], words[0], [words[:2], words[2:4]]):
        shown = {"text": text, "return_tokens": True, "truncate": True}
        asked += [(of("vectors", "encode"), dict(shown, pool=pool)) for pool in ("none", "mean")]
        asked += [(of("classes", "classify"), dict(shown, function=name)) for name in ("softmax", "sigmoid", "none")]
    for text in letters[:1] + letters[2:]:
        for more in ({}, {"temperature": 2, "returns": 3}, {"stop": ["l", "o w"]}, {"beams": 3}, {"stream": True, "temperature": 3},
                     {"return_tokens": True}, {"return_top": 2, "stream": True, "stop": "e"}):
            asked += [(of(name, "generate"), dict({"text": text, "max_tokens": 12, "seed": 5}, **more)) for name in ("gpt", "pair")]
        asked += [(of("gpt", "score"), {"text": text, "targets": [3, 4]})]
    asked += [("/v1/embeddings", {"model": "text-" + name, "input": given, "encoding_format": form}) for name in ("vectors", "gpt")
              for given in ("w", ["w", "hello"], [1, 2], [[1], [2, 3]]) for form in ("float", "base64")]
    asked += [("/v1/rerank", {"model": "text-" + name, "query": "the w", "documents": words, **more}) for name in ("ranks", "vectors", "classes")
              for more in ({}, {"top_n": 2}, {"return_documents": False}, {"truncate": False})]
    asked += [("/v1/completions", request) for request in ({}, {"prompt": 1}, {"prompt": "a", "model": "nobody"})]
    for n, (path, request) in enumerate(asked):
        yield Question("texts", str(n), "POST", path, JSON_TYPE, json.dumps(request).encode())


def run_of(name, *words, body=b""):
    return Question("programs", name, "RUN", " ".join(words), {}, body)


def programs(folder):
    """Command lines, whose files are written into `folder`."""
    for words in ("--help", "--version", "help", "nonsense", "check --confg x", "run nobody",
                  "check --workers many", "check --config attend.json", "check --config none.json"):
        yield run_of(words, *words.split())
    for words in ("fuzzed0", "fuzzed0 --heads", "fuzzed0 --binary", "golden-book-additive"):
        yield run_of("run " + words, "run", *words.split(), "--config", "attend.json",
                     body=json.dumps(TOY).encode())
    yield run_of("run whole --encode", *"run whole --encode --config attend.json".split(),
                 body=b'{"tokens": [[1, 2, 3], [4]], "return_attention": "average"}')
    files = [os.path.relpath(path, folder)
             for pattern in ("*/*.safetensors", "*.npz", "*/*.index.json")
             for path in sorted(glob.glob(os.path.join(folder, pattern)))]
    files += keep(folder, "checkpoint",
                  lambda data: framed(data[1:]) if data[:1] == b"s" else data[1:])
    for file in files:
        yield run_of("inspect " + file, "inspect", file)
        yield run_of("models of " + file, "inspect", file, "--models")
    for file in keep(folder, "config", lambda data: data.partition(PART)[2] or data):
        yield run_of("check " + file, "check", "--config", file)


def keep(folder, target, body):
    """Writes the inputs of a fuzz target as files and returns their names."""
    names = []
    for name, data in corpus(target):
        names.append(f"{target}-{name}")
        with open(os.path.join(folder, names[-1]), "wb") as out:
            out.write(body(data))
    return names


def make(folder, count=500):
    """Writes what the models need into `folder`; returns their definitions and the questions."""
    models = make_models(folder)
    questions = [*golden(), *table(models), *drawn(models, count), *golden_wholes(),
                 *drawn_wholes(min(count, 60)), *found(), *surface(models), *texts(), *programs(folder)]
    return {**{name: definition for name, (definition, _) in models.items()}, **text_models(folder)}, questions
