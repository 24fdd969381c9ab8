"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import meta_of, name_of, status_of
from kohort.apimachinery import times
from kohort.controllermanager.deployment import constants
from kohort.controllermanager.deployment.numbers import counted, max_unavailable, replicas, total
from kohort.controllers.conditions import condition, drop_condition

Status = dict[str, Any]


def deadline(deployment: Object) -> int | None:
    """progressDeadlineSeconds; None: it may take as long as it takes."""
    found = deployment["spec"].get("progressDeadlineSeconds")
    return None if found is None or int(found) == constants.NO_DEADLINE else int(found)


def set_condition(status: Status, now: datetime, kind: str, value: str, reason: str, message: str, **more: Any) -> None:
    """As Deployments have it: the same status for the same reason is nothing new, whatever the message."""
    known = condition(status, kind)
    if known is not None and known.get("status") == value and known.get("reason") == reason:
        return
    stamp = times.seconds(now)
    moved = known["lastTransitionTime"] if known is not None and known.get("status") == value else stamp
    new = {"type": kind, "status": value, "lastUpdateTime": stamp, "lastTransitionTime": moved, "reason": reason}
    drop_condition(status, kind)
    status["conditions"] = [*(status.get("conditions") or ()), {**new, "message": message, **more}]


def counts(deployment: Object, status: Status, sets: Sequence[Object], new: Object | None, now: datetime) -> Status:
    """`status` with today's numbers and the condition Available."""
    found = copied(status)
    numbers = {
        "observedGeneration": int(meta_of(deployment).get("generation") or 0),
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": counted([new], "replicas"),
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": counted(sets, "availableReplicas"),
    }
    numbers["unavailableReplicas"] = max(0, total(sets) - numbers["availableReplicas"])
    for name, value in numbers.items():
        found.pop(name, None)
        if value:
            found[name] = value
    found.pop("terminatingReplicas", None)
    if all("terminatingReplicas" in status_of(rs) for rs in sets):
        found["terminatingReplicas"] = counted(sets, "terminatingReplicas")
    if numbers["availableReplicas"] >= replicas(deployment) - max_unavailable(deployment):
        text = "Deployment has minimum availability."
        set_condition(found, now, constants.AVAILABLE, "True", constants.ENOUGH, text)
    else:
        text = "Deployment does not have minimum availability."
        set_condition(found, now, constants.AVAILABLE, "False", constants.TOO_FEW, text)
    return found


def is_complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    wanted = replicas(deployment)
    members = ("updatedReplicas", "replicas", "availableReplicas")
    observed = int(status.get("observedGeneration") or 0) >= int(meta_of(deployment).get("generation") or 0)
    return observed and all(int(status.get(name) or 0) == wanted for name in members)


def follow_rollout(
    deployment: Object, status: Status, sets: Sequence[Object], new: Object | None, now: datetime
) -> None:
    """Progressing and ReplicaFailure, in place. `status` has today's numbers, the Deployment those of before."""
    if deadline(deployment) is None:
        drop_condition(status, constants.PROGRESSING)
    elif not _has_ended(status):
        _progress(deployment, status, new, now)
    failure = _failure(sets, new)
    if failure is None:
        drop_condition(status, constants.REPLICA_FAILURE)
    else:
        since = failure.get("lastTransitionTime")
        text = str(failure.get("message") or "")
        reason, value = str(failure.get("reason")), str(failure.get("status"))
        times_ = {"lastTransitionTime": since, "lastUpdateTime": since}
        set_condition(status, now, constants.REPLICA_FAILURE, value, reason, text, **times_)


def _has_ended(status: Status) -> bool:
    """A rollout that is complete stays so until there are pods of another template."""
    known = condition(status, constants.PROGRESSING) or {}
    same = int(status.get("replicas") or 0) == int(status.get("updatedReplicas") or 0)
    return same and known.get("reason") == constants.COMPLETE


def _progress(deployment: Object, status: Status, new: Object | None, now: datetime) -> None:
    what = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        text = f"{what} has successfully progressed."
        set_condition(status, now, constants.PROGRESSING, "True", constants.COMPLETE, text)
    elif _has_moved(status_of(deployment), status):
        known = condition(status, constants.PROGRESSING) or {}
        drop_condition(status, constants.PROGRESSING)  # progress counts anew, also for the same reason
        more = {"lastTransitionTime": known["lastTransitionTime"]} if known.get("status") == "True" else {}
        text = f"{what} is progressing."
        set_condition(status, now, constants.PROGRESSING, "True", constants.UPDATED, text, **more)
    elif timed_out(deployment, status, now):
        text = f"{what} has timed out progressing."
        set_condition(status, now, constants.PROGRESSING, "False", constants.TIMED_OUT, text)


def _has_moved(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    def value(status: Mapping[str, Any], name: str) -> int:
        return int(status.get(name) or 0)

    def outdated(status: Mapping[str, Any]) -> int:
        return value(status, "replicas") - value(status, "updatedReplicas")

    grown = any(
        value(new, name) > value(old, name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return grown or outdated(new) < outdated(old)


def timed_out(deployment: Object, status: Mapping[str, Any], now: datetime) -> bool:
    known = condition(status, constants.PROGRESSING)
    if known is None or known.get("reason") == constants.COMPLETE:
        return False
    left = deadline_in(deployment, status, now)
    return known.get("reason") == constants.TIMED_OUT or (left is not None and left < 0)


def deadline_in(deployment: Object, status: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds until the rollout will have taken too long; None: it has, or has ended, or nobody counts."""
    known, seconds = condition(status, constants.PROGRESSING), deadline(deployment)
    if known is None or seconds is None or known.get("reason") in (constants.TIMED_OUT, constants.COMPLETE):
        return None
    since = times.parse(known.get("lastUpdateTime")) or now
    return (since + timedelta(seconds=seconds) - now).total_seconds()


def _failure(sets: Sequence[Object], new: Object | None) -> dict[str, Any] | None:
    """Of the new ReplicaSet, else of any."""
    for rs in [*([new] if new is not None else []), *sets]:
        found = condition(status_of(rs), constants.REPLICA_FAILURE)
        if found is not None:
            return found
    return None
