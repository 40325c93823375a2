#!/usr/bin/env python3
"""Pictures of each view of the page in both themes, of recordings that scripts/page.py feeds: those in tests/data/page.

    tests/integration/pictures.py --build build [--halls 6] [--past 3000] [--out tests/data/page]"""
import argparse
import base64
import json
import os
import re
import subprocess
import sys
import urllib.request

import browser
import harness

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZE, QUALITY = (1100, 760), 55
VIEWS = {
    'now': "document.querySelectorAll('article').length > 1 && document.querySelectorAll('.lately li').length > 2",
    'wall': "!!document.querySelector('canvas.wall')?.dataset.drawn",
    'sensor': "Number(document.querySelector('.series canvas')?.dataset.points) > 100",
    'timeline': "document.querySelectorAll('tbody tr').length > 10",
    'health': "document.querySelectorAll('tbody tr').length > 2",
}


def ask(address, what):
    with urllib.request.urlopen(address + 'api/v1/' + what, timeout=harness.WAIT) as answer:
        return json.load(answer)


def take(page, path):
    data = page.call('Page.captureScreenshot', format='webp', quality=QUALITY)['data']
    with open(path, 'wb') as f:
        f.write(base64.b64decode(data))
    print(path, os.path.getsize(path), 'bytes')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--build', required=True)
    parser.add_argument('--halls', type=int, default=6)
    parser.add_argument('--past', type=int, default=3000)
    parser.add_argument('--out', default=os.path.join(ROOT, 'tests', 'data', 'page'))
    o = parser.parse_args()
    os.makedirs(o.out, exist_ok=True)
    feeding = subprocess.Popen([sys.executable, os.path.join(ROOT, 'scripts', 'page.py'), '--build', o.build, '--port', str(harness.free_port()), '--halls', str(o.halls),
                                '--past', str(o.past)], stdout=subprocess.PIPE, text=True)
    try:
        address = next(m[1] for m in (re.search(r'(http://\S+)', line) for line in feeding.stdout) if m)
        harness.until(lambda: (lambda points: points['in'] > 0 and points['pending'] == 0)(ask(address, 'status')['points']), 'the past to be scored', 600)
        with browser.Browser() as b:
            pages = {theme: b.page(width=SIZE[0], height=SIZE[1], dark=theme == 'dark') for theme in ('light', 'dark')}
            harness.until(lambda: ask(address, 'incidents')['standing'] > 1, 'incidents', 600)
            name = re.sub('#.*', '', ask(address, 'sensors?sort=change&limit=1')['sensors'][0]['name'])
            for view, there in VIEWS.items():
                for theme, page in pages.items():
                    page.go(f'{address}#{view}' + (f'/{name}' if view == 'sensor' else ''))
                    page.until(there)
                    page.wait(3)  # the live charts have moved
                    take(page, os.path.join(o.out, f'{view}-{theme}.webp'))
    finally:
        feeding.terminate()
        feeding.wait()


if __name__ == '__main__':
    main()
