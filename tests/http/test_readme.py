"""test_readme: the commands of the documentation do what they say.

A fenced block whose info string is `sh checked` is run by `sh -eu`, one with `python checked` by Debian's python3, in a
folder with the project's files where it may write others. Beside it runs a server without a configuration, or the
server of FILE for `sh checked with FILE`. A following block ```json or ```text is what it must print. JSON is compared
as JSON, numbers within 1e-6; of ```json like, keys and types are compared, and lists may be longer than shown. In text, a
line `...` matches any lines, and a number of `ms` any number. `http://127.0.0.1:8080`, or 8081, means the server of the
test, and `build/release/attend` the program under test. tests/http/stand_in has what takes the place of `hf`, and of
PyTorch and OpenAI's package where they are missing. tests/clients runs the commands of Node. DOCUMENTS in the environment
names the only pages whose commands are run. Links lead to files that exist, and to headings in them; files that are named
exist; the table of settings has those of `attend --help`, with their defaults."""
import fnmatch
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

from needs import needs
from support import BIN, PATIENCE, ROOT, Case, Server, clean_environment

DOCUMENTS = sorted(os.path.relpath(path, ROOT) for pattern in ("*.md", ".github/*.md", "*/*.md", "*/docs/*.md", "tests/*/*.md")
                   for path in glob.glob(os.path.join(ROOT, pattern)) if not path.startswith(f"{ROOT}/build/"))
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
STAND_IN = os.path.join(ROOT, "tests", "http", "stand_in")
# Debian's python3 before any other: it is the one that Debian's numpy is for.
ENVIRONMENT = clean_environment({"PATH": f"{STAND_IN}/bin:/usr/bin:{os.environ['PATH']}"})
ENVIRONMENT["PYTHONPATH"] = ":".join([os.path.join(ROOT, "server", "client")] + [
    os.path.join(STAND_IN, module) for module in ("torch", "openai")
    if subprocess.run(["python3", "-c", f"import {module}"], env=ENVIRONMENT, stderr=subprocess.DEVNULL,
                      check=False).returncode])
CHECKED = re.compile(r"(sh|python) checked(?: with (\S+))?")
PROGRAMS = {"sh": ["sh", "-eu", "-c"], "python": ["python3", "-c"]}


def checked_blocks(text):
    """(configuration or "", language, command, info string of what follows or None, what it must print) of each checked
    block."""
    blocks = list(BLOCK.finditer(text))
    for i, block in enumerate(blocks):
        checked = CHECKED.fullmatch(block.group(1))
        if not checked:
            continue
        follows = blocks[i + 1] if i + 1 < len(blocks) else None
        if not follows or follows.group(1) not in ("json", "json like", "text") or \
                "\n#" in text[block.end():follows.start()]:
            follows = None
        yield checked.group(2) or "", checked.group(1), block.group(2), *(follows.groups() if follows else (None, None))


def text_pattern(expected):
    """What standard output must match to be the text of the document."""
    lines = (re.sub(r"(\\ )*[\d.\\]+\\ ms\b", r" *[\\d.]+ ms", re.escape(line)) + "\n"
             if line.strip() != "..." else r"(.*\n)*?" for line in expected.splitlines())
    return rf"\A{''.join(lines)}\Z"


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def anchors(text):
    """The anchors of a page's headings."""
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.M)}


class Documentation(Case):
    def test_links(self):
        """To files that exist, and to headings in them."""
        for name in DOCUMENTS:
            links = re.findall(r"\]\(([^()\s]+)\)", BLOCK.sub("", read(name)))
            for link in links:
                if "://" in link:
                    continue
                path, _, anchor = link.partition("#")
                leads = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                with self.subTest(document=name, link=link):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, leads)), "no such file")
                    if anchor:
                        self.assertIn(anchor, anchors(read(leads)))

    def test_files(self):
        """That are named: from the page's own folder, or from the top."""
        for name in DOCUMENTS:
            for span in re.findall(r"`([^`\n]+)`", BLOCK.sub("", read(name))):
                if re.fullmatch(r"[\w.*-]+(/[\w.*-]+)+\.(c|h|def|js|mjs|py|md|json|yaml|cfg|conf|service|socket)", span) \
                        and not span.startswith(("build/", "models/")):
                    with self.subTest(document=name, file=span):
                        self.assertTrue(any(glob.glob(os.path.join(ROOT, folder, span))
                                            for folder in ("", os.path.dirname(name))))

    def test_files_named_without_their_folder(self):
        """`layer.c`: of the program, the page or the tests."""
        known = {os.path.basename(path) for floor in ("core", "config", "server", "tests")
                 for path in glob.glob(os.path.join(ROOT, floor, "**", "*"), recursive=True)}
        for name in DOCUMENTS:
            for span in re.findall(r"`([\w*-]+\.(?:c|h|def|js|mjs))`", BLOCK.sub("", read(name))):
                with self.subTest(document=name, file=span):
                    self.assertTrue(fnmatch.filter(known, span))

    def test_headings_differ(self):
        """So that a link by a heading's words leads to the heading that was meant."""
        for name in DOCUMENTS:
            titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", read(name)), re.M)
            self.assertEqual(sorted(set(titles)), sorted(titles), name)

    def test_every_page_is_found_from_the_first(self):
        reached, todo = set(), ["README.md"]
        while todo:
            name = todo.pop()
            if name in reached or name not in DOCUMENTS:
                continue
            reached.add(name)
            for link in re.findall(r"\]\(([^()\s#]+)", BLOCK.sub("", read(name))):
                path = os.path.normpath(os.path.join(os.path.dirname(name), link))
                todo += [path, os.path.join(path, "README.md")]  # of a folder, its page is shown
        self.assertEqual(sorted(reached), DOCUMENTS)

    def test_settings(self):
        """config/README.md has the groups and settings of `attend --help`, in order, with their defaults."""
        text = subprocess.run([BIN, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
        known = []
        for group, name, default in re.findall(
                r"^(?:(\w+):$|  --(?:\[no-\])?([a-z-]+).*?\(default: ([^\s)]+)\)$)", text, re.M | re.S):
            known.append(group or (name.replace("-", "_"), "" if default == "none" else default))
        self.assertEqual(known[0], ("config", ""))
        settings = read("config/README.md").partition("\n## Settings\n")[2].partition("\n## ")[0]
        table = re.findall(r"^(?:\| \*\*(\w+)\*\* \||\| `([a-z_]+)` \|(?: `([^`]*)`)? \|)", settings, re.M)
        self.assertEqual([group or (name, default) for group, name, default in table], known[1:])


class Commands(Case):
    """Runs those that are checked and that a class has chosen."""

    def run_all(self, chosen):
        pages = [name for name in DOCUMENTS if name in os.environ.get("DOCUMENTS", name).split()]
        blocks = [(name, block) for name in pages for block in checked_blocks(read(name)) if chosen(block[2])]
        self.assertTrue(blocks, "no command of the documentation is checked")
        with tempfile.TemporaryDirectory() as folder:
            for entry in os.listdir(ROOT):
                if entry not in ("build", ".git", "models"):
                    os.symlink(os.path.join(ROOT, entry), os.path.join(folder, entry))
            for configuration in sorted({block[0] for _, block in blocks}):
                server = Server(None, *(["--config", os.path.join(ROOT, configuration)]
                                        if configuration else []))
                try:
                    for name, (wanted, language, command, kind, expected) in blocks:
                        if wanted == configuration:
                            with self.subTest(document=name, command=command):
                                self.check(server, folder, language, command, kind, expected)
                finally:
                    server.stop()

    def check(self, server, folder, language, command, kind, expected):
        command = re.sub(r"(127\.0\.0\.1|localhost):808[01]\b", f"127.0.0.1:{server.port}",
                         command)
        command = re.sub(r"(\./)?build/release/attend\b", BIN, command)
        done = subprocess.run([*PROGRAMS[language], command], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=ENVIRONMENT, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        if kind == "text":
            self.assertRegex(done.stdout.decode(), text_pattern(expected))
        elif kind:
            self.same(json.loads(done.stdout), json.loads(expected), kind == "json like")

    def same(self, actual, expected, like=False):
        if isinstance(expected, dict):
            self.assertIsInstance(actual, dict)
            self.assertEqual(list(actual), list(expected))
            for key in expected:
                self.same(actual[key], expected[key], like)
        elif isinstance(expected, list):
            self.assertIsInstance(actual, list)
            (self.assertGreaterEqual if like else self.assertEqual)(len(actual), len(expected))
            for a, b in zip(actual, expected):
                self.same(a, b, like)
        elif like:
            number = isinstance(expected, (int, float)) and not isinstance(expected, bool)
            self.assertIsInstance(actual, (int, float) if number else type(expected))
        elif isinstance(expected, float) or isinstance(actual, float):
            # The levels of instructions differ in the last bits of float32.
            self.assertAlmostEqual(actual, expected, delta=1e-5 + 1e-5 * abs(expected))
        else:
            self.assertEqual(actual, expected)


@needs("test", "curl", "numpy")
class Checked(Commands):
    def test_checked_commands(self):
        self.run_all(lambda command: "node " not in command)


if __name__ == "__main__":
    unittest.main()
