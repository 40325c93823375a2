"""An MQTT broker, mosquitto, that keeps sessions and retained messages over a restart; mosquitto's own clients publish and subscribe."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import harness
from harness import WAIT, until

THERE = all(shutil.which(program) for program in ('mosquitto', 'mosquitto_pub', 'mosquitto_sub'))


class Broker:
    """`port` stays the same over restarts; keys: further lines of the broker's configuration."""

    def __init__(self, keys=''):
        self.folder = tempfile.mkdtemp(prefix='hankeld-broker-')
        self.port, self.process = harness.free_port(), None
        if os.getuid() == 0:
            keys += 'user root\n' # it would switch to another user, who cannot write to the folder
        with open(os.path.join(self.folder, 'conf'), 'w', encoding='utf-8') as f:
            f.write(f'listener {self.port} 127.0.0.1\npersistence true\npersistence_location {self.folder}/\nmax_queued_messages 0\n'
                    f'{keys if "allow_anonymous" in keys else "allow_anonymous true" + chr(10) + keys}')
        self.start()

    def start(self):
        with open(os.path.join(self.folder, 'log'), 'ab') as log:
            self.process = subprocess.Popen(['mosquitto', '-c', os.path.join(self.folder, 'conf')], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def answers():
            assert self.process.poll() is None, self.log
            with socket.socket() as s:
                return s.connect_ex(('127.0.0.1', self.port)) == 0
        until(answers, 'the broker to listen')

    @property
    def log(self):
        with open(os.path.join(self.folder, 'log'), encoding='utf-8') as f:
            return f.read()

    def stop(self, with_signal=signal.SIGTERM):
        self.process.send_signal(with_signal)
        self.process.wait(WAIT)

    def clean(self):
        self.process.kill()
        self.process.wait(WAIT)
        shutil.rmtree(self.folder)

    def publish(self, topic, *payloads, options=()):
        """Publishes with QoS 1, and waits until the broker has taken each message."""
        lines = ''.join(f'{p}\n' for p in payloads)
        subprocess.run(['mosquitto_pub', '-h', '127.0.0.1', '-p', str(self.port), '-q', '1', '-t', topic, *options, *(() if '-n' in options else ('-l',))], input=lines.encode(), check=True, timeout=WAIT)

    def publish_bytes(self, topic, payload, options=()):
        subprocess.run(['mosquitto_pub', '-h', '127.0.0.1', '-p', str(self.port), '-q', '1', '-t', topic, *options, '-s'], input=payload, check=True, timeout=WAIT)


class Listener:
    """Subscribes to topics, also over restarts of the broker: `got` has (topic, payload, retained). form: mosquitto_sub's format of payloads; %x is hex."""

    def __init__(self, broker, *topics, form='%p'):
        wanted = [word for topic in topics for word in ('-t', topic)]
        self.got = []
        self.process = subprocess.Popen(['mosquitto_sub', '-h', '127.0.0.1', '-p', str(broker.port), '-q', '1', '-c', '-i', f'listener-{os.urandom(4).hex()}', '-F', f'%r %t\t{form}', '-t', 'listener/ready', *wanted],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

        def ready():
            broker.publish('listener/ready', 'x')
            return any(topic == 'listener/ready' for topic, _, _ in self.got)
        until(ready, 'the subscription')
        self.got = [g for g in self.got if g[0] != 'listener/ready']

    def read(self):
        for line in self.process.stdout:
            flag, rest = line.rstrip('\n').split(' ', 1)
            topic, payload = rest.split('\t', 1)
            self.got.append((topic, payload, flag == '1'))

    def of(self, topic):
        return [payload for t, payload, _ in self.got if t == topic]

    def close(self):
        self.process.kill()
        self.process.wait(WAIT)
        self.thread.join(WAIT)
        self.process.stdout.close()
