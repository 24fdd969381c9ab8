"""Suspension in a Job's status (spec job 3.2, 6): the condition, its event, and the start time that goes with it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kohort.apimachinery import times
from kohort.controllers.conditions import condition, set_condition
from kohort.kinds.batch.api.status import SUSPENDED


def reflect(status: dict[str, Any], suspended: bool, now: datetime) -> tuple[str, str] | None:
    """Bring the condition in line, in place. The event to tell (reason, note) if that changed anything."""
    known = condition(status, SUSPENDED)
    # A Job that never was suspended has no condition that says so.
    if (known or {}).get("status") == str(suspended) or (known is None and not suspended):
        return None
    if suspended:
        reason, note = "JobSuspended", "Job suspended"
        status.pop("startTime", None)  # since 1.36: its pods may be changed now, and a deadline starts anew
    else:
        reason, note = "JobResumed", "Job resumed"
        status["startTime"] = times.seconds(now)
    set_condition(status, now, SUSPENDED, suspended, reason, note, lastProbeTime=times.seconds(now))
    return reason.removeprefix("Job"), note
