"""The cluster as arrays, kept up to date change by change.

Nodes are rows; a removed node's row is reused. Whoever caches something per row reads the two change logs: `nodes`
(what a node is: labels, taints, presence) and `usage` (what is taken on it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kohort.place.claims import Claims, pod_claims
from kohort.place.columns import (
    FIRST_RESOURCES,
    Amounts,
    ChangeLog,
    Codes,
    LabelColumn,
    Mask,
    NameIndex,
    Rows,
    label_value,
)
from kohort.place.interpod import EquivalenceClass, InterPodTerms
from kohort.place.requests import allocatable, running_spec
from kohort.place.signatures import SCORED, PodSignature, PodSignatures, Port, Taint

_FIRST_ROWS = 16
_VECTORS = 4096  # signatures whose asks are kept at hand


@dataclass(slots=True, unsafe_hash=True)  # never changed; with frozen=True it takes three times as long to make
class AssignedPod:
    """What the engine remembers of a pod that sits on a node."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    signature: PodSignature
    priority: int = 0
    group: str | None = None  # namespace/name of its PodGroup
    started: str = ""
    terminating: bool = False


@dataclass(slots=True)
class NodeInfo:
    """A node beyond its numbers."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    pods: dict[str, AssignedPod] = field(default_factory=dict)
    ports: dict[Port, int] = field(default_factory=dict)  # -> pods that hold it
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)  # protocol and port -> pods that hold it

    def hold(self, port: Port, count: int) -> int:
        """So many pods more (negative: fewer) hold a port; how many do at any address."""
        self.ports[port] = self.ports.get(port, 0) + count
        if not self.ports[port]:
            del self.ports[port]
        number = (port[0], port[2])
        held = self.numbers[number] = self.numbers.get(number, 0) + count
        if not held:
            del self.numbers[number]
        return held


class ClusterState:
    """Nodes and the pods on them."""

    def __init__(self) -> None:
        self.resources = NameIndex(FIRST_RESOURCES)
        self.signatures = PodSignatures(self.resources)
        self.claims = Claims()
        self.alloc: Amounts = np.zeros((_FIRST_ROWS, len(self.resources)), np.int64)
        # What is taken on each row, as scores see it (`weighed`) and then as it is (`used`): both change at once.
        self.loads: Amounts = np.zeros((_FIRST_ROWS, len(SCORED) + len(self.resources)), np.int64)
        self.weighed: Amounts = self.loads[:, : len(SCORED)]
        self.used: Amounts = self.loads[:, len(SCORED) :]
        self.alive: Mask = np.zeros(_FIRST_ROWS, np.bool_)
        self.node_infos: list[NodeInfo | None] = [None] * _FIRST_ROWS
        self.labels: dict[str, LabelColumn] = {}
        self._label_keys: set[str] = set()  # that some node has or had
        self._unlabelled = LabelColumn(_FIRST_ROWS)  # of a key that no node has
        self.tainted: Codes = np.zeros(_FIRST_ROWS, np.int32)  # row -> number of its set of taints
        self.taints: list[tuple[Taint, ...]] = [()]
        self.ports: dict[tuple[str, int], set[int]] = {}  # protocol and port -> rows where somebody holds it
        self.nodes = ChangeLog()
        self.usage = ChangeLog()
        self.offers = 0  # counts changes of what nodes offer
        self.interpod = InterPodTerms(self)
        self._row: dict[str, int] = {}
        self._names: tuple[Rows, Rows] | tuple[None, None] | None = None
        self._free: list[int] = list(range(_FIRST_ROWS - 1, -1, -1))
        self._where: dict[str, int] = {}  # pod uid -> row
        self._spaces: dict[str, set[str]] = {}  # namespace -> uids of pods on nodes
        self._on_unknown_nodes: dict[
            str, dict[str, AssignedPod]
        ] = {}  # node name -> pods bound to a node not known yet
        self._bound_for: dict[str, str] = {}  # uid of such a pod -> node name
        self._vectors: dict[int, Amounts] = {}  # signature number -> what a pod asks for
        self._taint_sets: dict[tuple[Taint, ...], int] = {(): 0}

    # ---- nodes

    @property
    def rows(self) -> int:
        """Length of the arrays; some rows may be free."""
        return len(self.alive)

    def row(self, name: str) -> int | None:
        return self._row.get(name)

    @property
    def named(self) -> Rows | None:
        """All rows in the order of their nodes' names, those without a node last; None if they stand so. Among equals
        the first name is taken, so that a decision does not depend on the order in which nodes came to be known."""
        return self._by_name()[0]

    @property
    def ranks(self) -> Rows | None:
        """Row -> its place in `named`."""
        return self._by_name()[1]

    def _by_name(self) -> tuple[Rows, Rows] | tuple[None, None]:
        if self._names is None:
            rows = np.fromiter(map(self._row.__getitem__, sorted(self._row)), np.intp, len(self._row))
            ranks = np.full(self.rows, len(rows))
            ranks[rows] = np.arange(len(rows))
            nowhere = np.flatnonzero(ranks == len(rows))
            self._names = (None, None) if (rows[1:] > rows[:-1]).all() else (np.concatenate([rows, nowhere]), ranks)
        return self._names

    def by_name(self, rows: Rows) -> Rows:
        """These rows in the order of their nodes' names."""
        return rows if self.ranks is None else rows[np.argsort(self.ranks[rows])]

    def foremost(self, scores: Amounts, rows: Rows | None = None) -> int:
        """The position of the highest score, among equals of the first by name. `rows`: what the scores are of."""
        place = int(scores.argmax())
        ranks = self.ranks
        if ranks is None:
            return place
        tied = (scores == scores[place]).nonzero()[0]
        return place if len(tied) == 1 else int(tied[ranks[tied if rows is None else rows[tied]].argmin()])

    def node(self, row: int) -> NodeInfo:
        node_info = self.node_infos[row]
        assert node_info is not None, f"row {row} is free"
        return node_info

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
        if fresh:
            self._names = None
        if row is None:
            row = self._take_row()
            self._row[name] = row
            self.node_infos[row] = NodeInfo(name, {}, ())
            self.alive[row] = True
        node_info = self.node(row)
        wanted = self._vector(offers)
        if fresh or node_info.labels != labels or node_info.taints != taints:
            self._move(node_info, row, labels)
            node_info.taints = taints
            self.tainted[row] = self._taint_set(taints)
            self.nodes.add(row)
        if not np.array_equal(self.alloc[row], wanted):
            self.alloc[row] = wanted
            self.offers += 1
            self.usage.add(row)
        for pod in self._on_unknown_nodes.pop(name, {}).values():
            del self._bound_for[pod.uid]
            self._add_to_node(pod, row)
        self._trim()
        return row

    def remove_node(self, name: str) -> None:
        """The node goes; its pods stay known as bound to a node that is not there."""
        row = self._row.pop(name, None)
        if row is None:
            return
        self._names = None
        pods = self.node(row).pods
        for pod in list(pods.values()):
            self._remove_from_node(pod, row)
            self._await(pod, name)
        self.alive[row] = False
        self.alloc[row] = 0
        self.used[row] = 0
        self.weighed[row] = 0
        self.tainted[row] = 0
        self.offers += 1
        self._relabel(row, self.node(row), {})
        self.node_infos[row] = None
        self._free.append(row)
        self.nodes.add(row)
        self.usage.add(row)
        self._trim()

    def _take_row(self) -> int:
        if not self._free:
            old = self.rows
            more = old
            self.alloc = np.concatenate([self.alloc, np.zeros((more, self.alloc.shape[1]), np.int64)])
            self._load(np.concatenate([self.loads, np.zeros((more, self.loads.shape[1]), np.int64)]))
            self.alive = np.concatenate([self.alive, np.zeros(more, np.bool_)])
            self.tainted = np.concatenate([self.tainted, np.zeros(more, np.int32)])
            self.node_infos += [None] * more
            for column in self.labels.values():
                column.grow(old + more)
            self._free = list(range(old + more - 1, old - 1, -1))
        return self._free.pop()

    def _vector(self, amounts: Mapping[str, int]) -> Amounts:
        numbers = [(self.resources.number(name), value) for name, value in amounts.items()]
        self.widen()
        vector = np.zeros(self.alloc.shape[1], np.int64)
        for number, value in numbers:
            vector[number] = value
        return vector

    def _taint_set(self, taints: tuple[Taint, ...]) -> int:
        number = self._taint_sets.get(taints)
        if number is None:
            number = self._taint_sets[taints] = len(self.taints)
            self.taints.append(taints)
        return number

    def widen(self) -> None:
        """A resource that nobody named before gets a column."""
        missing = len(self.resources.names) - self.alloc.shape[1]
        if missing > 0:
            fresh = np.zeros((self.rows, missing), np.int64)
            self.alloc = np.hstack([self.alloc, fresh])
            self._load(np.hstack([self.loads, fresh]))
            self._vectors.clear()

    def _load(self, loads: Amounts) -> None:
        self.loads, self.weighed, self.used = loads, loads[:, : len(SCORED)], loads[:, len(SCORED) :]

    def column(self, key: str) -> LabelColumn:
        """The label column of a key; filled when first asked for, kept up to date from then on. Several keys with
        commas between them are one whose domains are those of all of them. A key that no node has is not kept:
        whoever writes a pod invents as many as they like."""
        column = self.labels.get(key)
        if column is not None:
            return column
        if key not in self._label_keys and not ("," in key and all(one in self._label_keys for one in key.split(","))):
            if len(self._unlabelled.codes) != self.rows:
                self._unlabelled = LabelColumn(self.rows)
            return self._unlabelled
        column = self.labels[key] = LabelColumn(self.rows)
        for row, node_info in enumerate(self.node_infos):
            if node_info is not None:
                column.set(row, label_value(node_info.labels, key))
        return column

    def _move(self, node_info: NodeInfo, row: int, labels: Mapping[str, str]) -> None:
        """The node's labels change, and with them the domains that its pods are counted in."""
        for pod in node_info.pods.values():
            self.interpod.remove(pod, row)
        self._relabel(row, node_info, labels)
        for pod in node_info.pods.values():
            self.interpod.add(pod, row)

    def _relabel(self, row: int, node_info: NodeInfo, labels: Mapping[str, str]) -> None:
        node_info.labels = dict(labels)
        self._label_keys.update(labels)
        for key, column in self.labels.items():
            column.set(row, label_value(labels, key))

    def _trim(self) -> None:
        self.nodes.trim(self.rows)
        self.usage.trim(self.rows)

    # ---- pods

    def assigned_pod(self, obj: Mapping[str, Any], group: str | None = None) -> AssignedPod:
        """What the engine remembers of a pod, from its API object. `group`: of one that names none itself."""
        meta, spec = obj["metadata"], obj["spec"]
        namespace = meta.get("namespace") or "default"
        # On a node, only claims for one pod still matter: to others.
        claims = tuple(key for key in pod_claims(obj) if self.claims.get(key).once)
        return AssignedPod(
            uid=meta["uid"],
            namespace=namespace,
            name=meta["name"],
            labels=meta.get("labels") or {},
            signature=self.signatures.of_spec(running_spec(obj), namespace, meta.get("labels"), claims=claims),
            priority=spec.get("priority") or 0,
            group=group if group is not None else group_of(obj),
            started=(obj.get("status") or {}).get("startTime") or "",
            terminating=meta.get("deletionTimestamp") is not None,
        )

    def set_pod(self, obj: Mapping[str, Any], node: str) -> AssignedPod:
        """A bound pod, from its API object."""
        key = self.assigned_pod(obj)
        self.put_pod(key, node)
        return key

    def equivalence_class(
        self, obj: Mapping[str, Any], *, claims: Sequence[str] = (), defaults: Sequence[Any] = ()
    ) -> EquivalenceClass:
        """The class of a pod that waits. `claims`: of resources, beside those of its volumes. `defaults`: spread
        constraints of the cluster, for a pod that has none."""
        meta, spec = obj["metadata"], obj["spec"]
        namespace, labels = meta.get("namespace") or "default", meta.get("labels") or {}
        signature = self.signatures.of_spec(
            spec,
            namespace,
            labels,
            claims=self.claims.that_matter([*pod_claims(obj), *claims]),
            node=spec.get("nodeName") or None,
            defaults=defaults,
        )
        return self.interpod.class_of(signature, namespace, labels)

    def put_pod(self, pod: AssignedPod, node: str) -> None:
        """Seat a pod on a node, or note it for a node that is not known yet. Seating again replaces."""
        if pod.uid in self._where or pod.uid in self._bound_for:
            self.remove_pod(pod.uid)
        row = self._row.get(node)
        if row is None:
            self._await(pod, node)
        else:
            self._add_to_node(pod, row)
        self._trim()

    def started(self, uid: str, moment: str) -> None:
        """A pod on a node has begun to run."""
        row = self._where.get(uid)
        pods = self.node(row).pods if row is not None else self._on_unknown_nodes.get(self._bound_for.get(uid, ""), {})
        if (pod := pods.get(uid)) is not None:
            pods[uid] = AssignedPod(
                uid,
                pod.namespace,
                pod.name,
                pod.labels,
                pod.signature,
                pod.priority,
                pod.group,
                moment,
                pod.terminating,
            )

    def remove_pod(self, uid: str) -> None:
        row = self._where.get(uid)
        if row is not None:
            self._remove_from_node(self.node(row).pods[uid], row)
            self._trim()
            return
        node = self._bound_for.pop(uid, None)
        if node is not None:
            waiting = self._on_unknown_nodes[node]
            del waiting[uid]
            if not waiting:
                del self._on_unknown_nodes[node]

    def pods_of(self, namespaces: Sequence[str] | None) -> Iterator[tuple[AssignedPod, int]]:
        """Pods on nodes, of some namespaces or (None) of all."""
        for space in self._spaces if namespaces is None else namespaces:
            for uid in self._spaces.get(space, ()):
                row = self._where[uid]
                yield self.node(row).pods[uid], row

    def _await(self, pod: AssignedPod, node: str) -> None:
        self._on_unknown_nodes.setdefault(node, {})[pod.uid] = pod
        self._bound_for[pod.uid] = node

    def _add_to_node(self, pod: AssignedPod, row: int) -> None:
        # Counted before it is listed: a term first seen now is counted over the pods listed so far.
        self.interpod.add(pod, row)
        self.take(pod.signature, row, 1)
        self.node(row).pods[pod.uid] = pod
        self._where[pod.uid] = row
        space = self._spaces.get(pod.namespace)
        if space is None:
            space = self._spaces[pod.namespace] = set()
        space.add(pod.uid)

    def _remove_from_node(self, pod: AssignedPod, row: int) -> None:
        self.interpod.remove(pod, row)
        self.take(pod.signature, row, -1)
        del self.node(row).pods[pod.uid]
        del self._where[pod.uid]
        space = self._spaces[pod.namespace]
        space.discard(pod.uid)
        if not space:
            del self._spaces[pod.namespace]

    def take(self, signature: PodSignature, row: int, count: int) -> None:
        """Room, ports and claims of `count` pods of a signature on a row (negative: given back)."""
        asks = self._vectors.get(signature.number)
        if asks is None:
            asks = self._full(signature)  # may add a column: before the row is looked at
        load = self.loads[row]
        if count == 1:
            load += asks
        elif count == -1:
            load -= asks
        else:
            load += asks * count
        if signature.ports:
            self._take_ports(signature, row, count)
        if signature.claims:
            self.claims.hold(signature.claims, count)
        self.usage.add(row)

    def take_many(self, signature: PodSignature, rows: Rows, counts: Amounts) -> None:
        """The same for many rows, each given once, of a signature without ports and claims."""
        self.widen()
        self.used[rows[:, None], signature.columns] += counts[:, None] * signature.amounts
        self.weighed[rows] += counts[:, None] * signature.weight
        self.usage.add_many(rows.tolist())

    def _full(self, signature: PodSignature) -> Amounts:
        """What a pod asks for, in all columns: those of scores first."""
        self.widen()
        vector = self._vectors.get(signature.number)
        if vector is None:
            if len(self._vectors) > _VECTORS:
                self._vectors.clear()
            vector = np.zeros(self.loads.shape[1], np.int64)
            vector[: len(SCORED)] = signature.weight
            vector[signature.columns + len(SCORED)] = signature.amounts
            self._vectors[signature.number] = vector
        return vector

    def _take_ports(self, signature: PodSignature, row: int, count: int) -> None:
        node_info = self.node(row)
        for port in signature.ports:
            protocol, _, number = port
            rows = self.ports.setdefault((protocol, number), set())
            if node_info.hold(port, count):
                rows.add(row)
                continue
            rows.discard(row)
            if not rows:
                del self.ports[protocol, number]


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
