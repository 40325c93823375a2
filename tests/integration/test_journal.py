"""State that outlives the daemon with durability = journal: it is killed at any moment under load, and started again. The results that
subscribers get before and after are, bit for bit, those of an uninterrupted run."""
import glob
import itertools
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED, VALUES

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95
SENSORS, POINTS = 40, 300
DETECTOR = 'window=16,rank=2,interval=1s,alert=0.5,cooldown=30'


class Journal(harness.Case):
    backend = harness.BACKEND

    @classmethod
    def setUpClass(cls):
        """Results of an uninterrupted run."""
        cls.values = harness.waves(5, SENSORS, POINTS, (120, 200))
        cls.rows, cls.events = harness.uninterrupted(cls.values, DETECTOR, cls.backend)
        assert len(cls.rows) == SENSORS * POINTS and len(cls.events) >= SENSORS

    def setUp(self):
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)
        self.seen, self.told, self.late = {}, {}, set()

    def keys(self, keys):
        return f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}/there\n{keys}'

    def start(self, keys='', backend=None, **how):
        return self.daemon(harness.section('all', '*', DETECTOR), backend=backend or self.backend, keys=self.keys(keys), **how)

    def kill(self, daemon):
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        self.assertEqual(len(daemon.log), len([l for l in daemon.log if 'error' not in l]), daemon.log)

    def take(self, subscriber):
        """Asserts that a subscriber's results are those of an uninterrupted run, and that none came twice."""
        for sensor, time, _, score, state in subscriber.results:
            if state == 'late':
                self.late.add((sensor, time))
                continue
            self.assertNotIn((sensor, time), self.seen)
            self.seen[sensor, time] = (score, state)
            self.assertEqual((score, state), self.rows[sensor, time], (sensor, time))
        for name, number, kind, at, _, instant, score, _, _ in subscriber.events:
            key = f'{name}:{number}', kind
            self.assertNotIn(key, self.told)
            self.told[key] = (at, instant, score)
            self.assertEqual(self.told[key], self.events[key], key)
        subscriber.results, subscriber.events = [], []

    def feed(self, client, first, behind, rng):
        """Sends points first..behind-1 of every sensor whose results have not come yet, in frames of random sizes."""
        handle = dict(zip(self.values, client.register(*self.values)))
        left = [(s, k) for k in range(first, behind) for s in self.values if (s, START + k * SECOND) not in self.seen]
        for a, b in harness.cut(rng, len(left), 500):
            client.send(harness.points([handle[s] for s, _ in left[a:b]], [START + k * SECOND for _, k in left[a:b]],
                                       [self.values[s][k] for s, k in left[a:b]]))
        return len(left)

    def run_until(self, behind, rng, kill, **how):
        """Runs the daemon: sends points up to `behind`, and kills it after some results, or ends it."""
        daemon = self.start(ends=-signal.SIGKILL if kill else 0, **how)
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
            n = self.feed(feeder, 0, behind, rng)
            subscriber.wait_results(rng.randint(0, n) if kill else n)
            if kill:
                self.kill(daemon)
            else:
                feeder.bye()
            try:
                subscriber.drain(0.2)
            except harness.Closed:
                pass
            except OSError:
                pass
            self.take(subscriber)
        return daemon

    def test_killed_under_load(self):
        rng = random.Random(11)
        for behind in (60, 150, 190, 260):
            self.run_until(behind, rng, kill=True)
        daemon = self.run_until(POINTS, rng, kill=False)
        # Points that were in the journal, but whose results no subscriber had got, are late: their results do not come again.
        self.assertEqual(self.seen.keys() | self.late, self.rows.keys())
        self.assertFalse(self.seen.keys() & self.late)
        self.balanced(daemon.status())
        self.assertTrue(any('replayed' in line for line in daemon.log), daemon.log)
        # And once more, from the journal alone: alerts and windows are those of the uninterrupted run.
        daemon.stop()
        again = self.start()
        with again.client() as subscriber, again.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
            self.assertEqual(again.status()['sensors']['count'], SENSORS)
            handle = feeder.register('s0')
            feeder.send(harness.points(handle, [START], [0.0]))
            subscriber.wait_results(1)
            self.assertEqual(subscriber.results[0][4], 'late')


    def evicted(self, kill):
        """A sensor that was forgotten stays so after a restart, even if its slot has another sensor; one that came again starts over."""
        rng = random.Random(3)
        self.values = {name: self.values[name] for name in list(self.values)[:4]}
        daemon = self.start('evict = 1s\n', ends=-signal.SIGKILL if kill else 0)
        with daemon.client() as feeder:
            self.feed(feeder, 0, 100, rng)
            harness.until(lambda: daemon.status()['sensors']['count'] == 0, 'the sensors to be evicted')
            names = (f'other{i}' for i in itertools.count())  # a sensor that got another slot gets that slot again, whenever it comes
            harness.until(lambda: feeder.register(next(names))[0] & 0xffffff < 4, 'a slot to be used again')
            daemon.configure(harness.section('all', '*', DETECTOR), self.keys(''))  # from here on no sensor is forgotten, however slow the machine is
            self.assertTrue(feeder.reload()[0])
            again = feeder.register('s1')
            feeder.send(harness.points(again * 3, [START + k * SECOND for k in range(3)], [0.0] * 3))
            feeder.ping()
            harness.until(lambda: daemon.status()['points']['pending'] == 0, 'the points to be on the disk')
            if kill:
                self.kill(daemon)
        daemon.stop()
        daemon = self.start()
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED)
            self.assertEqual(feeder.register('s1'), again)
            handles = again * 2 + feeder.register('s0', 's2', 's3')
            feeder.send(harness.points(handles, [START + k * SECOND for k in (2, 3, 0, 0, 0)], [0.0] * 5))
            states = {(r[0], r[1]): r[4] for r in subscriber.wait_results(5)}
            self.assertEqual(states, {('s1', START + 2 * SECOND): 'late', ('s1', START + 3 * SECOND): 'warming',
                                      **{(name, START): 'warming' for name in ('s0', 's2', 's3')}})

    def test_evicted_and_killed(self):
        self.evicted(True)

    def test_evicted_and_ended(self):
        """The snapshot has the later sensors of the slots, and the journal still has records of the earlier ones."""
        self.evicted(False)

    def test_more_events_than_the_log_holds(self):
        """More events since the last snapshot than the log has room for: after a kill none of them is published a second time."""
        def start(**how):
            keys = f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}/there\nevent_log = 1MiB\nsnapshot = 1h\n'
            return self.daemon(harness.section('all', '*', 'window=8,interval=1s,alert=0.3,cooldown=0'), keys=keys, **how)

        daemon = start(ends=-signal.SIGKILL)
        with daemon.client() as feeder:
            for first, n in ((0, 20), (20, 200)):  # those of the first sensors are the oldest
                handles = feeder.register(*(f's{i}' for i in range(first, first + n)))
                for at in range(0, 600, 24):
                    feeder.send(harness.points(handles * 24, [START + (at + k) * SECOND for k in range(24) for _ in handles],
                                               [float(k % 12 % (3 + k // 12 * 4)) for k in range(24) for _ in handles]))
            harness.until(lambda: daemon.status()['points']['pending'] == 0, 'all results')
        had = daemon.status()['durability']
        self.assertGreater(had['events_first'], 20 * 600 / 8)
        self.kill(daemon)
        daemon = start()
        self.assertEqual(daemon.status()['durability']['events_last'], had['events_last'])

    def segments(self, suffix='hkj'):
        return sorted(glob.glob(f'{self.state}/there/shard-0/journal-*.{suffix}'))

    def flip(self, path, part):
        """Flips a bit of a file, at a fraction of its length. Returns the new contents."""
        with open(path, 'r+b') as f:
            data = bytearray(f.read())
            data[int(len(data) * part)] ^= 4
            f.seek(0)
            f.write(data)
        return bytes(data)

    def verify(self):
        return subprocess.run([harness.HANKEL, 'state', 'verify', f'{self.state}/there'], capture_output=True, text=True, timeout=harness.WAIT, check=False)

    def fed(self, daemon, first, behind):
        """Sends points first..behind-1, each time in a record of its own, and checks their results. Then kills the daemon."""
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED | VALUES)
            handles = feeder.register(*self.values)
            for k in range(first, behind):
                feeder.send(harness.points(handles, [START + k * SECOND] * SENSORS, [v[k] for v in self.values.values()]))
                subscriber.wait_results((k + 1 - first) * SENSORS)
            rows = [(r[0], r[1], r[3], r[4]) for r in subscriber.results]
        daemon.process.kill()
        daemon.process.wait()
        for sensor, time, score, state in rows:
            if state != 'late':
                self.assertEqual((score, state), self.rows[sensor, time], (sensor, time))
        return {(time - START) // SECOND for _, time, _, state in rows if state != 'late'}

    def damaged_in_its_midst(self, which, marks=True):
        """A flipped bit in one of two files, with good records after it: the records before it count, and all others are set aside, unchanged, and
        reported. Points that are sent again from there on have the scores of an undisturbed run, and the next start reports nothing."""
        self.fed(self.start(ends=-signal.SIGKILL), 0, 50)
        self.fed(self.start(ends=-signal.SIGKILL), 50, 90)
        files = self.segments()[which:]
        self.assertEqual(len(files), 2 - which)
        if not marks:
            os.remove(f'{self.state}/there/marks')
        was = [self.flip(files[0], 0.6)]
        for path in files[1:]:
            with open(path, 'rb') as f:
                was.append(f.read())
        name = os.path.basename(files[0])
        told = self.verify()
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stdout, name + r': DAMAGED: \d+ bytes')
        daemon = self.start(ends=-signal.SIGKILL)
        self.assertEqual(sum(name + ' is damaged: a checksum is wrong at byte' in l for l in daemon.log), 1, daemon.log)
        lost = [re.search(r'the journal ends at position (\d+), where it is damaged: at least (\d+) points', l) for l in daemon.log]
        at, lost = (int(x) for x in next(l for l in lost if l).groups())
        self.assertEqual(at + lost, 90 * SENSORS)
        self.assertTrue((0, 50)[which] < at // SENSORS < (50, 90)[which] and at % SENSORS == 0, at)
        aside = self.segments('damaged')
        self.assertEqual([os.path.basename(p)[:-8] for p in aside], [os.path.basename(p)[:-4] for p in files])
        for path, data in zip(aside, was):
            with open(path, 'rb') as f:
                self.assertEqual(f.read(), data, path)
        self.assertEqual(self.fed(daemon, 0, 100), set(range(at // SENSORS, 100)))
        told = self.verify()
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertIn(name[:-4] + '.damaged: was set aside', told.stdout)
        daemon = self.start(ends=-signal.SIGKILL)
        self.assertFalse([l for l in daemon.log if 'damage' in l])
        self.assertEqual(self.segments('damaged'), aside)
        self.assertEqual(self.fed(daemon, 90, 110), set(range(100, 110)))

    def test_damaged_in_the_newest_file(self):
        self.damaged_in_its_midst(1)

    def test_damaged_in_the_newest_file_and_no_marks(self):
        """If the length of the file is not recorded, good records after the damage show that it was longer."""
        self.damaged_in_its_midst(1, marks=False)

    def test_damaged_in_an_older_file(self):
        self.damaged_in_its_midst(0)

    def test_damaged_before_the_snapshot(self):
        """Points that the snapshot has need not be in the journal: nothing is lost, and nothing is set aside."""
        daemon = self.start('snapshot = 1s\n', ends=-signal.SIGKILL)
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED)
            handles = feeder.register(*self.values)
            for k in range(60):
                feeder.send(harness.points(handles, [START + k * SECOND] * SENSORS, [v[k] for v in self.values.values()]))
                subscriber.wait_results((k + 1) * SENSORS)
            made = daemon.status()['durability']['shards'][0]['snapshots']
            harness.until(lambda: daemon.status()['durability']['shards'][0]['snapshots'] > made + 1, 'a snapshot of all of them')
        self.fed(daemon, 60, 90)
        self.flip(self.segments()[0], 0.3)
        daemon = self.start(ends=-signal.SIGKILL)
        self.assertTrue(any('is damaged' in l for l in daemon.log), daemon.log)
        self.assertEqual(self.segments('damaged'), [])
        self.assertEqual(self.fed(daemon, 0, 100), set(range(90, 100)))

    def test_a_head_is_damaged(self):
        """A file whose header is damaged is kept; its points are missing."""
        self.fed(self.start(ends=-signal.SIGKILL), 0, 20)
        self.fed(self.start(ends=-signal.SIGKILL), 20, 40)
        path = self.segments()[-1]
        was = self.flip(path, 20 / os.path.getsize(path))
        daemon = self.start(ends=-signal.SIGKILL)
        self.assertTrue(any('where it is damaged' in l for l in daemon.log), daemon.log)
        with open(self.segments('damaged')[0], 'rb') as f:
            self.assertEqual(f.read(), was)
        self.assertEqual(self.fed(daemon, 0, 50), set(range(20, 50)))

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
    def test_two_devices(self):
        """Journals of two shards, and then of one shard that takes over from them."""
        rng = random.Random(12)

        def devices(n):
            return {'program': os.environ['FAULTY_DAEMON'], 'backend': 'cuda', 'environment': {'HANKELD_DEVICES': str(n)}}

        for behind in (80, 160):
            self.run_until(behind, rng, kill=True, **devices(2))
        self.run_until(200, rng, kill=False, **devices(2)).stop()
        self.run_until(POINTS, rng, kill=False, **devices(1))
        self.assertEqual(self.seen.keys() | self.late, self.rows.keys())


    @unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
    def test_resent_to_another_number_of_devices(self):
        """The daemon is killed while one device is far behind the other, and started with a third one. Of the feed's points that come again, those that
        the first device had are left out, and the others are taken, each once."""
        rows = [(s, k) for k in range(POINTS) for s in self.values]

        def start(devices, **environment):
            return self.start('device_timeout = 600s\n', program=os.environ['FAULTY_DAEMON'], backend='cuda', ends=-signal.SIGKILL,
                              environment={'HANKELD_DEVICES': str(devices), **environment})

        def send(feeder):
            at = feeder.request(FEED, harness.text('f'), FEED_AT).one('Q')
            handle = dict(zip(self.values, feeder.register(*self.values)))
            for a in range(at, len(rows), 400):
                part = rows[a:a + 400]
                feeder.send(harness.points([handle[s] for s, _ in part], [START + k * SECOND for _, k in part],
                                           [self.values[s][k] for s, k in part], before=a))
            return at

        daemon = start(2, HANKELD_FAULTY='1', HANKELD_FAULT='slow 4000000000')
        with daemon.client() as feeder:
            send(feeder)
            harness.until(lambda: daemon.status()['durability']['shards'][0]['committed'] == len(rows) // 2, 'one device to have all')
        self.kill(daemon)
        daemon = start(3)
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED | VALUES)
            at = send(feeder)
            self.assertGreater(at, 0)
            if at >= len(rows) // 2:
                self.kill(daemon)
                self.skipTest('a slow machine: the device that lay behind had taken over as much as the other when it was killed')
            replayed = daemon.status()['durability']['replayed']
            harness.until(lambda: (p := daemon.status()['points'])['in'] == replayed + len(rows) - at and p['pending'] == 0, 'the rest')
            subscriber.ping()
            self.take(subscriber)
        status = daemon.status()
        had = {s for s in self.values if (s, START + (POINTS - 1) * SECOND) not in self.seen}
        self.assertEqual(len(had), SENSORS // 2)
        self.assertEqual((status['points']['late'], self.late), (0, set()))
        self.assertEqual({key for key in self.seen if key[0] in had}, set())
        self.assertEqual(status['dropped']['resent'], sum(s in had for s, _ in rows[at:]))
        last = {s: self.rows[s, START + (POINTS - 1) * SECOND] for s in self.values}
        self.assertEqual({s: self.seen[s, START + (POINTS - 1) * SECOND] for s in self.values if s not in had}, {s: last[s] for s in last if s not in had})
        self.balanced(status)
        self.kill(daemon)


@unittest.skipUnless('ORDERED_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
class AnotherLoop(harness.Case):
    """A sender comes back over another loop, while a shard has not taken what its first connection sent."""

    def setUp(self):
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)

    def order(self, what):
        with open(f'{self.state}/order.new', 'w', encoding='utf-8') as f:
            f.write(what)
        os.rename(f'{self.state}/order.new', f'{self.state}/order')

    def start(self, ends=0):
        return self.daemon(harness.section('all', '*', DETECTOR), keys=f'threads = 2\nmax_ahead = off\nloops = 2\ndurability = journal\nstate = {self.state}/there\n',
                           program=os.environ['ORDERED_DAEMON'], environment={'HANKELD_ORDERED': f'{self.state}/order'}, ends=ends)

    def send(self, client, handle, first, behind):
        client.send(harness.points(handle * (behind - first), [START + k * SECOND for k in range(first, behind)], [float(k % 7) for k in range(first, behind)],
                                   before=first))

    def come_again(self, daemon):
        """Returns two connections: the first has sent 10 points, which wait; the second has sent FEED and 20 points, including these."""
        first, second = daemon.client(), daemon.client()
        self.addCleanup(first.close)
        self.addCleanup(second.close)
        handle = first.register('a')
        self.assertEqual(first.request(FEED, harness.text('f'), FEED_AT).one('Q'), 0)
        self.order('the first feed waits')
        self.send(first, handle, 0, 10)
        first.ping()
        self.assertEqual(daemon.status()['points']['pending'], 10)
        second.send(harness.frame(FEED, harness.text('f'), 1))
        self.send(second, handle, 0, 20)
        return second

    def heard(self, client, wait):
        """The feed's positions that a client gets in FEED_AT and ACK, until nothing comes for that long."""
        said = []
        client.socket.settimeout(wait)
        try:
            while not said or said[-1] < 20:
                kind, _, payload = client.receive()
                if kind in (FEED_AT, ACK):
                    said.append(struct.unpack_from('<Q', payload)[0])
        except TimeoutError:
            pass
        return said

    def test_killed_before_the_first_is_taken(self):
        """Acknowledged points are there after a kill."""
        daemon = self.start(ends=-signal.SIGKILL)
        said = self.heard(self.come_again(daemon), 1)
        daemon.process.kill()
        daemon.process.wait()
        self.order('nothing')
        daemon = self.start()
        self.assertGreaterEqual(daemon.status()['durability']['replayed'], max(said, default=0))
        with daemon.client() as c:
            handle = c.register('a')
            at = c.request(FEED, harness.text('f'), FEED_AT).one('Q')
            self.send(c, handle, at, 20)
            self.assertEqual(self.heard(c, harness.WAIT)[-1], 20)
            harness.until(lambda: daemon.status()['points']['pending'] == 0, 'the points')
        points = daemon.status()['points']
        self.assertEqual((points['scored'] + points['unscored'], points['late']), (20, 0))

    def test_goes_on(self):
        """FEED is answered when the first connection's points are taken, and each point counts once, in order."""
        daemon = self.start()
        second = self.come_again(daemon)
        self.assertEqual(self.heard(second, 0.3), [])
        self.order('nothing')
        self.assertEqual(self.heard(second, harness.WAIT)[-1], 20)
        harness.until(lambda: daemon.status()['points']['pending'] == 0, 'the points')
        status = daemon.status()
        self.assertEqual((status['points']['scored'] + status['points']['unscored'], status['points']['late'], status['dropped']['resent']), (20, 0, 10))


class JournalReference(Journal):
    backend = 'reference'
    test_evicted_and_killed = test_evicted_and_ended = test_two_devices = None
    test_resent_to_another_number_of_devices = None
    test_damaged_in_the_newest_file = test_damaged_in_the_newest_file_and_no_marks = test_damaged_in_an_older_file = test_damaged_before_the_snapshot = test_a_head_is_damaged = None


if __name__ == '__main__':
    harness.main(needs_gpu=False)
