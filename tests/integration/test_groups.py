"""Groups: the sensors of a machine together show a change that is too faint in each of them."""
import os
import random
import sys

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'proto', 'python'))
import hankeld as hankel  # noqa: E402

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
        """Results of the series, and their events."""
        scores = sorted((n, t, z) for n, t, _, z, _ in client.results if '#' in n)
        return scores, [e for e in client.events if '#' in e[0]]

    def run_through(self, values, order=None, keys=KEYS):
        """Feeds a new daemon."""
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
        last = START + (ROWS - 1 - (ROWS - 1 - 4 + 1) % 3) * SECOND  # time of the last score
        with hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}') as feeder, hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}') as subscriber:
            subscriber.subscribe('*', details=True)
            for i, row in enumerate(values):
                for name, value in zip(NAMES, row):
                    feeder.send(name, START + i * SECOND, value)
            feeder.sync()
            while (item := subscriber.read(0.5 if sum(s[-1][0] == last for s in scores.values()) == 2 else harness.WAIT)) is not None:
                if isinstance(item, hankel.Event):
                    events.append(item)
                elif isinstance(item, hankel.Result) and '#' in item.sensor:
                    scores.setdefault(item.sensor, []).append((item.time, item.score))
        self.assertEqual(set(scores), {'press#a', 'press#b'})
        for sensor, said in scores.items():
            times = [t for t, _ in said]
            self.assertEqual(times, sorted(times))
            self.assertTrue(all(0 <= z < 1 for _, z in said))
            self.assertEqual(times[-1], last, sensor)
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
        for spread in (raised.spread_before, raised.spread_after, events[1].spread_before):
            self.assertTrue(0.3 < 100 * spread / raised.before < 3, raised)  # of the sensor whose levels the event has
        self.assertEqual(dict(scores['press#b'])[raised.time], raised.score)
        status = d.status()
        self.assertEqual(status['groups'], {'machines': 2, 'members': 8})
        self.assertEqual(status['sensors']['count'], 10)
        self.balanced(status)

    def test_one_change_after_the_other(self):
        """Each alert has the score of the row that it is raised with, and is cleared 12 rows (2 shortest) later with the highest since."""
        rng = random.Random(1)
        level = [sum(5 if k % 3 else 1.5 for k in range(min(i // 9, 60))) for i in range(ROWS)]  # many faint steps, and larger ones soon after
        values = [[rng.gauss(0, 1) + level[i] for _ in NAMES] for i in range(ROWS)]
        d = self.daemon(DETECTOR + GROUP + 'threshold = 40\n', keys=KEYS)
        scores, events = {}, {'press#a': [], 'press#b': []}
        with d.client() as c, hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}') as subscriber:
            subscriber.subscribe('press#*', details=True)
            self.send(c, c.register(*NAMES), values)
            end = START + (ROWS - 8) * SECOND  # all alerts have ended long before
            while len({n for n, t in scores if t >= end}) < 2 or any(len(told) < 10 or len(told) % 2 for told in events.values()):
                item = subscriber.read(harness.WAIT)
                self.assertIsNotNone(item, (len(scores), events))
                if isinstance(item, hankel.Event) and item.kind in ('raised', 'cleared'):
                    events[item.sensor].append(item)
                elif isinstance(item, hankel.Result):
                    scores[item.sensor, item.time] = item.score
        grown = 0
        for machine, told in events.items():
            self.assertEqual([e.kind for e in told], ['raised', 'cleared'] * (len(told) // 2))
            for raised, cleared in zip(told[::2], told[1::2]):
                self.assertEqual(raised.score, scores[machine, raised.time])
                self.assertGreater(raised.score, 0.5)
                self.assertEqual(cleared.time - raised.time, 12 * SECOND)
                since = max(z for (n, t), z in scores.items() if n == machine and raised.time <= t <= cleared.time)
                self.assertEqual(cleared.score, since)
                grown += since > raised.score + 0.01
                self.assertAlmostEqual(cleared.margin * (1 - since) / since, 1, 4)
        self.assertGreater(grown, 2)

    def test_dear_ones_are_made_bit_by_bit(self):
        """Work that takes a shard seconds is done in pieces: in between the shard does other work, and reports its progress."""
        d = self.daemon(DETECTOR + GROUP + 'resident = 1000\nhop = 1\n', keys=KEYS)
        rng, n, seen = random.Random(1), 4000 if harness.SANITIZED else 8000, set()
        with d.client() as c, d.client() as watcher:
            handles = c.register('plant/a/flow', 'plant/a/noise')
            for at in range(0, n, 2000):
                c.send(harness.points(handles * 2000, [START + i * SECOND for i in range(at, at + 2000) for _ in handles],
                                      [rng.gauss(0, 1) for _ in range(2 * 2000)]))

            def all_made():
                status = watcher.status()
                made = status['derived']['points']
                seen.add(made)
                return status['points']['in'] - made == 2 * n and status['points']['pending'] == 0
            harness.until(all_made, 'all rows')
        self.assertGreater(len(seen), 12)
        self.balanced(d.status())

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
        """Names that do not match, groups that come first, and series that no peer can feed."""
        d = self.daemon(DETECTOR + '[group pumps]\nmatch = (*).pump?\nwait = 2\n' + GROUP, keys=KEYS)
        names = ['plant/a', 'plant//x', 'plant/a/x', 'plant/a/y', 'one.pump1', 'one.pump2', '.pump1', 'two.pump1', 'one.pump10', 'other']
        with d.client() as c:
            handles = c.register(*names)
            for i in range(30):
                c.send(harness.points(handles, [START + i * SECOND] * len(names), [float(i % 3)] * len(names)))
            c.ping()
            harness.until(lambda: d.status()['groups']['members'] == 5, 'members')
            self.assertEqual(d.status()['groups']['machines'], 3)
            refused = [h is None for h in c.register('press#a', 'pumps#one', 'pumps#two', 'pumps#three', 'pump#three')]
            self.assertEqual(refused, [True] * 4 + [False])  # also before the machine `three` exists
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
                harness.until(lambda: d.status()['groups'] == {'machines': 0, 'members': 0}, 'the end of the machines')
                self.assertEqual(d.status()['sensors']['count'], 0)
            subscriber.drain(0.1)
            times = [t for n, t, _, _, _ in subscriber.results if n == 'press#a']
            self.assertGreater(len(times), 15)
        self.balanced(d.status())


class Changed(Case):
    """Groups change while the daemon runs."""

    def setUp(self):
        self.d = self.daemon(DETECTOR + GROUP, keys=KEYS)
        self.c, self.subscriber = self.d.client(), self.d.client()
        self.addCleanup(self.c.close)
        self.addCleanup(self.subscriber.close)
        self.subscriber.subscribe(SCORED | UNSCORED | ALERTS, '*')
        self.handles = self.c.register(*NAMES)
        self.values, self.sent = rows(), 0

    def feed(self, behind):
        self.send(self.c, self.handles, self.values[self.sent:behind], first=self.sent)
        self.sent = behind
        self.c.ping()
        harness.until(lambda: self.d.status()['points']['pending'] == 0, 'the points')
        self.subscriber.drain(0.2)

    def reload(self, groups, *lines):
        self.d.configure(DETECTOR + groups, KEYS)
        with self.d.client() as c:
            taken, told = c.reload()
        self.assertTrue(taken, told)
        for line in lines:
            self.assertIn(line, told)
        self.windows_stayed()

    def windows_stayed(self):
        """Each sensor has warmed up once only, and none was evicted."""
        warming = {}
        for n, t, _, _, state in self.subscriber.results:
            if '#' not in n and state == 'warming':
                warming.setdefault(n, []).append((t - START) // SECOND)
        for name, at in warming.items():
            self.assertEqual(at, list(range(len(at))), name)
            self.assertLess(len(at), 40)

    def times(self, series):
        return [(t - START) // SECOND for n, t, _, _, _ in self.subscriber.results if n == series]

    def test_others_change(self):
        """An unchanged group is not affected by another one that is added, changed and removed: its results are those of a daemon without reloads."""
        expected, events = self.run_through(self.values)[0]
        self.feed(150)
        other = '[group other]\nmatch = (*)/a/*\nhop = 1\n'
        self.reload(GROUP + other, '[group other] is new')
        self.feed(300)
        self.assertEqual(self.d.status()['groups'], {'machines': 2, 'members': 8})  # it comes after the first group, which has all sensors
        self.reload(GROUP + other.replace('hop = 1', 'hop = 2'), '[group other] is changed: its machines warm up again')
        self.feed(CHANGE + 40)
        self.reload(GROUP, '[group other] was removed')
        self.feed(ROWS)
        scores, told = self.said(self.subscriber)
        self.assertEqual(scores, expected)
        self.assertEqual(told, events)
        self.balanced(self.d.status())

    def test_changed_with_its_members(self):
        """One reload changes a group and the detector of its sensors: series that are removed for two reasons are removed once."""
        self.feed(100)
        self.assertEqual(self.d.status()['sensors']['count'], 10)
        self.d.configure(DETECTOR.replace('window = 8', 'window = 9') + GROUP + 'hop = 1\n', KEYS)
        with self.d.client() as c:
            taken, told = c.reload()
        self.assertTrue(taken, told)
        harness.until(lambda: self.d.status()['sensors']['count'] == 0, 'all have gone')
        self.handles = self.c.register(*NAMES)
        self.feed(250)
        status = self.d.status()
        self.assertEqual((status['sensors']['count'], status['groups']), (10, {'machines': 2, 'members': 8}))
        self.assertGreater(self.times('press#a')[-1], 240)
        self.balanced(status)

    def test_added_changed_and_gone(self):
        self.reload('', '[group press] was removed')
        self.feed(100)
        self.assertEqual(self.d.status()['groups'], {'machines': 0, 'members': 0})
        self.assertEqual(self.times('press#a'), [])
        self.reload(GROUP, '[group press] is new')
        self.feed(200)
        first = self.times('press#a')
        self.assertGreaterEqual(first[0], 100 + 4 + 12)
        self.assertLess(first[0], 125)
        self.assertEqual(self.d.status()['groups'], {'machines': 2, 'members': 8})
        self.reload(GROUP + 'hop = 1\n', '[group press] is changed: its machines warm up again', '2 machines were removed, or warm up again')
        self.assertEqual(self.d.status()['sensors']['count'], 8)
        self.feed(300)
        again = self.times('press#a')[len(first):]
        self.assertGreaterEqual(again[0], 200 + 4 + 12)
        self.assertEqual(again, list(range(again[0], 300 - (again[-1] < 299))))
        self.reload('', '[group press] was removed', '2 machines were removed, or warm up again')
        self.assertEqual(self.d.status()['sensors']['count'], 8)
        self.feed(400)
        self.assertEqual(self.times('press#a')[-1], again[-1])
        self.assertEqual(self.d.status()['groups'], {'machines': 0, 'members': 0})
        self.balanced(self.d.status())

    def test_another_glob(self):
        """Sensors that a glob no longer matches leave their machine, which continues with the others; a machine without sensors is removed."""
        self.feed(200)
        before = len(self.times('press#a')), len(self.times('press#b'))
        self.reload('[group press]\nmatch = plant/(*)/*\n'.replace('plant/(*)', '*/(*)'), '[group press]: match = plant/(*)/* -> */(*)/*')
        self.feed(260)
        self.assertEqual(self.d.status()['groups'], {'machines': 2, 'members': 8})
        went_on = self.times('press#a')[before[0]:]
        self.assertEqual(went_on[:3], [self.times('press#a')[before[0] - 1] + 3 * k for k in (1, 2, 3)])
        self.reload('[group press]\nmatch = plant/(a)/*\n'.replace('(a)', 'a(*)'), '2 machines were removed, or warm up again')
        self.assertEqual(self.d.status()['groups']['members'], 0)  # the machines have other names
        self.reload('[group press]\nmatch = plant/(*)/*o*\n')  # noise and flow
        self.feed(400)
        self.assertEqual(self.d.status()['groups'], {'machines': 2, 'members': 4})
        self.balanced(self.d.status())

    def test_under_load(self):
        """Reloads while points come: the group that stays gives the results of a run without reloads."""
        expected, events = self.run_through(self.values)[0]
        with self.d.client() as other, self.d.client() as r:
            elsewhere = other.register(*(f'x/{m}/{s}' for m in range(20) for s in range(5)))
            for turn in range(24):
                self.d.configure(DETECTOR + GROUP + ('[group more]\nmatch = x/(*)/*\nhop = %d\n' % (1 + turn // 3 % 3) if turn % 3 < 2 else ''), KEYS)
                r.send(harness.frame(harness.RELOAD, b'', 99))
                self.send(self.c, self.handles, self.values[turn * 25:turn * 25 + 25], first=turn * 25)
                for k in range(turn * 25, turn * 25 + 25):
                    other.send(harness.points(elsewhere, [START + k * SECOND] * 100, [float(k % 7)] * 100))
                while r.receive()[0] != harness.RELOADED:
                    pass
            other.ping()
        self.c.ping()
        harness.until(lambda: self.d.status()['points']['pending'] == 0, 'the points')
        self.subscriber.drain(0.3)
        scores, told = self.said(self.subscriber)
        self.assertEqual([s for s in scores if s[0].startswith('press')], expected)
        self.assertEqual([e for e in told if e[0].startswith('press')], events)
        self.assertGreater(sum(s[0].startswith('more') for s in scores), 100)
        self.assertEqual(self.d.status()['groups'], {'machines': 2, 'members': 8})  # the last one had no more
        self.balanced(self.d.status())


if __name__ == '__main__':
    harness.main()
