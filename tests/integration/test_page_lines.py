"""Lines of pipes on the page, in a real Chromium: the profile, departures along it, and the place of a leak; in both themes and on a phone.

HANKEL_PICTURES=FOLDER keeps a picture of each."""
import csv
import io
import json
import os
import urllib.request

import harness
import test_model
import test_page
from test_page import HEADING, PICTURES

ROWS, LEAK, PLACE = 700, 520, 7000
SAID = "document.querySelector('[role=status].compare')?.textContent ?? ''"


class Lines(test_model.Case, test_page.Page):
    def recording(self, *options):
        names, *rows = list(csv.reader(io.StringIO(self.simulated('--hours', str(ROWS / 3600), '--seed', '5', '--moves', '5m', *options))))
        return names[1:], [[float(v) for v in row[1:]] for row in rows]

    def ask(self, what):
        with urllib.request.urlopen(self.address + 'api/v1/' + what, timeout=harness.WAIT) as answer:
            return json.load(answer)

    def test_a_line_and_its_leak(self):
        d = self.web(test_model.sections('trunk', self.model), durability='none', keys='max_ahead = off\n')
        p = self.page()
        p.until(f"{HEADING} === 'No data yet'")
        self.assertTrue(p.run("document.getElementById('lines').hidden"))  # there is none
        names, rows = self.recording('--leak', f'{LEAK}s,0.04,{PLACE}')
        self.put(d, names, rows[:LEAK])
        p.go(self.address)
        p.until("!document.getElementById('lines').hidden")
        p.key('l')
        p.until(f"{HEADING} === 'trunk'")
        p.until(f"({SAID}).includes('No check departs')")
        self.assertEqual(p.run("document.querySelectorAll('tbody tr').length"), len(names))
        p.until("document.querySelector('.profile canvas')?.dataset.points === '11'")
        self.put(d, names, rows[LEAK:], LEAK)
        p.until(f"/^A leak of about [\\d.]+ m3.h at [\\d.]+ km/.test({SAID})")
        line = self.ask('lines')['models'][0]['line']
        place = line['cause']['place']
        self.assertEqual(line['cause']['kind'], 'leak')
        self.assertLess(abs(place - PLACE), 700, line['cause'])
        self.assertAlmostEqual(p.run("Number(document.querySelector('.residuals canvas').dataset.leak)"), place, delta=1)
        self.assertEqual(d.status()['models']['running'], 1)
        for dark, width in [(False, 1280), (True, 1280), (False, 390), (True, 390)] if PICTURES else [(True, 390)]:
            p = self.page('#lines', width=width, height=1100, dark=dark)
            p.until("!!document.querySelector('.residuals canvas')?.dataset.leak")
            with self.subTest(dark=dark, width=width):
                self.assertEqual(p.run(test_page.Accessible.NAMELESS), [])
                self.assertLessEqual(p.run('document.documentElement.scrollWidth'), width)
                if PICTURES:
                    p.wait(0.3)
                    p.screenshot(os.path.join(PICTURES, f"lines-{'dark' if dark else 'light'}-{width}.png"))
        p.run("[...document.querySelectorAll('tbody a')].find(a => a.textContent === 't/b/p').click()")  # the table is made anew each 2 s
        p.until(f"{HEADING} === 't/b/p#model'")

    def test_a_network_and_its_leak(self):
        """Without positions there is no profile: the page lists the sensors, largest departure first, and the nodes where a leak may be."""
        self.file('t.model', test_model.NETWORK + 'sensor t/m1/p p m1 check\nsensor t/m4/p p m4 check\n')
        d = self.web(test_model.sections('town', self.model, 'adapt = 0\n'), durability='none', keys='max_ahead = off\n')
        names, rows = self.recording('--unmetered', '0', '--friction', '1', '--leak', f'{LEAK}s,0.1,m2')
        self.put(d, names, rows)
        line = self.ask('lines')['models'][0]['line']
        self.assertEqual((line['network'], line['points'], line['cause']['kind']), ({'nodes': 6, 'pipes': 6}, [], 'leak'))
        self.assertIn('m2', [n['node'] for n in line['cause']['nodes']])
        self.assertEqual({(s['node'], s.get('to')) for s in line['sensors'] if s['name'] == 't/m1/q'}, {('m1', 'm4')})
        for dark, width in [(False, 1280), (True, 1280), (False, 390)] if PICTURES else [(False, 390)]:
            p = self.page('#lines', width=width, height=900, dark=dark)
            p.until(f"({SAID}).includes('{line['cause']['nodes'][0]['node']}') && /^A leak of about [\\d.]+ l.s at or near /.test({SAID})")
            rank = [abs(s['departs']) / s['error'] if 'departs' in s else 0 for name in p.run("[...document.querySelectorAll('main table:not(.nodes) tbody tr')].map(r => r.cells[0].textContent)") for s in line['sensors'] if s['name'] == name]
            self.assertEqual((len(rank), rank), (len(names), sorted(rank, reverse=True)))
            self.assertEqual(p.run("document.querySelectorAll('table.nodes tbody tr').length"), len(line['cause']['nodes']))
            self.assertEqual(p.run(test_page.Accessible.NAMELESS), [])
            self.assertLessEqual(p.run('document.documentElement.scrollWidth'), width)
            if PICTURES:
                p.screenshot(os.path.join(PICTURES, f"network-{'dark' if dark else 'light'}-{width}.png"))


if __name__ == '__main__':
    harness.main()
