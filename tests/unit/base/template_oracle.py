"""Holds templates against pystache, which is Mustache whole: random templates of what is known here, with random values.
template_oracle.py TEMPLATE_DUMP; exit 77: there is no pystache."""
import json
import os
import random
import re
import subprocess
import sys

try:
    import pystache
except ImportError:
    debian = '/usr/bin/python3'  # which has Debian's packages
    if os.path.exists(debian) and not os.path.samefile(debian, sys.executable):
        os.execv(debian, [debian, *sys.argv])
    sys.exit(77)

NAMES = ['a', 'b', 'c', 'a.b', 'b.c', 'c.a.b', 'gone']
TEXT = ['x', ' ', '\n', '\n\n', '  ', '\t', 'y z', 'ä', '}', '{ ', '\r\n', '.']


def template(r, depth=0):
    out = ''
    for _ in range(r.randrange(6)):
        kind, name, blank = r.randrange(9), r.choice(NAMES), r.choice(['', '', ' '])
        if kind < 4:
            out += ''.join(r.choice(TEXT) for _ in range(r.randrange(1, 4)))
        elif kind == 4:
            out += r.choice(['{{%s%s%s}}', '{{&%s%s%s}}', '{{{%s%s%s}}}']) % (blank, name, blank)
        elif kind == 5:
            out += '{{! no %s }}' % ''.join(r.choice(TEXT[:7]) for _ in range(3))
        elif depth < 4:
            line = r.choice(['', '\n', '\n  '])
            out += line + '{{%s%s}}' % (r.choice('##^'), name) + r.choice(['', '\n']) + template(r, depth + 1) + r.choice(['', '\n', '\n ']) + '{{/%s}}' % name + \
                r.choice(['', '\n'])
    return out


def value(r, depth=0):
    kind = r.randrange(9 if depth < 3 else 5)
    if kind < 5:
        return r.choice(['', 'v', '<w>', 'two words', 0, 1, 42])
    if kind < 7:
        return members(r, depth)
    return [members(r, depth) for _ in range(r.randrange(3))]


def members(r, depth):
    """Not empty: Python's idea of an object that is true is another one than JSON's."""
    return {n: value(r, depth + 1) for n in r.sample('abc', r.randrange(1, 4))}


def main():
    r = random.Random(19)
    cases = []
    while len(cases) < 3000:
        data = {n: value(r) for n in 'abc'}
        text = template(r)
        if not re.search(r'\}\}[ \t]+(\r?\n|$)', text):  # blanks behind a tag that stands alone: pystache leaves the line
            cases.append((text, data))
    said = subprocess.run([sys.argv[1]], input=''.join(json.dumps({'template': t, 'data': d}) + '\n' for t, d in cases), capture_output=True, text=True, check=True)
    renderer = pystache.Renderer(escape=lambda u: u, missing_tags='ignore')
    compared = put_in = 0
    for (text, data), line in zip(cases, said.stdout.splitlines(), strict=True):
        got = json.loads(line)
        try:
            wanted = renderer.render(text, data)
        except Exception as e:  # noqa: BLE001
            sys.exit(f'pystache: {e!r}\n{text!r}')
        if '{\'' in wanted or '[{' in wanted or '[]' in wanted or '{}' in wanted:
            continue  # an object or a list as a value, which each prints in its own way
        compared += 1
        put_in += got != text
        if got != wanted:
            sys.exit(f'template {text!r}\ndata {json.dumps(data)}\nwanted {wanted!r}\ngot    {got!r}')
    print(f'{compared} compared, {put_in} with tags')
    return 0 if compared > 2000 and put_in > 1000 else 1


if __name__ == '__main__':
    sys.exit(main())
