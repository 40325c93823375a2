#!/usr/bin/env python3
"""Shows the page on real recordings: starts hankeld, feeds it recordings in a loop, faster than real time, and prints the page's address.
Ends with Ctrl-C.

    scripts/page.py [--build DIR] [--port PORT] [--past POINTS] [--halls N]

The recordings are those of scripts/demo.py and of a server's latency (tests/data/README.md), with a point every 5 minutes, fed
every 100 ms. Each machine begins at another place of the recording. The points of the last minutes are fed at once, so that
the page has something to show."""
import argparse
import csv
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from demo import ROOT, Process

DATA = os.path.join(ROOT, 'tests', 'data')
TEMPERATURE, LATENCY = 'machine_temperature_system_failure.csv', 'ec2_request_latency_system_failure.csv'
STEP = 100_000_000  # ns between points
CONFIGURATION = """[daemon]
durability = snapshot
state = {state}
[listen binary]
protocol = binary
address = 127.0.0.1:0
[listen web]
protocol = http
address = 127.0.0.1:{port}
[incidents]
budget = 1000/day
interval = 100ms
[detector default]
match = *
algorithm = ika, graph, novelty
interval = 100ms
ika.alert = off
graph.roughness = 0.85
graph.shortest = 2
graph.locality = 0.2
novelty.resident = 5000
"""


def sensors(halls):
    """(name, file, which of its points is the first) of each."""
    return [(f'hall{h + 1}/press{i + 1}/temperature', TEMPERATURE, 2800 * i + 350 * h) for h in range(halls) for i in range(8)] + \
        [(f'office/server{i + 1}/latency', LATENCY, 1000 * i) for i in range(4)]


def values(file):
    with open(os.path.join(DATA, file)) as f:
        return [row[1] for row in list(csv.reader(f))[1:]]


def free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return port if s.connect_ex(('127.0.0.1', port)) != 0 else 0


def rows(wanted, past):
    """Lines of CSV: past ones at once, then each when it is due, without end."""
    of = {file: values(file) for file in (TEMPERATURE, LATENCY)}
    columns = [(of[file], first) for _, file, first in wanted]
    yield 'time,' + ','.join(name for name, _, _ in wanted) + '\n'
    k, start = 0, time.time_ns() - past * STEP
    while True:
        at = start + k * STEP
        wait = (at - time.time_ns()) / 1e9
        if wait > 0:
            time.sleep(wait)
        yield f'{at},' + ','.join(v[(first + k) % len(v)] for v, first in columns) + '\n'
        k += 1


def feed(pipe, wanted, past):
    try:
        for k, row in enumerate(rows(wanted, past)):
            pipe.write(row)
            if k > past:
                pipe.flush()
    except (BrokenPipeError, ValueError):
        pass  # it was ended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'), help='folder of hankeld and hankel')
    parser.add_argument('--port', type=int, default=7413, help="the page's; another one where this is taken")
    parser.add_argument('--past', type=int, default=9000, help='points of each sensor that are fed at once')
    parser.add_argument('--halls', type=int, default=1, help='so many times eight machines')
    parser.add_argument('--page', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = sensors(options.halls)
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also if a shell has started this script in the background
    with tempfile.TemporaryDirectory(prefix='hankeld-page-') as folder:
        path = os.path.join(folder, 'page.conf')
        with open(path, 'w') as file:
            file.write(CONFIGURATION.format(state=folder, port=free(options.port)))
        daemon = Process(os.path.join(options.build, 'hankeld'), '-c', path, stdin=subprocess.DEVNULL, start_new_session=True)
        feeder = None
        try:
            binary = daemon.wait_for(r'listening binary tcp (\S+)').group(1)
            web = daemon.wait_for(r'listening http tcp (\S+)').group(1)
            daemon.wait_for(r'^ready')
            feeder = subprocess.Popen([os.path.join(options.build, 'hankel'), 'feed', '--to', binary, '--unit', 'ns', '-'],
                                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
            threading.Thread(target=feed, args=(feeder.stdin, wanted, options.past), daemon=True).start()
            print(f'\nThe page:  http://{web}/\n\nhankeld runs, and recordings of {len(wanted)} sensors are fed to it in a loop, '
                  f'{1_000_000_000 // STEP} points a second each. Ctrl-C ends both.')
            while daemon.process.poll() is None and feeder.poll() is None:
                time.sleep(0.2)
            sys.exit('the daemon or the feeder has ended:\n' + '\n'.join(line for line in daemon.lines[-20:] if line))
        except KeyboardInterrupt:
            print()
        finally:
            if feeder:
                feeder.kill()
                feeder.wait()
            daemon.stop(signal.SIGTERM)


if __name__ == '__main__':
    main()
