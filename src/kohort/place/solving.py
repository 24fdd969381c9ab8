"""A hard question by itself: plain numbers, which may be answered here, later, or in another process.

A search that may wait for its answer has a `Solver` which puts the question aside; others are answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kohort.place.demand import Demand
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.exact import SolverStatus, settle
from kohort.place.exact_model import SolverQuestion
from kohort.place.linear import LinearModel, NotExpressible
from kohort.place.nodesets import NodeSet

Back = Callable[[Sequence[int]], dict[str, int]]  # values of the unknowns: pod -> row


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a model. Found: the values of its unknowns."""

    status: SolverStatus
    values: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """What the solver says of a tree; why, if it cannot say."""

    status: SolverStatus
    placed: dict[str, int] = field(default_factory=dict)
    why: str = ""
    asked: bool = True  # False: the question could not be put, or was not allowed


class Solver(Protocol):
    """Answers the questions of one root."""

    def under_way(self) -> bool:
        """Whether an earlier question is still being searched: no other is asked meanwhile."""

    def ask(self, model: LinearModel, effort: Effort, back: Back, *, last: bool) -> Verdict:
        """`back` reads the values, for whoever has them later than we return; `last`: no other question follows."""


class Inline:
    """Answers at once, in the caller's time."""

    def under_way(self) -> bool:
        return False

    def ask(self, model: LinearModel, effort: Effort, back: Back, *, last: bool) -> Verdict:  # noqa: ARG002
        # Which way the solver goes first is luck, and decides between moments and minutes: each has its own seed.
        return answer(model, effort if last else effort.smaller(0.5), seed=int(last))


def answer(model: LinearModel, effort: Effort, *, seed: int = 0) -> Verdict:
    return Verdict(*settle(model, effort, seed=seed))


_SAID: Final = {
    SolverStatus.UNKNOWN: "the exact solver's time was up",
    SolverStatus.SEARCHING: "not found yet, still searching",
}


def solve(engine: Engine, roots: Sequence[Demand], node_set: NodeSet, effort: Effort) -> SolverAnswer:
    """Whether the minimums of a tree fit, and where. Of several trees, each but the last is a part of the last, and
    only that proves something."""
    if not effort.solver_size:
        return SolverAnswer(SolverStatus.UNKNOWN, why="the search tried the orders it was allowed", asked=False)
    if effort.spent and effort.solver is None:
        return SolverAnswer(SolverStatus.UNKNOWN, why="the search ended before every order was tried")
    solver = effort.solver or Inline()
    if solver.under_way():
        return SolverAnswer(SolverStatus.SEARCHING, why=_SAID[SolverStatus.SEARCHING])
    said = SolverAnswer(SolverStatus.UNKNOWN, asked=False)
    for root in roots:
        try:
            question = SolverQuestion(engine, root, node_set, effort.solver_size)
        except NotExpressible as limit:
            return SolverAnswer(SolverStatus.UNKNOWN, why=f"too much for the exact solver: {limit}", asked=said.asked)
        verdict = solver.ask(question.model, effort, question.answer, last=root is roots[-1])
        if verdict.status is SolverStatus.FOUND:
            return SolverAnswer(verdict.status, question.answer(verdict.values))
        said = SolverAnswer(verdict.status, why=_SAID.get(verdict.status, ""))
        if verdict.status is SolverStatus.SEARCHING:
            break
    return said
