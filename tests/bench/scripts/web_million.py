#!/usr/bin/env python3
"""Measures how long requests over HTTP take with a million sensors: scrapes of /metrics, idle and while points arrive, and lists of
sensors.

    tests/bench/scripts/web_million.py --build build [--sensors 1000000] [--scrapes 100]"""
import argparse
import contextlib
import http.client
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
DETECTORS = '[detector all]\nmatch = *\nwindow = 4\nrank = 1\ninterval = 1s\nalert = 0.9\n'
AT_A_TIME = 5000


def row(harness, c, handles, k):
    for i in range(0, len(handles), AT_A_TIME):
        part = handles[i:i + AT_A_TIME]
        c.send(harness.points(part, [harness.START + k * 10**9] * len(part), [float((k * 7 + (i + j) % 5) % 11) for j in range(len(part))]))


def took(port, path, n):
    """The ms of each of n requests over one connection, and the last answer."""
    times = []
    with contextlib.closing(http.client.HTTPConnection('127.0.0.1', port, timeout=600)) as c:
        for _ in range(n):
            begun = time.perf_counter()
            c.request('GET', path)
            got = c.getresponse().read()
            times.append(1e3 * (time.perf_counter() - begun))
    return sorted(times), got


def say(what, times, got):
    print(f'{what:52} {statistics.median(times):7.1f} ms ({times[0]:.1f} to {times[-1]:.1f}; of {len(times)}), {len(got)} bytes', flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('--build', required=True)
    p.add_argument('--sensors', type=int, default=1000000)
    p.add_argument('--scrapes', type=int, default=100)
    o = p.parse_args()
    os.environ.update(HANKELD=os.path.join(o.build, 'hankeld'), HANKEL=os.path.join(o.build, 'hankel'))
    import harness
    import web
    d = harness.Daemon(DETECTORS, listeners=harness.LISTENERS + web.LISTENER, keys=f'threads = 1\nmax_sensors = {o.sensors}\nmax_ahead = off\n')
    commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    print(f'commit {commit}; {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}; {o.sensors} sensors')
    try:
        with d.client() as c:
            handles = [h for i in range(0, o.sensors, AT_A_TIME) for h in c.register(*(f'hall{k % 100}/machine{k // 100}/temperature' for k in range(i, i + AT_A_TIME)))]
            for k in range(10):
                row(harness, c, handles, k)
            c.ping()
            harness.until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result', 600)
            port = d.port['http tcp']
            say('/metrics, quiet', *took(port, '/metrics', o.scrapes))
            for path in '', '?sort=score&limit=100', '?sort=change&limit=100', '?sort=score&glob=hall7/*', '?alert=true', '?state=ok', '?state=stale':
                say('/api/v1/sensors' + path, *took(port, '/api/v1/sensors' + path, 10))
            over = threading.Event()

            def feed():
                k = 10
                while not over.is_set():
                    row(harness, c, handles, k)
                    k += 1
            feeder = threading.Thread(target=feed)
            feeder.start()
            try:
                say('/metrics, points come as fast as they are taken', *took(port, '/metrics', o.scrapes))
            finally:
                over.set()
                feeder.join()
            print(json.dumps({k: v for k, v in d.status()['points'].items() if k in ('in', 'out')}), f'rss {d.rss() >> 20} MiB')
    finally:
        d.stop()


if __name__ == '__main__':
    main()
