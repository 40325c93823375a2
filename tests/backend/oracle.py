#!/usr/bin/env python3
"""Oracle of the scores: computes them from their definitions (cpu/MATHEMATICS.md), and shares nothing with the C code.

    python3 tests/backend/oracle.py > tests/data/oracle_scores.txt

SVD-SST uses numpy.linalg.svd of explicit Hankel matrices. IKA-SST uses a basis of the Krylov space in 80-bit arithmetic
(Gram-Schmidt twice, no three-term recurrence), and the operator projected on it. Needs numpy; the tests only read the output.
A case is kept only if the problem is well posed: if samples change by 1e-13, results change by less than a hundredth of the
test's tolerance.

Lines of the output (words divided by blanks):
    span NAME x...                the samples that one score reads, oldest first
    feedback NAME a...            the sensor's feedback vector before the score
    score NAME DETECTOR z share probe
        NAME is the sensor's name too (it seeds a0). probe = sum over i of a'_i cos(i + 1), a' the feedback vector afterwards.
"""
import numpy as np

WIDE = np.longdouble
MASK = (1 << 64) - 1


def hankel(x, w):
    return np.array([[x[i + j] for j in range(w)] for i in range(w)])


def random_vector(name, w):
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & MASK
    out = []
    for i in range(w):
        z = (seed + i + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out.append((z >> 11) / 2.0**52 - 1)
    v = np.array(out)
    return v / np.sqrt(np.sum(v * v))


def krylov(apply, start, steps):
    """Orthonormal basis of span{start, A start, ...} and the operator on it; stops early as Lanczos does by its definition."""
    basis = [start / np.sqrt(np.sum(start * start))]
    size, before = WIDE(0), WIDE(0)
    while True:
        u = apply(basis[-1])
        alpha = np.sum(u * basis[-1])
        for _ in range(2):
            for q in basis:
                u = u - np.sum(u * q) * q
        beta = np.sqrt(np.sum(u * u))
        size = max(size, abs(alpha) + before)
        if len(basis) == steps or beta <= size * WIDE(2) ** -20:
            break
        basis.append(u / beta)
        before = beta
    q = np.array(basis)
    t = np.array([[np.sum(a * apply(b)) for b in q] for a in q])
    return q, np.asarray((t + t.T) / 2, dtype=float)


def plain_lanczos(apply, start, steps):
    """The three-term recurrence in double without re-orthogonalisation, used only to leave out cases in which it drifts."""
    q, alphas, betas, before = [np.asarray(start, float)], [], [], None
    for s in range(steps):
        u = apply(q[-1])
        alphas.append(u @ q[-1])
        u = u - alphas[-1] * q[-1] - (betas[-1] * before if betas else 0)
        beta = np.linalg.norm(u)
        scale = max(abs(a) + b for a, b in zip(alphas, [0.0] + betas))
        if s == steps - 1 or beta <= scale * 2.0**-20:
            break
        before = q[-1]
        betas.append(beta)
        q.append(u / beta)
    return np.array(q), np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1)


def operator(h, kind):
    return (lambda v: h @ v) if kind == 'hankel' else (lambda v: h @ (h @ v))


def score(span, a, a0, d, project=krylov, number=WIDE):
    """z, share and the next feedback vector."""
    w, g = d['window'], d['gap']
    past, present = np.asarray(span[:2 * w - 1], number), np.asarray(span[g:g + 2 * w - 1], number)
    h1, h2 = hankel(past, w), hankel(present, w)
    a = np.asarray(a, number)
    if not np.any(present):
        return 0.0, 0.0, np.asarray(a, float)
    energy = np.sum(h2 * h2)
    if d['algorithm'] == 'svd':
        u, s, _ = np.linalg.svd(np.asarray(h2, float))
        mu, sigma2 = u[:, 0], s[0] ** 2
        if mu @ np.asarray(a, float) < 0:
            mu = -mu
    elif d['present'] == 'power':
        mu, sigma2 = a, number(0)
        for _ in range(d['products'] // 2):
            v = h2 @ (h2 @ mu)
            sigma2 = np.sqrt(np.sum(v * v))
            if sigma2 == 0:
                break
            mu = v / sigma2
    else:
        gram = d['operator'] == 'gram'
        q, t = project(operator(h2, d['operator']), a, min(d['products'] // 2 if gram else d['products'], w))
        theta, y = np.linalg.eigh(t)
        best = np.argmax(np.abs(theta))
        y = y[:, best] * (1 if y[0, best] >= 0 else -1)
        mu = np.sum(q * y[:, None], axis=0)
        mu = mu / np.sqrt(np.sum(mu * mu))
        sigma2 = abs(theta[best]) if gram else theta[best] ** 2
    if not np.any(past):
        z = 1.0
    elif d['algorithm'] == 'svd':
        u, s, _ = np.linalg.svd(np.asarray(h1, float))
        z = 1 - sum(float(mu @ u[:, i]) ** 2 for i in range(d['rank']) if s[i] > 2.0**-17 * s[0])
    else:
        _, t = project(operator(h1, d['operator']), mu, d['krylov'])
        theta, y = np.linalg.eigh(t)
        size = np.abs(theta)
        least = size.max() * (2.0**-34 if d['operator'] == 'gram' else 2.0**-17)
        z = 1 - sum(y[0, i] ** 2 for i in np.argsort(-size)[:d['rank']] if size[i] > least)
    after = mu + a0 * 1e-3
    after = after / np.sqrt(np.sum(after * after))
    return min(max(float(z), 0.0), 1.0), float(sigma2 / energy), np.asarray(after, float)


def well_posed(span, a, a0, d, rng):
    def away(other):
        return max(abs(z - other[0]), abs(share - other[1]), np.max(np.abs(after - other[2])))

    z, share, after = score(span, a, a0, d)
    allowed = 1e-9 if d['algorithm'] == 'svd' else 1e-7
    if d['algorithm'] == 'svd':
        w, g, r = d['window'], d['gap'], d['rank']
        for x, at in ((span[g:], 1), (span[:2 * w - 1], r)):
            s = np.linalg.svd(hankel(x, w))[1]
            if s[at - 1] > 2.0**-17 * s[0] and s[at - 1] - s[at] < 1e-3 * s[0]:
                return False
    for _ in range(3):
        moved = np.array(span) * (1 + 1e-13 * rng.standard_normal(len(span)))
        if away(score(moved, a, a0, d)) > allowed / 100:
            return False
    if d['algorithm'] == 'ika' and d['reorthogonalise'] == 'no':
        if away(score(span, a, a0, d, plain_lanczos, float)) > allowed / 10:
            return False
    return True


def signals(rng, w, g):
    n = 2 * w - 1 + g
    t = np.arange(n)
    late = t >= n - w - g // 2
    noise = rng.standard_normal(n)
    period = max(4.0, w / 2.4)
    yield 'sine', np.where(late, np.sin(2 * np.pi * t / (0.6 * period)), np.sin(2 * np.pi * t / period)) + 0.2 * noise
    ar = np.zeros(n)
    for i in range(1, n):
        ar[i] = (-0.5 if late[i] else 0.9) * ar[i - 1] + noise[i]
    yield 'autoregression', ar
    yield 'step', late * 1.0 + 0.3 * noise - 0.3
    yield 'spread', np.where(late, 3, 1) * noise
    yield 'offset', 20 + 0.1 * np.sin(2 * np.pi * t / np.where(late, 0.7 * period, period))
    yield 'two tones', np.sin(2 * np.pi * t / period) + 0.5 * np.sin(2 * np.pi * t / (0.37 * period) + 1)
    yield 'line', 0.25 * t - 3.0 * late
    yield 'past zero', np.where(t >= max(g, 2 * w - 1), np.sin(t), 0.0)
    yield 'present zero', np.where(t < min(g, 2 * w - 1), np.sin(t), 0.0)


def detectors(w, g):
    base = dict(algorithm='ika', present='ritz', operator='hankel', reorthogonalise='yes', window=w, gap=g, rank=3, krylov=10,
                products=6)
    for r in (1, 2, 3, 5, 12):
        if r < w:
            yield dict(base, algorithm='svd', rank=r, krylov=min(w, r + 1))
    for op in ('hankel', 'gram'):
        for present in ('ritz', 'power'):
            for r, k, p in ((3, 10, 6), (3, 16, 8), (1, 2, 2), (2, 4, 6), (3, 5, 6), (5, 18, 10), (12, 20, 40)):
                if r < k <= w and (p <= w or present == 'power'):
                    yield dict(base, operator=op, present=present, rank=r, krylov=k, products=p)
    yield dict(base, present='power', reorthogonalise='no', rank=min(3, w - 1), krylov=min(5, w))
    yield dict(base, reorthogonalise='no', rank=2, krylov=4)
    yield dict(base, operator='gram', reorthogonalise='no', rank=2, krylov=4)


def main():
    rng = np.random.default_rng(20070101)
    print('# Written by tests/backend/oracle.py; see there for the meaning of the lines.')
    kept = left_out = 0
    for w, g in ((4, 1), (5, 3), (8, 8), (13, 40), (24, 24), (31, 16), (50, 107), (96, 96)):
        for kind, x in signals(rng, w, g):
            name = f'{kind} w={w}'.replace(' ', '-')
            span = [float(f'{v:.6f}') for v in x]
            a0 = random_vector(name, w)
            a = a0 if kind in ('sine', 'line') else rng.standard_normal(w)
            a = a / np.sqrt(np.sum(a * a))
            lines = []
            for d in detectors(w, g):
                z, share, after = score(span, a, a0, d)
                if not well_posed(span, a, a0, d, rng):
                    left_out += 1
                    continue
                kept += 1
                probe = float(np.sum(after * np.cos(np.arange(w) + 1.0)))
                text = ','.join(f'{k}={v}' for k, v in d.items())
                lines.append(f'score {name} {text} {z:.12g} {share:.12g} {probe:.12g}')
            print('span', name, ' '.join(map(repr, span)))
            print('feedback', name, ' '.join(f'{v:.17g}' for v in a))
            print('\n'.join(lines))
    print(f'# {kept} cases; {left_out} left out as not well posed')


if __name__ == '__main__':
    main()
