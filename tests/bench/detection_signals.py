#!/usr/bin/env python3
"""Writes signals in the layout of tssb/ for `hankel evaluate --given-windows`: FOLDER/unchanging, in which nothing ever changes, so
that every alert is false; and FOLDER/changing, with one change in the middle of each, of a kind that its name says.

    tests/bench/detection_signals.py FOLDER

Needs numpy. Seeded: the same files every time."""
import os
import sys

import numpy as np

POINTS, TRIALS = 10000, 4  # of each kind of unchanging signal
LENGTH, EACH = 3000, 20    # of each kind of change
WINDOWS = (10, 20, 30, 40, 50)


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


def changing(rng):
    t, half = np.arange(LENGTH), LENGTH // 2
    after = t >= half
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


def write(folder, signals, label, windows):
    os.makedirs(os.path.join(folder, 'tssb'), exist_ok=True)
    with open(os.path.join(folder, 'tssb', 'desc.txt'), 'w') as desc:
        for window in windows:
            for name, x in signals:
                desc.write(f'{name},{window}{label}\n')
    for name, x in signals:
        np.savetxt(os.path.join(folder, 'tssb', name + '.txt'), x, fmt='%.9g')


def main():
    folder = sys.argv[1]
    rng = np.random.default_rng(1)
    still = [(f'{kind}-{trial}', x) for trial in range(TRIALS) for kind, x in unchanging(rng).items()]
    write(os.path.join(folder, 'unchanging'), sorted(still), '', WINDOWS)
    moved = [(f'{kind}-{trial:02}', x) for trial in range(EACH) for kind, x in changing(rng).items()]
    write(os.path.join(folder, 'changing'), sorted(moved), f',{LENGTH // 2}', (20,))


if __name__ == '__main__':
    main()
