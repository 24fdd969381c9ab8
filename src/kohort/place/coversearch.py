"""One pattern for every node, so that together they hold what is asked for: by changing a node at a time.

Seats are asked for in rings: a rack asks for those of the groups that are held to it, the cluster for those of all
others, which may be what its racks have left over. The change that leaves least missing is made, whatever it is; a
node that was changed is left alone for a while, so that the search does not go in circles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kohort.place.packing import Counts, Prices
from kohort.place.patterns import Patterns, Which

_MORE: Final = 0.02  # what a seat more than is asked for is worth, of one that is missing
_ENOUGH: Final = 4  # such seats of a class that count
_PATIENCE: Final = 120  # steps without anything better
_CALM: Final = 20  # steps without anything better after which what is missing is worth more with each step
_DEARER: Final = np.float32(1.05)
_MANY: Final = 20_000  # patterns that are looked at in each step
_REST: Final = 4  # steps for which a node is left alone, at the least


@dataclass(slots=True)
class Ring:
    """Nodes (those of rings within it included) that must have so many seats. `around`: the ring it lies in."""

    asks: Counts
    around: int = -1


class CoverSearch:
    """`inner`: the innermost ring of every node, -1 for one that has no part. Rings come after those they lie in."""

    def __init__(
        self, patterns: Patterns, rings: Sequence[Ring], inner: Which, prices: Prices, dice: np.random.Generator
    ) -> None:
        self._patterns, self._rings, self._inner, self._prices, self._dice = patterns, rings, inner, prices, dice
        self._asks = np.array([ring.asks for ring in rings], np.float32)
        self._around = np.array([ring.around for ring in rings], np.intp)
        self._nodes = np.flatnonzero(inner >= 0)
        few = np.flatnonzero(inner[patterns.node] >= 0)
        if len(few) > _MANY:  # those that are worth least on their nodes are left out
            worth = patterns.counts @ prices
            lost = (np.maximum.reduceat(worth, patterns.starts[:-1])[patterns.node] - worth)[few]
            few = np.sort(few[np.argpartition(lost, _MANY)[:_MANY]])
        self._node, self._counts = patterns.node[few], patterns.counts[few]
        self._of = inner[self._node]  # ring of each pattern
        self._weights = np.repeat(prices[None], len(rings), axis=0)  # of what is missing: ring × class

    def search(self, chosen: Which, steps: int, expired: Callable[[], bool]) -> Which | None:
        """From one pattern for each node (numbers of patterns) on; None if nothing was found."""
        held = self._patterns.counts[chosen]  # of each node
        rests = np.zeros(len(chosen), np.int64)
        least, since = np.inf, 0
        for step in range(steps):
            have, spare = self._sums(held)
            short = np.maximum(self._asks - have, 0)
            if not short.any():
                return self._numbers(held)
            if (total := float((short @ self._prices).sum())) < least:
                least, since = total, step
            if expired() or step - since > _PATIENCE:
                return None
            if step - since > _CALM:
                self._weights[short > 0] *= _DEARER
            missing = (short * self._weights).sum(axis=1)
            cost = self._costs(held, have, spare, missing)
            cost[rests[self._node] > step] = np.inf
            best = int((cost + self._dice.random(len(cost), np.float32) * 1e-5).argmin())
            node = self._node[best]
            held[node] = self._counts[best]
            rests[node] = step + _REST + int(self._dice.integers(6))
        return None

    def _numbers(self, held: Counts) -> Which:
        found = np.zeros(len(held), np.intp)
        for node, counts in enumerate(held):
            own = self._patterns.of(node)
            found[node] = self._patterns.starts[node] + int((own == counts).all(axis=1).argmax())
        return found

    def _sums(self, held: Counts) -> tuple[Counts, Counts]:
        """Per ring: its seats (what rings within it leave over included), and what it leaves over."""
        have = np.zeros_like(self._asks)
        np.add.at(have, self._inner[self._nodes], held[self._nodes])
        spare = np.zeros_like(have)
        for number in range(len(self._rings) - 1, -1, -1):
            spare[number] = np.maximum(have[number] - self._asks[number], 0)
            if self._around[number] >= 0:
                have[self._around[number]] += spare[number]
        return have, spare

    def _costs(self, held: Counts, have: Counts, spare: Counts, missing: Prices) -> Prices:
        """What would be missing with each pattern instead of the one that its node has."""
        ring = self._of
        more = self._counts - held[self._node]
        cost = np.where(more.any(axis=1), np.float32(0), np.float32(np.inf))  # what it has is no change
        while len(ring):
            now = have[ring] + more
            asked = self._asks[ring]
            cost += (np.maximum(asked - now, 0) * self._weights[ring]).sum(axis=1) - missing[ring]
            left = np.maximum(now - asked, 0)
            around = self._around[ring]
            if not (around >= 0).any():
                cost -= _MORE * (np.minimum(left, _ENOUGH) @ self._prices)
                break
            if (around < 0).any():  # patterns of the outermost ring itself: nothing changes for anybody else
                more = np.where((around < 0)[:, None], 0, left - spare[ring])
                ring = np.where(around < 0, ring, around)
            else:
                more, ring = left - spare[ring], around
        return cost
