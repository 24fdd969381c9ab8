"""What the Job controller reads from a pod."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import is_deleting
from kohort.apimachinery import times

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED: Final = "batch.kubernetes.io/job-index-ignored-failure-count"


def phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_terminal(pod: Object) -> bool:
    return phase(pod) in {"Succeeded", "Failed"}


def is_active(pod: Object) -> bool:
    return not is_terminal(pod) and not is_deleting(pod)


def is_terminating(pod: Object) -> bool:
    """Told to stop and still at it."""
    return is_deleting(pod) and not is_terminal(pod)


def is_tracked(pod: Object) -> bool:
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def condition(pod: Object, kind: str) -> dict[str, Any]:
    found = (pod.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one.get("type") == kind), {})


def is_ready(pod: Object) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def index(pod: Object) -> int | None:
    """The completion index; None if the pod has none that can be read."""
    text = str((pod["metadata"].get("annotations") or {}).get(INDEX) or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def counter(pod: Object, annotation: str) -> int:
    text = str((pod["metadata"].get("annotations") or {}).get(annotation) or "")
    return int(text) if text.isascii() and text.isdigit() else 0


def restarts(pod: Object) -> int:
    status = pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return sum(int(one.get("restartCount") or 0) for one in statuses)


def created(pod: Object) -> datetime:
    return times.parse(pod["metadata"].get("creationTimestamp")) or datetime.min.replace(tzinfo=UTC)


def finished(pod: Object) -> datetime:
    """When a pod ended: by its containers, else since it is not ready, else since it was told to stop (spec job 6)."""
    status = pod.get("status") or {}
    ends = [_end(one) for member in ("containerStatuses", "initContainerStatuses") for one in status.get(member) or ()]
    of_containers = [end for end in ends if end is not None]
    if of_containers and all(_end(one) is not None for one in status.get("containerStatuses") or ()):
        return max(of_containers)
    ready = condition(pod, "Ready")
    since = times.parse(ready.get("lastTransitionTime")) if ready.get("status") == "False" else None
    if since is not None:
        return since
    told = times.parse(pod["metadata"].get("deletionTimestamp"))
    if told is not None:
        return told - timedelta(seconds=int(pod["metadata"].get("deletionGracePeriodSeconds") or 0))
    return created(pod)


def _end(container: dict[str, Any]) -> datetime | None:
    return times.parse(((container.get("state") or {}).get("terminated") or {}).get("finishedAt"))
