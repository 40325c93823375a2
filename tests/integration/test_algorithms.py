"""Several algorithms for one sensor (`algorithm = ika, graph, shift`): each gives, bit for bit, the results that it gives alone, over whatever
protocol the points come. Its results are those of a series of its own, SENSOR#graph, which no peer can feed, and which is made and removed with its sensor."""
import collections
import contextlib
import csv
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import harness
from harness import ALERTS, DATA, SCORED, SECOND, START, UNSCORED, VALUES

KEYS = {'ika': 'window=20,rank=2,alert=0.5', 'graph': 'window=16,resident=400,alert=0.3', 'shift': 'window=20,stride=2,alert=0.3'}
ALL = ('algorithm=ika,graph,shift\nwindow=20\nrank=2\nalert=0.3\nika.alert=0.5\ngraph.window=16\nresident=400\nshift.stride=2\n')
RECORDINGS = {'CBF': 'CBF.txt', 'Coffee': 'Coffee.txt', 'hold': 'rogue_agent_key_hold.csv', 'faults': 'faults.csv'}
EVERYTHING = SCORED | UNSCORED | ALERTS | VALUES


def section(keys=ALL, name='all', match='*'):
    return f'[detector {name}]\nmatch = {match}\n{keys}'


def series(sensor, algorithm):
    return sensor if algorithm == 'ika' else f'{sensor}#{algorithm}'


class Case(harness.Case):
    @classmethod
    def setUpClass(cls):
        """Results of each algorithm alone: rows and events by series."""
        cls.rows, cls.events = {}, {}
        for sensor, recording in RECORDINGS.items():
            for algorithm, keys in KEYS.items():
                rows, events = harness.replay(os.path.join(DATA, recording), f'algorithm={algorithm},{keys}', harness.BACKEND, '--sensor', sensor)
                name = series(sensor, algorithm)
                cls.rows[name] = [r[1:4] for r in rows]
                cls.events[name] = [(e[0].replace(sensor, name, 1), e[2], int(e[3]), int(e[4]), harness.single(e[5])) for e in events]
                cls.values = getattr(cls, 'values', {})
                cls.values[sensor] = [(r[1], r[4]) for r in rows]
        assert sum(len(e) for name, e in cls.events.items() if '#' in name) > 5

    def mixed(self, seed, finite=False):
        """(sensor, time, value) of all recordings, mixed at random, in order for each sensor."""
        points = {s: [p for p, row in zip(self.values[s], self.rows[s]) if not finite or row[2] != 'rejected'] for s in RECORDINGS}
        return list(harness.interleaved(random.Random(seed), points))

    def send(self, c, handle, part):
        c.send(harness.points([handle[s] for s, _, _ in part], [t for _, t, _ in part], [v for _, _, v in part]))

    def compare(self, results, events, finite=False, sensors=RECORDINGS):
        for sensor in sensors:
            for algorithm in KEYS:
                name = series(sensor, algorithm)
                want = [r for r in self.rows[name] if not finite or r[2] != 'rejected']
                got = [(t, z, state) for n, t, _, z, state in results if n == name]
                self.assertEqual(len(got), len(want), name)
                for i, (a, b) in enumerate(zip(got, want)):
                    self.assertEqual(a, b, f'{name}, point {i}')
                self.assertEqual([(f'{n}:{number}', kind, at, instant, score)
                                  for n, number, kind, at, _, instant, score, _, _ in events if n == name], self.events[name], name)


class SameAsAlone(Case):
    listens = harness.LISTENERS
    def start(self, **how):
        d = self.daemon(section(), keys=f'threads = 2\nmax_ahead = off\n{how.pop("keys", "")}', **how)
        subscriber = d.client()
        self.addCleanup(subscriber.close)
        subscriber.subscribe(EVERYTHING)
        return d, subscriber

    def finish(self, daemon, subscriber, n, finite=False):
        subscriber.wait_results(3 * n)
        subscriber.drain(0.1)
        self.assertEqual(subscriber.gaps, [])
        self.compare(subscriber.results, subscriber.events, finite)
        status = daemon.status()
        self.assertEqual(self.balanced(status)['in'], 3 * n)
        self.assertEqual((status['derived']['points'], status['derived']['sensors']), (2 * n, 2 * len(RECORDINGS)))
        self.assertEqual(status['sensors']['count'], 3 * len(RECORDINGS))

    def test_binary_tcp_and_several_loops(self):
        for seed, most, loops in ((1, 3, 1), (2, 20000, 1), (3, 500, 3)):
            with self.subTest(most=most, loops=loops):
                daemon, subscriber = self.start(keys=f'loops = {loops}\n')
                mixed = self.mixed(seed)
                with daemon.client() as c:
                    handle = dict(zip(RECORDINGS, c.register(*RECORDINGS)))
                    for a, b in harness.cut(random.Random(seed), len(mixed), most):
                        self.send(c, handle, mixed[a:b])
                    c.bye()
                self.finish(daemon, subscriber, len(mixed))

    def test_binary_udp(self):
        daemon, subscriber = self.start()
        mixed, sent, datagrams = self.mixed(4), 0, 0
        with daemon.client() as c, daemon.connect('binary udp') as udp:
            handle = dict(zip(RECORDINGS, c.register(*RECORDINGS)))
            for a, b in harness.cut(random.Random(4), len(mixed), 60):
                part = mixed[a:b]
                datagrams += 1
                udp.send(harness.points([handle[s] for s, _, _ in part], [t for _, t, _ in part], [v for _, _, v in part], c.feed, datagrams, sent))
                sent += len(part)
                if datagrams % 50 == 0:  # slow enough for no loss
                    subscriber.wait_results(3 * sent)
            c.bye(datagrams, sent)
        self.finish(daemon, subscriber, len(mixed))

    def test_line(self):
        daemon, subscriber = self.start()
        mixed = self.mixed(5, finite=True)
        with daemon.connect('line tcp') as s:
            for a, b in harness.cut(random.Random(5), len(mixed), 300):
                s.sendall(''.join(f'{sensor} value={v!r} {t}\n' for sensor, t, v in mixed[a:b]).encode())
        self.finish(daemon, subscriber, len(mixed), finite=True)

    def test_in_another_order(self):
        """The results do not depend on which algorithm is first and which is a companion."""
        keys = 'algorithm=shift,ika\n' + ''.join(f'{a}.{key}\n' for a in ('shift', 'ika') for key in KEYS[a].split(','))
        daemon = self.daemon(section(keys), keys='threads = 2\nmax_ahead = off\n')
        mixed = self.mixed(8)
        with daemon.client() as subscriber, daemon.client() as c:
            subscriber.subscribe(SCORED | UNSCORED)
            self.send(c, dict(zip(RECORDINGS, c.register(*RECORDINGS))), mixed)
            subscriber.wait_results(2 * len(mixed))
        for sensor in RECORDINGS:
            for name, alone in ((sensor, f'{sensor}#shift'), (f'{sensor}#ika', sensor)):
                self.assertEqual([(t, z, state) for n, t, _, z, state in subscriber.results if n == name], self.rows[alone], name)

    def test_replay(self):
        """A score and a state of each, and events of each."""
        for sensor, recording in RECORDINGS.items():
            out = subprocess.run([harness.HANKEL, 'replay', '--backend', harness.BACKEND, '--detector', ALL.strip().replace('\n', ','),
                                  '--sensor', sensor, os.path.join(DATA, recording)], check=True, capture_output=True, text=True).stdout
            lines = list(csv.reader(out.splitlines()))
            self.assertEqual(lines[0], ['sensor', 'time', 'value', 'score', 'state', 'score_graph', 'state_graph', 'score_shift', 'state_shift'])
            for i, algorithm in enumerate(KEYS):
                name = series(sensor, algorithm)
                said = [(int(row[1]), harness.single(row[3 + 2 * i]) if row[3 + 2 * i] else None, row[4 + 2 * i])
                        for row in lines[1:] if row[0] != '#event']
                self.assertEqual(said, self.rows[name], name)
                self.assertEqual([(e[1], e[3], int(e[4]), int(e[5]), harness.single(e[6])) for e in lines if e[0] == '#event' and e[2] == name],
                                 self.events[name], name)


class Names(Case):
    def test_nobody_feeds_a_companion(self):
        d = self.daemon(section(), keys='max_ahead = off\n')
        with d.client() as subscriber, d.client() as c:
            subscriber.subscribe(EVERYTHING)
            self.assertIsNone(c.register('mine#graph')[0])  # also before the sensor `mine` exists
            own, other = c.register('mine#pressure', 'x')
            self.assertIsNotNone(own)  # a name like any other
            self.send(c, {'x': other, 'mine#pressure': own}, [('x', START, 1.0), ('mine#pressure', START, 2.0)])
            subscriber.wait_results(6)
            self.assertEqual({r[0] for r in subscriber.results}, {'x', 'x#graph', 'x#shift', 'mine#pressure', 'mine#pressure#graph', 'mine#pressure#shift'})
            r = c.request(harness.REGISTER, harness.struct.pack('<I', 2) + harness.text('x#graph') + harness.text('x'), harness.REGISTERED)
            self.assertEqual(r.take('IIIII'), (2, 0xffffffff, 4, other, 0))
            theirs = next(h for h, name in subscriber.names.items() if name == 'x#graph')
            self.send(c, {'x': theirs}, [('x', START + SECOND, 1.0)])
            c.ping()
            self.assertEqual(c.errors[0][0], 8)  # unknown handle
            with d.connect('line tcp') as s:
                s.sendall(f'x#shift value=1 {START + SECOND}\nx value=1 {START + SECOND}\n'.encode())
            subscriber.wait_results(9)
        status = d.status()
        self.balanced(status)
        self.assertEqual((status['dropped']['reserved'], status['dropped']['unknown_handle']), (1, 1))
        self.assertEqual(status['derived']['companions_lacking'], 0)

    def test_names_that_would_be_too_long(self):
        d = self.daemon(section(), keys='max_ahead = off\n')
        with d.client() as subscriber, d.client() as c:
            subscriber.subscribe(EVERYTHING)
            long, = c.register('m' * 507)  # at most 512 with #graph
            self.send(c, {'m': long}, [('m', START, 3.0)])
            subscriber.wait_results(1)
            c.ping()
            self.assertEqual([r[0] for r in subscriber.results], ['m' * 507])
        self.assertEqual(d.status()['derived']['companions_lacking'], 2)

    def test_capacity_is_of_series(self):
        d = self.daemon(section(), keys='max_sensors = 8\n')
        with d.client() as c:
            self.assertEqual([h is None for h in c.register('a', 'b', 'c')], [False, False, True])
        self.assertEqual(d.status()['sensors']['count'], 6)

    def test_evicted_together(self):
        d = self.daemon(section(), keys='max_ahead = off\nevict = 1s\n')
        with d.client() as c:
            for at in range(3):
                handle, = c.register('a')
                self.send(c, {'a': handle}, [('a', START + k * SECOND, float(k)) for k in range(100)])
                c.ping()
                self.assertEqual(d.status()['sensors']['count'], 3)
                harness.until(lambda n=3 * (at + 1): d.status()['sensors']['evicted'] == n, 'eviction')
                self.assertEqual(d.status()['sensors']['count'], 0)
        self.balanced(d.status())


class Reload(Case):
    def test_an_algorithm_comes_and_goes(self):
        one, two = 'algorithm=ika\n' + ''.join(KEYS['ika'].replace(',', '\n') + '\n'), ALL.replace(',shift', '').replace('shift.stride=2\n', '')
        d = self.daemon(section(one), keys='threads = 2\nmax_ahead = off\n')
        points = [p for p in self.mixed(6) if p[0] == 'CBF']
        third = len(points) // 3

        def reload(keys):
            d.configure(section(keys), 'threads = 2\nmax_ahead = off\n')
            with d.client() as r:
                taken, lines = r.reload()
            self.assertTrue(taken, lines)
            return lines

        with d.client() as c:
            c.subscribe(EVERYTHING)
            handle = dict(zip(['CBF'], c.register('CBF')))
            self.send(c, handle, points[:third])
            c.wait_results(third)
            self.assertIn('1 series of further algorithms were added to sensors that are there', reload(two))
            self.send(c, handle, points[third:2 * third])
            c.wait_results(3 * third)
            lines = reload(one)
            self.assertIn('[detector all#graph] was removed', lines)
            self.send(c, handle, points[2 * third:])
            c.wait_results(3 * third + len(points) - 2 * third)
            c.drain(0.1)
            self.assertEqual([(t, z, s) for n, t, _, z, s in c.results if n == 'CBF'], self.rows['CBF'])
            graph = [(t, s) for n, t, _, z, s in c.results if n == 'CBF#graph']
            self.assertEqual([t for t, _ in graph], [t for _, t, _ in points[third:2 * third]])
            self.assertEqual(graph[0][1], 'warming')
            self.assertEqual(c.errors, [])
        self.assertEqual(d.status()['sensors']['count'], 1)
        self.balanced(d.status())


class Journal(Case):
    def setUp(self):
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)

    def start(self, keys='', **how):
        return self.daemon(section(), keys=f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}/there\n{keys}',
                           ends=self.ends, **how)

    ends = -signal.SIGKILL

    def test_killed(self):
        """After kill -9 each algorithm continues where it was, from the journal alone and from snapshots with a journal."""
        for keys in ('', 'snapshot = 1s\n'):
            with self.subTest(keys=keys):
                shutil.rmtree(f'{self.state}/there', ignore_errors=True)
                mixed, results, events, at = self.mixed(7), [], [], 0
                rng = random.Random(7)
                for stop in (len(mixed) // 3, len(mixed) // 2, len(mixed)):
                    d = self.start(keys)
                    with d.client() as subscriber, d.client() as c:
                        subscriber.subscribe(EVERYTHING)
                        handle = dict(zip(RECORDINGS, c.register(*RECORDINGS)))
                        self.assertEqual(d.status()['sensors']['count'], 12)
                        for a, b in harness.cut(rng, stop - at, 700):
                            self.send(c, handle, mixed[at + a:at + b])
                            subscriber.wait_results(3 * b)
                            if keys and b > (stop - at) // 2:
                                harness.until(lambda: d.status()['durability']['shards'][0]['snapshots'] > 0, 'a snapshot')
                        subscriber.drain(0.1)
                        results += subscriber.results
                        events += subscriber.events
                    at = stop
                    self.balanced(d.status())
                    d.process.send_signal(signal.SIGKILL)
                    d.process.wait()
                self.compare(results, events)


    def test_moves_between_backends(self):
        """The daemon is killed, and started with another backend from a snapshot and the journal after it: each algorithm continues from its state,
        and gives the results of an uninterrupted run, as closely as backends agree."""
        other = 'cuda' if harness.BACKEND == 'cuda' else 'reference'
        mixed, at, said, events = self.mixed(11), 0, [], []
        rng, thirds = random.Random(11), [len(self.mixed(11)) * k // 3 for k in (1, 2, 3)]
        for stop, backend in zip(thirds, ('cpu', other, 'cpu')):
            d = self.start('snapshot = 1s\n', backend=backend)
            self.assertEqual(d.status()['backend'], backend)
            with d.client() as subscriber, d.client() as c:
                subscriber.subscribe(EVERYTHING)
                handle = dict(zip(RECORDINGS, c.register(*RECORDINGS)))
                for a, b in harness.cut(rng, stop - at, 700):
                    self.send(c, handle, mixed[at + a:at + b])
                    subscriber.wait_results(3 * b)
                    if a <= (stop - at) // 2 < b:
                        harness.until(lambda: d.status()['durability']['shards'][0]['snapshots'] > 0, 'a snapshot')
                subscriber.drain(0.1)
                said += subscriber.results
                events += subscriber.events
            at = stop
            self.balanced(d.status())
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
        for sensor in RECORDINGS:
            for algorithm in KEYS:
                name = series(sensor, algorithm)
                got = [(t, state, z) for n, t, _, z, state in said if n == name]
                want = [(t, state, z) for t, z, state in self.rows[name]]
                self.assertEqual([g[:2] for g in got], [w[:2] for w in want], name)
                self.assertEqual([z is None for _, _, z in got], [z is None for _, _, z in want], name)
                off = [abs(a - b) for (_, _, a), (_, _, b) in zip(got, want) if a is not None]
                # Where singular values nearly coincide, rounding decides, and a processor's instructions with it: a few may differ by anything.
                near = [e for e in off if e <= 2e-4]
                self.assertLessEqual(len(off) - len(near), len(off) / 100, name)
                self.assertLessEqual(sum(near), 2e-6 * len(near), name)
                self.assertEqual([(f'{n}:{number}', kind) for n, number, kind, *_ in events if n == name], [e[:2] for e in self.events[name]], name)

    NOISE = [harness.single(random.Random(9).gauss(0, 1)) for _ in range(10007)]
    SENSORS = 400  # sensors enough to fill a batch with the most points that it takes of each

    def value(self, sensor, tick):
        return self.NOISE[(sensor * 7919 + tick) % len(self.NOISE)]

    def send_ticks(self, feeder, first, behind):
        """Points of all sensors, tick by tick, in frames of ten."""
        handles = feeder.register(*(f's{i}' for i in range(self.SENSORS)))
        for at in range(first, behind, 10):
            part = range(at, min(at + 10, behind))
            feeder.send(harness.points(handles * len(part), [START + k * SECOND for k in part for _ in handles],
                                       [self.value(i, k) for k in part for i in range(self.SENSORS)]))

    @property
    def keys(self):
        return f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}/there\nmax_pending = 100000\n'

    @contextlib.contextmanager
    def flooded(self, keys, rate):
        """A daemon that gets points as fast as it takes them, until it is killed at the end of the `with`. Its device, if the build has one that
        fails on order, is so slow that a chunk takes many batches: what happens between two batches happens within a chunk. rate: its points a second."""
        slow = self.devices(1, HANKELD_FAULT=f'rate {rate}') if 'FAULTY_DAEMON' in os.environ else {}
        daemon = self.daemon(section(keys), ends=-signal.SIGKILL, keys=self.keys + 'snapshot = 1s\n', **slow)

        def run():
            with daemon.client() as feeder, contextlib.suppress(OSError):
                self.send_ticks(feeder, 0, 1 << 20)

        sender = threading.Thread(target=run)
        sender.start()
        try:
            yield daemon
        finally:
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            sender.join()

    def alone(self, algorithm, keys, sensors, first, behind):
        """Results of an algorithm from a tick on, by sensor and time."""
        path = os.path.join(self.state, 'alone.csv')
        with open(path, 'w') as f:
            f.write('time,' + ','.join(f's{i}' for i in sensors) + '\n')
            for k in range(first, behind):
                f.write(f'{START + k * SECOND},' + ','.join(repr(self.value(i, k)) for i in sensors) + '\n')
        rows, _ = harness.replay(path, f'algorithm={algorithm},{keys}', harness.BACKEND, '--unit', 'ns')
        return {(series(r[0], algorithm), r[1]): r[2:4] for r in rows}

    def go_on(self, keys, glob):
        """Starts the daemon again, and sends the last points again and more. Returns results, and the tick after the last."""
        daemon = self.daemon(section(keys), keys=self.keys)
        had = daemon.status()['durability']['shards'][0]['position'] // self.SENSORS
        behind = had + 50
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED, glob)
            self.send_ticks(feeder, max(0, had - 20), behind)
            feeder.bye()
            subscriber.drain()
        self.assertEqual(daemon.stop(), 0)  # the daemon would write into its folder while that is removed
        return subscriber.results, behind

    @unittest.skipIf(harness.SANITIZED, 'too slow: a snapshot is over only when the flood is')
    def test_killed_in_a_flood(self):
        """Snapshots in many slices, between batches that end in the middle of a chunk: of each series, the points that the snapshot has and those
        that the journal replays fit together to the point."""
        keys = 'algorithm=svd,graph\nwindow=30\nrank=2\ngraph.window=16\nresident=1500\n'  # slow enough
        with self.flooded(keys, 300000) as daemon:
            harness.until(lambda: daemon.status()['durability']['shards'][0]['snapshots'] > 0, 'a snapshot')
        results, behind = self.go_on(keys, '*')
        want = {(name.replace('#svd', ''), at): said
                for keys in ('svd,window=30,rank=2', 'graph,window=16,resident=1500')
                for (name, at), said in self.alone(*keys.split(',', 1), range(0, self.SENSORS, 40), 0, behind).items()}
        late = collections.Counter()
        for name, at, _, score, state in results:
            late[name] += state == 'late'
            if state != 'late':  # a sensor that lost points or got some twice would differ
                self.assertEqual((score, state), want.get((name, at), (score, 'ok')), (name, (at - START) // SECOND, behind))
        for sensor in range(self.SENSORS):
            self.assertEqual(late[f's{sensor}'], late[f's{sensor}#graph'], sensor)
            self.assertIn(late[f's{sensor}'], range(10, 22))

    def test_an_algorithm_comes_in_a_flood(self):
        """A companion that a reload adds begins between two points, and begins there again when the journal is replayed. Chance decides how much
        of the current chunk is taken by then, so the test reloads at several moments."""
        for processed in (108000,) if harness.SANITIZED else (100000, 108000, 116000):
            with self.subTest(processed=processed):
                self.an_algorithm_comes(processed)
                shutil.rmtree(f'{self.state}/there')

    def an_algorithm_comes(self, processed):
        one = 'algorithm=svd,graph,shift\nwindow=30\nrank=2\nresident=400\n'  # more points are made of a chunk than fit into one
        two = one.replace('shift\n', 'shift,ika\nika.window=8\n')
        with self.flooded(one, 150000) as daemon, daemon.client() as subscriber:
            subscriber.subscribe(SCORED | UNSCORED, '*#ika')
            harness.until(lambda: (p := daemon.status()['points'])['scored'] + p['unscored'] > processed, 'scores')
            daemon.configure(section(two), self.keys + 'snapshot = 1h\n')
            with daemon.client() as c:
                taken, lines = c.reload()
            self.assertTrue(taken and f'{self.SENSORS} series of further algorithms were added to sensors that are there' in lines, lines)
            subscriber.wait_results(2 * self.SENSORS)  # before the snapshot that a reload requests
        results, behind = self.go_on(two, '*#ika')
        first, want = {}, {}
        for name, at, _, _, _ in subscriber.results:
            first.setdefault(name, (at - START) // SECOND)
        begun = [sensor for sensor in range(0, self.SENSORS, 40) if f's{sensor}#ika' in first]
        self.assertTrue(begun, first)
        for sensor in begun:  # the begin of a companion without results before the end is unknown
            rows = self.alone('ika', 'window=8,rank=2', [sensor], first[f's{sensor}#ika'], behind)
            want.update({(f'{name}#ika', at): said for (name, at), said in rows.items()})
        before = [r for r in subscriber.results if (r[0], r[1]) in want]
        self.assertIn('ok', {r[4] for r in results})
        for name, at, _, score, state in before + results:
            if state != 'late' and (name, at) in want:
                self.assertEqual((score, state), want[name, at], (name, (at - START) // SECOND))

    def devices(self, n, **more):
        return {'program': os.environ['FAULTY_DAEMON'], 'backend': 'cuda', 'environment': {'HANKELD_DEVICES': str(n), **more}}

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ, 'the daemon with other devices is not built')
    def test_devices(self):
        """Companions are on their sensor's device. With another number of devices, companions that are not start over."""
        names, at = [f's{i}' for i in range(20)], 0
        keys = f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}/there\n'
        for devices, kept in ((3, 0), (3, 40), (2, None), (1, 40)):
            d = self.daemon(section('algorithm = svd, ika\nwindow = 8\nalert = off\ninterval = 1s\n'), keys=keys, **self.devices(devices))
            with d.client() as subscriber, d.client() as c:
                subscriber.subscribe(SCORED | UNSCORED)
                handles = c.register(*names)
                self.assertEqual(d.status()['sensors']['count'], 40)
                c.send(harness.points(handles * 40, [START + k * SECOND for k in range(at, at + 40) for _ in names],
                                      [float(k % 7) for k in range(at, at + 40) for _ in names]))
                c.bye()
                got = subscriber.wait_results(2 * 40 * 20)
                self.assertEqual({r[4] for r in got}, {'ok', 'warming'} if kept != 40 else {'ok'})
                went_on = [r[0] for r in got if r[1] == START + at * SECOND and r[4] == 'ok']
                self.assertGreaterEqual(len(went_on), 20 if at > 0 else 0)
                if kept is not None:
                    self.assertEqual(len(went_on), kept)
                else:
                    self.assertTrue(set(names) <= set(went_on) and len(went_on) < 40, went_on)
            self.balanced(d.status())
            self.assertEqual(d.stop(), 0)
            at += 40

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ, 'the daemon with other devices is not built')
    def test_the_device_is_lost(self):
        """The CPU continues with all of them; if it has room for fewer, no companion is left without its sensor."""
        for memory in ('', 'memory = 400 KiB\n'):
            with self.subTest(memory=memory):
                shutil.rmtree(f'{self.state}/there', ignore_errors=True)
                self.ends = 0
                d = self.daemon(section(), keys='threads = 2\nmax_ahead = off\ndevice_timeout = 1s\n', backend='auto',
                                program=os.environ['FAULTY_DAEMON'], environment={'HANKELD_FAULT': 'eio'})
                with d.client() as c:
                    c.subscribe(SCORED | UNSCORED | ALERTS)
                    handles = c.register(*(f's{i}' for i in range(8)))
                    c.send(harness.points(handles * 60, [START + k * SECOND for k in range(60) for _ in handles], [float(k % 5) for k in range(60) for _ in handles]))
                    c.wait_results(3 * 8 * 60)
                    if memory:
                        d.configure(section(), f'threads = 2\nmax_ahead = off\ndevice_timeout = 1s\n{memory}')
                        self.assertTrue(c.reload()[0])
                    c.send(harness.points(handles[:1], [START + 60 * SECOND], [-666.5]))
                    harness.until(lambda: d.status()['device']['state'] == 'lost', 'the device to be lost')
                    if memory:
                        harness.until(lambda: d.status()['sensors']['count'] < 24, 'sensors to go')
                    here = c.register(*(f's{i}' for i in range(8)))
                    there = [h for h in handles if h in here]
                    self.assertGreater(len(there), 0)
                    c.results.clear()
                    c.send(harness.points(there, [START + 61 * SECOND] * len(there), [1.0] * len(there)))
                    c.wait_results(len(there))
                    c.drain()
                    went_on = {r[0] for r in c.results}
                    self.assertEqual({r[4] for r in c.results}, {'warming'})
                    self.assertEqual(len([name for name in went_on if '#' not in name]), len(there))
                    self.assertTrue({name.split('#')[0] for name in went_on} == {name for name in went_on if '#' not in name}, went_on)
                    self.assertTrue(memory or len(went_on) == 24, went_on)
                self.balanced(d.status())


if __name__ == '__main__':
    harness.main()
