"""The question "does the tree fit?" as linear constraints over whole numbers, with every minimum exactly met.

Groups that ask for the same are counted, not named: an unknown says how many groups of a sort take a domain, or how
many pods of their class go to a node. Nothing is lost by that. If k equal groups take m children of each in all, and
no more than k times what one has of any sort, dealing them out in turn gives every group its own; the same holds for
the pods of equal leaves. What equal groups could exchange is never asked, which is most of what a solver would try.
Which pods of a class sit where is not asked either: nodes offer seats per class (`exact_seats`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kohort.place.columns import Amounts
from kohort.place.demand import Branch, Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.exact_rules import add_rules
from kohort.place.exact_seats import KeptVictims, Seats, Share
from kohort.place.interpod import EquivalenceClass
from kohort.place.linear import LinearModel, NotExpressible
from kohort.place.nodesets import NodeSet, Partition
from kohort.place.sorts import Sort, sort_of


@dataclass(slots=True)
class _Placed:
    """Groups of one sort within one node set: in which domains, and what they are made of there."""

    sort: Sort
    inside: list[_Inside] = field(default_factory=list)


@dataclass(slots=True)
class _Inside:
    """So many groups of a sort (`count`, an unknown) in one domain."""

    count: int
    shares: list[Share] = field(default_factory=list)
    children: list[tuple[int, _Placed]] = field(default_factory=list)  # how many of a sort, and where


class SolverQuestion:
    """A tree in a node set as a model, and the way back from its solution."""

    def __init__(
        self, engine: Engine, root: Demand, node_set: NodeSet, size: int, stays: Sequence[KeptVictims] = ()
    ) -> None:
        self._engine, self._size, self._root = engine, size, root
        self._rows: dict[tuple[int, int], list[int]] = {}
        self.model = LinearModel()
        for one in stays:
            one.unknown = self.model.unknown(1)
        self.seats = Seats(engine, self.model, size)
        self._sorts: dict[int, Sort] = {}
        engine.state.widen()
        self._free = np.maximum(engine.state.alloc - engine.state.used, 0)
        whole = self.model.unknown(1)
        self._tree = self._placed(sort_of(engine, root, {}, self._sorts), node_set, whole, 1)
        self.model.rule([(whole, 1)], least=1)
        self.seats.close(stays)
        add_rules(engine, self.model, self.seats.items)
        self.model.sites = self._sites(engine)

    def _sites(self, engine: Engine) -> dict[int, list[int]]:
        """Domains of every key that a group or a rule asks about, unless they are single nodes."""
        state, classes = engine.state, {item.eq_class: None for item in self.seats.items}
        keys = {sort.topology for sort in self._sorts.values() if sort.topology is not None}
        keys |= {one.term.key for eq_class in classes for one in eq_class.pod_anti_affinity}
        keys |= {one.term.key for eq_class in classes for one in eq_class.spread_constraints}
        rows = sorted({row for row, _ in self.model.at.values()})
        codes = [state.column(key).codes[rows] for key in sorted(keys)]
        shared = [one for one in codes if len(np.unique(one)) < len(rows)]
        return {row: [int(one[place]) for one in shared] for place, row in enumerate(rows)}

    # ---- the tree

    def _placed(self, sort: Sort, node_set: NodeSet, count: int, most: int) -> _Placed:
        """`count` (an unknown, up to `most`) groups of a sort somewhere in the node set."""
        if self._engine.pause is not None:  # what others take meanwhile is seen when the answer is looked at
            self._engine.pause()
        placed = _Placed(sort)
        if sort.topology is None:
            placed.inside.append(self._inside(sort, node_set, count, most))
            return placed
        parts = node_set.split(sort.topology)
        takes = self._takes(sort, parts, most)
        first: int | None = None
        for position in range(len(parts)):
            if takes[position] and sort.pinned in (None, int(parts.codes[position])):
                here = self.model.unknown(int(takes[position]))
                where = parts.node_set(position)
                placed.inside.append(self._inside(sort, where, here, int(takes[position])))
                if where.rows is not None and len(where.rows) == 1:
                    first = self._on_node(int(where.rows[0]), here, first)
        self.model.rule([*((one.count, 1) for one in placed.inside), (count, -1)], least=0, most=0)
        return placed

    def _on_node(self, row: int, here: int, first: int | None) -> int:
        """Unknowns of a group on one node: the same are counted on every node that it may take."""
        number = len(self.model.upper) - here
        first = self.model.kind(number) if first is None else first
        self.model.at.update({here + place: (row, first + place) for place in range(number)})
        return first

    def _takes(self, sort: Sort, parts: Partition, most: int) -> Amounts:
        """How many groups of a sort each domain takes at the most, by amounts."""
        takes = np.full(len(parts), most if sort.enough else 0, np.int64)
        for column, amount in sort.asks.items():
            if amount:
                takes = np.minimum(takes, parts.sum(self._free[:, column]) // amount)
        return takes

    def _inside(self, sort: Sort, node_set: NodeSet, count: int, most: int) -> _Inside:
        inside = _Inside(count)
        if not sort.enough:
            self.model.rule([(count, 1)], most=0)
        elif sort.is_leaf:
            self._leaf(sort, node_set, inside, most)
        else:
            self._branch(sort, node_set, inside, most)
        return inside

    def _branch(self, sort: Sort, node_set: NodeSet, inside: _Inside, most: int) -> None:
        if not sort.need:
            return
        if len(sort.children) == 1 and sort.need == 1:
            inside.children.append((inside.count, self._placed(sort.children[0][0], node_set, inside.count, most)))
            return
        numbers = []
        for child, there in sort.children:
            each = min(there, sort.need)
            number = self.model.unknown(each * most)
            if each < sort.need:
                self.model.rule([(number, 1), (inside.count, -each)], most=0)
            numbers.append(number)
            inside.children.append((number, self._placed(child, node_set, number, each * most)))
        self.model.rule([*((one, 1) for one in numbers), (inside.count, -sort.need)], least=0, most=0)

    def _leaf(self, sort: Sort, node_set: NodeSet, inside: _Inside, most: int) -> None:
        if not sort.need:
            return
        if sum(sort.eq_classes.values()) == sort.need:  # all its pods: nothing to choose
            for eq_class, there in sort.eq_classes.items():
                self._room_of(eq_class)
                inside.shares.append(Share(eq_class, node_set, inside.count, there))
            self.seats.shares += inside.shares
            return
        for eq_class, there in sort.eq_classes.items():
            each = min(there, sort.need)
            room = int(np.minimum(node_set.of(self._room_of(eq_class)), each * most).sum())
            share = Share(eq_class, node_set, self.model.unknown(min(room, each * most)))
            if len(self.model.upper) > self._size:
                raise NotExpressible(f"more than {self._size} unknowns")
            inside.shares.append(share)
            if each < sort.need:
                self.model.rule([(share.count, 1), (inside.count, -each)], most=0)
        self.seats.shares += inside.shares
        self.model.rule([*((one.count, 1) for one in inside.shares), (inside.count, -sort.need)], least=0, most=0)

    def _room_of(self, eq_class: EquivalenceClass) -> Amounts:
        return self.seats.room_of(eq_class)

    # ---- the way back

    def answer(self, values: Sequence[int]) -> dict[str, int]:
        """Pod -> row."""
        placed: dict[str, int] = {}
        self._rows = self.seats.deal(values)
        self._deal(self._tree, [self._root], values, placed)
        return placed

    def _deal(self, where: _Placed, groups: Sequence[Demand], values: Sequence[int], placed: dict[str, int]) -> None:
        """Which of the groups goes to which domain: the first to the first."""
        left = list(groups)
        for inside in where.inside:
            number = values[inside.count]
            here, left = left[:number], left[number:]
            if not here:
                continue
            if where.sort.is_leaf:
                self._deal_pods(inside, here, placed)
                continue
            chosen = _deal_children(inside, here, values, self._sorts)
            for (_, children), mine in zip(inside.children, chosen, strict=True):
                self._deal(children, mine, values, placed)

    def _deal_pods(self, inside: _Inside, leaves: Sequence[Demand], placed: dict[str, int]) -> None:
        """Pods of a class in the order of their leaf, classes in turn from leaf to leaf: none gets more than it has."""
        seats = [(share.eq_class, row) for share in inside.shares for row in self._rows[share.name]]
        for position, leaf in enumerate(leaves):
            assert isinstance(leaf, Leaf)
            waiting: dict[EquivalenceClass, list[str]] = {}
            for pod in reversed(leaf.pods):
                waiting.setdefault(pod.eq_class, []).append(pod.key)
            for eq_class, row in seats[position :: len(leaves)]:
                placed[waiting[eq_class].pop()] = row


def _deal_children(
    inside: _Inside, branches: Sequence[Demand], values: Sequence[int], sorts: Mapping[int, Sort]
) -> list[list[Demand]]:
    """Per sort of children, those that count: of each branch as many as its turns give it."""
    turns = [position for position, (number, _) in enumerate(inside.children) for _ in range(values[number])]
    chosen: list[list[Demand]] = [[] for _ in inside.children]
    for place, branch in enumerate(branches):
        assert isinstance(branch, Branch)
        waiting: dict[int, list[Demand]] = {}
        for child in reversed(branch.children):
            waiting.setdefault(id(sorts[id(child)]), []).append(child)
        for position in turns[place :: len(branches)]:
            chosen[position].append(waiting[id(inside.children[position][1].sort)].pop())
    return chosen
