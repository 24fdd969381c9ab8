"""Numbers that may be written as a share of a whole: maxUnavailable: 2, or 25%."""

from __future__ import annotations

import re
from typing import Final

PERCENT: Final = re.compile(r"[0-9]+%")
_DIGITS, _MOST = 19, (1 << 63) - 1


def percent(text: str) -> int:
    """The number of what PERCENT matches; of one that 64 bits cannot hold, the largest they can, as in Go."""
    digits = text[:-1].lstrip("0")
    return min(int(digits or 0), _MOST) if len(digits) <= _DIGITS else _MOST


def scaled(value: int | str | None, total: int, *, up: bool = False) -> int:
    """A number, or a percentage of `total`, as a number; what is neither counts as 0."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not PERCENT.fullmatch(value):
        return 0
    hundredths = percent(value) * total
    return -(-hundredths // 100) if up else hundredths // 100
