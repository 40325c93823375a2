"""Prometheus and Grafana: the rules, the example of a configuration and the dashboards name existing metrics only, and Prometheus can read them."""
import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

import harness
import test_web_write
from harness import WAIT, until
from test_notify_types import have_mqtt

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = os.path.join(HERE, '..', '..', 'conf')
RULES = os.path.join(CONF, 'prometheus', 'hankeld.rules.yml')


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def promtool(*words, folder='.'):
    done = subprocess.run(['promtool', *words], cwd=folder, capture_output=True, text=True, timeout=WAIT, check=False)
    return done.returncode, done.stdout + done.stderr


def metrics(text):
    """The labels of each metric, with their values: {name: {label: {value, ...}}}."""
    found = {}
    for name, labels in re.findall(r'^(hankel_\w+)(?:\{(.*)\})? \S+$', text, re.M):
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels) or [(None, None)]:
            found.setdefault(name, {}).setdefault(label, set()).add(value)
    return {name: {k: v for k, v in labels.items() if k} for name, labels in found.items()}


def boards():
    return {path: json.loads(read(path)) for path in glob.glob(os.path.join(CONF, 'grafana', '*.json'))}


def targets():
    """(title, expression, legend) of all charts of the dashboards."""
    return [(p['title'], t['expr'], t.get('legendFormat') or '') for b in boards().values() for p in b['panels'] for t in p['targets']]


class Names(test_web_write.Case):
    def daemon_of_all(self):
        """A daemon that has all metrics: with a journal, and a broker, which does not answer."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return self.web(keys=f'threads = 1\ndurability = journal\nstate = {folder.name}\n',
                        extra=f'[mqtt plant]\nurl = mqtt://127.0.0.1:{harness.free_port()}\ntopics = plant/#\npublish = events\n' if have_mqtt() else '')

    def test_all_labels_that_are_named_are_there(self):
        there = metrics(self.ask(self.daemon_of_all(), '/metrics')[2].decode())
        self.assertIn('whole', there['hankel_latency_seconds_bucket']['leg'])
        every = {'job', 'instance'}  # Prometheus' own
        rules = re.findall(r'- alert: (\w+)\n(.*?)(?=\n *- alert:|\Z)', read(RULES), re.S)
        self.assertGreater(len(rules), 10)
        for where, expression, words in [*targets(), *((n, text.partition('labels:')[0], text.partition('labels:')[2]) for n, text in rules)]:
            known = set(every)
            for name, matchers in re.findall(r'\b(hankel_\w+)(?:\{([^}]*)\})?', expression):
                if name.startswith('hankel_mqtt_') and not have_mqtt():
                    continue
                known |= there[name].keys()
                for label, how, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matchers):
                    self.assertIn(label, there[name].keys() | every, (where, name))
                    self.assertTrue(how != '=' or label in every or value in there[name][label], (where, name, label, value))
            grouped = [label for by in re.findall(r'\b(?:by|without|on|ignoring) ?\(([^)]*)\)', expression) for label in re.findall(r'\w+', by)]
            said = re.findall(r'\$labels\.(\w+)', words) + re.findall(r'\{\{ ?(\w+) ?\}\}', words)
            self.assertTrue({*grouped, *said} <= known or 'hankel_' not in expression or 'hankel_mqtt_' in expression and not have_mqtt(), (where, grouped, said, known))

    @unittest.skipUnless(shutil.which('prometheus'), 'prometheus is not here')
    def test_each_panel_draws_something(self):
        """A real Prometheus scrapes the daemon, and answers the queries of Grafana's dashboards."""
        d, port = self.daemon_of_all(), harness.free_port()
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'prometheus.yml'), 'w') as f:
                f.write(f'global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: hankeld, static_configs: [{{targets: ["127.0.0.1:{d.port["http tcp"]}"]}}]}}]\n')
            prometheus = subprocess.Popen(['prometheus', f'--config.file={folder}/prometheus.yml', f'--storage.tsdb.path={folder}/data', f'--web.listen-address=127.0.0.1:{port}'],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.feed(d, 3, 20)
                for title, expression, legend in targets():
                    expression = expression.replace('$__rate_interval', '1m').replace('$instance', '.*')
                    got = until(lambda expression=expression: self.query(port, expression), f'{title}: {expression}')
                    for label in re.findall(r'\{\{(\w+)\}\}', legend):
                        self.assertTrue(all(label in one['metric'] for one in got), (title, legend, got))
            finally:
                prometheus.terminate()
                prometheus.wait(WAIT)

    def query(self, port, expression):
        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection('127.0.0.1', port, timeout=WAIT)) as c:
            c.request('GET', '/api/v1/query?query=' + urllib.parse.quote(expression))
            said = c.getresponse()
            if said.status == 503:
                return None  # it is starting
            answer = json.loads(said.read())
            self.assertEqual(answer['status'], 'success', (expression, answer))
            return answer['data']['result']

    def test_all_metrics_that_are_named_are_there(self):
        there = set(re.findall(r'^(?:# TYPE )?(hankel_\w+)', self.ask(self.web(), '/metrics')[2].decode(), re.M))
        files = glob.glob(os.path.join(CONF, 'grafana', '*.json')) + glob.glob(os.path.join(CONF, 'prometheus', '*.yml')) + \
            [os.path.join(HERE, 'prometheus_rules.yml')]
        self.assertGreaterEqual(len(files), 5)
        for path in files:
            text = re.sub(r'hankel_dropped_\*_total', '', read(path))
            named = set(re.findall(r'\bhankel_\w+', text))
            self.assertEqual(named - there, set(), path)
            self.assertTrue(named or path.endswith('prometheus.yml'), path)


class Dashboards(unittest.TestCase):
    def test_late_and_rejected_points_are_those_that_peers_sent(self):
        """Not those of the daemon's own series, of which a sensor may have many."""
        rules = re.findall(r'- alert: (\w+)\n *expr:(.*?)\n *(?:for|labels):', read(RULES), re.S)
        late = [e for e in [e for _, e, _ in targets()] + [e for _, e in rules] if 'hankel_points_late_total' in e]
        self.assertGreaterEqual(len(late), 2)
        for expression in late:
            self.assertRegex(expression, r'- (rate|increase)\(hankel_derived_late_total')
        for expression in [e for e in [e for _, e, _ in targets()] + [e for _, e in rules] if 'hankel_points_rejected_total' in e]:
            self.assertRegex(expression, r'- (rate|increase)\(hankel_derived_rejected_total')

    def test_they_can_be_imported_anywhere(self):
        all_of_them = boards()
        self.assertEqual(len({b['uid'] for b in all_of_them.values()}), len(all_of_them))
        for path, board in all_of_them.items():
            panels = board['panels']
            self.assertEqual(len({p['id'] for p in panels}), len(panels), path)
            for p in panels:
                where = p['gridPos']
                self.assertLessEqual(where['x'] + where['w'], 24, p['title'])
                for other in panels:
                    o = other['gridPos']
                    self.assertTrue(p is other or where['x'] + where['w'] <= o['x'] or o['x'] + o['w'] <= where['x'] or
                                    where['y'] + where['h'] <= o['y'] or o['y'] + o['h'] <= where['y'], (p['title'], other['title']))
                self.assertTrue(p['targets'], p['title'])
                for of in p, *p['targets']:
                    self.assertEqual(of['datasource']['uid'], '${datasource}', p['title'])

    @unittest.skipUnless(shutil.which('promtool'), 'promtool is not here')
    def test_prometheus_can_read_their_expressions(self):
        rules = [{'record': f'test:{i}', 'expr': expression.replace('$__rate_interval', '5m').replace('$instance', '.*')}
                 for i, (_, expression, _) in enumerate(targets())]
        self.assertGreater(len(rules), 40)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'rules.yml'), 'w') as f:
                json.dump({'groups': [{'name': 'test', 'rules': rules}]}, f)  # JSON is YAML
            code, said = promtool('check', 'rules', 'rules.yml', folder=folder)
            self.assertEqual(code, 0, said)
            self.assertIn(f'SUCCESS: {len(rules)} rules found', said)


@unittest.skipUnless(shutil.which('promtool'), 'promtool is not here')
class Rules(unittest.TestCase):
    def test_they_are_good(self):
        code, said = promtool('check', 'rules', RULES)
        self.assertEqual(code, 0, said)
        self.assertIn(f"SUCCESS: {len(re.findall('- alert:', read(RULES)))} rules found", said)

    def test_the_example_of_a_configuration(self):
        code, said = promtool('check', 'config', os.path.join(CONF, 'prometheus', 'prometheus.yml'))
        self.assertEqual(code, 0, said)
        with tempfile.TemporaryDirectory() as folder:  # with the lines that are comments in the example
            text = re.sub(r'^# (?=remote_write|[ -])', '', read(os.path.join(CONF, 'prometheus', 'prometheus.yml')), flags=re.M)
            text = text.replace('  # authorization', '  authorization').replace('- hankeld.rules.yml', f'- {RULES}')
            self.assertEqual(text.count('\nremote_write:') + text.count('\n  authorization'), 3)
            with open(os.path.join(folder, 'p.yml'), 'w') as f:
                f.write(text)
            code, said = promtool('check', 'config', '--syntax-only', os.path.join(folder, 'p.yml'))
            self.assertEqual(code, 0, said)

    def test_each_speaks_when_it_has_to_and_only_then(self):
        text = read(os.path.join(HERE, 'prometheus_rules.yml')).replace('RULES', os.path.abspath(RULES))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'test.yml'), 'w') as f:
                f.write(text)
            code, said = promtool('test', 'rules', 'test.yml', folder=folder)
            self.assertEqual(code, 0, said)
        self.assertIn(f"value: {len(re.findall('- alert:', read(RULES)))} }}", text)


if __name__ == '__main__':
    harness.main()
