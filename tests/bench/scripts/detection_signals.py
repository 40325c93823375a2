#!/usr/bin/env python3
"""Writes signals in the layout of tssb/ for `hankel evaluate`: FOLDER/unchanging, in which nothing ever changes, so that every alert
is false; FOLDER/changing, with one change in the middle of each, of a kind that its name says; and FOLDER/passing, where what changed
is back after 60 points. Then prints for each detector its false alarms per 1,000 points, the share of the changes that
raise an alert, and the share that raise one within a window of the change.

    tests/bench/scripts/detection_signals.py [--seed 1] [--still 4] FOLDER [HANKEL KEYS...]

KEYS: as after --detector. --still: unchanging signals of each kind. Needs numpy. The same seed gives the same files."""
import argparse
import collections
import csv
import os
import subprocess

import numpy as np

POINTS = 10000                     # of an unchanging signal
LENGTH, EACH, SHORT = 3000, 20, 60  # of each kind of change; of a passing one
KINDS = ('noise', 'ar90', 'ar99', 'walk', 'sine', 'sines', 'swelling', 'level', 'amplitude', 'variance', 'shape', 'frequency', 'ar')


def autoregressive(rng, n, coefficient):
    x = np.zeros(n)
    noise = rng.standard_normal(n)
    for i in range(1, n):
        x[i] = coefficient * x[i - 1] + noise[i]
    return x


def unchanging(rng):
    t = np.arange(POINTS)
    period, phase = rng.uniform(15, 60), rng.uniform(0, 6.28)
    wave = np.sin(2 * np.pi * t / period + phase)
    return {
        'noise': rng.standard_normal(POINTS),
        'ar90': autoregressive(rng, POINTS, .9),
        'ar99': autoregressive(rng, POINTS, .99),
        'sine': wave + .1 * rng.standard_normal(POINTS),
        'sines': wave + .5 * np.sin(2 * np.pi * t / (period * 2.7)) + .1 * rng.standard_normal(POINTS),
        'swelling': wave * (1 + .5 * np.sin(2 * np.pi * t / 4000)) + .1 * rng.standard_normal(POINTS),
        'walk': np.cumsum(rng.standard_normal(POINTS)),
    }


def changing(rng, last=LENGTH):
    t, half = np.arange(LENGTH), LENGTH // 2
    after = (t >= half) & (t < last)
    noise, wave = rng.standard_normal(LENGTH), np.sin(2 * np.pi * t / 25 + rng.uniform(0, 6.28))
    saw = 2 * ((t / 25) % 1) - 1
    faster = np.sin(2 * np.pi * np.cumsum(np.where(after, 1 / 17, 1 / 25)))
    first, second = autoregressive(rng, LENGTH, .9), autoregressive(rng, LENGTH, .5)
    return {
        'level': wave + .2 * noise + 2 * after,
        'frequency': faster + .2 * noise,
        'amplitude': np.where(after, 2, 1) * wave + .2 * noise,
        'variance': np.where(after, 2.5, 1) * noise,
        'shape': np.where(after, saw, wave) + .2 * noise,
        'ar': np.where(after, second, first),
    }


def write(folder, signals, label):
    os.makedirs(os.path.join(folder, 'tssb'), exist_ok=True)
    with open(os.path.join(folder, 'tssb', 'desc.txt'), 'w') as desc:
        for name, _ in signals:
            desc.write(f'{name},20{label}\n')
    for name, x in signals:
        np.savetxt(os.path.join(folder, 'tssb', name + '.txt'), x, fmt='%.9g')


def tell(hankel, folder, detectors, columns):
    """Prints a table of kinds of signals, a line for each detector. columns: what is printed of the rows of a kind."""
    command = [hankel, 'evaluate', '--format', 'csv', *(word for keys in detectors for word in ('--detector', keys)), folder]
    rows = csv.DictReader(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    table = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        kind = row['recording'].split('-')[0]
        if kind in KINDS:
            table[row['detector']][kind].append(row)
    kinds = [kind for kind in KINDS if kind in next(iter(table.values()))]
    width = max(map(len, detectors)) + 2
    print('detector'.ljust(width) + ''.join(f'{kind:>11}' for kind in kinds))
    for keys in detectors:
        print(keys.ljust(width) + ''.join(f'{columns(table[keys][kind]):>11}' for kind in kinds))


def false_alarms(rows):
    return f'{1000 * sum(int(r["false"]) for r in rows) / sum(int(r["points"]) for r in rows):.3f}'


def seen(rows):
    return f'{sum(int(r["alerts"]) > 0 for r in rows)} / {sum(int(r["hits"]) for r in rows)}'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--still', type=int, default=4)
    parser.add_argument('folder')
    parser.add_argument('hankel', nargs='?')
    parser.add_argument('keys', nargs='*')
    options = parser.parse_args()
    rng, half, end = np.random.default_rng(options.seed), LENGTH // 2, LENGTH // 2 + SHORT
    unmoved, moved, passed = (os.path.join(options.folder, name) for name in ('unchanging', 'changing', 'passing'))
    write(unmoved, sorted((f'{kind}-{trial}', x) for trial in range(options.still) for kind, x in unchanging(rng).items()), '')
    write(moved, sorted((f'{kind}-{trial:02}', x) for trial in range(EACH) for kind, x in changing(rng).items()), f',{half}')
    write(passed, sorted((f'{kind}-{trial:02}', x) for trial in range(EACH) for kind, x in changing(rng, end).items()), f',{half},{end}')
    if not options.hankel:
        return
    print(f'False alarms a 1,000 points, {options.still} signals of {POINTS:,} points of each kind:')
    tell(options.hankel, unmoved, options.keys, false_alarms)
    print(f'\nOf {EACH} signals of {LENGTH:,} points with a change of each kind: with an alert / with one within a window of it:')
    tell(options.hankel, moved, options.keys, seen)
    print(f'\nOf {EACH} such signals that are back after {SHORT} points: with an alert / ends, of two each, with one within a window:')
    tell(options.hankel, passed, options.keys, seen)


if __name__ == '__main__':
    main()
