"""WebSocket: the stream, new selections by messages, pages of other sites, which are refused, and malformed frames."""
import base64
import hashlib
import json
import os
import random
import socket
import struct
import tempfile

import harness
import web
from harness import START, WAIT, until

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAGIC = b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(status, body)
        self.status, self.body = status, body


class Socket:
    """A client of RFC 6455, as far as the tests need it."""

    def __init__(self, daemon, query='', buffer=None, **headers):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(WAIT)
        self.socket.connect(('127.0.0.1', daemon.port['http tcp']))
        key = base64.b64encode(os.urandom(16))
        asked = {'Host': 'localhost', 'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key.decode()}
        asked.update({k.replace('_', '-'): v for k, v in headers.items()})
        self.socket.sendall(f'GET /api/v1/ws{query} HTTP/1.1\r\n'.encode() + b''.join(f'{k}: {v}\r\n'.encode() for k, v in asked.items()) + b'\r\n')
        self.got = self.socket.makefile('rb')
        status = self.got.readline().split()
        answer = {}
        while (line := self.got.readline().strip()):
            name, _, value = line.decode().partition(':')
            answer[name.lower()] = value.strip()
        if not status or status[1] != b'101':
            body = self.got.read(int(answer.get('content-length', 0)))
            self.close()
            raise Refused(int(status[1]) if status else None, body)
        assert answer['sec-websocket-accept'] == base64.b64encode(hashlib.sha1(key + MAGIC).digest()).decode()

    def close(self):
        if hasattr(self, 'got'):
            self.got.close()
        self.socket.close()

    def send(self, text, kind=TEXT, last=True, mask=True):
        data = text.encode() if isinstance(text, str) else text
        size = bytes([len(data)]) if len(data) < 126 else struct.pack('>BH', 126, len(data)) if len(data) < 65536 else struct.pack('>BQ', 127, len(data))
        head = bytes([last << 7 | kind, mask << 7 | size[0]]) + size[1:]
        if mask:
            key = os.urandom(4)
            head += key
            data = bytes(b ^ key[i % 4] for i, b in enumerate(data))
        self.socket.sendall(head + data)

    def frame(self):
        """(kind, payload, whether it is the last of its message); None: the connection is closed."""
        try:
            head = self.got.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 127
            if size > 125:
                size = int.from_bytes(self.got.read(2 if size == 126 else 8), 'big')
            return head[0] & 15, self.got.read(size), bool(head[0] & 128)
        except ConnectionResetError:
            return None

    def message(self):
        """The object of the next text message; answers pings. If the connection is closed: (code, reason)."""
        whole = b''
        while got := self.frame():
            kind, data, last = got
            if kind == PING:
                self.send(data, PONG)
            elif kind == CLOSE:
                return (int.from_bytes(data[:2], 'big'), data[2:].decode())
            elif kind != PONG:
                whole += data
                if last:
                    return json.loads(whole)
        return None

    def until(self, **members):
        while True:
            got = self.message()
            assert isinstance(got, dict), (got, members)
            if all(got.get(k) == v for k, v in members.items()):
                return got


class Sockets(web.Api):
    def open(self, *what, **how):
        s = Socket(*what, **how)
        self.addCleanup(s.close)
        return s

    def subscribers(self, d, n):
        until(lambda: d.status()['subscribers']['count'] == n, f'{n} to be subscribed')


class Streaming(Sockets):
    def test_results_alerts_and_choosing_anew(self):
        d = self.web(durability='journal')
        s, only = self.open(d, '?what=results,events&glob=pu*'), self.open(d, '?channel=shift')
        self.subscribers(d, 2)
        self.step(d, ['pump', 'other'])
        row = s.message()
        self.assertEqual((row['sensor'], row['state']), ('pump', 'warming'))
        alert = s.until(event='raised')
        self.assertEqual((alert['sensor'], alert['channel']), ('pump', 'score'))
        self.assertEqual(self.open(d, '?glob=pump&since=0').until(event='raised'), alert)
        s.send('results other')
        s.send('nonsense')
        while 'error' not in (got := s.message()):
            pass
        self.assertIn('not one of', got['error'])
        with d.client() as c:
            c.send(harness.points(c.register('other'), [START + 10**13], [1.0]))
        self.assertEqual(s.until(sensor='other')['time'], START + 10**13)
        only.socket.settimeout(0.3)
        with self.assertRaises(TimeoutError):  # no alert was of that channel
            only.message()

    def test_the_end_of_the_daemon_is_said(self):
        d = self.web()
        all_of_them = [self.open(d) for _ in range(20)]
        self.subscribers(d, 20)
        self.assertEqual(d.stop(), 0)
        for s in all_of_them:
            got = s.message()
            while isinstance(got, dict):
                got = s.message()
            self.assertTrue(got is None or got[0] == 1001, got)

    def test_one_that_goes_is_let_go(self):
        d = self.web()
        for how in range(20):
            s = self.open(d, '?what=results')
            if how % 2:
                s.send(struct.pack('>H', 1000), CLOSE)
                self.assertEqual(s.message()[0], 1000)
            s.close()
        until(lambda: d.status()['subscribers']['count'] == 0, 'none to be left')

    def test_a_slow_one_is_bounded_and_hears_of_the_gap(self):
        d = self.web(keys='queue = 65536\n')
        slow = self.open(d, '?what=results', buffer=65536)
        self.subscribers(d, 1)
        before = d.rss()
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(200)))
            for k in range(300):
                c.send(harness.points(handles, [START + k * 10**9] * 200, [1.0] * 200))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
            until(lambda: c.status()['subscribers']['gap_results'] > 0, 'results to be left out')
        self.assert_grew_less(d, before, 48 << 20)
        while 'gap' not in (got := slow.message()):
            self.assertIsInstance(got, dict)
        self.assertGreater(got['gap']['results'], 0)

    def test_one_that_reads_nothing_is_closed_by_stuck(self):
        d = self.web(keys='stuck = 1s\n')
        slow = self.open(d, '?what=results', buffer=4096)
        self.subscribers(d, 1)
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(2000)))
            for k in range(60):
                c.send(harness.points(handles, [START + k * 10**9] * 2000, [1.0] * 2000))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
        self.subscribers(d, 0)
        self.assertTrue(slow)


class Access(Sockets):
    def refused(self, d, status, query='', **headers):
        with self.assertRaises(Refused) as no:
            self.open(d, query, **headers)
        self.assertEqual(no.exception.status, status, headers)
        self.assertEqual(json.loads(no.exception.body)['status'], status)

    def test_pages_of_other_origins_and_names(self):
        d = self.web()
        port = d.port['http tcp']
        for origin in 'http://evil.example', 'null', f'http://127.0.0.1:{port}', f'http://localhost:{port + 1}', f'http://localhost:{port}.evil.example':
            self.refused(d, 403, Origin=origin)
        self.refused(d, 403, Origin=f'http://localhost:{port}', Host=f'localhost:{port}', Sec_Fetch_Site='cross-site')
        self.refused(d, 421, Host=f'evil.example:{port}', Origin=f'http://evil.example:{port}')
        self.open(d, Origin=f'http://localhost:{port}', Host=f'localhost:{port}', Sec_Fetch_Site='same-origin')
        self.subscribers(d, 1)

    def test_tokens(self):
        token = {n: f'hkt_{n}_' + 'x' * 20 for n in ('viewer', 'feeder')}
        with tempfile.NamedTemporaryFile('w', suffix='.tokens') as f:
            f.writelines(f'{n} {s} sha256:{hashlib.sha256(token[n].encode()).hexdigest()}\n' for n, s in (('viewer', 'subscribe'), ('feeder', 'feed')))
            f.flush()
            d = self.web(f'tokens = {f.name}\n', keys='max_failures = 100\n')
            self.refused(d, 401)
            self.refused(d, 401, Authorization='Bearer hkt_wrong')
            self.refused(d, 403, Authorization='Bearer ' + token['feeder'])
            s = self.open(d, '?what=results', Cookie='hankel_token=' + token['viewer'])
            self.subscribers(d, 1)
            f.truncate(0)
            d.process.send_signal(1)
            got = s.message()
            while isinstance(got, dict):
                got = s.message()
            self.assertEqual(got[0], 1001)

    def test_what_is_no_request_for_one(self):
        d = self.web()
        self.assertEqual(self.ask(d, 'ws')[0], 426)
        self.refused(d, 400, '?what=nonsense')
        self.refused(d, 400, '?glob=' + 'x' * 600)
        for version in '12', '', '130', 'x':
            self.refused(d, 426, Sec_WebSocket_Version=version)
        for wrong in {'Sec_WebSocket_Key': ''}, {'Connection': 'close'}, {'Sec_WebSocket_Protocol': 'other'}:
            with self.assertRaises((Refused, OSError)):
                self.open(d, **wrong)
        until(lambda: d.status()['subscribers']['count'] == 0, 'none to be subscribed')
        self.assertEqual(self.ask(d, 'status')[0], 200)


class Abuse(Sockets):
    def end(self, s):
        got = s.message()
        while isinstance(got, dict):
            got = s.message()
        return got and got[0]

    def test_messages_that_are_refused(self):
        d = self.web()
        for send, code in [(lambda s: s.send(b'\0\1\2', BINARY), 1003), (lambda s: s.send('x' * 1025), 1009), (lambda s: s.send('x' * 100000), 1009),
                           (lambda s: [s.send('x' * 600, last=False), s.send('x' * 600, kind=0)], 1009), (lambda s: s.send('events\nevents'), 1002)]:
            s = self.open(d)
            send(s)
            self.assertEqual(self.end(s), code)
        s = self.open(d)
        for _ in range(100):  # in pieces, and with pings in between
            s.send('ev', last=False)
            s.send('hello', PING)
            s.send('ents', kind=0)
        s.send('wrong')
        self.assertIn('error', s.message())
        self.subscribers(d, 1)

    def test_a_flood_of_messages(self):
        d = self.web()
        s = self.open(d)
        try:
            for k in range(20000):
                s.send(f'events s{k}*')
        except OSError:
            pass
        self.assertIn(self.end(s) if k < 19999 else 1008, (1008, None))
        self.assertEqual(self.ask(d, 'status')[0], 200)
        s.close()
        self.subscribers(d, 0)

    def test_arbitrary_bytes(self):
        d = self.web()
        rng = random.Random(7)
        kept = self.open(d, '?what=results')
        for k in range(60 if harness.SANITIZED else 300):
            s = Socket(d, '?what=events')
            try:
                for _ in range(rng.randrange(1, 6)):
                    kind = rng.randrange(4)
                    if kind == 0:
                        s.socket.sendall(rng.randbytes(rng.randrange(1, 300)))
                    elif kind == 1:  # whatever frame there is
                        s.send(rng.randbytes(rng.randrange(200)), rng.randrange(16), rng.random() < 0.5, rng.random() < 0.9)
                    elif kind == 2:  # a wrong length
                        s.socket.sendall(bytes([0x81, 0x80 | rng.choice([126, 127])]) + rng.randbytes(12))
                    else:
                        s.send(rng.choice(['events', 'results a*', '', ' ', 'scores>=0.5', '\u20ac', 'since=1']))
            except OSError:
                pass
            s.close()
        self.feed(d, 1, 1)
        self.assertEqual(kept.until(sensor='s0')['value'], 0)
        self.subscribers(d, 1)


if __name__ == '__main__':
    harness.main()
