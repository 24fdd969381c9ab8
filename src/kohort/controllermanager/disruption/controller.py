"""The disruption controller as the runtime sees it: a budget, the pods it selects, and what controls those."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kohort.api.kind import Object
from kohort.controllermanager.disruption.reconcile import reconcile
from kohort.controllermanager.pods import is_ready
from kohort.controllermanager.selections import Selections
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_itself, enqueue_nothing
from kohort.controllers.reconcile import Reconcile


def disruption_controller() -> Controller:
    budgets = Selections()

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        budget = reader.get("PodDisruptionBudget", key)
        return reconcile(budget, budgets.pods(key, reader), lambda kind, *found: reader.get(kind, Key(*found)), now)

    def of_budget(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        budgets.see_owner(old, new)
        return enqueue_itself(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        if old is not None and new is not None and _counts(old) == _counts(new):
            return
        yield from (Enqueue(key) for key in sorted(budgets.see_pod(old, new)))

    watches = (
        Watch("policy/v1", "PodDisruptionBudget", of_budget),
        Watch("v1", "Pod", of_pod),
        Watch("apps/v1", "Deployment", enqueue_nothing),
        Watch("apps/v1", "ReplicaSet", enqueue_nothing),
        Watch("apps/v1", "StatefulSet", enqueue_nothing),
        Watch("v1", "ReplicationController", enqueue_nothing),
    )
    return Controller(name="disruption", watches=watches, reconcile=reconcile_key, conditions=False)


def _counts(pod: Object) -> tuple[object, ...]:
    """What of a pod a budget looks at."""
    meta = pod["metadata"]
    return (
        meta.get("labels"), meta.get("uid"), meta.get("deletionTimestamp"), meta.get("ownerReferences"), is_ready(pod)
    )  # fmt: skip
