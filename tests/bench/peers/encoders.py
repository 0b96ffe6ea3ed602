"""encoders: a BERT by attend, ONNX Runtime and PyTorch: computed in one process, and over HTTP."""
import functools
import json
import os
import re
import subprocess
import time

import bert
from encoder import LOADS, MOST_OFF, PATH, TURNS, check, serve, title, turn_of, until_ready
from load import wrk
from peer import Peer
from process import cpu_exact_ms, family, memory
from table import line

HERE = os.path.dirname(os.path.abspath(__file__))
# ONNX Runtime's graphs, by attend's way of computing; its service has the last one, mostly the faster one.
GRAPHS = {"float32": ("exported", "fused"), "int8": ("fused-int8", "exported-int8")}
SECONDS = "1" if bert.SHAPE == "base" else "0.2"  # of each case
ROUNDS = 2
FORMS = {"two processes": ("2", "1"), "two threads": ("1", "2")}  # of Node's service


def prepare(peers):
    """The folder of the graphs and of the right answers, made if its last file is not there."""
    folder = os.path.join(peers, bert.NAME)
    if not os.path.exists(os.path.join(folder, "fused-int8.onnx")):
        print(f"# making {bert.NAME} for ONNX Runtime", flush=True)
        maker = os.path.join(HERE, "bert_onnx.py")
        subprocess.run([bert.PYTHON, "-B", maker, bert.folder(), folder], check=True,
                       env=dict(os.environ, PYTHONWARNINGS="ignore"))
    return folder


def node(peers):
    return dict(os.environ, NODE_PATH=os.path.join(peers, "node_modules"))


# --- in one process ---

def output(command, env, threads):
    """What a program prints that gets so many cores and no more."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    return subprocess.run(command, env=env, check=True, timeout=600, stdout=subprocess.PIPE,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores)).stdout.decode()


def by_onnx(peers, folder, threads):
    """{(way of computing, graph): {case: milliseconds}}; by_torch has the same."""
    script = os.path.join(HERE, "node_ort", "encoder.js")
    return {(compute, f"ONNX Runtime, {graph}"): json.loads(output(
        ["node", script, folder, graph, str(threads), SECONDS, str(MOST_OFF[compute])], node(peers), threads))
            for compute, graphs in GRAPHS.items() for graph in graphs}


def by_torch(folder, threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
               PYTHONWARNINGS="ignore")
    command = [bert.PYTHON, "-B", os.path.join(HERE, "bert_torch.py"), bert.folder(),
               os.path.join(folder, "cases.json"), str(threads), SECONDS]
    return {("float32", f"PyTorch, {form}"): found
            for form, found in json.loads(output(command, env, threads)).items()}


def by_attend(build):
    """{(way of computing, workers): {case: milliseconds}} of bench_stack, at the processor's own level."""
    out = subprocess.run([os.path.join(build, "bench", "bench_stack")], check=True, timeout=600,
                         stdout=subprocess.PIPE).stdout.decode()
    found = {}
    for text in out.splitlines():
        match = re.match(rf"{bert.NAME} (.+), (\d) workers?(?:, (\S+))? \| *([\d.]+) ms", text)
        if match:
            case, workers, compute, ms = match.groups()
            found.setdefault((compute or "float32", int(workers)), {})[case] = float(ms)
    return found


def keep_best(best, found):
    for case, ms in found.items():
        best[case] = min(ms, best.get(case, ms))


def encoders(build, peers):
    folder = prepare(peers)
    ours, theirs = {}, {}  # {(compute, threads): {case: ms}}, {(compute, peer, threads): {case: ms}}
    counts = range(1, 1 + min(2, len(os.sched_getaffinity(0))))
    for _ in range(ROUNDS):
        for key, found in by_attend(build).items():
            keep_best(ours.setdefault(key, {}), found)
        for threads in counts:
            found_by = by_onnx(peers, folder, threads) | by_torch(folder, threads)
            for key, found in found_by.items():
                keep_best(theirs.setdefault((*key, threads), {}), found)
    for (compute, peer, threads), found in theirs.items():
        for case, ms in found.items():
            own = ours[compute, threads][case]
            line(f"{bert.NAME} {case}, {threads} thread{'s'[:threads - 1]}, {compute}; {peer}",
                 f"{own:.2f} ms", f"{ms:.2f} ms", ms / own)


# --- over HTTP ---

class Service:
    """What a service gave in its best turns, and what it took to start."""

    def __init__(self):
        self.rate, self.cpu, self.start, self.resident = {}, {}, 1e9, 0

    def measure(self, server, pid, bodies, right, compute):
        self.resident = sum(memory(p)[0] for p in family(pid))
        for load in LOADS:
            case, connections = load
            check(server.port, bodies[case], case, right[case]["embeddings"], compute)
            wrk(server.port, bodies[case], connections, 1, PATH)  # warm
            before = sum(map(cpu_exact_ms, family(pid)))
            found = turn_of(server.port, bodies[case], load)
            spent = sum(map(cpu_exact_ms, family(pid))) - before
            if found.rate > self.rate.get(load, 0):
                self.rate[load], self.cpu[load] = found.rate, spent / max(1, found.requests)


def start_node(peers, folder, compute, form):
    script = os.path.join(HERE, "node_ort", "encoder_server.js")
    return Peer(["node", script, folder, GRAPHS[compute][-1], *FORMS[form]], env=node(peers))


def start_attend(compute):
    server = serve(compute)
    until_ready(server)
    return server


def encoder_services(_, peers):
    folder = prepare(peers)
    bodies = bert.write_bodies(folder)
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
        right = json.load(file)
    starts = {(compute, "attend"): functools.partial(start_attend, compute) for compute in GRAPHS}
    starts |= {(compute, form): functools.partial(start_node, peers, folder, compute, form)
               for compute in GRAPHS for form in FORMS}
    services = {key: Service() for key in starts}
    for _ in range(TURNS):
        for key, start in starts.items():
            begun = time.monotonic()
            server = start()
            services[key].start = min(services[key].start, (time.monotonic() - begun) * 1e3)
            try:
                services[key].measure(server, server.process.pid, bodies, right, key[0])
            finally:
                server.stop()
    tell(services)


def tell(services):
    for compute, form in [(compute, form) for compute in GRAPHS for form in FORMS]:
        ours, peer = services[compute, "attend"], services[compute, form]
        what = f"{compute}; Node + ONNX Runtime, {form}"
        for load in LOADS:
            line(f"{title(*load)}, {what}", f"{ours.rate[load]:.2f} /s",
                 f"{peer.rate[load]:.2f} /s", ours.rate[load] / peer.rate[load])
            line("    processor time of each", f"{ours.cpu[load]:.2f} ms",
                 f"{peer.cpu[load]:.2f} ms", ours.cpu[load] / peer.cpu[load])
        line(f"start with {bert.NAME}, {what}", f"{ours.start:.0f} ms", f"{peer.start:.0f} ms",
             ours.start / peer.start)
        line("    resident then", f"{ours.resident / 1e6:.0f} MB", f"{peer.resident / 1e6:.0f} MB",
             ours.resident / peer.resident)
