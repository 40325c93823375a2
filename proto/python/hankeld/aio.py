"""The client for asyncio: it does what the plain client does, except for datagrams."""
from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import struct
import time as clock
from types import TracebackType
from typing import Any, AsyncIterator, Sequence

from .client import _address, _hello
from .items import Item
from .wire import (_BATCH, _BYE, _DONE, _FAREWELL, _FEED, _FEED_AT, _HELLO, _KEPT, _LIST_MOST, _MOVING, _NOW, _OPERATE, _OPERATED, _PICTURE, _PICTURES_KEPT, _PING, _PONG, _REGISTER, _REGISTERED, _RELOAD, _RELOADED, _REPORT,
                   _SENSORS, _STATUS, _SUBSCRIBE, _UNSUBSCRIBE, _WELCOME, End, Error, _columns_of_frame, _frame, _has_moved, _not_moved, _points, _string, _what)


class AsyncClient(End):
    """A connection to hankeld, for one event loop:

        async with AsyncClient("127.0.0.1:7410") as client: ...

    or `await client.connect()` and `await client.close()`. Several tasks may use it at a time; one of them reads. tls, token,
    token_in_clear, feed, patience: as for Client. When the connection ends, waiting calls raise ConnectionError, and so does `read` once
    all received items were read. With a feed, or a subscription with `since`, `read`, `flush` and `sync` reconnect instead, and continue
    where the connection ended."""

    def __init__(self, address: str = "127.0.0.1:7410", name: str = "hankeld for Python", timeout: float = 10.0, tls: bool | ssl.SSLContext | None = None,
                 token: str | None = None, token_in_clear: bool = False, feed: str | None = None, patience: float = 10.0) -> None:
        super().__init__()
        self._how = address, name, tls, token, token_in_clear
        self._timeout, self._patience = timeout, patience
        self._feed_name = feed
        self._feeding, self._joining = asyncio.Lock(), asyncio.Lock()  # held by the task that sends points of the feed; by the task that reconnects
        self._joined = 0  # the number of connections so far,
        self._ready = False  # and whether the connection is ready for points
        self._closed = False
        self._moved = asyncio.Event()  # points were acknowledged, or a connection began or ended
        self._points: list[tuple[str, int, float]] = []
        self._waiting: dict[int, asyncio.Future[None]] = {}  # tag -> the future that awaits the reply
        self._fault: BaseException | None = None  # why the connection has ended
        self._news = asyncio.Event()  # items have arrived, or the connection has ended
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> AsyncClient:
        await self.connect()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if kind is None and (self._fault is None or self._feed_name is not None) and not self._closed:
                await self.flush()
                if self._feed_name is not None:
                    await self._feed_some(0)
        finally:
            await self.close()

    async def connect(self) -> None:
        """Connects, sends HELLO and, with a feed, gets its position (`position`)."""
        self._closed = False
        await self._connect()

    async def _connect(self) -> None:
        self._ready = False
        self._joined += 1
        address, name, tls, token, token_in_clear = self._how
        host, port = _address(address)
        context = ssl.create_default_context() if tls is True else tls or None
        opening = asyncio.open_connection(host, port, ssl=context, server_hostname=host if context else None)
        self._reader, self._writer = await asyncio.wait_for(opening, self._timeout)
        self._begin()
        self._fault = None
        self._reading = asyncio.get_running_loop().create_task(self._read_all())
        try:
            peer = self._writer.get_extra_info("peername")
            if peer is None:  # the connection was reset already
                raise ConnectionResetError("the daemon closed the connection")
            hello = _hello(address, name, token, False, tls, token_in_clear, peer[0])
            self._welcomed(await self._request(_HELLO, _WELCOME, hello))
            if self._feed_name is not None:
                self._feed_begins(struct.unpack_from("<Q", await self._request(_FEED, _FEED_AT, _string(self._feed_name)))[0])
            if self._subscription:
                await self._resubscribe()
            self._ready = True
            self._moved.set()
        except BaseException:
            await self._hang_up()
            raise

    async def close(self) -> None:
        """Closes at once; points that were not flushed are lost."""
        self._closed = True
        await self._hang_up()

    async def _again(self, fault: BaseException) -> None:
        """Reconnects if that loses nothing; if several tasks ask for it, one of them does it."""
        lasts = self._feed_name is not None or (self._subscription is not None and self._subscription[0] & 32)
        if self._closed or not lasts or (isinstance(fault, Error) and not fault._passes()):
            raise fault
        clock = asyncio.get_running_loop().time
        end = clock() + self._patience
        async with self._joining:
            if self._fault:
                await self._hang_up()
            while self._fault:
                try:
                    await self._connect()
                except (OSError, asyncio.TimeoutError):
                    if self._closed or clock() > end:
                        raise
                    await asyncio.sleep(0.1)

    async def _hang_up(self) -> None:
        if self._reading:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
            self._reading = None
            self._writer.close()
            try:
                await self._writer.wait_closed()
            except (OSError, ssl.SSLError):
                pass  # it is over either way
        if self._fault is None:  # the reading task had not begun, and so did not say it
            self._fault, self._ready = ConnectionAbortedError("the connection was closed"), False

    async def _read_all(self) -> None:
        """Receives frames until the connection ends."""
        fault: BaseException = ConnectionResetError("the daemon closed the connection")
        try:
            while data := await self._reader.read(1 << 18):
                self._came(data)
                for tag in self._replies.keys() & self._waiting.keys():
                    if not self._waiting[tag].done():
                        self._waiting[tag].set_result(None)
                self._moved.set()
                if self._items:
                    self._news.set()
        except asyncio.CancelledError:
            fault = ConnectionAbortedError("the connection was closed")
        except Exception as why:
            fault = why
        self._fault, self._ready = fault, False
        self._news.set()
        self._moved.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(fault)

    async def _write(self, data: bytes) -> None:
        if self._fault:
            raise self._fault
        self._writer.write(data)
        await self._writer.drain()

    async def _request(self, kind: int, reply: int, payload: bytes = b"") -> bytes:
        """Sends a frame and waits for its answer."""
        tag = self._next_tag()
        self._waiting[tag] = asyncio.get_running_loop().create_future()
        try:
            await self._write(_frame(kind, payload, tag))
            await asyncio.wait_for(self._waiting[tag], self._timeout)
            return self._reply(tag, kind, reply)
        finally:
            waiting = self._waiting.pop(tag)
            if waiting.done() and not waiting.cancelled():
                waiting.exception()  # retrieved, or asyncio would log that it never was

    # --- points ---

    async def send(self, sensor: str, time: int, value: float) -> None:
        """Buffers a point; time in ns since 1970."""
        self._points.append((sensor, time, value))
        if len(self._points) >= _BATCH:
            await self.flush()

    async def send_columns(self, sensor: str | Sequence[str], times: Any, values: Any) -> None:
        """As Client.send_columns."""
        await self.flush()
        if self._feed_name is not None:
            names, times, values = self._cut(sensor, times, values)
            for name, time, value in zip(names, times, values):
                await self.send(name, int(time), float(value))
            return await self.flush()
        await self._register([sensor] if isinstance(sensor, str) else sensor)
        names, times, values = self._cut(sensor, times, values)
        handles = [self._handles[name] for name in names]
        for begin in range(0, len(handles), _BATCH):
            end = begin + _BATCH
            await self._write(_points(handles[begin:end], times[begin:end], values[begin:end]))

    async def send_frame(self, frame: Any, prefix: str = "") -> None:
        """As Client.send_frame."""
        for name, times, values in _columns_of_frame(frame, prefix):
            await self.send_columns(name, times, values)

    async def send_picture(self, camera: str, pixels: Any, time: int | None = None, scale: float = 1.0, offset: float = 0.0) -> None:
        """As Client.send_picture."""
        await self.flush()
        payload = self._picture_payload(camera, pixels, time, scale, offset)
        if self._feed_name is not None:
            self._kept.append(("", 0, payload))
            await self._feed_some(_PICTURES_KEPT)
        else:
            await self._write(_frame(_PICTURE, bytes(8) + payload))

    async def flush(self) -> None:
        """Sends all buffered points."""
        points, self._points = self._points, []
        if self._feed_name is not None:
            self._kept.extend(points)
            return await self._feed_some(_KEPT)
        await self._register([sensor for sensor, _, _ in points])
        good = [(self._handles[sensor], time, value) for sensor, time, value in points if sensor not in self.refused]
        for begin in range(0, len(good), _BATCH):
            handles, times, values = zip(*good[begin : begin + _BATCH])
            await self._write(_points(handles, times, values))

    async def _feed_some(self, most: int) -> None:
        """Sends points of the feed, and waits until at most `most` are unacknowledged."""
        while True:
            try:
                async with self._feeding:
                    await self._feed_rest()
                joined = self._joined
                while len(self._kept) > most and joined == self._joined:
                    if self._fault:
                        raise self._fault
                    self._moved.clear()
                    await asyncio.wait_for(self._moved.wait(), self._timeout)
                if joined == self._joined:
                    return
            except asyncio.TimeoutError:
                raise TimeoutError(f"no acknowledgement within {self._timeout} s") from None
            except OSError as fault:
                await self._again(fault)

    async def _feed_rest(self) -> None:
        """Sends the points that were not sent yet. Ends when the connection changes, because a new one sends all points again."""
        joined = self._joined
        self._still(joined)
        rest = list(itertools.islice(self._kept, self._going, None))
        before = self.position + self._going  # valid as long as the connection is this one, whatever is acknowledged
        await self._register([sensor for sensor, _, _ in rest])
        for begin in range(0, len(rest), _BATCH):
            some = rest[begin : begin + _BATCH]
            self._still(joined)
            frames = list(self._feed_frames(before + begin, some))
            self._going += len(some)
            for frame in frames:
                self._writer.write(frame)
            await self._writer.drain()
        self._acknowledged(self.position)

    def _still(self, joined: int) -> None:
        """Raises unless points may be sent over this connection."""
        if self._fault:
            raise self._fault
        if joined != self._joined or not self._ready:
            raise ConnectionResetError("the connection is another one")

    async def sync(self) -> None:
        """Sends all points and waits until the daemon has taken them over; those of a feed until it has acknowledged them."""
        await self.flush()
        if self._feed_name is not None:
            return await self._feed_some(0)
        await self._request(_PING, _PONG, bytes(8))

    async def _register(self, sensors: Sequence[str]) -> None:
        for some in self._unknown(sensors):
            self._registered(some, await self._request(_REGISTER, _REGISTERED, self._names_payload(some)))

    # --- results ---

    async def subscribe(self, glob: str = "", min_score: float = 0.0, scores: bool = True, unscored: bool = False, events: bool = True, notices: bool = True,
                        values: bool = False, since: int | None = None, sequences: bool = False, details: bool = True, columns: bool = False,
                        incidents: bool = False) -> None:
        """As Client.subscribe. `event_position` is the position of the last event received."""
        self._subscription = _what(scores, unscored, events, notices, values, since, sequences, details, incidents), min_score, glob
        self._as_columns = columns
        self.event_position = _NOW if since is None or since < 0 else since
        await self._resubscribe()

    async def _resubscribe(self) -> None:
        self._subscribed(await self._request(_SUBSCRIBE, _DONE, self._subscribe_payload()))

    async def unsubscribe(self) -> None:
        self._subscription = None
        await self._request(_UNSUBSCRIBE, _DONE)

    async def read(self, timeout: float | None = None) -> Item | None:
        """The next item; None if none arrived within timeout seconds (None: waits without limit)."""
        while not self._items:
            if self._fault:
                if not isinstance(self._fault, ConnectionError):
                    raise self._fault
                await self._again(self._fault)
                continue
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), timeout)
            except asyncio.TimeoutError:
                return None
        return self._items.popleft()

    async def __aiter__(self) -> AsyncIterator[Item]:
        while True:
            try:
                item = await self.read()
            except (ConnectionResetError, ConnectionAbortedError):
                return
            if item is not None:
                yield item

    # --- the rest ---

    async def status(self) -> dict[str, Any]:
        """The daemon's counters."""
        report: dict[str, Any] = json.loads(await self._request(_STATUS, _REPORT))
        return report

    async def sensors(self, glob: str = "") -> AsyncIterator[dict[str, Any]]:
        """As Client.sensors."""
        after: int | None = 0
        while after is not None:
            part = json.loads(await self._request(_SENSORS, _REPORT, self._list_payload(glob, after, _LIST_MOST)))
            for sensor in part["sensors"]:
                yield sensor
            after = part.get("next")

    async def reload(self) -> tuple[bool, str]:
        """Makes the daemon read its configuration again. Returns whether it is in force now, and lines that describe the
        outcome."""
        payload = await self._request(_RELOAD, _RELOADED)
        return payload[0] == 1, payload[1:].decode()

    async def acknowledge(self, sensor: str, number: int = 0, by: str = "") -> tuple[bool, str]:
        """Acknowledges a standing alert (number 0: any of the sensor's). Returns whether that was done, and a line that
        describes the outcome."""
        return await self._operate(1, number, 0, sensor, by)

    async def maintain(self, glob: str, seconds: float, by: str = "") -> tuple[bool, str]:
        """Begins maintenance: for so many seconds, alerts of these sensors are marked. 0 ends the maintenance begun with this
        glob. Returns as acknowledge."""
        return await self._operate(2 if seconds else 3, 0, round(seconds * 1e9), glob, by)

    async def cluster(self) -> dict[str, Any] | None:
        """As Client.cluster."""
        return (await self.status()).get("cluster")

    async def drain(self, undo: bool = False, by: str = "", wait: float = 90.0) -> tuple[bool, str]:
        """As Client.drain."""
        outcome = await self._operate(8 if undo else 7, 0, 0, "", by)
        if outcome[0] and not undo:
            await self._until(None, wait)
        return outcome

    async def move(self, partition: int, by: str = "", wait: float = 90.0) -> tuple[bool, str]:
        """As Client.move."""
        outcome = await self._operate(9, partition, 0, "", by)
        if outcome[0]:
            await self._until(partition, wait)
        return outcome

    async def _until(self, partition: int | None, wait: float) -> None:
        end = clock.monotonic() + wait
        while not _has_moved(cluster := await self.cluster(), partition):
            if clock.monotonic() > end:
                raise _not_moved(cluster, partition, wait)
            await asyncio.sleep(_MOVING)

    async def _operate(self, what: int, number: int, duration: int, subject: str, by: str) -> tuple[bool, str]:
        payload = await self._request(_OPERATE, _OPERATED, self._operate_payload(what, number, duration, subject, by))
        return payload[0] == 1, payload[1:].decode()

    async def finish(self) -> None:
        """Sends all points, waits until they are scored and the subscription has received its items, and closes. Received items
        can still be read."""
        await self.flush()
        while True:
            if self._feed_name is not None:
                await self._feed_some(0)
            try:
                await self._request(_BYE, _FAREWELL, bytes(16))
                break
            except ConnectionError as fault:
                if self._feed_name is None:  # points may be lost
                    raise
                await self._again(fault)
        await self.close()
