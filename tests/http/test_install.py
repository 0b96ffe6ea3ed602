"""test_install: what `make install` puts where, and what `make uninstall` takes away."""
import os
import re
import subprocess
import unittest

from support import BIN, PATIENCE, ROOT, clean_environment
from test_process import Folder

PACKAGE = os.path.join(ROOT, "docker", "package")
VERSION, SECONDS = "1.2.3", "1700000000"
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


class Installation(Package):
    def setUp(self):
        super().setUp()
        self.prefix = os.path.join(self.folder, "opt", "of mine")
        self.install()

    def install(self, program=BIN, status=0):
        return self.program("install", program, self.folder, "/opt/of mine", VERSION, SECONDS, status=status)

    def at(self, place):
        return os.path.join(self.prefix, place)


class Installed(Installation):
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
        text, full = run(BIN, "--help")[1], run(BIN, "help", "settings")[1]
        entries = re.findall(r"^  (attend.*?)(?:  |$)", text, re.M) + re.findall(r"^  command line   (--.*)$", full, re.M)
        self.assertGreater(len(entries), 50)
        commands, _, settings = page.partition(".SH EXAMPLES\n")[0].partition(".SH SETTINGS\n")
        self.assertEqual(re.findall(r"^\.B (attend .*|--.*)$", commands + settings, re.M), entries)
        self.assertEqual(re.findall(r"^\.SS (.*)$", settings, re.M), re.findall(r"^([A-Z]\w+):$", text, re.M))
        words = " ".join(re.sub(r"^\.(TP|PP|S[HS].*|TH.*|RI.*|B)( |$)|^\.\\\".*$", "", page, flags=re.M).split())
        for line in text.partition("\n  --config")[0].splitlines()[1:]:
            self.assertIn(" ".join(line.split()), words)
        for line in re.findall(r"^  (?!default|range|file|environment|command line|a change)(.*)$", full, re.M):
            self.assertIn(line, words)
        for default, unit in re.findall(r"^  default        (\S+)( \w+)?$", full, re.M):
            self.assertIn(f"Default: {default}{unit}.", words)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "SETTINGS", "EXAMPLES", "ENVIRONMENT", "SIGNALS",
                        "EXIT STATUS", "FILES", "SEE ALSO"):
            self.assertEqual(page.count(f".SH {section}\n"), 1)

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
        self.assertEqual(self.completed("help", "--max-q"), ["--max-queue"])
        self.assertEqual(self.completed("run", "demo", "--h"), ["--header-timeout-ms", "--heads"])
        for words in (["--gemm", ""], ["serve", "--gemm", ""], ["serve", "--gemm", "="], ["serve", "--gemm", "=", ""]):
            self.assertEqual(self.completed(*words), ["auto", "packed", "openblas"], words)
        self.assertEqual(self.completed("check", "--access-log", "=", "e"), ["errors"])
        known = re.findall(r"^  --(\[no-\])?(\S+)", run(BIN, "--help")[1], re.M)
        wanted = [f"--{no}{name}" for flag, name in known for no in (["", "no-"] if flag else [""])]
        for words in (["serve", "--"], ["check", "--"], ["--workers", "2", "--"]):
            self.assertEqual(self.completed(*words), wanted, words)


if __name__ == "__main__":
    unittest.main()
