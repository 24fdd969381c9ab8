"""Structural schemas before validation: unknown fields and stray nulls are dropped, defaults are set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kohort.api.copying import copied

Schema = Mapping[str, Any]
META: Final = ("apiVersion", "kind", "metadata")
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


def inner(schema: Schema | None, name: str) -> Schema | None:
    """The schema of a member; None if nothing is known of it."""
    if schema is None:
        return None
    found = (schema.get("properties") or {}).get(name)
    if found is None:
        more = schema.get("additionalProperties")
        found = more if isinstance(more, Mapping) else {} if more is True else None
    return found


def prune(value: Any, schema: Schema | None) -> None:
    """Remove unknown members, in place."""
    for owner, name, _ in list(_unknown(value, schema, "")):
        owner.pop(name, None)


def unknown(value: Any, schema: Schema | None, path: str) -> list[str]:
    """The paths of what `prune` would remove."""
    return [found for _, _, found in _unknown(value, schema, path)]


def _unknown(value: Any, schema: Schema | None, path: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    keep = schema is not None and schema.get(_PRESERVE) is True
    if isinstance(value, list):
        items = (schema or {}).get("items")
        # A list within preserved fields is preserved, unless its items say otherwise.
        if keep and items is None:
            return
        for place, item in enumerate(value):
            yield from _unknown(item, items, f"{path}[{place}]")
    elif isinstance(value, dict):
        embedded = schema is not None and schema.get(_EMBEDDED) is True
        for name, member in value.items():
            if embedded and name in META:
                continue
            at = f"{path}.{name}" if path else name
            if _declared(schema, name):
                yield from _unknown(member, inner(schema, name), at)
            elif not keep:
                yield value, name, at


def _declared(schema: Schema | None, name: str) -> bool:
    if schema is None:
        return False
    return name in (schema.get("properties") or {}) or schema.get("additionalProperties") not in (None, False)


def drop_nulls(value: Any, schema: Schema | None) -> None:
    """null where it is not allowed means absent, in place; one that a default replaces stays for it."""
    if isinstance(value, list):
        for item in value:
            drop_nulls(item, (schema or {}).get("items"))
    elif isinstance(value, dict):
        for name in list(value):
            member = inner(schema, name)
            if value[name] is None and member and not member.get("nullable") and "default" not in member:
                del value[name]
            else:
                drop_nulls(value[name], member)


def fill(value: Any, schema: Schema | None) -> None:
    """Defaults, in place, as deep as the value goes."""
    if schema is None:
        return
    if isinstance(value, list):
        items = schema.get("items")
        for place, item in enumerate(value):
            if item is None and items and not items.get("nullable") and "default" in items:
                value[place] = copied(items["default"])
            fill(value[place], items)
    elif isinstance(value, dict):
        for name, member in (schema.get("properties") or {}).items():
            absent = name not in value or (value[name] is None and not member.get("nullable"))
            if absent and member.get("default") is not None:
                value[name] = copied(member["default"])
        for name, item in value.items():
            fill(item, inner(schema, name))
