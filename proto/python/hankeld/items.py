"""What a client receives: results, events, incidents and gaps, and the words of their fields."""
from __future__ import annotations

from typing import Any, NamedTuple, Union

STATES = ("warming", "ok", "gap", "late", "rejected", "provisional")
EVENTS = (None, "raised", "corrected", "cleared", "stale", "back", None, "flapping", "acknowledged")
INCIDENTS = (None, "told", "update", "merged", "closed", "withheld", "expected", "false", "undone")
NOVELTIES = ("", "value", "context", "shape")
CHANNELS = ("", "score", "change", "shift", "group", "novelty", "limit")
REFUSALS = (None, "not a valid name", "the daemon is full", "no detector matches the name",
            "the daemon makes that series itself", "this peer has as many sensors as one may have")


class Result(NamedTuple):
    """What the daemon found out about one point."""
    sensor: str
    time: int  # ns since 1970
    value: float | None  # None unless subscribed with values
    score: float | None  # None when none was due
    state: str  # of STATES
    sequence: int | None = None  # of the point among its sensor's, if subscribed with sequences


class Scores(NamedTuple):
    """Results as columns of numpy, of one frame: instead of a Result each, if subscribed with columns."""
    names: list[str]  # of sensors
    sensor: Any  # uint32: of each result, which of the names
    time: Any  # int64: ns since 1970
    value: Any  # float64; None unless subscribed with values
    score: Any  # float32; NaN when none was due
    state: Any  # uint8: which of STATES
    sequence: Any  # uint64; None unless subscribed with sequences

    def frame(self) -> Any:
        """A DataFrame of pandas: sensor, value, score and state by time (UTC)."""
        import numpy
        import pandas
        columns = {"sensor": pandas.Categorical.from_codes(self.sensor.astype("int64"), self.names), "value": self.value, "score": self.score,
                   "state": pandas.Categorical.from_codes(self.state.astype("int8"), list(STATES))}
        return pandas.DataFrame({name: column for name, column in columns.items() if column is not None},
                                index=pandas.DatetimeIndex(numpy.asarray(self.time).view("datetime64[ns]"), tz="UTC", name="time"))


class Novelty(NamedTuple):
    """What is new, of an event of the channel novelty."""
    kind: str  # value, context (a mean of the last `reach` points) or shape
    expected: float  # the nearest that was there, where the event's `after` is what is now; of a shape 0, and `after` the rms difference to it
    tolerance: float  # how far these usually lie apart at most
    nearest: int  # ns: when it was there
    oldest: int  # ns: beginning of what it was compared with
    low: float  # range of the values that are resident
    high: float
    compared: int  # points
    reach: int  # points


class Limit(NamedTuple):
    """When a trend reaches a limit, of an event of the channel limit. The event's `before` and `after` are the trend's line where its window began, and now."""
    limit: float  # the one of two that the trend leads to
    slope: float  # units a second, below 0: it falls
    earliest: int  # ns: when the limit is reached by the steeper quartile of the slopes,
    reached: int  # by their median; not after the event's time: it is reached,
    latest: int | None  # and by the gentler quartile; None: never
    blocks: int  # of 24 that the trend is of


class Event(NamedTuple):
    """An alert (raised, corrected, cleared, flapping, acknowledged) or a notice (stale, back; only sensor, kind and time mean something)."""
    sensor: str
    number: int  # with the sensor's name the alert's id
    kind: str  # of EVENTS
    time: int  # ns: of the point; of a notice, of the sensor's last one
    start: int  # ns: of the interval that the alert was raised on
    instant: int  # ns: estimate of when the change took place
    score: float  # raised: the score; corrected, cleared: the highest since
    before: float  # level before the change
    after: float  # and after it
    position: int = 0  # in the daemon's event log; 0: it is in none, or not subscribed with `since`
    sequence: int = 0  # among the sensor's events; 0 likewise
    # What follows is 0, "" or None if subscribed without details.
    severity: float = 0  # 0..40: where nothing has changed at most 2 x 10^-severity of the blocks of 40 points have one so grave. 0: not known. See level()
    margin: float = 0  # what the statistic was of its threshold
    channel: str = ""  # of CHANNELS: which question the alert answers
    spread_before: float = 0  # standard deviation about the levels
    spread_after: float = 0
    maintenance: bool = False  # it was raised in a maintenance window
    held: int = 0  # raised: alerts of the sensor that were held back since the last that was told
    by: str = ""  # acknowledged: who did
    likeness: float = 0  # channel change: how like an earlier segment the new one is, 0..1; 0: like none
    similar: int = 0  # number of the alert with which that began; 0: it is the first that is known
    similar_from: int = 0  # ns: its beginning
    novelty: Novelty | None = None
    incident: int = 0  # that it belongs to; 0: to none, or not subscribed with incidents
    limit: Limit | None = None
    provisional: bool = False  # raised by a small window while the wanted one was not full: most such alerts are false
    travels: bool = False  # a change that travels along a line: `after` is where it began, `spread_after` its speed, `by` the nearest sensor


class Incident(NamedTuple):
    """What became of an incident, that is, of what several sensors, or several algorithms, say about one cause."""
    kind: str  # of INCIDENTS: told (it fits into the budget of messages), update (a told one is graver), merged, closed, withheld (over, never told)
    id: int
    into: int  # merged: the incident that it is part of
    time: int  # ns, of the data: when this was decided
    since: int  # ns: its first event
    rank: float  # what it was told or withheld by
    severity: float  # the greatest of its events
    count: int  # type: ignore[assignment] # sensors in it; a tuple has a method of this name
    told: bool  # it fitted into the budget, once at least
    text: str  # a sentence
    about: dict[str, Any]  # its sensors, which was first, and so on: PROTOCOL.md, incidents
    position: int = 0  # as an event's


class Gap(NamedTuple):
    """So many results and events were left out: this subscriber read too slowly, or the log of events has them no more. 2^63 - 1 events or
    more: nobody knows, for `since` lies beyond the end of the log, which is another one."""
    results: int
    events: int


Item = Union[Result, Scores, Event, Incident, Gap]

WARNING, SEVERE = 2.5, 3.5


def level(severity: float) -> str:
    """notice, warning or severe; unknown of 0."""
    return "severe" if severity >= SEVERE else "warning" if severity >= WARNING else "notice" if severity > 0 else "unknown"
