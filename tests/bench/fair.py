"""fair: what each client gets beside others: short requests beside batches, streams, many texts.

Models: a BERT (BERT=tiny, mini or base), a second one from the same folder, a GPT-2 (GPT=), and a toy.
FAIR="NAME ..." names some of the scenes; WORKERS="1 2" how many workers the server has; PART=0.5 takes half the
time.
"""
import http.client
import json
import os
import threading
import time

import bert
import gpt2
from process import memory
from support import JSON_TYPE, Server

PART = float(os.environ.get("PART", 1))
BATCH = {"tokens": [[5 + i % 900 for i in range(100)]] * 8, "pool": "mean"}
SHORT = {"tokens": [list(range(5, 15))], "pool": "mean"}
FOUR = {"tokens": [[5, 6, 7, 8]], "pool": "mean"}
TEXTS = {"tokens": [[1 + (7 * i + j) % 900 for j in range(250)] for i in range(400)], "max_tokens": 8}
STREAM = {"tokens": [[5, 6, 7, 8]], "max_tokens": 32}
ONE = {"tokens": [[5, 6, 7, 8]], "max_tokens": 1}
TOY = {"queries": [[[1, 0, 0, 1]] * 4]}


class Client(threading.Thread):
    """Sends a request in a loop on one connection, with a pause behind each answer, until it ends."""

    def __init__(self, server, path, body, pause=0, key=None):
        super().__init__(daemon=True)
        self.port, self.path, self.body, self.pause = server.port, path, json.dumps(body), pause
        self.headers = dict(JSON_TYPE, **({"Authorization": f"Bearer {key}"} if key else {}))
        self.took, self.stop, self.failed = [], False, []
        self.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        while not self.stop:
            begun = time.monotonic()
            try:
                connection.request("POST", self.path, self.body, self.headers)
                answer = connection.getresponse()
                text = answer.read()
            except OSError as e:
                self.failed.append(repr(e))
                return
            if answer.status != 200:
                self.failed.append(text[:300])
                return
            self.took.append(time.monotonic() - begun)
            time.sleep(self.pause)


def watch(clients, seconds):
    """Lets them work for so long, and gives the seconds that their requests took, by client."""
    for client in clients:
        client.took = []
    time.sleep(seconds)
    took = [list(client.took) for client in clients]
    failed = [why for client in clients for why in client.failed]
    assert not failed, failed[0]
    return took


def end(clients):
    for client in clients:
        client.stop = True
    for client in clients:
        client.join(600)


def within(took, part):
    took = sorted(took)
    return took[min(len(took) - 1, int(part * len(took)))] if took else float("inf")


def tell(scene, took, alone=None, of=None, more=""):
    """A line: the times of one kind of request, in milliseconds; idle; in times of a batch above idle."""
    p50, p95, p99 = (within(took, part) for part in (0.5, 0.95, 0.99))
    over = ", above idle " + " ".join(f"{(p - alone) / of:.2f}" for p in (p50, p95, p99)) + " of a batch" if of else ""
    idle = f" | idle {1e3 * alone:.1f}" if alone else ""
    print(f"{scene:<46} | {1e3 * p50:.1f} {1e3 * p95:.1f} {1e3 * p99:.1f} ms, {len(took)}{idle}{over}{more}",
          flush=True)


def alone(server, path, body, times=20):
    client = Client(server, path, body)
    while len(client.took) < times and not client.failed:
        time.sleep(0.01)
    end([client])
    return within(client.took, 0.5)


def beside(server, title, short, others, seconds, of):
    """Short requests beside others: (path, body, pause) of one, (path, body, clients) of the others."""
    path, body, pause = short
    seconds *= PART
    idle = alone(server, path, body)
    crowd = [Client(server, where, what) for where, what, count in others for _ in range(count)]
    time.sleep(1)
    asking = Client(server, path, body, pause)
    took = watch([asking] + crowd, seconds)
    end([asking])
    rate = sum(map(len, took[1:])) / seconds
    tell(title, took[0] or [seconds], idle, of, f" | others {rate:.2f}/s, {memory(server.pid)[1] >> 20} MB")
    end(crowd)


SCENES = {}


def scene(f):
    SCENES[f.__name__] = f
    return f


@scene
def same(server, batch):
    beside(server, "10 tokens beside 8 batches, same model", ("/v1/models/bert/encode", SHORT, 0.2),
           [("/v1/models/bert/encode", BATCH, 8)], 30, batch)


@scene
def other(server, batch):
    beside(server, "10 tokens beside 8 batches of another model", ("/v1/models/bert2/encode", SHORT, 0.2),
           [("/v1/models/bert/encode", BATCH, 8)], 30, batch)


@scene
def streams(server, batch):
    beside(server, "32 tokens of /generate beside 4 batches", ("/v1/models/gpt/generate", STREAM, 0),
           [("/v1/models/bert/encode", BATCH, 4)], 30, batch)


@scene
def prompts(server, batch):
    beside(server, "4 tokens beside 400 texts of 250 of another", ("/v1/models/bert/encode", FOUR, 0.2),
           [("/v1/models/gpt/generate", TEXTS, 1)], 30, None)
    beside(server, "one token beside 400 texts of 250, same model", ("/v1/models/gpt/generate", ONE, 0.2),
           [("/v1/models/gpt/generate", TEXTS, 1)], 30, None)


@scene
def toys(server, batch):
    beside(server, "small requests beside 8 batches and 400 texts", ("/v1/models/toy/attention", TOY, 0.005),
           [("/v1/models/bert/encode", BATCH, 8), ("/v1/models/gpt/generate", TEXTS, 1)], 20, None)


@scene
def batches(server, batch):
    """Eight clients with batches of four sizes: the rate of all, and who waits longest."""
    sizes = (8, 8, 8, 4, 4, 2, 1, 8)
    clients = [Client(server, "/v1/models/bert/encode", dict(BATCH, tokens=BATCH["tokens"][:n])) for n in sizes]
    time.sleep(2 * batch)
    took = watch(clients, 40 * PART)
    end(clients)
    total = sum(n * len(one) for n, one in zip(sizes, took))
    cycle = sum(sizes) / 8 * batch  # what first come, first served would take
    longest = max(max(one, default=40 * PART) for one in took)
    print(f"{'batches of 8, 8, 8, 4, 4, 2, 1, 8 texts':<46} | {total / (40 * PART):.2f} texts/s, longest {longest:.1f} s, "
          f"{longest / cycle:.2f} of all in turn", flush=True)


@scene
def shares(server, batch):
    """Two keys, one with one connection, one with eight."""
    keys = [Client(server, "/v1/models/bert/encode", BATCH, key="one-0123456789abcdef")]
    keys += [Client(server, "/v1/models/bert/encode", BATCH, key="two-0123456789abcdef") for _ in range(8)]
    time.sleep(2 * batch)
    took = watch(keys, 40 * PART)
    end(keys)
    all_ = sum(map(len, took)) or 1
    print(f"{'one connection beside eight of another key':<46} | share {len(took[0]) / all_:.2f} of {all_}",
          flush=True)


@scene
def merged(server, batch):
    """Texts of 4 tokens from 16 connections."""
    clients = [Client(server, "/v1/models/bert/encode", FOUR) for _ in range(16)]
    time.sleep(1)
    took = watch(clients, 10 * PART)
    end(clients)
    print(f"{'4 tokens from 16 connections':<46} | {sum(map(len, took)) / (10 * PART):.1f}/s", flush=True)


def models(workers, merge=True):
    folder = {"transformer": bert.folder()}
    return {"models": {"bert": folder, "bert2": folder, "gpt": {"transformer": gpt2.folder()},
                       "toy": {"random": {"seed": 1}, "query_size": 4, "heads": 2}},
            "workers": workers, "merge": merge, "deadline_ms": 600000, "max_body_bytes": 1 << 28}


def fair(folder):
    for workers in map(int, os.environ.get("WORKERS", "1 2").split()):
        keys = os.path.join(folder, "keys")
        with open(keys, "w") as file:
            file.write("one-0123456789abcdef\ntwo-0123456789abcdef\n")
        os.chmod(keys, 0o600)
        names = os.environ.get("FAIR", " ".join(SCENES)).split()
        print(f"--- {bert.NAME}, {gpt2.NAME}, workers: {workers}", flush=True)
        server = Server(models(workers))
        batch = alone(server, "/v1/models/bert/encode", BATCH, 3)
        print(f"a batch of 8 texts of 100 tokens: {1e3 * batch:.0f} ms", flush=True)
        for name in names:
            if name != "shares":
                SCENES[name](server, batch)
        server.stop()
        if "merged" in names:
            server = Server(models(workers, merge=False))
            print("without merging:", end=" ")
            merged(server, batch)
            server.stop()
        if "shares" in names:
            server = Server(dict(models(workers), api_key_file=keys))
            shares(server, batch)
            server.stop()
