"""A fault of ours concerns one object: it is marked where people see it, tried again ever later; all else goes on.

A refused write (ReconcileError) is no fault: kinds record what it means themselves. A fault is any other exception, say
a field that nobody thought of. The condition is written once, when the fault begins, so that the write does not bring
the object back before its backoff is over; it is taken back when a reconcile has worked.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import meta_of, status_of
from kohort.controllers.conditions import holds, set_condition
from kohort.controllers.reconcile import Event, Write
from kohort.controllers.writes import patch

CONDITION: Final = "ReconcileFailed"
REASON: Final = "ReconcileError"
_LONGEST: Final = 512


def event(obj: Object, controller: str, error: Exception) -> Event:
    return Event(obj, "Warning", REASON, f"controller {controller}: {_text(error)}", "Reconcile")


def mark(obj: Object, error: Exception, now: datetime) -> Write | None:
    """None: it is marked already."""
    if holds(status_of(obj), CONDITION):
        return None
    return _write(obj, now, True, type(error).__name__, _text(error))


def clear(obj: Object, now: datetime) -> Write | None:
    """None: there is nothing to take back."""
    if not holds(status_of(obj), CONDITION):
        return None
    return _write(obj, now, False, "Reconciled", "the last reconcile worked")


def has_begun(obj: Object) -> bool:
    """Whether its controller has written a status: one that only says that a fault was met does not count."""
    return any(
        any(one.get("type") != CONDITION for one in value) if name == "conditions" else value
        for name, value in status_of(obj).items()
    )


def _write(obj: Object, now: datetime, value: bool, reason: str, message: str) -> Write:
    status: dict[str, Any] = {"conditions": list(status_of(obj).get("conditions") or ())}
    set_condition(status, now, CONDITION, value, reason, message)
    # A merge patch replaces the list: the version makes sure that it is the one that was read.
    body = {"metadata": {"resourceVersion": meta_of(obj).get("resourceVersion")}, "status": status}
    return patch(obj, body, "status")


def _text(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
