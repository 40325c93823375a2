#!/usr/bin/env python3
"""Puts faults into a wide recording of like sensors, one sensor at a time, and writes it with their labels, for `hankel evaluate --field`. The
same options give the same files.

    tests/bench/scripts/field_faults.py stations.csv OUT.csv LABELS.json [--size 1.5] [--faults 36] [--rows 336] [--kinds bias,drift,frozen] [--from 0] [--of ROWS]
    hankel evaluate --field interval=1h,q=5 --detector algorithm=shift,window=96 --labels LABELS.json OUT.csv"""
import argparse
import csv
import json
import os
import random

SETTLE = 500  # rows without a fault at the beginning


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('recording')
    parser.add_argument('out')
    parser.add_argument('labels')
    parser.add_argument('--size', type=float, default=1.5, help='of a bias, in units of the recording; a drift reaches twice as much')
    parser.add_argument('--faults', type=int, default=36)
    parser.add_argument('--rows', type=int, default=336, help='of a fault')
    parser.add_argument('--kinds', default='bias,drift,frozen')
    parser.add_argument('--from', type=int, default=0, dest='first', help='row with which the recording begins')
    parser.add_argument('--of', type=int, help='rows of the recording')
    options = parser.parse_args()
    with open(options.recording, newline='', encoding='utf-8') as f:
        head, *rows = csv.reader(f)
    rows = rows[options.first:][:options.of]
    rng, order, kinds, windows = random.Random(5), list(range(1, len(head))), options.kinds.split(','), []
    rng.shuffle(order)
    apart = (len(rows) - SETTLE) // options.faults
    if apart < options.rows:
        parser.error(f'{options.faults} faults of {options.rows} rows do not fit into {len(rows)} rows behind the first {SETTLE}')
    for k in range(options.faults):
        sensor, kind, held = order[k % len(order)], kinds[k % len(kinds)], None
        begin = SETTLE + k * apart + rng.randrange(apart - options.rows + 1)
        for t in range(begin, begin + options.rows):
            if rows[t][sensor] == '':
                continue
            value = float(rows[t][sensor])
            held = value if held is None else held
            value = held if kind == 'frozen' else value + options.size * (1 if kind == 'bias' else 2 * (t - begin) / options.rows)
            rows[t][sensor] = f'{value:.1f}'
        windows.append([rows[begin][0], rows[begin + options.rows - 1][0], head[sensor]])
    with open(options.out, 'w', newline='', encoding='utf-8') as f:
        csv.writer(f, lineterminator='\n').writerows([head, *rows])
    with open(options.labels, 'w', encoding='utf-8') as f:
        f.write('{%s: [\n  %s\n]}\n' % (json.dumps(os.path.basename(options.out)), ',\n  '.join(map(json.dumps, windows))))


if __name__ == '__main__':
    main()
