"""clients: who asks during a soak. Each runs in a process of its own, until it is told to end, and
rests while the server is looked at. What goes wrong is put into a queue, as text."""
import http.client
import os
import random
import socket
import struct
import time

from support import PATIENCE

REFUSED = (429, 503)  # what a server that has too much to do may say


class Client:
    """What all have: a port, a source of chance, and the events that make them go, rest and end."""

    def __init__(self, port, references, seed, go, end, told):
        self.port, self.references = port, references
        self.rng, self.go, self.end, self.told = random.Random(seed), go, end, told
        self.counts = {}

    def count(self, what, by=1):
        self.counts[what] = self.counts.get(what, 0) + by

    def fail(self, text):
        self.told.put(("failure", f"{type(self).__name__}: {text}"))

    def rest(self):
        pass

    def run(self):
        try:
            while not self.end.is_set():
                if self.go.is_set():
                    self.step()
                else:
                    self.rest()
                    self.go.wait(0.1)
        except BaseException as problem:  # whatever it is: the soak is to hear of it
            self.fail(repr(problem))
        self.rest()
        self.told.put(("counts", self.counts))


class Asker(Client):
    """Asks what there is a reference for, and compares every byte."""
    connection = None

    def rest(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def body(self, reference):
        """Whole, or in chunks of any size."""
        if self.rng.random() < 0.8:
            return reference.body, {}
        sizes = [self.rng.choice((1, 7, 1000, 65536)) for _ in range(8)]

        def chunks(at=0, turn=0):
            while at < len(reference.body):
                size = sizes[turn] if turn < len(sizes) else 1 << 18
                yield reference.body[at:at + size]
                at, turn = at + size, turn + 1
        return chunks(), {"Transfer-Encoding": "chunked"}

    def step(self):
        reference = self.rng.choice(self.references)
        self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port,
                                                                        timeout=PATIENCE)
        body, headers = self.body(reference)
        self.connection.request("POST", reference.path, body, dict(reference.headers, **headers),
                                encode_chunked=bool(headers))
        response = self.connection.getresponse()
        got = response.read()
        if response.status == 200 and got == reference.right:
            self.count("right")
        elif response.status in REFUSED:
            self.count("refused")
            time.sleep(0.02)
        else:
            self.fail(f"{response.status} to {reference.path}: {got[:200]}, "
                      f"not {reference.right[:200]}")
        if self.rng.random() < 0.02:
            self.rest()


class Leaver(Client):
    """Goes away in the middle: of the head, the body, the work, the answer; politely or not."""

    def step(self):
        reference = self.rng.choice(self.references)
        fields = dict(reference.headers, Host="soak")
        fields["Content-Length"] = str(len(reference.body))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        message = f"POST {reference.path} HTTP/1.1\r\n{head}\r\n".encode() + reference.body
        try:
            with socket.create_connection(("127.0.0.1", self.port), 10) as s:
                whole = self.rng.random() < 0.4
                s.sendall(message if whole else message[:self.rng.randrange(len(message))])
                if whole and self.rng.random() < 0.5:
                    s.settimeout(self.rng.random() * 0.2)
                    s.recv(self.rng.randrange(1, 4000))
                if self.rng.random() < 0.5:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass  # refused, or answered sooner: as good
        self.count("left")


class Nuisance(Client):
    """Sends what is no request, or none of ours, or too slowly."""
    held = ()

    def rest(self):
        for s in self.held:
            s.close()
        self.held = []

    def garbage(self):
        post = b"POST /v1/attention HTTP/1.1\r\nHost: soak\r\nContent-Type: application/json\r\n"
        return self.rng.choice([
            lambda: os.urandom(self.rng.randrange(1, 3000)),
            lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200),
            lambda: b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\n\r\n",
            lambda: post + b"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            lambda: post + b"Content-Length: 99999999999\r\n\r\n" + b"[" * 1000,
            lambda: post + b"Content-Length: 20000\r\n\r\n" + b"[" * 20000,
            lambda: post + b"Content-Length: 13\r\n\r\n" + b'{"queries":1}',
            lambda: b"DELETE /v1/models/no HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n",
        ])()

    def step(self):
        try:
            s = socket.create_connection(("127.0.0.1", self.port), 10)
        except OSError:
            return
        s.settimeout(0.2)
        try:
            if self.rng.random() < 0.2:  # a head or body that never ends; the server's to close
                s.sendall(self.garbage()[:50])
                self.held = [*self.held[-20:], s]
                self.count("held")
                return
            s.sendall(self.garbage())
            while s.recv(65536):
                pass
        except OSError:
            pass
        s.close()
        self.count("garbage")
