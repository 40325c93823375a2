#!/usr/bin/env python3
"""Measures whether the Hoelder exponent and its forecast (operator = hoelder, arma) warn of servers that age, with
`hankel replay`.

    ageing.py HANKEL RECORDING... > tests/bench/results/ageing.txt

Prints for each sensor the mean exponent in each quarter of the recording; Mann-Kendall's z of the medians of 24 blocks, which is below -4 if the exponent certainly falls; and the error of the forecast beside that of the last exponent. tests/data has three recordings of servers whose used memory grows
until the end, a minute apart."""
import json
import os
import statistics
import subprocess
import sys


def series(hankel, path, operator):
    keys = ['--field', f'operator={operator},interval=1m', '--detector', 'algorithm=shift,window=16,alert=off', '--format', 'jsonl']
    out, of = subprocess.run([hankel, 'replay', *keys, path], capture_output=True, text=True, check=True).stdout, {}
    for line in map(json.loads, out.splitlines()):
        if 'value' in line:
            of.setdefault(line['sensor'].split('#')[0], []).append((line['time'], line['value']))
    return of


def trend(values):
    blocks = [statistics.median(values[i * len(values) // 24:(i + 1) * len(values) // 24]) for i in range(24)]
    return sum((b > a) - (b < a) for i, a in enumerate(blocks) for b in blocks[i + 1:]) / (24 * 23 * 53 / 18) ** 0.5


def root(errors):
    return statistics.fmean(e * e for e in errors) ** 0.5


def main(hankel, *paths):
    for path in paths:
        exponents, forecasts = series(hankel, path, 'hoelder'), series(hankel, path, 'arma')
        for sensor, points in sorted(exponents.items()):
            h, n = [v for _, v in points], len(points)
            quarters = ' '.join(f'{statistics.fmean(h[i * n // 4:(i + 1) * n // 4]):.2f}' for i in range(4))
            follows = {t: (now, then) for (t, now), (_, then) in zip(points, points[1:])}
            made = [(follows[t][1] - f, follows[t][1] - follows[t][0]) for t, f in forecasts.get(sensor, []) if t in follows]
            said = f'{len(made)} forecasts off by {root([f for f, _ in made]):.3f}, the last exponent by {root([e for _, e in made]):.3f}' if made else 'no forecast'
            print(f'{os.path.basename(path)[:-4]:20} {sensor:15} {n} exponents, quarters {quarters}, z {trend(h):+.1f}; {said}')


if __name__ == '__main__':
    main(*sys.argv[1:])
