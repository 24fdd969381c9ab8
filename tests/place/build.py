"""Cases of the independent model as objects for the engine, and its answers back."""

from __future__ import annotations

from typing import Any

from tests.place.model import Case, Group, Kind

from kohort.place.demand import Branch, Demand, Leaf, PendingPod, Result
from kohort.place.engine import Engine
from kohort.place.state import ClusterState


def pod_object(name: str, eq_class: Kind, **more: Any) -> dict[str, Any]:
    requests = {"cpu": str(eq_class.cpu), "memory": f"{eq_class.memory}Gi"}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": requests}}], **more}
    if eq_class.select:
        spec["nodeSelector"] = dict(eq_class.select)
    if eq_class.pod_anti_affinity:
        term = {
            "topologyKey": eq_class.pod_anti_affinity[0],
            "labelSelector": {"matchLabels": {"colour": eq_class.pod_anti_affinity[1]}},
        }
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"colour": eq_class.colour} if eq_class.colour else {}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, "spec": spec}


def node_object(name: str, cpu: int, memory: int, labels: dict[str, str]) -> dict[str, Any]:
    status = {"allocatable": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"}}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def state_of(case: Case) -> ClusterState:
    state = ClusterState()
    for node in case.nodes:
        state.set_node(node_object(node.name, node.cpu, node.memory, node.labels))
    for number, (eq_class, where) in enumerate(case.others):
        state.set_pod(pod_object(f"other-{number}", eq_class), where)
    for leaf in case.root.leaves():
        for number, (eq_class, where) in enumerate(leaf.running):
            state.set_pod(pod_object(f"{leaf.name}-running-{number}", eq_class), where)
    return state


def demand_of(state: ClusterState, group: Group) -> Demand:
    if not group.is_leaf:
        return Branch(group.name, [demand_of(state, child) for child in group.children], group.need, group.key)
    pods = [pending(state, f"{group.name}/{number}", eq_class) for number, eq_class in enumerate(group.pods)]
    running = [row for _, where in group.running if (row := state.row(where)) is not None]
    return Leaf(group.name, pods, group.need, group.key, running)


def pending(state: ClusterState, key: str, eq_class: Kind) -> PendingPod:
    obj = pod_object(key, eq_class)
    return PendingPod(key, state.equivalence_class(obj), obj["metadata"]["labels"])


def placed_of(engine: Engine, result: Result) -> dict[str, dict[int, str]]:
    placed: dict[str, dict[int, str]] = {}
    for key, row in result.placed.items():
        leaf, _, number = key.rpartition("/")
        placed.setdefault(leaf, {})[int(number)] = engine.state.node(row).name
    return placed
