"""Brokers that fail in part, for test_cluster.py: they give leases and lack logs, or send nothing more of a log. A proxy between the daemon and a
real broker passes frames on, and causes faults that were seen with several brokers. And a shared folder that one scorer cannot read."""
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import harness
import rabbit
from cluster_machines import PARTITIONS, Cluster, Feeder
from harness import until

CONSUME, PUBLISH, DELIVER = (60, 20), (60, 40), (60, 60)


class Between:
    """lacks: closes each connection that requests a log of points. stall(): present consumers get nothing more. free: unless it is set, the broker's
    answers to connections that publish to `logs` are delayed. events: published ones, by connection."""

    def __init__(self, broker, lacks=False, logs=(b'.scores', b'.events')):
        self.broker, self.lacks, self.refused, self.logs = broker, lacks, 0, logs
        self.stalled, self.consumers, self.lock = set(), set(), threading.Lock()  # (connection, tag)
        self.leaves_out = set()  # connections whose last message is left out
        self.free, self.publishers, self.events = threading.Event(), set(), {}
        self.free.set()
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self.listener.getsockname()[1]}'
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        number = 0
        with contextlib.suppress(OSError):
            while True:
                ends = self.listener.accept()[0], socket.create_connection((self.broker.address, self.broker.port))
                number += 1
                for a, b, frame in (*ends, self.asked), (*ends[::-1], self.answered):
                    threading.Thread(target=self.carry, args=(a, b, frame, number), daemon=True).start()

    def carry(self, a, b, frame, number):
        """Passes on the frames that `frame` accepts, one by one; a protocol header has the length of a frame without content."""
        with contextlib.suppress(OSError, EOFError), a.makefile('rb') as f:
            while True:
                head = f.read(7)
                more = 1 if head[:4] == b'AMQP' else struct.unpack('>I', head[3:])[0] + 1 if len(head) == 7 else 0
                rest = f.read(more)
                if not rest or len(rest) < more:
                    break
                if frame(number, head[0], rest):
                    b.sendall(head + rest)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def asked(self, number, kind, payload):
        if kind == 1 and struct.unpack_from('>HH', payload) == PUBLISH and any(log in payload for log in self.logs):
            self.publishers.add(number)
            self.events[number] = self.events.get(number, 0) + (b'.events' in payload)
        if kind != 1 or struct.unpack_from('>HH', payload) != CONSUME:
            return True
        queue, rest = payload[7:7 + payload[6]], payload[7 + payload[6]:]
        with self.lock:
            self.consumers.add((number, rest[1:1 + rest[0]]))
            self.stalled.discard((number, rest[1:1 + rest[0]]))
        if self.lacks and b'.points.' in queue:
            self.refused += 1
            raise EOFError
        return True

    def answered(self, number, kind, payload):
        """Leaves out messages to stalled consumers: a method, a header and bodies each, one after the other on the only channel with consumers."""
        if number in self.publishers:
            self.free.wait()
        if kind == 1:
            tag = payload[5:5 + payload[4]] if struct.unpack_from('>HH', payload) == DELIVER else None
            with self.lock:
                (self.leaves_out.add if (number, tag) in self.stalled else self.leaves_out.discard)(number)
        return kind not in (1, 2, 3) or number not in self.leaves_out

    def stall(self, tags):
        with self.lock:
            self.stalled = {c for c in self.consumers if c[1] in tags}


class TestOutages(Cluster):
    def between(self, **how):
        b = Between(self.broker, **how)
        self.addCleanup(b.listener.close)
        return b

    def first_scores(self, client, gateway, scorer):
        """A feeder at the gateway with 600 points, whose scores the client there has received."""
        client.subscribe()
        self.heard(scorer)
        f = Feeder('f', self.values)
        f.connect(gateway)
        f.send(600)
        f.wait(600)
        until(lambda: client.drain(0.05) or len(client.results) == 600, 'the first scores', rabbit.START)
        return f

    def test_a_broker_that_lacks_logs(self):
        """The proxy passes on leases, but not the logs of their partitions: the scorer reads these from the next broker."""
        bad = self.between(lacks=True)
        gateway, scorer = self.start('gateway'), self.start('scorer', f'state = shared:{self.folder}\n', url=f'amqp://{bad.address}, {self.broker.url}')
        until(lambda: self.of(scorer)['partitions'] == PARTITIONS, 'the partitions', rabbit.START)
        self.assertTrue(bad.refused >= PARTITIONS and any(f'cannot be taken over broker {bad.address}: ' in line for line in scorer.log), scorer.log)
        f = Feeder('f', self.values)
        f.connect(gateway)
        f.send(600)
        f.wait(600)
        self.scored(scorer, 600)
        f.client.close()

    def test_scores_of_a_sensor_are_on_their_way_once(self):
        """While scores are unconfirmed, no later ones of the same sensors are published: if the first were lost, only the later ones would be
        shown."""
        bad = self.between()
        gateway, scorer = self.start('gateway'), self.start('scorer', f'state = shared:{self.folder}\n', url=f'amqp://{bad.address}')
        with gateway.client() as c:
            f = self.first_scores(c, gateway, scorer)
            bad.free.clear()
            for n in range(612, 720, 12):
                f.send(n)
                f.wait(n)
                self.scored(scorer, n)
            until(lambda: self.of(scorer)['scores']['waiting'] > 0, 'scores to be on their way')
            waiting = self.of(scorer)['scores']['waiting']
            bad.free.set()
            until(lambda: c.drain(0.05) or len(c.results) >= f.sent, 'the scores', rabbit.START)
            self.assertEqual((waiting, self.of(scorer)['scores']['lost']), (1, 0))
            self.once(c)
            f.client.close()

    def test_a_scorer_is_killed_with_unconfirmed_scores(self):
        """A snapshot counts only once the broker has confirmed the scores that it includes: the next scorer computes the others again."""
        bad, sharing = self.between(logs=(b'.scores',)), f'state = shared:{self.folder}\n'
        gateway, scorer = self.start('gateway'), self.start('scorer', sharing, daemon_keys='snapshot = 1s\n', ends=-signal.SIGKILL, url=f'amqp://{bad.address}')
        with gateway.client() as c:
            f = self.first_scores(c, gateway, scorer)
            bad.free.clear()
            for n in (612, 1200):  # the first are on their way, all others wait for them
                f.send(n)
                f.wait(n)
                self.scored(scorer, n)
            made, end = scorer.status()['durability']['shards'][0]['snapshots'], time.monotonic() + 4
            until(lambda: scorer.status()['durability']['shards'][0]['snapshots'] > made + 1 or time.monotonic() > end, 'a snapshot of all points')
            scorer.process.send_signal(signal.SIGKILL)
            scorer.process.wait(harness.WAIT)
            bad.free.set()
            self.start('scorer', sharing)
            until(lambda: c.drain(0.05) or len(c.results) >= 1200, 'the scores of the next one', rabbit.START)
            self.once(c)
            f.client.close()

    def test_events_of_a_sensor_are_on_their_way_once(self):
        """Likewise for events of a sensor: the first could be lost and come after the second, and would then be taken for a repeated one."""
        bad = self.between()
        scorer = self.start('scorer', f'state = shared:{self.folder}\n', url=f'amqp://{bad.address}')
        until(lambda: self.of(scorer)['partitions'] == PARTITIONS, 'the partitions', rabbit.START)
        gateway = self.start('gateway')
        until(lambda: len(self.of(gateway)['where']) == PARTITIONS and self.of(scorer)['events_waiting'] == 0, 'the log of events', rabbit.START)
        bad.free.clear()
        bad.events = {}
        f = Feeder('f', self.values)
        f.connect(gateway)
        with gateway.client() as c:
            c.subscribe()
            f.send(len(f.points))
            f.wait(len(f.points))
            self.scored(scorer, len(f.points))
            until(lambda: self.of(scorer)['events_waiting'] >= len(self.events), 'the events')  # and a mark, if the connection was given up meanwhile
            sent = max(bad.events.values(), default=0)
            bad.free.set()
            self.assertTrue(0 < sent <= len(self.values) < len(self.events), (sent, len(self.events)))
            until(lambda: c.drain(0.05) or len(c.events) >= len(self.events), 'the events at the gateway', rabbit.START)
            self.assertEqual({(f'{e[0]}:{e[1]}', e[2]): (e[3], e[5], e[6]) for e in c.events}, self.events)
        f.client.close()

    def test_a_broker_that_sends_nothing_more(self):
        """A log that falls silent is requested again: each point is scored once, and a gateway shows each score once."""
        bad = self.between()
        gateway, scorer = (self.start(role, keys, url=f'amqp://{bad.address}') for role, keys in (('gateway', ''), ('scorer', f'state = shared:{self.folder}\n')))
        until(lambda: self.of(scorer)['partitions'] == PARTITIONS, 'the partitions', rabbit.START)
        with gateway.client() as c:
            f = self.first_scores(c, gateway, scorer)
            bad.stall([b'scores', *(b'%d' % i for i in range(PARTITIONS))])
            f.send(1200)
            f.wait(1200)
            until(lambda: c.drain(0.05) or len(c.results) >= 1200, 'the scores', rabbit.START)
            self.assertEqual({(s, t): (score, state) for s, t, _, score, state in c.results}, {k: v for k, v in self.rows.items() if k in {(s, t) for s, t, _ in f.points[:1200]}})
            self.once(c)
            f.client.close()
        self.scored(scorer, 1200)

    def test_the_broker_is_away_at_the_start(self):
        """A machine has several connections to it: one line in the log for all, and the status says what is wrong."""
        d = self.start('all', f'state = shared:{self.folder}\n', url=f'amqp://127.0.0.1:{harness.free_port()}')

        def states():
            c = self.of(d)
            return [c['state'], c['publishing']['state'], c['events'], c['scores']['state'], c['mail']]
        until(lambda: states() == 5 * ['failing'], 'all connections to fail')
        self.assertEqual(sum('cannot be reached' in line for line in d.log), 1, d.log)
        out = subprocess.run([harness.HANKEL, 'status', '--from', self.address(d)], check=False, capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual(out.returncode, 3)
        self.assertRegex(out.stdout, '^WRONG +the broker of the cluster is unreachable: ')

    def limit(self, timeout, look):
        """The time, in ms, for the acknowledgement of a message, and how often the broker looks for messages above it."""
        for key, value in ('consumer_timeout', timeout), ('channel_tick_interval', look):
            self.assertEqual(self.broker.ask(f'application set_env [rabbit,{key},{value}]'), 'ok')

    def short_acknowledgements(self):
        self.limit(30000, 1000)
        self.addCleanup(self.limit, 1800000, 60000)

    def test_leases_outlast_the_time_for_acknowledgements(self):
        """RabbitMQ closes a channel with a message that is not acknowledged for half an hour, here for 30 s: leases last for months."""
        self.short_acknowledgements()
        before = len(self.broker.log)
        gateway, scorer = self.start('gateway'), self.start('scorer', f'state = shared:{self.folder}\n', url=self.broker.url)
        until(lambda: self.of(scorer)['partitions'] == PARTITIONS, 'the partitions', rabbit.START)
        held = time.monotonic()
        until(lambda: time.monotonic() > held + 35, 'a lease that would be lost', 2 * rabbit.START)
        self.assertNotIn('timed out waiting for delivery acknowledgement', self.broker.log[before:])
        self.assertEqual([(h['partition'], h['epoch']) for h in self.of(scorer)['held']], [(i, 1) for i in range(PARTITIONS)])
        self.connected(gateway)

    def short_of_memory(self, is_short):
        self.assertEqual(self.broker.ask(f'vm_memory_monitor set_vm_memory_high_watermark [{0.00001 if is_short else 0.9:f}]'), 'ok')

    def test_leases_while_the_broker_is_short_of_memory(self):
        """Then it reads nothing from connections that publish. A killed scorer's partitions go to others all the same, also to one that has declined
        them; and leases that nobody could renew come back."""
        self.short_acknowledgements()
        gateway, sharing = self.start('gateway'), f'state = shared:{self.folder}\n'
        scorers = [self.start('scorer', sharing, ends=ends) for ends in (-signal.SIGKILL, 0, 0)]
        until(lambda: sorted(self.of(d)['partitions'] for d in scorers) == [1, 1, 2], 'even shares', rabbit.START)

        def held():
            return {h['partition']: h['epoch'] for d in scorers[1:] for h in self.of(d)['held']}
        with gateway.client() as c:
            f = self.first_scores(c, gateway, scorers[1])
            self.heard(*scorers)
            self.addCleanup(self.short_of_memory, False)
            self.short_of_memory(True)
            scorers[0].process.send_signal(signal.SIGKILL)
            scorers[0].process.wait(harness.WAIT)
            until(lambda: len(held()) == PARTITIONS, 'the partitions of the killed scorer', rabbit.START)
            taken = held()
            until(lambda: len(now := held()) == PARTITIONS and all(now[p] > taken[p] for p in taken), 'leases after the time for acknowledgements', 2 * rabbit.START)
            self.short_of_memory(False)
            f.send(len(f.points))
            f.wait(len(f.points))
            until(lambda: c.drain(0.05) or {(s, t) for s, t, *_ in c.results} == set(self.rows), 'all scores', rabbit.START)
            self.assertEqual(self.once(c), self.rows)
            f.client.close()

    def test_a_scorer_that_cannot_read_the_folder(self):
        """It is counted as none for a while: the other one gets all partitions, also those that were the first one's share."""
        able = self.start('scorer', f'state = shared:{self.folder}\n')
        until(lambda: self.of(able)['partitions'] == PARTITIONS, 'the partitions', rabbit.START)
        elsewhere = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, elsewhere)
        os.mkdir(f'{elsewhere}/{self.name}-{PARTITIONS}')
        for p in range(PARTITIONS):
            with open(f'{elsewhere}/{self.name}-{PARTITIONS}/{p}', 'wb'):  # where the folder of the partition is to be
                pass
        unable = self.start('scorer', f'state = shared:{elsewhere}\n')
        until(lambda: any('this machine is not counted among the scorers for 60 s' in line for line in unable.log), 'it to try', rabbit.START)
        until(lambda: [(s['partitions'], s['scorers']) for s in (self.of(able), self.of(unable))] == [(PARTITIONS, 1), (0, 1)], 'the other to have all', rabbit.START)
