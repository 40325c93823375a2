"""The pure-Python client with the daemon: points over TCP and UDP, results, refusals, errors, and the final counts."""
import os
import sys

import harness
from harness import SECOND, START, until

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402

WARM = '[detector all]\nmatch = warm*\nwindow = 8\ninterval = 1s\nalert = off\n'


class PythonClient(harness.Case):
    listens = harness.LISTENERS

    def setUp(self):
        self.d = self.daemon(WARM)

    def client(self, **how):
        if how.pop('over_udp', False):
            how['udp'] = f"127.0.0.1:{self.d.port['binary udp']}"
        c = hankel.Client(f"127.0.0.1:{self.d.port['binary tcp']}", timeout=harness.WAIT, **how)
        self.addCleanup(c.close)
        return c

    def fed(self, feeder, n=300):
        """Feeds n points of two sensors and returns what a subscriber got."""
        watcher = self.client()
        watcher.subscribe('warm*', unscored=True, values=True)
        for i in range(n):
            feeder.send(f'warm {i % 2}', START + i // 2 * SECOND, i * i % 11 + 0.1)
        feeder.sync()
        return [until(lambda: watcher.read(harness.WAIT), 'a result') for _ in range(n)]

    def test_points_come_back_with_scores(self):
        feeder = self.client()
        self.assertRegex(feeder.server, 'hankeld')
        got = self.fed(feeder)
        for sensor in range(2):
            of_one = [r for r in got if r.sensor == f'warm {sensor}']
            self.assertEqual([r.time for r in of_one], [START + i * SECOND for i in range(150)])
            self.assertEqual([r.value for r in of_one], [i * i % 11 + 0.1 for i in range(sensor, 300, 2)])
            self.assertEqual({r.state for r in of_one[:22]}, {'warming'})
            self.assertTrue(all(r.score is None for r in of_one[:22]))
            self.assertTrue(all(r.state == 'ok' and 0 <= r.score <= 1 for r in of_one[22:]))
        self.assertEqual(self.balanced(feeder.status())['in'], 300)
        feeder.finish()

    def test_the_same_over_udp(self):
        over_tcp = self.fed(self.client())
        self.d.stop()
        self.d = self.daemon(WARM)
        feeder = self.client(over_udp=True)
        got = self.fed(feeder)
        key = lambda r: (r.sensor, r.time)
        self.assertEqual(sorted(got, key=key), sorted(over_tcp, key=key))
        feeder.finish()

    def test_a_name_without_a_detector_is_refused(self):
        with self.client() as c:
            c.send('cold', START, 1.0)
            c.send('warm', START, 1.0)
            c.send('warm\tnot', START, 1.0)
            c.sync()
            self.assertEqual(set(c.refused), {'cold', 'warm\tnot'})
            self.assertEqual(self.balanced(c.status())['in'], 1)
            self.assertEqual(c.status()['sensors']['refused'], 2)

    def test_reading_without_waiting(self):
        c = self.client()
        c.subscribe(unscored=True)
        self.assertIsNone(c.read(0))
        c.send('warm', START, 1.0)
        c.sync()
        self.assertEqual(until(lambda: c.read(0), 'the result').time, START)
        self.assertIsNone(c.read(0))

    def test_errors(self):
        with self.client() as c:
            with self.assertRaises(hankel.Error) as told:
                c.subscribe(min_score=7.0)
            self.assertEqual(told.exception.code, 9)
            c.sync()  # the connection is still good
        with self.assertRaises(hankel.Error) as told:
            c = self.client()
            c._write(b'GET / HTTP/1.1\r\n\r\n')
            c.read(harness.WAIT)
        self.assertEqual(told.exception.code, 1)

    def test_what_came_before_the_farewell_can_be_read_after_it(self):
        c = self.client()
        c.subscribe(unscored=True)
        c.send('warm', START, 1.0)
        c.finish()
        self.assertEqual([r.time for r in c], [START])

    def test_the_end_of_the_daemon_ends_iteration(self):
        c = self.client()
        c.subscribe()
        self.d.stop()
        try:
            self.assertEqual([item for item in c], [])
        except hankel.Error as told:
            self.assertEqual(told.code, 13)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
