"""Golden bytes: the Python client sends the frames of proto/vectors/frames.json, byte for byte, and decodes each frame that it receives to the
values there. tests/unit/wire/test_vectors.c tests the C codec with the same file."""
import json
import math
import os
import socket
import struct
import sys
import threading
import unittest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402
from hankeld import wire  # noqa: E402

with open(os.path.join(harness.ROOT, 'proto', 'vectors', 'frames.json'), encoding='utf-8') as f:
    VECTORS = {v['name']: v for v in json.load(f)['frames']}
KEY = VECTORS['welcome']['fields']['key'].encode()


def golden(name):
    return bytes.fromhex(''.join(VECTORS[name]['bytes']))


def fields(name):
    return VECTORS[name]['fields']


def number(text):
    return int(text)


class Pixels:
    """The part of a numpy array that the client uses, because numpy need not be installed: 16 bits each."""
    class dtype:
        kind, itemsize = 'u', 2

    def __init__(self, text, shape):
        self.data, self.shape = bytes.fromhex(text), shape

    def astype(self, kind):
        assert kind == '<u2'
        return self

    def tobytes(self):
        return self.data


class Peer:
    """The other end of a client's connection: reads frames, and answers each as the test requests."""

    def __init__(self, *script):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.listener.settimeout(harness.WAIT)
        self.address = '127.0.0.1:{}'.format(self.listener.getsockname()[1])
        self.script, self.got = script, []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with self.listener, self.listener.accept()[0] as s:
            s.settimeout(harness.WAIT)
            stream = s.makefile('rb')
            for answers in self.script:
                head = stream.read(16)
                if len(head) < 16:
                    return
                self.got.append(head + stream.read(struct.unpack_from('<I', head, 4)[0]))
                s.sendall(b''.join(map(golden, answers)))
            stream.read()


class Vectors(unittest.TestCase):
    maxDiff = None

    def client(self, *script, **how):
        peer = Peer(*script)
        c = hankel.Client(peer.address, timeout=harness.WAIT, **how)
        self.addCleanup(c.close)
        return c, peer

    def hello(self, *script):
        return self.client(['welcome'], *script, name='vectors 1.2', token='tökén', mac=True)

    def at(self, c, name):
        """Sets the client's next tag to that of this vector."""
        c._tag = VECTORS[name]['tag'] - 1

    def sent(self, c, peer, *names):
        c.close()
        peer.thread.join(harness.WAIT)
        for name, got in zip(names, peer.got[1:]):
            self.assertEqual(got.hex(' '), golden(name).hex(' '), name)
        self.assertEqual(len(peer.got) - 1, len(names))

    def test_no_type_lacks_a_vector(self):
        spoken = {value for name, value in vars(wire).items() if name.startswith('_') and name[1:].isupper() and isinstance(value, int) and
                  name not in ('_VERSION', '_MAX_FRAME', '_REGISTER_MOST', '_LIST_MOST', '_BATCH', '_KEPT', '_NOW', '_DATAGRAM', '_PICTURES_KEPT')}
        self.assertEqual(spoken, {v['type'] for v in VECTORS.values()})

    def test_hello_and_welcome(self):
        c, peer = self.hello()
        self.assertEqual(peer.got[0].hex(' '), golden('hello').hex(' '))
        want = fields('welcome')
        self.assertEqual((c._feed, c._max_frame, c.server, c._key), (number(want['feed']), want['max_frame'], want['server'], KEY))

    def test_requests_and_their_answers(self):
        c, peer = self.hello(['registered'], ['done with a position'], ['done'], ['report'], ['reloaded'], ['operated'], ['report of sensors'], ['pong'], ['farewell'])
        self.at(c, 'register')
        c._register(fields('register')['names'])
        self.assertEqual(c._handles, dict(zip(fields('register')['names'], fields('registered')['handles'])))
        self.assertEqual(c.refused, {'größe ü': hankel.REFUSALS[3]})
        self.at(c, 'subscribe')
        c._subscription = 0xff, fields('subscribe')['min_score'], fields('subscribe')['glob']
        c.event_position = number(fields('subscribe')['since'])
        c._resubscribe()
        self.at(c, 'unsubscribe')
        c.unsubscribe()
        self.at(c, 'status')
        self.assertEqual(c.status(), json.loads(fields('report')['text']))
        self.at(c, 'reload')
        self.assertEqual(c.reload(), (True, fields('reloaded')['text']))
        self.at(c, 'operate')
        o = fields('operate')
        self.assertEqual(c._operate(o['what'], o['number'], number(o['duration']), o['subject'], o['by']), (False, fields('operated')['text']))
        self.at(c, 'sensors')
        s = fields('sensors')
        self.assertEqual(c._list(s['glob'], number(s['after']), s['limit']), json.loads(fields('report of sensors')['text']))
        self.at(c, 'ping of zeros')
        c.sync()
        self.at(c, 'bye')
        c._datagrams, c._sent = number(fields('bye')['datagrams']), number(fields('bye')['points'])
        c.finish()
        self.sent(c, peer, 'register', 'subscribe', 'unsubscribe', 'status', 'reload', 'operate', 'sensors', 'ping of zeros', 'bye')

    def test_the_position_of_done(self):
        c, _ = self.hello(['done with a position'])
        self.at(c, 'subscribe')
        c.subscribe(since=-1)
        self.assertEqual(c.event_position, number(fields('done with a position')['since']))

    def points(self, c, name):
        want = fields(name)
        for handle, time, value in zip(want['handles'], map(number, want['times']), want['values']):
            c._handles[f's{handle}'] = handle
            c.send(f's{handle}', time, value)

    def test_points(self):
        c, peer = self.hello([])
        self.points(c, 'points of a connection')
        c.flush()
        self.sent(c, peer, 'points of a connection')

    def test_points_over_udp(self):
        c, _ = self.hello()
        want = fields('points')
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(('127.0.0.1', 0))
            s.settimeout(harness.WAIT)
            c._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            c._udp.connect(s.getsockname())
            c._datagrams, c._sent = number(want['sequence']) - 1, number(want['before'])
            self.points(c, 'points')
            c.flush()
            got = s.recv(65536)
        self.assertEqual(got[:-16].hex(' '), golden('points').hex(' '))

    def test_a_feed(self):
        c, peer = self.client(['welcome'], ['feed_at'], ['ack'], name='vectors 1.2', token='tökén', mac=True, feed=fields('feed')['name'])
        self.assertEqual(c.position, number(fields('feed_at')['points']))
        self.points(c, 'points of a feed')
        c.sync()
        self.assertEqual(c.position, number(fields('ack')['points']))
        self.sent(c, peer, 'feed', 'points of a feed')

    def test_a_picture(self):
        want = fields('picture')
        rest = wire._picture(want['camera'], Pixels(want['pixels'], (want['height'], want['width'])), number(want['time']), want['scale'], want['offset'])
        self.assertEqual(wire._frame(wire._PICTURE, struct.pack('<Q', number(want['before'])) + rest, VECTORS['picture']['tag']).hex(' '), golden('picture').hex(' '))
        rows = wire._picture('a', [[1, 2.5], [math.nan, 4]], None, 1, 0)
        self.assertEqual(rows[:24], struct.pack('<qHHBBHff', -1 << 63, 2, 2, 3, 0, 1, 1, 0))
        self.assertEqual(struct.unpack('<2f', rows[28:36]), (1, 2.5))
        for wrong in ([[1, 2], [3]], [], [[]], memoryview(bytes(8)), memoryview(bytes(8)).cast('B', (2, 2, 2))):
            self.assertRaises(ValueError, wire._picture, 'a', wrong, None, 1, 0)
        for wrong in (bytes(8), [1, 2], 7):
            with self.assertRaisesRegex(TypeError, 'rows of numbers'):
                wire._picture('a', wrong, None, 1, 0)

    def test_a_picture_as_a_memoryview(self):
        def expected(code, height, width):
            return struct.pack('<qHHBBHff', 5, height, width, code, 0, 4, 2, 1) + b'abcd' + struct.pack(f"<6{'BHef'[code]}", *range(6))

        for kind, code in (('B', 0), ('H', 1), ('f', 3), ('b', 3), ('i', 3), ('l', 3), ('L', 3), ('q', 3), ('d', 3)):
            view = memoryview(struct.pack(f'6{kind}', *range(6))).cast(kind, (2, 3))
            self.assertEqual(wire._picture('abcd', view, 5, 2, 1), expected(code, 2, 3), kind)
        with self.assertRaisesRegex(TypeError, "numbers, not of format 'c'"):
            wire._picture('a', memoryview(bytes(6)).cast('c', (2, 3)), None, 1, 0)

    def received(self, *names):
        c, _ = self.hello(['names', *names, 'pong'])
        self.at(c, 'ping of zeros')
        c.sync()
        self.assertEqual(c._names, dict(zip(fields('names')['handles'], fields('names')['names'])))
        return list(c._items)

    def test_scores(self):
        for name in ('scores', 'scores at one time', 'scores evenly apart', 'scores with steps'):
            want, got = fields(name), self.received(name)
            n = len(want['handles'])
            self.assertEqual([r.sensor for r in got], fields('names')['names'], name)
            self.assertEqual([r.time for r in got], [number(t) for t in want['times']], name)
            self.assertEqual([r.score for r in got], want['scores'], name)
            self.assertEqual([r.value for r in got], want.get('values', n * [None]), name)
            self.assertEqual([r.sequence for r in got], [number(x) for x in want['sequences']] if 'sequences' in want else n * [None], name)
            self.assertEqual([r.state for r in got], [hankel.STATES[s] for s in want.get('states', n * [1])], name)

    def test_events(self):
        names = dict(zip(fields('names')['handles'], fields('names')['names']))
        for name in ('events', 'events without details', 'events with notes', 'events with limits', 'events with incidents'):
            got, want = self.received(name), fields(name)['events']
            self.assertEqual(len(got), len(want))
            for g, w in zip(got, want):
                told = {'sensor': names[w['handle']], 'kind': hankel.EVENTS[w['kind']], 'start': number(w['from']), 'channel': hankel.CHANNELS[w['channel']],
                        'maintenance': (w['marks'] & 1) == 1, 'provisional': (w['marks'] & 4) == 4, 'travels': (w['marks'] & 8) == 8}
                if not fields(name)['with'] & 2:
                    told['channel'] = g.channel
                for key in ('number', 'score', 'before', 'after', 'severity', 'margin', 'spread_before', 'spread_after', 'held', 'similar', 'likeness', 'by'):
                    told[key] = w[key]
                for key in ('time', 'instant', 'position', 'sequence', 'similar_from'):
                    told[key] = number(w[key])
                told['novelty'] = hankel.Novelty(hankel.NOVELTIES[w['novelty']], w['before'], w['spread_before'], number(w['nearest']), number(w['oldest']), w['low'],
                                                 w['high'], w['compared'], w['reach']) if w.get('novelty') else None
                told['limit'] = hankel.Limit(w['limit'], w['slope'], number(w['earliest']), number(w['reached']),
                                             None if number(w['latest']) == 2**63 - 1 else number(w['latest']), w['blocks']) if 'blocks' in w else None
                told['incident'] = number(w.get('incident', 0))
                self.assertEqual(g._asdict(), told, name)

    def test_incident(self):
        got, want = self.received('incident'), fields('incident')
        told = {key: number(want[key]) for key in ('id', 'into', 'time', 'since', 'position', 'count')}
        told |= {'kind': hankel.INCIDENTS[want['kind']], 'rank': want['rank'], 'severity': want['severity'], 'told': True, 'text': want['text'],
                 'about': json.loads(want['about'])}
        self.assertEqual([g._asdict() for g in got], [told])

    def test_gap_and_errors(self):
        self.assertEqual(self.received('gap'), [hankel.Gap(number(fields('gap')['results']), number(fields('gap')['events']))])
        for name in ('error', 'error that closes'):
            c, _ = self.hello([name])
            self.at(c, name)
            with self.assertRaises(hankel.Error) as raised:
                c._request(7, 0x87)
            self.assertEqual((raised.exception.code, str(raised.exception)), (fields(name)['code'], '{message} (error {code})'.format(**fields(name))))


if __name__ == '__main__':
    harness.main()
