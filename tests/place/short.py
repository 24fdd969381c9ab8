"""Short words for unit tests of the engine: nodes, pods and rules in one line each."""

from __future__ import annotations

from typing import Any

from kohort.place.demand import Leaf, PendingPod
from kohort.place.engine import Engine
from kohort.place.profile import Profile
from kohort.place.search import Search
from kohort.place.state import ClusterState

HOST = "kubernetes.io/hostname"


class Short:
    """A cluster and its engine."""

    def __init__(self, profile: Profile | None = None, **nodes: float) -> None:
        self.state = ClusterState()
        self.engine = Engine(self.state, profile or Profile())
        for name, cpu in nodes.items():
            self.node(name, cpu)

    def node(self, name: str, cpu: float = 4, *, taints: Any = (), more: Any = None, **labels: str) -> int:
        offers = {"cpu": str(cpu), "memory": "64Gi", "pods": "110", **(more or {})}
        return self.state.set_node(
            {
                "metadata": {"name": name, "labels": {HOST: name, **labels}},
                "spec": {"taints": list(taints)},
                "status": {"allocatable": offers},
            }
        )

    def obj(self, name: str, cpu: float = 1, *, labels: Any = None, asks: Any = None, **spec: Any) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": str(cpu), **(asks or {})}}}
        containers = spec.pop("containers", [container])
        metadata = {"name": name, "uid": name, "namespace": spec.pop("namespace", "default"), "labels": labels or {}}
        return {"metadata": metadata, "spec": {"containers": containers, **spec}}

    def run(self, name: str, node: str, cpu: float = 1, *, terminating: bool = False, **pod: Any) -> None:
        """A pod on a node."""
        obj = self.obj(name, cpu, **pod)
        if terminating:
            obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.state.set_pod(obj, node)

    def pod(self, name: str, cpu: float = 1, *, nominated: str | None = None, **pod: Any) -> PendingPod:
        """A pod that waits."""
        obj = self.obj(name, cpu, **pod)
        row = None if nominated is None else self.state.row(nominated)
        return PendingPod(name, self.state.equivalence_class(obj), obj["metadata"]["labels"], row)

    def place(self, *pods: PendingPod, minimum: int | None = None, **leaf: Any) -> dict[str, str]:
        """Where a gang of these pods goes (all of them, unless a minimum is given); empty: it does not fit."""
        demand = Leaf("g", pods, len(pods) if minimum is None else minimum, **leaf)
        mark = self.engine.mark()
        result = Search(self.engine).place(demand)
        self.engine.undo(mark)
        return {key: self.state.node(row).name for key, row in result.placed.items()}


def pod_anti_affinity(labels: dict[str, str], key: str = HOST, **more: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {_HARD: [_term(labels, key, **more)]}}}


def pod_affinity(*terms: tuple[dict[str, str], str], **more: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {_HARD: [_term(labels, key, **more) for labels, key in terms]}}}


def likes(labels: dict[str, str], key: str, weight: int = 10, eq_class: str = "podAffinity") -> dict[str, Any]:
    return {"affinity": {eq_class: {_SOFT: [{"weight": weight, "podAffinityTerm": _term(labels, key)}]}}}


def spread(labels: dict[str, str], key: str, skew: int = 1, hard: bool = True, **more: Any) -> dict[str, Any]:
    rule = {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
        **more,
    }
    return {"topologySpreadConstraints": [rule]}


_HARD, _SOFT = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def _term(labels: dict[str, str], key: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}
