"""load: requests in a loop, by wrk, for a bounded time."""
import json
import os
import subprocess

from support import JSON_TYPE

POST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "post.lua")


class Load:
    """What came of it: requests, seconds, failed ones, the latency's median and 99th percentile."""

    def __init__(self, told):
        self.requests, self.failed = told["requests"], told["failed"]
        self.seconds = told["us"] / 1e6
        self.rate = self.requests / self.seconds
        self.p50_ms, self.p99_ms = told["p50_us"] / 1e3, told["p99_us"] / 1e3


def wrk(port, body, clients, seconds, path="/v1/attention", may_fail=False, headers=None):
    """Posts the file `body` from `clients` connections, one request after the other on each;
    as JSON, if the headers do not say otherwise."""
    fields = [f"{name}: {value}" for name, value in (headers or JSON_TYPE).items()]
    words = [word for field in fields for word in ("-H", field)]
    out = subprocess.run(["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "20s",
                          "-s", POST, *words, f"http://127.0.0.1:{port}{path}"],
                         env=dict(os.environ, BODY=body), check=True, timeout=seconds + 60,
                         stdout=subprocess.PIPE).stdout.decode()
    load = Load(json.loads(next(l for l in out.splitlines() if l.startswith("{"))))
    if load.failed and not may_fail:
        raise AssertionError(f"{load.failed} requests failed\n{out}")
    return load
