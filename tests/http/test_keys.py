"""test_keys: bearer keys: who is let in, what strangers are told, and keys that change under load."""
import json
import mmap
import os
import re
import shutil
import signal
import struct
import tempfile
import threading
import unittest

from support import MODE, TOY, Case, Raw, Server, attend, chunked, head_of, preloaded, wait_until

A, B, C = ("alice-0123456789-abcdef", "bob.0123456789_~+/abc==", "carol-9876543210-fedcba")
STRANGE = "stranger-0123456789-xyz"
OPEN = ["/healthz", "/readyz", "/v2/health/live", "/v2/health/ready", "/"]
SHUT = ["/v1/models", "/v1/models/demo", "/v1/models/none", "/metrics", "/openapi.json", "/v2",
        "/v2/models", "/v2/models/demo", "/v2/models/demo/ready", "/v2/models/none/ready", "/none",
        "/v2/none", "/v2/models/demo/versions/7", "/v1/attention"]
MODELS = {"demo": {"random": {"seed": 1}, "query_size": 4, "heads": 2}}


def bearer(key, scheme="Bearer"):
    return {"Authorization": f"{scheme} {key}"}


class Keys(Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.chmod(path + ".new", mode)
        os.replace(path + ".new", path)
        return path

    def keys(self, *keys, mode=0o600):
        return self.write("keys", "# keys\n" + "\n".join(keys) + "\n", mode)

    def configure(self, models=None, **settings):
        return self.write("attend.json", json.dumps(
            dict({"api_key_file": "keys", "metrics_open": True}, models=models or MODELS,
                 **settings)))

    def start(self, *args, env=None, **settings):
        self.configure(**settings)
        server = Server(None, "--config", os.path.join(self.folder, "attend.json"), *args, env=env)
        self.addCleanup(server.kill)
        return server

    def refused(self, answer, challenge="Bearer"):
        self.problem(answer, 401, "unauthorized")
        self.assertEqual(answer.headers["www-authenticate"], challenge)

    def said_nothing(self, server):
        """No key has ever been written anywhere."""
        said = server.stderr() + "".join(server.lines)
        for key in (A, B, C, STRANGE):
            self.assertNotIn(key[:8], said)
        return said

    def reload(self, server, result="ok"):
        count = lambda: server.metric("attend_reloads_total", f'result="{result}"')
        before = count()
        server.signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: count() > before), server.stderr())


class Doors(Keys):
    """One server with two keys."""

    def setUp(self):
        super().setUp()
        self.keys(A, B)
        self.server = self.start("--access-log", "all")

    def test_with_a_key(self):
        right = None
        for headers in (bearer(A), bearer(B), bearer(A, "bearer"), bearer(B, "BEARER  "),
                        {"authorization": f"  Bearer\t{A}  "}):
            answer = self.server.attend(TOY, headers=headers)
            self.ok(answer)
            self.assertNotIn("www-authenticate", answer.headers)
            right = right or answer.body
            self.assertEqual(answer.body, right)
        for path in SHUT:
            self.assertNotEqual(self.server.get(path, headers=bearer(A)).status, 401, path)
        self.assertEqual(self.server.get("/none", headers=bearer(A)).status, 404)
        self.assertEqual(self.server.get("/v1/attention", headers=bearer(A)).status, 405)
        self.server.stop()
        self.assertEqual(len(re.findall(r"api_key_file: 2 keys", self.said_nothing(self.server))), 1)

    def test_without_one(self):
        wrong = 'Bearer error="invalid_token"'
        for headers, challenge in (({}, "Bearer"), ({"Authorization": ""}, "Bearer"),
                                   ({"Authorization": "Basic " + A}, "Bearer"),
                                   ({"Authorization": A}, "Bearer"),
                                   ({"Authorization": "Bearer"}, wrong),
                                   (bearer(STRANGE), wrong), (bearer(A[:-1]), wrong),
                                   (bearer(A + "x"), wrong), (bearer(f"{A} {B}"), wrong),
                                   (bearer(A.upper()), wrong), (bearer("k" * 8000), wrong)):
            self.refused(self.server.attend(TOY, headers=headers), challenge)
            self.refused(self.server.get("/v1/models", headers=headers), challenge)
        with Raw(self.server) as raw:  # which of them would count?
            raw.send(head_of("/v1/models", None, f"Authorization: Bearer {A}",
                             f"Authorization: Bearer {A}", method="GET"))
            self.problem(raw.answer(), 401, "unauthorized")
        self.server.attend(TOY, headers={"X-Api-Key": A, "Cookie": A})
        refused = self.server.metric("attend_rejected_total", 'reason="unauthorized"')
        self.assertEqual(refused, 24)
        self.server.stop()
        self.said_nothing(self.server)

    def test_strangers_learn_nothing(self):
        for path in SHUT:
            for method in ("GET", "POST", "DELETE", "OPTIONS"):
                answer = self.server.request(method, path)
                if path == "/metrics":  # open here
                    self.assertNotEqual(answer.status, 401)
                    continue
                self.assertEqual(answer.status, 401, (method, path))
                self.assertNotIn("allow", answer.headers)
                if path.startswith("/v2"):
                    self.assertEqual(list(answer.json), ["error"])
                    self.assertEqual(answer.headers["content-type"], "application/json")
        both = {self.server.get(f"/v1/models/{name}").body for name in ("demo", "none")}
        self.assertEqual(len(both), 1)
        for path in OPEN:
            self.assertEqual(self.server.get(path).status, 200)
            self.assertEqual(self.server.get(path, headers=bearer(STRANGE)).status, 200)
            self.assertEqual(self.server.request("HEAD", path).status, 200)
        url = f"http://127.0.0.1:{self.server.port}"
        self.assertEqual(attend("health", url)[0], 0)
        self.server.stop()

    def test_before_the_body(self):
        body = json.dumps(TOY).encode()
        with Raw(self.server) as raw:
            raw.send(head_of("/v1/attention", 100 << 20, "Expect: 100-continue"))
            self.problem(raw.answer(), 401, "unauthorized")
        with Raw(self.server) as raw:  # a body that is on its way is discarded for a while
            raw.send(head_of("/v1/attention", 1 << 20) + bytes(200 << 10))
            answer = raw.answer()
            self.problem(answer, 401, "unauthorized")
            self.assertEqual(answer.headers["connection"], "close")
            self.assertTrue(raw.closed())
        with Raw(self.server) as raw:
            raw.send(head_of("/v1/attention", None, "Transfer-Encoding: chunked") +
                     chunked(body, [7]))
            self.problem(raw.answer(), 401, "unauthorized")
        with Raw(self.server) as raw:  # without a body the connection stays
            raw.send(head_of("/v1/models", method="GET") * 2 +
                     head_of("/v1/models", None, f"Authorization: Bearer {A}", method="GET"))
            self.assertEqual([raw.answer().status for _ in range(3)], [401, 401, 200])
        self.assertEqual(self.server.attend(TOY, headers=bearer(A)).status, 200)
        self.server.stop()

    def test_framing_comes_first(self):
        for fields, status, slug in (
                (["Content-Length: 5", "Transfer-Encoding: chunked"], 400, "bad-framing"),
                (["Transfer-Encoding: gzip"], 501, "unsupported-transfer-encoding"),
                (["Host: other", "Content-Length: 0"], 400, "bad-framing")):
            with Raw(self.server) as raw:
                raw.send(head_of("/v1/attention", None, *fields))
                self.problem(raw.answer(), status, slug)
        with Raw(self.server) as raw:  # but not what else could be said
            raw.send(head_of("/v1/attention", 1 << 50))
            self.problem(raw.answer(), 401, "unauthorized")
        self.refused(self.server.post("/v1/attention", TOY, {"Content-Type": "text/plain"}))
        self.refused(self.server.request("OPTIONS", "*"))
        self.assertEqual(self.server.request("OPTIONS", "*", headers=bearer(A)).status, 204)
        self.server.stop()


class Metrics(Keys):
    def test_by_setting(self):
        self.keys(A)
        server = self.start(metrics_open=False)
        self.refused(server.get("/metrics"))
        self.assertEqual(server.get("/metrics", headers=bearer(A)).status, 200)
        server.stop()
        server = self.start("--metrics-open")
        self.assertEqual(server.get("/metrics").status, 200)
        server.stop()


class Files(Keys):
    def fails(self, why, *args, env=None):
        """Serving and checking are refused alike, before a socket is opened."""
        path = self.configure()
        for command in ("check", "serve"):
            status, out, err = attend(command, "--config", path, "--listen", "127.0.0.1:0", *args,
                                      env=env)
            self.assertEqual((status, out), (2, b""), err)
            self.assertEqual(len(err.splitlines()), 1, err)
            self.assertIn("api_key_file: ", err)
            self.assertIn(why, err)
            for key in (A, STRANGE):
                self.assertNotIn(key[:6], err)

    def test_what_is_wrong_with_a_file(self):
        self.fails("keys: No such file")
        self.keys(A, STRANGE + " and more")
        self.fails("keys, line 3: character 24 is not allowed")
        self.keys(A, STRANGE[:10])
        self.fails("keys, line 3: a key has 16 to 512 characters, not 10")
        self.keys()
        self.fails("there is no key")
        self.keys(A, mode=0o622)
        self.fails("users other than its owner may write it (mode 622)")
        os.mkfifo(os.path.join(self.folder, "pipe"))
        self.fails("is not a regular file", "--api-key-file", "pipe")

    def test_what_check_says(self):
        self.keys(A, B, mode=0o644)
        status, out, err = attend("check", "--config", self.configure())
        self.assertEqual(status, 0, err)
        self.assertEqual(json.loads(out)["api_key_file"], "keys")
        self.assertIn("api_key_file: 2 keys\n", err)
        self.assertIn("warning: api_key_file is readable by every user of this machine", err)
        for key in (A, B):
            self.assertNotIn(key[:6], out.decode() + err)
        self.keys(A, mode=0o400)
        err = attend("check", "--config", self.configure())[2]
        self.assertIn("api_key_file: 1 key\n", err)
        self.assertNotIn("warning: api_key", err)

    def test_a_secret_as_it_is_mounted(self):
        """A symbolic link to a symbolic link, as Kubernetes has them; named by the environment."""
        os.mkdir(os.path.join(self.folder, "..2026"))
        os.rename(self.keys(A, mode=0o444), os.path.join(self.folder, "..2026", "keys"))
        os.symlink("..2026", os.path.join(self.folder, "..data"))
        os.symlink("..data/keys", os.path.join(self.folder, "keys"))
        server = Server(env={"ATTEND_API_KEY_FILE": os.path.join(self.folder, "keys")})
        self.addCleanup(server.kill)
        self.refused(server.attend(TOY))
        self.assertEqual(server.attend(TOY, headers=bearer(A)).status, 200)
        server.told("api_key_file: 1 key\"")
        server.told("level=warning msg=\"api_key_file is readable by every user")
        server.stop()

    def test_a_warning_where_others_may_ask_without_a_key(self):
        """For every address but loopback, once; not where keys are asked for, nor for the admin
        address."""
        warning = r"level=warning .*listening on \S+:\d+ without API keys: anyone who can reach this address"
        path = self.keys(A)
        for warned, words in (
                (1, ["--listen", "0.0.0.0:0"]), (1, ["--listen", "*:0"]),
                (0, ["--listen", "127.0.0.1:0"]), (0, ["--listen", "localhost:0"]),
                (0, ["--listen", "127.0.0.1:0", "--admin-listen", "0.0.0.0:0"]),
                (0, ["--listen", "0.0.0.0:0", "--api-key-file", path])):
            server = Server(None, *words)
            self.addCleanup(server.kill)
            server.stop()
            self.assertEqual(len(re.findall(warning, server.stderr())), warned, words)

    def test_run_needs_none(self):
        """Who may start the program may read the models; and need not be able to read the keys."""
        path = self.configure()
        status, out, err = attend("run", "demo", "--config", path, data=json.dumps(TOY).encode())
        self.assertEqual(status, 0, err)
        self.keys(A)
        server = self.start()
        self.assertEqual(server.attend(TOY, headers=bearer(A)).body, out)
        server.stop()


class Exchange(Keys):
    def test_keys_and_models_change_together(self):
        self.keys(A, B)
        server = self.start()
        right = server.attend(TOY, headers=bearer(A)).body
        other = {"demo": dict(MODELS["demo"], random={"seed": 2})}
        self.keys(B, C)
        self.configure(other)
        self.reload(server)
        self.refused(server.attend(TOY, headers=bearer(A)), 'Bearer error="invalid_token"')
        now = server.attend(TOY, headers=bearer(B)).body
        self.assertNotEqual(now, right)
        self.assertEqual(server.attend(TOY, headers=bearer(C)).body, now)
        for keys, why in (([A, "short"], "line 3: a key has"), ([], "there is no key")):
            self.keys(*keys)
            self.configure(MODELS)
            self.reload(server, "failed")
            server.told(f"still serving the previous models and keys: api_key_file: .*{why}")
            self.assertEqual(server.attend(TOY, headers=bearer(C)).body, now)
            self.refused(server.attend(TOY, headers=bearer(A)), 'Bearer error="invalid_token"')
        self.keys(A)
        self.configure({"demo": {"checkpoint": "missing.safetensors"}})
        self.reload(server, "failed")  # keys that are good wait for models that are
        self.assertEqual(server.attend(TOY, headers=bearer(A)).status, 401)
        self.assertEqual(server.attend(TOY, headers=bearer(B)).body, now)
        server.stop()
        self.said_nothing(server)

    def test_whether_keys_are_asked_for_takes_a_restart(self):
        self.keys(A)
        server = self.start()
        self.configure(api_key_file="")
        self.reload(server)
        server.told("changing api_key_file to '' requires a restart")
        self.assertEqual(server.attend(TOY).status, 401)
        server.stop()
        server = self.start(api_key_file="")
        self.configure()
        self.reload(server)
        server.told("changing api_key_file to 'keys' requires a restart")
        self.assertEqual(server.attend(TOY).status, 200)
        server.stop()

    def client(self, server, key, stop, wanted, wrong, count):
        """One connection whose key is known throughout, or never."""
        connection = server.connect()
        try:
            while not stop.is_set():
                answer = server.attend(TOY, headers=bearer(key), connection=connection)
                if answer.status not in wanted:
                    wrong.append((key, answer))
                    return
                count[answer.status] = count.get(answer.status, 0) + 1
                if answer.headers.get("connection") == "close":
                    connection.close()
        except Exception as error:  # a connection that ended is a failure, too
            wrong.append((key, error))
        finally:
            connection.close()

    def test_under_load(self):
        sets = [(A, B), (B, C), (C, B, A), (B,)]
        self.keys(*sets[0])
        server = self.start("--workers", "2")
        stop, wrong = threading.Event(), []
        counts = [{}, {}, {}, {}]
        clients = [threading.Thread(target=self.client,
                                    args=(server, key, stop, wanted, wrong, count))
                   for (key, wanted), count in zip(((B, {200}), (B, {200}), (A, {200, 401}),
                                                    (STRANGE, {401})), counts)]
        for thread in clients:
            thread.start()
        try:
            for turn in range(60 if MODE == "release" else 20):
                self.keys(*sets[turn % 4])
                self.configure({"demo": dict(MODELS["demo"], random={"seed": turn % 3})})
                self.reload(server)
        finally:
            stop.set()
            for thread in clients:
                thread.join()
        self.assertEqual(wrong, [])
        self.assertGreater(counts[0][200], 60)
        self.assertEqual(set(counts[2]), {200, 401})
        server.stop()
        self.said_nothing(server)


@unittest.skipUnless(MODE == "release", "a sanitizer brings its own allocator")
class Memory(Keys):
    def test_every_allocation_of_a_reload_fails(self):
        folder, library = preloaded("failmalloc.c")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "control")
        with open(path, "wb") as file:
            file.write(bytes(24))
        file = open(path, "r+b")
        self.addCleanup(file.close)
        control = mmap.mmap(file.fileno(), 24)
        self.addCleanup(control.close)
        self.keys(A, B)
        server = self.start("--workers", "1", "--cors-origins", "https://a.example",
                            env={"LD_PRELOAD": library, "FAILMALLOC": path})
        self.keys(B, C)
        ended, quiet, n = r"reload failed|reloaded in", 0, 0
        while quiet < 3:
            n += 1
            self.assertLess(n, 1000, "never comes to an end")
            before = len(re.findall(ended, server.stderr()))
            control[0:24] = struct.pack("<qqq", n, 0, 0)
            server.signal(signal.SIGHUP)
            self.assertTrue(wait_until(lambda: len(re.findall(ended, server.stderr())) > before,
                                       step=0.001), f"n = {n}\n{server.stderr()[-2000:]}")
            failed = struct.unpack("<q", control[16:24])[0]
            control[0:8] = bytes(8)
            quiet = 0 if failed else quiet + 1
            if not re.search("reloaded in", server.stderr()):  # nothing has been exchanged so far
                self.assertEqual(server.attend(TOY, headers=bearer(A)).status, 200, n)
                self.assertEqual(server.attend(TOY, headers=bearer(C)).status, 401, n)
            self.assertEqual(server.attend(TOY, headers=bearer(B)).status, 200, n)
            self.assertEqual(server.attend(TOY, headers=bearer(STRANGE)).status, 401, n)
        about_keys = len(re.findall(r"reload failed.*api_key_file: .*out of memory",
                                    server.stderr()))
        self.assertGreaterEqual(about_keys, 3)  # the path, the set, the text
        self.assertEqual(server.attend(TOY, headers=bearer(C)).status, 200)
        server.stop()
        self.said_nothing(server)

    def test_no_key_stays_in_memory(self):
        """The text of the file is nowhere in the process; a request's own may be for a while."""
        lone = "only-in-the-file-0123456789-abcdefghijklm"
        self.keys(A, *(f"filler-{i:032}" for i in range(200)), lone)
        server = self.start()
        self.reload(server)
        self.assertEqual(server.attend(TOY, headers=bearer(A)).status, 200)
        found = []
        with open(f"/proc/{server.pid}/maps") as maps, \
                open(f"/proc/{server.pid}/mem", "rb", 0) as memory:
            for line in maps:
                span, rights = line.split()[:2]
                begin, end = (int(x, 16) for x in span.split("-"))
                if "rw" not in rights or end - begin > 256 << 20:
                    continue
                memory.seek(begin)
                at = 0
                while at < end - begin:
                    try:
                        part = memory.read(min(1 << 20, end - begin - at))
                    except OSError:
                        break
                    if not part:
                        break
                    if lone.encode() in part or b"filler-0000000000" in part:
                        found.append(line)
                    at += len(part)
        self.assertEqual(found, [])
        server.stop()


if __name__ == "__main__":
    unittest.main()
