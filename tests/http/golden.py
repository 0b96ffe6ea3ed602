"""golden: the whole models of tests/golden/models, and what published code answers of them."""
import json
import os

from support import ROOT, Server

MODELS = os.path.join(ROOT, "tests", "golden", "models")


def definition(name):
    return {"transformer": os.path.join(MODELS, name)}


def cases(kind, source=None):
    """The cases of a kind, each with its model's name: all, or those alone that have a source, or none."""
    for name in sorted(os.listdir(MODELS)):
        with open(os.path.join(MODELS, name, "cases.json")) as file:
            for case in json.load(file):
                if case["kind"] == kind and source in (None, "source_tokens" in case):
                    yield name, case


def serve(found):
    """A server with the models of these cases."""
    return Server({"models": {name: definition(name) for name, _ in found}})
