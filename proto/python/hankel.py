"""Client of hankeld in pure Python: standard library only, one file.

    import hankel

    with hankel.Client("127.0.0.1:7410") as client:
        client.send("machine temperature", 1700000000000000000, 21.5)     # time in ns since 1970
        client.sync()                                                     # the daemon has taken it over

    with hankel.Client() as client:
        client.subscribe("machine*", min_score=0.8)
        for item in client:                                               # Result, Event or Gap
            print(item)

    with hankel.Client(feed="gateway 7") as client:                       # each point counts once:
        for reading in readings[client.position:]:                        # the daemon has so many of this feed already
            client.send(*reading)

Calls block, at most for the client's timeout. Points are buffered and sent in batches (`flush`, `sync`, or when there are many). When the
connection breaks ConnectionError is raised: make a new client. With a feed, or a subscription with `since`, the client connects again by
itself, sends points again that were not acknowledged, and goes on behind the last event. One client, one thread. The protocol is described in PROTOCOL.md.
"""
import array
import collections
import hmac
import ipaddress
import itertools
import json
import math
import socket
import ssl
import struct
import sys
import time as clock
import zlib

__all__ = ["Client", "Error", "Event", "Gap", "Result", "STATES", "EVENTS"]

STATES = ("warming", "ok", "gap", "late", "rejected")
EVENTS = (None, "raised", "corrected", "cleared", "stale", "back", None, "flapping", "acknowledged")
NOVELTIES = ("", "value", "context", "shape")
CHANNELS = ("", "score", "change", "shift", "group", "novelty")
REFUSALS = (None, "not a valid name", "the daemon is full", "no detector matches the name",
            "the daemon makes that series itself", "this peer has as many sensors as one may have")

_HELLO, _REGISTER, _POINTS, _SUBSCRIBE, _UNSUBSCRIBE, _PING, _STATUS, _BYE, _FEED = range(1, 10)
_RELOAD, _RELOADED, _OPERATE, _OPERATED, _SENSORS = 0x0A, 0x8A, 0x0B, 0x8B, 0x0C
_WELCOME, _REGISTERED, _DONE, _PONG, _REPORT, _FAREWELL, _FEED_AT = 0x81, 0x82, 0x84, 0x86, 0x87, 0x88, 0x89
_NAMES, _SCORES, _EVENTS, _GAP, _ACK, _ERROR = 0x91, 0x92, 0x93, 0x94, 0x95, 0xFF
_VERSION = 1
_MAX_FRAME = 1 << 20
_REGISTER_MOST = 200  # names in a frame
_LIST_MOST = 1000  # sensors in an answer
_BATCH = 4096  # points in a frame over TCP
_KEPT = 1 << 16  # points of a feed that may wait for an acknowledgement
_NOW = (1 << 64) - 1  # as a position
_DATAGRAM = 1400  # bytes: fits the usual path
_HEAD = struct.Struct("<2sBBII")
_POINT_HEAD = struct.Struct("<QQQIBBH")

# A point's result. score: None when none was due; value: None unless subscribed with values.
# sequence: of the point among its sensor's, if subscribed with sequences.
Result = collections.namedtuple("Result", "sensor time value score state sequence", defaults=(None,))
# An alert (raised, corrected, cleared) or a notice (stale, back; only sensor, kind and time mean something).
# position, sequence: in the daemon's event log, and among the sensor's; 0: not there, or not subscribed with `since`.
# The rest is 0 unless subscribed with details: severity (0..40: how rare so grave an alert is, on one scale for all channels: where nothing has changed
# at most 2 x 10^-severity of the blocks of 40 points have such a one; 0: not known. level() names it), margin, channel (score, change, shift, group: which question
# the alert answers), spreads (standard deviations about the levels), maintenance (raised in a maintenance window), held (raised: alerts of
# the sensor that were held back since the last that was told), by (acknowledged: who did), and of the channel change the earlier segment
# that the new one is most like: likeness (0: it is like none), similar (number of the alert with which that one began; 0: it is the first
# that is known), similar_from (its beginning). novelty: of the channel novelty what is new, a Novelty, else None.
Event = collections.namedtuple(
    "Event", "sensor number kind time start instant score before after position sequence severity margin channel spread_before spread_after "
    "maintenance held by likeness similar similar_from novelty", defaults=(0, 0, 0, 0, "", 0, 0, False, 0, "", 0, 0, 0, None))
# kind: value, context (a mean of the last `reach` points) or shape. expected: the nearest that was there, where `after` is what is now; of a
# shape 0, and `after` the rms difference to the nearest. tolerance: how far these usually lie apart at most. nearest: when it was there.
# compared: points that it was compared with, since `oldest`, whose values went from low to high.
Novelty = collections.namedtuple("Novelty", "kind expected tolerance nearest oldest low high compared reach")
# So many results and events were left out: this subscriber read too slowly, or the log of events has them no more. 2^63 - 1 events or
# more: nobody knows, for `since` lies beyond the end of the log, which is another one.
Gap = collections.namedtuple("Gap", "results events")


WARNING, SEVERE = 2.5, 3.5


def level(severity):
    """notice, warning or severe; unknown of 0."""
    return "severe" if severity >= SEVERE else "warning" if severity >= WARNING else "notice" if severity > 0 else "unknown"


class Error(ConnectionError):
    """The daemon ended the connection with an error frame: `code` and text as in PROTOCOL.md."""

    def __init__(self, code, message):
        super().__init__(f"{message} (error {code})")
        self.code = code


def _frame(kind, payload=b"", tag=0):
    head = _HEAD.pack(b"HK", _VERSION, kind, len(payload), tag)
    return head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload


def _string(text):
    data = text.encode()
    return struct.pack("<H", len(data)) + data


def _column(code, data):
    """Little-endian numbers to an array."""
    column = array.array(code)
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _bytes(code, numbers):
    column = array.array(code, numbers)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


def _loopback(host):
    address = ipaddress.ip_address(host.partition("%")[0])
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


class Client:
    """A connection to hankeld. udp: "HOST:PORT" of a UDP listener: points then go as numbered datagrams.

    tls: True for TLS with the system's authorities, or an ssl.SSLContext (ssl.create_default_context(cafile=...), with
    load_cert_chain where the daemon wants a certificate). token: shows the daemon who we are. Without tls it is sent over loopback
    only, and PermissionError raised beyond; token_in_clear=True sends it all the same, for everybody on the way to read. mac: True
    puts a keyed checksum behind each datagram, which a listener with `mac = yes` needs; the daemon gives a key for it over TLS only.

    feed: name of the feed that all points belong to; `position` then is how many of its points the daemon has for certain.
    patience: seconds for a daemon that went away to come back, with a feed or `since`.
    """

    def __init__(self, address="127.0.0.1:7410", udp=None, name="hankel.py", timeout=10.0, tls=None, token=None, feed=None, patience=10.0, mac=False,
                 token_in_clear=False):
        self.on_error = None  # called with (code, message) for errors that do not end the connection
        self.refused = {}  # sensor -> why the daemon does not take it; its points are dropped
        self.server = None
        self.position = 0  # of the feed: points that are acknowledged
        self.event_position = _NOW  # of the last event, with `since`
        self._how = address, udp, name, tls, token, mac, token_in_clear
        self._timeout, self._patience = timeout, patience
        self._feed_name, self._kept, self._going = feed, collections.deque(), 0  # going: of those that are kept, that are sent
        self._points = []  # (sensor, time, value)
        self._items = collections.deque()
        self._subscription = None
        self._tag = 0
        self._connect()

    def _connect(self):
        address, udp, name, tls, token, mac, token_in_clear = self._how
        self._udp = None
        self._socket = socket.create_connection(_address(address), self._timeout)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                context = ssl.create_default_context() if tls is True else tls
                self._socket = context.wrap_socket(self._socket, server_hostname=_address(address)[0])
            elif token and not token_in_clear and not _loopback(self._socket.getpeername()[0]):
                raise PermissionError(f"{address}: the token was not sent: without TLS everybody on the way can read it. Use tls=True, or "
                                      "token_in_clear=True where you trust all of the network")
            self._inbox = bytearray()
            self._handles = {}  # sensor -> handle, None before the daemon has said
            self._names = {}  # handle -> sensor, of results
            self._replies = {}  # tag -> reply
            self._datagrams = self._sent = 0
            hello = _string(name) + (_string(token or "") + struct.pack("<I", mac) if token or mac else b"")
            payload = self._request(_HELLO, _WELCOME, hello)
            self._feed, self._max_frame = struct.unpack_from("<QI", payload)
            length = struct.unpack_from("<H", payload, 12)[0]
            self.server = payload[14 : 14 + length].decode()
            self._key = payload[16 + length :] if mac else None
            if mac and len(self._key) != 32:
                raise ConnectionError("the daemon gives no key for datagrams: it is to be had over TLS only")
            if udp:
                family, kind, protocol, _, where = socket.getaddrinfo(*_address(udp), type=socket.SOCK_DGRAM)[0]
                self._udp = socket.socket(family, kind, protocol)
                self._udp.connect(where)
            if self._feed_name is not None:
                at = struct.unpack_from("<Q", self._request(_FEED, _FEED_AT, _string(self._feed_name)))[0]
                self._acknowledged(at)
                self.position = max(at, self.position)
                self._going = 0
            if self._subscription:
                self._resubscribe()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        try:
            if kind is None:
                self.flush()
                if self._feed_name is not None:
                    self._feed_some(0)
        finally:
            self.close()

    def close(self):
        """Closes at once; what was not flushed is lost."""
        self._socket.close()
        if self._udp:
            self._udp.close()

    # --- points ---

    def _again(self, fault):
        """Connects again, where nothing is lost by that."""
        if self._feed_name is None and not (self._subscription and self._subscription[0] & 32):
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

    def _acknowledged(self, points):
        while self._kept and (points > self.position or (self._going > 0 and self._kept[0][0] in self.refused)):
            self._kept.popleft()  # points of a refused sensor are never sent, and need no acknowledgement
            self.position += 1
            self._going -= self._going > 0

    def _feed_some(self, most):
        """Sends points of the feed, and waits until at most so many are not acknowledged."""
        while True:
            try:
                rest = list(itertools.islice(self._kept, self._going, None))
                self._register([sensor for sensor, _, _ in rest])
                before = self.position + self._going
                for begin in range(0, len(rest), _BATCH):
                    some = rest[begin : begin + _BATCH]
                    self._feed_frame(before + begin, some)
                    self._going += len(some)
                self._acknowledged(self.position)
                while len(self._kept) > most:
                    if not self._receive(self._timeout):
                        raise TimeoutError(f"no acknowledgement within {self._timeout} s")
                return
            except (Error, TimeoutError):
                raise
            except OSError as fault:
                self._again(fault)

    def _feed_frame(self, before, points):
        """Sends points as frames that end before those of refused sensors, which the numbers say are left out."""
        for good, group in itertools.groupby(enumerate(points, before), lambda point: point[1][0] not in self.refused):
            group = list(group)
            if not good:
                continue
            handles, times, values = zip(*((self._handles[sensor], time, value) for _, (sensor, time, value) in group))
            self._write(_frame(_POINTS, _POINT_HEAD.pack(0, 0, group[0][0], len(group), 0, 0, 0) + _bytes("q", times) +
                               _bytes("d", values) + _bytes("I", handles)))

    def send(self, sensor, time, value):
        """Buffers a point; time in ns since 1970."""
        self._points.append((sensor, time, value))
        if len(self._points) >= _BATCH:
            self.flush()

    def flush(self):
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
            feed = (self._feed, self._datagrams + 1, self._sent) if self._udp else (0, 0, 0)
            payload = _POINT_HEAD.pack(*feed, len(handles), 0, 0, 0) + _bytes("q", times) + _bytes("d", values) + _bytes("I", handles)
            if self._udp:
                self._datagrams += 1
                self._sent += len(handles)
                try:
                    self._udp.send(self._sealed(_frame(_POINTS, payload)))
                except ConnectionRefusedError:
                    pass  # nobody listens: the datagram is lost, as datagrams may be
            else:
                self._write(_frame(_POINTS, payload))

    def _sealed(self, frame):
        return frame + hmac.digest(self._key, frame, "sha256")[:16] if self._key else frame

    def sync(self):
        """Sends all points and waits until the daemon has taken them over (over UDP: those that arrived; of a feed: until it has
        acknowledged them)."""
        self.flush()
        if self._feed_name is not None:
            self._feed_some(0)
            return
        self._request(_PING, _PONG, bytes(8))

    def _register(self, sensors):
        new = [sensor for sensor in dict.fromkeys(sensors) if self._handles.get(sensor) is None and sensor not in self.refused]
        for begin in range(0, len(new), _REGISTER_MOST):
            some = new[begin : begin + _REGISTER_MOST]
            payload = self._request(_REGISTER, _REGISTERED, struct.pack("<I", len(some)) + b"".join(map(_string, some)))
            for sensor, (handle, reason) in zip(some, struct.iter_unpack("<II", payload[4:])):
                self._handles[sensor] = handle
                if reason:
                    self.refused[sensor] = REFUSALS[reason] if reason < len(REFUSALS) else "?"

    # --- results ---

    def subscribe(self, glob="", min_score=0.0, scores=True, unscored=False, events=True, notices=True, values=False, since=None,
                  sequences=False, details=False):
        """Results, events and notices of sensors that match the glob (`*`, `?`) come out of iteration and `read`.

        since: the position of the last event that is known (0: all that the daemon has, -1: none before now); the events behind it come,
        each once, also when the connection breaks in between. sequences: results have their sequence. details: events have all fields, and the
        kinds flapping and acknowledged come too."""
        what = (scores | unscored << 1 | events << 2 | notices << 3 | values << 4 | (since is not None) << 5 | sequences << 6 |
                384 * bool(details))
        self._subscription = what, min_score, glob
        self.event_position = _NOW if since is None or since < 0 else since
        self._resubscribe()

    def _resubscribe(self):
        what, min_score, glob = self._subscription
        since = struct.pack("<Q", self.event_position) if what & 32 else b""
        done = self._request(_SUBSCRIBE, _DONE, struct.pack("<If", what, min_score) + _string(glob) + since)
        if done and self.event_position == _NOW:
            self.event_position = struct.unpack("<Q", done)[0]

    def unsubscribe(self):
        self._subscription = None
        self._request(_UNSUBSCRIBE, _DONE)

    def read(self, timeout=None):
        """The next Result, Event or Gap; None when none came within timeout seconds (None: waits as long as it takes)."""
        while not self._items:
            try:
                if not self._receive(timeout):
                    return None
            except Error:
                raise
            except ConnectionError as fault:
                self._again(fault)
        return self._items.popleft()

    def __iter__(self):
        while self._items or self._socket.fileno() >= 0:
            try:
                yield self.read()
            except ConnectionResetError:
                return

    # --- the rest ---

    def status(self):
        """The daemon's counters."""
        return json.loads(self._request(_STATUS, _REPORT))

    def sensors(self, glob=""):
        """Each sensor that matches the glob, a dict with its `name`, `state`, `value`, `score` and more: PROTOCOL.md (SENSORS)."""
        after = 0
        while after is not None:
            part = self._list(glob, after, _LIST_MOST)
            yield from part["sensors"]
            after = part.get("next")

    def _list(self, glob, after, limit):
        return json.loads(self._request(_SENSORS, _REPORT, struct.pack("<QI", after, limit) + _string(glob)))

    def reload(self):
        """Makes the daemon read its configuration again: whether it is in force now, and lines that say what came of it."""
        payload = self._request(_RELOAD, _RELOADED)
        return payload[0] == 1, payload[1:].decode()

    def acknowledge(self, sensor, number=0, by=""):
        """Takes note of an alert that stands (0: whichever does): whether that was done, and a line that says what came of it."""
        return self._operate(1, number, 0, sensor, by)

    def maintain(self, glob, seconds, by=""):
        """Marks the alerts that sensors raise from now on for so long; 0 ends what was begun with this glob. As acknowledge."""
        return self._operate(2 if seconds else 3, 0, round(seconds * 1e9), glob, by)

    def _operate(self, what, number, duration, subject, by):
        payload = self._request(_OPERATE, _OPERATED, struct.pack("<BxxxIQ", what, number, duration) + _string(subject) + _string(by))
        return payload[0] == 1, payload[1:].decode()

    def finish(self):
        """Sends all points and waits until they are scored and the subscription has got what it is owed; then closes.
        What has come and was not read yet can still be read."""
        self.flush()
        if self._feed_name is not None:
            self._feed_some(0)
        self._request(_BYE, _FAREWELL, struct.pack("<QQ", self._datagrams, self._sent))
        self.close()

    def _write(self, data):
        self._socket.settimeout(self._timeout)
        self._socket.sendall(data)

    def _request(self, kind, reply, payload=b""):
        """Sends a frame and waits for its answer; what comes in between is kept for `read`."""
        self._tag = self._tag % 0xFFFFFFFF + 1
        tag = self._tag
        self._write(_frame(kind, payload, tag))
        while tag not in self._replies:
            if not self._receive(self._timeout):
                raise TimeoutError(f"no answer within {self._timeout} s")
        got, payload = self._replies.pop(tag)
        if isinstance(got, Error):
            raise got
        if got != reply:
            raise ConnectionError(f"the daemon answered {kind:#x} with {got:#x}")
        return payload

    def _receive(self, timeout):
        """Waits for bytes and takes the whole frames among them. False: nothing came in time."""
        self._socket.settimeout(timeout)
        try:
            data = self._socket.recv(1 << 18)
        except (TimeoutError, socket.timeout, BlockingIOError, ssl.SSLWantReadError):  # the last two where timeout is 0
            return False
        if not data:
            raise ConnectionResetError("the daemon closed the connection")
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
        return True

    def _take(self, kind, tag, payload):
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
        elif kind == _ACK:
            self._acknowledged(struct.unpack("<Q", payload)[0])
        elif kind == _GAP:
            self._items.append(Gap(*struct.unpack("<QQ", payload)))
        elif kind == _ERROR:
            self._take_error(tag, payload)
        else:
            self._replies[tag] = kind, payload

    def _take_events(self, payload):
        n, with_ = struct.unpack_from("<II", payload)
        record, details, at = struct.Struct("<QQIIB3xfqqqdd" if with_ & 1 else "<IIB3xfqqqdd"), struct.Struct("<xxxxfffBBHIIfqH"), 8
        notes = struct.Struct("<qqddIHBx")
        for _ in range(n):
            *place, handle, number, kind, score, time, start, instant, before, after = record.unpack_from(payload, at)
            at += record.size
            more = ()
            if with_ & 4:
                *note, compared, reach, kind_of_novelty = notes.unpack_from(payload, at)
                at += notes.size
            if with_ & 2:
                (margin, spread_before, spread_after, channel, marks, severity, held, similar, likeness, similar_from,
                 length) = details.unpack_from(payload, at)
                at += details.size + length
                more = (severity / 1000, margin, CHANNELS[channel], spread_before, spread_after, bool(marks & 1), held,
                        payload[at - length : at].decode(), likeness, similar, similar_from)
                if with_ & 4 and kind_of_novelty:
                    more += Novelty(NOVELTIES[kind_of_novelty], before, spread_before, *note, compared, reach),
            self._items.append(Event(self._names[handle], number, EVENTS[kind], time, start, instant, score, before, after,
                                     *(place or (0, 0)), *more))
            if place and place[0]:
                self.event_position = place[0]

    def _take_scores(self, payload):
        n, time_kind, columns, _ = struct.unpack_from("<IBBH", payload)
        head = struct.unpack_from(("", "<q", "<qq", "<qq")[time_kind], payload, 8)
        at = 8 + 8 * len(head)

        def take(code, size):
            nonlocal at
            at += size * n
            return _column(code, payload[at - size * n : at])

        times = take("q", 8) if time_kind == 0 else itertools.repeat(head[0]) if time_kind == 1 else itertools.count(*head)
        values = take("d", 8) if columns & 1 else itertools.repeat(None)
        sequences = take("Q", 8) if columns & 4 else itertools.repeat(None)
        handles, scores = take("I", 4), take("f", 4)
        if time_kind == 3:
            times = [head[0] + step * head[1] for step in take("I", 4)]
        states = take("B", 1) if columns & 2 else itertools.repeat(1)
        for handle, time, value, score, state, sequence in zip(handles, times, values, scores, states, sequences):
            self._items.append(Result(self._names[handle], time, value, None if math.isnan(score) else score, STATES[state], sequence))

    def _take_error(self, tag, payload):
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
