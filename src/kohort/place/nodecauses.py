"""What keeps pods of a leaf off each node: nodes counted by cause."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kohort.apimachinery.labels import tolerates
from kohort.place.columns import Mask
from kohort.place.demand import Leaf
from kohort.place.engine import Engine
from kohort.place.fit import SignatureFit
from kohort.place.interpod import EquivalenceClass
from kohort.place.nodesets import NodeSet
from kohort.place.quantities import shown
from kohort.place.signatures import PodSignature


class CauseKind(StrEnum):
    """What keeps pods off nodes, or that nothing does."""

    ROOM = "room"
    RESOURCE = "resource"
    RULE = "rule"
    SELECTOR = "selector"
    TAINT = "taint"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class NodeCause:
    """So many nodes, and why not (or that they have room)."""

    what: CauseKind
    nodes: int
    text: str

    def __str__(self) -> str:
        return f"{self.nodes} {self.text}"


def scarcest(leaf: Leaf) -> EquivalenceClass:
    """The class that is hardest to place."""
    return max(leaf.eq_classes, key=lambda eq_class: tuple(eq_class.signature.weight.tolist()))


def node_causes(engine: Engine, leaf: Leaf, node_set: NodeSet) -> list[NodeCause]:
    """For the largest pods of a leaf, as the cluster is now. A node lacking two resources is counted for both."""
    eq_class = scarcest(leaf)
    fit, _ = engine.evaluate(eq_class.signature)
    inside: Mask = engine.state.alive.copy()
    if node_set.rows is not None:
        inside = np.zeros(engine.state.rows, np.bool_)
        inside[node_set.rows] = True
    free = inside & (fit.room > 0)
    found = [_room(fit, free)] if free.any() else []
    found += _resources(engine, eq_class.signature, inside & fit.suits & ~free)
    ruled = free & ~engine.feasible(eq_class, fit)
    if ruled.any():
        found.append(
            NodeCause(CauseKind.RULE, int(ruled.sum()), "of these kept free by rules between pods, ports or claims")
        )
    unchosen = inside & ~fit.chosen
    if unchosen.any():
        found.append(
            NodeCause(CauseKind.SELECTOR, int(unchosen.sum()), f"not selected ({_selector(eq_class.signature)})")
        )
    found += _taints(engine, eq_class.signature, inside & fit.chosen & ~fit.tolerated)
    unclaimed = inside & fit.chosen & fit.tolerated & ~fit.suits
    if unclaimed.any():
        found.append(
            NodeCause(
                CauseKind.CLAIM,
                int(unclaimed.sum()),
                f"where a claim cannot be used ({_claims(engine, eq_class.signature)})",
            )
        )
    return found


def _room(fit: SignatureFit, free: Mask) -> NodeCause:
    pods = int(np.minimum(fit.room[free], 1 << 20).sum())
    return NodeCause(CauseKind.ROOM, int(free.sum()), f"with room for {pods} more")


def _resources(engine: Engine, signature: PodSignature, full: Mask) -> list[NodeCause]:
    state = engine.state
    rows = np.flatnonzero(full)
    found = []
    for column, ask in zip(signature.columns.tolist(), signature.amounts.tolist(), strict=True):
        free = state.alloc[rows, column] - state.used[rows, column]
        lack = int((free < ask).sum())
        if lack:
            name = state.resources.names[column]
            never = int((state.alloc[rows, column] < ask).sum())
            small = f", {never} of them even when empty" if never else ""
            found.append(NodeCause(CauseKind.RESOURCE, lack, f"lack {name} (a pod asks {shown(name, ask)}){small}"))
    return sorted(found, key=lambda cause: -cause.nodes)


def _selector(signature: PodSignature) -> str:
    parts = [f"{key}={value}" for key, value in signature.selector.items()]
    if signature.node is not None:
        parts.append(f"node {signature.node}")
    if signature.affinity is not None:
        parts.append("node affinity")
    return ", ".join(parts)


def _claims(engine: Engine, signature: PodSignature) -> str:
    """Those that can be used nowhere, and why; if there are none, all that say where they can."""
    known = engine.state.claims
    unusable = [f"{key} {known.get(key).why}".rstrip() for key in signature.claims if not known.get(key).usable]
    return "; ".join(unusable or signature.claims)


def _taints(engine: Engine, signature: PodSignature, tainted: Mask) -> list[NodeCause]:
    counts: dict[str, int] = {}
    for row in np.flatnonzero(tainted).tolist():
        taint = next(
            one
            for one in engine.state.node(row).taints
            if one.effect in {"NoSchedule", "NoExecute"} and not tolerates(signature.tolerations, one.as_json())
        )
        text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        counts[text] = counts.get(text, 0) + 1
    return [NodeCause(CauseKind.TAINT, nodes, f"with the taint {text}") for text, nodes in sorted(counts.items())]
