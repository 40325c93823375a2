"""The HTTP API: its answers, which must fit openapi.json; operators' requests; the stream; and pages of other sites, which can change nothing."""
import hashlib
import http.client
import json
import os
import socket
import tempfile
import urllib.parse

import harness
import web
from harness import START, WAIT, until


class Stream:
    """Server-Sent Events, one after another: (event, id, data)."""

    def __init__(self, daemon, query, **headers):
        self.connection = http.client.HTTPConnection('127.0.0.1', daemon.port['http tcp'], timeout=WAIT)
        self.connection.request('GET', '/api/v1/stream?' + query, headers={k.replace('_', '-'): v for k, v in headers.items()})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.headers['content-type'] == 'text/event-stream'
        assert self.answer.readline() == b'retry: 2000\n' and self.answer.readline() == b'\n'

    def next(self):
        got = {'event': None, 'id': None, 'data': None}
        while True:
            line = self.answer.readline()
            if not line:
                return None
            if line == b'\n' and got['data'] is not None:
                return got['event'], got['id'] and int(got['id']), json.loads(got['data'])
            name, _, value = line.decode().rstrip('\n').partition(': ')
            if name in got:
                got[name] = value

    def until(self, kind, **members):
        while True:
            got = self.next()
            assert got, f'the stream ended before {kind} {members}'
            if got[0] == kind and all(got[2].get(k) == v for k, v in members.items()):
                return got


class Answers(web.Api):
    def test_a_limit_counts_alerts_that_match_the_glob(self):
        d = self.web()
        names = [f'a{i}' for i in range(8)] + ['wanted', 'wanted too']
        self.step(d, names)
        self.assertEqual({a['sensor'] for a in self.ask(d, 'alerts?limit=2&glob=wanted*')[2]['alerts']}, {'wanted', 'wanted too'})
        self.assertEqual([a['sensor'] for a in self.ask(d, 'alerts?limit=1&glob=wanted')[2]['alerts']], ['wanted'])
        status, _, all_of_them = self.ask(d, 'alerts?limit=3')
        self.assertEqual((status, all_of_them['standing'], len(all_of_them['alerts'])), (200, 10, 3))
        self.assertEqual(self.ask(d, 'ack', {'sensor': 'wanted'})[0], 200)
        until(lambda: [a['sensor'] for a in self.ask(d, 'alerts?limit=1&glob=wanted*')[2]['alerts']] == ['wanted too'],
              'one that nobody has acknowledged to come first')

    def test_what_there_is_and_as_it_is_described(self):
        d = self.web(durability='journal')
        n = self.step(d, ['pump', 'boiler <b>&"'])
        status = self.ask(d, 'status')[2]
        self.assertEqual((status['points']['in'], status['sensors']['count']), (2 * n, 2))
        alerts = self.standing(d, 2)
        self.assertEqual({a['sensor'] for a in alerts}, {'pump', 'boiler <b>&"'})
        self.assertEqual(len(self.ask(d, 'alerts?glob=p*')[2]['alerts']), 1)
        self.assertEqual(self.ask(d, 'incidents')[2], {'made': False, 'standing': 0, 'incidents': [], 'over': []})
        self.assertEqual(len(self.ask(d, 'alerts?limit=1')[2]['alerts']), 1)
        events = self.ask(d, 'events')[2]
        self.assertEqual([e['position'] for e in events['events']], list(range(1, events['last'] + 1)))
        self.assertEqual(self.ask(d, f"events?since={events['last']}")[2]['events'], [])
        some = self.ask(d, 'events?limit=1&glob=' + urllib.parse.quote('boiler <b>&"'))[2]
        self.assertEqual([e['sensor'] for e in some['events']], ['boiler <b>&"'])

    def test_what_is_wrong_is_said(self):
        d = self.web()
        for path, body, status in [('nothing', None, 404), ('sensors?limit=0', None, 400), ('sensors?limit=10001', None, 400),
                                   ('sensors?limit=-1', None, 400), ('sensors?after=x', None, 400), ('sensors?glob=' + 'x' * 513, None, 400),
                                   ('stream?what=nonsense', None, 400), ('stream?glob=a%01b', None, 400), ('ack', None, 405),
                                   ('status', {}, 405), ('ack', '[]', 400), ('ack', '{"sensor":', 400), ('ack', {}, 400),
                                   ('ack', {'sensor': 1}, 400), ('ack', {'sensor': 'x', 'number': 0.5}, 400),
                                   ('ack', {'sensor': 'x', 'by': 'y' * 65}, 400), ('ack', {'sensor': 'nobody'}, 409),
                                   ('ack', {'sensor': 'x' * 9000}, 400), ('maintenance', {'glob': '*'}, 400),
                                   ('maintenance', {'glob': '', 'seconds': 1}, 400), ('maintenance', {'glob': '*', 'seconds': 1e300}, 400),
                                   ('maintenance', {'glob': 'x', 'end': True}, 409), ('ack', b'\0' * 65536, 400), ('ack', 'x' * 65537, 413),
                                   ('ack', '[' * 60000, 400)]:
            got, headers, answer = self.ask(d, path, body)
            self.assertEqual((got, headers['content-type'], answer['status']), (status, 'application/problem+json', status), (path, answer))
        self.assertEqual(self.ask(d, 'ack', 'x', Content_Type='text/plain')[0], 415)


class Operating(web.Api):
    def test_ack_maintenance_and_reload(self):
        d = self.web(durability='journal')
        self.step(d)
        alert = self.standing(d)[0]
        code, _, said = self.ask(d, 'ack', {'sensor': 'pump', 'number': alert['number'], 'by': 'ann'})
        self.assertEqual((code, said['text']), (200, f"pump:{alert['number']} is acknowledged"))
        alert = self.ask(d, 'alerts')[2]['alerts'][0]
        self.assertEqual(alert['by'], 'ann')
        self.assertEqual(self.ask(d, 'ack', {'sensor': 'pump'})[0], 409)
        self.assertEqual(self.ask(d, 'events')[2]['events'][-1]['event'], 'acknowledged')
        self.assertEqual(self.ask(d, 'maintenance', {'glob': 'pump*', 'seconds': 600, 'by': 'ann'})[0], 200)
        self.assertEqual([(m['by'], m['match']) for m in self.ask(d, 'status')[2]['maintenance']], [('ann', 'pump*')])
        self.assertEqual(self.ask(d, 'maintenance', {'glob': 'pump*', 'end': True})[0], 200)
        self.assertEqual(self.ask(d, 'reload', '')[2]['text'], 'the configuration is as it was')

    def test_nothing_changes_for_a_page_of_another_site(self):
        d = self.web(durability='journal')
        self.step(d)
        self.standing(d)
        port = d.port['http tcp']
        for headers in ({'Origin': 'http://evil.example'}, {'Origin': 'null'}, {'Origin': f'http://127.0.0.1:{port + 1}'},
                        {'Origin': f'http://localhost:{port}'}, {'Sec_Fetch_Site': 'cross-site'}, {'Sec_Fetch_Site': 'same-site'},
                        {'Sec_Fetch_Site': 'x' * 900}, {'Origin': f'http://127.0.0.1:{port}.evil.example'}):
            self.assertEqual(self.ask(d, 'ack', {'sensor': 'pump'}, **headers)[0], 403, headers)
        for host in 'evil.example', f'evil.example:{port}':  # another site's name that resolves to this machine
            self.assertEqual(self.ask(d, 'ack', {'sensor': 'pump'}, Host=host, Origin=f'http://{host}')[0], 421)
            self.assertEqual(self.ask(d, 'alerts', Host=host)[0], 421)
        self.assertNotIn('by', self.ask(d, 'alerts')[2]['alerts'][0])
        ours = {'Origin': f'http://127.0.0.1:{port}', 'Sec_Fetch_Site': 'same-origin'}
        self.assertEqual(self.ask(d, 'ack', {'sensor': 'pump'}, **ours)[0], 200)

    def test_tokens_scopes_and_login(self):
        names = {'operator': 'admin', 'viewer': 'subscribe', 'feeder': 'feed', 'boss': 'subscribe,admin'}
        token = {n: f'hkt_{n}_' + 'x' * 20 for n in names}
        with tempfile.NamedTemporaryFile('w', suffix='.tokens') as f:
            f.writelines(f'{n} {s} sha256:{hashlib.sha256(token[n].encode()).hexdigest()}\n' for n, s in names.items())
            f.flush()
            d = self.web(f'tokens = {f.name}\n', keys='max_failures = 100\n')
            self.step(d)
            bearer = {n: {'Authorization': 'Bearer ' + t} for n, t in token.items()}
            for path in 'status', 'alerts', 'sensors', 'stream', 'events':
                self.assertEqual(self.ask(d, path)[0], 401, path)
                self.assertEqual(self.ask(d, path, **bearer['feeder'])[0], 403, path)
            self.assertEqual(self.ask(d, 'status', **bearer['operator'])[0], 200)
            code, _, body = self.ask(d, 'sensors', **bearer['operator'])
            self.assertEqual((code, 'this needs scope subscribe; the token or certificate has admin' in str(body)), (403, True), body)
            until(lambda: any('/api/v1/sensors needs scope subscribe; operator has admin' in line for line in d.log), 'the line of the log')
            for path, body in ('ack', {'sensor': 'pump'}), ('maintenance', {'glob': '*', 'seconds': 9}), ('reload', ''):
                self.assertEqual(self.ask(d, path, body)[0], 401, path)
                self.assertEqual(self.ask(d, path, body, **bearer['viewer'])[0], 403, path)
            self.standing_by(d, bearer['viewer'])
            self.assertEqual(self.ask(d, 'ack', {'sensor': 'pump', 'by': 'somebody else'}, **bearer['operator'])[0], 200)
            self.assertEqual(self.ask(d, 'alerts', **bearer['viewer'])[2]['alerts'][0]['by'], 'operator')
            self.assertEqual(self.ask(d, 'login', {'token': 'hkt_wrong'})[0], 401)
            self.assertEqual(self.ask(d, 'login', {'token': token['viewer'] + '; Domain=evil'})[0], 401)
            self.assertEqual(self.ask(d, 'login', {'token': token['viewer']}, Origin='http://evil.example')[0], 403)
            code, headers, _ = self.ask(d, 'login', {'token': token['viewer']})
            cookie = headers['set-cookie']
            self.assertEqual(code, 200)
            for part in 'HttpOnly', 'SameSite=Strict', 'Path=/':
                self.assertIn(part, cookie)
            cookie = {'Cookie': 'other=1; ' + cookie.partition(';')[0]}
            self.assertEqual(self.ask(d, 'sensors', **cookie)[0], 200)
            self.assertEqual(self.ask(d, 'reload', '', **cookie)[0], 403)
            self.assertIn('Max-Age=0', self.ask(d, 'logout', '', **cookie)[1]['set-cookie'])
            stream = Stream(d, '', **bearer['viewer'])
            f.truncate(0)
            d.process.send_signal(1)
            self.assertIsNone(stream.next() and None)  # closed: its token was revoked
            self.assertEqual(self.ask(d, 'sensors', **bearer['viewer'])[0], 401)

    def standing_by(self, d, who):
        until(lambda: self.ask(d, 'alerts', **who)[2]['alerts'], 'an alert to stand')


class Told(web.Api):
    """Operators' requests, and their records in the event log."""

    def incident(self, **how):
        d = self.web(detectors='[incidents]\nbudget = 100/day\ninterval = 1s\n' + web.STEPS, durability='journal', **how)
        self.step(d)
        until(lambda: self.ask(d, 'incidents')[2]['incidents'], 'an incident')
        return d

    def first(self, d):
        got = self.ask(d, 'incidents')[2]
        return (got['incidents'] + got['over'])[0]

    def test_feedback(self):
        d = self.incident()
        number = self.first(d)['about']['id']
        self.assertNotIn('feedback', self.first(d))
        code, _, said = self.ask(d, 'feedback', {'word': 'expected', 'incident': number, 'by': 'ann'})
        self.assertEqual((code, said['text'].partition(':')[0]), (200, f'the incident #{number} is expected'))
        kept = until(lambda: self.ask(d, 'feedback')[2]['feedback'], 'it to be in force')
        self.assertEqual([(f['incident'], f['kind'], f['sensor']) for f in kept], [(number, 'expected', 'pump')])
        self.assertIn('by ann', until(lambda: self.first(d).get('feedback'), 'the incident to carry it')['text'])
        self.assertEqual(self.ask(d, 'feedback', {'word': 'false', 'sensor': 'pump'})[0], 200)
        until(lambda: (self.first(d).get('feedback') or {}).get('kind') == 'false', 'it to carry what was said last')
        self.assertEqual(self.ask(d, 'feedback', {'word': 'undo', 'incident': number})[0], 200)
        until(lambda: 'feedback' not in self.first(d) and not self.ask(d, 'feedback')[2]['feedback'], 'it to be undone')
        code, _, said = self.ask(d, 'feedback', {'word': 'undo', 'incident': number})
        self.assertEqual((code, 'undo' in said['detail']), (409, True))
        self.assertEqual(self.ask(d, 'feedback', {'word': 'false', 'incident': 77})[0], 409)
        for body in {}, {'word': 'expected'}, {'word': 'wrong', 'incident': 1}, {'word': 'false', 'incident': 1, 'sensor': 'pump'}, {'word': 'false', 'incident': 0.5}, {'word': 1, 'sensor': 'pump'}:
            self.assertEqual(self.ask(d, 'feedback', body)[0], 400, body)
        self.assertEqual(self.ask(d, 'feedback', {'word': 'false', 'sensor': 'pump'}, Origin='http://evil.example')[0], 403)
        self.assertEqual([t['told'] for t in self.ask(d, 'told')[2]['told']], ['expected', 'false', 'undone'])

    def test_a_daemon_without_incidents_says_so(self):
        d = self.web()  # and keeps no log
        code, _, said = self.ask(d, 'feedback', {'word': 'expected', 'sensor': 'pump'})
        self.assertEqual((code, 'makes no incidents' in said['detail']), (409, True))
        self.assertEqual(self.ask(d, 'feedback')[2], {'feedback': []})
        self.assertEqual(self.ask(d, 'told')[0], 409)

    def test_what_was_told_is_listed_and_outlives_the_daemon(self):
        d = self.incident()
        number = self.standing(d)[0]['number']
        self.ask(d, 'ack', {'sensor': 'pump', 'number': number, 'by': 'ann'})
        self.ask(d, 'maintenance', {'glob': 'pump*', 'seconds': 600, 'by': 'bob'})
        self.assertEqual([(m['match'], m['by'], m['now']) for m in self.ask(d, 'maintenance')[2]['maintenance']], [('pump*', 'bob', True)])
        self.ask(d, 'maintenance', {'glob': 'pump*', 'end': True, 'by': 'eve'})
        self.assertEqual(self.ask(d, 'maintenance')[2], {'maintenance': []})
        self.ask(d, 'reload', '')
        with open(os.path.join(d.directory.name, 'hankeld.conf'), 'a') as f:
            f.write('nonsense = 1\n')
        self.assertEqual(self.ask(d, 'reload', '')[0], 409)

        def told():
            return [(t['told'], t.get('by', ''), t.get('match') or t.get('sensor', '')) for t in self.ask(d, 'told')[2]['told']]

        want = [('acknowledged', 'ann', 'pump'), ('maintenance', 'bob', 'pump*'), ('maintenance ended', 'eve', 'pump*'), ('reloaded', '', ''), ('reload refused', '', '')]
        until(lambda: told() == want, 'all of it')
        last = self.ask(d, 'told')[2]
        self.assertGreater(last['told'][1]['until'], last['told'][1]['time'])
        self.assertIn('nonsense', last['told'][-1]['text'])
        self.assertEqual(self.ask(d, f"told?since={last['position']}")[2]['told'], [])
        self.assertEqual([t['told'] for t in self.ask(d, 'told?glob=other')[2]['told']], [t[0] for t in want[1:]])
        events = [e['position'] for e in self.ask(d, 'events')[2]['events']]
        self.assertFalse(set(events) & {t['position'] for t in last['told'][1:]})
        d.stop()
        d = self.web(detectors='[incidents]\nbudget = 100/day\ninterval = 1s\n' + web.STEPS, keys=f'durability = journal\nstate = {self.folder.name}\n')
        self.assertEqual(told(), want)


class Streaming(web.Api):
    def test_results_alerts_and_coming_back(self):
        d = self.web(durability='journal')
        stream, only = Stream(d, 'what=results,events&glob=pu*'), Stream(d, 'channel=shift')
        self.step(d, ['pump', 'other'])
        event, _, row = stream.next()
        self.assertEqual((event, row['sensor'], row['state']), (None, 'pump', 'warming'))
        _, position, alert = stream.until('alert', event='raised')
        self.assertEqual((position, alert['sensor'], alert['channel']), (alert['position'], 'pump', 'score'))
        self.assertEqual(Stream(d, 'glob=pump&since=0').until('alert', event='raised')[1:], (position, alert))
        self.assertGreater(Stream(d, 'glob=*', Last_Event_ID=str(position - 1)).next()[1], position - 1)
        self.ask(d, 'ack', {'sensor': 'pump'})
        self.assertGreater(Stream(d, 'glob=pump', Last_Event_ID=str(position)).next()[1], position)
        only.answer.fp.raw._sock.settimeout(0.3)
        with self.assertRaises(TimeoutError):  # no alert had that channel
            only.next()

    def test_the_end_of_the_daemon_ends_streams(self):
        d = self.web()
        streams = [Stream(d, 'what=results') for _ in range(20)]
        until(lambda: d.status()['subscribers']['count'] == 20, 'all to be subscribed')
        self.assertEqual(d.stop(), 0)
        for s in streams:
            while got := s.next():
                self.assertEqual(got[0], 'fault')

    def test_one_that_goes_is_let_go(self):
        d = self.web()
        for s in [Stream(d, 'what=results') for _ in range(20)]:
            s.answer.close()
            s.connection.close()
        until(lambda: d.status()['loops'][0]['connections'] + d.status()['subscribers']['count'] <= 2, 'none to be left', WAIT)

    def test_a_slow_one_is_bounded_and_hears_of_the_gap(self):
        d = self.web(keys='queue = 65536\nmax_connections_per_address = 1000\n')
        slow = socket.create_connection(('127.0.0.1', d.port['http tcp']), WAIT)
        self.addCleanup(slow.close)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.sendall(b'GET /api/v1/stream?what=results HTTP/1.1\r\nHost: localhost\r\n\r\n')
        until(lambda: d.status()['subscribers']['count'] == 1, 'it to be subscribed')
        before = d.rss()
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(200)))
            for k in range(300):
                c.send(harness.points(handles, [START + k * 10**9] * 200, [1.0] * 200))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
            until(lambda: c.status()['subscribers']['gap_results'] > 0, 'results to be left out')
        self.assert_grew_less(d, before, 48 << 20)
        slow.settimeout(WAIT)
        got = b''
        while b'event: gap\n' not in got:
            more = slow.recv(1 << 16)
            self.assertTrue(more)
            got = got[-100:] + more


if __name__ == '__main__':
    harness.main()
