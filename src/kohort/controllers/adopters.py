"""Who might adopt an object that belongs to nobody: the selectors of all owners of a kind.

Nothing in such an object names an owner, so the selectors of all owners are kept at hand. Owners that are seen later
than the object look for such objects themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kohort.api.kind import Object
from kohort.apimachinery.labels import matches
from kohort.controllers.controller import Key, key_of


def _selector(obj: Object) -> Object | None:
    found: Object | None = (obj.get("spec") or {}).get("selector")
    return found


class Adopters:
    """Selectors by namespace and owner. `selector`: of an owner; None: it adopts nothing."""

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
