"""Choosing nodes for a preemptor: where nobody must go, then where the least must.

Everything that may go has been removed. Placing pods dooms victim sets one after the other; a victim set that is
doomed for one node costs nothing on the others. Prices are worked out from what is placed at the moment, so that a
search may take its trials back.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Final

import numpy as np

from kohort.place.columns import Amounts, Mask, Rows
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass
from kohort.place.victims import VictimSet

_STEP: Final = 1 << 17  # above every score
_UNIT: Final = 64
_BREAKS: Final = 1 << 9
_OVER: Final = 1 << 12
_DEAR: Final = 1 << 40


class VictimArrays:
    """The pods of removable victim sets as arrays, ordered by row and, within it, the least important first."""

    def __init__(self, engine: Engine, victim_sets: Sequence[VictimSet], over: set[str]) -> None:
        self.victim_sets = victim_sets
        assignments = [
            (victim.row, number, victim.pod)
            for number, victim_set in enumerate(victim_sets)
            for victim in victim_set.pods
        ]
        assignments.sort(key=lambda seat: seat[:2])  # victim sets come the least important first
        interpod = engine.state.interpod
        eq_classes = [
            interpod.class_of(pod.signature, pod.namespace, pod.labels, on_node=True) for _, _, pod in assignments
        ]
        self.eq_classes = list(dict.fromkeys(eq_classes))
        numbers = {eq_class: number for number, eq_class in enumerate(self.eq_classes)}
        self.rows = np.array([row for row, _, _ in assignments], np.intp)
        self.victim_set = np.array([number for _, number, _ in assignments], np.intp)
        self.eq_class = np.array([numbers[eq_class] for eq_class in eq_classes], np.intp)
        # The last word: of victim sets that cost the same, the least important goes.
        ranks = {key: place for place, key in enumerate(sorted({victim_set.importance for victim_set in victim_sets}))}
        fine = 4 * (len(ranks) + 1)
        self.price = np.array(
            [
                0 if victim_set.leaving else _price(victim_set, over) * fine + ranks[victim_set.importance]
                for victim_set in victim_sets
            ],
            np.int64,
        )
        self.amounts = _amounts(engine, self.eq_classes)[self.eq_class] if assignments else np.zeros((0, 1), np.int64)

    def remove(self, engine: Engine, which: Mask | None = None) -> None:
        """Take the pods of some victim sets (None: all) away for now."""
        chosen = np.ones(len(self.rows), np.bool_) if which is None else which[self.victim_set]
        for number, eq_class in enumerate(self.eq_classes):
            rows, counts = np.unique(self.rows[chosen & (self.eq_class == number)], return_counts=True)
            if len(rows):
                engine.assume_many(eq_class, rows, -counts)


def _price(victim_set: VictimSet, over: set[str]) -> int:
    """As `Preemption.cost` weighs: budgets, broken gangs, victim sets, pods."""
    extra = (_OVER if victim_set.name in over else 0) + (_BREAKS if victim_set.breaks else 0)
    return _UNIT + min(len(victim_set.pods), _UNIT - 1) + extra


def _amounts(engine: Engine, eq_classes: Sequence[EquivalenceClass]) -> Amounts:
    engine.state.widen()
    amounts = np.zeros((len(eq_classes), engine.state.alloc.shape[1]), np.int64)
    for number, eq_class in enumerate(eq_classes):
        amounts[number, eq_class.signature.columns] = eq_class.signature.amounts
    return amounts


class LeastDisruption:
    """A way to assume pods on nodes that disturbs as few victim sets as can be."""

    def __init__(self, engine: Engine, victims: VictimArrays) -> None:
        self._engine, self._victims = engine, victims
        self._at: dict[int, list[int]] = {}  # row -> positions of its victims
        for position, row in enumerate(victims.rows.tolist()):
            self._at.setdefault(row, []).append(position)
        self._of: list[list[int]] = [[] for _ in victims.victim_sets]  # victim set -> rows
        for row, victim_set in zip(victims.rows.tolist(), victims.victim_set.tolist(), strict=True):
            self._of[victim_set].append(row)

    def assume(self, eq_class: EquivalenceClass, rows: Rows | None, count: int) -> list[int]:
        """Like the engine's own, by price before score."""
        engine, signature = self._engine, eq_class.signature
        doomed = self._doomed()
        prices = self._prices(eq_class, doomed)
        taken: list[int] = []
        while len(taken) < count:
            fit, score = engine.evaluate(signature)
            free = engine.feasible(eq_class, fit)
            row = score.best(free if rows is None else free[rows], rows, -prices * _STEP)
            if row is None:
                break
            engine.assume_on(eq_class, row)
            taken.append(row)
            if len(taken) < count:
                changed = {row}
                for victim_set in self._needed(row, doomed):
                    doomed.add(victim_set)
                    changed.update(self._of[victim_set])
                for one in changed:
                    prices[one] = self._price(one, eq_class, doomed)
        return taken

    def room(self, eq_class: EquivalenceClass) -> Amounts:
        """How many pods of the class each row takes if only those go that are doomed already."""
        engine, signature = self._engine, eq_class.signature
        free = (engine.state.alloc - engine.state.used)[:, signature.columns]
        np.subtract.at(free, self._victims.rows, self._staying(self._doomed())[:, signature.columns])
        room = (
            np.maximum((free // signature.amounts).min(axis=1), 0)
            if len(signature.columns)
            else free[:, :0].sum(axis=1) + 1
        )
        suits = engine.evaluate(signature)[0].suits
        return np.where(suits, room, 0)

    # ---- prices

    def _staying(self, doomed: set[int]) -> Amounts:
        """What each victim still holds: nothing if it is doomed."""
        if not doomed:
            return self._victims.amounts
        gone = np.zeros(len(self._victims.victim_sets), np.bool_)
        gone[list(doomed)] = True
        return np.where(gone[self._victims.victim_set][:, None], 0, self._victims.amounts)

    def _doomed(self) -> set[int]:
        """Victim sets that must go for what is placed now."""
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
        """The least important victim sets on a row whose leaving makes room for what is placed on it."""
        state, victims = self._engine.state, self._victims
        here = [position for position in self._at.get(row, ()) if int(victims.victim_set[position]) not in doomed]
        if not here:
            return []
        gives: dict[int, list[int]] = {}  # by victim set, in their order; few numbers, for which arrays are slow
        for victim_set, amounts in zip(victims.victim_set[here].tolist(), victims.amounts[here].tolist(), strict=True):
            known = gives.get(victim_set)
            gives[victim_set] = amounts if known is None else list(map(add, known, amounts))
        free: list[int] = (state.alloc[row] - state.used[row] - victims.amounts[here].sum(axis=0)).tolist()
        needed: list[int] = []
        for victim_set, amounts in gives.items():
            if min(free) >= 0:
                break
            if any(left < 0 < amount for left, amount in zip(free, amounts, strict=True)):
                needed.append(victim_set)
                free = list(map(add, free, amounts))
        return needed

    def _price(self, row: int, eq_class: EquivalenceClass, doomed: set[int]) -> int:
        """What one more pod of the class on a row costs."""
        signature, state, victims = eq_class.signature, self._engine.state, self._victims
        here = [position for position in self._at.get(row, ()) if int(victims.victim_set[position]) not in doomed]
        columns = signature.columns
        free = state.alloc[row, columns] - state.used[row, columns] - signature.amounts
        free = free - victims.amounts[here][:, columns].sum(axis=0) if here else free
        price, paid = 0, set()
        for position in here:
            if (free >= 0).all():
                break
            victim_set, gives = int(victims.victim_set[position]), victims.amounts[position, columns]
            if victim_set not in paid and ((free < 0) & (gives > 0)).any():
                paid.add(victim_set)
                price += int(victims.price[victim_set])
            free = free + gives
        return min(price, _DEAR)

    def _prices(self, eq_class: EquivalenceClass, doomed: set[int]) -> Amounts:
        """The same for all rows at once; a victim set with several pods on a row is paid for each of them."""
        signature, state, victims = eq_class.signature, self._engine.state, self._victims
        prices = np.zeros(state.rows, np.int64)
        if not len(victims.rows):
            return prices
        columns = signature.columns
        held = self._staying(doomed)[:, columns]
        free = (state.alloc - state.used)[:, columns] - signature.amounts
        np.subtract.at(free, victims.rows, held)
        # Within its row, what has been freed before each victim: is it needed still?
        before = np.cumsum(held, axis=0) - held
        starts = np.flatnonzero(np.diff(victims.rows, prepend=-1))
        before -= np.repeat(before[starts], np.diff(np.append(starts, len(victims.rows))), axis=0)
        needed = ((free[victims.rows] + before < 0) & (held > 0)).any(axis=1)
        np.add.at(prices, victims.rows[needed], victims.price[victims.victim_set[needed]])
        return np.minimum(prices, _DEAR)
