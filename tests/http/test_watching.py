"""test_watching: the alert rules and the dashboard in docker/ are about metrics that there are; the tables of metrics and
of log fields in docker/operate.md have all of them, and no others."""
import json
import os
import re
import unittest

from prometheus import Scrape
from support import ROOT, TOY, Case, Server

ALERTS = os.path.join(ROOT, "docker", "alerts.yaml")
DASHBOARD = os.path.join(ROOT, "docker", "grafana.json")
PAGE = os.path.join(ROOT, "docker", "operate.md")
TASKS = os.path.join(ROOT, "tests", "example", "tasks.json")
# What the language of queries has of its own, as far as it is used.
WORDS = {"absent", "or", "sum", "max", "count", "rate", "increase", "changes", "deriv", "max_over_time", "time",
         "histogram_quantile", "label_values", "by", "and", "job", "instance"}
TARGET = {"job", "instance"}  # labels that Prometheus adds


def rules():
    """The expressions of the alerts by name, and what their texts say."""
    with open(ALERTS) as file:
        text = file.read()
    parts = re.split(r"^      - alert: (\w+)\n", text, flags=re.M)[1:]
    found = {}
    for name, part in zip(parts[::2], parts[1::2]):
        expression = re.search(r"^        expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)", part, re.M)
        found[name] = (expression.group(1) or expression.group(2),
                       part[part.index("        annotations:"):])
    return found


def table(section):
    """The cells of each line of a section's tables in docker/operate.md."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read().partition(f"\n### {section}\n")[2]
    text = re.split(r"^#+ ", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), maxsplit=1, flags=re.M)[0]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in re.findall(r"^\| ?`.*$", text, re.M)]


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def dashboard():
    with open(DASHBOARD) as file:
        return json.load(file)


def panels_of(board):
    return [p for p in board["panels"] if p["type"] != "row"]


class Known:
    """The metrics of a server, with their labels and values."""

    def __init__(self):
        server = Server()
        try:
            server.attend(TOY)
            server.post("/v1/attention", b"{")
            scrape = Scrape(server.get("/metrics").body)
        finally:
            server.stop()
        self.type = scrape.type
        self.labels = {"up": {}}
        for name, labels in scrape.samples:
            known = self.labels.setdefault(name, {})
            for label, value in labels:
                known.setdefault(label, set()).add(value)

    def problems(self, expression):
        """What in an expression is no metric or label of ours."""
        said, used = [], set()
        for name, _, matchers in re.findall(r"([a-zA-Z_:][\w:]*)\s*(\{([^}]*)\})",
                                            expression) or []:
            for label, how, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', matchers):
                said += self.matcher(name, label, how, value)
        bare = re.sub(r'\{[^}]*\}|"[^"]*"|\[[^\]]*\]', " ", expression)
        for labels in re.findall(r"\bby \(([^)]*)\)", bare):
            used.update(label.strip() for label in labels.split(","))
        bare = re.sub(r"\bby \([^)]*\)", " ", bare)
        names = set(re.findall(r"(?<![\w.])[a-zA-Z_:][\w:]*", bare))
        metrics = {n for n in names if n in self.labels}
        said += [f"{n} is neither a metric nor a word" for n in names - metrics - WORDS]
        if not metrics:
            said.append("there is no metric in it")
        known = TARGET.union(*(self.labels[n] for n in metrics))
        said += [f"by {label}: no such label" for label in used - known]
        return said

    def matcher(self, name, label, how, value):
        if name not in self.labels:
            return [f"no metric {name}"]
        if label in TARGET:
            return []
        known = self.labels[name].get(label)
        if known is None:
            return [f"{name} has no label {label}"]
        wanted = value.split("|") if how == "=~" else [value]
        return [f"{name} has no {label}={v}" for v in wanted
                if not any(re.fullmatch(v if how == "=~" else re.escape(v), k) for k in known)]


class Watching(Case):
    @classmethod
    def setUpClass(cls):
        cls.known = Known()

    def test_alerts_are_about_what_there_is(self):
        found = rules()
        self.assertGreater(len(found), 10)
        for name, (expression, texts) in found.items():
            with self.subTest(name):
                self.assertEqual(self.known.problems(expression), [])
                self.assertRegex(texts, r'summary: "[^"]{20,}"')
                self.assertRegex(texts, r'description: "[^"]{40,}"')  # what to do
                by = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", expression))))
                for label in re.findall(r"\$labels\.(\w+)", texts):
                    self.assertIn(label, by | TARGET)

    def test_what_there_is_not_is_noticed(self):
        for wrong in ("attend_queue_length", "rate(attend_rejected_total{reason=\"gone\"}[5m])",
                      "attend_rejected_total{why=\"queue\"}", "sum by (phase) (attend_queue_depth)",
                      "attend_rejected_total{reason=~\"queue|bugdet\"}", "sum(1)",
                      "median(attend_queue_depth)", "nothing{code=\"200\"}"):
            self.assertNotEqual(self.known.problems(wrong), [], wrong)

    def test_dashboard_shows_what_there_is(self):
        seen = set()
        for panel in panels_of(dashboard()):
            for target in panel["targets"]:
                expression = target["expr"]
                with self.subTest(panel["title"], expression=expression):
                    self.assertEqual(self.known.problems(expression), [])
                    names = set(re.findall(r"\b(?:attend|process)_\w+", expression))
                    seen |= names
                    by = set(re.findall(r"\w+",
                                        " ".join(re.findall(r"by \(([^)]*)\)", expression))))
                    if re.match(r"(sum|max|count|histogram_quantile)\b", expression):
                        labels = by - {"le"}
                    else:
                        labels = TARGET.union(*(self.known.labels[n] for n in names))
                    for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                        self.assertIn(label, labels)
        families = {re.sub(r"_(bucket|sum|count)$", "", n) for n in self.known.labels} - {"up"}
        shown = {re.sub(r"_(bucket|sum|count)$", "", n) for n in seen}
        self.assertEqual(families - shown,
                         {"attend_models", "attend_models_loaded_timestamp_seconds",
                          "process_virtual_memory_bytes", "process_threads"})

    def test_page_has_all_metrics(self):
        """With their types and labels, each once, and the values of the labels that have few."""
        lines = table("Metrics")
        self.assertEqual(sorted(line[0] for line in lines), sorted(f"`{name}`" for name in self.known.type))
        for cell, kind, labels, meaning in lines:
            name = names_in(cell)[0]
            with self.subTest(name):
                known = {}
                for suffix in ("", "_bucket"):
                    known.update(self.known.labels.get(name + suffix, {}))
                known.pop("le", None)
                self.assertEqual(kind, self.known.type[name])
                self.assertEqual(sorted(names_in(labels)), sorted(known))
                if set(known) & {"stage", "class", "reason", "phase", "work", "token", "result"}:
                    self.assertEqual(set().union(*known.values()) - set(names_in(meaning)), set())

    def test_page_has_all_log_fields(self):
        server = Server(None, "--config", TASKS, "--access-log", "all")
        try:
            for model in ("gpt2", "none"):
                server.post(f"/v1/models/{model}/generate", {"tokens": [1, 2], "max_tokens": 2}, headers={
                    "traceparent": f"00-{'1' * 32}-{'2' * 16}-01", "User-Agent": "test"})
        finally:
            server.stop()
        seen = set()
        for line in server.lines:
            if line.startswith("{"):
                seen.update(json.loads(line))
        self.assertEqual(sorted(name for line in table("Log") for name in names_in(line[0])), sorted(seen))

    def test_dashboard_can_be_imported(self):
        board = dashboard()
        self.assertIsNone(board["id"])
        self.assertGreaterEqual(board["schemaVersion"], 38)
        variables = {v["name"]: v for v in board["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        self.assertEqual(variables["datasource"]["query"], "prometheus")
        for name in ("job", "instance"):
            self.assertEqual(self.known.problems(variables[name]["query"]["query"]), [])
        source = {"type": "prometheus", "uid": "${datasource}"}
        ids, places = [p["id"] for p in board["panels"]], set()
        self.assertEqual(len(set(ids)), len(ids))
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                     for y in range(at["y"], at["y"] + at["h"])}
            self.assertLessEqual(at["x"] + at["w"], 24)
            self.assertFalse(cells & places, panel["title"])
            places |= cells
        for panel in panels_of(board):
            self.assertIn(panel["type"], ("stat", "table", "timeseries"))
            self.assertEqual(panel["datasource"], source)
            letters = [t["refId"] for t in panel["targets"]]
            self.assertEqual(len(set(letters)), len(letters))
            for target in panel["targets"]:
                self.assertEqual(target["datasource"], source)
        said = set(re.findall(r"\$\{?(\w+)", json.dumps(board)))
        self.assertEqual(said - {"__rate_interval", "__all"}, set(variables))


if __name__ == "__main__":
    unittest.main()
