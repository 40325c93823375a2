"""The daemon as a service: socket activation, by which a restart loses no connection and no datagram; notifications to the service manager; and
limits."""
import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import harness
from harness import HANKEL, SECOND, START, until

ANY = '[detector any]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'


def bound(kind, address='127.0.0.1', again=False):
    s = socket.socket(type=kind)
    if again:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind((address, 0) if isinstance(address, str) else address)
    if kind == socket.SOCK_STREAM:
        s.listen(512)
    return s


def listener(name, protocol, transport, address):
    return f'[listen {name}]\nprotocol = {protocol}\ntransport = {transport}\naddress = {address}\n'


class Notified:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, case, watchdog=None):
        directory = tempfile.TemporaryDirectory()
        case.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, 'notify')
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        case.addCleanup(self.socket.close)
        self.socket.bind(path)
        self.environment = {'NOTIFY_SOCKET': path}
        if watchdog:
            self.environment['WATCHDOG_USEC'] = str(watchdog)

    def ready(self, case):
        self.socket.settimeout(harness.WAIT / 2)
        try:
            self.expect('READY=1')
        except TimeoutError:
            case.skipTest('built without systemd')
        self.socket.settimeout(harness.WAIT)

    def expect(self, word):
        """The notifications up to one that has this line."""
        told = []
        while True:
            told.append(self.socket.recv(4096).decode())
            if word in told[-1].split('\n'):
                return told


def quiet(notified, seconds):
    """Asserts that no further WATCHDOG=1 comes."""
    end = time.monotonic() + harness.WAIT
    while True:
        notified.socket.settimeout(seconds)
        if time.monotonic() > end:
            raise AssertionError('the watchdog is fed on and on')
        try:
            if notified.socket.recv(4096) != b'WATCHDOG=1':
                end += 1
        except TimeoutError:
            notified.socket.settimeout(harness.WAIT)
            return


class Service(harness.Case):
    def setUp(self):
        probe = Notified(self)
        d = harness.Daemon(ANY, environment=probe.environment)
        self.addCleanup(d.clean)
        probe.ready(self)
        d.stop()

    def socket(self, *what, **how):
        s = bound(*what, **how)
        self.addCleanup(s.close)
        return s

    def where(self, s):
        return f'127.0.0.1:{s.getsockname()[1]}'

    def test_sockets_by_name_and_by_address(self):
        named, lines, same, other = (self.socket(k) for k in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_STREAM,
                                                              socket.SOCK_STREAM])
        listeners = (listener('points', 'binary', 'tcp', '127.0.0.1:1') + listener('lines', 'line', 'udp', self.where(lines)) +
                     listener('text', 'text', 'tcp', self.where(same)) + listener('own', 'line', 'tcp', '127.0.0.1:0'))
        d = self.daemon(ANY, listeners=listeners, passed=[('points', named), ('hankeld.socket', lines), ('hankeld.socket', same),
                                                          ('hankeld.socket', other)])
        self.assertEqual(d.port, {'binary tcp': named.getsockname()[1], 'line udp': lines.getsockname()[1],
                                  'text tcp': same.getsockname()[1], 'line tcp': d.port['line tcp']})
        self.assertTrue(any('`hankeld.socket`, ' + self.where(other) in line and 'no [listen NAME] section has its name or address' in line for line in d.log), d.log)
        with d.connect('line udp') as s, d.client() as c:
            s.send(b'pump value=1 1\n')
            until(lambda: c.status()['points']['in'] == 1, 'the point')

    def reaches_every_loop(self, d):
        senders = [d.connect('line udp') for _ in range(40)]
        for i, s in enumerate(senders):
            s.send(f's{i} value=1 1\n'.encode())
            s.close()
        until(lambda: d.status()['points']['in'] == 40, 'all points')
        self.assertNotIn(0, [x['datagrams'] for x in d.status()['loops']])

    def test_each_loop_has_a_socket(self):
        first = self.socket(socket.SOCK_DGRAM, again=True)
        second = self.socket(socket.SOCK_DGRAM, first.getsockname(), again=True)
        tcp = self.socket(socket.SOCK_STREAM)
        listeners = listener('points', 'binary', 'tcp', self.where(tcp)) + listener('lines', 'line', 'udp', self.where(first))
        d = self.daemon(ANY, keys='threads = 2\nloops = 2\n', listeners=listeners,
                        passed=[('lines', first), ('lines', second), ('points', tcp)])
        self.reaches_every_loop(d)

    def test_a_port_is_one_daemons(self):
        """The loops' UDP sockets share a port with each other, and with no other process."""
        at = lambda port: listener('lines', 'line', 'udp', f'127.0.0.1:{port}')
        d = self.daemon(ANY, keys='threads = 2\nloops = 2\n', listeners=at(0) + listener('points', 'binary', 'tcp', '127.0.0.1:0'))
        for loops in (1, 2):
            with self.assertRaises(harness.NotReady) as refused:
                self.daemon(ANY, keys=f'threads = 2\nloops = {loops}\n', listeners=at(d.port['line udp']))
            self.assertIn('[listen lines]', refused.exception.log[-1])
            self.assertIn('Address already in use', refused.exception.log[-1])
        self.reaches_every_loop(d)

    def test_beyond_loopback_is_refused(self):
        s = self.socket(socket.SOCK_STREAM, '0.0.0.0')
        how = {'listeners': listener('points', 'binary', 'tcp', '127.0.0.1:1'), 'passed': [('points', s)]}
        try:
            d = harness.Daemon(ANY, **how)
        except AssertionError as refused:
            said = str(refused)
        else:  # it is about to end
            said = '\n'.join(d.log)
            self.assertEqual(d.clean(), 1)
        self.assertIn('beyond loopback', said)

    def test_restart_under_load(self):
        """Datagrams and connections that arrive while no daemon runs wait for the next one."""
        points, lines = self.socket(socket.SOCK_STREAM), self.socket(socket.SOCK_DGRAM)
        listeners = listener('points', 'binary', 'tcp', self.where(points)) + listener('lines', 'line', 'udp', self.where(lines))
        how = {'listeners': listeners, 'passed': [('points', points), ('lines', lines)]}
        stop, sent, welcomed, told, faults = threading.Event(), [0], [0], [0], []

        def datagrams():
            with socket.socket(type=socket.SOCK_DGRAM) as s:
                s.connect(lines.getsockname())
                while not stop.is_set():
                    s.send(f's value=1 {START + sent[0] * SECOND}\n'.encode())
                    sent[0] += 1
                    time.sleep(0.01)

        def connections():
            while not stop.is_set():
                try:
                    with harness.Client(points.getsockname()[1]):
                        welcomed[0] += 1
                except harness.Closed as closed:
                    told[0] += closed.error is not None and closed.error[0] == 13  # it had arrived before the daemon ended
                    if not closed.error or closed.error[0] != 13:
                        faults.append(closed)
                except (OSError, AssertionError) as fault:
                    faults.append(fault)
                time.sleep(0.01)

        first = self.daemon(ANY, **how)
        threads = [threading.Thread(target=t) for t in (datagrams, connections, connections)]
        for t in threads:
            t.start()
        taken = 0
        d = first
        for _ in range(3):
            time.sleep(0.4)
            self.assertEqual(d.stop(), 0)
            found = [re.search(r'ended: (\d+) points in, \d+ scored, 0 given up', line) for line in d.log]
            taken += sum(int(f[1]) for f in found if f)
            d = self.daemon(ANY, **how)
        time.sleep(0.4)
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(faults, [])
        self.assertGreater(welcomed[0], 4)
        until(lambda: taken + d.status()['points']['in'] == sent[0], f'all {sent[0]} datagrams, {taken} before the last restart')
        print(f'{sent[0]} datagrams, {welcomed[0]} connections, {told[0]} told that the daemon ends')

    def test_a_feed_over_restarts(self):
        """Over TCP, with a journal, each point counts once, however often the daemon is restarted meanwhile."""
        n, state = 2400, tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, state)
        points = self.socket(socket.SOCK_STREAM)
        how = {'listeners': listener('points', 'binary', 'tcp', self.where(points)), 'passed': [('points', points)],
               'keys': f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {state}/there\n'}
        recording = os.path.join(state, 'all.csv')
        with open(recording, 'w') as f:
            f.write('time,s\n' + ''.join(f'{START + i * SECOND},{i * 7919 % 101}\n' for i in range(n)))
        d, lives, seen, arrived = self.daemon(ANY, **how), 1, [], 0
        feeder = subprocess.Popen([HANKEL, 'feed', '--to', self.where(points), '--feed', 'recording', '--rate', '800', '--unit', 'ns',
                                   recording], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(feeder.stdout.close)
        self.addCleanup(feeder.kill)
        while feeder.poll() is None:
            with d.client() as c:
                c.subscribe()
                arrived -= c.status()['durability']['replayed']
                threading.Timer(0.5, d.process.send_signal, [signal.SIGTERM]).start()
                with contextlib.suppress(harness.Closed):
                    while True:
                        c.keep(*c.receive()[::2])
                self.assertEqual(c.gaps, [])
                seen += [(r[1], r[4]) for r in c.results]
            self.assertEqual(d.stop(), 0)
            arrived += int(re.search(r'ended: (\d+) points in', '\n'.join(d.log))[1])
            d = self.daemon(ANY, **how)
            lives += 1
        self.assertEqual(feeder.wait(), 0, feeder.stdout.read())
        times = [s[0] for s in seen]
        repeated, late = len(times) - len(set(times)), sum(s[1] == 'late' for s in seen)
        status = d.status()
        arrived += status['points']['in'] - status['durability']['replayed']
        print(f'{n} points over {lives} lives: {arrived} came in, {len(times)} seen')
        self.assertEqual((arrived, repeated, late, sum(s[1] == 'gap' for s in seen)), (n, 0, 0, 0))
        self.assertGreater(lives, 2)
        with d.client() as c:  # nothing is missing: the next point finds a whole window
            c.subscribe()
            c.send(harness.points(c.register('s'), [START + n * SECOND], [1.0]))
            self.assertEqual(c.wait_results(1)[0][4], 'ok')

    def test_feeders_are_told(self):
        d = self.daemon(ANY)
        with d.client() as c:
            handles = c.register('s')
            c.send(harness.points(handles, [START], [1.0]))
            c.ping()
            self.assertEqual(d.stop(), 0)
            with self.assertRaises(harness.Closed) as closed:
                while True:
                    c.keep(*c.receive()[::2])
        self.assertEqual(closed.exception.error[0], 13)

    def test_reloading_is_told(self):
        notified = Notified(self)
        d = self.daemon(ANY, environment=notified.environment)
        notified.ready(self)
        for detectors in (ANY.replace('window = 8', 'window = 9'), '[detector'):
            d.configure(detectors)
            with d.client() as c:
                c.reload()
            told = notified.expect('RELOADING=1')
            self.assertRegex(told[-1], r'\nMONOTONIC_USEC=\d+$')
            notified.expect('READY=1')
        d.stop()
        notified.expect('STOPPING=1')

    def test_a_loop_that_hangs(self):
        """The watchdog is fed as long as every loop runs, not only the one that feeds it."""
        notified = Notified(self, watchdog=1500000)
        program = os.environ.get('FAULTY_DAEMON')
        if not program:
            self.skipTest('the faulty daemon is not built')
        d = harness.Daemon(ANY, program=program, backend='cuda', keys='drain = 1s\nloops = 2\n',
                           environment={**notified.environment, 'HANKELD_FAULT': 'block-add'})
        self.addCleanup(d.clean)
        notified.ready(self)
        notified.expect('WATCHDOG=1')
        clients = [d.client() for _ in range(2)]  # one on each loop
        clients[1].send(harness.frame(harness.REGISTER, b'\1\0\0\0' + harness.text('s')))
        until(lambda: any(re.search(r'error: the thread of loop 1 has not run for [12]\.\d s', line) for line in d.log), 'the log')
        quiet(notified, 2)
        for c in clients:
            c.close()
        d.process.kill()

    def test_limits(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))  # noqa: E731
        d = self.daemon(ANY, keys='threads = 2\nloops = 1\nmax_connections = 300\n', limits=few)
        with open(f'/proc/{d.process.pid}/limits') as f:
            soft = int(re.search(r'Max open files +(\d+)', f.read())[1])
        self.assertTrue(300 < soft < 400, soft)
        self.assertFalse(any('warning' in line for line in d.log), d.log)
        d = self.daemon(ANY, keys='threads = 2\nmemory = 900 TiB\n')
        self.assertTrue(any('warning: the configuration allows about 9216' in line for line in d.log), d.log)


if __name__ == '__main__':
    harness.main()
