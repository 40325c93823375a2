#!/usr/bin/env python3
"""Measures on TSSB, with the given windows, whether alerts of algorithm = graph report that a kind of segment has come
back.

    tests/bench/scripts/similar.py HANKEL TSSB-FOLDER

The segments of a recording are all of different kinds. So the script halves each, and puts the first halves in a row, then the second
halves: A1 B1 C1 A2 B2 C2. At the change to A2 there is an earlier segment of its kind; at the change to C1 there is none. An alert counts
if its instant lies within a quarter of a segment of a change. The alert names an earlier segment, which reaches from one alert to the next:
the script takes the true segment at its middle. Chance is the average share of segments of the right kind among those to choose from.
Needs numpy."""
import json
import subprocess
import sys
import tempfile

import numpy as np


def events_of(hankel, x, w, roughness):
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
        np.savetxt(f, x, fmt='%.9g')
        f.flush()
        out = subprocess.run([hankel, 'replay', '--backend', 'cpu', '--detector', f'algorithm=graph,window={w},roughness={roughness}',
                              '--format', 'jsonl', f.name], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith('{"event"')]


def halves(x, changes):
    """The made recording, the kind of each of its segments, and where they begin."""
    bounds = [0, *changes, len(x)]
    parts = [(kind, x[p:q]) for kind, (p, q) in enumerate(zip(bounds, bounds[1:]))]
    row = [(k, s[:len(s) // 2]) for k, s in parts] + [(k, s[len(s) // 2:]) for k, s in parts]
    begins = np.cumsum([0] + [len(s) for _, s in row])
    return np.concatenate([s for _, s in row]), [k for k, _ in row], begins


def segment_at(begins, t):
    return int(np.searchsorted(begins, t, 'right')) - 1


def main():
    hankel, tssb = sys.argv[1:]
    for roughness in (0, 0.85):
        counts = {kind: [0, 0, 0, 0, 0., 0] for kind in ('raised', 'cleared')}  # told right, told wrong, back, new, chance, new and told
        for line in open(f'{tssb}/desc.txt'):
            name, *numbers = line.strip().split(',')
            w, changes = max(8, int(numbers[0])), [int(v) for v in numbers[1:]]
            if len(changes) < 2:
                continue
            x, kinds, begins = halves(np.loadtxt(f'{tssb}/{name}.txt'), changes)
            events = events_of(hankel, x, w, roughness)
            instants = {e['id']: e['instant'] // 10**9 for e in events}  # the latest
            starts = [0, *instants.values(), len(x)]
            for e in events:
                if e['event'] not in counts:
                    continue
                instant = instants[e['id']]
                near = int(np.argmin(np.abs(begins[1:-1] - instant))) + 1
                if abs(begins[near] - instant) > (begins[near + 1] - begins[near]) / 4:
                    continue
                earlier = [kinds[segment_at(begins, (p + q) / 2)] for p, q in zip(starts, starts[1:]) if q < instant][-7:]
                c, back = counts[e['event']], kinds[near] in earlier
                c[2 if back else 3] += 1
                if 'likeness' not in e:
                    continue
                first = e['similar_from'] // 10**9
                following = min([s for s in starts if s > first + w] or [len(x)])
                right = kinds[segment_at(begins, (first + following) / 2)] == kinds[near]
                c[0 if right else 1] += 1
                c[4] += earlier.count(kinds[near]) / max(1, len(earlier))
                c[5] += not back
        print(f'roughness {roughness}')
        for event, (right, wrong, back, new, chance, false) in counts.items():
            told = max(1, right + wrong)
            print(f'  {event:8s} {back + new:4d} alerts near a change, {back:3d} to a kind that was there before; told {right + wrong:3d}: right {right:3d}'
                  f' ({right / told:.2f}; by chance {chance / told:.2f}), {false:2d} of them of {new:3d} to a new kind')


if __name__ == '__main__':
    main()
