"""test_process: the process and its host: settings, checkpoints, load, deadlines, places."""
import contextlib
import http.client
import itertools
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from support import (BIG, BIG_PATH, BIG_ROWS, BIN, MODE, PATIENCE, ROOT, SLOW, TOY, Case, Layer, Raw,
                     Server, attend, big_body, clean_environment, head_of, resident,
                     safetensors_bytes, wait_until)

SERVE = os.path.join(ROOT, "tests", "serve")
BODY = json.dumps(TOY).encode()
PATH = "/v1/attention"


def seconds_of_threads(pid, name=""):
    """Processor time of each thread of that name, of all without one."""
    seconds = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as file:
            if name not in file.read():
                continue
        with open(f"/proc/{pid}/task/{task}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
            seconds[task] = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return seconds


class Folder(Case):
    """Tests with a folder of their own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        if not isinstance(content, (bytes, str)):
            content = json.dumps(content)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path


@unittest.skipIf(MODE == "tsan", "no thread has begun where these end")
class Settings(Folder):
    def refused(self, args, *words, env=None):
        """Exit status 2, nothing served, and one line that has all those words."""
        with self.subTest(args=args, env=env):
            status, out, err = attend("serve", "--listen", "127.0.0.1:0", *args, env=env)
            self.assertEqual(status, 2, err)
            self.assertNotIn(b"listening", out)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
            for word in words:
                self.assertIn(word, err)

    def in_file(self, content, *words):
        self.refused(["--config", self.write("attend.json", content)], *words)

    def test_unknown_settings_name_the_nearest(self):
        self.refused(["--max-qeue", "5"], "max-qeue", "max-queue")
        self.refused(["--max-qeue=5"], "max-qeue", "max-queue")
        self.refused([], "ATTEND_WORKRES", "ATTEND_WORKERS", env={"ATTEND_WORKRES": "5"})
        self.in_file({"body_timeout": 5}, "body_timeout", "body_timeout_ms")
        self.in_file({"model": {}}, "model", "models")

    def test_values_of_the_wrong_kind_or_range(self):
        for value in ("abc", "-1", "0", "1.5", "", "99999999999999999999", "5x", "1e3"):
            self.refused(["--max-queue", value], "max-queue")
            self.refused([], "MAX_QUEUE", env={"ATTEND_MAX_QUEUE": value})
        self.refused(["--merge=maybe"], "merge")
        self.refused(["--log-level", "loud"], "log-level", "debug")
        self.refused(["--max-queue"], "max-queue")
        for value in ("5", 1.5, True, None, [], -1, 0, 1 << 40):
            self.in_file({"max_queue": value}, "max_queue")
        self.in_file({"merge": 1}, "merge")
        self.in_file({"log_level": "loud"}, "log_level")
        self.in_file({"listen": 8080}, "listen")

    def test_addresses_that_are_none(self):
        for address in ("nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                        "127.0.0.1:http", "[::1:8080", "300.0.0.1:80"):
            with self.subTest(address):
                status, _, err = attend("serve", "--listen", address)
                self.assertIn(status, (1, 2), err)
                self.assertTrue(err)

    def test_files_that_are_none(self):
        self.refused(["--config", os.path.join(self.folder, "missing.json")], "missing.json")
        self.in_file('{"max_queue": 5,}', "attend.json")
        self.in_file('{"max_queue": 5, "max_queue": 6}', "max_queue")
        self.in_file("[]", "attend.json")
        self.in_file("", "attend.json")
        self.in_file(b'{"listen":"\xff"}', "attend.json")

    def test_models_that_are_none(self):
        good = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
        for change, words in (
                ({"hedas": 2}, ("hedas", "heads")), ({"heads": 3}, ("heads",)),
                ({"heads": 0}, ("heads",)), ({"heads": "2"}, ("heads",)),
                ({"kv_heads": 3}, ("kv_heads",)), ({"random": {"sed": 1}}, ("random", "seed")),
                ({"random": {"seed": -1}}, ("seed",)), ({"query_size": 0}, ("query_size",)),
                ({"score": "cosine"}, ("score", "cosine")), ({"projection": "x"}, ("projection",)),
                ({"scale": "1"}, ("scale",)), ({"causal": 1}, ("causal",)),
                ({"checkpoint": "x.safetensors"}, ("checkpoint",))):
            self.in_file({"models": {"m": dict(good, **change)}}, "m", *words)
        self.in_file({"models": {"m": {k: v for k, v in good.items() if k != "heads"}}}, "heads")
        self.in_file({"models": {"m": {"random": {"seed": 1}, "heads": 2}}}, "query_size")
        self.in_file({"models": {"a/b/c": good}}, "a/b/c")
        self.in_file({"models": {"": good}}, "name")
        self.in_file({"models": {"x" * 97: good}}, "name")
        self.in_file({"models": {"m": 5}}, "m")
        self.in_file({"models": {"m": good}, "default_model": "n"}, "default_model", "n")

    def test_precedence(self):
        path = self.write("attend.json", {"max_queue": 11, "max_items": 12, "workers": 3})

        def effective(*args, env=None):
            status, out, err = attend("check", *args, env=env)
            self.assertEqual(status, 0, err)
            return json.JSONDecoder().raw_decode(out.decode())[0]

        self.assertEqual(effective()["max_queue"], 1024)
        both = effective("--config", path, "--max-queue=77", env={"ATTEND_MAX_QUEUE": "55",
                                                                 "ATTEND_MAX_ITEMS": "66"})
        self.assertEqual((both["max_queue"], both["max_items"], both["workers"]), (77, 66, 3))
        self.assertEqual(effective(env={"ATTEND_CONFIG": path})["max_queue"], 11)
        printed = self.write("again.json", effective("--config", path))
        self.assertEqual(effective("--config", printed), effective("--config", path))

    def test_what_cannot_be_written_is_no_success(self):
        with open("/dev/full", "wb") as full:
            for command in ("check", "--help", "--version"):
                done = subprocess.run([BIN, command], stdout=full, stderr=subprocess.DEVNULL,
                                      env=clean_environment(), check=False)
                self.assertEqual(done.returncode, 1, command)

    def test_help(self):
        status, out, _ = attend("--help")
        self.assertEqual(status, 0)
        for word in ("serve", "check", "--max-queue", "--listen", "--deadline-ms"):
            self.assertIn(word, out.decode())
        self.assertIn("default:\n                                /healthz at admin_listen or listen)", out.decode())
        self.assertLessEqual(max(map(len, out.decode().splitlines()[1:])), 80)
        for words in (("help",), ("-h",), ("run", "--help"), ("help", "run"), ("--help", "--help"), ("serve", "-h")):
            self.assertEqual(attend(*words)[:2], (0, out), words)

    def test_help_of_a_setting(self):
        status, out, _ = attend("help", "listen")
        self.assertEqual(status, 0)
        for form in ("127.0.0.1:8080", "[::1]:8080", "localhost:8080", "0.0.0.0:8080", "*:8080"):
            self.assertRegex(out.decode(), rf"[ ,(]{re.escape(form)}[ ,.]")
        self.assertIn("Port 0", out.decode())
        for words in (("--help", "--listen"), ("help", "ATTEND_LISTEN"), ("-h", "listen", "more")):
            self.assertEqual(attend(*words)[:2], (0, out), words)
        self.assertEqual(attend("help", "lister"), (2, b"", 'attend: unknown setting "lister" (did you mean "listen"?)\n'))

    def test_unknown_commands(self):
        self.assertEqual(attend("severe")[0], 2)

    def test_run_in_any_order(self):
        config = self.write("attend.json", {"models": {
            "one": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}})
        body = json.dumps({"queries": [[1, 0, 0, 1]]})
        file = self.write("request.json", body)
        for heads in ([], ["--heads"]):
            right = attend("run", "one", *heads, "--config", config, data=body.encode())
            self.assertEqual(right[0], 0, right)
            for words in itertools.permutations((["one", file], ["--config", config],
                                                 ["--no-merge", "--workers=1"], heads)):
                words = [word for group in words for word in group]
                self.assertEqual(attend("run", *words), right, words)
        self.assertEqual(attend("run", "--config", config, "one", data=body.encode())[0], 0)
        for words, status, told in ((["--config", config], 2, "needs the name of a model"),
                                    (["one", self.folder + "/none", "--config", config], 1,
                                     "none: No such file"),
                                    (["one", self.folder, "--config", config], 1, "directory"),
                                    (["demo", file, "more"], 2, 'unexpected argument "more"'),
                                    (["demo", "--config"], 2, "--config: needs a path")):
            got = attend("run", *words)
            self.assertEqual(got[:2], (status, b""), words)
            self.assertIn(told, got[2])
            self.assertEqual(len(got[2].splitlines()), 1)

    def test_a_configuration_without_its_switch(self):
        for words in (["attend.json"], ["serve", "attend.json"], ["check", "../attend.json"]):
            status, _, err = attend(*words)
            self.assertEqual(status, 2)
            self.assertIn(f'unexpected argument "{words[-1]}": use --config {words[-1]}', err)

    def test_several_models(self):
        good = {"random": {"seed": 1}, "query_size": 4, "heads": 2}
        server = Server({"models": {"one": good, "two": dict(good, random={"seed": 2})},
                         "default_model": "two"})
        try:
            self.assertEqual(server.attend(TOY).json["model"], "two")
            self.assertNotEqual(server.attend(TOY, "one").json["outputs"],
                                server.attend(TOY, "two").json["outputs"])
        finally:
            server.stop()
        server = Server({"models": {"one": good, "two": good}})
        try:
            self.assertEqual(server.attend(TOY).json["model"], "one")
            self.assertEqual(server.attend(TOY, "one").json["outputs"],
                             server.attend(TOY, "two").json["outputs"])
        finally:
            server.stop()


class Start(Folder):
    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            status, _, err = attend("serve", "--listen", address)
        self.assertEqual(status, 1, err)
        self.assertIn(address, err)

    def test_ready_line_and_health(self):
        server = Server()
        try:
            lines = [line for line in server.lines if "listening" in line]
            self.assertEqual(len(lines), 1)
            self.assertRegex(lines[0], r"listening on 127\.0\.0\.1:\d+\n$")
            listen = {"ATTEND_LISTEN": f"127.0.0.1:{server.port}"}
            self.assertEqual(attend("health", env=listen)[0], 0)
        finally:
            server.stop()
        self.assertNotEqual(attend("health", env=listen)[0], 0)

    def test_what_to_open(self):
        """What `make run` adds where there is a page. All else is the server's own."""
        for address, more, opened in (("127.0.0.1", (), "127.0.0.1"),
                                      ("127.0.0.1", ("--page", "false"), None),
                                      ("0.0.0.0", ("--access-log", "all"), "127.0.0.1")):
            process = subprocess.Popen([SERVE, BIN, "--listen", f"{address}:0", *more],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, env=clean_environment())
            try:
                line = process.stdout.readline().decode()
                self.assertRegex(line, rf"^listening on {re.escape(address)}:\d+\n$")
                port = int(line.rsplit(":", 1)[1])
                if opened:
                    self.assertEqual(process.stdout.readline().decode(),
                                     f"open http://{opened}:{port}/\n")
                    connection = http.client.HTTPConnection(opened, port, timeout=30 * SLOW)
                    connection.request("GET", "/")
                    self.assertIn("text/html", connection.getresponse().headers["Content-Type"])
                    connection.close()
                process.send_signal(signal.SIGTERM)
                rest = process.stdout.read()
                self.assertEqual(process.wait(60 * SLOW), 0)
                self.assertNotIn(b"open", rest)
                self.assertEqual(b'"path":"/"' in rest, "all" in more, rest)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            done = subprocess.run([SERVE, BIN, "--listen", address], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  env=clean_environment(), timeout=60 * SLOW)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        self.assertIn(address.encode(), done.stderr)

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as probe:
                probe.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        server = Server(None, "--listen", "[::1]:0")
        try:
            with socket.create_connection(("::1", server.port), 5) as s:
                s.sendall(head_of("/healthz", method="GET"))
                self.assertIn(b" 200 ", s.recv(1000))
            status, _, err = attend("serve", "--listen", f"[::1]:{server.port}")
            self.assertEqual(status, 1, err)
            self.assertIn(f"cannot listen on [::1]:{server.port}: ", err)
        finally:
            server.stop()

    def test_few_descriptors(self):
        """The soft limit is raised; start fails only if the hard one cannot hold the connections."""
        def limit(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        server = Server(None, "--max-connections", "200", preexec=limit(32, 1024))
        raws = [Raw(server) for _ in range(100)]
        try:
            for raw in raws:
                raw.send(head_of("/healthz", method="GET"))
            for raw in raws:
                self.assertEqual(raw.answer().status, 200)
        finally:
            for raw in raws:
                raw.socket.close()
            server.stop()
        status, _, err = attend("serve", "--listen", "127.0.0.1:0", "--max-connections", "200",
                                preexec_fn=limit(64, 64))
        self.assertIn(status, (1, 2), err)
        self.assertIn("descriptors", err)

    def test_affinity_sizes_the_pool(self):
        allowed = sorted(os.sched_getaffinity(0))
        for count in {1, len(allowed)}:
            server = Server(None, preexec=lambda: os.sched_setaffinity(0, set(allowed[:count])))
            try:
                said = rf"\b{count} (workers?|threads?)\b|workers\W+{count}\b"
                # The log has a thread of its own: its lines may come behind the ready line.
                self.assertTrue(wait_until(lambda: re.search(said, server.stderr())),
                                server.stderr())
            finally:
                server.stop()


class SignalsAtStart(Folder):
    """Signals that come while the first models are loaded."""

    def begin(self):
        """A server that is in the middle of it, with the threads that OpenBLAS may start."""
        size, count = (4096, 2) if MODE == "release" else (2048, 3)
        config = self.write("attend.json", {"models": {
            f"slow{i}": {"random": {"seed": i}, "query_size": size, "heads": 2}
            for i in range(count)}})
        process = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--config", config],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   env=clean_environment({"OPENBLAS_NUM_THREADS": None}))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.assertTrue(wait_until(lambda: resident(process.pid) > 100 << 20, step=0.005))
        return process

    def test_stop(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.begin()
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(out, b"")  # it never listened
            self.assertIn(signal.Signals(number).name.encode() + b" received: stopping", err)
            self.assertIn(b"stopped", err)

    def test_reload_and_stop(self):
        process = self.begin()
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
            process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (0, b""), err)

    def test_reload_comes_after_it(self):
        process = self.begin()
        self.write("attend.json", {"models": {"a": {"random": {"seed": 1}, "query_size": 4,
                                                    "heads": 2}}})
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        self.assertIn(b"listening on", process.stdout.readline())
        said = b""
        while b"reloaded in" not in said:
            line = process.stderr.readline()
            self.assertTrue(line, said)
            said += line
        self.assertRegex(said, rb"removed: slow0, slow1(, slow2)?;")
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, rest)
        self.assertNotIn(b"reloaded", rest)


@unittest.skipIf(MODE == "tsan", "no thread has begun where these end")
class Checkpoints(Folder):
    """A checkpoint that is not right keeps the server from starting, with one line about it."""

    def setUp(self):
        super().setUp()
        self.layer = Layer(31, 6, 2)
        self.good = self.layer.checkpoint()
        self.size = struct.unpack_from("<Q", self.good)[0]

    def refused(self, data, *words, name="m.safetensors"):
        if data is not None:
            self.write(name, data)
        config = self.write("attend.json", {"models": {"m": {"checkpoint": name, "heads": 2}}})
        status, out, err = attend("serve", "--listen", "127.0.0.1:0", "--config", config)
        self.assertEqual(status, 2, err)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertNotIn(b"listening", out)
        for word in words:
            self.assertIn(word, err)
        return err

    def header(self, change):
        """The checkpoint with `change` made to its header."""
        header = json.loads(self.good[8:8 + self.size])
        change(header)
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + self.good[8 + self.size:]

    def test_the_good_one(self):
        config = {"models": {"m": {"checkpoint": "m.safetensors", "heads": 2}}}
        self.write("m.safetensors", self.good)
        Server(config, folder=self.folder).stop()
        padded = self.good[8:8 + self.size] + b"   "
        self.write("m.safetensors", struct.pack("<Q", len(padded)) + padded
                   + self.good[8 + self.size:])
        Server(config, folder=self.folder).stop()

    def test_missing_or_no_file(self):
        self.refused(None, "gone.safetensors", name="gone.safetensors")
        os.mkdir(os.path.join(self.folder, "dir.safetensors"))
        self.refused(None, "dir.safetensors", name="dir.safetensors")

    def test_truncated(self):
        for size in (0, 7, 8, 9, 8 + self.size - 1, 8 + self.size, len(self.good) - 1):
            with self.subTest(size):
                self.refused(self.good[:size])

    def test_longer_than_it_says(self):
        self.refused(self.good + b"\0")

    def test_header_sizes(self):
        for size in (0, 1, len(self.good), 1 << 32, (1 << 63), (1 << 64) - 1, 100000001):
            with self.subTest(size):
                self.refused(struct.pack("<Q", size) + self.good[8:])

    def test_any_bit_of_the_header_flipped(self):
        """Refused with status 2 or, where the flip names other legal things, served; never worse."""
        step = 1 if MODE == "release" else 7
        config = self.write("attend.json",
                            {"models": {"m": {"checkpoint": "m.safetensors", "heads": 2}}})
        refused = 0
        for at in range(0, 8 + self.size, step * 3):
            data = bytearray(self.good)
            data[at] ^= 1 << (at % 8)
            self.write("m.safetensors", bytes(data))
            status, _, err = attend("run", "m", "--config", config,
                                    data=b'{"queries":[[[1,2,3,4,5,6]]]}')
            self.assertIn(status, (0, 2), (at, err))
            refused += status == 2
        self.assertGreater(refused, self.size // (step * 3) // 2)

    def test_offsets(self):
        name = "key.weight"
        for begin, end in ((0, 1), (5, 2), (-4, 0), (0, 1 << 62), (1 << 63, 1 << 63)):
            with self.subTest((begin, end)):
                self.refused(self.header(lambda h: h[name].update(data_offsets=[begin, end])))

        def shift(header):  # a hole in front of the last tensor
            last = max(header, key=lambda n: header[n]["data_offsets"][1])
            header[last]["data_offsets"] = [x + 4 for x in header[last]["data_offsets"]]
        self.refused(self.header(shift))
        for value in ([0.0, 144.0], "0,144", [0], [0, 144, 1], None):
            self.refused(self.header(lambda h: h[name].update(data_offsets=value)))

    def test_shapes_and_types(self):
        for change in ({"dtype": "I32"}, {"dtype": "F8"}, {"dtype": 5}, {"shape": [6, 7]},
                       {"shape": [36]}, {"shape": [-6, -6]}, {"shape": [1 << 32, 1 << 32]},
                       {"shape": "6,6"}, {"shape": [6.0, 6]}):
            with self.subTest(change):
                self.refused(self.header(lambda h: h["key.weight"].update(change)), "key.weight")
        for field in ("dtype", "shape", "data_offsets"):
            self.refused(self.header(lambda h: h["key.weight"].pop(field)), "key.weight")
        self.refused(self.header(lambda h: h["key.weight"].update(shape=[4, 9])), "key.weight")

    def test_a_tensor_is_missing(self):
        tensors = {f"{role}.weight": ([6, 6], [0.0] * 36) for role in ("query", "value", "output")}
        self.refused(safetensors_bytes(tensors), "key")

    def test_duplicate_names_and_not_json(self):
        text = self.good[8:8 + self.size].replace(b"query.bias", b"query.x").replace(
            b"value.weight", b"query.weight")
        self.refused(struct.pack("<Q", len(text)) + text + self.good[8 + self.size:])
        self.refused(self.good[:8] + b"[" + self.good[9:])
        self.refused(self.good[:12] + b"\xff" + self.good[13:])

    def test_weights_that_are_not_finite(self):
        for bad in (float("nan"), float("inf"), float("-inf")):
            data = self.good[:-4] + struct.pack("<f", bad)
            last = max((e["data_offsets"][1], n) for n, e in
                       json.loads(self.good[8:8 + self.size]).items())[1]
            self.refused(data, last)

    def test_sizes_that_differ_from_the_definition(self):
        self.write("m.safetensors", self.good)
        for key in ("query_size", "key_size", "value_size", "hidden", "output_size"):
            config = self.write("attend.json", {"models": {"m": {
                "checkpoint": "m.safetensors", "heads": 2, key: 10}}})
            status, _, err = attend("serve", "--listen", "127.0.0.1:0", "--config", config)
            self.assertEqual(status, 2, err)
            self.assertIn(key, err)

    def test_overwritten_while_serving(self):
        path = self.write("m.safetensors", self.good)
        server = Server({"models": {"m": {"checkpoint": "m.safetensors", "heads": 2}}},
                        folder=self.folder)
        try:
            request = {"queries": [[[1, 2, 3, 4, 5, 6]]]}
            before = server.attend(request).body
            with open(path, "r+b") as file:
                file.truncate(0)
            self.assertEqual(server.attend(request).body, before)
            with open(path, "wb") as file:
                file.write(os.urandom(len(self.good)))
            self.assertEqual(server.attend(request).body, before)
        finally:
            server.stop()


class Load(Case):
    def start(self, *args, **options):
        server = Server(None, *args, **options)
        self.addCleanup(server.stop)
        return server

    def test_full_queue(self):
        server = self.start("--workers", "1", "--max-queue", "1", "--merge=false")
        body, clients = (big_body(300), 150) if MODE != "tsan" else (big_body(100), 60)
        with contextlib.ExitStack() as stack:
            raws = [stack.enter_context(Raw(server)) for _ in range(clients)]
            for raw in raws:
                raw.send(head_of(BIG_PATH, len(body)) + body)
            answers = [raw.answer() for raw in raws]
        statuses = sorted(a.status for a in answers)
        self.assertEqual(set(statuses), {200, 429}, statuses)
        for answer in answers:
            if answer.status == 429:
                self.problem(answer, 429, "overloaded")
                self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        self.assertEqual(server.metric("attend_rejected_total"), statuses.count(429))
        self.assertEqual(server.attend(TOY).status, 200)

    def test_deadline(self):
        """What is late is given up in the middle of its work, not computed to its end."""
        server = self.start("--workers", "1")

        def spent(body, timeout, status):
            """Seconds of processor time."""
            before = server.computed()
            answer = server.post(BIG_PATH, body, headers={"X-Timeout-Ms": timeout})
            self.assertEqual(answer.status, status, answer)
            if status == 504:
                self.problem(answer, 504, "deadline-exceeded")
            return server.computed() - before

        whole, read = spent(BIG, "900000", 200), spent(BIG[:-2], "900000", 400)
        for timeout in ("1", "20"):
            cut = min(spent(BIG, timeout, 504) for _ in range(3))
            if MODE == "release":  # where a sanitizer slows the rest down more than computing
                self.assertLess(cut, (read + whole) / 2)
        self.assertEqual(server.attend(TOY, headers={"X-Timeout-Ms": "5000"}).status, 200)
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))

    def test_deadline_of_measures(self):
        """Heads are compared two by two: a small body is a lot of work, which is cut up all the
        same. The one worker answers others beside it."""
        server = Server({"models": {
            "tiny": {"random": {"seed": 1}, "query_size": 4, "heads": 2},
            "many": {"random": {"seed": 1}, "query_size": 1, "heads": 800, "hidden": 800}}},
            "--workers", "1")
        self.addCleanup(server.stop)
        path, body = "/v1/models/many/heads", json.dumps({"queries": [[[1]]],
                                                          "keys": [[[1]] * 30000]}).encode()
        with Raw(server) as heavy:
            heavy.send(head_of(path, len(body)) + body)
            self.assertTrue(wait_until(lambda: server.metric("attend_running") == 1))
            for _ in range(10):
                self.assertEqual(server.attend(TOY, "tiny").status, 200)
            self.assertEqual(select.select([heavy.socket], [], [], 0)[0], [], "it is done already")
        self.assertTrue(wait_until(lambda: server.metric("attend_running") == 0))
        self.problem(server.post(path, body, headers={"X-Timeout-Ms": "500"}), 504,
                     "deadline-exceeded")

    def test_deadline_setting(self):
        server = self.start("--workers", "1", "--deadline-ms", "5")
        self.problem(server.post(BIG_PATH, BIG), 504, "deadline-exceeded")
        self.problem(server.post(BIG_PATH, BIG, headers={"X-Timeout-Ms": "60000"}), 504,
                     "deadline-exceeded")

    def test_clients_gone_while_queued_are_not_computed(self):
        server = self.start("--workers", "1", "--merge=false")
        before = server.computed()
        self.assertEqual(server.post(BIG_PATH, BIG).status, 200)
        one = server.computed() - before
        raws = [Raw(server).send(head_of(BIG_PATH, len(BIG)) + BIG) for _ in range(20)]
        received = 15 * BIG_ROWS * 512 * 4  # bytes: most of the queries are there
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") >= received))
        for raw in raws:
            raw.socket.close()
        before = server.computed()
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        if MODE == "release":
            self.assertLess(server.computed() - before, 8 * one + 1)

    def test_clients_gone_behind_bytes_nobody_reads(self):
        """Bytes of a next request lie before the end of the stream."""
        server = self.start("--workers", "1", "--merge=false")
        rows = 8000 if MODE == "release" else 2000  # some hundredths of a second
        body = f'{{"queries":[[{",".join(["[1,0,0,1]"] * rows)}]]}}'.encode()
        count = 20
        raws = [Raw(server).send(head_of("/v1/attention", len(body)) + body) for _ in range(count)]
        self.assertTrue(wait_until(lambda: server.metric("attend_queue_depth") >= count - 8))
        for raw in raws:
            raw.send(head_of("/healthz", method="GET"))
            raw.socket.close()
        self.assertTrue(wait_until(lambda: server.metric("attend_inflight_bytes") == 0))
        self.assertGreater(server.metric("attend_client_aborts_total", 'phase="queue"'), 4)

    def test_a_shared_mask_or_bias_holds_no_socket(self):
        """The thread that reads sockets does not copy it for each item: no answer to another
        client costs that thread as much as a part of the copies. Its processor time is compared,
        which does not depend on what else the machine does."""
        rows, items = 800, 400
        server = self.start("--io-threads", "1")
        item = "[" + ",".join(["[1,0,0,1]"] * rows) + "]"
        for field, number in (("mask", "1"), ("bias", "0.5")):
            plane = ",".join(["[" + ",".join([number] * rows) + "]"] * rows)
            body = f'{{"queries":[{",".join([item] * items)}],"{field}":[{plane}]}}'.encode()
            with self.subTest(field):
                asked = threading.Thread(target=lambda data=body: server.attend(
                    data, headers={"X-Timeout-Ms": "2000"}))
                first = sum(seconds_of_threads(server.pid).values())
                asked.start()
                worst = 0
                while asked.is_alive():
                    begun = seconds_of_threads(server.pid, "attend-io")
                    self.assertEqual(server.get("/healthz").status, 200)
                    ended = seconds_of_threads(server.pid, "attend-io")
                    worst = max(worst, *(ended[each] - begun[each] for each in begun))
                    time.sleep(0.01)
                asked.join()
                total = sum(seconds_of_threads(server.pid).values()) - first
                self.assertLess(worst, total / 10)

    def test_small_requests_pass_large_ones(self):
        """Small ones that come when all large ones are there are answered before these. On a busy
        machine these may be done before one asks; then once more."""
        server = self.start("--workers", "1", "--io-threads", "2")
        self.assertTrue(any(self.pass_large_ones(server) for _ in range(20)),
                        "small requests waited for all the large ones")

    def pass_large_ones(self, server):
        """Were the small ones answered first?"""
        raws = [Raw(server) for _ in range(6)]
        senders = [threading.Thread(target=raw.send, args=(head_of(BIG_PATH, len(BIG)) + BIG,))
                   for raw in raws]
        for sender in senders:
            sender.start()

        def answered():
            return len(select.select([raw.socket for raw in raws], [], [], 0)[0])

        def taken():
            return server.metric("attend_running") + server.metric("attend_queue_depth")

        self.assertTrue(wait_until(lambda: taken() + answered() >= len(raws), step=0.005))
        for _ in range(3):
            self.assertEqual(server.attend(TOY).status, 200)
        first = answered() < len(raws)
        for sender, raw in zip(senders, raws):
            sender.join()
            self.assertEqual(raw.answer().status, 200)
            raw.socket.close()
        return first

    def test_as_many_clients_as_one_wait_may_report(self):
        """libmicrohttpd takes 128 events at once; with exactly so many none may be forgotten."""
        server = Server(None, "--io-threads", "1", "--workers", "1")
        self.addCleanup(server.stop)
        for count in (127, 128, 129, 256):
            with contextlib.ExitStack() as stack:
                raws = [stack.enter_context(Raw(server)) for _ in range(count)]
                for raw in raws:
                    raw.send(head_of("/healthz", method="GET"))
                    self.assertEqual(raw.answer().status, 200)
                server.process.send_signal(signal.SIGSTOP)
                for raw in raws:
                    raw.send(head_of("/healthz", method="GET"))
                server.process.send_signal(signal.SIGCONT)
                for raw in raws:
                    self.assertEqual(raw.answer().status, 200)

    def test_many_clients_at_once(self):
        server = self.start()
        wrong = []

        def client():
            connection = server.connect()
            for _ in range(20):
                answer = server.attend(TOY, connection=connection)
                if answer.status != 200:
                    wrong.append(answer)
            connection.close()

        threads = [threading.Thread(target=client) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Surroundings(Folder):
    """Places that are not comfortable."""

    def try_in(self, command):
        """Serves under `command`, if that works here at all."""
        probe = subprocess.run(command + ["true"], stderr=subprocess.PIPE, check=False)
        if probe.returncode != 0:
            self.skipTest(f"not here: {probe.stderr.decode().strip()}")
        server = Server(None, command=command, folder="/")
        try:
            self.assertEqual(server.attend(TOY).status, 200)
        finally:
            server.stop()

    def test_random_user(self):
        if not shutil.which("setpriv"):
            self.skipTest("no setpriv")
        path = os.path.dirname(BIN)
        while len(path) > 1:
            if not os.stat(path).st_mode & 1:
                self.skipTest(f"{path} is closed to other users")
            path = os.path.dirname(path)
        self.try_in(["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups",
                     "--no-new-privs"])

    def test_read_only_and_no_tmp(self):
        script = ("mount -o bind,remount,ro / 2>/dev/null || mount -o remount,bind,ro /; "
                  "mount -t tmpfs -o ro none /tmp && ! touch /tmp/x 2>/dev/null && exec \"$@\"")
        if BIN.startswith("/tmp/"):
            self.skipTest("the program itself lies in /tmp")
        self.try_in(["unshare", "--mount", "sh", "-c", script, "sh"])

    def test_small_stack_and_no_core(self):
        def limits():
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        server = Server(None, preexec=limits)
        self.assertEqual(server.attend(TOY).status, 200)
        server.attend(b'{"causal":' + b"[" * 100000)
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop()


if __name__ == "__main__":
    unittest.main()
