#!/usr/bin/env python3
"""hankel replay --budget: a fleet's alerts become few incidents, each with its sensors, place and begin."""
import functools
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
import test_notify

STEP = 300  # seconds
BEGIN = 1700000000
CAUSE, STORM, END = 1000, 1300, 1500  # lines
NAMES = [f'hall{h}.m{m}.c{c}' for h in range(4) for m in range(5) for c in range(5)]


def fleet():
    """100 sensors of noise; a fault in hall1.m2, which c0 shows first, and a storm in a tenth of the fleet at once."""
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


def setUpModule():
    global FLEET
    folder = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(folder.cleanup)
    FLEET = os.path.join(folder.name, 'fleet.csv')
    with open(FLEET, 'w') as file:
        file.write(fleet())


@functools.cache
def of_fleet(*options):
    """Runs replay on the fleet."""
    return replay(*options, FLEET)


class Incidents(unittest.TestCase):
    def incidents(self, budget):
        run = of_fleet('--budget', budget, '--format', 'jsonl')
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
        for budget in (0, 10) if harness.SANITIZED else (0, 2, 10):
            decisions = self.incidents(f'{budget}/day')
            times = [i['time'] for i in decisions if i['incident'] == 'told']
            most = max([sum(t <= other < t + 86400 * 10**9 for other in times) for t in times], default=0)
            self.assertLessEqual(most, budget + max(3, budget / 2) if budget else 0)
            ids = [i['id'] for i in decisions if i['incident'] == 'told']
            self.assertEqual(len(ids), len(set(ids)))  # reported at most once
            over = [i['id'] for i in decisions if i['incident'] in ('closed', 'withheld')]
            self.assertEqual(len(over), len(set(over)))
            self.assertGreaterEqual(set(over), set(ids) - {i['id'] for i in decisions if i['incident'] == 'merged'})
            self.assertEqual(any(i['incident'] == 'withheld' for i in decisions), True)

    def test_cut_anyhow(self):
        """Points that come one line at a time give the same decisions."""
        whole = of_fleet('--budget', '10/day', '--format', 'jsonl')
        with tempfile.TemporaryFile('w+') as out:
            with subprocess.Popen([harness.HANKEL, 'replay', '--backend', 'cpu', '--budget', '10/day', '--format', 'jsonl', '-'], text=True, bufsize=1,
                                  stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL) as piped:
                for line in fleet().splitlines(keepends=True):
                    piped.stdin.write(line)
                piped.stdin.close()
            out.seek(0)
            self.assertEqual(out.read(), whole.stdout)

    def test_sentences(self):
        run = of_fleet('--budget', '10/day', '--interval', '300')
        self.assertEqual(run.returncode, 0)
        storm = [line for line in run.stdout.splitlines() if ' of the 100 sensors; first ' in line]
        self.assertRegex(storm[0], r'^2023-11-19 10:33:20  told     #\d+  R \d+\.\d\d over \d\.\d\d  \d+ of the 100 sensors; first hall\S+ at 2023-11-19 '
                         r'10:33:20 \(or hall.*; strongest hall\S+ \(novelty, \d\.\d\): value \S+ is the \w+ in [\d,]+ points .*; together by chance 1e-\d+; \d told today, \d+ withheld')
        self.assertRegex(run.stderr, r'\d+ events; incidents: \d+ told, \d+ withheld \(gravest R \d')

    def test_wrong_usage(self):
        for options, named in [(('--budget', 'ten'), 'ten'), (('--budget', '-1'), '-1'), (('--budget', '10/week'), '10/week'), (('--budget', 'nan'), 'nan'),
                               (('--budget', '3', '--format', 'csv'), 'csv'), (('--interval', '5'), '--budget'),
                               (('--budget', '3', '--interval', '0'), '--interval')]:
            run = replay(*options, FLEET)
            self.assertEqual((run.returncode, run.stdout), (2, ''), options)
            self.assertIn(named, run.stderr)
        self.assertEqual(replay('--budget', '1', '-', data='time,a\n').returncode, 0)


class InDaemon(harness.Case):
    DETECTOR = '[detector all]\nmatch = *\nalgorithm = novelty\n'

    def start(self, budget='10/day', ends=0, more='', **how):
        keys = f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\nmax_ahead = off\n'
        return self.daemon(self.DETECTOR + f'[incidents]\nbudget = {budget}\ninterval = 5m\n' + more, keys=keys, ends=ends, **how)

    def feed(self, daemon):
        subprocess.run([harness.HANKEL, 'feed', '--to', f"127.0.0.1:{daemon.port['binary tcp']}", '--feed', 'fleet', self.path], check=True,
                       capture_output=True, timeout=harness.WAIT)

    def expected(self):
        """The sentences of replay."""
        return of_fleet('--budget', '10/day', '--interval', '300', '--detector', 'algorithm=novelty').stdout.splitlines()

    def replayed(self):
        run = of_fleet('--budget', '10/day', '--interval', '300', '--format', 'jsonl', '--detector', 'algorithm=novelty')
        return [json.loads(line) for line in run.stdout.splitlines()]

    def said(self, daemon):
        return [line.split('incident: ', 1)[1] for line in daemon.log if 'notice: incident: ' in line]

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = FLEET

    def test_as_replay_and_once(self):
        """The daemon reports the incidents that replay reports. Killed after that, it reports none again, and its numbers continue."""
        expected = self.expected()
        self.assertGreater(len(expected), 10)
        first = self.start(ends=-signal.SIGKILL)
        self.feed(first)
        harness.until(lambda: len(self.said(first)) >= len(expected), 'all messages')
        self.assertEqual(self.said(first), expected)
        told, position = [first.status()['incidents'][key] for key in ('told_today', 'position')]
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(harness.WAIT)
        again = self.start()
        self.feed(again)  # the daemon has its points: they count once
        harness.until(lambda: again.status()['incidents']['position'] >= position, 'the place in the log')
        time.sleep(3)  # longer than a tick waits: repeated incidents would have been reported by then
        self.assertEqual(self.said(again), [])
        self.assertEqual(again.status()['incidents']['told_today'], told)

    def test_ends_without_another_alert(self):
        """An incident ends once the data have gone on for 60 points: no other alert need come, whether the data are of the past or of now."""
        rules = '[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\nhold = 1\n[incidents]\nbudget = 1000/day\ninterval = 1s\n'
        keys = f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\n'
        d = self.daemon(rules, keys=keys)
        for name, begin in (('past', BEGIN), ('now', int(time.time()) - 200)):
            with d.client() as c:
                handles = c.register(name)

                def feed(first, n, level):
                    for t in range(first, first + n):
                        c.send(harness.points(handles, [(begin + t) * 10**9], [level + (t * 7) % 5 * 0.125]))
                    harness.until(lambda: c.status()['points']['pending'] == 0, 'scores')
                feed(0, 40, 0.0)
                feed(40, 10, 10.0)
                harness.until(lambda: d.status()['incidents']['open'] == 1, 'an incident')
                feed(50, 50, 10.0)
                time.sleep(1)
                self.assertEqual(d.status()['incidents']['open'], 1)
                feed(100, 90, 10.0)
                harness.until(lambda: d.status()['incidents']['open'] == 0, 'its end')

    def test_one_message_each(self):
        """A receiver gets each reported change of an incident once, in its own message, also over a restart; with `match`, only those of its sensors."""
        hook, few = test_notify.Receiver(), test_notify.Receiver()
        self.addCleanup(hook.end)
        self.addCleanup(few.end)
        receivers = f'[notify hook]\ntype = webhook\nurl = {hook.url("/a")}\nabout = incidents\ngather = 100ms\nrate = 6000\n' \
                    f'[notify few]\ntype = webhook\nurl = {few.url("/a")}\nabout = incidents\nmatch = hall1.m2.*\nmin_severity = 3\nresolved = no\nrate = 6000\n'
        first = self.start(more=receivers)
        self.feed(first)
        last = BEGIN + STEP * (END - 1)
        wanted = [x for x in self.replayed() if x['incident'] not in ('closed', 'withheld') or x['incident'] == 'closed' and x['time'] < last * 10**9]
        harness.until(lambda: len(hook.alerts()) >= len(wanted), 'all messages')
        came = hook.alerts()
        for one in {x['incident'] for x in came}:  # the messages of an incident come in order
            positions = [x['position'] for x in came if x['incident'] == one]
            self.assertEqual(positions, sorted(positions))
        got = sorted(came, key=lambda x: x['position'])
        self.assertEqual([x['about'] for x in got], wanted)
        self.assertEqual([(x['incident'], x['kind'], x['status']) for x in got],
                         [(x['id'], x['incident'], 'resolved' if x['incident'] in ('closed', 'merged') else 'firing') for x in wanted])
        texts = [x['text'] for x in got if x['kind'] in ('told', 'update')]
        harness.until(lambda: len(self.said(first)) >= len(texts), 'all lines')
        self.assertEqual(texts, self.said(first))
        self.assertEqual(len({x['key'] for x in got}), len(got))
        self.assertLess(len(hook.got), len(got) + 1)
        own = [x for x in wanted if x['incident'] in ('told', 'update') and x['severity'] >= 3 and any(s['sensor'].startswith('hall1.m2.') for s in x['sensors'])]
        self.assertGreater(len(own), 0)
        harness.until(lambda: len(few.alerts()) >= len(own), 'those of a few sensors')
        self.assertEqual([x['about'] for x in sorted(few.alerts(), key=lambda x: x['position'])], own)
        first.stop()
        again = self.start(more=receivers)
        harness.until(lambda: all(r['waiting'] == 0 for r in again.status()['notify']), 'the log')
        self.assertEqual(len(hook.alerts()), len(got))

    def test_feedback(self):
        """Operators' marks of an incident are logged, published, listed, and kept over a crash; its sensors cause no reports until the mark is removed."""
        def ack(daemon, *arguments, code=0):
            run = subprocess.run([harness.HANKEL, 'ack', '--from', f"127.0.0.1:{daemon.port['binary tcp']}", *arguments], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual(run.returncode, code, (arguments, run.stderr))
            return run.stdout + run.stderr

        def spikes(at):
            with open(self.path, 'w') as file:
                chance, high = random.Random(7), {1200: 40, 1600: -40, 2000: 80}  # each is new
                file.write('time,a.x,b.y\n' + ''.join(
                    f'{BEGIN + STEP * t},{chance.gauss(0, 1) + high.get(t, 0):.3f},{chance.gauss(0, 1) + high.get(t - 30, 0):.3f}\n' for t in range(max(at) + 100)))

        def told(daemon, n):
            harness.until(lambda: len([x for x in self.said(daemon) if '  told ' in x]) >= n, f'{n} told', 20)
            time.sleep(3)
            return [(x.split('#')[1].split(' ')[0], 'a.x' in x) for x in self.said(daemon) if '  told ' in x]
        self.path = os.path.join(self.folder.name, 'spikes.csv')
        spikes([1200])
        first = self.start(ends=-signal.SIGKILL)
        self.assertIn('no incident #9', ack(first, '--false', '#9', code=1))
        self.feed(first)
        self.assertEqual({own for _, own in told(first, 2)}, {True, False})
        mine = [i for i, own in told(first, 2) if own][-1]
        self.assertIn('has no feedback to undo', ack(first, '--undo', 'a.x', code=1))
        none = 'hankel ack: no judgement is in force\n'
        self.assertEqual(ack(first, '--list'), none)
        self.assertIn('the incident of a.x is expected: its sensors are silent', ack(first, '--expected', '--by', 'anna', 'a.x'))
        self.assertRegex(ack(first, '--list'), rf'^expected: #{mine}  R .*, 1 sensor, by anna, a.x until 2023-11-2\d')
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(harness.WAIT)
        again = self.start(ends=-signal.SIGKILL)
        self.assertRegex(harness.until(lambda: (lambda listed: listed if listed != none else None)(ack(again, '--list')), 'the list'), rf'^expected: #{mine} ')
        word = self.lines(again, 'incidents,since=0 *\n', lambda got: got[-1].get('incident') == 'expected', 'the word')[-1]
        self.assertEqual((word['id'], word['by'], word['count']), (int(mine), 'anna', 1))
        spikes([1200, 1600])  # two days after the reported incident: a.x is withheld, b.y is not
        self.feed(again)
        self.assertEqual([own for _, own in told(again, 1)], [False])
        self.assertIn('as if nothing', ack(again, '--undo', f'#{mine}'))
        self.assertEqual(harness.until(lambda: ack(again, '--list') == none, 'the end of it'), True)
        again.process.send_signal(signal.SIGKILL)
        again.process.wait(harness.WAIT)
        last = self.start()
        spikes([1200, 1600, 2000])
        self.feed(last)
        self.assertEqual({own for _, own in told(last, 2)}, {True, False})

    def write_flat(self, names, rows):
        path = os.path.join(self.folder.name, 'flat.csv')
        with open(path, 'w') as f:
            f.write('time,' + ','.join(names) + '\n')
            f.writelines(f'{BEGIN + STEP * k},' + ','.join(f'{v:.3f}' for v in row) + '\n' for k, row in enumerate(rows))
        return path

    def test_machines_of_groups(self):
        """Sensors whose names are no tree are together by their machine: one incident, which names it. With `match` there are incidents of these sensors alone."""
        names = [f'{kind}-m{m}' for m in range(8) for kind in ('flow', 'heat', 'load')]
        rng = random.Random(3)
        values = [[rng.gauss(0, 1) + (12 if name.endswith('-m5') and k >= 795 else 0) for name in names] for k in range(800)]
        self.path = self.write_flat(names, values)
        daemon = self.start(more='[group press]\nmatch = *-(*)\ninterval = 5m\n')
        self.feed(daemon)
        line = harness.until(lambda: next((s for s in self.said(daemon) if 'press#m5' in s), None), 'the machine')
        self.assertRegex(line, r' [34] of the [34] sensors of \[press#m5\]; first ')
        daemon.stop()
        self.folder = tempfile.TemporaryDirectory()  # another state
        self.addCleanup(self.folder.cleanup)
        self.path = self.write_flat(names, values)
        few = self.start(budget='10/day\nmatch = heat-*')
        self.feed(few)
        harness.until(lambda: any('heat-m5: novelty' in s for s in self.said(few)), 'the sensor of the glob')
        self.assertEqual([s for s in self.said(few) if 'flow-' in s or 'load-' in s or 'sensors' in s], [])

    def test_maintenance_teaches_nothing(self):
        keys = '[maintenance always]\nmatch = hall1.m2.*\nfrom = 2023-11-01T00:00:00Z\nduration = 30d\n'
        daemon = self.start(more=keys)
        self.feed(daemon)
        harness.until(lambda: len(self.said(daemon)) > 15 and daemon.status()['points']['pending'] == 0, 'most messages')
        time.sleep(3)
        events = self.lines(daemon, 'events,incidents,since=0 hall1.m2.*\n', lambda got: got[-1].get('event') == 'cleared', 'their events')
        self.assertTrue(all(x.get('maintenance') and 'incident' not in x for x in events), events)
        self.assertFalse([x for x in self.said(daemon) if 'hall1.m2' in x])

    def lines(self, daemon, asked, done, what):
        """The lines that a subscriber of the text protocol gets, up to the ones that it waits for."""
        got = []
        with daemon.connect('text tcp') as s:
            s.sendall(asked.encode())
            file = s.makefile()
            try:
                while not got or not done(got):
                    got.append(json.loads(file.readline()))
            except TimeoutError:
                self.fail(f'waited for {what}; came: ' + ' '.join(f'{x["incident"]} {x["id"]} {x["time"]}' for x in got if 'incident' in x))
        return [x for x in got if 'event' in x or 'incident' in x or 'gap' in x]

    def test_to_subscribers(self):
        """Incidents and their events come by position, each once, the same over a restart. An event names its incident, the end of an alert that of its
        beginning; a glob selects; the library, tail and the stream agree."""
        web = '[listen web]\nprotocol = http\naddress = 127.0.0.1:0\n[listen binary]\nprotocol = binary\naddress = 127.0.0.1:0\n' \
              '[listen text]\nprotocol = text\naddress = 127.0.0.1:0\n'
        replayed = self.replayed()
        first = self.start(listeners=web)
        self.feed(first)
        harness.until(lambda: len(self.said(first)) >= len(self.expected()), 'all messages')
        log = harness.until(lambda: (lambda s: s['events_last'] if s['events_last'] == s['events_shown'] else None)(first.status()['durability']), 'the log')
        got = self.lines(first, 'events,incidents,since=0 *\n', lambda got: got[-1].get('position', 0) >= log - 1, 'the last event')
        changes, events = [x for x in got if 'incident' in x and 'event' not in x], [x for x in got if 'event' in x]
        positions = [x['position'] for x in got]
        self.assertEqual(positions, sorted(set(positions)))
        plain = [{k: v for k, v in x.items() if k != 'position'} for x in changes if x['incident'] in ('told', 'update')]
        self.assertEqual(plain, [x for x in replayed if x['incident'] in ('told', 'update')])
        over = {x['id']: x for x in replayed if x['incident'] in ('closed', 'withheld')}
        for x in changes:
            if x['incident'] in ('closed', 'withheld'):
                self.assertEqual({**x, 'position': 0}, {**over[x['id']], 'position': 0})
        self.assertGreater(len([x for x in changes if x['incident'] == 'withheld']), 5)
        raised = {x['id']: x['incident'] for x in events if x['event'] == 'raised' and x['severity'] >= 1.5}
        self.assertGreater(len(raised), 30)
        self.assertTrue(all(raised.values()))
        ends = [x for x in events if x['event'] == 'cleared' and x['id'] in raised]
        self.assertGreater(len(ends), 30)
        merged = {x['id']: x['into'] for x in changes if x['incident'] == 'merged'}
        for x in ends:
            self.assertEqual(x['incident'], merged.get(raised[x['id']], raised[x['id']]), x)
        self.assertLessEqual({x['id'] for x in changes}, set(raised.values()))
        told = next(x for x in changes if x['incident'] in ('told', 'update') and x.get('node') == 'hall1.m2')
        only = self.lines(first, f"incidents,since={told['position'] - 1} hall1.m2.*\n", lambda got: got[-1].get('position') == told['position'], 'one')
        self.assertEqual(only[-1], told)
        every = self.lines(first, 'incidents,since=0 *\n', lambda got: got[-1].get('position') == changes[-1]['position'], 'incidents alone')
        self.assertEqual(every, changes)
        few = self.lines(first, 'incidents,since=0 hall1.m2.c0\n', lambda got: got[-1].get('position', 0) >= told['position'], 'those of a sensor')
        self.assertTrue(all('hall1.m2.c0' in {s['sensor'] for s in x['sensors']} for x in few if 'sensors' in x), few)
        self.assertLess(len(few), len(changes) / 2)
        self.tails(first, got, changes)
        self.streams(first, changes)
        first.stop()
        again = self.start(listeners=web)
        self.assertEqual(self.lines(again, 'events,incidents,since=0 *\n', lambda lines: lines[-1].get('position') == positions[-1], 'the same'), got)

    def tails(self, daemon, got, changes):
        at = f"127.0.0.1:{daemon.port['binary tcp']}"
        for options, want in ((('--incidents',), changes), (('--events', '--incidents'), got)):
            with subprocess.Popen([harness.HANKEL, 'tail', '--from', at, '--since', '0', '--format', 'jsonl', *options], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as tail:
                lines = [json.loads(tail.stdout.readline()) for _ in want]
                tail.send_signal(signal.SIGINT)
                tail.communicate(timeout=harness.WAIT)
            self.assertEqual([(x.get('incident'), x['position'], x.get('id')) for x in lines], [(x.get('incident'), x['position'], x.get('id')) for x in want])
            self.assertEqual([x for x in lines if 'event' not in x], changes)
        with subprocess.Popen([harness.HANKEL, 'tail', '--from', at, '--since', '0', '--incidents'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as tail:
            said = [tail.stdout.readline() for _ in changes]
            tail.send_signal(signal.SIGINT)
            tail.communicate(timeout=harness.WAIT)
        self.assertEqual([line.split('  [')[0] for line in said if 'told  ' in line.split('#')[0]], [line for line in self.said(daemon) if 'told  ' in line.split('#')[0]])

    def streams(self, daemon, changes):
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port['http tcp']}/api/v1/stream?what=incidents&since=0", timeout=harness.WAIT) as stream:
            seen = []
            while len(seen) < len(changes):
                line = stream.readline().decode().rstrip()
                if line.startswith('id: '):
                    self.assertEqual(stream.readline(), b'event: incident\n')
                    seen.append((int(line[4:]), json.loads(stream.readline().decode()[6:])))
        self.assertEqual(seen, [(x['position'], x) for x in changes])

    WEB = '[listen web]\nprotocol = http\naddress = 127.0.0.1:0\n[listen binary]\nprotocol = binary\naddress = 127.0.0.1:0\n'

    def ask(self, daemon):
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port['http tcp']}/api/v1/incidents", timeout=harness.WAIT) as answer:
            return json.load(answer)

    def test_over_http(self):
        """The list has open incidents, the most severe first, and closed ones; it is the same after a restart."""
        expected = self.expected()
        first = self.start(listeners=self.WEB)
        self.assertEqual(self.ask(first), {'made': True, 'standing': 0, 'incidents': [], 'over': []})
        self.feed(first)
        harness.until(lambda: len(self.said(first)) >= len(expected), 'all messages')

        def board(daemon, before):
            time.sleep(1)  # twice the time between two updates
            now = self.ask(daemon)
            return now if now == before and now['standing'] == daemon.status()['incidents']['open'] > 0 else None
        got = harness.until(lambda: board(first, self.ask(first)), 'the board')
        ranks = [i['about']['rank'] for i in got['incidents']]
        self.assertEqual(ranks, sorted(ranks, reverse=True))
        self.assertEqual(len(got['incidents']), got['standing'])
        ids = [i['about']['id'] for i in got['incidents'] + got['over']]
        self.assertEqual(len(set(ids)), len(ids))
        of = {told: [i['about']['id'] for i in got['over'] if i['told'] == told] for told in (True, False)}
        self.assertTrue(5 < len(of[True]) <= 50 and 5 < len(of[False]) <= 50, of)
        for i in got['incidents'] + got['over']:
            began = [s['raised'] for s in i['about']['sensors']]
            self.assertEqual((began, len(began), i['about']['count'] > 0), (sorted(began), min(64, i['about']['count']), True))
            self.assertIn(i['level'], ('notice', 'warning', 'severe'))
        self.assertEqual(({i['stands'] for i in got['incidents']}, {i['stands'] for i in got['over']}), ({True}, {False}))
        several = next(i for i in got['incidents'] + got['over'] if i['about']['count'] > 1)
        self.assertIn('sensors', several['sentence'])
        first.stop()
        again = self.start(listeners=self.WEB)
        there = harness.until(lambda: board(again, self.ask(again)), 'what stood')
        self.assertEqual([i['about']['id'] for i in there['incidents']], [i['about']['id'] for i in got['incidents']])
        self.assertEqual([(i['about']['id'], i['told'], i['level'], i['sentence']) for i in there['over']], [(i['about']['id'], i['told'], i['level'], i['sentence']) for i in got['over']])


@unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
class SeveralShards(InDaemon):
    """The same points give the same incidents however many shards there are, and however often the daemon was killed."""
    test_as_replay_and_once = test_over_http = test_to_subscribers = test_one_message_each = test_feedback = test_machines_of_groups = test_maintenance_teaches_nothing = None

    def shards(self, n, **how):
        return self.start(backend='cuda', program=os.environ['FAULTY_DAEMON'], environment={'HANKELD_DEVICES': str(n)}, **how)

    def changes(self, daemon, n):
        """Waits for n logged lines about incidents; returns them without positions and daily counts."""
        got = self.lines(daemon, 'incidents,since=0 *\n', lambda got: sum('incident' in x for x in got) >= n, f'{n} changes')
        return [{k: v for k, v in x.items() if k != 'position'} for x in got]

    def wanted(self):
        """The incidents of replay, except for those that the end of the recording closes there and that stay open here."""
        last = BEGIN + STEP * (END - 1)
        return [x for x in self.replayed() if x['incident'] not in ('closed', 'withheld') or x['time'] < last * 10**9]

    def test_one_and_four(self):
        wanted = self.wanted()
        self.assertGreater(len(wanted), 70)
        for n in (4,) if harness.SANITIZED else (1, 4):
            with self.subTest(shards=n):
                self.folder = tempfile.TemporaryDirectory()
                self.addCleanup(self.folder.cleanup)
                daemon = self.shards(n)
                self.feed(daemon)
                self.assertEqual(self.changes(daemon, len(wanted)), wanted)
                daemon.stop()

    def test_killed_again_and_again(self):
        wanted, chance = self.wanted(), random.Random(1)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for turn in range(6):
            daemon = self.shards(4, ends=0 if turn == 2 else -signal.SIGKILL)
            feed = subprocess.Popen([harness.HANKEL, 'feed', '--to', f"127.0.0.1:{daemon.port['binary tcp']}", '--feed', 'fleet', '--rate', '25000', self.path],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            harness.until(lambda: daemon.status()['durability']['events_shown'] > 12 * turn + chance.randrange(12), 'some events')
            daemon.process.send_signal(signal.SIGTERM if turn == 2 else signal.SIGKILL)  # once their state, from which they continue, is saved
            daemon.process.wait(harness.WAIT)
            feed.kill()
            feed.wait()
        daemon = self.shards(4)
        self.assertGreater(daemon.status()['durability']['events_last'], 50)
        self.feed(daemon)
        got = self.changes(daemon, len(wanted))
        ids = [x['id'] for x in got if x['incident'] == 'told']
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(got, wanted)
        daemon.stop()


if __name__ == '__main__':
    harness.main()
