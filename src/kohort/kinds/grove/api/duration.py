"""Go durations: Grove reads `90m` and stores `1h30m0s`."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
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


def nanoseconds(text: str) -> int:
    """The length of a duration that decoded (`4h`, `-1m`, `0`)."""
    total = sum(_scaled(number, _UNITS[unit]) for number, unit in _PART.findall(text))
    return -total if text.startswith("-") else total


def _scaled(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


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
