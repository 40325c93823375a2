#!/usr/bin/env python3
"""The results that tests print (tap.py, stalls.py), and how scripts/count-tests counts them: with real files of tests, in processes of
their own."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

import harness

COUNT = os.path.join(harness.ROOT, 'scripts', 'count-tests')

TESTS = """
import os, signal, subprocess, sys, unittest
sys.path.insert(0, {folder!r})
import harness

class Test(harness.Case):
    runs = 0
    def test_passes(self):
        print('ok 99 - not of the protocol')
        subprocess.run(['echo', 'not ok 98 - nor is this'], check=True)
    def test_skips(self):
        self.skipTest('for a reason')
    @unittest.skip('always')
    def test_is_skipped(self):
        pass
    def test_skips_one_of_two(self):
        for case in 'ab':
            with self.subTest(case=case):
                if case == 'a':
                    self.skipTest('no a here')
    def test_recovers(self):
        Test.runs += 1
        if Test.runs == 1:
            subprocess.Popen(['sh', '-c', f'sleep 0.6; kill -CONT {{os.getpid()}}'])
            os.kill(os.getpid(), signal.SIGSTOP)
            self.fail('the machine stood still')

class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest('needs what is not there')
    def test_one(self):
        pass

class Bad(harness.Case):
    def test_fails(self):
        self.fail('on purpose')
    def test_fails_in_one_of_two(self):
        for case in 'ab':
            with self.subTest(case=case):
                self.assertEqual(case, 'a')
    def test_fails_in_one_and_skips_the_rest(self):
        with self.subTest(case='a'):
            self.fail('on purpose')
        self.skipTest('the rest needs more')

harness.main(needs_gpu=False)
"""


class Counts(unittest.TestCase):
    def run_tests(self, *names):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'some_tests.py')
            with open(path, 'w') as file:
                file.write(TESTS.format(folder=os.path.join(harness.ROOT, 'tests', 'integration')))
            run = subprocess.run([sys.executable, path, *names], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        return run

    def count(self, *tests):
        """The output of scripts/count-tests for (result, standard output, standard error) of tests."""
        with tempfile.NamedTemporaryFile('w', suffix='.json') as log:
            for result, stdout, *stderr in tests:
                print(json.dumps({'name': 'some', 'result': result, 'stdout': stdout, 'stderr': ''.join(stderr)}), file=log)
            log.flush()
            return subprocess.run([COUNT, log.name], capture_output=True, text=True, timeout=harness.WAIT, check=True).stdout.splitlines()

    def test_every_test_and_skip_counts(self):
        run = self.run_tests('Test', 'Whole')
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn('99', run.stdout)
        self.assertNotIn('98', run.stdout)
        self.assertEqual(run.stdout.splitlines()[-1], '1..7')
        counts, *lines = self.count(('OK', run.stdout))
        self.assertEqual(counts, '3 0 4 1')
        self.assertEqual(len(lines), 5)
        for line in ('test_skips', 'for a reason'), ('test_is_skipped', 'always'), ("case='a'", 'no a here'), ('Whole', 'needs what is not there'):
            self.assertTrue(any(x.startswith('skipped: some: ') and all(word in x for word in line) for x in lines), (line, lines))
        flaky = [x for x in lines if x.startswith('flaky: some: test_recovers')]
        self.assertRegex(flaky[0], r'failed, held up for 0\.\d+ s, and passed when it was run again')
        self.assertIn('the machine stood still', run.stderr)

    def test_parts_have_each_test_once(self):
        parts = [[line.partition(' # ')[0].split(' - ')[1] for line in self.run_tests('--part', f'{k}/3').stdout.splitlines() if ' - ' in line]
                 for k in (1, 2, 3)]
        whole = [line.partition(' # ')[0].split(' - ')[1] for line in self.run_tests().stdout.splitlines() if ' - ' in line]
        self.assertEqual(sorted(sum(parts, [])), sorted(whole))
        self.assertTrue(all(len(part) > 1 for part in parts), parts)

    def test_every_file_speaks_the_protocol(self):
        """Otherwise meson, which expects TAP, takes it for a failure."""
        for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'test_*.py')):
            with open(path) as file:
                self.assertRegex(file.read(), r'(?m)^    harness\.main\(.*\)$', path)

    def test_failures_count(self):
        run = self.run_tests('Bad', 'Test.test_passes')
        self.assertEqual(run.returncode, 1)
        self.assertIn('on purpose', run.stderr)
        counts, *lines = self.count(('FAIL', run.stdout, run.stderr))
        self.assertEqual(counts, '1 3 0 0')
        self.assertTrue(all(line.startswith('failed: ') for line in lines), lines)
        self.assertEqual(sum(line.startswith('failed: some: ') for line in lines), 3, lines)
        self.assertTrue(any(line.startswith('failed: some: ') and 'on purpose' in line for line in lines), lines)

    def test_programs_without_a_line_for_each_test_count_once(self):
        self.assertEqual(self.count(('OK', ''), ('FAIL', 'x'), ('TIMEOUT', ''), ('SKIP', ''), ('OK', '1..1\nok 1 - a\n')),
                         ['2 2 1 0', 'failed: some: FAIL', 'failed: some: TIMEOUT', 'skipped: some'])
        self.assertEqual(self.count(('SKIP', '1..0 # SKIP no GPU here\n')), ['0 0 1 0', 'skipped: some: no GPU here'])
        # ended in the middle
        self.assertEqual(self.count(('ERROR', 'ok 1 - a\nok 2 - b\n')), ['2 1 0 0', 'failed: some: ERROR'])


if __name__ == '__main__':
    harness.main(needs_gpu=False)
