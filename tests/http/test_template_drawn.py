"""test_template_drawn: random chat templates, rendered by the program's interpreter and by jinja2. (computes)

The settings of jinja2 are those of Hugging Face transformers. Both must give the same text, or both an error. Left out
are texts that Python makes of addresses, what the interpreter says it does not support, and names of filters, which
jinja2 looks up earlier."""
import copy
import datetime
import json
import os
import random
import re
import subprocess
import unittest
import warnings

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

from support import MODE, ROOT

LINES = os.path.join(ROOT, "build", MODE, "template", "lines")
COUNT = {"release": 1500}.get(MODE, 10000)  # under sanitizers `make test-all` alone comes here
NOW = datetime.datetime(2026, 11, 28, 9, 5, 7, 1234)
VARIABLES = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": " Hi, \"you\" & <b>\n\nэто тест 😀 ß "},
        {"role": "assistant", "content": None,
         "calls": [{"name": "f", "arguments": {"a": 1, "b": [1.5, True, None, "x"]}}]},
        {"role": "tool", "content": "42"},
        {"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "image"}]}],
    "n": 7, "m": -3, "f": 2.5, "z": 0, "s": "Hello, World", "e": "", "l": [3, 1, 2], "w": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": "two", "items": 3}, "t": True, "x": None, "big": 12345678901, "g": 1e16, "h": 1e-5,
    "deep": [[1, [2]], {"k": {"j": "v"}}]}


class Generation(jinja2.ext.Extension):
    """{% generation %}, as transformers has it."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_said"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _said(self, _, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals.update(raise_exception=raise_exception, strftime_now=NOW.strftime)
    return made


TEXTS = ["a", "", "Hello", " x ", "a,b,c", "-", "\\n", "\\t", "ß", "Σας", "ΟΔΟΣ", "é\\u00e9", "it\\'s", "\\\"q\\\"",
         "\\x41\\102", "<b>", "😀", "  two  words ", "ab\\ncd\\n\\nef", "3", "2.75", "true", "\\é", "1_000", "0x1f", "ǆ",
         "ﬁn", "don\\'t stop-it (now)"]
NUMBERS = "0 1 2 3 -1 -2 7 10 2.5 0.1 -0.5 1e3 100 1_000 0x10 63".split()
NAMES = list(VARIABLES) + ["absent", "i", "k", "v", "ns"]
OTHERS = "true false none True None [] {} () loop.index loop.last ns.a".split()
DATA = ["", " ", "\n", "  \n", "a", "text\n", "\n  ", "  b  ", "\r\n", "\t", "{", "}", "%}", "#", "<x>", "\n\n", "é"]
# In these, E is an expression, S a string and N a number.
OPERATIONS = """(E + E)|(E + E)|(E - E)|(E * E)|(E / E)|(E // E)|(E % E)|(E ~ E)|(E ~ E)|(N ** N)|(E ** 2)|(E ** 0.5)
(E == E)|(E != E)|(E < E)|(E >= E)|(E in E)|(E not in E)|(E < E <= E)|(E == E != E)|(E in E not in E)|(E and E)|(E or E)
not E|(-E)|(+E)|(E if E else E)|(E if E)|[]|[E]|[E, E]|(E,)|(E, E)|{S: E}|{N: E, S: E}|{E: E}|S S|(E) ~ (E) ~ E
E.role|E.items|E.keys|E.a|E.b|E.upper|E.x|E.0|E.foo|E.__class__|E.append|messages[N].content|E[N]|E[S]|E['role']|E[E]
s[N:]|w[:N]|messages[::-1]|s[::N]|w[N:N:N]|l[n:]|E['items']|range(N)|range(N, N)|range(N, N, N)|dict(a=E, b=E)
namespace(a=E)|mac(E)|mac(E, q=E)|strftime_now('%d %b %Y')|strftime_now('%Y-%m-%d %H:%M:%S.%f %j %a %A %B %%')
raise_exception(E)|loop.cycle(E, E)|loop.changed(E)|('%s' % E)|('%d|%5.2f' % (E, E))|('%r %s' % (E, E))|('%05d' % N)
('%x %o %X %c' % (n, n, n, n))|('%-8s|' % E)|('%+d' % E)|('%e %g' % (E, E))|('%(a)s' % d)|('%%' % E)|('%.3s' % E)
('%*d' % (N, N))|('%#x' % E)|('%08.3f' % E)|d.get(E)|d.get(E, E)|d.items()|d.keys()|d.values() | list|E.items() | list
E.pop()|d.update(a=1)|l.index(E)|w.count(E)|E.append(1)|E.copy()""".replace("\n", "|").split("|")
OPERATIONS = [o for o in OPERATIONS if o.count("(") == o.count(")")] + ["('%d|%5.2f' % (E, E))", "('%-8s|' % E)"]
FILTERS = """upper;lower;title;capitalize;trim;trim(S);length;count;list;first;last;reverse | list;reverse;join;join(S)
join(S, attribute='role');join(S, attribute=0);sort;sort(reverse=true);sort(case_sensitive=true);sort(attribute='role')
sort(attribute='role,content');unique | list;unique(attribute='role') | list;min;max;sum;sum(start=E);map('upper') | list
map(attribute='role') | list;map(attribute='role', default='?') | list;map(attribute=0) | list;map('int') | join(',')
select | list;select('string') | list;select('gt', 1) | list;reject('none') | list;selectattr('role') | list;map | list
selectattr('role', 'equalto', 'user') | list;rejectattr('role', 'in', ['user']) | list;default(E);default(E, true);d
selectattr('content', 'string') | map(attribute='content') | join('|');string;int;int(E);int(5, 16);int(base=0);float
float(E);abs;round;round(1);round(2);round(-1);round(1, 'floor');round(1, 'ceil');replace(S, S);replace(S, S, N);indent
indent(2);indent(1, true);indent('> ', true);indent(first=true, blank=true);tojson;tojson(indent=2);tojson(indent=0)
tojson(ensure_ascii=true);tojson(separators=(',', ':'));tojson(sort_keys=true);items | list;dictsort;dictsort(true)
dictsort(by='value');dictsort(reverse=true);wordcount;truncate(N);truncate(9, true, '…', 0);center(N);batch(2) | list
batch(2, E) | list;slice(2) | list;slice(3, E) | list;groupby('role') | list;attr('upper');format(E);format(E, E)
first | upper;list | length;escape | length""".replace("\n", ";").split(";")
TESTS = """defined;undefined;none;boolean;true;false;integer;float;number;string;mapping;iterable;sequence;callable;lower
upper;odd;even;divisibleby(N);divisibleby 2;eq(E);equalto(E);ne 1;lt(E);ge(E);in(E);in [1, 'a'];sameas none
sameas(true);escaped""".replace("\n", ";").split(";")
METHODS = """upper();lower();title();capitalize();swapcase();strip();strip(S);lstrip();lstrip(S);rstrip();rstrip(none)
split();split(S);split(S, N);split(none, 1);split(sep=',', maxsplit=1);rsplit(S, 1);rsplit(none, 1);rsplit();splitlines()
splitlines(true);startswith(E);startswith((S, S));startswith(S, 1);startswith(S, -3, -1);endswith(E);endswith((S, 'd'))
replace(S, S);replace(S, S, N);find(S);find(S, 2);rfind(S);find(S, N, N);rfind(S, N, N);index(S);rindex(S);count(S)
count(S, 1, -1);join(E);join(w);partition(S);rpartition(S);removeprefix(S);removesuffix(S);center(N);center(9, '*')
ljust(9);rjust(N, '-');zfill(N);isalpha();isalnum();isdigit();isdecimal();isnumeric();isspace();islower();isupper()
isascii();nomethod();upper(1);split(x=1)""".replace("\n", ";").split(";")


class Drawn:
    """Random templates."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def pick(self, *words):
        return self.rng.choice(words)

    def filled(self, pattern, depth):
        """The pattern with an expression, string or number for each of its capitals that stand alone."""
        out = []
        for n, c in enumerate(pattern):
            before, after = pattern[n - 1:n], pattern[n + 1:n + 2]
            alone = not (before.isalnum() or before in "_%'" and before or after.isalnum() or after == "_")
            if c == "E" and alone:
                out.append(self.expression(depth - self.rng.randint(1, 2)))
            elif c == "S" and alone:
                quote = self.pick("'", '"')
                out.append(quote + self.pick(*TEXTS) + quote)
            elif c == "N" and alone:
                out.append(self.pick(*NUMBERS))
            else:
                out.append(c)
        return "".join(out)

    def expression(self, depth):
        kind = self.rng.randrange(20)
        if depth <= 0:
            return self.filled(self.pick("N", "S", self.pick(*NAMES), self.pick(*NAMES), self.pick(*OTHERS)), 0)
        if kind < 10:
            return self.filled(self.pick(*OPERATIONS), depth)
        if kind < 14:
            return self.filled("(E | " + self.pick(*FILTERS) + ")", depth)
        if kind < 16:
            return self.filled("(E is " + self.pick("", "not ") + self.pick(*TESTS) + ")", depth)
        return self.filled(self.pick("S", "S", "s", "E", "messages[1].content") + "." + self.pick(*METHODS), depth)

    def sign(self):
        return self.pick("", "", "", "-", "+")

    def tag(self, text):
        return "{%" + self.sign() + self.pick(" ", "  ", "") + text + " " + self.sign() + "%}"

    def output(self, depth):
        return "{{" + self.pick("", "", "-") + " " + self.expression(depth) + " " + self.pick("", "", "-") + "}}"

    def body(self, depth):
        return "".join(self.statement(depth - 1) for _ in range(self.rng.randint(0, 3)))

    def loop(self, depth):
        items = self.pick("messages", "l", "d", "d.items()", "range(3)", "\"ab\"", "[[1, 2], [3, 4]]", "d | items", "deep",
                          "messages | map(attribute=\"role\")", self.pick(*NAMES), self.expression(1))
        written = self.tag("for " + self.pick("i", "i", "k", "k, v", "(i, v)", "v") + " in " + items +
                           (" if " + self.expression(1) if self.rng.random() < .25 else ""))
        written += self.body(depth) + self.pick(
            "{{ loop.index }}", "{{ loop.last }}{{ loop.first }}", "{{ loop.revindex }} {{ loop.length }}",
            "{{ loop.previtem }}|{{ loop.nextitem is defined }}", "{{ loop.revindex0 }}{{ loop.depth }}", "{{ i }}", "{{ v }}", "")
        if self.rng.random() < .2:
            written += self.tag("if " + self.expression(1)) + self.tag(self.pick("break", "continue")) + self.tag("endif")
        if self.rng.random() < .3:
            written += self.body(depth) + self.tag("else") + self.body(depth)
        return written + self.tag("endfor")

    def condition(self, depth):
        written = self.tag("if " + self.expression(2)) + self.body(depth)
        if self.rng.random() < .4:
            written += self.tag("elif " + self.expression(1)) + self.body(depth)
        if self.rng.random() < .5:
            written += self.tag("else") + self.body(depth)
        return written + self.tag("endif")

    def framed(self, depth):
        """A block around a body, of another kind than conditions and loops."""
        begin, end = self.pick(
            ("set " + self.pick("i", "k", "ns.a") + self.pick("", " | upper", " | trim | length"), "endset"),
            ("macro " + self.pick("mac", "mac2") + self.filled(self.pick("()", "(p)", "(p, q=E)", "(p=1, q=p)"), 2), "endmacro"),
            ("call" + self.pick("", "(i)", "(i, v=2)") + self.filled(self.pick(" mac(E)", " mac2()", " mac()", " absent()"), 2),
             "endcall"),
            ("filter " + self.pick("upper", "trim", "indent(2) | upper", "replace('a', 'b')"), "endfilter"),
            ("with " + self.filled(self.pick("i = E", "i = 1, v = i", ""), 2), "endwith"), ("generation", "endgeneration"))
        inner = self.pick("{{ p }}", "{{ q }}", "{{ caller() }}", "{{ varargs }}{{ kwargs }}", "{{ caller is defined }}", "") \
            if end == "endmacro" else ""
        return self.tag(begin) + self.body(depth) + inner + self.tag(end)

    def statement(self, depth):
        data = self.pick(*DATA)
        kind = self.rng.randrange(20)
        if depth <= 0 or kind < 4:
            return data + (self.output(self.rng.randint(0, 3)) if self.rng.random() < .7 else "") + self.pick(*DATA)
        if kind < 8:
            return data + self.condition(depth) + self.pick(*DATA)
        if kind < 12:
            return data + self.loop(depth) + self.pick(*DATA)
        if kind < 14:
            target = self.pick("i", "k", "v", "ns", "k, v", "absent", "ns.a", "ns.b", "s")
            return data + self.tag(f"set {target} = " + self.pick(self.expression(2), "namespace(a=1)", "(1, 2)"))
        if kind < 18:
            return self.framed(depth)
        return self.pick("{#" + self.sign() + " comment " + self.sign() + "#}",
                         "{%" + self.sign() + " raw " + self.pick("", "-") + "%}" + self.pick("{{ x }}", " {% if %} ", "\n a \n") +
                         "{%" + self.sign() + " endraw " + self.sign() + "%}",
                         self.tag("for i in deep recursive") +
                         "<{{ loop.depth }}{{ loop(i) if i is sequence and i is not string else i }}>" + self.tag("endfor"),
                         self.tag("print " + self.expression(2)))

    def template(self):
        if self.rng.random() < .5:
            return "{% set ns = namespace(a=1) %}{% for i in [5] %}" + self.output(self.rng.randint(1, 4)) + "{% endfor %}"
        text = "".join(self.statement(self.rng.randint(1, 3)) for _ in range(self.rng.randint(1, 4)))
        if self.rng.random() < .1:  # broken somewhere
            at = self.rng.randrange(len(text) + 1)
            text = text[:at] + self.pick(*"{}%\"'()[]|.-, \n") + text[at:]
        return text


def render(made, template):
    """(text, None), or (None, error)."""
    try:
        return made.from_string(template).render(**copy.deepcopy(VARIABLES)), None
    except Exception as error:  # whatever Python raises
        return None, error


def lines(templates):
    """The answers of the program to templates."""
    now = [NOW.year, NOW.month, NOW.day, NOW.hour, NOW.minute, NOW.second, NOW.microsecond]
    asked = "".join(json.dumps({"template": t, "variables": VARIABLES, "now": now}) + "\n" for t in templates)
    ran = subprocess.run([LINES], input=asked, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines()]


class TemplateDrawn(unittest.TestCase):
    def test_what_is_lacking(self):
        """The page lists those filters, tests and functions of jinja2 that the program does not know, and no others."""
        with open(os.path.join(ROOT, "server", "docs", "chat.md"), encoding="utf-8") as page:
            rows = dict(re.findall(r"^\| (filters|tests|functions) \| (.*) \|$", page.read(), re.M))
        made = environment()
        for row, names, form, said in (("filters", made.filters, "{{ x | %s }}", "No filter named"),
                                       ("tests", made.tests, "{{ x is %s }}", "No test named"),
                                       ("functions", jinja2.defaults.DEFAULT_NAMESPACE, "{{ %s + 1 }}", "is undefined")):
            names = sorted(n for n in names if n.isidentifier())
            answers = lines([form % name for name in names])
            lacking = [n for n, answer in zip(names, answers) if said in answer.get("error", "")]
            listed = re.split(r" except | not ", rows[row])[1].split(";")[0]
            self.assertEqual(lacking, sorted(re.findall(r"`(\w+)`", listed)), row)

    def test_as_jinja2(self):
        drawn, made = Drawn(49), environment()
        templates = [drawn.template() for _ in range(COUNT)]
        answers = lines(templates)
        self.assertEqual(len(answers), COUNT)
        texts = 0
        for template, answer in zip(templates, answers):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted, error = render(made, template)
            said = answer.get("error", "")
            if " at 0x" in (wanted or "") or isinstance(error, jinja2.TemplateAssertionError) or "not supported" in said or \
                    "has no text" in said:
                continue
            # An older jinja2 lets templates change lists by pop(). Sets of pairs are not supported. A variable that is given,
            # and that a template sets after a block that reads it, is undefined in that block for jinja2 alone. A real
            # number for an integer is always an error, for jinja2 only where Python needs the integer.
            undefined = re.fullmatch(r"'(\w+)' is undefined", str(error))
            if "attribute 'pop' of" in said or "an integer is needed, got 'float'" in said or "{(" in (wanted or "") or \
                    undefined and undefined[1] in VARIABLES:
                continue
            self.assertEqual(answer.get("text"), wanted, f"{template!r}: {said or error!r}")
            texts += wanted is not None
        self.assertGreater(texts, COUNT / 5)
