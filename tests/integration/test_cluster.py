"""Many machines over a broker, [cluster]: gateways, scorers, and RabbitMQ between them."""
import contextlib
import glob
import json
import os
import re
import signal
import struct
import subprocess
import time

import certificates
import harness
import rabbit
import web
from cluster_events import TestEvents
from cluster_machines import DETECTOR, FEED, PARTITIONS, POINTS, Cluster, Feeder, authority
from cluster_outages import TestOutages
from harness import SECOND, START, until

TestEvents.__module__ = TestOutages.__module__ = __name__  # a broker ends with the module that has started it


class TestRoad(Cluster):
    def test_shared_by_two_scorers(self):
        """Every point reaches the scorer of its sensor's partition, and gets the score that a daemon alone gives it."""
        gateway, scorers = self.start('gateway', web.LISTENER), [self.scorer('a', 'read = 0-1\n'), self.scorer('b', 'read = 2, 3\n', ends=-signal.SIGKILL)]
        self.connected(gateway, *scorers)
        with contextlib.ExitStack() as stack:
            seen = [stack.enter_context(d.client()) for d in scorers]
            for c in seen:
                c.subscribe()
            f = Feeder('f', self.values)
            half = POINTS // 2 * len(self.values)
            f.points[half:] = sorted(f.points[half:], key=lambda p: (p[1], -list(self.values).index(p[0])))  # no scorer may rely on an order of names
            f.connect(gateway)
            for behind in (half, len(f.points)):
                f.send(behind)
                f.wait(behind)
            for i, c in enumerate(seen):
                mine = [s for s in self.values if rabbit.partition(s, PARTITIONS) // 2 == i]
                self.assertTrue(mine)
                c.wait_results(len(mine) * POINTS)
                self.assertEqual({(s, t): (score, state) for s, t, _, score, state in c.results}, {k: v for k, v in self.rows.items() if k[0] in mine})
                self.scored(scorers[i], len(mine) * POINTS)
                self.assertEqual(self.alerts(scorers[i]), {k: v for k, v in self.events.items() if k[0].rsplit(':', 1)[0] in mine})
                if self.letters:
                    until(lambda: self.asked(gateway, f'sensors/{mine[0]}')[1].get('machine') == self.of(scorers[i])['machine'], 'the gateway to know its scorer')
            f.client.close()
        p = self.balanced(gateway.status())
        self.assertEqual((p['relayed'], self.of(gateway)['points']), (len(f.points), len(f.points)))
        away = self.of(scorers[1])['machine']
        scorers[1].process.kill()
        scorers[1].process.wait()
        if self.letters:
            until(lambda: self.asked(gateway, f'sensors/{mine[0]}') == (503, {'type': 'about:blank', 'status': 503, 'detail': f'{away} scores it, and is away: the broker has no connection of it'}), 'the gateway to say who is away')

    def test_the_rule_of_partitions(self):
        with open(os.path.join(harness.ROOT, 'proto', 'vectors', 'partitions.json'), encoding='utf-8') as file:
            for row in json.load(file)['partitions']:
                self.assertEqual(rabbit.partition(row['key'], row['partitions']), row['partition'], row)

    def test_sensors_of_a_machine_stay_together(self):
        """Lines, over any listener; and a group: the name of a machine determines the partition of its sensors."""
        group = '[group machine]\nmatch = (*)/*\ninterval = 1s\n'
        d = [self.start('gateway', detector=harness.section('all', '*', DETECTOR) + group), self.scorer('a', f"read = {rabbit.partition('machine#m7', PARTITIONS)}\n", detector=harness.section('all', '*', DETECTOR) + group)]
        self.connected(*d)
        with d[0].connect('line tcp') as s:
            s.sendall(b''.join(f'm7/s{i} value={i} {START}\n'.encode() for i in range(20)))
        until(lambda: self.of(d[1])['points'] == 20, 'all sensors of the machine')

    def test_no_peer_has_the_feed_of_a_partition(self):
        """No peer can use the named feed of a partition, which would show how far the partition was read."""
        scorer = self.scorer('a')
        self.connected(scorer)
        with scorer.client() as c:
            c.send(harness.frame(FEED, harness.text(f'[cluster] {self.name} 0/{PARTITIONS}'), 7))
            kind, tag, payload = c.receive()
            self.assertEqual((kind, tag, struct.unpack_from('<H', payload)[0]), (harness.ERROR, 7, 16))
            c.ping()

    def test_messages_that_cannot_be_read(self):
        d = [self.start('gateway'), self.scorer('a')]
        self.connected(*d)
        self.broker.put(self.name, 1, 'no message of ours')
        until(lambda: self.of(d[1])['bad'] == 1, 'it to be counted')
        f = Feeder('f', self.values)
        f.connect(d[0])
        f.send(100)
        self.scored(d[1], 100)
        self.assertTrue(any('partition 1: message 0 is left out: it is not a REGISTER frame and a POINTS frame' in line for line in d[1].log), d[1].log)
        f.client.close()


class TestFaults(Cluster):
    def test_a_scorer_is_killed(self):
        """A scorer continues where its journal ends: every point is scored once, and every event published once, bit for bit."""
        gateway, scorer = self.killed('journal')
        until(lambda: self.alerts(scorer) == self.events, 'the events')
        if not any('it is tried again' in line for line in gateway.log):  # a broker that was too slow for 10 s has messages twice
            self.assertEqual(scorer.status()['points']['late'], 0)

    def test_a_scorer_with_snapshots_is_killed(self):
        """A scorer continues from its last snapshot, and reads again from there: the same scores."""
        self.killed('snapshot', 'snapshot = 1s\n')

    def killed(self, durability, keys=''):
        """A scorer that is killed three times on the way has the right scores in the end."""
        keys = {'durability': durability, 'daemon_keys': keys}
        gateway, scorer = self.start('gateway'), self.scorer('a', ends=-signal.SIGKILL, **keys)
        f = Feeder('f', self.values)
        f.connect(gateway)
        for part in range(1, 5):
            behind = len(f.points) * part // 4
            f.send(behind)
            if part < 4:
                until(lambda: self.of(scorer)['points'] >= len(f.points) // 8, 'points')
                scorer.process.kill()
                scorer.process.wait()
                scorer = self.scorer('a', ends=-signal.SIGKILL if part < 3 else 0, **keys)
        f.wait(len(f.points))
        last = {s: self.rows[s, START + (POINTS - 1) * SECOND][0] for s in self.values}
        until(lambda: self.last_scores(scorer) == last, 'the last scores', rabbit.START)
        f.client.close()
        return gateway, scorer

    def test_a_gateway_is_killed(self):
        """Points that a killed gateway has acknowledged are in the logs; its client sends the others again, and their second copies are late."""
        scorer = self.scorer('a')
        f = Feeder('f', self.values)
        for part in range(1, 5):
            gateway = self.start('gateway', ends=-signal.SIGKILL if part < 4 else 0)
            f.connect(gateway)
            f.send(len(f.points) * part // 4)
            f.wait(len(f.points) * part // 4 - (300 if part < 4 else 0))
            if part < 4:
                gateway.process.kill()
                gateway.process.wait()
            f.client.close()
        until(lambda: sum(scorer.status()['points'][k] for k in ('scored', 'unscored')) == len(f.points), 'all points', rabbit.START)
        until(lambda: self.alerts(scorer) == self.events, 'the events')
        self.balanced(scorer.status())

    def test_the_broker_is_killed(self):
        """A broker that is killed: points that it does not have are not acknowledged, and acknowledged ones are not lost."""
        d, f = self.fed()
        time.sleep(3)  # RabbitMQ 3.10 saves its list of streams every 0.5 s; the first stream of a broker that is killed before does not come back
        self.broker.stop()
        until(lambda: all(self.of(each)['state'] == 'failing' for each in d), 'the loss to be noticed')
        f.send(1200)
        f.client.ping()
        self.assertEqual((f.acknowledged, d[0].status()['points']['pending']), (600, 600))
        self.broker.start()
        self.connected(*d)
        f.send(len(f.points))
        f.wait(len(f.points))
        self.scored(d[1], len(f.points))
        self.assertEqual(self.alerts(d[1]), self.events)
        f.client.close()

    def test_the_broker_is_silent(self):
        """A broker that is stopped (SIGSTOP): nothing is acknowledged, peers are slowed, and everything continues when the broker does."""
        d = [self.start('gateway', daemon_keys='backlog = 300000\n'), self.scorer('a')]
        self.connected(*d)
        self.broker.send(signal.SIGSTOP)
        try:
            f = Feeder('f', self.values)
            f.connect(d[0])
            f.send(600)
            f.client.ping()
            self.assertEqual((f.acknowledged, d[0].status()['points']['relayed']), (0, 0))
        finally:
            self.broker.send(signal.SIGCONT)
        f.send(len(f.points))
        f.wait(len(f.points))
        self.scored(d[1], len(f.points))
        f.client.close()

    def test_a_stream_is_deleted(self):
        """The gateway makes it anew, and publishes what was not confirmed; the scorer, which had read far more messages, reads it from
        its first one. Each point is scored once."""
        d, f = self.fed()
        row = len(self.values)
        for n in range(600, 600 + 30 * row, row):  # a message each
            f.send(n + row)
            f.wait(n + row)
        self.scored(d[1], f.sent)
        for i in range(PARTITIONS):
            self.broker.tool('amqp-delete-queue', '-q', f'{self.name}.points.{i}')
        until(lambda: all(any('was deleted' in line for line in x.log) for x in d[1:]), 'the loss to be noticed')
        self.connected(d[1])

        def noticed():
            if f.sent + row < len(f.points):
                f.send(f.sent + row)
                f.wait(f.sent)
            time.sleep(0.3)
            return sum('and made anew' in line for line in d[1].log) == PARTITIONS
        until(noticed, 'the new streams to be read')
        f.send(len(f.points))
        f.wait(len(f.points))
        self.scored(d[1], len(f.points))
        self.assertEqual(self.alerts(d[1]), self.events)
        f.client.close()

    def test_peers_are_pushed_back(self):
        """A sender that gets no acknowledgements stops; the points that it has sent by then arrive in the end."""
        self.one_message_of_a_log_at_a_time()
        self.broker.send(signal.SIGSTOP)
        try:
            gateway = self.start('gateway', daemon_keys='backlog = 300000\nmax_frame = 131072\n')
            with gateway.client() as c:
                handles = c.register(*(f'p{i}' for i in range(1000)))
                c.socket.settimeout(1)
                sent = 0
                with self.assertRaises(TimeoutError):
                    while sent < 3000:
                        c.send(harness.points(handles, [START + sent * SECOND] * 1000, [0.5] * 1000))
                        sent += 1
            self.assertLess(gateway.status()['points']['in'], 1_000_000)
        finally:
            self.broker.send(signal.SIGCONT)
        until(lambda: gateway.status()['points']['relayed'] == gateway.status()['points']['in'] > 0, 'all of it to be published', rabbit.START)


class TestLeases(Cluster):
    """Scorers that share the partitions by themselves, with a folder that all can access, `state = shared:DIR`."""

    def sharing(self, keys='', detector=None, **how):
        return self.start('scorer', f'state = shared:{self.folder}\n', daemon_keys=f'snapshot = 1s\n{keys}', detector=detector, **how)

    def shares(self, *shares):
        """Waits until each scorer has that many partitions."""
        until(lambda: all(self.of(d)['partitions'] == n for d, n in shares), 'the partitions to be shared out', rabbit.START)

    def machines(self):
        """Sensors of machines, one machine for each partition."""
        names = {rabbit.partition(f'machine#m{i}', PARTITIONS): f'm{i}' for i in range(99)}
        return {f'{names[i % PARTITIONS]}/{s}': v for i, (s, v) in enumerate(self.values.items())}

    def alone(self, values, detector):
        """The results of a daemon alone, in the form that `same` takes."""
        d = self.daemon(detector, keys='threads = 1\nloops = 2\nmax_ahead = off\n')
        with d.client() as c:
            c.subscribe()
            f = Feeder('f', values)
            f.connect(d)
            f.send(len(f.points))
            f.wait(len(f.points))
            f.client.close()
            c.drain()
        return c

    def saved(self):
        """Waits until all partitions have a snapshot that was begun after the call."""
        def numbers():
            return {p: max(glob.glob(f'{p}/epoch-*/shard-0/snapshot-*.hks'), default='') for p in glob.glob(f'{self.folder}/*/*')}
        for _ in range(2):
            before = numbers()
            until(lambda: all(n > before[p] for p, n in numbers().items()), 'snapshots', rabbit.START)

    def test_scorers_come_and_go(self):
        """One scorer joins, one is killed, another joins, one ends: every point is scored, to the same bits by any scorer, also machines of
        a group; alerts have the same numbers."""
        detector = harness.section('all', '*', DETECTOR) + '[group machine]\nmatch = (*)/*\ninterval = 1s\nresident = 30\nthreshold = 12\n'
        values = self.machines()
        gateway, first = self.start('gateway', detector=detector), self.sharing(detector=detector, ends=-signal.SIGKILL)
        self.shares((first, PARTITIONS))
        with contextlib.ExitStack() as stack:
            seen = [stack.enter_context(first.client())]
            f = Feeder('f', values)
            f.connect(gateway)

            def shown(n):
                for c in seen:
                    with contextlib.suppress(harness.Closed, OSError):  # one was killed
                        c.drain(0.05)
                return len({row for row in self.rows_of(seen) if row[0] in values}) == n

            def feed(part):
                n = len(f.points) * part // 8
                f.send(n)
                f.wait(n)
                until(lambda: shown(n), 'the scores', rabbit.START)  # so that no score is on its way when its scorer ends

            def join():
                d = self.sharing(detector=detector)
                seen.append(stack.enter_context(d.client()))
                seen[-1].subscribe()
                return d
            seen[0].subscribe()
            elsewhere = stack.enter_context(gateway.client())
            elsewhere.subscribe()
            self.heard(first)
            feed(2)
            second = join()
            self.shares((first, PARTITIONS // 2), (second, PARTITIONS // 2))
            feed(4)
            self.saved()
            third = join()
            feed(5)
            first.process.kill()
            first.process.wait()
            self.shares((second, PARTITIONS // 2), (third, PARTITIONS // 2))
            feed(6)
            self.who_has_what(gateway, second, third)
            second.process.terminate()
            self.shares((third, PARTITIONS))
            feed(8)
            alone = self.alone(values, detector)
            until(lambda: shown(len(f.points)) and self.rows_of(seen) == self.rows_of([alone]), 'the scores of machines', rabbit.START)
            until(lambda: elsewhere.drain(0.05) or self.rows_of([elsewhere]) == self.rows_of([alone]), 'all scores at the gateway', rabbit.START)
            self.once(elsewhere)
            f.client.close()
        self.assertTrue(any(re.search(r'is scored here now .* [1-9]\d* sensors restored .* message [1-9]', line) for line in third.log), third.log)
        self.same(alone, seen)

    def rows_of(self, clients):
        return {(row[0], row[1]) for c in clients for row in c.results}

    def same(self, alone, seen):
        """The results of all scorers together are those of a daemon alone; results that came twice are equal."""
        def said(clients):
            scores, told = {}, {}
            for s, t, _, score, state in (row for c in clients for row in c.results):
                if state != 'late':
                    self.assertEqual(scores.setdefault((s, t), (score, state)), (score, state), (s, t))
            for name, number, kind, *rest in (e for c in clients for e in c.events):
                self.assertEqual(told.setdefault((name, number, kind), rest), rest, (name, number, kind))
            return scores, told
        wanted = said([alone])
        self.assertEqual(len({s for (s, _), (score, _) in wanted[0].items() if '#' in s and score is not None}), PARTITIONS)
        self.assertEqual(said(seen), wanted)


class TestShares(TestLeases):
    """The distribution of partitions: even shares, and operators' drains and moves."""
    test_scorers_come_and_go = None  # is above

    def cluster(self, *what):
        out = subprocess.run([harness.HANKEL, 'cluster', *what], check=False, capture_output=True, text=True, timeout=2 * rabbit.START)
        self.assertEqual(out.returncode, 0, out)
        return out.stdout

    def test_even_shares(self):
        """Three scorers of four partitions: each has at least one. One drains, and takes its share again; a partition is moved."""
        d = [self.sharing() for _ in range(3)]

        def shares():
            return [self.of(x)['partitions'] for x in d]
        until(lambda: sorted(shares()) == [1, 1, 2], 'even shares', rabbit.START)
        seen = [self.subscriber(x) for x in d]
        f, gateway = Feeder('f', self.values), self.start('gateway')
        f.connect(gateway)
        f.send(len(f.points) // 2)
        f.wait(len(f.points) // 2)
        until(lambda: len(self.of(gateway)['others']) == len(d), 'the gateway to know the scorers', rabbit.START)
        self.asked_in_vain(gateway, d[1])
        self.assertIn('has no partitions: it may be stopped', self.cluster('drain', self.address(d[0])))
        until(lambda: sorted(shares()) == [0, 2, 2], 'the others to have all', rabbit.START)
        f.send(len(f.points))
        f.wait(len(f.points))
        of = [self.of(x) for x in d]
        self.assertEqual([x['draining'] for x in of], [True, False, False])
        moved = of[1]['held'][0]['partition']
        self.assertIn(f'partition {moved} is scored by', self.cluster('move', str(moved), self.address(d[2])))
        until(lambda: sorted(shares()) == [0, 2, 2] and moved in [h['partition'] for h in self.of(d[2])['held']], 'shares to be even again', rabbit.START)
        self.undrain(d[0])
        until(lambda: sorted(shares()) == [1, 1, 2], 'even shares again', rabbit.START)
        self.by_clients(d)
        names = {self.of(x)['machine'] for x in d}
        until(lambda: [w['partition'] for w in self.of(gateway)['where']] == list(range(PARTITIONS)) and {w['machine'] for w in self.of(gateway)['where']} == names, 'the gateway to know', rabbit.START)
        until(lambda: [c.drain(0.05) for c in seen] and len(self.rows_of(seen)) == len(f.points), 'all scores', rabbit.START)
        for c in seen:
            self.assertLessEqual({(s, t): (score, state) for s, t, _, score, state in c.results if state != 'late'}.items(), self.rows.items())
        f.client.close()

    def subscriber(self, d):
        c = d.client()
        self.addCleanup(c.socket.close)
        c.subscribe()
        return c


class TestAll(TestLeases):
    """Machines with the same configuration, role = all: each takes points and scores a share."""
    test_scorers_come_and_go = None  # that is of scorers

    def node(self, **how):
        """A machine with the `address` that others show."""
        port = harness.free_port()
        listeners = harness.STREAMS.replace('address = 127.0.0.1:0', f'address = 127.0.0.1:{port}', 1) + web.LISTENER
        return self.start('all', f'state = shared:{self.folder}\naddress = 127.0.0.1:{port}\n', 'snapshot = 1s\n', listeners=listeners, **how)

    def tail(self, d):
        """A subscriber of one machine gets the scores of all machines."""
        tail = subprocess.Popen([harness.HANKEL, 'tail', '--format', 'csv', '--from', f"127.0.0.1:{d.port['binary tcp']}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(tail.stderr.close)
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)
        while 'subscribed' not in (line := tail.stderr.readline()):
            self.assertTrue(line, 'tail has ended')
        return tail

    def test_reload(self):
        """After a reload another detector is in force for the sensors that peers feed, and for those that are scored."""
        d = self.node()
        self.shares((d, PARTITIONS))
        other = harness.section('other', 'new-*', DETECTOR.replace('16', '20'))
        with d.client() as c:
            c.register('s1')
            self.feed_lines(d, 's1')
            d.configure(self.sections('all', f'state = shared:{self.folder}\n', detector=other), 'threads = 1\nloops = 2\nmax_ahead = off\nsnapshot = 1s\n')
            self.assertEqual(c.reload()[0], True)
            self.assertEqual(c.register('s1', 'x1'), [None, None])  # no detector matches them now
        self.feed_lines(d, 'new-1')

    def test_a_silent_cluster(self):
        """Logs without messages are asked for again every 3 to 4 s, and the broker agrees with each asking: with the second as with the first."""
        d = self.node()
        self.shares((d, PARTITIONS))
        connected = [line for line in d.log if 'connected to broker' in line]
        time.sleep(10)
        self.assertEqual([line for line in d.log if 'connected to broker' in line or 'it is tried again' in line], connected)

    def feed_lines(self, d, name):
        before = d.status()['points']['unscored']
        with d.connect('line tcp') as s:
            s.sendall(f'{name} value=1 {START}\n'.encode())
        until(lambda: d.status()['points']['unscored'] == before + 1, 'the point to be taken')

    def test_two_machines(self):
        """Points come in at either of two machines; together they have all scores, and each has all alerts. One is killed, and the other has all partitions."""
        nodes = [self.node(), self.node(ends=-signal.SIGKILL)]
        self.shares(*((d, PARTITIONS // 2) for d in nodes))
        with contextlib.ExitStack() as stack:
            seen = [stack.enter_context(d.client()) for d in nodes]
            for c in seen:
                c.subscribe()
            self.heard(*nodes)
            f = Feeder('f', self.values)

            def feed(d, n):
                f.connect(d)
                f.send(n)
                f.wait(n)
                f.client.close()
            half = len(f.points) // 2
            tail = self.tail(nodes[0])
            feed(nodes[1], half)
            until(lambda: [c.drain(0.05) for c in seen] and all(len(c.results) == half for c in seen), 'all scores at both', rabbit.START)
            self.assertEqual(self.once(seen[0]), self.once(seen[1]))
            self.assertEqual({tail.stdout.readline().split(',')[0] for _ in range(half)} - {'sensor'}, set(self.values))
            sensor = next(s for s in self.values if rabbit.partition(s, PARTITIONS) in [h['partition'] for h in self.of(nodes[1])['held']])
            self.everywhere(nodes, sensor)
            nodes[1].process.kill()
            nodes[1].process.wait()
            feed(nodes[0], len(f.points))
            self.shares((nodes[0], PARTITIONS))
            until(lambda: seen[0].drain(0.05) or len(self.rows_of(seen[:1])) == len(f.points), 'all scores', rabbit.START)
            self.assertEqual({(s, t): (score, state) for s, t, _, score, state in seen[0].results if state != 'late'}, self.rows)
            until(lambda: seen[0].drain(0.05) or len(seen[0].events) == len(self.events), 'the events of both')
            self.assertEqual({(f'{e[0]}:{e[1]}', e[2]): (e[3], e[5], e[6]) for e in seen[0].events}, self.events)
        p = self.balanced(nodes[0].status())
        self.assertEqual((p['relayed'], self.of(nodes[0])['publishing']['points']), 2 * (len(f.points) - half,))


class TestLogin(Cluster):
    def test_tls(self):
        d = self.start('gateway', f'ca = {authority().certificate}\n', url=f'amqps://127.0.0.1:{self.broker.tls_port}')
        self.connected(d)
        other = certificates.Authority(self.folder, 'other')
        d = self.start('gateway', f'ca = {other.certificate}\n', url=f'amqps://127.0.0.1:{self.broker.tls_port}')
        until(lambda: self.of(d)['state'] == 'failing', 'the certificate to be refused')
        self.assertIn('verif', self.of(d)['why'])

    def test_user_and_password(self):
        password = os.path.join(self.folder, 'password')
        with open(password, 'w', encoding='utf-8') as f:
            f.write('wrong\n')
        d = self.start('gateway', f'user = guest\npassword_file = {password}\n')
        until(lambda: self.of(d)['state'] == 'failing', 'the password to be refused')
        self.assertIn('ACCESS_REFUSED', self.of(d)['why'])
        with open(password, 'w', encoding='utf-8') as f:
            f.write('guest\n')
        self.connected(d)

    def test_another_broker_in_turn(self):
        d = self.start('gateway', url=f'amqp://127.0.0.1:{harness.free_port()}, {self.broker.url}')
        self.connected(d)
        self.assertEqual(self.of(d)['broker'], f'127.0.0.1:{self.broker.port}')


if __name__ == '__main__':
    harness.main()
