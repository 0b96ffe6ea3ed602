"""attackers: slowhttptest's three attacks at the same time, and a client that asks meanwhile."""
import json
import os
import resource
import subprocess
import time

from support import PATIENCE, TOY

EACH = 500  # connections
DEADLINE = 2.5  # seconds, for heads, bodies, answers and idle connections
SETTINGS = {name + "_timeout_ms": int(DEADLINE * 1000)
            for name in ("header", "body", "answer", "idle")}
ESTABLISHED = "01"
# Heads that never end, bodies that never end, and readers of a few bytes a second.
ATTACKS = {"slow_head": ("/healthz", "-H", "-x", "24"),
           "slow_body": ("/v1/attention", "-B", "-s", "8192", "-x", "10", "-t", "POST",
                         "-f", "application/json"),
           "slow_reader": ("/openapi.json", "-X", "-w", "10", "-y", "20", "-n", "1", "-z", "32",
                           "-k", "10")}


def raise_descriptors():
    """For thousands of connections, here and in what is started from here."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def established(port):
    """Connections of the server in the system's table: those that it has shut, too, are gone."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)


class Slowly:
    """The three attacks, from begin() to their end; ask() sends requests all the while."""

    def __init__(self, server):
        self.server, self.programs = server, []
        self.waits, self.failures, self.most = [], [], 0  # seconds of each request; what went wrong

    def begin(self, folder):
        raise_descriptors()
        self.began = time.monotonic()
        for name, (path, *words) in ATTACKS.items():
            with open(os.path.join(folder, name), "wb") as log:
                self.programs.append(subprocess.Popen(
                    ["slowhttptest", *words, "-i", "1", "-c", str(EACH), "-r", str(EACH), "-p", "3",
                     "-l", "60", "-u", f"http://127.0.0.1:{self.server.port}{path}"],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT))

    def ask_once(self):
        begun = time.monotonic()
        try:
            status = self.server.attend(TOY).status
        except OSError as e:
            status = e
        self.waits.append(time.monotonic() - begun)
        if status != 200:
            self.failures.append(status)

    def ended(self):
        """All have been ended. Where the machine stands still for seconds, a body's head may be what took too long."""
        counts = [self.server.metric("attend_rejected_total", f'reason="{name}"') for name in ATTACKS]
        return min(counts) > 0 and sum(counts) >= len(ATTACKS) * EACH and established(self.server.port) <= 1

    def ask(self):
        """Until all attackers have been closed; returns after how many seconds, or None."""
        while time.monotonic() < self.began + PATIENCE:
            for _ in range(20):
                self.ask_once()
                self.most = max(self.most, self.server.metric("attend_connections") - 1)
            if self.ended():
                return time.monotonic() - self.began
        return None

    def end(self):
        for program in self.programs:
            program.terminate()
            program.wait()


def percentile(waits, part):
    return sorted(waits)[min(len(waits) - 1, int(len(waits) * part))]


# --- more than can be served -----------------------------------------------------------------------

CROWD = 2000  # connections
CROWDED = {"models": {"wide": {"random": {"seed": 1}, "query_size": 512, "heads": 8}},
           "max_connections": 4096, "max_queue": 64}


def crowd_body(folder, rows=4):
    """A request that is not tiny: 22 kB with 4 rows, self-attention. The file's path."""
    path = os.path.join(folder, "crowd.json")
    row = ",".join(f"{(i * 7919 % 1999 - 1000) / 7e2:.6f}" for i in range(512))
    with open(path, "w") as file:
        file.write('{"queries":[[' + ",".join([f"[{row}]"] * rows) + "]]}")
    return path


def crowd(port, body, clients, seconds):
    """What came of it: answers by kind, broken connections, microseconds."""
    raise_descriptors()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count.lua")
    out = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", f"{PATIENCE}s",
                          "-s", script, f"http://127.0.0.1:{port}/v1/attention"], check=True,
                         env=dict(os.environ, BODY=body), timeout=seconds + PATIENCE,
                         stdout=subprocess.PIPE).stdout.decode()
    return json.loads(next(line for line in out.splitlines() if line.startswith("{")))
