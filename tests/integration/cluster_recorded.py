#!/usr/bin/env python3
"""What the machines of a cluster wrote once (tests/data/cluster-0.1): the messages of a partition's log, of scores and of events, letters, and the
partition's state, with all results and events. Later builds must read it: test_cluster_versions.py.

    HANKELD=build/hankeld HANKEL=build/hankel tests/integration/cluster_recorded.py FOLDER

records it anew into a folder, by a proxy between the machines and the broker. A later format wants a folder of its own beside the present one.
"""
import glob
import json
import os
import random
import re
import shutil
import struct
import sys
import urllib.request

import broker_proxy
import cluster_machines
import harness
import rabbit
import web
from harness import ALERTS, DONE, POSITIONS, SECOND, START, SUBSCRIBE, text, until

FOLDER = os.path.join(harness.DATA, 'cluster-0.1')
LOGS = ('points.0', 'scores', 'events')
POINTS, HALF, TOGETHER = 110, 66, 6  # rows; the state is that after HALF of them; rows of a message
DETECTORS = '''[detector waves]
match = wave*
window = 16
rank = 2
interval = 1s
alert = 0.5
cooldown = 10
provisional = yes

[detector levels]
match = level*
algorithm = shift
window = 8
interval = 1s

[detector graphs]
match = graph*
algorithm = graph
window = 10
level = 2
interval = 1s

[detector novelties]
match = novelty*
algorithm = novelty
interval = 1s

[detector limits]
match = limit*
algorithm = limit
limit = 3
interval = 1s

[detector counters]
match = counter*
window = 8
rank = 2
interval = 1s
rate = yes

[detector machines]
match = press*
window = 8
rank = 2
interval = 1s

[group machine]
match = (*)/*
interval = 1s
'''


def values():
    """Values of each sensor, by name, that change on both sides of the state."""
    rng, out = random.Random(11), {}
    for name, at in ('wave-early', 50), ('wave-late', 80), ('novelty', 75), ('graph', 70), ('press1/a', 72), ('press1/b', 72):
        out[name] = [harness.single(((k * (3 if k < at else 7)) % 40) / 20 - 1 + rng.gauss(0, 0.05)) for k in range(POINTS)]
    for name, at, change in ('level', 74, 4), ('limit', 62, 4), ('counter', 70, 50):
        out[name] = [harness.single((change if k >= at else 0) + rng.gauss(1, 0.2)) for k in range(POINTS)]
    total = 1e6
    for k, step in enumerate(out['counter']):
        total = total + abs(step) if k != 30 else 1.0  # it begins again
        out['counter'][k] = harness.single(total)
    return out


def path(name):
    return os.path.join(FOLDER, name)


def messages(name):
    """The messages of a file, each behind its length, u32."""
    with open(path(name), 'rb') as f:
        data, out = f.read(), []
    while data:
        size = struct.unpack_from('<I', data)[0]
        out.append(data[4:4 + size])
        data = data[4 + size:]
    return out


def lines(name):
    """The lines of a file of JSON, as tuples."""
    with open(path(name), encoding='utf-8') as f:
        return [tuple(json.loads(line)) for line in f]


def follow(daemon):
    """A subscriber to events and their positions."""
    c = daemon.client()
    c.request(SUBSCRIBE, struct.pack('<If', ALERTS | POSITIONS, 0) + text('') + struct.pack('<Q', 0), DONE)
    return c


class Recorded(cluster_machines.Cluster):
    """Machines with the detectors of the recording."""
    partitions = 1

    def machine(self, role, **how):
        shared = f'state = shared:{self.folder}\n' if role == 'scorer' else ''
        return self.start(role, shared + web.LISTENER, 'snapshot = 1h\n' if role == 'scorer' else '', detector=DETECTORS, **how)

    def holds(self, d):
        until(lambda: self.of(d)['partitions'] == self.partitions, 'the scorer to have the partitions', rabbit.START)


class Record(Recorded):
    def record(self):
        """A gateway, and two scorers after each other: the first one's state is kept."""
        os.makedirs(FOLDER)
        self.name = 'recorded'
        proxy, all_values = broker_proxy.Proxy(self.broker.port), values()
        self.addCleanup(proxy.listener.close)
        gateway, first = self.machine('gateway', url=proxy.url), self.machine('scorer', url=proxy.url)
        self.holds(first)
        with gateway.client() as seen, follow(gateway) as told, gateway.client() as c:
            seen.subscribe()
            until(lambda: self.of(first)['scores']['listeners'] > 0, 'the scorer to share its scores', rabbit.START)
            handles = c.register(*all_values)

            def feed(begin, end):
                for k in range(begin, end, TOGETHER):
                    some = range(k, min(k + TOGETHER, end))
                    c.send(harness.points(handles * len(some), [START + i * SECOND for i in some for _ in handles], [v[i] for i in some for v in all_values.values()]))
                    until(lambda: gateway.status()['points']['relayed'] == (some[-1] + 1) * len(handles), 'the points to be published')
                until(lambda: seen.drain(0.1) or len({r[:2] for r in seen.results if r[0] in all_values}) == end * len(handles), 'all scores', rabbit.START)
            feed(0, HALF)
            until(lambda: [h['next'] for h in self.of(first)['held']] == [self.of(gateway)['messages']], 'all messages to be read')
            self.assertEqual(first.stop(), 0)
            before = sum(key == 'recorded.points.0' for _, key, _ in proxy.published)
            shutil.copytree(os.path.join(self.folder, 'recorded-1', '0'), path('state'))
            for old in sorted(glob.glob(path('state/*/*/*')))[:-1]:
                os.remove(old)
            second = self.machine('scorer', url=proxy.url)
            self.holds(second)
            until(lambda: self.of(second)['scores']['listeners'] > 0, 'the scorer to share its scores', rabbit.START)
            feed(HALF, POINTS)
            with urllib.request.urlopen(f"http://127.0.0.1:{gateway.port['http tcp']}/api/v1/sensors/level", timeout=harness.WAIT) as answer:
                json.load(answer)
            told.drain(1)
        self.write(proxy.published, before, seen.results, told.placed)

    def write(self, published, before, results, placed):
        for log in LOGS:
            with open(path(log), 'wb') as f:
                for _, key, body in published:
                    if key == f'recorded.{log}':
                        f.write(struct.pack('<I', len(body)) + body)
        with open(path('letters'), 'wb') as f:
            for kind in b'notice', b'question', b'answer':
                body = [b for exchange, key, b in published if (exchange == 'recorded.machines' or '.mail.' in key) and b.startswith(kind) and (kind != b'notice' or b'"held":[{' in b)][-1]
                f.write(struct.pack('<I', len(body)) + body)
        rows = [(s, (t - START) // SECOND, *rest) for s, t, *rest in results]
        for name, rows in ('results.jsonl', rows), ('events.jsonl', [(p, *e) for p, _, e in placed]):
            with open(path(name), 'w', encoding='utf-8') as f:
                f.writelines(json.dumps(row) + '\n' for row in rows)
        with open(path('about.json'), 'w', encoding='utf-8') as f:
            json.dump({'messages_before_the_state': before}, f)
            f.write('\n')
        size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(FOLDER) for name in names)
        print(f'{FOLDER}: {size} bytes; events:', re.sub(r"[\[\]']", '', str(sorted({(e[0], e[2]) for _, _, e in placed}))), file=sys.stderr)


if __name__ == '__main__':
    FOLDER = sys.argv.pop()
    sys.argv.append('Record.record')
    harness.main()
