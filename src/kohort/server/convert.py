"""Events have two forms over one table: the older one is what is kept, events.k8s.io/v1 is made from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.api.kind import Object

# newer name -> older name
_RENAMED: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_OLDER: Final = {older: newer for newer, older in _RENAMED.items()}


def to_new_event(obj: Object) -> Object:
    return {_OLDER.get(name, name): value for name, value in obj.items()}


def to_old_event(obj: Object) -> Object:
    kept = {_RENAMED.get(name, name): value for name, value in obj.items()}
    kept.setdefault("firstTimestamp", None)
    kept.setdefault("lastTimestamp", None)
    kept.setdefault("source", {})
    kept.setdefault("involvedObject", {})
    return kept


Step = Callable[["Object"], "Object"]


def of(group: str, version: str, kind: str) -> tuple[Step | None, Step | None]:
    """How to read from the table, and how to write to it."""
    if (group, version, kind) == ("events.k8s.io", "v1", "Event"):
        return to_new_event, to_old_event
    return None, None
