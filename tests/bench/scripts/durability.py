#!/usr/bin/env python3
"""Measures what durability costs: runs the same load with durability = none and = journal by turns, and prints their
ratio.

    durability.py [--build DIR] [--state DIR] [--rounds N] [--seconds S] [--rate POINTS] [--sensors N]

The state is written below DIR (default: the working directory), which should be on the disk to be measured. Points are sent over 16
connections as fast as the daemon takes them, or at --rate points a second; one subscriber reads everything. Scores every 16 points, window
96, on the CPU. On a machine that does other things, too, only the ratio is of use."""
import argparse
import os
import shutil
import statistics
import sys
import tempfile
import types

import load_run


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    p.add_argument('--state', default='.')
    p.add_argument('--rounds', type=int, default=5)
    p.add_argument('--seconds', type=float, default=4)
    p.add_argument('--rate', type=float, default=0)
    p.add_argument('--sensors', type=int, default=10000)
    p.add_argument('--window', type=int, default=96)
    p.add_argument('--set', action='append', default=[], help='another key of [daemon]')
    o = p.parse_args()
    rates, faults = {'none': [], 'journal': []}, []
    print(f'{o.sensors} sensors, window {o.window}, stride 16, {o.rate or "as fast as it goes"}: M points/s taken in', flush=True)
    for turn in range(o.rounds):
        for mode in ('none', 'journal') if turn % 2 == 0 else ('journal', 'none'):
            state = tempfile.mkdtemp(prefix='durability-', dir=o.state)
            options = types.SimpleNamespace(size='tiny', backend='cpu', most=0, build=os.path.abspath(o.build), seconds=o.seconds, profile=None,
                                            set=[f'durability={mode}', f'state={state}/state', *o.set])
            try:
                result = load_run.Bench(options).run(mode, [load_run.Feed(sensors=o.sensors, rate=o.rate)],
                                                     detector={'window': o.window, 'stride': 16, 'alert': 'off'})
            finally:
                shutil.rmtree(state)
            d = result['status'].get('durability', {})
            rates[mode].append(result['in_per_s'] / 1e6)
            faults += result['faults'] + [line for line in result['log'] if 'journal' in line]
            print(f'  {mode:8} {rates[mode][-1]:6.3f}  points a batch {result["points_a_batch"]:7}  commits {d.get("commits", 0):6} of '
                  f'{d.get("bytes", 0) / max(1, d.get("commits", 0)) / 1e3:8.1f} kB, p50 {d.get("commit_p50_us", 0):6} us, p99 {d.get("commit_p99_us", 0):6} us  '
                  + ', '.join(f'{name} {share} %' for name, share, _ in result['threads']['daemon'][:6]), flush=True)
    middle = {mode: statistics.median(values) for mode, values in rates.items()}
    print(f'median: none {middle["none"]:.3f}, journal {middle["journal"]:.3f}: {middle["journal"] / middle["none"]:.1%}')
    for fault in faults:
        print('FAULT:', fault)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
