"""support: what the HTTP tests share: a server of their own, raw sockets, layers.

Everything is standard library. The program is $ATTEND_BIN, else build/release/attend. A server
listens on a free port of 127.0.0.1 and is ended by its process id with SIGTERM; a test fails if
it does not exit with status 0, which is also how the sanitizers' complaints show.
"""
import array
import functools
import glob
import http.client
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from oracle import Oracle

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GOLDEN = os.path.join(ROOT, "tests", "golden")
BIN = os.environ.get("ATTEND_BIN") or os.path.join(ROOT, "build", "release", "attend")
MODE = os.environ.get("ATTEND_MODE", "release")
SLOW = {"release": 1, "asan": 4, "tsan": 10}.get(MODE, 4)  # as it makes everything
# Seconds, for whatever is waited for: what ends a test that hangs, and nothing else, so it is many
# times what a busy machine takes. Tests wait for events; a time is only ever waited through.
PATIENCE = 300
# Milliseconds, where a test says nothing: deadlines that it does not meet by being slow, and a stop
# without a pause.
TIMES = {"deadline_ms": 900000, "drain_ms": 200000, "drain_delay_ms": 0}
JSON_TYPE = {"Content-Type": "application/json"}


# --- numbers ---------------------------------------------------------------------------------------

def f32(x):
    """x rounded to float32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def randoms(rng, *shape):
    """Nested lists of normal float32 numbers."""
    if not shape:
        return f32(rng.gauss(0, 1))
    return [randoms(rng, *shape[1:]) for _ in range(shape[0])]


def flat(x):
    """The numbers of a nested list, in order."""
    if isinstance(x, list):
        for part in x:
            yield from flat(part)
    else:
        yield x


def nest(numbers, shape):
    """A flat list as nested lists of that shape."""
    if len(shape) <= 1:
        return list(numbers)
    step = len(numbers) // shape[0] if shape[0] else 0
    return [nest(numbers[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


# --- safetensors -----------------------------------------------------------------------------------

FORMATS = {"F32": ("f", 4), "F64": ("d", 8), "I32": ("i", 4), "I64": ("q", 8), "U8": ("B", 1),
           "BOOL": ("B", 1)}


def read_safetensors(path):
    """(tensors as name -> (shape, flat list), metadata) of a file."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        numbers = array.array(FORMATS[entry["dtype"]][0])
        numbers.frombytes(data[8 + size + begin:8 + size + end])
        tensors[name] = (entry["shape"], list(numbers))
    return tensors, metadata


REQUEST_TENSORS = ("queries", "keys", "values", "valid_lens", "mask", "bias", "head_mask",
                   "segments")


def read_golden(path):
    """A golden file: the model's definition, its tensors (none: it needs no checkpoint), the
    request, and the answer's members."""
    tensors, metadata = read_safetensors(path)
    request, expected = json.loads(metadata["request"]), {}
    for name in list(tensors):
        if name in REQUEST_TENSORS or name.startswith("expected."):
            shape, numbers = tensors.pop(name)
            into = request if name in REQUEST_TENSORS else expected
            into[name.replace("expected.", "")] = nest(numbers, shape)
    return json.loads(metadata["model"]), tensors, dict(request, return_attention=True), expected


def safetensors_bytes(tensors, dtype="F32"):
    """The bytes of a file with `tensors`, name -> (shape, flat list)."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        raw = array.array(FORMATS[dtype][0], numbers).tobytes()
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# --- layers ----------------------------------------------------------------------------------------

class Layer:
    """A small layer of random numbers: its definition, its checkpoint, and its oracle."""

    def __init__(self, seed, query_size, heads, kv_heads=None, head_size=None, key_head_size=None,
                 key_size=None, value_size=None, output_size=None, bias=True, projection="linear",
                 **more):
        """`more` are further keys of the definition. `output_size` without a projection: an output
        projection is given all the same."""
        self.rng = random.Random(seed)
        self.bias, self.projection = bias, projection
        self.heads, self.kv_heads = heads, kv_heads or heads
        self.head_size = head_size or query_size // heads
        self.key_head_size = key_head_size or self.head_size
        self.hidden = heads * self.head_size
        narrow = self.kv_heads * self.head_size
        self.query_size = query_size
        projected = projection != "none"
        self.key_size = key_size or (query_size if projected
                                     else self.kv_heads * self.key_head_size)
        self.value_size = value_size or (query_size if projected else narrow)
        context = self.hidden if projected else self.value_size // self.kv_heads * heads
        self.output_size = output_size or (query_size if projected else context)
        self.tensors = {}  # name -> (shape, flat list)
        if projected:
            self.matrix("query", self.hidden, query_size // self.parts(heads))
            self.matrix("key", self.kv_heads * self.key_head_size,
                        self.key_size // self.parts(self.kv_heads))
            self.matrix("value", narrow, self.value_size // self.parts(self.kv_heads))
        if projected or output_size:
            self.matrix("output", self.output_size, context)
        self.parameters(more.get("score", "scaled_dot"), more.pop("score_size", 5))
        self.model = dict(self.sizes(output_size), **more)
        self.oracle = Oracle(self.model, self.tensors)

    def parts(self, heads):
        """Slices that the input's columns are cut into."""
        return heads if self.projection == "grouped" else 1

    def numbers(self, count, size=1.0):
        return [f32(self.rng.gauss(0, size)) for _ in range(count)]

    def matrix(self, role, out, size):
        self.tensors[f"{role}.weight"] = ([out, size],
                                          self.numbers(out * size, 1 / math.sqrt(size)))
        if self.bias:
            self.tensors[f"{role}.bias"] = ([out], self.numbers(out))

    def parameters(self, score, a):
        """Those of the score, such that scores are of unit scale."""
        d, d_k = self.head_size, self.key_head_size
        if score == "additive":
            for role, size in (("query", d), ("key", d_k)):
                self.tensors[f"score.{role}"] = ([a, size], self.numbers(a * size, size ** -0.5))
            shape = [1, a] if self.heads % 2 else [a]  # both are taken
            self.tensors["score.vector"] = (shape, self.numbers(a, 2 * a ** -0.5))
        if score == "bilinear":
            self.tensors["score.weight"] = ([d_k, d], self.numbers(d * d_k, (d * d_k) ** -0.5))

    def sizes(self, output_size):
        """What the definition must say, because the checkpoint does not tell it."""
        sizes = {"heads": self.heads, "kv_heads": self.kv_heads}
        if self.projection != "linear":
            sizes.update(projection=self.projection, query_size=self.query_size,
                         key_size=self.key_size, value_size=self.value_size)
            if output_size:
                sizes["output_projection"] = True
        return sizes

    def checkpoint(self):
        return safetensors_bytes(self.tensors)

    def definition(self, folder, name):
        """Writes the checkpoint into `folder` and returns the model's definition."""
        if not self.tensors:
            return self.model
        with open(os.path.join(folder, name + ".safetensors"), "wb") as file:
            file.write(self.checkpoint())
        return dict(self.model, checkpoint=name + ".safetensors")


# --- the server ------------------------------------------------------------------------------------

class Answer:
    """Status, headers (names in lower case; the last one wins) and body of a response."""

    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {name.lower(): value for name, value in headers}

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:300]!r}"


def clean_environment(extra=None):
    """What a program of a test gets; an extra variable that is None is left out."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("ATTEND_") or k in ("ATTEND_CPU", "ATTEND_GEMM")}
    env["OPENBLAS_NUM_THREADS"] = "1"
    env.update(extra or {})
    return {k: v for k, v in env.items() if v is not None}


def resident(pid):
    """Bytes of memory the process holds."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Server:
    """A running `attend serve`."""

    def __init__(self, config=None, *args, env=None, preexec=None, folder=None, command=(),
                 listen=True, **options):
        """`config` is the configuration as an object; `args` are further words of the command
        line. `folder` is where the configuration lies, for checkpoints beside it. Without `listen`
        the address is not on the command line. `options` are Popen's."""
        self.own = None if folder else tempfile.mkdtemp(prefix="attend-test-")
        self.folder = folder or self.own
        words = list(command) + [BIN, "serve"]
        if config is not None:
            path = os.path.join(self.folder, "attend.json")
            with open(path, "w") as file:
                json.dump(config, file)
            words += ["--config", path]
        if listen and not any(w.startswith("--listen") for w in args):
            words += ["--listen", "127.0.0.1:0"]
        for name, most in TIMES.items():
            flag = "--" + name.replace("_", "-")
            if flag not in args and name not in (config or {}):
                words += [flag, str(most)]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words + list(args), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log,
                                        env=clean_environment(env), preexec_fn=preexec, **options)
        self.pid = self.process.pid
        self.lines = []
        self.ready = threading.Event()
        self.port = self.admin = None  # of the two addresses, where it has them
        self.reader = threading.Thread(target=self.read_lines, daemon=True)
        self.reader.start()
        if not self.ready.wait(PATIENCE) or self.port is None:
            self.kill()
            raise AssertionError(f"no ready line; exit status {self.process.returncode}\n"
                                 f"{''.join(self.lines)}{self.stderr()}")

    def read_lines(self):
        for line in self.process.stdout:
            text = line.decode("utf-8", "replace")
            self.lines.append(text)
            found = re.search(r"^admin listening on \S*?:(\d+)\s*$", text)
            if found:
                self.admin = int(found.group(1))
            found = re.search(r"^listening on \S*?:(\d+)\s*$", text)
            if found and self.port is None:
                self.port = int(found.group(1))
                self.ready.set()
        self.ready.set()

    def stderr(self):
        """What it has written so far. Not by seeking: the server writes at the same place."""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0).decode("utf-8", "replace")

    def told(self, pattern):
        """Waits until standard error holds the pattern: the log has a thread of its own."""
        wait_until(lambda: re.search(pattern, self.stderr()), step=0.01)
        found = re.search(pattern, self.stderr())
        if not found:
            raise AssertionError(f"{pattern} is not in:\n{self.stderr()}")
        return found

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self):
        """The exit status."""
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not stop within {PATIENCE} s\n{self.stderr()[-3000:]}")
        self.reader.join(PATIENCE)
        self.clean()
        return status

    def stop(self, expected=0):
        """SIGTERM, and the exit status must be right."""
        if self.process.poll() is None:
            self.signal()
        status = self.wait()
        if status != expected:
            raise AssertionError(f"exit status {status}, not {expected}\n{self.stderr()[-5000:]}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.clean()

    def clean(self):
        if self.own:
            shutil.rmtree(self.own, ignore_errors=True)
            self.own = None

    # --- requests ---

    def connect(self, port=None):
        return http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=PATIENCE)

    def request(self, method, path, body=None, headers=None, connection=None, **options):
        own = connection is None
        connection = connection or self.connect()
        try:
            connection.request(method, path, body, headers or {}, **options)
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())
        finally:
            if own:
                connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body, headers=None, **options):
        """`body` is bytes, or an object that becomes JSON."""
        if not isinstance(body, (bytes, bytearray)):
            body = json.dumps(body).encode()
        return self.request("POST", path, body, dict(JSON_TYPE, **(headers or {})), **options)

    def ask_admin(self, path, method="GET", body=None):
        """The same at the admin address."""
        connection = self.connect(port=self.admin)
        try:
            return self.request(method, path, body, connection=connection)
        finally:
            connection.close()

    def attend(self, request, model=None, **options):
        path = f"/v1/models/{model}/attention" if model else "/v1/attention"
        return self.post(path, request, **options)

    def metric(self, name, labels="", admin=False, connection=None):
        """The value of a metric, summed over the label sets that contain `labels`. The admin
        address tells it in a full house, too."""
        total, found = 0.0, False
        answer = (self.ask_admin("/metrics") if admin
                  else self.get("/metrics", connection=connection))
        for line in answer.body.decode().splitlines():
            match = re.fullmatch(rf"{name}(\{{[^}}]*\}})? (\S+)", line)
            if match and labels in (match.group(1) or ""):
                total, found = total + float(match.group(2)), True
        if not found:
            raise AssertionError(f"no metric {name}{labels}")
        return total

    def resident(self):
        """Bytes of memory the process holds."""
        return resident(self.pid)

    def most_resident(self):
        """The most bytes of memory that the process has ever held."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))

    def computed(self, threads=None):
        """Seconds of processor time that it has used, or its threads of this name, which do not depend on what else is busy."""
        total = 0
        for stat in glob.glob(f"/proc/{self.pid}/task/*/stat") if threads else [f"/proc/{self.pid}/stat"]:
            with open(stat) as file:
                name, _, fields = file.read().partition("(")[2].rpartition(")")
            if name == threads or not threads:
                total += sum(map(int, fields.split()[11:13]))
        return total / os.sysconf("SC_CLK_TCK")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


class Raw:
    """A socket that sends the bytes it is told to and reads what comes."""

    def __init__(self, server, port=None):
        self.socket = socket.create_connection(("127.0.0.1", port or server.port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))
        return self

    def more(self):
        """Reads what comes next; False at the end of the stream (a reset counts as an end)."""
        try:
            part = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self.data += part
        return bool(part)

    def closed(self):
        """True once the server closes; what it says before that is kept."""
        try:
            while self.more():
                pass
        except (TimeoutError, socket.timeout):
            return False
        return True

    def answer(self, head=False):
        """The next response, or None if the connection ends before one. Interim answers (100) are
        returned like others."""
        while b"\r\n\r\n" not in self.data:
            if not self.more():
                return None
        lines = self.cut(b"\r\n\r\n").decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        names = {name.lower(): value for name, value in headers}
        body = b""
        if status >= 200 and status not in (204, 304) and not head:
            if names.get("transfer-encoding", "").lower() == "chunked":
                body = self.chunks()
            elif "content-length" in names:
                body = self.take(int(names["content-length"]))
            else:
                while self.more():
                    pass
                body = self.take(len(self.data))
        return Answer(status, headers, body)

    def take(self, size):
        while len(self.data) < size:
            if not self.more():
                raise AssertionError(f"the answer ends after {len(self.data)} of {size} bytes")
        body = bytes(self.data[:size])
        del self.data[:size]
        return body

    def cut(self, mark):
        """What has arrived up to the mark, which is dropped."""
        part = self.take(self.data.index(mark))
        self.take(len(mark))
        return part

    def line(self):
        while b"\r\n" not in self.data:
            if not self.more():
                raise AssertionError("the answer ends within a chunk head")
        return self.cut(b"\r\n")

    def chunks(self):
        body = b""
        while True:
            size = int(self.line().split(b";")[0], 16)
            part = self.take(size)
            if size == 0:
                self.line()
                return body
            body += part
            self.line()


class Trickle:
    """Sends bytes one by one on a thread of its own, until it is to finish or nobody takes them."""
    longest = 0  # seconds between two bytes, of all trickles of a test

    def __init__(self, raw, data):
        self.raw, self.data, self.sent, self.last = raw, data, 0, time.monotonic()
        self.hurry = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hurry.set()
        self.thread.join()

    def run(self):
        try:
            while self.sent < len(self.data) and not self.hurry.wait(0.02):
                self.send(self.sent + 1)
        except OSError:
            pass

    def send(self, end):
        self.raw.send(self.data[self.sent:end])
        now = time.monotonic()
        Trickle.longest = max(Trickle.longest, now - self.last)
        self.sent, self.last = end, now

    def finish(self):
        """Sends the rest at once."""
        self.__exit__()
        self.send(len(self.data))


def with_trickles(test):
    """A test that is repeated where it failed with a trickle held up: a busy machine made it stall."""
    @functools.wraps(test)
    def run(self):
        for _ in range(20):
            Trickle.longest = 0
            try:
                return test(self)
            except AssertionError:
                if Trickle.longest < 0.3:
                    raise
        return self.fail("this machine is too busy to trickle")
    return run


def head_of(path, length=None, *headers, method="POST"):
    """A request head as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: test"]
    if method == "POST":
        lines.append("Content-Type: application/json")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines + list(headers)) + "\r\n\r\n").encode("latin-1")


def chunked(body, sizes):
    """`body` in chunked transfer coding, cut into parts of those sizes, the last one repeated."""
    out, at, turn = [], 0, 0
    while at < len(body):
        size = sizes[min(turn, len(sizes) - 1)]
        part = body[at:at + size]
        out.append(b"%x\r\n%s\r\n" % (len(part), part))
        at, turn = at + size, turn + 1
    return b"".join(out) + b"0\r\n\r\n"


def wait_until(condition, seconds=PATIENCE, step=0.02):
    """Waits until condition() is true; returns whether it became so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


def attend(*args, data=None, env=None, **options):
    """Runs the program to its end: (exit status, standard output, standard error as text)."""
    done = subprocess.run([BIN, *args], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=clean_environment(env), timeout=PATIENCE, check=False, **options)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def preloaded(source):
    """A library made of tests/http/SOURCE, for LD_PRELOAD: (its folder, its path)."""
    folder = tempfile.mkdtemp(prefix="attend-test-")
    library = os.path.join(folder, os.path.splitext(source)[0] + ".so")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-Wextra", "-shared", "-fPIC",
                    "-fno-builtin", "-o", library, os.path.join(HERE, source), "-ldl"], check=True)
    return folder, library


# --- the tests' base -------------------------------------------------------------------------------

TOY = {"queries": [[[1, 0, 0, 1], [0, 1, 1, 0]]],
       "keys": [[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]],
       "values": [[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]],
       "valid_lens": [2], "return_attention": True}


def big_body(rows):
    """Self-attention on `rows` rows of the model base: little text, much work."""
    row = b"[" + b",".join([b"1,0,2,0.5"] * 128) + b"]"
    return b'{"queries":[[' + b",".join([row] * rows) + b"]]}"


BIG_ROWS = {"release": 3000, "tsan": 250}.get(MODE, 600)
BIG = big_body(BIG_ROWS)  # some tenths of a second of one worker
BIG_PATH = "/v1/models/base/attention"


class Case(unittest.TestCase):
    """A test with checks of answers."""

    def close_to(self, actual, expected, tolerance, what=""):
        """Both nested lists have one shape and differ by at most `tolerance` anywhere."""
        self.same_shape(actual, expected, what)
        worst = max((abs(a - b) for a, b in zip(flat(actual), flat(expected))), default=0.0)
        self.assertLessEqual(worst, tolerance, f"{what}: off by {worst:.3g}")

    def same_shape(self, actual, expected, what=""):
        self.assertEqual(isinstance(actual, list), isinstance(expected, list), what)
        if isinstance(expected, list):
            self.assertEqual(len(actual), len(expected), f"{what}: length")
            for a, b in zip(actual, expected):
                if isinstance(b, list) or isinstance(a, list):
                    self.same_shape(a, b, what)

    def ok(self, answer):
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers.get("content-type"), "application/json")
        return answer.json

    def problem(self, answer, status, slug, pointer=None, offset=None, limit=None):
        """The answer is a problem document of that kind; returns it."""
        self.assertIsNotNone(answer, f"no answer where {status} {slug} was due")
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers.get("content-type"), "application/problem+json", answer)
        body = answer.json
        self.assertEqual(body.get("type"), f"/problems/{slug}", answer)
        self.assertEqual(body.get("status"), status, answer)
        self.assertTrue(body.get("title") and body.get("detail"), answer)
        if pointer is not None:
            self.assertEqual(body.get("pointer"), pointer, answer)
        if offset is not None:
            self.assertEqual(body.get("offset"), offset, answer)
        if limit is not None:
            self.assertEqual(body.get("limit"), limit, answer)
        return body


class ServerCase(Case):
    """Tests that share one server, made by the class's start()."""

    @classmethod
    def start(cls):
        return Server()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def alive(self):
        """The server works as on its first day."""
        self.assertEqual(self.server.get("/healthz").status, 200)
        self.assertEqual(self.server.attend(TOY, model=getattr(self, "toy_model", None)).status, 200)

    def settled(self):
        """Nothing of past requests is left in memory."""
        self.assertTrue(wait_until(lambda: self.server.metric("attend_inflight_bytes") == 0),
                        "attend_inflight_bytes does not return to 0")


class FolderCase(ServerCase):
    """The same with a folder, in which start() may write."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder, ignore_errors=True)
