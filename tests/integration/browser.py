"""Chromium for tests, by the DevTools protocol over a pair of pipes: standard library only, no driver, no port.

    with browser.Browser() as b:
        page = b.page()
        page.go('http://127.0.0.1:7413/')
        page.until("document.querySelector('h1')?.textContent === 'Now'")

page.faults has the errors that a page logs or throws, and failed requests unless page.network is False.
"""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# Headless alone, it takes a quarter of the processor time of the whole browser, which draws its window, too.
SHELL = '/usr/lib/chromium/chromium-headless-shell'  # the program of this name in PATH is a shell script that stays between
PROGRAM = os.environ.get('CHROMIUM') or next(filter(None, map(shutil.which, (SHELL, 'chromium', 'chromium-browser'))), None)
WAIT = 60  # seconds that any step may take


class Failed(AssertionError):
    pass


class Browser:
    """A Chromium process with an empty profile."""

    def __init__(self, *more):
        self.folder = tempfile.TemporaryDirectory(prefix='hankeld-browser-', ignore_cleanup_errors=True)
        take, self.out = os.pipe()
        self.into, give = os.pipe()
        # The protocol reads descriptor 3 and writes descriptor 4.
        command = [PROGRAM, '--headless=new', '--remote-debugging-pipe', '--no-first-run', '--disable-gpu', '--disable-extensions',
                   '--disable-background-networking', '--disable-component-update', '--no-default-browser-check', '--mute-audio',
                   '--disable-dev-shm-usage', '--hide-scrollbars', '--force-color-profile=srgb', '--lang=en-GB',
                   f'--user-data-dir={self.folder.name}', *more]
        if os.geteuid() == 0:
            command.append('--no-sandbox')  # Chromium refuses to run as root otherwise
        high = [os.dup(take), os.dup(give)]

        def descriptors():
            os.dup2(high[0], 200)
            os.dup2(high[1], 201)
            os.dup2(200, 3)
            os.dup2(201, 4)

        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=descriptors, pass_fds=(3, 4), start_new_session=True,
                                        env={**os.environ, 'TZ': 'Europe/Berlin', 'HOME': self.folder.name})
        for fd in take, give, *high:
            os.close(fd)
        self.number, self.rest, self.pages = 0, b'', {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError, Failed):
            self.call('Browser.close')
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()

    def take(self, wait):
        """The next message, or None if none comes within that many seconds."""
        end = time.monotonic() + wait
        while b'\0' not in self.rest:
            ready, _, _ = select.select([self.into], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            data = os.read(self.into, 1 << 20)
            if not data:
                raise Failed('the browser has ended')
            self.rest += data
        message, self.rest = self.rest.split(b'\0', 1)
        return json.loads(message)

    def deal(self, message):
        page = self.pages.get(message.get('sessionId'))
        if page and 'method' in message:
            page.heard(message['method'], message['params'])

    def call(self, method, session=None, **params):
        self.number += 1
        mine = self.number
        message = {'id': mine, 'method': method, 'params': params, **({'sessionId': session} if session else {})}
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self.out, data):]
        end = time.monotonic() + WAIT
        while True:
            got = self.take(max(0, end - time.monotonic()))
            if got is None:
                raise Failed(f'{method} was not answered within {WAIT} s')
            if got.get('id') == mine:
                if 'error' in got:
                    raise Failed(f"{method}: {got['error']}")
                return got['result']
            self.deal(got)

    def page(self, **how):
        """A tab with its own cookies."""
        context = self.call('Target.createBrowserContext')['browserContextId']
        target = self.call('Target.createTarget', url='about:blank', browserContextId=context)['targetId']
        session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        page = self.pages[session] = Page(self, session, **how)
        page.context = context
        page.begin()
        return page


class Page:
    def __init__(self, browser, session, width=1280, height=800, dark=False, phone=False):
        self.browser, self.session = browser, session
        self.faults, self.network = [], True
        self.size, self.dark, self.phone = (width, height), dark, phone

    def begin(self):
        for domain in 'Page', 'Runtime', 'Log', 'Network', 'DOM':
            self.call(domain + '.enable')
        self.look(*self.size, dark=self.dark)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def heard(self, method, params):
        if method == 'Runtime.exceptionThrown':
            self.faults.append(json.dumps(params['exceptionDetails'])[:600])
        elif method == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'warning', 'assert'):
            self.faults.append(json.dumps(params['args'])[:600])
        elif method == 'Log.entryAdded' and params['entry']['level'] == 'error':
            entry = params['entry']
            if entry['source'] != 'network' or self.network:
                self.faults.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")

    def look(self, width, height, dark=False, scale=1):
        """Sets size, in CSS pixels, and theme."""
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=scale, mobile=self.phone)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def go(self, url):
        self.call('Page.navigate', url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script):
        """The value of an expression; waits for a promise."""
        got = self.call('Runtime.evaluate', expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if 'exceptionDetails' in got:
            raise Failed(f"{script}: {json.dumps(got['exceptionDetails'])[:600]}")
        return got['result'].get('value')

    def until(self, script, wait=WAIT):
        """Waits until an expression is true, and returns what it gives."""
        begin = time.monotonic()
        while True:
            with contextlib.suppress(Failed):  # the page may have been replaced meanwhile
                got = self.run(script)
                if got:
                    return got
            took = time.monotonic() - begin
            if took > wait:
                raise Failed(f'waited {wait} s for {script}; the page says: {self.text()[:1500]}; faults: {self.faults}')
            time.sleep(min(max(took / 10, 0.03), 0.25))

    def text(self):
        return self.run('document.body.innerText')

    def wait(self, seconds):
        """Lets the page run for that many seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            got = self.browser.take(left)
            if got:
                self.browser.deal(got)

    def click(self, selector, text=None):
        """Waits for an element that fits, and clicks the first one with the mouse. If the page redraws itself between the look and the
        click, so that another element is at that place, it clicks again."""
        find = f'[...document.querySelectorAll({json.dumps(selector)})].find(e => {json.dumps(text)} === null || e.textContent.trim() === {json.dumps(text)})'
        end = time.monotonic() + WAIT
        while True:
            self.until(f'!!{find}')
            at = self.run(f"(find => {{ const e = find(); if (!e) return null; e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); window.hit = false; "
                          f"document.addEventListener('click', c => {{ window.hit ||= Boolean(find()?.contains(c.target)); }}, {{once: true, capture: true}}); "
                          f"return [b.x + b.width / 2, b.y + b.height / 2]; }})(() => {find})")
            if at:
                self.mouse('mouseMoved', *at)
                for kind in 'mousePressed', 'mouseReleased':
                    self.mouse(kind, *at, button='left', clickCount=1)
                if self.run('window.hit') is not False:  # undefined: the click led to another document
                    return
            if time.monotonic() > end:
                raise Failed(f'no click on {selector} {text or ""} arrived')

    def mouse(self, kind, x, y, **how):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **how)

    def key(self, key, code=None, number=0, **how):
        text = {'text': key} if len(key) == 1 else {'text': '\r'} if key == 'Enter' else {}
        for kind in 'keyDown', 'keyUp':
            self.call('Input.dispatchKeyEvent', type=kind, key=key, code=code or key, windowsVirtualKeyCode=number,
                      **(text if kind == 'keyDown' else {}), **how)

    def type(self, selector, text):
        self.until(f'!!document.querySelector({json.dumps(selector)})')
        self.run(f'document.querySelector({json.dumps(selector)}).focus()')
        self.call('Input.insertText', text=text)

    def screenshot(self, path, whole=False):
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=whole)['data']
        with open(path, 'wb') as f:
            f.write(base64.b64decode(data))
