"""operator = focus: changes that travel along a line of sensors, with place, time and direction; in a recording, and in a daemon that is killed."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED

N, ROWS = 20, 900
TENTH = SECOND // 10
NAMES = [f'trunk/{i:02d}/p' for i in range(N)]
POSITIONS = [200 * i + 7 * (i % 3) for i in range(N)]
CHANGES = ((400, 1450.0), (650, 2710.0))  # row and place of each
DETECTORS = '[detector raw]\nmatch = trunk/*\nwindow = 8\ninterval = 100ms\nalert = off\n[detector strength]\nmatch = none\nalgorithm = shift\nwindow = 16\n'


def rows(size=1.5, seed=3, n=ROWS, places=CHANGES):
    """Noise with changes that travel at 1000 m/s."""
    rng, out = random.Random(seed), []
    for t in range(n):
        out.append([50 + rng.gauss(0, 1) - size * sum(t >= begins + round(abs(x - p) / 100) for begins, p in places) for x in POSITIONS])
    return out


def field(positions, more=''):
    return f'[field trunk]\nmatch = trunk/*\noperator = focus\ndetector = strength\ninterval = 100ms\npositions = {positions}\nspeed = 1000\nreach = 1500\n{more}'


class Case(harness.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankel-focus-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.positions = self.path('line', '# the trunk\n' + ''.join(f'{n} {x}\n' for n, x in zip(NAMES, POSITIONS)))

    def path(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def replay(self, values, keys='speed=1000,reach=1500', code=0, names=NAMES):
        table = self.path('trunk.csv', 'time,' + ','.join(names) + '\n' + ''.join(f'{START // SECOND + t / 10:.1f},' + ','.join(map(repr, row)) + '\n' for t, row in enumerate(values)))
        run = subprocess.run([harness.HANKEL, 'replay', '--field', f'operator=focus,positions={self.positions},interval=100ms,{keys}', '--detector', 'algorithm=shift,window=16', '--format', 'jsonl', table],
                             capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(run.returncode, code, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()], run.stderr

    def found(self, items):
        return [e for e in items if e.get('event') == 'raised' and e['sensor'] == 'line']


class Replay(Case):
    def test_place_and_time(self):
        items, said = self.replay(rows())
        self.assertEqual(said, '')
        found = self.found(items)
        self.assertEqual(len(found), len(CHANGES), found)
        for e, (begins, place) in zip(found, CHANGES):
            self.assertLess(abs(e['instant'] - START - begins * TENTH), 3 * TENTH)
            self.assertLess(abs(e['after'] - place), 150)
            self.assertEqual(e['by'], min(zip(NAMES, POSITIONS), key=lambda s: abs(s[1] - e['after']))[0])
            self.assertTrue(e['travels'])
        strengths = [i for i in items if 'value' in i]
        self.assertEqual({i['sensor'] for i in strengths}, {n + '#focus' for n in NAMES})
        self.assertEqual(self.found(self.replay(rows(size=0))[0]), [])  # no alert where nothing travels

    def test_what_a_sensor_alone_sees(self):
        """The same changes in the same readings: no alert of a sensor alone distinguishes them from chance."""
        values = rows(size=1.25)
        found = self.found(self.replay(values)[0])
        self.assertEqual(len(found), len(CHANGES), found)
        table = os.path.join(self.folder, 'trunk.csv')
        run = subprocess.run([harness.HANKEL, 'replay', '--detector', 'algorithm=shift,window=16', '--format', 'jsonl', table], capture_output=True, text=True, timeout=harness.WAIT)
        alone = {e['sensor'] for e in map(json.loads, run.stdout.splitlines()) if e.get('event') == 'raised' and any(0 <= e['instant'] - START - b * TENTH < 2 * SECOND for b, _ in CHANGES)}
        self.assertLess(len(alone), 2 * N // 3)

    def test_what_cannot_be(self):
        values = rows(n=200)
        for keys, named, code in (('speed=1000', 'reach', 2), ('speed=0,reach=1', 'speed = 0', 2), ('speed=1000,reach=1500,q=3', 'focus has none of the keys', 2),
                                  ('speed=1,reach=1500', 'over 4095 rows', 1), ('speed=1000,reach=1500,block=100', 'block = 100', 2)):
            self.assertIn(named, self.replay(values, keys, code)[1])
        self.assertIn('no sensor of the line has a value', self.replay(values[:50])[1])
        self.assertIn('lacks 1 of the 20 sensors', self.replay([row[:-1] for row in values], names=NAMES[:-1])[1])
        self.positions = self.path('bad', 'a 1\nb\n')
        self.assertIn('line 2: not NAME X', self.replay(values, code=1)[1])


class Daemon(Case):
    def keys(self):
        return f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.folder}/state\nsnapshot = 1h\n'

    def lines(self, d, n):
        """The lines of `hankel tail` for the first n alerts of the line."""
        tail = subprocess.Popen([harness.HANKEL, 'tail', '--from', f'127.0.0.1:{d.port["binary tcp"]}', '--events', '--since', '0', '--match', 'trunk#field'], stdout=subprocess.PIPE, text=True)
        said = []
        while len(said) < n:
            line = tail.stdout.readline()
            said += [line] if 'RAISED' in line else []
        tail.terminate()
        tail.wait()
        tail.stdout.close()
        return said

    def part(self, values, first, behind, kill=False):
        """Runs a daemon that gets these rows. Returns the results of its derived sensors, and its event log."""
        d = self.daemon(DETECTORS + field(self.positions), keys=self.keys(), ends=-signal.SIGKILL if kill else 0)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | 16, '*#*')
            handles = c.register(*NAMES)
            for t in range(first, behind):
                c.send(harness.points(handles, [START + t * TENTH] * N, values[t]))
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            subscriber.drain(0.3)
            self.assertEqual(d.status()['fields'], {'fields': 1, 'members': N})
            events = d.events()
            self.said = self.lines(d, sum(e[0] == 'trunk#field' and e[2] == 'raised' for e in events))
            if kill:
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        if not kill:
            self.assertEqual(d.stop(), 0)
        return sorted((n, t, v, repr(z), s) for n, t, v, z, s in subscriber.results if '#' in n), events, d

    def test_the_daemon_says_what_replay_says(self):
        values = rows()
        results, events, d = self.part(values, 0, ROWS)
        items, _ = self.replay(values)
        self.assertEqual([(n, t, v) for n, t, v, *_ in results if n.endswith('#focus')], sorted((i['sensor'], i['time'], i['value']) for i in items if 'value' in i))
        own = [v for n, _, v, *_ in results if n == 'trunk#field']
        self.assertTrue(own and all(0 <= v < 1 for v in own) and max(own) > 0.5)
        raised = [e for e in events if e[0] == 'trunk#field' and e[2] == 'raised']
        self.assertEqual([e[5] for e in raised], [e['instant'] for e in self.found(items)])
        log = '\n'.join(d.log)
        for e, line in zip(self.found(items), self.said, strict=True):
            self.assertIn(f"a change began at position {e['after']:.6g}, near {e['by']}, at 20", line)
            self.assertRegex(line, r' UTC and travels at 1000 a second, group \d\.\d\d times its threshold, ')
            self.assertIn(f"at position {e['after']:.6g}, near {e['by']}, at 20", log)
        cleared = re.findall(r'alert trunk#field:\d+ cleared \((\w+)\): (.*)', log)
        self.assertTrue(cleared)
        for rule, said in cleared:
            self.assertEqual(rule, 'focus')
            self.assertRegex(said, r'^a change began at position [\d.]+ at \S+ \S+ UTC and travels at 1000 a second( towards lower positions)?, at most \d\.\d\d times its threshold(, severity [\d.]+ \(\w+\))?$')

    def test_goes_on(self):
        """A daemon that is killed in the middle of a change, and ended, gives bit for bit the results of one run."""
        values = rows()
        expected, events, _ = self.part(values, 0, ROWS)
        self.assertTrue(any(e[0] == 'trunk#field' and e[2] == 'raised' for e in events))
        shutil.rmtree(f'{self.folder}/state')
        results, told, cuts = [], [], [0, 150, 410, 445, ROWS]
        for first, behind in zip(cuts, cuts[1:]):
            more, told, _ = self.part(values, first, behind, kill=behind in (150, 410))
            results += more
        self.assertEqual(sorted(results), expected)
        self.assertEqual(sorted(told), sorted(events))

    def test_check(self):
        for more, code, named in (('', 0, 'has positions for 20 sensors, 4 places each'), ('', 0, 'an alert comes 3.7 s after the change begins'), ('flow = 1000\n', 1, 'slower than the change'),
                                  ('neighbours = auto\n', 1, 'focus has none of the keys'), ('travel = up\n', 1, 'neither outward nor onward')):
            path = self.path('hankeld.conf', DETECTORS + field(self.positions, more))
            run = subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual((run.returncode, named in run.stdout + run.stderr), (code, True), run.stdout + run.stderr)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
