"""The plain client: calls block, at most for the client's timeout. Standard library only, but for columns of numpy, which are taken and given.

Points are buffered and sent in batches (`flush`, `sync`, or when there are many). When the connection breaks ConnectionError is raised: make a
new client. With a feed, or a subscription with `since`, the client connects again by itself, sends points again that were not acknowledged, and
goes on behind the last event. One client, one thread."""
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
                   _has_moved, _points, _string, _what)

_DATAGRAM = 1400  # bytes: fits the usual path


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def _loopback(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    return bool((getattr(address, "ipv4_mapped", None) or address).is_loopback)


def _hello(host: str, name: str, token: str | None, mac: bool, tls: object, token_in_clear: bool, peer: str) -> bytes:
    """The payload of HELLO. PermissionError: everybody on the way could read the token."""
    if token and not tls and not token_in_clear and not _loopback(peer):
        raise PermissionError(f"{host}: the token was not sent: without TLS anyone on the path can read it. Use tls=True, or "
                              "token_in_clear=True where you trust all of the network")
    return _string(name) + (_string(token or "") + struct.pack("<I", mac) if token or mac else b"")


class Client(End):
    """A connection to hankeld. udp: "HOST:PORT" of a UDP listener: points then go as numbered datagrams.

    tls: True for TLS with the system's authorities, or an ssl.SSLContext (ssl.create_default_context(cafile=...), with
    load_cert_chain where the daemon wants a certificate). token: shows the daemon who we are. Without tls it is sent over loopback
    only, and PermissionError raised beyond; token_in_clear=True sends it all the same, for everybody on the way to read. mac: True
    puts a keyed checksum behind each datagram, which a listener with `mac = yes` needs; the daemon gives a key for it over TLS only.

    feed: name of the feed that all points belong to; `position` then is how many of its points the daemon has for certain.
    patience: seconds for a daemon that went away to come back, with a feed or `since`.
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
        """Closes at once; what was not flushed is lost."""
        self._socket.close()
        if self._udp:
            self._udp.close()

    # --- points ---

    def _again(self, fault: BaseException) -> None:
        """Connects again, where nothing is lost by that."""
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
        """Sends points of the feed, and waits until at most so many are not acknowledged."""
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
        """Sends points as columns, of numpy, pandas or sequences: one sensor's, or a name for each. times: ns since 1970, or datetime64 (UTC). They go behind
        what waits."""
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
        """Sends a DataFrame of pandas: a sensor for each column, called prefix and the column's name, by the times of its index. Empty cells are left out."""
        for name, times, values in _columns_of_frame(frame, prefix):
            self.send_columns(name, times, values)

    def send_picture(self, camera: str, pixels: Any, time: int | None = None, scale: float = 1.0, offset: float = 0.0) -> None:
        """Sends a picture of a camera, behind what waits: an array of numpy (uint8, uint16, float16 or float32; all else becomes float32), or rows of
        numbers. A value is scale * pixel + offset; a pixel that is not finite is missing. time: ns since 1970; None: when the daemon reads it. The
        daemon makes points of its tiles, sensors CAMERA/ROW,COLUMN/max and so on, by its section [pictures NAME]; what it cannot take goes to
        on_error (17). In a feed it counts as one point."""
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
        """Sends all points that wait."""
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
                pass  # nobody listens: the datagram is lost, as datagrams may be

    def _sealed(self, frame: bytes) -> bytes:
        return frame + hmac.digest(self._key, frame, "sha256")[:16] if self._key else frame

    def sync(self) -> None:
        """Sends all points and waits until the daemon has taken them over (over UDP: those that arrived; of a feed: until it has
        acknowledged them)."""
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
        """Results, events and notices of sensors that match the glob (`*`, `?`) come out of iteration and `read`.

        since: the position of the last event that is known (0: all that the daemon has, -1: none before now); the events behind it come,
        each once, also when the connection breaks in between. incidents: what becomes of them comes, and events carry their
        incident, some seconds later. sequences: results have their sequence. details: events have all fields, so that
        those of a maintenance window can be told, and the kinds flapping and acknowledged come too. columns: results come as Scores, columns of numpy."""
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
        """The next Result, Event or Gap; None when none came within timeout seconds (None: waits as long as it takes)."""
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
        """Makes the daemon read its configuration again: whether it is in force now, and lines that say what came of it."""
        payload = self._request(_RELOAD, _RELOADED)
        return payload[0] == 1, payload[1:].decode()

    def acknowledge(self, sensor: str, number: int = 0, by: str = "") -> tuple[bool, str]:
        """Takes note of an alert that stands (0: whichever does): whether that was done, and a line that says what came of it."""
        return self._operate(1, number, 0, sensor, by)

    def maintain(self, glob: str, seconds: float, by: str = "") -> tuple[bool, str]:
        """Marks the alerts that sensors raise from now on for so long; 0 ends what was begun with this glob. As acknowledge."""
        return self._operate(2 if seconds else 3, 0, round(seconds * 1e9), glob, by)

    def cluster(self) -> dict[str, Any] | None:
        """What this machine of a cluster has: PROTOCOL.md (STATUS, `cluster`). None: the daemon is of no cluster."""
        return self.status().get("cluster")

    def drain(self, undo: bool = False, by: str = "", wait: float = 90.0) -> tuple[bool, str]:
        """Before maintenance: this machine of a cluster gives its partitions to others and takes none; waits until it has none. undo: it
        takes its share again. As acknowledge; TimeoutError: it still has some after `wait` seconds, and goes on."""
        outcome = self._operate(8 if undo else 7, 0, 0, "", by)
        if outcome[0] and not undo:
            self._until(None, wait)
        return outcome

    def move(self, partition: int, by: str = "", wait: float = 90.0) -> tuple[bool, str]:
        """Has this machine of a cluster take over a partition; waits until it has it. Shares stay even, so it may give another one away. As
        drain."""
        outcome = self._operate(9, partition, 0, "", by)
        if outcome[0]:
            self._until(partition, wait)
        return outcome

    def _until(self, partition: int | None, wait: float) -> None:
        end = clock.monotonic() + wait
        while not _has_moved(self.cluster(), partition):
            if clock.monotonic() > end:
                raise TimeoutError(f"the partitions have not moved within {wait} s")
            clock.sleep(_MOVING)

    def _operate(self, what: int, number: int, duration: int, subject: str, by: str) -> tuple[bool, str]:
        payload = self._request(_OPERATE, _OPERATED, self._operate_payload(what, number, duration, subject, by))
        return payload[0] == 1, payload[1:].decode()

    def finish(self) -> None:
        """Sends all points and waits until they are scored and the subscription has got what it is owed; then closes.
        What has come and was not read yet can still be read."""
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
        """Sends a frame and waits for its answer; what comes in between is kept for `read`."""
        tag = self._next_tag()
        self._write(_frame(kind, payload, tag))
        while tag not in self._replies:
            if not self._receive(self._timeout):
                raise TimeoutError(f"no answer within {self._timeout} s")
        return self._reply(tag, kind, reply)

    def _receive(self, timeout: float | None) -> bool:
        """Waits for bytes and takes the whole frames among them. False: nothing came in time."""
        self._socket.settimeout(timeout)
        try:
            data = self._socket.recv(1 << 18)
        except (TimeoutError, socket.timeout, BlockingIOError, ssl.SSLWantReadError):  # the last two where timeout is 0
            return False
        if not data:
            raise ConnectionResetError("the daemon closed the connection")
        self._came(data)
        return True
