#!/usr/bin/env python3
"""Measures whether alerts are as rare as their severity promises, on recordings without labels: severity_unlabelled.py HANKEL KEYS FILE.csv...

Every alert counts as false, so the true rate is at most this. Prints for each severity the share of the blocks of 40 points with
an alert of that severity or more, beside the promised 2 x 10^-severity. Each file's columns are sensors."""
import collections
import json
import subprocess
import sys

BLOCK, SEVERITIES = 40, (1.5, 2, 2.5, 3, 3.5, 4)


def blocks(hankel, keys, path):
    """The number of blocks of points from the first score on, and the greatest severity of the alerts raised in each block that has any."""
    out = subprocess.run([hankel, 'replay', '--backend', 'cpu', '--detector', keys, '--format', 'jsonl', path], check=True, capture_output=True, text=True)
    points, raised, worst = collections.Counter(), {}, collections.defaultdict(float)
    for line in out.stdout.splitlines():
        row = json.loads(line)
        if 'event' not in row:
            points[row['sensor']] += row['sensor'] in points or row.get('score') is not None
            continue
        if row['event'] == 'raised':
            raised[row['id']] = row['sensor'], points[row['sensor']] // BLOCK
        if row['event'] != 'notice' and row['id'] in raised:
            place = raised[row['id']]
            worst[place] = max(worst[place], row['severity'])
    return sum(n // BLOCK for n in points.values()), list(worst.values())


def main():
    """Prints a line a file, and the sum."""
    hankel, keys, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    print(f'{keys}\n{"blocks":>40}' + ''.join(f'{s:>10}' for s in SEVERITIES))
    print(f'{"promised":>40}' + ''.join(f'{2 * 10 ** -s:>10.5f}' for s in SEVERITIES))
    n, worst = 0, []
    for path in files:
        of_file, alerts = blocks(hankel, keys, path)
        n, worst = n + of_file, worst + alerts
        print(f'{path.rsplit("/", 1)[-1][:30]:<32}{of_file:>8}' + ''.join(f'{sum(a >= s for a in alerts) / of_file:>10.5f}' for s in SEVERITIES))
    print(f'{"all":<32}{n:>8}' + ''.join(f'{sum(a >= s for a in worst) / n:>10.5f}' for s in SEVERITIES))


if __name__ == '__main__':
    main()
