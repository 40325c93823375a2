#!/usr/bin/env python3
"""When incidents end."""
import tempfile
import time

import harness

RULES = '[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\nhold = 1\n[incidents]\nbudget = 1000/day\ninterval = 1s\n'


def level(t, steps_at=None):
    """A value of time t, which is higher by 10 from a time on."""
    return (10 if steps_at is not None and t >= steps_at else 0) + t * 7 % 5 * 0.125


class Ends(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

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
    harness.main()
