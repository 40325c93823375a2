"""This build reads a state folder of the first format (tests/data/state-0.1: a clean end, then a kill), and continues in its own format."""
import os
import shutil
import signal
import subprocess
import tempfile

import harness
from harness import ALERTS, SCORED, SECOND, START, UNSCORED
from test_state_folder import Feeder

DETECTOR = 'window=16,rank=2,interval=1s,alert=0.5,cooldown=30'  # the folder was made with these numbers, these values and this feed
SENSORS, TAKEN, POINTS = 3, 230, 300


class OldState(harness.Case):
    def test_goes_on(self):
        folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, folder)
        state = os.path.join(folder, 'state')
        shutil.copytree(os.path.join(harness.DATA, 'state-0.1'), state)
        values = harness.waves(5, SENSORS, POINTS, (120, 200))
        rows, events = harness.uninterrupted(values, DETECTOR)
        for first, behind, ends in ((TAKEN, 260, -signal.SIGKILL), (260, 280, 0), (280, POINTS, 0)):
            daemon = self.daemon(harness.section('all', '*', DETECTOR), ends=ends, keys=f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {state}\n')
            self.assertFalse([line for line in daemon.log if 'damage' in line or 'missing' in line], daemon.log)
            told = {(f'{e[0]}:{e[1]}', e[2]) for e in daemon.events()}
            self.assertEqual(told, {key for key, (at, *_) in events.items() if at < START + first * SECOND})
            client = Feeder(daemon.port['binary tcp'])
            self.addCleanup(client.close)
            self.assertEqual(client.feed_at, first * SENSORS)
            client.subscribe(SCORED | UNSCORED | ALERTS)
            handles = client.register(*values)
            for k in range(first, behind):
                client.send(harness.points(handles, [START + k * SECOND] * SENSORS, [v[k] for v in values.values()], before=SENSORS * k))
            client.wait_results(SENSORS * (behind - first))
            client.await_ack(SENSORS * behind)
            delta = self.rounding(daemon)
            for sensor, time, _, score, what in client.results:
                expected, said = rows[sensor, time]
                self.assertEqual(what, said)
                self.assertAlmostEqual(score, expected, delta=delta)
            if ends:
                daemon.process.kill()
                daemon.process.wait()
            else:
                daemon.stop()
        run = subprocess.run([harness.HANKEL, 'state', 'verify', state], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
