"""What a PodClique reads out of its pods (spec grove 1.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kohort.api.kind import Object
from kohort.api.objects import is_deleting, label
from kohort.kinds.grove.api import constants
from kohort.kinds.grove.control.writing import number

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def _condition(pod: Object, kind: str) -> str:
    found = (pod.get("status") or {}).get("conditions") or ()
    return str(next((one.get("status") for one in found if one.get("type") == kind), ""))


def is_ready(pod: Object) -> bool:
    return _condition(pod, "Ready") == "True"


def is_scheduled(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) or _condition(pod, "PodScheduled") == "True"


def is_gated(pod: Object) -> bool:
    return any(gate.get("name") == constants.GATE for gate in pod["spec"].get("schedulingGates") or ())


def _containers(pod: Object, *kinds: str) -> Iterable[dict[str, Any]]:
    status = pod.get("status") or {}
    return (one for kind in kinds for one in status.get(kind) or ())


def has_failed(pod: Object) -> bool:
    """A container was restarted after a failure. One that has just ended has no last termination yet."""
    for one in _containers(pod, "initContainerStatuses", "containerStatuses"):
        ended = (one.get("lastState") or {}).get("terminated")
        if ended is not None and ended.get("exitCode"):
            return True
    return False


def is_started_only(pod: Object) -> bool:
    return any(one.get("started") and not one.get("ready") for one in _containers(pod, "containerStatuses"))


@dataclass(frozen=True, slots=True)
class Counts:
    """Of the pods of one PodClique; those on their way out count where upstream counts them."""

    total: int
    ready: int
    scheduled: int
    gated: int
    failing: int  # not ready: a container failed before
    waiting: int  # not ready: started


def counts(pods: Sequence[Object]) -> Counts:
    staying = [pod for pod in pods if not is_deleting(pod)]
    ill = [pod for pod in staying if not is_ready(pod)]
    failing = [pod for pod in ill if has_failed(pod)]
    return Counts(
        total=len(staying),
        ready=sum(map(is_ready, staying)),
        scheduled=sum(map(is_scheduled, staying)),
        gated=sum(1 for pod in staying if is_gated(pod) and not is_scheduled(pod)),
        failing=len(failing),
        waiting=sum(1 for pod in ill if pod not in failing and is_started_only(pod)),
    )


def missing(pods: Sequence[Object], replicas: int, most: int) -> list[int]:
    """The lowest free indices, at most so many. A pod on its way out has given up its own."""
    staying = [pod for pod in pods if not is_deleting(pod)]
    taken = {number(pod, constants.POD_INDEX) for pod in staying}
    free = (index for index in range(replicas + len(taken)) if index not in taken)
    return list(islice(free, max(0, min(replicas - len(staying), most))))


def reach(pods: Sequence[Object], replicas: int, most: int) -> int:
    """Below which all indices are that pods have, or would have if so many more were made."""
    highest = max((number(pod, constants.POD_INDEX) for pod in pods), default=-1)
    return min(replicas, highest + 1 + most)


def surplus(pods: Sequence[Object], replicas: int, expected: str) -> list[Object]:
    """Unassigned first, then pending, not ready, of an old template, the newest."""
    staying = [pod for pod in pods if not is_deleting(pod)]
    if len(staying) <= replicas:
        return []
    newest_first = sorted(staying, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or "~"), reverse=True)

    def rank(pod: Object) -> tuple[bool, int, bool, bool]:
        phase = str((pod.get("status") or {}).get("phase") or "")
        return (
            bool(pod["spec"].get("nodeName")),
            _PHASES.get(phase, 0),
            is_ready(pod),
            label(pod, constants.TEMPLATE_HASH) == expected,
        )

    return sorted(newest_first, key=rank)[: len(staying) - replicas]
