#!/usr/bin/env python3
"""Draws tests/data/storm.svg: the air pressure at seven real stations, tests/data/stations.csv, while one of them reads 1 hPa too much for two weeks, and the
alerts of `hankel replay` for each station alone and for the field.

    tests/bench/scripts/storm.py [OUT.svg]     with HANKEL (default build/hankel)"""
import calendar
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
HANKEL = os.environ.get('HANKEL', str(ROOT / 'build/hankel'))
DATA = ROOT / 'tests/data'
DETECTOR, FIELD = 'algorithm=novelty', 'interval=1h,q=5'
STEP, SHOWN = 3600, '2014-08-27 00:00:00'  # seconds of a row; where the picture begins
LEFT, RIGHT, WIDTH, HEIGHT = 56, 984, 1000, 520


def seconds(text):
    return calendar.timegm(time.strptime(text, '%Y-%m-%d %H:%M:%S'))


def recording():
    """(time, value) of each station, and the last fault: its begin and end, and its station."""
    with open(DATA / 'stations.csv', newline='', encoding='utf-8') as f:
        head, *rows = csv.reader(f)
    series = {name: [(seconds(row[0]), float(row[k])) for row in rows if row[k]] for k, name in enumerate(head) if k}
    begin, end, faulty = json.loads((DATA / 'stations.json').read_text(encoding='utf-8'))['stations.csv'][-1]
    return series, (seconds(begin), seconds(end)), faulty


def replay(*field):
    """What `hankel replay` writes of the recording, from SHOWN on: results and alerts."""
    command = [HANKEL, 'replay', *field, '--detector', DETECTOR, '--format', 'jsonl', DATA / 'stations.csv']
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    items = [item for item in map(json.loads, run.stdout.splitlines()) if item['time'] >= seconds(SHOWN) * 10**9]
    return [i for i in items if i.get('value') is not None], [i for i in items if i.get('event') == 'raised']


def panel(top, bottom, series, alerts, faulty, fault, said):
    """Lines of the SVG for the series of all stations, the faulty one on top, with their alerts below."""
    first, last = seconds(SHOWN), max(points[-1][0] for points in series.values())
    values = [v for points in series.values() for t, v in points if t >= first]
    low, high = min(values), max(values)
    x = lambda t: LEFT + (RIGHT - LEFT) * (t - first) / (last - first)
    y = lambda v: bottom - (bottom - top) * (v - low) / (high - low)
    svg = [f'<text x="{LEFT}" y="{top - 4}" fill="#777">{said}</text><rect x="{LEFT}" y="{top}" width="{RIGHT - LEFT}" height="{bottom - top}" fill="none" stroke="#e4e4e4"/>']
    for v in (low, (low + high) / 2, high):
        svg.append(f'<text x="{LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end" fill="#777">{v:.1f}</text>')
    for name in sorted(series, key=lambda name: name == faulty):
        line = 'L'.join(f'{x(t):.1f} {y(v):.1f}' for t, v in series[name] if t >= first)
        hot = name == faulty
        svg.append(f'<path d="M{line}" fill="none" stroke="{"#d62728" if hot else "#9db4cf"}" stroke-width="{1.4 if hot else 0.8}"/>')
    svg += [f'<path d="M{x(t):.1f} {top}V{bottom}" stroke="#b02020" stroke-dasharray="4 4"/>' for t in fault]
    places = []
    for e in alerts:
        sensor, at = e['sensor'], x(e['time'] / 1e9)
        place = bottom + 13 + 6 * sum(abs(at - p) < 8 for p in places)  # those of a time below each other
        places.append(at)
        colour = '#9db4cf' if e.get('secondary') else '#d62728' if sensor.startswith(faulty) else '#1f4e8c'
        svg.append(f'<path d="M{at - 5:.1f} {place}h10l-5 -9z" fill="{colour}"><title>{sensor}</title></path>')
    return svg


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else DATA / 'storm.svg'
    readings, fault, faulty = recording()
    _, alone = replay()
    results, field = replay('--field', FIELD)
    residuals = {}
    for i in results:
        residuals.setdefault(i['sensor'].removesuffix('#residual'), []).append((i['time'] // 10**9, i['value']))
    secondary = sum(bool(e.get('secondary')) for e in field)
    stations = len({e['sensor'] for e in alone})
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" font-family="Helvetica,Arial,sans-serif" font-size="13" fill="#333">',
           '<title>air pressure at seven stations: readings, residuals and alerts</title>', f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="28" font-size="16" font-weight="bold">Air pressure at seven stations, hPa, {SHOWN[:10]} to {time.strftime("%m-%d", time.gmtime(max(p[-1][0] for p in readings.values())))}</text>',
           f'<text x="{RIGHT}" y="46" text-anchor="end" fill="#777">{faulty} reads 1 hPa too much between the dashed lines</text>',
           *panel(50, 230, readings, alone, faulty, fault, f'each alone: {len(alone)} alerts, of {stations} stations'),
           *panel(290, 470, residuals, field, faulty, fault, f'less what the others say (#residual): {len(field) - secondary} {"alert" if len(field) - secondary == 1 else "alerts"} to look at, {secondary} secondary'),
           f'<text x="{LEFT}" y="{HEIGHT - 14}" fill="#777">triangles: alerts (algorithm = novelty); red: of {faulty}; pale: secondary, another station is to blame</text></svg>']
    pathlib.Path(out).write_text('\n'.join(svg) + '\n', encoding='utf-8')
    print(*(f'{kind} {[(e["sensor"], round(e["severity"], 1), e.get("secondary", False)) for e in alerts]}' for kind, alerts in (('alone', alone), ('field', field))), sep='\n')


if __name__ == '__main__':
    main()
