#!/usr/bin/env python3
"""soak: a server under everything at once for a while, and whether it is then as it was before (computes).

    tests/soak/soak.py [SECONDS]       as `make soak` does; ATTEND_BIN is the program

Clients ask layers and whole models in every form and size and compare each answer with the right
one, byte for byte; others leave in the middle, send garbage, and now and then crowd in by the
hundred; the models are read again every few seconds. In between all of it stops for a moment, and
the server is looked at: its memory must lie after the last rounds where it lay after the first, no
descriptor, connection or byte of the budget may be left. Prints a line a round and TAP.
"""
import json
import multiprocessing
import os
import queue
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "http"), os.path.join(TESTS, "bench")]
sys.dont_write_bytecode = True
from clients import Asker, Leaver, Nuisance  # noqa: E402
from compare import OracleCase  # noqa: E402
from load import wrk  # noqa: E402
from references import JSON, References, Wide  # noqa: E402
from support import MODE, PATIENCE, SLOW, Server, wait_until  # noqa: E402
from test_combinations import make_layers  # noqa: E402
import wholes  # noqa: E402

SETTINGS = {"admin_listen": "127.0.0.1:0", "max_queue": 64, "max_connections": 400,
            "header_timeout_ms": 2000, "body_timeout_ms": 30000 * SLOW, "answer_timeout_ms": 10000,
            "memory_budget_bytes": 1 << 29}
CLIENTS = [Asker, Asker, Leaver, Nuisance]
CROWD = 200            # connections of wrk
CROWD_S = 2            # how long they stay, and stay away
RELOAD_S = 2           # how often the models are read again
QUIET_S = 4 if MODE == "release" else 1  # longer than freed blocks are kept for the next request
GROWTH = 0.03          # of resident memory, that may be noise
SHORT_S = 30           # less than that is to find what the sanitizers complain of, not what grows


class Soak:
    def __init__(self, folder):
        self.folder = folder
        self.layers, self.wide = make_layers(), Wide()
        self.models = {n: layer.definition(folder, n) for n, layer in self.layers.items()}
        self.models["wide"] = self.wide.definition(folder, "wide")
        self.models.update(wholes.MODELS)
        self.models.update(wholes.DECODERS)
        self.models.update(wholes.PAIRS)
        self.models["other"] = {"random": {"seed": 0}, "query_size": 64, "heads": 4}
        self.server = Server(dict(SETTINGS, models=self.models), folder=folder)
        self.failures, self.counts, self.reloads, self.crowd = [], {}, 0, 0

    def references(self, short):
        judge = OracleCase()
        judge.server, judge.layers = self.server, self.layers
        made = References(self.server, self.layers, self.wide)
        made.small(judge, 4 if short else 1)
        made.large("wide", 1 if short else 3)
        made.whole(2 if short else 20)
        made.decoders(2 if short else 20)
        made.searches(1 if short else 10)
        return made.kept

    def start(self, references):
        """The clients, at rest."""
        self.go, self.end = multiprocessing.Event(), multiprocessing.Event()
        self.told = multiprocessing.Queue()
        self.clients = []
        for seed, kind in enumerate(CLIENTS):
            client = kind(self.server.port, references, seed, self.go, self.end, self.told)
            self.clients.append(multiprocessing.Process(target=client.run, daemon=True))
            self.clients[-1].start()
        self.body = os.path.join(self.folder, "crowd")
        with open(self.body, "wb") as file:
            file.write(next(r for r in references if "/wide/" in r.path
                            and r.headers.get("Content-Type") == JSON).body)

    def reload(self):
        """Another `other` each time; what is asked for stays the same."""
        self.reloads += 1
        self.models["other"] = {"random": {"seed": self.reloads}, "heads": 4,
                                "query_size": 64 * (1 + self.reloads % 3)}
        path = os.path.join(self.folder, "attend.json")
        with open(path + ".new", "w") as file:
            json.dump(dict(SETTINGS, models=self.models), file)
        os.replace(path + ".new", path)
        self.server.signal(signal.SIGHUP)

    def crowd_in(self):
        """Again and again while there is a go."""
        while self.go.is_set():
            load = wrk(self.server.port, self.body, CROWD, CROWD_S, "/v1/models/wide/attention",
                       may_fail=True)
            self.crowd += load.requests
            time.sleep(CROWD_S)

    def work(self, seconds):
        """A round: everything at once."""
        end = time.monotonic() + seconds
        self.go.set()
        crowd = threading.Thread(target=self.crowd_in)
        crowd.start()
        while time.monotonic() < end:
            time.sleep(RELOAD_S)
            self.reload()
            if self.server.process.poll() is not None:
                raise AssertionError(f"the server has ended: {self.server.stderr()[-3000:]}")
        self.go.clear()
        crowd.join()
        self.hear()

    def hear(self):
        while True:
            try:
                kind, what = self.told.get_nowait()
            except queue.Empty:
                return
            if kind == "failure":
                self.failures.append(what)
            else:
                for name, n in what.items():
                    self.counts[name] = self.counts.get(name, 0) + n

    def metric(self, name):
        """Asked by the other door: the house may be full."""
        labels = 'listener="main"' if name == "attend_connections" else ""
        return self.server.metric(name, labels, admin=True)

    def look(self):
        """What is left when nobody asks: (descriptors, bytes of memory)."""
        server = self.server
        for what, wanted in (("attend_inflight_bytes", 0), ("attend_queue_depth", 0),
                             ("attend_running", 0), ("attend_sequences", 0)):
            if not wait_until(lambda: self.metric(what) == wanted):
                self.failures.append(f"{what} is {self.metric(what)} on a quiet server")
        if not wait_until(lambda: self.metric("attend_connections") == 0):
            self.failures.append(f"{self.metric('attend_connections')} connections are left")
        time.sleep(QUIET_S)
        return server.descriptors(), server.resident()

    def finish(self):
        self.end.set()
        self.go.set()
        for client in self.clients:
            client.join(PATIENCE)
        self.hear()
        self.server.stop()


def follow(soak, seconds):
    """(descriptors, bytes of memory) after each round"""
    references = soak.references(seconds < SHORT_S)
    print(f"# {len(references)} requests with their right answers, "
          f"{sum(len(r.body) for r in references) / 1e6:.0f} MB", flush=True)
    soak.start(references)
    rounds = max(2, min(20, int(seconds // 30)))
    for n in range(rounds):
        soak.work(max(seconds / rounds - QUIET_S, RELOAD_S))
        left = soak.look()
        print(f"# round {n + 1}: {left[1] / 1e6:.1f} MB, {left[0]} descriptors, "
              f"{len(soak.failures)} failures", flush=True)
        yield left
    soak.finish()


def run(seconds):
    """(failures, what was counted, descriptors and memory after each round)"""
    with tempfile.TemporaryDirectory(prefix="attend-soak-") as folder:
        soak = Soak(folder)
        try:
            descriptors, memory = zip(*follow(soak, seconds))
        finally:
            soak.server.kill()  # no server is left behind, whatever has happened
    counts = dict(soak.counts, reloads=soak.reloads, crowd=soak.crowd)
    return soak.failures, counts, memory, descriptors


def main(words):
    seconds = float(words[0]) if words else 600
    failures, counts, memory, descriptors = run(seconds)
    print("# " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    for failure in failures[:20]:
        print(f"# {failure}")
    checks = [("every answer is right, or a refusal", not failures and counts.get("right", 0) > 0),
              ("no descriptor is left", len(set(descriptors)) == 1)]
    if MODE == "release" and len(memory) >= 6:  # the sanitizers keep what is freed
        growth = statistics.median(memory[-3:]) / statistics.median(memory[:3]) - 1
        checks.append((f"memory is where it was, {growth:+.1%}", abs(growth) <= GROWTH))
    print(f"1..{len(checks)}")
    for n, (name, good) in enumerate(checks, 1):
        print(f"{'ok' if good else 'not ok'} {n} - {name}")
    return 0 if all(good for _, good in checks) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
