"""test_manifests: all that docker/ says of attend is so: ports, paths, flags, variables, numbers."""
import json
import os
import re
import shutil
import tempfile
import unittest

import jsonschema
import yaml

import fleet
import manifests
from manifests import documents, effective, environment, kind_of, seconds
from needs import needs
from support import Case, Server, attend

READ_ONLY = {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
             "capabilities": {"drop": ["ALL"]}}


class Files(Case):
    """With the files of a pod in a folder of our own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attend-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path


class Kubernetes(Files):
    @classmethod
    def setUpClass(cls):
        cls.files = manifests.kubernetes_files()
        cls.by_kind = {d["kind"]: d for n, d in cls.files.items()
                       if "kind" in d and not n.startswith("keys/")}
        cls.pod = cls.by_kind["Deployment"]["spec"]["template"]["spec"]
        cls.labels = cls.by_kind["Deployment"]["spec"]["template"]["metadata"]["labels"]
        (cls.container,) = cls.pod["containers"]
        cls.ports = {p["name"]: p["containerPort"] for p in cls.container["ports"]}

    def arguments(self):
        """The container's, with the configuration's file where the volume would have it."""
        (mount,) = self.container["volumeMounts"]
        (volume,) = self.pod["volumes"]
        self.assertEqual(mount["name"], volume["name"])
        configuration = self.by_kind["ConfigMap"]
        self.assertEqual(volume["configMap"]["name"], configuration["metadata"]["name"])
        for name, text in configuration["data"].items():
            self.write(name, text)
        return [a.replace(mount["mountPath"], self.folder) for a in self.container["args"]]

    def settings(self, *more):
        return effective(self.arguments(), environment(self.container.get("env", []), *more))

    @needs("deploy", "node", "npm:kubernetes-models")
    def test_schema(self):
        asked = [(kind_of(d), d) for d in self.files.values() if kind_of(d) in manifests.SCHEMAS]
        others = [kind_of(d) for n, d in self.files.items()
                  if kind_of(d) not in manifests.SCHEMAS and n != "adapter-rules.yaml"]
        self.assertEqual(sorted(others), sorted(manifests.NO_OBJECTS))
        wrong = json.loads(json.dumps(self.by_kind["Deployment"]))
        wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
        wrong["spec"]["minReadySeconds"] = "2"
        *verdicts, last = manifests.kubernetes_verdicts(asked + [(kind_of(wrong), wrong)])
        for (kind, data), verdict in zip(asked, verdicts):
            if data is self.files["keys/deployment.yaml"]:  # a patch: what is required is there
                verdict["errors"] = [e for e in verdict["errors"] if not e.endswith(" required")]
            self.assertEqual(verdict, {"errors": [], "unknown": []}, kind)
        self.assertEqual(last, {"errors": ["/spec/minReadySeconds: type"], "unknown": [
            "/spec/template/spec/containers/0/readynessProbe"]})

    def test_settings_and_ports(self):
        settings = self.settings()
        self.assertEqual(settings["listen"], f"0.0.0.0:{self.ports['http']}")
        self.assertEqual(settings["admin_listen"], f"0.0.0.0:{self.ports['admin']}")
        self.assertEqual(manifests.dockerfile()["ports"], [self.ports["http"]])
        (keys,) = self.files["keys/deployment.yaml"]["spec"]["template"]["spec"]["containers"]
        names = {*environment(self.container.get("env", []), keys["env"])}
        for name, text in self.by_kind["ConfigMap"]["data"].items():
            self.assertIn(name, self.container["args"][-1])
            for key, value in json.loads(text).items():
                if key != "models":
                    self.assertEqual(settings[key], value)
                    # a variable or a flag would have the last word, and this be dead
                    self.assertNotIn("ATTEND_" + key.upper(), names)
                    self.assertNotIn("--" + key.replace("_", "-"),
                                     [a.split("=")[0] for a in self.container["args"]])

    def test_times_add_up(self):
        settings, pod = self.settings(), self.pod
        self.assertNotIn("lifecycle", self.container)
        self.assertGreaterEqual(1000 * pod["terminationGracePeriodSeconds"],
                                manifests.longest_stop_ms(settings))
        self.assertGreaterEqual(settings["drain_ms"], settings["deadline_ms"])
        probe = self.container["readinessProbe"]
        self.assertGreater(settings["drain_delay_ms"], 1000 * (
            probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]))
        self.assertEqual(self.by_kind["Deployment"]["spec"]["strategy"]["rollingUpdate"],
                         {"maxUnavailable": 0, "maxSurge": 1})

    def test_probes_metrics_and_the_autoscaler(self):
        """Against the program with this very configuration."""
        server = Server(None, *self.arguments()[1:], "--admin-listen", "127.0.0.1:0",
                        "--drain-delay-ms", "0", env=environment(), listen=True)
        self.addCleanup(server.stop)
        ask = {"http": server.get, "admin": server.ask_admin}
        for probe, path in (("startupProbe", "/readyz"), ("livenessProbe", "/healthz"),
                            ("readinessProbe", "/readyz")):
            get = self.container[probe]["httpGet"]
            self.assertEqual(get, {"path": path, "port": "admin"})
            self.assertEqual(ask[get["port"]](get["path"]).status, 200)
        monitor = self.by_kind["PodMonitor"]["spec"]
        self.assertEqual(self.labels[monitor["jobLabel"]], "attend")  # as alerts.yaml has it
        (monitored,) = monitor["podMetricsEndpoints"]
        metrics = ask[monitored["port"]](monitored["path"]).body.decode()
        pods, cpu = self.by_kind["HorizontalPodAutoscaler"]["spec"]["metrics"]
        metric = pods["pods"]["metric"]["name"]
        self.assertRegex(metrics, rf"(?m)^{metric} \d+$")
        (rule,) = self.files["adapter-rules.yaml"]["rules"]
        self.assertEqual(rule["name"], {"matches": f"^{metric}$", "as": metric})
        self.assertTrue(rule["seriesQuery"].startswith(metric + "{"))
        self.assertEqual(set(rule["resources"]["overrides"]), {"namespace", "pod"})
        self.assertLess(int(pods["pods"]["target"]["averageValue"]), self.settings()["max_queue"])
        requests, limits = (self.container["resources"][k] for k in ("requests", "limits"))
        self.assertLess(cpu["resource"]["target"]["averageUtilization"] * int(requests["cpu"]),
                        100 * int(limits["cpu"]))

    def test_what_belongs_together(self):
        kinds = self.by_kind
        self.assertEqual({d["metadata"]["name"] for d in kinds.values() if "metadata" in d},
                         {"attend"})
        spec = {kind: d.get("spec", {}) for kind, d in kinds.items()}
        selectors = [spec["Deployment"]["selector"]["matchLabels"], spec["Service"]["selector"],
                     spec["PodDisruptionBudget"]["selector"]["matchLabels"],
                     spec["NetworkPolicy"]["podSelector"]["matchLabels"],
                     spec["PodMonitor"]["selector"]["matchLabels"]]
        selectors += [c["labelSelector"]["matchLabels"]
                      for c in self.pod["topologySpreadConstraints"]]
        for selector in selectors:
            self.assertEqual(selector, self.labels)
        deployment = kinds["Deployment"]
        self.assertEqual(spec["HorizontalPodAutoscaler"]["scaleTargetRef"],
                         {"apiVersion": deployment["apiVersion"], "kind": deployment["kind"],
                          "name": deployment["metadata"]["name"]})
        self.assertNotIn("replicas", deployment["spec"])
        self.assertGreater(spec["HorizontalPodAutoscaler"]["minReplicas"],
                           spec["PodDisruptionBudget"]["maxUnavailable"])
        self.assertEqual([p["targetPort"] for p in spec["Service"]["ports"]], ["http"])

    def test_network(self):
        policy = self.by_kind["NetworkPolicy"]["spec"]
        self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
        self.assertEqual(policy["egress"], [])
        allowed = {rule["ports"][0]["port"]: rule for rule in policy["ingress"]}
        self.assertEqual(set(allowed), set(self.ports))
        self.assertTrue(all(len(rule["ports"]) == 1 for rule in policy["ingress"]))
        (source,) = allowed["admin"]["from"]
        self.assertEqual(set(source), {"namespaceSelector"})
        self.assertTrue(source["namespaceSelector"]["matchLabels"])

    def test_privileges(self):
        for name, value in READ_ONLY.items():
            self.assertEqual(self.container["securityContext"][name], value)
        context = self.pod["securityContext"]
        self.assertEqual(f"{context['runAsUser']}:{context['runAsGroup']}",
                         manifests.dockerfile()["user"])
        self.assertIs(context["runAsNonRoot"], True)
        self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertIs(self.pod["automountServiceAccountToken"], False)
        self.assertIs(self.pod["enableServiceLinks"], False)

    def test_links_to_a_service_called_attend_are_no_settings(self):
        links = {"ATTEND_PORT": "tcp://10.0.0.1:80", "ATTEND_SERVICE_HOST": "10.0.0.1",
                 "ATTEND_SERVICE_PORT": "80", "ATTEND_SERVICE_PORT_HTTP": "80",
                 "ATTEND_PORT_80_TCP": "tcp://10.0.0.1:80", "ATTEND_PORT_80_TCP_PROTO": "tcp",
                 "ATTEND_PORT_80_TCP_PORT": "80", "ATTEND_PORT_80_TCP_ADDR": "10.0.0.1"}
        self.assertEqual(self.settings([{"name": n, "value": v} for n, v in links.items()]),
                         self.settings())

    def test_keys(self):
        patch = self.files["keys/deployment.yaml"]
        self.assertEqual(self.files["keys/kustomization.yaml"]["patches"],
                         [{"path": "deployment.yaml"}])
        self.assertEqual((kind_of(patch), patch["metadata"]["name"]),
                         (kind_of(self.by_kind["Deployment"]), "attend"))
        (container,) = patch["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["name"], self.container["name"])
        (volume,), (mount,) = patch["spec"]["template"]["spec"]["volumes"], container["volumeMounts"]
        self.assertEqual(volume["name"], mount["name"])
        self.assertNotIn(volume["name"], [v["name"] for v in self.pod["volumes"]])
        env = {e["name"]: e["value"] for e in container["env"]}
        place, name = os.path.split(env["ATTEND_API_KEY_FILE"])
        self.assertEqual(place, mount["mountPath"])
        env["ATTEND_API_KEY_FILE"] = self.write(name, "a-key-of-this-test-0123456789abcdef\n")
        settings = self.settings([{"name": n, "value": v} for n, v in env.items()])
        self.assertEqual(settings["api_key_file"], env["ATTEND_API_KEY_FILE"])
        self.assertIs(settings["metrics_open"], True)

    def test_kustomization(self):
        text = manifests.text_of("docker", "kubernetes", "kustomization.yaml")
        listed = re.findall(r"^[ #]+- (\S+)", text, re.M)
        self.assertEqual(len(listed), len(set(listed)))
        self.assertEqual({n.split("/")[0] for n in self.files},
                         {*listed, "kustomization.yaml", "adapter-rules.yaml"})


class Kserve(Files):
    """Fields as of KServe's v1alpha1 and v1beta1."""

    RUNTIME = {"annotations", "labels", "supportedModelFormats", "protocolVersions", "multiModel",
               "containers", "volumes", "nodeSelector", "affinity", "tolerations", "disabled"}
    FORMAT = {"name", "version", "autoSelect", "priority"}
    PREDICTOR = {"minReplicas", "maxReplicas", "model", "scaleTarget", "scaleMetric"}
    MODEL = {"modelFormat", "runtime", "protocolVersion", "storageUri", "runtimeVersion"}

    def setUp(self):
        super().setUp()
        self.runtime, self.service = documents("kserve.yaml")
        self.spec, self.predictor = self.runtime["spec"], self.service["spec"]["predictor"]
        (self.container,) = self.spec["containers"]

    @needs("deploy", "node", "npm:kubernetes-models")
    def test_schema(self):
        self.assertEqual(kind_of(self.runtime), "serving.kserve.io/v1alpha1 ServingRuntime")
        self.assertEqual(kind_of(self.service), "serving.kserve.io/v1beta1 InferenceService")
        for fields, known in ((self.spec, self.RUNTIME), (self.predictor, self.PREDICTOR),
                              (self.predictor["model"], self.MODEL),
                              *((f, self.FORMAT) for f in self.spec["supportedModelFormats"])):
            self.assertLessEqual(set(fields), known)
        self.assertEqual(self.container["name"], "kserve-container")
        (verdict,) = manifests.kubernetes_verdicts([("Container", self.container)])
        self.assertEqual(verdict, {"errors": [], "unknown": []})

    def test_the_service_is_of_the_runtime(self):
        model = self.predictor["model"]
        self.assertEqual(model["runtime"], self.runtime["metadata"]["name"])
        self.assertIn(model["protocolVersion"], self.spec["protocolVersions"])
        self.assertIn(model["modelFormat"], [{k: f[k] for k in ("name", "version")}
                                             for f in self.spec["supportedModelFormats"]])

    def arguments(self, name):
        """The container's, as KServe fills them in; storage of one model, which is `demo`."""
        self.write("attend.json", json.dumps({"models": {"demo": {
            "random": {"seed": 1}, "query_size": 4, "heads": 2}}}))
        return [a.replace("/mnt/models", self.folder).replace("{{.Name}}", name)
                for a in self.container["args"]]

    def test_settings_probes_and_protocol(self):
        name = self.service["metadata"]["name"]
        env = environment(self.container["env"])
        settings = effective(self.arguments(name), env)
        (port,) = (p["containerPort"] for p in self.container["ports"])
        self.assertEqual(settings["listen"], f"0.0.0.0:{port}")
        self.assertEqual(settings["default_model"], name)
        for pair in self.container["env"]:
            self.assertEqual(str(settings[pair["name"][len("ATTEND_"):].lower()]), pair["value"])
        # what Kubernetes gives a pod by default
        self.assertNotIn("terminationGracePeriodSeconds", {**self.spec, **self.predictor})
        self.assertGreaterEqual(30000, manifests.longest_stop_ms(settings))
        self.assertGreaterEqual(settings["drain_ms"], settings["deadline_ms"])
        probe = self.container["readinessProbe"]
        self.assertGreater(settings["drain_delay_ms"], 1000 * (
            probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]))
        status, _, err = attend("check", *self.arguments("another")[1:], env=env)
        self.assertEqual(status, 2, err)
        self.assertIn("another", err)
        server = Server(None, *self.arguments(name)[1:], "--drain-delay-ms", "0", env=env,
                        listen=True)
        self.addCleanup(server.stop)
        probe = self.container["readinessProbe"]["httpGet"]
        self.assertEqual(probe["port"], port)
        self.assertEqual(server.get(probe["path"]).status, 200)
        annotations = self.spec["annotations"]
        self.assertEqual(annotations["prometheus.kserve.io/port"], str(port))
        self.assertEqual(server.get(annotations["prometheus.kserve.io/path"]).status, 200)
        self.assertEqual(server.get(f"/v2/models/{name}/ready").status, 200)

    def test_privileges_and_image(self):
        context = self.container["securityContext"]
        for name, value in READ_ONLY.items():
            self.assertEqual(context[name], value)
        self.assertEqual(f"{context['runAsUser']}", manifests.dockerfile()["user"].split(":")[0])


class Compose(Case):
    @classmethod
    def setUpClass(cls):
        (cls.one,), (cls.fleet,) = documents("compose.yaml"), documents("compose.fleet.yaml")
        cls.replica, cls.front = cls.fleet["services"]["attend"], cls.fleet["services"]["haproxy"]
        cls.haproxy = manifests.Haproxy()

    def settings(self, service):
        env = dict(environment(), **service.get("environment", {}))
        return effective(["serve"], env)

    def test_schema(self):
        schema = manifests.compose_schema()
        if schema is None:
            self.skipTest("needs docker-compose (make deps-deploy)")
        for name, document in (("one", self.one), ("fleet", self.fleet)):
            with self.subTest(name):
                jsonschema.validate(document, schema)
        wrong = {"services": {"attend": dict(self.replica, readonly=True)}}
        self.assertRaises(jsonschema.ValidationError, jsonschema.validate, wrong, schema)

    def test_models_of_ones_own(self):
        """Two lines to uncomment mount models/ at the top, which is no part of the project."""
        text = re.sub(r"^( +)#   (?=environment|volumes)", r"\1", manifests.text_of("docker", "compose.yaml"), flags=re.M)
        service = yaml.safe_load(text)["services"]["attend"]
        self.assertEqual(service["environment"], {"ATTEND_CONFIG": "/models/attend.json"})
        self.assertEqual(service["volumes"], ["../models:/models:ro"])
        for name, line in ((".gitignore", "/models/"), (".dockerignore", "models")):
            self.assertIn(line, manifests.text_of(name).splitlines(), name)

    def test_image_and_privileges(self):
        version = re.search(r"^VERSION := (\S+)$", manifests.text_of("Makefile"), re.M).group(1)
        kserve, deployment = documents("kserve.yaml")[0], documents("kubernetes/deployment.yaml")[0]
        named = [self.one["services"]["attend"], self.replica, kserve["spec"]["containers"][0],
                 deployment["spec"]["template"]["spec"]["containers"][0]]
        self.assertEqual([part["image"] for part in named], [f"attend:{version}"] * 4)
        for service in (*self.one["services"].values(), *self.fleet["services"].values()):
            self.assertIs(service["read_only"], True)
            self.assertEqual(service["cap_drop"], ["ALL"])
            self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
            self.assertTrue(service["cpus"] and service["mem_limit"] and service["pids_limit"])

    def test_health_is_asked_whatever_image_it_is(self):
        """HAProxy waits for replicas that are healthy, and an OCI image says of none how to ask."""
        said = " ".join(re.search(r"^HEALTHCHECK (.*)$", manifests.text_of("docker", "Dockerfile"),
                                  re.M).group(1).split())
        # one alone: that it lives; of a fleet, whether it can serve
        ready = f"http://127.0.0.1:{self.haproxy.server('check port')}/readyz"
        for service, url in ((self.one["services"]["attend"], []), (self.replica, [ready])):
            check = service["healthcheck"]
            self.assertEqual(check["test"], ["CMD", "attend", "health", *url])
            self.assertEqual(
                said, f"--interval={check['interval']} --timeout={check['timeout']} "
                f"--start-period={check['start_period']} --retries={check['retries']} "
                f"CMD {json.dumps(check['test'][1:3])}")
        self.assertEqual(self.front["depends_on"]["attend"]["condition"], "service_healthy")

    def test_times_add_up(self):
        for service in (self.one["services"]["attend"], self.replica):
            self.assertGreaterEqual(1000 * seconds(service["stop_grace_period"]),
                                    manifests.longest_stop_ms(self.settings(service)))
        settings = self.settings(self.replica)
        self.assertGreaterEqual(settings["drain_ms"], settings["deadline_ms"])
        self.assertGreater(settings["drain_delay_ms"], 2 * self.haproxy.leaves_ms())
        self.assertEqual(settings["drain_delay_ms"], fleet.DRAIN_DELAY_MS)
        self.assertIn(f"drain_delay_ms of {fleet.DRAIN_DELAY_MS}",
                      manifests.text_of("docker", "haproxy.cfg"))
        self.assertGreater(1000 * seconds(self.front["stop_grace_period"]),
                           self.haproxy.timeout("server"))

    def test_ports_and_places(self):
        settings, one = self.settings(self.replica), self.one["services"]["attend"]
        port = settings["listen"].split(":")[1]
        self.assertEqual(one["ports"], [f"127.0.0.1:{port}:{port}"])
        self.assertNotIn("ports", self.replica)  # three of them cannot have the same one
        env, haproxy = self.front["environment"], self.haproxy
        self.assertEqual(env["REPLICAS"], f"attend:{port}")
        self.assertEqual(f"0.0.0.0:{haproxy.server('check port')}", settings["admin_listen"])
        self.assertEqual(haproxy.value("bind").split()[:4],
                         [env["FRONT"], "ssl", "crt", env["CERTIFICATE"]])
        self.assertIn(env["REPLICAS"], haproxy.value("server-template replica"))
        self.assertGreater(int(haproxy.value("server-template replica").split()[0]),
                           self.replica["deploy"]["replicas"])
        self.assertEqual([p.rsplit(":", 1)[1] for p in self.front["ports"]],
                         [env["FRONT"].lstrip(":")])
        mounted = {v.split(":")[1]: v.split(":")[0] for v in self.front["volumes"]}
        self.assertIn(env["CERTIFICATE"], mounted)
        self.assertEqual(mounted["/usr/local/etc/haproxy/haproxy.cfg"], "./haproxy.cfg")


class Haproxy(Files):
    @needs("deploy", "haproxy", "openssl")
    def test_it_is_accepted(self):
        status, out = manifests.haproxy_check(self.folder)
        self.assertEqual(status, 0, out)
        self.assertNotIn("WARNING", out)
        self.assertNotIn("ALERT", out)

    def test_numbers_fit_the_settings(self):
        haproxy, settings = manifests.Haproxy(), effective(["serve"], environment())
        timeout = haproxy.timeout
        self.assertGreater(timeout("http-request"), settings["header_timeout_ms"])
        self.assertLess(timeout("http-keep-alive"), settings["idle_timeout_ms"])
        self.assertGreater(timeout("client"), max(settings["body_timeout_ms"],
                                                  settings["answer_timeout_ms"]))
        self.assertGreater(timeout("server"), max(settings["body_timeout_ms"],
                                                  settings["deadline_ms"]))
        self.assertLess(int(haproxy.server("maxconn")) + int(haproxy.server("pool-max-conn")),
                        settings["max_connections"])

    def test_what_is_asked_again(self):
        haproxy = manifests.Haproxy()
        self.assertEqual(set(haproxy.value("retry-on").split()),
                         {"conn-failure", "empty-response", "0rtt-rejected", "503"})
        self.assertIn("option http-buffer-request", haproxy.lines)
        self.assertEqual(haproxy.value("option redispatch"), "1")
        self.assertEqual(haproxy.value("http-check send"), "meth GET uri /readyz")


if __name__ == "__main__":
    unittest.main()
