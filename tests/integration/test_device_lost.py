"""A device that fails, hangs or refuses batches, and the daemon's reaction. The device is a CPU backend that fails on order
(faulty_daemon.c); everything else is the real daemon, with real sockets. On a machine with a GPU test_device_faults.py does
the same to a real one."""
import json
import math
import os
import re
import signal
import struct
import subprocess
import tempfile
import time

import harness
from harness import ALERTS, NOTICES, SCORED, SECOND, START, UNSCORED, VALUES, points, replay, until

PROGRAM = os.path.abspath(os.environ.get('FAULTY_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'faulty-daemon')))
FAULT = -666.5  # the value at which the device fails
W = 8
SPAN = 3 * W - 1
DETECTOR = f'window={W},interval=1s,alert=0.3,signal=0,clear=0.1,cooldown=4'
SECTION = harness.section('all', '*', DETECTOR)
ALL = SCORED | UNSCORED | ALERTS | NOTICES | VALUES


LOST = 112  # the point at which the device fails: the second alert of each sensor stands


def wave(sensor, i):
    """A sine that changes its period and level for 40 samples from 100 on, and again from 200 on."""
    return (sensor + 1) * (3 * math.sin(i * 2.1) + 5 if 100 <= i < 140 or 200 <= i < 240 else math.sin(i * 0.5))


def replayed(names, times):
    """Rows and events of the CPU's replay of the sensors' waves at these times."""
    with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
        f.write('time,' + ','.join(names) + '\n')
        for i in times:
            f.write(f'{START + i * SECOND},' + ','.join(repr(wave(k, i)) for k in range(len(names))) + '\n')
        f.flush()
        return replay(f.name, DETECTOR, 'cpu')


def standing(events):
    """The alerts that were raised and not cleared, each with its last event."""
    last = {}
    for e in events:
        if e[2] in ('raised', 'corrected'):
            last[e[:2]] = e
        elif e[2] == 'cleared':
            del last[e[:2]]
    return last


class Faulty(harness.Case):
    def faulty(self, fault, keys='', timeout='1s', backend='auto', environment=None, **how):
        return self.daemon(SECTION, keys=f'threads = 2\ndevice_timeout = {timeout}\n{keys}', backend=backend, program=PROGRAM,
                           environment={'HANKELD_FAULT': fault, **(environment or {})}, **how)

    def tick(self, client, handles, i, value=None):
        values = [wave(k, i) if value is None else value for k in range(len(handles))]
        client.send(points(handles, [START + i * SECOND] * len(handles), values))

    def log(self, daemon, pattern):
        """The lines of the log that match; there must be one."""
        found = until(lambda: [line for line in daemon.log if re.search(pattern, line)], f'{pattern} in the log: {daemon.log}')
        return found

    def settle(self, client):
        """The status once nothing is pending; the counters balance at every look."""
        def quiet():
            status = client.status()
            return self.balanced(status)['pending'] == 0 and status
        return until(quiet, 'nothing pending')


class DeviceLost(Faulty):
    def test_error_goes_on_with_cpu(self):
        d = self.faulty('eio')
        self.assertEqual(d.status()['backend'], 'cuda')
        self.assertEqual(d.status()['device'], {'state': 'ok', 'on_failure': 'cpu', 'batches_lost': 0, 'points_lost': 0})
        with d.client() as c, d.client() as alerts_only, d.connect('text tcp') as text:
            c.subscribe(ALL)
            alerts_only.subscribe(ALERTS)
            names = [f's {k}' for k in range(5)]
            handles = c.register(*names)
            for i in range(LOST):
                self.tick(c, handles, i)
            c.wait_results(LOST * 5)
            c.ping()  # events come after their results
            self.assertEqual({r[4] for r in c.results[-5:]}, {'ok'})
            stood = standing(c.events)
            self.assertEqual(set(stood), {(name, 2) for name in names})
            told = len(c.events)
            self.tick(c, handles, LOST, FAULT)
            status = until(lambda: (s := c.status())['device']['state'] == 'lost' and s, 'the device to be lost')
            self.assertEqual(status['backend'], 'cpu')
            self.assertEqual(status['device']['why'], 'fault on order')
            self.assertRegex(status['device']['since'], r'^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$')
            self.assertEqual((status['device']['batches_lost'], status['device']['points_lost']), (1, 5))
            self.assertEqual(status['dropped']['device_lost'], 5)
            # peers get an error that does not close the connection, a gap for the points, and the end of each alert
            until(lambda: c.ping() or c.gaps, 'a gap notice')
            self.assertEqual(sum(g[0] for g in c.gaps), 5)
            self.assertEqual([(code, 'the cuda device is lost: fault on order' in text) for code, text in c.errors], [(14, True)])
            cleared = c.events[told:]
            self.assertEqual({e[:2]: (e[2], e[3:]) for e in cleared}, {key: ('cleared', e[3:]) for key, e in stood.items()})
            until(lambda: alerts_only.ping() or len(alerts_only.events) >= len(c.events), 'the events')
            self.assertEqual(alerts_only.events, c.events)
            # scoring continues, as with new sensors
            at = len(c.results)
            for i in range(LOST + 1, 250):
                self.tick(c, handles, i)
            c.wait_results(at + (249 - LOST) * 5)
            c.ping()
            after = c.results[at:]
            rows, events = replayed(names, range(LOST + 1, 250))
            for name in names:
                mine = [(r[1], r[3], r[4]) for r in after if r[0] == name]
                self.assertEqual(mine, [r[1:4] for r in rows if r[0] == name])
                self.assertEqual([r[2] for r in mine[:SPAN]], ['warming'] * (SPAN - 1) + ['ok'])
                alerts = [(int(e[0].split(':')[1]) + 2, e[2]) for e in events if e[1] == name]
                self.assertEqual([e[1:3] for e in c.events[told + 5:] if e[0] == name], alerts, 'numbers go on')
                self.assertIn((3, 'raised'), alerts)
            counts = self.settle(c)
            self.assertEqual(counts['points']['in'], 250 * 5)
            self.assertEqual(counts['points']['dropped'], 5)
            self.assertEqual(counts['events']['raised'], len([e for e in c.events if e[2] == 'raised']))
            lines = b''
            while b'"error"' not in lines or b'"gap"' not in lines:
                lines += text.recv(65536)
            lines = [json.loads(line) for line in lines.split(b'\n')[:-1]]
            self.assertIn({'gap': {'results': 5, 'events': 0}}, lines)
            self.assertEqual(sum('the cuda device is lost' in line.get('error', '') for line in lines), 1)
        self.log(d, r'error: the cuda device is lost: fault on order; 5 points in 1 batches that were in flight are dropped')
        self.log(d, r'warning: continuing on the CPU: 5 sensors warm up again, 5 alerts were cleared\. .*nvidia-smi.*restart hankeld')

    def test_killed_after_a_loss(self):
        """With a journal, a start after the loss continues as if the device had not been lost: windows are whole, and the points that were dropped
        with it are scored. Events that subscribers have seen are not published again, and sequences have no hole."""
        state = tempfile.TemporaryDirectory(prefix='hankeld-state-')
        self.addCleanup(state.cleanup)
        keys = f'max_ahead = off\ndurability = journal\nstate = {state.name}/there\n'
        names, placed = [f's {k}' for k in range(5)], []

        def life(fault, first, behind, ends):
            d = self.faulty(fault, keys, ends=ends)
            with d.client() as subscriber, d.client() as c:
                subscriber.request(harness.SUBSCRIBE, struct.pack('<If', SCORED | UNSCORED | ALERTS | 32 | 64, 0) + harness.text('') +
                                   struct.pack('<Q', placed[-1][0] if placed else 0), harness.DONE)
                handles = c.register(*names)
                for i in range(first, behind):
                    if fault and i == LOST:
                        self.settle(c)  # or more is in flight
                    self.tick(c, handles, i, FAULT if fault and i == LOST else None)
                    if fault and i == LOST:
                        until(lambda: d.status()['device']['state'] == 'lost', 'the device to be lost')
                subscriber.wait_results(5 * (behind - first - bool(fault)))
                self.settle(c)
                subscriber.drain(0.2)
                placed.extend(subscriber.placed)
            return d, subscriber.results

        d, _ = life('eio', 0, 260, -signal.SIGKILL)
        before = len(placed)
        d.process.kill()
        d.process.wait()
        d, results = life('', 260, 400, 0)
        self.assertEqual(d.status()['points']['dropped'], 0)
        with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
            f.write('time,' + ','.join(names) + '\n')
            for i in range(400):
                f.write(f'{START + i * SECOND},' + ','.join(repr(FAULT if i == LOST else wave(k, i)) for k in range(5)) + '\n')
            f.flush()
            rows, _ = replay(f.name, DETECTOR, 'cpu')
        want = {(r[0], r[1]): r[2:4] for r in rows}
        self.assertEqual({(r[0], r[1]): r[3:5] for r in results}, {key: said for key, said in want.items() if key[1] >= START + 260 * SECOND})
        self.assertGreater(before, 40)
        self.assertEqual([p for p, _, _ in placed], sorted({p for p, _, _ in placed}))
        for name in names:
            sequences = [s for _, s, e in placed if e[0] == name]
            self.assertEqual(sequences, list(range(1, len(sequences) + 1)))

    def hang(self, fault, how_long):
        """Feeds through a hang of the device; returns the daemon."""
        d = self.faulty(fault, keys='drain = 5s\n')
        with d.client() as c:
            c.subscribe(ALL)
            handles = c.register('a', 'b')
            for i in range(30):
                self.tick(c, handles, i)
            c.wait_results(60)
            began = time.monotonic()
            self.tick(c, handles, 30, FAULT)
            for i in range(31, 600):  # more than the batches in flight hold: waiting points go to the CPU
                self.tick(c, handles, i)
                if i < 50:
                    c.ping()
            until(lambda: c.status()['device']['state'] == 'lost', 'the hang to be noticed')
            self.assertGreater(time.monotonic() - began, 0.9)
            if not harness.SANITIZED:
                self.assertLess(time.monotonic() - began, harness.WAIT / 2)
            status = self.settle(c)
            lost = status['dropped']['device_lost']
            self.assertTrue(2 <= lost < 1000, lost)
            self.assertEqual(status['points']['in'], 1200)
            self.assertEqual(status['points']['scored'] + status['points']['unscored'] + lost, 1200)
            self.assertGreater(status['device']['batches_lost'], 0)
            self.assertIn('it hangs: no answer for 1.', status['device']['why'])
            until(lambda: c.ping() or sum(g[0] for g in c.gaps) == lost, 'the gap notice')
            self.assertEqual(len(c.results), 1200 - lost)
            self.assertEqual([r[4] for r in c.results[-2:]], ['ok', 'ok'])
            time.sleep(how_long)
            self.tick(c, handles, 600)
            c.wait_results(1202 - lost)
        return d

    def test_hang_goes_on_with_cpu(self):
        d = self.hang('hang', 0)
        began = time.monotonic()
        self.assertEqual(d.stop(), 0, 'a device that hangs does not keep the daemon from ending')
        self.assertLess(time.monotonic() - began, harness.WAIT / 2)

    def test_hang_that_ends_late(self):
        """Batches that the device returns after it was abandoned do no harm."""
        self.hang('hang 3', 3)

    def test_error_at_submit(self):
        d = self.faulty('submit')
        with d.client() as c:
            handles = c.register('a')
            self.tick(c, handles, 0)
            self.settle(c)  # or both ticks may be lost in one batch
            self.tick(c, handles, 1, FAULT)
            until(lambda: c.status()['backend'] == 'cpu', 'the CPU')
            self.tick(c, handles, 2)
            self.assertEqual(self.settle(c)['points'], {'in': 3, 'scored': 0, 'unscored': 2, 'relayed': 0, 'late': 0, 'rejected': 0, 'dropped': 1,
                                                        'pending': 0})

    def test_error_at_a_new_sensor(self):
        """A client that registers a sensor while the device fails still gets it, from the CPU."""
        d = self.faulty('add 3')
        with d.client() as c:
            c.subscribe(ALL)
            handles = c.register('a', 'b', 'c')
            self.tick(c, handles, 0)
            c.wait_results(3)
            more = c.register('d', 'a', 'e')
            self.assertNotIn(None, more)
            self.assertEqual(more[1], handles[0])
            status = c.status()
            self.assertEqual((status['backend'], status['device']['why'], status['sensors']['count']), ('cpu', 'fault on order', 5))
            self.tick(c, handles + more[::2], 1)
            c.wait_results(8)
            self.assertEqual(self.settle(c)['points']['dropped'], 0)
        d = self.faulty('add 0', backend='cuda', ends=1)
        with d.connect('line tcp') as s:
            s.sendall(f'a value=1 {START}\nb value=1 {START}\n'.encode())
            self.assertEqual(d.process.wait(harness.WAIT), 1)
        self.log(d, 'the cuda device is lost: fault on order; 0 points in 0 batches')

    def stops(self, fault, why, backend='cuda', keys='', ending='on_device_failure = stop', **how):
        """The daemon informs its peers, and exits with 1 for the reason `ending`."""
        d = self.faulty(fault, keys=keys, backend=backend, ends=1, **how)
        with d.client() as c:
            c.subscribe(ALL)
            handles = c.register('a', 'b')
            for i in range(LOST):
                self.tick(c, handles, i)
            c.wait_results(2 * LOST)
            c.ping()
            self.assertEqual(set(standing(c.events)), {('a', 2), ('b', 2)})
            self.tick(c, handles, LOST, FAULT)
            with self.assertRaises(harness.Closed) as closed:
                while True:
                    c.keep(*c.receive()[::2])
            self.assertEqual([code for code, _ in c.errors], [14, 13])
            self.assertRegex(c.errors[0][1], f'the cuda device is lost: {why}.*; the daemon ends$')
            self.assertEqual(closed.exception.error[0], 13)
            self.assertEqual(standing(c.events), {})
        self.assertEqual(d.process.wait(harness.WAIT), 1)
        self.log(d, f'error: the cuda device is lost: {why}')
        self.log(d, f'error: exiting so that the service restarts: {ending}')
        return d

    def test_error_stops(self):
        self.stops('eio', 'fault on order')

    def test_hang_stops(self):
        self.stops('hang', 'it hangs')

    def test_stops_when_told(self):
        self.stops('eio', 'fault on order', 'auto', 'on_device_failure = stop\n')

    def test_nothing_to_go_on_with(self):
        d = self.stops('eio', 'fault on order', 'auto', ending='no device is left', environment={'HANKELD_NO_CPU': '1'})
        self.log(d, 'error: the CPU cannot take over: no memory, on order')

    def test_cuda_goes_on_when_told(self):
        d = self.faulty('eio', 'on_device_failure = cpu\n', backend='cuda')
        with d.client() as c:
            self.tick(c, c.register('a'), 0, FAULT)
            until(lambda: c.status()['backend'] == 'cpu', 'the CPU')

    def refused(self, fault):
        """A batch that is refused is dropped and reported, and the device continues."""
        d = self.faulty(fault)
        with d.client() as c:
            c.subscribe(ALL)
            handles = c.register('a')
            for i in range(30):
                self.tick(c, handles, i)
            c.wait_results(30)
            self.tick(c, handles, 30, FAULT)
            self.settle(c)
            for i in range(31, 40):
                self.tick(c, handles, i)
            c.wait_results(39)
            self.assertEqual([r[4] for r in c.results[-9:]], ['ok'] * 9, 'windows stand')
            self.assertEqual(c.gaps, [(1, 0)])
            status = self.settle(c)
            self.assertEqual((status['backend'], status['device']['state']), ('cuda', 'ok'))
            self.assertEqual((status['dropped']['backend_failed'], status['dropped']['device_lost']), (1, 0))
        self.log(d, r'error: cuda: a batch of 1 points was refused and dropped: fault on order')

    def test_batch_refused(self):
        self.refused('einval')

    def test_no_memory_once(self):
        self.refused('enomem')

    def test_no_memory_for_good(self):
        """After that many batches of points in a row without memory the device counts as lost, even if sweeps succeed."""
        d = self.faulty('enomem-always')
        with d.client() as c:
            handles = c.register('a')
            for i in range(40):
                self.tick(c, handles, i, FAULT if i == 0 else None)
                self.settle(c)  # batches are counted, not points: each has one point
                time.sleep(0.1)
            status = c.status()
            self.assertEqual(status['backend'], 'cpu')
            self.assertEqual((status['dropped']['backend_failed'], status['dropped']['device_lost']), (15, 1))
            self.assertEqual(status['points']['unscored'] + status['points']['scored'], 24)

    def test_cpu_has_less_room(self):
        """The first sensors stay; waiting points of the others are dropped, and counted."""
        d = self.faulty('hang', keys='memory = 1MiB\nmax_sensors = 20000\n')
        n = 5000
        with d.client() as c:
            handles = c.register(*(f's {k}' for k in range(n)))
            self.assertNotIn(None, handles)
            for i in range(3):
                self.tick(c, handles, i)
            self.settle(c)
            self.tick(c, handles[:1], 3, FAULT)
            for i in range(3, 8):
                c.send(points(handles[1:], [START + i * SECOND] * (n - 1), [wave(1, i)] * (n - 1)))
            until(lambda: c.status()['backend'] == 'cpu', 'the CPU')
            status = self.settle(c)
            kept = status['sensors']['count']
            self.assertTrue(100 < kept < n, kept)
            self.assertEqual(status['sensors']['evicted'], n - kept)
            self.assertLessEqual(status['sensors']['memory_bytes'], 1 << 20)
            dropped = status['dropped']
            self.assertGreater(dropped['full'], 0)
            self.assertEqual(status['points']['in'], 3 * n + 1 + 5 * (n - 1))
            self.assertEqual(status['points']['dropped'], dropped['full'] + dropped['device_lost'] + dropped['unknown_handle'])
            self.assertIn('memory = 1.0 MiB is taken, and a sensor of [detector all] needs', status['sensors']['refused_because'])
            c.send(points([handles[0], handles[-1]], [START + 9 * SECOND] * 2, [1, 1]))
            status = self.settle(c)
            self.assertEqual(status['dropped']['unknown_handle'], dropped['unknown_handle'] + 1)
            self.assertEqual(c.errors[-1][0], 8)
        self.log(d, rf'warning: {n - kept} of {n} sensors have no room on the CPU and were evicted, {dropped["full"]} points of '
                    r'theirs dropped: memory = 1\.0 MiB is taken')

    def test_stopped_process_is_no_hang(self):
        """Time in which the daemon itself did not run does not count against the device."""
        d = self.faulty('slow 7')
        with d.client() as c:
            handles = c.register('a')
            for i in range(10):  # a batch may end before the process stands
                self.tick(c, handles, i)
                until(lambda: (s := c.status())['batches']['in_flight'] > 0 or s['points']['pending'] == 0, 'a batch')
                d.process.send_signal(signal.SIGSTOP)
                time.sleep(3)
                d.process.send_signal(signal.SIGCONT)
                status = self.settle(c)
                self.assertEqual((status['backend'], status['points']['unscored']), ('cuda', i + 1))
                if status['batches']['p99_us'] > 3000000:
                    return
        self.fail('no batch was in flight while the process stood')

    def test_dear_scores_are_no_hang(self):
        """A device that takes long for many points gets fewer at a time: results flow, and it does not count as lost."""
        d = self.faulty('rate 3000')  # a batch of 4096, the most, would take longer than the timeout
        n = 2000
        with d.client() as c:
            handles = c.register(*(f's {k}' for k in range(n)))
            for i in range(9):
                self.tick(c, handles, i)
            most = [c.status()['batches']['points_at_most']]
            while (status := c.status())['points']['pending'] > 0:
                most.append(status['batches']['points_at_most'])
                time.sleep(0.1)
            self.assertEqual((status['backend'], status['points']['unscored']), ('cuda', 9 * n))
            self.assertLess(max(most), 4096)

    def test_absent(self):
        """backend = auto logs why it takes the CPU, and continues; cuda logs the error, and exits."""
        d = self.faulty('absent')
        self.log(d, r'info: backend = auto: scoring on the CPU, not on the GPU: no device, on order')
        device = d.status()['device']
        self.assertEqual((device['state'], device['why']), ('none', 'no device, on order'))
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write(f'[daemon]\nbackend = cuda\n{SECTION}')
            f.flush()
            run = subprocess.run([PROGRAM, '-c', f.name], capture_output=True, text=True, timeout=harness.WAIT,
                                 env={**os.environ, 'HANKELD_FAULT': 'absent'}, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r'^\S+Z hankeld: error: no device, on order; backend = cuda needs a GPU and its driver, backend = auto goes on without\n$')

    def test_device_full(self):
        d = self.faulty('room 3')
        with d.client() as c:
            self.assertEqual([h is None for h in c.register('a', 'b', 'c', 'd')], [False] * 3 + [True])
            sensors = c.status()['sensors']
            self.assertEqual((sensors['count'], sensors['refused']), (3, 1))
            self.assertIn('4096 more bytes do not fit on the device', sensors['refused_because'])
        self.log(d, r'no room for d after 3 sensors: 4096 more bytes do not fit on the device; .*memory =')

    def test_alert_of_an_evicted_sensor(self):
        """An alert whose sensor was evicted does not stay open for ever."""
        d = self.faulty('', keys='evict = 1s\n')
        with d.client() as c:
            c.subscribe(ALL)
            handles = c.register('a')
            for i in range(LOST):
                self.tick(c, handles, i)
            c.wait_results(LOST)
            c.ping()
            stood = standing(c.events)
            self.assertEqual(set(stood), {('a', 2)})
            until(lambda: c.status()['sensors']['evicted'] == 1, 'the eviction')
            c.ping()
            last = [e for e in c.events if e[1]][-1]
            self.assertEqual((last[:3], last[3:]), (('a', 2, 'cleared'), stood['a', 2][3:]))

    def test_status_as_a_table(self):
        d = self.faulty('eio')
        with d.client() as c:
            self.tick(c, c.register('a'), 0, FAULT)
            until(lambda: c.status()['backend'] == 'cpu', 'the CPU')
        run = subprocess.run([harness.HANKEL, 'status', '--all', '--from', f'127.0.0.1:{d.port["binary tcp"]}'], capture_output=True, text=True,
                             timeout=harness.WAIT)
        self.assertEqual((run.returncode, run.stderr), (3, ''))
        out = run.stdout
        self.assertRegex(out, r'^WRONG +the device is lost \(fault on order\), scoring on cpu\n')
        self.assertRegex(out, r'(?m)^backend +cpu$')
        self.assertRegex(out, r'(?m)^device\n +state +lost\n')
        self.assertRegex(out, r'(?m)^ +why +fault on order$')
        self.assertRegex(out, r'(?m)^ +batches lost +1$')


if __name__ == '__main__':
    harness.main(needs_gpu=False)
