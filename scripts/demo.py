#!/usr/bin/env python3
"""Shows how the daemon sees a real machine's failure: starts hankeld on free ports, subscribes over one socket, feeds the recording over
another as fast as possible, and plots the results. Ends by itself, with exit code 0 if all points came back.

    scripts/demo.py [--build DIR] [--width COLUMNS] [--svg FILE]

The recording: temperature sensor of a large industrial machine, 5 minutes apart, from the Numenta Anomaly Benchmark; its
labelled windows are a planned shutdown, two earlier events and the failure. See tests/data/README.md."""
import argparse
import calendar
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import plot

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDING = 'tests/data/machine_temperature_system_failure.csv'
LABELLED = [('2013-12-10 06:25', '2013-12-12 05:35'), ('2013-12-15 17:50', '2013-12-17 17:00'),
            ('2014-01-27 14:20', '2014-01-29 13:30'), ('2014-02-07 14:55', '2014-02-09 14:05')]
SENSOR = 'machine temperature'
WAIT = 60  # seconds that any step may take
# The detectors of conf/hankeld.conf; nothing is fitted to this recording.
CONFIGURATION = """
[listen binary]
protocol = binary
address = 127.0.0.1:0
[detector default]
match = *
algorithm = ika, graph, novelty
ika.alert = off
graph.roughness = 0.85
graph.shortest = 2
graph.locality = 0.2
novelty.resident = 5000
"""
ALERTING = ('#graph', '#novelty')  # suffix of the sensor's name: plot.KINDS
SERIES = 1 + len(ALERTING)
PAGES = 2.5  # severity of a warning
COLOURS = {'bold': '1', 'blue': '34', 'green': '32', 'red': '31', 'yellow': '33', 'dim': '2'}


def nanoseconds(text):
    return calendar.timegm(time.strptime(text, '%Y-%m-%d %H:%M')) * plot.SECOND


class Process:
    """A program whose lines of standard error are read until one fits."""

    def __init__(self, *command, **how):
        self.lines, self.news = [], threading.Condition()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **how)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            with self.news:
                self.lines.append(line.rstrip('\n'))
                self.news.notify_all()
        with self.news:
            self.lines.append(None)
            self.news.notify_all()

    def wait_for(self, pattern):
        """The match of the first line that fits; an error with all lines if none does."""
        end, at = time.monotonic() + WAIT, 0
        with self.news:
            while time.monotonic() < end and None not in self.lines[:at]:
                for line in self.lines[at:]:
                    at += 1
                    found = line is not None and re.search(pattern, line)
                    if found:
                        return found
                self.news.wait(0.1)
        said = '\n'.join(line for line in self.lines if line)
        sys.exit(f'{self.process.args[0]} did not say "{pattern}" but:\n{said}')

    def stop(self, with_signal):
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        return self.process.wait(WAIT)


def watch(stream, wanted, out):
    """Reads the subscriber's lines until all results have arrived; notes the time of the last one."""
    for line in stream:
        item = json.loads(line)
        if 'event' in item:
            out['events'].append(item)
        elif 'state' in item:
            out['count'] += 1
            if item['sensor'] == SENSOR:
                out['results'].append(item)
            if out['count'] == wanted * SERIES:
                out['end'] = time.monotonic()
                out['done'].set()
    out['done'].set()


def run(build):
    """Runs daemon, subscriber and feeder. Returns the lines that the subscriber got."""
    with open(os.path.join(ROOT, RECORDING)) as file:
        wanted = sum(1 for line in file if line.strip()) - 1
    seen = {'results': [], 'count': 0, 'events': [], 'done': threading.Event()}
    with tempfile.TemporaryDirectory(prefix='hankeld-demo-') as folder:
        path = os.path.join(folder, 'demo.conf')
        with open(path, 'w') as file:
            file.write(CONFIGURATION)
        daemon = Process(os.path.join(build, 'hankeld'), '-c', path, stdin=subprocess.DEVNULL)
        tail = None
        try:
            address = daemon.wait_for(r'listening binary tcp (\S+)').group(1)
            daemon.wait_for(r'^ready')
            tail = Process(os.path.join(build, 'hankel'), 'tail', '--from', address, '--format', 'jsonl', stdout=subprocess.PIPE)
            watcher = threading.Thread(target=watch, args=(tail.process.stdout, wanted, seen), daemon=True)
            watcher.start()
            tail.wait_for('subscribed')
            start = time.monotonic()
            subprocess.run([os.path.join(build, 'hankel'), 'feed', '--to', address, '--sensor', SENSOR, '--fast',
                            os.path.join(ROOT, RECORDING)], check=True, stdout=subprocess.DEVNULL, timeout=WAIT)
            seen['done'].wait(WAIT)
            tail.stop(signal.SIGINT)  # events may follow the last result: they are printed before the subscriber ends
            watcher.join(WAIT)
        finally:
            if tail:
                tail.stop(signal.SIGINT)
            code = daemon.stop(signal.SIGTERM)
    if len(seen['results']) != wanted:
        sys.exit(f"{len(seen['results'])} of {wanted} results came back")
    if code != 0:
        sys.exit(f'hankeld ended with {code}')
    seen['seconds'] = seen['end'] - start
    return seen


def recording(seen):
    alerts = {}
    for event in seen['events']:
        if event['event'] == 'raised':
            kind = ALERTING.index(event['sensor'][len(SENSOR):])
            alerts[event['id']] = dict(event, kind=kind, raised=event['time'], cleared=None)
        elif event['id'] in alerts:
            alerts[event['id']].update({key: event[key] for key in ('instant', 'severity', 'before', 'after', 'novelty') if key in event})
            if event['event'] == 'cleared':
                alerts[event['id']]['cleared'] = event['time']
    return plot.Recording(SENSOR, 'temperature every 5 minutes', [r['time'] for r in seen['results']],
                          [r['value'] for r in seen['results']], [r['score'] for r in seen['results']],
                          [(nanoseconds(a), nanoseconds(b)) for a, b in LABELLED], list(alerts.values()))


def window_of(r, alert):
    """Number of the labelled window that the alert was raised in, or None."""
    return next((n for n, (begin, end) in enumerate(r.windows, 1) if begin <= alert['raised'] <= end), None)


def table(r, paint, most):
    """The alerts to list with the labelled windows. If there are more than `most`, those outside every window are left out
    first."""
    first = sorted(r.alerts, key=lambda alert: window_of(r, alert) is None)[:most]
    shown = [alert for alert in r.alerts if alert in first]
    lines = [paint('bold', f'{"alert":>12}  {"raised":16}  {"change instant":16} {"severity":>8}  {"before to after":>15}  labelled window')]
    for alert in shown:
        number = window_of(r, alert)
        label = ''
        if number:
            begin, end = r.windows[number - 1]
            label = paint('red', f'{number}: {plot.date(begin)} to {plot.date(end, "%m-%d %H:%M")}')
        shape = alert.get('novelty', {}).get('kind') == 'shape'  # its before and after are no levels
        levels = 'a new shape' if shape else f'{alert["before"]:.1f} to {alert["after"]:.1f}'
        name = f'{plot.KINDS[alert["kind"]]} {alert["id"].rpartition(":")[2]}'
        lines.append(f'{name:>12}  {plot.date(alert["raised"])}  {plot.date(alert["instant"])} '
                     f'{alert["severity"]:8.1f}  {levels:>15}  {label}')
    if len(shown) < len(r.alerts):
        lines.append(f'              and {len(r.alerts) - len(shown)} more, for which this terminal is too low')
    return lines


def verdict(r):
    """How many labelled windows have an alert, and how many would have one by chance."""
    length = r.times[-1] - r.times[0]
    said = []
    for number, kind in enumerate(plot.KINDS):
        alerts = [alert for alert in r.alerts if alert['kind'] == number]
        hit = {window_of(r, alert) for alert in alerts} - {None}
        chance = sum(1 - (1 - (end - begin) / length) ** len(alerts) for begin, end in r.windows)
        said.append(f'{kind}: {len(hit)} with {len(alerts)} alerts (as many at random times: {chance:.1f})')
    hit = {window_of(r, alert) for alert in r.alerts} - {None}
    grave = [alert for alert in r.alerts if alert['severity'] >= PAGES]
    right = sum(window_of(r, alert) is not None for alert in grave)
    said.append(f'of severity {PAGES} and more, which may page you, ' + (f'{right} of {len(grave)} lie in a window' if grave else 'there is none'))
    return (f'{len(hit)} of {len(r.windows)} labelled windows have an alert. Of each kind, {"; ".join(said)}. '
            'The detectors are those of the example configuration, fitted to nothing.')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'), help='folder of hankeld and hankel')
    parser.add_argument('--width', type=int, default=min(140, shutil.get_terminal_size((100, 40)).columns), help='columns')
    parser.add_argument('--svg', help='also write the picture to this file')
    options = parser.parse_args()
    colour = sys.stdout.isatty() and 'NO_COLOR' not in os.environ
    sys.stdout.reconfigure(encoding='utf-8', line_buffering=True)

    def paint(name, text):
        return f'\033[{COLOURS[name]}m{text}\033[0m' if colour else text

    seen = run(options.build)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # the program that reads the output may end first
    r = recording(seen)
    scored = sum(1 for score in r.scores if score is not None)
    print('\n'.join(plot.terminal(r, options.width, paint)))
    print()
    most = max(6, shutil.get_terminal_size((100, 40)).lines - 34) if sys.stdout.isatty() else 100
    print('\n'.join(table(r, paint, most)))
    print()
    for text in (verdict(r),
                 f'{len(r.times):,} points went in over TCP and {scored:,} scores came out to a subscriber in {seen["seconds"]:.2f} s: '
                 f'{len(r.times) / seen["seconds"]:,.0f} points and {scored / seen["seconds"]:,.0f} scores a second, of one sensor.'):
        print(textwrap.fill(text, options.width))
    build = os.path.relpath(options.build)
    print(f"""
{paint('bold', 'Go on:')}
  {build}/hankeld -c conf/hankeld.conf &        the daemon, with the example configuration
  {build}/hankel feed your.csv                  your own recording: a header, a time column, value columns
  {build}/hankel tail --events                  alerts as they are raised
  nc 127.0.0.1 7412                           the same as JSON lines, with every score
  {build}/hankel replay your.csv > scores.csv   the scores with no daemon
  README.md, proto/PROTOCOL.md, conf/man      what there is to know""")
    if options.svg:
        with open(options.svg, 'w') as file:
            file.write(plot.svg(r, f'{len(r.times):,} points, {scored:,} scores, {len(r.alerts)} alerts; nothing was fitted'))


if __name__ == '__main__':
    main()
