"""test_package: what `make install` puts where and `make uninstall` takes away, and the package of `make deb`."""
import os
import re
import subprocess
import tempfile
import unittest

from support import BIN, PATIENCE, ROOT, TOOLS, clean_environment
from test_process import Folder

PACKAGE = os.path.join(ROOT, "docker", "package")
VERSION, COMMIT, SECONDS, MAINTAINER = "1.2.3", "0123456789ab", "1700000000", "Ann Example <ann@example.org>"
SERVICE = "lib/systemd/system/attend.service"
MANUAL = "share/man/man1/attend.1"
COMPLETION = "share/bash-completion/completions/attend"
INSTALLED = {"bin/attend": 0o755, MANUAL: 0o644, COMPLETION: 0o644, "share/doc/attend/attend.py": 0o644,
             SERVICE: 0o644, "lib/systemd/system/attend.socket": 0o644, "lib/systemd/system/attend-admin.socket": 0o644}


def run(*command, **more):
    """(exit status, standard output and error)"""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE,
                          **more)
    return done.returncode, done.stdout.decode()


def read(path):
    with open(path, "rb") as file:
        return file.read().decode()


class Package(Folder):
    def files(self, folder):
        """Name -> mode, of all below it."""
        return {os.path.relpath(os.path.join(at, name), folder): os.stat(os.path.join(at, name)).st_mode & 0o7777
                for at, _, names in os.walk(folder) for name in names}

    def program(self, script, *words, status=0, **more):
        got, said = run(os.path.join(PACKAGE, script), *words, env=clean_environment(), **more)
        self.assertEqual(got, status, said)
        return said


class Installed(Package):
    def setUp(self):
        super().setUp()
        self.prefix = os.path.join(self.folder, "opt", "of mine")
        self.install()

    def install(self, program=BIN, status=0):
        return self.program("install", program, self.folder, "/opt/of mine", VERSION, SECONDS, status=status)

    def at(self, place):
        return os.path.join(self.prefix, place)

    def test_what_is_there(self):
        self.assertEqual(self.files(self.prefix), INSTALLED)
        self.assertEqual(run(self.at("bin/attend"), "--version")[0], 0)
        unit = read(os.path.join(ROOT, "docker", "systemd", "attend.service"))
        self.assertIn("\nExecStart=/usr/local/bin/attend serve\n", unit)
        self.assertEqual(read(self.at(SERVICE)), unit.replace("/usr/local/bin", "/opt/of mine/bin"))

    def test_over_a_program_that_runs(self):
        with subprocess.Popen([self.at("bin/attend"), "run", "demo"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=clean_environment()) as process:
            self.install()
            out, _ = process.communicate(b'{"queries":[[1,0,0,1]]}', timeout=PATIENCE)
        self.assertIn(b"outputs", out)
        self.assertEqual(self.files(self.prefix), INSTALLED)

    def test_removed_is_what_was_installed(self):
        for name in ("bin/other", "share/man/man1/other.1"):
            with open(self.at(name), "w", encoding="ascii"):
                pass
        for _ in range(2):
            self.program("install", "--remove", self.folder, "/opt/of mine")
            self.assertEqual(sorted(self.files(self.prefix)), ["bin/other", "share/man/man1/other.1"])
        self.assertFalse(os.path.exists(self.at("share/doc/attend")))
        self.assertTrue(os.path.isdir(self.at("share/doc")))

    def test_nothing_is_installed_of_a_program_that_does_not_run(self):
        before = os.stat(self.at("bin/attend")).st_ino
        self.install("/bin/false", status=1)
        self.assertEqual(os.stat(self.at("bin/attend")).st_ino, before)
        for words in ([], ["--remove"], [BIN, self.folder, "/usr"]):
            self.assertIn("docker/package/install PROGRAM", self.program("install", *words, status=2))

    def test_what_make_runs(self):
        status, said = run("make", "-n", "--no-print-directory", "install", "uninstall", "deb", "DESTDIR=/a b",
                           "PREFIX=/c", cwd=ROOT)
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r'docker/package/install build/release/attend "/a b" "/c" [\d.]+ \d+\n')
        self.assertIn('docker/package/install --remove "/a b" "/c"\n', said)
        self.assertRegex(said, r'docker/package/deb build/release/attend build/package [\d.]+ \w+ \d+ ".+ <.+@.+>"\n')

    def test_the_manual_has_all_that_help_says(self):
        page = re.sub(r"\\-", "-", read(self.at(MANUAL)))
        self.assertIn(f'.TH ATTEND 1 "2023-11-14" "attend {VERSION}"', page)
        text = run(BIN, "--help")[1]
        entries = re.findall(r"^  ((?:attend|--).*?)(?:  |$)", text, re.M)
        self.assertGreater(len(entries), 30)
        self.assertEqual(re.findall(r"^\.B ((?:attend .*|--.*))$", page, re.M), entries)
        words = " ".join(re.sub(r"^\.(TP|PP|SH.*|TH.*|RI.*|B)( |$)|^\.\\\".*$", "", page, flags=re.M).split())
        for line in text.splitlines()[1:]:
            self.assertIn(" ".join(line.split()), words)
        for section in ("NAME", "SYNOPSIS", "COMMANDS", "SETTINGS", "EXIT STATUS", "FILES"):
            self.assertEqual(page.count(f".SH {section}\n"), 1)

    @unittest.skipUnless(TOOLS, "no mandoc here")
    def test_the_manual_is_well_formed(self):
        self.assertEqual(run("mandoc", "-Tlint", "-Wwarning", self.at(MANUAL)), (0, ""))
        self.assertIn("attention layers and whole models over HTTP", run("mandoc", "-Tascii", self.at(MANUAL))[1])

    def completed(self, *words):
        """What bash offers for the last of these words."""
        script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attend; printf "%s\\n" "${COMPREPLY[@]}"'
        status, said = run("bash", "-uc", script, self.at(COMPLETION), "attend", *words)
        self.assertEqual(status, 0, said)
        return said.split()

    def test_completion(self):
        self.assertEqual(self.completed("")[:7], ["serve", "run", "check", "inspect", "health", "help", "--help"])
        self.assertEqual(self.completed("--vers"), ["--version"])
        self.assertEqual(self.completed("in"), ["inspect"])
        self.assertEqual(self.completed("inspect", "-"), ["--check", "--models", "-o", "--heads"])
        self.assertEqual(self.completed("health", ""), [])
        self.assertEqual(self.completed("run", "demo", "--h"), ["--header-timeout-ms", "--heads"])
        for words in (["--gemm", ""], ["serve", "--gemm", ""], ["serve", "--gemm", "="], ["serve", "--gemm", "=", ""]):
            self.assertEqual(self.completed(*words), ["auto", "packed", "openblas"], words)
        self.assertEqual(self.completed("check", "--access-log", "=", "e"), ["errors"])
        known = re.findall(r"^  --(\[no-\])?(\S+)", run(BIN, "--help")[1], re.M)
        wanted = [f"--{no}{name}" for flag, name in known for no in (["", "no-"] if flag else [""])]
        for words in (["serve", "--"], ["check", "--"], ["--workers", "2", "--"]):
            self.assertEqual(self.completed(*words), wanted, words)


@unittest.skipUnless(TOOLS, "no lintian here")
class Deb(Package):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory(prefix="attend-test-")
        cls.package = cls.make("one")

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    @classmethod
    def make(cls, name):
        status, said = run(os.path.join(PACKAGE, "deb"), BIN, os.path.join(cls.made.name, name), VERSION, COMMIT,
                           SECONDS, MAINTAINER)
        assert status == 0, said
        return said.strip()

    def field(self, name):
        return run("dpkg-deb", "-f", self.package, name)[1].strip()

    def test_lintian_has_nothing_to_say(self):
        """No error and no warning; what it only suggests is not asked for."""
        self.assertEqual(run("lintian", "--allow-root", "--fail-on", "error,warning", self.package), (0, ""))

    def test_the_same_again(self):
        with open(self.package, "rb") as one, open(self.make("two"), "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_what_is_in_it(self):
        root = os.path.join(self.folder, "root")
        self.assertEqual(run("dpkg-deb", "-R", self.package, root), (0, ""))
        own = {f"usr/{name}": mode for name, mode in INSTALLED.items()}
        for name, to in ((MANUAL, MANUAL + ".gz"), ("share/doc/attend/attend.py", "share/doc/attend/examples/attend.py")):
            own[f"usr/{to}"] = own.pop(f"usr/{name}")
        files = self.files(root)
        control = {name: files.pop(name) for name in list(files) if name.startswith("DEBIAN/")}
        self.assertEqual(files, {**own, "etc/attend/attend.json": 0o644, "usr/share/doc/attend/copyright": 0o644,
                                 "usr/share/doc/attend/changelog.gz": 0o644})
        self.assertEqual(sorted(control), [f"DEBIAN/{name}" for name in (
            "conffiles", "control", "md5sums", "postinst", "postrm", "prerm")])
        self.assertIn("\nExecStart=/usr/bin/attend serve\n", read(os.path.join(root, "usr", SERVICE)))
        self.assertEqual(read(os.path.join(root, "DEBIAN", "conffiles")), "/etc/attend/attend.json\n")
        self.assertEqual(run("md5sum", "--check", "--quiet", "DEBIAN/md5sums", cwd=root), (0, ""))
        for script in ("postinst", "prerm", "postrm"):
            self.assertEqual(run("sh", "-n", os.path.join(root, "DEBIAN", script)), (0, ""))
        status, said = run(os.path.join(root, "usr/bin/attend"), "check", "--config",
                           os.path.join(root, "etc/attend/attend.json"), env=clean_environment())
        self.assertEqual(status, 0, said)

    def test_what_it_says_and_depends_on(self):
        self.assertEqual((self.field("Package"), self.field("Version"), self.field("Maintainer")),
                         ("attend", VERSION, MAINTAINER))
        depends = dict(re.fullmatch(r"(\S+) \(>= (\S+)\)", part).groups()
                       for part in self.field("Depends").split(", "))
        for wanted in ("libc6", "libjansson4", "libmicrohttpd", "libnettle", "libopenblas", "libpcre2-8", "libutf8proc",
                       "libzip"):
            self.assertTrue([name for name in depends if name.startswith(wanted)], wanted)
        for name, version in depends.items():
            there = run("dpkg-query", "-W", "-f", "${Version}\n", name)[1].splitlines()[0]
            self.assertEqual(run("dpkg", "--compare-versions", there, "ge", version)[0], 0, name)


if __name__ == "__main__":
    unittest.main()
