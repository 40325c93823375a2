"""Scores do not depend on the protocol: replay of a recording, the daemon fed over binary TCP, UDP and line protocol, and the client `hankel feed`
give the same scores, states and events, bit for bit, however the points are cut into frames."""
import os
import random
import subprocess

import harness
from harness import ALERTS, DATA, SCORED, UNSCORED, VALUES

# sensor: (recording, detector)
RECORDINGS = {
    'hold time': ('rogue_agent_key_hold.csv', 'window=48,rank=3,alert=0.5'),
    'latency': ('ec2_request_latency_system_failure.csv', 'window=96'),
    'CBF': ('CBF.txt', 'window=20,rank=2,present=power,operator=gram,alert=adaptive'),
    'Coffee': ('Coffee.txt', 'window=10,gap=19,stride=3,scale=window,alert=0.3'),
    'Lightning2': ('Lightning2.txt', 'window=33,preset=paper,alert=0.6'),
    'faults': ('faults.csv', 'window=12,gap=9,rank=2,algorithm=svd,max_fill=4,fill=linear,alert=0.5,cooldown=20'),
}
if harness.BACKEND != 'cuda' and not harness.SANITIZED:  # graphs of long recordings under sanitizers have their own tests
    RECORDINGS['machine temperature'] = ('machine_temperature_system_failure.csv', 'algorithm=graph,window=50')


class SameScores(harness.Case):
    listens = harness.LISTENERS

    @classmethod
    def setUpClass(cls):
        """Rows and events of replay for each recording; the points are taken from its output."""
        cls.rows, cls.events = {}, {}
        for sensor, (recording, detector) in RECORDINGS.items():
            cls.rows[sensor], events = harness.replay(os.path.join(DATA, recording), detector, harness.BACKEND, '--sensor', sensor)
            cls.events[sensor] = [(e[0], e[2], int(e[3]), int(e[4]), harness.single(e[5])) for e in events]

    def start(self, sensors=RECORDINGS, **how):
        sections = ''.join(harness.section(s, s, RECORDINGS[s][1]) for s in sensors)
        d = self.daemon(sections, keys='threads = 2\nmax_ahead = off\n', **how)
        subscriber = d.client()
        self.addCleanup(subscriber.close)
        subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES)
        return d, subscriber

    def compare(self, subscriber, sensors=RECORDINGS, finite=False):
        """Compares all results and events of the sensors, in order, with replay."""
        subscriber.wait_results(sum(1 for s in sensors for r in self.rows[s] if not finite or r[3] != 'rejected'))
        subscriber.drain(0.1)
        for sensor in sensors:
            want = [r[1:4] for r in self.rows[sensor] if not finite or r[3] != 'rejected']
            got = [(time, z, state) for name, time, _, z, state in subscriber.results if name == sensor]
            self.assertEqual(len(got), len(want), sensor)
            for i, (a, b) in enumerate(zip(got, want)):
                self.assertEqual(a, b, f'{sensor}, point {i}')
            events = [(f'{name}:{number}', kind, at, instant, score)
                      for name, number, kind, at, _, instant, score, _, _ in subscriber.events if name == sensor]
            self.assertEqual(events, self.events[sensor], sensor)
        self.assertEqual(subscriber.gaps, [])

    def interleaved(self, rng, finite=False):
        """(sensor, time, value) of all recordings, mixed at random, in order for each sensor."""
        points = {s: [(r[1], r[4]) for r in rows if not finite or r[3] != 'rejected'] for s, rows in self.rows.items()}
        return list(harness.interleaved(rng, points))

    def test_binary_tcp_cut_anyhow(self):
        for seed, most in ((1, 3), (2, 1000), (3, 20000)):
            with self.subTest(most=most):
                rng = random.Random(seed)
                daemon, subscriber = self.start()
                mixed = self.interleaved(rng)
                with daemon.client() as c:
                    handle = dict(zip(RECORDINGS, c.register(*RECORDINGS)))
                    stream = b''.join(
                        harness.points([handle[s] for s, _, _ in mixed[a:b]], [t for _, t, _ in mixed[a:b]], [v for _, _, v in mixed[a:b]])
                        for a, b in harness.cut(rng, len(mixed), most))
                    for a, b in harness.cut(rng, len(stream), 200000):
                        c.send(stream[a:b])
                    c.bye()
                self.compare(subscriber)

    def test_binary_udp(self):
        rng = random.Random(4)
        daemon, subscriber = self.start()
        mixed = self.interleaved(rng)
        with daemon.client() as c, daemon.connect('binary udp') as udp:
            handle = dict(zip(RECORDINGS, c.register(*RECORDINGS)))
            sent = datagrams = 0
            for a, b in harness.cut(rng, len(mixed), 60):
                part = mixed[a:b]
                datagrams += 1
                udp.send(harness.points([handle[s] for s, _, _ in part], [t for _, t, _ in part], [v for _, _, v in part], c.feed, datagrams, sent))
                sent += len(part)
                if datagrams % 50 == 0:  # slow enough for no loss
                    subscriber.wait_results(sent)
            subscriber.wait_results(sent)
            c.bye(datagrams, sent)
        self.compare(subscriber)

    def lines(self, mixed):
        # a name with a space is a measurement and a field
        return [f'{s if " " in s else s + " value"}={v!r} {t}\n'.encode() for s, t, v in mixed]

    def test_line_tcp(self):
        rng = random.Random(5)
        daemon, subscriber = self.start()
        stream = b''.join(self.lines(self.interleaved(rng, finite=True)))
        with daemon.connect('line tcp') as s:
            for a, b in harness.cut(rng, len(stream), 30000):
                s.sendall(stream[a:b])
        self.compare(subscriber, finite=True)

    def test_line_udp(self):
        rng = random.Random(6)
        daemon, subscriber = self.start()
        lines = self.lines(self.interleaved(rng, finite=True))
        with daemon.connect('line udp') as s:
            for i, (a, b) in enumerate(harness.cut(rng, len(lines), 30)):
                s.send(b''.join(lines[a:b]))
                if i % 50 == 0:
                    subscriber.wait_results(b)
        self.compare(subscriber, finite=True)

    def test_hankel_feed(self):
        daemon, subscriber = self.start(['CBF', 'faults'])
        for sensor in ('CBF', 'faults'):
            subprocess.run([harness.HANKEL, 'feed', '--to', f'127.0.0.1:{daemon.port["binary tcp"]}', '--sensor', sensor, '--fast',
                            os.path.join(DATA, RECORDINGS[sensor][0])], check=True, timeout=harness.WAIT)
        self.compare(subscriber, ['CBF', 'faults'])


if __name__ == '__main__':
    harness.main()
