"""JSON patch (RFC 6902), with the limits of a real server: a small patch may not make a large object.

A copy of a tree into itself doubles it, so that 26 operations of 50 bytes would make gigabytes. What is copied is
counted in bytes of JSON, as upstream counts it, and refused before it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kohort.api.copying import copied
from kohort.api.sameness import same

MAX_OPERATIONS: Final = 10_000  # as kube-apiserver
MAX_COPIED: Final = 3 << 20  # bytes of JSON that all copies of a patch may add, as kube-apiserver
MAX_SHIFTED: Final = 50_000_000  # list items that insertions and removals may move by one place
MAX_DEPTH: Final = 200
_SHOWN: Final = 200  # letters of what was found, in a message
_DIGITS: Final = 10  # of the index of a list
_TOO_DEEP: Final = f"the result is nested deeper than {MAX_DEPTH} levels"
_encode = msgspec.json.Encoder().encode

Json = Any


class PatchError(ValueError):
    """The patch is not one (400), is too large (413), or does not apply to this object (422)."""

    def __init__(self, text: str, *, malformed: bool = False, too_large: bool = False) -> None:
        super().__init__(text)
        self.malformed = malformed
        self.too_large = too_large


class TestFailedError(PatchError):
    """A test of the patch does not hold for this object."""

    __test__ = False


@dataclass(slots=True)
class _Spent:
    """What the operations of one patch have cost so far."""

    copied: int = 0
    shifted: int = 0
    deeper: bool = False  # something with an inside was put somewhere

    def copy(self, value: Json) -> Json:
        self.deeper = True
        self.copied += len(_encode(value))
        if self.copied > MAX_COPIED:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self.copied}, "
                f"exceeding the limit {MAX_COPIED}"
            )
        return copied(value)

    def shift(self, items: int) -> None:
        self.shifted += items
        if self.shifted > MAX_SHIFTED:
            text = f"The operations of the JSON patch move more than {MAX_SHIFTED} items of lists"
            raise PatchError(text, too_large=True)


def json_patch(target: Json, operations: Json) -> Json:
    """RFC 6902. The target is not changed; PatchError also for a patch whose work has no end in sight."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise PatchError("a JSON patch is a list of operations", malformed=True)
    if len(operations) > MAX_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise PatchError(text, too_large=True)
    document = copied(target)
    spent = _Spent()
    try:
        for operation in operations:
            document = _operate(document, operation, spent)
    except RecursionError:
        raise PatchError(_TOO_DEEP) from None
    if spent.deeper and _deeper_than(document, MAX_DEPTH):
        raise PatchError(_TOO_DEEP)
    return document


def _deeper_than(document: Json, most: int) -> bool:
    """Level by level: moves can nest an object deeper than a recursion can follow."""
    level = [document]
    for _ in range(most + 1):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def _operate(document: Json, operation: dict[str, Any], spent: _Spent) -> Json:
    verb = operation.get("op")
    if not isinstance(verb, str) or verb not in _VERBS:
        raise PatchError(f"operation {str(verb)[:50]!r}: accepted are {', '.join(_VERBS)}")
    return _VERBS[verb](document, _pointer(operation.get("path")), operation, spent)


def _op_add(document: Json, path: list[str], operation: dict[str, Any], spent: _Spent) -> Json:
    value = operation.get("value")
    spent.deeper = spent.deeper or isinstance(value, (dict, list))
    return _add(document, path, copied(value), spent)


def _op_remove(document: Json, path: list[str], _operation: dict[str, Any], spent: _Spent) -> Json:
    return _remove(document, path, spent)


def _op_replace(document: Json, path: list[str], operation: dict[str, Any], spent: _Spent) -> Json:
    # Unlike the RFC, real servers also replace a member that an object does not have.
    if not path or not isinstance(_look_up(document, path[:-1]), dict):
        _look_up(document, path)
    value = copied(operation.get("value"))
    spent.deeper = spent.deeper or isinstance(value, (dict, list))
    return _set(document, path, value) if path else value


def _op_move(document: Json, path: list[str], operation: dict[str, Any], spent: _Spent) -> Json:
    source = _pointer(operation.get("from"))
    value = _look_up(document, source)
    spent.deeper = True
    return _add(_remove(document, source, spent), path, value, spent)


def _op_copy(document: Json, path: list[str], operation: dict[str, Any], spent: _Spent) -> Json:
    return _add(document, path, spent.copy(_look_up(document, _pointer(operation.get("from")))), spent)


def _op_test(document: Json, path: list[str], operation: dict[str, Any], _spent: _Spent) -> Json:
    found = _look_up(document, path)
    if not same(found, operation.get("value")):
        raise TestFailedError(f"test of {operation.get('path')} failed: found {repr(found)[:_SHOWN]}")
    return document


_VERBS: Final[dict[str, Callable[[Json, list[str], dict[str, Any], _Spent], Json]]] = {
    "add": _op_add,
    "remove": _op_remove,
    "replace": _op_replace,
    "move": _op_move,
    "copy": _op_copy,
    "test": _op_test,
}


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{repr(text)[:_SHOWN]} is not a JSON pointer: it starts with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(items: list[Any], part: str, *, end: int) -> int:
    if not part.isdecimal() or len(part) > _DIGITS or int(part) >= end:
        raise PatchError(f"index {part[:_SHOWN]}: the list has {len(items)} items")
    return int(part)


def _look_up(document: Json, path: list[str]) -> Json:
    for part in path:
        if isinstance(document, list):
            document = document[_index(document, part, end=len(document))]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            raise PatchError(f"nothing at {part[:_SHOWN]!r}")
    return document


def _add(document: Json, path: list[str], value: Json, spent: _Spent) -> Json:
    if not path:
        return value
    parent = _look_up(document, path[:-1])
    if isinstance(parent, list):
        last = len(parent) if path[-1] == "-" else _index(parent, path[-1], end=len(parent) + 1)
        spent.shift(len(parent) - last)
        parent.insert(last, value)
        return document
    return _set(document, path, value)


def _set(document: Json, path: list[str], value: Json) -> Json:
    parent = _look_up(document, path[:-1])
    if isinstance(parent, list):
        parent[_index(parent, path[-1], end=len(parent))] = value
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise PatchError(f"nothing can be put at {path[-1][:_SHOWN]!r}")
    return document


def _remove(document: Json, path: list[str], spent: _Spent) -> Json:
    if not path:
        raise PatchError("the whole document cannot be removed")
    _look_up(document, path)
    parent = _look_up(document, path[:-1])
    if isinstance(parent, list):
        place = _index(parent, path[-1], end=len(parent))
        spent.shift(len(parent) - place)
        del parent[place]
    else:
        del parent[path[-1]]
    return document
