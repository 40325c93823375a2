"""Delivery over restarts: feeds whose points count once, and events from a position on, with the clients that people use: the Python
client, `hankel feed` and `hankel tail` by libhankel, and lines of the text protocol."""
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import harness
from harness import SECOND, START, until

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402

DETECTOR = 'window=8,rank=2,interval=1s,alert=0.6'
SENSORS = 4
LATE = 50000


def value(sensor, n):
    return float(10 * ((n // (30 + sensor)) % 2) + (n * 7 + sensor) % 5 * 0.125)


class Delivery(harness.Case):
    def setUp(self):
        self.state = tempfile.TemporaryDirectory(prefix='hankeld-delivery-')
        self.addCleanup(self.state.cleanup)
        self.port, self.text = harness.free_port(), harness.free_port()
        self.listeners = (f'[listen binary]\nprotocol = binary\naddress = 127.0.0.1:{self.port}\n'
                          f'[listen text]\nprotocol = text\naddress = 127.0.0.1:{self.text}\n')
        self.d = None
        self.start()
        self.addCleanup(lambda: self.d.clean())

    def start(self):
        keys = f'threads = 2\ndurability = journal\nstate = {self.state.name}\n'
        self.d = harness.Daemon(harness.section('all', 'sensor*', DETECTOR), keys=keys, listeners=self.listeners)

    def kill(self):
        self.d.process.send_signal(signal.SIGKILL)
        self.d.process.wait(harness.WAIT)
        self.d.clean()

    def kill_and_start(self, times=2, after=0.3):
        for _ in range(times):
            time.sleep(after)
            self.kill()
            self.start()

    def killer(self, *arguments):
        """A thread that kills the daemon and starts it again. It must end before the test; otherwise its last daemon would outlive both and hold
    their output open."""
        thread = threading.Thread(target=self.kill_and_start, args=arguments)
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def client(self, **how):
        c = hankel.Client(f'127.0.0.1:{self.port}', timeout=harness.WAIT, patience=harness.WAIT, **how)
        self.addCleanup(c.close)
        return c

    def recording(self, points):
        path = os.path.join(self.state.name, 'points.csv')
        with open(path, 'w') as f:
            f.write('time,' + ','.join(f'sensor {s}' for s in range(SENSORS)) + '\n')
            for n in range(points):
                f.write(f'{START // SECOND + n},' + ','.join(repr(value(s, n)) for s in range(SENSORS)) + '\n')
        return path

    def expected(self, points):
        """Events of `hankel replay`: (id, kind, time, instant)."""
        rows, events = harness.replay(self.recording(points), DETECTOR)
        self.assertEqual(len(rows), points * SENSORS)
        self.assertGreater(len(events), 10)
        return {(e[0], e[2], int(e[3]), int(e[4])) for e in events}, len(events)

    def test_python_client(self):
        points = 500
        watcher = self.client()
        watcher.subscribe('sensor*', scores=False, notices=False, since=0)
        feeder = self.client(feed='recording')
        self.assertEqual(feeder.position, 0)
        killer = self.killer()
        for n in range(points):
            for s in range(SENSORS):
                feeder.send(f'sensor {s}', START + n * SECOND, value(s, n))
                feeder.send('nobody wants it', START + n * SECOND, 1.0)
            if n % 50 == 0:
                feeder.sync()
                time.sleep(0.1)
        feeder.sync()
        killer.join()
        self.assertEqual(feeder.position, 2 * points * SENSORS)
        self.d.process.send_signal(signal.SIGSTOP)
        killer = self.killer(1)  # while the feeder takes leave
        feeder.finish()
        killer.join()
        expected, n = self.expected(points)
        got = [until(lambda: watcher.read(harness.WAIT), 'an event') for _ in range(n)]
        self.assertEqual({(f'{e.sensor}:{e.number}', e.kind, e.time, e.instant) for e in got}, expected)
        self.assertEqual([e.position for e in got], list(range(1, n + 1)))
        again = self.client(feed='recording')
        self.assertEqual(again.position, 2 * points * SENSORS - 1)  # the last one was refused, and never sent
        late = self.client()
        late.subscribe('sensor 1', scores=False, notices=False, since=got[n // 2].position)
        rest = [e for e in got[n // 2 + 1:] if e.sensor == 'sensor 1']
        self.assertEqual([until(lambda: late.read(harness.WAIT), 'an event') for _ in rest], rest)
        ahead = self.client()
        ahead.subscribe('sensor*', scores=False, since=n + 100)  # of a log that is not this one
        self.assertEqual(ahead.read(harness.WAIT), hankel.Gap(0, (1 << 63) - 1))

    def test_asyncio(self):
        """Three tasks: one reads events, two send points of one feed, over kills and an end in good order."""
        points = 400

        async def main():
            how = {'timeout': harness.WAIT, 'patience': harness.WAIT}
            address = f'127.0.0.1:{self.port}'
            expected, n = self.expected(points)
            async with hankel.AsyncClient(address, **how) as watcher, hankel.AsyncClient(address, feed='asyncio', **how) as feeder:
                await watcher.subscribe('sensor*', scores=False, notices=False, since=0)
                self.assertEqual(feeder.position, 0)
                turns = [asyncio.Lock() for _ in range(points)]

                async def send(every):
                    for k in range(points):
                        async with turns[k]:
                            for s in range(every, SENSORS, 2):
                                await feeder.send(f'sensor {s}', START + k * SECOND, value(s, k))
                            await feeder.send('nobody wants it', START + k * SECOND, 1.0)
                        if k % 20 == 0:
                            await feeder.sync()
                            await asyncio.sleep(0.05)

                killer = self.killer()
                read = asyncio.create_task(self.read_all(watcher, n))
                await asyncio.gather(send(0), send(1))
                await asyncio.to_thread(killer.join)
                await asyncio.to_thread(self.stop_and_start)
                await feeder.sync()
                self.assertEqual(feeder.position, points * (SENSORS + 2))
                for _ in range(LATE):  # killed while these are on their way
                    await feeder.send('sensor 0', START, 1.0)
                await feeder.flush()
                self.d.process.send_signal(signal.SIGKILL)
                self.assertLess(feeder.position, points * (SENSORS + 2) + LATE)
                await asyncio.to_thread(self.kill_and_start, 1, 0)
                await feeder.sync()
                got = await read
                self.d.process.send_signal(signal.SIGSTOP)
                killer = self.killer(1)
                await feeder.finish()
                await asyncio.to_thread(killer.join)
                self.assertEqual({(f'{e.sensor}:{e.number}', e.kind, e.time, e.instant) for e in got}, expected)
                self.assertEqual([e.position for e in got], list(range(1, n + 1)))
            async with hankel.AsyncClient(address, feed='asyncio', **how) as again:
                self.assertEqual(again.position, points * (SENSORS + 2) + LATE)
                await again.send('sensor 0', START + points * SECOND, 1.0)
                await again.sync()
                self.assertEqual(again.position, points * (SENSORS + 2) + LATE + 1)

        asyncio.run(asyncio.wait_for(main(), 3 * harness.WAIT))
        self.assertEqual(self.d.status()['sensors']['count'], SENSORS)

    @unittest.skipUnless(shutil.which('node'), 'there is no node')
    def test_node(self):
        """The same as with asyncio, by the client for Node."""
        points = 400
        expected, n = self.expected(points)
        node = subprocess.Popen(['node', os.path.join(os.path.dirname(os.path.abspath(__file__)), 'node_client.mjs'), 'delivery', f'127.0.0.1:{self.port}', str(points), str(n), str(LATE)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(node.stdout.close)
        self.addCleanup(node.stdin.close)
        self.addCleanup(node.wait, harness.WAIT)
        self.addCleanup(node.kill)
        self.assertEqual(node.stdout.readline(), 'connected\n')
        killer = self.killer()
        self.assertEqual(int(node.stdout.readline() or 0), 2 * points * SENSORS)
        killer.join()
        self.assertLess(int(node.stdout.readline() or LATE * LATE), 2 * points * SENSORS + LATE)
        self.kill_and_start(1, 0)
        self.assertEqual(int(node.stdout.readline() or 0), 2 * points * SENSORS + LATE)
        got = [json.loads(node.stdout.readline()) for _ in range(n)]
        self.assertEqual({(id_, kind, int(time_), int(instant)) for id_, kind, time_, instant, _ in got}, expected)
        self.assertEqual([position for *_, position in got], list(range(1, n + 1)))
        self.d.process.send_signal(signal.SIGSTOP)
        node.stdin.write('go\n')
        node.stdin.flush()
        self.assertEqual(node.stdout.readline(), 'leaving\n')
        self.kill_and_start(1)
        self.assertEqual(node.wait(2 * harness.WAIT), 0)

    async def read_all(self, watcher, n):
        return [await watcher.read() for _ in range(n)]

    def test_asyncio_reset_at_once(self):
        """A connection that is reset before the client looks at it, as when a daemon is killed with connections in its backlog: the client goes on to
        connect."""
        address = ('127.0.0.1', self.port)
        opened = asyncio.open_connection
        unseen = 0  # connections that were over as soon as they stood

        async def open_and_count(*how, **more):
            nonlocal unseen
            reader, writer = await opened(*how, **more)
            unseen += writer.get_extra_info('peername') is None
            return reader, writer

        def reset_all():
            with socket.create_server(address) as listener:
                listener.settimeout(0.1)
                while not unseen:
                    with contextlib.suppress(TimeoutError):
                        c, _ = listener.accept()
                        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                        c.close()
            self.start()

        async def main():
            async with hankel.AsyncClient(f'127.0.0.1:{self.port}', feed='reset', timeout=harness.WAIT, patience=harness.WAIT) as feeder:
                await feeder.send('sensor 0', START, 1.0)
                await feeder.sync()
                self.kill()
                resetting = asyncio.create_task(asyncio.to_thread(reset_all))
                await feeder.send('sensor 0', START + SECOND, 1.0)
                await feeder.sync()
                await resetting
                self.assertEqual(feeder.position, 2)

        with unittest.mock.patch('asyncio.open_connection', open_and_count):
            asyncio.run(asyncio.wait_for(main(), 2 * harness.WAIT))

    def stop_and_start(self):
        self.assertEqual(self.d.stop(), 0)
        self.d.clean()
        self.start()

    def test_command_line(self):
        points = 400
        path = self.recording(points)
        tail = subprocess.Popen([harness.HANKEL, 'tail', '--from', f'127.0.0.1:{self.port}', '--events', '--since', '0', '--forever',
                                 '--format', 'jsonl'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.stderr.close)
        self.addCleanup(tail.wait, harness.WAIT)
        self.addCleanup(tail.kill)
        self.assertIn('subscribed', tail.stderr.readline())
        feed = [harness.HANKEL, 'feed', '--to', f'127.0.0.1:{self.port}', '--feed', 'file', '--rate', '500', path]
        first = subprocess.Popen(feed, stdout=subprocess.DEVNULL)  # ended by a signal, in the middle
        until(lambda: self.d.status()['durability']['shards'][0]['committed'] > 0, 'the first points')
        first.kill()
        first.wait(harness.WAIT)
        before = self.d.status()['points']['in']
        second = subprocess.Popen(feed, stdout=subprocess.PIPE, text=True)
        until(lambda: self.d.status()['points']['in'] > before, 'the next points')  # a first connection that is refused is an error
        self.kill_and_start(1)
        out, _ = second.communicate(timeout=harness.WAIT)
        self.assertEqual(second.returncode, 0)
        self.assertRegex(out, 'has [0-9]+ points of file already')
        out = subprocess.run(feed, check=True, capture_output=True, text=True, timeout=harness.WAIT)
        self.assertIn(f'has {points * SENSORS} points of file already', out.stdout)
        expected, n = self.expected(points)
        events = [json.loads(tail.stdout.readline()) for _ in range(n)]
        self.assertEqual({(e['id'], e['event'], e['time'], e['instant']) for e in events}, expected)
        self.assertEqual([e['position'] for e in events], list(range(1, n + 1)))
        with socket.create_connection(('127.0.0.1', self.text), harness.WAIT) as s, s.makefile() as lines:
            s.sendall(f'events,since={n - 3} sensor*\n'.encode())
            got = []
            while len(got) < 3:
                line = json.loads(lines.readline())
                if 'event' in line:
                    got.append(line)
            self.assertEqual(got, events[-3:])

    def test_a_position_beyond_the_log(self):
        for form, shown in (('jsonl', '{"gap":{"results":0,"events":9223372036854775807}}'), ('csv', '#gap,0,9223372036854775807')):
            tail = subprocess.Popen([harness.HANKEL, 'tail', '--from', f'127.0.0.1:{self.port}', '--events', '--since', '7', '--format', form],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(tail.stdout.close)
            self.addCleanup(tail.stderr.close)
            self.addCleanup(tail.wait, harness.WAIT)
            self.addCleanup(tail.kill)
            said = {tail.stderr.readline(), tail.stderr.readline()}
            self.assertIn("hankel tail: position 7 lies beyond the end of the daemon's event log, which is not the one it came from: how many are missing "
                          'is unknown, and events from now on follow\n', said)
            self.assertEqual(tail.stdout.readline(), shown + '\n')


if __name__ == '__main__':
    harness.main()
