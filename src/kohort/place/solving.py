"""A hard question by itself: plain numbers, which may be answered here, later, or in another process.

A search that may wait for its answer has a `Solver` which puts the question aside; others are answered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
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
from kohort.place.packing import Packing
from kohort.place.packingtree import PackingQuestion
from kohort.place.packsearch import find

HardModel = LinearModel | Packing
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

    def ask(self, model: HardModel, effort: Effort, back: Back, *, last: bool) -> Verdict:
        """`back` reads the values, for whoever has them later than we return; `last`: no other question follows."""


_PACKED: Final = 0.8  # of the effort, for a packing
_LOOKS: Final = 3  # as often as the solver may ask whether to go on, a packing may
_LEAN: Final = 0.5  # of the effort, for a question that is not the last
_LEAN_PARTS: Final = 0.75  # the same, if it is taken apart


class Inline:
    """Answers at once, in the caller's time."""

    def under_way(self) -> bool:
        return False

    def ask(self, model: HardModel, effort: Effort, back: Back, *, last: bool) -> Verdict:  # noqa: ARG002
        return answer(model, effort, last=last, alone=False)


def answer(model: HardModel, effort: Effort, *, last: bool = True, alone: bool = True) -> Verdict:
    """What came of a model. `alone`: the effort is for this question, not for the next one as well."""
    if isinstance(model, Packing):
        values = find(model, _counted(effort if alone else effort.smaller(_PACKED)))
        return Verdict(SolverStatus.UNKNOWN) if values is None else Verdict(SolverStatus.FOUND, values)
    return _settled(model, effort, last=last, alone=alone)


def _counted(effort: Effort) -> Callable[[], bool]:
    """Whether the search has to end: by the clock, if somebody has one, and by how often it asked."""
    looks = count(1)
    return lambda: next(looks) > effort.solver_work * _LOOKS or effort.expired()


def _settled(model: LinearModel, effort: Effort, *, last: bool, alone: bool) -> Verdict:
    """As it is for a while, which proves most of what is impossible; then taken apart, if there is enough to take; then
    as it is again, to the end. What is not the last question proves nothing, and is only taken apart."""
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
    said = _packed(engine, roots[-1], node_set, effort, solver)
    for root in roots:
        if said.status is not SolverStatus.UNKNOWN:
            break
        if engine.pause is not None:
            engine.pause()
        try:
            question = SolverQuestion(engine, root, node_set, effort.solver_size)
        except NotExpressible as limit:
            return SolverAnswer(SolverStatus.UNKNOWN, why=f"too much for the exact solver: {limit}", asked=said.asked)
        verdict = solver.ask(question.model, effort, question.answer, last=root is roots[-1])
        said = _said(verdict, question.answer)
        if said.status is SolverStatus.IMPOSSIBLE and root is not roots[-1]:  # a part of it is: not the whole
            said = SolverAnswer(SolverStatus.UNKNOWN)
    return said


def _packed(engine: Engine, root: Demand, node_set: NodeSet, effort: Effort, solver: Solver) -> SolverAnswer:
    """By patterns of nodes, if the question can be put so. What is too little by sums needs nobody else's proof."""
    try:
        question = PackingQuestion(engine, root, node_set)
    except NotExpressible:
        return SolverAnswer(SolverStatus.UNKNOWN, asked=False)
    if (why := question.shortage()) is not None:
        return SolverAnswer(SolverStatus.IMPOSSIBLE, why=why)
    return _said(solver.ask(question.packing, effort, question.answer, last=False), question.answer)


def _said(verdict: Verdict, back: Back) -> SolverAnswer:
    placed = back(verdict.values) if verdict.status is SolverStatus.FOUND else {}
    return SolverAnswer(verdict.status, placed, _SAID.get(verdict.status, ""))
