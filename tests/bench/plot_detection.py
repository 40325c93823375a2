#!/usr/bin/env python3
"""Plots labelled recordings with what a detector says of them: the series, its score, the labels, and where alerts say that it changed.

    tests/bench/plot_detection.py HANKEL FOLDER OUT.svg KEYS [RECORDING...]

FOLDER: as `hankel evaluate` reads it, its tssb/ and nab/; RECORDING: names of files without ending, all unless given; KEYS as after
--detector. Needs matplotlib."""
import csv
import glob
import json
import os
import subprocess
import sys
from datetime import datetime, timezone

import matplotlib
matplotlib.use('svg')
import matplotlib.pyplot as plt


def seconds(text):
    return datetime.fromisoformat(text.split('.')[0]).replace(tzinfo=timezone.utc).timestamp()


def labels(folder):
    """By path: labelled stretches in the file's own time, seconds."""
    found = {}
    tssb, nab = os.path.join(folder, 'tssb'), os.path.join(folder, 'nab')
    if os.path.exists(os.path.join(tssb, 'desc.txt')):
        with open(os.path.join(tssb, 'desc.txt')) as f:
            for name, _, *changes in (line.strip().split(',') for line in f if line.strip()):
                found[os.path.join(tssb, name + '.txt')] = [(int(c), int(c)) for c in changes if c]
    if os.path.exists(os.path.join(nab, 'windows.json')):
        with open(os.path.join(nab, 'windows.json')) as f:
            for path, windows in json.load(f).items():
                at = glob.glob(os.path.join(nab, '**', os.path.basename(path)), recursive=True)
                if at:
                    found[at[0]] = [(seconds(a), seconds(b)) for a, b in windows]
    return found


def replay(hankel, keys, path):
    run = subprocess.run([hankel, 'replay', '--detector', keys, path], capture_output=True, text=True, check=True)
    rows = list(csv.reader(run.stdout.splitlines()[1:]))
    points = [(int(r[1]) / 1e9, float(r[2]), float(r[3]) if r[3] else float('nan')) for r in rows if not r[0].startswith('#')]
    raised = [(int(r[4]) / 1e9, int(r[5]) / 1e9) for r in rows if r[0] == '#event' and r[3] == 'raised']
    return points, raised


def main():
    hankel, folder, out, keys, *wanted = sys.argv[1:]
    known = {path: where for path, where in sorted(labels(folder).items())
             if not wanted or os.path.splitext(os.path.basename(path))[0] in wanted}
    figure, axes = plt.subplots(2 * len(known), 1, figsize=(12, 2.6 * len(known)), squeeze=False,
                                gridspec_kw={'height_ratios': [3, 1] * len(known)})
    for i, (path, where) in enumerate(known.items()):
        points, raised = replay(hankel, keys, path)
        series, score = axes[2 * i][0], axes[2 * i + 1][0]
        first = 0 if path.endswith('.txt') else points[0][0]
        unit = 1 if path.endswith('.txt') else 86400
        time = [(p[0] - first) / unit for p in points]
        series.plot(time, [p[1] for p in points], linewidth=.5, color='black', rasterized=True)
        scored = [(t, p[2]) for t, p in zip(time, points) if p[2] == p[2]]  # not every point has a score
        score.plot([t for t, _ in scored], [z for _, z in scored], linewidth=.7, color='tab:blue', rasterized=True)
        score.set_ylim(0, 1)
        for axis in (series, score):
            axis.set_xlim(time[0], time[-1])
        for a, b in where:
            series.axvspan((a - first) / unit, (b - first) / unit, color='tab:green', alpha=.3, linewidth=1.5)
        for at, instant in raised:
            series.axvline((instant - first) / unit, color='tab:red', linewidth=1)
            score.axvline((at - first) / unit, color='tab:red', linewidth=.7, linestyle=':')
        series.set_title(f'{os.path.splitext(os.path.basename(path))[0]}: {len(where)} labels, {len(raised)} alerts', fontsize=8, loc='left')
        series.tick_params(labelbottom=False, labelsize=6)
        score.tick_params(labelsize=6)
    axes[0][0].text(1, 1.02, f'{keys}. green: labelled, red: the change as the alert tells it, dotted: when it was raised', fontsize=7,
                    ha='right', va='bottom', transform=axes[0][0].transAxes)
    figure.tight_layout()
    figure.savefig(out, dpi=90)


if __name__ == '__main__':
    main()
