"""Peers that are slow, silent, gone, or too many: none occupies the resources of others, and each gets an error or is detected. The numbers are
rows of the fault matrix."""
import contextlib
import ctypes
import os
import resource
import shutil
import socket
import struct
import subprocess
import time
import unittest

import harness
from harness import HELLO, SCORED, SECOND, START, UNSCORED, frame, points, text, until

CLONE_NEWNET = 0x40000000
TIMEOUT = 11


def cpu_seconds(daemon):
    with open(f'/proc/{daemon.process.pid}/stat') as f:
        return sum(map(int, f.read().rpartition(')')[2].split()[11:13])) / os.sysconf('SC_CLK_TCK')


def descriptors(daemon):
    return sorted(map(int, os.listdir(f'/proc/{daemon.process.pid}/fd')))


def closed(s, wait=harness.WAIT):
    """Whether the peer has closed the connection; reads what it sends before."""
    s.settimeout(wait)
    with contextlib.suppress(ConnectionResetError):
        while True:
            try:
                if not s.recv(65536):
                    return True
            except TimeoutError:
                return False
    return True


@contextlib.contextmanager
def network_of_our_own():
    """Sockets and processes that this thread makes in the `with` are in a new network namespace. Skips the test if that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    nft, ip = shutil.which('nft'), shutil.which('ip')
    if not nft or not ip:
        raise unittest.SkipTest('needs nft and ip')
    before = os.open('/proc/self/ns/net', os.O_RDONLY | os.O_CLOEXEC)
    if libc.unshare(CLONE_NEWNET) != 0:
        os.close(before)
        raise unittest.SkipTest(f'no network namespace of our own: {os.strerror(ctypes.get_errno())}')
    try:
        subprocess.run([ip, 'link', 'set', 'lo', 'up'], check=True)
        if subprocess.run([nft, 'add table inet cut; add chain inet cut in { type filter hook input priority 0; }'],
                          capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest('nft may not set a filter')
        yield lambda port: subprocess.run(
            [nft, f'add rule inet cut in tcp sport {port} drop; add rule inet cut in tcp dport {port} drop'], check=True)
    finally:
        assert libc.setns(before, CLONE_NEWNET) == 0
        os.close(before)


class Peers(harness.Case):
    def open_connections(self, client, n, wait=harness.WAIT):
        """Waits until that many connections are open."""
        until(lambda: client.status()['connections']['open'] == n, f'{n} open connections', wait)

    def serves(self, d, sensor):
        """A new client feeds and gets its score."""
        with d.client() as c:
            c.subscribe(SCORED | UNSCORED, sensor)
            c.send(points(c.register(sensor), [START], [1.0]))
            c.wait_results(1)

    def test_fault_14_who_says_no_hello_is_told_and_closed(self):
        d = self.daemon(keys='threads = 1\nhandshake = 1s\n')
        hello = frame(HELLO, text('slow'))
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(d.connect('binary tcp')) for _ in range(100)]
            slow = [stack.enter_context(d.connect('binary tcp')) for _ in range(20)]
            honest = stack.enter_context(d.client())
            begin = time.monotonic()
            for byte in hello[:-1]:
                with contextlib.suppress(OSError):
                    for s in slow:
                        s.send(bytes([byte]))
                if time.monotonic() - begin > 3:
                    break
                time.sleep(0.3)
            for s in silent[:3]:
                data = s.recv(4096)
                self.assertEqual((data[3], struct.unpack_from('<H', data, 16)[0]), (harness.ERROR, TIMEOUT))
            for s in silent + slow:
                self.assertTrue(closed(s))
            self.open_connections(honest, 1)
            self.assertEqual(honest.status()['connections']['timed_out'], 120)
        self.serves(d, 's')

    def test_fault_14_idle_feeders_are_closed_and_subscribers_are_not(self):
        d = self.daemon(keys='threads = 1\nidle = 1s\n')
        with d.connect('line tcp') as line, d.client() as silent, d.client() as watcher, d.connect('line tcp') as busy:
            watcher.subscribe(SCORED | UNSCORED)
            end = time.monotonic() + harness.WAIT
            while not closed(line, 0.2):
                busy.sendall(b'busy value=1\n')
                self.assertLess(time.monotonic(), end, 'the idle connection is still there')
            self.assertTrue(closed(silent.socket))
            busy.sendall(b'busy value=2\n')
            before = len(watcher.results)
            watcher.wait_results(before + 1)

    def test_fault_15_no_more_connections_than_descriptors(self):
        d = self.daemon(keys='threads = 1\nloops = 1\n', limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        most = 64 - 32 - 8
        self.assertTrue(any('beyond the limit of open files; 24 are taken' in line for line in d.log), d.log)
        with d.client() as first, contextlib.ExitStack() as stack:
            many = [stack.enter_context(d.connect('binary tcp')) for _ in range(200)]
            refused = until(lambda: (lambda n: n >= 200 - most and n)(first.status()['connections']['refused']), 'refusals')
            self.assertEqual(refused, 201 - most)
            before = cpu_seconds(d)
            time.sleep(1)
            self.assertLess(cpu_seconds(d) - before, 0.5, 'the daemon spins')
            told = 0
            for s in many[most:]:
                with contextlib.suppress(ConnectionResetError):
                    told += s.recv(4096)[3:4] == bytes([harness.ERROR])
                self.assertTrue(closed(s), 'neither taken nor turned away')
            self.assertGreater(told, 0)  # some got an error: a limited number may linger at one time, and others are closed without a message
            first.ping()
            stack.close()
            self.open_connections(first, 1)
        self.serves(d, 's')

    def test_fault_15_a_reserve_turns_peers_away(self):
        d = self.daemon(keys='threads = 1\nloops = 1\n')
        hard = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)[1]
        with d.client() as first:
            first.ping()
            there = descriptors(d)
            free = next(i for i in range(len(there) + 1) if i not in there)
            resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (free, hard))  # not one left
            for _ in range(5):
                with d.connect('line tcp') as s:
                    self.assertTrue(closed(s), 'neither taken nor turned away')
            first.ping()
            self.assertEqual(first.status()['connections']['refused'], 5)
            until(lambda: any('could not be accepted: no descriptor is left' in line for line in d.log), 'a line in the log')
            resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
            self.serves(d, 's')

    def test_fault_15_accepting_pauses_when_even_the_reserve_is_of_no_use(self):
        d = self.daemon(keys='threads = 1\nloops = 1\n')
        hard = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)[1]
        with d.client() as first:
            resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (3, hard))
            with d.connect('binary tcp') as waiting:
                until(lambda: any('no connections are accepted for a second' in line for line in d.log), 'a line in the log')
                before = cpu_seconds(d)
                first.ping()
                time.sleep(1.5)
                first.ping()
                self.assertLess(cpu_seconds(d) - before, 0.7, 'the daemon spins')
                # Once a second; a peer that keeps trying may cause its whole allowance of lines at once.
                self.assertLess(sum('no connections are accepted for a second' in line for line in d.log), 5, 'it does not pause')
                resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
                waiting.sendall(frame(HELLO, text('patient')))
                self.assertEqual(waiting.recv(4096)[3], harness.WELCOME)  # it was left in the queue, and has its turn now

    def test_fault_19_half_open_peers_are_found_out(self):
        with network_of_our_own() as cut:
            d = self.daemon(keys='threads = 1\nkeepalive = 1s\nstuck = 2s\nidle = off\n')
            with d.client() as c, d.client() as silent, d.client() as watcher, d.connect('line tcp') as line:
                watcher.subscribe(SCORED | UNSCORED)
                handle = c.register('s')[0]
                self.open_connections(c, 4)
                for s in (silent.socket, watcher.socket, line):
                    cut(s.getsockname()[1])
                tick, end = 0, time.monotonic() + harness.WAIT
                # one point now and then: results wait for the subscriber in the kernel, not in the daemon
                while c.status()['connections']['open'] > 1:
                    self.assertLess(time.monotonic(), end, c.status())
                    c.send(points([handle], [START + tick * SECOND], [1.0]))
                    tick += 1
                    time.sleep(0.1)
                until(lambda: c.status()['subscribers']['count'] == 0, 'the count of subscribers, a second old')
            # no connection is left for a request: the daemon is ended by a signal
            self.assertEqual(d.stop(), 0)

    def test_fault_19_resets_in_mid_write(self):
        d = self.daemon(keys='threads = 1\nqueue = 8MiB\n')
        with d.client() as c, d.client() as watcher:
            watcher.subscribe(SCORED | UNSCORED)
            handles, tick = c.register(*(f's{i}' for i in range(200))), 0
            c.ping()
            for r in [d.client() for _ in range(8)]:
                r.close()  # each loop has had one: libuv opens a descriptor of its own with the first
            self.open_connections(c, 2)
            before = len(descriptors(d))
            for round_ in range(20):
                readers = [d.client() for _ in range(5)]
                for r in readers:
                    r.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    r.subscribe(SCORED | UNSCORED)
                for _ in range(30):
                    c.send(points(handles, [START + tick * SECOND] * 200, [1.0] * 200))
                    tick += 1
                if round_ % 2:
                    watcher.wait_results(200 * tick)  # so that results that the readers leave unread have been written, or wait
                for r in readers:
                    r.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                    r.close()  # a reset
            watcher.wait_results(200 * tick)
            self.open_connections(c, 2)
            until(lambda: len(descriptors(d)) == before, 'the descriptors to come back')
            alone = {'count': 1, 'queued_bytes': 0}  # where loops are asked once a second
            status = until(lambda: (lambda s: all(s['subscribers'][k] == v for k, v in alone.items()) and s)(c.status()),
                           'one subscriber and empty queues')
            self.assertEqual(self.balanced(status)['in'], 200 * tick)
            self.assertEqual([r[1] for r in watcher.results if r[0] == 's7'], [START + i * SECOND for i in range(tick)])


if __name__ == '__main__':
    harness.main(needs_gpu=False)
