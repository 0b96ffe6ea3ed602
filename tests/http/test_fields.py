"""test_fields: the fields that a path accepts are those of its schema in /openapi.json, of the tables of fields and options,
and of the reference page."""
import json
import math
import os
import re
import unittest

from support import ROOT, Server, ServerCase


def read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return file.read()


OPTIONS = {word: (kind, *(eval(n, {"INFINITY": math.inf, "STACK_BEAMS_MAX": 64}) for n in (least, most)))
           for word, kind, least, most in re.findall(r"OPTION\(\w+, (\w+), WHOLE_(\w+), ([^,]+), ([^)]+)\)",
                                                     read("config", "describe", "whole_choice.h"))}
SEARCH = ("beams", "length_penalty", "early_stopping")  # completions do not have these
# The kinds of requests that a schema is for.
KINDS = {"EncodeRequest": ("ENCODE",), "ClassifyRequest": ("CLASSIFY",), "ClassifyTokensRequest": ("CLASSIFY_TOKENS",), "QuestionRequest": ("QUESTION",),
         "ScoreRequest": ("SCORE", "SCORE_PAIR"),
         "GenerateRequest": ("GENERATE", "GENERATE_PAIR"),
         "HeadImportanceRequest": ("HEADS_ENCODE", "HEADS_SCORE", "HEADS_SCORE_PAIR")}


MODELS = ("server", "model", "fields", "stack_fields")
LAYERS = ("server", "attention", "attention_fields")


def sets_of_requests(folder, *name):
    """{name: bits}: the sets of requests of a table's .c file."""
    (body,) = re.findall(r"enum \{\s*(OF_\w+ = .*?)\};", read(folder, *name[:-1], name[-1] + ".c"), re.S)
    sets = {}
    for name, value in re.findall(r"(OF_\w+) = ([^,]+),", re.sub(r"/\*.*?\*/", "", body + ",", flags=re.S)):
        sets[name] = eval(value.replace("\n", " "), {}, sets)
    return sets


def fields(folder, *name):
    """{name: bits}: the rows of a table."""
    sets, found = sets_of_requests(folder, *name), {}
    for row in re.findall(r"^[A-Z]+_\w+\((.*?)\)(?: /\*[^\n]*)?$", read(folder, *name[:-1], name[-1] + ".def"), re.M | re.S):
        if row in ("WHOLE_SEARCH", "WHOLE_SAMPLING"):
            found.update((word, sets["OF_SEQUENCES"]) for word in OPTIONS if (word in SEARCH) == (row == "WHOLE_SEARCH"))
        else:
            _, name, of = re.match(r"(\w+), (\w+), ([A-Z_| 0-9]+)", row).groups()
            found[name] = eval(of, {}, sets) or ~0
    return found


def keywords_of(kind, least, most):
    """What a schema says of the range of an option."""
    if kind == "EARLY":
        return {"enum": [False, True, "never"]}
    low = {} if least == -math.inf else {"exclusiveMinimum" if kind == "ABOVE" else "minimum": least}
    return dict(low, **({} if most == math.inf else {"maximum": most}), type="integer" if kind == "COUNT" else "number")


# An error about the field itself: it is unknown, or belongs to another path, or has another name here.
FOREIGN = re.compile(r"unknown field|supported by|calls it|^use |: use |^name the model|named in|"
                     r"returns only a number|^the model|^set \"temp|describes? ")
SERVED = ("minilm", "sentiment", "tagger", "reader", "bert", "gpt2", "t5-small", "layer")
NO_VALUE = {"no": ["value"]}


class Fields(ServerCase):
    maxDiff = None

    @classmethod
    def start(cls):
        config = json.loads(read("tests", "example", "tasks.json"))
        del config["default_model"]
        for model in config["models"].values():
            for key in ("transformer", "tokenizer"):
                if isinstance(model.get(key), str):
                    model[key] = os.path.join(ROOT, "tests/example", model[key])
        config["models"]["layer"] = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
        server = Server(config)
        cls.document = server.get("/openapi.json").json
        return server

    def resolved(self, part):
        while "$ref" in part:
            target = self.document
            for word in part["$ref"].split("/")[1:]:
                target = target[word]
            part = target
        return part

    def properties(self, schema):
        """{name: schema}, with those of all schemas that it is made of."""
        schema = self.resolved(schema)
        found = dict(schema.get("properties", {}))
        for word in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(word, []):
                found.update(self.properties(part))
        return found

    def properties_of(self, name):
        return self.properties(self.document["components"]["schemas"][name])

    def test_each_request_has_its_fields(self):
        sets, known = sets_of_requests(*MODELS), fields(*MODELS)
        self.assertGreater(len(known), 40)
        for schema, kinds in KINDS.items():
            bits = sum(sets["OF_" + kind] for kind in kinds)
            self.assertEqual(set(self.properties_of(schema)), {name for name, of in known.items() if of & bits}, schema)

    def test_each_request_to_a_layer_has_its_fields(self):
        sets, known = sets_of_requests(*LAYERS), fields(*LAYERS)
        for schema, bit in (("AttentionRequest", sets["OF_OUTPUTS"]), ("HeadsRequest", sets["OF_HEADS"])):
            self.assertEqual(set(self.properties_of(schema)), {name for name, of in known.items() if of & bit}, schema)

    def test_each_option_has_its_range(self):
        self.assertEqual(len(OPTIONS), 12)
        described = self.properties_of("TransformerModel")["generate"]
        for word, row in OPTIONS.items():
            keywords = keywords_of(*row)
            given = [self.properties_of("GenerateRequest")[word]]
            if word not in SEARCH:
                for request in "CompletionsRequest", "ChatRequest":
                    completed = self.resolved(self.properties_of(request)[word])
                    self.assertEqual(completed["type"], [keywords["type"], "null"], word)
                    given.append(dict(completed, type=keywords["type"]))
            for schema in given:
                self.assertEqual({k: v for k, v in schema.items() if k not in ("description", "default")}, keywords, word)
            self.assertIn(word, described["required"])
            self.assertEqual(described["properties"][word].get("enum"), keywords.get("enum"), word)

    def test_the_reference_has_every_field(self):
        page = read("server", "docs", "api.md")
        for table in (MODELS, LAYERS):
            for name, of in fields(*table).items():
                if of != sets_of_requests(*table).get("OF_V2"):
                    self.assertIn(f"`{name}`", page)

    def requests(self):
        """(path, the fields of its schema) of each POST with a JSON object, except those of the Open Inference Protocol and
        of a shared path."""
        for path, operations in self.document["paths"].items():
            if path.startswith("/v2/models") or path == "/" or "post" not in operations:
                continue
            body = self.resolved(operations["post"]["requestBody"])
            yield path, sorted(self.properties(body["content"]["application/json"]["schema"]))

    def accepts(self, path, name):
        """Does the path, with any model that has it, reject the value and not the field?"""
        for model in SERVED if "{model}" in path else (None,):
            layer = "decoder.0.self" if model == "gpt2" else "encoder.0.self"
            answer = self.server.post(path.replace("{model}", model or "").replace("{layer}", layer), {name: NO_VALUE})
            if answer.status == 404:
                continue
            self.assertEqual(answer.status, 400, (path, name, model))
            if not FOREIGN.search(self.message(answer)):
                return True
        return False

    def message(self, answer):
        said = answer.json
        return said.get("detail") or (said["error"] if isinstance(said["error"], str) else said["error"]["message"])

    def test_paths_accept_the_fields_of_their_schemas(self):
        """Each field of any request is sent to each path with a value that no field accepts: the server has to reject the
        value where the schema has the field, and the field itself everywhere else."""
        reference = read("server", "docs", "api.md") + read("server", "docs", "chat.md")
        requests = dict(self.requests())
        self.assertGreater(len(requests), 15)
        names = sorted(set().union(*requests.values()))
        for path, fields in requests.items():
            with self.subTest(path):
                self.assertEqual([name for name in names if self.accepts(path, name)], fields)
                for name in fields:
                    self.assertTrue(re.search(rf'[`"]{name}[`"]', reference), f"no page has {name}")


if __name__ == "__main__":
    unittest.main()
