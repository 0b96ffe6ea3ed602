"""test_containers: one layer in every container is one model; memory that fails while it is read."""
import io
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest
import zipfile

import torch_file
from support import (BIN, MODE, PATIENCE, Case, Layer, Server, attend, clean_environment, preloaded,
                     randoms, safetensors_bytes, wait_until)


def npy(shape, numbers):
    """A .npy file, as NumPy writes it."""
    text = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
            + struct.pack(f"<{len(numbers)}f", *numbers))


def archive(tensors, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, (shape, numbers) in tensors.items():
            with file.open(name + ".npy", "w", force_zip64=True) as member:
                member.write(npy(shape, numbers))
    return out.getvalue()


class Containers(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="attend-test-")
        cls.layer = Layer(5, 20, 5, bias=False)
        tensors = cls.layer.tensors
        names = sorted(tensors)
        halves = {"1.safetensors": names[::2], "2.safetensors": names[1::2]}
        files = {"plain.safetensors": safetensors_bytes(tensors),
                 "stored.npz": archive(tensors, zipfile.ZIP_STORED),
                 "deflated.npz": archive(tensors, zipfile.ZIP_DEFLATED),
                 "model.safetensors.index.json": json.dumps({
                     "metadata": {"total_size": 1},
                     "weight_map": {n: f for f, held in halves.items() for n in held}}).encode()}
        cls.checkpoints = [*files, "torch.bin"]
        torch_file.write(os.path.join(cls.folder, "torch.bin"),
                         {name: ("F32", shape, struct.pack(f"<{len(numbers)}f", *numbers))
                          for name, (shape, numbers) in tensors.items()})
        # what the index does not place in a shard is not there: each holds all, the other's wrong
        for name, held in halves.items():
            files[name] = safetensors_bytes({
                n: (shape, numbers if n in held else [7.0] * len(numbers))
                for n, (shape, numbers) in tensors.items()})
        for name, data in files.items():
            with open(os.path.join(cls.folder, name), "wb") as file:
                file.write(data)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def config(self, names):
        path = os.path.join(self.folder, "attend.json")
        with open(path, "w") as file:
            json.dump({"listen": "127.0.0.1:0", "models": {
                f"m{i}": dict(self.layer.model, checkpoint=name, heads=5)
                for i, name in enumerate(names)}}, file)
        return path

    def test_one_layer_is_one_model(self):
        code, _, told = attend("check", "--config", self.config(self.checkpoints))
        self.assertEqual(code, 0, told)
        digests = {word for word in told.split() if word.startswith("sha256=")}
        self.assertEqual(len(digests), 1, told)
        self.assertEqual(told.count("sha256="), len(self.checkpoints))
        for name in self.checkpoints:
            self.assertIn(f" source={name} sha256=", told)

    def test_every_container_answers_alike(self):
        body = {"queries": randoms(random.Random(1), 1, 3, 20)}
        path = self.config(self.checkpoints)
        answers = {attend("run", f"m{i}", "--config", path, data=json.dumps(body).encode())[1]
                   .replace(b'"m%d"' % i, b'"m"') for i in range(len(self.checkpoints))}
        self.assertEqual(len(answers), 1)
        self.assertIn(b'"outputs"', answers.pop())

    @unittest.skipUnless(MODE == "release", "a sanitizer brings its own allocator")
    def test_allocations_fail_while_an_archive_is_read(self):
        """All from the n-th one on, for every n: the right model, or a word and no crash."""
        folder, library = preloaded("failmalloc.c")
        control = os.path.join(folder, "control")
        with open(control, "wb") as file:
            file.write(bytes(24))
        try:
            with open(control, "r+b") as file, mmap.mmap(file.fileno(), 24) as shared:
                env = clean_environment({"LD_PRELOAD": library, "FAILMALLOC": control})
                for name in "deflated.npz", "torch.bin":
                    self.every_allocation(name, 1, shared, env)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @unittest.skipIf(MODE == "tsan", "its runtime must be loaded first")
    def test_allocations_fail_in_a_reload_of_every_container(self):
        """The n-th one, for every n: the models stay, and answer as before."""
        folder, library = preloaded("failmalloc.c")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        control = os.path.join(folder, "control")
        with open(control, "wb") as file:
            file.write(bytes(24))
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + ":verify_asan_link_order=0"
        known = os.path.join(folder, "known")
        with open(known, "w") as file:  # libzip 1.7 drops what it has begun to build
            file.write("leak:libzip.so\n")
        server = Server(None, "--config", self.config(self.checkpoints), "--workers", "2",
                        env={"LD_PRELOAD": library, "FAILMALLOC": control,
                             "ASAN_OPTIONS": options,
                             "LSAN_OPTIONS": f"suppressions={known}:print_suppressions=0"})
        self.addCleanup(server.kill)
        with open(control, "r+b") as file, mmap.mmap(file.fileno(), 24) as shared:
            refused = self.every_reload(server, shared)
        self.assertGreater(refused, 400 if MODE == "release" else 60)
        server.stop()
        self.assertNotIn("Sanitizer", server.stderr())

    def every_reload(self, server, shared):
        """How many reloads were refused."""
        request = {"queries": [randoms(random.Random(3), 3, 20)]}
        right = server.attend(request, "m0").json["outputs"]
        quiet, n, count, refused = 0, 0, 0, 0
        while quiet < 3:
            n += 1 if MODE == "release" else 7
            self.assertLess(n, 5000, "never comes to an end")
            shared[0:24] = struct.pack("<qqq", n, 0, 0)
            server.signal(signal.SIGHUP)
            count += 1
            self.assertTrue(wait_until(lambda: len(self.ends(server)) >= count, step=0.0005), n)
            failed = struct.unpack("<q", shared[16:24])[0]
            shared[0:8] = bytes(8)
            last = self.ends(server)[-1]
            quiet = 0 if failed else quiet + 1
            self.assertTrue(failed or last == "reloaded in", server.stderr()[-600:])
            refused += last == "reload failed"
            for i in range(len(self.checkpoints)):
                answer = server.attend(request, f"m{i}")
                self.assertEqual((answer.status, answer.json.get("outputs")), (200, right), (n, i))
        return refused

    @staticmethod
    def ends(server):
        return re.findall(r"reload failed|reloaded in", server.stderr())

    def every_allocation(self, name, sticky, shared, env):
        command = [BIN, "check", "--config", self.config([name])]
        quiet, n, refused = 0, 0, 0
        while quiet < 3:
            n += 1
            self.assertLess(n, 3000, "never comes to an end")
            shared[0:24] = struct.pack("<qqq", n, sticky, 0)
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False, env=env, timeout=PATIENCE)
            quiet = 0 if struct.unpack("<q", shared[16:24])[0] else quiet + 1
            # libzip says so itself where it has no memory to look for the directory
            wrong = 2 if b"no directory at its end" in done.stderr else 1
            self.assertIn(done.returncode, (0, wrong), (n, done.stderr))
            self.assertTrue(done.stderr, f"says nothing for n = {n}")
            refused += done.returncode != 0 and b"out of memory" in done.stderr
        self.assertGreater(refused, 20)


if __name__ == "__main__":
    unittest.main()
