"""The order in which the daemon writes, syncs, renames and sends: everything that it sends is on the disk before, under its name."""
import os
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import ALERTS, SECOND, START
from test_state_folder import Feeder

SEND_EVENTS, SEND_ACK, SEND_OPERATED = '93', '95', '8b'
FRAME = 2000  # points


class Disk:
    """What a crash may undo, according to the record of system calls: `data` of files that were written since their last sync, and `names` that
    were made since the last sync of their folder."""

    def __init__(self):
        self.data, self.names, self.wrong, self.seen = {}, {}, [], []

    def need(self, line, match):
        """Asserts that the files on which the recorded call depends are on the disk."""
        missing = {p: why for lines in (self.data, self.names) for p, why in lines.items() if match(p)}
        if missing:
            self.wrong.append((line, missing))

    def take(self, line, quiet):
        """quiet: nothing else was under way when the message was sent."""
        what, path, *then = line.split()
        name = os.path.basename(path)
        if what in ('folder', 'create'):
            self.names[path] = line
            self.seen.append((what, name))
        elif what == 'write':
            self.data[path] = line
        elif what == 'sync':
            self.data.pop(path, None)
            self.names = {p: why for p, why in self.names.items() if os.path.dirname(p) != path}
        elif what == 'rename':
            self.need(line, lambda p: p == path and p in self.data)
            self.names.pop(path, None)
            self.names[then[0]] = line
            self.seen.append(('renamed', os.path.basename(then[0])))
        elif what == 'remove' and name.endswith(('.hkj', '.hks')):  # for the newest snapshot
            self.need(line, lambda p: p.endswith('.hks'))
            self.seen.append(('removed', name))
        elif what == 'remove':
            self.data.pop(path, None)
            self.names.pop(path, None)
        elif what == 'send' and path == SEND_ACK and (quiet or int(then[0]) % FRAME == 0):
            self.need(line, lambda p: p.endswith('.hkj') or '.' not in os.path.basename(p))
            self.seen.append(('sent', path))
        elif what == 'send' and (path == SEND_OPERATED or (path == SEND_EVENTS and quiet)):
            self.need(line, lambda p: p.endswith('.hke') if path == SEND_EVENTS else 'maintenance' in p)
            self.seen.append(('sent', path))


@unittest.skipUnless('RECORDED_CALLS_LIBRARY' in os.environ, 'a preloaded library does not go with a sanitizer')
class Order(harness.Case):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, self.folder)
        self.record = os.path.join(self.folder, 'record')

    def looked_at(self, disk, quiet):
        """Takes the calls that were recorded since the last time."""
        for line in self.lines:
            if self.folder in line or line.startswith('send'):
                disk.take(line.rstrip('\n'), quiet)
        self.assertEqual(disk.wrong[:3], [])

    def test_order(self):
        """Journal segments, event log, feeds, snapshots and the file of maintenance windows."""
        keys = f'threads = 2\nmax_ahead = off\ndurability = journal\nstate = {self.folder}/state\nsnapshot = 1s\njournal_segment = 1MiB\n'
        d = self.daemon(harness.section('all', '*', 'window=8,interval=1s,alert=0.3,cooldown=0'), keys=keys,
                        environment={'LD_PRELOAD': os.environ['RECORDED_CALLS_LIBRARY'], 'RECORDED_CALLS': self.record})
        disk, sent = Disk(), 0
        self.lines = self.enterContext(open(self.record))
        with Feeder(d.port['binary tcp']) as feeder:
            feeder.subscribe(ALERTS)
            handles = feeder.register(*(f's{i}' for i in range(100)))
            while d.status()['durability']['shards'][0]['snapshots'] < 3 or sent < 100 * FRAME:
                feeder.send(harness.points(handles * 20, [START + (sent // 100 + k) * SECOND for k in range(20) for _ in handles], [1.0] * FRAME,
                                           before=sent))
                sent += FRAME
                feeder.await_ack(sent)
            self.looked_at(disk, False)
            self.assertEqual(feeder.events, [])
            handle = feeder.register('one')
            for k in range(60):  # one after the other
                feeder.send(harness.points(handle, [START + k * SECOND], [float(k % 12 % (3 + k // 12 % 2 * 4))], before=sent))
                sent += 1
                feeder.await_ack(sent)
                harness.until(lambda: (p := d.status())['points']['pending'] == 0 and p['durability']['events_last'] == p['durability']['events_shown'],
                              'the point')
                feeder.ping()
                self.assertEqual(len(feeder.events), d.status()['durability']['events_last'])
            self.assertGreater(len(feeder.events), 0)
            for window in ('pre*', 'other*'):
                subprocess.run([harness.HANKEL, 'maintenance', '--from', f'127.0.0.1:{d.port["binary tcp"]}', '--by', 'otto', 'begin', window, '2h'],
                               check=True, capture_output=True, timeout=harness.WAIT)
        self.looked_at(disk, True)
        for what in (('folder', 'state'), ('folder', 'shard-0'), ('create', 'journal-000000000002.hkj'), ('create', 'events-000000000001.hke'), ('sent', SEND_ACK), ('sent', SEND_EVENTS), ('sent', SEND_OPERATED), ('renamed', 'maintenance'),
                     ('renamed', 'snapshot-000000000001.hks'), ('removed', 'journal-000000000001.hkj')):
            self.assertIn(what, disk.seen)


if __name__ == '__main__':
    harness.main()
