"""Choosing nodes for a preemptor: where nobody must go, then where the least must.

Everything that may go has been lifted. Placing pods dooms units one after the other; a unit that is doomed for one
node is free to take everywhere else. Prices are worked out from what is placed at the moment, so that a search may
take its trials back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kohort.place.columns import Amounts, Mask, Rows
from kohort.place.engine import Engine
from kohort.place.pairs import PairClass
from kohort.place.units import Unit

_STEP: Final = 1 << 17  # above every score
_UNIT: Final = 64
_BREAKS: Final = 1 << 9
_OVER: Final = 1 << 12
_DEAR: Final = 1 << 40


class Victims:
    """The pods of removable units as arrays, ordered by row and, within it, the least important first."""

    def __init__(self, engine: Engine, units: Sequence[Unit], over: set[str]) -> None:
        self.units = units
        seats = [(victim.row, number, victim.pod) for number, unit in enumerate(units) for victim in unit.pods]
        seats.sort(key=lambda seat: seat[:2])  # units come the least important first
        pairs = engine.state.pairs
        kinds = [pairs.class_of(pod.shape, pod.namespace, pod.labels, seated=True) for _, _, pod in seats]
        self.kinds = list(dict.fromkeys(kinds))
        numbers = {kind: number for number, kind in enumerate(self.kinds)}
        self.rows = np.array([row for row, _, _ in seats], np.intp)
        self.unit = np.array([number for _, number, _ in seats], np.intp)
        self.kind = np.array([numbers[kind] for kind in kinds], np.intp)
        # The last word: of units that cost the same, the least important goes.
        ranks = {key: place for place, key in enumerate(sorted({unit.importance for unit in units}))}
        fine = 4 * (len(ranks) + 1)
        self.price = np.array([_price(unit, over) * fine + ranks[unit.importance] for unit in units], np.int64)
        self.amounts = _amounts(engine, self.kinds)[self.kind] if seats else np.zeros((0, 1), np.int64)

    def lift(self, engine: Engine, which: Mask | None = None) -> None:
        """Take the pods of some units (None: all) away for now."""
        chosen = np.ones(len(self.rows), np.bool_) if which is None else which[self.unit]
        for number, kind in enumerate(self.kinds):
            rows, counts = np.unique(self.rows[chosen & (self.kind == number)], return_counts=True)
            if len(rows):
                engine.put_many(kind, rows, -counts)


def _price(unit: Unit, over: set[str]) -> int:
    """As `Preemption.cost` weighs: budgets, broken gangs, units, pods."""
    extra = (_OVER if unit.name in over else 0) + (_BREAKS if unit.breaks else 0)
    return _UNIT + min(len(unit.pods), _UNIT - 1) + extra


def _amounts(engine: Engine, kinds: Sequence[PairClass]) -> Amounts:
    engine.state.widen()
    amounts = np.zeros((len(kinds), engine.state.alloc.shape[1]), np.int64)
    for number, kind in enumerate(kinds):
        amounts[number, kind.shape.columns] = kind.shape.amounts
    return amounts


class Gentle:
    """A way to seat pods that disturbs as few units as can be."""

    def __init__(self, engine: Engine, victims: Victims) -> None:
        self._engine, self._victims = engine, victims
        self._at: dict[int, list[int]] = {}  # row -> positions of its victims
        for position, row in enumerate(victims.rows.tolist()):
            self._at.setdefault(row, []).append(position)
        self._of: list[list[int]] = [[] for _ in victims.units]  # unit -> rows
        for row, unit in zip(victims.rows.tolist(), victims.unit.tolist(), strict=True):
            self._of[unit].append(row)

    def seat(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        """Like the engine's own, by price before score."""
        engine, shape = self._engine, kind.shape
        doomed = self._doomed()
        prices = self._prices(kind, doomed)
        taken: list[int] = []
        while len(taken) < count:
            fit, score = engine.look(shape)
            free = engine.may(kind, fit)
            row = score.best(free if rows is None else free[rows], rows, -prices * _STEP)
            if row is None:
                break
            engine.put(kind, row)
            taken.append(row)
            if len(taken) < count:
                changed = {row}
                for unit in self._needed(row, doomed):
                    doomed.add(unit)
                    changed.update(self._of[unit])
                for one in changed:
                    prices[one] = self._price(one, kind, doomed)
        return taken

    def room(self, kind: PairClass) -> Amounts:
        """How many pods of the class each row takes if only those go that are doomed already."""
        engine, shape = self._engine, kind.shape
        free = (engine.state.alloc - engine.state.used)[:, shape.columns]
        np.subtract.at(free, self._victims.rows, self._staying(self._doomed())[:, shape.columns])
        room = np.maximum((free // shape.amounts).min(axis=1), 0) if len(shape.columns) else free[:, :0].sum(axis=1) + 1
        suits = engine.look(shape)[0].suits
        return np.where(suits, room, 0)

    # ---- prices

    def _staying(self, doomed: set[int]) -> Amounts:
        """What each victim still holds: nothing if it is doomed."""
        if not doomed:
            return self._victims.amounts
        gone = np.zeros(len(self._victims.units), np.bool_)
        gone[list(doomed)] = True
        return np.where(gone[self._victims.unit][:, None], 0, self._victims.amounts)

    def _doomed(self) -> set[int]:
        """Units that must go for what is placed now."""
        state, victims = self._engine.state, self._victims
        doomed: set[int] = set()
        if not len(victims.rows):
            return doomed
        held = np.zeros_like(state.used)
        np.add.at(held, victims.rows, victims.amounts)
        for row in np.flatnonzero((state.used + held > state.alloc).any(axis=1)).tolist():
            doomed.update(self._needed(row, doomed))
        return doomed

    def _needed(self, row: int, doomed: set[int]) -> list[int]:
        """The least important units on a row whose leaving makes room for what is placed on it."""
        state, victims = self._engine.state, self._victims
        here = [position for position in self._at.get(row, ()) if int(victims.unit[position]) not in doomed]
        if not here:
            return []
        free = state.alloc[row] - state.used[row] - victims.amounts[here].sum(axis=0)
        needed: list[int] = []
        for position in here:
            if (free >= 0).all():
                break
            if ((free < 0) & (victims.amounts[position] > 0)).any():
                unit = int(victims.unit[position])
                needed.append(unit)
                free = free + victims.amounts[[one for one in here if int(victims.unit[one]) == unit]].sum(axis=0)
        return list(dict.fromkeys(needed))

    def _price(self, row: int, kind: PairClass, doomed: set[int]) -> int:
        """What one more pod of the class on a row costs."""
        shape, state, victims = kind.shape, self._engine.state, self._victims
        here = [position for position in self._at.get(row, ()) if int(victims.unit[position]) not in doomed]
        columns = shape.columns
        free = state.alloc[row, columns] - state.used[row, columns] - shape.amounts
        free = free - victims.amounts[here][:, columns].sum(axis=0) if here else free
        price, paid = 0, set()
        for position in here:
            if (free >= 0).all():
                break
            unit, gives = int(victims.unit[position]), victims.amounts[position, columns]
            if unit not in paid and ((free < 0) & (gives > 0)).any():
                paid.add(unit)
                price += int(victims.price[unit])
            free = free + gives
        return min(price, _DEAR)

    def _prices(self, kind: PairClass, doomed: set[int]) -> Amounts:
        """The same for all rows at once; a unit with several pods on a row is paid for each (a little too dear)."""
        shape, state, victims = kind.shape, self._engine.state, self._victims
        prices = np.zeros(state.rows, np.int64)
        if not len(victims.rows):
            return prices
        columns = shape.columns
        held = self._staying(doomed)[:, columns]
        free = (state.alloc - state.used)[:, columns] - shape.amounts
        np.subtract.at(free, victims.rows, held)
        # Within its row, what has been freed before each victim: is it needed still?
        before = np.cumsum(held, axis=0) - held
        starts = np.flatnonzero(np.diff(victims.rows, prepend=-1))
        before -= np.repeat(before[starts], np.diff(np.append(starts, len(victims.rows))), axis=0)
        needed = ((free[victims.rows] + before < 0) & (held > 0)).any(axis=1)
        np.add.at(prices, victims.rows[needed], victims.price[victims.unit[needed]])
        return np.minimum(prices, _DEAR)
