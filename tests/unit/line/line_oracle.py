#!/usr/bin/env python3
"""The line protocol parser against an independent one: the grammar of PROTOCOL.md as one regular expression.

line_oracle.py DUMP [LINES [SEED]]: makes random lines (names full of escapes, every kind of value, then random damage), gives
them to the program DUMP (line_dump.c) and compares what comes out line by line.
"""
import math
import random
import re
import subprocess
import sys

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
MOST_FIELDS, MOST_NAME = 1024, 512

# A backslash takes a delimiter along, and stands for itself before anything else.
MEASUREMENT = rb"(?:[^, \\]|\\[, ]|\\(?![, ]))+"
KEY = rb"(?:[^,= \\]|\\[,= ]|\\(?![,= ]))+"
STRING = rb'"(?:[^"\\]|\\["\\]|\\(?!["\\]))*"'
BOOLEAN = rb"(?:true|True|TRUE|t|T|false|False|FALSE|f|F)"
FLOAT = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
VALUE = rb"(?:" + STRING + rb"|[+-]?[0-9]+i|[0-9]+u|" + FLOAT + rb"|" + BOOLEAN + rb")"
FIELD = re.compile(rb"(" + KEY + rb")=(" + VALUE + rb")(?:,|$)", re.DOTALL)
FIELDS = KEY + rb"=" + VALUE + rb"(?:," + KEY + rb"=" + VALUE + rb")*"
LINE = re.compile(rb" *(" + MEASUREMENT + rb"(?:," + KEY + rb"=" + KEY + rb")*) +(" + FIELDS + rb")(?: +([+-]?[0-9]+))? *", re.DOTALL)


class Fault(Exception):
    pass


def require(good):
    if not good:
        raise Fault


def check_name(name):
    require(len(name) <= MOST_NAME)
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        raise Fault from None
    require(not any(c < " " or "\x7f" <= c <= "\x9f" for c in text))


def number(text):
    """The value of a field, or None for a string."""
    if text[:1] == b'"':
        return None
    if text[:1] in b"tT":
        return 1.0
    if text[:1] in b"fF":
        return 0.0
    if text[-1:] == b"i":
        whole = int(text[:-1])
        require(-(2**63) <= whole < 2**63)
        return float(whole)
    if text[-1:] == b"u":
        whole = int(text[:-1])
        require(whole < 2**64)
        return float(whole)
    value = float(text)
    require(math.isfinite(value))
    return value


def parse(line, unit):
    """(time or None, strings, [(name, value)]); raises Fault."""
    if line.endswith(b"\r"):
        line = line[:-1]
    bare = line.lstrip(b" ")
    if not bare or bare.startswith(b"#"):
        return None, 0, []
    match = LINE.fullmatch(line)
    require(match)
    key, fields, time = match.groups()
    points, strings, at = [], 0, 0
    check_name(key)
    while at < len(fields):
        field = FIELD.match(fields, at)
        at = field.end()
        name, value = field.group(1), number(field.group(2))
        if value is None:
            strings += 1
            continue
        full = key if name == b"value" else key + b" " + name
        check_name(full)
        points.append((full, value))
    require(len(points) <= MOST_FIELDS)
    if time is not None:
        time = int(time) * unit
        require(-(2**63) <= time < 2**63 and -(2**63) <= int(time) < 2**63)
    return time, strings, points


def expected(line, unit):
    try:
        time, strings, points = parse(line, unit)
    except Fault:
        return "!"
    return "\t".join(["-" if time is None else str(time), str(strings)] + [f"{name.hex()}={value:.17g}" for name, value in points])


class Maker:
    """Random lines: good ones, and damaged ones."""

    LETTERS = ["a", "b", "z", "0", "9", "_", ".", "-", "#", '"', "é", "€", "𝄞", "\\", "\\\\", "\\a"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def name(self, escapes):
        pieces = self.LETTERS + ["\\" + c for c in escapes] * 3
        text = "".join(self.random.choice(pieces) for _ in range(self.random.randint(1, 6)))
        if self.random.random() < 0.01:
            text *= self.random.randint(20, 120)
        return text + "x" * text.endswith("\\")

    def value(self):
        r = self.random
        kind = r.randrange(9)
        if kind == 0:
            return '"' + "".join(r.choice(["a", " ", ",", "=", '\\"', "\\\\", "\\n", "é", "#"]) for _ in range(r.randint(0, 6))) + '"'
        if kind == 1:
            return r.choice(["t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"])
        if kind == 2:
            return str(r.randint(-(2**r.randint(1, 64)), 2 ** r.randint(1, 64))) + "i"
        if kind == 3:
            return str(r.randint(0, 2 ** r.randint(1, 65))) + "u"
        if kind == 4:
            return repr(r.uniform(-1000, 1000))
        if kind == 5:
            return f"{r.uniform(-1, 1):.{r.randint(0, 25)}e}"
        if kind == 6:
            return f"{r.choice(['', '-', '+'])}{r.randint(0, 10**r.randint(0, 25))}.{r.randint(0, 10**r.randint(0, 25))}e{r.randint(-340, 340)}"
        if kind == 7:
            return r.choice([".5", "5.", "-.5", "+1", "-0", "00012", "1e5", "1E-5", "1e+05", "0e999"])
        return str(r.randint(-100, 100))

    def line(self):
        r = self.random
        text = self.name(", ")
        if text.startswith("#"):
            text = "m" + text
        for _ in range(r.randint(0, 3)):
            text += f",{self.name(',= ')}={self.name(',= ')}"
        fields = [("value" if r.random() < 0.2 else self.name(",= ")) + "=" + self.value() for _ in range(r.randint(1, 4))]
        text += " " * r.choice([1, 1, 1, 2]) + ",".join(fields)
        if r.random() < 0.7:
            text += " " + str(r.randint(-(2 ** r.randint(1, 64)), 2 ** r.randint(1, 64)))
        text = " " * (r.random() < 0.05) + text + " " * (r.random() < 0.05) + "\r" * (r.random() < 0.05)
        return text.encode()

    def damaged(self):
        r = self.random
        line = bytearray(self.line())
        for _ in range(r.randint(1, 3)):
            at = r.randrange(len(line) + 1)
            kind = r.randrange(4)
            if kind == 0:
                line[at:at] = r.choice([b"\\", b",", b"=", b" ", b'"', b"#", b"\0", b"\t", b"\r", b"\x7f", b"\xff", b"\xc3", b"e", b".", b"i", b"u", b"-", b"value"])
            elif kind == 1:
                del line[at : at + r.randint(1, 3)]
            elif kind == 2 and at < len(line):
                line[at] = r.randrange(256)
            else:
                del line[at:]
        return bytes(line).replace(b"\n", b"")


def main():
    dump = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    maker = Maker(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    wrong = good = 0
    for precision, unit in UNITS.items():
        lines = [maker.line() if i % 2 else maker.damaged() for i in range(count // len(UNITS))]
        out = subprocess.run([dump, precision], input=b"".join(line + b"\n" for line in lines), stdout=subprocess.PIPE, check=True, timeout=100)
        answers = out.stdout.decode().split("\n")[:-1]
        if len(answers) != len(lines):
            sys.exit(f"{len(answers)} answers to {len(lines)} lines")
        for line, answer in zip(lines, answers):
            want = expected(line, unit)
            good += want != "!"
            if (answer[0] if answer.startswith("!") else answer) != want:
                print(f"{line!r} in {precision}\n  gives    {answer}\n  expected {want}")
                wrong += 1
    print(f"{count} lines, {good} of them good, {wrong} read differently")
    sys.exit(1 if wrong or not count // 4 < good < count else 0)


if __name__ == "__main__":
    main()
