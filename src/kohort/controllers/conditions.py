"""Status conditions, as metav1.Condition has them: one of a type, with the time of the last change of its status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.controllers.reconcile import Event

Status = dict[str, Any]


def condition(status: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    for one in status.get("conditions") or ():  # asked some twenty times for each pod
        if one.get("type") == kind:
            found: dict[str, Any] = one
            return found
    return None


def holds(status: Mapping[str, Any], kind: str) -> bool:
    return (condition(status, kind) or {}).get("status") == "True"


def set_condition(
    status: Status,
    now: datetime,
    kind: str,
    value: bool | None,
    reason: str,
    message: str,
    *,
    since: str = "",
    **more: Any,
) -> bool:
    """Whether it is something else than it was. None: Unknown. `since`: when it began, where somebody else knows.

    The list in the status is replaced, never changed: it may be the cache's.
    """
    known = condition(status, kind)
    text = "Unknown" if value is None else str(value)
    new: dict[str, Any] = {"type": kind, "status": text, "reason": reason, "message": message, **more}
    if known is not None and {key: known.get(key) for key in new} == new:
        return False
    same = known is not None and known.get("status") == text
    moved = since or times.seconds(now)
    new["lastTransitionTime"] = known.get("lastTransitionTime", moved) if known is not None and same else moved
    others = list(status.get("conditions") or ())
    status["conditions"] = [new if one is known else one for one in others] if known else [*others, new]
    return True


def drop_condition(status: Status, kind: str) -> None:
    kept = [one for one in status.get("conditions") or () if one.get("type") != kind]
    if len(kept) != len(status.get("conditions") or ()):
        status["conditions"] = kept


@dataclass(slots=True)
class StatusBuilder:
    """The status that a reconcile builds and writes once, at its end, with the events that are recorded then."""

    obj: Object
    now: datetime
    status: Status
    events: list[Event] = field(default_factory=list)

    def event(self, kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        self.events.append(Event(self.obj, kind, reason, note))

    def condition(self, kind: str) -> dict[str, Any] | None:
        return condition(self.status, kind)

    def holds(self, kind: str) -> bool:
        return holds(self.status, kind)
