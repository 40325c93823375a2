"""Code that the tests of snapshots share: daemons with snapshots are compared with an uninterrupted run."""
import glob
import os
import random
import re
import shutil
import tempfile

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED, VALUES

SENSORS, POINTS = 60, 240
DETECTORS = [('fast', 's?', 'window=16,rank=2,interval=1s,alert=0.5,cooldown=30'),
             ('slow', '*', 'window=20,rank=2,interval=1s,stride=2,alert=0.4,cooldown=0')]
# The stand-in for devices computes as the CPU does; a GPU's last bits differ.
FAULTY = os.environ.get('FAULTY_DAEMON') if harness.BACKEND == 'cpu' else None


class Snapshots(harness.Case):
    mode = 'snapshot'

    @classmethod
    def setUpClass(cls):
        """Results and events of an uninterrupted run."""
        cls.values, cls.rows, cls.events = harness.waves(7, SENSORS, POINTS, (80, 150)), {}, {}
        for name, _, detector in DETECTORS:
            rows, events = harness.uninterrupted({s: v for s, v in cls.values.items() if (len(s) == 2) == (name == 'fast')}, detector)
            cls.rows.update(rows)
            cls.events.update(events)
        assert len(cls.rows) == SENSORS * POINTS and len(cls.events) >= SENSORS

    def setUp(self):
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)

    def start(self, keys='', detectors=None, **how):
        keys = keys if 'snapshot =' in keys else keys + 'snapshot = 1h\n'
        return self.daemon(''.join(harness.section(*d) for d in detectors or DETECTORS),
                           keys=f'threads = 2\nmax_ahead = off\ndurability = {self.mode}\nstate = {self.state}\n{keys}', **how)

    def devices(self, n, **environment):
        return {'backend': 'cuda', 'program': FAULTY, 'environment': {'HANKELD_DEVICES': str(n), **environment}}

    def files(self, shard=0):
        return sorted(glob.glob(f'{self.state}/shard-{shard}/snapshot-*.hks'))

    def feed(self, client, first, behind, seed=1, sensors=None):
        """Sends points first..behind-1 of every sensor, ordered by time, in frames of random sizes."""
        sensors = sensors or list(self.values)
        handle = dict(zip(sensors, client.register(*sensors)))
        rows = [(s, k) for k in range(first, behind) for s in sensors]
        for a, b in harness.cut(random.Random(seed), len(rows), 700):
            client.send(harness.points([handle[s] for s, _ in rows[a:b]], [START + k * SECOND for _, k in rows[a:b]],
                                       [self.values[s][k] for s, k in rows[a:b]]))
        return len(rows)

    def run_part(self, daemon, first, behind, exact=True):
        """Feeds a part, and asserts that its results are those of the uninterrupted run. Returns results and events."""
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
            n = self.feed(feeder, first, behind)
            subscriber.wait_results(n)
            feeder.bye()
            subscriber.drain(0.1)
            if exact:
                self.check(subscriber)
            return subscriber.results, subscriber.events

    def check(self, subscriber):
        for sensor, at, _, score, state in subscriber.results:
            if state != 'late':
                self.assertEqual((score, state), self.rows[sensor, at], (sensor, at))
        for name, number, kind, at, _, instant, score, _, _ in subscriber.events:
            if self.mode == 'snapshot':  # lost alerts come again, and numbers continue; a start publishes `cleared` for them, with the last published figures
                self.assertIn((at, instant, score), [e for (of, what), e in self.events.items() if of.split(':')[0] == name and 'cleared' in (what, kind)
                                                     or (of.split(':')[0], what) == (name, kind)], (name, number, kind))
            else:
                self.assertEqual((at, instant, score), self.events[f'{name}:{number}', kind], (name, number, kind))

    def logged(self, daemon, pattern):
        found = [re.search(pattern, line) for line in daemon.log]
        found = [f for f in found if f]
        self.assertTrue(found, f'{pattern}: not in\n' + '\n'.join(daemon.log))
        return found[0]
