"""Pods that disagree with their leader (spec jobset 2.4): pods of a Job that has a topology domain for itself.

The first pod of such a Job decides where the others go. If they were sent elsewhere, because it has been replaced or
its node has another label by now, they are deleted, marked so that a pod failure policy can tell.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from kohort.api.kind import Object
from kohort.apimachinery import times
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_nothing
from kohort.controllers.reconcile import Reconcile, ReconcileError, Result, Step, Write
from kohort.controllers.writes import delete, patch
from kohort.kinds.jobset.api import constants, placement

NAME: Final = "jobset-placement"
AT_ONCE: Final = 50
_REASON: Final = "ExclusivePlacementViolation"


def placement_controller() -> Controller:
    watches = (
        Watch("v1", "Pod", _enqueue, {"exclusive": _indexed}, annotation=constants.EXCLUSIVE_TOPOLOGY),
        Watch("v1", "Node", enqueue_nothing),
    )

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        pods = reader.indexed("Pod", "exclusive", key)
        return settle(pods, lambda name: reader.get("Node", Key("", name)), now)

    def pod_of(key: Key, reader: Reader) -> Object | None:
        return next(iter(reader.indexed("Pod", "exclusive", key)), None)

    return Controller(name=NAME, watches=watches, reconcile=reconcile_key, subject=pod_of, conditions=False)


def settle(pods: Sequence[Object], node: Any, now: datetime) -> Reconcile:
    """`pods`: those of one Job. `node`: a Node by name."""
    leader = next((pod for pod in pods if placement.is_leader(pod) and _is_placed(pod)), None)
    followers = [pod for pod in pods if not placement.is_leader(pod) and _sent(pod) is not None]
    if leader is None or not followers:
        return Result()
    topology = str(placement.topology_of(leader))
    found = node(leader["spec"]["nodeName"])
    domain = ((found or {}).get("metadata", {}).get("labels") or {}).get(topology)
    if all(_sent(pod) == domain for pod in followers):
        return Result()
    if domain is None:
        raise ReconcileError(
            f"node {leader['spec']['nodeName']} of pod {leader['metadata']['name']} has no label {topology}"
        )
    leaving = [pod for pod in followers if not pod["metadata"].get("deletionTimestamp")]
    for start in range(0, len(leaving), AT_ONCE):
        batch = leaving[start : start + AT_ONCE]
        for writes in ([_mark(pod, now) for pod in batch], [delete(pod) for pod in batch]):
            answers = yield Step(writes)
            problems = [one.refusal.message for one in answers if one.refusal and not one.refusal.not_found]
            if problems:
                raise ReconcileError("; ".join(problems))
    return Result()


def _is_placed(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName")) and not pod["metadata"].get("deletionTimestamp")


def _sent(pod: Object) -> str | None:
    """The domain that the pod's node selector names; none where the template's affinity sees to it."""
    topology = placement.topology_of(pod)
    return (pod["spec"].get("nodeSelector") or {}).get(topology) if topology else None


def _mark(pod: Object, now: datetime) -> Write:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": _REASON,
        "message": "the pod is not in the topology domain of its Job",
        "lastTransitionTime": times.seconds(now),
    }
    others = [one for one in (pod.get("status") or {}).get("conditions") or () if one.get("type") != "DisruptionTarget"]
    body = {"metadata": {"uid": pod["metadata"].get("uid")}, "status": {"conditions": [*others, condition]}}
    return patch(pod, body, "status")


def _indexed(pod: Object) -> Iterable[Hashable]:
    """By Job: its uid cannot be another's."""
    if placement.topology_of(pod) is not None and (uid := placement.owner_uid(pod)):
        yield Key(str(pod["metadata"].get("namespace") or ""), uid)


def _enqueue(_: Object | None, new: Object | None) -> Iterable[Enqueue]:
    if new is not None and placement.topology_of(new) is not None and (uid := placement.owner_uid(new)):
        yield Enqueue(Key(str(new["metadata"].get("namespace") or ""), uid))
