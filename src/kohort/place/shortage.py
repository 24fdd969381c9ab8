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
    """Of a resource (its number): what is needed at the least, what can be used where there is most, in what steps."""

    resource: int
    needed: int
    usable: int
    step: int


def shortage(packing: Packing) -> Shortage | None:
    """Of what there is too little in every domain that the root may take; None proves nothing."""
    free, asks, caps = (np.array(one, np.int64) for one in (packing.free, packing.asks, packing.caps))
    for resource in range(asks.shape[1]):
        step = gcd(*asks[:, resource].tolist()) or 1
        usable = np.where(caps.any(axis=1), free[:, resource] // step * step, 0)
        most = max((int(usable[nodes].sum()) for nodes in _places(packing)), default=0)
        needed = _least(packing.root, asks[:, resource])
        if needed > most:
            return Shortage(resource, needed, most, step)
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
