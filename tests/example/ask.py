"""ask: one request to the server, as the examples send it."""
import json
import re
import sys
import urllib.error
import urllib.request

URL = "http://127.0.0.1:8080"


def is_url(text):
    return re.match("https?://.", text) is not None


def ask(url, path, body):
    """(the answer, the milliseconds that the server computed)"""
    if not is_url(url):
        sys.exit(f"{url!r} is no URL, such as {URL}")
    request = urllib.request.Request(url.rstrip("/") + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            compute = re.search(r"compute;dur=([\d.]+)", reply.headers["Server-Timing"])
            return json.load(reply), float(compute.group(1))
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{url}{path}: {json.load(refusal)['detail']}")
    except urllib.error.URLError as failure:
        sys.exit(f"{url}: {failure.reason}: is a server running there, such as\n"
                 "build/release/attend --config tests/example/attend.json --listen 127.0.0.1:8081")
