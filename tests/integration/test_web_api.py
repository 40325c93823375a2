"""HTTP's API: what it answers, as openapi.json describes it; operating; the stream; and that no page of another site changes anything."""
import hashlib
import http.client
import json
import os
import socket
import tempfile
import threading
import time
import urllib.parse

import harness
import test_fields
import test_groups
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

    def test_sensors_in_parts(self):
        d = self.web()
        with d.client() as c:
            c.register(*(f's{i}' for i in range(500)), *(f't{i}' for i in range(10)))
        names, after = [], 0
        while after is not None:
            part = self.ask(d, f'sensors?glob=s*&limit=200&after={after}')[2]
            names += [s['name'] for s in part['sensors']]
            after = part.get('next')
        self.assertEqual(sorted(names), sorted(f's{i}' for i in range(500)))
        self.assertEqual(part['count'], 510)
        self.assertEqual(self.ask(d, 'events')[0], 409)

    def listed(self, d, query, what='sensors'):
        """All parts of a list, and how many these were."""
        sensors, after, parts = [], None, 0
        while after is not None or parts == 0:
            part = self.ask(d, f'{what}?' + query + ('' if after is None else f'&after={after}'))[2]
            sensors, after, parts = sensors + part[what], part.get('next'), parts + 1
        return sensors, parts

    def test_sensors_are_sorted_of_all(self):
        d = self.daemon('[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n', listeners=harness.LISTENERS + web.LISTENER, keys='threads = 2\n')
        for sort in 'score', 'change':
            self.assertEqual(self.ask(d, 'sensors?sort=' + sort)[2], {'sensors': [], 'count': 0})
        names = [f's{i:03}' for i in range(300)]
        with d.client() as c:
            handles = c.register(*names, 'silent')
            for k in range(40):  # the higher its number, the later it steps
                c.send(harness.points(handles[:300], [START + k * 10**9] * 300, [float(k % 3) + (7.0 if k >= 28 + i // 30 and i < 250 else 0) for i in range(300)]))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
        got, _ = self.listed(d, 'sort=score')
        scores = [s['score'] for s in got]
        self.assertEqual((len(got), got[-1]['name'], scores[:-1]), (301, 'silent', sorted(scores[:-1], reverse=True)))
        self.assertEqual({s['name']: s for s in got}, {s['name']: s for s in self.listed(d, '')[0]})
        for query in 'sort=score', 'sort=change', 'sort=score&glob=s*', '':  # in parts as in one
            self.assertEqual(self.listed(d, query + '&limit=7')[0], self.listed(d, query)[0], query)
        self.assertEqual({s['name'][:3] for s in self.listed(d, 'sort=score&glob=s1*&limit=9')[0]}, {f's1{i}' for i in range(10)})
        alerts = {a['sensor']: a['time'] for a in self.ask(d, 'alerts?limit=1000')[2]['alerts']}
        late, _ = self.listed(d, 'sort=change&alert=true&limit=10')
        self.assertEqual([(s['name'], s['changed']) for s in late], sorted(alerts.items(), key=lambda a: (-a[1], a[0])))
        self.assertTrue(0 < len(late) < 300 and all(s['alert'] for s in late))
        self.assertEqual({s['name'] for s in self.listed(d, 'alert=false')[0]}, {*names, 'silent'} - alerts.keys())
        for wrong in 'limit=1001&sort=name', 'sort=nonsense', 'limit=0', 'sort=score&after=7', 'sort=score&after=-', 'after=7-1', 'sort=change&after=' + 'x' * 99:
            self.assertEqual(self.ask(d, 'sensors?' + wrong)[0], 400, wrong)

    def test_the_last_change_outlives_its_alert(self):
        d = self.web(durability='journal')
        n = self.step(d, ['first'])
        with d.client() as c:  # a thousand seconds later
            handles = c.register('second')
            for k in range(n):
                c.send(harness.points(handles, [START + (1000 + k) * 10**9], [web.value(k)]))
        at = {a['sensor']: a['time'] for a in self.standing(d, 2)}
        with d.client() as c:  # it goes on as it was: its alert ends
            handles = c.register('first')
            last = at['first']
            while c.status()['alerts']['standing'] == 2:
                c.send(harness.points(handles, [last := last + 10**9], [0.0]))
                c.ping()
                until(lambda: c.status()['points']['pending'] == 0, 'its result')
        self.assertEqual([(s['name'], s['alert'], s['changed']) for s in self.listed(d, 'glob=first')[0]], [('first', False, at['first'])])
        self.assertEqual([s['name'] for s in self.listed(d, 'sort=change')[0]], sorted(at, key=lambda s: -at[s]))
        self.assertEqual(d.stop(), 0)

    def test_sensors_by_channel_and_state(self):
        d = self.daemon('[detector a]\nmatch = a*\nalgorithm = ika, graph, shift, novelty, limit\nwindow = 8\nika.rank = 2\nlimit.limit = 100\ninterval = 1s\n'
                        '[detector b]\nmatch = b*\nalgorithm = svd\nwindow = 8\ninterval = 1s\n[group pair]\nmatch = b(*)x*\n', listeners=harness.LISTENERS + web.LISTENER, keys='threads = 2\n')
        some = [f'b{i:04}' for i in range(1500)]
        with d.client() as c:
            handles = c.register('a', 'b1x1', 'b1x2', *some)
            for k in range(60):
                c.send(harness.points(handles[:3], [START + k * 10**9] * 3, [web.value(k)] * 3))
            c.send(harness.points(handles[3:5], [START] * 2, [1.0] * 2))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')

        def names(query):
            return {s['name'] for s in self.listed(d, query)[0]}
        for channel, expected in [('score', {'a', 'b1x1', 'b1x2', *some}), ('change', {'a#graph'}), ('shift', {'a#shift'}), ('novelty', {'a#novelty'}),
                                  ('limit', {'a#limit'}), ('group', {'pair#1'})]:
            self.assertEqual(names('channel=' + channel), expected)
        self.assertEqual(names('state=waiting&limit=400'), set(some[2:]))
        ok, parts = self.listed(d, 'state=ok&channel=score')  # behind over a thousand that are not
        self.assertEqual(({s['name'] for s in ok}, parts > 1), ({'a', 'b1x1', 'b1x2'}, True))
        for sort in 'score', 'change':
            self.assertEqual(names(f'state=ok&channel=score&sort={sort}'), {'a', 'b1x1', 'b1x2'})
            self.assertEqual(names(f'state=warming&glob=b0*&sort={sort}'), set(some[:2]))
        machines = self.ask(d, 'groups')[2]
        self.assertEqual((machines['count'], [(g['name'], g['section'], g['kind'], g['count'], sorted(g['sensors'])) for g in machines['groups']]),
                         (1, [('pair#1', 'pair', 'group', 2, ['b1x1', 'b1x2'])]))
        for wrong in 'channel=ika', 'state=alert', 'alert=yes', 'channel=' + 'x' * 99:
            code, _, answer = self.ask(d, 'sensors?' + wrong)
            self.assertEqual((code, wrong.partition('=')[0] in answer['detail']), (400, True), answer)

    def test_groups_and_fields(self):
        d = self.daemon(test_groups.DETECTOR + test_groups.GROUP + test_fields.DETECTORS + test_fields.FIELD, listeners=harness.LISTENERS + web.LISTENER,
                        keys='threads = 2\nmax_ahead = off\n')
        self.assertEqual(self.ask(d, 'groups')[2], {'groups': [], 'count': 0})
        names = test_groups.NAMES + test_fields.NAMES
        with d.client() as c:
            handles = c.register(*names, 'plant/c/late')  # of no point: in no machine
            for i, (row, weather) in enumerate(zip(test_groups.rows(), test_fields.rows())):  # machine b changes
                c.send(harness.points(handles[:-1], [START + i * 10**9] * len(names), row + weather))
                if i >= test_groups.CHANGE:  # step by step
                    c.ping()
                    until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
                    if c.status()['alerts']['standing'] > 0:
                        break
        groups = {g['name']: g for g in self.listed(d, '', 'groups')[0]}
        self.assertEqual({n: (g['section'], g['kind'], g['count'], sorted(g['sensors'])) for n, g in groups.items()},
                         {'press#a': ('press', 'group', 4, test_groups.NAMES[:4]), 'press#b': ('press', 'group', 4, test_groups.NAMES[4:]),
                          'roofs#field': ('roofs', 'field', 10, test_fields.NAMES)})
        self.assertEqual([n for n, g in groups.items() if g['alert'] and 'changed' in g], ['press#b'])
        for query in 'alert=true', 'sort=change&limit=1&glob=press*', 'sort=score&limit=1&glob=press*':
            self.assertEqual(self.listed(d, query, 'groups')[0][0], groups['press#b'], query)
        self.assertEqual({g['name'] for g in self.listed(d, 'alert=false&limit=1', 'groups')[0]}, {'press#a', 'roofs#field'})
        self.assertEqual(self.ask(d, 'groups')[2]['count'], 3)

    def test_one_sensor_as_the_device_has_it(self):
        d = self.daemon('[detector all]\nmatch = *\nalgorithm = ika, graph\nwindow = 8\nika.alert = 0.6\nika.rank = 2\ngraph.resident = 120\ninterval = 1s\n',
                        listeners=harness.LISTENERS + web.LISTENER, keys='threads = 1\n')
        names = ['pump', 'a//b/../c', 'a?b=c&d#e %41 é"', '<b>x</b>', 'never']
        with d.client() as c:
            handles = c.register(*names)
            for k in range(60):
                c.send(harness.points(handles[:-1], [START + k * 10**9] * 4, [web.value(k) + i for i in range(4)]))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
        for i, name in enumerate(names[:-1]):
            code, _, got = self.ask(d, 'sensors/?name=' + urllib.parse.quote(name, safe=''))
            self.assertEqual(code, 200)
            self.assertEqual(got['points'], [[START + k * 10**9, web.value(k) + i] for k in range(60)], name)
            self.assertEqual([s['sensor'] for s in got['series']], [name, name + '#graph'])
        code, _, got = self.ask(d, 'sensors/pump')
        ika, graph = got['series']
        self.assertEqual((code, got['interval'], ika['algorithm'], graph['algorithm'], ika['section']), (200, 10**9, 'ika', 'graph', 'all'))
        self.assertEqual((ika['keys']['window'], ika['keys']['alert'], ika['keys']['rank'], ika['keys']['interval'], ika['keys']['gap']), ('8', '0.6', '2', '1s', '8'))
        self.assertEqual((graph['keys']['resident'], graph['keys']['alert']), ('120', '0.5'))
        self.assertNotIn('rank', graph['keys'])
        self.assertEqual((ika['threshold'], ika['samples']), ({'mode': 'fixed', 'of': 'score', 'value': 0.6}, 23))
        self.assertEqual((ika['alert']['number'], ika['alert']['raised'] in (True, False)), (1, True))
        self.assertEqual(self.ask(d, 'sensors/never')[2]['points'], [])
        for name in 'nobody', 'x' * 600, '':
            self.assertEqual(self.ask(d, 'sensors/?name=' + name)[0], 404, name)

    def test_one_sensor_whose_points_come_without_a_break(self):
        d = self.web()
        over = threading.Event()
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(2000)))

            def flood():
                k = 0
                while not over.is_set():
                    c.send(harness.points(handles, [START + k * 10**9] * 2000, [web.value(k)] * 2000))
                    k += 1
                    time.sleep(0.002 if harness.TSAN else 0)

            feeder = threading.Thread(target=flood)
            feeder.start()
            try:
                until(lambda: self.ask(d, 'sensors/s7')[2]['points'], 'its first points')
                for _ in range(5):
                    begun = time.monotonic()
                    got = self.ask(d, 'sensors/s7')
                    self.assertEqual((got[0], len(got[2]['points']) > 0), (200, True))
                    self.assertLess(time.monotonic() - begun, WAIT / 6)
                gone = [http.client.HTTPConnection('127.0.0.1', d.port['http tcp'], timeout=WAIT) for _ in range(50)]
                for one in gone:  # they do not wait for the answer
                    one.request('GET', '/api/v1/sensors/s7')
                    one.close()
            finally:
                over.set()
                feeder.join()
        until(lambda: d.status()['points']['pending'] == 0, 'every point to have a result')
        self.balanced(d.status())

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
        for host in 'evil.example', f'evil.example:{port}':  # a name that was made to point here
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
            self.assertEqual(self.ask(d, 'sensors', **bearer['operator'])[0], 403)
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
            self.assertIsNone(stream.next() and None)  # closed: its token is not good any more
            self.assertEqual(self.ask(d, 'sensors', **bearer['viewer'])[0], 401)

    def standing_by(self, d, who):
        until(lambda: self.ask(d, 'alerts', **who)[2]['alerts'], 'an alert to stand')


class Told(web.Api):
    """What operators tell the daemon, and that it is remembered."""

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
        with self.assertRaises(TimeoutError):  # no alert was of that channel
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
