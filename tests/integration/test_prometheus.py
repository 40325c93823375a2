"""For Prometheus and Grafana: the rules, the example of a configuration and the dashboards name metrics that there are, and Prometheus can
read them."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import harness
import test_web_write
from harness import WAIT

HERE = os.path.dirname(os.path.abspath(__file__))
CONF = os.path.join(HERE, '..', '..', 'conf')
RULES = os.path.join(CONF, 'prometheus', 'hankeld.rules.yml')


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def promtool(*words, folder='.'):
    done = subprocess.run(['promtool', *words], cwd=folder, capture_output=True, text=True, timeout=WAIT, check=False)
    return done.returncode, done.stdout + done.stderr


class Names(test_web_write.Case):
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
    def boards(self):
        return {path: json.loads(read(path)) for path in glob.glob(os.path.join(CONF, 'grafana', '*.json'))}

    def test_they_can_be_imported_anywhere(self):
        boards = self.boards()
        self.assertEqual(len({b['uid'] for b in boards.values()}), len(boards))
        for path, board in boards.items():
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
        rules = [{'record': f'test:{i}', 'expr': t['expr'].replace('$__rate_interval', '5m').replace('$instance', '.*')}
                 for i, t in enumerate(t for b in self.boards().values() for p in b['panels'] for t in p['targets'])]
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
        with tempfile.TemporaryDirectory() as folder:  # with what is a comment there
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
