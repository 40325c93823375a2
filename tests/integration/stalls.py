"""Tests on a machine that many share: it can stand still for longer than the second or two that tests give a daemon.

`Case` runs a test that failed again, twice at most, if its process was held up meanwhile, and only then. One that passes then is flaky:
the result is told so (tap.py), scripts/test names and counts it, and fails from the second one on.
"""
import sys
import threading
import time
import unittest

NAP, STALL = 0.02, 0.25  # seconds between looks at the clock, and by which a look has to be late to count


class Stall:
    """By how many seconds this process has been held up at most, in a `with`."""

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
    """A method of unittest.TestResult that keeps its arguments, too."""
    def keep(self, *args):
        getattr(unittest.TestResult, what)(self, *args)
        self.said.append((what, args))
    return keep


class Outcome(unittest.TestResult):
    """What a test said, which may be told to another result."""

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
