"""Who is let in, and what for: TLS, certificates, tokens, their scopes, what a newcomer may cost, and reading them again."""
import contextlib
import hashlib
import hmac
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import certificates
import harness
from harness import (BYE, ERROR, HANKEL, HANKELD, HELLO, PING, PONG, POINTS, REGISTER, REGISTERED, REPORT, SECOND, START, STATUS, SUBSCRIBE,
                     WELCOME, Client, frame, points, text, until)

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankel  # noqa: E402

FAULTY = os.path.abspath(os.environ.get('FAULTY_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'faulty-daemon')))
UNAUTHORIZED, FORBIDDEN, TIMEOUT = 15, 16, 11
FEED, FEED_AT = 0x09, 0x89
TOKENS = {'feeder': 'feed', 'viewer': 'subscribe', 'operator': 'admin', 'all': 'feed,subscribe,admin'}
DETECTOR = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'


def token_of(name):
    return f'hkt_{name}_' + 'x' * 20


def token_line(name, scopes, token=None):
    return f'{name} {scopes} sha256:{hashlib.sha256((token or token_of(name)).encode()).hexdigest()}\n'


def own_address():
    """An address of this machine that is not one of loopback; None where it has none. Nothing is sent."""
    for family, beyond in ((socket.AF_INET, '192.0.2.1'), (socket.AF_INET6, '2001:db8::1')):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as s:
            s.connect((beyond, 9))
            if not s.getsockname()[0].startswith('127.') and s.getsockname()[0] != '::1':
                return s.getsockname()[0]
    return None


class Secured(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='hankeld-tls-')
        cls.ca = certificates.Authority(cls.folder.name, 'test-ca')
        cls.other = certificates.Authority(cls.folder.name, 'other-ca')
        cls.cert, cls.key = cls.ca.sign('server', names='IP:127.0.0.1,DNS:localhost')

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.tokens = os.path.join(self.folder.name, f'tokens-{self.id()}')
        self.write_tokens()

    def write_tokens(self, lines=None):
        with open(self.tokens, 'w') as f:
            f.write('# who may do what\n\n')
            f.writelines(lines if lines is not None else [token_line(*item) for item in TOKENS.items()])

    def listeners(self, tokens=True, client_ca=False, tls=True, extra=''):
        keys = f'tls_certificate = {self.cert}\ntls_key = {self.key}\n' if tls else ''
        keys += f'tls_client_ca = {self.ca.certificate}\n' if client_ca else ''
        keys += f'tokens = {self.tokens}\n' if tokens else ''
        return ''.join(f'[listen {p}]\nprotocol = {p}\naddress = 127.0.0.1:0\n{keys}{extra}' for p in ('binary', 'line', 'text'))

    def secured(self, keys='threads = 1\nmax_failures = off\n', tokens=True, client_ca=False, tls=True, extra='', **how):
        d = self.daemon(DETECTOR, keys=keys, listeners=self.listeners(tokens, client_ca, tls, extra), **how)
        self.daemon_port = d.port
        return d

    def context(self, certificate=None, ca=None, **versions):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        c.load_verify_locations((ca or self.ca).certificate)
        if certificate:
            c.load_cert_chain(*certificate)
        for name, version in versions.items():
            setattr(c, name, version)
        return c

    def connect(self, daemon, listener='binary tcp', context=None, source=None):
        raw = socket.create_connection(('127.0.0.1', daemon.port[listener]), harness.WAIT,
                                       source_address=(source, 0) if source else None)
        try:
            s = (context or self.context()).wrap_socket(raw, server_hostname='127.0.0.1')
        except BaseException:
            raw.close()
            raise
        self.addCleanup(s.close)
        return s

    def client(self, daemon, token=None, context=None, sock=None, tls=True):
        c = Client(0, False, sock or (self.connect(daemon, context=context) if tls else daemon.connect('binary tcp')))
        self.addCleanup(c.socket.close)
        payload = text('test') + (text(token) + struct.pack('<I', 0) if token else b'')
        c.feed, c.max_frame = c.request(HELLO, payload, WELCOME).take('QI')
        return c

    def refused(self, code, call):
        with self.assertRaises(harness.Closed) as caught:
            call()
        self.assertIsNotNone(caught.exception.error, 'no words')
        self.assertEqual(caught.exception.error[0], code, caught.exception.error)


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
            n, block = 200000, 4000
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
                self.client(d, context=self.context(certificate))  # with 1.3 it learns only after its own end is through
        until(lambda: sum('certificate' in line and 'refused' in line for line in d.log) >= 4, 'the audit')
        with self.client(d, context=self.context(good)) as c:
            self.assertEqual(c.status()['security']['unauthorized'], 5)

    def test_certificates_that_the_token_file_names(self):
        self.write_tokens(['pump-7 feed certificate\n', token_line('viewer', 'subscribe')])
        d = self.secured(client_ca=True)
        named, unnamed = self.context(self.ca.sign('pump-7')), self.context(self.ca.sign('pump-8'))
        with self.client(d, context=named) as c:
            c.register('s')
            self.refuses(c, lambda: c.request(SUBSCRIBE, struct.pack('<If', 1, 0) + text(''), harness.DONE))
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

    def refuses(self, c, call):
        """The request is answered with an error that says it is not allowed; the connection stays."""
        before = len(c.errors)
        c.socket.settimeout(0.5)
        with self.assertRaises(TimeoutError):
            call()
        c.socket.settimeout(harness.WAIT)
        self.assertEqual([code for code, _ in c.errors[before:]], [FORBIDDEN])
        c.ping()

    def test_the_end_of_a_line_that_was_cut_is_not_taken(self):
        d = self.secured()
        with self.connect(d, 'line tcp') as s:
            s.sendall(f'token {token_of("feeder")}\nwhole v=1 {START}\ncut v=12'.encode())
            until(lambda: 'whole' and self.status_of(d)['lines']['taken'] == 1, 'the first line')
            with socket.socket(fileno=os.dup(s.fileno())) as raw:
                raw.shutdown(socket.SHUT_WR)
            until(lambda: any('without the end that TLS has' in line for line in d.log), 'the end')
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
                    'status': (STATUS, b'', REPORT), 'reload': (0x0A, b'', 0x8A), 'ping': (PING, bytes(8), PONG)}
        allowed = {'feeder': {'register', 'ping'}, 'viewer': {'subscribe', 'status', 'ping'}, 'operator': {'status', 'reload', 'ping'},
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
            self.assertEqual(status['security']['forbidden'], 8)
        self.assertTrue(any('REGISTER by viewer needs another scope than subscribe' in line for line in d.log), d.log)

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
        """A peer whose line says feeds= may name only those, and nobody else may name these."""
        lines = {name: token_line(name, 'feed') for name in ('pump-7', 'pump-8', 'other')}
        owned = [lines[name].strip() + f' feeds={name}/*\n' for name in ('pump-7', 'pump-8')] + [lines['other'], token_line('viewer', 'subscribe')]
        self.write_tokens(owned)
        d = self.secured(tls=False)
        for name, feed, says in (('pump-7', 'pump-7/a', 'good'), ('pump-7', 'pump-8/a', FORBIDDEN), ('pump-7', 'gateway', FORBIDDEN),
                                 ('other', 'pump-7/a', FORBIDDEN), ('other', 'gateway', 'good')):
            with self.client(d, token_of(name), tls=False) as c:
                self.assertEqual(self.feed(c, feed), says, (name, feed))
                c.ping()  # a name that is another's does not end the connection
        with self.client(d, token_of('viewer'), tls=False) as c:
            self.assertEqual(c.status()['security']['forbidden'], 3)
            self.assertEqual(c.status()['durability']['feeds'], 2)
        until(lambda: any('feed pump-8/a is not one of pump-7' in line for line in d.log), 'the audit')
        path = os.path.join(self.folder.name, 'other.token')
        with open(path, 'w') as f:
            f.write(token_of('other'))
        done = subprocess.run([HANKEL, 'feed', '--to', f'127.0.0.1:{d.port["binary tcp"]}', '--token-file', path, '--feed', 'pump-7/a', '-'],
                              input='time,a\n1600000000,1\n', capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('does not allow a feed of this name', done.stderr)
        # who loses a feed by a reload is closed, others are not
        with self.client(d, token_of('pump-7'), tls=False) as seven, self.client(d, token_of('other'), tls=False) as other:
            self.assertEqual((self.feed(seven, 'pump-7/a'), self.feed(other, 'gateway')), ('good', 'good'))
            self.write_tokens([owned[0].replace('pump-7/*', 'pump-9/*'), *owned[1:]])
            d.process.send_signal(signal.SIGHUP)
            until(lambda: any('were read again' in line for line in d.log), 'the reload')
            self.refused(UNAUTHORIZED, lambda: seven.request(HELLO, b'', WELCOME))
            other.ping()

    def test_nothing_before_hello(self):
        d = self.secured(tls=False)
        for kind in (REGISTER, POINTS, SUBSCRIBE, STATUS, PING, BYE):
            c = Client(d.port['binary tcp'], hello=False)
            self.addCleanup(c.close)
            self.refused(7, lambda c=c, kind=kind: c.request(kind, bytes(40), WELCOME))

    def test_a_last_line_without_an_end(self):
        """What of a stranger's is no whole line is nobody's: over plain TCP and over TLS, for either kind of listener."""
        for tls in (False, True):
            d = self.secured(tls=tls)
            for listener, line in (('line tcp', b'stranger value=1,other=2'), ('text tcp', b'events *')):
                with self.connect(d, listener) if tls else d.connect(listener) as s:
                    s.sendall(line)
                    if tls:
                        s.settimeout(10)
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
        until(lambda: any('turned away for the rest of it' in line for line in d.log), 'the audit')


class TestReload(Secured):
    def reload(self, d, says):
        before = sum(says in line for line in d.log)
        d.process.send_signal(signal.SIGHUP)
        until(lambda: sum(says in line for line in d.log) > before, f'the log to say {says}')

    def test_tokens_and_certificates_under_load(self):
        d = self.secured()
        stop, faults = threading.Event(), []

        def feed():
            try:
                with self.client(d, token_of('feeder')) as c:
                    h, at = c.register('s')[0], 0
                    while not stop.is_set():
                        c.send(points([h] * 100, [START + (at + i) * SECOND for i in range(100)], [1.0] * 100))
                        at += 100
                        c.ping()
            except Exception as e:
                faults.append(e)

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            with self.client(d, token_of('viewer')) as viewer, self.client(d, token_of('operator')) as operator:
                serial = operator.socket.getpeercert()['serialNumber']
                for _ in range(5):
                    type(self).cert, type(self).key = self.ca.sign('server', names='IP:127.0.0.1,DNS:localhost')
                    self.reload(d, 'were read again')
                with self.client(d, token_of('operator')) as c:
                    self.assertNotEqual(c.socket.getpeercert()['serialNumber'], serial)
                # one token goes, one comes, one changes its scopes
                self.write_tokens([token_line('feeder', 'feed'), token_line('operator', 'subscribe'), token_line('new', 'feed')])
                self.reload(d, 'were read again')
                self.refused(UNAUTHORIZED, lambda: viewer.request(HELLO, b'', WELCOME))
                self.refused(UNAUTHORIZED, lambda: self.client(d, token_of('viewer')))
                operator.subscribe()
                with self.client(d, token_of('new')) as c:
                    c.register('s')
                # a file that is wrong changes nothing
                for broken in ('feeder feed\n', 'x feed sha256:12\n', token_line('a', 'feed,fly'), token_line('a', 'feed') * 2):
                    self.write_tokens([broken])
                    self.reload(d, 'stays as it was')
                os.rename(self.tokens, self.tokens + '.gone')
                self.reload(d, 'stays as it was')
                with self.client(d, token_of('new')) as c:
                    c.ping()
                os.rename(self.tokens + '.gone', self.tokens)
                self.write_tokens([token_line('feeder', 'feed')])
                with open(self.key) as f:
                    good = f.read()
                with open(self.other.key) as f, open(self.key, 'w') as g:
                    g.write(f.read())
                self.reload(d, 'stays as it was')
                with self.client(d, token_of('new')) as c:
                    c.ping()
                with open(self.key, 'w') as f:
                    f.write(good)
                self.reload(d, 'were read again')
        finally:
            stop.set()
            thread.join(harness.WAIT)
        self.assertEqual(faults, [])


    def test_files_that_everybody_can_change(self):
        for path in (self.tokens, self.key, self.ca.certificate):
            before = os.stat(path).st_mode
            self.addCleanup(os.chmod, path, before)
        os.chmod(self.tokens, 0o644)
        os.chmod(self.key, 0o640)
        d = self.secured(client_ca=True)
        self.assertFalse([line for line in d.log if 'every user' in line])
        os.chmod(self.tokens, 0o646)
        os.chmod(self.key, 0o604)
        os.chmod(self.ca.certificate, 0o666)
        self.reload(d, 'were read again')
        for listener in ('binary', 'line', 'text'):
            for what in (f'change {self.tokens} (mode 0646)', f'read {self.key} (mode 0604)', f'change {self.ca.certificate} (mode 0666)'):
                self.assertTrue(any(f'[listen {listener}]: every user of this machine can {what}' in line for line in d.log), (what, d.log))
        other = self.secured(client_ca=True)  # it is told at the start, too
        self.assertEqual(sum('every user' in line for line in other.log), 9)

    def test_three_hundred_times(self):
        """Nothing that there are only so many of in a process is used up by it."""
        d = self.secured(keys='threads = 1\nmax_failures = off\nlog_level = warning\n')
        with self.client(d, token_of('operator')) as operator:
            for i in range(300):
                if i == 20:
                    before = d.rss()
                self.assertTrue(operator.reload()[0])
            self.assert_grew_less(d, before, 2 << 20)
        with self.client(d, token_of('feeder')) as c:
            c.register('s')

    def test_what_is_refused_late_changes_nothing(self):
        """A backend that cannot learn a new detector refuses the reload when certificates and tokens were read already: these stay
        what they were, too."""
        d = self.secured(program=FAULTY, backend='auto', environment={'HANKELD_FAULT': 'define'})
        before = self.cert, self.key
        try:
            with self.client(d, token_of('feeder')) as feeder, self.client(d, token_of('operator')) as operator:
                serial = operator.socket.getpeercert()['serialNumber']
                type(self).cert, type(self).key = self.ca.sign('server', names='IP:127.0.0.1,DNS:localhost')
                self.assertEqual((self.cert, self.key), before)  # the same files
                self.write_tokens([token_line('operator', 'admin'), token_line('new', 'feed')])
                keys = 'threads = 1\nmax_failures = off\n'
                d.configure(DETECTOR.replace('window = 8', 'window = 9'), keys)
                taken, lines = operator.reload()
                self.assertFalse(taken)
                self.assertIn('on order', '\n'.join(lines))
                self.assertEqual([line for line in lines if 'read again' in line], [])
                feeder.register('s')  # still knows its token
                with self.client(d, token_of('feeder')) as c:
                    self.assertEqual(c.socket.getpeercert()['serialNumber'], serial)
                self.refused(UNAUTHORIZED, lambda: self.client(d, token_of('new')))
                # the same files, without what was refused
                d.configure(DETECTOR, keys)
                taken, lines = operator.reload()
                self.assertEqual((taken, lines[0]), (True, 'certificates, keys and tokens were read again'))
                with self.client(d, token_of('new')) as c:
                    self.assertNotEqual(c.socket.getpeercert()['serialNumber'], serial)
                self.refused(UNAUTHORIZED, lambda: feeder.request(HELLO, b'', WELCOME))
        finally:
            type(self).cert, type(self).key = before


class TestNewcomers(Secured):
    """Rows 14 and 20 of the fault matrix."""

    def attack_address(self, i):
        return f'127.0.{1 + i // 250}.{1 + i % 250}'

    def dial(self, d, listener, source):
        s = socket.socket()
        s.bind((source, 0))
        s.setblocking(False)
        s.connect_ex(('127.0.0.1', d.port[listener]))
        self.addCleanup(s.close)
        return s

    def test_fault_20_garbage_in_every_state(self):
        d = self.secured(keys='threads = 1\nmax_failures = off\nhandshake = 1s\n')
        rng = random.Random(20)
        recorded = self.record(d)
        with self.client(d, token_of('all')) as honest:
            honest.ping()
            before = d.rss()
            for round_ in range(75):
                at = rng.randint(0, len(recorded))
                noise = rng.randbytes(rng.choice((1, 5, 100, 3000, 20000)))
                listener = rng.choice(('binary tcp', 'line tcp', 'text tcp'))
                how = round_ % 5
                if how == 0:    # from the first byte on
                    data = noise
                elif how == 1:  # a greeting that breaks off into noise
                    data = recorded[:at] + noise
                elif how == 2:  # one flipped bit
                    data = bytearray(recorded)
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                elif how == 3:  # a whole greeting, then noise in records
                    data = recorded + b''.join(b'%c\x03\x03' % rng.choice((20, 21, 22, 23, 99)) + struct.pack('>H', len(p)) + p
                                               for p in (rng.randbytes(rng.randint(0, 500)) for _ in range(5)))
                else:           # a record that promises much
                    data = b'\x16\x03\x01\x40\x00' + noise
                with contextlib.suppress(OSError), d.connect(listener) as s:
                    s.sendall(bytes(data))
                    if rng.random() < 0.5:
                        s.shutdown(socket.SHUT_WR)
                        s.settimeout(0.2)
                        while s.recv(65536):
                            pass
            self.through_the_handshake(d, rng)
            honest.ping()
            self.assert_grew_less(d, before, 8 << 20)
            until(lambda: honest.status()['security']['newcomers'] == 0, 'the last of them to go')
            self.assertEqual(honest.status()['connections']['open'], 1)

    def through_the_handshake(self, d, rng):
        """Noise inside of TLS, in place of HELLO or a token."""
        for i in range(20):
            with contextlib.suppress(OSError, ssl.SSLError):
                s = self.connect(d, rng.choice(('binary tcp', 'line tcp', 'text tcp')))
                s.sendall(rng.randbytes(rng.choice((1, 16, 1000, 50000))))
                s.settimeout(0.1)
                while s.recv(65536):
                    pass

    def record(self, d):
        """The bytes of a good ClientHello."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        o = self.context().wrap_bio(incoming, outgoing, server_hostname='127.0.0.1')
        with self.assertRaises(ssl.SSLWantReadError):
            o.do_handshake()
        return outgoing.read()

    def test_fault_14_idle_and_slow_newcomers(self):
        """Idle ones and ones that send a byte now and then, from many addresses: honest clients go on, new ones come in, memory
        stays, and they are gone in time."""
        many = int(os.environ.get('HANKEL_NEWCOMERS', 300))
        d = self.secured(keys=f'threads = 1\nmax_connections = {many + 100}\nhandshake = 3s\nmax_failures = off\n')
        hello = self.record(d)
        with self.client(d, token_of('all')) as honest:
            h, sent = honest.register('s')[0], 0

            def feed(seconds, between=lambda: None):
                """Points sent and confirmed a second, and the longest that one took."""
                nonlocal sent
                begun, first, worst = time.monotonic(), sent, 0
                while time.monotonic() < begun + seconds:
                    before = time.monotonic()
                    honest.send(points([h] * 100, [START + (sent + i) * SECOND for i in range(100)], [1.0] * 100))
                    honest.ping()
                    sent += 100
                    worst = max(worst, time.monotonic() - before)
                    between()
                return (sent - first) / (time.monotonic() - begun), worst

            feed(0.2)
            alone, _ = feed(1)
            before, slow = d.rss(), []
            for i in range(many):
                slow.append(self.dial(d, ('binary tcp', 'line tcp', 'text tcp')[i % 3], self.attack_address(i)))
            until(lambda: honest.status()['security']['newcomers'] > many * 3 // 4, 'them to be there')
            at = 0

            def byte_a_second():
                nonlocal at
                for s in slow[at % 50::50]:
                    with contextlib.suppress(OSError):
                        s.send(hello[at // 50 % len(hello):][:1])
                at += 1

            under, worst = feed(1.5, byte_a_second)
            grown = d.rss() - before
            print(f'{many} newcomers: {grown >> 10} KiB more, {under / alone:.2f} of the throughput, of which our own part of it has some')
            self.assert_grew_less(d, before, many * 8192 + (4 << 20))
            with self.client(d, token_of('viewer')) as c:
                c.ping()
            until(lambda: honest.status()['security']['newcomers'] == 0, 'their deadline')
            if not harness.SANITIZED:
                self.assertLess(worst, 2)
            self.assertGreater(honest.status()['connections']['timed_out'], many * 3 // 4)

    def test_fault_14_one_address(self):
        """One address may neither have all connections nor all that wait to show something."""
        d = self.secured(tls=False, keys='threads = 1\nmax_connections = 100\nmax_connections_per_address = 30\nmax_newcomers = 20\n')
        with self.client(d, token_of('all'), tls=False) as honest:
            attackers = [self.dial(d, 'line tcp', '127.0.7.7') for _ in range(60)]
            until(lambda: honest.status()['security']['turned_away'] >= 40, 'those past the limit to be turned away')
            self.assertEqual(honest.status()['security']['newcomers'], 20)
            for s in attackers:
                s.close()
            until(lambda: honest.status()['security']['newcomers'] == 0, 'them to be gone')
            for _ in range(29):
                self.client(d, token_of('viewer'), tls=False)
            with self.assertRaises((harness.Closed, ConnectionError)):
                self.client(d, token_of('viewer'), tls=False)

    def test_a_newcomer_that_never_ends(self):
        """Bytes before a peer has shown who it is are limited, whatever they are."""
        d = self.secured(tls=False)
        with self.client(d, token_of('operator'), tls=False) as honest:
            before = d.rss()
            for listener in ('binary tcp', 'line tcp', 'text tcp'):
                s = d.connect(listener)
                self.addCleanup(s.close)
                with self.assertRaises(OSError):
                    for _ in range(100000):
                        s.sendall(bytes(16384) if listener == 'binary tcp' else b'y' * 16384)
            self.assert_grew_less(d, before, 2 << 20)
            self.assertEqual(honest.status()['security']['unauthorized'] + honest.status()['input']['bad_frames'], 3)


    def test_a_newcomer_whose_bytes_are_many(self):
        """A HELLO in records of one byte each: it is the bytes on the wire that count."""
        d = self.secured()
        c = Client(0, False, self.connect(d))
        with contextlib.suppress(OSError):
            for byte in frame(HELLO, bytes(4000)):
                c.send(bytes([byte]))
        kind, _, payload = c.receive()
        self.assertEqual((kind, struct.unpack_from('<H', payload)[0]), (ERROR, UNAUTHORIZED))


class TestClients(Secured):
    """hankel, libhankel beneath it, and the Python client over TLS with tokens and certificates."""

    def hankel(self, *arguments, data=None, wait=60):
        return subprocess.run([HANKEL, *arguments], input=data, capture_output=True, text=True, timeout=wait, check=False)

    def token_file(self, name, token=None):
        path = os.path.join(self.folder.name, f'{name}.token')
        with open(path, 'w') as f:
            f.write((token or token_of(name)) + '\n')
        return path

    def test_feed_tail_and_status(self):
        d = self.secured()
        at, ca = f'127.0.0.1:{d.port["binary tcp"]}', self.ca.certificate
        options = lambda name: ('--tls', '--ca', ca, '--token-file', self.token_file(name))
        tail = subprocess.Popen([HANKEL, 'tail', '--from', at, '--format', 'csv', *options('viewer')], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.addCleanup(tail.stderr.close)
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.kill)
        self.assertIn('subscribed', tail.stderr.readline())
        n = 5000
        rows = 'time,a\n' + ''.join(f'{1600000000 + i},{i % 13}\n' for i in range(n))
        done = self.hankel('feed', '--to', at, *options('feeder'), '-', data=rows)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertEqual([tail.stdout.readline()[:2] for _ in range(n + 1)], ['se'] + ['a,'] * n)
        tail.send_signal(signal.SIGINT)
        self.assertEqual(tail.wait(harness.WAIT), 0)
        status = self.hankel('status', '--from', at, '--json', *options('operator'))
        self.assertIn(f'"in":{n}', status.stdout)
        self.assertEqual(self.hankel('reload', '--from', at, *options('operator')).returncode, 0)
        for name, command, says in (('viewer', 'feed', 'forbidden'), ('feeder', 'status', 'forbidden'), ('viewer', 'reload', 'forbidden')):
            option = '--to' if command == 'feed' else '--from'
            done = self.hankel(command, option, at, *options(name), *(['-'] if command == 'feed' else []), data=rows, wait=20)
            self.assertEqual(done.returncode, 1, (name, command))
            self.assertIn(says, done.stderr)

    def test_what_is_refused_is_told_at_once(self):
        d = self.secured()
        at, ca = f'127.0.0.1:{d.port["binary tcp"]}', ('--ca', self.ca.certificate)
        wrong = self.token_file('wrong', 'hkt_wrong')
        empty = self.token_file('empty', ' ')
        began = time.monotonic()
        for options, says in ((('--tls', *ca), 'unauthorized'), (('--tls', *ca, '--token-file', wrong), 'not known'),
                              (('--tls', *ca, '--token-file', empty), 'no token'), (('--tls', *ca, '--token-file', '/missing'), '/missing'),
                              (('--tls',), 'certificate is not good'), (('--ca', self.other.certificate), 'certificate is not good'),
                              (('--ca', '/missing'), '/missing'), ((*ca, '--cert', self.cert, '--key', self.other.key), self.other.key)):
            done = self.hankel('status', '--from', at, *options)
            self.assertEqual(done.returncode, 1, options)
            self.assertIn(says, done.stderr)
        self.assertLess(time.monotonic() - began, 4)

    def test_a_certificate_for_another_host(self):
        type(self).cert, type(self).key = self.ca.sign('elsewhere', names='DNS:elsewhere.example')
        try:
            d = self.secured()
            done = self.hankel('status', '--from', f'127.0.0.1:{d.port["binary tcp"]}', '--ca', self.ca.certificate)
            self.assertIn('IP address mismatch', done.stderr)
        finally:
            type(self).cert, type(self).key = self.ca.sign('server', names='IP:127.0.0.1,DNS:localhost')

    def test_client_certificate_of_hankel(self):
        d = self.secured(tokens=False, client_ca=True)
        at, (certificate, key) = f'localhost:{d.port["binary tcp"]}', self.ca.sign('pump-7')
        done = self.hankel('status', '--from', at, '--ca', self.ca.certificate, '--cert', certificate, '--key', key)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        done = self.hankel('status', '--from', at, '--ca', self.ca.certificate)
        self.assertEqual(done.returncode, 1)
        self.assertIn('certificate required', done.stderr)

    def test_hankel_token(self):
        d = self.secured()
        made = self.hankel('token', '--add', self.tokens, 'new-one', 'feed,subscribe')
        self.assertEqual((made.returncode, made.stderr), (0, ''))
        token = made.stdout.strip()
        self.assertRegex(token, '^hkt_[A-Za-z0-9_-]{43}$')
        with open(self.tokens) as f:
            content = f.read()
        self.assertNotIn(token, content)
        self.assertTrue(content.endswith(token_line('new-one', 'feed,subscribe', token)))
        d.process.send_signal(signal.SIGHUP)
        until(lambda: any('were read again' in line for line in d.log), 'the reload')
        with self.client(d, token) as c:
            c.subscribe()
        owner = self.hankel('token', '--add', self.tokens, '--feeds', 'site-2/*', 'owner', 'feed')
        with open(self.tokens) as f:
            self.assertTrue(f.read().endswith(token_line('owner', 'feed', owner.stdout.strip())[:-1] + ' feeds=site-2/*\n'))
        shown = self.hankel('token', 'x', 'admin')
        self.assertRegex(shown.stderr, 'x admin sha256:[0-9a-f]{64}')
        for wrong in (('a b', 'feed'), ('', 'feed'), ('a', 'fed'), ('a',), ('#a', 'feed'), ('--feeds', 'a b', 'a', 'feed')):
            self.assertEqual(self.hankel('token', *wrong).returncode, 2)

    def test_python_client(self):
        d = self.secured()
        at = f'127.0.0.1:{d.port["binary tcp"]}'
        context = ssl.create_default_context(cafile=self.ca.certificate)
        with hankel.Client(at, tls=context, token=token_of('all')) as c:
            c.subscribe(unscored=True)
            for i in range(2000):
                c.send('s', START + i * SECOND, float(i))
            c.sync()
            self.assertEqual([c.read(5).time for _ in range(2000)], [START + i * SECOND for i in range(2000)])
        with self.assertRaises(hankel.Error) as caught:
            hankel.Client(at, tls=context, token='wrong')
        self.assertEqual(caught.exception.code, UNAUTHORIZED)
        with self.assertRaises(ssl.SSLError):
            hankel.Client(at, tls=True, token=token_of('all'))
        with hankel.Client(at, tls=context, token=token_of('feeder')) as c, self.assertRaises(hankel.Error) as caught:
            c.status()
        self.assertEqual(caught.exception.code, FORBIDDEN)

    def test_no_token_in_clear_by_mistake(self):
        """Where --tls was forgotten no token leaves this machine, unless that is wanted."""
        host = own_address()
        if not host:
            self.skipTest('this machine has no address but that of loopback')
        token = token_of('operator')
        with socket.create_server((host, 0), family=socket.AF_INET6 if ':' in host else socket.AF_INET) as listener:  # sees what a thief would
            listener.settimeout(0.5)
            at = f'[{host}]:{listener.getsockname()[1]}'

            def seen():
                with contextlib.suppress(TimeoutError), listener.accept()[0] as s:
                    s.settimeout(2)
                    return s.recv(4096)
                return b''

            options = ('--token-file', self.token_file('operator'))
            for command in (('status', '--from', at), ('reload', '--from', at), ('tail', '--from', at), ('feed', '--to', at)):
                done = self.hankel(*command, *options, *(['-'] if command[0] == 'feed' else []), data='time,a\n1600000000,1\n', wait=20)
                self.assertEqual(done.returncode, 1, done)
                self.assertIn('the token was not sent', done.stderr)
                self.assertIn('--tls', done.stderr)
                self.assertEqual(seen(), b'', command)
            with self.assertRaisesRegex(PermissionError, 'token was not sent'):
                hankel.Client(at, token=token)
            self.assertEqual(seen(), b'')
            status = subprocess.Popen([HANKEL, 'status', '--from', at, '--token-in-clear', *options], stderr=subprocess.DEVNULL)
            self.assertIn(token.encode(), seen())
            status.kill()
            status.wait()
            thread = threading.Thread(target=lambda: self.assertRaises(OSError, hankel.Client, at, token=token, token_in_clear=True))
            thread.start()
            self.assertIn(token.encode(), seen())  # and closes, which ends the client
            thread.join(harness.WAIT)
        d = self.secured(tls=False)  # over loopback there is nobody on the way
        done = self.hankel('status', '--from', f'localhost:{d.port["binary tcp"]}', *options)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        with hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}', token=token) as c:
            c.status()

    def test_libhankel_comes_back(self):
        """A feeder over TLS survives a restart of the daemon's side: its connection is cut, and made anew."""
        d = self.secured()
        feed = subprocess.Popen([HANKEL, 'feed', '--to', f'127.0.0.1:{d.port["binary tcp"]}', '--ca', self.ca.certificate, '--token-file',
                                 self.token_file('feeder'), '--rate', '200', '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        feed.stdin.write('time,a\n' + ''.join(f'{1600000000 + i},{i % 13}\n' for i in range(400)))
        feed.stdin.close()
        with self.client(d, token_of('operator')) as c:
            until(lambda: c.status()['points']['in'] > 20, 'points')
            self.write_tokens([token_line('operator', 'admin')])
            d.process.send_signal(signal.SIGHUP)
            until(lambda: sum('were read again' in line for line in d.log) == 1, 'the reload')
            until(lambda: c.status()['security']['unauthorized'] > 1, 'it to be refused')
            self.write_tokens()
            d.process.send_signal(signal.SIGHUP)
            said = feed.stderr.read()
            feed.stdout.close()
            feed.stderr.close()
            feed.wait(harness.WAIT)
        self.assertIn('connected again', said)


class TestDatagrams(Secured):
    """Row 17, where somebody sees the datagrams on their way: they can neither be made, changed nor sent again."""

    def setUp(self):
        super().setUp()
        self.d = self.daemon(DETECTOR, keys='threads = 1\n', listeners=self.listeners() + """
[listen binary-udp]
protocol = binary
transport = udp
address = 127.0.0.1:0
mac = yes
""")

    def keyed(self, wants=1):
        c = self.client(self.d, token_of('all'))
        more = Client(0, False, self.connect(self.d))
        r = more.request(HELLO, text('test') + text(token_of('feeder')) + struct.pack('<I', wants), WELCOME)
        feed, _ = r.take('QI')
        r.string()
        key = r.data[r.at + 2:]
        return c, more, feed, key

    def test_fault_17_forged_changed_and_repeated(self):
        c, feeder, feed, key = self.keyed()
        self.assertEqual(len(key), 32)
        h = c.register('s')[0]
        make = lambda i, k=key: (lambda f: f + hmac.digest(k, f, 'sha256')[:16])(points([h], [START + i * SECOND], [1.0], feed, i + 1, i))
        with self.d.connect('binary udp') as s:
            good = make(0)
            s.send(good)
            s.send(good)                              # again
            s.send(make(1, bytes(32)))                # another key
            s.send(make(1)[:-1])                      # too short
            s.send(points([h], [START], [1.0], feed, 2, 1))  # none
            for at in range(0, len(good) * 8, 7):     # one bit
                changed = bytearray(make(1))
                changed[at // 8] ^= 1 << at % 8
                s.send(bytes(changed))
            s.send(points([h], [START], [1.0], c.feed, 1, 0) + bytes(16))  # of a feed without a key
            s.send(make(1))
            s.send(b'')
            s.send(b'x' * 15)
            until(lambda: c.status()['udp']['datagrams'] >= 9 + len(range(0, len(good) * 8, 7)), 'all of them')
            s.setblocking(False)
            with self.assertRaises(BlockingIOError):
                s.recv(65536)  # never an answer
        status = c.status()
        self.assertEqual(status['points']['in'], 2)
        self.assertEqual((status['udp']['repeated'], status['udp']['lost']), (1, 0))
        self.assertGreaterEqual(status['udp']['forged'], 2 + 16)  # in the rest the checksum or the frame shows it
        feeder.bye(2, 2)
        c.ping()
        self.assertTrue(any('keyed checksum does not fit' in line for line in self.d.log))

    def test_no_key_where_it_is_not_wanted_or_has_no_use(self):
        c, _, _, key = self.keyed(wants=0)
        self.assertEqual(key, b'')
        with self.assertRaises(harness.Closed):
            self.keyed(wants=2)

    def test_the_clients(self):
        at, udp = (f'127.0.0.1:{self.d.port[name]}' for name in ('binary tcp', 'binary udp'))
        context = ssl.create_default_context(cafile=self.ca.certificate)
        with hankel.Client(at, udp=udp, tls=context, token=token_of('all'), mac=True) as c:
            for i in range(1000):
                c.send('s', START + i * SECOND, float(i))
            c.sync()
            status = c.status()
            self.assertEqual((status['points']['in'] + status['udp']['lost_points'], status['udp']['forged']), (1000, 0))
            c.finish()
        with hankel.Client(at, udp=udp, tls=context, token=token_of('all')) as c:
            c.send('s', START, 1.0)
            c.sync()
            self.assertEqual(c.status()['udp']['bad_datagrams'], 1)


class TestConfiguration(Secured):
    def check(self, listener, says):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write(f'[daemon]\nbackend = cpu\n[listen l]\n{listener}{DETECTOR}')
            f.flush()
            done = subprocess.run([HANKELD, '-c', f.name, '--check'], capture_output=True, text=True, timeout=60, check=False)
        self.assertIn(says, done.stderr + done.stdout)
        return done.returncode

    def test_what_beyond_loopback_needs(self):
        tls = f'tls_certificate = {self.cert}\ntls_key = {self.key}\n'
        tcp, udp = 'protocol = {}\naddress = {}:0\n', 'protocol = {}\ntransport = udp\naddress = {}:0\n'
        for address in ('0.0.0.0', '[::]', '192.0.2.1'):
            for extra in ('', tls, f'tokens = {self.tokens}\n'):
                self.assertEqual(self.check(tcp.format('binary', address) + extra, 'needs TLS'), 1)
            self.assertEqual(self.check(udp.format('binary', address), 'mac = yes'), 1)
            self.assertEqual(self.check(udp.format('line', address), 'insecure = yes'), 1)
            for good in (tcp.format('binary', address) + tls + f'tokens = {self.tokens}\n',
                         tcp.format('line', address) + tls + f'tls_client_ca = {self.ca.certificate}\n',
                         tcp.format('text', address) + 'insecure = yes\n', udp.format('line', address) + 'insecure = yes\n',
                         udp.format('binary', address) + 'mac = yes\n'):
                self.assertEqual(self.check(good, 'ok'), 0, good)

    def test_files_that_are_wrong(self):
        local = 'protocol = binary\naddress = 127.0.0.1:0\n'
        missing = os.path.join(self.folder.name, 'missing')
        for keys, says in ((f'tls_certificate = {missing}\ntls_key = {self.key}\n', f'{missing}: '),
                           (f'tls_certificate = {self.cert}\ntls_key = {self.other.key}\n', self.other.key),
                           (f'tls_certificate = {self.key}\ntls_key = {self.key}\n', 'no certificate'),
                           (f'tls_certificate = {self.cert}\n', 'needs tls_certificate and tls_key'),
                           (f'tls_certificate = {self.cert}\ntls_key = {self.key}\ntls_client_ca = {self.key}\n', 'authority'),
                           (f'tokens = {missing}\n', f'{missing}: '), ('scopes = feed,walk\n', 'not a list of feed, subscribe, admin'),
                           ('insecure = maybe\n', 'not one of yes, no'), ('mac = yes\n', 'mac is for'),
                           ('transport = udp\n' + f'tokens = {self.tokens}\n', 'are for transport = tcp')):
            self.assertEqual(self.check(local + keys, says), 1, keys)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
