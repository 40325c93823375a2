"""Points from brokers of MQTT, [mqtt NAME], with mosquitto as the broker."""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest
import urllib.request

import broker
import certificates
import harness
from harness import SECOND, until

DETECTOR = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'
NOW = 1_700_000_000 * SECOND


def mqtt(port, keys, name='plant'):
    return f'[mqtt {name}]\nurl = mqtt://127.0.0.1:{port}\n{keys}'


@unittest.skipUnless(broker.THERE, 'there is no mosquitto')
class Mqtt(harness.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)

    def broker(self, keys=''):
        b = broker.Broker(keys)
        self.addCleanup(b.clean)
        return b

    def start(self, b, keys, durability='none', daemon_keys='', **how):
        d = self.daemon(DETECTOR + mqtt(b.port, keys), keys=f'threads = 2\nmax_ahead = off\ndurability = {durability}\nstate = {self.folder}/there\n{daemon_keys}', **how)
        until(lambda: self.of(d)['state'] == 'connected', 'the broker to be connected')
        return d

    def of(self, d, n=0):
        return d.status()['mqtt'][n]

    def names(self, d):
        """The daemon's sensors, with their last values."""
        out = subprocess.run([harness.HANKEL, 'sensors', '--from', f"127.0.0.1:{d.port['binary tcp']}", '--json'], check=True, capture_output=True, text=True, timeout=harness.WAIT).stdout
        return {s['name']: s.get('value') for line in out.splitlines() for s in [json.loads(line)]}

    def taken(self, d, messages):
        until(lambda: self.of(d)['messages'] >= messages, f'{messages} messages')
        return self.of(d)


class TestPayloads(Mqtt):
    def test_numbers_and_names_of_levels(self):
        b = self.broker()
        d = self.start(b, 'topics = plant/{line}/+/{what}, cell/{line}/{what}\nsensor = {line},unit={2} {what}\n')
        b.publish('plant/a/x/temperature', '21.5', ' 22 ', 'true', 'OFF', '5e-1')
        b.publish('cell/b c/level', '-7')
        self.taken(d, 6)
        self.assertEqual(self.names(d), {'a,unit=a temperature': 0.5, 'b\\ c,unit=b\\ c level': -7})
        self.assertEqual((self.of(d)['points'], self.of(d)['bad']), (6, 0))

    def test_the_topic_is_the_name(self):
        """The default name is that of the level called sensor, if every topic has one."""
        b = self.broker()
        d = self.start(b, 'topics = plant/#\n')
        b.publish('plant/a/temperature', 1)
        self.taken(d, 1)
        self.assertEqual(list(self.names(d)), ['plant/a/temperature'])
        e = self.start(b, 'topics = plant/{sensor}/+\nclient_id = another\n')
        b.publish('plant/a/temperature', 1)
        self.taken(e, 1)
        self.assertEqual(list(self.names(e)), ['a'])

    def test_json(self):
        b = self.broker()
        d = self.start(b, 'topics = json/{sensor}\ntime = at\n')
        b.publish('json/a', json.dumps({'at': NOW // SECOND, 'temperature': 21.5, 'name': 'x', 'nested': {'deep': [1, {'on': True}], 'value': None}, 'value': 4}))
        self.taken(d, 1)
        self.assertEqual(self.names(d), {'a at': NOW // SECOND // 128 * 128, 'a temperature': 21.5, 'a nested.deep.0': 1, 'a nested.deep.1.on': 1, 'a': 4})

    def test_keys_and_times(self):
        """Times in each unit, and as text; the result has the time that was taken."""
        b = self.broker()
        d = self.start(b, 'topics = json/{sensor}\nvalues = v.*, w\ntime = meta.at\n')
        with d.client() as c:
            c.subscribe()
            for k, at in enumerate((NOW // SECOND, (NOW + SECOND) // 10**6, (NOW + 2 * SECOND) // 1000, NOW + 3 * SECOND, '2023-11-14T22:13:24.5Z', NOW / SECOND + 5.25)):
                b.publish('json/a', json.dumps({'meta': {'at': at}, 'v': {'x': k}, 'w': 'text', 'u': 9}))
            c.wait_results(6)
            self.assertEqual([r[0] for r in c.results], ['a v.x'] * 6)
            for got, wanted in zip((r[1] for r in c.results), (0, 1, 2, 3, 4.5, 5.25)):
                self.assertAlmostEqual((got - NOW) / SECOND, wanted, places=6)

    def test_garbage_is_told_and_acknowledged(self):
        b = self.broker()
        d = self.start(b, 'topics = #\ntime = at\nvalues = v\n')
        bad = [b'garbage', b'{"at":1,"v":', b'NaN', b'\x00\xff\xfe', b'{"v":1}', b'{"at":"yesterday","v":1}', b'{"at":1700000000,"w":1}', b'[' * 5000, b'1 2', b'{"at":1700000000,"v":1} x', b' ']
        for payload in bad:
            b.publish_bytes('x/bad', payload)
        b.publish('x/empty', options=('-n',))
        b.publish('x/' + 600 * 'y', '{"at":1700000000,"v":2}')
        b.publish('x/good', '{"at":1700000000,"v":2}')
        self.taken(d, len(bad) + 3)
        look = self.of(d)
        self.assertEqual((look['bad'], look['points'], look['refused'], look['state']), (len(bad) + 1, 1, 1, 'connected'))
        self.assertEqual(self.names(d), {'x/good v': 2})
        status = subprocess.run([harness.HANKEL, 'status', '--from', f'127.0.0.1:{d.port["binary tcp"]}'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertRegex(status.stdout, rf'refused .*{len(bad) + 1} messages of broker \S+ not understood')
        self.assertTrue(any('topic x/bad: it is not a number, true, false, on, off or JSON: "garbage"' in line for line in d.log), d.log)

    def test_what_the_broker_kept(self):
        """A retained message is an old one; without a time in it its age is unknown."""
        b = self.broker()
        b.publish('k/plain', 1, options=('-r',))
        b.publish('k/timed', '{"at":1700000000,"v":2}', options=('-r',))
        d = self.start(b, 'topics = k/#\ntime = at\nvalues = v\n')
        self.taken(d, 2)
        self.assertEqual((self.of(d)['retained'], self.of(d)['points']), (1, 1))
        self.assertEqual(self.names(d), {'k/timed v': 2})


def varint(x):
    out = b''
    while x > 127:
        out, x = out + bytes([x & 127 | 128]), x >> 7
    return out + bytes([x])


def field(number, value):
    """A field of a protobuf: bytes and text, whole numbers (varint), floats (64 bits)."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack('<d', value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def sparkplug(seq, *metrics, time=NOW // 10**6):
    """A payload of Sparkplug B; a metric is {field's number: value}."""
    return field(1, time) + b''.join(field(2, b''.join(field(k, v) for k, v in m.items())) for m in metrics) + (field(3, seq) if seq is not None else b'')


class TestSparkplug(Mqtt):
    NAME, ALIAS, TIME, TYPE, NULL, INT, LONG, DOUBLE, BOOL, STRING = 1, 2, 3, 4, 7, 10, 11, 13, 14, 15

    def test_births_aliases_and_deaths(self):
        """The births of a node and of a device name the metrics of data messages; metrics that are not numbers are skipped."""
        b = self.broker()
        d = self.start(b, 'topics = spBv1.0/#\n')
        asked = broker.Listener(b, 'spBv1.0/g/NCMD/#', form='%x')
        self.addCleanup(asked.close)
        send = lambda kind, rest, payload: b.publish_bytes(f'spBv1.0/g/{kind}/{rest}', payload)
        send('NBIRTH', 'n', sparkplug(0, {self.NAME: 'bdSeq', self.LONG: 7}, {self.NAME: 'Node Control/Rebirth', self.TYPE: 11, self.BOOL: 0}, {self.NAME: 'Motor Temp', self.ALIAS: 1, self.TYPE: 10, self.DOUBLE: 20.5},
                                         {self.NAME: 'id', self.ALIAS: 2, self.TYPE: 12, self.STRING: 'x'}))
        send('DBIRTH', 'n/d', sparkplug(1, {self.NAME: 'level', self.ALIAS: 3, self.TYPE: 2, self.INT: 0xfff6}, {self.NAME: 'on', self.ALIAS: 4, self.TYPE: 11, self.BOOL: 1}))
        send('NDATA', 'n', sparkplug(2, {self.ALIAS: 1, self.DOUBLE: 21.5}, time=NOW // 10**6 + 1000))
        send('DDATA', 'n/d', sparkplug(3, {self.ALIAS: 3, self.TIME: NOW // 10**6 + 2000, self.INT: 0xfff5}, {self.ALIAS: 4, self.NULL: 1}, time=NOW // 10**6 + 1000))
        self.taken(d, 4)
        self.assertEqual(self.names(d), {'g/n Motor\\ Temp': 21.5, 'g/n/d level': -11, 'g/n/d on': 1})
        self.assertEqual((self.of(d)['points'], self.of(d)['bad'], asked.got), (5, 0, []))

    def test_a_rebirth_is_asked_for(self):
        """A rebirth is requested of a node whose birth was not seen, or of which a message is missing, at most every ten seconds."""
        b = self.broker()
        asked = broker.Listener(b, 'spBv1.0/g/NCMD/#', form='%x')
        self.addCleanup(asked.close)
        d = self.start(b, 'topics = spBv1.0/#\n')
        send = lambda node, kind, payload: b.publish_bytes(f'spBv1.0/g/{kind}/{node}', payload)
        for _ in range(3):
            send('unborn', 'NDATA', sparkplug(5, {self.ALIAS: 1, self.DOUBLE: 1.5}))
        until(lambda: [t for t, _, _ in asked.got] == ['spBv1.0/g/NCMD/unborn'], 'its birth to be asked for, once')
        self.assertIn('Node Control/Rebirth'.encode().hex(), asked.got[0][1].lower())
        send('lossy', 'NBIRTH', sparkplug(0, {self.NAME: 'v', self.ALIAS: 1, self.TYPE: 10, self.DOUBLE: 1.5}))
        send('lossy', 'NDATA', sparkplug(1, {self.ALIAS: 1, self.DOUBLE: 2.5}, time=NOW // 10**6 + 1000))
        send('lossy', 'NDATA', sparkplug(3, {self.ALIAS: 1, self.DOUBLE: 3.5}, time=NOW // 10**6 + 2000))
        until(lambda: [t for t, _, _ in asked.got][1:] == ['spBv1.0/g/NCMD/lossy'], 'the birth to be asked for again')
        self.assertEqual(self.names(d), {'g/lossy v': 3.5}) # what has come counts
        send('unborn', 'NBIRTH', sparkplug(0, {self.NAME: 'v', self.ALIAS: 1, self.TYPE: 10, self.DOUBLE: 4.5}))
        send('unborn', 'NDEATH', sparkplug(None, {self.NAME: 'bdSeq', self.LONG: 1}))
        send('garbage', 'NDATA', b'\xff\xff\xff')
        until(lambda: self.names(d).get('g/unborn v') == 4.5 and self.of(d)['bad'] == 4, 'the birth, and what is none')


class TestConnection(Mqtt):
    def test_tls_and_a_certificate_of_ours(self):
        """Both ends authenticate; the daemon refuses a broker whose certificate another authority signed."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        ca, other = certificates.Authority(folder.name, 'ca'), certificates.Authority(folder.name, 'other')
        cert, key = ca.sign('broker', names='IP:127.0.0.1')
        ours, our_key = ca.sign('hankeld')
        b = self.broker(f'cafile {ca.certificate}\ncertfile {cert}\nkeyfile {key}\nrequire_certificate true\n')
        keys = f'topics = a\ncertificate = {ours}\nkey = {our_key}\n'
        section = f'[mqtt plant]\nurl = mqtts://127.0.0.1:{b.port}\n'
        d = self.daemon(DETECTOR + section + keys + f'ca = {ca.certificate}\n')
        until(lambda: self.of(d)['state'] == 'connected', 'the broker to be connected')
        subprocess.run(['mosquitto_pub', '-h', '127.0.0.1', '-p', str(b.port), '--cafile', ca.certificate, '--cert', ours, '--key', our_key, '-q', '1', '-t', 'a', '-m', '7'], check=True, timeout=harness.WAIT)
        self.taken(d, 1)
        self.assertEqual(self.names(d), {'a': 7})
        e = self.daemon(DETECTOR + section + keys + f'client_id = e\nca = {other.certificate}\n')
        until(lambda: self.of(e)['state'] == 'failing', 'the certificate to be refused')
        self.assertTrue(any('cannot be reached' in line for line in e.log), e.log)
        for client, authority, state in (('f', ca, 'connected'), ('g', other, 'failing')):  # the system's authorities, which the environment sets for OpenSSL
            f = self.daemon(DETECTOR + section + keys + f'client_id = {client}\n', environment={'SSL_CERT_FILE': authority.certificate, 'SSL_CERT_DIR': folder.name + '/none'})
            until(lambda: self.of(f)['state'] == state, f'it to be {state}')  # pylint: disable=cell-var-from-loop
        d.configure(DETECTOR + section + 'topics = a\nca = /nowhere\n')
        with d.client() as c:
            self.assertTrue(c.reload()[0])
        until(lambda: any('cannot connect' in line for line in d.log), 'the file to be missed')

    def test_password_and_version(self):
        with tempfile.NamedTemporaryFile('w') as users, tempfile.NamedTemporaryFile('w') as password:
            subprocess.run(['mosquitto_passwd', '-b', users.name, 'hankeld', 'secret'], check=True, capture_output=True, timeout=harness.WAIT)
            os.chmod(users.name, 0o644)
            b = self.broker(f'allow_anonymous false\npassword_file {users.name}\n')
            password.write('wrong\n')
            password.flush()
            d = self.daemon(DETECTOR + mqtt(b.port, f'topics = a\nversion = 3.1.1\nuser = hankeld\npassword_file = {password.name}\n'))
            until(lambda: any('Connection Refused: not authorised' in line for line in d.log), 'the refusal')
            until(lambda: self.of(d)['state'] == 'failing', 'it to wait for another attempt')
            password.seek(0)
            password.write('secret\n')
            password.flush()
            until(lambda: self.of(d)['state'] == 'connected', 'the password to be read again')

    def test_two_with_one_client_id(self):
        b = self.broker()
        d = self.start(b, 'topics = a\nclient_id = same\n')
        e = self.daemon(DETECTOR + mqtt(b.port, 'topics = a\nclient_id = same\n'))
        # mosquitto closes the older connection, and does not say why
        until(lambda: any('has another client the client_id same?' in line for line in d.log + e.log), 'it to be said')

    def test_broker_that_never_answers(self):
        """The daemon exits at once, whatever state its connection is in."""
        with harness.socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            s.listen()
            d = self.daemon(DETECTOR + mqtt(s.getsockname()[1], 'topics = a\n'))
            s.accept()
            self.assertEqual(d.stop(), 0)

    def test_reload(self):
        """Reloads add and remove topics and brokers."""
        b = self.broker()
        d = self.start(b, 'topics = a/#\n')
        b.publish('a/1', 1)
        self.taken(d, 1)
        d.configure(DETECTOR + mqtt(b.port, 'topics = b/#\n') + mqtt(b.port, 'topics = c/#\n', 'second'))
        with d.client() as c:
            taken, said = c.reload()
            self.assertTrue(taken, said)
            self.assertIn('[mqtt plant] is changed', said)
            self.assertIn('[mqtt second] is new', said)
        until(lambda: [m['state'] for m in d.status()['mqtt']] == ['connected'] * 2 and self.of(d)['connected'] == 2, 'both to be connected')
        b.publish('b/1', 2)
        b.publish('c/1', 3)
        until(lambda: self.names(d) == {'a/1': 1, 'b/1': 2, 'c/1': 3}, 'points by both')
        d.configure(DETECTOR)
        with d.client() as c:
            self.assertIn('[mqtt plant] was removed', c.reload()[1])
        until(lambda: d.status()['mqtt'] == [], 'none to be left')


class TestNothingLost(Mqtt):
    JOURNAL = {'durability': 'journal'}
    # Each message has its own key, which makes its own sensor: a lost message is a missing sensor.
    KEYS = 'topics = s/a\ntime = at\nvalues = k.*\n'

    def publish(self, b, first, n):
        b.publish('s/a', *(json.dumps({'at': NOW // SECOND + i, 'k': {i: i}}) for i in range(first, first + n)))

    def all_there(self, d, n):
        until(lambda: d.status()['sensors']['count'] == n and d.status()['points']['pending'] == 0, f'{n} sensors')

    def kill(self, d):
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()

    def test_kills_of_the_daemon_and_restarts_of_the_broker(self):
        seed = int.from_bytes(os.urandom(4), 'little')
        rng, b = random.Random(seed), self.broker()
        d = self.start(b, self.KEYS, ends=-signal.SIGKILL, **self.JOURNAL)
        sent, rounds = 0, 4 if harness.SANITIZED else 10
        with self.subTest(seed=seed):
            for k in range(rounds):
                n = rng.randint(100, 1000)
                self.publish(b, sent, n)
                sent += n
                until(lambda: self.of(d)['messages'] > 0, 'something to have come')
                if rng.random() < 0.5:
                    b.stop()
                    b.start()
                    until(lambda: self.of(d)['state'] == 'connected', 'the broker to be connected again')
                if rng.random() < 0.7:
                    self.kill(d)
                    d = self.start(b, self.KEYS, ends=-signal.SIGKILL, **self.JOURNAL)
            self.kill(d)
            d = self.start(b, self.KEYS, **self.JOURNAL)
            self.all_there(d, sent)

    @unittest.skipUnless('FAILING_DISK_LIBRARY' in os.environ, 'a preloaded library does not go with a sanitizer')
    def test_acknowledged_behind_the_commit(self):
        """With a disk that cannot be written no message is acknowledged: after a SIGKILL all of them come again."""
        orders = os.path.join(self.folder, 'orders')
        b = self.broker()
        environment = {'LD_PRELOAD': os.environ['FAILING_DISK_LIBRARY'], 'FAILING_DISK': orders}
        d = self.start(b, self.KEYS, ends=-signal.SIGKILL, environment=environment, daemon_keys='journal_wait = 600s\n', **self.JOURNAL)
        self.publish(b, 0, 1)
        self.taken(d, 1)
        with open(orders, 'w', encoding='utf-8') as f:
            f.write('sync 5')
        self.publish(b, 1, 20)
        until(lambda: d.status()['durability']['state'] == 'failing', 'the disk to fail')
        self.assertEqual(self.of(d)['messages'], 1)
        self.kill(d)
        os.remove(orders)
        d = self.start(b, self.KEYS, **self.JOURNAL)
        self.taken(d, 20)
        self.all_there(d, 21)

    @unittest.skipUnless('FAILING_DISK_LIBRARY' in os.environ, 'a preloaded library does not go with a sanitizer')
    def test_held_while_durability_is_degraded(self):
        """Points are still scored, but their messages are not acknowledged until a snapshot has them."""
        orders = os.path.join(self.folder, 'orders')
        b = self.broker()
        environment = {'LD_PRELOAD': os.environ['FAILING_DISK_LIBRARY'], 'FAILING_DISK': orders}
        d = self.start(b, self.KEYS, environment=environment, daemon_keys='journal_wait = 100ms\nsnapshot = 1h\n', **self.JOURNAL)
        with open(orders, 'w', encoding='utf-8') as f:
            f.write('dead 5')
        self.publish(b, 0, 1)
        until(lambda: d.status()['durability']['state'] == 'degraded', 'durability to be given up')
        until(lambda: self.of(d)['state'] == 'held', 'the acknowledgement to be held back')
        self.assertEqual(self.of(d)['waiting'], 1)
        self.assertEqual(d.status()['points']['in'], 1)
        os.remove(orders)
        until(lambda: self.of(d)['state'] == 'connected', 'it to be let go')
        self.assertEqual(self.of(d)['waiting'], 0)
        self.assertEqual(d.status()['durability']['state'], 'ok')

    def test_an_orderly_restart_repeats_nothing(self):
        """Messages that arrived are acknowledged before the daemon exits."""
        b = self.broker()
        d = self.start(b, self.KEYS, **self.JOURNAL)
        self.publish(b, 0, 500)
        until(lambda: self.of(d)['messages'] > 0, 'something to have come')
        self.assertEqual(d.stop(), 0)
        d = self.start(b, self.KEYS, **self.JOURNAL)
        self.all_there(d, 500)
        self.assertEqual(d.status()['points']['late'], 0)


class TestMetrics(Mqtt):
    def metrics(self, d):
        """Metrics of brokers by name, without the prefix hankel_mqtt_."""
        with urllib.request.urlopen(f'http://127.0.0.1:{d.port["http tcp"]}/metrics', timeout=harness.WAIT) as answer:
            lines = answer.read().decode().splitlines()
        return {name: int(value) for name, value in (line.removeprefix('hankel_mqtt_').rsplit(' ', 1) for line in lines if line.startswith('hankel_mqtt_'))}

    def test_what_comes_and_goes(self):
        """The same as in the status, while the broker is there and when it is gone."""
        b = self.broker()
        d = self.start(b, 'topics = s/#\ntime = at\nvalues = v\npublish = scores\n[listen web]\nprotocol = http\naddress = 127.0.0.1:0\n')
        until(lambda: all(look['state'] == 'connected' for look in d.status()['mqtt']), 'both ways')
        point = '{{"at":{},"v":{}}}'.format
        b.publish('s/a', *(point(NOW // SECOND + k, k * k % 7) for k in range(99)), 'garbage')
        b.publish('s/' + 600 * 'y', point(NOW // SECOND, 1))
        self.taken(d, 101)
        until(lambda: self.of(d, 1)['messages'] > 0 and self.of(d, 1)['waiting'] == 0, 'scores')
        got = until(lambda: (m := self.metrics(d))['waiting{broker="plant",way="in"}'] == 0 and m, 'acknowledgements')
        self.assertEqual((got['up{broker="plant",way="in"}'], got['up{broker="plant",way="out"}']), (1, 1))
        looks = {look['way']: look for look in d.status()['mqtt']}
        for way, keys in ('in', ('messages', 'points', 'bad', 'refused', 'retained', 'unmatched', 'connected')), ('out', ('messages', 'lost', 'connected')):
            self.assertEqual([got[f'{way}_{key}_total{{broker="plant"}}'] for key in keys], [looks[way][key] for key in keys])
        self.assertEqual([looks['in'][key] for key in ('messages', 'points', 'bad', 'refused', 'connected')], [101, 99, 1, 1, 1])
        self.assertEqual(len(got), 4 + 7 + 3)
        b.stop()
        until(lambda: self.metrics(d)['up{broker="plant",way="in"}'] == 0 == self.metrics(d)['up{broker="plant",way="out"}'], 'the broker to be missed')


if __name__ == '__main__':
    harness.main()
