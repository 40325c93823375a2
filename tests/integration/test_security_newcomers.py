"""Unauthenticated peers: noise, idle connections, floods from one address, and forged or replayed datagrams."""
import contextlib
import hmac
import os
import random
import socket
import ssl
import struct
import sys
import time

import harness
from harness import ERROR, HELLO, SECOND, START, WELCOME, Client, frame, points, text, until
from secured import DETECTOR, UNAUTHORIZED, Secured, token_of

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402


class TestNewcomers(Secured):
    """Rows 14 and 20 of the fault matrix."""

    def attack_address(self, i):
        return f'127.0.{1 + i // 250}.{1 + i % 250}'

    def dial(self, d, listener, source):
        s = socket.socket()
        s.bind((source, 0))
        s.setblocking(False)
        s.connect_ex(('127.0.0.1', d.port[listener]))
        self.addCleanup(s.close)
        return s

    def test_fault_30_http_where_a_token_is_asked_for(self):
        """Over TLS and without it: on either, the answer is one of HTTP, and nothing is accepted."""
        for tls in (True, False):
            d = self.secured(tls=tls)
            for listener, answer in (('line tcp', b'HTTP/1.1 400 '), ('text tcp', b'{"error":"this is HTTP')):
                s = self.connect(d, listener) if tls else d.connect(listener)
                s.sendall(b'POST / HTTP/1.1\r\nHost: x\r\n\r\nposted value=1 1\n')
                got = b''
                while chunk := s.recv(65536):
                    got += chunk
                self.assertTrue(got.startswith(answer), got)
            status = self.client(d, token_of('operator'), tls=tls).status()
            self.assertEqual((status['points']['in'], status['lines']['taken'], status['security']['unauthorized']), (0, 0, 2))
            until(lambda: sum('this is HTTP' in line for line in d.log) >= 2, 'the audit names both')

    def test_fault_20_garbage_in_every_state(self):
        d = self.secured(keys='threads = 1\nmax_failures = off\nhandshake = 1s\n')
        rng = random.Random(20)
        recorded = self.record(d)
        with self.client(d, token_of('all')) as honest:
            honest.ping()
            before = d.rss()
            for round_ in range(75):
                at = rng.randint(0, len(recorded))
                noise = rng.randbytes(rng.choice((1, 5, 100, 3000, 20000)))
                listener = rng.choice(('binary tcp', 'line tcp', 'text tcp'))
                how = round_ % 5
                if how == 0:    # from the first byte on
                    data = noise
                elif how == 1:  # a ClientHello that is cut off and followed by noise
                    data = recorded[:at] + noise
                elif how == 2:  # one flipped bit
                    data = bytearray(recorded)
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                elif how == 3:  # a complete ClientHello, then noise in records
                    data = recorded + b''.join(b'%c\x03\x03' % rng.choice((20, 21, 22, 23, 99)) + struct.pack('>H', len(p)) + p
                                               for p in (rng.randbytes(rng.randint(0, 500)) for _ in range(5)))
                else:           # a record that promises much
                    data = b'\x16\x03\x01\x40\x00' + noise
                with contextlib.suppress(OSError), d.connect(listener) as s:
                    s.sendall(bytes(data))
                    if rng.random() < 0.5:
                        s.shutdown(socket.SHUT_WR)
                        s.settimeout(0.2)
                        while s.recv(65536):
                            pass
            self.through_the_handshake(d, rng)
            honest.ping()
            self.assert_grew_less(d, before, 8 << 20)
            until(lambda: honest.status()['security']['newcomers'] == 0, 'the last of them to go')
            self.assertEqual(honest.status()['connections']['open'], 1)

    def through_the_handshake(self, d, rng):
        """Noise inside TLS, in place of HELLO or a token."""
        for i in range(20):
            with contextlib.suppress(OSError, ssl.SSLError):
                s = self.connect(d, rng.choice(('binary tcp', 'line tcp', 'text tcp')))
                s.sendall(rng.randbytes(rng.choice((1, 16, 1000, 50000))))
                s.settimeout(0.1)
                while s.recv(65536):
                    pass

    def record(self, d):
        """The bytes of a good ClientHello."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        o = self.context().wrap_bio(incoming, outgoing, server_hostname='127.0.0.1')
        with self.assertRaises(ssl.SSLWantReadError):
            o.do_handshake()
        return outgoing.read()

    def test_fault_14_idle_and_slow_newcomers(self):
        """Connections from many addresses that are idle, or send a byte now and then, are closed in time: honest clients continue, new ones are
        accepted, and memory does not grow."""
        many = int(os.environ.get('HANKEL_NEWCOMERS', 300))
        d = self.secured(keys=f'threads = 1\nmax_connections = {many + 100}\nhandshake = 3s\nmax_failures = off\n')
        hello = self.record(d)
        with self.client(d, token_of('all')) as honest:
            h, sent = honest.register('s')[0], 0

            def feed(seconds, between=lambda: None):
                """The number of points sent and confirmed in a second, and the longest time that one took."""
                nonlocal sent
                begun, first, worst = time.monotonic(), sent, 0
                while time.monotonic() < begun + seconds:
                    before = time.monotonic()
                    honest.send(points([h] * 100, [START + (sent + i) * SECOND for i in range(100)], [1.0] * 100))
                    honest.ping()
                    sent += 100
                    worst = max(worst, time.monotonic() - before)
                    between()
                return (sent - first) / (time.monotonic() - begun), worst

            feed(0.2)
            alone, _ = feed(1)
            before, slow = d.rss(), []
            for i in range(many):
                slow.append(self.dial(d, ('binary tcp', 'line tcp', 'text tcp')[i % 3], self.attack_address(i)))
            until(lambda: honest.status()['security']['newcomers'] > many * 3 // 4, 'them to be there')
            at = 0

            def byte_a_second():
                nonlocal at
                for s in slow[at % 50::50]:
                    with contextlib.suppress(OSError):
                        s.send(hello[at // 50 % len(hello):][:1])
                at += 1

            under, worst = feed(1.5, byte_a_second)
            grown = d.rss() - before
            print(f'{many} newcomers: {grown >> 10} KiB more, {under / alone:.2f} of the throughput, of which our own part of it has some')
            self.assert_grew_less(d, before, many * 8192 + (4 << 20))
            with self.client(d, token_of('viewer')) as c:
                c.ping()
            until(lambda: honest.status()['security']['newcomers'] == 0, 'their deadline')
            if not harness.SANITIZED:
                self.assertLess(worst, 2)
            self.assertGreater(honest.status()['connections']['timed_out'], many * 3 // 4)

    def test_fault_14_one_address(self):
        """One address can take neither all connections nor all places for unauthenticated peers."""
        d = self.secured(tls=False, keys='threads = 1\nmax_connections = 100\nmax_connections_per_address = 30\nmax_newcomers = 20\n')
        with self.client(d, token_of('all'), tls=False) as honest:
            attackers = [self.dial(d, 'line tcp', '127.0.7.7') for _ in range(60)]
            until(lambda: honest.status()['security']['turned_away'] >= 40, 'those past the limit to be turned away')
            self.assertEqual(honest.status()['security']['newcomers'], 20)
            for s in attackers:
                s.close()
            until(lambda: honest.status()['security']['newcomers'] == 0, 'them to be gone')
            for _ in range(29):
                self.client(d, token_of('viewer'), tls=False)
            with self.assertRaises((harness.Closed, ConnectionError)) as closed:
                self.client(d, token_of('viewer'), tls=False)
            self.assertIsNone(getattr(closed.exception, 'error', None))  # not a word

    def test_a_newcomer_that_never_ends(self):
        """The bytes that a peer may send before it authenticates are limited, whatever they are."""
        d = self.secured(tls=False)
        with self.client(d, token_of('operator'), tls=False) as honest:
            before = d.rss()
            for listener in ('binary tcp', 'line tcp', 'text tcp'):
                s = d.connect(listener)
                self.addCleanup(s.close)
                with self.assertRaises(OSError):
                    for _ in range(100000):
                        s.sendall(bytes(16384) if listener == 'binary tcp' else b'y' * 16384)
            self.assert_grew_less(d, before, 2 << 20)
            self.assertEqual(honest.status()['security']['unauthorized'] + honest.status()['input']['bad_frames'], 3)

    def test_a_newcomer_whose_bytes_are_many(self):
        """A HELLO in TLS records of one byte each: the limit counts bytes on the wire."""
        d = self.secured()
        c = Client(0, False, self.connect(d))
        with contextlib.suppress(OSError):
            for byte in frame(HELLO, bytes(4000)):
                c.send(bytes([byte]))
        kind, _, payload = c.receive()
        self.assertEqual((kind, struct.unpack_from('<H', payload)[0]), (ERROR, UNAUTHORIZED))


class TestDatagrams(Secured):
    """Row 17 of the fault matrix: an attacker who can read the datagrams can neither forge, change nor replay them."""

    def setUp(self):
        super().setUp()
        self.d = self.daemon(DETECTOR, keys='threads = 1\n', listeners=self.listeners() + """
[listen binary-udp]
protocol = binary
transport = udp
address = 127.0.0.1:0
mac = yes
""")

    def keyed(self, wants=1):
        c = self.client(self.d, token_of('all'))
        more = Client(0, False, self.connect(self.d))
        r = more.request(HELLO, text('test') + text(token_of('feeder')) + struct.pack('<I', wants), WELCOME)
        feed, _ = r.take('QI')
        r.string()
        key = r.data[r.at + 2:]
        return c, more, feed, key

    def test_fault_17_forged_changed_and_repeated(self):
        c, feeder, feed, key = self.keyed()
        self.assertEqual(len(key), 32)
        h = c.register('s')[0]
        make = lambda i, k=key: (lambda f: f + hmac.digest(k, f, 'sha256')[:16])(points([h], [START + i * SECOND], [1.0], feed, i + 1, i))
        with self.d.connect('binary udp') as s:
            good = make(0)
            s.send(good)
            s.send(good)                              # again
            s.send(make(1, bytes(32)))                # another key
            s.send(make(1)[:-1])                      # too short
            s.send(points([h], [START], [1.0], feed, 2, 1))  # none
            for at in range(0, len(good) * 8, 7):     # one bit
                changed = bytearray(make(1))
                changed[at // 8] ^= 1 << at % 8
                s.send(bytes(changed))
            s.send(points([h], [START], [1.0], c.feed, 1, 0) + bytes(16))  # of a feed without a key
            s.send(make(1))
            s.send(b'')
            s.send(b'x' * 15)
            until(lambda: c.status()['udp']['datagrams'] >= 9 + len(range(0, len(good) * 8, 7)), 'all of them')
            s.setblocking(False)
            with self.assertRaises(BlockingIOError):
                s.recv(65536)  # never an answer
        status = c.status()
        self.assertEqual(status['points']['in'], 2)
        self.assertEqual((status['udp']['repeated'], status['udp']['lost']), (1, 0))
        self.assertGreaterEqual(status['udp']['forged'], 2 + 16)  # in the other bytes the checksum or the frame reveals the change
        feeder.bye(2, 2)
        c.ping()
        self.assertTrue(any('keyed checksum does not match' in line for line in self.d.log))

    def test_no_key_where_it_is_not_wanted_or_has_no_use(self):
        c, _, _, key = self.keyed(wants=0)
        self.assertEqual(key, b'')
        with self.assertRaises(harness.Closed):
            self.keyed(wants=4)  # nothing that there is

    def test_the_clients(self):
        at, udp = (f'127.0.0.1:{self.d.port[name]}' for name in ('binary tcp', 'binary udp'))
        context = ssl.create_default_context(cafile=self.ca.certificate)
        with hankel.Client(at, udp=udp, tls=context, token=token_of('all'), mac=True) as c:
            for i in range(1000):
                c.send('s', START + i * SECOND, float(i))
            c.sync()
            status = c.status()
            self.assertEqual((status['points']['in'] + status['udp']['lost_points'], status['udp']['forged']), (1000, 0))
            c.finish()
        with hankel.Client(at, udp=udp, tls=context, token=token_of('all')) as c:
            c.send('s', START, 1.0)
            c.sync()
            self.assertEqual(c.status()['udp']['bad_datagrams'], 1)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
