#!/usr/bin/env python3
"""An independent model of algorithm = novelty in numpy, in double precision. It wrote tests/data/expected_novelty.txt:

    novelty_model.py >../data/expected_novelty.txt

It follows the definition in cpu/MATHEMATICS.md, not the C code: rings are whole histories here, minima are numpy's. For every recording,
the file has S at every 25th point and at each event, and at events the highest severity since the alert was raised.
test_novelty_recordings.py compares `hankel replay` with it.
"""
import math
import os
import sys

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')
RECORDINGS = [  # file, threshold S, resident, channels
    ('machine_temperature_system_failure.csv', 2.0, 10000, 'all'),
    ('ec2_request_latency_system_failure.csv', 2.0, 10000, 'all'),
    ('ec2_request_latency_system_failure.csv', 1.3, 1000, 'all'),
    ('ec2_request_latency_system_failure.csv', 1.3, 2000, 'value'),
    ('rogue_agent_key_hold.csv', 1.3, 10000, 'all'),
    ('CBF.txt', 1.0, 2000, 'all'),
    ('Lightning2.txt', 1.0, 10000, 'all'),
]
MEANS = (1, 16, 64, 256)
PRIOR, SKIP = (.2, .3, .3), (100, 0, 50)
COARSE = (.25, .35, .35)  # prior of the severity


class Tail:
    """The largest block maxima of one channel, in one list; blocks begin after `late` points."""

    def __init__(self, late, number=0):
        self.top, self.blocks, self.block, self.late, self.number = [], 0, [], late, number

    def score(self, q, prior):
        if self.blocks < 4:
            return 0.
        k = min(len(self.top), int(min(60, max(5, .3 * self.blocks))))
        u = self.top[k - 1]
        s0 = -math.log10(k / (self.blocks + 1))
        if q <= u:
            return max(0., s0 * q / u)
        hill = sum(math.log(x / u) for x in self.top[:k])
        return s0 + (k - 1 + 20) * math.log10(1 + math.log(q / u) / (hill + 20 * prior))

    def severity(self, q, quantum, prior):
        if self.blocks < 4:
            return 0.
        k = min(len(self.top), int(min(60, max(5, .3 * self.blocks))))
        u, q = self.top[k - 1] + quantum, q + quantum
        s0 = -math.log10(k / (self.blocks + 1))
        if q <= u:
            return max(0., s0 * q / u)
        hill = sum(math.log((x + quantum) / u) for x in self.top[:k])
        return s0 + (k + 4) * math.log10(1 + math.log(q / u) / (hill + 5 * prior))

    def take(self, q, seen):
        if self.late > 0:
            self.late -= 1
            return
        self.block.append(q)
        if len(self.block) == 40:
            self.blocks += 1
            if self.blocks >= 1024:  # every second block is forgotten
                self.top = self.top[1 - (seen // 20480 + self.number) % 2::2]
                self.blocks //= 2
            self.top = sorted(self.top + [max(self.block)], reverse=True)[:60]
            self.block = []


def judge(distance, seen, tails, quantum):
    """(S, severity) of a point, from its three kinds of distances; the tails learn these distances."""
    best = grave = 0.
    for c in range(3):
        if distance[c] is None:
            continue
        q = (distance[c] if distance[c] < 1e4 else 1e4) + .2
        seen[c] += 1
        if seen[c] <= SKIP[c]:
            continue
        best = max(best, sum(.5 * t.score(q, PRIOR[c]) for t in tails[c]))
        grave = max(grave, sum(.5 * t.severity(q, quantum, COARSE[c]) for t in tails[c]))
        for t in tails[c]:
            t.take(q, seen[c])
    return best, grave


def novelty(times, values, resident, channels):
    """(S, severity, missing before, may alert) of each accepted point"""
    longest = min(5000, resident // 2)
    lags = np.arange(100, longest + 1)
    square, mean = np.zeros(len(lags)), np.zeros(len(lags))
    tails = [[Tail(0), Tail(20, 1)] for _ in range(3)]
    seen, history, rows = [0, 0, 0], [], []
    f, mu, var = np.zeros(4), np.zeros(4), np.zeros(4)
    ref, last, age, interval = values[0], None, 0, Interval()
    steps, holes = math.inf, Holes()
    for time, value in zip(times, values):
        if last is not None and time <= last:
            yield None
            continue
        missing = 0
        if last is not None:
            missing = interval.missing(time - last)
            interval.learn(time - last)
        last = time
        v, m = value - ref, len(history)
        if holes.begins(m, missing > 256):
            age, square[:], mean[:] = 0, 0, 0
        missing = missing if holes.n < 3 else 0
        if history and v != history[-1]:
            steps = min(steps, abs(v - history[-1]))
        for k, reach in enumerate(MEANS):
            f[k] += (v - f[k]) / min(age + 1, reach)
            c = min(m + 1, 10000)
            off = f[k] - mu[k]
            mu[k] += off / c
            var[k] += (off * (f[k] - mu[k]) - var[k]) / c
        w = 1 / (np.sqrt(np.maximum(var, 0)) + 1e-9 * abs(ref) + 1e-30)
        rows.append(f[1:].copy())
        distance = [None, None, None]
        past = np.asarray(history[max(0, m - 9 - resident):max(0, m - 9)])
        if len(past):
            distance[0] = np.min(np.abs(past - v)) * w[0]
        old = [i for i in range(0, m - 200 + 1, 4)][-(resident // 4):]
        if old:
            d = (np.asarray([rows[i] for i in old]) - f[1:]) * w[1:]
            distance[1] = math.sqrt(np.min(np.sum(d * d, 1)))
        n = max(0, min(m, longest) - 99)
        if n:
            e = v - np.asarray(history[m - 99 - n:m - 99])[::-1]
            square[:n] = .98 * square[:n] + .02 * e * e
            mean[:n] = .98 * mean[:n] + .02 * e
        n = max(0, min(m - 100, longest) - 99) if age >= 100 else 0
        if n:
            distance[2] = math.sqrt(max(0., np.min(square[:n] - mean[:n] ** 2))) * w[0]
        quantum = min(w[0] * steps, 1000.) if steps < math.inf else 0.
        if channels == 'value':
            distance[1:] = None, None
        best, grave = judge(distance, seen, tails, quantum)
        history.append(v)
        age += 1
        yield best, min(grave, 40.), max(0, missing), m + 1 > 150, age > 150


class Holes:
    """Holes that follow each other within 3,000 points."""

    def __init__(self):
        self.n, self.last = 0, -math.inf

    def begins(self, m, hole):
        """Whether means and lags start again at point m."""
        if m - self.last >= 3000 + hole:
            self.n = 0
        if hole:
            self.n, self.last = self.n + 1, m
        return hole and self.n < 3


class Interval:
    """The spacing of samples, learned as window.h has it."""

    def __init__(self):
        self.n, self.ns = 0, 0

    def missing(self, spacing):
        if self.n < 8:
            return 0
        whole, rest = divmod(spacing, self.ns)
        return whole + (rest >= self.ns - rest) - 1

    def learn(self, spacing):
        if self.n == 0:
            self.ns = spacing
        else:
            shift = min(self.n // 4, 6)
            up = self.ns >> shift
            down = self.ns // 2 if shift == 0 else up
            self.ns = max(1, self.ns + max(-down, min(up, spacing - self.ns)))
        self.n += 1


class Alert:
    """The rules of cpu/novelty/alert.h."""

    def __init__(self, threshold):
        self.threshold, self.up, self.since, self.quiet, self.peak, self.gravest = threshold, False, 0, 0, 0., 0.

    def count(self, n):
        self.since += n
        self.quiet += n
        return self.quiet >= 60 or self.since >= 300

    def take(self, s, severity, missing, may):
        stood = self.up
        if stood and missing > 0 and self.count(missing):
            self.up = False
            return 'cleared'
        if may and s >= self.threshold and (not stood or s >= self.peak + 1.5):
            self.up, self.since, self.quiet, self.peak = True, 0, 0, s
            self.gravest = max(self.gravest, severity) if stood else severity
            return 'corrected' if stood else 'raised'
        if not stood:
            return None
        end = self.count(1)
        self.peak = max(self.peak, s)
        if s >= self.threshold - .3:
            self.quiet, end = 0, self.since >= 300
        self.up = not end
        graver = int(severity * 4) > int(self.gravest * 4)
        self.gravest = max(self.gravest, severity)
        return 'cleared' if end else 'corrected' if graver and may else None


def read(name):
    """times in ns, values"""
    with open(os.path.join(DATA, name)) as f:
        lines = f.read().split('\n')
    if not name.endswith('.csv'):
        values = [float(x) for x in lines if x]
        return [i * 1000000000 for i in range(len(values))], values
    rows = [x.split(',') for x in lines[1:] if x]
    stamps = np.array([r[0].replace(' ', 'T') for r in rows], 'datetime64[ns]').astype(np.int64)
    return [int(t) for t in stamps], [float(r[1]) for r in rows]


def main():
    print('# written by tests/backend/novelty_model.py: recording RECORDING S RESIDENT CHANNELS, then point INDEX S, event INDEX KIND S SEVERITY')
    for name, threshold, resident, channels in RECORDINGS:
        print(f'recording {name} {threshold} {resident} {channels}')
        alert = Alert(threshold)
        for i, point in enumerate(novelty(*read(name), resident, channels)):
            if point is None:
                continue
            s, severity, missing, scored, may = point
            kind = alert.take(s, severity, missing, scored and may)
            if kind:
                print(f'event {i} {kind} {s:.6f} {alert.gravest:.6f}')
            elif scored and i % 25 == 0:
                print(f'point {i} {s:.6f}')
        print(f'{name} done', file=sys.stderr)


if __name__ == '__main__':
    main()
