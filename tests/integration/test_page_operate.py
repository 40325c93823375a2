"""Operators' actions on the page, in a real Chromium; the page asks for a token, and reconnects by itself after the daemon was away."""
import hashlib
import http.server
import signal
import tempfile
import threading
import time

import harness
import test_groups
import test_page
from harness import SECOND, START, until
from test_page import HEADING, INCIDENTS, STEPS

TOKENS = {'viewer': 'subscribe', 'operator': 'subscribe,admin'}


def token_of(name):
    return f'hkt_{name}_' + 'x' * 20


class Operating(test_page.Page):
    def test_an_alert_is_acknowledged_and_maintained(self):
        d = self.web()
        self.alert(d)
        p = self.page()
        p.until("document.title === '(1) hankeld'")
        p.click('article button', 'Acknowledge')
        p.until("document.querySelector('article').innerText.includes('acknowledged by')")
        p.until("document.title === 'hankeld'")
        p.click('article button', 'Maintenance, 1 h')
        p.until("[...document.querySelectorAll('h2')].some(h => h.textContent === 'Maintenance')")
        self.assertEqual({w['match'] for w in d.status()['maintenance']}, {'pump'})  # a repeated click makes a second window
        p.click('main button', 'End')
        until(lambda: not d.status()['maintenance'], 'the maintenance to end')

    def test_alerts_of_one_cause_are_one_incident(self):
        d = self.web('[incidents]\nbudget = 100/day\ninterval = 1s\n' + STEPS.replace('alert = 0.6', 'alert = 0.6\nhold = 1'))
        names = [f'hall1/press3/s{i}' for i in range(4)] + [f'hall2/press{i}/s0' for i in range(8)]
        self.feed(d, names, 25)
        k = self.alert(d, names[:4], 25)
        p = self.page()
        p.until("document.querySelectorAll('article').length === 1 && document.querySelectorAll('article ol li').length === 4")
        self.assertEqual(p.run(HEADING), '1 to look at')
        p.until("document.querySelector('article').innerText.includes('sensors')")
        p.click('article button', 'Acknowledge')
        p.until("document.querySelector('article').innerText.includes('acknowledged by')")
        self.assertEqual((d.status()['alerts']['acknowledged'], p.run(HEADING)), (4, 'Nothing new; 1 acknowledged'))
        p.click('article button', 'Maintenance, 1 h')
        self.assertGreater(len(until(lambda: d.status()['maintenance'], 'maintenance')), 0)
        self.feed(d, names, 60, k, lambda k: 0.25)
        p.until(f"{HEADING} === 'All is well' && document.querySelectorAll('.lately li').length > 0")

    def test_a_machine_is_above_its_sensors(self):
        low = '[detector low]\nmatch = plant/b/flow\nwindow = 8\ninterval = 1s\nalert = 1e-6\n'  # a level that any noise passes
        d = self.web(low + test_groups.DETECTOR + test_groups.GROUP, keys='max_ahead = off\n')
        p = self.page()
        with d.client() as c:
            handles = c.register(*test_groups.NAMES)
            for i, row in enumerate(test_groups.rows()):
                c.send(harness.points(handles, [START + i * SECOND] * len(row), row))
                if i >= test_groups.CHANGE:
                    c.ping()
                    until(lambda: c.status()['points']['pending'] == 0, 'every point to have a result')
                    if c.status()['alerts']['standing'] == 2:
                        break
        p.until("document.querySelectorAll('article').length === 1 && document.querySelectorAll('article details p').length === 1")
        self.assertEqual(p.run("document.querySelector('article > p a').textContent"), 'press#b')
        self.assertEqual(p.run("document.querySelector('article details').innerText.split(':')[0]"), 'One of its sensors\n\nplant/b/flow')
        self.assertEqual(p.run(HEADING), '1 to look at')
        p.click('article button', 'Acknowledge')
        until(lambda: d.status()['alerts']['acknowledged'] == 2, 'both to be acknowledged')

    def test_expected_acknowledges_and_maintains(self):
        d = self.web()
        self.alert(d)
        p = self.page()
        p.click('article button', 'Expected')
        p.until("document.querySelector('article').innerText.includes('acknowledged by')")
        self.assertEqual({w['match'] for w in d.status()['maintenance']}, {'pump'})

    def test_an_incident_is_said_to_be_expected_or_false(self):
        d = self.web(INCIDENTS)
        n = self.alert(d)
        p = self.page()
        p.click('article button', 'Expected')
        p.until("document.querySelector('article').innerText.includes('said to be expected')")
        p.until("document.querySelector('article').innerText.includes('acknowledged by')")
        until(lambda: [f['kind'] for f in d.status()['incidents']['feedback']] == ['expected'], 'it to be in force')
        self.assertEqual(d.status()['maintenance'], [])
        p.click('article button', 'Undo')
        p.until("!document.querySelector('article').innerText.includes('said to be')")
        until(lambda: d.status()['incidents']['feedback'] == [], 'it to be undone')
        self.feed(d, ['pump'], 120, n, lambda k: 0.25)  # the incident is closed, and may still be marked
        p.until("document.querySelectorAll('article').length === 0 && document.querySelectorAll('.lately li').length > 0")
        p.click('.lately button', 'False alarm')
        p.until("document.querySelector('.lately').innerText.includes('said to be a false alarm')")
        until(lambda: [f['kind'] for f in d.status()['incidents']['feedback']] == ['false'], 'it to be in force')
        p.run("location.hash = '#timeline'")
        p.until("[...document.querySelectorAll('tr.told')].map(r => r.cells[2].textContent.replace(/ .#.*/, '')).join() === 'said to be false,what was said is undone,said to be expected'")

    def test_what_was_reported_is_apart_from_what_was_withheld(self):
        """A sensor that was reported is not reported again so soon: its second incident is withheld. A restart forgets neither."""
        d = self.web(INCIDENTS)
        n = 0
        for _ in range(2):
            n = self.alert(d, first=n)
            self.feed(d, ['pump'], 120, n, lambda k: 0.25)
            n += 120
        until(lambda: (lambda i: (i['told_today'], i['withheld_today'], i['open']) == (1, 1, 0))(d.status()['incidents']), 'one of each')
        for again in False, True:
            p = self.page(clean=again)  # the first one is there while the daemon is away
            p.until("[...document.querySelectorAll('ul.lately')].filter(list => !list.closest('details')).map(list => list.children.length).join() === '1'")
            text = p.run("document.querySelector('ul.lately li').innerText")
            self.assertRegex(text, r'#1 pump')
            self.assertNotIn('UTC', text)  # times are the viewer's
            self.assertIn('1 reported on the last day of the data, and 1 withheld by the budget of 100 a day', p.run("document.querySelector('details.withheld summary').textContent"))
            p.click('details.withheld summary')
            p.until("document.querySelector('details.withheld').open && document.querySelector('details.withheld li').innerText.includes('#2 pump')")
            self.assertEqual(p.run(HEADING), 'All is well')
            if not again:
                port = d.port['http tcp']
                d.stop()
                d = self.web(INCIDENTS, port=port)
        p.click('details.withheld li button', 'Expected')
        p.until("document.querySelector('details.withheld').open && document.querySelector('details.withheld li').innerText.includes('said to be expected')")

    def test_login_with_a_token(self):
        with tempfile.NamedTemporaryFile('w', suffix='.tokens') as f:
            f.writelines(f'{n} {s} sha256:{hashlib.sha256(token_of(n).encode()).hexdigest()}\n' for n, s in TOKENS.items())
            f.flush()
            d = self.web(extra=f'tokens = {f.name}\n')
            n = self.alert(d)
            p = self.page(clean=False)
            p.type('main input', 'hkt_wrong')
            p.click('main button', 'Log in')
            p.until("document.querySelector('.fault').textContent.includes('unknown token')")
            p.run("document.querySelector('main input').value = ''")
            p.type('main input', token_of('viewer'))
            p.key('Enter', number=13)
            p.until("document.querySelectorAll('article').length === 1")
            self.assertEqual(p.run('document.cookie'), '')  # scripts cannot read it
            p.click('article button', 'Acknowledge')
            refused = "[...document.querySelectorAll('article')].filter(a => a.innerText.includes('scope')).length"
            p.until(f'{refused} === 1')
            self.feed(d, ['valve'], n)  # as pump was: the cards are made anew, and the answer stays
            p.until("document.querySelectorAll('article').length === 2")
            self.assertEqual(p.run(refused), 1)
            p.run("fetch('/api/v1/logout', {method: 'POST'})")
            p.go(self.address + '#timeline')
            p.until(f"{HEADING} === 'A token is needed here'")
            p.type('main input', token_of('operator'))
            p.key('Enter', number=13)
            p.until(f"{HEADING} === 'Timeline'")
            p.run("location.hash = '#now'")
            p.click('article button', 'Acknowledge')
            p.until("document.querySelector('main').innerText.includes('acknowledged by operator')")
            f.truncate(0)
            d.process.send_signal(signal.SIGHUP)
            p.until(f"{HEADING} === 'A token is needed here'")

    def refuse(self, port, seconds):
        """Answers like a daemon that restores its state."""
        class Restoring(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_error(503)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(('127.0.0.1', port), Restoring) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            time.sleep(seconds)
            server.shutdown()
            thread.join()

    def test_the_daemon_ends_and_is_started_again(self):
        d = self.web()
        n = self.alert(d)
        port = d.port['http tcp']
        pages = [self.page(view, clean=False) for view in ('#now', '#sensor/pump', '#wall', '#timeline', '#health')]
        for p in pages:
            p.until("document.getElementById('link').textContent === 'live'")
        d.stop()
        for p in pages:
            p.until("document.getElementById('link').textContent.includes('no connection')")
        self.refuse(port, 4)
        d = self.web(port=port)
        for p in pages:
            p.until("document.getElementById('link').textContent === 'live'")
        self.feed(d, ['pump'], 100, n)
        pages[1].until("Number(document.querySelector('canvas').dataset.points) > 23")
        for p in pages:  # the page only reports that the daemon was away
            self.assertEqual([f for f in p.faults if 'ERR_' not in f and '503' not in f], [])


if __name__ == '__main__':
    harness.main()
