"""A proof that is soon found: what all pods need of an amount is more than all nodes have of it in usable pieces.

Amounts are asked for in steps (half a core, a gibibyte): what a node has free beyond whole steps is of no use to
anybody, and a cluster of many nodes has much of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from kohort.place.packing import Numbers, PackGroup, Packing


@dataclass(frozen=True, slots=True)
class Shortage:
    """Of a resource (its number): what is needed at the least, and of what is free where there is most of it, what can
    be used in steps of what pods ask for."""

    resource: int
    needed: int
    free: int
    usable: int
    step: int


def shortage(packing: Packing) -> Shortage | None:
    """Of what there is too little in every domain that the root may take; None proves nothing."""
    free, asks, caps = (np.array(one, np.int64) for one in (packing.free, packing.asks, packing.caps))
    for resource in range(asks.shape[1]):
        step = gcd(*asks[:, resource].tolist()) or 1
        usable = np.where(caps.any(axis=1), free[:, resource] // step * step, 0)
        needed = _least(packing.root, asks[:, resource])
        most = max(_places(packing), key=lambda nodes: int(usable[nodes].sum()), default=np.empty(0, np.intp))
        if needed > int(usable[most].sum()):
            every = np.where(caps.any(axis=1), free[:, resource], 0)
            return Shortage(resource, needed, int(every[most].sum()), int(usable[most].sum()), step)
    return None


def _places(packing: Packing) -> list[Numbers]:
    """Nodes that the whole tree may take together."""
    root = packing.root
    if root.level < 0:
        return [np.arange(len(packing.free))]
    codes = np.array(packing.levels[root.level])
    return [np.flatnonzero(codes == code) for code in np.unique(codes) if code and root.code in (0, code)]


def _least(group: PackGroup, ask: Numbers) -> int:
    """What a group needs at the least."""
    if group.children:
        each = sorted(_least(child, ask) for child in group.children)
    else:
        each = sorted(int(ask[number]) for number, count in group.pods.items() for _ in range(count))
    return sum(each[: group.need])
