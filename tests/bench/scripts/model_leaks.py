#!/usr/bin/env python3
"""Measures which leaks the process model finds on simulated recordings of a pipeline of 100 km. The same detector runs on the
sensors' own values, on the balance of the flows, and on SENSOR#model.

    model_leaks.py [--hankel build/hankel] [--seeds 101-106] [--shares 0.005,0.01,0.02,0.04] [--detector algorithm=shift,window=128]

Each recording has 8 hours, with a reading every 5 s. The leak begins after 5 hours, at a place that depends on the seed. It is found if an
alert is raised within an hour, with an instant at most five minutes before the leak. Every alert raised before the leak is false."""
import argparse
import csv
import json
import os
import statistics
import subprocess
import tempfile

LINE = '''# 100 km of crude oil
fluid 850
units bar m3/h
edge a b 40000 0.6 0.018 1050 40
edge b c 35000 0.6 0.018 1050 35
edge c d 25000 0.5 0.018 1080 25
height b 40
height c 15
sensor a.p p a boundary
sensor d.p p d boundary
sensor a.q q a check
sensor d.q q d check
sensor b.p p b check
sensor c.p p c check
'''
HOURS, LEAK, INTERVAL = 8, 5, 5
BEGIN = 1767225600  # 2026-01-01


def alerts(hankel, path, detector, *field):
    done = subprocess.run([hankel, 'replay', *field, '--detector', detector, '--format', 'jsonl', path], capture_output=True, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines() if '"event"' in line]
    return [(e['time'] / 1e9 - BEGIN, e['instant'] / 1e9 - BEGIN) for e in events if e['event'] == 'raised']


def judge(found):
    """Minutes from the leak to the first alert that found it, or None; and the number of alerts before the leak."""
    leak = LEAK * 3600
    right = [t - leak for t, instant in found if leak < t <= leak + 3600 and instant >= leak - 300]
    return (min(right) / 60 if right else None), sum(t <= leak for t, _ in found)


def balance(path, out):
    with open(path, encoding='utf-8') as f, open(out, 'w', encoding='utf-8') as to:
        to.write('time,balance\n')
        for row in csv.DictReader(f):
            to.write(f"{row['time']},{float(row['a.q']) - float(row['d.q'])!r}\n")


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--hankel', default='build/hankel')
    options.add_argument('--seeds', default='101-106')
    options.add_argument('--shares', default='0.005,0.01,0.02,0.04')
    options.add_argument('--detector', default='algorithm=shift,window=128')
    o = options.parse_args()
    first, last = (int(v) for v in o.seeds.split('-'))
    seeds, shares = range(first, last + 1), [float(v) for v in o.shares.split(',')]
    print(f'SIMULATED recordings; detector {o.detector}; seeds {o.seeds}; {len(seeds)} leaks of each size\n')
    print('leak     series           found  minutes (median, range)   false alerts an hour')
    with tempfile.TemporaryDirectory() as folder:
        model, path, flows = (os.path.join(folder, name) for name in ('line.model', 'line.csv', 'balance.csv'))
        with open(model, 'w', encoding='utf-8') as f:
            f.write(LINE)
        for share in shares:
            judged = {'values': [], 'flow balance': [], 'model': []}
            for seed in seeds:
                place = 10000 + (seed * 37 % 81) * 1000
                with open(path, 'w', encoding='utf-8') as f:
                    subprocess.run([o.hankel, 'model', 'simulate', '--hours', str(HOURS), '--interval', f'{INTERVAL}s', '--seed', str(seed),
                                    '--leak', f'{LEAK}h,{share},{place}', model], stdout=f, check=True)
                balance(path, flows)
                judged['values'].append(judge(alerts(o.hankel, path, o.detector)))
                judged['flow balance'].append(judge(alerts(o.hankel, flows, o.detector)))
                judged['model'].append(judge(alerts(o.hankel, path, o.detector, '--field', f'operator=model,file={model},interval={INTERVAL}s')))
            for series, all_of in judged.items():
                minutes = [m for m, _ in all_of if m is not None]
                when = f'{statistics.median(minutes):.0f} ({min(minutes):.0f} to {max(minutes):.0f})' if minutes else '-'
                false = sum(n for _, n in all_of) / (LEAK * len(all_of))
                print(f'{100 * share:4.1f} %   {series:14}   {len(minutes)} of {len(all_of)}   {when:24}  {false:.2f}', flush=True)


if __name__ == '__main__':
    main()
