"""Lists of completion indexes as Jobs write them: "0,2-4,7"."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

_DIGITS: Final = 10  # of the greatest int32; longer numbers are not even read


class BadIndexesError(ValueError):
    """A text that is no list of indexes; the message says where it stops being one."""


def parse(text: str, completions: int) -> list[tuple[int, int]]:
    """The intervals of a list, first and last index each, ascending and all below `completions`."""
    found: list[tuple[int, int]] = []
    last: int | None = None
    for part in text.split(",") if text else []:
        first, end = _interval(part, completions)
        if last is not None and first <= last:
            raise BadIndexesError(f"non-increasing order, previous: {last}, current: {first}")
        if end < first or (end == first and "-" in part):
            raise BadIndexesError(f"non-increasing order, previous: {first}, current: {end}")
        found.append((first, end))
        last = end
    return found


def count(intervals: Iterable[tuple[int, int]]) -> int:
    return sum(last - first + 1 for first, last in intervals)


def _interval(part: str, completions: int) -> tuple[int, int]:
    ends = part.split("-")
    if len(ends) > 2:
        raise BadIndexesError(
            f'the fragment "{part}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    numbers = [_index(end, completions) for end in ends]
    return numbers[0], numbers[-1]


def _index(text: str, completions: int) -> int:
    if not text.isascii() or not text.isdigit():
        raise BadIndexesError(f'cannot convert string to integer for index: "{text}"')
    digits = text.lstrip("0") or "0"
    if len(digits) > _DIGITS or int(digits) >= completions:
        raise BadIndexesError(f'too large index: "{text}"')
    return int(digits)


class IndexSet:
    """Indexes as intervals: the cost grows with the gaps, not with the two thousand million that a Job may have."""

    __slots__ = ("_firsts", "_intervals", "_size")

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        """Of any intervals, first and last index each; they may overlap."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(intervals):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            elif first <= last:
                merged.append((first, last))
        self._intervals = merged
        self._firsts = [first for first, _ in merged]
        self._size = count(merged)

    @classmethod
    def of(cls, indexes: Iterable[int]) -> IndexSet:
        return cls((index, index) for index in indexes)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, index: int) -> bool:
        place = bisect_right(self._firsts, index) - 1
        return place >= 0 and index <= self._intervals[place][1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexSet) and self._intervals == other._intervals

    def __hash__(self) -> int:
        return hash(tuple(self._intervals))

    def __repr__(self) -> str:
        return f"IndexSet({self})"

    def __or__(self, other: IndexSet) -> IndexSet:
        return IndexSet([*self._intervals, *other._intervals])

    def __sub__(self, other: IndexSet) -> IndexSet:
        last = self._intervals[-1][1] if self._intervals else -1
        return self & IndexSet(other._gaps(last))

    def __and__(self, other: IndexSet) -> IndexSet:
        found, left, right = [], 0, 0
        while left < len(self._intervals) and right < len(other._intervals):
            (first, last), (other_first, other_last) = self._intervals[left], other._intervals[right]
            if max(first, other_first) <= min(last, other_last):
                found.append((max(first, other_first), min(last, other_last)))
            if last <= other_last:
                left += 1
            else:
                right += 1
        return IndexSet(found)

    def _gaps(self, last: int) -> Iterator[tuple[int, int]]:
        """From 0 to `last`, what is not in the set."""
        free = 0
        for first, end in self._intervals:
            if first > last:
                break
            if first > free:
                yield free, first - 1
            free = end + 1
        if free <= last:
            yield free, last

    def first(self) -> int | None:
        return self._firsts[0] if self._firsts else None

    def absent(self, completions: int, most: int) -> list[int]:
        """The lowest indexes below `completions` that are not in the set, at most so many."""
        return list(islice((one for first, end in self._gaps(completions - 1) for one in range(first, end + 1)), most))

    def __str__(self) -> str:
        """The shortest list: runs of three and more as first-last, two neighbours with a comma."""
        return ",".join(map(_written, self._intervals))


def _written(interval: tuple[int, int]) -> str:
    first, last = interval
    if last - first >= 2:
        return f"{first}-{last}"
    return str(first) if first == last else f"{first},{last}"
