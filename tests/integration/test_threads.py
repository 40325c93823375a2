"""Many loops, and several devices: points from any loop are scored in order, and results are delivered to all subscribers. Counts are exact, no
connection starves, and no results are mixed up when sensors come and are evicted, or a device fails under load.

Every value encodes its sensor, so that results under a wrong name are noticed."""
import os
import struct
import threading
import time

import harness
from harness import ALERTS, NOTICES, SCORED, SECOND, START, UNSCORED, VALUES, frame, points, until

PROGRAM = os.path.abspath(os.environ.get('FAULTY_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'faulty-daemon')))
SMALL = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'
LOOPS = 'threads = 1\nloops = 4\n'
FAULT = -666.5
ALL = SCORED | UNSCORED | VALUES
TICKS = 60 if harness.SANITIZED else 300


class Threads(harness.Case):
    listens = harness.LISTENERS

    def several(self, devices=3, fault='', faulty=0, keys='', **how):
        return self.daemon(SMALL, keys=LOOPS + keys, backend='auto', program=PROGRAM,
                           environment={'HANKELD_DEVICES': str(devices), 'HANKELD_FAULT': fault, 'HANKELD_FAULTY': str(faulty)}, **how)

    def run_all(self, jobs):
        """Runs functions in parallel; fails if one does."""
        failed = []

        def run(job):
            try:
                job()
            except BaseException as e:  # told below
                failed.append(e)

        threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise failed[0]

    def feed(self, d, who, sensors, ticks, of=None):
        """A connection that feeds its own sensors with their numbers as values, and closes with BYE."""
        names = [f'{who}/{k}' for k in range(sensors)]
        with d.client() as c:
            handles = c.register(*names)
            for t in range(ticks):
                c.send(points(handles, [START + t * SECOND] * sensors, [float(k) for k in range(sensors)]))
            c.bye()
        if of is not None:
            of.update(dict.fromkeys(names, ticks))

    def feed_udp(self, d, who, sensors, ticks, of=None):
        names = [f'{who}/{k}' for k in range(sensors)]
        with d.client() as c, d.connect('binary udp') as udp:
            handles = c.register(*names)
            for t in range(ticks):
                udp.send(points(handles, [START + t * SECOND] * sensors, [float(k) for k in range(sensors)], c.feed, t + 1, t * sensors))
                if t % 20 == 19:
                    c.ping()
            c.bye(ticks, ticks * sensors)
        if of is not None:
            of.update(dict.fromkeys(names, ticks))

    def feed_lines(self, d, who, sensors, ticks, of=None):
        with d.connect('line tcp') as s:
            for t in range(ticks):
                s.sendall(''.join(f'{who}/{k} value={k} {START + t * SECOND}\n' for k in range(sensors)).encode())
        if of is not None:
            of.update({f'{who}/{k}': ticks for k in range(sensors)})

    def check(self, results, of, gaps_allowed=False):
        """Asserts that all results are there, in order, under the right names."""
        times = {}
        for name, when, value, *_ in results:
            self.assertEqual(float(name.rsplit('/', 1)[1]), value, 'a result of another sensor')
            times.setdefault(name, []).append(when)
        for name, got in times.items():
            self.assertEqual(got, sorted(set(got)), f'{name}: out of order')
        if not gaps_allowed:
            self.assertEqual(set((name, len(got)) for name, got in times.items()) ^ set(of.items()), set())

    def everything(self, d):
        """All kinds of input at once, on all loops, and a subscriber on each of them."""
        of, subscribers = {}, [d.client() for _ in range(5)]
        for s in subscribers:
            self.addCleanup(s.close)
            s.subscribe(ALL)
        jobs = [lambda k=k: self.feed(d, f'binary{k}', 40, TICKS, of) for k in range(6)]
        jobs += [lambda k=k: self.feed_udp(d, f'udp{k}', 20, TICKS, of) for k in range(3)]
        jobs += [lambda k=k: self.feed_lines(d, f'line{k}', 20, TICKS, of) for k in range(3)]
        jobs += [lambda s=s: s.wait_results((6 * 40 + 6 * 20) * TICKS) for s in subscribers]
        self.run_all(jobs)
        for s in subscribers:
            self.check(s.results, of)
            self.assertEqual(s.gaps, [])
        status = d.status()
        p = self.balanced(status)
        self.assertEqual((p['in'], p['pending'], p['dropped'], p['late']), (sum(of.values()), 0, 0, 0))
        self.assertEqual(len(status['loops']), 4)
        for loop in status['loops']:
            self.assertGreater(loop['points_in'], 0, 'connections are spread over the loops')

    def test_all_ways_in_and_out(self):
        self.everything(self.daemon(SMALL, keys=LOOPS + 'queue = 64MiB\n'))

    def test_several_devices(self):
        d = self.several(keys='queue = 64MiB\n')
        self.everything(d)
        self.assertTrue(any('3 devices' in line for line in d.log), d.log)

    def test_goodbye_sees_datagrams_on_every_loop(self):
        """A feed's datagrams may reach any loop: BYE waits for those that were sent before it, and none is lost."""
        d = self.daemon(SMALL, keys=LOOPS)
        for k in range(30):
            with d.client() as c:
                sockets = [d.connect('binary udp') for _ in range(4)]
                handle = c.register(f's/{k}')[0]
                for i in range(40):
                    sockets[i % 4].send(points([handle], [START + (40 * k + i) * SECOND], [1.0], c.feed, i + 1, i))
                c.bye(40, 40)
                for s in sockets:
                    s.close()
        status = d.status()
        self.assertEqual((status['udp']['lost'], status['points']['in'], status['points']['pending']), (0, 1200, 0))
        self.assertGreater(sum(loop['datagrams'] > 0 for loop in status['loops']), 1, 'one loop had them all')

    def test_sensors_come_and_go_under_load(self):
        """Slots are reused while points flow: no result goes to a sensor that has taken the slot of another."""
        for d in (self.daemon(SMALL, keys=LOOPS + 'evict = 1s\nmax_sensors = 600\nqueue = 64MiB\n'),
                  self.several(keys='evict = 1s\nmax_sensors = 600\nqueue = 64MiB\n')):
            watcher, stop = d.client(), threading.Event()
            self.addCleanup(watcher.close)
            watcher.subscribe(ALL | NOTICES)

            def come_and_go(k):
                generation = 0
                with d.client() as c:
                    while not stop.is_set():
                        names = [f'gone {generation} {k}/{i}' for i in range(40)]
                        handles = c.register(*names)
                        known = [(h, float(i)) for i, h in enumerate(handles) if h is not None]
                        for t in range(5):
                            if known:
                                c.send(points([h for h, _ in known], [START + t * SECOND] * len(known), [v for _, v in known]))
                        generation += 1
                        c.ping()
                        time.sleep(0.1)
                    c.bye()

            def stay():
                with d.client() as c:
                    handles = c.register(*(f'stay/{i}' for i in range(40)))
                    t = 0
                    while not stop.is_set():
                        c.send(points(handles, [START + t * SECOND] * 40, [float(i) for i in range(40)]))
                        t += 1
                        time.sleep(0.005)
                    c.bye()

            def watch():
                end = time.monotonic() + harness.WAIT
                while d.status()['sensors']['evicted'] < 900 and time.monotonic() < end:
                    time.sleep(0.05)
                stop.set()

            self.run_all([lambda k=k: come_and_go(k) for k in range(4)] + [stay, watch])
            status = until(lambda: (s := d.status())['points']['pending'] == 0 and s, 'the end of the work')
            p = self.balanced(status)
            self.assertGreaterEqual(status['sensors']['evicted'], 900)
            watcher.wait_results(p['in'] - p['dropped'])
            self.check(watcher.results, None, True)
            stayed = [r for r in watcher.results if r[0].startswith('stay')]
            self.assertEqual(len({r[0] for r in stayed}), 40)
            self.assertEqual(p['late'], 0, 'a window that belonged to another sensor')

    def lose(self, d, fault, loops=4):
        """A device fails while all loops feed it: received results and those that gap notices count add up to all."""
        watchers, stop = [d.client() for _ in range(loops)], threading.Event()
        for w in watchers:
            self.addCleanup(w.close)
            w.subscribe(ALL | ALERTS)

        def feed(k):
            names = [f'f{k}/{i}' for i in range(30)]
            with d.client() as c:
                handles, t = c.register(*names), 0
                while not stop.is_set():
                    c.send(points(handles, [START + t * SECOND] * 30, [float(i) for i in range(30)]))
                    t += 1
                    if t % 20 == 0:
                        c.ping()
                        time.sleep(0.01)
                c.bye()

        def break_it():
            time.sleep(0.5)
            with d.client() as c:
                handles = c.register(*(f'x{i}/{FAULT}' for i in range(6)))
                c.send(points(handles, [START] * 6, [FAULT] * 6))  # one on each device
                until(lambda: c.status()['device']['state'] == 'lost', 'the loss')
            time.sleep(1)
            stop.set()

        self.run_all([lambda k=k: feed(k) for k in range(6)] + [break_it])
        status = until(lambda: (s := d.status())['points']['pending'] == 0 and s, 'the end of the work')
        p = self.balanced(status)
        self.assertGreater(status['dropped']['device_lost'], 0)
        self.assertEqual(p['dropped'], status['dropped']['device_lost'])
        for w in watchers:
            until(lambda w=w: w.ping() or len(w.results) + sum(g[0] for g in w.gaps) >= p['in'], f'all results after {fault}')
            self.assertEqual(sum(g[0] for g in w.gaps), p['dropped'])
            self.assertEqual(len(w.results), p['in'] - p['dropped'])
            self.check(w.results, None, True)
            self.assertEqual(len(w.errors), 1)

    def test_device_fails_under_load(self):
        self.lose(self.several(devices=1, fault='eio', keys='queue = 64MiB\n'), 'eio')

    def test_device_hangs_under_load(self):
        self.lose(self.several(devices=1, fault='hang', keys='queue = 64MiB\ndevice_timeout = 1s\n'), 'hang')

    def test_one_of_three_devices_fails_under_load(self):
        d = self.several(devices=3, fault='eio', faulty=1, keys='queue = 64MiB\n')
        self.lose(d, 'eio')
        self.assertEqual(d.status()['backend'], 'cuda', 'the others go on')

    def test_flood_does_not_starve_its_neighbours(self):
        """Connections that send as fast as they can share their loop with one that sends a point now and then, which still gets its
        answers."""
        d = self.daemon(SMALL + 'stride = 65536\n', keys='threads = 1\nloops = 1\n')
        stop = threading.Event()

        def flood(k):
            with d.client() as c:
                handles, t = c.register(*(f'flood {k}/{i}' for i in range(2000))), 0
                columns = struct.pack('<2000d2000I', *([1.0] * 2000), *handles)
                while not stop.is_set():
                    c.send(frame(harness.POINTS, struct.pack('<QQQIBBHq', 0, 0, 0, 2000, 1, 0, 0, START + t * SECOND) + columns))
                    t += 1

        slowest, asked = [], 5 if harness.TSAN else 30 if harness.SANITIZED else 100

        def ask():
            try:
                with d.client() as c:
                    handle = c.register('lone')[0]
                    c.subscribe(SCORED | UNSCORED, 'lone')
                    for i in range(asked):
                        begin = time.monotonic()
                        c.send(points([handle], [START + i * SECOND], [1.0]))
                        c.wait_results(i + 1)
                        slowest.append(time.monotonic() - begin)
                        time.sleep(0.01)
            finally:
                stop.set()

        self.run_all([lambda k=k: flood(k) for k in range(3)] + [ask])
        self.assertEqual(len(slowest), asked)
        self.assertLess(max(slowest), harness.WAIT / 2, slowest)


if __name__ == '__main__':
    harness.main(False)
