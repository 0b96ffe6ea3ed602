"""recording: questions, and what a program answers to them in every way that it can compute.

A recording holds all that asking again takes, the models' files too: it serves when the program
that it was made of, or the code that made its questions, is no more.
"""
import concurrent.futures
import gzip
import os
import pickle
import platform
import re
import shutil
import tempfile
from typing import NamedTuple

import questions
import support

# Level of the processor's instructions, engine of the projections.
WAYS = [f"{level} {engine}" for level in ("avx512", "avx2", "portable")
        for engine in ("packed", "openblas")]
# Nothing in an answer may depend on the machine.
SETTINGS = ["--workers", "1", "--io-threads", "1", "--memory-budget-bytes", "1000000000",
            "--max-pairs", "1500000", "--max-items", "2000", "--max-answer-bytes", "5000000",
            "--cors-origins", "https://a.example"]
# What is another in every run or build, and is cut out; request ids are given, and come back.
HEADERS = {"date": r".+", "server-timing": r"(?<=dur=)[\d.]+"}
# The time of a log, the commit, and how far a load of more than two seconds is.
PRINTED = rb"(?m)^time=\S+|(?<=attend \d\.\d\.\d \()[^)]*|^loaded \d+ of \d+ models?,.*\n"
LOADED = rb'(?<="created":)\d+'  # when a model was
UNIQUE = rb'(?<="id":"rerank-)[0-9a-f]{16}'  # of each answer another one
COMMIT, SAMPLE = rb'(?<=commit=")[^"]*', rb"(?m)(^[^#].*) \S+$"  # of /metrics


class Answer(NamedTuple):
    status: int
    headers: dict
    body: bytes


class Recording:
    def __init__(self, files, models, asked):
        """`files` are those of the models' folder, name -> bytes; `asked` are Questions."""
        self.files, self.models, self.asked, self.machine = files, models, asked, machine()
        self.answers = {}  # way -> an Answer for each question, or None where it was not asked

    @classmethod
    def of_questions(cls, count=500):
        """A recording without answers; so many of the questions are random requests."""
        folder = tempfile.mkdtemp(prefix="attend-bytes-")
        try:
            models, asked = questions.make(folder, count)
            files = {}
            for place, _, names in os.walk(folder):
                for path in (os.path.join(place, name) for name in names):
                    with open(path, "rb") as file:
                        files[os.path.relpath(path, folder)] = file.read()
        finally:
            shutil.rmtree(folder)
        return cls(files, models, asked)

    def unanswered(self):
        """The same questions."""
        return Recording(self.files, self.models, self.asked)

    def keep(self, sets):
        """Drops the questions of all other sets."""
        kept = [n for n, question in enumerate(self.asked) if question.of in sets]
        self.asked = [self.asked[n] for n in kept]
        self.answers = {way: [told[n] for n in kept] for way, told in self.answers.items()}

    # --- asking ---

    def ask(self, program, way):
        """The answers of a program in one way, None where the processor lacks its level."""
        support.BIN = os.path.abspath(program)
        level, engine = way.split()
        folder = tempfile.mkdtemp(prefix="attend-bytes-")
        env = {"ATTEND_CPU": level, "ATTEND_GEMM": engine}
        try:
            for name, data in self.files.items():
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(data)
            config = {"models": self.models, "default_model": "fuzzed0"}
            server = support.Server(config, *SETTINGS, env=env, folder=folder)
            try:
                if server.told(r"\b(?:cpu|kernels) (\w+)").group(1) != level:
                    return None
                connection = server.connect()
                answers = [answer_of(server, connection, q) if q.method != "RUN" else
                           self.run(q, folder, env, way) for q in self.asked]
                connection.close()
            finally:
                server.stop()
        finally:
            shutil.rmtree(folder)
        return answers

    def run(self, question, folder, env, way):
        """What a command line prints. Only what computes does so in every way."""
        if way != WAYS[-1] and not question.name.startswith("run "):
            return None
        status, out, err = support.attend(*question.path.split(), data=question.body, env=env,
                                          cwd=folder)
        return Answer(status, {}, re.sub(PRINTED, b"", out + b"\nstderr:\n" + err.encode()))

    # --- a file, of nothing but what Python itself has ---

    def save(self, path):
        answers = {way: [a and tuple(a) for a in told] for way, told in self.answers.items()}
        with gzip.open(path, "wb", 1) as file:
            pickle.dump((self.files, self.models, list(map(tuple, self.asked)), self.machine,
                         answers), file)

    @classmethod
    def load(cls, path):
        with gzip.open(path) as file:
            files, models, asked, made_on, answers = pickle.load(file)
        recording = cls(files, models, [questions.Question(*q) for q in asked])
        recording.machine = made_on
        recording.answers = {way: [a and Answer(*a) for a in told] for way, told in answers.items()}
        return recording


def answer_of(server, connection, question):
    headers = dict({"X-Request-Id": "bytes"}, **question.headers)
    answer = server.request(question.method, question.path, question.body or None, headers,
                            connection=connection)
    told = {name: re.sub(HEADERS[name], "", value) if name in HEADERS else value
            for name, value in answer.headers.items()}
    if question.path.startswith("/v1/models"):
        return Answer(answer.status, told, re.sub(LOADED, b"0", answer.body))
    if question.path != "/metrics" or answer.status != 200:
        return Answer(answer.status, told, re.sub(UNIQUE, b"", answer.body))
    del told["content-length"]
    return Answer(answer.status, told,
                  re.sub(SAMPLE, rb"\1", re.sub(COMMIT, b"", answer.body)))


def machine():
    """What the bits of OpenBLAS may depend on."""
    with open("/proc/cpuinfo") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found.group(1) if found else platform.machine()


def record(programs):
    """Asks (recording, program) pairs all their questions in all ways, some at a time."""
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as executor:
        jobs = [(recording, way, executor.submit(recording.unanswered().ask, program, way))
                for way in WAYS for recording, program in programs]
        for recording, way, job in jobs:
            answers = job.result()
            if answers is None:
                print(f"{way}: not on this processor")
            else:
                recording.answers[way] = answers
