#!/usr/bin/env python3
"""Writes a process given as matrices (hankeld-model(7), kind matrix): a square plate or hall of SIDE x SIDE places in a room. Heat flows between
neighbours, is lost to the room, and comes from a heater under one part; one edge is held at a measured temperature; with --wind air moves
across it, which makes the matrix unsymmetric.

    plate.py [--side 30] [--wind 0] [--sensors 12] [--seed 1] [--name plate] FOLDER

writes NAME.model, NAME.A.mtx, NAME.M.mtx, NAME.B.mtx, NAME.H.mtx."""
import argparse
import os
import random


def matrix(path, rows, columns, entries):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(f'%%MatrixMarket matrix coordinate real general\n{rows} {columns} {len(entries)}\n')
        f.writelines(f'{i + 1} {j + 1} {v!r}\n' for (i, j), v in sorted(entries.items()))


def plate(folder, name, side, wind, sensors, seed):
    """conductance 1 between neighbours, 0.01 to the room, a capacity of 50 a place: W/K and J/K."""
    n, a, b = side * side, {}, {}

    def add(i, j, v):
        a[i, j] = a.get((i, j), 0.0) + v
    for y in range(side):
        for x in range(side):
            i = y * side + x
            add(i, i, 0.01)
            b[i, 1] = 0.01
            if abs(2 * x - side) <= side / 3 and abs(2 * y - side) <= side / 3:
                b[i, 0] = 1 / side
            for j in ([i + 1] if x + 1 < side else []) + ([i + side] if y + 1 < side else []):
                add(i, i, 1.0)
                add(j, j, 1.0)
                add(i, j, -1.0)
                add(j, i, -1.0)
            if wind and x > 0:  # upwind, from the left
                add(i, i, wind)
                add(i, i - 1, -wind)
    chance = random.Random(seed)
    places = chance.sample([i for i in range(n) if i % side > 0], sensors + 1)
    matrix(f'{folder}/{name}.A.mtx', n, n, a)
    matrix(f'{folder}/{name}.M.mtx', n, n, {(i, i): 50.0 for i in range(n)})
    matrix(f'{folder}/{name}.B.mtx', n, 2, b)
    left = [y * side for y in range(side)]
    matrix(f'{folder}/{name}.H.mtx', 1, n, {(0, i): 1 / side for i in [y * side + side - 1 for y in range(side)]})
    lines = ['kind      matrix', 'unit      C', f'equations {name}.A.mtx', f'storage   {name}.M.mtx', f'inputs    {name}.B.mtx', f'readings  {name}.H.mtx',
             f'sensor {name}/heater input 1 boundary', f'sensor {name}/room input 2 boundary']
    lines += [f'sensor {name}/edge{k} at {i + 1} boundary' for k, i in enumerate(left[::max(1, side // 5)])]
    lines += [f'sensor {name}/t{k} at {i + 1} check' for k, i in enumerate(places[:sensors])]
    lines += [f'sensor {name}/right reading 1 check']
    with open(f'{folder}/{name}.model', 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')
    return places[sensors]


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--side', type=int, default=30)
    options.add_argument('--wind', type=float, default=0.0)
    options.add_argument('--sensors', type=int, default=12)
    options.add_argument('--seed', type=int, default=1)
    options.add_argument('--name', default='plate')
    options.add_argument('folder')
    o = options.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    print('a place without a sensor:', 1 + plate(o.folder, o.name, o.side, o.wind, o.sensors, o.seed))


if __name__ == '__main__':
    main()
