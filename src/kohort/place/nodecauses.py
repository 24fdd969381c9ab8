"""What keeps pods of a leaf off each node: nodes counted by cause, as kube-scheduler's messages count them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kohort.place.columns import Mask, shown
from kohort.place.demand import Leaf
from kohort.place.engine import Engine
from kohort.place.fit import SignatureFit, keeps_away
from kohort.place.interpod import EquivalenceClass
from kohort.place.nodesets import NodeSet
from kohort.place.signatures import PodSignature, Taint


class CauseKind(StrEnum):
    """What keeps pods off nodes, or that nothing does."""

    ROOM = "room"
    ABSENT = "absent"  # a resource that the node does not have at all
    RESOURCE = "resource"
    RULE = "rule"
    SELECTOR = "selector"
    CORDON = "cordon"
    TAINT = "taint"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class NodeCause:
    """So many nodes, and why not (or that they have room)."""

    what: CauseKind
    nodes: int
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def excludes(self) -> bool:
        """Whether its nodes are out of the question, however empty they are."""
        return self.what not in {CauseKind.ROOM, CauseKind.RESOURCE, CauseKind.RULE}


def scarcest(leaf: Leaf) -> EquivalenceClass:
    """The class that is hardest to place."""
    return max(leaf.eq_classes, key=lambda eq_class: tuple(eq_class.signature.weight.tolist()))


def inside(engine: Engine, node_set: NodeSet) -> Mask:
    """The rows of a node set as a mask."""
    if node_set.rows is None:
        alive: Mask = engine.state.alive.copy()
        return alive
    mask: Mask = np.zeros(engine.state.rows, np.bool_)
    mask[node_set.rows] = True
    return mask


def offered(engine: Engine, signature: PodSignature) -> Mask:
    """Rows that have some of every resource it asks for."""
    has: Mask = np.asarray((engine.state.alloc[: engine.state.rows, signature.columns] > 0).all(axis=1), np.bool_)
    return has


def node_causes(engine: Engine, leaf: Leaf, node_set: NodeSet) -> list[NodeCause]:
    """For the largest pods of a leaf, as the cluster is now. A node lacking two resources is counted for both."""
    eq_class = scarcest(leaf)
    signature = eq_class.signature
    fit, _ = engine.evaluate(signature)
    here = inside(engine, node_set)
    free = here & (fit.room > 0)
    found = [_room(fit, free)] if free.any() else []
    ruled = free & ~engine.feasible(eq_class, fit)
    if ruled.any():
        text = f"{int(ruled.sum())} of these kept free by rules between pods, ports or claims"
        found.append(NodeCause(CauseKind.RULE, int(ruled.sum()), text))
    unchosen = here & ~fit.chosen
    if unchosen.any():
        text = f"{_nodes(unchosen, 'is', 'are')} not selected ({_selector(signature)})"
        found.append(NodeCause(CauseKind.SELECTOR, int(unchosen.sum()), text))
    found += _taints(engine, signature, here & fit.chosen & ~fit.tolerated)
    found += _claims(engine, signature, here & fit.chosen & fit.tolerated & ~fit.suits)
    return found + _resources(engine, signature, here & fit.suits & ~free)


def untolerated_sets(engine: Engine, signature: PodSignature, tainted: Mask) -> list[tuple[tuple[Taint, ...], Mask]]:
    """Rows by the taints that keep the signature away; each set of taints of the cluster is looked at once."""
    state = engine.state
    codes = state.tainted[: state.rows]
    found: dict[tuple[Taint, ...], Mask] = {}
    for number in np.unique(codes[tainted]).tolist():
        away = tuple(taint for taint in state.taints[number] if keeps_away(signature, taint))
        rows = tainted & (codes == number)
        found[away] = found[away] | rows if away in found else rows
    return sorted(found.items(), key=lambda item: -int(item[1].sum()))


def taint_text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _room(fit: SignatureFit, free: Mask) -> NodeCause:
    pods = int(np.minimum(fit.room[free], 1 << 20).sum())
    return NodeCause(CauseKind.ROOM, int(free.sum()), f"{_nodes(free, 'has', 'have')} room for {pods} more")


def _resources(engine: Engine, signature: PodSignature, full: Mask) -> list[NodeCause]:
    state = engine.state
    rows = np.flatnonzero(full)
    found = []
    for column, ask in zip(signature.columns.tolist(), signature.amounts.tolist(), strict=True):
        name, alloc = state.resources.names[column], state.alloc[rows, column]
        absent = alloc == 0
        if absent.any():
            text = f"{_nodes(absent, 'has', 'have')} no {name}"
            found.append(NodeCause(CauseKind.ABSENT, int(absent.sum()), text))
        lack = (alloc - state.used[rows, column] < ask) & ~absent
        if lack.any():
            never = int((lack & (alloc < ask)).sum())
            small = f", {never} of them even when empty" if never else ""
            text = f"{_nodes(lack, 'lacks', 'lack')} {name} (a pod asks {shown(name, ask)}){small}"
            found.append(NodeCause(CauseKind.RESOURCE, int(lack.sum()), text))
    return sorted(found, key=lambda cause: -cause.nodes)


def _selector(signature: PodSignature) -> str:
    parts = [f"{key}={value}" for key, value in signature.selector.items()]
    if signature.node is not None:
        parts.append(f"node {signature.node}")
    if signature.affinity is not None:
        parts.append("node affinity")
    return ", ".join(parts)


def _claims(engine: Engine, signature: PodSignature, unclaimed: Mask) -> list[NodeCause]:
    """Claims that can be used nowhere, and why; if there are none, all that say where they can."""
    if not unclaimed.any():
        return []
    nodes, known = int(unclaimed.sum()), engine.state.claims
    unusable = [key for key in signature.claims if not known.get(key).usable]
    if unusable:
        return [NodeCause(CauseKind.CLAIM, nodes, f"{claim_text(key)} {known.get(key).why}") for key in unusable]
    claims = ", ".join(claim_text(key) for key in signature.claims)
    return [NodeCause(CauseKind.CLAIM, nodes, f"{_nodes(unclaimed)} cannot reach the volume of {claims}")]


def claim_text(key: str) -> str:
    """A claim as a signature names it (`Claims.that_matter`), for people: one of those that say the same."""
    if key.startswith("like "):
        key = key.removeprefix("like ").rpartition(" ")[0]
    return key if " " in key else f"claim {key}"


def _taints(engine: Engine, signature: PodSignature, tainted: Mask) -> list[NodeCause]:
    """A node is counted for its first taint; a cordon comes first."""
    first: dict[Taint, Mask] = {}
    for away, rows in untolerated_sets(engine, signature, tainted):
        taint = next((one for one in away if one.is_unschedulable), away[0])
        first[taint] = first[taint] | rows if taint in first else rows
    found = []
    for taint, rows in first.items():
        kind, text = CauseKind.CORDON, f"{_nodes(rows, 'is', 'are')} cordoned"
        if not taint.is_unschedulable:
            kind = CauseKind.TAINT
            text = f"{_nodes(rows, 'has', 'have')} taint {taint_text(taint)} that it does not tolerate"
        found.append(NodeCause(kind, int(rows.sum()), text))
    return sorted(found, key=lambda cause: -cause.nodes)


def _nodes(mask: Mask, one: str = "", many: str = "") -> str:
    number = int(mask.sum())
    return f"{number} {'node' if number == 1 else 'nodes'} {one if number == 1 else many}".rstrip()
