"""needs: skips tests whose tools this machine lacks, and tells which target of make installs them.

A tier of tests has tools of its own: those of `make deps-TIER`. A tool is a program, a module of Python's, or, written
npm:NAME, a package of npm's in build/npm/TIER."""
import importlib.util
import os
import shutil
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Modules of Python's that tests import, and the tier that they belong to.
MODULES = {"numpy": "test", "aiohttp": "test", "jsonschema": "test", "jinja2": "test", "yaml": "deploy"}


def npm(tier):
    """The folder of the tier's packages from npm."""
    return os.path.join(ROOT, "build", "npm", tier, "node_modules")


def is_here(tier, tool):
    if tool.startswith("npm:"):
        return os.path.isdir(os.path.join(npm(tier), tool[len("npm:"):]))
    return bool(importlib.util.find_spec(tool) if tool in MODULES else shutil.which(tool))


def reason(tier, *tools):
    """What a skipped test says; empty where nothing is missing."""
    missing = [tool for tool in tools if not is_here(tier, tool)]
    return f"needs {', '.join(missing)} (make deps-{tier})" if missing else ""


def needs(tier, *tools):
    """Decorates a test, or a class of tests, that these tools of the tier run."""
    said = reason(tier, *tools)
    return unittest.skipIf(said, said)
