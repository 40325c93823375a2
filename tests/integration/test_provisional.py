"""Provisional scores (provisional = yes): a daemon's results for young sensors are those of a replay, bit for bit, however it is fed, and whenever it
is ended or killed. Clients get the state and the mark of provisional scores; receivers get no provisional alerts."""
import json
import math
import random
import signal
import subprocess

import harness
from harness import SECOND, START
from recording import Recording, hankel
from snapshots import POINTS, Snapshots
from test_notify import Receiver

KEYS = 'window=60,interval=1s,provisional=yes,alert=0.8'  # full at point 179
FIRST, FULL = 34, 178                                                 # indices of the first provisional score, and of the first of the wanted window


def made(seed):
    rng, change = random.Random(seed), 161 if seed % 2 else 100
    return [rng.gauss(0, .3) + math.sin(k * (.5 if change <= k < change + 60 else 1.3)) for k in range(POINTS)]


class WithoutJournal(Snapshots):
    @classmethod
    def setUpClass(cls):
        cls.values = {f'y{i}': made(i) for i in range(24)}
        cls.detectors = [('young', 'y*', KEYS)]
        cls.rows, cls.events = harness.uninterrupted(cls.values, KEYS)
        for sensor in cls.values:
            states = [cls.rows[sensor, START + k * SECOND][1] for k in range(POINTS)]
            assert states == ['warming'] * FIRST + ['provisional'] * (FULL - FIRST) + ['ok'] * (POINTS - FULL), states
        early = {i for (i, kind), (at, _, _) in cls.events.items() if kind == 'raised' and at < START + FULL * SECOND}
        later = {i for (i, kind), (at, _, _) in cls.events.items() if kind == 'raised' and at >= START + FULL * SECOND}
        assert len(early) > 4 and len(later) > 10
        assert {i.split(':')[0] for i in early} & {i.split(':')[0] for i in later}
        assert any((i, 'cleared') in cls.events and cls.events[i, 'cleared'][0] == START + FULL * SECOND for i in early)  # by the full window

    def test_ended_and_started_again(self):
        cuts = [0, 20, FIRST, FIRST + 1, 90, 110, 139, FULL, FULL + 1, POINTS]
        for first, behind in zip(cuts, cuts[1:]):
            daemon = self.start(detectors=self.detectors)
            self.run_part(daemon, first, behind)
            self.assertEqual(daemon.stop(), 0)


class WithJournal(WithoutJournal):
    mode = 'journal'

    def test_killed(self):
        at = 0
        for behind in (20, 60, 110, 150, FULL, POINTS):
            daemon = self.start('snapshot = 1s\n' if behind in (60, 150) else '', detectors=self.detectors, ends=-signal.SIGKILL)
            self.run_part(daemon, at, behind)
            before = set(self.files())
            if behind in (60, 150):  # the other starts use the journal alone
                harness.until(lambda: set(self.files()) - before, 'a snapshot')
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            at = behind


class Shown(Recording):
    """Values of a sensor whose small window raises an alert, and whose whole window does, too."""
    mode = 'journal'
    keys = KEYS

    @staticmethod
    def of_json(line):
        e = json.loads(line)
        return e['id'], e['event'], e['time'], e.get('provisional', False), e['severity'] > 0

    @staticmethod
    def of_client(event):
        return f'{event.sensor}:{event.number}', event.kind, event.time, event.provisional, event.severity > 0

    @classmethod
    def setUpClass(cls):
        cls.write(made(4))
        assert [e[3:] for e in cls.events if e[1] == 'raised'] == [(True, False), (False, True)], cls.events

    def test_every_way_out(self):
        daemon, lines = self.every_way_out()
        self.assertEqual([line.strip().split('  [')[0].endswith(', provisional') for line in lines], [e[3] for e in self.events], lines)
        logged = [', provisional' in line for line in daemon.log if ' alert press:' in line]
        self.assertEqual(logged, [e[3] for e in self.events if e[1] != 'corrected'], daemon.log)

    def test_states_and_no_page(self):
        """A subscriber and the list of sensors have the state; a receiver gets only the alert of the whole window."""
        receiver = Receiver()
        self.addCleanup(receiver.end)
        notify = f'[notify all]\ntype = webhook\nurl = {receiver.url()}\ngather = 100ms\nrate = 6000\n'
        daemon = self.daemon(harness.section('all', '*', self.keys) + notify, keys=f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state.name}\n')
        at = f'127.0.0.1:{daemon.port["binary tcp"]}'
        with hankel.Client(at, timeout=harness.WAIT) as subscriber, hankel.Client(at, timeout=harness.WAIT) as feeder:
            subscriber.subscribe('*', unscored=True, events=False, notices=False)
            self.feed(feeder, 0, FULL)
            listed = subprocess.run([harness.HANKEL, 'sensors', '--from', at], capture_output=True, text=True, timeout=harness.WAIT, check=True).stdout
            self.assertIn(f'provisional {FULL}/{FULL + 1}', listed)
            self.feed(feeder, FULL, POINTS)
            states = [subscriber.read(harness.WAIT).state for _ in range(POINTS)]
        self.assertEqual(states, ['warming'] * FIRST + ['provisional'] * (FULL - FIRST) + ['ok'] * (POINTS - FULL))
        harness.until(receiver.alerts, 'the alert')
        wanted = [i for i, kind, _, early, _ in self.events if kind == 'raised' and not early]
        self.assertEqual([i for i in wanted if i in json.dumps(receiver.alerts())], wanted)
        self.assertNotIn('press:1', json.dumps(receiver.alerts()))


if __name__ == '__main__':
    harness.main()
