"""Many machines over Kafka, [cluster] engine = kafka: the tests of test_cluster with librdkafka's mock brokers. These keep everything in
memory, so they are not killed: they refuse connections, fall silent, and answer with errors."""
import contextlib
import functools
import os
import signal
import struct
import subprocess
import unittest

import harness
import kafka
import rabbit
import test_cluster
from cluster_machines import PARTITIONS, POINTS, Cluster, Feeder
from harness import ALERTS, DONE, POSITIONS, SECOND, START, SUBSCRIBE, text, until


@functools.lru_cache
def the_broker():
    broker = kafka.Broker()
    unittest.addModuleCleanup(broker.clean)
    return broker


class Kafka(Cluster):
    __unittest_skip__ = False  # whether there is RabbitMQ does not matter
    engine = 'engine = kafka\nsession = 4s\n'
    letters = False

    @classmethod
    def its_broker(cls):
        return the_broker()

    def setUp(self):
        super().setUp()
        self.topics()

    def topics(self):
        self.broker.order('topic', f'{self.name}.points', PARTITIONS)
        self.broker.order('topic', f'{self.name}.events', 1)
        self.broker.order('topic', f'{self.name}.scores', 1)


class TestRoad(Kafka, test_cluster.TestRoad):
    test_the_rule_of_partitions = test_sensors_of_a_machine_stay_together = test_no_peer_has_the_feed_of_a_partition = None  # they do not depend on the kind of broker

    def test_it_says_that_it_is_experimental(self):
        d = self.start('gateway')
        self.connected(d)
        self.assertTrue(any('engine = kafka is experimental' in line for line in d.log), d.log)
        with open(os.path.join(self.folder, 'conf'), 'w', encoding='utf-8') as f:
            f.write(self.sections('gateway'))
        out = subprocess.run([harness.HANKELD, '-c', f.name, '--check'], capture_output=True, text=True, timeout=harness.WAIT, check=True).stdout
        self.assertIn('engine = kafka is experimental', out)

    def test_a_topic_with_another_number_of_partitions(self):
        self.name += '-other'
        self.broker.order('topic', f'{self.name}.points', PARTITIONS + 1)
        d = self.start('gateway')
        until(lambda: self.of(d)['state'] == 'failing', 'the topic to be refused')
        self.assertIn(f'the topic has {PARTITIONS + 1} partitions, and there should be {PARTITIONS}', self.of(d)['why'])


class TestFaults(Kafka, test_cluster.TestFaults):
    test_a_scorer_with_snapshots_is_killed = test_a_gateway_is_killed = test_a_stream_is_deleted = test_the_broker_is_killed = test_peers_are_pushed_back = None

    def test_the_broker_is_away(self):
        """Points that the broker does not have are not acknowledged, and acknowledged ones are not lost."""
        d, f = self.fed()
        self.broker.order('down')
        until(lambda: all(self.of(each)['state'] == 'failing' for each in d), 'the loss to be noticed')
        f.send(1200)
        f.client.ping()
        self.assertEqual((f.acknowledged, d[0].status()['points']['pending']), (600, 600))
        self.broker.order('up')
        self.connected(*d)
        f.send(len(f.points))
        f.wait(len(f.points))
        self.scored(d[1], len(f.points))
        self.assertEqual(self.alerts(d[1]), self.events)
        f.client.close()

    def test_one_of_three_brokers_is_away(self):
        """Each broker has some of the partitions: messages for those of a missing broker wait until it is back, and no connection counts as lost."""
        self.broker = kafka.Broker(3)
        self.addCleanup(self.broker.clean)
        self.topics()
        d, f = self.fed()
        self.broker.order('down', 2)
        f.send(1200)
        f.client.ping()
        self.broker.order('up')
        f.send(len(f.points))
        f.wait(len(f.points))
        self.scored(d[1], len(f.points))
        self.assertEqual(self.alerts(d[1]), self.events)
        self.assertEqual([self.of(each)['connected'] for each in d], [1, 1])
        f.client.close()

    def test_the_broker_refuses_for_a_while(self):
        """Messages are sent again and read again, and their points are scored once. Only one message of a partition is in flight at a time: the mock
        ignores sequence numbers, so it would take the message after a refused one, from which the library concludes that it has both."""
        d = [self.start('gateway'), self.scorer('a')]
        self.connected(*d)
        f = Feeder('f', self.values)
        f.connect(d[0])
        for request, error in ((kafka.PRODUCE, kafka.NOT_ENOUGH_REPLICAS), (kafka.PRODUCE, kafka.NOT_LEADER), (kafka.FETCH, kafka.NOT_LEADER)):
            f.send(f.sent + 600)
            f.wait(f.sent)
            self.broker.order('fail', request, error, 3)
            f.send(f.sent + 60)
            f.wait(f.sent)
        f.send(len(f.points))
        f.wait(len(f.points))
        self.scored(d[1], len(f.points))
        self.assertEqual(self.alerts(d[1]), self.events)
        self.assertEqual([self.of(each)['connected'] for each in d], [1, 1])  # the library retries; the connection is not lost
        f.client.close()


    def test_a_message_is_refused_for_good(self):
        """The library gives up on a message: its points are acknowledged only after it was published again, over another connection."""
        d, f = self.fed()
        self.broker.order('fail', kafka.PRODUCE, kafka.INVALID_RECORD, 1)
        f.send(660)
        f.wait(660)
        self.assertEqual((self.of(d[0])['connected'], self.of(d[0])['why']), (2, 'a message is not taken: Broker: Broker failed to validate record'))
        f.send(len(f.points))
        f.wait(len(f.points))
        until(lambda: sum(d[1].status()['points'][k] for k in ('scored', 'unscored')) == len(f.points), 'all points', rabbit.START)
        until(lambda: self.alerts(d[1]) == self.events, 'the events')
        f.client.close()


class TestAll(Kafka, test_cluster.TestAll):
    test_reload = test_two_machines = None

    def test_machines_come_and_go(self):
        """One scorer has all partitions, another joins and gets its share, the first is killed: every point is scored, to the same bits, and every
        event is there once."""
        first = self.node(ends=-signal.SIGKILL)
        self.shares((first, PARTITIONS))
        with contextlib.ExitStack() as stack:
            seen, f = [], Feeder('f', self.values)

            def look(d):
                seen.append(stack.enter_context(d.client()))
                seen[-1].subscribe()

            def feed(d, quarter):
                n = len(f.points) * quarter // 4
                f.connect(d)
                f.send(n)
                f.wait(n)
                f.client.close()
                until(lambda: shown() == n, 'the scores', rabbit.START)

            def shown():
                for c in seen:
                    with contextlib.suppress(harness.Closed, OSError):  # one was killed
                        c.drain(0.05)
                return len(self.rows_of(seen))
            look(first)
            feed(first, 1)
            second = self.node()
            look(second)
            self.shares((first, PARTITIONS // 2), (second, PARTITIONS // 2))
            feed(first, 2)
            self.saved()
            feed(second, 3)
            until(lambda: shown() and {s for s, t, *_ in seen[0].results if t >= START + POINTS // 2 * SECOND} == set(self.values), 'the scores of both at the first', rabbit.START)
            self.assertIn('alone decides', self.refused(second))
            first.process.kill()
            first.process.wait()
            feed(second, 4)
            self.shares((second, PARTITIONS))
            self.assertEqual({(s, t): (score, state) for c in seen for s, t, _, score, state in c.results if state != 'late'}, self.rows)
        with second.client() as c:
            c.request(SUBSCRIBE, struct.pack('<If', ALERTS | POSITIONS, 0) + text('') + struct.pack('<Q', 0), DONE)
            until(lambda: c.drain(0.05) or len(c.placed) >= len(self.events), 'all events, of both')
            self.assertEqual({(f'{e[0]}:{e[1]}', e[2]): (e[3], e[5], e[6]) for _, _, e in c.placed}, self.events)
            self.assertEqual(len(c.placed), len(self.events))

    def refused(self, d):
        """The answer to a request to move a partition."""
        wanted = next(p for p in range(PARTITIONS) if p not in [h['partition'] for h in self.of(d)['held']])
        out = subprocess.run([harness.HANKEL, 'cluster', 'move', str(wanted), f"127.0.0.1:{d.port['binary tcp']}"], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertNotEqual(out.returncode, 0)
        return out.stdout + out.stderr


if __name__ == '__main__':
    harness.main()
