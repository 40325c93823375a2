"""Pictures of cameras: tiles become sensors, by the filters' definition; refused pictures are answered with the reason; feeds continue over a SIGKILL."""
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

import harness
from harness import SCORED, SECOND, START, UNSCORED

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld  # noqa: E402

PICTURE, FEED, FEED_AT, ACK, ERROR = 0x0d, 0x09, 0x89, 0x95, 0xff
H, W, TILE = 20, 36, 8
DETECTORS = '[detector tiles]\nmatch = oven*/*\nwindow = 8\nalert = off\n[pictures ovens]\nmatch = oven*\ntile = 8\nstatistics = max, mean, spread\n'


def picture(seed):
    rng = random.Random(seed)
    return [[math.floor(1000 + 50 * math.sin(r / 5) + 20 * rng.random()) for _ in range(W)] for r in range(H)]


def tiles(pixels):
    """By the definition: the median of 3 x 3 pixels less the mean of 15 x 15, and of each tile of the result the maximum, mean and spread."""
    def near(a, r, i):
        return a[min(max(r, 0), H - 1)][min(max(i, 0), W - 1)]
    y = [[sorted(near(pixels, r + k // 3 - 1, i + k % 3 - 1) for k in range(9))[4] for i in range(W)] for r in range(H)]
    h = [[y[r][i] - sum(near(y, r + k // 15 - 7, i + k % 15 - 7) for k in range(225)) / 225 for i in range(W)] for r in range(H)]
    out = {}
    for r in range(0, H, TILE):
        for i in range(0, W, TILE):
            of = [h[a][b] for a in range(r, min(r + TILE, H)) for b in range(i, min(i + TILE, W))]
            mean = sum(of) / len(of)
            name = f'{r // TILE},{i // TILE}'
            out[name + '/max'], out[name + '/mean'], out[name + '/spread'] = max(of), mean, math.sqrt(sum((x - mean) ** 2 for x in of) / len(of))
    return out


def payload(pixels=b'\1\2\3\4', name=b'oven 1', time=START, h=2, w=2, kind=0, scale=1.0, offset=0.0, before=0):
    return struct.pack('<QqHHBBHff', before, time, h, w, kind, 0, len(name), scale, offset) + name + bytes(-len(name) % 4) + pixels


class Pictures(harness.Case):
    def test_by_definition(self):
        d = self.daemon(DETECTORS)
        with d.client() as subscriber, hankeld.Client(f'127.0.0.1:{d.port["binary tcp"]}') as c:
            subscriber.subscribe(SCORED | UNSCORED | 16, 'oven*')
            c.send_picture('oven 1', picture(1), START, scale=0.5, offset=-273.0)
            c.send_picture('oven 2', [[v if (r, i) != (4, 4) else math.nan for i, v in enumerate(row)] for r, row in enumerate(picture(2))], START)
            c.sync()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            subscriber.drain(0.3)
            got = {n: v for n, t, v, *_ in subscriber.results}
            expected = tiles(picture(1))
            self.assertEqual({n for n in got if n.startswith('oven 1')}, {'oven 1/' + n for n in expected})
            for n, v in expected.items():
                self.assertAlmostEqual(got['oven 1/' + n], 0.5 * v, delta=1e-3)
            self.assertEqual(len(got), 2 * len(expected))
            status = d.status()
            self.assertEqual((status['input']['pictures'], status['input']['bad_pictures'], status['points']['in']), (2, 0, 2 * len(expected)))

    def test_what_cannot_be(self):
        """Each refused picture is answered with the reason; the connection stays open, and takes what follows."""
        d = self.daemon(DETECTORS + '[pictures walls]\nmatch = wall*\n')
        good = payload()
        with d.client() as c:
            c.send(harness.frame(PICTURE, good))
            wrong = ((payload(b'\1\2\3'), 'more or fewer'), (payload(h=0, pixels=b''), '1 to 8192'), (payload(kind=4), 'no such kind'), (payload(scale=0.0), 'scale'),
                     (payload(offset=math.inf), 'offset'), (payload(name=b'\xff\xff'), 'its name'), (payload(bytes(6), w=3), '2 x 3 pixels (height x width), and the first one on this connection was 2 x 2'),
                     (payload(name=b'door'), 'no [pictures NAME] section'), (payload(bytes(300 * 300), name=b'oven 9', h=300, w=300), '4332 series, and 4096'),
                     (payload(bytes(4), name=b'wall 1'), '1 of its 1 series were refused, the last for reason 3'))
            for data, said in wrong:
                c.send(harness.frame(PICTURE, data, 7))
                kind, tag, answer = c.receive()
                self.assertEqual((kind, tag, answer[:4]), (ERROR, 7, struct.pack('<HBB', 17, PICTURE, 0)), said)
                self.assertIn(said, answer[6:].decode())
            c.send(harness.frame(PICTURE, payload(time=START + SECOND)))
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
            said = subprocess.run([harness.HANKEL, 'status', '--from', f'127.0.0.1:{d.port["binary tcp"]}'], capture_output=True, text=True, timeout=harness.WAIT).stdout
            self.assertIn(f'\npictures  3 taken; {len(wrong) - 1} dropped, whose senders were told why\n', said)
            self.assertNotIn('\nfields', said)
            self.assertEqual(d.status()['input']['bad_pictures'], len(wrong) - 1)  # the tiles of the last picture have no detector
            self.assertEqual(d.status()['points']['in'], 6)

    def test_check(self):
        """The sensors that pictures make, and tiles without a detector."""
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as f:
            f.write('[daemon]\nbackend = cpu\n' + DETECTORS + '[pictures walls]\nmatch = wall ?\nmedian = off\nsubtract = off\n')
            f.flush()
            run = subprocess.run([harness.HANKELD, '-c', f.name, '--check'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual((run.returncode, run.stderr), (0, ''))
        self.assertIn('pictures ovens: medians of 3 x 3 pixels, less the mean of the 15 x 15 around each, in tiles of 8 x 8; 3 series a tile (max, mean, spread); 640 x 480 pixels make 14400 series of at most 4096\n',
                      run.stdout)
        self.assertIn('pictures walls: pixels as they come, in tiles of 32 x 32; 1 series a tile (max); ', run.stdout)
        self.assertEqual([line for line in run.stdout.splitlines() if 'no [detector' in line], ['pictures walls: no [detector NAME] matches a tile such as wall x/0,0/max: it will not be scored'])

    def test_a_feed_goes_on(self):
        """Pictures and points of a feed, in a daemon that is killed: each counts once, a picture as one point."""
        folder = tempfile.mkdtemp(prefix='hankel-pictures-')
        self.addCleanup(shutil.rmtree, folder)
        keys = f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {folder}/state\n'
        pictures = [picture(s) for s in range(12)]
        series, counted = {}, 0
        for first, behind in ((0, 5), (5, 12)):
            d = self.daemon(DETECTORS, keys=keys, ends=-signal.SIGKILL)
            with d.client() as subscriber, hankeld.Client(f'127.0.0.1:{d.port["binary tcp"]}', feed='ovens') as c:
                subscriber.subscribe(SCORED | UNSCORED | 16, 'oven*')
                self.assertEqual(c.position, 2 * first)
                for t in range(first, behind):
                    c.send_picture('oven 1', pictures[t], START + t * SECOND)
                    c.send('oven 1/door', START + t * SECOND, t % 3)
                c.sync()
                self.assertEqual(c.position, 2 * behind)
                harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
                subscriber.drain(0.3)
                for n, t, v, _, state in subscriber.results:
                    self.assertEqual((state in ('late', 'rejected'), (n, t) in series), (False, False))
                    series[n, t] = v
                counted += d.status()['input']['pictures']
                d.process.send_signal(signal.SIGKILL)
                d.process.wait()
        self.assertEqual(counted, 12)
        names = [n for n in tiles(pictures[0])]
        self.assertEqual(series.keys(), {('oven 1/' + n, START + t * SECOND) for n in [*names, 'door'] for t in range(12)})

    def test_sent_again(self):
        """A picture of a feed comes a second time over another connection, and another one after it: the points of the repeated one are left out, and the
        feed does not move."""
        d = self.daemon(DETECTORS, keys='threads = 1\nmax_ahead = off\n')
        for sent, at in ((1, 0), (2, 1)):  # the picture, and once more, with another
            with d.client() as c:
                self.assertEqual(c.request(FEED, harness.text('ovens'), FEED_AT).one('Q'), at)
                for k in range(sent):
                    c.send(harness.frame(PICTURE, payload(time=START + k * SECOND, before=k)))
                while (got := c.receive())[::2] != (ACK, struct.pack('<Q', sent)):
                    self.assertEqual(got[0], ACK)
        with d.client() as c:  # an impossible position does not move the feed
            self.assertEqual(c.request(FEED, harness.text('ovens'), FEED_AT).one('Q'), 2)
            c.send(harness.frame(PICTURE, payload(before=1 << 63)))
            self.assertEqual(c.receive()[0], ERROR)
        with d.client() as c:
            self.assertEqual(c.request(FEED, harness.text('ovens'), FEED_AT).one('Q'), 2)
        harness.until(lambda: d.status()['points']['pending'] == 0, 'all points')
        status = d.status()
        self.assertEqual((status['points']['in'], status['points']['scored'] + status['points']['unscored'], status['points']['late'], status['dropped']['resent']), (9, 6, 0, 3))


if __name__ == '__main__':
    harness.main(needs_gpu=False)
