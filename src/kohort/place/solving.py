"""A hard question by itself: plain numbers, which may be answered here, later, or in another process.

A search that may wait for its answer has a `Solver` which puts the question aside; others are answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from kohort.place.decompose import taken_apart
from kohort.place.demand import Demand
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.exact import settle
from kohort.place.exact_model import SolverQuestion
from kohort.place.highs import SolverStatus
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


_LEAN: Final = 0.5  # of the effort, for a question that is not the last
_LEAN_PARTS: Final = 0.75  # the same, if it is taken apart


class Inline:
    """Answers at once, in the caller's time."""

    def under_way(self) -> bool:
        return False

    def ask(self, model: LinearModel, effort: Effort, back: Back, *, last: bool) -> Verdict:  # noqa: ARG002
        return answer(model, effort, last=last, alone=False)


def answer(model: LinearModel, effort: Effort, *, last: bool = True, alone: bool = True) -> Verdict:
    """As it is for a while, which proves most of what is impossible; then taken apart, if there is enough to take; then
    as it is again, to the end. What is not the last question proves nothing, and is only taken apart. `alone`: the
    effort is for this question, not for the next one as well."""
    parts = taken_apart(model)
    if parts is None:
        # Which way the solver goes first is luck, and decides between moments and minutes: each try has its own seed.
        return Verdict(*settle(model, effort if last or alone else effort.smaller(_LEAN), seed=int(last)))
    if not last:
        values = parts.search(effort if alone else effort.smaller(_LEAN_PARTS))
        return Verdict(SolverStatus.UNKNOWN) if values is None else Verdict(SolverStatus.FOUND, values)
    said = Verdict(*settle(model, effort.smaller(_WHOLE), seed=1))
    if said.status is not SolverStatus.UNKNOWN:
        return said
    values = parts.search(effort.smaller(_PARTS))
    return Verdict(*settle(model, effort, seed=2)) if values is None else Verdict(SolverStatus.FOUND, values)


_WHOLE: Final = 0.2  # of the effort, if a model can be taken apart
_PARTS: Final = 0.9  # of what is left then
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
