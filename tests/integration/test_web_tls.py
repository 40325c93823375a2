"""HTTP over TLS: the same answers as without, to the peers that the listener's certificates and tokens allow."""
import contextlib
import http.client
import json
import shutil
import socket
import ssl
import time

import browser
import harness
import secured
from harness import START, WAIT, until
from secured import token_line, token_of


class Tls(secured.Secured):
    def web(self, keys='threads = 1\n', **how):
        listeners = self.listeners(**how)
        web = listeners[listeners.rindex('[listen'):].replace('[listen text]', '[listen web]').replace('= text', '= http')
        return self.daemon('[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n', keys='max_failures = off\n' + keys,
                           listeners='[listen binary]\nprotocol = binary\naddress = 127.0.0.1:0\n' + web)

    def ask(self, d, path, body=None, certificate=None, whole=False, **headers):
        c = http.client.HTTPSConnection('127.0.0.1', d.port['http tcp'], timeout=WAIT, context=self.context(certificate))
        with contextlib.closing(c):
            headers = {k.replace('_', '-'): v for k, v in headers.items()}
            if body is not None:
                headers.setdefault('Content-Type', 'application/json')
            c.request('GET' if body is None else 'POST', path, None if body is None else json.dumps(body), headers)
            r = c.getresponse()
            return r.status, r.headers, r.read()

    def feed(self, d, names, points):
        with d.client() as c:
            handles = [h for i in range(0, len(names), 3000) for h in c.register(*names[i:i + 3000])]
            for k in range(points):
                c.send(harness.points(handles, [START + k * 10**9] * len(names), [float(10 * ((k // 30) % 2) + (k * 7) % 5 * 0.125)] * len(names)))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')

    def test_answers_streams_and_the_cookie(self):
        d = self.web()
        self.feed(d, [f'{"s" * 60}{i}' for i in range(9000)], 1)
        self.assertEqual(self.ask(d, '/healthz')[2], b'ok\n')
        self.assertEqual(self.ask(d, '/metrics')[0], 401)
        viewer = {'Authorization': 'Bearer ' + token_of('viewer')}
        status, headers, body = self.ask(d, '/api/v1/sensors?limit=10000', **viewer)
        self.assertEqual((status, len(body), len(json.loads(body)['sensors'])), (200, int(headers['content-length']), 1000))  # no more in one answer
        status, headers, _ = self.ask(d, '/api/v1/login', {'token': token_of('viewer')})
        self.assertEqual(status, 200)
        self.assertTrue(headers['set-cookie'].endswith('HttpOnly; SameSite=Strict; Secure'), headers['set-cookie'])
        cookie = {'Cookie': headers['set-cookie'].partition(';')[0]}
        c = http.client.HTTPSConnection('127.0.0.1', d.port['http tcp'], timeout=WAIT, context=self.context())
        with contextlib.closing(c):
            for _ in range(20):
                c.request('GET', '/api/v1/alerts', headers=cookie)
                self.assertEqual(json.loads(c.getresponse().read())['standing'], 0)
            c.request('GET', '/api/v1/stream?what=results', headers=cookie)
            r = c.getresponse()
            self.feed(d, ['pump'], 5)
            lines = [r.readline() for _ in range(12)]
            self.assertEqual(sum(b'"sensor":"pump"' in line for line in lines), 5)

    def test_certificates_of_peers(self):
        mine, other = self.ca.sign('gateway'), self.other.sign('gateway', file='gateway-other')
        d = self.web(tokens=False, client_ca=True)
        self.assertEqual(self.ask(d, '/api/v1/status', certificate=mine)[0], 200)
        for certificate in None, other:
            with self.assertRaises((OSError, http.client.HTTPException)):
                self.ask(d, '/healthz', certificate=certificate)
        until(lambda: d.status()['security']['unauthorized'] == 2, 'both to be counted')
        self.write_tokens([token_line('viewer', 'subscribe'), 'gateway subscribe certificate\n'])
        d = self.web(client_ca=True)
        self.assertEqual(self.ask(d, '/api/v1/sensors', certificate=mine)[0], 200)
        self.assertEqual(self.ask(d, '/api/v1/reload', '', certificate=mine)[0], 403)

    def test_a_certificate_that_is_revoked_ends_its_connections(self):
        good, bad = self.ca.sign('gateway'), self.ca.sign('thief')
        lists = self.tokens + '.crl'
        shutil.copy(self.ca.revoke('nobody'), lists)
        d = self.web(tokens=False, client_ca=True, extra=f'crl = {lists}\nscopes = feed,subscribe,admin\n')
        kept = {}
        for name, certificate in (('good', good), ('bad', bad)):
            for path in '/api/v1/alerts', '/api/v1/stream?what=results':
                c = http.client.HTTPSConnection('127.0.0.1', d.port['http tcp'], timeout=WAIT, context=self.context(certificate))
                self.addCleanup(c.close)
                c.request('GET', path)
                r = c.getresponse()
                self.assertEqual(r.status, 200)
                kept[name, path] = c, r
                if 'stream' not in path:
                    r.read()
        until(lambda: d.status()['subscribers']['count'] == 2, 'both to be subscribed')
        shutil.copy(self.ca.revoke('thief', bad[0]), lists)
        with d.client() as c:
            self.assertTrue(c.reload()[0])
        until(lambda: d.status()['subscribers']['count'] == 1, 'the stream of the revoked one to end')
        while kept['bad', '/api/v1/stream?what=results'][1].readline():
            pass
        self.assertEqual(kept['bad', '/api/v1/alerts'][0].sock.recv(1), b'')  # though nothing was asked
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.ask(d, '/healthz', certificate=bad)
        c = kept['good', '/api/v1/alerts'][0]
        c.request('GET', '/api/v1/alerts')
        self.assertEqual(c.getresponse().status, 200)
        self.assertIn('thief', '\n'.join(line for line in d.log if 'revoked' in line))

    def test_a_new_certificate_is_served_after_a_reload(self):
        d = self.web()
        raw = socket.create_connection(('127.0.0.1', d.port['http tcp']), WAIT)
        with self.context().wrap_socket(raw, server_hostname='localhost') as s:
            before = s.getpeercert()['serialNumber']
        kept = [shutil.copy(f, f + '.kept') for f in (self.cert, self.key)]
        self.addCleanup(lambda: [shutil.copy(f, f[:-5]) for f in kept])
        self.ca.sign('server', names='IP:127.0.0.1,DNS:localhost')
        with d.client() as c:
            self.assertTrue(c.reload()[0])
        raw = socket.create_connection(('127.0.0.1', d.port['http tcp']), WAIT)
        with self.context().wrap_socket(raw, server_hostname='localhost') as s:
            self.assertNotEqual(s.getpeercert()['serialNumber'], before)

    def test_who_speaks_no_tls_or_nothing_is_closed(self):
        d = self.web(keys='threads = 1\nhandshake = 1s\nmax_connections_per_address = 1000\n')
        for sent in b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', b'\x16\x03\x01' + bytes(range(256)) * 40, b'', b'\x16\x03\x01\x02\x00\x01':
            s = socket.create_connection(('127.0.0.1', d.port['http tcp']), WAIT)
            with contextlib.closing(s), contextlib.suppress(ConnectionResetError):
                s.sendall(sent)
                got = b''
                while more := s.recv(1 << 16):
                    got += more
            self.assertNotIn(b'200 OK', got)
        raw = socket.create_connection(('127.0.0.1', d.port['http tcp']), WAIT)
        s = self.context().wrap_socket(raw, server_hostname='localhost')  # completes the handshake, and sends no request
        begun = time.monotonic()
        with contextlib.closing(s), contextlib.suppress(OSError):
            self.assertEqual(s.recv(1), b'')
        self.assertLess(time.monotonic() - begun, WAIT / 2)
        self.assertEqual(self.ask(d, '/healthz')[0], 200)
        until(lambda: b'hankel_connections_http_open 1\n' in self.ask(d, '/metrics', Authorization='Bearer ' + token_of('viewer'))[2], 'no connection to be left')

    def test_who_does_not_read_is_bounded_and_closed(self):
        d = self.web(keys='threads = 1\nstuck = 2s\nmax_connections_per_address = 1000\n')
        self.feed(d, [f's{i}' for i in range(3000)], 1)
        before = d.rss()
        held = []
        for _ in range(8):
            raw = socket.create_connection(('127.0.0.1', d.port['http tcp']), WAIT)
            s = self.context().wrap_socket(raw, server_hostname='localhost')
            self.addCleanup(s.close)
            s.settimeout(1)
            with contextlib.suppress(OSError):
                for _ in range(100):
                    s.sendall(b'GET /api/v1/sensors?limit=10000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ' + token_of('viewer').encode() + b'\r\n\r\n')
            held.append(s)
        self.assertEqual(self.ask(d, '/healthz')[0], 200)
        self.assert_grew_less(d, before, 32 << 20)
        until(lambda: b'hankel_connections_http_open 1\n' in self.ask(d, '/metrics', Authorization='Bearer ' + token_of('viewer'))[2], 'those that do not read to be closed')
        self.assertEqual(d.stop(), 0)

    def test_the_page(self):
        if not browser.PROGRAM:
            self.skipTest('Chromium is not here')
        d = self.web()
        if self.ask(d, '/page/page.js')[0] == 404:
            self.skipTest('this hankeld is built without the page')
        self.feed(d, ['pump'], 40)
        with browser.Browser('--ignore-certificate-errors') as b:
            p = b.page()
            p.go(f"https://127.0.0.1:{d.port['http tcp']}/")
            p.type('main input', token_of('viewer'))
            p.key('Enter', number=13)
            p.until("document.getElementById('link').textContent === 'live' && document.querySelector('h1').textContent !== 'A token is needed here'")
            p.run("location.hash = 'sensor/pump'")
            p.until("Number(document.querySelector('.series canvas')?.dataset.points) >= 20")
            self.feed(d, ['other'], 10)
            p.run("location.hash = 'wall'")
            p.until("!!document.querySelector('canvas.wall')?.dataset.drawn")
            self.assertEqual([f for f in p.faults if '401' not in f], [])


if __name__ == '__main__':
    harness.main()
