"""test_package: the package of `make deb`, by lintian and dpkg; and the manual that is in it, by mandoc."""
import os
import re
import tempfile
import unittest

from needs import needs
from support import BIN, clean_environment
from test_install import INSTALLED, MANUAL, PACKAGE, SECONDS, SERVICE, VERSION, Installation, Package, read, run

COMMIT, MAINTAINER = "0123456789ab", "Ann Example <ann@example.org>"


@needs("deploy", "mandoc")
class Manual(Installation):
    def test_it_is_well_formed(self):
        self.assertEqual(run("mandoc", "-Tlint", "-Wwarning", self.at(MANUAL)), (0, ""))
        text = " ".join(run("mandoc", "-Tascii", self.at(MANUAL))[1].split())
        self.assertIn("HTTP inference server for Transformer models and attention layers on CPUs", text)


@needs("deploy", "lintian")
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
