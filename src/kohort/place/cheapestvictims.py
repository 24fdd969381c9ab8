"""Who goes in the cheapest way, by the exact solver: one thing after the other is made least, what came before it kept.

First pods beyond their disruption budgets, then gangs that are broken, then victim sets, then their pods and how
important they are. In one sum, what counts most would drown what counts less in the solver's precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Final

import numpy as np

from kohort.place.demand import Demand
from kohort.place.domains import least_amount
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.exact import settle
from kohort.place.exact_model import SolverQuestion
from kohort.place.exact_seats import KeptVictims
from kohort.place.highs import SolverStatus
from kohort.place.leastdisruption import VictimArrays
from kohort.place.linear import NotExpressible
from kohort.place.victims import Budget, VictimSet

_EXACT: Final = 1e-6
_SHARE: Final = 0.5  # of what is left of the effort, for each but the last


def fewest_by_sums(engine: Engine, root: Demand, victims: VictimArrays) -> int:
    """How many victim sets must go at the least, by what all nodes have free of each resource, in steps of what pods
    ask for, and what those that give most of it give. Mostly that many do, and nobody has to look any further."""
    state = engine.state
    free = np.maximum(state.alloc - state.used, 0)[state.alive]
    fewest = 0
    for column in {int(one) for kind in root.eq_classes for one in kind.signature.columns}:
        amounts = victims.amounts[:, column]
        step = gcd(*(kind.signature.ask(column) for kind in root.eq_classes)) or 1
        whole = 1 if (amounts % step).any() else step
        lacking = least_amount(root, column) - int((free[:, column] // whole * whole).sum())
        if lacking > 0:
            gives = np.zeros(len(victims.victim_sets), np.int64)
            np.add.at(gives, victims.victim_set, amounts)
            fewest = max(fewest, int(np.searchsorted(np.cumsum(-np.sort(-gives)), lacking)) + 1)
    return fewest


def fewest_by_rows(engine: Engine, root: Demand, victims: VictimArrays) -> int:
    """The same for pods of one class and victim sets that are on one node each: what each node needs for one pod more.
    Where a later pod needs less than an earlier one, they are taken for the average of both."""
    alone = len(np.unique(victims.victim_set)) == len(victims.victim_set)
    if len(root.eq_classes) != 1 or not alone:
        return 0
    ((kind, need),) = root.eq_classes.items()
    state, columns = engine.state, kind.signature.columns
    free = (state.alloc - state.used)[:, columns]
    more: list[float] = []
    order = np.argsort(victims.rows, kind="stable")
    rows, starts = np.unique(victims.rows[order], return_index=True)
    for row, some in zip(rows.tolist(), np.split(order, starts[1:]), strict=True):
        gives = np.cumsum(-np.sort(-victims.amounts[some][:, columns], axis=0), axis=0)
        room = int(((free[row] + gives[-1]) // kind.signature.amounts).min())
        asked = np.arange(1, min(room, need) + 1)[:, None] * kind.signature.amounts - free[row]
        sets = [np.searchsorted(gives[:, place], one) + 1 for place, one in enumerate(asked.T)]
        least = np.where(asked.T > 0, sets, 0).max(axis=0, initial=0)
        more += (np.minimum.accumulate((least / np.arange(1, len(least) + 1))[::-1])[::-1]).tolist()
    others = np.ones(state.rows, bool)
    others[rows] = False
    roomy = int(engine.room(kind)[others].sum())
    return int(np.ceil(sum(sorted(more)[: max(need - roomy, 0)]) - _EXACT))


Costs = Mapping[int, int]  # unknown -> cost


@dataclass(frozen=True, slots=True)
class ChosenVictims:
    """Who goes, and where the pods of the tree then have their place."""

    gone: list[VictimSet]
    seats: Mapping[str, int]


class CheapestVictims:
    """Of one tree, everybody who may go being removed now."""

    def __init__(self, engine: Engine, root: Demand, victims: VictimArrays, budgets: Sequence[Budget]) -> None:
        self._engine, self._root, self._victims, self._budgets = engine, root, victims, budgets

    def find(self, effort: Effort) -> ChosenVictims | None:
        """None if the question cannot be put, or there was no answer in time."""
        stays = self._stays()
        try:
            question = SolverQuestion(self._engine, self._root, self._engine.all_nodes, effort.solver_size, stays)
        except NotExpressible:
            return None
        best: list[int] | None = None
        measures = list(self._measures(question, stays))
        for number, costs in enumerate(measures):
            last = number == len(measures) - 1
            every = [costs.get(unknown, 0) for unknown in range(len(question.model.upper))]
            status, values = settle(question.model, effort if last else effort.smaller(_SHARE), every)
            if status is not SolverStatus.FOUND:
                break
            best = values
            least = sum(values[unknown] * cost for unknown, cost in costs.items())
            question.model.rule(costs.items(), most=least)
        if best is None:
            return None
        gone = [one for one, kept in zip(self._victims.victim_sets, stays, strict=True) if not best[kept.unknown]]
        return ChosenVictims(gone, question.answer(best))

    def _stays(self) -> list[KeptVictims]:
        victims = self._victims
        stays = [KeptVictims({}) for _ in victims.victim_sets]
        for row, number, amounts in zip(
            victims.rows.tolist(), victims.victim_set.tolist(), victims.amounts, strict=True
        ):
            held = stays[number].holds.setdefault(row, {})
            for column in np.flatnonzero(amounts).tolist():
                held[column] = held.get(column, 0) + int(amounts[column])
        return stays

    def _measures(self, question: SolverQuestion, stays: Sequence[KeptVictims]) -> Iterator[Costs]:
        """What is to be least, that which counts most first. Victim sets that stay are worth what they would cost."""
        over = self._over(question, stays)
        if over:
            yield over
        sets = list(zip(self._victims.victim_sets, stays, strict=True))
        breaking = {kept.unknown: -1 for one, kept in sets if one.breaks and not one.leaving}
        if breaking:
            yield breaking
        yield {kept.unknown: -1 for one, kept in sets if not one.leaving}
        yield {kept.unknown: -price for kept, price in zip(stays, self._victims.price.tolist(), strict=True) if price}

    def _over(self, question: SolverQuestion, stays: Sequence[KeptVictims]) -> Costs:
        """Unknowns for the pods that go beyond each budget."""
        found: dict[int, int] = {}
        for budget in self._budgets:
            covered = {
                kept.unknown: pods
                for one, kept in zip(self._victims.victim_sets, stays, strict=True)
                if (pods := sum(victim.pod.uid in budget.pods for victim in one.pods))
            }
            total = sum(covered.values())
            if total > budget.allowed:
                beyond = question.model.unknown(total)
                terms = [*((unknown, pods) for unknown, pods in covered.items()), (beyond, 1)]
                question.model.rule(terms, least=total - budget.allowed)
                found[beyond] = 1
        return found
