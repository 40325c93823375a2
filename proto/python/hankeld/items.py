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
    """The result for one point."""
    sensor: str
    time: int  # ns since 1970
    value: float | None  # None unless subscribed with values
    score: float | None  # None if the point has no score
    state: str  # of STATES
    sequence: int | None = None  # the point's number among its sensor's points, if subscribed with sequences


class Scores(NamedTuple):
    """Results of one frame as columns of numpy, instead of a Result each; if subscribed with columns."""
    names: list[str]  # names of sensors
    sensor: Any  # uint32: indices into `names`
    time: Any  # int64: ns since 1970
    value: Any  # float64; None unless subscribed with values
    score: Any  # float32; NaN: the point has no score
    state: Any  # uint8: indices into STATES
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
    """What is new; of events of the channel novelty."""
    kind: str  # value, context (a mean of the last `reach` points) or shape
    expected: float  # the nearest earlier value, with which the event's `after` compares; for a shape 0, and `after` is the rms difference to the nearest shape
    tolerance: float  # how far apart these usually are at most
    nearest: int  # ns: time of the nearest earlier value or shape
    oldest: int  # ns: beginning of the points compared with
    low: float  # range of the resident values
    high: float
    compared: int  # points
    reach: int  # points


class Limit(NamedTuple):
    """When a trend reaches a limit; of events of the channel limit. The event's `before` and `after` are values of the trend's line at the
    beginning of its window, and now."""
    limit: float  # the limit, of two, towards which the trend moves
    slope: float  # units a second; negative if the value falls
    earliest: int  # ns: when the limit is reached by the steeper quartile of the slopes,
    reached: int  # by their median (if not after the event's time, it is reached already),
    latest: int | None  # and by the gentler quartile; None: never
    blocks: int  # how many of the 24 blocks the trend covers


class Event(NamedTuple):
    """An alert (raised, corrected, cleared, flapping, acknowledged) or a notice (stale, back; only sensor, kind and time are
    set)."""
    sensor: str
    number: int  # sensor and number identify the alert
    kind: str  # of EVENTS
    time: int  # ns: of the point; of a notice, of the sensor's last one
    start: int  # ns: of the interval that the alert was raised on
    instant: int  # ns: estimate of when the change took place
    score: float  # raised: the score; corrected, cleared: the highest since
    before: float  # level before the change
    after: float  # and after it
    position: int = 0  # in the daemon's event log; 0: in none, or not subscribed with `since`
    sequence: int = 0  # among the sensor's events; 0 likewise
    # What follows is 0, "" or None if subscribed without details.
    severity: float = 0  # 0..40: if nothing has changed, at most 2 x 10^-severity of the blocks of 40 points have an alert of this severity. 0: unknown. See level()
    margin: float = 0  # the statistic divided by its threshold
    channel: str = ""  # of CHANNELS: which question the alert answers
    spread_before: float = 0  # standard deviation about the levels
    spread_after: float = 0
    maintenance: bool = False  # it was raised in a maintenance window
    held: int = 0  # raised: alerts of the sensor held back since the last published one
    by: str = ""  # acknowledged: by whom
    likeness: float = 0  # channel change: how like an earlier segment the new one is, 0..1; 0: like none
    similar: int = 0  # number of the alert with which that segment began; 0: it is the first known one
    similar_from: int = 0  # ns: its beginning
    novelty: Novelty | None = None
    incident: int = 0  # the incident to which it belongs; 0: none, or not subscribed with incidents
    limit: Limit | None = None
    provisional: bool = False  # raised by a small window while the wanted one was not full: most such alerts are false
    travels: bool = False  # a change that travels along a line: `after` is where it began, `spread_after` its speed, `by` the nearest sensor


class Incident(NamedTuple):
    """A change of an incident, that is, of alerts of several sensors or algorithms that have one cause."""
    kind: str  # of INCIDENTS: told (it fits into the budget of messages), update (a reported one is now more severe), merged, closed, withheld (over, never reported), expected, false, undone (somebody said so of it)
    id: int
    into: int  # merged: the incident of which it is now part
    time: int  # ns, of the data: when this was decided
    since: int  # ns: its first event
    rank: float  # decides whether it is reported or withheld
    severity: float  # the greatest of its events
    count: int  # type: ignore[assignment] # sensors in it; a tuple has a method of this name
    told: bool  # it was reported at least once
    text: str  # the incident as a sentence
    about: dict[str, Any]  # its sensors, which was first, and so on: PROTOCOL.md, incidents
    position: int = 0  # as an event's


class Gap(NamedTuple):
    """How many results and events were left out, because this subscriber read too slowly, or the event log no longer has them. 2^63
    - 1 events or more: unknown, because `since` lies beyond the end of the log, which is a new one."""
    results: int
    events: int


Item = Union[Result, Scores, Event, Incident, Gap]

WARNING, SEVERE = 2.5, 3.5


def level(severity: float) -> str:
    """"notice", "warning" or "severe"; "unknown" for 0."""
    return "severe" if severity >= SEVERE else "warning" if severity >= WARNING else "notice" if severity > 0 else "unknown"
