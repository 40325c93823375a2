#!/usr/bin/env python3
"""What an alert's margin says: alerts of `hankel replay` on labelled recordings, by what the statistic was of its threshold, and the
share of them that were right. cpu/rules/confidence.h has what was fitted to it.

    tests/bench/scripts/confidence.py HANKEL TSSB-FOLDER SIGNALS-FOLDER

TSSB-FOLDER and what detection_signals.py has written to SIGNALS-FOLDER have a desc.txt of NAME,WINDOW,CHANGE,... An alert is right
when its instant is within 2 % of the recording's length, or two windows, of a change."""
import json
import os
import subprocess
import sys

EDGES = (0, 1.005, 1.01, 1.02, 1.04, 1.08, 1.15, 1.3, 1.6, 2, 3, 5, 10, float('inf'))
GRAPH = 'algorithm=graph,roughness=0.85,shortest=2,locality=0.2'  # as conf/hankeld.conf has it
DETECTORS = {
    'change, window given': lambda w: f'{GRAPH},window={max(8, w)}',
    'change, window found': lambda w: GRAPH,
    'shift': lambda w: f'algorithm=shift,window={min(max(4, w), 100)}',
    'score': lambda w: f'window={min(max(8, w), 96)}',
}


def raised(hankel, detector, path):
    out = subprocess.run([hankel, 'replay', '--backend', 'cpu', '--detector', detector, '--format', 'jsonl', path],
                         capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"event":"raised"')]


def alerts(hankel, folder, keys):
    """(margin, right, confidence) of each alert on the recordings of a folder."""
    found = []
    for line in open(os.path.join(folder, 'desc.txt')):
        name, window, *changes = line.strip().split(',')
        path = os.path.join(folder, name + '.txt')
        with open(path) as f:
            points = sum(1 for _ in f)
        tolerance = max(.02 * points, 2 * int(window))
        for event in raised(hankel, keys(int(window)), path):
            off = min((abs(event['instant'] / 1e9 - int(c)) for c in changes), default=float('inf'))
            found.append((event['margin'], off <= tolerance, event['confidence']))
    return found


def share(found):
    """The share of alerts that were right, and what they said that it would be."""
    return sum(f[1] for f in found) / len(found), sum(f[2] for f in found) / len(found)


def main():
    hankel, tssb, signals = sys.argv[1:]
    folders = {'TSSB': tssb, 'changing': os.path.join(signals, 'changing/tssb'), 'unchanging': os.path.join(signals, 'unchanging/tssb')}
    for channel, keys in DETECTORS.items():
        print(f'\n{channel}\n{"margin from":>12s}', ''.join(f'{name:>20s}' for name in [*folders, 'all: right', 'confidence']))
        found = {name: alerts(hankel, folder, keys) for name, folder in folders.items()}
        every = sum(found.values(), [])
        for low, high in [*zip(EDGES, EDGES[1:]), (0, float('inf'))]:
            row = [[f for f in some if low <= f[0] < high] for some in [*found.values(), every]]
            if not row[-1]:
                continue
            cells = [f'{share(some)[0]:.2f} of {len(some)}' if some else '-' for some in row[:-1]]
            right, said = share(row[-1])
            label = 'all' if (low, high) == (0, float('inf')) else f'{low:g}'
            print(f'{label:>12s}', ''.join(f'{cell:>20s}' for cell in [*cells, f'{right:.2f}', f'{said:.2f}']), flush=True)


if __name__ == '__main__':
    main()
