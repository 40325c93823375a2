"""Faults on the wire: cut, damaged, endless or malformed frames and lines. Every one is counted or answered, closes at most the
connection it came on, and costs its neighbours nothing. The numbers are rows of the fault matrix."""
import random
import struct

import harness
from harness import BYE, HELLO, PING, POINTS, REGISTER, SCORED, START, STATUS, SUBSCRIBE, UNSCORED, VALUES, SECOND, frame, points, text


def good_stream(handle, n, first=0):
    """A few frames that carry n points of one sensor."""
    values = [float(i % 7) + i / 16 for i in range(first, first + n)]
    times = [START + i * SECOND for i in range(first, first + n)]
    return b''.join(points([handle] * (b - a), times[a:b], values[a:b]) for a, b in harness.cut(random.Random(first), n, 9))


class FaultsOnTheWire(harness.Case):
    listens = harness.LISTENERS

    def setUp(self):
        self.d = self.daemon(keys='threads = 1\nmax_frame = 256KiB\nmax_line = 4096\n')

    def subscriber(self, glob=''):
        c = self.d.client()
        self.addCleanup(c.close)
        c.subscribe(SCORED | UNSCORED | VALUES, glob)
        return c

    def taken(self):
        return self.balanced(self.d.status())['in']

    def refused(self, data, codes):
        """Asserts that the daemon answers these bytes (after a HELLO) with one of the codes and closes the connection."""
        with self.d.client() as c:
            with self.assertRaises(harness.Closed, msg=data[:32].hex()) as closed:
                c.send(data)
                while True:
                    kind, _, payload = c.receive()
                    c.keep(kind, payload)
            self.assertIsNotNone(closed.exception.error, data[:32].hex())
            self.assertIn(closed.exception.error[0], codes, closed.exception.error)
            self.assertGreater(len(closed.exception.error[1]), 8)

    def test_fault_01_one_byte_per_write(self):
        watcher = self.subscriber()
        with self.d.client() as c:
            c.socket.setsockopt(harness.socket.IPPROTO_TCP, harness.socket.TCP_NODELAY, 1)
            stream = good_stream(c.register('slow')[0], 40)
            for i in range(len(stream)):
                c.send(stream[i:i + 1])
            c.ping()
        got = watcher.wait_results(40)
        self.assertEqual([r[1] for r in got], [START + i * SECOND for i in range(40)])

    def test_fault_01_every_split_point(self):
        watcher = self.subscriber()
        with self.d.client() as c:
            c.socket.setsockopt(harness.socket.IPPROTO_TCP, harness.socket.TCP_NODELAY, 1)
            handle = c.register('split')[0]
            size, sent = len(good_stream(handle, 3)), 0
            for at in range(1, size):
                stream = good_stream(handle, 3, first=sent)
                self.assertEqual(len(stream) > at, True)
                c.send(stream[:at])
                c.send(stream[at:])
                sent += 3
            c.ping()
        got = watcher.wait_results(sent)
        self.assertEqual([r[1] for r in got], [START + i * SECOND for i in range(sent)])

    def test_fault_01_truncated_frame_is_not_taken(self):
        with self.d.client() as c:
            stream = good_stream(c.register('truncated')[0], 1)
            for end in (1, 15, 16, 17, len(stream) - 1):
                with self.d.client() as other:
                    other.send(stream[:end])
        self.assertEqual(self.taken(), 0)

    def test_fault_02_lengths(self):
        for kind in (HELLO, REGISTER, POINTS, SUBSCRIBE, PING, STATUS, BYE, 0x42):
            for length in (256 * 1024 + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
                head = struct.pack('<2sBBII', b'HK', 1, kind, length, 9)
                self.refused(head + struct.pack('<I', 0), (3, 5))  # at once: no payload follows
        for kind in (REGISTER, POINTS, SUBSCRIBE, PING, BYE):
            self.refused(frame(kind), (6,))
        before = self.d.rss()
        self.refused(frame(REGISTER, struct.pack('<I', 0xFFFFFFFF)), (6,))
        self.refused(frame(REGISTER, struct.pack('<IH', 1, 0xFFFF) + b'x'), (6,))
        self.refused(frame(POINTS, struct.pack('<QQQIBBH', 0, 0, 0, 0xFFFFFFFF, 0, 0, 0)), (6,))
        self.refused(frame(POINTS, struct.pack('<QQQIBBH', 0, 0, 0, 0, 0, 0, 0)), (6,))
        self.assert_grew_less(self.d, before, 4 << 20)
        self.assertEqual(self.taken(), 0)

    def test_fault_02_largest_frame_is_taken(self):
        n = (256 * 1024 - 32) // 20
        with self.d.client() as c:
            self.assertEqual(c.max_frame, 256 * 1024)
            handles = c.register(*(f'wide {i}' for i in range(8000)))
            c.send(points([handles[i % 8000] for i in range(n)], [START + i // 8000 * SECOND for i in range(n)], [1.0] * n))
            c.ping()
        self.assertEqual(self.taken(), n)

    def test_fault_03_every_flipped_bit(self):
        with self.d.client() as c, self.d.connect('binary udp') as udp:
            good = good_stream(c.register('flipped')[0], 1)
            over_udp = points([0], [START], [1.0], c.feed, 1, 0)
            for bit in range(8 * len(good)):
                bad = bytearray(good)
                bad[bit // 8] ^= 1 << bit % 8
                missing = 16 + struct.unpack_from('<I', bad, 4)[0] - len(bad)
                if 0 < missing < c.max_frame:  # a longer payload is waited for
                    bad += bytes(missing)
                self.refused(bytes(bad), (1, 2, 3, 4, 5, 6))
            for bit in range(8 * len(over_udp)):
                bad = bytearray(over_udp)
                bad[bit // 8] ^= 1 << bit % 8
                udp.send(bad)
            c.ping()
            status = c.status()
        self.assertEqual(self.balanced(status)['in'], 0)

    def test_fault_03_versions_and_order(self):
        self.refused(frame(PING, bytes(8), version=2), (2,))
        self.refused(frame(PING, bytes(8), version=0), (2,))
        self.refused(frame(PING, bytes(8), magic=b'GE'), (1,))
        self.refused(b'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', (1,))
        self.refused(frame(HELLO, text('again')), (7,))
        self.refused(frame(0x81, bytes(32)), (5,))
        for first in (frame(PING, bytes(8)), frame(STATUS), frame(REGISTER, struct.pack('<I', 1) + text('x'))):
            with self.d.client(hello=False) as c, self.assertRaises(harness.Closed) as closed:
                c.send(first)
                while True:
                    c.keep(*c.receive()[::2])
            self.assertEqual(closed.exception.error[0], 7)

    def test_fault_03_bad_names_are_refused_one_by_one(self):
        with self.d.client() as c:
            got = c.register('good', '', 'x' * 512, 'x' * 513, 'tab\there', b'\xff\xfe', 'zero\0', 'naïve ü', '\u0085')
            self.assertEqual([h is not None for h in got], [True, False, True, False, False, False, False, True, False])

    def test_fault_04_endless_line(self):
        watcher = self.subscriber()
        with self.d.connect('line tcp') as s:
            s.sendall(f'before value=1 {START}\n'.encode())
            watcher.wait_results(1)
            before, chunk = self.d.rss(), b'x' * (1 << 20)
            for i in range(1024):
                s.sendall(chunk)
                if i % 64 == 0:
                    self.assert_grew_less(self.d, before, 4 << 20)
            s.sendall(f'\nafter value=2 {START}\n'.encode())
            got = watcher.wait_results(2)
            self.assertEqual([r[0] for r in got], ['before', 'after'])
            self.assert_grew_less(self.d, before, 4 << 20)
        self.assertEqual(self.d.status()['lines']['bad'], 1)

    def test_fault_04_line_limit(self):
        watcher = self.subscriber()
        with self.d.connect('line tcp') as s:
            for length in (4095, 4096, 4097, 9000):
                line = f'm,tag={"y" * 200} '.encode()
                end = f',value{length}=1 {START}'.encode()
                filler = b'f="' + b'z' * (length - len(line) - len(end) - 4) + b'"'
                whole = line + filler + end
                self.assertEqual(len(whole), length)
                s.sendall(whole + b'\n')
            s.sendall(f'end value=1 {START}\n'.encode())
        names = [r[0].rpartition(' ')[2] for r in watcher.wait_results(3)]
        self.assertEqual(names, ['value4095', 'value4096', 'end'])

    def test_fault_05_line_grammar(self):
        good = [
            (b'cpu value=1.5', 'cpu'), (b'cpu,host=a,b=c value=1', 'cpu,host=a,b=c'), (b'cpu,host=a load=2i', 'cpu,host=a load'),
            (b'  lead value=3u', 'lead'), (b'sp   value=1e3', 'sp'), (rb'a\,b\ c value=1', r'a\,b\ c'), (rb'm,k\=1=v\ 2 value=-1', r'm,k\=1=v\ 2'),
            (rb'back\slash value=+2', r'back\slash'), ('größe,ort=münchen value=.5'.encode(), 'größe,ort=münchen'), (b'bool value=true', 'bool'),
            (b'cr value=7\r', 'cr'), (rb'm f\ g=1', r'm f\ g'), (b'str text="a, b=c \\" d",value=4', 'str'), (b'm "q"=1', 'm "q"'),
        ]
        bad = [b'', b'#comment', b'm', b'm ', b'm value', b'm value=', b'm =1', b',t=1 value=1', b'm,t value=1', b'm,t= value=1', b'm,=a value=1',
               b'm value=x', b'm value=1x', b'm value=0x10', b'm value=1 x', b'm value=1 1.5', b'm value=1,', b'm value=nan', b'm value=Inf',
               b'm value=1e400', b'm value=1 99999999999999999999', b'm value=1 1 1', b'm value=99999999999999999999i', b'm value=-1u', b'nul\0 value=1',
               b'\xff\xfe value=1', b'tab\tx value=1', b'm,t=a\\ value=1', b'm text="open', b'm text="only"', b'm value=1,b=nan', b'm value=--1', b'm value=1 -']
        watcher = self.subscriber()
        rng = random.Random(5)
        n = 0
        with self.d.connect('line tcp') as s:
            stream = b''
            for i in range(1500):
                if rng.random() < 0.4:
                    stream += rng.choice(bad) + b'\n'
                else:
                    line, _ = good[n % len(good)]
                    stamp = f' {START + n * SECOND}'.encode()
                    stream += (line[:-1] + stamp + b'\r\n') if line.endswith(b'\r') else line + stamp + b'\n'
                    n += 1
            for a, b in harness.cut(rng, len(stream), 300):
                s.sendall(stream[a:b])
        got = watcher.wait_results(n)
        watcher.drain(0.2)
        self.assertEqual(len(got), n)
        want = [(good[i % len(good)][1], START + i * SECOND) for i in range(n)]
        for sensor in {name for name, _ in want}:  # order holds within a connection, so within a sensor
            self.assertEqual([r[1] for r in got if r[0] == sensor], [t for name, t in want if name == sensor], sensor)

    def test_fault_05_a_flood_of_bad_lines_is_few_lines_in_the_log(self):
        with self.d.connect('line tcp') as s:
            s.sendall(b'bad\n' * 105)
            peer = '{}:{}'.format(*s.getsockname())
        left_out = f'{peer}: 100 more lines were left out'
        harness.until(lambda: any(left_out in line for line in self.d.log), 'how many were left out')
        self.assertEqual(sum(f'{peer}: line' in line for line in self.d.log), 5)

    def test_fault_05_lines_over_udp(self):
        watcher = self.subscriber()
        with self.d.connect('line udp') as s:
            s.send(f'one value=1 {START}\ntwo value=2 {START}\r\nbad value=\nthree value=3 {START}'.encode())
            s.send(b'')
            s.send(bytes(range(256)) * 4)
            s.send(b'\n\n\n')
            s.send(f'four value=4 {START}\n'.encode())
        self.assertEqual([r[0] for r in watcher.wait_results(4)], ['one', 'two', 'three', 'four'])

    def test_random_bytes_on_every_listener(self):
        rng = random.Random(9)
        for _ in range(40):
            junk = rng.randbytes(rng.choice((1, 15, 16, 17, 300, 70000)))
            for listener in ('binary tcp', 'line tcp', 'text tcp', 'binary udp', 'line udp'):
                with self.d.connect(listener) as s:
                    try:
                        s.sendall(junk[:1400] if listener.endswith('udp') else junk)
                    except OSError:
                        pass  # closed before the end of the request, which is allowed
        with self.d.client() as c:
            c.ping()


if __name__ == '__main__':
    harness.main(needs_gpu=False)
