#!/usr/bin/env python3
"""Sections [incidents NAME] side by side: each decides as `hankel replay --budget` does of its sensors alone, with a budget of its own."""
import functools
import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

import harness
import test_incidents
import test_notify
from test_incidents import BEGIN, END, NAMES, STEP


def setUpModule():
    test_incidents.setUpModule()


class Sections(harness.Case):
    DETECTOR = test_incidents.InDaemon.DETECTOR
    WEB = test_incidents.InDaemon.WEB
    ask, feed, lines, said = [getattr(test_incidents.InDaemon, name) for name in ('ask', 'feed', 'lines', 'said')]
    RULES = {'one': ('hall1.*', '10/day', lambda name: name.startswith('hall1.')), 'rest': ('hall*', '2/day', lambda name: not name.startswith('hall1.'))}

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = test_incidents.FLEET

    def config(self, **budgets):
        return ''.join(f'[incidents {name}]\nmatch = {match}\nbudget = {budgets.get(name, budget)}\ninterval = 5m\n' for name, (match, budget, _) in self.RULES.items())

    def keys(self):
        return f'threads = 1\ndurability = journal\nstate = {self.folder.name}/state\nmax_ahead = off\n'

    def begin(self, sections=None, more='', **how):
        return self.daemon(self.DETECTOR + (sections if sections is not None else self.config()) + more, keys=self.keys(), **how)

    @staticmethod
    def of_section(changes, name=None):
        """The changes of a section, with their incidents numbered from 0 on in the order in which they appear."""
        number = {}
        return [{k: number.setdefault(v, len(number)) if k in ('id', 'into') else v for k, v in x.items() if k not in ('position', 'section')}
                for x in changes if name is None or x.get('section') == name]

    @classmethod
    @functools.cache
    def wanted_of(cls, name):
        _, budget, takes = cls.RULES[name]
        rows = [line.split(',') for line in open(test_incidents.FLEET).read().splitlines()]
        columns = [0] + [i for i, column in enumerate(rows[0]) if i and takes(column)]
        run = test_incidents.replay('--budget', budget, '--interval', '300', '--format', 'jsonl', '--detector', 'algorithm=novelty', '-',
                     data='\n'.join(','.join(row[i] for i in columns) for row in rows) + '\n')
        last = (BEGIN + STEP * (END - 1)) * 10**9
        return cls.of_section([x for x in map(json.loads, run.stdout.splitlines()) if x['incident'] not in ('closed', 'withheld') or x['time'] < last])

    def changes(self, daemon, n):
        got = self.lines(daemon, 'incidents,since=0 *\n', lambda got: sum('incident' in x for x in got) >= n, f'{n} changes')
        return [x for x in got if 'incident' in x]

    @staticmethod
    def open(daemon):
        return {s['section']: s['open'] for s in daemon.status()['incidents']['sections']}

    def until_mark(self, daemon):
        return [x for x in self.lines(daemon, 'incidents,since=0 *\n', lambda got: got[-1].get('incident') == 'expected', 'the mark') if 'incident' in x]

    def check(self, daemon):
        """Waits for all changes, and returns them. Fails at the first one that replay does not have: after that the rest might never come."""
        wanted = {name: self.wanted_of(name) for name in self.RULES}
        self.assertGreater(min(len(x) for x in wanted.values()), 10)

        def all_came(lines):
            got = [x for x in lines if 'incident' in x]
            for name, changes in wanted.items():
                its = self.of_section(got, name)
                self.assertEqual(its, changes[:len(its)], name)
            return len(got) >= sum(map(len, wanted.values()))
        got = [x for x in self.lines(daemon, 'incidents,since=0 *\n', all_came, 'all changes') if 'incident' in x]
        owner = {}
        for x in got:  # a number is of one section
            self.assertEqual(owner.setdefault(x['id'], x['section']), x['section'], x)
        return got

    def test_each_as_replay(self):
        """Also after a crash, a reload that changes one budget and asks for what needs a restart, and in what is said, counted and listed of each."""
        text = '[listen text]\nprotocol = text\naddress = 127.0.0.1:0\n'
        first = self.begin(ends=-signal.SIGKILL, listeners=self.WEB + text)
        self.feed(first)
        got = self.check(first)
        lists = harness.until(lambda: (lambda a: a if a['standing'] == first.status()['incidents']['open'] else None)(self.ask(first)), 'the board')
        for i in lists['incidents'] + lists['over']:
            takes = self.RULES[i['about']['section']][2]
            self.assertTrue(all(takes(s['sensor']) for s in i['about']['sensors']), i)
        status = first.status()['incidents']
        self.assertEqual([(s['section'], s['gone'], s['budget']) for s in status['sections']], [('one', False, 10), ('rest', False, 2)])
        with urllib.request.urlopen(f"http://127.0.0.1:{first.port['http tcp']}/metrics", timeout=harness.WAIT) as answer:
            metrics = answer.read().decode()
        for s in status['sections']:
            self.assertEqual((s['told'], s['withheld']), tuple(sum(x['incident'] == kind for x in got if x['section'] == s['section']) for kind in ('told', 'withheld')))
            self.assertIn(f'hankel_incidents_withheld_total{{section="{s["section"]}"}} {s["withheld"]}\n', metrics)
        self.assertEqual(status['withheld'], sum(s['withheld'] for s in status['sections']))
        self.assertTrue(all(f' ({x["section"]})  R ' in line for x, line in zip([x for x in got if x['incident'] in ('told', 'update')], self.said(first))), self.said(first)[:3])
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(harness.WAIT)
        again = self.begin()
        self.feed(again)
        harness.until(lambda: again.status()['incidents']['position'] >= status['position'], 'the place in the log')
        time.sleep(3)  # longer than a tick waits
        self.assertEqual((self.said(again), self.changes(again, len(got))), ([], got))

    def test_reload_and_other_sections(self):
        """A reload changes budgets alone. At a start, a section that is new judges no alert again, and one that is gone ends its incidents."""
        self.path = os.path.join(self.folder.name, 'storm.csv')
        with open(test_incidents.FLEET) as whole, open(self.path, 'w') as part:
            part.writelines(whole.readlines()[:test_incidents.STORM + 10])
        first = self.begin(listeners=self.WEB + '[listen text]\nprotocol = text\naddress = 127.0.0.1:0\n')
        self.feed(first)
        stands = harness.until(lambda: (lambda s: s if s and min(s.values()) else None)(self.open(first)), 'open incidents of both')
        time.sleep(4)  # longer than a tick waits
        stands = self.open(first)
        again = '[incidents rest]\nmatch = hall*\nbudget = 0.5/day\ninterval = 5m\n[incidents one]\nmatch = hall1.*\nbudget = 10/day\ninterval = 5m\n[incidents new]\nmatch = *\ninterval = 5m\n'
        first.configure(self.DETECTOR + again, self.keys())
        with first.client() as c:
            taken, lines = c.reload()
        for told in ('[incidents rest]: budget = 2/day -> 0.5/day', '[incidents new] is new: needs a restart', 'their order is changed: needs a restart'):
            self.assertIn(told, '\n'.join(lines))
        harness.until(lambda: [s['budget'] for s in first.status()['incidents']['sections']] == [10, 0.5], 'the budget')
        with urllib.request.urlopen(f"http://127.0.0.1:{first.port['http tcp']}/metrics", timeout=harness.WAIT) as answer:
            self.assertIn('hankel_incidents_budget{section="rest"} 0.5\n', answer.read().decode())
        mark = [x for x in self.lines(first, 'incidents,since=0 *\n', lambda got: got[-1].get('incident') == 'told', 'an incident') if 'incident' in x][-1]
        subprocess.run([harness.HANKEL, 'ack', '--from', f"127.0.0.1:{first.port['binary tcp']}", '--expected', f'#{mark["id"]}'], check=True, capture_output=True, timeout=harness.WAIT)
        got = self.until_mark(first)
        first.stop()
        other = self.begin('[incidents two]\nmatch = hall1.*\nbudget = 10/day\ninterval = 5m\n' + self.config().split('[incidents rest]')[0].replace('hall1', 'hall9')
                           + '[incidents]\nbudget = 3/day\ninterval = 5m\n')
        sections = {s['section']: s for s in harness.until(lambda: (lambda s: s if len(s) == 4 else None)(other.status()['incidents']['sections']), 'the sections')}
        self.assertEqual({name: (s['gone'], s['open']) for name, s in sections.items()}, {'two': (False, 0), 'one': (False, stands['one']), '': (False, 0), 'rest': (True, stands['rest'])})
        said = [line.split('notice: ')[1].split(':')[0] for line in other.log if 'notice: [incidents' in line]
        self.assertEqual(said, ['[incidents two] is new', '[incidents] is new', '[incidents rest] is gone'])
        gone = max(x['id'] for x in got if x['section'] == 'rest')
        ack = subprocess.run([harness.HANKEL, 'ack', '--from', f"127.0.0.1:{other.port['binary tcp']}", '--false', f'#{gone}'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertEqual((ack.returncode, 'is gone from the configuration' in ack.stdout + ack.stderr), (1, True), ack)  # also while it still has incidents
        line = subprocess.run([harness.HANKEL, 'status', '--from', f"127.0.0.1:{other.port['binary tcp']}"], capture_output=True, text=True, timeout=harness.WAIT).stdout
        self.assertRegex(line, rf"(?m)^incidents {sum(stands.values())} open; of the data's last day \d+ reported, \d+ withheld.*; budget 23 a day")
        time.sleep(4)
        self.assertEqual(self.until_mark(other), got)
        self.assertEqual([(s['told'], s['withheld'], s['open']) for s in other.status()['incidents']['sections'] if s['section'] in ('two', '')], 2 * [(0, 0, 0)])  # nothing was judged again
        flat = os.path.join(self.folder.name, 'later.csv')
        with open(flat, 'w') as file:  # much later: all that stands is over
            file.write('time,' + ','.join(NAMES) + '\n' + ''.join(f'{BEGIN + STEP * (END + t)}' + ',0' * len(NAMES) + '\n' for t in range(50)))
        subprocess.run([harness.HANKEL, 'feed', '--to', f"127.0.0.1:{other.port['binary tcp']}", flat], check=True, capture_output=True, timeout=harness.WAIT)
        harness.until(lambda: [s['open'] for s in other.status()['incidents']['sections'] if s['section'] in ('one', 'rest')] == [0, 0], 'their ends')

        def ends(changes):
            over = [x for x in changes if x.get('incident') in ('closed', 'withheld') and x['position'] > got[-1]['position']]
            return {name: sum(x['section'] == name for x in over) for name in stands}
        self.lines(other, 'incidents,since=0 *\n', lambda changes: ends(changes) == stands, 'the end of each')
        other.stop()
        last = self.begin()
        self.assertEqual([s['section'] for s in harness.until(lambda: last.status()['incidents']['sections'], 'the sections')][:2], ['one', 'rest'])

    def test_other_sections_after_a_crash(self):
        """What was judged before a crash stays with the section that judged it, which is gone: a told incident gets its end, and no number is given twice."""
        def is_told(got):  # incidents of others may have ended before, if the daemon was slow
            return got[-1].get('section') == 'one' and got[-1]['incident'] == 'told'
        with open(test_incidents.FLEET) as whole:
            lines = whole.readlines()
        self.path, rest = [os.path.join(self.folder.name, name) for name in ('fault.csv', 'rest.csv')]
        upto = test_incidents.CAUSE + 12
        for path, part in ((self.path, lines[:upto]), (rest, lines[:1] + lines[upto:])):
            with open(path, 'w') as file:
                file.writelines(part)
        self.begin().stop()  # the state has both sections, and no incident
        first = self.begin(ends=-signal.SIGKILL)
        self.feed(first)
        self.lines(first, 'incidents,since=0 *\n', is_told, 'a message')
        time.sleep(4)  # longer than a tick waits
        before = [x for x in self.lines(first, 'incidents,since=0 *\n', is_told, 'a message') if 'incident' in x]
        over = {x['id'] for x in before if x['incident'] in ('closed', 'withheld', 'merged')}
        told = {x['id'] for x in before if x['section'] == 'one' and x['incident'] == 'told'} - over
        stands = self.open(first)
        self.assertTrue(told, before)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(harness.WAIT)
        other = self.begin(self.config().replace('[incidents one]', '[incidents two]'))
        harness.until(lambda: other.status()['incidents']['position'] >= before[-1]['position'], 'the place in the log')
        sections = other.status()['incidents']['sections']
        self.assertEqual([(s['section'], s['gone'], s['open']) for s in sections], [('two', False, 0), ('rest', False, stands['rest']), ('one', True, stands['one'])])
        time.sleep(4)
        self.assertEqual(self.changes(other, len(before)), before)
        subprocess.run([harness.HANKEL, 'feed', '--to', f"127.0.0.1:{other.port['binary tcp']}", rest], check=True, capture_output=True, timeout=harness.WAIT)
        got = self.lines(other, 'incidents,since=0 *\n', lambda got: told <= {x['id'] for x in got if x.get('incident') == 'closed'} and any(x.get('section') == 'two' for x in got), 'the end')
        got = [x for x in got if 'incident' in x]
        owner = {}
        for x in got:
            self.assertEqual(owner.setdefault(x['id'], x['section']), x['section'], x)
        self.assertGreater(min(x['id'] for x in got if x['section'] == 'two'), max(x['id'] for x in before))
        harness.until(lambda: self.open(other)['one'] == 0, 'the ends of all')
        other.stop()
        last = self.begin(self.config().replace('[incidents one]', '[incidents two]'))  # forgets the one that is gone
        harness.until(lambda: len(last.status()['incidents']['sections']) == 2, 'two sections')
        ack = subprocess.run([harness.HANKEL, 'ack', '--from', f"127.0.0.1:{last.port['binary tcp']}", '--false', f'#{min(told)}'], capture_output=True, text=True, timeout=harness.WAIT)
        self.assertNotEqual(ack.returncode, 0, ack)
        self.assertIn('is gone from the configuration', ack.stdout + ack.stderr)
        self.assertEqual([x for x in self.changes(last, len(got)) if x['incident'] == 'false'], [])

    def test_receivers_and_marks(self):
        """A receiver gets the incidents of the sections that it names; a mark is of the section of its incident."""
        hook = test_notify.Receiver()
        self.addCleanup(hook.end)
        daemon = self.begin(more=f'[notify hook]\ntype = webhook\nurl = {hook.url("/a")}\nabout = incidents\nsection = r*\ngather = 100ms\nrate = 6000\n')
        self.feed(daemon)
        got = self.check(daemon)
        told = [x for x in got if x['section'] == 'rest' and x['incident'] == 'told']
        harness.until(lambda: len([x for x in hook.alerts() if x['kind'] == 'told']) >= len(told), 'the messages')
        self.assertEqual([x['incident'] for x in sorted(hook.alerts(), key=lambda x: x['position']) if x['kind'] == 'told'], [x['id'] for x in told])
        self.assertEqual({(x['section'], x['about']['section']) for x in hook.alerts()}, {('rest', 'rest')})
        for name in self.RULES:
            mine = [x for x in got if x['section'] == name and x['incident'] == 'told'][-1]
            subprocess.run([harness.HANKEL, 'ack', '--from', f"127.0.0.1:{daemon.port['binary tcp']}", '--expected', f'#{mine["id"]}'], check=True, capture_output=True, timeout=harness.WAIT)
        marks = harness.until(lambda: (lambda f: f if len(f) == 2 else None)(daemon.status()['incidents']['feedback']), 'both marks')
        self.assertEqual(len({m['incident'] for m in marks}), 2, marks)
        words = [x for x in self.changes(daemon, len(got) + 2) if x['incident'] == 'expected']
        self.assertEqual([x['section'] for x in words], list(self.RULES))


@unittest.skipUnless('FAULTY_DAEMON' in os.environ and harness.BACKEND == 'cpu', 'needs a program of the tests')
class SectionsOnSeveralShards(Sections):
    test_each_as_replay = test_reload_and_other_sections = test_other_sections_after_a_crash = test_receivers_and_marks = None

    def test_four_killed_again_and_again(self):
        """Sections on four shards decide as on one, however often the daemon is killed."""
        chance = random.Random(2)
        for _ in range(4):
            daemon = self.begin(backend='cuda', program=os.environ['FAULTY_DAEMON'], environment={'HANKELD_DEVICES': '4'}, ends=-signal.SIGKILL)
            feed = subprocess.Popen([harness.HANKEL, 'feed', '--to', f"127.0.0.1:{daemon.port['binary tcp']}", '--feed', 'fleet', '--rate', '25000', self.path],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before = daemon.status()['durability']['events_shown']
            harness.until(lambda: daemon.status()['durability']['events_shown'] > before + chance.randrange(30), 'some events')
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait(harness.WAIT)
            feed.kill()
            feed.wait()
        daemon = self.begin(backend='cuda', program=os.environ['FAULTY_DAEMON'], environment={'HANKELD_DEVICES': '4'})
        self.feed(daemon)
        self.check(daemon)


if __name__ == '__main__':
    harness.main()
