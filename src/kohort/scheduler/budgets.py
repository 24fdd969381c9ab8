"""PodDisruptionBudgets, matched to pods on nodes when a preemption asks.

Their status is written by a controller that sees an eviction later than we ask for it. So each eviction is charged here
until the status has fallen for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kohort.apimachinery.labels import matches
from kohort.place.state import ClusterState
from kohort.place.victims import Budget
from kohort.scheduler.model import DisruptionBudget, Pod

# After a pod has gone: its going may not change the status at all, if it was not healthy or another took its place.
_FORGET_AFTER: Final = 60.0


@dataclass(slots=True)
class _Charge:
    """An eviction that a budget's status does not show yet. `left`: the watch has shown that the pod goes."""

    left: bool = False
    since: float = 0.0


class DisruptionBudgets:
    """By namespace and name."""

    def __init__(self) -> None:
        self._known: dict[str, DisruptionBudget] = {}
        self._charges: dict[str, dict[str, _Charge]] = {}  # budget -> uid of the pod

    def set(self, budget: DisruptionBudget) -> None:
        key = f"{budget.metadata.namespace}/{budget.metadata.name}"
        before = self._known.get(key)
        self._known[key] = budget
        charges = self._charges.get(key)
        if charges and before is not None:
            fallen = before.status.disruptions_allowed - budget.status.disruptions_allowed
            for uid in [uid for uid, charge in charges.items() if charge.left][: max(fallen, 0)]:
                del charges[uid]

    def drop(self, key: str) -> None:
        self._known.pop(key, None)
        self._charges.pop(key, None)

    # ---- evictions under way

    def charge(self, pod: Pod, now: float) -> None:
        meta = pod.metadata
        for key, budget in self._known.items():
            if budget.metadata.namespace == meta.namespace and _covers(budget, meta.name, meta.labels):
                self._charges.setdefault(key, {})[meta.uid] = _Charge(since=now)

    @property
    def charged(self) -> bool:
        return bool(self._charges)

    def left(self, uid: str) -> None:
        """The watch has shown that the pod goes, or is gone."""
        for charges in self._charges.values():
            if uid in charges:
                charges[uid].left = True

    def release(self, uid: str) -> None:
        """It stays after all."""
        for charges in self._charges.values():
            charges.pop(uid, None)

    def expire(self, now: float) -> None:
        for key, charges in list(self._charges.items()):
            for uid, charge in list(charges.items()):
                if not charge.left:
                    charge.since = now
                elif now - charge.since >= _FORGET_AFTER:
                    del charges[uid]
            if not charges:
                del self._charges[key]

    # ---- for a plan

    def cover(self, state: ClusterState) -> list[Budget]:
        """An empty selector matches nothing, nor does a pod without labels. A pod that is going is paid for."""
        found = []
        for key, budget in self._known.items():
            covered = frozenset(
                pod.uid
                for pod, _ in state.pods_of([budget.metadata.namespace])
                if not pod.terminating and _covers(budget, pod.name, pod.labels)
            )
            allowed = budget.status.disruptions_allowed - len(self._charges.get(key, ()))
            found.append(Budget(key, covered, max(allowed, 0)))
        return found


def _covers(budget: DisruptionBudget, name: str, labels: Any) -> bool:
    selector = budget.spec.selector
    return bool(selector and labels and name not in (budget.status.disrupted_pods or {}) and matches(selector, labels))
