"""csharp: reads and evaluates as much C# as Http11Probe's cases are written in.

A file's static methods become Python functions. What is parsed becomes a closure that takes the
variables in sight. Whatever is not known raises Unknown: of a method when it is called, so that
one that cannot be read spoils no other.
"""
import re

from dotnet import MADE, Bag, Name, Unknown, formatted, member_of, shown

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<text>\$?"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\]|\\.[^']*)')
  | (?P<number>0x[0-9A-Fa-f_]+|\d[\d_]*(?:\.\d+)?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark>=>|\?\.|\?\?|\?(?=\[)|\.\.|==|!=|<=|>=|&&|\|\||\+\+|\+=|[^\w\s])
""", re.X | re.S)
ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "0": "\0", "a": "\a", "b": "\b", "v": "\v", "f": "\f"}
LEVELS = [{"||"}, {"&&"}, {"==", "!="}, {"<", ">", "<=", ">=", "is"}, {"+", "-"}, {"*", "/", "%"}]
COMPARE = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
           ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b}
COMPUTE = dict(COMPARE, **{
    "+": lambda a, b: a + b if not isinstance(a, str) or isinstance(b, str) else a + shown(b),
    "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b,
    "%": lambda a, b: a % b})


class Left(Exception):
    """A return, on its way out of the statements around it."""


def unescaped(text):
    """A string literal's text. \\x takes up to four digits, as in C#."""
    def one(match):
        code = match.group(1)
        if code[0] in "xu":
            return chr(int(code[1:], 16))
        return ESCAPES.get(code, code)
    return re.sub(r"\\(x[0-9A-Fa-f]{1,4}|u[0-9A-Fa-f]{4}|.)", one, text, flags=re.S)


def tokens(source):
    """[(kind, text)] of a source."""
    found, at = [], 0
    while at < len(source):
        match = TOKEN.match(source, at)
        if not match:
            raise Unknown(source[at:at + 30])
        at = match.end()
        if match.lastgroup != "skip":
            found.append((match.lastgroup, match.group()))
    return found


def closing(marks, at):
    """Where the bracket that opens at `at` is closed."""
    depth = 0
    for i in range(at, len(marks)):
        kind, text = marks[i]
        if kind == "mark":
            depth += (text in "([{") - (text in ")]}")
            if depth == 0:
                return i
    raise Unknown("a bracket that is not closed")


class Scope(dict):
    """Variables, and those around them."""

    def __init__(self, outer, **own):
        super().__init__(**own)
        self.outer = outer

    def __missing__(self, name):
        return Name(name) if self.outer is None else self.outer[name]


class Parser:
    """One method's tokens become closures."""

    def __init__(self, marks):
        self.marks, self.at = marks, 0

    # --- tokens ---

    def text(self, ahead=0):
        return self.marks[self.at + ahead][1] if self.at + ahead < len(self.marks) else ""

    def kind(self):
        return self.marks[self.at][0] if self.at < len(self.marks) else ""

    def take(self, wanted=None):
        text = self.text()
        if wanted is not None and text != wanted:
            raise Unknown(f"{text} where {wanted} was due")
        self.at += 1
        return text

    def taken(self, *wanted):
        if self.kind() != "text" and self.text() in wanted:
            return self.take()
        return None

    # --- statements ---

    def block(self):
        self.take("{")
        inner = []
        while not self.taken("}"):
            inner.append(self.statement())

        def run(scope):
            own = Scope(scope)
            for each in inner:
                each(own)
        return run

    def statement(self):
        word = self.text()
        if word == "{":
            return self.block()
        if word == "if":
            return self.branch()
        if word == "for":
            return self.loop()
        if word == "foreach":
            raise Unknown("foreach")
        if word == "return":
            return self.leave()
        if self.text(1) == "return" and word == "yield":
            return self.give()
        return self.define() or self.simple()

    def branch(self):
        self.take("if")
        self.take("(")
        condition = self.expression()
        self.take(")")
        then = self.statement()
        other = self.statement() if self.taken("else") else lambda scope: None
        return lambda scope: (then if condition(scope) else other)(scope)

    def loop(self):
        self.take("for")
        self.take("(")
        begin, condition = self.statement(), self.expression()
        self.take(";")
        step = self.step()
        self.take(")")
        body = self.statement()

        def run(scope):
            own = Scope(scope)
            begin(own)
            while condition(own):
                body(own)
                step(own)
        return run

    def step(self):
        name = self.take()
        self.take("++")
        return lambda scope: scope.__setitem__(name, scope[name] + 1)

    def leave(self):
        self.take("return")
        value = None if self.text() == ";" else self.expression()
        self.take(";")

        def run(scope):
            raise Left(value(scope) if value else None)
        return run

    def give(self):
        self.take("yield")
        self.take("return")
        begin, self.at = self.at, self.extent()
        marks = self.marks[begin:self.at]
        self.take(";")

        def run(scope):
            try:
                scope["yielded"].append(Parser(marks).expression()(scope))
            except Unknown as error:
                ids = [marks[i + 2][1] for i in range(len(marks) - 2) if marks[i][1] == "Id"]
                scope["yielded"].append(Bag("Unknown", Id=ids[0].strip('"') if ids else "?",
                                            reason=str(error)))
        return run

    def define(self):
        """`var x = …;`, `byte[] x = …;`, `const string x = …;` or None."""
        start = self.at
        self.taken("const")
        if self.kind() == "name":
            self.take()
            if self.text() == "[" and self.text(1) == "]":
                self.at += 2
            self.taken("?")
            if self.kind() == "name" and self.text(1) == "=":
                name = self.take()
                self.take("=")
                value = self.expression()
                self.take(";")
                return lambda scope: scope.__setitem__(name, value(scope))
        self.at = start
        return None

    def simple(self):
        value = self.expression()
        self.take(";")
        return value

    # --- expressions ---

    def expression(self):
        if self.is_lambda():
            return self.function()
        value = self.either()
        if not self.taken("?"):
            return value
        yes = self.expression()
        self.take(":")
        no = self.expression()
        return lambda scope: (yes if value(scope) else no)(scope)

    def either(self):
        value = self.binary(0)
        if not self.taken("??"):
            return value
        other = self.either()

        def run(scope):
            found = value(scope)
            return other(scope) if found is None else found
        return run

    def is_lambda(self):
        if self.kind() == "name":
            return self.text(1) == "=>"
        if self.text() != "(" or self.kind() != "mark":
            return False
        end = closing(self.marks, self.at) + 1
        return end < len(self.marks) and self.marks[end][1] == "=>"

    def function(self):
        names = []
        if self.taken("("):
            while not self.taken(")"):
                names.append(self.take())
                self.taken(",")
        else:
            names.append(self.take())
        self.take("=>")
        begin, self.at = self.at, self.extent()
        body = later(self.marks[begin:self.at])
        return lambda scope: lambda *values: body(Scope(scope, **dict(zip(names, values))))

    def extent(self):
        """Where the function's body that begins here ends."""
        end = self.at
        while end < len(self.marks) and self.marks[end][1] not in (",", ";", ")", "}", "]"):
            end = closing(self.marks, end) + 1 if self.marks[end][1] in ("(", "{", "[") else end + 1
        return end

    def body(self):
        """Of a function: a block that returns, or an expression."""
        if self.text() != "{":
            return self.expression()
        block = self.block()

        def run(scope):
            try:
                block(scope)
            except Left as left:
                return left.args[0]
            return None
        return run

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        value = self.binary(level + 1)
        while self.kind() != "text" and self.text() in LEVELS[level]:
            value = self.joined(value, self.take(), level)
        return value

    def joined(self, left, mark, level):
        if mark == "is":
            pattern = self.pattern()
            return lambda scope: pattern(scope, left(scope))
        right = self.binary(level + 1)
        if mark == "&&":
            return lambda scope: left(scope) and right(scope)
        if mark == "||":
            return lambda scope: left(scope) or right(scope)

        def run(scope):
            a, b = left(scope), right(scope)
            if mark in ("<", ">", "<=", ">=") and (a is None or b is None):
                return False
            return COMPUTE[mark](a, b)
        return run

    def pattern(self):
        value = self.pattern_and()
        while self.taken("or"):
            value = (lambda a, b: lambda scope, x: a(scope, x) or b(scope, x))(
                value, self.pattern_and())
        return value

    def pattern_and(self):
        value = self.pattern_one()
        while self.taken("and"):
            value = (lambda a, b: lambda scope, x: a(scope, x) and b(scope, x))(
                value, self.pattern_one())
        return value

    def pattern_one(self):
        if self.taken("not"):
            inner = self.pattern_one()
            return lambda scope, x: not inner(scope, x)
        if self.taken("("):
            inner = self.pattern()
            self.take(")")
            return inner
        mark = self.taken("<", ">", "<=", ">=") or "=="
        bound = self.unary()
        if mark == "==":
            return lambda scope, x: x == bound(scope)
        return lambda scope, x: x is not None and COMPARE[mark](x, bound(scope))

    def unary(self):
        if self.taken("!"):
            inner = self.unary()
            return lambda scope: not inner(scope)
        if self.taken("-"):
            inner = self.unary()
            return lambda scope: -inner(scope)
        return self.postfix(self.primary())

    def primary(self):
        kind, text = self.kind(), self.take()
        if kind == "text":
            return self.string(text)
        if kind == "char":
            return lambda scope, c=unescaped(text[1:-1]): c
        if kind == "number":
            return lambda scope, n=int(text.replace("_", ""), 0) if "." not in text else float(text): n
        if text == "(":
            inner = self.expression()
            self.take(")")
            return inner
        if text == "[":
            return self.items("]", list)
        if text == "new":
            return self.made()
        if text in ("true", "false", "null"):
            return lambda scope, x={"true": True, "false": False, "null": None}[text]: x
        if kind != "name":
            raise Unknown(text)
        return lambda scope: scope[text]

    def string(self, text):
        if text[0] != "$":
            return lambda scope, s=unescaped(text[1:-1]): s
        parts, source = [], text[2:-1]
        for plain, hole in re.findall(r"((?:[^{}\\]|\\.|\{\{|\}\})+)|\{([^{}]*)\}", source):
            if plain:
                literal = unescaped(plain.replace("{{", "{").replace("}}", "}"))
                parts.append(lambda scope, s=literal: s)
            else:
                value, _, form = hole.partition(":")
                inner = Parser(tokens(value)).expression()
                parts.append(lambda scope, v=inner, f=form: formatted(v(scope), f))
        return lambda scope: "".join(part(scope) for part in parts)

    def items(self, end, kind):
        inner = []
        while not self.taken(end):
            inner.append(self.out() if self.text() == "out" else self.expression())
            self.taken(",")
        return lambda scope: kind(each(scope) for each in inner)

    def out(self):
        """`out var x`: what is called gets a function that sets it."""
        self.take("out")
        self.taken("var")
        name = self.take()
        return lambda scope: lambda value: scope.__setitem__(name, value)

    def made(self):
        if self.text() == "[":  # new[] { … }
            self.take("[")
            self.take("]")
            self.take("{")
            return self.items("}", list)
        kind = self.take()
        if self.taken("["):
            size = self.expression()
            self.take("]")
            return lambda scope: bytearray(size(scope))
        arguments = self.items(")", list) if self.taken("(") else lambda scope: []
        members = {}
        if self.taken("{"):
            while not self.taken("}"):
                name = self.take()
                self.take("=")
                members[name] = self.expression()
                self.taken(",")

        def run(scope):
            if kind in MADE:
                return MADE[kind](*arguments(scope))
            return Bag(kind, **{name: value(scope) for name, value in members.items()})
        return run

    def postfix(self, value):
        chained = False  # behind a `?.` that has found nothing there is nothing
        while self.kind() == "mark":
            if self.text() in (".", "?."):
                chained = self.take() == "?." or chained
                value = self.member(value, self.take(), chained)
            elif self.text() == "(":
                self.take("(")
                value = (lambda called, arguments: lambda scope: called(scope)(*arguments(scope)))(
                    value, self.items(")", list))
            elif self.text() == "[":
                self.take("[")
                index = self.expression()
                self.take("]")
                value = (lambda of, at: lambda scope: of(scope)[at(scope)])(value, index)
            else:
                break
        return value

    def member(self, value, name, chained):
        call = self.items(")", list) if self.taken("(") else None

        def run(scope):
            of = value(scope)
            if of is None and chained:
                return None
            arguments = call(scope) if call else []
            known = member_of(of, name)
            return known(*arguments) if call else known
        return run


def later(marks):
    """A function's body, which is not parsed before it is called: most are not."""
    parsed = []

    def run(scope):
        if not parsed:
            parsed.append(Parser(marks).body())
        return parsed[0](scope)
    return run


# --- files ---

def methods(source):
    """A file's static methods and constants, as a scope of Python functions and values."""
    marks, scope, at = tokens(source), Scope(None), 0
    while at < len(marks):
        if marks[at][1] == "const" and marks[at + 3][1] == "=":
            scope[marks[at + 2][1]] = Parser(marks[at + 4:]).expression()(scope)
        if marks[at][1] == "static" and (found := header(marks, at)):
            name, names, begin, at = found
            scope[name] = callable_of(marks[begin:at], names, scope)
        at += 1
    return scope


def header(marks, at):
    """(name, parameters, begin, end) of the method whose `static` is there; None: it is no method."""
    while marks[at][1] != "(":
        if marks[at][1] in "{;=":
            return None
        at += 1
    name, end = marks[at - 1][1], closing(marks, at)
    names = [marks[i - 1][1] for i in range(at + 2, end + 1) if marks[i][1] in (",", ")")]
    begin = end + 1
    if marks[begin][1] == "{":
        return name, names, begin, closing(marks, begin) + 1
    stop = begin
    while marks[stop][1] != ";":
        stop = closing(marks, stop) + 1 if marks[stop][1] in "({[" else stop + 1
    return name, names, begin + 1, stop


def callable_of(marks, names, scope):
    body = later(marks)

    def call(*values):
        own = Scope(scope, yielded=[], **dict(zip(names, values)))
        if len(values) < len(names):
            raise Unknown("a parameter with a default")
        result = body(own)
        return own["yielded"] or result
    return call
