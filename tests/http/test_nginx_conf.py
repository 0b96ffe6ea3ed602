"""test_nginx_conf: the numbers of docker/nginx.conf fit the settings of attend. What nginx does is in tests/deploy."""
import json
import os
import re
import unittest

from support import ROOT, Case, attend

CONF = os.path.join(ROOT, "docker", "nginx.conf")
UNITS = {"": 1, "s": 1000, "m": 1 << 20, "k": 1 << 10}


def conf_text():
    with open(CONF) as file:
        return file.read()


class Numbers(Case):
    """The configuration alone. What attend's settings are is asked of attend."""

    @classmethod
    def setUpClass(cls):
        status, out, err = attend("check")
        assert status == 0, err
        cls.settings = json.loads(out)
        cls.text = conf_text()

    def directive(self, name, occurrence=0, of=1):
        found = re.findall(rf"^\s*{name}\s+([^;{{}}]+);", self.text, re.M)
        self.assertEqual(len(found), of, name)
        return found[occurrence]

    def number(self, name, *args, **options):
        """In milliseconds or bytes."""
        digits, unit = re.fullmatch(r"(\d+)([smk]?)", self.directive(name, *args, **options)).groups()
        return int(digits) * UNITS[unit]

    def test_they_add_up(self):
        s = self.settings
        self.assertEqual(self.number("client_header_timeout"), s["header_timeout_ms"])
        size = self.number("client_max_body_size")
        self.assertTrue(s["max_body_bytes"] < size <= 2 * s["max_body_bytes"])
        for name in ("client_body_timeout", "proxy_send_timeout"):
            self.assertGreater(self.number(name), s["body_timeout_ms"])
        self.assertGreater(self.number("send_timeout"), s["answer_timeout_ms"])
        self.assertGreater(self.number("proxy_read_timeout"), s["deadline_ms"])
        kept = self.number("keepalive_timeout", 0, of=2)
        self.assertLessEqual(kept + 10000, s["idle_timeout_ms"])
        workers, each = self.number("worker_processes"), self.number("worker_connections")
        self.assertLessEqual(workers * each, s["max_connections"])
        self.assertLess(self.number("keepalive"), each)
        self.assertEqual(self.directive("server").split()[0], s["listen"])

    def test_what_comments_say_of_settings(self):
        said = re.findall(r"#.*?\b([a-z]+(?:_[a-z]+)+): (\d+)(?: (s|MiB))?", self.text)
        self.assertEqual({name for name, _, _ in said},
                         {"max_connections", "idle_timeout_ms", "header_timeout_ms",
                          "max_body_bytes", "body_timeout_ms", "answer_timeout_ms", "deadline_ms"})
        for name, number, unit in said:
            self.assertEqual(int(number) * {"s": 1000, "MiB": 1 << 20, "": 1}[unit],
                             self.settings[name], name)
        for line in self.text.splitlines():
            for name in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", line.partition("#")[2]):
                self.assertIn(name, self.settings)


if __name__ == "__main__":
    unittest.main()
