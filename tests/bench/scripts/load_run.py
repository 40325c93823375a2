"""One measured run of the whole road: starts a daemon with its own configuration, load generators (load_feed) and subscribers
(load_tail) as separate processes, and compares what they and the daemon have counted. Used by socket_to_socket.py. Standard library
only."""
import collections
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import zlib

WAIT = 120  # seconds that any step may take
HELLO, STATUS, WELCOME, REPORT = 1, 7, 0x81, 0x87
SCORED, UNSCORED, ALERTS = 1, 2, 4
DAY = 86400 * 10**9  # ns: the sensors' interval in the configuration, so that no spacing of points is a hole
EVERYTHING = SCORED | UNSCORED
LISTENERS = ''.join(f'[listen {protocol}-{transport}]\nprotocol = {protocol}\ntransport = {transport}\naddress = 127.0.0.1:0\n'
                    for protocol in ('binary', 'line') for transport in ('tcp', 'udp'))


class Failed(Exception):
    pass


def nanoseconds():
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def until(condition, what, wait=WAIT):
    end = time.monotonic() + wait
    while not condition():
        if time.monotonic() > end:
            raise Failed(f'waited {wait} s for {what}')
        time.sleep(0.002)


class Link:
    """Asks a daemon for its status, over one connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), WAIT)
        self.ask(HELLO, struct.pack('<H', 5) + b'bench', WELCOME)

    def ask(self, kind, payload, reply):
        head = struct.pack('<2sBBII', b'HK', 1, kind, len(payload), 1)
        self.socket.sendall(head + struct.pack('<I', zlib.crc32(payload, zlib.crc32(head))) + payload)
        while True:
            head = self.exactly(16)
            data = self.exactly(struct.unpack_from('<I', head, 4)[0])
            if head[3] == reply:
                return data
            raise Failed(f'the daemon answered with {head[3]:#x}: {data!r}')

    def exactly(self, n):
        data = b''
        while len(data) < n:
            got = self.socket.recv(n - len(data))
            if not got:
                raise Failed('the daemon closed the connection')
            data += got
        return data

    def status(self):
        return json.loads(self.ask(STATUS, b'', REPORT))


class Process:
    """A child process that reports its progress on standard output, as JSON objects, one a line."""

    def __init__(self, name, command):
        self.name, self.events = name, {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            self.events[event.pop('event')] = event

    def reached(self, event):
        if event not in self.events and self.process.poll() is not None:
            self.reader.join(WAIT)
            if event not in self.events:
                raise Failed(f'{self.name}: {self.process.stderr.read().strip() or self.process.returncode}')
        return event in self.events

    def wait(self, event, wait=WAIT):
        until(lambda: self.reached(event), f'{self.name}: {event}', wait)
        return self.events[event]

    def go(self):
        self.process.stdin.write('go\n')
        self.process.stdin.flush()

    def end_input(self):
        self.process.stdin.close()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Daemon:
    def __init__(self, program, configuration, directory):
        path = os.path.join(directory, 'hankeld.conf')
        with open(path, 'w') as f:
            f.write(configuration)
        self.log, self.port, self.ready = [], {}, False
        self.process = subprocess.Popen([program, '-c', path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        until(lambda: self.ready or self.process.poll() is not None, 'the daemon to be ready')
        if self.process.poll() is not None:
            raise Failed('the daemon did not start:\n' + '\n'.join(self.log[-20:]))
        self.link = Link(self.port['binary tcp'])

    def _read(self):
        for line in self.process.stderr:
            found = re.match(r'listening (\w+) (\w+) \S+:(\d+)$', line)
            if found:
                self.port[f'{found[1]} {found[2]}'] = found[3]
            elif line.strip() == 'ready':
                self.ready = True
            else:
                self.log.append(line.rstrip())

    def resident(self):
        with open(f'/proc/{self.process.pid}/statm') as f:
            return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise Failed('the daemon did not end') from None
        return self.process.returncode


def thread_times(pid):
    """Nanoseconds that each thread has run, by (id, name)."""
    times = {}
    for task in os.listdir(f'/proc/{pid}/task'):
        try:
            with open(f'/proc/{pid}/task/{task}/comm') as f:
                name = f.read().strip()
            with open(f'/proc/{pid}/task/{task}/stat') as f:
                fields = f.read().rsplit(')', 1)[1].split()
            user, system = (int(x) * 10**9 // os.sysconf('SC_CLK_TCK') for x in fields[11:13])
            try:
                with open(f'/proc/{pid}/task/{task}/schedstat') as f:
                    total = int(f.read().split()[0])
            except OSError:
                total = user + system
            times[task, name] = (total, user, system)
        except (OSError, IndexError):
            pass  # it has ended
    return times


def thread_shares(before, after, took):
    """(name, percent of a core, share of that in the kernel) for each thread, the busiest first."""
    rows = []
    for key, (total, user, system) in after.items():
        begin = before.get(key, (0, 0, 0))
        used, in_user, in_system = total - begin[0], user - begin[1], system - begin[2]
        share = in_system / (in_user + in_system) if in_user + in_system else 0
        if used / took > 0.005:
            rows.append((key[1], round(100 * used / took, 1), round(share, 2)))
    return sorted(rows, key=lambda row: -row[1])


# How one generator feeds. None: the size's default.
Feed = collections.namedtuple('Feed', 'sensors connections threads frame protocol layout rate prefix burst buffer',
                              defaults=(None, 16, 4, 4096, 'binary', 'tick', 0, 's', 65536, 0))
# What one subscriber process wants. of: the number of the generator whose sensors it wants; None: all.
Tail = collections.namedtuple('Tail', 'what subscribers min_score of one busy', defaults=(EVERYTHING, 1, 0.0, None, None, 0))


class Bench:
    def __init__(self, options):
        self.options = options
        self.tiny = options.size == 'tiny'
        self.cpu = options.backend == 'cpu'
        self.most = options.most  # points a second, of which the latency cases use a share

    def configuration(self, sensors, detector):
        keys = {'backend': self.options.backend, 'max_sensors': max(sensors, 1000), 'memory': 'off', 'max_connections': 16000,
                'max_connections_per_address': 16000, 'max_subscriptions': 2000, 'max_pending': 1 << 20,
                'backlog': 1 << 20 if self.tiny else 8 << 20, 'queue': '16MiB' if self.tiny else '1GiB',
                'log_level': 'warning'}
        keys.update(pair.split('=', 1) for pair in self.options.set)
        own = {'match': '*', 'window': 96, 'interval': '1d', 'silent': 'off'}
        if self.cpu:
            own.update(window=12, stride=64)
        own.update(detector)
        return ('[daemon]\n' + ''.join(f'{k} = {v}\n' for k, v in keys.items()) + LISTENERS +
                '[detector all]\n' + ''.join(f'{k} = {v}\n' for k, v in own.items() if v is not None), own)

    def span(self, own):
        w = int(own['window'])
        return 2 * w - 1 + int(own.get('gap', w))

    def program(self, *path):
        return os.path.join(self.options.build, *path)

    def command(self, name, settings):
        pairs = [(f'--{key}', str(value)) for key, value in settings.items() if value is not None]
        return [self.program('tests/bench', name), *(word for pair in pairs for word in pair)]

    def subscriber(self, i, tail, feeds, daemon, when, ticks, series):
        of = tail.of if tail.of is not None else 0 if len(feeds) == 1 else None
        whole = series == 1 and of is not None and tail.what & EVERYTHING == EVERYTHING and not feeds[of].protocol.endswith('udp')
        return Process(f'subscriber {i}', self.command('load_tail', {
            'port': daemon.port['binary tcp'], 'subscribers': tail.subscribers, 'what': tail.what, 'min-score': tail.min_score,
            'busy': tail.busy, 'glob': '' if tail.of is None else feeds[tail.of].prefix + '*', 'one': tail.one,
            'ticks': f'{ticks}{of}' if whole and not tail.one else None, **when}))

    def feeder(self, i, feed, daemon, measure, ticks):
        return Process(f'feeder {i}', self.command('load_feed', {
            'port': daemon.port['binary tcp'], 'udp': daemon.port['binary udp'], 'line': daemon.port['line tcp'],
            'line-udp': daemon.port['line udp'], **feed._asdict(), 'ticks': f'{ticks}{i}', **measure}))

    @staticmethod
    def end(result, feeders, subscribers):
        for each in subscribers:
            each.end_input()
        result['feeders'] = [each.events['done'] for each in feeders]
        result['subscribers'] = [each.wait('done') for each in subscribers]

    @staticmethod
    def stop(daemon):
        """Stops a daemon; returns a list of faults, which should be empty."""
        daemon.link.socket.close()  # the daemon waits for open connections
        code = daemon.stop()
        return [] if code == 0 else [f'the daemon ended with {code}']

    def run(self, name, feeds, tails=(Tail(),), detector=None, seconds=None, fill=0, warm=None, series=1):
        """One daemon and one measurement. fill: samples that the daemon fills in after each point of the warm-up; these
        windows are in state gap. warm: ticks of the warm-up, if not those that a window takes. series: what the detector makes of a
        sensor; the daemon counts the points of each, the result's rates (in_per_s, scored_per_s) are of sensors' points."""
        detector = dict(detector or {})
        if fill:
            detector['max_fill'] = fill
        seconds = seconds or self.options.seconds
        skip = 500 if seconds > 1 else 0  # ms, in which names are sent and caches fill
        sensors = sum(feed.sensors for feed in feeds)
        configuration, own = self.configuration(sensors * series, detector)
        warm = warm or -(-self.span(own) // (fill + 1)) + 1
        processes = []
        with tempfile.TemporaryDirectory(prefix='hankeld-bench-') as directory:
            began = time.monotonic()
            daemon = Daemon(self.program('hankeld'), configuration, directory)
            try:
                result = {'case': name, 'sensors': sensors, 'series': series, 'seconds': seconds, 'resident_start': daemon.resident()}
                result['start_s'] = round(time.monotonic() - began, 2)
                mark = nanoseconds()
                ticks = os.path.join(directory, 'ticks')
                feeders, subscribers = [], []
                for i, feed in enumerate(feeds):
                    feeders.append(self.feeder(i, feed, daemon, {
                        'warm': warm, 'warm-step': (fill + 1) * DAY if fill else 1024, 'seconds': seconds, 'mark': mark}, ticks))
                    processes.append(feeders[-1])
                for each in feeders:
                    each.wait('registered')
                result['resident_registered'] = daemon.resident()
                result['setup_s'] = round((nanoseconds() - mark) * 1e-9, 2)
                for each in feeders:
                    each.wait('warm')
                warmed = warm * sensors * series
                until(lambda: self.settled(daemon, warmed), 'the windows to be full')
                result['warm_s'] = round((nanoseconds() - mark) * 1e-9 - result['setup_s'], 2)
                result['resident_warm'] = daemon.resident()
                result['before'] = daemon.link.status()
                for i, tail in enumerate(tails):
                    subscribers.append(self.subscriber(i, tail, feeds, daemon, {'mark': mark, 'warm': warm, 'skip': skip}, ticks, series))
                    processes.append(subscribers[-1])
                for each in subscribers:
                    each.wait('subscribed')
                self.measure(result, daemon, feeders, subscribers, seconds)
                for each in feeders:
                    each.wait('done', WAIT + seconds)
                until(lambda: self.settled(daemon, 0), 'the last points to be scored')
                time.sleep(0.3 if any('udp' in f.protocol for f in feeds) else 0)
                result['status'] = status = daemon.link.status()
                self.end(result, feeders, subscribers)
                result['faults'] = self.reconcile(result, feeds, tails, status) + self.stop(daemon)
                result['log'] = daemon.log[-10:]
                result['took_s'] = round(time.monotonic() - began, 2)
                return result
            finally:
                for each in processes:
                    each.kill()
                if daemon.process.poll() is None:
                    daemon.process.kill()
                    daemon.process.wait()

    @staticmethod
    def settled(daemon, least):
        p = daemon.link.status()['points']
        return p['pending'] == 0 and p['in'] >= least

    def measure(self, result, daemon, feeders, subscribers, seconds):
        """Starts the measured part, and reads within it what the daemon has done and where all threads have spent their
        time."""
        pids = {'daemon': daemon.process.pid}
        pids.update((each.name, each.process.pid) for each in feeders + subscribers)
        for each in feeders:
            each.go()
        time.sleep(0.2 * seconds)
        looks = []
        profile = self.options.profile and subprocess.Popen(self.options.profile.format(pid=daemon.process.pid), shell=True)
        for wait in (0.7 * seconds, 0):
            status, now = daemon.link.status(), time.monotonic()
            looks.append((now, status, {name: thread_times(pid) for name, pid in pids.items()}))
            time.sleep(wait)
        (t0, status0, cpu0), (t1, status1, cpu1) = looks
        rate = {what: (status1['points'][what] - status0['points'][what]) / (t1 - t0) / result['series'] for what in ('in', 'scored')}
        result['in_per_s'], result['scored_per_s'] = round(rate['in']), round(rate['scored'])
        done = status1['batches']['done'] - status0['batches']['done']
        result['points_a_batch'] = round(rate['in'] * result['series'] * (t1 - t0) / done) if done else 0
        if profile:
            profile.wait(WAIT)
        result['threads'] = {name: thread_shares(cpu0[name], cpu1[name], (t1 - t0) * 1e9) for name in pids}

    @staticmethod
    def reconcile(result, feeds, tails, status):
        """Describes the counts that do not agree."""
        faults = []

        def same(what, a, b):
            if a != b:
                faults.append(f'{what}: {a} and {b}')

        points, udp, before = status['points'], status['udp'], result['before']  # subscribers connected once the windows were full
        sent = result['series'] * sum(f['warmed'] + f['sent'] for f in result['feeders'])
        lost = 0
        if any(f.protocol.endswith('udp') for f in feeds):
            same('datagrams sent, and read and lost by the kernel', sum(f['datagrams'] for f in result['feeders']),
                 udp['datagrams'] + udp['kernel_lost'])
            lost = udp['lost_points'] if feeds[0].protocol == 'binary-udp' else sent - points['in'] if udp['kernel_lost'] else 0
        same('points sent, and in and lost', sent, points['in'] + lost)
        result['lost'] = lost
        same('points in, and all that became of them', points['in'], sum(v for k, v in points.items() if k != 'in'))
        for what in ('pending', 'late', 'rejected', 'dropped'):
            same(f'points {what}, and none', points[what], 0)
        events = sum(status['events'][kind] - before['events'][kind] for kind in ('raised', 'corrected', 'cleared'))
        for tail, got in zip(tails, result['subscribers']):
            for what in ('disorder', 'late', 'rejected'):
                same(f'results {what}, and none', got[what], 0)
            if tail.one or tail.min_score:
                continue
            if tail.what & EVERYTHING == EVERYTHING:
                owed = points['in'] - before['points']['in'] if tail.of is None else result['series'] * result['feeders'][tail.of]['sent']
                same('results and left out, and points in', got['results'] + got['gap_results'], owed * tail.subscribers)
                if got['gap_results'] == 0:
                    same('sensors with another number of results than points, and none', got['incomplete'], 0)
                if got['gap_results'] == 0 and tail.of is None:
                    same('scored results, and points scored', got['scored'],
                         (points['scored'] - before['points']['scored']) * tail.subscribers)
            if tail.what & ALERTS and tail.of is None:
                same('events and left out, and events', got['raised'] + got['corrected'] + got['cleared'] + got['gap_events'],
                     events * tail.subscribers)
        return faults
