#!/usr/bin/env python3
"""Measures how often algorithm = novelty alerts on signals that never change, at several severities S, over the whole signal
and over its second half; and how soon a sensor that was wild once alerts as easily as before. Results:
tests/bench/results/detection-tails.txt.

    tests/bench/scripts/tails.py HANKEL rates|wild [RESIDENT[,KEY=VALUE...]]      needs numpy"""
import itertools
import subprocess
import sys

import numpy as np

POINTS = 150000
LEVELS = (1.3, 2, 2.3, 2.48, 3)


def rarity(hankel, x, resident):
    """S of each point."""
    text = '\n'.join(f'{v:.7g}' for v in x)
    run = subprocess.run([hankel, 'replay', '--backend', 'cpu', '--detector', f'algorithm=novelty,resident={resident},alert=0.9', '-'],
                         input=text, capture_output=True, text=True, check=True)
    z = np.array([float(line.split(',')[3] or 0) for line in run.stdout.splitlines()[1:] if not line.startswith('#')])
    return 2 * z / (1 - np.minimum(z, 1 - 1e-9))


def alerts(s, level, first):
    n, began, last = 0, None, None
    for i in np.nonzero(s >= level - 0.3)[0]:
        if began is not None and (i - last > 60 or i - began > 300):
            began = None
        if began is not None:
            last = i
        elif s[i] >= level and i >= first:
            n, began, last = n + 1, i, i
    return n


def signals(rng):
    t, z = np.arange(POINTS), rng.standard_normal(POINTS)

    def autoregressive(c):
        return np.array(list(itertools.accumulate(rng.standard_normal(POINTS), lambda a, b: c * a + b)))

    return {
        'noise': z, 'laplace': rng.laplace(size=POINTS), 't3': rng.standard_t(3, size=POINTS), 'lognormal': rng.lognormal(size=POINTS),
        'uniform': rng.uniform(size=POINTS), 'ar90': autoregressive(.9), 'ar99': autoregressive(.99), 'walk': np.cumsum(z),
        'sine': np.sin(t / 7) + .1 * z, 'sines': np.sin(t / 7) + .5 * np.sin(t / 19) + .1 * z,
        'load': 100 + 50 * np.sin(2 * np.pi * t / 288) * (1 - .5 * ((t // 288) % 7 > 4)) + 5 * z,
        'poisson3': rng.poisson(3, POINTS).astype(float), 'poisson.3': rng.poisson(.3, POINTS).astype(float), 'ramp': .001 * t + z,
        'growing': z * (1 + t / 20000), 'rounded': np.round(3 * z), 'bursts': z + 20 * (rng.random(POINTS) < .0005) * rng.exponential(size=POINTS),
    }


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    hankel, what, resident = sys.argv[1], sys.argv[2], (sys.argv + ['10000'])[3]
    if what == 'rates':
        for name, x in signals(np.random.default_rng(21)).items():
            s, half = rarity(hankel, x, resident), POINTS // 2
            rates = [[f'{1000 * alerts(part, level, first) / len(part):.3f}' for level in LEVELS] for part, first in ((s, 150), (s[half:], 0))]
            print(f'{name:10}', *rates[0], '| later half', *rates[1], flush=True)
        return
    rng = np.random.default_rng(3)
    z = rng.standard_normal(122000)
    z[4000:9000] *= 1 + 9 * np.abs(rng.standard_t(2, 5000))
    for end in range(20000, 120001, 20000):
        x = z[:end + 40].copy()
        x[end:end + 5] += 6
        print(f'point {end}: S {rarity(hankel, x, resident)[end:].max():.2f}', flush=True)


if __name__ == '__main__':
    main()
