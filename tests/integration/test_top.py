"""hankel top: standing alerts and the daemon's condition, in a terminal and without one."""
import contextlib
import fcntl
import math
import os
import random
import re
import select
import signal
import struct
import subprocess
import termios

import harness
from harness import START, WAIT, until

STEPS = '[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n'


class Screen:
    """hankel top in a terminal of that many lines and columns."""

    def __init__(self, address, lines=24, columns=80):
        self.main, self.end = harness.terminal()
        self.before = termios.tcgetattr(self.end)
        self.resize(lines, columns)
        self.process = subprocess.Popen([harness.HANKEL, 'top', '--from', address], stdin=self.end, stdout=self.end, stderr=self.end, start_new_session=True)
        self.all = b''

    def resize(self, lines, columns):
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))

    def take(self):
        while select.select([self.main], [], [], 0)[0]:
            self.all += os.read(self.main, 1 << 16)

    def shown(self):
        """The lines of the last complete frame."""
        self.take()
        frames = self.all.decode(errors='replace').split('\033[H')
        whole = [f for f in frames if f.endswith('\033[J')]
        return re.sub(r'\033\[[\d;?]*[A-Za-z]', '', whole[-1]).replace('\r', '').split('\n') if whole else []

    def until(self, pattern):
        return until(lambda: (lambda lines: lines if re.search(pattern, '\n'.join(lines)) else None)(self.shown()), f'{pattern} in {self.shown()}', WAIT)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.main)
        os.close(self.end)


class Top(harness.Case):
    def alert(self, d, names):
        with d.client() as c:
            handles = c.register(*names)
            for k in range(400):
                c.send(harness.points(handles, [START + k * 10**9] * len(names), [float(10 * ((k // 30) % 2) + (k * 7) % 5 * 0.125)] * len(names)))
                c.ping()
                until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
                if c.status()['alerts']['standing'] == len(names):
                    return
        self.fail('no alert')

    def plain(self, d):
        done = subprocess.run([harness.HANKEL, 'top', '--from', f"127.0.0.1:{d.port['binary tcp']}"], capture_output=True, text=True, timeout=WAIT)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertNotIn('\033', done.stdout)
        return done.stdout

    def test_without_a_terminal(self):
        d = self.daemon(STEPS)
        self.assertIn('No data yet', self.plain(d))
        self.alert(d, ['pump', 'höher/1'])
        text = self.plain(d)
        self.assertIn('2 to look at, 0 acknowledged', text)
        self.assertRegex(text, r'(?m)^notice +\d+ d  score +0\.25 -> 10 +pump$')
        self.assertRegex(text, r'(?m)^notice .* höher/1$')
        subprocess.run([harness.HANKEL, 'ack', '--from', f"127.0.0.1:{d.port['binary tcp']}", '--by', 'ann', 'pump'], check=True, capture_output=True)
        text = self.plain(d)
        self.assertIn('1 to look at, 1 acknowledged', text)
        self.assertRegex(text, r'pump  acknowledged by ann\n')
        self.assertLess(text.index('höher'), text.index('pump'))
        done = subprocess.run([harness.HANKEL, 'top', '--from', '127.0.0.1:1'], capture_output=True, text=True, timeout=WAIT)
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('127.0.0.1:1', done.stderr)

    def test_a_new_shape_has_no_levels(self):
        """What its event has in their place are distances."""
        d = self.daemon('[detector all]\nmatch = *\nalgorithm = novelty\ninterval = 1s\n')
        noise = random.Random(3)
        with d.client() as c:
            handle = c.register('vibration')
            for k in range(1020):  # a wave, then a faster one that stays within its range
                wave = math.sin(k * math.tau / 25) if k < 1000 else 0.9 * math.sin(k * math.tau / 6)
                c.send(harness.points(handle, [START + k * 10**9], [wave + noise.gauss(0, 0.02)]))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'scores')
            first = c.status()['alerts']['first'][0]
        self.assertEqual((first['novelty'], first['before']), ('shape', 0))
        self.assertRegex(self.plain(d), r'(?m)^(notice|warning|severe) +\d+ d  novelty  a new shape +vibration$')

    def test_in_a_terminal(self):
        port = harness.free_port()
        listener = f'[listen binary]\nprotocol = binary\naddress = 127.0.0.1:{port}\n'
        d = self.daemon(STEPS, listeners=listener)
        screen = Screen(f'127.0.0.1:{port}')
        self.addCleanup(screen.close)
        screen.until('No data yet')
        self.alert(d, ['pump', *(f'{"long" * 30}{i}' for i in range(40))])
        lines = screen.until('41 to look at')
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertRegex('\n'.join(lines), r'and \d+ more')
        screen.resize(12, 40)
        screen.process.send_signal(signal.SIGWINCH)
        until(lambda: len(screen.shown()) <= 12 and max(map(len, screen.shown())) <= 40, 'a frame that fits')
        d.stop()
        screen.resize(24, 120)
        screen.until('No connection')
        self.daemon(STEPS, listeners=listener)
        screen.until('No data yet')
        self.assertNotIn('No connection', '\n'.join(screen.shown()))
        self.assertNotEqual(termios.tcgetattr(screen.end), screen.before)
        os.write(screen.main, b'q')
        self.assertEqual(screen.process.wait(WAIT), 0)
        screen.take()
        self.assertTrue(screen.all.endswith(b'\033[?25h\033[?1049l'), screen.all[-60:])
        self.assertEqual(termios.tcgetattr(screen.end), screen.before)

    def test_signals_leave_the_terminal_as_it_was(self):
        d = self.daemon(STEPS)
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            screen = Screen(f"127.0.0.1:{d.port['binary tcp']}")
            with contextlib.closing(screen):
                screen.until('No data yet')
                screen.process.send_signal(number)
                self.assertEqual(screen.process.wait(WAIT), 0)
                self.assertEqual(termios.tcgetattr(screen.end), screen.before)


if __name__ == '__main__':
    harness.main()
