"""test_figures: what `make bench` prints for a target that is not met, and how it counts them."""
import contextlib
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import table  # noqa: E402  (after the path is known)


class Figures(unittest.TestCase):
    def setUp(self):
        table.VERDICTS.clear()
        self.addCleanup(table.VERDICTS.clear)

    def test_lines_of_programs(self):
        exp = "exp | {} numbers/ns, worst {} ulp | expf 1.0 numbers/ns | 9.0 times faster | <= 2 ulp{}"
        for text, verdict in (
                ("layer | 1.0 ms, 99 GFLOP/s | sgemm | 0.85 | >= 0.85", " | yes"),
                ("layer | 1.0 ms, 99 GFLOP/s | sgemm | 0.84 | >= 0.85", " | NO"),
                ("plain | 2.0 ms | 41.0 ms | 20.5 times faster | >= 20", " | yes"),
                ("heads | 7.0 ms | 9.0 ms | 0.66 | <= 0.65 of its time", " | NO"),
                ("beside | 63.9 MB | | | <= 64 MB", " | yes"),
                ("beside | 64.1 MB | | | <= 64 MB", " | NO"),
                (exp.format(7.5, 0.98, ", >= 6 numbers/ns"), " | yes"),
                (exp.format(5.9, 0.98, ", >= 6 numbers/ns"), " | NO"),
                (exp.format(5.9, 2.5, ""), " | NO")):
            self.assertEqual(table.judge(text), text + verdict)
        for text in ("avx2: reading | 1 ns | 2 ns | 2.0 | >= 3 | NO",
                     "avx2: reading | 1 ns | 3 ns | 3.0 | >= 3 | yes"):
            self.assertEqual(table.judge(text), text)
        self.assertEqual(table.summary(), "6 of 11 targets not met")
        for text in ("# cpu level avx2", "x | 1 ms | 2 ms | 2.0 | -", "x | 1 | 2 | 2.0 | - |", ""):
            self.assertEqual(table.judge(text), text)
        self.assertEqual(len(table.VERDICTS), 11)

    def test_lines_of_the_service(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            table.line("a", "1", "", 2.5, ">= 2", True)
            table.line("b", "1", "", 1.5, ">= 2", False)
            table.line("c", "1")
        self.assertEqual([l.rpartition("|")[2].strip() for l in out.getvalue().splitlines()],
                         ["yes", "NO", ""])
        self.assertEqual(table.summary(), "1 of 2 targets not met")


if __name__ == "__main__":
    unittest.main()
