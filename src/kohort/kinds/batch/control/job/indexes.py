"""Which indexes of an Indexed Job are done, failed and running, as its status and its pods tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kohort.api.kind import Object
from kohort.api.objects import number
from kohort.kinds.batch.api.indexes import IndexSet
from kohort.kinds.batch.control.job import pod as pods_


def read(text: str | None, completions: int) -> IndexSet:
    """Of a list in the status. Indexes beyond `completions`, which may have been lowered since, are forgotten."""
    return IndexSet(_intervals(text or "", completions))


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        ends = [number(first), number(last or first)]
        if min(ends) >= 0:
            yield ends[0], min(ends[1], completions - 1)


def of(pods: Iterable[Object], completions: int) -> IndexSet:
    """The valid indexes of pods."""
    found = (pods_.index(pod) for pod in pods)
    return IndexSet.of(index for index in found if index is not None and index < completions)
