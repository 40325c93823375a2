#!/usr/bin/env python3
"""Measures how fast [mqtt NAME] reads a broker's messages. Mosquitto keeps messages of QoS 1 while the daemon is away; then the daemon
connects and reads them. Other cases publish while the daemon reads ("live"). Prints messages a second from the first to the last that the
daemon reads; the processor time of both programs for a message, which shows what limits; the part of hankeld's time that its threads of
[mqtt NAME] take; and how many points were late, since messages of a shared subscription come in no order.

    HANKELD=build/hankeld HANKEL=build/hankel tests/bench/scripts/mqtt.py [MESSAGES] [REPEATS] [WORDS OF A KIND]
    HANKELD=build/hankeld HANKEL=build/hankel tests/bench/scripts/mqtt.py --instructions [MESSAGES]

--instructions: counts with callgrind what a message costs each program while messages are published, independently of the machine's load:
instructions outside the kernel, system calls, and the processor time of these. The result is the difference of two runs, of MESSAGES
(default 20,000) and of twice as many. Nothing is scored.
"""
import contextlib
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import broker  # noqa: E402
import harness  # noqa: E402

SENSORS = 997  # odd, so that a sensor whose messages are shared gets them from every session
START = 1_700_000_000
NUMBER, JSON = '{value}.5', '{{"at":{at},"temperature":{value}.5,"rms":{{"x":1}}}}'


def cpu(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def threads_cpu(pid, name):
    """Seconds of processor time of the process's threads whose name begins with this prefix."""
    total = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/comm', encoding='utf-8') as comm, open(f'/proc/{pid}/task/{task}/schedstat', encoding='utf-8') as stat:
            total += int(stat.read().split()[0]) if comm.read().startswith(name) else 0
    return total / 1e9


def packet(kind, body):
    size, length = len(body), b''
    while not length or size:
        size, low = divmod(size, 128)
        length += bytes([low | (128 if size else 0)])
    return bytes([kind]) + length + body


def text(s):
    return struct.pack('>H', len(s)) + s.encode()


def messages(n, payload, parts, brokers, qos):
    """For each broker, packets of MQTT 3.1.1 with n messages, of SENSORS sensors by turns and of as many parts of the
    topics."""
    out = [[] for _ in range(brokers)]
    for i in range(n):
        part = i % SENSORS % parts
        out[part % brokers].append(packet(0x30 | qos << 1, text(f's/{part}/{i % SENSORS}') + (struct.pack('>H', i % 65535 + 1) if qos else b'') +
                                          payload.format(value=i, at=START + i // SENSORS).encode()))
    return [(len(each), b''.join(each)) for each in out]


def publish(port, n, data, qos):
    """Publishes as fast as the broker accepts. mosquitto_pub would be slower than what is measured."""
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.sendall(packet(0x10, text('MQTT') + b'\4\2' + struct.pack('>H', 600) + text('publisher')))
        assert s.recv(4)[3:] == b'\0'
        sender = threading.Thread(target=s.sendall, args=(data, ))
        sender.start()
        left = 4 * n * qos  # bytes of acknowledgements
        while left > 0:
            came = s.recv(1 << 16)
            assert came
            left -= len(came)
        sender.join()


class Run:
    def __init__(self, n, durability, sections, share, payload, live, brokers=1, qos=1, program=harness.HANKELD, every=0.01):
        self.n, self.live, self.durability, self.qos, self.program, self.every = n, live, durability, qos, program, every
        self.window = 8 if every < 1 else 1024  # nothing is scored where instructions are counted
        self.data = messages(n, payload, sections, brokers, qos)
        self.brokers = [broker.Broker() for _ in range(brokers)]
        topics = ['$share/bench/s/#'] * sections if share else [f's/{k}/#' for k in range(sections)]
        time_key = 'time = at\nvalues = temperature, rms.x\n' if payload == JSON else ''
        self.sections = ''.join(f'[mqtt p{k}]\nurl = mqtt://127.0.0.1:{self.brokers[k % brokers].port}\nqos = {qos}\ntopics = {topic}\n{time_key}' for k, topic in enumerate(topics))

    def start(self, state):
        return harness.Daemon(f'[detector all]\nmatch = *\nwindow = {self.window}\nalert = off\n{self.sections}',
                              keys=f'threads = 1\nmax_ahead = off\ndurability = {self.durability}\nstate = {state}/there\n', program=self.program)

    def taken(self, d):
        return sum(look['messages'] for look in d.status()['mqtt'])

    def until(self, ready, what):
        if self.every < 1:
            return harness.until(ready, what)
        while not ready():
            time.sleep(self.every)
        return None

    def publish(self):
        senders = [threading.Thread(target=publish, args=(b.port, *data, self.qos)) for b, data in zip(self.brokers, self.data)]
        for sender in senders:
            sender.start()
        return senders

    def brokers_cpu(self):
        return sum(cpu(b.process.pid) for b in self.brokers)

    def measure(self):
        """Messages a second; microseconds for each of hankeld, of its threads of [mqtt] and of the brokers; late points; and the share of
        the messages that arrived."""
        with tempfile.TemporaryDirectory(dir=ROOT) as state:
            d = self.start(state)
            self.until(lambda: all(look['state'] == 'connected' for look in d.status()['mqtt']), 'the subscriptions')
            if not self.live:
                d.clean()
                for sender in self.publish():
                    sender.join()
            used = self.brokers_cpu()
            if self.live:
                senders = self.publish()
            else:
                d, senders = self.start(state), []
            self.until(lambda: self.taken(d) > 0, 'the first message')
            begin = last = time.monotonic()
            first = now = self.taken(d)
            while now < self.n and (self.qos or time.monotonic() - last < 3):  # the broker may drop some messages of QoS 0
                time.sleep(self.every)
                before, now = now, self.taken(d)
                last = time.monotonic() if now > before else last
            took = last - begin
            for sender in senders:
                sender.join()
            out = ((now - first) / took, cpu(d.process.pid) / now * 1e6, threads_cpu(d.process.pid, 'mqtt') / now * 1e6, (self.brokers_cpu() - used) / now * 1e6,
                   d.status()['points']['late'], now / self.n)
            d.clean()
            for b in self.brokers:
                b.stop()
                b.clean()
            return out


LIVE = {  # as KINDS
    'numbers, no durability, live': ('none', 1, False, NUMBER, True),
    'numbers, journal, live': ('journal', 1, False, NUMBER, True),
    'JSON with time, journal, live': ('journal', 1, False, JSON, True),
}


def counted(n, kind):
    """Instructions, system calls and their ns, for hankeld and for the broker, in a run under callgrind."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as after:
        for name, program in (('hankeld', harness.HANKELD), ('mosquitto', shutil.which('mosquitto'))):
            path = os.path.join(folder, name)
            with open(path, 'w', encoding='utf-8') as f:
                f.write(f'#!/bin/sh\nexec valgrind -q --tool=callgrind --collect-systime=nsec --callgrind-out-file={path}.out {program} "$@"\n')
            os.chmod(path, 0o755)
        after.callback(os.environ.__setitem__, 'PATH', os.environ['PATH'])
        os.environ['PATH'] = folder + ':' + os.environ['PATH']
        Run(n, *kind, program=os.path.join(folder, 'hankeld'), every=5).measure()  # a status costs a million instructions
        out = []
        for name in ('hankeld', 'mosquitto'):
            with open(os.path.join(folder, name + '.out'), encoding='utf-8') as f:
                lines = dict(line.split(': ', 1) for line in f if ': ' in line)
            total = dict(zip(lines['events'].split(), map(int, lines['totals'].split())))
            out += [total['Ir'], total['sysCount'], total['sysCpuTime']]
        return out


def count_instructions(n):
    for name, kind in LIVE.items():
        less, more = counted(n, kind), counted(2 * n, kind)
        a = [(y - x) / n for x, y in zip(less, more)]
        print(f'{name:30}: a message: hankeld {a[0]:6.0f} instructions, {a[1]:4.1f} system calls of {a[2] / 1000:4.1f} us; '
              f'broker {a[3]:6.0f} instructions, {a[4]:4.1f} system calls of {a[5] / 1000:4.1f} us', flush=True)


KINDS = {  # cases: durability, sections, whether they share one subscription, payload, whether messages are published meanwhile
    'numbers, no durability': ('none', 1, False, NUMBER, False),
    'numbers, journal': ('journal', 1, False, NUMBER, False),
    'JSON with time, journal': ('journal', 1, False, JSON, False),
    'numbers, journal, live': ('journal', 1, False, NUMBER, True),
    'numbers, journal, 2 sections by topic': ('journal', 2, False, NUMBER, False),
    'numbers, journal, 2 sections, $share': ('journal', 2, True, NUMBER, False),
    'JSON with time, journal, 2 sections, $share': ('journal', 2, True, JSON, False),
    'numbers, journal, 2 brokers, live': ('journal', 2, False, NUMBER, True, 2),
    'JSON with time, journal, live': ('journal', 1, False, JSON, True),
    'JSON with time, journal, 2 brokers, live': ('journal', 2, False, JSON, True, 2),
    'numbers, no durability, QoS 0, live': ('none', 1, False, NUMBER, True, 1, 0),
    'numbers, no durability, QoS 0, 2 brokers, live': ('none', 2, False, NUMBER, True, 2, 0),
}

if __name__ == '__main__':
    if sys.argv[1:2] == ['--instructions']:
        count_instructions(int(sys.argv[2]) if len(sys.argv) > 2 else 20000)
        sys.exit()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(subprocess.run(['git', '-C', ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True, check=True).stdout.strip(), f'{count} messages; medians of {repeats}')
    wanted = sys.argv[3] if len(sys.argv) > 3 else ''
    for name, kind in KINDS.items():
        if wanted not in name:
            continue
        rate, hankeld, thread, its_broker, late, came = (sorted(column) for column in zip(*[Run(count, *kind).measure() for _ in range(repeats)]))
        print(f'{name:47}: {statistics.median(rate):7.0f} messages/s ({rate[0]:.0f} to {rate[-1]:.0f}); us a message: hankeld {statistics.median(hankeld):4.1f} '
              f'({hankeld[0]:.1f} to {hankeld[-1]:.1f}), of it [mqtt] {statistics.median(thread):4.1f}, broker {statistics.median(its_broker):4.1f}; '
              f'late points {statistics.median(late):.0f}; came {100 * came[0]:.1f} %', flush=True)
