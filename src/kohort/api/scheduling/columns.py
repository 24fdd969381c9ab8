"""Printer columns of the scheduling kinds (spec workload-api 6). The name is always the first one, and not listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kohort.api.kind import Column
from kohort.api.scheduling.constants import DISRUPTION_TARGET

if TYPE_CHECKING:
    from kohort.api.kind import Object


def _policy(obj: Object) -> str:
    policy = (obj.get("spec") or {}).get("schedulingPolicy") or {}
    return "Gang" if policy.get("gang") is not None else "Basic"


def _workload(obj: Object) -> str:
    spec = obj.get("spec") or {}
    inner = (spec.get("podGroupTemplateRef") or {}).get("workload")  # 1.36
    return (spec.get("workloadRef") or inner or {}).get("workloadName") or "<none>"


def _conditions(obj: Object) -> dict[str, Object]:
    return {condition["type"]: condition for condition in (obj.get("status") or {}).get("conditions") or []}


def _status(obj: Object, scheduled: tuple[str, ...]) -> str:
    found = _conditions(obj)
    if DISRUPTION_TARGET in found:
        return str(found[DISRUPTION_TARGET].get("reason"))
    condition = next((found[name] for name in scheduled if name in found), None)
    if condition is None:
        return "Pending"
    return "Scheduled" if condition.get("status") == "True" else "Unschedulable"


def group_columns(scheduled: str) -> tuple[Column, ...]:
    """Columns of PodGroup in a release whose scheduler writes this condition."""
    return (POLICY, WORKLOAD, Column("Status", cell=lambda obj: _status(obj, (scheduled,))), AGE)


AGE: Final = Column("Age", type="date", path=".metadata.creationTimestamp")
POLICY: Final = Column("Policy", cell=_policy)
WORKLOAD: Final = Column("Workload", cell=_workload)
