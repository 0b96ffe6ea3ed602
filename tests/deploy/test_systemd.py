"""test_systemd: the units in docker/systemd, as systemd reads them, and whether attend can live so."""
import ctypes
import json
import os
import random
import re
import signal
import struct
import subprocess
import unittest

from needs import needs
from support import BIN, PATIENCE, TOY, Raw, Server, head_of, randoms, wait_until
from test_process import Folder
from test_supervisor import Handed, Supervisor
from test_units import UNITS, values

MOST_EXPOSED = 1.5


def analyze(*words):
    """systemd-analyze: (exit status, all that it says)."""
    done = subprocess.run(["systemd-analyze", "--no-pager", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=PATIENCE,
                          env=dict(os.environ, SYSTEMD_LOG_COLOR="no"))
    return done.returncode, done.stdout.decode()


def group(name, known={}):
    """The system calls of a group, or of a name that is a call."""
    if not name.startswith("@"):
        return {name}
    if name not in known:
        status, text = analyze("syscall-filter", name)
        if status != 0:
            raise AssertionError(text)
        words = [line.strip() for line in text.splitlines()[1:]]
        known[name] = set().union(*(group(w) for w in words if w and w[0] != "#"))
    return known[name]


def allowed_calls():
    allowed = set(group("@default"))
    for value in values("attend.service", "SystemCallFilter"):
        calls = set().union(*(group(word) for word in value.lstrip("~").split()))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    return allowed


def seccomp(calls):
    """A filter that lets these calls through and answers EPERM to others, for prctl."""
    macros = subprocess.run([os.environ.get("CC", "cc"), "-E", "-dM", "-"], check=True,
                            input=b"#include <sys/syscall.h>\n", stdout=subprocess.PIPE).stdout
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", macros.decode()))
    load, equal, give = 0x20, 0x15, 0x06  # of linux/bpf_common.h
    code = [struct.pack("HBBI", load, 0, 0, 0)]
    for name in sorted(calls & numbers.keys()):
        code.append(struct.pack("HBBI", equal, 0, 1, int(numbers[name])))
        code.append(struct.pack("HBBI", give, 0, 0, 0x7fff0000))
    code.append(struct.pack("HBBI", give, 0, 0, 0x00050001))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    return ctypes.byref(Program(len(code), b"".join(code)))


@needs("deploy", "systemd-analyze")


class Units(Folder):
    def setUp(self):
        super().setUp()
        # Where the program would be installed there may be none.
        for name in os.listdir(UNITS):
            with open(os.path.join(UNITS, name)) as file:
                self.write_text(name, file.read().replace("/usr/local/bin/attend", BIN))

    def write_text(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def unit(self, name):
        return os.path.join(self.folder, name)

    def test_verify_is_silent(self):
        units = [self.unit(n) for n in sorted(os.listdir(UNITS))]
        self.assertEqual(len(units), 3)
        self.assertEqual(analyze("verify", *units), (0, ""))

    def test_verify_is_not_silent_about_anything(self):
        self.write_text("attend.service", "[Service]\nExecStart=/nowhere\nTpye=notify\n")
        status, said = analyze("verify", self.unit("attend.service"))
        self.assertIn("Tpye", said)

    def test_exposure(self):
        status, said = analyze("security", "--offline=true", self.unit("attend.service"))
        found = re.search(r"Overall exposure level for attend.service: ([\d.]+)", said)
        self.assertTrue(found, said)
        self.assertLess(float(found.group(1)), MOST_EXPOSED)


@needs("deploy", "systemd-analyze")


class Calls(Handed):
    """What a server does from its start to its end, under strace, is what the unit allows."""

    def config(self):
        return self.write("attend.json", {"models": {
            "demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2},
            "large": {"random": {"seed": 2}, "query_size": 256, "heads": 4}}})

    def live(self, trace):
        told = Supervisor(os.path.join(self.folder, "notify"))
        self.addCleanup(told.close)
        command, fds = self.words((self.listening(), self.listening()), "attend:admin")
        strace = ("strace", "-D", "-f", "-q", "-o", trace)
        server = Server(None, "--config", self.config(), "--access-log", "all", "--workers", "2",
                        command=strace + command, pass_fds=fds, listen=False,
                        env={"NOTIFY_SOCKET": told.address, "WATCHDOG_USEC": "400000"})
        self.addCleanup(server.kill)
        told.until("READY=1")
        return server, told

    def requests(self, server):
        rng = random.Random(1)
        self.assertEqual(server.attend(TOY).status, 200)
        large = {"queries": randoms(rng, 2, 60, 256)}
        self.assertEqual(server.attend(large, "large").status, 200)
        binary = {"Accept": "application/x-safetensors"}
        self.assertEqual(server.attend(TOY, headers=binary).status, 200)
        for path in ("/", "/metrics", "/v1/models", "/openapi.json", "/v2", "/none"):
            self.assertIn(server.get(path).status, (200, 404))
        for path in ("/metrics", "/readyz", "/none"):
            self.assertIn(server.ask_admin(path).status, (200, 404))
        body = json.dumps(large).encode()
        for part in (10, len(body)):  # clients that leave
            with Raw(server) as raw:
                raw.send(head_of("/v1/models/large/attention", len(body)) + body[:part])
        with Raw(server) as raw:
            raw.send(b"POST /v1/attention HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip\r\n\r\n")
            self.assertEqual(raw.answer().status, 501)

    @needs("deploy", "strace")
    def test_what_is_called_is_allowed(self):
        trace = os.path.join(self.folder, "trace")
        server, told = self.live(trace)
        self.requests(server)
        server.signal(signal.SIGHUP)
        told.until("READY=1", count=2)
        told.until("WATCHDOG=1", count=2)
        self.requests(server)
        with Raw(server) as raw:
            raw.send(head_of("/v1/attention", 100)).send(b"{")
            self.assertTrue(wait_until(lambda: b'{listener="main"} 1\n' in
                                       server.ask_admin("/metrics").body))
            server.signal()
            told.until("STOPPING=1")
        self.assertEqual(server.wait(), 0)
        lines = []

        def is_whole():
            with open(trace) as file:
                lines[:] = file.read().splitlines()
            return any("+++ exited" in line and line.startswith(f"{server.pid} ")
                       for line in lines)

        self.assertTrue(wait_until(is_whole))
        self.judge(lines)

    def test_a_life_with_nothing_else(self):
        """The same list as a filter of the kernel's: what is not in it fails."""
        library, program = ctypes.CDLL(None, use_errno=True), seccomp(allowed_calls())

        def confine():
            if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, program, 0, 0):
                raise OSError(ctypes.get_errno(), "prctl")

        server = Server(None, "--config", self.config(), "--admin-listen", "127.0.0.1:0",
                        preexec=confine)
        self.addCleanup(server.kill)
        with open(f"/proc/{server.pid}/status") as file:
            self.assertIn("Seccomp:\t2\n", file.read())
        self.requests(server)
        server.signal(signal.SIGHUP)
        server.told("reloaded in")
        self.requests(server)
        server.stop()

    def judge(self, lines):
        # From the program's own start: before it there was what the test hands descriptors on with.
        began = [i for i, line in enumerate(lines) if f'execve("{BIN}"' in line]
        self.assertEqual(len(began), 1)
        lines = [re.sub(r"^\d+ +", "", line) for line in lines[began[0]:]]
        called = {m.group(1) for m in (re.match(r"(?:<\.\.\. )?([a-z_0-9]+)(?:\(| resumed)", line)
                                       for line in lines) if m}
        self.assertLessEqual({"epoll_wait", "accept4", "clone3", "sendto", "pipe2"}, called)
        self.assertEqual(called - allowed_calls(), set())
        code = [line for line in lines if "PROT_EXEC" in line]
        self.assertTrue(code)  # of libraries, which may not be written to
        self.assertEqual([line for line in code if "PROT_WRITE" in line or
                          not line.startswith("mmap(")], [])
        families = {f for line in lines for f in re.findall(r"^socket\((AF_\w+)", line)}
        self.assertLessEqual(families,
                             set(values("attend.service", "RestrictAddressFamilies")[0].split()))
        files = [m.group(1) for m in (re.match(r'open(?:at)?\((?:AT_FDCWD, )?"(/proc/[^"]*)"', line)
                                      for line in lines) if m]
        self.assertTrue(files)
        for path in files:  # ProcSubset=pid; glibc asks for the second one, and does without it where it is hidden
            self.assertRegex(path, r"^/proc/(self|thread-self|\d+)/|^/proc/sys/vm/overcommit_memory$")
        written = [line for line in lines if re.match(r"open(at)?\(.*O_(WRONLY|RDWR|CREAT)", line)]
        self.assertEqual(written, [])  # ProtectSystem=strict


if __name__ == "__main__":
    unittest.main()
