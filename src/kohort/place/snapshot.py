"""A cluster state as one JSON document, and back: for `/debug/state`, benchmarks and questions asked later.

Only text goes in and out; whoever calls reads and writes files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kohort.place.claims import Claim
from kohort.place.demand import Branch, Demand, Leaf, Pod
from kohort.place.shapes import Port, Shape, Spread, Taint, Term
from kohort.place.state import ClusterState, PodKey

VERSION: Final = 1
_ASKS: Final = (
    "node",
    "selector",
    "affinity",
    "preferred",
    "tolerations",
    "ports",
    "together",
    "apart",
    "liked",
    "spreads",
    "claims",
)


class NodeRecord(msgspec.Struct, omit_defaults=True):
    name: str
    offers: dict[str, int]
    labels: dict[str, str] = {}
    taints: list[Taint] = []


class ShapeRecord(msgspec.Struct, omit_defaults=True):
    namespace: str
    requests: dict[str, int]
    node: str | None = None
    selector: dict[str, str] = {}
    affinity: tuple[dict[str, Any], ...] | None = None
    preferred: tuple[tuple[int, dict[str, Any]], ...] = ()
    tolerations: tuple[dict[str, Any], ...] = ()
    ports: tuple[Port, ...] = ()
    together: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    liked: tuple[tuple[int, Term], ...] = ()
    spreads: tuple[Spread, ...] = ()
    claims: tuple[str, ...] = ()


class PodRecord(msgspec.Struct, omit_defaults=True):
    """A pod on a node; names and namespaces that repeat the uid or the shape's are left out."""

    uid: str
    shape: int
    node: str
    namespace: str = ""
    name: str = ""
    labels: dict[str, str] = {}
    priority: int = 0
    group: str | None = None
    started: str = ""
    terminating: bool = False


class PendingRecord(msgspec.Struct, omit_defaults=True):
    key: str
    shape: int
    labels: dict[str, str] = {}
    nominated: str | None = None


class GroupRecord(msgspec.Struct, omit_defaults=True):
    name: str
    minimum: int | None = None
    topology: str | None = None
    pods: list[PendingRecord] = []
    running: list[str] = []
    lost: int = 0
    children: list[GroupRecord] = []
    is_leaf: bool = True


class RootRecord(msgspec.Struct):
    priority: int
    group: GroupRecord


class Snapshot(msgspec.Struct):
    version: int
    nodes: list[NodeRecord]
    shapes: list[ShapeRecord]
    pods: list[PodRecord]
    claims: dict[str, Claim] = {}
    namespaces: dict[str, dict[str, str]] = {}
    roots: list[RootRecord] = []


@dataclass(frozen=True, slots=True)
class Root:
    """A tree that waits."""

    demand: Demand
    priority: int = 0


class SnapshotError(ValueError):
    """A document that is not a snapshot."""


# ---- out


def dump(state: ClusterState, roots: Sequence[Root] = ()) -> bytes:
    """The state, and what waits, as JSON."""
    writer = _Writer(state)
    nodes = [writer.node(row) for row in range(state.rows) if state.alive[row]]
    bound = [(pod, state.node(row).name) for pod, row in state.pods_of(None)]
    bound += list(state.homeless())
    pods = [writer.pod(pod, node) for pod, node in sorted(bound, key=lambda seat: seat[0].uid)]
    waiting = [RootRecord(root.priority, writer.group(root.demand)) for root in roots]
    namespaces = {name: dict(labels) for name, labels in state.pairs.namespaces().items()}
    claims = dict(state.claims.items())
    return msgspec.json.encode(Snapshot(VERSION, nodes, writer.shapes, pods, claims, namespaces, waiting))


class _Writer:
    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._numbers: dict[int, int] = {}
        self.shapes: list[ShapeRecord] = []

    def node(self, row: int) -> NodeRecord:
        facts, names = self._state.node(row), self._state.resources.names
        offers = {names[column]: value for column, value in enumerate(self._state.alloc[row].tolist()) if value}
        return NodeRecord(facts.name, offers, dict(facts.labels), list(facts.taints))

    def shape(self, shape: Shape) -> int:
        number = self._numbers.get(shape.number)
        if number is None:
            number = self._numbers[shape.number] = len(self.shapes)
            asks: dict[str, Any] = {name: getattr(shape, name) for name in _ASKS}
            self.shapes.append(ShapeRecord(shape.namespace, dict(shape.requests), **asks))
        return number

    def pod(self, pod: PodKey, node: str) -> PodRecord:
        return PodRecord(
            pod.uid,
            self.shape(pod.shape),
            node,
            "" if pod.namespace == pod.shape.namespace else pod.namespace,
            "" if pod.name == pod.uid else pod.name,
            dict(pod.labels),
            pod.priority,
            pod.group,
            pod.started,
            pod.terminating,
        )

    def group(self, group: Demand) -> GroupRecord:
        record = GroupRecord(group.name, group.minimum, group.topology, is_leaf=isinstance(group, Leaf))
        if isinstance(group, Branch):
            record.children = [self.group(child) for child in group.children]
            return record
        record.pods = [self._pending(pod) for pod in group.pods]
        record.running = [self._state.node(row).name for row in group.running]
        record.lost = group.lost
        return record

    def _pending(self, pod: Pod) -> PendingRecord:
        nominated = None if pod.nominated is None else self._state.node(pod.nominated).name
        return PendingRecord(pod.key, self.shape(pod.kind.shape), dict(pod.labels), nominated)


# ---- in


def load(data: bytes | str) -> tuple[ClusterState, list[Root]]:
    """The state and what waits, from JSON."""
    try:
        snapshot = msgspec.json.decode(data, type=Snapshot)
    except (msgspec.DecodeError, msgspec.ValidationError) as wrong:
        raise SnapshotError(f"not a snapshot: {wrong}") from wrong
    if snapshot.version != VERSION:
        raise SnapshotError(f"version: found {snapshot.version}, {VERSION} is known")
    state = ClusterState()
    for name, labels in snapshot.namespaces.items():
        state.pairs.set_namespace(name, labels)
    for key, claim in snapshot.claims.items():
        state.claims.put(key, claim)
    for node in snapshot.nodes:
        state.put_node(node.name, node.offers, node.labels, tuple(node.taints))
    reader = _Reader(state, snapshot.shapes)
    for pod in snapshot.pods:
        state.put_pod(reader.pod(pod), pod.node)
    return state, [Root(reader.group(root.group), root.priority) for root in snapshot.roots]


class _Reader:
    def __init__(self, state: ClusterState, shapes: Sequence[ShapeRecord]) -> None:
        self._state = state
        self._shapes = [self._shape(record) for record in shapes]

    def _shape(self, record: ShapeRecord) -> Shape:
        asks: dict[str, Any] = {name: getattr(record, name) for name in _ASKS}
        return self._state.shapes.restore(record.namespace, record.requests, asks)

    def _known(self, number: int) -> Shape:
        if not 0 <= number < len(self._shapes):
            raise SnapshotError(f"shape: found {number}, the snapshot has {len(self._shapes)}")
        return self._shapes[number]

    def pod(self, record: PodRecord) -> PodKey:
        shape = self._known(record.shape)
        return PodKey(
            record.uid,
            record.namespace or shape.namespace,
            record.name or record.uid,
            record.labels,
            shape,
            record.priority,
            record.group,
            record.started,
            record.terminating,
        )

    def group(self, record: GroupRecord) -> Demand:
        if not record.is_leaf:
            children = [self.group(child) for child in record.children]
            return Branch(record.name, children, record.minimum, record.topology)
        running = [row for name in record.running if (row := self._state.row(name)) is not None]
        pods = [self._pending(pod) for pod in record.pods]
        return Leaf(record.name, pods, record.minimum, record.topology, running, record.lost)

    def _pending(self, record: PendingRecord) -> Pod:
        shape, labels = self._known(record.shape), record.labels
        kind = self._state.pairs.class_of(shape, shape.namespace, labels)
        nominated = None if record.nominated is None else self._state.row(record.nominated)
        return Pod(record.key, kind, labels, nominated)


def counts(state: ClusterState) -> Mapping[str, int]:
    """How large a state is, for people."""
    return {"nodes": int(state.alive.sum()), "pods": sum(1 for _ in state.pods_of(None)), "shapes": len(state.shapes)}
