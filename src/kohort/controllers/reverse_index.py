"""A reverse index: from what objects refer to, to their keys; kept in memory, filled by the watches themselves.

A watch is only told of the object that changed. A TrainJob names its runtime, a runtime does not name its TrainJobs;
so each controller remembers who named whom. Nothing in an object without an owner names those who might adopt it: the
selectors of all owners are kept at hand, and owners that are seen later look for such objects themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from kohort.api.kind import Object
from kohort.apimachinery.labels import matches
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


def _selector(obj: Object) -> Object | None:
    found: Object | None = (obj.get("spec") or {}).get("selector")
    return found


class Adopters:
    """Who might adopt an object: selectors by namespace and owner. `selector`: of an owner; None: it adopts nothing."""

    def __init__(self, selector: Callable[[Object], Object | None] = _selector) -> None:
        self._selector = selector
        self._known: dict[str, dict[Key, Object]] = {}

    def see(self, old: Object | None, new: Object | None) -> None:
        """A change of an owner."""
        owner = new or old
        if owner is None:
            return
        key = key_of(owner)
        selector = self._selector(new) if new is not None else None
        if selector is not None:
            self._known.setdefault(key.namespace, {})[key] = selector
        else:
            self._known.get(key.namespace, {}).pop(key, None)

    def of(self, obj: Object) -> Iterable[Key]:
        meta = obj["metadata"]
        for key, selector in self._known.get(str(meta.get("namespace") or ""), {}).items():
            if matches(selector, meta.get("labels")):
                yield key
