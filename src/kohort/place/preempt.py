"""Preemption: who must go so that a tree fits, disturbing as little as can be found.

Nothing is evicted unless the tree then fits. Only as high a priority is touched as is needed; pods of the tree prefer
nodes that are free anyway; among topology domains the one that costs least is taken; whatever need not go is put back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from kohort.place.cheapestvictims import CheapestVictims, ChosenVictims, fewest_by_rows, fewest_by_sums
from kohort.place.demand import Demand, PendingPod, Result, renewed
from kohort.place.domains import TopologyConflict, domains, least_pods
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass
from kohort.place.interpodfilter import allowed
from kohort.place.leastdisruption import LeastDisruption, VictimArrays
from kohort.place.nodesets import NodeSet
from kohort.place.reservations import Reservation
from kohort.place.search import Search
from kohort.place.victims import LOWEST, Budget, VictimSet, exceeded, reverse, violating

_DOMAINS = 32  # root domains compared by what they cost
_SPARED = 12  # up to so many victims, each is tried to be spared by another placement
_UNITS = 2000  # up to so many victim sets the exact solver is asked for the cheapest plan,
_UNKNOWNS = 4000  # if the pods of each class, on each node, are not more than this
_CANDIDATES = 100  # nodes compared for a single pod, or a tenth of all: kube-scheduler's defaults


@dataclass(frozen=True, slots=True)
class Preemption:
    """A plan: these victim sets go, then the tree fits like this."""

    victims: tuple[VictimSet, ...]
    result: Result
    over_budget: int = 0  # pods that go although their disruption budget does not allow it

    @property
    def cost(self) -> tuple[int, int, int, int, int, tuple[str, ...]]:
        """Less is better: budgets broken, the highest priority touched, gangs broken, victim sets, pods, work lost."""
        staying = [victim_set for victim_set in self.victims if not victim_set.leaving]
        pods = [victim.pod for victim_set in staying for victim in victim_set.pods]
        top = max((victim_set.priority for victim_set in staying), default=LOWEST)
        broken = sum(victim_set.breaks for victim_set in staying)
        # Without a clock: of equally many pods, those that started later have done less.
        work = tuple(sorted((reverse(pod.started) for pod in pods), reverse=True))
        return (self.over_budget, top, broken, len(staying), len(pods), work)

    @property
    def evictions(self) -> int:
        """Pods that go for it and were not going anyway."""
        return sum(not victim.pod.terminating for victim_set in self.victims for victim in victim_set.pods)

    def reservation(self, engine: Engine, root: Demand, priority: int) -> Reservation:
        """The freed room, for the root to land in: keep it in `engine.reservations` until it has or gives up."""
        return Reservation.of(root, priority, self.result.placed, engine.state)


class Preemptor:
    """One attempt for one root."""

    def __init__(
        self,
        engine: Engine,
        victim_sets: Sequence[VictimSet],
        budgets: Sequence[Budget] = (),
        effort: Effort | None = None,
    ) -> None:
        self._engine = engine
        self._units = victim_sets
        self._budgets = budgets
        self._effort = effort or Effort()
        self._last: tuple[list[VictimSet], set[str], VictimArrays] | None = None

    def _victims(self, victim_sets: Sequence[VictimSet], over: set[str]) -> VictimArrays:
        """The victim sets as arrays; those of the last time, if they are the same."""
        wanted = list(victim_sets)
        if self._last is None or self._last[0] != wanted or self._last[1] != over:
            self._last = (wanted, over, VictimArrays(self._engine, wanted, over))
        return self._last[2]

    def plan(self, root: Demand, priority: int) -> Preemption | None:
        """The least disruptive plan found, None if evicting everything below the priority would not help."""
        root = renewed(root, self._engine.state.interpod)
        eligible = self._eligible(priority)
        try:
            level = self._level(root, eligible)
            if level is None:
                return None
            removable = [victim_set for victim_set in eligible if victim_set.level <= level]
            plans = [
                plan for node_set in self._choices(root, removable) if (plan := self._on(root, removable, node_set))
            ]
        except TopologyConflict:
            return None
        best = min(plans, key=lambda plan: plan.cost, default=None)
        if best is None or len(best.victims) < 2:
            return best
        return self._cheapest(root, removable, best) or self._spare(root, best)

    def _eligible(self, priority: int) -> list[VictimSet]:
        """What may go, the least important first."""
        return sorted(
            (victim_set for victim_set in self._units if victim_set.priority < priority),
            key=lambda victim_set: victim_set.importance,
        )

    def _level(self, root: Demand, eligible: Sequence[VictimSet]) -> int | None:
        """The lowest priority up to which victim sets must be removable for the tree to fit."""
        levels = sorted({victim_set.level for victim_set in eligible})
        if not levels or not self._fits(root, eligible):
            return None
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            if self._fits(root, [victim_set for victim_set in eligible if victim_set.level <= levels[middle]]):
                high = middle
            else:
                low = middle + 1
        return levels[low]

    def _fits(self, root: Demand, gone: Sequence[VictimSet]) -> bool:
        mark = self._engine.mark()
        self._victims(gone, set()).remove(self._engine)
        fits = Search(self._engine, replace(self._effort)).place(root).ok
        self._engine.undo(mark)
        return fits

    def _choices(self, root: Demand, removable: Sequence[VictimSet]) -> list[NodeSet]:
        """Node sets to compare: the domains of the root's constraint, or everything."""
        node_set = self._engine.all_nodes
        if root.topology is None:
            return [node_set]
        mark = self._engine.mark()
        self._victims(removable, set()).remove(self._engine)
        found = list(islice(domains(self._engine, root, node_set), _DOMAINS))
        self._engine.undo(mark)
        return found

    def _on(self, root: Demand, removable: Sequence[VictimSet], node_set: NodeSet) -> Preemption | None:
        engine = self._engine
        mark = engine.mark()
        over = violating(removable, self._budgets)
        victims = self._victims(removable, over)
        victims.remove(engine)
        with engine.choosing(LeastDisruption(engine, victims)):
            result = Search(engine, replace(self._effort)).place(root, node_set)
        if not result.ok:
            engine.undo(mark)
            return None
        back = _Reprieve(engine, root, result).all(removable, over)
        engine.undo(mark)
        gone = tuple(victim_set for victim_set in removable if victim_set.name not in back)
        return Preemption(gone, result, exceeded(gone, self._budgets))

    def _is_least(self, root: Demand, removable: Sequence[VictimSet], plan: Preemption) -> bool:
        """Whether sums show that no plan is better in what counts most: budgets, gangs broken, victim sets."""
        over, _, broken, sets, *_ = plan.cost
        whole = all(one.breaks for one in removable) or not broken
        if over or not whole:
            return False
        victims = self._victims(removable, violating(removable, self._budgets))
        return any(sets <= fewest(self._engine, root, victims) for fewest in (fewest_by_sums, fewest_by_rows))

    def _spare(self, root: Demand, plan: Preemption) -> Preemption:
        """Try to spare each victim, the most important first: perhaps the others make room enough elsewhere."""
        if len(plan.victims) > _SPARED:
            return plan
        for victim_set in sorted(plan.victims, key=lambda victim_set: victim_set.importance, reverse=True):
            if victim_set not in plan.victims:
                continue  # it went with an earlier one
            others = [one for one in plan.victims if one is not victim_set]
            for node_set in self._choices(root, others):
                found = self._on(root, others, node_set)
                if found is not None and len(found.result.placed) >= len(plan.result.placed):
                    plan = min(plan, found, key=lambda one: one.cost)
        return plan

    def _cheapest(self, root: Demand, removable: Sequence[VictimSet], plan: Preemption) -> Preemption | None:
        """The cheapest plan there is, from the exact solver; None if it is not asked or cannot say.

        It is asked about trees whose pods are all needed, and that no rule between pods touches.
        """
        engine, kinds = self._engine, root.eq_classes
        near = {victim.row for victim_set in removable for victim in victim_set.pods}
        small = len(removable) <= _UNITS and len(kinds) * len(near) <= _UNKNOWNS
        plain = not any(kind.matched or not kind.signature.is_plain for kind in kinds)
        if not (small and plain and least_pods(root) == sum(kinds.values()) and self._effort.solver_size):
            return None
        if self._is_least(root, removable, plan):
            return plan
        mark = engine.mark()
        victims = self._victims(removable, set())
        victims.remove(engine)
        chosen = CheapestVictims(engine, root, victims, self._budgets).find(self._effort)
        engine.undo(mark)
        if chosen is None:
            return None
        found = self._seated(root, chosen)
        return plan if found is None else min(plan, found, key=lambda one: one.cost)

    def _seated(self, root: Demand, chosen: ChosenVictims) -> Preemption | None:
        """A plan with these victims at the most, and the tree where the solver has put it."""
        engine = self._engine
        mark = engine.mark()
        over = violating(chosen.gone, self._budgets)
        self._victims(chosen.gone, over).remove(engine)
        result = Search(engine, replace(self._effort)).place(root, found=chosen.seats)
        back = _Reprieve(engine, root, result).all(chosen.gone, over) if result.ok else set()
        engine.undo(mark)
        if not result.ok:
            return None
        gone = tuple(victim_set for victim_set in chosen.gone if victim_set.name not in back)
        return Preemption(gone, result, exceeded(gone, self._budgets))

    # ---- a pod alone (5.5)

    def plan_pod(self, root: Demand, priority: int) -> Preemption | None:
        """For a pod that is in no group: one node is chosen, as kube-scheduler ranks them."""
        root = renewed(root, self._engine.state.interpod)
        pod = next(pod for leaf in root.leaves() for pod in leaf.pods)
        at_row: dict[int, list[VictimSet]] = {}
        for victim_set in self._eligible(priority):
            for row in dict.fromkeys(victim.row for victim in victim_set.pods):
                at_row.setdefault(row, []).append(victim_set)
        plans = (self._on_node(root, pod, row, at_row[row]) for row in self._candidates(pod, at_row))
        most = max(_CANDIDATES, len(self._engine.state.node_infos) // 10)
        return min(islice((plan for plan in plans if plan is not None), most), key=_ranked, default=None)

    def _candidates(self, pod: PendingPod, at_row: Mapping[int, Sequence[VictimSet]]) -> list[int]:
        """Nodes with room once everybody who may go has gone; those with only unimportant victims first, for not all
        are compared where there are many (as for kube-scheduler)."""
        engine = self._engine
        mark = engine.mark()
        gone = {id(victim_set): victim_set for victim_sets in at_row.values() for victim_set in victim_sets}
        self._victims(list(gone.values()), set()).remove(engine)
        room = engine.room(pod.eq_class).copy()
        engine.undo(mark)
        rows = [row for row in at_row if room[row] > 0]
        return sorted(rows, key=lambda row: (max(one.priority for one in at_row[row]), row))

    def _on_node(self, root: Demand, pod: PendingPod, row: int, victim_sets: Sequence[VictimSet]) -> Preemption | None:
        """Everything that may go leaves the node; what need not go comes back."""
        engine = self._engine
        mark = engine.mark()
        over = violating(victim_sets, self._budgets)
        VictimArrays(engine, victim_sets, over).remove(engine)
        taken = engine.assume(pod.eq_class, np.array([row]), 1)
        if not taken:
            engine.undo(mark)
            return None
        result = Result(True, {}, {pod.key: row})
        back = _Reprieve(engine, root, result).all(victim_sets, over)
        engine.undo(mark)
        gone = tuple(victim_set for victim_set in victim_sets if victim_set.name not in back)
        return Preemption(gone, result, exceeded(gone, self._budgets))


def _ranked(plan: Preemption) -> tuple[object, ...]:
    """Fewest budgets broken, lowest top priority, lowest sum, fewest pods, latest start; then the first node."""
    pods = [victim.pod for one in plan.victims if not one.leaving for victim in one.pods]
    top = max((pod.priority for pod in pods), default=LOWEST)
    oldest = [pod.started for pod in pods if pod.priority == top and pod.started]
    total = sum(pod.priority - LOWEST for pod in pods)
    return (plan.over_budget, top, total, len(pods), reverse(min(oldest, default="")))


class _Reprieve:
    """Victim sets that can stay after all, with the preemptor where it was placed."""

    def __init__(self, engine: Engine, root: Demand, result: Result) -> None:
        self._engine = engine
        eq_classes = {pod.key: pod.eq_class for leaf in root.leaves() for pod in leaf.pods}
        self._placed = [(eq_classes[key], row) for key, row in result.placed.items()]
        self._rows = set(result.placed.values())
        # Whom a pod that comes back may disturb by a rule, not by its size.
        self._ruled = [seat for seat in self._placed if seat[0].matched or not seat[0].signature.is_plain]

    def all(self, victim_sets: Sequence[VictimSet], over: set[str]) -> set[str]:
        """Those over their budget first, then the most important ones."""
        order = sorted(
            victim_sets, key=lambda victim_set: (victim_set.name in over, victim_set.importance), reverse=True
        )
        if not self._ruled:
            away = [
                victim_set for victim_set in order if not any(victim.row in self._rows for victim in victim_set.pods)
            ]
            # Nobody is placed near them: they stay, whatever the others do.
            back = {victim_set.name for victim_set in away}
            order = [victim_set for victim_set in order if victim_set.name not in back]
        else:
            back = set()
        for victim_set in order:
            mark = self._engine.mark()
            if self._put_back(victim_set) and self._still_allowed():
                back.add(victim_set.name)
            else:
                self._engine.undo(mark)
        return back

    def _put_back(self, victim_set: VictimSet) -> bool:
        """Put a victim set's pods back where they were, if there is room for all of them."""
        state = self._engine.state
        for victim in victim_set.pods:
            pod = victim.pod
            self._engine.assume_on(
                state.interpod.class_of(pod.signature, pod.namespace, pod.labels, on_node=True), victim.row
            )
        # A node that was too full before anybody was placed is not the victim set's fault.
        rows = [victim.row for victim in victim_set.pods if victim.row in self._rows]
        return bool((state.used[rows] <= state.alloc[rows]).all())

    def _still_allowed(self) -> bool:
        """Rules between pods: each placed pod, taken out and asked again, may still be where it is."""
        return all(self._may_stay(eq_class, row) for eq_class, row in self._ruled)

    def _may_stay(self, eq_class: EquivalenceClass, row: int) -> bool:
        engine = self._engine
        mark = engine.mark()
        engine.remove(eq_class, row)
        fit = engine.fit(eq_class.signature)
        ok = bool(allowed(engine.state, eq_class, fit)[row])
        engine.undo(mark)
        return ok
