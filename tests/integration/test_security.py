"""Who is let in, and what for: TLS, certificates, tokens, their scopes, and reading them again."""
import calendar
import contextlib
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import warnings

import harness
from harness import (BYE, ERROR, HANKEL, HANKELD, OPERATE, OPERATED, PING, PONG, POINTS, REGISTER, REGISTERED, RELOAD, RELOADED, REPORT,
                     SECOND, START, STATUS, SUBSCRIBE, WELCOME, Client, frame, points, text, until)
from secured import DETECTOR, FORBIDDEN, TOKENS, UNAUTHORIZED, Secured, token_line, token_of

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
        for what in ('REGISTER', 'OPERATE'):
            self.assertTrue(any(f'{what} by viewer needs another scope than subscribe' in line for line in d.log), d.log)

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
        until(lambda: any('feed pump-8/a is not one of pump-7' in line for line in d.log), 'the audit')
        path = os.path.join(self.folder.name, 'other.token')
        with open(path, 'w') as f:
            f.write(token_of('other'))
        done = subprocess.run([HANKEL, 'feed', '--to', f'127.0.0.1:{d.port["binary tcp"]}', '--token-file', path, '--feed', 'pump-7/a', '-'],
                              input='time,a\n1600000000,1\n', capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn('does not allow a feed of this name', done.stderr)
        # who loses a feed by a reload is closed, others are not
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
        """What of a stranger's is no whole line is nobody's: over plain TCP and over TLS, for either kind of listener."""
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
                self.refused(UNAUTHORIZED, lambda: viewer.drain(harness.WAIT))
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

    def test_when_it_is_over_none_is_left(self):
        """Who may not stay is shown out before the reload is said to be over, also by a loop that has much to do just then."""
        names = [f'{i:05}' * 12 for i in range(10000)]
        lots = b''.join(frame(REGISTER, struct.pack('<I', 1000) + b''.join(map(text, names[i:i + 1000])), 1)
                        for i in range(0, len(names), 1000))
        slow = ''.join(harness.section(f'd{i}', '*0*1*2*3*4*5*6*7*8*9*x', 'window=8,interval=1s') for i in range(60))
        for busy in range(4):  # one of them is not on the loop that leads
            self.write_tokens()
            d = self.daemon(slow + DETECTOR, keys='threads = 1\nloops = 2\n', listeners=self.listeners(tls=False))
            operator, *there = [self.client(d, token_of(name), tls=False) for name in ('operator', *['feeder'] * 4)]
            self.write_tokens([token_line('operator', 'admin')])
            there[busy].send(lots)
            self.assertTrue(operator.reload()[0])
            for i, c in enumerate(there):
                if i != busy:
                    c.socket.settimeout(0.001)  # it has been said by now
                    kind, _, payload = c.receive()
                    self.assertEqual((kind, struct.unpack_from('<H', payload)[0]), (ERROR, UNAUTHORIZED))

    def test_who_takes_away_his_own_token_is_answered(self):
        """He hears what came of it, and may do nothing any more from when it is in force."""
        for changed in (False, True):  # the token alone, and with the configuration
            self.write_tokens()
            d = self.daemon(DETECTOR, listeners=self.listeners(tls=False))
            c, other = (self.client(d, token_of(name), tls=False) for name in ('all', 'operator'))
            c.subscribe()
            if changed:
                d.configure(DETECTOR + harness.section('more', 'b*', 'window=9'))
            self.write_tokens([token_line('operator', 'admin')])
            c.send(frame(RELOAD, tag=7) + frame(harness.STATUS, tag=8))
            kind, tag, payload = c.receive()
            self.assertEqual((kind, tag, payload[0]), (RELOADED, 7, 1))
            self.assertIn(b'were read again', payload)
            kind, _, payload = c.receive()
            self.assertEqual((kind, struct.unpack_from('<H', payload)[0]), (ERROR, UNAUTHORIZED))
            with self.assertRaises(harness.Closed):
                c.receive()
            self.assertEqual(until(lambda: (s := other.status())['connections']['open'] == 1 and s, 'him to be gone')['subscribers']['count'], 0)

    def test_certificates_that_expire_are_told(self):
        """In the log, to whoever asks for the reload, and in the status; so is a client that does not take the certificate."""
        good = self.cert, self.key
        self.addCleanup(setattr, type(self), 'cert', good[0])
        self.addCleanup(setattr, type(self), 'key', good[1])
        type(self).cert, type(self).key = self.ca.sign('ending', names='IP:127.0.0.1', days=5)
        d = self.secured()
        with self.client(d, token_of('operator')) as c:
            told = c.status()['security']['certificates']
            self.assertEqual([(x['name'], x['state']) for x in told], [(name, 'good') for name in ('binary', 'line', 'text')])
            self.assertLess(abs(calendar.timegm(time.strptime(told[0]['expires'], '%Y-%m-%dT%H:%M:%SZ')) - time.time() - 5 * 86400), 600)
            self.assertTrue([x for x in d.log if f'warning: [listen line]: the certificate in {self.cert} is good for ' in x], d.log)
            for path, late in zip((self.cert, self.key), self.ca.sign('late', names='IP:127.0.0.1', days=-1)):
                os.replace(late, path)
            taken, lines = c.reload()
            says = f'the certificate in {self.cert} has expired: clients refuse it'
            self.assertTrue(taken and f'[listen text]: {says}' in lines, lines)
            self.assertEqual({x['state'] for x in c.status()['security']['certificates']}, {'expired'})
            self.assertTrue([x for x in d.log if f'warning: [listen text]: {says}' in x], d.log)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.connect(d)
        until(lambda: [x for x in d.log if 'refused at [listen binary]: TLS: the peer gives up: certificate expired' in x], 'why a client gave up')

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

    def test_many_times(self):
        """Nothing that there are only so many of in a process is used up by it."""
        d = self.secured(keys='threads = 1\nmax_failures = off\nlog_level = warning\n')
        with self.client(d, token_of('operator')) as operator:
            for i in range(60 if harness.SANITIZED else 300):
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
                self.refused(UNAUTHORIZED, lambda: feeder.drain(harness.WAIT))
        finally:
            type(self).cert, type(self).key = before


class TestConfiguration(Secured):
    def check(self, listener, says, program=HANKELD, **how):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write(f'[daemon]\nbackend = cpu\n[listen l]\n{listener}{DETECTOR}')
            f.flush()
            os.chmod(f.name, 0o644)
            done = subprocess.run([program, '-c', f.name, '--check'], capture_output=True, text=True, timeout=harness.WAIT, check=False, **how)
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

    def test_files_that_are_roots_own(self):
        """What the daemon may not read is said with who it is."""
        user = os.geteuid() or 65534
        os.chmod(self.tokens, 0)
        environment = dict(os.environ)
        rules = re.search(r'suppressions=([^: ]+)', environment.get('TSAN_OPTIONS', ''))
        with tempfile.TemporaryDirectory() as folder:  # those of the build and the sources may be closed to that user
            os.chmod(folder, 0o755)
            if rules:
                environment['TSAN_OPTIONS'] = environment['TSAN_OPTIONS'].replace(rules[1], shutil.copy(rules[1], folder))
            says = f'{self.tokens}: Permission denied (this is user {user}, group {os.getegid()})'
            self.assertEqual(self.check(f'protocol = binary\naddress = 127.0.0.1:0\ntokens = {self.tokens}\n', says,
                                        program=shutil.copy(HANKELD, folder), env=environment, user=user if os.geteuid() == 0 else None), 1)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
