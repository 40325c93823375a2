#!/usr/bin/env python3
"""Measures how well the profile of a line (/api/v1/lines) locates a leak: feeds simulated recordings of the pipeline of
model_leaks.py to a daemon until an hour after the leak began.

    model_places.py [--build build] [--seeds 101-106] [--shares 0.01,0.04] [--adapt 0.002]"""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

import model_leaks

CONFIG = '''[daemon]
backend = cpu
threads = 1
max_ahead = off
[listen feed]
protocol = binary
transport = tcp
address = 127.0.0.1:{feed}
[listen web]
protocol = http
address = 127.0.0.1:{web}
[detector raw]
match = *
window = 8
interval = 5s
alert = off
[detector faults]
match = none
algorithm = shift
window = 128
[field line]
match = *
operator = model
file = {model}
adapt = {adapt}
interval = 5s
detector = faults
'''


def ask(port, what):
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/api/v1/{what}', timeout=60) as answer:
        return json.load(answer)


def cause(o, folder, seed, share, place):
    model, path, config = (os.path.join(folder, name) for name in ('line.model', 'line.csv', 'c.conf'))
    feed, web = o.port, o.port + 1
    for name, text in (model, model_leaks.LINE), (config, CONFIG.format(feed=feed, web=web, model=model, adapt=o.adapt)):
        with open(name, 'w', encoding='utf-8') as f:
            f.write(text)
    with open(path, 'w', encoding='utf-8') as f:
        subprocess.run([f'{o.build}/hankel', 'model', 'simulate', '--hours', str(model_leaks.LEAK + 1), '--interval', '5s', '--seed', str(seed), '--leak', f'{model_leaks.LEAK}h,{share},{place}', model], stdout=f, check=True)
    daemon = subprocess.Popen([f'{o.build}/hankeld', '-c', config], stderr=subprocess.PIPE, text=True)
    try:
        next(line for line in daemon.stderr if re.match('ready', line))
        threading.Thread(target=daemon.stderr.read, daemon=True).start()  # what it logs
        subprocess.run([f'{o.build}/hankel', 'feed', '--to', f'127.0.0.1:{feed}', path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while ask(web, 'status')['points']['pending'] > 0:
            time.sleep(0.1)
        return ask(web, 'lines')['models'][0]['line'].get('cause')
    finally:
        daemon.terminate()
        daemon.wait()


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--build', default='build')
    options.add_argument('--port', type=int, default=17400)
    options.add_argument('--adapt', default='0.002')
    options.add_argument('--seeds', default='101-106')
    options.add_argument('--shares', default='0.005,0.01,0.04')
    o = options.parse_args()
    first, last = (int(v) for v in o.seeds.split('-'))
    print(f'SIMULATED recordings; seeds {o.seeds}; an hour after the leak began; adapt {o.adapt}\n')
    for share in (float(v) for v in o.shares.split(',')):
        away, within, leaks, said = [], 0, 0, []
        for seed in range(first, last + 1):
            place = 10000 + (seed * 37 % 81) * 1000
            with tempfile.TemporaryDirectory() as folder:
                c = cause(o, folder, seed, share, place) or {'kind': 'none'}
            leaks += c['kind'] == 'leak'
            if c['kind'] == 'leak':
                away.append(abs(c['place'] - place) / 1000)
                within += c['from'] <= place <= c['to']
            said.append(f"{place / 1000:.0f}: " + (f"{c['place'] / 1000:.1f} ({c['from'] / 1000:.1f} to {c['to'] / 1000:.1f})" if c['kind'] == 'leak' else c.get('sensor', 'nothing')))
        print(f'{100 * share:4.1f} %  a leak: {leaks} of {last + 1 - first}; km away: {statistics.median(away):.1f} ({min(away):.1f} to {max(away):.1f}); within what is said: {within}' if away else f'{100 * share:4.1f} %  a leak: 0', flush=True)
        print('        km, true: said  ' + ';  '.join(said), flush=True)


if __name__ == '__main__':
    main()
