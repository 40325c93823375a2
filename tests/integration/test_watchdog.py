"""A device that hangs, and the notifications to systemd meanwhile; see test_device_lost.py."""
import os
import signal
import socket
import tempfile
import time

import harness
from harness import until
from test_device_lost import FAULT, Faulty


class Watchdog(Faulty):
    """Notifications to systemd: WATCHDOG=1 while the loop runs and batches come back, and only then."""

    def watched(self, fault, **how):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        path = os.path.join(self.directory.name, 'notify')
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.told.close)
        self.told.bind(path)
        self.told.settimeout(harness.WAIT)
        d = self.faulty(fault, environment={'NOTIFY_SOCKET': path, 'WATCHDOG_USEC': '1500000'}, **how)
        self.told.settimeout(harness.WAIT / 2)
        try:
            self.expect('READY=1')
        except TimeoutError:
            self.skipTest('built without systemd')
        return d

    def expect(self, word):
        while self.told.recv(4096).decode() != word:
            pass

    def silent_for(self, seconds):
        """Asserts that no WATCHDOG=1 comes for that long, except for one on its way."""
        end = time.monotonic() + harness.WAIT
        self.told.settimeout(seconds)
        while True:
            self.assertLess(time.monotonic(), end, 'the watchdog is fed on and on')
            try:
                self.told.recv(4096)
            except TimeoutError:
                return

    def test_fed_through_a_failover(self):
        d = self.watched('hang')
        with d.client() as c:
            self.tick(c, c.register('a'), 0, FAULT)
            until(lambda: c.status()['backend'] == 'cpu', 'the CPU')
        self.told.settimeout(harness.WAIT)
        for _ in range(3):
            self.expect('WATCHDOG=1')

    def test_not_fed_while_a_batch_hangs(self):
        """Without a shorter device_timeout, systemd restarts the daemon."""
        d = self.watched('hang', timeout='off', keys='drain = 2s\n')
        with d.client() as c:
            self.tick(c, c.register('a'), 0, FAULT)
            self.silent_for(2)
            self.log(d, r'error: the cuda backend has not finished a batch for [12]\.\d s')
            self.assertEqual(c.status()['points']['pending'], 1)

    def test_ends_while_the_thread_of_a_device_hangs(self):
        d = self.faulty('block', keys='drain = 1s\n')
        with d.client() as c:
            self.tick(c, c.register('a'), 0, FAULT)
            c.ping()
            began = time.monotonic()
            self.assertEqual(d.stop(), 0)
            self.assertLess(time.monotonic() - began, harness.WAIT / 2)
        self.log(d, r'1 given up')

    def test_not_fed_while_the_loop_hangs(self):
        d = self.watched('block', ends=-signal.SIGKILL)
        with d.client() as c:
            self.tick(c, c.register('a'), 0, FAULT)
            self.silent_for(2)
        d.process.kill()


if __name__ == '__main__':
    harness.main(needs_gpu=False)
