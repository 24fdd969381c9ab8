"""Placing a whole tree: minimums before extras, several orders, and behind them an exact solver.

Nothing is kept unless the root reaches its minimum. Within that, a child that fails contributes nothing. First every
child is tried at once (generous); if the root fails so, only as many as are needed (lean), the others after. What
neither finds, and simple bounds do not rule out, the exact solver settles if it is small enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations

import numpy as np

from kohort.place.areas import Area
from kohort.place.causes import diagnose
from kohort.place.demand import Branch, Demand, Leaf, Outcome, Pod, Reason, Result, groups, renewed
from kohort.place.domains import TwoDomains, domains, least_amount
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.exact import Answer, Verdict, solve
from kohort.place.leaf import bound, seat_leaf
from kohort.place.tight import Tight


@dataclass(slots=True)
class Seated:
    """A group that has its minimum: its pods, and where further ones may go."""

    group: Demand
    area: Area
    placed: dict[str, int]
    children: list[Seated] = field(default_factory=list)

    def every(self) -> Iterator[Seated]:
        yield self
        for child in self.children:
            yield from child.every()

    def total(self) -> int:
        return sum(len(one.placed) for one in self.every())


class Search:
    """One decision about one root."""

    def __init__(self, engine: Engine, effort: Effort | None = None) -> None:
        self._engine = engine
        self.effort = effort or Effort()
        self._lean = False
        self._memo: dict[tuple[int, int, int], Seated | None] = {}
        self._pods: dict[str, Pod] = {}

    def place(self, root: Demand, area: Area | None = None) -> Result:
        """Place the tree in an area (None: anywhere). Placements stay in the engine's trial, for the caller to undo."""
        engine = self._engine
        root, area = renewed(root, engine.state.pairs), area or engine.area
        mark = engine.mark()
        answer: Answer | None = None
        try:
            seated = self._attempt(root, area)
            if seated is None and not self._hopeless(root, area):
                seated = self._packed(root, area)
                if seated is None:
                    answer = solve(engine, root, area, self.effort)
                    seated = self._replay(root, area, answer.placed) if answer.verdict is Verdict.FOUND else None
        except TwoDomains as wrong:
            engine.undo(mark)
            return _failed(root, {root.name: Outcome(False, reason=Reason.MISCONFIGURED, detail=str(wrong))})
        if seated is None:
            engine.undo(mark)
            return self._miss(root, area, answer)
        self._optional(seated)
        self._extras(seated)
        return self._result(root, area, seated, answer)

    def _attempt(self, root: Demand, area: Area) -> Seated | None:
        for self._lean in (False, True) if _has_choice(root) else (False,):
            self._memo.clear()
            seated = self._solve(root, area)
            if seated is not None:
                return seated
        return None

    def _packed(self, root: Demand, area: Area) -> Seated | None:
        """Once more, wasting as little of each node as can be."""
        if self._engine.chooser is not None:
            return None
        self._lean = True
        self._memo.clear()
        with self._engine.choosing(Tight(self._engine)):
            return self._solve(root, area)

    # ---- minimums

    def _solve(self, group: Demand, area: Area) -> Seated | None:
        if not self.effort.spend():
            return None
        return self._leaf(group, area) if isinstance(group, Leaf) else self._branch(group, area)

    def _leaf(self, leaf: Leaf, area: Area) -> Seated | None:
        if not leaf.pods and leaf.missing:
            return None
        for domain in domains(self._engine, leaf, area):
            placed = seat_leaf(self._engine, leaf, domain, leaf.missing, leaf.missing)
            if placed is not None:
                return Seated(leaf, domain, placed)
        return None

    def _branch(self, branch: Branch, area: Area) -> Seated | None:
        mark = self._engine.mark()
        best: tuple[int, Area, Sequence[Demand]] | None = None
        for domain in domains(self._engine, branch, area):
            for order in self._orders(branch):
                seated = self._children(branch, order, domain)
                if seated is not None and (self._lean or len(seated.children) == len(branch.children)):
                    return seated
                if seated is not None and (best is None or seated.total() > best[0]):
                    best = (seated.total(), domain, order)
                self._engine.undo(mark)
                if seated is not None or self.effort.spent:
                    break
            if self.effort.spent:
                break
        return None if best is None else self._children(branch, best[2], best[1])

    def _children(self, branch: Branch, order: Sequence[Demand], area: Area) -> Seated | None:
        """Children that get their minimum, in this order; None if they are too few."""
        mark = self._engine.mark()
        done: list[Seated] = []
        for position, child in enumerate(order):
            if self._lean and len(done) >= branch.need:
                break
            seated = self._remembered(child, area)
            if seated is not None:
                done.append(seated)
            elif len(done) + len(order) - position - 1 < branch.need:
                self._engine.undo(mark)
                return None
        if len(done) < branch.need:
            self._engine.undo(mark)
            return None
        return Seated(branch, area, {}, done)

    def _remembered(self, group: Demand, area: Area) -> Seated | None:
        """A group in an area where nothing moved since it was last tried there is not tried again."""
        if area.rows is None or not all(kind.is_plain for kind in group.kinds):
            return self._solve(group, area)
        key = (id(group), id(area), hash(self._engine.state.used[area.rows].tobytes()))
        if key not in self._memo:
            self._memo[key] = self._solve(group, area)
            return self._memo[key]
        known = self._memo[key]
        if known is None:
            return None
        for one in known.every():
            self._put(one.placed, one.group)
        return known

    def _put(self, placed: dict[str, int], group: Demand) -> None:
        if placed:
            kinds = {pod.key: pod.kind for leaf in group.leaves() for pod in leaf.pods}
            for key, row in placed.items():
                self._engine.put(kinds[key], row)

    def _orders(self, branch: Branch) -> Iterator[Sequence[Demand]]:
        """As created; the largest first; lean, the smallest first; then others, up to a bound."""
        children = list(branch.children)
        yield children
        if len(children) < 2 or _alike(children):
            return
        seen = [children]
        largest = sorted(children, key=weight, reverse=True)
        first = [largest[::-1], largest] if self._lean else [largest]
        for order in first:
            if order not in seen:
                seen.append(order)
                yield order
        yield from islice(permutations(largest), 1, self.effort.orders)

    # ---- after the minimums

    def _replay(self, root: Demand, area: Area, placed: dict[str, int]) -> Seated | None:
        """What the exact solver found, as if it had been searched."""
        seated = _as_seated(self._engine, root, area, placed)
        for one in seated.every() if seated is not None else ():
            self._put(one.placed, one.group)
        return seated

    def _optional(self, seated: Seated) -> None:
        """Groups that the minimum does not need, once every group that it needs is seated."""
        self._lean = False
        for one in list(seated.every()):
            if isinstance(one.group, Branch):
                there = {id(child.group) for child in one.children}
                for child in one.group.children:
                    if id(child) not in there and not self.effort.spent:
                        more = self._solve(child, one.area)
                        if more is not None:
                            one.children.append(more)

    def _extras(self, seated: Seated) -> None:
        """Pods above a minimum, once every group has its own."""
        for one in seated.every():
            if isinstance(one.group, Leaf) and len(one.placed) < len(one.group.pods):
                rest = [pod for pod in one.group.pods if pod.key not in one.placed]
                more = seat_leaf(self._engine, Leaf(one.group.name, rest), one.area, len(rest), 0)
                one.placed.update(more or {})

    # ---- verdicts

    def _hopeless(self, root: Demand, area: Area) -> bool:
        """Whether failure needs no further proof: pods of one plain class, or not even the bounds are met."""
        if isinstance(root, Leaf) and len(root.kinds) <= 1 and all(kind.is_plain for kind in root.kinds):
            return True
        return not self._possible(root, area)

    def _possible(self, group: Demand, area: Area) -> bool:
        """Whether bounds leave a domain for the group, and within it domains for enough of its children."""
        for domain in domains(self._engine, group, area):
            if not self.effort.spend():
                return True
            if isinstance(group, Leaf):
                if (group.pods or not group.missing) and _may_fit(self._engine, group, domain):
                    return True
            elif sum(self._possible(child, domain) for child in group.children) >= group.need:
                return True
        return False

    def _miss(self, root: Demand, area: Area, answer: Answer | None) -> Result:
        outcomes = diagnose(self._engine, root, area)
        unsure = answer is not None and answer.verdict is Verdict.UNKNOWN
        if unsure and answer is not None:
            own = outcomes[root.name]
            own.reason, own.detail, own.proven = Reason.NOT_FOUND, f"{answer.why}; {own.detail}", False
        return Result(False, outcomes, {}, exact=answer is not None and not unsure)

    def _result(self, root: Demand, area: Area, seated: Seated, answer: Answer | None) -> Result:
        outcomes = {one.group.name: Outcome(True, one.placed) for one in seated.every()}
        placed = {key: row for one in outcomes.values() for key, row in one.placed.items()}
        if len(outcomes) < len(list(groups(root))):
            why = diagnose(self._engine, root, area)
            outcomes = {group.name: outcomes.get(group.name) or why[group.name] for group in groups(root)}
        # Satisfied by what runs, but none of the pending pods found a place: that is not a success.
        return Result(bool(placed), outcomes, placed, exact=answer is not None)


def _may_fit(engine: Engine, leaf: Leaf, area: Area) -> bool:
    """By count, class by class; and by amount, over nodes that take any of its pods."""
    if bound(engine, leaf, area) < leaf.missing:
        return False
    if len(leaf.kinds) < 2:
        return True
    state = engine.state
    takes = np.logical_or.reduce([area.of(engine.room(kind)) > 0 for kind in leaf.kinds])
    rows = np.flatnonzero(takes) if area.rows is None else area.rows[takes]
    columns = {int(number) for kind in leaf.kinds for number in kind.shape.columns}
    free = (int((state.alloc[rows, column] - state.used[rows, column]).clip(min=0).sum()) for column in columns)
    return all(have >= least_amount(leaf, column) for column, have in zip(columns, free, strict=True))


def _as_seated(engine: Engine, group: Demand, area: Area, placed: dict[str, int]) -> Seated | None:
    if isinstance(group, Leaf):
        own = {pod.key: placed[pod.key] for pod in group.pods if pod.key in placed}
        if len(own) < group.missing:
            return None
        return Seated(group, _inside(engine, group, area, [*own.values(), *group.running]), own)
    rows = [placed[pod.key] for leaf in group.leaves() for pod in leaf.pods if pod.key in placed]
    inside = _inside(engine, group, area, [*rows, *group.running])
    found = (_as_seated(engine, child, inside, placed) for child in group.children)
    children = [one for one in found if one is not None]
    return Seated(group, inside, {}, children) if len(children) >= group.need else None


def _inside(engine: Engine, group: Demand, area: Area, rows: Sequence[int]) -> Area:
    if group.topology is None or not rows:
        return area
    return area.split(group.topology).find(int(engine.state.column(group.topology).codes[rows[0]])) or area


def _has_choice(group: Demand) -> bool:
    """Whether some branch may leave a child out."""
    return any(isinstance(one, Branch) and one.need < len(one.children) for one in groups(group))


def _alike(children: Sequence[Demand]) -> bool:
    """Leaves that ask for the same: their order does not matter."""
    first = children[0]
    return all(
        isinstance(one, Leaf)
        and not one.running
        and one.topology == first.topology
        and one.need == first.need
        and one.kinds == first.kinds
        for one in children
    )


def _failed(root: Demand, misses: dict[str, Outcome]) -> Result:
    left = Outcome(False, reason=Reason.BLOCKED_BY_SIBLING, detail="its tree cannot be placed")
    return Result(False, {group.name: misses.get(group.name) or left for group in groups(root)}, {})


def weight(group: Demand) -> int:
    """How much a group asks for at the least, in the unit scores use first (cpu)."""
    if isinstance(group, Leaf):
        total, left = 0, group.missing
        for amount, count in sorted((int(kind.shape.weight[0]), count) for kind, count in group.kinds.items()):
            total += amount * min(count, left)
            left -= min(count, left)
        return total
    return sum(sorted(weight(child) for child in group.children)[: group.need])
