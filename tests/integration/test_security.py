"""Access control: TLS, certificates, tokens, their scopes, and reloads of these files."""
import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import warnings

import harness
from harness import (BYE, ERROR, HANKEL, OPERATE, OPERATED, PING, PONG, POINTS, REGISTER, REGISTERED, RELOAD, RELOADED, REPORT,
                     SECOND, START, STATUS, SUBSCRIBE, WELCOME, Client, frame, points, text, until)
from secured import FORBIDDEN, TOKENS, UNAUTHORIZED, Secured, token_line, token_of

FAULTY = os.path.abspath(os.environ.get('FAULTY_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'faulty-daemon')))
FEED, FEED_AT = 0x09, 0x89


class TestTls(Secured):
    def test_all_protocols_as_over_plain_tcp(self):
        d = self.secured()
        with self.client(d, token_of('all')) as c, self.connect(d, 'text tcp') as shown, self.connect(d, 'line tcp') as lines:
            shown.sendall(f'token {token_of("viewer")}\nresults line*\n'.encode())
            c.subscribe(glob='pump*')
            a, b = c.register('pump a', 'pump b')
            n = 3000
            for i in range(n):
                c.send(points([a, b], [START + i * SECOND] * 2, [float(i % 7), 1.0]))
            c.wait_results(2 * n)
            until(lambda: c.status()['subscribers']['count'] == 2, 'the text client to be there')
            lines.sendall(f'# token {token_of("feeder")}\r\nline v=1 {START}\nline v=2 {START + SECOND}'.encode())
            lines.sendall(b'\n')
            got = b''
            while got.count(b'\n') < 2:
                got += shown.recv(1 << 16)
            self.assertIn(b'"sensor":"line v"', got)
            self.assertEqual(c.status()['lines']['bad'], 0)
            c.bye()
        self.assertEqual([z for _, _, _, z, s in c.results if s == 'ok'].count(None), 0)

    def test_a_large_frame_and_one_byte_at_a_time(self):
        d = self.secured()
        with self.client(d, token_of('all')) as c:
            h = c.register('big')[0]
            n = 40000
            data = points([h] * n, [START + i * SECOND for i in range(n)], [1.0] * n)
            c.send(data)
            c.ping()
            self.assertEqual(c.status()['points']['in'], n)
            for byte in points([h], [START + n * SECOND], [1.0]):
                c.send(bytes([byte]))
            c.ping()
            self.assertEqual(c.status()['points']['in'], n + 1)

    def test_much_comes_out(self):
        """A subscriber over TLS that reads late gets all that fits its queue, in order, and a gap for the rest."""
        d = self.secured(keys='threads = 1\nqueue = 256KiB\nmax_failures = off\n')
        with self.client(d, token_of('all')) as c, self.client(d, token_of('viewer')) as slow:
            slow.subscribe()
            h = c.register('s')[0]
            n, block = 40000 if harness.SANITIZED else 200000, 4000
            for first in range(0, n, block):
                c.send(points([h] * block, [START + i * SECOND for i in range(first, first + block)], [float(i % 11) for i in range(block)]))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'all to be scored')
            slow.drain()
            left_out = sum(results for results, _ in slow.gaps)
            self.assertEqual(len(slow.results) + left_out, n)
            times = [t for _, t, *_ in slow.results]
            self.assertEqual(times, sorted(times))

    def test_versions(self):
        d = self.secured()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.client(d, token_of('viewer'), self.context(minimum_version=version, maximum_version=version)) as c:
                c.ping()
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            old = self.context(minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
        old.set_ciphers('ALL:@SECLEVEL=0')
        with self.assertRaises(ssl.SSLError):
            self.connect(d, context=old)
        cbc = self.context(maximum_version=ssl.TLSVersion.TLSv1_2)
        cbc.set_ciphers('AES128-SHA:AES128-SHA256')
        with self.assertRaises(ssl.SSLError):
            self.connect(d, context=cbc)
        until(lambda: any('refused at [listen binary]' in line for line in d.log), 'the audit')

    def test_client_certificates(self):
        d = self.secured(tokens=False, client_ca=True)
        good = self.ca.sign('pump-7')
        with self.client(d, context=self.context(good)) as c:
            c.register('s')
            c.subscribe()
        expired = self.ca.sign('late', days=-1)
        foreign = self.other.sign('stranger')
        wrong = self.ca.sign('only-a-server', use='serverAuth')
        self_signed = (self.other.certificate, self.other.key)
        for name, certificate in (('none', None), ('expired', expired), ('foreign', foreign), ('wrong use', wrong), ('self-signed', self_signed)):
            with self.subTest(name), self.assertRaises((ssl.SSLError, harness.Closed, ConnectionError)):
                self.client(d, context=self.context(certificate))  # with TLS 1.3 it learns this only after its own handshake
        until(lambda: sum('certificate' in line and 'refused' in line for line in d.log) >= 4, 'the audit')
        with self.client(d, context=self.context(good)) as c:
            self.assertEqual(c.status()['security']['unauthorized'], 5)

    def test_certificates_that_the_token_file_names(self):
        self.write_tokens(['pump-7 feed certificate\n', token_line('viewer', 'subscribe')])
        d = self.secured(client_ca=True)
        named, unnamed = self.context(self.ca.sign('pump-7')), self.context(self.ca.sign('pump-8'))
        with self.client(d, context=named) as c:
            c.register('s')
            self.refuses(c, SUBSCRIBE, struct.pack('<If', 1, 0) + text(''))
        self.refused(UNAUTHORIZED, lambda: self.client(d, context=unnamed))
        with self.client(d, token_of('viewer'), context=unnamed) as c:
            c.subscribe()
        with self.connect(d, 'line tcp', named) as line, self.client(d, token_of('viewer'), context=unnamed) as c:
            line.sendall(f'm v=1 {START}\n'.encode())  # needs no token
            until(lambda: c.status()['lines']['taken'] == 1, 'the line')

    def test_a_certificate_with_a_long_name_has_no_other_ones(self):
        """A common name may have 64 bytes, one more than a name of the token file."""
        name = 'pump-' + 'x' * 58
        self.write_tokens([f'{name} feed certificate\n', token_line('viewer', 'subscribe')])
        d = self.secured(client_ca=True)
        longer = self.context(self.ca.sign(name + 'y', file='longer'))
        with self.client(d, context=self.context(self.ca.sign(name, file='named'))) as c:
            c.register('s')
        self.refused(UNAUTHORIZED, lambda: self.client(d, context=longer))
        with self.client(d, token_of('viewer'), context=longer) as c:
            c.subscribe()

    def refuses(self, c, kind, payload):
        """The request is answered with an error that says it is not allowed; the connection stays."""
        c.tag += 1
        c.send(frame(kind, payload, c.tag))
        got, tag, data = c.receive()
        self.assertEqual((got, tag, struct.unpack_from('<H', data)[0]), (ERROR, c.tag, FORBIDDEN))
        c.ping()

    def test_the_end_of_a_line_that_was_cut_is_not_taken(self):
        d = self.secured()
        with self.connect(d, 'line tcp') as s:
            s.sendall(f'token {token_of("feeder")}\nwhole v=1 {START}\ncut v=12'.encode())
            until(lambda: 'whole' and self.status_of(d)['lines']['taken'] == 1, 'the first line')
            with socket.socket(fileno=os.dup(s.fileno())) as raw:
                raw.shutdown(socket.SHUT_WR)
            until(lambda: any('without a TLS close_notify' in line for line in d.log), 'the end')
        self.assertEqual(self.status_of(d)['lines'], {'taken': 1, 'bad': 0, 'strings_skipped': 0})

    def status_of(self, d):
        with self.client(d, token_of('operator')) as c:
            return c.status()


class TestTokens(Secured):
    def test_scopes(self):
        d = self.secured(tls=False)
        subscribe = struct.pack('<If', 1, 0) + text('')
        requests = {'register': (REGISTER, struct.pack('<I', 1) + text('s'), REGISTERED),
                    'subscribe': (SUBSCRIBE, subscribe, harness.DONE),
                    'status': (STATUS, b'', REPORT), 'sensors': (0x0c, struct.pack('<QI', 0, 1) + text(''), REPORT), 'reload': (RELOAD, b'', RELOADED), 'ping': (PING, bytes(8), PONG),
                    'acknowledge': (OPERATE, struct.pack('<B3xIQ', 1, 0, 0) + text('s') + text('anna'), OPERATED),
                    'maintain': (OPERATE, struct.pack('<B3xIQ', 2, 0, SECOND) + text('*') + text('anna'), OPERATED)}
        allowed = {'feeder': {'register', 'ping'}, 'viewer': {'subscribe', 'status', 'sensors', 'ping'},
                   'operator': {'status', 'reload', 'ping', 'acknowledge', 'maintain'},
                   'all': set(requests)}
        for name in TOKENS:
            with self.client(d, token_of(name), tls=False) as c:
                for what, (kind, payload, reply) in requests.items():
                    c.tag += 1
                    c.send(frame(kind, payload, c.tag))
                    got, tag, data = c.receive()
                    self.assertEqual(tag, c.tag)
                    if what in allowed[name]:
                        self.assertEqual(got, reply, (name, what))
                    else:
                        self.assertEqual((got, struct.unpack_from('<HBB', data)), (ERROR, (FORBIDDEN, kind, 0)), (name, what))
        with self.client(d, token_of('viewer'), tls=False) as c:
            c.send(points([0], [START], [1.0]))
            c.ping()
            self.assertEqual([code for code, _ in c.errors], [FORBIDDEN])
            status = c.status()
            self.assertEqual(status['points']['in'], 0)
            self.assertEqual(status['security']['forbidden'], 14)
            self.assertEqual(len(status['maintenance']), 2)  # of those who may
        for said in ('REGISTER needs scope feed; viewer has subscribe', 'OPERATE needs scope admin; viewer has subscribe',
                     'STATUS needs one of the scopes subscribe,admin; feeder has feed'):
            self.assertTrue(any(said in line for line in d.log), d.log)

    def test_wrong_and_missing_tokens(self):
        d = self.secured(tls=False)
        for wrong in (None, 'x', token_of('feeder')[:-1], token_of('feeder') + 'x', 'y' * 256, token_of('nobody')):
            self.refused(UNAUTHORIZED, lambda wrong=wrong: self.client(d, wrong, tls=False))
        for listener in ('line tcp', 'text tcp'):
            for first in (b'm v=1\n', b'token \n', b'token wrong\n', b'token ' + b'z' * 2000 + b'\n', b'\n'):
                with d.connect(listener) as s:
                    s.sendall(first)
                    said = s.recv(1000)
                    self.assertEqual(said[:9], b'{"error":' if listener == 'text tcp' else b'')
        for name, listener in (('viewer', 'line tcp'), ('feeder', 'text tcp'), ('operator', 'line tcp')):
            with d.connect(listener) as s:
                s.sendall(f'token {token_of(name)}\nm v=1\n'.encode())
                s.recv(1000)
        with self.client(d, token_of('all'), tls=False) as c:
            status = c.status()
            self.assertEqual(status['lines']['taken'], 0)
            self.assertEqual(status['security']['unauthorized'], 6 + 10 + 3)
            self.assertEqual(status['sensors']['count'], 0)
        self.assertFalse([line for line in d.log if 'hkt_' in line], 'a token stands in the log')

    def feed(self, client, name):
        """FEED; FEED_AT, or the code of the error."""
        client.tag += 1
        client.send(frame(FEED, text(name), client.tag))
        kind, tag, payload = client.receive()
        self.assertEqual(tag, client.tag)
        return 'good' if kind == FEED_AT else struct.unpack_from('<H', payload)[0]

    def test_feeds_have_owners(self):
        """A peer whose token line has feeds= may name only these feeds, and no other peer may name them."""
        lines = {name: token_line(name, 'feed') for name in ('pump-7', 'pump-8', 'other')}
        owned = [lines[name].strip() + f' feeds={name}/*\n' for name in ('pump-7', 'pump-8')] + [lines['other'], token_line('viewer', 'subscribe')]
        self.write_tokens(owned)
        d = self.secured(tls=False)
        for name, feed, says in (('pump-7', 'pump-7/a', 'good'), ('pump-7', 'pump-8/a', FORBIDDEN), ('pump-7', 'gateway', FORBIDDEN),
                                 ('other', 'pump-7/a', FORBIDDEN), ('other', 'gateway', 'good')):
            with self.client(d, token_of(name), tls=False) as c:
                self.assertEqual(self.feed(c, feed), says, (name, feed))
                c.ping()  # naming a feed of another peer does not close the connection
        with self.client(d, token_of('viewer'), tls=False) as c:
            self.assertEqual(c.status()['security']['forbidden'], 3)
        until(lambda: any('feed pump-8/a is not allowed for pump-7' in line for line in d.log), 'the audit')
        path = os.path.join(self.folder.name, 'other.token')
        with open(path, 'w') as f:
            f.write(token_of('other'))
        done = subprocess.run([HANKEL, 'feed', '--to', f'127.0.0.1:{d.port["binary tcp"]}', '--token-file', path, '--feed', 'pump-7/a', '-'],
                              input='time,a\n1600000000,1\n', capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('does not allow a feed of this name', done.stderr)
        # a reload closes connections that lose a feed, and no others
        with self.client(d, token_of('pump-7'), tls=False) as seven, self.client(d, token_of('other'), tls=False) as other:
            self.assertEqual((self.feed(seven, 'pump-7/a'), self.feed(other, 'gateway')), ('good', 'good'))
            self.write_tokens([owned[0].replace('pump-7/*', 'pump-9/*'), *owned[1:]])
            d.process.send_signal(signal.SIGHUP)
            until(lambda: any('were read again' in line for line in d.log), 'the reload')
            self.refused(UNAUTHORIZED, lambda: seven.drain(harness.WAIT))
            other.ping()

    def test_nothing_before_hello(self):
        d = self.secured(tls=False)
        for kind in (REGISTER, POINTS, SUBSCRIBE, STATUS, PING, BYE):
            c = Client(d.port['binary tcp'], hello=False)
            self.addCleanup(c.close)
            self.refused(7, lambda c=c, kind=kind: c.request(kind, bytes(40), WELCOME))

    def test_a_last_line_without_an_end(self):
        """An incomplete line of an unauthenticated peer is discarded: over plain TCP and over TLS, for either kind of listener."""
        for tls in (False, True):
            d = self.secured(tls=tls)
            for listener, line in (('line tcp', b'stranger value=1,other=2'), ('text tcp', b'events *')):
                with self.connect(d, listener) if tls else d.connect(listener) as s:
                    s.sendall(line)
                    if tls:
                        s.settimeout(harness.WAIT)
                        with contextlib.suppress(OSError):
                            s.unwrap()
                    else:
                        s.shutdown(socket.SHUT_WR)
                        self.assertEqual(s.recv(65536), b'')
            with self.client(d, token_of('all'), tls=tls) as c:
                until(lambda: c.status()['connections']['open'] == 1, 'the strangers to be gone')
                status = c.status()
                self.assertEqual((status['points']['in'], status['sensors']['count']), (0, 0))

    def test_an_address_that_fails_too_often(self):
        d = self.secured(tls=False, keys='threads = 1\nmax_failures = 5\n')
        with self.client(d, token_of('all'), tls=False) as honest:
            for _ in range(5):
                self.refused(UNAUTHORIZED, lambda: self.client(d, 'wrong', tls=False))
            with self.assertRaises((harness.Closed, ConnectionError)):
                self.client(d, token_of('all'), tls=False)
            honest.ping()  # who is in stays in
            self.assertEqual(honest.status()['security']['addresses_shut_out'], 1)
            raw = socket.create_connection(('127.0.0.1', d.port['binary tcp']), harness.WAIT, source_address=('127.0.0.9', 0))
            with self.client(d, token_of('viewer'), sock=raw) as other:
                other.ping()
        until(lambda: any('blocked for the rest of it' in line for line in d.log), 'the audit')


if __name__ == '__main__':
    harness.main(needs_gpu=False)
