"""HTTP: answers, access control, and slow or greedy peers, which do not delay others."""
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import harness
import web
from harness import WAIT, until

NAMES = {'operator': 'admin', 'viewer': 'subscribe', 'feeder': 'feed'}


def token_of(name):
    return f'hkt_{name}_' + 'x' * 20


class Web(web.Web):
    def ask_of(self, c, *what, **headers):
        """The body as text."""
        status, headers, body = super().ask_of(c, *what, **headers)
        return status, headers, body.decode()


class Answers(Web):
    def test_health_and_readiness(self):
        d = self.web()
        status, headers, body = self.ask(d, '/healthz')
        self.assertEqual((status, body), (200, 'ok\n'))
        self.assertEqual(headers['x-content-type-options'], 'nosniff')
        status, headers, body = self.ask(d, '/readyz')
        self.assertEqual((status, json.loads(body)), (200, {'ready': True, 'reasons': []}))
        self.assertEqual(headers['content-type'], 'application/json')

    def test_unknown_paths_methods_and_hosts(self):
        d = self.web()
        status, headers, body = self.ask(d, '/nothing')
        self.assertEqual((status, headers['content-type'], json.loads(body)['status']), (404, 'application/problem+json', 404))
        status, headers, _ = self.ask(d, '/metrics', method='DELETE')
        self.assertEqual((status, headers['allow']), (405, 'GET, HEAD'))
        c = self.connect(d)
        c.request('POST', '/healthz', body=b'x' * 1000)
        self.assertEqual(c.getresponse().status, 405)
        for host in 'evil.example', 'evil.example:7413', '127.0.0.1.evil.example', 'localhost.evil.example', '10.0.0.1', '[::2]':
            self.assertEqual(self.ask(d, '/metrics', Host=host)[0], 421, host)
        for host in 'localhost', 'LOCALHOST:7413', '127.0.0.1', '127.1.2.3:1', '[::1]:7413':
            self.assertEqual(self.ask(d, '/metrics', Host=host)[0], 200, host)

    def test_head_and_many_requests_of_one_connection(self):
        d = self.web()
        c = self.connect(d)
        for _ in range(50):
            c.request('HEAD', '/metrics')
            head = c.getresponse()
            self.assertEqual((head.status, head.read()), (200, b''))
            self.assertGreater(int(head.headers['content-length']), 1000)
            c.request('GET', '/metrics?some=query')
            r = c.getresponse()
            self.assertEqual(len(r.read()), int(r.headers['content-length']))
        self.assertEqual(d.status()['connections']['accepted'], 2)  # this one, and the status'

    def test_a_websocket_is_refused_and_nothing_is_of_the_web_that_is_not_asked_for(self):
        d = self.web()
        for protocol in 'websocket', 'h2c':
            with self.assertRaises((http.client.HTTPException, OSError)):
                self.ask(d, '/metrics', Connection='Upgrade, HTTP2-Settings', Upgrade=protocol, Sec_WebSocket_Version='13',
                         Sec_WebSocket_Key='dGhlIHNhbXBsZSBub25jZQ==', HTTP2_Settings='AAMAAABkAAQAAP__')
        self.assertEqual(self.ask(d, '/healthz')[0], 200)
        self.assertNotIn('http tcp', self.daemon().port)


class Metrics(Web):
    def values(self, text):
        return {k: float(v) for k, v in re.findall(r'^(\w+(?:\{[^}]*\})?) (\S+)$', text, re.M)}

    def test_they_are_what_the_status_says(self):
        d = self.web()
        self.feed(d, 3, 40)
        got, status = self.values(self.ask(d, '/metrics')[2]), d.status()
        for section in 'points', 'dropped', 'input', 'lines', 'udp', 'events', 'batches':
            named = {k: v for k, v in got.items() if k.startswith(f'hankel_{section}_') and k.endswith('_total')}
            self.assertTrue(named, section)
            for name, value in named.items():
                if section != 'input' or 'frames' not in name:  # each status is a frame
                    self.assertEqual(value, status[section][name[len(f'hankel_{section}_'):-len('_total')]], name)
        self.assertEqual(got['hankel_points_in_total'], 120)
        self.assertEqual(got['hankel_sensors'], 3)
        self.assertEqual(got['hankel_alerts_standing{channel="shift"}'], 0)

    def test_histograms_grow_and_end_with_all(self):
        d = self.web()
        with d.client() as c:
            c.subscribe()
            self.feed(d, 3, 40)
            c.wait_results(120)
            text = until(lambda: (lambda t: t if self.values(t)['hankel_latency_seconds_count{leg="whole"}'] == 120 else None)(
                self.ask(d, '/metrics')[2]), 'the latency of 120 points')
        got = self.values(text)
        buckets = [v for k, v in got.items() if k.startswith('hankel_latency_seconds_bucket{leg="whole"')]
        self.assertEqual(buckets, sorted(buckets))
        self.assertEqual(buckets[-1], 120)
        self.assertGreater(got['hankel_latency_seconds_sum{leg="whole"}'], 0)

    def test_as_large_with_many_sensors(self):
        d = self.web()
        self.feed(d, 2, 2)
        few = len(self.ask(d, '/metrics')[2])
        self.feed(d, 3000, 2)
        self.assertLess(abs(len(self.ask(d, '/metrics')[2]) - few), 500)

    def test_openmetrics(self):
        d = self.web()
        _, headers, text = self.ask(d, '/metrics', Accept='application/openmetrics-text; version=1.0.0,text/plain;q=0.5')
        self.assertIn('openmetrics', headers['content-type'])
        self.assertTrue(text.endswith('\n# EOF\n'))
        kinds, family = {}, None
        for line in text.splitlines()[:-1]:
            word = line.split(' ', 3)
            if word[:2] == ['#', 'TYPE']:
                family = word[2]
                self.assertNotIn(family, kinds)
                kinds[family] = word[3]
            elif word[0] != '#':
                name = re.match(r'\w+', line)[0]
                ends = {'counter': ['_total'], 'gauge': [''], 'histogram': ['_bucket', '_sum', '_count']}[kinds[family]]
                self.assertIn(name, [family + end for end in ends])
        self.assertNotIn('EOF', self.ask(d, '/metrics')[2])

    @unittest.skipUnless(shutil.which('promtool'), 'promtool is not here')
    def test_promtool_finds_nothing(self):
        d = self.web()
        done = subprocess.run(['promtool', 'check', 'metrics'], input=self.ask(d, '/metrics')[2], capture_output=True, text=True,
                              timeout=WAIT)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))

    @unittest.skipUnless(shutil.which('curl'), 'curl is not here')
    def test_curl(self):
        d = self.web()
        for how in [], ['--http1.0'], ['-I']:
            done = subprocess.run(['curl', '-sS', '-f', *how, f"http://localhost:{d.port['http tcp']}/readyz"], capture_output=True,
                                  text=True, timeout=WAIT)
            self.assertEqual((done.returncode, done.stderr), (0, ''), how)
            self.assertIn('200 OK' if how == ['-I'] else '"ready":true', done.stdout)


class Peers(Web):
    def test_tokens_and_scopes(self):
        with tempfile.NamedTemporaryFile('w', suffix='.tokens') as f:
            f.writelines(f'{n} {s} sha256:{hashlib.sha256(token_of(n).encode()).hexdigest()}\n' for n, s in NAMES.items())
            f.flush()
            d = self.web(f'tokens = {f.name}\n', keys='threads = 1\nmax_failures = 6\n')
            self.assertEqual(self.ask(d, '/healthz')[0], 200)
            status, headers, _ = self.ask(d, '/metrics')
            self.assertEqual((status, headers['www-authenticate']), (401, 'Bearer realm="hankeld"'))
            for bad in 'Bearer nonsense', 'Basic ' + token_of('viewer'), 'Bearer ' + 'x' * 3000:
                self.assertEqual(self.ask(d, '/metrics', Authorization=bad)[0], 401, bad[:40])
            self.assertEqual(self.ask(d, '/metrics', Authorization='Bearer ' + token_of('feeder'))[0], 403)
            for name in 'viewer', 'operator':
                for path in '/metrics', '/readyz':
                    self.assertEqual(self.ask(d, path, Authorization='Bearer ' + token_of(name))[0], 200, (name, path))
            security = d.status()['security']
            self.assertEqual((security['unauthorized'], security['forbidden']), (4, 1))
            said = '\n'.join(d.log)
            self.assertIn('refused at [listen web]: unknown token', said)
            self.assertNotIn('nonsense', said)
            for _ in range(3):  # over max_failures: refused from then on
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.ask(d, '/metrics')
            with self.assertRaises((OSError, http.client.HTTPException)):
                self.ask(d, '/healthz')

    def test_configurations_that_are_refused(self):
        for more, why in [('transport = udp\n', 'needs transport = tcp'), ('tls_certificate = /x\ntls_key = /y\n', '/x'),
                          ('tls_client_ca = /x\n', 'TLS needs tls_certificate and tls_key'), ('precision = s\n', 'precision is for protocol = line')]:
            with self.assertRaises(harness.NotReady) as failed:
                self.web(more)
            self.assertIn(f'[listen web]: ', '\n'.join(failed.exception.log))
            self.assertIn(why, '\n'.join(failed.exception.log))
        with self.assertRaises(harness.NotReady) as failed:
            self.daemon(listeners='[listen web]\nprotocol = http\naddress = 0.0.0.0:0\n')
        self.assertRegex('\n'.join(failed.exception.log), r'hankeld.conf:\d+: .*\[listen web\]: beyond loopback')

    def test_headers_too_large_and_garbage(self):
        d = self.web()
        for sent in [b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n' + b'X: ' + b'a' * 100000 + b'\r\n\r\n',
                     b'GET /' + b'a' * 100000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n',
                     b'GET / HTTP/1.1\r\n' + b''.join(b'X-%d: y\r\n' % i for i in range(20000)) + b'\r\n',
                     b'\x16\x03\x01' + bytes(range(256)) * 50, b'BREW /metrics HTTP/1.1\r\n\r\n', os.urandom(5000)]:
            s = self.raw(d)
            with contextlib.suppress(OSError):
                s.sendall(sent)
                s.shutdown(socket.SHUT_WR)
            self.assertNotIn(b' 200 ', self.said(s), sent[:40])
        self.assertEqual(self.ask(d, '/healthz')[0], 200)

    def test_slow_peers_hold_nobody_up_and_are_closed(self):
        d = self.web(keys='threads = 1\nhandshake = 2s\nmax_connections_per_address = 1000\n')
        silent, halfway = [self.raw(d) for _ in range(40)], [self.raw(d) for _ in range(40)]
        for s in halfway:
            s.sendall(b'GET /metrics HTTP/1.1\r\nHost: local')
        begun = time.monotonic()
        self.assertEqual(self.ask(d, '/metrics')[0], 200)
        self.feed(d, 2, 20)
        for s in halfway + silent:
            self.assertNotIn(b' 200 ', self.said(s))
        self.assertGreater(time.monotonic() - begun, 1)
        until(lambda: 'hankel_connections_http_open 1\n' in self.ask(d, '/metrics')[2], 'no connection to be left')

    def test_who_does_not_read_takes_no_memory_and_holds_up_nothing(self):
        d = self.web(keys='threads = 1\nstuck = 2s\nidle = off\n')  # idle connections would be closed, too
        self.feed(d, 2, 2)
        before, s = d.rss(), self.raw(d)
        s.settimeout(0.5)

        def flood():
            with contextlib.suppress(TimeoutError, ConnectionError):
                for _ in range(3000):
                    s.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n' * 10)

        flood()
        self.feed(d, 2, 20)
        self.assertEqual(self.ask(d, '/metrics')[0], 200)
        self.assert_grew_less(d, before, 8 << 20)
        # the peer continues sending: a slow daemon may have answered everything so far
        until(lambda: flood() or 'hankel_connections_http_open 1\n' in self.ask(d, '/metrics')[2], 'the one that does not read to be closed')

    def test_too_many_are_turned_away(self):
        d = self.web(keys='threads = 1\nmax_connections = 4\nmax_connections_per_address = 100\n')
        held = [self.connect(d) for _ in range(4)]
        for c in held:
            c.request('GET', '/healthz')
            self.assertEqual(c.getresponse().read(), b'ok\n')
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.ask(d, '/healthz')
        held.pop().close()
        def again():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.ask(d, '/healthz')[0] == 200
        until(again, 'the place of one that has gone')
        self.assertGreater(d.status()['connections']['refused'], 0)

    def test_an_end_with_connections_open(self):
        d = self.web()
        idle, half = self.connect(d), self.raw(d)
        idle.request('GET', '/healthz')
        self.assertEqual(idle.getresponse().read(), b'ok\n')
        half.sendall(b'GET /metr')
        self.assertEqual(d.stop(), 0)


if __name__ == '__main__':
    harness.main()
