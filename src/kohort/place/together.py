"""Several roots at once: of those that are ready together, the set that leaves the fewest waiting.

One after the other in their order is the rule, and nothing else is done if that places all of them, or as many as can
be by sums. Else they are one question: a tree whose children are the roots, of which as many are needed as sums allow.
It is asked as any other tree is, by best fit and by patterns of nodes; where only some can be placed, also one after
the other from the smallest on. A root is placed with its minimum, or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kohort.place.columns import Amounts
from kohort.place.demand import Branch, Demand, renewed
from kohort.place.domains import least_amount
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.highs import SolverStatus
from kohort.place.linear import NotExpressible
from kohort.place.packingtree import PackingQuestion
from kohort.place.search import Search, weight
from kohort.place.shortage import shortage
from kohort.place.signatures import PodSignature
from kohort.place.solving import Inline
from kohort.place.state import ClusterState

Seats = dict[str, int]  # pod -> row
_STEPS: Final = 1000  # groups looked at in one try
_ROOMY: Final = 2  # so many times what roots need must be free, for them to be placed one by one without a look
_ROOMY_DOMAINS: Final = 4  # the same, if some are held to domains


@dataclass(slots=True)
class Together:
    """`seats`: of the roots that are placed, by their numbers, in the order in which they came. `ordered`: one after
    the other is as good. `searching`: somebody else looks for a set that leaves fewer waiting."""

    seats: dict[int, Seats] = field(default_factory=dict)
    ordered: bool = True
    searching: bool = False


def is_plenty(state: ClusterState, asked: Mapping[PodSignature, int]) -> bool:
    """Whether so much more is free than so many pods ask for that whoever they belong to need not be looked at."""
    state.widen()
    needed = np.zeros(len(state.resources.names), np.int64)
    for signature, count in asked.items():
        needed[signature.columns] += signature.amounts * count
    columns = np.flatnonzero(needed)
    return bool((needed[columns] * _ROOMY_DOMAINS <= _free(state, columns)).all())


def _free(state: ClusterState, columns: Iterable[int]) -> Amounts:
    """In all, by resource."""
    free = (np.maximum(state.alloc[:, one] - state.used[:, one], 0) for one in columns)
    return np.array([one.sum(where=state.alive) for one in free], np.int64)


class JointSearch:
    """Of some roots, oldest first. `required`: those that have been passed over for too long."""

    def __init__(
        self, engine: Engine, roots: Sequence[Demand], effort: Effort, required: Collection[int] = frozenset()
    ) -> None:
        self._engine, self._effort = engine, effort
        self._roots = [renewed(root, engine.state.interpod) for root in roots]
        self._required = [number for number in range(len(roots)) if number in required]
        state = engine.state
        state.widen()
        columns = sorted(
            {int(one) for root in self._roots for kind in root.eq_classes for one in kind.signature.columns}
        )
        # What each root needs at the least, and what is free, by resource.
        self._least = np.array([[least_amount(root, column) for column in columns] for root in self._roots])
        self._free = _free(state, columns)

    def is_roomy(self) -> bool:
        """Whether there is so much more free than the roots need that nobody has to look any closer."""
        factor = _ROOMY_DOMAINS if any(_is_held(root) for root in self._roots) else _ROOMY
        return bool((self._least.sum(axis=0) * factor <= self._free).all())

    def by_sums(self) -> int:
        """How many roots can be placed at the most, by what is free in all."""
        return int((np.cumsum(np.sort(self._least, axis=0), axis=0) <= self._free).all(axis=1).sum())

    def find(self) -> Together:
        """What is assumed on the way is taken back."""
        most = self.by_sums()
        best = self._one_by_one(range(len(self._roots)), most) if most else {}
        if len(best) >= most:
            return Together(best)
        most, question = self.most()
        if most <= len(best):
            return Together(best)
        some: dict[int, Seats] = {}
        if question is not None and self._effort.solver is not None:  # others are decided while somebody else searches
            some, searching = self._patterns(question, most)
            if searching:
                return Together(searching=True)
        for found in self._ways(most, question):
            some = max(some, found, key=len)
            if len(some) >= most:
                break
        return Together(some, ordered=False) if len(some) > len(best) else Together(best)

    def _ways(self, most: int, question: PackingQuestion | None) -> Iterable[dict[int, Seats]]:
        """To find a set here and now, the quickest first."""
        yield self._joint(self._tree(most), packed=True)
        yield from self._smallest_first()
        if question is not None and self._effort.solver is None:
            yield self._patterns(question, most)[0]

    def seated(self, seats: Seats) -> dict[int, Seats]:
        """Which roots have their minimum with these seats."""
        return self._kept(seats)

    # ---- ways to find a set

    def _one_by_one(self, order: Iterable[int], most: int, *, packed: bool = False) -> dict[int, Seats]:
        engine, found = self._engine, dict[int, Seats]()
        mark = engine.mark()
        for number in order:
            if len(found) >= most:
                break
            seats = Search(engine, self._light()).fits(self._roots[number], packed=packed)
            if seats is not None:
                found[number] = seats
        engine.undo(mark)
        return dict(sorted(found.items()))

    def _smallest_first(self) -> Iterable[dict[int, Seats]]:
        """Whoever has waited for too long comes first, in any case."""
        rest = [number for number in range(len(self._roots)) if number not in self._required]
        order = [*self._required, *sorted(rest, key=lambda number: (weight(self._roots[number]), number))]
        for packed in (False, True):
            found = self._one_by_one(order, len(order), packed=packed)
            if found.keys() >= set(self._required):
                yield found

    def _joint(self, tree: Demand, *, packed: bool) -> dict[int, Seats]:
        mark = self._engine.mark()
        seats = Search(self._engine, self._light()).fits(tree, packed=packed)
        self._engine.undo(mark)
        return self._kept(seats or {})

    def _patterns(self, question: PackingQuestion, most: int) -> tuple[dict[int, Seats], bool]:
        effort, solver = self._effort, self._effort.solver or Inline()
        if not effort.solver_size or (effort.spent and effort.solver is None):
            return {}, False
        if solver.under_way():
            return {}, True
        said = solver.ask(question.packing, self._effort, question.answer, last=True)
        if said.status is not SolverStatus.FOUND:
            return {}, said.status is SolverStatus.SEARCHING
        seats = question.answer(said.values)
        mark = self._engine.mark()
        holds = Search(self._engine, self._light()).fits(self._tree(most), found=seats)
        self._engine.undo(mark)
        return self._kept(holds or {}), False

    # ---- the roots as one tree

    def _tree(self, most: int) -> Branch:
        """As many of the roots as can be, those that are required among them."""
        if not self._required or most == len(self._roots):
            return Branch("", self._roots, most)
        rest = [root for number, root in enumerate(self._roots) if number not in self._required]
        inner = Branch("-", rest, max(most - len(self._required), 0))
        return Branch("", [*(self._roots[number] for number in self._required), inner], len(self._required) + 1)

    def most(self) -> tuple[int, PackingQuestion | None]:
        """How many roots can be placed at the most, by sums; and the question whether so many can."""
        question: PackingQuestion | None = None
        for most in range(self.by_sums(), 0, -1):
            try:
                question = PackingQuestion(self._engine, self._tree(most), self._engine.all_nodes)
            except NotExpressible:
                return most, None
            if shortage(question.packing) is None:
                return most, question
        return 0, question

    def _kept(self, seats: Seats) -> dict[int, Seats]:
        """By root, of those that have their minimum."""
        found = {}
        for number, root in enumerate(self._roots):
            own = {pod.key: seats[pod.key] for leaf in root.leaves() for pod in leaf.pods if pod.key in seats}
            if own and _has_minimum(root, own):
                found[number] = own
        return found

    def _light(self) -> Effort:
        """Without the solver."""
        return Effort(steps=_STEPS, solver_size=0, expired=self._effort.expired, left=self._effort.left)


def _has_minimum(group: Demand, seats: Seats) -> bool:
    if isinstance(group, Branch):
        return sum(_has_minimum(child, seats) for child in group.children) >= group.need
    return sum(pod.key in seats for pod in group.pods) >= group.missing


def _is_held(group: Demand) -> bool:
    return group.topology is not None or (isinstance(group, Branch) and any(map(_is_held, group.children)))
