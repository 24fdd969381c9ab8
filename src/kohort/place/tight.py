"""Choosing nodes so that little is wasted: the node that is left with least after the pod. For a last try."""

from __future__ import annotations

from typing import Final

import numpy as np

from kohort.place.columns import Amounts, Rows
from kohort.place.engine import Engine
from kohort.place.pairs import PairClass

_FINE: Final = 1000


class Tight:
    """A way to seat pods that packs them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def seat(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        if kind.is_plain:
            return self._filled(kind, rows, count)
        engine, taken = self._engine, list[int]()
        while len(taken) < count:
            fit, _ = engine.look(kind.shape)
            free = np.flatnonzero(engine.may(kind, fit)) if rows is None else rows[engine.may(kind, fit)[rows]]
            if not len(free):
                break
            row = int(free[self._waste(kind, free).argmin()])
            engine.put(kind, row)
            taken.append(row)
        return taken

    def _filled(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        """A node that has got a pod has still less left, and gets the next: nodes are filled one after the other."""
        room = self._engine.room(kind)
        free = np.flatnonzero(room) if rows is None else rows[room[rows] > 0]
        order = free[np.argsort(self._waste(kind, free), kind="stable")]
        before = np.cumsum(room[order]) - room[order]
        taken = np.clip(count - before, 0, room[order])
        used = taken > 0
        self._engine.put_many(kind, order[used], taken[used])
        placed: list[int] = np.repeat(order, taken).tolist()
        return placed

    def _waste(self, kind: PairClass, rows: Rows) -> Amounts:
        """What would be left of the resources that the pod asks for, in parts of what one pod asks."""
        state, shape = self._engine.state, kind.shape
        where = np.ix_(rows, shape.columns)
        left: Amounts = (state.alloc[where] - state.used[where] - shape.amounts) * _FINE // shape.amounts
        waste: Amounts = np.minimum(left, _FINE * _FINE).sum(axis=1)
        return waste

    def room(self, kind: PairClass) -> Amounts:
        return self._engine.room(kind)
