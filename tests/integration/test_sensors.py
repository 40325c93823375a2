#!/usr/bin/env python3
"""hankel sensors: the list of sensors and the state of each, by SENSORS of the binary protocol, which HTTP uses, too."""
import http.client
import json
import math
import socket
import struct
import subprocess
import threading
import time

import harness
import recording  # noqa: F401 # has the path of the client
import hankeld as hankel
from harness import REPORT, SECOND, START, frame, text, until

SENSORS = 0x0c
DETECTOR = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = 0.6\n'
SPAN = 23  # of that: points until the first score


def value(k):
    """A level with a step at point 40."""
    return math.sin(k) + (50 if k >= 40 else 0)


class Listing(harness.Case):
    def hankel(self, daemon, *arguments):
        return subprocess.run([harness.HANKEL, 'sensors', '--from', f"127.0.0.1:{daemon.port['binary tcp']}", *arguments], capture_output=True, text=True,
                              timeout=harness.WAIT)

    def rows(self, daemon, *arguments):
        """The daemon's report on each sensor, by name."""
        run = self.hankel(daemon, '--json', *arguments)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual([r['name'] for r in rows], sorted(r['name'] for r in rows))
        return {r['name']: r for r in rows}

    def feed(self, daemon, sensors, n, first=0, of=value):
        with daemon.client() as c:
            handles = c.register(*sensors)
            for k in range(first, first + n):
                c.send(harness.points(handles, [START + k * SECOND] * len(handles), [of(k)] * len(handles)))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')


class TestSensors(Listing):
    def test_states_values_scores_and_thresholds(self):
        d = self.daemon(DETECTOR.replace('alert = 0.6', 'algorithm = ika, graph\ngraph.resident = 120\nika.alert = 0.6'))
        with d.client() as c:
            c.register('never')
        self.feed(d, ['steps'], 60)
        self.feed(d, ['young'], 5)
        self.feed(d, ['calm'], 60, of=lambda k: math.sin(k))
        with d.client() as c:  # of the last points, the results that subscribers get
            c.subscribe(glob='calm')
            c.send(harness.points(c.register('calm'), [START + 60 * SECOND], [0.25]))
            score = c.wait_results(1)[-1][3]
        rows = self.rows(d)
        self.assertEqual(list(rows), ['calm', 'calm#graph', 'never', 'never#graph', 'steps', 'steps#graph', 'young', 'young#graph'])
        calm, steps, young, never = rows['calm'], rows['steps'], rows['young'], rows['never']
        self.assertEqual((calm['state'], calm['alert'], calm['value'], calm['time']), ('ok', False, 0.25, START + 60 * SECOND))
        self.assertAlmostEqual(calm['score'], score, 6)
        self.assertEqual((steps['state'], steps['samples'], steps['span'], steps['detector'], steps['algorithm']), ('ok', SPAN, SPAN, 'all', 'ika'))
        self.assertEqual(steps['threshold'], {'mode': 'fixed', 'of': 'score', 'value': 0.6})
        self.assertEqual((young['state'], young['samples'], young['score']), ('warming', 5, None))
        self.assertAlmostEqual(young['value'], value(4), 6)
        self.assertEqual((never['state'], never['score'], 'value' in never, 'time' in never), ('waiting', None, False, False))
        self.assertEqual((rows['calm#graph']['derived'], rows['calm']['derived']), (True, False))

    def test_the_table(self):
        d = self.daemon(DETECTOR)
        self.feed(d, ['steps'], 42)
        self.feed(d, ['young\u202e'], 5)
        run = self.hankel(d)
        lines = run.stdout.splitlines()
        self.assertEqual((run.returncode, len(lines)), (0, 3))
        self.assertRegex(lines[0], '^state +value +score +threshold +last point +sensor$')
        self.assertRegex(lines[1], r'^alert +49\.\d+ +0\.\d+ +0\.6  2020-09-13 12:27:21 +steps$')
        self.assertRegex(lines[2], f'^warming 5/{SPAN} +-0.7568\\d* +- +0.6 .* young<U\\+202E>$')

    def test_a_stale_sensor(self):
        d = self.daemon(DETECTOR + 'silent = 1\n')
        self.feed(d, ['quiet'], 30)
        until(lambda: self.rows(d)['quiet']['state'] == 'stale', 'the sensor to be silent')
        self.assertRegex(self.hankel(d).stdout, '\nstale ')

    def test_a_glob_and_a_limit(self):
        d = self.daemon(DETECTOR)
        self.feed(d, ['pump 1', 'pump 2', 'fan'], 1)
        self.assertEqual(list(self.rows(d, 'pump*')), ['pump 1', 'pump 2'])
        self.assertEqual(len(self.rows(d, '--limit', '2')), 2)
        run = self.hankel(d, 'boiler*')
        self.assertEqual((run.returncode, run.stdout, run.stderr), (1, '', 'hankel sensors: none of 3 sensors has a name that matches boiler*\n'))
        self.assertIn("matches ump*; '*ump*' matches pump 1\n", self.hankel(d, 'ump*').stderr)
        for wrong, said in ((['a', 'b'], 'one GLOB'), (['--limit', '0'], '--limit 0'), (['x' * 513], '512 bytes'), (['\t'], 'control')):
            run = self.hankel(d, *wrong)
            self.assertEqual((run.returncode, run.stdout), (2, ''), wrong)
            self.assertIn(said, run.stderr)

    def test_no_sensors_yet(self):
        run = self.hankel(self.daemon(DETECTOR))
        self.assertEqual((run.returncode, run.stderr), (1, 'hankel sensors: there are no sensors yet: no points have arrived\n'))

    def test_more_than_one_answer_holds(self):
        """Limits of an answer by number of sensors and by bytes: names of 512 bytes, each of which takes six in JSON."""
        d = self.daemon(DETECTOR, keys='threads = 1\n')
        names = [f's{i}' for i in range(2500)]
        long = ['"\\' * 250 + f'{i:012}' for i in range(1200)]
        with d.client() as c:
            for begin in range(0, 2500, 500):
                c.register(*names[begin:begin + 500])
            for begin in range(0, 1200, 200):
                c.register(*long[begin:begin + 200])
        self.assertEqual(list(self.rows(d)), sorted(names + long))

    def test_points_that_come_without_a_break(self):
        d = self.daemon(DETECTOR.replace('0.6', 'off'), keys='threads = 1\n')
        over = threading.Event()
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(2000)))

            def flood():
                k = 0
                while not over.is_set():
                    c.send(harness.points(handles, [START + k * SECOND] * 2000, [value(k)] * 2000))
                    k += 1

            feeder = threading.Thread(target=flood)
            feeder.start()
            try:
                until(lambda: d.status()['points']['scored'] > 0, 'scores')
                for _ in range(3):
                    begun = time.monotonic()
                    rows = self.rows(d, '--limit', '1000')
                    self.assertEqual({r['state'] for r in rows.values()}, {'ok'})
                    self.assertTrue(all(r['score'] is not None for r in rows.values()))
                    self.assertLess(time.monotonic() - begun, harness.WAIT / 2)
            finally:
                over.set()
                feeder.join()

    def test_a_name_that_comes_again_has_no_score_of_before(self):
        """Another sensor takes the slot of an evicted one."""
        d = self.daemon(DETECTOR, keys='threads = 1\nmax_sensors = 1\nevict = 1s\n')
        with d.client() as c:
            c.subscribe()  # a look at the sensor itself could come after its eviction
            self.feed(d, ['before'], 40)
            self.assertIsNotNone(c.wait_results(40)[-1][3])
            until(lambda: d.status()['sensors']['evicted'] == 1, 'the eviction')

            def again():
                c.register('after')  # it may be evicted, too, because it sends no points
                return json.loads(c.request(SENSORS, struct.pack('<QI', 0, 1) + text('after'), REPORT).data)['sensors']

            after = until(again, 'room for another sensor')[0]
        self.assertEqual((after['state'], after['score']), ('waiting', None))

    def test_a_machine_of_a_group(self):
        d = self.daemon('[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n[group press]\nmatch = press(*) *\n')
        self.feed(d, ['press3 a', 'press3 b', 'press3 c'], 5)
        machine = self.rows(d)['press#3']
        self.assertEqual((machine['state'], machine['derived'], machine['score']), ('warming', True, None))

    def test_http_asks_likewise(self):
        d = self.daemon(DETECTOR, listeners=harness.STREAMS + '\n[listen http]\nprotocol = http\naddress = 127.0.0.1:0\n')
        self.feed(d, ['a', 'b'], 30)
        one = http.client.HTTPConnection('127.0.0.1', d.port['http tcp'], timeout=harness.WAIT)
        one.request('GET', '/api/v1/sensors?glob=a')
        answer = one.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.read()), {'sensors': [self.rows(d)['a']], 'count': 2})
        one.request('HEAD', '/api/v1/sensors')
        self.assertEqual(one.getresponse().status, 200)
        one.close()

    def test_a_daemon_of_before_is_told_from_a_broken_one(self):
        def older(listener):
            """Answers HELLO, and closes the connection at an unknown frame."""
            with listener.accept()[0] as peer:
                peer.settimeout(harness.WAIT)
                hello = peer.recv(1 << 16)
                peer.sendall(frame(harness.WELCOME, struct.pack('<QI', 1, 1 << 20) + text('hankeld 0.1.0'), struct.unpack_from('<I', hello, 8)[0]))
                asked = peer.recv(1 << 16)
                self.assertEqual(asked[3], SENSORS)
                peer.sendall(frame(harness.ERROR, struct.pack('<HBB', 5, SENSORS, 1) + text('no such frame')))
                peer.shutdown(socket.SHUT_WR)
                peer.recv(1)
        with socket.create_server(('127.0.0.1', 0)) as listener:
            listener.settimeout(harness.WAIT)
            thread = threading.Thread(target=older, args=(listener,), daemon=True)
            thread.start()
            run = subprocess.run([harness.HANKEL, 'sensors', '--from', f'127.0.0.1:{listener.getsockname()[1]}'], capture_output=True, text=True,
                                 timeout=harness.WAIT)
            thread.join(harness.WAIT)
        self.assertEqual((run.returncode, run.stdout), (1, ''))
        self.assertIn('its version is older than this request', run.stderr)

    def test_the_python_client_lists_them(self):
        d = self.daemon(DETECTOR, keys='threads = 1\n')
        with d.client() as c:
            for begin in range(0, 1500, 500):
                c.register(*(f's{i}' for i in range(begin, begin + 500)))
        with hankel.Client(f"127.0.0.1:{d.port['binary tcp']}") as c:
            self.assertEqual(sorted(s['name'] for s in c.sensors()), sorted(f's{i}' for i in range(1500)))
            self.assertEqual([s['state'] for s in c.sensors('s7')], ['waiting'])

    def test_a_peer_that_goes_before_the_answer(self):
        d = self.daemon(DETECTOR)
        self.feed(d, ['a'], 1)
        for _ in range(50):
            with d.client() as c:
                c.send(frame(SENSORS, struct.pack('<QI', 0, 1000) + text(''), 7))
        with d.client() as c:
            self.assertEqual(len(json.loads(c.request(SENSORS, struct.pack('<QI', 0, 1000) + text(''), REPORT).data)['sensors']), 1)
            for wrong in (struct.pack('<QI', 0, 0) + text(''), struct.pack('<QI', 0, 1001) + text(''), struct.pack('<QI', 0, 1)):
                with d.client() as other, self.assertRaises(harness.Closed) as closed:
                    other.request(SENSORS, wrong, REPORT)
                self.assertEqual(closed.exception.error[0], 6)


if __name__ == '__main__':
    harness.main()
