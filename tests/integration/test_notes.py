"""The contents of alerts of algorithm = novelty: the same over every protocol, over restarts, and in `hankel replay` of the same points; and the
sentences for people."""
import csv
import json
import math
import os
import random
import subprocess
import sys

import harness
from harness import SECOND, START
from recording import Recording

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402

KEYS = 'algorithm=novelty,resident=2000,interval=1s,alert=0.4'
NOTE = hankel.Novelty._fields
DATE = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'
NUMBER = r'-?[\d.e+-]+'
EXTENT = r'\d?,?\d{3} points \(\d+ (minutes|seconds)\)'
SENTENCE = {
    'value': rf'value {NUMBER} (is the highest in|is the lowest in|was not seen in) {EXTENT}: nearest {NUMBER} at {DATE}, usual gap under {NUMBER}, range {NUMBER} to {NUMBER}',
    'context': rf'no such state in {EXTENT}: mean of the last (16|64|256) is {NUMBER}, expected {NUMBER} \+- {NUMBER} \(nearest state at {DATE}\)',
    'shape': rf'shape not seen in {EXTENT}: differs from the nearest \({DATE}\) by {NUMBER} rms, usually under {NUMBER}',
}


def recording():
    """A wave with a value, a shape and a level that are new."""
    rng = random.Random(5)

    def at(t):
        if t == 1500:
            return 9.0
        if 2000 <= t < 2200:
            return abs(math.sin(t / 4))
        return math.sin(t / 4) if t < 2700 else (t % 25) / 12.5 - 1

    return [at(t) + rng.gauss(0, 0.1) for t in range(3000)]


class Notes(Recording):
    """Tolerances are float32, and JSON has as many digits as these need."""
    keys = KEYS
    mode = 'none'

    @classmethod
    def setUpClass(cls):
        cls.write(recording())

    @staticmethod
    def of_json(line):
        event = json.loads(line)
        note = event.get('novelty')
        assert event['level'] == hankel.level(event['severity']), event
        return (int(event['id'].rpartition(':')[2]), event['event'], event['time'], event['severity'], event['before'], event['after'],
                note and tuple(harness.single(note[name]) if name == 'tolerance' else note[name] for name in NOTE))

    @staticmethod
    def of_client(event):
        note = event.novelty and tuple(event.novelty._replace(tolerance=harness.single(event.novelty.tolerance)))
        return event.number, event.kind, event.time, event.severity, event.before, event.after, note


class Told(Notes):
    def test_what_is_told_makes_sense(self):
        kinds = {}
        severities = {}
        for number, kind, time, severity, before, after, note in self.events:
            severities.setdefault(number, []).append(severity)
            self.assertIsNotNone(note, (number, kind))
            n = hankel.Novelty(*note)
            self.assertEqual(n.expected, before)
            self.assertTrue(START <= n.oldest <= n.nearest < time and n.low < n.high and n.tolerance > 0 and n.compared >= 100, (number, n))
            if kind == 'raised':
                kinds.setdefault(n.kind, []).append((round((time - START) / SECOND), after, n))
        self.assertEqual(set(kinds), {'value', 'context', 'shape'})
        at, after, n = next(k for k in kinds['value'] if k[0] == 1500)
        self.assertTrue(after > n.high and n.compared == 1491 and n.oldest == START and n.reach == 1 and n.high == n.expected, (at, after, n))
        at, after, n = kinds['context'][0]
        self.assertTrue(2000 <= at < 2600 and n.reach in (16, 64, 256) and after > n.expected + n.tolerance, (at, after, n))
        for of in severities.values():  # the highest since the alert was raised
            self.assertEqual(of, sorted(of))
        self.assertTrue(any(of[-1] > of[0] > 0 for of in severities.values()) and len(set(map(tuple, severities.values()))) > 2, severities)
        self.assertTrue(all(cleared[-1] == last[-1] for last, cleared in zip(self.events, self.events[1:]) if cleared[1] == 'cleared'))

    def test_rows(self):
        """In CSV a separate line after the event's, with a sentence."""
        rows = list(csv.reader(line for line in self.replay('csv') if line.startswith('#')))
        self.assertEqual([row[0] for row in rows], ['#event', '#novelty'] * len(self.events))
        for event, row, new in zip(self.events, rows[::2], rows[1::2]):
            self.assertEqual((row[1], len(row), len(new)), (new[1], 12, 12))
            self.assertEqual((row[9], row[10], float(row[11])), ('', '', event[3]))
            note = (new[2], float(new[3]), harness.single(float(new[4])), int(new[5]), int(new[6]), float(new[7]), float(new[8]), int(new[9]), int(new[10]))
            self.assertEqual(note, event[-1])
            self.assertRegex(new[11], f'^{SENTENCE[new[2]]}$')
        self.assertTrue(any('is the highest in 1,491 points (25 minutes)' in new[11] for new in rows[1::2]))

    def test_sentences_have_no_nanoseconds(self):
        """Clients stamp points to the nanosecond: a sentence says milliseconds, the fields all of it."""
        rows = 'time,press\n' + ''.join(f'{START + i * SECOND + 359358485},{value!r}\n' for i, value in enumerate(self.values))
        run = subprocess.run([harness.HANKEL, 'replay', '--backend', 'cpu', '--detector', 'algorithm=novelty', '--format', 'csv', '-'], input=rows, capture_output=True, text=True, timeout=harness.WAIT)
        texts = [(row[5], row[11]) for row in csv.reader(run.stdout.splitlines()) if row[0] == '#novelty']
        self.assertGreater(len(texts), 2, run.stderr)
        for nearest, text in texts:
            self.assertRegex(text, r':\d\d\.359[,)]')
            self.assertTrue(nearest.endswith('359358485'), nearest)

    def test_every_way_out(self):
        _, shown = self.every_way_out()
        for event, line in zip(self.events, shown):
            self.assertRegex(line, rf' press:{event[0]}  {SENTENCE[event[-1][0]]}, novelty {NUMBER} times its threshold, severity {event[3]:.1f} \({hankel.level(event[3])}\)$')


class Kept(Notes):
    """Restarts while an alert stands, and while none does: all events are in the log."""
    mode = 'journal'

    def test_restart(self):
        stands = 1503  # the value's alert
        self.over_restarts([0, stands, 2400, len(self.values), len(self.values)])


class KeptBySnapshots(Kept):
    mode = 'snapshot'


del Notes
if __name__ == '__main__':
    harness.main(needs_gpu=False)
