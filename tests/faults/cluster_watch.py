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
        self.at = {}  # by gateway, by sensor: time of the latest one
        self.dropped = 0  # results that gateways said that they left out, because their subscriber was slow

    def follow(self, daemon, gateway=None):
        """Subscribes until the daemon ends. gateway: its name; it shows the results of others, each once."""
        c = daemon.client()
        c.subscribe()
        if gateway:
            self.shown[gateway], self.at[gateway] = set(), {}
        threading.Thread(target=self._run, args=(c, gateway), daemon=True).start()

    def _run(self, c, gateway):
        c.socket.settimeout(None)
        with contextlib.suppress(harness.Closed, OSError), c:
            while True:
                kind, _, payload = c.receive()
                c.keep(kind, payload)
                with self.lock:
                    self._take(c, gateway)

    def _take(self, c, gateway):
        once, at = self.shown.get(gateway), self.at.get(gateway)
        for s, t, _, score, state in c.results:
            if once is not None and (s, t) in once:
                self.wrong.append(('shown twice', s, t, score, state))
            if once is not None:
                once.add((s, t))
                at[s] = max(at.get(s, 0), t)
            self.last[s] = max(self.last.get(s, 0), t)
            if state == 'late':
                continue
            self.repeated += (s, t) in self.scores
            if self.scores.setdefault((s, t), (score, state)) != (score, state):
                self.wrong.append(('score', s, t, self.scores[s, t], (score, state)))
        for name, number, kind, at, _, instant, score, _, _ in c.events:
            if self.events.setdefault((f'{name}:{number}', kind), (at, instant, score)) != (at, instant, score):
                self.wrong.append(('event', name, number, kind))
        self.dropped += sum(dropped for dropped, _ in c.gaps) if gateway else 0
        c.gaps.clear()
        c.results.clear()
        c.events.clear()

    def reached(self):
        with self.lock:
            return dict(self.last)

    def behind(self, gateway):
        """Rows that scorers have shown of some sensor and a gateway has not, and the row up to which it has all sensors."""
        with self.lock:
            at = min(self.at[gateway].values(), default=0)
            return (min(self.last.values(), default=at) - at) // SECOND, (at - START) // SECOND

    def lacking(self, gateway, expected, ended=False):
        """By partition, (sensor, row) of what a gateway has not shown of the results from the first one of each sensor on that it has shown; ended: up
        to its last one."""
        with self.lock:
            shown, last = set(self.shown[gateway]), dict(self.at[gateway])
        first, lacking = {}, {}
        for sensor, t in shown:
            first[sensor] = min(t, first.get(sensor, t))
        for sensor, t in expected:
            begin, end = first.get(sensor, START), last.get(sensor, START - 1) if ended else t
            if begin <= t <= end and (sensor, t) not in shown:
                lacking.setdefault(rabbit.partition(sensor, 8), set()).add((sensor, (t - START) // SECOND))
        return lacking

    def tell_lacking(self, gateway, expected, ended=False):
        """Prints what `lacking` finds, and returns how many results."""
        lacking = self.lacking(gateway, expected, ended)
        total = sum(map(len, lacking.values()))
        print(f'{gateway} has shown {len(self.shown[gateway])} results, and not {total} that came after the first one of their sensor{", up to its end" if ended else ""}')
        for partition, some in sorted(lacking.items()):
            rows = {row for _, row in some}
            ends = [r for r in sorted(rows) if r - 1 not in rows], [r for r in sorted(rows) if r + 1 not in rows]
            print(f'    of partition {partition} {len(some)}: rows', ', '.join(f'{a}-{b}' for a, b in list(zip(*ends))[:20]))
        return total
