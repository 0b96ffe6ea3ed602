"""test_deps: tests/deps, which installs packages, with stand-ins for Debian's tools, under each awk there is; and what
docker/package makes by awk."""
import gzip
import os
import shutil
import subprocess
import unittest

from support import BIN, PATIENCE, ROOT
from test_process import Folder

DEPS = os.path.join(ROOT, "tests", "deps")
PACKAGE = os.path.join(ROOT, "docker", "package")
# What tests/deps needs besides Debian's tools.
TOOLS = ("sh", "env", "awk", "grep", "sed", "tr", "rm", "mkdir", "mktemp", "chmod", "cat", "dirname")
STUBS = {
    "id": 'echo "${USER_ID:-0}"',
    "sudo": 'echo "sudo $*" >>"$CALLS"; exec "$@"',
    "dpkg-query": 'for name; do :; done; case " $THERE " in *" $name "*) echo installed ;; *) exit 1 ;; esac',
    "apt-get": r'''
echo "$*" >>"$CALLS"
case " $* " in
*" update "*) exit "${UPDATE:-0}" ;;
*" --assume-no "*) printf "Reading package lists...\n$FORESEEN\nAbort.\n"; exit 1 ;;
*" install "*)
    i=0
    while [ $i -lt "${COUNT:-1}" ]; do i=$((i + 1)); echo "Setting up package$i (1.0) ..."; done
    exit "${INSTALL:-0}" ;;
*" download "*) [ -z "${NONE:-}" ] || exit 1; for name; do :; done; : >"${name}_1.0_all.deb" ;;
esac''',
    "dpkg-deb": r'''
case $1 in
-f) echo "libc6 (>= 2.36), libone1 (>= 1.0) | other, libtwo2t64:any, program, libjs-three3" ;;
-x) mkdir -p "$3/usr/bin" && echo "$2" >"$3/usr/bin/program" ;;
esac''',
}
MANY = ("2 upgraded, 823 newly installed, 0 to remove and 4 not upgraded.\nNeed to get 393 MB of archives.\n"
        "After this operation, 1607 MB of additional disk space will be used.")
ONE = ("0 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.\nNeed to get 6936 kB/16.2 MB of archives.\n"
       "After this operation, 5 kB disk space will be freed.")


def awks():
    """Each awk of this machine, by its name."""
    found = {name: [path] for name in ("mawk", "gawk", "original-awk") for path in [shutil.which(name)] if path}
    if shutil.which("busybox"):
        found["busybox"] = [shutil.which("busybox"), "awk"]
    return found or {"awk": [shutil.which("awk")]}


class Awk(Folder):
    def setUp(self):
        super().setUp()
        self.bin, self.at, self.calls = (os.path.join(self.folder, name) for name in ("bin", "at", "calls"))
        os.mkdir(self.bin)
        os.mkdir(self.at)
        for name in TOOLS:
            os.symlink(shutil.which(name), os.path.join(self.bin, name))
        for name, script in STUBS.items():
            self.script(name, script)

    def script(self, name, text):
        path = os.path.join(self.bin, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def each_awk(self):
        for name, command in awks().items():
            self.script("awk", f'exec {" ".join(command)} "$@"')
            with self.subTest(awk=name):
                yield name

    def run_in(self, *command, data=None, **env):
        """(exit status, what it says, its calls of apt-get and sudo). It leaves nothing in its folder but `into`."""
        with open(self.calls, "w", encoding="ascii"):
            pass
        done = subprocess.run(command, cwd=self.at, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=PATIENCE, input=data,
                              env=dict({"PATH": self.bin, "CALLS": self.calls, "THERE": "", "FORESEEN": ""}, **env))
        self.assertIn(os.listdir(self.at), ([], ["into"]))
        with open(self.calls, encoding="ascii") as file:
            return done.returncode, done.stdout.decode(), file.read().splitlines()

    def deps(self, *packages, **env):
        return self.run_in(DEPS, *packages, **env)


class Deps(Awk):
    def test_nothing_is_missing(self):
        self.assertEqual(self.deps("one", "two", THERE="two one"), (0, "", []))

    def test_what_is_missing(self):
        for _ in self.each_awk():
            status, said, calls = self.deps("one", "two", "three", THERE="two", FORESEEN=MANY, COUNT="825")
            self.assertEqual(said.splitlines(), [
                "installing with apt-get: one three", "  reading the lists of packages",
                "  825 packages, 393 MB to download, 1607 MB of disk",
                *(f"  {count} are set up" for count in range(20, 825, 20))])
            self.assertEqual(status, 0)
            self.assertEqual(calls, ["update -q", "install --assume-no -q --no-install-recommends one three",
                                     "install -y -q --no-install-recommends one three"])

    def test_one_package_and_lines_that_are_not_known(self):
        for _ in self.each_awk():
            self.assertIn("  1 package, 6936 kB to download, 5 kB of disk\n", self.deps("one", FORESEEN=ONE)[1])
            self.assertEqual(self.deps("one", FORESEEN="Installing:")[:2],
                             (0, "installing with apt-get: one\n  reading the lists of packages\n"))

    def test_failures(self):
        self.assertEqual(self.deps("one", INSTALL="100")[0], 1)
        self.assertEqual(self.deps("one", UPDATE="100")[0], 0, "old lists may do")
        for missing, told in (("sudo", "and root or sudo to install them: one"),
                              ("apt-get", "there is no apt-get to install them: one")):
            os.unlink(os.path.join(self.bin, missing))
            status, said, calls = self.deps("one", USER_ID="1000")
            self.assertEqual((status, calls), (1, []))
            self.assertIn(told, said)

    def test_another_user(self):
        status, _, calls = self.deps("one", USER_ID="1000")
        self.assertEqual((status, [call for call in calls if call.startswith("sudo ")]), (0, [
            "sudo apt-get update -q", "sudo env LC_ALL=C apt-get install --assume-no -q --no-install-recommends one",
            "sudo env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends one"]))

    def test_unpacked(self):
        """And the libraries that are missing are installed, nothing else that it depends on."""
        status, said, calls = self.deps("--unpack", "into", "one", THERE="libc6")
        self.assertEqual(status, 0, said)
        self.assertTrue(said.startswith("unpacking into into: one\n  one\ninstalling with apt-get: libone1 libtwo2t64\n"))
        self.assertEqual([calls[0], calls[-1]], ["download -q one", "install -y -q --no-install-recommends libone1 libtwo2t64"])
        self.assertEqual(sorted(os.listdir(os.path.join(self.at, "into"))), [".one", "usr"])
        self.assertEqual(self.deps("--unpack", "into", "one"), (0, "", []), "a second time")
        status, said, _ = self.deps("--unpack", "into", "two", NONE="1")
        self.assertEqual(status, 1)
        self.assertIn("apt-get cannot download it", said)


class Made(Awk):
    def test_every_awk_makes_the_same(self):
        text = subprocess.run([BIN, "--help"], stdout=subprocess.PIPE, check=True).stdout
        for words in (("manual", BIN, "1.0", "2026-01-01"), ("completion",)):
            made = set()
            for _ in self.each_awk():
                status, said, _ = self.run_in(os.path.join(PACKAGE, words[0]), *words[1:], data=text)
                self.assertEqual(status, 0, said)
                made.add(said)
            self.assertEqual(len(made), 1)
            self.assertGreater(len(made.pop().splitlines()), 20)


class Bare(Folder):
    def test_the_page_without_minify_and_zopfli(self):
        """The page of a build that has neither is as it was written, and compressed all the same."""
        bare = os.path.join(self.folder, "bin")
        os.mkdir(bare)
        for place in reversed(os.environ["PATH"].split(os.pathsep)):
            for name in os.listdir(place) if os.path.isdir(place) else ():
                path = os.path.join(bare, name)
                if name not in ("minify", "zopfli"):
                    if os.path.lexists(path):
                        os.unlink(path)
                    os.symlink(os.path.join(place, name), path)
        page = os.path.join(self.folder, "server", "page", "page.html")
        done = subprocess.run(["make", "-s", f"BUILD={self.folder}", page + ".gz"], cwd=ROOT, env=dict(os.environ, PATH=bare),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(b"minify is not installed", done.stdout)
        with open(page, "rb") as plain, gzip.open(page + ".gz") as packed:
            text = plain.read()
            self.assertEqual(packed.read(), text)
        with open(os.path.join(ROOT, "server", "page", "base", "state.js"), "rb") as script:
            self.assertIn(script.read().strip(), text)


if __name__ == "__main__":
    unittest.main()
