#!/usr/bin/env python3
"""Draws tests/bench/results/cluster-nodes.svg: scores a second over the number of GPUs, from cluster-nodes.txt
(cluster_nodes.py) and socket-to-socket.txt, beside figures 9 and 13 of Ueno and Suzumura's paper.

    tests/bench/scripts/cluster_figure.py"""
import json
import math
import pathlib
import statistics

RESULTS = pathlib.Path(__file__).resolve().parents[1] / 'results'
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 440, 76, 520, 28, 380
LOW, HIGH = 1, 9  # powers of 10
NAMES = {'ika': 'IKA-SST', 'svd': 'SVD-SST'}
# The paper's text gives only the last value of each curve, and says that the curves are nearly linear.
THEIRS = [('IKA-SST over System S', 889000, '#b02020'), ('SVD-SST over System S', 305, '#e08080')]
SOCKETS = [('one daemon, sockets, w = 96', [(1, 124.8e6), (2, 248.8e6), (4, 392e6)], '#1f5fa8'), ('one daemon, sockets, SVD-SST', [(1, 2.0e6)], '#7fa8d8')]


def x(gpus):
    return LEFT + 20 + (RIGHT - LEFT - 40) * math.log2(gpus) / 4


def y(rate):
    return BOTTOM - (BOTTOM - TOP) * (math.log10(rate) - LOW) / (HIGH - LOW)


def label(r, runs):
    """The series of a run; runs: those of the same detector and brokers of the same size."""
    if r['what'] == 'direct':
        return 'one daemon, sockets, w = 320'
    each = any(o['brokers'] > 1 for o in runs)
    return f'RabbitMQ, {"each GPU a" if each else "one"} broker of {r["cores"]} cores, {NAMES[r["detector"]]}'


def measured():
    """Series of cluster-nodes.txt: name, points, colour. Of runs that differ only in the number of sensors a GPU has, that with the most."""
    runs = [json.loads(line) for line in (RESULTS / 'cluster-nodes.txt').read_text(encoding='utf-8').splitlines() if line.startswith('{')]
    runs = [r for r in runs if r['gpus'] == r['scorers'] and ((r['what'] == 'engine' and r['detector'] in NAMES) or (r['what'] == 'direct' and r['detector'] == 'ika'))]
    series = {}
    for r in sorted(runs, key=lambda run: run['sensors']):
        alike = [o for o in runs if all(o[k] == r[k] for k in ('what', 'detector', 'cores'))]
        colour = '#4a90d9' if r['what'] == 'direct' else '#8cc49c' if r['detector'] == 'svd' else '#207a3c' if r['cores'] > 2 else '#5d7f2a'
        series.setdefault((label(r, alike), colour), {})[r['gpus']] = statistics.median(r['rates']['scored'])
    return [(name, sorted(points.items()), colour) for (name, colour), points in series.items()]


def number(v):
    return f'{v / 1e6:,.1f} M'.replace('.0 M', ' M') if v >= 1e6 else f'{v:,.0f}'


def draw():
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" font-family="Helvetica,Arial,sans-serif" font-size="12" fill="#333">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for power in range(LOW, HIGH + 1):
        at = y(10**power)
        svg.append(f'<path d="M{LEFT} {at:.1f}H{RIGHT}" stroke="#e4e4e4"/><text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{number(10**power)}</text>')
    for gpus in (1, 2, 4, 8, 16):
        svg.append(f'<text x="{x(gpus):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{gpus}</text>')
    svg.append(f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 38}" text-anchor="middle">GPUs</text><text x="{LEFT - 8}" y="{TOP - 10}" text-anchor="end">scores/s</text>')
    labels = []
    for name, last, colour in THEIRS:
        svg.append(f'<path d="M{x(1):.1f} {y(last / 16):.1f}L{x(16):.1f} {y(last):.1f}" stroke="{colour}" stroke-dasharray="4 4"/><circle cx="{x(16):.1f}" cy="{y(last):.1f}" r="4" fill="{colour}"/>')
        labels.append((y(last), f'{name}: {number(last)} (theirs)', colour))
    for name, points, colour in SOCKETS + measured():
        svg.append(f'<polyline fill="none" stroke="{colour}" points="{" ".join(f"{x(g):.1f},{y(v):.1f}" for g, v in points)}"/>')
        svg += [f'<circle cx="{x(g):.1f}" cy="{y(v):.1f}" r="4" fill="{colour}"><title>{name}: {number(v)}</title></circle>' for g, v in points]
        labels.append((y(points[-1][1]), f'{name}: ' + ', '.join(number(v) for _, v in points), colour))
    at = 0.0
    for where, text, colour in sorted(labels):
        at = max(where + 4, at + 15)
        svg.append(f'<text x="{RIGHT + 8}" y="{at:.1f}" font-size="11" fill="{colour}">{text}</text>')
    svg.append(f'<text x="{LEFT}" y="{HEIGHT - 6}" font-size="11" fill="#777">theirs: figures 13 and 9, 4 GPUs a host; dashed: nearly linear, as their text says. SVD-SST: w = 320, r = 12</text></svg>')
    return '\n'.join(svg) + '\n'


if __name__ == '__main__':
    (RESULTS / 'cluster-nodes.svg').write_text(draw(), encoding='utf-8')
