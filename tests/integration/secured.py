"""A daemon with TLS and tokens, for the tests of access control."""
import hashlib
import os
import socket
import ssl
import struct
import subprocess
import tempfile

import certificates
import harness
from harness import HELLO, WELCOME, Client, text

UNAUTHORIZED, FORBIDDEN = 15, 16
TOKENS = {'feeder': 'feed', 'viewer': 'subscribe', 'operator': 'admin', 'all': 'feed,subscribe,admin'}
DETECTOR = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'


def token_of(name):
    return f'hkt_{name}_' + 'x' * 20


def token_line(name, scopes, token=None):
    return f'{name} {scopes} sha256:{hashlib.sha256((token or token_of(name)).encode()).hexdigest()}\n'


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

    def serial(self, certificate):
        done = subprocess.run(['openssl', 'x509', '-in', certificate, '-noout', '-serial'], check=True, capture_output=True, text=True,
                              timeout=harness.WAIT)
        return done.stdout.strip().split('=')[1]

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
