"""The search for a packing: patterns of nodes, groups to domains, and seats dealt out to the pods of groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from kohort.place.mixture import mixed
from kohort.place.packing import Numbers, PackGroup, Packing, Prices, trimmed
from kohort.place.patternchoice import choose_within
from kohort.place.patterns import Patterns, TooManyPatterns
from kohort.place.seatsearch import SeatSearch
from kohort.place.treefit import Placed, TreeFit

_PATTERNS: Final = 400_000
_TURNS: Final = 60  # choices of what is needed
_CALM: Final = 4  # the first of them, without noise
_AGAIN: Final = 6  # tries of the same choice, where groups are held to domains
_LEAST: Final = 0.9999  # of the demand that nodes must be able to hold, by prices


def find(packing: Packing, expired: Callable[[], bool]) -> list[int] | None:
    """A node for every pod that is needed, or None if none was found; which proves nothing."""
    everywhere = tuple(range(len(packing.free)))
    places = [everywhere]
    if packing.root.level >= 0:  # all in one domain: the others have no say in what is scarce there
        codes = np.array(packing.levels[packing.root.level])
        wanted = np.unique(codes[codes != 0]) if not packing.root.code else [packing.root.code]
        places = [tuple(np.flatnonzero(codes == code).tolist()) for code in wanted]
        free = np.array(packing.free, np.float64)
        places.sort(key=lambda nodes: -float((free[list(nodes)].sum(axis=0) / free.sum(axis=0).clip(min=1)).min()))
    for nodes in places:
        found = _Within(packing, nodes, expired).find()
        if found is not None or expired():
            return found
    return None


class _Within:
    """The search within some nodes."""

    def __init__(self, packing: Packing, nodes: tuple[int, ...], expired: Callable[[], bool]) -> None:
        self._packing, self._nodes, self._expired = packing, nodes, expired
        self._free, self._asks = np.array(packing.free, np.int64), np.array(packing.asks, np.int64)
        self._caps = np.zeros((len(self._free), len(self._asks)), np.int64)
        self._caps[list(nodes)] = np.array(packing.caps, np.int64)[list(nodes)]
        self._caps = np.minimum(self._caps, packing.demand())
        size = (self._asks / np.maximum(self._free[list(nodes)].sum(axis=0), 1)).sum(axis=1).astype(np.float32)
        self._size = size / size.max()

    def find(self) -> list[int] | None:
        """What is needed is chosen by prices, which are made by what is chosen; each choice is tried some times."""
        if self._packing.limits:
            return self._seated()
        try:
            patterns = _patterns(self._free, self._asks, self._caps, self._size)
        except TooManyPatterns:
            return None if self._packing.levels else self._seated()
        root, spare = self._packing.root, _has_pods_to_spare(self._packing.root)
        again = _AGAIN if self._packing.levels else _TURNS
        prices, dice, tried = self._size, np.random.default_rng(0), list[dict[int, dict[int, int]]]()
        for turn in range(_TURNS):
            if self._expired():
                break
            noise = 0.0 if turn < _CALM else 0.02 * (1 + turn % 8)
            if spare:  # by turns: as nodes can hold it best together, and the cheapest
                root = self._packing.root if turn % 2 else mixed(self._packing.root, patterns, self._size, dice, turn)
            lean = trimmed(root, prices, dice, noise)
            chosen = {leaf.leaf: leaf.pods for leaf in lean.leaves()}
            if tried.count(chosen) >= again:
                continue
            tried.append(chosen)
            prices, ratio = patterns.prices(self._packing.demand([lean]).astype(np.float32), prices)
            if ratio < _LEAST:
                continue
            fit = TreeFit(self._packing, patterns, prices, self._expired, seed=turn)
            placed = fit.place(self._nodes, [root])
            if placed is not None:
                seats = np.zeros(self._caps.shape, np.int64)
                _collect(placed, patterns, seats)
                values = _dealt(self._packing, placed, seats)
                return values if self._packing.holds(values) else None
        return None

    def _seated(self) -> list[int] | None:
        """Pod by pod: of many classes, and where rules between pods are to be kept."""
        lean = trimmed(self._packing.root, self._size, np.random.default_rng(0), 0)
        demand = self._packing.demand([lean])
        search = SeatSearch(self._free, self._asks, self._caps, self._packing.limits)
        seats = search.find(demand, self._expired, 1)
        if seats is None and not self._expired():
            seats = self._chosen(demand)
        if seats is None and not self._expired():
            seats = search.find(demand, self._expired)
        if seats is None:
            return None
        placed = Placed(self._nodes, list(lean.leaves()), demand.astype(np.float32))
        values = _dealt(self._packing, placed, seats)
        return values if self._packing.holds(values) else None

    def _chosen(self, demand: Numbers) -> Numbers | None:
        """Where there are few classes: by HiGHS, from the patterns of all nodes."""
        try:
            patterns = _patterns(self._free, self._asks, np.minimum(self._caps, demand), self._size)
        except TooManyPatterns:
            return None
        asked = demand.astype(np.float32)
        prices, _ = patterns.prices(asked, self._size)
        return choose_within(patterns, self._packing.limits, asked, prices, self._expired)


def _has_pods_to_spare(root: PackGroup) -> bool:
    return any(sum(leaf.pods.values()) > leaf.need for leaf in root.leaves())


def _patterns(free: Numbers, asks: Numbers, caps: Numbers, size: Prices) -> Patterns:
    """Of the resources that are scarce, made with the largest class first, which makes fewer on the way."""
    order = np.argsort(-size, kind="stable")
    scarce = (caps @ asks > free).any(axis=0)
    free, asks = free[:, scarce], asks[:, scarce]
    made = Patterns(free, asks[order], caps[:, order], _PATTERNS)
    counts = np.empty_like(made.counts)
    counts[:, order] = made.counts
    made.counts = counts
    return made


def _dealt(packing: Packing, placed: Placed, seats: Numbers) -> list[int]:
    """The innermost first: whoever is left is freer in its choice."""
    of: dict[tuple[int, int], list[int]] = {}

    def deal(one: Placed) -> None:
        for ring in one.inner:
            deal(ring)
        for leaf in one.loose:
            for number, count in leaf.pods.items():
                of[leaf.leaf, number] = _take(seats, one, number, count)

    deal(placed)
    values: list[int] = []
    for leaf in packing.root.leaves():
        for number, count in leaf.pods.items():
            taken = of.get((leaf.leaf, number), [])
            values += [*taken, *[-1] * (count - len(taken))]
    return values


def _collect(placed: Placed, patterns: Patterns, seats: Numbers) -> None:
    for ring in placed.inner:
        _collect(ring, patterns, seats)
    for node, pattern in placed.patterns.items():
        seats[node] = patterns.counts[pattern]


def _take(seats: Numbers, placed: Placed, number: int, count: int) -> list[int]:
    taken: list[int] = []
    for node in placed.rows:
        some = min(int(seats[node, number]), count - len(taken))
        seats[node, number] -= some
        taken += [node] * some
        if len(taken) == count:
            break
    return taken
