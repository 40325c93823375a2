#!/usr/bin/env python3
"""When incidents end."""
import glob
import os
import pathlib
import signal
import tempfile
import time
import unittest

import harness
from harness import level

BEGIN = 1_600_000_000
RULES = '[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\nhold = 1\n[incidents]\nbudget = 1000/day\ninterval = 1s\n'


class Ends(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, **how):
        return self.daemon(RULES, keys=f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\n', **how)

    def counts(self, d, alerts):
        """The counts of incidents, once there were so many alerts."""
        return harness.until(lambda: (lambda now: now if now['alerts'] >= alerts else None)(d.status()['incidents']), f'{alerts} alerts')

    @staticmethod
    def scored(d, c):
        """Waits until all points of a client are scored: what is scored together with data that are ahead is not known to be late."""
        c.ping()
        harness.until(lambda: d.status()['points']['pending'] == 0, 'the results')

    def test_late_data(self):
        """The data of some sensors come 600 points after those of others: their alerts form one incident, which ends 60 points after them, not with an alert of those
        others, and not with a restart."""
        late, steps = 600, (71, 76, 81)
        d = self.start()

        def feed(client, first, n, alerts=0):
            for t in range(first, first + n):
                times = [BEGIN + late + t] + [BEGIN + t] * 3
                client.send(harness.points(handles, [x * 10**9 for x in times], [level(t, 92)] + [level(t, s) for s in steps]))
            self.scored(d, client)
            return self.counts(d, alerts)
        with d.client() as c:
            handles = c.register('site/live', 'plant/a', 'plant/b', 'plant/c')
            feed(c, 0, 71)
            feed(c, 71, 5, 1)
            feed(c, 76, 5, 2)
            now = feed(c, 81, 11, 3)
            self.assertEqual((now['open'], now['sensors']), (1, 3), now)
            now = feed(c, 92, 9, 4)
            self.assertEqual((now['open'], now['sensors']), (2, 4), now)
        d.stop()
        d = self.start()
        with d.client() as c:
            handles = c.register('site/live', 'plant/a', 'plant/b', 'plant/c')
            self.assertEqual(feed(c, 101, 20)['open'], 2)
            feed(c, 121, 60)
            harness.until(lambda: d.status()['incidents']['open'] == 0, 'their ends')

    def test_late_all_at_once(self):
        """A device that had no connection sends 300 points at once: alerts over 60 points apart are two incidents, and the second ends 60 points later."""
        d = self.start()
        with d.client() as c:
            live, plant = c.register('live', 'plant')

            def send(handle, first, n, begin=None, end=None):
                times = range(first, first + n)
                c.send(harness.points([handle] * n, [(BEGIN + t) * 10**9 for t in times], [level(t, begin) - level(t, end) + level(t) for t in times]))
            for t in range(0, 600, 50):
                send(live, t, 50)
            self.scored(d, c)
            for t in range(0, 300, 50):
                send(plant, t, 50, 71, 231)
            now = self.counts(d, 2)
            self.assertEqual((now['open'], now['sensors']), (1, 1), now)
            send(live, 600, 30)
            c.ping()
            self.assertEqual(self.counts(d, 2)['open'], 1)
            send(live, 630, 50)
            now = harness.until(lambda: (lambda now: now if now['open'] == 0 else None)(d.status()['incidents']), 'its end')
            self.assertEqual((now['told'] + now['withheld'], now['merged']), (2, 0), now)

    def is_late(self, state, sensor):
        """Whether the log says of a sensor's first alert how far the data were, by FORMAT.md."""
        log = b''.join(pathlib.Path(path).read_bytes() for path in glob.glob(f'{state}/**/events*.hke', recursive=True))
        return log[log.index(sensor) - 21] == 8

    def test_late_after_restart(self):
        """The first data after a restart are late: that is known from a snapshot, and from a journal."""
        for killed in (False, True):
            with self.subTest(killed=killed):
                state = f'{self.folder.name}/{killed}'
                keys = f'threads = 1\ndurability = journal\nstate = {state}\n'
                d = self.daemon(RULES, keys=keys, ends=-signal.SIGKILL if killed else 0)
                with d.client() as c:
                    handles = c.register('live', 'plant')
                    for t in range(71):
                        c.send(harness.points(handles, [(BEGIN + x) * 10**9 for x in (600 + t, t)], [level(t)] * 2))
                    self.scored(d, c)
                if killed:
                    d.process.send_signal(signal.SIGKILL)
                    d.process.wait(harness.WAIT)
                else:
                    d.stop()
                d = self.daemon(RULES, keys=keys)
                with d.client() as c:
                    plant, = c.register('plant')
                    for t in range(71, 90):
                        c.send(harness.points([plant], [(BEGIN + t) * 10**9], [level(t, 71)]))
                    c.ping()
                    self.counts(d, 1)
                d.stop()
                self.assertTrue(self.is_late(state, b'plant'))

    def test_late_in_a_burst(self):
        """Of points that come together, those are late that come after later ones; also if so many come of a sensor that some wait for the next batches."""
        for order, n, late in ((('live', 'plant'), 30, True), (('plant', 'live'), 30, False), (('live', 'plant'), 130, True)):
            with self.subTest(order=order, n=n):
                state = f'{self.folder.name}/{order[0]}-{n}'
                d = self.daemon(RULES, keys=f'threads = 1\ndurability = journal\nstate = {state}\n')
                with d.client() as c:
                    handles = dict(zip(('live', 'plant'), c.register('live', 'plant')))
                    for t in range(71):
                        c.send(harness.points(list(handles.values()), [(BEGIN + t) * 10**9] * 2, [level(t)] * 2))
                    self.scored(d, c)
                    # all of them in one message
                    times = {'live': range(1000, 1010), 'plant': range(71, 71 + n)}
                    values = {'live': [level(t) for t in times['live']], 'plant': [level(t, 51 + n) for t in times['plant']]}
                    c.send(harness.points([handles[s] for s in order for _ in times[s]], [(BEGIN + t) * 10**9 for s in order for t in times[s]],
                                          [v for s in order for v in values[s]]))
                    c.ping()
                    self.counts(d, 1)
                d.stop()
                self.assertEqual(self.is_late(state, b'plant'), late)

    def test_what_the_log_says(self):
        """The event log says how far the data were of alerts of late data alone: hankelds of before cannot read these."""
        for late in (10, 30):
            with self.subTest(late):
                state = f'{self.folder.name}/{late}'
                d = self.daemon(RULES, keys=f'threads = 1\ndurability = journal\nstate = {state}\n')
                with d.client() as c:
                    handles = c.register('live', 'plant')
                    for t in range(90):
                        c.send(harness.points(handles, [(BEGIN + x) * 10**9 for x in (late + t, t)], [level(t), level(t, 71)]))
                        if t == 60:
                            self.scored(d, c)
                    c.ping()
                    self.counts(d, 1)
                d.stop()
                self.assertEqual(self.is_late(state, b'plant'), late > 12)

    def two_devices(self, **how):
        """A daemon with two devices."""
        return self.start(backend='cuda', program=os.environ['FAULTY_DAEMON'], environment={'HANKELD_DEVICES': '2'}, **how)

    def feed_two(self, c, then):
        """Sends points of two sensors, of which the first raises an alert; then of the first alone until its incident ends, and before them always what `then` sends.
        Returns the counts of incidents."""
        handles, sent = c.register('a', 'b'), 0

        def send(n, *values):
            nonlocal sent
            for _ in range(n):
                c.send(harness.points(handles[:1 + len(values)], [(BEGIN + sent) * 10**9] * (1 + len(values)), [level(sent, 40), *values]))
                sent += 1

        def over():
            then(handles[1])
            send(5)
            now = self.d.status()['incidents']
            return now if now['open'] == 0 else None
        for t in range(50):
            send(1, level(t))
        self.counts(self.d, 1)
        return harness.until(over, 'its end')

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
    def test_silent_device(self):
        """The only sensor of one of two devices is silent: incidents of the other's end. They stay so after a kill, although nothing but the log says it."""
        d = self.d = self.two_devices(ends=-signal.SIGKILL)
        with d.client() as c:
            now = self.feed_two(c, lambda _: None)
        self.assertEqual((now['alerts'], now['told'] + now['withheld']), (1, 1), now)
        position = harness.until(lambda: (lambda s: s['events_last'] if s['events_last'] == s['events_shown'] else None)(d.status()['durability']), 'the log')
        d.process.send_signal(signal.SIGKILL)
        d.process.wait(harness.WAIT)
        d = self.two_devices()
        harness.until(lambda: d.status()['incidents']['position'] >= position, 'the place in the log')
        self.assertEqual(d.status()['incidents']['open'], 0)

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
    def test_late_device(self):
        """All points of the only sensor of one of two devices are late, as after its sender's clock was set back: incidents of the other's end."""
        d = self.d = self.two_devices()
        late = 0

        def send(handle):
            nonlocal late
            c.send(harness.points([handle], [(BEGIN - 10**6 + late) * 10**9], [level(late)]))
            late += 1
        with d.client() as c:
            now = self.feed_two(c, send)
        self.assertEqual((now['alerts'], now['told'] + now['withheld']), (1, 1), now)
        self.assertGreater(d.status()['points']['late'], 0)

    def test_clocks_ahead(self):
        """All senders' clocks are a little ahead of the daemon's: incidents end nevertheless."""
        d = self.daemon(RULES.replace('1s', '100ms'), keys=f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\n')
        with d.client() as c:
            handles = c.register('a')
            begin, sent = time.time_ns() + 10**9, 0

            def over():
                nonlocal sent
                while sent < 50 or begin + sent * 10**8 < time.time_ns() + 10**9:
                    c.send(harness.points(handles, [begin + sent * 10**8], [level(sent, 40)]))
                    sent += 1
                now = d.status()['incidents']
                return now['alerts'] > 0 and now['open'] == 0
            harness.until(over, 'its end')


if __name__ == '__main__':
    harness.main()
