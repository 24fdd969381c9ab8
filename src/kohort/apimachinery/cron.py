"""Cron schedules: five fields, or a word such as @daily or @every 90m; what is wrong with one, and when it is due.

Wall-clock fields are those of the time zone. An hour that a change of clocks leaves out is left out here, too; one that
comes twice is due twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kohort.apimachinery.duration import DurationError, nanoseconds

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[tuple[tuple[str, int, int, tuple[str, ...]], ...]] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_DIGITS: Final = 9  # of a number in a field, zeros in front aside
_YEARS: Final = 5  # a schedule that is not due in so many years never is (30 February)


class BadScheduleError(ValueError):
    """The message says what is wrong with a schedule or time zone."""


class UnknownTimeZoneError(BadScheduleError):
    """The schedule is good, its time zone is not."""


class Schedule(Protocol):
    def next(self, after: datetime) -> datetime | None:
        """The first moment after `after`; None: never again."""


@dataclass(frozen=True, slots=True)
class Every:
    """@every 90m"""

    seconds: float

    def next(self, after: datetime) -> datetime | None:
        return after.replace(microsecond=0) + timedelta(seconds=max(1.0, float(int(self.seconds))))


@dataclass(frozen=True, slots=True)
class Fields:
    """Five fields in a time zone."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool  # days of the month were left open
    any_weekday: bool
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        moment = (after + timedelta(minutes=1)).astimezone(UTC).replace(second=0, microsecond=0)
        limit = after + timedelta(days=366 * _YEARS)
        while moment <= limit:
            local = moment.astimezone(self.zone)
            if local.month not in self.months or not self._on(local):
                moment = self._next_day(local)
            elif local.hour not in self.hours:
                moment += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                moment += timedelta(minutes=1)
            else:
                return moment
        return None

    def _on(self, local: datetime) -> bool:
        """Both kinds of day given: one of them is enough."""
        day, weekday = local.day in self.days, (local.weekday() + 1) % 7 in self.weekdays
        return day and weekday if self.any_day or self.any_weekday else day or weekday

    def _next_day(self, local: datetime) -> datetime:
        midnight = (local + timedelta(days=1)).replace(hour=0, minute=0, fold=0)
        found = midnight.astimezone(UTC)
        # Where clocks change at midnight, it may not exist: then the day begins later.
        return found if found > local.astimezone(UTC) else found + timedelta(hours=1)


def parse(text: str, zone: str | None = None) -> Schedule:
    wrong = problem(text)
    if wrong:
        raise BadScheduleError(f"{text!r}: {wrong}")
    if text.startswith(_EVERY):
        return Every(nanoseconds(text.removeprefix(_EVERY)) / 1e9)
    given = _WORDS.get(text, text).split()
    sets = [_field(field, least, most, words) for field, (_, least, most, words) in zip(given, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = sets
    return Fields(
        minutes, hours, days, months, weekdays, _is_open(given[2]), _is_open(given[4]), _zone(zone) if zone else UTC
    )


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UnknownTimeZoneError(f"unknown time zone {name}") from error


def _is_open(field: str) -> bool:
    return any(part.partition("/")[0] in {"*", "?"} for part in field.split(","))


def _field(text: str, least: int, most: int, words: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        if span in {"*", "?"}:
            first, last = least, most
        else:
            ends = [_number(end, least, words) for end in span.split("-")]
            # "5/15" means from 5 on
            first, last = ends[0], most if slash and len(ends) == 1 else ends[-1]
        found.update(range(first, last + 1, int(step.lstrip("0")) if slash else 1))
    return frozenset(found)


def _number(text: str, least: int, words: tuple[str, ...]) -> int:
    found = _read(text, least, words)
    if found is None:
        raise BadScheduleError(f"{text!r} is not a number")
    return found


# ---- what is wrong with a schedule


def problem(schedule: str) -> str | None:
    """What is wrong with a schedule, or None."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        return "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
    if schedule.startswith("@"):
        return _word(schedule)
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly 5 fields (minute, hour, day of month, month, day of week), found {len(fields)}"
    for text, (name, least, most, words) in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            wrong = _part(part, least, most, words)
            if wrong:
                return f"{name}: {wrong}"
    return None


def _word(schedule: str) -> str | None:
    if schedule.startswith(_EVERY):
        try:
            nanoseconds(schedule.removeprefix(_EVERY))
        except DurationError:
            return "@every needs a duration such as 90m"
        return None
    return (
        None if schedule in _WORDS else f"unknown word; accepted are {', '.join(sorted(_WORDS))} and @every <duration>"
    )


def _part(part: str, least: int, most: int, words: tuple[str, ...]) -> str | None:
    span, slash, step = part.partition("/")
    if slash and not (_is_number(step) and step.strip("0")):
        return f'step "{step}" must be a positive number'
    if span in {"*", "?"}:
        return None
    ends = [_read(end, least, words) for end in span.split("-")]
    if len(ends) > 2 or None in ends:
        return f'"{span}" is neither a number, nor a range, nor *'
    numbers = [end for end in ends if end is not None]
    if any(not least <= number <= most for number in numbers):
        return f'"{span}" is outside {least} to {most}'
    if numbers[0] > numbers[-1]:
        return f'"{span}" begins after its end'
    return None


def _read(text: str, least: int, words: tuple[str, ...]) -> int | None:
    if text.lower() in words:
        return words.index(text.lower()) + least
    return int(text.lstrip("0") or 0) if _is_number(text) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text.lstrip("0")) <= _DIGITS
