"""Another configuration while the daemon runs: sensors with an unchanged detector continue, bit for bit; the others
start over; keys that need a restart are named; a bad file changes nothing, and every error in it is reported."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
from harness import ALERTS, HANKEL, ROOT, SCORED, SECOND, START, UNSCORED, VALUES, WAIT

sys.path.insert(0, os.path.join(ROOT, 'proto', 'python'))
import hankeld as hankel  # noqa: E402

STEADY = '[detector steady]\nmatch = a*\nwindow = 20\ninterval = 1s\nalert = 0.3\nsignal = 0\n'
ANY = '[detector any]\nmatch = *\nwindow = 8\ninterval = 1s\nalert = off\n'


def detector(name, match, window, more=''):
    return f'[detector {name}]\nmatch = {match}\nwindow = {window}\ninterval = 1s\nalert = off\n{more}'


class Reload(harness.Case):
    def reload(self, d, detectors, keys='threads = 2\n', taken=True):
        """Reloads with another file; returns the lines of the answer."""
        d.configure(detectors, keys)
        with d.client() as c:
            was_taken, lines = c.reload()
        self.assertEqual(was_taken, taken, lines)
        return lines

    def feed(self, c, handles, first, n, value=lambda sensor, i: float(i % 7 + sensor)):
        for i in range(first, first + n):
            c.send(harness.points(handles, [START + i * SECOND] * len(handles), [value(k, i) for k in range(len(handles))]))

    def run_steady(self, reloads, loops):
        """Returns results and events of forty sensors under the load of other sensors, and the number of reloads meanwhile."""
        d = self.daemon(STEADY + ANY, keys=f'threads = 2\nloops = {loops}\n')
        names = [f'a{i}' for i in range(40)]
        rng, stop, n = random.Random(5), threading.Event(), [0]
        level = [rng.random() for _ in names]
        threads = []

        def others():
            with d.connect('line tcp') as s:
                i = 0
                while not stop.is_set():
                    s.sendall(''.join(f'{kind}{k} value={(i * 7919 + k) % 101} {START + i * SECOND}\n'
                                      for kind in 'bcde' for k in range(20)).encode())
                    i += 1
                    time.sleep(0.01 if harness.SANITIZED else 0)  # a reload waits for batches in flight

        def again():
            while not stop.is_set():
                k = n[0]
                sections = [STEADY, detector('changing', 'b*', 8 + k % 5)]
                sections += [detector('coming', 'c*', 9)] if k % 2 else []
                sections += [detector('wide', '?[0-9]*', 10), detector('narrow', 'd*', 10)][:: 1 if k % 3 else -1]
                if k % 2:
                    sections.reverse()  # sensors that a* matches first keep their detector
                self.reload(d, ''.join(sections) + ANY, f'threads = 2\nloops = {loops}\nqueue = {64 + k % 2} MiB\n')
                n[0] += 1

        with d.client() as subscriber, d.client() as c:
            subscriber.subscribe(SCORED | UNSCORED | ALERTS | VALUES, 'a*')
            handles = c.register(*names)
            if reloads:
                threads = [threading.Thread(target=t) for t in (others, again)]
                for t in threads:
                    t.start()
            for i in range(300):
                values = [level[k] + rng.gauss(0, 0.1) + (i % 2 if i < 150 or k % 4 else [3, 8, 5][i % 3]) for k in range(40)]
                c.send(harness.points(handles, [START + i * SECOND] * 40, values))
                if reloads:
                    harness.until(lambda: n[0] >= i // 50, 'a reload')
                    time.sleep(0.003)
            c.ping()
            stop.set()
            for t in threads:
                t.join()
            subscriber.wait_results(300 * 40)
            subscriber.drain()
            self.assertEqual(c.errors, [])
            self.assertEqual(subscriber.gaps, [])
        if reloads:
            self.balanced(d.status())
        return sorted(subscriber.results), subscriber.events, n[0]

    def test_others_notice_nothing(self):
        results, events, _ = self.run_steady(False, 1)
        self.assertGreater(len(events), 0)
        for loops in (3,) if harness.SANITIZED else (1, 3):
            got, got_events, n = self.run_steady(True, loops)
            print(f'{n} reloads with {loops} loops')
            self.assertGreater(n, 3)
            self.assertEqual(got, results)
            self.assertEqual(sorted(got_events), sorted(events))

    def test_what_becomes_of_sensors(self):
        d = self.daemon(detector('one', 'one*', 8) + detector('two', 'two*', 8) + detector('three', 'three*', 8) + ANY)
        names = ['one', 'two', 'three', 'four']
        with d.client() as c:
            c.subscribe()
            before = c.register(*names)
            self.feed(c, before, 0, 40)
            c.wait_results(160)
            lines = self.reload(d, detector('one', 'one*', 8) + detector('two', 'two*', 9, 'stride = 2\n') +
                                detector('new', 'four*', 8) + ANY)
            self.assertEqual(lines[:4], ['[detector two] is changed (window, gap, krylov, stride, cooldown): its sensors warm up '
                                         'again',
                                         '[detector new] is new', '[detector three] was removed',
                                         '3 sensors have another detector now, or none: they warm up again'], lines)
            self.assertRegex(lines[4], 'in force, after ')
            counts = {x['name']: (x['sensors'], x['window']) for x in d.status()['detectors']}
            self.assertEqual(counts, {'one': (1, 8), 'two': (0, 9), 'new': (0, 8), 'any': (0, 8)})
            self.feed(c, before, 40, 1)
            c.ping()
            self.assertEqual(len(c.errors), 1)  # unknown handles, of three
            after = c.register(*names)
            self.assertEqual(after[0], before[0])
            self.assertTrue(set(after[1:]).isdisjoint(before))
            self.feed(c, after, 41, 1)
            states = {r[0]: r[4] for r in c.wait_results(160 + 1 + 4)[-4:]}
            self.assertEqual(states, {'one': 'ok', 'two': 'warming', 'three': 'warming', 'four': 'warming'})
        counts = {x['name']: x['sensors'] for x in d.status()['detectors']}
        self.assertEqual(counts, {'one': 1, 'two': 1, 'new': 1, 'any': 1})
        self.balanced(d.status())

    def test_standing_alerts_are_cleared(self):
        alert = 'alert = 0.3\nsignal = 0\n'
        first = ''.join(f'[detector {x}]\nmatch = {x}*\nwindow = 12\ninterval = 1s\n{alert}' for x in 'xy')
        d = self.daemon(first)
        with d.client() as c:
            c.subscribe(ALERTS | SCORED | UNSCORED)
            handles = c.register('x', 'y')
            n = 0
            while not c.events:
                self.feed(c, handles, n, 1, lambda sensor, i: [0.0, 1.0][i % 2] if i < 56 else 30 + [0.0, 5.0, 2.0][i % 3])
                n += 1
                c.wait_results(2 * n)
                c.ping()
            self.assertEqual([e[:3] for e in c.events], [('x', 1, 'raised'), ('y', 1, 'raised')])
            self.reload(d, first.replace('[detector y]\nmatch = y*\nwindow = 12', '[detector y]\nmatch = y*\nwindow = 13'))
            c.ping()
            self.assertEqual([e[:3] for e in c.events[2:]], [('y', 1, 'cleared')])
        self.assertEqual(d.status()['events']['cleared'], 1)

    def test_a_bad_file_changes_nothing(self):
        d = self.daemon(ANY)
        with d.client() as c:
            c.subscribe()
            handles = c.register('s')
            self.feed(c, handles, 0, 40)
            lines = self.reload(d, detector('bad', 'x*', 3) + ANY, 'threads = 2\nqueue = 7\nmax_sensor = 9\n', taken=False)
            self.assertEqual(len(lines), 4, lines)
            for line, word in zip(lines, ['queue = 7', 'no key `max_sensor`', 'window = 3', 'stays as it was']):
                self.assertIn(word, line)
            os.unlink(os.path.join(d.directory.name, 'hankeld.conf'))
            with d.client() as other:
                self.assertEqual(other.reload()[0], False)
            self.feed(c, handles, 40, 10)
            self.assertEqual([r[4] for r in c.wait_results(50)][-10:], ['ok'] * 10)
            self.assertEqual([x['name'] for x in d.status()['detectors']], ['any'])
        for word in ['queue = 7', 'window = 3', 'No such file', 'stays as it was']:
            self.assertTrue(any('reload: ' in line and word in line for line in d.log), word)
        told = d.status()['configuration']
        self.assertEqual((told['state'], told['reloads'], told['refused']), ('refused', 0, 2))
        self.assertIn('No such file', told['why'])
        self.assertEqual(self.reload(d, ANY), ['the configuration is as it was'])
        told = d.status()['configuration']
        self.assertEqual((told['state'], told['reloads'], told['refused']), ('in force', 1, 2))
        self.assertNotIn('why', told)

    def test_hangup(self):
        d = self.daemon(ANY)
        d.configure(detector('new', 'n*', 9) + ANY)
        d.process.send_signal(signal.SIGHUP)
        harness.until(lambda: any('in force' in line for line in d.log), 'the reload')
        self.assertEqual([x['name'] for x in d.status()['detectors']], ['new', 'any'])
        d.configure('[detector')
        for _ in range(20):
            d.process.send_signal(signal.SIGHUP)
        harness.until(lambda: any('stays as it was' in line for line in d.log), 'the refusal')
        self.assertEqual([x['name'] for x in d.status()['detectors']], ['new', 'any'])

    def test_keys(self):
        d = self.daemon(ANY, keys='threads = 2\nmax_ahead = off\nlog_level = info\nidle = off\nmax_sensors = 3\n')
        with d.client() as c, d.client() as idle:
            c.subscribe()
            handles = c.register('s')
            ahead = int(time.time()) * SECOND + 3600 * SECOND
            c.send(harness.points(handles, [ahead], [1.0]))
            lines = self.reload(d, ANY, 'threads = 3\nmax_ahead = 1m\nlog_level = debug\nidle = 1s\nmax_sensors = 5\n'
                                        'max_line = 128 KiB\n')
            self.assertEqual(lines[:-1], ['log_level: info -> debug', 'threads: 2 -> 3 needs a restart; it stays 2',
                                          'max_sensors: 3 -> 5 needs a restart; it stays 3', 'max_line: 64KiB -> 128KiB',
                                          'max_ahead: off -> 1m', 'idle: off -> 1s'])
            c.send(harness.points(handles, [ahead + SECOND], [1.0]))
            self.assertEqual([r[4] for r in c.wait_results(2)], ['warming', 'rejected'])
            self.assertEqual(d.status()['sensors']['max'], 3)
            with self.assertRaises(harness.Closed) as closed:
                idle.receive()  # the ERROR
                idle.keep(0xff, b'\x0b\0\0\0\0\0')
                idle.receive()
        self.assertIsNotNone(closed.exception.error)
        harness.until(lambda: any('debug: ' in line for line in d.log), 'a line of level debug')
        lines = self.reload(d, ANY.replace('match = *', 'match = s*'), 'threads = 2\nmax_sensors = 3\n')
        self.assertIn('[detector any]: match = * -> s*', lines)

    def test_listeners_need_a_restart(self):
        d = self.daemon(ANY)
        d.listeners = d.listeners.replace('[listen text]', '[listen other]').replace('protocol = line\naddress',
                                                                                     'protocol = line\nprecision = s\naddress')
        lines = self.reload(d, ANY)
        for word in ['[listen line] is changed', '[listen other] is new', '[listen text] was removed']:
            self.assertTrue(any(line.startswith(word) and 'restart' in line for line in lines), (word, lines))

    def test_memory_and_eviction(self):
        d = self.daemon(ANY, keys='threads = 2\nmemory = 1 KiB\n')
        with d.client() as c:
            self.assertEqual(c.register('s'), [None])
            self.reload(d, ANY, 'threads = 2\nmemory = 64 MiB\nevict = 1s\n')
            self.assertNotEqual(c.register('s'), [None])
            harness.until(lambda: d.status()['sensors']['evicted'] == 1, 'the eviction')

    def test_many_detectors_many_times(self):
        """The most detectors that are allowed, all of them new at each reload: their numbers and memory are freed."""
        d = self.daemon(ANY)
        before = None
        for k in range(5):
            n = (100 if harness.SANITIZED else 1024) if k < 4 else 1
            lines = self.reload(d, ''.join(detector(f'd{i}', f's{i}', 4 + k % 3) for i in range(n)))
            self.assertIn('in force', lines[-1])
            with d.client() as c:
                handles = c.register(*(f's{i}' for i in range(n)))
                self.assertNotIn(None, handles)
                self.feed(c, handles, 0, 2)
                c.ping()
            self.assertEqual(d.status()['sensors']['count'], n)
            if k == 2:
                before = d.rss()
        self.assert_grew_less(d, before, 2 << 20)  # pages that stayed would be 8 MB more

    def test_reloads_leave_nothing_behind(self):
        d = self.daemon(STEADY + ANY)
        files = f'/proc/{d.process.pid}/fd'
        with d.client() as c:
            handles = c.register('a', 'b')
            for k in range(80 if harness.SANITIZED else 150):
                d.configure(STEADY + ANY.replace('window = 8', f'window = {8 + k % 2}'))
                taken, lines = c.reload()
                self.assertTrue(taken, lines)
                self.feed(c, handles, k, 1)
                handles[1:] = c.register('b')
                if k == 75:
                    before, descriptors = d.rss(), len(os.listdir(files))
            self.assertEqual(len(os.listdir(files)), descriptors)
            self.assert_grew_less(d, before, 1 << 20)

    def test_asked_together(self):
        d = self.daemon(ANY)
        clients = [d.client() for _ in range(20)]
        d.configure(detector('new', 'n*', 9) + ANY)
        for c in clients:
            c.send(harness.frame(harness.RELOAD, tag=1) * 2)
        for c in clients:
            for _ in range(2):
                kind, tag, payload = c.receive()
                self.assertEqual((kind, tag, payload[0]), (harness.RELOADED, 1, 1))
            c.close()
        self.assertEqual(len(d.status()['detectors']), 2)

    def test_a_journal_goes_on(self):
        """After a reload the daemon is killed: restored sensors have the new configuration, and unchanged ones continue bit for bit."""
        state = tempfile.mkdtemp(prefix='hankeld-state-')
        self.addCleanup(shutil.rmtree, state)
        keys = 'threads = 2\nmax_ahead = off\n'
        durable = keys + f'durability = journal\nstate = {state}/there\n'
        before, after = (STEADY + detector('changing', 'b*', w) for w in (8, 9))

        def value(sensor, i):
            return [0.0, 1.0, 0.5][i % 3] + (i * 7919 + sensor) % 101 * 0.001 if i < 90 else [3.0, 8.0][i % 2]

        def life(d, first, n):
            with d.client() as c:
                c.subscribe()
                handles = c.register('a', 'b')
                self.feed(c, handles, first, n, value)
                return {(r[0], r[1]): r[3:] for r in c.wait_results(2 * n)}

        d = self.daemon(after, keys=keys)
        steady = {k: r for k, r in life(d, 0, 140).items() if k[0] == 'a'}
        d = self.daemon(after, keys=keys)
        changing = {k: r for k, r in life(d, 60, 80).items() if k[0] == 'b'}
        d = self.daemon(before, keys=durable, ends=-signal.SIGKILL)
        got = life(d, 0, 60)
        self.reload(d, after, durable)
        got.update(life(d, 60, 40))
        d.process.kill()
        d.process.wait()
        d = self.daemon(after, keys=durable)
        got.update(life(d, 100, 40))
        self.assertEqual({k: r for k, r in got.items() if k[0] == 'a'}, steady)
        self.assertEqual({k: r for k, r in got.items() if k[0] == 'b' and k[1] >= START + 60 * SECOND}, changing)

    def test_clients(self):
        d = self.daemon(ANY)
        at = f'127.0.0.1:{d.port["binary tcp"]}'

        def command(*arguments):
            return subprocess.run([HANKEL, 'reload', '--from', at, *arguments], capture_output=True, text=True, timeout=WAIT,
                                  check=False)

        d.configure(detector('new', 'n*', 9) + ANY)
        done = command()
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertRegex(done.stdout, r'\A\[detector new\] is new\nthe configuration is in force, after \d+ ms\n\Z')
        d.configure(detector('new', 'n*', 1))
        done = command()
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('window = 1', done.stderr)
        self.assertEqual(command('more').returncode, 2)
        with hankel.Client(at) as c:
            taken, text = c.reload()
            self.assertFalse(taken)
            self.assertIn('window = 1', text)
            d.configure(ANY)
            self.assertEqual(c.reload()[0], True)

    @unittest.skipUnless('SLOW_OPEN_LIBRARY' in os.environ, 'a preloaded library does not go with a sanitizer')
    def test_a_file_system_that_hangs_holds_up_nothing_else(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        hold = os.path.join(folder, 'hold')
        d = self.daemon(ANY, keys='threads = 2\nloops = 1\n', environment={
            'LD_PRELOAD': os.environ['SLOW_OPEN_LIBRARY'], 'SLOW_OPEN': '/hankeld.conf', 'SLOW_OPEN_WHILE': hold})
        open(hold, 'w').close()
        answer = []
        asking = threading.Thread(target=lambda: answer.append(self.reload(d, detector('other', '*', 9))))
        asking.start()
        with d.client() as c:
            self.assertEqual(len(c.register('a')), 1)
            for _ in range(20):  # the reload is under way, and the only loop still answers
                c.ping()
                time.sleep(0.01)
            self.assertEqual(c.status()['configuration']['reloads'], 0)
        self.assertEqual(answer, [])
        os.remove(hold)
        asking.join(WAIT)
        self.assertIn('the configuration is in force', ''.join(answer[0]))

    def test_fault_34_a_configuration_that_is_no_file(self):
        """A FIFO without a writer, an endless device, a directory, a huge file: reported with the path, and the old configuration stays."""
        d = self.daemon(ANY)
        path = os.path.join(d.directory.name, 'hankeld.conf')

        def huge():
            with open(path, 'w') as f:
                f.truncate(1 << 33)  # a hole

        kinds = {'a FIFO': lambda: os.mkfifo(path), 'a device': lambda: os.symlink('/dev/zero', path), 'a directory': lambda: os.mkdir(path),
                 'longer than': huge}
        for what, make in kinds.items():
            os.unlink(path)
            make()
            with d.client() as c:
                taken, lines = c.reload()
            self.assertFalse(taken, lines)
            self.assertIn(path, lines[0])
            self.assertIn(what, lines[0])
            self.assertEqual([x['name'] for x in d.status()['detectors']], ['any'])
            if what != 'a FIFO':
                done = subprocess.run([harness.HANKELD, '-c', path], capture_output=True, text=True, timeout=harness.WAIT, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(path, done.stderr)
                self.assertIn(what, done.stderr)
            (os.rmdir if what == 'a directory' else os.unlink)(path)
            open(path, 'w').close()
        os.unlink(path)
        self.assertIn('the configuration is as it was', self.reload(d, ANY)[0])

    def test_fault_34_a_configuration_through_a_pipe(self):
        """At the start the configuration may come from a shell's <(command) or a pipe, within bounds."""
        good = "printf '[daemon]\\nbackend = cpu\\n[detector all]\\nmatch = *\\n'"
        cases = {f'{harness.HANKELD} -c <(sleep 0.5; {good}) --check': 0, f'{good} | {harness.HANKELD} -c /dev/stdin --check': 0,
                 f'{harness.HANKELD} -c <(sleep 200) --check': 1, f'{harness.HANKELD} -c <(timeout 20 cat /dev/zero) --check': 1}
        for command, code in cases.items():
            begun = time.monotonic()
            done = subprocess.run(['bash', '-c', command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=harness.WAIT, check=False)
            self.assertEqual(done.returncode, code, command)
            self.assertLess(time.monotonic() - begun, 150, command)
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, 'fifo')
        os.mkfifo(path)
        done = subprocess.run([harness.HANKELD, '-c', path], capture_output=True, text=True, timeout=harness.WAIT, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(path, done.stderr)


if __name__ == '__main__':
    harness.main()
