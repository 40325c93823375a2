"""Kafka's brokers as librdkafka mocks them (daemons/mock_kafka.c), on loopback. They speak Kafka's protocol, have topics, groups and idempotent
producers, and forget everything at their end. Unlike real brokers they create no topics on request, and have neither TLS nor users."""
import glob
import os
import signal
import subprocess

import harness

PROGRAM = os.environ.get('MOCK_KAFKA', '')
PRODUCE, FETCH, METADATA = 0, 1, 3  # numbers of requests and of errors in Kafka's protocol:
NOT_LEADER, NOT_ENOUGH_REPLICAS, INVALID_RECORD = 6, 19, 87


class Broker:
    def __init__(self, brokers=1):
        self.process = subprocess.Popen([PROGRAM, str(brokers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addresses = self.process.stdout.readline().strip()
        assert self.addresses, 'it has not started'

    @property
    def url(self):
        return f'kafka://{self.addresses}'

    def order(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        assert answer == 'ok', (words, answer)

    def put(self, cluster, partition, text):
        self.order('put', f'{cluster}.points', partition, text)

    def send(self, number):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            harness.until(self.stands_still, 'it to stand still')

    def stands_still(self):
        """Stops all threads of the process: they stop one by one."""
        states = []
        for path in glob.glob(f'/proc/{self.process.pid}/task/*/stat'):
            with open(path, encoding='utf-8') as f:
                states.append(f.read().rpartition(')')[2].split()[0])
        return set(states) == {'T'}

    def clean(self):
        self.send(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait(harness.WAIT)
        self.process.stdout.close()
