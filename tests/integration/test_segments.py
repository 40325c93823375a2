"""Alerts of algorithm = graph: corrected when the new segment has grown, and told which earlier segment it is like. What a daemon tells, over kills
and restarts and by every way out, is what `hankel replay` says of the same points."""
import json
import math
import os
import random
import socket
import subprocess
import sys
import tempfile

import harness
from harness import SECOND, START, WAIT, until
from recording import Recording

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402

KEYS = 'algorithm=graph,window=16,resident=600,interval=1s'
KINDS = [0, 1, 2, 0, 1, 3, 2, 0]  # of the segments
LENGTH = 400
FIELDS = ('number', 'kind', 'time', 'instant', 'before', 'after', 'similar', 'similar_from', 'likeness')


def recording():
    rng = random.Random(3)
    behaviour = (lambda t: math.sin(t / 5), lambda t: t % 30 / 10, lambda t: 4.0 * (t % 25 < 3), lambda t: math.sin(t / 2) * math.cos(t / 7))
    return [behaviour[kind](t) + rng.gauss(0, 0.05) for kind in KINDS for t in range(LENGTH)]


def fields(line):
    event = json.loads(line)
    return (int(event['id'].rpartition(':')[2]), event['event'], event['time'], event['instant'], event['before'], event['after'],
            event.get('similar', 0), event.get('similar_from', 0), round(event.get('likeness', 0), 3))


class Segments(Recording):
    keys = KEYS
    mode = 'none'

    @classmethod
    def setUpClass(cls):
        cls.values = recording()
        with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
            f.write('time,press\n' + ''.join(f'{START // SECOND + i},{v!r}\n' for i, v in enumerate(cls.values)))
            f.flush()
            run = subprocess.run([harness.HANKEL, 'replay', '--backend', harness.BACKEND, '--detector', KEYS, '--format', 'jsonl', f.name],
                                 capture_output=True, text=True, timeout=harness.WAIT, check=True)
        cls.events = [fields(line) for line in run.stdout.splitlines() if line.startswith('{"event"')]

    def read(self, client, n):
        """Events as the client has them."""
        got = []
        while len(got) < n and (e := client.read(WAIT)):
            got.append(tuple(getattr(e, name) for name in FIELDS[:-1]) + (round(e.likeness, 3),))
        return got

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
        daemon, client = self.start()
        client.subscribe('*', scores=False, notices=False, details=True)
        text = socket.create_connection(('127.0.0.1', daemon.port['text tcp']), WAIT)
        self.addCleanup(text.close)
        text.sendall(b'events *\n')
        tails = [subprocess.Popen([harness.HANKEL, 'tail', '--from', f'127.0.0.1:{daemon.port["binary tcp"]}', '--events', '--format', form],
                                  stdout=subprocess.PIPE, text=True) for form in ('jsonl', 'text')]
        for tail in tails:
            self.addCleanup(tail.stdout.close)
            self.addCleanup(tail.wait)
            self.addCleanup(tail.kill)
        until(lambda: client.status()['subscribers']['count'] >= 4, 'all who listen')
        feeder = hankel.Client(f'127.0.0.1:{daemon.port["binary tcp"]}', timeout=WAIT)
        self.addCleanup(feeder.close)
        self.feed(feeder, 0, len(self.values))
        self.same(self.read(client, len(self.events)))
        lines = text.makefile()
        self.same([fields(lines.readline()) for _ in self.events])
        self.same([fields(tails[0].stdout.readline()) for _ in self.events])
        shown = [tails[1].stdout.readline() for _ in self.events]
        self.assertEqual([', now as from ' in line for line in shown], [e[-1] > 0 for e in self.events])


class Kept(Segments):
    """A restart in the midst."""
    mode = 'journal'

    def test_restart(self):
        rng = random.Random(self.mode)
        cuts = [0, *sorted(rng.sample(range(900, len(self.values)), 2)), len(self.values)]
        for first, behind in zip(cuts, cuts[1:]):
            last, killed = behind == cuts[-1], self.mode == 'journal'
            daemon, client = self.start(ends=-9 if killed and not last else 0)
            self.feed(client, first, behind)
            if last:
                client.subscribe('*', scores=False, notices=False, details=True, since=0)
                self.same(self.read(client, len(self.events)))
            elif killed:
                daemon.process.kill()
                daemon.process.wait(WAIT)
            else:
                daemon.stop()


class KeptBySnapshots(Kept):
    mode = 'snapshot'


del Segments
if __name__ == '__main__':
    harness.main(needs_gpu=False)
