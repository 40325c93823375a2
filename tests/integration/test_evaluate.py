#!/usr/bin/env python3
"""hankel evaluate: what it reads, reports, draws and refuses."""
import csv
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest
from xml.etree import ElementTree

import harness


def hankel(*arguments, cwd=None):
    return subprocess.run([harness.HANKEL, *arguments], capture_output=True, text=True, timeout=harness.WAIT, cwd=cwd)


class Evaluate(unittest.TestCase):
    """Two detectors over the three layouts, made of recordings that are here."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)

    def evaluate(self, *options):
        run = hankel('evaluate', '--backend', 'cpu', '--format', 'csv', *options, self.folder.name)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        return {(row['detector'], row['recording']): row for row in csv.DictReader(run.stdout.splitlines())}

    def calibrated(self, graph):
        """Alerts by severity: both right alerts are in the first rows, and blocks are those apart from labels."""
        run = hankel('evaluate', '--backend', 'cpu', '--format', 'csv', '--calibrate', '--detector', graph, self.folder.name)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        rows = [row for row in csv.DictReader(run.stdout.splitlines()) if row['set'] == 'tssb']
        self.assertEqual([float(row['severity']) for row in rows], [0, 1.5, 2, 2.5, 3, 3.5, 4, 5])
        self.assertEqual([rows[0][key] for key in ('alerts', 'labels', 'hits', 'false', 'blocks', 'with_alert', 'promised', 'word')],
                         ['2', '2', '2', '0', '0', '0', '', '-'])  # CBF is too short for a block so far from both labels
        self.assertEqual(rows[1]['alerts'], '2')  # all alerts of the channel change are over 1.5
        self.assertEqual(rows[-1]['alerts'], '0')
        self.assertEqual([row['promised'] for row in rows[1:4]], ['0.06325', '0.02000', '0.00632'])
        table = hankel('evaluate', '--backend', 'cpu', '--brief', '--calibrate', '--detector', graph, self.folder.name)
        self.assertEqual(table.returncode, 0)
        self.assertRegex(table.stdout, r'\nnab by its own scoring: .*\n +profile .*\n +standard +-?[0-9.]+ +[0-9.]+ +([0-9.]+|no alert)\n +few false ')
        self.assertNotIn('tssb by its own', table.stdout)
        self.assertIn('tssb by severity, of 0 blocks of 40 points apart from labels', table.stdout)
        self.assertEqual(hankel('evaluate', '--calibrate', '--detector', graph, '--tune', 'alert=0.5|0.6', self.folder.name).returncode, 2)

    def test_starts(self):
        """Each piece is a sensor that begins there, with the labels in it; provisional alerts are counted before the whole window is full."""
        rng = random.Random(4)
        made = [rng.gauss(0, .3) + math.sin(k * (.5 if k % 150 >= 100 else 1.3)) for k in range(470)]
        self.write('tssb/desc.txt', 'made,20,100,150,250,300,400,450\n')
        self.write('tssb/made.txt', '\n'.join(map(repr, made)))
        keys = 'window=60,provisional=yes'
        found = self.evaluate('--starts', '150', '--detector', keys)
        pieces = [found[keys, f'made from {at}'] for at in (0, 150, 300)]
        self.assertEqual([(p['points'], p['labels']) for p in pieces], [('150', '1'), ('150', '2'), ('150', '2')])  # the rest is left out
        self.assertGreater(int(found[keys, 'tssb: all']['hits']), 0)
        self.assertIn('gives no score of 3 of 3 recordings', hankel('evaluate', '--starts', '150', '--detector', 'window=60', self.folder.name).stderr)
        self.assertEqual(hankel('evaluate', '--starts', '1', self.folder.name).returncode, 2)

    def test_all_layouts(self):
        with open(os.path.join(harness.DATA, 'CBF.txt')) as file:
            numbers = file.read().split()
        self.write('tssb/desc.txt', 'CBF,20,384,704\n')
        self.write('tssb/CBF.txt', '\n'.join(numbers))
        times = [f'2020-01-01 {i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}' for i in range(len(numbers))]
        self.write('nab/cbf.csv', 'timestamp,value\n' + ''.join(f'{t},{x}\n' for t, x in zip(times, numbers)))
        self.write('nab/windows.json', json.dumps({'cbf.csv': [[times[380] + '.000000', times[390] + '.000000']]}))
        self.write('skab/0.csv', 'datetime;a;b;anomaly;changepoint\n' +
                   ''.join(f'{t};{x};1;0.0;{float(i in (384, 704))}\n' for i, (t, x) in enumerate(zip(times, numbers))))
        graph = 'algorithm=graph,window=20'
        found = self.evaluate('--detector', graph, '--detector', graph + ',alert=off')
        self.assertEqual([found[graph, 'CBF'][key] for key in ('set', 'points', 'labels', 'alerts', 'hits', 'false', 'delay')],
                         ['tssb', '960', '2', '2', '2', '0', '179'])  # (523 - 384 + 923 - 704) / 2
        self.assertAlmostEqual(float(found[graph, 'CBF']['covering']), 0.955, 3)
        self.assertEqual([found[graph, 'cbf'][key] for key in ('labels', 'alerts', 'hits', 'false', 'delay', 'covering')],
                         ['1', '2', '1', '1', '143', ''])
        self.assertEqual([found[graph, '0 a'][key] for key in ('labels', 'alerts', 'hits')], ['2', '2', '2'])
        self.assertEqual([found[graph, '0 b'][key] for key in ('labels', 'alerts', 'hits')], ['2', '0', '0'])
        self.assertEqual([found[graph, 'skab: all'][key] for key in ('labels', 'alerts', 'hits')], ['4', '2', '2'])
        self.assertEqual([found[graph, 'skab: any sensor of the rig'][key] for key in ('points', 'labels', 'hits')], ['960', '2', '2'])
        self.assertEqual(found[graph + ',alert=off', 'tssb: all']['alerts'], '0')
        given = self.evaluate('--given-windows', '--detector', 'algorithm=graph')
        self.assertEqual({**given['algorithm=graph', 'CBF'], 'detector': graph}, found[graph, 'CBF'])
        self.calibrated(graph)
        self.assertEqual({name for _, name in self.evaluate('--brief', '--detector', graph)},
                         {'nab: all', 'tssb: all', 'skab: all', 'skab: any sensor of the rig'})

    def test_field(self):
        """Sensors alone beside sensors in a field, on seven stations with a fault of one of them at a time."""
        data, labels = os.path.join(harness.DATA, 'stations.csv'), os.path.join(harness.DATA, 'stations.json')
        keys, shift = 'interval=1h,q=5', 'algorithm=shift,window=96'

        def compare(*options, more=''):
            run = hankel('evaluate', '--backend', 'cpu', '--field', keys, '--detector', shift + more, *options)
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            return run.stdout

        rows = {row['recording']: row for row in csv.DictReader(compare('--format', 'csv', '--labels', labels, data).splitlines())}
        self.assertEqual(len(rows), 9)
        of_all = rows['stations.csv: all']
        self.assertEqual([of_all[key] for key in ('field', 'detector', 'set', 'labels')], [keys, shift, 'stations.csv', '4'])
        self.assertEqual([rows['stations Changping'][key] for key in ('alone_hits', 'field_hits')], ['0', '1'])
        self.assertEqual(sum(int(row['labels']) for name, row in rows.items() if ':' not in name), 4)
        self.assertEqual([rows['stations Huairou'][key] for key in ('labels', 'field_hits', 'alone_hits')], ['0', '0', '0'])  # a label is of its sensor only
        # replay finds the same alerts with the same field: each counts once, those that another sensor explains separately
        replay = hankel('replay', '--backend', 'cpu', '--field', keys, '--detector', shift, '--format', 'jsonl', data)
        raised = [e for e in map(json.loads, replay.stdout.splitlines()) if e.get('event') == 'raised']
        self.assertEqual([int(of_all[key]) for key in ('field_alerts', 'field_secondary')], [sum(not e.get('secondary') for e in raised), sum(bool(e.get('secondary')) for e in raised)])
        counters = {row['recording']: row for row in csv.DictReader(compare('--format', 'csv', '--labels', labels, data, more=',rate=yes').splitlines())}['stations.csv: all']
        self.assertEqual([counters[key] for key in counters if key.startswith('field_')], [of_all[key] for key in of_all if key.startswith('field_')])  # series of differences are not counters
        table = compare('--brief', '--labels', labels, data)
        self.assertIn(f'Labels hit: {of_all["field_hits"]} of 4 in the field ({float(of_all["field_chance"]):.1f} by chance), {of_all["alone_hits"]} alone', table)
        self.assertRegex(table, r'\nstations\.csv: any sensor +4 ')
        self.assertIn('There are no labels: all alerts count as false. False alerts: ', compare('--brief', data))

    def test_field_example(self):
        """The manual's example prints what the manual shows, and README's picture is what the program makes of that recording."""
        with open(os.path.join(harness.ROOT, 'conf', 'man', 'hankel.1.scd'), encoding='utf-8') as f:
            example = re.search(r'\t\$ (hankel evaluate --brief --field .*)\n\t(Labels hit: .*)\n', f.read())
        run = hankel(*example[1].split()[1:], cwd=harness.ROOT)
        self.assertEqual((run.stderr, run.stdout.splitlines()[-1]), ('', example[2]))
        drawn, shipped = os.path.join(self.folder.name, 'storm.svg'), os.path.join(harness.DATA, 'storm.svg')
        script = subprocess.run([sys.executable, os.path.join(harness.ROOT, 'tests', 'bench', 'scripts', 'storm.py'), drawn], env={**os.environ, 'HANKEL': harness.HANKEL}, capture_output=True, text=True)
        self.assertEqual((script.returncode, script.stderr), (0, ''))
        with open(drawn, encoding='utf-8') as made, open(shipped, encoding='utf-8') as kept:
            picture = made.read()
            self.assertEqual(picture, kept.read())
        self.assertIn('each alone: 7 alerts, of 7 stations', picture)  # what README says of it
        self.assertIn('(#residual): 1 alert to look at, 0 secondary', picture)
        self.assertIn('<title>Aotizhongxin#residual</title>', picture)
        self.assertIn('Aotizhongxin reads 1 hPa too much', picture)

    def test_field_tuned(self):
        """Two halves of the recording of stations as two files: settings are searched on the first and judged on the second, as by hand."""
        with open(os.path.join(harness.DATA, 'stations.csv')) as f:
            head, *rows = f.read().splitlines()
        with open(os.path.join(harness.DATA, 'stations.json')) as f:
            labels = json.load(f)['stations.csv']
        halves = {'a.csv': rows[:len(rows) // 2], 'b.csv': rows[len(rows) // 2:]}
        windows = {}
        for name, half in halves.items():
            self.write('nab/' + name, '\n'.join([head, *half]) + '\n')
            times = [row.split(',')[0] for row in half]
            windows[name] = [label for label in labels if times[0] <= label[0] and label[1] <= times[-1]]
        self.assertEqual([len(w) for w in windows.values()], [1, 2])  # one of the four is in both halves
        self.write('nab/windows.json', json.dumps(windows))

        def rows_of(*options):
            run = hankel('evaluate', '--brief', '--format', 'csv', '--field', 'interval=1h,q=5', *options, self.folder.name)
            self.assertEqual((run.returncode, run.stderr), (0, ''))
            return list(csv.DictReader(run.stdout.splitlines()))

        found = rows_of('--detector', 'algorithm=shift', '--tune', 'window=24|96', '--tune', 'alert=0.9|0.4')
        searched = [row for row in found if 'searched' in row['recording'] and row['recording'].endswith(': all')]
        self.assertEqual([row['detector'] for row in searched], [f'algorithm=shift,window={w},alert={a}' for a in (0.9, 0.4) for w in (24, 96)])
        worth = lambda row: (int(row['field_hits']) - float(row['field_chance'])) / (int(row['labels']) + int(row['field_alerts']))
        best = max(searched, key=worth)
        self.assertGreater(worth(best), min(map(worth, searched)))
        others, any_sensor = (row for row in found if 'others' in row['recording'])
        self.assertEqual((others['detector'], others['recording'].startswith('nab, others: ')), (best['detector'], True))
        os.rename(os.path.join(self.folder.name, 'nab', 'a.csv'), os.path.join(self.folder.name, 'a.csv'))
        self.write('nab/windows.json', json.dumps({'b.csv': windows['b.csv']}))
        alone, _ = rows_of('--detector', best['detector'])
        self.assertEqual([v for k, v in alone.items() if k not in ('set', 'recording')], [v for k, v in others.items() if k not in ('set', 'recording')])

        self.write('nab/a.csv', 'time,a\n1,2\n')  # nothing for a field or a group to search on
        self.write('nab/windows.json', json.dumps({**windows, 'a.csv': []}))
        for options in (('--field', 'interval=1h,q=5', '--detector', 'algorithm=shift', '--tune', 'window=24|96'), ('--group', '', '--tune', 'interval=1h|2h')):
            run = hankel('evaluate', '--brief', *options, self.folder.name)
            self.assertEqual(run.returncode, 1, run)
            self.assertIn('nab is left out: two files of several sensors, of even and of odd number, are needed', run.stderr)
            self.assertNotIn('others', run.stdout)

    def test_field_refused(self):
        data = os.path.join(harness.DATA, 'stations.csv')
        one = os.path.join(harness.DATA, 'faults.csv')
        self.write('other.json', '{"other.csv": []}')
        self.write('empty.json', '')
        self.write('sensor.json', '{"stations.csv": [["2014-07-05 21:00:00", "2014-07-19 20:00:00", "Waldorf"]]}')
        self.write('number.json', '{"stations.csv": [["2014-07-05 21:00:00", "2014-07-19 20:00:00", 7]]}')
        at = lambda name: os.path.join(self.folder.name, name)
        for arguments, code, said in ((('--field', 'q=99', data), 2, '--field: q = 99'), (('--field', '', one), 1, f'--field: {one}: no file there has several sensors'),
                                      (('--field', '', '--group', '', data), 2, '--field: not with --group, --calibrate, --plots or --starts'), (('--labels', at('other.json'), data), 1, 'has no labels for "stations.csv"'),
                                      (('--labels', at('empty.json'), data), 1, 'empty.json: no JSON'), (('--labels', at('sensor.json'), data), 1, 'is of Waldorf, and there is no such sensor'),
                                      (('--labels', at('number.json'), data), 1, 'has a third part that is not the name of a sensor'),
                                      (('--labels', at('other.json'), self.folder.name), 1, 'is not a CSV file'), ((at('nothing.csv'),), 1, 'nothing.csv: No such file'),
                                      (('--field', 'members=3', data), 2, 'members = 3, and there are 7 sensors')):
            run = hankel('evaluate', *arguments)
            self.assertEqual((run.returncode, run.stdout), (code, ''), arguments)
            self.assertIn(said, run.stderr)

    def test_field_line(self):
        """The changes that a focus finds on a line count as alerts of the sensor where they began."""
        rng, n, place, at = random.Random(3), 16, 7, 900
        rows = [[rng.gauss(0, 1) + (3 if t >= at + abs(i - place) else 0) for i in range(n)] for t in range(1600)]
        start = 1600000000
        self.write('line.csv', 'time,' + ','.join(f's{i}' for i in range(n)) + '\n' + ''.join(f'{start + t},' + ','.join(map(repr, row)) + '\n' for t, row in enumerate(rows)))
        self.write('line.pos', ''.join(f's{i} {100 * i}\n' for i in range(n)))
        date = lambda t: time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(start + t))
        self.write('line.json', json.dumps({'line.csv': [[date(at), date(at + 20), f's{place}']]}))
        at = lambda name: os.path.join(self.folder.name, name)
        run = hankel('evaluate', '--format', 'csv', '--field', f'operator=focus,positions={at("line.pos")},speed=100,reach=500,interval=1s', '--detector', 'algorithm=shift,window=32,alert=off',
                     '--labels', at('line.json'), at('line.csv'))
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        row = {row['recording']: row for row in csv.DictReader(run.stdout.splitlines())}[f'line s{place}']
        self.assertEqual([row[key] for key in ('labels', 'alone_alerts', 'alone_hits', 'field_alerts', 'field_hits', 'field_false')], ['1', '0', '0', '1', '1', '0'])

    def outline(self, path):
        """Heights at each column of the outline that a path draws, on its way to the right and on its way back."""
        x, y, heights = 0, int(re.match(r'M0 (-?\d+)l', path.get('d')).group(1)), ([], [])
        heights[0].append(y)
        numbers = [int(n) for n in re.findall(r'-?\d+', path.get('d').split('l')[1])]
        back = False
        for right, down in zip(numbers[::2], numbers[1::2]):
            if right == 0 or right < 0 and not back:
                back = True
                heights[1].append(y + down)
            else:
                heights[back].extend(y + down * i // abs(right) for i in range(1, abs(right) + 1))
            x, y = x + right, y + down
        self.assertEqual(x, 0)
        return heights[0], heights[1][::-1]

    def test_plots(self):
        with open(os.path.join(harness.DATA, 'CBF.txt')) as file:
            numbers = file.read().split()
        self.write('tssb/desc.txt', 'CBF,20,384,704\n')
        self.write('tssb/CBF.txt', '\n'.join(numbers))
        detectors = ['algorithm=graph,window=20', 'algorithm=shift,window=20']
        options = [word for keys in detectors for word in ('--detector', keys)]
        self.evaluate(*options, '--plots', self.folder.name)
        sheet = ElementTree.parse(os.path.join(self.folder.name, 'tssb.svg')).getroot()
        svg = '{http://www.w3.org/2000/svg}'
        texts = [text.text for text in sheet.iter(svg + 'text')]
        for text in ['tssb', 'CBF'] + detectors:
            self.assertIn(text, texts)
        labels = [float(rect.get('x')) for group in sheet.iter(svg + 'g') for rect in group.iter(svg + 'rect')]
        self.assertEqual(labels, [round(at * 380 / 960 - 1, 1) for at in (384, 704)])
        series, *scores = [path for path in sheet.iter(svg + 'path') if path.get('transform')]
        self.assertEqual(len(scores), 2)
        high, low = self.outline(series)
        values = [float(number) for number in numbers]
        columns = [values[c * 960 // 380:(c + 1) * 960 // 380] for c in range(380)]
        unit = 56 * 4 / (max(values) - min(values))
        for column, top, bottom in zip(columns, high, low, strict=True):
            self.assertAlmostEqual(top, (max(values) - max(column)) * unit, delta=0.5001)
            self.assertAlmostEqual(bottom, (max(values) - min(column)) * unit, delta=0.5001)
        run = hankel('replay', '--backend', 'cpu', '--detector', detectors[0], os.path.join(self.folder.name, 'tssb', 'CBF.txt'))
        rows = [line.split(',') for line in run.stdout.splitlines()[1:]]
        found = [float(row[3] or 0) for row in rows if row[0] != '#event']
        high, low = self.outline(scores[0])
        for c, (top, bottom) in enumerate(zip(high, low, strict=True)):
            self.assertAlmostEqual(top, 80 * (1 - max(found[c * 960 // 380:(c + 1) * 960 // 380])), delta=0.5001)
            self.assertEqual(bottom, 80)
        start = int(rows[0][1])
        instants = [(int(row[5]) - start) // 10**9 for row in rows if row[0] == '#event' and row[3] == 'raised']
        marks = [path.get('d') for path in sheet.iter(svg + 'path') if path.get('stroke-width') == '.9']
        self.assertEqual(len(instants), 2)
        self.assertEqual([float(x) for x in re.findall(r'M([\d.]+) -', marks[0])], [round(at * 380 / 960, 1) for at in instants])
        self.assertEqual(marks[1], '')
        self.evaluate(*options, '--plots', self.folder.name, '--no-series')
        sheet = ElementTree.parse(os.path.join(self.folder.name, 'tssb.svg')).getroot()
        self.assertEqual(len([path for path in sheet.iter(svg + 'path') if path.get('transform')]), 2)
        for bad, code in [((*options, '--plots', self.folder.name + '/none'), 1), (('--plots', '.', '--tune', 'window=20|30'), 2),
                          (9 * ('--detector', 'window=48') + ('--plots', '.'), 2)]:
            run = hankel('evaluate', *bad, self.folder.name)
            self.assertEqual(run.returncode, code)
            self.assertNotEqual(run.stderr, '')

    def test_tune(self):
        with open(os.path.join(harness.DATA, 'CBF.txt')) as file:
            numbers = file.read().split()
        self.write('tssb/CBF.txt', '\n'.join(numbers))
        self.write('tssb/again.txt', '\n'.join(numbers[100:]))
        self.write('tssb/desc.txt', 'CBF,20,384,704\nagain,20,284,604\n')
        found = self.evaluate('--detector', 'algorithm=graph', '--tune', 'window=10|20', '--tune', 'alert=0.99|0.5|0.98')
        searched = {name: float(row['covering']) for (_, name), row in found.items() if 'searched' in name}
        self.assertEqual(len(searched), 6)
        best = max(searched, key=searched.get)
        self.assertIn('alert=0.5', best)
        self.assertEqual(searched['tssb, searched: window=20,alert=0.99'], min(searched.values()))
        told = [name for _, name in found if 'others' in name]
        self.assertEqual(told, [best.replace('searched', 'others')])
        self.assertIn(('algorithm=graph,' + best.split(': ')[1], 'again'), found)
        for bad in ('window', 'window=20|7', 'alert=', 'windows=20', 'hold=1|2|3|1|2|3|1|2' + ''.join(f'|{i}' for i in range(4096))):
            run = hankel('evaluate', '--detector', 'algorithm=graph', '--tune', bad, self.folder.name)
            self.assertEqual((run.returncode, run.stdout), (2, ''))  # before anything is scored
            self.assertIn('--tune: ', run.stderr)
        self.write('skab/0.csv', 'time,a\n1,2\n')
        run = hankel('evaluate', '--backend', 'cpu', '--detector', 'window=10', '--tune', 'alert=0.3|0.4', self.folder.name)
        self.assertEqual((run.returncode, run.stderr),
                         (0, 'hankel evaluate: --tune: skab is left out: two files are needed, one to search on, and one to evaluate on\n'))
        self.assertIn('tssb, others', run.stdout)
        self.write('tssb/desc.txt', 'CBF,20,384,704\n')
        run = hankel('evaluate', '--detector', 'algorithm=graph', '--tune', 'window=10|20', self.folder.name)
        self.assertEqual(run.returncode, 1)
        self.assertIn('tssb is left out: two files', run.stderr)

    def test_recordings_too_short_for_a_score_are_counted(self):
        for i, points in enumerate((100, 218, 219, 400)):
            self.write(f'tssb/{i}.txt', ''.join(f'{i % 7}\n' for i in range(points)))
            self.write(f'skab/{i}.csv', 'time,a,b,changepoint\n' + ''.join(f'{i},{i % 7},{i % 5},0\n' for i in range(5 if i == 0 else 40)))
        self.write('tssb/desc.txt', ''.join(f'{i},20,50\n' for i in range(4)))
        detectors = 'algorithm=graph,window=20', 'window=4,gap=4'
        tell = [f'hankel evaluate: detector {detectors[0]} gives no score of 10 of 12 recordings, which are too short for it (points of the longest: 218): the first comes with point 219',
                f'hankel evaluate: detector {detectors[1]} gives no score of 2 of 12 recordings, which are too short for it (points of the longest: 5): the first comes with point 11',
                'hankel evaluate: group default gives no score of 1 of 4 recordings, which are too short for it (points of the longest: 1)']
        options = '--detector', detectors[0], '--detector', detectors[1], '--group', ''
        for brief in ((), ('--brief',)):
            run = hankel('evaluate', '--backend', 'cpu', *brief, *options, self.folder.name)
            self.assertEqual((run.returncode, run.stderr.splitlines()), (0, tell))
        run = hankel('evaluate', '--backend', 'cpu', '--detector', detectors[0], '--tune', 'alert=0.4|0.5', self.folder.name)
        self.assertEqual((run.returncode, run.stderr), (0, f'hankel evaluate: detector {detectors[0]} gives no score of 5 of 6 recordings, '
                                                        'which are too short for it (points of the longest: 218)\n'))  # of the files that are evaluated

    def test_what_cannot_be_read_is_named(self):
        for path, text, named in [('tssb/desc.txt', 'CBF,20,384\n', 'CBF.txt'), ('tssb/CBF.txt', '1\n2\n', '384'),
                                  ('nab/windows.json', '{', 'windows.json'), ('nab/windows.json', '{"x.csv":[["1",2]]}', 'x.csv')]:
            self.write(path, text)
            run = hankel('evaluate', '--backend', 'cpu', self.folder.name)
            self.assertEqual(run.returncode, 1)
            self.assertIn(named, run.stderr)
        run = hankel('evaluate', self.folder.name + '/tssb')
        self.assertEqual(run.returncode, 1)
        self.assertIn('none of the folders nab/', run.stderr)
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, 'skab'))
            run = hankel('evaluate', folder)
            self.assertEqual(run.returncode, 1)
            self.assertIn('no recording', run.stderr)
            self.assertEqual(run.stdout, '')
        self.write('tssb/CBF.txt', '1\n' * 400)
        for bad, told in [(('--detector', 'algorithm=graph,window=20', '--detector', 'window=x'), 'window = x'), (('--group', 'hop=0'), '--group: hop')]:
            run = hankel('evaluate', *bad, self.folder.name)
            self.assertEqual((run.returncode, run.stdout), (2, ''))
            self.assertIn(told, run.stderr)
        os.remove(os.path.join(self.folder.name, 'nab/windows.json'))
        os.rmdir(os.path.join(self.folder.name, 'nab'))
        run = hankel('evaluate', '--group', '', self.folder.name)
        self.assertEqual((run.returncode, run.stdout), (1, ''))
        self.assertIn('several sensors', run.stderr)

    def test_long_windows_json(self):
        self.write('nab/a.csv', 'time,value\n' + ''.join(f'{i},{i % 7}\n' for i in range(40)))
        windows = {'a.csv': [['1970-01-01 00:00:05', '1970-01-01 00:00:09']] * 2000}
        self.write('nab/windows.json', json.dumps(windows))
        self.assertGreater(os.path.getsize(self.folder.name + '/nab/windows.json'), 1 << 16)
        self.assertEqual(self.evaluate('--detector', 'window=4,gap=4')['window=4,gap=4', 'a']['labels'], '2000')
        os.truncate(self.folder.name + '/nab/windows.json', (64 << 20) + 1)
        run = hankel('evaluate', self.folder.name)
        self.assertEqual(run.returncode, 1)
        self.assertIn('windows.json: over 64 MiB', run.stderr)

    def test_given_windows_replace_those_of_the_keys(self):
        for name in ('one', 'two'):
            self.write(f'tssb/{name}.txt', ''.join(f'{i % 20 // (1 + i // 400)}\n' for i in range(800)))
        self.write('tssb/desc.txt', 'one,20,400\ntwo,25,400\n')

        def rows(*keys):
            found = self.evaluate('--given-windows', *[word for text in keys for word in ('--detector', text)])
            return [{key: value for key, value in row.items() if key != 'detector'} for row in found.values()]
        expected = rows('algorithm=graph,alert=0.4')
        self.assertNotEqual(expected[0]['alerts'], '0')
        for keys in ('algorithm=graph,window=30,alert=0.4', ' window = 200,algorithm=graph,alert=0.4', 'algorithm=graph, graph.window=30,alert=0.4',
                     'algorithm=graph,alert=0.4,window=auto'):
            self.assertEqual(rows(keys), expected, keys)
        for keys in ('algorithm=graph,window=20,window=20', 'algorithm=graph,window=x'):
            run = hankel('evaluate', '--given-windows', '--detector', keys, self.folder.name)
            self.assertEqual((run.returncode, run.stdout), (2, ''))
            self.assertIn('window', run.stderr)
        self.write('tssb/desc.txt', 'one,20,400\ntwo,4,400\n')
        run = hankel('evaluate', '--backend', 'cpu', '--given-windows', '--detector', 'algorithm=graph', self.folder.name)
        self.assertEqual(run.returncode, 1)
        self.assertIn('tssb: two', run.stderr)
        self.assertIn('window = 4', run.stderr)

    def test_recordings_are_told_apart_by_their_files_names(self):
        rows = ''.join(f'{i},{i % 7},{i % 5},0\n' for i in range(40))
        names = ['2024.01', '2024.02', 'pump 1', 'pump 2']
        long = ['l' * 127 + '1', 'l' * 127 + '2']
        for name in names:
            self.write(f'skab/{name}.csv', 'time,a b,c,changepoint\n' + rows)
        for name in names[:2] + long:
            self.write(f'tssb/{name}.txt', '1\n2\n')
        self.write('tssb/desc.txt', ''.join(name + ',4\n' for name in names[:2] + long))
        run = hankel('evaluate', '--backend', 'cpu', '--format', 'csv', '--detector', '', '--group', '', self.folder.name)
        found = [(row['set'], row['recording']) for row in csv.DictReader(run.stdout.splitlines())]
        self.assertEqual([name for set, name in found if set == 'tssb'], names[:2] + long + ['tssb: all'])
        self.assertEqual([name for set, name in found if set == 'skab'],
                         [f'{name} {sensor}' for name in names for sensor in ('a b', 'c')] + ['skab: all', 'skab: any sensor of the rig'] +
                         names + ['skab: all'])

    def test_a_bad_line_of_desc_txt_is_named(self):
        self.write('tssb/a.txt', '1\n' * 100)
        self.write('tssb/columns.txt', 'time,x,y\n1,2,3\n')
        self.write('tssb/desc.txt', 'a,20,40,99\n\na\na,\na, 20 , 40 ,99,\n')
        self.assertEqual(self.evaluate('--detector', 'window=4')['window=4', 'tssb: all']['labels'], '4')
        for line, told in [('a,20,80,40', '"40" is no change'), ('a,20,40,40', '"40"'), ('a,20,4e1', '"4e1"'), ('a,20,abc,40', '"abc"'), ('a,20,0', '"0"'),
                           ('a,20,-4', '"-4"'), ('a,20,100', '"100"'), ('a,20,4294967336', '"4294967336"'), ('a,w,40', '"w" is no window'),
                           ('a,4294967316', '"4294967316" is no window'), ('columns,1', 'one series')]:
            self.write('tssb/desc.txt', f'a,20,40\n\n{line}\n')
            run = hankel('evaluate', '--backend', 'cpu', self.folder.name)
            self.assertEqual((run.returncode, run.stdout), (1, ''), line)
            self.assertIn('desc.txt:3: ' + line.split(',')[0], run.stderr)
            self.assertIn(told, run.stderr)

    def test_windows_that_make_no_sense_are_named(self):
        self.write('nab/a.csv', 'time,value\n' + ''.join(f'2020-01-01 00:00:{i},{i % 7}\n' for i in range(20, 40)))
        for windows, told in [([['2020-01-01 00:00:25', '2020-01-01 00:00:24']], 'ends before it begins'),
                              ([['2020-01-01 00:00:22', '2020-01-01 00:00:22'], ['2020-01-01 00:00:40', '2020-01-01 00:00:44']], 'lies outside the recording'),
                              ([['2020-01-01 00:00:10', '2020-01-01 00:00:19']], 'lies outside the recording'),
                              ([['2020-01-01 00:00:22']], 'is no pair'), (['2020'], 'is no pair'), (7, 'want a list')]:
            self.write('nab/windows.json', json.dumps({'a.csv': windows}))
            run = hankel('evaluate', '--backend', 'cpu', self.folder.name)
            self.assertEqual((run.returncode, run.stdout), (1, ''), windows)
            self.assertIn('windows.json: a.csv: ', run.stderr)
            self.assertIn(told, run.stderr)
        self.write('nab/windows.json', json.dumps(['a.csv']))
        self.assertIn('windows.json: want {', hankel('evaluate', self.folder.name).stderr)
        self.write('nab/windows.json', json.dumps({'a.csv': [['2020-01-01 00:00:10', '2020-01-01 00:00:20'], ['2020-01-01 00:00:39', '2020-01-01 00:00:50']]}))
        self.assertEqual(self.evaluate('--detector', 'window=4')['window=4', 'a']['labels'], '2')

    def test_labels_of_a_file_with_several_sensors_count_for_each(self):
        self.write('nab/rig.csv', 'time,a,b\n' + ''.join(f'{i},{i % 20 // (1 + i // 420)},{-(i % 20 // (1 + i // 400))}\n' for i in range(800)))
        self.write('nab/windows.json', json.dumps({'rig.csv': [['1970-01-01 00:05:50', '1970-01-01 00:07:10']]}))
        graph = 'algorithm=graph,window=20,alert=0.4'
        found = self.evaluate('--detector', graph)
        for sensor in ('rig a', 'rig b'):
            self.assertEqual([found[graph, sensor][key] for key in ('labels', 'hits', 'false')], ['1', '1', '0'])
        self.assertEqual([found[graph, 'nab: any sensor of the rig'][key] for key in ('labels', 'hits', 'false', 'delay')], ['1', '1', '0', found[graph, 'rig b']['delay']])
        self.assertLess(int(found[graph, 'rig b']['delay']), int(found[graph, 'rig a']['delay']))  # the first alert counts, whatever its column
        self.assertNotIn((graph, 'skab: any sensor of the rig'), found)

    def test_quotes_in_names_are_doubled_in_csv(self):
        self.write('skab/0.csv', 'time,"a""b, c",d\n' + ''.join(f'{i},{i % 7},{i % 5}\n' for i in range(40)))
        found = self.evaluate('--detector', 'window=4')
        self.assertEqual(found['window=4', '0 a"b, c']['points'], '40')

    def test_windows_are_said_to_be_given_of_detectors_alone(self):
        self.write('skab/0.csv', 'time,a,b\n' + ''.join(f'{i},{i % 7},{i % 5}\n' for i in range(40)))
        run = hankel('evaluate', '--backend', 'cpu', '--given-windows', '--detector', 'window=4', '--group', '', self.folder.name)
        heads = [line for line in run.stdout.splitlines() if line.startswith(('detector', 'group'))]
        self.assertEqual(heads, ['detector: window=4, windows as given', 'group: default'])


if __name__ == '__main__':
    harness.main(needs_gpu=False)
