"""Preemption: who must go so that a tree fits, disturbing as little as can be found.

Nothing is evicted unless the tree then fits. Only as high a priority is touched as is needed; pods of the tree prefer
nodes that are free anyway; among topology domains the one that costs least is taken; whatever need not go is put back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from kohort.place.areas import Area
from kohort.place.between import allowed
from kohort.place.demand import Demand, Leaf, Pod, Result, renewed
from kohort.place.domains import TwoDomains, domains, least_pods
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.exact import Verdict, settle, solver
from kohort.place.exact_model import Question, Stays, Unsaid
from kohort.place.gentle import Gentle, Victims
from kohort.place.pairs import PairClass
from kohort.place.reserve import Reservation
from kohort.place.search import Search
from kohort.place.units import Budget, Unit, exceeded, reverse, violating

_DOMAINS = 32  # root domains compared by what they cost
_SPARED = 12  # up to so many victims, each is tried to be spared by another placement
_UNITS = 200  # up to so many units the exact solver is asked for the cheapest plan
_UNKNOWNS = 4000
_LOWEST = -(2**31)


@dataclass(frozen=True, slots=True)
class Preemption:
    """A plan: these units go, then the tree fits like this."""

    victims: tuple[Unit, ...]
    result: Result
    over_budget: int = 0  # pods that go although their disruption budget does not allow it

    @property
    def cost(self) -> tuple[int, int, int, int, int, tuple[str, ...]]:
        """Less is better: budgets broken, the highest priority touched, gangs broken, units, pods, work lost."""
        pods = [victim.pod for unit in self.victims for victim in unit.pods]
        top = max((unit.priority for unit in self.victims), default=_LOWEST)
        broken = sum(unit.breaks for unit in self.victims)
        # Without a clock: of equally many pods, those that started later have done less.
        work = tuple(sorted((reverse(pod.started) for pod in pods), reverse=True))
        return (self.over_budget, top, broken, len(self.victims), len(pods), work)

    def reservation(self, engine: Engine, root: Demand, priority: int) -> Reservation:
        """The freed room, for the root to land in: keep it in `engine.reservations` until it has or gives up."""
        return Reservation.of(root, priority, self.result.placed, engine.state)


class Preemptor:
    """One attempt for one root."""

    def __init__(
        self, engine: Engine, units: Sequence[Unit], budgets: Sequence[Budget] = (), effort: Effort | None = None
    ) -> None:
        self._engine = engine
        self._units = units
        self._budgets = budgets
        self._effort = effort or Effort()
        self._last: tuple[list[Unit], set[str], Victims] | None = None

    def _victims(self, units: Sequence[Unit], over: set[str]) -> Victims:
        """The units as arrays; those of the last time, if they are the same."""
        wanted = list(units)
        if self._last is None or self._last[0] != wanted or self._last[1] != over:
            self._last = (wanted, over, Victims(self._engine, wanted, over))
        return self._last[2]

    def plan(self, root: Demand, priority: int) -> Preemption | None:
        """The least disruptive plan found, None if evicting everything below the priority would not help."""
        root = renewed(root, self._engine.state.pairs)
        eligible = self._eligible(priority)
        try:
            level = self._level(root, eligible)
            if level is None:
                return None
            removable = [unit for unit in eligible if unit.priority <= level]
            plans = [plan for area in self._choices(root, removable) if (plan := self._on(root, removable, area))]
        except TwoDomains:
            return None
        best = min(plans, key=lambda plan: plan.cost, default=None)
        if best is None or len(best.victims) < 2:
            return best
        return self._cheapest(root, removable, best) or self._spare(root, best)

    def _eligible(self, priority: int) -> list[Unit]:
        """What may go, the least important first."""
        return sorted((unit for unit in self._units if unit.priority < priority), key=lambda unit: unit.importance)

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

    def _fits(self, root: Demand, gone: Sequence[Unit]) -> bool:
        mark = self._engine.mark()
        self._victims(gone, set()).lift(self._engine)
        fits = Search(self._engine, replace(self._effort)).place(root).ok
        self._engine.undo(mark)
        return fits

    def _choices(self, root: Demand, removable: Sequence[Unit]) -> list[Area]:
        """Areas to compare: the domains of the root's constraint, or everything."""
        area = self._engine.area
        if root.topology is None:
            return [area]
        mark = self._engine.mark()
        self._victims(removable, set()).lift(self._engine)
        found = list(islice(domains(self._engine, root, area), _DOMAINS))
        self._engine.undo(mark)
        return found

    def _on(self, root: Demand, removable: Sequence[Unit], area: Area) -> Preemption | None:
        engine = self._engine
        mark = engine.mark()
        over = violating(removable, self._budgets)
        victims = self._victims(removable, over)
        victims.lift(engine)
        with engine.choosing(Gentle(engine, victims)):
            result = Search(engine, replace(self._effort)).place(root, area)
        if not result.ok:
            engine.undo(mark)
            return None
        back = _Return(engine, root, result).all(removable, over)
        engine.undo(mark)
        gone = tuple(unit for unit in removable if unit.name not in back)
        return Preemption(gone, result, exceeded(gone, self._budgets))

    def _spare(self, root: Demand, plan: Preemption) -> Preemption:
        """Try to spare each victim, the most important first: perhaps the others make room enough elsewhere."""
        if len(plan.victims) > _SPARED:
            return plan
        for unit in sorted(plan.victims, key=lambda unit: unit.importance, reverse=True):
            if unit not in plan.victims:
                continue  # it went with an earlier one
            others = [one for one in plan.victims if one is not unit]
            for area in self._choices(root, others):
                found = self._on(root, others, area)
                if found is not None and len(found.result.placed) >= len(plan.result.placed):
                    plan = min(plan, found, key=lambda one: one.cost)
        return plan

    def _cheapest(self, root: Demand, removable: Sequence[Unit], plan: Preemption) -> Preemption | None:
        """The cheapest plan there is, from the exact solver; None if it is not asked or cannot say.

        It is asked about small trees whose pods are all needed, and that no rule between pods touches.
        """
        pods = [pod for leaf in root.leaves() for pod in leaf.pods]
        near = {victim.row for unit in removable for victim in unit.pods}
        small = len(removable) <= _UNITS and len(pods) * len(near) <= _UNKNOWNS
        plain = not any(pod.kind.matched or not pod.kind.shape.is_plain for pod in pods)
        if not (small and plain and least_pods(root) == len(pods) and self._effort.solver_size and solver()):
            return None
        engine = self._engine
        mark = engine.mark()
        over = violating(removable, self._budgets)
        victims = self._victims(removable, over)
        victims.lift(engine)
        gone = _settled(engine, root, victims, self._effort)
        engine.undo(mark)
        if gone is None:
            return None
        found = (self._on(root, gone, area) for area in self._choices(root, gone))
        return min((plan, *(one for one in found if one is not None)), key=lambda one: one.cost)

    # ---- a pod alone (5.5)

    def plan_pod(self, root: Leaf, priority: int) -> Preemption | None:
        """For a pod that is in no group: one node is chosen, as kube-scheduler ranks them."""
        root_now = renewed(root, self._engine.state.pairs)
        pod = next(pod for leaf in root_now.leaves() for pod in leaf.pods)
        eligible = self._eligible(priority)
        at_row: dict[int, list[Unit]] = {}
        for unit in eligible:
            for row in dict.fromkeys(victim.row for victim in unit.pods):
                at_row.setdefault(row, []).append(unit)
        suits = self._engine.look(pod.kind.shape)[0].suits
        plans = [
            plan
            for row, units in sorted(at_row.items())
            if suits[row] and (plan := self._on_node(root_now, pod, row, units))
        ]
        return min(plans, key=_ranked, default=None)

    def _on_node(self, root: Demand, pod: Pod, row: int, units: Sequence[Unit]) -> Preemption | None:
        """Everything that may go leaves the node; what need not go comes back."""
        engine = self._engine
        mark = engine.mark()
        over = violating(units, self._budgets)
        Victims(engine, units, over).lift(engine)
        taken = engine.seat(pod.kind, np.array([row]), 1)
        if not taken:
            engine.undo(mark)
            return None
        result = Result(True, {}, {pod.key: row})
        back = _Return(engine, root, result).all(units, over)
        engine.undo(mark)
        gone = tuple(unit for unit in units if unit.name not in back)
        return Preemption(gone, result, exceeded(gone, self._budgets))


def _settled(engine: Engine, root: Demand, victims: Victims, effort: Effort) -> list[Unit] | None:
    """Who goes in the cheapest way to seat the root, everybody being lifted now."""
    stays = [Stays({}) for _ in victims.units]
    for row, unit, amounts in zip(victims.rows.tolist(), victims.unit.tolist(), victims.amounts, strict=True):
        held = stays[unit].holds.setdefault(row, {})
        for column in np.flatnonzero(amounts).tolist():
            held[column] = held.get(column, 0) + int(amounts[column])
    try:
        question = Question(engine, root, engine.area, effort.solver_size, stays)
    except Unsaid:
        return None
    costs = [0] * len(question.model.upper)
    for one, price in zip(stays, victims.price.tolist(), strict=True):
        costs[one.unknown] = -price
    verdict, values = settle(question.model, effort, costs)
    if verdict is not Verdict.FOUND:
        return None
    return [unit for unit, one in zip(victims.units, stays, strict=True) if not values[one.unknown]]


def _ranked(plan: Preemption) -> tuple[object, ...]:
    """Fewest budgets broken, lowest top priority, lowest sum, fewest pods, latest start; then the first node."""
    pods = [victim.pod for unit in plan.victims for victim in unit.pods]
    top = max((pod.priority for pod in pods), default=_LOWEST)
    oldest = [pod.started for pod in pods if pod.priority == top and pod.started]
    total = sum(pod.priority - _LOWEST for pod in pods)
    return (plan.over_budget, top, total, len(pods), reverse(min(oldest, default="")))


class _Return:
    """Units that can stay after all, with the preemptor where it was placed."""

    def __init__(self, engine: Engine, root: Demand, result: Result) -> None:
        self._engine = engine
        kinds = {pod.key: pod.kind for leaf in root.leaves() for pod in leaf.pods}
        self._placed = [(kinds[key], row) for key, row in result.placed.items()]
        self._rows = set(result.placed.values())
        # Whom a pod that comes back may disturb by a rule, not by its size.
        self._ruled = [seat for seat in self._placed if seat[0].matched or not seat[0].shape.is_plain]

    def all(self, units: Sequence[Unit], over: set[str]) -> set[str]:
        """Those over their budget first, then the most important ones."""
        order = sorted(units, key=lambda unit: (unit.name in over, unit.importance), reverse=True)
        if not self._ruled:
            away = [unit for unit in order if not any(victim.row in self._rows for victim in unit.pods)]
            # Nobody is placed near them: they stay, whatever the others do.
            back = {unit.name for unit in away}
            order = [unit for unit in order if unit.name not in back]
        else:
            back = set()
        for unit in order:
            mark = self._engine.mark()
            if self._seat(unit) and self._still_allowed():
                back.add(unit.name)
            else:
                self._engine.undo(mark)
        return back

    def _seat(self, unit: Unit) -> bool:
        """Put a unit's pods back where they were, if there is room for all of them."""
        state = self._engine.state
        for victim in unit.pods:
            pod = victim.pod
            self._engine.put(state.pairs.class_of(pod.shape, pod.namespace, pod.labels, seated=True), victim.row)
        # A node that was too full before anybody was placed is not the unit's fault.
        rows = [victim.row for victim in unit.pods if victim.row in self._rows]
        return bool((state.used[rows] <= state.alloc[rows]).all())

    def _still_allowed(self) -> bool:
        """Rules between pods: each placed pod, taken out and asked again, may still be where it is."""
        return all(self._may_stay(kind, row) for kind, row in self._ruled)

    def _may_stay(self, kind: PairClass, row: int) -> bool:
        engine = self._engine
        mark = engine.mark()
        engine.lift(kind, row)
        fit, _ = engine.look(kind.shape)
        ok = bool(allowed(engine.state, kind, fit)[row])
        engine.undo(mark)
        return ok
