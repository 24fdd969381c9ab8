"""PodDisruptionBudgets, matched to pods on nodes when a preemption asks."""

from __future__ import annotations

from kohort.apimachinery.labels import matches
from kohort.place.state import ClusterState
from kohort.place.victims import Budget
from kohort.scheduler.model import DisruptionBudget


class DisruptionBudgets:
    """By namespace and name."""

    def __init__(self) -> None:
        self._known: dict[str, DisruptionBudget] = {}

    def set(self, budget: DisruptionBudget) -> None:
        self._known[f"{budget.metadata.namespace}/{budget.metadata.name}"] = budget

    def drop(self, key: str) -> None:
        self._known.pop(key, None)

    def cover(self, state: ClusterState) -> list[Budget]:
        """An empty selector matches nothing, nor does a pod without labels."""
        found = []
        for key, budget in self._known.items():
            selector, space = budget.spec.selector, budget.metadata.namespace
            gone = budget.status.disrupted_pods or {}
            covered = frozenset(
                pod.uid
                for pod, _ in state.pods_of([space])
                if selector and pod.labels and pod.name not in gone and matches(selector, pod.labels)
            )
            found.append(Budget(key, covered, budget.status.disruptions_allowed))
        return found
