#!/usr/bin/env python3
"""hankel and libhankel with an older daemon: they work without the requests that it does not know, and report that."""
import contextlib
import socket
import struct
import subprocess
import threading

import harness
from harness import ERROR, HELLO, SECOND, START, frame, text

BAD_PAYLOAD, WANTS_KEY = 6, 1


class Older:
    """A proxy in front of a daemon; of the wishes in HELLO it accepts only WANTS_KEY, as an old version does."""

    def __init__(self, port):
        self.port, self.hellos = port, []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self.listener.getsockname()[1]}'
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer = self.listener.accept()[0]
                threading.Thread(target=self.talk, args=(peer,), daemon=True).start()

    def talk(self, peer):
        with peer, contextlib.suppress(OSError):
            hello = b''
            while len(hello) < 16 or len(hello) < 16 + struct.unpack_from('<I', hello, 4)[0]:
                some = peer.recv(1 << 16)
                if not some:
                    return
                hello += some
            client = struct.unpack_from('<H', hello, 16)[0]
            token = struct.unpack_from('<H', hello, 18 + client)[0] if struct.unpack_from('<I', hello, 4)[0] > 2 + client else 0
            wants = struct.unpack_from('<I', hello, 20 + client + token)[0] if struct.unpack_from('<I', hello, 4)[0] > 2 + client else 0
            self.hellos.append(wants)
            if wants & ~WANTS_KEY:
                said = text('the payload does not have the layout of its type')
                peer.sendall(frame(ERROR, struct.pack('<HBB', BAD_PAYLOAD, HELLO, 1) + said, struct.unpack_from('<I', hello, 8)[0]))
                peer.shutdown(socket.SHUT_WR)
                peer.recv(1 << 16)
                return
            with socket.create_connection(('127.0.0.1', self.port)) as daemon:
                daemon.sendall(hello)
                back = threading.Thread(target=self.copy, args=(daemon, peer), daemon=True)
                back.start()
                self.copy(peer, daemon)
                back.join(harness.WAIT)

    def copy(self, source, to):
        with contextlib.suppress(OSError):
            while some := source.recv(1 << 16):
                to.sendall(some)
            to.shutdown(socket.SHUT_WR)


class TestOlderDaemons(harness.Case):
    def feed(self, *options):
        d = self.daemon()
        older = Older(d.port['binary tcp'])
        self.addCleanup(older.listener.close)
        recording = 'time,a\n' + ''.join(f'{START // SECOND + k},{k}\n' for k in (0, 1, 2, 1, 3))
        run = subprocess.run([harness.HANKEL, 'feed', '--to', older.address, *options, '-'], input=recording, capture_output=True, text=True, timeout=harness.WAIT)
        return d, older, run

    def test_feed_goes_on_without_counts_and_says_so(self):
        for options in ((), ('--feed', 'file')):
            with self.subTest(options):
                d, older, run = self.feed(*options)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(older.hellos, [2, 0])
                self.assertEqual(d.status()['points']['in'], 5)
                self.assertIn('this version of the daemon does not report late and rejected points', run.stderr)
                self.assertNotIn('points were late (', run.stdout)

    def test_a_hello_that_is_bad_in_another_way_is_told(self):
        """The client tries once more, and then reports the daemon's error."""
        with socket.create_server(('127.0.0.1', 0)) as listener:
            listener.settimeout(harness.WAIT)
            came = []

            def refuse():
                for _ in range(2):
                    with listener.accept()[0] as peer:
                        came.append(peer.recv(1 << 16))
                        peer.sendall(frame(ERROR, struct.pack('<HBB', BAD_PAYLOAD, HELLO, 1) + text('not so')))
                        peer.shutdown(socket.SHUT_WR)
                        peer.recv(1)

            thread = threading.Thread(target=refuse, daemon=True)
            thread.start()
            run = subprocess.run([harness.HANKEL, 'feed', '--to', f'127.0.0.1:{listener.getsockname()[1]}', '-'], input='time,a\n1,1\n', capture_output=True, text=True, timeout=harness.WAIT)
            if len(came) < 2:  # the client reconnects for as long as it waits
                thread.join(harness.WAIT)
        self.assertEqual((run.returncode, len(came)), (1, 2))
        self.assertIn('not so', run.stderr)


if __name__ == '__main__':
    harness.main()
