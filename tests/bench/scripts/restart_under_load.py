"""Measures what each sender loses when the daemon restarts under load: datagrams of lines, lines over TCP, and points of a feed
(hankel feed --feed). The daemon gets its sockets as from systemd, and they outlive it.

    python3 tests/bench/scripts/restart_under_load.py [RESTARTS [SECONDS]]

Prints a line for each sender: what it sent, what all lives of the daemon received, and what is missing.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import harness  # noqa: E402

RATE = 500  # a second, of each sender
ANY = '[detector any]\nmatch = *\nwindow = 8\ninterval = 2ms\nalert = off\n'


def bound(kind):
    s = socket.socket(type=kind)
    s.bind(('127.0.0.1', 0))
    if kind == socket.SOCK_STREAM:
        s.listen(512)
    return s


def listener(name, protocol, transport, s):
    return f'[listen {name}]\nprotocol = {protocol}\ntransport = {transport}\naddress = 127.0.0.1:{s.getsockname()[1]}\n'


def lines(kind, address, stop, sent):
    """Sends one line after the other; over TCP it reconnects when the daemon closes the connection."""
    s = None
    while not stop.is_set():
        try:
            if s is None:
                s = socket.socket(type=kind)
                s.connect(address)
            s.sendall(f's value=1 {harness.START + sent[0] * 2000000}\n'.encode())
            sent[0] += 1
        except OSError:
            s.close()
            s = None
        time.sleep(1 / RATE)


def run(restarts, seconds, which):
    """(sent, arrived) of one sender."""
    state = tempfile.mkdtemp(prefix='hankeld-restart-')
    points, tcp, udp = bound(socket.SOCK_STREAM), bound(socket.SOCK_STREAM), bound(socket.SOCK_DGRAM)
    durable = f'durability = journal\nstate = {state}/there\n' if which == 'feed' else ''
    how = {'listeners': listener('points', 'binary', 'tcp', points) + listener('tcp', 'line', 'tcp', tcp) +
           listener('udp', 'line', 'udp', udp), 'keys': f'threads = 2\nmax_ahead = off\n{durable}',
           'passed': [('points', points), ('tcp', tcp), ('udp', udp)]}
    stop, sent, arrived, feeder = threading.Event(), [0], 0, None
    d = harness.Daemon(ANY, **how)
    if which == 'feed':
        sent[0] = int(RATE * seconds * (restarts + 1))
        recording = os.path.join(state, 'all.csv')
        with open(recording, 'w', encoding='utf-8') as f:
            f.write('time,s\n' + ''.join(f'{harness.START + i * 2000000},1\n' for i in range(sent[0])))
        feeder = subprocess.Popen([harness.HANKEL, 'feed', '--to', f'127.0.0.1:{points.getsockname()[1]}', '--feed', 'all', '--unit', 'ns',
                                   '--rate', str(RATE), recording], stdout=subprocess.DEVNULL)
    else:
        kind = socket.SOCK_DGRAM if which == 'udp' else socket.SOCK_STREAM
        sender = threading.Thread(target=lines, args=(kind, (udp if which == 'udp' else tcp).getsockname(), stop, sent))
        sender.start()
    for life in range(restarts + 1):
        end = time.monotonic() + seconds
        while time.monotonic() < end or (life == restarts and feeder and feeder.poll() is None):
            time.sleep(0.01)
        if life == restarts:
            stop.set()
            time.sleep(0.5)
        replayed = d.status()['durability'].get('replayed', 0)
        d.stop()
        arrived += int(re.search(r'ended: (\d+) points in', '\n'.join(d.log))[1]) - replayed
        d.clean()
        if life < restarts:
            d = harness.Daemon(ANY, **how)
    shutil.rmtree(state)
    return sent[0], arrived


def main():
    restarts, seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 5, float(sys.argv[2]) if len(sys.argv) > 2 else 2
    print(f'{restarts} restarts, {seconds:g} s apart, {RATE} a second')
    for which, what in [('udp', 'lines over UDP'), ('tcp', 'lines over TCP'), ('feed', 'points of a feed, durability = journal')]:
        sent, arrived = run(restarts, seconds, which)
        print(f'{what}: {sent} sent, {arrived} arrived, {sent - arrived} lost')


if __name__ == '__main__':
    main()
