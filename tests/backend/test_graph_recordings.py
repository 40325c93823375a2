#!/usr/bin/env python3
"""Compares `hankel replay` with algorithm = graph and shift on whole recordings with the independent models (graph_model.py,
shift_model.py).

    test_graph_recordings.py HANKEL BACKEND

Alerts must be raised on the same points with the same instants. The number of scores must be the same, and their mean and
maximum within rounding. TAP on standard output."""
import csv
import os
import subprocess
import sys
import tempfile

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')
TOLERANCE = {'reference': 1e-6, 'cpu': 5e-5, 'cuda': 5e-5}  # of the mean: in single precision a tie of two neighbours may fall otherwise, as in the last recording


def samples(recording, folder):
    """Writes the recording as bare numbers, which count as one interval apart, as in the model."""
    if recording.endswith('.txt'):
        return os.path.join(DATA, recording)
    path = os.path.join(folder, 'samples.txt')
    with open(os.path.join(DATA, recording)) as f, open(path, 'w') as out:
        out.writelines(row['value'] + '\n' for row in csv.DictReader(f))
    return path


def check(hankel, backend, algorithm, line, folder):
    """Returns None, or what is wrong."""
    recording, keys, alerts, numbers = (part.strip() for part in line.split('|'))
    run = subprocess.run([hankel, 'replay', '--backend', backend, '--detector', f'algorithm={algorithm},{keys}', samples(recording, folder)],
                         capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        return f'exit code {run.returncode}: {run.stderr.strip()}'
    found, scores = [], []
    for cells in (row.split(',') for row in run.stdout.splitlines()[1:]):
        if cells[0] == '#event':
            if cells[3] == 'raised':
                found.append(f'{int(cells[4]) // 10**9}:{int(cells[5]) // 10**9}')
        elif cells[3]:
            scores.append(float(cells[3]))
    if found != alerts.split():
        return f'alerts {" ".join(found)}; the model says {alerts}'
    n, mean, largest = numbers.split()
    if len(scores) != int(n):
        return f'{len(scores)} scores; the model says {n}'
    got_mean = sum(scores) / len(scores)
    if abs(got_mean - float(mean)) > TOLERANCE[backend] or abs(max(scores) - float(largest)) > 10 * TOLERANCE[backend]:
        return f'scores {got_mean:.7f} on average, {max(scores):.7f} at most; the model says {mean} and {largest}'
    print(f'# mean within {abs(got_mean - float(mean)):.2g}, largest within {abs(max(scores) - float(largest)):.2g}')
    return None


def main():
    hankel, backend = sys.argv[1:]
    if backend == 'cuda':
        trial = subprocess.run([hankel, 'replay', '--backend', 'cuda', os.path.join(DATA, 'CBF.txt')], capture_output=True, text=True, timeout=120)
        if trial.returncode == 1:
            print('1..0 # SKIP ' + trial.stderr.splitlines()[-1])
            return
    lines = []
    for algorithm in ('graph', 'shift'):
        with open(os.path.join(DATA, f'expected_{algorithm}.txt')) as f:
            lines += [(algorithm, line.strip()) for line in f if not line.startswith('#')]
    print(f'1..{len(lines)}')
    failed = not lines
    with tempfile.TemporaryDirectory() as folder:
        for number, (algorithm, line) in enumerate(lines, 1):
            wrong = check(hankel, backend, algorithm, line, folder)
            failed |= wrong is not None
            print(f'{"not " if wrong else ""}ok {number} {algorithm} {" ".join(line.split()[:3])}')
            if wrong:
                print(f'# {wrong}')
    sys.exit(failed)


if __name__ == '__main__':
    main()
