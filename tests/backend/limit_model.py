#!/usr/bin/env python3
"""A simple, slow model of algorithm = limit in plain Python, from its definition in cpu/MATHEMATICS.md. Writes the results with
which test_limit_recordings.py compares. Shares no code with the implementation.

    limit_model.py > ../data/expected_limit.txt

Recordings keep their times; the interval is given."""
import csv
import datetime
import math
import os
import statistics

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')
HOUR = 3600 * 10**9
BLOCKS, LEAST, KEPT = 24, 18, 32

CASES = [  # recording, column, interval (s), window, horizon (h), other keys
    ('ageing-gpt-neo-125m.csv', 'used_memory', 60, 12, 24, dict(limit=2375307264)),
    ('ageing-opt-125m.csv', 'used_memory', 60, 12, 24, dict(limit=2116739072)),
    ('ageing-pythia-160m.csv', 'used_memory', 60, 12, 24, dict(limit=2435010560)),
    ('ageing-gpt-neo-125m.csv', 'used_partition', 60, 12, 24, dict(limit=79781000000)),
    ('ageing-opt-125m.csv', 'used_partition', 60, 12, 24, dict(limit=79531000000)),
    ('ageing-pythia-160m.csv', 'used_partition', 60, 12, 24, dict(limit=79971000000, hold=1, confidence=3)),
    ('ageing-opt-125m.csv', 'used_memory', 60, 6, 48, dict(limit=2116739072, lower=1300000000)),
    ('machine_temperature_system_failure.csv', 'value', 300, 60, 120, dict(limit=100, lower=20)),
    ('machine_temperature_system_failure.csv', 'value', 300, 12, 24, dict(limit=100, lower=20, hold=2)),
    ('ec2_request_latency_system_failure.csv', 'value', 300, 48, 96, dict(limit=60, confidence=2.5)),
    ('rogue_agent_key_hold.csv', 'value', 300, 24, 240, dict(limit=0.2, lower=0.01, confidence=1.5, hold=1)),
]


def recording(name, column):
    """Times in ns and values."""
    with open(os.path.join(DATA, name)) as f:
        for row in csv.DictReader(f):
            text = row.get('time') or row['timestamp']
            whole = datetime.datetime.fromisoformat(text[:19]).replace(tzinfo=datetime.timezone.utc)
            yield int(whole.timestamp()) * 10**9 + (int(text[20:].ljust(9, '0')) if text[19:] else 0), float(row[column])


def mann_kendall(m):
    """Mann-Kendall's z, corrected for continuity and for ties."""
    n, score = len(m), 0
    for i in range(n):
        for j in range(i + 1, n):
            score += (m[j] > m[i]) - (m[j] < m[i])
    variance = n * (n - 1) * (2 * n + 5)
    for value in set(m):
        t = m.count(value)
        variance -= t * (t - 1) * (2 * t + 5)
    if variance == 0 or score == 0:
        return 0.
    return (score - math.copysign(1, score)) / math.sqrt(variance / 18)


def quantile(x, q):
    x = sorted(x)
    place = q * (len(x) - 1)
    low = math.floor(place)
    return x[low] + (place - low) * (x[min(low + 1, len(x) - 1)] - x[low])


def trend(medians, block):
    """z, quartiles of the slopes per block, and the level at the end of the window, from the medians {number: value} of the window
    before `block`."""
    points = [(n - (block - BLOCKS), medians[n]) for n in sorted(medians)]
    slopes = [(b - a) / (j - i) for k, (i, a) in enumerate(points) for j, b in points[k + 1:]]
    slope = quantile(slopes, .5)
    begin = statistics.median(y - slope * i for i, y in points)
    return mann_kendall([y for _, y in points]), quantile(slopes, .25), slope, quantile(slopes, .75), begin + slope * (BLOCKS - .5)


def outlook(found, keys, end, length, time):
    """(earliest, reached, latest) in ns; None if the trend leads to no limit."""
    z, low, slope, high, level = found
    confidence = keys.get('confidence', 4)
    if 'limit' in keys and z > confidence and slope > 0:
        left, steep, gentle = keys['limit'] - level, high, low
    elif 'lower' in keys and z < -confidence and slope < 0:
        left, steep, gentle = level - keys['lower'], -low, -high
    else:
        return None
    left = max(left, 0)
    times = [max(end + left / rate * length, time) if rate > 0 else math.inf for rate in (steep, abs(slope), gentle)]
    return times if times[1] < 9.2e18 else None


class Window:
    """The blocks of a sensor."""

    def __init__(self, keys, interval, length, block):
        self.keys, self.interval, self.length = keys, interval, length
        self.medians, self.samples, self.block, self.full, self.slope = {}, [], block, block + BLOCKS, 0

    def fell(self, median):
        if not self.slope or len(self.medians) < 2:
            return False
        way = math.copysign(1, self.slope)
        grown = abs(self.slope) * (max(self.medians) - min(self.medians))
        return max(way * m for m in self.medians.values()) - way * median > grown / 2

    def close(self, block):
        """Ends the current block; returns whether the window begins anew, and the block's median."""
        anew, median = False, None
        if 4 * len(self.samples) * self.interval >= self.length:
            every = 1
            while -(-len(self.samples) // every) > KEPT:
                every *= 2
            median = statistics.median(self.samples[::every])
            anew = self.fell(median)
            if anew:
                self.medians, self.full = {}, self.block + LEAST
            self.medians[self.block] = median
        self.block, self.samples = block, []
        self.medians = {n: m for n, m in self.medians.items() if n >= block - BLOCKS}
        return anew, median

    def check(self):
        self.slope = 0
        if len(self.medians) < LEAST or self.block < self.full:
            return None
        found = trend(self.medians, self.block)
        if abs(found[0]) > self.keys.get('confidence', 4) and found[0] * found[2] > 0:
            self.slope = found[2]
        return found


def model(points, interval, hours, horizon, keys):
    """Events, as (index of the point, kind, times of the limit), and the scores."""
    length, horizon, hold = hours * HOUR // BLOCKS, horizon * HOUR, keys.get('hold', 3)
    window, over, under, told, events, scores = None, 0, 0, None, [], []
    for i, (time, value) in enumerate(points):
        block = time // length
        window = window or Window(keys, interval * 10**9, length, block)
        if block > window.block:
            anew, median = window.close(block)
            found = window.check()
            when = found and outlook(found, keys, block * length, length, time)
            left = when[1] - time if when else math.inf
            if found:
                scores.append(horizon / (horizon + left))
            beyond = median is not None and (median >= keys.get('limit', math.inf) or median <= keys.get('lower', -math.inf))
            near = left < horizon
            if anew:
                over = under = 0
                if told:
                    events.append((i, 'cleared', None))
                    told = None
            else:
                over = over + 1 if near else 0
                under = 0 if near or beyond else under + 1
                if told is None and over >= hold:
                    events.append((i, 'raised', when))
                    told = when
                elif told and under >= hold:
                    events.append((i, 'cleared', None))
                    told = None
                elif told and near and abs(when[1] - max(told[1], time)) > max(length, left / 2):
                    events.append((i, 'corrected', when))
                    told = when
        window.samples.append(value)
    return events, scores


def text(event):
    index, kind, when = event
    times = '' if when is None else ''.join(f':{"never" if t == math.inf else round(t / 1e9)}' for t in when)
    return f'{index}:{kind}{times}'


def main():
    print('# recording | column | detector keys | events, point:kind:earliest:reached:latest (s) | scores, their mean and their largest')
    for name, column, interval, hours, horizon, keys in CASES:
        events, scores = model(list(recording(name, column)), interval, hours, horizon, keys)
        given = {'interval': f'{interval}s', 'window': f'{hours}h', 'horizon': f'{horizon}h', **keys}
        print(f'{name} | {column} | {",".join(f"{k}={v}" for k, v in given.items())} | {" ".join(map(text, events))} | '
              f'{len(scores)} {statistics.fmean(scores):.7f} {max(scores):.7f}')


if __name__ == '__main__':
    main()
