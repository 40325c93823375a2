"""A small client of the binary protocol, written from PROTOCOL.md alone."""
import contextlib
import json
import os
import socket
import struct
import time
import zlib

STATES = ['warming', 'ok', 'gap', 'late', 'rejected', 'provisional']
KINDS = ['', 'raised', 'corrected', 'cleared', 'stale', 'back']
SANITIZED = os.environ.get('HANKEL_SANITIZE', 'none') != 'none'
TSAN = os.environ.get('HANKEL_SANITIZE') == 'thread'
WAIT = int(os.environ.get('HANKEL_WAIT', 240))  # seconds after which a test fails: only something that hangs takes so long

HELLO, REGISTER, POINTS, SUBSCRIBE, UNSUBSCRIBE, PING, STATUS, BYE = range(1, 9)
WELCOME, REGISTERED, DONE, PONG, REPORT, FAREWELL = 0x81, 0x82, 0x84, 0x86, 0x87, 0x88
RELOAD, RELOADED, OPERATE, OPERATED = 0x0a, 0x8a, 0x0b, 0x8b
NAMES, SCORES, EVENTS, GAP, ERROR = 0x91, 0x92, 0x93, 0x94, 0xFF
SCORED, UNSCORED, ALERTS, NOTICES, VALUES, POSITIONS = 1, 2, 4, 8, 16, 32


def frame(kind, payload=b'', tag=0, version=1, magic=b'HK'):
    head = struct.pack('<2sBBII', magic, version, kind, len(payload), tag)
    return head + struct.pack('<I', zlib.crc32(payload, zlib.crc32(head))) + payload


def text(s):
    data = s if isinstance(s, bytes) else s.encode()
    return struct.pack('<H', len(data)) + data


def points(handles, times, values, feed=0, sequence=0, before=0):
    """A POINTS frame with a time for each point and float64 values."""
    n = len(handles)
    return frame(POINTS, struct.pack(f'<QQQIBBH{n}q{n}d{n}I', feed, sequence, before, n, 0, 0, 0, *times, *values, *handles))


class Reader:
    """Reads strings, numbers and columns from a payload."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        got = struct.unpack_from('<' + form, self.data, self.at)
        self.at += struct.calcsize('<' + form)
        return got

    def one(self, form):
        return self.take(form)[0]

    def string(self):
        length = self.one('H')
        self.at += length
        return self.data[self.at - length:self.at].decode()


class Closed(Exception):
    """The daemon has closed the connection; `error` is the (code, message) that came before, or None."""

    def __init__(self, error):
        super().__init__(f'closed by the daemon: {error}')
        self.error = error


class Client:
    """A connection of the binary protocol. Frames that come between replies are kept: results, events, gaps, errors."""

    def __init__(self, port, hello=True, sock=None):
        self.socket = sock or socket.create_connection(('127.0.0.1', port), WAIT)
        self.pending, self.tag = bytearray(), 0
        self.names, self.results, self.events, self.gaps, self.errors = {}, [], [], [], []
        self.sequenced, self.placed = [], []  # results with their sequences; (position, sequence, event)
        self.kept = 0  # frames
        if hello:
            r = self.request(HELLO, text('test'), WELCOME)
            self.feed, self.max_frame = r.take('QI')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """The next frame: type, tag, payload."""
        while True:
            if len(self.pending) >= 16:
                length = struct.unpack_from('<I', self.pending, 4)[0]
                if len(self.pending) >= 16 + length:
                    data = bytes(self.pending[:16 + length])
                    del self.pending[:16 + length]
                    magic, version, kind, _, tag, check = struct.unpack_from('<2sBBIII', data)
                    assert (magic, version) == (b'HK', 1), data[:16]
                    assert check == zlib.crc32(data[16:], zlib.crc32(data[:12])), 'bad checksum from the daemon'
                    return kind, tag, data[16:]
            try:
                got = self.socket.recv(1 << 20)
            except ConnectionResetError:
                got = b''
            if not got:
                raise Closed(self.errors[-1] if self.errors else None)
            self.pending += got

    def keep(self, kind, payload):
        self.kept += 1
        r = Reader(payload)
        if kind == NAMES:
            for _ in range(r.one('I')):
                handle = r.one('I')
                self.names[handle] = r.string()
        elif kind == SCORES:
            n, kind, columns, _ = r.take('IBBH')
            head = r.take({0: '', 1: 'q'}.get(kind, 'qq'))
            times = r.take(f'{n}q') if kind == 0 else [head[0] + i * head[-1] * (kind == 2) for i in range(n)]
            values = r.take(f'{n}d') if columns & 1 else [None] * n
            sequences = r.take(f'{n}Q') if columns & 4 else None
            handles, scores = r.take(f'{n}I'), r.take(f'{n}f')
            if kind == 3:
                times = [head[0] + step * head[1] for step in r.take(f'{n}I')]
            rows = zip(handles, times, values, scores, r.take(f'{n}B') if columns & 2 else [1] * n)
            rows = [(self.names[h], t, v, None if z != z else z, STATES[s]) for h, t, v, z, s in rows]
            self.results += rows
            self.sequenced += [(*row, sequence) for row, sequence in zip(rows, sequences or ())]
        elif kind == EVENTS:
            n, placed = r.take('II')
            for _ in range(n):
                place = r.take('QQ') if placed else None
                handle, number, what, _, _, _, score, at, begin, instant, before, after = r.take('IIBBBBfqqqdd')
                self.events.append((self.names[handle], number, KINDS[what], at, begin, instant, score, before, after))
                if placed:
                    self.placed.append((*place, self.events[-1]))
        elif kind == GAP:
            self.gaps.append(r.take('QQ'))
        elif kind == ERROR:
            code, about, closing = r.take('HBB')
            self.errors.append((code, r.string()))
        else:
            raise AssertionError(f'unexpected frame {kind:#x}')

    def request(self, kind, payload, reply):
        self.tag += 1
        self.send(frame(kind, payload, self.tag))
        while True:
            got, tag, data = self.receive()
            if got == reply and tag == self.tag:
                return Reader(data)
            self.keep(got, data)

    def register(self, *names):
        """Registers names; returns handles, None for a refused name."""
        r = self.request(REGISTER, struct.pack('<I', len(names)) + b''.join(map(text, names)), REGISTERED)
        pairs = [r.take('II') for _ in range(r.one('I'))]
        return [None if reason else handle for handle, reason in pairs]

    def subscribe(self, what=SCORED | UNSCORED | ALERTS | VALUES, glob='', least=0.0):
        self.request(SUBSCRIBE, struct.pack('<If', what, least) + text(glob), DONE)

    def ping(self):
        assert self.request(PING, struct.pack('<Q', 77), PONG).one('Q') == 77

    def status(self):
        return json.loads(self.request(STATUS, b'', REPORT).data)

    def reload(self):
        """Reloads the configuration; returns whether it is in force, and the lines of the answer."""
        r = self.request(RELOAD, b'', RELOADED)
        return r.one('B') == 1, r.data[1:].decode().splitlines()

    def bye(self, datagrams=0, n=0):
        """Sends BYE, and waits for FAREWELL; all results that were due have been kept then."""
        self.request(BYE, struct.pack('<QQ', datagrams, n), FAREWELL)

    def wait_results(self, n, wait=WAIT):
        end = time.monotonic() + wait
        while len(self.results) < n:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                kind, _, payload = self.receive()
            except TimeoutError:
                raise AssertionError(f'{len(self.results)} of {n} results came within {wait} s') from None
            self.keep(kind, payload)
        self.socket.settimeout(WAIT)
        return self.results

    def drain(self, quiet=0.3):
        """Reads frames until none has come for a while, and the daemon, which may have been held up, answers twice with no frame
        before the answers."""
        before = -1
        while self.kept != before:
            self.socket.settimeout(quiet)
            with contextlib.suppress(TimeoutError):
                while True:
                    kind, _, payload = self.receive()
                    self.keep(kind, payload)
            self.socket.settimeout(WAIT)
            before = self.kept
            self.ping()
            self.ping()
