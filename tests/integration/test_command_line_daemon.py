#!/usr/bin/env python3
"""hankel with a daemon: feed, tail and status, and the demo; wrong options of hankeld."""
import gzip
import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
from harness import SCORED, SECOND, START, UNSCORED

MACHINE = os.path.join(harness.DATA, 'machine_temperature_system_failure.csv')
DETECTOR = 'window=24,alert=0.6'


def listeners(port):
    return f'\n[listen binary]\nprotocol = binary\naddress = 127.0.0.1:{port}\n'


class Usage(unittest.TestCase):
    def test_the_daemon_names_the_option_at_fault(self):
        unknown = 'no such option, or not a clear one'
        for arguments, said in (('--chek', f'--chek: {unknown}; did you mean --check?'), ('-x', f'-x: {unknown}'), ('-xy', f'-xy: {unknown}'), ('-cfile -xy', f'-xy: {unknown}'),
                                ('--c', f'--c: {unknown}; did you mean --config?'), ('--check=x', '--check=x: takes no value'), ('-c', '-c: a FILE is missing')):
            run = subprocess.run([harness.HANKELD, *arguments.split()], capture_output=True, text=True, timeout=harness.WAIT, check=False)
            self.assertEqual((run.returncode, run.stderr), (2, f'hankeld: {said} (see hankeld --help)\n'))

    def test_every_option_is_in_the_help(self):
        def of(*command):
            return subprocess.run([harness.HANKEL, *command, '--help'], capture_output=True, text=True, timeout=harness.WAIT, check=True).stdout

        commands = re.findall(r'^  ([a-z]+)  ', of(), re.M)
        helps = ''.join(of(command) for command in commands) + of('model', 'fit')
        sources = [os.path.join(folder, file) for folder, _, files in os.walk(os.path.join(harness.ROOT, 'daemon', 'cli')) for file in files if file.endswith(('.c', '.h'))]
        taken = {option for source in sources for option in re.findall(r'\{ "([a-z-]+)",\s+(?:no|required)_argument', open(source, encoding='utf-8').read())}
        self.assertGreater(len(taken), 40)
        self.assertEqual({option for option in taken if not re.search(f'--{option}\\b', helps)}, set())

    def test_a_file_that_is_not_of_a_state_folder(self):
        run = subprocess.run([harness.HANKEL, 'state', 'verify', MACHINE], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual((run.returncode, run.stdout), (1, ''))
        self.assertIn('no file of a state folder: these are .hks, .hkj, .hke and maintenance', run.stderr)

    def test_a_library_that_is_needed_and_is_not_there_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            packed = os.path.join(folder, 'a.csv.gz')
            with gzip.open(packed, 'wt') as f:
                f.write('time,value\n1,2\n')
            config = os.path.join(folder, 'h.conf')
            with open(config, 'w', encoding='utf-8') as f:
                f.write('[daemon]\nbackend = cpu\n')
            model = os.path.join(folder, 'a.model')
            with open(model, 'w', encoding='utf-8') as f:
                f.write('fluid 850\nunits bar m3/h\nedge a b 6000 0.5 0.018 1000 6\nsensor a/p p a boundary\nsensor b/p p b boundary\nsensor a/q q a check\n')
            field = f'[detector a]\nmatch = *\n[detector b]\nmatch = none\nalgorithm = shift\n[field f]\nmatch = *\noperator = model\nfile = {model}\ndetector = b\n'
            webhook = 'durability = snapshot\nstate = /nowhere\n[notify a]\ntype = webhook\nurl = http://127.0.0.1:1/\n'
            for file, said, command, text in (
                    ('libcurl.so.4', 'h.conf:5: [notify a]: ', 'hankeld', webhook), ('libglib-2.0.so.0', 'zones other than local and UTC need ', 'hankeld', f'{webhook}quiet_zone = Europe/Berlin\n'),
                    ('librdkafka.so.1', '[cluster] ', 'hankeld', '[cluster]\nengine = kafka\nrole = gateway\nbrokers = 127.0.0.1:1\n'),
                    ('libopenblas.so.0', '[detector a]: algorithm = svd: ', 'hankeld', '[detector a]\nmatch = *\nalgorithm = svd\n'),
                    ('libopenblas.so.0', 'algorithm = svd: ', 'replay --detector algorithm=svd', ''), ('liblapacke.so.3', f'[field f]: file: {model}: ', 'hankeld', field),
                    ('liblapacke.so.3', f'{model}: ', f'model simulate {model}', ''), ('liblapacke.so.3', 'backend = reference: ', 'replay --detector window=8 --backend reference', ''),
                    ('libarchive.so.13', 'cannot be unpacked: ', 'replay --detector window=8', '')):
                missing = os.path.join(folder, file)  # a file that is none is taken for the library, as one that is damaged would be
                open(missing, 'w', encoding='utf-8').close()
                arguments = [harness.HANKEL, *command.split()] + [packed] * command.startswith('replay')
                if command == 'hankeld':
                    with open(config, 'a', encoding='utf-8') as f:
                        f.write(text)
                    arguments = [harness.HANKELD, '-c', config, '--check']
                run = subprocess.run(arguments, capture_output=True, text=True, timeout=harness.WAIT, check=False, env={**os.environ, 'LD_LIBRARY_PATH': folder})
                with self.subTest(file):
                    self.assertGreater(run.returncode, 0)
                    self.assertIn(f'{said}{file}', run.stderr)
                    self.assertNotIn(f'{file} cannot be loaded: {file}', run.stderr)
                os.remove(missing)
                with open(config, 'w', encoding='utf-8') as f:
                    f.write('[daemon]\nbackend = cpu\n')


class Talking(harness.Case):
    def address(self, daemon):
        return f"127.0.0.1:{daemon.port['binary tcp']}"

    def hankel(self, command, daemon, *arguments, data=None):
        where = '--to' if command == 'feed' else '--from'
        return subprocess.run([harness.HANKEL, command, where, self.address(daemon), *arguments], input=data, capture_output=True,
                              text=True, timeout=harness.WAIT)

    def tail(self, daemon, *arguments):
        """A running tail that has subscribed. Its output is collected in `lines`, its messages in `said`."""
        process = subprocess.Popen([harness.HANKEL, 'tail', '--from', self.address(daemon), *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        process.lines, process.said = [], []
        process.readers = [threading.Thread(target=lambda s, to: to.extend(map(str.rstrip, iter(s.readline, ''))), args=a, daemon=True)
                           for a in ((process.stdout, process.lines), (process.stderr, process.said))]
        for reader in process.readers:
            reader.start()
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        harness.until(lambda: any('subscribed' in line for line in process.said), 'tail to subscribe')
        return process

    def interrupt(self, tail):
        tail.send_signal(signal.SIGINT)
        code = tail.wait(harness.WAIT)
        for reader in tail.readers:
            reader.join(harness.WAIT)
        return code

    def test_another_listener_than_the_binary_one_is_a_failure_that_says_so(self):
        d = self.daemon(harness.section('all', '*', DETECTOR))
        run = subprocess.run([harness.HANKEL, 'status', '--from', f"127.0.0.1:{d.port['line tcp']}"], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual((run.returncode, run.stdout), (1, ''))
        self.assertIn("is this the daemon's binary listener", run.stderr)

    def test_a_listener_that_answers_with_lines_is_a_failure_that_says_so(self):
        """Answers as the text listener does if the bytes that it gets contain an LF."""
        def answer(listener):
            with listener.accept()[0] as peer:
                peer.recv(1)
                peer.sendall(b'{"error":"this is no command of the text protocol"}\n')
                peer.recv(1 << 16)
        with socket.create_server(('127.0.0.1', 0)) as listener:
            listener.settimeout(harness.WAIT)
            thread = threading.Thread(target=answer, args=(listener,), daemon=True)
            thread.start()
            run = subprocess.run([harness.HANKEL, 'status', '--from', f'127.0.0.1:{listener.getsockname()[1]}'], capture_output=True, text=True,
                                 timeout=harness.WAIT)
            thread.join(harness.WAIT)
        self.assertEqual((run.returncode, run.stdout), (1, ''))
        self.assertIn("is this the daemon's binary listener", run.stderr)

    def test_names_do_not_turn_the_text_around_them(self):
        d = self.daemon(harness.section('all', '*', DETECTOR))
        tails = [self.tail(d, *options) for options in ((), ('--format', 'jsonl'))]
        name, turns = 'bank\u202egpj.\u2066x\u061c\u2028y \U0001f600', re.compile('[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\x80-\x9f]')
        with d.connect('line tcp') as s:
            s.sendall(f'{name.replace(" ", chr(92) + " ")} value=1 1000\n'.encode())
        harness.until(lambda: all(any('bank' in line for line in tail.lines) for tail in tails), 'both tails show it')
        harness.until(lambda: any('its times are in January 1970' in line for line in d.log), 'the log names it')
        for tail in tails:
            self.assertEqual(self.interrupt(tail), 0)
        text, jsonl = ([line for line in tail.lines if 'bank' in line][0] for tail in tails)
        log = [line for line in d.log if 'bank' in line][0]
        for shown in (text, log):
            self.assertIn('bank<U+202E>gpj.<U+2066>x<U+061C><U+2028>y', shown)
            self.assertIn('\U0001f600', shown)
        for shown in (text, log, jsonl):
            self.assertIsNone(turns.search(shown), shown)
        self.assertEqual(json.loads(jsonl)['sensor'].replace(chr(92), ''), name)

    def test_what_tail_shows_is_what_replay_prints(self):
        d = self.daemon(harness.section('all', '*', DETECTOR))
        tail, plain = self.tail(d, '--format', 'csv'), self.tail(d, '--events')
        fed = self.hankel('feed', d, MACHINE)
        self.assertEqual((fed.returncode, fed.stderr), (0, ''))
        self.assertRegex(fed.stdout, r'^22695 points of 1 sensor in [\d.]+ s: \d+ points a second\n12 points were late [^\n]*\n$')
        want = subprocess.run([harness.HANKEL, 'replay', '--backend', harness.BACKEND, '--detector', DETECTOR, MACHINE],
                              capture_output=True, text=True, timeout=harness.WAIT).stdout.splitlines()
        want = ['sensor,time,score,state'] + [line if line.startswith('#') else re.sub(r'^(\w+,\d+),[^,]*', r'\1', line) for line in want[1:]]
        harness.until(lambda: len(tail.lines) >= len(want), 'all rows')
        self.assertEqual(self.interrupt(tail), 0)
        rows = [line for line in tail.lines if not line.startswith('#')]
        events = [line for line in tail.lines if line.startswith('#')]
        self.assertEqual(rows, [line for line in want if not line.startswith('#')])
        self.assertEqual(events, [line for line in want if line.startswith('#')])
        self.assertTrue(events)
        harness.until(lambda: len(plain.lines) >= len(events), 'all events')
        self.assertEqual(self.interrupt(plain), 0)
        for line in plain.lines:
            self.assertRegex(line, r', score [\d.]+ times its threshold')  # the margin
            self.assertNotIn('%', line)  # no probability is shown
        status = json.loads(self.hankel('status', d, '--json').stdout)
        self.assertEqual(self.balanced(status)['in'], 22695)
        table = self.hankel('status', d, '--all')
        self.assertEqual(table.returncode, 0)
        self.assertRegex(table.stdout, r'\n  in +22,695\n')
        self.assertRegex(table.stdout, r'\nudp +nothing\n')

    def test_since_without_a_log_of_events_says_so(self):
        d = self.daemon(harness.section('all', '*', DETECTOR))
        self.assertIn('no log of events (durability = none)', self.tail(d, '--since', '0').said[0])

    def test_a_tail_that_may_wait_for_ever_says_so(self):
        """With a glob that no sensor matches, and for incidents of a daemon that makes none."""
        d = self.daemon(harness.section('all', '*', DETECTOR))
        self.assertEqual(self.hankel('feed', d, '-', data=f'time,pump\n{START // SECOND},1\n').returncode, 0)
        for arguments, words in ((('--match', 'pmup*'), 'no sensor has a name that matches pmup* so far'), (('--match', 'pu?p'), ''), ((), ''),
                                 (('--incidents',), 'the daemon makes no incidents')):
            tail = self.tail(d, *arguments)
            if words:
                harness.until(lambda tail=tail, words=words: any(words in line for line in tail.said), words)
            else:
                self.assertEqual(self.hankel('status', d).returncode, 0)
            self.assertEqual(self.interrupt(tail), 0)
            self.assertEqual(len(tail.said), 2 if words else 1, tail.said)

    def test_tail_chooses(self):
        d = self.daemon(harness.section('all', '*', 'window=4,gap=4,rank=1,alert=0.5,signal=0'))
        tails = {name: self.tail(d, '--format', 'jsonl', *options) for name, options in
                 [('all', ()), ('match', ('--match', 'b*')), ('score', ('--min-score', '0.2')), ('events', ('--events',))]}
        text = 'time,a,b1\n' + ''.join(f'{START // SECOND + i},{i % 3 + (i > 30) * (i * 7 % 5)},{i % 4}\n' for i in range(60))
        self.assertEqual(self.hankel('feed', d, '-', data=text).returncode, 0)
        harness.until(lambda: d.status()['points']['pending'] == 0, 'the scores')
        told = d.status()['events']
        self.assertGreater(told['raised'], 0)
        harness.until(lambda: len(tails['all'].lines) >= 120 + told['raised'] + told['cleared'], 'all results')
        items = [json.loads(line) for line in tails['all'].lines]
        self.assertEqual(sum('event' not in i for i in items), 120)
        self.assertEqual(items[0]['value'], 0)
        for name, wanted in (('all', lambda i: True), ('match', lambda i: i['sensor'] == 'b1'), ('events', lambda i: 'event' in i),
                             ('score', lambda i: 'event' in i or i['score'] is not None and i['score'] >= 0.2)):
            want = [i for i in items if wanted(i)]
            harness.until(lambda: len(tails[name].lines) >= len(want), name)
            self.assertEqual(self.interrupt(tails[name]), 0)
            self.assertEqual([json.loads(line) for line in tails[name].lines], want, name)

    def test_a_live_pipe_is_sent_as_it_comes(self):
        d = self.daemon()
        feed = subprocess.Popen([harness.HANKEL, 'feed', '--to', self.address(d), '--sensor', 'pipe', '-'], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, bufsize=1)
        with d.client() as watcher:
            watcher.subscribe(SCORED | UNSCORED)
            for i in range(1, 6):
                feed.stdin.write(f'{i}\n')
                watcher.wait_results(i)
            feed.stdin.close()
            self.assertEqual(feed.wait(harness.WAIT), 0)
            self.assertEqual({r[0] for r in watcher.results}, {'pipe'})
        feed.stdout.close()

    def test_the_manual_page_sends_what_a_logger_says_on_every_run(self):
        d = self.daemon()
        with open(os.path.join(harness.ROOT, 'conf', 'man', 'hankel.1.scd')) as page:
            example = next(line for line in page if 'my-logger' in line)
        example = example.replace('hankel feed', f'{harness.HANKEL} feed --to {self.address(d)}').replace('my-logger', 'seq 5')
        for run in (1, 2):
            self.assertEqual(subprocess.run(['bash', '-c', example], capture_output=True, timeout=harness.WAIT).returncode, 0)
            points = harness.until(lambda: (p := d.status()['points'])['pending'] == 0 and p, 'the scores')
            self.assertEqual((points['unscored'], points['late'], points['rejected']), (5 * run, 0, 0))

    def test_rates(self):
        d = self.daemon()
        text = ''.join(f'{START // SECOND + i},{i % 5}\n' for i in range(200))
        for rate, least in (('400', 0.4), ('300x', 0.6)):
            begin = time.monotonic()
            run = self.hankel('feed', d, '--rate', rate, '-', data=f'time,at {rate}\n{text}')
            took = time.monotonic() - begin
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertGreater(took, least)
            self.assertLess(took, least + harness.WAIT / 2)

    def test_what_the_daemon_refuses_is_told(self):
        d = self.daemon(harness.section('pumps', 'pump*', 'window=8'))
        run = self.hankel('feed', d, '-', data='time,pump 1,fan 1\n1,2,3\n2,3,4\n')
        self.assertEqual(run.returncode, 1)
        self.assertIn('fan 1', run.stderr)
        self.assertIn('2 points were not taken', run.stderr)
        harness.until(lambda: d.status()['points']['in'] >= 2, 'the points of pump 1')

    def test_what_changed_nothing_is_told_and_is_a_failure_when_it_is_most(self):
        d = self.daemon('[detector all]\nmatch = *\nalgorithm = ika, graph, shift\nwindow = 8\n')
        rows = [f'{START // SECOND + i},{i % 5},{i % 7}\n' for i in range(400)]
        first = self.hankel('feed', d, '-', data='time,a,b\n' + ''.join(rows))
        self.assertEqual((first.returncode, first.stderr), (0, ''))
        run = self.hankel('feed', d, '-', data='time,a,c\n' + ''.join(rows[:300]) + f'{START // SECOND + 300},nan,1\n')
        self.assertEqual(run.returncode, 0, run.stderr)  # it fails only if most points are late, and half of them is not most
        self.assertIn('300 points were late', run.stdout)  # without those of the companions
        again = self.hankel('feed', d, '-', data='time,a,b\n' + ''.join(rows))
        self.assertEqual(again.returncode, 1)
        self.assertIn('800 points were late', again.stdout)
        self.assertIn('most of the points were late or rejected', again.stderr)
        self.assertNotIn('rejected', again.stdout)
        run = self.hankel('feed', d, '-', data='time,x,y\n' + ''.join(f'{START // SECOND + i},nan,{"inf" if i < 6 else 1}\n' for i in range(9)))
        self.assertEqual(run.returncode, 1)
        self.assertIn('15 points were rejected', run.stdout)

    def test_files_with_one_header_do_not_become_one_sensor(self):
        d = self.daemon()
        names = ('pump1.csv', 'pump2.csv')
        for name in names:
            with open(os.path.join(d.directory.name, name), 'w') as file:
                file.write('time,flow\n' + ''.join(f'{START // SECOND + i},{i % 5}\n' for i in range(60)))
        run = self.hankel('feed', d, *(os.path.join(d.directory.name, name) for name in names))
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertIn('120 points of 2 sensors', run.stdout)
        run = self.hankel('feed', d, '--long', 'tag,value', '-', data='time,tag,value\n1,p,1\n1,q,2\n2,p,3\n')
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertIn('3 points of 2 sensors', run.stdout)

    def test_status_opens_with_five_lines_and_the_log_has_a_line_for_each_alert(self):
        d = self.daemon('[detector all]\nmatch = *\nalgorithm = ika, graph\nwindow = 8\nalert = 0.5\n')
        rows = ''.join(f'{START // SECOND + i},{math.sin(i * (.3 if i < 400 else 1.1)):.6f}\n' for i in range(600))
        self.assertEqual(self.hankel('feed', d, '-', data='time,a\n' + rows).returncode, 0)
        self.hankel('feed', d, '-', data='time,a\n' + ''.join(rows.splitlines(True)[:7]) + f'{START // SECOND + 700},1\n')
        lines = self.hankel('status', d).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ['healthy', 'sensors', 'points', 'refused', 'alerts'])
        self.assertRegex(lines[1], r' 1 of at most ')
        self.assertRegex(lines[2], r' 0 a second as fed, 608 since the start \([\d.]+ a second on average\); 0 wait$')  # not once more for graph
        self.assertIn(' 7 late (not after', lines[3])  # not once more for graph
        status = d.status()
        d.stop()
        said = [line for line in d.log if ' notice: alert a' in line]
        self.assertEqual(tuple(sum(f' {kind} (' in line for line in said) for kind in ('raised', 'cleared')), tuple(status['events'][kind] for kind in ('raised', 'cleared')), said)
        self.assertGreater(status['events']['raised'], 1)
        self.assertRegex(said[0], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ hankeld: notice: alert a(#graph)?:1 raised \(\w+\): (looks unlike before|behaves differently): level \S+ before, \S+ after; since \S+ \S+ UTC, [\d.]+ times its threshold(, severity [\d.]+ \(\w+\))?$')

    def test_check_lists_what_will_listen(self):
        def check(text, keys=''):
            with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
                f.write(f'[daemon]\nbackend = cpu\n{keys}[detector all]\nmatch = *\n' + text)
                f.flush()
                return subprocess.run([harness.HANKELD, '-c', f.name, '--check'], capture_output=True, text=True, timeout=harness.WAIT).stdout
        self.assertIn('\nstate = /x/y is not used: durability = none keeps nothing\n', check('', keys='state = /x/y\n'))
        said = check('')
        self.assertEqual(sum(line.startswith('listener ') for line in said.splitlines()), 5)
        self.assertNotIn('no default', said)
        said = check('[listen metrics]\nprotocol = line\naddress = 127.0.0.1:7000\n')
        self.assertIn('listener metrics: line over tcp on 127.0.0.1:7000\nthese are all: with a [listen NAME] section there are no default listeners\n', said)

    def test_a_collectd_that_speaks_milliseconds_is_told_so(self):
        d = self.daemon()
        with socket.create_connection(('127.0.0.1', d.port['line tcp'])) as s:
            for unit, per_s in (('ms', 1000), ('us', 10**6), ('s', 1)):
                s.sendall(f'cpu,unit={unit} busy=1 {int(time.time() * per_s)}\n'.encode())
                harness.until(lambda u=unit: any(f'they would be of today in {u}: set precision = {u} in' in line for line in d.log), unit)

    def test_an_alert_of_a_sensor_that_falls_silent_is_stale_and_then_cleared(self):
        d = self.daemon(harness.section('all', '*', 'window=8,alert=0.5,silent=1s'), keys='threads = 2\nstale_alerts = 3s\n')
        tail = self.tail(d, '--events', '--format', 'jsonl')

        def events():
            return [(e['id'], e['event']) for e in map(json.loads, tail.lines) if 'event' in e]

        def rows(first, last):
            return 'time,a\n' + ''.join(f'{START // SECOND + i},{math.sin(i * (.3 if i < 400 else 1.1)):.6f}\n' for i in range(first, last))
        last = 400
        while d.status()['alerts']['standing'] == 0:
            self.hankel('feed', d, '-', data=rows(0 if last == 400 else last, last + 1))
            last += 1
            self.assertLess(last, 440)
        stale = harness.until(lambda: [a for a in d.status()['alerts']['first'] if 'stale' in a], 'the status to say stale')
        self.assertRegex(stale[0]['stale'], r'^\d{4}-\d\d-\d\dT')
        self.assertIn('a:1 (score, stale)', self.hankel('status', d).stdout)
        harness.until(lambda: events() == [('a:1', 'raised'), ('a:1', 'cleared')], 'the end of the alert')
        self.assertEqual(d.status()['alerts']['standing'], 0)
        self.assertTrue(any('stale alerts cleared: 1, of sensors that have been silent for ' in line for line in d.log))
        self.hankel('feed', d, '-', data=rows(last, 800))  # the backend ends the alert, too, which is not published a second time
        harness.until(lambda: d.status()['points']['pending'] == 0, 'the rest')
        time.sleep(0.5)
        self.assertEqual([e for e in events() if e[0] == 'a:1'], [('a:1', 'raised'), ('a:1', 'cleared')])

    def test_numbers_get_the_time_at_which_they_are_read(self):
        d = self.daemon(harness.section('all', '*', 'window=8'), keys='busy_poll = 200us\n')  # threads that look for work before they sleep
        before = time.time_ns()
        run = self.hankel('feed', d, '--now', '--sensor', 'boiler', '-', data='1\n2\n3.5\n')
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('3 points of 1 sensor', run.stdout + run.stderr)
        one = json.loads(self.hankel('sensors', d, '--json').stdout)
        self.assertEqual((one['name'], one['value'], one['state']), ('boiler', 3.5, 'warming'))
        self.assertTrue(before <= one['time'] <= time.time_ns(), one)
        points = d.status()['points']
        self.assertEqual((points['late'], points['rejected']), (0, 0))

    def test_the_slope_of_a_counter_that_triples_is_seen_by_every_algorithm(self):
        """No algorithm would find the change in the counter itself, which only grows. It is reset twice, which is no change."""
        rng, total, rows = random.Random(7), 0, []
        for i in range(3600):
            total = 0 if i in (900, 1700) else total + (100 if i < 3000 else 300) + 10 * math.sin(i / 3) + rng.gauss(0, 5)
            rows.append(f'{START // SECOND + i},{total:.3f}\n')
        text = 'time,requests\n' + ''.join(rows)
        names = {'requests': 'ika', 'requests#graph': 'graph', 'requests#shift': 'shift', 'requests#novelty': 'novelty'}
        keys = 'algorithm = ika, graph, shift, novelty\nwindow = 24\ngraph.window = 20\ngraph.level = 2\n'
        d = self.daemon('[detector all]\nmatch = *\nrate = yes\n' + keys)
        tail = self.tail(d, '--events', '--format', 'jsonl')
        run = self.hankel('feed', d, '-', data=text)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('3 points were rejected', run.stdout)  # the first, and two with which it starts over
        self.assertEqual(d.status()['points']['late'], 0)

        def seen(lines):
            events = [e for e in map(json.loads, lines) if e.get('event') == 'raised']
            return {e['sensor'] for e in events if abs(e['instant'] - START - 3000 * SECOND) < 120 * SECOND}
        harness.until(lambda: seen(tail.lines) == set(names), 'an alert of each algorithm at the change')
        told = [e for e in map(json.loads, tail.lines) if e.get('event') == 'raised' and e['sensor'] == 'requests#shift']
        self.assertTrue(any(abs(e['before'] - 100) < 15 and 200 < e['after'] < 350 for e in told), told)
        with tempfile.NamedTemporaryFile('w', suffix='.csv') as f:
            f.write(text)
            f.flush()
            detector = keys.strip().replace('\n', ',').replace(' ', '')
            run = subprocess.run([harness.HANKEL, 'replay', '--format', 'jsonl', '--detector', 'rate=yes,' + detector, f.name], capture_output=True, text=True,
                                 timeout=harness.WAIT)
            self.assertEqual(seen(line for line in run.stdout.splitlines() if '"event"' in line), set(names), run.stderr)
            run = subprocess.run([harness.HANKEL, 'replay', '--format', 'jsonl', '--detector', detector, f.name], capture_output=True, text=True, timeout=harness.WAIT)
            self.assertNotEqual(seen(line for line in run.stdout.splitlines() if '"event"' in line), set(names))

    def test_this_machine_is_fed(self):
        d = self.daemon()
        tail = self.tail(d, '--match', 'box.*', '--format', 'jsonl')
        feed = subprocess.Popen([harness.HANKEL, 'feed', '--to', self.address(d), '--host', '--prefix', 'box'], stderr=subprocess.PIPE, text=True)
        self.addCleanup(feed.wait)
        self.addCleanup(feed.kill)
        self.assertRegex(feed.stderr.readline(), r'\d+ figures of this machine go out once a second, such as box\.')
        harness.until(lambda: {'box.cpu.busy', 'box.memory.used'} <= {json.loads(line)['sensor'] for line in tail.lines}, 'figures of the machine')
        feed.send_signal(signal.SIGINT)
        feed.wait(harness.WAIT)
        feed.stderr.close()
        run = self.hankel('feed', d, '--host', MACHINE)
        self.assertEqual(run.returncode, 2)
        self.assertIn('--host takes no file', run.stderr)

    def test_points_before_a_bad_line_are_sent(self):
        d = self.daemon()
        run = self.hankel('feed', d, '-', data='time,a\n1,2\n2,3\n3,x\n')
        self.assertEqual(run.returncode, 1)
        self.assertIn('stdin:4: "x" is no number', run.stderr)
        self.assertEqual(d.status()['points']['in'], 2)

    def test_a_daemon_that_comes_back_is_found_again(self):
        where = listeners(harness.free_port())
        first = self.daemon(listeners=where)
        tail = self.tail(first, '--format', 'jsonl')
        feed = subprocess.Popen([harness.HANKEL, 'feed', '--to', self.address(first), '--sensor', 'pipe', '-'], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        feed.stdin.write('1\n2\n')
        harness.until(lambda: len(tail.lines) == 2, 'two results')
        self.assertEqual(first.stop(), 0)
        self.daemon(listeners=where)
        harness.until(lambda: any('connected again' in line for line in tail.said), 'tail to connect again')
        feed.stdin.write('3\n')
        harness.until(lambda: len(tail.lines) == 3, 'the third result')
        feed.stdin.close()
        feed.wait(harness.WAIT)
        feed.stdout.close()
        feed.stderr.close()
        self.assertEqual(self.interrupt(tail), 0)

    def test_a_daemon_that_stays_away_ends_tail_with_1(self):
        d = self.daemon()
        tail = self.tail(d)
        d.stop()
        self.assertEqual(tail.wait(harness.WAIT), 1)
        tail.readers[1].join(harness.WAIT)
        self.assertIn('did not come back', tail.said[-1])

    @unittest.skipIf(harness.SANITIZED, 'minutes of novelty, which feed does not wait for')
    def test_the_demo(self):
        picture = os.path.join(self.daemon().directory.name, 'demo.svg')
        run = subprocess.run([sys.executable, os.path.join(harness.ROOT, 'scripts', 'demo.py'), '--build', os.path.dirname(harness.HANKELD),
                              '--width', '100', '--svg', picture], capture_output=True, text=True, timeout=2 * harness.WAIT)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertIn('22,695 points went in over TCP and 22,397 scores came out', run.stdout)
        self.assertRegex(run.stdout, r'\n +novelty 1  201[34]-\d\d-\d\d ')  # an alert
        self.assertLessEqual(max(map(len, run.stdout.splitlines())), 110)
        self.assertNotIn('\033', run.stdout)
        with open(picture) as file:
            self.assertIn('</svg>', file.read())


if __name__ == '__main__':
    harness.main(needs_gpu=False)
