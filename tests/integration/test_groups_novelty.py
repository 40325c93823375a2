"""Groups with statistic = both: the novelty of a machine is computed beside the joint statistic, and continues over restarts."""
import shutil

import harness
from harness import ALERTS, SCORED, SECOND, START
from test_groups import CHANGE, DETECTOR, GROUP, KEYS, NAMES, ROWS, Case, rows
from test_groups_restart import Lives

import hankeld  # noqa: E402

BOTH = GROUP + 'statistic = both\n'


def new_state():
    """Machine a only changes its level; in machine b one sensor departs from the others for ten rows, more and more."""
    values = rows()
    for i in range(CHANGE, CHANGE + 10):
        values[i] = [v + (10 ** k * 2 * (i - CHANGE) if name == 'plant/b/flow' else 0) for k, (name, v) in enumerate(zip(NAMES, values[i]))]
    return values


def by_series(events):
    """Events sorted by series; the order between series depends on the sizes of batches."""
    return sorted(events, key=lambda e: e[0])


class Novelty(Case):
    def run_groups(self, values, groups):
        """Feeds a new daemon with these groups."""
        d = self.daemon(DETECTOR + groups, keys=KEYS)
        with d.client() as c, d.client() as subscriber:
            subscriber.subscribe(SCORED | ALERTS, 'press*#*')
            self.send(c, c.register(*NAMES), values)
            c.ping()
            harness.until(lambda: d.status()['points']['pending'] == 0 and d.status()['derived']['points'] > 0, 'all points')
            subscriber.drain(0.2)
            return self.said(subscriber), d.status()

    def test_beside_the_joint_statistic(self):
        """Each machine has two series, each with its own alerts; those of the joint statistic are the same as without novelty."""
        values = new_state()
        (alone, events), _ = self.run_groups(values, GROUP)
        (scores, told), status = self.run_groups(values, BOTH)
        self.assertEqual([s for s in scores if s[0].startswith('press#')], alone)
        self.assertEqual([e for e in told if e[0].startswith('press#')], events)
        self.assertEqual({s[0] for s in scores}, {'press#a', 'press#b', 'press.novelty#a', 'press.novelty#b'})
        novel = [e for e in told if e[0] == 'press.novelty#b' and START + CHANGE * SECOND <= e[3] < START + (CHANGE + 60) * SECOND]
        self.assertEqual([e[2] for e in novel][::len(novel) - 1], ['raised', 'cleared'])
        self.assertEqual({e[2] for e in novel[1:-1]}, {'corrected'})
        self.assertEqual({e[1] for e in novel}, {novel[0][1]})  # one alert
        self.assertLess(novel[0][3], START + (CHANGE + 10) * SECOND)
        self.assertEqual(status['groups'], {'machines': 2, 'members': 8})
        self.assertEqual(status['sensors']['count'], 12)

    def test_only_novelty(self):
        """statistic = novelty: the machine's series is that one."""
        values = new_state()
        (both, _), _ = self.run_groups(values, BOTH)
        (scores, _), _ = self.run_groups(values, GROUP + 'statistic = novelty\n')
        self.assertEqual([(n.replace('press#', 'press.novelty#'), t, z) for n, t, z in scores],
                         [s for s in both if s[0].startswith('press.novelty#')])


    def test_maintenance(self):
        """A maintenance window for a machine's first series covers its second one, and no other machine."""
        values = new_state()  # machine b alerts, in both series
        for machine, covered in (('b', True), ('a', False)):
            d = self.daemon(f'{DETECTOR}{BOTH}[maintenance m]\nmatch = press#{machine}\nfrom = 2000-01-01T00:00:00Z\nduration = 36500d\n', keys=KEYS)
            with d.client() as c, hankeld.Client(f'127.0.0.1:{d.port["binary tcp"]}', timeout=harness.WAIT) as watcher:
                watcher.subscribe(scores=False, since=0)
                self.send(c, c.register(*NAMES), values)
                marked = {}
                while len(marked) < 2:
                    event = watcher.read(harness.WAIT)
                    if event.kind == 'raised':
                        marked[event.sensor] = event.maintenance
            self.assertEqual(marked, {'press#b': covered, 'press.novelty#b': covered})


class Restarted(Lives):
    def test_goes_on(self):
        """If the daemon is killed in the middle of an alert, or ended, no result is repeated, different or missing."""
        values = new_state()
        cuts = [0, CHANGE + 6, ROWS]
        expected, events, _ = self.part(values, 0, ROWS, self.keys(), groups=BOTH)
        self.assertTrue({'press#b', 'press.novelty#b'} <= {e[0] for e in events})
        for durability, kill in (('journal', True), ('snapshot', False)):
            with self.subTest(durability=durability):
                shutil.rmtree(f'{self.state}/there')
                scores, told = [], []
                for first, behind in zip(cuts, cuts[1:]):
                    more, some, _ = self.part(values, first, behind, self.keys(durability), kill and behind < ROWS, groups=BOTH)
                    scores += more
                    told += some
                self.assertEqual(sorted(scores), expected)
                self.assertEqual(by_series(told), by_series(events))


if __name__ == '__main__':
    harness.main()
