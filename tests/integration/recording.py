"""A daemon that is fed a recording of one sensor, and may be ended and restarted meanwhile; and the events that it publishes over every protocol."""
import os
import socket
import subprocess
import sys
import tempfile

import harness
from harness import SECOND, START, WAIT, until

sys.path.insert(0, os.path.join(harness.ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402


class Recording(harness.Case):
    """Base of a file's test cases. keys: of the detector; mode: durability; values: of the sensor press, one a second; events: those of `hankel replay`,
    in the form in which `of_json` and `of_client` read an event. A derived case calls `write` and sets `events`."""
    keys = mode = values = events = file = None

    @classmethod
    def write(cls, values):
        """Sets the recording, and writes it to a file."""
        cls.values = values
        cls.file = tempfile.NamedTemporaryFile('w', suffix='.csv')  # pylint: disable=consider-using-with
        cls.addClassCleanup(cls.file.close)
        cls.file.write('time,press\n' + ''.join(f'{START // SECOND + i},{v!r}\n' for i, v in enumerate(values)))
        cls.file.flush()
        cls.events = [cls.of_json(line) for line in cls.replay('jsonl') if line.startswith('{"event"')]

    @classmethod
    def replay(cls, form):
        return subprocess.run([harness.HANKEL, 'replay', '--backend', harness.BACKEND, '--detector', cls.keys, '--format', form, cls.file.name],
                              capture_output=True, text=True, timeout=WAIT, check=True).stdout.splitlines()

    @staticmethod
    def of_json(line):
        raise NotImplementedError

    @staticmethod
    def of_client(event):
        raise NotImplementedError

    def same(self, got):
        self.assertEqual(got, self.events)

    def setUp(self):
        self.state = tempfile.TemporaryDirectory(prefix='hankeld-recording-')
        self.addCleanup(self.state.cleanup)

    def start(self, ends=0):
        kept = f'durability = {self.mode}\nstate = {self.state.name}\n' if self.mode != 'none' else ''
        daemon = self.daemon(harness.section('all', '*', self.keys), ends=ends, keys='threads = 2\nmax_ahead = off\n' + kept)
        client = hankel.Client(f'127.0.0.1:{daemon.port["binary tcp"]}', timeout=WAIT)
        self.addCleanup(client.close)
        return daemon, client

    def feed(self, client, first, behind):
        for i in range(first, behind):
            client.send('press', START + i * SECOND, self.values[i])
        client.sync()
        until(lambda: client.status()['points']['pending'] == 0, 'scores')

    def read(self, client):
        got = []
        while len(got) < len(self.events) and (e := client.read(WAIT)):
            got.append(self.of_client(e))
        return got

    def every_way_out(self):
        """Feeds the whole recording, and asserts that the same events come over each protocol. Returns the daemon, and the text of `hankel tail`."""
        daemon, client = self.start()
        client.subscribe('*', scores=False, notices=False, details=True)
        text = socket.create_connection(('127.0.0.1', daemon.port['text tcp']), WAIT)
        self.addCleanup(text.close)
        text.sendall(b'events *\n')
        tails = [subprocess.Popen([harness.HANKEL, 'tail', '--from', f'127.0.0.1:{daemon.port["binary tcp"]}', '--events', '--format', form],
                                  stdout=subprocess.PIPE, text=True) for form in ('jsonl', 'text')]
        for tail in tails:
            self.addCleanup(tail.stdout.close)
            self.addCleanup(tail.wait)
            self.addCleanup(tail.kill)
        until(lambda: client.status()['subscribers']['count'] >= 4, 'all who listen')
        feeder = hankel.Client(f'127.0.0.1:{daemon.port["binary tcp"]}', timeout=WAIT)
        self.addCleanup(feeder.close)
        self.feed(feeder, 0, len(self.values))
        self.same(self.read(client))
        for lines in text.makefile(), tails[0].stdout:
            self.same([self.of_json(lines.readline()) for _ in self.events])
        return daemon, [tails[1].stdout.readline() for _ in self.events]

    def over_restarts(self, cuts):
        """Feeds up to each cut and then ends the daemon (kills it, with a journal). The last daemon must have all events. If a cut is given twice,
        nothing is fed in between."""
        for life, (first, behind) in enumerate(zip(cuts, cuts[1:]), 2):
            last, killed = life == len(cuts), self.mode == 'journal'
            daemon, client = self.start(ends=-9 if killed and not last else 0)
            self.feed(client, first, behind)
            if last:
                client.subscribe('*', scores=False, notices=False, details=True, since=0)
                self.same(self.read(client))
            elif killed:
                daemon.process.kill()
                daemon.process.wait(WAIT)
            else:
                daemon.stop()
