"""The contents of alerts of algorithm = limit: the same over every protocol, over restarts, and in `hankel replay` of the same points; also what --check
refuses, and what the page's API and a receiver get."""
import csv
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request

import harness
from harness import SECOND, START, WAIT, until
from recording import Recording

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402

KEYS = 'algorithm=limit,limit=100,lower=-100,window=2m,horizon=5m,interval=1s'
NUMBER = r'-?[\d.e+-]+'
DATE = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'
SENTENCE = rf'((reaches|falls to) {NUMBER} in (\d+ to )?\d+ (min|h)( or later)?, about {DATE}|has reached its limit {NUMBER}): now {NUMBER}, (grows|falls) by {NUMBER} an hour'
OVER = rf'the limit {NUMBER} is no longer near'


def at(t):
    """Values that grow, grow faster, are emptied, grow faster to the upper limit and stay there, and fall to the lower one."""
    wobble = (t * 7919 % 13 - 6) / 20
    if t < 500:
        return t * 0.17 + max(t - 430, 0) * 0.2 + wobble
    if t < 900:
        return (t - 500) * 0.25 + wobble
    if t < 1200:
        return 100 + wobble
    return 100 - (t - 1200) * 0.3 + wobble


class Limits(Recording):
    keys = KEYS
    mode = 'none'

    @classmethod
    def setUpClass(cls):
        cls.write([at(t) for t in range(1800)])

    @staticmethod
    def of_json(line):
        event = json.loads(line)
        note = event.get('limit')
        return (int(event['id'].rpartition(':')[2]), event['event'], event['time'], event['severity'], event['before'], event['after'],
                note and (note['limit'], harness.single(note['slope']), note['earliest'], note['reached'], note['latest'], note['blocks']))

    @staticmethod
    def of_client(event):
        return event.number, event.kind, event.time, event.severity, event.before, event.after, event.limit and tuple(event.limit)


class Told(Limits):
    def test_what_is_told_makes_sense(self):
        kinds = [e[1] for e in self.events]
        self.assertEqual([k for k in kinds if k != 'corrected'], ['raised', 'cleared', 'raised', 'cleared', 'raised'])
        self.assertIn('corrected', kinds)
        for number, kind, time, severity, before, after, note in self.events:
            n = hankel.Limit(*note)
            self.assertTrue(2.5 <= severity <= 3 and 18 <= n.blocks <= 24, (number, n))
            self.assertEqual(n.limit, -100 if number == 3 else 100)
            self.assertEqual(n.slope < 0, number == 3)
            if kind != 'cleared':
                self.assertTrue(time <= n.earliest <= n.reached and (n.latest is None or n.reached <= n.latest), (time, n))
                self.assertEqual(after > before, number != 3)
        first, second = self.events[0], next(e for e in self.events if e[0] == 2)
        self.assertAlmostEqual((first[6][3] - START) / SECOND, 100 / 0.17, delta=10)
        self.assertAlmostEqual((second[6][3] - START) / SECOND, 900, delta=10)

    def test_rows(self):
        rows = list(csv.reader(line for line in self.replay('csv') if line.startswith('#event') or line.startswith('#limit')))
        self.assertEqual([r[0] for r in rows if r[0] == '#limit'], ['#limit'] * sum(e[1] != 'cleared' for e in self.events) + ['#limit'] * sum(e[1] == 'cleared' for e in self.events))
        limits = [r for r in rows if r[0] == '#limit']
        for event, new in zip(self.events, limits):
            self.assertEqual((float(new[2]), harness.single(float(new[3])), int(new[4]), int(new[5]), int(new[6]) if new[6] else None, int(new[7])), event[-1])
            self.assertRegex(new[8], f'^{SENTENCE}$')

    def test_every_way_out(self):
        daemon, shown = self.every_way_out()
        for event, line in zip(self.events, shown):
            says = OVER if event[1] == 'cleared' else SENTENCE
            self.assertRegex(line, rf' press:{event[0]}  {says}, limit {NUMBER} times its threshold, severity \d\.\d \(warning\)$')
        self.assertRegex('\n'.join(daemon.log), r'alert press:1 raised \(limit\): reaches 100 in [\d to]+ \w+, about \d{4}-\S+ \S+: now [\d.]+, grows by [\d.]+ an hour')
        self.assertIn('alert press:1 cleared (limit): the limit 100 is no longer near', '\n'.join(daemon.log))


class Kept(Limits):
    """Restarts while an alert stands, within a block, and while no alert stands: all events are in the log."""
    mode = 'journal'

    def test_restart(self):
        self.over_restarts([0, 203, 470, 1003, len(self.values), len(self.values)])


class KeptBySnapshots(Kept):
    mode = 'snapshot'


class Checked(harness.Case):
    def check(self, section):
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write('[detector disks]\nmatch = *\nalgorithm = limit\n' + section)
            f.flush()
            run = subprocess.run([harness.HANKELD, '-c', f.name, '--check'], capture_output=True, text=True, timeout=WAIT, check=False)
        return run.returncode, run.stdout + run.stderr

    def test_faults_are_named(self):
        for section, says in (('', 'limit, lower: algorithm = limit needs a limit'), ('limit = full\n', 'limit = full'), ('limit = 5\nlower = 6\n', 'lower: must be below limit'),
                              ('limit = 5\nwindow = 96\n', 'window: for algorithm = limit a duration'), ('limit = 5\nhorizon = 100d\n', 'horizon: must be'),
                              ('limit = 5\nconfidence = 9\n', 'confidence = 9'), ('limit = 5\nrank = 3\n', 'rank: does not apply to algorithm = limit'),
                              ('limit = 5\ninterval = 2h\n', 'interval: there must be one in each of 24 blocks')):
            code, text = self.check(section)
            self.assertNotEqual(code, 0, section)
            self.assertIn(says, text)

    def test_memory_is_told(self):
        code, text = self.check('limit = 95\n')
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r'detector disks: [67]\d\d bytes a sensor')


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append(json.loads(self.rfile.read(int(self.headers['Content-Length']))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


class Shown(harness.Case):
    """A standing alert in the page's API and at a receiver."""

    def test_web_and_webhook(self):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Receiver)
        server.got = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        state = tempfile.TemporaryDirectory(prefix='hankeld-limit-')
        self.addCleanup(state.cleanup)
        d = self.daemon('[listen web]\nprotocol = http\naddress = 127.0.0.1:0\n' + harness.section('all', '*', KEYS)
                        + f'[notify hook]\ntype = webhook\nurl = http://127.0.0.1:{server.server_address[1]}/\nchannel = limit\n',
                        keys=f'max_ahead = off\ndurability = journal\nstate = {state.name}\n')
        client = hankel.Client(f'127.0.0.1:{d.port["binary tcp"]}', timeout=WAIT)
        self.addCleanup(client.close)
        for i in range(400):
            client.send('press', START + i * SECOND, at(i))
        client.sync()
        base = f'http://127.0.0.1:{d.port["http tcp"]}/api/v1/'

        def get(path):
            with urllib.request.urlopen(base + path, timeout=WAIT) as answer:
                return json.load(answer)

        alert = until(lambda: get('alerts')['alerts'], 'the alert')[0]
        self.assertEqual((alert['channel'], alert['level'], alert['limit']['limit'], alert['limit']['blocks']), ('limit', 'warning', 100, 24))
        self.assertTrue(alert['time'] < alert['limit']['earliest'] <= alert['limit']['reached'] <= alert['limit']['latest'], alert)
        sensor = get('sensors/press')
        self.assertEqual(sensor['series'][0]['keys']['limit'], '100')
        self.assertEqual(len(sensor['points']), 32)
        until(lambda: server.got, 'the message')
        said = server.got[0]['alerts'][0]
        self.assertRegex(said['text'], rf'^press: {SENTENCE} \(limit, ')
        self.assertEqual((said['channel'], said['limit']['limit'], said['limit']['blocks']), ('limit', 100, 24))
        self.assertRegex(said['limit']['reached'], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$')


del Limits
if __name__ == '__main__':
    harness.main(needs_gpu=False)
