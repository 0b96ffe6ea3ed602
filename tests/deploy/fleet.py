"""fleet: several attends behind HAProxy, as docker/haproxy.cfg puts them, on this machine."""
import csv
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from support import JSON_TYPE, PATIENCE, ROOT, TOY, Server, attend

CONFIGURATION = os.path.join(ROOT, "docker", "haproxy.cfg")
POST = os.path.join(ROOT, "tests", "bench", "post.lua")
BODY = json.dumps(TOY).encode()
PATH = "/v1/attention"
DRAIN_DELAY_MS = 2000  # as docker/compose.fleet.yaml sets it
SETTINGS = ("--workers", "1", "--io-threads", "1", "--drain-delay-ms", str(DRAIN_DELAY_MS))


def certificate(folder):
    """A self-signed one for 127.0.0.1, key and all; its path."""
    key, text = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                    "-out", text], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    both = os.path.join(folder, "attend.pem")
    with open(both, "w") as out:
        for part in (key, text):
            with open(part) as file:
                out.write(file.read())
    return both


def local_configuration(replicas):
    """The configuration as it is, but for the servers, which have no DNS name here. `replicas`:
    their ports and those that are asked for health."""
    with open(CONFIGURATION) as file:
        text = file.read()
    lines = [f"    server replica{i} 127.0.0.1:{port} port {health}"
             for i, (port, health) in enumerate(replicas)]
    text, count = re.subn(r"^ *server-template .*$", "\n".join(lines), text, flags=re.M)
    assert count == 1
    return text


class Proxy:
    """HAProxy in front of those replicas."""

    def __init__(self, replicas):
        self.folder = tempfile.mkdtemp(prefix="attend-fleet-")
        self.certificate = certificate(self.folder)
        path, more = (os.path.join(self.folder, n) for n in ("haproxy.cfg", "stats.cfg"))
        self.control = os.path.join(self.folder, "control")
        with open(path, "w") as file:
            file.write(local_configuration(replicas))
        with open(more, "w") as file:
            file.write(f"global\n    stats socket {self.control} level admin\n")
        self.log_path = os.path.join(self.folder, "log")
        with socket.create_server(("127.0.0.1", 0), backlog=1024) as front, \
                open(self.log_path, "wb") as log:
            self.port = front.getsockname()[1]
            self.process = subprocess.Popen(
                ["haproxy", "-db", "-f", path, "-f", more], pass_fds=[front.fileno()],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, FRONT=f"fd@{front.fileno()}", CERTIFICATE=self.certificate))

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def replicas(self):
        """Name -> the row of statistics of each replica."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(self.control)
            control.sendall(b"show stat\n")
            text = b"".join(iter(lambda: control.recv(65536), b"")).decode()
        rows = csv.DictReader(text.lstrip("# ").splitlines())
        return {row["svname"]: row for row in rows if row["svname"].startswith("replica")}

    def wait(self, name, status):
        """Until the replica is UP or DOWN in the eyes of HAProxy, by its own check."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                row = self.replicas()[name]
                if row["status"] == status and row["check_status"] not in ("", "INI"):
                    return
            except OSError:  # it has not started yet
                pass
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"{name} is not {status}\n{self.log()[-3000:]}")
            time.sleep(0.02)

    def connect(self):
        context = ssl.create_default_context(cafile=self.certificate)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE,
                                           context=context)

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Fleet:
    """Three replicas, each of which can be restarted where it was, and the proxy."""

    def __init__(self, count=3):
        self.servers = [Server(None, "--admin-listen", "127.0.0.1:0", *SETTINGS)
                        for _ in range(count)]
        self.ports = [(s.port, s.admin) for s in self.servers]
        self.proxy = Proxy(self.ports)
        for i in range(count):
            self.proxy.wait(f"replica{i}", "UP")

    def start(self, i):
        port, admin = self.ports[i]
        self.servers[i] = Server(None, "--listen", f"127.0.0.1:{port}", "--admin-listen",
                                 f"127.0.0.1:{admin}", *SETTINGS)
        self.proxy.wait(f"replica{i}", "UP")

    def restart(self, i):
        """As an orchestrator would: the old one has left before the new one comes."""
        self.servers[i].stop()
        self.proxy.wait(f"replica{i}", "DOWN")
        self.start(i)

    def kill(self, i):
        self.servers[i].kill()

    def end(self):
        for server in self.servers:
            server.kill()
        self.proxy.end()


class Clients:
    """Clients that post, each on one connection as long as it lives, and look at each byte."""

    def __init__(self, proxy, count, body=BODY, pause=0.002):
        self.proxy, self.body, self.pause = proxy, body, pause
        self.lost, self.answered = [], 0
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.expected = self.ask(proxy.connect(), "0")
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def ask(self, connection, name):
        connection.request("POST", PATH, self.body, dict(JSON_TYPE, **{"X-Request-Id": name}))
        response = connection.getresponse()
        body = response.read()
        if response.status != 200 or response.getheader("X-Request-Id") != name:
            raise AssertionError(f"{response.status} {response.getheaders()} {body[:200]}")
        return body

    def run(self, i):
        connection, number = self.proxy.connect(), 0
        while not self.stop.is_set():
            number += 1
            try:
                same = self.ask(connection, f"client-{i}-{number}") == self.expected
                problem = None if same else "other bytes"
            except (OSError, http.client.HTTPException, AssertionError) as e:
                problem = repr(e)
                connection.close()
                connection = self.proxy.connect()
            with self.lock:
                self.answered += problem is None
                if problem:
                    self.lost.append(f"client-{i}-{number}: {problem}")
            time.sleep(self.pause)
        connection.close()

    def end(self):
        """How many were answered, and what became of the others."""
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return self.answered, self.lost


class Wrk:
    """wrk on the proxy until it is ended."""

    def __init__(self, proxy, connections, body=BODY):
        self.folder = tempfile.mkdtemp(prefix="attend-wrk-")
        path = os.path.join(self.folder, "body")
        with open(path, "wb") as file:
            file.write(body)
        words = [w for name, value in JSON_TYPE.items() for w in ("-H", f"{name}: {value}")]
        self.process = subprocess.Popen(
            ["wrk", "-t1", f"-c{connections}", "-d600s", "--timeout", f"{PATIENCE}s", "-s", POST,
             *words,
             f"https://127.0.0.1:{proxy.port}{PATH}"], env=dict(os.environ, BODY=path),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def end(self):
        """Requests answered, requests lost: errors of the socket, or not 2xx."""
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)
        told = json.loads(next(l for l in out.decode().splitlines() if l.startswith("{")))
        return told["requests"] - told["failed"], told["failed"]
