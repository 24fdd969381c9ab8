"""Durations and timestamps: what Go parses and prints, to the nanosecond."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final

from kohort.apimachinery.duration import DurationError, nanoseconds
from kohort.cel.values import SECOND, CelError, Duration, Timestamp

_STAMP: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_FIRST: Final = -62_135_596_800 * SECOND
_LAST: Final = 253_402_300_800 * SECOND
_ZONE: Final = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
UNITS: Final = {"getHours": 3600 * SECOND, "getMinutes": 60 * SECOND, "getSeconds": SECOND}


def duration(nanos: int) -> Duration:
    if not -(1 << 63) <= nanos < 1 << 63:
        raise CelError("integer overflow")
    return Duration(nanos)


def timestamp(nanos: int) -> Timestamp:
    if not _FIRST <= nanos < _LAST:
        raise CelError("timestamp overflow")
    return Timestamp(nanos)


def parse_duration(text: str) -> Duration:
    """Go's time.ParseDuration."""
    try:
        return Duration(nanoseconds(text))
    except DurationError as error:
        raise CelError(str(error)) from None


def parse_timestamp(text: str) -> Timestamp:
    found = _STAMP.fullmatch(text)
    if found is not None:
        try:
            zone = UTC if found[8] in "Zz" else _offset(found[8])
            year, month, day, hour, minute, second = (int(found[place]) for place in range(1, 7))
            moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        except (ValueError, OverflowError):
            pass
        else:
            return timestamp(_seconds(moment) * SECOND + int((found[7] or "0")[:9].ljust(9, "0")))
    raise CelError(f'parsing time "{text[:100]}" as "2006-01-02T15:04:05Z07:00": cannot parse it')


def parse_date(text: str) -> Timestamp:
    return parse_timestamp(f"{text}T00:00:00Z")


def _seconds(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1))


def printed(value: Timestamp | Duration) -> str:
    if isinstance(value, Duration):
        return f"{_fraction(value.nanos, SECOND)}s"
    moment = _moment(value, UTC)
    nanos = value.nanos % SECOND
    more = f".{nanos:09}".rstrip("0") if nanos else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f"{more}Z"


def _fraction(nanos: int, unit: int) -> str:
    sign, rest = ("-" if nanos < 0 else ""), abs(nanos)
    more = f".{rest % unit:09}".rstrip("0") if rest % unit else ""
    return f"{sign}{rest // unit}{more}"


def _offset(text: str) -> tzinfo:
    found = _ZONE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    minutes = int(found[2]) * 60 + int(found[3])
    return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))


def _moment(value: Timestamp, zone: tzinfo) -> datetime:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    return (start + timedelta(microseconds=value.nanos // 1000)).astimezone(zone)


def _zone(name: str) -> tzinfo:
    if name in {"UTC", ""}:
        return UTC
    try:
        if ":" in name:
            return _offset(name)
        from zoneinfo import ZoneInfo

        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise CelError(f"unknown time zone {name[:100]}") from None


def _get(read: Callable[[datetime], int]) -> Callable[..., int]:
    def getter(value: Timestamp, zone: str = "UTC") -> int:
        return read(_moment(value, _zone(zone)))

    return getter


def _milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return value.nanos % SECOND // 1_000_000


GETTERS: Final[dict[str, Any]] = {
    "getFullYear": _get(lambda at: at.year),
    "getMonth": _get(lambda at: at.month - 1),
    "getDayOfYear": _get(lambda at: at.timetuple().tm_yday - 1),
    "getDayOfMonth": _get(lambda at: at.day - 1),
    "getDate": _get(lambda at: at.day),
    "getDayOfWeek": _get(lambda at: at.isoweekday() % 7),
    "getHours": _get(lambda at: at.hour),
    "getMinutes": _get(lambda at: at.minute),
    "getSeconds": _get(lambda at: at.second),
    "getMilliseconds": _milliseconds,
}
