#!/usr/bin/env python3
"""Counts the instructions that a point costs each program of a cluster, in all its threads: a single daemon that scores, a gateway, and 1,
2 and 4 scorers that share the points of another gateway. Callgrind counts them. Two runs with different numbers of points cancel the cost
of start and end.

    tests/bench/scripts/cluster_work.py [--points N] [--sensors N] [--scorers 1,2,4]

RabbitMQ's own work is not counted; the script prints its processor time."""
import argparse
import os
import re
import stat
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'integration'))
import cluster_rate
import harness
import rabbit

WAIT = 600


class Counted:
    """Daemons whose instructions are counted."""

    def __init__(self, folder):
        self.folder, self.n = folder, 0
        self.program = os.path.join(folder, 'counted')
        with open(self.program, 'w', encoding='utf-8') as f:
            f.write(f'#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file={folder}/%p.log {harness.HANKELD} "$@"\n')
        os.chmod(self.program, stat.S_IRWXU)

    def daemon(self, more=''):
        return harness.Daemon(cluster_rate.DETECTOR + more, keys='threads = 1\nloops = 1\nmax_ahead = off\nmax_sensors = 20000\n', program=self.program)

    def of(self, daemon):
        """Ends the daemon, and returns its instructions."""
        pid = daemon.process.pid
        daemon.clean()
        with open(os.path.join(self.folder, f'{pid}.log'), encoding='utf-8') as f:
            return int(re.search(r'Collected : (\d+)', f.read())[1])


def processor(process):
    """Seconds of processor time so far."""
    with open(f'/proc/{process.pid}/stat', encoding='ascii') as f:
        fields = f.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def measure(counted, broker, name, points, sensors, scorers):
    """Instructions by program, and the broker's seconds for both ways of a point."""
    frames, names = cluster_rate.frames_of(points, sensors), [f's{i}' for i in range(sensors)]
    n = len(frames) * cluster_rate.TOGETHER
    section = f'[cluster]\nurl = {broker.url}\nname = {name}\npartitions = 8\n'
    alone = counted.daemon()
    cluster_rate.fed(alone, frames, names)
    out = {'a daemon alone': counted.of(alone)}
    before = processor(broker.process)
    gateway = counted.daemon(section + 'role = gateway\n')
    harness.until(lambda: gateway.status()['cluster']['state'] == 'connected', 'the broker', WAIT)
    cluster_rate.fed(gateway, frames, names)
    out['a gateway'] = counted.of(gateway)
    for many in scorers:
        with tempfile.TemporaryDirectory() as folder:
            of = section.replace(f'name = {name}\n', f'name = {name}-{many}\n')
            d = [counted.daemon(of + f'role = scorer\nstate = shared:{folder}\n') for _ in range(many)]
            # otherwise points are scored again when partitions move
            harness.until(lambda: all(x.status()['cluster']['partitions'] == 8 // many for x in d), 'even shares', WAIT)
            g = harness.Daemon(cluster_rate.DETECTOR + of + 'role = gateway\n', keys='threads = 1\nloops = 1\nmax_ahead = off\n')
            cluster_rate.fed(g, frames, names)
            harness.until(lambda: sum(x.status()['points']['scored'] + x.status()['points']['unscored'] for x in d) >= n, 'all points', WAIT)
            out[f'{many} scorers'] = sum(counted.of(x) for x in d)
            g.clean()
    return out, n, processor(broker.process) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--points', type=int, default=4096 * 50)
    parser.add_argument('--sensors', type=int, default=1024)
    parser.add_argument('--scorers', default='1,2,4')
    o = parser.parse_args()
    broker, scorers = rabbit.Broker(), [int(x) for x in o.scorers.split(',')]
    with tempfile.TemporaryDirectory() as folder:
        counted = Counted(folder)
        few, n, _ = measure(counted, broker, 'few', o.points, o.sensors, scorers)
        many, m, seconds = measure(counted, broker, 'many', 3 * o.points, o.sensors, scorers)
    broker.clean()
    for what, instructions in many.items():
        print(f'{what}: {(instructions - few[what]) / (m - n):.1f} instructions a point')
    print(f'the broker, a point {1 + len(scorers)} times to it and {len(scorers)} times from it: {seconds / m * 1e6:.2f} us of a processor')


if __name__ == '__main__':
    main()
