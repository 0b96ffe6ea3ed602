"""manifests: what the files in docker/ say, as Python's objects."""
import glob
import json
import os
import re
import subprocess

import yaml

from fleet import certificate
from needs import npm
from support import PATIENCE, ROOT, attend

DOCKER = os.path.join(ROOT, "docker")
KUBERNETES = os.path.join(DOCKER, "kubernetes")
# The schema's module of each kind, of npm's packages.
CORE = "kubernetes-models/_schemas/IoK8sApi"
SCHEMAS = {
    "apps/v1 Deployment": CORE + "AppsV1Deployment",
    "v1 ConfigMap": CORE + "CoreV1ConfigMap",
    "v1 Service": CORE + "CoreV1Service",
    "autoscaling/v2 HorizontalPodAutoscaler": CORE + "AutoscalingV2HorizontalPodAutoscaler",
    "policy/v1 PodDisruptionBudget": CORE + "PolicyV1PodDisruptionBudget",
    "networking.k8s.io/v1 NetworkPolicy": CORE + "NetworkingV1NetworkPolicy",
    "monitoring.coreos.com/v1 PodMonitor": "@kubernetes-models/prometheus-operator/_schemas/"
    "ComGithubPrometheusOperatorPrometheusOperatorPkgApisMonitoringV1PodMonitor",
    "Container": CORE + "CoreV1Container",
}
NO_OBJECTS = ("kustomize.config.k8s.io/v1beta1 Kustomization",
              "kustomize.config.k8s.io/v1alpha1 Component")


def text_of(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return file.read()


def documents(*path):
    return list(yaml.safe_load_all(text_of("docker", *path)))


def kind_of(document):
    return f"{document.get('apiVersion')} {document.get('kind')}"


def kubernetes_files():
    """Name from docker/kubernetes on -> its one document."""
    names = glob.glob(os.path.join(KUBERNETES, "**", "*.yaml"), recursive=True)
    return {os.path.relpath(n, KUBERNETES): documents(n)[0] for n in sorted(names)}


def dockerfile():
    """What the image sets: variables, user, ports."""
    text = text_of("docker", "Dockerfile").replace("\\\n", " ")
    final = text[text.index("\nFROM scratch"):]
    env = dict(pair.split("=", 1) for line in re.findall(r"^ENV (.*)$", final, re.M)
               for pair in line.split())
    return {"env": env, "user": re.search(r"^USER (\S+)$", final, re.M).group(1),
            "ports": [int(p) for p in re.findall(r"^EXPOSE (\d+)$", final, re.M)]}


def environment(*lists):
    """That of a container: the image's, with Kubernetes' lists of name and value over it."""
    env = dict(dockerfile()["env"])
    for pairs in lists:
        for pair in pairs:
            assert set(pair) == {"name", "value"} and isinstance(pair["value"], str), pair
            env[pair["name"]] = pair["value"]
    return {name: value for name, value in env.items() if name != "PATH"}


def effective(args, env):
    """The settings that `attend check` prints for a container's arguments and environment."""
    assert args[:1] == ["serve"], args
    status, out, err = attend("check", *args[1:], env=env)
    assert status == 0, err
    return json.JSONDecoder().raw_decode(out.decode())[0]


def seconds(text):
    """Of "60s", "500ms"."""
    number, unit = re.fullmatch(r"(\d+)(ms|s|m)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60}[unit]


def longest_stop_ms(settings):
    """As server/life/stop.c reckons it."""
    source = text_of("server", "life", "stop.c")
    terms = re.search(r"uint64_t stop_longest_ms\(.*?\n\}", source, re.S).group(0)
    terms = re.search(r"return (.*);", terms).group(1)
    named = {k: int(v) for k, v in re.findall(r"^  (\w+_MS) = (\d+),", source, re.M)}
    total = 0
    for term in terms.split(" + "):
        factor, name = re.fullmatch(r"(?:(\d+) \* )?(.*)", term).groups()
        value = settings[name[3:]] if name.startswith("c->") else named[name]
        total += int(factor or 1) * value
    return total


def kubernetes_verdicts(pairs):
    """Errors and unknown fields of each (schema's name, object)."""
    asked = [{"schema": SCHEMAS[name], "data": data} for name, data in pairs]
    out = subprocess.run(["node", os.path.join(ROOT, "tests", "deploy", "kubernetes.mjs"), npm("deploy")],
                         input=json.dumps(asked).encode(), stdout=subprocess.PIPE, check=True,
                         timeout=PATIENCE).stdout
    return json.loads(out)


def compose_schema():
    """That of the Compose specification, unpacked or installed with Debian's docker-compose; None: neither."""
    for root in (os.path.join(ROOT, "build", "tools"), "/"):
        path = os.path.join(root, "usr/lib/python3/dist-packages/compose/config/compose_spec.json")
        if os.path.exists(path):
            with open(path) as file:
                return json.load(file)
    return None


def haproxy_check(folder):
    """(exit status, output) of haproxy -c on docker/haproxy.cfg as it is."""
    done = subprocess.run(["haproxy", "-c", "-f", os.path.join(DOCKER, "haproxy.cfg")],
                          env=dict(os.environ, CERTIFICATE=certificate(folder)),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()


class Haproxy:
    """Its configuration, by name."""

    def __init__(self):
        self.lines = [re.sub(r"\s+#.*", "", line).strip()
                      for line in text_of("docker", "haproxy.cfg").splitlines()]

    def value(self, name):
        """What follows the name, where a line begins with it, or its default in "${X-...}"."""
        found = [line[len(name):].strip() for line in self.lines if line.startswith(name + " ")]
        assert len(found) == 1, (name, found)
        return re.sub(r'"\$\{\w+-(.*?)\}"', r"\1", found[0])

    def timeout(self, name):
        return 1000 * seconds(self.value("timeout " + name))

    def server(self, name):
        """A parameter of every server."""
        return re.search(rf"(?:^| ){name} (\S+)", self.value("default-server")).group(1)

    def leaves_ms(self):
        """How soon it sees that a replica drains, if the check is answered at once."""
        return 1000 * (seconds(self.server("inter"))
                       + (int(self.server("fall")) - 1) * seconds(self.server("fastinter")))
