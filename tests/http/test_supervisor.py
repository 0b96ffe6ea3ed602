"""test_supervisor: what systemd is told, and the sockets that it keeps."""
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

from support import MODE, PATIENCE, TOY, Raw, Server, attend, head_of, preloaded, wait_until
from test_process import Folder

# Hands descriptors on as systemd does: from 3 on, for this process.
ACTIVATE = """
import os, sys
moved = [os.dup(int(n)) for n in sys.argv[1].split(",")]
high = [os.dup2(fd, 100 + i) for i, fd in enumerate(moved)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
    os.close(fd)
os.environ["LISTEN_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(len(high))
if sys.argv[2]:
    os.environ["LISTEN_FDNAMES"] = sys.argv[2]
os.execv(sys.argv[3], sys.argv[3:])
"""


class Supervisor:
    """The socket that a supervisor listens on, and what it has heard."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.address = address.replace("\0", "@")
        self.heard = []

    def close(self):
        self.socket.close()

    def listen(self, seconds=0.0):
        """What comes within a time, however much it is: all messages so far."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end + 1:  # what has come by then is read still
                self.socket.settimeout(max(end - time.monotonic(), 0.0001))
                self.heard.append(self.socket.recv(65536).decode())
        except (TimeoutError, socket.timeout, BlockingIOError):
            pass
        return self.heard

    def until(self, line, count=1):
        """Waits until so many messages have that line."""
        end = time.monotonic() + PATIENCE
        while self.count(line) < count:
            if time.monotonic() > end:
                raise AssertionError(f"{line} is not in {self.heard}")
            self.listen(0.01)

    def until_silent(self, line):
        """Waits until no message with that line has come for some time."""
        end = time.monotonic() + PATIENCE
        while True:
            self.heard.clear()
            self.listen(0.5)
            if not self.count(line):
                return
            if time.monotonic() > end:
                raise AssertionError(f"{line} comes again and again")

    def count(self, line):
        return sum(line in m.split("\n") for m in self.heard)


class Notified(Folder):
    """Tests with a supervisor that listens."""

    def supervisor(self, address=None):
        made = Supervisor(address or os.path.join(self.folder, "notify"))
        self.addCleanup(made.close)
        return made

    def start(self, supervisor, *args, config=None, **env):
        server = Server(config, *args, env={"NOTIFY_SOCKET": supervisor.address, **env},
                        folder=self.folder)
        self.addCleanup(server.kill)
        return server


class Told(Notified):
    def test_a_life(self):
        for address in (None, f"\0attend-test-{os.getpid()}"):
            told = self.supervisor(address)
            server = self.start(told)
            told.until("READY=1")
            self.assertIn(f"STATUS=serving on 127.0.0.1:{server.port}", told.heard[-1])
            self.assertEqual(told.heard[0], "STATUS=loading the models")
            server.signal(signal.SIGHUP)
            told.until("READY=1", count=2)
            order = [m.split("\n") for m in told.heard]
            self.assertEqual([m[0] for m in order],
                             ["STATUS=loading the models", "READY=1", "RELOADING=1", "READY=1"])
            since = dict(line.split("=", 1) for line in order[2])["MONOTONIC_USEC"]
            self.assertLess(abs(time.monotonic() - int(since) / 1e6), PATIENCE)
            server.stop()
            told.listen()
            self.assertEqual(told.heard[-1].split("\n")[:2], ["STOPPING=1", "STATUS=stopping"])
            # What the settings allow for the drain, and for what may come behind it.
            more = dict(line.split("=", 1) for line in told.heard[-1].split("\n"))
            self.assertGreater(int(more["EXTEND_TIMEOUT_USEC"]), 8000 * 1000)
            self.assertEqual(told.count("READY=1"), 2)
            self.assertEqual(told.count("WATCHDOG=1"), 0)
            told.close()

    def test_reloads_that_fail_end_too(self):
        told = self.supervisor()
        path = os.path.join(self.folder, "attend.json")
        server = self.start(told, config={"models": {"a": {"random": {"seed": 1}, "heads": 1,
                                                          "query_size": 4}}})
        told.until("READY=1")
        with open(path, "w") as file:
            file.write("nothing")
        server.signal(signal.SIGHUP)
        told.until("READY=1", count=2)
        self.assertEqual(told.count("RELOADING=1"), 1)
        self.assertEqual(server.attend({"queries": [[[1, 2, 3, 4]]]}).status, 200)
        server.stop()

    def test_a_start_that_fails(self):
        told = self.supervisor()
        config = self.write("bad.json", {"models": {"a": {"checkpoint": "none.safetensors"}}})
        status, _, err = attend("serve", "--config", config, env={"NOTIFY_SOCKET": told.address})
        self.assertEqual(status, 2, err)
        self.assertIn("none.safetensors", told.listen()[-1])
        self.assertEqual(told.count("READY=1"), 0)

    def test_addresses_that_are_none(self):
        for address, complaint in (("nothing", "is not the address"), ("/", "is not the address"),
                                   ("/" + "x" * 200, "is not the address"),
                                   (os.path.join(self.folder, "none"), "cannot notify")):
            server = Server(None, env={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "100000"})
            try:
                server.told(complaint)
                self.assertEqual(server.attend(TOY).status, 200)
            finally:
                server.stop()

    def test_a_supervisor_that_does_not_listen(self):
        """A full socket holds nothing up for longer than a moment."""
        told = self.supervisor()
        told.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(full.close)
        full.setblocking(False)
        with self.assertRaises(BlockingIOError):
            while True:
                full.sendto(b"x", told.address)
        server = self.start(told)
        server.told("cannot notify")
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop()


class Watchdog(Notified):
    LONG = [word for name in ("drain", "answer-timeout") for word in
            (f"--{name}-ms", str(2000 * PATIENCE))]
    UNREAD = json.dumps({"queries": [[[1, 0.3, 0.7, 1]] * 1600], "return_attention": True}).encode()

    def test_pings(self):
        """While it drains, too: the drain lasts until its client reads an answer that is longer
        than all that the sockets hold."""
        told = self.supervisor()
        for pid in (None, "self"):
            wrapper = ("/bin/sh", "-c", 'WATCHDOG_PID=$$ exec "$@"', "sh") if pid else ()
            server = Server(None, *self.LONG, command=wrapper,
                            env={"NOTIFY_SOCKET": told.address, "WATCHDOG_USEC": "400000"})
            told.heard.clear()
            told.until("WATCHDOG=1", count=5)
            with Raw(server) as raw:
                raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
                raw.send(head_of("/v1/attention", len(self.UNREAD)) + self.UNREAD)
                raw.socket.recv(1, socket.MSG_PEEK)
                server.signal()
                told.until("STOPPING=1")
                before = told.count("WATCHDOG=1")
                told.until("WATCHDOG=1", count=before + 3)
                self.assertEqual(raw.answer().status, 200)
            self.assertEqual(server.wait(), 0)

    def test_the_least_time(self):
        """Asked all the time, it still does its work."""
        told = self.supervisor()
        server = self.start(told, WATCHDOG_USEC="1")
        drained = threading.Event()
        reader = threading.Thread(target=lambda: [told.listen(0.01) for _ in
                                                  iter(drained.is_set, True)])
        reader.start()
        try:
            self.assertEqual(server.attend(TOY).status, 200)
            self.assertTrue(wait_until(lambda: told.count("WATCHDOG=1") > 2))
            server.signal()
            self.assertEqual(server.wait(), 0)
        finally:
            drained.set()
            reader.join()

    def test_not_asked(self):
        told = self.supervisor()
        for env in ({"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "0"},
                    {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "9" * 19},
                    {"WATCHDOG_USEC": "20000", "WATCHDOG_PID": "me"}):
            server = self.start(told, **env)
            told.until("READY=1")
            told.listen(0.1)
            self.assertEqual(told.count("WATCHDOG=1"), 0, env)
            server.stop()
            told.heard.clear()


@unittest.skipUnless(MODE == "release", "a sanitizer must be loaded first")
class Hung(Notified):
    """A thread that hangs is told to the supervisor by silence."""

    @classmethod
    def setUpClass(cls):
        cls.shim, cls.library = preloaded("hang.c")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.shim, ignore_errors=True)

    def test_each_kind_of_thread(self):
        for kind in ("io", "accept", "reaper", "first-io", "first-accept"):
            told = self.supervisor(f"\0attend-test-{os.getpid()}-{kind}")
            admin = ("--admin-listen", "127.0.0.1:0") if "first" in kind else ()
            server = self.start(told, *admin, LD_PRELOAD=self.library, HANG=self.shim,
                                WATCHDOG_USEC="200000")
            told.until("WATCHDOG=1", count=2)
            path = os.path.join(self.shim, kind)
            with open(path, "wb"):
                pass
            told.until_silent("WATCHDOG=1")  # what was asked before may still be answered
            os.unlink(path)
            told.until("WATCHDOG=1", count=3)
            server.stop()


    def test_a_stop_waits_for_who_was_accepted(self):
        """A connection that no I/O thread has taken yet, as on a machine that is busy."""
        told = self.supervisor()
        server = self.start(told, LD_PRELOAD=self.library, HANG=self.shim, WATCHDOG_USEC="200000")
        body = json.dumps(TOY).encode()
        path = os.path.join(self.shim, "io")
        with open(path, "wb"):
            pass
        told.until_silent("WATCHDOG=1")  # who is asked takes a last turn
        with Raw(server) as raw:
            raw.send(head_of("/v1/attention", len(body)) + body)
            server.signal()
            server.told("received: draining")
            time.sleep(0.2)
            os.unlink(path)
            answer = raw.answer()
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(server.wait(), 0, server.stderr())


class Handed(Folder):
    """Tests that hand sockets to the program, as systemd does."""

    def listening(self, backlog=512):
        made = socket.socket()
        self.addCleanup(made.close)
        made.bind(("127.0.0.1", 0))
        made.listen(backlog)
        return made

    def words(self, sockets, names):
        fds = [s.fileno() for s in sockets]
        return ((sys.executable, "-c", ACTIVATE, ",".join(map(str, fds)), names), tuple(fds))

    def start(self, sockets, names="", *args, **options):
        command, fds = self.words(sockets, names)
        server = Server(None, *args, command=command, pass_fds=fds, **options)
        self.addCleanup(server.kill)
        return server


class Inherited(Handed):
    """Listening sockets that come with the process."""

    def refused(self, sockets, names=""):
        command, fds = self.words(sockets, names)
        with self.assertRaises(AssertionError) as caught:
            Server(None, command=command, pass_fds=fds)
        self.assertIn("exit status 2", str(caught.exception))
        return str(caught.exception)

    def test_names(self):
        main, admin = self.listening(), self.listening()
        port, second = main.getsockname()[1], admin.getsockname()[1]
        for sockets, names, has_admin in (((main,), "", False), ((main,), "attend", False),
                                          ((main,), "attend.socket", False),
                                          ((main, admin), "attend:admin", True),
                                          ((admin, main), "admin:any", True)):
            server = self.start(sockets, names, "--listen", "127.0.0.1:1", listen=False)
            self.assertEqual(server.port, port)
            self.assertEqual(server.admin, second if has_admin else None)
            self.assertEqual(server.attend(TOY).status, 200)
            server.told(f"level=info .*using the supervisor.s socket 127.0.0.1:{port}: listen .127.0.0.1:1. is ignored")
            self.assertNotIn("admin_listen", server.stderr())
            if has_admin:
                self.assertEqual(server.ask_admin("/readyz").status, 200)
            server.stop()

    def test_a_socket_that_is_shut_down(self):
        """It is told, and not taken for one that has connections; the other one serves on."""
        main, admin = self.listening(), self.listening()
        server = self.start((main, admin), "attend:admin")
        main.shutdown(socket.SHUT_RDWR)
        server.told("cannot accept: Invalid argument")
        self.assertEqual(server.ask_admin("/readyz").status, 200)
        server.stop()

    def test_an_admin_socket_alone(self):
        admin = self.listening()
        server = self.start((admin,), "admin")
        self.assertEqual(server.admin, admin.getsockname()[1])
        self.assertNotEqual(server.port, server.admin)
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop()

    def test_sockets_that_are_none(self):
        with open(os.devnull) as file, socket.socket() as silent, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, \
                socket.socket(socket.AF_UNIX) as local:
            silent.bind(("127.0.0.1", 0))
            local.bind(os.path.join(self.folder, "local"))
            local.listen()
            for wrong in (file, silent, datagrams, local):
                self.assertIn("descriptor 3 is no TCP socket that listens", self.refused([wrong]))
        two = [self.listening(), self.listening()]
        self.assertIn("name one of them admin", self.refused(two))
        self.assertIn("name one of them admin", self.refused(two, "admin:admin"))
        self.assertIn("3 sockets, expected one", self.refused(two + [self.listening()], "a:admin:b"))

    def test_variables_that_are_none(self):
        """Of another process they mean nothing; with a number that is none they are refused."""
        for env in ({"LISTEN_FDS": "1", "LISTEN_PID": "1"}, {"LISTEN_FDS": "1"},
                    {"LISTEN_PID": "me", "LISTEN_FDS": "1"}):
            server = Server(None, env=env)
            self.assertEqual(server.attend(TOY).status, 200)
            server.stop()
        with self.assertRaises(AssertionError) as caught:
            Server(None, command=("/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"),
                   env={"LISTEN_FDS": "many"})
        self.assertIn("not a number of sockets", str(caught.exception))

    def test_what_waits_is_served_by_the_next(self):
        held = self.listening()
        server = self.start((held,))
        server.stop()
        with Raw(server) as raw:
            raw.send(head_of("/healthz", method="GET"))
            second = self.start((held,))
            self.assertEqual(raw.answer().status, 200)
        second.stop()

    def test_restarts_lose_nothing(self):
        """Clients that ask all the time, a connection for each request, while it is restarted."""
        held = self.listening()
        server = self.start((held,))
        body = json.dumps(TOY).encode()
        request = head_of("/v1/attention", len(body), "Connection: close") + body
        over, counts, wrong = threading.Event(), [0] * 4, []

        def ask(which):
            while not over.is_set():
                try:
                    with Raw(server) as raw:
                        answer = raw.send(request).answer()
                    if answer is None or answer.status != 200:
                        wrong.append(answer)
                    counts[which] += 1
                except (OSError, AssertionError) as e:
                    wrong.append(e)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(counts))]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5 if MODE == "release" else 2):
                before = sum(counts)
                self.assertTrue(wait_until(lambda: sum(counts) > before + 50))
                server.stop()
                server = self.start((held,))
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))
        server.stop()

    @unittest.skipUnless(MODE == "release", "a sanitizer must be loaded first")
    def test_a_program_that_starts_itself_again(self):
        """OpenBLAS needs a word before main: sockets and supervisor are the second start's."""
        shim, library = preloaded("hang.c")
        self.addCleanup(shutil.rmtree, shim, True)
        with open(os.path.join(shim, "old"), "wb"):
            pass
        told = Supervisor(os.path.join(shim, "notify"))
        self.addCleanup(told.close)
        held, admin = self.listening(), self.listening()
        server = self.start((held, admin), "attend:admin", "--gemm", "openblas",
                            env={"LD_PRELOAD": library, "HANG": shim, "ATTEND_CPU": None,
                                 "OPENBLAS_CORETYPE": None, "NOTIFY_SOCKET": told.address})
        if " kernels portable" in server.told("attend .* workers.*").group(0):
            server.stop()
            self.skipTest("this processor is an old one")
        self.assertIn("starting again", server.stderr())
        self.assertEqual(server.port, held.getsockname()[1])
        self.assertEqual(server.admin, admin.getsockname()[1])
        self.assertEqual(sum(line.startswith("listening") for line in server.lines), 1)
        self.assertEqual(server.ask_admin("/readyz").status, 200)
        self.assertEqual(server.attend(TOY).status, 200)
        told.until("READY=1")
        server.stop()
        told.until("STOPPING=1")
        self.assertEqual((told.count("READY=1"), told.count("STOPPING=1")), (1, 1))

    @unittest.skipUnless(MODE == "release", "a sanitizer must be loaded first")
    def test_a_run_that_starts_itself_again(self):
        """Its words are those that it was given, whatever their order, and its request is unread."""
        shim, library = preloaded("hang.c")
        self.addCleanup(shutil.rmtree, shim, True)
        with open(os.path.join(shim, "old"), "wb"):
            pass
        env = {"LD_PRELOAD": library, "HANG": shim, "ATTEND_CPU": None, "OPENBLAS_CORETYPE": None,
               "ATTEND_GEMM": None}
        body = json.dumps(TOY).encode()
        with open("/proc/cpuinfo") as file:
            if " avx2 " not in file.read():
                self.skipTest("this processor is an old one")
        answers = set()
        for words in (("--gemm", "openblas", "demo"), ("demo", "--gemm", "openblas"),
                      ("demo", "--lines", "--gemm", "openblas")):
            status, out, err = attend("run", *words, data=body, env=env)
            self.assertEqual(status, 0, err)
            self.assertIn("starting again", err)
            answers.add(out.rstrip(b"\n"))
        self.assertEqual(len(answers), 1)
        status, out, err = attend("run", "demo", "--gemm", "packed", data=body, env=env)
        self.assertEqual((status, err), (0, ""))
        with open(os.path.join(shim, "older"), "wb"):
            pass
        status, out, err = attend("run", "demo", "--gemm", "openblas", data=body, env=env)
        self.assertEqual(status, 0, err)  # it starts again once
        self.assertEqual(err.count("starting again"), 1)
        self.assertIn("would be faster", err)

    def test_both_are_told_and_kept(self):
        """Sockets and words together, as a unit has them."""
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, folder, True)
        told = Supervisor(os.path.join(folder, "notify"))
        self.addCleanup(told.close)
        held, admin = self.listening(), self.listening()
        for _ in range(2):
            server = self.start((held, admin), "attend:admin", env={"NOTIFY_SOCKET": told.address})
            told.until("READY=1")
            self.assertEqual(told.count("READY=1"), 1)
            server.stop()
            told.until("STOPPING=1")
            told.heard.clear()


if __name__ == "__main__":
    unittest.main()
