"""Laying an applied object over the stored one, and taking fields out of an object."""

from __future__ import annotations

from typing import Any

from kohort.api.apply import fields as sets
from kohort.api.apply.fields import Fields
from kohort.api.apply.structure import DEDUCED, ListOf, MapOf, Structure
from kohort.api.apply.values import ABSENT, elements, handled_as


def merge(live: Any, applied: Any, structure: Structure) -> Any:
    """Nothing is removed; where both have a leaf, the applied one counts. Items that both have stand as applied."""
    if applied is ABSENT:
        return live
    sort = handled_as(structure, live if applied is None and live is not ABSENT else applied)
    if sort == "map" and structure.map is not None and not structure.map.atomic:
        before = live if isinstance(live, dict) else {}
        after = applied if isinstance(applied, dict) else {}
        if before or after:
            return _maps(before, after, structure.map)
    elif sort == "list" and structure.list is not None and not structure.list.atomic:
        first = live if isinstance(live, list) else []
        second = applied if isinstance(applied, list) else []
        if first or second:
            return _lists(first, second, structure.list)
    return applied


def _maps(live: dict[str, Any], applied: dict[str, Any], sort: MapOf) -> dict[str, Any]:
    merged = dict(live)
    for name, value in applied.items():
        merged[name] = merge(live.get(name, ABSENT), value, sort.of(name) or DEDUCED)
    return merged


def _lists(live: list[Any], applied: list[Any], sort: ListOf) -> list[Any]:
    """Items of both in the applied order; a live one keeps its place among those that are live only."""
    mine, theirs = elements(sort, live), elements(sort, applied)
    ours = dict(zip(theirs, applied, strict=True))
    stored: dict[str, Any] = {}
    for element, item in zip(mine, live, strict=True):
        stored[element] = None if element in stored else item  # a repeated one gives nothing to merge with
    awaited = [element for element in theirs if element in stored]  # shared items, in the order in which they come
    merged: list[Any] = []
    taken: set[str] = set()
    left = right = 0

    def take(element: str) -> None:
        taken.add(element)
        merged.append(merge(stored.get(element, ABSENT), ours[element], sort.item))
        if awaited and awaited[0] == element:
            awaited.pop(0)

    while left < len(mine) or right < len(theirs):
        both = left < len(mine) and right < len(theirs)
        if both and mine[left] == theirs[right]:
            take(mine[left])
            left, right = left + 1, right + 1
        elif both and mine[left] in ours and awaited and awaited[0] != mine[left]:
            left += 1  # shared, but its turn has not come: it is taken with the applied ones
        elif left < len(mine) and mine[left] not in ours:
            merged.append(live[left])
            left += 1
        else:
            if left < len(mine) and mine[left] in taken:
                left += 1
            if right < len(theirs):
                take(theirs[right])
                right += 1
    return merged


# ---- taking out


def remove(value: Any, gone: Fields, structure: Structure) -> Any:
    """The value without the fields of a set. What becomes empty is null."""
    sort = handled_as(structure, value)
    if sort == "scalar":
        return value
    if sort == "map" and structure.map is not None and isinstance(value, dict):
        return None if structure.map.atomic else _from_map(value, gone, structure.map)
    if sort == "list" and structure.list is not None and isinstance(value, list):
        return None if structure.list.atomic else _from_list(value, gone, structure.list)
    return None


def _from_map(value: dict[str, Any], gone: Fields, sort: MapOf) -> dict[str, Any] | None:
    left: dict[str, Any] = {}
    for name, member in value.items():
        inner = gone.get(sets.named(name))
        if inner is None:
            left[name] = member
        elif not sets.is_member(inner):
            left[name] = remove(member, inner, sort.of(name) or DEDUCED)
    return left or None


def _from_list(value: list[Any], gone: Fields, sort: ListOf) -> list[Any] | None:
    left: list[Any] = []
    for element, item in zip(elements(sort, value), value, strict=True):
        inner = gone.get(element)
        if inner is None:
            left.append(item)
        elif not sets.is_member(inner):
            left.append(remove(item, inner, sort.item))
    return left or None
