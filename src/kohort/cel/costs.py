"""What calls cost at run time, by the size of their values, and the numbers of an estimate. They are upstream's."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Final

from kohort.cel.values import size

LIST: Final = 10
MAP: Final = 30
STRUCT: Final = 40
AUTHORIZATION_CHECK: Final = 350_000  # an expression may ask twice
ADD: Final = 11  # an item at the end of a list
# Of a loop: its condition and the value that it carries along, at each step and when it is left.
ALL: Final = 3
EXISTS: Final = 4
LEAVE: Final = 3
PER_CHARACTER: Final = 0.1
PER_PATTERN: Final = 0.25
_FORMAT_PATTERN: Final = 128

Cost = Callable[[list[Any]], int]


def _read(place: int, times: float = 1) -> Cost:
    return lambda values: ceil(size(values[place]) * PER_CHARACTER * times) if len(values) > place else 1


def traversal(value: Any) -> int:
    if isinstance(value, str | bytes):
        return int(len(value) * PER_CHARACTER)
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(name) + traversal(member) for name, member in value.items())
    return 1


def _compared(values: list[Any]) -> int:
    if type(values[0]) is int or type(values[1]) is int:
        return 1
    return ceil(min(size(values[0]), size(values[1])) * PER_CHARACTER)


def _added(values: list[Any]) -> int:
    if type(values[0]) is int:
        return 1
    if isinstance(values[0], str | bytes) and isinstance(values[1], str | bytes):
        return ceil((len(values[0]) + len(values[1])) * PER_CHARACTER)
    return 1


def _searched(values: list[Any]) -> int:
    return ceil((1 + size(values[0])) * PER_CHARACTER) * ceil(size(values[1]) * PER_PATTERN)


def _contains(values: list[Any]) -> int:
    return ceil(size(values[0]) * PER_CHARACTER) * ceil(size(values[1]) * PER_CHARACTER)


def _ordered(values: list[Any]) -> int:
    return _compared(values) if isinstance(values[0], str | bytes) else 1


def _within(values: list[Any]) -> int:
    return size(values[1]) if isinstance(values[1], list) else 1


def _validated(values: list[Any]) -> int:
    return ceil((1 + size(values[1])) * PER_CHARACTER) * ceil(_FORMAT_PATTERN * PER_PATTERN)


def _pairs(values: list[Any]) -> int:
    return 1 + size(values[0]) * size(values[1])


def _squared(values: list[Any]) -> int:
    """Upstream compares each item with each other."""
    return LIST + 1 + 2 * size(values[0]) ** 2


_COSTS: Final[dict[str, Cost]] = {
    **dict.fromkeys(("_==_", "_!=_"), _compared),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), lambda values: traversal(values[0])),
    **dict.fromkeys(
        ("url", "isURL", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip"), _read(0)
    ),
    **dict.fromkeys(
        ("quantity", "isQuantity", "semver", "isSemver", "format", "strings.quote", "bytes", "string"), _read(0)
    ),
    **dict.fromkeys(("replace", "split", "join", "ip.isCanonical", "containsIP", "containsCIDR"), _read(0, 2)),
    **dict.fromkeys(("startsWith", "endsWith"), _read(1)),
    **dict.fromkeys(("matches", "find", "findAll"), _searched),
    **dict.fromkeys(("sets.contains", "sets.intersects"), _pairs),
    **dict.fromkeys(("distinct", "sort"), _squared),
    **dict.fromkeys(("flatten", "reverse", "slice"), lambda values: LIST + 1 + size(values[0])),
    "sets.equivalent": lambda values: 1 + 2 * size(values[0]) * size(values[1]),
    "lists.range": lambda values: LIST + 1 + max(0, int(values[0])),
    "_+_": _added,
    "@in": _within,
    "contains": _contains,
    "validate": _validated,
    "check": lambda _: AUTHORIZATION_CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _read(1)),
}


def of(name: str) -> Cost:
    return _COSTS.get(name, lambda _: 1)


# ---- estimates: sizes and costs end at the largest uint64, as upstream has them

ENDLESS: Final = (1 << 64) - 1
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
