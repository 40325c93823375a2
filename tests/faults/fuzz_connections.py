#!/usr/bin/env python3
"""Fuzzes whole connections: random sequences of good and bad frames, cut at random, on many connections of all protocols at once, which
end with BYE, by a reset, in the middle of a frame, or by an error. PROTOCOL.md defines the replies that each must get, so more than
crashes is found:

  - every good request is answered, in order, with its tag, by the right frame, until the first frame that is not good;
  - after a bad one the connection gets an ERROR with a code that fits, and is closed;
  - points in good frames on connections that ended with BYE are all counted, those on other connections at most as many times as they were sent;
  - the counters balance at every look; and nothing is left in the end: no connection, nothing pending.

    tests/faults/fuzz_connections.py [--seconds 60 | --sessions N] [--seed S] [--connections 8]

The daemon is $HANKELD, best one built with sanitizers. A failure prints its seed: --seed S --sessions 1 repeats it, as far as
threads allow."""
import argparse
import contextlib
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import harness  # noqa: E402
from harness import (BYE, DONE, ERROR, FAREWELL, GAP, HELLO, NAMES, PING, PONG, POINTS, REGISTER, REGISTERED, REPORT, SCORES, EVENTS,  # noqa: E402
                     STATUS, SUBSCRIBE, UNSUBSCRIBE, WELCOME, frame, text)

KEYS = 'threads = 1\nloops = 2\nmax_sensors = 400\nevict = 2s\nmax_frame = 128KiB\nbacklog = 32770\nmax_pending = 4096\nqueue = 64KiB\nstuck = 3s\nlog_level = error\nhandshake = 30s\n'
DETECTORS = '[detector a]\nmatch = a*\nwindow = 8\ninterval = 1s\nalert = 0.6\n[detector rest]\nmatch = ?*\nwindow = 8\ninterval = 1s\n'
UNASKED = {NAMES, SCORES, EVENTS, GAP}
CLOSES = {1, 2, 3, 4, 5, 6, 7}  # codes of ERROR with which an invalid frame may be answered


class Wrong(Exception):
    pass


class Peer:
    """A binary connection, and the replies that are due."""

    def __init__(self, daemon, rng):
        self.rng, self.socket = rng, daemon.connect('binary tcp')
        self.socket.setblocking(False)
        self.out, self.come = bytearray(), bytearray()
        self.owed, self.tag = [], 0  # (reply, tag): due replies to valid frames
        self.handles = []
        self.greeted = self.bad = self.leaving = self.over = self.farewell = False
        self.good = self.sent = 0  # points in good frames: all; those that the daemon must have taken
        self.subscribed = False

    def put(self, kind, payload, reply):
        self.tag += 1
        self.out += frame(kind, payload, self.tag)
        if reply:
            self.owed.append((reply, self.tag))

    # --- frames that it may send

    def hello(self):
        self.put(HELLO, text(self.rng.choice(['fuzz', '', 'x' * 64])), WELCOME)
        self.greeted = True

    def register(self):
        names = [self.rng.choice(['a', 'b', 'c']) + str(self.rng.randrange(300)) for _ in range(self.rng.randrange(1, 20))]
        if self.rng.random() < 0.2:
            names.append(self.rng.choice(['', 'x' * 513, 'tab\there', '*', 'ü' * 256]))
        self.put(REGISTER, struct.pack('<I', len(names)) + b''.join(map(text, names)), REGISTERED)

    def points(self):
        n = self.rng.choice([1, 1, 2, 7, 64, 65, 500])
        pool = self.handles or [0]
        handles = [self.rng.choice(pool) if self.rng.random() < 0.99 else self.rng.getrandbits(32) for _ in range(n)]
        times = [self.rng.choice([harness.START, 0]) + self.rng.randrange(1000) * harness.SECOND for _ in range(n)]
        values = [self.rng.choice([self.rng.random(), float('nan'), 1e300, 1.0]) for _ in range(n)]
        self.put(POINTS, struct.pack(f'<QQQIBBH{n}q{n}d{n}I', 0, 0, 0, n, 0, 0, 0, *times, *values, *handles), None)
        self.good += n

    def subscribe(self):
        self.put(SUBSCRIBE, struct.pack('<If', self.rng.randrange(1, 32), self.rng.choice([0.0, 0.5, 1.0])) +
                 text(self.rng.choice(['', '*', 'a*', 'b1', '[ab]?', 'c??'])), DONE)
        self.subscribed = True

    def unsubscribe(self):
        self.put(UNSUBSCRIBE, b'', DONE)

    def ping(self):
        self.put(PING, struct.pack('<Q', self.rng.getrandbits(64)), PONG)

    def status(self):
        self.put(STATUS, b'', REPORT)

    def bye(self):
        self.put(BYE, struct.pack('<QQ', 0, 0), FAREWELL)
        self.leaving = True

    def spoil(self):
        """A malformed frame of any kind that must close the connection."""
        good = frame(self.rng.choice([PING, REGISTER, POINTS]), struct.pack('<Q', 7) * self.rng.randrange(1, 9), 5)
        kind = self.rng.randrange(6)
        if kind == 0:
            bad = bytearray(good)
            at = self.rng.randrange(16, len(bad))
            bad[at] ^= 1 << self.rng.randrange(8)  # the checksum does not fit
        elif kind == 1:
            bad = struct.pack('<2sBBIII', b'HK', 1, self.rng.randrange(256), self.rng.choice([0x80000000, 0xFFFFFFFF, 0x7FFFFFFF]), 1, 0)
        elif kind == 2:
            bad = frame(PING, bytes(8), version=self.rng.choice([0, 2, 255]))
        elif kind == 3:
            bad = self.rng.choice([b'GET / HTTP/1.1\r\n\r\n', b'\x16\x03\x01\x02\x00\x01\x00\x01', bytes(20)])
        elif kind == 4:
            bad = frame(self.rng.choice([0, 0x42, 0x81, 0x92, 0xFE]), bytes(self.rng.randrange(40)))
        else:
            bad = frame(self.rng.choice([REGISTER, POINTS, SUBSCRIBE, PING, BYE]), self.rng.choice([b'', b'\xff' * 5, struct.pack('<I', 0xFFFFFFFF)]))
        self.out += bad
        self.out += self.rng.randbytes(self.rng.choice([0, 0, 50]))  # is not looked at
        self.bad = True

    def say(self):
        """Queues a random frame."""
        if self.bad or self.leaving:
            return
        if not self.greeted:
            if self.rng.random() < 0.97:
                self.hello()
            else:
                self.ping()  # out of order
                self.owed.pop()
                self.bad = True
            return
        self.rng.choices([self.register, self.points, self.subscribe, self.unsubscribe, self.ping, self.status, self.bye, self.spoil],
                         [4, 10, 2, 1, 4, 1, 1, 1])[0]()

    # --- the wire

    def send(self):
        """Sends a piece of the queued bytes, cut at random."""
        if not self.out or self.over:
            return
        n = self.rng.choice([1, 3, 15, 16, 17, 100, 4000, 70000])
        try:
            done = self.socket.send(self.out[:n])
            del self.out[:done]
        except BlockingIOError:
            pass
        except OSError:
            self.ended()

    def receive(self):
        if self.over:
            return
        try:
            data = self.socket.recv(65536)
            if not data:
                self.take()
                self.ended()
                return
            self.come += data
        except BlockingIOError:
            return
        except OSError:
            self.ended()
            return
        self.take()

    def take(self):
        while len(self.come) >= 16:
            length = struct.unpack_from('<I', self.come, 4)[0]
            if len(self.come) < 16 + length:
                return
            _, _, kind, _, tag, _ = struct.unpack_from('<2sBBIII', self.come)
            payload = bytes(self.come[16:16 + length])
            del self.come[:16 + length]
            self.reply(kind, tag, payload)

    def reply(self, kind, tag, payload):
        if kind in UNASKED:
            return
        if kind == ERROR:
            code = struct.unpack_from('<H', payload)[0]
            if code in CLOSES and not self.bad:
                raise Wrong(f'ERROR {code} though all was good: {payload[4:]}')
            if code in CLOSES and self.owed:
                raise Wrong(f'ERROR {code} before what was owed: {self.owed[:3]}')
            if self.owed and self.owed[0][1] == tag:
                self.owed.pop(0)  # a subscription that is refused; else it is about points with unknown handles
            return
        if not self.owed:
            raise Wrong(f'frame {kind:#x} with tag {tag} was not asked for')
        expected = self.owed.pop(0)
        if expected != (kind, tag):
            raise Wrong(f'frame {kind:#x} with tag {tag}, and not {expected[0]:#x} with {expected[1]}')
        if kind == REGISTERED:
            n = struct.unpack_from('<I', payload)[0]
            pairs = struct.iter_unpack('<II', payload[4:4 + 8 * n])
            self.handles += [h for h, reason in pairs if not reason]
        elif kind == FAREWELL:
            self.sent, self.farewell = self.good, True
        elif kind == PONG:
            pass

    def ended(self):
        """The daemon has closed the connection."""
        self.over = True
        self.socket.close()
        if self.farewell and self.owed:
            raise Wrong(f'farewell with {self.owed} owed')
        if not self.bad and not self.farewell and not self.subscribed:
            raise Wrong('closed though all was good')  # a subscriber may have been cut off as stuck

    def abandon(self):
        """Closes the connection without BYE."""
        if self.over:
            return
        how = self.rng.random()
        if how < 0.3:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        elif how < 0.5:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
        self.over = True
        self.socket.close()


def lines(rng):
    """Lines of the line protocol, good and bad, and the most points that they may bring."""
    out, most = b'', 0
    for _ in range(rng.randrange(1, 30)):
        if rng.random() < 0.7:
            out += b'line%d,t=%d value=%g,other=%d %d\n' % (rng.randrange(9), rng.randrange(3), rng.random(), rng.randrange(9), harness.START + rng.randrange(10**12))
            most += 2
        else:
            out += rng.choice([b'\n', b'bad\n', b'x value=\n', b'\xff\xfe\n', rng.randbytes(40) + b'\n', b'y' * 3000 + b'\n'])
            most += 20
    return out, most


def session(daemon, rng, n_peers, before):
    """One session; returns (points that must have been taken, points that may have been)."""
    peers = [Peer(daemon, rng) for _ in range(n_peers)]
    others, most = [], 0
    for _ in range(rng.randrange(4)):
        kind = rng.choice(['line tcp', 'line udp', 'binary udp', 'text tcp'])
        s = daemon.connect(kind)
        s.setblocking(False)
        others.append((kind, s))
    steps = rng.randrange(50, 600)
    for _ in range(steps):
        p = rng.choice(peers)
        what = rng.random()
        if what < 0.3:
            p.say()
        elif what < 0.7:
            p.send()
        elif what < 0.97:
            p.receive()
        elif what < 0.975:
            p.abandon()
        elif others:
            kind, s = rng.choice(others)
            data, points = lines(rng) if kind.startswith('line') else (rng.randbytes(rng.randrange(200)), 0)
            if kind == 'text tcp':
                data = rng.choice([b'results *\n', b'events a*\n', b'nonsense\n', b'scores 0.5\n', b'\n'])
            with contextlib.suppress(OSError):
                s.send(data[:1400])
                most += points
    # The end: connections that can send BYE, and get all replies that are due.
    end = time.monotonic() + harness.WAIT
    for p in peers:
        if not p.over and not p.bad and not p.leaving and rng.random() < 0.8:
            if not p.greeted:
                p.hello()
            p.bye()
    waiting = [p for p in peers if not p.over and (p.bad or p.leaving)]
    while waiting:
        for p in waiting:
            p.send()
            p.receive()
        waiting = [p for p in waiting if not p.over]
        if time.monotonic() > end:
            p = waiting[0]
            raise Wrong(f'not answered in time: bad {p.bad}, leaving {p.leaving}, owed {p.owed[:4]}, unsent {len(p.out)}')
        time.sleep(0.001)
    for p in peers:
        p.abandon()
    for _, s in others:
        s.close()
    least = sum(p.sent for p in peers)
    return least, sum(p.good for p in peers) + most


def books(daemon):
    with daemon.client() as c:
        status = c.status()
    p = status['points']
    if p['in'] != sum(v for k, v in p.items() if k != 'in'):
        raise Wrong(f'the books do not balance: {p}')
    return status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--sessions', type=int)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--connections', type=int, default=8)
    arguments = parser.parse_args()
    daemon = harness.Daemon(DETECTORS, keys=KEYS)
    begin, seed, done, said = time.monotonic(), arguments.seed, 0, 0
    try:
        while done < arguments.sessions if arguments.sessions else time.monotonic() - begin < arguments.seconds:
            before = books(daemon)['points']['in']
            least, most = session(daemon, random.Random(seed), arguments.connections, before)
            status = harness.until(lambda: (lambda s: s['points']['pending'] == 0 and s['connections']['open'] == 1 and s)(books(daemon)),
                                   'the end of a session')
            came = status['points']['in'] - before
            if not least <= came <= most:
                raise Wrong(f'{came} points came; {least} were acknowledged, {most} sent')
            said += came
            seed, done = seed + 1, done + 1
    except (Wrong, AssertionError, OSError, harness.Closed) as fault:
        print(f'seed {seed}: {type(fault).__name__}: {fault}')
        with contextlib.suppress(Exception):
            daemon.stop()
        print('\n'.join(daemon.log[-60:]))
        return 1
    code = daemon.stop()
    print(f'{done} sessions of {arguments.connections} connections, {said} points, the daemon ended with {code}')
    if code != 0:
        print('\n'.join(daemon.log[-60:]))
    daemon.clean()
    return 1 if code else 0


if __name__ == '__main__':
    sys.exit(main())
