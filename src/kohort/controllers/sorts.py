"""Sorts of objects, by who controls them and what watches ask for: who need not hear of an object.

A pod of a Job is nothing to the controllers of ReplicaSets, StatefulSets, PodCliques: with twenty controllers in one
process, to ask all of them about each change of each pod took a tenth of the processor time of a busy cluster.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from kohort.api.kind import Object
from kohort.api.objects import controller_of, meta_of
from kohort.controllers.controller import Watch

_OTHER: Final = "*"  # no kind has that name
_UNKNOWN: Final = None


def predicate(watch: Watch) -> str:
    """Equal for watches that want the same objects; empty: all of them."""
    return " or ".join(sorted(_marks(watch)))


def _marks(watch: Watch) -> frozenset[str]:
    """Objects that the watch wants have one of these."""
    kinds = {f"controller {one}" for one in watch.controllers}
    named = (("label", watch.label), ("annotation", watch.annotation))
    return frozenset({*kinds, *(f"{what} {name}" for what, name in named if name)})


class WatchedSorts:
    """Of one kind, for all watches of it."""

    def __init__(self) -> None:
        self._wanted: dict[str, frozenset[str]] = {}  # indexes and predicates -> marks
        self._kinds: dict[str, str] = {}  # -> mark, as the two below
        self._labels: dict[str, str] = {}
        self._annotations: dict[str, str] = {}

    def want(self, watch: Watch, indexes: Iterable[str]) -> None:
        """Before the first object is sorted."""
        marks = _marks(watch)
        if not marks:
            return
        self._kinds |= {one: f"controller {one}" for one in watch.controllers}
        if watch.label:
            self._labels[watch.label] = f"label {watch.label}"
        if watch.annotation:
            self._annotations[watch.annotation] = f"annotation {watch.annotation}"
        self._wanted |= dict.fromkeys((predicate(watch), *indexes), marks)

    def unless_all_alike(self) -> WatchedSorts | None:
        return self if self._wanted else None

    def of(self, obj: Object) -> Hashable:
        """The marks that it has, as far as somebody wants them."""
        try:
            owner, meta = controller_of(obj), meta_of(obj)
            kind = str(owner.get("kind") or _OTHER) if owner is not None else ""
            labels, notes = meta.get("labels") or (), meta.get("annotations") or ()
            found = [mark for name, mark in self._labels.items() if name in labels]
            found += [mark for name, mark in self._annotations.items() if name in notes]
        except (AttributeError, TypeError):  # whoever is asked about it will say so
            return _UNKNOWN
        return (self._kinds.get(kind, _OTHER), *found)

    def concerns(self, name: str, sort: Hashable) -> bool:
        wanted = self._wanted.get(name)
        return wanted is None or not isinstance(sort, tuple) or not wanted.isdisjoint(sort)
