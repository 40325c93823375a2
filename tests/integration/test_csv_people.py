#!/usr/bin/env python3
"""hankel replay on recordings as people have them: from spreadsheets, loggers and historians, several files, packed ones. Each kind of file
gives the points of the plain one, and every guess is reported."""
import bz2
import csv
import gzip
import io
import lzma
import os
import shutil
import subprocess
import tempfile
import unittest
import zipfile

import harness

S = harness.SECOND
START = 1704164640  # 2024-01-02 03:04:00


def hankel(*arguments, data=None):
    return subprocess.run([harness.HANKEL, *arguments], input=data, capture_output=True, timeout=harness.WAIT)


class People(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), 'wb') as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def replay(self, *arguments, code=0, data=None):
        """(sensor, time in s since START, value) of every point, and the messages."""
        run = hankel('replay', '--detector', 'window=8', *arguments, data=data)
        said = run.stderr.decode()
        self.assertEqual(run.returncode, code, said)
        rows = list(csv.reader(run.stdout.decode().splitlines()))[1:]
        return [(row[0], int(row[1]) / S - START, float(row[2])) for row in rows if not row[0].startswith('#')], said

    def reads(self, content, want, *arguments, said=(), name='f.csv'):
        points, told = self.replay(*arguments, self.write(name, content))
        self.assertEqual(points, want, told)
        for words in said:
            self.assertIn(words, told)
        return told

    def refuses(self, content, *words, arguments=(), name='f.csv'):
        points, told = self.replay(*arguments, self.write(name, content), code=1)
        self.assertEqual(points, [])
        for part in words:
            self.assertIn(part, told)

    ONE = [('a', 0, 1.5), ('a', 60, 2.5)]

    def test_what_stands_between_cells(self):
        for sign in ',;\t|':
            self.reads('time,a,b\n2024-01-02 03:04,1.5,7\n2024-01-02 03:05,2.5,8\n'.replace(',', sign),
                       [('a', 0, 1.5), ('b', 0, 7), ('a', 60, 2.5), ('b', 60, 8)])
        self.reads('Time;"Temp, inside";b\n2024-01-02 03:04;1,5;7\n', [('Temp, inside', 0, 1.5), ('b', 0, 7)])
        self.reads('time\ta\tb\n2024-01-02 03:04\t\t7\n', [('b', 0, 7)])

    def test_dates(self):
        for first, second, order in [('02.01.2024 03:04', '02.01.2024 03:05', 'day, month, year'), ('2.1.24 3:04', '2.1.24 3:05', 'day, month, year'),
                                     ('2024/01/02 03:04', '2024/1/2 3:05', 'year, month, day'), ('02-Jan-2024 03:04:00.0', '02-Jan-2024 03:05', 'year'),
                                     ('Jan 2, 2024 3:04 AM', 'Jan 2, 2024 3:05 a.m.', 'year'), ('20240102030400', '20240102030500', 'year'),
                                     ('Tue 2 January 2024 03:04', 'Tue 2 January 2024 03:05', 'year')]:
            with self.subTest(first):
                self.reads(f'time;a\n{first};1.5\n{second};2.5\n', self.ONE, said=[f'times such as {first} are taken as {order}'])
        told = self.reads('time;a\n2024-01-02T03:04:00Z;1.5\n2024-01-02 04:05+01:00;2.5\n', self.ONE)
        self.assertNotIn('are taken as', told)

    def test_a_unit_that_nothing_uses(self):
        file, numbers = 'time;a\n2024-01-02T03:04:00Z;1.5\n2024-01-02 03:05;2.5\n', 'time;a\n1704164640000;1.5\n1704164700000;2.5\n'
        self.reads(file, self.ONE, '--unit', 'ms', said=['f.csv: --unit is not used: the times are dates'])
        self.assertIn('stdin: --unit is not used: the times are dates', self.replay('--unit', 'ms', '-', data=file.encode())[1])
        self.assertIn('--unit is not used: there is no column of times', self.replay('--unit', 'ms', '-', data=b'a\n1.5\n2.5\n')[1])
        self.assertNotIn('--unit', self.reads(numbers, self.ONE, '--unit', 'ms'))
        told = self.replay('--unit', 'ms', '--time-format', '%s', self.write('f.csv', numbers), code=2)[1]
        self.assertIn('--time-format and --unit exclude each other', told)

    def test_a_date_whose_order_is_shown_further_on(self):
        self.reads('time,a\n12/01/2024 00:00,1\n13/01/2024 00:00,2\n', [('a', 852960, 1), ('a', 939360, 2)], said=['day, month, year'])
        self.reads('time,a\n01/12/2024 00:00,1\n01/13/2024 00:00,2\n', [('a', 852960, 1), ('a', 939360, 2)], said=['month, day, year'])

    def test_day_or_month_first_is_asked_where_both_fit(self):
        text = 'time,a\n02/01/2024 03:04,1.5\n02/01/2024 03:05,2.5\n'
        self.refuses(text, 'f.csv:2: 02/01/2024 03:04: the day may be first, or the month', "--time-format")
        self.reads(text, self.ONE, '--time-format', '%d/%m/%Y %H:%M')
        self.reads(text, [('a', 30 * 86400, 1.5), ('a', 30 * 86400 + 60, 2.5)], '--time-format', '%m/%d/%Y %H:%M')
        self.reads('time,a\n01/01/2024,1\n02/02/2024,1\n', [('a', -97440, 1), ('a', 2667360, 1)], said=['are taken as'])  # both are the same

    def test_what_it_proposes_can_be_used(self):
        """As the cell is written: AM and PM, two digits of the year, seconds, other separators."""
        for cell, day, month in (('02/01/2024 03:04 AM', '%d/%m/%Y %I:%M %p', '%m/%d/%Y %I:%M %p'), ('02-01-24 03:04:00', '%d-%m-%y %H:%M:%S', '%m-%d-%y %H:%M:%S'),
                                 ('02/01/2024', '%d/%m/%Y', '%m/%d/%Y'), ('2/1/2024 3:04PM', '%d/%m/%Y %I:%M %p', '%m/%d/%Y %I:%M %p')):
            text = f'time,a\n{cell},1.5\n'
            self.refuses(text, f"as in '{day}' or '{month}'")
            for form, days in ((day, 1), (month, 31)):
                at = (0 if ':' in cell else -184) + (720 if 'PM' in cell else 0)
                self.reads(text, [('a', (days - 1) * 86400 + 60 * at, 1.5)], '--time-format', form)

    def test_files_that_are_no_text(self):
        """Each format that is not read is named, with the remedy; a file that only looks like one is read."""
        book = io.BytesIO()
        with zipfile.ZipFile(book, 'w') as packed:
            packed.writestr('[Content_Types].xml', '<Types/>')
        self.refuses(b'PAR1\x15\x04\x15' + bytes(100) + b'\n\x02PAR1', 'f.csv:1: this is Parquet', 'duckdb')
        self.refuses(b'PAR1\x15\x04\x15\n2\n', 'f.csv:1: this is Parquet')
        self.refuses(book.getvalue(), 'f.csv:1: this is a workbook', 'save the sheet as CSV')
        self.refuses(b'\xd0\xcf\x11\xe0\xa1\xb1' + bytes(100), 'f.csv:1: this is a workbook')
        self.refuses(bytes(100), 'f.csv:1: a NUL byte')
        self.reads('time,PAR1\n2024-01-02 03:04,1.5\n', [('PAR1', 0, 1.5)])
        self.reads('PAR1,time\n1.5,2024-01-02 03:04\n', [('PAR1', 0, 1.5)])

    def test_am_and_pm(self):
        self.reads('time,a\n13/2/2024 12:00 AM,1\n13/2/2024 11:59:59 AM,2\n13/2/2024 12:00:00 PM,3\n13/2/2024 11:00 p.m.,4\n',
                   [('a', t + 3617760, v) for t, v in [(0, 1), (43199, 2), (43200, 3), (82800, 4)]])
        self.refuses('time,a\n13/2/2024 13:00 PM,1\n', 'f.csv:2: "13/2/2024 13:00 PM" is no time')

    def test_a_format_of_times(self):
        self.reads('time,a\n2 Jan 24 03h04 00.25,1\n', [('a', .25, 1)], '--time-format', '%d %b %y %Hh%M %S.%f')
        self.reads('time,a\n2024-01-02 05:04 +0200,1\n', [('a', 0, 1)], '--time-format', '%Y-%m-%d %H:%M %z')
        self.refuses('time,a\n2024-01-02 03:04,1\n03:05,2\n', 'f.csv:3: "03:05" is no time of --time-format', arguments=('--time-format', '%Y-%m-%d %H:%M'))

    def test_date_and_time_in_two_columns(self):
        self.reads('Date,Time,a\n2024-01-02,03:04,1.5\n2024-01-02,03:05,2.5\n', self.ONE)
        self.reads('a;Uhrzeit;Datum\n1,5;03:04:00;02.01.2024\n2,5;03:05:00;02.01.2024\n', self.ONE)
        points, _ = self.replay('-', data=b'date,time,a\n02.01.2024,3:04 AM,1.5\n02.01.2024,3:05 AM,2.5\n')
        self.assertEqual(points, self.ONE)

    def test_thousands_and_decimal_commas(self):
        for text, want in [('time;a\n1;1,208.5\n2;0.5\n', (1208.5, .5)), ('time,a\n1,"1,208.5"\n2,"1,208"\n', (1208.5, 1208)),
                           ('time;a\n1;1.208,5\n2;1.208\n', (1208.5, 1208)), ("time,a\n1,1'208.5\n2,-1'208'000\n", (1208.5, -1208000)),
                           ('time;a\n1;1 208,5\n2;1\xa0208,25\n', (1208.5, 1208.25)), ('time\ta\n1\t0,5\n2\t-1,25e2\n', (.5, -125)),
                           ('time;a\n1;1,208\n2;0,5\n', (1.208, .5))]:
            with self.subTest(text):
                self.reads(text, [('a', i + 1 - START, value) for i, value in enumerate(want)])
        self.reads('time;a\n1;1,208\n', [('a', 1 - START, 1.208)], said=['1,208 is taken as 1.208 (--decimal'])
        self.reads('time;a\n1;1,208\n', [('a', 1 - START, 1208)], '--decimal', '.')
        self.refuses('time;a\n1;12,08,5\n', '"12,08,5" is no number')

    def test_encodings(self):
        text = 'time,Temp °C\n2024-01-02 03:04,1.5\n2024-01-02 03:05,2.5\n'
        want = [('Temp °C', t, value) for _, t, value in self.ONE]
        for encoding in ('utf-8', 'utf-8-sig', 'utf-16', 'utf-16-le', 'utf-16-be', 'latin-1', 'cp1252'):
            with self.subTest(encoding):
                told = self.reads(text.encode(encoding), want)
                self.assertEqual('Windows-1252 (Latin-1)' in told, encoding in ('latin-1', 'cp1252'), told)
                points, _ = self.replay('-', data=text.encode(encoding))
                self.assertEqual(points, want)
        self.reads('time,a \U0001f321\n2024-01-02 03:04,1\n'.encode('utf-16-be'), [('a \U0001f321', 0, 1)])

    def test_what_stands_before_the_data(self):
        rows = '2024-01-02 03:04,1.5\n2024-01-02 03:05,2.5\n'
        self.reads('# Logger 7\n# serial 12, 2024\n\ntime,a\n' + rows, self.ONE)
        self.reads('# exported by x\n# time,a\n' + rows, self.ONE)
        self.reads('Logger 7\nSerial,1234\nSite:,Hall 3\n\ntime,a\n' + rows, self.ONE, said=['3 lines before the header, which is line 5, left out'])
        self.reads('time,a\nyyyy-mm-dd hh:mm,°C\n' + rows, self.ONE, said=['line 2 is taken as a row of units'])
        self.reads('time,a\n' + rows.replace('\n', '\n# a remark\ntime,a\n', 1), self.ONE)
        points, told = self.replay('-', data=('# x\ntime,a\n[-],[bar]\n' + rows).encode())
        self.assertEqual(points, self.ONE)
        self.assertIn('line 3 is taken as a row of units', told)

    def test_headers_that_stand_twice(self):
        told = self.reads('time,a,a,b,a\n1,1,2,3,4\n', [(name, 1 - START, i + 1) for i, name in enumerate(['a', 'a (2)', 'b', 'a (3)'])])
        self.assertIn('headers that stand more than once have a number now: a (2), a (3)', told)

    def test_columns_of_text(self):
        self.reads('time,state,a,alarm\n1,RUN,1,\n2,STOP,2,7 bar low\n', [('a', 1 - START, 1), ('a', 2 - START, 2)],
                   said=['columns left out, for they are text: state, alarm'])
        self.reads('time,pump,value\n1,a,1\n2,b,2\n', [('value', 1 - START, 1), ('value', 2 - START, 2)],
                   said=["a column left out, for it is text: pump; if it names the sensor of each line, say --long 'pump,value'"])
        self.refuses('time,state\n1,RUN\n2,STOP\n', 'f.csv:2: "RUN" is no number')
        self.refuses('time,state,a\n1,RUN,1\n', 'f.csv:2: "RUN" is no number', arguments=('--column', 'state'))

    def test_bad_cells(self):
        text = 'time,a,b\n1,1,1\n2,oops,2\n3,3,3\nnever,4,4\n5,5,5,5\n6,6,"6\n7,7,7\n'
        self.refuses(text, 'f.csv:3: "oops" is no number, of sensor a')
        self.refuses(text.replace('oops', '2'), 'f.csv:5: "never" is no time')
        told = self.reads(text, [(name, t - START, t) for t in (1, 2, 3, 7) for name in 'ab' if (t, name) != (2, 'a')], '--skip-bad')
        for line, why in [(3, '"oops" is no number'), (5, '"never" is no time'), (6, 'more cells than the header has'), (7, 'cell 3: the quotes')]:
            self.assertIn(f'f.csv:{line}: {why}', told)
        told = self.reads('time,a\n' + ''.join(f'{i},{"x" if i % 2 else i}\n' for i in range(100)), [('a', i - START, i) for i in range(0, 100, 2)], '--skip-bad')
        self.assertEqual(told.count('left out'), 10)
        self.assertIn('more of these are counted', told)

    def test_times_that_descend(self):
        rows = ''.join(f'{i},{i},{-i}\n' for i in range(5000, 0, -1))
        self.reads('time,a,b\n' + rows, [p for i in range(1, 5001) for p in (('a', i - START, i), ('b', i - START, -i))],
                   said=['the times descend: its points are sorted'])
        self.reads('time,a\n13.02.2024,2\n12.02.2024,1\n', [('a', 3531360, 1), ('a', 3617760, 2)], said=['descend'])
        told = self.reads('time,a\n1,1\n3,3\n2,2\n4,4\n', [('a', i - START, i) for i in (1, 3, 2, 4)])  # a late point stays one
        self.assertIn('1 were late', told)

    def test_long_format(self):
        text = 'time,site,tag,reading\n1,x,p,1\n1,x,q,10\n2,x,p,2\n2,x,r,20\n'
        want = [('p', 1, 1), ('q', 1, 10), ('p', 2, 2), ('r', 2, 20)]
        self.reads(text, [(name, t - START, v) for name, t, v in want], '--long', 'tag,reading')
        by_sensor = 'tag,time,reading\n' + ''.join(f'{tag},{t},{v}\n' for tag, t, v in sorted(want))
        self.reads(by_sensor, [(name, t - START, v) for name, t, v in want], '--long', 'tag,reading', said=['go back: its points are sorted'])
        self.refuses(text, 'no column is named value; there are time, site, tag, reading', arguments=('--long', 'tag,value'))
        self.refuses(text, 'no column is named raeding; did you mean reading?', arguments=('--column', 'raeding'))
        self.refuses('time,tag,reading\n1,p,much\n', '"much" is no number, of sensor p', arguments=('--long', 'tag,reading'))
        run = hankel('replay', '--long', 'tag,reading', '-', data=text.encode())
        self.assertEqual(run.returncode, 1)
        self.assertIn(b'--long', run.stderr)

    def test_several_files(self):
        one = self.write('pump1.csv', 'time,a\n1,1\n3,3\n')
        two = self.write('pump2.csv', 'time,a\n2,2\n4,4\n')
        points, _ = self.replay(one, two)
        self.assertEqual(points, [(f'pump{2 - i % 2}.a', i - START, i) for i in (1, 2, 3, 4)])
        self.assertEqual(self.replay(self.folder.name)[0], points)
        self.assertEqual(self.replay('--prefix', '', one, two)[0], [('a', i - START, i) for i in (1, 2, 3, 4)])
        self.assertEqual(self.replay('--prefix', 'hall', one)[0], [('hall.a', i - START, i) for i in (1, 3)])
        other = self.write('b/pump1.csv', 'time,a\n2,7\n')
        folder = os.path.basename(self.folder.name)
        self.assertEqual(self.replay(one, other)[0], [(f'{folder}.pump1.a', 1 - START, 1), ('b.pump1.a', 2 - START, 7), (f'{folder}.pump1.a', 3 - START, 3)])
        self.write('c/x.txt', '1\n2\n')
        self.write('c/y.csv', '5\n6\n')
        self.write('c/readme.md', 'no recording')
        self.assertEqual(self.replay(self.path('c'))[0], [('x', -START, 1), ('y', -START, 5), ('x', 1 - START, 2), ('y', 1 - START, 6)])
        self.assertIn('no recording in this folder', self.replay(os.path.dirname(self.write('d/e.png', '')), code=1)[1])
        self.assertIn('standard input cannot be combined with files', self.replay(one, '-', code=1)[1])

    def test_packed_files(self):
        text = 'time,a\n2024-01-02 03:04,1.5\n2024-01-02 03:05,2.5\n'
        packed = {'gz': gzip.compress(text.encode()), 'bz2': bz2.compress(text.encode()), 'xz': lzma.compress(text.encode())}
        if shutil.which('zstd'):
            packed['zst'] = subprocess.run(['zstd', '-c'], input=text.encode(), capture_output=True, check=True).stdout
        run = hankel('replay', self.write('probe.csv.gz', packed['gz']))
        if b'no libarchive' in run.stderr:
            self.skipTest('built without libarchive')
        for ending, content in packed.items():
            with self.subTest(ending):
                self.reads(content, self.ONE, name=f'{ending}/f.csv.{ending}')
                self.assertEqual(self.replay('-', data=content)[0], self.ONE)
                self.assertEqual(self.replay(self.path(ending), self.path(ending))[0][0][0][-2:], '.a')
        self.refuses(packed['gz'][:30], 'f.csv.gz: cannot be unpacked', name='f.csv.gz')
        self.reads(gzip.compress(text.encode('utf-16')), self.ONE, name='e/u.csv.gz')


if __name__ == '__main__':
    harness.main(needs_gpu=False)
