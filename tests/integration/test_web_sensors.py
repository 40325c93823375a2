"""Lists of sensors and machines over HTTP, in parts, filtered and sorted; one sensor with its samples and its past scores."""
import http.client
import threading
import time
import urllib.parse

import harness
import test_fields
import test_groups
import web
from harness import START, WAIT, until
from test_web_api import Stream


class Sensors(web.Api):
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
        """All parts of a list together, and their number."""
        sensors, after, parts = [], None, 0
        while after is not None or parts == 0:
            part = self.ask(d, f'{what}?' + query + ('' if after is None else f'&after={after}'))[2]
            sensors, after, parts = sensors + part[what], part.get('next'), parts + 1
        return sensors, parts

    def test_sensors_are_sorted_of_all(self):
        d = self.daemon('[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n', listeners=harness.STREAMS + web.LISTENER, keys='threads = 2\n')
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
        with d.client() as c:  # it continues: its alert ends
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
                        '[detector b]\nmatch = b*\nalgorithm = svd\nwindow = 8\ninterval = 1s\n[group pair]\nmatch = b(*)x*\n', listeners=harness.STREAMS + web.LISTENER, keys='threads = 2\n')
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
        ok, parts = self.listed(d, 'state=ok&channel=score')  # after over a thousand others
        self.assertEqual(({s['name'] for s in ok}, parts), ({'a', 'b1x1', 'b1x2'}, 1))
        for sort in 'score', 'change':
            self.assertEqual(names(f'state=ok&channel=score&sort={sort}'), {'a', 'b1x1', 'b1x2'})
            self.assertEqual(names(f'state=warming&glob=b0*&sort={sort}'), set(some[:2]))
        machines = self.ask(d, 'groups')[2]
        self.assertEqual((machines['count'], [(g['name'], g['section'], g['kind'], g['count'], sorted(g['sensors'])) for g in machines['groups']]),
                         (1, [('pair#1', 'pair', 'group', 2, ['b1x1', 'b1x2'])]))
        for wrong in 'channel=ika', 'state=alert', 'alert=yes', 'channel=' + 'x' * 99:
            code, _, answer = self.ask(d, 'sensors?' + wrong)
            self.assertEqual((code, wrong.partition('=')[0] in answer['detail']), (400, True), answer)

    def test_a_rare_state_takes_few_answers(self):
        d = self.web()
        with d.client() as c:
            for part in range(33):
                c.register(*(f's{i:05}' for i in range(500 * part, 500 * part + 500)))
            handles = c.register('last')
            for k in range(25):
                c.send(harness.points(handles, [START + k * 10**9], [web.value(k)]))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
        for query in 'state=ok', 'state=ok&limit=1':
            listed = until(lambda q=query: (lambda got: got[0] and got)(self.listed(d, q)), 'a sensor that is ok')  # each loop's list is updated a moment after results
            self.assertEqual(([s['name'] for s in listed[0]], listed[1]), (['last'], 2))
        self.assertEqual(len({s['name'] for s in self.listed(d, 'state=waiting&glob=s*9')[0]}), 1650)

    def test_groups_and_fields(self):
        d = self.daemon(test_groups.DETECTOR + test_groups.GROUP + test_fields.DETECTORS + test_fields.FIELD, listeners=harness.STREAMS + web.LISTENER,
                        keys='threads = 2\nmax_ahead = off\n')
        self.assertEqual(self.ask(d, 'groups')[2], {'groups': [], 'count': 0})
        names = test_groups.NAMES + test_fields.NAMES
        with d.client() as c:
            handles = c.register(*names, 'plant/c/late')  # without a point: in no machine
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
                        listeners=harness.STREAMS + web.LISTENER, keys='threads = 1\n')
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

    def test_past_scores_are_those_that_a_subscriber_got(self):
        detector = '[detector all]\nmatch = *\nalgorithm = ika, graph\nwindow = 8\nika.rank = 2\nika.stride = 2\ngraph.resident = 400\ninterval = 1s\n'
        d = self.daemon(detector, listeners=harness.STREAMS + web.LISTENER, keys='threads = 1\n')
        n, stream = 150, Stream(d, 'what=results&glob=pump*')
        with d.client() as c:
            handles = c.register('other', 'pump', 'more')
            for k in range(n):
                c.send(harness.points(handles, [START + k * 10**9] * 3, [web.value(k) + i for i in range(3)]))
            c.ping()
        rows = [stream.next()[2] for _ in range(2 * n)]
        got = self.ask(d, 'sensors/pump')[2]['series']
        expected = {s['sensor']: [[r['time'], r['score']] for r in rows if r['sensor'] == s['sensor'] and r['score'] is not None] for s in got}
        self.assertEqual({s['sensor']: s['scores'] for s in got}, expected)
        self.assertGreater(len(expected['pump']), 60)  # its window has 23 samples
        self.assertGreater(len(expected['pump#graph']), 20)
        self.assertEqual([(s['state'], s['samples'] < s['span'], s['first'] <= s['samples']) for s in self.listed(d, 'glob=pump*')[0]], [('ok', False, True), ('ok', True, True)])
        for query, last in ('?scores=3', 3), ('?scores=0', 0), ('?scores=10000', n):
            self.assertEqual([s['scores'] for s in self.ask(d, 'sensors/pump' + query)[2]['series']], [scores[-last:] if last else [] for scores in expected.values()])
        for wrong in '10001', '-1', 'x':
            self.assertEqual(self.ask(d, 'sensors/pump?scores=' + wrong)[0], 400)
        d = self.daemon(detector, listeners=harness.STREAMS + web.LISTENER, keys='threads = 1\nscores = off\n')
        self.feed(d, 1, 60)
        self.assertEqual([s['scores'] for s in self.ask(d, 'sensors/s0')[2]['series']], [[], []])

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
                for _ in range(2 if harness.TSAN else 5):
                    begun = time.monotonic()
                    got = self.ask(d, 'sensors/s7')
                    self.assertEqual((got[0], len(got[2]['points']) > 0), (200, True))
                    self.assertLess(time.monotonic() - begun, WAIT / 2)
                gone = [http.client.HTTPConnection('127.0.0.1', d.port['http tcp'], timeout=WAIT) for _ in range(20 if harness.TSAN else 50)]
                for one in gone:  # they do not wait for the answer
                    one.request('GET', '/api/v1/sensors/s7')
                    one.close()
            finally:
                over.set()
                feeder.join()
        until(lambda: d.status()['points']['pending'] == 0, 'every point to have a result')
        self.balanced(d.status())


if __name__ == '__main__':
    harness.main()
