#!/usr/bin/env python3
"""Compares a daemon that is killed (SIGKILL) and started again with one that is not: algorithm = novelty, many sensors, a journal and a
snapshot every 20 s. Prints how many results of the last row there are, and whether these and all events are the same, bit for bit.

    HANKELD=build/hankeld tests/bench/scripts/novelty_kills.py [--sensors 20000] [--kills 3] [--rows 190]       the first score is of row 152"""
import argparse
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'integration'))
import harness

DETECTOR = '[detector all]\nmatch = *\nalgorithm = novelty\nresident = 1000\ninterval = 1s\n'
AT_ONCE = 1000


def row(options, t):
    chance, late = random.Random(t), t > options.rows - 20
    return [chance.gauss(0, 1) + (8 if late and i % 50 == 0 else 0) for i in range(options.sensors)]


def register(client, names):
    return [handle for i in range(0, len(names), AT_ONCE) for handle in client.register(*names[i:i + AT_ONCE])]


def run(options, kills, folder):
    """Results of the last row, and events, sorted. kills: rows after which the daemon is killed."""
    keys = f'threads = 1\nmax_sensors = {options.sensors}\ndurability = journal\nstate = {folder}\nsnapshot = 20s\nmax_ahead = off\n'
    names = [f's{i:06}' for i in range(options.sensors)]
    daemon = harness.Daemon(DETECTOR, keys=keys)
    client = daemon.client()
    handles = register(client, names)
    last = harness.START + (options.rows - 1) * harness.SECOND
    for t in range(options.rows):
        if t == options.rows - 1:
            harness.until(lambda: daemon.status()['points']['pending'] == 0, 'the scores')
            watcher = daemon.client()
            watcher.subscribe(harness.SCORED | harness.UNSCORED)
        values = row(options, t)
        for i in range(0, len(names), AT_ONCE):
            some = handles[i:i + AT_ONCE]
            client.send(harness.points(some, [harness.START + t * harness.SECOND] * len(some), values[i:i + AT_ONCE]))
        client.ping()
        if t in kills:
            harness.until(lambda: daemon.status()['points']['pending'] == 0, 'the scores')
            daemon.process.kill()
            daemon.process.wait()
            daemon = harness.Daemon(DETECTOR, keys=keys)
            print(f'killed after row {t}; replayed points: {daemon.status()["durability"]["replayed"]}', flush=True)
            client = daemon.client()
            handles = register(client, names)
    watcher.wait_results(len(names))
    results, events = sorted(r for r in watcher.results if r[1] == last), sorted(daemon.events(), key=repr)
    daemon.stop()
    return results, events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sensors', type=int, default=20000)
    parser.add_argument('--kills', type=int, default=3)
    parser.add_argument('--rows', type=int, default=190)
    options = parser.parse_args()
    kills = random.Random(1).sample(range(20, options.rows - 3), options.kills)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        expected, got = run(options, [], one), run(options, kills, other)
    print(f'results of the last row: {len(expected[0])}, events: {len(expected[1])}; {"the same" if expected == got else "DIFFERENT"}')
    return expected != got


if __name__ == '__main__':
    sys.exit(main())
