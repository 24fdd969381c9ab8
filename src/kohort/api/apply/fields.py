"""Sets of fields, in the very form in which managedFields writes them, so that reading and writing cost nothing.

A set is a tree of dictionaries: {"f:spec": {"f:replicas": {}, "f:ports": {".": {}, 'k:{"port":80}': {".": {}}}}}.
A node without children is a member of the set; one with children is a member if it has ".". Sets are never changed
in place: every function returns a new one and may share parts with what it was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kohort.api.apply.structure import Structure

Fields = dict[str, Any]
Path = tuple[str, ...]

_SELF: Final = "."
_RANKS: Final = {"f:": 0, "k:": 1, "v:": 2, "i:": 3}
_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


# ---- elements of a path


def named(name: str) -> str:
    """A member of an object."""
    return f"f:{name}"


def keyed(keys: dict[str, Any]) -> str:
    """An item of a list by key."""
    return "k:{" + ",".join(f"{_json(name)}:{_json(keys[name])}" for name in sorted(keys)) + "}"


def valued(value: Any) -> str:
    """An item of a set."""
    return "v:" + _json(value)


def _json(value: Any) -> str:
    if isinstance(value, str) and value.isascii() and value.isprintable() and not set('"\\<>&').intersection(value):
        return f'"{value}"'
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False).translate(_HTML)


def _plain(value: Any) -> Any:
    """4.0 and 4 are the same key."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def shown(path: Path) -> str:
    """A path for people: .spec.containers[name="a"].image"""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    sort, rest = element[:2], element[2:]
    if sort == "f:":
        return f".{rest}"
    if sort == "k:":
        return "[" + ",".join(f"{name}={_json(value)}" for name, value in json.loads(rest).items()) + "]"
    return f"[={rest}]" if sort == "v:" else f"[{rest}]"


def in_order(element: str) -> tuple[int, Any]:
    """Sorts elements as upstream does: names, then keys, then values, then places."""
    sort, rest = element[:2], element[2:]
    if sort == "k:":
        return _RANKS[sort], [(name, *_ranked(value)) for name, value in json.loads(rest).items()]
    return _RANKS.get(sort, 9), _ranked(json.loads(rest)) if sort == "v:" else rest


def _ranked(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    return (0, value) if isinstance(value, int | float) else (1, str(value))


# ---- asking


def is_member(node: Fields) -> bool:
    return not node or _SELF in node


def has(fields: Fields, path: Path) -> bool:
    node: Fields | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return node is not None and bool(path) and is_member(node)


def paths(fields: Fields, above: Path = ()) -> Iterator[Path]:
    """Every member: first those of one level, then what is inside them."""
    elements = sorted((element for element in fields if element != _SELF), key=in_order)
    yield from ((*above, element) for element in elements if is_member(fields[element]))
    for element in elements:
        yield from paths(fields[element], (*above, element))


# ---- making


def of(*members: Path) -> Fields:
    return union_of(map(_chain, members))


def _chain(path: Path) -> Fields:
    node: Fields = {}
    for element in reversed(path):
        node = {element: node}
    return node


def node(children: Fields, *, member: bool) -> Fields | None:
    """The node with these children, or None if there is nothing in it."""
    if children:
        return {_SELF: {}, **children} if member else children
    return {} if member else None


def _children(one: Fields) -> Fields:
    return {element: child for element, child in one.items() if element != _SELF}


def union(one: Fields, other: Fields) -> Fields:
    if not one or not other:
        return one or other
    merged = dict(one)
    for element, theirs in other.items():
        if element == _SELF:
            merged[_SELF] = {}
        elif element in merged:
            merged[element] = _both(merged[element], theirs)
        else:
            merged[element] = theirs
    return merged


def union_of(many: Iterable[Fields]) -> Fields:
    """Of all of them, two by two: what was put together is not copied for each one that follows."""
    left = list(many)
    while len(left) > 1:
        left = [reduce(union, left[at : at + 2]) for at in range(0, len(left), 2)]
    return left[0] if left else {}


def _both(one: Fields, other: Fields) -> Fields:
    """The union of two nodes: what is a member in one of them is a member."""
    whole = node(_children(union(one, other)), member=is_member(one) or is_member(other))
    return whole or {}


def intersection(one: Fields, other: Fields) -> Fields:
    shared: Fields = {}
    for element, mine in one.items():
        if element == _SELF or element not in other:
            continue
        theirs = other[element]
        both = node(intersection(mine, theirs), member=is_member(mine) and is_member(theirs))
        if both is not None:
            shared[element] = both
    return shared


def difference(one: Fields, other: Fields) -> Fields:
    """Members of the first that are not members of the second; what is inside a member stays."""
    if not other:
        return one
    left: Fields = {}
    for element, mine in one.items():
        if element == _SELF:
            continue
        theirs = other.get(element)
        kept = mine
        if theirs is not None:
            rest = node(_children(difference(mine, theirs)), member=is_member(mine) and not is_member(theirs))
            if rest is None:
                continue
            kept = rest
        left[element] = kept
    return left


def without(one: Fields, other: Fields) -> Fields:
    """The first without members of the second and without everything inside them."""
    left: Fields = {}
    for element, mine in one.items():
        if element == _SELF:
            continue
        theirs = other.get(element)
        if theirs is None:
            left[element] = mine
        elif not is_member(theirs):
            rest = node(without(mine, theirs), member=is_member(mine))
            if rest is not None:
                left[element] = rest
    return left


def with_parents(fields: Fields, structure: Structure | None) -> Fields:
    """Members that a schema names are members too when something inside them is; keys of maps are not."""
    members = structure.map if structure is not None else None
    made: Fields = {}
    for element, child in fields.items():
        if element == _SELF:
            continue
        inner: Structure | None = None
        declared = False
        if element.startswith("f:") and members is not None:
            inner, declared = members.of(element[2:]), members.declares(element[2:])
        elif element.startswith("k:") and structure is not None and structure.list is not None:
            inner = structure.list.item
        whole = node(with_parents(child, inner), member=is_member(child) or declared)
        made[element] = whole or {}
    return made


# ---- reading what a client wrote


def read(raw: Any) -> Fields:
    """A set as a client sent it, its keys written as ours are. Raises ValueError if it is none."""
    if not isinstance(raw, dict):
        raise ValueError("fieldsV1 is not an object")
    return {_element(str(element)): read(child) for element, child in raw.items()}


def _element(element: str) -> str:
    sort, rest = element[:2], element[2:]
    if element == _SELF or sort == "f:":
        return element
    if sort == "k:":
        keys = json.loads(rest)
        if isinstance(keys, dict):
            return keyed(keys)
    elif sort == "v:":
        return valued(json.loads(rest))
    elif sort == "i:" and rest.isdecimal():
        return element
    raise ValueError(f"{element!r} is not the name of a field: f:name, k:{{keys}}, v:value or i:place")
