"""Snapshots: after a clean end nothing is missing, and after a kill only what came since the last good snapshot. From there results are, bit for bit,
those of an uninterrupted run. Files that are damaged, of another version, of other detectors or backends."""
import contextlib
import ctypes
import errno
import glob
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED, VALUES
from snapshots import DETECTORS, FAULTY, POINTS, SENSORS, Snapshots


class WithoutJournal(Snapshots):
    def test_a_clean_end_loses_nothing(self):
        """The daemon is ended and started again four times: scores, alerts and their numbers continue as in an uninterrupted run."""
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
        """With a snapshot every second, a kill loses only what came since the last one."""
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
            # the last good snapshot was begun before the kill by at most a period and the time that it takes
            late = [t for k, t in enumerate(fed) if at - len(fed) + k >= had]
            if not harness.SANITIZED:
                self.assertTrue(all(killed - t < 1 + 1.5 for t in late), [killed - t for t in late])
            self.assertLess(len(missing), at)
            again.process.send_signal(signal.SIGKILL)
            again.process.wait()
            shutil.rmtree(self.state)
            os.mkdir(self.state)
            at = 0

    def test_taken_under_load(self):
        """Many snapshots while points come at full speed, among them floods of one sensor, which wait in chains."""
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
        """A snapshot is completed however many points wait: several connections send more than is scored, all the time."""
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
        """A snapshot that cannot be written is abandoned and reported. The good ones stay, scoring continues, and the next snapshot succeeds once the
        disk works."""
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
            self.assertEqual(self.files(), had)  # no incomplete file, and none is missing
            os.remove(orders)
            made = shard()['snapshots']
            harness.until(lambda: shard()['snapshots'] > made, 'a snapshot to be taken again')
            self.logged(daemon, f'snapshot: of shard 0 was abandoned: .*{what}')
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
        self.logged(daemon, os.path.basename(new) + ' is damaged: section .*previous snapshot is used')
        results, _ = self.run_part(daemon, 0, 140)
        # with a journal the missing points come from there
        missing = {r[1] for r in results if r[4] != 'late'}
        self.assertEqual(len(missing), 40 if self.mode == 'snapshot' else 0)

    def test_all_are_damaged(self):
        for path in self.make_two():
            with open(path, 'r+b') as f:
                f.truncate(os.path.getsize(path) - 1)
        daemon = self.start()
        self.logged(daemon, 'all snapshots are damaged')
        self.run_part(daemon, 0, 20, exact=False)

    def test_another_version_is_refused(self):
        """The daemon does not start, names the file and its version, and does not change the file."""
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

    def test_maintenance_windows_are_verified(self):
        daemon = self.start()
        began = subprocess.run([harness.HANKEL, 'maintenance', '--from', f'127.0.0.1:{daemon.port["binary tcp"]}', 'begin', 'press*', '1h'], capture_output=True,
                               text=True, timeout=harness.WAIT, check=False)
        self.assertEqual((began.returncode, began.stderr), (0, ''))
        daemon.stop()
        path = os.path.join(self.state, 'maintenance')
        good = self.state_command('verify', self.state)
        self.assertEqual(good.returncode, 0)
        self.assertIn(f'{path}: good, 1 window that', good.stdout)
        with open(path, 'rb') as f:
            line = f.read()
        for content, told in ((line + b'12\tx\tanna\t*\n', '1 of 2 lines are not maintenance windows, the first is line 2'), (line[:-3], '1 of 1 lines'),
                              (os.urandom(1 << 20), 'File too large')):
            with open(path, 'wb') as f:
                f.write(content)
            for what in self.state, path:
                bad = self.state_command('verify', what)
                self.assertEqual(bad.returncode, 1)
                self.assertIn(f'{path}: DAMAGED: {told}', bad.stdout)

    # --- other configurations, backends, devices ----------------------------------------------------------------------

    def test_other_detectors(self):
        daemon = self.start()
        self.run_part(daemon, 0, 140)
        stood = {e: k for e, k in self.events if k == 'raised'}
        daemon.stop()
        name, match, keys = DETECTORS[1]
        daemon = self.start(detectors=[DETECTORS[0], (name, match, keys.replace('window=20', 'window=24'))])
        self.logged(daemon, f'{SENSORS - 10} of them warm up again')
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
        self.logged(daemon, f'{SENSORS} of them warm up again')
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


class WithJournal(WithoutJournal):
    mode = 'journal'
    test_inspected = test_taken_in_a_flood = test_a_disk_that_fails = test_another_version_is_refused = test_another_backend = test_other_detectors = None  # as without

    def test_killed_in_a_flood(self):
        """A sensor sends more points than batches take of it, a snapshot is taken meanwhile, and the daemon is killed: the snapshot and the journal
        together have each point once. The device is slower than the sensor, so that points wait in its chain."""
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
