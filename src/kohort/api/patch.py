"""The patches that change a given object: JSON merge patch, Kubernetes' strategic merge patch, and JSON patch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kohort.api import definitions
from kohort.api.copying import copied
from kohort.api.json_patch import PatchError, json_patch
from kohort.api.sameness import identity, same, whole

MERGE: Final = "application/merge-patch+json"  # RFC 7396
JSON: Final = "application/json-patch+json"  # RFC 6902
STRATEGIC: Final = "application/strategic-merge-patch+json"

__all__ = ["JSON", "MERGE", "STRATEGIC", "PatchError", "json_patch", "merge", "strategic"]

Json = Any


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
            gone = set(map(identity, _listed(name, value)))
            merged[field] = [item for item in _listed(field, merged.get(field) or []) if identity(item) not in gone]
    if "$retainKeys" in patch:
        kept = set(map(identity, _listed("$retainKeys", patch["$retainKeys"])))
        merged = {name: value for name, value in merged.items() if name in kept}
    return merged


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise PatchError(f"{name}: expected a list")
    return value


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
        order = _listed(f"$setElementOrder/{name}", patch.get(f"$setElementOrder/{name}") or [])
        merged[name] = _merge_list(before or [], value, order, schema, minor)
    else:
        merged[name] = copied(value)


def _merge_list(
    before: list[Any], patch: list[Any], order: list[Any] | None, schema: dict[str, Any], minor: str
) -> Json:
    key = schema.get("x-kubernetes-patch-merge-key")
    if key is None or not all(isinstance(item, dict) for item in patch):
        known = set(map(identity, before))
        added = [item for item in patch if identity(item) not in known]
        return _in_order(before, [*before, *added], order or patch, None)
    if any(item.get("$patch") == "replace" for item in patch):
        return [item for item in copied(patch) if "$patch" not in item]
    gone = {identity(item.get(key)) for item in patch if item.get("$patch") == "delete"}
    merged = [copied(item) for item in before if identity(item.get(key)) not in gone]
    places: dict[Any, int] = {}
    for index, item in enumerate(merged):
        places.setdefault(identity(item.get(key)), index)
    changes = [item for item in patch if item.get("$patch") != "delete"]
    inner = _resolved(schema["items"], minor)
    for item in changes:
        if item.get(key) is None:
            raise PatchError(f"an item of the list has no {key}, by which items are told apart")
        place = places.setdefault(identity(item[key]), len(merged))
        if place == len(merged):
            merged.append(_merge_map({}, item, inner, minor))
        else:
            merged[place] = _merge_map(merged[place], item, inner, minor)
    return _in_order(before, merged, order or changes, key)


def _in_order(before: list[Any], merged: list[Any], wanted: list[Any], key: str | None) -> list[Any]:
    """Items of the patch in its order; a stored one stands before one of them only if it stood there before."""

    def name(item: Any) -> Any:
        return identity(item.get(key) if key is not None and isinstance(item, dict) else item)

    stored, named = _first_places(map(name, before)), _first_places(map(name, wanted))
    ours = sorted((item for item in merged if name(item) in named), key=lambda item: named[name(item)])
    theirs = [item for item in merged if name(item) not in named]
    result: list[Any] = []
    first = second = 0
    while first < len(theirs) and second < len(ours):
        place = stored.get(name(ours[second]))
        if place is not None and stored[name(theirs[first])] < place:
            result.append(theirs[first])
            first += 1
        else:
            result.append(ours[second])
            second += 1
    return [*result, *theirs[first:], *ours[second:]]


def _first_places(names: Iterable[Any]) -> dict[Any, int]:
    places: dict[Any, int] = {}
    for index, found in enumerate(names):
        places.setdefault(found, index)
    return places
