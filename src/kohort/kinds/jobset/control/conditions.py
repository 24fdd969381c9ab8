"""The conditions of a JobSet, and the events that go with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.controllers.reconcile import Event

COMPLETED: Final = "Completed"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
RESTARTING: Final = "RestartingJobSet"
IN_PROGRESS: Final = "StartupPolicyInProgress"
STARTED: Final = "StartupPolicyCompleted"

Kind = Literal["Normal", "Warning"]


@dataclass(slots=True)
class Draft:
    """The status that is being written, with the events that are told once it is."""

    jobset: Object
    status: dict[str, Any]
    now: datetime
    events: list[Event] = field(default_factory=list)

    def event(self, kind: Kind, reason: str, note: str) -> None:
        self.events.append(Event(self.jobset, kind, reason, note))

    def condition(self, kind: str) -> dict[str, Any] | None:
        return next((one for one in self.status.get("conditions") or () if one.get("type") == kind), None)

    def holds(self, kind: str) -> bool:
        return (self.condition(kind) or {}).get("status") == "True"

    def set(self, kind: str, value: bool, reason: str, message: str, *, event: Kind | None = "Normal") -> bool:
        """False if it says so already. A condition that never was is not made to say that it is not."""
        known = self.condition(kind)
        status = "True" if value else "False"
        if known is None and not value:
            return False
        if known is not None and (known.get("status"), known.get("reason")) == (status, reason):
            return False
        new = {"type": kind, "status": status, "reason": reason, "message": message}
        same = known is not None and known.get("status") == status
        new["lastTransitionTime"] = known["lastTransitionTime"] if same and known else times.seconds(self.now)
        others = self.status.get("conditions") or []
        self.status["conditions"] = [new if one is known else one for one in others] if known else [*others, new]
        if event is not None:
            self.event(event, reason, message)
        return True
