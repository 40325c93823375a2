"""Alerts whose message was set aside: what the receiver hears once it is back."""
import json
import os
import random
import subprocess
import threading
import time
import unittest

import harness
import test_notify
from harness import SECOND, START, WAIT, free_port, until
from test_notify import DETECTOR


class Deciding(test_notify.Handler):
    """Answers what `rule` says of the body."""
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['content-length'])))
        with self.server.lock:
            code = self.server.rule(body)
            self.server.seen.append((time.monotonic(), code, self.headers['Idempotency-Key'], body))
            if code < 300:
                self.server.got.append((dict(self.headers), body))
        self.send_response(code)
        self.send_header('content-length', '0')
        self.end_headers()


class Aside(test_notify.Notify):
    def deciding(self, rule, port=0):
        r = self.receiver(port)
        r.rule, r.RequestHandlerClass = rule, Deciding
        return r

    def names(self, body):
        return {a['sensor'] for a in body['alerts']}

    def is_aside(self, daemon, n):
        until(lambda: self.look(daemon)['aside'] == n and self.look(daemon)['waiting'] == 0, f'{n} to be set aside')

    def status(self, daemon):
        return subprocess.run([harness.HANKEL, 'status', '--from', f"127.0.0.1:{daemon.port['binary tcp']}"], capture_output=True, text=True, timeout=WAIT, check=True).stdout

    def level(self, daemon, seconds, names=('s0', 's1', 's2')):
        """Further points without an edge, so that the alerts end."""
        with daemon.client() as c:
            handles = c.register(*names)
            for t in range(self.now, self.now + seconds):
                c.send(harness.points(handles, [START + t * SECOND] * 3, [50 + (t * 7) % 5 * 0.02] * 3))
            self.now += seconds
            until(lambda: c.status()['points']['pending'] == 0, 'scores')

    def test_what_was_set_aside_and_stands_is_sent_again(self):
        port, names = free_port(), {'s0', 's1', 's2'}
        section = f'[notify hook]\ntype = webhook\nurl = http://127.0.0.1:{port}/a\ngather = 100ms\nrate = 6000\ngive_up = 1s\n'
        d = self.start(section, ends=-9)
        self.feed(d, 44)
        until(lambda: self.look(d)['given_up'] >= 3, 'it to give up')
        until(lambda: self.look(d)['waiting'] == 0, 'its place')
        status = subprocess.run([harness.HANKEL, 'status', '--from', f"127.0.0.1:{d.port['binary tcp']}"], capture_output=True, text=True, timeout=WAIT).stdout
        self.assertRegex(status, r'(?m)^receivers +3 alerts or ends wait to be sent to hook again: their messages are in notify-hook.undelivered$')
        d.process.kill()
        d.process.wait(WAIT)
        with open(os.path.join(self.state, 'notify-hook.undelivered'), encoding='utf-8') as f:
            lines = len(f.readlines())
        d = self.start(section)
        until(lambda: self.look(d)['tries_failed'] > 1, 'it to try')
        self.assertEqual(self.look(d)['aside'], 3)
        r = self.receiver(port)
        until(lambda: {a['sensor'] for a in r.alerts()} == names, 'what stands')
        self.assertEqual({(a['status'], a['again']) for a in r.alerts()}, {('firing', True)})
        until(lambda: any('set aside and still stand are delivered' in line for line in d.log), 'the log')
        self.assertEqual(self.look(d)['aside'], 0)
        self.feed(d, 30)
        until(lambda: len(self.told(r)) >= 6, 'the ends')
        self.assertEqual(sorted(self.told(r)), sorted((name, 1, kind) for name in names for kind in ('raised', 'cleared')))
        with open(os.path.join(self.state, 'notify-hook.undelivered'), encoding='utf-8') as f:
            self.assertEqual(len(f.readlines()), lines)

    def test_what_was_refused_is_sent_again_after_a_reload(self):
        r = self.receiver()
        r.plan = [(404, {})] * 9
        d = self.start(self.webhook(r))
        self.feed(d, 44)
        until(lambda: self.look(d)['given_up'] == 3, 'it to be refused')
        seen, r.plan = len(r.seen), []
        time.sleep(0.6)
        self.assertEqual(len(r.seen), seen)  # a wrong address is not tried again and again
        d.configure(DETECTOR + self.webhook(r, 'timeout = 5s\n'), self.keys())
        with d.client() as c:
            self.assertTrue(c.reload()[0])
        until(lambda: {a['sensor'] for a in r.alerts()} == {'s0', 's1', 's2'}, 'what stands')
        self.assertTrue(all(a['again'] for a in r.alerts()))

    def test_a_refusal_in_the_middle(self):
        """Each message is tried, one that is refused beside others is forgotten aloud, and none comes twice."""
        down = [True]
        r = self.deciding(lambda b: 401 if down[0] else 400 if 's1' in self.names(b) else 200)
        d = self.start(self.webhook(r, 'group_by = sensor\n'))
        self.feed(d, 44)
        self.is_aside(d, 3)
        down[0], self.now = False, 0
        self.feed(d, 44, ('new',))
        until(lambda: {a['sensor'] for a in r.alerts()} == {'new', 's0', 's2'}, 'all others')
        until(lambda: self.look(d)['forgotten'] == 1, 'the refused one to be told')
        self.assertTrue(any('1 alerts or ends that were set aside are not sent again: the receiver refuses them' in line for line in d.log))
        self.assertRegex(self.status(d), r'(?m)^receivers .*; 1 alerts or ends that were set aside are not sent to hook again: read notify-hook.undelivered$')
        time.sleep(2)
        self.assertEqual(sorted(a['sensor'] for a in r.alerts()), ['new', 's0', 's2'])

    def test_one_that_always_fails_delays_nothing(self):
        """New alerts pass it, what is behind it arrives, what was delivered is not repeated, and its attempts have one key and growing pauses."""
        down = [True]
        r = self.deciding(lambda b: 503 if down[0] else 500 if 's1' in self.names(b) else 200)
        d = self.start(self.webhook(r, 'group_by = sensor\ngive_up = 5s\n'))
        self.feed(d, 44)
        self.is_aside(d, 3)
        down[0] = False
        until(lambda: {a['sensor'] for a in r.alerts()} == {'s0', 's2'}, 'the others')
        begun = time.monotonic()
        for name in 'new0', 'new1', 'new2', 'new3':
            self.now = 0
            self.feed(d, 44, (name,))
            fed = time.monotonic()
            until(lambda name=name: any(a['sensor'] == name for a in r.alerts()), 'the new one')
            self.assertLess(time.monotonic() - fed, 4)  # below give_up
            time.sleep(1)
        until(lambda: len([1 for when, code, *_ in r.seen if code == 500 and when > begun]) >= 2, 'attempts')
        tries = [(when, key) for when, code, key, body in r.seen if self.names(body) == {'s1'} and key.endswith('-again-1')]
        self.assertEqual(len({key for _, key in tries}), 1)
        self.assertGreater(tries[-1][0] - tries[-2][0], 1.8 * (tries[1][0] - tries[0][0]) - 1)
        self.assertEqual(len([1 for a in r.alerts() if a['sensor'] in ('s0', 's2')]), 2)
        self.assertEqual(self.look(d)['aside'], 1)

    def test_events_of_others_do_not_hold_it_up(self):
        port = free_port()
        d = self.start(f'[notify hook]\ntype = webhook\nurl = http://127.0.0.1:{port}/a\nmatch = s*\ngather = 100ms\nrate = 6000\ngive_up = 1s\n')
        self.feed(d, 44)
        self.is_aside(d, 3)
        names, done, errors = tuple(f'x{i}' for i in range(2000)), threading.Event(), []

        def others():
            try:
                with d.client() as c:
                    handles = [h for i in range(0, len(names), 1000) for h in c.register(*names[i:i + 1000])]
                    t = 0
                    while not done.wait(0.05):
                        noise = random.Random(t)
                        c.send(harness.points(handles, [START + t * SECOND] * len(handles), [((t + i) // 100 % 2) * 50 + noise.gauss(0, 0.1) for i in range(len(handles))]))
                        t += 1
            except Exception as e:  # pylint: disable=broad-except
                errors.append(e)
        thread = threading.Thread(target=others)
        thread.start()
        try:
            begun = d.status()['durability']['events_last']
            until(lambda: d.status()['durability']['events_last'] > begun + 100, 'events of others')
            r = self.receiver(port)
            until(lambda: {a['sensor'] for a in r.alerts()} == {'s0', 's1', 's2'}, 'what was set aside')
            there = d.status()['durability']['events_last']
            until(lambda: d.status()['durability']['events_last'] > there, 'more events: the others go on')
        finally:
            done.set()
            thread.join(WAIT)
        self.assertEqual(errors, [])

    def test_severe_ones_pass_quiet_hours(self):
        for severity, n in ('0.1', 1), ('9', 0):
            with self.subTest(severity=severity):
                taken, down = [], [True]
                r = self.deciding(lambda b, down=down: 404 if down[0] else 200)
                hours = 'quiet = 00:00-24:00\nquiet_zone = UTC\n' + f'quiet_severity = {severity}\n'
                section = f'[notify people]\ntype = slack\nurl = {r.url()}\ngather = 100ms\nrate = 6000\n'
                self.now = 0
                names = [f's{severity}{i}' for i in range(3)]
                d = self.start(section)
                self.feed(d, 44, names)
                until(lambda: self.look(d, 'people')['aside'] == 3, 'them to be set aside')
                down[0] = False
                d.configure(DETECTOR + section + hours, self.keys())
                with d.client() as c:
                    self.assertTrue(c.reload()[0])
                until(lambda: self.look(d, 'people')['quiet'], 'quiet hours')
                if n:
                    until(lambda: r.got, 'what is severe')
                time.sleep(2)
                self.assertEqual(len(r.got), n, taken)
                d.stop()
                for name in os.listdir(self.state):
                    if name.startswith('notify-'):
                        os.unlink(os.path.join(self.state, name))

    def test_ends_are_told(self):
        """Of alerts that the receiver knows, also after a restart; those that it never heard of come and go unheard."""
        down = [False]
        r = self.deciding(lambda b: 503 if down[0] else 200)
        section = self.webhook(r, 'give_up = 1s\n')
        d = self.start(section, ends=-9)
        self.feed(d, 44)
        until(lambda: len(r.alerts()) >= 3, 'them to be raised')
        down[0] = True
        self.level(d, 80)
        self.is_aside(d, 3)
        d.process.kill()
        d.process.wait(WAIT)
        down[0] = False
        d = self.start(section)
        until(lambda: len(r.alerts()) >= 6, 'the ends')
        self.assertEqual(sorted(self.told(r)), sorted((f's{i}', 1, kind) for i in range(3) for kind in ('raised', 'cleared')))
        self.assertFalse(any(a['again'] for a in r.alerts() if a['status'] == 'resolved'))
        self.is_aside(d, 0)
        down[0] = True
        self.now = 0
        with d.client() as c:
            handles = c.register('u0')
            c.send(harness.points(handles * 130, [START + t * SECOND for t in range(130)], [(t >= 40) * 50 + (t * 7) % 5 * 0.02 for t in range(130)]))
        until(lambda: ('u0', 1, 'cleared') in self.logged(d), 'it to end')
        until(lambda: self.look(d)['waiting'] == 0 and self.look(d)['aside'] == 0 and self.look(d)['given_up'] >= 2, 'both to be set aside')
        down[0] = False
        time.sleep(2)
        self.assertNotIn('u0', {a['sensor'] for a in r.alerts()})

    def test_a_pager_is_closed(self):
        down = [False]
        r = self.deciding(lambda b: 503 if down[0] else 202)
        key = os.path.join(self.state, 'key')
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='utf-8') as f:
            f.write('R0UT1NGKEY\n')
        d = self.start(f'[notify hook]\ntype = pagerduty\nurl = {r.url("/v2/enqueue")}\nsecret_file = {key}\ngather = 100ms\nrate = 6000\ngive_up = 1s\n')
        self.feed(d, 44)
        until(lambda: d.status()['alerts']['standing'] == 3 and self.look(d)['waiting'] == 0 and r.got, 'a page')
        down[0] = True
        self.level(d, 80)
        until(lambda: d.status()['alerts']['standing'] == 0, 'the end')
        self.is_aside(d, 1)
        down[0] = False
        until(lambda: r.got[-1][1]['event_action'] == 'resolve', 'it to be closed')
        self.assertEqual(len({b['dedup_key'] for _, b in r.got}), 1)

    def test_pages_of_incidents_are_closed(self):
        """Each incident is one of the pager: the end of one that was set aside comes after a restart, too, and one that came and went while the pager was
        away is not told."""
        down = [False]
        r = self.deciding(lambda b: 503 if down[0] else 202)
        key = os.path.join(self.state, 'key')
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='utf-8') as f:
            f.write('R0UT1NGKEY\n')
        section = '[incidents]\nbudget = 1000/day\ninterval = 1s\n' \
                  f'[notify hook]\ntype = pagerduty\nabout = incidents\nurl = {r.url("/v2/enqueue")}\nsecret_file = {key}\ngather = 100ms\nrate = 6000\ngive_up = 1s\n'
        d = self.start(section, ends=-9)

        def pages():
            with r.lock:
                return [(b['event_action'], b['dedup_key']) for _, b in r.got]
        self.feed(d, 44)
        until(lambda: pages() and self.look(d)['waiting'] == 0, 'a page')
        down[0] = True
        self.level(d, 200)
        until(lambda: d.status()['incidents']['open'] == 0, 'the end')
        self.is_aside(d, 1)
        d.process.kill()
        d.process.wait(WAIT)
        d = self.start(section)
        until(lambda: self.look(d)['tries_failed'] > 0, 'it to try')
        self.is_aside(d, 1)
        down[0] = False
        until(lambda: pages()[-1][0] == 'resolve', 'it to be closed')
        self.is_aside(d, 0)
        self.assertEqual(({a for a, _ in pages()[:-1]}, len({k for _, k in pages()})), ({'trigger'}, 1), pages())
        down[0], before = True, len(pages())
        self.feed(d, 40, ('t0', 't1', 't2'))  # an edge is at 280
        until(lambda: d.status()['incidents']['open'] == 1, 'another one')
        until(lambda: self.look(d)['given_up'] > 0, 'its page to be set aside')
        self.level(d, 200, ('t0', 't1', 't2'))
        until(lambda: d.status()['incidents']['open'] == 0, 'its end')
        self.is_aside(d, 0)
        down[0] = False
        time.sleep(2)
        self.assertEqual(pages()[before:], [])

    def test_a_repeat_counts(self):
        """An alert that `repeat` has sent is not sent once more because its message was set aside."""
        down = [True]
        r = self.deciding(lambda b: 404 if down[0] else 200)
        d = self.start(self.webhook(r, 'repeat = 1s\n'))
        self.feed(d, 44)
        self.is_aside(d, 3)
        down[0] = False
        self.is_aside(d, 0)
        self.assertEqual([h['Idempotency-Key'] for h, _ in r.got if h['Idempotency-Key'].endswith('-again-1')], [])

    def test_what_the_log_has_deleted_is_told(self):
        names = tuple(f'n{i:04}' for i in range(3000))
        r = self.deciding(lambda b: 404)
        d = self.daemon(DETECTOR + self.webhook(r, 'match = s*\n'), keys=self.keys() + 'event_log = 1MiB\nsnapshot = 1s\n')
        self.feed(d, 44)
        self.is_aside(d, 3)
        self.now = 0
        for _ in range(14):
            self.feed(d, 40, names)
            if d.status()['durability']['events_first'] > 3:
                break
            time.sleep(1)
        self.assertGreater(d.status()['durability']['events_first'], 3)
        r.rule = lambda b: 200
        d.configure(DETECTOR + self.webhook(r, 'match = s*\ntimeout = 5s\n'), self.keys() + 'event_log = 1MiB\nsnapshot = 1s\n')
        with d.client() as c:
            self.assertTrue(c.reload()[0])
        self.is_aside(d, 0)
        self.assertEqual((self.look(d)['forgotten'], r.alerts()), (3, []))
        self.assertTrue(any('3 alerts or ends that were set aside are not sent again: the event log has deleted them' in line for line in d.log))


if __name__ == '__main__':
    harness.main(needs_gpu=False)
