"""tap: runs one test module of this folder and prints TAP; the exit status tells whether all is well."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


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


def main(names):
    suite = unittest.TestSuite()
    for name in names:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromName(name))
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
