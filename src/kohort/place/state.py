"""The cluster as arrays, kept up to date change by change.

Nodes are rows; a removed node's row is reused. Whoever caches something per row reads the two change logs: `nodes`
(what a node is: labels, taints, presence) and `usage` (what is taken on it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kohort.place.changes import ChangeLog
from kohort.place.columns import FIRST_RESOURCES, Amounts, LabelColumn, Mask, Names
from kohort.place.pairs import PairTerms
from kohort.place.requests import allocatable
from kohort.place.shapes import SCORED, Shape, Shapes, Taint

_FIRST_ROWS = 16


@dataclass(frozen=True, slots=True)
class PodKey:
    """What the engine remembers of a pod that sits on a node."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    shape: Shape
    priority: int = 0
    group: str | None = None  # namespace/name of its PodGroup
    started: str = ""
    terminating: bool = False


@dataclass(slots=True)
class NodeFacts:
    """A node beyond its numbers."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    pods: dict[str, PodKey] = field(default_factory=dict)
    ports: dict[tuple[str, str, int], int] = field(default_factory=dict)  # (protocol, ip, port) -> pods that hold it


class ClusterState:
    """Nodes and the pods on them."""

    def __init__(self) -> None:
        self.resources = Names(FIRST_RESOURCES)
        self.shapes = Shapes(self.resources)
        self.alloc: Amounts = np.zeros((_FIRST_ROWS, len(self.resources)), np.int64)
        self.used: Amounts = np.zeros_like(self.alloc)
        self.weighed: Amounts = np.zeros((_FIRST_ROWS, len(SCORED)), np.int64)  # as scores see it
        self.alive: Mask = np.zeros(_FIRST_ROWS, np.bool_)
        self.facts: list[NodeFacts | None] = [None] * _FIRST_ROWS
        self.labels: dict[str, LabelColumn] = {}
        self.nodes = ChangeLog()
        self.usage = ChangeLog()
        self.pairs = PairTerms(self)
        self._row: dict[str, int] = {}
        self._free: list[int] = list(range(_FIRST_ROWS - 1, -1, -1))
        self._where: dict[str, int] = {}  # pod uid -> row
        self._homeless: dict[str, dict[str, PodKey]] = {}  # node name -> pods bound to a node not known yet

    # ---- nodes

    @property
    def rows(self) -> int:
        """Length of the arrays; some rows may be free."""
        return len(self.alive)

    def row(self, name: str) -> int | None:
        return self._row.get(name)

    def node(self, row: int) -> NodeFacts:
        facts = self.facts[row]
        assert facts is not None, f"row {row} is free"
        return facts

    def set_node(self, obj: Mapping[str, Any]) -> int:
        """Add or update a node from its API object."""
        meta, spec = obj["metadata"], obj.get("spec") or {}
        taints = tuple(Taint.of(one) for one in spec.get("taints") or ())
        if spec.get("unschedulable") and not any(taint.is_unschedulable for taint in taints):
            taints = (*taints, Taint.UNSCHEDULABLE)
        return self.put_node(meta["name"], allocatable(obj.get("status") or {}), meta.get("labels") or {}, taints)

    def put_node(
        self, name: str, offers: Mapping[str, int], labels: Mapping[str, str], taints: tuple[Taint, ...] = ()
    ) -> int:
        row = self._row.get(name)
        fresh = row is None
        if row is None:
            row = self._take_row()
            self._row[name] = row
            self.facts[row] = NodeFacts(name, {}, ())
            self.alive[row] = True
        facts = self.node(row)
        wanted = self._vector(offers)
        if fresh or facts.labels != labels or facts.taints != taints:
            self._move(facts, row, labels)
            facts.labels, facts.taints = dict(labels), taints
            self.nodes.add(row)
        if not np.array_equal(self.alloc[row], wanted):
            self.alloc[row] = wanted
            self.usage.add(row)
        for pod in self._homeless.pop(name, {}).values():
            self._seat(pod, row)
        self._trim()
        return row

    def remove_node(self, name: str) -> None:
        """The node goes; its pods stay known as bound to a node that is not there."""
        row = self._row.pop(name, None)
        if row is None:
            return
        pods = self.node(row).pods
        for pod in list(pods.values()):
            self._unseat(pod, row)
            self._homeless.setdefault(name, {})[pod.uid] = pod
        self.alive[row] = False
        self.alloc[row] = 0
        self.used[row] = 0
        self.weighed[row] = 0
        self._relabel(row, {})
        self.facts[row] = None
        self._free.append(row)
        self.nodes.add(row)
        self.usage.add(row)

    def _take_row(self) -> int:
        if not self._free:
            old = self.rows
            more = old
            self.alloc = np.concatenate([self.alloc, np.zeros((more, self.alloc.shape[1]), np.int64)])
            self.used = np.concatenate([self.used, np.zeros((more, self.used.shape[1]), np.int64)])
            self.weighed = np.concatenate([self.weighed, np.zeros((more, len(SCORED)), np.int64)])
            self.alive = np.concatenate([self.alive, np.zeros(more, np.bool_)])
            self.facts += [None] * more
            for column in self.labels.values():
                column.grow(old + more)
            self._free = list(range(old + more - 1, old - 1, -1))
        return self._free.pop()

    def _vector(self, amounts: Mapping[str, int]) -> Amounts:
        numbers = [(self.resources.number(name), value) for name, value in amounts.items()]
        self._widen()
        vector = np.zeros(self.alloc.shape[1], np.int64)
        for number, value in numbers:
            vector[number] = value
        return vector

    def _widen(self) -> None:
        """A resource that nobody named before gets a column."""
        missing = len(self.resources) - self.alloc.shape[1]
        if missing > 0:
            fresh = np.zeros((self.rows, missing), np.int64)
            self.alloc = np.hstack([self.alloc, fresh])
            self.used = np.hstack([self.used, fresh])

    def column(self, key: str) -> LabelColumn:
        """The label column of a key; filled when first asked for, kept up to date from then on."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = LabelColumn(self.rows)
            for row, facts in enumerate(self.facts):
                if facts is not None:
                    column.set(row, facts.labels.get(key))
        return column

    def _move(self, facts: NodeFacts, row: int, labels: Mapping[str, str]) -> None:
        """The node's labels change, and with them the domains that its pods are counted in."""
        for pod in facts.pods.values():
            self.pairs.remove(pod, row)
        self._relabel(row, labels)
        for pod in facts.pods.values():
            self.pairs.add(pod, row)

    def _relabel(self, row: int, labels: Mapping[str, str]) -> None:
        for key, column in self.labels.items():
            column.set(row, labels.get(key))

    def _trim(self) -> None:
        self.nodes.trim(self.rows)
        self.usage.trim(self.rows)

    # ---- pods

    def set_pod(self, obj: Mapping[str, Any], node: str) -> PodKey:
        """A bound pod, from its API object."""
        meta, spec = obj["metadata"], obj["spec"]
        key = PodKey(
            uid=meta["uid"],
            namespace=meta.get("namespace") or "default",
            name=meta["name"],
            labels=meta.get("labels") or {},
            shape=self.shapes.of_spec(spec, meta.get("namespace") or "default"),
            priority=spec.get("priority") or 0,
            group=group_of(obj),
            started=(obj.get("status") or {}).get("startTime") or "",
            terminating=meta.get("deletionTimestamp") is not None,
        )
        self.put_pod(key, node)
        return key

    def put_pod(self, pod: PodKey, node: str) -> None:
        """Seat a pod on a node, or note it for a node that is not known yet. Seating again replaces."""
        self.remove_pod(pod.uid)
        row = self._row.get(node)
        if row is None:
            self._homeless.setdefault(node, {})[pod.uid] = pod
        else:
            self._seat(pod, row)
        self._trim()

    def remove_pod(self, uid: str) -> None:
        row = self._where.get(uid)
        if row is not None:
            self._unseat(self.node(row).pods[uid], row)
            return
        for pods in self._homeless.values():
            pods.pop(uid, None)

    def pod_row(self, uid: str) -> int | None:
        return self._where.get(uid)

    def _seat(self, pod: PodKey, row: int) -> None:
        facts = self.node(row)
        facts.pods[pod.uid] = pod
        self._where[pod.uid] = row
        self._widen()
        self.take(pod.shape, row, 1)
        self.pairs.add(pod, row)

    def _unseat(self, pod: PodKey, row: int) -> None:
        self.pairs.remove(pod, row)
        self.take(pod.shape, row, -1)
        del self.node(row).pods[pod.uid]
        del self._where[pod.uid]

    def take(self, shape: Shape, row: int, count: int) -> None:
        """Room and ports of `count` pods of a shape on a row (negative: given back)."""
        self.used[row, shape.columns] += shape.amounts * count
        self.weighed[row] += shape.weight * count
        ports = self.node(row).ports
        for port in shape.ports:
            left = ports.get(port, 0) + count
            if left:
                ports[port] = left
            else:
                ports.pop(port, None)
        self.usage.add(row)


def group_of(obj: Mapping[str, Any]) -> str | None:
    """The group that a pod names, as namespace/name (1.36 and later) or namespace/workload/group/key (1.35)."""
    spec = obj.get("spec") or {}
    namespace = obj["metadata"].get("namespace") or "default"
    joined = spec.get("schedulingGroup") or {}
    if joined.get("podGroupName"):
        return f"{namespace}/{joined['podGroupName']}"
    old = spec.get("workloadRef") or {}
    if old.get("name"):
        return "/".join((namespace, old["name"], old.get("podGroup", ""), old.get("podGroupReplicaKey") or ""))
    return None
