"""test_image: the container image: the same every time, small, all that is in it is listed, and it serves."""
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import unittest

from needs import needs
from support import BIN, PATIENCE, ROOT, Case, clean_environment

DOCKER = os.path.join(ROOT, "docker")
VERSION, COMMIT, SECONDS = "1.2.3", "0123456789ab", "1700000000"
LARGEST = 40_000_000  # bytes, compressed
USER = 65532


def run(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **more).stdout.decode()


def build(folder, name):
    """Puts an image together: the folder of its root, its archive, its digest."""
    root = os.path.join(folder, name)
    run(os.path.join(DOCKER, "root"), BIN, root, VERSION, COMMIT, SECONDS)
    return root, root + ".oci.tar", run(os.path.join(DOCKER, "pack"), root, root, VERSION, COMMIT,
                                        SECONDS).strip()


def blob(archive, digest):
    with tarfile.open(archive) as tar:
        return tar.extractfile("blobs/" + digest.replace(":", "/")).read()


def in_file(root, path):
    with open(root + path, "rb") as file:
        return file.read()


def instructions(name):
    """The last stage of a Dockerfile: instruction -> what follows it, each time it is there."""
    with open(os.path.join(DOCKER, name), encoding="utf-8") as file:
        text = re.sub(r"\\\n\s*", "", file.read()).split("\nFROM ")[-1]
    found = {}
    for line in text.splitlines()[1:]:
        word, _, rest = line.partition(" ")
        found.setdefault(word, []).append(rest)
    return found


@needs("deploy", "buildah")
class Image(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="attend-image-")
        cls.root, cls.archive, cls.digest = build(cls.folder.name, "first")
        manifest = json.loads(blob(cls.archive, cls.digest))
        cls.layers = manifest["layers"]
        cls.config = json.loads(blob(cls.archive, manifest["config"]["digest"]))
        cls.sbom = json.loads(in_file(cls.root, "/usr/share/doc/attend/sbom.spdx.json"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_same_again(self):
        time.sleep(1)  # so that a date of today would differ
        _, _, digest = build(self.folder.name, "second")
        self.assertRegex(digest, r"^sha256:[0-9a-f]{64}$")
        self.assertEqual(digest, self.digest)

    def test_docker_loads_the_same(self):
        """Its classic store knows no archive but its own: manifest.json names all."""
        with tarfile.open(self.root + ".tar") as tar:
            (manifest,) = json.load(tar.extractfile("manifest.json"))
            config = json.load(tar.extractfile(manifest["Config"]))
            layers = [tar.extractfile(name).read() for name in manifest["Layers"]]
        self.assertEqual(manifest["RepoTags"], [f"docker.io/library/attend:{VERSION}"])
        for part in ("config", "rootfs", "architecture", "os"):
            self.assertEqual(config[part], self.config[part])
        self.assertEqual(["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers],
                         config["rootfs"]["diff_ids"])

    def test_another_program_is_another_image(self):
        root = os.path.join(self.folder.name, "other")
        other = os.path.join(self.folder.name, "program")
        with open(BIN, "rb") as file, open(other, "wb") as copy:
            copy.write(file.read().replace(b"inference server", b"inference SERVER"))
        os.chmod(other, 0o755)
        run(os.path.join(DOCKER, "root"), other, root, VERSION, COMMIT, SECONDS)
        digest = run(os.path.join(DOCKER, "pack"), root, root, VERSION, COMMIT, SECONDS)
        self.assertNotEqual(digest.strip(), self.digest)

    def test_size(self):
        self.assertEqual(len(self.layers), 1)
        self.assertIn("gzip", self.layers[0]["mediaType"])
        self.assertLess(self.layers[0]["size"], LARGEST)

    def test_it_is_what_the_dockerfile_makes(self):
        wanted, config = instructions("Dockerfile"), self.config["config"]
        self.assertEqual(wanted["USER"], [config["User"]])
        self.assertEqual([f"{p}/tcp" for p in wanted["EXPOSE"]],
                         [p if "/" in p else p + "/tcp" for p in config["ExposedPorts"]])
        self.assertEqual(json.loads(wanted["ENTRYPOINT"][0]), config["Entrypoint"])
        self.assertEqual(json.loads(wanted["CMD"][0]), config["Cmd"])
        self.assertEqual(sorted(wanted["ENV"][0].split()), sorted(config["Env"]))
        said = dict(re.findall(r'([\w.]+)="([^"]*)"', wanted["LABEL"][0]))
        said = {k: v.replace("$VERSION", VERSION).replace("$COMMIT", COMMIT)
                for k, v in said.items()}
        labels = {k: v for k, v in config["Labels"].items() if not k.startswith("io.buildah")}
        self.assertEqual(said, labels)

    def test_one_version(self):
        said = []
        for name, pattern in (("Makefile", r"^VERSION := (\S+)"),
                              ("docker/Dockerfile", r"^ARG VERSION=(\S+)")):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                said += re.findall(pattern, file.read(), re.M)
        self.assertEqual(len(said), 3)
        self.assertEqual(len(set(said)), 1, said)

    def test_what_is_in_the_layer(self):
        layer = os.path.join(self.folder.name, "layer")
        with open(layer, "wb") as file:
            file.write(blob(self.archive, self.layers[0]["digest"]))
        with tarfile.open(layer) as tar:
            members = tar.getmembers()
        files = {"/" + m.name: m for m in members if m.isfile()}
        listed = {os.path.join(folder, name)[len(self.root):]
                  for folder, _, names in os.walk(self.root) for name in names}
        self.assertEqual(set(files), listed)
        for member in members:
            self.assertEqual((member.uid, member.gid, member.mtime), (0, 0, int(SECONDS)), member)
            self.assertFalse(member.mode & 0o6022, f"{member.name} has mode {member.mode:o}")

    def test_the_list_of_what_is_in_it(self):
        self.assertEqual(self.sbom["spdxVersion"], "SPDX-2.3")
        self.assertEqual(self.sbom["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        listed = {f["fileName"][1:]: f for f in self.sbom["files"]}
        there = {os.path.join(folder, name)[len(self.root):]
                 for folder, _, names in os.walk(self.root) for name in names}
        self.assertEqual(set(listed), there - {"/usr/share/doc/attend/sbom.spdx.json"})
        for name, entry in listed.items():
            for sum_ in entry["checksums"]:
                kind = sum_["algorithm"].lower()
                self.assertEqual(hashlib.new(kind, in_file(self.root, name)).hexdigest(),
                                 sum_["checksumValue"], name)
        ids = [e["SPDXID"] for e in self.sbom["files"] + self.sbom["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for i in ids:
            self.assertRegex(i, r"^SPDXRef-[A-Za-z0-9.-]+$")
        known = set(ids) | {"SPDXRef-DOCUMENT"}
        contained = []
        for relation in self.sbom["relationships"]:
            self.assertIn(relation["spdxElementId"], known)
            self.assertIn(relation["relatedSpdxElement"], known)
            if relation["relationshipType"] == "CONTAINS":
                contained.append(relation["relatedSpdxElement"])
        self.assertEqual(sorted(contained), sorted(e["SPDXID"] for e in self.sbom["files"]))

    def test_versions_and_licences(self):
        packages = {p["name"]: p for p in self.sbom["packages"]}
        self.assertIn("libjansson4", packages)
        self.assertEqual(packages["attend"]["versionInfo"], VERSION)
        self.assertIn(COMMIT, packages["attend"]["sourceInfo"])
        for name, package in packages.items():
            licence = in_file(self.root, f"/usr/share/doc/{name}/copyright")
            self.assertIn(b"opyright", licence)
            if name != "attend":
                said = run("dpkg-query", "-W", "-f", "${Version}", name)
                self.assertEqual(package["versionInfo"], said)

    def test_scanners_know_the_distribution(self):
        with open("/etc/os-release", "rb") as file:
            self.assertEqual(in_file(self.root, "/etc/os-release"), file.read())
        self.assertTrue(os.path.isfile(self.root + "/var/lib/dpkg/status.d/base-files"))
        related = {(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"])
                   for r in self.sbom["relationships"]}
        package = "SPDXRef-Package-base-files"
        self.assertIn((package, "CONTAINS", "SPDXRef-File--etc-os-release"), related)
        self.assertNotIn(("SPDXRef-Package-attend", "DEPENDS_ON", package), related)

    def test_nothing_of_the_machine(self):
        program = in_file(self.root, "/usr/bin/attend")
        for trace in (ROOT, os.path.expanduser("~/"), os.uname().nodename):
            if len(trace) > 6:
                self.assertNotIn(trace.encode(), program)

    def test_it_serves(self):
        """As its user, in its root, which only root may write."""
        command = [shutil.which("chroot") or "/usr/sbin/chroot", self.root]
        if os.geteuid():
            command[:0] = [shutil.which("unshare"), "--user", "--map-root-user"]
        else:
            command.insert(1, f"--userspec={USER}:{USER}")
        settings = dict(e.split("=", 1) for e in self.config["config"]["Env"])
        settings["ATTEND_LISTEN"] = "127.0.0.1:0"
        self.assertEqual(self.config["config"]["Entrypoint"], ["attend"])
        with subprocess.Popen([*command, "/usr/bin/attend", *self.config["config"]["Cmd"]],
                              env=dict(clean_environment(), **settings),
                              stdout=subprocess.PIPE) as process:
            try:
                port = int(re.search(rb":(\d+)$", process.stdout.readline()).group(1))
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
                connection.request("POST", "/v1/attention", b'{"queries":[[1,0,0,1]]}',
                                   {"Content-Type": "application/json"})
                answer = connection.getresponse()
                self.assertEqual(answer.status, 200)
                self.assertEqual(len(json.load(answer)["outputs"][0]), 4)
                connection.close()
            finally:
                process.terminate()
            self.assertEqual(process.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
