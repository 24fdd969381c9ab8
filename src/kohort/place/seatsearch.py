"""Seats for all pods at once, too many on some nodes at first: pods move and change places until no node has too many.

For many classes of pods with rules between them, whose patterns nobody could count. What a rule allows is never
overstepped, only what nodes have free; what is too much is made less by the best change there is for one overfull
node. Where none helps, what is too much there weighs more from then on, until some change does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from kohort.place.packing import Limit, Numbers
from kohort.place.patterns import Which

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
_STEPS: Final = 1500  # from one beginning
_TURNS: Final = 12  # beginnings
_REST: Final = 6  # steps for which a pod's class does not come back to a node it left
_HEAVIER: Final = 0.3  # what an amount that is too much weighs more, each time that nothing helps
_LEAST: Final = 1e-9
_SLOTS: Final = 2000  # seats of others that are looked at for an exchange


class SeatSearch:
    """`free`: node × resource, `asks`: class × resource, `caps`: how many of a class a node takes by itself."""

    def __init__(self, free: Numbers, asks: Numbers, caps: Numbers, limits: list[Limit]) -> None:
        scale = np.maximum(asks.mean(axis=0), 1)
        self._free, self._asks, self._caps = free / scale, asks / scale, caps
        self._most = np.array([one.most for one in limits], np.int64)
        self._layers = _layers(limits, caps.shape)
        self._held = np.zeros(len(limits), np.int64)  # pods that a limit counts
        self._seats = np.zeros(caps.shape, np.int64)
        self._load = np.zeros(free.shape)
        self._weight = np.ones(free.shape)
        self._rests = np.zeros(caps.shape, np.int64)
        self._dice = np.random.default_rng(0)

    def find(self, demand: Numbers, expired: Callable[[], bool], turns: int = _TURNS) -> Numbers | None:
        """How many pods of each class every node takes, or None if none was found; which proves nothing."""
        for turn in range(turns):
            if not self._begin(demand, expired, noise=0.05 * turn):
                return None
            if self._settled(expired):
                return self._seats
        return None

    def _settled(self, expired: Callable[[], bool]) -> bool:
        for step in range(_STEPS):
            over = np.flatnonzero((self._load > self._free + _LEAST).any(axis=1))
            if not len(over):
                return True
            if expired():
                return False
            self._better(int(self._dice.choice(over)), step)
        return False

    # ---- what a rule allows

    def _may(self, number: int, leaves: int = -1) -> Flags:
        """Nodes where one more pod of a class may go, if it leaves that node."""
        may: Flags = self._seats[:, number] < self._caps[:, number]
        for which in self._layers[number]:
            room = (which < 0) | (self._held[which] < self._most[which])
            may &= room if leaves < 0 else room | (which == which[leaves])
        return may

    def _move(self, number: int, node: int, by: int) -> None:
        self._seats[node, number] += by
        self._load[node] += by * self._asks[number]
        for which in self._layers[number]:
            if which[node] >= 0:
                self._held[which[node]] += by

    def _begin(self, demand: Numbers, expired: Callable[[], bool], noise: float) -> bool:
        """Whoever has least choice first, then the largest, each where the node is left least full, or nearly so."""
        for state in (self._held, self._seats, self._load, self._rests):
            state[:] = 0
        self._weight[:] = 1
        choice = self._caps.sum(axis=0) / np.maximum(demand, 1)
        size = (self._asks / np.maximum(self._free.sum(axis=0), _LEAST)).max(axis=1)
        room = np.maximum(self._free, _LEAST)
        for number in np.lexsort((-size, choice > 2)):
            for _ in range(int(demand[number])):
                may = np.flatnonzero(self._may(number))
                if not len(may) or expired():
                    return False
                after = ((self._load[may] + self._asks[number]) / room[may]).max(axis=1)
                after += noise * self._dice.random(len(may))
                self._move(number, int(may[after.argmin()]), 1)
        return True

    # ---- changes

    def _over(self, load: Floats, nodes: Which | int) -> Floats:
        cost: Floats = (np.maximum(load - self._free[nodes], 0) * self._weight[nodes]).sum(axis=-1)
        return cost

    def _better(self, node: int, step: int) -> None:
        """The change of this node that leaves least too much, if it does not leave more; else it weighs more."""
        mine = np.flatnonzero(self._seats[node])
        cost, change = self._moves(node, mine, step)
        swapped, exchange = self._swaps(node, mine, step)
        if min(cost, swapped) > _LEAST:
            self._weight[node] += _HEAVIER * (self._load[node] > self._free[node] + _LEAST)
            return
        number, other, back = change if cost <= swapped else exchange
        self._move(number, node, -1)
        self._move(number, other, 1)
        self._rests[node, number] = step + _REST + int(self._dice.integers(_REST))
        if back >= 0:
            self._move(back, other, -1)
            self._move(back, node, 1)
            self._rests[other, back] = step + _REST + int(self._dice.integers(_REST))

    def _moves(self, node: int, mine: Which, step: int) -> tuple[float, tuple[int, int, int]]:
        """One pod goes elsewhere: what that changes, and the class and the node of the best."""
        less = self._over(self._load[node] - self._asks[mine], node)
        every = np.arange(len(self._free))
        more = self._over(self._load + self._asks[mine][:, None], every)
        cost = (less - self._over(self._load[node], node))[:, None] + more - self._over(self._load, every)
        for place, number in enumerate(mine.tolist()):
            cost[place, ~self._may(number, node) | (self._rests[:, number] > step)] = np.inf
        cost[:, node] = np.inf
        best = int((cost + self._dice.random(cost.shape) * 1e-6).argmin())
        place, other = divmod(best, len(every))
        return float(cost[place, other]), (int(mine[place]), other, -1)

    def _swaps(self, node: int, mine: Which, step: int) -> tuple[float, tuple[int, int, int]]:
        """Two pods change places: the class that goes, where to, and the class that comes."""
        others, theirs = np.nonzero(self._seats)
        may = self._comes(node, others, theirs) & (others != node) & (self._rests[node, theirs] <= step)
        chosen = np.flatnonzero(may)
        if len(chosen) > _SLOTS:
            chosen = self._dice.choice(chosen, _SLOTS, replace=False)
        if not len(chosen):
            return np.inf, (-1, -1, -1)
        others, theirs = others[chosen], theirs[chosen]
        asks = self._asks
        here = self._over(self._load[node] - asks[mine][:, None] + asks[theirs], node) - self._over(
            self._load[node], node
        )
        there = self._over(self._load[others] - asks[theirs] + asks[mine][:, None], others) - self._over(
            self._load[others], others
        )
        cost = here + there
        for place, number in enumerate(mine.tolist()):
            goes = self._may(number, node) & (self._rests[:, number] <= step)
            cost[place, ~goes[others] | (theirs == number)] = np.inf
        best = int((cost + self._dice.random(cost.shape) * 1e-6).argmin())
        place, slot = divmod(best, len(others))
        return float(cost[place, slot]), (int(mine[place]), int(others[slot]), int(theirs[slot]))

    def _comes(self, node: int, others: Which, theirs: Which) -> Flags:
        """Whether one pod of these classes may come to the node from there."""
        may: Flags = self._seats[node, theirs] < self._caps[node, theirs]
        for number in np.unique(theirs[may]).tolist():
            for which in self._layers[number]:
                here = which[node]
                if here >= 0 and self._held[here] >= self._most[here]:
                    own = theirs == number
                    may[own] &= which[others[own]] == here
        return may


def _layers(limits: list[Limit], shape: tuple[int, int]) -> list[list[Which]]:
    """Per class: arrays that say for every node by which limit it is counted there (-1: by none), as few as can be."""
    layers: list[list[Which]] = [[] for _ in range(shape[1])]
    for place, limit in enumerate(limits):
        for number in limit.classes:
            own = next((which for which in layers[number] if (which[limit.nodes] < 0).all()), None)
            if own is None:
                own = np.full(shape[0], -1, np.intp)
                layers[number].append(own)
            own[limit.nodes] = place
    return layers
