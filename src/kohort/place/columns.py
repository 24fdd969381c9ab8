"""Columns of the cluster: resources by number, labels by code; and which rows changed since a cache last looked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from kohort.apimachinery.quantity import MILLI, Written, parse

Codes = npt.NDArray[np.int32]
Amounts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]  # a set of nodes: their rows, ascending
FIRST_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage", "pods")
ABSENT: Final = 0  # code of a label that a node does not have
_KEEP: Final = 4096  # at least so many entries before old ones are forgotten


class NameIndex:
    """Numbers for names, in the order they came."""

    __slots__ = ("_index", "names")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}
        for name in names:
            self.number(name)

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """The number of a name, a new one if it was not seen before."""
        found = self._index.get(name)
        if found is None:
            found = self._index[name] = len(self.names)
            self.names.append(name)
        return found

    def find(self, name: str) -> int | None:
        return self._index.get(name)


class LabelColumn:
    """The values of one label key over all nodes. Code 0 means absent; other codes are domains."""

    __slots__ = ("codes", "values")

    def __init__(self, rows: int) -> None:
        self.codes: Codes = np.zeros(rows, np.int32)
        self.values = NameIndex([""])  # takes code 0, so that an absent label has no value

    def set(self, row: int, value: str | None) -> None:
        self.codes[row] = ABSENT if value is None else self._code(value)

    def _code(self, value: str) -> int:
        # An empty value is a value: it must not fall on the code of "absent".
        return self.values.number(value or "\0empty")

    def find(self, value: str) -> int | None:
        return self.values.find(value or "\0empty")

    def value(self, code: int) -> str:
        text = self.values.names[code]
        return "" if text == "\0empty" else text

    def texts(self) -> Iterator[str | None]:
        """Values by code; None for the absent one."""
        yield None
        yield from (self.value(code) for code in range(1, self.size))

    def grow(self, rows: int) -> None:
        self.codes = np.concatenate([self.codes, np.zeros(rows - len(self.codes), np.int32)])

    @property
    def size(self) -> int:
        """Number of codes, the absent one included."""
        return len(self.values)


def label_value(labels: Mapping[str, str], key: str) -> str | None:
    """Of several keys with commas between them (neither keys nor values have any): all of them, or nothing."""
    value = labels.get(key)
    if value is not None or "," not in key:
        return value
    values = [labels.get(one) for one in key.split(",")]
    return None if None in values else ",".join(map(str, values))


class ChangeLog:
    """Rows in the order they changed. A reader keeps a cursor; one that fell too far behind starts afresh."""

    __slots__ = ("_base", "_rows", "end")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._base = 0
        self.end = 0

    def add(self, row: int) -> None:
        self._rows.append(row)
        self.end += 1

    def add_many(self, rows: list[int]) -> None:
        self._rows += rows
        self.end += len(rows)

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
        if len(self._rows) > _KEEP and len(self._rows) > 4 * rows:
            self._base = self.end
            self._rows.clear()


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
