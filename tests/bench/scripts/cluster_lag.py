#!/usr/bin/env python3
"""Measures over a long time how far a scorer is behind its gateway over RabbitMQ, at a share of the points a second
that it can score.

    tests/bench/scripts/cluster_lag.py [--seconds S] [--share SHARE] [--rate POINTS] [--sensors N]

First the script feeds the gateway for 20 s as fast as it takes points. The scorer's rate in the second half of these is its limit. Once the
scorer has caught up, the script feeds the gateway at a share of this limit, or at --rate, and counts twice a second the points that the
gateway has taken and the scorer has not scored; this is true as long as it has lost no lease, since then points are scored again. Everything runs on one machine, so the script prints its load, too."""
import argparse
import os
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'integration'))
import harness
import rabbit
from harness import SECOND, START

DETECTOR = '[detector all]\nmatch = *\nalgorithm = shift\ninterval = 1s\nalert = off\n'
PROBE = 20  # s


class Feeder(threading.Thread):
    """Sends rows of all sensors. rate: points a second; None: as fast as the gateway takes them."""

    def __init__(self, daemon, sensors):
        super().__init__(daemon=True)
        self.daemon_, self.names, self.rate, self.end, self.row = daemon, [f's{i}' for i in range(sensors)], None, False, 0

    def run(self):
        n = len(self.names)
        with self.daemon_.client() as c:
            handles, due = c.register(*self.names), time.monotonic()
            c.socket.settimeout(None)
            while not self.end:
                if self.rate == 0 or (self.rate and time.monotonic() < due):
                    time.sleep(0.002)
                    due = due if self.rate else time.monotonic()
                    continue
                due = due + n / self.rate if self.rate else time.monotonic()
                self.row += 1
                c.send(harness.points(handles, [START + self.row * SECOND] * n, [0.25 * ((self.row + i) % 7) for i in range(n)]))


def dealt_with(d):
    p = d.status()['points']
    return p['scored'] + p['unscored'] + p['late']


def probe(feeder, scorer):
    feeder.start()
    time.sleep(PROBE / 2)
    before, begin = dealt_with(scorer), time.monotonic()
    time.sleep(PROBE / 2)
    rate = (dealt_with(scorer) - before) / (time.monotonic() - begin)
    feeder.rate = 0
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--seconds', type=float, default=900)
    parser.add_argument('--share', type=float, default=0.8)
    parser.add_argument('--rate', type=float, help='points a second, instead of a share')
    parser.add_argument('--sensors', type=int, default=2048)
    o = parser.parse_args()
    broker, folder = rabbit.Broker(), tempfile.TemporaryDirectory()

    def machine(role, more=''):
        return harness.Daemon(DETECTOR + f'[cluster]\nurl = {broker.url}\nname = lag\npartitions = 8\nrole = {role}\n{more}', keys='threads = 1\nloops = 1\nmax_ahead = off\n')
    gateway, scorer = machine('gateway'), machine('scorer', f'state = shared:{folder.name}\n')
    harness.until(lambda: scorer.status()['cluster']['partitions'] == 8, 'the partitions', rabbit.START)
    feeder = Feeder(gateway, o.sensors)
    can = probe(feeder, scorer)
    harness.until(lambda: dealt_with(scorer) >= feeder.row * o.sensors, 'it to catch up', 600)
    rate = o.rate or o.share * can
    print(f'it scored {can / 1e6:.3f} M points/s; it is fed {rate / 1e6:.3f} M points/s from now on; load {os.getloadavg()[0]:.1f}', flush=True)
    feeder.rate, begin, all_of_it = rate, time.monotonic(), []
    while time.monotonic() < begin + o.seconds:
        behind, lag, minute = [], [], time.monotonic() + 60
        while time.monotonic() < minute:
            taken = gateway.status()['points']['in']
            behind.append(max(0, taken - dealt_with(scorer)) / rate)
            held = scorer.status()['cluster']['held']
            lag.append(max((h['lag_seconds'] for h in held), default=0))
            time.sleep(0.5)
        all_of_it += behind
        print(f'minute {round((time.monotonic() - begin) / 60)}: behind by {statistics.median(behind):.3f} s of points (median), {max(behind):.3f} s (worst); lag_seconds at most {max(lag)}; leases lost: {sum(h["epoch"] - 1 for h in held)}; load {os.getloadavg()[0]:.1f}', flush=True)
    fed = feeder.row * o.sensors
    feeder.end = True
    harness.until(lambda: dealt_with(scorer) >= fed, 'the rest', 600)
    late = scorer.status()['points']['late']
    print(f'{fed} points, {late} late; behind by {statistics.median(all_of_it):.3f} s (median), {statistics.quantiles(all_of_it, n=100)[98]:.3f} s (99 of 100), {max(all_of_it):.3f} s (worst)')
    for d in gateway, scorer:
        d.process.kill()
        d.clean()
    broker.clean()


if __name__ == '__main__':
    main()
