"""Stands between machines of a cluster and a broker of AMQP 0-9-1: keeps what is published, and can hold confirmations back."""
import contextlib
import socket
import struct
import threading

PUBLISH, CONFIRMED = (60, 40), (60, 80)  # methods of the class basic


class Proxy:
    """Passes connections on to a broker. `published`: the messages of the clients, as (exchange, routing key, body), in the order of their ends."""

    def __init__(self, port):
        self.port, self.published, self.held, self.lock, self.waiting = port, [], None, threading.Lock(), []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = f'amqp://127.0.0.1:{self.listener.getsockname()[1]}'
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            broker = socket.create_connection(('127.0.0.1', self.port))
            there, back = Publishing(self.published, broker), Confirming(self, client)
            back.of = there
            for source, to, frames in (client, broker, there), (broker, client, back):
                threading.Thread(target=self.copy, args=(source, to, frames), daemon=True).start()

    @staticmethod
    def copy(source, to, frames):
        try:
            while data := source.recv(1 << 16):
                frames.take(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def hold(self, key):
        """The broker confirms nothing any more to connections that have published with this routing key."""
        with self.lock:
            self.held = key

    def release(self):
        with self.lock:
            self.held = None
            for to, frame in self.waiting:
                with contextlib.suppress(OSError):  # a machine that has waited too long has another connection
                    to.sendall(frame)
            self.waiting = []


class Frames:
    """The frames of one direction."""

    def __init__(self, to):
        self.data, self.to = b'', to

    def take(self, data):
        self.data += data
        while len(self.data) >= 7:
            kind, channel, size = struct.unpack_from('>BHI', self.data)
            if len(self.data) < 8 + size:
                return
            self.frame(kind, channel, self.data[7:7 + size], self.data[:8 + size])
            self.data = self.data[8 + size:]


class Publishing(Frames):
    """Finds the messages in what a client sends: basic.publish, then a header with the size, then the body."""

    def __init__(self, published, to):
        super().__init__(to)
        self.begun, self.open, self.published, self.keys = False, {}, published, set()

    def take(self, data):
        if not self.begun:
            self.data += data
            if len(self.data) < 8:
                return
            self.to.sendall(self.data[:8])  # the protocol's name
            self.data, data, self.begun = b'', self.data[8:], True
        super().take(data)

    def frame(self, kind, channel, payload, raw):
        if kind == 1 and struct.unpack_from('>HH', payload) == PUBLISH:
            exchange = payload[7:7 + payload[6]]
            key = payload[8 + len(exchange):][:payload[7 + len(exchange)]]
            self.open[channel] = [exchange.decode(), key.decode(), b'', 0]
            self.keys.add(key.decode())
        elif kind == 2:
            self.open[channel][3] = struct.unpack_from('>Q', payload, 4)[0]
        elif kind == 3:
            self.open[channel][2] += payload
        if kind in (2, 3) and len(self.open[channel][2]) == self.open[channel][3]:
            self.published.append(tuple(self.open.pop(channel)[:3]))
        self.to.sendall(raw)


class Confirming(Frames):
    """What the broker sends to a client."""

    def __init__(self, proxy, to):
        super().__init__(to)
        self.proxy = proxy

    def frame(self, kind, channel, payload, raw):
        with self.proxy.lock:
            if kind == 1 and struct.unpack_from('>HH', payload) == CONFIRMED and self.proxy.held in self.of.keys:
                self.proxy.waiting.append((self.to, raw))
            else:
                self.to.sendall(raw)
