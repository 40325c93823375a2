#!/usr/bin/env python3
"""hankel replay --budget: a fleet's alerts become few incidents, which say who, where and since when."""
import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

import harness

STEP = 300  # seconds
BEGIN = 1700000000
CAUSE, STORM, END = 1000, 1300, 1500  # lines
NAMES = [f'hall{h}.m{m}.c{c}' for h in range(4) for m in range(5) for c in range(5)]


def fleet():
    """100 sensors of noise; a cause in hall1.m2, which c0 shows first, and a storm in a tenth of the fleet at once."""
    chance = random.Random(5)
    lines = ['time,' + ','.join(NAMES)]
    for t in range(END):
        values = []
        for i, name in enumerate(NAMES):
            x = chance.gauss(0, 1)
            if name.startswith('hall1.m2.') and CAUSE + 2 * int(name[-1]) <= t < CAUSE + 30:
                x += 12
            if i % 10 == 0 and STORM <= t < STORM + 30:
                x += 12
            values.append(f'{x:.3f}')
        lines.append(f'{BEGIN + STEP * t},' + ','.join(values))
    return '\n'.join(lines) + '\n'


def replay(*options, data=None):
    return subprocess.run([harness.HANKEL, 'replay', '--backend', 'cpu', *options], input=data, capture_output=True, text=True, timeout=harness.WAIT)


class Incidents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, 'fleet.csv')
        cls.text = fleet()
        with open(cls.path, 'w') as file:
            file.write(cls.text)

    def incidents(self, budget, *options):
        run = replay('--budget', budget, '--format', 'jsonl', *options, self.path)
        self.assertEqual(run.returncode, 0, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()]

    def test_cause_and_storm(self):
        told = self.incidents('10/day')

        def during(line, lines=20):
            return [i for i in told if BEGIN + STEP * line <= i['time'] // 10**9 <= BEGIN + STEP * (line + lines)]
        machine = [i for i in during(CAUSE) if i.get('node') == 'hall1.m2']
        self.assertEqual(len({i['id'] for i in machine}), 1, machine)
        last = machine[-1]
        self.assertIn(last['incident'], ('told', 'update'))
        self.assertEqual((last['first'], last['of']), ('hall1.m2.c0', 5))
        self.assertGreaterEqual(last['below'], 3)
        self.assertGreater(last['company'], 3)
        began = [s['raised'] for s in last['sensors']]
        self.assertEqual(began, sorted(began))
        self.assertEqual([s['sensor'] for s in last['sensors'] if s['sensor'].startswith('hall1.m2.')],
                         [f'hall1.m2.c{c}' for c in range(5) if f'hall1.m2.c{c}' in {s['sensor'] for s in last['sensors']}])
        storm = [i for i in during(STORM, 0) if i['incident'] == 'told']
        self.assertTrue(1 <= len(storm) <= 3, storm)
        self.assertGreaterEqual(max(i['count'] for i in storm), 8)

    def test_budget_holds(self):
        for budget in (0, 2, 10):
            decisions = self.incidents(f'{budget}/day')
            times = [i['time'] for i in decisions if i['incident'] == 'told']
            most = max([sum(t <= other < t + 86400 * 10**9 for other in times) for t in times], default=0)
            self.assertLessEqual(most, budget + max(3, budget / 2) if budget else 0)
            ids = [i['id'] for i in decisions if i['incident'] == 'told']
            self.assertEqual(len(ids), len(set(ids)))  # told at most once
            over = [i['id'] for i in decisions if i['incident'] in ('closed', 'withheld')]
            self.assertEqual(len(over), len(set(over)))
            self.assertGreaterEqual(set(over), set(ids) - {i['id'] for i in decisions if i['incident'] == 'merged'})
            self.assertEqual(any(i['incident'] == 'withheld' for i in decisions), True)

    def test_cut_anyhow(self):
        """Points that come one line at a time give the same decisions."""
        whole = replay('--budget', '5', '--format', 'jsonl', self.path)
        with subprocess.Popen([harness.HANKEL, 'replay', '--backend', 'cpu', '--budget', '5', '--format', 'jsonl', '-'], text=True, bufsize=1,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as piped:
            for line in self.text.splitlines(keepends=True):
                piped.stdin.write(line)
            piped.stdin.close()
            self.assertEqual(piped.stdout.read(), whole.stdout)

    def test_sentences(self):
        run = replay('--budget', '10/day', '--interval', '300', self.path)
        self.assertEqual(run.returncode, 0)
        storm = [line for line in run.stdout.splitlines() if ' of the 100 sensors; first ' in line]
        self.assertRegex(storm[0], r'^2023-11-19 10:33:20  told     #\d+  R \d+\.\d\d over \d\.\d\d  \d+ of the 100 sensors; first hall\S+ at 2023-11-19 '
                         r'10:33:20 \(or hall.*; strongest hall\S+ \(novelty, \d\.\d\); together by chance 1e-\d+; \d told today, \d+ withheld')
        self.assertRegex(run.stderr, r'\d+ events; incidents: \d+ told, \d+ withheld \(gravest R \d')

    def test_wrong_usage(self):
        for options, named in [(('--budget', 'ten'), 'ten'), (('--budget', '-1'), '-1'), (('--budget', '10/week'), '10/week'), (('--budget', 'nan'), 'nan'),
                               (('--budget', '3', '--format', 'csv'), 'csv'), (('--interval', '5'), '--budget'),
                               (('--budget', '3', '--interval', '0'), '--interval')]:
            run = replay(*options, self.path)
            self.assertEqual((run.returncode, run.stdout), (2, ''), options)
            self.assertIn(named, run.stderr)
        self.assertEqual(replay('--budget', '1', '-', data='time,a\n').returncode, 0)


class InDaemon(harness.Case):
    DETECTOR = '[detector all]\nmatch = *\nalgorithm = novelty\n'

    def start(self, budget='10/day', ends=0, **how):
        keys = f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\nmax_ahead = off\n'
        return self.daemon(self.DETECTOR + f'[incidents]\nbudget = {budget}\ninterval = 5m\n', keys=keys, ends=ends, **how)

    def feed(self, daemon):
        subprocess.run([harness.HANKEL, 'feed', '--to', f"127.0.0.1:{daemon.port['binary tcp']}", '--feed', 'fleet', self.path], check=True,
                       capture_output=True, timeout=harness.WAIT)

    def said(self, daemon):
        return [line.split('incident: ', 1)[1] for line in daemon.log if 'notice: incident: ' in line]

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, 'fleet.csv')
        with open(self.path, 'w') as file:
            file.write(fleet())

    def test_as_replay_and_once(self):
        """What the daemon tells is what replay tells; killed behind that, it tells nothing again, and counts on."""
        run = replay('--budget', '10/day', '--interval', '300', '--detector', 'algorithm=novelty', self.path)
        expected = run.stdout.splitlines()
        self.assertGreater(len(expected), 10)
        first = self.start(ends=-signal.SIGKILL)
        self.feed(first)
        harness.until(lambda: len(self.said(first)) >= len(expected), 'all messages')
        self.assertEqual(self.said(first), expected)
        told, position = [first.status()['incidents'][key] for key in ('told_today', 'position')]
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(harness.WAIT)
        again = self.start()
        self.feed(again)  # whose points it has: they count once
        harness.until(lambda: again.status()['incidents']['position'] >= position, 'the place in the log')
        time.sleep(3)  # longer than a tick waits: what would be told again is told by then
        self.assertEqual(self.said(again), [])
        self.assertEqual(again.status()['incidents']['told_today'], told)

    def ask(self, daemon):
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port['http tcp']}/api/v1/incidents", timeout=harness.WAIT) as answer:
            return json.load(answer)

    def test_over_http(self):
        """What stands, the gravest first, what is over, and what stands still stands after a restart."""
        web = '[listen web]\nprotocol = http\naddress = 127.0.0.1:0\n[listen binary]\nprotocol = binary\naddress = 127.0.0.1:0\n'
        expected = replay('--budget', '10/day', '--interval', '300', '--detector', 'algorithm=novelty', self.path).stdout.splitlines()
        first = self.start(listeners=web)
        self.assertEqual(self.ask(first), {'made': True, 'standing': 0, 'incidents': [], 'over': []})
        self.feed(first)
        harness.until(lambda: len(self.said(first)) >= len(expected), 'all messages')
        got = harness.until(lambda: (lambda a: a if a['standing'] and a['standing'] == first.status()['incidents']['open'] else None)(self.ask(first)), 'the board')
        ranks = [i['about']['rank'] for i in got['incidents']]
        self.assertEqual(ranks, sorted(ranks, reverse=True))
        self.assertEqual(len(got['incidents']), got['standing'])
        ids = [i['about']['id'] for i in got['incidents'] + got['over']]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertTrue(10 < len(got['over']) <= 50, len(got['over']))
        for i in got['incidents'] + got['over']:
            began = [s['raised'] for s in i['about']['sensors']]
            self.assertEqual((began, len(began), i['about']['count'] > 0), (sorted(began), min(64, i['about']['count']), True))
            self.assertIn(i['level'], ('notice', 'warning', 'severe'))
        self.assertEqual(({i['stands'] for i in got['incidents']}, {i['stands'] for i in got['over']}), ({True}, {False}))
        several = next(i for i in got['incidents'] + got['over'] if i['about']['count'] > 1)
        self.assertIn('sensors', several['sentence'])
        first.stop()
        again = self.start(listeners=web)
        self.assertEqual([i['about']['id'] for i in harness.until(lambda: self.ask(again)['incidents'], 'what stood')], [i['about']['id'] for i in got['incidents']])


if __name__ == '__main__':
    harness.main()
