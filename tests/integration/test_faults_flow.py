"""Floods, overload and slow readers: points that do not fit are refused or counted exactly, and neighbours lose nothing. The numbers are
rows of the fault matrix."""
import json
import math
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import harness
from harness import BYE, FAREWELL, PING, PONG, SCORED, SECOND, START, STATUS, UNSCORED, VALUES, frame, points, until

SMALL = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'


class Flow(harness.Case):
    listens = harness.LISTENERS

    def feed(self, client, handles, first, ticks):
        """Ticks of all the handles, one point each."""
        for i in range(first, first + ticks):
            client.send(points(handles, [START + i * SECOND] * len(handles), [math.sin(i * 0.7 + h) for h in range(len(handles))]))

    def test_fault_12_flood_of_new_sensors(self):
        d = self.daemon(keys='threads = 1\nmax_sensors = 200\nevict = ' + ('8s\n' if harness.SANITIZED else '2s\n'))  # longer than the flood takes
        watcher = d.client()
        self.addCleanup(watcher.close)
        watcher.subscribe(SCORED | UNSCORED)
        with d.client() as old, d.client() as flood:
            known = old.register(*(f'old {i}' for i in range(50)))
            self.assertNotIn(None, known)
            self.feed(old, known, 0, 20)
            got = flood.register(*(f'new {i}' for i in range(2000)))
            self.assertEqual(sum(h is not None for h in got), 150)
            self.assertEqual(got[150:], [None] * 1850)  # the first ones got the room
            with d.connect('line tcp') as s:
                for i in range(2000):
                    s.sendall(f'more value=1 {START}\nmore{i} value=1 {START}\n'.encode())
                self.feed(old, known, 20, 20)
                old.ping()
            self.assertEqual(old.register('old 3', 'late'), [known[3], None])
            watcher.wait_results(50 * 40)
            self.assertEqual([r[1] for r in watcher.results if r[0] == 'old 7'], [START + i * SECOND for i in range(40)])
            p = until(lambda: (lambda s: s['points']['in'] == 2000 + 4000 and s['points']['pending'] == 0 and s)(d.status()), 'all lines')
            self.assertEqual(self.balanced(p)['dropped'], 4000)
            # Silence makes room: sensors that were fed stay, the others are forgotten.
            end, tick = time.monotonic() + harness.WAIT, 40
            while None in (fresh := flood.register(*(f'fresh {i}' for i in range(100)))):
                self.assertLess(time.monotonic(), end, 'no sensor was evicted')
                self.feed(old, known, tick, 1)
                tick += 1
                time.sleep(0.3)
            self.assertEqual(old.register(*(f'old {i}' for i in range(50))), known)
            self.assertEqual(len(set(fresh) | set(known)), 150)
            # A handle of an evicted sensor is reported, and reaches no other sensor.
            before = self.balanced(d.status())['dropped']
            flood.send(points([got[0]], [START], [1.0]))
            flood.ping()
            self.assertEqual(flood.errors[-1][0], 8)
            self.assertEqual(self.balanced(d.status())['dropped'], before + 1)

    def test_fault_16_udp_overload_is_counted_exactly(self):
        d = self.daemon()
        with d.client() as c, d.connect('binary udp') as udp:
            handles = c.register(*(f's{i}' for i in range(60)))
            d.process.send_signal(signal.SIGSTOP)  # nobody drains the socket
            c.send(frame(STATUS))  # so that the connection is read first, BYE and all, and the datagrams after it
            sent = datagrams = 0
            for i in range(20000):
                datagrams += 1
                udp.send(points(handles, [START + i * SECOND] * 60, [0.5] * 60, c.feed, datagrams, sent))
                sent += 60
            c.send(frame(BYE, struct.pack('<QQ', datagrams, sent)))
            d.process.send_signal(signal.SIGCONT)
            while c.receive()[0] != FAREWELL:
                pass
        status = until(lambda: (lambda s: s['points']['pending'] == 0 and s)(d.status()), 'the end of the work')
        taken, udp = self.balanced(status)['in'], status['udp']
        self.assertEqual(taken + udp['lost_points'], sent, status)
        self.assertEqual(udp['lost'] * 60, udp['lost_points'])
        self.assertGreater(udp['lost'], 0, 'the socket held everything: no overload')
        self.assertGreater(taken, 0, status)

    def test_a_pong_comes_after_all_datagrams_that_were_there(self):
        d, n = self.daemon(), 3000
        with d.client() as c, d.connect('binary udp') as udp:
            handle = c.register('s')[0]
            for first in (0, n):  # the daemon knows nothing of the feed the first time
                d.process.send_signal(signal.SIGSTOP)
                for i in range(first, first + n):
                    udp.send(points([handle], [START + i * SECOND], [0.5], c.feed, i + 1, i))
                c.send(frame(PING, struct.pack('<Q', 77)))
                d.process.send_signal(signal.SIGCONT)
                while c.receive()[0] != PONG:
                    pass
                self.assertEqual(c.status()['udp']['datagrams'], first + n)

    def test_the_end_takes_the_datagrams_that_were_there(self):
        d, n = self.daemon(), 3000
        with d.client() as c, d.connect('binary udp') as udp:
            handle = c.register('s')[0]
            d.process.send_signal(signal.SIGSTOP)
            for i in range(n):
                udp.send(points([handle], [START + i * SECOND], [0.5], c.feed, i + 1, i))
            d.process.send_signal(signal.SIGTERM)
            d.process.send_signal(signal.SIGCONT)
            self.assertEqual(d.process.wait(harness.WAIT), 0)
        until(lambda: d.log and 'ended' in d.log[-1], 'the last words')
        self.assertRegex(d.log[-1], rf'ended: {n} points in, .* 0 given up')

    def test_fault_16_reordered_repeated_and_lost_datagrams(self):
        d = self.daemon()
        watcher = d.client()
        self.addCleanup(watcher.close)
        watcher.subscribe(SCORED | UNSCORED)
        rng = random.Random(16)
        with d.client() as c, d.connect('binary udp') as udp:
            handle = c.register('s')[0]
            data = [points([handle] * 3, [START + (3 * i + k) * SECOND for k in range(3)], [1.0] * 3, c.feed, i + 1, 3 * i) for i in range(400)]
            order, lost = list(range(400)), set(rng.sample(range(400), 37))
            order = sorted((i for i in order if i not in lost), key=lambda i: i + rng.uniform(0, 4))
            again = rng.sample(order, 25)
            for i in order:
                udp.send(data[i])
            for i in again:
                udp.send(data[i])
            watcher.wait_results(3 * len(order))
            c.bye(400, 1200)
        status = d.status()
        u = status['udp']
        self.assertEqual((u['lost'], u['lost_points'], u['repeated']), (37, 111, 25), u)
        self.assertEqual(u['reordered'], sum(i < max(order[:k], default=-1) for k, i in enumerate(order)), u)
        self.assertEqual(self.balanced(status)['in'], 3 * len(order))

    def test_fault_17_udp_never_answers(self):
        d = self.daemon()
        rng = random.Random(17)
        with d.client() as c, d.connect('binary udp') as binary, d.connect('line udp') as line:
            h = c.register('s')[0]
            good = points([h], [START], [1.0], c.feed, 1, 0)
            stranger = points([h], [START], [1.0], c.feed + 1, 1, 0)
            for data in (good, stranger, good, frame(6, bytes(8)), frame(7), frame(1, b'\1\0x'), good[:-1], b'', b'HK', rng.randbytes(1400),
                         points([h ^ 0xFFFF], [START], [1.0], c.feed, 2, 1)):
                binary.send(data)
            for data in (b'm value=1\n', b'garbage', rng.randbytes(1400), b''):
                line.send(data)
            until(lambda: d.status()['udp']['datagrams'] >= 15, 'all datagrams')
            for s in (binary, line):
                s.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    s.recv(65536)  # neither a datagram nor a refusal by ICMP
            status = d.status()
        self.assertEqual(self.balanced(status)['in'], 3)  # good, the bad handle, m
        self.assertEqual(status['udp']['strangers'], 1)

    def test_fault_18_stuck_subscriber(self):
        d = self.daemon(keys='threads = 2\nqueue = 1MiB\nstuck = off\n')
        reader = subprocess.Popen([sys.executable, '-c', f"""
import socket, sys
s = socket.create_connection(('127.0.0.1', {d.port['text tcp']}))
s.sendall(b'results *\\n')
print('up', flush=True)
for line in s.makefile('rb'):
    if b'"gap"' in line or b'"sensor":"last"' in line:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()
"""], stdout=subprocess.PIPE, text=True)
        self.addCleanup(reader.stdout.close)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.kill)
        self.assertEqual(reader.stdout.readline(), 'up\n')
        with d.client() as c, d.client() as watcher:
            handles = c.register(*(f'sensor {i}' for i in range(100)))
            watcher.subscribe(SCORED | UNSCORED)
            self.feed(c, handles, 0, 50)
            watcher.wait_results(5000)
            before = d.rss()
            reader.send_signal(signal.SIGSTOP)
            n = 1500 if harness.SANITIZED else 3000
            thread = threading.Thread(target=self.feed, args=(c, handles, 50, n))
            thread.start()
            watcher.wait_results(5000 + 100 * n)
            thread.join()
            self.assert_grew_less(d, before, 24 << 20)
            self.assertEqual([r[1] for r in watcher.results if r[0] == 'sensor 5'], [START + i * SECOND for i in range(50 + n)])
            self.assertEqual(watcher.gaps, [])
            reader.send_signal(signal.SIGCONT)
            gap = json.loads(reader.stdout.readline())['gap']
            self.assertGreater(gap['results'], 0)
            last = c.register('last')
            self.feed(c, last, 0, 1)
            while 'gap' in (row := json.loads(reader.stdout.readline())):
                pass
            self.assertEqual(row['sensor'], 'last')
            until(lambda: self.balanced(d.status())['pending'] == 0, 'the last point to be counted')  # just behind its result

    def test_fault_18_stuck_subscriber_is_cut_off(self):
        d = self.daemon(keys='threads = 1\nqueue = 64KiB\nstuck = 1s\n')
        with d.client() as c, d.client() as stuck:
            stuck.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stuck.subscribe(SCORED | UNSCORED | VALUES)
            handles = c.register(*(f'sensor {i}' for i in range(100)))
            end, tick = time.monotonic() + harness.WAIT, 0
            while d.status()['connections']['cut_off'] == 0:
                self.assertLess(time.monotonic(), end, 'never cut off')
                self.feed(c, handles, tick, 200)
                c.ping()
                tick += 200

    def test_balance_holds_at_every_poll(self):
        d = self.daemon(harness.section('ika', 's*', 'window=16,interval=1s') + SMALL)
        stop = threading.Event()

        def load(seed):
            rng = random.Random(seed)
            with d.client() as c, d.connect('line tcp') as line, d.connect('line udp') as udp:
                handles = c.register(*(f's{seed} {i}' for i in range(50)))
                i = 0
                while not stop.is_set():
                    n = rng.randint(1, 300)
                    bad = [rng.choice(handles) if rng.random() > 0.01 else 0xDEAD for _ in range(n)]
                    i += 1
                    c.send(points(bad, [START + i * SECOND + k for k in range(n)], [rng.choice((1.0, math.nan, rng.random())) for _ in range(n)]))
                    text = ''.join(f'l{seed} value={rng.random()} {START + i * SECOND + k}\nbroken\n' for k in range(20)).encode()
                    line.sendall(text)
                    udp.send(text)
                    time.sleep(0.02 if harness.TSAN else 0)  # points that were sent are scored in the end, too
                c.bye()

        threads = [threading.Thread(target=load, args=(seed,)) for seed in range(3)]
        for t in threads:
            t.start()
        try:
            with d.client() as c:
                end, last, polls = time.monotonic() + (1.5 if harness.SANITIZED else 3), -1, 0
                while time.monotonic() < end:
                    p = self.balanced(c.status())
                    self.assertGreaterEqual(p['in'], last)
                    last = p['in']
                    polls += 1
        finally:
            stop.set()
            for t in threads:
                t.join()
        self.assertGreater(polls, 3)
        p = until(lambda: (lambda s: s['points']['pending'] == 0 and s)(d.status()), 'the end of the work')
        p = self.balanced(p)
        for key in ('scored', 'unscored', 'late', 'rejected', 'dropped'):
            self.assertGreater(p[key], 0, key)

    def test_sigterm_drains(self):
        d = self.daemon('[detector all]\nmatch = *\nwindow = 96\ninterval = 1s\n', keys='threads = 1\n')
        with d.client() as watcher, d.client() as c:
            watcher.subscribe(SCORED | UNSCORED)
            handles = c.register(*(f's{i}' for i in range(100)))
            ticks = 200 if harness.TSAN else 600
            self.feed(c, handles, 0, ticks)
            c.ping()  # the daemon has them all; most are not scored yet
            d.process.send_signal(signal.SIGTERM)
            watcher.wait_results(100 * ticks)
            with self.assertRaises(harness.Closed):
                watcher.wait_results(100 * ticks + 1)
        self.assertEqual(d.process.wait(harness.WAIT), 0)
        self.assertEqual([r[1] for r in watcher.results if r[0] == 's42'], [START + i * SECOND for i in range(ticks)])

    def test_sigterm_scores_what_was_sent_by_those_who_are_gone(self):
        d = self.daemon('[detector all]\nmatch = *\nwindow = 96\ninterval = 1s\n', keys='threads = 1\n')
        with d.client() as c:
            self.feed(c, c.register(*(f's{i}' for i in range(100))), 0, 200 if harness.TSAN else 500 if harness.SANITIZED else 2000)
            c.ping()
        with d.connect('line tcp') as s:
            s.sendall(b''.join(b'm value=%d %d\n' % (i, START + i * SECOND) for i in range(1000)))
        self.assertEqual(d.stop(), 0)
        self.assertRegex(d.log[-1], r'ended: \d+ points in, .* 0 given up')

    def test_sigterm_does_not_wait_for_ever(self):
        d = self.daemon(keys='threads = 1\ndrain = 1s\nqueue = 64MiB\nstuck = off\n')
        with d.client() as stuck, d.client() as c, d.connect('text tcp'), d.client() as reader:
            stuck.subscribe(SCORED | UNSCORED)
            reader.subscribe(SCORED | UNSCORED)
            self.feed(c, c.register(*(f's{i}' for i in range(100))), 0, 1000)
            reader.wait_results(100000)
            start = time.monotonic()
            self.assertEqual(d.stop(), 0)
            self.assertLess(time.monotonic() - start, harness.WAIT / 2)
        self.assertTrue(any(re.search(r'\d+ bytes were not read in time', line) for line in d.log), d.log)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
