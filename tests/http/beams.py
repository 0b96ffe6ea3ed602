"""beams: a search with beams as one would write it down: it asks which tokens may follow of every way, whole text by
whole text, and keeps the best.
"""
import struct
from typing import NamedTuple


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def numbers(value):
    """The value with each of its numbers as float32 has it, which its text names."""
    if isinstance(value, list):
        return [numbers(x) for x in value]
    if isinstance(value, dict):
        return {name: numbers(x) for name, x in value.items()}
    return float32(value) if isinstance(value, float) else value


class Way(NamedTuple):
    sum: float
    tokens: tuple
    logs: tuple = ()


class Done(NamedTuple):
    score: float
    way: Way
    finish: str


def search(ask, beams, most, ends=(), stops=(), penalty=1.0, early=False, fewest=0, banned=(), forced_end=None):
    """The ways that are done, the best first, and those that went on from each step: (parent, token, log, sum).

    `ask` gets a list of continuations and returns for each of them the log probability of every token behind it."""
    closing = {**{token: "stop" for token in stops}, **{token: "end" for token in ends}}
    wide = max(2, 1 + len(closing)) * beams
    running, done, steps = [Way(0.0, ())], [], []
    for count in range(1, most + 1):
        candidates = []
        for parent, (way, logs) in enumerate(zip(running, ask([way.tokens for way in running]))):
            for token, log in enumerate(logs):
                if forced_end is not None and count == most:
                    if token == forced_end:
                        candidates.append((-way.sum, parent, token, log))
                elif token not in banned and (count > fewest or token not in closing):
                    candidates.append((-(way.sum + log), parent, token, log))
        candidates = sorted(candidates)[:wide]
        following = []
        for rank, (minus, parent, token, log) in enumerate(candidates):
            way = Way(-minus, running[parent].tokens + (token,), running[parent].logs + (log,))
            finish = closing.get(token) or ("length" if count == most else None)
            if finish is None:
                if len(following) < beams:
                    following.append((way, (parent, token, log, -minus)))
            elif rank < beams:
                done.append(Done(-minus / count ** penalty, way, finish))
        done = sorted(done, key=lambda d: -d.score)[:beams]  # of equals the earlier stays before
        running = [way for way, _ in following]
        steps.append([step for _, step in following])
        if not running:
            break
        if len(done) == beams:
            far = most if early == "never" and penalty > 0 else count
            if early is True or running[0].sum / far ** penalty <= done[-1].score:
                break
    return done, steps


def asker(server, model, text=None, source=None):
    """Asks /score of a model of at most 64 tokens: of a decoder behind a text, of one with an encoder of a source."""
    def ask(ways):
        request = {"return_top": 64, "targets": [list(way) + [0] for way in ways]}
        request["tokens"] = [source if text is None else text] * len(ways)
        answer = server.post(f"/v1/models/{model}/score", request)
        assert answer.status == 200, answer
        for item in answer.json["top"]:
            logs = [None] * len(item[-1])
            for entry in item[-1]:
                logs[entry["token"]] = float32(entry["log_probability"])
            yield logs
    return ask


def as_answer(done, returns):
    """As /generate has the sequences of one text."""
    return [{"tokens": list(d.way.tokens), "score": float32(d.score), "finish": d.finish,
             "log_probabilities": list(d.way.logs)} for d in done[:returns]]


def as_search(steps):
    return [[{"parent": parent, "token": token, "log_probability": log, "sum": float32(total)}
             for parent, token, log, total in step] for step in steps]
