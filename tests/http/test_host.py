"""test_host: hosts that give little: no files, few descriptors, little memory, a fraction of a core."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from mixed import requests
from support import (BIN, MODE, PATIENCE, TOY, Case, Layer, Raw, Server, attend, clean_environment,
                     head_of, wait_until)

DEMO = b'{"queries":[[1,0,0,1]]}'


class Place(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def start(self, *args, **options):
        server = Server(None, *args, **options)
        self.addCleanup(server.kill)
        return server


@unittest.skipUnless(MODE == "release", "a sanitizer needs /proc")
class Bare(Place):
    """A root with the program and its libraries and nothing else: no /proc, /dev, /sys, /etc, /tmp,
    no names of users; and whatever a test adds."""

    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("a new root takes the privilege for it")
        listed = subprocess.run(["ldd", BIN], stdout=subprocess.PIPE, check=True).stdout.decode()
        for path in [BIN] + re.findall(r"(/\S+) \(0x", listed):
            self.carry(path, "/attend" if path == BIN else path)
        os.chmod(self.folder, 0o755)

    def carry(self, path, to):
        place = self.folder + to
        os.makedirs(os.path.dirname(place), exist_ok=True)
        try:
            os.link(os.path.realpath(path), place)
        except OSError:
            shutil.copy(path, place)

    def command(self, *words, user=True):
        """Runs in it as a user without a name."""
        def enter():
            os.chroot(self.folder)
            os.chdir("/")
            if user:
                os.setgroups([])
                os.setgid(54321)
                os.setuid(54321)
        # from the new root: /proc/self/exe and a relative BIN mean nothing there
        return {"args": ["/attend", *words], "preexec_fn": enter, "env": clean_environment()}

    def serve(self, *words, **options):
        """A server in it: (process, port). Its standard error is a file."""
        log = tempfile.TemporaryFile()
        self.addCleanup(log.close)
        process = subprocess.Popen(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                   **self.command("serve", "--listen", "127.0.0.1:0", *words,
                                                  **options))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        found = re.search(rb"listening on 127\.0\.0\.1:(\d+)\n", line)
        self.assertTrue(found, os.pread(log.fileno(), 9999, 0))
        return At(process, int(found.group(1)), log)

    def test_nothing_at_all(self):
        server = self.serve()
        before = server.attend(TOY).body
        for request in requests("demo", 4, 2):
            answer = request.ask(server)
            self.assertIn(answer.status, (200, 304, 400, 404), request.name)
        self.assertIn(b"attend_build_info", server.get("/metrics").body)
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: b"reloaded in" in server.stderr()))
        self.assertEqual(server.attend(TOY).body, before)
        server.stop(self)

    def test_commands(self):
        for words, data in ((["check"], None), (["run", "demo"], DEMO), (["--version"], None)):
            done = subprocess.run(input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False, **self.command(*words))
            self.assertEqual(done.returncode, 0, (words, done.stderr))
            self.assertTrue(done.stdout)

    def test_streams_closed_where_there_is_no_dev(self):
        """Nothing else takes their places: no client reads the log."""
        command = self.command("serve", "--listen", "127.0.0.1:0", "--access-log", "all",
                               "--log-level", "debug")
        enter = command["preexec_fn"]

        def closed():
            enter()
            os.closerange(0, 3)
        command["preexec_fn"] = closed
        process = subprocess.Popen(**command)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: listening(process.pid)))
        server = At(process, listening(process.pid), None)
        for fd in range(3):
            self.assertEqual(os.readlink(f"/proc/{process.pid}/fd/{fd}"), self.folder)
        self.assertEqual(server.attend(TOY).status, 200)
        with Raw(server) as raw:
            raw.send(head_of("/healthz", method="GET") * 3)
            for _ in range(3):
                self.assertEqual(raw.answer().status, 200)
            self.assertFalse(raw.data)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_files_of_others(self):
        """What this user may not read is told, for a configuration and for a checkpoint."""
        good = Layer(31, 6, 2).checkpoint()
        for path in (self.write("m.safetensors", good), self.write("closed.json", "{}")):
            os.chmod(path, 0o600)
        self.write("open.json", '{"models":{"m":{"checkpoint":"m.safetensors","heads":2}}}')
        for name in ("closed.json", "open.json"):
            done = subprocess.run(stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  **self.command("check", "--config", "/" + name))
            self.assertEqual(done.returncode, 2, name)
            self.assertRegex(done.stderr, rb"^attend: .*Permission denied\n$")

    def test_threads_are_used_up(self):
        """The system gives this user so many; then a start says that it lacks one."""
        served = refused = 0
        for most in range(0, 12, 1 if MODE == "release" else 2):
            command = self.command("serve", "--listen", "127.0.0.1:0", "--workers", "2")
            enter = command["preexec_fn"]

            def limited(most=most, enter=enter):
                enter()
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
            command["preexec_fn"] = limited
            process = subprocess.Popen(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, **command)
            ready = b"listening on" in process.stdout.readline()
            if ready:
                process.terminate()
            _, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0 if ready else 1, (most, err))
            self.assertTrue(ready or re.search(rb"attend: .*thread", err), (most, err))
            served, refused = served + ready, refused + (not ready)
        self.assertGreater(refused, 3)
        self.assertGreater(served, 0)

    # --- control groups: what stands there is what is read ---

    def sizes(self, files, *words):
        """(workers, budget) of a server that finds these files."""
        for name in ("proc", "sys"):
            shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
        for path, text in files.items():
            self.write(path.lstrip("/"), text)
        server = self.serve(*words)
        found = server.metric("attend_workers"), server.metric("attend_inflight_limit_bytes")
        server.stop(self)
        return found

    def test_control_groups(self):
        cores = len(os.sched_getaffinity(0))
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") // 2
        cpu, limit = "/sys/fs/cgroup%s/cpu.max", "/sys/fs/cgroup%s/memory.max"
        own = {"/proc/self/cgroup": "0::/pod/own\n"}
        mib = 1 << 20
        for files, expected in (
                ({}, (cores, memory)),
                ({cpu % "": "100000 100000\n", limit % "": "%d\n" % (512 * mib)}, (1, 256 * mib)),
                ({cpu % "": "max 100000\n", limit % "": "max\n"}, (cores, memory)),
                ({cpu % "": "1000 100000\n"}, (1, memory)),  # a hundredth is still one thread
                ({cpu % "": "110000 100000\n"}, (min(cores, 2), memory)),
                ({**own, cpu % "/pod/own": "max 100000\n", cpu % "/pod": "50000 100000\n",
                  limit % "/pod/own": "max\n", limit % "/pod": "%d\n" % (64 * mib)},
                 (1, 32 * mib)),
                ({**own, limit % "/pod/own": "%d\n" % (64 * mib),
                  limit % "/pod": "%d\n" % (512 * mib)}, (cores, 32 * mib)),
                # nonsense is no limit, and no reason to fail
                ({cpu % "": "", limit % "": ""}, (cores, memory)),
                ({cpu % "": "garbage\n", limit % "": "garbage\n"}, (cores, memory)),
                ({cpu % "": "0 0\n", limit % "": "0\n"}, (cores, memory)),
                ({cpu % "": "-5 100000\n", limit % "": "-1\n"}, (cores, memory)),
                ({cpu % "": "nan nan\n"}, (cores, memory)),
                ({cpu % "": "9" * 5000 + " 1\n", limit % "": "9" * 5000}, (cores, memory)),
                ({"/proc/self/cgroup": "x" * 9000, cpu % "": "100000 100000\n"}, (1, memory)),
                ({"/proc/self/cgroup": "0::/" + "d/" * 4000 + "\n"}, (cores, memory)),
                ({"/proc/self/cgroup": "0::\n1\n:::\n\0\n"}, (cores, memory)),
                # the older kind
                ({"/proc/self/cgroup": "3:cpu,cpuacct:/a\n2:memory:/a\n",
                  "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "100000\n",
                  "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
                  "/sys/fs/cgroup/memory/a/memory.limit_in_bytes": "%d\n" % (128 * mib)},
                 (1, 64 * mib))):
            with self.subTest(files):
                self.assertEqual(self.sizes(files), expected)
        said = self.sizes({cpu % "": "100000 100000\n", limit % "": "%d\n" % (512 * mib)},
                          "--workers", "3", "--memory-budget-bytes", "1000000")
        self.assertEqual(said, (3, 1000000))  # who says a number gets it


def listening(pid):
    """The port of 127.0.0.1 that a process listens on, or None."""
    try:
        ours = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except OSError:
        return None
    with open("/proc/net/tcp") as file:
        for line in file.readlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in ours:
                return int(words[1].split(":")[1], 16)
    return None


class At(Server):
    """A server that somebody else has started."""

    def __init__(self, process, port, log):  # pylint: disable=super-init-not-called
        self.process, self.port, self.log, self.pid, self.own = process, port, log, process.pid, None

    def stderr(self):
        return os.pread(self.log.fileno(), 1 << 20, 0)

    def stop(self, case):
        self.process.terminate()
        case.assertEqual(self.process.wait(PATIENCE), 0)


class Limits(Place):
    def test_descriptors_are_used_up(self):
        """Nobody spins, nobody is lost; once there are some again, all are answered."""
        server = self.start()
        self.assertEqual(server.attend(TOY).status, 200)
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))
        soft, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        most = max(int(fd) for fd in os.listdir(f"/proc/{server.pid}/fd")) + 5
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (most, hard))
        raws = [Raw(server).send(head_of("/healthz", method="GET")) for _ in range(40)]
        try:
            server.told("cannot accept")
            before = server.computed()
            time.sleep(1)
            self.assertLess(server.computed() - before, 0.5, "spins")
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (soft, hard))
            for raw in raws:
                self.assertEqual(raw.answer().status, 200)
        finally:
            for raw in raws:
                raw.socket.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 1))
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop()

    @staticmethod
    def status(ask):
        try:
            return ask().status
        except OSError:
            return "closed"

    def serves_within(self, kib, threads="1"):
        """Does a server start with so many addresses? One that does has to answer in the end; one
        that does not has to end. `threads` is what OpenBLAS is told."""
        size = kib << 10
        process = subprocess.Popen(
            [BIN, "serve", "--listen", "127.0.0.1:0", "--workers", "2"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=clean_environment({"OPENBLAS_NUM_THREADS": threads}),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        found = re.search(rb"listening on \S*:(\d+)\n", process.stdout.readline())
        if found:
            server = At(process, int(found.group(1)), None)
            # Without memory for a connection it is closed; there may be some again only when
            # kept blocks have gone back.
            for words in ((TOY,), ({"queries": [[[0.5] * 512] * 500]}, "base")):
                status = self.status(lambda: server.attend(*words))
                self.assertIn(status, (200, 503, "closed"), kib)
            self.assertTrue(wait_until(
                lambda: self.status(lambda: server.get("/healthz")) == 200), kib)
            process.terminate()
        _, err = process.communicate(timeout=PATIENCE)
        if found:
            self.assertEqual(process.returncode, 0, (kib, err))
        else:
            self.assertIn(process.returncode, (1, 2, 127), (kib, err))
            self.assertTrue(err, kib)
        return found is not None

    @unittest.skipUnless(MODE == "release", "a sanitizer takes terabytes of addresses")
    def test_addresses_are_used_up(self):
        """A start that has too few says so; one that has enough answers or refuses."""
        tried = {kib: self.serves_within(kib) for kib in
                 [mib << 10 for mib in (40, 60, 80, 100, 120, 140, 160, 200, 400)]}
        most = max(kib for kib in tried if not tried[kib])
        least = min(kib for kib in tried if tried[kib] and kib > most)
        while least - most > 64: # the edge, where all but nothing is left
            middle = (least + most) // 2
            if self.serves_within(middle):
                least = middle
            else:
                most = middle

    @unittest.skipUnless(MODE == "release", "a sanitizer takes terabytes of addresses")
    def test_addresses_are_used_up_and_nobody_speaks_to_openblas(self):
        """A thread of its own would try for ever to get its memory, and the end wait for it."""
        for threads in (None, "2"):
            tried = {self.serves_within(mib << 10, threads) for mib in (60, 80, 90, 100, 120, 400)}
            self.assertEqual(tried, {False, True}, threads)

    def test_openblas_has_no_threads(self):
        """Workers compute; of its own it has none, whatever it is told."""
        counts = set()
        for threads in ("1", None, "2"):
            server = self.start("--workers", "2", env={"OPENBLAS_NUM_THREADS": threads})
            counts.add(len(os.listdir(f"/proc/{server.pid}/task")))
            server.stop()
        self.assertEqual(len(counts), 1, counts)

    def test_small_stacks_of_threads(self):
        """What a thread gets is what the limit says: 128 kB still answer the deepest JSON."""
        def limit():
            resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, 128 << 10))
        if MODE != "release":
            self.skipTest("a sanitizer's frames are larger")
        server = self.start(preexec=limit)
        for request in requests("demo", 4, 2):
            self.assertIn(request.ask(server).status, (200, 304, 400, 404), request.name)
        for text in (b'{"causal":' + b"[" * 100000, b'{"queries":' + b"[" * 100000,
                     b'{"x":' * 50000):
            self.assertEqual(server.attend(text).status, 400)
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop()

    def test_a_log_file_of_limited_size(self):
        """As on a full disk: lines are dropped and counted, requests are answered."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        with open(os.path.join(self.folder, "log"), "wb") as log:
            server = self.elsewhere(log, log, preexec_fn=limit)
        self.dropping(server)
        self.assertLessEqual(os.path.getsize(os.path.join(self.folder, "log")), 3000)

    def test_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            server = self.elsewhere(full, full)
        self.dropping(server)

    def elsewhere(self, out, err, **options):
        """A server with these streams."""
        process = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--access-log", "all"],
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=clean_environment(), **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: listening(process.pid)))
        return At(process, listening(process.pid), None)

    def dropping(self, server):
        for _ in range(60):
            self.assertEqual(server.get("/healthz").status, 200)
        self.assertTrue(wait_until(lambda: server.metric("attend_log_dropped_total") > 20))
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop(self)

    def test_a_ready_line_that_nobody_reads(self):
        """Standard output is a pipe that is full: it serves and stops all the same."""
        end, out = os.pipe()
        os.set_blocking(out, False)
        try:
            while os.write(out, bytes(4096)):
                pass
        except BlockingIOError:
            pass
        os.set_blocking(out, True)
        server = self.elsewhere(out, subprocess.DEVNULL)
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop(self)
        os.close(out)
        os.close(end)

    def test_commands_that_cannot_write(self):
        """To a full disk, or to nothing at all, is no success, and they say so."""
        checkpoint = self.write("m.safetensors", Layer(31, 6, 2).checkpoint())
        for words, data in ((["check"], None), (["inspect", checkpoint], None), (["help"], None),
                            (["inspect", checkpoint, "--models"], None), (["--version"], None),
                            (["run", "demo"], DEMO), (["run", "demo", "--heads"], DEMO),
                            (["run", "demo", "--binary"], None)):
            if words[-1] == "--binary":
                data = next(r.body for r in requests("demo", 4, 2) if r.name == "safetensors")
            for where in (">/dev/full", ">&-"):
                done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {where}', BIN, *words],
                                      input=data, stderr=subprocess.PIPE, check=False,
                                      env=clean_environment())
                with self.subTest(words=words, where=where):
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertRegex(done.stderr, rb"(?m)^attend: .*(write|full)")
        for words in (["run", "demo"], ["check"]):
            done = subprocess.run(["sh", "-c", 'exec "$0" "$@" 2>/dev/full', BIN, *words],
                                  input=DEMO, stdout=subprocess.PIPE, check=False,
                                  env=clean_environment())
            self.assertEqual(done.returncode, 0)  # the answer is whole
            self.assertTrue(done.stdout)
        status, _, err = attend("run", "demo", preexec_fn=lambda: os.close(0))
        self.assertEqual(status, 1)
        self.assertIn("cannot read the request", err)


class Signals(Place):
    def test_strays(self):
        """Orders for other servers, and what a write to nobody brings."""
        server = self.start()
        right = server.attend(TOY).body
        with Raw(server) as raw:
            body = json.dumps(TOY).encode()
            raw.send(head_of("/v1/attention", len(body)) + body[:30])
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGXFSZ,
                           signal.SIGWINCH, signal.SIGURG, signal.SIGCHLD) * 20:
                server.signal(number)
                self.assertEqual(server.attend(TOY).body, right)
            raw.send(body[30:])
            self.assertEqual(raw.answer().body, right)
        server.stop()

    def test_stopped_and_continued(self):
        """In the middle of requests of every kind, at any of their bytes."""
        server = self.start()
        asked = [r for r in requests("demo", 4, 2) if r.exact is True]
        right = {r.name: r.ask(server).body for r in asked}
        raws = []
        for i, request in enumerate(asked):
            message = request.message()
            cut = len(message) * (i + 1) // (len(asked) + 1)
            raws.append((request, Raw(server).send(message[:cut]), message[cut:]))
        server.signal(signal.SIGSTOP)
        for _, raw, rest in raws[::2]:
            raw.send(rest)
        time.sleep(0.3)
        server.signal(signal.SIGCONT)
        for _, raw, rest in raws[1::2]:
            raw.send(rest)
        for request, raw, _ in raws:
            self.assertEqual(raw.answer().body, right[request.name], request.name)
            raw.socket.close()
        server.stop()


class Sources(Place):
    """Configurations and checkpoints that are no good files."""

    def odd(self):
        """name -> path of things that are no file to read; some have no end."""
        os.mkfifo(os.path.join(self.folder, "pipe"))
        with open(os.path.join(self.folder, "huge"), "wb") as file:
            file.truncate(1 << 40)
        os.symlink("loop", os.path.join(self.folder, "loop"))
        return {"folder": self.folder, "zero": "/dev/zero", "random": "/dev/urandom",
                "full": "/dev/full", "null": "/dev/null", "huge": self.folder + "/huge",
                "loop": self.folder + "/loop", "mem": "/proc/self/mem", "name": "x" * 5000,
                "below a file": BIN + "/x"}

    def refused(self, name, words, env=None):
        status, out, err = attend(*words, env=env)
        self.assertEqual(status, 2, (name, err))
        self.assertRegex(err, r"^attend: [^\n]+\n$", name)
        self.assertLess(len(err), 1000)
        self.assertEqual(out, b"", name)

    def test_configurations(self):
        for name, path in self.odd().items():
            self.refused(name, ["check", "--config", path])
            self.refused(name, ["serve", "--listen", "127.0.0.1:0"], env={"ATTEND_CONFIG": path})

    def test_checkpoints(self):
        for name, path in dict(self.odd(), pipe=self.folder + "/pipe").items():
            self.refused(name, ["inspect", path])
            config = self.write("attend.json", json.dumps(
                {"models": {"m": {"checkpoint": path, "heads": 2}}}))
            self.refused(name, ["serve", "--listen", "127.0.0.1:0", "--config", config])

    def test_a_reload_meets_them(self):
        model = {"m": Layer(31, 6, 2).definition(self.folder, "m")}
        config = json.dumps({"models": model})
        path = self.write("attend.json", config)
        server = self.start("--config", path)
        request = {"queries": [[[1, 2, 3, 4, 5, 6]]]}
        right, failures = server.attend(request).body, 0
        for name, place in self.odd().items():
            for victim in ("attend.json", "m.safetensors"):
                victim = os.path.join(self.folder, victim)
                os.rename(victim, victim + ".good")
                if len(place) < 4000:
                    os.symlink(place, victim)
                server.signal(signal.SIGHUP)
                failures += 1
                self.assertTrue(wait_until(lambda: len(re.findall(
                    "reload failed", server.stderr())) == failures, step=0.002),
                    (name, victim, server.stderr()[-900:]))
                self.assertEqual(server.attend(request).body, right, (name, victim))
                os.rename(victim + ".good", victim)
        server.signal(signal.SIGHUP)
        server.told("reloaded in")
        self.assertEqual(server.attend(request).body, right)
        server.stop()


if __name__ == "__main__":
    unittest.main()
