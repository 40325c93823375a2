"""The log of events that machines of a cluster share: every subscriber of any machine gets each event once, at the same position, and
one machine at a time sends alerts, whichever is killed."""
import contextlib
import json
import signal
import struct
import subprocess
import time
import unittest
import urllib.request

import broker_proxy
import cluster_machines
import harness
import rabbit
import test_notify
import web
from harness import ALERTS, DONE, POSITIONS, START, SUBSCRIBE, level, text, until

MARK = 101  # HK_SHARED_MARK
PARTITIONS, POINTS = cluster_machines.PARTITIONS, cluster_machines.POINTS
INCIDENTS = '[incidents]\nbudget = 100/day\ninterval = 1s\n'


class Plant:
    """The sensor plant, whose level rises after 60 points of it."""

    def __init__(self, client, machine):
        self.client, self.machine, self.handles, self.sent = client, machine, client.register('plant'), 0

    def feed(self, n):
        """Sends n more points; returns the number of incidents that are open at the machine."""
        for _ in range(n):
            self.client.send(harness.points(self.handles, [START + self.sent * harness.SECOND], [level(self.sent, 60)]))
            self.sent += 1
        return self.machine.status()['incidents']['open']


class Events(cluster_machines.Cluster):
    def setUp(self):
        super().setUp()
        self.receiver = test_notify.Receiver()
        self.addCleanup(self.receiver.end)
        self.hook = f'[notify hook]\ntype = webhook\nurl = {self.receiver.url("/a")}\ngather = 50ms\nrate = 6000\n'

    def machine(self, role, *sections, ends=0):
        shared = f'state = shared:{self.folder}\n' if role == 'scorer' else ''
        return self.start(role, shared + ''.join(sections) + web.LISTENER, 'snapshot = 1s\n', ends=ends)

    def follow(self, daemon, since=0):
        """A subscriber to events and their positions."""
        c = daemon.client()
        self.addCleanup(c.socket.close)
        c.request(SUBSCRIBE, struct.pack('<If', ALERTS | POSITIONS, 0) + text('') + struct.pack('<Q', since), DONE)
        return c

    def heard(self, c):
        """The events by position; asserts that each came once. Acknowledgements are left out."""
        with contextlib.suppress(harness.Closed, OSError):
            c.drain(0.05)
        told = {position: (f'{e[0]}:{e[1]}', e[2]) for position, _, e in c.placed if e[2] != 'acknowledged'}
        self.assertEqual((len(set(told.values())), len(set(e[0] for e in c.placed)), c.gaps), (len(told), len(c.placed), []))
        return told

    def wait_for_events(self, c, wanted):
        until(lambda: set(self.heard(c).values()) >= set(wanted), 'the events', rabbit.START)
        self.assertEqual(set(self.heard(c).values()), set(wanted))

    def leads(self, *daemons):
        """The machine that sends alerts."""
        until(lambda: sum(self.of(d)['leads'] for d in daemons) == 1, 'one machine to lead', rabbit.START)
        return next(d for d in daemons if self.of(d)['leads'])

    def shown_to_lead(self, leader, other):
        """`hankel cluster status` names the leader."""
        addresses = [f"127.0.0.1:{d.port['binary tcp']}" for d in (leader, other)]
        out = subprocess.run([harness.HANKEL, 'cluster', 'status', '--from', ','.join(addresses)], check=False, capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual([line.split()[0] for line in out.stdout.splitlines() if 'leads: sends the alerts' in line], addresses[:1], out)

    def wait_for_incidents(self, leader, other):
        """One machine makes incidents, and both show the same ones: of the sensors of all machines, although the leader neither scores sensors nor is fed."""
        def made(d):
            answer = self.ask(d, 'incidents')
            return [(i['about']['id'], i['stands'], i['told'], i['about'].get('of')) for i in answer['incidents'] + answer['over']]

        def same():
            return made(leader) == made(other) and {i[3] for i in made(leader)} - {None} == {len(self.values)}
        until(same, 'the same incidents', rabbit.START)
        self.assertEqual((self.look(leader)['state'], self.look(other)['state']), ('ok', 'resting'))

    def look(self, d):
        return d.status()['notify'][0]

    def ask(self, d, what):
        with urllib.request.urlopen(f"http://127.0.0.1:{d.port['http tcp']}/api/v1/{what}", timeout=harness.WAIT) as answer:
            return json.load(answer)

    def acknowledged(self, rows, scorer, *gateways):
        """All machines list the alerts of all; an alert is acknowledged at a machine that does not score its sensor."""
        lists = [self.ask(d, 'alerts') for d in (*gateways, scorer)]
        self.assertEqual([{f"{a['sensor']}:{a['number']}" for a in one['alerts']} for one in lists], [self.standing(rows)] * 3)
        name = lists[0]['alerts'][0]['sensor']
        for d, code in ((gateways[1], 0), (gateways[0], 1)):
            out = subprocess.run([harness.HANKEL, 'ack', name, '--by', 'me', '--from', f"127.0.0.1:{d.port['binary tcp']}"], check=False, capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual(out.returncode, code, out)
            for machine in (*gateways, scorer):
                until(lambda: [a['sensor'] for a in self.ask(machine, 'alerts')['alerts'] if a.get('by') == 'me'] == [name], 'the acknowledgement')

    def kill(self, d):
        d.process.kill()
        d.process.wait()

    def expected(self, rows):
        """Feeds that many points of each sensor, and returns the events."""
        return [k for k, v in self.events.items() if v[0] < START + rows * harness.SECOND]

    def standing(self, rows):
        told = self.expected(rows)
        return {i for i, k in told if k == 'raised' and (i, 'cleared') not in told}

    def paged(self):
        return sorted((a['sensor'], int(a['id'].rpartition(':')[2]), a['status']) for a in self.receiver.alerts())

    def wait_for_pages(self, rows):
        """The receiver gets each alert of these events once."""
        kinds = {'raised': 'firing', 'cleared': 'resolved'}
        wanted = sorted((i.rpartition(':')[0], int(i.rpartition(':')[2]), kinds[k]) for i, k in self.expected(rows) if k in kinds)
        until(lambda: len(self.paged()) >= len(wanted), f'{len(wanted)} messages', rabbit.START)
        self.assertEqual(self.paged(), wanted)


@unittest.skipUnless(rabbit.THERE, rabbit.WHY)
class TestEvents(Events):
    def test_machines_are_killed(self):
        """Kills a scorer, then the gateway that leads: no subscriber misses an event or gets one twice."""
        incidents = '[incidents]\ninterval = 1s\n'
        gateways = [self.machine('gateway', self.hook, incidents, ends=-signal.SIGKILL) for _ in range(2)]
        leader = self.leads(*gateways)
        other = next(d for d in gateways if d is not leader)
        self.shown_to_lead(leader, other)
        scorers = [self.machine('scorer', ends=-signal.SIGKILL), self.machine('scorer')]
        f = cluster_machines.Feeder('f', self.values)
        f.connect(other)
        subscribers = [self.follow(d) for d in (leader, other, scorers[1])]

        def feed(rows):
            f.send(rows * len(self.values))
            f.wait(rows * len(self.values))
        feed(POINTS // 2)
        for c in subscribers:
            self.wait_for_events(c, self.expected(POINTS // 2))
        self.wait_for_pages(POINTS // 2)
        self.kill(scorers[0])
        most = max(range(POINTS // 2 + 1, POINTS), key=lambda rows: len(self.standing(rows)))
        feed(most)
        for c in subscribers:
            self.wait_for_events(c, self.expected(most))
        self.wait_for_pages(most)
        self.wait_for_incidents(leader, other)
        self.acknowledged(most, scorers[1], leader, other)
        known = max(self.heard(subscribers[0]))
        self.kill(leader)
        self.assertIs(self.leads(other), other)
        goes_on = self.follow(other, known)  # subscribers of the other machine continue here
        feed(POINTS)
        for c in subscribers[1:]:
            self.wait_for_events(c, self.events)
        self.assertEqual(self.heard(subscribers[1]), self.heard(subscribers[2]))
        self.assertEqual(self.heard(subscribers[1]), {**self.heard(subscribers[0]), **self.heard(goes_on)})
        self.wait_for_pages(POINTS)
        f.client.close()
        self.kill(other)

    def test_sections_of_incidents(self):
        """Several budgets side by side: of each section, all machines show the same incidents, with its own sensors only, and no two have the same
        number; so it is after the leader was killed, and on a machine that starts then."""
        sections = ''.join(f'[incidents {name}]\nmatch = {match}\nbudget = 100/day\ninterval = 1s\n' for name, match in (('one', 's1*'), ('rest', 's*')))
        gateways = [self.machine('gateway', sections, ends=-signal.SIGKILL) for _ in range(2)]
        scorer = self.machine('scorer')
        wanted = {'one': sum(s.startswith('s1') for s in self.values), 'rest': sum(not s.startswith('s1') for s in self.values)}
        f = cluster_machines.Feeder('f', self.values)

        def made(d):
            answer = self.ask(d, 'incidents')
            for i in answer['incidents'] + answer['over']:
                self.assertEqual({s['sensor'].startswith('s1') for s in i['about']['sensors']}, {i['about']['section'] == 'one'}, i)
            self.assertEqual([s['section'] for s in d.status()['incidents']['sections']], ['one', 'rest'])
            return {i['about']['id']: (i['about']['section'], i['stands'], i['told']) for i in answer['incidents'] + answer['over']}

        def same(*machines):
            shown = [made(d) for d in machines]
            return {i[0] for i in shown[0].values()} == set(wanted) and all(s == shown[0] for s in shown)

        def told(d):
            return {i: section for i, (section, _, told) in made(d).items() if told}

        def feed(d, rows):
            f.connect(d)
            f.send(rows * len(self.values))
            f.wait(rows * len(self.values))
            f.client.close()
        leader = self.leads(*gateways)
        other = next(d for d in gateways if d is not leader)
        feed(other, POINTS * 2 // 3)
        until(lambda: same(leader, other) and set(told(other).values()) == set(wanted), 'messages of both sections', rabbit.START)
        until(lambda: all({s['section']: s['of'] for s in d.status()['incidents']['sections']} == wanted for d in gateways), 'all sensors to be counted', rabbit.START)
        before = told(other)  # one that is not told may still merge with an earlier one, and its number is gone
        self.kill(leader)
        self.assertIs(self.leads(other), other)
        feed(other, POINTS)
        late = self.machine('gateway', sections)
        until(lambda: same(other, late) and told(other).items() >= before.items(), 'the same incidents at the late one', rabbit.START)
        self.assertEqual(self.of(scorer)['partitions'], PARTITIONS)
        self.kill(other)

    def test_incidents_end(self):
        """An incident ends once the data have gone on, although the leader scores no sensors, and no other alert comes; and everywhere, also at a machine that starts
        later."""
        gateways = [self.machine('gateway', INCIDENTS) for _ in range(2)]
        self.machine('scorer')
        leader = self.leads(*gateways)
        with gateways[0].client() as c:
            feed = Plant(c, leader).feed
            feed(70)
            until(lambda: feed(0) == 1, 'an incident', rabbit.START)
            until(lambda: feed(5) == 0, 'its end', rabbit.START)
        gateways.append(self.machine('gateway', INCIDENTS))
        until(lambda: all((lambda now: now['alerts'] > 0 and now['open'] == 0)(d.status()['incidents']) for d in gateways), 'its end everywhere', rabbit.START)

    def test_what_is_not_confirmed(self):
        """A scorer says how far its data are once the broker has confirmed its alerts of before: until then no incident ends. It forgets questions that it cannot answer
        in time, and has answers to others."""
        proxy = broker_proxy.Proxy(self.broker.port)
        self.addCleanup(proxy.listener.close)
        gateway = self.machine('gateway', INCIDENTS)
        self.leads(gateway)
        scorer = self.start('scorer', f'state = shared:{self.folder}\n', url=proxy.url)
        with gateway.client() as c:
            plant = Plant(c, gateway)
            feed = plant.feed
            feed(50)
            until(lambda: scorer.status()['points']['in'] == plant.sent and scorer.status()['points']['pending'] == 0, 'the results', rabbit.START)
            until(lambda: any(key == f'{self.name}.events' for _, key, _ in proxy.published), 'the log', rabbit.START)
            proxy.hold(f'{self.name}.events')
            feed(20)
            until(lambda: feed(0) == 1, 'an incident', rabbit.START)
            since = time.monotonic()
            while time.monotonic() - since < 8:
                self.assertEqual(feed(10), 1)
                time.sleep(0.2)
            machine = self.of(scorer)['machine']
            for i in range(64):
                self.broker.tool('amqp-publish', '-r', f'{self.name}.mail.{machine}', data=f'question 1 {i} nobody:1\n{{"ask":"progress","silence":10000}}'.encode())
            until(lambda: self.asked(gateway, 'sensors/plant')[0] == 200, 'an answer', rabbit.START)
            self.assertEqual([b for _, key, b in proxy.published if '.mail.' in key and b'"reached":' in b], [])
            proxy.release()
            until(lambda: feed(5) == 0, 'its end', rabbit.START)

    def test_marks_of_the_leader(self):
        """While alerts come all the time, the leader marks the log at most once a second."""
        proxy = broker_proxy.Proxy(self.broker.port)
        self.addCleanup(proxy.listener.close)
        leader = self.start('scorer', f'state = shared:{self.folder}\n' + INCIDENTS, url=proxy.url)
        self.leads(leader)
        gateway = self.start('gateway')

        def marks():
            return sum(key == f'{self.name}.events' and len(b) == 40 and b[12] == MARK for _, key, b in proxy.published)
        with gateway.client() as c:
            handles = c.register(*(f's{i}' for i in range(60)))

            def feed(t):
                c.send(harness.points(handles, [START + t * harness.SECOND] * 60, [level(t + i, 70 + 3 * i) for i in range(60)]))
                time.sleep(0.05)
                return leader.status()['incidents']['alerts']
            for t in range(200):
                if t == 75:
                    until(lambda: leader.status()['incidents']['alerts'] > 0, 'an alert', rabbit.START)
                    before, since = marks(), time.monotonic()
                feed(t)
            self.assertGreater(marks(), before)
            self.assertLess(marks() - before, time.monotonic() - since + 2)

    def test_incidents_of_late_data_that_move(self):
        """The state of partitions says how far their data were: at another scorer, whose first data are late, these are known to be late, and their incident goes on."""
        gateway = self.machine('gateway', INCIDENTS)
        self.leads(gateway)
        scorer = self.machine('scorer', INCIDENTS)

        def stands(alerts):
            now = self.ask(gateway, 'incidents')
            return [[s['sensor'] for s in i['about']['sensors']] for i in now['incidents']] if gateway.status()['incidents']['alerts'] >= alerts else None
        with gateway.client() as c:
            handles = c.register('live', 'other', 'plant')

            def feed(times, of):
                for t in times:
                    c.send(harness.points(handles[of], [START + x * harness.SECOND for x in (600 + t, 600 + t, t)][of],
                                          [level(t), level(t, 60), level(t, 71)][of]))
            feed(range(71), slice(3))
            until(lambda: stands(1) == [['other']], 'an incident', rabbit.START)
            self.assertEqual(scorer.stop(), 0)
            self.machine('scorer', INCIDENTS)
            feed(range(71, 100), slice(2, 3))
            until(lambda: len(stands(2) or []) == 2, 'another', rabbit.START)
            feed(range(71, 126), slice(1))
            until(lambda: len(stands(2)) < 2, 'the end of one', rabbit.START)
            self.assertEqual(stands(2), [['plant']])

    def test_incidents_end_by_all(self):
        """Data of a scorer are 1,000 points behind another's. After the broker was away, the leader leads again before it hears of that scorer, and does not take it
        for one that is away at once: its incident goes on."""
        gateway = self.machine('gateway', INCIDENTS)
        scorers = [self.machine('scorer'), self.machine('scorer', ends=-signal.SIGKILL)]
        self.leads(gateway)
        until(lambda: all(self.of(d)['partitions'] == PARTITIONS // 2 for d in scorers), 'even shares', rabbit.START)
        held = [{h['partition'] for h in self.of(d)['held']} for d in scorers]
        names = [next(n for n in (f'{i}' for i in range(10**3)) if rabbit.partition(n, PARTITIONS) in its) for its in held]
        with gateway.client() as c:
            handles, sent = c.register(*names), 0

            def feed(n, of):
                nonlocal sent
                for _ in range(n):
                    times, values = [START + (1000 + sent) * harness.SECOND, START + sent * harness.SECOND], [0.5, level(sent, 60)]
                    c.send(harness.points(handles[:of], times[:of], values[:of]))
                    sent += 1

            def counts():
                now = gateway.status()['incidents']
                return now['alerts'], now['open']
            feed(70, 2)
            until(lambda: counts() == (1, 1), 'an incident', rabbit.START)
            self.broker.stop()
            time.sleep(11)  # so long that all machines are away for the leader
            scorers[1].process.send_signal(signal.SIGSTOP)
            self.addCleanup(scorers[1].process.kill)
            self.broker.start()
            since = time.monotonic()
            while not self.of(gateway)['leads']:
                since = time.monotonic()
                time.sleep(0.05)
            while True:
                feed(1, 1)
                now = counts()
                if time.monotonic() - since >= 8:  # the leader waits for 10 s; on a busy machine this loop may be too late to see anything
                    break
                self.assertNotEqual(now, (1, 0))
                time.sleep(0.1)

    def test_moved_sensors_count_once(self):
        """Of sensors that have moved to another scorer incidents count each once, at the old one as at the new one."""
        gateway, scorers = self.machine('gateway'), [self.machine('scorer', '[incidents]\ninterval = 1s\n')]
        f = cluster_machines.Feeder('f', self.values)
        f.connect(gateway)
        f.send(5 * len(self.values))
        f.wait(5 * len(self.values))

        def counts():
            return [d.status()['incidents']['of'] for d in scorers]
        until(lambda: counts() == [len(self.values)], 'all sensors to be counted', rabbit.START)
        scorers.append(self.machine('scorer', '[incidents]\ninterval = 1s\n'))
        until(lambda: all(self.of(d)['partitions'] == PARTITIONS // 2 for d in scorers), 'even shares', rabbit.START)
        until(lambda: counts()[1] == len(self.values), 'the new one to know the sensors of the old one', rabbit.START)
        time.sleep(5)  # for the old one to know those of the new one: it asks every 2 s
        self.assertEqual(counts(), 2 * [len(self.values)])
        f.client.close()

    def test_maintenance(self):
        """A maintenance window that is begun at a gateway covers alerts that any machine raises. All machines show it, also those that start later,
        and any of them can end it."""
        gateway, scorer = self.machine('gateway'), self.machine('scorer')
        self.connected(gateway, scorer)

        def hankel(d, *what):
            out = subprocess.run([harness.HANKEL, 'maintenance', *what, '--from', f"127.0.0.1:{d.port['binary tcp']}"], check=False, capture_output=True, text=True, timeout=rabbit.START)
            self.assertEqual(out.returncode, 0, out)
            return out.stdout

        def windows(*machines):
            return [[w['match'] for w in self.ask(d, 'maintenance')['maintenance']] for d in machines]
        self.assertIn('; no sensor of this machine has such a name now', hankel(gateway, 'begin', 's*', '1h'))
        until(lambda: windows(scorer, gateway) == [['s*']] * 2, 'the window at both', rabbit.START)
        now = time.time_ns() - START
        f = cluster_machines.Feeder('f', self.values)
        f.points = [(s, t + now, v) for s, t, v in f.points]
        f.connect(gateway)
        f.send(len(f.points))
        f.wait(len(f.points))
        until(lambda: self.ask(gateway, 'events')['events'] and len(self.ask(gateway, 'alerts')['alerts']) == len(self.standing(POINTS)), 'the alerts', rabbit.START)
        self.assertEqual({e.get('maintenance') for e in self.ask(gateway, 'events')['events'] if e['event'] == 'raised'}, {True})
        f.client.close()
        late = self.machine('gateway')
        until(lambda: windows(late) == [['s*']], 'the window at the late one', rabbit.START)
        hankel(scorer, 'end', 's*')
        until(lambda: windows(scorer, gateway, late) == [[]] * 3, 'the end at all', rabbit.START)

    def test_a_log_is_deleted(self):
        """Machines that read a log that begins again learn this, and log it."""
        gateway = self.machine('gateway')
        until(lambda: self.of(gateway)['events'] == 'connected', 'the log', rabbit.START)
        self.broker.tool('amqp-delete-queue', '-q', f'{self.name}.events')
        until(lambda: any('a stream or lease that it had was deleted' in line for line in gateway.log), 'the loss to be said', rabbit.START)
        until(lambda: self.of(gateway)['events'] == 'connected', 'the log again', rabbit.START)
