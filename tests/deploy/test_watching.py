"""test_watching: the alert rules and the dashboard in docker/: right by promtool, about metrics that
there are, and each alert fires when it should and then alone."""
import json
import os
import re
import tempfile
import unittest

from prometheus import Scrape, promtool
from support import MODE, TOOLS, ROOT, TOY, Case, Server

ALERTS = os.path.join(ROOT, "docker", "alerts.yaml")
DASHBOARD = os.path.join(ROOT, "docker", "grafana.json")
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


@unittest.skipUnless(TOOLS, "where an image is built there is no folder docker/, and no promtool")
class Watching(Case):
    @classmethod
    def setUpClass(cls):
        cls.known = Known()

    def test_rules_are_right(self):
        status, said = promtool("check", "rules", ALERTS)
        self.assertEqual(status, 0, said)
        self.assertIn(f"{len(rules())} rules found", said)
        self.assertNotRegex(said, r"(?i)duplicate|error|warn")

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

    def test_dashboard_asks_in_the_language(self):
        """promtool reads each expression, as that of a rule."""
        asked = [t["expr"] for p in panels_of(dashboard()) for t in p["targets"]]
        asked += [a["expr"] for a in dashboard()["annotations"]["list"] if "expr" in a]
        recorded = [{"record": f"x{i}", "expr": e.replace("$__rate_interval", "5m")}
                    for i, e in enumerate(asked)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump({"groups": [{"name": "x", "rules": recorded}]}, file)
            file.flush()
            status, said = promtool("check", "rules", file.name)
        self.assertEqual(status, 0, said)
        self.assertIn(f"{len(asked)} rules found", said)


# --- when alerts fire -----------------------------------------------------------------------------

# Two hours of a server that is well: series -> values, one a minute, as promtool writes them.
MINUTES = 120
DURATION = 'attend_http_request_duration_seconds_bucket{route="/v1/attention",method="POST",code="200"'
GENERATED = DURATION.replace("/v1/attention", "/v1/models/{model}/generate")  # as long as it likes
FIRST = 'attend_token_duration_seconds_bucket{token="first"'
NEXT = 'attend_token_duration_seconds_bucket{token="next"'
OK = 'attend_http_requests_total{route="/v1/attention",method="POST",code="200"}'
FAILED = 'attend_http_requests_total{route="/v1/attention",method="POST",code="503"}'


def still(value):
    return f"{value}x{MINUTES}"


def steady(step, begin=0):
    return f"{begin}+{step}x{MINUTES}"


def rejected(reason):
    return f'attend_rejected_total{{reason="{reason}"}}'


WELL = {"up": still(1), OK: steady(6000), FAILED: still(0), DURATION + ',le="0.5"}': steady(5990),
        DURATION + ',le="1"}': steady(5999), DURATION + ',le="2"}': steady(6000),
        DURATION + ',le="+Inf"}': steady(6000),
        FIRST + ',le="5"}': steady(60), FIRST + ',le="10"}': steady(60),
        FIRST + ',le="+Inf"}': steady(60), NEXT + ',le="0.5"}': steady(600),
        NEXT + ',le="+Inf"}': steady(600),
        GENERATED + ',le="1"}': still(0), GENERATED + ',le="+Inf"}': steady(60),
        "attend_sequences": still(5), "attend_sequences_limit": still(100),
        "attend_queue_depth": still(3), "attend_queue_limit": still(100),
        "attend_inflight_bytes": still(1e6), "attend_inflight_limit_bytes": still(1e9),
        'attend_reloads_total{result="failed"}': still(0),
        'attend_reloads_total{result="ok"}': steady(1), "attend_log_dropped_total": still(0),
        "process_start_time_seconds": still(-100000), "process_open_fds": still(50),
        "process_max_fds": still(1000), "process_resident_memory_bytes": still(2e8),
        **{rejected(r): still(0) for r in
           ("queue", "budget", "connections", "draining", "deadline", "memory", "unauthorized",
            "too_large", "slow_head", "slow_body", "slow_reader")}}

# By alert: what makes it fire, and what is much but not yet too much.
TROUBLE = {
    "AttendDown": ({"up": f"1x{MINUTES - 5} 0x5"}, {"up": f"1x{MINUTES - 1} 0"}),
    "AttendErrors": ({FAILED: steady(90)}, {FAILED: steady(30)}),
    "AttendSlow": ({DURATION + ',le="1"}': steady(5900), DURATION + ',le="0.5"}': steady(5000)},
                   {DURATION + ',le="0.5"}': steady(5000)}),
    "AttendTokensSlow": ({FIRST + ',le="5"}': steady(50)}, {FIRST + ',le="5"}': steady(55)}),
    "AttendSequencesNearlyUsedUp": ({"attend_sequences": still(91)},
                                    {"attend_sequences": still(90)}),
    "AttendQueueNearlyFull": ({"attend_queue_depth": still(81)}, {"attend_queue_depth": still(80)}),
    "AttendMemoryBudgetNearlyFull": ({"attend_inflight_bytes": still(0.91e9)},
                                     {"attend_inflight_bytes": still(0.89e9)}),
    "AttendRejecting": ({rejected("queue"): steady(7)},
                        {rejected("queue"): steady(5), rejected("draining"): steady(70),
                         rejected("too_large"): steady(70)}),
    "AttendSlowClients": ({rejected("slow_head"): steady(40), rejected("slow_reader"): steady(30)},
                          {rejected("slow_body"): steady(50)}),
    "AttendUnauthorized": ({rejected("unauthorized"): steady(70)},
                           {rejected("unauthorized"): steady(50)}),
    "AttendRestarting": ({"process_start_time_seconds": f"1000x{MINUTES - 20} 2000x6 3000x6 4000x8"},
                         {"process_start_time_seconds": f"1000x{MINUTES - 20} 2000x10 3000x10"}),
    "AttendReloadFailed": ({'attend_reloads_total{result="failed"}': f"0x{MINUTES - 5} 1x5"},
                           {'attend_reloads_total{result="failed"}': f"0x{MINUTES - 60} 1x60"}),
    "AttendLogDropped": ({"attend_log_dropped_total": f"0x{MINUTES - 3} 9x3"},
                         {"attend_log_dropped_total": f"0x{MINUTES - 30} 9x30"}),
    "AttendMemoryGrows": ({"process_resident_memory_bytes": steady(1e5, 2e8)},
                          {"process_resident_memory_bytes": steady(2e4, 2e8)}),
    "AttendFilesNearlyUsedUp": ({"process_open_fds": still(901)}, {"process_open_fds": still(899)}),
}


def scenario(name, change, firing):
    """A test for promtool: with these series, exactly these alerts fire at their end."""
    series = dict(WELL, **change)
    return {"name": name, "interval": "1m", "input_series": [
        {"series": add_target(s), "values": v} for s, v in series.items()],
            "promql_expr_test": [{
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": f"{MINUTES}m",
                "exp_samples": [{"labels": f'{{alertname="{a}"}}', "value": 1} for a in firing]}]}


def add_target(series):
    target = 'job="attend",instance="a:8080"'
    return series.replace("{", "{" + target + ",", 1) if "{" in series else f"{series}{{{target}}}"


@unittest.skipUnless(TOOLS and MODE == "release", "as above, and the same for every build")
class Alerts(Case):
    def run_tests(self, tests):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump({"rule_files": [ALERTS], "evaluation_interval": "1m", "tests": tests}, file)
            file.flush()
            return promtool("test", "rules", file.name)

    def test_each_fires_alone_and_in_time(self):
        self.assertEqual(set(TROUBLE), set(rules()))
        young = {"process_resident_memory_bytes": steady(1e5, 2e8),
                 "process_start_time_seconds": still(0)}
        gone = {"up": f"1x{MINUTES - 9} stale _x8"}  # no target of the job any more
        tests = [scenario("well", {}, []), scenario("young", young, []),
                 scenario("gone", gone, ["AttendDown"])]
        for alert, (trouble, much) in TROUBLE.items():
            tests += [scenario(alert, trouble, [alert]), scenario(alert + " not yet", much, [])]
        status, said = self.run_tests(tests)
        self.assertEqual((status, "FAILED" in said), (0, False), said)

    def test_a_wrong_expectation_fails(self):
        status, said = self.run_tests([scenario("wrong", TROUBLE["AttendErrors"][0], [])])
        self.assertEqual((status, "FAILED" in said), (1, True), said)


if __name__ == "__main__":
    unittest.main()
