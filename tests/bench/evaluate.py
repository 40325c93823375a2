#!/usr/bin/env python3
"""Alerts on labelled recordings, beside what as many random alerts would hit. Needs nothing but Python.

    tests/bench/evaluate.py DATA [--hankel build/hankel] [--detector KEYS]... [--brief]

DATA holds nab/ (CSV and windows.json), tssb/ (bare numbers and desc.txt) and skab/ (CSV with an anomaly and a changepoint
column); a set that is not there is left out. Every recording is replayed with the same detector; several --detector give
a table each; --brief prints the sums of each set alone.

What counts. A label is a labelled window (nab) or a change point (tssb; skab: the rows marked as such, for each of the
eight sensors of the rig, whether or not that sensor shows the change, and once more for the rig as a whole). An alert hits
a label when the change instant that it was raised with lies in the label, widened by one detector window on both sides;
a label is hit once, however many alerts fall on it. An alert that hits no label is false. Chance: the labels that as many
alerts at random instants (uniform over the points with a score, seeded, mean of 2,000 draws) would hit. Delay:
from the label's start to the point on which the first alert that hits it was raised, in points, median. Points: those
with a score."""
import argparse
import bisect
import csv
import datetime
import json
import os
import random
import statistics
import subprocess
import sys

DRAWS = 2000


def instant(text):
    when = datetime.datetime.strptime(text[:19], '%Y-%m-%d %H:%M:%S').replace(tzinfo=datetime.timezone.utc)
    return int(when.timestamp()) * 10**9


class Recording:
    """One sensor's points and alerts. Times are ns; indices count points."""

    def __init__(self, name, sensor, labels):
        self.name, self.sensor, self.labels = name, sensor, labels  # labels: (first, last) times
        self.times, self.scored, self.alerts = [], [], []           # alerts: (instant, raised), as indices

    def index(self, time):
        return min(bisect.bisect_left(self.times, time), len(self.times) - 1)

    def judge(self, window, rng):
        labels = [(self.index(first) - window, self.index(last) + window, self.index(first)) for first, last in self.labels]
        hits, delays, false = 0, [], 0
        for low, high, start in labels:
            raised = [at for where, at in self.alerts if low <= where <= high]
            if raised:
                hits += 1
                delays.append(min(raised) - start)
        for where, _ in self.alerts:
            false += not any(low <= where <= high for low, high, _ in labels)
        chance = 0
        if self.alerts and labels and self.scored:
            for _ in range(DRAWS):
                drawn = [rng.choice(self.scored) for _ in self.alerts]
                chance += sum(any(low <= where <= high for where in drawn) for low, high, _ in labels)
            chance /= DRAWS
        return [len(self.scored), len(labels), len(self.alerts), hits, chance, false, delays]


def replay(hankel, detector, path, recordings):
    """Runs one file and fills in the recordings, a dictionary by sensor."""
    command = hankel.split() + ['replay', '--detector', detector]
    if len(recordings) == 1 and path.endswith('.csv'):
        command += ['--column', next(iter(recordings))]
    run = subprocess.run(command + [path], stdout=subprocess.PIPE, text=True, check=True)
    events = []
    for line in run.stdout.splitlines()[1:]:
        fields = line.split(',')
        if fields[0] == '#event':
            if fields[3] == 'raised':
                events.append(fields)
        elif fields[0] in recordings and fields[4] not in ('late', 'rejected'):
            recording = recordings[fields[0]]
            if fields[3]:
                recording.scored.append(len(recording.times))
            recording.times.append(int(fields[1]))
    for fields in events:
        if fields[2] in recordings:
            recording = recordings[fields[2]]
            recording.alerts.append((recording.index(int(fields[5])), recording.index(int(fields[4]))))


def nab(data, hankel, detector):
    with open(os.path.join(data, 'windows.json')) as f:
        windows = json.load(f)
    for name in sorted(windows):
        recording = Recording(name[:-4], 'value', [(instant(first), instant(last)) for first, last in windows[name]])
        replay(hankel, detector, os.path.join(data, name), {'value': recording})
        yield recording


def tssb(data, hankel, detector):
    with open(os.path.join(data, 'desc.txt')) as f:
        rows = [line.strip().split(',') for line in f if line.strip()]
    for name, _, *changes in rows:
        recording = Recording(name, name, [(int(c) * 10**9, int(c) * 10**9) for c in changes])
        by_sensor = {name: recording}
        replay(hankel, detector, os.path.join(data, name + '.txt'), by_sensor)
        if recording.times and recording.times[0] != 0:  # bare numbers, a second apart, wherever they start
            recording.labels = [(a + recording.times[0], b + recording.times[0]) for a, b in recording.labels]
        yield recording


def skab(data, hankel, detector):
    for name in sorted(n for n in os.listdir(data) if n.endswith('.csv')):
        with open(os.path.join(data, name)) as f:
            rows = list(csv.DictReader(f, delimiter=';'))
        labels = [(instant(row['datetime']),) * 2 for row in rows if float(row['changepoint']) == 1]
        sensors = [s for s in rows[0] if s not in ('datetime', 'anomaly', 'changepoint')]
        recordings = {s: Recording(f'{name[:-4]} {s}', s, labels) for s in sensors}
        replay(hankel, detector, os.path.join(data, name), recordings)
        yield from recordings.values()


def together(recordings):
    """The sensors of each file as one recording, with the alerts of all: an operator watches the rig."""
    files = {}
    for one in recordings:
        name = one.name.split()[0]
        if name not in files:
            files[name] = Recording(name, None, one.labels)
            files[name].times, files[name].scored = one.times, one.scored
        files[name].alerts += one.alerts
    return files.values()


def row(name, points, labels, alerts, hits, chance, false, delays):
    delay = f'{statistics.median(delays):.0f}' if delays else '-'
    each = f'{1000 * false / points:.2f}' if points else '-'
    print(f'{name:42} {points:8} {labels:7} {alerts:7} {hits:5} {chance:7.1f} {false:6} {each:>10} {delay:>6}')


def total(judged):
    return [sum(column, []) if isinstance(column[0], list) else sum(column) for column in zip(*judged)]


def table(args, detector):
    keys = dict(item.strip().split('=') for item in detector.split(',') if item.strip())
    window = int(keys.get('window', 96))
    print(f'\n## detector: {detector or "default"}\n')
    print(f'{"recording":42} {"points":>8} {"labels":>7} {"alerts":>7} {"hits":>5} {"chance":>7} {"false":>6} {"false/1000":>10} {"delay":>6}')
    for name, read in ('nab', nab), ('tssb', tssb), ('skab', skab):
        data = os.path.join(args.data, name)
        if not os.path.isdir(data):
            print(f'{name}: not there')
            continue
        rng, recordings = random.Random(1), list(read(data, args.hankel, detector))
        judged = [recording.judge(window, rng) for recording in recordings]
        for recording, numbers in zip(recordings, judged):
            if not args.brief and (name != 'skab' or recording.alerts):
                row(recording.name, *numbers)
        row(f'{name}: all', *total(judged))
        if name == 'skab':
            row('skab: any sensor of the rig', *total([rig.judge(window, rng) for rig in together(recordings)]))



def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('data')
    parser.add_argument('--hankel', default='build/hankel')
    parser.add_argument('--detector', action='append')
    parser.add_argument('--brief', action='store_true')
    args = parser.parse_args()
    for detector in args.detector or ['']:
        table(args, detector)


if __name__ == '__main__':
    sys.exit(main())
