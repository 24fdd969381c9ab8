"""What a mutation makes of an object: an apply configuration merged into it, or a JSON patch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kohort.api import patch as patches
from kohort.api.apply.merge import merge
from kohort.api.apply.structure import DEDUCED
from kohort.api.json_patch import TestFailedError
from kohort.cel.values import Duration, Struct, Timestamp

if TYPE_CHECKING:
    from kohort.api.apply import Structure


class MutationError(Exception):
    """The mutation does not fit the object."""


def json_patch(obj: dict[str, Any], operations: Any) -> Any:
    """A test that fails leaves the object as it is."""
    found = [_operation(one) for one in operations]
    try:
        return patches.json_patch(obj, found)
    except TestFailedError:
        return obj
    except patches.PatchError as error:
        raise MutationError(f"JSON Patch: {error}") from None


def _operation(one: Struct) -> dict[str, Any]:
    found: dict[str, Any] = {"op": one.get("op", ""), "path": one.get("path", "")}
    if one.get("from"):
        found["from"] = one["from"]
    if "value" in one:
        _check_names(one["value"])
        found["value"] = plain(one["value"])
    return found


def apply_configuration(obj: dict[str, Any], applied: Struct, structure: Structure | None) -> Any:
    """Merged as server-side apply would, without ownership. Lists and maps that are one value cannot be given."""
    _check_names(applied)
    given = {**plain(applied), "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    known = structure or DEDUCED
    wrong = list(_unknown(given, known, ""))
    if wrong:
        raise MutationError(f"error applying patch: failed to convert patch object to typed object: {wrong[0]}")
    whole = list(_atomic(given, known, ""))
    if whole:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(whole)}"
        raise MutationError(f"error applying patch: invalid ApplyConfiguration: {text}")
    return merge(obj, given, known)


def _unknown(value: Any, structure: Structure, path: str) -> Iterator[str]:
    """Fields that the schema does not have."""
    if isinstance(value, dict) and structure.map is not None and (structure.only == "map" or not structure.only):
        for name, member in value.items():
            inner = structure.map.of(name)
            if inner is None:
                yield f"{path}.{name}: field not declared in schema"
            else:
                yield from _unknown(member, inner, f"{path}.{name}")
    elif isinstance(value, list) and structure.list is not None:
        for place, item in enumerate(value):
            yield from _unknown(item, structure.list.item, f"{path}[{place}]")


def _atomic(value: Any, structure: Structure, path: str) -> Iterator[str]:
    if isinstance(value, dict) and structure.map is not None:
        if structure.map.atomic:
            yield path
        for name, member in value.items():
            inner = structure.map.of(name) if structure.map.declares(name) else None
            if inner is not None:
                yield from _atomic(member, inner, f"{path}.{name}")
    elif isinstance(value, list) and structure.list is not None:
        if structure.list.atomic:
            yield path
        for place, item in enumerate(value):
            yield from _atomic(item, structure.list.item, f"{path}[{place}]")


def _check_names(value: Any) -> None:
    """Object.spec{...} stands in the field spec of an Object{...}, and so on."""
    if isinstance(value, Struct):
        wrong = list(_misnamed(value, value.name))
        if wrong:
            raise MutationError("type mismatch: " + "\n".join(wrong))


def _misnamed(value: Any, expected: str) -> Iterator[str]:
    if isinstance(value, Struct):
        if value.name != expected:
            yield (
                f'unexpected type name "{value.name}", expected "{expected}", '
                "which matches field name path from root Object type"
            )
        for name, member in value.items():
            yield from _misnamed(member, f"{expected}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from _misnamed(item, expected)
    elif isinstance(value, dict):
        for member in value.values():
            yield from _misnamed(member, expected)


def plain(value: Any) -> Any:
    """A value of the language as JSON."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise MutationError("keys of a map have to be strings")
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, Duration | Timestamp):
        from kohort.cel import times

        return times.printed(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise MutationError(f"a value of type {getattr(value, 'kind', type(value).__name__)} cannot be written as JSON")
