"""prometheus: reads the text form of metrics as strictly as it is specified, and compares scrapes.

Text 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
"""
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([^ ]+)")
NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?([eE][+-]?\d+)?|Inf)|NaN")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


class Broken(AssertionError):
    """The text is not what it should be."""


def require(condition, words):
    if not condition:
        raise Broken(words)


class Scrape:
    """One text: `type` and `help` by family, `samples` as (name, frozenset of labels) -> value."""

    def __init__(self, text):
        if isinstance(text, bytes):
            text = text.decode("utf-8")  # strict
        require(text.endswith("\n"), "the last line has no end")
        self.type, self.help, self.samples, self.family = {}, {}, {}, {}
        self.current = None
        for number, line in enumerate(text[:-1].split("\n"), 1):
            try:
                self.read(line)
            except Broken as error:
                raise Broken(f"line {number}: {error}: {line!r}") from None
        for family in self.type:
            require(family in self.family.values(), f"{family} has no sample")
            if self.type[family] == "histogram":
                self.check_histogram(family)

    def read(self, line):
        if line.startswith("#"):
            found = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (\S.*)", line)
            require(found, "neither HELP nor TYPE")
            what, family, rest = found.groups()
            if what == "HELP":
                require(family not in self.help, "HELP twice")
                require(not re.search(r"\\(?![\\n])", rest), "a backslash that escapes nothing")
                self.help[family] = rest
                self.current = family
            else:
                require(family == self.current, "TYPE without its HELP before it")
                require(family not in self.type, "TYPE twice")
                require(rest in SUFFIXES, "no such type")
                self.type[family] = rest
            return
        found = SAMPLE.fullmatch(line)
        require(found, "not a sample")
        name, labels, value = found.group(1), found.group(2), found.group(found.re.groups)
        pairs = re.findall(LABEL, labels or "")
        key = (name, frozenset(pairs))
        require(len(dict(pairs)) == len(pairs), "a label twice")
        require(NUMBER.fullmatch(value), "no number")
        require(key not in self.samples, "a series twice")
        family = self.current
        require(family in self.type, "a sample without a type")
        require(name in [family + s for s in SUFFIXES[self.type[family]]],
                f"a sample among those of {family}")
        value = float(value.replace("Inf", "inf"))
        if self.type[family] != "gauge":
            require(value >= 0 and math.isfinite(value), "a count below zero")
        self.samples[key], self.family[key] = value, family

    def check_histogram(self, family):
        series = {}
        for (name, labels), value in self.samples.items():
            if self.family[name, labels] != family:
                continue
            rest = frozenset(p for p in labels if p[0] != "le")
            part = series.setdefault(rest, {"buckets": []})
            if name.endswith("_bucket"):
                part["buckets"].append((float(dict(labels)["le"].replace("Inf", "inf")), value))
            else:
                part[name[len(family):]] = value
        for labels, part in series.items():
            where = f"{family}{sorted(labels)}"
            buckets = part["buckets"]
            require(buckets == sorted(buckets), f"{where}: buckets in disorder")
            require(len({b for b, _ in buckets}) == len(buckets), f"{where}: a bucket twice")
            counts = [c for _, c in buckets]
            require(counts == sorted(counts), f"{where}: buckets that shrink")
            require(buckets and buckets[-1][0] == math.inf, f"{where}: no bucket +Inf")
            require(part.get("_count") == counts[-1], f"{where}: _count is not that of +Inf")
            require("_sum" in part, f"{where}: no _sum")
            require(part["_sum"] == 0 or part["_count"] > 0, f"{where}: a sum of nothing")

    def value(self, name, **labels):
        """The sum over the series that have these labels; there must be one."""
        wanted = {(k, str(v)) for k, v in labels.items()}
        found = [v for (n, l), v in self.samples.items() if n == name and wanted <= l]
        require(found, f"no series {name}{labels}")
        return sum(found)

    def values(self, name, label):
        """The values by that label, summed over the others."""
        values = {}
        for (n, labels), value in self.samples.items():
            if n == name:
                key = dict(labels)[label]
                values[key] = values.get(key, 0) + value
        return values

    def follows(self, earlier):
        """Nothing has gone, and no counter has shrunk, since an earlier scrape."""
        for key, value in earlier.samples.items():
            require(key in self.samples, f"{key} has gone")
            if earlier.type[earlier.family[key]] != "gauge":
                require(self.samples[key] >= value,
                        f"{key} shrank from {value} to {self.samples[key]}")
