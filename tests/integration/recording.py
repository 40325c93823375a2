"""A daemon that is told a recording of one sensor, and may be ended and started again in between."""
import os
import sys
import tempfile

import harness
from harness import SECOND, START, WAIT, until

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402


class Recording(harness.Case):
    """What a file's tests have in common. keys: of the detector; mode: durability; values: of the sensor press, one a second."""
    keys = mode = values = None

    def setUp(self):
        self.state = tempfile.TemporaryDirectory(prefix='hankeld-recording-')
        self.addCleanup(self.state.cleanup)

    def start(self, ends=0):
        kept = f'durability = {self.mode}\nstate = {self.state.name}\n' if self.mode != 'none' else ''
        daemon = self.daemon(harness.section('all', '*', self.keys), ends=ends, keys='threads = 2\nmax_ahead = off\n' + kept)
        client = hankel.Client(f'127.0.0.1:{daemon.port["binary tcp"]}', timeout=WAIT)
        self.addCleanup(client.close)
        return daemon, client

    def feed(self, client, first, behind):
        for i in range(first, behind):
            client.send('press', START + i * SECOND, self.values[i])
        client.sync()
        until(lambda: client.status()['points']['pending'] == 0, 'scores')
