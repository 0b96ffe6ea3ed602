"""small: the service's figures for small requests: how many, how soon, and what they leave."""
import http.client
import os
import socket
import subprocess
import threading
import time

import bodies
from load import wrk
from process import cpu_ms
from support import Server, head_of
from table import line

MODELS = {"toy": {"random": {"seed": 1}, "query_size": 100, "heads": 5},
          "base": {"random": {"seed": 1}, "query_size": 512, "heads": 8}}
TOY = (2, 4, 6, 100)


def first_answer(_):
    """From exec to the first 200 without a configuration, median of ten."""
    times, nothing = [], []
    for _ in range(10):
        begun = time.monotonic()
        server = Server()
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("GET", "/readyz")
        assert connection.getresponse().status == 200
        times.append((time.monotonic() - begun) * 1e3)
        connection.close()
        server.stop()
        begun = time.monotonic()
        subprocess.run(["true"], check=True)
        nothing.append((time.monotonic() - begun) * 1e3)
    ours, yardstick = sorted(times)[5], sorted(nothing)[5]
    line("start without a configuration to the first 200", f"{ours:.1f} ms",
         f"{yardstick:.1f} ms, true", ours / yardstick, "< 100 ms", ours < 100)


def toy_requests(folder):
    """How many a second, what 100 000 of them leave in memory, and with more and more clients."""
    body = bodies.write(os.path.join(folder, "toy"), *TOY)
    server = Server({"models": MODELS, "default_model": "toy"})
    wrk(server.port, body, 16, 1)  # the first thousands, so that every thread has its memory
    first, count = server.resident(), server.metric("attend_http_requests_total")
    begun, before, rates = time.monotonic(), sum(cpu_ms(server.pid)), {16: 0}
    while (server.metric("attend_http_requests_total") - count < 100000
           and time.monotonic() - begun < 12):
        rates[16] = max(wrk(server.port, body, 16, 2).rate, rates[16])
    served = server.metric("attend_http_requests_total") - count
    cores = (sum(cpu_ms(server.pid)) - before) / (time.monotonic() - begun) / 1e3
    last, crowds, cost = server.resident(), (16, 64, 256, 512), {}
    for _ in range(2):
        for clients in crowds:
            before = sum(cpu_ms(server.pid))
            load = wrk(server.port, body, clients, 2)
            spent = (sum(cpu_ms(server.pid)) - before) / load.requests * 1e3
            rates[clients] = max(load.rate, rates.get(clients, 0))
            cost[clients] = min(spent, cost.get(clients, spent))
    server.stop()
    line(f"small requests (b2 q4 k6 d100, {os.path.getsize(body) / 1e3:.0f} kB), 16 clients",
         f"{rates[16]:.0f} /s", f"{cores:.2f} cores")
    line(f"memory after {served:.0f} more small requests", f"{last / 1e6:.2f} MB",
         f"{first / 1e6:.2f} MB", last / first, "< 1.05", last / first < 1.05)
    for clients in crowds[1:]:
        line(f"small requests, {clients} clients", f"{rates[clients]:.0f} /s",
             f"{rates[16]:.0f} /s, 16", rates[clients] / rates[16], ">= 0.95",
             rates[clients] / rates[16] >= 0.95)
    print("    CPU of the server for each: "
          + ", ".join(f"{us:.0f} us with {clients} clients" for clients, us in cost.items()))


def merging(folder):
    """64 clients with a row at a time: what waits as one batch, against one by one."""
    body = bodies.write(os.path.join(folder, "row"), 1, 1, 1, 1024, names=("queries",),
                        lengths=False)
    wide = {"wide": {"random": {"seed": 1}, "query_size": 1024, "heads": 16}}
    servers = {merge: Server({"models": wide, "merge": merge}) for merge in (True, False)}
    rates = {True: 0, False: 0}
    for turn in range(4):
        for merge, server in servers.items():
            rate = wrk(server.port, body, 64, 2 if turn else 1).rate
            rates[merge] = max(rate, rates[merge])
    for server in servers.values():
        server.stop()
    ratio = rates[True] / rates[False]
    line("64 clients with q = k = 1, d1024 h16; merge off", f"{rates[True]:.0f} /s",
         f"{rates[False]:.0f} /s", ratio, ">= 4", ratio >= 4)


class Giant(threading.Thread):
    """A client that sends one large request after the other."""

    def __init__(self, server, body):
        super().__init__(daemon=True)
        self.server, self.body = server, body
        self.over, self.answers = threading.Event(), 0
        self.start()

    def run(self):
        while not self.over.is_set():
            assert self.server.attend(self.body, "base").status == 200
            self.answers += 1

    def end(self):
        self.over.set()
        self.join()
        assert self.answers, "no large request was answered"


def fairness(folder):
    """The toy's latency beside a client that sends b1 q4096 k4096 d512 in a loop."""
    body = bodies.write(os.path.join(folder, "toy"), *TOY)
    giant_body = b"".join(bodies.parts(1, 4096, 4096, 512, lengths=False))
    server = Server({"models": MODELS, "default_model": "toy"})
    crowds = (1, 16)
    alone = {clients: wrk(server.port, body, clients, 2) for clients in crowds}
    giant = Giant(server, giant_body)
    time.sleep(1)
    beside = {clients: wrk(server.port, body, clients, 6) for clients in crowds}
    giant.end()
    server.stop()
    title = f"99 % of small requests within, beside b1 q4096 k4096 ({len(giant_body) / 1e6:.0f} MB) in a loop"
    for clients in crowds:
        ours, yardstick = beside[clients].p99_ms, alone[clients].p99_ms
        goal = ("< 5 ms", ours < 5) if clients == 1 else ("", None)
        line(title if clients == 1 else f"the same, {clients} clients with small requests", f"{ours:.2f} ms",
             f"{yardstick:.2f} ms alone", ours / yardstick, *goal)
    print(f"    {giant.answers} large ones answered meanwhile; half of the small requests within "
          f"{beside[1].p50_ms:.2f} ms, {beside[1].rate:.0f} /s ({alone[1].rate:.0f} /s alone)")


def pipelined_health(_):
    """What the HTTP side gives by itself: health requests one after the other on a connection."""
    server = Server()
    request, count = head_of("/healthz", method="GET"), 2000
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.settimeout(20)
        s.sendall(request)
        size = len(s.recv(65536))
        begun = time.monotonic()
        for _ in range(count):
            s.sendall(request)
            got = 0
            while got < size:
                got += len(s.recv(65536))
        rate = count / (time.monotonic() - begun)
    server.stop()
    line("health requests one after the other, from Python", f"{rate:.0f} /s")
