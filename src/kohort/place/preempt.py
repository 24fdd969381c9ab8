"""Preemption: who must go so that a tree fits, disturbing as little as can be found.

Nothing is evicted unless the tree then fits. Only as high a priority is touched as is needed; pods of the tree prefer
nodes that are free anyway; among topology domains the one that costs least is taken; whatever need not go is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from kohort.place.between import allowed
from kohort.place.columns import Amounts, Rows
from kohort.place.demand import Demand, Result
from kohort.place.domains import domains
from kohort.place.engine import Engine
from kohort.place.pairs import PairClass
from kohort.place.search import Search
from kohort.place.units import Budget, Unit, violating

_DEAR = 2000  # a node's price is not counted beyond this
_DOMAINS = 32  # root domains compared by what they cost


@dataclass(frozen=True, slots=True)
class Preemption:
    """A plan: these units go, then the tree fits like this."""

    victims: tuple[Unit, ...]
    result: Result
    over_budget: int = 0  # victims whose disruption budget does not allow it

    @property
    def cost(self) -> tuple[int, int, int, int]:
        """Less is better: budgets broken, the highest priority touched, units, pods."""
        pods = sum(len(unit.pods) for unit in self.victims)
        top = max((unit.priority for unit in self.victims), default=-(2**31))
        return (self.over_budget, top, len(self.victims), pods)


class Preemptor:
    """One attempt for one root."""

    def __init__(self, engine: Engine, units: Sequence[Unit], budgets: Sequence[Budget] = ()) -> None:
        self._engine = engine
        self._units = units
        self._budgets = budgets
        self._classes: dict[str, PairClass] = {}

    def plan(self, root: Demand, priority: int) -> Preemption | None:
        """The least disruptive plan found, None if evicting everything below the priority would not help."""
        eligible = sorted((unit for unit in self._units if unit.priority < priority), key=lambda unit: unit.importance)
        level = self._level(root, eligible)
        if level is None:
            return None
        removable = [unit for unit in eligible if unit.priority <= level]
        plans = [plan for rows in self._choices(root, removable) if (plan := self._on(root, removable, rows))]
        return min(plans, key=lambda plan: plan.cost, default=None)

    def _level(self, root: Demand, eligible: Sequence[Unit]) -> int | None:
        """The lowest priority up to which units must be removable for the tree to fit."""
        levels = sorted({unit.priority for unit in eligible})
        if not levels or not self._fits(root, eligible):
            return None
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if self._fits(root, [unit for unit in eligible if unit.priority <= levels[middle]]):
                high = middle
            else:
                low = middle + 1
        return levels[low]

    def _fits(self, root: Demand, gone: Iterable[Unit]) -> bool:
        mark = self._engine.mark()
        self._lift(gone)
        fits = Search(self._engine).place(root).ok
        self._engine.undo(mark)
        return fits

    def _choices(self, root: Demand, removable: Sequence[Unit]) -> list[Rows | None]:
        """Node sets to compare: the domains of the root's constraint, or everything."""
        if root.topology is None:
            return [None]
        mark = self._engine.mark()
        self._lift(removable)
        found = [domain.rows for domain in islice(domains(self._engine, root, None), _DOMAINS)]
        self._engine.undo(mark)
        return found

    def _on(self, root: Demand, removable: Sequence[Unit], rows: Rows | None) -> Preemption | None:
        engine = self._engine
        mark = engine.mark()
        kinds = {pod.kind for leaf in root.leaves() for pod in leaf.pods}
        wishes = {kind: (engine.room(kind).copy(), self._costs(kind, removable)) for kind in kinds}
        self._lift(removable)
        with engine.preferring(wishes):
            result = Search(engine).place(root, rows)
        if not result.ok:
            engine.undo(mark)
            return None
        back = self._put_back(root, result, removable)
        engine.undo(mark)
        victims = tuple(unit for unit in removable if unit.name not in back)
        over = violating(removable, self._budgets)
        return Preemption(victims, result, sum(unit.name in over for unit in victims))

    def _costs(self, kind: PairClass, removable: Sequence[Unit]) -> Amounts:
        """Per node: how many pods must go, in the units they are in, before one pod of the class fits."""
        state, shape = self._engine.state, kind.shape
        costs = np.zeros(state.rows, np.int64)
        missing: dict[int, Amounts] = {}
        for unit in removable:
            for victim in unit.pods:
                row = victim.row
                if row not in missing:
                    free = state.alloc[row, shape.columns] - state.used[row, shape.columns]
                    missing[row] = shape.amounts - free
                if (missing[row] > 0).any():
                    # A pod of a unit takes the unit along: its whole size is the price.
                    costs[row] += len(unit.pods)
                    missing[row] = missing[row] - victim.pod.shape.vector(shape.columns)
        return np.minimum(costs, _DEAR)

    def _put_back(self, root: Demand, result: Result, removable: Sequence[Unit]) -> set[str]:
        """Units that can stay after all: those over their budget first, then the most important ones."""
        over = violating(removable, self._budgets)
        order = sorted(removable, key=lambda unit: (unit.name in over, unit.importance), reverse=True)
        kinds = {pod.key: pod.kind for leaf in root.leaves() for pod in leaf.pods}
        ruled = any(not kinds[key].is_plain for key in result.placed)
        back: set[str] = set()
        for unit in order:
            mark = self._engine.mark()
            if self._seat(unit) and (not ruled or self._still_allowed(result, kinds)):
                back.add(unit.name)
            else:
                self._engine.undo(mark)
        return back

    def _seat(self, unit: Unit) -> bool:
        """Put a unit's pods back where they were, if there is room for all of them."""
        state = self._engine.state
        for victim in unit.pods:
            self._engine.put(self._class(victim.pod.uid, unit), victim.row)
        rows = [victim.row for victim in unit.pods]
        return bool((state.used[rows] <= state.alloc[rows]).all())

    def _still_allowed(self, result: Result, kinds: dict[str, PairClass]) -> bool:
        """Rules between pods: each placed pod, taken out and asked again, may still be where it is."""
        engine = self._engine
        for key, row in result.placed.items():
            kind = kinds[key]
            mark = engine.mark()
            engine.lift(kind, row)
            fit, _ = engine.look(kind.shape)
            ok = bool(allowed(engine.state, kind, fit)[row])
            engine.undo(mark)
            if not ok:
                return False
        return True

    def _lift(self, units: Iterable[Unit]) -> None:
        for unit in units:
            for victim in unit.pods:
                self._engine.lift(self._class(victim.pod.uid, unit), victim.row)

    def _class(self, uid: str, unit: Unit) -> PairClass:
        known = self._classes.get(uid)
        if known is None:
            for victim in unit.pods:
                pod = victim.pod
                self._classes[pod.uid] = self._engine.state.pairs.class_of(pod.shape, pod.namespace, pod.labels)
            known = self._classes[uid]
        return known
