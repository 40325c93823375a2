#!/usr/bin/env python3
"""Soak: a daemon under churn for as long as asked. Connections, sensors, subscribers and datagrams come and go, peers break off in the
middle of frames, the configuration is reloaded, snapshots are taken; now and then everything pauses until all sensors are forgotten, and then

  - the counters balance, and nothing is pending,
  - as many descriptors are open as at the first pause,
  - as many blocks of memory are held as before, over the second half of the time: the slope (least squares over the pauses) times the
    time is under BLOCKS, and of the resident memory it is under --grow.

Some memory is kept for good, up to a bound that the configuration sets, and is touched at its first use: batches in flight and their
encoded results, the event log, the journal's buffers. So the run begins with a storm, which is more than all later load, and fills
them; otherwise the maximum so far would grow for hours, a bit less each time.

    tests/faults/soak.py [--seconds 60] [--pause 10] [--storm 10] [--durability none|snapshot|journal] [--grow MIB] [--out FILE.jsonl]

Fault matrix row 25. The daemon is $HANKELD, build/hankeld if not given; one built with a sanitizer shows leaks at its end, and its memory
is not checked. Blocks are counted by $COUNT_MEMORY_LIBRARY, or the one in build/."""
import argparse
import contextlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import harness  # noqa: E402
from harness import ALERTS, NOTICES, POINTS, SCORED, SECOND, START, UNSCORED, VALUES, frame, points  # noqa: E402

BLOCKS = 100  # buffers of encoded results are kept for reuse, up to 16 MiB and a queue a loop: bursts enlarge them in steps
LIBRARY = os.environ.get('COUNT_MEMORY_LIBRARY', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'libcount-memory.so'))
DETECTORS = """
[detector storm]
match = storm*
window = 8
interval = 1s
alert = 0.3
cooldown = 0
[detector steady]
match = steady*
window = 16
interval = 1s
alert = {alert}
[detector churn]
match = *
window = 8
interval = 1s
alert = off
"""
KEYS = 'threads = 1\nloops = 2\nmax_sensors = 3000\nevict = 3s\nmax_connections = 100\nqueue = 256KiB\nstuck = 2s\nlog_level = error\n'


class Soak:
    def __init__(self, arguments):
        self.state = tempfile.TemporaryDirectory(prefix='hankeld-soak-')
        self.keys = KEYS
        if arguments.durability != 'none':
            self.keys += f'durability = {arguments.durability}\nstate = {self.state.name}\nsnapshot = 2s\nevent_log = 1MiB\n'
        self.memory, environment = os.path.join(self.state.name, 'memory'), {}
        if os.path.exists(LIBRARY) and not harness.SANITIZED:
            environment = {'LD_PRELOAD': LIBRARY, 'COUNT_MEMORY': self.memory}
        self.daemon = harness.Daemon(DETECTORS.format(alert=0.6), keys=self.keys, environment=environment)
        self.calm, self.over = threading.Event(), threading.Event()
        self.busy = 0  # the number of churners that have something open
        self.lock = threading.Lock()
        self.faults, self.done = [], {}
        self.tick = 0

    # --- churners: each function is one round, which leaves nothing behind

    def feeder(self, rng, number):
        """A connection that feeds permanent sensors, and ends with or without BYE."""
        with self.daemon.client() as c:
            handles = c.register(*(f'steady {number} {i}' for i in range(50)))
            for _ in range(rng.randrange(1, 30)):
                now = time.time_ns()
                c.send(points(handles, [now + i for i in range(50)], [rng.gauss(0, 1) for _ in handles]))
            if rng.random() < 0.7:
                c.bye()

    def names(self, rng, _):
        """New sensors without end; silent ones are evicted and make room."""
        with self.daemon.client() as c:
            names = ['churn ' + 'x' * rng.randrange(60) + str(rng.getrandbits(40)) for _ in range(rng.randrange(1, 200))]
            handles = [h for h in c.register(*names) if h is not None]
            if handles:
                c.send(points(handles, [START] * len(handles), [1.0] * len(handles)))
            c.ping()

    def lines(self, rng, _):
        with self.daemon.connect('line tcp') as s:
            for _ in range(rng.randrange(1, 20)):
                s.sendall(b''.join(b'line,host=h%d load=%g\n' % (rng.randrange(500), rng.random()) for _ in range(20)))
            s.sendall(b'broken line without end')

    def subscriber(self, rng, _):
        """A subscriber that reads for a while, or not at all, and disconnects."""
        with self.daemon.client() as c:
            c.subscribe(SCORED | UNSCORED | ALERTS | VALUES | NOTICES, rng.choice(['', 'steady 1*', 'line*', 'churn x*']), 0.0)
            end = time.monotonic() + rng.random() * 2
            while time.monotonic() < end and not self.calm.is_set():
                if rng.random() < 0.7:
                    c.drain(0.05)
                else:
                    time.sleep(0.2)
            c.results.clear()
            if rng.random() < 0.3:
                c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))

    def text(self, rng, _):
        with self.daemon.connect('text tcp') as s:
            s.sendall(rng.choice([b'results *\n', b'events *\n', b'status\n', b'nonsense\n']))
            s.settimeout(0.3)
            with contextlib.suppress(OSError):
                for _ in range(rng.randrange(20)):
                    s.recv(65536)

    def junk(self, rng, _):
        with self.daemon.connect(rng.choice(['binary tcp', 'line tcp', 'text tcp', 'binary udp', 'line udp'])) as s:
            with contextlib.suppress(OSError):
                s.send(rng.randbytes(rng.randrange(1, 1400)))

    def broken(self, rng, _):
        """A frame that breaks off in the middle."""
        with self.daemon.client() as c:
            data = frame(POINTS, rng.randbytes(500))
            c.send(data[:rng.randrange(1, len(data))])

    def datagrams(self, rng, number):
        with self.daemon.client() as c, self.daemon.connect('binary udp') as udp:
            handles, sent, n = c.register(*(f'udp {number} {i}' for i in range(20))), 0, rng.randrange(1, 60)
            for i in range(n):
                if rng.random() < 0.9:
                    udp.send(points(handles, [time.time_ns()] * 20, [rng.random()] * 20, c.feed, i + 1, sent))
                sent += 20
            c.bye(n, sent)

    def status(self, _rng, _):
        with self.daemon.client() as c:
            p = c.status()['points']
            if p['in'] != sum(v for k, v in p.items() if k != 'in'):
                self.faults.append(f'books under load: {p}')

    # --- the whole

    def storm(self, seconds):
        """As many points as the daemon takes, of sensors whose alerts come and go. Subscribers to all of them, mostly slow, get results that are
        encoded for each alone: their unread results are the memory that is kept later, see BLOCKS."""
        over = threading.Event()

        def feed(number):
            with self.daemon.client() as c:
                handles, at = c.register(*(f'storm {number} {i}' for i in range(250))), 0
                while not over.is_set():
                    n = 16
                    times = [START + (at + k) * SECOND for k in range(n) for _ in handles]
                    c.send(points(handles * n, times, [float((at + k) % 12 % (3 + (at + k) // 12 % 2 * 4)) for k in range(n) for _ in handles]))
                    at += n

        def trickle():
            """Many small batches."""
            with contextlib.suppress(OSError, harness.Closed), self.daemon.client() as c:
                handle, at = c.register('storm'), 0
                while not over.is_set():
                    c.send(points(handle, [START + at * SECOND], [float(at % 3)]))
                    at += 1
                    time.sleep(0.001)

        def read(what, rest=0.0):
            while not over.is_set():
                with contextlib.suppress(OSError, harness.Closed), self.daemon.connect('text tcp') as s:  # may be cut off as stuck
                    s.sendall(what)
                    while not over.is_set() and s.recv(1 << 18):
                        time.sleep(rest)

        threads = [threading.Thread(target=feed, args=(i,)) for i in range(3)]
        threads += [threading.Thread(target=read, args=(what,)) for what in (b'results *\n', b'events *\n')]
        slow = [threading.Thread(target=read, args=(b'results ?%s\n' % (b'*' * (i + 1)), 0.5)) for i in range(60)]
        slow += [threading.Thread(target=trickle)]
        for some in (threads, slow):  # at first at full speed: as many full batches at once as possible
            for t in some:
                t.start()
            time.sleep(seconds / 2)
        threads += slow
        over.set()
        for t in threads:
            t.join(60)

    def churn(self, number):
        kinds = [self.feeder, self.feeder, self.names, self.lines, self.subscriber, self.text, self.junk, self.broken, self.datagrams,
                 self.status]
        rng = random.Random(number)
        while not self.over.is_set():
            if self.calm.is_set():
                time.sleep(0.05)
                continue
            with self.lock:
                self.busy += 1
            kind = rng.choice(kinds)
            try:
                kind(rng, number)
                self.done[kind.__name__] = self.done.get(kind.__name__, 0) + 1
            except (harness.Closed, OSError) as fault:  # disconnected as stuck, or refused at the limit: both are allowed
                self.done[f'{kind.__name__}: {type(fault).__name__}'] = self.done.get(f'{kind.__name__}: {type(fault).__name__}', 0) + 1
            except Exception as fault:  # noqa: BLE001: reported at the end
                self.faults.append(f'{kind.__name__}: {type(fault).__name__}: {fault}')
            finally:
                with self.lock:
                    self.busy -= 1
            time.sleep(0.05)

    def reload(self):
        """Another threshold, and now and then an invalid file."""
        self.tick += 1
        path = os.path.join(self.daemon.directory.name, 'hankeld.conf')
        with open(path, encoding='utf-8') as f:
            whole = f.read()
        at = whole.index('\n[detector steady]')
        new = DETECTORS.format(alert='nonsense' if self.tick % 5 == 4 else 0.5 + self.tick % 4 / 10)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(whole[:at] + new)
        self.daemon.process.send_signal(signal.SIGHUP)

    def pause(self):
        """With all load paused: the memory that the daemon holds now is kept for good."""
        self.calm.set()
        harness.until(lambda: self.busy == 0, 'the churners', 60)
        with self.daemon.client() as c:
            harness.until(lambda: (lambda s: s['points']['pending'] == 0 and s['connections']['open'] == 1 and s['sensors']['count'] == 0)
                          (c.status()), 'rest', 60)
            time.sleep(0.3)
            status = c.status()
            p = status['points']
            if p['in'] != sum(v for k, v in p.items() if k != 'in'):
                self.faults.append(f'books: {p}')
            row = {'rss': self.daemon.rss(), 'descriptors': len(os.listdir(f'/proc/{self.daemon.process.pid}/fd')), 'points': p['in'],
                   'sensors': status['sensors']['count'], 'accepted': status['connections']['accepted']}
            if os.path.exists(self.memory):
                with open(self.memory, 'rb') as f:
                    row['blocks'], row['bytes'] = struct.unpack('<qq', f.read())
            if 'events_bytes' in status['durability']:
                row['event_log'] = status['durability']['events_bytes']
        self.calm.clear()
        return row


def slope(rows, what='rss'):
    """The growth a second, by least squares."""
    n = len(rows)
    t, y = [r['second'] for r in rows], [r[what] for r in rows]
    mt, my = sum(t) / n, sum(y) / n
    return sum((a - mt) * (b - my) for a, b in zip(t, y)) / max(sum((a - mt)**2 for a in t), 1e-9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--pause', type=float, default=10, help='seconds between two pauses')
    parser.add_argument('--durability', default='none')
    parser.add_argument('--grow', type=float, default=3, help='MiB that memory may seem to grow in the second half')
    parser.add_argument('--storm', type=float, default=10, help='seconds')
    parser.add_argument('--churners', type=int, default=6)
    parser.add_argument('--out')
    arguments = parser.parse_args()
    soak, rows = Soak(arguments), []
    soak.storm(arguments.storm)
    begin = time.monotonic()
    threads = [threading.Thread(target=soak.churn, args=(i,), daemon=True) for i in range(arguments.churners)]
    for t in threads:
        t.start()
    commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=harness.ROOT, capture_output=True, text=True, check=False).stdout.strip()
    print(f'# {commit} {" ".join(sys.argv)}', flush=True)
    with open(arguments.out, 'w', encoding='utf-8') if arguments.out else contextlib.nullcontext(sys.stdout) as out:
        while time.monotonic() - begin < arguments.seconds:
            end = time.monotonic() + arguments.pause
            while time.monotonic() < end:
                soak.reload()
                time.sleep(min(1, arguments.pause / 3))
            rows.append({'second': round(time.monotonic() - begin, 1), **soak.pause()})
            print(json.dumps(rows[-1]), file=out, flush=True)
            if soak.faults or soak.daemon.process.poll() is not None:
                break
            del soak.daemon.log[:-200]
    soak.over.set()
    for t in threads:
        t.join(60)
    code = soak.daemon.stop()
    faults = soak.faults
    if code != 0:
        faults.append(f'the daemon ended with {code}: ' + '\n'.join(soak.daemon.log[-30:]))
    half = rows[len(rows) // 2:]
    # the first pause may come before every kind has been there once
    opened = [r['descriptors'] for r in rows[1:]]
    if opened and max(opened) != min(opened):
        faults.append(f'descriptors: {sorted(set(opened))}')
    grown = slope(half) * (half[-1]['second'] - half[0]['second']) / 2**20 if len(half) > 2 else 0
    if grown > arguments.grow and not harness.SANITIZED:
        faults.append(f'memory: {grown:.2f} MiB more over the second half')
    more = slope(half, 'blocks') * (half[-1]['second'] - half[0]['second']) if len(half) > 2 and 'blocks' in half[0] else 0
    if more > BLOCKS:
        faults.append(f'memory: {more:.0f} blocks more over the second half')
    last = rows[-1]
    print(f'{last["second"]:.0f} s, {last["points"]} points, {last["accepted"]} connections, {soak.tick} reloads; rounds: '
          + ', '.join(f'{k} {v}' for k, v in sorted(soak.done.items())))
    print(f'descriptors {sorted(set(opened))}, memory {rows[0]["rss"] / 2**20:.1f} MiB at first, {half[0]["rss"] / 2**20:.1f} at half time, '
          f'{last["rss"] / 2**20:.1f} at the end; slope of the second half {slope(half) * 3600 / 2**20 if len(half) > 2 else 0:+.2f} MiB an hour'
          + (f'; blocks {half[0]["blocks"]} at half time, {last["blocks"]} at the end' if 'blocks' in last else ''))
    for fault in faults:
        print('FAULT', fault)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
