"""What outlives the daemon in snapshots: after a clean end nothing is missing; after a kill what came since the last good snapshot; and
what goes on is, bit for bit, what an uninterrupted run says. Files that are damaged, of another version, of other detectors,
backends and numbers of devices."""
import contextlib
import ctypes
import errno
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED, VALUES

SENSORS, POINTS = 60, 240
DETECTORS = [('fast', 's?', 'window=16,rank=2,interval=1s,alert=0.5,cooldown=30'),
             ('slow', '*', 'window=20,rank=2,interval=1s,stride=2,alert=0.4,cooldown=0')]
FAULTY = os.environ.get('FAULTY_DAEMON')
FEED, FEED_AT = 0x09, 0x89


class Snapshots(harness.Case):
    mode = 'snapshot'

    @classmethod
    def setUpClass(cls):
        """What an uninterrupted run says."""
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
        """Sends points first..behind-1 of every sensor, one time after the other, in frames cut anyhow."""
        sensors = sensors or list(self.values)
        handle = dict(zip(sensors, client.register(*sensors)))
        rows = [(s, k) for k in range(first, behind) for s in sensors]
        for a, b in harness.cut(random.Random(seed), len(rows), 700):
            client.send(harness.points([handle[s] for s, _ in rows[a:b]], [START + k * SECOND for _, k in rows[a:b]],
                                       [self.values[s][k] for s, k in rows[a:b]]))
        return len(rows)

    def run_part(self, daemon, first, behind, exact=True):
        """Feeds a part; its results are those of the uninterrupted run. Returns results and events."""
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
            if self.mode == 'snapshot':  # those that were lost come again, and numbers go on; starts tell cleared for them, as they were told last
                self.assertIn((at, instant, score), [e for (of, what), e in self.events.items() if of.split(':')[0] == name and 'cleared' in (what, kind)
                                                     or (of.split(':')[0], what) == (name, kind)], (name, number, kind))
            else:
                self.assertEqual((at, instant, score), self.events[f'{name}:{number}', kind], (name, number, kind))

    def logged(self, daemon, pattern):
        found = [re.search(pattern, line) for line in daemon.log]
        found = [f for f in found if f]
        self.assertTrue(found, f'{pattern}: not in\n' + '\n'.join(daemon.log))
        return found[0]

    # --- a clean end and a kill ---------------------------------------------------------------------------------------

    def test_a_clean_end_loses_nothing(self):
        """Ended and started again four times: scores, alerts and their numbers go on as if nothing had been."""
        events, cuts = [], [0, 61, 100, 137, POINTS]
        for first, behind in zip(cuts, cuts[1:]):
            daemon = self.start()
            results, more = self.run_part(daemon, first, behind)
            events += more
            self.assertNotIn('late', [r[4] for r in results])
            self.assertEqual(daemon.stop(), 0)
            if first > 0:
                self.logged(daemon, f'restored {SENSORS} sensors')
        keys = [(f'{e[0]}:{e[1]}', e[2]) for e in events]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertEqual(set(keys), set(self.events))
        self.assertLessEqual(len(self.files()), 2)

    def test_killed_under_load(self):
        """With a snapshot a second: what is missing after a kill is what came since the last one."""
        rng, at = random.Random(3), 0
        for _ in range(2 if self.mode == 'snapshot' else 1):
            daemon = self.start('snapshot = 1s\n', ends=-signal.SIGKILL)
            fed = []  # when each time was scored
            with daemon.client() as subscriber, daemon.client() as feeder:
                subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
                end = time.monotonic() + rng.uniform(1.6, 2.6)
                while (time.monotonic() < end or not self.files()) and at < POINTS:
                    subscriber.wait_results(len(subscriber.results) + self.feed(feeder, at, at + 1))
                    at += 1
                    fed.append(time.monotonic())
                    time.sleep(0.03)
                daemon.process.send_signal(signal.SIGKILL)
                killed = time.monotonic()
                daemon.process.wait()
                self.check(subscriber)
            again = self.start('snapshot = 1h\n', ends=-signal.SIGKILL)
            with again.client() as subscriber, again.client() as feeder:
                subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
                n = self.feed(feeder, 0, at)
                subscriber.wait_results(n)
                subscriber.drain(0.1)
                self.check(subscriber)
                missing = {r[1] for r in subscriber.results if r[4] != 'late'}
            had = at - len(missing)
            self.assertGreater(len(self.files()), 0)
            # the snapshot that counts was begun at most a period and what it takes before the kill
            late = [t for k, t in enumerate(fed) if at - len(fed) + k >= had]
            if not harness.SANITIZED:
                self.assertTrue(all(killed - t < 1 + 1.5 for t in late), [killed - t for t in late])
            self.assertLess(len(missing), at)
            again.process.send_signal(signal.SIGKILL)
            again.process.wait()
            shutil.rmtree(self.state)
            os.mkdir(self.state)
            at = 0

    def check_told(self, daemon):
        """No alert is raised or cleared twice, and those that are raised and not cleared are those that stand. Returns what was told: (sensor, number,
        kind)."""
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
        """Killed with events up to point `second` that were told, and a snapshot of point `first`. Returns what stood when it was killed, and what the
        next start told."""
        daemon = self.start(**how)
        self.run_part(daemon, 0, first, exact=False)
        before = self.check_told(daemon)
        self.assertEqual(daemon.stop(), 0)
        daemon = self.start(ends=-signal.SIGKILL, **how)
        self.run_part(daemon, first, second, exact=False)
        like = next(a['sensor'] for a in daemon.status()['alerts']['first'] if len(a['sensor']) == 3)
        with daemon.client() as feeder:  # a sensor that no snapshot knows, and that has an alert
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
        """What does not stand any more is told cleared, once; what stands stays; and numbers go on."""
        stood, ended = self.alerts_since_the_snapshot(115, 150)
        self.assertLessEqual(ended, stood)

    def test_corrected_since_the_snapshot(self):
        """An alert that is in the snapshot, and was corrected since, stands."""
        stood, ended = self.alerts_since_the_snapshot(170, 200, detectors=[('all', '*', 'window=40,rank=3,interval=1s,alert=0.3,cooldown=0')])
        self.assertIn(('s0', 1), stood - ended)

    def test_corrected_and_anew(self):
        """The snapshot has an alert as raised, and it was corrected since; the next start's detector is another: the alert is told cleared, though the
        correction's number in the sequence is the one that its end would have had."""
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

    def test_taken_under_load(self):
        """Many snapshots while points come as fast as they can, also floods of one sensor, which wait in chains."""
        daemon = self.start('snapshot = 1s\n')
        flood = 10000 if harness.SANITIZED else 30000
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES, 's*')
            end, at = time.monotonic() + 2.2, 0
            handle = feeder.register('flood')[0]
            sent = 0
            while time.monotonic() < end and at < POINTS:
                self.feed(feeder, at, at + 2)
                at += 2
                feeder.send(harness.points([handle] * 3000, [START + (sent + i) * SECOND for i in range(3000)], [i % 7 for i in range(3000)]))
                sent += 3000
                if sent >= flood:
                    time.sleep(0.05)
            subscriber.wait_results(at * SENSORS)
            feeder.bye()
            self.check(subscriber)
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(len(self.files()), 2)
        again = self.start()
        self.logged(again, f'restored {SENSORS + 1} sensors')
        self.run_part(again, at, POINTS)
        with again.client() as c:
            c.subscribe(SCORED | UNSCORED)
            c.send(harness.points(c.register('flood'), [START + (sent - 1) * SECOND], [0.0]))
            self.assertEqual(c.wait_results(1)[-1][4], 'late')

    def test_taken_in_a_flood(self):
        """However many points wait, a snapshot gets on: more come than are scored, from several connections, all the time."""
        daemon = self.start('snapshot = 1s\nmax_pending = 400000\n', ends=-signal.SIGKILL)

        def flood(number):
            with contextlib.suppress(OSError, harness.Closed), daemon.client() as feeder:
                handles, at = feeder.register(*(f's{number} {i}' for i in range(500))), 0
                while True:
                    feeder.send(harness.points(handles * 8, [START + k * SECOND for k in range(at, at + 8) for _ in handles],
                                               [float((k * 37 + i * 101) % 97) for k in range(at, at + 8) for i in range(500)]))
                    at += 8

        senders = [threading.Thread(target=flood, args=[i]) for i in range(2)]
        for sender in senders:
            sender.start()
        harness.until(lambda: daemon.status()['durability']['shards'][0]['snapshots'] > 1, 'snapshots', max(10, harness.WAIT / 2))
        daemon.process.send_signal(signal.SIGKILL)
        for sender in senders:
            sender.join()

    @unittest.skipUnless('FAILING_DISK_LIBRARY' in os.environ, 'a preloaded library does not go with a sanitizer')
    def test_a_disk_that_fails(self):
        """A snapshot that cannot be written is given up and told, the good ones stay, scoring goes on, and the next is taken when it can."""
        folder = tempfile.mkdtemp(prefix='hankeld-orders-')
        self.addCleanup(shutil.rmtree, folder)
        orders = os.path.join(folder, 'orders')
        daemon = self.start('snapshot = 1s\n', environment={'LD_PRELOAD': os.environ['FAILING_DISK_LIBRARY'], 'FAILING_DISK': orders})

        def shard():
            return daemon.status()['durability']['shards'][0]

        self.run_part(daemon, 0, 60)
        harness.until(lambda: shard()['snapshots'] > 0, 'a snapshot')
        for at, order, what in (60, f'write {errno.ENOSPC}', 'No space left'), (100, f'sync {errno.EIO}', 'Input/output error'):
            failed = shard()['snapshots_failed']
            with open(orders, 'w') as f:
                f.write(order)
            harness.until(lambda: shard()['snapshots_failed'] > failed, 'a snapshot to fail')
            self.assertIn(what, shard()['snapshot_why'])
            had = self.files()
            self.assertIn('ok', {r[4] for r in self.run_part(daemon, at, at + 40)[0]})
            harness.until(lambda: shard()['snapshots_failed'] > failed + 1, 'the next one to fail')
            self.assertEqual(self.files(), had)  # nothing that is not whole, and nothing gone
            os.remove(orders)
            made = shard()['snapshots']
            harness.until(lambda: shard()['snapshots'] > made, 'a snapshot to be taken again')
            self.logged(daemon, f'snapshot: of shard 0 was given up: .*{what}')
        self.assertEqual(daemon.stop(), 0)
        self.assertEqual(glob.glob(f'{self.state}/shard-0/*.tmp'), [])
        again = self.start()
        self.run_part(again, 140, POINTS)

    # --- files --------------------------------------------------------------------------------------------------------

    def make_two(self):
        """Two snapshots: after 100 points and after 140."""
        daemon = self.start()
        self.run_part(daemon, 0, 100)
        daemon.stop()
        daemon = self.start()
        self.run_part(daemon, 100, 140)
        daemon.stop()
        self.assertEqual(len(self.files()), 2)
        return self.files()

    def state_command(self, *arguments):
        return subprocess.run([harness.HANKEL, 'state', *arguments], capture_output=True, text=True, timeout=harness.WAIT, check=False)

    def test_a_damaged_one_is_not_used(self):
        old, new = self.make_two()
        with open(new, 'r+b') as f:
            f.seek(os.path.getsize(new) // 2)
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 4]))
        good, bad = self.state_command('verify', old), self.state_command('verify', new)
        self.assertEqual((good.returncode, bad.returncode), (0, 1))
        self.assertIn('good', good.stdout)
        self.assertRegex(bad.stdout, r'DAMAGED: section \d+ \(SENSORS, at byte \d+\)')
        self.assertEqual(self.state_command('verify', self.state).returncode, 1)
        daemon = self.start()
        self.logged(daemon, os.path.basename(new) + ' is damaged: section .*snapshot before it is taken')
        results, _ = self.run_part(daemon, 0, 140)
        # with a journal what is missing comes from there
        missing = {r[1] for r in results if r[4] != 'late'}
        self.assertEqual(len(missing), 40 if self.mode == 'snapshot' else 0)

    def test_all_are_damaged(self):
        for path in self.make_two():
            with open(path, 'r+b') as f:
                f.truncate(os.path.getsize(path) - 1)
        daemon = self.start()
        self.logged(daemon, 'none of the snapshots is good')
        self.run_part(daemon, 0, 20, exact=False)

    def test_another_version_is_refused(self):
        """The daemon does not start, says which file and which version, and leaves it alone."""
        new = self.make_two()[1]
        xxhash = ctypes.CDLL('libxxhash.so.0')
        xxhash.XXH3_64bits.restype, xxhash.XXH3_64bits.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
        with open(new, 'r+b') as f:
            head = bytearray(f.read(72))
            head[8] = 4
            f.seek(0)
            f.write(head + xxhash.XXH3_64bits(bytes(head), len(head)).to_bytes(8, 'little'))
            f.seek(0)
            before = f.read()
        told = self.state_command('verify', new)
        self.assertEqual(told.returncode, 1)
        self.assertIn('version 4', told.stdout)
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as conf:
            conf.write(f'[daemon]\nbackend = {harness.BACKEND}\ndurability = {self.mode}\nstate = {self.state}\n'
                       '[listen one]\nprotocol = binary\naddress = 127.0.0.1:0\n[detector all]\nmatch = *\n')
            conf.flush()
            out = subprocess.run([harness.HANKELD, '-c', conf.name], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual(out.returncode, 1)
        self.assertIn(os.path.basename(new) + ': it is of version 4; this hankeld reads version 3', out.stderr)
        with open(new, 'rb') as f:
            self.assertEqual(f.read(), before)

    def test_inspected(self):
        self.make_two()
        out = self.state_command('inspect', self.state)
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertRegex(out.stdout, rf'snapshot \d+ of shard 0 of 1, .*\n  sensors {SENSORS}, alerts that stand \d+, detectors 2')
        self.assertEqual(self.state_command('verify', self.state).returncode, 0)
        self.assertEqual(self.state_command('verify', self.state + '/nowhere').returncode, 1)
        self.assertEqual(self.state_command('mend', self.state).returncode, 2)
        self.assertEqual(self.state_command('verify').returncode, 2)

    # --- other configurations, backends, devices ----------------------------------------------------------------------

    def test_other_detectors(self):
        daemon = self.start()
        self.run_part(daemon, 0, 140)
        stood = {e: k for e, k in self.events if k == 'raised'}
        daemon.stop()
        name, match, keys = DETECTORS[1]
        daemon = self.start(detectors=[DETECTORS[0], (name, match, keys.replace('window=20', 'window=24'))])
        self.logged(daemon, f'{SENSORS - 10} of them start anew')
        results, events = self.run_part(daemon, 140, 200, exact=False)
        for sensor, at, _, score, state in results:
            if len(sensor) == 2:
                self.assertEqual((score, state), self.rows[sensor, at])
        first = [r for r in results if r[0] == 's30'][0]
        self.assertEqual(first[4], 'warming')
        numbers = {(e[0], e[1]) for e in events if e[2] == 'raised' and len(e[0]) == 3}
        self.assertFalse({f'{s}:{n}' for s, n in numbers} & stood.keys())  # an id never means two alerts
        daemon.stop()
        daemon = self.start(detectors=[(n + 'er', m, k) for n, m, k in DETECTORS])
        self.logged(daemon, f'{SENSORS} of them start anew')
        daemon.stop()
        daemon = self.start(detectors=[(name, 's?', keys)])
        self.logged(daemon, f'{SENSORS - 10} sensors were not restored: no detector')

    def test_another_backend(self):
        daemon = self.start()
        self.run_part(daemon, 0, 140)
        daemon.stop()
        daemon = self.start(backend='reference')
        self.logged(daemon, f'restored {SENSORS} sensors')
        results, _ = self.run_part(daemon, 140, POINTS, exact=False)
        for sensor, at, _, score, state in results:
            want = self.rows[sensor, at]
            self.assertEqual(state, want[1])
            if score is not None:
                self.assertAlmostEqual(score, want[0], delta=2e-4)

    @unittest.skipUnless(FAULTY, 'the daemon with other devices is not built')
    def test_other_numbers_of_devices(self):
        at = 0
        for devices in (1, 3, 2, 1):
            daemon = self.start(backend='cuda', program=FAULTY, environment={'HANKELD_DEVICES': str(devices)})
            if at > 0:
                self.logged(daemon, f'restored {SENSORS} sensors')
            results, _ = self.run_part(daemon, at, at + 50)
            self.assertNotIn('late', [r[4] for r in results])
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual([len(self.files(i)) > 0 for i in range(devices)], [True] * devices)
            at += 50


    @unittest.skipUnless(FAULTY, 'the daemon with other devices is not built')
    def test_killed_before_every_shard_has_a_snapshot(self):
        """There are two devices now, and one of them does not get to its snapshot: those of the run before are the whole ones, and stay."""
        daemon = self.start()
        self.run_part(daemon, 0, 140)
        daemon.stop()
        daemon = self.start('snapshot = 1s\ndevice_timeout = 600s\n', backend='cuda', program=FAULTY, ends=-signal.SIGKILL,
                            environment={'HANKELD_DEVICES': '2', 'HANKELD_FAULTY': '1', 'HANKELD_FAULT': 'slow 4000000000'})
        harness.until(lambda: daemon.status()['durability']['shards'][0]['snapshots'] > 2, 'snapshots of one shard')
        self.assertEqual(daemon.status()['durability']['shards'][1]['snapshots'], 0)
        daemon.process.kill()
        daemon.process.wait()
        daemon = self.start(backend='cuda', program=FAULTY, environment={'HANKELD_DEVICES': '2'})
        self.logged(daemon, f'restored {SENSORS} sensors')
        self.run_part(daemon, 140, 160)
        daemon.stop()

    @unittest.skipUnless(FAULTY, 'the daemon with other devices is not built')
    def test_damaged_after_another_number_of_devices(self):
        """Once each of the new devices has had a snapshot, what was before them may be gone: then those that are good are taken, though one is not."""
        daemon = self.start(**self.devices(1))
        self.run_part(daemon, 0, 50)
        self.assertEqual(daemon.stop(), 0)
        daemon = self.start(**self.devices(3))
        harness.until(lambda: all(s['snapshots'] >= 1 for s in daemon.status()['durability']['shards']), 'one each')
        self.assertEqual(daemon.stop(), 0)  # with another one each
        os.remove(self.files(0)[-1])  # the one that needs the others is this shard's newest now
        for name in self.files(2):
            os.remove(name)
        daemon = self.start(**self.devices(3))
        self.logged(daemon, f'restored {SENSORS * 2 // 3} sensors')
        self.assertFalse([line for line in daemon.log if 'passed over' in line])
        self.assertEqual(daemon.stop(), 0)


class WithJournal(Snapshots):
    mode = 'journal'
    # as without
    test_killed_before_every_shard_has_a_snapshot = test_damaged_after_another_number_of_devices = None  # its journal could not be replayed there
    test_inspected = test_taken_in_a_flood = test_a_disk_that_fails = test_another_version_is_refused = test_another_backend = test_other_detectors = None

    def fed(self, daemon):
        """How many points of the feed the daemon says that it has."""
        with daemon.client() as c:
            return c.request(FEED, harness.text('f'), FEED_AT).one('Q')

    def killed_between_first_snapshots(self):
        """A start with two devices, killed when one of them has its first snapshot and the other, whose device gives nothing back, has not."""
        before = self.files()
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as conf:
            conf.write('[daemon]\nbackend = cuda\nthreads = 2\ndevice_timeout = 600s\ndurability = journal\n'
                       f'state = {self.state}\n[listen one]\nprotocol = binary\naddress = 127.0.0.1:0\n' + ''.join(harness.section(*d) for d in DETECTORS))
            conf.flush()
            how = self.devices(2, HANKELD_FAULTY='1', HANKELD_FAULT='slow 4000000000')['environment']
            with subprocess.Popen([FAULTY, '-c', conf.name], stderr=subprocess.DEVNULL, env={**os.environ, **how}) as p:
                try:
                    harness.until(lambda: self.files() != before, 'a snapshot of the one')
                finally:
                    p.kill()
        self.assertEqual(self.files(1), [])

    @unittest.skipUnless(FAULTY, 'the daemon with other devices is not built')
    def test_killed_between_the_first_snapshots_of_another_number_of_devices(self):
        """There was no snapshot before: the journals of one device have everything, and one snapshot of two replaces none of it, whatever the
        next start has."""
        sensors = list(self.values)[:3]
        daemon = self.start(**self.devices(1), ends=-signal.SIGKILL)
        with daemon.client() as feeder:
            self.assertEqual(feeder.request(FEED, harness.text('f'), FEED_AT).one('Q'), 0)
            handle = feeder.register(*sensors)
            for k in range(100):  # the second sensor, which is to be the other device's, has none: it need not replay any
                feeder.send(harness.points([handle[0], handle[2]], [START + k * SECOND] * 2, [self.values[s][k] for s in sensors[::2]], before=2 * k))
            harness.until(lambda: daemon.status()['durability']['shards'][0]['committed'] == 200, 'all to be on the disk')
        self.assertEqual(self.fed(daemon), 200)
        daemon.process.kill()
        daemon.process.wait()
        for _ in range(2):
            self.killed_between_first_snapshots()
        origin = self.state
        for devices in (1, 2, 3):
            with self.subTest(devices=devices):
                self.state = tempfile.mkdtemp(prefix='hankeld-state-')
                self.addCleanup(shutil.rmtree, self.state)
                shutil.copytree(origin, self.state, dirs_exist_ok=True)
                daemon = self.start(**self.devices(devices))
                self.assertEqual((self.fed(daemon), daemon.status()['sensors']['count']), (200, 3))
                for epoch in (1, 2):
                    self.logged(daemon, f'snapshots of 1 of 2 shards, of epoch {epoch}, are passed over')
                self.assertFalse([line for line in daemon.log if 'error' in line])
                with daemon.client() as subscriber, daemon.client() as feeder:
                    subscriber.subscribe(SCORED | UNSCORED | VALUES)
                    n = self.feed(feeder, 100, 120, sensors=sensors[::2])
                    subscriber.wait_results(n)
                    self.check(subscriber)
                    self.assertNotIn('warming', [r[4] for r in subscriber.results])
                self.assertEqual(daemon.stop(), 0)

    def test_killed_in_a_flood(self):
        """A sensor with more points than batches take of it, a snapshot meanwhile, and a kill: what the snapshot has of it and what the
        journal has fit together to the point. A device that is slower than the points come sees to it that some wait in its chain."""
        slow = {'program': FAULTY, 'backend': 'cuda', 'environment': {'HANKELD_FAULT': 'rate 30000'}} if FAULTY else {}
        n, rng = 80000 if FAULTY else 200000, random.Random(9)
        value = [harness.single(rng.gauss(0, 1)) for _ in range(n)]
        path = os.path.join(self.state, 'flood.csv')
        with open(path, 'w') as f:
            f.write('time,flood\n' + ''.join(f'{START + k * SECOND},{v!r}\n' for k, v in enumerate(value)))
        rows, _ = harness.replay(path, DETECTORS[1][2], harness.BACKEND, '--unit', 'ns')
        want = {at: (score, state) for _, at, score, state, _ in rows}
        daemon = self.start(f'snapshot = 1s\nmax_pending = {n // 8}\n', ends=-signal.SIGKILL, **slow)

        def send(feeder, pause=0):
            handle = feeder.register('flood')[0]
            for at in range(0, n, 1000):
                feeder.send(harness.points([handle] * 1000, [START + k * SECOND for k in range(at, at + 1000)], value[at:at + 1000]))
                time.sleep(pause)

        def flood(feeder):
            with contextlib.suppress(OSError):
                send(feeder, 0.012)

        with daemon.client() as feeder, daemon.client() as other:
            sender = threading.Thread(target=flood, args=[feeder])
            sender.start()
            harness.until(lambda: other.status()['durability']['shards'][0]['snapshots'] > 0, 'a snapshot')
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            sender.join()
        again = self.start()
        self.logged(again, 'restored 1 sensors')
        with again.client() as subscriber, again.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED)
            send(feeder)
            subscriber.wait_results(n)
            went_on = [r for r in subscriber.results if r[4] != 'late']
            if harness.SANITIZED and not went_on:
                self.skipTest('it is too slow for a kill in the flood: the snapshot came behind all points')
            self.assertTrue(went_on, 'it was killed too late')
            for _, at, _, score, state in went_on:
                self.assertEqual((score, state), want[at], (at - START) // SECOND)


if __name__ == '__main__':
    harness.main()
