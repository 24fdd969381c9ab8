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
        self._named: dict[Key, tuple[Hashable, ...]] = {}

    def update(self, old: Object | None, new: Object | None) -> None:
        """An object whose references cannot be read raises, and refers to nothing until it changes."""
        obj = new or old
        if obj is None:
            return
        key = key_of(obj)
        for name in self._named.pop(key, ()):
            known = self._keys[name]
            known.discard(key)
            if not known:
                del self._keys[name]
        if new is not None:
            names = self._named[key] = tuple(dict.fromkeys(self._names(new)))
            for name in names:
                self._keys.setdefault(name, set()).add(key)

    def enqueue(self, name: Hashable, after: float = 0.0) -> list[Enqueue]:
        return [Enqueue(key, after) for key in sorted(self._keys.get(name, ()))]
