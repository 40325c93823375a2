#!/usr/bin/env python3
"""Writes machines of eight sensors in the layout of skab/ for `hankel evaluate --group`: FOLDER/KIND/skab, in which nothing ever changes,
and FOLDER/faint/skab, in which all sensors change by 0.7 of their spread halfway.

    tests/bench/scripts/group_signals.py FOLDER

Needs numpy. Seeded, so the files are the same every time."""
import os
import sys

import numpy as np

ROWS, MACHINES, SENSORS = 5000, 4, 8
FAINT = .7


def machine(rng, kind):
    noise = rng.standard_normal((ROWS, SENSORS))
    keep = {'ar50': .5, 'ar90': .9, 'ar99': .99, 'walk': 1}.get(kind, 0)
    x = noise.copy()
    for i in range(1, ROWS):
        x[i] = keep * x[i - 1] + noise[i]
    t = np.arange(ROWS)[:, None]
    if kind == 'sines':
        x = np.sin(2 * np.pi * t / rng.uniform(15, 60, SENSORS) + rng.uniform(0, 6.28, SENSORS)) + .3 * noise
    if kind == 'faint':
        x = noise + FAINT * (t >= ROWS // 2)
    return x


def main():
    for kind in ('noise', 'ar50', 'ar90', 'ar99', 'walk', 'sines', 'faint'):
        rng = np.random.default_rng(1)
        folder = os.path.join(sys.argv[1], kind, 'skab')
        os.makedirs(folder, exist_ok=True)
        for number in range(MACHINES):
            x = machine(rng, kind)
            with open(os.path.join(folder, f'{number}.csv'), 'w', encoding='ascii') as file:
                file.write('time;' + ';'.join(f's{i}' for i in range(SENSORS)) + ';changepoint\n')
                for i, row in enumerate(x):
                    change = int(kind == 'faint' and i == ROWS // 2)
                    file.write(f'{1600000000 + i};' + ';'.join(f'{v:.6f}' for v in row) + f';{change}\n')


main()
