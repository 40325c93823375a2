"""Points over HTTP from OpenTelemetry: OTLP/HTTP in protobuf and in JSON; the sensors of each kind of metric, and refusals."""
import gzip
import json
import math
import struct

import harness
import test_web_write
from harness import START
from test_web_remote_write import field, varint

DELTA, CUMULATIVE = 1, 2
KINDS = {'gauge': 5, 'sum': 7, 'histogram': 9, 'exponentialHistogram': 10, 'summary': 11}


def fixed(number, value):
    return varint(number << 3 | 1) + struct.pack('<Q', value & 2**64 - 1)


def any_value(value):
    if isinstance(value, bool):
        return field(2, int(value))
    return b'' if value is None else field(3, value) if isinstance(value, int) else field(4, value) if isinstance(value, float) else \
        field(5, b'') if isinstance(value, list) else field(1, value)


def attributes(number, pairs):
    return b''.join(field(number, field(1, k) + field(2, any_value(v))) for k, v in pairs)


class Protobuf:
    """Messages, encoded by hand. Points are dicts as in JSON, but with tags as pairs."""
    kind = 'application/x-protobuf'

    @staticmethod
    def point(kind, p):
        tags = {'gauge': 7, 'sum': 7, 'histogram': 9, 'exponentialHistogram': 1, 'summary': 7}[kind]
        flags = {'gauge': 8, 'sum': 8, 'histogram': 10, 'exponentialHistogram': 10, 'summary': 8}[kind]
        out = attributes(tags, p.get('tags', [])) + fixed(3, p.get('time', 0)) + field(flags, p.get('flags', 0))
        if 'count' in p:
            out += fixed(4, p['count'])
        if 'sum' in p:
            out += field(5, float(p['sum']))
        value = p.get('value')
        return out + (fixed(6, value) if isinstance(value, int) else b'' if value is None else field(4, value))

    @classmethod
    def request(cls, metrics, resource=()):
        out = b''
        for name, kind, points, *temporality in metrics:
            data = b''.join(field(1, cls.point(kind, p)) for p in points) + field(2, temporality[0] if temporality else 0)
            out += field(2, field(1, name) + field(2, 'what it is') + field(KINDS.get(kind, 12), data))
        return field(1, field(1, attributes(1, resource)) + field(2, field(1, field(1, 'a scope')) + out))

    @staticmethod
    def answer(body):
        """rejected, why."""
        got = {}
        if body:
            assert body[0] == 0o12 and body[1] == len(body) - 2 if body[1] < 128 else True
            inside = body[2 if body[1] < 128 else 3:]
            assert inside[0] == 0o10
            got = inside[1], inside[inside.index(0o22) + (2 if inside[inside.index(0o22) + 1] < 128 else 3):].decode()
        return got or (0, '')


class Json:
    kind = 'application/json'

    @staticmethod
    def value(v):
        if isinstance(v, bool):
            return {'boolValue': v}
        return {} if v is None else {'intValue': str(v)} if isinstance(v, int) else {'doubleValue': v} if isinstance(v, float) else \
            {'arrayValue': {}} if isinstance(v, list) else {'stringValue': v}

    @classmethod
    def attributes(cls, pairs):
        return [{'key': k, 'value': cls.value(v)} for k, v in pairs]

    @classmethod
    def point(cls, p):
        out = {'attributes': cls.attributes(p.get('tags', [])), 'timeUnixNano': str(p.get('time', 0)), 'flags': p.get('flags', 0)}
        out.update({k: str(p[k]) if k == 'count' else p[k] for k in ('count', 'sum') if k in p})
        if 'value' in p:
            out.update({'asInt': str(p['value'])} if isinstance(p['value'], int) else
                       {'asDouble': p['value'] if math.isfinite(p['value']) else 'NaN'})
        return out

    @classmethod
    def request(cls, metrics, resource=()):
        listed = [{'name': name, 'description': 'what it is',
                   kind: {'dataPoints': [cls.point(p) for p in points], 'aggregationTemporality': t[0] if t else 0}}
                  for name, kind, points, *t in metrics]
        return json.dumps({'resourceMetrics': [{'resource': {'attributes': cls.attributes(resource)},
                                                'scopeMetrics': [{'scope': {'name': 'a scope'}, 'metrics': listed}]}]}).encode()

    @staticmethod
    def answer(body):
        partial = json.loads(body).get('partialSuccess')
        return (int(partial['rejectedDataPoints']), partial['errorMessage']) if partial else (0, '')


class Otlp(test_web_write.Case):
    def export(self, daemon, form, metrics, resource=(), **headers):
        status, got, body = self.ask(daemon, '/v1/metrics', form.request(metrics, resource), Content_Type=form.kind, **headers)
        self.assertEqual((status, got['content-type']), (200, form.kind), body)
        return form.answer(body)

    def both(self):
        for form in Protobuf, Json:
            with self.subTest(form.__name__):
                yield form, self.web()

    def test_gauges_sums_histograms_and_summaries(self):
        for form, d in self.both():
            with d.client() as c:
                c.subscribe()
                tags = [('b', 'x y'), ('a', 7), ('c', True), ('d', 0.5), ('ö', 'a,b')]
                got = self.export(d, form, [
                    ('temperature', 'gauge', [{'time': START, 'value': 21.5, 'tags': tags}, {'time': START + 1, 'value': -3, 'tags': tags[::-1]}]),
                    ('requests', 'sum', [{'time': START, 'value': 2**53}], CUMULATIVE), ('bytes', 'sum', [{'time': START, 'value': 7.25}], DELTA),
                    ('latency', 'histogram', [{'time': START, 'count': 4, 'sum': 2.5, 'tags': [('k', 'v')]}], CUMULATIVE),
                    ('sizes', 'exponentialHistogram', [{'time': START, 'count': 5, 'sum': 8, 'tags': [('k', 'v')]}, {'time': START + 1, 'count': 6}], DELTA),
                    ('gc', 'summary', [{'time': START, 'count': 9, 'sum': 1.5}])],
                    [('host.name', 'h1'), ('process.pid', 123), ('service.name', 'shop'), ('service.instance.id', 'i-1'), ('list', [])])
                self.assertEqual(got, (0, ''))
                of = 'host.name=h1,service.instance.id=i-1,service.name=shop'
                series = f'temperature,{of},a=7,b=x\\ y,c=true,d=0.5,ö=a\\,b'
                want = {(series, START): 21.5, (series, START + 1): -3.0, (f'requests,{of}', START): 2.0**53, (f'bytes,{of}', START): 7.25,
                        (f'latency,{of},k=v count', START): 4.0, (f'latency,{of},k=v sum', START): 2.5, (f'sizes,{of},k=v count', START): 5.0,
                        (f'sizes,{of},k=v sum', START): 8.0, (f'sizes,{of} count', START + 1): 6.0, (f'gc,{of} count', START): 9.0,
                        (f'gc,{of} sum', START): 1.5}
                c.wait_results(len(want))
                self.assertEqual(self.results(c), want)

    def test_points_at_fault_are_told_and_the_rest_is_taken(self):
        for form, d in self.both():
            rejected, why = self.export(d, form, [
                ('good', 'gauge', [{'time': START, 'value': 1.0}]), ('untimed', 'gauge', [{'value': 1.0}]),
                ('neither', 'sum', [{'time': START, 'value': 1}]), ('neither', 'histogram', [{'time': START, 'count': 1}]), ('', 'gauge', [{'time': START, 'value': 1}]),
                ('list', 'gauge', [{'time': START, 'value': 1, 'tags': [('x', [])]}]), ('far', 'gauge', [{'time': 2**64 - 1, 'value': 1}]),
                ('many', 'gauge', [{'time': START, 'value': 1, 'tags': [(f'k{i}', 'v') for i in range(70)]}]),
                ('none', 'nothing', []), ('long', 'gauge', [{'time': START, 'value': 1, 'tags': [('x', 'y' * 600)]}]),
                ('good', 'gauge', [{'time': START + 1, 'value': 2.0, 'tags': []}])])
            self.assertEqual(rejected, 9)
            self.assertEqual(why, 'partial write: data point 2: it has no time; 9 data points refused, 0 points dropped, 2 points taken')
            self.assertEqual(d.status()['points']['in'], 2)

    def test_what_was_not_recorded_is_passed_over(self):
        for form, d in self.both():
            self.assertEqual(self.export(d, form, [('g', 'gauge', [{'time': START, 'flags': 1}, {'time': START, 'value': math.nan}, {'time': START}]),
                                                   ('h', 'histogram', [{'time': START, 'flags': 1, 'count': 0}], CUMULATIVE)]), (0, ''))
            self.assertEqual(d.status()['points']['in'], 0)

    def test_bodies_that_are_none(self):
        d = self.web()
        good = {form: form.request([('g', 'gauge', [{'time': START, 'value': 1.0}])]) for form in (Protobuf, Json)}
        for form, kind in [(Protobuf, Json.kind), (Json, Protobuf.kind)]:
            self.assertEqual(self.ask(d, '/v1/metrics', good[form], Content_Type=kind)[0], 400)
        for body in good[Protobuf][:-1], b'\xff' * 30:
            self.assertEqual(self.ask(d, '/v1/metrics', body, Content_Type=Protobuf.kind)[0], 400)
        for body in good[Json][:-1], b'[]', b'7', b'', b'{' * 5000, b'{"a":' * 5000:
            self.assertEqual(self.ask(d, '/v1/metrics', body, Content_Type=Json.kind)[0], 400, body[:20])
        for body in (b'{}', b'{"resourceMetrics":7}', b'{"resourceMetrics":[7,{},{"scopeMetrics":{"a":[]}},{"scopeMetrics":[{"metrics":"x"}]}]}'):
            self.assertEqual(self.ask(d, '/v1/metrics', body, Content_Type=Json.kind)[0], 200, body)
        self.assertEqual(self.ask(d, '/v1/metrics', b'{"a":"' + b'x' * (4 << 20) + b'"}', Content_Type=Json.kind)[0], 413)
        self.assertEqual(self.ask(d, '/v1/metrics', b'', Content_Type='text/plain')[0], 415)
        self.assertEqual(self.ask(d, '/v1/metrics', b'', Content_Type=Protobuf.kind)[0], 200)
        self.assertEqual(d.status()['points']['in'], 0)
        for form, body in good.items():
            self.assertEqual(self.ask(d, '/v1/metrics', gzip.compress(body), Content_Type=form.kind, Content_Encoding='gzip')[0], 200)
        self.assertEqual(d.status()['points']['in'], 2)

    def test_json_as_others_write_it(self):
        d = self.web()
        body = {'resourceMetrics': [{'scopeMetrics': [{'metrics': [
            {'name': 'a', 'sum': {'aggregationTemporality': 'AGGREGATION_TEMPORALITY_DELTA', 'isMonotonic': True, 'dataPoints': [
                {'timeUnixNano': START // 2**20 * 2**20, 'asInt': 5, 'attributes': [{'key': 'n', 'value': {'intValue': 3}}]}]}},
            {'name': 'h', 'histogram': {'aggregationTemporality': 2, 'dataPoints': [{'timeUnixNano': str(START), 'sum': 0.5}]}}]}]}]}
        with d.client() as c:
            c.subscribe()
            self.assertEqual(self.ask(d, '/v1/metrics', json.dumps(body).encode(), Content_Type='application/json; charset=utf-8')[0], 200)
            c.wait_results(3)
            self.assertEqual(self.results(c), {('a,n=3', START // 2**20 * 2**20): 5.0, ('h count', START): 0.0, ('h sum', START): 0.5})


if __name__ == '__main__':
    harness.main()
