#!/usr/bin/env python3
"""Compares the alerts of algorithm = graph and shift on two backends, for all recordings of a folder as `hankel evaluate` reads it: whether
both raise them on the same points, with the same instants.

    tests/bench/scripts/graph_same_alarms.py HANKEL FOLDER [BACKEND BACKEND]      (default: cpu cuda)

Exits with 1 if an alert differs."""
import concurrent.futures
import csv
import glob
import os
import subprocess
import sys

DETECTORS = ('algorithm=graph', 'algorithm=graph,window=20', 'algorithm=graph,window=50,level=0.1', 'algorithm=graph,window=10,neighbours=5,resident=1000',
             'algorithm=graph,roughness=0.85', 'algorithm=shift', 'algorithm=shift,baseline=1')


def recordings(folder):
    for path in sorted(glob.glob(os.path.join(folder, '*', '**', '*'), recursive=True)):
        if path.endswith('.csv') or (path.endswith('.txt') and os.path.basename(path) != 'desc.txt'):
            yield path


def alerts(hankel, backend, keys, path):
    columns = []
    if path.endswith('.csv'):
        with open(path) as f:
            names = next(csv.reader(f, delimiter=';' if 'skab' in path else ','))
        columns = [c for name in names[1:] if name not in ('anomaly', 'changepoint') for c in ('--column', name)]
    run = subprocess.run([hankel, 'replay', '--backend', backend, '--detector', keys, *columns, path], capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        sys.exit(f'{path}: {run.stderr.strip()}')
    rows = [line.split(',') for line in run.stdout.splitlines() if line.startswith('#event')]
    return sorted((sensor, kind, time, instant) for _, _, sensor, kind, time, instant, *_ in rows)


def main():
    hankel, folder, *backends = sys.argv[1:]
    one, other = backends or ('cpu', 'cuda')
    pool = concurrent.futures.ThreadPoolExecutor(12)
    print(f'{"detector":56} {"recordings":>10} {"events":>8} {"others":>8}')
    differ = 0
    for keys in DETECTORS:
        files = events = others = 0
        for path, a, b in pool.map(lambda path: (path, alerts(hankel, one, keys, path), alerts(hankel, other, keys, path)), recordings(folder)):
            files += 1
            events += len(a)
            others += len(set(a) ^ set(b))
            if a != b:
                print(f'  {os.path.basename(path)}: {one} alone {sorted(set(a) - set(b))}, {other} alone {sorted(set(b) - set(a))}')
        differ += others
        print(f'{keys:56} {files:10} {events:8} {others:8}', flush=True)
    sys.exit(differ > 0)


if __name__ == '__main__':
    main()
