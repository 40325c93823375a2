#!/usr/bin/env python3
"""Draws tests/data/storm.svg: the alerts of `hankel replay` for twelve simulated stations in a storm, during which one begins to read
too much, alone and as a field.

    tests/bench/scripts/storm.py [OUT.svg]     with HANKEL (default build/hankel)"""
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
HANKEL = os.environ.get('HANKEL', str(ROOT / 'build/hankel'))
N, ROWS, STEP, BEGIN = 12, 2592, 600, 1767225600     # 18 days, every 10 minutes
STORM, FAULT, FAULTY, BIAS = 2230, 2318, 7, 1.2      # row from which this station reads so much too high
SHOWN = 2060                                         # row with which the picture begins
NAMES = [f'station/{i + 1:02d}' for i in range(N)]
DETECTOR = 'algorithm=shift,window=32'
LEFT, RIGHT, WIDTH, HEIGHT = 56, 984, 1000, 520


def readings():
    """The daily cycle, weather that all stations share, a storm in gusts that lowers the temperature by 9 degrees, and
    noise of each station."""
    rng, weather, gust, out = random.Random(11), 0.0, 0.0, []
    gain, offset = [1 + 0.08 * rng.gauss(0, 1) for _ in range(N)], [0.8 * rng.gauss(0, 1) for _ in range(N)]
    for t in range(ROWS):
        weather = 0.995 * weather + 0.12 * rng.gauss(0, 1)
        storm = 0.0
        if t >= STORM:
            gust = 0.9 * gust + 0.9 * rng.gauss(0, 1)
            storm = -9 * (1 - math.exp((STORM - t) / 8)) * math.exp((STORM - t) / 260) + gust * math.exp((STORM - t) / 120)
        shared = 4 * math.sin(2 * math.pi * t / 144) + weather + storm
        out.append([14 + offset[i] + gain[i] * shared + 0.25 * rng.gauss(0, 1) + (BIAS if i == FAULTY and t >= FAULT else 0) for i in range(N)])
    return out


def replay(table, *field):
    run = subprocess.run([HANKEL, 'replay', *field, '--detector', DETECTOR, '--format', 'jsonl', table], capture_output=True, text=True, check=True)
    items = [json.loads(line) for line in run.stdout.splitlines()]
    return items, [e for e in items if e.get('event') == 'raised' and e['time'] >= (BEGIN + SHOWN * STEP) * 10**9]


def path(points, low, high, top, bottom):
    x = lambda row: LEFT + (RIGHT - LEFT) * (row - SHOWN) / (ROWS - 1 - SHOWN)
    return 'M' + 'L'.join(f'{x(row):.1f} {bottom - (bottom - top) * (v - low) / (high - low):.1f}' for row, v in points)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else ROOT / 'tests/data/storm.svg'
    values = readings()
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
        f.write('time,' + ','.join(NAMES) + '\n' + ''.join(f'{BEGIN + t * STEP},' + ','.join(f'{v:.3f}' for v in row) + '\n' for t, row in enumerate(values)))
        f.flush()
        _, alone = replay(f.name)
        items, field = replay(f.name, '--field', f'operator=residual,neighbours=auto,q=5,interval={STEP}s')
    rows = {n: [] for n in NAMES}
    for i in items:
        row = (i['time'] // 10**9 - BEGIN) // STEP if 'value' in i else -1
        if row >= SHOWN and i['value'] is not None:
            rows[i['sensor'].removesuffix('#residual')].append((row, i['value']))
    grave = [e for e in field if not e.get('secondary')]
    at = lambda e: LEFT + (RIGHT - LEFT) * ((e['time'] / 1e9 - BEGIN) / STEP - SHOWN) / (ROWS - 1 - SHOWN)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" font-family="Helvetica,Arial,sans-serif" font-size="13" fill="#333">',
           '<title>twelve simulated stations in a storm: readings, residuals and alerts</title>', f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="28" font-size="16" font-weight="bold">12 stations in a storm (simulated), temperature every 10 minutes</text>',
           f'<text x="{RIGHT}" y="46" text-anchor="end" fill="#777">{NAMES[FAULTY]} reads {BIAS} too much from the dashed line on</text>']
    lows = [v for row in values[SHOWN:] for v in row]
    panels = ((50, 230, min(lows), max(lows), {n: [(t, values[t][i]) for t in range(SHOWN, ROWS)] for i, n in enumerate(NAMES)}, alone,
               f'each alone: {len(alone)} alerts, of {len({e["sensor"] for e in alone})} stations'),
              (290, 470, -2.5, 2.5, rows, field, f'less what the others say (#residual): {len(grave)} {"alert" if len(grave) == 1 else "alerts"} to look at, {len(field) - len(grave)} secondary'))
    for top, bottom, low, high, series, alerts, said in panels:
        svg.append(f'<text x="{LEFT}" y="{top - 4}" fill="#777">{said}</text><rect x="{LEFT}" y="{top}" width="{RIGHT - LEFT}" height="{bottom - top}" fill="none" stroke="#e4e4e4"/>')
        for v in (low, (low + high) / 2, high):
            svg.append(f'<text x="{LEFT - 6}" y="{bottom - (bottom - top) * (v - low) / (high - low) + 4:.1f}" text-anchor="end" fill="#777">{v:.1f}</text>')
        for n in sorted(NAMES, key=lambda n: n == NAMES[FAULTY]):
            hot = n == NAMES[FAULTY]
            points = [(t, min(max(v, low), high)) for t, v in series[n][:: 1 if hot else 2]]
            svg.append(f'<path d="{path(points, low, high, top, bottom)}" fill="none" stroke="{"#d62728" if hot else "#9db4cf"}" stroke-width="{1.4 if hot else 0.8}"/>')
        x = LEFT + (RIGHT - LEFT) * (FAULT - SHOWN) / (ROWS - 1 - SHOWN)
        svg.append(f'<path d="M{x:.1f} {top}V{bottom}" stroke="#b02020" stroke-dasharray="4 4"/>')
        for e in alerts:
            colour = '#9db4cf' if e.get('secondary') else '#d62728' if e['sensor'].startswith(NAMES[FAULTY]) else '#1f4e8c'
            svg.append(f'<path d="M{at(e) - 5:.1f} {bottom + 13}h10l-5 -9z" fill="{colour}"><title>{e["sensor"]}</title></path>')
    svg.append(f'<text x="{LEFT}" y="{HEIGHT - 14}" fill="#777">triangles: alerts (algorithm = shift, 32 samples); red: of {NAMES[FAULTY]}; pale: secondary, another station is to blame</text></svg>')
    pathlib.Path(out).write_text('\n'.join(svg) + '\n', encoding='utf-8')
    print(f'alone {[(e["sensor"], round(e["severity"], 1)) for e in alone]}\nfield {[(e["sensor"], round(e["severity"], 1), e.get("secondary", False)) for e in field]}')


if __name__ == '__main__':
    main()
