"""Repeats tests on a shared machine, which can stand still for longer than the second or two that tests give a daemon.

`Case` runs a failed test again, at most twice, and only if its process was held up meanwhile. A test that then passes is flaky:
the result says so (tap.py), and scripts/test names and counts such tests, and fails if there are two or more.
"""
import sys
import threading
import time
import unittest

NAP, STALL = 0.1, 0.2  # seconds between looks at the clock, and seconds by which a look must be late to count; a look takes 0.1 ms of a processor


class Stall:
    """Measures the longest time, in seconds, for which this process was held up inside a `with`."""

    def __enter__(self):
        self.most, self.over = 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def watch(self):
        while not self.over.is_set():
            begin = time.monotonic()
            time.sleep(NAP)
            self.most = max(self.most, time.monotonic() - begin - NAP)


def kept(what):
    """A method of unittest.TestResult that also records its arguments."""
    def keep(self, *args):
        getattr(unittest.TestResult, what)(self, *args)
        self.said.append((what, args))
    return keep


class Outcome(unittest.TestResult):
    """Records the calls of a test, to be repeated on another result."""

    def __init__(self):
        super().__init__()
        self.said = []

    addSuccess, addFailure, addError, addSkip, addExpectedFailure, addUnexpectedSuccess, addSubTest = map(kept, (
        'addSuccess', 'addFailure', 'addError', 'addSkip', 'addExpectedFailure', 'addUnexpectedSuccess', 'addSubTest'))

    def tell(self, result):
        for what, args in self.said:
            getattr(result, what)(*args)


class Case(unittest.TestCase):
    def run(self, result=None):
        if result is None:
            result = self.defaultTestResult()
        result.startTest(self)
        held = []
        for again in (True, True, False):
            outcome = Outcome()
            with Stall() as stall:
                super().run(outcome)
            if outcome.wasSuccessful() or stall.most < STALL or not again:
                break
            held.append(f'{stall.most:.2f} s')
            print(f'{self.id()} failed, and was held up for {held[-1]}: it is run again', file=sys.stderr)
            for _, args in outcome.said:
                print(*(unittest.TestResult()._exc_info_to_string(a, self) for a in args if isinstance(a, tuple)), file=sys.stderr)
        if held and outcome.wasSuccessful() and hasattr(result, 'add_flaky'):
            result.add_flaky(self, f'failed, held up for {" and ".join(held)}, and passed when it was run again')
        outcome.tell(result)
        result.stopTest(self)
        return result
