"""test_combinations: every kind of model with every kind of request, beside the oracle."""
import glob
import os
import unittest

from oracle import Oracle, philox
from support import GOLDEN, Case, read_golden


class TheOracle(Case):
    """What everything else is compared with."""

    def test_golden_vectors(self):
        """They were rounded to float32 once: nothing else may differ."""
        paths = sorted(glob.glob(os.path.join(GOLDEN, "*.safetensors")))
        self.assertGreater(len(paths), 15, "the golden files are missing")
        for path in paths:
            with self.subTest(os.path.basename(path)):
                definition, tensors, request, expected = read_golden(path)
                answer = Oracle(definition, tensors).answer(request)
                self.assertEqual(set(answer), set(expected))
                for member, right in expected.items():
                    self.close_to(answer[member], right, 2e-7, member)

    def test_known_random_numbers(self):
        """The generator's published test vectors."""
        full = 0xFFFFFFFF
        for key, counter, numbers in (
                ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
                ((full, full), (full,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
                ((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
                 (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))):
            self.assertEqual(philox(key, counter), numbers)


if __name__ == "__main__":
    unittest.main()
