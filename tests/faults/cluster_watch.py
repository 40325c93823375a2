"""The results and events that subscribers of a cluster's machines got, for cluster.py."""
import contextlib
import threading

import harness
import rabbit
from harness import SECOND, START


class Watch:
    """Results of all scorers of the run, including ended ones."""

    def __init__(self):
        self.lock, self.scores, self.events, self.wrong = threading.Lock(), {}, {}, []
        self.last = {}  # by sensor: time of the latest point that has a result
        self.repeated = 0
        self.shown = {}  # by gateway: the results that it has shown

    def follow(self, daemon, gateway=None):
        """Subscribes until the daemon ends. gateway: its name; it shows the results of others, each once."""
        c = daemon.client()
        c.subscribe()
        once = self.shown.setdefault(gateway, set()) if gateway else None
        threading.Thread(target=self._run, args=(c, once), daemon=True).start()

    def _run(self, c, once):
        c.socket.settimeout(None)
        with contextlib.suppress(harness.Closed, OSError), c:
            while True:
                kind, _, payload = c.receive()
                c.keep(kind, payload)
                with self.lock:
                    self._take(c, once)

    def _take(self, c, once):
        for s, t, _, score, state in c.results:
            if once is not None and (s, t) in once:
                self.wrong.append(('shown twice', s, t, score, state))
            if once is not None:
                once.add((s, t))
            self.last[s] = max(self.last.get(s, 0), t)
            if state == 'late':
                continue
            self.repeated += (s, t) in self.scores
            if self.scores.setdefault((s, t), (score, state)) != (score, state):
                self.wrong.append(('score', s, t, self.scores[s, t], (score, state)))
        for name, number, kind, at, _, instant, score, _, _ in c.events:
            if self.events.setdefault((f'{name}:{number}', kind), (at, instant, score)) != (at, instant, score):
                self.wrong.append(('event', name, number, kind))
        c.results.clear()
        c.events.clear()

    def reached(self):
        with self.lock:
            return dict(self.last)

    def lacking(self, gateway, expected):
        """By partition, (sensor, row) of what a gateway has not shown of the results from the first one of each sensor on that it has shown."""
        with self.lock:
            shown = set(self.shown[gateway])
        first, lacking = {}, {}
        for sensor, t in shown:
            first[sensor] = min(t, first.get(sensor, t))
        for sensor, t in expected:
            if t >= first.get(sensor, START) and (sensor, t) not in shown:
                lacking.setdefault(rabbit.partition(sensor, 8), set()).add((sensor, (t - START) // SECOND))
        return lacking

    def tell_lacking(self, gateway, expected):
        """Prints what `lacking` finds, and returns how many results."""
        lacking = self.lacking(gateway, expected)
        total = sum(map(len, lacking.values()))
        print(f'{gateway} has shown {len(self.shown[gateway])} results, and not {total} that came after the first one of their sensor')
        for partition, some in sorted(lacking.items()):
            rows = {row for _, row in some}
            ends = [r for r in sorted(rows) if r - 1 not in rows], [r for r in sorted(rows) if r + 1 not in rows]
            print(f'    of partition {partition} {len(some)}: rows', ', '.join(f'{a}-{b}' for a, b in list(zip(*ends))[:20]))
        return total
