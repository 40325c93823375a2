"""hankel, libhankel beneath it, and the Python client over TLS with tokens and certificates."""
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import harness
from harness import HANKEL, SECOND, START, until
from secured import FORBIDDEN, UNAUTHORIZED, Secured, token_line, token_of

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402


def own_address():
    """An address of this machine other than loopback, None if there is none. Sends nothing."""
    for family, beyond in ((socket.AF_INET, '192.0.2.1'), (socket.AF_INET6, '2001:db8::1')):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as s:
            s.connect((beyond, 9))
            if not s.getsockname()[0].startswith('127.') and s.getsockname()[0] != '::1':
                return s.getsockname()[0]
    return None


class TestClients(Secured):
    """hankel, libhankel beneath it, and the Python client over TLS with tokens and certificates."""

    def hankel(self, *arguments, data=None, wait=harness.WAIT):
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
        for name, command, *more in (('viewer', 'feed', '-'), ('feeder', 'status'), ('viewer', 'reload'), ('viewer', 'ack', 'a'),
                                     ('viewer', 'maintenance', 'begin', '*', '1h')):
            option = '--to' if command == 'feed' else '--from'
            done = self.hankel(command, option, at, *options(name), *more, data=rows, wait=harness.WAIT)
            self.assertEqual(done.returncode, 1, (name, command))
            self.assertIn('forbidden', done.stderr)

    def test_what_is_refused_is_told_at_once(self):
        d = self.secured()
        at, ca = f'127.0.0.1:{d.port["binary tcp"]}', ('--ca', self.ca.certificate)
        wrong = self.token_file('wrong', 'hkt_wrong')
        empty = self.token_file('empty', ' ')
        began = time.monotonic()
        for options, says in ((('--tls', *ca), 'unauthorized'), (('--tls', *ca, '--token-file', wrong), 'unknown token'),
                              (('--tls', *ca, '--token-file', empty), 'no token'), (('--tls', *ca, '--token-file', '/missing'), '/missing'),
                              (('--tls',), 'unable to get local issuer certificate (--ca FILE names its authority)'), (('--ca', self.other.certificate), 'certificate is not good'),
                              (('--ca', '/missing'), '/missing'), ((*ca, '--cert', self.cert, '--key', self.other.key), self.other.key)):
            done = self.hankel('status', '--from', at, *options)
            self.assertEqual(done.returncode, 1, options)
            self.assertIn(says, done.stderr)
        self.assertLess(time.monotonic() - began, harness.WAIT / 2)

    def test_tls_forgotten(self):
        """Each attempt counts as one failure, so an address is refused only after many attempts; the error then says so."""
        d = self.secured(keys='threads = 1\nmax_failures = 3\n')
        at, options = f'127.0.0.1:{d.port["binary tcp"]}', ('--ca', self.ca.certificate, '--token-file', self.token_file('all'))
        with self.client(d, token_of('all')) as honest:
            refused = lambda: honest.status()['security']['unauthorized']
            for failures, command in ((1, ('feed', '--to', at, '-')), (2, ('tail', '--from', at)), (3, ('status', '--from', at))):
                done = self.hankel(*command, data='v\n1\n')
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn('a listener with TLS does so (--tls, --ca)', done.stderr)
                until(lambda: refused() >= failures, 'the failure')
                self.assertEqual(refused(), failures)
            done = self.hankel('feed', '--to', at, *options, '-', data='v\n1\n')
            self.assertEqual(done.returncode, 1)
            self.assertIn('too much of this address (max_failures', done.stderr)
            self.assertEqual(refused(), 3)

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
        done = self.hankel('status', '--from', at, '--ca', self.ca.certificate, '--cert', certificate)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'{certificate}: ', done.stderr)
        self.assertTrue(done.stderr.endswith('; the key is looked for there, too, since no other file is named for it (--key)\n'), done.stderr)
        done = self.hankel('status', '--from', at, '--ca', self.ca.certificate, '--key', key)
        self.assertEqual(done.returncode, 2)
        self.assertIn('--key goes with --cert', done.stderr)
        both = os.path.join(self.folder.name, 'both.pem')
        with open(both, 'w') as out:
            for path in (certificate, key):
                with open(path) as one:
                    out.write(one.read())
        done = self.hankel('status', '--from', at, '--ca', self.ca.certificate, '--cert', both)
        self.assertEqual((done.returncode, done.stderr), (0, ''))

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
            self.assertEqual([c.read(harness.WAIT).time for _ in range(2000)], [START + i * SECOND for i in range(2000)])
            self.assertIsNone(c.read(0))
        with self.assertRaises(hankel.Error) as caught:
            hankel.Client(at, tls=context, token='wrong')
        self.assertEqual(caught.exception.code, UNAUTHORIZED)
        with self.assertRaises(ssl.SSLError):
            hankel.Client(at, tls=True, token=token_of('all'))
        with hankel.Client(at, tls=context, token=token_of('feeder')) as c, self.assertRaises(hankel.Error) as caught:
            c.status()
        self.assertEqual(caught.exception.code, FORBIDDEN)

    def test_no_token_in_clear_by_mistake(self):
        """Without --tls, hankel sends no token to another machine unless told to."""
        host = own_address()
        if not host:
            self.skipTest('this machine has no address but that of loopback')
        token = token_of('operator')
        with socket.create_server((host, 0), family=socket.AF_INET6 if ':' in host else socket.AF_INET) as listener:  # sees what a thief would
            at = f'[{host}]:{listener.getsockname()[1]}'

            def seen(wait=harness.WAIT):
                listener.settimeout(wait)
                with contextlib.suppress(TimeoutError), listener.accept()[0] as s:
                    s.settimeout(wait)
                    return s.recv(4096)
                return b''

            options = ('--token-file', self.token_file('operator'))
            for command in (('status', '--from', at), ('reload', '--from', at), ('tail', '--from', at), ('feed', '--to', at)):
                done = self.hankel(*command, *options, *(['-'] if command[0] == 'feed' else []), data='time,a\n1600000000,1\n', wait=harness.WAIT)
                self.assertEqual(done.returncode, 1, done)
                self.assertIn('the token was not sent', done.stderr)
                self.assertIn('--tls', done.stderr)
                self.assertEqual(seen(0.2), b'', command)
            with self.assertRaisesRegex(PermissionError, 'token was not sent'):
                hankel.Client(at, token=token)
            self.assertEqual(seen(0.2), b'')
            status = subprocess.Popen([HANKEL, 'status', '--from', at, '--token-in-clear', *options], stderr=subprocess.DEVNULL)
            self.assertIn(token.encode(), seen())
            status.kill()
            status.wait()
            thread = threading.Thread(target=lambda: self.assertRaises(OSError, hankel.Client, at, token=token, token_in_clear=True))
            thread.start()
            self.assertIn(token.encode(), seen())  # the daemon closes the connection, which ends the client
            thread.join(harness.WAIT)
        d = self.secured(tls=False)  # nobody can read loopback on the way
        done = self.hankel('status', '--from', f'localhost:{d.port["binary tcp"]}', *options)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        with hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}', token=token) as c:
            c.status()

    def test_libhankel_comes_back(self):
        """A feeder over TLS survives the loss of its connection: it reconnects."""
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


if __name__ == '__main__':
    harness.main(needs_gpu=False)
