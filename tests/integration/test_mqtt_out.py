"""Results to brokers of MQTT, [mqtt NAME] with `publish`, with mosquitto as the broker."""
import json
import os
import random
import shutil
import signal
import tempfile
import unittest

import broker
import harness
from harness import SECOND, START, until

DETECTOR = '[detector all]\nmatch = *\nwindow = 8\nalert = 0.5\n'


@unittest.skipUnless(broker.THERE, 'there is no mosquitto')
class TestOut(harness.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.now = 0

    def broker(self):
        b = broker.Broker()
        self.addCleanup(b.clean)
        return b

    def listen(self, b, *topics):
        listener = broker.Listener(b, *topics)
        self.addCleanup(listener.close)
        return listener

    def start(self, b, keys, durability='journal', **how):
        d = self.daemon(f'{DETECTOR}[mqtt plant]\nurl = mqtt://127.0.0.1:{b.port}\n{keys}', keys=f'threads = 2\nmax_ahead = off\ndurability = {durability}\nstate = {self.folder}/there\n', **how)
        until(lambda: self.of(d)['state'] == 'connected', 'the broker to be connected')
        return d

    def of(self, d):
        return next(m for m in d.status()['mqtt'] if m['way'] == 'out')

    def feed(self, d, points, names):
        """A square wave; each of its edges is an alert."""
        with d.client() as c:
            handles = c.register(*names)
            for t in range(self.now, self.now + points):
                noise = random.Random(t)
                c.send(harness.points(handles, [START + t * SECOND] * len(names), [(t // 40 % 2) * 50 + noise.gauss(0, 0.1) for _ in names]))
            self.now += points
            until(lambda: c.status()['points']['pending'] == 0, 'scores')
            until(lambda: c.status()['durability'].get('events_shown') == c.status()['durability'].get('events_last'), 'the log')

    def logged(self, d):
        """(sensor, kind) of each event, in order."""
        return [(e[0], e[2]) for e in d.events()]

    def standing(self, d):
        return {a['sensor'] for a in d.status()['alerts']['first']}

    @staticmethod
    def told(listener, prefix='hankeld/event/'):
        return [(json.loads(payload)['sensor'], json.loads(payload)['event']) for topic, payload, _ in listener.got if topic.startswith(prefix)]

    def states(self, b):
        """The retained states that a new client gets."""
        fresh = self.listen(b, 'hankeld/state/#')
        return {json.loads(payload)['sensor']: json.loads(payload) for _, payload, retained in fresh.got if retained}

    def test_events_states_and_status(self):
        b = self.broker()
        listener = self.listen(b, 'hankeld/#')
        d = self.start(b, 'publish = events\nmatch = s*\n')
        names = ('s plant/a+b', 's#1', 's%', 'other')
        self.feed(d, 400, names)
        logged = [e for e in self.logged(d) if e[0] != 'other']
        self.assertGreater(len(logged), 12)
        until(lambda: len(self.told(listener)) >= len(logged), 'all events')
        self.assertEqual(self.told(listener), logged)
        self.assertEqual({t for t, _, _ in listener.got if '/event/' in t}, {'hankeld/event/s plant/a%2Bb', 'hankeld/event/s%231', 'hankeld/event/s%25'})
        until(lambda: self.of(d)['waiting'] == 0, 'the broker to have all')
        standing, states = self.standing(d) - {'other'}, self.states(b)
        self.assertEqual({name for name, s in states.items() if s['state'] == 'alert'}, standing)
        self.assertEqual(set(states), {name for name, _ in logged})
        for name in standing:
            self.assertEqual((states[name]['channel'], states[name]['acknowledged'], states[name]['level'] in ('notice', 'warning', 'severe')), ('score', False, True))
        self.assertEqual(listener.of('hankeld/status'), ['online'])
        self.assertEqual(d.stop(), 0)
        until(lambda: listener.of('hankeld/status') == ['online', 'offline'], 'the daemon to say that it ends')

    def test_last_will(self):
        b = self.broker()
        listener = self.listen(b, 'hankeld/status')
        d = self.start(b, 'publish = events\n', ends=-signal.SIGKILL)
        until(lambda: listener.of('hankeld/status') == ['online'], 'the daemon to say that it is there')
        d.process.kill()
        until(lambda: listener.of('hankeld/status') == ['online', 'offline'], 'the broker to say that it is not')

    def test_scores(self):
        b = self.broker()
        listener = self.listen(b, 'h/x/score/#')
        d = self.start(b, 'publish = scores\nprefix = h/x\nmin_score = 0\n', durability='none')
        self.feed(d, 200, ('s0',))
        scored = d.status()['points']['scored']
        until(lambda: len(listener.got) == scored, 'all scores')
        first = json.loads(listener.got[0][1])
        self.assertEqual((first['sensor'], first['state'], listener.got[0][0]), ('s0', 'ok', 'h/x/score/s0'))

    def test_nothing_lost_over_kills_and_restarts(self):
        """Every event comes at least once, whichever program ends; events of a sensor come in order, except for repeated ones."""
        b = self.broker()
        listener = self.listen(b, 'hankeld/event/#')
        rounds = 3 if harness.SANITIZED else 6
        d = self.start(b, 'publish = events\n', ends=-signal.SIGKILL)
        for k in range(rounds):
            self.feed(d, 200, ('s0', 's1', 's2'))
            if k % 2:
                b.stop() # which keeps what it has for the listener
                self.feed(d, 200, ('s0', 's1', 's2'))
                b.start()
            d.process.kill()
            d.process.wait()
            d = self.start(b, 'publish = events\n', ends=-signal.SIGKILL if k < rounds - 1 else 0)
        logged = d.events()
        until(lambda: {json.loads(p)['position'] for _, p, _ in listener.got} >= set(range(1, len(logged) + 1)), 'every event')
        until(lambda: self.of(d)['position'] == len(logged), 'the place to be at the end')
        self.assertEqual(self.of(d)['lost'], 0)

    def test_the_place_is_behind_the_broker(self):
        """Events that a broker was sent and did not answer are published again after a SIGKILL."""
        b = self.broker()
        d = self.start(b, 'publish = events\n', ends=-signal.SIGKILL)
        b.process.send_signal(signal.SIGSTOP)
        self.feed(d, 200, ('s0', 's1'))
        until(lambda: self.of(d)['waiting'] > 0, 'messages to wait for the broker')
        self.assertEqual(self.of(d)['position'], 0)
        d.process.kill()
        d.process.wait()
        b.stop(signal.SIGKILL) # with what had reached its socket
        b.start()
        listener = self.listen(b, 'hankeld/event/#')
        d = self.start(b, 'publish = events\n')
        until(lambda: {json.loads(p)['position'] for _, p, _ in listener.got} == set(range(1, len(d.events()) + 1)), 'every event')

    def test_a_broker_that_lost_everything(self):
        """A broker that lost its state gets the states of all sensors again, but no event that was published before."""
        b = self.broker()
        d = self.start(b, 'publish = events\n')
        self.feed(d, 300, ('s0', 's1'))
        until(lambda: self.of(d)['position'] == len(d.events()), 'all to be published')
        before = self.states(b)
        self.assertEqual(len(before), 2)
        b.stop(signal.SIGKILL)
        for name in os.listdir(b.folder):
            if name.endswith('.db'):
                os.remove(os.path.join(b.folder, name))
        b.start()
        until(lambda: self.states(b) == before, 'the states')
        listener, last = self.listen(b, 'hankeld/event/#'), len(d.events())
        self.feed(d, 200, ('s2',))
        until(lambda: listener.got, 'an event that is new')
        self.assertEqual(min(json.loads(p)['position'] for _, p, _ in listener.got), last + 1)

    def test_home_assistant(self):
        b = self.broker()
        d = self.start(b, 'publish = events\ndiscovery = homeassistant\n')
        self.feed(d, 200, ('s0', 'a#b'))
        until(lambda: self.of(d)['position'] == len(d.events()), 'all to be published')
        found = self.listen(b, 'homeassistant/#', 'hankeld/#')
        configs = {json.loads(p)['name']: json.loads(p) for t, p, _ in found.got if t.startswith('homeassistant/')}
        self.assertEqual(set(configs), {'s0', 'a#b'})
        for name, c in configs.items():
            self.assertEqual(json.loads(found.of(c['state_topic'])[0])['sensor'], name)
            self.assertEqual((c['device_class'], found.of(c['availability_topic'])), ('problem', [c['payload_available']]))
        topics = [t for t, _, _ in found.got if t.startswith('homeassistant/')]
        self.assertRegex(topics[0], r'^homeassistant/binary_sensor/hankeld_plant/[0-9a-f]{16}/config$')

    def test_in_and_out(self):
        """A section with both directions: points come from the broker, and their events are published there."""
        b = self.broker()
        listener = self.listen(b, 'hankeld/event/#')
        d = self.start(b, 'topics = in/{sensor}\ntime = t\nvalues = value\npublish = events\n')
        b.publish('in/a', *(json.dumps({'t': START // SECOND + t, 'value': (t // 40 % 2) * 50 + random.Random(t).gauss(0, 0.1)}) for t in range(400)))
        until(lambda: ('a', 'raised') in self.told(listener), 'an alert')
        self.assertEqual({m['way']: m['state'] for m in d.status()['mqtt']}, {'in': 'connected', 'out': 'connected'})


if __name__ == '__main__':
    harness.main()
