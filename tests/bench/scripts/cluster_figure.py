#!/usr/bin/env python3
"""Draws tests/bench/results/cluster-nodes.svg: scores a second over the number of GPUs, from cluster-nodes.txt
(cluster_nodes.py) and socket-to-socket.txt, beside figures 9 and 13 of Ueno and Suzumura's paper.

    tests/bench/scripts/cluster_figure.py"""
import json
import math
import pathlib
import statistics

RESULTS = pathlib.Path(__file__).resolve().parents[1] / 'results'
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 440, 76, 520, 28, 380
LOW, HIGH = 1, 9  # powers of 10
# The paper's text gives only the last value of each curve, and says that the curves are nearly linear.
THEIRS = [('IKA-SST over System S', 889000, '#b02020'), ('SVD-SST over System S', 305, '#e08080')]
SOCKETS = [('one daemon, sockets, w = 96', [(1, 124.8e6), (2, 248.8e6), (4, 392e6)], '#1f5fa8'), ('one daemon, sockets, SVD-SST', [(1, 2.0e6)], '#7fa8d8')]


def x(gpus):
    return LEFT + 20 + (RIGHT - LEFT - 40) * math.log2(gpus) / 4


def y(rate):
    return BOTTOM - (BOTTOM - TOP) * (math.log10(rate) - LOW) / (HIGH - LOW)


def measured():
    """Series of cluster-nodes.txt: name, points, colour."""
    series = {}
    for line in (RESULTS / 'cluster-nodes.txt').read_text(encoding='utf-8').splitlines():
        if not line.startswith('{'):
            continue
        r = json.loads(line)
        if r['what'] == 'engine' and r['detector'] in ('ika', 'svd') and r['gpus'] == r['scorers']:
            kind = 'IKA-SST' if r['detector'] == 'ika' else 'SVD-SST'
            broker = f'{r["brokers"]} broker{"s" if r["brokers"] > 1 else ""}' + (f' of {r["cores"]} cores' if r['cores'] else '')
            series.setdefault((f'RabbitMQ, {broker}, {kind}', '#207a3c' if kind == 'IKA-SST' else '#8cc49c'), []).append((r['gpus'], statistics.median(r['rates']['scored'])))
        if r['what'] == 'direct' and r['detector'] == 'ika':
            series.setdefault(('one daemon, sockets, w = 320', '#4a90d9'), []).append((r['gpus'], statistics.median(r['rates']['scored'])))
    return [(name, sorted(points), colour) for (name, colour), points in series.items()]


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
