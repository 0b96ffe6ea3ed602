"""ask: one request to the server, as the examples send it."""
import json
import re
import urllib.request

URL = "http://127.0.0.1:8080"


def ask(url, path, body):
    """(the answer, the milliseconds that the server computed)"""
    request = urllib.request.Request(url + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        compute = re.search(r"compute;dur=([\d.]+)", reply.headers["Server-Timing"])
        return json.load(reply), float(compute.group(1))
