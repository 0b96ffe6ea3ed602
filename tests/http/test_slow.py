"""test_slow: 1500 connections that dawdle are ended in time; who does not dawdle does not notice."""
import shutil
import tempfile
import unittest

from attackers import EACH, SETTINGS, Slowly
from needs import needs
from support import Case, Server, wait_until


@needs("test", "slowhttptest")
class Slow(Case):
    def test_three_slow_attacks_at_once(self):
        server = Server(dict(SETTINGS, max_connections=4 * EACH))
        self.addCleanup(server.stop)
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, folder)
        attack = Slowly(server)
        self.addCleanup(attack.end)
        attack.begin(folder)
        ended = attack.ask()
        self.assertIsNotNone(ended, "connections are left: " + server.get("/metrics").body.decode())
        self.assertEqual(attack.failures, [])
        self.assertGreater(attack.most, EACH / 20, "the attack held too few connections to tell")
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))
        self.assertEqual(server.metric("attend_inflight_bytes"), 0)


if __name__ == "__main__":
    unittest.main()
