#!/usr/bin/env python3
"""Measures on TSSB, with the given windows, whether it helps to estimate the instant of a graph's alert again while the new
segment grows.

    tests/bench/scripts/instants.py HANKEL TSSB-FOLDER [--tried]

First it compares hankel's own instants: `raised` with `corrected`, of alerts that have both. With --tried it also computes other estimates offline.

For each alert of `hankel replay` near a labelled change, some windows later, it takes the last 1,500 samples, or those since the alert
before, and searches the best split near the first estimate:
  f1, z      by the macro-F1 or the statistic of the profile over exact neighbours of all these samples, within five windows
  ar R       by two linear predictors (cpu/rules/instant.h), within R windows
  features R by a Gaussian likelihood ratio of windowed features (mean, spread, spread of the differences, autocorrelation at w/4), within R
Needs numpy and numba."""
import json
import subprocess
import sys

import numba as nb
import numpy as np

RESIDENT = 1500


@nb.njit(cache=True)
def exact_profile(x, w, k, lv, ms):
    """Macro-F1 and z of every split s, with exact neighbours over all of x."""
    n=len(x); m=n-w+1; ex=max(1,w//2)
    mu=np.zeros(m);sd=np.zeros(m)
    S=np.std(x)
    for c in range(m):
        mu[c]=np.mean(x[c:c+w]); sd[c]=max(np.std(x[c:c+w]),1e-3*S)
    knn=np.full((m,k),-1,np.int64); kd=np.full((m,k),-1e30)
    for l in range(ex,m):
        q=0.0
        for t in range(w): q+=x[l+t]*x[t]
        for c in range(l,m):
            j=c-l
            if c>l: q+=x[c+w-1]*x[j+w-1]-x[c-1]*x[j-1]
            sim=(q/w-mu[j]*mu[c])/(sd[j]*sd[c])-lv*(np.log(sd[c])-np.log(sd[j]))**2
            if sim>kd[c,k-1]:
                u=k-1
                while u>0 and kd[c,u-1]<sim: kd[c,u]=kd[c,u-1];knn[c,u]=knn[c,u-1];u-=1
                kd[c,u]=sim;knn[c,u]=j
            if sim>kd[j,k-1]:
                u=k-1
                while u>0 and kd[j,u-1]<sim: kd[j,u]=kd[j,u-1];knn[j,u]=knn[j,u-1];u-=1
                kd[j,u]=sim;knn[j,u]=c
    A=np.zeros(m+2,np.int64);B=np.zeros(m+2,np.int64)
    med=(k+1)//2
    for i in range(m):
        srt=np.sort(knn[i]); h=max(srt[k-med],-1)
        if h>i: A[i+1]+=1;A[h+1]-=1
        else: B[max(h+1,0)]+=1;B[i+1]-=1
    f=np.full(m,-1.0); z=np.full(m,-1e9); ca=0; cb=0
    for s in range(m):
        ca+=A[s];cb+=B[s]
        if s>=ms and m-s>=ms:
            c01=ca;c10=cb;c00=s-c01;c11=(m-s)-c10
            f[s]=c00/(2*c00+c01+c10+1e-9)+c11/(2*c11+c01+c10+1e-9)
            pp=(c11+c01)/m
            z[s]=(c11/(m-s)-c01/s)/np.sqrt(pp*(1-pp)*(1.0/s+1.0/(m-s))+1e-9)
    return f,z

def ar_cut(x, w, lo, hi, lags=None):
    """likeliest cut among lo..hi: two linear predictors (instant.h), on all of x."""
    n=len(x); x=(x-x.mean())/(x.std()+1e-12)
    lag=[1]
    for q in (16,8,4): lag.append(max(w//q, lag[-1]+1))
    L=lag[-1]
    R=np.column_stack([np.ones(n-L)]+[x[L-l:n-l] for l in lag]+[x[L:]])
    O=np.einsum('ij,ik->ijk',R,R).reshape(len(R),-1)
    C=np.vstack([np.zeros(O.shape[1]),np.cumsum(O,0)])
    p=R.shape[1]
    def err(S,ridge):
        S=S.reshape(p,p).copy(); A=S[:-1,:-1]+ridge*np.eye(p-1); b=S[:-1,-1]
        return max(S[-1,-1]-b@np.linalg.solve(A,b),0.0)
    tot=C[-1]; noise=err(tot,1e-6*n)/len(R)+1e-9; ridge=10*noise+1e-6
    def ll(S,m):
        h=.5*m+1; return -h*np.log((noise+.5*err(S,ridge))/h)
    best=None
    for c in range(max(lo,L+2*1),min(hi,n-2)+1):
        i=c-L
        v=ll(C[i],i)+ll(tot-C[i],len(R)-i)
        if best is None or v>best[0]: best=(v,c)
    return best[1] if best else None

def feat_cut(x, w, lo, hi):
    """likeliest cut of windowed features (mean, log sd, log sd of the difference, lag-w/4 correlation) at non-overlapping half windows; Gaussian, diagonal."""
    m=len(x)-w+1
    sw=np.lib.stride_tricks.sliding_window_view(x,w)
    S=x.std()+1e-12
    sd=np.maximum(sw.std(1),1e-3*S)
    d=np.diff(x); dw=np.lib.stride_tricks.sliding_window_view(d,w-1)
    sdd=np.maximum(dw.std(1),1e-3*S)
    q=max(1,w//4)
    a=sw[:,:-q]-sw.mean(1,keepdims=True); b=sw[:,q:]-sw.mean(1,keepdims=True)
    ac=(a*b).mean(1)/sd**2
    F=np.column_stack([sw.mean(1)/S,np.log(sd),np.log(sdd),ac])
    best=None
    cs=np.vstack([np.zeros(4),np.cumsum(F,0)]);c2=np.vstack([np.zeros(4),np.cumsum(F*F,0)])
    for c in range(max(lo,w),min(hi,len(x)-w)+1):
        # nodes that lie wholly before c, wholly behind
        l1=c-w+1; r0=c
        n1=l1;n2=m-r0
        if n1<5 or n2<5: continue
        v1=c2[l1]/n1-(cs[l1]/n1)**2; v2=(c2[m]-c2[r0])/n2-((cs[m]-cs[r0])/n2)**2
        tt=(n1+n2)
        va=((c2[l1]+c2[m]-c2[r0])/tt-((cs[l1]+cs[m]-cs[r0])/tt)**2)
        v=np.sum(tt*np.log(va+1e-6)-n1*np.log(v1+1e-6)-n2*np.log(v2+1e-6))/w
        if best is None or v>best[0]: best=(v,c)
    return best[1] if best else None

def alerts(hankel, path, w, keys=''):
    out = subprocess.run([hankel, 'replay', '--backend', 'cpu', '--detector', f'algorithm=graph,window={w}{keys}', '--format', 'jsonl', path],
                         capture_output=True, text=True, check=True).stdout
    events = [json.loads(line) for line in out.splitlines() if line.startswith('{"event"')]
    corrected = {e['id']: e['instant'] // 10**9 for e in events if e['event'] == 'corrected'}
    return [(e['time'] // 10**9, e['instant'] // 10**9, corrected.get(e['id'])) for e in events if e['event'] == 'raised']


def again(x, b, c, w):
    """Every method's estimate from the samples x, of which the first is number b; c: the first estimate."""
    found = {}
    if len(x) >= 11 * w:
        f, z = exact_profile(np.ascontiguousarray((x - x.mean()) / (x.std() + 1e-12)), w, 3, .2, 2 * w)
        near = np.flatnonzero(np.abs(np.arange(len(f)) + b - c) <= 5 * w)
        if len(near) and f[near].max() > 0:
            found['f1'], found['z'] = b + near[np.argmax(f[near])], b + near[np.argmax(z[near])]
    for reach in (1, 2, 5):
        for name, cut in (('ar', ar_cut), ('features', feat_cut)):
            at = cut(x, w, c - b - reach * w, c - b + reach * w)
            if at is not None:
                found[f'{name} {reach}'] = b + at
    return found


def recordings(tssb):
    for line in open(f'{tssb}/desc.txt'):
        name, *numbers = line.strip().split(',')
        yield name, max(8, int(numbers[0])), np.array([int(v) for v in numbers[1:]]), np.loadtxt(f'{tssb}/{name}.txt')


def change_near(changes, c, w, n):
    """The labelled change that an instant is near; None: there is none."""
    off = np.abs(changes - c) if len(changes) else [np.inf]
    return changes[np.argmin(off)] if min(off) <= max(5 * w, .05 * n) else None


def told(hankel, tssb):
    for keys in '', ',roughness=0.85':
        errors, n = [], 0
        for name, w, changes, x in recordings(tssb):
            for _, first, later in alerts(hankel, f'{tssb}/{name}.txt', w, keys):
                change = change_near(changes, first, w, len(x))
                n += change is not None
                if change is not None and later is not None:
                    errors.append((abs(first - change) / w, abs(later - change) / w))
        first, later = np.array(errors).T
        print(f'algorithm=graph{keys}: {n} alerts near a change, {len(errors)} corrected. Error in windows: raised median {np.median(first):.2f}, mean'
              f' {first.mean():.2f}, half a window at most {(first <= .5).mean():.0%}; corrected {np.median(later):.2f}, {later.mean():.2f},'
              f' {(later <= .5).mean():.0%}; {(later < first - .1).sum()} better, {(later > first + .1).sum()} worse by over a tenth')


def main():
    hankel, tssb, *tried = sys.argv[1:]
    told(hankel, tssb)
    if not tried:
        return
    errors = {}  # by method and delay: (first estimate's, the later one's), windows
    for name, w, changes, x in recordings(tssb):
        found = alerts(hankel, f'{tssb}/{name}.txt', w)
        for i, (at, c, _) in enumerate(found):
            change = change_near(changes, c, w, len(x))
            if change is None:
                continue
            for delay in (0, 1, 2, 5, 10):
                end = at + delay * w
                if end >= len(x) or (i + 1 < len(found) and end > found[i + 1][0]):
                    continue
                begin = max(found[i - 1][1] if i else 0, end - RESIDENT + 1)
                for method, estimate in again(x[begin:end + 1], begin, c, w).items():
                    errors.setdefault((method, delay), []).append((abs(c - change) / w, abs(estimate - change) / w))
        print(name, file=sys.stderr, flush=True)
    print('method      windows  alerts   error in windows: first estimate      later one     better  worse (by over a tenth)')
    print('             later                   median    mean       median    mean')
    for (method, delay), e in sorted(errors.items()):
        first, later = np.array(e).T
        print(f'{method:11s} {delay:7d} {len(e):7d} {np.median(first):19.2f} {first.mean():7.2f} {np.median(later):12.2f} {later.mean():7.2f}'
              f' {(later < first - .1).sum():9d} {(later > first + .1).sum():6d}')


if __name__ == '__main__':
    main()
