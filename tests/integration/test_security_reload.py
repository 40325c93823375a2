"""Access control when its files change at a reload; and configurations that would admit no peer, or too many."""
import calendar
import os
import re
import shutil
import signal
import ssl
import struct
import subprocess
import tempfile
import threading
import time

import harness
from harness import ERROR, HANKELD, REGISTER, RELOAD, RELOADED, SECOND, START, frame, points, text, until
from secured import DETECTOR, UNAUTHORIZED, Secured, token_line, token_of

FAULTY = os.path.abspath(os.environ.get('FAULTY_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'faulty-daemon')))


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
                # one token is removed, one is added, one has other scopes
                self.write_tokens([token_line('feeder', 'feed'), token_line('operator', 'subscribe'), token_line('new', 'feed')])
                self.reload(d, 'were read again')
                self.refused(UNAUTHORIZED, lambda: viewer.drain(harness.WAIT))
                self.refused(UNAUTHORIZED, lambda: self.client(d, token_of('viewer')))
                operator.subscribe()
                with self.client(d, token_of('new')) as c:
                    c.register('s')
                # an invalid file changes nothing
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
        """Peers that lose access are disconnected before the reload is reported as done, also by a busy loop."""
        names = [f'{i:05}' * 12 for i in range(10000)]
        lots = b''.join(frame(REGISTER, struct.pack('<I', 1000) + b''.join(map(text, names[i:i + 1000])), 1)
                        for i in range(0, len(names), 1000))
        slow = ''.join(harness.section(f'd{i}', '*0*1*2*3*4*5*6*7*8*9*x', 'window=8,interval=1s') for i in range(60))
        for busy in range(4):  # one of them is not on the first loop
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
        """The peer that requested the reload gets its result, and has no access once the reload is in force."""
        for changed in (False, True):  # a reload of the token file alone, and one of the whole configuration
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
        """It is reported in the log, in the answer to the reload, and in the status; so is a client that rejects the certificate."""
        good = self.cert, self.key
        self.addCleanup(setattr, type(self), 'cert', good[0])
        self.addCleanup(setattr, type(self), 'key', good[1])
        type(self).cert, type(self).key = self.ca.sign('ending', names='IP:127.0.0.1', days=5)
        d = self.secured()
        with self.client(d, token_of('operator')) as c:
            told = c.status()['security']['certificates']
            self.assertEqual([(x['name'], x['state']) for x in told], [(name, 'good') for name in ('binary', 'line', 'text')])
            self.assertLess(abs(calendar.timegm(time.strptime(told[0]['expires'], '%Y-%m-%dT%H:%M:%SZ')) - time.time() - 5 * 86400), 600)
            self.assertTrue([x for x in d.log if f'warning: [listen line]: the certificate in {self.cert} expires in ' in x], d.log)
            for path, late in zip((self.cert, self.key), self.ca.sign('late', names='IP:127.0.0.1', days=-1)):
                os.replace(late, path)
            taken, lines = c.reload()
            says = f'the certificate in {self.cert} has expired: clients refuse it'
            self.assertTrue(taken and f'[listen text]: {says}' in lines, lines)
            self.assertEqual({x['state'] for x in c.status()['security']['certificates']}, {'expired'})
            self.assertTrue([x for x in d.log if f'warning: [listen text]: {says}' in x], d.log)
        check = subprocess.run([harness.HANKELD, '-c', os.path.join(d.directory.name, 'hankeld.conf'), '--check'], capture_output=True, text=True, timeout=harness.WAIT, check=True)
        self.assertIn(f'\n[listen text]: {says}\n', check.stdout)
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.connect(d)
        until(lambda: [x for x in d.log if 'refused at [listen binary]: TLS: the peer sent the alert: certificate expired' in x], 'why a client gave up')

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
        """A reload does not use up any limited resource of the process."""
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
        """If a backend refuses a new detector, the reload fails after certificates and tokens were read: the previous ones stay in force, too."""
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
                # the same files, with a configuration that is accepted
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
        """The error for an unreadable file names the user that the daemon runs as."""
        user = os.geteuid() or 65534
        os.chmod(self.tokens, 0)
        environment = dict(os.environ)
        rules = re.search(r'suppressions=([^: ]+)', environment.get('TSAN_OPTIONS', ''))
        with tempfile.TemporaryDirectory() as folder:  # that user may have no access to the folders of the build and the sources
            os.chmod(folder, 0o755)
            if rules:
                environment['TSAN_OPTIONS'] = environment['TSAN_OPTIONS'].replace(rules[1], shutil.copy(rules[1], folder))
            says = f'{self.tokens}: Permission denied (this is user {user}, group {os.getegid()})'
            self.assertEqual(self.check(f'protocol = binary\naddress = 127.0.0.1:0\ntokens = {self.tokens}\n', says,
                                        program=shutil.copy(HANKELD, folder), env=environment, user=user if os.geteuid() == 0 else None), 1)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
