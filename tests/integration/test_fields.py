"""Fields: each of several sensors that share their weather gets a series of its difference from the prediction by the others."""
import glob
import json
import math
import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED

KEYS = 'threads = 2\nmax_ahead = off\n'
DETECTORS = '[detector raw]\nmatch = roof/*\nwindow = 8\ninterval = 1s\nalert = off\n[detector faults]\nmatch = none\nalgorithm = shift\nwindow = 32\n'
FIELD = '[field roofs]\nmatch = roof/*\noperator = residual\ndetector = faults\nq = 5\nblame = 32\n'

N, ROWS, FAULT = 10, 1500, 1000
NAMES = [f'roof/{i}/power' for i in range(N)]
FAULTY = 4


def rows(fault=2.5, seed=7, n=ROWS):
    """Values by row and sensor: shared weather wanders by ten times the noise of each sensor; from FAULT on one sensor reads too much."""
    rng, front, out = random.Random(seed), 0, []
    for t in range(n):
        front = 0.98 * front + rng.gauss(0, 1)
        out.append([1e4 + (1 + 0.1 * i) * (front + 3 * math.sin(t * 0.13)) + rng.gauss(0, 0.4) + (fault if i == FAULTY and t >= FAULT else 0) for i in range(N)])
    return out


class Case(harness.Case):
    def send(self, c, handles, values, first=0):
        for t, row in enumerate(values):
            there = [k for k, v in enumerate(row) if v is not None]
            c.send(harness.points([handles[k] for k in there], [START + (first + t) * SECOND] * len(there), [row[k] for k in there]))

    def through(self, d):
        harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')

    def said(self, client):
        """Results of the derived sensors, and their events."""
        return (sorted((n, t, v, repr(z), s) for n, t, v, z, s in client.results if '#' in n), [e for e in client.events if '#' in e[0]])

    def run_through(self, values, more='', keys=KEYS):
        d = self.daemon(DETECTORS + FIELD + more, keys=keys)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | 16, '*#*')  # 16: and values
            self.send(c, c.register(*NAMES), values)
            c.ping()
            self.through(d)
            subscriber.drain(0.3)
            self.balanced(d.status())
            return self.said(subscriber), d

    def folder(self):
        folder = tempfile.TemporaryDirectory(prefix='hankel-fields-')
        self.addCleanup(folder.cleanup)
        return folder.name


class Daemon(Case):
    def test_residuals_are_those_of_replay(self):
        values = rows()
        (results, events), d = self.run_through(values)
        replay = Replay()
        replay.setUp()
        self.addCleanup(replay.folder.cleanup)
        items, _ = replay.replay(replay.table(values), 'q=5,blame=32')
        want = sorted((i['sensor'], i['time'], i['value'], i['score'], i['state']) for i in items if 'value' in i)
        own = [r for r in results if r[0] == 'roofs#field']
        residuals = [r for r in results if r[0] != 'roofs#field']
        self.assertEqual([(n, t, v, s) for n, t, v, _, s in residuals], [(n, t, v, s) for n, t, v, _, s in want])
        for (*_, got, _), (*_, score, _) in zip(residuals, want):
            self.assertEqual(score is None, got == 'None')
            self.assertTrue(score is None or math.isclose(score, float(got), rel_tol=1e-8, abs_tol=1e-12))
        self.assertEqual(sorted((n, k, i) for n, _, k, _, _, i, *_ in events), sorted((e['sensor'], e['event'], e['instant']) for e in items if 'event' in e))
        self.assertEqual(len(own), ROWS - 4 - 192)  # the share of sensors that behave unusually, for each row
        self.assertTrue(all(0 <= v <= 1 for _, _, v, _, _ in own))
        self.assertGreater(sum(v for _, _, v, _, _ in own), 1)
        status = d.status()
        self.assertEqual(status['fields'], {'fields': 1, 'members': N})
        self.assertEqual(status['sensors']['count'], 2 * N + 1)
        last = {n: (t, v) for n, t, v, *_ in residuals}  # as any sensor's, each is listed with its newest value and its window
        with d.client() as c:
            listed = json.loads(c.request(0x0c, struct.pack('<QI', 0, 1000) + harness.text('*#residual'), 0x87).data)['sensors']
        self.assertEqual({(s['name'], s['state'], s['time'], s['span']) for s in listed}, {(n, 'ok', t, 68) for n, (t, _) in last.items()})
        for s in listed:
            self.assertAlmostEqual(s['value'], last[s['name']][1], delta=1e-3)

    def test_further_algorithms_and_captures(self):
        """Each hall is a field; a derived sensor of each algorithm; sensors of too few neighbours have none."""
        names = [f'{h}/{i}/power' for h in ('east', 'west') for i in range(5)]
        edges = os.path.join(self.folder(), 'edges')
        with open(edges, 'w') as f:
            f.write(''.join(f'{h}/{i}/power {h}/{k}/power\n' for h in ('east', 'west') for i in range(4) for k in range(i)))
        d = self.daemon('[detector all]\nmatch = *\nwindow = 8\nalert = off\n[detector faults]\nmatch = none\nalgorithm = shift, novelty\n'
                        f'[field hall]\nmatch = (*)/*/power\noperator = residual\ndetector = faults\nneighbours = {edges}\n', keys=KEYS)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(UNSCORED | SCORED | 16, '*#*')
            handles = c.register(*names)
            for t, row in enumerate(rows(n=230)):
                c.send(harness.points(handles, [START + t * SECOND] * len(names), row))
            c.ping()
            self.through(d)
            subscriber.drain(0.3)
        series = {n for n, *_ in subscriber.results}
        self.assertEqual(series, {f'{h}/{i}/power#residual{a}' for h in ('east', 'west') for i in range(4) for a in ('', '.novelty')} | {'hall#east', 'hall#west'})
        one, other = ([(t, v) for n, t, v, _, _ in subscriber.results if n == 'east/2/power#residual' + a] for a in ('', '.novelty'))
        self.assertEqual(one, other)
        self.assertEqual(d.status()['fields'], {'fields': 2, 'members': 10})
        self.balanced(d.status())

    def test_names_are_the_daemons(self):
        """No peer can feed a derived sensor."""
        d = self.daemon(DETECTORS.replace('roof/*', '*') + FIELD, keys=KEYS)
        with d.client() as c:
            self.assertEqual([h is None for h in c.register(NAMES[0] + '#residual', 'cellar#residual')], [True, False])  # also before the sensor exists; if no field matches, it is a name like any other
            self.send(c, c.register(*NAMES), rows(n=10))
            c.ping()
            self.through(d)  # by then they are there
            self.assertEqual(c.register(NAMES[0] + '#residual'), [None])
        with d.connect('line tcp') as s:
            s.sendall(f'{NAMES[0]}#residual value=1 {START + SECOND}\n'.encode())
        harness.until(lambda: d.status()['dropped']['reserved'] == 1, 'the line')
        self.assertEqual(d.status()['sensors']['count'], 2 * N + 1 + 1)

    def test_checks(self):
        with open(os.path.join(self.folder(), 'edges'), 'w') as f:
            f.write('a b\nb c\nc a\nc d\n')
        with open(os.path.join(self.folder(), 'none'), 'w') as none:
            none.write('# to come\n')
        for more, named in (('match = roof/*\n', 'needs operator'), ('match = *\noperator = model\ndetector = faults\n', 'operator = model'),
                            ('match = *\noperator = residual\ndetector = none\n', 'detector = none'), ('match = a(*)(*)\n', 'capture'),
                            ('match = *\noperator = residual\ndetector = faults\nneighbours = /nowhere\n', 'No such file'),
                            ('match = *\noperator = residual\ndetector = faults\nneighbours = nearest\n', 'positions'),
                            (f'match = *\noperator = residual\ndetector = faults\nneighbours = {none.name}\n', f'{none.name}: names no sensor: empty, or comments only'),
                            ('match = *\noperator = residual\ndetector = faults\nq = 40\n', 'q = 40')):
            code, said = self.check(DETECTORS + '[field roofs]\n' + more)
            self.assertEqual((code, named in said), (1, True), said)
        code, said = self.check(DETECTORS + FIELD + f'neighbours = {f.name}\n')
        self.assertEqual(code, 0, said)
        self.assertIn('names 4 sensors; 1 of them with fewer than 2 neighbours, which have no residual', said)
        self.assertIn('field roofs: 1 series a member', said)

    def check(self, text):
        path = os.path.join(self.folder(), 'hankeld.conf')
        with open(path, 'w') as f:
            f.write(text)
        run = subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
        return run.returncode, run.stdout + run.stderr


class Reload(Case):
    def test_comes_changes_and_goes(self):
        values = rows(n=700)
        d = self.daemon(DETECTORS, keys=KEYS)
        count = lambda: (d.status()['fields'], d.status()['sensors']['count'])  # noqa: E731
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED, '*#*')
            handles = c.register(*NAMES)

            def feed(first, behind):
                self.send(c, handles, values[first:behind], first)
                c.ping()
                self.through(d)
                subscriber.drain(0.2)
                return sorted({(t - START) // SECOND for n, t, *_ in subscriber.results if n == NAMES[2] + '#residual'})

            def reload(field, line):
                d.configure(DETECTORS + field, KEYS)
                with d.client() as r:
                    taken, told = r.reload()
                self.assertTrue(taken, told)
                self.assertIn(line, told)

            feed(0, 10)
            self.assertEqual(count(), ({'fields': 0, 'members': 0}, N))
            reload(FIELD, '[field roofs] is new')
            self.assertEqual(feed(10, 300), list(range(10 + 4 + 192, 300)))
            self.assertEqual(count(), ({'fields': 1, 'members': N}, 2 * N + 1))
            reload(FIELD + '[group other]\nmatch = (*)/0/*\n', '[group other] is new')
            self.assertEqual(feed(300, 310)[-1], 309)
            reload(FIELD + 'clip = 5\n', '[field roofs] is changed: it starts over')
            anew = [t for t in feed(310, 530) if t >= 310]
            self.assertEqual(anew, list(range(310 + 4 + 192, 530)))  # as long as when it was new
            d.configure(DETECTORS.replace('window = 32', 'window = 24') + FIELD + 'clip = 5\n', KEYS)
            with d.client() as r:
                self.assertTrue(r.reload()[0])
            feed(530, 535)
            self.assertEqual(count(), ({'fields': 1, 'members': N}, 2 * N + 1))
            with tempfile.NamedTemporaryFile('w') as f:
                f.write(''.join(f'{a} {b}\n' for a, b in zip(NAMES, NAMES[1:])))
                f.flush()
                reload(FIELD + f'neighbours = {f.name}\n', '[field roofs] is changed: it starts over')
                f.write(f'{NAMES[0]} {NAMES[2]}\n')
                f.flush()
                reload(FIELD + f'neighbours = {f.name}\n', '[field roofs] is changed (contents of its file): it starts over')
                reload('', '[field roofs] was removed')
            feed(535, 540)
            self.assertEqual(count(), ({'fields': 0, 'members': 0}, N))
            self.balanced(d.status())


ORDERED_DAEMON = os.environ.get('ORDERED_DAEMON')


class Restart(Case):
    how = {}

    def rests(self):
        """A daemon whose snapshot has the derived sensors a second later than the field."""
        with open(f'{self.state}/order', 'w', encoding='utf-8') as f:
            f.write('the derived rest')
        return {'program': ORDERED_DAEMON, 'environment': {'HANKELD_ORDERED': f'{self.state}/order'}}

    # how the daemon is started whose snapshot is examined, and the least number of points between the two
    between = (rests, N) if ORDERED_DAEMON and harness.BACKEND == 'cpu' else (lambda self: {}, 0)

    def setUp(self):
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)

    def keys(self, durability='journal', snapshot='1h', more=''):
        return KEYS + more + f'durability = {durability}\nstate = {self.state}/there\nsnapshot = {snapshot}\n'

    def part(self, values, first, behind, keys, kill=False, field=FIELD):
        """Runs a daemon that gets these rows. Returns the results of its derived sensors, and its event log."""
        d = self.daemon(DETECTORS + field, keys=keys, ends=-signal.SIGKILL if kill else 0, **self.how)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | 16, '*#*')
            self.assertEqual(d.status()['points']['late'], 0)  # no point that the journal has is added twice
            self.send(c, c.register(*NAMES), values[first:behind], first)
            c.ping()
            self.through(d)
            subscriber.drain(0.3)
            self.balanced(d.status())
            self.assertEqual(d.status()['fields'], {'fields': 1, 'members': N})
            events = d.events()
            if kill:
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        if not kill:
            self.assertEqual(d.stop(), 0)
        return self.said(subscriber)[0], events

    def test_goes_on(self):
        """Wherever the daemon ends or is killed, also while it learns and during an alert, its results are bit for bit those of one run."""
        values = rows()
        rng = random.Random(2)
        values = [[None if rng.random() < 0.03 else v for v in row] for row in values]
        expected, events = self.part(values, 0, ROWS, self.keys())
        self.assertTrue(any(e[2] == 'raised' for e in events))
        shutil.rmtree(f'{self.state}/there')
        for durability, kill, cuts in (('journal', True, [0, 7, 150, 1040, ROWS]), ('snapshot', False, [0, 14, 290, 1041, ROWS])):
            with self.subTest(durability=durability, kill=kill):
                results = []
                for first, behind in zip(cuts, cuts[1:]):
                    more, told = self.part(values, first, behind, self.keys(durability), kill and behind < ROWS)
                    results += more
                self.assertEqual(sorted(results), expected)
                self.assertEqual(sorted(told), sorted(events))  # in one batch the order is that of its points
            shutil.rmtree(f'{self.state}/there')

    def positions(self):
        """Positions in the newest snapshot of the field and of the last sensors; the derived ones come last."""
        found, last = None, {}
        for folder in glob.glob(f'{self.state}/there/shard-*'):
            path = max(glob.glob(f'{folder}/snapshot-*.hks'), default=None)
            with open(path or os.devnull, 'rb') as f:
                data = f.read()
            at = 80
            while at < len(data):
                kind, _, size, position = struct.unpack_from('<IIQQ', data, at)
                at += 40 + size
                last[folder] = max(position, last.get(folder, 0)) if kind == 3 else last.get(folder, 0)
                found = (folder, position) if kind == 5 else found
        return (found[1], last[found[0]]) if found else (0, -1)

    def test_snapshot_and_journal(self):
        """The daemon is killed after a snapshot that was taken under load, with a journal from there on. Some points came between the field's part of
        the snapshot and that of the derived sensors: their derived points are made again, and are not added twice."""
        values = rows()
        expected, events = self.part(values, 0, ROWS, self.keys())
        shutil.rmtree(f'{self.state}/there')
        how, least = self.between
        d = self.daemon(DETECTORS + FIELD, keys=self.keys(snapshot='1s'), ends=-signal.SIGKILL, **how(self))
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED | 16, '*#*')
            handles, at = c.register(*NAMES), 0

            def between():
                behind, last = self.positions()
                return last - behind
            while at < 1100 and (at < 300 or between() < least):
                self.send(c, handles, values[at:at + 1], first=at)
                at += 1
                time.sleep(0.003)
            self.assertGreaterEqual(between(), least, 'no row came between two parts of a snapshot')
            c.ping()
            self.through(d)
            subscriber.drain(0.3)
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
        results = self.said(subscriber)[0]
        more, told = self.part(values, at, ROWS, self.keys())
        self.assertEqual(sorted(results + more), expected)
        self.assertEqual(sorted(told), sorted(events))

    def test_who_is_to_blame(self):
        """An alert for which another sensor is to blame is marked, names that sensor, and goes to no receiver; `hankel state verify` reads the state."""
        self.part(rows(fault=4), 0, ROWS, self.keys())
        d = self.daemon(DETECTORS + FIELD, keys=self.keys())
        last, events = d.status()['durability']['events_last'], []
        with subprocess.Popen([harness.HANKEL, 'tail', '--from', f'127.0.0.1:{d.port["binary tcp"]}', '--events', '--since', '0', '--format', 'jsonl'],
                              stdout=subprocess.PIPE, text=True) as tail:
            while len(events) < last:
                line = json.loads(tail.stdout.readline())
                events += [line] if 'event' in line else []
            tail.send_signal(signal.SIGINT)
        raised = [e for e in events if e['event'] == 'raised']
        self.assertEqual([e['sensor'] for e in raised if not e.get('secondary')], [NAMES[FAULTY] + '#residual'])
        secondary = [e for e in raised if e.get('secondary')]
        self.assertTrue(secondary)
        self.assertEqual({e['by'] for e in secondary}, {NAMES[FAULTY] + '#residual'})
        self.assertTrue(all(e.get('secondary') for e in events if e['sensor'] in {s['sensor'] for s in secondary}))
        self.assertEqual(d.stop(), 0)
        verify = subprocess.run([harness.HANKEL, 'state', 'verify', f'{self.state}/there'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(verify.returncode, 0, verify.stdout + verify.stderr)


FAULTY_DAEMON = os.environ.get('FAULTY_DAEMON')


@unittest.skipUnless(FAULTY_DAEMON and harness.BACKEND == 'cpu', 'needs a program of the tests')
class Devices(Restart):
    """The same with three devices, each with its own shard and journal: a field is on one of them."""
    how = {'program': FAULTY_DAEMON, 'backend': 'cuda', 'environment': {'HANKELD_DEVICES': '3'}}
    between = (lambda self: self.how, 0)
    test_who_is_to_blame = None

    def several(self, sections, keys, devices=3, **how):
        return self.daemon(DETECTORS + sections, keys=keys, program=FAULTY_DAEMON, backend='cuda', environment={'HANKELD_DEVICES': str(devices)}, **how)

    def test_another_number(self):
        """If sensors of a field are on other devices than its series, the rest of the field continues, and the daemon serves."""
        values = rows(n=300)
        for life, devices in enumerate((3, 2, 1, 3)):
            d = self.several(FIELD, self.keys(), devices)
            with d.client() as c:
                self.send(c, c.register(*NAMES), values[75 * life:75 * life + 75], 75 * life)
                c.ping()
                self.through(d)
            self.balanced(d.status())
            self.assertEqual(d.status()['points']['rejected'], 0)
            self.assertEqual(d.stop(), 0)

    def test_a_machine_and_a_field(self):
        """Sensors may be in groups and in fields, which the daemon reports at its start; sensors in neither are spread over the devices."""
        groups = ('[group house]\nmatch = roof/(*)/*\n[group wide]\nmatch = (*)/wind\n' + FIELD +
                  '[field winds]\nmatch = farm/*\noperator = residual\ndetector = faults\nq = 5\n')
        names = [f'roof/{i}/{what}' for i in range(8) for what in ('power', 'heat')] + [f'farm/{i}/{what}' for i in range(8) for what in ('wind', 'oil')]
        d = self.several(groups + '[detector rest]\nmatch = *\nwindow = 8\nalert = off\n', KEYS)
        told = [line for line in d.log if 'may have sensors in common' in line]
        self.assertEqual([line.split('warning: ')[1] for line in told],
                         [f'{pair} may have sensors in common: with several devices the sensors of both are all on one of them'
                          for pair in ('[group house] and [field roofs]', '[group wide] and [field roofs]', '[group wide] and [field winds]')])
        with d.client() as c:
            handles = c.register(*names)
            for t in range(20):
                c.send(harness.points(handles, [START + t * SECOND] * len(names), [float((t * 7 + k) % 5) for k in range(len(names))]))
            c.ping()
            self.through(d)
            status = d.status()
            self.assertEqual(status['fields'], {'fields': 2, 'members': 32})
            self.assertEqual(status['groups'], {'machines': 8 + 8, 'members': 16 + 8})
            alone = [h & 0xffffff for h in c.register(*(f'alone {i}' for i in range(30)))]
        self.assertEqual(len({slot % 3 for slot in alone}), 2)  # the third device has more sensors for now
        self.assertEqual(len({h % (1 << 24) % 3 for h in handles}), 1)
        self.assertFalse([line for line in d.log if 'is in none' in line], d.log)

    def test_check_says_so(self):
        for keys, said in (('backend = auto\n', True), ('backend = auto\ndevices = 1\n', False), ('backend = cpu\n', False)):
            with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
                f.write('[daemon]\n' + keys + DETECTORS + FIELD + '[group house]\nmatch = roof/(*)/*\n')
                f.flush()
                run = subprocess.run([harness.HANKELD, '-c', f.name, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual('[group house] and [field roofs] may have sensors in common' in run.stdout, said, run.stdout)


class Replay(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='hankel-fields-')
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, 'w') as f:
            f.write(text)
        return path

    def table(self, values):
        return self.path('roofs.csv', 'time,' + ','.join(NAMES) + '\n' + ''.join(
            f'{START // SECOND + t},' + ','.join('' if v is None else repr(v) for v in row) + '\n' for t, row in enumerate(values)))

    def replay(self, table, keys, *more, code=0):
        run = subprocess.run([harness.HANKEL, 'replay', '--field', keys, '--detector', 'algorithm=shift,window=32', '--format', 'jsonl', *more, table],
                             capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(run.returncode, code, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()], run.stderr

    def raised(self, items):
        return [i for i in items if i.get('event') == 'raised']

    def test_one_faulty_sensor_gives_one_alert(self):
        items, said = self.replay(self.table(rows()), 'q=5,blame=32')
        self.assertEqual(said, '')
        first = [e for e in self.raised(items) if not e.get('secondary')]
        self.assertEqual([e['sensor'] for e in first], [NAMES[FAULTY] + '#residual'])
        self.assertLess(abs(first[0]['instant'] - START - FAULT * SECOND), 20 * SECOND)
        self.assertTrue(1.5 < first[0]['after'] - first[0]['before'] < 3.5, first[0])
        for e in self.raised(items):  # a neighbour's alert names the faulty sensor
            if e.get('secondary'):
                self.assertEqual(e['by'], NAMES[FAULTY] + '#residual')
        ended = [e for e in items if e.get('event') == 'cleared']
        self.assertTrue(all(e.get('secondary', False) == any(r['id'] == e['id'] and r.get('secondary') for r in self.raised(items)) for e in ended))
        results = [i for i in items if 'value' in i]
        self.assertEqual(len(results), N * (ROWS - 4 - 192))  # members take part from `wait` rows on, settle in 96 and learn in 96
        before = [abs(i['value']) for i in results if i['time'] < START + FAULT * SECOND]
        self.assertLess(sum(before) / len(before), 0.6)

    def test_weather_alone_is_none(self):
        items, _ = self.replay(self.table(rows(fault=0)), 'q=5,blame=32')
        self.assertEqual(self.raised(items), [])

    def test_neighbours_of_a_file(self):
        table = self.table(rows())
        edges = self.path('edges', '# who is next to whom\n' + ''.join(f'{a} {b}\t2\n' for i, a in enumerate(NAMES) for b in NAMES[:i] if b != NAMES[0]))
        items, said = self.replay(table, f'q=5,blame=32,neighbours={edges}')
        self.assertEqual({e['sensor'] for e in self.raised(items) if not e.get('secondary')}, {NAMES[FAULTY] + '#residual'})
        self.assertEqual({i['sensor'] for i in items}, {n + '#residual' for n in NAMES[1:]})
        self.assertIn('1 of 10 sensors have no residual', said)
        places = self.path('places', ''.join(f'{n},{i},0\n' for i, n in enumerate(NAMES)))
        items, _ = self.replay(table, f'q=4,blame=32,neighbours=nearest,positions={places}')
        self.assertEqual({e['sensor'] for e in self.raised(items) if not e.get('secondary')}, {NAMES[FAULTY] + '#residual'})

    def test_holes(self):
        values = rows()
        rng = random.Random(1)
        holes = [[None if rng.random() < 0.1 or (i == 7 and 600 < t < 800) else v for i, v in enumerate(row)] for t, row in enumerate(values)]
        items, _ = self.replay(self.table(holes), 'q=5,blame=32')
        for name in NAMES:  # as if all were there
            before, after = ([i['value'] for i in items if 'value' in i and i['sensor'] == name + '#residual' and (i['time'] >= START + FAULT * SECOND) == late]
                             for late in (False, True))
            self.assertLess(statistics.pstdev(before), 0.7, name)
            self.assertLess(abs(statistics.mean(after) - (2 if name == NAMES[FAULTY] else -0.2)), 0.4, name)
        there = sum(v is not None for row in holes[300:] for v in row)
        self.assertTrue(0.95 * there < sum('value' in i for i in items if i['time'] >= START + 300 * SECOND) <= there)

    def test_what_cannot_be(self):
        table = self.table(rows(n=150))
        for keys, named in (('q=1', 'q = 1'), ('hop=2', 'hop'), ('neighbours=nearest', 'positions'), ('members=5', 'members = 5')):
            self.assertIn(named, self.replay(table, keys, code=2)[1])
        bad = self.path('bad', 'a b\na\n')
        self.assertIn('line 2', self.replay(table, f'neighbours={bad}', code=1)[1])
        self.assertIn('No such file', self.replay(table, 'neighbours=/nowhere', code=1)[1])
        self.assertIn('no sensor of the field has a residual', self.replay(table, 'q=5,blame=32')[1])


if __name__ == '__main__':
    harness.main(needs_gpu=False)
