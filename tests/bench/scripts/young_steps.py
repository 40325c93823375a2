#!/usr/bin/env python3
"""Measures whether detectors see a step of the level in a short series: 50 series of 344 values of noise, one a minute, with a step after
144 (as TCPD's quality_control series have).

    HANKEL=build/hankel tests/bench/scripts/young_steps.py [DETECTOR...]
"""
import os
import random
import subprocess
import sys
import tempfile

DETECTORS = ('algorithm=ika,provisional=yes', 'algorithm=ika', 'algorithm=novelty')
POINTS, CHANGE, SOON, SERIES = 344, 144, 46, 50


def raised(detector, size, seed, path):
    """The points at which alerts are raised."""
    rng = random.Random(seed)
    with open(path, 'w', encoding='utf-8') as f:
        f.write('time,value\n' + ''.join(f'{60 * i},{rng.gauss(0, 1) + size * (i >= CHANGE):.4f}\n' for i in range(POINTS)))
    out = subprocess.run([os.environ['HANKEL'], 'replay', '--detector', detector, path], capture_output=True, text=True, check=True).stdout
    events = [line.split(',') for line in out.splitlines() if line.startswith('#event')]
    return [int(event[4]) / 60e9 for event in events if event[3] == 'raised']


def main():
    with tempfile.TemporaryDirectory() as folder:
        for detector in sys.argv[1:] or DETECTORS:
            for size in 0, 2, 3, 4, 5, 7:
                alerts = [raised(detector, size, seed, f'{folder}/series.csv') for seed in range(SERIES)]
                right = sum(any(CHANGE <= at <= CHANGE + SOON for at in one) for one in alerts) if size else 0
                wrong = sum(not (size and CHANGE <= at <= CHANGE + SOON) for one in alerts for at in one)
                print(f'{detector:30} step of {size} spreads: seen within {SOON} points in {right:2} of {SERIES}; other alerts {wrong}', flush=True)


if __name__ == '__main__':
    main()
