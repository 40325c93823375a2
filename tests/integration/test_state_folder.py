"""The state folder, its lock and its files are deleted, renamed or replaced under a running daemon: the daemon reports it, acknowledges nothing
that could be lost, and recovers by itself if that is safe; and two daemons never use one folder."""
import ctypes
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile

import harness
from harness import SCORED, SECOND, START, UNSCORED

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95


class Feeder(harness.Client):
    """A connection of the feed `f` that keeps the number of its acknowledged points."""

    def __init__(self, port):
        super().__init__(port)
        self.acknowledged = self.feed_at = self.request(FEED, harness.text('f'), FEED_AT).one('Q')

    def keep(self, kind, payload):
        if kind != ACK:
            return super().keep(kind, payload)
        self.acknowledged = struct.unpack_from('<Q', payload)[0]

    def await_ack(self, n):
        """Waits until n points are acknowledged."""
        while self.acknowledged < n:
            kind, _, payload = self.receive()
            self.keep(kind, payload)


class Case(harness.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.state = os.path.join(self.folder, 'state')
        self.sent = 0

    def refused(self, state):
        """A second daemon does not start."""
        path = os.path.join(self.folder, 'second.conf')
        with open(path, 'w') as f:
            f.write(f'[daemon]\nbackend = {harness.BACKEND}\ndurability = journal\nstate = {state}\n[detector all]\nmatch = *\n'
                    '[listen a]\nprotocol = line\naddress = 127.0.0.1:0\n')
        second = subprocess.Popen([harness.HANKELD, '-c', path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        log = []
        for line in second.stderr:
            log.append(line)
            if line == 'ready\n':
                second.kill()
        second.wait()
        second.stderr.close()
        self.assertEqual(second.returncode, 1, log)
        self.assertIn('another daemon uses it', ''.join(log))

    def keys(self, state=None, more='', durability='journal'):
        return f'threads = 2\nmax_ahead = off\ndurability = {durability}\nstate = {state or self.state}\njournal_wait = 300ms\n{more or "snapshot = 1h"}\n'

    def start(self, ends=0, state=None, more='', durability='journal', **how):
        self.d = self.daemon(ends=ends, keys=self.keys(state, more, durability), **how)
        return self.d

    def feeder(self):
        client = Feeder(self.d.port['binary tcp'])
        self.addCleanup(client.close)
        self.handle = client.register('a')
        return client

    def send(self, client, n):
        """Sends n points of the named feed."""
        client.send(harness.points(self.handle * n, [START + (self.sent + k) * SECOND for k in range(n)], [float(k % 12 % (3 + k // 12 % 2 * 4)) for k in range(self.sent, self.sent + n)],
                                   before=self.sent))
        self.sent += n

    def durability(self):
        return self.d.status()['durability']

    def becomes(self, state):
        harness.until(lambda: self.durability()['state'] == state, f'the state {state}')

    def said(self, words):
        return sum(words in line for line in self.d.log)

    def kill(self):
        self.d.process.send_signal(signal.SIGKILL)
        self.d.process.wait()


class Limit(Case):
    """RLIMIT_FSIZE."""

    def limit(self, most):
        resource.prlimit(self.d.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def test_file_size(self):
        """At the limit of a file's size a write fails as on a full disk: the daemon continues, reports it, and recovers when the limit is raised."""
        self.start(ends=-signal.SIGKILL)
        client = self.feeder()
        client.subscribe(SCORED | UNSCORED)
        self.send(client, 10)
        client.wait_results(10)
        self.limit(256)
        self.send(client, 10)
        client.wait_results(20)
        self.assertIn('File too large', self.durability()['why'])
        self.assertEqual(self.durability()['state'], 'degraded')
        self.limit(resource.RLIM_INFINITY)
        self.becomes('ok')
        self.send(client, 10)
        client.wait_results(30)
        self.kill()
        self.start()
        self.assertEqual(self.feeder().feed_at, 30)


class TwoDaemons(Case):
    def journal(self):
        return sorted(os.listdir(os.path.join(self.state, 'shard-0')))

    def test_one_folder(self):
        """A second daemon is refused the folder under any name: with its lock removed, by a symbolic link, another spelling, a bind mount, and renamed."""
        self.start()
        client = self.feeder()
        self.send(client, 10)
        client.await_ack(10)
        was = self.journal()
        self.refused(self.state)
        os.remove(os.path.join(self.state, 'lock'))
        self.refused(self.state)
        link = os.path.join(self.folder, 'link')
        os.symlink(self.state, link)
        self.refused(link)
        self.refused(os.path.join(self.folder, '.', 'state', '..', 'state'))
        bound = os.path.join(self.folder, 'bound')
        os.mkdir(bound)
        if subprocess.run(['mount', '--bind', self.state, bound], capture_output=True, check=False).returncode == 0:
            self.addCleanup(subprocess.run, ['umount', '-l', bound], check=False)
            self.refused(bound)
        os.rename(self.state, self.state + '.old')
        self.refused(self.state + '.old')
        os.rename(self.state + '.old', self.state)
        self.assertEqual(self.journal(), was)


class Gone(Case):
    """Files and folders that are deleted, renamed or replaced under a running daemon."""

    def begin(self, more='', n=10, **how):
        """Starts a daemon that acknowledges n more points."""
        self.how = how
        self.start(ends=-signal.SIGKILL, more=more, **how)
        self.client = self.feeder()
        self.client.subscribe(SCORED | UNSCORED)
        self.sent = self.client.feed_at
        self.acknowledged(n)
        self.client.wait_results(n)  # and with them all events

    def acknowledged(self, n):
        self.send(self.client, n)
        self.client.await_ack(self.sent)

    def path(self, *names):
        return os.path.join(self.state, *names)

    def newest(self, suffix):
        return 'shard-0/' + max(f for f in os.listdir(self.path('shard-0')) if f.endswith(suffix))

    def harm(self, path, how):
        """Deletes, renames or replaces a file or folder; a file can be cut, too."""
        if how == 'cut':
            os.truncate(path, os.path.getsize(path) // 2)
        elif how == 'replaced':
            shutil.copyfile(path, path + '.new')
            os.rename(path + '.new', path)
        elif how == 'renamed':
            os.rename(path, path + '.gone')
        elif os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.remove(path)

    def await_said(self, words, n=1):
        harness.until(lambda: self.said(words) >= n, f'the line `{words}`')
        self.assertEqual(self.said(words), n, self.d.log)
        return [line for line in self.d.log if words in line][-1]

    def await_lost(self, *words, n=1):
        """Waits until durability is lost, once; the log names the contents of the missing file."""
        line = self.await_said('durability is lost', n)
        for word in words:
            self.assertIn(word, line)

    def unacknowledged(self):
        """More points are sent, and their results come; nothing is acknowledged."""
        had, results = self.client.acknowledged, len(self.client.results)
        self.send(self.client, 10)
        self.client.wait_results(results + 10)
        self.assertEqual(self.durability()['state'], 'degraded')
        self.client.ping()
        self.assertEqual(self.client.acknowledged, had)

    def restarts(self, clean=True):
        """The daemon is killed at the moment of an acknowledgement; after a start it has all acknowledged points, and reports no damage."""
        self.kill()
        self.start(ends=-signal.SIGKILL, **self.how)
        self.assertGreaterEqual(self.feeder().feed_at, self.client.acknowledged)
        self.assertEqual(self.durability()['lost'], 0)
        if clean:
            self.assertEqual([line for line in self.d.log if ('warning' in line or 'error' in line) and 'published events are lost' not in line], [])
        self.kill()
        shutil.rmtree(self.state)

    def exchange(self, one, other):
        """Exchanges two files atomically."""
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
        self.assertEqual(renameat2(-100, one.encode(), -100, other.encode(), 2), 0, os.strerror(ctypes.get_errno()))

    def healed(self, name, how, *words, n=10):
        """A file changes: the daemon notices and reports it, and durability returns by itself; all points that were acknowledged, before or after, are
        there after a kill."""
        self.harm(self.path(name), how)
        self.acknowledged(n)
        self.await_lost(os.path.basename(name), *words)
        self.await_said('notice: durability is back')
        self.restarts(clean=how != 'cut')

    def test_open_journal(self):
        for how in ('deleted', 'renamed', 'replaced', 'cut'):
            with self.subTest(how=how):
                self.begin()
                self.healed(self.newest('.hkj'), how, 'in it were 10 points')

    def test_older_journal(self):
        for how in ('deleted', 'renamed', 'replaced'):
            with self.subTest(how=how):
                self.begin()
                self.kill()
                name = self.newest('.hkj')
                self.begin(n=20)
                self.assertNotEqual(name, self.newest('.hkj'))
                self.healed(name, how, 'in it were 10 points')

    def test_snapshot(self):
        for how in ('deleted', 'renamed', 'replaced'):
            with self.subTest(how=how):
                self.begin(more='snapshot = 1s\n')
                harness.until(lambda: self.durability()['shards'][0]['snapshots'] > 0, 'a snapshot')
                self.d.configure('[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n', self.keys())
                self.client.reload()  # no further one is due
                self.healed(self.newest('.hks'), how, 'the newest snapshot')

    def test_event_log(self):
        for how in ('deleted', 'renamed', 'replaced', 'cut'):
            with self.subTest(how=how):
                self.begin(detectors=harness.section('all', '*', 'window=8,interval=1s,alert=0.3,cooldown=0'), n=200)
                n = harness.until(lambda: (d := self.durability())['events_last'] == d['events_shown'] and d['events_last'], 'events')
                self.healed('events-000000000001.hke', how, f'in it were {n} events', n=200)

    def test_shard_folder(self):
        for how in ('deleted', 'renamed'):
            with self.subTest(how=how):
                self.begin()
                self.harm(self.path('shard-0'), how)
                self.acknowledged(10)
                self.await_lost('shard-0 was removed, renamed or replaced', '10 points')
                self.await_said('notice: durability is back')
                self.restarts()

    def test_shard_folder_of_another(self):
        """A folder that is not empty is not used."""
        self.begin()
        os.mkdir(self.path('new'))
        with open(self.path('new', 'file'), 'w'):
            pass
        self.exchange(self.path('new'), self.path('shard-0'))
        self.await_lost('shard-0 was removed, renamed or replaced', '10 points')
        self.unacknowledged()
        self.exchange(self.path('new'), self.path('shard-0'))
        self.await_said('notice: durability is back')
        self.acknowledged(10)
        self.restarts()

    def test_lock(self):
        """The folder itself stays locked: a new lock file is made, and acknowledgements continue."""
        for how in ('deleted', 'renamed', 'replaced'):
            with self.subTest(how=how):
                self.begin()
                self.harm(self.path('lock'), how)
                self.await_said('/lock was removed or replaced, and is made again')
                self.acknowledged(10)
                self.assertEqual(self.durability()['state'], 'ok')
                self.restarts()

    def test_maintenance(self):
        """The file of windows is written again."""
        for how in ('deleted', 'renamed', 'replaced'):
            with self.subTest(how=how):
                self.begin()
                subprocess.run([harness.HANKEL, 'maintenance', '--from', f'127.0.0.1:{self.d.port["binary tcp"]}', '--by', 'otto', 'begin', 'pre*',
                                '2h'], check=True, capture_output=True, timeout=harness.WAIT)
                with open(self.path('maintenance')) as f:
                    was = f.read()
                self.harm(self.path('maintenance'), how)
                self.await_said('is written again')
                with open(self.path('maintenance')) as f:
                    self.assertEqual(f.read(), was)
                self.restarts()

    def test_folder_renamed(self):
        """Nothing is acknowledged until the folder has its name again; after a restart everything is there."""
        self.begin()
        os.rename(self.state, self.state + '.old')
        self.await_lost('was removed or renamed', 'in it were 10 points of journals and 0 events')
        self.unacknowledged()
        os.rename(self.state + '.old', self.state)
        self.await_said('notice: durability is back')
        self.acknowledged(10)
        self.restarts()

    def test_folder_deleted(self):
        """The daemon does not create the folder again, because its name may be a mount point. It takes an empty one that the operator creates, and saves
        everything in memory there."""
        self.begin()
        shutil.rmtree(self.state)
        self.await_lost('was removed or renamed', 'in it were 10 points of journals and 0 events')
        self.unacknowledged()
        self.assertFalse(os.path.exists(self.state))
        os.mkdir(self.state)
        self.await_said('is taken for the state folder')
        self.await_said('notice: durability is back')
        self.refused(self.state)
        self.acknowledged(10)
        self.restarts()

    def test_folder_of_another_daemon(self):
        """A folder that another daemon uses is left alone; the daemon uses its own again when that is back."""
        self.begin()
        os.rename(self.state, self.state + '.old')
        other = self.daemon(keys=self.keys())
        self.await_lost('the state folder')
        self.unacknowledged()
        self.assertEqual(other.stop(), 0)
        was = {f: os.path.getsize(self.path('shard-0', f)) for f in os.listdir(self.path('shard-0'))}
        self.unacknowledged()
        self.assertEqual({f: os.path.getsize(self.path('shard-0', f)) for f in os.listdir(self.path('shard-0'))}, was)
        shutil.rmtree(self.state)
        os.rename(self.state + '.old', self.state)
        self.await_said('notice: durability is back')
        self.acknowledged(10)
        self.restarts()

    def test_symbolic_link(self):
        """The symbolic link to the folder now points to another one."""
        os.mkdir(self.state + '.a')
        os.mkdir(self.state + '.b')
        with open(self.state + '.b/file', 'w'):
            pass
        os.symlink('state.a', self.state)
        self.begin()
        os.symlink('state.b', self.state + '.new')
        os.rename(self.state + '.new', self.state)
        self.await_lost('is another folder now', '10 points')
        self.unacknowledged()
        os.symlink('state.a', self.state + '.new')
        os.rename(self.state + '.new', self.state)
        self.await_said('notice: durability is back')
        self.acknowledged(10)
        self.kill()
        self.start()
        self.assertGreaterEqual(self.feeder().feed_at, self.client.acknowledged)

    def test_mounted_over(self):
        """A folder on another file system is not used, even if it is empty."""
        self.begin()
        if subprocess.run(['mount', '-t', 'tmpfs', 'none', self.state], capture_output=True, check=False).returncode != 0:
            self.kill()
            self.skipTest('a file system cannot be mounted here')
        self.addCleanup(subprocess.run, ['umount', '-l', self.state], capture_output=True, check=False)
        self.await_lost('is another folder now')
        self.unacknowledged()
        self.assertEqual(os.listdir(self.state), [])
        subprocess.run(['umount', self.state], check=True)
        self.await_said('notice: durability is back')
        self.acknowledged(10)
        self.restarts()

    def test_snapshots_alone(self):
        """With durability = snapshot, where acknowledgements do not depend on the disk, the folder is checked, too."""
        self.begin(durability='snapshot')
        shutil.rmtree(self.state)
        self.await_lost('was removed or renamed')
        self.assertEqual(self.durability()['state'], 'degraded')
        os.mkdir(self.state)
        self.await_said('notice: durability is back')
        self.kill()
        self.start(durability='snapshot')
        self.assertEqual(self.feeder().feed_at, 10)


if __name__ == '__main__':
    harness.main()
