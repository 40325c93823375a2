#!/usr/bin/env python3
"""Independent model of the whole road of one sensor: window rules, baseline, score, alerts. It follows the rules as described
in cpu/rules/window.h, cpu/MATHEMATICS.md and cpu/rules/alert.h, and shares no code with them.

    python3 tests/backend/model.py [NAME...]      writes tests/data/expected_NAME.csv of all RECORDINGS, or of those named

A file of expected columns begins with two comments, the recording and the detector, then has the columns score and state for every
point and a line #event,kind,number,score after the point that caused an event; `test_recordings.py HANKEL write` then adds instants. Needs numpy; the tests read what was written.
"""
import csv
import datetime
import math
import os
import sys

import numpy as np

from oracle import random_vector

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data')
SECOND = 10**9

# name: (recording, detector)
RECORDINGS = {
    'machine_temperature': ('machine_temperature_system_failure.csv', 'false_alarms=2000'),
    'request_latency': ('ec2_request_latency_system_failure.csv', 'preset=paper,window=40,rank=3,alert=off'),
    'agent_key_hold': ('rogue_agent_key_hold.csv', 'algorithm=svd,window=24,rank=4,stride=3,alert=0.7,hold=2'),
    'cylinder_bell_funnel': ('CBF.txt', 'present=power,operator=gram,window=20,rank=2,krylov=7,alert=0.6,signal=0'),
    'coffee': ('Coffee.txt', 'scale=window,window=10,gap=19,preset=precise,krylov=10,alert=0.4,baseline=2,hold=3,clear=0.9'),
    'lightning': ('Lightning2.txt', 'window=33,gap=5,rank=5,operator=gram,products=10,scale=none,alert=adaptive,false_alarms=5000,signal=1,min_score=0,cooldown=7'),
    'faults': ('faults.csv', 'window=12,gap=9,rank=2,max_fill=4,fill=linear,stride=2,alert=0.5,cooldown=20,baseline=1'),
}

DEFAULTS = dict(algorithm='ika', present='ritz', operator='hankel', scale='baseline', fill='hold', preset='default',
                window=96, rank=3, products=6, stride=1, max_fill=3, hold=1, baseline=4, interval=0, alert='adaptive',
                min_score=0.05, clear=0.7, signal=2.0, false_alarms=50)


def detector(text):
    given = dict(item.split('=') for item in text.split(',') if item)
    d = dict(DEFAULTS)
    for key, value in given.items():
        d[key] = float(value) if key in ('min_score', 'clear', 'signal') or key == 'alert' and value[0].isdigit() else int(value) if value.isdigit() else value
    w, r = d['window'], d['rank']
    paper, precise = d['preset'] == 'paper', d['preset'] == 'precise'
    if paper:
        d['present'] = given.get('present', 'power')
        d['scale'] = given.get('scale', 'none')
    if precise and 'products' not in given:
        d['products'] = 8
    d.setdefault('reorthogonalise', 'no' if paper else 'yes')
    d.setdefault('gap', 2 * w + 7 if paper else w)
    steps = (2 * r if r % 2 == 0 or r == 1 else 2 * r - 1) if paper else 16 if precise else 4 * r - 2
    d.setdefault('krylov', min(max(steps, r + 1), 20, w))
    d.setdefault('cooldown', w)
    d['span'] = 2 * w - 1 + d['gap']
    return d


def lanczos(apply, start, steps, whole):
    q, alphas, betas, largest = [start], [], [], 0.0
    while True:
        u = apply(q[-1])
        alphas.append(float(u @ q[-1]))
        u = u - alphas[-1] * q[-1]
        if betas:
            u = u - betas[-1] * q[-2]
        if whole:
            basis = np.array(q)
            u = u - basis.T @ (basis @ u)
            u = u - basis.T @ (basis @ u)
        beta = float(np.sqrt(u @ u))
        largest = max(largest, abs(alphas[-1]) + (betas[-1] if betas else 0.0))
        if len(alphas) == steps or beta <= largest * 2.0**-20:
            break
        betas.append(beta)
        q.append(u / beta)
    theta, y = np.linalg.eigh(np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1))
    return np.array(q), theta, y


def unit(v):
    return v / math.sqrt(v @ v)


class Sensor:
    def __init__(self, name, d):
        self.d, self.name = d, name
        self.a0 = random_vector(name, d['window'])
        self.a = self.a0
        self.started = False
        self.learned, self.spacings, self.last_time = 0, 0, None
        self.points, self.hole, self.holes = 0, 0, 0  # accepted points; their number at the last long hole, or at the first point; long holes close together
        self.alert = Alert(d)

    # --- windows

    def interval(self):
        return self.d['interval'] or (self.learned if self.spacings >= 8 else 0)

    def learn(self, spacing):
        if self.spacings == 0:
            self.learned = spacing
        else:
            shift = min(self.spacings // 4, 6)
            up = self.learned >> shift
            down = self.learned // 2 if shift == 0 else up
            self.learned = max(1, self.learned + min(max(spacing - self.learned, -down), up))
        self.spacings += 1

    def push(self, sample, filled):
        d = self.d
        if abs(sample) < 2.0**-126:
            sample = 0.0
        self.samples.append((sample, filled))
        del self.samples[:-d['span']]
        self.due += 1
        self.since_rebase += 1
        if self.alert.raised and self.held < 2 * d['span']:
            self.held += 1
            return
        if not self.alert.raised:
            self.held = 0
        self.age = min(self.age + 1, d['baseline'] * d['span'])
        share = 1 / self.age
        off = sample - self.mean
        self.mean += share * off
        self.variance = (1 - share) * (self.variance + share * off * off)

    def rebase(self):
        if len(self.samples) < self.d['span'] or self.since_rebase < self.d['span']:
            return
        self.since_rebase = 0
        if self.mean**2 > 256 * self.variance:
            shift = float(np.float32(self.mean))
            self.reference += shift
            self.mean -= shift
            self.samples = [(x - shift, filled) for x, filled in self.samples]

    def take(self, time, value):
        """Takes a point; returns its state, its score or None, and events."""
        d = self.d
        reference = self.reference if self.started else 0.0
        if not math.isfinite(value) or abs(value - reference) > 1e30 or time < 0:
            return 'rejected', None, []
        if self.started and time <= self.last_time:
            return 'late', None, []
        missing, restarted = 0, False
        if self.started:
            spacing, interval = time - self.last_time, self.interval()
            if interval:
                missing = spacing // interval + (2 * (spacing % interval) >= interval) - 1
            if not d['interval']:
                self.learn(spacing)
        events = []
        self.points += 1
        if not self.started:
            self.hole = self.points
        since = self.points - self.hole
        bridged = self.started and since <= 20 * d['span']  # the last hole, or the beginning, is recent
        if missing > d['max_fill']:
            self.holes = self.holes + 1 if self.holes > 2 or self.holes and since <= d['span'] else 1
            self.hole = self.points
        elif self.points - self.hole >= 20 * d['span']:
            self.holes = 0
        if not self.started or missing > d['max_fill'] and not bridged:
            restarted, self.started = self.started, True
            self.reference, self.mean, self.variance = value, 0.0, 0.0
            self.samples, self.age, self.due, self.held, self.since_rebase = [], 0, 0, 0, 0
            self.a = self.a0
            missing = 0
            events += self.alert.restart() if restarted else []
        if missing > d['max_fill'] or self.holes > 2:
            missing = 0  # the window continues; nothing is filled for an irregular sensor
        sample = value - self.reference
        last = self.samples[-1][0] if self.samples else 0.0
        for i in range(1, missing + 1):
            self.push(last + (sample - last) * i / (missing + 1) if d['fill'] == 'linear' else last, True)
        self.push(sample, False)
        self.rebase()
        self.last_time = time
        if len(self.samples) < d['span']:
            self.due = d['stride'] - 1
            return 'warming', None, events if restarted else events + self.alert.point('warming', None, None)
        within = d['alert'] not in ('adaptive', 'off') if self.holes > 2 else self.holes > 0 and self.points - self.hole < d['span'] - 1
        state = 'gap' if 10 * sum(filled for _, filled in self.samples) > d['span'] or within else 'ok'
        z = share = None
        if self.due >= d['stride']:
            self.due = 0
            z, share = self.score()
        return state, z, events + self.alert.point(state, z, share)

    # --- scores

    def score(self):
        d = self.d
        w, g = d['window'], d['gap']
        x = np.array([sample for sample, _ in self.samples])
        past, present = x[:2 * w - 1], x[g:]
        if d['scale'] == 'window':
            past, present = past - past.mean(), present - present.mean()
        else:
            centre = self.mean if d['scale'] == 'baseline' else -self.reference
            past, present = past - centre, present - centre
        zero = max(2.0**-100, np.abs(x).max() * 2.0**-20)
        if np.abs(present).max() <= zero:
            return 0.0, 0.0
        present = present / np.abs(present).max()
        h2 = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(present, w))
        mu, sigma2 = self.direction(h2)
        self.a = unit(mu + 1e-3 * self.a0)
        share = sigma2 / float(np.sum(h2 * h2))
        if np.abs(past).max() <= zero:
            return 1.0, share
        past = past / np.abs(past).max()
        h1 = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(past, w))
        if d['algorithm'] == 'svd':
            u, size, _ = np.linalg.svd(h1)
            first, least = u.T @ mu, 2.0**-17
        else:
            gram = d['operator'] == 'gram'
            apply = (lambda v: h1 @ (h1 @ v)) if gram else (lambda v: h1 @ v)
            _, theta, y = lanczos(apply, mu, d['krylov'], d['reorthogonalise'] == 'yes')
            size, first, least = np.abs(theta), y[0], 2.0**-34 if gram else 2.0**-17
        order = [i for i in np.argsort(-size, kind='stable')[:d['rank']] if size[i] > least * size.max()]
        return min(max(1 - sum(first[i]**2 for i in order), 0.0), 1.0), share

    def direction(self, h2):
        d = self.d
        if d['algorithm'] == 'svd':
            u, size, _ = np.linalg.svd(h2)
            return u[:, 0] * (1 if u[:, 0] @ self.a >= 0 else -1), float(size[0]**2)
        if d['present'] == 'power':
            mu = self.a
            for _ in range(d['products'] // 2):
                v = h2 @ (h2 @ mu)
                size = math.sqrt(v @ v)
                if size == 0:
                    break
                mu = v / size
            return mu, size
        gram = d['operator'] == 'gram'
        apply = (lambda v: h2 @ (h2 @ v)) if gram else (lambda v: h2 @ v)
        steps = min(d['products'] // 2 if gram else d['products'], d['window'])
        q, theta, y = lanczos(apply, self.a, steps, d['reorthogonalise'] == 'yes')
        best = np.argmax(np.abs(theta))
        top = y[:, best] * (1 if y[0, best] >= 0 else -1)
        return unit(q.T @ top), float(abs(theta[best]) if gram else theta[best]**2)


class Alert:
    def __init__(self, d):
        self.d = d
        self.adaptive = d['alert'] == 'adaptive'
        self.threshold = float(np.float32(d['alert'])) if isinstance(d['alert'], float) else None
        white = (1.4 + 0.6 * math.log(d['window'])) / d['window']
        self.odds = float(np.float32(d['signal'])) * white / (1 - white)
        self.raised, self.number, self.over, self.quiet, self.since, self.peak = False, 0, 0, 0, 0, 0.0
        self.block, self.maxima, self.mean, self.variance = [], 0, 0.0, 0.0

    def restart(self):
        self.over, self.block = 0, []
        if not self.raised:
            return []
        self.raised = False
        return [('cleared', self.number, self.peak)]

    def point(self, state, z, share):
        d, events = self.d, []
        if d['alert'] == 'off':
            return events
        quiet = self.quiet > 0
        self.quiet = max(0, self.quiet - 1)
        scored = z is not None
        if scored:
            share = min(share, 1 - 1e-6)
            evidence = math.sqrt(z * share / (1 - share)) if self.adaptive else z
            known = self.threshold is not None
            over = known and (evidence > self.threshold if self.adaptive else evidence >= self.threshold)
            over = over and state == 'ok' and z >= float(np.float32(d['min_score'])) and share >= (1 - share) * self.odds
            self.over = self.over + 1 if over else 0
        if self.raised:
            self.since += 1
            if scored:
                self.peak = max(self.peak, z)
            low = scored and evidence < float(np.float32(d['clear'])) * self.threshold
            if low or self.since == d['span']:
                self.raised, self.quiet, self.over = False, d['cooldown'], 0
                events.append(('cleared', self.number, self.peak))
        elif scored and state == 'ok' and self.over >= d['hold'] and not quiet:
            self.raised, self.since, self.peak = True, 0, z
            self.number += 1
            events.append(('raised', self.number, z))
        if self.adaptive and scored and state == 'ok':
            self.learn(evidence)
        return events

    def learn(self, evidence):
        self.block.append(evidence)
        size = -(-self.d['window'] // self.d['stride'])
        if len(self.block) < size:
            return
        top, self.block = max(self.block), []
        if self.threshold is not None:
            top = min(top, self.threshold)
        self.maxima = n = min(self.maxima + 1, 64)
        off = top - self.mean
        self.mean += off / n
        self.variance = (1 - 1 / n) * (self.variance + off * off / n)
        if n >= 4:
            p = min(float(np.float32(self.d['false_alarms'])) * size / 1e6, 0.5)
            y = -math.log(-math.log(1 - p))
            k = math.sqrt(6) / math.pi * (y - 0.5772156649) * (1 + (1.4 + y / 2) / (n - 1))
            self.threshold = self.mean + k * math.sqrt(self.variance * n / (n - 1))


def read(path):
    """Reads (sensor name, [(time, value)]), in the formats that the recordings have."""
    with open(path) as f:
        lines = f.read().splitlines()
    if lines[0][0] in '-0123456789':
        return os.path.basename(path).rsplit('.', 1)[0], [(i * SECOND, float(v)) for i, v in enumerate(lines)]
    rows = list(csv.reader(lines))
    points = []
    for when, value in rows[1:]:
        whole, _, fraction = when.rstrip('Z').replace('T', ' ').partition('.')
        at = datetime.datetime.strptime(whole, '%Y-%m-%d %H:%M:%S').replace(tzinfo=datetime.timezone.utc)
        points.append((int(at.timestamp()) * SECOND + int((fraction + '0' * 9)[:9]), float(value)))
    return rows[0][1], points


def write_faults(path):
    """A recording with every kind of bad or odd point."""
    rng = np.random.default_rng(2026)
    start = datetime.datetime(2026, 1, 1)
    rows, at = [], 0
    for i in range(2600):
        value = 5 + math.sin(2 * math.pi * i / (9 if i % 900 < 450 else 5)) + 0.1 * rng.standard_normal()
        if i > 1500:
            value += 1e6  # the reference has to follow
        dice = rng.integers(0, 400)
        at += 1000 + int(rng.integers(-200, 200))
        if i > 40:
            at += {1: 1000, 2: 2000, 3: 3000, 4: 4000}.get(int(dice), 0)  # holes that are filled
        if i in (600, 1200, 2100):
            at += 60000  # and some that are not
        if 1300 <= i < 1360:
            value = 7.25  # constant
        when = at - 5000 if dice == 10 else at - 1 if dice == 11 else at
        odd = {12: 'nan', 13: 'inf', 14: '-inf', 15: '2e30', 16: '1e300'}.get(int(dice))
        rows.append((when, odd or f'{value:.6f}'))
        if dice == 17:
            rows.append((at, f'{value + 1:.6f}'))  # repeated time
    with open(path, 'w') as f:
        f.write('timestamp,value\n')
        for when, value in rows:
            f.write((start + datetime.timedelta(milliseconds=when)).isoformat(' ', 'milliseconds') + f',{value}\n')


def main(names):
    if 'faults' in names:
        write_faults(os.path.join(DATA, 'faults.csv'))
    for name in names:
        recording, text = RECORDINGS[name]
        sensor_name, points = read(os.path.join(DATA, recording))
        sensor = Sensor(sensor_name, detector(text))
        with open(os.path.join(DATA, f'expected_{name}.csv'), 'w') as out:
            out.write(f'# {recording}\n# {text}\nscore,state\n')
            for time, value in points:
                state, z, events = sensor.take(time, value)
                out.write(f'{"" if z is None else format(z, ".7f")},{state}\n')
                for event in events:
                    out.write('#event,{},{},{:.7f}\n'.format(*event))


if __name__ == '__main__':
    main(sys.argv[1:] or list(RECORDINGS))
