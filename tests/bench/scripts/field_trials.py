#!/usr/bin/env python3
"""Cuts pieces out of a wide recording of like sensors and puts one fault near the end of each, so that no fault is in what a field has learned before
another. Writes a folder for `hankel evaluate --field`. What is made of a recording depends on the options alone.

    tests/bench/scripts/field_trials.py stations.csv FOLDER [--kind bias|drift|frozen] [--size 1.5] [--trials 60] [--rows 336] [--piece 4000] [--from TIME] [--until TIME] [--sensors A,B]
    hankel evaluate --brief --field interval=1h,q=5 --detector algorithm=shift,window=96 FOLDER"""
import argparse
import csv
import json
import pathlib
import random


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('recording')
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--kind', choices=('bias', 'drift', 'frozen'), default='bias')
    parser.add_argument('--size', type=float, default=1.5, help='of a bias, in units of the recording; a drift reaches twice as much')
    parser.add_argument('--trials', type=int, default=60)
    parser.add_argument('--rows', type=int, default=336, help='of a fault')
    parser.add_argument('--piece', type=int, default=4000, help='rows of a piece')
    parser.add_argument('--from', default='', dest='first', help='take the rows from this time on only')
    parser.add_argument('--sensors', help='put faults into these only, separated by commas')
    parser.add_argument('--until', default='9999', help='take the rows before this time only, written as in the recording')
    options = parser.parse_args()
    with open(options.recording, newline='', encoding='utf-8') as f:
        head, *rows = csv.reader(f)
    rows = [row for row in rows if options.first <= row[0] < options.until]
    sensors = [head.index(name) for name in options.sensors.split(',')] if options.sensors else range(1, len(head))
    if len(rows) <= options.piece:
        parser.error(f'{len(rows)} rows do not fill a piece of {options.piece} rows')
    rng, windows, nab = random.Random(5), {}, options.folder / 'nab'
    nab.mkdir(parents=True)  # a new folder: pieces of other faults would be judged with these
    for k in range(options.trials):
        sensor, first = sensors[k % len(sensors)], rng.randrange(0, len(rows) - options.piece)
        piece, held = [row[:] for row in rows[first:first + options.piece]], None
        begin = options.piece - options.rows - rng.randrange(24, 200)
        for t, row in enumerate(piece[begin:begin + options.rows]):
            if row[sensor] == '':
                continue
            value = float(row[sensor])
            held = value if held is None else held
            value = held if options.kind == 'frozen' else value + options.size * (1 if options.kind == 'bias' else 2 * t / options.rows)
            row[sensor] = f'{value:.1f}'
        name = f'trial{k:03d}.csv'
        windows[name] = [[piece[begin][0], piece[begin + options.rows - 1][0], head[sensor]]]
        with open(nab / name, 'w', newline='', encoding='utf-8') as f:
            csv.writer(f, lineterminator='\n').writerows([head, *piece])
    (nab / 'windows.json').write_text(json.dumps(windows, indent=1) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
