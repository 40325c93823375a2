"""Alerts that were published before a kill: each still stands, or its end is published, and none is published twice."""
import signal

import harness
from harness import SECOND, START
from snapshots import POINTS, SENSORS, Snapshots


class WithoutJournal(Snapshots):
    def check_told(self, daemon):
        """Asserts that no alert is raised or cleared twice, and that those raised and not cleared are the standing ones. Returns the published
        events: (sensor, number, kind)."""
        told = [e[:3] for e in daemon.events()]
        ends = [e for e in told if e[2] in ('raised', 'cleared')]
        self.assertEqual(len(ends), len(set(ends)))
        opened, closed = ({e[:2] for e in ends if e[2] == kind} for kind in ('raised', 'cleared'))
        alerts = daemon.status()['alerts']
        self.assertLess(alerts['standing'], 100)
        self.assertEqual(opened - closed, {(a['sensor'], a['number']) for a in alerts['first']})
        self.assertLessEqual(closed, opened)
        return told

    def alerts_since_the_snapshot(self, first, second, **how):
        """Kills the daemon when events up to point `second` are published and the last snapshot is of point `first`. Returns the alerts that stood
        then, and the events that the next start published."""
        daemon = self.start(**how)
        self.run_part(daemon, 0, first, exact=False)
        before = self.check_told(daemon)
        self.assertEqual(daemon.stop(), 0)
        daemon = self.start(ends=-signal.SIGKILL, **how)
        self.run_part(daemon, first, second, exact=False)
        like = next(a['sensor'] for a in daemon.status()['alerts']['first'] if len(a['sensor']) == 3)
        with daemon.client() as feeder:  # a sensor with an alert that is in no snapshot
            handle = feeder.register('new')
            feeder.send(harness.points(handle * second, [START + k * SECOND for k in range(second)], self.values[like][:second]))
            feeder.ping()
        harness.until(lambda: (p := daemon.status()['points'])['pending'] == 0 and p['in'] == second + (second - first) * SENSORS, 'all results')
        had = self.check_told(daemon)
        self.assertTrue(set(before) < set(had))
        stood = {(a['sensor'], a['number']) for a in daemon.status()['alerts']['first']}
        self.assertIn(('new', 1), stood)
        daemon.process.kill()
        daemon.process.wait()
        for _ in range(2):
            daemon = self.start(**how)
            ended = self.check_told(daemon)[len(had):]
            self.assertEqual({e[2] for e in ended}, {'cleared'} if self.mode == 'snapshot' else set())
            self.assertEqual(daemon.stop(), 0)
        daemon = self.start(**how)
        self.run_part(daemon, first, POINTS, exact=False)
        self.check_told(daemon)
        return stood, {e[:2] for e in ended}

    def test_alerts_since_the_snapshot(self):
        """For an alert that no longer stands `cleared` is published, once; the others still stand; and numbers continue."""
        stood, ended = self.alerts_since_the_snapshot(115, 150)
        self.assertLessEqual(ended, stood)

    def test_corrected_since_the_snapshot(self):
        """An alert that is in the snapshot, and was corrected after it, still stands."""
        stood, ended = self.alerts_since_the_snapshot(170, 200, detectors=[('all', '*', 'window=40,rank=3,interval=1s,alert=0.3,cooldown=0')])
        self.assertIn(('s0', 1), stood - ended)

    def test_corrected_and_anew(self):
        """The snapshot has a raised alert, which was corrected after it, and the next start has another detector: `cleared` is published, although
        the correction has taken the sequence number that it would have had."""
        keys = 'window=40,rank=3,interval=1s,alert=0.3,cooldown=0'
        at = {}
        for (identity, kind), (time, _, _) in harness.uninterrupted(self.values, keys)[1].items():
            at.setdefault(identity, {})[kind] = (time - START) // SECOND
        sensor, when = next((i.split(':')[0], w['corrected']) for i, w in at.items() if i.endswith(':1') and 'corrected' in w and w.get('cleared', POINTS) > w['corrected'] + 1)
        daemon = self.start(detectors=[('all', '*', keys)])
        self.run_part(daemon, 0, when, exact=False)
        self.assertEqual(daemon.stop(), 0)
        daemon = self.start(detectors=[('all', '*', keys)], ends=-signal.SIGKILL)
        self.run_part(daemon, when, when + 1, exact=False)
        self.assertEqual([e[1:] for e in self.check_told(daemon) if e[0] == sensor], [(1, 'raised'), (1, 'corrected')])
        daemon.process.kill()
        daemon.process.wait()
        daemon = self.start(detectors=[('all', '*', keys.replace('window=40', 'window=44'))])
        self.assertEqual([e[1:] for e in self.check_told(daemon) if e[0] == sensor], [(1, 'raised'), (1, 'corrected'), (1, 'cleared')])
        self.assertEqual(daemon.stop(), 0)


class WithJournal(WithoutJournal):
    mode = 'journal'


if __name__ == '__main__':
    harness.main()
