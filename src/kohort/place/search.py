"""Placing a whole tree: minimums before extras, several orders, and behind them an exact solver.

Nothing is kept unless the root reaches its minimum. Within that, a child that fails contributes nothing. First every
child is tried at once (generous); if the root fails so, only as many as are needed (lean), the others after. What
neither finds, and simple bounds do not rule out, the exact solver settles if it is small enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations
from typing import Final

import numpy as np

from kohort.place.bestfit import BestFit
from kohort.place.demand import Branch, Demand, Leaf, Outcome, PendingPod, Reason, Result, groups, renewed
from kohort.place.diagnosis import diagnose
from kohort.place.domains import TopologyConflict, domains, least_amount
from kohort.place.effort import Effort
from kohort.place.engine import Engine
from kohort.place.equalpods import are_equal, place_equal
from kohort.place.highs import SolverStatus
from kohort.place.leaf import assume_leaf, bound
from kohort.place.nodesets import NodeSet
from kohort.place.preferred import closest
from kohort.place.ranking import by_rank
from kohort.place.solving import SolverAnswer, solve
from kohort.place.standing import seat
from kohort.place.thrift import prices, trimmed


@dataclass(slots=True)
class AssumedGroup:
    """A group that has its minimum: its pods, and where further ones may go."""

    group: Demand
    node_set: NodeSet
    placed: dict[str, int]
    children: list[AssumedGroup] = field(default_factory=list)

    def every(self) -> Iterator[AssumedGroup]:
        yield self
        for child in self.children:
            yield from child.every()

    def total(self) -> int:
        return sum(len(one.placed) for one in self.every())


_FEW: Final = 4  # children whose orders are all tried
_FIRST: Final = 60  # steps before the exact solver is asked, and one for each group
_PACKED: Final = 24  # groups that are packed before a solver elsewhere is asked


class Search:
    """One decision about one root."""

    def __init__(self, engine: Engine, effort: Effort | None = None) -> None:
        self._engine = engine
        self.effort = effort or Effort()
        self._lean = False
        self._memo: dict[tuple[int, NodeSet, int], AssumedGroup | None] = {}
        self._pods: dict[str, PendingPod] = {}

    def place(
        self,
        root: Demand,
        node_set: NodeSet | None = None,
        *,
        minimum_only: bool = False,
        found: Mapping[str, int] | None = None,
        told: bool = True,
    ) -> Result:
        """Place the tree in a node set (None: anywhere). Assumed pods stay in the engine, for the caller to undo.

        `minimum_only`: what the root's minimum does not need is left for later, and no outcome speaks of it.
        `found`: what an earlier search found (pod -> row), taken if it still holds. `told`: somebody reads why not.
        """
        engine = self._engine
        if not found and node_set is None and are_equal(engine, root) and not self.effort.spent:
            assert isinstance(root, Leaf)
            return place_equal(engine, root, minimum_only=minimum_only, told=told)
        root, node_set = renewed(root, engine.state.interpod), node_set or engine.all_nodes
        mark = engine.mark()
        answer: SolverAnswer | None = None
        try:
            assumed = self._standing(root, node_set, found) if found else None
            if assumed is None:
                with self.effort.part(_first(root)) as first:
                    assumed = self._attempt(root, node_set, lean_first=minimum_only)
                if assumed is None and not self._hopeless(root, node_set):
                    assumed, answer = self._harder(root, node_set, lean_first=minimum_only, more=first.cut)
        except TopologyConflict as wrong:
            engine.undo(mark)
            return _failed(root, {root.name: Outcome(False, reason=Reason.MISCONFIGURED, detail=str(wrong))})
        if assumed is None:
            engine.undo(mark)
            return self._miss(root, node_set, answer) if told or not _is_plain(root) else _untold(root)
        if minimum_only:
            outcomes = {one.group.name: Outcome(True, one.placed) for one in assumed.every()}
            by_rank(engine, root, outcomes)
            placed = {key: row for one in outcomes.values() for key, row in one.placed.items()}
            return Result(bool(placed), outcomes, placed, exact=answer is not None)
        self._optional(assumed)
        self._extras(assumed)
        return self._result(root, node_set, assumed, answer)

    def fits(
        self, root: Demand, *, packed: bool = False, found: Mapping[str, int] | None = None
    ) -> dict[str, int] | None:
        """Where the minimum of a tree goes by the first way alone (`packed`: by best fit; `found`: as was found
        before), and not a word about why if it does not. Assumed pods stay in the engine."""
        engine = self._engine
        mark, everywhere = engine.mark(), engine.all_nodes
        try:
            if found is not None:
                assumed = self._standing(root, everywhere, found)
            else:
                assumed = self._packed(root, everywhere) if packed else self._attempt(root, everywhere, lean_first=True)
        except TopologyConflict:
            assumed = None
        if assumed is None:
            engine.undo(mark)
            return None
        return {key: row for one in assumed.every() for key, row in one.placed.items()}

    def _harder(
        self, root: Demand, node_set: NodeSet, *, lean_first: bool, more: bool
    ) -> tuple[AssumedGroup | None, SolverAnswer | None]:
        """What is not found at once: packing, then the exact solver; what it has no words for is searched further,
        if the search was cut off. Where the solver works elsewhere, many groups are packed only if it gave up: packing
        them takes longer than asking."""
        many = len(list(islice(groups(root), _PACKED + 1))) > _PACKED
        later = many and self.effort.solver is not None
        assumed = None if later else self._packed(root, node_set)
        if assumed is not None:
            return assumed, None
        # First without what the minimums can do without, which is a smaller question; then the whole.
        lean = trimmed(root, prices(self._engine, root.eq_classes))
        answer = solve(self._engine, [root] if lean is root else [lean, root], node_set, self.effort)
        if answer.status is SolverStatus.FOUND:
            assumed = self._standing(root, node_set, answer.placed)
        elif answer.status is SolverStatus.UNKNOWN:
            assumed = self._packed(root, node_set) if later else None
            if assumed is None and not answer.asked and more:
                assumed = self._attempt(root, node_set, lean_first=lean_first)
        return assumed, answer

    def _standing(self, root: Demand, node_set: NodeSet, found: Mapping[str, int]) -> AssumedGroup | None:
        """What was found earlier, if nobody has taken it since."""
        mark = self._engine.mark()
        if seat(self._engine, root, found):
            assumed = _as_assumed(self._engine, root, node_set, found)
            if assumed is not None:
                return assumed
        self._engine.undo(mark)
        return None

    def _attempt(self, root: Demand, node_set: NodeSet, *, lean_first: bool = False) -> AssumedGroup | None:
        for lean in (lean_first, not lean_first) if _has_choice(root) else (False,):
            self._lean = lean
            self._memo.clear()
            assumed = self._solve(root, node_set)
            if assumed is not None:
                return assumed
        return None

    def _packed(self, root: Demand, node_set: NodeSet) -> AssumedGroup | None:
        """Once more, wasting as little of each node as can be."""
        if self._engine.chooser is not None:
            return None
        self._lean = True
        self._memo.clear()
        with self.effort.part(_first(root)), self._engine.choosing(BestFit(self._engine)):
            return self._solve(root, node_set)

    # ---- minimums

    def _solve(self, group: Demand, node_set: NodeSet) -> AssumedGroup | None:
        if not self.effort.spend(_cost(group)):
            return None
        if self._engine.pause is not None:
            self._engine.pause()
        return self._leaf(group, node_set) if isinstance(group, Leaf) else self._branch(group, node_set)

    def _leaf(self, leaf: Leaf, node_set: NodeSet) -> AssumedGroup | None:
        if not leaf.pods and leaf.missing:
            return None
        for domain in domains(self._engine, leaf, node_set):
            placed = assume_leaf(self._engine, leaf, domain, leaf.missing, leaf.missing)
            if placed is not None:
                return AssumedGroup(leaf, domain, placed)
        return None

    def _branch(self, branch: Branch, node_set: NodeSet) -> AssumedGroup | None:
        mark = self._engine.mark()
        best: tuple[int, NodeSet, Sequence[Demand]] | None = None
        for domain in domains(self._engine, branch, node_set):
            stuck: list[Demand] = []
            for order in self._orders(branch, stuck):
                assumed = self._children(branch, order, domain, stuck)
                if assumed is not None and (self._lean or len(assumed.children) == len(branch.children)):
                    return assumed
                if assumed is not None and (best is None or assumed.total() > best[0]):
                    best = (assumed.total(), domain, order)
                self._engine.undo(mark)
                if assumed is not None or self.effort.spent:
                    break
            if self.effort.spent:
                break
        return None if best is None else self._children(branch, best[2], best[1], [])

    def _children(
        self, branch: Branch, order: Sequence[Demand], node_set: NodeSet, stuck: list[Demand]
    ) -> AssumedGroup | None:
        """Children that get their minimum, in this order; None if they are too few (`stuck`: whom it failed for)."""
        mark = self._engine.mark()
        done: list[AssumedGroup] = []
        for position, child in enumerate(order):
            if self._lean and len(done) >= branch.need:
                break
            assumed = self._remembered(child, node_set)
            if assumed is not None:
                done.append(assumed)
            elif len(done) + len(order) - position - 1 < branch.need:
                stuck.append(child)
                self._engine.undo(mark)
                return None
        if len(done) < branch.need:
            self._engine.undo(mark)
            return None
        return AssumedGroup(branch, node_set, {}, done)

    def _remembered(self, group: Demand, node_set: NodeSet) -> AssumedGroup | None:
        """A group in a node set where nothing moved since it was last tried there is not tried again."""
        if node_set.rows is None or not all(eq_class.is_plain for eq_class in group.eq_classes):
            return self._solve(group, node_set)
        key = (id(group), node_set, hash(self._engine.state.used[node_set.rows].tobytes()))
        if key not in self._memo:
            self._memo[key] = self._solve(group, node_set)
            return self._memo[key]
        known = self._memo[key]
        if known is None:
            return None
        for one in known.every():
            self._put(one.placed, one.group)
        return known

    def _put(self, placed: dict[str, int], group: Demand) -> None:
        if placed:
            eq_classes = {pod.key: pod.eq_class for leaf in group.leaves() for pod in leaf.pods}
            for key, row in placed.items():
                self._engine.assume_on(eq_classes[key], row)

    def _orders(self, branch: Branch, stuck: Sequence[Demand]) -> Iterator[Sequence[Demand]]:
        """As created; the largest first; lean, the smallest first; then others, up to a bound: of few children, all
        orders; of many, whoever found no room comes first the next time."""
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
        if len(children) <= _FEW:
            yield from islice(permutations(largest), 1, self.effort.orders)
            return
        order = largest
        for _ in range(self.effort.orders - len(seen)):
            if not stuck or order[0] is stuck[-1]:
                return
            order = [stuck[-1], *(child for child in order if child is not stuck[-1])]
            yield order

    # ---- after the minimums

    def _optional(self, assumed: AssumedGroup) -> None:
        """Groups that the minimum does not need, once every group that it needs is seated."""
        self._lean = False
        for one in list(assumed.every()):
            if isinstance(one.group, Branch):
                there = {id(child.group) for child in one.children}
                for child in one.group.children:
                    if id(child) not in there and not self.effort.spent:
                        more = self._solve(child, one.node_set)
                        if more is None and one.node_set.within is not None:
                            more = self._solve(child, one.node_set.within)
                        if more is not None:
                            one.children.append(more)

    def _extras(self, assumed: AssumedGroup) -> None:
        """Pods above a minimum, once every group has its own."""
        for one in assumed.every():
            if isinstance(one.group, Leaf) and len(one.placed) < len(one.group.pods):
                self._more(one, one.group)

    def _more(self, one: AssumedGroup, leaf: Leaf) -> None:
        """As near to the others as they prefer, then wherever the group may be."""
        running = [*leaf.running, *one.placed.values()]
        for node_set in closest(self._engine, replace(leaf, running=running), one.node_set.within or one.node_set):
            rest = [pod for pod in leaf.pods if pod.key not in one.placed]
            if rest:
                more = assume_leaf(self._engine, Leaf(leaf.name, rest), node_set, len(rest), 0)
                one.placed.update(more or {})

    # ---- verdicts

    def _hopeless(self, root: Demand, node_set: NodeSet) -> bool:
        """Whether failure needs no further proof: pods of one plain class, or not even the bounds are met."""
        if (
            isinstance(root, Leaf)
            and not self.effort.spent
            and len(root.eq_classes) <= 1
            and all(eq_class.is_plain for eq_class in root.eq_classes)
        ):
            return True
        return not self._possible(root, node_set)

    def _possible(self, group: Demand, node_set: NodeSet) -> bool:
        """Whether bounds leave a domain for the group, and within it domains for enough of its children."""
        for domain in domains(self._engine, group, node_set):
            if not self.effort.spend():
                return True
            if self._engine.pause is not None:
                self._engine.pause()
            if isinstance(group, Leaf):
                if (group.pods or not group.missing) and _may_fit(self._engine, group, domain):
                    return True
            elif sum(self._possible(child, domain) for child in group.children) >= group.need:
                return True
        return False

    def _miss(self, root: Demand, node_set: NodeSet, answer: SolverAnswer | None) -> Result:
        if answer is not None and answer.status is SolverStatus.SEARCHING:  # why it may fail is told when it has
            unknown = Outcome(False, reason=Reason.NOT_FOUND, detail=answer.why, proven=False)
            return Result(False, {group.name: replace(unknown) for group in groups(root)}, {}, searching=True)
        outcomes = diagnose(self._engine, root, node_set)
        unsure = answer is not None and answer.status is SolverStatus.UNKNOWN
        if unsure and answer is not None:
            own = outcomes[root.name]
            own.reason, own.detail, own.proven = Reason.NOT_FOUND, f"{answer.why}; {own.detail}", False
        elif answer is not None and answer.why:
            own = outcomes[root.name]
            own.detail = f"{own.detail}; {answer.why}" if own.detail else answer.why
        return Result(False, outcomes, {}, exact=answer is not None and not unsure)

    def _result(self, root: Demand, node_set: NodeSet, assumed: AssumedGroup, answer: SolverAnswer | None) -> Result:
        outcomes = {one.group.name: Outcome(True, one.placed) for one in assumed.every()}
        by_rank(self._engine, root, outcomes)
        placed = {key: row for one in outcomes.values() for key, row in one.placed.items()}
        if len(outcomes) < len(list(groups(root))):
            why = diagnose(self._engine, root, node_set)
            outcomes = {group.name: outcomes.get(group.name) or why[group.name] for group in groups(root)}
        # Satisfied by what runs, but none of the pending pods found a place: that is not a success.
        return Result(bool(placed), outcomes, placed, exact=answer is not None)


def _first(root: Demand) -> int:
    return _FIRST + (_cost(root) if isinstance(root, Leaf) else sum(_cost(group) for group in groups(root)))


def _cost(group: Demand) -> int:
    """Steps that looking at a group costs: pods with rules between them are placed one by one."""
    if not isinstance(group, Leaf):
        return 1
    ruled = 0
    for eq_class, count in group.eq_classes.items():
        if not eq_class.is_plain:
            ruled += count
    return 1 + ruled // 8


def _may_fit(engine: Engine, leaf: Leaf, node_set: NodeSet) -> bool:
    """By count, class by class; and by amount, over nodes that take any of its pods."""
    if bound(engine, leaf, node_set) < leaf.missing:
        return False
    if len(leaf.eq_classes) < 2:
        return True
    state = engine.state
    takes = np.logical_or.reduce([node_set.of(engine.room(eq_class)) > 0 for eq_class in leaf.eq_classes])
    rows = np.flatnonzero(takes) if node_set.rows is None else node_set.rows[takes]
    columns = {int(number) for eq_class in leaf.eq_classes for number in eq_class.signature.columns}
    free = (int((state.alloc[rows, column] - state.used[rows, column]).clip(min=0).sum()) for column in columns)
    return all(have >= least_amount(leaf, column) for column, have in zip(columns, free, strict=True))


def _as_assumed(engine: Engine, group: Demand, node_set: NodeSet, placed: Mapping[str, int]) -> AssumedGroup | None:
    if isinstance(group, Leaf):
        own = {pod.key: placed[pod.key] for pod in group.pods if pod.key in placed}
        if len(own) < group.missing:
            return None
        return AssumedGroup(group, _inside(engine, group, node_set, [*own.values(), *group.running]), own)
    rows = [placed[pod.key] for leaf in group.leaves() for pod in leaf.pods if pod.key in placed]
    inside = _inside(engine, group, node_set, [*rows, *group.running])
    found = (_as_assumed(engine, child, inside, placed) for child in group.children)
    children = [one for one in found if one is not None]
    return AssumedGroup(group, inside, {}, children) if len(children) >= group.need else None


def _inside(engine: Engine, group: Demand, node_set: NodeSet, rows: Sequence[int]) -> NodeSet:
    if group.topology is None or not rows:
        return node_set
    return node_set.split(group.topology).find(int(engine.state.column(group.topology).codes[rows[0]])) or node_set


def _is_plain(root: Demand) -> bool:
    """Whether all that can be wrong with it is that there is too little room, and no search would find any."""
    return (
        isinstance(root, Leaf)
        and root.topology is None
        and len(root.pods) >= root.missing
        and len(root.eq_classes) == 1
        and all(eq_class.is_plain for eq_class in root.eq_classes)
    )


def _untold(root: Demand) -> Result:
    return Result(False, {root.name: Outcome(False, reason=Reason.INSUFFICIENT)}, {})


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
        and one.eq_classes == first.eq_classes
        for one in children
    )


def _failed(root: Demand, misses: dict[str, Outcome]) -> Result:
    left = Outcome(False, reason=Reason.BLOCKED_BY_SIBLING, detail="its tree cannot be placed")
    return Result(False, {group.name: misses.get(group.name) or left for group in groups(root)}, {})


def weight(group: Demand) -> int:
    """How much a group asks for at the least, in the unit scores use first (cpu)."""
    if isinstance(group, Leaf):
        total, left = 0, group.missing
        for amount, count in sorted(
            (int(eq_class.signature.weight[0]), count) for eq_class, count in group.eq_classes.items()
        ):
            total += amount * min(count, left)
            left -= min(count, left)
        return total
    return sum(sorted(weight(child) for child in group.children)[: group.need])
