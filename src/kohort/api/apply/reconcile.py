"""Owners of a custom resource whose schema changed: a list or map that is atomic now is owned as a whole."""

from __future__ import annotations

from kohort.api.apply import fields as sets
from kohort.api.apply.fields import Fields
from kohort.api.apply.structure import Structure


def reconciled(fields: Fields, structure: Structure) -> Fields:
    made: Fields = {}
    for element, child in fields.items():
        if element != ".":
            made[element] = _node(child, _inner(element, structure))
    return made


def _node(node: Fields, structure: Structure | None) -> Fields:
    children = {element: child for element, child in node.items() if element != "."}
    if structure is None or not children:
        return node
    if structure.map is not None:
        if structure.map.deduced:
            return node
        if structure.map.atomic:
            return {}
    elif structure.list is not None and structure.list.atomic:
        return {}
    return sets.node(reconciled(children, structure), member=sets.is_member(node)) or {}


def _inner(element: str, structure: Structure) -> Structure | None:
    if structure.map is not None:
        return structure.map.of(element[2:]) if element.startswith("f:") else None
    return structure.list.item if structure.list is not None else None
