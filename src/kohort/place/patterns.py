"""Patterns: all that a node can hold at once, as numbers of pods of each class; and prices of pods by them.

Real gangs have few shapes of pods, and a node takes few of them: a node that five pods fill has some hundred fillings.
Made for all nodes at once, class by class. A filling that leaves room for one more pod is left out: another has that
pod too.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kohort.place.packing import Counts, Numbers, Prices

Which = npt.NDArray[np.intp]
_PLENTY: Final = 1 << 40
_ROUNDS: Final = 30  # of prices
_EXACT: Final = 0.02  # prices whose worth is so near to what is asked for are looked at no further
_STEP: Final = 10.0  # the most that a price changes in one round, as an exponent
_LOWEST: Final = np.float32(1e-12)  # a price that is nothing would never rise again


class TooManyPatterns(Exception):  # noqa: N818 - a limit, not a failure
    """There are too many ways to fill a node."""


class Patterns:
    """One after the other, node by node: `counts[starts[n]:starts[n + 1]]` are those of node n."""

    def __init__(self, free: Numbers, asks: Numbers, caps: Numbers, limit: int) -> None:
        node, counts, left = np.arange(len(free)), np.zeros((len(free), 0), np.int64), free
        last = len(asks) - 1
        for number, ask in enumerate(asks):
            asked = ask > 0
            room = (left[:, asked] // ask[asked]).min(axis=1, initial=_PLENTY)
            most = np.maximum(np.minimum(room, caps[node, number]), 0)
            if number == last:
                taken = most
            else:
                which = np.repeat(np.arange(len(node)), most + 1)
                if len(which) > limit:
                    raise TooManyPatterns
                taken = np.arange(len(which)) - np.repeat(np.cumsum(most + 1) - most - 1, most + 1)
                node, counts, left = node[which], counts[which], left[which]
            counts, left = np.column_stack([counts, taken]), left - taken[:, None] * ask
        full = np.ones(len(node), bool)
        for number, ask in enumerate(asks):
            full &= ~((left >= ask).all(axis=1) & (counts[:, number] < caps[node, number]))
        self.node: Which = node[full]
        self.counts: Counts = counts[full].astype(np.float32)
        self.starts: Which = np.searchsorted(self.node, np.arange(len(free) + 1))

    def __len__(self) -> int:
        return len(self.node)

    def of(self, node: int) -> Counts:
        return self.counts[self.starts[node] : self.starts[node + 1]]

    def best(self, prices: Prices) -> tuple[Which, Prices]:
        """Per node: the pattern that is worth most, and what it is worth."""
        worth = self.counts @ prices
        most: Prices = np.maximum.reduceat(worth, self.starts[:-1])
        first = np.flatnonzero(worth == most[self.node])
        chosen = first[np.unique(self.node[first], return_index=True)[1]]
        return chosen, most

    def prices(self, demand: Counts, begin: Prices) -> tuple[Prices, float]:
        """What pods of each class are worth where room is scarce, and how much more than the demand all nodes can hold
        at these prices: below 1, they cannot hold it in any way."""
        asked = demand > 0
        prices, best, ratio = begin.copy(), begin, np.inf
        for turn in range(_ROUNDS):
            chosen, most = self.best(prices)
            now = float(most.sum()) / max(float(prices @ demand), 1e-9)
            if now < ratio:
                best, ratio = prices.copy(), now
            held = np.ones_like(prices)
            held[asked] = self.counts[chosen].sum(axis=0)[asked] / demand[asked]
            if np.ptp(held[asked]) < _EXACT:
                break
            step = -(2 / (turn + 3)) * (held - held[asked].mean())
            prices *= np.exp(np.clip(step, -_STEP, _STEP))
            prices = np.maximum(prices / prices.max(), _LOWEST)
        return best / best.max(), ratio
