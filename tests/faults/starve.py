#!/usr/bin/env python3
"""Starves the daemon of memory: in each life another allocation fails, counted from the start. A life has connections of all kinds, registrations,
subscriptions, points, feeds, lines, datagrams, status, a reload and the end. Whichever allocation fails, the daemon either does not start and reports
the reason (exit code 1), or refuses the request and continues: afterwards it serves everything as before, its counters balance, and its exit code is
0. A sanitizer's build shows leaks, too.

With --disk a call on a file fails, in a daemon with durability = journal: it still serves, its disk counts as good
once it works again, and another daemon starts from the files.

With --tls all connections use TLS with tokens, and with --openssl the allocations of OpenSSL count and fail like the daemon's own.

    tests/faults/starve.py [--disk ENOSPC|EIO|EROFS | --journal] [--tls | --openssl] [--first N] [--last N] [--step N] [--start I N]
                           [--more M] [--jobs J] [--keys 'TEXT']

The first of the start's calls on files that fails ends the start, so each of them has a life only if each is number N: --start I N has the lives of part I
of N of these calls, and --first then counts from the start's end.

Fault matrix rows 22 and 23. The daemon is $STARVED_DAEMON (build/tests/integration/starved-daemon)."""
import argparse
import concurrent.futures
import contextlib
import errno
import functools
import hashlib
import hmac
import os
import ssl
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import certificates  # noqa: E402
import harness  # noqa: E402
from harness import ALERTS, HELLO, REGISTER, SCORED, SECOND, START, UNSCORED, VALUES, WELCOME, Client, frame, points, text  # noqa: E402

PROGRAM = os.environ.get('STARVED_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'starved-daemon'))
DETECTORS = '[detector few]\nmatch = few*\nwindow = 8\ninterval = 1s\nalert = 0.5\n[detector rest]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'
KEYS = 'threads = 1\nloops = 2\nmax_sensors = 300\nbacklog = 32770\nmax_frame = 128KiB\nlog_level = info\n'
FEED, FEED_AT, ACK, TOKEN = 0x09, 0x89, 0x95, 'hkt_starve'
FAILURES = (harness.Closed, OSError, AssertionError, KeyError, struct.error)
# s that a starved daemon, which may never answer, gets for an answer. A daemon that is not starved gets WAIT, however busy the machine is.
STARVED = 5


class Secured(harness.Daemon):
    """A daemon whose peers need TLS and a token; `client` and `connect` use them."""

    def __init__(self, folder, *arguments, **how):
        keys = ''.join(f'{key} = {os.path.join(folder, file)}\n' for key, file in
                       (('tls_certificate', 'server.pem'), ('tls_key', 'server.key'), ('tokens', 'tokens')))
        listeners = ''.join(f'[listen {p}]\nprotocol = {p}\naddress = 127.0.0.1:0\n{keys}' for p in ('binary', 'line', 'text'))
        listeners += ''.join(f'[listen {p}-udp]\nprotocol = {p}\ntransport = udp\naddress = 127.0.0.1:0\n' for p in ('binary', 'line'))
        self.context = ssl.create_default_context(cafile=os.path.join(folder, 'ca.pem'))
        super().__init__(*arguments, listeners=listeners, **how)

    @staticmethod
    def prepare(folder):
        """The files that such daemons read."""
        certificates.Authority(folder, 'ca').sign('server', names='IP:127.0.0.1')
        with open(os.path.join(folder, 'tokens'), 'w', encoding='utf-8') as f:
            f.write(f'all feed,subscribe,admin sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()} feeds=*\n')

    def connect(self, listener):
        plain = super().connect(listener)
        if listener.endswith('udp'):
            return plain
        s = self.context.wrap_socket(plain, server_hostname='127.0.0.1')
        if not listener.startswith('binary'):
            s.sendall(f'token {TOKEN}\n'.encode())
        return s

    def client(self):
        c = Client(0, False, self.connect('binary tcp'))
        r = c.request(HELLO, text('test') + text(TOKEN) + struct.pack('<I', 1), WELCOME)
        c.feed, c.max_frame = r.take('QI')
        r.string()
        c.key = r.data[r.at + 2:]
        return c


class Life:
    """The clients of a life. Each round has its own names and times."""

    def __init__(self, daemon, keys):
        self.d, self.keys, self.round, self.limit = daemon, keys, 0, harness.WAIT

    def binary(self):
        with self.d.client() as watcher, self.d.client() as c:
            watcher.socket.settimeout(self.limit)
            c.socket.settimeout(self.limit)
            mark = f'few {self.round}'
            watcher.subscribe(SCORED | UNSCORED | ALERTS | VALUES, f'{mark}*')
            handles = c.register(*(f'{mark} {i}' for i in range(20)))
            assert None not in handles, 'a sensor was refused'
            for tick in range(30):
                c.send(points(handles, [START + tick * SECOND] * 20, [float((tick * 7 + h) % 5) for h in range(20)]))
            c.send(frame(REGISTER, struct.pack('<I', 1) + text('x' * 300))[:200])  # half a frame, kept for later
            watcher.wait_results(600, self.limit)
            c.close()
            watcher.subscribe(SCORED, '*', 0.9)
            watcher.subscribe(SCORED, '', 0.0)
            status = watcher.status()
            assert 'points' in status
            watcher.bye()

    def many_names(self):
        with self.d.client() as c:
            c.socket.settimeout(self.limit)
            got = c.register(*(f'{"n" * 200} {self.round} {i}' for i in range(20)))
            assert None not in got, 'a sensor was refused'

    def lines(self):
        with self.d.client() as watcher, self.d.connect('line tcp') as s, self.d.connect('line udp') as udp:
            watcher.socket.settimeout(self.limit)
            watcher.subscribe(SCORED | UNSCORED, f'line{self.round}*')
            s.sendall(b''.join(b'line%d,host=%d value=%d %d\n' % (self.round, i % 3, i, START + i * SECOND) for i in range(30)))
            s.sendall(b'line%d value=1' % self.round)
            s.sendall(b' %d\nnot a line\n' % START)
            udp.send(b'line%d,udp=1 value=1 %d\n' % (self.round, START))
            watcher.wait_results(32, self.limit)

    def text(self):
        with self.d.connect('text tcp') as s:
            s.settimeout(self.limit)
            s.sendall(b'results few*\nevents *\nnonsense\n')
            got = b''
            while b'"error"' not in got:
                more = s.recv(65536)
                if not more:
                    raise harness.Closed(None)
                got += more

    def feed(self):
        with self.d.client() as c:
            c.socket.settimeout(self.limit)
            name = text(f'feed {self.round}')
            assert c.request(FEED, name, FEED_AT).one('Q') == 0, 'a new feed has points'
            handle = c.register(f'fed {self.round}')[0]
            assert handle is not None, 'a sensor was refused'
            c.send(points([handle] * 20, [START + i * SECOND for i in range(20)], [1.0] * 20))
            got = 0
            while got < 20:
                kind, _, payload = c.receive()
                if kind != ACK:
                    raise harness.Closed((kind, payload))
                got = struct.unpack('<Q', payload)[0]
        with self.d.client() as c:
            c.socket.settimeout(self.limit)
            assert c.request(FEED, name, FEED_AT).one('Q') == 20, 'the feed is not where it was acknowledged'

    def datagrams(self):
        with self.d.client() as c, self.d.connect('binary udp') as udp:
            c.socket.settimeout(self.limit)
            handle = c.register(f'udp {self.round}')[0]
            assert handle is not None, 'a sensor was refused'
            data, key = points([handle], [START], [1.0], c.feed, 1, 0), getattr(c, 'key', b'')
            udp.send(data + hmac.digest(key, data, 'sha256')[:16] if key else data)
            c.bye(1, 1)

    def reload(self):
        with self.d.client() as c:
            c.socket.settimeout(self.limit)
            self.d.configure(DETECTORS.replace('0.5', f'0.{self.round % 9 + 1}'), self.keys)
            assert c.reload()[0], 'the configuration was not taken'

    def all(self, strict):
        """Runs a round; if strict, it raises an error when something fails."""
        self.round += 1
        self.limit = harness.WAIT if strict else STARVED
        for step in (self.binary, self.many_names, self.lines, self.text, self.feed, self.datagrams, self.reload):
            with contextlib.nullcontext() if strict else contextlib.suppress(*FAILURES):
                step()


def rest(daemon):
    """The points of the status once nothing is pending; None before, and if the daemon has no memory to answer: this request may be the one that starves."""
    with contextlib.suppress(*FAILURES), daemon.client() as c:
        c.socket.settimeout(STARVED)
        p = c.status()['points']
        return p if p['pending'] == 0 else None
    return None


def well(daemon):
    """Whether the status reports a good disk."""
    with contextlib.suppress(*FAILURES), daemon.client() as c:
        c.socket.settimeout(STARVED)
        return c.status()['durability']['state'] == 'ok'
    return False


def attempt_journal(start, n, more, keys, error):
    """As attempt, with durability = journal: one life in which call n on files fails, or allocation n if no errno is named, and another daemon after
    it."""
    orders = {'HANKELD_DISK': f'{n} {getattr(errno, error)} {more}'} if error else {'HANKELD_STARVE': str(n), 'HANKELD_STARVE_MORE': str(more)}
    counted = 'calls' if error else 'allocations'
    with tempfile.TemporaryDirectory(prefix='hankeld-state-') as folder:
        keys += f'durability = journal\nstate = {folder}/state\njournal_wait = 1s\nsnapshot = 1s\n'
        fault, counts = attempt(start, 0 if error else n, 0, keys, orders, counted)
        if fault is None:
            again, _ = attempt(start, 0, 0, keys, {}, counted, 1)
            fault = again and f'the daemon after it: {again}'
        return fault, counts


def attempt(start, n, more, keys, environment=None, counted='allocations', rounds=0):
    """Runs one life in which allocation n fails. Returns what is wrong, or None, and the number of allocations, or those of calls in all and of the start,
    as a list, or None. start: harness.Daemon or a function like it; rounds: those of earlier lives, whose names are known."""
    try:
        daemon = start(DETECTORS, keys=keys, program=PROGRAM,
                       environment=environment or {'HANKELD_STARVE': str(n), 'HANKELD_STARVE_MORE': str(more)})
    except harness.NotReady as end:
        said = [line for line in end.log if not line.startswith(('starved', 'faulted', 'listening', 'allocations', 'calls'))]
        # The daemon's last line has the reason; other lines are the test's.
        return (None if end.code == 1 and said and 'Sanitizer' not in str(end) else f'{end}'), None
    fault = None
    life = Life(daemon, keys)
    life.round = 10 * rounds
    try:
        life.all(strict=n == 0)
        starved = any(line.startswith('starved') for line in daemon.log)
        if starved or (n == 0 and rounds == 0):  # a second round uses what the first has left behind; the daemon after it did so in its first
            end = time.monotonic() + harness.WAIT
            while True:  # resources of a refused request may take a moment to be freed
                try:
                    life.all(strict=True)
                    break
                except FAILURES:
                    if time.monotonic() > end or daemon.process.poll() is not None or n == 0:
                        raise
        p = harness.until(lambda: rest(daemon), 'the end of the work')
        if 'durability = journal' in keys:
            harness.until(lambda: well(daemon), 'a disk that is good')
        if p['in'] != sum(v for k, v in p.items() if k != 'in'):
            fault = f'books: {p}'
    except FAILURES as trouble:
        fault = f'not served: {type(trouble).__name__}: {trouble}'
    code = None
    with contextlib.suppress(Exception):
        code = daemon.stop()
    if code != 0:
        fault = f'{fault or ""}; it ended with {code}'
    with contextlib.suppress(Exception):
        daemon.clean()
    if fault:
        fault += '\n' + '\n'.join(daemon.log[-40:])
    counts = next(([*map(int, line.split()[1:])] for line in daemon.log if line.startswith(f'{counted} ')), None)
    return fault, counts


def run(arguments, start):
    if arguments.disk or arguments.journal:
        def one(n, more=arguments.more):
            return attempt_journal(start, n, more, arguments.keys, arguments.disk)
    else:
        def one(n, more=arguments.more):
            return attempt(start, n, more, arguments.keys)
    fault, counts = one(0)
    if fault:
        print('with nothing that fails:', fault)
        return 1
    last, each = arguments.last or counts[0], []
    if arguments.start:
        (part, parts), n = arguments.start, counts[1]
        assert n > 0, 'the daemon starts without a call'
        each = [*range(1 + part * n // parts, 1 + (part + 1) * n // parts)]
        arguments.first += n
    what = f'calls on files ({arguments.disk})' if arguments.disk else 'allocations'
    print(f'{counts[0]} {what} in a life; {each}, and {arguments.first} to {last} by {arguments.step} fail, {arguments.more} more each')
    bad, tried = 0, [*each, *range(arguments.first, last + 1, arguments.step)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for n, (fault, _) in zip(tried, pool.map(one, tried)):
            if fault:
                bad += 1
                print(f'{n}: {fault}', flush=True)
    print(f'{len(tried)} lives, {bad} went wrong')
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--first', type=int, default=1)
    parser.add_argument('--last', type=int)
    parser.add_argument('--step', type=int, default=1)
    parser.add_argument('--start', type=int, nargs=2, metavar=('I', 'N'), help='with --disk: part I of N, from 0 on, of the calls of the start, too, one by one')
    parser.add_argument('--more', type=int, default=0, help='so many allocations after it fail too')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--disk', metavar='ERRNO')
    parser.add_argument('--journal', action='store_true', help='memory, but with durability = journal')
    parser.add_argument('--tls', action='store_true')
    parser.add_argument('--openssl', action='store_true', help='--tls, and its allocations count too')
    parser.add_argument('--keys', default=KEYS)
    arguments = parser.parse_args()
    if arguments.tls or arguments.openssl:
        if arguments.openssl:
            os.environ['HANKELD_STARVE_OPENSSL'] = 'yes'
        with tempfile.TemporaryDirectory(prefix='hankeld-starve-') as folder:
            Secured.prepare(folder)
            return run(arguments, functools.partial(Secured, folder))
    return run(arguments, harness.Daemon)


if __name__ == '__main__':
    sys.exit(main())
