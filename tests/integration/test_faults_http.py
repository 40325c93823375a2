"""HTTP to listeners that do not speak it: a web page can make its browser POST to any port of this machine, with any lines in the
body. The daemon answers once, and takes nothing of the body. Row 30 of the fault matrix; curl and nc are real."""
import shutil
import socket
import subprocess
import unittest

import harness
from harness import START

BODY = f'posted value=1 {START}\nposted value=2 {START + 1}\n'


class Http(harness.Case):
    listens = harness.LISTENERS

    def setUp(self):
        self.d = self.daemon(keys='threads = 1\nmax_line = 4096\n')

    def nothing_taken(self, bad=None):
        status = self.d.status()
        self.assertEqual(self.balanced(status)['in'], 0)
        self.assertEqual(status['lines']['taken'], 0)
        if bad is not None:
            self.assertEqual(status['lines']['bad'], bad)

    def told(self, n):
        harness.until(lambda: sum('closed: this is HTTP, which [listen' in line for line in self.d.log) >= n, 'the log says that it was HTTP')
        self.assertEqual(sum('this is HTTP' in line for line in self.d.log), n)

    def sent(self, listener, *pieces):
        """The answer to these pieces, up to the end of the connection."""
        with self.d.connect(listener) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            s.settimeout(harness.WAIT)
            for piece in pieces:
                s.sendall(piece)
            got = b''
            while chunk := s.recv(65536):
                got += chunk
            return got

    @unittest.skipUnless(shutil.which('curl'), 'needs curl')
    def test_fault_30_curl(self):
        with self.d.connect('line tcp') as s:
            host, port = s.getpeername()[:2]
        for i, more in enumerate((['--data-binary', BODY], ['--data-binary', '@-'], ['-X', 'PUT', '--data-binary', BODY], [], ['--http2-prior-knowledge'])):
            got = subprocess.run(['curl', '-sS', '-i', '-m', '20', *more, f'http://{host}:{port}/write?db=x'], input=BODY * 20000, capture_output=True, text=True, check=False)
            if '--http2-prior-knowledge' not in more:  # which takes no answer but of its own kind
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertTrue(got.stdout.startswith('HTTP/1.1 400 Bad Request'), got.stdout)
                self.assertIn('not over HTTP: nothing was taken', got.stdout)
            self.told(i + 1)
        self.nothing_taken(bad=5)

    @unittest.skipUnless(shutil.which('nc'), 'needs nc')
    def test_fault_30_nc(self):
        with self.d.connect('line tcp') as s:
            host, port = s.getpeername()[:2]
        request = f'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n\r\n{BODY}'
        got = subprocess.run(['nc', '-N', host, str(port)], input=request, capture_output=True, text=True, timeout=harness.WAIT, check=True)
        self.assertTrue(got.stdout.startswith('HTTP/1.1 400 '), got.stdout)
        self.told(1)
        self.nothing_taken(bad=1)

    def test_fault_30_however_the_first_line_comes(self):
        lines = BODY.encode()
        requests = [b'GET / HTTP/1.0\n' + lines, b'POST /x=1 HTTP/1.1\r\n\r\n' + lines, b'M-SEARCH * HTTP/1.1\r\n\r\n' + lines,
                    b'POST http://localhost:7411/?a="b" HTTP/1.1\r\n' + lines, b'POST /?a=1,b=\\ HTTP/1.1\r\n' + lines,
                    b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + lines]
        for request in requests:
            self.assertTrue(self.sent('line tcp', request).startswith(b'HTTP/1.1 400 '), request)
            self.assertTrue(self.sent('line tcp', *(request[i:i + 1] for i in range(len(request) - len(lines))), lines).startswith(b'HTTP/1.1 400 '))
        self.nothing_taken(bad=2 * len(requests))

    def test_fault_30_a_first_line_beyond_max_line(self):
        for path in (b'/' + b'a' * 4096, b'/' + b'a' * 100000, b'http://h/' + b'a' * 100000):
            request = b'POST ' + path + b' HTTP/1.1\r\nHost: x\r\n\r\n' + BODY.encode()
            self.assertTrue(self.sent('line tcp', request).startswith(b'HTTP/1.1 400 '))
            self.assertTrue(self.sent('line tcp', b'PO', request[2:4100], request[4100:]).startswith(b'HTTP/1.1 400 '))
        self.nothing_taken(bad=6)

    def test_fault_30_text(self):
        got = self.sent('text tcp', b'POST / HTTP/1.1\r\nHost: x\r\n\r\nscores *\nnonsense *\n')
        self.assertEqual(got, b'{"error":"this is HTTP, which this listener does not accept"}\n')
        self.told(1)
        got = self.sent('text tcp', b'POST /' + b'a' * 100000 + b' HTTP/1.1\r\nHost: x\r\n\r\nscores *\nnonsense *\n')
        self.assertEqual(got, b'{"error":"this is HTTP, which this listener does not accept"}\n')
        self.assertEqual(self.d.status()['lines']['bad'], 2)

    def test_fault_30_udp(self):
        with self.d.connect('line udp') as s:
            s.send(b'POST / HTTP/1.1\r\n\r\n' + BODY.encode())
            s.send(f'after value=1 {START}\n'.encode())
        harness.until(lambda: self.d.status()['lines']['taken'] == 1, 'the datagram behind it is taken')
        self.assertEqual(self.balanced(self.d.status())['in'], 1)
        self.assertTrue(any('datagram dropped: this is HTTP' in line for line in self.d.log))

    def test_fault_30_what_only_resembles_http_is_taken(self):
        with self.d.connect('line tcp') as s:
            s.sendall(f'GET /path=1 {START}\nPOST value=1 {START}\nGET / HTTP/1.1\ncpu value=1 {START}\n'.encode())
        harness.until(lambda: self.d.status()['lines']['taken'] == 3, 'three of the lines are taken')
        self.assertEqual(self.d.status()['lines']['bad'], 1)

    def test_fault_30_a_flood_is_few_lines_in_the_log(self):
        for _ in range(80):
            self.sent('line tcp', b'GET / HTTP/1.1\r\n\r\n')
        self.nothing_taken(bad=80)
        self.assertLessEqual(sum('this is HTTP' in line for line in self.d.log), 50)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
