"""Who changed since I last looked? A log of rows that many caches read, each at its own pace."""

from __future__ import annotations

from typing import Final

_KEEP: Final = 4096  # at least so many entries before old ones are forgotten


class ChangeLog:
    """Rows in the order they changed. A reader keeps a cursor; one that fell too far behind starts afresh."""

    __slots__ = ("_base", "_rows")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._base = 0

    @property
    def end(self) -> int:
        return self._base + len(self._rows)

    def add(self, row: int) -> None:
        self._rows.append(row)

    def add_many(self, rows: list[int]) -> None:
        self._rows += rows

    def since(self, cursor: int) -> list[int] | None:
        """Rows changed since the cursor, each once; None: too long ago, take everything as changed."""
        if cursor < self._base:
            return None
        if cursor == self.end:
            return []
        recent = self._rows[cursor - self._base :]
        return recent if len(recent) == 1 else list(dict.fromkeys(recent))

    def trim(self, rows: int) -> None:
        """Forget what costs more to follow than to recompute."""
        if len(self._rows) > max(_KEEP, 4 * rows):
            self._base = self.end
            self._rows.clear()
