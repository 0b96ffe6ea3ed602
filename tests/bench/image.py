"""image: what the container image weighs, whether it is the same twice, and how soon it answers."""
import http.client
import os
import re
import shutil
import subprocess
import tarfile
import time

from support import ROOT, clean_environment
from table import line

USER = 65532


def build(folder, name):
    """Builds the image of the last commit from nothing: its size, digest, and archive."""
    out = os.path.join(folder, name)
    said = subprocess.run([os.path.join(ROOT, "docker", "image"), out], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    size, digest = re.search(r"attend\.oci\.tar: .*, (\d+) bytes, (sha256:[0-9a-f]{64})$", said,
                             re.M).groups()
    return int(size), digest, os.path.join(out, "attend.oci.tar")


def unpack(archive, folder):
    """The largest blob of an archive is the one layer."""
    with tarfile.open(archive) as tar:
        layer = max(tar.getmembers(), key=lambda m: m.size)
        with tarfile.open(fileobj=tar.extractfile(layer), mode="r:gz") as inner:
            inner.extractall(folder)


def first_answer(root):
    """From exec to the first answer, in ms: as the image's user, in its root."""
    command = [shutil.which("chroot") or "/usr/sbin/chroot", f"--userspec={USER}:{USER}", root,
               "/usr/bin/attend", "serve"]
    begun = time.monotonic()
    env = dict(clean_environment(), ATTEND_LISTEN="127.0.0.1:0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=env) as process:
        port = int(re.search(rb":(\d+)$", process.stdout.readline()).group(1))
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/v1/attention", b'{"queries":[[1,0,0,1]]}',
                           {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        took = (time.monotonic() - begun) * 1e3
        connection.close()
        process.terminate()
    return took


def image(folder):
    """Two builds of the last commit, with compiler and all."""
    size, digest, archive = build(folder, "image-a")
    again = build(folder, "image-b")[1]
    line("image, compressed", f"{size / 1e6:.1f} MB", "", "", "< 40 MB", size < 40e6)
    line("image built twice from one commit: digests", digest[7:19], again[7:19], "", "equal",
         digest == again)
    if os.geteuid():
        line("from start of the image to its first answer", "-", "", "", "< 150 ms")
        return
    root = os.path.join(folder, "image-root")
    unpack(archive, root)
    took = sorted(first_answer(root) for _ in range(10))[5]
    line("from start of the image to its first answer", f"{took:.0f} ms", "", "", "< 150 ms",
         took < 150)
