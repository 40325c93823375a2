"""Files of the state folder that are cut, damaged or removed while no daemon runs: the start reports the loss, nothing after a missing part is
replayed, and points that are sent again have the scores of an undisturbed run."""
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED
from test_state_folder import Feeder

DETECTOR = 'window=16,rank=2,interval=1s,alert=0.5,cooldown=30'
SENSORS, POINTS = 3, 300
HEAD, RECORD = 96, 32  # bytes


class Case(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.values = harness.waves(5, SENSORS, POINTS, (120, 200))
        cls.rows, cls.events = harness.uninterrupted(cls.values, DETECTOR)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.state = os.path.join(self.folder, 'state')

    def start(self, ends=-signal.SIGKILL):
        self.d = self.daemon(harness.section('all', '*', DETECTOR), ends=ends,
                             keys=f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}\nsnapshot = 1h\n')
        return self.d

    def kill(self):
        self.d.process.kill()
        self.d.process.wait()

    def feed(self, behind):
        """Sends the feed's points up to `behind` of each sensor, from the daemon's position on: all are taken and acknowledged, and their scores are
        those of an undisturbed run. Returns that position."""
        client = Feeder(self.d.port['binary tcp'])
        self.addCleanup(client.close)
        first = client.feed_at // SENSORS
        self.assertEqual(client.feed_at % SENSORS, 0)
        client.subscribe(SCORED | UNSCORED | ALERTS)
        handles = client.register(*self.values)
        for k in range(first, behind):  # in records of their own
            client.send(harness.points(handles, [START + k * SECOND] * SENSORS, [v[k] for v in self.values.values()], before=SENSORS * k))
            client.wait_results(SENSORS * (k + 1 - first))
        client.await_ack(SENSORS * behind)
        for sensor, time, _, score, what in client.results:
            self.assertEqual((score, what), self.rows[sensor, time])
        return first

    def runs(self, *behind):
        """Runs the daemon several times, each time up to a given point, and kills it; each run has its own journal file."""
        for end in behind:
            self.start()
            self.feed(end)
            self.kill()

    def files(self, suffix='hkj'):
        return sorted(glob.glob(f'{self.state}/shard-0/journal-*.{suffix}'))

    def numbers(self, suffix='hkj'):
        return [int(re.search(r'-(\d+)\.', path)[1]) for path in self.files(suffix)]

    def said(self, words):
        return sum(bool(re.search(words, line)) for line in self.d.log)

    def verify(self):
        return subprocess.run([harness.HANKEL, 'state', 'verify', self.state], capture_output=True, text=True, timeout=harness.WAIT, check=False)

    @staticmethod
    def records(path):
        """Offsets of the records of a segment, and the end of the last one."""
        with open(path, 'rb') as f:
            data = f.read()
        at = [HEAD]
        while at[-1] < len(data):
            at.append(at[-1] + RECORD + (struct.unpack_from('<I', data, at[-1])[0] + 7) // 8 * 8)
        assert at[-1] == len(data), path
        return at


class Segments(Case):
    """Files of the journal before the last one."""

    def ends_at(self, end, aside, why):
        """The start reports the reason, and sets later files aside without using them; points sent again have the scores of an undisturbed run."""
        told = self.verify()
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stdout, why)
        self.start()
        self.assertEqual(self.said(why), 1, self.d.log)
        self.assertEqual(self.said(f'the journal ends at position {end * SENSORS}, where it is incomplete: at least {(150 - end) * SENSORS} points'), 1, self.d.log)
        self.assertEqual(self.numbers('damaged'), aside)
        self.assertEqual(self.feed(160), end)
        self.kill()
        self.assertEqual(self.verify().returncode, 0)
        self.start()
        self.assertFalse([line for line in self.d.log if 'damage' in line or 'incomplete' in line], self.d.log)
        self.assertEqual(self.feed(170), 160)
        self.kill()

    def test_one_in_the_midst_is_gone(self):
        self.runs(50, 90, 120, 150)
        os.remove(self.files()[1])
        self.ends_at(50, [3, 4], r'journal-0*3\.hkj.*journal-0*2\.hkj, the file before it, is missing')

    def test_two_in_the_midst_are_gone(self):
        self.runs(50, 90, 120, 150)
        for path in self.files()[1:3]:
            os.remove(path)
        self.ends_at(50, [4], r'journal-0*4\.hkj.*journal-0*3\.hkj, the file before it, is missing')

    def test_one_in_the_midst_is_cut_at_a_record(self):
        self.runs(50, 90, 120, 150)
        path = self.files()[1]
        os.truncate(path, self.records(path)[-6])
        self.ends_at(85, [3, 4], r'journal-0*3\.hkj.*journal-0*2\.hkj, the file before it, had \d+ bytes, and has \d+')

    def test_one_in_the_midst_is_another(self):
        """A file of another folder under the right name: neither it nor the files after it are used."""
        mine = self.state
        self.state = os.path.join(self.folder, 'other')
        self.runs(50, 90)
        other, self.state = self.files()[1], mine
        self.runs(50, 90, 120, 150)
        shutil.copy(other, self.files()[1])
        told = self.verify()
        self.assertEqual(told.returncode, 1)
        self.start()
        for number in 2, 3:
            self.assertEqual(self.said(rf'journal-0*{number}\.hkj.*journal-0*{number - 1}\.hkj is not the file that was before it'), 1, self.d.log)
        self.assertEqual(self.numbers('damaged'), [2, 3, 4])
        self.assertEqual(self.feed(60), 50)
        self.kill()

    def test_what_the_snapshot_has_may_be_gone(self):
        self.runs(50)
        self.start(ends=0)
        self.feed(90)
        self.d.stop()
        self.runs(120, 150)
        os.remove(self.files()[0])
        self.start()
        self.assertFalse(self.said('missing|incomplete|damage'), self.d.log)
        self.assertEqual(self.feed(160), 150)
        self.kill()


class Ends(Case):
    """The end of the last file, or all of it, is missing."""

    def short(self, lost, behind):
        """The start reports the loss, once; the remaining records count, and points that are sent again have the scores of an undisturbed run."""
        told = self.verify()
        self.assertEqual(told.returncode, 1, told.stdout)
        self.start()
        self.assertEqual(self.said('nothing in them was acknowledged'), 0, self.d.log)
        self.assertEqual(self.d.status()['durability']['lost'], lost * SENSORS)
        self.assertEqual(self.said(rf'\b{lost * SENSORS} points\b.*acknowledged'), 1, self.d.log)
        self.kill()
        self.start()
        self.assertEqual(self.said('acknowledged'), 0, self.d.log)
        self.assertEqual(self.feed(behind + 10), behind - lost)
        self.kill()
        self.start()
        self.assertEqual(self.said('acknowledged|damage'), 0, self.d.log)
        self.assertEqual(self.d.status()['durability']['lost'], 0)
        self.assertEqual(self.feed(behind + 20), behind + 10)
        self.kill()
        self.assertEqual(self.verify().returncode, 0)

    def last(self):
        self.runs(50, 90)
        path = self.files()[-1]
        return path, self.records(path)

    def test_cut(self):
        path, at = self.last()
        os.truncate(path, at[-3] + 40)
        self.short(2, 90)

    def test_cut_at_a_record(self):
        path, at = self.last()
        os.truncate(path, at[-4])
        self.short(3, 90)

    def test_zeroed(self):
        """The damaged end is set aside unchanged."""
        path, at = self.last()
        with open(path, 'r+b') as f:
            f.seek(at[-3] + 8)
            f.write(bytes(at[-1] - at[-3] - 8))
            f.seek(0)
            was = f.read()
        self.short(2, 90)
        with open(self.files('damaged')[0], 'rb') as f:
            self.assertEqual(f.read(), was)

    def test_flipped(self):
        path, at = self.last()
        with open(path, 'r+b') as f:
            f.seek(at[-2] + 33)
            byte = f.read(1)
            f.seek(at[-2] + 33)
            f.write(bytes([byte[0] ^ 4]))
        self.short(1, 90)

    def test_the_last_file_is_gone(self):
        os.remove(self.last()[0])
        self.short(40, 90)

    def test_all_files_are_gone(self):
        self.last()
        for path in self.files():
            os.remove(path)
        self.start()
        self.assertEqual(self.d.status()['durability']['lost'], 90 * SENSORS)
        self.assertEqual(self.feed(20), 0)
        self.kill()

    def test_torn(self):
        """The incomplete record that a crash leaves is no loss, because nothing of it was acknowledged or published."""
        path, at = self.last()
        with open(path, 'ab') as f:
            f.write(b'x' * 100)
        self.assertEqual(self.verify().returncode, 0)
        self.start()
        self.assertEqual(self.said('nothing in them was acknowledged or published'), 1, self.d.log)
        self.assertEqual(self.d.status()['durability']['lost'], 0)
        self.assertEqual(self.feed(100), 90)
        self.kill()

    def test_without_marks(self):
        """Without the file of marks a loss cannot be excluded, and the start does not claim that nothing was lost."""
        path, at = self.last()
        os.truncate(path, at[-1] - 8)
        os.remove(os.path.join(self.state, 'marks'))
        self.start()
        self.assertEqual(self.said('the file marks is missing or damaged'), 1, self.d.log)
        self.assertEqual(self.said('nothing in them was acknowledged'), 0, self.d.log)
        self.assertEqual(self.said('it is unknown whether anything in them was acknowledged'), 1, self.d.log)
        self.assertEqual(self.feed(100), 89)
        self.kill()

    def test_removed_while_it_runs(self):
        """The file of marks is made again."""
        self.runs(50)
        self.start()
        os.remove(os.path.join(self.state, 'marks'))
        harness.until(lambda: self.said('the file marks of the state folder was removed'), 'the line that says so')
        self.feed(90)
        self.kill()
        path = self.files()[-1]
        os.truncate(path, self.records(path)[-4])
        self.short(3, 90)


class Events(Case):
    """Positions of events are never those of others."""
    KEYS = 'window=8,interval=1s,alert=0.3,cooldown=0'

    def start(self, ends=-signal.SIGKILL, wait='10s', **how):
        self.d = self.daemon(harness.section('all', '*', self.KEYS), ends=ends, **how,
                             keys=f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}\nsnapshot = 1s\njournal_wait = {wait}\n')
        return self.d

    def told(self, first, behind):
        """Feeds a sensor that raises and clears alerts; returns the positions of the events that a subscriber gets."""
        before, there = self.durability()['events_last'], self.d.status()['points']['in']
        with self.d.client() as c:
            handle = c.register('a')
            for k in range(first, behind):
                c.send(harness.points(handle, [START + k * SECOND], [float(k % 12 % (3 + k // 12 % 2 * 4))]))
            harness.until(lambda: (p := self.d.status()['points'])['pending'] == 0 and p['in'] >= there + behind - first, 'the points')
        harness.until(lambda: self.durability()['events_shown'] == self.durability()['events_last'], 'the events')
        missed, positions = self.heard(before)
        self.assertEqual(missed, 0)
        return positions

    def durability(self):
        return self.d.status()['durability']

    def saved(self):
        """Waits until all points are in a snapshot, so that a start does not repeat their events."""
        made = self.durability()['shards'][0]['snapshots']
        harness.until(lambda: self.durability()['shards'][0]['snapshots'] > made + 1, 'a snapshot of all points')

    def heard(self, since):
        """What a subscriber gets that asks for the events after a position: the number that it missed, and positions."""
        last = self.durability()['events_last']
        with self.d.client() as c:
            c.request(harness.SUBSCRIBE, struct.pack('<If', ALERTS | harness.POSITIONS, 0) + harness.text('') + struct.pack('<Q', since), harness.DONE)
            while since + sum(events for _, events in c.gaps) + len(c.placed) < last:
                kind, _, payload = c.receive()
                c.keep(kind, payload)
            return sum(events for _, events in c.gaps), [p[0] for p in c.placed]

    def cut(self, keep):
        """Cuts the log to that many events."""
        path = sorted(glob.glob(f'{self.state}/events-*.hke'))[-1]
        os.truncate(path, self.records(path)[keep])

    def made(self, ends):
        self.start(ends)
        first = self.told(0, 120)
        self.assertGreater(len(first), 5)
        self.assertEqual(first, list(range(1, len(first) + 1)))
        if ends:
            self.saved()
            self.kill()
        else:
            self.d.stop()
        return first

    def after_a_cut(self, ends):
        first = self.made(ends)
        keep = 3
        self.cut(keep)
        self.start()
        now = self.durability()
        self.assertEqual(now['events_lost'], len(first) - keep)
        self.assertEqual(self.said(f'at least {len(first) - keep} published events are lost'), 1, self.d.log)
        second = self.told(120, 240)
        self.assertGreater(len(second), 0)
        self.assertFalse(set(first) & set(second))
        missed, positions = self.heard(keep)
        self.assertGreaterEqual(missed, len(first) - keep)
        self.assertEqual(positions[-len(second):], second)
        missed, positions = self.heard(first[-1])
        self.assertEqual(positions[-len(second):], second)
        if not ends:  # then the number of lost events is known exactly
            self.assertEqual(missed, 0)
        self.kill()
        self.start()
        self.assertEqual(self.durability()['events_lost'], 0)
        self.kill()

    def test_cut_at_an_event_after_a_kill(self):
        self.after_a_cut(-signal.SIGKILL)

    def test_cut_at_an_event_after_an_end(self):
        self.after_a_cut(0)

    def test_the_log_is_gone(self):
        first = self.made(0)
        for path in glob.glob(f'{self.state}/events-*.hke'):
            os.remove(path)
        self.start()
        self.assertEqual(self.durability()['events_lost'], len(first))
        self.assertFalse(set(first) & set(self.told(120, 240)))
        self.kill()

    def test_the_log_is_cut_and_marks_are_gone(self):
        first = self.made(0)
        self.cut(3)
        os.remove(os.path.join(self.state, 'marks'))
        self.start()
        self.assertEqual(self.said('the file marks is missing or damaged'), 1, self.d.log)
        second = self.told(120, 240)
        self.assertGreater(second[0], 1 << 30)
        self.assertGreaterEqual(self.heard(3)[0], len(first) - 3)
        self.kill()

    def told_without_a_disk(self, trouble):
        """Positions of events that are published while durability is lost, before the daemon is killed; and of those that the next one publishes."""
        if 'FAILING_DISK_LIBRARY' not in os.environ:
            self.skipTest('a preloaded library does not go with a sanitizer')
        orders = os.path.join(self.state, '..', os.path.basename(self.state) + '-orders')
        self.addCleanup(lambda: os.path.exists(orders) and os.remove(orders))
        self.start(environment={'LD_PRELOAD': os.environ['FAILING_DISK_LIBRARY'], 'FAILING_DISK': orders}, wait='100ms')
        first = self.told(0, 120)
        with open(orders, 'w', encoding='utf-8') as f:
            f.write(trouble)
        with self.d.client() as c:
            c.send(harness.points(c.register('b'), [START], [0.0]))
        with open(f'{self.state}/marks', 'rb') as f:
            before = f.read()
            harness.until(lambda: self.durability()['state'] == 'degraded', 'durability to be lost')
            if trouble.startswith('write'):
                harness.until(lambda: f.seek(0) == 0 and f.read() != before, 'a mark, which this disk takes')
        time.sleep(1)  # and the calls by which it is synced
        second = self.told(120, 240)
        self.kill()
        os.remove(orders)
        self.start()
        return first, second, self.told(240, 360)

    def test_told_while_the_disk_takes_only_marks(self):
        first, second, third = self.told_without_a_disk('write 28')
        self.assertEqual(second, list(range(len(first) + 1, len(first + second) + 1)))
        self.assertGreater(third[0], 1 << 30)
        missed, positions = self.heard(first[-1])
        self.assertGreaterEqual(missed, len(second))
        self.assertEqual(positions[-len(third):], third)
        self.kill()

    def test_told_while_the_disk_takes_nothing(self):
        first, second, third = self.told_without_a_disk('dead 5')
        self.assertEqual(set(second), {0})  # those would be used again
        self.assertEqual(third[0], len(first) + 1)
        self.assertGreater(len(second), 5)
        self.kill()

    def test_nothing_is_passed_over_after_a_kill(self):
        first = self.made(-signal.SIGKILL)
        self.start()
        second = self.told(120, 240)
        self.assertEqual(first + second, list(range(1, len(first + second) + 1)))
        self.assertEqual(self.heard(0), (0, first + second))
        self.kill()


if __name__ == '__main__':
    harness.main(needs_gpu=False)
