"""A disk that fails, is full, slow or read-only under durability = journal."""
import glob
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

import harness
from harness import SCORED, SECOND, START, UNSCORED

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95


@unittest.skipUnless('FAILING_DISK_LIBRARY' in os.environ, 'a preloaded library does not go with a sanitizer')
class Disk(harness.Case):
    """A disk that fails, is full or slow: how long results wait for it, what is reported, and how the daemon recovers."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.orders = os.path.join(self.folder, 'orders')
        self.time = START

    def order(self, what):
        """Sets the disk's fault from now on; '' for none."""
        with open(self.orders + '.new', 'w') as f:
            f.write(what)
        os.rename(self.orders + '.new', self.orders)

    def start(self, wait, ends=0, state='warming'):
        self.d = self.daemon(ends=ends, keys=f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.folder}/state\n'
                                  f'journal_wait = {wait}\nsnapshot = 1h\n',
                             environment={'LD_PRELOAD': os.environ['FAILING_DISK_LIBRARY'], 'FAILING_DISK': self.orders})
        self.subscriber, self.feeder = self.d.client(), self.d.client()
        self.addCleanup(self.subscriber.close)
        self.addCleanup(self.feeder.close)
        self.subscriber.subscribe(SCORED | UNSCORED)
        self.handle = self.feeder.register('a')
        self.point()
        self.assertEqual(self.subscriber.wait_results(1)[0][4], state)

    def point(self):
        self.feeder.send(harness.points(self.handle, [self.time], [1.0]))
        self.time += SECOND

    def durability(self):
        return self.d.status()['durability']

    def said(self, words):
        return sum(words in line for line in self.d.log)

    def short(self, trouble, word):
        """Results wait, and come when the disk works again; nothing is lost, and a restart restores everything."""
        self.start('60s', ends=-signal.SIGKILL)
        self.order(trouble)
        self.point()
        harness.until(lambda: self.durability()['state'] == 'failing', 'the failure to be seen')
        self.assertIn(word, self.durability()['why'])
        self.subscriber.drain(0.2)
        self.assertEqual(len(self.subscriber.results), 1)
        self.assertEqual(self.d.status()['points']['pending'], 1)
        self.order('')
        self.subscriber.wait_results(2)
        harness.until(lambda: self.durability()['state'] == 'ok', 'the end of it')
        harness.until(lambda: self.said('written again') == 1, 'the line that says so')
        self.d.process.kill()
        self.d.process.wait()
        self.time -= SECOND
        self.start('60s', state='late')
        self.assertEqual(self.durability()['replayed'], 2)
        self.assertEqual(self.said('replayed the journal in '), 1)

    def test_full_for_a_moment(self):
        self.short('write 28', 'No space left')

    def test_input_output_error_for_a_moment(self):
        self.short('sync 5', 'Input/output error')

    def test_slow(self):
        self.short('slow 100000', 'is slow')

    def long(self, trouble, word):
        """After journal_wait results flow without the disk; durability returns with the disk, and covers the points that came meanwhile."""
        self.start('300ms', ends=-signal.SIGKILL)
        self.order(trouble)
        self.point()
        self.subscriber.wait_results(2)
        for _ in range(5):
            self.point()
        self.subscriber.wait_results(7)
        now = self.durability()
        self.assertEqual(now['state'], 'degraded')
        self.assertIn(word, now['why'])
        self.assertEqual(self.said('durability is lost'), 1)
        self.order('')
        harness.until(lambda: self.durability()['state'] == 'ok', 'durability to be back')
        harness.until(lambda: self.d.log[-1].endswith('durability is back'), 'the line that says so')
        self.assertEqual(self.said('works again'), 1)
        self.point()
        self.subscriber.wait_results(8)
        self.d.process.kill()
        self.d.process.wait()
        self.time -= SECOND
        self.start('60s', state='late')

    def test_full(self):
        self.long('write 28', 'No space left')

    def test_input_output_error(self):
        self.long('sync 5', 'Input/output error')

    def test_too_slow(self):
        self.long('slow 100000', 'is slow')

    def come_again(self, wait):
        """A sender's connection ends while the disk takes none of its 10 points; the sender connects again."""
        self.start(wait)
        with self.d.client() as first:
            handle = first.register('b')
            self.assertEqual(first.request(FEED, harness.text('f'), FEED_AT).one('Q'), 0)
            self.order('sync 5')
            first.send(harness.points(handle * 10, [START + i * SECOND for i in range(10)], [i + 0.5 for i in range(10)], before=0))
            first.ping()
        second = self.d.client()
        self.addCleanup(second.close)
        second.send(harness.frame(FEED, harness.text('f'), 1))
        return second

    def test_a_sender_comes_again_before_the_disk_has_its_points(self):
        """The sender gets the position of its feed once that is certain, so it is never told of a point that it has not sent."""
        second = self.come_again('60s')
        harness.until(lambda: self.durability()['state'] == 'failing', 'the failure to be seen')
        second.socket.settimeout(0.5)
        self.assertRaises(TimeoutError, second.receive)
        self.order('')
        second.socket.settimeout(harness.WAIT)
        kind, _, payload = second.receive()
        self.assertEqual((kind, struct.unpack_from('<Q', payload)[0]), (FEED_AT, 10))

    def test_a_sender_comes_again_without_a_disk(self):
        """The sender does not wait for a disk that fails for long."""
        kind, _, payload = self.come_again('300ms').receive()
        self.assertEqual((kind, struct.unpack_from('<Q', payload)[0]), (FEED_AT, 0))
        self.assertEqual(self.durability()['state'], 'degraded')

    def test_killed_before_durability_is_back(self):
        """The daemon is killed when its journal continues after a hole, and no snapshot has the missing points: the feed is at its acknowledged
        position, not after the hole. Points that are sent again are taken or late, and the next start finds no hole."""
        def send(c, handle, first, behind):
            c.send(harness.points(handle * (behind - first), [START + i * SECOND for i in range(first, behind)], [i + 0.5 for i in range(first, behind)], before=first))

        def acknowledged(c, points):
            while True:
                kind, _, payload = c.receive()
                if kind == ACK and struct.unpack('<Q', payload)[0] >= points:
                    return

        def written(value):
            """Whether a point of this value is in a journal."""
            found = False
            for path in glob.glob(f'{self.folder}/state/shard-0/journal-*.hkj'):
                with open(path, 'rb') as f:
                    found |= struct.pack('<d', value) in f.read()
            return found

        self.start('300ms', ends=-signal.SIGKILL)
        with self.d.client() as c:
            handle = c.register('b')
            self.assertEqual(c.request(FEED, harness.text('f'), FEED_AT).one('Q'), 0)
            send(c, handle, 0, 10)
            acknowledged(c, 10)
            self.order('write 28')
            send(c, handle, 10, 20)
            harness.until(lambda: self.durability()['state'] == 'degraded', 'durability to be lost')
            send(c, handle, 20, 30)
            harness.until(lambda: self.d.status()['points']['in'] == 31 and self.d.status()['points']['pending'] == 0, 'the points')
            self.order('snapshot 28')
            harness.until(lambda: self.durability()['state'] == 'recovering', 'the journal to go on')
            send(c, handle, 30, 40)
            harness.until(lambda: written(39.5), 'points behind the hole')
            self.assertEqual(self.durability()['state'], 'recovering')
            self.d.process.kill()
            self.d.process.wait()
        self.order('')
        self.start('60s', ends=-signal.SIGKILL)
        at = 20 if written(19.5) else 10  # records that the disk did not take may have been written again
        self.assertEqual(self.said(f'{30 - at} points, from position {at + 1} on, are not in the journal and are lost'), 1, self.d.log)
        with self.d.client() as c:
            handle = c.register('b')
            self.assertEqual(c.request(FEED, harness.text('f'), FEED_AT).one('Q'), at)
            send(c, handle, at, 50)
            acknowledged(c, 50)
            harness.until(lambda: self.d.status()['points']['pending'] == 0, 'the points')
            self.assertEqual(self.d.status()['points']['late'], 40 - at)
            self.d.process.kill()
            self.d.process.wait()
        self.start('60s')
        self.assertEqual(self.said('not in the journal'), 0, self.d.log)
        with self.d.client() as c:
            self.assertEqual(c.request(FEED, harness.text('f'), FEED_AT).one('Q'), 50)

    def test_folder(self):
        """A start reports a state folder that another daemon uses."""
        self.start('1s')
        path = os.path.join(self.folder, 'second.conf')
        with open(path, 'w') as f:
            f.write(f'[daemon]\nbackend = {harness.BACKEND}\ndurability = journal\nstate = {self.folder}/state\n[detector all]\nmatch = *\n'
                    '[listen a]\nprotocol = line\naddress = 127.0.0.1:0\n')
        second = subprocess.run([harness.HANKELD, '-c', path], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(second.returncode, 1)
        self.assertIn('another daemon uses it', second.stderr)


class ReadOnly(harness.Case):
    """A file system that the kernel makes read-only under the daemon, because of an error: ext4 in a file."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.image, self.state = os.path.join(self.folder, 'image'), os.path.join(self.folder, 'mounted')
        os.mkdir(self.state)
        with open(self.image, 'wb') as f:
            f.truncate(16 << 20)
        if not shutil.which('mkfs.ext4') or subprocess.run(['mkfs.ext4', '-q', self.image], capture_output=True, check=False).returncode:
            self.skipTest('mkfs.ext4 is not there')
        if self.mount('-o', 'loop', self.image) != 0:
            self.skipTest('a file system cannot be mounted here (it needs privileges and a loop device)')
        self.addCleanup(subprocess.run, ['umount', '-l', self.state], check=False)

    def mount(self, *how):
        return subprocess.run(['mount', *how, self.state], capture_output=True, check=False).returncode

    def start(self, **how):
        return self.daemon(keys=f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}/there\njournal_wait = 300ms\n', **how)

    def test_read_only(self):
        """The daemon continues and reports the fault; results that it had published are there after a start from the repaired file system."""
        daemon = self.start(ends=-signal.SIGKILL)
        with daemon.client() as subscriber, daemon.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED)
            handle = feeder.register('a')
            feeder.send(harness.points(handle * 20, [START + k * SECOND for k in range(20)], [1.0] * 20))
            subscriber.wait_results(20)
            if self.mount('-o', 'remount,abort') != 0:
                daemon.process.kill()
                self.skipTest('this kernel does not do that on order')
            feeder.send(harness.points(handle * 5, [START + k * SECOND for k in range(20, 25)], [1.0] * 5))
            subscriber.wait_results(25)
            now = daemon.status()['durability']
            self.assertEqual(now['state'], 'degraded')
            self.assertIn('Read-only file system', now['why'])
            harness.until(lambda: any('durability is lost' in l and 'Read-only file system' in l for l in daemon.log), 'the line that says so')
            feeder.ping()
        daemon.process.kill()
        daemon.process.wait()
        self.assertEqual(subprocess.run(['umount', self.state], check=False).returncode, 0)
        subprocess.run(['e2fsck', '-fy', self.image], capture_output=True, check=False)
        self.assertEqual(self.mount('-o', 'loop', self.image), 0)
        again = self.start()
        with again.client() as subscriber, again.client() as feeder:
            subscriber.subscribe(SCORED | UNSCORED)
            handle = feeder.register('a')
            feeder.send(harness.points(handle * 30, [START + k * SECOND for k in range(30)], [1.0] * 30))
            subscriber.wait_results(30)
            self.assertEqual([r[4] == 'late' for r in subscriber.results], [True] * 20 + [False] * 10)
        self.assertEqual(again.stop(), 0)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
