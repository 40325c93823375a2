#!/usr/bin/env python3
"""hankel without a daemon: wrong usage, what replay reads and prints, pipes that end early, bench."""
import csv
import fcntl
import json
import math
import os
import random
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

import harness

MACHINE = os.path.join(harness.DATA, 'machine_temperature_system_failure.csv')
COMMANDS = ('feed', 'tail', 'replay', 'status', 'sensors', 'state', 'cluster', 'reload', 'model', 'notify', 'token', 'bench', 'evaluate', 'top')
SMALL = 'window=4,gap=4,rank=1'  # scores from the 11th point on


def hankel(*arguments, data=None):
    return subprocess.run([harness.HANKEL, *arguments], input=data, capture_output=True, text=True, timeout=harness.WAIT)


class Usage(unittest.TestCase):
    def test_wrong_usage_ends_with_2_and_names_what_is_wrong(self):
        for arguments, named in [((), 'usage'), (('frobnicate',), 'frobnicate'), (('replay',), 'no file'),
                                 (('replay', '--sensor', 'x', 'a', 'b'), 'one file'), (('replay', '--long', 'x', 'a'), '--long x'), (('replay', '--decimal', ';', 'a'), '--decimal ;'),
                                 (('replay', '--frob', 'a'), '--frob'),
                                 (('replay', '--backend'), '--backend'), (('replay', '--backend', 'abacus', 'a'), 'abacus'),
                                 (('replay', '--detector', 'window=3', 'a'), 'window = 3'),
                                 (('replay', '--detector', 'windw=8', 'a'), 'windw'), (('replay', '--format', 'xml', 'a'), 'xml'),
                                 (('replay', '--unit', 'weeks', 'a'), 'weeks'), (('evaluate',), 'no folder'), (('tail', '--min-score', '2'), '--min-score 2'),
                                 (('tail', 'x'), 'x'), (('feed', '--rate', 'fast', 'a'), '--rate fast'),
                                 (('feed', '--rate', '5', '--fast', 'a'), '--fast'), (('feed', '--rate', '0', 'a'), '--rate 0'),
                                 (('status', 'now'), 'now'), (('status', '--from', '127.0.0.1'), 'HOST:PORT'),
                                 (('tail', '--from', '127.0.0.1:99999'), '99999'), (('bench', '--sensors', '0'), '--sensors 0'),
                                 (('bench', '--window', '5000'), 'window = 5000'), (('bench', '--algorithm', 'magic'), 'magic')]:
            with self.subTest(arguments=arguments):
                run = hankel(*arguments)
                self.assertEqual((run.returncode, run.stdout), (2, ''))
                self.assertIn(named, run.stderr)
                self.assertTrue(len(run.stderr.splitlines()) == 1 or not arguments, run.stderr)

    def test_what_may_have_been_meant_is_told(self):
        for arguments, meant in ((('hlep',), 'did you mean help?'), (('staus',), 'did you mean status?'), (('feed', '--skipbad', 'x'), 'did you mean --skip-bad?'),
                                 (('replay', '--detectr', 'x', 'x'), 'did you mean --detector?'), (('status', '--to', 'x'), 'did you mean --from?'), (('feed', '--from', 'x', 'x'), 'did you mean --to?'), (('tail', '--json'), 'did you mean --format?'),
                                 (('maintenance', 'begn', 'x', '1h'), 'begn: want one of begin, end; did you mean begin?'), (('state', 'verfy', 'x'), 'did you mean verify?'),
                                 (('model', 'sim', 'x'), 'did you mean simulate?'), (('cluster', 'mov'), 'mov: want one of status, drain, move; did you mean move?'),
                                 (('cluster', 'status', 'x:1'), '--from HOST:PORT'), (('feed', '--now', '--unit', 's', 'x'), '--now and --unit exclude each other'),
                                 (('feed', '--host', '--skip-bad'), '--host takes no --skip-bad'), (('feed', '--feed', '', 'x'), '--feed is empty'), (('replay', '--backend', 'gpu', 'x'), 'did you mean cuda?'), (('tail', '--format', 'jsno'), 'want one of text, jsonl, csv; did you mean jsonl?'), (('ack', 'Pump', '3'), 'with quotes, if its name has spaces'), (('maintenance', 'begin', 'Pump', '3', '1h'), 'with quotes, if the GLOB has spaces')):
            self.assertIn(meant, hankel(*arguments).stderr)
        for keys, meant in (('windwo=3', 'windwo: no such key of a detector; did you mean window?'), ('ika.windwo=3', 'ika: windwo: no such key of a detector; did you mean window?'),
                            ('fill=linaer', 'fill = linaer: not one of hold, linear; did you mean linear?'), ('algorithm=novelyt', 'did you mean novelty?'),
                            ('frobnicate=1', 'frobnicate: no such key of a detector (see')):
            run = hankel('replay', '--detector', keys, '-', data='1\n2\n')
            self.assertEqual((run.returncode, meant in run.stderr), (2, True), run.stderr)
        run = hankel('replay', '--field', 'refti=3', '-', data='1\n2\n')
        self.assertIn('refti: there is no such key of a field; did you mean refit?', run.stderr)
        for unlike in (('frobnicate',), ('evaluate', '--field', 'foo=1', 'x'), ('feed', '--frobnicate')):
            self.assertNotIn('did you mean', hankel(*unlike).stderr)

    @unittest.skipUnless(shutil.which('bash'), 'needs bash')
    def test_the_shell_completes_commands_and_options(self):
        script = os.path.join(harness.ROOT, 'conf', 'completion', 'hankel.bash')

        def complete(*words):
            run = subprocess.run(['bash', '-c', f'. {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hankel; printf "%s\\n" "${{COMPREPLY[@]}}"', '-',
                                  harness.HANKEL, *words], capture_output=True, text=True, timeout=harness.WAIT)
            return run.stdout.split()
        self.assertEqual(complete('re'), ['replay', 'reload'])
        self.assertLessEqual(set(COMMANDS), set(complete('')))
        self.assertIn('--skip-bad', complete('feed', '--s'))
        self.assertEqual(complete('tail', '--form'), ['--format'])
        self.assertEqual(complete('sensors', '--l'), ['--limit'])
        self.assertEqual(complete('sensors', ''), [])
        self.assertEqual(complete('bench', '--backend', 'cu'), ['cuda'])

    def test_the_option_at_fault_is_named(self):
        """Also after arguments, which getopt skips, and where getopt takes a long option for several of one letter."""
        for command, arguments, wrong in (('feed', 'ok.csv -rate 5', '-rate'), ('feed', '- -rate 5', '-rate'), ('feed', '-rate x', '-rate'),
                                          ('maintenance', 'begin x -5m', '-5m'), ('feed', '--fast a -q', '-q'),
                                          ('feed', '--sensor -rate a - -qx b', '-qx'), ('feed', 'a --frob b', '--frob'), ('feed', 'a b --frob=-x', '--frob=-x')):
            run = hankel(command, *arguments.split())
            self.assertEqual(run.returncode, 2)
            self.assertRegex(run.stderr, f'^hankel {command}: {re.escape(wrong)}: no such option, or not a clear one(; did you mean --[a-z-]+\\?)? '
                                         f'\\(see hankel {command} --help\\)\n$')

    def test_help_and_version_end_with_0(self):
        for arguments in [('--help',), ('--version',)] + [(c, '--help') for c in COMMANDS]:
            run = hankel(*arguments)
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            self.assertIn('hankel', run.stdout)
            self.assertTrue(all(len(line) <= 110 for line in run.stdout.splitlines()), run.stdout)
        self.assertEqual(hankel('help', 'tail').stdout, hankel('tail', '--help').stdout)

    def test_no_daemon_is_a_failure_that_says_so(self):
        for arguments in (('status',), ('tail',), ('feed', MACHINE)):
            option = '--to' if arguments[0] == 'feed' else '--from'
            begun = time.monotonic()
            run = hankel(arguments[0], option, '127.0.0.1:1', *arguments[1:])
            if arguments[0] != 'status':  # it may be starting
                self.assertGreater(time.monotonic() - begun, 4)
            self.assertEqual((run.returncode, run.stdout), (1, ''))
            self.assertIn('cannot connect to the daemon at 127.0.0.1:1', run.stderr)
            self.assertIn('is hankeld running', run.stderr)


class Replay(unittest.TestCase):
    def replay(self, text, *options, detector=SMALL):
        """Standard output as lines; asserts that the command succeeded."""
        run = hankel('replay', '--detector', detector, *options, '-', data=text)
        self.assertEqual((run.returncode, re.sub(r'^hankel replay: (ika gives no score|.*: of \d+ points).*\n', '', run.stderr, flags=re.M)), (0, ''))
        return run.stdout.splitlines()

    def test_names_that_a_spreadsheet_would_run_and_names_like_events(self):
        names = ['#event', '=cmd()', '+1a', '-x', '@sum', "'=a", "''#notice", "'plain", "a,b;c", ' lead', 'trail ', '"q"', "it's", '\u202egpj', '=1,2']
        mark = lambda name: "'" + name if re.match("'*[=+@#-]", name) else name
        quoted = ['"' + mark(name).replace('"', '""') + '"' for name in names]
        bare = ['"' + name.replace('"', '""') + '"' for name in names]
        for header in (quoted, [b for b in bare if not b.startswith('"\'')]):  # names without the apostrophe, from files of other programs, are taken, too
            text = 'time,' + ','.join(header) + '\n' + ''.join(f'{i}' + f',{1 + i % 3}' * len(header) + '\n' for i in range(4))
            rows = list(csv.reader(self.replay(text)))[1:]
            self.assertFalse([row for row in rows if row[0] == '#event' or row[0][:1] in ('=', '+', '-', '@')])
            told = [row[0][1:] if re.match("'+[=+@#-]", row[0]) else row[0] for row in rows[:len(header)]]
            self.assertEqual(told, names if header is quoted else [n for n in names if not n.startswith("'")])

    def test_a_row_for_every_point_in_the_order_of_the_input(self):
        text = 'time,b,a\n' + ''.join(f'{i},{i % 3},{i % 5}\n' for i in range(20))
        lines = self.replay(text)
        self.assertEqual(lines[0], 'sensor,time,value,score,state')
        rows = [line.split(',') for line in lines[1:] if not line.startswith('#')]
        self.assertEqual([(r[0], int(r[1]), float(r[2])) for r in rows],
                         [(s, i * harness.SECOND, i % m) for i in range(20) for s, m in (('b', 3), ('a', 5))])
        self.assertEqual([r[4] for r in rows], 20 * ['warming'] + 20 * ['ok'])
        self.assertTrue(all((r[3] == '') == (r[4] == 'warming') for r in rows))
        only = self.replay(text, '--column', 'a')
        self.assertEqual(only, [lines[0]] + [line for line in lines if line.startswith('a,')])

    @unittest.skipIf(harness.SANITIZED, 'long, and its algorithms have tests of their own')
    def test_without_a_detector_three_watch(self):
        untuned, scores = (subprocess.run([harness.HANKEL, 'replay', '--backend', 'cpu', *options, MACHINE], capture_output=True, text=True,
                                          timeout=harness.WAIT).stdout.splitlines() for options in ((), ('--detector', 'algorithm=ika,alert=off')))
        events = [line for line in untuned if line.startswith('#')]
        self.assertEqual([line for line in untuned if line not in events], [line for line in scores if not line.startswith('#')])
        self.assertEqual(untuned[0], 'sensor,time,value,score,state')
        found = {line.split(',')[2] for line in events if line.startswith('#event')}
        self.assertEqual(found, {'value#graph', 'value#novelty'})
        all_three = hankel('replay', '--backend', 'cpu', '--detector', 'algorithm=ika,graph,novelty,ika.alert=off,graph.roughness=0.85,'
                           'graph.shortest=2,graph.locality=0.2,novelty.resident=5000', MACHINE)
        self.assertEqual([line for line in all_three.stdout.splitlines() if line.startswith('#')], events)

    def test_values_come_back_as_they_are(self):
        text = 'time,a\n' + '1,0.1\n2,5e-324\n3,1.7976931348623157e308\n4,-0\n5,73.96732207\n6,123456789012345678\n'
        self.assertEqual([line.split(',')[2] for line in self.replay(text)[1:]],
                         ['0.1', '4.94065645841247e-324', '1.7976931348623157e+308', '-0', '73.96732207', '1.2345678901234568e+17'])
        self.assertEqual([float(line.split(',')[2]) for line in self.replay(text)[1:]],
                         [0.1, 5e-324, 1.7976931348623157e308, 0, 73.96732207, 123456789012345678.0])

    def test_what_is_taken_as_the_time_is_told(self):
        epoch = 'there is no time column: points are taken as one second apart, from 1970-01-01T00:00:00Z; sensor '
        values = ''.join(f'{i % 3}\n' for i in range(12))
        two = ''.join(f'{i},{i % 3},{i % 2}\n' for i in range(12))
        many = [f's{i}' for i in range(11)]
        for text, options, told in (
                (values, (), epoch + 'stdin'), (values, ('--sensor', 'pump'), epoch + 'pump'), ('level\n' + values, (), epoch + 'level'),
                ('when,a,b\n' + two, (), 'no column is named time or date: the first, "when", is used as the time; sensors a, b'),
                (',a,b\n' + two, ('--column', 'b'), 'no column is named time or date: the first, "", is used as the time; sensor b'),
                ('\x1b,a,b\n' + two, ('--column', 'b'), 'no column is named time or date: the first, "?", is used as the time; sensor b'),
                (','.join(['x', *many]) + '\n1' + 11 * ',1' + '\n', (),
                 f'no column is named time or date: the first, "x", is used as the time; sensors {", ".join(many[:8])} and 3 more'),
                ('time,a,b\n' + two, (), None), ('a,b,t\n' + two, (), None)):
            run = hankel('replay', '--detector', SMALL, *options, '-', data=text)
            said = [line for line in run.stderr.splitlines() if not re.search('gives no score| were late ', line)]
            self.assertEqual((run.returncode, said), (0, [f'hankel replay: stdin: {told}'] if told else []))

    def test_a_recording_too_short_for_a_score_says_so(self):
        def told(text, detector=SMALL):
            run = hankel('replay', '--detector', detector, '-', data=text)
            self.assertEqual(run.returncode, 0)
            return run.stderr.splitlines()

        def rows(points, times=lambda i: i):
            return 'time,a\n' + ''.join(f'{times(i)},{i % 3}\n' for i in range(points))
        self.assertEqual(told(rows(10)), ['hankel replay: ika gives no score: a has 10 points, and the first score comes with point 11'])
        self.assertEqual(told(rows(11)), [])
        three = 'algorithm=ika,graph,shift,window=20,ika.window=4,ika.gap=4,graph.window=auto'
        self.assertEqual(told(rows(100), three), [
            'hankel replay: graph gives no score: a has 100 points, and the first score comes with one of the points 400 to 1106, depending on the window that is found',
            'hankel replay: shift gives no score: a has 100 points, and the first score comes with point 263'])
        self.assertEqual([len(told(rows(n), 'algorithm=graph,shortest=2')) for n in (399, 471)], [1, 0])  # short recordings have scores, too
        holes = told(rows(40, lambda i: i + 1000 * (i // 10)))  # a hole behind every tenth
        self.assertEqual(holes, [])  # such holes are frequent, and the window continues across them
        counter = 'time,a\n' + ''.join(f'{i},{i * i}\n' for i in range(60))
        self.assertEqual(told(counter, 'window=16,rate=auto')[1:], [
            'hankel replay: a is a counter: its rate per second was scored',
            'hankel replay: ika gives no score: a has 59 points that could be taken, of 60, and the first score comes with point 47, counted anew where a counter was found'])
        some = 'time,a,b,c\n' + ''.join(f'{i},{i % 3},{i % 2 if i < 8 else ""},{i % 2 if i < 6 else ""}\n' for i in range(30))
        self.assertEqual(told(some), ['hankel replay: ika gives no score of 2 of 3 sensors: b has 8 points, the most of them, and the first score comes '
                                      'with point 11'])
        self.assertEqual(told('time,a\n'), ['hankel replay: there are no points in it'])

    def test_late_and_bad_points(self):
        lines = self.replay('time,a\n1,1\n1,2\n0,3\n2,nan\n3,inf\n4,4\n')
        self.assertEqual([line.split(',')[2:] for line in lines[1:]],
                         [['1', '', 'warming'], ['2', '', 'late'], ['3', '', 'late'], ['nan', '', 'rejected'],
                          ['inf', '', 'rejected'], ['4', '', 'warming']])

    def test_late_and_rejected_points_are_counted(self):
        def told(text):
            run = hankel('replay', '--detector', SMALL, '-', data=text)
            self.assertEqual(run.returncode, 0)
            return run.stderr.splitlines()

        def counts(of, points, late, rejected):
            return (f'hankel replay: {of}: of {points} points {late} were late (not after the last one taken), '
                    f'{rejected} rejected (not finite, too far from the rest, or before 1970)')
        lacking = 'hankel replay: ika gives no score: v has {} that could be taken, of {}, and the first score comes with point 11'
        minutes = ''.join(f'{60 * (i // 60)},{i % 3}\n' for i in range(480))
        self.assertEqual(told('time,v\n' + minutes), [counts('v', 480, 472, 0), lacking.format('8 points', 480)])
        self.assertEqual(told('time,v\n' + ''.join(f'{600 - i},1\n' for i in range(600))), [counts('v', 600, 599, 0), lacking.format('1 point', 600)])
        for line in ('{},nan', '{}.5,1e40', '-{},1'):
            rejected = told('time,v\n0,1\n' + ''.join(line.format(i + 1) + '\n' for i in range(50)))
            self.assertEqual(rejected, [counts('v', 51, 0, 50), lacking.format('1 point', 51)], line)
        self.assertEqual(told('time,v\n' + ''.join(f'{i},nan\n' for i in range(50))), [counts('v', 50, 0, 50), lacking.format('0 points', 50)])
        many = 'time,' + ','.join(f's{i}' for i in range(8)) + '\n' + ''.join(f'{i},1' + 7 * ',nan' + '\n' for i in range(20))
        self.assertEqual(told(many)[:-1], [counts(f's{i}', 20, 0, 20) for i in range(1, 6)] + [counts('2 more sensors', 40, 0, 40)])

    def test_levels_and_spreads_of_alerts(self):
        """The level and the spread before and after, as every algorithm reports them, are those of the points that it keeps."""
        rng = random.Random(7)
        values = [math.sin(i) + rng.gauss(0, .1) for i in range(900)] + [20 + 4 * math.sin(2 * i) + rng.gauss(0, .1) for i in range(600)]
        text = 'time,a\n' + ''.join(f'{i},{v!r}\n' for i, v in enumerate(values))
        kept = {'window=20,alert=0.3,signal=0': ('score', 59), 'algorithm=graph,window=20,alert=0.4': ('change', 1500),
                'algorithm=shift,window=20,alert=0.2': ('shift', 44)}
        for detector, (channel, span) in kept.items():
            items = [json.loads(line) for line in self.replay(text, '--format', 'jsonl', detector=detector)]
            event = min((i for i in items if i.get('event') == 'raised'), key=lambda e: abs(e['instant'] - 900 * harness.SECOND))
            at, instant = (event[key] // harness.SECOND for key in ('time', 'instant'))
            self.assertLess(abs(instant - 900), 120, event)
            self.assertEqual(event['channel'], channel)
            self.assertTrue(1 <= event['margin'] and 0 < event['severity'] <= 40, event)
            resident = values[max(0, at + 1 - span):at + 1]
            before, after = resident[:instant - at - 1], resident[instant - at - 1:]
            for part, name in ((before, 'before'), (after, 'after')):
                self.assertAlmostEqual(statistics.fmean(part), event[name], 3, (detector, name, event))
                self.assertAlmostEqual(statistics.pstdev(part), event['spread_' + name], 3, (detector, name, event))

    def test_json_lines_are_json_whatever_comes(self):
        text = '"time","odd ""name"", \\"\n1,nan\n' + ''.join(f'{i},{i % 3 if i < 25 else 40 + i % 4}\n' for i in range(2, 60))
        items = [json.loads(line) for line in self.replay(text, '--format', 'jsonl', detector=SMALL + ',alert=0.5,signal=0')]
        results = [i for i in items if 'state' in i]
        events = [i for i in items if 'event' in i]
        self.assertEqual(len(results), 59)
        self.assertEqual(results[0], {'sensor': 'odd "name", \\', 'time': harness.SECOND, 'value': None, 'score': None,
                                      'state': 'rejected'})
        self.assertTrue(events)
        self.assertEqual(set(events[0]), {'event', 'id', 'sensor', 'time', 'from', 'instant', 'score', 'before', 'after',
                                          'channel', 'severity', 'level', 'margin', 'spread_before', 'spread_after'})
        self.assertEqual(events[0]['id'], 'odd "name", \\:1')
        at = items.index(events[0])
        self.assertEqual(items[at - 1]['time'], events[0]['time'])  # right behind the point that caused it
        self.assertEqual(items[at - 1]['score'], events[0]['score'])

    def test_events_in_csv(self):
        rows = self.replay('time,a\n' + ''.join(f'{i},{i % 3 if i < 25 else 40 + i % 4}\n' for i in range(60)),
                           detector=SMALL + ',alert=0.5,signal=0')
        events = [line.split(',') for line in rows if line.startswith('#')]
        self.assertTrue(all(e[0] == '#event' and len(e) == 12 and e[2] == 'a' for e in events))
        self.assertEqual(events[0][1], 'a:1')
        self.assertEqual(events[0][3], 'raised')
        self.assertLessEqual({e[3] for e in events}, {'raised', 'corrected', 'cleared'})

    def test_a_file_of_bare_numbers_is_a_sensor_named_after_it(self):
        rows, _ = harness.replay(os.path.join(harness.DATA, 'Coffee.txt'), 'window=10', 'cpu')
        self.assertEqual({row[0] for row in rows}, {'Coffee'})
        self.assertEqual([row[1] for row in rows[:3]], [0, harness.SECOND, 2 * harness.SECOND])
        rows, _ = harness.replay(os.path.join(harness.DATA, 'Coffee.txt'), 'window=10', 'cpu', '--sensor', 'cup')
        self.assertEqual({row[0] for row in rows}, {'cup'})

    def test_semicolons_and_both_ways_of_writing_time_give_the_same(self):
        with open(MACHINE) as file:
            lines = [line.rstrip('\n') for line in file][:1000]
        want = self.replay('\n'.join(lines), detector='window=24')
        self.assertEqual(self.replay('\r\n'.join(line.replace(',', ';') for line in lines), detector='window=24'), want)
        iso = [lines[0]] + [line.replace(' ', 'T').replace(',', '.000Z,') for line in lines[1:]]
        self.assertEqual(self.replay('\n'.join(iso), detector='window=24'), want)

    def test_a_bad_line_is_named_and_of_a_pipe_what_stands_before_it_is_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'pump.csv')
            with open(path, 'w') as file:
                file.write('time,a\n2014-01-01 00:00:00,1\n2014-01-32 00:00:00,2\n')
            run = hankel('replay', path)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stdout, '')  # a file is examined before its first point is scored
        self.assertIn(f'{path}:3: "2014-01-32 00:00:00" is no time', run.stderr)
        run = hankel('replay', '-', data='time,a\n1,2\n2,zwei\n')
        self.assertEqual(len(run.stdout.splitlines()), 2)
        self.assertIn('stdin:3: "zwei" is no number', run.stderr)

    def test_files_that_are_none(self):
        for path, why in [('/nonexistent.csv', 'No such file'), ('/proc/self/fdinfo', 'folder'), ('/dev/null', 'empty')]:
            run = hankel('replay', path)
            self.assertEqual((run.returncode, run.stdout), (1, ''))
            self.assertIn(why, run.stderr)
        for option in '--ca', '--cert', '--token-file':  # without a daemon
            self.assertEqual(hankel('status', '--from', '127.0.0.1:1', option, '/none').stderr, f'hankel status: {option} /none: No such file or directory\n')

    def test_a_reader_that_leaves_early_is_no_fault(self):
        run = subprocess.Popen([harness.HANKEL, 'replay', '--detector', 'window=8', MACHINE], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b'sensor,time,value,score,state\n')
        run.stdout.close()
        self.assertEqual(run.stderr.read(), b'')
        run.stderr.close()
        self.assertIn(run.wait(harness.WAIT), (0, -signal.SIGPIPE))

    def test_progress_stays_on_one_line_of_a_narrow_terminal(self):
        for columns in (40, 200):
            ours, theirs = harness.terminal()
            self.addCleanup(os.close, ours)
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
            run = subprocess.Popen([harness.HANKEL, 'replay', '--backend', 'reference', '--detector', 'window=200', MACHINE],
                                   stdout=subprocess.DEVNULL, stderr=theirs)
            os.close(theirs)
            drawn = b''
            while drawn.count(b'\r') < 3:
                self.assertTrue(select.select([ours], [], [], harness.WAIT)[0])
                drawn += os.read(ours, 4096)
            run.kill()
            run.wait()
            lines = [line.removeprefix(b'\033[K') for line in drawn.split(b'\r')[1:3]]
            self.assertTrue(all(line.startswith(b'[') and len(line) < columns for line in lines), lines)

    @unittest.skipUnless(os.path.exists('/dev/full'), 'needs /dev/full')
    def test_output_that_cannot_be_written_is(self):
        with open('/dev/full', 'w') as full:
            run = subprocess.run([harness.HANKEL, 'replay', '--detector', 'window=8', MACHINE], stdout=full, stderr=subprocess.PIPE,
                                 text=True, timeout=harness.WAIT)
        self.assertEqual(run.returncode, 1)
        self.assertIn('No space left', run.stderr)

    def test_a_live_pipe_is_followed_point_by_point(self):
        run = subprocess.Popen([harness.HANKEL, 'replay', '--detector', SMALL, '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, bufsize=1)
        run.stdin.write('time,a\n')
        self.assertEqual(run.stdout.readline(), 'sensor,time,value,score,state\n')
        for i in range(15):
            run.stdin.write(f'{i},{i}\n')
            self.assertTrue(run.stdout.readline().startswith(f'a,{i * harness.SECOND},{i},'))
        run.stdin.close()
        self.assertEqual(run.wait(harness.WAIT), 0)
        run.stdout.close()

    def test_however_it_is_read_it_comes_out_the_same(self):
        """A file fills batches; a pipe that pauses cuts them everywhere. 70 sensors and one."""
        many = 'time,' + ','.join(f's{i}' for i in range(70)) + '\n'
        for t in range(200):
            many += f'{t},' + ','.join(str((t * (i + 3) % 17) + (t > 120) * i) for i in range(70)) + '\n'
        one = 'time,a\n' + ''.join(f'{t},{t * 7 % 23}\n' for t in range(700))
        for text in (many, one):
            with tempfile.NamedTemporaryFile('w', suffix='.csv') as file:
                file.write(text)
                file.flush()
                want = subprocess.run([harness.HANKEL, 'replay', '--detector', 'window=8', file.name], capture_output=True,
                                      timeout=harness.WAIT).stdout
            run = subprocess.Popen([harness.HANKEL, 'replay', '--detector', 'window=8', '-'], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
            data, at = text.encode(), 0

            def write():
                nonlocal at
                while at < len(data):
                    run.stdin.write(data[at:at + 997])
                    run.stdin.flush()
                    at += 997
                    time.sleep(0.001)
                run.stdin.close()

            writer = threading.Thread(target=write)
            writer.start()
            got = run.stdout.read()
            writer.join()
            run.stdout.close()
            self.assertEqual(run.wait(harness.WAIT), 0)
            self.assertGreater(len(want), len(text))
            self.assertEqual(got, want)


class Manual(unittest.TestCase):
    def page(self, name):
        with open(os.path.join(harness.ROOT, 'conf', 'man', name + '.scd')) as file:
            return file.read()

    def test_every_option_is_in_the_manual(self):
        page = self.page('hankel.1')
        for command in COMMANDS:
            options = re.findall(r'^  (--[a-z-]+)', hankel(command, '--help').stdout, re.M)
            self.assertTrue(options or command in ('state', 'notify'))
            for option in options:
                self.assertIn(f'*{option}*', page, command)

    def test_every_key_of_the_example_is_in_the_manual(self):
        page = self.page('hankeld.conf.5')
        with open(os.path.join(harness.ROOT, 'conf', 'hankeld.conf')) as file:
            keys = set(re.findall(r'^#?([a-z_]+) = ', file.read(), re.M))
        self.assertIn('max_sensors', keys)
        self.assertIn('false_alarms', keys)
        for key in keys:
            self.assertRegex(page, rf'(?m)^\*{key}\*')


class Bench(unittest.TestCase):
    def test_json_is_one_flat_object(self):
        for options, together in (['--backend', 'cpu'], 1), (['--backend', 'cpu', '--points', '8', '--batch', '7'], 1), (['--backend', 'cpu', '--points', '8'], 8), (['--backend', 'reference', '--algorithm', 'svd', '--points', '8', '--batch', '120'], 6):
            run = hankel('bench', '--window', '16', '--sensors', '20', '--seconds', '0.1', '--json', *options)
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            figures = json.loads(run.stdout)
            for key in ('backend algorithm window rank krylov products sensors threads scores_per_s useful_tflops bytes_up '
                        'bytes_down p50_us p99_us').split():
                self.assertIn(key, figures)
                self.assertNotIsInstance(figures[key], (dict, list))
            self.assertEqual((figures['backend'], figures['window'], figures['sensors'], figures['points_together']), (options[1], 16, 20, together))
            self.assertGreater(figures['scores_per_s'], 0)
            self.assertGreaterEqual(figures['p99_us'], figures['p50_us'])

    def test_the_share_of_the_peak_is_told_in_operations_that_are_made_too(self):
        for window, made in (16, 1), (96, 9 / 16), (320, 81 / 256):  # no cut, two cuts, four cuts
            run = hankel('bench', '--backend', 'cpu', '--threads', '1', '--window', str(window), '--sensors', '32', '--seconds', '0.1', '--json')
            figures = json.loads(run.stdout)
            self.assertAlmostEqual(figures['peak_fraction_made'], figures['peak_fraction'] * made, delta=1.01e-4)

    def test_keys_may_come_from_any_option(self):
        for options, window in [(('--algorithm', 'graph', '--detector', 'window=20'), 20), (('--algorithm', 'shift', '--window', '20'), 20),
                                (('--detector', 'algorithm=svd,window=16'), 16), (('--algorithm', 'shift', '--detector', 'window=20,max_fill=9'), 20),
                                ((), 96)]:
            with self.subTest(options=options):
                run = hankel('bench', '--backend', 'cpu', '--sensors', '20', '--seconds', '0.1', '--json', *options)
                self.assertEqual((run.returncode, run.stderr), (0, ''))
                figures = json.loads(run.stdout)
                self.assertEqual(figures['window'], window)
                self.assertGreater(figures['points_per_s'], 0)
        run = hankel('bench', '--window', '20', '--detector', 'window=30')
        self.assertEqual((run.returncode, run.stdout), (2, ''))
        self.assertIn('window: given twice', run.stderr)

    def test_a_configuration_is_measured_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'plant.conf')
            with open(path, 'w') as file:
                file.write('[daemon]\nbackend = cpu\nthreads = 1\nmax_sensors = 20\n'
                           '[detector pumps]\nmatch = pump*\nalgorithm = ika, shift\nika.window = 8\nshift.window = 20\ninterval = 1s\n'
                           '[detector rest]\nmatch = *\nwindow = 16\ninterval = 10us\n'
                           '[group press]\nmatch = plant/(*)/*\n')
            run = hankel('bench', '-c', path, '--sensors', '15', '--seconds', '0.1', '--json')
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            figures = json.loads(run.stdout)
            self.assertEqual([figures[k] for k in ('config', 'backend', 'threads', 'sections', 'detectors', 'groups_left_out', 'sensors', 'series')],
                             [path, 'cpu', 1, 2, 3, 1, 16, 24])
            # ika and shift score every point: 3 scores for two points of sensors
            self.assertAlmostEqual(figures['scores_per_s'] / figures['points_per_s'], 1.5, places=3)
            self.assertLessEqual(figures['points_per_s_least'], figures['points_per_s'])
            self.assertLessEqual(figures['points_per_s'], figures['points_per_s_most'])

            run = hankel('bench', '--config', path, '--backend', 'reference', '--sensors', '15', '--seconds', '0.1')
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            for line in ('16 sensors, 24 series; each of 2 sections has 8 sensors', 'pumps: ika, match pump*, window 8,', 'pumps#shift: shift, match pump*, window 20,',
                         'rest: ika, match *, window 16,', 'press: a group, left out', 'max_sensors = 24 for them; the file has 20', 'backend reference'):
                self.assertIn(line, run.stdout)

            run = hankel('bench', '-c', path, '--window', '20')
            self.assertEqual((run.returncode, run.stdout), (2, ''))
            self.assertIn('--window', run.stderr)
            with open(path, 'a') as file:
                file.write('[detector more]\nmatch = *\nwindow = 2\n')
            run = hankel('bench', '-c', path)
            self.assertEqual((run.returncode, run.stdout), (1, ''))
            self.assertRegex(run.stderr, r'plant.conf:\d+: .*window = 2')
        run = hankel('bench', '-c', os.path.join(harness.ROOT, 'conf', 'hankeld.conf'), '--backend', 'cpu', '--sensors', '4', '--seconds', '0.1')
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertIn('4 sensors, 12 series', run.stdout)

    def test_what_does_not_fit_is_refused_with_figures(self):
        run = hankel('bench', '--backend', 'cpu', '--window', '1024', '--sensors', '100000000')
        self.assertEqual((run.returncode, run.stdout), (1, ''))
        self.assertRegex(run.stderr, r'100000000 sensors: they need \d{13} bytes, \d+ are free')
        self.assertIn('--points 65', hankel('bench', '--points', '65').stderr)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
