"""Models of lines of pipes on simulated recordings: the departures of checks from the model, in a daemon and in a replay."""
import csv
import io
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED

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
    return subprocess.run([harness.HANKEL, *arguments], capture_output=True, text=True, timeout=harness.WAIT)


def sections(field, model, more=''):
    """A configuration of sensors t/*, and of a field that compares them with the model in a file."""
    return ('[detector raw]\nmatch = t/*\nwindow = 8\ninterval = 1s\nalert = off\n[detector faults]\nmatch = none\nalgorithm = shift\nwindow = 32\n'
            f'[field {field}]\nmatch = t/*\noperator = model\nfile = {model}\ndetector = faults\n{more}')


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

    def put(self, d, names, rows, first=0):
        """Feeds a row a second, and waits for its results."""
        with d.client() as c:
            handles = c.register(*names)
            for t, row in enumerate(rows, first):
                c.send(harness.points(handles, [START + t * SECOND] * len(names), row))
            c.ping()
            harness.until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')

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

    def two(self):
        pipes = LINE[LINE.index('edge'):]
        return self.file('two.model', LINE[:LINE.index('edge')] + 'line x\n' + pipes + 'line y\n' + pipes.replace('t/', 'u/').replace('6000', '7000'))

    def test_several_lines(self):
        """Each line's recording is the one that it has alone, with consecutive seeds; leaks and faults belong to one line."""
        options = ['--hours', '0.2', '--moves', '2m']
        leak, fault = ['--leak', '5m,0.05,3000'], ['--fault', '5m,u/a/q,bias,5']
        done = hankel('model', 'simulate', '--seed', '8', *options, *leak[:1], leak[1] + ',,x', *fault, self.two())
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        together = self.columns(done.stdout)[0]
        alone = self.columns(self.simulated('--seed', '8', *options, *leak))[0]
        self.model = self.file('y.model', LINE.replace('6000', '7000').replace('t/', 'u/'))
        alone |= self.columns(self.simulated('--seed', '9', *options, *fault))[0]
        self.assertEqual(together, alone)

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
                ([], 2, 'want one of simulate, fit'),
                (['simulate'], 2, 'want simulate FILE.model'),
                (['simulate', self.path + '/none'], 1, '/none: No such file or directory'),
                (['simulate', self.file('w', LINE + 'edge c d 1 2')], 1, '/w: line 11, column 1: edge: the form is: edge A B LENGTH DIAMETER FRICTION WAVE CELLS'),
                (['simulate', '--leak', '1h,0.1', self.two()], 2, '--leak 1h,0.1: want AT,SHARE,PLACE,FOR,LINE, since the model has 2 lines'),
                (['simulate', '--leak', '1h,0.1,,,z', self.two()], 2, '--leak: z: the model has no such line'),
                (['simulate', '--leak', '1h', self.model], 2, '--leak 1h: want AT,SHARE[,PLACE[,FOR[,LINE]]]'),
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


class Fit(Case):
    """hankel model fit, on simulated lines whose friction and wave speed are known; nothing was tuned on these seeds."""

    def fitted(self, options, *more, hours='0.3'):
        recording = self.file('r.csv', self.simulated('--hours', hours, *options))
        return hankel('model', 'fit', *more, self.model, recording)

    def numbers(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return [float(m) for m in re.findall(r'^(?:friction|wave speed): ([0-9.]+) times', done.stdout, re.M)]

    def edges(self, path):
        with open(path, encoding='utf-8') as f:
            lines = f.read().splitlines()
        return lines, [[float(v) for v in line.split()[3:8]] for line in lines if line.startswith('edge')]

    def test_finds_what_the_line_has(self):
        new = self.path + '/new.model'
        friction, wave = self.numbers(self.fitted(['--moves', '2m', '--friction', '1.2', '--wave', '0.9', '--seed', '31'], '--output', new))
        self.assertAlmostEqual(friction, 1.2, delta=0.005)
        self.assertAlmostEqual(wave, 0.9, delta=0.02)  # the cells are coarse
        lines, edges = self.edges(new)
        self.assertEqual([edge[:2] + edge[4:] for edge in edges], [[6000, 0.5, 6], [4000, 0.5, 4]])
        for edge in edges:
            self.assertAlmostEqual(edge[2] / 0.018, friction, delta=1e-4)
            self.assertAlmostEqual(edge[3] / 1000, wave, delta=1e-4)
        self.assertEqual([line for line in LINE.splitlines() if not line.startswith('edge')], [line for line in lines if not line.startswith(('edge', '#'))])
        # the written file is a model file that fits the recording
        again = self.numbers(hankel('model', 'fit', new, self.path + '/r.csv'))
        self.assertEqual([round(v, 3) for v in again], [1, 1])
        # an existing file is not overwritten
        refused = hankel('model', 'fit', '--output', new, self.model, self.path + '/r.csv')
        self.assertEqual((refused.returncode, 'new.model: File exists' in refused.stderr), (1, True))

    @unittest.skipIf(harness.SANITIZED, 'the same code as above')
    def test_faults_and_a_leak_mislead_it_little(self):
        friction, wave = self.numbers(self.fitted(['--moves', '2m', '--friction', '0.8', '--wave', '1.1', '--seed', '32', '--fault', '5m,t/c/q,bias,30,3m', '--fault', '20m,t/a/p,gap,,30s',
                                                   '--fault', '25m,t/b/p,drift,1,5m', '--leak', '30m,0.1,5000,3m'], hours='0.6'))
        self.assertAlmostEqual(friction, 0.8, delta=0.02)
        self.assertAlmostEqual(wave, 1.1, delta=0.05)

    def test_a_steady_recording_shows_no_waves(self):
        new = self.path + '/new.model'
        done = self.fitted(['--moves', '0', '--friction', '1.2', '--wave', '0.9', '--seed', '33'], '--output', new)
        self.assertIn('wave speed: stays as the file has it: this recording shows no waves', done.stdout)
        friction, = self.numbers(done)
        self.assertAlmostEqual(friction, 1.2, delta=0.005)
        self.assertEqual({edge[3] for edge in self.edges(new)[1]}, {1000})

    def test_what_shows_nothing_is_refused(self):
        new = self.path + '/new.model'
        done = self.fitted(['--moves', '0', '--velocity', '0.02', '--seed', '34'], '--output', new)
        self.assertEqual((done.returncode, 'shows neither friction nor wave speed; nothing is written' in done.stderr, os.path.exists(new)), (1, True, False))
        for rows, said in (('time,t/a/p,t/c/p,t/a/q\n' + ''.join(f'{i},50,40,700\n' for i in range(200)), 'too short: 200 s, and 300 s at least are needed'),
                           ('time,t/a/p,t/a/q\n1,50,700\n2,50,700\n', 'no column t/c/p, a boundary of the model'),
                           ('time,t/a/p,t/c/p,x\n1,50,40,700\n2,50,40,700\n', 'no column of a check'),
                           ('time,t/a/p,t/c/p,t/a/q\n1,50,40,700\n', 'no two times'),
                           ('time,t/a/p,t/c/p,t/a/q\n' + ''.join(f'{i},,40,700\n' for i in range(400)), 'too few rows can be compared'),
                           ('time,t/a/p,t/c/p,t/a/q\n1,50,40,x1\n2,50,x,3\n', 'r.csv')):
            done = hankel('model', 'fit', self.model, self.file('r.csv', rows))
            self.assertEqual((done.returncode, done.stdout), (1, ''), rows)
            self.assertIn(said, done.stderr)
        for arguments, said in ((['fit', self.model], 'want fit FILE.model RECORDING...'), (['fit', '--interval', 'x', self.model, 'r'], '--interval x: not a duration'),
                                (['--hours', '1', 'fit', self.model], 'fit comes before its options')):
            done = hankel('model', *arguments)
            self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)


ROWS, LEAK = 1500, 1000
CHECKS = ['t/a/q#model', 't/b/p#model', 't/c/q#model']


class Field(Case):
    """[field] with operator = model."""

    def setUp(self):
        super().setUp()
        values, _ = self.columns(self.simulated('--hours', str(ROWS / 3600), '--seed', '5', '--moves', '5m', '--leak', f'{LEAK}s,0.04,7000'))
        self.names = list(values)
        self.rows = [[values[n][t] for n in self.names] for t in range(ROWS)]
        self.state = os.path.join(self.path, 'state')

    def part(self, rows, first, behind, keys, kill=False, more=''):
        """Runs a daemon that gets these rows. Returns the results of its derived sensors, and its event log."""
        d = self.daemon(sections('t', self.model, more), keys='threads = 1\nmax_ahead = off\n' + keys, ends=-signal.SIGKILL if kill else 0)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | 16, '*#model')
            handles = c.register(*self.names)
            for t in range(first, behind):
                there = [k for k, v in enumerate(rows[t]) if v is not None]
                c.send(harness.points([handles[k] for k in there], [START + t * SECOND] * len(there), [rows[t][k] for k in there]))
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            subscriber.drain(0.3)
            self.balanced(d.status())
            if behind == ROWS:
                self.explained(d)
            log, events = ''.join(str(line) for line in d.log), d.events() if 'state' in keys else []
            if kill:
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        if not kill:
            self.assertEqual(d.stop(), 0)
        return sorted((n, t, v, repr(z), s) for n, t, v, z, s in subscriber.results), events, log

    def explained(self, d):
        """A list of sensors has the share that the model explains of each check, and of no other sensor."""
        listed = hankel('sensors', '--from', f'127.0.0.1:{d.port["binary tcp"]}', '--json')
        share = {s['name']: s['explained'] for s in map(json.loads, listed.stdout.splitlines()) if 'explained' in s}
        self.assertEqual(sorted(share), [check[:-6] for check in CHECKS])
        self.assertTrue(all(0.5 < v <= 1 for v in share.values()), share)
        table = hankel('sensors', '--from', f'127.0.0.1:{d.port["binary tcp"]}', 't/b/p').stdout
        self.assertRegex(table, r't/b/p  \(its model explains \d+\.\d % of its variance\)\n')

    def replay(self, rows, *more):
        table = self.file('t.csv', 'time,' + ','.join(self.names) + '\n' + ''.join(
            f'{START // SECOND + t},' + ','.join('' if v is None else repr(v) for v in row) + '\n' for t, row in enumerate(rows)))
        done = hankel('replay', '--field', f'operator=model,file={self.model}', '--detector', 'algorithm=shift,window=32', '--format', 'jsonl', *more, table)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def test_a_daemon_says_what_a_replay_says(self):
        results, _, log = self.part(self.rows, 0, ROWS, '')
        items, said = self.replay(self.rows)
        self.assertEqual([(n, t, v) for n, t, v, _, _ in results], sorted((i['sensor'], i['time'], i['value']) for i in items if 'value' in i))
        self.assertEqual(sorted({n for n, *_ in results}), CHECKS)
        self.assertIn('t#field: the model begins steady; its checks have no values for 30 s', log)
        for check in CHECKS:
            self.assertIn(f'{check[:-6]}: the model explains ', said)
        # the leak is a step in both flows, and nothing is before it
        raised = [i for i in items if i.get('event') == 'raised']
        self.assertEqual({e['sensor'] for e in raised} & {'t/a/q#model', 't/c/q#model'}, {'t/a/q#model', 't/c/q#model'})
        for e in raised:
            self.assertLess(abs(e['instant'] - START - LEAK * SECOND), 30 * SECOND, e)

    def test_goes_on(self):
        """Wherever the daemon ends or is killed, its results are bit for bit those of one run; also with gaps."""
        rows = [[None if (k == 1 and 300 <= t < 306) or (k == 2 and t % 17 == 3) else v for k, v in enumerate(row)] for t, row in enumerate(self.rows)]
        keys = f'state = {self.state}\nsnapshot = 1h\ndurability = '
        expected, events, _ = self.part(rows, 0, ROWS, keys + 'journal\n')
        self.assertTrue(any(e[2] == 'raised' for e in events))
        shutil.rmtree(self.state)
        for durability, kill, cuts in (('journal', True, [0, 9, 303, ROWS]), ('snapshot', False, [0, 20, 1030, ROWS])):
            with self.subTest(durability=durability):
                results = []
                for first, behind in zip(cuts, cuts[1:]):
                    more, told, _ = self.part(rows, first, behind, f'{keys}{durability}\n', kill and behind < ROWS)
                    results += more
                self.assertEqual(sorted(results), expected)
                self.assertEqual(sorted(told), sorted(events))
            verify = hankel('state', 'verify', self.state)
            self.assertEqual(verify.returncode, 0, verify.stdout + verify.stderr)
            shutil.rmtree(self.state)

    def test_a_boundary_is_lost(self):
        rows = [[None if k == 0 and 400 <= t < 460 else v for k, v in enumerate(row)] for t, row in enumerate(self.rows)]
        results, _, log = self.part(rows, 0, 700, '', more='hold = 5\n')
        self.assertIn('t#field: model lost: its boundary t/a/p has had no value for more than hold rows; it begins again when all have', log)
        times = {(t - START) // SECOND for _, t, *_ in results}
        self.assertTrue({399, 404, 495} <= times, 'held for 5 rows, and back 30 s after the boundary')
        self.assertFalse(times & set(range(406, 489)))

    def test_check_says_so(self):
        for keys, said in (('', '1 lines, 2 pipes, 5 sensors, 3 of them checks; 22 unknowns, matrices of 2 + 1 + 2 diagonals'), ('interval = 2us\n', 'over half of interval = 2e-06 s'), ('q = 5\n', 'operator = model has none of the keys neighbours, positions, q'),
                           ('adapt = 1\n', 'adapt = 1: not a number from 0 to 0.1'), ('hold = -1\n', 'hold = -1: not a whole number from 0')):
            path = self.file('c.conf', '[daemon]\nbackend = cpu\n' + sections('t', self.model, keys))
            done = subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual((done.returncode, said in done.stdout + done.stderr), (0 if keys == '' else 1, True), done.stdout + done.stderr)
        for change, said in ((('operator = model', 'operator = residual'), 'operator = residual has none of the keys file, adapt, hold'), (('operator = model', 'operator = pipe'), 'operator = pipe: none of residual, model, focus, despike, median, hoelder, arma'),
                             ((f'file = {self.model}\n', ''), 'operator = model needs file = FILE'), (('t.model', 'u.model'), 'u.model: No such file or directory')):
            path = self.file('c.conf', sections('t', self.model).replace(*change))
            done = subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual((done.returncode, said in done.stderr), (1, True), done.stderr)
        self.file('t.model', LINE + 'sensor t/x q d check\n')
        done = subprocess.run([harness.HANKELD, '-c', self.file('c.conf', sections('t', self.model)), '--check'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertIn('[field t]: file: ' + self.model + ': line 11, column 14: d: no pipe begins or ends at this node', done.stderr)


HEAT = '''kind heat
units C m3/h
ground 8
edge a b 120 0.2 30 12
edge b c 80 0.2 30 8
sensor t/a/t t a boundary
sensor t/a/q q a boundary
sensor t/b/t t b check
sensor t/c/t t c check
'''


class Heat(Field):
    """A heat line in a daemon and in a replay, over kills and restarts."""
    test_a_daemon_says_what_a_replay_says = test_goes_on = test_a_boundary_is_lost = test_check_says_so = None  # tests of a line of pipes

    def setUp(self):
        super().setUp()
        self.file('t.model', HEAT)
        values, _ = self.columns(self.simulated('--hours', str(ROWS / 3600), '--seed', '5', '--moves', '5m', '--noise', '0.0002', '--leak', f'{LEAK}s,1,160'))
        self.names = list(values)
        self.rows = [[values[n][t] for n in self.names] for t in range(ROWS)]

    def explained(self, d):
        listed = hankel('sensors', '--from', f'127.0.0.1:{d.port["binary tcp"]}', '--json')
        self.assertEqual(sorted(s['name'] for s in map(json.loads, listed.stdout.splitlines()) if 'explained' in s), ['t/b/t', 't/c/t'])

    def test_heat(self):
        keys = f'state = {self.state}\nsnapshot = 1h\ndurability = journal\n'
        whole, events, log = self.part(self.rows, 0, ROWS, keys)
        self.assertRegex(log, 't#field: the model begins steady; its checks have no values for (299|30[01]) s, until the first contents of the line have left it; computed by the processor')
        items, said = self.replay(self.rows)
        self.assertEqual([(n, t, v) for n, t, v, _, _ in whole], sorted((i['sensor'], i['time'], i['value']) for i in items if 'value' in i))
        self.assertEqual({n for n, *_ in whole}, {'t/b/t#model', 't/c/t#model'})
        self.assertRegex(said, r'loss of heat, as a multiple of what the model file says: [01]\.')
        first, = {e['instant'] for e in items if e.get('event') == 'raised' and e['sensor'] == 't/c/t#model'} & {min(e['instant'] for e in items if e.get('event') == 'raised')}
        self.assertLess(abs(first - START - LEAK * SECOND), 120 * SECOND)  # the water takes 40 s from there
        shutil.rmtree(self.state)
        cut = [self.part(self.rows, a, b, keys, b < ROWS)[:2] for a, b in ((0, 60), (60, 700), (700, ROWS))]
        self.assertEqual(sorted(r for results, _ in cut for r in results), whole)
        self.assertEqual(sorted(e for _, told in cut for e in told), sorted(events))

    def test_said(self):
        path = self.file('c.conf', '[daemon]\nbackend = cpu\n' + sections('t', self.model))
        done = subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertIn('1 heat lines, 2 pipes, 4 sensors, 2 of them checks; 21 unknowns, matrices of 1 + 1 + 1 diagonals', done.stdout)
        done = hankel('model', 'fit', self.model, self.model)
        self.assertEqual((done.returncode, 'it has a heat line, and lines of pipes can be fitted' in done.stderr), (1, True), done.stderr)


NETWORK = '''kind network
units bar l/s
edge west m1 800 0.30 0.02 1100 4
edge m1 m2 600 0.20 0.022 1100 3
edge m2 m3 500 0.15 0.025 1100 2
edge m4 m3 400 0.20 0.02 1100 2
edge m1 m4 700 0.20 0.02 1100 3
edge m4 east 900 0.25 0.02 1100 4
height west 55
height east 52
demand m2 4
sensor t/west/p p west boundary
sensor t/east/p p east boundary
sensor t/m3/out out m3 boundary
sensor t/west/in in west check
sensor t/east/in in east check
sensor t/m2/p p m2 check
sensor t/m1/q q m1 m4 check
'''


class Network(Field):
    """A network with a loop in a daemon and in a replay, over kills and restarts."""
    test_a_daemon_says_what_a_replay_says = test_goes_on = test_a_boundary_is_lost = test_check_says_so = None  # tests of a line of pipes
    ROWS, LEAK = 700, 400

    def setUp(self):
        super().setUp()
        self.file('t.model', NETWORK)
        values, _ = self.columns(self.simulated('--hours', str(self.ROWS / 3600), '--seed', '5', '--moves', '2m', '--leak', f'{self.LEAK}s,0.05,m2:m3'))
        self.names = list(values)
        self.rows = [[values[n][t] for n in self.names] for t in range(self.ROWS)]

    def test_network(self):
        keys = f'state = {self.state}\nsnapshot = 1h\ndurability = '
        whole, events, log = self.part(self.rows, 0, self.ROWS, keys + 'journal\n')
        self.assertRegex(log, r't#field: the model begins steady; its checks have no values for \d s, until the first contents of the line have left it; computed by the processor')
        items, said = self.replay(self.rows)
        self.assertEqual([(n, t, v) for n, t, v, _, _ in whole], sorted((i['sensor'], i['time'], i['value']) for i in items if 'value' in i))
        self.assertEqual({n for n, *_ in whole}, {'t/west/in#model', 't/east/in#model', 't/m2/p#model', 't/m1/q#model'})
        self.assertRegex(said, r'friction, as a multiple of what the model file says: 1\.[01]')
        # the leak comes in and does not leave
        inflow = {t: v for n, t, v, *_ in whole if n == 't/west/in#model'}
        inflow = [inflow[t] + v for n, t, v, *_ in whole if n == 't/east/in#model']
        self.assertAlmostEqual(statistics.mean(inflow[-100:]) - statistics.mean(inflow[200:350]), 0.05 * (4 + 1000 * 3.1416 / 4 * 0.15 ** 2), delta=0.4)
        shutil.rmtree(self.state)
        for durability, kill in (('journal', True), ('snapshot', False)):
            cut = [self.part(self.rows, a, b, f'{keys}{durability}\n', kill and b < self.ROWS)[:2] for a, b in ((0, 9), (9, 500), (500, self.ROWS))]
            self.assertEqual(sorted(r for results, _ in cut for r in results), whole)
            self.assertEqual(sorted(e for _, told in cut for e in told), sorted(events))
            shutil.rmtree(self.state)

    def test_said(self):
        path = self.file('c.conf', '[daemon]\nbackend = cpu\n' + sections('t', self.model))
        done = subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertRegex(done.stdout, r'a network of 6 nodes, 6 pipes, 18 cells, 7 sensors, 4 of them checks; 18 unknowns, solved by (sparse LDL\'|band Cholesky), whose factor has \d+ numbers')
        self.assertRegex(done.stdout, r'a row takes [\d.]+ ms on this machine.s processor, [\d.e-]+ % of interval = 1 s')
        for arguments, said in ((['simulate', '--leak', '1h,0.1', self.model], '--leak 1h,0.1: want AT,SHARE,PLACE, a node of the network, or A:B'),
                                (['simulate', '--leak', '1h,0.1,m9', self.model], '--leak: m9: the network has no such node'), (['simulate', '--leak', '1h,0.1,m1:m3', self.model], '--leak: m1:m3: the network has no such pipe')):
            done = hankel('model', *arguments)
            self.assertEqual((done.returncode != 0, said in done.stderr), (True, True), done.stderr)


class Lines(Field):
    """Several lines in one file: the results of each are those of the line alone."""
    NAMES, PLACE = ('north', 'south', 'west'), 'processor'
    test_a_daemon_says_what_a_replay_says = test_goes_on = test_a_boundary_is_lost = test_check_says_so = None  # tests of a line of pipes

    def setUp(self):
        super().setUp()
        head, pipes = LINE[:LINE.index('edge')], LINE[LINE.index('edge'):]
        self.alone = {name: self.file(f'{name}.model', head + pipes.replace('6000 0.5', f'{6000 + 500 * (i % 5)} 0.5').replace('t/', f't/{name}/')) for i, name in enumerate(self.NAMES)}
        self.file('t.model', head + ''.join(f'line {n}\n' + open(f, encoding='utf-8').read()[len(head):] for n, f in self.alone.items()))
        self.columns_of = {}
        for i, (name, file) in enumerate(self.alone.items()):
            done = hankel('model', 'simulate', '--hours', str(ROWS / 3600), '--seed', str(7 + i), '--moves', '5m', file)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.columns_of[name] = self.columns(done.stdout)[0]
        self.names = [n for c in self.columns_of.values() for n in c]
        self.rows = [[c[n][t] for c in self.columns_of.values() for n in c] for t in range(ROWS)]
        for t in range(200, 240):  # of the second line: a boundary is lost
            self.rows[t][self.names.index(f't/{self.NAMES[1]}/a/p')] = None

    def compare(self, results, alone):
        self.assertEqual(results, alone)

    def test_lines(self):
        keys = f'state = {self.state}\nsnapshot = 1h\ndurability = journal\n'
        whole, _, log = self.part(self.rows, 0, 500, keys, more='hold = 5\n')
        self.assertIn(f't#field ({self.NAMES[0]} and {len(self.NAMES) - 1} other lines): the model begins steady; its checks have no values for 3', log)
        self.assertIn(f'; computed by the {self.PLACE}', log)
        self.assertIn(f't#field ({self.NAMES[1]}): model lost: its boundary t/{self.NAMES[1]}/a/p has had no value for more than hold rows', log)
        shutil.rmtree(self.state)
        cut = [self.part(self.rows, a, b, keys, b < 500, more='hold = 5\n')[0] for a, b in ((0, 60), (60, 210), (210, 500))]
        self.assertEqual(sorted(r for part in cut for r in part), whole)
        for name, file in list(self.alone.items())[:3]:
            self.model, names = file, [n for n in self.names if n.startswith(f't/{name}/')]
            rows = [[row[self.names.index(n)] for n in names] for row in self.rows[:500]]
            self.names, every = names, self.names
            items, said = self.replay(rows, '--field', f'operator=model,file={file},hold=5')
            self.names = every
            self.compare([r[:3] for r in whole if r[0].startswith(f't/{name}/')], sorted((i['sensor'], i['time'], i['value']) for i in items if 'value' in i))
        values = {n: [v for name, _, v, *_ in whole if name == n] for n in {r[0] for r in whole}}
        self.assertEqual(len(values), 3 * len(self.NAMES))
        self.assertGreater(min(len(v) for v in values.values()), 300)


@unittest.skipUnless(harness.BACKEND == 'cuda', 'of the GPU')
class LinesOnGpu(Lines):
    """Lines enough for the GPU: it continues with the same bits after a restart, and equals the processor except for rounding."""
    NAMES, PLACE = tuple(f'line{i}' for i in range(40)), 'GPU'

    def compare(self, results, alone):
        self.assertEqual([r[:2] for r in results], [r[:2] for r in alone])
        for (name, time, value), (_, _, other) in zip(results, alone):
            self.assertLess(abs(value - other), 1e-6, (name, time))  # bar and m3/h, of tens and hundreds


if __name__ == '__main__':
    harness.main()
