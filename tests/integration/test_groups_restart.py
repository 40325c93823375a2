"""Groups over restarts: the state of a machine continues, whether it comes from journal or snapshot."""
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import harness
from harness import ALERTS, SCORED, SECOND, START

sys.path.insert(0, os.path.join(harness.ROOT, 'tests', 'faults'))
import kills  # noqa: E402
from test_groups import DETECTOR, GROUP, KEYS, NAMES, ROWS, Case, rows


class Lives(Case):
    def setUp(self):
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)

    def keys(self, durability='journal', snapshot='1h', more=''):
        return KEYS + more + f'durability = {durability}\nstate = {self.state}/there\nsnapshot = {snapshot}\n'

    def part(self, values, first, behind, keys, kill=False, groups=GROUP, position=0):
        """Runs a daemon that gets these rows. Returns the results of its series, and its status."""
        d = self.daemon(DETECTOR + groups, keys=keys, ends=-signal.SIGKILL if kill else 0)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | ALERTS, '*#*')
            self.send(c, c.register(*NAMES), values[first:behind], first=first)
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')
            subscriber.drain(0.2)
            status = d.status()
            self.balanced(status)
            if kill:
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        if not kill:
            self.assertEqual(d.stop(), 0)
        return *self.said(subscriber), status


class Restart(Lives):
    def lives(self, cuts, keys, kill):
        """Runs daemons with the rows between these cuts. Returns all results of their series."""
        values = rows()
        scores, events = [], []
        for first, behind in zip(cuts, cuts[1:]):
            more, told, status = self.part(values, first, behind, keys, kill and behind < ROWS)
            scores += more
            events += told
            self.assertEqual(status['groups'], {'machines': 2, 'members': 8})
        return sorted(scores), events

    def test_goes_on(self):
        """Wherever the daemon ends or is killed, also in the middle of an alert, no result is repeated, different or missing."""
        expected, events = self.run_through(rows())[0]
        raised = (events[0][3] - START) // SECOND
        for durability, kill, cuts in (('journal', True, [0, 7, raised + 2, raised + 3, ROWS]), ('snapshot', False, [0, 14, raised + 1, ROWS])):
            with self.subTest(durability=durability, kill=kill):
                scores, told = self.lives(cuts, self.keys(durability), kill)
                self.assertEqual(scores, expected)
                self.assertEqual(told, events)
            shutil.rmtree(f'{self.state}/there')

    def test_ends_once(self):
        """A standing alert ends when its group is changed, and `cleared` is published once."""
        values = rows()
        raised = (self.run_through(values)[0][1][0][3] - START) // SECOND
        for durability in ('journal', 'snapshot'):
            with self.subTest(durability=durability):
                _, events, _ = self.part(values, 0, raised + 2, self.keys(durability))
                d = self.daemon(DETECTOR + GROUP.replace('plant/(*)/*', 'plan(*)/*'), keys=self.keys(durability))
                self.assertEqual([e[:3] for e in d.events()], [e[:3] for e in events] + [(*events[0][:2], 'cleared')])
                self.assertEqual(d.stop(), 0)
            shutil.rmtree(f'{self.state}/there')

    def test_snapshot_and_journal(self):
        """The daemon is killed after a snapshot that was taken under load, with a journal from there on, and started with another number of loops."""
        values, expected = rows(), self.run_through(rows())[0]
        d = self.daemon(DETECTOR + GROUP, keys=self.keys(snapshot='1s'), ends=-signal.SIGKILL)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | ALERTS, '*#*')
            handles, made, at = c.register(*NAMES), lambda: d.status()['durability']['shards'][0]['snapshots'], 0
            while at < 450 and (at < 200 or made() == 0):
                self.send(c, handles, values[at:at + 5], first=at)
                at += 5
                c.ping()
                time.sleep(0.02)
            harness.until(lambda: made() > 0, 'a snapshot')
            self.send(c, handles, values[at:at + 30], first=at)
            at += 30
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'the points')
            subscriber.drain(0.2)
            scores, events = self.said(subscriber)
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        hankel_state = lambda what: subprocess.run([harness.HANKEL, 'state', what, self.state + '/there'], capture_output=True, text=True, check=True).stdout
        self.assertIn('machines 2, members 8', hankel_state('inspect'))
        self.assertNotIn('DAMAGED', hankel_state('verify'))
        more, told, _ = self.part(values, at, ROWS, self.keys(more='loops = 3\n'))
        self.assertEqual(sorted(scores + more), expected[0])
        self.assertEqual(events + told, expected[1])

    def test_other_groups(self):
        """Starts with other groups: another glob, other rows, another group, none, and the first one again."""
        values = rows()
        keys = self.keys('snapshot')
        self.part(values, 0, 200, keys)
        scores, _, status = self.part(values, 200, 230, keys, groups=GROUP.replace('/*', '/*o*'))
        self.assertEqual(status['groups'], {'machines': 2, 'members': 4})
        self.assertLess((scores[0][1] - START) // SECOND, 203)  # the machine did not warm up again
        scores, _, status = self.part(values, 230, 240, keys, groups=GROUP + 'wait = 5\n')
        self.assertEqual((scores, status['groups']), ([], {'machines': 2, 'members': 8}))
        scores, _, status = self.part(values, 240, 250, keys, groups='[group other]\nmatch = plant/(*)/*\n')
        self.assertEqual((scores, status['groups'], status['sensors']['count']), ([], {'machines': 2, 'members': 8}, 10))
        _, _, status = self.part(values, 250, 260, keys, groups='')
        self.assertEqual((status['groups'], status['sensors']['count']), ({'machines': 0, 'members': 0}, 8))
        scores, _, status = self.part(values, 260, 300, keys)
        self.assertGreater((scores[0][1] - START) // SECOND, 275)
        self.assertEqual(status['groups'], {'machines': 2, 'members': 8})

    def machines(self, folder):
        """The machines in the newest snapshot, by the slot of their series: position, number of members, and all bytes."""
        path = max(os.path.join(folder, 'shard-0', f) for f in os.listdir(os.path.join(folder, 'shard-0')) if f.endswith('.hks'))
        with open(path, 'rb') as f:
            data = f.read()
        at, found = 80, {}
        while at < len(data):
            kind, count, size, position = struct.unpack_from('<IIQQ', data, at)
            at += 40
            for _ in range(count if kind == 5 else 0):
                slot, _, _, stands, _, _, members, changes, rows = struct.unpack_from('<IBBBBIIII', data, at)
                length = 24 + 160 * stands + 8 * members + 64 * changes + rows
                found[slot] = (position, members, data[at:at + length])
                at += length
                size -= length
            at += size
        return found

    def test_members_come_and_go(self):
        """Sensors are forgotten and come again, from many unsynchronised senders, while snapshots are taken: the last snapshot, any earlier one with
        the journal after it, and the journal alone restore the same machines."""
        keys, rng = self.keys(snapshot='1s', more='evict = 1s\nloops = 3\n'), random.Random(11)
        names = [f'plant/{m}/{s}' for m in range(15) for s in range(6)]
        # Large states make many slices of a snapshot, between which sensors come and go.
        sections = DETECTOR.replace('window = 8', 'algorithm = graph\nwindow = 8') + GROUP + 'resident = 30\nwait = 2\nthreshold = 12\n'
        d = self.daemon(sections, keys=keys)
        clients, at, silent = [d.connect('line tcp') for _ in range(4)], 0, {}
        end = time.monotonic() + (3 if harness.SANITIZED else 6)

        def enough():
            status = d.status()
            return (status['sensors']['evicted'] > 5 and status['durability']['events_last'] > 10 and status['durability']['shards'][0]['snapshots'] > 0
                    and status['groups']['machines'] > 5)
        while time.monotonic() < end or not enough():
            self.assertLess(time.monotonic(), end + harness.WAIT)
            for i, c in enumerate(clients):
                rest = [n for n in names[i::4] if silent.get(n, 0) < time.monotonic()]
                if rng.random() < 0.1:
                    silent[rng.choice(names)] = time.monotonic() + rng.choice((0.1, 1.5, 2.5))
                some = rng.sample(rest, rng.randint(len(rest) * 2 // 3, len(rest)))
                times = [at + rng.choice((0, 0, 0, 0, 0, 0, 0, -1, 2, 4)) for _ in some]
                c.sendall(''.join(f'{n} value={rng.gauss(0, 1) + 4 * (t // 40 % 2)} {START + t * SECOND}\n' for n, t in zip(some, times)).encode())
            at += 1
            time.sleep(0.004)
        for c in clients:
            c.close()
        # If a second passed before the end, sensors would be missing from the last snapshot.
        d.configure(sections, self.keys(snapshot='1s', more='loops = 3\n'))
        with d.client() as c:
            taken, lines = c.reload()
        self.assertTrue(taken, lines)
        harness.until(lambda: d.status()['connections']['open'] == 1 and d.status()['points']['pending'] == 0, 'the points')
        status = d.status()
        self.assertGreater(status['sensors']['evicted'], 5)
        self.assertGreater(status['durability']['events_last'], 10)
        self.assertGreater(status['durability']['shards'][0]['snapshots'], 0)
        self.assertEqual(d.stop(), 0)
        there, expected = f'{self.state}/there', self.machines(f'{self.state}/there')
        self.assertGreater(len(expected), 5)
        groups = {'machines': len(expected), 'members': sum(members for _, members, _ in expected.values())}
        snapshots = sorted(f for f in os.listdir(f'{there}/shard-0') if f.endswith('.hks'))
        for gone in (snapshots[-1:], snapshots):
            with self.subTest(without=gone):
                shutil.copytree(there, f'{self.state}/copy')
                for f in gone:
                    os.remove(f'{self.state}/copy/shard-0/{f}')
                again = self.daemon(sections, keys=self.keys().replace('/there', '/copy'))
                self.assertEqual(again.status()['groups'], groups)
                self.assertEqual(again.stop(), 0)
                found = self.machines(f'{self.state}/copy')
                self.assertEqual(sorted(found), sorted(expected))
                for slot, machine in expected.items():
                    self.assertEqual(found[slot], machine, f'the machine of slot {slot}')
                shutil.rmtree(f'{self.state}/copy')


class Killed(harness.Case):
    """Kills at random instants: see tests/faults/kills.py."""

    def run_it(self, n, **how):
        seed = int.from_bytes(os.urandom(4), 'little')
        with self.subTest(seed=seed):
            run = kills.Run('journal', seed, rate=3000 if harness.SANITIZED else 6000, sensors=24, wait=harness.WAIT, groups=True, **how)
            try:
                run.go(n, least=1000)
                results, events = run.compare()
            finally:
                run.clean()
            self.assertGreater(results, 1000)
            self.assertGreater(events, 10)

    def test_journal(self):
        self.run_it(3 if harness.SANITIZED else 8)

    def test_snapshots_and_journal(self):
        self.run_it(2 if harness.SANITIZED else 3, life=1.5)

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
    def test_several_shards(self):
        self.run_it(3 if harness.SANITIZED else 5, devices=3)


if __name__ == '__main__':
    harness.main()
