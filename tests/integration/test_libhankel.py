"""libhankel, the shared library as it is installed, against the daemon: points over TCP and UDP, results called back, and a daemon that
is restarted in between. The library's unit test has a server that misbehaves; here the daemon is real."""
import ctypes as c
import errno
import os
import signal
import tempfile
import unittest

import harness
from harness import SECOND, START

SCORES, UNSCORED, EVENTS, NOTICES, VALUES = 1, 2, 4, 8, 16
WAIT = harness.WAIT * 1000


class Scores(c.Structure):
    _fields_ = [('n', c.c_uint32), ('name', c.POINTER(c.c_char_p)), ('time', c.POINTER(c.c_int64)), ('value', c.POINTER(c.c_double)),
                ('score', c.POINTER(c.c_float)), ('state', c.POINTER(c.c_uint8)), ('handle', c.POINTER(c.c_uint32)),
                ('sequence', c.POINTER(c.c_uint64))]


ON_SCORES = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Scores))
ON_DISCONNECTED = c.CFUNCTYPE(None, c.c_void_p, c.c_uint64, c.c_char_p)


class Security(c.Structure):
    _fields_ = [('tls', c.c_int), ('ca', c.c_char_p), ('certificate', c.c_char_p), ('key', c.c_char_p), ('token', c.c_char_p),
                ('token_file', c.c_char_p), ('mac', c.c_int), ('token_in_clear', c.c_int)]


class Options(c.Structure):
    _fields_ = [('address', c.c_char_p), ('udp', c.c_char_p), ('client', c.c_char_p), ('buffer', c.c_uint32), ('once', c.c_int), ('handles', c.c_int),
                ('scores', ON_SCORES), ('event', c.c_void_p), ('gap', c.c_void_p), ('connected', c.c_void_p),
                ('disconnected', ON_DISCONNECTED), ('refused', c.c_void_p), ('error', c.c_void_p), ('incident', c.c_void_p), ('arg', c.c_void_p),
                ('security', Security), ('feed', c.c_char_p), ('counts', c.c_int)]


class Counters(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in ('points', 'datagrams', 'refused', 'in_doubt', 'unsent', 'reconnected', 'late', 'rejected', 'counted')]


class Picture(c.Structure):
    _fields_ = [('camera', c.c_char_p), ('time', c.c_int64), ('height', c.c_uint16), ('width', c.c_uint16), ('kind', c.c_int), ('scale', c.c_float), ('offset', c.c_float),
                ('pixels', c.c_void_p)]


def library():
    lib = c.CDLL(os.environ.get('LIBHANKEL', os.path.join(harness.ROOT, 'build', 'proto', 'libhankel.so')))
    lib.hankel_open.restype = c.c_void_p
    lib.hankel_error.restype = c.c_char_p
    lib.hankel_feed_position.restype = c.c_uint64
    for name in ('close', 'error', 'wait', 'flush', 'sync', 'step', 'finish', 'sensor', 'send', 'subscribe', 'count', 'picture', 'feed_position'):
        function = getattr(lib, f'hankel_{name}')
        function.argtypes = [c.c_void_p] + {'sensor': [c.c_char_p], 'send': [c.c_uint32, c.c_int64, c.c_double],
                                            'subscribe': [c.c_char_p, c.c_float, c.c_uint32], 'count': [c.POINTER(Counters)], 'picture': [c.POINTER(Picture), c.c_int], 'feed_position': [],
                                            'close': [], 'error': []}.get(name, [c.c_int])
    return lib


@unittest.skipIf(os.environ.get('HANKEL_SANITIZE', 'none') != 'none', 'an interpreter without the sanitizer cannot load the library')
class LibHankel(harness.Case):
    listens = harness.LISTENERS

    def setUp(self):
        self.lib = library()
        self.d = self.daemon()

    def client(self, udp=False, feed=None):
        self.results, self.breaks = [], []
        take = lambda _, s: self.results.extend((s[0].name[i].decode(), s[0].time[i], s[0].value[i], s[0].score[i], s[0].state[i])
                                                for i in range(s[0].n))
        udp = f"127.0.0.1:{self.d.port['binary udp']}".encode() if udp else None
        self.options = Options(f"127.0.0.1:{self.d.port['binary tcp']}".encode(), udp, b'test', 65536, 0, 0, ON_SCORES(take), None, None,
                               None, ON_DISCONNECTED(lambda _, n, why: self.breaks.append((n, why))), None, None, None, None, Security(), feed)
        h = self.lib.hankel_open(c.byref(self.options))
        self.addCleanup(self.lib.hankel_close, h)
        self.good(h, self.lib.hankel_wait(h, WAIT))
        return h

    def good(self, h, status):
        self.assertGreaterEqual(status, 0, self.lib.hankel_error(h))
        return status

    def feed(self, h, first, n):
        sensors = [self.good(h, self.lib.hankel_sensor(h, f'machine {i}'.encode())) for i in range(3)]
        for i in range(first, first + n):
            self.good(h, self.lib.hankel_send(h, sensors[i % 3], START + i // 3 * SECOND, i * i % 13 / 7))
            if i % 50 == 0:  # so that no socket of the system overflows
                self.good(h, self.lib.hankel_sync(h, WAIT))
        self.good(h, self.lib.hankel_sync(h, WAIT))

    def counted(self, h):
        counters = Counters()
        self.lib.hankel_count(h, c.byref(counters))
        return counters

    def fed_and_scored(self, udp):
        h = self.client(udp)
        self.good(h, self.lib.hankel_subscribe(h, b'machine*', 0.0, SCORES | UNSCORED | VALUES))
        self.feed(h, 0, 600)
        self.good(h, self.lib.hankel_finish(h, WAIT))  # all results have come by then
        return h

    def test_every_point_comes_back_over_tcp_and_udp(self):
        got = []
        for udp in (False, True):
            h = self.fed_and_scored(udp)
            status = self.d.status()
            self.assertEqual(self.balanced(status)['in'], 600)
            self.assertEqual(status['udp']['lost_points'], 0)
            counters = self.counted(h)
            self.assertEqual((counters.points, counters.in_doubt, counters.unsent), (600, 0, 0))
            self.assertEqual(counters.datagrams, status['udp']['datagrams'])
            self.assertEqual(bool(counters.datagrams), udp)
            self.assertEqual(sorted(r[:3] for r in self.results),
                             sorted((f'machine {i % 3}', START + i // 3 * SECOND, i * i % 13 / 7) for i in range(600)))
            got.append(sorted(map(str, self.results)))
            self.d.stop()
            self.d = self.daemon()
        self.assertEqual(*got)

    def test_a_restarted_daemon_is_found_again(self):
        self.d.stop()
        where = harness.LISTENERS.replace('127.0.0.1:0', f'127.0.0.1:{harness.free_port()}', 1)
        self.d = self.daemon(listeners=where)
        h = self.client()
        self.feed(h, 0, 300)
        self.d.stop()
        while not self.breaks:
            self.good(h, self.lib.hankel_step(h, WAIT))
        self.good(h, self.lib.hankel_send(h, 0, START + 100 * SECOND, 1.0))  # kept until the daemon is there
        self.d = self.daemon(listeners=where)
        self.feed(h, 303, 300)
        self.assertEqual(self.balanced(self.d.status())['in'], 301)
        counters = self.counted(h)
        self.assertEqual((counters.reconnected, counters.points, counters.in_doubt), (1, 601, 0))
        self.assertEqual(len(self.breaks), 1)

    def test_pictures_of_a_feed_over_a_kill(self):
        """Pictures and points of a feed, in a daemon that is killed: the library finds it again, and each picture counts once, however often it is sent."""
        self.d.stop()
        where = harness.LISTENERS.replace('127.0.0.1:0', f'127.0.0.1:{harness.free_port()}', 1)
        folder = tempfile.TemporaryDirectory(prefix='hankel-libhankel-')
        self.addCleanup(folder.cleanup)
        tiles = '[detector tiles]\nmatch = oven*/*\nwindow = 8\nalert = off\n[pictures ovens]\nmatch = oven*\ntile = 8\nmedian = off\nsubtract = off\n'
        start = lambda **how: self.daemon(tiles, keys=f'threads = 1\nmax_ahead = off\ndurability = journal\nstate = {folder.name}/state\n', listeners=where, **how)
        self.d = start(ends=-signal.SIGKILL)
        h = self.client(feed=b'ovens')
        door = self.good(h, self.lib.hankel_sensor(h, b'oven 1/door'))
        n, height, width, got, breaks = 12, 16, 24, {}, 0
        subscriber = self.d.client()
        subscriber.subscribe(SCORES | UNSCORED | VALUES, 'oven*')

        def take(results):
            while len(subscriber.results) < results:
                subscriber.drain(0.1)
            for name, time, value, _, state in subscriber.results:
                self.assertEqual((name, time) in got, state == 'late')
                got.setdefault((name, time), value)

        for k in range(n):
            if k == n // 2:
                take(n // 2 * 7 + 12)
                subscriber.close()
                self.d.process.send_signal(signal.SIGKILL)
                self.d.process.wait()
                self.d = start()
                subscriber = self.d.client()
                subscriber.subscribe(SCORES | UNSCORED | VALUES, 'oven*')
            self.good(h, self.lib.hankel_send(h, door, START + k * SECOND, k))
            pixels = (c.c_uint16 * (height * width))(*(100 * (i // width // 8) + 10 * (i % width // 8) + k for i in range(height * width)))
            picture = Picture(b'oven 1', START + k * SECOND, height, width, 1, 0.5, -20, c.cast(pixels, c.c_void_p))
            while (status := self.lib.hankel_picture(h, c.byref(picture), WAIT)) == -errno.ECONNRESET:
                breaks += 1
            self.good(h, status)
            if k % 4 == 1:  # as a program does that does not know whether it has arrived
                self.good(h, self.lib.hankel_picture(h, c.byref(picture), WAIT))
        self.good(h, self.lib.hankel_sync(h, WAIT))
        take(n // 2 * 7 + 6)
        subscriber.close()
        self.assertEqual(len(self.breaks), 1)
        self.assertEqual(self.lib.hankel_feed_position(h), 2 * n + n // 4)
        want = {(f'oven 1/{r},{i}/max', START + k * SECOND): 0.5 * (100 * r + 10 * i + k) - 20 for k in range(n) for r in range(2) for i in range(3)}
        want |= {('oven 1/door', START + k * SECOND): k for k in range(n)}
        self.assertEqual(got, want)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
