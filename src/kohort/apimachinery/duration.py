"""Durations as Go reads and prints them (`90m` is `1h30m0s`), to the nanosecond, in 64 bits."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_LONGEST: Final = 1 << 63  # nanoseconds; one more than this can only be negative
_DIGITS: Final = 19
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}


class DurationError(ValueError):
    """The text is no duration, or one that 64 bits cannot hold."""


def nanoseconds(text: str) -> int:
    """time.ParseDuration: `4h`, `-1m30.5s`, `0`. The work is bounded by the length of the text."""
    sign, rest = (text[0], text[1:]) if text[:1] in {"-", "+"} else ("", text)
    total = 0 if rest == "0" else _sum(rest)
    if not rest or total > _LONGEST or (total == _LONGEST and sign != "-"):
        raise _invalid(text)
    return -total if sign == "-" else total


def _sum(text: str) -> int:
    total = at = 0
    while at < len(text):
        found = _PART.match(text, at)
        whole = found[1].lstrip("0") if found else ""
        if found is None or not (found[1] or found[2]) or len(whole) > _DIGITS:
            raise _invalid(text)
        unit = _UNITS[found[3]]
        total += int(whole or 0) * unit + _part_of(unit, found[2] or "")
        if total > _LONGEST:
            raise _invalid(text)
        at = found.end()
    return total


def _part_of(unit: int, digits: str) -> int:
    """In floating point, as Go does it: 0.3333333333333333333h are 20 minutes."""
    digits = digits[:_DIGITS]
    if int(digits or 0) > _LONGEST:
        digits = digits[:-1]
    return int(float(digits or 0) * (unit / 10.0 ** len(digits)))


def _invalid(text: str) -> DurationError:
    return DurationError(f'time: invalid duration "{text[:100]}"')


def canonical(text: str) -> str:
    """The same duration as Go prints it."""
    length = nanoseconds(text)
    sign, rest = ("-" if length < 0 else ""), abs(length)
    if rest == 0:
        return "0s"
    if rest < _UNITS["s"]:
        return sign + _below_a_second(rest)
    minutes, left = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    seconds = _decimal(left, _UNITS["s"]) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _below_a_second(length: int) -> str:
    for unit in ("ms", "µs"):
        if length >= _UNITS[unit]:
            return _decimal(length, _UNITS[unit]) + unit
    return f"{length}ns"


def _decimal(length: int, unit: int) -> str:
    whole, fraction = divmod(length, unit)
    digits = str(fraction).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}" if fraction else str(whole)
