"""Restarts in place: containers start again in their pods, all of the JobSet at the same attempt (spec jobset 2.3).

An agent in each pod says by annotation which attempt it has come to, and waits. When all pods say the same, that is the
current attempt, and agents let their containers go. When some are ahead, everything up to the attempt before is over:
agents that are behind end their pods' containers, which brings them to the same attempt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import meta_of
from kohort.controllers.reconcile import ReconcileError
from kohort.kinds.jobset.api.reading import replicated_jobs, spec_of

ATTEMPT: Final = "jobset.sigs.k8s.io/in-place-restart-attempt"
STRATEGY: Final = "InPlaceRestart"
CURRENT: Final = "currentInPlaceRestartAttempt"
PREVIOUS: Final = "previousInPlaceRestartAttempt"


def is_wanted(jobset: Object) -> bool:
    return (spec_of(jobset).get("failurePolicy") or {}).get("restartStrategy") == STRATEGY


def record_attempts(jobset: Object, status: dict[str, Any], pods: Sequence[Object]) -> bool:
    """Write the two attempts into the status; False if there were too many restarts."""
    most = int((spec_of(jobset).get("failurePolicy") or {}).get("maxRestarts") or 0)
    if max((count for pod in pods for count in restarts(pod)), default=0) > most:
        return False  # a container that ends before its agent could say anything
    attempts = [found for pod in pods if (found := attempt(pod)) is not None]
    newest = max(attempts, default=0)
    uncounted = int(status.get("restarts") or 0) - int(status.get("restartsCountTowardsMax") or 0)
    if newest - uncounted > most:
        return False
    everyone = sum(one.pods for one in replicated_jobs(jobset))
    if attempts and len(attempts) == everyone and min(attempts) == newest:
        status[CURRENT] = newest
    elif newest > 0 and newest - 1 > status.get(PREVIOUS, -1):
        status[PREVIOUS] = newest - 1
    return True


def restarts(pod: Object) -> Iterable[int]:
    status = pod.get("status") or {}
    for member in ("initContainerStatuses", "containerStatuses"):
        yield from (int(one.get("restartCount") or 0) for one in status.get(member) or ())


def attempt(pod: Object) -> int | None:
    text = (meta_of(pod).get("annotations") or {}).get(ATTEMPT)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise ReconcileError(f"Pod {meta_of(pod).get('name')}: annotation {ATTEMPT} is {text!r}, not a number >= 0")
    return int(text)
