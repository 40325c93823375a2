"""Files of secrets and certificates: paths that are no regular file, files that are too large, and lists of revoked certificates."""
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time

import harness
from harness import HANKEL, until
from secured import DETECTOR, UNAUTHORIZED, Secured, token_line, token_of

SOON = harness.WAIT / 2  # s that a refusal may take on a busy machine
FILES = ('tls_certificate', 'tls_key', 'tls_client_ca', 'crl', 'tokens')


class Bad(Secured):
    """Each file in turn is replaced by a FIFO without a writer, an endless device, a directory, a huge file, or a missing file."""

    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.folder.name, f'files-{self.id()}')
        os.mkdir(self.place)
        self.good = {'tls_certificate': self.cert, 'tls_key': self.key, 'tls_client_ca': self.ca.certificate,
                     'crl': self.ca.revoke(f'none-{self.id()}'), 'tokens': self.tokens}
        self.path = {key: os.path.join(self.place, key) for key in FILES}
        for key in FILES:
            self.mend(key)

    def remove(self, key):
        if os.path.isdir(self.path[key]) and not os.path.islink(self.path[key]):
            os.rmdir(self.path[key])
        elif os.path.lexists(self.path[key]):
            os.remove(self.path[key])

    def mend(self, key):
        self.remove(key)
        shutil.copy(self.good[key], self.path[key])

    def spoil(self, key, how):
        self.remove(key)
        path = self.path[key]
        if how == 'FIFO':
            os.mkfifo(path)
        elif how == 'device':
            os.symlink('/dev/zero', path)
        elif how == 'directory':
            os.mkdir(path)
        elif how == 'huge':
            with open(path, 'w') as f:
                f.truncate(1 << 33)  # a hole
        elif how == 'socket':
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(path)

    BAD = {'FIFO': 'it is a FIFO, and a file is needed', 'device': 'it is a device, and a file is needed',
           'directory': 'it is a directory, and a file is needed', 'huge': 'it is longer than', 'socket': 'it is no file',
           'gone': 'No such file'}

    def listener(self):
        keys = ''.join(f'{key} = {self.path[key]}\n' for key in FILES)
        return f'[listen binary]\nprotocol = binary\naddress = 127.0.0.1:0\n{keys}'

    def test_at_start(self):
        for key in FILES:
            for how, says in self.BAD.items():
                self.spoil(key, how)
                begun = time.monotonic()
                with self.assertRaises(harness.NotReady) as caught:
                    harness.Daemon(DETECTOR, listeners=self.listener())
                self.assertLess(time.monotonic() - begun, SOON, (key, how))
                told = [line for line in caught.exception.log if self.path[key] in line and says in line]
                self.assertTrue(told, (key, how, caught.exception.log))
                self.mend(key)

    def test_at_reload(self):
        """The error is reported, the previous file stays in force, and the daemon answers meanwhile."""
        certificate = self.ca.sign('client', file='client-files')
        d = self.daemon(DETECTOR, listeners=self.listener())
        with self.client(d, token_of('all'), self.context(certificate)) as c:
            for n, (key, how) in enumerate((key, how) for key in FILES for how in self.BAD):
                self.spoil(key, how)
                d.process.send_signal(signal.SIGHUP)
                until(lambda: c.status()['configuration']['refused'] == n + 1, (key, how), SOON)
                why = c.status()['configuration']['why']
                self.assertTrue(self.path[key] in why and self.BAD[how] in why, (key, how, why))
                self.mend(key)
                with self.client(d, token_of('all'), self.context(certificate)) as other:
                    other.ping()
            d.process.send_signal(signal.SIGHUP)
            until(lambda: any('were read again' in line for line in d.log), 'the reload')
            c.ping()

    def test_one_that_changes(self):
        """A token file that is rewritten all the time is read completely or not at all."""
        d = self.daemon(DETECTOR, listeners=self.listener())
        certificate = self.ca.sign('client', file='client-changes')
        with self.client(d, token_of('all'), self.context(certificate)) as c:
            for n in range(200):
                with open(self.path['tokens'], 'a') as f:
                    for _ in range(20):
                        f.write('# a comment that grows\n' * 20)
                        f.flush()
                    if n % 4 == 0:
                        d.process.send_signal(signal.SIGHUP)
                c.ping()  # a peer whose token is in all versions of the file is not disconnected

            def read_twice():
                d.process.send_signal(signal.SIGHUP)  # requests that come during a reload are combined into one
                now = c.status()['configuration']
                return now['reloads'] + now['refused'] > 1

            until(read_twice, 'the file to be read')

    def test_clients_do_not_hang(self):
        d = self.secured(tls=False)
        to = f'127.0.0.1:{d.port["binary tcp"]}'
        for how, says in self.BAD.items():
            if how == 'FIFO':
                says = 'there is no token'
            self.spoil('tokens', how)
            done = subprocess.run([HANKEL, 'status', '--from', to, '--token-file', self.path['tokens']], capture_output=True, text=True,
                                  timeout=SOON, check=False)
            self.assertEqual(done.returncode, 1, how)
            self.assertIn(says, done.stderr)
        # a shell's <(command) is a FIFO, too
        done = subprocess.run(['bash', '-c', f'{HANKEL} status --from {to} --token-file <(sleep 0.5; echo {token_of("all")})'],
                              capture_output=True, text=True, timeout=SOON, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Revoked(Secured):
    """Certificates that their authority has revoked are refused."""

    def start(self, crl, **how):
        self.crl = os.path.join(self.folder.name, f'{self.id()}.crl')
        shutil.copy(crl, self.crl)
        return self.secured(tokens=False, client_ca=True, extra=f'crl = {self.crl}\nscopes = feed,subscribe,admin\n', **how)

    def is_refused(self, d, certificate):
        """With TLS 1.3 a client learns of the refusal with the first byte that it reads."""
        with self.assertRaises((ssl.SSLError, ConnectionError, harness.Closed)):
            self.client(d, context=self.context(certificate))

    def test_a_revoked_client(self):
        good, bad = self.ca.sign('press-1', file='good-1'), self.ca.sign('press-2', file='bad-1')
        d = self.start(self.ca.revoke('first', bad[0]))
        self.client(d, context=self.context(good)).ping()
        self.is_refused(d, bad)
        says = f'its certificate (CN=press-2, serial {self.serial(bad[0])}) was refused: certificate revoked'
        until(lambda: any(says in line for line in d.log), says)
        with self.client(d, context=self.context(good)) as c:
            listener = c.status()['security']['certificates'][0]
            self.assertEqual(listener['crl'], 'good')
            self.assertTrue(listener['crl_expires'].startswith('2040-01-01'), listener)
            self.assertGreaterEqual(c.status()['security']['unauthorized'], 1)

    def test_a_reload_closes(self):
        good, bad = self.ca.sign('press-1', file='good-2'), self.ca.sign('press-2', file='bad-2')
        d = self.start(self.ca.revoke('none'))
        stays, goes = self.client(d, context=self.context(good)), self.client(d, context=self.context(bad))
        line, text = (self.connect(d, f'{kind} tcp', self.context(bad)) for kind in ('line', 'text'))
        line.sendall(b'a value=1\n')
        until(lambda: stays.status()['lines']['taken'] == 1, 'the line')
        shutil.copy(self.ca.revoke('then', bad[0]), self.crl)
        taken, says = stays.reload()
        self.assertTrue(taken, says)
        self.refused(UNAUTHORIZED, lambda: goes.drain(harness.WAIT))
        for s in (line, text):
            s.settimeout(harness.WAIT)
            while True:
                try:
                    if not s.recv(4096):
                        break
                except (ssl.SSLError, ConnectionError):
                    break
        stays.ping()
        self.is_refused(d, bad)
        says = f'its certificate (CN=press-2, serial {self.serial(bad[0])}) was refused: certificate revoked'
        until(lambda: sum(says in l for l in d.log) >= 3, says)
        # the client that requests the reload gets its answer first
        shutil.copy(self.ca.revoke('all', good[0], bad[0]), self.crl)
        taken, says = stays.reload()
        self.assertTrue(taken, says)
        self.refused(UNAUTHORIZED, lambda: stays.drain(harness.WAIT))

    def test_an_expired_list(self):
        """The expiry is reported, revoked certificates stay revoked, and other clients are accepted."""
        good, bad = self.ca.sign('press-1', file='good-3'), self.ca.sign('press-2', file='bad-3')
        d = self.start(self.ca.revoke('old', bad[0], until='20210101000000Z'))
        until(lambda: any('has expired: certificates revoked since then are accepted' in l for l in d.log), 'the log')
        self.is_refused(d, bad)
        with self.client(d, context=self.context(good)) as c:
            listener = c.status()['security']['certificates'][0]
            self.assertEqual(listener['crl'], 'expired')
            taken, says = c.reload()
            self.assertTrue(taken, says)
            self.assertTrue(any('has expired: certificates revoked since then are accepted' in l for l in says), says)

    def test_lists_of_others(self):
        bad = self.other.revoke('others')
        with self.assertRaises(harness.NotReady) as caught:
            self.start(bad)
        self.assertTrue(any('no authority of tls_client_ca that may (cRLSign) has signed list 1' in l for l in caught.exception.log))
        with self.assertRaises(harness.NotReady) as caught:
            self.secured(extra=f'crl = {bad}\n')
        self.assertTrue(any('it needs tls_client_ca' in l for l in caught.exception.log), caught.exception.log)


class Dropped(Secured):
    """An aborted handshake costs as much as a complete one, so it counts as a failure of its address."""

    def handshake(self, d, how):
        raw = socket.create_connection(('127.0.0.1', d.port['binary tcp']), harness.WAIT, source_address=('127.0.0.9', 0))
        if how == 'silent':
            raw.close()
        elif how == 'greeting':
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            s = self.context().wrap_bio(incoming, outgoing, server_hostname='127.0.0.1')
            try:
                s.do_handshake()
            except ssl.SSLWantReadError:
                pass
            raw.sendall(outgoing.read())
            raw.recv(1)
            raw.close()
        else:
            try:
                self.context().wrap_socket(raw, server_hostname='127.0.0.1').close()
            finally:
                raw.close()

    def test_dropped_before_a_token(self):
        for how in ('greeting', 'through'):
            d = self.secured(keys='threads = 1\nmax_failures = 4\n')
            with self.client(d, token_of('all')) as watch:
                for _ in range(8):  # a peer that only checks whether the port is open does not count as a failure
                    self.handshake(d, 'silent')
                for _ in range(4):
                    self.handshake(d, how)
                until(lambda: watch.status()['security']['unauthorized'] == 4, how)
                self.assertEqual(watch.status()['security']['addresses_shut_out'], 1)
                until(lambda: any('the connection closed before the peer authenticated' in l for l in d.log), 'the log')
                with self.assertRaises((OSError, ssl.SSLError)):
                    self.handshake(d, 'through')
                watch.ping()


if __name__ == '__main__':
    harness.main()
