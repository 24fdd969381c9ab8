"""When a group starts anew because one of its pods did (spec lws 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.api.objects import annotation, is_deleting, name_of
from kohort.apimachinery import times
from kohort.kinds.leaderworkerset.api import constants
from kohort.kinds.leaderworkerset.control.reading import containers_of, has_ended, phase, revision_of, template_of
from kohort.kinds.leaderworkerset.control.state import Replica

_ALWAYS: Final = "RecreateGroupOnPodRestart"
_AFTER_START: Final = "RecreateGroupAfterStart"
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def cause(lws: Object, replica: Replica) -> Object | None:
    """The pod that makes the group start anew; None: it goes on. The policy is that of the living set."""
    policy = str(template_of(lws).get("restartPolicy") or _ALWAYS)
    if not replica.lives or policy not in (_ALWAYS, _AFTER_START):
        return None
    after_start = policy == _AFTER_START or annotation(lws, constants.RECREATE_AFTER_START) is not None
    if after_start and not _has_started(replica):
        return None
    since = _started(replica) if after_start else _NEVER
    own = [pod for pod in replica.pods if revision_of(pod) == revision_of(replica.pods[0])]
    return next((pod for pod in own if is_deleting(pod) or has_ended(pod) or _restarted(pod, since)), None)


def note(pod: Object, replica: Replica) -> str:
    leader = name_of(replica.leader) if replica.leader is not None else ""
    return f"Worker pod {name_of(pod)} failed, deleted leader pod {leader} to recreate group {replica.index}"


def _has_started(replica: Replica) -> bool:
    return len(replica.pods) >= replica.size and all(phase(pod) != "Pending" for pod in replica.pods)


def _started(replica: Replica) -> datetime:
    """When the last pod of the group began: restarts before that are forgiven (containers wait for each other)."""
    return max((_began(pod) for pod in replica.pods), default=_NEVER)


def _began(pod: Object) -> datetime:
    first = [
        times.parse(((one.get("state") or {}).get("running") or {}).get("startedAt"))
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
        if not one.get("restartCount")
    ]
    known = [one for one in first if one is not None]
    return min(known) if known else times.parse((pod.get("status") or {}).get("startTime")) or _NEVER


def _restarted(pod: Object, since: datetime) -> bool:
    if phase(pod) not in ("Pending", "Running"):
        return False
    return any(_last_start(one) > since for one in containers_of(pod) if int(one.get("restartCount") or 0) > 0)


def _last_start(container: Mapping[str, Any]) -> datetime:
    state, last = container.get("state") or {}, container.get("lastState") or {}
    for told in ((state.get("running") or {}).get("startedAt"), (last.get("terminated") or {}).get("finishedAt")):
        found = times.parse(told)
        if found is not None:
            return found
    return datetime.max.replace(tzinfo=UTC)  # not running, never said to have ended: it has just happened
