"""Holds a line of pipes against computations that share nothing with it: the box scheme with a dense matrix in SI units, solved
until nothing changes; and the method of characteristics, another method altogether. pipeline_oracle.py PIPELINE_DUMP; exit 77:
there is no numpy."""
import math
import os
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    debian = '/usr/bin/python3'  # which has Debian's packages
    if os.path.exists(debian) and not os.path.samefile(debian, sys.executable):
        os.execv(debian, [debian, *sys.argv])
    sys.exit(77)

G, WEIGHT = 9.80665, 0.55


def dump(text, dt, rows):
    given = text + f'\nticks {dt!r}\n' + ''.join(f'{a!r} {b!r}\n' for a, b in rows)
    done = subprocess.run([sys.argv[1]], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    values = np.array([[float(v) for v in line.split()] for line in done.stdout.splitlines()])
    return values[:, ::2], values[:, 1::2]  # p, q by time and point


class Line:
    """What a text says, cell by cell."""

    def __init__(self, text):
        self.rho, heights, edges, self.flows, self.inverse = 1000.0, {}, [], {}, None
        for words in (line.split('#')[0].split() for line in text.splitlines()):
            if words[:1] == ['fluid']:
                self.rho = float(words[1])
            elif words[:1] == ['height']:
                heights[words[1]] = float(words[2])
            elif words[:1] == ['edge']:
                edges.append(words[1:])
            elif words[:1] == ['sensor'] and words[4] == 'boundary':
                self.flows[words[3]] = words[2] == 'q'
        self.ends = [self.flows[edges[0][0]], self.flows[edges[-1][1]]]  # whether that is a flow
        cells = []
        for a, b, length, diameter, friction, wave, n in edges:
            area, dx = math.pi / 4 * float(diameter)**2, float(length) / int(n)
            slope = (heights.get(b, 0) - heights.get(a, 0)) / float(length)
            cells += [(dx, area, float(wave), float(friction) / (2 * float(diameter) * area), slope)] * int(n)
        self.dx, self.area, self.wave, self.rub, self.slope = np.array(cells).T

    def rates(self, p, q):
        """d/dt of p and q in the middle of each cell."""
        m = (q[1:] + q[:-1]) / 2
        return (-self.rho * self.wave**2 / self.area * np.diff(q) / self.dx,
                -self.area / self.rho * np.diff(p) / self.dx - self.area * G * self.slope - self.rub * m * abs(m))

    def faults(self, x, old, dt, row):
        """Of the equations of a step to x, in units of their own."""
        n = len(self.dx) + 1
        p, q, p0, q0 = x[:n], x[n:], old[:n], old[n:]
        (p1, q1), (p2, q2) = self.rates(p, q), self.rates(p0, q0)
        z = self.rho * self.wave[0] / self.area[0]
        mean = [(v[1:] + v[:-1]) / 2 for v in (p - p0, q - q0)]
        ends = [q[i] - value if flow else (p[i] - value) / z for i, value, flow in zip((0, -1), row, self.ends)]
        return np.concatenate([(mean[0] - dt * (WEIGHT * p1 + (1 - WEIGHT) * p2)) / z, mean[1] - dt * (WEIGHT * q1 + (1 - WEIGHT) * q2), ends])

    def step(self, old, dt, row):
        x, z = old.copy(), self.rho * self.wave[0] / self.area[0]
        n = len(self.dx) + 1
        unit = np.concatenate([np.full(n, z), np.ones(n)])  # so that both kinds of unknowns are flows
        if self.inverse is None:  # faults are linear but for q |q|: central differences of the first step do for all, in more rounds
            steps = 1e-6 * np.diag(unit)
            self.inverse = np.linalg.inv(np.array([self.faults(x + h, old, dt, row) - self.faults(x - h, old, dt, row) for h in steps]).T / 2e-6)
        for _ in range(40):
            change = self.inverse @ self.faults(x, old, dt, row) * unit
            x -= change
            if np.all(abs(change) < 1e-13 * unit * np.max(abs(x) / unit)):
                return x
        sys.exit('the dense solution does not settle')


TWO = '''
fluid 850
edge a b 3000 0.5 0.018 1000 12
edge b c 2000 0.4 0.020 1100 9
height b 60
height c 35
sensor a p a boundary
sensor c %s c boundary
sensor b p b check
'''


def box():
    for last, level, swing in (('q', 0.25, 0.1), ('p', 4.2e6, 5e5)):
        text, dt = TWO % last, 0.4
        line, n = Line(text), 22
        rows = [(5e6 + 2e5 * math.sin(k / 3), level - swing * (k > 5) + swing * 0.3 * math.sin(k)) for k in range(40)]
        p, q = dump(text, dt, rows)
        z = line.rho * line.wave[0] / line.area[0]
        rates = line.rates(p[0], q[0])
        assert max(abs(rates[0])) < 1e-3 and max(abs(rates[1])) < 1e-10, 'what is steady changes'
        x = np.concatenate([p[0], q[0]])
        worst = 0
        for k, row in enumerate(rows):
            x = line.step(x, dt, row)
            worst = max(worst, np.max(abs(x[:n] - p[k + 1])) / z, np.max(abs(x[n:] - q[k + 1])))
        print(f'box scheme, {last} at the end: {worst:.2e} m3/s from a dense solution')
        assert worst < 2e-6  # two Newton steps beside as many as it takes


def characteristics():
    """A valve that closes in 2 s on 5 km, with friction: pressures at the valve and in the middle."""
    text, cells, seconds = '''
fluid 900
edge a b 5000 0.6 0.02 1000 %d
sensor a p a boundary
sensor b q b boundary
sensor m p b check
''', 200, 30
    line = Line(text % cells)
    dx, area, a, rub = line.dx[0], line.area[0], line.wave[0], line.rub[0]
    dt, z, q0 = dx / a, 900 * a / area, 0.4
    flow = lambda t: q0 * max(0.0, 1 - max(0.0, t - 1) / 2)
    head = 5e6
    q = np.full(cells + 1, q0)
    p = head - np.arange(cells + 1) * dx * 900 / area * rub * q0 * q0
    kept = [(p[cells], p[cells // 2])]
    for k in range(1, round(seconds / dt) + 1):
        plus = p[:-1] + z * q[:-1] - z * dt * rub * q[:-1] * abs(q[:-1])
        minus = p[1:] - z * q[1:] + z * dt * rub * q[1:] * abs(q[1:])
        p, q = np.empty(cells + 1), np.empty(cells + 1)
        p[1:-1], q[1:-1] = (plus[:-1] + minus[1:]) / 2, (plus[:-1] - minus[1:]) / (2 * z)
        p[0], q[-1] = head, flow(k * dt)
        q[0], p[-1] = (p[0] - minus[0]) / z, plus[-1] - z * q[-1]
        kept.append((p[cells], p[cells // 2]))
    kept = np.array(kept)
    surge = kept.max() - kept[0, 0]
    for n, courant, allowed in ((200, 1, 0.01), (50, 1, 0.03), (50, 2, 0.05)):
        step = 5000 / n / a * courant
        got = dump(text % n, step, [(head, flow(k * step)) for k in range(1, round(seconds / step) + 1)])[0]
        times = np.arange(1, len(got)) * step
        away = [np.interp(times, np.arange(len(kept)) * dt, kept[:, i]) - got[1:, place] for i, place in ((0, n), (1, n // 2))]
        worst = math.sqrt(np.mean(np.square(away))) / surge
        print(f'characteristics, {n} cells, Courant number {courant}: {worst:.4f} of the surge (root of the mean square)')
        assert worst < allowed


box()
characteristics()
