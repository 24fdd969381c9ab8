"""Timestamps as the API writes them, and ages as people read them in a table: 45s, 3m12s, 5h, 12d."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

from kohort.apimachinery.times import micros, parse, seconds

# What the server takes for the present. A simulation sets it for the tasks that it starts; nobody else does.
NOW: Final[ContextVar[Callable[[], datetime] | None]] = ContextVar("now", default=None)


def now() -> datetime:
    read = NOW.get()
    return datetime.now(UTC) if read is None else read()


def stamp(moment: datetime | None = None) -> str:
    return seconds(moment or now())


def micro(moment: datetime | None = None) -> str:
    return micros(moment or now())


def age(text: str | None, moment: datetime | None = None) -> str:
    then = parse(text)
    if then is None:
        return "<unknown>"
    return human_duration(((moment or now()) - then).total_seconds())


def human_duration(elapsed: float) -> str:  # noqa: PLR0911 - a table of limits
    """The words of kubectl: two units while they are small, one when they are large."""
    seconds = int(elapsed)
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = seconds // 3600
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, one: str, small: int, other: str) -> str:
    return f"{large}{one}{small}{other}" if small else f"{large}{one}"
