#!/usr/bin/env python3
"""Measures how soon a browser draws the wall of very many sensors while each gets a point a second: times of its frames, and cells drawn.

    tests/bench/scripts/page_wall.py --build build [--sensors 100000] [--rounds 5]

Needs Chromium. What it prints depends on the browser's drawing without a GPU as much as on the page."""
import argparse
import os
import statistics
import sys
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
FRAMES = """new Promise(done => {
  const at = [];
  function frame(t) {
    at.push(t);
    if (at.length < 2 || t - at[0] < 2000) requestAnimationFrame(frame);
    else done(at.slice(1).map((t, i) => t - at[i]).sort((a, b) => a - b));
  }
  requestAnimationFrame(frame);
})"""


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    p.add_argument('--build', required=True)
    p.add_argument('--sensors', type=int, default=100000)
    p.add_argument('--rounds', type=int, default=5)
    o = p.parse_args()
    os.environ.update(HANKELD=os.path.join(o.build, 'hankeld'), HANKEL=os.path.join(o.build, 'hankel'))
    import test_page

    class Measured(test_page.Large):
        SENSORS = o.sensors

        def test_a_wall_of_very_many(self):
            """Frames of two seconds, while each sensor gets a point a second."""
            with self.web(self.DETECTORS, durability='none').client() as c:
                p, handles = self.wall(c)
                for k in range(o.rounds):
                    seconds = self.rounds(handles, 24 + 4 * k, 4)

                    def feed(seconds=seconds):
                        for messages in seconds:
                            for one in messages:
                                c.send(one)
                                time.sleep(1 / len(messages))

                    feeder = threading.Thread(target=feed)
                    feeder.start()
                    p.wait(0.5)
                    before = p.run(self.DRAWN)
                    took = p.run(FRAMES)
                    drawn = p.run(self.DRAWN) - before
                    feeder.join()
                    print(f'{o.sensors} cells, {drawn} drawn again: {len(took)} frames, mean {statistics.mean(took):.1f} ms, median {statistics.median(took):.1f} ms, '
                          f'95 % {took[len(took) * 95 // 100]:.1f} ms; load {os.getloadavg()[0]:.0f}', flush=True)

    result = unittest.TextTestRunner().run(unittest.TestSuite([Measured('test_a_wall_of_very_many')]))
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
