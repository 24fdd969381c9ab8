"""The declared rules of a schema, checked on create and on update.

Semantics of the API server's generated validation: a failing frozen, required, size or key rule ends the check beneath
that field, siblings are still reported; on update an unchanged value is not examined again; a zero counts as absent
where a scalar is required (native kinds) or does not (CRDs). Rules that end the check at a field are all asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kohort.api.errors import FieldError, at, duplicate, forbidden, invalid, not_supported, required, too_long, too_many
from kohort.api.formats import problems
from kohort.api.schema import Arr, Int, Map, Node, Obj, Str, Update, WhenOff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kohort.api.kind import Context

_NOT_LATER = "field cannot be set once created"


@dataclass(frozen=True, slots=True)
class Operation:
    """What is validated: a new object alone, or its difference to a stored one."""

    ctx: Context
    update: bool = False
    native: bool = True  # zero counts as absent


def check_schema(schema: Obj, obj: Any, old: Any, operation: Operation) -> list[FieldError]:
    """All findings for the members of a whole object (metadata aside)."""
    return list(_members(schema, obj or {}, old or {}, "", operation))


def check_value(node: Node, value: Any, path: str, operation: Operation, old: Any = None) -> list[FieldError]:
    """Findings for one field."""
    return list(_field(node, value, old, path, operation))


def _members(node: Obj, value: Any, old: Any, path: str, operation: Operation) -> Iterator[FieldError]:
    if node.union:
        yield from _union(node, value, old, path, operation)
    for name, member in node.fields.items():
        yield from _field(member, value.get(name), (old or {}).get(name), at(path, name), operation)


def _union(node: Obj, value: Any, old: Any, path: str, operation: Operation) -> Iterator[FieldError]:
    chosen = [name for name in node.union if _is_set(value.get(name))]
    if operation.update and old is not None and chosen == [name for name in node.union if _is_set(old.get(name))]:
        return
    words = ", ".join(f"`{name}`" for name in node.union)
    if not chosen and not node.union_optional:
        yield invalid(path, "", f"must specify one of: {words}")
    elif len(chosen) > 1:
        found = ", ".join(f"`{name}`" for name in chosen)
        yield invalid(path, "{" + ", ".join(chosen) + "}", f"must specify exactly one of: {words}, found {found}")


def _is_set(value: Any) -> bool:
    return value is not None and value != []


def _field(node: Node, value: Any, old: Any, path: str, operation: Operation) -> Iterator[FieldError]:
    if isinstance(node, Obj) and node.embedded:
        value, old = value or {}, old or {}
    if operation.update and same(value, old):
        return
    ending = list(_ending(node, value, old, path, operation))
    if ending:
        yield from ending
    elif value is not None:
        yield from _content(node, value, old, path, operation)


def _ending(node: Node, value: Any, old: Any, path: str, operation: Operation) -> Iterator[FieldError]:
    """The rules after which nobody looks deeper. Each of them that fails is reported."""
    off = node.gate is not None and not operation.ctx.on(node.gate)
    if off and value is not None and node.when_off is not WhenOff.SILENT:
        yield forbidden(path, f"feature gate {node.gate} is off")
    if operation.update and not (off and node.when_off is WhenOff.THAWED):
        yield from _change(node, value, old, path)
    if node.required and _absent(node, value, operation):
        yield required(path)
    elif isinstance(node, Arr) and value is not None:
        yield from _size(node, value, path)
    if isinstance(node, Arr) and operation.update and node.update is Update.KEYSET:
        yield from _keyset(node, value or [], old or [], path)


def _change(node: Node, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    if node.update is Update.FROZEN:
        yield invalid(path, value, "field is immutable")
    elif node.update is Update.VARIANT and (value is None) != (old is None):
        yield invalid(path, value, "field cannot be cleared once set" if value is None else _NOT_LATER)


def _size(node: Arr, value: list[Any], path: str) -> Iterator[FieldError]:
    if node.max_items is not None and len(value) > node.max_items:
        yield too_many(path, len(value), node.max_items)
    elif len(value) < node.min_items:
        yield invalid(path, len(value), f"must have at least {node.min_items} items")


def _content(node: Node, value: Any, old: Any, path: str, operation: Operation) -> Iterator[FieldError]:
    if isinstance(node, Obj):
        yield from _members(node, value, old, path, operation)
    elif isinstance(node, Arr):
        yield from _list(node, value, old, path, operation)
    elif isinstance(node, Map):
        for key, item in value.items():
            yield from _field(node.value, item, (old or {}).get(key), f"{path}[{key}]", operation)
    elif isinstance(node, Str):
        yield from _string(node, value, path)
    elif isinstance(node, Int):
        yield from _integer(node, value, path)


def _absent(node: Node, value: Any, operation: Operation) -> bool:
    if value is None:
        return True
    if not operation.native or not node.required:
        return False
    return value in ("", 0, []) and not isinstance(value, bool)


def same(value: Any, old: Any) -> bool:
    """Equal, where null, an absent member and an empty list are the same thing."""
    if value == old:  # mostly, and quickly told
        return True
    if isinstance(value, dict) and isinstance(old, dict):
        return all(same(value.get(name), old.get(name)) for name in value.keys() | old.keys())
    if isinstance(value, list) and isinstance(old, list):
        return len(value) == len(old) and all(same(*pair) for pair in zip(value, old, strict=True))
    return not _is_set(value) and not _is_set(old)


def _list(node: Arr, value: list[Any], old: Any, path: str, operation: Operation) -> Iterator[FieldError]:
    if isinstance(node.item, Obj):
        value = [{} if item is None else item for item in value]
    stored = old or []
    yield from _repeats(node, value, path)
    known = {_key(node, item): item for item in stored} if node.key else {}
    for index, item in enumerate(value):
        before = known.get(_key(node, item)) if node.key else (stored[index : index + 1] or [None])[0]
        # An item without a counterpart is new: it is validated as on create.
        how = operation if before is not None else Operation(operation.ctx, False, operation.native)
        yield from _field(node.item, item, before, f"{path}[{index}]", how)


def _key(node: Arr, item: Any) -> tuple[Any, ...]:
    return tuple((item or {}).get(part) or "" for part in node.key)


def _keyset(node: Arr, value: list[Any], stored: list[Any], path: str) -> Iterator[FieldError]:
    before, after = {_key(node, item) for item in stored}, {_key(node, item) for item in value}
    for index, item in enumerate(value):
        if _key(node, item) not in before:
            yield forbidden(f"{path}[{index}]", "items may not be added")
    for gone in stored:
        if _key(node, gone) not in after:
            yield forbidden(path, f"items may not be removed: {'/'.join(map(str, _key(node, gone)))}")


def _repeats(node: Arr, value: list[Any], path: str) -> Iterator[FieldError]:
    seen: set[Any] = set()
    if not (node.key and node.distinct) and not node.unique:
        return
    for index, item in enumerate(value):
        key = _key(node, item) if node.key else item
        if key in seen:
            yield duplicate(f"{path}[{index}]", dict(zip(node.key, key, strict=True)) if node.key else item)
        seen.add(key)


def _string(node: Str, value: str, path: str) -> Iterator[FieldError]:
    if node.blank and not value:
        return
    if node.enum and value not in node.enum:
        yield not_supported(path, value, node.enum)
        return
    if node.max_bytes is not None and len(value.encode()) > node.max_bytes:
        yield too_long(path, node.max_bytes)
        return
    if len(value) < node.min_length:
        yield invalid(path, value, f"must be at least {node.min_length} characters long")
    if node.format:
        yield from (invalid(path, value, problem) for problem in problems(node.format, value))
    elif node.pattern and not re.search(node.pattern, value):
        yield invalid(path, value, f"must match {node.pattern}")


def _integer(node: Int, value: int, path: str) -> Iterator[FieldError]:
    if node.minimum is not None and value < node.minimum:
        yield invalid(path, value, f"must be greater than or equal to {node.minimum}")
    elif node.maximum is not None and value > node.maximum:
        yield invalid(path, value, f"must be less than or equal to {node.maximum}")
