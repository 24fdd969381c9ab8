"""Lists of completion indexes as Jobs write them: "0,2-4,7"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


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
    if int(text) >= completions:
        raise BadIndexesError(f'too large index: "{text}"')
    return int(text)


def written(indexes: Iterable[int]) -> str:
    """The shortest list: runs of three and more as first-last, two neighbours with a comma."""
    return ",".join(_runs(sorted(set(indexes))))


def _runs(indexes: list[int]) -> Iterator[str]:
    start = 0
    for place in range(1, len(indexes) + 1):
        if place < len(indexes) and indexes[place] == indexes[place - 1] + 1:
            continue
        first, last = indexes[start], indexes[place - 1]
        if last - first >= 2:
            yield f"{first}-{last}"
        else:
            yield from (str(index) for index in indexes[start:place])
        start = place
