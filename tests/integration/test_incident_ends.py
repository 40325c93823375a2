#!/usr/bin/env python3
"""When incidents end: the data have gone on without alerts of theirs, whatever the times of the data, and whoever is silent."""
import tempfile
import time
import unittest

import harness

BEGIN = 1_600_000_000
RULES = '[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\nhold = 1\n[incidents]\nbudget = 1000/day\ninterval = 1s\n'


def level(t, steps_at=None):
    """A value of time t, which is higher by 10 from a time on."""
    return (10 if steps_at is not None and t >= steps_at else 0) + t * 7 % 5 * 0.125


class Ends(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, **how):
        return self.daemon(RULES, keys=f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\n', **how)

    def open(self, daemon):
        return daemon.status()['incidents']['open']

    def scored(self, client):
        harness.until(lambda: client.status()['points']['pending'] == 0, 'scores')

    def test_late_data(self):
        """The data of some sensors come 600 points after those of others: their alerts form one incident, which ends 60 points after them, also with a restart in
        between."""
        late, steps = 600, (71, 76, 81)
        d = self.start()
        with d.client() as c:
            handles = c.register('site/live', 'plant/a', 'plant/b', 'plant/c')

            def feed(client, first, n, alerts=0):
                for t in range(first, first + n):
                    times = [BEGIN + late + t] + [BEGIN + t] * 3
                    client.send(harness.points(handles, [x * 10**9 for x in times], [level(t)] + [level(t, s) for s in steps]))
                self.scored(client)
                harness.until(lambda: d.status()['incidents']['alerts'] >= alerts, 'alerts')
                time.sleep(0.5)
            feed(c, 0, 71)
            feed(c, 71, 5, 1)
            feed(c, 76, 5, 2)
            feed(c, 81, 20, 3)
            now = d.status()['incidents']
            self.assertEqual((now['open'], now['sensors']), (1, 3), now)
        d.stop()
        d = self.start()
        with d.client() as c:
            handles = c.register('site/live', 'plant/a', 'plant/b', 'plant/c')
            feed(c, 101, 20)
            self.assertEqual(self.open(d), 1)
            feed(c, 121, 60)
            harness.until(lambda: self.open(d) == 0, 'its end')

    def test_clocks_ahead(self):
        """All senders' clocks are a little ahead of the daemon's: incidents end nevertheless."""
        d = self.daemon(RULES.replace('1s', '100ms'), keys=f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\n')
        with d.client() as c:
            handles = c.register('a')
            begin, sent = time.time_ns() + 10**9, 0

            def over():
                nonlocal sent
                while sent < 50 or begin + sent * 10**8 < time.time_ns() + 10**9:
                    c.send(harness.points(handles, [begin + sent * 10**8], [level(sent, 40)]))
                    sent += 1
                now = d.status()['incidents']
                return now['alerts'] > 0 and now['open'] == 0
            harness.until(over, 'its end')


if __name__ == '__main__':
    unittest.main()
