#!/usr/bin/env python3
"""Measures how long a start takes after a kill, with N sensors that have a point each in the journal, and no snapshot (snapshots.py
measures the start from one).

    restart.py [--build DIR] [--state DIR] [--sensors N] [--set KEY=VALUE]

Registers N sensors and sends a tick of points with durability = journal; then SIGKILL, and the time from the start to `ready`. Window 96,
on the CPU."""
import argparse
import os
import shutil
import signal
import struct
import sys
import tempfile
import time

import load_run

POINTS, REGISTER, REGISTERED = 3, 2, 0x82


def frames(handles, at):
    step = 16384
    for first in range(0, len(handles), step):
        some = handles[first:first + step]
        n = len(some)
        payload = struct.pack(f'<QQQIBBH{n}q{n}d{n}I', 0, 0, 0, n, 0, 0, 0, *[at] * n, *[1.0] * n, *some)
        yield payload


def register(link, n):
    handles = []
    for first in range(0, n, 4096):
        names = [f's{i}'.encode() for i in range(first, min(n, first + 4096))]
        reply = link.ask(REGISTER, struct.pack('<I', len(names)) + b''.join(struct.pack('<H', len(x)) + x for x in names), REGISTERED)
        handles += struct.unpack_from(f'<{2 * len(names)}I', reply, 4)[::2]
    return handles


def tick(link, handles, at):
    for payload in frames(handles, at):
        head = struct.pack('<2sBBII', b'HK', 1, POINTS, len(payload), 1)
        link.socket.sendall(head + struct.pack('<I', load_run.zlib.crc32(payload, load_run.zlib.crc32(head))) + payload)
    load_run.until(lambda: link.status()['points']['pending'] == 0, 'the points to be on the disk')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--build', default='build')
    p.add_argument('--state', default='.')
    p.add_argument('--sensors', type=int, default=1000000)
    p.add_argument('--set', action='append', default=[])
    o = p.parse_args()
    state = tempfile.mkdtemp(prefix='restart-', dir=o.state)
    keys = ''.join(f'{x}\n' for x in o.set)
    configuration = (f'[daemon]\nbackend = cpu\nmemory = off\nmax_sensors = {o.sensors}\nmax_ahead = off\ndurability = journal\nstate = {state}/state\n'
                     f'snapshot = 86400s\n{keys}{load_run.LISTENERS}[detector all]\nmatch = *\nwindow = 96\ninterval = 1s\n')
    d = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            d = load_run.Daemon(os.path.join(o.build, 'hankeld'), configuration, folder)
            handles = register(d.link, o.sensors)
            tick(d.link, handles, 10**18)
            print('before the kill:', d.link.status()['durability'])
            d.process.send_signal(signal.SIGKILL)
            d.process.wait()
            began = time.monotonic()
            d = load_run.Daemon(os.path.join(o.build, 'hankeld'), configuration, folder)
            took = time.monotonic() - began
            threads = [(name, f'{total / 1e9:.2f} s') for (_, name), (total, _, _) in load_run.thread_times(d.process.pid).items() if total > 10**7]
            print(f'{o.sensors} sensors: ready {took:.2f} s after the start; its threads have run', threads)
            print('\n'.join(line for line in d.log if 'repl' in line or 'restor' in line))
            status = d.link.status()
            assert status['sensors']['count'] == o.sensors, status['sensors']
            d.stop()
    finally:
        if d:
            d.process.kill()
        shutil.rmtree(state)
    return 0


if __name__ == '__main__':
    sys.exit(main())
