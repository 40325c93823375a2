"""A rolling upgrade: this build reads what machines of an earlier one have written (cluster_recorded.py), to the same points, scores and events,
bit for bit; and what a later version has written, which it cannot read, it names in the log, without losing it and without stopping anything else."""
import contextlib
import ctypes
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import threading
import time
import zlib

import harness
import rabbit
from cluster_recorded import HALF, Recorded, follow, lines, messages, path
from harness import SECOND, START, until

LATER = 9  # a version that no build reads


def later(message):
    """The message with its first frame of a later version."""
    head, payload = message[:2] + bytes([LATER]) + message[3:12], message[16:16 + struct.unpack_from('<I', message, 4)[0]]
    return head + struct.pack('<I', zlib.crc32(payload, zlib.crc32(head))) + message[16:]


class Versions(Recorded):
    def put(self, log, message):
        self.broker.tool('amqp-publish', '-r', f'{self.name}.{log}', '-p', data=message)

    def put_all(self, log, some):
        for message in some:
            self.put(log, message)

    def equal(self, rows, expected, by):
        """Results that may come several times; of a machine whose kernels round differently the scores are nearly those."""
        delta = self.rounding(by)
        seen = {}
        for s, t, value, score, state in rows:
            if state != 'late':
                self.assertEqual(repr(seen.setdefault((s, t), (value, score, state))), repr((value, score, state)))
        self.assertEqual(set(seen), set(expected))
        for key, (value, score, state) in expected.items():
            self.assertEqual(repr((seen[key][0], seen[key][2])), repr((value, state)), key)  # a value may be no number
            if score is None or delta == 0:
                self.assertEqual(seen[key][1], score, key)
            else:
                self.assertAlmostEqual(seen[key][1], score, delta=delta)

    def recorded_results(self, begin=0):
        return {(s, START + k * SECOND): tuple(rest) for s, k, *rest in lines('results.jsonl') if k >= begin}

    def recorded_events(self):
        return [(p, tuple(e)) for p, *e in lines('events.jsonl')]

    def placed(self, c):
        with contextlib.suppress(harness.Closed, OSError):
            c.drain(0.05)
        return [(p, tuple(e)) for p, _, e in c.placed]

    def read_by(self, scorer, c, begin):
        """Waits until a subscriber of the scorer has the results from row `begin` on."""
        expected = self.recorded_results(begin)
        until(lambda: c.drain(0.05) or {r[:2] for r in c.results} >= set(expected), 'the results', rabbit.START)
        self.equal([r for r in c.results if r[1] >= START + begin * SECOND], expected, scorer)
        self.assertEqual((self.of(scorer)['bad'], self.of(scorer)['lost']), (0, 0))

    def logged(self, d, *words):
        until(lambda: any(all(w in line for w in words) for line in d.log), f'the log to say {words}', rabbit.START)


class TestEarlier(Versions):
    def test_points_from_the_first_message_on(self):
        """All messages of the partition's log, by a scorer without a state: the same values, scores, alerts and, of the group, machines."""
        gateway, scorer = self.machine('gateway'), self.machine('scorer')
        self.holds(scorer)
        with scorer.client() as c, follow(gateway) as told:
            c.subscribe()
            self.put_all('points.0', messages('points.0'))
            self.read_by(scorer, c, 0)
            whole = 4 if self.rounding(scorer) else None  # members of an event that do not depend on how kernels round
            until(lambda: sorted(e[:whole] for _, e in self.placed(told)) == sorted(e[:whole] for _, e in self.recorded_events()), 'the events', rabbit.START)

    def test_a_state_is_taken_over(self):
        """The state of the partition, and the messages since: windows, histories and alerts go on, and events have the same numbers. The
        machines have the earlier scorer's events and scores, too, and show none twice."""
        with open(path('about.json'), encoding='utf-8') as f:
            before = json.load(f)['messages_before_the_state']
        points = messages('points.0')
        gateway = self.machine('gateway')
        with gateway.client() as elsewhere, follow(gateway) as told:
            elsewhere.subscribe(harness.SCORED | harness.UNSCORED | harness.VALUES)
            until(lambda: self.of(gateway)['scores']['state'] == 'connected', 'the log of scores to be there', rabbit.START)
            # It looks for subscribers every second, and reads the log from then on: what comes again it leaves out.
            until(lambda: self.put('scores', messages('scores')[0]) or elsewhere.drain(0.05) or elsewhere.results, 'the gateway to read scores', rabbit.START)
            self.put_all('events', messages('events'))
            self.put_all('scores', messages('scores'))
            until(lambda: elsewhere.drain(0.05) or len(elsewhere.results) >= len(self.recorded_results()), 'the scores', rabbit.START)
            self.assertEqual(len(elsewhere.results), len(self.recorded_results()))
            self.equal(elsewhere.results, self.recorded_results(), gateway)
            first = self.placed(told)[0][0] - self.recorded_events()[0][0]  # the gateway's own mark was there before them
            expected = [(p + first, e) for p, e in self.recorded_events()]
            until(lambda: self.placed(told) == expected, 'the events', rabbit.START)

            self.put_all('points.0', points[:before])
            shutil.copytree(path('state'), os.path.join(self.folder, f'{self.name}-1', '0'))
            scorer = self.machine('scorer')
            self.holds(scorer)
            self.logged(scorer, f'its log is read from message {before - 1} on')  # with the last one that the state has
            self.assertFalse([line for line in scorer.log if 'warm up again' in line or 'damaged' in line], scorer.log)
            with scorer.client() as c:
                c.subscribe()
                self.put_all('points.0', points[before:])
                self.read_by(scorer, c, HALF)
            until(lambda: self.of(scorer)['events_waiting'] == 0, 'its events to be shared')
            time.sleep(1)
            self.assertEqual(self.placed(told), expected)
            elsewhere.drain(0.5)
            self.assertEqual(len(elsewhere.results), len(self.recorded_results()))
            self.assertEqual([(h['partition'], h['epoch']) for h in self.of(scorer)['held']], [(0, 2)])

    def test_letters(self):
        """A machine of an earlier build is known by its notice, is asked, and answers; and it asks, and is answered."""
        notice, question, answer = messages('letters')
        there, asker = (letter.split(b'\n')[0].split()[-1].decode() for letter in (notice, question))  # its scorer and gateway
        gateway, scorer = self.machine('gateway'), self.machine('scorer')
        self.holds(scorer)
        for machine in there, asker:
            self.broker.tool('amqp-declare-queue', '-q', f'{self.name}.mail.{machine}')
            self.addCleanup(self.broker.tool, 'amqp-delete-queue', '-q', f'{self.name}.mail.{machine}')

        def told():
            self.broker.tool('amqp-publish', '-e', f'{self.name}.machines', data=re.sub(rb'"epoch":\d+', b'"epoch":77', notice))
            return any(m['machine'] == there and m['says']['held'][0]['epoch'] == 77 for m in self.of(gateway)['others'])
        until(told, 'the notice to be read', rabbit.START)

        def received(machine):
            """The next letter to that machine."""
            got = []

            def look():
                out = self.broker.tool('amqp-get', '-q', f'{self.name}.mail.{machine}', check=False)
                got.append(out.stdout if out.returncode == 0 else b'')
                return got[-1]
            until(look, 'a letter', rabbit.START)
            return got[-1]
        asked = []

        def ask():
            thread = threading.Thread(target=lambda: asked.append(self.asked(gateway, 'sensors/level')))
            thread.start()
            line, body = received(there).split(b'\n', 1)
            self.assertEqual(json.loads(body), json.loads(question.split(b'\n', 1)[1]))
            kind, version, number, today = line.split()
            self.assertEqual((kind, version), (b'question', b'1'))
            self.put(f'mail.{today.decode()}', b'answer 1 ' + number + b' 200\n' + answer.split(b'\n', 1)[1])
            thread.join(harness.WAIT)
            return asked[-1][0] != 504  # a full machine may answer after the 5 s that the gateway waits
        until(ask, 'an answer in time', rabbit.START)
        self.assertEqual(asked[-1], (200, json.loads(answer.split(b'\n', 1)[1])))

        self.put(f"mail.{self.of(scorer)['machine']}", question)
        line = received(asker).split(b'\n')[0].split()
        self.assertEqual((line[:2], line[2]), ([b'answer', b'1'], question.split()[2]))


class TestLater(Versions):
    partitions = 2

    def test_points(self):
        """The partition waits before a message of a later version, whoever has it, and says so; the other partition goes on. Nothing of it is
        left out, but what only looks like such a message is."""
        sensor = next(f's{i}' for i in range(99) if rabbit.partition(f's{i}', 2) == 1)
        gateway, scorer = (self.start(r, f'state = shared:{self.folder}\n' if r == 'scorer' else '', 'snapshot = 1s\n' if r == 'scorer' else '') for r in ('gateway', 'scorer'))
        self.holds(scorer)
        good = messages('points.0')[0]
        self.put_all('points.0', [good, good[:2] + bytes([LATER]) + good[3:], later(good), good])
        self.logged(scorer, 'partition 0', f'message 2 is of version {LATER}; this hankeld reads version 1')
        self.logged(scorer, 'partition 0: message 1 is left out: it is not a REGISTER frame')
        with gateway.client() as c:
            c.send(harness.points(c.register(sensor), [START], [1.0]))
        points = self.of(scorer)['points']
        until(lambda: self.of(scorer)['held'][1]['next'] == 1, 'the other partition to go on')
        waits = self.of(scorer)
        self.assertEqual((waits['held'][0]['next'], waits['held'][0]['needs_version'], waits['bad']), (2, LATER, 1))
        self.assertNotIn('needs_version', waits['held'][1])
        self.assertLessEqual(waits['points'] - points, 1)
        out = subprocess.run([harness.HANKEL, 'cluster', 'status', '--from', self.address(scorer)], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual(out.returncode, 3, out)
        self.assertIn(f'waits: that message is of version {LATER}', out.stdout)
        self.assertEqual(len([line for line in scorer.log if 'is of version' in line]), 1)
        self.assertEqual(scorer.stop(), 0)
        again = self.start('scorer', f'state = shared:{self.folder}\n', 'snapshot = 1s\n')
        self.holds(again)
        self.logged(again, 'partition 0', f'message 2 is of version {LATER}')

    def test_points_of_a_scorer_without_leases(self):
        """Likewise over one connection for all partitions, with a journal."""
        gateway, scorer = self.start('gateway'), self.scorer('a')
        until(lambda: self.of(scorer)['state'] == 'connected' == self.of(gateway)['state'], 'the broker to be connected', rabbit.START)
        good = messages('points.0')[0]
        self.put_all('points.0', [later(good), good])
        self.logged(scorer, 'partition 0', f'message 0 is of version {LATER}')
        self.put('points.1', good)
        until(lambda: [h['next'] for h in self.of(scorer)['held']] == [0, 1], 'the other partition to go on')
        self.assertEqual((self.of(scorer)['bad'], self.of(scorer)['held'][0]['needs_version']), (0, LATER))

    def test_a_state(self):
        """A state of a later version stays as it is, and its partition is not scored from an older one, or from none."""
        self.partitions = 1
        folder = os.path.join(self.folder, f'{self.name}-1', '0')
        shutil.copytree(path('state'), folder)
        state = glob.glob(f'{folder}/*/shard-0/*.hks')[0]
        xxhash = ctypes.CDLL('libxxhash.so.0')
        xxhash.XXH3_64bits.restype, xxhash.XXH3_64bits.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
        with open(state, 'r+b') as f:
            head = bytearray(f.read(72))
            head[8] = LATER
            f.seek(0)
            f.write(head + struct.pack('<Q', xxhash.XXH3_64bits(bytes(head), len(head))))
            f.seek(0)
            content = f.read()
        scorer = self.machine('scorer')
        self.logged(scorer, 'partition 0 cannot be taken', f'it is of version {LATER}; this hankeld reads version 3')
        self.assertEqual(self.of(scorer)['partitions'], 0)
        with open(state, 'rb') as f:
            self.assertEqual(f.read(), content)
        until(lambda: os.listdir(folder) == [state.split(os.sep)[-3]], 'no epoch to be left behind')

    def test_events_scores_and_letters(self):
        """They are left out, each with a line; later ones are read."""
        gateway = self.start('gateway')
        with gateway.client() as elsewhere, follow(gateway) as told:
            elsewhere.subscribe(harness.SCORED | harness.UNSCORED | harness.VALUES)
            until(lambda: self.of(gateway)['scores']['state'] == self.of(gateway)['mail'] == 'connected', 'the logs to be there', rabbit.START)
            event, score = messages('events')[-1], messages('scores')[-1]
            xxhash = ctypes.CDLL('libxxhash.so.0')
            xxhash.XXH3_64bits.restype, xxhash.XXH3_64bits.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
            for rest in event[8:11] + b'%d' % LATER + event[12:], event[8:12] + struct.pack('<I', 200) + event[16:]:
                self.put('events', struct.pack('<Q', xxhash.XXH3_64bits(rest, len(rest))) + rest)
            self.logged(gateway, 'event 1 is left out', 'it is of a later version; this hankeld reads version 1')
            self.logged(gateway, 'event 2 is left out', 'it is of a kind that this hankeld does not know')
            said = ('scores: message', f'is left out: it is of version {LATER}; this hankeld reads version 1')  # once it looks for subscribers, and reads the log
            until(lambda: self.put('scores', later(score)) or any(all(w in line for w in said) for line in gateway.log), 'the log to name the scores', rabbit.START)
            self.broker.tool('amqp-publish', '-e', f'{self.name}.machines', data=b'notice %d m:1\n{}' % LATER)
            self.logged(gateway, f'a letter of version {LATER} is left out; this hankeld reads version 1')
            self.put_all('events', messages('events'))
            self.put('scores', score)
            until(lambda: len(self.placed(told)) == len(self.recorded_events()), 'the events', rabbit.START)
            until(lambda: elsewhere.drain(0.05) or elsewhere.results, 'the scores', rabbit.START)
            self.assertEqual({m['machine'] for m in self.of(gateway)['others']}, set())


if __name__ == '__main__':
    harness.main()
