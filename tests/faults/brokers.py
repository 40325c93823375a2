"""Three brokers of one RabbitMQ cluster, each in its own network namespace, with links that can be cut. The program that uses them runs in a network
namespace, too (`alone`), so that the machine is not affected, and nothing remains."""
import os
import subprocess
import sys
import time

import harness
import rabbit

NET, ALONE = '10.77.0', 'HANKELD_RIG_ALONE'
PATIENCE = 180  # s for brokers to find each other: now and then RabbitMQ 3.10 does not, after a link between two of them was cut
KEYS = ['loopback_users = none', 'cluster_partition_handling = pause_minority', 'cluster_formation.peer_discovery_backend = classic_config']


def run(*command):
    subprocess.run(command, check=True, capture_output=True, timeout=harness.WAIT)


def alone():
    """Starts the program again in a network namespace, unless it runs in one."""
    if ALONE not in os.environ:
        os.execvpe('unshare', ['unshare', '--net', '--', sys.executable, *sys.argv], {**os.environ, ALONE: '1'})


class Brokers:
    """Brokers 0, 1, 2. Programs of this namespace reach all of them over a bridge. `refuse` is for os.setgid(group): packets of such a process
    to brokers are dropped."""

    def __init__(self, n=3):
        run('ip', 'link', 'set', 'lo', 'up')
        run('ip', 'link', 'add', 'br0', 'type', 'bridge')
        run('ip', 'addr', 'add', f'{NET}.1/24', 'dev', 'br0')
        run('ip', 'link', 'set', 'br0', 'up')
        run('nft', 'add', 'table', 'ip', 'rig')
        run('nft', 'add', 'set', 'ip', 'rig', 'cut', '{ type gid; }')
        run('nft', 'add', 'chain', 'ip', 'rig', 'out', '{ type filter hook output priority 0; }')
        run('nft', 'add', 'rule', 'ip', 'rig', 'out', 'oifname', 'br0', 'meta', 'skgid', '@cut', 'drop')
        self.restarts = 0  # restarts of brokers that did not find the others again
        self.healed = 0  # restarts of brokers that still reported a partition
        self.places = [self._place(i) for i in range(n)]
        keys = KEYS + [f'cluster_formation.classic_config.nodes.{i + 1} = hankeld@{NET}.{11 + i}' for i in range(n)]
        self.nodes = [rabbit.Broker(address=f'{NET}.{11 + i}', within=self._within(i), keys=keys, erlang='-kernel net_ticktime 8') for i in range(n)]
        for b in self.nodes:
            b.wait()
        self.whole()  # a stream has replicas on the brokers that run when it is created

    def _place(self, i):
        place = subprocess.Popen([*rabbit.WITH_US, 'unshare', '--net', 'sleep', 'infinity'])
        here = os.readlink('/proc/self/ns/net')
        harness.until(lambda: os.readlink(f'/proc/{place.pid}/ns/net') != here, 'the namespace')
        run('ip', 'link', 'add', f'broker{i}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', str(place.pid))
        run('ip', 'link', 'set', f'broker{i}', 'master', 'br0', 'up')
        within = ('nsenter', '-t', str(place.pid), '--net', '--')
        run(*within, 'ip', 'addr', 'add', f'{NET}.{11 + i}/24', 'dev', 'eth0')
        run(*within, 'ip', 'link', 'set', 'eth0', 'up')
        run(*within, 'ip', 'link', 'set', 'lo', 'up')
        return place

    def _within(self, i):
        return ('nsenter', '-t', str(self.places[i].pid), '--net', '--')

    def urls(self, first):
        """The value of [cluster] url, beginning with one of them."""
        return ', '.join(self.nodes[(first + i) % len(self.nodes)].url for i in range(len(self.nodes)))

    def link(self, i, up):
        """Cuts or restores the links of a broker to all others."""
        run('ip', 'link', 'set', f'broker{i}', 'up' if up else 'down')

    def between(self, i, k, up):
        """Cuts or restores the link between two brokers."""
        for each in (i, k):
            run('bridge', 'link', 'set', 'dev', f'broker{each}', 'isolated', 'off' if up else 'on')

    def refuse(self, group, on):
        run('nft', 'add' if on else 'delete', 'element', 'ip', 'rig', 'cut', f'{{ {group} }}')

    def whole(self):
        """Waits until all of them run, and have joined."""
        def sees_all(b):
            return b.ask('rabbit_nodes all_running []').count('@') == len(self.nodes)
        begin = restarted = time.monotonic()
        while blind := [b for b in self.nodes if not sees_all(b)]:
            now = time.monotonic()
            if now > begin + 900:
                raise AssertionError('the brokers do not find each other again: ' + '\n'.join(b.log[-2000:] for b in self.nodes))
            if now > restarted + PATIENCE:  # one after the other, as an operator would
                self.restarts += 1
                blind[self.restarts % len(blind)].stop()
                blind[self.restarts % len(blind)].start()
                restarted = time.monotonic()
            time.sleep(1)

    def heal(self):
        """Restarts brokers that are connected again and still report the others under 'Network Partitions' in rabbitmqctl cluster_status: an operator
        must do so, too (RabbitMQ 3.10 with pause_minority, after a broker was stopped or killed)."""
        for b in self.nodes:
            if b.ask('rabbit_node_monitor partitions []') not in ('[]', ''):
                self.healed += 1
                b.stop()
                b.start()
                self.whole()

    def clean(self):
        for b in self.nodes:
            b.clean()
        for place in self.places:
            place.kill()
            place.wait()
