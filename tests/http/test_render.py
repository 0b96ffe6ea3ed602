"""test_render: conversations that a model's chat template renders: where templates come from, and what is refused."""
import json
import os
import shutil
import tempfile

from folders import write_folder
from support import Case, Server, attend

WORDS = ["<s>", "</s>", "[UNK]", "user", "assistant", "hello", "you", ":"]
PLAIN = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}" \
        "{% if add_generation_prompt %}assistant:{% endif %}"
HELLO = [{"role": "user", "content": "hello"}]


class Render(Case):
    def folder(self, template=None, config=None, **files):
        """A decoder with words, a template in tokenizer_config.json, and other files."""
        place = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, place)
        path = os.path.join(place, "m")
        write_folder(path, "gpt2-a", WORDS)
        said = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, **(config or {})}
        if template is not None:
            said["chat_template"] = template
        for name, text in {"tokenizer_config.json": json.dumps(said), **files}.items():
            with open(os.path.join(path, name), "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def start(self, path, definition=None):
        server = Server({"models": {"m": {"transformer": path, **(definition or {})}}})
        self.addCleanup(server.stop)
        return server

    def ask(self, server, **body):
        answer = server.post("/v1/models/m/render", {"messages": HELLO, **body})
        return answer.status, json.loads(answer.body)

    def test_a_conversation_and_its_tokens(self):
        server = self.start(self.folder(PLAIN))
        status, said = self.ask(server, add_generation_prompt=True)
        self.assertEqual(status, 200)
        self.assertEqual(set(said), {"model", "text", "tokens"})
        self.assertEqual(said["text"], "<s>user: hello assistant:")
        plain = server.post("/v1/models/m/tokenize", {"text": said["text"], "special_tokens": False})
        self.assertEqual(said["tokens"], json.loads(plain.body)["tokens"])

    def test_the_token_that_ends_a_message_is_described(self):
        for template, end in ((PLAIN, 1), (None, None)):
            server = self.start(self.folder(template))
            said = json.loads(server.get("/v1/models/m").body)
            self.assertEqual(said["tokens"].get("chat_end"), end)

    def test_variables(self):
        server = self.start(self.folder("{{ bos_token }}|{{ eos_token }}|{{ tools }}|{{ x is defined }}|"
                                        "{{ strftime_now('%d %b %Y %H:%M:%S.%f') }}"))
        self.assertEqual(self.ask(server, now="2026-11-28T09:05:07.25+01:00")[1]["text"],
                         "<s>|</s>|None|False|28 Nov 2026 09:05:07.250000")
        self.assertEqual(self.ask(server, now="2024-02-29", tools=[1], chat_template_kwargs={"x": 1, "bos_token": "b"})[1]["text"],
                         "b|</s>|[1]|True|29 Feb 2024 00:00:00.000000")

    def test_the_local_time(self):
        server = self.start(self.folder("{{ strftime_now('%Y') | int > 2024 }}"))
        self.assertEqual(self.ask(server)[1]["text"], "True")

    def test_places_of_templates(self):
        named = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}, {"name": "rag", "template": "{{"}]
        server = self.start(self.folder(named))
        self.assertEqual(self.ask(server)[1]["text"], "d")
        self.assertEqual(self.ask(server, tools=[])[1]["text"], "t")
        self.assertEqual(self.ask(self.start(self.folder("c", **{"chat_template.jinja": "jinja\n"})))[1]["text"], "jinja")
        beside = {"chat_template.json": json.dumps({"chat_template": "beside {{ bos_token }}"}),
                  "special_tokens_map.json": json.dumps({"bos_token": "<b>"})}
        self.assertEqual(self.ask(self.start(self.folder(config={"bos_token": None}, **beside)))[1]["text"], "beside <b>")
        path = self.folder("c", own="own {{ messages | length }}")
        self.assertEqual(self.ask(self.start(path, {"chat_template": os.path.join(path, "own")}))[1]["text"], "own 1")

    def test_a_model_without_one(self):
        status, problem = self.ask(self.start(self.folder()))
        self.assertEqual(status, 400)
        self.assertIn("without a chat template) does not support this path: set \"chat_template\" in its definition", problem["detail"])

    def test_templates_that_fail(self):
        server = self.start(self.folder("{% for m in messages %}\n{{ m.a.b }}{% endfor %}"))
        status, problem = self.ask(server)
        self.assertEqual((status, problem["detail"]),
                         (400, "chat template: line 2, column 7: 'dict object' has no attribute 'a'"))
        self.assertEqual(self.ask(server, messages=[])[0], 200)
        broken = "chat template: line 2, column 3: expected"
        path = self.folder("\n{{}}")
        self.assertIn(broken, self.start(path).get("/v1/models/m").json["notes"][0])
        config = os.path.join(path, "config")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"models": {"m": {"transformer": path}}}, file)
        status, said, error = attend("check", "--config", config)
        self.assertEqual(status, 0)
        self.assertIn(broken, said.decode() + error)
        for template, said in (("{% if %}", "line 1, column 7: expected an expression, got '%}'"),
                               ("{{ raise_exception('kein: ü') }}", "line 1, column 19: kein: ü"),
                               ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "too m"),
                               ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply"),
                               ("{{ 'x' * 99999999 }}", "too m")):
            with self.subTest(template):
                status, problem = self.ask(self.start(self.folder(template)))
                self.assertEqual(status, 400)
                self.assertIn(said, problem["detail"])

    def test_requests_that_are_refused(self):
        server = self.start(self.folder(PLAIN))
        for body, said in (({"messages": "x"}, "messages must be a list"), ({"messages": None}, "messages"),
                           ({"tools": {}}, "tools must be a list"), ({"chat_template_kwargs": []}, "must be an object"),
                           ({"now": "tomorrow"}, "now must be a time"), ({"now": "2026-02-29"}, "now must be a time"),
                           ({"now": 5}, "now must be a time"), ({"now": "2026-11-28T09:05"}, "now must be a time"),
                           ({"text": "x"}, "use \"messages\""), ({"add_generation_prompt": 1}, "add_generation_prompt")):
            with self.subTest(body):
                status, problem = self.ask(server, **body)
                self.assertEqual(status, 400)
                self.assertIn(said, problem["detail"])
        answer = server.post("/v1/models/m/render", {})
        self.assertEqual((answer.status, json.loads(answer.body)["pointer"]), (400, "/messages"))

    def test_definitions_that_are_refused(self):
        path = self.folder(PLAIN)
        for value, said in ((5, "chat_template: needs the path of a file"), ("/nowhere/x", "chat_template: ")):
            config = os.path.join(path, "config")
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"models": {"m": {"transformer": path, "chat_template": value}}}, file)
            status, _, error = attend("check", "--config", config)
            self.assertEqual(status, 2)
            self.assertIn(said, error)

    def test_the_command(self):
        path = self.folder(PLAIN)
        config = os.path.join(path, "config")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"models": {"m": {"transformer": path}}}, file)
        status, answer, error = attend("run", "m", "--render", "--config", config,
                                       data=json.dumps({"messages": HELLO}).encode())
        self.assertEqual((status, error), (0, ""))
        self.assertEqual(json.loads(answer)["text"], "<s>user: hello ")
