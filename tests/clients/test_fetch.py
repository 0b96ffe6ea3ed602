"""test_fetch: the Open Inference Protocol as Node's fetch speaks it, numbers in binary."""
import os
import subprocess
import unittest

from forms import bits
from needs import needs
from support import PATIENCE, ServerCase

HERE = os.path.dirname(os.path.abspath(__file__))


@needs("clients", "node")
class Fetch(ServerCase):
    def test_infer(self):
        done = subprocess.run(["node", os.path.join(HERE, "fetch.mjs"),
                               f"http://127.0.0.1:{self.server.port}/v2/models/demo/infer"], timeout=PATIENCE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        right = self.ok(self.server.attend({"queries": [[[1, 0, 0, 1], [0, 1, 1, 0]]]}, "demo"))["outputs"]
        self.assertEqual(bytes.fromhex(done.stdout.decode().strip()), bits(right))


if __name__ == "__main__":
    unittest.main()
