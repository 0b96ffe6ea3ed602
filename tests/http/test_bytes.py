"""test_bytes: tests/bytes finds nothing between a build and itself, and what another changes."""
import os
import re
import shutil
import struct
import sys
import tempfile
import unittest

from support import BIN, HERE, Case

sys.path.append(os.path.join(os.path.dirname(HERE), "bytes"))
from differences import differences, place  # noqa: E402  (after the path is known)
from recording import Recording  # noqa: E402

WAY = "portable openblas"  # on every processor
KEPT = 12  # of each set


class Bytes(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        cls.before = Recording.of_questions(KEPT)
        cls.sets = list(dict.fromkeys(question.of for question in cls.before.asked))
        cls.before.asked = [question for name in cls.sets for question in
                            [q for q in cls.before.asked if q.of == name][:KEPT]]
        cls.before.answers[WAY] = cls.before.ask(BIN, WAY)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def found(self, before, program):
        """What differs where a program is asked."""
        after = before.unanswered()
        after.answers[WAY] = after.ask(program, WAY)
        return [(f"{q.of} {q.name}", place(old, new))
                for _, q, old, new in differences(before, after)]

    def test_a_build_beside_itself(self):
        self.assertEqual(self.sets, ["golden", "table", "random", "wrong", "whole", "corpus", "surface",
                                     "texts", "programs"])
        self.assertNotIn(None, self.before.answers[WAY])
        self.assertEqual(self.found(self.before, BIN), [])

    def test_a_recording_is_whole(self):
        path = os.path.join(self.folder, "before")
        self.before.save(path)
        loaded = Recording.load(path)
        self.assertEqual(vars(loaded), vars(self.before))
        loaded.keep(["golden"])
        self.assertEqual(self.found(loaded, BIN), [])

    def test_another_program(self):
        """The same without its page."""
        path = os.path.join(self.folder, "attend")
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\nexec "{BIN}" "$@" --page off\n')
        os.chmod(path, 0o755)
        before = self.before.unanswered()
        before.answers = dict(self.before.answers)
        before.keep(["surface"])
        self.assertEqual(self.found(before, path), [("surface 0", "status is 404, was 200")])

    def test_the_place_is_told(self):
        answers = {q.name: answer for q, answer in zip(self.before.asked, self.before.answers[WAY])}
        name = "golden-additive-heads-a "
        for form, begin, where in (("json", rb'"outputs":\[\[\[', "/outputs/0/0/1"),
                                   ("v2", rb'"data":\[', "/outputs/0/data/1")):
            old = answers[name + form]
            body = re.sub(b"(" + begin + rb"[^,]*),[^,]*", rb"\1,7", old.body, count=1)
            self.assertRegex(place(old, old._replace(body=body)), f"^{where} is 7, was -?[0-9.]+$")
        old = answers[name + "json to safetensors"]
        at = 8 + struct.unpack_from("<Q", old.body)[0] + 4  # the second number of the first tensor
        body = old.body[:at] + struct.pack("<f", 7) + old.body[at + 4:]
        self.assertRegex(place(old, old._replace(body=body)), "^/outputs/numbers/0/0/1 is 7.0, was")
        self.assertEqual(place(old, old._replace(status=500)), "status is 500, was 200")
        self.assertEqual(place(old, old._replace(headers=dict(old.headers, vary="x"))),
                         "header vary is x, was Origin")
        old = answers[name + "json"]
        self.assertRegex(place(old, old._replace(body=b" " + old.body)), "^byte 0 of the body ")


if __name__ == "__main__":
    unittest.main()
