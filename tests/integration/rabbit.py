"""A broker with streams, RabbitMQ, on loopback and in a folder of its own, whose streams and queues survive a restart; and the rule that maps
sensors to partitions, written from PROTOCOL.md alone.

RABBITMQ_ROOT in the environment names the root folder of another system, whose RabbitMQ is used instead: it must have this system's /proc, /dev and
/tmp."""
import contextlib
import functools
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import harness
from harness import WAIT, until

SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'  # the wrapper script would run it as another user
ELSEWHERE = ('chroot', os.environ['RABBITMQ_ROOT']) if 'RABBITMQ_ROOT' in os.environ else ()
THERE = os.path.exists(SERVER) and all(shutil.which(program) for program in ('epmd', 'amqp-declare-queue', 'amqp-publish', 'amqp-delete-queue'))
WHY = 'there is no rabbitmq-server, or no amqp-tools'
WITH_US = ('setpriv', '--pdeathsig', 'KILL')  # the broker dies with a test that is killed
COOKIE = 'several of them know each other by this'
START = 4 * WAIT  # s; a start takes some seconds on an idle machine


def partition(key, partitions):
    most, x = 2**64 - 1, 0xcbf29ce484222325
    for byte in key.encode():
        x = (x ^ byte) * 0x100000001b3 & most
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & most
    x = (x ^ x >> 27) * 0x94d049bb133111eb & most
    return (x ^ x >> 31) % partitions


@functools.lru_cache
def applications():
    """The folders of the applications that a broker without plugins is made of, by name."""
    root, needed, left = os.environ.get('RABBITMQ_ROOT', ''), {}, ['rabbit', 'rabbitmq_prelaunch']
    plugins = glob.glob(f'{root}/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins')[0]
    folders = {name.rpartition('-')[0]: name for name in os.listdir(plugins)}
    while left:
        name = left.pop()
        if name in folders and folders[name] not in needed:
            needed[folders[name]] = os.path.join(plugins.removeprefix(root), folders[name])
            with open(os.path.join(plugins, folders[name], 'ebin', f'{name}.app'), encoding='utf-8') as f:
                left += re.findall(r'\w+', re.search(r'{applications,\s*\[(.*?)]', f.read(), re.S)[1])
    return needed


def without_modules():
    """The descriptions of other applications than RabbitMQ's own, by file, without their lists of modules. At its start a broker loads every module of every
    application, to look for RabbitMQ's attributes in it: another third of a start."""
    root, out = os.environ.get('RABBITMQ_ROOT', ''), {}
    for path in glob.glob(f'{root}/usr/lib/erlang/lib/*/ebin/*.app') + glob.glob(f'{root}/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins/*/ebin/*.app'):
        if not os.path.basename(path).startswith(('rabbit', 'kernel', 'stdlib')):
            with open(path, encoding='utf-8') as f:
                out[os.path.basename(path)] = re.sub(r'{modules,\s*\[.*?]}', '{modules, []}', f.read(), flags=re.S)
    return out


class Broker:
    """`port` and, with tls = (ca, certificate, key), `tls_port` stay the same over restarts. For one of several brokers in network namespaces:
    address: its own; within: the command that runs a program in its namespace; keys: further lines of its configuration; erlang: its arguments.
    schedulers: its number of working threads. cores: the processors that it may use, as taskset names them; None: all."""

    def __init__(self, tls=None, address='127.0.0.1', within=(), keys=(), erlang='', schedulers=1, cores=None):
        self.folder = tempfile.mkdtemp(prefix='hankeld-rabbit-')
        self.address, self.within = address, [*within]
        self.port, self.tls_port, distribution, epmd = (harness.free_port() for _ in range(4)) if not within else (5672, 5671, 25672, 4369)
        lines = [f'listeners.tcp.1 = {address}:{self.port}', 'log.file = false', 'log.console = true', *keys]
        if tls:
            lines += [f'listeners.ssl.1 = {address}:{self.tls_port}'] + [f'ssl_options.{k} = {v}' for k, v in zip(('cacertfile', 'certfile', 'keyfile'), tls)]
        for name, content in (('rabbitmq.conf', '\n'.join(lines) + '\n'), ('enabled', '[].\n'), ('env', f'RABBITMQ_HOME={self.folder}\n')):
            with open(self.path(name), 'w', encoding='utf-8') as f:
                f.write(content)
        # Erlang looks for each of 950 modules in one folder after the other: a third of a start, if all plugins are among them.
        os.mkdir(self.path('plugins'))
        for name, where in applications().items():
            os.symlink(where, self.path(f'plugins/{name}'))
        os.mkdir(self.path('applications'))
        for name, content in without_modules().items():
            with open(self.path(f'applications/{name}'), 'w', encoding='utf-8') as f:
                f.write(content)
        with open(os.open(self.path('.erlang.cookie'), os.O_WRONLY | os.O_CREAT, 0o400), 'w', encoding='utf-8') as f:
            f.write(COOKIE)
        self.on = ('taskset', '-c', cores) if cores else ()
        # Schedulers (one by default) do not spin, because the broker shares the machine with the programs under test. It listens on its address only.
        self.node = f'hankeld@{address}' if within else f'hankeld{self.port}@localhost'
        self.environment = {**os.environ, 'HOME': self.folder, 'ERL_EPMD_PORT': str(epmd), 'ERL_EPMD_ADDRESS': address, 'RABBITMQ_NODENAME': self.node, 'RABBITMQ_USE_LONGNAME': 'true' if within else 'false',
                            'RUNNING_UNDER_SYSTEMD': 'true',  # so it is one process, not a child of a shell
                            'RABBITMQ_DIST_PORT': str(distribution), 'RABBITMQ_MNESIA_BASE': self.path('mnesia'), 'RABBITMQ_LOG_BASE': self.path('log'), 'RABBITMQ_CONFIG_FILE': self.path('rabbitmq.conf'),
                            'RABBITMQ_CONF_ENV_FILE': self.path('env'), 'RABBITMQ_ENABLED_PLUGINS_FILE': self.path('enabled'), 'RABBITMQ_PLUGINS_DIR': self.path('plugins'),
                            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': f'+S {schedulers}:{schedulers} +sbwt none +sbwtdcpu none +sbwtdio none -pa {self.path("applications")} -kernel inet_dist_use_interface {{{address.replace(".", ",")}}} {erlang}'}
        # Erlang's port mapper, by which nodes find each other; the broker would start one that outlives it.
        self.epmd = subprocess.Popen([*WITH_US, *self.within, *ELSEWHERE, 'epmd', '-port', str(epmd), '-address', address], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.process = None
        until(lambda: subprocess.run([*self.within, 'epmd', '-port', str(epmd), '-names'], capture_output=True, timeout=WAIT, check=False).returncode == 0, 'epmd to answer')
        self.begin()
        if not within:
            self.wait()

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def url(self):
        return f'amqp://{self.address}:{self.port}'

    def start(self):
        self.begin()
        self.wait()

    def begin(self):
        with open(self.path('output'), 'ab') as output:
            self.process = subprocess.Popen([*self.on, *WITH_US, *self.within, *ELSEWHERE, SERVER], env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)

    def wait(self):
        def answers():
            assert self.process.poll() is None, self.log
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), WAIT):  # costs less than a program, a hundred times a start
                return self.tool('amqp-declare-queue', '-d', '-q', f'ready.{self.address}', check=False).returncode == 0
            return False
        until(answers, 'the broker to answer', START)

    @property
    def log(self):
        with open(self.path('output'), encoding='utf-8', errors='replace') as f:
            return f.read()

    def tool(self, program, *arguments, check=True, data=None):
        return subprocess.run([program, '-u', f'amqp://guest:guest@{self.address}:{self.port}', *arguments], input=data, capture_output=True, timeout=WAIT, check=check)

    def put(self, cluster, partition, text):
        """Publishes a message of another program to a log of a cluster."""
        self.tool('amqp-publish', '-r', f'{cluster}.points.{partition}', '-p', data=text.encode())

    def control(self, *arguments, check=True):
        """Runs rabbitmqctl as the user of the test."""
        return subprocess.run([*self.within, *ELSEWHERE, '/usr/lib/rabbitmq/bin/rabbitmqctl', '-n', self.node, *(['--longnames'] if self.within else []), *arguments], env={**self.environment, 'RABBITMQ_CTL_ERL_ARGS': '+S 1:1 +sbwt none'}, capture_output=True, text=True, timeout=3 * START, check=check)

    def ask(self, call):
        """What a function of Erlang (module, name, list of arguments) returns in the broker, as text; '' if it does not answer. Takes a hundredth of the
        processor's time that rabbitmqctl takes."""
        command = [*self.within, *ELSEWHERE, 'erl_call', '-c', COOKIE, '-name' if self.within else '-sname', self.node, '-a', call]
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=10, check=False).stdout
        return ''

    def send(self, number):
        """Sends a signal to all processes of the broker: a shell, the virtual machine, and their children."""
        os.killpg(self.process.pid, number)

    def stop(self, number=signal.SIGKILL):
        self.send(number)
        self.process.wait(START)

    def clean(self):
        if self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.stop()
        self.epmd.kill()
        self.epmd.wait(WAIT)
        shutil.rmtree(self.folder)
