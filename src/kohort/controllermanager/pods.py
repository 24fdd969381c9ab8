"""What controllers of pods read from a pod: whether it counts, is ready, has been ready for long enough."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, status_of
from kohort.apimachinery import times
from kohort.controllers.conditions import condition, holds


def phase(pod: Object) -> str:
    return str(status_of(pod).get("phase") or "Pending")


def is_terminal(pod: Object) -> bool:
    return phase(pod) in {"Succeeded", "Failed"}


def is_active(pod: Object) -> bool:
    return not is_terminal(pod) and not is_deleting(pod)


def is_terminating(pod: Object) -> bool:
    return is_deleting(pod) and not is_terminal(pod)


def is_ready(pod: Object) -> bool:
    return holds(status_of(pod), "Ready")


def ready_since(pod: Object) -> datetime | None:
    """None: it is not ready, or does not say since when."""
    known = condition(status_of(pod), "Ready") or {}
    return times.parse(known.get("lastTransitionTime")) if known.get("status") == "True" else None


def available_in(pod: Object, least: int, now: datetime) -> float | None:
    """Seconds until it has been ready for `least` seconds; 0: it has; None: it is not ready."""
    if not is_ready(pod):
        return None
    since = ready_since(pod)
    if not least:
        return 0.0
    if since is None:
        return None
    return max(0.0, (since + timedelta(seconds=least) - now).total_seconds())


def is_available(pod: Object, least: int, now: datetime) -> bool:
    return available_in(pod, least, now) == 0.0


def next_available(pods: list[Object], least: int, now: datetime) -> float | None:
    """Seconds until the next ready one becomes available; None: none will by waiting."""
    waits = [available_in(pod, least, now) for pod in pods]
    return min((wait for wait in waits if wait), default=None)


def restarts(pod: Object) -> int:
    """Of the container that was restarted most."""
    found = [*_statuses(pod, "containerStatuses"), *_statuses(pod, "initContainerStatuses")]
    return max((int(one.get("restartCount") or 0) for one in found), default=0)


def _statuses(pod: Object, member: str) -> list[dict[str, Any]]:
    return list(status_of(pod).get(member) or ())


def node_of(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")
