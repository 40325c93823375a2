"""Harness of the integration tests: a daemon on ports of its own, and small clients written from PROTOCOL.md alone.

    class Test(harness.Case):
        def test_it(self):
            daemon = self.daemon('[detector all]\\nmatch = *\\nwindow = 8\\n')
            with daemon.client() as c: ...

The programs come from the environment, HANKELD and HANKEL (default: build/ at the root), and HANKEL_BACKEND names the backend.
Standard library only.
"""
import contextlib
import csv
import json
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import stalls
import tap

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, 'tests', 'data')
HANKELD = os.path.abspath(os.environ.get('HANKELD', os.path.join(ROOT, 'build', 'hankeld')))
HANKEL = os.path.abspath(os.environ.get('HANKEL', os.path.join(ROOT, 'build', 'hankel')))
BACKEND = os.environ.get('HANKEL_BACKEND', 'cpu')
LOOPS = os.environ.get('HANKEL_LOOPS')  # event loops of every daemon whose configuration does not say
SECOND = 10**9
START = 1_600_000_000 * SECOND
STATES = ['warming', 'ok', 'gap', 'late', 'rejected']
KINDS = ['', 'raised', 'corrected', 'cleared', 'stale', 'back']
SANITIZED = os.environ.get('HANKEL_SANITIZE', 'none') != 'none'
TSAN = os.environ.get('HANKEL_SANITIZE') == 'thread'
WAIT = int(os.environ.get('HANKEL_WAIT', 120 if SANITIZED else 60))  # seconds that anything may take before a test fails

HELLO, REGISTER, POINTS, SUBSCRIBE, UNSUBSCRIBE, PING, STATUS, BYE = range(1, 9)
WELCOME, REGISTERED, DONE, PONG, REPORT, FAREWELL = 0x81, 0x82, 0x84, 0x86, 0x87, 0x88
RELOAD, RELOADED, OPERATE, OPERATED = 0x0a, 0x8a, 0x0b, 0x8b
NAMES, SCORES, EVENTS, GAP, ERROR = 0x91, 0x92, 0x93, 0x94, 0xFF
SCORED, UNSCORED, ALERTS, NOTICES, VALUES, POSITIONS = 1, 2, 4, 8, 16, 32


def until(condition, what, wait=WAIT):
    """Polls until the condition gives something true, and returns it: a hundred times a second at first, ten times where it takes long,
    since who asks takes the processor's time that the one who is asked needs."""
    begin = time.monotonic()
    while True:
        got = condition()
        if got:
            return got
        took = time.monotonic() - begin
        if took > wait:
            raise AssertionError(f'waited {wait} s for {what}')
        time.sleep(min(max(took / 20, 0.01), 0.1))


def free_port():
    """A port that no connection is given as its own end: a daemon that is started again finds it free."""
    with open('/proc/sys/net/ipv4/ip_local_port_range') as f:
        given = int(f.read().split()[0])
    while True:
        port = random.randrange(5000, max(given, 20000))
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(('127.0.0.1', port))
            return port


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
    """Takes strings, numbers and columns off a payload."""

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
    """The daemon closed the connection; `error` is the (code, message) that came before, or None."""

    def __init__(self, error):
        super().__init__(f'closed by the daemon: {error}')
        self.error = error


class Client:
    """A connection that speaks the binary protocol. Frames that come in between replies are kept: results, events, gaps, errors."""

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
        """Next frame: type, tag, payload."""
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
        """Handles; None for a name that was refused."""
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
        """Whether the configuration was taken over, and the lines that say what came of it."""
        r = self.request(RELOAD, b'', RELOADED)
        return r.one('B') == 1, r.data[1:].decode().splitlines()

    def bye(self, datagrams=0, n=0):
        """Says farewell; everything owed has been kept when this returns."""
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
        """Takes what comes until nothing has for a while, and the daemon, which may have been held up, answers twice with nothing
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


LISTENERS = """
[listen binary]
protocol = binary
address = 127.0.0.1:0
[listen binary-udp]
protocol = binary
transport = udp
address = 127.0.0.1:0
[listen line]
protocol = line
address = 127.0.0.1:0
[listen line-udp]
protocol = line
transport = udp
address = 127.0.0.1:0
[listen text]
protocol = text
address = 127.0.0.1:0
"""


# Starts a program as systemd does: with sockets from descriptor 3 on, and their names.
PASS = """
import os, sys
names, numbers = sys.argv[1].split(':'), [int(x) for x in sys.argv[2].split(',')]
high = [os.dup2(x, 200 + i) for i, x in enumerate(numbers)]
for i, x in enumerate(high):
    os.dup2(x, 3 + i)
    os.close(x)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=':'.join(names))
os.execv(sys.argv[3], sys.argv[3:])
"""


class NotReady(AssertionError):
    """The daemon ended, or said nothing, before it was ready. `code`: its exit code; None when it hung. `log`: what it said."""

    def __init__(self, code, log):
        super().__init__(f'the daemon did not get ready (exit code {code}):\n' + '\n'.join(log))
        self.code, self.log = code, log


class Daemon:
    """build/hankeld with a configuration. `port` is by 'binary tcp', 'line udp', ...; `log` the lines of standard error."""

    def __init__(self, detectors, keys='threads = 2\n', listeners=LISTENERS, limits=None, backend=BACKEND, program=HANKELD,
                 environment=None, passed=()):
        """passed: (name, socket) of sockets that it gets from its service manager."""
        self.directory = tempfile.TemporaryDirectory(prefix='hankeld-test-')
        path = os.path.join(self.directory.name, 'hankeld.conf')
        self.backend, self.listeners = backend, listeners
        self.configure(detectors, keys)
        self.port, self.ready = {}, threading.Event()
        self.lines, self.taking, self.ended = [], threading.Lock(), False
        command, numbers = [program, '-c', path], [s.fileno() for _, s in passed]
        if passed:
            command = [sys.executable, '-c', PASS, ':'.join(n for n, _ in passed), ','.join(map(str, numbers))] + command
        self.process = subprocess.Popen(command, pass_fds=numbers, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0,
                                        preexec_fn=limits, env={**os.environ, **(environment or {})})
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.ready.wait(WAIT)
        if 'ready' not in self.log:
            try:
                code = self.process.wait(5)
            except subprocess.TimeoutExpired:
                code = None
            self.process.kill()
            self.clean()
            raise NotReady(code, self.log)

    def configure(self, detectors, keys='threads = 2\n'):
        """Writes the configuration's file, which the daemon reads when it starts and when it is told to."""
        drain = '' if 'drain' in keys else f'drain = {WAIT}s\n'
        loops = '' if 'loops' in keys or not LOOPS else f'loops = {LOOPS}\n'
        # of a million, which is the default, a sanitizer would shadow all tables each time
        sensors = '' if 'max_sensors' in keys or not SANITIZED else 'max_sensors = 20000\n'
        with open(os.path.join(self.directory.name, 'hankeld.conf'), 'w') as f:
            f.write(f'[daemon]\nbackend = {self.backend}\n{drain}{loops}{sensors}{keys}{self.listeners}{detectors}')

    def _read(self):
        rest = b''
        while not self.ended:
            self._said(None)
            with self.taking:
                data = self.process.stderr.read(1 << 16)
                *lines, rest = (rest + data).split(b'\n')
                self.ended = not data
                for line in lines + [rest] * (self.ended and rest != b''):
                    self._line(line.decode(errors='replace'))
        self.ready.set()

    def _line(self, line):
        self.lines.append(line)
        found = re.match(r'listening (\w+) (\w+) \S+:(\d+)$', line)
        if found:
            self.port[f'{found[1]} {found[2]}'] = int(found[3])
        if line == 'ready':
            self.ready.set()

    def _said(self, wait):
        """Whether it has said what was not taken yet."""
        poll = select.poll()
        poll.register(self.process.stderr, select.POLLIN)
        return bool(poll.poll(wait))

    @property
    def log(self):
        """Every line that it has written by now."""
        while True:
            with self.taking:
                if self.ended or not self._said(0):
                    return self.lines
            time.sleep(0.001)

    def client(self, **how):
        return Client(self.port['binary tcp'], **how)

    def connect(self, listener):
        s = socket.socket(type=socket.SOCK_DGRAM) if listener.endswith('udp') else socket.socket()
        s.settimeout(WAIT)
        s.connect(('127.0.0.1', self.port[listener]))
        return s

    def status(self):
        with self.client() as c:
            return c.status()

    def events(self):
        """All events in its log, as a subscriber hears them who asks for them from the beginning on."""
        with self.client() as c:
            last = self.status()['durability']['events_last']
            c.request(SUBSCRIBE, struct.pack('<If', ALERTS | POSITIONS, 0) + text('') + struct.pack('<Q', 0), DONE)
            while last > 0 and (not c.placed or c.placed[-1][0] < last):
                kind, _, payload = c.receive()
                c.keep(kind, payload)
            assert [p[0] for p in c.placed] == list(range(1, last + 1)), c.placed
            return c.events

    def rss(self):
        """Resident memory now, bytes."""
        with open(f'/proc/{self.process.pid}/statm') as f:
            return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    def stop(self):
        """SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT)
        self.reader.join(WAIT)
        return code

    def clean(self):
        """Ends the daemon as an operator would; returns its exit code (a sanitizer that found something makes it not 0)."""
        try:
            return self.stop()
        finally:
            self.process.kill()
            self.process.wait()
            self.reader.join(WAIT)
            self.process.stderr.close()
            self.directory.cleanup()


class Case(stalls.Case):
    def daemon(self, detectors='[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n', ends=0, **how):
        """A daemon that is ended after the test, which fails when that does not go well (with exit code `ends`)."""
        d = Daemon(detectors, **how)
        self.addCleanup(lambda: self.assertEqual(d.clean(), ends, 'the end of the log:\n' + '\n'.join(d.log[-60:])))
        return d

    def assert_grew_less(self, daemon, before, most):
        """Resident memory has grown by less than `most` bytes since it was `before`. A sanitizer keeps what was freed: not then."""
        if not SANITIZED:
            self.assertLess(daemon.rss() - before, most)

    def balanced(self, status):
        """in = scored + unscored + late + rejected + dropped + pending."""
        p = status['points']
        self.assertEqual(p['in'], sum(v for k, v in p.items() if k != 'in'), p)
        return p


def gpu():
    """Whether hankeld finds a GPU that it can use."""
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
        f.write('[daemon]\nbackend = cuda\n[detector all]\nmatch = *\n')
        f.flush()
        return subprocess.run([HANKELD, '-c', f.name, '--check'], capture_output=True, timeout=WAIT, check=False).returncode == 0


def main(needs_gpu=BACKEND == 'cuda'):
    """Runs the tests of a file, a line of TAP for each; skips all where they need a GPU and there is none."""
    if needs_gpu and not gpu():
        print('1..0 # SKIP no GPU here')
        sys.exit(0)
    tap.main()


def replay(recording, detector='', backend=BACKEND, *options):
    """Rows (sensor, time, score, state) and event rows of hankel replay."""
    out = subprocess.run([HANKEL, 'replay', '--backend', backend, '--detector', detector, *options, recording], check=True,
                         capture_output=True, text=True, timeout=WAIT).stdout
    rows, events = [], []
    for cells in csv.reader(out.splitlines()[1:]):
        if cells[0] == '#novelty':
            continue
        if cells[0] == '#event':
            events.append(cells[1:])
        else:
            rows.append((cells[0], int(cells[1]), single(cells[3]) if cells[3] else None, cells[4], float(cells[2])))
    return rows, events


def waves(seed, sensors, points, change):
    """Values of each sensor, by name: a wave that changes its frequency at one of `change`, first to last, with noise; float32 exactly."""
    rng, out = random.Random(seed), {}
    for i in range(sensors):
        value, at = [], rng.randint(*change)
        for k in range(points):
            wave = ((k * (3 if k < at else 7)) % 40) / 20 - 1
            value.append(single(wave + rng.gauss(0, 0.05)))
        out[f's{i}'] = value
    return out


def uninterrupted(values, detector, backend=BACKEND):
    """What a run that nothing interrupts says of these values by sensor, a second apart from START: (score, state) by sensor and time;
    of the events (time, instant, score) by id and kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'all.csv')
        with open(path, 'w') as f:
            f.write('time,' + ','.join(values) + '\n')
            for k, row in enumerate(zip(*values.values())):
                f.write(f'{START + k * SECOND},' + ','.join(map(repr, row)) + '\n')
        rows, events = replay(path, detector, backend, '--unit', 'ns')
    return ({(sensor, time): (score, state) for sensor, time, score, state, _ in rows},
            {(e[0], e[2]): (int(e[3]), int(e[4]), single(e[5])) for e in events})


def single(number):
    """The nearest float32."""
    return struct.unpack('<f', struct.pack('<f', float(number)))[0]


def section(name, match, detector):
    """A [detector] section from the form with commas."""
    return f'[detector {name}]\nmatch = {match}\n' + detector.replace(',', '\n') + '\n'


def interleaved(rng, points):
    """(sensor, time, value) of the points, (time, value) by sensor, mixed at random, in order for each sensor."""
    left = {sensor: list(reversed(own)) for sensor, own in points.items()}
    while left:
        sensor = rng.choice(list(left))
        for _ in range(rng.randint(1, 40)):
            if not left[sensor]:
                del left[sensor]
                break
            yield sensor, *left[sensor].pop()


def cut(rng, n, most):
    """Cuts 0..n into random pieces of 1..most."""
    at = 0
    while at < n:
        end = min(n, at + rng.randint(1, most))
        yield at, end
        at = end
