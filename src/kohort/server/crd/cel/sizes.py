"""Sizes and costs as numbers that end at the largest uint64, as upstream has them."""

from __future__ import annotations

from math import ceil
from typing import Final

ENDLESS: Final = (1 << 64) - 1
PER_CHARACTER: Final = 0.1
PER_PATTERN: Final = 0.25
Size = tuple[int, int]  # at least, at most
UNKNOWN: Final[Size] = (0, ENDLESS)


def capped(value: int) -> int:
    return min(value, ENDLESS)


def share(size: int, factor: float) -> int:
    return ENDLESS if size * factor >= ENDLESS else ceil(float(size) * factor)


def union(sizes: list[Size]) -> Size:
    if not sizes:
        return (0, 0)
    return min(one for one, _ in sizes), max(other for _, other in sizes)


def added(one: Size, other: Size) -> Size:
    return capped(one[0] + other[0]), capped(one[1] + other[1])
