"""What pods and groups cost others: shares of what is free, summed over resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from kohort.place.demand import Demand, Leaf, PendingPod
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass

Prices = Mapping[EquivalenceClass, float]


def prices(engine: Engine, eq_classes: Iterable[EquivalenceClass]) -> Prices:
    state = engine.state
    state.widen()
    free = np.maximum(np.maximum(state.alloc - state.used, 0).sum(axis=0), 1)
    return {one: float((one.signature.amounts / free[one.signature.columns]).sum()) for one in eq_classes}


def thriftiest(leaf: Leaf, known: Prices, count: int) -> list[PendingPod]:
    """So many pods of a leaf: those that leave most to others."""
    return sorted(leaf.pods, key=lambda pod: known[pod.eq_class])[:count]


def price(group: Demand, known: Prices) -> float:
    """What the minimum of a group costs at the least."""
    if isinstance(group, Leaf):
        return sum(known[pod.eq_class] for pod in thriftiest(group, known, group.missing))
    return sum(sorted(price(child, known) for child in group.children)[: group.need])


def trimmed(group: Demand, known: Prices) -> Demand:
    """The tree without what its minimums can do without, the dearest left out; itself, if that is nothing."""
    if isinstance(group, Leaf):
        if group.missing >= len(group.pods):
            return group
        kept = {pod.key for pod in thriftiest(group, known, group.missing)}
        return replace(group, pods=[pod for pod in group.pods if pod.key in kept])
    some = group.children
    if group.need < len(some):
        some = sorted(some, key=lambda child: (_short(child), price(child, known)))[: group.need]
    children = [trimmed(child, known) for child in some]
    same = len(children) == len(group.children) and all(a is b for a, b in zip(children, group.children, strict=True))
    return group if same else replace(group, children=children)


def _short(group: Demand) -> bool:
    """Whether a group has too few pods or children for its minimum."""
    if isinstance(group, Leaf):
        return len(group.pods) < group.missing
    return sum(not _short(child) for child in group.children) < group.need
