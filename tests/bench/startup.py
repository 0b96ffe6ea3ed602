"""startup: how soon it listens with a large checkpoint, of which some layers are served, and how fast
large layers and PyTorch's files are loaded."""
import array
import json
import mmap
import os
import shutil
import resource
import struct
import subprocess
import time

import bert
import torch_file
from process import memory
from support import BIN, Server, clean_environment
from table import line


def checkpoint(path, layers, d=768, bytes_in_all=350_000_000):
    """Some layers of width d, and an embedding that nobody asks for."""
    header, at = {}, 0
    sizes = {"embeddings.weight": [bytes_in_all // 4 // d - layers * 4 * d, d]}
    for i in range(layers):
        for role in ("query", "key", "value", "output"):
            sizes[f"layer.{i}.{role}.weight"] = [d, d]
            sizes[f"layer.{i}.{role}.bias"] = [d]
    for name, shape in sizes.items():
        size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    numbers = array.array("f", [(i * 7919 % 1013 - 506) / 20000 for i in range(1 << 18)]).tobytes()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for left in range(at, 0, -len(numbers)):
            file.write(numbers[:left])


def startup(folder):
    """From exec to the line that says where it listens; the file is in the page cache."""
    name = "large.safetensors"
    checkpoint(os.path.join(folder, name), 12)

    def model(i):
        return {"checkpoint": name, "heads": 12, "prefix": f"layer.{i}."}

    for layers, wanted_ms, wanted_mb in ((1, 100, 60), (12, 1000, None)):
        best, resident = 1e9, 0
        for _ in range(5):
            begun = time.monotonic()
            server = Server({"models": {f"l{i}": model(i) for i in range(layers)}}, folder=folder)
            best = min(best, (time.monotonic() - begun) * 1e3)
            resident = memory(server.pid)[1]
            server.stop()
        line(f"start with {layers} of 12 layers of a checkpoint of 350 MB", f"{best:.0f} ms", "",
             "", f"< {wanted_ms} ms", best < wanted_ms)
        line("resident at most", f"{resident / 1e6:.0f} MB", "", "",
             f"< {wanted_mb} MB" if wanted_mb else "",
             resident < wanted_mb * 1e6 if wanted_mb else None)
    os.remove(os.path.join(folder, name))


def check(config, *args, level=None):
    """Seconds of `attend check`: on the clock, of all threads, and of the system for them."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([BIN, "check", "--config", config, *args], check=True,
                   env=clean_environment({"ATTEND_CPU": level}), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (time.monotonic() - begun, after.ru_utime - before.ru_utime,
            after.ru_stime - before.ru_stime)


def loading(folder):
    """Layers of width 2048, a GB of which is nothing but numbers that are used."""
    name, layers, d = "layers.safetensors", 4, 2048
    checkpoint(os.path.join(folder, name), layers, d, layers * 4 * 4 * d * d + 4 * d)
    config = os.path.join(folder, "loading.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"models": {f"l{i}": {"checkpoint": name, "heads": 16, "prefix": f"layer.{i}."}
                              for i in range(layers)}}, file)
    gb = layers * 4 * 4 * d * d / 1e9
    cores = len(os.sched_getaffinity(0))
    turns = [(check(config, "--workers", "1"), check(config, "--workers", str(cores)))
             for _ in range(5)]
    one, all_of_them = (min(turn[i][0] for turn in turns) for i in (0, 1))
    line(f"loading large layers by {cores} threads, a GB", f"{all_of_them / gb:.2f} s",
         f"{one / gb:.2f} s", one / all_of_them, ">= 1.8" if cores == 2 else "",
         one / all_of_them >= 1.8 if cores == 2 else None)
    for level in ("avx512", "avx2", "portable"):
        _, own, system = min((check(config, level=level) for _ in range(3)), key=lambda t: t[1])
        line(f"all threads at level {level}, a GB (and the system, with their memory)",
             f"{own / gb:.2f} s", f"{system / gb:.2f} s", "", "< 3 s", own / gb < 3)
    os.remove(os.path.join(folder, name))


def torch_folder(source, to):
    """A folder of safetensors once more, as torch.save writes it."""
    os.mkdir(to)
    shutil.copy(os.path.join(source, "config.json"), to)
    with open(os.path.join(source, "model.safetensors"), "rb") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        header.pop("__metadata__", None)
        tensors = {name: (t["dtype"], t["shape"], data[8 + length + t["data_offsets"][0]:8 + length + t["data_offsets"][1]])
                   for name, t in header.items()}
    torch_file.write(os.path.join(to, "pytorch_model.bin"), tensors)


def torch_loading(folder):
    """A BERT-base as PyTorch's file beside the same as safetensors, in turns; both are in the page cache."""
    made = os.path.join(folder, "torch")
    torch_folder(bert.folder(), made)
    config = {name: os.path.join(folder, f"{name}.json") for name in ("safetensors", "torch")}
    for name, place in (("safetensors", bert.folder()), ("torch", made)):
        with open(config[name], "w", encoding="utf-8") as file:
            json.dump({"models": {"m": {"transformer": place}}}, file)
    turns = [(check(config["torch"])[0], check(config["safetensors"])[0]) for _ in range(7)]
    torch, safetensors = (min(turn[i] for turn in turns) for i in (0, 1))
    line(f"loading {bert.NAME}, a file of PyTorch (and safetensors)", f"{torch:.2f} s", f"{safetensors:.2f} s",
         torch / safetensors, "<= 1.2", torch / safetensors <= 1.2)
    shutil.rmtree(made)
