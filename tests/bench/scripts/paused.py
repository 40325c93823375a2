#!/usr/bin/env python3
"""Measures with hankel evaluate how good alerts of algorithm = novelty are if a sensor pauses often: on NAB's recordings with pauses put
in, or with stretches left out.

    HANKEL=build/hankel tests/bench/scripts/paused.py DATA [KEYS]
"""
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile

FORMAT = '%Y-%m-%d %H:%M:%S'
KINDS = {  # points between two holes; samples of a hole; whether these are left out of the recording, or a pause is put in
    'as recorded': (lambda rng: 10**9, lambda rng: 0, False),
    'pause of 360 after each 20': (lambda rng: 20, lambda rng: 360, False),
    'pause of 260 to 900 after each 100': (lambda rng: 100, lambda rng: rng.randint(260, 900), False),
    'pause of 260 to 900 after each 480': (lambda rng: 480, lambda rng: rng.randint(260, 900), False),
    'pause of 260 to 900 after 1,000 to 3,000': (lambda rng: rng.randint(1000, 3000), lambda rng: rng.randint(260, 900), False),
    '260 to 400 left out after each 150': (lambda rng: 150, lambda rng: rng.randint(260, 400), True),
    '260 to 400 left out after each 480': (lambda rng: 480, lambda rng: rng.randint(260, 400), True),
}


def moment(text):
    return datetime.datetime.strptime(text[:19], FORMAT)


def holed(times, points, samples, left_out):
    """The new time of each point, or None if it is left out."""
    rng = random.Random(11)
    spacing = sorted(b - a for a, b in zip(times, times[1:]))[len(times) // 2]
    out, later, left, skip = [], datetime.timedelta(), points(rng), 0
    for t in times:
        skip -= skip > 0
        out.append(None if skip else t + later)
        left -= not skip
        if left == 0:
            left, hole = points(rng), samples(rng)
            skip, later = (hole + 1, later) if left_out else (0, later + hole * spacing)
    return out


def make(data, folder, kind):
    with open(f'{data}/nab/windows.json', encoding='utf-8') as f:
        windows = json.load(f)
    made = {}
    os.makedirs(f'{folder}/nab')
    for name in sorted(os.listdir(f'{data}/nab')):
        if not name.endswith('.csv'):
            continue
        with open(f'{data}/nab/{name}', encoding='utf-8') as f:
            rows = [line.rstrip('\n').split(',') for line in f][1:]
        times = [moment(row[0]) for row in rows]
        new = holed(times, *kind)
        with open(f'{folder}/nab/{name}', 'w', encoding='utf-8') as f:
            f.write('timestamp,value\n' + ''.join(f'{t.strftime(FORMAT)},{row[1]}\n' for t, row in zip(new, rows) if t))
        within = ([t for old, t in zip(times, new) if t and moment(a) <= old <= moment(b)] for a, b in windows.get(name, []))
        made[name] = [[w[0].strftime(FORMAT), w[-1].strftime(FORMAT)] for w in within if w]
    with open(f'{folder}/nab/windows.json', 'w', encoding='utf-8') as f:
        json.dump(made, f)


def main():
    keys = sys.argv[2] if len(sys.argv) > 2 else 'algorithm=novelty,resident=5000'
    for name, kind in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            make(sys.argv[1], folder, kind)
            out = subprocess.run([os.environ['HANKEL'], 'evaluate', '--brief', '--detector', keys, folder], capture_output=True, text=True, check=True).stdout
            lines = [line for line in out.splitlines() if line.startswith(('recording', 'nab'))]
            print(f'{"":40} {lines[0]}\n' * (name == 'as recorded') + f'{name:40} {lines[1]}', flush=True)


if __name__ == '__main__':
    main()
