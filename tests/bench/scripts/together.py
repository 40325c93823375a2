#!/usr/bin/env python3
"""Measures which labels several detectors find together, and what each adds. Prints for every collection of a folder (see `hankel
evaluate --help`) the alerts of each detector, its false ones, the labels that it hits, those that no other detector hits, and its
right and false alerts by severity; then the labels that pairs of detectors, and all together, hit. An alert hits a label as in
`hankel evaluate`: its first instant lies in the label, widened by the detector's window.

    tests/bench/scripts/together.py HANKEL FOLDER NAME=KEYS...      KEYS: as after --detector

One more hit may be chance, which `hankel evaluate` measures."""
import bisect
import csv
import datetime
import itertools
import json
import os
import subprocess
import sys

REACH = {'ika': 96, 'graph': 20, 'shift': 20, 'novelty': 50}  # default windows
SEVERITIES = (2, 2.5, 3)


def nanoseconds(text):
    return int(datetime.datetime.fromisoformat(text[:19]).replace(tzinfo=datetime.timezone.utc).timestamp()) * 10**9


def recordings(folder):
    """(collection, path, function from a sensor's times to its labels as (first, last) indices)"""
    def windows(pairs):
        return lambda times: [tuple(bisect.bisect_left(times, nanoseconds(end)) for end in pair) for pair in pairs]

    def instants(at):
        return lambda times: [(i, i) for i in at]

    nab, tssb, skab = (os.path.join(folder, name) for name in ('nab', 'tssb', 'skab'))
    if os.path.isdir(nab):
        with open(os.path.join(nab, 'windows.json')) as file:
            for name, pairs in json.load(file).items():
                yield 'nab', os.path.join(nab, name), windows(pairs)
    if os.path.isdir(tssb):
        with open(os.path.join(tssb, 'desc.txt')) as file:
            for name, _, *changes in csv.reader(file):
                yield 'tssb', os.path.join(tssb, name + '.txt'), instants([int(c) for c in changes])
    for name in sorted(os.listdir(skab)) if os.path.isdir(skab) else []:
        with open(os.path.join(skab, name)) as file:
            rows = list(csv.DictReader(file, delimiter=';'))
        yield 'skab', os.path.join(skab, name), instants([i for i, row in enumerate(rows) if float(row['changepoint']) == 1])


def alerts(hankel, path, keys):
    """For each sensor its times, and its alerts as [instant, severity]."""
    run = subprocess.run([hankel, 'replay', '--backend', 'cpu', '--format', 'jsonl', '--detector', keys, path], capture_output=True, text=True, check=True)
    times, found = {}, {}
    for item in map(json.loads, run.stdout.splitlines()):
        sensor = item['sensor']
        if item.get('event') == 'raised':
            found.setdefault(sensor, []).append([item['instant'], item['severity']])
        elif 'event' in item:
            found[sensor][-1][1] = max(found[sensor][-1][1], item['severity'])
        elif item['state'] not in ('late', 'rejected'):
            times.setdefault(sensor, []).append(item['time'])
    return {s: (t, found.get(s, [])) for s, t in times.items() if s.split('.')[-1] not in ('anomaly', 'changepoint')}


def judged(hankel, path, labels, keys):
    """For each alert its severity and the labels that it hits."""
    reach = REACH[dict(item.split('=') for item in keys.split(','))['algorithm']]
    for sensor, (times, found) in alerts(hankel, path, keys).items():
        marked = labels(times)
        for instant, severity in found:
            at = min(bisect.bisect_left(times, instant), len(times) - 1)
            yield severity, {(path, sensor, i) for i, (first, last) in enumerate(marked) if first - reach <= at <= last + reach}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    hankel, folder, *detectors = sys.argv[1:]
    detectors = dict(text.split('=', 1) for text in detectors)
    for collection, items in itertools.groupby(recordings(folder), key=lambda item: item[0]):
        rows = {name: [] for name in detectors}
        for _, path, labels in items:
            for name, keys in detectors.items():
                rows[name].extend(judged(hankel, path, labels, keys))
        hits = {name: set().union(*(hit for _, hit in rows[name])) for name in detectors}
        print(f'{collection:14}{"alerts":>8}{"false":>8}{"hits":>8}{"alone":>8}' + ''.join(f'{f"right/false {s}+":>18}' for s in SEVERITIES))
        for name, mine in rows.items():
            others = set().union(*(hits[other] for other in detectors if other != name))
            print(f'{name:14}{len(mine):8}{sum(not hit for _, hit in mine):8}{len(hits[name]):8}{len(hits[name] - others):8}' + ''.join(
                f'{sum(s >= least and bool(hit) for s, hit in mine):>13} /{sum(s >= least and not hit for s, hit in mine):3}' for least in SEVERITIES))
        print('together: ' + ', '.join(f'{a} and {b} {len(hits[a] | hits[b])}' for a, b in itertools.combinations(detectors, 2)) +
              f'; all {len(set().union(*hits.values()))}\n')


if __name__ == '__main__':
    main()
