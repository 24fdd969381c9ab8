"""What nodes can hold, seen from many sides: at each of some prices of pods, what a node's best filling is worth.

Groups whose pods are worth more than that at any of these prices do not fit on the nodes, whatever else is true. Seen
from enough sides, hardly anything that does not fit is left.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kohort.place.levelfit import Floats
from kohort.place.packing import Counts, PackGroup, Prices
from kohort.place.patterns import Patterns

_SIDES: Final = 150
_WORK: Final = 20_000_000  # patterns × sides × classes


class Sides:
    """`room`: node × side. `measures`: sides that come first; the first of them is the price of pods."""

    def __init__(self, patterns: Patterns, measures: Counts) -> None:
        prices: Prices = measures[0]
        dice, classes = np.random.default_rng(0), len(prices)
        count = int(np.clip(_WORK // max(len(patterns) * classes, 1), 4, _SIDES))
        some = np.exp(dice.normal(0, 0.5, (count, classes))) * prices
        some[count // 2 :] *= dice.random((count - count // 2, classes)) < 0.6  # only some classes are asked for
        sides = np.vstack([measures, np.eye(classes), some]).astype(np.float32)
        worth = patterns.counts @ sides.T
        self.room: Floats = np.maximum.reduceat(worth, patterns.starts[:-1], axis=0).astype(np.float64)
        self._sides = sides.astype(np.float64)

    def least(self, group: PackGroup) -> Floats:
        """What a group is worth at the least, from each side."""
        if group.children:
            each = np.sort(np.array([self.least(child) for child in group.children]), axis=0)
        else:
            each = np.sort(np.repeat(self._sides[:, list(group.pods)], list(group.pods.values()), axis=1), axis=1).T
        found: Floats = each[: group.need].sum(axis=0)
        return found
