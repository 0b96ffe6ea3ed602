"""tap: runs a test module and prints TAP; the exit status tells whether all is well.

    tests/http/tap.py test_cors                        of this folder, or a class or test of it: test_cors.Cors
    tests/http/tap.py tests/deploy/test_image.py       of any folder; it imports what lies here, too
"""
import importlib
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from needs import MODULES, reason  # noqa


class TapResult(unittest.TestResult):
    """A line per test; what failed, or took long, as comments."""

    def __init__(self):
        super().__init__()
        self.number = 0
        self.broken = {}
        self.skips = {}

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.report(test, self.broken.pop(test.id(), []))

    def report(self, test, broken):
        self.number += 1
        skip = self.skips.pop(test.id(), None)
        seconds = time.monotonic() - getattr(self, "begun", time.monotonic())
        name = test.id().split(".", 1)[-1]
        print(f"{'not ok' if broken else 'ok'} {self.number} - {name}"
              f"{f' # SKIP {skip}' if skip else f' # {seconds:.1f} s' if seconds > 2 else ''}")
        for text in broken[:8]:
            print("\n".join("# " + line[:400] for line in text.rstrip().splitlines()))
        if len(broken) > 8:
            print(f"# and {len(broken) - 8} more like this")
        sys.stdout.flush()

    def note(self, test, error):
        owner = getattr(test, "test_case", test)
        text = self._exc_info_to_string(error, owner)
        if owner is not test:
            text = f"{test._subDescription()}\n{text}"
        if not isinstance(owner, unittest.TestCase):  # setUpClass or setUpModule
            self.report(owner, [text])
        self.broken.setdefault(owner.id(), []).append(text)

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.skips[test.id()] = reason

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(subtest, err)


def skipped(name, said):
    """A test in place of a module that cannot be imported."""
    return type(name, (unittest.TestCase,), {"all": unittest.skip(said)(lambda self: None)})("all")


def load(name):
    """The tests of a name, or of a file's path."""
    if name.endswith(".py"):
        folder, name = os.path.split(os.path.abspath(name))
        name = name[:-len(".py")]
        sys.path[:0] = [folder] if folder != HERE else []
    try:
        importlib.import_module(name.split(".")[0])
    except ModuleNotFoundError as error:
        if error.name not in MODULES:
            raise
        return skipped(name, reason(MODULES[error.name], error.name))
    return unittest.defaultTestLoader.loadTestsFromName(name)


def main(names):
    suite = unittest.TestSuite(load(name) for name in names)
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    return 0 if result.wasSuccessful() and result.number else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
