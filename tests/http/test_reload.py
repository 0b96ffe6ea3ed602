"""test_reload: SIGHUP: models are exchanged while requests are served, whole or not at all."""
import contextlib
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import tempfile
import threading
import time
import unittest

from support import (MODE, PATIENCE, TOY, Case, Layer, Raw, Server, attend, head_of, preloaded,
                     randoms, wait_until)

RELOADS = 60 if MODE == "release" else 10
RANDOM = {"random": {"seed": 1}, "query_size": 4, "heads": 2}


def rows(seed, count, size):
    return {"queries": [randoms(random.Random(seed), count, size)]}


class Reload(Case):
    """Tests with a folder, in which files are exchanged as a careful administrator would."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        if not isinstance(content, (bytes, str)):
            content = json.dumps(content)
        with open(path + ".new", "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.replace(path + ".new", path)
        return path

    def configure(self, models, **settings):
        return self.write("attend.json", dict(settings, models=models))

    def start(self, models, *args, settings=None, env=None):
        self.configure(models, **(settings or {}))
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"), *args, env=env)
        self.addCleanup(server.kill)
        return server

    def done(self, server):
        return server.metric("attend_reloads_total")

    def reload(self, server, result="ok"):
        """SIGHUP, and what it comes to."""
        before, of_kind = self.done(server), server.metric("attend_reloads_total",
                                                           f'result="{result}"')
        server.signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: self.done(server) > before), server.stderr())
        self.assertEqual(server.metric("attend_reloads_total", f'result="{result}"'), of_kind + 1,
                         server.stderr())

    def names(self, server):
        return [m["name"] for m in server.get("/v1/models").json["models"]]

    @contextlib.contextmanager
    def upload(self, server, request, model):
        """A request whose model is chosen and whose body has not come whole. Gives a function that
        sends the rest and returns the answer."""
        body = json.dumps(request).encode()
        with Raw(server) as raw:
            raw.send(head_of(f"/v1/models/{model}/attention", len(body), "Expect: 100-continue"))
            self.assertEqual(raw.answer().status, 100)  # the head has been looked at
            raw.send(body[:20])
            yield lambda: raw.send(body[20:]).answer()


class Exchange(Reload):
    """Two sets of models, in turn."""

    def two_sets(self):
        """Two layers of one name that differ in numbers and in heads."""
        layers = [Layer(31, 16, 4), Layer(32, 16, 2)]
        self.sets = [({"m": dict(layer.model, checkpoint="m.safetensors"),
                       f"only{i}": dict(RANDOM, random={"seed": i})}, layer.checkpoint())
                     for i, layer in enumerate(layers)]
        self.requests = [json.dumps(rows(5, n, 16)).encode() for n in (3, 40, 150)]
        self.expected = []
        for i, layer in enumerate(layers):
            self.put(i)
            path = os.path.join(self.folder, "attend.json")
            answers = []
            for body in self.requests:
                status, out, err = attend("run", "m", "--config", path, data=body)
                self.assertEqual(status, 0, err)
                answers.append(out)
            right = layer.oracle.answer(json.loads(self.requests[0]))
            self.close_to(json.loads(answers[0])["outputs"], right["outputs"], 1e-5)
            self.expected.append(answers)
        for a, b in zip(*self.expected):
            self.assertNotEqual(a, b)

    def put(self, which):
        models, checkpoint = self.sets[which]
        self.write("m.safetensors", checkpoint)
        self.configure(models, default_model=f"only{which}")

    def client(self, server, stop, turn, counts, failures):
        """One connection; each answer must be one set's, byte for byte."""
        connection = server.connect()
        try:
            while not stop.is_set():
                turn = (turn + 1) % len(self.requests)
                answer = server.attend(self.requests[turn], "m", connection=connection)
                which = [i for i in (0, 1) if self.expected[i][turn] == answer.body]
                if answer.status != 200 or len(which) != 1:
                    failures.append((turn, answer))
                    return
                counts[which[0]] += 1
        except Exception as error:  # a connection that ended is a failure, too
            failures.append(error)
        finally:
            connection.close()

    def test_many_reloads_under_load(self):
        self.two_sets()
        self.put(0)
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"),
                        "--workers", "2")
        self.addCleanup(server.kill)
        stop, failures = threading.Event(), []
        counts = [[0, 0] for _ in range(4)]
        clients = [threading.Thread(target=self.client, args=(server, stop, i, counts[i], failures))
                   for i in range(4)]
        for thread in clients:
            thread.start()
        seen, most = [], None
        try:
            for turn in range(1, RELOADS + 1):
                self.put(turn % 2)
                self.reload(server)
                self.assertEqual(self.names(server), ["m", f"only{turn % 2}"])
                self.assertEqual(server.attend(self.requests[0], "m").body,
                                 self.expected[turn % 2][0])
                if failures:
                    break
                if turn in (RELOADS // 5, RELOADS):
                    seen.append(server.resident())
                    most = self.settled(server, most)
        finally:
            stop.set()
            for thread in clients:
                thread.join()
        self.assertEqual(failures, [])
        for each in counts:
            self.assertGreater(sum(each), 0)
        self.assertGreater(min(map(sum, zip(*counts))), 0, "one of the sets was never used")
        self.assertEqual(server.metric("attend_reloads_total", "ok"), RELOADS)
        self.assertEqual(server.metric("attend_reloads_total", "failed"), 0)
        early, late = seen
        if MODE == "release":  # a sanitizer keeps what was freed
            self.assertLess(late - early, 8 << 20)
        server.stop()

    def settled(self, server, most):
        """Descriptors, with the clients' four connections and no other: at most so many, once those
        of connections that were answered are gone."""
        self.assertTrue(wait_until(lambda: server.metric("attend_connections") == 5))
        if most is not None:
            self.assertTrue(wait_until(lambda: server.descriptors() <= most), server.descriptors())
        return server.descriptors()

    def test_signals_that_come_in_a_crowd(self):
        self.two_sets()
        self.put(0)
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"))
        self.addCleanup(server.kill)
        for turn in range(1, 10):
            for _ in range(5):
                server.signal(signal.SIGHUP)
            self.put(turn % 2)
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: self.names(server)[1] == f"only{turn % 2}"))
            self.assertTrue(wait_until(lambda: server.attend(self.requests[1], "m").body
                                       == self.expected[turn % 2][1]))
        self.assertGreaterEqual(server.metric("attend_reloads_total", "ok"), 9)
        server.stop()


class Refusals(Reload):
    """A failure keeps the old set and says why, with the words of the start."""

    def setUp(self):
        super().setUp()
        self.layer = Layer(33, 8, 2)
        self.models = {"m": self.layer.definition(self.folder, "m")}
        self.server = self.start(self.models, "--log-level", "error")
        self.request = rows(6, 3, 8)
        self.right = self.server.attend(self.request).body

    def refused(self, *words):
        _, _, err = attend("check", "--config", os.path.join(self.folder, "attend.json"))
        sentence = err.strip()[len("attend: "):]
        self.assertTrue(err.startswith("attend: "), err)
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        before = len(self.server.stderr())
        loaded = self.server.metric("attend_models_loaded_timestamp_seconds")
        self.reload(self.server, "failed")
        self.assertTrue(wait_until(lambda: "\n" in self.server.stderr()[before:]))
        said = self.server.stderr()[before:].replace('\\"', '"')
        self.assertEqual(len(said.splitlines()), 1, said)
        self.assertIn("level=error", said)
        self.assertIn("reload failed", said)
        self.assertIn(sentence, said)
        for word in words:
            self.assertIn(word, said)
        self.assertEqual(self.server.attend(self.request).body, self.right)
        self.assertEqual(self.server.metric("attend_models_loaded_timestamp_seconds"), loaded)

    def works_again(self):
        self.configure(self.models)
        with open(os.path.join(self.folder, "m.safetensors"), "wb") as file:
            file.write(self.layer.checkpoint())
        self.reload(self.server)
        self.assertEqual(self.server.attend(self.request).body, self.right)
        self.server.stop()

    def test_configurations(self):
        for content, words in (('{"models": {}', ["line 1"]), ("[]", ["an object"]),
                               ({"models": {}}, ["must have at least one model"]),
                               ({"modles": {}}, ["modles", "models"]),
                               ({"models": self.models, "default_model": "n"}, ["default_model"]),
                               ({"models": self.models, "max_queue": 0}, ["max_queue"]),
                               ({"models": {"m": {"heads": 2}}}, ["model m"]),
                               ({"models": dict(self.models, bad=dict(RANDOM, heads=3))},
                                ["model bad", "heads"])):
            with self.subTest(content):
                self.write("attend.json", content)
                self.refused(*words)
        os.unlink(os.path.join(self.folder, "attend.json"))
        self.refused("attend.json", "No such file")
        self.works_again()

    def test_checkpoints(self):
        good = self.layer.checkpoint()
        nan = good[:-4] + struct.pack("<f", float("nan"))
        for name, content in (("short", good[:-3]), ("long", good + b"xx"), ("empty", b""),
                              ("header", good[:8] + b"x" + good[9:]), ("nan", nan)):
            with self.subTest(name):
                self.write("m.safetensors", content)
                self.refused("model m", "m.safetensors")
        os.unlink(os.path.join(self.folder, "m.safetensors"))
        self.refused("model m", "m.safetensors", "No such file")
        os.mkfifo(os.path.join(self.folder, "m.safetensors"))
        self.refused("model m", "m.safetensors", "regular file")
        os.unlink(os.path.join(self.folder, "m.safetensors"))
        self.works_again()

    def test_one_bad_model_of_two_changes_neither(self):
        other = Layer(34, 8, 2)
        self.configure({"m": other.definition(self.folder, "other"),
                        "n": {"checkpoint": "missing.safetensors", "heads": 2}})
        self.refused("model n", "missing.safetensors")
        self.assertEqual(self.names(self.server), ["m"])
        self.works_again()

    def test_a_configuration_from_a_pipe(self):
        path = os.path.join(self.folder, "pipe")
        os.mkfifo(path)

        def feed():
            with open(path, "w") as file:
                file.write(json.dumps({"models": self.models}))
        feeder = threading.Thread(target=feed, daemon=True)
        self.configure(self.models)  # its folder is the pipe's
        feeder.start()
        server = Server(None, "--config", path)
        self.addCleanup(server.kill)
        feeder.join()
        self.reload(server, "failed")
        server.told("pipe: is not a regular file")
        self.assertEqual(server.attend(self.request).body, self.right)
        server.stop()
        self.server.stop()


class Changes(Reload):
    def test_a_model_that_goes_still_answers_who_had_begun(self):
        server = self.start({"a": RANDOM, "b": dict(RANDOM, random={"seed": 2})})
        right = server.attend(TOY, "a").body
        with self.upload(server, TOY, "a") as finish:
            self.configure({"b": dict(RANDOM, random={"seed": 2})})
            self.reload(server)
            self.problem(server.attend(TOY, "a"), 404, "unknown-model")
            self.assertEqual(server.get("/v1/models/a").status, 404)
            self.assertEqual(server.metric("attend_models"), 1)
            for _ in range(3):
                self.reload(server)
            answer = finish()
        self.assertEqual((answer.status, answer.body), (200, right))
        server.told("removed: a")
        server.stop()

    def test_what_nobody_holds_is_freed(self):
        big = dict(RANDOM, query_size=1536, heads=8)  # 38 MB
        server = self.start({"a": RANDOM, "big": big})
        request = {"queries": [[[1] * 1536]]}
        right = server.attend(request, "big").body
        with self.upload(server, request, "big") as finish:
            self.configure({"a": RANDOM})
            self.reload(server)
            held = server.resident()
            answer = finish()
            self.assertEqual((answer.status, answer.body), (200, right))
            if MODE == "release":  # by itself: nobody asks the server for anything
                self.assertTrue(wait_until(lambda: server.resident() < held - (30 << 20)))
        server.stop()

    def test_a_larger_model_comes_under_load(self):
        server = self.start({"a": RANDOM}, "--workers", "2", "--io-threads", "2")
        stop, failures, right = threading.Event(), [], server.attend(TOY).body

        def client():
            with contextlib.closing(server.connect()) as connection:
                while not stop.is_set():
                    answer = server.attend(TOY, "a", connection=connection)
                    if (answer.status, answer.body) != (200, right):
                        failures.append(answer)
                        return
        clients = [threading.Thread(target=client) for _ in range(3)]
        for thread in clients:
            thread.start()
        try:
            models = {"a": RANDOM}
            for size in (16, 64, 256, 768) if MODE == "release" else (16, 64, 256):
                models[f"m{size}"] = dict(RANDOM, query_size=size, heads=2)
                path = self.configure(models)
                self.reload(server)
                for count in (1, 70):
                    body = json.dumps(dict(rows(size, count, size), return_attention=True)).encode()
                    status, out, err = attend("run", f"m{size}", "--config", path, data=body)
                    self.assertEqual(status, 0, err)
                    answer = server.attend(body, f"m{size}")
                    self.assertEqual((answer.status, answer.body), (200, out))
        finally:
            stop.set()
            for thread in clients:
                thread.join()
        self.assertEqual(failures, [])
        server.stop()

    def test_settings_that_take_a_restart_are_told(self):
        server = self.start({"a": RANDOM}, settings={"max_queue": 7, "merge": True})
        self.configure({"a": RANDOM}, listen="127.0.0.1:9", merge=False, max_queue=8, gemm="packed",
                       log_level="info")
        self.reload(server)
        server.told("reloaded")
        said = server.stderr()
        told = sorted(re.findall(r'level=warning msg="changing (.*) requires a restart"', said))
        # `listen` is the command line's, so that the file's says nothing
        self.assertEqual(told, ["gemm to 'packed'", "max_queue to '8'", "merge to 'off'"])
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop()

    def test_another_address_takes_a_restart(self):
        path = self.configure({"a": RANDOM}, listen="127.0.0.1:0")
        server = Server(None, "--config", path, listen=False)
        self.addCleanup(server.kill)
        self.configure({"b": RANDOM}, listen="127.0.0.1:9")
        self.reload(server)
        server.told("changing listen to '127.0.0.1:9' requires a restart")
        self.assertEqual(self.names(server), ["b"])
        server.stop()

    def test_the_command_line_and_the_environment_are_read_again(self):
        path = self.configure({"a": RANDOM, "b": dict(RANDOM, random={"seed": 2})})
        server = Server(None, "--default-model", "b", env={"ATTEND_CONFIG": path})
        self.addCleanup(server.kill)
        b = server.attend(TOY, "b").body
        self.assertEqual(server.attend(TOY).body, b)
        self.configure({"a": dict(RANDOM, random={"seed": 3}), "b": RANDOM}, default_model="a")
        self.reload(server)
        self.assertNotEqual(server.attend(TOY, "b").body, b)
        self.assertEqual(server.attend(TOY).body, server.attend(TOY, "b").body)
        server.told("changed: a, b")
        self.configure({"a": RANDOM})
        self.reload(server, "failed")
        server.told("command line: --default-model: there is no model")
        server.stop()

    def test_the_log_tells_what_is_different(self):
        layer = Layer(35, 8, 2)
        server = self.start({"a": RANDOM, "b": RANDOM, "f": layer.definition(self.folder, "f")})
        self.reload(server)
        server.told(r"reloaded in [0-9.]+ ms: 3 models; nothing changed")
        self.write("f.safetensors", Layer(36, 8, 2).checkpoint())
        self.configure({"b": dict(RANDOM, causal=True), "c": RANDOM,
                        "f": dict(layer.model, checkpoint="f.safetensors")})
        self.reload(server)
        server.told(r"3 models; new: c; changed: b, f; removed: a; default: b")
        self.assertIs(server.get("/v1/models/b").json["causal"], True)
        self.configure({f"a-long-name-of-a-model-{i}": RANDOM for i in range(9)})
        self.reload(server)
        server.told(r"9 models; new: a-long-name-of-a-model-0, .*, \.\.\.; removed: b, c, f; default: "
                    "a-long-name-of-a-model-0")
        self.reload(server)  # compared with the last, not with the first
        server.told("9 models; nothing changed")
        server.stop()

    def test_without_a_configuration(self):
        server = Server()
        self.addCleanup(server.kill)
        right = server.attend(TOY).body
        self.reload(server)
        server.told("6 models; nothing changed")
        self.assertEqual(server.attend(TOY).body, right)
        self.assertEqual(self.names(server), ["words", "story", "sort", "demo", "base", "additive"])
        server.stop()

    def test_metrics(self):
        server = self.start({"a": RANDOM})
        began = server.metric("attend_models_loaded_timestamp_seconds")
        self.assertLess(abs(began - time.time()), PATIENCE)
        self.assertEqual(server.metric("attend_reloads_total", 'result="ok"'), 0)
        self.assertEqual(server.metric("attend_reloads_total", 'result="failed"'), 0)
        self.configure({"a": RANDOM, "b": RANDOM})
        time.sleep(0.01)
        self.reload(server)
        self.assertGreater(server.metric("attend_models_loaded_timestamp_seconds"), began)
        self.assertEqual(server.metric("attend_models"), 2)
        server.stop()


class Signals(Reload):
    def test_stopping_comes_first(self):
        for turn in range(6):
            server = self.start({"a": dict(RANDOM, query_size=256)})
            for _ in range(turn):
                server.signal(signal.SIGHUP)
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)

    def test_signals_without_end(self):
        server = self.start({"a": dict(RANDOM, query_size=512)})
        stop = threading.Event()

        def bother():
            while not stop.is_set():
                server.signal(signal.SIGHUP)
        thread = threading.Thread(target=bother)
        thread.start()
        try:
            self.assertTrue(wait_until(lambda: self.done(server) > 3))
            self.assertEqual(server.attend(TOY | {"queries": [[[1] * 512]], "keys": [[[1] * 512]],
                                                  "values": [[[1] * 512]], "valid_lens": [1]})
                             .status, 200)
            server.stop()
        finally:
            stop.set()
            thread.join()

    def test_a_stopping_server_does_not_reload(self):
        server = self.start({"a": RANDOM}, "--drain-delay-ms", "300")
        server.signal(signal.SIGTERM)
        server.told("received: draining")
        for _ in range(3):
            server.signal(signal.SIGHUP)
            time.sleep(0.02)
        self.assertEqual(server.wait(), 0)
        self.assertNotIn("reload", server.stderr())

    def older_sets(self, stack, server):
        """Uploads that hold one older set each, as many as there may be; the functions that finish
        them."""
        finish = []
        for seed in range(3):
            finish.append(stack.enter_context(self.upload(server, TOY, "a")))
            self.configure({"a": dict(RANDOM, random={"seed": seed + 2})})
            self.reload(server)
        return finish

    def test_a_reload_waits_for_older_ones(self):
        server = self.start({"a": RANDOM})
        with contextlib.ExitStack() as stack:
            first = server.attend(TOY).body
            finish = self.older_sets(stack, server)
            now = server.attend(TOY).body
            self.configure({"b": RANDOM})
            server.signal(signal.SIGHUP)
            server.told("reload postponed")
            server.signal(signal.SIGHUP)
            time.sleep(0.3)
            self.assertEqual(self.done(server), 3)
            self.assertEqual(self.names(server), ["a"])
            self.assertEqual(server.attend(TOY).body, now)
            self.assertEqual(finish[1]().status, 200)  # not only the oldest makes room
            self.assertTrue(wait_until(lambda: self.done(server) == 4))
            self.assertEqual(self.names(server), ["b"])
            self.assertEqual(finish[0]().body, first)
            self.assertEqual(finish[2]().status, 200)
        self.assertEqual(server.stderr().count("reload postponed"), 1)
        self.reload(server)
        server.stop()

    def test_stopping_while_a_reload_waits(self):
        server = self.start({"a": RANDOM})
        with contextlib.ExitStack() as stack:
            finish = self.older_sets(stack, server)
            server.signal(signal.SIGHUP)
            server.told("reload postponed")
            server.signal(signal.SIGTERM)
            server.told("received: draining")
            for each in finish:
                self.assertEqual(each().status, 200)
        self.assertEqual(server.wait(), 0)


class Slow(Reload):
    """Signals while models are loaded that take long. With the threads that OpenBLAS starts before
    main, where it may: the system may give any of them a signal."""

    def slow(self, *args):
        """A server that is in the middle of loading other models, and not done before one looks."""
        for _ in range(20):
            server = self.loading(*args)
            if self.done(server) == 0:
                return server
            server.kill()
        self.fail("it was not slow enough")

    def loading(self, *args):
        server = self.start({"a": RANDOM}, *args, env={"OPENBLAS_NUM_THREADS": None})
        self.before = server.attend(TOY).body
        slow = dict(RANDOM, query_size={"release": 4096, "tsan": 1024}.get(MODE, 2048))
        self.configure({f"slow{i}": slow for i in range(4)})
        size = server.resident()
        server.signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: server.resident() > size + (60 << 20), step=0.005))
        return server

    def test_signals_lead_to_one_more(self):
        server = self.slow()
        self.configure({"b": RANDOM})
        for _ in range(3):
            server.signal(signal.SIGHUP)
            time.sleep(0.05)
        self.assertEqual(server.attend(TOY).body, self.before)
        self.assertTrue(wait_until(lambda: self.done(server) == 2))
        self.assertEqual(self.names(server), ["b"])
        server.stop()
        self.assertEqual(len(re.findall("reloaded in", server.stderr())), 2)

    def test_main_stays_as_it_is(self):
        """Only the threads that load give way, and they end."""
        server = self.slow()
        tasks = f"/proc/{server.pid}/task"

        def niceness():
            found = {}
            for task in os.listdir(tasks):
                with contextlib.suppress(OSError), open(f"{tasks}/{task}/stat") as file:
                    found[int(task)] = int(file.read().rpartition(")")[2].split()[16])
            return found
        own = os.nice(0)
        modest = {task: nice for task, nice in niceness().items() if nice != own}
        self.assertEqual(set(modest.values()), {min(own + 10, 19)})
        self.assertNotIn(server.pid, modest)
        self.assertTrue(wait_until(lambda: self.done(server) == 1))
        self.assertTrue(wait_until(lambda: set(niceness().values()) == {own}), niceness())
        server.stop()

    def test_a_stop(self):
        server = self.slow("--drain-delay-ms", str(2000 * PATIENCE))
        server.signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: server.get("/readyz").status == 503))
        self.assertEqual(server.attend(TOY).body, self.before)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 128 + signal.SIGTERM, server.stderr())
        self.assertNotIn("reload", server.stderr())

    def test_a_stop_in_the_same_moment(self):
        server = self.slow()
        server.signal(signal.SIGHUP)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0, server.stderr())
        self.assertIn("stopped", server.stderr())
        self.assertNotIn("reload", server.stderr())

    def test_a_second_stop(self):
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
            server = self.slow("--drain-delay-ms", "600000")
            server.signal(first)
            server.told("received: draining")
            server.signal(second)
            self.assertEqual(server.wait(), 128 + second, server.stderr())


@unittest.skipUnless(MODE == "release", "a sanitizer brings its own allocator")
class Faults(Reload):
    def preload(self, source):
        folder, library = preloaded(source)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder, library

    def test_every_allocation_of_a_reload_fails(self):
        folder, library = self.preload("failmalloc.c")
        path = os.path.join(folder, "control")
        with open(path, "wb") as file:
            file.write(bytes(24))
        file = open(path, "r+b")
        self.addCleanup(file.close)
        control = mmap.mmap(file.fileno(), 24)
        self.addCleanup(control.close)
        layer = Layer(37, 8, 2)
        small = {"a": layer.definition(self.folder, "a")}
        more = dict(small, b=dict(RANDOM, query_size=64))
        server = self.start(small, "--workers", "2",
                            env={"LD_PRELOAD": library, "FAILMALLOC": path})
        request, quiet, n, failures = rows(7, 3, 8), 0, 0, 0
        right = server.attend(request, "a").body
        ended = r"reload failed|reloaded in"
        self.configure(more)
        while quiet < 3:
            n += 1
            self.assertLess(n, 3000, "never comes to an end")
            before = len(re.findall(ended, server.stderr()))
            control[0:24] = struct.pack("<qqq", n, 0, 0)
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: len(re.findall(ended, server.stderr())) > before,
                                       step=0.001), f"n = {n}\n{server.stderr()[-2000:]}")
            failed = struct.unpack("<q", control[16:24])[0]
            control[0:8] = bytes(8)
            last = re.findall(ended, server.stderr())[-1]
            failures += last == "reload failed"
            quiet = 0 if failed else quiet + 1
            answer = server.attend(request, "a")
            self.assertEqual((answer.status, answer.body), (200, right), n)
        self.assertGreater(failures, 20)
        self.assertEqual(self.names(server), ["a", "b"])
        for line in server.stderr().splitlines():  # nothing that was read is called wrong
            if "reload failed" in line:
                # (a thread takes memory, too, and its lack of it has other words)
                self.assertRegex(line, "no memory|out of memory|cannot start a thread")
        server.stop()

    def test_a_blas_for_one_thread(self):
        folder, library = self.preload("faults.c")
        with open(os.path.join(folder, "serial"), "wb"):
            pass
        env = {"LD_PRELOAD": library, "FAULTS": folder}
        matrix = dict(RANDOM, query_size=8)
        plain = dict(RANDOM, projection="none")
        server = self.start({"a": matrix}, "--gemm", "openblas", "--workers", "1", env=env)
        self.configure({"a": matrix, "b": dict(matrix, random={"seed": 5})})
        self.reload(server)  # the one worker computes these, too
        for name in ("a", "b"):
            self.assertEqual(server.attend(rows(8, 2, 8), name).status, 200)
        server.stop()
        del plain["random"]
        server = self.start({"a": plain}, "--gemm", "openblas", env=env)
        self.reload(server)
        self.configure({"a": plain, "b": matrix})
        self.reload(server, "failed")
        server.told("model b computes with OpenBLAS")
        self.assertEqual(self.names(server), ["a"])
        server.stop()


if __name__ == "__main__":
    unittest.main()
