#!/usr/bin/env python3
"""How far ahead `algorithm = limit` warns, and how often of nothing, by `hankel replay`.

    limit_ahead.py HANKEL AGEING NAB > tests/bench/results/limit.txt

AGEING: folder with ageing-*.csv (tests/data has them). NAB: folder with seven series of the Numenta Anomaly Benchmark, of which tests/data has three.

Ageing servers: the limit is the level (median of two hours) at 80 % of the recording, for memory and for the disk; ahead is how long before that instant the alert was raised. NAB's series fill nothing up: every episode is a false one, unless
you say that a limit which is the level of the series somewhere was indeed near."""
import csv
import datetime
import os
import statistics
import subprocess
import sys
import tempfile

HOUR = 3600


def read(path, column):
    with open(path) as f:
        rows = list(csv.DictReader(f))
    name = 'time' if 'time' in rows[0] else 'timestamp'
    times = [datetime.datetime.fromisoformat(r[name]).replace(tzinfo=datetime.timezone.utc).timestamp() for r in rows]
    return times, [float(r[column]) for r in rows]


def replay(hankel, times, values, keys):
    """Raised events as (time, earliest, reached, latest), in s; how many were corrected."""
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
        f.write('time,x\n' + ''.join(f'{t:.0f},{v!r}\n' for t, v in zip(times, values)))
        f.flush()
        run = subprocess.run([hankel, 'replay', '--backend', 'cpu', '--detector', 'algorithm=limit,' + keys, f.name], capture_output=True, text=True, check=True)
    raised, corrected, kind, at = [], 0, '', 0
    for cells in csv.reader(run.stdout.splitlines()):
        if cells[0] == '#event':
            kind, at = cells[3], int(cells[4]) / 1e9
            corrected += kind == 'corrected'
        elif cells[0] == '#limit' and kind == 'raised':
            raised.append((at, *(int(c) / 1e9 if c else float('inf') for c in cells[4:7])))
    return raised, corrected


def level(times, values, at):
    return statistics.median(v for t, v in zip(times, values) if abs(t - at) < HOUR)


def ageing(hankel, folder):
    print('ageing servers, window 12h, horizon 24h: of the first alert, and of all')
    print(f'{"server":14} {"of":15} {"limit":>12} {"80 % at":>8} {"ahead":>6} {"said":>5} {"from":>5} {"to":>6}  further alerts, h ahead')
    for name in sorted(n for n in os.listdir(folder) if n.startswith('ageing-')):
        for column in ('used_memory', 'used_partition'):
            times, values = read(os.path.join(folder, name), column)
            end = times[0] + 0.8 * (times[-1] - times[0])
            limit = level(times, values, end)
            raised, corrected = replay(hankel, times, values, f'limit={limit:.9g},window=12h,horizon=24h')
            at, earliest, reached, latest = raised[0]
            print(f'{name[7:-4]:14} {column:15} {limit:12.6g} {(end - times[0]) / HOUR:6.1f} h {(end - at) / HOUR:6.1f} {(reached - at) / HOUR:5.1f} {(earliest - at) / HOUR:5.1f} '
                  f'{(latest - at) / HOUR:6.1f}  {" ".join(f"{(end - r[0]) / HOUR:.1f}" for r in raised[1:])}; {corrected} corrections')


def quantile(values, q):
    return sorted(values)[min(int(q * len(values)), len(values) - 1)]


def nab(hankel, folder):
    print('\nNAB, episodes of each of the seven series, in the order of their names; horizon 2 windows; 720: samples of each series')
    print(f'{"window":7} {"limit":26} episodes')
    for window in ('12h', '24h', '48h', '72h', '720', '168h'):
        for what in ('above, level at 80 %', 'above, 99 % of values', 'above, the greatest value', 'below, 1 % of values', 'below, the least value'):
            found = []
            for name in sorted(n for n in os.listdir(folder) if n.endswith('.csv')):
                times, values = read(os.path.join(folder, name), 'value')
                interval = statistics.median(b - a for a, b in zip(times, times[1:]))
                hours = window if window != '720' else f'{720 * interval / HOUR:.0f}h'
                middle = int(0.8 * len(values))
                limit = {'above, level at 80 %': statistics.median(values[middle - 12:middle + 12]), 'above, 99 % of values': quantile(values, 0.99), 'above, the greatest value': max(values),
                         'below, 1 % of values': quantile(values, 0.01), 'below, the least value': min(values)}[what]
                raised, _ = replay(hankel, times, values, f'{"limit" if what.startswith("above") else "lower"}={limit:.9g},window={hours},horizon={2 * int(hours[:-1])}h')
                found.append(len(raised))
            print(f'{window:7} {what:26} {sum(found):4}  {" ".join(map(str, found))}', flush=True)


if __name__ == '__main__':
    ageing(*sys.argv[1:3])
    nab(sys.argv[1], sys.argv[3])
