"""A reverse index: from what objects refer to, to their keys; kept in memory, filled by the watches themselves.

A watch is only told of the object that changed. A TrainJob names its runtime, a runtime does not name its TrainJobs;
so each controller remembers who named whom.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from kohort.api.kind import Object
from kohort.controllers.controller import Enqueue, Key, key_of

Namer = Callable[[Object], Iterable[Hashable]]


class ReverseIndex:
    """Keys by what their objects refer to. `names`: the references of an object."""

    def __init__(self, names: Namer) -> None:
        self._names = names
        self._keys: dict[Hashable, set[Key]] = {}

    def update(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            for name in self._names(old):
                self._keys.get(name, set()).discard(key_of(old))
        if new is not None:
            for name in self._names(new):
                self._keys.setdefault(name, set()).add(key_of(new))

    def enqueue(self, name: Hashable, after: float = 0.0) -> list[Enqueue]:
        return [Enqueue(key, after) for key in sorted(self._keys.get(name, ()))]
