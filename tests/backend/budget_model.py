#!/usr/bin/env python3
"""Model of daemon/incidents: chooses from the alerts of a fleet of sensors the few messages a day that people can read. Standard library only.

    budget_model.py write FILE      makes a fleet with known causes, and writes its events and the model's decisions"""
import sys, math, random
from collections import OrderedDict

DAY = 86400.0
DEFAULTS = dict(
    budget=10.0,      # messages a day
    depth=.5,         # days of budget that the bucket holds (at least 3 messages)
    interval=60.0,    # seconds a point; the next four are in points
    window=12,        # alerts at most so far apart may have one cause
    hold=60,          # an incident without events for so long is closed
    longest=48,       # an incident takes in further sensors for so long
    repeat=288,       # a reported sensor is not reported again for so long, unless R is higher by `more`
    more=1.0,
    quiet=7.0,        # days that `false` and `expected` prolong this to
    theta=1.5,        # severity of the weakest event sent here
    alpha=1e-3,       # company rarer than this by chance is one incident
    bonus=6.0,        # most that company can add to R
    half=7.0,         # days, half-life of the fleet's tail
    prior=500.0,      # sensor-days of prior tail
    block=40)         # points a block of the severity
BIN, BINS = .05, 800  # histogram of R, 0 to 40


def poisson_tail(mu, k):
    """log10 P(Poisson(mu) >= k)"""
    if k <= 0: return 0.0
    if mu <= 0: return -300.0
    if k <= mu:
        t = s = math.exp(-mu)
        for i in range(1, k): t *= mu / i; s += t
        return math.log10(max(1 - s, 1e-15))
    r, t, i = 1.0, 1.0, k         # leading term x a geometric-like sum
    while t > 1e-12 and i < k + 1000: i += 1; t *= mu / i; r += t
    return max(-300.0, (k * math.log(mu) - mu - math.lgamma(k + 1)) / math.log(10) + math.log10(r))


class Tail:
    """The rate of incidents whose rank reaches R, per sensor and day. It forgets with a half-life: an addition weighs w =
    2^(age of the tail / half), so old entries need no scaling. A prior of 10^-R per block stands for ranks that were never
    seen"""
    def __init__(self, p):
        self.p = p; self.h = [0.0] * BINS; self.E = 0.0; self.raises = 0.0; self.t = self.t0 = None; self.w = 1.0; self.cum = None
        self.bd = DAY / p['interval'] / p['block']                       # blocks a sensor and day

    def clock(self, t, sensors):
        if self.t is None: self.t = self.t0 = t
        if t <= self.t: return
        d = (t - self.t) / DAY; self.E = self.E * .5 ** (d / self.p['half']) + sensors * d; self.t = t; self.cum = None
        self.w = 2 ** ((t - self.t0) / DAY / self.p['half'])             # an implementation renormalises beyond 2^30

    def add(self, R, w): self.h[min(BINS - 1, max(0, int(R / BIN)))] += w

    def threshold(self, a_day, sensors):
        """The least R that the present fleet is expected to reach at most a_day times a day"""
        if a_day <= 0: return math.inf
        c = 0.0; lim = a_day * (self.E + self.p['prior']) / sensors
        for b in range(BINS - 1, -1, -1):
            c += self.h[b] / self.w
            if c + self.p['prior'] * self.bd * 10 ** (-b * BIN) > lim: return (b + 1) * BIN
        return 0.0

    def rate(self, S):
        """The rate of incidents of severity S or more, per sensor and day: the observed rate, but at least 10^-(S - theta) of
        all"""
        if self.cum is None:
            c = 0.0; self.cum = [0.0] * BINS
            for b in range(BINS - 1, -1, -1): c += self.h[b] / self.w; self.cum[b] = c
        r0 = .5 * self.bd * 10 ** -self.p['theta']; r = (self.raises / self.w + 100 * r0) / (self.E + 100)
        return max(r * 10 ** -(S - self.p['theta']), self.cum[min(BINS - 1, max(0, int(S / BIN)))] / (self.E + self.p['prior']))


class Member:
    __slots__ = ('S', 'instant', 'raised', 'channels')
    def __init__(self, S, instant, raised): self.S, self.instant, self.raised, self.channels = S, instant, raised, {}
    def __getitem__(self, k): return (self.S, self.instant, 0, self.raised, self.channels)[k]


class Incident:
    __slots__ = ('id', 'open', 'last', 'mem', 'R', 'S', 'company', 'node', 'paged', 'binR', 'w', 'closed', 'Rtold', 'ntold', 'updates', 'into')
    def __init__(self, id, t):
        self.id = id; self.open = self.last = t; self.mem = {}; self.R = self.S = self.company = 0.0; self.node = None; self.paged = None
        self.binR = None; self.w = 1.0; self.closed = False; self.Rtold = 0.0; self.ntold = 0; self.updates = 0; self.into = None


class Fleet:
    def __init__(self, sensors=(), groups=None, out=None, keep=True, **kw):
        bad = set(kw) - set(DEFAULTS)
        if bad: raise TypeError('unknown parameters: %s' % bad)
        self.p = dict(DEFAULTS, **kw); self.groups = groups or {}; self.out = out or (lambda *a: None); self.keep = keep
        self.known = set(); self.size = {}; self.kids = {}     # node -> sensors below it, children
        self.nominal = None                                    # sensors scored lately, if the caller knows (otherwise: names seen)
        self.tail = Tail(self.p); self.full = max(3.0, self.p['budget'] * self.p['depth']); self.tokens = self.full / 2; self.tt = None
        self.act = {}                                          # node -> child: (first alert, severity, sensor), within the window
        self.sick = {}                                         # node -> (a sensor of its incident, time of its last newcomer)
        self.of = {}; self.inc = {}; self.openq = OrderedDict(); self.n = 0; self.dirty = OrderedDict()
        self.told = {}                                         # sensor -> (until, R) of its last message
        for s in sensors: self.learn_name(s)

    def path(self, s):
        """The nodes above a sensor, smallest first, with the child on the way; then its [group]s"""
        r = []; child = q = s
        while True:
            i = max(q.rfind('.'), q.rfind('/'), q.rfind(':'))
            if i <= 0: break
            q = q[:i]; r.append((q, child)); child = q
        return r + [('', child)] + [('[%s]' % g, s) for g in self.groups.get(s, ())]

    def learn_name(self, s):
        if s in self.known: return
        self.known.add(s)
        for node, child in self.path(s): self.size[node] = self.size.get(node, 0) + 1; self.kids.setdefault(node, set()).add(child)

    def sensors(self): return max(1, len(self.known) if self.nominal is None else self.nominal)

    def event(self, t, s, ch, S, instant, *_):
        if self.tt is None or t > self.tt: self.flush(); self.learn_name(s); self.clock(t)
        else: t = self.tt; self.learn_name(s)
        inc = self.of.get(s)
        if inc is None:
            self.n += 1; inc = Incident(self.n, t); inc.mem[s] = Member(S, instant, t); self.of[s] = inc; self.openq[inc.id] = inc
            self.tail.raises += self.tail.w
            if self.keep: self.inc[inc.id] = inc
        m = inc.mem[s]; m.S = max(m.S, S); m.channels[ch] = max(S, m.channels.get(ch, 0.0)); inc.last = t; self.openq.move_to_end(inc.id)
        if m.raised >= t - self.p['window'] * self.p['interval']: inc = self.company(t, s, inc)
        self.dirty[s] = None; return inc

    def company(self, t, s, inc):
        iv = self.p['interval']; W = self.p['window'] * iv; old = self.p['longest'] * iv; m = inc.mem[s]; nodes = self.path(s)
        if m.raised == t and len(inc.mem) == 1:                # a node that was just found to be affected takes in the sensors that follow
            for node, _ in nodes:
                q, last = self.sick.get(node, (None, -math.inf)); o = self.of.get(q)
                if o is not None and o is not inc and t - last <= W and t - o.open <= old:
                    inc = self.merge(t, inc, o); self.sick[node] = (s, t); break
        for node, child in nodes:
            a = self.act.setdefault(node, OrderedDict()); c = a.get(child)
            if c is None or c[0] < t - W or c[1] < m.S: a.pop(child, None); a[child] = (m.raised, m.S, s)
            for c in [c for c, v in a.items() if v[0] < t - W]: del a[c]
            if len(a) < 2 or t - inc.open > old: continue
            mates = [(v[1], o) for v in a.values() for o in (self.of.get(v[2]),) if o is not None and t - o.open <= old]
            mates.sort(key=lambda v: (-v[0], v[1].id)); lp, j = self.chance(node, [v[0] for v in mates])
            if lp > math.log10(self.p['alpha']) or not any(o is inc for _, o in mates[:j]): continue
            for _, o in mates[:j]:
                if o is not inc and not o.closed: inc = self.merge(t, inc, o)
            if -lp > inc.company: inc.company = -lp; inc.node = node
            self.sick[node] = (s, t)
        return inc

    def chance(self, node, S):
        """The least probability (log10), over j, that j - 1 other children of the node show S_(j) or more in the window; and
        its j"""
        n = len(self.kids[node]); each = self.size[node] / n; W = self.p['window'] * self.p['interval'] / DAY; best = 0.0; bj = 0
        for j in range(2, len(S) + 1):
            p = poisson_tail((n - 1) * (1 - math.exp(-each * self.tail.rate(S[j-1]) * W)), j - 1)
            if p <= best: best, bj = p, j
        return best, bj

    def merge(self, t, a, b):
        if b.id < a.id: a, b = b, a                            # the incident with the older number remains
        for s, m in b.mem.items(): self.of[s] = a; a.mem[s] = m
        a.last = max(a.last, b.last); a.open = min(a.open, b.open)
        if b.company > a.company: a.company, a.node = b.company, b.node
        if b.binR is not None: self.tail.add(b.binR, -b.w); b.binR = None
        if b.paged is not None:
            if a.paged is None: a.paged, a.Rtold, a.ntold = b.paged, b.Rtold, b.ntold
            self.out(t, 'MERGED', b, a)
        b.closed = True; b.into = a.id; self.openq.pop(b.id, None); self.openq.move_to_end(a.id); return a

    def flush(self):
        """The end of a tick: all its events are grouped. Judges the incidents that they changed, the most severe first"""
        d = {i.id: i for i in (self.of.get(s) for s in self.dirty) if i is not None}; self.dirty.clear()
        for i in d.values(): i.S = max(m.S for m in i.mem.values())
        for i in sorted(d.values(), key=lambda i: (-self.rank(i), i.id)): self.judge(self.tt, i)

    def rank(self, i):
        """The rank: the greatest severity, and what the number of sensors adds beyond alpha; it never falls"""
        return max(i.R, i.S + min(self.p['bonus'], max(0.0, i.company + math.log10(self.p['alpha']))))

    def judge(self, t, i):
        R = self.rank(i)
        if R > i.R or i.binR is None:                          # an incident counts once in the tail, and moves up as its rank grows
            if i.binR is not None: self.tail.add(i.binR, -i.w)
            i.R = i.binR = R; i.w = self.tail.w; self.tail.add(R, i.w)
        if i.paged is not None:
            if (i.R >= i.Rtold + 2 or len(i.mem) >= 3 * i.ntold) and i.updates < 3:
                i.Rtold, i.ntold = i.R, len(i.mem); i.updates += 1; self.out(t, 'UPDATE', i, None)
            return
        if self.tokens < 1: return
        th = self.tail.threshold(self.p['budget'] * min(2.0, 2 * self.tokens / self.full), self.sensors())
        if i.R < th: return
        old = [self.told[s][1] for s in i.mem if s in self.told and t < self.told[s][0]]
        if 2 * len(old) >= len(i.mem) and old and i.R < max(old) + self.p['more']: return
        self.tokens -= 1; i.paged = t; i.Rtold, i.ntold = i.R, len(i.mem)
        for s in i.mem: self.told[s] = (t + self.p['repeat'] * self.p['interval'], i.R)
        self.out(t, 'PAGE', i, th)

    def feedback(self, t, i, what):
        """The incident is reported: its sensors are not reported again for `quiet` days, unless R is higher by `more`."""
        for s in i.mem: self.told[s] = (t + self.p['quiet'] * DAY, max(i.R, self.told.get(s, (0, 0))[1]))

    def clock(self, t):
        self.tail.clock(t, self.sensors())
        if self.tt is not None: self.tokens = min(self.full, self.tokens + self.p['budget'] * (t - self.tt) / DAY)
        self.tt = t
        while self.openq:
            i = next(iter(self.openq.values()))
            if t - i.last <= self.p['hold'] * self.p['interval']: break
            self.close(t, i)

    def close(self, t, i):
        i.closed = True; del self.openq[i.id]
        for s in i.mem: del self.of[s]
        self.out(t, 'CLOSED', i, None)

    def finish(self):
        self.flush()
        for i in list(self.openq.values()): self.close(self.tt, i)

    def first(self, i):
        """The sensor that changed first, and those too close to distinguish: by first alert, in the window with most members"""
        o = sorted((m.raised, m.instant, s) for s, m in i.mem.items()); W = self.p['window'] * self.p['interval']; best = k = j = 0
        for a in range(len(o)):
            while j < len(o) and o[j][0] <= o[a][0] + W: j += 1
            if j - a > best: best, k = j - a, a
        return o[k][2], [v[2] for v in o[k+1:] if v[0] <= o[k][0] + self.p['interval']]


def fleet():
    """Names with their groups, and events (time, sensor, channel, severity, instant) of 12 days at 300 s a point"""
    r = random.Random(18); iv = 300; names = [f's{i//96}.r{i//24}.m{i//6}.c{i%6}' for i in range(384)] + [f'plant/{i//4}:{i%4}' for i in range(48)] + ['alone', 's0', 's0.r1']
    groups = {n: ['hot'] if i % 29 == 0 else ['hot', 'old'] if i % 31 == 0 else [] for i, n in enumerate(names)}
    ev = []
    def alert(k, s, S):                                        # a raise and the growth of its peak
        S = min(39.0, S); ch = r.randrange(3); at = (k - r.randrange(3)) * iv; part = min(S, 1.5 + r.random()); ev.append((k * iv, s, ch, part, at))
        while part < S: k += 1; part = min(S, part + .25 + 2 * r.random()); ev.append((k * iv, s, ch, part, at))
    points = 12 * 288
    for k in range(points):
        for _ in range(int(r.expovariate(1.6))): alert(k, r.choice(names), 1.5 + r.expovariate(2.3))
    for _ in range(40):                                        # machines, racks, plants
        k = r.randrange(points - 60); top = r.choice(['s%d.r%d.' % (i // 4, i) for i in range(16)] + ['s%d.r%d.m%d.' % (i // 16, i // 4, i) for i in range(64)] + ['plant/%d:' % i for i in range(12)])
        for s in names:
            if s.startswith(top) and r.random() < .8: alert(k + int(r.expovariate(.4)), s, 1.5 + r.expovariate(.5))
    for _ in range(30): alert(r.randrange(points - 60), r.choice(names), 3 + r.expovariate(.4))
    for s in names:                                            # a storm, then the groups
        if r.random() < .3: alert(2000 + int(r.expovariate(1)), s, 1.5 + r.expovariate(1))
        if groups[s] and r.random() < .7: alert(2500 + r.randrange(4), s, 2 + r.expovariate(1))
    ev.sort(key=lambda e: e[0]); return names, groups, iv, [(t, s, ch, round(S, 2), at) for t, s, ch, S, at in ev]


def write(path):
    names, groups, iv, ev = fleet(); number = {s: i for i, s in enumerate(names)}; of_channel = 'vcs'
    with open(path, 'w') as o:
        o.write(f'interval {iv}\n'); now = [0]
        for s in names: o.write(' '.join(['sensor', s] + groups[s]) + '\n')
        def out(t, what, i, x):
            if what == 'CLOSED' and i.paged is None: what = 'WITHHELD'
            o.write(f'{what} {i.id} {i.R:.4f} {len(i.mem)}')
            if what == 'PAGE': first, ties = f.first(i); o.write(f' {x:.2f} {first} {len(ties)} {i.company:.3f}')
            if what == 'MERGED': o.write(f' {x.id}')
            o.write('\n')
        f = Fleet(names, groups, out, interval=float(iv), keep=False)
        for t, s, ch, S, at in ev: o.write(f'{t//iv} {number[s]} {ch} {S:.2f} {(t-at)//iv}\n'); f.event(t, s, of_channel[ch], S, at)
        o.write('end\n'); f.finish()


if __name__ == '__main__':
    if len(sys.argv) != 3 or sys.argv[1] != 'write': sys.exit(__doc__)
    write(sys.argv[2])
