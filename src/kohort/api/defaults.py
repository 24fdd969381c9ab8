"""Defaults and dropped fields: what a server does to an object before it validates it. In place, on a copy of yours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kohort.api.copying import copied
from kohort.api.sameness import identity
from kohort.api.schema import UNSET, Arr, Map, Node, Obj, Ref, known

if TYPE_CHECKING:
    from kohort.api.kind import Context


def apply(node: Node, value: Any, ctx: Context) -> None:
    """Fill the defaults of absent members, as deep as the value goes; one behind a gate that is off stays away."""
    if isinstance(node, Obj) and isinstance(value, dict):
        for name, member in node.fields.items():
            if value.get(name) is None and member.default is not UNSET and (not member.gate or ctx.on(member.gate)):
                value[name] = copied(member.default)
            if name in value:
                apply(member, value[name], ctx)
    elif isinstance(node, Arr) and isinstance(value, list):
        for item in value:
            apply(node.item, item, ctx)
    elif isinstance(node, Map) and isinstance(value, dict):
        for item in value.values():
            apply(node.value, item, ctx)


def drop_gated(node: Node, value: Any, old: Any, ctx: Context) -> None:
    """Remove members that the minor does not know, and, unless the stored object (`old`) has them, gated ones."""
    if isinstance(node, Obj) and isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, member in node.fields.items():
            off = member.gate and not ctx.on(member.gate) and before.get(name) is None
            if off or not known(member, ctx.release.minor):
                value.pop(name, None)
            elif name in value:
                drop_gated(member, value[name], before.get(name), ctx)
    elif isinstance(node, Arr) and isinstance(value, list):
        stored = old if isinstance(old, list) else []
        by_key = _by_key(node, stored)
        for index, item in enumerate(value):
            drop_gated(node.item, item, _counterpart(node, item, index, stored, by_key), ctx)
    elif isinstance(node, Ref):
        for path, gate in node.gated.items():
            if not ctx.on(gate):
                _drop_path(value, old, path.split("."))


def _drop_path(value: Any, old: Any, path: list[str]) -> None:
    for name in path[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
        old = old.get(name) if isinstance(old, dict) else None
    if isinstance(value, dict) and not (isinstance(old, dict) and old.get(path[-1]) is not None):
        value.pop(path[-1], None)


def _counterpart(node: Arr, item: Any, index: int, stored: list[Any], by_key: dict[Any, Any]) -> Any:
    if not node.key or node.by_position or not isinstance(item, dict):
        return stored[index] if index < len(stored) else None
    return by_key.get(identity([item.get(part) for part in node.key]))


def _by_key(node: Arr, stored: list[Any]) -> dict[Any, Any]:
    """The stored items of a list by their keys; the first of several."""
    found: dict[Any, Any] = {}
    if node.key and not node.by_position:
        for one in stored:
            found.setdefault(identity([one.get(part) for part in node.key]), one)
    return found
