#!/usr/bin/env python3
"""Measures what snapshots cost, and how fast a daemon restarts.

    snapshots.py latency [--backend B] [--sensors N] [--rate POINTS/S] [--window W] [--stride S] [--rounds N] [--seconds S]
    snapshots.py restart [--backend B] [--sensors N] [--tail POINTS] [--window W] [--stride S]
    both: [--build DIR] [--state DIR]

latency: runs the same load by turns without snapshots and with one snapshot after the other, a second apart; measures from when a
point was due to when the subscriber read its score. restart: fills windows, ends the daemon with a snapshot, starts it with
durability = journal, sends `tail` more points and kills it with SIGKILL; measures how long the next start takes until the
daemon is ready. The state is written below --state (default: the working directory), which should be on the disk to be
measured."""
import argparse
import glob
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
import types

import load_run


def detector(o):
    return {'window': o.window, 'stride': o.stride, 'alert': 'off'}


def settings(o, **keys):
    return types.SimpleNamespace(size='tiny' if o.backend == 'cpu' else 'full', backend=o.backend, most=0, build=os.path.abspath(o.build),
                                 seconds=o.seconds, profile=None, set=[f'{k}={v}' for k, v in keys.items()])


def latency(o):
    quantiles, faults = {'without': [], 'with': []}, []
    print(f'{o.sensors} sensors, window {o.window}, stride {o.stride}, {o.rate:.0f} points/s, {o.backend}', flush=True)
    for turn in range(o.rounds):
        for what in ('without', 'with') if turn % 2 == 0 else ('with', 'without'):
            state = tempfile.mkdtemp(prefix='snapshots-', dir=o.state)
            options = settings(o, durability='snapshot', state=state, snapshot='1s' if what == 'with' else '1h')
            try:
                r = load_run.Bench(options).run(what, [load_run.Feed(sensors=o.sensors, rate=o.rate)], detector=detector(o))
            finally:
                shutil.rmtree(state)
            shard = r['status']['durability']['shards'][0]
            got = r['subscribers'][0]
            quantiles[what].append((got['p50_us'], got['p99_us'], got['p999_us']))
            faults += r['faults'] + r['log']
            print(f'  {what:8} p50 {got["p50_us"]:9.1f} us  p99 {got["p99_us"]:9.1f}  p99.9 {got["p999_us"]:9.1f}  {r["in_per_s"] / 1e6:.2f} M/s;  '
                  f'{shard["snapshots"]} snapshots, the last of {shard.get("snapshot_sensors", 0)} sensors, {shard.get("snapshot_bytes", 0) / 1e6:.0f} MB, '
                  f'{shard.get("snapshot_took_ms", 0)} ms', flush=True)
    middle = {what: [statistics.median(v) for v in zip(*values)] for what, values in quantiles.items()}
    for i, name in enumerate(('p50', 'p99', 'p99.9')):
        print(f'median {name}: {middle["without"][i]:.1f} us without, {middle["with"][i]:.1f} with: {middle["with"][i] / middle["without"][i]:.2f} times')
    return faults


def feeder(o, daemon, bench, **more):
    return load_run.Process('feeder', bench.command('load_feed', {'port': daemon.port['binary tcp'], 'sensors': o.sensors, 'connections': 16,
                                                                 'threads': 4, 'seconds': 0.01, **more}))


def restart(o):
    state, faults = tempfile.mkdtemp(prefix='snapshots-', dir=o.state), []
    try:
        with tempfile.TemporaryDirectory(prefix='hankeld-bench-') as directory:
            def start(mode):
                bench = load_run.Bench(settings(o, durability=mode, state=state, snapshot='1h', log_level='info', drain='60s'))
                text, own = bench.configuration(o.sensors, detector(o))
                began = time.monotonic()
                daemon = load_run.Daemon(bench.program('hankeld'), text, directory)
                return bench, daemon, bench.span(own), time.monotonic() - began

            bench, daemon, span, _ = start('snapshot')
            load = feeder(o, daemon, bench, warm=span + 1, mark=load_run.nanoseconds())
            load.wait('warm')
            load.go()
            load.wait('done')
            load_run.until(lambda: bench.settled(daemon, 0), 'the windows to be full')
            daemon.link.socket.close()
            began = time.monotonic()
            daemon.stop()
            print(f'a clean end, with the last snapshot: {time.monotonic() - began:.2f} s')
            bytes_ = sum(os.path.getsize(f) for f in glob.glob(f'{state}/shard-*/*.hks'))
            bench, daemon, _, took = start('journal')
            print(f'{o.sensors} sensors, window {o.window}, stride {o.stride}, {o.backend}: snapshots of {bytes_ / 1e6:.0f} MB')
            print(f'started with no journal: ready after {took:.2f} s')
            load = feeder(o, daemon, bench, warm=max(1, o.tail // o.sensors), mark=load_run.nanoseconds())
            load.wait('warm')
            load_run.until(lambda: bench.settled(daemon, o.tail), 'the tail to be scored')
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            load.kill()
            tail = sum(os.path.getsize(f) for f in glob.glob(f'{state}/shard-*/*.hkj'))
            for _ in range(o.rounds):
                bench, daemon, _, took = start('journal')
                count = daemon.link.status()['sensors']['count']
                if count != o.sensors:
                    faults.append(f'{count} sensors are there')
                print(f'killed with a journal of {tail / 1e6:.0f} MB: ready after {took:.2f} s; ' +
                      '; '.join(line.split(': ', 2)[2] for line in daemon.log if 'restored' in line or 'replayed' in line), flush=True)
                daemon.process.send_signal(signal.SIGKILL)
                daemon.process.wait()
    finally:
        shutil.rmtree(state)
    return faults


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('what', choices=['latency', 'restart'])
    p.add_argument('--build', default='build')
    p.add_argument('--state', default='.')
    p.add_argument('--backend', default='cpu')
    p.add_argument('--sensors', type=int, default=1000000)
    p.add_argument('--tail', type=int, default=1000000)
    p.add_argument('--window', type=int, default=12)
    p.add_argument('--stride', type=int, default=16)
    p.add_argument('--rate', type=float, default=100000)
    p.add_argument('--rounds', type=int, default=3)
    p.add_argument('--seconds', type=float, default=6)
    o = p.parse_args()
    faults = latency(o) if o.what == 'latency' else restart(o)
    for fault in faults:
        print('FAULT:', fault)
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
