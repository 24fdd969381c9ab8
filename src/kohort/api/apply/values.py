"""Typed values: which fields a value has, and whether it fits its structure."""

from __future__ import annotations

from typing import Any, Final

from kohort.api.apply import fields as sets
from kohort.api.apply.fields import Fields
from kohort.api.apply.structure import DEDUCED, ListOf, MapOf, Structure


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()  # no value at all, which is not the same as null

_EXPECTED: Final = {
    "numeric": "numeric (int or float)",
    "string": "string",
    "boolean": "boolean",
    "untyped": "any scalar",
}


def handled_as(structure: Structure, value: Any) -> str:
    """map, scalar or list: what a value is handled as, also where it does not say."""
    return structure.only or structure.sort_of(value) or structure.first


def element_of(sort: ListOf, item: Any) -> str:
    """How an item of a list by key, or of a set, is called. Raises ValueError where it cannot be told apart."""
    if not sort.keys:
        if isinstance(item, dict | list) or item is None:
            found = "null" if item is None else "a map" if isinstance(item, dict) else "a list"
            raise ValueError(f"items of a set are scalars, found {found}")
        return sets.valued(item)
    if not isinstance(item, dict):
        found = "a null" if item is None else "a non-map"
        raise ValueError(f"associative list with keys may not have {found} element")
    keys = {key: item.get(key, sort.defaults.get(key)) for key in sort.keys if key in item or key in sort.defaults}
    if not keys:
        names = " ".join(f'"{key}"' for key in sort.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return sets.keyed(keys)


def elements(sort: ListOf, items: list[Any]) -> list[str]:
    """Items of a stored list; those that cannot be told apart are told apart by nothing and count as equal."""
    made: list[str] = []
    for item in items:
        try:
            made.append(element_of(sort, item))
        except ValueError:
            made.append("k:{}")
    return made


# ---- the fields of a value


def field_set(value: Any, structure: Structure) -> Fields:
    """Every leaf, every item, every key of a map: what whoever applies this value owns."""
    return _inside(value, structure)[0]


def _inside(value: Any, structure: Structure) -> tuple[Fields, bool]:
    """The fields inside a value, and whether the value itself is one field."""
    sort = handled_as(structure, value)
    if sort == "map" and structure.map is not None and not structure.map.atomic:
        return (_in_map(value, structure.map) if isinstance(value, dict) else {}), False
    if sort == "list" and structure.list is not None and not structure.list.atomic:
        return (_in_list(value, structure.list) if isinstance(value, list) else {}), False
    return {}, True


def _in_map(value: dict[str, Any], sort: MapOf) -> Fields:
    made: Fields = {}
    for name, member in value.items():
        children, leaf = _inside(member, sort.of(name) or DEDUCED)
        owned = leaf or member is None or member == {} or not sort.declares(name)
        whole = sets.node(children, member=owned)
        if whole is not None:
            made[sets.named(name)] = whole
    return made


def _in_list(value: list[Any], sort: ListOf) -> Fields:
    made: Fields = {}
    for element, item in zip(elements(sort, value), value, strict=True):
        if element in made:  # told twice: owned as one thing
            made[element] = {}
        else:
            children, _ = _inside(item, sort.item)
            made[element] = sets.node(children, member=True) or {}
    return made


# ---- whether it fits


def problems(value: Any, structure: Structure, path: str = "") -> list[str]:
    """What an applied object has that its structure does not allow; list keys may not repeat."""
    sort = handled_as(structure, value)
    if value is None:
        return []
    if sort == "map" and structure.map is not None:
        return _map_problems(value, structure.map, path)
    if sort == "list" and structure.list is not None:
        return _list_problems(value, structure.list, path)
    return _scalar_problems(value, structure.scalar or "untyped", path)


def _map_problems(value: Any, sort: MapOf, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [_at(path, f"expected map, got {_go(value)}")]
    found: list[str] = []
    for name, member in value.items():
        inner = sort.of(name)
        if inner is None:
            found.append(_at(f"{path}.{name}", "field not declared in schema"))
        else:
            found += problems(member, inner, f"{path}.{name}")
    return found


def _list_problems(value: Any, sort: ListOf, path: str) -> list[str]:
    if not isinstance(value, list):
        return [_at(path, f"expected list, got {_go(value)}")]
    found: list[str] = []
    seen: set[str] = set()
    for place, item in enumerate(value):
        inner = f"{path}[{place}]"
        if not sort.atomic:
            try:
                element = element_of(sort, item)
            except ValueError as error:
                return [*found, _at(path, f"element {place}: {error}")]
            if element in seen:
                found.append(_at(path, f"duplicate entries for key {sets.shown((element,))}"))
            seen.add(element)
            inner = path + sets.shown((element,))
        found += problems(item, sort.item, inner)
    return found


def _scalar_problems(value: Any, sort: str, path: str) -> list[str]:
    fits = {
        "numeric": isinstance(value, int | float) and not isinstance(value, bool),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "untyped": not isinstance(value, dict | list),
    }[sort]
    got = _type(value) if sort == "numeric" else _go(value)
    return [] if fits else [_at(path, f"expected {_EXPECTED[sort]}, got {got}")]


def _at(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _type(value: Any) -> str:
    """The name of a value's type as upstream says it."""
    names = {bool: "bool", str: "string", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), type(value).__name__)


def _go(value: Any) -> str:
    return sets.valued(value)[2:] if not isinstance(value, dict | list) else _type(value)
