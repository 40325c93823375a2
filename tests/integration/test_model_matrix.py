"""Processes given as matrices, on simulated recordings: the departures of checks, in a daemon and in a replay, over kills and restarts."""
import os
import shutil
import subprocess
import unittest

import harness
import test_model
from test_model import hankel

SIDE = 6
MODEL = '''kind matrix
unit C
equations a.mtx
storage m.mtx
inputs b.mtx
readings h.mtx
constant 2 20
sensor t/heater input 1 boundary
sensor t/edge at 1 boundary
sensor t/near at 9 check
sensor t/far at 35 check
sensor t/mean reading 1 check
'''


def matrix(rows, columns, entries):
    return '%%MatrixMarket matrix coordinate real general\n' + f'{rows} {columns} {len(entries)}\n' + ''.join(f'{i + 1} {j + 1} {v!r}\n' for (i, j), v in sorted(entries.items()))


def hall(wind):
    """Writes the matrices of a grid of places: A has conduction, lost heat and moving air; M storage; B a heater and the room; H the mean of a row."""
    n, a = SIDE * SIDE, {}

    def add(i, j, v):
        a[i, j] = a.get((i, j), 0.0) + v
    for i in range(n):
        add(i, i, 0.05)
        for j in ([i + 1] if (i + 1) % SIDE else []) + ([i + SIDE] if i + SIDE < n else []):
            for k, other in ((i, j), (j, i)):
                add(k, k, 1.0)
                add(k, other, -1.0)
        if wind and i % SIDE:
            add(i, i, wind)
            add(i, i - 1, -wind)
    b = {(i, 1): 0.05 for i in range(n)} | {(21, 0): 1.0}
    return matrix(n, n, a), matrix(n, n, {(i, i): 1.5 for i in range(n)}), matrix(n, 2, b), matrix(1, n, {(0, i): 1 / SIDE for i in range(SIDE)})


class Matrix(test_model.Field):
    """The process is solved as a symmetric one here, as a band in the class below."""
    test_a_daemon_says_what_a_replay_says = test_goes_on = test_a_boundary_is_lost = test_check_says_so = None  # tests of a line of pipes
    ROWS, LEAK, WIND, SAYS = 500, 350, 0, r"36 unknowns, 156 numbers, 6 and 6 diagonals beside the main one once they are in order, symmetric; 5 sensors, 3 of them checks\n.*(sparse LDL'|band Cholesky) on this machine"

    def setUp(self):
        super().setUp()
        for name, text in zip('ambh', hall(self.WIND)):
            self.file(f'{name}.mtx', text)
        self.file('t.model', MODEL)
        values, _ = self.columns(self.simulated('--hours', str(self.ROWS / 3600), '--seed', '5', '--moves', '2m', '--noise', '1e-4', '--leak', f'{self.LEAK}s,0.2,15'))
        self.names = list(values)
        self.rows = [[values[n][t] for n in self.names] for t in range(self.ROWS)]

    def test_goes_on_as_in_one_life(self):
        for t in range(200, 203):
            self.rows[t][0] = None
        keys = f'state = {self.state}\nsnapshot = 1h\ndurability = '
        whole, events, log = self.part(self.rows, 0, self.ROWS, keys + 'journal\n')
        self.assertRegex(log, r't#field: the model begins steady; its checks have no values for \d+ s, until it has forgotten its start; computed by the processor')
        items, _ = self.replay(self.rows)
        self.assertEqual([(n, t, v) for n, t, v, _, _ in whole], sorted((i['sensor'], i['time'], i['value']) for i in items if 'value' in i))
        self.assertEqual({n for n, *_ in whole}, {'t/near#model', 't/far#model', 't/mean#model'})
        near = [v for n, _, v, *_ in whole if n == 't/near#model']
        self.assertLess(sum(near[-50:]) / 50, sum(near[-250:-200]) / 50 - 1)  # what is lost is missing there
        shutil.rmtree(self.state)
        for durability, kill in (('journal', True), ('snapshot', False)):
            cut = [self.part(self.rows, a, b, f'{keys}{durability}\n', kill and b < self.ROWS)[:2] for a, b in ((0, 9), (9, 201), (201, self.ROWS))]
            self.assertEqual(sorted(r for results, _ in cut for r in results), whole)
            self.assertEqual(sorted(e for _, told in cut for e in told), sorted(events))
            shutil.rmtree(self.state)

    def test_level_and_finer_steps(self):
        def heater(*more):
            return self.columns(self.simulated('--hours', '0.05', '--seed', '3', '--noise', '0', '--moves', '1m', *more))[0]['t/heater']
        usual, low = heater(), heater('--level', '40')
        self.assertTrue(all(79 < x < 121 for x in usual) and all(0.79 * 40 < x < 1.21 * 40 for x in low), (min(usual), max(usual), min(low), max(low)))
        self.assertEqual(usual, heater('--finer', '2'))  # the default
        self.assertNotEqual(usual, heater('--finer', '8'))

    def explained(self, d):
        pass  # test_model looks for the sensors of its line of pipes

    def check(self, **files):
        for name, text in files.items():
            self.file(f'{name}.mtx' if len(name) == 1 else 't.model', text)
        path = self.file('c.conf', '[daemon]\nbackend = cpu\n' + test_model.sections('t', self.model))
        return subprocess.run([harness.HANKELD, '-c', path, '--check'], capture_output=True, text=True, timeout=harness.WAIT)

    def test_said(self):
        self.assertRegex(self.check().stdout, self.SAYS)
        for arguments, said in ((['fit', self.model, self.model], 'it is given as matrices, which have neither friction nor wave speed to fit'),
                                (['simulate', '--leak', '1h,0.1', self.model], '--leak 1h,0.1: want AT,SHARE,UNKNOWN, a number from 1 to 36'),
                                (['simulate', '--leak', '1h,0.1,1', self.model], '--leak 1h,0.1,1: a boundary gives unknown 1'),
                                (['simulate', '--leak', '1h,0.1,37', self.model], '--leak: UNKNOWN 37')):
            done = hankel('model', *arguments)
            self.assertEqual((done.returncode != 0, said in done.stderr), (True, True), done.stderr)
        a = hall(self.WIND)[0]
        for files, said in (({'a': a + '1 1 1\n'}, f'[field t]: file: {self.model}: line 3, column 11: a.mtx: line {a.count(chr(10)) + 1}, column 1: 1: more entries than the file says'), ({'a': a.replace('2.05', 'x')}, 'a.mtx: line '),
                            ({'a': matrix(36, 36, {(i, i): 1.0 for i in range(36) if i != 12})}, 'the equations have no steady state, or no next one: they are singular at unknown 13'),
                            ({'a': a, 'model': MODEL.replace('constant 2 20\n', '')}, f'{self.model}: line 5, column 8: b.mtx: neither a boundary nor a constant gives input 2 of 2')):
            done = self.check(**files)
            self.assertEqual((done.returncode, said in done.stderr), (1, True), done.stderr)


class Band(Matrix):
    WIND, SAYS = 0.4, '6 and 6 diagonals beside the main one once they are in order, not symmetric; .*\n.*band LU on this machine'


@unittest.skipUnless(harness.BACKEND == 'cuda', 'of the GPU')
class Wide(Matrix):
    """A band wide enough for the GPU: the same bits over kills, and equal to the processor except for rounding."""
    SAYS = test_said = None

    def test_goes_on_as_in_one_life(self):
        global SIDE
        SIDE, before = 128, SIDE
        try:
            for name, text in zip('ambh', hall(0.4)):
                self.file(f'{name}.mtx', text)
        finally:
            SIDE = before
        self.file('t.model', MODEL.replace('at 9 ', 'at 300 ').replace('at 35 ', 'at 9000 '))
        keys, rows = f'state = {self.state}\nsnapshot = 1h\ndurability = journal\n', 150
        self.rows = self.rows[:rows]
        whole, _, log = self.part(self.rows, 0, rows, keys)
        self.assertIn('computed by the GPU', log)
        shutil.rmtree(self.state)
        cut = [self.part(self.rows, a, b, keys, b < rows)[0] for a, b in ((0, 9), (9, 100), (100, rows))]
        self.assertEqual(sorted(r for results in cut for r in results), whole)
        items, _ = self.replay(self.rows)
        wanted = sorted((i['sensor'], i['time'], i['value']) for i in items if 'value' in i)
        self.assertEqual([r[:2] for r in whole], [r[:2] for r in wanted])
        self.assertLess(max([abs(r[2] - w[2]) for r, w in zip(whole, wanted)], default=0), 1e-9)


if __name__ == '__main__':
    harness.main()
