"""Alerts of algorithm = graph: an alert is corrected when the new segment has grown, and names the earlier segment that it resembles. A daemon
publishes, over kills and restarts and in every protocol, what `hankel replay` prints for the same points."""
import json
import math
import random

import harness
from harness import SECOND, START
from recording import Recording

KEYS = 'algorithm=graph,window=16,resident=600,interval=1s'
KINDS = [0, 1, 2, 0, 1, 3, 2, 0]  # of the segments
LENGTH = 400
FIELDS = ('number', 'kind', 'time', 'instant', 'before', 'after', 'similar', 'similar_from', 'likeness')


def recording():
    rng = random.Random(3)
    behaviour = (lambda t: math.sin(t / 5), lambda t: t % 30 / 10, lambda t: 4.0 * (t % 25 < 3), lambda t: math.sin(t / 2) * math.cos(t / 7))
    return [behaviour[kind](t) + rng.gauss(0, 0.05) for kind in KINDS for t in range(LENGTH)]


class Segments(Recording):
    keys = KEYS
    mode = 'none'

    @classmethod
    def setUpClass(cls):
        cls.write(recording())

    @staticmethod
    def of_json(line):
        event = json.loads(line)
        return (int(event['id'].rpartition(':')[2]), event['event'], event['time'], event['instant'], event['before'], event['after'],
                event.get('similar', 0), event.get('similar_from', 0), round(event.get('likeness', 0), 3))

    @staticmethod
    def of_client(event):
        return tuple(getattr(event, name) for name in FIELDS[:-1]) + (round(event.likeness, 3),)

    def same(self, got):
        self.assertEqual(len(got), len(self.events))
        for a, b in zip(got, self.events):
            self.assertEqual(a[:-1], b[:-1])
            self.assertAlmostEqual(a[-1], b[-1], delta=0.0011)


class Told(Segments):
    def test_what_is_told_makes_sense(self):
        kinds = [e[1] for e in self.events]
        self.assertGreaterEqual(kinds.count('raised'), 6)
        self.assertGreaterEqual(kinds.count('corrected'), 2)
        likely = {e[0]: e for e in self.events if e[-1] > 0}
        self.assertGreaterEqual(len(likely), 3)
        for number, kind, _, instant, _, _, similar, similar_from, likeness in likely.values():
            now, then = round((instant - START) / SECOND / LENGTH), round((similar_from - START) / SECOND / LENGTH)
            self.assertEqual(KINDS[now], KINDS[then], (number, kind))
            self.assertTrue(similar < number - 1 and 0.6 <= likeness <= 1)

    def test_every_way_out(self):
        _, shown = self.every_way_out()
        self.assertEqual([', now as from ' in line for line in shown], [e[-1] > 0 for e in self.events])


class Kept(Segments):
    """A restart in the middle of the recording."""
    mode = 'journal'

    def test_restart(self):
        rng = random.Random(self.mode)
        self.over_restarts([0, *sorted(rng.sample(range(900, len(self.values)), 2)), len(self.values)])


class KeptBySnapshots(Kept):
    mode = 'snapshot'


del Segments
if __name__ == '__main__':
    harness.main(needs_gpu=False)
