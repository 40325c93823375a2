"""Snapshots when the number of devices changes, and the daemon is killed before each new device has one."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness
from harness import SCORED, SECOND, START, UNSCORED, VALUES
from snapshots import DETECTORS, FAULTY, SENSORS, Snapshots

FEED, FEED_AT = 0x09, 0x89


class WithoutJournal(Snapshots):
    @unittest.skipUnless(FAULTY, 'there is no stand-in of devices')
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

    @unittest.skipUnless(FAULTY, 'there is no stand-in of devices')
    def test_killed_before_every_shard_has_a_snapshot(self):
        """There are two devices now, and one of them never completes a snapshot: the complete set is that of the previous run, and is kept."""
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

    @unittest.skipUnless(FAULTY, 'there is no stand-in of devices')
    def test_damaged_after_another_number_of_devices(self):
        """Once each new device has had a snapshot, older ones may be deleted: if one is damaged then, the good ones are used."""
        daemon = self.start(**self.devices(1))
        self.run_part(daemon, 0, 50)
        self.assertEqual(daemon.stop(), 0)
        daemon = self.start(**self.devices(3))
        harness.until(lambda: all(s['snapshots'] >= 1 for s in daemon.status()['durability']['shards']), 'one each')
        self.assertEqual(daemon.stop(), 0)  # with another one each
        os.remove(self.files(0)[-1])  # this shard's newest snapshot now needs those of the others
        for name in self.files(2):
            os.remove(name)
        daemon = self.start(**self.devices(3))
        self.logged(daemon, f'restored {SENSORS * 2 // 3} sensors')
        self.assertFalse([line for line in daemon.log if 'passed over' in line])
        self.assertEqual(daemon.stop(), 0)


class WithJournal(WithoutJournal):
    mode = 'journal'
    # its journal could not be replayed there
    test_killed_before_every_shard_has_a_snapshot = test_damaged_after_another_number_of_devices = None

    def fed(self, daemon):
        """The number of points of the feed that the daemon reports to have."""
        with daemon.client() as c:
            return c.request(FEED, harness.text('f'), FEED_AT).one('Q')

    @unittest.skipUnless(FAULTY, 'there is no stand-in of devices')
    def test_snapshots_come_before_points(self):
        """With another number of devices, the daemon serves no peer before each device has a snapshot, however slow it is."""
        daemon = self.start(**self.devices(1))
        self.run_part(daemon, 0, 50)
        self.assertEqual(daemon.stop(), 0)
        before = set(self.files(0))
        daemon = self.start(**self.devices(2, HANKELD_FAULTY='1', HANKELD_FAULT='slow 300'))
        self.assertTrue(set(self.files(0)) - before and self.files(1))
        self.assertEqual(daemon.stop(), 0)

    def killed_between_first_snapshots(self):
        """Starts with two devices, and kills the daemon when one of them has its first snapshot, and the other, which returns nothing, has none."""
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

    @unittest.skipUnless(FAULTY, 'there is no stand-in of devices')
    def test_killed_between_the_first_snapshots_of_another_number_of_devices(self):
        """There was no snapshot before: the journals of the one device have everything. A snapshot of one of two devices replaces none of them,
        whatever devices the next start has."""
        sensors = list(self.values)[:3]
        daemon = self.start(**self.devices(1), ends=-signal.SIGKILL)
        with daemon.client() as feeder:
            self.assertEqual(feeder.request(FEED, harness.text('f'), FEED_AT).one('Q'), 0)
            handle = feeder.register(*sensors)
            for k in range(100):  # the second sensor, which goes to the other device, has no points: that device need not replay any
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
                    self.logged(daemon, f'snapshots of 1 of 2 shards, of epoch {epoch}, are not used')
                self.assertFalse([line for line in daemon.log if 'error' in line])
                with daemon.client() as subscriber, daemon.client() as feeder:
                    subscriber.subscribe(SCORED | UNSCORED | VALUES)
                    n = self.feed(feeder, 100, 120, sensors=sensors[::2])
                    subscriber.wait_results(n)
                    self.check(subscriber)
                    self.assertNotIn('warming', [r[4] for r in subscriber.results])
                self.assertEqual(daemon.stop(), 0)


if __name__ == '__main__':
    harness.main()
