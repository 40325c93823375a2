#!/usr/bin/env python3
"""The examples of proto/examples, conf/ and the manual, unchanged: programs with libhankel, the configuration conf/paging.conf, and
points from an MQTT broker."""
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.request

import harness
from harness import SCORED, UNSCORED
from harness import SECOND, until

EXAMPLES = os.path.join(os.path.dirname(harness.HANKELD), 'proto')


class Examples(harness.Case):
    def start(self, *command, **how):
        process = subprocess.Popen(command, **how)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                self.addCleanup(stream.close)
        return process


class TestPaging(Examples):
    """The steps of README.md with conf/paging.conf, on other ports."""

    def test_as_it_stands(self):
        checked = subprocess.run([harness.HANKELD, '-c', os.path.join(harness.ROOT, 'conf', 'paging.conf'), '--check'], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual((checked.returncode, checked.stderr), (0, ''))
        self.assertIn('listener web: http over tcp on 127.0.0.1:7413\nlistener line: line over tcp on 127.0.0.1:7411\nlistener binary: binary over tcp on 127.0.0.1:7410\n', checked.stdout)

    def test_sensors_of_this_machine_and_a_page(self):
        with open(os.path.join(harness.ROOT, 'conf', 'paging.conf'), encoding='utf-8') as f:
            text = f.read()
        folder = tempfile.TemporaryDirectory(prefix='hankeld-test-')
        self.addCleanup(folder.cleanup)
        for stands, own in (('127.0.0.1:7410', '127.0.0.1:0'), ('127.0.0.1:7411', '127.0.0.1:0'), ('address = 127.0.0.1:7413', 'address = 127.0.0.1:0'), ('/var/tmp/hankeld', folder.name)):
            self.assertEqual(text.count(stands), 1, stands)
            text = text.replace(stands, own)
        keys, listeners = text.split('[daemon]\n', 1)[1].split('[listen web]', 1)
        paging = harness.Daemon('', keys=keys + ('max_sensors = 2000\n' if harness.SANITIZED else ''), listeners='[listen web]' + listeners)
        self.addCleanup(lambda: self.assertEqual(paging.clean(), 0, paging.log[-20:]))
        at = f"127.0.0.1:{paging.port['binary tcp']}"
        self.start(harness.HANKEL, 'feed', '--to', at, '--host', '--prefix', 'here', stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def listed():
            return subprocess.run([harness.HANKEL, 'sensors', '--from', at], capture_output=True, text=True, timeout=harness.WAIT, check=False).stdout

        until(lambda: re.search(r'^warming +[12]/\S+ .* here\.memory\.used$', listed(), re.M), 'a figure of this machine')
        with urllib.request.urlopen(f"http://127.0.0.1:{paging.port['http tcp']}/", timeout=harness.WAIT) as page:
            self.assertIn(b'<title>', page.read())


class TestLibhankel(Examples):
    def test_feed_sends_numbers(self):
        d = self.daemon()
        run = subprocess.run([os.path.join(EXAMPLES, 'example_feed'), 'boiler', f"127.0.0.1:{d.port['binary tcp']}"], input='1\nnothing\n2.5\n3\n' + '4\n' * 100000, capture_output=True,
                             text=True, timeout=harness.WAIT)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertEqual((d.status()['points']['in'], d.status()['sensors']['count']), (100003, 1))

    def test_a_thermal_camera(self):
        d = self.daemon('[detector tiles]\nmatch = oven*/*\nwindow = 8\n[pictures ovens]\nmatch = oven*\n')
        where = f"127.0.0.1:{d.port['binary tcp']}"
        with d.client() as c:
            c.subscribe(SCORED | UNSCORED | 16, 'oven*')
            run = subprocess.run([os.path.join(EXAMPLES, 'example_picture'), where, 'oven 3', '5'], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            c.drain(0.3)
        self.assertEqual((len(c.results), d.status()['sensors']['count']), (5 * 12, 12))
        newest = max(t for _, t, *_ in c.results)
        self.assertEqual([n for n, t, v, *_ in c.results if v > 2], ['oven 3/1,1/max'])  # kelvins over its surroundings: the joint
        self.assertEqual([t for _, t, v, *_ in c.results if v > 2], [newest])
        run = subprocess.run([os.path.join(EXAMPLES, 'example_picture'), where, 'door', '1'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual((run.returncode, run.stderr), (0, 'the daemon says: bad picture (PICTURE): picture of door: no [pictures NAME] section of the configuration matches it (error 17)\n'))

    def test_feed_says_what_is_wrong(self):
        run = subprocess.run([os.path.join(EXAMPLES, 'example_feed'), 'a\tb', f"127.0.0.1:{self.daemon().port['binary tcp']}"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=harness.WAIT)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, '^feed: .*control character')

    def test_alerts_prints_those_that_may_call_somebody(self):
        """Prints alerts of sensors that match, and none of a sensor that has not changed."""
        d = self.daemon('[detector all]\nmatch = *\nalgorithm = novelty\nresident = 1000\ninterval = 1s\n')
        alerts = self.start(os.path.join(EXAMPLES, 'example_alerts'), 'line*', f"127.0.0.1:{d.port['binary tcp']}", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(alerts.stderr.readline(), 'alerts: subscribed\n')
        begin = time.time_ns() // SECOND * SECOND - 4000 * SECOND
        rng = random.Random(3)
        noise = [rng.gauss(0, 1) for _ in range(4000)]
        with d.client() as c:
            handles = c.register('line quiet', 'line 7', 'other')
            for k in range(4000):
                far = 500 if k >= 3990 else 0
                c.send(harness.points(handles, [begin + k * SECOND] * 3, [noise[k], noise[k] + far, noise[k] + far]))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
            self.assertEqual(c.status()['events']['raised'] >= 2, True)
        line = alerts.stdout.readline()
        self.assertRegex(line, r'^line 7:\d+ is (warning|severe): \S+ -> \S+\n$')
        self.assertTrue(math.isfinite(float(line.split()[-1])))
        d.stop()
        alerts.kill()
        self.assertNotIn('other', alerts.stdout.read())


@unittest.skipUnless(shutil.which('mosquitto') and shutil.which('mosquitto_sub') and shutil.which('nc'), 'there is no mosquitto, or no nc')
class TestMqtt(Examples):
    def test_the_command_of_the_manual(self):
        with open(os.path.join(harness.ROOT, 'conf', 'man', 'hankeld.8.scd'), encoding='utf-8') as f:
            command = re.search(r'^\t(mosquitto_sub .* \| nc .*)$', f.read(), re.M).group(1)
        d, port = self.daemon(), harness.free_port()
        for told, own in (('broker.example', f'127.0.0.1 -p {port}'), ('127.0.0.1 7411', f"127.0.0.1 {d.port['line tcp']}")):
            self.assertEqual(command.count(told), 1)
            command = command.replace(told, own)
        self.start('mosquitto', '-p', str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def publish(topic, payload):
            return subprocess.run(['mosquitto_pub', '-p', str(port), '-q', '1', '-r', '-t', topic, '-m', payload], capture_output=True, timeout=harness.WAIT, check=False).returncode == 0

        until(lambda: publish('plant/line 1/temperature', '20'), 'the broker')  # retained: a name with a blank in its first part is no sensor's name
        bridge = self.start('bash', '-c', command, start_new_session=True)
        self.addCleanup(lambda: os.killpg(bridge.pid, 9))
        until(lambda: d.status()['lines']['bad'] == 1, 'the line that is none')
        for k in range(30):
            self.assertTrue(publish('plant/line1/temperature', f'{20 + k / 10}'))
        self.assertTrue(publish('plant/line1/pressure', '7'))
        self.assertTrue(publish('plant/line1/state', 'running'))  # text is not a number: this is logged, and the next message is read
        self.assertTrue(publish('elsewhere/temperature', '1'))
        self.assertTrue(publish('plant/line2/pressure', '8'))
        until(lambda: d.status()['points']['in'] == 32, 'the points')
        with d.client() as c:
            names = sorted(s['name'] for s in self.sensors(c))
        self.assertEqual(names, ['plant/line1/pressure', 'plant/line1/temperature', 'plant/line2/pressure'])
        self.assertEqual(d.status()['lines']['bad'], 2)

    def sensors(self, client):
        return json.loads(client.request(0x0c, struct.pack('<QI', 0, 100) + harness.text(''), harness.REPORT).data)['sensors']


if __name__ == '__main__':
    harness.main()
