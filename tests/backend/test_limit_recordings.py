#!/usr/bin/env python3
"""Compares `hankel replay` with algorithm = limit on whole recordings with the independent model (limit_model.py).

    test_limit_recordings.py HANKEL BACKEND

The same events must be raised at the same points. The times at which the limit is reached may differ by a thousandth of their distance. The
number of scores must be the same, and their mean and maximum within rounding. Also, the first alert of each of the three ageing servers
must be raised at least 20 hours, and less than three days, before the level remains at the limit. TAP on standard output."""
import csv
import os
import subprocess
import sys
import tempfile

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')
HOUR = 3600
AGEING = ('gpt-neo-125m', 'opt-125m', 'pythia-160m')


def column_of(recording, column, folder):
    """Writes a file with the times and this column only."""
    path = os.path.join(folder, 'one.csv')
    with open(os.path.join(DATA, recording)) as f, open(path, 'w') as out:
        rows = list(csv.DictReader(f))
        time = 'time' if 'time' in rows[0] else 'timestamp'
        out.write(f'time,{column}\n')
        out.writelines(f'{row[time]},{row[column]}\n' for row in rows)
    return path


def replay(hankel, backend, path, keys):
    """Events as [index of the point, its time (s), kind, limits' times (s)], and scores."""
    run = subprocess.run([hankel, 'replay', '--backend', backend, '--detector', f'algorithm=limit,{keys}', path], capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        raise ValueError(f'exit code {run.returncode}: {run.stderr.strip()}')
    events, scores, points, time = [], [], -1, 0
    for cells in csv.reader(run.stdout.splitlines()[1:]):
        if cells[0] == '#event':
            events.append([points, time / 1e9, cells[3], ()])
        elif cells[0] == '#limit':
            events[-1][3] = tuple(float(t) / 1e9 if t else None for t in (cells[4], cells[5], cells[6]))
        else:
            points, time = points + 1, int(cells[1])
            scores += [float(cells[3])] if cells[3] else []
    return events, scores


def same(event, wanted):
    """Returns None, or what is wrong."""
    index, kind, *times = wanted.split(':')
    if (event[0], event[2]) != (int(index), kind):
        return f'{event[2]} at {event[0]}, expected {wanted}'
    for got, want in zip(event[3], times):
        if (got is None) != (want == 'never') or (got and abs(got - float(want)) > 2 + 1e-3 * abs(float(want) - event[1])):
            return f'point {index}: {got}, expected {want}'
    return None if len(times) == len(event[3]) or kind == 'cleared' else f'point {index} says nothing of a limit'


def check(hankel, backend, line, folder):
    recording, column, keys, expected, numbers = (part.strip() for part in line.split('|'))
    events, scores = replay(hankel, backend, column_of(recording, column, folder), keys)
    wanted = expected.split()
    if len(events) != len(wanted):
        return f'{len(events)} events, expected {len(wanted)}'
    for event, text in zip(events, wanted):
        wrong = same(event, text)
        if wrong:
            return wrong
    n, mean, largest = numbers.split()
    got = sum(scores) / max(len(scores), 1)
    if len(scores) != int(n) or abs(got - float(mean)) > 2e-5 or abs(max(scores) - float(largest)) > 2e-4:
        return f'{len(scores)} scores, {got:.7f} on average, {max(scores):.7f} at most; the model says {numbers}'
    print(f'# {len(events)} events, mean within {abs(got - float(mean)):.2g}')
    return None


def ahead(hankel, backend, name, folder):
    """Takes the level at 80 % of a server's recording as the limit; returns how long before it the first alert was raised."""
    path = column_of(f'ageing-{name}.csv', 'used_memory', folder)
    with open(os.path.join(DATA, 'expected_limit.txt')) as f:
        keys = next(line for line in f if line.startswith(f'ageing-{name}.csv | used_memory')).split('|')[2].strip()
    events, _ = replay(hankel, backend, path, keys)
    with open(path) as f:
        n = sum(1 for _ in f) - 1
    first = events[0]
    at = first[1] + (0.8 * n - first[0]) * 60
    hours = (at - first[1]) / HOUR
    print(f'# {name}: {hours:.1f} h ahead, said {(first[3][1] - first[1]) / HOUR:.1f} h ({(first[3][0] - first[1]) / HOUR:.1f} to {(first[3][2] - first[1]) / HOUR:.1f})')
    return None if 20 <= hours <= 72 else f'{hours} hours ahead'


def main():
    hankel, backend = sys.argv[1:]
    if backend == 'cuda':
        trial = subprocess.run([hankel, 'replay', '--backend', 'cuda', os.path.join(DATA, 'CBF.txt')], capture_output=True, text=True, timeout=120)
        if trial.returncode == 1:
            print('1..0 # SKIP ' + trial.stderr.splitlines()[-1])
            return
    with open(os.path.join(DATA, 'expected_limit.txt')) as f:
        lines = [line for line in f if not line.startswith('#')]
    failed = not lines
    print(f'1..{len(lines) + len(AGEING)}')
    with tempfile.TemporaryDirectory() as folder:
        todo = [(line.split('|')[0] + '|' + '|'.join(line.split('|')[1:3]), lambda line=line: check(hankel, backend, line, folder)) for line in lines]
        todo += [(f'{name} is told of in time', lambda name=name: ahead(hankel, backend, name, folder)) for name in AGEING]
        for number, (what, test) in enumerate(todo, 1):
            try:
                wrong = test()
            except (ValueError, IndexError, TypeError) as e:
                wrong = f'{type(e).__name__}: {e}'
            failed |= wrong is not None
            print(f'{"not " if wrong else ""}ok {number} {what}')
            if wrong:
                print(f'# {wrong}')
    sys.exit(failed)


if __name__ == '__main__':
    main()
