"""The plain client: calls block, at most for the client's timeout. Needs the standard library only, except for columns of
numpy.

Points are buffered and sent in batches (`flush`, `sync`, or when there are many). When the connection breaks, calls raise ConnectionError:
make a new client. With a feed, or a subscription with `since`, the client reconnects by itself, sends unacknowledged points again, and
continues after the last event. Use a client in one thread only."""
from __future__ import annotations

import hmac
import ipaddress
import itertools
import json
import socket
import ssl
import struct
import time as clock
from types import TracebackType
from typing import Any, Iterator, Sequence

from .items import Item
from .wire import (_BATCH, _BYE, _DONE, _FAREWELL, _FEED, _FEED_AT, _HEAD, _HELLO, _KEPT, _LIST_MOST, _MOVING, _NOW, _OPERATE, _OPERATED, _PICTURE, _PICTURES_KEPT, _PING, _PONG, _POINT_HEAD, _REGISTER,
                   _REGISTERED, _RELOAD, _RELOADED, _REPORT, _SENSORS, _STATUS, _SUBSCRIBE, _UNSUBSCRIBE, _WELCOME, End, Error, _columns_of_frame, _frame,
                   _has_moved, _not_moved, _points, _string, _what)

_DATAGRAM = 1400  # bytes: fits the usual path


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def _loopback(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    return bool((getattr(address, "ipv4_mapped", None) or address).is_loopback)


def _hello(host: str, name: str, token: str | None, mac: bool, tls: object, token_in_clear: bool, peer: str) -> bytes:
    """The payload of HELLO. Raises PermissionError if anyone on the path could read the token."""
    if token and not tls and not token_in_clear and not _loopback(peer):
        raise PermissionError(f"{host}: the token was not sent: without TLS anyone on the path can read it. Use tls=True, or "
                              "token_in_clear=True where you trust all of the network")
    return _string(name) + (_string(token or "") + struct.pack("<I", mac) if token or mac else b"")


class Client(End):
    """A connection to hankeld. udp: "HOST:PORT" of a UDP listener: points then go as numbered datagrams.

    tls: True for TLS with the system's authorities, or an ssl.SSLContext (ssl.create_default_context(cafile=...), with
    load_cert_chain where the daemon wants a certificate). token: authenticates this program. Without tls, the client sends the token
    over loopback only, and otherwise raises PermissionError; token_in_clear=True sends it all the same, so that anyone on the path
    can read it. mac: True appends a keyed checksum to each datagram, which a listener with `mac = yes` requires; the daemon gives
    the key over TLS only.

    feed: the name of the feed of all points; `position` then is the number of its points that the daemon has acknowledged.
    patience: how many seconds the client tries to reconnect, with a feed or `since`.
    """

    def __init__(self, address: str = "127.0.0.1:7410", udp: str | None = None, name: str = "hankeld for Python", timeout: float = 10.0,
                 tls: bool | ssl.SSLContext | None = None, token: str | None = None, feed: str | None = None, patience: float = 10.0, mac: bool = False,
                 token_in_clear: bool = False) -> None:
        super().__init__()
        self._how = address, udp, name, tls, token, mac, token_in_clear
        self._timeout, self._patience = timeout, patience
        self._feed_name = feed
        self._points: list[tuple[str, int, float]] = []
        self._connect()

    def _connect(self) -> None:
        address, udp, name, tls, token, mac, token_in_clear = self._how
        self._udp: socket.socket | None = None
        self._socket: socket.socket = socket.create_connection(_address(address), self._timeout)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            hello = _hello(address, name, token, mac, tls, token_in_clear, self._socket.getpeername()[0])
            if tls:
                context = ssl.create_default_context() if isinstance(tls, bool) else tls
                self._socket = context.wrap_socket(self._socket, server_hostname=_address(address)[0])
            self._begin()
            self._datagrams = self._sent = 0
            self._welcomed(self._request(_HELLO, _WELCOME, hello))
            if not mac:
                self._key = None
            elif len(self._key or b"") != 32:
                raise ConnectionError("the daemon gives no key for datagrams: it needs TLS")
            if udp:
                family, kind, protocol, _, where = socket.getaddrinfo(*_address(udp), type=socket.SOCK_DGRAM)[0]
                self._udp = socket.socket(family, kind, protocol)
                self._udp.connect(where)
            if self._feed_name is not None:
                self._feed_begins(struct.unpack_from("<Q", self._request(_FEED, _FEED_AT, _string(self._feed_name)))[0])
            if self._subscription:
                self._resubscribe()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if kind is None:
                self.flush()
                if self._feed_name is not None:
                    self._feed_some(0)
        finally:
            self.close()

    def close(self) -> None:
        """Closes at once; points that were not flushed are lost."""
        self._socket.close()
        if self._udp:
            self._udp.close()

    # --- points ---

    def _again(self, fault: BaseException) -> None:
        """Reconnects if that loses nothing."""
        lasts = self._feed_name is not None or (self._subscription and self._subscription[0] & 32)
        if not lasts or (isinstance(fault, Error) and not fault._passes()):
            raise fault
        end = clock.monotonic() + self._patience
        self.close()
        while True:
            try:
                return self._connect()
            except (Error, OSError):
                if clock.monotonic() > end:
                    raise
                clock.sleep(0.1)

    def _feed_some(self, most: int) -> None:
        """Sends points of the feed, and waits until at most `most` are unacknowledged."""
        while True:
            try:
                rest = list(itertools.islice(self._kept, self._going, None))
                self._register([sensor for sensor, _, _ in rest])
                before = self.position + self._going
                for begin in range(0, len(rest), _BATCH):
                    some = rest[begin : begin + _BATCH]
                    for frame in self._feed_frames(before + begin, some):
                        self._write(frame)
                    self._going += len(some)
                self._acknowledged(self.position)
                while len(self._kept) > most:
                    if not self._receive(self._timeout):
                        raise TimeoutError(f"no acknowledgement within {self._timeout} s")
                return
            except TimeoutError:
                raise
            except OSError as fault:
                self._again(fault)

    def send(self, sensor: str, time: int, value: float) -> None:
        """Buffers a point; time in ns since 1970."""
        self._points.append((sensor, time, value))
        if len(self._points) >= _BATCH:
            self.flush()

    def send_columns(self, sensor: str | Sequence[str], times: Any, values: Any) -> None:
        """Sends points as columns (numpy, pandas or sequences), of one sensor or with a name for each point. times: ns since 1970, or
        datetime64 (UTC). Buffered points are sent first."""
        self.flush()
        if self._feed_name is not None or self._udp:
            names, times, values = self._cut(sensor, times, values)
            for name, time, value in zip(names, times, values):
                self.send(name, int(time), float(value))
            self.flush()
            return
        self._register([sensor] if isinstance(sensor, str) else sensor)
        names, times, values = self._cut(sensor, times, values)
        handles = [self._handles[name] for name in names]
        for begin in range(0, len(handles), _BATCH):
            end = begin + _BATCH
            self._write(_points(handles[begin:end], times[begin:end], values[begin:end]))

    def send_frame(self, frame: Any, prefix: str = "") -> None:
        """Sends a DataFrame of pandas: each column is a sensor, named by the prefix and the column's name, with the times of
        the index. Empty cells are left out."""
        for name, times, values in _columns_of_frame(frame, prefix):
            self.send_columns(name, times, values)

    def send_picture(self, camera: str, pixels: Any, time: int | None = None, scale: float = 1.0, offset: float = 0.0) -> None:
        """Sends a picture of a camera, after the buffered points: an array of numpy or a memoryview with rows and columns (uint8, uint16,
        float16 or float32; others become float32), or rows of numbers. A value is scale * pixel + offset; pixels that are not finite are missing. time: ns since 1970; None:
        when the daemon reads the picture. The daemon makes points of its tiles, of sensors CAMERA/ROW,COLUMN/max and so on, as its section
        [pictures NAME] says; on_error gets error 17 if it cannot. In a feed a picture counts as one point."""
        if self._udp:
            raise ValueError("pictures go over TCP only")
        self.flush()
        payload = self._picture_payload(camera, pixels, time, scale, offset)
        if self._feed_name is not None:
            self._kept.append(("", 0, payload))
            self._feed_some(_PICTURES_KEPT)
        else:
            self._write(_frame(_PICTURE, bytes(8) + payload))

    def flush(self) -> None:
        """Sends all buffered points."""
        points, self._points = self._points, []
        if self._feed_name is not None:
            self._kept.extend(points)
            self._feed_some(_KEPT)
            return
        self._register([sensor for sensor, _, _ in points])
        good = [(self._handles[sensor], time, value) for sensor, time, value in points if sensor not in self.refused]
        most = (_DATAGRAM - _HEAD.size - 4 - _POINT_HEAD.size - 16) // 20 if self._udp else _BATCH
        for begin in range(0, len(good), most):
            handles, times, values = zip(*good[begin : begin + most])
            if not self._udp:
                self._write(_points(handles, times, values))
                continue
            datagram = _points(handles, times, values, self._feed, self._datagrams + 1, self._sent)
            self._datagrams += 1
            self._sent += len(handles)
            try:
                self._udp.send(self._sealed(datagram))
            except ConnectionRefusedError:
                pass  # no listener: the datagram is lost, as datagrams may be

    def _sealed(self, frame: bytes) -> bytes:
        return frame + hmac.digest(self._key, frame, "sha256")[:16] if self._key else frame

    def sync(self) -> None:
        """Sends all points, and waits until the daemon has taken them over (over UDP: those that arrived), or acknowledged
        them if they belong to a feed."""
        self.flush()
        if self._feed_name is not None:
            self._feed_some(0)
            return
        self._request(_PING, _PONG, bytes(8))

    def _register(self, sensors: Sequence[str]) -> None:
        for some in self._unknown(sensors):
            self._registered(some, self._request(_REGISTER, _REGISTERED, self._names_payload(some)))

    # --- results ---

    def subscribe(self, glob: str = "", min_score: float = 0.0, scores: bool = True, unscored: bool = False, events: bool = True, notices: bool = True,
                  values: bool = False, since: int | None = None, sequences: bool = False, details: bool = True, columns: bool = False,
                  incidents: bool = False) -> None:
        """Subscribes to results, events and notices of sensors that match the glob (`*`, `?`); iteration and `read` return
        them.

        since: the position of the last event that the program has seen (0: send all events that the daemon has; -1: only new ones); all
        later events follow, each once, even if the connection breaks. incidents: send changes of incidents; events then name their
        incident, and arrive some seconds later. sequences: results have their sequence. details: events have all fields, such as
        `maintenance`, and events of the kinds flapping and acknowledged are sent, too. columns: results are Scores, columns of numpy."""
        self._subscription = _what(scores, unscored, events, notices, values, since, sequences, details, incidents), min_score, glob
        self._as_columns = columns
        self.event_position = _NOW if since is None or since < 0 else since
        self._resubscribe()

    def _resubscribe(self) -> None:
        self._subscribed(self._request(_SUBSCRIBE, _DONE, self._subscribe_payload()))

    def unsubscribe(self) -> None:
        self._subscription = None
        self._request(_UNSUBSCRIBE, _DONE)

    def read(self, timeout: float | None = None) -> Item | None:
        """The next Result, Event or Gap; None if none arrived within timeout seconds (None: waits without limit)."""
        while not self._items:
            try:
                if not self._receive(timeout):
                    return None
            except ConnectionError as fault:
                self._again(fault)
        return self._items.popleft()

    def __iter__(self) -> Iterator[Item]:
        while self._items or self._socket.fileno() >= 0:
            try:
                item = self.read()
            except ConnectionResetError:
                return
            if item is not None:
                yield item

    # --- the rest ---

    def status(self) -> dict[str, Any]:
        """The daemon's counters."""
        report: dict[str, Any] = json.loads(self._request(_STATUS, _REPORT))
        return report

    def sensors(self, glob: str = "") -> Iterator[dict[str, Any]]:
        """Each sensor that matches the glob, a dict with its `name`, `state`, `value`, `score` and more: PROTOCOL.md (SENSORS)."""
        after: int | None = 0
        while after is not None:
            part = self._list(glob, after, _LIST_MOST)
            yield from part["sensors"]
            after = part.get("next")

    def _list(self, glob: str, after: int, limit: int) -> dict[str, Any]:
        part: dict[str, Any] = json.loads(self._request(_SENSORS, _REPORT, self._list_payload(glob, after, limit)))
        return part

    def reload(self) -> tuple[bool, str]:
        """Makes the daemon read its configuration again. Returns whether it is in force now, and lines that describe the
        outcome."""
        payload = self._request(_RELOAD, _RELOADED)
        return payload[0] == 1, payload[1:].decode()

    def acknowledge(self, sensor: str, number: int = 0, by: str = "") -> tuple[bool, str]:
        """Acknowledges a standing alert (number 0: any of the sensor's). Returns whether that was done, and a line that
        describes the outcome."""
        return self._operate(1, number, 0, sensor, by)

    def maintain(self, glob: str, seconds: float, by: str = "") -> tuple[bool, str]:
        """Begins maintenance: for so many seconds, alerts of these sensors are marked. 0 ends the maintenance begun with this
        glob. Returns as acknowledge."""
        return self._operate(2 if seconds else 3, 0, round(seconds * 1e9), glob, by)

    def cluster(self) -> dict[str, Any] | None:
        """The state of this machine of a cluster: PROTOCOL.md (STATUS, `cluster`). None: the daemon belongs to no cluster."""
        return self.status().get("cluster")

    def drain(self, undo: bool = False, by: str = "", wait: float = 90.0) -> tuple[bool, str]:
        """Drains this machine of a cluster before maintenance: it gives its partitions to other machines and takes none. Waits
        until it has none. undo: it takes its share again. Returns as acknowledge. Raises TimeoutError if it still has some
        after `wait` seconds; draining continues."""
        outcome = self._operate(8 if undo else 7, 0, 0, "", by)
        if outcome[0] and not undo:
            self._until(None, wait)
        return outcome

    def move(self, partition: int, by: str = "", wait: float = 90.0) -> tuple[bool, str]:
        """Moves a partition to this machine of a cluster, and waits until it has it. Shares stay even, so the machine may give
        another partition away. Returns and raises as drain."""
        outcome = self._operate(9, partition, 0, "", by)
        if outcome[0]:
            self._until(partition, wait)
        return outcome

    def _until(self, partition: int | None, wait: float) -> None:
        end = clock.monotonic() + wait
        while not _has_moved(cluster := self.cluster(), partition):
            if clock.monotonic() > end:
                raise _not_moved(cluster, partition, wait)
            clock.sleep(_MOVING)

    def _operate(self, what: int, number: int, duration: int, subject: str, by: str) -> tuple[bool, str]:
        payload = self._request(_OPERATE, _OPERATED, self._operate_payload(what, number, duration, subject, by))
        return payload[0] == 1, payload[1:].decode()

    def finish(self) -> None:
        """Sends all points, waits until they are scored and the subscription has received its items, and closes. Received
        items can still be read."""
        self.flush()
        while True:
            if self._feed_name is not None:
                self._feed_some(0)
            try:
                self._request(_BYE, _FAREWELL, struct.pack("<QQ", self._datagrams, self._sent))
                break
            except ConnectionError as fault:
                if self._feed_name is None:  # points may be lost
                    raise
                self._again(fault)
        self.close()

    def _write(self, data: bytes) -> None:
        self._socket.settimeout(self._timeout)
        self._socket.sendall(data)

    def _request(self, kind: int, reply: int, payload: bytes = b"") -> bytes:
        """Sends a frame and waits for its answer; items that arrive before it are kept for `read`."""
        tag = self._next_tag()
        self._write(_frame(kind, payload, tag))
        while tag not in self._replies:
            if not self._receive(self._timeout):
                raise TimeoutError(f"no answer within {self._timeout} s")
        return self._reply(tag, kind, reply)

    def _receive(self, timeout: float | None) -> bool:
        """Waits for bytes and handles the whole frames among them. Returns False if nothing arrived in time."""
        self._socket.settimeout(timeout)
        try:
            data = self._socket.recv(1 << 18)
        except (TimeoutError, socket.timeout, BlockingIOError, ssl.SSLWantReadError):  # the last two where timeout is 0
            return False
        if not data:
            raise ConnectionResetError("the daemon closed the connection")
        self._came(data)
        return True
