"""Moments as the API writes them: RFC 3339 in UTC, in seconds (metav1.Time) or microseconds (metav1.MicroTime)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import floor
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(moment: datetime) -> str:
    """metav1.Time"""
    return _written(floor(moment.timestamp()))


@lru_cache(maxsize=256)
def _written(stamp: int) -> str:
    """A burst of writes has one moment, and each of them writes it several times."""
    return (_EPOCH + timedelta(seconds=stamp)).isoformat(timespec="seconds")[:-6] + "Z"


def micros(moment: datetime) -> str:
    """metav1.MicroTime"""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def parse(text: str | None) -> datetime | None:
    """Either of them; None if it is neither."""
    try:
        return moment(text or "")
    except ValueError:
        return None


def moment(text: str) -> datetime:
    """Of a text that a server has stored; ValueError if it is none."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def whole(moment: datetime) -> datetime:
    """As it is after having been stored as a metav1.Time."""
    return moment.replace(microsecond=0)
