"""openai: as much of OpenAI's package for Python as the documentation uses; for where there is none.

It sends the requests that the package sends, to the same paths, and gives the members of a response as attributes."""
import json
import urllib.request


class Object(dict):
    def __getattr__(self, name):
        """As of the package, members that only some events have are None in the others."""
        return self.get(name) if name in ("content", "role") else self[name]


class Resource:
    def __init__(self, client, path):
        self.client, self.path = client, path

    def create(self, stream=False, **fields):
        response = self.client.open(self.path, dict(fields, stream=True) if stream else fields)
        return events(response) if stream else json.load(response, object_hook=Object)

    def list(self):
        return json.load(self.client.open(self.path), object_hook=Object)


def events(response):
    for line in response:
        data = line.decode().removeprefix("data: ").strip()
        if data and data != "[DONE]":
            yield json.loads(data, object_hook=Object)


class OpenAI:
    def __init__(self, base_url, api_key):
        self.base_url, self.api_key = base_url, api_key
        for name in ("embeddings", "completions", "models"):
            setattr(self, name, Resource(self, name))
        self.chat = Object(completions=Resource(self, "chat/completions"))

    def open(self, path, fields=None):
        return urllib.request.urlopen(urllib.request.Request(
            f"{self.base_url}/{path}", None if fields is None else json.dumps(fields).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.api_key}"}))
