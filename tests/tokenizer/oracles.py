"""oracles: whoever answers what a text's tokens are: a program that reads questions and writes answers, a line each.

README.md says what a line holds. An oracle may know some kinds only. One that dies of a question, or
has not answered after PATIENCE seconds, is started again behind it.
"""
import json
import os
import queue
import subprocess
import sys
import threading

import kinds
from vocabularies import PACKAGES

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's, to which sentencepiece of its packages belongs
PATIENCE = 60
# One thread each: others may want the processors, too.
ENVIRONMENT = dict(os.environ, NODE_PATH=PACKAGES, TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
RANKS = {"gpt2": "gpt2", "cl100k": "cl100k_base", "o200k": "o200k_base"}
MODELS = {"pieces-llama2": "bpe", "unigram-t5": "unigram"}
PLAIN = {"ranks", "pieces"}  # know of no frame around a text, and of no pairs


def script(name, *more):
    return ["node", os.path.join(HERE, "oracle", name), *more]


def command(oracle, kind):
    """The program, or None where it does not know the kind."""
    if oracle == "native":
        return script("native.cjs", kinds.path(kind))
    if oracle == "older":
        return script("native.cjs", kinds.path(kind), "@anush008/tokenizers")
    if oracle == "script":
        return script("script.cjs", kinds.path(kind))
    if oracle == "ranks":
        return script("ranks.cjs", RANKS[kind]) if kind in RANKS else None
    if oracle == "pieces":
        return [PYTHON, os.path.join(HERE, "oracle", "pieces.py"), kinds.model_path(MODELS[kind])] if kind in MODELS else None
    # Any other is a program itself, which gets the tokenizer.json as its last argument.
    return [*oracle.split(), kinds.path(kind)]


class Oracle:
    """The answers of one oracle for one kind. (What does not start answers with errors alone.)"""

    def __init__(self, oracle, kind):
        self.command = command(oracle, kind)
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=ENVIRONMENT)
        self.said, self.lines = [], queue.Queue()
        threading.Thread(target=self.read, args=(self.process.stdout, self.lines.put), daemon=True).start()
        threading.Thread(target=self.read, args=(self.process.stderr, self.said.append), daemon=True).start()

    @staticmethod
    def read(stream, put):
        for line in stream:
            put(line)
        put(None)

    @staticmethod
    def send(stream, lines):
        try:
            for line in lines:
                stream.write(line)
            stream.flush()
        except (OSError, ValueError):
            pass  # whoever waits for the answers sees it

    def end(self):
        """Ends the program, by its own process id."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, questions):
        """An answer to each; {"error": ...} where it has none."""
        lines = [json.dumps(question, ensure_ascii=False).encode() + b"\n" for question in questions]
        answers, idle = [], 0
        while len(answers) < len(lines):
            if not self.process:
                self.start()
            begun, reason = len(answers), None
            threading.Thread(target=self.send, args=(self.process.stdin, lines[begun:]), daemon=True).start()
            while not reason and len(answers) < len(lines):
                try:
                    line = self.lines.get(timeout=PATIENCE)
                    reason = None if line else "it ended: " + self.last_words()
                except queue.Empty:
                    line, reason = None, f"no answer in {PATIENCE} s"
                if line:
                    answers.append(json.loads(line))
            if reason:
                self.end()
                idle = 0 if len(answers) > begun else idle + 1
                # Twice in a row nothing was answered: it does not start at all.
                answers += [{"error": reason}] * (len(lines) - len(answers) if idle > 1 else 1)
        return answers

    def last_words(self):
        said = b"".join(part for part in self.said if part).decode("utf-8", "replace")
        return ([line for line in said.splitlines() if "rror" in line] or [said.strip()[-300:]])[0]


def size(kind):
    """Above all ids of a kind."""
    with open(kinds.path(kind), encoding="utf-8") as file:
        return kinds.size(json.load(file))


if __name__ == "__main__":
    sys.exit(__doc__)
