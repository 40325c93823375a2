"""A daemon that is killed at random instants under load: no acknowledged point is lost, no event is lost or repeated, and scores are
those of a run that was never killed. tests/faults/kills.py does the same any number of times."""
import os
import sys
import unittest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, 'tests', 'faults'))
import kills


class Kills(harness.Case):
    def run_it(self, durability, seed, n, devices=0, vary=False):
        run = kills.Run(durability, seed, rate=2000 if harness.SANITIZED else 8000, sensors=16, wait=harness.WAIT, devices=devices, vary=vary)
        try:
            run.go(n, least=1000)
            results, events = run.compare()
        finally:
            run.clean()
        self.assertGreater(results, 1000)
        self.assertGreater(events, 10)

    def test_journal(self):
        seed = int.from_bytes(os.urandom(4), 'little')
        with self.subTest(seed=seed):
            self.run_it('journal', seed, 4 if harness.SANITIZED else 10)

    @unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
    def test_several_shards(self):
        seed = int.from_bytes(os.urandom(4), 'little')
        with self.subTest(seed=seed):
            self.run_it('journal', seed, 3 if harness.SANITIZED else 6, devices=3, vary=bool(seed % 2))


if __name__ == '__main__':
    harness.main()
