#!/usr/bin/env python3
"""How fast [mqtt NAME] takes what a broker has kept for it: mosquitto queues messages of QoS 1 while the daemon is away; then the daemon
comes and takes them. Says messages a second by the clock, and processor time a message of both, which says what limits.

    HANKELD=build/hankeld HANKEL=build/hankel tests/bench/scripts/mqtt.py [MESSAGES] [REPEATS]
"""
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import broker  # noqa: E402
import harness  # noqa: E402


def cpu(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def drain(n, durability, version, payload):
    b = broker.Broker()
    section = f'[mqtt p]\nurl = mqtt://127.0.0.1:{b.port}\ntopics = s/#\nversion = {version}\n'
    with tempfile.TemporaryDirectory(dir=ROOT) as state:
        def start():
            d = harness.Daemon(f'[detector all]\nmatch = *\nwindow = 8\nalert = off\n{section}', keys=f'threads = 1\ndurability = {durability}\nstate = {state}/there\n')
            return d, lambda: d.status()['mqtt'][0]
        d, look = start()
        harness.until(lambda: look()['state'] == 'connected', 'the subscription')
        d.clean()
        b.publish('s/a', *(payload.format(i) for i in range(n)))
        before, begin = cpu(b.process.pid), time.monotonic()
        d, look = start()
        harness.until(lambda: look()['messages'] >= n, 'all messages', 600)
        took = time.monotonic() - begin
        print(f'{durability:8} MQTT {version:5} {payload[:24]:24}: {n / took:7.0f} messages/s; us of a processor a message: hankeld {cpu(d.process.pid) / n * 1e6:4.1f}, '
              f'broker {(cpu(b.process.pid) - before) / n * 1e6:4.1f}', flush=True)
        d.clean()
    b.clean()


if __name__ == '__main__':
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 30000
    print(subprocess.run(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True, check=True).stdout.strip(), f'{messages} messages')
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
        for durability, version, payload in ('none', '5', '{}.5'), ('journal', '5', '{}.5'), ('journal', '3.1.1', '{}.5'), ('journal', '5', '{{"temperature": {}.5, "rms": {{"x": 1}}}}'):
            drain(messages, durability, version, payload)
