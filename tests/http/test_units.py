"""test_units: the units in docker/systemd fit attend and its settings. What systemd says of them is in tests/deploy."""
import os
import re
import unittest

from support import ROOT, Case

UNITS = os.path.join(ROOT, "docker", "systemd")


def lines_of(name):
    """(section, name, value) of each line of a unit."""
    section = ""
    with open(os.path.join(UNITS, name)) as file:
        for line in file.read().splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            elif line and not line.startswith("#"):
                key, value = line.split("=", 1)
                yield section, key, value


def values(unit, name):
    return [v for _, key, v in lines_of(unit) if key == name]


class Units(Case):
    def test_times_add_up(self):
        """A stop that the settings allow is not cut short, nor a watchdog asked too fast."""
        limits = dict(re.findall(r"OPTION_COUNT\((\w+), (\d+),",
                                 open(os.path.join(ROOT, "config", "settings", "options.def")).read()))
        stop = int(re.fullmatch(r"(\d+)s", values("attend.service", "TimeoutStopSec")[0]).group(1))
        self.assertGreater(stop, (int(limits["drain_ms"]) + int(limits["drain_delay_ms"])) / 1000)
        self.assertIn("3", values("attend.service", "RestartPreventExitStatus")[0].split())
        files = int(values("attend.service", "LimitNOFILE")[0])
        self.assertGreater(files, int(limits["max_connections"]) + 256)

    def test_settings_that_there_are(self):
        for value in values("attend.service", "Environment"):
            name = value.split("=")[0]
            if name.startswith("ATTEND_"):
                known = re.findall(r"OPTION_\w+\((\w+),",
                                   open(os.path.join(ROOT, "config", "settings", "options.def")).read())
                self.assertIn(name[len("ATTEND_"):].lower(), known + ["config"])

    def test_addresses_are_the_programs_own(self):
        text = open(os.path.join(ROOT, "config", "settings", "options.def")).read()
        (listen,) = re.findall(r'OPTION_ADDRESS\(listen, "([^"]+)"', text)
        self.assertEqual(values("attend.socket", "ListenStream"), [listen])
        self.assertEqual(values("attend-admin.socket", "ListenStream"), ["127.0.0.1:8081"])

    def test_headers_say_how_they_are_installed(self):
        for name in sorted(os.listdir(UNITS)):
            with open(os.path.join(UNITS, name)) as file:
                header = file.read().split("[Unit]")[0]
            if name != "attend.socket":
                self.assertIn("#   make install ", header)
                self.assertRegex(header, rf"enable --now [^&]*{name}")
        (start,) = values("attend.service", "ExecStart")
        with open(os.path.join(ROOT, "Makefile")) as file:
            (prefix,) = re.findall(r"^PREFIX +\?= (.*)$", file.read(), re.M)
        self.assertEqual(start.split()[0], prefix + "/bin/attend")

    def test_sockets_have_the_names_that_attend_knows(self):
        self.assertEqual(values("attend.socket", "FileDescriptorName"), ["attend"])
        self.assertEqual(values("attend-admin.socket", "FileDescriptorName"), ["admin"])
        self.assertEqual(values("attend-admin.socket", "Service"), ["attend.service"])


if __name__ == "__main__":
    unittest.main()
