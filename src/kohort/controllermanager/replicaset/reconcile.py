"""One reconcile of a ReplicaSet or ReplicationController: claim pods, make or remove some, write the status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kohort.api.copying import copied
from kohort.api.kind import Object
from kohort.api.objects import is_deleting, meta_of, status_of
from kohort.apimachinery.labels import matches
from kohort.controllermanager import pods as pods_
from kohort.controllermanager.claims import claim
from kohort.controllermanager.podcontrol import Made, create_all, delete_all
from kohort.controllermanager.podtemplate import new_pod
from kohort.controllermanager.replicaset.ranking import to_delete
from kohort.controllers.conditions import drop_condition, set_condition
from kohort.controllers.reconcile import (
    CREATES_AT_MOST,
    Part,
    Reconcile,
    ReconcileError,
    Result,
    must,
    one,
)
from kohort.controllers.writes import update

REPLICA_FAILURE: Final = "ReplicaFailure"


@dataclass(frozen=True, slots=True)
class View:
    """`pods`: those that it controls or might adopt. `related`: pods of all ReplicaSets of its Deployment.

    `terminating`: whether the status counts pods that are on their way out, which a ReplicationController's does not.
    """

    owner: Object
    selector: Mapping[str, Any] | None
    pods: Sequence[Object]
    related: Sequence[Object]
    now: datetime
    terminating: bool = True


@dataclass(slots=True)
class _Acted:
    problem: str = ""
    reason: str = ""
    again: bool = False


def reconcile(view: View) -> Reconcile:
    active = yield from claim(view.owner, [pod for pod in view.pods if pods_.is_active(pod)], view.selector)
    acted = _Acted()
    if not is_deleting(view.owner):
        acted = yield from _manage(view, active)
    yield from _write_status(view, active, acted)
    if acted.problem:
        raise ReconcileError(acted.problem)
    after = pods_.next_available(active, int(view.owner["spec"].get("minReadySeconds") or 0), view.now)
    return Result(requeue_after=0.0 if acted.again else after)


def wanted_replicas(owner: Object) -> int:
    found = (owner.get("spec") or {}).get("replicas")
    return 1 if found is None else int(found)


def _manage(view: View, active: list[Object]) -> Part:
    """-> _Acted. The status tells of the pods as they were before: what was done comes back as changes of pods."""
    surplus = len(active) - wanted_replicas(view.owner)
    made: Made
    if surplus < 0:
        count = min(-surplus, CREATES_AT_MOST)
        template = view.owner["spec"].get("template") or {}
        made = yield from create_all(view.owner, [new_pod(view.owner, template) for _ in range(count)])
        return _Acted(made.problem, "FailedCreate", again=count < -surplus)
    if surplus > 0:
        count = min(surplus, CREATES_AT_MOST)
        made = yield from delete_all(view.owner, to_delete(active, view.related, count, view.now))
        return _Acted(made.problem, "FailedDelete", again=count < surplus)
    return _Acted()


def _write_status(view: View, active: Sequence[Object], acted: _Acted) -> Part:
    owner = view.owner
    status = _status(view, active)
    if acted.problem and not _has_failure(status):
        set_condition(status, view.now, REPLICA_FAILURE, True, acted.reason, acted.problem)
    elif not acted.problem:
        drop_condition(status, REPLICA_FAILURE)
        if not status.get("conditions"):
            status.pop("conditions", None)
    if status != status_of(owner):
        write = update({**owner, "status": status}, "status")
        must(write, (yield from one(write)))


def _has_failure(status: Mapping[str, Any]) -> bool:
    return any(known.get("type") == REPLICA_FAILURE for known in status.get("conditions") or ())


def _status(view: View, active: Sequence[Object]) -> dict[str, Any]:
    owner, status = view.owner, copied(status_of(view.owner))
    least = int(owner["spec"].get("minReadySeconds") or 0)
    labels = ((owner["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    counts = {
        "fullyLabeledReplicas": sum(matches({"matchLabels": labels}, meta_of(pod).get("labels")) for pod in active),
        "readyReplicas": sum(map(pods_.is_ready, active)),
        "availableReplicas": sum(pods_.is_available(pod, least, view.now) for pod in active),
        "observedGeneration": int(meta_of(owner).get("generation") or 0),
    }
    status["replicas"] = len(active)
    for name, value in counts.items():
        status.pop(name, None)
        if value:
            status[name] = value
    if view.terminating:
        status["terminatingReplicas"] = sum(map(pods_.is_terminating, view.pods))
    return status
