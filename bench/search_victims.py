"""Who must go at the least: the optimum of a preemption question, by an exact solver that knows nothing of the engine.

Plans are compared as the engine promises (docs/scheduler.md): no higher priority than is needed; then the fewest pods
beyond their budgets, the fewest gangs broken, the fewest victim sets. Each of these is asked for in turn, with those
before it held at their least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.search_families import Instance
from kohort.place.highs import solver
from kohort.place.preempt import Preemption
from kohort.place.victims import VictimSet, exceeded

Cost = tuple[int, int, int, int]  # highest priority touched, pods beyond budgets, gangs broken, victim sets


def cost(plan: Preemption, question: Instance) -> Cost:
    """Of a plan, counted here."""
    gone = plan.victims
    top = max((one.priority for one in gone), default=0)
    return top, exceeded(gone, question.budgets), sum(one.breaks for one in gone), len(gone)


def optimum(question: Instance, sets: Sequence[VictimSet], priority: int, seconds: float = 60.0) -> Cost | None:
    """The least there is; None if nothing helps, or the solver did not end."""
    for top in sorted({one.priority for one in sets if one.priority < priority}):
        found = _Question(question, [one for one in sets if one.priority <= top], seconds).least()
        if found is not None:
            return (top, *found)
    return None


@dataclass(slots=True)
class _Measure:
    """What is to be least: unknowns and their factors."""

    index: list[int]
    factor: list[float]


class _Question:
    """Unknowns: whether each victim set goes, how many pods of each class a node takes, pods beyond each budget."""

    def __init__(self, question: Instance, sets: Sequence[VictimSet], seconds: float) -> None:
        state, (root,) = question.engine.state, question.roots
        self._asked = solver().Highs()
        for name, value in {"output_flag": False, "threads": 1, "time_limit": seconds}.items():
            self._asked.setOptionValue(name, value)
        count, rows, columns = len(sets), state.rows, state.alloc.shape[1]
        classes = [(kind, number) for kind, number in root.eq_classes.items()]
        for _ in sets:
            self._unknown(1.0)
        for _, number in classes:
            for _ in range(rows):
                self._unknown(float(number))
        for _ in question.budgets:
            self._unknown(np.inf)
        freed: dict[tuple[int, int], Counter[int]] = {}
        for place, one in enumerate(sets):
            for victim in one.pods:
                for column, amount in zip(victim.pod.signature.columns, victim.pod.signature.amounts, strict=True):
                    freed.setdefault((victim.row, int(column)), Counter())[place] += int(amount)
        for row in range(rows):
            for column in range(columns):
                asks = {count + k * rows + row: kind.signature.ask(column) for k, (kind, _) in enumerate(classes)}
                taken = {index: float(ask) for index, ask in asks.items() if ask}
                given = {place: -float(amount) for place, amount in freed.get((row, column), {}).items()}
                if taken:
                    self._row({**taken, **given}, -np.inf, float(state.alloc[row, column] - state.used[row, column]))
        for k, (_, number) in enumerate(classes):
            self._row({count + k * rows + row: 1.0 for row in range(rows)}, float(number), np.inf)
        over = count + len(classes) * rows
        for number, budget in enumerate(question.budgets):
            covered = {place: float(sum(v.pod.uid in budget.pods for v in one.pods)) for place, one in enumerate(sets)}
            covered = {place: pods for place, pods in covered.items() if pods}
            self._row({**covered, over + number: -1.0}, -np.inf, float(budget.allowed))
        every = list(range(count))
        breaking = [place for place, one in enumerate(sets) if one.breaks]
        budgets = [over + number for number in range(len(question.budgets))]
        self._measures = [_Measure(some, [1.0] * len(some)) for some in (budgets, breaking, every)]
        self._size = over + len(question.budgets)

    def _unknown(self, upper: float) -> None:
        self._asked.addCol(0.0, 0.0, upper, 0, [], [])
        self._asked.changeColIntegrality(self._asked.getNumCol() - 1, solver().HighsVarType.kInteger)

    def _row(self, factors: dict[int, float], low: float, high: float) -> None:
        self._asked.addRow(low, high, len(factors), list(factors), list(factors.values()))

    def least(self) -> tuple[int, int, int] | None:
        found: list[int] = []
        for measure in self._measures:
            costs = np.zeros(self._size)
            costs[measure.index] = measure.factor
            self._asked.changeColsCost(self._size, np.arange(self._size, dtype=np.int32), costs)
            self._asked.run()
            if self._asked.getModelStatus() != solver().HighsModelStatus.kOptimal:
                return None
            value = round(self._asked.getInfo().objective_function_value)
            self._row(dict(zip(measure.index, measure.factor, strict=True)), -np.inf, float(value))
            found.append(value)
        over, broken, victims = found
        return over, broken, victims
