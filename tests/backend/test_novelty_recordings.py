#!/usr/bin/env python3
"""Compares `hankel replay` with algorithm = novelty on whole recordings with the independent model (novelty_model.py).

    test_novelty_recordings.py HANKEL BACKEND

The same events must be raised at the same points; S and the severity of events may differ by 1e-3. TAP on standard output.
"""
import os
import subprocess
import sys

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')
TOLERANCE = 1e-3
ROUNDED = 5e-4  # severities are printed in thousandths


def s_of(score):
    return 2 * score / (1 - score)


def replay(hankel, backend, name, threshold, resident, channels):
    detector = f'algorithm=novelty,resident={resident},channels={channels},alert={threshold / (threshold + 2):.9g}'
    run = subprocess.run([hankel, 'replay', '--backend', backend, '--detector', detector, os.path.join(DATA, name)],
                         capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        raise ValueError(f'exit code {run.returncode}: {run.stderr.strip()}')
    scores, events, severities = [], [], []
    for line in run.stdout.splitlines()[1:]:
        cells = line.split(',')
        if cells[0] == '#novelty':
            continue
        if cells[0] == '#event':
            events.append((len(scores) - 1, cells[3]))
            severities.append(float(cells[-1]))
        else:
            scores.append(s_of(float(cells[-2])) if cells[-2] else None)
    return scores, events, severities


def check(hankel, backend, name, threshold, resident, channels, expected):
    """Returns None, or what is wrong."""
    try:
        scores, events, severities = replay(hankel, backend, name, threshold, resident, channels)
    except ValueError as e:
        return str(e)
    worst = 0.
    for what, index, *rest in expected:
        s, got = rest[what == 'event'], scores[int(index)]
        if got is None or abs(got - float(s)) > TOLERANCE:
            return f'point {index}: S {got}, expected {s}'
        worst = max(worst, abs(got - float(s)))
    wanted = [(int(e[1]), e[2]) for e in expected if e[0] == 'event']
    if events != wanted:
        return f'events {events}, expected {wanted}'
    graver = 0.
    for (index, kind), got, want in zip(events, severities, [float(e[4]) for e in expected if e[0] == 'event']):
        graver = max(graver, abs(got - want))
        if abs(got - want) > TOLERANCE + ROUNDED:
            return f'{kind} at point {index}: severity {got}, expected {want}'
    print(f'# {name}: {len(expected)} scores within {worst:.2g}, {len(events)} events, their severities within {graver:.2g}')
    return None


def main():
    hankel, backend = sys.argv[1:]
    recordings = []
    with open(os.path.join(DATA, 'expected_novelty.txt')) as f:
        for line in f:
            words = line.split()
            if words[0] == 'recording':
                recordings.append((words[1], float(words[2]), int(words[3]), words[4], []))
            elif words[0] != '#':
                recordings[-1][4].append(words)
    if backend == 'cuda':
        trial = subprocess.run([hankel, 'replay', '--backend', 'cuda', os.path.join(DATA, 'CBF.txt')], capture_output=True, text=True, timeout=120)
        if trial.returncode == 1:
            print('1..0 # SKIP ' + trial.stderr.splitlines()[-1])
            return
    print(f'1..{len(recordings)}')
    failed = not recordings
    for number, recording in enumerate(recordings, 1):
        wrong = check(hankel, backend, *recording)
        failed |= wrong is not None
        print(f'{"not " if wrong else ""}ok {number} {recording[0]}, resident {recording[2]}, {recording[3]}')
        if wrong:
            print(f'# {wrong}')
    sys.exit(failed)


if __name__ == '__main__':
    main()
