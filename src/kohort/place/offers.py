"""What a domain might take beside the groups that must be there, counted up: sets of groups by their sorts."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from kohort.place.levelfit import Flags, Floats
from kohort.place.patterns import Which

_STATES: Final = 40_000  # sets of one size that are kept
_FEW: Final = 4  # measures by which they are counted up
_LOOKED: Final = 48  # sets that are looked at by all measures at once
_LOOKS: Final = 6
_LEAST: Final = 1e-7


class DomainOffers:
    """`room`: by measure; `asks`: sort × measure; `most`: groups of each sort; `may`: sorts that may be there."""

    def __init__(self, room: Floats, asks: Floats, most: Which, may: Flags, dice: np.random.Generator) -> None:
        self._room, self._asks = room, asks
        found: list[Which] = []
        sorts, left = np.zeros((1, 0), np.intp), room[None, :_FEW]
        while len(sorts):
            sorts, left = self._larger(sorts, left, most, may)
            if len(sorts) > _STATES:
                few = np.sort(dice.choice(len(sorts), _STATES, replace=False))
                sorts, left = sorts[few], left[few]
            found.append(sorts)
        deep = max((one.shape[1] for one in found), default=0)
        self._sorts = np.full((sum(map(len, found)), deep), len(asks), np.intp)  # one that does not exist: nothing
        start = 0
        for one in found:
            self._sorts[start : start + len(one), : one.shape[1]] = one
            start += len(one)
        self._open = np.ones(len(self._sorts), bool)

    def _larger(self, sorts: Which, left: Floats, most: Which, may: Flags) -> tuple[Which, Floats]:
        """One group more: of no sort that comes before those that a set has."""
        last = sorts[:, -1] if sorts.shape[1] else np.zeros(len(sorts), np.intp)
        fits = np.zeros((len(left), len(self._asks)), bool)
        for sort in np.flatnonzero(may).tolist():
            fits[:, sort] = (last <= sort) & (left >= self._asks[sort, :_FEW]).all(axis=1)
        which, more = np.nonzero(fits)
        sorts, left = np.column_stack([sorts[which], more]), left[which] - self._asks[more, :_FEW]
        enough = (sorts == more[:, None]).sum(axis=1) <= most[more]
        return sorts[enough], left[enough]

    def best(self, worth: Floats, cost: float, count: int) -> list[tuple[int, ...]]:
        """The sets that are worth most, if that is more than what they cost; not offered again."""
        value = np.append(worth, 0.0)[self._sorts].sum(axis=1)
        value[~self._open] = -np.inf
        found: list[tuple[int, ...]] = []
        for _ in range(_LOOKS):
            few = np.argpartition(-value, _LOOKED)[:_LOOKED] if len(value) > _LOOKED else np.arange(len(value))
            few = few[value[few] > cost + _LEAST]
            if not len(few):
                break
            few = few[np.lexsort((few, -value[few]))]
            asked = np.vstack([self._asks, np.zeros(self._asks.shape[1])])[self._sorts[few]].sum(axis=1)
            fits = (asked <= self._room).all(axis=1)
            chosen = few[fits][: count - len(found)]
            gone = np.concatenate([few[~fits], chosen])
            self._open[gone], value[gone] = False, -np.inf
            found += [tuple(one[one < len(self._asks)].tolist()) for one in self._sorts[chosen]]
            if len(found) >= count:
                break
        return found

    def refuse(self, sorts: tuple[int, ...]) -> None:
        """A domain does not take these in fact: nor more than these."""
        has = np.ones(len(self._sorts), bool)
        for sort, count in Counter(sorts).items():
            has &= (self._sorts == sort).sum(axis=1) >= count
        self._open &= ~has
