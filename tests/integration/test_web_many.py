"""A thousand open pages and streams: all of them get an alert, the memory of a slow one is bounded, and a scrape is answered meanwhile.

Run by hand it prints its measurements; PAGES is the number of pages: PAGES=100 HANKELD=... HANKEL=... python3 test_web_many.py"""
import os
import resource
import selectors
import socket
import statistics
import time

import harness
import web
from harness import START, WAIT, until
from test_web_socket import Socket

PAGES = int(os.environ.get('PAGES', 100 if harness.SANITIZED else 1000))
STREAM = b'GET /api/v1/stream?what=events HTTP/1.1\r\nHost: localhost\r\n\r\n'


class Many(web.Api):
    def setUp(self):
        """Raises the limit of descriptors: a page has two connections, and the daemon holds the other ends."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 8 * PAGES:
            self.skipTest(f'{8 * PAGES} descriptors are needed (ulimit -Hn)')
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 8 * PAGES), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def open(self, d):
        """Opens pages: half of them use Server-Sent Events, half a WebSocket; each also sends a page's requests over a connection that it keeps, all at
    the same time. Returns their streams."""
        kept = [self.connect(d) for _ in range(PAGES)]
        for path in 'status', 'alerts', 'incidents':
            for c in kept:
                c.request('GET', '/api/v1/' + path)
            for c in kept:
                answer = c.getresponse()
                answer.read()
                self.assertEqual(answer.status, 200)
        streams = [self.raw(d) for _ in range(0, PAGES, 2)]
        for s in streams:
            s.sendall(STREAM)
        sockets = [Socket(d, '?what=events') for _ in range(1, PAGES, 2)]
        for s in sockets:
            self.addCleanup(s.close)
        return streams + [s.socket for s in sockets]

    def hear(self, streams, what):
        """Seconds until each of them has been sent the alert."""
        begun, left = time.monotonic(), len(streams)
        with selectors.DefaultSelector() as ready:
            for s in streams:
                s.setblocking(False)
                ready.register(s, selectors.EVENT_READ, [b''])
            while left:
                self.assertLess(time.monotonic() - begun, WAIT, f'{left} have heard nothing')
                for key, _ in ready.select(1):
                    key.data[0] += key.fileobj.recv(1 << 16)
                    if what in key.data[0]:
                        ready.unregister(key.fileobj)
                        left -= 1
        return time.monotonic() - begun

    def scrapes(self, d, n=20):
        """Times of scrapes of the metrics, ms, ascending."""
        c, took = self.connect(d), []
        for _ in range(n):
            begun = time.perf_counter()
            c.request('GET', '/metrics')
            c.getresponse().read()
            took.append(1e3 * (time.perf_counter() - begun))
        return sorted(took)

    def test_many_pages_and_a_slow_one(self):
        most = 4 * PAGES
        d = self.web(keys=f'max_connections = {most}\nmax_connections_per_address = {most}\nqueue = 65536\n')
        before = d.rss()
        streams = self.open(d)
        until(lambda: d.status()['subscribers']['count'] == PAGES, 'all to be subscribed')
        held = d.rss() - before
        idle = self.scrapes(d)
        slow = socket.socket()
        self.addCleanup(slow.close)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.connect(('127.0.0.1', d.port['http tcp']))
        slow.sendall(STREAM.replace(b'what=events', b'what=results'))
        until(lambda: d.status()['subscribers']['count'] == PAGES + 1, 'the slow one to be subscribed')
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(500)))
            for k in range(200):
                c.send(harness.points(handles, [START + k * 10**9] * 500, [1.0] * 500))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
            until(lambda: c.status()['subscribers']['gap_results'] > 0, 'results to be left out for the slow one')
        self.assert_grew_less(d, before + held, 48 << 20)
        self.step(d)
        took = self.hear(streams, b'"event":"raised"')
        busy = self.scrapes(d)
        slow.settimeout(WAIT)
        got = b''
        while b'event: gap\n' not in got:
            more = slow.recv(1 << 16)
            self.assertTrue(more)
            got = got[-100:] + more
        print(f'# {PAGES} pages with {2 * PAGES} connections: {held / 2**20:.0f} MiB, {held / PAGES / 1024:.0f} KiB each; an alert that stands was read by all after {took:.2f} s; '
              f'/metrics median {statistics.median(idle):.1f} ms, at most {idle[-1]:.1f}, after the alert {statistics.median(busy):.1f} and {busy[-1]:.1f} ms')
        self.assertEqual(d.status()['subscribers']['count'], PAGES + 1)  # none was lost meanwhile


if __name__ == '__main__':
    harness.main()
