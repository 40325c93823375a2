#!/usr/bin/env python3
"""Plots measurements made on a GPU: reads the JSON lines of tests/bench/results/cuda-*.txt (gpu-evidence wrote them) and draws
cuda-widths.svg, cuda-speedup.svg and cuda-latency.svg beside them, which git leaves out. Needs matplotlib.

    tests/bench/scripts/plot_gpu.py [FOLDER]"""
import glob
import json
import os
import sys

import matplotlib
matplotlib.use('svg')
import matplotlib.pyplot as plt  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'results')
LEAST = 28  # TFLOP/s wanted from w = 96 to 512
PAPER = 'K. Ueno and T. Suzumura, Tesla C1060'


def rows(folder):
    """{measure: [row]}; the last of several rows with the same parameters counts."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, 'cuda-*.txt'))):
        with open(path) as file:
            for line in file:
                if line.startswith('{"measure":'):
                    row = json.loads(line)
                    key = tuple(row.get(k) for k in ('window', 'sensors', 'ready', 'preset'))
                    found.setdefault(row['measure'], {})[key] = row
    return {measure: sorted(by_key.values(), key=lambda r: (r.get('window', 0), r.get('ready', 0))) for measure, by_key in found.items()}


def picture(title, x, y):
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    return figure, axes


def save(figure, folder, name):
    path = os.path.join(folder, name)
    figure.tight_layout()
    figure.savefig(path, metadata={'Date': None})
    plt.close(figure)
    print(path)


def widths(found):
    figure, axes = picture('IKA-SST on one H200: 16 Hankel products a score, whole ticks', 'window', 'useful TFLOP/s')
    w = [r['window'] for r in found]
    axes.plot(w, [r['useful_tflops'] for r in found], 'o-', ms=3, label='useful TFLOP/s')
    axes.hlines(LEAST, 96, 512, colors='grey', linestyles=':', label=f'{LEAST}, wanted from 96 to 512')
    axes.set_xscale('log', base=2)
    axes.set_xticks([16, 32, 64, 128, 256, 512, 1024], labels=['16', '32', '64', '128', '256', '512', '1024'])
    axes.set_ylim(bottom=0)
    rate = axes.twinx()
    rate.plot(w, [r['scores_per_s'] / 1e6 for r in found], 's--', ms=3, color='tab:orange', label='M scores/s')
    rate.set(ylabel='M scores/s', yscale='log')
    lines = axes.get_legend_handles_labels()[0] + rate.get_legend_handles_labels()[0]
    axes.legend(lines, [line.get_label() for line in lines], loc='lower center')
    return figure


def speedup(found):
    figure, axes = picture('IKA-SST, r = 3: times one CPU core of the same host', 'window', 'times')
    for preset, mark in (('default', 'o-'), ('paper', 's-')):
        some = [r for r in found if r['preset'] == preset]
        axes.plot([r['window'] for r in some], [r['times_one_core'] for r in some], mark, ms=3, label=f'hankeld, one H200, preset {preset}')
    axes.fill_between([90, 500], 21, 26, alpha=0.4, color='grey', label=f'{PAPER}: 21 to 26')
    axes.plot([60], [76], 'k^', ms=5, label=f'{PAPER}: 76, the most')
    axes.set_yscale('log')
    axes.legend(fontsize='small')
    return figure


def latency(found):
    figure, axes = picture('One tick of a million resident sensors, one H200', 'sensors with a new point', 'submit to reaped, µs')
    for w in sorted({r['window'] for r in found}):
        some = [r for r in found if r['window'] == w]
        line, = axes.plot([r['ready'] for r in some], [r['p50_us'] for r in some], 'o-', ms=4, label=f'w = {w}, p50')
        axes.plot([r['ready'] for r in some], [r['p99_us'] for r in some], 'o:', ms=3, color=line.get_color(), label=f'w = {w}, p99')
    axes.set(xscale='log', yscale='log')
    axes.legend()
    return figure


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else FOLDER
    found = rows(folder)
    for name, draw in (('widths', widths), ('speedup', speedup), ('latency', latency)):
        if name in found:
            save(draw(found[name]), folder, f'cuda-{name}.svg')


if __name__ == '__main__':
    main()
