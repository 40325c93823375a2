"""Points over HTTP from clients of InfluxDB, and the answers: compressed, in chunks, too large, too many, and over a kill."""
import base64
import contextlib
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness
import web
from harness import START, WAIT, until

PYTHON = '/usr/bin/python3'  # Debian's, with Debian's packages
BODY, UNPACKED, BODIES = 16 << 20, 32 << 20, 128 << 20


def has_client():
    return os.access(PYTHON, os.X_OK) and subprocess.run([PYTHON, '-c', 'import influxdb'], capture_output=True, check=False).returncode == 0


class Case(web.Described):
    def write(self, daemon, lines, path='/write', **headers):
        status, _, body = self.ask(daemon, path, lines.encode() if isinstance(lines, str) else lines, **headers)
        return status, json.loads(body) if body else None

    def sent(self, daemon, data):
        """Sends these bytes, or pieces one after the other, and returns the whole answer until the daemon closes the connection."""
        s = self.raw(daemon)
        s.settimeout(WAIT)
        for piece in data if isinstance(data, list) else [data]:
            s.sendall(piece)
        return self.said(s)

    def results(self, client):
        return {(sensor, time): value for sensor, time, value, _, _ in client.results}


class Write(Case):
    def test_points_are_taken_with_their_names_times_and_values(self):
        d = self.web()
        for path in '/write', '/api/v2/write':
            for unit, ns in [('', 1), ('ns', 1), ('n', 1), ('us', 10**3), ('u', 10**3), ('%C2%B5', 10**3), ('ms', 10**6), ('s', 10**9),
                             ('m', 60 * 10**9), ('h', 3600 * 10**9)]:
                with d.client() as c:
                    c.subscribe()
                    at = START // (3600 * 10**9) * 3600 * 10**9
                    name = f'cpu{len(path)}{unit},host=a'
                    self.assertEqual(self.write(d, f'{name} usage=1.5,value=3i {at // ns}\r\n\n# nothing\n{name} value=4 {at // ns + 1}',
                                                f'{path}?db=any&bucket=any&org=any&precision={unit}'), (204, None), unit)
                    c.wait_results(3)
                    self.assertEqual(self.results(c), {(f'{name} usage', at): 1.5, (name, at): 3.0, (name, at + ns): 4.0})
        status = d.status()
        self.assertEqual((status['points']['in'], status['lines']['bad']), (60, 0))
        self.balanced(status)

    def test_answered_only_when_the_points_are_dealt_with(self):
        d = self.web()
        c = self.connect(d)
        for k in range(30):  # one connection serves many
            lines = ''.join(f's{i} value={k} {START + k * 10**9}\n' for i in range(300))
            self.assertEqual(self.ask_of(c, '/write', lines.encode())[0], 204)
            self.assertEqual((lambda p: (p['in'], p['pending']))(d.status()['points']), (300 * (k + 1), 0))

    def test_lines_at_fault_are_told_and_the_rest_is_taken(self):
        d = self.web('', detectors='[detector some]\nmatch = good*\nwindow = 8\ninterval = 1s\n', keys='threads = 1\nmax_ahead = 1h\n')
        status, said = self.write(d, f'good v=1 {START}\ngood v=x {START}\n\ngood v=\nother v=2 {START}\ngood v=3 {START + 1}\n'
                                     f'GET / HTTP/1.1\ngood v=4 {4 * 10**18}\n')
        self.assertEqual((status, said['status'], said['taken'], said['refused'], said['dropped']), (400, 400, 2, 3, 2))
        self.assertEqual([(f['line'], f['byte']) for f in said['faults']], [(2, 8), (4, 8), (7, 6), (5, 0)])
        self.assertEqual(said['faults'][3]['why'], 'no detector matches the name')
        self.assertEqual(said['detail'], 'partial write: line 2, byte 8: ' + said['faults'][0]['why'] +
                         '; 3 lines refused, 2 points dropped, 2 points taken')
        self.assertEqual((said['error'], said['message'], said['code']), (said['detail'], said['detail'], 'invalid'))
        self.assertEqual(self.write(d, f'GET / HTTP/1.1\ngood v=5 {START + 2}')[1]['taken'], 1)
        many = self.write(d, 'bad\n' * 1000)[1]
        self.assertEqual((many['refused'], len(many['faults'])), (1000, 8))
        status, said = self.write(d, f'good v=4 {4 * 10**18}')
        self.assertEqual((status, said['taken'], said['dropped'], said['faults']), (400, 0, 1, []))
        self.assertIn('a time too far in the future', said['detail'])
        until(lambda: d.status()['points']['pending'] == 0, 'all points to be dealt with')
        self.balanced(d.status())

    def test_no_room_for_another_sensor(self):
        d = self.web(keys='threads = 1\nmax_sensors = 3\n')
        status, said = self.write(d, ''.join(f's{i} value=1 {START}\n' for i in range(5)))
        self.assertEqual((status, said['taken'], said['dropped']), (400, 3, 2))
        self.assertEqual(said['faults'], [{'line': n, 'byte': 0, 'why': 'the daemon is full'} for n in (4, 5)])

    def test_bodies_that_are_packed(self):
        d = self.web()
        lines = ''.join(f's{i} value={i} {START}\n' for i in range(5000)).encode()
        for k, packed in enumerate([gzip.compress(lines), gzip.compress(lines[:999]) + gzip.compress(lines[999:]), gzip.compress(b'')]):
            self.assertEqual(self.write(d, packed, Content_Encoding='gzip'), (204, None), k)
        self.assertEqual(self.write(d, lines, Content_Encoding='identity'), (204, None))
        self.assertEqual(d.status()['points']['in'], 15000)
        packed = gzip.compress(lines)
        for bad in packed[:-9], packed[:100], b'nonsense', packed + b'x', packed[:-4] + b'\xff\xff\xff\x7f':
            self.assertEqual(self.write(d, bad, Content_Encoding='gzip')[0], 400, bad[:20])
        for coding in 'deflate', 'zstd', 'gzip, gzip', 'x' * 100:
            self.assertEqual(self.write(d, packed, Content_Encoding=coding)[0], 415, coding)
        self.assertEqual(d.status()['points']['in'], 15000)

    def test_bodies_in_chunks(self):
        d = self.web()
        lines = [f's{i} value={i} {START}\n'.encode() for i in range(500)]
        head = b'POST /write HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
        whole = b''.join(b'%x\r\n%s\r\n' % (len(l), l) for l in lines) + b'0\r\n\r\n'
        extended = b'00a;x=y\r\n' + lines[0][:10] + b'\r\n' + b'%X \r\n' % (len(lines[0]) - 10) + lines[0][10:] + b'\r\n0\r\nA: b\r\nC: d\r\n\r\n'
        for n, sent in [(500, head + whole), (500, [head, whole]), (1, head + extended), (1, [bytes([b]) for b in head + extended]),
                        (0, head + b'0\r\n\r\n')]:
            before = d.status()['points']['in']
            said = self.sent(d, sent)
            self.assertIn(b' 204 ', said.partition(b'\r\n')[0])
            self.assertIn(b'connection: close', said)
            self.assertEqual(d.status()['points']['in'] - before, n)
        for bad in b'x\r\n', b'5\r\nabcdefg', b'\r\n', b'123456789\r\n', b'1;' + b'x' * 9000 + b'\r\n', b'1\r\na\r\n0\r\n' + b'x: y\r\n' * 2000:
            self.assertIn(b' 400 ', self.sent(d, head + bad).partition(b'\r\n')[0], bad[:20])
        for more in b'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', b'Transfer-Encoding: gzip\r\n':
            self.assertIn(b' 400 ', self.sent(d, b'POST /write HTTP/1.1\r\nHost: localhost\r\n' + more + b'\r\n0\r\n\r\n'), more)
        self.assertIn(b' 411 ', self.sent(d, b'POST /write HTTP/1.1\r\nHost: localhost\r\n\r\n'))

    def test_bodies_that_are_too_large(self):
        d = self.web()
        line = f's value=1 {START} '.encode()
        filler = b'#' + b'x' * 4094 + b'\n'  # 4 KiB that are read and contain no point
        self.assertEqual(self.write(d, b'#' + b'x' * 60000 + b'\n', Content_Length=str(BODY + 1))[0], 413)
        chunk = b'%x\r\n%s\r\n' % (1 << 20, filler * (1 << 8))
        said = self.sent_while_it_goes(d, b'POST /write HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n', chunk, 40)
        self.assertIn(b' 413 ', said.partition(b'\r\n')[0])
        self.assertEqual(self.write(d, gzip.compress(filler * (UNPACKED >> 12) + b'\n', 1), Content_Encoding='gzip')[0], 413)
        self.assertEqual(self.write(d, gzip.compress(filler * ((UNPACKED >> 12) - 1) + line, 1), Content_Encoding='gzip')[0], 204)
        self.assertEqual(d.status()['points']['in'], 1)
        self.assertEqual(self.write(d, filler * (BODY >> 12))[0], 204)

    def sent_while_it_goes(self, daemon, head, piece, times):
        s = self.raw(daemon)
        s.settimeout(WAIT)
        with contextlib.suppress(OSError):
            s.sendall(head)
            for _ in range(times):
                s.sendall(piece)
        return self.said(s)

    def test_come_again_when_there_is_no_room(self):
        d = self.web(keys='threads = 1\nhandshake = 60s\n')
        holding, line = [], f's value=1 {START}'.encode()

        def full():
            if self.ask(d, '/write', line)[0] == 429:
                return True
            for _ in range(BODIES // BODY):  # again, because one of them may have come when there was no room for it
                s = d.connect('http tcp')
                self.addCleanup(s.close)
                s.sendall(b'POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % BODY)
                holding.append(s)
            return False
        until(full, 'bodies to take all the room')
        status, headers, body = self.ask(d, '/write', line)
        self.assertEqual((status, headers['retry-after'], json.loads(body)['status']), (429, '1', 429))
        self.assertEqual(self.ask(d, '/healthz')[0], 200)
        for s in holding:
            s.close()
        until(lambda: self.ask(d, '/write', line)[0] == 204, 'room to be there again')

    def test_a_peer_that_goes_leaves_nothing_behind(self):
        d = self.web()
        before = d.status()['connections']
        for k in range(20):
            s = d.connect('http tcp')
            s.sendall(b'POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n' + b's value=1\n' * (k * 1000))
            s.close()
        lines = b''.join(b's%d value=1 %d\n' % (i % 1000, START + i) for i in range(100000))
        for k in range(5):
            s = d.connect('http tcp')
            s.sendall(b'POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(lines) + lines)
            s.close()
        until(lambda: d.status()['points']['pending'] == 0, 'all points to be dealt with')
        self.assertEqual(self.write(d, 's value=1')[0], 204)
        until(lambda: d.status()['connections']['open'] == before['open'], 'connections to be gone')
        self.balanced(d.status())


    def test_what_came_late_or_was_rejected_is_told(self):
        d = self.web()
        self.assertEqual(self.ask(d, '/write', ''.join(f's v={k} {START + k * 10**9}\n' for k in range(10)).encode())[1]['hankel-points'],
                         'taken=10, late=0, rejected=0')
        lines = ''.join(f's v={k} {START + k * 10**9}\n' for k in range(8, 12)) + f's v=1e39 {START + 12 * 10**9}\n'
        status, headers, _ = self.ask(d, '/write', lines.encode())
        self.assertEqual((status, headers['hankel-points']), (204, 'taken=5, late=2, rejected=1'))
        status, said = self.write(d, f's v=1 {START}\ns v=x {START}\n')
        self.assertEqual((status, said['taken'], said['late'], said['rejected']), (400, 1, 1, 0))
        self.assertTrue(said['detail'].endswith('1 points taken, of which 1 were late and 0 were rejected'), said)
        self.assertIsNone(self.ask(d, '/ping')[1]['hankel-points'])


class Kept(Case):
    def test_what_was_answered_outlives_a_kill(self):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as state:  # the second one ends later
            keys = f'threads = 1\ndurability = journal\nstate = {state}\n'
            d = self.web(keys=keys, ends=-signal.SIGKILL)
            lines = ''.join(f's{i} value={k} {START + k * 10**9}\n' for k in range(20) for i in range(50))
            self.assertEqual(self.write(d, lines), (204, None))
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
            d = self.web(keys=keys)
            self.assertEqual(self.write(d, lines), (204, None))
            self.assertEqual(d.status()['points']['late'], 1000)


class Clients(Case):
    def test_what_clients_look_for(self):
        d = self.web()
        for method in 'GET', 'HEAD':
            status, headers, body = self.ask(d, '/ping', method=method)
            self.assertEqual((status, body, headers['content-length']), (204, b'', None))
            self.assertRegex(headers['x-influxdb-version'], r'^hankeld-\d')
        self.assertEqual(self.ask(d, '/health')[0], 200)
        self.assertEqual(json.loads(self.ask(d, '/health')[2])['status'], 'pass')

    def test_what_telegraf_sends(self):
        """A request like that of Telegraf's outputs.influxdb_v2, as its source composes it: without token, organization or bucket, compressed, in chunks;
        Telegraf looks for `code` and `message` in a refusal."""
        d = self.web()

        def send(lines):
            packed = gzip.compress(lines.encode())
            half = len(packed) // 2
            return self.sent(d, b'POST /api/v2/write?bucket=&org= HTTP/1.1\r\nHost: 127.0.0.1:7413\r\nUser-Agent: Telegraf/1.29.4 Go/1.21.6\r\nTransfer-Encoding: chunked\r\nAuthorization: Token \r\n'
                             b'Content-Encoding: gzip\r\nContent-Type: text/plain; charset=utf-8\r\nAccept-Encoding: gzip\r\n\r\n' +
                             b''.join(b'%x\r\n%s\r\n' % (len(part), part) for part in (packed[:half], packed[half:])) + b'0\r\n\r\n')
        line = 'cpu,cpu=cpu0,host=a\\ b usage_idle=98.5,usage_user=1i,busy=true {}\n'
        self.assertIn(b' 204 ', send(''.join(line.format(START + k * 10**9) for k in range(10))).partition(b'\r\n')[0])
        self.assertEqual(d.status()['points']['in'], 30)
        head, _, body = send(line.format('x') + line.format(START + 10 * 10**9)).partition(b'\r\n\r\n')
        self.assertIn(b' 400 ', head.partition(b'\r\n')[0])
        said = json.loads(body)
        self.assertEqual((said['code'], 'line 1' in said['message']), ('invalid', True))
        self.assertEqual(d.status()['points']['in'], 33)

    def test_tokens_as_clients_show_them(self):
        token = 'hkt_feeder_' + 'x' * 20
        with tempfile.NamedTemporaryFile('w', suffix='.tokens') as f:
            f.write(f'feeder feed sha256:{hashlib.sha256(token.encode()).hexdigest()}\nviewer subscribe sha256:'
                    f'{hashlib.sha256(b"hkt_viewer").hexdigest()}\n')
            f.flush()
            d = self.web(f'tokens = {f.name}\n', keys='threads = 1\nmax_failures = 100\n')
            line = f's value=1 {START}'
            basic = base64.b64encode
            good = ['Bearer ' + token, 'Token ' + token, 'token ' + token, 'Basic ' + basic(b'anybody:' + token.encode()).decode(),
                    'Basic ' + basic(b':' + token.encode()).decode()]
            for shown in good:
                self.assertEqual(self.write(d, line, Authorization=shown), (204, None), shown)
            for shown in ('Token x', 'Basic ' + basic(token.encode()).decode(), 'Basic ' + basic(token.encode() + b':').decode(),
                          'Basic !!', 'Basic ', 'Basic ' + 'A' * 3000, token, ''):
                self.assertEqual(self.write(d, line, Authorization=shown)[0], 401, shown)
            self.assertEqual(self.write(d, line)[0], 401)
            self.assertEqual(self.write(d, line, Authorization='Token hkt_viewer')[0], 403)
            self.assertEqual(self.ask(d, '/ping')[0], 204)
            self.assertEqual(d.status()['points']['in'], len(good))

    def test_credentials_and_statements_of_influxdb_1(self):
        token = 'hkt_feeder_' + 'x' * 20
        with tempfile.NamedTemporaryFile('w', suffix='.tokens') as f:
            f.write(f'feeder feed sha256:{hashlib.sha256(token.encode()).hexdigest()}\nall feed,subscribe,admin sha256:{hashlib.sha256(b"hkt_all").hexdigest()}\n')
            f.flush()
            d = self.web(f'tokens = {f.name}\n', keys='threads = 1\nmax_failures = 100\n')
            line = f's value=1 {START}'.encode()
            for credentials in f'u=anybody&p={token}', f'p={token}':
                self.assertEqual(self.ask(d, f'/write?db=any&{credentials}', line)[0], 204, credentials)
                self.assertEqual(self.ask(d, f'/query?{credentials}&q=SHOW%20DATABASES')[0], 200)
            for credentials in 'u=anybody&p=wrong', 'u=anybody&p=', f'u={token}', f'xp={token}':
                self.assertEqual(self.ask(d, f'/write?{credentials}', line)[0], 401, credentials)
            self.assertEqual(self.ask(d, '/api/v1/status?p=hkt_all')[0], 401)  # it contains points only
        d = self.web()
        form = {'Content_Type': 'application/x-www-form-urlencoded'}
        for path, body in [('/query?q=CREATE%20DATABASE%20%22telegraf%22', None), ('/query?q=create+database+x', b''), ('/query', b'db=&q=CREATE+DATABASE+%22telegraf%22'),
                           ('/query?db=x', b'chunked=true&q=%20create%20database%20x&epoch=ns')]:
            status, _, answer = self.ask(d, path, body, **form)
            self.assertEqual((status, json.loads(answer)), (200, {'results': [{'statement_id': 0}]}), path)
        self.assertEqual(json.loads(self.ask(d, '/query?q=SHOW+DATABASES')[2])['results'][0]['series'][0]['values'], [['hankeld']])
        for path, body in [('/query?q=SELECT%20*%20FROM%20cpu', None), ('/query', None), ('/query', b''), ('/query?q=' + 'x' * 400, None), ('/query', b'q=' + b'%zz' * 400), ('/query', b'\0\1&q&=q&'),
                           ('/query', b'x=1&q=DROP+DATABASE+x')]:
            status, _, answer = self.ask(d, path, body, **form)
            self.assertEqual((status, 'InfluxQL' in json.loads(answer)['error']), (400, True), path)
        self.assertEqual(self.ask(d, '/query', b'q=CREATE+DATABASE+x', Origin='http://evil.example')[0], 403)

    def test_pages_of_other_origins_bring_nothing(self):
        d = self.web()
        for header in {'Origin': 'http://evil.example'}, {'Sec_Fetch_Site': 'cross-site'}, {'Origin': 'null'}:
            self.assertEqual(self.write(d, 's value=1', Content_Type='text/plain', **header)[0], 403, header)
        self.assertEqual(d.status()['points']['in'], 0)

    @unittest.skipUnless(shutil.which('curl'), 'curl is not here')
    def test_curl(self):
        d = self.web()
        lines = ''.join(f's{i % 100},host=a value={i} {START + i}\n' for i in range(60000)).encode()  # over 1 MiB, so curl waits for status 100
        url = f"http://localhost:{d.port['http tcp']}/api/v2/write?bucket=x"
        for how, body in [([], lines), (['-H', 'Transfer-Encoding: chunked'], lines), (['--http1.0'], lines),
                          (['-H', 'Content-Encoding: gzip'], gzip.compress(lines)),
                          (['-H', 'Content-Encoding: gzip', '-H', 'Transfer-Encoding: chunked'], gzip.compress(lines))]:
            done = subprocess.run(['curl', '-sS', '-w', '%{http_code} %{time_total}', '--data-binary', '@-', *how, url], input=body,
                                  capture_output=True, timeout=WAIT, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b''), how)
            code, seconds = done.stdout.split()
            self.assertEqual(code, b'204', (how, done.stdout))
        self.assertEqual(d.status()['points']['in'], 300000)

    @unittest.skipUnless(has_client(), 'python3-influxdb is not here')
    def test_the_client_of_influxdb_1(self):
        d = self.web()
        program = f'''
import influxdb
for gzip in False, True:
    c = influxdb.InfluxDBClient('127.0.0.1', {d.port['http tcp']}, 'user', 'token', 'any', gzip=gzip)
    assert c.ping().startswith('hankeld-'), c.ping()
    c.create_database('any')
    assert c.get_list_database() == [dict(name='hankeld')], c.get_list_database()
    assert c.write_points([dict(measurement='cpu', tags=dict(host='a b'), time={START} + i, fields=dict(usage=0.5 + i)) for i in range(100)],
                          time_precision='n', batch_size=30)
    try:
        c.write('cpu usage=nonsense', dict(db='any'), protocol='line')
        raise SystemExit('what is wrong was taken')
    except influxdb.exceptions.InfluxDBClientError as e:
        assert e.code == 400 and 'partial write: line 1, byte 11' in str(e), e
'''
        done = subprocess.run([PYTHON, '-c', program], capture_output=True, text=True, timeout=WAIT, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        status = d.status()
        self.assertEqual((status['points']['in'], status['lines']['bad']), (200, 2))


if __name__ == '__main__':
    harness.main()
