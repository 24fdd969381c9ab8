"""The three patches that change a given object: JSON merge patch, JSON patch, and Kubernetes' strategic merge patch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kohort.api import definitions
from kohort.api.copying import copied
from kohort.api.sameness import same, whole

MERGE: Final = "application/merge-patch+json"  # RFC 7396
JSON: Final = "application/json-patch+json"  # RFC 6902
STRATEGIC: Final = "application/strategic-merge-patch+json"

Json = Any


class PatchError(ValueError):
    """The patch is not one (400), or does not apply to this object (422)."""

    def __init__(self, text: str, *, malformed: bool = False) -> None:
        super().__init__(text)
        self.malformed = malformed


# ---- JSON merge patch


def merge(target: Json, patch: Json) -> Json:
    """RFC 7396: objects are merged, null removes, everything else replaces. What stays the same is the same object."""
    if not isinstance(patch, dict):
        return target if same(target, patch) else copied(patch)
    before = target if isinstance(target, dict) else {}
    merged = dict(before)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(before.get(name), value)
    kept = len(merged) == len(before) and all(merged[name] is before.get(name) for name in patch if name in merged)
    return target if kept and before is target else merged


# ---- JSON patch


def json_patch(target: Json, operations: Json) -> Json:
    """RFC 6902. The target is not changed."""
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise PatchError("a JSON patch is a list of operations", malformed=True)
    document = copied(target)
    for operation in operations:
        document = _operate(document, operation)
    return document


def _operate(document: Json, operation: dict[str, Any]) -> Json:
    verb = operation.get("op")
    if verb not in _VERBS:
        raise PatchError(f"operation {verb!r}: accepted are {', '.join(_VERBS)}")
    return _VERBS[verb](document, _pointer(operation.get("path")), operation)


def _op_add(document: Json, path: list[str], operation: dict[str, Any]) -> Json:
    return _add(document, path, copied(operation.get("value")))


def _op_remove(document: Json, path: list[str], _operation: dict[str, Any]) -> Json:
    return _remove(document, path)


def _op_replace(document: Json, path: list[str], operation: dict[str, Any]) -> Json:
    # Unlike the RFC, real servers also replace a member that an object does not have.
    if not path or not isinstance(_look_up(document, path[:-1]), dict):
        _look_up(document, path)
    value = copied(operation.get("value"))
    return _set(document, path, value) if path else value


def _op_move(document: Json, path: list[str], operation: dict[str, Any]) -> Json:
    source = _pointer(operation.get("from"))
    value = _look_up(document, source)
    return _add(_remove(document, source), path, value)


def _op_copy(document: Json, path: list[str], operation: dict[str, Any]) -> Json:
    return _add(document, path, copied(_look_up(document, _pointer(operation.get("from")))))


def _op_test(document: Json, path: list[str], operation: dict[str, Any]) -> Json:
    found = _look_up(document, path)
    if not same(found, operation.get("value")):
        raise PatchError(f"test of {operation.get('path')} failed: found {found!r}")
    return document


_VERBS: Final[dict[str, Callable[[Json, list[str], dict[str, Any]], Json]]] = {
    "add": _op_add,
    "remove": _op_remove,
    "replace": _op_replace,
    "move": _op_move,
    "copy": _op_copy,
    "test": _op_test,
}


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{text!r} is not a JSON pointer: it starts with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(items: list[Any], part: str, *, end: int) -> int:
    if not part.isdecimal() or int(part) >= end:
        raise PatchError(f"index {part}: the list has {len(items)} items")
    return int(part)


def _look_up(document: Json, path: list[str]) -> Json:
    for part in path:
        if isinstance(document, list):
            document = document[_index(document, part, end=len(document))]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            raise PatchError(f"nothing at {part!r}")
    return document


def _add(document: Json, path: list[str], value: Json) -> Json:
    if not path:
        return value
    parent = _look_up(document, path[:-1])
    if isinstance(parent, list):
        last = len(parent) if path[-1] == "-" else _index(parent, path[-1], end=len(parent) + 1)
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
        raise PatchError(f"nothing can be put at {path[-1]!r}")
    return document


def _remove(document: Json, path: list[str]) -> Json:
    if not path:
        raise PatchError("the whole document cannot be removed")
    _look_up(document, path)
    parent = _look_up(document, path[:-1])
    if isinstance(parent, list):
        del parent[_index(parent, path[-1], end=len(parent))]
    else:
        del parent[path[-1]]
    return document


# ---- strategic merge patch


def strategic(target: Json, patch: Json, definition: str, minor: str) -> Json:
    """Merge by the patch strategies that the OpenAPI document of a minor gives for a definition."""
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch is an object", malformed=True)
    return _merge_map(target or {}, whole(patch), definitions.definition(minor, definition), minor)


def _resolved(schema: dict[str, Any], minor: str) -> dict[str, Any]:
    name = definitions.target(schema)
    return {**definitions.definition(minor, name), **schema} if name is not None else schema


def _member(schema: dict[str, Any], name: str, minor: str) -> dict[str, Any]:
    inner = (schema.get("properties") or {}).get(name, schema.get("additionalProperties") or {})
    return _resolved(inner, minor)


def _merge_map(target: dict[str, Any], patch: dict[str, Any], schema: dict[str, Any], minor: str) -> Json:
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return {name: copied(value) for name, value in patch.items() if name != "$patch"}
    merged = dict(target)  # members that the patch leaves alone are the target's own
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_member(merged, name, value, patch, _member(schema, name, minor), minor)
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            merged[field] = [item for item in merged.get(field) or [] if item not in value]
    if "$retainKeys" in patch:
        merged = {name: value for name, value in merged.items() if name in patch["$retainKeys"]}
    return merged


def _merge_member(
    merged: dict[str, Any], name: str, value: Json, patch: dict[str, Any], schema: dict[str, Any], minor: str
) -> None:
    before = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, dict) and before is None and value.get("$patch") in ("delete", "replace"):
        merged.pop(name, None)  # there is nothing to replace, so nothing is put there
    elif isinstance(value, dict) and (isinstance(before, dict) or "$patch" in value or before is None):
        merged[name] = _merge_map(before or {}, value, schema, minor)
    elif isinstance(value, list) and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
        if before is None and not any(isinstance(item, dict) and "$patch" in item for item in value):
            merged[name] = copied(value)  # there is nothing to merge with, not even its own items
            return
        order = patch.get(f"$setElementOrder/{name}")
        merged[name] = _merge_list(before or [], value, order, schema, minor)
    else:
        merged[name] = copied(value)


def _merge_list(
    before: list[Any], patch: list[Any], order: list[Any] | None, schema: dict[str, Any], minor: str
) -> Json:
    key = schema.get("x-kubernetes-patch-merge-key")
    if key is None or not all(isinstance(item, dict) for item in patch):
        return _in_order(before, [*before, *(item for item in patch if item not in before)], order or patch, None)
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in copied(patch) if "$patch" not in item]
    gone = [item.get(key) for item in patch if item.get("$patch") == "delete"]
    merged = [copied(item) for item in before if item.get(key) not in gone]
    changes = [item for item in patch if item.get("$patch") != "delete"]
    inner = _resolved(schema["items"], minor)
    for item in changes:
        if item.get(key) is None:
            raise PatchError(f"an item of the list has no {key}, by which items are told apart")
        place = next((index for index, one in enumerate(merged) if one.get(key) == item[key]), None)
        if place is None:
            merged.append(_merge_map({}, item, inner, minor))
        else:
            merged[place] = _merge_map(merged[place], item, inner, minor)
    return _in_order(before, merged, order or changes, key)


def _in_order(before: list[Any], merged: list[Any], wanted: list[Any], key: str | None) -> list[Any]:
    """Items of the patch in its order; a stored one stands before one of them only if it stood there before."""

    def name(item: Any) -> Any:
        return item.get(key) if key is not None and isinstance(item, dict) else item

    places, named = [name(item) for item in before], [name(item) for item in wanted]
    ours = sorted((item for item in merged if name(item) in named), key=lambda item: named.index(name(item)))
    theirs = [item for item in merged if name(item) not in named]
    result: list[Any] = []
    while ours and theirs:
        first, second = name(theirs[0]), name(ours[0])
        stored_first = second in places and places.index(first) < places.index(second)
        result.append((theirs if stored_first else ours).pop(0))
    return [*result, *theirs, *ours]
