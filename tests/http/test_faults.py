"""test_faults: a host that fails in what it seldom fails in."""
import os
import shutil
import unittest

from support import MODE, TOY, Case, Raw, Server, attend, head_of, preloaded, wait_until


@unittest.skipUnless(MODE == "release", "a sanitizer must be loaded first")
class Faults(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder, cls.library = preloaded("faults.c")
        cls.env = {"LD_PRELOAD": cls.library, "FAULTS": cls.folder}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def tearDown(self):
        for fault in ("add", "epoll", "serial"):
            self.mend(fault)

    def spoil(self, fault):
        with open(os.path.join(self.folder, fault), "wb"):
            pass

    def mend(self, fault):
        path = os.path.join(self.folder, fault)
        if os.path.exists(path):
            os.unlink(path)

    def lost(self, fault, reported):
        """A connection that cannot be taken is closed and leaves its place to others."""
        server = Server(None, "--max-connections", "6", env=self.env)
        self.addCleanup(server.stop)
        self.assertEqual(server.attend(TOY).status, 200)
        self.spoil(fault)
        for _ in range(20):
            with Raw(server) as raw:
                try:
                    answer = raw.send(head_of("/healthz", method="GET")).answer()
                except (ConnectionResetError, BrokenPipeError):
                    answer = None
                self.assertIsNone(answer)
        self.mend(fault)
        self.assertEqual(server.attend(TOY).status, 200)
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1),
                        server.metric("attend_connections"))
        if reported:
            self.assertNotIn("could not be taken", server.stderr())
        else:  # the log has a thread of its own
            self.assertTrue(wait_until(lambda: "could not be taken" in server.stderr()))

    def test_connection_lost_before_it_is_reported(self):
        self.lost("add", False)

    def test_connection_lost_after_it_was_reported(self):
        self.lost("epoll", True)

    def test_a_serial_openblas_has_one_thread(self):
        self.spoil("serial")
        status, out, err = attend("serve", "--listen", "127.0.0.1:0", "--gemm", "openblas",
                                  "--workers", "2", env=self.env)
        self.assertEqual(status, 2, err)
        self.assertNotIn(b"listening", out)
        self.assertIn("OpenBLAS", err)
        self.assertIn("2 workers", err)
        server = Server(None, "--gemm", "openblas", "--workers", "1", "--io-threads", "2",
                        env=self.env)
        self.addCleanup(server.stop)
        large = {"queries": [[[0.1] * 512] * 60]}
        for _ in range(4):  # on several connections: of both I/O threads
            self.assertEqual(server.attend(large, "base").status, 200)
            self.assertEqual(server.attend(TOY).status, 200)

    def test_a_serial_openblas_that_nobody_uses(self):
        self.spoil("serial")
        server = Server(None, "--gemm", "packed", "--workers", "2", env=self.env)
        self.addCleanup(server.stop)
        self.assertEqual(server.attend(TOY).status, 200)


if __name__ == "__main__":
    unittest.main()
