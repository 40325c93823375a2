#!/usr/bin/env python3
"""Checks models of the daemon's protocols with SPIN: every property holds, whatever comes in whatever order, and with a rule of the
protocol taken out the property that needs it does not.

Exit code 77: spin or a compiler is missing.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, 'reload.pml')
PROPERTIES = 'reloads', 'forgets', 'chunks', 'evicts'
TAKEN_OUT = {'STALE': 'chunks', 'GREEDY': 'reloads', 'NEVER': 'reloads', 'HASTY': 'evicts', 'SWEEPS': 'forgets'}  # the property that fails


def verifier(folder, rule):
    where = os.path.join(folder, rule or 'whole')
    os.mkdir(where)
    subprocess.run(['spin', *([f'-D{rule}'] if rule else []), '-a', MODEL], cwd=where, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['cc', '-O0', '-w', '-DNFAIR=3', '-o', 'pan', 'pan.c'], cwd=where, check=True)
    return where


def holds(where, name):
    """Whether a property does, of all fair runs; and how many states were looked at."""
    said = subprocess.run(['./pan', '-a', '-f', '-m1000000', '-N', name], cwd=where, capture_output=True, text=True, check=True).stdout
    if 'max search depth too small' in said or 'error: ' in said.split('State-vector')[0]:
        sys.exit(f'{name}: the search is not complete:\n{said}')
    return int(re.search(r'errors: (\d+)', said)[1]) == 0, int(float(re.search(r'([\d.e+]+) states, stored', said)[1]))


def main():
    for tool in ('spin', 'cc'):
        if not shutil.which(tool):
            print(f'skipped: {tool} is not installed')
            return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        whole = verifier(folder, '')
        for name in PROPERTIES:
            good, states = holds(whole, name)
            print(f'{name}: {"holds" if good else "DOES NOT HOLD"}, {states} states')
            wrong += not good
        for rule, name in TAKEN_OUT.items():
            good, _ = holds(verifier(folder, rule), name)
            print(f'{name} with {rule}: {"HOLDS, which it must not" if good else "does not hold, as it must"}')
            wrong += good
    return wrong


if __name__ == '__main__':
    sys.exit(main())
