"""Points over HTTP from Prometheus' remote write: the points of its samples, refusals, and the real Prometheus."""
import contextlib
import http.client
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import unittest

import harness
import test_web_write
from harness import START, WAIT, until

MS = 10**6
STALE = struct.unpack('<d', struct.pack('<Q', 0x7ff0000000000002))[0]


def varint(n):
    out = b''
    n &= 2**64 - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """bytes or text, a double, or a whole number."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack('<d', value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def write_request(*series):
    """series: (labels, [(value, ms)...])"""
    return b''.join(field(1, b''.join(field(1, field(1, k) + field(2, v)) for k, v in labels) +
                          b''.join(field(2, field(1, float(value)) + field(2, ms)) for value, ms in samples))
                    for labels, samples in series)


def snappy(data):
    """Snappy's block format, with literals only."""
    return varint(len(data)) + b''.join(b'\xf4' + struct.pack('<H', len(data[at:at + 60000]) - 1) + data[at:at + 60000]
                                        for at in range(0, len(data), 60000))


class RemoteWrite(test_web_write.Case):
    def push(self, daemon, *series, **headers):
        return self.push_bytes(daemon, snappy(write_request(*series)), **headers)

    def push_bytes(self, daemon, data, **headers):
        headers = {'Content_Encoding': 'snappy', 'Content_Type': 'application/x-protobuf', 'X-Prometheus-Remote-Write-Version': '0.1.0', **headers}
        return self.write(daemon, data, '/api/v1/push', **headers)

    def test_names_times_and_values(self):
        d = self.web()
        at = START // MS
        with d.client() as c:
            c.subscribe()
            self.assertEqual(self.push(d, ([('__name__', 'up'), ('instance', 'a:9100'), ('job', 'x y')], [(1, at), (0, at + 15)]),
                                       ([('a', 'first'), ('__name__', 'named_later'), ('empty', '')], [(1e300, at)]),
                                       ([('__name__', 'bare')], [(-0.1, at - 5)]), ([('__name__', 'none')], []),
                                       ([('__name__', 'odd'), ('path', 'a,b=c\\d\\'), ('u', 'ö')], [(2, at)])), (204, None))
            c.wait_results(5)
            self.assertEqual(self.results(c), {
                ('up,instance=a:9100,job=x\\ y', START // MS * MS): 1.0, ('up,instance=a:9100,job=x\\ y', (at + 15) * MS): 0.0,
                ('named_later,a=first', at * MS): 1e300, ('bare', (at - 5) * MS): -0.1, ('odd,path=a\\,b\\=c\\d,u=ö', at * MS): 2.0})
        self.assertEqual(d.status()['lines']['bad'], 0)

    def test_stale_markers_and_other_samples_that_are_no_numbers_are_passed_over(self):
        d = self.web()
        at = START // MS
        self.assertEqual(self.push(d, ([('__name__', 'up')], [(1, at), (STALE, at + 1), (math.nan, at + 2), (math.inf, at + 3), (-math.inf, at + 4)])),
                         (204, None))
        status = d.status()
        self.assertEqual((status['points']['in'], status['points']['rejected'], status['lines']['bad']), (1, 0, 0))

    def test_samples_out_of_order_are_late(self):
        d = self.web()
        at = START // MS
        self.assertEqual(self.push(d, ([('__name__', 'up')], [(1, at), (2, at + 1000), (3, at + 500), (4, at + 2000)])), (204, None))
        self.assertEqual(self.push(d, ([('__name__', 'up')], [(2, at + 1000), (5, at + 3000)])), (204, None))
        points = d.status()['points']
        self.assertEqual((points['in'], points['late']), (6, 2))

    def test_samples_at_fault_are_told_and_the_rest_is_taken(self):
        d = self.web()
        at = START // MS
        status, said = self.push(d, ([('__name__', 'good')], [(1, at)]), ([('job', 'no name')], [(1, at), (2, at + 1)]),
                                 ([('__name__', '#x')], [(1, at)]), ([('__name__', 'long'), ('x', 'y' * 600)], [(1, at)]),
                                 ([('__name__', 'line'), ('x', 'a\nb value=7')], [(1, at)]), ([('__name__', 'nul'), ('x', b'a\0b')], [(1, at)]),
                                 ([('__name__', 'bytes'), ('x', b'\xff\xfe')], [(1, at)]), ([('__name__', 'far')], [(1, 2**62)]),
                                 ([('__name__', 'good')], [(2, at + 1)]))
        self.assertEqual((status, said['taken'], said['refused'], said['dropped']), (400, 2, 8, 0))
        self.assertEqual([f['line'] for f in said['faults']], [2, 3, 4, 5, 6, 7, 8, 9])
        self.assertTrue(said['detail'].startswith('partial write: sample 2: its metric has no name'), said['detail'])
        self.assertEqual(d.status()['points']['in'], 2)

    def test_bodies_that_are_none(self):
        d = self.web()
        good = write_request(([('__name__', 'up')], [(1, START // MS)]))
        for bad in good, snappy(good)[:-1], snappy(good[:-1]), snappy(b'nonsense'), b'\xff' * 20, snappy(good)[:3], b'\x05\x01\x00':
            self.assertEqual(self.push_bytes(d, bad)[0], 400, bad)
        self.assertEqual(self.push_bytes(d, good, Content_Encoding='identity')[0], 204)
        self.assertEqual(self.push_bytes(d, snappy(b''))[0], 204)
        self.assertEqual(self.push_bytes(d, varint(40 << 20) + b'\xf0\x01')[0], 413)  # claims to contain 40 MiB
        for kind in 'application/json', 'application/x-protobuf;proto=io.prometheus.write.v2.Request':
            self.assertEqual(self.push_bytes(d, snappy(good), Content_Type=kind)[0], 415)
        self.assertEqual(d.status()['points']['in'], 1)

    def test_the_library_is_missing_and_comes(self):
        """The sender keeps its points meanwhile, as a code of 500 or more asks it to."""
        with tempfile.TemporaryDirectory() as folder:
            damaged = os.path.join(folder, 'libsnappy.so.1')
            open(damaged, 'w', encoding='utf-8').close()
            d = self.web(environment={'LD_LIBRARY_PATH': folder})
            one = ([('__name__', 'up')], [(1, START // MS)])
            status, said = self.push(d, one)
            self.assertEqual((status, said['detail']), (503, 'snappy needs libsnappy.so.1, which cannot be loaded here'))
            os.remove(damaged)
            self.assertEqual(self.push(d, one), (204, None))

    def test_what_grows_when_it_is_unpacked_is_bounded(self):
        d = self.web()
        before = d.rss()
        many = field(1, b'') * (7 << 20)  # each takes some bytes here, and many as a message
        self.assertEqual(self.push_bytes(d, snappy(many))[0], 413)
        at, most = START // MS, 10000 if harness.TSAN else 100000
        label = [('__name__', 'x' * 500)]
        self.assertEqual(self.push(d, (label, [(k, at + k) for k in range(140000)]))[0], 413)  # 70 MB of lines
        self.assertEqual(self.push(d, (label, [(k, at + k) for k in range(most)]))[0], 204)
        self.assertEqual(d.status()['points']['in'], most)
        self.assertLess(d.rss() - before, 600 << 20)

    @unittest.skipUnless(shutil.which('prometheus'), 'prometheus is not here')
    def test_the_real_prometheus(self):
        d = self.web()
        web, port = d.port['http tcp'], harness.free_port()
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, 'prometheus.yml')

            def configure(targets):
                with open(config, 'w') as f:
                    f.write(f'''global: {{scrape_interval: 1s, external_labels: {{cluster: test}}}}
scrape_configs:
- {{job_name: hankeld, static_configs: [{{targets: [{targets}]}}]}}
remote_write:
- {{url: "http://127.0.0.1:{web}/api/v1/push", queue_config: {{batch_send_deadline: 1s}}}}
''')
            configure(f'"127.0.0.1:{web}"')
            with open(os.path.join(folder, 'log'), 'w+') as log:
                prometheus = subprocess.Popen(['prometheus', f'--config.file={config}', f'--storage.tsdb.path={folder}/data',
                                               f'--web.listen-address=127.0.0.1:{port}'], stderr=log, stdout=log)
                try:
                    up = f'up,cluster=test,instance=127.0.0.1:{web},job=hankeld'
                    with d.client() as c:
                        c.subscribe(glob='up,*')
                        c.wait_results(3)
                        self.assertEqual({(name, value) for (name, _), value in self.results(c).items()}, {(up, 1.0)})
                    sensors = json.loads(self.ask(d, '/api/v1/sensors?limit=10000')[2])['sensors']
                    names = {s['name'] for s in sensors}
                    self.assertIn(f'hankel_points_in_total,cluster=test,instance=127.0.0.1:{web},job=hankeld', names)
                    self.assertTrue(any(n.startswith('hankel_latency_seconds_bucket,') and ',le=+Inf,' in n for n in names))
                    configure('')  # a target that goes away leaves stale markers
                    prometheus.send_signal(signal.SIGHUP)
                    before = d.status()['points']['in']
                    until(lambda: self.pushed(port)['prometheus_remote_storage_samples_total'] > before, 'stale markers to be sent')
                    said = self.pushed(port)
                    self.assertEqual(said['prometheus_remote_storage_samples_failed_total'], 0)
                    status = d.status()
                    self.assertEqual((status['lines']['bad'], status['points']['late'], status['points']['dropped']), (0, 0, 0))
                finally:
                    prometheus.terminate()
                    prometheus.wait(WAIT)
                log.seek(0)
                self.assertNotIn('level=error', log.read())

    def pushed(self, port):
        with contextlib.closing(http.client.HTTPConnection('127.0.0.1', port, timeout=WAIT)) as c:
            c.request('GET', '/metrics')
            lines = c.getresponse().read().decode().splitlines()
        return {line.partition('{')[0]: float(line.rpartition(' ')[2]) for line in lines if line.startswith('prometheus_remote_storage_samples')}


if __name__ == '__main__':
    harness.main()
