#!/usr/bin/env python3
"""Measures how much of recordings with holes, and of irregular ones, gets a score, and how much of that may raise an alert (state ok), on
NAB's recordings under DATA and on made ones.

    HANKEL=build/hankel tests/bench/scripts/holes.py DATA
"""
import collections
import os
import random
import subprocess
import sys
import tempfile

DETECTORS = ('window=96', 'window=48', 'algorithm=shift', 'algorithm=novelty', 'algorithm=novelty,interval=1h')
RECORDED = ('ambient_temperature_system_failure', 'rogue_agent_key_hold', 'rogue_agent_key_updown', 'nyc_taxi')
SPACING = {  # s, to the next point
    'five holes a day': lambda rng, i: 300 if rng.random() > 5 / 288 else 300 * rng.randint(6, 60),
    'Poisson': lambda rng, i: int(rng.expovariate(1 / 300)) + 1,
    'bursts of 20, an hour apart': lambda rng, i: 10 if i % 20 else 3600,
    'holes of up to a day': lambda rng, i: 300 if rng.random() > .02 else rng.choice([600, 1500, 3900, 86400]),
}


def made(spacing, path):
    rng, time = random.Random(3), 1700000000
    with open(path, 'w', encoding='utf-8') as f:
        f.write('time,value\n')
        for i in range(6000):
            f.write(f'{time},{rng.gauss(0, 1):.4f}\n')
            time += spacing(rng, i)


def shares(path, detector):
    """The number of points; the first point with a score; of the points from there on, the percentages that have a
    score and that are ok."""
    out = subprocess.run([os.environ['HANKEL'], 'replay', '--detector', detector, path], capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    rows = [line.split(',') for line in out if not line.startswith('#')]
    first = next((i for i, row in enumerate(rows) if row[-2]), len(rows))
    states = collections.Counter(row[-1] for row in rows[first:])
    scored = sum(row[-2] != '' for row in rows[first:])
    return f'{len(rows):7} {first + 1:6} {100 * scored / max(1, len(rows) - first):9.1f} {100 * states["ok"] / max(1, len(rows) - first):7.1f}'


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: f'{sys.argv[1]}/nab/{name}.csv' for name in RECORDED}
        for name, spacing in SPACING.items():
            paths[name] = f'{folder}/{name}.csv'
            made(spacing, paths[name])
        print(f'{"detector":30} {"recording":36} points  first  scored %    ok %')
        for detector in DETECTORS:
            for name, path in paths.items():
                print(f'{detector:30} {name:36} {shares(path, detector)}', flush=True)


if __name__ == '__main__':
    main()
