"""What one peer can make grow: one client against another, over restarts."""
import shutil
import signal
import struct
import tempfile
import time

import harness
from harness import ERROR, SECOND, START, frame, points, text, until
from secured import Secured, token_line, token_of

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95
LIMIT = 10


class Feeds(Secured):
    """Two peers that only feed, and one that looks on."""

    def setUp(self):
        super().setUp()
        self.write_tokens([token_line('greedy', 'feed'), token_line('honest', 'feed'), token_line('viewer', 'subscribe')])
        self.state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.state)

    def start(self, keys, **how):
        return self.secured(tls=False, **how, keys=f'threads = 1\ndurability = journal\nstate = {self.state}/there\nmax_ahead = off\n{keys}')

    def feed(self, d, token, name, n=0):
        """A connection with a feed of that name, and how far it is; after n points more, which are committed then, if n > 0."""
        c = self.client(d, token_of(token), tls=False)
        c.tag += 1
        c.send(frame(FEED, text(name), c.tag))
        kind, _, payload = c.receive()
        if kind == ERROR:
            code, = struct.unpack_from('<H', payload)
            return c, -code
        self.assertEqual(kind, FEED_AT)
        at, = struct.unpack_from('<Q', payload)
        if n:
            handle, = c.register(token)
            c.send(points([handle] * n, [START + (at + i) * SECOND for i in range(n)], [1.0] * n, before=at))
            deadline = time.monotonic() + harness.WAIT
            while time.monotonic() < deadline:
                kind, _, payload = c.receive()
                if kind == ACK and struct.unpack_from('<Q', payload)[0] >= at + n:
                    break
        return c, at

    def durability(self, d):
        with self.client(d, token_of('viewer'), tls=False) as c:
            return c.status()['durability']

    def fill(self, d, token, n):
        for i in range(n):
            c, at = self.feed(d, token, f'{token}-{i}', n=3)
            c.socket.close()
            self.assertEqual(at, 0)

    def refuses(self, d, token):
        c, at = self.feed(d, token, f'{token}-one-more')
        c.socket.close()
        self.assertEqual(at, -LIMIT)

    def test_one_client_against_another(self):
        keys = 'max_feeds_per_peer = 6\n'
        d = self.start(keys)
        self.fill(d, 'greedy', 6)
        self.refuses(d, 'greedy')
        until(lambda: any('greedy has 6 feeds, as many as one peer may have (max_feeds_per_peer)' in line for line in d.log), 'the log')
        self.fill(d, 'honest', 2)
        now = self.durability(d)
        self.assertEqual((now['feeds'], now['feeds_refused'], now['feeds_expired']), (8, 1, 0))
        d.stop()
        d = self.start(keys, ends=-signal.SIGKILL)  # from a snapshot
        self.refuses(d, 'greedy')
        c, at = self.feed(d, 'greedy', 'greedy-3')
        self.assertEqual(at, 3)  # a name that it has goes on
        c.socket.close()
        c, at = self.feed(d, 'honest', 'honest-2', n=2)
        self.assertEqual(at, 0)
        c.socket.close()
        d.process.kill()
        d.process.wait()
        d = self.start(keys)  # with a journal behind it
        self.refuses(d, 'greedy')
        for name, there in (('honest-0', 3), ('honest-2', 2)):
            c, at = self.feed(d, 'honest', name)
            self.assertEqual(at, there)
            c.socket.close()
        self.assertEqual(self.durability(d)['feeds'], 9)

    def test_idle_feeds_expire(self):
        keys = 'max_feeds_per_peer = 4\nfeed_expiry = 1s\n'
        d = self.start(keys, ends=-signal.SIGKILL)
        kept, _ = self.feed(d, 'greedy', 'greedy-kept', n=5)
        self.fill(d, 'greedy', 3)
        until(lambda: self.durability(d)['feeds'] == 1, 'idle feeds to expire')
        self.assertEqual(self.durability(d)['feeds_expired'], 3)
        until(lambda: any('(feed_expiry) were forgotten' in line for line in d.log), 'the log')
        c, at = self.feed(d, 'greedy', 'greedy-1', n=2)
        self.assertEqual(at, 0)  # it begins anew
        d.process.kill()
        d.process.wait()
        kept.socket.close()
        c.socket.close()
        d = self.start(keys.replace('1s', 'off'))  # what has expired stays so, and what was there again is there
        self.assertEqual(self.durability(d)['feeds'], 2)
        for name, there in (('greedy-1', 2), ('greedy-kept', 5), ('greedy-0', 0)):
            c, at = self.feed(d, 'greedy', name)
            self.assertEqual(at, there, name)
            c.socket.close()

    def test_empty_feeds_take_no_room(self):
        d = self.start('max_feeds_per_peer = 4\n')
        for i in range(4):
            c, at = self.feed(d, 'greedy', f'greedy-{i}')
            self.assertEqual(at, 0)
            c.socket.close()
        until(lambda: self.durability(d)['feeds'] == 0, 'empty feeds to go')
        self.fill(d, 'greedy', 4)
        self.refuses(d, 'greedy')


if __name__ == '__main__':
    harness.main(needs_gpu=False)
