"""Which moment of a schedule was missed last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kohort.apimachinery.cron import Schedule


@dataclass(frozen=True, slots=True)
class Missed:
    """The latest moment that is over; `many`: so many were missed that something must be wrong."""

    latest: datetime | None
    many: bool = False


def latest(schedule: Schedule, since: datetime, now: datetime) -> Missed:
    """The last due moment in (since, now]. Long gaps are jumped over: looked for ever further back from now."""
    first = schedule.next(since)
    if first is None or first > now:
        return Missed(None)
    second = schedule.next(first)
    if second is None or second > now:
        return Missed(first)
    period = second - first
    back, found = period, None
    while found is None:
        start = max(since, now - back)
        moment = schedule.next(start)
        while moment is not None and moment <= now:
            found, moment = moment, schedule.next(moment)
        back *= 2
    return Missed(found, many=(now - first) / period > 100)
