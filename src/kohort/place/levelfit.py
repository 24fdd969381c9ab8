"""Groups to domains, one level at a time: so that no domain is asked for more than it has, by several measures.

How full each domain would be is a number per measure (resources, prices). Groups are moved to another domain, or two
change places, whichever makes the fullest less full, all such changes looked at together.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
_STEPS: Final = 400
_OVER: Final = 40.0  # what it costs to be too full, beside being fuller than others
_LEAST: Final = 1e-9


class LevelFit:
    """`asks`: group × measure; `room`: domain × measure; `allowed`: group × domain. `target`: up to where a domain is
    not too full."""

    def __init__(self, asks: Floats, room: Floats, allowed: Flags, target: float) -> None:
        self.asks, self.room, self.allowed, self._target = asks, np.maximum(room, _LEAST), allowed, target
        self.share = asks[:, None, :] / self.room  # group × domain × measure: how much of a domain it takes

    def begin(self, dice: np.random.Generator) -> Places | None:
        """The largest first, each to the domain that is left least full; None if some group has none."""
        if not self.allowed.any(axis=1).all():
            return None
        places = np.zeros(len(self.asks), np.intp)
        fill = np.zeros(self.room.shape)
        size = (self.asks / self.room.sum(axis=0).clip(min=_LEAST)).max(axis=1)
        choices = self.allowed.sum(axis=1)
        for group in np.lexsort((-size * dice.uniform(0.9, 1.1, len(size)), choices > 1)):
            after = self._cost(fill + self.share[group]) - self._cost(fill)
            after[~self.allowed[group]] = np.inf
            places[group] = after.argmin()
            fill[places[group]] += self.share[group, places[group]]
        return places

    def fill(self, places: Places) -> Floats:
        """How full each domain is, by measure."""
        load = np.zeros(self.room.shape)
        np.add.at(load, places, self.asks)
        return load / self.room

    def _cost(self, fill: Floats) -> Floats:
        over = np.maximum(fill - self._target, 0)
        cost: Floats = (fill**2 + _OVER * over + _OVER * over**2).sum(axis=-1)
        return cost

    def settle(self, places: Places) -> Places:
        """Moves and exchanges, the best first, until none helps."""
        places = places.copy()
        for _ in range(_STEPS):
            moves, swaps = self._moves(places), self._swaps(places)
            move, swap = int(moves.argmin()), int(swaps.argmin())
            if min(moves.flat[move], swaps.flat[swap]) > -_LEAST:
                break
            if moves.flat[move] <= swaps.flat[swap]:
                group, domain = divmod(move, moves.shape[1])
                places[group] = domain
            else:
                one, other = divmod(swap, swaps.shape[1])
                places[one], places[other] = places[other], places[one]
        return places

    def _moves(self, places: Places) -> Floats:
        """What it changes to move a group to a domain: group × domain."""
        mine = np.arange(len(places))
        fill = self.fill(places)
        now, home = self._cost(fill), places[mine]
        without = self._cost(fill[home] - self.share[mine, home]) - now[home]
        cost = self._cost(fill + self.share[mine]) - now + without[:, None]
        cost[~self.allowed[mine]] = np.inf
        cost[np.arange(len(mine)), home] = np.inf
        return cost

    def _swaps(self, places: Places) -> Floats:
        """What it changes to let two groups change places: group × group."""
        mine = np.arange(len(places))
        fill = self.fill(places)
        now, home = self._cost(fill), places[mine]
        every = np.arange(len(places))
        there = fill[home][:, None] - self.share[mine, home][:, None] + self.share[every][:, home].swapaxes(0, 1)
        back = fill[places][None] - self.share[every, places][None] + self.share[mine][:, places]
        cost: Floats = self._cost(there) + self._cost(back) - now[home][:, None] - now[places][None]
        cost[~(self.allowed[mine][:, places] & self.allowed[:, home].T)] = np.inf
        cost[home[:, None] == places[None]] = np.inf
        return cost
