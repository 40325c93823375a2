"""HTTP in tests: a daemon with a listener for it, requests, and a check of each answer against the daemon's openapi.json."""
import contextlib
import http.client
import json
import tempfile

import harness
from harness import START, STREAMS, WAIT, until

LISTENER = '[listen web]\nprotocol = http\naddress = 127.0.0.1:0\n'
NOT_DESCRIBED = [('/healthz', 'GET'), ('/metrics', 'GET'), ('/ping', 'HEAD')]
NO_SUCH = (404, 405, 421)  # statuses that any path may return

STEPS = '[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n'


def value(n):
    """A step every 30 points, each an alert."""
    return float(10 * ((n // 30) % 2) + (n * 7) % 5 * 0.125)


def matches(schema, value, all_schemas, where='answer'):
    """Fails if a value does not fit a schema; implements the part of JSON Schema that openapi.json uses."""
    if '$ref' in schema:
        return matches(all_schemas[schema['$ref'].rsplit('/', 1)[1]], value, all_schemas, where)
    kinds = {'object': dict, 'array': list, 'string': str, 'integer': int, 'number': (int, float), 'boolean': bool, 'null': type(None)}
    names = schema.get('type', [])
    if names:
        names = [names] if isinstance(names, str) else names
        assert any(isinstance(value, kinds[n]) and (n == 'boolean' or not isinstance(value, bool)) for n in names), (where, names, value)
    assert value in schema.get('enum', [value]), (where, value)
    for name in schema.get('required', []):
        assert name in value, (where, name)
    for name, one in schema.get('properties', {}).items():
        if name in value:
            matches(one, value[name], all_schemas, f'{where}.{name}')
    if schema.get('additionalProperties') is False:
        assert not set(value) - set(schema['properties']), (where, set(value) - set(schema['properties']))
    for i, one in enumerate(value if 'items' in schema else ()):
        matches(schema['items'], one, all_schemas, f'{where}[{i}]')


class Web(harness.Case):
    def web(self, extra='', **how):
        """A daemon with a listener for HTTP; `extra`: more keys of that listener."""
        return self.daemon(listeners=STREAMS + LISTENER + extra, **how)

    def connect(self, daemon):
        c = http.client.HTTPConnection('127.0.0.1', daemon.port['http tcp'], timeout=WAIT)
        self.addCleanup(c.close)
        return c

    def ask(self, daemon, path, body=None, method=None, **headers):
        """Status, headers and body, over a connection of its own. Underscores in names of headers are dashes."""
        with contextlib.closing(self.connect(daemon)) as c:
            return self.ask_of(c, path, body, method, **headers)

    def ask_of(self, c, path, body=None, method=None, **headers):
        method = method or ('GET' if body is None else 'POST')
        c.request(method, path, body, {k.replace('_', '-'): v for k, v in headers.items()})
        r = c.getresponse()
        got = r.read()
        self.answered(c, path.partition('?')[0], method, r, got)
        return r.status, r.headers, got

    def answered(self, c, path, method, r, body):
        """A hook for every answer; see Described."""

    def raw(self, daemon):
        """A socket to the listener."""
        s = daemon.connect('http tcp')
        self.addCleanup(s.close)
        return s

    def said(self, sock):
        """All bytes that the daemon sends until it closes the connection."""
        got = b''
        with contextlib.suppress(ConnectionResetError):
            while more := sock.recv(1 << 16):
                got += more
        return got

    def feed(self, daemon, sensors, points):
        with daemon.client() as c:
            handles = c.register(*(f's{i}' for i in range(sensors)))
            for k in range(points):
                c.send(harness.points(handles, [START + k * 10**9] * sensors, [float(k % 7)] * sensors))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')


class Described(Web):
    """Asserts that every answer fits openapi.json."""

    openapi = None

    def answered(self, c, path, method, r, body):
        if self.openapi is None:
            with contextlib.closing(http.client.HTTPConnection(c.host, c.port, timeout=WAIT)) as other:
                other.request('GET', '/api/v1/openapi.json')
                self.openapi = json.loads(other.getresponse().read())
        if path.startswith('/api/v1/sensors/'):
            path = '/api/v1/sensors/{name}'
        operation = self.openapi['paths'].get(path, {}).get(method.lower())
        if not operation or r.status in NO_SUCH:
            return self.assertTrue(r.status in NO_SUCH or (path, method) in NOT_DESCRIBED, (path, method, r.status))
        content = operation['responses'][str(r.status)].get('content')
        if not content:
            return self.assertEqual(body, b'')
        kind = r.headers['content-type'].partition(';')[0]
        self.assertIn(kind, content)
        if kind.endswith('json'):
            matches(content[kind]['schema'], json.loads(body), self.openapi['components']['schemas'])


class Api(Described):
    def web(self, extra='', durability='', **how):
        keys = 'threads = 1\n' + how.pop('keys', '')
        if durability:
            self.folder = tempfile.TemporaryDirectory()
            self.addCleanup(self.folder.cleanup)
            keys += f'durability = {durability}\nstate = {self.folder.name}\n'
        return super().web(extra, detectors=how.pop('detectors', STEPS), keys=keys, **how)

    def ask(self, d, path, body=None, method=None, **headers):
        """Status, headers, and the object of the answer's JSON."""
        if body is not None:
            headers.setdefault('Content_Type', 'application/json')
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        status, headers, answer = super().ask(d, '/api/v1/' + path, body, method, **headers)
        return status, headers, json.loads(answer)

    def step(self, d, names=('pump',)):
        """Feeds a wave that changes its frequency, until an alert of each sensor stands."""
        with d.client() as c:
            handles = c.register(*names)
            for k in range(400):
                c.send(harness.points(handles, [START + k * 10**9] * len(names), [value(k)] * len(names)))
                c.ping()
                until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
                if c.status()['alerts']['standing'] == len(names):
                    return k + 1
        self.fail('no alert')

    def standing(self, d, n=1):
        return until(lambda: (lambda a: a['alerts'] if len(a['alerts']) == n else None)(self.ask(d, 'alerts')[2]), f'{n} alerts to stand')
