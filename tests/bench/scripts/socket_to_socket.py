#!/usr/bin/env python3
"""Measures the whole road, from socket to socket: a real hankeld, and load generators (load_feed) and subscribers (load_tail)
as separate processes.

    tests/bench/scripts/socket_to_socket.py [--build DIR] [--backend cuda] [--size full|tiny] [--set KEY=VALUE]... [--json FILE] CASE...

For every case it writes a configuration, starts the daemon, registers the sensors, fills their windows, measures, and waits until
everything has ended. It checks that all counts agree exactly: what the generators sent, what the daemon counted and what the
subscribers received; and that each sensor got a result for each of its points, in order. Prints the measurement and where each
thread's time went; exits with 1 if a case fails or a count does not agree. `--size tiny` is for the test suite: the same with few
sensors, on any machine. Cases: see CASES below; `all` is all of them. Standard library only.
"""
import argparse
import json
import os
import re
import signal
import sys

from load_run import ALERTS, SCORED, Bench, Failed, Feed, Tail

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


# ---- cases: each yields the results of one or more runs ----

def size(bench, full, tiny):
    return tiny if bench.tiny else full


def eager(bench, **how):
    """A subscriber that polls for results without a pause, if there are cores for it, so that only the daemon is timed."""
    return Tail(busy=size(bench, 1, 0), **how)


def feed(bench, **how):
    """The generator of most cases."""
    if bench.tiny:
        how = {'threads': 1, 'connections': 2, 'frame': 512, **how}
    return Feed(**{'sensors': size(bench, 1000000, 1000), **how})


def throughput(bench):
    result = bench.run('throughput', [feed(bench)])
    bench.most = result['in_per_s'] if result['subscribers'][0]['gap_results'] else result['subscribers'][0]['rate']
    yield result


def each(bench):
    """A time and an f64 for each point, and sensors out of order: 20 bytes a point instead of 8."""
    yield bench.run('a time a point', [feed(bench, layout='each')], fill=3)


def svd(bench):
    yield bench.run('svd', [feed(bench, sensors=size(bench, 100000, 200))], detector={'algorithm': 'svd'})


def figure9(bench):
    """Figure 9 of K. Ueno and T. Suzumura's paper (SVD-SST through System S: 305 scores/s on 16 GPUs, nearly linear from one on)."""
    settings = {'algorithm': 'svd', 'window': 320, 'rank': 12, 'gap': 647} if not bench.tiny else {'algorithm': 'svd', 'rank': 5}
    yield bench.run('svd, w = 320, r = 12, g = 2w + 7', [feed(bench, sensors=size(bench, 100000, 50))], detector=settings, fill=3)


def line(bench):
    yield bench.run('line protocol', [feed(bench, protocol='line', sensors=size(bench, 100000, 1000))], fill=3)


def udp(bench):
    for rate in size(bench, (20e6, 50e6), (20000,)):
        yield bench.run(f'udp, 59 points a datagram, {rate * 1e-6:g} M/s', [feed(bench, protocol='binary-udp', frame=59, rate=rate)], fill=3)


def udp_flood(bench):
    """Sends faster than the daemon can read, and counts what is lost."""
    for frame in 59, 1:
        yield bench.run(f'udp, flooded, {frame} points a datagram', [feed(bench, protocol='binary-udp', frame=frame)], fill=3)


def udp_single(bench):
    rate = size(bench, 1e6, 2000)
    load = feed(bench, protocol='binary-udp', frame=1, rate=rate, sensors=size(bench, 100000, 200))
    yield bench.run('udp, 1 point a datagram', [load], fill=3)


def line_udp(bench):
    rate = size(bench, 4e6, 5000)
    yield bench.run('line protocol, udp', [feed(bench, protocol='line-udp', frame=28, rate=rate, sensors=size(bench, 100000, 1000))],
                    fill=3)


def alerts(bench):
    yield bench.run('alerts only', [feed(bench)], [Tail(what=ALERTS)])


def min_score(bench):
    yield bench.run('scores over .9 only', [feed(bench)], [Tail(what=SCORED | ALERTS, min_score=0.9)])


def latency(bench):
    """Latency at 10, 50 and 80 % of the throughput, which is measured first unless --most gives it."""
    if not bench.most:
        yield from throughput(bench)
    for part in bench.options.parts:
        load = feed(bench, rate=part / 100 * bench.most, frame=size(bench, 512, 64))
        yield bench.run(f'latency, {part:g} % of {bench.most * 1e-6:.3g} M/s', [load], [eager(bench)], fill=3)


def lone(bench):
    yield bench.run('one sensor, 1 kHz', [Feed(sensors=1, connections=1, threads=1, frame=1, rate=1000)], [eager(bench)])


def sensors(bench):
    """The cost of a point by the number of sensors. Windows are filled with every fourth sample sent, the others filled in."""
    counts = bench.options.sensors or size(bench, [10000, 100000, 1000000, 10000000], [100, 1000])
    for n in counts:
        yield bench.run(f'{n} sensors', [feed(bench, sensors=n)], fill=3)


def connections(bench):
    """Many connections, each with few sensors, at an even rate: at full speed, ticks of one connection would pile up in
    its socket."""
    rate = size(bench, 80e6, 20000)
    counts = bench.options.connections or size(bench, [10, 1000, 10000], [2, 100])
    for n in counts:
        yield bench.run(f'{n} connections', [feed(bench, connections=n, buffer=65536, burst=8192, frame=1024, rate=rate)], fill=3)


def subscribers(bench):
    """Many subscribers to one sensor each, and some to everything."""
    n, rate = size(bench, 1000, 20), size(bench, 10e6, 10000)
    yield bench.run(f'{n} subscribers to a sensor each', [feed(bench, rate=rate)], [Tail(), Tail(subscribers=n, one='s')], fill=3)
    yield bench.run('4 subscribers to everything', [feed(bench)], [Tail() for _ in range(4)], fill=3)


def quarters(bench):
    """Four generators, and four subscribers, each to all sensors of one generator, because a single subscriber would be
    the limit."""
    n = size(bench, 250000, 250)
    feeds = [feed(bench, sensors=n, connections=size(bench, 4, 1), threads=1, prefix=prefix) for prefix in 'abcd']
    yield bench.run('four of each', feeds, [Tail(of=i) for i in range(4)])


def example(bench):
    """The detectors of conf/hankeld.conf, with all that they keep of a sensor full: 5,000 points of it come first."""
    with open(os.path.join(ROOT, 'conf/hankeld.conf')) as f:
        section = re.search(r'^\[detector default\]\n((?:\w.*\n)+)', f.read(), re.MULTILINE)[1]
    settings = dict(re.split(r' *= *', line, maxsplit=1) for line in section.splitlines())
    load = feed(bench, sensors=size(bench, bench.options.sensors or [262144], [20])[0], rate=size(bench, 0, 2000))
    yield bench.run('the example configuration', [load], detector={'window': None, 'stride': None, **settings}, warm=int(settings['novelty.resident']) + 200,
                    series=len(settings['algorithm'].split(',')))


def fairness(bench):
    """Latencies of connections at a low rate, alone and beside one that floods."""
    n = size(bench, 100, 5)
    polite = Feed(sensors=10 * n, connections=n, threads=1, frame=10, rate=size(bench, 100000, 500), prefix='p')
    flood = Feed(sensors=size(bench, 100000, 500), connections=1, threads=1, frame=4096, prefix='f')
    yield bench.run('polite connections alone', [polite], [eager(bench, of=0)])
    yield bench.run('polite beside a flood', [polite, flood], [eager(bench, of=0), Tail(of=1)])


CASES = {f.__name__: f for f in (throughput, each, svd, figure9, line, udp, udp_flood, udp_single, line_udp, alerts, min_score, latency, lone,
                                 sensors, connections, subscribers, quarters, example, fairness)}


def show(result):
    first, feeders = result['subscribers'][0], result['feeders']
    got, left_out = (sum(s[key] for s in result['subscribers']) for key in ('marked', 'gap_results'))
    print(f"{result['case']}: {result['sensors']} sensors")
    print(f"  {result['in_per_s'] * 1e-6:.3f} M points/s in, {result['scored_per_s'] * 1e-6:.3f} M/s scored, {sum(s['rate'] for s in result['subscribers']) * 1e-6:.3f} M/s "
          f"delivered; {result['points_a_batch']} points a batch")
    print(f"  {sum(f['sent'] for f in feeders)} sent, {result['lost']} lost, {got} results, {left_out} left out; "
          f"started in {result['start_s']} s, registered in {result['setup_s']} s, warm in {result['warm_s']} s, all over after {result['took_s']} s")
    if first['timed'] and any(f['frames'] for f in feeders):
        quantiles = ', '.join(f'{name} {first[key]:.0f}' for name, key in
                              (('p50', 'p50_us'), ('p90', 'p90_us'), ('p99', 'p99_us'), ('p99.9', 'p999_us'), ('most', 'most_us')))
        print(f"  latency, us: {quantiles}; 99 % of the frames left within {max(f['late_p99_us'] for f in feeders):.0f} us of when they were due")
    start, registered, warm = (result[key] for key in ('resident_start', 'resident_registered', 'resident_warm'))
    print(f"  resident {start * 1e-6:.0f} MB at the start, {registered * 1e-6:.0f} registered ({(registered - start) / result['sensors']:.0f} B a "
          f'sensor), {warm * 1e-6:.0f} warm')
    for name, rows in result['threads'].items():
        cores = sum(percent for _, percent, _ in rows) / 100
        print(f"  {name}: {cores:.2f} cores, {result['in_per_s'] * 1e-6 / max(cores, 0.001):.1f} M points a core and second: " +
              ', '.join(f'{comm} {percent:.0f} %' + (f' ({100 * share:.0f} kernel)' if percent >= 5 else '') for comm, percent, share in rows[:14]))
    for key in ('latency', 'batches'):
        if key in result['status']:
            print(f'  {key}: {json.dumps(result["status"][key])}')
    for line in result['log']:
        print(f'  log: {line}')
    for fault in result['faults']:
        print(f'  FAULT: {fault}')
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--backend', default='cuda', choices=['cuda', 'cpu'])
    parser.add_argument('--size', default='full', choices=['full', 'tiny'])
    parser.add_argument('--seconds', type=float, default=3, help='of the measured part')
    parser.add_argument('--most', type=float, default=0, help='points a second that `latency` takes as the whole')
    parser.add_argument('--parts', type=lambda s: [float(x) for x in s.split(',')], default=[10, 50, 80], help='per cent of it')
    parser.add_argument('--sensors', type=lambda s: [int(x) for x in s.split(',')], help='of the case `sensors`')
    parser.add_argument('--connections', type=lambda s: [int(x) for x in s.split(',')], help='of the case `connections`')
    parser.add_argument('--set', action='append', default=[], metavar='KEY=VALUE', help='a key of [daemon]')
    parser.add_argument('--profile', help='a command for the middle of the measured part; {pid} is the daemon')
    parser.add_argument('--json', help='file for the results')
    parser.add_argument('cases', nargs='*', default=['throughput'], metavar='CASE', help=' '.join(CASES))
    options = parser.parse_args()
    names = list(CASES) if options.cases == ['all'] else options.cases
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f'no such case: {", ".join(unknown)}')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    bench, results, failed = Bench(options), [], False
    for name in names:
        try:
            for result in CASES[name](bench):
                show(result)
                results.append(result)
                failed |= bool(result['faults'])
        except Failed as why:
            print(f'{name}: FAILED: {why}')
            failed = True
    if options.json:
        with open(options.json, 'w') as f:
            json.dump(results, f)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
