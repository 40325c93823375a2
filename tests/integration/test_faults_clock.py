"""The wall clock is set while the daemon runs: no deadline depends on it. Fault matrix row 24."""
import contextlib
import os
import struct
import subprocess
import tempfile
import time

import harness
import test_incident_ends
import test_notify
from harness import NOTICES, SCORED, SECOND, START, UNSCORED, points, until

PROGRAM = os.environ.get('STEPPING_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'stepping-daemon'))
DAY = 86400 * SECOND


class Clock(harness.Case):
    def setUp(self):
        self.file = tempfile.NamedTemporaryFile()
        self.addCleanup(self.file.close)
        self.set_ahead(0)
        self.d = self.daemon('[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\nsilent = 60s\n', program=PROGRAM,
                             keys='threads = 1\nhandshake = 60s\nidle = 60s\nstuck = 60s\nevict = 60s\nmax_ahead = 1h\n',
                             environment={'HANKELD_CLOCK': self.file.name})

    def set_ahead(self, ns):
        self.file.seek(0)
        self.file.write(struct.pack('<q', ns))
        self.file.flush()

    def test_fault_24_steps_of_the_clock(self):
        with self.d.client() as watcher, self.d.client() as c, self.d.client(hello=False) as young, self.d.connect('line tcp') as line:
            watcher.subscribe(SCORED | UNSCORED | NOTICES)
            handle, sent = c.register('s')[0], 0
            for ahead in (0, DAY, 0, -DAY, 400 * DAY, 0):
                self.set_ahead(ahead)
                c.send(points([handle], [START + sent * SECOND], [1.0]))
                sent += 1
                watcher.wait_results(sent)
                time.sleep(1.2)  # so that checks of every second are made
                c.ping()
            young.request(harness.HELLO, harness.text('late'), harness.WELCOME)
            line.sendall(b'line value=1\n')
            watcher.wait_results(sent + 1)
            status = c.status()
            self.assertEqual(status['connections']['timed_out'] + status['connections']['cut_off'], 0, status['connections'])
            self.assertEqual((status['sensors']['count'], self.balanced(status)['scored'] + status['points']['unscored']), (2, sent + 1))
            self.assertEqual(watcher.events, [])
            self.assertEqual([r[1] for r in watcher.results[:sent]], [START + i * SECOND for i in range(sent)])
            for leg in status['latency'].values():
                self.assertLess(leg['p999_us'], harness.WAIT * 1e6)

    def test_fault_24_arrival_never_runs_backwards(self):
        """If the clock is set back, points without a time continue from the later time, and so does the limit of times ahead (max_ahead)."""
        with self.d.client() as watcher, self.d.client() as c, self.d.connect('line tcp') as line:
            watcher.subscribe(SCORED | UNSCORED)
            handle = c.register('ahead')[0]
            now = int(time.time()) * SECOND
            for i, ahead in enumerate((0, DAY, 0, -DAY)):
                self.set_ahead(ahead)
                c.send(points([handle], [now + DAY // 2 + i * SECOND], [1.0]))
                line.sendall(b'arrival value=1\n')
                watcher.wait_results(2 * (i + 1))
            arrivals = [r[1] for r in watcher.results if r[0] == 'arrival']
            self.assertEqual(arrivals, sorted(set(arrivals)))
            self.assertGreater(arrivals[-1], now + DAY - SECOND)
            self.assertEqual([r[4] for r in watcher.results if r[0] == 'ahead'], ['rejected'] + ['warming'] * 3)
            p = self.balanced(c.status())
            self.assertEqual((p['late'], p['rejected']), (0, 1))

    def test_fault_24_the_end_does_not_wait_for_the_clock(self):
        self.set_ahead(-DAY)
        begin = time.monotonic()
        with contextlib.closing(self.d.client()) as c:
            c.ping()
        self.assertEqual(self.d.stop(), 0)
        self.assertLess(time.monotonic() - begin, harness.WAIT / 2)


class Sender(harness.Case):
    def hankel(self, d, command):
        return subprocess.run([harness.HANKEL, command, '--from', f'127.0.0.1:{d.port["binary tcp"]}'], capture_output=True, text=True, timeout=harness.WAIT, check=False).stdout

    def test_a_sender_whose_clock_was_set_back_is_named(self):
        """Repeats that are over sooner are not; and once its time has passed that of its last point, all is well."""
        d = self.daemon('[detector all]\nmatch = *\nalgorithm = ika, graph\nwindow = 8\ninterval = 1s\n')
        with d.client() as c:
            handle = c.register('pump')[0]

            def send(*seconds):
                c.send(points([handle] * len(seconds), [START + second * SECOND for second in seconds], [1.0] * len(seconds)))
                c.ping()
            send(*range(50))
            send(*range(50), 50)  # again
            self.assertNotIn('late_sensor', c.status()['points'])
            for second in range(-3600, 0):
                send(second)
                time.sleep(0.25)
                if 'late_sensor' in c.status()['points'] or second > 8 * harness.WAIT - 3600:
                    break
            self.assertEqual(c.status()['points']['late_sensor'], 'pump')
            self.assertRegex(self.hankel(d, 'top'), r'(?m)^WRONG +most points are late and ignored, all of sensor pump: look at the sender.s clock\nNo alert stands$')
            late = self.hankel(d, 'status').split(' late (')[0].split()[-1]  # not those of its second series
            self.assertIn(f'dropped 0  late {late}  lost', self.hankel(d, 'top'))
            self.assertRegex(self.hankel(d, 'status'), r'^WRONG +most points are late and ignored, all of sensor pump: look')
            now = time.time_ns()
            c.send(points([handle], [now + DAY], [1.0]))  # too far ahead
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'its result')
            self.assertEqual([c.status()[k]['rejected'] for k in ('points', 'derived')], [2, 1])
            self.assertRegex(self.hankel(d, 'status'), r'(?m)^refused .*; 1 rejected \(some ahead of this machine.s clock\)$')
            send(51)
            until(lambda: 'late_sensor' not in c.status()['points'], 'the end of its being late')
            self.assertRegex(self.hankel(d, 'status'), '^healthy')
            self.assertRegex(self.hankel(d, 'top'), '(?m)^All is well$')
        d.stop()
        self.assertEqual(sum('sensor pump: for 10 s all its points have been late' in line for line in d.log), 1, d.log)


class Alerts(test_notify.Notify):
    def test_fault_24_alerts_do_not_wait_for_the_clock(self):
        """The wall clock is set back while the receiver of alerts and the incidents sleep: for them each limit of a sleep lies an hour ahead."""
        clock = tempfile.NamedTemporaryFile()
        self.addCleanup(clock.close)
        clock.write(struct.pack('<q', 3600 * SECOND))
        clock.flush()
        r = self.receiver()
        d = self.daemon(test_notify.DETECTOR + '[incidents]\ninterval = 1s\n' + self.webhook(r), program=PROGRAM, keys=self.keys(),
                        environment={'HANKELD_CLOCK': clock.name})
        self.feed(d, 100)
        raised = [e for e in self.logged(d) if e[2] == 'raised']
        self.assertGreater(len(raised), 3)
        harness.until(lambda: self.told(r) == self.logged(d), 'the alerts')
        last = d.status()['durability']['events_last']
        harness.until(lambda: d.status()['incidents']['position'] >= last > 0, 'the incidents')


class Incidents(harness.Case):
    def test_fault_24_incidents_end(self):
        """The daemon's clock is set back by a day, and then that of the sender for a while: incidents end nevertheless, once the data have gone on for 60 points."""
        with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as clock:
            clock.write(bytes(8))
            clock.flush()
            d = self.daemon(test_incident_ends.RULES.replace('1s', '100ms'), program=PROGRAM, environment={'HANKELD_CLOCK': clock.name},
                            keys=f'threads = 1\ndurability = journal\nstate = {folder}/state\n')
            begin = time.time_ns() - 60 * SECOND

            def send(c, *numbers):
                values = [test_incident_ends.level(i, 40 if i < 170 else None) for i in numbers]
                c.send(points(handles * len(numbers), [begin + i * SECOND // 10 for i in numbers], values))

            def now(alerts, n):
                until(lambda: d.status()['incidents']['alerts'] >= alerts and d.status()['incidents']['open'] == n, f'{n} open incidents')
            with d.client() as c:
                handles = c.register('a')
                send(c, *range(50))
                now(1, 1)
                clock.seek(0)
                clock.write(struct.pack('<q', -DAY))
                clock.flush()
                send(c, *range(50, 100))
                send(c, *range(100, 150))
                now(1, 0)
                send(c, *range(150, 180))
                now(2, 1)
                send(c, *range(120, 150))  # late
                send(c, *range(150, 230))
                send(c, *range(230, 260))
                now(2, 0)
            self.assertEqual(d.status()['points']['late'], 60)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
