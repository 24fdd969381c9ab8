"""Defragmentation that is switched on: which domains are kept free, how often somebody looks, and how much is moved.

Without these settings nothing is ever moved on its own. `read_defragmentation` tells all mistakes at once, by field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kohort.apimachinery.duration import DurationError, nanoseconds

MOST_MOVES: Final = 4
_LEAST_EVERY: Final = 10.0  # seconds
_MOST_FREE: Final = 8  # levels that are looked after
_EXAMPLE: Final = "a level or label, and how many nodes of one domain, such as rack or rack=4"
Wrong = Callable[[str, object, str], None]
Free = tuple[str, int | None]  # level or label key, nodes of one domain (None: all of them)


@dataclass(frozen=True, slots=True)
class Defragmenting:
    """Durations are seconds. `moves`: gangs that one plan may move; `rest`: so long a gang that was moved is left
    alone, and so long nothing is moved after a move that went wrong; `timeout`: until a moved gang must run again."""

    free: tuple[Free, ...]
    every: float = 600.0
    moves: int = 1
    rest: float = 3600.0
    timeout: float = 300.0


def read_free(text: str) -> Free | None:
    """`rack`, or `rack=4`; None: it is neither."""
    level, equals, size = text.partition("=")
    if not level or (equals and not (size.isascii() and size.isdecimal() and 0 < len(size) < 7 and int(size))):
        return None
    return level, int(size) if equals else None


def read_defragmentation(value: object, wrong: Wrong) -> Defragmenting | None:
    """From what a file holds; `wrong` is told of each mistake: the field, what was found, what is wanted."""
    if not isinstance(value, Mapping):
        wrong("", value, f"a mapping with {', '.join(_READERS)} is wanted")
        return None
    fields: dict[str, Any] = {}
    for name, one in value.items():
        if name not in _READERS:
            wrong(f".{name}", one, f"no such field; fields are {', '.join(_READERS)}")
        else:
            fields[str(name)] = _READERS[name](f".{name}", one, wrong)
    if "free" not in fields:
        wrong(".free", None, f"{_EXAMPLE}, is wanted")
        return None
    return Defragmenting(**fields)


def _free(field: str, value: object, wrong: Wrong) -> tuple[Free, ...]:
    given = value if isinstance(value, list | tuple) else [value]
    found = [read_free(one) if isinstance(one, str) else None for one in given]
    if not found or None in found or len(found) > _MOST_FREE:
        wrong(field, value, f"{_EXAMPLE}, is wanted, or a list of up to {_MOST_FREE} of these")
    return tuple(one for one in found if one is not None)


def _seconds(least: float) -> Callable[[str, object, Wrong], float]:
    def read(field: str, value: object, wrong: Wrong) -> float:
        try:
            length = nanoseconds(str(value)) / 1e9
        except DurationError:
            length = -1.0
        if length < least:
            wrong(field, value, f"a duration of at least {least:g}s is wanted, such as 90s or 10m")
        return length

    return read


def _moves(field: str, value: object, wrong: Wrong) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_MOVES:
        wrong(field, value, f"a whole number from 1 to {MOST_MOVES} is wanted")
        return 1
    return value


_READERS: Final[dict[str, Callable[[str, object, Wrong], Any]]] = {
    "free": _free,
    "every": _seconds(_LEAST_EVERY),
    "moves": _moves,
    "rest": _seconds(0.0),
    "timeout": _seconds(1.0),
}
