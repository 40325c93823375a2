"""Points allocate no memory on their way from socket to socket: ten times the points take no more allocations."""
import os
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED, points

SENSORS = 64
COUNTER = os.environ.get('COUNT_ALLOCATIONS')


@unittest.skipUnless(COUNTER, 'needs the allocation counter (a sanitizer counts for itself)')
class NoAllocation(harness.Case):
    def allocations(self, ticks):
        """The number of allocations of a daemon that took that many ticks over the binary and line protocols, and published all results."""
        d = self.daemon(environment={'LD_PRELOAD': COUNTER})
        with d.client() as watcher, d.client() as feeder, d.connect('line tcp') as lines:
            watcher.subscribe(SCORED | UNSCORED | ALERTS)
            handles = feeder.register(*(f'sensor {i}' for i in range(SENSORS)))
            for tick in range(ticks):
                time = START + tick * SECOND
                value = float(tick * tick % 17)
                feeder.send(points(handles, [time] * SENSORS, [value] * SENSORS))
                lines.sendall(b''.join(b'line%d value=%g %d\n' % (i, value, time) for i in range(SENSORS)))
                if tick % 10 == 9:
                    watcher.wait_results(2 * SENSORS * (tick + 1))
        self.assertEqual(d.stop(), 0)
        return next(int(line.split()[1]) for line in d.log if line.startswith('allocations '))

    def test_points_cost_no_allocation(self):
        few, many = self.allocations(50), self.allocations(500)
        self.assertGreater(few, 100, 'the counter counts nothing')
        # 57,600 more points; what is left is growth of buffers to their lasting size
        self.assertLess(many - few, 60, f'{few} allocations for {100 * SENSORS} points, {many} for {1000 * SENSORS}')


if __name__ == '__main__':
    harness.main(needs_gpu=False)
