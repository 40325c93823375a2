"""Fields that are large enough for the GPU, which keeps their state."""
import os
import random
import shutil
import signal
import tempfile
import unittest

import harness
from harness import SCORED, SECOND, START, UNSCORED

CONFIG = ('[detector raw]\nmatch = roof/*\nwindow = 8\ninterval = 1s\nalert = off\n[detector faults]\nmatch = none\nalgorithm = shift\nwindow = 32\n'
          '[field roofs]\nmatch = roof/*\noperator = residual\ndetector = faults\nq = 5\nblame = 32\nmembers = 5000\nneighbours = ')
N, ROWS = 4300, 330
FIRST = 4 + 2 * 96  # row with a residual


@unittest.skipUnless(harness.BACKEND == 'cuda', 'needs a GPU')
class Large(harness.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankel-fields-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.edges = os.path.join(self.folder, 'edges')
        with open(self.edges, 'w') as f:
            f.writelines(f'roof/{i}/power roof/{(i + far) % N}/power\n' for i in range(N) for far in (1, 97))
        rng, front, self.values = random.Random(4), 0, []
        for _ in range(ROWS):
            front = 0.97 * front + rng.gauss(0, 1)
            self.values.append([1e3 + (1 + i % 10) * front + rng.random() for i in range(N)])

    def life(self, first, behind, backend='cuda', state=None, kill=False):
        """Runs a daemon that gets these rows, and returns the residuals."""
        keys = 'threads = 2\nmax_ahead = off\nqueue = 512MiB\n' + (f'durability = journal\nstate = {state}\n' if state else '')
        d = self.daemon(CONFIG + self.edges + '\n', keys=keys, backend=backend, ends=-signal.SIGKILL if kill else 0)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(UNSCORED | SCORED | 16, '*#residual')  # 16: and values
            handles = c.register(*[f'roof/{i}/power' for i in range(N)])
            for t in range(first, behind):
                c.send(harness.points(handles, [START + t * SECOND] * N, self.values[t]))
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            due = N * max(0, behind - 4 - max(FIRST - 4, first - 4 if first else 0))
            harness.until(lambda: subscriber.drain(0.1) or len(subscriber.results) >= due, f'{due} residuals')
            self.assertEqual(any('is computed on the cuda device' in line for line in d.log), backend == 'cuda')
            if kill:
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        if not kill:
            self.assertEqual(d.stop(), 0)
        return [(n, t, v) for n, t, v, _, _ in subscriber.results]

    def test_residuals_are_those_of_the_cpu(self):
        """The residuals are equal to the last bit, also over a kill and a stop."""
        expected = sorted(self.life(0, ROWS, backend='cpu'))
        self.assertEqual(len(expected), N * (ROWS - FIRST))
        self.assertEqual(sorted(self.life(0, ROWS)), expected)
        state = os.path.join(self.folder, 'state')
        got = self.life(0, 150, state=state, kill=True) + self.life(150, 240, state=state) + self.life(240, ROWS, state=state)
        self.assertEqual(sorted(got), expected)


if __name__ == '__main__':
    harness.main()
