#!/usr/bin/env python3
"""Attacks a daemon while honest clients feed it, and compares the clients' rates with and without the attack, in turn, in one run. Attacks: idle
connections, connections that send a byte a second, garbage in place of a handshake, garbage and unknown tokens on TLS listeners,
spoofed and broken datagrams, a flood of new names, names that collide under a hash without a key, malformed frames and
lines. Prints the ratio for each attack and for all together; honest clients should keep 95 %.

    tests/faults/attack.py [--idle 5000] [--seconds 4] [--rounds 3] [--rate 0.5] [--nice 10] [--only NAME] [--alone]

Attackers share this machine's cores with the daemon; real ones have their own machines. So each round has a control: processes
that use as much processor time as the attackers did, and do not talk to the daemon. The clients' rate under the attack, divided by their rate
in the control, is the cost of the attack through the daemon. The daemon's processor time for a million honest points, with the attack and
without, is printed, too. With --alone there are no honest clients, and the output is the daemon's processor time for an attack, divided by
that of the attackers: this can be measured on a busy machine, too.

Honest clients feed over TCP as fast as the daemon takes it or, with --rate, at that part of the rate measured at first. The daemon is
$HANKELD. Fault matrix rows 12, 13, 14, 17 and 20."""
import argparse
import contextlib
import glob
import hashlib
import multiprocessing
import os
import random
import resource
import select
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import certificates  # noqa: E402
import harness  # noqa: E402
from harness import HELLO, POINTS, REGISTER, START, frame, points, text  # noqa: E402

KEYS = ('threads = 1\nloops = 1\nmax_sensors = 20000\nmax_connections = {connections}\nhandshake = 10s\n'
        'max_pending = 200000\nbacklog = 1048576\n')
# Scoring is cheap here, so that it does not hide the attack's cost.
DETECTORS = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1ns\nstride = 65536\nalert = off\n'
SENSORS, FRAME = 500, 5000


class Ports:
    """What attackers know of a daemon; it is passed to their processes."""

    def __init__(self, daemon, authority):
        self.port, self.authority = dict(daemon.port), authority

    def connect(self, listener, source=None):
        s = socket.socket(type=socket.SOCK_DGRAM) if listener.endswith('udp') else socket.socket()
        s.settimeout(5)  # s; an attacker that gets no answer starts over, without an error
        if source:
            s.bind((source, 0))
        s.connect(('127.0.0.1', self.port[listener]))
        return s


def address(rng):
    return f'127.{rng.randrange(1, 255)}.{rng.randrange(256)}.{rng.randrange(1, 255)}'


def idle(ports, n, stop, ready):
    """Connections that send nothing, or a byte a second, from many addresses, because the number for one address is limited; opened again when they
    are closed."""
    rng = random.Random(n)
    hello = frame(HELLO, text('slow'))
    open_, each = [], {}
    ready_at = False
    while not stop.is_set():
        with contextlib.suppress(OSError):
            for _ in range(min(600, n - len(open_))):
                s = ports.connect(rng.choice(['binary tcp', 'line tcp', 'text tcp']), address(rng))
                s.setblocking(False)
                open_.append(s)
                each[s.fileno()] = (s, len(open_) % 2, 0)
        if len(open_) >= n and not ready_at:
            ready_at = True
            ready.set()
        for fileno, (s, slow, at) in list(each.items()):
            if slow:
                with contextlib.suppress(OSError):
                    s.send(hello[at:at + 1] or b'x')
                each[fileno] = (s, slow, at + 1)
        gone = []
        poll = select.poll()
        for s in open_:
            poll.register(s, select.POLLIN)
        for fileno, _ in poll.poll(0):
            s = each[fileno][0]
            try:
                if not s.recv(4096):
                    gone.append(s)
            except BlockingIOError:
                pass
            except OSError:
                gone.append(s)
        for s in gone:
            open_.remove(s)
            del each[s.fileno()]
            s.close()
        stop.wait(1)


def paced(attack):
    """An attack in rounds, with as much rest as work, because it must leave cores to honest clients."""
    def run(ports, n, stop, ready):
        ready.set()
        rng = random.Random(n)
        while not stop.is_set():
            begin = time.monotonic()
            with contextlib.suppress(OSError, harness.Closed):
                attack(ports, rng)
            stop.wait(max(0.02, 9 * (time.monotonic() - begin)))
    return run


@paced
def garbage(ports, rng):
    """Garbage in place of a handshake."""
    for data in (b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + rng.randbytes(500), rng.randbytes(2000), b'GET / HTTP/1.1\r\n\r\n',
                 frame(HELLO, rng.randbytes(60)), struct.pack('<2sBBIII', b'HK', 1, POINTS, 0xFFFFFFFF, 0, 0)):
        with ports.connect('binary tcp') as s:
            s.sendall(data)
            s.settimeout(0.2)
            with contextlib.suppress(OSError):
                s.recv(4096)


@paced
def garbage_tls(ports, rng):
    """Garbage in place of TLS, and good handshakes with unknown tokens; from many addresses, because a single one would be
    refused."""
    context = ssl.create_default_context(cafile=ports.authority)
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname='127.0.0.1').do_handshake()
    hello = out.read()
    flipped = bytearray(hello)
    flipped[rng.randrange(5, len(hello))] ^= 1 << rng.randrange(8)
    noise = rng.randbytes(1000)
    for data in (noise, b'\x16\x03\x01\x40\x00' + noise, hello[:rng.randrange(1, len(hello))], bytes(flipped),
                 hello + b'\x17\x03\x03\x03\xe8' + noise, hello):
        with ports.connect('text tcp', address(rng)) as s:
            s.sendall(data)
            s.settimeout(0.05)
            with contextlib.suppress(OSError):
                s.recv(4096)
    with context.wrap_socket(ports.connect('text tcp', address(rng)), server_hostname='127.0.0.1') as s:
        s.sendall(b'token hkt_nobody\n')
        s.recv(4096)


@paced
def datagrams(ports, rng):
    """Datagrams of guessed feeds, and random ones."""
    with ports.connect('binary udp') as a, ports.connect('line udp') as b:
        for i in range(200):
            a.send(points([i], [START], [1.0], rng.getrandbits(64), i + 1, 0))
            a.send(rng.randbytes(100))
            b.send(b'\xff\xfe not a line')


@paced
def names(ports, rng):
    """New sensors without end, some under names that would collide without a key."""
    with ports.connect('line tcp') as s:
        for _ in range(20):
            s.sendall(b''.join(b'kkkkkkkk%08dxxxxxxxxxxxxxxxx value=1\nnew%d value=1\n' % (rng.randrange(10**8), rng.getrandbits(40)) for _ in range(50)))


@paced
def registrations(ports, rng):
    with ports.connect('binary tcp') as s:
        s.sendall(frame(HELLO, text('names')))
        wanted = [b'kkkkkkkk%08dxxxxxxxxxxxxxxxx' % rng.randrange(10**8) for _ in range(2000)]
        s.sendall(frame(REGISTER, struct.pack('<I', len(wanted)) + b''.join(map(text, wanted)), 1))
        s.recv(65536)


@paced
def bad_lines(ports, rng):
    with ports.connect('line tcp') as s:
        s.sendall(b'bad\n' * 500 + rng.randbytes(5000) + b'\n')


ATTACKS = {'idle and byte-a-second connections': idle, 'garbage for a handshake': garbage, 'garbage for TLS': garbage_tls,
           'spoofed and broken datagrams': datagrams,
           'a flood of names': names, 'colliding names': registrations, 'bad lines': bad_lines}


class Honest(threading.Thread):
    """A client that feeds its own sensors; `taken` counts points for which the daemon has answered."""

    def __init__(self, daemon, number):
        super().__init__(daemon=True)
        self.client, self.taken, self.over, self.rate = daemon.client(), 0, False, None
        handles = self.client.register(*(f'honest {number} {i}' for i in range(SENSORS)))
        self.columns = struct.pack(f'<{FRAME}d{FRAME}I', *([1.0] * FRAME), *(handles * (FRAME // SENSORS)))

    def run(self):
        tick, sent, begin = 0, 0, 0.0
        while not self.over:
            for _ in range(10):
                head = struct.pack('<QQQIBBHqq', 0, 0, 0, FRAME, 2, 0, 0, START + tick * FRAME, 1)
                self.client.send(frame(POINTS, head + self.columns))
                tick += 1
            self.client.ping()  # they were read
            self.taken += 10 * FRAME
            if self.rate:
                now = time.monotonic()
                if begin == 0 or begin + sent / self.rate < now - 1:
                    sent, begin = 0, now  # missed time is not made up for
                sent += 10 * FRAME
                time.sleep(max(0, begin + sent / self.rate - now))


def burn(share, stop, ready):
    """Uses this share of a core."""
    ready.set()
    begin = time.monotonic()
    while not stop.is_set():
        now = time.process_time()
        most = now + min(0.05, share * (time.monotonic() - begin) - now)
        while time.process_time() < most:
            pass
        time.sleep(0.005)


def spent(pid):
    """Processor time of a process, s."""
    total = 0
    for path in glob.glob(f'/proc/{pid}/task/*/schedstat'):
        with contextlib.suppress(OSError), open(path, encoding='utf-8') as f:  # a thread may end
            total += int(f.read().split()[0])
    return total / 1e9


class Phase:
    """Measures honest clients for that many seconds: `rate`, points a second; `work`, the daemon's seconds for a million of them; `shares`, the
    processor time of the other processes, in cores."""

    def __init__(self, daemon, honest, seconds, beside=()):
        pids = [daemon.process.pid, *(p.pid for p in beside)]
        taken, used, begin = sum(h.taken for h in honest), [spent(p) for p in pids], time.monotonic()
        time.sleep(seconds)
        taken, used = sum(h.taken for h in honest) - taken, [spent(p) - u for p, u in zip(pids, used)]
        seconds = time.monotonic() - begin
        self.rate, self.work, self.shares = taken / seconds, used[0] / max(taken, 1) * 1e6, [u / seconds for u in used[1:]]
        self.share = used[0] / seconds  # of the daemon


def beside(context, honest, daemon, seconds, nice, tasks):
    """Measures while processes run these tasks, (function, arguments)."""
    stop = context.Event()
    processes = []
    for function, arguments in tasks:
        ready = context.Event()
        p = context.Process(target=function, args=(*arguments, stop, ready), daemon=True)
        p.start()
        os.setpriority(os.PRIO_PROCESS, p.pid, nice)
        processes.append((p, ready))
    for p, ready in processes:
        harness.until(lambda p=p, ready=ready: ready.is_set() or not p.is_alive(), 'an attack to begin')
        assert p.is_alive(), 'an attacker has ended'
    phase = Phase(daemon, honest, seconds, [p for p, _ in processes])
    stop.set()
    for p, _ in processes:
        p.join(harness.WAIT)
        assert p.exitcode == 0, f'an attacker ended with {p.exitcode}'
    return phase


def alone(context, daemon, ports, arguments):
    """The cost of attacks on a daemon that has nothing else to do."""
    idle_share = Phase(daemon, [], arguments.seconds).share
    print('the daemon\'s processor time for a second of the attackers\'')
    for name, attack in [*ATTACKS.items(), ('all together', None)]:
        if arguments.only not in name:
            continue
        tasks = [(kind, (ports, arguments.idle)) for kind in ([attack] if attack else ATTACKS.values())]
        phases = [beside(context, [], daemon, arguments.seconds, arguments.nice, tasks) for _ in range(arguments.rounds)]
        ratios = [(p.share - idle_share) / sum(p.shares) for p in phases]
        print(f'{name:40} {statistics.median(ratios):5.2f}   rounds {", ".join(f"{r:.2f}" for r in ratios)}', flush=True)


def start(folder, connections):
    """A daemon whose text listener has TLS and tokens, and the file of the authority that signed its certificate."""
    authority = certificates.Authority(folder, 'ca')
    certificate, key = authority.sign('server', names='IP:127.0.0.1')
    tokens = os.path.join(folder, 'tokens')
    with open(tokens, 'w', encoding='utf-8') as f:
        f.write(f'viewer subscribe sha256:{hashlib.sha256(b"hkt_viewer").hexdigest()}\n')
    secured = f'protocol = text\ntls_certificate = {certificate}\ntls_key = {key}\ntokens = {tokens}\n'
    return (harness.Daemon(DETECTORS, keys=KEYS.format(connections=connections), listeners=harness.LISTENERS.replace('protocol = text\n', secured)),
            authority.certificate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--idle', type=int, default=5000)
    parser.add_argument('--seconds', type=float, default=4)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--rate', type=float, help='of what is possible')
    parser.add_argument('--nice', type=int, default=0, help='of the attackers')
    parser.add_argument('--alone', action='store_true', help='no honest clients')
    parser.add_argument('--only', default='', help='attacks with this in their names')
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    folder = tempfile.TemporaryDirectory(prefix='hankeld-attack-')
    daemon, authority = start(folder.name, arguments.idle + 500)
    ports, honest = Ports(daemon, authority), [Honest(daemon, i) for i in range(0 if arguments.alone else 2)]
    for h in honest:
        h.start()
    harness.until(lambda: all(h.taken > 0 for h in honest), 'the honest to begin')
    commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=harness.ROOT, capture_output=True, text=True, check=False).stdout.strip()
    print(f'# {commit} {" ".join(sys.argv)}', flush=True)
    context = multiprocessing.get_context('fork')
    if arguments.alone:
        alone(context, daemon, ports, arguments)
        return daemon.stop()
    if arguments.rate:
        most = Phase(daemon, honest, arguments.seconds).rate
        for h in honest:
            h.rate = most * arguments.rate / len(honest)
        time.sleep(1)  # what they had begun without it
    bad, rss = 0, daemon.rss()
    print(f'{"what honest clients get done under":40} {"control":>8} {"nothing":>8}   the daemon\'s work for a point, attackers\' cores')
    for name, attack in [*ATTACKS.items(), ('all together', None)]:
        if arguments.only not in name:
            continue
        rounds = []
        for _ in range(arguments.rounds):
            without = Phase(daemon, honest, arguments.seconds)
            under = beside(context, honest, daemon, arguments.seconds, arguments.nice,
                           [(kind, (ports, arguments.idle)) for kind in ([attack] if attack else ATTACKS.values())])
            control = beside(context, honest, daemon, arguments.seconds, arguments.nice, [(burn, (share,)) for share in under.shares])
            rounds.append((under.rate / control.rate, under.rate / without.rate, under.work / control.work, sum(under.shares), sum(control.shares)))
        of_control, of_nothing, work, cores, burnt = (statistics.median(column) for column in zip(*rounds))
        bad += of_control < 0.95
        print(f'{name:40} {of_control:8.1%} {of_nothing:8.1%}   {work:.2f} of the control\'s, {cores:.2f} (control {burnt:.2f}); '
              f'rounds {", ".join(f"{r[0]:.1%}" for r in rounds)}', flush=True)
    for h in honest:
        h.over = True
    for h in honest:
        h.join(30)
    p = harness.until(lambda: (lambda p: p['pending'] == 0 and p)(daemon.status()['points']), 'the end of the work')
    assert p['in'] == sum(v for k, v in p.items() if k != 'in'), p
    c = daemon.status()['connections']
    print(f'books balance: {p["in"]} points; {c["accepted"]} connections accepted, {c["refused"]} refused, {c["timed_out"]} timed out; '
          f'memory {rss / 2**20:.0f} MiB before, {daemon.rss() / 2**20:.0f} after')
    code = daemon.stop()
    return 1 if bad or code else 0


if __name__ == '__main__':
    sys.exit(main())
