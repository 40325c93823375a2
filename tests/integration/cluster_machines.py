"""Machines of a cluster for tests: gateways, scorers, RabbitMQ between them, and a client with a feed."""
import functools
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import certificates
import harness
import rabbit
import web
from harness import SECOND, START, until

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld  # noqa: E402

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95
SENSORS, POINTS, PARTITIONS = 12, 240, 4
DETECTOR = 'window=16,rank=2,interval=1s,alert=0.5,cooldown=30'


class Feeder:
    """A client whose feed outlives its connections. It keeps unacknowledged points, as PROTOCOL.md requires."""

    def __init__(self, name, values):
        self.name, self.sent, self.acknowledged = name, 0, 0
        self.points = [(s, START + k * SECOND, values[s][k]) for k in range(POINTS) for s in values]
        self.sensors = list(values)

    def connect(self, daemon):
        self.client = daemon.client()
        self.client.keep = self.keep
        self.sent = self.client.request(FEED, harness.text(self.name), FEED_AT).one('Q')
        self.sent = max(self.sent, self.acknowledged)  # the acknowledged position counts, whatever position the daemon reports
        self.handle = dict(zip(self.sensors, self.client.register(*self.sensors)))

    def keep(self, kind, payload):
        if kind == ACK:
            self.acknowledged = max(self.acknowledged, struct.unpack('<Q', payload)[0])

    def send(self, behind, together=60):
        """Sends points up to, not including, number `behind`."""
        while self.sent < behind:
            some = self.points[self.sent:min(self.sent + together, behind)]
            self.client.send(harness.points([self.handle[s] for s, _, _ in some], [t for _, t, _ in some], [v for _, _, v in some], before=self.sent))
            self.sent += len(some)

    def wait(self, upto):
        while self.acknowledged < upto:
            kind, _, payload = self.client.receive()
            self.keep(kind, payload)


@functools.lru_cache
def authority():
    folder = tempfile.mkdtemp(prefix='hankeld-authority-')
    unittest.addModuleCleanup(shutil.rmtree, folder)
    return certificates.Authority(folder, 'ca')


@functools.lru_cache
def the_broker():
    """One broker for all tests, because it takes seconds to start."""
    broker = rabbit.Broker((authority().certificate, *authority().sign('broker', names='IP:127.0.0.1,DNS:localhost')))
    unittest.addModuleCleanup(broker.clean)
    return broker


@unittest.skipUnless(rabbit.THERE, rabbit.WHY)
class Cluster(harness.Case):
    names = 0
    engine = ''  # lines of [cluster] for another kind of broker
    letters = True  # it has mailboxes
    partitions = PARTITIONS

    @classmethod
    def its_broker(cls):
        return the_broker()

    @classmethod
    def setUpClass(cls):
        cls.broker = cls.its_broker()
        cls.values = harness.waves(5, SENSORS, POINTS, (100, 160))
        cls.rows, cls.events = harness.uninterrupted(cls.values, DETECTOR)
        assert len(cls.events) >= SENSORS

    def setUp(self):
        Cluster.names += 1
        self.name = f'test-{Cluster.names}'  # a name of its own, so streams of its own
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, role, keys='', daemon_keys='', ends=0, url=None, detector=None, **how):
        return self.daemon(self.sections(role, keys, url, detector), keys=f'threads = 1\nloops = 2\nmax_ahead = off\n{daemon_keys}', ends=ends, **how)

    def sections(self, role, keys='', url=None, detector=None):
        return (detector or harness.section('all', '*', DETECTOR)) + f'[cluster]\nurl = {url or self.broker.url}\nname = {self.name}\npartitions = {self.partitions}\nrole = {role}\n{self.engine}{keys}'

    def scorer(self, place, keys='', durability='journal', daemon_keys='', **how):
        return self.start('scorer', keys, f'durability = {durability}\nstate = {self.folder}/{place}\n{daemon_keys}', **how)

    def of(self, d):
        return d.status()['cluster']

    def asked(self, d, path):
        """The answer of a machine's API: its status, and the object."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{d.port['http tcp']}/api/v1/{path}", timeout=harness.WAIT) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            with e:
                return e.code, json.load(e)

    def everywhere(self, nodes, sensor):
        """Every machine answers requests about every sensor with the data of its scorer, in whole and in parts."""
        machines = [self.of(d)['machine'] for d in nodes]
        known = [(m, PARTITIONS // 2, False) for m in sorted(machines)]
        until(lambda: all([(m['name'], m['has'], m['away']) for m in self.asked(d, 'cluster')[1]['machines']] == known for d in nodes), 'the machines to know of each other')
        self.assertEqual(self.asked(nodes[0], 'cluster')[1]['unscored'], [])
        (code, there), (at_owner, its) = (self.asked(d, f'sensors/{sensor}') for d in nodes)
        self.assertEqual((code, at_owner, there['machine'], there['partition']), (200, 200, machines[1], rabbit.partition(sensor, PARTITIONS)))
        self.assertEqual({**there, 'time': 0}, {**its, 'time': 0})
        self.assertTrue(there['points'] and its['series'][0]['scores'])
        self.assertEqual(self.asked(nodes[0], f'sensors/{sensor}-not'), (404, {'type': 'about:blank', 'status': 404, 'detail': 'no sensor has this name'}))
        for d in nodes:
            for query in 'limit=2', 'limit=3&sort=score', 'limit=3&sort=change&state=ok':
                rows, after = [], ''
                while after is not None:
                    code, part = self.asked(d, f'sensors?{query}&after={after}')
                    self.assertEqual((code, part['count'], part['away']), (200, len(self.values), []))
                    rows += part['sensors']
                    after = part.get('next')
                self.assertEqual(sorted(r['name'] for r in rows), sorted(self.values), query)
                self.assertEqual({r['machine'] for r in rows}, set(machines))
                if 'score' in query:
                    self.assertEqual([r['score'] for r in rows], sorted((r['score'] for r in rows), reverse=True))
        self.assertEqual(self.asked(nodes[0], 'sensors?after=x')[0], 400)

        out = subprocess.run([harness.HANKEL, 'sensors', '--json', '--from', self.address(nodes[0])], check=False, capture_output=True, text=True, timeout=harness.WAIT)
        rows = [json.loads(line) for line in out.stdout.splitlines()]
        self.assertEqual((out.returncode, [r['name'] for r in rows], {r['machine'] for r in rows}), (0, sorted(self.values), set(machines)), out)

    def who_has_what(self, *daemons):
        """`hankel cluster status` lists each partition once. Any machine knows all of them; without letters, it lists the partitions that none of the
        asked machines has."""
        def ask(*some):
            out = subprocess.run([harness.HANKEL, 'cluster', 'status', '--from', ','.join(self.address(d) for d in some)], check=False, capture_output=True, text=True, timeout=harness.WAIT)
            return out, re.findall(r'^(\d+) +(\S+) +(\d+) +\S+ +(\d+) +(\d+) s$', out.stdout, re.M)

        def caught_up():
            rows = ask(*daemons)[1]
            each_once = [int(r[0]) for r in rows] == list(range(PARTITIONS))
            by_all = {r[1] for r in rows} == {self.address(d) for d in daemons[1:]}
            return each_once and by_all and all(int(r[2]) > 1 and int(r[3]) > 0 and r[4] == '0' for r in rows)  # each has moved
        until(caught_up, 'each partition to have a scorer, and no lag', rabbit.START)
        if self.letters:
            names = [self.of(d)['machine'] for d in daemons[1:]]
            until(lambda: {(int(r[0]), r[1] in names) for r in ask(daemons[0])[1]} == {(i, True) for i in range(PARTITIONS)}, 'the gateway to know all', rabbit.START)
        else:
            out = ask(*daemons[:-1])[0]
            self.assertEqual((out.returncode, len(re.search('by none of these machines:(.*)', out.stdout)[1].split())), (3, PARTITIONS // 2), out)

    def address(self, d):
        return f"127.0.0.1:{d.port['binary tcp']}"

    def asked_in_vain(self, gateway, scorer):
        """What `hankel cluster` cannot do it refuses in words, and with an exit code that a script can use."""
        machine, at = self.address(scorer), self.address(gateway)
        for code, words, *what in ((1, 'is a gateway, and scores no partitions', 'drain', at), (1, 'is a gateway', 'move', '0', at),
                                   (1, f'there is no partition {PARTITIONS}: they are counted from 0 on', 'move', str(PARTITIONS), machine),
                                   (1, 'is scored here already', 'move', str(self.of(scorer)['held'][0]['partition']), machine),
                                   (2, 'partition pump: want a whole number', 'move', 'pump', machine), (2, 'drain wants one MACHINE', 'drain'), (2, '--json goes with status', 'drain', '--json', machine),
                                   (2, '--from names no machine', 'status', '--from', ','), (2, '--from goes with status', 'drain', '--from', machine, machine), (1, 'is hankeld running', 'drain', f'127.0.0.1:{harness.free_port()}')):
            out = subprocess.run([harness.HANKEL, 'cluster', *what], check=False, capture_output=True, text=True, timeout=rabbit.START)
            self.assertEqual(out.returncode, code, out)
            self.assertIn(words, out.stdout + out.stderr)
        names = [at, '127.0.0.1:1', *sorted(m['machine'] for m in self.of(gateway)['others'])]

        def told():
            out = subprocess.run([harness.HANKEL, 'cluster', 'status', '--json', '--from', f'{at},127.0.0.1:1'], check=False, capture_output=True, text=True, timeout=rabbit.START)
            self.assertEqual((out.returncode, [m['name'] for m in json.loads(out.stdout)['machines']]), (3, names), out)
            return json.loads(out.stdout)
        # on a full machine, a scorer may have told nothing for a while: it is away until it does
        known = until(lambda: (t := told())['unscored'] == [] and t['machines'][2]['away'] is False and t, 'the scorers to be known', rabbit.START)
        self.assertEqual([(m['away'], (m['says'] or {}).get('role')) for m in known['machines'][:3]], [(False, 'gateway'), (True, None), (False, 'scorer')])

    def knows_no_scorer(self, gateway):
        """Which partitions are scored cannot be told by a gateway that knows no other machine."""
        out = subprocess.run([harness.HANKEL, 'cluster', 'status', '--json', '--from', self.address(gateway)], check=False, capture_output=True, text=True, timeout=rabbit.START)
        self.assertEqual((out.returncode, len(json.loads(out.stdout)['machines']), json.loads(out.stdout)['unscored']), (0, 1, None), out)
        self.assertIsNone(self.asked(gateway, 'cluster')[1]['unscored'])

    def undrain(self, d):
        with hankeld.Client(self.address(d)) as c:
            self.assertEqual((c.cluster()['draining'], c.drain(undo=True)[0]), (True, True))

    def by_clients(self, d):
        """The clients in Node and Python move partitions, too, and wait until they have moved."""
        moved = self.of(d[1])['held'][0]['partition']
        script = f"import {{ Client }} from '{harness.ROOT}/proto/node/index.js'; const c = await Client.connect({{ address: '{self.address(d[2])}' }});" \
            f"console.log(JSON.stringify([(await c.move({moved})).done, (await c.cluster()).held.map(h => h.partition)])); c.close();"
        if shutil.which('node'):
            out = subprocess.run(['node', '--input-type=module', '-e', script], check=False, capture_output=True, text=True, timeout=2 * rabbit.START)
            done, held = json.loads(out.stdout or '[false, []]')
            self.assertTrue(done and moved in held, out)
        with hankeld.Client(self.address(d[0])) as c:
            other = next(h['partition'] for x in d[1:] for h in self.of(x)['held'])
            self.assertTrue(c.move(other)[0])
            self.assertIn(other, [h['partition'] for h in c.cluster()['held']])
            self.assertEqual(c.drain(wait=rabbit.START)[0], True)
            self.assertEqual(c.cluster()['partitions'], 0)
            self.assertTrue(c.drain(undo=True)[0])
        until(lambda: sorted(self.of(x)['partitions'] for x in d) == [1, 1, 2], 'even shares in the end', rabbit.START)

    def fed(self):
        """Starts a gateway and a scorer, and a feed of which 600 points are acknowledged."""
        d = [self.start('gateway'), self.scorer('a')]
        self.connected(*d)
        f = Feeder('f', self.values)
        f.connect(d[0])
        f.send(600)
        f.wait(600)
        return d, f

    def one_message_of_a_log_at_a_time(self):
        """While the broker confirms nothing, no second message of a log is on its way, because the log could get it without the first."""
        gateway = self.start('gateway', web.LISTENER)
        self.connected(gateway)
        self.knows_no_scorer(gateway)
        with gateway.client() as c:
            handles = c.register(*(f'p{i}' for i in range(40)))
            c.send(harness.points(handles, [START] * 40, [0.5] * 40))
            until(lambda: gateway.status()['points']['relayed'] == 40, 'the logs to be in use')
            self.broker.send(signal.SIGSTOP)
            try:
                for k in range(1, 20):
                    c.send(harness.points(handles, [START + k * SECOND] * 40, [0.5] * 40))
                    c.ping()
                until(lambda: self.of(gateway)['waiting'] >= PARTITIONS, 'a message of each log to be sent')
                self.assertEqual((gateway.status()['points']['in'], self.of(gateway)['waiting']), (800, PARTITIONS))
            finally:
                self.broker.send(signal.SIGCONT)
            until(lambda: gateway.status()['points']['relayed'] == 800, 'all of it to be published', rabbit.START)

    def connected(self, *daemons):
        for d in daemons:
            until(lambda: self.of(d)['state'] == 'connected', 'the broker to be connected', rabbit.START)

    def heard(self, *scorers):
        """Waits until the scorers know that other machines have subscribers for their scores."""
        until(lambda: all(self.of(d)['scores']['listeners'] > 0 for d in scorers), 'the scorers to share their scores', rabbit.START)

    def once(self, c):
        """The results that a subscriber got; asserts that each came once, whichever machine computed it."""
        seen = {(s, t): (score, state) for s, t, _, score, state in c.results}
        self.assertEqual(len(seen), len(c.results))
        return seen

    def scored(self, d, n):
        """Waits until a machine has processed that many points, each once."""
        def dealt_with():
            p = d.status()['points']
            return p['scored'] + p['unscored'] >= n and p['pending'] == 0
        until(dealt_with, f'{n} points to be scored', rabbit.START)
        p = self.balanced(d.status())
        self.assertEqual((p['scored'] + p['unscored'], p['late'], p['rejected']), (n, 0, 0), p)

    def alerts(self, d):
        """The events that a machine has logged; asserts that none came twice."""
        out = {}
        for name, number, kind, at, _, instant, score, _, _ in d.events():
            self.assertNotIn((f'{name}:{number}', kind), out)
            out[f'{name}:{number}', kind] = (at, instant, score)
        return out

    def last_scores(self, d):
        out = subprocess.run([harness.HANKEL, 'sensors', '--from', f"127.0.0.1:{d.port['binary tcp']}", '--json'], check=False, capture_output=True, text=True, timeout=harness.WAIT).stdout
        rows = [json.loads(line) for line in out.splitlines()]
        return {r['name']: harness.single(r['score']) if r['score'] is not None else None for r in rows if r.get('time') == START + (POINTS - 1) * SECOND}
