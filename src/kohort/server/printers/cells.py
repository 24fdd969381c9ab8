"""Small readers of objects that columns are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kohort.api.kind import Column
from kohort.server import timestamps

Object = dict[str, Any]
Cell = Callable[[Object], Any]


def look(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def at(path: str) -> Cell:
    return lambda obj: look(obj, path) if look(obj, path) is not None else ""


def text(path: str, default: str = "<none>") -> Cell:
    def cell(obj: Object) -> str:
        value = look(obj, path)
        return default if value in (None, "") else str(value)

    return cell


def number(path: str) -> Cell:
    return lambda obj: look(obj, path) or 0


def length(path: str) -> Cell:
    return lambda obj: len(look(obj, path) or [])


def keys(*paths: str) -> Cell:
    return lambda obj: sum(len(look(obj, path) or {}) for path in paths)


def seen(path: str, default: str = "<none>") -> Cell:
    """How long ago, for times that are not the creation."""

    def cell(obj: Object) -> str:
        value = look(obj, path)
        return timestamps.age(value) if value else default

    return cell


def labels(value: Any) -> str:
    """A label selector or a map, as text."""
    if not isinstance(value, dict) or not value:
        return "<none>"
    if "matchLabels" in value or "matchExpressions" in value:
        parts = [f"{key}={one}" for key, one in sorted((value.get("matchLabels") or {}).items())]
        for term in value.get("matchExpressions") or []:
            verb, inner = term.get("operator"), ",".join(term.get("values") or [])
            shown = {"Exists": term.get("key"), "DoesNotExist": f"!{term.get('key')}"}.get(verb)
            parts.append(shown or f"{term.get('key')} {str(verb).lower()} ({inner})")
        return ",".join(parts) or "<none>"
    return ",".join(f"{key}={one}" for key, one in sorted(value.items()))


AGE: Final = Column("Age", type="date", path=".metadata.creationTimestamp")
CREATED_AT: Final = Column("Created At", type="date", cell=at("metadata.creationTimestamp"))
