"""A real GPU that fails or hangs under the daemon: kernels that write astray or never end are launched in the daemon's own
context (sabotage.cu). The daemon continues on the CPU, or exits. Skipped without a GPU."""
import math
import os
import re
import signal
import tempfile
import time

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED, VALUES, points, replay, until

SABOTAGE = os.environ.get('SABOTAGE', '')
W = 16
SPAN = 3 * W - 1
DETECTOR = f'window={W},interval=1s,alert=off'
SECTION = harness.section('all', '*', DETECTOR)
SENSORS = 200
ASTRAY, SPIN = signal.SIGUSR1, signal.SIGUSR2


def wave(sensor, i):
    return math.sin(i * 0.5 + sensor) + 0.3 * math.sin(i * 1.3)


class DeviceFaults(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not os.path.exists(SABOTAGE):
            raise FileNotFoundError(f'SABOTAGE is {SABOTAGE!r}: no such file')
        # The daemon inherits this mask: these signals end none of its threads, not even those that a library starts before SABOTAGE runs.
        signal.pthread_sigmask(signal.SIG_BLOCK, {ASTRAY, SPIN})

    def start(self, keys, section=SECTION, **how):
        return self.daemon(section, keys=f'threads = 2\n{keys}', environment={'LD_PRELOAD': SABOTAGE}, **how)

    def tick(self, client, handles, first, n=1):
        for i in range(first, first + n):
            client.send(points(handles, [START + i * SECOND] * len(handles), [wave(k, i) for k in range(len(handles))]))

    def sabotage(self, daemon, number, what):
        daemon.process.send_signal(number)
        until(lambda: any(line.startswith(f'sabotage {what}: ') for line in daemon.log), 'the sabotage')

    def lost(self, client, handles, at):
        """Feeds tick after tick until the device is lost; returns the number of the next tick and the status."""
        end = time.monotonic() + harness.WAIT
        while time.monotonic() < end:
            self.tick(client, handles, at)
            at += 1
            status = client.status()
            self.balanced(status)
            if status['device']['state'] == 'lost':
                return at, status
            time.sleep(0.02)
        raise AssertionError('the loss went unnoticed')

    def goes_on(self, number, what, why, algorithms=('ika',)):
        """algorithms: those of each sensor; the first is its own."""
        each = SENSORS * len(algorithms)
        d = self.start('device_timeout = 2s\n', backend='auto',
                       section=f'[detector all]\nmatch = *\nalgorithm = {", ".join(algorithms)}\n' + DETECTOR.replace(',', '\n') + '\n')
        with d.client() as c:
            self.assertEqual(c.status()['backend'], 'cuda')
            c.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
            names = [f's {k}' for k in range(SENSORS)]
            handles = c.register(*names)
            self.tick(c, handles, 0, 100)
            c.wait_results(100 * each)
            self.assertEqual({r[4] for r in c.results if r[0] in names and r[1] == START + 99 * SECOND}, {'ok'})
            before = len(c.results)
            self.sabotage(d, number, what)
            began = time.monotonic()
            at, status = self.lost(c, handles, 100)
            print(f'{what}: lost after {time.monotonic() - began:.2f} s, {status["device"]}')
            self.assertEqual(status['backend'], 'cpu')
            self.assertRegex(status['device']['why'], why)
            dropped = status['points']['dropped']
            # A device that is found lost between two batches has none in flight.
            self.assertEqual(dropped > 0, status['device']['batches_lost'] > 0)
            self.assertEqual(dropped, status['device']['points_lost'])
            more = 100 if len(algorithms) == 1 else 300  # graph and shift warm up for longer
            self.tick(c, handles, at, more)
            c.wait_results((at + more) * each - dropped)
            status = until(lambda: (s := c.status())['points']['pending'] == 0 and s, 'nothing pending')
            self.assertEqual(self.balanced(status)['dropped'], dropped)
            self.assertEqual(dropped, status['dropped']['device_lost'])
            until(lambda: c.ping() or sum(g[0] for g in c.gaps) == dropped, 'the gap notice')
            self.assertEqual([code for code, _ in c.errors], [14])
            # the CPU's results are those of a run that begins with its first point
            for algorithm in algorithms:
                series = names[7] if algorithm == algorithms[0] else f'{names[7]}#{algorithm}'
                after = [r for r in c.results[before:] if r[0] == series]
                with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
                    f.write(f'time,{names[7]}\n' + ''.join(f'{t},{v!r}\n' for _, t, v, _, _ in after))
                    f.flush()
                    rows, _ = replay(f.name, f'algorithm={algorithm},{DETECTOR}', 'cpu')
                self.assertEqual([(r[1], r[3], r[4]) for r in after], [(r[1], r[2], r[3]) for r in rows], series)
                self.assertEqual([r[4] for r in after[-50:]], ['ok'] * 50, series)
        self.assertTrue(any(re.search('error: the cuda device is lost: .*' + why, line) for line in d.log), d.log)
        self.assertTrue(any(f'continuing on the CPU: {each} sensors warm up again' in line for line in d.log), d.log)
        began = time.monotonic()
        self.assertEqual(d.stop(), 0)
        print(f'{what}: ended after {time.monotonic() - began:.2f} s; the end of the log:', *d.log[-5:], sep='\n  ')

    def test_error_goes_on_with_cpu(self):
        self.goes_on(ASTRAY, 'astray', 'illegal')

    def test_hang_goes_on_with_cpu(self):
        self.goes_on(SPIN, 'spin', 'it hangs')

    def test_error_goes_on_with_companions(self):
        self.goes_on(ASTRAY, 'astray', 'illegal', ('ika', 'graph', 'shift'))

    def ends(self, number, what):
        d = self.start('device_timeout = 2s\n', backend='cuda', ends=1)
        with d.client() as c:
            handles = c.register(*(f's {k}' for k in range(SENSORS)))
            self.tick(c, handles, 0, 50)
            until(lambda: c.status()['points']['pending'] == 0, 'nothing pending')
            self.sabotage(d, number, what)
            self.tick(c, handles, 50)
            with self.assertRaises(harness.Closed):
                while True:
                    c.keep(*c.receive()[::2])
            self.assertEqual([code for code, _ in c.errors], [14, 13])
        began = time.monotonic()
        self.assertEqual(d.process.wait(harness.WAIT), 1)
        print(f'{what}, stop: ended {time.monotonic() - began:.2f} s after the last words')

    def test_error_stops(self):
        self.ends(ASTRAY, 'astray')

    def test_hang_stops(self):
        self.ends(SPIN, 'spin')

    def test_loop_runs_while_the_device_hangs(self):
        """New sensors while the device hangs, more than there is memory for: the loop does not wait for the device."""
        d = self.start('device_timeout = 4s\n', backend='auto')
        with d.client() as c:
            handles = c.register('first')
            self.tick(c, handles, 0, 60)
            until(lambda: c.status()['points']['pending'] == 0, 'nothing pending')
            self.sabotage(d, SPIN, 'spin')
            self.tick(c, handles, 60)
            slowest = 0
            for i in range(20):
                began = time.monotonic()
                c.register(*(f's {i} {k}' for k in range(1000)))
                slowest = max(slowest, time.monotonic() - began)
            status = c.status()
            print(f'{status["sensors"]["count"]} sensors on {status["backend"]} while the device hangs; '
                  f'the slowest thousand took {slowest:.3f} s')
            self.assertLess(slowest, 2)
            until(lambda: c.status()['backend'] == 'cpu', 'the CPU')
            self.assertEqual(c.status()['sensors']['count'], 20001)


if __name__ == '__main__':
    harness.main(needs_gpu=True)
