"""Suspension in a Job's status (spec job 3.2, 6): the condition, its event, and the start time that goes with it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kohort.apimachinery import times
from kohort.kinds.batch.api.status import SUSPENDED
from kohort.kinds.batch.control.job.finish import condition


def reflect(status: dict[str, Any], suspended: bool, now: datetime) -> tuple[str, str] | None:
    """Bring the condition in line, in place. The event to tell (reason, note) if that changed anything."""
    conditions = status.get("conditions") or []
    known = next((one for one in conditions if one.get("type") == SUSPENDED), None)
    if suspended:
        if known is not None and known.get("status") == "True":
            return None
        new = condition(SUSPENDED, "True", "JobSuspended", "Job suspended", now)
        status.pop("startTime", None)  # since 1.36: its pods may be changed now, and a deadline starts anew
    else:
        # A Job that never was suspended has no condition that says so.
        if known is None or known.get("status") == "False":
            return None
        new = condition(SUSPENDED, "False", "JobResumed", "Job resumed", now)
        status["startTime"] = times.seconds(now)
    status["conditions"] = [new if one is known else one for one in conditions] if known else [*conditions, new]
    return ("Suspended", "Job suspended") if suspended else ("Resumed", "Job resumed")
