"""Kinds that have two forms over one table: events (the older form is what is kept), autoscalers (the newer one is)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

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


# ---- autoscaling/v1: one number for the processor; what v2 says besides is carried in annotations

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS: Final = f"{_PREFIX}metrics"
_CARRIED: Final = (
    (METRICS, "spec", "metrics"),
    (f"{_PREFIX}behavior", "spec", "behavior"),
    (f"{_PREFIX}conditions", "status", "conditions"),
    (f"{_PREFIX}current-metrics", "status", "currentMetrics"),
)


def to_old_autoscaler(obj: Object) -> Object:
    spec, state, meta = dict(obj.get("spec") or {}), dict(obj.get("status") or {}), dict(obj.get("metadata") or {})
    notes = dict(meta.get("annotations") or {})
    for parts, members, number in (
        (spec, ("metrics", "target"), "targetCPUUtilizationPercentage"),
        (state, ("currentMetrics", "current"), "currentCPUUtilizationPercentage"),
    ):
        metrics = list(parts.get(members[0]) or ())
        found = next((one for one in metrics if _percentage(one, members[1]) is not None), None)
        if found is not None:
            parts[number] = _percentage(found, members[1])
            parts[members[0]] = [one for one in metrics if one is not found]
    for note, part, member in _CARRIED:
        value = (spec if part == "spec" else state).pop(member, None)
        if value:
            notes[note] = msgspec.json.encode(value).decode()
    if notes:
        meta["annotations"] = notes
    return {**obj, "metadata": meta, "spec": spec, **({"status": state} if "status" in obj else {})}


def to_new_autoscaler(obj: Object) -> Object:
    spec, state, meta = dict(obj.get("spec") or {}), dict(obj.get("status") or {}), dict(obj.get("metadata") or {})
    notes = dict(meta.get("annotations") or {})
    for note, part, member in _CARRIED:
        try:
            value = msgspec.json.decode(notes.pop(note, "null"))
        except msgspec.DecodeError:
            continue
        if isinstance(value, list | dict):
            (spec if part == "spec" else state)[member] = value
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    if percentage is not None:
        spec["metrics"] = [_cpu("target", percentage, type="Utilization"), *(spec.get("metrics") or ())]
    percentage = state.pop("currentCPUUtilizationPercentage", None)
    if percentage is not None:
        state["currentMetrics"] = [_cpu("current", percentage), *(state.get("currentMetrics") or ())]
    _put(meta, "annotations", notes)
    return {**obj, "metadata": meta, "spec": spec, **({"status": state} if "status" in obj else {})}


def _cpu(member: str, percentage: int, **more: str) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", member: {**more, "averageUtilization": percentage}}}


def _percentage(metric: Any, member: str) -> int | None:
    resource = metric.get("resource") if isinstance(metric, dict) else None
    if (
        not isinstance(resource, dict)
        or resource.get("name") != "cpu"
        or "averageValue" in (resource.get(member) or {})
    ):
        return None
    found = (resource.get(member) or {}).get("averageUtilization")
    return found if isinstance(found, int) else None


def _put(obj: dict[str, Any], member: str, value: dict[str, Any]) -> None:
    if value:
        obj[member] = value
    else:
        obj.pop(member, None)


Step = Callable[["Object"], "Object"]


def of(group: str, version: str, kind: str) -> tuple[Step | None, Step | None]:
    """How to read from the table, and how to write to it."""
    if (group, version, kind) == ("events.k8s.io", "v1", "Event"):
        return to_new_event, to_old_event
    if (group, version, kind) == ("autoscaling", "v1", "HorizontalPodAutoscaler"):
        return to_old_autoscaler, to_new_autoscaler
    return None, None
