"""large: the service's figures for large requests: CPU time beside what must be, and memory."""
import http.client
import os
import subprocess
import threading

import bodies
from load import wrk
from process import cpu_ms, memory
from support import JSON_TYPE, Server
from table import line

SHAPE = (8, 64, 64, 512)  # 8.6 MB
CLIENTS = 4
URL = "/v1/models/base/attention"


def program(build, name, *words):
    """The numbers that a program of BUILD/bench prints."""
    out = subprocess.run([os.path.join(build, "bench", name), *words], check=True,
                         stdout=subprocess.PIPE).stdout
    return [float(word) for word in out.split()]


def together(server, body, each, path, headers):
    """`each` requests of each client, all answered: no CPU time goes to half a request."""
    def client():
        connection = server.connect()
        for _ in range(each):
            answer = server.request("POST", path, body, headers, connection=connection)
            assert answer.status == 200, answer
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def cpu_per_request(server, body, path=URL, headers=JSON_TYPE, rounds=4, each=10):
    """(user, system) milliseconds of a request, in the best of the rounds."""
    together(server, body, 2, path, headers)
    best = (1e9, 1e9)
    for _ in range(rounds):
        before = cpu_ms(server.pid)
        together(server, body, each, path, headers)
        spent = [(b - a) / (each * CLIENTS) for a, b in zip(before, cpu_ms(server.pid))]
        best = min(best, tuple(spent), key=sum)
    return best


def large_requests(folder, build):
    path = bodies.write(os.path.join(folder, "large"), *SHAPE)
    with open(path, "rb") as file:
        body = file.read()
    server = Server()
    answer = server.attend(body, "base")
    assert answer.status == 200, answer
    with open(os.path.join(folder, "answer"), "wb") as file:
        file.write(answer.body)
    rate = max(wrk(server.port, path, CLIENTS, 3, URL).rate for _ in range(3))
    user, system = cpu_per_request(server, body)
    timing = server.attend(body, "base").headers.get("server-timing", "")
    server.stop()
    ours, alone = user + system, program(build, "bench_request", path)
    text = program(build, "bench_jansson", path, os.path.join(folder, "answer"))
    line(f"requests of {len(body) / 1e6:.1f} MB (b8 q64 k64 d512), {CLIENTS} clients",
         f"{rate:.1f} /s")
    line("CPU of each; decode + layer + encode alone, one thread", f"{ours:.1f} ms",
         f"{sum(alone):.1f} ms", ours / sum(alone), "<= 1.3", ours <= 1.3 * sum(alone))
    print(f"    user {user:.1f} ms, system {system:.1f} ms; alone: decode {alone[0]:.1f} ms, layer "
          f"{alone[1]:.1f} ms, encode {alone[2]:.1f} ms; one client: {timing}")
    line("the same; json_loadb + json_dumps of the answer, 9 digits", f"{ours:.1f} ms",
         f"{sum(text):.1f} ms", ours / sum(text), "<= 0.07", ours <= 0.07 * sum(text))


def peak_memory(_):
    """200 MB of JSON, sent as they are made and the answer dropped as it comes."""
    items, (_, q, k, d) = 188, SHAPE
    shape = (items, q, k, d)
    size = sum(map(len, bodies.parts(*shape)))
    carried = items * (q + 2 * k) * d * 4
    server = Server()
    server.attend(b"".join(bodies.parts(1, 1, 1, d)), "base")
    idle = memory(server.pid)[0]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("POST", "/v1/models/base/attention", bodies.parts(*shape),
                       dict(JSON_TYPE, **{"Content-Length": str(size)}))
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answered = 0
    while part := answer.read(1 << 20):
        answered += len(part)
    connection.close()
    above = memory(server.pid)[1] - idle
    server.stop()
    line(f"peak memory above idle, a request of {size / 1e6:.0f} MB; its float32",
         f"{above / 1e6:.0f} MB", f"{carried / 1e6:.0f} MB", above / carried, "<= 2.5",
         above <= 2.5 * carried)
    print(f"    what is not sent yet of its answer, {answered / 1e6:.0f} MB of text, included")
