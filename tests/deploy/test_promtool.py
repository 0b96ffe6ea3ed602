"""test_promtool: Prometheus' own checker reads /metrics, the alert rules and the dashboard in docker/; and each alert
fires when it should, and then alone."""
import json
import shutil
import subprocess
import tempfile
import unittest

from needs import needs
from support import PATIENCE, Case, Layer
from test_metrics import Busy
from test_watching import ALERTS, dashboard, panels_of, rules


def promtool(*words, data=None):
    """What promtool, Prometheus' own checker, says: (exit status, text)."""
    done = subprocess.run(["promtool", *words], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace")


@needs("deploy", "promtool")
class Metrics(Busy):
    def test_promtool_says_nothing(self):
        server = self.start()
        self.traffic()
        self.assertEqual(promtool("check", "metrics", data=server.get("/metrics").body), (0, ""))
        status, said = promtool("check", "metrics",
                                data=b"# TYPE a counter\na 1\n")  # it does say something
        self.assertNotEqual((status, said), (0, ""))

    def test_a_file_may_be_called_anything(self):
        folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.start(config={"models": {"m": Layer(3, 8, 2).definition(folder, 'a"b\\c{},=é\u2028')}}, folder=folder)
        self.assertEqual(promtool("check", "metrics", data=self.server.get("/metrics").body), (0, ""))


@needs("deploy", "promtool")
class Files(Case):
    def test_rules_are_right(self):
        status, said = promtool("check", "rules", ALERTS)
        self.assertEqual(status, 0, said)
        self.assertIn(f"{len(rules())} rules found", said)
        self.assertNotRegex(said, r"(?i)duplicate|error|warn")

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


@needs("deploy", "promtool")
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
