#!/usr/bin/env python3
"""Kills a daemon under load, again and again, and checks that nothing was lost, repeated or changed.

    tests/faults/kills.py N [--durability journal|snapshot] [--seed SEED] [--rate POINTS] [--sensors COUNT] [--devices N [--vary]]
                            [--groups]

A feeder sends points of a named feed and, when the daemon is back, continues with the unacknowledged ones. A subscriber takes results and events, and
comes back with the position of the last event that it has. The daemon gets SIGKILL at random instants: while it starts, while it replays, while it
serves; and now and then both break their connections themselves. In the end everything is held against `hankel replay` of the same points:

    - no acknowledged point is lost: the feed never falls back behind an acknowledgement, and the sequence of every result says that
      it is the sensor's n-th point, no more and no less;
    - every result that the subscriber saw has the score and state, bit for bit, of the run that was never killed;
    - the events that it saw are those of that run, each once, with sequences 1, 2, 3 of each sensor and positions that only grow.

With --devices the daemon has that many of them, each with its own shard and journal: it is $FAULTY_DAEMON, whose devices use the CPU and do not fail
here. With --vary each start has a random number of them from 1 to N. It is then known for the previous run only which of the repeated points of a
feed a device had: if that run, too, had begun with another number, and was killed before all points were repeated, some are late, and counted, but
none may be missing.

With --groups the sensors are those of machines, eight each, that change together now and then: results and events of their series, too, must be
those of a daemon that is not killed, each once, also if a reload adds other groups.

With snapshots, points after the last one are lost, and sent again: scores must still be the same, and the loss must be
at most the points of one period.
"""
import argparse
import array
import contextlib
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'integration'))
import harness
from harness import ALERTS, HANKEL, POSITIONS, SCORED, SECOND, START, STATES, UNSCORED, frame, text

FEED, FEED_AT, ACK, SEQUENCES = 0x09, 0x89, 0x95, 64
DETECTOR = 'window=8,rank=2,interval=1s,alert=0.6'
AHEAD = 20000  # points that may be sent and not acknowledged
FRAME = 256
MEMBERS = 8  # of a machine
GROUP = '[group press]\nmatch = plant/(*)/*\nhop = 2\nresident = 80\nstatistic = both\nnovelty.resident = 100\n'
FAULTY = os.environ.get('FAULTY_DAEMON', os.path.join(harness.ROOT, 'build', 'tests', 'integration', 'faulty-daemon'))


def value(sensor, n):
    """Point n of a sensor: a wave with steps, so that alerts come and go."""
    x = (sensor * 2654435761 + n * 40503) & 0xFFFFFFFF
    x = ((x ^ x >> 15) * 2246822519) & 0xFFFFFFFF
    noise = ((x ^ x >> 13) & 0xFFFF) / 65536
    return struct.unpack('<f', struct.pack('<f', 10 * ((n // (37 + sensor)) % 2) + (n % 5) * 0.1 + noise * 0.3))[0]


def together(sensor, n):
    """Likewise for a machine's sensor: noise, whose level changes now and then, for all sensors of the machine at once."""
    machine = sensor // MEMBERS
    x = (sensor * 2654435761 + n * 40503 + 7) & 0xFFFFFFFF
    x = ((x ^ x >> 15) * 2246822519) & 0xFFFFFFFF
    noise = ((x ^ x >> 13) & 0xFFFF) / 65536
    return struct.unpack('<f', struct.pack('<f', noise + 0.5 * ((n // (60 + 11 * machine)) % 2)))[0]


class Fault(Exception):
    """A violation of these rules."""


class Peer(threading.Thread):
    """Connects to the daemon whenever it runs, until `stop`."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.run_, self.fault, self.done = run, None, False
        self.rng = random.Random(run.rng.random())

    def run(self):
        while not self.done and self.fault is None:
            port = self.run_.port
            if not port:
                time.sleep(0.002)
                continue
            try:
                with harness.Client(port) as c:
                    if self.run_.port == port:  # otherwise its daemon may have been killed before, and the port may belong to another program by now
                        self.serve(c)
            except (OSError, harness.Closed):
                time.sleep(0.002)
            except Fault as e:
                self.fault = Fault(f'{e}\n{self.run_.evidence()}')
                raise
            except Exception as e:  # pylint: disable=broad-except
                self.fault = e
                raise


class Feeder(Peer):
    """Sends points 0, 1, 2... of the feed: point i is the (i // sensors)-th of sensor i % sensors."""

    def __init__(self, run, rate):
        super().__init__(run)
        self.rate, self.acknowledged, self.sent, self.most, self.end, self.back = rate, 0, 0, 0, None, []

    def frame(self, handles, first, n):
        s = len(handles)
        numbers = range(first, first + n)
        return frame(harness.POINTS, struct.pack('<QQQIBBH', 0, 0, first, n, 0, 1, 0) +
                     struct.pack(f'<{n}q', *(START + i // s * SECOND for i in numbers)) +
                     struct.pack(f'<{n}I', *(handles[i % s] for i in numbers)) +
                     struct.pack(f'<{n}f', *(self.run_.value(i % s, i // s) for i in numbers)))

    def serve(self, c):
        handles = c.register(*self.run_.names)
        at = c.request(FEED, text('kills'), FEED_AT).one('Q')
        if at < self.acknowledged and self.run_.journal:
            raise Fault(f'the daemon is back with {at} points of the feed; {self.acknowledged} were acknowledged')
        self.back.append(self.acknowledged - at)
        self.acknowledged = at
        self.sent = at
        c.socket.setblocking(False)
        began, base = time.monotonic(), at
        while not self.done:
            due = min(base + int((time.monotonic() - began) * self.rate), self.acknowledged + AHEAD)
            if self.end is not None:
                due = min(due, self.end)
            while self.sent < due:
                n = min(FRAME, due - self.sent)
                c.socket.setblocking(True)
                c.send(self.frame(handles, self.sent, n))
                c.socket.setblocking(False)
                self.sent += n
                self.most = max(self.most, self.sent)
            try:
                while True:
                    kind, _, payload = c.receive()
                    if kind == ACK:
                        self.acknowledged = struct.unpack('<Q', payload)[0]
                        if self.acknowledged > self.most:
                            raise Fault(f'{self.acknowledged} points are acknowledged, {self.most} were sent')
                        self.sent = max(self.sent, self.acknowledged)  # points that the previous connection had sent
                    else:
                        c.keep(kind, payload)
            except BlockingIOError:
                pass
            if self.end is not None and self.acknowledged >= self.end:
                self.done = True
            if self.rng.random() < 0.004:
                return  # comes back to the same daemon
            time.sleep(0.003)


class Subscriber(Peer):
    """Keeps the results that it gets, by sensor and number of the point."""

    def __init__(self, run):
        super().__init__(run)
        s = range(len(run.names))
        self.index = {name: i for i, name in enumerate(run.names)}
        self.scores, self.seen = [array.array('I') for _ in s], [bytearray() for _ in s]
        self.events, self.position, self.gaps, self.results = [], 0, 0, 0
        self.series = {}  # of machines: (time, score) by name and sequence
        self.stays = False  # it no longer breaks its connection

    def serve(self, c):
        what = SCORED | UNSCORED | ALERTS | POSITIONS | SEQUENCES
        c.request(harness.SUBSCRIBE, struct.pack('<If', what, 0) + text('') + struct.pack('<Q', self.position), harness.DONE)
        self.take(c)  # what came before the answer
        c.socket.settimeout(0.05)
        while not self.done:
            try:
                kind, _, payload = c.receive()
            except TimeoutError:
                continue
            c.keep(kind, payload)
            self.take(c)
            if self.rng.random() < 0.002 and not self.stays:
                return

    def take_series(self, name, sequence, result):
        before = self.series.setdefault(name, {}).get(sequence)
        if before is not None and (before != result or self.run_.journal):
            raise Fault(f'{name}: result {sequence} was {before} before, and is {result} now')
        self.series[name][sequence] = result

    def take(self, c):
        for name, at, _, score, state, sequence in c.sequenced:
            if '#' in name:
                self.take_series(name, sequence, (at, score))
                continue
            sensor, n = self.index[name], (at - START) // SECOND
            if self.run_.vary and state == 'late':
                continue
            if sequence < n + 1 or (sequence > n + 1 and not self.run_.vary):
                raise Fault(f'{name}: point {n} is said to be number {sequence}')
            scores, seen = self.scores[sensor], self.seen[sensor]
            if len(seen) <= n:
                scores.extend([0] * (n + 1 - len(seen)))
                seen.extend(bytes(n + 1 - len(seen)))
            bits = 0xFFFFFFFF if score is None else struct.unpack('<I', struct.pack('<f', score))[0]
            if seen[n] and (scores[n], seen[n]) != (bits, 1 + STATES.index(state)):
                raise Fault(f'{name}: point {n} was {scores[n]:#x} {STATES[seen[n] - 1]} before, and is {bits:#x} {state} now')
            if seen[n] and self.run_.journal:
                raise Fault(f'{name}: point {n} came twice')
            scores[n], seen[n] = bits, 1 + STATES.index(state)
            self.results += 1
        for position, sequence, event in c.placed:
            if position <= self.position:
                raise Fault(f'event {position} came behind {self.position}')
            self.position = position
            self.events.append((sequence, event))
        self.gaps += sum(events for _, events in c.gaps)
        c.sequenced, c.placed = [], []
        c.gaps.clear()
        c.results.clear()
        c.events.clear()


class Run:
    def __init__(self, durability, seed, rate, sensors, snapshot='1s', wait=60, devices=0, vary=False, groups=False, life=0.25):
        """devices: 0 for hankeld itself, with the devices that it finds. life: the most seconds for which the daemon runs once it serves."""
        self.life = life
        self.groups, self.value = groups, together if groups else value
        self.rng = random.Random(seed)
        self.journal = durability == 'journal'
        self.names = [f'plant/{i // MEMBERS}/{i}' if groups else f'sensor {i}' for i in range(sensors)]
        self.state = tempfile.mkdtemp(prefix='hankeld-kills-')
        self.keys = (f'threads = 2\nloops = 2\ndurability = {durability}\nstate = {self.state}\nsnapshot = {snapshot}\n'
                     'event_log = 64MiB\n')
        self.detectors = harness.section('all', '*', DETECTOR) + (GROUP if groups else '')
        self.program, self.backend = (FAULTY, 'cuda') if devices else (harness.HANKELD, harness.BACKEND)
        self.devices, self.vary = devices, vary
        self.port, self.wait, self.starts = None, wait, []
        self.logs = []  # the log of each daemon so far
        self.feeder, self.subscriber = Feeder(self, rate), Subscriber(self)

    def environment(self):
        return {'HANKELD_DEVICES': str(self.rng.randint(1, self.devices) if self.vary else self.devices)}

    def start(self):
        began = time.monotonic()
        daemon = harness.Daemon(self.detectors, keys=self.keys, program=self.program, backend=self.backend, environment=self.environment())
        self.starts.append(time.monotonic() - began)
        self.logs.append(daemon.lines)
        self.port = daemon.port['binary tcp']
        return daemon

    def evidence(self):
        """Saves the logs of the last daemons and the state folder, for finding out what happened."""
        kept = self.state + '.evidence'
        with contextlib.suppress(OSError):  # a file that is removed while it is copied; the others are copied
            shutil.copytree(self.state, kept, dirs_exist_ok=True)
        files = sorted((os.path.relpath(os.path.join(folder, f), kept), os.path.getsize(os.path.join(folder, f))) for folder, _, names in os.walk(kept) for f in names)
        return '\n'.join([f'daemon {len(self.logs)} of this run, at port {self.port}; a copy of its state is in {kept}: {files}'] +
                         [f'daemon {i + 1} said: ' + '\n    '.join(log[-25:]) for i, log in list(enumerate(self.logs))[-3:]])

    def kill(self, daemon):
        self.port = None  # first, because connections that were made since then are to this daemon
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(self.wait)
        daemon.reader.join(self.wait)
        daemon.process.stderr.close()
        daemon.directory.cleanup()

    def reload(self, daemon):
        """A reload adds another group, which must not affect the machines that are checked."""
        others = GROUP.replace('press', 'others').replace('plant', 'elsewhere')
        daemon.configure(self.rng.choice((self.detectors + others, harness.section('all', '*', DETECTOR) + others + GROUP)), self.keys)
        daemon.process.send_signal(signal.SIGHUP)

    def start_and_kill_early(self):
        """Starts a daemon and kills it during its start."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, 'conf')
            with open(path, 'w') as f:
                f.write(f'[daemon]\nbackend = {self.backend}\n{self.keys}{harness.LISTENERS}{self.detectors}')
            p = subprocess.Popen([self.program, '-c', path], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env={**os.environ, **self.environment()})
            time.sleep(self.rng.uniform(0, 0.15))
            p.kill()
            p.wait(self.wait)

    def check_peers(self):
        for peer in (self.feeder, self.subscriber):
            if peer.fault:
                raise peer.fault

    def go(self, kills, progress=lambda n: None, least=0):
        """Kills the daemon that many times; then lets the feed come to its end, after more than `least` results."""
        self.feeder.start()
        self.subscriber.start()
        for i in range(kills):
            if self.rng.random() < 0.1:
                self.start_and_kill_early()
                continue
            daemon = self.start()
            before = self.feeder.acknowledged
            if self.rng.random() < 0.8:  # so that the feed advances
                harness.until(lambda: self.feeder.acknowledged > before or self.feeder.fault, 'an acknowledgement', self.wait)
            if self.groups and self.rng.random() < 0.5:
                self.reload(daemon)
            time.sleep(self.rng.uniform(0, self.life))
            self.kill(daemon)
            self.check_peers()
            progress(i + 1)
        daemon = self.start()
        try:
            self.subscriber.stays = True  # results of while it is disconnected are not sent again, and it must get the last ones
            least = max(least, self.subscriber.results)
            harness.until(lambda: self.subscriber.results > least or self.feeder.fault or self.subscriber.fault, f'{least} results', self.wait)
            self.feeder.end = (self.feeder.most // len(self.names) + 50) * len(self.names)
            self.feeder.join(self.wait)
            self.check_peers()
            if self.feeder.is_alive():
                raise Fault(f'{self.feeder.acknowledged} of {self.feeder.end} points are acknowledged, and no more are')
            last = self.feeder.end // len(self.names) - 1
            seen = self.subscriber.seen
            harness.until(lambda: self.subscriber.fault or all(len(s) > last for s in seen), 'the last results', self.wait)
            time.sleep(0.5)
            self.subscriber.done = True
            self.subscriber.join(self.wait)
            self.check_peers()
            status = daemon.status()
        finally:
            code = daemon.clean()
        if code != 0:
            raise Fault(f'the daemon ended with {code}')
        return status

    def reference(self):
        """Results and events of `hankel replay`: by sensor, (bits of the score, state); and events by sensor, in order."""
        sensors, points = len(self.names), self.feeder.end // len(self.names)
        path = os.path.join(self.state, 'points.csv')
        with open(path, 'w') as f:
            f.write('time,' + ','.join(self.names) + '\n')
            for n in range(points):
                f.write(f'{START // SECOND + n},' + ','.join(repr(self.value(s, n)) for s in range(sensors)) + '\n')
        index = {name: i for i, name in enumerate(self.names)}
        results, events = [[] for _ in range(sensors)], [[] for _ in range(sensors)]
        with subprocess.Popen([HANKEL, 'replay', '--backend', harness.BACKEND, '--detector', DETECTOR, path], stdout=subprocess.PIPE,
                              text=True) as p:
            next(p.stdout)
            for line in p.stdout:
                cells = line.rstrip('\n').split(',')
                if cells[0] == '#event':
                    events[index[cells[2]]].append((cells[1], cells[3], int(cells[4]), int(cells[5]), harness.single(cells[6]),
                                                    float(cells[7]), float(cells[8])))
                else:
                    bits = struct.unpack('<I', struct.pack('<f', float(cells[3])))[0] if cells[3] else 0xFFFFFFFF
                    results[index[cells[0]]].append((bits, cells[4]))
        if p.returncode != 0:
            raise Fault('hankel replay failed')
        return results, events

    def compare(self):
        """Returns what was compared: results, events."""
        results, events = self.reference()
        compared = 0
        for sensor, name in enumerate(self.names):
            scores, seen = self.subscriber.scores[sensor], self.subscriber.seen[sensor]
            for n, state in enumerate(seen):
                if state and (scores[n], STATES[state - 1]) != results[sensor][n]:
                    raise Fault(f'{name}: point {n} is {scores[n]:#x} {STATES[state - 1]}, and without kills '
                                f'{results[sensor][n][0]:#x} {results[sensor][n][1]}')
                compared += state > 0
            mine = [(s, e) for s, e in self.subscriber.events if e[0] == name]
            if not self.journal:
                continue
            if [s for s, _ in mine] != list(range(1, len(mine) + 1)):
                raise Fault(f'{name}: sequences of events {[s for s, _ in mine][:50]}...')
            got = [(f'{name}:{e[1]}', e[2], e[3], e[5], e[6], e[7], e[8]) for _, e in mine]
            if got != events[sensor]:
                differs = next((i for i, (a, b) in enumerate(zip(got, events[sensor])) if a != b), min(len(got), len(events[sensor])))
                raise Fault(f'{name}: event {differs + 1} of {len(got)}: {got[differs:differs + 1]}, and without kills, of '
                            f'{len(events[sensor])}: {events[sensor][differs:differs + 1]}')
        if self.journal and self.subscriber.gaps:
            raise Fault(f'{self.subscriber.gaps} events were said to be missing')
        if self.groups and not self.vary:  # a machine keeps the sensors on its own device
            compared += self.compare_series()
        return compared, len(self.subscriber.events)

    def never_killed(self):
        """Results by name, and events, of the machines' series in a daemon that gets the same points and is not killed."""
        sensors = len(self.names)
        daemon = harness.Daemon(self.detectors, keys='threads = 2\nmax_ahead = off\n', backend=harness.BACKEND)
        try:
            with daemon.client() as c, daemon.client() as subscriber:
                subscriber.subscribe(SCORED | ALERTS, '*#*')
                handles = c.register(*self.names)
                for first in range(0, self.feeder.end, 10 * sensors):
                    numbers = range(first, min(first + 10 * sensors, self.feeder.end))
                    c.send(harness.points([handles[i % sensors] for i in numbers], [START + i // sensors * SECOND for i in numbers],
                                          [self.value(i % sensors, i // sensors) for i in numbers]))
                c.ping()
                harness.until(lambda: daemon.status()['points']['pending'] == 0, 'the run without kills', self.wait)
                subscriber.drain(0.5)
        finally:
            daemon.clean()
        results = {}
        for name, at, _, score, _ in subscriber.results:
            results.setdefault(name, []).append((at, score))
        return results, subscriber.events

    def compare_series(self):
        results, events = self.never_killed()
        seen, compared = self.subscriber.series, 0
        if sorted(seen) != sorted(results) or (not events and self.feeder.end > 400 * len(self.names)):
            raise Fault(f'series {sorted(seen)}, and without kills {sorted(results)}; {len(events)} events')
        for name, expected in results.items():
            for sequence, result in seen[name].items():
                if sequence > len(expected) or result != expected[sequence - 1]:
                    raise Fault(f'{name}: result {sequence} is {result}, and without kills {expected[sequence - 1:sequence]}')
                compared += 1
            if max(seen[name]) != len(expected):
                raise Fault(f'{name}: {max(seen[name])} results, and without kills {len(expected)}')
            mine = [(s, e) for s, e in self.subscriber.events if e[0] == name]
            wanted = [e for e in events if e[0] == name]
            if self.journal and [s for s, _ in mine] != list(range(1, len(mine) + 1)):
                raise Fault(f'{name}: sequences of events {[s for s, _ in mine][:50]}...')
            if self.journal and [e for _, e in mine] != wanted:
                differs = next((i for i, ((_, a), b) in enumerate(zip(mine, wanted)) if a != b), min(len(mine), len(wanted)))
                raise Fault(f'{name}: event {differs + 1} of {len(mine)}: {mine[differs:differs + 1]}, and without kills, of '
                            f'{len(wanted)}: {wanted[differs:differs + 1]}')
        return compared

    def clean(self):
        for peer in (self.feeder, self.subscriber):
            peer.done = True
        shutil.rmtree(self.state, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('kills', type=int)
    parser.add_argument('--durability', choices=('journal', 'snapshot'), default='journal')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--rate', type=int, default=8000, help='points a second')
    parser.add_argument('--sensors', type=int, default=32)
    parser.add_argument('--devices', type=int, default=0)
    parser.add_argument('--vary', action='store_true')
    parser.add_argument('--groups', action='store_true')
    parser.add_argument('--snapshot', default='1s', help='time between two')
    parser.add_argument('--life', type=float, default=0.25, help='seconds that it lives, at most, once it serves')
    args = parser.parse_args()
    run = Run(args.durability, args.seed, args.rate, args.sensors, devices=args.devices, vary=args.vary, groups=args.groups,
              snapshot=args.snapshot, life=args.life)
    began = time.monotonic()

    def progress(n):
        if n % 50 == 0:
            print(f'{n} kills, {run.feeder.acknowledged} points acknowledged, {run.subscriber.results} results and '
                  f'{len(run.subscriber.events)} events seen, {time.monotonic() - began:.0f} s', flush=True)

    try:
        run.go(args.kills, progress)
        compared, events = run.compare()
        print(f'{args.kills} kills ({args.durability}, seed {args.seed}): {run.feeder.end} points of {args.sensors} sensors, all there '
              f'once; {compared} results that were seen are bit for bit those of a run without kills; {events} events, '
              + ('none lost, none repeated' if run.journal else 'not compared') + f'; started again in {sorted(run.starts)[len(run.starts) // 2]:.2f} s '
              f'(median), {max(run.starts):.2f} s at most; {time.monotonic() - began:.0f} s in all')
        if not run.journal:
            print(f'points that had been acknowledged and were sent again after a kill: {max(run.feeder.back)} at most')
    except (Fault, AssertionError) as fault:
        print(f'FAILED: {fault}; the state is in {run.state}', file=sys.stderr)
        sys.exit(1)
    run.clean()


if __name__ == '__main__':
    main()
