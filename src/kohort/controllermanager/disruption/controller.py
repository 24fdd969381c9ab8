"""The disruption controller as the runtime sees it: a budget, the pods it selects, and what controls those."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime

from kohort.api.kind import Object
from kohort.api.objects import namespace_of
from kohort.apimachinery.labels import matches
from kohort.controllermanager.disruption.reconcile import reconcile
from kohort.controllermanager.pods import is_ready
from kohort.controllers.adopters import Adopters
from kohort.controllers.controller import Controller, Enqueue, Key, Reader, Watch, enqueue_itself, enqueue_nothing
from kohort.controllers.reconcile import Reconcile


def disruption_controller() -> Controller:
    budgets = Adopters()

    def reconcile_key(key: Key, reader: Reader, now: datetime) -> Reconcile:
        budget = reader.get("PodDisruptionBudget", key)
        selector = (budget.get("spec") or {}).get("selector") if budget is not None else None
        pods = reader.indexed("Pod", "namespace", key.namespace) if selector is not None else []
        chosen = [pod for pod in pods if matches(selector, pod["metadata"].get("labels"))]
        return reconcile(budget, chosen, lambda kind, *found: reader.get(kind, Key(*found)), now)

    def of_budget(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        budgets.see(old, new)
        return enqueue_itself(old, new)

    def of_pod(old: Object | None, new: Object | None) -> Iterable[Enqueue]:
        if old is not None and new is not None and _counts(old) == _counts(new):
            return
        keys = {key for pod in (old, new) if pod is not None for key in budgets.of(pod)}
        yield from (Enqueue(key) for key in sorted(keys))

    watches = (
        Watch("policy/v1", "PodDisruptionBudget", of_budget),
        Watch("v1", "Pod", of_pod, {"namespace": _namespace}),
        Watch("apps/v1", "Deployment", enqueue_nothing),
        Watch("apps/v1", "ReplicaSet", enqueue_nothing),
        Watch("apps/v1", "StatefulSet", enqueue_nothing),
        Watch("v1", "ReplicationController", enqueue_nothing),
    )
    return Controller(name="disruption", watches=watches, reconcile=reconcile_key, conditions=False)


def _namespace(obj: Object) -> Iterable[Hashable]:
    return (namespace_of(obj),)


def _counts(pod: Object) -> tuple[object, ...]:
    """What of a pod a budget looks at."""
    meta = pod["metadata"]
    return (
        meta.get("labels"), meta.get("uid"), meta.get("deletionTimestamp"), meta.get("ownerReferences"), is_ready(pod)
    )  # fmt: skip
