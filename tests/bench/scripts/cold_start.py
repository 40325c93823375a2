#!/usr/bin/env python3
"""Measures what an alert is worth before a window is full. The script cuts recordings into starts of a sensor, one every 331 points, and
looks at the first 671 points of each. It compares two methods: a detector with a small window, by `hankel replay`; and the best single step
of the mean so far, by its F statistic, corrected for the correlation of neighbours. The first alert of a start is right if it lies in a
labelled window. By chance, the share of right alerts would be the share of points that these windows cover. Needs numpy, and nab, tssb and skab under DATA.

    HANKEL=build/hankel tests/bench/scripts/cold_start.py DATA
"""
import csv
import datetime
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

EVERY, UPTO, LEAST, SPAN, MARGIN = 331, 671, 40, 287, 8


def nab(data):
    with open(f'{data}/nab/windows.json', encoding='utf-8') as f:
        labels = json.load(f)
    for path in sorted(glob.glob(f'{data}/nab/*.csv')):
        with open(path, encoding='utf-8') as f:
            rows = list(csv.reader(f))[1:]
        times = [datetime.datetime.fromisoformat(row[0]) for row in rows]
        windows = [[i for i, t in enumerate(times) if datetime.datetime.fromisoformat(a) <= t <= datetime.datetime.fromisoformat(b)] for a, b in labels[os.path.basename(path)]]
        yield np.array([float(row[-1]) for row in rows]), [(w[0], w[-1]) for w in windows]


def tssb(data):
    with open(f'{data}/tssb/desc.txt', encoding='utf-8') as f:
        for name, window, *changes in csv.reader(f):
            yield np.loadtxt(f'{data}/tssb/{name}.txt'), [(int(c) - int(window), int(c) + 5 * int(window)) for c in changes]


def skab(data):
    for path in sorted(glob.glob(f'{data}/skab/*.csv')):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        head, *rows = csv.reader(text.splitlines(), delimiter=';' if ';' in text else ',')
        changes = [i for i, row in enumerate(rows) if float(row[head.index('changepoint')]) == 1]
        for column, name in list(enumerate(head))[1:]:
            if name not in ('anomaly', 'changepoint'):
                yield np.array([float(row[column]) for row in rows]), [(c - 10, c + 60) for c in changes]


def step(x):
    """F of the best step of the mean, its place, and by how much a step explains x better than a slope does."""
    n, x = len(x), x - x.mean()
    sums, k = np.cumsum(x)[MARGIN - 1:n - MARGIN], np.arange(MARGIN, n - MARGIN + 1)
    gains = sums * sums * n / (k * (n - k))
    at = MARGIN + int(np.argmax(gains))
    whole = (x * x).sum()
    if whole <= 0:
        return 0, 0, 0
    rest = np.concatenate((x[:at] - x[:at].mean(), x[at:] - x[at:].mean()))
    left = (rest * rest).sum() + 1e-9 * whole
    alike = (rest[1:] * rest[:-1]).sum() / left
    alike = min(max((alike * n + 1) / (n - 3), 0), .97)
    t = np.arange(n) - (n - 1) / 2
    slope = (t * x).sum()**2 / (t * t).sum()
    return gains.max() / (left / (n - 2)) * (1 - alike) / (1 + alike), at, (whole - slope + 1e-9 * whole) / left


def by_step(x, least, better):
    """The point at which the first step is reported, and the place of the step; None if there is none."""
    for n in range(LEAST, len(x) + 1, 8):
        begin = max(0, n - SPAN)
        f, at, ratio = step(x[begin:n])
        if f > least and ratio > better:
            return n, begin + at
    return None


def by_replay(x, detector):
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
        f.write('time,x\n' + ''.join(f'{1700000000 + i},{v!r}\n' for i, v in enumerate(map(float, x))))
        f.flush()
        said = subprocess.run([os.environ['HANKEL'], 'replay', '--backend', 'cpu', '--detector', detector, '--format', 'jsonl', f.name], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        if line.startswith('{"event"') and (event := json.loads(line))['event'] == 'raised':
            return tuple(int(event.get(key, event['time'])) // 10**9 - 1700000000 for key in ('time', 'instant'))
    return None


def judge(name, recordings, alert):
    starts = alerts = right = 0
    chance = 0.
    for values, windows in recordings:
        for begin in range(0, len(values) - UPTO // 2, EVERY):
            x = values[begin:begin + UPTO]
            marks = [(max(a - begin, 0), b - begin) for a, b in windows if b - begin >= LEAST and a - begin < len(x)]
            starts += 1
            told = alert(x)
            if not told:
                continue
            covered = np.zeros(len(x))
            for a, b in marks:
                covered[int(a):int(b) + 1] = 1
            alerts += 1
            chance += covered[LEAST:].mean()
            right += any(a <= place <= b for a, b in marks for place in told)
    print(f'  {name:5} {starts:4} starts: {alerts:3} have an alert, {right:3} of these right, {chance:5.1f} by chance', flush=True)


def steps(alert):
    """How many steps it finds in noise of unit spread, at points 60 to 200, and how often it raises an alert on noise
    alone."""
    rng, seen = np.random.default_rng(4), []
    for height in 0, 2, 3, 4:
        n = 0
        for _ in range(60):
            at, x = int(rng.integers(60, 200)), rng.standard_normal(350)
            x[at:] += height
            told = alert(x)
            n += told is not None and (height == 0 or any(-15 < place - at < 40 for place in told))
        seen.append(f'{height}: {n / 60:.2f}')
    print('  steps of so many spreads that are seen (0: false alerts):', ', '.join(seen), flush=True)


if __name__ == '__main__':
    print(subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True, text=True, check=True).stdout.strip())
    ways = {f'step of the mean, F over {f}, {q} times better than a slope': lambda x, f=f, q=q: by_step(x, f, q) for f, q in ((25, 1.3), (60, 1.5), (200, 2.))}
    ways |= {f'hankel replay --detector {d}': lambda x, d=d: by_replay(x, d) for d in ('algorithm=ika,window=8,interval=1s,alert=0.6', 'algorithm=ika,window=12,interval=1s')}
    for said, way in ways.items():
        print(re.sub(r'\s+', ' ', said))
        steps(way)
        for collection in nab, tssb, skab:
            judge(collection.__name__, collection(sys.argv[1]), way)
