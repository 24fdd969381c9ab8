"""What changed between two objects, as three sets of fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kohort.api.apply import fields as sets
from kohort.api.apply.fields import Fields
from kohort.api.apply.structure import DEDUCED, ListOf, MapOf, Structure
from kohort.api.apply.values import elements, handled_as
from kohort.api.sameness import same


@dataclass(slots=True)
class Comparison:
    removed: Fields = field(default_factory=dict)
    modified: Fields = field(default_factory=dict)
    added: Fields = field(default_factory=dict)

    @property
    def written(self) -> Fields:
        return sets.union(self.modified, self.added)

    def without(self, ignored: Fields) -> Comparison:
        if not ignored:
            return self
        return Comparison(*(sets.without(one, ignored) for one in (self.removed, self.modified, self.added)))


# removed, modified, added below one field; None: nothing. ({} is a node too: the field itself.)
_Change = tuple[Fields | None, Fields | None, Fields | None]
_SAME: _Change = (None, None, None)
_OTHER: _Change = (None, {}, None)


def compare(old: Any, new: Any, structure: Structure) -> Comparison:
    removed, modified, added = _compare(old, new, structure)
    return Comparison(removed or {}, modified or {}, added or {})


def whole(value: Any, structure: Structure) -> Fields:
    """Everything that comes (or goes) with a value that was not there: also the maps and lists in it."""
    if isinstance(value, dict):
        sort = structure.map
        if sort is None or sort.atomic or not value:
            return {}
        of = sort.of
        children: Fields = {".": {}}
        for name, member in value.items():
            # Most members are scalars, and this runs for every object that is created.
            inner = isinstance(member, dict | list)
            children[f"f:{name}"] = whole(member, of(name) or DEDUCED) if inner else {}
        return children
    if isinstance(value, list):
        items = structure.list
        if items is None or items.atomic or not value:
            return {}
        found: Fields = {".": {}}
        for element, item in zip(elements(items, value), value, strict=True):
            found[element] = {} if element in found else whole(item, items.item)
        return found
    return {}


def _compare(old: Any, new: Any, structure: Structure) -> _Change:
    if same(old, new):  # most of an object does not change, and this is quick
        return _SAME
    before, after = structure.sort_of(old), structure.sort_of(new)
    change = _as(handled_as(structure, new), old, new, structure)
    if before != after:  # an untyped field changed its type: what it was goes, what it is comes
        change = _together(_as(handled_as(structure, old), old, new, structure), change)
    return change


def _as(sort: str, old: Any, new: Any, structure: Structure) -> _Change:
    if sort == "map" and structure.map is not None:
        before = old if isinstance(old, dict) else {}
        after = new if isinstance(new, dict) else {}
        if not structure.map.atomic and (before or after):
            return _maps(before, after, structure.map)
    elif sort == "list" and structure.list is not None:
        first = old if isinstance(old, list) else []
        second = new if isinstance(new, list) else []
        if not structure.list.atomic and (first or second):
            return _lists(first, second, structure.list)
    return _SAME if same(old, new) else _OTHER


def _maps(old: dict[str, Any], new: dict[str, Any], sort: MapOf) -> _Change:
    removed: Fields = {}
    modified: Fields = {}
    added: Fields = {}
    for name, before in old.items():
        element = sets.named(name)
        if name not in new:
            removed[element] = whole(before, sort.of(name) or DEDUCED)
        elif not same(before, new[name]):
            _put(element, _compare(before, new[name], sort.of(name) or DEDUCED), removed, modified, added)
    for name, after in new.items():
        if name not in old:
            added[sets.named(name)] = whole(after, sort.of(name) or DEDUCED)
    return removed or None, modified or None, added or None


def _lists(old: list[Any], new: list[Any], sort: ListOf) -> _Change:
    removed: Fields = {}
    modified: Fields = {}
    added: Fields = {}
    before, after = _grouped(old, sort), _grouped(new, sort)
    for element in {**before, **after}:
        left, right = before.get(element, []), after.get(element, [])
        if len(left) == 1 and len(right) == 1:
            _put(element, _compare(left[0], right[0], sort.item), removed, modified, added)
        elif len(left) > 1 and len(right) > 1:  # repeated keys are owned as one thing
            if not same(left, right):
                modified[element] = {}
        else:
            if left:
                removed[element] = {} if len(left) > 1 else whole(left[0], sort.item)
            if right:
                added[element] = {} if len(right) > 1 else whole(right[0], sort.item)
    return removed or None, modified or None, added or None


def _grouped(items: list[Any], sort: ListOf) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for element, item in zip(elements(sort, items), items, strict=True):
        found.setdefault(element, []).append(item)
    return found


def _put(element: str, change: _Change, removed: Fields, modified: Fields, added: Fields) -> None:
    for found, where in zip(change, (removed, modified, added), strict=True):
        if found is not None:
            where[element] = found


def _together(one: _Change, other: _Change) -> _Change:
    def both(mine: Fields | None, theirs: Fields | None) -> Fields | None:
        if mine is None or theirs is None:
            return theirs if mine is None else mine
        return sets.union({"f:": mine}, {"f:": theirs})["f:"]  # type: ignore[no-any-return]

    return both(one[0], other[0]), both(one[1], other[1]), both(one[2], other[2])
