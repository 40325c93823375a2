"""Cameras on the page, in a real Chromium: the last picture, its tiles, alerts and scores; in both themes and on a phone.

HANKEL_PICTURES=FOLDER keeps a picture of each."""
import os
import random
import sys

import harness
import test_page
from harness import SECOND, START
from test_page import HEADING, PICTURES

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld  # noqa: E402

H, W, TILE, HOT = 48, 80, 16, (1, 3)  # pixels; row and column of the tile that warms up
JOINT = [(k * TILE + TILE // 2) // 3 for k in HOT]  # in blocks of 3 x 3 pixels
SECTIONS = '[detector tiles]\nmatch = oven*/*\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n' + f'[pictures ovens]\nmatch = oven*\ntile = {TILE}\nmedian = off\nsubtract = off\nstatistics = max, mean\n'
TILES, ALERTS, TIME = (f"document.querySelector('canvas.picture')?.dataset.{name}" for name in ('tiles', 'alerts', 'time'))
TIP = "(document.querySelector('.tip')?.textContent ?? '')"
PIXEL = "[...document.querySelector('canvas.picture').getContext('2d').getImageData(%s).data].slice(0, 3)"
PARTED = """[...document.querySelectorAll('.legend .entry')].filter(e => { const r = document.createRange(); r.selectNodeContents(e.lastChild);
    const word = r.getClientRects()[0], mark = e.querySelector('i').getBoundingClientRect(); return mark.top > word.bottom || mark.bottom < word.top; }).map(e => e.textContent)"""


WALL = [[random.Random(W * r + i).gauss(20 + r / 8, 0.2) for i in range(W)] for r in range(H)]  # warmer below


def picture(warm):
    """The picture of a wall, always the same, with a joint of 3 x 3 pixels."""
    return [[30 + warm if [r // 3, i // 3] == JOINT else x for i, x in enumerate(row)] for r, row in enumerate(WALL)]


class Cameras(test_page.Page):
    def send(self, client, camera, first, n):
        for k in range(first, first + n):
            client.send_picture(camera, picture(test_page.value(k)), START + k * SECOND)
        client.sync()

    def test_a_camera_and_its_tiles(self):
        d = self.web(SECTIONS, durability='none', keys='max_ahead = off\n')
        p = self.page('#cameras')
        p.until(f"{HEADING} === 'Cameras' && document.body.innerText.includes('No camera has sent a picture')")
        self.assertTrue(p.run("document.getElementById('cameras').hidden"))
        with hankeld.Client(f'127.0.0.1:{d.port["binary tcp"]}') as c:
            self.send(c, 'oven 1', 0, 5)
            self.send(c, 'oven [2]', 0, 20)
            p.go(self.address)
            p.until("!document.getElementById('cameras').hidden")
            p.key('c')
            p.until(f"{HEADING} === 'oven 1'")
            p.run("(s => { s.value = 'oven [2]'; s.dispatchEvent(new Event('change')); })(document.querySelector('select'))")
            p.until(f"{HEADING} === 'oven [2]' && {TILES} === '15' && {ALERTS} === '0'")
            for k in range(20, 400):
                self.send(c, 'oven [2]', k, 1)
                harness.until(lambda: d.status()['points']['pending'] == 0, 'every point to have a result')
                if d.status()['alerts']['standing'] > 0:
                    break
            p.until(f"{ALERTS} === '1'")
        side = p.run("document.querySelector('canvas.picture').width") / W
        spot = [int((JOINT[k] * 3 + 1.5) * side) for k in (1, 0)]
        self.assertGreater(p.run(PIXEL % f'{spot[0]}, {spot[1]}, 1, 1')[0], 200)  # the joint is the hottest part of it,
        self.assertLess(sum(p.run(PIXEL % f'{int(4.5 * side)}, {int(4.5 * side)}, 1, 1')), 300)  # and the wall is cold
        p.run("document.querySelector('canvas.picture').focus()")
        for _ in range(HOT[1] + 1):
            p.key('ArrowRight')
        p.key('ArrowDown')
        p.until(f"({TIP}).startsWith('oven [2]/{HOT[0]},{HOT[1]}/') && ({TIP}).includes('an alert stands')")
        p.key('Enter')
        p.until(f"({HEADING} ?? '').startsWith('oven [2]/{HOT[0]},{HOT[1]}/')")
        for dark, width in [(False, 1280), (True, 1280), (False, 390), (True, 390)] if PICTURES else [(True, 390)]:
            p = self.page('#cameras/oven%20%5B2%5D', width=width, height=700, dark=dark)
            p.until(f"{ALERTS} === '1'")
            with self.subTest(dark=dark, width=width):
                self.assertEqual(p.run(test_page.Accessible.NAMELESS), [])
                self.assertLessEqual(p.run('document.documentElement.scrollWidth'), width)
                self.assertEqual(p.run("document.querySelectorAll('.legend .entry').length"), 5)
                self.assertEqual(p.run(PARTED), [])
                if PICTURES:
                    p.screenshot(os.path.join(PICTURES, f"cameras-{'dark' if dark else 'light'}-{width}.png"))


if __name__ == '__main__':
    harness.main()
