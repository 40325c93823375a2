#!/usr/bin/env python3
"""Whether window and alert of a field's detector that were chosen on one half of a recording hold on the other half. A half is every
other station (all stations stay in the field; faults are put into, and alerts are counted of, one half), or one of two years.

The rule of the choice: of all settings whose shares found are at least those wanted less 0.03 on the one half, the setting with the
fewest false alerts; of equal ones the narrowest window, then the lowest alert. It is judged on the other half once.

    tests/bench/scripts/field_halves.py HANKEL RECORDING FOLDER stations|years [--wanted 0.68,0.69,0.88] [--size 1.5] [--trials 60] [--until TIME]"""
import argparse
import csv
import pathlib
import subprocess
import sys

KINDS = ('bias', 'drift', 'frozen')
GRID = [(window, alert) for window in (96, 128, 192) for alert in ('0.5', '0.6')]
TRIALS = pathlib.Path(__file__).with_name('field_trials.py')


def settings(keys):
    """The window and the alert of a detector's keys."""
    of = dict(key.split('=') for key in keys.split(','))
    return int(of['window']), of['alert']


def evaluate(options, folder):
    """The rows of hankel evaluate for all settings."""
    detectors = [word for window, alert in GRID for word in ('--detector', f'algorithm=shift,window={window},alert={alert}')]
    run = subprocess.run([options.hankel, 'evaluate', '--format', 'csv', '--field', 'interval=1h,q=5', *detectors, folder], stdout=subprocess.PIPE,
                         text=True, check=True)
    return list(csv.DictReader(run.stdout.splitlines()))


def judge(rows, names, sensors):
    """Of each setting: hits, hits by chance, labels, false alerts and points, in the field and of the readings, of some sensors, in the
    pieces with a fault of one of these."""
    found = {}
    for row in rows:
        piece, _, name = row['recording'].partition(' ')
        if not piece.startswith('trial') or name not in sensors or names[int(piece[5:]) % len(names)] not in sensors:
            continue
        sums = found.setdefault(settings(row['detector']), {'labels': 0})
        sums['labels'] += int(row['labels'])
        for side in ('field', 'alone'):
            for what in ('hits', 'chance', 'false', 'points'):
                sums[side, what] = sums.get((side, what), 0) + float(row[f'{side}_{what}'])
        sums['secondary'] = sums.get('secondary', 0) + int(row['field_secondary'])
    return found


def measure(options, name, names, trials, first, until, halves):
    """Of each half, kind and setting what judge returns. halves: sensors by the name of a half."""
    out = {half: {} for half in halves}
    for kind in KINDS:
        folder = options.folder / f'{name}-{kind}'
        subprocess.run([sys.executable, TRIALS, options.recording, folder, '--kind', kind, '--size', str(options.size), '--trials', str(trials), '--from', first,
                        '--until', until], check=True)
        rows = evaluate(options, folder)
        for half, sensors in halves.items():
            out[half][kind] = judge(rows, names, sensors)
    return out


def shares(half, setting, side='field'):
    return [half[kind][setting][side, 'hits'] / half[kind][setting]['labels'] for kind in KINDS]


def false(half, setting, side='field'):
    """False alerts of all kinds, and per 1,000 points."""
    alerts, points = (sum(half[kind][setting][side, what] for kind in KINDS) for what in ('false', 'points'))
    return int(alerts), 1000 * alerts / points


def line(half, setting):
    chance = sum(half[kind][setting]['field', 'chance'] for kind in KINDS) / sum(half[kind][setting]['labels'] for kind in KINDS)
    alerts, rate = false(half, setting)
    alone, alone_rate = false(half, (96, '0.5'), 'alone')
    return (f'{" ".join(f"{x:.2f}" for x in shares(half, setting))}  {chance:.2f}   {alerts:5} {rate:.4f}   {alone:5} {alone_rate:.4f}'
            f'   {sum(half[kind][setting]["secondary"] for kind in KINDS):5}')


def choose(half, wanted):
    good = [s for s in GRID if all(got >= want - 0.03 - 1e-9 for got, want in zip(shares(half, s), wanted))]
    return min(good, key=lambda s: (false(half, s)[0], s)) if good else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('hankel')
    parser.add_argument('recording')
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('split', choices=('stations', 'years'))
    parser.add_argument('--wanted', default='0.68,0.69,0.88', help='shares of bias, drift and frozen sensors')
    parser.add_argument('--size', type=float, default=1.5)
    parser.add_argument('--trials', type=int, default=60)
    parser.add_argument('--until', default='9999')
    options = parser.parse_args()
    wanted = [float(x) for x in options.wanted.split(',')]
    with open(options.recording, newline='', encoding='utf-8') as f:
        head, *rows = csv.reader(f)
    times = [row[0] for row in rows if row[0] < options.until]
    names, middle = head[1:], times[len(times) // 2]
    if options.split == 'stations':
        found = measure(options, 'stations', names, 2 * options.trials, '', options.until, {'odd stations': names[::2], 'even stations': names[1::2]})
    else:
        found = measure(options, 'first', names, options.trials, '', middle, {'first year': names})
        found |= measure(options, 'second', names, options.trials, middle, options.until, {'second year': names})
    print('window alert   bias drift frozen, chance   false alerts: field /1000, readings by 96 0.5, secondary')
    for name, half in found.items():
        print(name)
        for setting in GRID:
            print(f'{setting[0]:6} {setting[1]:5}   {line(half, setting)}')
    for chosen, other in (tuple(found), tuple(found)[::-1]):
        setting = choose(found[chosen], wanted)
        print(f'chosen on {chosen}: {setting}')
        if setting:
            print(f'    there {line(found[chosen], setting)}\n    on {other} {line(found[other], setting)}')


if __name__ == '__main__':
    main()
