"""Fields: of sensors that share their weather each says how it differs from what the others let expect."""
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import unittest

import harness
from harness import SECOND, START

N, ROWS, FAULT = 10, 1500, 1000
NAMES = [f'roof/{i}/power' for i in range(N)]
FAULTY = 4


def rows(fault=2.5, seed=7, n=ROWS):
    """Values by row and sensor: a weather that all share wanders by ten times the noise of each; from FAULT on one reads too much."""
    rng, front, out = random.Random(seed), 0, []
    for t in range(n):
        front = 0.98 * front + rng.gauss(0, 1)
        out.append([1e4 + (1 + 0.1 * i) * (front + 3 * math.sin(t * 0.13)) + rng.gauss(0, 0.4) + (fault if i == FAULTY and t >= FAULT else 0) for i in range(N)])
    return out


class Replay(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='hankel-fields-')
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, 'w') as f:
            f.write(text)
        return path

    def table(self, values):
        return self.path('roofs.csv', 'time,' + ','.join(NAMES) + '\n' + ''.join(
            f'{START // SECOND + t},' + ','.join('' if v is None else repr(v) for v in row) + '\n' for t, row in enumerate(values)))

    def replay(self, table, keys, *more, code=0):
        run = subprocess.run([harness.HANKEL, 'replay', '--field', keys, '--detector', 'algorithm=shift,window=32', '--format', 'jsonl', *more, table],
                             capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(run.returncode, code, run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()], run.stderr

    def raised(self, items):
        return [i for i in items if i.get('event') == 'raised']

    def test_one_faulty_sensor_gives_one_alert(self):
        items, said = self.replay(self.table(rows()), 'q=5,blame=32')
        self.assertEqual(said, '')
        first = [e for e in self.raised(items) if not e.get('secondary')]
        self.assertEqual([e['sensor'] for e in first], [NAMES[FAULTY] + '#residual'])
        self.assertLess(abs(first[0]['instant'] - START - FAULT * SECOND), 20 * SECOND)
        self.assertTrue(1.5 < first[0]['after'] - first[0]['before'] < 3.5, first[0])
        for e in self.raised(items):  # a neighbour's alert names who is to blame
            if e.get('secondary'):
                self.assertEqual(e['by'], NAMES[FAULTY] + '#residual')
        ended = [e for e in items if e.get('event') == 'cleared']
        self.assertTrue(all(e.get('secondary', False) == any(r['id'] == e['id'] and r.get('secondary') for r in self.raised(items)) for e in ended))
        results = [i for i in items if 'value' in i]
        self.assertEqual(len(results), N * (ROWS - 4 - 192))  # members take part from `wait` rows on, settle in 96 and learn in 96
        before = [abs(i['value']) for i in results if i['time'] < START + FAULT * SECOND]
        self.assertLess(sum(before) / len(before), 0.6)

    def test_weather_alone_is_none(self):
        items, _ = self.replay(self.table(rows(fault=0)), 'q=5,blame=32')
        self.assertEqual(self.raised(items), [])

    def test_neighbours_of_a_file(self):
        table = self.table(rows())
        edges = self.path('edges', '# who is next to whom\n' + ''.join(f'{a} {b}\t2\n' for i, a in enumerate(NAMES) for b in NAMES[:i] if b != NAMES[0]))
        items, said = self.replay(table, f'q=5,blame=32,neighbours={edges}')
        self.assertEqual({e['sensor'] for e in self.raised(items) if not e.get('secondary')}, {NAMES[FAULTY] + '#residual'})
        self.assertEqual({i['sensor'] for i in items}, {n + '#residual' for n in NAMES[1:]})
        self.assertIn('1 of 10 sensors have no residual', said)
        places = self.path('places', ''.join(f'{n},{i},0\n' for i, n in enumerate(NAMES)))
        items, _ = self.replay(table, f'q=4,blame=32,neighbours=nearest,positions={places}')
        self.assertEqual({e['sensor'] for e in self.raised(items) if not e.get('secondary')}, {NAMES[FAULTY] + '#residual'})

    def test_holes(self):
        values = rows()
        rng = random.Random(1)
        holes = [[None if rng.random() < 0.1 or (i == 7 and 600 < t < 800) else v for i, v in enumerate(row)] for t, row in enumerate(values)]
        items, _ = self.replay(self.table(holes), 'q=5,blame=32')
        for name in NAMES:  # as if all were there
            before, after = ([i['value'] for i in items if 'value' in i and i['sensor'] == name + '#residual' and (i['time'] >= START + FAULT * SECOND) == late]
                             for late in (False, True))
            self.assertLess(statistics.pstdev(before), 0.7, name)
            self.assertLess(abs(statistics.mean(after) - (2 if name == NAMES[FAULTY] else -0.2)), 0.4, name)
        there = sum(v is not None for row in holes[300:] for v in row)
        self.assertTrue(0.95 * there < sum('value' in i for i in items if i['time'] >= START + 300 * SECOND) <= there)

    def test_what_cannot_be(self):
        table = self.table(rows(n=150))
        for keys, named in (('q=1', 'q = 1'), ('hop=2', 'hop'), ('neighbours=nearest', 'positions'), ('members=5', 'members = 5')):
            self.assertIn(named, self.replay(table, keys, code=2)[1])
        bad = self.path('bad', 'a b\na\n')
        self.assertIn('line 2', self.replay(table, f'neighbours={bad}', code=1)[1])
        self.assertIn('No such file', self.replay(table, 'neighbours=/nowhere', code=1)[1])
        self.assertIn('the field says nothing', self.replay(table, 'q=5,blame=32')[1])


if __name__ == '__main__':
    harness.main(needs_gpu=False)
