"""A cluster in short words for scenario tests: the objects of the recorded scheduling scenarios, decided by the engine.

It stands where a scheduler will stand: roots by priority and age, gates by counting members, each root placed whole or
not at all, again and again until nothing more is bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from kohort.place.claims import Claim
from kohort.place.demand import Branch, Demand, Leaf, Outcome, PendingPod, Reason
from kohort.place.engine import Engine
from kohort.place.preempt import Preemptor
from kohort.place.score import Profile
from kohort.place.search import Search
from kohort.place.state import ClusterState
from kohort.place.victims import Budget, GroupInfo, find_victim_sets

SPACE = "default"


def pod_spec(item: dict[str, Any]) -> dict[str, Any]:
    """The spec of a pod written in short."""
    container: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": item.get("cpu", "1")}}}
    if "port" in item or "hostPort" in item:
        container["ports"] = [{"containerPort": 80, "hostPort": item.get("hostPort") or item["port"]}]
    spec: dict[str, Any] = {"containers": [container]}
    if item.get("claim"):
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": item["claim"]}}]
    if item.get("select"):
        spec["nodeSelector"] = item["select"]
    if item.get("tolerations"):
        spec["tolerations"] = item["tolerations"]
    affinity = {}
    for word, member in (("apart", "podAntiAffinity"), ("together", "podAffinity")):
        if word in item:
            rule = item[word]
            term = {"labelSelector": {"matchLabels": rule["from"]}, "topologyKey": rule["by"]}
            affinity[member] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if affinity:
        spec["affinity"] = affinity
    return spec


@dataclass
class Cluster:
    """Objects by name, in creation order."""

    state: ClusterState = field(default_factory=ClusterState)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, Outcome] = field(default_factory=dict)
    second: dict[str, int] = field(default_factory=dict)  # when a group was created: times have whole seconds
    now: int = 0
    budgets: list[dict[str, Any]] = field(default_factory=list)
    evicted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.engine = Engine(self.state, Profile(resources=("cpu",)))

    def node(self, item: dict[str, Any]) -> None:
        name = item["node"]
        labels = {"kubernetes.io/hostname": name, **item.get("labels", {})}
        status = {"allocatable": {"cpu": item["cpu"], "memory": "64Gi", "pods": "110"}}
        taints = item.get("taints") or []
        self.state.set_node(
            {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}, "status": status}
        )

    def create(self, item: dict[str, Any]) -> None:
        self.now += bool(item.get("nextSecond"))
        if "node" in item and "pod" not in item:
            self.node(item)
        elif "pod" in item:
            self.pods[item["pod"]] = dict(item)
            if "node" in item:
                self._seat(item["pod"], item["node"])
        elif "claim" in item:
            self.state.claims.put(f"{SPACE}/{item['claim']}", Claim(once=item["mode"] == "ReadWriteOncePod"))
        elif "pdb" in item:
            self.budgets.append(item)
        elif "group" in item or "composite" in item:
            name = item.get("group") or item["composite"]
            self.groups[name] = dict(item)
            self.second[name] = self.now

    def change(self, kind: str, name: str, what: dict[str, Any]) -> None:
        if "minCount" in what:
            self.groups[name]["gang"] = what["minCount"]
        elif "ungate" in what:
            del self.pods[name]["gates"]
        elif what.get("phase") in {"Succeeded", "Failed"}:
            self.delete(kind, name)
        else:
            raise AssertionError(f"no such change: {what}")

    def delete(self, kind: str, name: str) -> None:
        if kind == "pod":
            self.pods.pop(name)
            if self.bound.pop(name, None):
                self.state.remove_pod(name)
        elif kind == "node":
            self.state.remove_node(name)
        else:
            self.groups.pop(name)

    def _seat(self, name: str, node: str) -> None:
        item = self.pods[name]
        key = self.state.assigned_pod(self._object(name))
        started = f"{10_000 - item['started']:05}" if "started" in item else ""
        self.state.put_pod(replace(key, priority=_number(item), group=item.get("in"), started=started), node)
        self.bound[name] = node

    # ---- deciding

    def settle(self) -> None:
        """Decide until nothing more is bound."""
        while self._round():
            pass

    def _round(self) -> bool:
        waiting = [name for name in self.pods if name not in self.bound]
        roots: dict[str, Demand] = {}
        for name in waiting:
            root = self._root(name)
            if root is not None and root not in roots:
                roots[root] = self._demand(root)
        order = sorted(roots, key=lambda root: -self._priority(root))
        bound = 0
        for root in order:
            if self._ready(roots[root]) and not self._gated(root):
                bound += self._decide(roots[root])
        return bound > 0

    def _root(self, pod: str) -> str | None:
        """The root that a pod belongs to; itself if it is alone; None if the chain is broken."""
        name = self.pods[pod].get("in")
        if name is None:
            return pod
        seen: set[str] = set()
        while name in self.groups and name not in seen:
            seen.add(name)
            parent = self.groups[name].get("parent")
            if parent is None:
                return str(name)
            name = parent
        return None

    def _priority(self, name: str) -> int:
        return _number(self.groups.get(name) or self.pods[name])

    def _gated(self, root: str) -> bool:
        return any(
            item.get("gates") for pod, item in self.pods.items() if pod not in self.bound and self._root(pod) == root
        )

    def _demand(self, name: str) -> Demand:
        item = self.groups.get(name)
        if item is None:
            return Leaf(name, [self._pod(name)])
        if "composite" in item:
            children = [child for child, other in self.groups.items() if other.get("parent") == name]
            children.sort(key=lambda child: (self.second[child], child))
            return Branch(name, [self._demand(child) for child in children], item.get("gang"), item.get("topology"))
        members = [pod for pod, other in self.pods.items() if other.get("in") == name]
        running = [self.state.row(self.bound[pod]) for pod in members if pod in self.bound]
        pending = [self._pod(pod) for pod in members if pod not in self.bound]
        return Leaf(name, pending, item.get("gang"), item.get("topology"), [row for row in running if row is not None])

    def _pod(self, name: str) -> PendingPod:
        item = self.pods[name]
        nominated = self.state.row(item["nominated"]) if "nominated" in item else None
        return PendingPod(name, self.state.equivalence_class(self._object(name)), item.get("labels", {}), nominated)

    def _object(self, name: str) -> dict[str, Any]:
        item = self.pods[name]
        metadata = {"name": name, "uid": name, "namespace": SPACE, "labels": item.get("labels", {})}
        return {"metadata": metadata, "spec": pod_spec(item)}

    def _ready(self, group: Demand) -> bool:
        """The gate: enough members exist."""
        if isinstance(group, Leaf):
            return len(group.pods) + len(group.running) >= group.need
        return sum(self._ready(child) for child in group.children) >= group.need

    def _decide(self, demand: Demand) -> bool:
        mark = self.engine.mark()
        result = Search(self.engine).place(demand)
        self.engine.undo(mark)
        self.verdicts.update(result.outcomes)
        for pod, row in result.placed.items():
            self._seat(pod, self.state.node(row).name)
        return bool(result.placed) or self._preempt(demand)

    def _preempt(self, demand: Demand) -> bool:
        """Evict for a root that does not fit; victims are gone at once."""
        items = [self.pods[pod.key] for leaf in demand.leaves() for pod in leaf.pods]
        if any("never" in item.get("priority", "") or item.get("preemptionPolicy") == "Never" for item in items):
            return False
        group_infos = {
            name: GroupInfo(
                item.get("parent"),
                item.get("disruption") == "all",
                _number(item),
                "composite" in item,
                None if "composite" in item else item.get("gang"),
            )
            for name, item in self.groups.items()
        }
        victim_sets = find_victim_sets(self.state, group_infos)
        budgets = [
            Budget(one["pdb"], frozenset(p for p, i in self.pods.items() if _covers(one, i)), one["allowed"])
            for one in self.budgets
        ]
        preemptor, priority = Preemptor(self.engine, victim_sets, budgets), self._priority(demand.name)
        alone = demand if isinstance(demand, Leaf) and demand.name in self.pods else None
        plan = preemptor.plan(demand, priority) if alone is None else preemptor.plan_pod(alone, priority)
        if plan is None:
            return False
        for victim_set in plan.victims:
            for victim in victim_set.pods:
                self.delete("pod", victim.pod.name)
                self.evicted.add(victim.pod.name)
        return True

    def reason(self, group: str) -> Reason | None:
        return self.verdicts[group].reason


def _number(item: dict[str, Any]) -> int:
    return int(item.get("priority", "p0").removeprefix("p").split("-")[0])


def _covers(budget: dict[str, Any], item: dict[str, Any]) -> bool:
    return budget["match"].items() <= item.get("labels", {}).items()
