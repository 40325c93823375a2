#!/usr/bin/env python3
"""Measures what the process model finds on simulated recordings of a heat line of 5 km with a sensor every km: a sensor that reads 1 K
too much, and a place that loses more heat. The same detector runs on the sensors' own values and on SENSOR#model.

    model_heat.py [--hankel build/hankel] [--seeds 201-210] [--detector algorithm=shift,window=64] [--adapt 0.002]

Each recording has 42 hours, with a reading a minute. The fault begins after 36 hours, at a place that depends on the seed. It is found if
any sensor raises an alert within 3 hours, with an instant at most 20 minutes before the fault. Every alert raised before the fault is
false."""
import argparse
import os
import statistics
import subprocess
import tempfile

import model_leaks

LINE = '''# a supply pipe of 5 km
kind heat
units C m3/h
ground 8
''' + ''.join(f'edge n{i} n{i + 1} 1000 0.25 0.3 25\n' for i in range(5)) + '''sensor t.0 t n0 boundary
sensor q.0 q n0 boundary
''' + ''.join(f'sensor t.{i} t n{i} check\n' for i in range(1, 6))
HOURS, FAULT = 42, 36


def judge(found):
    right = [t - FAULT * 3600 for t, instant in found if FAULT * 3600 < t <= (FAULT + 3) * 3600 and instant >= FAULT * 3600 - 1200]
    return (min(right) / 60 if right else None), sum(t <= FAULT * 3600 for t, _ in found)


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--hankel', default='build/hankel')
    options.add_argument('--seeds', default='201-210')
    options.add_argument('--detector', default='algorithm=shift,window=64')
    options.add_argument('--adapt', default='0.002')
    o = options.parse_args()
    first, last = (int(v) for v in o.seeds.split('-'))
    seeds = range(first, last + 1)
    print(f'SIMULATED recordings; detector {o.detector}; adapt {o.adapt}; seeds {o.seeds}\n')
    print('fault                       series  found    minutes (median, range)  false alerts an hour')
    with tempfile.TemporaryDirectory() as folder:
        model, path = (os.path.join(folder, name) for name in ('line.model', 'line.csv'))
        with open(model, 'w', encoding='utf-8') as f:
            f.write(LINE)
        for name, fault in [('sensor reads 1 K too much', lambda seed: ['--fault', f'{FAULT}h,t.{1 + seed % 4},bias,1']),
                            ('a place cools, 10 %', lambda seed: ['--leak', f'{FAULT}h,0.1,{500 + 1000 * (seed % 4)}']),
                            ('a place cools, 50 %', lambda seed: ['--leak', f'{FAULT}h,0.5,{500 + 1000 * (seed % 4)}'])]:
            judged = {'values': [], 'model': []}
            for seed in seeds:
                with open(path, 'w', encoding='utf-8') as f:
                    subprocess.run([o.hankel, 'model', 'simulate', '--hours', str(HOURS), '--interval', '60s', '--seed', str(seed), *fault(seed), model], stdout=f, check=True)
                judged['values'].append(judge(model_leaks.alerts(o.hankel, path, o.detector)))
                judged['model'].append(judge(model_leaks.alerts(o.hankel, path, o.detector, '--field', f'operator=model,file={model},interval=60s,adapt={o.adapt}')))
            for series, all_of in judged.items():
                minutes = [m for m, _ in all_of if m is not None]
                when = f'{statistics.median(minutes):.0f} ({min(minutes):.0f} to {max(minutes):.0f})' if minutes else '-'
                false = sum(n for _, n in all_of) / (FAULT * len(all_of))
                print(f'{name:27} {series:7} {len(minutes)} of {len(all_of)}  {when:24} {false:.2f}', flush=True)


if __name__ == '__main__':
    main()
