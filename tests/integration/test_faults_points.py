"""Faults in points: invalid values and times, late, repeated and missing points, constants, warm-up. None looks like a
change, and none harms a neighbour. The numbers are rows of the fault matrix."""
import math
import random
import tempfile
import time

import harness
from harness import ALERTS, NOTICES, SCORED, SECOND, START, UNSCORED, VALUES, points

DETECTOR = 'window=16,gap=16,rank=2,interval=1s,alert=0.5,signal=0'
SPAN = 2 * 16 - 1 + 16


def signal(i, rng, period=9.0):
    return 20 + math.sin(2 * math.pi * i / period) + 0.05 * rng.gauss(0, 1)


class FaultsInPoints(harness.Case):
    def start(self, detector=DETECTOR, **how):
        self.d = self.daemon(harness.section('all', '*', detector), **how)
        self.watcher = self.d.client()
        self.addCleanup(self.watcher.close)
        self.watcher.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
        self.feeder = self.d.client()
        self.addCleanup(self.feeder.close)

    def send(self, handles, times, values):
        for a, b in harness.cut(random.Random(1), len(handles), 500):
            self.feeder.send(points(handles[a:b], times[a:b], values[a:b]))

    def of(self, sensor):
        return [r[1:2] + r[3:] for r in self.watcher.results if r[0] == sensor]

    def replay(self, sensor, times, values, detector=DETECTOR):
        """(time, score, state) of replay."""
        with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
            f.write(f'time,{sensor}\n' + ''.join(f'{t},{v!r}\n' for t, v in zip(times, values)))
            f.flush()
            rows, _ = harness.replay(f.name, detector, harness.BACKEND, '--unit', 'ns')
        return [(t, z, state) for _, t, z, state, _ in rows]

    def raised(self):
        return [e for e in self.watcher.events if e[2] == 'raised']

    def test_fault_06_bad_values_harm_nobody(self):
        self.start()
        rng = random.Random(6)
        left, middle, right = self.feeder.register('left', 'middle', 'right')
        bad = [math.nan, -math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, 1e-310, 1e31]
        handles, times, values, clean = [], [], [], []
        for i in range(400):
            at = START + i * SECOND
            for h in (left, middle, right):
                handles.append(h)
                times.append(at)
                values.append(signal(i, rng))
                if h == middle:
                    clean.append((at, values[-1]))
                    if i > 3 and rng.random() < 0.3:
                        handles.append(middle)
                        times.append(at + 1 + rng.randrange(1000))
                        values.append(rng.choice([b for b in bad if not abs(b) < 1]))
        self.send(handles, times, values)
        self.watcher.wait_results(len(handles))
        for name, h in (('left', left), ('right', right)):
            mine = [(t, v) for k, t, v in zip(handles, times, values) if k == h]
            self.assertEqual(self.of(name), self.replay(name, *zip(*mine)))
        self.assertEqual([r for r in self.of('middle') if r[2] != 'rejected'], self.replay('middle', *zip(*clean)))
        self.assertEqual(sum(r[2] == 'rejected' for r in self.of('middle')), len(handles) - 1200)
        self.assertEqual(self.balanced(self.d.status())['rejected'], len(handles) - 1200)

    def test_fault_06_denormals_and_huge_values(self):
        self.start()
        tiny, huge = self.feeder.register('tiny', 'huge')
        times = [START + i * SECOND for i in range(150)]
        small = [(-1)**i * 1e-310 * i for i in range(150)]
        large = [1e29 * math.sin(i) for i in range(150)]
        self.send([tiny] * 150, times, small)
        self.send([huge] * 150, times, large)
        self.watcher.wait_results(300)
        self.assertEqual({r[1] for r in self.of('tiny')}, {None, 0.0})
        scores = [r[1] for r in self.of('huge') if r[1] is not None]
        self.assertEqual(len(scores), 150 - SPAN + 1)
        self.assertTrue(all(0 <= z <= 1 for z in scores))
        self.assertEqual(self.of('huge'), self.replay('huge', times, large))

    def test_fault_06_values_too_large_in_lines(self):
        self.start()
        with self.d.connect('line tcp') as s:
            for i in range(120):
                s.sendall(f'clean value={math.sin(i)!r} {START + i * SECOND}\n'.encode())
                s.sendall(b'dirty value=1e400\ndirty value=NaN\ndirty value=-inf\n')
        self.watcher.wait_results(120)
        self.assertEqual({r[0] for r in self.watcher.results}, {'clean'})
        self.assertEqual(self.of('clean'), self.replay('clean', [START + i * SECOND for i in range(120)], [math.sin(i) for i in range(120)]))

    def test_fault_07_wrong_units_of_time(self):
        self.start()
        now = START
        for sensor, wrong in (('seconds', now // SECOND), ('milliseconds', now // 10**6), ('zero', 0), ('negative', -now), ('least', -2**63),
                              ('far', now * 5), ('most', 2**63 - 1)):
            with self.subTest(sensor=sensor):
                h = self.feeder.register(sensor)[0]
                before = self.balanced(self.d.status())
                self.watcher.results.clear()
                self.send([h] * 3, [now, now + SECOND, now + 2 * SECOND], [1.0, 2.0, 3.0])
                self.send([h] * 2, [wrong, wrong], [4.0, 5.0])
                self.send([h] * 3, [now + 3 * SECOND, now + 4 * SECOND, now + 5 * SECOND], [1.0, 2.0, 3.0])
                self.feeder.ping()
                self.watcher.drain(0.2)
                good = [r for r in self.of(sensor) if r[2] == 'warming']
                self.assertEqual([r[0] for r in good], [now + i * SECOND for i in range(6)])
                after = self.balanced(self.d.status())
                self.assertEqual(after['in'] - before['in'], 8)
                lost = sum(after[k] - before[k] for k in after if k in ('late', 'rejected', 'dropped'))
                self.assertEqual(lost, 2, after)

    def test_fault_07_lines_in_another_unit_are_told(self):
        """Old times are taken as they are, because recordings may be of any time; the log asks about the unit once."""
        self.start()
        with self.d.connect('line tcp') as s:
            s.sendall(f'good v=1 {START}\n'.encode() + b''.join(b'old v=1 %d\n' % (START // 10**6 + i) for i in range(5)))
        self.watcher.wait_results(6)
        told = harness.until(lambda: [line for line in self.d.log if 'January 1970' in line], 'the log')
        self.assertEqual(len(told), 1, told)
        self.assertIn('sensor old v: ', told[0])

    def test_fault_08_permutations(self):
        self.start()
        for seed in range(6):
            rng = random.Random(seed)
            sensor = f'shuffled {seed}'
            h = self.feeder.register(sensor)[0]
            order = [(START + i * SECOND, signal(i, rng)) for i in range(300)]
            reach = (1, 2, 5, 20, 300, 3)[seed]
            order.sort(key=lambda p: p[0] + rng.uniform(0, reach) * SECOND)
            for _ in range(40):  # repeated points too
                order.insert(rng.randrange(300), rng.choice(order))
            last, kept = -1, []
            for t, v in order:
                if t > last:
                    kept.append((t, v))
                    last = t
            self.watcher.results.clear()
            self.send([h] * len(order), [t for t, _ in order], [v for _, v in order])
            self.watcher.wait_results(len(order))
            got = self.of(sensor)
            self.assertEqual([r[0] for r in got], [t for t, _ in order])
            self.assertEqual([r for r in got if r[2] != 'late'], self.replay(sensor, *zip(*kept)))
            self.assertEqual(sum(r[2] == 'late' for r in got), len(order) - len(kept))

    def test_fault_09_missing_points_are_no_change(self):
        for detector in (DETECTOR, DETECTOR.replace('alert=0.5', 'alert=adaptive').replace(',signal=0', ''),
                         DETECTOR + ',fill=linear,max_fill=10', DETECTOR.replace('interval=1s', 'interval=auto')):
            self.start(detector)
            sent = 0
            for share in (1, 5, 10, 20, 35, 50, 70, 90):
                rng = random.Random(share)
                h = self.feeder.register(f'dropped {share}')[0]
                kept = [i for i in range(3000) if rng.random() * 100 >= share]
                self.send([h] * len(kept), [START + i * SECOND for i in kept], [signal(i, rng) for i in kept])
                sent += len(kept)
            self.watcher.wait_results(sent)
            self.watcher.drain(0.2)
            self.assertEqual(self.raised(), [], detector)
            states = {r[4] for r in self.watcher.results}
            self.assertEqual(states, {'warming', 'ok', 'gap'})
            for r in self.watcher.results:
                self.assertTrue(r[3] is None or 0 <= r[3] <= 1)
            # A true change is still found with a few points missing; otherwise this test would prove nothing.
            rng = random.Random(1)
            h = self.feeder.register('changes')[0]
            kept = [i for i in range(3000) if rng.random() > 0.005]
            self.send([h] * len(kept), [START + i * SECOND for i in kept], [signal(i, rng, 9.0 if i < 2000 else 4.0) for i in kept])
            self.watcher.wait_results(sent + len(kept))
            self.watcher.drain(0.2)
            self.assertEqual({e[0] for e in self.raised()}, {'changes'})
            self.assertTrue(all(abs((e[5] - START) / SECOND - 2000) < 16 for e in self.raised()), self.raised())

    def test_fault_09_silence_is_a_notice(self):
        self.start(DETECTOR + ',silent=1s')
        self.watcher.subscribe(ALERTS | NOTICES)
        quiet, busy = self.feeder.register('quiet', 'busy')
        self.send([quiet, busy] * 60, [START + i // 2 * SECOND for i in range(120)], [math.sin(i // 2) for i in range(120)])
        end, tick = time.monotonic() + harness.WAIT, 60
        while not self.watcher.events:
            self.assertLess(time.monotonic(), end, 'no notice came')
            self.send([busy], [START + tick * SECOND], [math.sin(tick)])
            tick += 1
            self.watcher.drain(0.2)
        self.assertEqual([e[:4] for e in self.watcher.events], [('quiet', 0, 'stale', START + 59 * SECOND)])
        self.send([quiet], [START + 60 * SECOND], [math.sin(60)])
        while len(self.watcher.events) < 2:
            self.assertLess(time.monotonic(), end, 'it did not come back')
            self.send([busy], [START + tick * SECOND], [math.sin(tick)])
            tick += 1
            self.watcher.drain(0.2)
        self.assertEqual(self.watcher.events[1][:3], ('quiet', 0, 'back'))

    def test_fault_10_constants(self):
        self.start('window=16,gap=16,rank=2,interval=1s,alert=adaptive')
        levels = {'zero': 0.0, 'one': 1.0, 'odd': 0.1, 'far': 1e6 + 0.1, 'minus': -273.15, 'huge': 1e29, 'small': 1e-30}
        handle = dict(zip(levels, self.feeder.register(*levels)))
        for name, level in levels.items():
            self.send([handle[name]] * 300, [START + i * SECOND for i in range(300)], [level] * 300)
        self.watcher.wait_results(300 * len(levels))
        for name in levels:
            self.assertEqual({r[1] for r in self.of(name)}, {None, 0.0}, name)
        self.assertEqual(self.raised(), [])

    def test_fault_10_quantised_steps(self):
        self.start('window=16,gap=16,rank=2,interval=1s,alert=adaptive')
        rng = random.Random(10)
        n = 2000
        series = {'adc': [round((20 + 0.02 * math.sin(i / 40) + 0.01 * rng.gauss(0, 1)) * 16) / 16 for i in range(n)],
                  'blip': [5.0 + (i % 500 == 250) for i in range(n)], 'stairs': [float(i // 400) for i in range(n)]}
        handle = dict(zip(series, self.feeder.register(*series)))
        for name, values in series.items():
            self.send([handle[name]] * n, [START + i * SECOND for i in range(n)], values)
        self.watcher.wait_results(3 * n)
        for r in self.watcher.results:
            self.assertTrue(r[3] is None or 0 <= r[3] <= 1, r)

    def test_fault_11_warming_up(self):
        for stride in (1, 5):
            self.start(DETECTOR.replace('alert=0.5', 'alert=0.01') + f',stride={stride}')
            rng = random.Random(11)
            h = self.feeder.register('warm')[0]
            n = 4 * SPAN
            self.send([h] * n, [START + i * SECOND for i in range(n)], [rng.gauss(0, 1) for _ in range(n)])
            self.watcher.wait_results(n)
            self.watcher.drain(0.1)
            got = self.of('warm')
            self.assertEqual([r[2] for r in got], ['warming'] * (SPAN - 1) + ['ok'] * (n - SPAN + 1))
            self.assertEqual([i for i, r in enumerate(got) if r[1] is not None], list(range(SPAN - 1, n, stride)))
            self.assertTrue(self.raised())
            self.assertTrue(all(e[3] >= START + (SPAN - 1) * SECOND for e in self.watcher.events))


if __name__ == '__main__':
    harness.main()
