#!/usr/bin/env python3
"""Measures points a second into a daemon that scores, into a gateway that publishes them to RabbitMQ, and from there into a scorer that
finds all of them in the broker.

    tests/bench/scripts/cluster_rate.py [--points N] [--sensors N] [--repeat N]

The script makes frames of 4,096 points beforehand and sends them over one connection on loopback. A point counts when FAREWELL says that
all are dealt with: scored, or confirmed by the broker."""
import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'integration'))
import harness
import rabbit
from harness import SECOND, START

TOGETHER = 4096
DETECTOR = '[detector all]\nmatch = *\nalgorithm = shift\ninterval = 1s\nalert = off\n'


def fed(daemon, frames, names):
    """Seconds."""
    with daemon.client() as c:
        handles = c.register(*names)
        data = [frame(handles) for frame in frames]
        c.socket.settimeout(None)
        begin = time.monotonic()
        for d in data:
            c.send(d)
        c.bye()
        return time.monotonic() - begin


def frames_of(points, sensors):
    """Functions that make frames of handles."""
    def frame(first):
        numbers = range(first, first + TOGETHER)
        return lambda handles: harness.points([handles[i % sensors] for i in numbers], [START + i // sensors * SECOND for i in numbers], [0.25 * (i % 7) for i in numbers])
    return [frame(first) for first in range(0, points, TOGETHER)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--points', type=int, default=4096 * 500)
    parser.add_argument('--sensors', type=int, default=1024)
    parser.add_argument('--repeat', type=int, default=5)
    o = parser.parse_args()
    frames, names = frames_of(o.points, o.sensors), [f's{i}' for i in range(o.sensors)]
    n, took = len(frames) * TOGETHER, {'socket to daemon': [], 'socket to gateway and broker': [], 'broker to scorer': []}
    broker = rabbit.Broker()

    def cluster(role, name, more=''):
        return harness.Daemon(DETECTOR + f'[cluster]\nurl = {broker.url}\nname = {name}\npartitions = 8\nrole = {role}\n{more}', keys='threads = 1\nloops = 1\nmax_ahead = off\n')
    for i in range(o.repeat):
        d = harness.Daemon(DETECTOR, keys='threads = 1\nloops = 1\nmax_ahead = off\n')
        took['socket to daemon'].append(fed(d, frames, names))
        d.clean()
        d = cluster('gateway', f'rate-{i}')
        harness.until(lambda: d.status()['cluster']['state'] == 'connected', 'the broker')
        took['socket to gateway and broker'].append(fed(d, frames, names))
        d.clean()
        with tempfile.TemporaryDirectory() as folder:
            d = cluster('scorer', f'rate-{i}', f'state = shared:{folder}\n')
            harness.until(lambda: d.status()['cluster']['points'] > 0, 'the first point')
            before, begin = d.status()['cluster']['points'], time.monotonic()
            harness.until(lambda: d.status()['points']['scored'] + d.status()['points']['unscored'] == n, 'all points', 600)
            took['broker to scorer'].append((time.monotonic() - begin) * n / (n - before) if before < n else 0.0)
            d.process.kill()
            d.clean()
    broker.clean()
    for what, seconds in took.items():
        rates = sorted(n / s / 1e6 for s in seconds if s > 0)
        print(f'{what}: {statistics.median(rates):.2f} M points/s (median of {len(rates)}, {rates[0]:.2f} to {rates[-1]:.2f})' if rates else f'{what}: too few points to say')


if __name__ == '__main__':
    main()
