"""Cameras over HTTP: the last picture of each, scaled down, as openapi.json describes it, and limits."""
import base64
import math
import os
import sys
import urllib.parse

import harness
import web
from harness import START

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld  # noqa: E402

DETECTORS = '[detector tiles]\nmatch = */*\nwindow = 8\nalert = off\n[pictures all]\nmatch = *\ntile = 512\nstatistics = max, spread\n'


class Cameras(web.Api):
    def test_the_last_picture_of_each(self):
        d = self.daemon(DETECTORS, listeners=harness.STREAMS + web.LISTENER, keys='threads = 1\nmax_ahead = off\n')
        self.assertEqual(self.ask(d, 'cameras')[2], {'cameras': []})
        status, _, answer = self.ask(d, 'picture?camera=oven')
        self.assertEqual((status, 'no camera' in answer['detail']), (404, True))
        small = [[10.0, 20.0, math.nan], [30.0, -40.0, 50.0]]
        large = [[(r * 600 + i) % 251 for i in range(600)] for r in range(40)]
        large[25][599] = 1000
        name = 'kiln "4"/a?b'
        with hankeld.Client(f'127.0.0.1:{d.port["binary tcp"]}') as c:
            c.send_picture('oven', small, START, scale=0.5, offset=-3.0)
            c.send_picture(name, large, START + 1)
            c.send_picture('belt', [[7] * 2049] * 10, START)
            c.sync()
        cameras = self.ask(d, 'cameras')[2]['cameras']
        self.assertEqual(cameras.pop(0)['camera'], 'belt')
        self.assertEqual(cameras, [{'camera': name, 'time': START + 1, 'height': 40, 'width': 600, 'tile': 512, 'statistics': ['max', 'spread']},
                                   {'camera': 'oven', 'time': START, 'height': 2, 'width': 3, 'tile': 512, 'statistics': ['max', 'spread']}])
        shown = self.ask(d, 'picture?camera=oven')[2]['shown']
        self.assertEqual({k: shown[k] for k in ('rows', 'columns', 'low', 'high')}, {'rows': 2, 'columns': 3, 'low': -23.0, 'high': 22.0})
        self.assertEqual(list(base64.b64decode(shown['cells'])), [int(1.5 + 254 * (v + 40) / 90) if v == v else 0 for row in small for v in row])
        shown = self.ask(d, 'picture?camera=belt')[2]['shown']  # blocks of 9 pixels, of which every second one is read, and one row more
        self.assertEqual((shown['rows'], shown['columns'], set(base64.b64decode(shown['cells']))), (2, 228, {128}))
        shown = self.ask(d, 'picture?camera=' + urllib.parse.quote(name))[2]['shown']
        blocks = [[max(large[r][i] for r in range(a, min(a + 3, 40)) for i in range(b, b + 3)) for b in range(0, 600, 3)] for a in range(0, 40, 3)]
        self.assertEqual((shown['rows'], shown['columns'], shown['high']), (14, 200, 1000.0))
        low = min(map(min, blocks))
        self.assertEqual(list(base64.b64decode(shown['cells'])), [int(1.5 + 254 * (v - low) / (1000 - low)) for row in blocks for v in row])

    def test_so_many_and_no_more(self):
        """Of 70 cameras 64 are shown: the last ones to send, whatever their clocks are."""
        d = self.daemon(DETECTORS.replace('512', '4'), listeners=harness.STREAMS + web.LISTENER, keys='threads = 1\nmax_ahead = off\n')
        for first in (0, 35):  # 64 cameras of a connection
            with hankeld.Client(f'127.0.0.1:{d.port["binary tcp"]}') as c:
                for k in range(first, first + 35):
                    c.send_picture(f'c{k:02}', [[k, k]], START - k)
                c.sync()
        self.assertEqual([c['camera'] for c in self.ask(d, 'cameras')[2]['cameras']], [f'c{k:02}' for k in range(6, 70)])
        self.assertEqual(len(base64.b64decode(self.ask(d, 'picture?camera=c69')[2]['shown']['cells'])), 2)


if __name__ == '__main__':
    harness.main(needs_gpu=False)
