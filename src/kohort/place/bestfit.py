"""Choosing nodes so that little is wasted: the node that is left with least after the pod. For a last try."""

from __future__ import annotations

from typing import Final

import numpy as np

from kohort.place.columns import Amounts, Rows
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass

_FINE: Final = 1000


class BestFit:
    """A way to assume pods on nodes that packs them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def assume(self, eq_class: EquivalenceClass, rows: Rows | None, count: int) -> list[int]:
        if eq_class.is_plain:
            return self._filled(eq_class, rows, count)
        engine, taken = self._engine, list[int]()
        while len(taken) < count:
            fit = engine.fit(eq_class.signature)
            free = (
                np.flatnonzero(engine.feasible(eq_class, fit))
                if rows is None
                else rows[engine.feasible(eq_class, fit)[rows]]
            )
            if not len(free):
                break
            row = int(free[engine.state.foremost(-self._waste(eq_class, free), free)])
            engine.assume_on(eq_class, row)
            taken.append(row)
        return taken

    def _filled(self, eq_class: EquivalenceClass, rows: Rows | None, count: int) -> list[int]:
        """A node that has got a pod has still less left, and gets the next: nodes are filled one after the other."""
        room = self._engine.room(eq_class)
        free = np.flatnonzero(room) if rows is None else rows[room[rows] > 0]
        order = free[np.argsort(self._waste(eq_class, free), kind="stable")]
        before = np.cumsum(room[order]) - room[order]
        taken = np.clip(count - before, 0, room[order])
        used = taken > 0
        self._engine.assume_many(eq_class, order[used], taken[used])
        placed: list[int] = np.repeat(order, taken).tolist()
        return placed

    def _waste(self, eq_class: EquivalenceClass, rows: Rows) -> Amounts:
        """What would be left of the resources that the pod asks for, in parts of what one pod asks."""
        state, signature = self._engine.state, eq_class.signature
        where = np.ix_(rows, signature.columns)
        left: Amounts = (state.alloc[where] - state.used[where] - signature.amounts) * _FINE // signature.amounts
        waste: Amounts = np.minimum(left, _FINE * _FINE).sum(axis=1)
        return waste

    def room(self, eq_class: EquivalenceClass) -> Amounts:
        return self._engine.room(eq_class)
