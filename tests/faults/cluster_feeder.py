"""Feeds a cluster at a rate, for cluster.py."""
import contextlib
import struct
import threading
import time

import harness
from harness import SECOND, START

FEED, FEED_AT, ACK = 0x09, 0x89, 0x95


class Feeder(threading.Thread):
    """Sends rows of all sensors at a rate, over the gateway that there is."""

    def __init__(self, values, rate, gateway):
        super().__init__(daemon=True)
        self.values, self.names, self.gateway = values, list(values), gateway
        self.rows, self.period = len(next(iter(values.values()))), len(values) / rate
        self.row, self.acknowledged, self.end, self.connections = 0, 0, False, 0

    def run(self):
        while not (self.end and self.acknowledged >= self.row * len(self.names)):
            with contextlib.suppress(harness.Closed, OSError, AssertionError):
                self._connection()
            time.sleep(0.05)

    def _keep(self, kind, payload):
        if kind == ACK:
            self.acknowledged = max(self.acknowledged, struct.unpack('<Q', payload)[0])

    def _connection(self):
        n = len(self.names)
        with self.gateway().client() as c:
            c.socket.settimeout(5)
            c.keep = self._keep
            at = max(c.request(FEED, harness.text('rig'), FEED_AT).one('Q'), self.acknowledged)
            handles = c.register(*self.names)
            self.connections += 1
            sent, due = at // n, time.monotonic()
            while not (self.end and self.acknowledged >= self.row * n):
                now = time.monotonic()
                if sent < self.row or (not self.end and now >= due and self.row < self.rows):
                    due = due + self.period if sent == self.row else due
                    c.send(harness.points(handles, [START + sent * SECOND] * n, [self.values[s][sent] for s in self.names], before=sent * n))
                    sent += 1
                    self.row = max(self.row, sent)
                    continue
                c.socket.settimeout(max(0.001, min(due - now, 0.1)))
                with contextlib.suppress(TimeoutError):
                    self._keep_one(c)
                c.socket.settimeout(5)

    def _keep_one(self, c):
        kind, _, payload = c.receive()
        self._keep(kind, payload)
