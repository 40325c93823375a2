#!/usr/bin/env python3
"""Measures what HTTP costs the road of a point: the CPU time for a point of the road's threads (loops, shards, backend), as the kernel
counts it. Modes: no listener of HTTP; a listener with no clients, with pages, with scrapes, or with a stream of all results; and a text
socket with the same stream. Nothing is scored (the window is longer than the points fed), since scoring would hide everything else. The
modes run by turns, so that each meets the same machine. Prints medians and ranges.

    tests/bench/scripts/web_road.py --build build [--sensors 2000] [--points 3000] [--rounds 9] [--pages 50] [--instructions]

--instructions: for busy machines. Counts with callgrind the instructions for a point of the road's functions and their callees, in one
round of all modes but the last two."""
import argparse
import collections
import contextlib
import functools
import http.client
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))

MODES = ['no listener', 'nobody', 'pages', 'pages and scrapes', 'all results over HTTP', 'all results over a text socket']
ROAD = ('loop', 'hankeld', 'shard', 'cpu', 'backend')
FUNCTIONS = ('hk_decode', 'hk_stage_take', 'hk_shard_turn')
DETECTORS = '[detector all]\nmatch = *\nwindow = 1024\ninterval = 1s\n'


def cpu_times(pid):
    """ns that each kind of thread has run."""
    times = collections.Counter()
    for task in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{task}/comm') as name, open(f'/proc/{pid}/task/{task}/schedstat') as stat:
            times[name.read().strip().rstrip('0123456789').rstrip('-/ ')] += int(stat.read().split()[0])
    return times


class Looks:
    """Stands for open pages: each has a stream of alerts, and asks again now and then."""

    def __init__(self, daemon, pages=0, scrapes=False, results=0, text=0):
        self.port, self.over, self.n, self.threads, self.streams = daemon.port.get('http tcp'), threading.Event(), 0, [], []
        for i in range(pages + results):
            s = socket.create_connection(('127.0.0.1', self.port))
            what = 'events' if i < pages else 'results'
            s.sendall(f'GET /api/v1/stream?what={what} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
            self.streams.append(s)
        for _ in range(text):
            s = socket.create_connection(('127.0.0.1', daemon.port['text tcp']))
            s.sendall(b'results\n')
            self.streams.append(s)
        self.begin(self.read)
        if pages:
            self.begin(self.ask, ['/api/v1/status', '/api/v1/alerts', '/api/v1/incidents'], 20 / pages)  # each page every 20 s
        if scrapes:
            self.begin(self.ask, ['/metrics'], 1)  # Prometheus' usual is 15 s

    def begin(self, what, *arguments):
        self.threads.append(threading.Thread(target=what, args=arguments))
        self.threads[-1].start()

    def read(self):
        for s in self.streams:
            s.setblocking(False)
        while not self.over.wait(0.05):
            for s in self.streams:
                with contextlib.suppress(BlockingIOError):
                    while s.recv(1 << 20):
                        pass

    def ask(self, paths, every):
        c = http.client.HTTPConnection('127.0.0.1', self.port)
        while not self.over.wait(every):
            for path in paths:
                c.request('GET', path)
                c.getresponse().read()
                self.n += 1
        c.close()

    def end(self):
        self.over.set()
        for t in self.threads:
            t.join()
        for s in self.streams:
            s.close()


@functools.lru_cache(1)
def frames_of(harness, handles, n):
    """Sends a point of each sensor, n times."""
    return [harness.points(handles, [harness.START + k * 10**9] * len(handles), [float((k * 7 + 3) % 11)] * len(handles)) for k in range(n)]


def measure(harness, mode, a, **how):
    """CPU ns for a point, of the road's threads and of the web thread, and points a second."""
    web = '' if mode in (MODES[0], MODES[5]) else '[listen web]\nprotocol = http\naddress = 127.0.0.1:0\n'
    d = harness.Daemon(DETECTORS, keys='threads = 1\nmax_connections_per_address = 1000\n', listeners=harness.LISTENERS + web, **how)
    looks = None
    try:
        with d.client() as c:
            handles = c.register(*(f's{i}' for i in range(a.sensors)))
            frames = frames_of(harness, tuple(handles), a.points)
            if mode in MODES[2:]:
                looks = Looks(d, a.pages if mode in MODES[2:4] else 0, mode == MODES[3], mode == MODES[4], mode == MODES[5])
                harness.until(lambda: c.status()['subscribers']['count'] == len(looks.streams), 'streams')
            before, begun = cpu_times(d.process.pid), time.monotonic()
            for frame in frames:
                c.send(frame)
            c.ping()
            harness.until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
            took = time.monotonic() - begun
            spent = cpu_times(d.process.pid)
            spent.subtract(before)
    finally:
        if looks:
            looks.end()
        d.stop()
        d.clean()
    n = a.sensors * a.points
    return sum(t for name, t in spent.items() if name.startswith(ROAD)) / n, spent['web'] / n, n / took, dict(spent)


def instructions(harness, mode, a):
    """The instructions of each of the road's functions and their callees, from callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        plain, program = os.environ['HANKELD'], os.path.join(folder, 'hankeld')
        with open(program, 'w') as file:
            # callgrind would count an instruction for every byte of `rep movsb`, which copies 32 bytes and more at a
            # time
            file.write(f'#!/bin/sh\nGLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824 exec valgrind -q --tool=callgrind --callgrind-out-file={folder}/out {plain} "$@"\n')
        os.chmod(program, 0o755)
        measure(harness, mode, a, program=program)
        told = subprocess.run(['callgrind_annotate', '--inclusive=yes', '--threshold=100', f'{folder}/out'], capture_output=True, text=True, check=True).stdout
    return [sum(int(m[1].replace(',', '')) for m in re.finditer(rf'^ *([0-9,]+) .*:{name}(?: |$)', told, re.MULTILINE)) for name in FUNCTIONS]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default=os.path.join(ROOT, 'build'))
    for name, value in ('sensors', 2000), ('points', 3000), ('rounds', 9), ('pages', 50):
        p.add_argument('--' + name, type=int, default=value)
    p.add_argument('--instructions', action='store_true')
    a = p.parse_args()
    os.environ.setdefault('HANKELD', os.path.join(os.path.abspath(a.build), 'hankeld'))
    os.environ.setdefault('HANKEL', os.path.join(os.path.abspath(a.build), 'hankel'))
    import harness  # pylint: disable=import-outside-toplevel
    commit = subprocess.run(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True, check=False).stdout.strip()
    print(f'commit {commit}; {platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}; {a.sensors} sensors x {a.points} points, '
          f'{a.pages} pages' + ('' if a.instructions else f', {a.rounds} rounds in turns\nCPU ns a point: of the road, of the web\'s thread; the ratio to the same round without a listener'),
          flush=True)
    if a.instructions:
        print('instructions a point: ' + ', '.join(FUNCTIONS))
        for mode in MODES[:4]:
            print(f'{mode:30} ' + '  '.join(f'{n / (a.sensors * a.points):7.3f}' for n in instructions(harness, mode, a)), flush=True)
        return
    got = {mode: [] for mode in MODES}
    for number in range(a.rounds):
        for i in range(len(MODES)):  # another one begins each time
            mode = MODES[(i + number) % len(MODES)]
            got[mode].append(measure(harness, mode, a))
    for mode in MODES:
        road, web = ([one[k] for one in got[mode]] for k in (0, 1))
        ratio = [one[0] / base[0] for one, base in zip(got[mode], got[MODES[0]])]
        print(f'{mode:30} road {statistics.median(road):7.0f} ({min(road):.0f} to {max(road):.0f})  web {statistics.median(web):6.1f}  '
              f'ratio {statistics.median(ratio):.3f} ({min(ratio):.3f} to {max(ratio):.3f})', flush=True)
    print('threads, last round:', {k: round(v / 1e6, 1) for k, v in got[MODES[3]][-1][3].items() if v > 1e5}, 'ms')


if __name__ == '__main__':
    main()
