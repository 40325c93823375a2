"""The page in a real Chromium: every view, live updates, both themes, the keyboard, a phone's screen, and very many sensors.

HANKEL_PICTURES=FOLDER keeps a picture of each view, light, dark and as wide as a phone."""
import contextlib
import http.client
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import browser
import harness
import test_fields
from harness import SANITIZED, SECOND, START, WAIT, until

INCIDENTS = '[incidents]\nbudget = 100/day\ninterval = 1s\n[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\nhold = 1\n'
STEPS = '[detector all]\nmatch = *\nwindow = 8\nrank = 2\ninterval = 1s\nalert = 0.6\n'
MARKUP = 'boiler <img src=x onerror=console.error(1)>&"\''
PICTURES = os.environ.get('HANKEL_PICTURES')
AXE = os.environ.get('AXE')
HEADING = "document.querySelector('main h1')?.textContent"


def value(n):
    """A step every 30 points, which is an alert."""
    return float(10 * ((n // 30) % 2) + (n * 7) % 5 * 0.125)


@unittest.skipUnless(browser.PROGRAM, 'Chromium is not here')
class Page(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def web(self, detectors=STEPS, keys='', extra='', port=None, durability='journal'):
        """A daemon that can be restarted at the same address, with its state."""
        if not hasattr(self, 'folder'):
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            self.folder = folder.name
        port = port or harness.free_port()
        keys = f'threads = 1\ndurability = {durability}\n' + (f'state = {self.folder}\n' if durability != 'none' else '') + keys
        d = self.daemon(detectors, keys=keys,
                        listeners=f'{harness.STREAMS}[listen web]\nprotocol = http\naddress = 127.0.0.1:{port}\n{extra}')
        self.address = f'http://127.0.0.1:{port}/'
        return d

    def page(self, view='', clean=True, **how):
        """Opens a tab on a view. By the end of the test it must have logged no error, and nothing that the content security policy refused."""
        p = self.browser.page(**how)
        p.go(self.address + view)
        if clean:
            self.addCleanup(lambda: self.assertEqual(p.faults, []))
        return p

    def feed(self, d, names, points, first=0, of=value, start=START):
        with d.client() as c:
            handles = c.register(*names)
            for k in range(first, first + points):
                c.send(harness.points(handles, [start + k * SECOND] * len(names), [of(k)] * len(names)))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')

    def alert(self, d, names=('pump',), first=0):
        """Feeds until an alert of each sensor stands; returns the number of the next point."""
        for k in range(first, 400):
            self.feed(d, names, 1, k)
            if d.status()['alerts']['standing'] >= len(names):
                return k + 1
        return self.fail('no alert')


class Views(Page):
    def test_nothing_was_sent_yet(self):
        self.web()
        p = self.page(clean=False)
        p.until(f"{HEADING} === 'No data yet' && document.body.innerText.includes('Send something')")
        for view, text in [('#wall', 'no sensors yet'), ('#timeline', 'No alert'), ('#health', 'points fed'), ('#sensor/pump', 'knows no sensor')]:
            p.run(f"location.hash = '{view}'")
            p.until(f"document.querySelector('main').innerText.includes('{text}')")
            self.assertEqual(p.run("document.getElementById('link').textContent"), 'live', view)
        self.assertEqual([f for f in p.faults if '404' not in f], [])  # that of the sensor

    def test_every_view_shows_what_is_there_and_what_comes(self):
        d = self.web()
        self.feed(d, ['pump'], 20)
        p = self.page()
        p.until(f"{HEADING} === 'All is well'")
        n = self.alert(d, first=20)
        p.until("document.querySelectorAll('article').length === 1")
        self.assertIn('pump', p.text())
        p.until("document.title === '(1) hankeld'")
        p.click('article a', 'pump')
        p.until(f"{HEADING} === 'pump'")
        self.feed(d, ['pump'], 40, n)
        p.until("Number(document.querySelector('canvas').dataset.points) >= 40")
        p.run("location.hash = '#timeline'")
        p.until("document.querySelectorAll('tbody tr').length > 0")
        before = p.run("document.querySelectorAll('tbody tr').length")
        self.feed(d, ['pump'], 120, n + 40)
        p.until(f"document.querySelectorAll('tbody tr').length > {before}")
        p.run("location.hash = '#health'")
        p.until(f"document.querySelector('main').innerText.includes('{n + 160}')")
        self.feed(d, ['pump'], 20, n + 160)
        p.until(f"document.querySelector('main').innerText.includes('{n + 180}')")
        p.run("location.hash = '#wall'")
        p.until(f"{HEADING} === 'Wall' && !!document.querySelector('canvas')")

    def test_health_says_which_receiver_fails(self):
        """A receiver at an address where nothing listens; the page shows the daemon's error for its section."""
        try:
            d = self.web(f'[notify oncall]\ntype = webhook\nurl = http://127.0.0.1:{harness.free_port()}/\ngather = 100ms\n' + STEPS)
        except harness.NotReady as refused:
            if 'libcurl' not in str(refused):
                raise
            self.skipTest('this hankeld is built without libcurl')
        p = self.page('#health')
        self.alert(d)
        p.until("[...document.querySelectorAll('tr.severe')].map(r => r.cells[0].textContent + ' ' + r.cells[1].textContent).join() === 'oncall (webhook) failing'")
        self.assertIn('Receivers of alerts', p.text())
        self.assertNotIn('Brokers', p.text())
        p.until("document.querySelector('.fault').textContent.startsWith('WRONG: alerts do not reach receiver oncall: ')")
        now = self.page()
        now.until(f"{HEADING} === '1 to look at' && document.querySelector('.verdict .fault').textContent.startsWith('WRONG: alerts do not reach receiver oncall: ')")
        subprocess.run([harness.HANKEL, 'ack', '--from', f"127.0.0.1:{d.port['binary tcp']}", 'pump'], check=True, capture_output=True, timeout=WAIT)
        now.until(f"{HEADING} === 'Nothing new; 1 acknowledged' && document.querySelector('.verdict.severe .fault') !== null")

    def test_names_are_text_and_the_policy_is_strict(self):
        d = self.web()
        self.alert(d, [MARKUP])
        p = self.page()
        p.until("document.querySelectorAll('article').length === 1")
        for view in '#wall', '#timeline', '#now':
            p.run(f"location.hash = '{view}'")
            p.until("document.getElementById('link').textContent === 'live'")
            p.wait(0.3)
            self.assertEqual(p.run("document.querySelectorAll('main img').length"), 0, view)
        p.until(f'document.body.innerText.includes({json.dumps(MARKUP)})')
        p.click('article a')
        p.until(f'{HEADING} === {json.dumps(MARKUP)}')
        with contextlib.closing(http.client.HTTPConnection('127.0.0.1', d.port['http tcp'], timeout=WAIT)) as c:
            c.request('GET', '/')
            policy = c.getresponse().headers['content-security-policy']
        self.assertNotIn('unsafe', policy)
        self.assertIn("default-src 'none'", policy)

    def test_a_sensor_has_its_history_zooms_and_can_be_kept(self):
        d = self.web('[detector pumps]\nmatch = *\nalgorithm = ika, graph\nwindow = 8\nika.rank = 2\nika.alert = 0.6\ngraph.resident = 400\ninterval = 1s\n')
        self.feed(d, ['pump'], 200)
        p = self.page('#sensor/pump')
        p.until("document.querySelector('canvas')?.dataset.points === '200'")  # none has come since
        past = int(p.run("document.querySelector('canvas').dataset.scores"))
        self.assertGreater(past, 178)  # alerts of ika, and of the graph
        text = p.text()
        for part in 'alerts from a score of 0.6 on', 'is its last value', 'level ':
            self.assertIn(part, text)
        p.click('summary')
        for part in '[detector pumps]', 'algorithm = ika, graph', 'ika.window = 8', 'graph.resident = 400', 'hankel reload':
            self.assertIn(part, p.text())
        pressed = "document.querySelector('main button[aria-pressed]').getAttribute('aria-pressed')"
        shown = "(c => [Number(c.dataset.from), Number(c.dataset.to)])(document.querySelector('canvas'))"
        self.assertEqual(p.run(shown), [START, START + 199 * SECOND])
        p.run("document.querySelector('canvas').focus()")
        for _ in range(2):
            p.key('+')
        first = p.run(shown)
        self.assertLess(first[1] - first[0], 100 * SECOND)
        for _ in range(3):
            p.key('ArrowLeft', number=37)
        there = p.run(shown)
        self.assertEqual((there[0] < first[0], p.run(pressed)), (True, 'false'))
        self.feed(d, ['pump'], 50, 200)
        p.until("document.querySelector('canvas').dataset.points === '250'")
        p.until(f"Number(document.querySelector('canvas').dataset.scores) > {past + 50}")
        self.assertEqual(p.run(shown), there)  # new points do not move it
        p.key('End', number=35)
        p.until(f'{shown}[1] === {START + 249 * SECOND}')
        p.click('main button', 'All')
        p.until(f'{shown}[0] === {START}')
        self.assertEqual(p.run(pressed), 'true')
        with tempfile.TemporaryDirectory() as folder:
            self.browser.call('Browser.setDownloadBehavior', behavior='allow', downloadPath=folder, browserContextId=p.context)
            p.click('main button', 'CSV')
            p.click('main button', 'PNG')
            kept = until(lambda: (lambda n: n if n == {'pump.csv', 'pump.png'} else None)(set(os.listdir(folder))), 'both files')
            self.assertEqual(len(kept), 2)
            with open(os.path.join(folder, 'pump.csv')) as f:
                rows = f.read().splitlines()
            self.assertEqual((rows[0], len(rows)), ('time,value,score pump,score pump#graph', 251))
            self.assertEqual(rows[1].split(',')[:2], ['2020-09-13T12:26:40.000Z', str(int(value(0)))])
            for row in rows[100], rows[-1]:  # from before the page was opened, and from since then
                self.assertRegex(row.split(',')[2], r'^0(\.\d+)?$')
            with open(os.path.join(folder, 'pump.png'), 'rb') as f:
                self.assertEqual(f.read(8), b'\x89PNG\r\n\x1a\n')

    def test_a_new_value_says_since_when_and_what_is_nearest(self):
        d = self.web('[detector all]\nmatch = *\nalgorithm = novelty\nresident = 2000\ninterval = 1s\nalert = 0.4\n')
        rng = random.Random(5)
        wave = [math.sin(k / 4) + rng.gauss(0, 0.1) for k in range(1600)] + [9.0] * 3
        start = (int(time.time()) - 10 * 86400) * SECOND
        self.feed(d, ['pump'], len(wave), of=lambda k: wave[k], start=start)
        p = self.page()
        p.until("document.querySelector('article p').innerText.includes('value 9 is the highest in 1,')")
        p.until(f"document.querySelector('article p').innerText.match(/; nearest [\\d.]+ at (.*)$/)?.[1].startsWith(new Date({start} / 1e6).toLocaleDateString(undefined, {{day: 'numeric', month: 'long'}}))")
        p.go(self.address + '#sensor/pump')
        p.until("/to 1[.]\\d+ was the range.*9 is the new value/s.test(document.querySelector('.compare')?.innerText)")

    def test_who_is_to_blame_is_shown(self):
        d = self.web(test_fields.DETECTORS + test_fields.FIELD, keys='max_ahead = off\n')
        values = test_fields.rows(fault=4)
        with d.client() as c:
            handles = c.register(*test_fields.NAMES)
            for t, row in enumerate(values):
                c.send(harness.points(handles, [START + t * SECOND] * len(row), row))
            c.ping()
            until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
        p = self.page('#timeline')
        p.until("document.querySelector('table').innerText.includes('secondary to ')")
        blamed, name = p.run("(r => [r.cells[5].querySelector('a').textContent, r.cells[1].textContent])([...document.querySelectorAll('tbody tr')].find(r => r.innerText.includes('secondary to ')))")
        self.assertEqual(blamed, test_fields.NAMES[test_fields.FAULTY] + '#residual')
        p.go(self.address + '#sensor/' + urllib.parse.quote(name, safe=''))
        p.until(f"document.querySelector('main').innerText.includes('secondary: {blamed} is to blame')")

    def test_the_timeline_has_what_was_told_and_is_filtered(self):
        d = self.web()
        n = self.alert(d, ['pump', 'other'])
        address = f'127.0.0.1:{d.port["binary tcp"]}'
        for arguments in ['ack', '--by', 'ann', '--from', address, 'pump'], ['maintenance', '--by', 'bob', '--from', address, 'begin', 'pump*', '1h'], ['reload', '--from', address]:
            subprocess.run([harness.HANKEL, *arguments], check=True, capture_output=True, timeout=WAIT)
        p = self.page('#timeline')
        rows = "[...document.querySelectorAll('tbody tr')].map(r => r.cells[2].textContent).join()"
        p.until(f"{rows} === 'configuration reloaded,maintenance begins,acknowledged,raised,raised'")
        self.assertIn('by bob, until ', p.run("document.querySelectorAll('tr.told')[1].textContent"))
        set_ = "((e, v) => {{ e.value = v; e.dispatchEvent(new Event('change')); }})(document.querySelector({}), {})"
        p.run(set_.format("'select'", "'operators'"))
        p.until(f"{rows} === 'configuration reloaded,maintenance begins'")
        p.run(set_.format("'select'", "''") + ';' + set_.format("'main input[type=search]'", "'other'"))
        p.until(f"{rows} === 'configuration reloaded,maintenance begins,raised'")
        p.run(set_.format("'main input[type=search]'", "''") + ';' + set_.format("'label:nth-of-type(2) input'", "'2021-01-01T00:00'"))
        p.until(f"{rows} === 'raised,raised'")
        p.run(set_.format("'label:nth-of-type(2) input'", "''") + ';' + set_.format("'label:nth-of-type(1) input'", "'2021-01-01T00:00'"))
        p.until(f"{rows} === 'configuration reloaded,maintenance begins,acknowledged'")
        self.feed(d, ['pump'], 120, n)  # new points are not in that time
        p.run(set_.format("'label:nth-of-type(1) input'", "''"))
        p.until(f"{rows}.split(',').length > 6")

    def test_keys_and_the_search(self):
        d = self.web()
        self.feed(d, ['pump1', 'pump2'], 20)
        p = self.page()
        for key, heading in [('w', 'Wall'), ('t', 'Timeline'), ('h', 'Health'), ('n', 'All is well')]:
            p.key(key)
            p.until(f"{HEADING} === '{heading}'")
        p.key('/')
        p.until("document.activeElement.id === 'sensor'")
        p.call('Input.insertText', text='mp2')
        p.until("document.querySelectorAll('#names option').length === 1")
        p.run("document.getElementById('sensor').value = 'pump2'")
        p.key('Enter', number=13)
        p.until(f"{HEADING} === 'pump2'")


@unittest.skipIf(SANITIZED, 'it is about what the browser draws')
class Accessible(Page):
    """Checks accessibility with axe-core, if AXE names its axe.min.js, and without it some rules."""

    VIEWS = '#now', '#wall', '#timeline', '#health', '#sensor/pump'
    NAMELESS = """[...document.querySelectorAll('a[href], button, input, select, canvas, summary')].filter(e =>
      !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length || e.title)).map(e => e.outerHTML)"""

    def test_views_in_both_themes_and_on_a_phone(self):
        d = self.web(INCIDENTS)
        n = self.alert(d, ['old'])
        self.feed(d, ['old'], 120, n, lambda k: 0.25)
        n = self.alert(d, ['pump', 'other'])
        for arguments in ['reload'], ['ack', '--expected', 'old'], ['maintenance', 'begin', 'pump*', '1h']:
            command = [harness.HANKEL, arguments[0], '--from', f'127.0.0.1:{d.port["binary tcp"]}', *arguments[1:]]
            until(lambda command=command: subprocess.run(command, check=False, capture_output=True, timeout=WAIT).returncode == 0, f'{command}: an incident comes a moment after its alert')
        axe = open(AXE, encoding='utf-8').read() if AXE else None
        for dark in False, True:
            for width in 1280, 390:
                p = self.page(width=width, height=780, dark=dark)
                for view in self.VIEWS:
                    p.run(f"location.hash = '{view}'")
                    p.until(f"document.querySelector('main h1') && document.getElementById('link').textContent === 'live' && location.hash === '{view}'")
                    p.wait(0.4)
                    with self.subTest(view=view, dark=dark, width=width):
                        self.assertEqual(p.run(self.NAMELESS), [])
                        self.assertEqual(p.run("document.querySelectorAll('h1').length"), 1)
                        self.assertLessEqual(p.run('document.documentElement.scrollWidth'), width)
                        if PICTURES:
                            p.screenshot(os.path.join(PICTURES, f"{view[1:].partition('/')[0]}-{'dark' if dark else 'light'}-{width}.png"))
                        if axe:
                            p.run(axe + ';0')
                            found = p.run("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 200) + ' ' + n.failureSummary)]))")
                            self.assertEqual(found, [])
        if not axe:
            self.skipTest('the rest needs axe-core: AXE=axe.min.js')

    def test_with_the_keyboard_alone(self):
        d = self.web()
        self.alert(d)
        p = self.page()
        p.until("document.querySelectorAll('article').length === 1")
        for _ in range(30):
            p.key('Tab', number=9)
            button, outline = p.run("(e => [e.textContent, getComputedStyle(e).outlineStyle])(document.activeElement)")
            if button == 'Acknowledge':
                break
        self.assertEqual(button, 'Acknowledge')
        self.assertNotEqual(outline, 'none')
        p.key('Enter', number=13)
        p.until("document.querySelector('article').innerText.includes('acknowledged by')")
        p.key('w')
        p.until("!!document.querySelector('canvas.wall')?.dataset.drawn")
        p.run("document.querySelector('canvas.wall').focus()")
        p.key('ArrowRight', number=39)
        p.until("document.querySelector('.tip').textContent.startsWith('pump')")
        p.key('Enter', number=13)
        p.until(f"{HEADING} === 'pump'")

    def test_times_are_the_viewers_with_utc_on_hover(self):
        d = self.web()
        self.alert(d)
        p = self.page()
        p.until("document.querySelectorAll('article time').length > 0")
        self.assertRegex(p.run("document.querySelector('article time').title"), r'^2020-09-13 12:2\d:\d\d\.\d+ UTC$')
        self.assertRegex(p.run("document.querySelector('article time').textContent"), r'(14|02):2\d')  # Berlin, two hours ahead


class Run(harness.Case):
    """`scripts/run --page` without the build."""

    def test_recordings_are_fed_and_the_page_is_there(self):
        run = subprocess.Popen([sys.executable, os.path.join(harness.ROOT, 'scripts', 'page.py'), '--page', '--build', os.path.dirname(harness.HANKELD), '--port', '0',
                                '--past', '600'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        with run.stdout:
            address = next(line for line in run.stdout if 'http' in line).split()[-1]

            def points():
                with urllib.request.urlopen(address + 'api/v1/status', timeout=WAIT) as answer:
                    return json.load(answer)['points']['in']

            until(lambda: points() > 12 * 600, 'all of the past')
            before = points()
            until(lambda: points() > before, 'more to come')
            with urllib.request.urlopen(address, timeout=WAIT) as answer:
                self.assertIn('<main id="view"', answer.read().decode())
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(WAIT), 0)
        with self.assertRaises(OSError):
            urllib.request.urlopen(address, timeout=WAIT)


@unittest.skipIf(SANITIZED, 'what the browser draws does not depend on how the daemon was built')
class Large(Page):
    """The wall of very many sensors. How soon it draws is measured by tests/bench/scripts/page_wall.py."""

    SENSORS = 30000  # three answers of the API, and more than are sorted as people count
    DETECTORS = '[detector all]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'
    DRAWN = "Number(document.querySelector('canvas').dataset.drawn)"

    def rounds(self, handles, first, n):
        """Messages with points of the n seconds from the first on: a list for each second."""
        rng = random.Random(first)
        values = [rng.gauss(0, 1) for _ in range(10000)]  # of which each message has others in turn
        return [[harness.points(handles[i:i + 5000], [START + k * SECOND] * 5000, values[(at := rng.randrange(5000)):at + 5000])
                 for i in range(0, len(handles), 5000)] for k in range(first, first + n)]

    def wall(self, c):
        """A page with the wall of all sensors, which have scores; and their handles."""
        names = [f'plant{i // 10000}/pump{i}' for i in range(self.SENSORS)]
        handles = []
        for i in range(0, len(names), 5000):
            handles += c.register(*names[i:i + 5000])
        for messages in self.rounds(handles, 0, 24):
            for one in messages:
                c.send(one)
        c.ping()
        until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
        p = self.page('#wall')
        p.until(f"document.querySelector('.tip').textContent.startsWith('{self.SENSORS:,} sensors')")
        until(lambda: c.status()['subscribers']['count'] == 1, 'the wall to listen')
        return p, handles

    def test_a_wall_of_very_many(self):
        d = self.web(self.DETECTORS, durability='none')
        with d.client() as c:
            p, handles = self.wall(c)
            second = itertools.count(24)
            before = p.run(self.DRAWN)

            def changed():
                """Feeds a second of all sensors; the number of cells drawn again since the wall stood."""
                for one in self.rounds(handles, next(second), 1)[0]:
                    c.send(one)
                c.ping()
                return p.run(self.DRAWN) - before

            until(lambda: changed() > self.SENSORS, 'the wall to draw as many changes as it has cells')


if __name__ == '__main__':
    harness.main()
