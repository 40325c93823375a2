"""The tests of a file in the Test Anything Protocol, a line for each. So a skipped test, also a skipped sub-test of another test,
counts as skipped, and a test that failed and passed when it was repeated (stalls.py) differs from one that passed at once.

Only the protocol goes to standard output; output of tests and their programs, and tracebacks, go to standard error.
"""
import os
import sys
import time
import traceback
import unittest

LONGEST_REASON = 300  # characters


class Result(unittest.TestResult):
    """Prints the line of each test at its end. `# flaky: NAME: WHY` precedes the line of a test that passed when it was repeated, `# because: WHY`
    that of a failed one."""

    def __init__(self, stream):
        super().__init__()
        self.stream, self.number, self.bad, self.skip = stream, 0, False, None

    def say(self, ok, test, directive=''):
        self.number += 1
        name = str(test).replace('#', '').replace('\n', ' ')
        print(f'{"ok" if ok else "not ok"} {self.number} - {name}{directive}', file=self.stream, flush=True)

    def say_skipped(self, test, reason):
        self.say(True, test, ' # SKIP ' + reason.replace('\n', ' '))

    def startTest(self, test):
        super().startTest(test)
        self.bad, self.skip, self.began = False, None, time.monotonic()
        self.running = test

    def stopTest(self, test):
        super().stopTest(test)
        if self.skip is None or self.bad:  # a sub-test may have failed before the rest was skipped
            self.say(not self.bad, test)
        else:
            self.say_skipped(test, self.skip)
        self.running = None
        print(f'{test}: {time.monotonic() - self.began:.1f} s', file=sys.stderr)

    running = None

    def fault(self, test, err):
        self.bad = True
        print(f'\n{test}\n{self._exc_info_to_string(err, test)}', file=sys.stderr)
        print('# because:', ' '.join(''.join(traceback.format_exception_only(err[0], err[1])).split())[:LONGEST_REASON], file=self.stream, flush=True)
        if self.running is None:  # the error of a class or a module
            self.say(False, test)

    def addError(self, test, err):
        super().addError(test, err)
        self.fault(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fault(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.fault(subtest, err)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.bad = True

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if self.running is None or test is not self.running:  # a skipped class or sub-test: the test itself continued
            self.say_skipped(test, reason)
        else:
            self.skip = reason

    def add_flaky(self, test, why):
        print(f'# flaky: {test}: {why}', file=self.stream, flush=True)


class Runner:
    def __init__(self, stream):
        self.stream = stream

    def run(self, tests):
        result = Result(self.stream)
        tests(result)
        print(f'1..{result.number}', file=self.stream, flush=True)
        return result


class Part(unittest.TestLoader):
    """Every n-th test of a file, from the k-th on, so that meson runs a long file as several tests at a time; those of the names `without`, each
    CLASS.TEST, are left out before."""

    def __init__(self, k=1, n=1, without=()):
        super().__init__()
        self.k, self.n, self.without = k, n, without

    def loadTestsFromModule(self, module, *args, **how):
        def single(tests):
            for test in tests:
                if isinstance(test, unittest.TestSuite):
                    yield from single(test)
                else:
                    yield test
        tests = {test.id().partition('.')[2]: test for test in single(super().loadTestsFromModule(module, *args, **how))}
        unknown = set(self.without) - set(tests)
        assert not unknown, f'no such tests: {unknown}'
        return self.suiteClass([test for name, test in tests.items() if name not in self.without][self.k - 1::self.n])


def main():
    """Runs the tests that the command line names, by default all of the file that was started, with `--without NAMES --part K/N` as first words
    without some of them, a part of the others. Ends the process, with exit code 1 if any failed."""
    stream = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    loader = unittest.defaultTestLoader
    how = {}
    while sys.argv[1:2] in (['--without'], ['--part']):
        what, given = sys.argv[1:3]
        how |= {'without': given.split(',')} if what == '--without' else dict(zip('kn', map(int, given.split('/'))))
        del sys.argv[1:3]
    if how:
        loader = Part(**how)
    unittest.main('__main__', testRunner=Runner(stream), testLoader=loader)
