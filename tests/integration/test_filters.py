"""operator = despike, median, hoelder and arma: series of single sensors, from a recording and from a daemon that is killed."""
import json
import math
import os
import random
import shutil
import signal
import subprocess
import tempfile

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED

N, ROWS = 4, 300
NAMES = [f'tank/{i}' for i in range(N)]
DETECTORS = '[detector raw]\nmatch = tank/*\nwindow = 8\nalert = off\n[detector clean]\nmatch = none\nalgorithm = shift\nwindow = 16\n'


def rows():
    """Noise with a spike in every twentieth row, and one hole."""
    rng = random.Random(5)
    return [[50 + i + rng.gauss(0, 1) + (80 if (t + 3 * i) % 20 == 11 else 0) for i in range(N)] for t in range(ROWS)]


def filtered(values, n, despike):
    """The filters by their definition in plain Python: returns values by row, and the number of spikes."""
    out, spikes, usual = {}, 0, 0.0
    for t in range(n - 1, len(values)):
        past = values[t + 1 - n:t + 1]
        middle = sorted(past)[n // 2]
        spread = 1.4826 * sorted(abs(v - middle) for v in past)[n // 2]
        usual = spread if usual == 0 else usual + (spread > usual) * usual / 32 - (spread < usual) * usual / 32
        spike = abs(values[t] - middle) > 4 * max(spread, usual / 2)
        spikes += spike
        out[t] = middle if spike or not despike else values[t]
    return out, spikes


def exponents(values):
    """Hoelder exponents by their definition, by row."""
    out = {}
    for t in range(64, len(values)):
        points = [(math.log(r), math.log(most - least)) for r in (1, 2, 4, 8, 16, 32) for near in [values[t - 32 - r:t - 31 + r]] for least, most in [(min(near), max(near))] if most > least]
        x, y = (sum(p[k] for p in points) / len(points) for k in (0, 1))
        out[t] = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return out


class Case(harness.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankel-filters-')
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def replay(self, values, keys, code=0, step=1):
        table = self.path('tanks.csv', 'time,' + ','.join(NAMES) + '\n' + ''.join(f'{START // SECOND + t * step},' + ','.join(map(repr, row)) + '\n' for t, row in enumerate(values)))
        run = subprocess.run([harness.HANKEL, 'replay', '--field', keys, '--detector', 'algorithm=shift,window=16', '--format', 'jsonl', table], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(run.returncode, code, run.stderr)
        return {(i['sensor'], i['time']): i['value'] for i in map(json.loads, run.stdout.splitlines()) if 'value' in i}, run.stderr


class Replay(Case):
    def test_by_definition(self):
        values = rows()
        for keys, n, despike in (('operator=despike', 7, True), ('operator=median', 5, False), ('operator=median,samples=9', 9, False)):
            got, said = self.replay(values, keys)
            spikes = 0
            for i, name in enumerate(NAMES):
                # a member takes part from `wait` rows after its first point
                expected, more = filtered([row[i] for row in values[4:]], n, despike)
                spikes += more
                series = {(t - START) // SECOND - 4: v for (s, t), v in got.items() if s == name + ('#despike' if despike else '#median')}
                self.assertEqual(series.keys(), expected.keys())
                for t, v in expected.items():
                    self.assertAlmostEqual(series[t], v, delta=1e-12 * abs(v))
                if despike:
                    self.assertLess(max(series.values()), 100)
            self.assertGreater(spikes, N * ROWS // 25)
            self.assertIn(f'{spikes} of {len(got)} values were spikes', said)

    def test_exponents(self):
        values = rows()
        got, _ = self.replay(values, 'operator=hoelder')
        for i, name in enumerate(NAMES):
            expected = exponents([row[i] for row in values[4:]])
            series = {(t - START) // SECOND - 4: v for (s, t), v in got.items() if s == name + '#hoelder'}
            self.assertEqual(series.keys(), expected.keys())
            for t, v in expected.items():
                self.assertAlmostEqual(series[t], v, delta=1e-9)

    def test_what_cannot_be(self):
        self.assertIn('samples = 4: an odd number', self.replay(rows(), 'operator=despike,samples=4', 2)[1])
        self.assertIn('interval', self.replay(rows(), 'operator=despike,interval=1ms')[1])
        self.assertIn('two fits of 86400 exponents', self.replay(rows()[:60], 'operator=arma')[1])


class Daemon(Case):
    def part(self, values, first, behind, operator, kill=False, step=SECOND):
        keys = f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.folder}/state\nsnapshot = 1h\n'
        d = self.daemon(DETECTORS + f'[field tanks]\nmatch = tank/*\noperator = {operator}\ndetector = clean\n', keys=keys, ends=-signal.SIGKILL if kill else 0)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | 16, '*#*')
            handles = c.register(*NAMES)
            for t in range(first, behind):
                c.send(harness.points(handles, [START + t * step] * N, values[t]))
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            subscriber.drain(0.3)
            status = d.status()
            self.assertEqual(status['fields'], {'fields': 1, 'members': N})
            if kill:
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        if not kill:
            self.assertEqual(d.stop(), 0)
        return sorted((n, t, v, repr(z), s) for n, t, v, z, s in subscriber.results if '#' in n), status['derived']['spikes']

    def test_goes_on(self):
        """A daemon that is killed and ended gives bit for bit the results of one run, which are those of replay."""
        values = rows()
        results, spikes = self.part(values, 0, ROWS, 'despike')
        said, text = self.replay(values, 'operator=despike')
        self.assertEqual([(n, t, v) for n, t, v, *_ in results if n.endswith('#despike')], [(n, t, v) for (n, t), v in sorted(said.items())])
        self.assertIn(f'{spikes} of', text)
        own = [v for n, _, v, *_ in results if n == 'tanks#field']
        self.assertTrue(0 < max(own) <= 1 and min(own) == 0)
        shutil.rmtree(f'{self.folder}/state')
        parts, counted, cuts = [], 0, [0, 90, 170, ROWS]
        for first, behind in zip(cuts, cuts[1:]):
            more, n = self.part(values, first, behind, 'despike', kill=behind == 90)
            parts += more
            counted += n
        self.assertEqual(sorted(parts), results)
        self.assertEqual(counted, spikes)

    def test_forecasts_go_on(self):
        """The same for arma, whose fits are in the state, too: two fits of 256 rows precede the first forecast."""
        rng, values = random.Random(6), [[0.0] * N]
        for _ in range(620):
            values.append([v + rng.gauss(0, 1) for v in values[-1]])
        results = []
        for first, behind in ((0, 400), (400, 600), (600, len(values))):
            results += self.part(values, first, behind, 'arma\ninterval = 10m', kill=first == 0, step=600 * SECOND)[0]
        said, _ = self.replay(values, 'operator=arma,interval=10m', step=600)
        self.assertGreater(len(said), 20 * N)
        self.assertEqual(sorted((n, t, v) for n, t, v, *_ in results if n.endswith('#arma')), sorted((n, t, v) for (n, t), v in said.items()))
        self.assertTrue(all(0 < v < 1.2 for v in said.values()))

    def test_check(self):
        for operator, code, named in (('despike', 0, 'despike: the last 7 values'), ('median\nsamples = 3', 0, 'median: the last 3 values'), ('hoelder', 0, 'hoelder: the exponent of the value 32 rows before'), ('arma', 0, 'two fits of 86400 exponents'), ('median\nclip = 3', 1, 'median has none of the keys'),
                                      ('medium', 1, 'did you mean median')):
            path = self.path('hankeld.conf', DETECTORS + f'[field tanks]\nmatch = tank/*\noperator = {operator}\ndetector = clean\n')
            run = subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual((run.returncode, named in run.stdout + run.stderr), (code, True), run.stdout + run.stderr)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
