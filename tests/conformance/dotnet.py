"""dotnet: what Http11Probe's cases use of .NET, for csharp.py."""
import email.utils
import random


class Unknown(Exception):
    """More C# than is read here."""


class Bag:
    """An object that was made with an initialiser: its type's name and its members."""

    def __init__(self, kind, **members):
        self.kind = kind
        self.__dict__.update(members)


class Name(str):
    """A name that nothing defines: an enumeration, and its members."""


def shown(value):
    """A value as a part of a text."""
    return "" if value is None else str(value)


def formatted(value, form):
    if form.startswith(("X", "x")):
        return format(value, form[0])
    return shown(value)


class Builder:
    """StringBuilder."""

    def __init__(self):
        self.parts = []

    def Append(self, text):
        self.parts.append(text)
        return self

    def ToString(self):
        return "".join(self.parts)


class Random:
    """Any bytes will do."""

    def __init__(self, seed):
        self.seed = seed

    def NextBytes(self, into):
        into[:] = random.Random(self.seed).randbytes(len(into))


def ascii_bytes(text):
    return text.encode("ascii", "replace")


MADE = {"StringBuilder": Builder, "Random": Random, "string": lambda c, n: c * n}
STATIC = {
    "Encoding.ASCII.GetBytes": ascii_bytes, "Encoding.UTF8.GetBytes": str.encode,
    "Encoding.ASCII.GetByteCount": lambda text: len(ascii_bytes(text)),
    "Encoding.Latin1.GetBytes": lambda text: text.encode("latin-1", "replace"),
    "string.Join": lambda mark, parts: mark.join(parts),
    "string.Concat": lambda *parts: "".join(parts),
    "string.IsNullOrEmpty": lambda text: not text,
    "string.IsNullOrWhiteSpace": lambda text: not (text or "").strip(),
    "Enumerable.Range": lambda first, count: list(range(first, first + count)),
    "Enumerable.Repeat": lambda what, count: [what] * count,
    "TimeSpan.FromMilliseconds": lambda ms: ms / 1000,
    "TimeSpan.FromSeconds": lambda seconds: seconds,
    "DateTime.TryParseExact": lambda date, *how: bool(email.utils.parsedate(date)),
    "StatusCodeRange.Exact": lambda code: (code, code),
    "StatusCodeRange.Range": lambda first, last: (first, last),
    "StatusCodeRange.Range2xx": (200, 299), "StatusCodeRange.Range4xx": (400, 499),
    "StatusCodeRange.Range4xxOr5xx": (400, 599),
}
TEXT = {
    "Contains": lambda s, part, *how: (part.lower() in s.lower()) if how else part in s,
    "StartsWith": lambda s, part, *how: s.startswith(part), "Trim": lambda s: s.strip(),
    "TrimEnd": lambda s, *marks: s.rstrip("".join(marks) or None),
    "TrimStart": lambda s, *marks: s.lstrip("".join(marks) or None),
    "Equals": lambda s, other, *how: s == other, "Replace": lambda s, a, b: s.replace(a, b),
    "Any": lambda s, test: any(test(c) for c in s), "ToString": lambda s, *form: s,
}
LIST = {
    "Select": lambda x, f: [f(each) for each in x], "All": lambda x, f: all(map(f, x)),
    "Any": lambda x, f: any(map(f, x)), "Count": lambda x, f: sum(map(bool, map(f, x))),
    "Concat": lambda x, more: list(x) + list(more), "ToArray": lambda x: x,
}
TABLE = {"ContainsKey": lambda x, name: name.lower() in x,
         "TryGetValue": lambda x, name, out: out(x.get(name.lower())) or name.lower() in x}


def copy_to(data, into, at):
    into[at:at + len(data)] = bytes(data)


def member_of(of, name):
    """A member of a value; a method is bound to it."""
    if isinstance(of, Name):
        whole = f"{of}.{name}"
        return STATIC.get(whole, Name(whole))
    if name in ("Length", "Count") and not isinstance(of, Bag) and hasattr(of, "__len__"):
        return len(of)
    if name == "CopyTo":
        return lambda into, at: copy_to(of, into, at)
    for kind, members in ((str, TEXT), (dict, TABLE), ((list, bytes), LIST)):
        if isinstance(of, kind) and name in members:
            return lambda *arguments: members[name](of, *arguments)
    if isinstance(of, int) and name == "ToString":
        return lambda *form: formatted(of, form[0] if form else "")
    if hasattr(of, name):
        return getattr(of, name)
    raise Unknown(f"{type(of).__name__}.{name}")
