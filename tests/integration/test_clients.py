"""Clients of others: nc and socat for the text and line protocols, collectd sending line protocol over UDP. Tests of tools that
are not installed are skipped."""
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import harness
from harness import SCORED, SECOND, START, UNSCORED, VALUES


def tool(name):
    return shutil.which(name) or next((p for p in (f'/usr/sbin/{name}', f'/sbin/{name}') if os.path.exists(p)), None)


def needs(name):
    return unittest.skipUnless(tool(name), f'{name} is not installed')


class Clients(harness.Case):
    listens = harness.LISTENERS

    def lines(self, n, sensor='pump,site=a temperature'):
        return ''.join(f'{sensor}={20 + i % 5} {START + i * SECOND}\n' for i in range(n)).encode()

    def start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def text_and_line(self, text, line, udp):
        d = self.daemon()
        reader = self.start(*text(d.port['text tcp']))
        reader.stdin.write(b'results pump*\nnonsense>\n')  # answered in order: then the subscription is in place
        reader.stdin.flush()
        self.assertIn('error', json.loads(reader.stdout.readline()))
        with d.client() as watcher:
            watcher.subscribe(SCORED | UNSCORED)
            sender = self.start(*line(d.port['line tcp']))
            sender.stdin.write(self.lines(100))
            sender.stdin.flush()
            watcher.wait_results(100)
            rows = [json.loads(reader.stdout.readline()) for _ in range(100)]
            self.assertEqual([r['time'] for r in rows], [START + i * SECOND for i in range(100)])
            self.assertEqual({r['sensor'] for r in rows}, {'pump,site=a temperature'})
            self.assertEqual(rows[3]['value'], 23)
            self.assertEqual([r['state'] for r in rows], ['warming'] * 22 + ['ok'] * 78)
            self.assertEqual([harness.single(r['score']) if r['score'] is not None else None for r in rows], [r[3] for r in watcher.results])
            datagram = self.start(*udp(d.port['line udp']))
            datagram.stdin.write(self.lines(5, 'other value'))
            datagram.stdin.flush()
            watcher.wait_results(105)
            self.assertEqual(watcher.results[-1][0], 'other')

    @needs('nc')
    def test_netcat(self):
        self.text_and_line(lambda p: ('nc', '127.0.0.1', str(p)), lambda p: ('nc', '127.0.0.1', str(p)),
                           lambda p: ('nc', '-u', '127.0.0.1', str(p)))

    @needs('socat')
    def test_socat(self):
        self.text_and_line(lambda p: ('socat', '-', f'TCP:127.0.0.1:{p}'), lambda p: ('socat', '-', f'TCP:127.0.0.1:{p}'),
                           lambda p: ('socat', '-', f'UDP:127.0.0.1:{p}'))

    @needs('collectd')
    def test_collectd(self):
        plugin = '/usr/lib/collectd/write_influxdb_udp.so'
        if not os.path.exists(plugin):
            self.skipTest('this collectd has no write_influxdb_udp plugin')
        d = self.daemon(listeners=harness.LISTENERS.replace('[listen line-udp]\n', '[listen line-udp]\nprecision = ms\n'))
        with tempfile.TemporaryDirectory() as directory, d.client() as watcher:
            watcher.subscribe(SCORED | UNSCORED | VALUES)
            path = os.path.join(directory, 'collectd.conf')
            with open(path, 'w') as f:
                f.write(f'''Hostname "tester"
BaseDir "{directory}"
PIDFile "{directory}/pid"
TypesDB "/usr/share/collectd/types.db"
Interval 0.2
LoadPlugin load
LoadPlugin memory
LoadPlugin write_influxdb_udp
<Plugin write_influxdb_udp>
  Server "127.0.0.1" "{d.port['line udp']}"
  TimeToLive 1
</Plugin>
''')
            collectd = subprocess.Popen([tool('collectd'), '-f', '-C', path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                watcher.wait_results(60)
            finally:
                collectd.terminate()
                collectd.wait(harness.WAIT)
            names = {r[0] for r in watcher.results}
            self.assertTrue(any('load' in n for n in names) and any('memory' in n for n in names), names)
            self.assertTrue(all('host=tester' in n for n in names), names)
            now = time.time_ns()
            for sensor in names:
                times = [r[1] for r in watcher.results if r[0] == sensor]
                self.assertTrue(all(now - 60 * SECOND < t < now + SECOND for t in times), (sensor, times))
                self.assertEqual(times, sorted(times))
            self.assertEqual({r[4] for r in watcher.results}, {'warming'})
            status = d.status()
            self.assertEqual(self.balanced(status)['dropped'], 0)
            self.assertEqual(status['lines']['bad'], 0, status)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
