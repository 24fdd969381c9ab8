"""Placing a whole tree: minimums before extras, orders of siblings tried when the first one fails.

Nothing is kept unless the root reaches its minimum. Within that, a child that fails contributes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations

from kohort.place.columns import Rows
from kohort.place.demand import Branch, Demand, Leaf, Outcome, Reason, Result
from kohort.place.domains import TwoDomains, domains
from kohort.place.engine import Engine
from kohort.place.leaf import seat_leaf, why_not

_ORDERS = 24  # sibling orders tried per branch
_STEPS = 20_000  # groups looked at before the search gives up


@dataclass(slots=True)
class _Seated:
    """A group that has its minimum: its pods, and where further ones may go."""

    group: Demand
    rows: Rows | None
    placed: dict[str, int]
    children: list[_Seated] = field(default_factory=list)

    def every(self) -> Iterator[_Seated]:
        yield self
        for child in self.children:
            yield from child.every()

    def total(self) -> int:
        return sum(len(one.placed) for one in self.every())


class Search:
    """One decision about one root."""

    def __init__(self, engine: Engine, steps: int = _STEPS) -> None:
        self._engine = engine
        self._left = steps
        self._misses: dict[str, Outcome] = {}

    def place(self, root: Demand, rows: Rows | None = None) -> Result:
        """Place the tree on some rows (None: all). Placements stay in the engine's trial, for the caller to undo."""
        mark = self._engine.mark()
        self._misses.clear()
        try:
            seated = self._solve(root, rows)
        except TwoDomains as wrong:
            self._engine.undo(mark)
            return _failed(root, {root.name: Outcome(False, reason=Reason.MISCONFIGURED, detail=str(wrong))})
        if seated is None:
            self._engine.undo(mark)
            if self._left <= 0:
                miss = Outcome(False, reason=Reason.NOT_FOUND, detail="the search ended before every order was tried")
                self._misses.setdefault(root.name, miss)
            return _failed(root, self._misses)
        self._extras(seated)
        return self._result(root, seated)

    # ---- minimums

    def _solve(self, group: Demand, rows: Rows | None) -> _Seated | None:
        self._left -= 1
        if self._left <= 0:
            return None
        return self._leaf(group, rows) if isinstance(group, Leaf) else self._branch(group, rows)

    def _leaf(self, leaf: Leaf, rows: Rows | None) -> _Seated | None:
        if not leaf.pods and leaf.missing:
            text = f"{len(leaf.running)} of {leaf.need} members exist"
            self._misses[leaf.name] = Outcome(False, reason=Reason.WAITING_FOR_MEMBERS, detail=text)
            return None
        for domain in domains(self._engine, leaf, rows):
            placed = seat_leaf(self._engine, leaf, domain.rows, leaf.missing, leaf.missing)
            if placed is not None:
                return _Seated(leaf, domain.rows, placed)
        self._misses[leaf.name] = self._why(leaf, rows)
        return None

    def _why(self, leaf: Leaf, rows: Rows | None) -> Outcome:
        outcome = why_not(self._engine, leaf, rows)
        if leaf.topology is None or outcome.reason not in {Reason.INSUFFICIENT, Reason.FRAGMENTED}:
            return outcome
        text = f"no domain of {leaf.topology} takes {leaf.missing} of its pods"
        return Outcome(False, reason=Reason.DOMAIN_TOO_SMALL, detail=text)

    def _branch(self, branch: Branch, rows: Rows | None) -> _Seated | None:
        mark = self._engine.mark()
        best: tuple[int, Rows | None, Sequence[Demand]] | None = None
        wanted = sum(len(leaf.pods) for leaf in branch.leaves())
        for domain in domains(self._engine, branch, rows):
            for order in self._orders(branch):
                seated = self._children(branch, order, domain.rows)
                if seated is not None and (len(seated.children) == len(branch.children) or not wanted):
                    return seated
                if seated is not None and (best is None or seated.total() > best[0]):
                    best = (seated.total(), domain.rows, order)
                self._engine.undo(mark)
                if seated is not None or self._left <= 0:
                    break
        if best is not None:
            return self._children(branch, best[2], best[1])
        text = f"fewer than {branch.need} of its {len(branch.children)} groups fit together"
        reason = Reason.DOMAIN_TOO_SMALL if branch.topology else Reason.BLOCKED_BY_SIBLING
        self._misses[branch.name] = Outcome(False, reason=reason, detail=text)
        return None

    def _children(self, branch: Branch, order: Sequence[Demand], rows: Rows | None) -> _Seated | None:
        """All children that get their minimum, in this order; None if they are too few."""
        mark = self._engine.mark()
        done: list[_Seated] = []
        for position, child in enumerate(order):
            seated = self._solve(child, rows)
            if seated is not None:
                done.append(seated)
            elif len(done) + len(order) - position - 1 < branch.need:
                self._engine.undo(mark)
                return None
        if len(done) < branch.need:
            self._engine.undo(mark)
            return None
        return _Seated(branch, rows, {}, done)

    def _orders(self, branch: Branch) -> Iterator[Sequence[Demand]]:
        """As created; the largest first; then others, up to a bound."""
        children = list(branch.children)
        yield children
        if len(children) < 2:
            return
        largest = sorted(children, key=_demand, reverse=True)
        if largest != children:
            yield largest
        yield from islice(permutations(largest), 1, _ORDERS)

    # ---- extras

    def _extras(self, seated: _Seated) -> None:
        """Pods above a minimum, once every group has its own."""
        for one in seated.every():
            if isinstance(one.group, Leaf):
                rest = [pod for pod in one.group.pods if pod.key not in one.placed]
                if rest:
                    more = seat_leaf(self._engine, Leaf(one.group.name, rest), one.rows, len(rest), 0)
                    one.placed.update(more or {})

    def _result(self, root: Demand, seated: _Seated) -> Result:
        outcomes = {one.group.name: Outcome(True, one.placed) for one in seated.every()}
        placed = {key: row for one in outcomes.values() for key, row in one.placed.items()}
        for name in _names(root):
            if name not in outcomes:
                outcomes[name] = self._misses.get(name) or _left_out()
        if not placed:
            # Satisfied by what runs, but none of the pending pods found a place: that is not a success.
            return Result(False, outcomes, {})
        return Result(True, outcomes, placed)


def _left_out() -> Outcome:
    return Outcome(False, reason=Reason.BLOCKED_BY_SIBLING, detail="the group above it did not get its minimum")


def _failed(root: Demand, misses: dict[str, Outcome]) -> Result:
    return Result(False, {name: misses.get(name) or _left_out() for name in _names(root)}, {})


def _names(group: Demand) -> Iterator[str]:
    yield group.name
    for child in group.children if isinstance(group, Branch) else ():
        yield from _names(child)


def _demand(group: Demand) -> int:
    """How much a group asks for at the least, in the unit scores use first (cpu)."""
    if isinstance(group, Leaf):
        return sum(sorted(int(pod.kind.shape.weight[0]) for pod in group.pods)[: group.missing])
    return sum(sorted(_demand(child) for child in group.children)[: group.need])
