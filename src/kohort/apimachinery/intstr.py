"""Numbers that may be written as a share of a whole: maxUnavailable: 2, or 25%."""

from __future__ import annotations

import re
from typing import Final

PERCENT: Final = re.compile(r"[0-9]+%")


def scaled(value: int | str | None, total: int, *, up: bool = False) -> int:
    """A number, or a percentage of `total`, as a number; what is neither counts as 0."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not PERCENT.fullmatch(value):
        return 0
    hundredths = int(value[:-1]) * total
    return -(-hundredths // 100) if up else hundredths // 100
