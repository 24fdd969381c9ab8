"""The exact solver behind the search: settles small questions for good, within a limit.

CP-SAT of OR-Tools (docs/decisions/0012): it works on whole numbers, so neither "found" nor "impossible" hangs on a
rounding. It is an optional part (`pip install kohort[exact]`) and loaded when it is first needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import ModuleType

from kohort.place.demand import Demand
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.exact_model import LinearModel, NotExpressible, SolverQuestion
from kohort.place.nodesets import NodeSet


class SolverStatus(StrEnum):
    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """What the solver says of a tree; why, if it cannot say."""

    status: SolverStatus
    placed: dict[str, int] = field(default_factory=dict)
    why: str = ""


def solve(engine: Engine, root: Demand, node_set: NodeSet, effort: Effort) -> SolverAnswer:
    """Whether the minimums of a tree fit, and where."""
    if not effort.solver_size:
        return SolverAnswer(SolverStatus.UNKNOWN, why="the search tried the orders it was allowed")
    if solver() is None:
        return SolverAnswer(SolverStatus.UNKNOWN, why="the exact solver is not installed (kohort[exact])")
    if effort.spent:
        return SolverAnswer(SolverStatus.UNKNOWN, why="the search ended before every order was tried")
    try:
        question = SolverQuestion(engine, root, node_set, effort.solver_size)
    except NotExpressible as limit:
        return SolverAnswer(SolverStatus.UNKNOWN, why=f"too much for the exact solver: {limit}")
    status, values = settle(question.model, effort)
    if status is SolverStatus.FOUND:
        return SolverAnswer(status, question.answer(values))
    return SolverAnswer(status, why="" if status is SolverStatus.IMPOSSIBLE else "the exact solver's time was up")


def settle(model: LinearModel, effort: Effort, costs: list[int] | None = None) -> tuple[SolverStatus, list[int]]:
    """Values for the unknowns of a model; with costs, the cheapest found (not always the cheapest there is)."""
    cp = solver()
    assert cp is not None
    asked = cp.CpModel()
    unknowns = [asked.new_int_var(0, upper, "") for upper in model.upper]
    for least, most, which, factors in model.rows:
        total = cp.LinearExpr.weighted_sum([unknowns[number] for number in which], factors)
        asked.add_linear_constraint(total, -(1 << 60) if least is None else least, (1 << 60) if most is None else most)
    if costs is not None:
        asked.minimize(cp.LinearExpr.weighted_sum(unknowns, costs))
    run = cp.CpSolver()
    run.parameters.num_workers = 1  # one thread, one seed, counted work: the same answer each time
    run.parameters.random_seed = 0
    run.parameters.max_deterministic_time = effort.solver_work
    run.parameters.max_time_in_seconds = effort.solver_seconds
    status = run.solve(asked)
    if status in (cp.OPTIMAL, cp.FEASIBLE):
        return SolverStatus.FOUND, [int(run.value(one)) for one in unknowns]
    return (SolverStatus.IMPOSSIBLE if status == cp.INFEASIBLE else SolverStatus.UNKNOWN), []


@cache
def solver() -> ModuleType | None:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return None
    found: ModuleType = cp_model
    return found
