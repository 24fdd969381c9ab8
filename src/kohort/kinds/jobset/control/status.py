"""The conditions of a JobSet, and the events that go with them."""

from __future__ import annotations

from typing import Literal

from kohort.controllers.conditions import StatusBuilder, set_condition

Kind = Literal["Normal", "Warning"]


class JobSetStatus(StatusBuilder):
    def set(self, kind: str, value: bool, reason: str, message: str, *, event: Kind | None = "Normal") -> bool:
        """False if it says so already. A condition that never was is not made to say that it is not."""
        known = self.condition(kind)
        if known is None and not value:
            return False
        if known is not None and (known.get("status"), known.get("reason")) == (str(value), reason):
            return False
        set_condition(self.status, self.now, kind, value, reason, message)
        if event is not None:
            self.event(event, reason, message)
        return True
