"""Limits on what one peer can use up: one client against another, over restarts."""
import shutil
import signal
import socket
import struct
import tempfile
import time

import harness
from harness import ERROR, REGISTER, REGISTERED, SECOND, START, frame, points, text, until
from secured import DETECTOR, Secured, token_line, token_of

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95
LIMIT = 10
QUOTA = 5  # reason for which a name is refused


class Peers(Secured):
    """Two peers that only feed, and one that subscribes."""

    def setUp(self):
        super().setUp()
        self.write_tokens([token_line('greedy', 'feed'), token_line('honest', 'feed'), token_line('viewer', 'subscribe')])
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)

    def keys(self, keys):
        return f'threads = 1\ndurability = journal\nstate = {self.state}/there\nmax_ahead = off\n{keys}'

    def start(self, keys, **how):
        return self.secured(tls=False, **how, keys=self.keys(keys))

    def feed(self, d, token, name, n=0):
        """A connection with a feed of that name, and the feed's position; if n > 0, after n more points, which are then committed."""
        c = self.client(d, token_of(token), tls=False)
        c.tag += 1
        c.send(frame(FEED, text(name), c.tag))
        kind, _, payload = c.receive()
        if kind == ERROR:
            code, = struct.unpack_from('<H', payload)
            return c, -code
        self.assertEqual(kind, FEED_AT)
        at, = struct.unpack_from('<Q', payload)
        if n:
            handle, = c.register(token)
            c.send(points([handle] * n, [START + (at + i) * SECOND for i in range(n)], [1.0] * n, before=at))
            deadline = time.monotonic() + harness.WAIT
            while time.monotonic() < deadline:
                kind, _, payload = c.receive()
                if kind == ACK and struct.unpack_from('<Q', payload)[0] >= at + n:
                    break
        return c, at


class Feeds(Peers):
    """Numbers of feeds that peers may name."""

    def durability(self, d):
        with self.client(d, token_of('viewer'), tls=False) as c:
            return c.status()['durability']

    def fill(self, d, token, n):
        for i in range(n):
            c, at = self.feed(d, token, f'{token}-{i}', n=3)
            c.socket.close()
            self.assertEqual(at, 0)

    def refuses(self, d, token):
        c, at = self.feed(d, token, f'{token}-one-more')
        c.socket.close()
        self.assertEqual(at, -LIMIT)

    def test_one_client_against_another(self):
        keys = 'max_feeds_per_peer = 6\n'
        d = self.start(keys)
        self.fill(d, 'greedy', 6)
        self.refuses(d, 'greedy')
        until(lambda: any('greedy has 6 feeds, the limit of one peer (max_feeds_per_peer)' in line for line in d.log), 'the log')
        self.fill(d, 'honest', 2)
        now = self.durability(d)
        self.assertEqual((now['feeds'], now['feeds_refused'], now['feeds_expired']), (8, 1, 0))
        d.stop()
        d = self.start(keys, ends=-signal.SIGKILL)  # from a snapshot
        self.refuses(d, 'greedy')
        c, at = self.feed(d, 'greedy', 'greedy-3')
        self.assertEqual(at, 3)  # a feed that the peer has continues
        c.socket.close()
        c, at = self.feed(d, 'honest', 'honest-2', n=2)
        self.assertEqual(at, 0)
        c.socket.close()
        d.process.kill()
        d.process.wait()
        d = self.start(keys)  # with a journal behind it
        self.refuses(d, 'greedy')
        for name, there in (('honest-0', 3), ('honest-2', 2)):
            c, at = self.feed(d, 'honest', name)
            self.assertEqual(at, there)
            c.socket.close()
        self.assertEqual(self.durability(d)['feeds'], 9)

    def test_idle_feeds_expire(self):
        keys = 'max_feeds_per_peer = 4\nfeed_expiry = 1s\n'
        d = self.start(keys, ends=-signal.SIGKILL)
        kept, _ = self.feed(d, 'greedy', 'greedy-kept', n=5)
        self.fill(d, 'greedy', 3)
        until(lambda: self.durability(d)['feeds'] == 1, 'idle feeds to expire')
        self.assertEqual(self.durability(d)['feeds_expired'], 3)
        until(lambda: any('(feed_expiry) were forgotten' in line for line in d.log), 'the log')
        c, at = self.feed(d, 'greedy', 'greedy-1', n=2)
        self.assertEqual(at, 0)  # it starts over
        d.process.kill()
        d.process.wait()
        kept.socket.close()
        c.socket.close()
        d = self.start(keys.replace('1s', 'off'))  # expired feeds stay expired, and a feed that was used again exists
        self.assertEqual(self.durability(d)['feeds'], 2)
        for name, there in (('greedy-1', 2), ('greedy-kept', 5), ('greedy-0', 0)):
            c, at = self.feed(d, 'greedy', name)
            self.assertEqual(at, there, name)
            c.socket.close()

    def test_empty_feeds_take_no_room(self):
        d = self.start('max_feeds_per_peer = 4\n')
        for i in range(4):
            c, at = self.feed(d, 'greedy', f'greedy-{i}')
            self.assertEqual(at, 0)
            c.socket.close()
        until(lambda: self.durability(d)['feeds'] == 0, 'empty feeds to go')
        self.fill(d, 'greedy', 4)
        self.refuses(d, 'greedy')


class Sensors(Peers):
    """Numbers of sensors that peers may create: two peers with tokens, and lines from an address."""
    listens = harness.LISTENERS

    def register(self, d, token, *names):
        """The reason for each name, 0 if it gets a handle."""
        with self.client(d, token_of(token), tls=False) as c:
            data = c.request(REGISTER, struct.pack('<I', len(names)) + b''.join(map(text, names)), REGISTERED)
            n, = data.take('I')
            self.assertEqual(n, len(names))
            return [reason for _, reason in (data.take('II') for _ in names)]

    def status(self, d):
        with self.client(d, token_of('viewer'), tls=False) as c:
            return c.status()

    def test_names_of_sensors(self):
        keys = 'max_sensors = 100\nmax_sensors_per_peer = 10\n'
        d = self.start(keys)
        reasons = self.register(d, 'greedy', *(f'greedy-{i}' for i in range(300)))
        self.assertEqual((reasons.count(0), reasons.count(QUOTA)), (10, 290))
        until(lambda: any('its peer has reached max_sensors_per_peer' in line for line in d.log), 'the log')
        self.assertEqual(self.register(d, 'honest', *(f'honest-{i}' for i in range(5))), [0] * 5)
        self.assertEqual(self.register(d, 'greedy', 'greedy-3', 'honest-1', 'greedy-another'), [0, 0, QUOTA])  # existing sensors are found
        s = self.status(d)['sensors']
        self.assertEqual((s['count'], s['refused']), (15, 291))
        d.stop()
        d = self.start(keys, ends=-signal.SIGKILL)  # from a snapshot
        self.assertEqual(self.register(d, 'greedy', 'greedy-another', 'greedy-9'), [QUOTA, 0])
        c, _ = self.feed(d, 'honest', 'a feed', n=1)  # makes a sensor and writes it to the disk
        c.socket.close()
        d.process.kill()
        d.process.wait()
        d = self.start(keys)  # with a journal behind it
        self.assertEqual(self.register(d, 'greedy', 'greedy-another', 'greedy-9'), [QUOTA, 0])
        self.assertEqual(self.register(d, 'honest', 'honest', *(f'honest-{i}' for i in range(10))), [0] * 10 + [QUOTA])
        d.configure(DETECTOR, self.keys(keys.replace('peer = 10', 'peer = 11')))
        d.process.send_signal(signal.SIGHUP)
        until(lambda: self.register(d, 'greedy', 'greedy-another') == [0], 'the reload')

    def test_silent_sensors_make_room(self):
        d = self.start('max_sensors_per_peer = 3\nevict = 1s\n')
        self.assertEqual(self.register(d, 'greedy', 'a', 'b', 'c', 'd'), [0, 0, 0, QUOTA])
        until(lambda: self.register(d, 'greedy', 'd') == [0], 'a, b and c to be forgotten')

    def test_lines_of_a_burst_of_datagrams(self):
        """Many names in a burst of datagrams: without a limit the daemon registers them together, with one it must count each sender's."""
        for quota, taken in (('off', 300), ('10', 10)):
            with self.subTest(quota):
                d = self.daemon('[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\n', keys=f'threads = 1\nloops = 1\nmax_sensors_per_peer = {quota}\n')
                d.process.send_signal(signal.SIGSTOP)
                with d.connect('line udp') as s:
                    for i in range(300):
                        s.send(f'm{i} value=1 {START}\n'.encode())
                d.process.send_signal(signal.SIGCONT)
                status = until(lambda: (lambda x: x['points']['in'] == 300 and x)(d.status()), 'the lines')
                self.assertEqual((status['sensors']['count'], status['dropped']['over_quota']), (taken, 300 - taken))
                d.stop()

    def test_lines_of_an_address(self):
        for n, transport in enumerate(('tcp', 'udp')):
            with self.subTest(transport):
                d = self.daemon('[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\n', keys='threads = 1\nmax_sensors_per_peer = 4\n')
                lines = ''.join(f'm{i} value=1 {START + k * SECOND}\n' for k in range(2) for i in range(6))
                if transport == 'tcp':
                    with d.connect('line tcp') as s:
                        s.sendall(lines.encode())
                else:
                    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                        s.sendto(lines.encode(), ('127.0.0.1', d.port['line udp']))
                with d.client() as c:
                    until(lambda: c.status()['points']['in'] == 12, 'the lines')
                    status = c.status()
                    self.assertEqual(status['dropped']['over_quota'], 4)
                    self.assertEqual(status['sensors']['count'], 4)
                    data = c.request(REGISTER, struct.pack('<I', 2) + text('m0') + text('new'), REGISTERED)
                    data.take('I')
                    self.assertEqual([data.take('II')[1] for _ in range(2)], [0, QUOTA])  # the same address over another protocol
                d.stop()


if __name__ == '__main__':
    harness.main(needs_gpu=False)
