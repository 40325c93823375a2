"""Lines of models over HTTP, whose answers must fit openapi.json; and models in the status."""
import json
import math
import os
import subprocess
import tempfile

import harness
import test_model
import test_model_matrix
import web
from harness import SECOND, START, until

ROWS, BIAS = 400, 320


class Lines(test_model.Case, web.Api):
    def daemon_of(self, field, text):
        """A daemon with a field of this model."""
        return self.daemon(test_model.sections(field, self.file('t.model', text)), listeners=harness.STREAMS + web.LISTENER, keys='threads = 1\nmax_ahead = off\n')

    def test_lines(self):
        head, pipes = test_model.LINE[:test_model.LINE.index('edge')], test_model.LINE[test_model.LINE.index('edge'):]
        d = self.daemon_of('trunk', head + 'line north\n' + pipes + 'line "south\n' + pipes.replace('t/', 't/s/'))
        self.assertEqual(self.ask(d, 'lines')[2], {'models': [], 'count': 0})
        self.assertEqual(d.status()['models'], {'lines': 0, 'running': 0, 'checks': 0, 'poor': 0})
        # a steady line, and a flow sensor that reads 60 m3/h too much from BIAS on; of the second line one boundary alone
        self.file('t.model', test_model.LINE)
        names, *rows = [line.split(',')[1:] for line in self.simulated('--hours', str(ROWS / 3600), '--moves', '5m', '--fault', f'{BIAS}s,t/c/q,bias,60').splitlines()]
        self.put(d, [*names, 't/s/a/p'], [[float(v) for v in row] + [50.0] for row in rows])
        answer = self.ask(d, 'lines')[2]
        model, = answer['models']
        line = model.pop('line')
        self.assertEqual(model, {'name': 'trunk#field', 'section': 'trunk', 'count': 2, 'lines': ['north', '"south']})
        self.assertEqual((line['number'], line['name'], line['running'], line['units'], line['length'], len(line['points'])),
                         (0, 'north', True, {'pressure': 'bar', 'flow': 'm3/h'}, 10000, 11))
        self.assertEqual([(s['name'], s['kind'], s['role'], s['place'], 'departs' in s) for s in line['sensors']],
                         [('t/a/p', 'pressure', 'boundary', 0, False), ('t/c/p', 'pressure', 'boundary', 10000, False), ('t/a/q', 'flow', 'check', 0, True),
                          ('t/c/q', 'flow', 'check', 10000, True), ('t/b/p', 'pressure', 'check', 6000, True)])
        for s, value in zip(line['sensors'], rows[-1]):
            self.assertAlmostEqual(s['value'], float(value), delta=1e-6 * abs(float(value)))
        for place, kind in ((0, 1), (10000, 1), (6000, 1), (0, 2)):
            seen, = (p[kind] for p in line['points'] if p[0] == place)
            sensor = next(s for s in line['sensors'] if s['place'] == place and s['kind'] == ('pressure', 'flow')[kind - 1])
            self.assertAlmostEqual(seen, sensor['model'], delta=1e-5 * seen)
        self.assertEqual((line['cause']['kind'], line['cause']['sensor']), ('sensor', 't/c/q'))
        self.assertTrue(20 < line['cause']['size'] < 70 and 0.9 < line['cause']['share'] <= 1, line['cause'])
        other = self.ask(d, 'lines?line=1&glob=tr*&limit=5')[2]['models'][0]['line']
        self.assertEqual((other['number'], other['name'], other['running'], other['points']), (1, '"south', False, []))
        self.assertEqual({s['name']: s.get('value') for s in other['sensors']}['t/s/a/p'], 50)
        self.assertEqual(self.ask(d, 'lines?line=2')[2]['models'], [])
        for wrong in 'line=-1', 'line=north', 'limit=0':
            self.assertEqual(self.ask(d, 'lines?' + wrong)[0], 400, wrong)
        models = d.status()['models']
        self.assertEqual((models['lines'], models['running'], models['checks']), (2, 1, 3))
        self.assertTrue(0 <= models['explained'] <= 1, models)
        said = subprocess.run([harness.HANKEL, 'status', '--from', f'127.0.0.1:{d.port["binary tcp"]}'], capture_output=True, text=True, timeout=harness.WAIT).stdout
        self.assertRegex(said, r'(?m)^models    1 of 2 lines runs; 3 checks, of whose variance the model explains \d+\.\d % on the average')
        self.assertNotIn('t/s', json.dumps(line))

    def test_a_heat_line(self):
        d = self.daemon_of('supply', test_model.HEAT)
        self.put(d, ['t/a/t', 't/a/q', 't/b/t', 't/c/t'], [[80.0, 100.0, 79.9, 79.8]] * 12)
        line = self.ask(d, 'lines')[2]['models'][0]['line']
        self.assertEqual((line['units'], line['length'], len(line['points']), line['running']), ({'temperature': 'C', 'flow': 'm3/h'}, 200, 21, True))
        self.assertEqual({(s['name'], s['kind'], s['role']) for s in line['sensors']},
                         {('t/a/t', 'temperature', 'boundary'), ('t/a/q', 'flow', 'boundary'), ('t/b/t', 'temperature', 'check'), ('t/c/t', 'temperature', 'check')})
        # it loses 30 W/(m K) over 200 m: exp(-U L / (rho c q)) of its excess over the ground is left
        self.assertAlmostEqual(line['points'][-1][1], 8 + 72 * math.exp(-30 * 200 / (1000 * 4186 * 100 / 3600)), delta=0.01)
        self.assertEqual((line['points'][0][1], line['points'][0][2]), (80, 100))

    def test_a_network(self):
        d = self.daemon_of('town', test_model.NETWORK)
        names = [line.split()[1] for line in test_model.NETWORK.splitlines() if line.startswith('sensor')]
        self.put(d, names, [[3.0, 3.2, 15.0, 10.0, 9.0, 5.0, 1.0]] * 20)
        line = self.ask(d, 'lines')[2]['models'][0]['line']
        self.assertEqual((line['network'], line['points'], line['running'], line['length']), ({'nodes': 6, 'pipes': 6}, [], True, 3900))
        self.assertEqual([(s['name'], s['node'], s.get('to'), 'place' in s) for s in line['sensors']][-1], ('t/m1/q', 'm1', 'm4', False))
        seen = {s['name']: s['model'] for s in line['sensors']}
        self.assertAlmostEqual(seen['t/west/in'] + seen['t/east/in'], 15 + 4, delta=1e-3)


class Matrices(web.Api):
    def test_a_process_given_as_matrices(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in (*zip(('a.mtx', 'm.mtx', 'b.mtx', 'h.mtx'), test_model_matrix.hall(0)), ('t.model', test_model_matrix.MODEL)):
            with open(os.path.join(folder.name, name), 'w', encoding='utf-8') as f:
                f.write(text)
        d = self.daemon(f'[detector faults]\nmatch = none\nalgorithm = shift\nwindow = 32\n[detector raw]\nmatch = t/*\nwindow = 8\ninterval = 1s\nalert = off\n'
                        f'[field hall]\nmatch = t/*\noperator = model\nfile = {folder.name}/t.model\ndetector = faults\n', listeners=harness.STREAMS + web.LISTENER, keys='threads = 1\nmax_ahead = off\n')
        with d.client() as c:
            handles = c.register('t/heater', 't/edge', 't/near', 't/far', 't/mean')
            for t in range(20):
                c.send(harness.points(handles, [START + t * SECOND] * 5, [10.0, 30.0, 40.0, 20.0, 30.0]))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
        line = self.ask(d, 'lines')[2]['models'][0]['line']
        self.assertEqual((line['matrix'], line['units'], line['points'], line['running']), ({'unknowns': 36}, {'value': 'C', 'flow': ''}, [], True))
        self.assertEqual([(s['name'], s['kind'], s['node']) for s in line['sensors']],
                         [('t/heater', 'value', 'input 1'), ('t/edge', 'value', 'unknown 1'), ('t/near', 'value', 'unknown 9'), ('t/far', 'value', 'unknown 35'), ('t/mean', 'value', 'reading 1')])


if __name__ == '__main__':
    harness.main()
