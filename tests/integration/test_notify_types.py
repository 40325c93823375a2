"""Messages to receivers of each type: templates, quiet hours, machines and incidents, with the programs that people use."""
import contextlib
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import certificates
import harness
import test_incidents
import test_notify
from harness import WAIT, free_port, until
from test_notify import DETECTOR, PYTHON, SMTP

SBIN = '/usr/sbin:/usr/bin:/sbin:/bin'


def ack(daemon, *what):
    subprocess.run([harness.HANKEL, 'ack', *what, '--from', f"127.0.0.1:{daemon.port['binary tcp']}"], check=True, capture_output=True, timeout=WAIT)


def have_mqtt():
    """Whether mosquitto is there, and hankeld is built for brokers."""
    conf = '[daemon]\ndurability = journal\nstate = /nowhere\n[detector all]\nmatch = *\n[notify x]\ntype = mqtt\nserver = mqtt://a:1\ntopic = t\n'
    checked = subprocess.run([harness.HANKELD, '-c', '/dev/stdin', '--check'], input=conf, capture_output=True, text=True, timeout=WAIT, check=False)
    return shutil.which('mosquitto', path=SBIN) and shutil.which('mosquitto_sub') and 'libmosquitto' not in checked.stderr


class Case(test_notify.Notify):
    def file(self, name, text, mode=0o600):
        path = os.path.join(self.state, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def run_program(self, *command):
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def reload(self, daemon, *sections):
        daemon.configure(DETECTOR + ''.join(sections), self.keys())
        with daemon.client() as c:
            self.assertTrue(c.reload()[0])

    def try_it(self, name, sections):
        path = self.file('try.conf', f'[daemon]\n{self.keys()}{DETECTOR}{sections}')
        done = subprocess.run([harness.HANKEL, 'notify', 'test', '-c', path, name], capture_output=True, text=True, timeout=WAIT, check=False)
        return done.returncode, done.stdout + done.stderr

    def standing(self, daemon):
        return {a['sensor']: a['number'] for a in daemon.status()['alerts']['first']}

    def raise_all(self, daemon, *names):
        """Feeds until an alert of each sensor stands."""
        for _ in range(200):
            if set(self.standing(daemon)) >= set(names):
                return
            self.feed(daemon, 40 if self.now < 40 else 1, names)
        self.fail(f'not all of {names} are raised')

    def settled(self, daemon):
        def all_told():
            status = daemon.status()
            return all(r['position'] >= status['durability']['events_shown'] for r in status['notify'])
        until(all_told, 'all to be told')


class Templates(Case):
    def test_from_the_configuration_and_a_file(self):
        r, path = self.receiver(), self.file('template', '{"receiver": "{{receiver}}", "alerts": [\n{{#alerts}}\n  {"name": "{{sensor}}", "is": "{{status}}", "from": {{before}}},\n'
                                             '{{/alerts}}\n  {{! JSON has no comma behind the last }}\n  null]}\n')
        d = self.start(self.webhook(r, f'template_file = {path}\n'), f'[notify people]\ntype = slack\nurl = {r.url("/s")}\ngather = 100ms\nrate = 600\npage = http://p.example/\n'
                       'template = {{#alerts}}*{{sensor}}* is {{level}}: {{{what}}} ({{how_sure}}), <{{{link}}}|look>\\n{{/alerts}}\n')
        self.raise_all(d, 'a"b', '<x>')
        self.settled(d)
        mine, people = [b for _, b in r.got if 'alerts' in b], [b['text'] for _, b in r.got if 'text' in b]
        self.assertEqual([(a['name'], a['is']) for b in mine for a in b['alerts'] if a], [('a"b', 'firing'), ('<x>', 'firing')])
        self.assertRegex(''.join(people), r'(?m)^\*&lt;x&gt;\* is \w+: looks unlike before: level \S+ before, \S+ after; since .* UTC \(score, .* times its threshold.*\), <http://p.example/#sensor/%3Cx%3E\|look>$')
        with open(path, 'w', encoding='utf-8') as f:
            f.write('{"changed": "{{headline}}"}')
        self.reload(d, self.webhook(r, f'template_file = {path}\n'))  # a file that has changed is taken up
        self.feed(d, 60, ('a"b', '<x>'))
        until(lambda: any('changed' in b for _, b in r.got), 'the new text')

    def test_the_example_of_the_manual(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'conf', 'man', 'hankeld.conf.5.scd'), encoding='utf-8') as f:
            line = re.search(r'^template = \{"content".*$', f.read(), re.M)[0].replace('\\\\', '\\')
        r = self.receiver()
        d = self.start(self.webhook(r, f'{line}\npage = http://p.example/\n'))
        self.feed(d, 44)
        until(lambda: r.got, 'a message')
        self.assertRegex(r.got[0][1]['content'], r'^\d alerts? .*http://p.example/.*\ns\d: looks unlike before: level ')

    def test_faults_are_found_before(self):
        r, path = self.receiver(), self.file('template', 'first\nä {{#alerts}}{{sensr}}{{/alerts}}\n')
        for key, why in ((f'template_file = {path}', f'template_file = {path}: line 2, column 14: no such name: `sensr`'), ('template_file = /gone', 'template_file = /gone: No such file'),
                         ('template = {{#alerts}}', 'template: line 1, column 1: a section is not closed: `alerts`'), ('template = {{incident}}', 'template: line 1, column 1: no such name: `incident`'),
                         ('about = incidents\ntemplate = {{#alerts}}{{sensor}}{{/alerts}}', 'template: line 1, column 12: no such name: `sensor`'),
                         ('template = x\ntemplate_file = /x', 'template or template_file, and not both')):
            with self.subTest(key):
                code, said = self.try_it('hook', self.webhook(r, key + '\n'))
                self.assertEqual(code, 1)
                self.assertRegex(said, r'try.conf:\d+: .*' + re.escape(why))


class Quiet(Case):
    def hours(self, severity=40):
        """Quiet hours that have begun and last for hours."""
        now = time.gmtime()
        return f'quiet = {(now.tm_hour - 1) % 24:02}:00-{(now.tm_hour + 3) % 24:02}:00\nquiet_zone = UTC\nquiet_severity = {severity}\n'

    def test_what_comes_in_them_is_told_behind_them_if_it_stands(self):
        held, loud = self.receiver(), self.receiver()
        sections = lambda more: (self.webhook(held, more, 'held'), self.webhook(loud, more and self.hours(0), 'loud'))
        d = self.start(*sections(self.hours()), ends=-9)
        self.raise_all(d, 's0', 's1', 's2')
        self.settled(d)
        self.assertEqual((held.got, self.look(d, 'held')['quiet'], [e[2] for e in self.told(loud)]), ([], True, ['raised'] * 3))
        d.process.kill()
        d.process.wait(WAIT)
        d = self.start(*sections(self.hours()))  # which knows what it holds back
        self.feed(d, 30)  # over
        self.raise_all(d, 's0', 's1', 's2')  # again
        logged = self.logged(d)
        self.assertEqual(sorted({e[2] for e in logged if e[1] == 1}), ['cleared', 'raised'])
        self.settled(d)
        self.assertEqual((held.got, self.told(loud)), ([], logged))  # of which some are grave enough
        ack(d, 's1')
        self.reload(d, *sections(''))
        number = self.standing(d)
        standing = [e for e in logged if e[2] == 'raised' and e[1] == number[e[0]] and e[0] != 's1']
        self.assertEqual(sorted(e[0] for e in standing), ['s0', 's2'])
        until(lambda: self.told(held) == standing, 'what stands and nobody has seen')
        self.assertFalse(self.look(d, 'held')['quiet'])
        self.assertTrue(any('the quiet hours are over: sending 2 alerts' in line for line in d.log))
        self.feed(d, 30)
        until(lambda: ('s0', number['s0'], 'cleared') in self.told(held), 'its end')
        self.settled(d)
        self.assertEqual(self.told(loud)[:len(logged)], logged)
        self.assertEqual({e for e in self.told(held) if e[0] == 's1' and e[1] <= number['s1']}, set())
        self.assertEqual(len({a['key'] for a in held.alerts()}), len(held.alerts()))

    def test_ends_pass_and_people_hear_no_repeats(self):
        hook, people = self.receiver(), self.receiver()
        sections = lambda more: (self.webhook(hook, more + 'repeat = 1s\n'), f'[notify people]\ntype = slack\nurl = {people.url()}\ngather = 100ms\nrate = 6000\nrepeat = 1s\n{more}')
        d = self.start(*sections(''))
        self.feed(d, 44)
        until(lambda: hook.got and people.got, 'alerts')
        self.reload(d, *sections(self.hours()))
        until(lambda: self.look(d, 'people')['quiet'], 'quiet hours')
        before, heard = len(hook.got), len(people.got)
        until(lambda: len(hook.got) >= before + 2, 'a program to be told that they stand')
        self.assertEqual(len(people.got), heard)
        self.feed(d, 30)
        until(lambda: len([e for e in self.told(hook) if e[2] == 'cleared']) == 3, 'their ends')
        until(lambda: len(people.got) > heard, 'their ends, which people may hear')
        self.assertIn('over', people.got[-1][1]['text'])


class Groups(Case):
    def test_a_message_for_each_machine(self):
        r, people = self.receiver(), self.receiver()
        group = '[group hall]\nmatch = hall.(*).*\n'
        d = self.start(group, self.webhook(r, 'group_by = machine\n'), f'[notify people]\ntype = slack\nurl = {people.url()}\ngather = 1s\nrate = 6000\ngroup_by = machine\nresolved = no\n')
        self.feed(d, 60, ('hall.m1.a', 'hall.m1.b', 'hall.m2.a', 'yard/x', 'yard/y'))
        self.settled(d)
        got = {}
        for _, body in r.got:
            got.setdefault(body['group'], set()).update(a['sensor'] for a in body['alerts'])
        self.assertLessEqual(got.pop('yard'), {'yard/x', 'yard/y'})
        self.assertEqual(got, {'hall#m1': {'hall.m1.a', 'hall.m1.b'}, 'hall#m2': {'hall.m2.a'}})
        self.assertTrue(any(b['text'].startswith(('hall#m1: 2 alerts of 2 sensors\n', 'yard: 2 alerts of 2 sensors\n')) for _, b in people.got), people.got)
        with self.assertRaises(harness.NotReady) as e:
            self.start(self.webhook(r, 'group_by = machine\n'))
        self.assertIn('group_by = machine needs a [group NAME] section', '\n'.join(e.exception.log))


class PagerDuty(Case):
    def section(self, r, extra=''):
        key = self.file('key', 'R0UT1NGKEY\n')
        return f'[notify pager]\ntype = pagerduty\nurl = {r.url("/v2/enqueue")}\nsecret_file = {key}\ngather = 100ms\nrate = 600\n{extra}'

    def test_trigger_acknowledge_resolve(self):
        r = self.receiver()
        d = self.start(self.section(r, 'page = http://p.example/\ngive_up = 1m\n'))
        actions = lambda: [b['event_action'] for _, b in r.got]
        r.plan = [(429, {'Retry-After': '1'}), (202, {})]
        self.raise_all(d, 's0', 's1', 's2')
        until(lambda: len(r.seen) >= 2, 'a page')
        self.settled(d)
        self.assertEqual(self.look(d, 'pager')['answer'], '202')
        ack(d, 's0')
        time.sleep(1)
        ack(d, 's1')
        self.assertNotIn('acknowledge', actions())
        ack(d, 's2')
        until(lambda: actions() == ['acknowledge'], 'all to be acknowledged')
        self.feed(d, 30)
        until(lambda: actions() == ['acknowledge', 'resolve'], 'the end of all')
        self.raise_all(d, 's0', 's1', 's2')
        until(lambda: 'trigger' in actions()[2:], 'it to begin again')
        bodies = [b for _, b in r.got]
        self.assertEqual(bodies[2]['event_action'], 'trigger')
        self.assertEqual({b['routing_key'] for b in bodies}, {'R0UT1NGKEY'})
        self.assertEqual(len({b['dedup_key'] for b in bodies}), 1)
        payload = bodies[2]['payload']
        self.assertRegex(payload['summary'], r'^\d alerts of \d sensors$|^s\d: looks unlike before')
        self.assertEqual((payload['class'], bodies[2]['links'][0]['href'][:17]), ('score', 'http://p.example/'))
        self.assertIn(payload['severity'], ('critical', 'warning', 'info'))
        self.assertFalse(any('R0UT1NGKEY' in line for line in d.log))
        self.assertNotIn('Authorization', r.got[0][0])

    def test_what_is_given_up_has_no_secret_in_it(self):
        r = self.receiver()
        r.plan = [(400, {})]
        d = self.start(self.section(r))
        self.feed(d, 44)
        path = os.path.join(self.state, 'notify-pager.undelivered')
        until(lambda: os.path.exists(path) and os.path.getsize(path) > 0, path)
        with open(path, encoding='utf-8') as f:
            text = f.read()
        self.assertIn('trigger', text)
        self.assertNotIn('R0UT1NGKEY', text)

    def test_tried_and_refused(self):
        r = self.receiver()
        r.plan = [(202, {}), (202, {})]
        self.assertEqual(self.try_it('pager', self.section(r)), (0, 'pager took the message: 202\npager took its end: 202\n'))
        self.assertIn('group_by = all', self.try_it('pager', self.section(r, 'group_by = sensor\n'))[1])
        self.assertIn('needs secret_file', self.try_it('pager', '[notify pager]\ntype = pagerduty\n')[1])


@unittest.skipUnless(have_mqtt(), 'needs mosquitto and libmosquitto')
class Mqtt(Case):
    def setUp(self):
        super().setUp()
        self.ca = certificates.Authority(self.state, 'ca')
        certificate, key = self.ca.sign('server', names='IP:127.0.0.1')
        self.port, self.open = free_port(), free_port()
        passwords = os.path.join(self.state, 'passwords')
        subprocess.run(['mosquitto_passwd', '-c', '-b', passwords, 'hankeld', 'pass-1'], check=True, capture_output=True, timeout=WAIT)
        acl = self.file('acl', 'user hankeld\ntopic readwrite plant/#\ntopic read $SYS/#\n')
        self.conf = self.file('mosquitto.conf', f'per_listener_settings true\nuser root\nlistener {self.port} 127.0.0.1\ncafile {self.ca.certificate}\ncertfile {certificate}\nkeyfile {key}\n'
                              f'password_file {passwords}\nacl_file {acl}\nallow_anonymous false\nlistener {self.open} 127.0.0.1\nallow_anonymous true\n')
        self.password = self.file('password', 'pass-1\n')

    def broker(self):
        p = self.run_program(shutil.which('mosquitto', path=SBIN), '-c', self.conf)
        until(lambda: subprocess.run(['mosquitto_pub', '-p', str(self.open), '-t', 'x', '-m', 'y'], capture_output=True, timeout=WAIT, check=False).returncode == 0, 'the broker')
        return p

    def section(self, extra='', port=None, scheme='mqtts'):
        secret = f'ca = {self.ca.certificate}\nuser = hankeld\nsecret_file = {self.password}\n' if scheme == 'mqtts' else ''
        return f'[notify broker]\ntype = mqtt\nserver = {scheme}://127.0.0.1:{port or self.port}\ntopic = plant/alerts\ngather = 100ms\nrate = 6000\n{secret}{extra}'

    def retained(self):
        done = subprocess.run(['mosquitto_sub', '-p', str(self.open), '-t', 'plant/#', '--retained-only', '-W', '1', '-F', '%t\t%p'], capture_output=True, text=True, timeout=WAIT, check=False)
        return dict(line.split('\t', 1) for line in done.stdout.splitlines())

    def test_alerts_over_tls_retained_while_they_stand(self):
        d = self.start(self.section())
        names = ('s0', 'hall/m#1', 'a b+c')
        self.raise_all(d, *names)
        until(lambda: self.look(d, 'broker')['state'] == 'failing', 'nobody to be there')
        self.assertIn('refused', self.look(d, 'broker')['answer'])
        self.broker()
        heard = self.run_program('mosquitto_sub', '-p', str(self.open), '-t', 'plant/#', '-q', '1', '-F', '%r %t %p')
        self.settled(d)
        standing = self.retained()
        self.assertEqual(sorted(standing), ['plant/alerts/a b%2Bc/1', 'plant/alerts/hall/m%231/1', 'plant/alerts/s0/1'])
        self.assertEqual({(json.loads(p)['status'], json.loads(p)['sensor']) for p in standing.values()}, {('firing', n) for n in names})
        self.feed(d, 30, names)
        self.settled(d)
        self.assertEqual(self.retained(), {})
        self.assertRegex(self.look(d, 'broker')['answer'], '^acknowledged: [246]$')
        subprocess.run(['mosquitto_pub', '-p', str(self.open), '-t', 'plant/last', '-m', ''], check=True, timeout=WAIT)
        lines = []
        for line in heard.stdout:
            lines.append(line.rstrip('\n'))
            if 'plant/last' in line:
                break
        over = [line for line in lines if '"resolved"' in line]
        self.assertEqual(len(over), 3, lines)

    def test_what_a_broker_refuses_is_said(self):
        self.broker()
        self.assertEqual(self.try_it('broker', self.section()), (0, 'broker took the message: acknowledged: 1\n'))
        self.assertEqual(self.try_it('broker', self.section('mqtt_version = 3.1.1\n')), (0, 'broker took the message: acknowledged: 1\n'))
        self.assertEqual(self.try_it('broker', self.section(port=self.open, scheme='mqtt')), (0, 'broker took the message: acknowledged: 1\n'))
        self.assertEqual(self.retained(), {})
        code, said = self.try_it('broker', self.section().replace('plant/alerts', 'forbidden'))
        self.assertEqual((code, 'Not authorized' in said), (1, True), said)
        self.file('password', 'wrong\n')
        code, said = self.try_it('broker', self.section())
        self.assertEqual((code, 'Not authorized' in said), (1, True), said)
        code, said = self.try_it('broker', self.section().replace(self.ca.certificate, certificates.Authority(self.state, 'other').certificate))
        self.assertEqual((code, re.search('TLS|certificate|protocol', said) is not None), (1, True), said)
        code, said = self.try_it('broker', self.section(port=free_port(), scheme='mqtt'))
        self.assertEqual((code, 'refused' in said), (1, True), said)
        for keys, why in (('user = x\n', 'user needs secret_file'), ('topic = a/#\n', 'needs topic'), ('mqtt_version = 4\n', 'not 5 or 3.1.1')):
            section = self.section(scheme='mqtt').replace('topic = plant/alerts\n', '') + ('' if 'topic' in keys else 'topic = t\n') + keys
            self.assertIn(why, self.try_it('broker', section)[1])
        self.assertIn('is not sent unencrypted', self.try_it('broker', f'[notify broker]\ntype = mqtt\nserver = mqtt://broker.example:1883\ntopic = t\nuser = x\nsecret_file = {self.password}\n')[1])

    def test_a_broker_that_hangs_holds_up_nothing(self):
        broker = self.broker()
        d = self.start(self.section('timeout = 1s\n'))
        broker.send_signal(19)  # SIGSTOP
        self.raise_all(d, 's0', 's1', 's2')
        until(lambda: 'no answer within 1 s' in self.look(d, 'broker').get('answer', ''), 'the end of a try')
        broker.send_signal(18)
        self.settled(d)
        self.assertEqual(len(self.retained()), 3)


@unittest.skipUnless(shutil.which('rsyslogd', path=SBIN) and os.path.exists('/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so'), 'needs rsyslog and rsyslog-gnutls')
class SyslogOverTls(Case):
    """With rsyslog's driver gtls: its driver for OpenSSL (8.2302) closes descriptors twice, also those of others, and loses messages that it has read."""

    def test_with_certificates_of_both(self):
        ca = certificates.Authority(self.state, 'ca')
        certificate, key = ca.sign('server', names='IP:127.0.0.1')
        mine, my_key = ca.sign('hankeld')
        port, taken = free_port(), os.path.join(self.state, 'taken')
        path = self.file('rsyslog.conf', f'global(DefaultNetstreamDriver="gtls" DefaultNetstreamDriverCAFile="{ca.certificate}" DefaultNetstreamDriverCertFile="{certificate}" '
                         f'DefaultNetstreamDriverKeyFile="{key}")\nmodule(load="imtcp" StreamDriver.Name="gtls" StreamDriver.Mode="1" StreamDriver.AuthMode="x509/certvalid")\n'
                         f'input(type="imtcp" port="{port}" address="127.0.0.1")\ntemplate(name="all" type="string" string="%msgid%|%msg%\\n")\naction(type="omfile" file="{taken}" template="all")\n')
        section = f'[notify log]\ntype = syslog\nserver = tls://127.0.0.1:{port}\nca = {ca.certificate}\ncertificate = {mine}\nkey = {my_key}\ngather = 100ms\nrate = 6000\n' \
                  'template = {{sensor}} {{status}}\n'
        self.run_program(shutil.which('rsyslogd', path=SBIN), '-n', '-f', path, '-i', os.path.join(self.state, 'pid'))
        until(lambda: self.try_it('log', section)[0] == 0, 'rsyslogd')
        d = self.start(section)
        self.feed(d, 100)
        logged = self.logged(d)

        def lines():
            if not os.path.exists(taken):
                return []
            with open(taken, encoding='utf-8') as f:
                return [line.rstrip('\n').replace('| ', '|') for line in f if line.startswith(('alert|s', 'over|s'))]
        until(lambda: len(lines()) >= len(logged), 'all alerts')
        self.assertEqual(lines(), [('alert|%s firing' if e[2] == 'raised' else 'over|%s resolved') % e[0] for e in logged])
        code, said = self.try_it('log', section.replace(ca.certificate, certificates.Authority(self.state, 'other').certificate))
        self.assertEqual((code, 'certificate' in said), (1, True), said)


class SyslogOverTcp(Case):
    def serve(self, at_end, reads=True):
        """A server that reads each connection to its end, unless told not to, and then calls at_end with it."""
        server = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(server.close)

        def run():
            with contextlib.suppress(OSError):  # closed at the end of the test
                while True:
                    peer, _ = server.accept()
                    self.addCleanup(peer.close)
                    while reads and peer.recv(4096):
                        pass
                    at_end(peer)
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown, socket.SHUT_RDWR)
        return f'[notify log]\ntype = syslog\nserver = tcp://127.0.0.1:{server.getsockname()[1]}\ntimeout = 1s\n'

    def test_what_was_not_read_is_sent_again(self):
        def reset(peer):
            select.select([peer], [], [])  # what has come is not read
            peer.close()
        for section, expected, why in ((self.serve(lambda peer: peer.close()), 0, 'read by the server'), (self.serve(reset, reads=False), 1, 'reset the connection'),
                                       (self.serve(lambda peer: None), 1, 'left the connection open')):
            code, said = self.try_it('log', section)
            self.assertEqual((code, why in said), (expected, True), said)


setUpModule = test_incidents.setUpModule  # which makes the fleet


class Incidents(test_incidents.InDaemon):
    """Incidents of one fleet, sent to receivers of all types."""
    for name in dir(test_incidents.InDaemon):
        if name.startswith('test_'):  # which run where they stand
            locals()[name] = None

    def run_program(self, *command):
        return Case.run_program(self, *command)

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path, 0o600)
        return path

    def look_at_mails(self, d, mail, texts):
        """The mails have everything that the webhook got, each once: as text or, beyond the ten most severe of a mail, by number."""
        rows = until(lambda: (lambda r: r if r['mail']['events'] == r['webhook']['events'] == len(texts) else None)({r['name']: r for r in d.status()['notify']}),
                     'the mails to have all')
        left, told = list(texts), 0
        for _ in range(rows['mail']['messages']):
            sender, to, content = json.loads(mail.stdout.readline())
            lines = content.partition('\r\n\r\n')[2].splitlines()
            self.assertEqual((sender, to), ('a@b.example', ['c@d.example']))
            listed = [line for line in lines if line in texts]
            for line in listed:
                left.remove(line)
            more = [int(m[1]) for m in (re.fullmatch(r'and (\d+) more', line) for line in lines) if m]
            self.assertTrue(len(listed) == 10 if more else listed, content)
            self.assertEqual(len(lines), len(listed) + len(more) + (len(listed) + sum(more) > 1), content)
            told += len(listed) + sum(more)
        self.assertEqual(told, len(texts))

    @unittest.skipIf(harness.TSAN, 'a fleet is scored for minutes under ThreadSanitizer, whose threads the other tests have')
    def test_every_type(self):
        about, sections, kinds = 'about = incidents\ngather = 100ms\nrate = 6000\n', '', {}
        for kind in 'webhook', 'alertmanager', 'slack', 'teams', 'pagerduty':
            kinds[kind] = test_notify.Receiver()
            self.addCleanup(kinds[kind].end)
            key = f'secret_file = {self.file("key", "k")}\n' if kind == 'pagerduty' else ''
            sections += f'[notify {kind}]\ntype = {kind}\nurl = {kinds[kind].url("/" + kind)}\n{key}{about}'
        mail = log = broker = None
        if subprocess.run([PYTHON, '-c', 'import aiosmtpd'], capture_output=True, check=False).returncode == 0:
            port = free_port()
            mail = self.run_program(PYTHON, '-c', SMTP, str(port))
            self.assertEqual(mail.stdout.readline(), '[]\n')
            sections += f'[notify mail]\ntype = email\nserver = smtp://127.0.0.1:{port}\nfrom = a@b.example\nto = c@d.example\n{about}'
        if shutil.which('rsyslogd', path=SBIN):
            port, log = free_port(), os.path.join(self.folder.name, 'taken')
            path = self.file('rsyslog.conf', f'module(load="imtcp")\ninput(type="imtcp" port="{port}" address="127.0.0.1")\n'
                             f'template(name="all" type="string" string="%msgid%|%msg%\\n")\naction(type="omfile" file="{log}" template="all")\n')
            self.run_program(shutil.which('rsyslogd', path=SBIN), '-n', '-f', path, '-i', os.path.join(self.folder.name, 'pid'))
            sections += f'[notify log]\ntype = syslog\nserver = tcp://127.0.0.1:{port}\n{about}'
        if have_mqtt():
            port = free_port()
            broker = self.run_program(shutil.which('mosquitto', path=SBIN), '-p', str(port))
            sections += f'[notify broker]\ntype = mqtt\nserver = mqtt://127.0.0.1:{port}\ntopic = plant\n{about}'
        d = self.start(more=sections)
        self.feed(d)
        text = until(lambda: self.said(d), 'an incident')[0]
        until(lambda: len(self.said(d)) > 15, 'most messages')
        Case.settled(self, d)
        until(lambda: all(r['messages'] > 0 for r in d.status()['notify']), 'each to be told something')
        self.assertEqual(sum(r['given_up'] for r in d.status()['notify']), 0)
        self.assertIn(text, [a['text'] for a in kinds['webhook'].alerts()])
        self.assertIn(text, [a['annotations']['summary'] for _, b in kinds['alertmanager'].got for a in b])
        self.assertIn(text.split(' ')[0], ' '.join(b['text'] for _, b in kinds['slack'].got))
        self.assertTrue(any(b['attachments'] for _, b in kinds['teams'].got))
        pages = [b for _, b in kinds['pagerduty'].got]
        self.assertIn(text[:1024], [b['payload']['summary'] for b in pages if b['event_action'] == 'trigger'])
        for one in {b['dedup_key'] for b in pages}:
            actions = [b['event_action'] for b in pages if b['dedup_key'] == one]
            self.assertEqual((actions[0], 'resolve' in actions[:-1]), ('trigger', False), one)
        self.assertIn('resolve', [b['event_action'] for b in pages])
        stands = next(b['dedup_key'] for b in reversed(pages) if [x['event_action'] for x in pages if x['dedup_key'] == b['dedup_key']][-1] == 'trigger')
        alert = d.status()['alerts']['first'][0]
        ack(d, alert['sensor'])
        until(lambda: [b['dedup_key'] for _, b in kinds['pagerduty'].got if b['event_action'] == 'acknowledge'] == [stands], 'the page to be acknowledged')
        if mail:
            self.look_at_mails(d, mail, [a['text'] for a in kinds['webhook'].alerts()])
        if log:
            with open(log, encoding='utf-8') as f:
                self.assertTrue(any(line.startswith('incident|') and text in line for line in f))
        if broker:
            done = subprocess.run(['mosquitto_sub', '-p', str(port), '-t', 'plant/#', '--retained-only', '-W', '1', '-F', '%t %p'], capture_output=True, text=True, timeout=WAIT, check=False)
            self.assertTrue(all(re.match(r'plant/incident/\d+ \{', line) for line in done.stdout.splitlines()), done.stdout)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
