"""Which indexes of an Indexed Job are done, failed, running and still to be started."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from kohort.api.kind import Object
from kohort.kinds.batch.api import indexes as lists
from kohort.kinds.batch.control.job import pod as pods_


def read(text: str | None, completions: int) -> frozenset[int]:
    """Of a list in the status. Indexes beyond `completions`, which may have been lowered since, are forgotten."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(found)


def written(indexes: Iterable[int]) -> str:
    return lists.written(indexes)


def of(pods: Iterable[Object], completions: int) -> frozenset[int]:
    """The valid indexes of pods."""
    found = (pods_.index(pod) for pod in pods)
    return frozenset(index for index in found if index is not None and index < completions)


def first_pending(count: int, completions: int, taken: Collection[int]) -> list[int]:
    """The lowest indexes that nobody has, at most `count`."""
    return list(islice((index for index in range(completions) if index not in taken), count))
