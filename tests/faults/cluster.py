#!/usr/bin/env python3
"""Runs scorers that share partitions over a broker ([cluster] state = shared:DIR) under random faults.

Checks that no point was lost, and that scores and events are those of a run without faults.

    tests/faults/cluster.py SECONDS [--seed SEED] [--scorers N] [--sensors COUNT] [--rate POINTS] [--broker | --three] [--all] [--only KIND,...]

Runs one RabbitMQ, or three in network namespaces of their own (--three, as root), a gateway that is fed, another one that can lead in its place, N
scorers (with --all, N machines with role = all, of which one is fed), and a feeder with a named feed, which repeats unacknowledged points. A fault
comes every few seconds: a scorer gets SIGKILL and another one is started, or SIGSTOP, for seconds or until others have what it had, or is ended in
good order, or drained and brought back, or joined by one more, or has a partition moved to it; the gateway gets SIGKILL, or SIGSTOP; so does the
machine that leads; with --broker the broker is stopped with SIGSTOP, killed, and short of memory and of disk; with --three one of three brokers is
killed, among them the one that the gateway has, or stopped, links are cut between one broker and all others, between two brokers (RabbitMQ pauses
then), and between a scorer or a gateway and all brokers, for seconds or until others have what it had, a scorer and the gateway are killed while a
broker stands still, and one is short of memory or of disk, for which all take nothing. A subscriber at each machine takes results and
events. In the end everything is held against `hankel replay` of the same points:

    - every acknowledged point was scored: all sensors' last scores are there, and each score that was seen is that of the run without
      faults, bit for bit, also if it was published twice;
    - the events that were seen are those of that run, with the same numbers, and none is missing;
    - a subscriber that connects in the end gets the whole shared log: each event once, none missing;
    - a gateway shows no result twice, and each one from the first one of its sensor on that it has shown, up to its end.

A result that a scorer had not written to its subscriber when it was killed, and that is in its last snapshot, reaches no subscriber: such results
are counted, as `unseen`. Later points have the right scores, which they would not have without the unseen ones.

Prints a line for each fault: kind, and seconds until all sensors had a score of a point that was sent after it."""
import argparse
import contextlib
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'integration'))
import brokers
import harness
import rabbit
from cluster_feeder import Feeder
from cluster_watch import Watch
from harness import SECOND, START

DETECTOR = 'window=16,rank=2,interval=1s,alert=0.5,cooldown=30'
INCIDENTS = '[incidents]\ninterval = 1s\n'  # so that there is a leader
KEYS = 'threads = 1\nloops = 1\nmax_ahead = off\nsnapshot = 2s\n'
PATIENCE = 240  # s for a recovery
ALONE = 30  # s within which two of three brokers must take over from the third
CATCH_UP = 60  # s in which gateways should have got all results, after the last fault,
LATE = 600  # and in which they must
GROUPS = 61000  # groups of processes, by which links are cut


class Machine(harness.Daemon):
    """A daemon whose lines keep the time at which they came, in `stamped`."""

    def __init__(self, *arguments, **named):
        self.stamped = []
        super().__init__(*arguments, **named)

    def _line(self, line):
        self.stamped.append(f'{time.strftime("%H:%M:%S")} {line}')
        super()._line(line)


class Rig:
    def __init__(self, options):
        self.random, self.options = random.Random(options.seed), options
        self.folder = tempfile.mkdtemp(prefix='hankeld-rig-')
        self.brokers = brokers.Brokers() if options.three else None
        self.broker, self.watch, self.daemons, self.started, self.logs = None if options.three else rabbit.Broker(), Watch(), [], 0, []
        self.values = harness.waves(options.seed, options.sensors, int(options.seconds * options.rate / options.sensors) + 1000, (50, 1000))
        self.gateway = None if options.all else self.start('gateway', INCIDENTS)
        self.other = None if options.all else self.start('gateway', INCIDENTS)
        self.scorers = [self.scorer() for _ in range(options.scorers)]
        self.feeder = Feeder(self.values, options.rate, lambda: self.gateway or self.scorers[0])
        self.took, self.log, self.needed, self.stood = {}, [], 0, {}

    def start(self, role, keys='', daemon_keys='threads = 1\nloops = 1\nmax_ahead = off\n'):
        self.started += 1
        group = GROUPS + self.started
        url = self.brokers.urls(self.started) if self.brokers else self.broker.url
        d = Machine(harness.section('all', '*', DETECTOR) + f'[cluster]\nurl = {url}\nname = rig\npartitions = 8\nrole = {role}\n{keys}', keys=daemon_keys,
                           limits=(lambda: os.setgid(group)) if self.brokers else None)
        d.group = group
        d.name = f'{role} {self.started}'
        if role == 'gateway':
            self.watch.follow(d, d.name)
        self.daemons.append(d)
        self.logs.append((d.name, d.stamped))
        return d

    def scorer(self):
        state = f'state = shared:{self.folder}\n'
        d = self.start('all', state + INCIDENTS, KEYS) if self.options.all else self.start('scorer', state, KEYS)
        self.watch.follow(d)
        return d

    def end(self, daemon, number):
        daemon.process.send_signal(number)
        daemon.process.wait(PATIENCE)
        self.daemons.remove(daemon)
        with contextlib.suppress(Exception):
            daemon.clean()

    def scorer_killed(self):
        i = self.random.randrange(len(self.scorers))
        self.end(self.scorers[i], signal.SIGKILL)
        self.scorers[i] = self.scorer()

    def scorer_ended(self):
        i = self.random.randrange(len(self.scorers))
        self.end(self.scorers[i], signal.SIGTERM)
        self.scorers[i] = self.scorer()

    def all_scorers_killed(self):
        for d in self.scorers:
            self.end(d, signal.SIGKILL)
        self.scorers = [self.scorer() for _ in self.scorers]

    def stopped(self, process, seconds):
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def scorer_stopped(self):
        self.stopped(self.random.choice(self.scorers).process, self.random.uniform(0.5, 5))

    def scorer_stopped_long(self):
        """Stops a scorer until others have its partitions; then it continues without knowing that."""
        process = self.random.choice(self.scorers).process
        process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        try:
            took = self.recovered(self.feeder.row + 1, begin)
            time.sleep(self.random.uniform(0, 5))
        finally:
            process.send_signal(signal.SIGCONT)
        return took

    def scorer_drained(self):
        """Drains and ends a scorer as before maintenance, and starts another process in its place."""
        i = self.random.randrange(len(self.scorers))
        self.cluster('drain', self.address(self.scorers[i]))
        self.end(self.scorers[i], signal.SIGTERM)
        self.scorers[i] = self.scorer()

    def drained_and_back(self):
        d = self.random.choice(self.scorers)
        self.cluster('drain', self.address(d))
        self.cluster('drain', '--undo', self.address(d))

    def scorer_added(self):
        """Adds a scorer, and later ends a random one."""
        self.scorers.append(self.scorer())
        took = self.recovered(self.feeder.row + 1, time.monotonic())
        time.sleep(self.random.uniform(0, 5))
        self.end(self.scorers.pop(self.random.randrange(len(self.scorers))), signal.SIGTERM)
        return took

    def partition_moved(self):
        self.cluster('move', str(self.random.randrange(8)), self.address(self.random.choice(self.scorers)), check=False)  # it may be there

    def cluster(self, *what, check=True):
        subprocess.run([harness.HANKEL, 'cluster', *what], check=check, capture_output=True, timeout=PATIENCE)

    def address(self, d):
        return f"127.0.0.1:{d.port['binary tcp']}"

    def leader(self):
        """The leader, which sends alerts and makes incidents; None if there is none now."""
        return next((d for d in self.daemons if d.status()['cluster'].get('leads')), None)

    def leader_killed(self):
        d = self.leader()
        if d in self.scorers:
            self.end(d, signal.SIGKILL)
            self.scorers[self.scorers.index(d)] = self.scorer()
        elif d:
            self.end(d, signal.SIGKILL)
            self.replace_gateway(d)

    def replace_gateway(self, d):
        if d is self.gateway:
            self.gateway = self.start('gateway', INCIDENTS)
        else:
            self.other = self.start('gateway', INCIDENTS)

    def leader_stopped(self):
        d = self.leader()
        if d:
            self.stopped(d.process, self.random.uniform(0.5, 5))

    def broker_short(self):
        """Makes the broker short of memory or of disk: it accepts no messages."""
        what, wants, usual = self.random.choice((('set_vm_memory_high_watermark', '0.00001', '0.9'), ('set_disk_free_limit', '900000GB', '1MB')))
        b = self.broker or self.random.choice(self.brokers.nodes)  # all of them stop for one
        b.control(what, wants)
        time.sleep(self.random.uniform(1, 8) if self.random.randrange(3) else self.random.uniform(20, 30))
        b.control(what, usual)

    def gateway_killed(self):
        self.end(self.gateway, signal.SIGKILL)
        self.gateway = self.start('gateway', INCIDENTS)

    def gateway_stopped(self):
        self.stopped(self.gateway.process, self.random.uniform(0.5, 4))

    def broker_stopped(self):
        self.broker.send(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.5, 5))
        self.broker.send(signal.SIGCONT)

    def broker_killed(self):
        time.sleep(3)  # RabbitMQ 3.10 saves its list of streams every 0.5 s
        self.broker.stop()
        self.broker.start()

    def broker_of(self, d):
        """The broker that a machine is connected to, or any."""
        at = d.status()['cluster']['broker'].split(':')[0]
        return next((b for b in self.brokers.nodes if b.address == at), self.brokers.nodes[0])

    def one_killed(self, b):
        """Kills a broker, and restarts it once the others have all its partitions, or after half a minute, because RabbitMQ 3.10's coordinator of
            streams may wait for it."""
        begin = time.monotonic()
        b.stop()
        took = self.recovered(self.feeder.row + 1, begin, ALONE)
        b.start()
        self.brokers.whole()
        if took is None:
            self.needed += 1
            took = self.recovered(self.feeder.row + 1, begin)
        return took

    def one_of_three_killed(self):
        return self.one_killed(self.random.choice(self.brokers.nodes))

    def leading_of_three_killed(self):
        return self.one_killed(self.broker_of(self.gateway or self.scorers[0]))

    def one_of_three_stopped(self):
        self.broker_stands_still(self.random.choice(self.brokers.nodes))

    def leading_of_three_stopped(self):
        self.broker_stands_still(self.broker_of(self.gateway or self.scorers[0]))

    def broker_stands_still(self, b):
        """Stops a broker, for long enough that the others take it for dead, or for less."""
        b.send(signal.SIGSTOP)
        time.sleep(self.random.uniform(1, 20))
        b.send(signal.SIGCONT)

    def machines_killed_meanwhile(self):
        """Kills a scorer and the gateway while a broker stands still."""
        b = self.random.choice(self.brokers.nodes)
        b.send(signal.SIGSTOP)
        time.sleep(self.random.uniform(1, 10))
        self.scorer_killed()
        if self.gateway:
            self.gateway_killed()
        time.sleep(self.random.uniform(1, 10))
        b.send(signal.SIGCONT)

    def one_of_three_cut_off(self):
        i, begin = self.random.randrange(3), time.monotonic()
        self.brokers.link(i, False)
        took = self.recovered(self.feeder.row + 1, begin, 2 * ALONE)  # machines notice it after 20 s
        self.brokers.link(i, True)
        self.brokers.whole()
        if took is None:
            self.needed += 1
            took = self.recovered(self.feeder.row + 1, begin)
        return took

    def two_of_three_cut(self):
        """Cuts two brokers from each other: RabbitMQ stops until the link is back."""
        i, k = self.random.sample(range(3), 2)
        self.brokers.between(i, k, False)
        time.sleep(self.random.uniform(1, 20))
        self.brokers.between(i, k, True)
        self.brokers.whole()

    def machine_cut_off(self):
        d = self.random.choice(self.daemons)
        self.brokers.refuse(d.group, True)
        time.sleep(self.random.uniform(0.5, 8))
        self.brokers.refuse(d.group, False)

    def scorer_cut_off_long(self):
        """Cuts a scorer from the brokers until others have its partitions; it continues scoring without knowing that."""
        d, begin = self.random.choice(self.scorers if self.gateway else self.scorers[1:]), time.monotonic()
        self.brokers.refuse(d.group, True)
        try:
            took = self.recovered(self.feeder.row + 1, begin)
            time.sleep(self.random.uniform(0, 5))
        finally:
            self.brokers.refuse(d.group, False)
        return took

    def recovered(self, row, begin, patience=None):
        """Seconds until all sensors have a score of a row that was sent after the fault; None after `patience`."""
        until = time.monotonic() + (patience or PATIENCE)
        while len(r := self.watch.reached()) < len(self.values) or min(r.values()) < START + row * SECOND:
            if time.monotonic() > until and patience:
                return None
            if time.monotonic() > until:
                for d in self.daemons:
                    print('\n'.join(d.log[-20:]), '\n--', flush=True)
                raise AssertionError(f'no recovery within {PATIENCE} s: {sorted(r.items(), key=lambda e: e[1])[:3]}, row {row}')
            time.sleep(0.02)
        return time.monotonic() - begin

    def run(self):
        kinds = [self.scorer_killed] * 4 + [self.scorer_ended, self.all_scorers_killed, self.scorer_stopped, self.scorer_stopped_long, self.leader_killed, self.leader_stopped]
        kinds += [self.scorer_drained, self.drained_and_back, self.scorer_added, self.partition_moved]
        kinds += [self.gateway_killed, self.gateway_stopped] * (not self.options.all)
        kinds += [self.broker_stopped, self.broker_killed, self.broker_short] * self.options.broker
        if self.brokers:
            kinds += [self.one_of_three_killed, self.leading_of_three_killed, self.one_of_three_cut_off, self.two_of_three_cut, self.machine_cut_off, self.scorer_cut_off_long] * 3
            kinds += [self.one_of_three_stopped, self.leading_of_three_stopped, self.machines_killed_meanwhile, self.broker_short] * 2
        if self.options.only:
            kinds = [k for k in kinds if k.__name__ in self.options.only.split(',')]
        end = time.monotonic() + self.options.seconds
        self.feeder.start()
        self.recovered(20, time.monotonic())
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.5, 4))
            kind = self.random.choice(kinds)
            begin = time.monotonic()
            took = kind() or self.recovered(self.feeder.row + 1, begin)
            self.took.setdefault(kind.__name__, []).append(took)
            if self.brokers:
                self.brokers.heal()
            print(f'{time.strftime("%H:%M:%S")} {kind.__name__}: {took:.1f} s, row {self.feeder.row}, {len(self.watch.wrong)} wrong{self.behind()}', flush=True)
            if self.watch.wrong:
                break
        self.feeder.end = True
        self.feeder.join(PATIENCE)
        self.recovered(self.feeder.row - 1, time.monotonic())
        time.sleep(2)
        self.log = self.shared_log()

    def behind(self):
        """By how many rows each gateway is behind; and what those that have shown nothing since the fault before say of themselves."""
        told = ''
        for d in self.daemons:
            if d.name in self.watch.shown:
                rows, at = self.watch.behind(d.name)
                told += f', {d.name} {rows} rows behind'
                if rows > 0 and self.stood.get(d.name) == at:
                    told += f' since the last fault: {d.status()["cluster"]}'
                self.stood[d.name] = at
        return told

    def shared_log(self):
        """The events that a new subscriber to all of them gets."""
        with self.daemons[0].client() as c:
            c.request(harness.SUBSCRIBE, struct.pack('<If', harness.ALERTS | harness.POSITIONS, 0) + harness.text('') + struct.pack('<Q', 0), harness.DONE)
            c.drain(2)
            return [(f'{e[0]}:{e[1]}', e[2]) for _, _, e in c.placed if e[2] != 'acknowledged']

    def judge(self):
        """The mismatches that were found."""
        rows = self.feeder.row
        expected, events = harness.uninterrupted({s: v[:rows] for s, v in self.values.items()}, DETECTOR)
        with self.watch.lock:  # subscribers still listen
            seen, told = dict(self.watch.scores), dict(self.watch.events)
        wrong = list(self.watch.wrong) + [('score', k, v, expected.get(k)) for k, v in seen.items() if expected.get(k) != v]
        wrong += [('event', k, v, events.get(k)) for k, v in told.items() if events.get(k) != v]
        missing = [k for k in events if k not in told]
        wrong += [('shared log has more than once', k) for k in set(self.log) if self.log.count(k) > 1]
        wrong += [('shared log lacks', k) for k in events if k not in self.log] + [('shared log has', k) for k in self.log if k not in events]
        for name, took in sorted(self.took.items()):
            took.sort()
            print(f'{name}: {len(took)} times, next score of all sensors after {took[len(took) // 2]:.1f} s (median), {took[-1]:.1f} s (worst)')
        print(f'{sum(map(len, self.took.values()))} faults, {len(expected)} points, {self.watch.repeated} seen twice, {len(expected) - len(seen)} unseen, '
              f'{len(events)} events, {len(missing)} of them unseen, {len(wrong)} wrong, {self.feeder.connections} connections of the feeder')
        if self.brokers:
            print(f'{self.needed} times the two other brokers did not take over within {ALONE} s, until the third was back; {self.brokers.restarts} times a broker had to be restarted, since it did not find the others again, '
                  f'{self.brokers.healed} times since it said that it was cut off from them')
        for w in wrong[:10] + missing[:5]:
            print('WRONG' if w in wrong else 'unseen event', w)
        lacking = self.lacking(expected)
        if wrong:
            self.tell(expected, seen)
        if wrong or lacking:
            self.keep_logs()
        return bool(wrong or lacking)

    def lacking(self, expected):
        """How many results the gateways have not shown LATE s after the last fault; prints them. Keeps the logs if they have not after CATCH_UP s."""
        gateways, begin = [d.name for d in self.daemons if d.name in self.watch.shown], time.monotonic()
        kept = False
        while (waited := time.monotonic() - begin) < LATE and any(self.watch.lacking(name, expected) for name in gateways):
            if waited > CATCH_UP and not kept:
                kept = True
                self.keep_logs()
            time.sleep(1)
        print(f'gateways waited for their last results for {waited:.0f} s; they left out {self.watch.dropped} results for a slow subscriber')
        return sum(self.watch.tell_lacking(name, expected, name not in gateways) for name in self.watch.shown)

    def tell(self, expected, seen):
        """Prints data for the diagnosis: points that no subscriber saw, whether the broker has them, and the logs of all daemons."""
        lacking = {}
        for sensor, t in sorted(expected.keys() - seen.keys(), key=lambda k: k[1]):
            lacking.setdefault((rabbit.partition(sensor, 8), sensor), []).append((t - START) // SECOND)
        for (partition, sensor), rows in sorted(lacking.items()):
            print(f'unseen of partition {partition}, {sensor}: {len(rows)} rows, {rows[:40]}')
        reader = self.start('scorer', 'read = all\n')
        with reader.client() as c:
            c.subscribe()
            harness.until(lambda: reader.status()['cluster']['messages'] > 0, 'what the broker has', PATIENCE)
            time.sleep(ALONE)
            points = reader.status()['points']
        print(f'from its beginning on the broker has {points["scored"] + points["unscored"]} of {len(expected)} points, {points["late"]} of them twice')

    def keep_logs(self):
        """Keeps what all daemons and brokers have written, and what they say of themselves now."""
        folder = tempfile.mkdtemp(prefix='hankeld-rig-logs-')
        print(f'logs of all daemons and brokers: {folder}')
        for i, b in enumerate(self.brokers.nodes if self.brokers else [self.broker]):
            with open(os.path.join(folder, f'broker {i}'), 'w', encoding='utf-8') as f:
                f.write(b.log)
                for what in (('list_consumers',), ('list_queues', 'name', 'type', 'messages', 'leader', 'online'), ('list_connections', 'peer_port', 'client_properties', 'send_pend', 'state')):
                    f.write(b.control(*what, check=False).stdout)
        with open(os.path.join(folder, 'daemons'), 'w', encoding='utf-8') as f:
            for name, lines in self.logs:
                f.writelines(f'{name} {line}\n' for line in lines)
            for d in self.daemons:  # last: a daemon that is no more has no status
                print(d.name, d.status()['cluster'], file=f)

    def clean(self):
        for d in self.daemons:
            d.process.kill()
            with contextlib.suppress(Exception):
                d.clean()
        (self.broker or self.brokers).clean()
        shutil.rmtree(self.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('seconds', type=float)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--scorers', type=int, default=3)
    parser.add_argument('--sensors', type=int, default=48)
    parser.add_argument('--rate', type=float, default=480, help='points a second')
    parser.add_argument('--all', action='store_true', help='machines with role = all')
    parser.add_argument('--broker', action='store_true', help='the broker is stopped and killed, too')
    parser.add_argument('--three', action='store_true', help='three brokers in network namespaces; they are killed and stopped, and links are cut')
    parser.add_argument('--only', metavar='KIND,...', help='faults of these kinds only')
    options = parser.parse_args()
    if options.three:
        brokers.alone()
    rig = Rig(options)
    try:
        rig.run()
    finally:
        code = rig.judge()
        rig.clean()
    sys.exit(code)


if __name__ == '__main__':
    main()
