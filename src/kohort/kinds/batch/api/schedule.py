"""Cron schedules: five fields, or a word such as @daily or @every 90m."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
_DURATION: Final = re.compile(r"((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)


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
    if schedule.startswith("@every "):
        wrong = not _DURATION.fullmatch(schedule.removeprefix("@every "))
        return "@every needs a duration such as 90m" if wrong else None
    return (
        None if schedule in _WORDS else f"unknown word; accepted are {', '.join(sorted(_WORDS))} and @every <duration>"
    )


def _part(part: str, least: int, most: int, words: tuple[str, ...]) -> str | None:
    span, slash, step = part.partition("/")
    if slash and (not step.isdigit() or int(step) == 0):
        return f'step "{step}" must be a positive number'
    if span in {"*", "?"}:
        return None
    ends = [_number(end, least, words) for end in span.split("-")]
    if len(ends) > 2 or None in ends:
        return f'"{span}" is neither a number, nor a range, nor *'
    numbers = [end for end in ends if end is not None]
    if any(not least <= number <= most for number in numbers):
        return f'"{span}" is outside {least} to {most}'
    if numbers[0] > numbers[-1]:
        return f'"{span}" begins after its end'
    return None


def _number(text: str, least: int, words: tuple[str, ...]) -> int | None:
    if text.lower() in words:
        return words.index(text.lower()) + least
    return int(text) if text.isascii() and text.isdigit() else None
