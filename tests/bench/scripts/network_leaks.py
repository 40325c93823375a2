#!/usr/bin/env python3
"""Measures which leaks the process model finds on simulated recordings of made-up networks of pipes (network_file.py), at nodes without a
sensor. The same detector runs on the sensors' own values, on the balance of all measured flows, and on SENSOR#model.

    network_leaks.py [--hankel build/hankel] [--seeds 101-106] [--shares 0.005,0.01,0.02,0.04] [--unmetered 0.05] [--metered 0.6]
                     [--side 17] [--detector algorithm=shift,window=128]

Each seed has a network of its own. Each recording has 8 hours, with a reading every 5 s; the leak begins after 5 hours. It is found if an
alert is raised within an hour, with an instant at most five minutes before the leak. Every alert raised before the leak is false. Chance is
the share of the one-hour windows in these five hours that have an alert. network_places.py judges the place of the leak."""
import argparse
import csv
import os
import statistics
import subprocess
import tempfile

from model_leaks import HOURS, INTERVAL, LEAK, alerts, judge
from network_file import town


def balance(path, out):
    with open(path, encoding='utf-8') as f, open(out, 'w', encoding='utf-8') as to:
        to.write('time,balance\n')
        for row in csv.DictReader(f):
            inside = sum(float(v) for k, v in row.items() if k.endswith('.q'))
            to.write(f"{row['time']},{inside - sum(float(v) for k, v in row.items() if k.startswith('meter'))!r}\n")


def chance(found):
    """The share of the one-hour windows, one beginning every 5 minutes, in which an alert is raised."""
    begins = range(3600, int(LEAK * 3600) - 3600 + 1, 300)
    return statistics.mean(any(b < t <= b + 3600 for t, _ in found) for b in begins)


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--hankel', default='build/hankel')
    options.add_argument('--seeds', default='101-106')
    options.add_argument('--shares', default='0.005,0.01,0.02,0.04')
    options.add_argument('--unmetered', type=float, default=0.05)
    options.add_argument('--metered', type=float, default=0.6)
    options.add_argument('--side', type=int, default=17)
    options.add_argument('--detector', default='algorithm=shift,window=128')
    o = options.parse_args()
    first, last = (int(v) for v in o.seeds.split('-'))
    seeds, shares = range(first, last + 1), [float(v) for v in o.shares.split(',')]
    print(f'SIMULATED networks of {o.side ** 2} nodes with 14 sensors; {100 * o.metered:.0f} % of the flow has meters, the rest wanders by {100 * o.unmetered:.0f} % a node; '
          f'detector {o.detector}; seeds {o.seeds}; {len(seeds)} leaks of each size\n')
    print('leak     series           found  minutes (median, range)   false alerts an hour   chance')
    with tempfile.TemporaryDirectory() as folder:
        model, path, flows = (os.path.join(folder, name) for name in ('net.model', 'net.csv', 'balance.csv'))
        for share in shares:
            judged = {'values': [], 'flow balance': [], 'model': []}
            lucky = {name: [] for name in judged}
            for seed in seeds:
                text, nodes = town(o.side, seed, metered=o.metered)
                with open(model, 'w', encoding='utf-8') as f:
                    f.write(text)
                with open(path, 'w', encoding='utf-8') as f:
                    subprocess.run([o.hankel, 'model', 'simulate', '--hours', str(HOURS), '--interval', f'{INTERVAL}s', '--seed', str(seed), '--unmetered', str(o.unmetered),
                                    '--leak', f'{LEAK}h,{share},{nodes[seed % len(nodes)]}', model], stdout=f, check=True)
                balance(path, flows)
                for name, found in (('values', alerts(o.hankel, path, o.detector)), ('flow balance', alerts(o.hankel, flows, o.detector)),
                                    ('model', alerts(o.hankel, path, o.detector, '--field', f'operator=model,file={model},interval={INTERVAL}s'))):
                    judged[name].append(judge(found))
                    lucky[name].append(chance(found))
            for series, all_of in judged.items():
                minutes = [m for m, _ in all_of if m is not None]
                when = f'{statistics.median(minutes):.0f} ({min(minutes):.0f} to {max(minutes):.0f})' if minutes else '-'
                false = sum(n for _, n in all_of) / (LEAK * len(all_of))
                print(f'{100 * share:4.1f} %   {series:14}   {len(minutes)} of {len(all_of)}   {when:24}  {false:20.2f}   {statistics.mean(lucky[series]):.2f}', flush=True)


if __name__ == '__main__':
    main()
