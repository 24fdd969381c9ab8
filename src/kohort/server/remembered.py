"""What a long way has found out, by what it depends on: so much of it, and the oldest goes first.

Keys and values come from what tenants send. So it is bounded in bytes as well as in number, and whoever sends many
different ones drives out one of the others for each, not all of them at once. In calm moments all of it goes: then the
long way is short enough, and what came while many others came and went lies between what they have left free.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from kohort import tuning

V = TypeVar("V")
Key = tuple[Any, ...]
MOST: Final = 1024
MOST_BYTES: Final = 8 << 20
LARGEST: Final = MOST_BYTES >> 6  # of one: it would drive out too many others


class Remembered(dict[Key, V]):
    """Read as any dictionary; `keep` adds."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0
        tuning.when_calm(self.clear)

    def keep(self, key: Key, value: V) -> None:
        size = _size(key) + _size(value)
        if size > LARGEST:
            return
        if key in self:
            self._bytes -= _size(key) + _size(self.pop(key))
        self[key] = value
        self._bytes += size
        while len(self) > MOST or self._bytes > MOST_BYTES:
            oldest = next(iter(self))
            self._bytes -= _size(oldest) + _size(self.pop(oldest))

    def clear(self) -> None:
        super().clear()
        self._bytes = 0


def _size(value: object) -> int:
    """Of the texts in it: the rest is small."""
    if isinstance(value, (bytes, str)):
        return len(value)
    if isinstance(value, dict):
        return sum(_size(key) + _size(one) for key, one in value.items())
    return sum(map(_size, value)) if isinstance(value, (tuple, list)) else 0
