"""test_fields: the tables of fields and of options of generation, against /openapi.json and the reference page."""
import json
import math
import os
import re
import unittest

from support import ROOT, Case


def read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return file.read()


SCHEMAS = json.loads(read("server", "describe", "openapi.json"))["components"]["schemas"]
OPTIONS = {word: (kind, *(eval(n, {"INFINITY": math.inf, "STACK_BEAMS_MAX": 64}) for n in (least, most)))
           for word, kind, least, most in re.findall(r"OPTION\(\w+, (\w+), WHOLE_(\w+), ([^,]+), ([^)]+)\)",
                                                     read("config", "describe", "whole_choice.h"))}
SEARCH = ("beams", "length_penalty", "early_stopping")  # completions do not have these
# The kinds of requests that a schema is for.
KINDS = {"EncodeRequest": ("ENCODE",), "ClassifyRequest": ("CLASSIFY",), "ScoreRequest": ("SCORE", "SCORE_PAIR"),
         "GenerateRequest": ("GENERATE", "GENERATE_PAIR"),
         "HeadImportanceRequest": ("HEADS_ENCODE", "HEADS_SCORE", "HEADS_SCORE_PAIR")}


def sets_of_requests():
    """{name: bits}: the sets of requests of stack_fields.c."""
    (body,) = re.findall(r"enum \{\s*(OF_ENCODE = .*?)\n\};", read("server", "model", "fields", "stack_fields.c"), re.S)
    sets = {}
    for name, value in re.findall(r"(OF_\w+) = ([^,]+),", re.sub(r"/\*.*?\*/", "", body, flags=re.S)):
        sets[name] = eval(value.replace("\n", " "), {}, sets)
    return sets


def fields():
    """{name: bits}: the rows of stack_fields.def."""
    sets, found = sets_of_requests(), {}
    for row in re.findall(r"^STACK_\w+\((.*?)\)(?: /\*[^\n]*)?$", read("server", "model", "fields", "stack_fields.def"), re.M | re.S):
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


class Fields(Case):
    def test_each_request_has_its_fields(self):
        sets, known = sets_of_requests(), fields()
        self.assertGreater(len(known), 40)
        for schema, kinds in KINDS.items():
            bits = sum(sets["OF_" + kind] for kind in kinds)
            self.assertEqual(set(SCHEMAS[schema]["properties"]), {name for name, of in known.items() if of & bits}, schema)

    def test_each_option_has_its_range(self):
        self.assertEqual(len(OPTIONS), 12)
        described = SCHEMAS["TransformerModel"]["properties"]["generate"]
        for word, row in OPTIONS.items():
            keywords = keywords_of(*row)
            given = [SCHEMAS["GenerateRequest"]["properties"][word]]
            if word not in SEARCH:
                completed = dict(SCHEMAS["CompletionsRequest"]["properties"][word])
                self.assertEqual(completed["type"], [keywords["type"], "null"], word)
                given.append(dict(completed, type=keywords["type"]))
            for schema in given:
                self.assertEqual({k: v for k, v in schema.items() if k not in ("description", "default")}, keywords, word)
            self.assertIn(word, described["required"])
            self.assertEqual(described["properties"][word].get("enum"), keywords.get("enum"), word)

    def test_the_reference_has_every_field(self):
        page = read("server", "docs", "api.md")
        for name, of in fields().items():
            if of != sets_of_requests()["OF_V2"]:
                self.assertIn(f"`{name}`", page)


if __name__ == "__main__":
    unittest.main()
