"""Models of lines of pipes: recordings that are simulated."""
import csv
import io
import os
import statistics
import subprocess
import tempfile

import harness

LINE = '''fluid 850
units bar m3/h
edge a b 6000 0.5 0.018 1000 6
edge b c 4000 0.5 0.018 1000 4
height b 12
sensor t/a/p p a boundary
sensor t/c/p p c boundary
sensor t/a/q q a check
sensor t/c/q q c check
sensor t/b/p p b check
'''


def hankel(*arguments):
    return subprocess.run([harness.HANKEL, *arguments], capture_output=True, text=True, timeout=120)


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.model = self.file('t.model', LINE)

    def file(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def simulated(self, *options):
        done = hankel('model', 'simulate', *options, self.model)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout

    def columns(self, text):
        rows = list(csv.reader(io.StringIO(text)))
        return {name: [float(row[i]) if row[i] else None for row in rows[1:]] for i, name in enumerate(rows[0]) if i > 0}, [row[0] for row in rows[1:]]


class Simulate(Case):
    def test_the_same_options_give_the_same_recording(self):
        text = self.simulated('--hours', '0.2', '--seed', '3')
        self.assertEqual(text, self.simulated('--hours', '0.2', '--seed', '3'))
        self.assertNotEqual(text, self.simulated('--hours', '0.2', '--seed', '4'))
        values, times = self.columns(text)
        self.assertEqual((list(values), len(times)), (['t/a/p', 't/c/p', 't/a/q', 't/c/q', 't/b/p'], 720))
        self.assertEqual((times[0], times[-1]), ('2026-01-01T00:00:00Z', '2026-01-01T00:11:59Z'))
        self.assertEqual(self.columns(self.simulated('--hours', '0.001', '--interval', '500ms', '--from', '2026-02-03T04:05Z'))[1][:2],
                         ['2026-02-03T04:05:00Z', '2026-02-03T04:05:00.500000000Z'])

    def test_a_leak_is_what_comes_in_and_does_not_come_out(self):
        values, _ = self.columns(self.simulated('--hours', '1', '--moves', '0', '--noise', '0', '--leak', '20m,0.02,3000', '--leak', '40m,0.01,9000,10m'))
        away = [a - b for a, b in zip(values['t/a/q'], values['t/c/q'])]
        flow = values['t/a/q'][0]
        self.assertAlmostEqual(flow, 3600 * 3.14159265 / 4 * 0.25, delta=0.01)
        self.assertLess(max(abs(v) for v in away[:1199]), 1e-4 * flow)
        for at, share in ((2300, 0.02), (2900, 0.03), (3500, 0.02)):
            self.assertAlmostEqual(away[at] / flow, share, delta=0.0005)

    def test_pump_and_valve_are_moved(self):
        still, moved = (self.columns(self.simulated('--hours', '1', '--seed', '2', *more))[0] for more in (['--moves', '0'], ['--moves', '5m']))
        spread = [statistics.pstdev(v['t/a/q']) / statistics.mean(v['t/a/q']) for v in (still, moved)]
        self.assertLess(abs(spread[0] - 0.0005), 0.0002)
        self.assertGreater(spread[1], 0.005)

    def test_sensors_fail(self):
        options = ['--hours', '0.5', '--moves', '0', '--noise', '0.0001']
        sound = self.columns(self.simulated(*options))[0]
        bad = self.columns(self.simulated(*options, '--fault', '10m,t/a/q,bias,5', '--fault', '10m,t/b/p,frozen,,10m', '--fault', '5m,t/c/q,drift,12', '--fault', '1m,t/c/p,gap,,1m'))[0]
        for at in (599, 600, 1700):
            self.assertAlmostEqual(bad['t/a/q'][at] - sound['t/a/q'][at], 5 if at > 599 else 0, delta=1e-3)
        self.assertEqual(len(set(bad['t/b/p'][600:1198])), 1)
        self.assertEqual(bad['t/b/p'][1200:], sound['t/b/p'][1200:])
        self.assertAlmostEqual(bad['t/c/q'][1200] - sound['t/c/q'][1200], 3, delta=0.02)
        self.assertEqual({v for v in bad['t/c/p'][60:118]}, {None})
        self.assertNotIn(None, bad['t/c/p'][120:])

    def test_what_is_wrong_is_said(self):
        for arguments, code, said in (
                ([], 2, 'want simulate FILE.model'),
                (['simulate'], 2, 'want simulate FILE.model'),
                (['fit', self.model], 2, 'want simulate FILE.model'),
                (['simulate', self.path + '/none'], 1, '/none: No such file or directory'),
                (['simulate', self.file('w', LINE + 'edge c d 1 2')], 1, '/w: line 11, column 1: edge: the form is: edge A B LENGTH DIAMETER FRICTION WAVE CELLS'),
                (['simulate', '--leak', '1h', self.model], 2, '--leak 1h: want AT,SHARE[,PLACE[,FOR]]'),
                (['simulate', '--leak', 'soon,0.1', self.model], 2, '--leak: soon: not a duration such as 90s or 12h'),
                (['simulate', '--leak', '1h,0.1,10001', self.model], 2, '--leak: PLACE 10001: want a number from 0 to 10000'),
                (['simulate', '--fault', '1h,x,bias,1', self.model], 2, '--fault: x: the model has no such sensor'),
                (['simulate', '--fault', '1h,t/a/q,dead', self.model], 2, '--fault: KIND dead: want one of bias, drift, frozen, gap'),
                (['simulate', '--fault', '1h,t/a/q,bias', self.model], 2, '--fault 1h,t/a/q,bias: want a SIZE'),
                (['simulate', '--interval', '2d', self.model], 2, '--interval 2d: not a duration from 1ms to 1h'),
                (['simulate', '--from', 'today', self.model], 2, '--from today: not a date such as 2026-01-01 or 2026-01-01T12:00:00Z'),
                (['simulate'] + ['--leak', '1h,0.1'] * 17 + [self.model], 2, '--leak: at most 16')):
            done = hankel('model', *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ''), arguments)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count('\n'), 1)


if __name__ == '__main__':
    harness.main()
