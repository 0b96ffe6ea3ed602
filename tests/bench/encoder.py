"""encoder: a BERT as a service: requests a second, what each costs beyond its layers, start, reload."""
import http.client
import json
import os
import random
import signal
import struct
import time

import bert
import tensors
from load import wrk
from process import cpu_exact_ms, memory
from support import JSON_TYPE, Server, flat, wait_until
from table import line

PATH = "/v1/models/bert/encode"
# (case, connections): seconds of each turn with base; the others take one.
LOADS = {("b1 s16", 4): 5, ("b1 s128", 4): 6, ("b8 s128", 4): 15, ("b1 s16", 16): 5}
TURNS = 2
# By way of computing: how far an answer may be off, in parts of the largest number.
MOST_OFF = {"float32": 1e-3, "int8": 0.2}


def title(case, connections):
    return f"{bert.NAME} {case}, {connections} connections"


def serve(compute="float32", **settings):
    """attend with the folder as its model."""
    return Server(dict(settings, models={"bert": {"transformer": bert.folder(), "compute": compute}}))


def embeddings(port, body):
    """What a service answers to a body that is a file: numbers, width by width."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with open(body, "rb") as file:
        connection.request("POST", PATH, file.read(), JSON_TYPE)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert answer.status == 200, f"{answer.status}: {text[:500]}"
    return json.loads(text)["outputs"]


def check(port, body, case, right=None, compute="float32"):
    """The answer has the right shape, and its numbers are near those that are right, if told."""
    outputs = embeddings(port, body)
    assert [len(row) for row in outputs] == [bert.WIDTH] * len(bert.CASES[case])
    if right:
        largest = max(map(abs, flat(right)))
        off = max(abs(a - b) for a, b in zip(flat(outputs), flat(right))) / largest
        assert off < MOST_OFF[compute], f"{case}: wrong by {off}"


def turn_of(port, body, load):
    """What came of one turn."""
    return wrk(port, body, load[1], LOADS[load] if bert.SHAPE == "base" else 1, PATH)


def encoder_requests(folder):
    """Requests per second, those that wait as one batch against one by one."""
    bodies, rates = bert.write_bodies(folder), {}
    servers = {merge: serve(merge=merge) for merge in (True, False)}
    for case, _ in LOADS:
        check(servers[True].port, bodies[case], case)
    for turn in range(TURNS):
        for load in LOADS:
            for merge, server in servers.items():
                if turn == 0:
                    wrk(server.port, bodies[load[0]], load[1], 1, PATH)  # warm
                key = load, merge
                rate = turn_of(server.port, bodies[load[0]], load).rate
                rates[key] = max(rate, rates.get(key, 0))
    for server in servers.values():
        server.stop()
    for load in LOADS:
        ours, other = rates[load, True], rates[load, False]
        line(f"{title(*load)}; merge off", f"{ours:.2f} /s", f"{other:.2f} /s", ours / other)


def token_classifier(folder):
    """The folder of a classifier of tokens into nine labels: the same BERT, and a matrix of a file of its own."""
    path = os.path.join(folder, "tags")
    os.mkdir(path)
    os.symlink(os.path.join(bert.folder(), "model.safetensors"), os.path.join(path, "model.safetensors"))
    rng = random.Random(3)
    drawn = struct.pack(f"<{9 * bert.WIDTH}f", *(rng.gauss(0, 0.04) for _ in range(9 * bert.WIDTH)))
    head = {"classifier.weight": memoryview(drawn).cast("f", (9, bert.WIDTH)),
            "classifier.bias": memoryview(bytes(36)).cast("f", (9,))}
    tensors.write_safetensors(os.path.join(path, "head.safetensors"), head)
    with open(os.path.join(bert.folder(), "model.safetensors"), "rb") as file:
        names = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
    places = {name: "model.safetensors" for name in names if name != "__metadata__"}
    places |= {name: "head.safetensors" for name in head}
    with open(os.path.join(path, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"weight_map": places}, file)
    with open(os.path.join(bert.folder(), "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config["architectures"] = ["BertForTokenClassification"]
    config["id2label"] = {str(i): f"B-{i}" if i else "O" for i in range(9)}
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return path


def encoder_tokens(folder):
    """Requests per second of the path that labels tokens, against the path that gives a vector of each item."""
    bodies, rates = bert.write_bodies(folder), {}
    server = Server({"models": {"bert": {"transformer": token_classifier(folder)}}})
    asked = {case: os.path.join(folder, f"tags {case}.json") for case in bodies}
    for case, tokens in bert.batches().items():
        with open(asked[case], "w", encoding="utf-8") as file:
            json.dump({"tokens": tokens}, file)
    for _ in range(TURNS):
        for load in LOADS:
            for path, files in ((PATH, bodies), ("/v1/models/bert/classify_tokens", asked)):
                seconds = LOADS[load] if bert.SHAPE == "base" else 1
                rate = wrk(server.port, files[load[0]], load[1], seconds, path).rate
                rates[load, path] = max(rate, rates.get((load, path), 0))
    server.stop()
    for load in LOADS:
        vectors, labels = (rates[load, path] for path in (PATH, "/v1/models/bert/classify_tokens"))
        line(f"{title(*load)}, labels of tokens; vectors of items", f"{labels:.2f} /s", f"{vectors:.2f} /s",
             labels / vectors, "0.95", labels / vectors >= 0.95)


def computed(answer):
    """Milliseconds between the first layer's begin and the last one's end, as the answer tells."""
    timing = dict(part.strip().split(";dur=")
                  for part in answer.headers["server-timing"].split(","))
    return float(timing["compute"])


def cost(server, body, count):
    """Of one request after the other: (processor time of each, of that the layers), ms."""
    connection, layers = server.connect(), 0
    before = cpu_exact_ms(server.pid)
    for _ in range(count):
        answer = server.request("POST", PATH, body, JSON_TYPE, connection=connection)
        assert answer.status == 200, answer
        layers += computed(answer)
    spent = cpu_exact_ms(server.pid) - before
    connection.close()
    return spent / count, layers / count


def encoder_cost(folder):
    """One worker, one client: the time of the layers is then processor time as well."""
    bodies = bert.write_bodies(folder)
    server = serve(workers=1)
    for case, count in (("b1 s16", 100), ("b1 s128", 30), ("b8 s128", 5)):
        with open(bodies[case], "rb") as file:
            body = file.read()
        cost(server, body, 2)  # warm
        spent, layers = min(cost(server, body, count) for _ in range(TURNS))
        line(f"{bert.NAME} {case}, CPU of a request; its layers", f"{spent:.2f} ms",
             f"{layers:.2f} ms", spent / layers)
        print(f"    {spent - layers:.2f} ms beyond the layers, of {count} requests a turn")
    server.stop()


def until_ready(server):
    wait_until(lambda: server.get("/readyz").status == 200, step=0.002)


def reload(server):
    """Milliseconds from SIGHUP until the new model serves."""
    before, begun = server.metric("attend_reloads_total"), time.monotonic()
    server.signal(signal.SIGHUP)
    wait_until(lambda: server.metric("attend_reloads_total") > before, step=0.005)
    assert server.metric("attend_reloads_total", 'result="failed"') == 0, server.stderr()
    return (time.monotonic() - begun) * 1e3


def encoder_startup(_):
    """From exec to the first 200 of /readyz, and what it holds; the file is in the page cache."""
    file = os.path.getsize(os.path.join(bert.folder(), "model.safetensors"))
    starts, reloads, resident, peak = [], [], [], []
    for _ in range(3):
        begun = time.monotonic()
        server = serve()
        until_ready(server)
        starts.append((time.monotonic() - begun) * 1e3)
        resident.append(memory(server.pid)[0])
        reloads.append(reload(server))
        peak.append(memory(server.pid)[1])
        server.stop()
    line(f"start with {bert.NAME} ({file / 1e6:.0f} MB) until it is ready", f"{min(starts):.0f} ms")
    line("resident then; its file", f"{min(resident) / 1e6:.0f} MB", f"{file / 1e6:.0f} MB",
         min(resident) / file)
    line("reload, until the new model serves", f"{min(reloads):.0f} ms",
         f"{min(starts):.0f} ms, start", min(reloads) / min(starts))
    line("resident at most; its file", f"{min(peak) / 1e6:.0f} MB", f"{file / 1e6:.0f} MB",
         min(peak) / file)
