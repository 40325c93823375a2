"""Groups: the sensors of a machine say together that it has changed, where each says it too faintly to be heard."""
import os
import random
import shutil
import signal
import sys
import tempfile

import harness
from harness import ALERTS, SCORED, SECOND, START

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'proto', 'python'))
import hankel  # noqa: E402

DETECTOR = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'
GROUP = '[group press]\nmatch = plant/(*)/*\n'
KEYS = 'threads = 2\nmax_ahead = off\n'
MACHINES, SENSORS = ('a', 'b'), ('current', 'flow', 'noise', 'pressure')
NAMES = [f'plant/{m}/{s}' for m in MACHINES for s in SENSORS]
ROWS, CHANGE = 600, 400


def rows(seed=3, n=ROWS):
    """Values by row and sensor: noise of different size and level; from CHANGE on all of machine b stand a little higher."""
    rng = random.Random(seed)
    return [[10 ** k * (100 + rng.gauss(0, 1) + (1.2 if name.startswith('plant/b') and i >= CHANGE else 0))
             for k, name in enumerate(NAMES)] for i in range(n)]


class Case(harness.Case):
    def send(self, c, handles, values, first=0, order=None):
        """Rows from `first` on. order: places of points among the rows, each a pair of row and sensor."""
        order = order or [(i, k) for i in range(len(values)) for k in range(len(NAMES))]
        for at in range(0, len(order), 500):
            some = order[at:at + 500]
            c.send(harness.points([handles[k] for _, k in some], [START + (first + i) * SECOND for i, _ in some],
                                  [values[i][k] for i, k in some]))

    def said(self, client):
        """What the series said, and their events."""
        scores = sorted((n, t, z) for n, t, _, z, _ in client.results if '#' in n)
        return scores, [e for e in client.events if '#' in e[0]]

    def run_through(self, values, order=None, keys=KEYS):
        """Feeds a daemon of its own."""
        d = self.daemon(DETECTOR + GROUP, keys=keys)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | ALERTS, 'press#*')
            self.send(c, c.register(*NAMES), values, order=order)
            c.ping()
            points = d.status
            harness.until(lambda: points()['points']['pending'] == 0 and points()['derived']['points'] > 0, 'all points')
            subscriber.drain(0.2)
            self.balanced(d.status())
            return self.said(subscriber), d.status()


class Machines(Case):
    def test_names_the_machine(self):
        d = self.daemon(DETECTOR + GROUP, keys=KEYS)
        values, events, scores = rows(), [], {}
        with hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}') as feeder, hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}') as subscriber:
            subscriber.subscribe('*', details=True)
            for i, row in enumerate(values):
                for name, value in zip(NAMES, row):
                    feeder.send(name, START + i * SECOND, value)
            feeder.sync()
            while (item := subscriber.read(0.5)) is not None:
                if isinstance(item, hankel.Event):
                    events.append(item)
                elif isinstance(item, hankel.Result) and '#' in item.sensor:
                    scores.setdefault(item.sensor, []).append((item.time, item.score))
        self.assertEqual(set(scores), {'press#a', 'press#b'})
        for sensor, said in scores.items():
            times = [t for t, _ in said]
            self.assertEqual(times, sorted(times))
            self.assertTrue(all(0 <= z < 1 for _, z in said))
            self.assertEqual(times[-1] // SECOND, START // SECOND + ROWS - 1 - (ROWS - 1 - 4 + 1) % 3, sensor)
        self.assertLess(max(z for _, z in scores['press#a']), 0.5)
        self.assertGreater(max(z for _, z in scores['press#b']), 0.5)
        self.assertEqual([(e.sensor, e.number, e.kind, e.channel) for e in events],
                         [('press#b', 1, 'raised', 'group'), ('press#b', 1, 'cleared', 'group')])
        raised = events[0]
        self.assertLess(abs(raised.instant - START - CHANGE * SECOND), 8 * SECOND)
        self.assertLess(raised.time, START + (CHANGE + 60) * SECOND)
        self.assertLess(raised.start, raised.instant)
        self.assertGreater(raised.score, 0.5)
        self.assertGreater(raised.margin, 1)
        self.assertGreater(raised.after, raised.before)
        self.assertEqual(dict(scores['press#b'])[raised.time], raised.score)
        status = d.status()
        self.assertEqual(status['groups'], {'machines': 2, 'members': 8})
        self.assertEqual(status['sensors']['count'], 10)
        self.balanced(status)

    def test_order_and_cuts_do_not_matter(self):
        values = rows()
        (scores, events), _ = self.run_through(values)
        self.assertEqual([e[2] for e in events], ['raised', 'cleared'])
        self.assertGreater(len(scores), 2 * ROWS // 3 - 20)
        rng, order, at = random.Random(5), [], [0] * len(NAMES)
        while len(order) < ROWS * len(NAMES):  # no sensor is over two rows ahead of another one
            k = rng.randrange(len(NAMES))
            if at[k] < min(ROWS, min(at) + 3):
                order.append((at[k], k))
                at[k] += 1
        (mixed, mixed_events), _ = self.run_through(values, order, KEYS + 'loops = 3\n')
        self.assertEqual(mixed, scores)
        self.assertEqual(mixed_events, events)

    def test_others_are_in_none(self):
        """Names that do not match, other groups first, and series that nobody can feed."""
        d = self.daemon(DETECTOR + '[group pumps]\nmatch = (*).pump?\nwait = 2\n' + GROUP, keys=KEYS)
        names = ['plant/a', 'plant//x', 'plant/a/x', 'plant/a/y', 'one.pump1', 'one.pump2', '.pump1', 'two.pump1', 'one.pump10', 'other']
        with d.client() as c:
            handles = c.register(*names)
            for i in range(30):
                c.send(harness.points(handles, [START + i * SECOND] * len(names), [float(i % 3)] * len(names)))
            c.ping()
            harness.until(lambda: d.status()['groups']['members'] == 5, 'members')
            self.assertEqual(d.status()['groups']['machines'], 3)
            self.assertEqual(c.register('press#a', 'pumps#one', 'pumps#two', 'pumps#three')[:3], [None] * 3)
        self.balanced(d.status())

    def test_faults_of_the_configuration(self):
        for text, fault in (('[group g]\n', 'needs match'), ('[group g]\nmatch = a*\n', 'one capture'), ('[group g]\nmatch = (*)(*)\n', 'one capture'),
                            ('[group g]\nmatch = (a)(*)\n', 'one capture'), ('[group g]\nmatch = (*)\nwindow = 3\n', 'no such key'),
                            ('[group g]\nmatch = (*)\nresident = 10\n', 'at least'), ('[group g#h]\nmatch = (*)\n', 'has no #'),
                            ('[group g]\nmatch = (*)\n[group g]\nmatch = (*)\n', 'already'), ('[group]\nmatch = (*)\n', 'a name of')):
            with self.subTest(text=text), self.assertRaises(harness.NotReady) as fails:
                harness.Daemon(DETECTOR + text)
            self.assertIn(fault, '\n'.join(fails.exception.args[1] if len(fails.exception.args) > 1 else map(str, fails.exception.args)))


class ComeAndGo(Case):
    def test_evicted_with_the_last_member(self):
        d = self.daemon(DETECTOR + GROUP, keys=KEYS + 'evict = 1s\n')
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | ALERTS, 'press#*')
            for turn in range(2):
                self.send(c, c.register(*NAMES), rows(n=50), first=100 * turn)
                c.ping()
                harness.until(lambda: d.status()['sensors']['count'] == 10 or turn, 'series')
                harness.until(lambda n=10 * (turn + 1): d.status()['sensors']['evicted'] == n, 'eviction')
                self.assertEqual(d.status()['groups'], {'machines': 0, 'members': 0})
                self.assertEqual(d.status()['sensors']['count'], 0)
            subscriber.drain(0.1)
            times = [t for n, t, _, _, _ in subscriber.results if n == 'press#a']
            self.assertGreater(len(times), 15)
        self.balanced(d.status())

    def test_reload_says_what_needs_a_restart(self):
        d = self.daemon(DETECTOR + GROUP, keys=KEYS)
        with d.client() as c, d.client() as subscriber:
            handles = c.register(*NAMES)
            subscriber.subscribe(SCORED | ALERTS, 'press#*')
            self.send(c, handles, rows(n=300))
            c.ping()
            d.configure(DETECTOR.replace('window = 8', 'window = 8\nhold = 2') + GROUP + 'hop = 1\n[group more]\nmatch = more/(*)/*\n', KEYS)
            with d.client() as r:
                taken, lines = r.reload()
            self.assertTrue(taken, lines)
            self.assertIn('[group press] is changed: needs a restart; it stays as it was', lines)
            self.assertIn('[group more] is new: needs a restart', lines)
            d.configure(DETECTOR, KEYS)
            with d.client() as r:
                taken, lines = r.reload()
            self.assertTrue(taken, lines)
            self.assertIn('[group press] is gone: needs a restart; it stays', lines)
            harness.until(lambda: d.status()['sensors']['evicted'] == 10, 'the old sensors')  # the members begin anew, and the series with them
            handles = c.register(*NAMES)
            before = len(subscriber.results)
            self.send(c, handles, rows(n=300), first=300)
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')
            subscriber.drain(0.2)
            self.assertGreater(len(subscriber.results), before + 100)
        self.balanced(d.status())


class Restart(Case):
    def test_killed_with_a_journal(self):
        """Machines warm up again; their series and the numbers of their alerts go on, and the alert that stood ends."""
        state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, state)
        keys, values, events = KEYS + f'durability = journal\nstate = {state}/there\nsnapshot = 1h\n', rows(), []
        stop = None
        for turn in range(3):
            d = self.daemon(DETECTOR + GROUP, keys=keys, ends=-signal.SIGKILL if turn < 2 else 0)
            with d.client() as c, d.client() as subscriber:
                subscriber.subscribe(SCORED | ALERTS, 'press#*')
                handles = c.register(*NAMES)
                for i in range(0, ROWS, 10):
                    self.send(c, handles, values[i:i + 10], first=turn * ROWS + i)
                    if i > CHANGE and turn < 2:
                        subscriber.drain(0.02)
                        if any(e[2] == 'raised' for e in subscriber.events):  # an alert stands
                            break
                harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')
                subscriber.drain(0.3)
                stop = subscriber.events
                events += stop
                self.assertEqual(d.status()['sensors']['count'], 10)
                self.assertEqual(d.status()['groups']['members'], 8)
                self.balanced(d.status())
            if turn < 2:
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        self.assertEqual([e[2] for e in events], ['raised', 'cleared', 'raised', 'cleared', 'raised', 'cleared'])
        numbers = [e[1] for e in events if e[2] == 'raised']
        self.assertEqual(len(set(numbers)), 3, numbers)
        self.assertEqual(numbers, sorted(numbers))
        self.assertEqual([e[1] for e in events if e[2] == 'cleared'], numbers)


if __name__ == '__main__':
    harness.main()
