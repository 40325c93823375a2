"""Harness of the integration tests: a daemon on ports of its own, and the small clients of wire.py, written from PROTOCOL.md alone.

    class Test(harness.Case):
        def test_it(self):
            daemon = self.daemon('[detector all]\\nmatch = *\\nwindow = 8\\n')
            with daemon.client() as c: ...

The programs come from the environment, HANKELD and HANKEL (default: build/ at the root), and HANKEL_BACKEND names the backend.
Standard library only.
"""
import contextlib
import csv
import os
import pty
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
import unittest

import stalls
import tap
from wire import (  # noqa: F401, what tests take from here
    ALERTS, BYE, DONE, ERROR, EVENTS, FAREWELL, GAP, HELLO, KINDS, NAMES, NOTICES, OPERATE, OPERATED, PING, PONG, POINTS, POSITIONS,
    REGISTER, REGISTERED, RELOAD, RELOADED, REPORT, SANITIZED, SCORED, SCORES, STATES, STATUS, SUBSCRIBE, TSAN, UNSCORED, UNSUBSCRIBE,
    VALUES, WAIT, WELCOME, Client, Closed, Reader, frame, points, text)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, 'tests', 'data')
HANKELD = os.path.abspath(os.environ.get('HANKELD', os.path.join(ROOT, 'build', 'hankeld')))
HANKEL = os.path.abspath(os.environ.get('HANKEL', os.path.join(ROOT, 'build', 'hankel')))
BACKEND = os.environ.get('HANKEL_BACKEND', 'cpu')
FILLED = os.environ.get('MALLOC_PERTURB_', '0') != '0'  # malloc fills what it gives
LOOPS = os.environ.get('HANKEL_LOOPS')  # event loops of every daemon whose configuration has no `loops`
SECOND = 10**9
START = 1_600_000_000 * SECOND


def until(condition, what, wait=WAIT):
    """Polls until the condition returns a true value, and returns that. It polls a hundred times a second at first, later ten times, because polling
    takes processor time from the tested program."""
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
    """A port outside the range from which the kernel takes local ports of connections, so that a restarted daemon finds it free."""
    with open('/proc/sys/net/ipv4/ip_local_port_range') as f:
        given = int(f.read().split()[0])
    while True:
        port = random.randrange(5000, max(given, 20000))
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(('127.0.0.1', port))
            return port


STREAMS = """
[listen binary]
protocol = binary
address = 127.0.0.1:0
[listen line]
protocol = line
address = 127.0.0.1:0
[listen text]
protocol = text
address = 127.0.0.1:0
"""
LISTENERS = STREAMS + """
[listen binary-udp]
protocol = binary
transport = udp
address = 127.0.0.1:0
[listen line-udp]
protocol = line
transport = udp
address = 127.0.0.1:0
"""


# Starts a program as systemd does: with sockets from descriptor 3 on, and the sockets' names.
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
    """The daemon exited or hung before it was ready. `code`: its exit code, None if it hung. `log`: its lines."""

    def __init__(self, code, log):
        super().__init__(f'the daemon did not get ready (exit code {code}):\n' + '\n'.join(log))
        self.code, self.log = code, log


class Daemon:
    """build/hankeld with a configuration. `port` has the ports by listener, 'binary tcp', 'line udp', ...; `log` the lines of standard error."""

    def __init__(self, detectors, keys='threads = 2\n', listeners=LISTENERS, limits=None, backend=BACKEND, program=HANKELD,
                 environment=None, passed=()):
        """passed: (name, socket) of sockets that the daemon gets as from a service manager."""
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
                code = self.process.wait(WAIT)
            except subprocess.TimeoutExpired:
                code = None
            self.process.kill()
            self.clean()
            raise NotReady(code, self.log)

    def configure(self, detectors, keys='threads = 2\n'):
        """Writes the configuration file, which the daemon reads at its start and at each reload."""
        drain = '' if 'drain' in keys else f'drain = {WAIT}s\n'
        loops = '' if 'loops' in keys or not LOOPS else f'loops = {LOOPS}\n'
        # with the defaults, a million each, all tables would be shadowed by a sanitizer, or filled by malloc, at each start
        sensors = '' if 'max_sensors' in keys or not (SANITIZED or FILLED) else 'max_sensors = 20000\n'
        backlog = '' if 'backlog' in keys or 'max_frame' in keys or not (SANITIZED or FILLED) else 'backlog = 300000\n'
        with open(os.path.join(self.directory.name, 'hankeld.conf'), 'w') as f:
            f.write(f'[daemon]\nbackend = {self.backend}\n{drain}{loops}{sensors}{backlog}{keys}{self.listeners}{detectors}')

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
        """Whether standard error has bytes that were not read yet. wait: ms; None: without limit."""
        poll = select.poll()
        poll.register(self.process.stderr, select.POLLIN)
        return bool(poll.poll(wait))

    @property
    def log(self):
        """Every line that the daemon has written by now."""
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
        """All events of the daemon's event log, as a subscriber gets them from the beginning on."""
        with self.client() as c:
            status = self.status()
            last = status['durability']['events_last']
            c.request(SUBSCRIBE, struct.pack('<If', ALERTS | POSITIONS, 0) + text('') + struct.pack('<Q', 0), DONE)
            # reloads, other operations, and what becomes of incidents have positions, too
            operated = 'incidents' in status or any('reload' in line or 'configuration' in line for line in self.log)
            try:
                while last > 0 and (not c.placed or c.placed[-1][0] < last):
                    c.socket.settimeout(5 if operated and c.placed else WAIT)
                    kind, _, payload = c.receive()
                    c.keep(kind, payload)
            except TimeoutError:
                assert operated, c.placed
            places = [p[0] for p in c.placed]
            assert places == (sorted(set(places)) if operated else list(range(1, last + 1))), c.placed
            return c.events

    def rss(self):
        """Resident memory of the daemon now, bytes."""
        with open(f'/proc/{self.process.pid}/statm') as f:
            return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    def stop(self):
        """Ends the daemon by SIGTERM; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT)
        self.reader.join(WAIT)
        return code

    def clean(self):
        """Ends the daemon as an operator would, and frees the test's resources. Returns the exit code, which is not 0 if a sanitizer found an
        error."""
        try:
            return self.stop()
        finally:
            self.process.kill()
            self.process.wait()
            self.reader.join(WAIT)
            self.process.stderr.close()
            self.directory.cleanup()


class Case(stalls.Case):
    listens = STREAMS  # the daemons' listeners. Those of datagrams, in LISTENERS, have 4 MiB of buffers in each loop, which a sanitizer shadows at each start

    def daemon(self, detectors='[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n', ends=0, **how):
        """Starts a daemon, and ends it after the test, which fails if the exit code is not `ends`."""
        d = Daemon(detectors, **{'listeners': self.listens, **how})
        self.addCleanup(lambda: self.assertEqual(d.clean(), ends, 'the end of the log:\n' + '\n'.join(d.log[-60:])))
        return d

    def assert_grew_less(self, daemon, before, most):
        """Asserts that resident memory has grown by less than `most` bytes since it was `before`; not with a sanitizer, which keeps freed memory."""
        if not SANITIZED:
            self.assertLess(daemon.rss() - before, most)

    def rounding(self, daemon):
        """How far scores may be from those of tests/data: its kernels are those of AVX, and a sanitizer's compiler, or portable ones, round differently."""
        return 1e-5 if SANITIZED or daemon.status()['kernels'] == 'portable' else 0

    def balanced(self, status):
        """Asserts that in = scored + unscored + late + rejected + dropped + pending. Returns these counters."""
        p = status['points']
        self.assertEqual(p['in'], sum(v for k, v in p.items() if k != 'in'), p)
        return p


def terminal():
    """Both ends of a terminal, ours first. Skips the test where none is to be had: in a container or chroot without /dev/pts."""
    try:
        return pty.openpty()
    except OSError as fault:
        raise unittest.SkipTest(f'no terminal to be had: {fault}') from fault


def gpu():
    """Whether hankeld finds a GPU that it can use."""
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
        f.write('[daemon]\nbackend = cuda\n[detector all]\nmatch = *\n')
        f.flush()
        return subprocess.run([HANKELD, '-c', f.name, '--check'], capture_output=True, timeout=WAIT, check=False).returncode == 0


def main(needs_gpu=BACKEND == 'cuda'):
    """Runs the tests of a file and prints a line of TAP for each. Skips all of them if they need a GPU and there is none."""
    if needs_gpu and not gpu():
        print('1..0 # SKIP no GPU here')
        sys.exit(0)
    tap.main()


def replay(recording, detector='', backend=BACKEND, *options):
    """Rows (sensor, time, score, state, value) and event rows that hankel replay prints."""
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


def level(t, steps_at=None):
    """A value of time t, which is higher by 10 from a time on."""
    return (10 if steps_at is not None and t >= steps_at else 0) + t * 7 % 5 * 0.125


def waves(seed, sensors, points, change):
    """Values of each sensor, by name: a wave with noise that changes its frequency at a point between the two of `change`. All are float32 exactly."""
    rng, out = random.Random(seed), {}
    for i in range(sensors):
        value, at = [], rng.randint(*change)
        for k in range(points):
            wave = ((k * (3 if k < at else 7)) % 40) / 20 - 1
            value.append(single(wave + rng.gauss(0, 0.05)))
        out[f's{i}'] = value
    return out


def uninterrupted(values, detector, backend=BACKEND):
    """Results of an uninterrupted run over these values by sensor, a second apart from START on: (score, state) by sensor and time, and
    (time, instant, score) of the events by id and kind."""
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
    """A [detector] section from keys that are separated by commas."""
    return f'[detector {name}]\nmatch = {match}\n' + detector.replace(',', '\n') + '\n'


def interleaved(rng, points):
    """Yields (sensor, time, value) of points that are given as (time, value) by sensor: sensors mixed at random, each sensor's points in order."""
    left = {sensor: list(reversed(own)) for sensor, own in points.items()}
    while left:
        sensor = rng.choice(list(left))
        for _ in range(rng.randint(1, 40)):
            if not left[sensor]:
                del left[sensor]
                break
            yield sensor, *left[sensor].pop()


def cut(rng, n, most):
    """Yields (begin, end) of random pieces of 0..n, each of 1 to `most`."""
    at = 0
    while at < n:
        end = min(n, at + rng.randint(1, most))
        yield at, end
        at = end
