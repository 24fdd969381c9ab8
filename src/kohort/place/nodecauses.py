"""What keeps pods of a leaf off each node: nodes counted by cause."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kohort.place.areas import Area
from kohort.place.columns import Mask
from kohort.place.demand import Leaf
from kohort.place.engine import Engine
from kohort.place.fit import ShapeFit
from kohort.place.pairs import PairClass
from kohort.place.quantities import shown
from kohort.place.selectors import tolerates
from kohort.place.shapes import Shape


@dataclass(frozen=True, slots=True)
class Cause:
    """So many nodes, and why not (or that they have room)."""

    what: str  # room, resource, selector, taint, claim, rule
    nodes: int
    text: str

    def __str__(self) -> str:
        return f"{self.nodes} {self.text}"


def scarcest(leaf: Leaf) -> PairClass:
    """The class that is hardest to place."""
    return max(leaf.kinds, key=lambda kind: tuple(kind.shape.weight.tolist()))


def node_causes(engine: Engine, leaf: Leaf, area: Area) -> list[Cause]:
    """For the largest pods of a leaf, as the cluster is now. A node lacking two resources is counted for both."""
    kind = scarcest(leaf)
    fit, _ = engine.look(kind.shape)
    inside: Mask = engine.state.alive.copy()
    if area.rows is not None:
        inside = np.zeros(engine.state.rows, np.bool_)
        inside[area.rows] = True
    free = inside & (fit.room > 0)
    found = [_room(fit, free)] if free.any() else []
    found += _resources(engine, kind.shape, fit, inside & fit.suits & ~free)
    ruled = free & ~engine.may(kind, fit)
    if ruled.any():
        found.append(Cause("rule", int(ruled.sum()), "of these kept free by rules between pods, ports or claims"))
    unchosen = inside & ~fit.chosen
    if unchosen.any():
        found.append(Cause("selector", int(unchosen.sum()), f"not selected ({_selector(kind.shape)})"))
    found += _taints(engine, kind.shape, inside & fit.chosen & ~fit.tolerated)
    unclaimed = inside & fit.chosen & fit.tolerated & ~fit.suits
    if unclaimed.any():
        found.append(
            Cause("claim", int(unclaimed.sum()), f"where a claim cannot be used ({_claims(engine, kind.shape)})")
        )
    return found


def _room(fit: ShapeFit, free: Mask) -> Cause:
    pods = int(np.minimum(fit.room[free], 1 << 20).sum())
    return Cause("room", int(free.sum()), f"with room for {pods} more")


def _resources(engine: Engine, shape: Shape, fit: ShapeFit, full: Mask) -> list[Cause]:
    state = engine.state
    rows = np.flatnonzero(full)
    found = []
    for column, ask in zip(shape.columns.tolist(), shape.amounts.tolist(), strict=True):
        free = state.alloc[rows, column] - state.used[rows, column]
        lack = int((free < ask).sum())
        if lack:
            name = state.resources.names[column]
            never = int((state.alloc[rows, column] < ask).sum())
            small = f", {never} of them even when empty" if never else ""
            found.append(Cause("resource", lack, f"lack {name} (a pod asks {shown(name, ask)}){small}"))
    return sorted(found, key=lambda cause: -cause.nodes)


def _selector(shape: Shape) -> str:
    parts = [f"{key}={value}" for key, value in shape.selector.items()]
    if shape.node is not None:
        parts.append(f"node {shape.node}")
    if shape.affinity is not None:
        parts.append("node affinity")
    return ", ".join(parts)


def _claims(engine: Engine, shape: Shape) -> str:
    """Those that can be used nowhere, and why; if there are none, all that say where they can."""
    known = engine.state.claims
    unusable = [f"{key} {known.get(key).why}".rstrip() for key in shape.claims if not known.get(key).usable]
    return "; ".join(unusable or shape.claims)


def _taints(engine: Engine, shape: Shape, tainted: Mask) -> list[Cause]:
    counts: dict[str, int] = {}
    for row in np.flatnonzero(tainted).tolist():
        taint = next(
            one
            for one in engine.state.node(row).taints
            if one.effect in {"NoSchedule", "NoExecute"} and not tolerates(shape.tolerations, one.as_json())
        )
        text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        counts[text] = counts.get(text, 0) + 1
    return [Cause("taint", nodes, f"with the taint {text}") for text, nodes in sorted(counts.items())]
