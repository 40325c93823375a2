#!/usr/bin/env python3
"""Prints a table of the objects that `hankel bench --json` writes, read from standard input, one a line."""
import json
import sys

COLUMNS = '{:>4} {:>5} {:>9} {:>12} {:>11} {:>8} {:>17} {:>15}'
print(COLUMNS.format('', 'w', 'sensors', 'GB resident', 'M scores/s', 'TFLOP/s', 'a tick alone, ms', 'bytes up, down'))
for line in sys.stdin:
    if line.startswith('{'):
        r = json.loads(line)
        tflops = '-' if r['useful_tflops'] is None else f'{r["useful_tflops"]:.1f}'
        print(COLUMNS.format(r['algorithm'], r['window'], r['sensors'], f'{r["memory_bytes"] / 1e9:.1f}', f'{r["scores_per_s"] / 1e6:.2f}', tflops,
                             f'{r["p50_us"] / 1e3:.2f}', f'{r["bytes_up"]:.0f}, {r["bytes_down"]:.2f}'))
