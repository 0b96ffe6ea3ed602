"""probe: the cases of Http11Probe, read from the C# of a checkout, and its rules of judging them.

The cases ask for `/` and expect a server that takes any body there. Here a POST goes to the path of
the default model instead; and where the body was read whole and only its content refused, that
counts as the 200 that the case expects of whoever has understood the message.
"""
import glob
import json
import os
import re
import time

import csharp

SUITES = os.path.join("src", "Http11Probe", "TestCases", "Suites")
HELPERS = {  # of the suites: here in Python
    "CountHttpStatusLines": lambda raw: len(re.findall(r"HTTP/\d\.\d \d{3}", raw)),
    "GetHeader": lambda step, name: step.Response and step.Response.Headers.get(name.lower()),
}
UNDERSTOOD = {"/problems/invalid-json", "/problems/invalid-request"}
ECHO = (b" /echo ", b" /cookie ")  # paths of a server that says what it has read


def cases(folder):
    """All cases of a checkout, as csharp.Bag."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, SUITES, "*.cs"))):
        with open(path, encoding="utf-8-sig") as file:
            scope = csharp.methods(file.read())
        scope.update(HELPERS)
        for method in ("GetTestCases", "GetSequenceTestCases"):
            if method in scope:
                found += scope[method]()
    return found


def asked(payload):
    """The payload, with a path that takes bodies."""
    payload = bytes(payload)
    return re.sub(rb"^POST / ", b"POST /v1/attention ", payload)


def response(data):
    """The first answer in the bytes, as the validators see it, or None."""
    data = re.sub(rb"^(HTTP/1.1 100 .*?\r\n\r\n)+", b"", data, flags=re.S)
    head, _, body = data.partition(b"\r\n\r\n")
    line = re.match(rb"HTTP/\d\.\d (\d{3})", head)
    if not line:
        return None
    headers = {}
    for name, _, value in (field.partition(":") for field in head.decode("latin-1").split("\r\n")[1:]):
        name, value = name.strip().lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    code, text = int(line.group(1)), body.decode("latin-1")
    if code == 400 and said(body).get("type") in UNDERSTOOD:
        code, text = 200, "OK"
    return csharp.Bag("HttpResponse", StatusCode=code, Headers=headers, Body=text,
                      RawResponse=data.decode("latin-1"))


def said(body):
    """The problem document, or nothing."""
    try:
        return json.loads(body)
    except ValueError:
        return {}


class Steps:
    """One case on one connection."""

    def __init__(self, client, host):
        self.client = client
        self.context = csharp.Bag("TestContext", HostHeader=host)
        self.done = []

    def state(self):
        return csharp.Name("ConnectionState." + self.client.state)

    def single(self, case):
        payload = asked(case.PayloadFactory(self.context))
        if any(path in payload for path in ECHO):
            raise csharp.Unknown("needs a server that echoes")
        self.client.send(payload)
        answer = response(self.client.read())
        return judged(case.Expected, answer, self.state()), [answer]

    def sequence(self, case):
        for step in case.Steps:
            self.done.append(self.step(step))
        return case.Validator(self.done), [step.Response for step in self.done if step.Executed]

    def step(self, step):
        if self.client.state != "Open":
            return csharp.Bag("StepResult", Executed=False, Response=None,
                              ConnectionState=self.state())
        for payload, pause in self.parts(step):
            self.client.send(asked(payload))
            time.sleep(pause)
        answer = response(self.client.read())
        return csharp.Bag("StepResult", Executed=True, Response=answer,
                          ConnectionState=self.state())

    def parts(self, step):
        if hasattr(step, "SendPartsFactory"):
            return [(part.PayloadFactory(self.context), getattr(part, "DelayAfter", 0))
                    for part in step.SendPartsFactory(self.context)]
        if hasattr(step, "DynamicPayloadFactory"):
            return [(step.DynamicPayloadFactory(self.context, self.done), 0)]
        return [(step.PayloadFactory(self.context), 0)]


def judged(expected, answer, state):
    """The verdict of an ExpectedBehavior, in the order of its own rules."""
    if hasattr(expected, "CustomValidator"):
        return expected.CustomValidator(answer, state)
    closes = getattr(expected, "AllowConnectionClose", False)
    wanted = getattr(expected, "ExpectedStatus", None)
    if getattr(expected, "ExpectedConnectionState", None) == state or (answer is None and closes):
        good = True
    else:
        good = bool(answer and wanted and wanted[0] <= answer.StatusCode <= wanted[1])
    return csharp.Name("TestVerdict.Pass" if good else "TestVerdict.Fail")


def description(case):
    """What the case expects, in a few words."""
    expected = case.Expected
    if hasattr(expected, "Description"):
        return expected.Description
    first, last = getattr(expected, "ExpectedStatus", (0, 0))
    words = [str(first) if first == last else f"{first} to {last}"] if first else []
    if getattr(expected, "AllowConnectionClose", False):
        words.append("a close")
    return " or ".join(words)


def run(case, client, host):
    """(verdict, what was answered) of a case; Unknown: it cannot be judged here."""
    if case.kind == "Unknown":
        raise csharp.Unknown(case.reason)
    steps = Steps(client, host)
    try:
        verdict, answers = steps.single(case) if case.kind == "TestCase" else steps.sequence(case)
    except (TypeError, AttributeError, KeyError, IndexError, ValueError) as error:
        raise csharp.Unknown(repr(error)) from error
    codes = [str(answer.StatusCode) if answer else "none" for answer in answers]
    return verdict.rpartition(".")[2], f"{', '.join(codes)}; {client.state}"
