"""Shared by both clients: encodes and decodes frames of the binary protocol (PROTOCOL.md) and their payloads; uses no socket."""
from __future__ import annotations

import array
import collections
import itertools
import json
import math
import struct
import sys
import zlib
from typing import Any, Callable, Iterator, Sequence

from .items import CHANNELS, EVENTS, INCIDENTS, NOVELTIES, REFUSALS, STATES, Event, Gap, Incident, Item, Limit, Novelty, Result, Scores

_HELLO, _REGISTER, _POINTS, _SUBSCRIBE, _UNSUBSCRIBE, _PING, _STATUS, _BYE, _FEED = range(1, 10)
_RELOAD, _RELOADED, _OPERATE, _OPERATED, _SENSORS, _PICTURE = 0x0A, 0x8A, 0x0B, 0x8B, 0x0C, 0x0D
_WELCOME, _REGISTERED, _DONE, _PONG, _REPORT, _FAREWELL, _FEED_AT = 0x81, 0x82, 0x84, 0x86, 0x87, 0x88, 0x89
_NAMES, _SCORES, _EVENTS, _GAP, _ACK, _INCIDENT, _ERROR = 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0xFF
_VERSION = 1
_MAX_FRAME = 1 << 20
_REGISTER_MOST = 200  # names in a frame
_LIST_MOST = 1000  # sensors in an answer
_BATCH = 4096  # points in a frame over TCP
_KEPT = 1 << 16  # points of a feed that may wait for an acknowledgement
_PICTURES_KEPT = 8  # items of a feed that may wait behind a picture
_MOVING = 0.3  # s between two looks whether partitions have moved
_NOW = (1 << 64) - 1  # as a position
_HEAD = struct.Struct("<2sBBII")
_POINT_HEAD = struct.Struct("<QQQIBBH")


def _has_moved(cluster: dict[str, Any] | None, partition: int | None) -> bool:
    """Whether a machine of a cluster has a partition, or had it since it was asked, by its report; partition None: whether it
    has no partition at all. Raises TimeoutError if the request came to nothing."""
    held = (cluster or {}).get("held", [])
    if partition is None:
        return not held
    wanted = _wanted(cluster, partition)
    if wanted.get("state") == "done" or any(one["partition"] == partition for one in held):
        return True
    if wanted.get("state") in ("overruled", "over"):
        raise TimeoutError(f"the partition has not moved: {wanted['why']}")
    return False


def _wanted(cluster: dict[str, Any] | None, partition: int | None) -> dict[str, Any]:
    """What a machine says of the last request to move a partition to it; of none, {}."""
    return next((one for one in (cluster or {}).get("wanted", []) if one["partition"] == partition), {})


def _not_moved(cluster: dict[str, Any] | None, partition: int | None, wait: float) -> TimeoutError:
    why = _wanted(cluster, partition).get("why")
    return TimeoutError(f"the partitions have not moved within {wait} s" + (f": {why}" if why else ""))


def _note(payload: bytes, at: int, expected: float) -> tuple[Novelty | None, Limit | None]:
    """Reads a note of 40 bytes; the byte at 38 is its kind."""
    kind = payload[at + 38]
    if kind == 4:
        earliest, latest, reached, limit, slope, blocks = struct.unpack_from("<qqqdfH", payload, at)
        return None, Limit(limit, slope, earliest, reached, None if latest == 2**63 - 1 else latest, blocks)
    nearest, oldest, low, high, compared, reach = struct.unpack_from("<qqddIH", payload, at)
    return Novelty(NOVELTIES[kind], expected, 0, nearest, oldest, low, high, compared, reach) if kind else None, None


class Error(ConnectionError):
    """The daemon answered with an error frame: `code` and text as in PROTOCOL.md."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} (error {code})")
        self.code = code

    def _passes(self) -> bool:
        """Whether reconnecting may help: the daemon shuts down, and is usually started again."""
        return self.code == 13


def _frame(kind: int, payload: bytes = b"", tag: int = 0) -> bytes:
    head = _HEAD.pack(b"HK", _VERSION, kind, len(payload), tag)
    return head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<H", len(data)) + data


def _column(code: str, data: bytes) -> array.array[Any]:
    """Converts little-endian numbers to an array."""
    column = array.array(code)
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _bytes(code: str, numbers: Any) -> bytes:
    """Converts numbers to little-endian bytes. Columns of numpy are converted as a whole."""
    if hasattr(numbers, "astype"):
        return bytes(numbers.astype({"q": "<i8", "d": "<f8", "I": "<u4"}[code]).tobytes())
    column = array.array(code, numbers)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _points(handles: Any, times: Any, values: Any, feed: int = 0, sequence: int = 0, before: int = 0) -> bytes:
    """A POINTS frame."""
    return _frame(_POINTS, _POINT_HEAD.pack(feed, sequence, before, len(handles), 0, 0, 0) + _bytes("q", times) + _bytes("d", values) + _bytes("I", handles))


def _picture(camera: str, pixels: Any, time: int | None, scale: float, offset: float) -> bytes:
    """The payload of a PICTURE after `before`. pixels: an array of numpy, a memoryview, or rows of numbers."""
    if hasattr(pixels, "dtype"):
        kinds = {"u1": 0, "u2": 1, "f2": 2, "f4": 3}
        kind = pixels.dtype.kind + str(pixels.dtype.itemsize)
        code = kinds.get(kind, 3)
        data: bytes = pixels.astype("<" + ("f4" if kind not in kinds else kind)).tobytes()
        shape = tuple(pixels.shape)
    elif isinstance(pixels, memoryview):
        shape, kind, n = tuple(pixels.shape or ()), pixels.format.lstrip("@=<>!"), pixels.nbytes // pixels.itemsize
        order = pixels.format[0] if pixels.format[0] in "=<>!" else "@"  # the sizes of the machine's own types, as in memoryview
        if kind not in set("bBhHiIlLqQefd?"):
            raise TypeError(f"pixels of a picture are numbers, not of format {pixels.format!r}")
        code = {"B": 0, "H": 1, "e": 2}.get(kind, 3)
        data = struct.pack(f"<{n}{'BHef'[code]}", *struct.unpack(f"{order}{n}{kind}", pixels.tobytes()))
    else:
        try:
            rows = [list(row) for row in pixels]
        except TypeError:
            raise TypeError("pixels of a picture are an array of numpy or a memoryview with rows and columns, or rows of numbers") from None
        shape, code = (len(rows), len(rows[0]) if rows else 0), 3
        if any(len(row) != shape[1] for row in rows):
            raise ValueError("the rows of the picture are not of one length")
        data = struct.pack(f"<{shape[0] * shape[1]}f", *itertools.chain.from_iterable(rows))
    if len(shape) != 2 or not (0 < shape[0] <= 8192 and 0 < shape[1] <= 8192):
        raise ValueError(f"a picture has rows and columns, 1 to 8192 of each; this one is {shape}")
    name = camera.encode()
    head = struct.pack("<qHHBBHff", -1 << 63 if time is None else time, shape[0], shape[1], code, 0, len(name), scale, offset)
    return head + name + bytes(-len(name) % 4) + data


def _plain(column: Any) -> Any:
    """Converts a column of numpy or pandas, or a sequence, so that it can be sliced and encoded; times of datetime64 become
    ns."""
    if getattr(getattr(column, "dtype", None), "tz", None):
        import pandas
        column = pandas.DatetimeIndex(column).tz_convert(None)
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    if getattr(getattr(column, "dtype", None), "kind", "") == "M":
        column = column.astype("datetime64[ns]").astype("int64")
    return column


def _columns_of_frame(frame: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """Yields each column's name, times and values of a DataFrame; leaves out empty cells."""
    times = _plain(frame.index)
    if times.dtype.kind not in "iu":
        raise TypeError("the index of the frame is to be times: a DatetimeIndex, or whole ns since 1970")
    for name in frame.columns:
        there = frame[name].notna().to_numpy()
        yield prefix + str(name), times[there], frame[name].to_numpy(dtype="float64", na_value=math.nan)[there]


def _what(scores: bool, unscored: bool, events: bool, notices: bool, values: bool, since: int | None, sequences: bool, details: bool,
          incidents: bool) -> int:
    """The bits of SUBSCRIBE for these options."""
    return (scores | unscored << 1 | events << 2 | notices << 3 | values << 4 | (since is not None) << 5 | sequences << 6 | 384 * bool(details) |
            incidents << 9)


class End:
    """The client's end of a connection, without its socket: turns received bytes into items and replies."""

    def __init__(self) -> None:
        self.on_error: Callable[[int, str], None] | None = None  # called with (code, message) for errors that do not end the connection
        self.refused: dict[str, str | None] = {}  # sensor -> why the daemon refuses it; its points are dropped
        self.server: str | None = None
        self.position = 0  # acknowledged points of the feed
        self.event_position = _NOW  # of the last event, with `since`
        self._items: collections.deque[Item] = collections.deque()
        self._kept: collections.deque[tuple[str, int, Any]] = collections.deque()  # unacknowledged points of the feed; a picture is ("", 0, payload)
        self._going = 0  # how many of these were sent
        self._subscription: tuple[int, float, str] | None = None
        self._as_columns = False
        self._tag = 0
        self._begin()

    def _begin(self) -> None:
        """Resets the state of the connection."""
        self._inbox = bytearray()
        self._handles: dict[str, int | None] = {}  # sensor -> handle; None until the daemon has answered
        self._names: dict[int, str] = {}  # handle of results -> sensor
        self._replies: dict[int, tuple[Any, bytes]] = {}  # tag -> reply
        self._feed = 0
        self._max_frame = 0
        self._key: bytes | None = None

    def _next_tag(self) -> int:
        self._tag = self._tag % 0xFFFFFFFF + 1
        return self._tag

    def _reply(self, tag: int, kind: int, reply: int) -> bytes:
        """The payload of a received reply."""
        got, payload = self._replies.pop(tag)
        if isinstance(got, Error):
            raise got
        if got != reply:
            raise ConnectionError(f"the daemon answered {kind:#x} with {got:#x}")
        return payload

    def _welcomed(self, payload: bytes) -> None:
        self._feed, self._max_frame = struct.unpack_from("<QI", payload)
        length = struct.unpack_from("<H", payload, 12)[0]
        self.server = payload[14 : 14 + length].decode()
        self._key = payload[16 + length :]

    def _unknown(self, sensors: Sequence[str]) -> list[list[str]]:
        """Those of the sensors that have no handle yet, in lists that fit into a frame."""
        new = [sensor for sensor in dict.fromkeys(sensors) if sensor and self._handles.get(sensor) is None and sensor not in self.refused]
        return [new[begin : begin + _REGISTER_MOST] for begin in range(0, len(new), _REGISTER_MOST)]

    @staticmethod
    def _names_payload(sensors: Sequence[str]) -> bytes:
        return struct.pack("<I", len(sensors)) + b"".join(map(_string, sensors))

    def _registered(self, sensors: Sequence[str], payload: bytes) -> None:
        for sensor, (handle, reason) in zip(sensors, struct.iter_unpack("<II", payload[4:])):
            self._handles[sensor] = handle
            if reason:
                self.refused[sensor] = REFUSALS[reason] if reason < len(REFUSALS) else "?"

    def _cut(self, sensor: str | Sequence[str], times: Any, values: Any) -> tuple[list[str], Any, Any]:
        """Removes the points of refused sensors from columns. sensor: a name for each point, or one for all."""
        times, values = _plain(times), _plain(values)
        n = len(times)
        if len(values) != n or (not isinstance(sensor, str) and len(sensor) != n):
            raise ValueError("the columns are not of one length")
        names = [sensor] * n if isinstance(sensor, str) else list(sensor)
        if not self.refused.keys() & set(names):
            return names, times, values
        keep = [i for i, name in enumerate(names) if name not in self.refused]
        return [names[i] for i in keep], [int(times[i]) for i in keep], [float(values[i]) for i in keep]

    def _picture_payload(self, camera: str, pixels: Any, time: int | None, scale: float, offset: float) -> bytes:
        payload = _picture(camera, pixels, time, scale, offset)
        if len(payload) + 8 > self._max_frame:
            raise ValueError(f"the picture takes {len(payload) + 8} bytes, and the daemon takes {self._max_frame} at once (max_frame)")
        return payload

    def _subscribe_payload(self) -> bytes:
        assert self._subscription
        what, min_score, glob = self._subscription
        return struct.pack("<If", what, min_score) + _string(glob) + (struct.pack("<Q", self.event_position) if what & 32 else b"")

    def _subscribed(self, payload: bytes) -> None:
        if payload and self.event_position == _NOW:
            self.event_position = struct.unpack("<Q", payload)[0]

    @staticmethod
    def _list_payload(glob: str, after: int, limit: int) -> bytes:
        return struct.pack("<QI", after, limit) + _string(glob)

    @staticmethod
    def _operate_payload(what: int, number: int, duration: int, subject: str, by: str) -> bytes:
        return struct.pack("<BxxxIQ", what, number, duration) + _string(subject) + _string(by)

    def _came(self, data: bytes) -> None:
        """Handles the whole frames among the received bytes."""
        self._inbox += data
        at = 0
        while len(self._inbox) - at >= 16:
            magic, version, kind, length, tag = _HEAD.unpack_from(self._inbox, at)
            if magic != b"HK" or version != _VERSION and kind != _ERROR or length > _MAX_FRAME:
                raise ConnectionError("not a frame of this protocol")
            if len(self._inbox) - at < 16 + length:
                break
            head, payload = self._inbox[at : at + 12], bytes(self._inbox[at + 16 : at + 16 + length])
            if struct.unpack_from("<I", self._inbox, at + 12)[0] != zlib.crc32(payload, zlib.crc32(head)):
                raise ConnectionError("a frame was damaged")
            at += 16 + length
            self._take(kind, tag, payload)
        del self._inbox[:at]

    def _take(self, kind: int, tag: int, payload: bytes) -> None:
        if kind == _NAMES:
            at = 4
            for _ in range(struct.unpack_from("<I", payload)[0]):
                handle, length = struct.unpack_from("<IH", payload, at)
                self._names[handle] = payload[at + 6 : at + 6 + length].decode()
                at += 6 + length
        elif kind == _SCORES:
            self._take_scores(payload)
        elif kind == _EVENTS:
            self._take_events(payload)
        elif kind == _INCIDENT:
            self._take_incident(payload)
        elif kind == _ACK:
            self._acknowledged(struct.unpack("<Q", payload)[0])
        elif kind == _GAP:
            self._items.append(Gap(*struct.unpack("<QQ", payload)))
        elif kind == _ERROR:
            self._take_error(tag, payload)
        else:
            self._replies[tag] = kind, payload

    # --- a feed ---

    def _acknowledged(self, points: int) -> None:
        """The daemon has committed so many points of the feed."""
        while self._kept and (points > self.position or (self._going > 0 and self._kept[0][0] in self.refused)):
            self._kept.popleft()  # points of a refused sensor are never sent, and need no acknowledgement
            self.position += 1
            self._going -= self._going > 0

    def _feed_begins(self, points: int) -> None:
        """Called at the beginning of a connection, with the number of points of the feed that the daemon has."""
        self._acknowledged(points)
        self.position = max(points, self.position)
        self._going = 0

    def _feed_frames(self, before: int, points: Sequence[tuple[str, int, Any]]) -> Iterator[bytes]:
        """Makes frames of points, the first of which has the position `before`: a frame for each picture, and one for each run
        of points between points of refused sensors. These are left out: the daemon sees it by the next frame's position."""
        for kind, group in itertools.groupby(enumerate(points, before), lambda point: point[1][0] and ("refused" if point[1][0] in self.refused else "good")):
            some = list(group)
            if not kind:
                yield from (_frame(_PICTURE, struct.pack("<Q", at) + payload) for at, (_, _, payload) in some)
            elif kind == "good":
                handles, times, values = zip(*((self._handles[sensor], time, value) for _, (sensor, time, value) in some))
                yield _points(handles, times, values, before=some[0][0])

    def _take_events(self, payload: bytes) -> None:
        n, with_ = struct.unpack_from("<II", payload)
        record, details, at = struct.Struct("<" + "QQ" * (with_ & 1) + "Q" * (with_ >> 3 & 1) + "IIB3xfqqqdd"), struct.Struct("<xxxxfffBBHIIfqH"), 8
        for _ in range(n):
            *place, handle, number, kind, score, time, start, instant, before, after = record.unpack_from(payload, at)
            at += record.size
            incident = place.pop() if with_ & 8 else 0
            more: tuple[Any, ...] = ()
            novelty, near, marks = None, None, 0
            if with_ & 4:
                novelty, near = _note(payload, at, before)
                at += 40
            if with_ & 2:
                (margin, spread_before, spread_after, channel, marks, severity, held, similar, likeness, similar_from,
                 length) = details.unpack_from(payload, at)
                at += details.size + length
                more = (severity / 1000, margin, CHANNELS[channel], spread_before, spread_after, bool(marks & 1), held,
                        payload[at - length : at].decode(), likeness, similar, similar_from)
                novelty = novelty and novelty._replace(tolerance=spread_before)
            self._items.append(Event(self._names[handle], number, EVENTS[kind] or "", time, start, instant, score, before, after,
                                     *(place or (0, 0)), *more)._replace(incident=incident, novelty=novelty if more else None, limit=near,
                                                       provisional=bool(marks & 4), travels=bool(marks & 8)))
            if place and place[0]:
                self.event_position = place[0]

    def _take_incident(self, payload: bytes) -> None:
        record = struct.Struct("<QQQqqddIBBH")
        position, id_, into, time, since, rank, severity, count, kind, told, length = record.unpack_from(payload)
        text, about = payload[record.size : record.size + length].decode(), json.loads(payload[record.size + length :])
        self._items.append(Incident(INCIDENTS[kind] or "", id_, into, time, since, rank, severity, count, bool(told), text, about, position))
        if position:
            self.event_position = position

    def _take_scores(self, payload: bytes) -> None:
        n, time_kind, columns, _ = struct.unpack_from("<IBBH", payload)
        head = struct.unpack_from(("", "<q", "<qq", "<qq")[time_kind], payload, 8)
        at = 8 + 8 * len(head)

        def take(size: int, there: object = True) -> bytes:
            nonlocal at
            at += size * n if there else 0
            return payload[at - size * n : at] if there else b""

        raw = (take(8, time_kind == 0), take(8, columns & 1), take(8, columns & 4), take(4), take(4), take(4, time_kind == 3), take(1, columns & 2))
        (self._add_columns if self._as_columns else self._add_results)(n, time_kind, head, *raw)

    def _add_results(self, n: int, time_kind: int, head: tuple[int, ...], times: bytes, values: bytes, sequences: bytes, handles: bytes, scores: bytes,
                     steps: bytes, states: bytes) -> None:
        when: Any = (_column("q", times) if time_kind == 0 else itertools.repeat(head[0]) if time_kind == 1 else itertools.count(*head) if time_kind == 2 else
                     (head[0] + step * head[1] for step in _column("I", steps)))
        none: Any = itertools.repeat(None)
        for handle, time, value, score, state, sequence in zip(_column("I", handles), when, _column("d", values) if values else none, _column("f", scores),
                                                               states or itertools.repeat(1), _column("Q", sequences) if sequences else none):
            self._items.append(Result(self._names[handle], time, value, None if math.isnan(score) else score, STATES[state], sequence))

    def _add_columns(self, n: int, time_kind: int, head: tuple[int, ...], times: bytes, values: bytes, sequences: bytes, handles: bytes, scores: bytes,
                     steps: bytes, states: bytes) -> None:
        import numpy
        of, sensor = numpy.unique(numpy.frombuffer(handles, "<u4"), return_inverse=True)
        when = (numpy.frombuffer(times, "<i8") if time_kind == 0 else numpy.full(n, head[0], "i8") if time_kind == 1 else
                head[0] + head[1] * numpy.arange(n, dtype="i8") if time_kind == 2 else head[0] + head[1] * numpy.frombuffer(steps, "<u4").astype("i8"))
        self._items.append(Scores([self._names[handle] for handle in of.tolist()], sensor.astype("u4"), when,
                                  numpy.frombuffer(values, "<f8") if values else None, numpy.frombuffer(scores, "<f4"),
                                  numpy.frombuffer(states, "u1") if states else numpy.ones(n, "u1"),
                                  numpy.frombuffer(sequences, "<u8") if sequences else None))

    def _take_error(self, tag: int, payload: bytes) -> None:
        code, _, closing, length = struct.unpack_from("<HBBH", payload)
        error = Error(code, payload[6 : 6 + length].decode(errors="replace"))
        if closing:
            raise error
        if code == 8:  # unknown handle: sensors were evicted; they are registered again with their next points
            self._handles.clear()
        if tag:
            self._replies[tag] = error, b""
        if self.on_error:
            self.on_error(code, str(error))
