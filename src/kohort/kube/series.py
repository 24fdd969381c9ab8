"""Which events are the same one again, and how many are too many. Pure: told of each event, says what to write."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.kube.limits import Bucket

if TYPE_CHECKING:
    from datetime import datetime

WINDOW: Final = 600.0  # seconds without a repetition that end a series
INTERVAL: Final = 10.0  # seconds between two writes of one series
BURST: Final = 25  # new events about one object at once
RATE: Final = 1 / 300  # and then per second
# Series and objects that are remembered. What goes well is hardly ever said twice about one object, so few of those are
# enough; and they are many: each pod that comes and goes brings some.
NORMAL: Final = 512
WARNINGS: Final = 2048
OBJECTS: Final = 1024


class Reference(NamedTuple):
    """An object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


class EventKey(NamedTuple):
    """What happened; two equal ones are one event with a count."""

    regarding: Reference
    type: str
    reason: str
    action: str
    note: str
    related: Reference | None = None


@dataclass(slots=True, eq=False)
class Series:
    """One event object on the server, written or to be written."""

    what: EventKey
    name: str
    first: datetime
    last: datetime
    heard: float
    count: int = 1
    created: bool = False
    told: int = 0
    written: float = float("-inf")


@dataclass
class Correlator:
    """Remembers a bounded number of series and of objects that were spoken about, and those only while it matters: a
    process that runs for months is as large after its first minutes as it will ever be.
    """

    normal: OrderedDict[EventKey, Series] = field(default_factory=OrderedDict)
    warnings: OrderedDict[EventKey, Series] = field(default_factory=OrderedDict)
    buckets: OrderedDict[Reference, Bucket] = field(default_factory=OrderedDict)
    made: int = 0

    def hear(self, what: EventKey, moment: datetime, now: float) -> Series | None:
        """The series it belongs to, one with count 1 if it is new; None if there was too much about that object."""
        series, most = (self.normal, NORMAL) if what.type == "Normal" else (self.warnings, WARNINGS)
        known = series.get(what)
        if known is not None and now - known.heard < WINDOW:
            known.count += 1
            known.last, known.heard = moment, now
            series.move_to_end(what)
            return known
        self._tidy(series, now)
        if not self._bucket(what.regarding).take(now):
            return None
        self.made += 1
        name = f"{what.regarding.name[:220]}.{int(moment.timestamp() * 1e6):x}{self.made & 0xFFFF:04x}"
        series[what] = new = Series(what, name, moment, moment, now)
        series.move_to_end(what)
        if len(series) > most:
            series.popitem(last=False)
        return new

    def forget(self, what: EventKey) -> None:
        """It was not written: the next one is the first."""
        self.normal.pop(what, None)
        self.warnings.pop(what, None)

    def _tidy(self, series: OrderedDict[EventKey, Series], now: float) -> None:
        """Two of each at a time, the oldest first, so that more go than come: a series that has ended, a bucket that
        has filled up again, which is like a new one.
        """
        for _ in range(2):
            if series and now - next(iter(series.values())).heard >= WINDOW:
                series.popitem(last=False)
            if self.buckets and next(iter(self.buckets.values())).is_full(now):
                self.buckets.popitem(last=False)

    def _bucket(self, regarding: Reference) -> Bucket:
        bucket = self.buckets.get(regarding)
        if bucket is None:
            self.buckets[regarding] = bucket = Bucket(RATE, BURST)
            if len(self.buckets) > OBJECTS:
                self.buckets.popitem(last=False)
        else:
            self.buckets.move_to_end(regarding)
        return bucket
