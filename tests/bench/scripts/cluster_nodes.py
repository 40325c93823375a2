#!/usr/bin/env python3
"""Repeats figures 9 and 13 of Ueno and Suzumura's paper: measures scores a second of machines that share the sensors over RabbitMQ, over
the number of machines that score, and beside it those of one daemon that is fed over sockets. All processes run on one host, and each
scorer has a GPU of its own.

    tests/bench/scripts/cluster_nodes.py [--out FILE] [--windows 3] [--seconds 2] [--ahead 4000000] CASE...

A case is KEY=VALUE pairs with commas:

    what=engine       gateways are fed as fast as they take points, but not while more than --ahead points wait (default)
    what=direct       one daemon, with `scorers` devices, is fed over sockets
    what=replay       the broker first gets points for `fill` s (at a rate that is printed, too), then scorers begin to read them
    what=lag          as engine, then for `last` s, until --end at most, at `share` of that rate, or at `rate`: how far scorers are behind
    scorers=N, backend=cuda|cpu, threads=N (of a CPU's scorer), loops=N (of a scorer), gateways=N
    detector=NAME     of DETECTORS below; sensors=N
    brokers=N         N clusters side by side, each with a broker, gateways, scorers and sensors of its own
    gpu=N             the GPU of the first scorer
    cores=N           to which each broker and its schedulers are bound; all other programs are bound to the other cores; 0: nothing is bound

Once the windows of all sensors are full, the script measures `--windows` stretches of `--seconds` each, one after the other, and prints
their median and range, how many cores each program keeps busy, and the busiest threads. It appends a JSON object for each case to --out."""
import argparse
import concurrent.futures
import contextlib
import glob
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'integration'))
import harness
import load_run
import rabbit

FEED = os.path.join(os.path.dirname(harness.HANKELD), 'tests', 'bench', 'load_feed')
# As in the paper: w = 320, gap 2w + 7; r = 12 for SVD-SST (figure 9) and 3 for IKA-SST (figure 13, for which the paper
# gives no w).
DETECTORS = {'ika': 'algorithm = ika\nwindow = 320\ngap = 647\nrank = 3\n', 'svd': 'algorithm = svd\nwindow = 320\ngap = 647\nrank = 12\n',
             'small': 'algorithm = ika\nwindow = 12\n', 'shift': 'algorithm = shift\n'}
GPUS = len(glob.glob('/dev/nvidia[0-9]*')) or 1
DEFAULTS = {'what': 'engine', 'scorers': 1, 'backend': 'cuda', 'threads': 1, 'loops': 2, 'gateways': 4, 'detector': 'ika', 'sensors': 16384, 'brokers': 1, 'gpu': 0, 'cores': 0, 'fill': 6,
            'last': 60, 'share': 0.8, 'rate': 0.0}


def busy(pids):
    """Nanoseconds that each thread of these processes has run."""
    return [load_run.thread_times(pid) for pid in pids]


def busiest(before, after, took):
    """How many cores these processes keep busy in all, and the busiest thread of each name, in percent of a core."""
    rows = [row for b, a in zip(before, after) for row in load_run.thread_shares(b, a, took * 1e9)]
    most = {}
    for name, percent, _ in rows:
        most[name] = max(most.get(name, 0), percent)
    first = sorted(most.items(), key=lambda item: -item[1])[:5]
    return round(sum(row[1] for row in rows) / 100, 2), {name: round(percent) for name, percent in first if percent >= 3}


class Feeders:
    """Starts a generator for each daemon that is fed. rate: points a second of all together; 0: as fast as possible."""

    def __init__(self, daemons, sensors, connections, rate=0, mark=None):
        each = sensors // len(daemons)
        command = [FEED, '--sensors', str(each), '--connections', str(connections), '--threads', '1', '--seconds', '100000', '--rate', str(rate / len(daemons))]
        command += ['--mark', str(mark)] if mark else []
        self.all = [load_run.Process(f'feeder {i}', [*command, '--port', str(d.port['binary tcp']), '--prefix', f'g{i}-']) for i, d in enumerate(daemons)]
        for f in self.all:
            f.wait('warm')
        for f in self.all:
            f.go()

    def send(self, number):
        for f in self.all:
            f.process.send_signal(number)

    def end(self):
        for f in self.all:
            f.kill()


class Brake(threading.Thread):
    """Pauses feeders while too many points wait, so that the broker receives no more than it delivers."""

    def __init__(self, rig, feeders, ahead):
        super().__init__(daemon=True)
        self.rig, self.feeders, self.ahead, self.ended = rig, feeders, ahead, threading.Event()
        self.start()

    def run(self):
        stopped = False
        while not self.ended.wait(0.02):
            if (self.rig.behind() > self.ahead) != stopped:
                stopped = not stopped
                self.feeders.send(signal.SIGSTOP if stopped else signal.SIGCONT)

    def end(self):
        self.ended.set()
        self.join()


class Rig:
    """The programs of a case. of: its keys; brokers: those it uses, each of a cluster of its own."""

    def __init__(self, of, brokers, name, leave):
        self.of, self.brokers, self.name, self.leave = of, brokers, name, leave
        self.gateways, self.scorers = [], []
        self.detector = '[detector all]\nmatch = *\ninterval = 1d\nsilent = off\nalert = off\n' + DETECTORS[of['detector']]

    def daemon(self, more='', backend='cpu', keys='', environment=None):
        common = f'max_sensors = {max(self.of["sensors"], 1000)}\nmemory = off\nmax_ahead = off\nmax_pending = 524288\nbacklog = 4194304\nlog_level = warning\n'
        d = harness.Daemon(self.detector + more, keys=common + keys, backend=backend, environment=environment)
        self.leave.callback(d.clean)
        self.leave.callback(d.process.kill)
        return d

    def section(self, k, role, more=''):
        return f'[cluster]\nurl = {self.brokers[k].url}\nname = {self.name}-{k}\nrole = {role}\n{more}'

    def start_scorers(self):
        o = self.of
        n = o['scorers'] // len(self.brokers)
        for k in range(len(self.brokers)):
            folder = self.leave.enter_context(tempfile.TemporaryDirectory(prefix='hankeld-nodes-'))
            mine = [self.daemon(self.section(k, 'scorer', f'state = shared:{folder}\n'), o['backend'], f'threads = {o["threads"]}\nloops = {o["loops"]}\ndevices = {int(o["backend"] == "cuda")}\n',
                                {'CUDA_VISIBLE_DEVICES': str((o['gpu'] + k * n + i) % GPUS)}) for i in range(n)]
            self.scorers += mine
            # otherwise points are scored again when partitions move
            harness.until(lambda: {d.status()['cluster']['partitions'] for d in mine} <= {64 // n, -(-64 // n)} and sum(d.status()['cluster']['partitions'] for d in mine) == 64, 'even shares', 240)  # noqa: B023, called at once

    def start_gateways(self):
        for k in range(len(self.brokers)):
            for _ in range(self.of['gateways'] // len(self.brokers)):
                self.gateways.append(self.daemon(self.section(k, 'gateway'), keys='threads = 1\nloops = 2\n'))
        harness.until(lambda: all(d.status()['cluster']['state'] == 'connected' for d in self.gateways), 'the broker', 240)

    def start_direct(self):
        o = self.of
        self.scorers = [self.daemon('', o['backend'], f'threads = {o["threads"]}\nloops = 8\ndevices = {o["scorers"] if o["backend"] == "cuda" else 0}\n', {'CUDA_VISIBLE_DEVICES': ','.join(str((o['gpu'] + i) % GPUS) for i in range(o['scorers']))})]
        self.gateways = self.scorers

    def look(self):
        """What all programs have done so far, and the time of it."""
        s = [d.status() for d in self.scorers]
        g = s if self.gateways is self.scorers else [d.status() for d in self.gateways]
        return {'time': time.monotonic(), 'scored': sum(x['points']['scored'] for x in s), 'unscored': sum(x['points']['unscored'] for x in s),
                'read': sum(x.get('cluster', {}).get('points', 0) for x in s), 'in': sum(x['points']['in'] for x in g), 'late': sum(x['points']['late'] for x in s),
                'confirmed': sum(x.get('cluster', {}).get('points', 0) for x in g)}

    def behind(self):
        """Points that a gateway has taken and no scorer has dealt with. Late ones are second copies: a gateway that lost the broker publishes again."""
        look = self.look()
        return look['in'] - look['scored'] - look['unscored']

    def groups(self):
        return {'broker': [b.process.pid for b in self.brokers], 'gateway': [d.process.pid for d in self.gateways if d not in self.scorers], 'scorer': [d.process.pid for d in self.scorers]}

    def until_warm(self):
        """Waits until the windows are full, that is, until every point gets a score."""
        before = [self.look()]

        def warm():
            time.sleep(0.25)
            before.append(self.look())
            a, b = before[-2:]
            return b['scored'] > a['scored'] and b['unscored'] == a['unscored']
        harness.until(warm, 'full windows', 240)

    def measure(self, windows, seconds, what=('scored', 'confirmed')):
        """Points a second of each window, and how busy programs were over all of them."""
        groups, begin = self.groups(), time.monotonic()
        times, looks = {g: busy(pids) for g, pids in groups.items()}, [self.look()]
        for _ in range(windows):
            time.sleep(seconds)
            looks.append(self.look())
        took = time.monotonic() - begin
        rates = {w: sorted((b[w] - a[w]) / (b['time'] - a['time']) for a, b in zip(looks, looks[1:])) for w in what}
        return {'rates': {w: [round(x) for x in r] for w, r in rates.items()}, 'late': looks[-1]['late'] - looks[0]['late'],
                'busy': {g: busiest(times[g], busy(pids), took) for g, pids in groups.items() if pids}}


def flood(rig, o):
    of = rig.of
    if of['what'] == 'direct':
        rig.start_direct()
    else:
        rig.start_scorers()
        rig.start_gateways()
    feeders = Feeders(rig.gateways, of['sensors'], 16 if of['what'] == 'direct' else 4)
    rig.leave.callback(feeders.end)
    brake = Brake(rig, feeders, o.ahead if of['what'] != 'direct' else math.inf)
    rig.leave.callback(brake.end)
    rig.until_warm()
    out = rig.measure(o.windows, o.seconds)
    brake.end()
    feeders.end()
    return out


def replay(rig, o):
    of = rig.of
    rig.start_gateways()
    feeders = Feeders(rig.gateways, of['sensors'], 4)
    rig.leave.callback(feeders.end)
    time.sleep(1)
    filled = rig.measure(max(1, round(of['fill'] / 2)), 2, ('confirmed',))
    feeders.end()
    harness.until(lambda: all(x['points']['pending'] == 0 for x in (d.status() for d in rig.gateways)), 'the broker to have all', 240)
    total, rig.gateways = rig.look()['in'], []
    rig.start_scorers()
    read = rig.measure(o.windows, min(o.seconds, 1), ('read',))
    return {'rates': {**filled['rates'], **read['rates']}, 'late': read['late'], 'left': total - rig.look()['read'], 'busy': {**filled['busy'], **{'scorer': read['busy']['scorer'], 'broker, read': read['busy']['broker']}}}


def lag(rig, o):
    of = rig.of
    out = flood(rig, o)
    harness.until(lambda: rig.behind() <= 0, 'it to catch up', 240)
    rate = of['rate'] or of['share'] * statistics.median(out['rates']['scored'])
    paced = Feeders(rig.gateways, of['sensors'], 4, rate, time.clock_gettime_ns(time.CLOCK_REALTIME))
    rig.leave.callback(paced.end)
    time.sleep(2)
    begin, first, samples = time.monotonic(), rig.look(), []
    while time.monotonic() < begin + of['last'] and time.time() < o.end:
        time.sleep(1)
        samples.append((time.monotonic() - begin, max(0, rig.behind()) / rate))
    last = rig.look()
    mean_t, mean_l = (statistics.fmean(x) for x in zip(*samples))
    slope = sum((t - mean_t) * (v - mean_l) for t, v in samples) / sum((t - mean_t) ** 2 for t, _ in samples)
    tenths = [samples[len(samples) * i // 10:len(samples) * (i + 1) // 10] for i in range(10)] if len(samples) >= 10 else []
    out['lag'] = {'offered': round(rate), 'fed': round((last['in'] - first['in']) / (last['time'] - first['time'])), 'seconds': round(samples[-1][0]), 'median': round(statistics.median(v for _, v in samples), 4),
                  'worst': round(max(v for _, v in samples), 4), 'slope_per_minute': round(60 * slope, 5), 'late': last['late'] - first['late'],
                  'medians_of_tenths': [round(statistics.median(v for _, v in t), 4) for t in tenths]}
    return out


class Brokers:
    """The processes of the last case; the next case keeps them if it needs the same."""

    def __init__(self):
        self.kept, self.all, self.host = (0, 0), [], sorted(os.sched_getaffinity(0))

    def get(self, n, cores):
        if (n, cores) != self.kept:
            self.end()
            self.kept = (n, cores)
            schedulers = cores or max(1, min(32, len(self.host) // 2))
            bound = [','.join(map(str, self.host[k * cores:(k + 1) * cores])) or None for k in range(n)]
            self.starters = concurrent.futures.ThreadPoolExecutor(n)  # these threads outlive the brokers, which die with the thread that started them
            self.all = list(self.starters.map(lambda on: rabbit.Broker(schedulers=schedulers, cores=on), bound))
        os.sched_setaffinity(0, self.host[n * cores:] or self.host)
        return self.all

    def end(self):
        os.sched_setaffinity(0, self.host)
        for b in self.all:
            b.clean()
        self.all = []


def run(of, o, brokers, number):
    began = time.monotonic()
    with contextlib.ExitStack() as leave:
        rig = Rig(of, brokers.get(of['brokers'], of['cores']) if of['what'] != 'direct' else [], f'nodes{number}', leave)
        out = {'replay': replay, 'lag': lag}.get(of['what'], flood)(rig, o)
    return {**of, 'gpus': min(of['scorers'], GPUS) if of['backend'] == 'cuda' else 0, **out, 'took': round(time.monotonic() - began, 1)}


def said(result):
    """Prints a case in words."""
    of = ', '.join(f'{k} {result[k]}' for k in DEFAULTS if result[k] != DEFAULTS[k]) or 'one scorer'
    rates = '; '.join(f'{what} {statistics.median(r) / 1e6:.2f} M/s ({r[0] / 1e6:.2f} to {r[-1] / 1e6:.2f})' for what, r in result['rates'].items() if any(r))
    lines = [f'{of}: {rates}; {result["took"]} s']
    for group, (cores, threads) in result['busy'].items():
        lines.append(f'  {group}: {cores} cores; ' + ', '.join(f'{name} {percent} %' for name, percent in threads.items()))
    if 'lag' in result:
        lines.append('  behind by ' + ', '.join(f'{k} {v}' for k, v in result['lag'].items()))
    return '\n'.join(lines)


def case(text):
    of = dict(DEFAULTS)
    for pair in text.split(','):
        key, _, value = pair.partition('=')
        of[key] = type(DEFAULTS[key])(value)
    return of


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n', maxsplit=1)[0])
    parser.add_argument('--out')
    parser.add_argument('--windows', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=2)
    parser.add_argument('--ahead', type=int, default=4000000)
    parser.add_argument('--end', type=float, default=math.inf, help='seconds since 1970')
    parser.add_argument('cases', nargs='+', type=case, metavar='CASE')
    o = parser.parse_args()
    brokers = Brokers()
    for number, of in enumerate(o.cases):
        try:
            result = run(of, o, brokers, number)
        except (AssertionError, load_run.Failed) as e:
            print(f'{of}: {e}'[:3000], flush=True)
            continue
        print(said(result), flush=True)
        if o.out:
            with open(o.out, 'a', encoding='utf-8') as f:
                f.write(json.dumps(result) + '\n')
    brokers.end()


if __name__ == '__main__':
    main()
