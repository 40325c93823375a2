#!/usr/bin/env python3
"""The Python package with the daemon: details of results, asyncio, columns of numpy, frames of pandas, and its types."""
import asyncio
import importlib.util
import math
import os
import socket
import subprocess
import sys
import threading
import unittest

SYSTEM = '/usr/bin/python3'  # Debian's Python has Debian's packages; another Python may precede it in PATH
if not importlib.util.find_spec('numpy') and sys.executable != SYSTEM and os.path.exists(SYSTEM) and 'HANKEL_PYTHON' not in os.environ:
    os.execve(SYSTEM, [SYSTEM, *sys.argv], {**os.environ, 'HANKEL_PYTHON': SYSTEM})

import harness  # noqa: E402
from harness import SANITIZED, SECOND, START, until  # noqa: E402

PYTHON = os.path.join(harness.ROOT, 'proto', 'python')
sys.path.insert(0, PYTHON)
import hankeld  # noqa: E402

HAS_NUMPY, HAS_PANDAS = (bool(importlib.util.find_spec(name)) for name in ('numpy', 'pandas'))
if HAS_NUMPY:
    import numpy
if HAS_PANDAS:
    import pandas
DETECTOR = '[detector all]\nmatch = warm*\nwindow = 8\ninterval = 1s\nalert = 0.6\n'
WAIT = harness.WAIT


def value(k):
    return math.sin(k) + (50 if k >= 40 else 0)


class Package(harness.Case):
    def setUp(self):
        self.d = self.daemon(DETECTOR)
        self.address = f"127.0.0.1:{self.d.port['binary tcp']}"

    def client(self, **how):
        c = hankeld.Client(self.address, timeout=WAIT, **how)
        self.addCleanup(c.close)
        return c

    def all(self, client, n):
        """n items."""
        return [until(lambda: client.read(WAIT), 'an item') for _ in range(n)]


class TestDetails(Package):
    def test_maintenance_is_told_without_being_asked_for(self):
        watcher = self.client()
        watcher.subscribe(scores=False)
        with self.client() as c:
            c.send('warm', START, value(0))
            c.sync()
            self.assertTrue(c.maintain('warm*', 10**9)[0])
            for k in range(1, 60):
                c.send('warm', START + k * SECOND, value(k))
            c.sync()
        event = self.all(watcher, 1)[0]
        self.assertEqual((event.kind, event.channel, event.sensor), ('raised', 'score', 'warm'))
        self.assertGreater(event.severity, 0)
        self.assertIs(event.maintenance, False)  # the window is now, the points are of 2020
        self.assertEqual(hankeld.level(event.severity), 'notice' if event.severity < 2.5 else 'warning')

    def test_those_within_a_window_say_so(self):
        import time
        now = time.time_ns() // SECOND * SECOND - 30 * SECOND
        watcher = self.client()
        watcher.subscribe(scores=False)
        with self.client() as c:
            c.maintain('warm*', 3600)
            for k in range(42):
                c.send('warm', now + 60 * SECOND + k * SECOND, value(k))
            c.sync()
        self.assertIs(self.all(watcher, 1)[0].maintenance, True)


class TestAsync(Package):
    def run_async(self, main):
        asyncio.run(asyncio.wait_for(main, WAIT))

    def test_points_results_and_requests(self):
        async def main():
            async with hankeld.AsyncClient(self.address, timeout=WAIT) as watcher, hankeld.AsyncClient(self.address, timeout=WAIT) as c:
                self.assertRegex(c.server, 'hankeld')
                await watcher.subscribe('warm*', unscored=True, values=True)
                for k in range(5000):
                    await c.send(f'warm {k % 2}', START + k // 2 * SECOND, float(k))
                await c.sync()
                got, kinds = [], []
                async for item in watcher:
                    (got if isinstance(item, hankeld.Result) else kinds).append(item)
                    if len(got) == 5000:
                        break
                self.assertEqual(sorted(int(r.value) for r in got), list(range(5000)))
                self.assertEqual([s['state'] async for s in c.sensors('warm 0')], ['ok'])
                status, (done, said), late = await asyncio.gather(c.status(), c.acknowledge('warm 0', by='anna'), c.read(0.01))
                self.assertEqual((status['points']['in'], done, late), (5000, False, None))
                self.assertIn('warm 0', said)
                self.assertEqual((await c.maintain('warm*', 60))[0], True)
                self.assertEqual((await c.reload())[0], True)
                await watcher.unsubscribe()
                await c.finish()
                with self.assertRaises(ConnectionError):
                    await c.status()
        self.run_async(main())

    def test_a_refused_sensor_and_errors(self):
        async def main():
            async with hankeld.AsyncClient(self.address, timeout=WAIT) as c:
                await c.send('cold', START, 1.0)
                await c.send('warm', START, 1.0)
                await c.sync()
                self.assertEqual((set(c.refused), (await c.status())['points']['in']), ({'cold'}, 1))
                with self.assertRaises(hankeld.Error) as told:
                    await c.subscribe(min_score=7.0)
                self.assertEqual(told.exception.code, 9)
        self.run_async(main())

    def test_the_end_of_the_daemon_ends_what_waits(self):
        async def main():
            async with hankeld.AsyncClient(self.address, timeout=WAIT) as c:
                await c.subscribe()
                ended = asyncio.ensure_future(self.collect(c))
                stop = threading.Thread(target=self.d.stop)
                stop.start()
                self.assertEqual(await ended, [])
                with self.assertRaises(ConnectionError):
                    await c.status()
                stop.join()
        self.run_async(main())

    async def collect(self, client):
        try:
            return [item async for item in client]
        except hankeld.Error as fault:  # it says that it ends
            self.assertEqual(fault.code, 13)
            return []

    def test_nobody_there(self):
        self.d.stop()

        async def main():
            with self.assertRaises(OSError):
                await hankeld.AsyncClient(self.address).connect()
        self.run_async(main())

    def test_a_connection_that_is_reset_as_it_begins(self):
        """The connection is reset after each number of steps of the loop: a client that reconnects by itself must see an OSError, and nothing else."""
        async def main():
            for steps in range(12):
                server = socket.create_server(('127.0.0.1', 0))
                client = hankeld.AsyncClient(f'127.0.0.1:{server.getsockname()[1]}', timeout=WAIT)
                connecting = asyncio.create_task(client.connect())
                for _ in range(steps):
                    await asyncio.sleep(0)
                server.close()  # its end resets connections that it has not accepted
                with self.subTest(steps=steps), self.assertRaises(OSError):
                    await connecting
        self.run_async(main())

    def test_a_token_does_not_go_in_clear(self):
        with self.assertRaises(PermissionError):
            hankeld.client._hello('192.0.2.1:7410', 'x', 'secret', False, None, False, '192.0.2.1')


@unittest.skipUnless(HAS_NUMPY, 'there is no numpy')
class TestColumns(Package):
    def test_in_and_out(self):
        n = 10000
        times = START + numpy.arange(n) * SECOND
        values = numpy.sin(numpy.arange(n))
        watcher = self.client()
        watcher.subscribe(unscored=True, values=True, columns=True, sequences=True)
        with self.client() as c:
            c.send_columns('warm', times, values)
            c.send_columns(['warm a', 'cold', 'warm a', 'warm b'], [START, START, START + 1, START], [1, 2, 3, 4])
            c.send_columns('warm d', times[:3].astype('datetime64[ns]'), values[:3].astype('float32'))
            c.sync()
            self.assertEqual(set(c.refused), {'cold'})
            with self.assertRaises(ValueError):
                c.send_columns('warm', times, values[1:])
        got = {}
        while sum(map(len, got.values())) < n + 6:
            item = until(lambda: watcher.read(WAIT), 'results')
            if isinstance(item, hankeld.Scores):
                self.assertEqual((item.time.dtype, item.value.dtype, item.score.dtype, item.state.dtype), ('int64', 'float64', 'float32', 'uint8'))
                for of, *row in zip(item.sensor, item.time, item.value, item.score, item.state):
                    got.setdefault(item.names[of], []).append(row)
        mine = got['warm']
        self.assertEqual([r[0] for r in mine], times.tolist())
        self.assertEqual([r[1] for r in mine], values.tolist())
        self.assertEqual(([r[1] for r in got['warm a']], [r[1] for r in got['warm b']]), ([1, 3], [4]))
        self.assertEqual([r[0] for r in got['warm d']], times[:3].tolist())
        self.assertTrue(all(math.isnan(r[2]) and r[3] == 0 for r in mine[:22]) and all(0 <= r[2] <= 1 and r[3] == 1 for r in mine[22:]))

    def test_the_same_as_one_by_one(self):
        """For each format in which the daemon sends times and states."""
        plain, columns = self.client(), self.client()
        plain.subscribe('warm*', unscored=True, values=True)
        columns.subscribe('warm*', unscored=True, values=True, columns=True)
        with self.client() as c:
            for step in (0, 1, 1000, 10**10):
                for k in range(30):
                    for sensor in range(5):
                        c.send(f'warm {step} {sensor}', START + k * SECOND + sensor * step * (sensor % 2 + 1), value(k))
                c.sync()
        one_by_one = [r for r in self.all(plain, 600) if isinstance(r, hankeld.Result)]
        rows = []
        while len(rows) < len(one_by_one):
            item = until(lambda: columns.read(WAIT), 'results')
            if isinstance(item, hankeld.Scores):
                rows += [(item.names[of], time, v, None if math.isnan(score) else score, hankeld.STATES[state])
                         for of, time, v, score, state in zip(item.sensor, item.time.tolist(), item.value.tolist(), item.score.tolist(), item.state)]
        self.assertEqual(sorted(rows[:len(one_by_one)], key=lambda r: r[:2]), sorted((r[:5] for r in one_by_one), key=lambda r: r[:2]))

    def test_with_a_feed_each_counts_once(self):
        times, values = START + numpy.arange(100) * SECOND, numpy.arange(100.0)
        for _ in range(2):
            with self.client(feed='file') as c:
                c.send_columns('warm', times[c.position:], values[c.position:])
                c.sync()
                self.assertEqual(c.position, 100)
        self.assertEqual(self.d.status()['points']['in'], 100)

    def test_columns_with_asyncio(self):
        async def main():
            async with hankeld.AsyncClient(self.address, timeout=WAIT) as c:
                await c.subscribe(unscored=True, columns=True)
                await c.send_columns('warm', START + numpy.arange(50) * SECOND, numpy.arange(50.0))
                await c.sync()
                n = 0
                while n < 50:
                    n += len((await c.read(WAIT)).time)
        asyncio.run(main())

    @unittest.skipUnless(HAS_PANDAS, 'there is no pandas')
    def test_frames(self):
        frame = pandas.DataFrame({'a': [1.0, 2.0, None], 'b': [4, 5, 6]}, index=pandas.to_datetime(START + numpy.arange(3) * SECOND, utc=True))
        watcher = self.client()
        watcher.subscribe(unscored=True, values=True, columns=True)
        with self.client() as c:
            c.send_frame(frame[:1], prefix='warm ')
            c.send_frame(frame[1:].tz_convert('Asia/Tokyo'), prefix='warm ')
            c.sync()
            with self.assertRaises(TypeError):
                c.send_frame(pandas.DataFrame({'a': [1.0]}, index=['x']))
        frames = []
        while sum(map(len, frames)) < 5:
            frames.append(until(lambda: watcher.read(WAIT), 'results').frame())
        got = pandas.concat([f.astype({'sensor': str}) for f in frames]).sort_values(['sensor', 'value'])
        self.assertEqual(list(zip(got['sensor'], got['value'])), [('warm a', 1.0), ('warm a', 2.0), ('warm b', 4.0), ('warm b', 5.0), ('warm b', 6.0)])
        self.assertEqual([t.value for t in got.index], [START, START + SECOND, START, START + SECOND, START + 2 * SECOND])
        self.assertEqual(set(got['state'].astype(str)), {'warming'})


class TestTypes(unittest.TestCase):
    @unittest.skipIf(SANITIZED, 'it starts no program of ours')
    @unittest.skipUnless(importlib.util.find_spec('mypy'), 'there is no mypy')
    def test_strictly(self):
        run = subprocess.run([sys.executable, '-m', 'mypy', '--no-incremental', '--cache-dir', os.devnull, '--config-file', os.path.join(PYTHON, 'pyproject.toml'), os.path.join(PYTHON, 'hankeld')],
                             capture_output=True, text=True, timeout=WAIT)
        self.assertEqual((run.returncode, run.stderr), (0, ''), run.stdout)


if __name__ == '__main__':
    harness.main()
