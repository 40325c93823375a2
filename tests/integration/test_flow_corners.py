"""Corner cases of the flow: points that arrive together, connections that are half closed, and peers beside a flood."""
import contextlib
import socket
import struct
import threading
import time

import harness
from harness import BYE, FAREWELL, POINTS, SCORED, SECOND, START, STATUS, UNSCORED, VALUES, frame, points, until

ARRIVAL = 4


def now(handle, value):
    """A POINTS frame of one point whose time is that of its arrival."""
    return frame(POINTS, struct.pack('<QQQIBBHdI', 0, 0, 0, 1, ARRIVAL, 0, 0, value, handle))


class Corners(harness.Case):
    listens = harness.LISTENERS

    def flood(self, send):
        """Calls `send` repeatedly in a thread until the test ends."""
        stop = threading.Event()

        def run():
            with contextlib.suppress(OSError):
                while not stop.is_set():
                    send()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(lambda: (stop.set(), thread.join(harness.WAIT)))

    def test_frames_without_times_that_are_read_together(self):
        d = self.daemon()
        with d.client() as c:
            handle = c.register('s')[0]
            c.send(b''.join(now(handle, i) for i in range(30)))
            c.bye()
        p = self.balanced(d.status())
        self.assertEqual((p['in'], p['late']), (30, 0), p)

    def test_a_peer_that_has_ended_its_side_gets_all_it_is_owed(self):
        d = self.daemon('[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\nstride = 65536\n', keys='threads = 1\nqueue = 64MiB\n')
        ticks, n = 9500, 64
        with d.client() as c:
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            handles = c.register(*(f's{i}' for i in range(n)))
            c.subscribe(SCORED | UNSCORED | VALUES)
            for t in range(0, ticks, 100):
                c.send(points(handles * 100, [START + (t + i // n) * SECOND for i in range(100 * n)], [1.0] * (100 * n)))
            c.send(frame(BYE, bytes(16)))
            c.socket.shutdown(socket.SHUT_WR)
            until(lambda: d.status()['points']['pending'] == 0, 'the scores')
            time.sleep(0.5)  # the end of the stream has been seen by now
            got = farewell = 0
            with contextlib.suppress(harness.Closed):
                while True:
                    kind, _, payload = c.receive()
                    got += struct.unpack_from('<I', payload)[0] if kind == harness.SCORES else 0
                    farewell += kind == FAREWELL
        self.assertEqual((got, farewell), (ticks * n, 1))

    def test_a_farewell_does_not_wait_for_the_end_of_a_flood(self):
        # Others fill the UDP socket without end: datagrams from before BYE have been read once one from after it is.
        window = '48\nstride = 65536' if harness.SANITIZED else '256'  # waiting points must be scored before it, however long that takes
        d = self.daemon(f'[detector all]\nmatch = *\nwindow = {window}\ninterval = 1s\nalert = off\n',
                        keys='threads = 1\nbacklog = 65536\nmax_frame = 128KiB\n')
        flooder, udp, n, at = d.client(), d.connect('binary udp'), 4000, [0]
        self.addCleanup(flooder.close)
        self.addCleanup(udp.close)
        handles = flooder.register(*(f'flood {i}' for i in range(n)))
        columns = struct.pack(f'<{n}d{n}I', *([1.0] * n), *handles)

        def send():
            head = struct.pack('<QQQIBBHq', flooder.feed, at[0] + 1, at[0] * n, n, 1, 0, 0, START + at[0] * SECOND)
            udp.send(frame(POINTS, head + columns))
            at[0] += 1

        self.flood(send)
        with d.client() as watcher, d.connect('binary udp') as own:
            until(lambda: watcher.status()['udp']['kernel_lost'] > 1000, 'the flood')
            for i in range(4):
                with d.client() as c:
                    handle = c.register('s')[0]
                    own.send(points([handle], [START + i * SECOND], [1.0], c.feed, 1, 0))
                    c.bye(3, 3)  # two of them were never sent; the flood does not end, so an answer shows that the daemon does not wait for its end

    def test_replies_to_a_subscriber_whose_queue_never_empties(self):
        """Requests are served as long as their replies are read, whatever else is sent on the connection."""
        d = self.daemon('[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\nstride = 65536\n',
                        keys='threads = 2\nqueue = 8MiB\nstuck = off\n')
        feeder, n, at = d.client(), 8000, [0]
        self.addCleanup(feeder.close)
        handles = feeder.register(*(f's{i}' for i in range(n)))
        columns = struct.pack(f'<{n}d{n}I', *([1.0] * n), *handles)

        def send():
            feeder.send(frame(POINTS, struct.pack('<QQQIBBHq', 0, 0, 0, n, 1, 0, 0, START + at[0] * SECOND) + columns))
            at[0] += 1

        with d.client() as c:
            c.subscribe(SCORED | UNSCORED | VALUES)
            self.flood(send)
            last, reports, asked = time.monotonic(), 0, 0
            while reports < 500:
                if asked - reports < 40:
                    c.send(frame(STATUS) * 10)
                    asked += 10
                if c.receive()[0] == harness.REPORT:
                    last, reports = time.monotonic(), reports + 1
                self.assertLess(time.monotonic() - last, harness.WAIT / 2, f'no report for so long after {reports}')
                time.sleep(0.002)

    def test_latency_is_told_leg_by_leg(self):
        daemon = self.daemon()
        with daemon.client() as reader, daemon.client() as feeder:
            handle, = feeder.register('a')
            feeder.send(harness.points([handle], [harness.START], [1.0]))
            feeder.ping()
            harness.until(lambda: feeder.status()['points']['pending'] == 0, 'the point')
            self.assertEqual({leg['p999_us'] for leg in feeder.status()['latency'].values()}, {0}, 'nobody wanted to know')
            reader.subscribe()
            for i in range(1, 20):
                feeder.send(harness.points([handle], [harness.START + i * harness.SECOND], [1.0]))
                reader.wait_results(i)
            legs = feeder.status()['latency']
            self.assertEqual(list(legs), ['gather', 'wait', 'score', 'publish', 'whole'])
            for leg in legs.values():
                self.assertTrue(0 <= leg['p50_us'] <= leg['p99_us'] <= leg['p999_us'] < harness.WAIT * 1e6, legs)
            for leg in ('score', 'publish', 'whole'):
                self.assertGreater(legs[leg]['p50_us'], 0)
            self.assertGreaterEqual(legs['whole']['p999_us'], max(legs[leg]['p999_us'] for leg in legs))

    def test_lines_that_wait_for_room_are_kept(self):
        """Two connections that send more than may be pending: each in turn is parked in the middle of the bytes that were read."""
        d = self.daemon('[detector all]\nmatch = *\nwindow = 64\ninterval = 1ns\nmax_fill = 0\n', keys='threads = 1\nmax_pending = 1024\n')
        count = 4000 if harness.SANITIZED else 40000  # a sensor's scores come one after the other

        def send(k):
            with d.connect('line tcp') as s:
                s.sendall(b''.join(f'waits{k},t=some\\ tag value={i % 7} {START + i}\n'.encode() for i in range(count)))

        threads = [threading.Thread(target=send, args=(k,)) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(harness.WAIT)
        status = until(lambda: (lambda s: s['points']['in'] == 2 * count and s['points']['pending'] == 0 and s)(d.status()), 'all lines')
        p = self.balanced(status)
        self.assertEqual((p['late'], p['dropped'], status['sensors']['count']), (0, 0, 2))
        self.assertFalse([line for line in d.log if 'dropped' in line])

    def test_lines_leave_room_for_frames(self):
        window = 96 if harness.SANITIZED else 512  # what waits at the end has to be scored
        d = self.daemon(f'[detector all]\nmatch = *\nwindow = {window}\ninterval = 1s\nmax_fill = 0\n',
                        keys='threads = 1\nbacklog = 32770\nmax_frame = 128KiB\nmax_pending = 4096\n')
        for k in range(12):
            s = d.connect('line tcp')
            s.settimeout(None)
            self.addCleanup(s.close)
            self.flood(lambda s=s, k=k: s.sendall(f'flood{k} value=1\n'.encode() * 5000))
            self.addCleanup(s.shutdown, socket.SHUT_RDWR)
        with d.client() as c:
            until(lambda: c.status()['batches']['points_waiting'] > 14000, 'the flood')
            c.socket.settimeout(harness.WAIT / 2)
            handle = c.register('s')[0]
            for i in range(5):
                c.send(points([handle], [START + i * SECOND], [1.0]))
                c.ping()


if __name__ == '__main__':
    harness.main(needs_gpu=False)
