"""test_faults: a host that fails in what it seldom fails in."""
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import threading
import unittest

from mixed import KNOWING, WHOLES, requests, whole_requests
from support import (BIN, MODE, PATIENCE, TOY, Case, Layer, Raw, Server, attend, clean_environment,
                     head_of, preloaded, wait_until)

# The kinds of calls that faults.c knows, in its order, and how many reasons each has to fail.
KINDS = {"read": 3, "write": 5, "recv": 4, "send": 5, "accept": 6, "epoll_ctl": 2, "epoll_wait": 1,
         "poll": 2, "thread": 1, "eventfd": 3, "pipe": 2, "fcntl": 2, "random": 3, "open": 6,
         "fstat": 2, "mmap": 1, "pread": 2, "socket": 2, "epoll_create": 2, "hand_on": 2}
# Without these there is no server, whatever else there is.
NEEDED = ("thread", "eventfd", "pipe", "socket", "epoll_create", "fcntl")
CONTROL = ("kinds", "countdown", "share", "which", "failed", "narrow", "clock", "shrink")


@unittest.skipIf(MODE == "tsan", "its runtime must be loaded first")
class Host(Case):
    """Tests of programs whose host is ours to spoil."""

    @classmethod
    def setUpClass(cls):
        cls.folder, cls.library = preloaded("faults.c")
        cls.memory_folder, memory_library = preloaded("failmalloc.c")
        cls.control = cls.shared("control", 8 * len(CONTROL))
        cls.memory = cls.shared("memory", 32)
        # The library stands before the sanitizer's in the list, which is fine: it calls on.
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + ":verify_asan_link_order=0"
        cls.env = {"LD_PRELOAD": cls.library + " " + memory_library, "FAULTS": cls.folder,
                   "FAILMALLOC": os.path.join(cls.folder, "memory"), "ASAN_OPTIONS": options}
        cls.config = {"models": {"toy": Layer(21, 20, 5).definition(cls.folder, "toy")}}

    @classmethod
    def shared(cls, name, size):
        """A new file, as memory that the programs share."""
        path = os.path.join(cls.folder, name)
        with open(path, "wb") as file:
            file.write(bytes(size))
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), size)

    @classmethod
    def tearDownClass(cls):
        cls.control.close()
        cls.memory.close()
        shutil.rmtree(cls.folder, ignore_errors=True)
        shutil.rmtree(cls.memory_folder, ignore_errors=True)

    def tearDown(self):
        self.calm()

    def arm(self, kinds=(), **values):
        """What is not named is off."""
        values["kinds"] = sum(1 << list(KINDS).index(kind) for kind in kinds)
        self.control[:] = struct.pack(f"<{len(CONTROL)}q",
                                      *(values.get(name, 0) for name in CONTROL))

    def forget(self, share):
        """One allocation of so many fails from now on; 0: none. Returns how many have failed."""
        failed = struct.unpack_from("<q", self.memory, 16)[0]
        self.memory[:] = struct.pack("<4q", 0, 0, 0, share)
        return failed

    def calm(self):
        """Returns how many calls have failed."""
        failed = struct.unpack_from("<q", self.control, 8 * CONTROL.index("failed"))[0]
        self.arm()
        return failed

    def write_config(self, config=None):
        path = os.path.join(self.folder, "attend.json")
        with open(path, "w") as file:
            json.dump(config or self.config, file)
        return path

    def start(self, *args, config=None):
        server = Server(config or self.config, "--workers", "2", "--io-threads", "2", *args,
                        env=self.env, folder=self.folder)
        self.addCleanup(server.kill)
        return server

    def healthy(self, text, what=None):
        self.assertNotRegex(text, "Sanitizer|runtime error|lost a must", what)


class Starting(Host):
    """Each call of each kind fails in turn, for each reason, until there are no more."""

    def begin(self, kind, n, which):
        """A server that starts in spite of it, or the exit status and the words of one that does
        not."""
        self.arm([kind], countdown=n, which=which)
        process = subprocess.Popen(
            [BIN, "serve", "--config", self.write_config(), "--listen", "127.0.0.1:0", "--workers",
             "2", "--io-threads", "2", "--access-log", "all"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(self.env))
        line = process.stdout.readline()
        failed = self.calm()
        if b"listening on" in line:
            process.terminate()
        try:
            _, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"hangs: {kind} {n} {process.communicate()[1]}")
        return failed, b"listening on" in line, process.returncode, err.decode()

    def every(self, kind):
        for which in range(min(KINDS[kind], 3)):
            n, failed, refused = 0, 1, 0
            while failed:
                n += 1
                self.assertLess(n, 200, "never comes to an end")
                failed, served, status, err = self.begin(kind, n, which)
                what = (kind, n, which, status, err)
                self.healthy(err, what)
                if served:
                    self.assertEqual(status, 0, what)
                else:
                    self.assertIn(status, (1, 2), what)
                    self.assertRegex(err, r"attend: .*\n$", what)
                    refused += 1
                if failed and kind in NEEDED:
                    self.assertEqual((served, status), (False, 1), what)
            self.assertTrue(served, "without a fault it does not start")
            if kind in NEEDED:
                self.assertEqual(refused, n - 1)
            self.assertGreater(n, 1, f"no call of the kind {kind} has failed")
            if MODE != "release":
                break

    def test_threads(self):
        self.every("thread")

    def test_what_else_a_server_needs(self):
        for kind in NEEDED[1:]:
            with self.subTest(kind):
                self.every(kind)

    def test_what_it_may_do_without(self):
        for kind in ("random", "poll"):
            with self.subTest(kind):
                self.every(kind)

    def test_files(self):
        for kind in ("open", "fstat", "pread"):
            with self.subTest(kind):
                self.every(kind)


class Files(Host):
    """A checkpoint and a configuration that go bad while they are read."""

    def refused(self, *words):
        status, _, err = attend("check", "--config", self.write_config(), env=self.env)
        self.healthy(err)
        self.assertEqual(status, 2, err)
        for word in words:
            self.assertIn(word, err)

    def test_a_checkpoint_that_shrinks(self):
        path = os.path.join(self.folder, "toy.safetensors")
        with open(path, "rb") as file:
            good = file.read()
        shrunk = 0
        try:
            for n in range(1, 50):
                with open(path, "wb") as file:
                    file.write(good)
                self.arm(shrink=n)
                status, _, err = attend("check", "--config", self.write_config(), env=self.env)
                self.healthy(err)
                if os.path.getsize(path):
                    break
                shrunk += 1
                self.assertEqual(status, 2, err)
                self.assertRegex(err, r"toy\.safetensors.*(shorter|was written to) while it was read")
            self.assertEqual(status, 0, err)
            self.assertGreater(shrunk, 5)
        finally:
            self.calm()
            with open(path, "wb") as file:
                file.write(good)

    def test_a_disk_that_cannot_be_read(self):
        self.arm(["pread"], share=1)
        self.refused("toy.safetensors", "cannot be read", "Input/output error")
        self.arm(["read"], countdown=1, which=2)
        self.refused("attend.json", "Input/output error")


class Reloading(Host):
    def test_every_call_of_a_reload(self):
        """The models stay, and the next reload is right."""
        server = self.start()
        first = requests("toy", 20, 5)[0]
        right = first.ask(server).body

        def reloads():
            return re.findall(r"reload failed|reloaded in", server.stderr())

        def reload():
            before = len(reloads())
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: len(reloads()) > before, step=0.002),
                            server.stderr()[-2000:])
            return reloads()[-1]

        for kind in ("thread", "open", "fstat", "pread", "read"):
            n, failed, refused = 0, 1, 0
            while failed:
                n += 1
                self.assertLess(n, 200)
                self.arm([kind], countdown=n)
                last = reload()
                failed = self.calm()
                refused += last == "reload failed"
                self.assertEqual(first.ask(server).body, right, (kind, n))
            self.assertEqual(last, "reloaded in", (kind, n, server.stderr()[-500:]))
            if kind != "read":  # which is only interrupted, or is the eventfd's
                self.assertGreater(refused, 0, kind)
        self.healthy(server.stderr())
        server.stop()


class Serving(Host):
    """Random faults while clients of all kinds ask; afterwards all is as it was."""

    LOAD = ("recv", "send", "accept", "epoll_ctl", "epoll_wait", "poll", "read", "write", "fcntl",
            "mmap", "hand_on")

    def client(self, server, seed, rounds, stop):
        rng, wrong = random.Random(seed), []
        for _ in range(rounds):
            if stop.is_set():
                break
            request = rng.choice(self.requests)
            try:
                if rng.random() < 0.2:  # and some go in the middle of it
                    with Raw(server) as raw:
                        message = request.message()
                        raw.send(message[:rng.randrange(len(message))])
                    continue
                answer = request.ask(server)
            except (OSError, ConnectionError, AssertionError, TimeoutError):
                continue
            except Exception as error:  # http.client: an answer cut off
                if type(error).__module__ != "http.client":
                    self.wrong.append((request.name, repr(error)))
                continue
            expected = self.right[request.name]
            if answer.status == expected[0]:
                if not request.agrees(answer.body, expected[1]):
                    wrong.append((request.name, answer))
            elif answer.status not in (503, 429):
                wrong.append((request.name, answer))
        self.wrong += wrong

    def load(self, server, clients=6, rounds=40):
        stop = threading.Event()
        threads = [threading.Thread(target=self.client, args=(server, i, rounds, stop))
                   for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        stop.set()
        self.assertFalse(any(thread.is_alive() for thread in threads), "a client hangs")

    @staticmethod
    def connections(server):
        """The gauge, of which this is one; while all are taken nobody tells."""
        try:
            text = server.get("/metrics").body
        except OSError:
            return None
        found = re.search(rb"\nattend_connections(?:{[^}]*main[^}]*})? (\d+)", text)
        return int(found.group(1)) if found else None

    def as_before(self, server, what):
        self.assertEqual(self.wrong, [], what)
        self.assertTrue(wait_until(lambda: self.connections(server) == 1),
                        (what, server.process.poll(), server.stderr()[-1500:]))
        for request in self.requests:
            answer = request.ask(server)
            self.assertEqual(answer.status, self.right[request.name][0], (what, request.name))
            self.assertTrue(request.agrees(answer.body, self.right[request.name][1]), (what, request.name, answer))
        self.assertTrue(wait_until(
            lambda: server.metric("attend_inflight_bytes") == server.metric("attend_prefix_bytes")), what)
        for name, value in (("attend_queue_depth", 0), ("attend_running", 0)):
            self.assertTrue(wait_until(lambda: server.metric(name) == value),
                            (what, name, server.metric(name)))
        self.assertTrue(wait_until(lambda: server.descriptors() <= self.descriptors),
                        (what, server.descriptors(), self.descriptors))

    def begin(self, *args):
        server = self.start("--max-connections", "16", *args,
                            config=dict(KNOWING, models=dict(self.config["models"], **WHOLES)))
        self.requests, self.wrong = requests("toy", 20, 5) + whole_requests(), []
        answers = {request.name: request.ask(server) for request in self.requests}
        self.right = {name: (answer.status, answer.body) for name, answer in answers.items()}
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))
        self.descriptors = server.descriptors()
        return server

    def test_each_kind(self):
        server = self.begin("--access-log", "all")
        for kind in self.LOAD:
            self.arm([kind], share=3 if kind in ("fcntl", "mmap") else 8)
            self.load(server, rounds=25)
            failed = self.calm()
            if kind not in ("mmap", "fcntl"):  # of which there are few
                self.assertGreater(failed, 0, kind)
            self.as_before(server, kind)
        server.stop()
        self.healthy(server.stderr())

    def test_all_kinds_at_once(self):
        server = self.begin("--access-log", "all")
        for share in (60, 15, 4):
            self.arm(self.LOAD + ("open", "thread", "pread", "fstat", "random"), share=share,
                     narrow=32768)
            server.signal(signal.SIGHUP)
            self.load(server)
            self.assertGreater(self.calm(), 0)
            self.as_before(server, share)
        server.stop()
        self.healthy(server.stderr())

    def test_memory(self):
        """Any allocations fail, of several requests and of a reload at once."""
        server = self.begin("--access-log", "all")
        for share in (100, 20, 4):
            self.forget(share)
            if MODE == "release":  # the sanitizer's own part of a new thread dies without memory
                server.signal(signal.SIGHUP)
            self.load(server)
            self.assertGreater(self.forget(0), 0)
            self.as_before(server, share)
        server.stop()
        self.healthy(server.stderr())

    def test_small_buffers(self):
        """Real short counts, in reading and in writing."""
        server = self.begin()
        self.arm(narrow=32768)
        self.load(server)
        self.calm()
        self.as_before(server, "small buffers")
        server.stop()

    def test_a_stop_among_faults(self):
        """The stop, too, comes to its end, and what is accepted is answered or let go."""
        for seed in range(3):
            server = self.begin("--drain-ms", "3000")
            self.arm(self.LOAD, share=10)
            threads = [threading.Thread(target=self.client,
                                        args=(server, seed * 10 + i, 30, threading.Event()))
                       for i in range(4)]
            for thread in threads:
                thread.start()
            server.signal()
            status = server.wait()
            self.calm()
            for thread in threads:
                thread.join()
            self.assertIn(status, (0, 3), server.stderr()[-2000:])
            self.assertEqual(self.wrong, [])
            self.healthy(server.stderr())

    def test_the_pipe_to_an_io_thread(self):
        """No memory to hand a connection on: it is closed, and told, and nothing else happens."""
        server = self.begin()
        self.arm(["hand_on"], share=1)
        lost = 0
        for _ in range(30):
            with Raw(server) as raw:
                try:
                    lost += raw.send(head_of("/healthz", method="GET")).answer() is None
                except (ConnectionResetError, BrokenPipeError):
                    lost += 1
            if lost > 3:
                break
        self.assertGreater(self.calm(), 3)
        self.assertGreater(lost, 3)
        self.as_before(server, "pipe")
        server.stop()
        self.assertIn("a connection could not be taken", server.stderr())

    def test_clock_jumps(self):
        """Nobody's deadline is by the time of day."""
        server = self.begin()
        with Raw(server) as waiting:
            message = self.requests[0].message()
            waiting.send(message[:-20])
            for seconds in (10 ** 9, -10 ** 9, 86400, -86400, 0):
                self.arm(clock=seconds)
                for request in self.requests:
                    answer = request.ask(server)
                    self.assertEqual(answer.status, self.right[request.name][0], seconds)
            self.calm()
            waiting.send(message[-20:])
            self.assertEqual(waiting.answer().body, self.right["plain"][1])
        self.as_before(server, "clock")
        server.stop()


@unittest.skipUnless(MODE == "release", "a sanitizer must be loaded first")
class Faults(Host):
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
