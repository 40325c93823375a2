"""A shard never stalls, whatever its operations wait for, and in whatever order these come."""
import itertools
import os
import re
import signal
import socket
import struct
import tempfile
import time

import harness
import test_service as service
from harness import SECOND, START

DETECTOR = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'
GROUP = '[group press]\nmatch = m(*)/*\nhop = 1\n'
KEYS = 'threads = 2\nloops = 1\n'
MEMBERS = ['m0/a', 'm0/b', 'm0/c']


class Stall(harness.Case):
    def ordered(self, detectors=DETECTOR + GROUP, keys=KEYS, environment=None):
        """A daemon, and a function that sends it an order."""
        program = os.environ.get('ORDERED_DAEMON')
        if not program:
            self.skipTest('the ordered daemon is not built')
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, 'order')

        def order(what):
            with open(path + '.new', 'w', encoding='utf-8') as f:
                f.write(what)
            os.rename(path + '.new', path)

        return self.daemon(detectors, keys=keys, program=program, environment={'HANKELD_ORDERED': path, **(environment or {})}), order

    def send(self, c, handles, first, n):
        for i in range(first, first + n):
            c.send(harness.points(handles, [START + i * SECOND] * len(handles), [float((i * 7 + k) % 5) for k in range(len(handles))]))

    def test_fault_28_eviction_while_a_review_waits(self):
        """A reload that waits for the end of a chunk, and the eviction of silent sensors, do not block each other."""
        d, order = self.ordered()
        with d.client() as c:
            gone, *handles = c.register('gone', *MEMBERS)
            self.send(c, [gone] + handles, 0, 20)
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'the first points')
            order('review, then evict')
            self.send(c, handles, 20, 200)
            harness.until(lambda: d.status()['points']['pending'] > 0, 'points that rest')
            d.configure(DETECTOR.replace('window = 8', 'window = 9').replace('match = *', 'match = x*') + DETECTOR.replace('all', 'rest') + GROUP,
                        KEYS + 'evict = 1s\n')
            d.process.send_signal(signal.SIGHUP)
            harness.until(lambda: d.status()['configuration']['reloads'] == 1, 'the reload')
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            harness.until(lambda: d.status()['sensors']['evicted'] > 0, 'the eviction')
            handles = c.register(*MEMBERS)
            self.send(c, handles, 300, 20)
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'points behind it')
        self.balanced(d.status())

    def test_fault_28_a_shard_that_stalls(self):
        """The log and the status report what waits for what, and the daemon no longer notifies the watchdog."""
        notified = service.Notified(self, watchdog=3000000)
        d, order = self.ordered(environment=notified.environment)
        notified.ready(self)
        with d.client() as c:
            handles = c.register(*MEMBERS)
            self.send(c, handles, 0, 50)
            c.ping()
            notified.expect('WATCHDOG=1')
            self.assertEqual(d.status()['batches']['stalled_s'], 0)
            order('wait')
            harness.until(lambda: not self.send(c, handles, 50, 1) and d.status()['batches']['stalled_s'] > 0, 'the stall')  # the first may pass
            self.assertRegex(d.status()['batches']['stalled_because'], r'points in \d+ chunks wait; no chunk is begun since a reload waits')
            said = [line for line in d.log if 'made no progress' in line]
            self.assertEqual(len(said), 1, d.log)
            self.assertRegex(said[0], r'error: shard 0 has made no progress for [12]\.\d s: \d+ points in \d+ chunks wait; no chunk')
            service.quiet(notified, 4)
            order('go on')
            harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')
            harness.until(lambda: any(re.search(r'notice: shard 0 continues after \d+\.\d s without', line) for line in d.log), 'the log')
            notified.expect('WATCHDOG=1')
            self.assertEqual(d.status()['batches']['stalled_because'], '')
        self.balanced(d.status())

    def test_fault_28_a_slow_device_is_no_stall(self):
        """Batches in flight that take longer than the watchdog's timeout are no stall."""
        program = os.environ.get('FAULTY_DAEMON')
        if not program:
            self.skipTest('the faulty daemon is not built')
        notified = service.Notified(self, watchdog=4000000)
        d = self.daemon(DETECTOR, keys=KEYS, program=program, backend='cuda', environment={'HANKELD_FAULT': 'rate 40', **notified.environment})
        notified.ready(self)
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(100)))
            for i in range(5):  # a batch of a hundred points takes 2.5 s
                self.send(c, handles, i, 1)
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')
        self.assertEqual([line for line in d.log if 'no progress' in line], [])

    def held_back(self, keys=''):
        """A daemon whose shard has stalled, and clients from which it reads no more."""
        d, order = self.ordered(keys=f'{KEYS}max_connections = 16\nmax_connections_per_address = 8\nmax_pending = 1024\n{keys}')
        c = d.client()
        self.addCleanup(c.close)
        handles = c.register(*MEMBERS)
        self.send(c, handles, 0, 20)
        c.ping()
        harness.until(lambda: d.status()['points']['pending'] == 0, 'the first points')
        order('wait')
        first = itertools.count(20)
        harness.until(lambda: not self.send(c, handles, next(first), 1) and d.status()['points']['pending'] > 60, 'the stall')  # the first may pass
        return d, order

    def writers(self, d, n, lines):
        """n connections of the line protocol, which the daemon has paused; each has sent that many points of its own sensor."""
        sockets = []
        for k in range(n):
            s = d.connect('line tcp')
            self.addCleanup(s.close)
            s.sendall(''.join(f'w{k},x=1 v={i % 5} {START + i * SECOND}\n' for i in range(lines)).encode())
            sockets.append(s)
        harness.until(lambda: d.status()['connections']['held_back'] >= n, 'that they are paused')
        return sockets

    def test_fault_19_peers_that_are_gone_while_nothing_is_read(self):
        """Connections that are reset while the daemon pushes back are closed soon, and no longer count for their address."""
        d, order = self.held_back()
        sockets = self.writers(d, 6, 3000)
        folder = f'/proc/{d.process.pid}/fd'
        before = len(os.listdir(folder))
        for s in sockets:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            s.close()
        harness.until(lambda: len(os.listdir(folder)) <= before - 6, 'descriptors of connections that were reset', wait=harness.WAIT / 2)
        self.assertGreater(d.status()['points']['pending'], 6 * 1000)
        self.assertTrue(any('connection lost' in line for line in d.log), d.log)
        for _ in range(5):
            fresh = d.client()
            self.addCleanup(fresh.close)
            fresh.ping()
        order('go on')
        harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')

    def test_fault_19_peers_that_ended_and_are_gone(self):
        """Peers that have ended their streams and then vanished: keepalive detects this, however long the daemon reads nothing. Their unread data is
        lost, and the log reports how much."""
        d, order = self.held_back('keepalive = 1s\n')
        sockets = self.writers(d, 6, 3000)
        folder = f'/proc/{d.process.pid}/fd'
        before = len(os.listdir(folder))
        for s in sockets:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, 1)  # s for which the kernel remembers the connection; the default is 60
            s.close()
        harness.until(lambda: len(os.listdir(folder)) <= before - 6, 'descriptors of connections that were ended')
        lost = [re.search(r'connection lost while reading was paused: (\d+) bytes that the peer had sent are lost', line) for line in d.log]
        self.assertEqual(len([m for m in lost if m and int(m[1]) > 1000]), 6, d.log)
        for _ in range(5):
            fresh = d.client()
            self.addCleanup(fresh.close)
            fresh.ping()
        order('go on')
        harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')

    def test_fault_19_points_before_an_end_that_nothing_reads(self):
        """A peer that has sent all it has and ends its stream while the daemon pushes back loses nothing."""
        d, order = self.held_back()
        sockets = self.writers(d, 4, 3000)
        for s in sockets[:2]:
            s.close()
        for s in sockets[2:]:
            s.shutdown(socket.SHUT_WR)  # it still reads, were there anything
        time.sleep(3)  # several checks of paused connections
        open_ = d.status()['connections']['open']
        order('go on')
        harness.until(lambda: d.status()['lines']['taken'] == 4 * 3000, 'all points')
        harness.until(lambda: d.status()['connections']['open'] == open_ - 4, 'that all four are closed')
        for s in sockets[2:]:
            self.assertEqual(s.recv(1), b'')
        harness.until(lambda: d.status()['points']['pending'] == 0, 'all scores')
        self.balanced(d.status())


if __name__ == '__main__':
    harness.main()
