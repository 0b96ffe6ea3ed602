"""test_readme: the shell commands of the documentation do what they say.

A fenced block ```sh whose first line is `# checked` is run by `sh -eu`, in the project's folder,
with a server as described in the README: without a configuration, or with FILE where that line is
`# checked with FILE`. A following block ```json or ```text is what it must print: JSON is compared
as JSON, numbers within 1e-6; a text line `...` stands for any lines, and a number of `ms` for any
number. `http://127.0.0.1:8080`, or 8081, means the server of the test, and `build/release/attend` the
program under test. Links lead somewhere."""
import json
import os
import re
import subprocess
import unittest

from support import BIN, PATIENCE, TOOLS, ROOT, Case, Server, clean_environment

DOCUMENTS = ["README.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
# Debian's python3 before any other: it is the one that Debian's numpy is for.
ENVIRONMENT = clean_environment({"PATH": f"/usr/bin:{os.environ['PATH']}"})
CHECKED = re.compile(r"# checked(?: with (\S+))?\n")


def checked_blocks(text):
    """(configuration or "", command, kind of what follows or None, what it must print) of each
    checked block."""
    blocks = list(BLOCK.finditer(text))
    for i, block in enumerate(blocks):
        checked = CHECKED.match(block.group(2))
        if block.group(1) != "sh" or not checked:
            continue
        follows = blocks[i + 1] if i + 1 < len(blocks) else None
        if follows and follows.group(1) in ("json", "text") and \
                "\n#" not in text[block.end():follows.start()]:
            yield checked.group(1) or "", block.group(2), follows.group(1), follows.group(2)
        else:
            yield checked.group(1) or "", block.group(2), None, None


def text_pattern(expected):
    """What standard output must match to be the text of the document."""
    lines = (re.sub(r"(\\ )*[\d.\\]+\\ ms\b", r" *[\\d.]+ ms", re.escape(line)) + "\n"
             if line.strip() != "..." else r"(.*\n)*?" for line in expected.splitlines())
    return rf"\A{''.join(lines)}\Z"


class Documentation(Case):
    def test_links(self):
        """To files that there are, and to headings."""
        for name in DOCUMENTS:
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                text = BLOCK.sub("", file.read())
            headings = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
                        for title in re.findall(r"^#+ (.*)$", text, re.M)}
            links = re.findall(r"\]\(([^()\s]+)\)", text)
            self.assertTrue(links)
            for link in links:
                with self.subTest(document=name, link=link):
                    if link.startswith("#"):
                        self.assertIn(link[1:], headings)
                    elif "://" not in link:
                        self.assertTrue(os.path.exists(os.path.join(ROOT, link)))

    def test_checked_commands(self):
        texts = [(name, os.path.join(ROOT, name)) for name in DOCUMENTS]
        blocks = [(name, block) for name, path in texts if os.path.exists(path)
                  for block in checked_blocks(open(path, encoding="utf-8").read())]
        if not os.path.exists(texts[0][1]):
            self.skipTest("there is no README yet")
        self.assertTrue(blocks, "no command of the README is checked")
        for configuration in sorted({block[0] for _, block in blocks}):
            server = Server(None, *(["--config", os.path.join(ROOT, configuration)]
                                    if configuration else []))
            try:
                for name, (wanted, command, kind, expected) in blocks:
                    if wanted == configuration and (TOOLS or "node " not in command):
                        with self.subTest(document=name, command=command):
                            self.check(server, command, kind, expected)
            finally:
                server.stop()

    def check(self, server, command, kind, expected):
        command = re.sub(r"(127\.0\.0\.1|localhost):808[01]\b", f"127.0.0.1:{server.port}",
                         command)
        command = re.sub(r"(\./)?build/release/attend\b", BIN, command)
        done = subprocess.run(["sh", "-eu", "-c", command], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=ENVIRONMENT, check=False,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        if kind == "json":
            self.same(json.loads(done.stdout), json.loads(expected))
        elif kind == "text":
            self.assertRegex(done.stdout.decode(), text_pattern(expected))

    def same(self, actual, expected):
        if isinstance(expected, float) or isinstance(actual, float):
            self.assertAlmostEqual(actual, expected, delta=1e-6)
        elif isinstance(expected, dict):
            self.assertEqual(list(actual), list(expected))
            for key in expected:
                self.same(actual[key], expected[key])
        elif isinstance(expected, list):
            self.assertEqual(len(actual), len(expected))
            for a, b in zip(actual, expected):
                self.same(a, b)
        else:
            self.assertEqual(actual, expected)


if __name__ == "__main__":
    unittest.main()
