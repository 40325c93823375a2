"""Counters that are recognised (rate = auto): the results of a daemon for them, and for gauges, however it is fed and whenever it is ended or
killed, are those of a replay, bit for bit; and the log names the sensors that are counters."""
import math
import random
import signal
import subprocess
import tempfile

import harness
from harness import SECOND, START
from snapshots import POINTS, Snapshots

ALGORITHMS = {'ika': 'window=16,rank=2,alert=0.5,cooldown=30', 'graph': 'algorithm=graph,window=10,level=2', 'shift': 'algorithm=shift,window=8',
              'novelty': 'algorithm=novelty'}
KINDS = {'counter', 'reset', 'gauge', 'smooth'}
# one line for each sensor whose algorithm is the first of its section, in order
TOLD = {'counter': ['is a counter'], 'reset': ['is a counter'], 'gauge': [], 'smooth': ['is a counter', 'fell and is not a counter']}


def made(kind, rng):
    total, out = 1e9, []
    for k in range(POINTS):
        total += (30 if k < 200 else 90) + rng.random()
        if kind == 'reset' and k in (20, 110):
            total = rng.random()
        out.append({'gauge': 20 + rng.random(), 'smooth': 20 + 5 * math.sin(k / 40)}.get(kind, total))
    return out


class WithoutJournal(Snapshots):
    @classmethod
    def setUpClass(cls):
        rng = random.Random(5)
        cls.values = {f'{a}.{kind}': made(kind, rng) for a in ALGORITHMS for kind in sorted(KINDS)}
        cls.detectors = [(a, f'{a}.*', f'{keys},interval=1s,rate=auto') for a, keys in ALGORITHMS.items()]
        cls.rows, cls.events = {}, {}
        for a, _, detector in cls.detectors:
            rows, events = harness.uninterrupted({s: v for s, v in cls.values.items() if s.startswith(a)}, detector)
            cls.rows.update(rows)
            cls.events.update(events)
        states = {kind: [cls.rows[f'ika.{kind}', START + k * SECOND][1] for k in range(POINTS)] for kind in KINDS}
        assert [k for k, s in enumerate(states['counter']) if s == 'rejected'] == [32], states['counter']  # with it the window starts anew
        assert [k for k, s in enumerate(states['reset']) if s == 'rejected'] == [33, 110], states['reset']
        assert 'rejected' not in states['gauge']
        assert len([s for s in states['smooth'] if s == 'rejected']) == 2

    def told(self, daemons):
        for kind, want in TOLD.items():
            lines = [line for d in daemons for line in d.log if f'ika.{kind} ' in line]
            self.assertEqual([w for w, line in zip(want, lines) if w in line], want, lines)
            self.assertEqual(len(lines), len(want), lines)

    def test_ended_and_started_again(self):
        daemons, cuts = [], [0, 1, 20, 21, 32, 33, 34, 64, 110, 111, 150, POINTS]
        for first, behind in zip(cuts, cuts[1:]):
            daemon = self.start(detectors=self.detectors)
            self.run_part(daemon, first, behind)
            self.assertEqual(daemon.stop(), 0)
            daemons.append(daemon)
        self.told(daemons)
        self.assertTrue(any(name.startswith('ika.counter') for name, _ in self.events), self.events)  # its slope has tripled


class WithJournal(WithoutJournal):
    mode = 'journal'

    def test_killed(self):
        at = 0
        for behind in (10, 31, 33, 40, 111, POINTS):
            daemon = self.start('snapshot = 1s\n' if behind in (33, 111) else '', detectors=self.detectors, ends=-signal.SIGKILL)
            self.run_part(daemon, at, behind)
            before = set(self.files())
            if behind in (33, 111):  # the other starts use the journal alone
                harness.until(lambda: set(self.files()) - before, 'a snapshot')
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            at = behind


class Replayed(harness.Case):
    def test_the_slope_that_triples_is_seen_and_the_counter_told(self):
        rng, total, rows = random.Random(7), 0, []
        for i in range(3600):
            total = 0 if i in (900, 1700) else total + (100 if i < 3000 else 300) + 10 * math.sin(i / 3) + rng.gauss(0, 5)
            rows.append(f'{START // SECOND + i},{total:.3f},{rng.gauss(5, 1):.3f}\n')
        with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
            f.write('time,requests,load\n' + ''.join(rows))
            f.flush()
            out = {}
            for rate in ('auto', 'no', 'yes'):
                run = subprocess.run([harness.HANKEL, 'replay', '--detector', f'window=24,rate={rate}', f.name], capture_output=True, text=True, timeout=harness.WAIT)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual('requests is a counter: its rate per second was scored' in run.stderr, rate == 'auto', run.stderr)
                out[rate] = run.stdout.splitlines()
        raised = {rate: [line for line in lines if line.startswith('#event') and ',raised,' in line and 'requests' in line] for rate, lines in out.items()}
        self.assertTrue(any(abs(int(e.split(',')[5]) - START - 3000 * SECOND) < 120 * SECOND for e in raised['auto']), raised['auto'])
        gauge = {rate: [line for line in lines if line.startswith('load,')] for rate, lines in out.items()}
        self.assertEqual(gauge['auto'], gauge['no'])  # a gauge is scored as without the key
        self.assertNotEqual(gauge['auto'], gauge['yes'])


if __name__ == '__main__':
    harness.main()
