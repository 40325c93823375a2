"""A real systemd restarts a daemon whose shard stands still. Runs if systemd is installed, and this machine was not booted with it (a container)."""
import contextlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
import textwrap
import time

import harness
from harness import SECOND, START, text, until

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95
SYSTEMD = next((p for p in ('/lib/systemd/systemd', '/usr/lib/systemd/systemd') if os.path.exists(p)), None)
SENSORS = [f'm{i}/a' for i in range(3)]

# The manager of a user's services, with its own /run, processes and control group, so that it sees none of the machine's. It runs the commands
# that this test sends, each a line.
ALONE = 'echo $$ >{0}/cgroup.procs && exec unshare --mount --pid --cgroup --fork --mount-proc --kill-child sh -c "$1"'
MANAGER = """
mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user/0 || exit 77
chmod 700 /run/user/0
export XDG_RUNTIME_DIR=/run/user/0 HOME={0} XDG_CONFIG_HOME={0}
{1} --user --log-target=null &
for i in $(seq 100); do
  systemctl --user is-system-running 2>/dev/null | grep -q running && break
  sleep 0.1
done
systemctl --user is-system-running | grep -q running || exit 77
echo running
while read -r line; do
  systemctl --user --no-pager $line 2>&1
  echo "done $?"
done
"""


def cgroups():
    """The folder of the machine's control groups of version 2, or None."""
    with open('/proc/mounts', encoding='utf-8') as f:
        return next((line.split()[1] for line in f if line.split()[2] == 'cgroup2'), None)


class Manager:
    def __init__(self, case, unit):
        folder = tempfile.mkdtemp(prefix='hankeld-systemd-')
        case.addCleanup(shutil.rmtree, folder)
        os.makedirs(os.path.join(folder, 'systemd', 'user'))
        with open(os.path.join(folder, 'systemd', 'user', 'hankeld.service'), 'w', encoding='utf-8') as f:
            f.write(unit)
        try:
            self.cgroup = tempfile.mkdtemp(prefix='hankeld-test-', dir=cgroups())
        except OSError as e:
            case.skipTest(f'no control group of our own: {e}')
        case.addCleanup(self.leave_no_cgroup)
        command = ['sh', '-c', ALONE.format(self.cgroup), 'sh', MANAGER.format(folder, SYSTEMD)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1)
        case.addCleanup(self.end)
        if self.process.stdout.readline() != 'running\n':
            case.skipTest('systemd cannot run here')

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def leave_no_cgroup(self):
        end = time.monotonic() + 5
        while time.monotonic() < end and os.path.exists(self.cgroup):
            for folder, _, _ in os.walk(self.cgroup, topdown=False):
                with contextlib.suppress(OSError):  # killed processes stay in it for a moment
                    os.rmdir(folder)
            time.sleep(0.05)

    def systemctl(self, line):
        """The output of a command, without its exit code."""
        self.process.stdin.write(line + '\n')
        said = []
        while not (said and said[-1].startswith('done ')):
            said.append(self.process.stdout.readline())
            if not said[-1]:
                raise AssertionError(f'systemd is gone: {said}')
        return ''.join(said[:-1])

    def show(self):
        return dict(line.split('=', 1) for line in self.systemctl('show -p NRestarts,Result,ActiveState,MainPID hankeld.service').splitlines())


class Systemd(harness.Case):
    def setUp(self):
        program = os.environ.get('ORDERED_DAEMON')
        if not program or not SYSTEMD or not shutil.which('unshare') or os.geteuid() != 0 or os.path.exists('/run/systemd/system') or not cgroups():
            self.skipTest('no systemd that a test may run')
        self.folder = tempfile.mkdtemp(prefix='hankeld-test-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.order, self.log = os.path.join(self.folder, 'order'), os.path.join(self.folder, 'log')
        with open(os.path.join(self.folder, 'hankeld.conf'), 'w', encoding='utf-8') as f:
            f.write(f'[daemon]\nbackend = {harness.BACKEND}\nthreads = 1\nloops = 1\nmax_ahead = off\ndurability = journal\n'
                    f'state = {self.folder}/state\n[listen binary]\nprotocol = binary\naddress = 127.0.0.1:0\n'
                    '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n')
        unit = textwrap.dedent(f"""\
            [Service]
            Type=notify
            ExecStart={program} -c {self.folder}/hankeld.conf
            Environment=HANKELD_ORDERED={self.order}
            StandardError=append:{self.log}
            WatchdogSec=3s
            RestartSec=100ms
            Restart=on-failure
            LimitCORE=0
            """)
        self.manager = Manager(self, unit)

    def lines(self):
        with open(self.log, encoding='utf-8') as f:
            return f.read().splitlines()

    def client(self):
        port = [re.match(r'listening binary tcp \S+:(\d+)$', line) for line in self.lines()]
        c = harness.Client(int([p for p in port if p][-1][1]))
        self.addCleanup(c.close)
        return c

    def feed(self, c):
        return struct.unpack_from('<Q', c.request(FEED, text('a feed'), FEED_AT).data)[0]

    def send(self, c, handles, before, n):
        for i in range(before // len(SENSORS), before // len(SENSORS) + n):
            c.send(harness.points(handles, [START + i * SECOND] * len(handles), [float(i % 5)] * len(handles), before=i * len(handles)))

    def acknowledged(self, c, upto):
        points = 0
        while points < upto:
            kind, _, payload = c.receive()
            if kind == ACK:
                points, = struct.unpack_from('<Q', payload)

    def test_fault_23_systemd_restarts_a_shard_that_stalls(self):
        said = self.manager.systemctl('start hankeld.service')
        before = self.manager.show()
        if before['ActiveState'] != 'active':
            self.skipTest(f'built without systemd: {said} {before}')
        c = self.client()
        self.assertEqual(self.feed(c), 0)
        handles = c.register(*SENSORS)
        self.send(c, handles, 0, 50)
        self.acknowledged(c, 150)
        with open(self.order, 'w', encoding='utf-8') as f:
            f.write('wait')
        end, i = time.monotonic() + harness.WAIT, 50
        with self.assertRaises(OSError):  # points come all the time, and in the end the daemon is killed
            while time.monotonic() < end:
                self.send(c, handles, 3 * i, 1)
                time.sleep(0.01)
                i += 1
        os.remove(self.order)
        until(lambda: self.manager.show()['ActiveState'] == 'active', 'the daemon to be restarted')
        after = self.manager.show()
        self.assertEqual(after['NRestarts'], '1')
        self.assertNotEqual(after['MainPID'], before['MainPID'])
        stalled = [line for line in self.lines() if re.search(r'error: shard 0 has made no progress for [\d.]+ s: \d+ points in \d+ chunks wait', line)]
        self.assertEqual(len(stalled), 1, self.lines())
        c = self.client()
        at = self.feed(c)
        self.assertGreaterEqual(at, 150)  # acknowledged points are there
        self.send(c, c.register(*SENSORS), at, 20)
        self.acknowledged(c, at + 60)
        until(lambda: c.status()['points']['pending'] == 0, 'all points')
        self.assertEqual(c.status()['batches']['stalled_s'], 0)
        self.manager.systemctl('stop hankeld.service')
        self.assertEqual(self.manager.show()['Result'], 'success')


if __name__ == '__main__':
    harness.main(needs_gpu=False)
