"""Quantities as the whole numbers of the engine's columns."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kohort.apimachinery.quantity import MILLI, Written, parse

MOST: Final = 1 << 47  # amounts are cut off here, so that sums and scores over a cluster stay within 64 bits


@lru_cache(maxsize=4096)
def amount(resource: str, text: Written) -> int:
    """In the unit of the resource's column: thousandths for cpu, ones for all else; rounded up."""
    return max(-MOST, min(parse(text).ceil(MILLI if resource == "cpu" else 0), MOST))


_SHOWN: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def shown(resource: str, value: int) -> str:
    """An amount of a column, for people: 1500 of cpu is 1.5, bytes carry a unit."""
    if resource == "cpu":
        return f"{value // 1000}" if value % 1000 == 0 else f"{value / 1000:.3f}".rstrip("0")
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        for unit, size in _SHOWN:
            if value >= size:
                return f"{value // size}{unit}" if value % size == 0 else f"{value / size:.1f}{unit}"
    return str(value)
