"""From nearly all to all: what a packing left over is brought in by placing a few domains anew.

The exact solver is slow on a whole cluster and fast on a small part of one. So the tree is packed as well as the greedy
way can, and for each piece that found no room a few domains are emptied, and the solver is asked whether what was there
and the piece fit in them together. Everything else stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

import numpy as np

from kohort.place.bestfit import BestFit
from kohort.place.columns import Amounts, Rows
from kohort.place.demand import Branch, Demand, Leaf
from kohort.place.domains import pinned
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.exact import SolverStatus, settle
from kohort.place.exact_model import SolverQuestion
from kohort.place.linear import NotExpressible
from kohort.place.nodesets import NodeSet
from kohort.place.thrift import Prices, price, prices, thriftiest

Place = Callable[[Demand, NodeSet], dict[str, int] | None]
_NODES: Final = 24  # in a part that is placed anew, about
_ROUNDS: Final = 60
_WORK: Final = 20  # of the solver in one round
_SHARE: Final = 0.1  # of the time that is left, in one round
_TOGETHER: Final = 4  # pieces brought in at once, at the most


@dataclass(slots=True)
class Piece:
    """A group with a topology key, or a single pod: what is moved as a whole."""

    group: Demand
    placed: dict[str, int] = field(default_factory=dict)
    rows: frozenset[int] = frozenset()


class Repair:
    """One attempt at one tree in one node set. What it places stays assumed in the engine."""

    def __init__(self, engine: Engine, root: Demand, node_set: NodeSet, effort: Effort) -> None:
        self._engine, self._node_set, self._effort = engine, node_set, effort
        known = prices(engine, root.eq_classes)
        groups = sorted(_pieces(root, root, known), key=lambda group: price(group, known), reverse=True)
        self._pieces = [Piece(group) for group in groups]
        self._classes = {pod.key: pod.eq_class for leaf in root.leaves() for pod in leaf.pods}
        self._units = self._parts()
        self._unit_of = {row: number for number, rows in enumerate(self._units) for row in rows.tolist()}
        self._dice = Random(0)

    def run(self, place: Place) -> dict[str, int] | None:
        """Pod -> row if everything found room. `place` seats one group by the greedy way."""
        left: list[Piece] = []
        with self._engine.choosing(BestFit(self._engine)):
            for piece in self._pieces:
                found = None if self._effort.spent else place(piece.group, self._node_set)
                if found is None:
                    left.append(piece)
                else:
                    self._assume(piece, found)
        together = _TOGETHER
        for number in range(_ROUNDS):
            if not left or self._effort.spent:
                break
            some = left[:together]
            try:
                done = self._anew(some, number)
            except NotExpressible:
                return None
            left = [piece for piece in left if piece not in some] if done else [*left[1:], left[0]]
            together = min(together * 2, _TOGETHER) if done else max(together // 2, 1)
        return None if left else {key: row for piece in self._pieces for key, row in piece.placed.items()}

    def _assume(self, piece: Piece, placed: dict[str, int]) -> None:
        piece.placed, piece.rows = placed, frozenset(placed.values())

    def _parts(self) -> list[Rows]:
        """What is emptied as a whole: domains of the pieces' own key, or single nodes."""
        keys = [piece.group.topology for piece in self._pieces if piece.group.topology is not None]
        everything = np.flatnonzero(self._engine.state.alive) if self._node_set.rows is None else self._node_set.rows
        if not keys:
            return [np.array([row]) for row in everything.tolist()]
        parts = min((self._node_set.split(key) for key in dict.fromkeys(keys)), key=len)
        found = [parts.node_set(position).rows for position in range(len(parts))]
        return [rows for rows in found if rows is not None]

    def _anew(self, some: Sequence[Piece], number: int) -> bool:
        """Empty a part and fill it again, with some pieces more."""
        chosen = self._choose(some, number)
        rows = frozenset(row for unit in chosen for row in self._units[unit].tolist())
        inside = [piece for piece in self._pieces if piece.placed and piece.rows <= rows]
        mark = self._engine.mark()
        for piece in inside:
            for key, row in piece.placed.items():
                self._engine.remove(self._classes[key], row)
        part = NodeSet(self._engine.state, np.array(sorted(rows), np.intp))
        everyone = [*inside, *some]
        root = Branch("part", [piece.group for piece in everyone], len(everyone))
        question = SolverQuestion(self._engine, root, part, self._effort.solver_size)
        status, values = settle(question.model, self._effort.smaller(_SHARE, _WORK))
        if status is not SolverStatus.FOUND:
            self._engine.undo(mark)
            return False
        answer = question.answer(values)
        for piece in everyone:
            mine = {pod.key: answer[pod.key] for leaf in piece.group.leaves() for pod in leaf.pods if pod.key in answer}
            self._assume(piece, mine)
            for key, row in mine.items():
                self._engine.assume_on(self._classes[key], row)
        return True

    def _choose(self, some: Sequence[Piece], number: int) -> list[int]:
        """Parts with the most room left, others by lot; growing while nothing helps."""
        room = self._room()
        each = max(float(np.mean([len(rows) for rows in self._units])), 1.0)
        size = min(max(int(_NODES / each), 3), len(self._units))
        roomy = sorted(range(len(self._units)), key=lambda unit: (-room[unit], unit))
        held = [self._held(piece) for piece in some]
        chosen = dict.fromkeys(unit for unit in held if unit is not None)
        # In the first rounds what is roomiest; later more and more by lot.
        best = roomy[: max(size - number // 4, size // 3)]
        chosen |= dict.fromkeys(self._dice.sample(best, min(len(best), max(size * 2 // 3, 1))))
        others = [unit for unit in roomy if unit not in chosen]
        chosen |= dict.fromkeys(self._dice.sample(others, max(min(size - len(chosen), len(others)), 0)))
        return list(chosen)

    def _held(self, piece: Piece) -> int | None:
        """The part that running members hold a piece to."""
        if pinned(self._engine, piece.group) is None:
            return None
        return self._unit_of.get(next(iter(piece.group.running)))

    def _room(self) -> list[float]:
        """Per part: what is free, in shares of what is free in all."""
        state = self._engine.state
        free: Amounts = np.maximum(state.alloc - state.used, 0)[:, :2]
        share = free / np.maximum(free.sum(axis=0), 1)
        return [float(share[rows].sum(axis=0).min()) for rows in self._units]


def _pieces(group: Demand, root: Demand, known: Prices) -> Iterator[Demand]:
    """The tree in pieces that are all needed; of those it may choose from, the thriftiest."""
    if group is not root and group.topology is not None:
        yield group
    elif isinstance(group, Leaf):
        yield from (Leaf(pod.key, [pod], 1) for pod in thriftiest(group, known, group.missing))
    else:
        needed = group.children
        if group.need < len(needed):
            needed = sorted(needed, key=lambda child: price(child, known))[: group.need]
        for child in needed:
            yield from _pieces(child, root, known)
