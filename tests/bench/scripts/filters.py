#!/usr/bin/env python3
"""Measures how filters change detection: runs hankel evaluate on recordings as they are and behind operator = despike and median, each also
with added spikes.

    filters.py HANKEL FOLDER > filters.txt        FOLDER: as for hankel evaluate; nab/, tssb/ and skab/ are used

With a chance of 0.5 % a value becomes a spike, 5 standard deviations of its recording up or down (seed: the recording's name). Each sample
is a row, whatever its time. Samples before the first output of a filter stay as they are."""
import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

HANKEL, FOLDER = sys.argv[1:3]
FILTERS = {'none': None, 'despike': 'operator=despike', 'median of 5': 'operator=median'}
DETECTORS = ('algorithm=ika', 'algorithm=graph', 'algorithm=novelty', 'algorithm=shift')
WINDOWED = DETECTORS[:2]  # detectors that take a collection's windows


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def filtered(columns, keys):
    """Passes columns of numbers (None: no value) through a field of hankel replay. Returns the columns, and the number
    of spikes."""
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
        f.write('time,' + ','.join(f's{i}' for i in range(len(columns))) + '\n')
        for t, row in enumerate(zip(*columns)):
            f.write(f'{1700000000 + t},' + ','.join('' if v is None else repr(v) for v in row) + '\n')
        f.flush()
        run = subprocess.run([HANKEL, 'replay', '--field', keys + ',interval=1s', '--detector', 'algorithm=shift,alert=off', '--format', 'jsonl', f.name], capture_output=True, text=True, check=True)
    out = [list(c) for c in columns]
    for line in run.stdout.splitlines():
        item = json.loads(line)
        if 'value' in item:
            out[int(item['sensor'][1:].split('#')[0])][item['time'] // 10**9 - 1700000000] = item['value']
    return out, int(run.stderr.split(':')[1].split()[0]) if 'were spikes' in run.stderr else 0


def spiked(name, columns, share):
    rng, out = random.Random(name), []
    for c in columns:
        wide = 5 * statistics.pstdev(v for v in c if v is not None)
        out.append([v if v is None or rng.random() >= share else v + rng.choice((-wide, wide)) for v in c])
    return out


def table(path, skab):
    """A CSV file: its header, rows, and the columns that are readings."""
    with open(path, encoding='utf-8') as f:
        rows = list(csv.reader(f, delimiter=';' if skab else ','))
    which = [i for i, n in enumerate(rows[0]) if i > 0 and n not in ('anomaly', 'changepoint')]
    return rows, which


def copy(to, keys, share):
    """Writes the recordings with spikes and behind a filter. Returns the number of values, and of spikes."""
    values = spikes = 0
    for kind in ('nab', 'tssb', 'skab'):
        os.makedirs(f'{to}/{kind}')
        for name in sorted(os.listdir(f'{FOLDER}/{kind}')):
            path, skab = f'{FOLDER}/{kind}/{name}', kind == 'skab'
            if name in ('windows.json', 'desc.txt'):
                shutil.copy(path, f'{to}/{kind}/{name}')
                continue
            if kind == 'tssb':
                with open(path, encoding='utf-8') as f:
                    columns = [[float(v) for v in f.read().split()]]
            else:
                rows, which = table(path, skab)
                columns = [[number(r[i]) for r in rows[1:]] for i in which]
            columns = spiked(name, columns, share)
            if keys:
                columns, n = filtered(columns, keys)
                spikes += n
            values += sum(len(c) for c in columns)
            with open(f'{to}/{kind}/{name}', 'w', encoding='utf-8') as f:
                if kind == 'tssb':
                    f.write('\n'.join(map(repr, columns[0])) + '\n')
                    continue
                for k, i in enumerate(which):
                    for t, v in enumerate(columns[k]):
                        rows[t + 1][i] = '' if v is None else repr(v)
                f.write('\n'.join((';' if skab else ',').join(r) for r in rows) + '\n')
    return values, spikes


for share in (0, 0.005):
    for title, keys in FILTERS.items():
        with tempfile.TemporaryDirectory() as to:
            values, spikes = copy(to, keys, share)
            print(f'\n## spikes put in: {100 * share} % of values; filter: {title}' + (f'; it took {spikes} of {values} values for spikes' if keys else ''), flush=True)
            for detector in DETECTORS:
                run = subprocess.run([HANKEL, 'evaluate', '--brief', '--backend', 'cpu', '--detector', detector, *(['--given-windows'] if detector in WINDOWED else []), to], capture_output=True, text=True, check=True)
                print(f'\n{detector}\n{run.stdout}', end='', flush=True)
