"""Delivery of alerts: the messages that receivers get, over failures, crashes and reloads."""
import http.server
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import harness
from harness import SECOND, START, WAIT, free_port, until

PYTHON = next(p for p in ('/usr/bin/python3', sys.executable) if os.access(p, os.X_OK))  # Debian's, with Debian's packages
SENSORS = int(os.environ.get('NOTIFY_STORM', 1500))  # of a storm
DETECTOR = '[detector all]\nmatch = *\nwindow = 8\nalert = 0.5\n'


class Receiver(http.server.ThreadingHTTPServer):
    """Takes POST requests. `plan`: answers to the next requests, (status, headers) or 'hang'; afterwards 200."""
    daemon_threads = True

    def __init__(self, port=0):
        super().__init__(('127.0.0.1', port), Handler)
        self.plan, self.got, self.seen, self.lock = [], [], [], threading.Lock()
        self.released = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path='/'):
        return f'http://127.0.0.1:{self.server_port}{path}'

    def alerts(self):
        with self.lock:
            return [a for _, body in self.got for a in body['alerts']]

    def end(self):
        self.released.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        with self.server.lock:
            answer = self.server.plan.pop(0) if self.server.plan else (200, {})
            self.server.seen.append((time.monotonic(), dict(self.headers)))
            if answer != 'hang' and answer[0] == 200:
                self.server.got.append((dict(self.headers), json.loads(body)))
        if answer == 'hang':
            self.server.released.wait(WAIT)
            return
        self.send_response(answer[0])
        for key, value in answer[1].items():
            self.send_header(key, value)
        self.send_header('content-length', '0')
        self.end_headers()


class Notify(harness.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='hankeld-notify-')
        self.addCleanup(folder.cleanup)
        self.state = folder.name
        self.now = 0

    def receiver(self, port=0):
        r = Receiver(port)
        self.addCleanup(r.end)
        return r

    def keys(self):
        return f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.state}\n'

    def start(self, *sections, ends=0):
        return self.daemon(DETECTOR + ''.join(sections), keys=self.keys(), ends=ends)

    def webhook(self, receiver, extra='', name='hook'):
        return f'[notify {name}]\ntype = webhook\nurl = {receiver.url("/a")}\ngather = 100ms\nrate = 6000\n{extra}'

    def feed(self, daemon, points, names=('s0', 's1', 's2')):
        """A square wave; each of its edges is an alert."""
        with daemon.client() as c:
            handles = [h for i in range(0, len(names), 1000) for h in c.register(*names[i:i + 1000])]
            for t in range(self.now, self.now + points):
                noise = random.Random(t)
                for i in range(0, len(names), 10000):
                    some = handles[i:i + 10000]
                    c.send(harness.points(some, [START + t * SECOND] * len(some), [(t // 40 % 2) * 50 + noise.gauss(0, 0.1) for _ in some]))
            self.now += points
            until(lambda: c.status()['points']['pending'] == 0, 'scores')
            until(lambda: c.status()['durability']['events_shown'] == c.status()['durability']['events_last'], 'the log')

    def logged(self, daemon, kinds=('raised', 'cleared')):
        return [(e[0], e[1], e[2]) for e in daemon.events() if e[2] in kinds]

    def told(self, receiver):
        kinds = {'firing': 'raised', 'resolved': 'cleared'}
        return [(a['sensor'], int(a['id'].rpartition(':')[2]), kinds[a['status']]) for a in receiver.alerts()]

    def look(self, daemon, name='hook'):
        return next(r for r in daemon.status()['notify'] if r['name'] == name)


class Webhooks(Notify):
    def test_all_events_in_order_with_what_people_want_to_know(self):
        r = self.receiver()
        d = self.start(self.webhook(r, 'page = http://page.example/x\n'))
        self.feed(d, 400)
        logged = self.logged(d)
        self.assertGreater(len(logged), 12)
        until(lambda: len(self.told(r)) >= len(logged), 'all alerts')
        self.assertEqual(self.told(r), logged)
        headers, body = r.got[0]
        self.assertEqual((headers['Content-Type'], headers['Idempotency-Key']), ('application/json', body['key']))
        self.assertEqual((body['receiver'], body['page']), ('hook', 'http://page.example/x'))
        a = body['alerts'][0]
        self.assertRegex(a['text'], r'^s\d: looks unlike before: level \S+ before, \S+ after; since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(score, \S+ times its threshold')
        self.assertEqual(len({a['key'] for a in r.alerts()}), len(logged))
        until(lambda: self.look(d)['waiting'] == 0, 'nothing to wait')
        look = self.look(d)
        self.assertEqual((look['state'], look['events'], look['given_up'], look['lost'], look['answer']), ('ok', len(logged), 0, 0, '200'))

    def test_failures_429_and_hanging(self):
        r, dead = self.receiver(), 'http://127.0.0.1:9/'
        r.plan = [(500, {}), (429, {'Retry-After': '3'}), 'hang']
        d = self.start(self.webhook(r, 'timeout = 500ms\n'), f'[notify dead]\ntype = webhook\nurl = {dead}\n')
        self.feed(d, 100)
        logged = self.logged(d)
        until(lambda: len(self.told(r)) >= len(logged), 'all alerts')
        self.assertEqual(self.told(r), logged)
        self.assertGreaterEqual(r.seen[2][0] - r.seen[1][0], 2.9)  # as it was asked to
        self.assertEqual(len({h['Idempotency-Key'] for _, h in r.seen[:4]}), 1)
        self.assertGreaterEqual(self.look(d)['tries_failed'], 3)
        self.assertTrue(any('cannot be delivered at the moment' in line for line in d.log))
        until(lambda: self.look(d, 'dead')['state'] == 'failing', 'the dead one to be told')

    def test_never_and_give_up_are_set_aside(self):
        r = self.receiver()
        r.plan = [(404, {})]
        d = self.start(self.webhook(r), '[notify dead]\ntype = webhook\nurl = http://127.0.0.1:9/\ngive_up = 1s\ngather = 100ms\n')
        self.feed(d, 100)
        for name, why in ('hook', '404'), ('dead', 'onnect'):
            path = os.path.join(self.state, f'notify-{name}.undelivered')
            until(lambda path=path: os.path.exists(path) and os.path.getsize(path) > 0, path)
            with open(path, encoding='utf-8') as f:
                line = json.loads(f.readline())
            self.assertIn(why, line['why'])
            self.assertEqual(len(json.loads(line['message'])['alerts']), line['events'])
            until(lambda name=name, line=line: self.look(d, name)['given_up'] >= line['events'], 'the count')
        self.assertTrue(any('is set aside in notify-dead.undelivered' in line for line in d.log))

    def test_a_log_that_is_too_small_for_an_outage_is_told(self):
        port, names = free_port(), tuple(f'n{i:04}' for i in range(3000))
        section = f'[notify hook]\ntype = webhook\nurl = http://127.0.0.1:{port}/a\ngather = 100ms\nrate = 6000\n'
        d = self.daemon(DETECTOR + section, keys=self.keys() + 'event_log = 1MiB\nsnapshot = 1s\n')
        self.feed(d, 44, names)
        until(lambda: self.look(d)['tries_failed'] > 0, 'it to try')
        for _ in range(12):
            self.feed(d, 40, names)
            if d.status()['durability']['events_first'] > len(names):
                break
            time.sleep(1)  # the log keeps what came since the older of two snapshots
        self.assertGreater(d.status()['durability']['events_first'], len(names))
        r = self.receiver(port)
        until(lambda: self.look(d)['lost'] > 0, 'it to be told')
        until(lambda: self.look(d)['waiting'] == 0, 'the rest')
        self.assertTrue(any('the event log has deleted' in line and 'event_log is too small for so long an outage' in line for line in d.log))
        status = subprocess.run([harness.HANKEL, 'status', '--from', f"127.0.0.1:{d.port['binary tcp']}"], capture_output=True, text=True, timeout=WAIT).stdout
        self.assertRegex(status, rf"(?m)^receivers +{self.look(d)['lost']} events were deleted from the event log before hook got them$")
        self.feed(d, 100, ('later',))
        until(lambda: any(a['sensor'] == 'later' for a in r.alerts()), 'what comes later')

    def test_what_is_chosen(self):
        quiet, only, severe, shift = (self.receiver() for _ in range(4))
        d = self.start(self.webhook(quiet, 'resolved = no\n', 'quiet'), self.webhook(only, 'match = s1\n', 'only'),
                       self.webhook(severe, 'min_severity = 40\n', 'severe'), self.webhook(shift, 'channel = shift, group\n', 'shift'),
                       '[maintenance m]\nmatch = s2\nfrom = 2020-01-01T00:00:00Z\nto = 2030-01-01T00:00:00Z\n')
        self.feed(d, 300)
        logged = self.logged(d)
        of = lambda *names: [e for e in logged if e[0] in names]
        until(lambda: len(self.told(only)) >= len(of('s1')), 's1')
        until(lambda: all(x['waiting'] == 0 for x in d.status()['notify']), 'all')
        self.assertEqual(self.told(only), of('s1'))
        self.assertEqual(self.told(quiet), [e for e in of('s0', 's1') if e[2] == 'raised'])
        self.assertEqual((severe.got, shift.got), ([], []))

    def test_killed_again_and_again(self):
        r = self.receiver()
        section = self.webhook(r)
        for i in range(int(os.environ.get('NOTIFY_KILLS', 6 if harness.SANITIZED else 12))):
            r.plan = [random.choice([(200, {}), (503, {}), (200, {})]) for _ in range(3)]
            d = self.start(section, ends=-9)
            self.feed(d, 60)
            time.sleep(random.random() * 0.3)
            d.process.kill()
            d.process.wait(WAIT)
        d = self.start(section)
        logged = self.logged(d)
        until(lambda: set(self.told(r)) >= set(logged), 'all alerts')
        self.assertGreater(len(logged), 20)
        keys = {}
        for a in r.alerts():  # the same event has the same key, and no other has it
            self.assertEqual(keys.setdefault(a['key'], (a['id'], a['status'])), (a['id'], a['status']))
        first = list(dict.fromkeys(self.told(r)))
        for name in 's0', 's1', 's2':
            self.assertEqual([e for e in first if e[0] == name], [e for e in logged if e[0] == name])

    def test_reload(self):
        r, other = self.receiver(), self.receiver()
        d = self.start(self.webhook(r))
        self.feed(d, 100)
        until(lambda: len(self.told(r)) >= len(self.logged(d)) and self.look(d)['waiting'] == 0, 'answers')  # else sent again, to other
        d.configure(DETECTOR + self.webhook(other) + self.webhook(r, name='second'), self.keys())
        with d.client() as c:
            taken, lines = c.reload()
        self.assertTrue(taken and '[notify hook] is changed' in lines and '[notify second] is new' in lines, lines)
        before = len(self.logged(d))
        until(lambda: len(d.status()['notify']) == 2 and os.path.exists(os.path.join(self.state, 'notify-second.place')), 'both')
        self.feed(d, 100)
        until(lambda: len(self.told(other)) >= len(self.logged(d)) - before, 'what came since')
        self.assertEqual(self.told(other), self.logged(d)[before:])

    def test_a_reload_waits_for_nobody(self):
        r = self.receiver()
        r.plan = ['hang'] * 10
        hanging, took = self.webhook(r), []
        d = self.start(hanging)
        for i in range(3):
            self.feed(d, 50)
            until(lambda i=i: len(r.seen) > i, 'a message to hang')
            for sections in self.webhook(self.receiver(), name='other'), hanging.replace('notify hook', f'notify hook{i}'):
                d.configure(DETECTOR + sections, self.keys())
                with d.client() as c:
                    begun = time.monotonic()
                    self.assertTrue(c.reload()[0])
                    took.append(time.monotonic() - begun)
            self.assertEqual([x['name'] for x in d.status()['notify']], [f'hook{i}'])
            until(lambda i=i: os.path.exists(os.path.join(self.state, f'notify-hook{i}.place')), 'the new one to begin')
        self.assertLess(min(took[::2]), 5)
        d.configure(DETECTOR + self.webhook(r, name='hook'), self.keys())  # the receiver of that name has ended, and the new one continues at its position
        r.plan = []
        r.released.set()
        with d.client() as c:
            self.assertTrue(c.reload()[0])
        until(lambda: len(self.told(r)) >= len(self.logged(d)), 'all alerts, though it was away')
        self.assertEqual(list(dict.fromkeys(self.told(r))), self.logged(d))

    def test_acknowledged_alerts_are_not_repeated(self):
        r = self.receiver()
        d = self.start(self.webhook(r, 'repeat = 1s\n'))
        self.feed(d, 44)
        again = lambda: [{a['sensor'] for a in body['alerts']} for _, body in r.got if body['alerts'][0]['again']]
        until(lambda: {'s0', 's1', 's2'} in again(), 'all to be told again')
        subprocess.run([harness.HANKEL, 'ack', 's1', '--from', f"127.0.0.1:{d.port['binary tcp']}"], check=True, capture_output=True, timeout=WAIT)
        until(lambda: again()[-1:] == [{'s0', 's2'}], 'it to be left out')
        before = len(again())
        until(lambda: len(again()) >= before + 2, 'more repeats')
        self.assertEqual(again()[before:], [{'s0', 's2'}] * len(again()[before:]))
        self.feed(d, 30)
        until(lambda: ('s1', 1, 'cleared') in self.told(r), 'its end')

    def test_a_secret_that_everybody_can_read_is_told(self):
        r, path = self.receiver(), os.path.join(self.state, 'secret')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('token-1\n')
        for mode, told in (0o644, True), (0o640, False), (0o600, False):
            os.chmod(path, mode)
            d = self.start(self.webhook(r, f'secret_file = {path}\n'))
            self.feed(d, 100)
            until(lambda: self.look(d)['waiting'] == 0, 'all')
            self.assertEqual(any(f'every user of this machine can access secret_file {path}' in line for line in d.log), told, oct(mode))
            d.stop()
        self.assertEqual({h['Authorization'] for h, _ in r.got}, {'Bearer token-1'})

    def test_bad_keys_are_refused(self):
        for keys, why in (('type = pigeon\nurl = http://a/\n', 'type = pigeon: not one of webhook, alertmanager, slack, email, teams, syslog, pagerduty, mqtt'), ('type = webhook\n', 'needs url = http'),
                          ('type = webhook\nurl = ftp://a/\n', 'needs url'), ('type = webhook\nurl = http://a/\nrate = 0\n', 'from 1 to 6000'),
                          ('type = email\nserver = smtp://a\nfrom = a@b\n', 'needs from'), ('type = webhook\nurl = http://a/\ncolour = red\n', 'no key'),
                          ('type = webhook\nurl = http://a/\nafter = soon\n', 'not a duration'), ('type = slack\nurl = http://a/\nto = a@b\n', 'are for type = email'), ('type = syslog\nserver = tcp://a\n', 'needs server = tcp://HOST:PORT'),
                          ('type = syslog\nserver = udp://a:514\n', 'needs server = tcp://HOST:PORT'), ('type = syslog\nserver = tcp://a:514/x\n', 'needs server')):
            with self.assertRaises(harness.NotReady) as e:
                self.start('[notify x]\n' + keys)
            self.assertRegex('\n'.join(e.exception.log), r'hankeld.conf:\d+: .*' + re.escape(why))
        with self.assertRaises(harness.NotReady) as e:
            self.daemon(DETECTOR + '[notify x]\ntype = webhook\nurl = http://a/\n')
        self.assertIn('needs the event log', '\n'.join(e.exception.log))


class Tries(Notify):
    def try_it(self, name, sections):
        path = os.path.join(self.state, 'hankeld.conf')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(f'[daemon]\n{self.keys()}{DETECTOR}{sections}')
        done = subprocess.run([harness.HANKEL, 'notify', 'test', '-c', path, name], capture_output=True, text=True, timeout=WAIT, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_one_message_and_the_answer(self):
        r, path = self.receiver(), os.path.join(self.state, 'secret')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('token-1\n')
        sections = self.webhook(r, f'secret_file = {path}\n')
        r.plan = [(200, {}), (503, {}), (404, {})]
        self.assertEqual(self.try_it('hook', sections), (0, 'hook took the message: 200\n'))
        self.assertEqual(self.try_it('hook', sections), (1, 'hankel notify: hook did not take the message (the daemon would try again): 503\n'))
        self.assertEqual(self.try_it('hook', sections), (1, 'hankel notify: hook did not take the message (the daemon would set it aside): 404\n'))
        (headers, body), = r.got
        self.assertEqual((headers['Authorization'], len(body['alerts'])), ('Bearer token-1', 1))
        a = body['alerts'][0]
        self.assertEqual((a['sensor'], a['test'], a['status']), ('hankeld-test', True, 'firing'))
        self.assertTrue(a['text'].startswith('hankeld-test: this is a test: '), a['text'])
        self.assertEqual(len({h['Idempotency-Key'] for _, h in r.seen}), 3)  # so that none is taken for a repeat
        os.unlink(path)
        self.assertIn(f'secret_file {path}: No such file', self.try_it('hook', sections)[1])
        self.assertEqual(len(r.seen), 3)

    def test_wrong_usage(self):
        code, said = self.try_it('other', self.webhook(self.receiver()))
        self.assertEqual((code, said.endswith('has no [notify other]; it has hook\n')), (1, True), said)
        self.assertIn('has no key', self.try_it('hook', '[notify hook]\ncolour = red\n')[1])
        for words in ['notify'], ['notify', 'test', 'x'], ['notify', 'send', '-c', '/x', 'y'], ['notify', '--what']:
            self.assertEqual(subprocess.run([harness.HANKEL, *words], capture_output=True, timeout=WAIT, check=False).returncode, 2, words)

    def test_teams(self):
        r, path = self.receiver(), os.path.join(self.state, 'secret')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(r.url('/workflows/very-secret') + '\n')
        os.chmod(path, 0o600)
        d = self.start(f'[notify team]\ntype = teams\nsecret_file = {path}\ngather = 1s\nrate = 600\npage = http://page.example/\nresolved = no\n')
        self.feed(d, 44, ('a*b_c [x](http://evil.example)', 's1'))
        until(lambda: r.got, 'a message')
        headers, body = r.got[0]
        card = body['attachments'][0]
        self.assertEqual((body['type'], card['contentType'], card['content']['type']),
                         ('message', 'application/vnd.microsoft.card.adaptive', 'AdaptiveCard'))
        texts = [b['text'] for b in card['content']['body']]
        self.assertEqual(texts[0], '2 alerts of 2 sensors')
        self.assertTrue(any(t.startswith('a\\*b\\_c \\[x\\]\\(http://evil.example\\): looks unlike before: level ') for t in texts), texts)
        self.assertEqual(card['content']['actions'], [{'type': 'Action.OpenUrl', 'title': 'Open', 'url': 'http://page.example/'}])
        self.assertNotIn('Authorization', headers)
        self.assertFalse(any('very-secret' in line for line in d.log))


class Storm(Notify):
    def test_many_alerts_few_messages(self):
        r = self.receiver()
        d = self.start(f'[notify hook]\ntype = slack\nurl = {r.url()}\ngather = 2s\nrate = 60\nresolved = no\n')
        self.feed(d, 60, tuple(f'line{i % 7}/m{i}' for i in range(SENSORS)))
        self.assertGreater(len(self.logged(d, ('raised',))), 1000)
        until(lambda: self.look(d)['waiting'] == 0 and r.got, 'all')
        texts = [body['text'] for _, body in r.got]
        self.assertLess(len(texts), 20 + SENSORS // 4000)  # 4,096 events are one message at most
        self.assertEqual(sum(int(re.match(r'(\d+) alerts? of (\d+) sensors?\n', t)[1]) if t.count('\n') > 1 else 1 for t in texts), len(self.logged(d, ('raised',))))


# A real SMTP server that prints each mail as a line of JSON.
SMTP = """
import json, sys, time
from aiosmtpd.controller import Controller
class Print:
    refuse = 1
    async def handle_DATA(self, server, session, envelope):
        if Print.refuse > 0:
            Print.refuse -= 1
            return '451 not now'
        print(json.dumps([envelope.mail_from, envelope.rcpt_tos, envelope.content.decode()]), flush=True)
        return '250 OK'
Controller(Print(), hostname='127.0.0.1', port=int(sys.argv[1])).start()
print('[]', flush=True)
time.sleep(600)
"""


class RealReceivers(Notify):
    def run_program(self, *command):
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    @unittest.skipUnless(shutil.which('prometheus-alertmanager'), 'needs prometheus-alertmanager')
    def test_alertmanager(self):
        port, path = free_port(), os.path.join(self.state, 'am.yml')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('route:\n  receiver: none\nreceivers:\n- name: none\n')
        self.run_program('prometheus-alertmanager', f'--config.file={path}', f'--storage.path={self.state}/am', '--cluster.listen-address=',
                         f'--web.listen-address=127.0.0.1:{port}')
        base = f'http://127.0.0.1:{port}/api/v2/alerts'

        def standing():
            with urllib.request.urlopen(base + '?active=true', timeout=WAIT) as answer:
                return sorted(a['labels']['sensor'] for a in json.load(answer))

        state = os.path.join(self.state, 'hankeld')
        os.mkdir(state)
        self.state = state
        d = self.start(f'[notify am]\ntype = alertmanager\nurl = {base}\ngather = 100ms\n')
        self.feed(d, 44)  # the first edge is past
        until(lambda: self.logged(d)[-3:] and {e[2] for e in self.logged(d)} == {'raised'}, 'alerts')
        until(lambda: self.look(d, 'am')['events'] >= 3, 'the Alertmanager to take them')
        self.assertEqual(standing(), ['s0', 's1', 's2'])
        self.feed(d, 30)
        self.assertEqual(sorted(e[0] for e in self.logged(d, ('cleared',))), ['s0', 's1', 's2'])
        until(lambda: standing() == [], 'them to be over')

    @unittest.skipUnless(subprocess.run([PYTHON, '-c', 'import aiosmtpd'], capture_output=True, check=False).returncode == 0, 'needs aiosmtpd')
    def test_email(self):
        port = free_port()
        server = self.run_program(PYTHON, '-c', SMTP, str(port))
        self.assertEqual(server.stdout.readline(), '[]\n')
        d = self.start(f'[notify mail]\ntype = email\nserver = smtp://127.0.0.1:{port}\nfrom = hankeld@plant.example\n'
                       'to = a@plant.example, b@plant.example\ngather = 1s\nrate = 600\npage = http://page.example/\n')
        self.feed(d, 44, tuple(f'line/m{i}' for i in range(15)))
        sender, to, mail = json.loads(server.stdout.readline())
        head, _, body = mail.partition('\r\n\r\n')
        self.assertEqual((sender, to), ('hankeld@plant.example', ['a@plant.example', 'b@plant.example']))
        self.assertRegex(head, r'Subject: \[hankeld\] \d+ alerts of \d+ sensors(, \d+ over)?\r\n')
        self.assertRegex(head, r'Message-ID: <[0-9a-f]{16}-\d+-\d+@hankeld>')
        self.assertRegex(body, r'(?s)^\d+ alerts of \d+ sensors(, \d+ over)?\r\n(line/m\d+: looks unlike before: level .*\r\n){10}and \d+ more\r\nhttp://page.example/\r\n$')
        self.assertGreaterEqual(self.look(d, 'mail')['tries_failed'], 1)  # it was refused once, for a while


    @unittest.skipUnless(shutil.which('rsyslogd', path='/usr/sbin:/usr/bin'), 'needs rsyslog')
    def test_syslog(self):
        port, taken, path = free_port(), os.path.join(self.state, 'taken'), os.path.join(self.state, 'rsyslog.conf')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('module(load="imtcp")\ninput(type="imtcp" port="%d" address="127.0.0.1")\n'
                    'template(name="all" type="string" string="%%pri%%|%%app-name%%|%%msgid%%|%%hostname%%|%%msg%%\\n")\n'
                    'action(type="omfile" file="%s" template="all")\n' % (port, taken))
        section = f'[notify log]\ntype = syslog\nserver = tcp://127.0.0.1:{port}\ngather = 100ms\nrate = 6000\n'
        d = self.start(section)
        self.feed(d, 44, ('s0', 'ö "x"\\', 's2'))
        until(lambda: self.look(d, 'log')['state'] == 'failing', 'nobody to be there')
        self.run_program(shutil.which('rsyslogd', path='/usr/sbin:/usr/bin'), '-n', '-f', path, '-i', os.path.join(self.state, 'pid'))
        self.feed(d, 60, ('s0', 'ö "x"\\', 's2'))
        logged = self.logged(d)

        def lines():
            if not os.path.exists(taken):
                return []
            with open(taken, encoding='utf-8') as f:
                return [line.rstrip('\n').split('|') for line in f if '|hankeld|' in line]
        until(lambda: len(lines()) >= len(logged), 'all alerts')
        self.assertEqual([(m[4].strip().partition(': ')[0], {'alert': 'raised', 'over': 'cleared'}[m[2]]) for m in lines()],
                         [(e[0], e[2]) for e in logged])
        self.assertEqual({(m[0], m[2]) for m in lines()}, {('28', 'alert'), ('29', 'over')})
        self.assertRegex(lines()[0][4], r': looks unlike before: level \S+ before, \S+ after; since ')


if __name__ == '__main__':
    harness.main(needs_gpu=False)
