#!/usr/bin/env python3
"""Sends the recording of scripts/run through the daemon's sockets, once with each of two backends. Exits with 0 if states and events
are the same and scores differ by rounding alone.

    tests/bench/scripts/daemon_backends.py [--build DIR] [BACKEND BACKEND]    (default: cpu cuda)"""
import argparse
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, 'scripts'))
import demo  # noqa: E402

SCORE = 2e-4  # most that a score may differ by
# The fields of an event but its score; levels are means of samples and may differ in the last digits.
EXACT = ('event', 'id', 'sensor', 'time', 'from', 'instant')


def seen_by(backend, build):
    plain = demo.CONFIGURATION
    demo.CONFIGURATION = f'[daemon]\nbackend = {backend}\n{plain}'
    try:
        seen = demo.run(build)
    finally:
        demo.CONFIGURATION = plain
    print(f'{backend}: {len(seen["results"])} results, {sum(r["score"] is not None for r in seen["results"])} scores, '
          f'{len(seen["events"])} events')
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('backends', nargs='*', default=['cpu', 'cuda'])
    options = parser.parse_args()
    one, other = (seen_by(backend, options.build) for backend in options.backends)
    wrong, worst, total, scores = [], 0.0, 0.0, 0
    for i, (a, b) in enumerate(zip(one['results'], other['results'])):
        if any(a[key] != b[key] for key in ('sensor', 'time', 'value', 'state')) or (a['score'] is None) != (b['score'] is None):
            wrong.append(f'point {i}: {a} and {b}')
        elif a['score'] is not None:
            off = abs(a['score'] - b['score'])
            worst, total, scores = max(worst, off), total + off, scores + 1
    if len(one['events']) != len(other['events']):
        wrong.append(f'{len(one["events"])} and {len(other["events"])} events')
    for a, b in zip(one['events'], other['events']):
        if any(a.get(key) != b.get(key) for key in EXACT) or abs(a['score'] - b['score']) > SCORE:
            wrong.append(f'event: {a} and {b}')
    print(f'scores differ by {total / max(scores, 1):.2g} on average, {worst:.2g} at most; '
          f'{len(one["events"])} events {"are the same" if not wrong else "compared"}')
    if worst > SCORE:
        wrong.append(f'a score differs by {worst:.2g}')
    for line in wrong[:10]:
        print(line)
    return 1 if wrong or not scores or not one['events'] else 0


if __name__ == '__main__':
    sys.exit(main())
