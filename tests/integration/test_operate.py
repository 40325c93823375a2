"""Operators' requests: acknowledgements, maintenance windows, and the flap limit; also over a kill and a restart, with a journal and without.
By the Python client, `hankel ack` and `hankel maintenance` (libhankel), and lines of the text protocol."""
import calendar
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import SECOND, START, until

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402

DETECTOR = 'window=8,rank=2,interval=1s,alert=0.6'


def seconds_of(text):
    return calendar.timegm(time.strptime(text, '%Y-%m-%dT%H:%M:%SZ'))


def value(n):
    """A step every 30 points, each an alert."""
    return float(10 * ((n // 30) % 2) + (n * 7) % 5 * 0.125)


def spikes(n, quiet=False):
    """Three high points every 45 points; each time they raise one or two alerts."""
    return (20.0 if n % 45 in (20, 21, 22) and not quiet else 0) + (n * 7) % 5 * 0.125


class Operate(harness.Case):
    mode = 'none'

    def setUp(self):
        self.state = tempfile.TemporaryDirectory(prefix='hankeld-operate-')
        self.addCleanup(self.state.cleanup)
        self.sent = {}
        self.d = None

    def start(self, keys='', sections='', **how):
        if self.d:
            self.d.clean()
        kept = f'durability = {self.mode}\nstate = {self.state.name}\n' if self.mode != 'none' else ''
        self.d = harness.Daemon(sections + harness.section('all', '*', DETECTOR), keys='threads = 2\n' + kept + keys, **how)
        self.addCleanup(self.d.clean)
        self.client = hankel.Client(f'127.0.0.1:{self.d.port["binary tcp"]}', timeout=harness.WAIT)
        self.watcher = hankel.Client(f'127.0.0.1:{self.d.port["binary tcp"]}', timeout=harness.WAIT)
        self.addCleanup(self.client.close)
        self.addCleanup(self.watcher.close)
        self.watcher.subscribe('*', scores=False, notices=False, details=True, since=-1)

    def feed(self, sensor, points, at=START, value=value):
        first = self.sent.get(sensor, 0)
        for n in range(first, first + points):
            self.client.send(sensor, at + n * SECOND, value(n))
        self.sent[sensor] = first + points
        self.client.sync()
        until(lambda: self.client.status()['points']['pending'] == 0, 'the scores')

    def told(self):
        """All events that the watcher has not read yet, once all scores are there. Two answers without an event before them show that none is on its way."""
        events, before = [], -1
        while len(events) != before:
            before = len(events)
            until(lambda: (d := self.watcher.status()['durability']).get('events_shown') == d.get('events_last'), 'all events to be shown')
            for _ in range(2):
                self.watcher.status()
            while event := self.watcher.read(0):
                events.append(event)
        return events

    def next(self, kind, timeout=harness.WAIT):
        """The next event; asserts its kind."""
        event = self.watcher.read(timeout)
        self.assertEqual(event.kind if event else None, kind, event)
        return event

    def raise_one(self, sensor):
        """Feeds until the first alert; returns the event."""
        for _ in range(200):
            self.feed(sensor, 1)
            if self.standing(sensor):
                return until(lambda: next((e for e in (self.watcher.read(harness.WAIT),) if e and e.kind == 'raised'), None), 'the alert')
        self.fail('no alert')

    def command(self, *arguments):
        run = subprocess.run([harness.HANKEL, *arguments[:1], '--from', f'127.0.0.1:{self.d.port["binary tcp"]}', *arguments[1:]],
                             capture_output=True, text=True, timeout=harness.WAIT)
        return run.returncode, run.stdout + run.stderr

    def standing(self, sensor):
        return [a for a in self.client.status()['alerts']['first'] if a['sensor'] == sensor]

    def restart(self, **how):
        if self.mode == 'journal':
            self.d.process.kill()
            self.d.process.wait(harness.WAIT)
        else:
            self.d.stop()
        self.start(**how)

    def test_acknowledged(self):
        self.start()
        text = socket.create_connection(('127.0.0.1', self.d.port['text tcp']), harness.WAIT)
        self.addCleanup(text.close)
        lines = text.makefile()
        text.sendall(b'events *\n')
        until(lambda: self.d.status()['subscribers']['count'] == 2, 'its subscription')
        raised = self.raise_one('press')
        self.assertEqual(raised.channel, 'score')
        self.assertTrue(0 < raised.severity and 1 <= raised.margin and raised.spread_before > 0, raised)
        self.assertEqual(self.standing('press')[0].get('by'), None)
        for sensor, number, said in (('nobody', 0, 'no sensor'), ('press', 9, 'the alert press:9 does not stand')):
            done, line = self.client.acknowledge(sensor, number)
            self.assertFalse(done)
            self.assertIn(said, line)
        before = time.time_ns()
        code, said = self.command('ack', '--by', 'anna', '--number', str(raised.number), 'press')
        self.assertEqual((code, said), (0, f'press:{raised.number} is acknowledged\n'))
        told = self.next('acknowledged')
        self.assertEqual((told.sensor, told.number, told.by), ('press', raised.number, 'anna'))
        self.assertTrue(before <= told.time <= time.time_ns())
        if self.mode != 'none':
            self.assertEqual((told.position, told.sequence), (raised.position + 1, raised.sequence))
        line = until(lambda: next((e for e in map(json.loads, lines) if e.get('event') == 'acknowledged'), None), 'the line')
        self.assertEqual((line['id'], line['by'], line['time']), (f'press:{raised.number}', 'anna', told.time))
        self.assertEqual(self.command('ack', 'press:99')[0], 1)
        self.assertEqual(self.command('ack', f'nobody:{raised.number}'), (1, f'there is no sensor nobody:{raised.number} (hankel sensors lists them)\n'))
        code, said = self.command('ack', f'press:{raised.number}')  # by the id of the alert
        self.assertEqual(code, 1)
        self.assertRegex(said, r'^the alert of press was acknowledged before, by \S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$')
        self.assertEqual(self.standing('press')[0]['by'], 'anna')
        status = self.client.status()['alerts']
        self.assertEqual((status['standing'], status['acknowledged']), (1, 1))
        if self.mode == 'none':
            return
        self.restart()
        self.assertEqual(self.standing('press')[0]['by'], 'anna')
        self.feed('press', 60)
        cleared = self.next('cleared')
        self.assertEqual((cleared.number, cleared.sequence), (raised.number, raised.sequence + 1))
        late = hankel.Client(f'127.0.0.1:{self.d.port["binary tcp"]}', timeout=harness.WAIT)
        self.addCleanup(late.close)
        late.subscribe('press', scores=False, notices=False, details=True, since=0)
        events = [late.read(harness.WAIT) for _ in range(3)]
        self.assertEqual([e.kind for e in events], ['raised', 'acknowledged', 'cleared'])
        self.assertEqual(events[1], told)
        plain = hankel.Client(f'127.0.0.1:{self.d.port["binary tcp"]}', timeout=harness.WAIT)
        self.addCleanup(plain.close)
        plain.subscribe('press', scores=False, notices=False, since=0, details=False)  # knows nothing of such events
        self.assertEqual([plain.read(harness.WAIT).kind for _ in range(2)], ['raised', 'cleared'])

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ, 'the daemon with other devices is not built')
    def test_those_that_nobody_has_noted_are_first(self):
        """The status shows acknowledgements, whichever device a sensor is on."""
        self.start(program=os.environ['FAULTY_DAEMON'], backend='cuda', environment={'HANKELD_DEVICES': '3'})
        names = [f's{k}' for k in range(12)]
        for sensor in names:
            self.raise_one(sensor)
        for sensor in names[1::2]:
            self.client.acknowledge(sensor, 0, by='otto')
        alerts = self.client.status()['alerts']
        self.assertEqual((alerts['standing'], alerts['acknowledged']), (12, 6))
        self.assertEqual(['by' in a for a in alerts['first']], 6 * [False] + 6 * [True])

    def test_maintenance(self):
        sections = '[maintenance yard]\nmatch = crane*\ndaily = 00:00-24:00\n'
        self.start(sections=sections)
        self.assertTrue(self.raise_one('crane').maintenance)
        self.sent = {s: 0 for s in ('press', 'saw')}
        at = time.time_ns() - 100 * SECOND
        code, said = self.command('maintenance', '--by', 'otto', 'begin', 'pre*', '2h')
        self.assertEqual(code, 0, said)
        end = re.search(r'alerts of pre\* are marked from now on, until (\S+); no sensor has such a name now', said)[1]
        self.assertAlmostEqual(seconds_of(end), time.time() + 7200, delta=60)
        harness.until(lambda: any(f'maintenance of pre* begins, until {end}: requested by otto (127.0.0.1:' in line for line in self.d.log), 'the line of the log')
        self.restart(sections=sections)
        windows = self.client.status()['maintenance']
        self.assertEqual([(w.get('name'), w.get('by'), w['match'], w['now']) for w in windows],
                         [('yard', None, 'crane*', True), (None, 'otto', 'pre*', True)] if self.mode != 'none' else
                         [('yard', None, 'crane*', True)])
        self.assertEqual(windows[0].get('daily'), '00:00-24:00')
        self.assertFalse({'from', 'to'} & set(windows[0]))
        for window in windows[1:]:
            self.assertEqual((window['to'], seconds_of(window['from'])), (end, seconds_of(end) - 7200))
        if self.mode == 'none':
            self.command('maintenance', '--by', 'otto', 'begin', 'pre*', '2h')
        for sensor, marked in (('press', True), ('saw', False)):
            self.feed(sensor, 80, at)  # the alert comes after the first 100 s, by the points' times
            self.sent[sensor] = 0
            events = self.told()
            self.assertGreater(len(events), 1)
            for event in events:
                self.assertEqual(event.maintenance, marked and event.time > at + 100 * SECOND, event)
        for sensor, marked in (('press', True), ('saw', False)):
            self.sent[sensor] = 80
            self.feed(sensor, 80, at)
            events = self.told()
            self.assertTrue(any(e.kind == 'raised' and e.time > at + 100 * SECOND for e in events))
            for event in events:
                if event.kind == 'raised' and event.time > at + 100 * SECOND:
                    self.assertEqual(event.maintenance, marked, event)
        self.assertEqual(self.command('maintenance', 'end', 'pre*')[0], 0)
        self.assertEqual(self.command('maintenance', 'end', 'pre*')[0], 1)
        self.assertEqual(len(self.client.status()['maintenance']), 1)

    def test_a_window_without_sensors_is_told(self):
        """It is opened nevertheless: the sensors may be new ones."""
        self.start()
        self.feed('pump', 1)
        said = {glob: self.command('maintenance', 'begin', glob, '5m') for glob in ('pump', 'p?mp', '*', 'pmup', 'Pump*', 'pump?')}
        self.assertEqual({glob: code for glob, (code, _) in said.items()}, dict.fromkeys(said, 0), said)
        self.assertEqual([glob for glob, (_, text) in said.items() if text.endswith('; no sensor has such a name now (hankel sensors lists them)\n')],
                         ['pmup', 'Pump*', 'pump?'], said)
        self.assertEqual(len(self.client.status()['maintenance']), len(said))

    def test_an_empty_glob_is_refused(self):
        """An empty glob is refused, because it might be meant to match every sensor."""
        self.start()
        code, said = self.command('maintenance', 'begin', '', '5m')
        self.assertEqual((code, said), (2, 'hankel maintenance: the GLOB is empty; * is every sensor (see hankel maintenance --help)\n'))
        self.assertEqual(self.client.maintain('', 300), (False, 'the glob is empty; * is every sensor\n'))
        self.assertEqual(self.client.status()['maintenance'], [])

    def test_what_cannot_be_a_name_is_told(self):
        self.start()
        for arguments, why in ((('begin', 'a\tb', '5m'), 'no control characters'), (('--by', 'otto\t', 'begin', 'a', '5m'), 'no control characters'),
                               (('end', 513 * 'a'), 'at most 512 bytes, and who asks 64\n'), (('--by', 65 * 'a', 'end', 'a'), 'at most 512 bytes, and who asks 64\n')):
            code, said = self.command('maintenance', *arguments)
            self.assertEqual(code, 1)
            self.assertIn(why, said)

    def test_companions(self):
        """An acknowledgement applies to one alert, by its name; a maintenance window of a sensor covers its further algorithms, too."""
        sections = '[detector both]\nmatch = twin*\nalgorithm = ika, svd\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n'
        self.start(sections=sections)
        self.assertEqual(self.command('maintenance', 'begin', 'twin b', '2h')[0], 0)
        self.assertEqual(self.command('maintenance', 'begin', '*c#svd', '2h')[0], 0)
        at = time.time_ns() + SECOND
        for n in range(35):
            for sensor in ('twin a', 'twin b', 'twin c'):
                self.client.send(sensor, at + n * SECOND, value(n))
        self.client.sync()
        until(lambda: self.client.status()['points']['pending'] == 0, 'the scores')
        raised = {event.sensor: event for event in self.told() if event.kind == 'raised'}
        self.assertEqual({sensor: event.maintenance for sensor, event in raised.items()},
                         {'twin a': False, 'twin a#svd': False, 'twin b': True, 'twin b#svd': True, 'twin c': False, 'twin c#svd': True})
        number = raised['twin a#svd'].number
        self.assertEqual(self.command('ack', '--by', 'anna', 'twin a#svd'), (0, f'twin a#svd:{number} is acknowledged\n'))
        told = self.next('acknowledged')
        self.assertEqual((told.sensor, told.number, told.by), ('twin a#svd', number, 'anna'))
        if self.mode != 'none':
            self.restart(sections=sections)
            self.assertEqual({a['sensor']: (a.get('by'), a['maintenance']) for a in self.client.status()['alerts']['first']},
                             {sensor: ('anna' if sensor == 'twin a#svd' else None, event.maintenance) for sensor, event in raised.items()})
        self.assertEqual(self.command('ack', 'twin a#svd')[0], 1)
        self.assertEqual(self.command('ack', 'twin a')[0], 0)

    def test_flapping(self):
        """Alerts beyond three in five minutes are suppressed until there has been none for five minutes."""
        keys = 'flap_limit = 3\nflap_within = 5m\n'
        self.start(keys)
        self.feed('valve', 400, value=spikes)
        events = self.told()
        kinds = [e.kind for e in events if e.kind in ('raised', 'flapping')]
        self.assertEqual(kinds[:4], ['raised'] * 3 + ['flapping'], events)
        self.assertEqual(len(kinds), 4)
        flapping = next(e for e in events if e.kind == 'flapping')
        self.assertFalse([e for e in events if e.number >= flapping.number and e.kind != 'flapping'], events)
        first = self.client.status()['events']
        self.assertEqual(first['flapping'], 1)
        self.assertGreater(first['held_back'], 0)
        if self.mode != 'none':
            self.restart(keys=keys)
        n = self.sent['valve']
        for k in range(400):  # quiet
            self.client.send('valve', START + (n + k) * SECOND, spikes(n + k, True))
        self.client.sync()
        self.sent['valve'] = n + 400
        self.feed('valve', 60, value=spikes)
        events = self.told()
        raised = [e for e in events if e.kind == 'raised']
        self.assertTrue(raised, events)
        self.assertGreater(raised[0].held, 0)
        self.assertEqual(raised[0].number, flapping.number + raised[0].held)

    def test_refused(self):
        """Errors in the file are reported."""
        for text, why in (('match = a', 'needs from and to'), ('daily = 02:00-03:00', 'needs match'),
                          ('match = a\ndaily = 2 to 3', 'two times of the day'), ('match = a\nfrom = yesterday', 'not a time'),
                          ('match = a\nfrom = 2027-02-29T06:00:00Z\nto = 2027-03-02T06:00:00Z', 'from = 2027-02-29T06:00:00Z: there is no such day'),
                          ('match = a\nfrom = 2026-01-01T00:00:00Z\nto = 2026-04-31T00:00:00Z', 'to = 2026-04-31T00:00:00Z: there is no such day'),
                          ('match = a\nduration = 1h', 'needs from and to'), ('match = a\nwhen = now', 'no key'),
                          ('match = a\nfrom = 2026-01-02T00:00:00Z\nto = 2026-01-01T00:00:00Z', 'not after')):
            with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
                f.write(harness.section('all', '*', DETECTOR) + f'[maintenance m]\n{text}\n')
                f.flush()
                run = subprocess.run([harness.HANKELD, '-c', f.name, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(why, run.stderr + run.stdout)
            self.assertEqual(len((run.stderr + run.stdout).splitlines()), 1, run.stderr + run.stdout)


class WithSnapshots(Operate):
    mode = 'snapshot'
    test_refused = None
    test_an_empty_glob_is_refused = None
    test_what_cannot_be_a_name_is_told = None


class WithJournal(Operate):
    mode = 'journal'
    test_refused = None
    test_an_empty_glob_is_refused = None
    test_what_cannot_be_a_name_is_told = None


if __name__ == '__main__':
    harness.main(needs_gpu=False)
