"""Which domains of a network a group should take: as few as can be at each level, the fullest that still do.

Domains form a tree. To open one costs something at each level, and seats come with the narrowest ones. What is asked
for is the cheapest set with enough seats: a knapsack within each domain of the next level, and the tables of those
merged on the way up. Costs are added as one number: a domain of a more important level costs more than all of the less
important ones together, and free room that is broken into costs least. Where the tables would be too large, the wider
levels are settled first, and within what they leave the largest domains are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kohort.place.columns import Amounts, Mask

_LARGEST: Final = 6_000_000  # entries of tables
_BITS: Final = 60
_NEVER: Final = 1 << 61
Pick = Callable[[int], list[int]]


@dataclass(frozen=True, slots=True)
class Offer:
    """The narrowest domains: `paths[level]` has the domain of each at a level, the last being its own."""

    paths: Amounts  # levels x domains
    seats: Amounts
    free: Amounts  # room of all kinds that opening it breaks into
    used: Mask  # levels x domains: it is open already, for members run in it


@dataclass(frozen=True, slots=True)
class Chosen:
    """Narrowest domains by their number, and what they cost: comparable between offers of equal sizes."""

    domains: list[int]
    opened: tuple[int, ...]  # per level: new domains
    broken: int  # free room in those of the narrowest level

    def cost(self, importance: Sequence[int]) -> tuple[int, ...]:
        return (*(self.opened[level] for level in importance), self.broken)


def fewest(offer: Offer, need: int, importance: Sequence[int]) -> Chosen | None:
    """The cheapest set of domains with enough seats; None: there are not enough. `importance`: levels, the one that
    counts most first; the others do not count."""
    if need <= 0 or int(offer.seats.sum()) < need:
        return None if need > 0 else _chosen(offer, [])
    able = np.flatnonzero(offer.seats > 0)
    if need * len(able) > _LARGEST:
        return _wider(offer, able, need, importance)
    cost, pick = _Tables(offer, need, importance, len(able)).of(able, 0)
    return None if cost[need] >= _NEVER else _chosen(offer, pick(need))


def _chosen(offer: Offer, domains: list[int]) -> Chosen:
    new = ((row, used) for row, used in zip(offer.paths[:, domains], offer.used[:, domains], strict=True))
    opened = tuple(len(np.unique(row[~used])) for row, used in new)
    return Chosen(domains, opened, int(offer.free[domains][~offer.used[-1, domains]].sum()))


class _Tables:
    """What it costs at the least to have so many seats, for each number of seats up to what is needed."""

    def __init__(self, offer: Offer, need: int, importance: Sequence[int], able: int) -> None:
        self._offer, self._need = offer, need
        self._weights = [0] * len(offer.paths)
        most = min(able, need) + 1
        broken = int(offer.free.sum()) + 1
        counted = list(importance)
        while counted and most ** len(counted) >= 1 << _BITS:
            counted.pop()
        self._shift = max((most ** len(counted) * broken).bit_length() - _BITS, 0)
        weight = (broken >> self._shift) + 1
        for level in reversed(counted):
            self._weights[level] = weight
            weight *= most

    def of(self, domains: Amounts, level: int) -> tuple[Amounts, Pick]:
        if level == len(self._offer.paths) - 1:
            return self._narrowest(domains)
        paths = self._offer.paths[level, domains]
        parts = [domains[paths == one] for one in dict.fromkeys(paths.tolist())]
        if len(parts) == 1:
            return self._opened(parts[0], level)
        return self._merged([self._opened(part, level) for part in parts])

    def _opened(self, part: Amounts, level: int) -> tuple[Amounts, Pick]:
        cost, pick = self.of(part, level + 1)
        if not self._offer.used[level, part[0]]:
            cost = np.where(cost < _NEVER, cost + self._weights[level], _NEVER)
            cost[0] = 0
        return cost, pick

    def _narrowest(self, domains: Amounts) -> tuple[Amounts, Pick]:
        offer, need = self._offer, self._need
        order = domains[np.lexsort((domains, -offer.seats[domains]))]
        price = np.where(offer.used[-1], 0, self._weights[-1] + (offer.free >> self._shift))
        taken = np.zeros((len(order), need + 1), np.bool_)
        cost = _nothing(need)
        for place, domain in enumerate(order.tolist()):
            offered = _after(cost, min(int(offer.seats[domain]), need)) + int(price[domain])
            np.less(offered, cost, out=taken[place])
            np.minimum(cost, offered, out=cost)

        def pick(seats: int) -> list[int]:
            found: list[int] = []
            for place in range(len(order) - 1, -1, -1):
                if seats > 0 and taken[place, seats]:
                    found.append(int(order[place]))
                    seats = max(seats - int(offer.seats[order[place]]), 0)
            return found

        return cost, pick

    def _merged(self, parts: list[tuple[Amounts, Pick]]) -> tuple[Amounts, Pick]:
        cost = _nothing(self._need)
        shares = np.zeros((len(parts), self._need + 1), np.int32)
        for place, (own, _) in enumerate(parts):
            best = cost.copy()
            for seats in _steps(own):
                offered = _after(cost, seats) + int(own[seats])
                better = offered < best
                best[better] = offered[better]
                shares[place, better] = seats
            cost = best

        def pick(seats: int) -> list[int]:
            found: list[int] = []
            for place in range(len(parts) - 1, -1, -1):
                share = int(shares[place, seats])
                if share:
                    found += parts[place][1](min(share, seats))
                    seats = max(seats - share, 0)
            return found

        return cost, pick


def _nothing(need: int) -> Amounts:
    cost: Amounts = np.full(need + 1, _NEVER, np.int64)
    cost[0] = 0
    return cost


def _after(cost: Amounts, seats: int) -> Amounts:
    """What was paid before so many seats came in."""
    before = np.zeros_like(cost)
    before[seats:] = cost[: len(cost) - seats]
    return before


def _steps(cost: Amounts) -> list[int]:
    """Numbers of seats from which on one more costs more: others are never worth asking for."""
    rises = np.append(cost[1:] > cost[:-1], True) & (cost < _NEVER)
    rises[0] = False
    found: list[int] = np.flatnonzero(rises).tolist()
    return found


def _wider(offer: Offer, able: Amounts, need: int, importance: Sequence[int]) -> Chosen | None:
    """The same question without the narrowest level; within the answer, those in use and then the largest."""
    last = len(offer.paths) - 1
    if last == 0:
        return _chosen(offer, _largest(offer, able, need))
    _, first, where = np.unique(offer.paths[last - 1, able], return_index=True, return_inverse=True)
    seats, free = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    np.add.at(seats, where, offer.seats[able])
    np.add.at(free, where, offer.free[able])
    above = Offer(offer.paths[:-1, able[first]], seats, free, offer.used[:-1, able[first]])
    taken = fewest(above, need, [level for level in importance if level != last])
    if taken is None:
        return None
    return _chosen(offer, _largest(offer, able[np.isin(where, taken.domains)], need))


def _largest(offer: Offer, domains: Amounts, need: int) -> list[int]:
    """Those in use, then the largest, and at the end the smallest that takes the rest."""
    seats, used = offer.seats[domains], offer.used[-1, domains]
    order = np.lexsort((-seats, ~used))
    enough = int(np.searchsorted(np.cumsum(seats[order]), need)) + 1
    taken = order[:enough]
    left = need - int(seats[taken[:-1]].sum())
    fits = order[enough - 1 :]
    fits = fits[(seats[fits] >= left) & (used[fits] == used[taken[-1]])]
    taken[-1] = fits[np.argmin(seats[fits])]
    found: list[int] = domains[taken].tolist()
    return found
