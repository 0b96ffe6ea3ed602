"""test_start: a start in which the system says no, at each place where it may."""
import os
import shutil
import signal
import subprocess
import unittest

from support import BIN, MODE, PATIENCE, Case, clean_environment, preloaded

WORDS = ("serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--workers", "2",
         "--io-threads", "2")
# How often a start calls it at least. Beyond the last call the server serves.
CALLS = {"pthread_create": 11, "eventfd": 8, "pipe2": 3, "epoll_create1": 3, "socket": 2,
         "listen": 2}


@unittest.skipUnless(MODE in ("release", "asan"), "other sanitizers must be loaded first")
class Start(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder, cls.library = preloaded("nth.c")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def begin(self, name, n, **more):
        """(exit status or None while it serves, standard error) of a start whose n-th call fails."""
        env = {"LD_PRELOAD": self.library, "NTH": f"{name} {n}",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0",
               **more}
        process = subprocess.Popen([BIN, *WORDS], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=clean_environment(env))
        try:
            serves = False
            for line in process.stdout:
                if line.startswith(b"listening"):
                    serves = True
                    process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            process.wait()
        return serves, process.returncode, err.decode()

    def each(self, name):
        n = 0
        while True:
            n += 1
            serves, status, err = self.begin(name, n)
            if serves and n > CALLS[name]:
                self.assertEqual(status, 0, err)
                return
            self.assertFalse(serves, f"{name} {n}: {err}")
            self.assertEqual(status, 1, f"{name} {n}: {err}")
            complaints = [line for line in err.splitlines() if line.startswith("attend: ")]
            self.assertEqual(len(complaints), 1, f"{name} {n}: {err}")
            self.assertLess(n, 40)

    def test_threads(self):
        self.each("pthread_create")

    def test_descriptors(self):
        for name in CALLS:
            if name != "pthread_create":
                self.each(name)

    def test_a_supervisor_for_whom_there_is_no_socket(self):
        """He is not told; all else goes on."""
        serves, status, err = self.begin("socket", 1, NOTIFY_SOCKET="@attend-test-none")
        self.assertTrue(serves, err)
        self.assertEqual(status, 0, err)
        self.assertIn("NOTIFY_SOCKET: Too many open files", err)


if __name__ == "__main__":
    unittest.main()
