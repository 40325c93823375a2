#!/usr/bin/env python3
"""Measures how well the profile of a network (/api/v1/lines) names the node of a leak: feeds the simulated networks of network_leaks.py to
a daemon until an hour after the leak began.

    network_places.py [--build build] [--seeds 101-106] [--shares 0.02,0.04] [--adapt 0.002] [--unmetered 0.05] [--pressures 6] [--side 17]

For each leak it prints the rank of the true node among all by how well they explain the departures (the API lists 20), how many nodes
explain about as much as the best, how many pipes lie between the first node and the true one, and, for comparison, between a node drawn at
random and the true one."""
import argparse
import os
import re
import statistics
import subprocess
import tempfile
import threading
import time

from model_places import CONFIG, ask
from network_file import town

LEAK, INTERVAL = 5, 5  # h, s


def links(text):
    near = {}
    for line in text.splitlines():
        word = line.split()
        if word[0] == 'edge':
            near.setdefault(word[1], []).append(word[2])
            near.setdefault(word[2], []).append(word[1])
    return near


def away(near, start):
    """The number of pipes on the way to each node."""
    found, order = {start: 0}, [start]
    for node in order:
        for other in near[node]:
            if other not in found:
                found[other] = found[node] + 1
                order.append(other)
    return found


def cause(o, folder, text, seed, share, node):
    model, path, config = (os.path.join(folder, name) for name in ('net.model', 'net.csv', 'c.conf'))
    for name, said in (model, text), (config, CONFIG.format(feed=o.port, web=o.port + 1, model=model, adapt=o.adapt)):
        with open(name, 'w', encoding='utf-8') as f:
            f.write(said)
    with open(path, 'w', encoding='utf-8') as f:
        subprocess.run([f'{o.build}/hankel', 'model', 'simulate', '--hours', str(LEAK + 1), '--interval', f'{INTERVAL}s', '--seed', str(seed), '--unmetered', str(o.unmetered), '--leak', f'{LEAK}h,{share},{node}', model],
                       stdout=f, check=True)
    daemon = subprocess.Popen([f'{o.build}/hankeld', '-c', config], stderr=subprocess.PIPE, text=True)
    try:
        next(line for line in daemon.stderr if re.match('ready', line))
        threading.Thread(target=daemon.stderr.read, daemon=True).start()
        subprocess.run([f'{o.build}/hankel', 'feed', '--to', f'127.0.0.1:{o.port}', path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while ask(o.port + 1, 'status')['points']['pending'] > 0:
            time.sleep(0.1)
        return ask(o.port + 1, 'lines')['models'][0]['line'].get('cause') or {'kind': 'nothing'}
    finally:
        daemon.terminate()
        daemon.wait()


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--build', default='build')
    options.add_argument('--port', type=int, default=17500)
    options.add_argument('--adapt', default='0.002')
    options.add_argument('--unmetered', type=float, default=0.05)
    options.add_argument('--pressures', type=int, default=6)
    options.add_argument('--side', type=int, default=17)
    options.add_argument('--seeds', default='101-106')
    options.add_argument('--shares', default='0.02,0.04')
    o = options.parse_args()
    first, last = (int(v) for v in o.seeds.split('-'))
    print(f'SIMULATED networks of {o.side ** 2} nodes, {o.pressures} pressures; seeds {o.seeds}; what has no meter wanders by {100 * o.unmetered:g} %; an hour after the leak began; adapt {o.adapt}\n')
    for share in (float(v) for v in o.shares.split(',')):
        said, ranks, pipes, by_chance, near = [], [], [], [], []
        for seed in range(first, last + 1):
            text, nodes = town(o.side, seed, pressures=o.pressures)
            node = nodes[seed % len(nodes)]
            with tempfile.TemporaryDirectory() as folder:
                c = cause(o, folder, text, seed, share, node)
            if c['kind'] != 'leak':
                said.append(f"{node}: {c.get('sensor', c['kind'])}")
                continue
            distance = away(links(text), node)
            named = [n['node'] for n in c['nodes']]
            ranks.append(named.index(node) + 1 if node in named else None)
            pipes.append(distance[named[0]])
            by_chance.append(statistics.mean(distance.values()))
            near.append(c['near'])
            said.append(f"{node}: {named[0]}, {pipes[-1]} pipes away, true one {'no. ' + str(ranks[-1]) if ranks[-1] else 'not among 20'}, {c['near']} nearly as good, size {c['size']:.3g}")
        if pipes:
            within = [sum(r is not None and r <= k for r in ranks) for k in (1, 5, 20)]
            print(f'{100 * share:4.1f} %  a leak: {len(pipes)} of {last + 1 - first}; pipes from the named node to the true one: {statistics.median(pipes):g} ({min(pipes)} to {max(pipes)}), '
                  f'by chance {statistics.mean(by_chance):.1f}; true node first: {within[0]}, among five: {within[1]}, among twenty: {within[2]}; nearly as good: {statistics.median(near):g} ({min(near)} to {max(near)})', flush=True)
        else:
            print(f'{100 * share:4.1f} %  a leak: 0 of {last + 1 - first}', flush=True)
        print('        ' + '\n        '.join(said), flush=True)


if __name__ == '__main__':
    main()
