"""The question "does the tree fit?" as linear constraints over whole numbers, with every minimum exactly met.

Unknowns: how many pods of each class of each leaf go to each node; which groups count; which domain a keyed group
takes. Rules that depend on the order of placement (required affinity, spread) cannot be
expressed so: `NotExpressible` is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from kohort.place.columns import Codes, Rows
from kohort.place.demand import Demand, Leaf
from kohort.place.domains import pinned
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass, TermCounter
from kohort.place.interpodfilter import ports_clash
from kohort.place.nodesets import NodeSet
from kohort.place.state import NodeInfo


class NotExpressible(Exception):  # noqa: N818 - a limit of the model, not a failure
    """A question the model has no words for, or one too large."""


@dataclass(slots=True)
class LinearModel:
    """Whole unknowns from 0 to `upper`; rows of (least, most, unknowns, factors)."""

    upper: list[int] = field(default_factory=list)
    rows: list[tuple[int | None, int | None, list[int], list[int]]] = field(default_factory=list)

    def unknown(self, upper: int) -> int:
        self.upper.append(upper)
        return len(self.upper) - 1

    def rule(self, terms: Iterable[tuple[int, int]], least: int | None = None, most: int | None = None) -> None:
        unknowns, factors = [], []
        for unknown, factor in terms:
            unknowns.append(unknown)
            factors.append(factor)
        self.rows.append((least, most, unknowns, factors))


@dataclass(slots=True)
class Item:
    """Pods of one class in one leaf: one unknown per node that may take some."""

    leaf: Leaf
    eq_class: EquivalenceClass
    count: int
    at: dict[int, int]  # row -> unknown


@dataclass(slots=True)
class KeptVictims:
    """Something removed that would rather stay: what it holds, by row and column."""

    holds: dict[int, dict[int, int]]
    unknown: int = -1


class SolverQuestion:
    """A tree in a node set as a model, and the way back from its solution."""

    def __init__(
        self, engine: Engine, root: Demand, node_set: NodeSet, size: int, stays: Sequence[KeptVictims] = ()
    ) -> None:
        self._engine, self._size = engine, size
        self.model = LinearModel()
        self._stays: dict[int, list[KeptVictims]] = {}
        for one in stays:
            one.unknown = self.model.unknown(1)
            for row in one.holds:
                self._stays.setdefault(row, []).append(one)
        self.items: list[Item] = []
        counts = self._group(root, node_set, ())
        self.model.rule([(counts, 1)], least=1)
        self._room()
        self._apart()
        self._ports()
        self._claims()

    def answer(self, values: Sequence[int]) -> dict[str, int]:
        """Pod -> row, pods of a class in the order of their leaf."""
        placed: dict[str, int] = {}
        for item in self.items:
            pods = iter([pod.key for pod in item.leaf.pods if pod.eq_class is item.eq_class])
            for row, unknown in item.at.items():
                for _ in range(values[unknown]):
                    placed[next(pods)] = row
        return placed

    # ---- the tree

    def _group(self, group: Demand, node_set: NodeSet, above: tuple[tuple[Rows, int], ...]) -> int:
        """Unknown: whether the group counts. `above`: (domain of each row, first unknown of its domains) per key."""
        counts = self.model.unknown(1)
        if group.topology is not None:
            above = (*above, self._domains(group, node_set, counts))
        if isinstance(group, Leaf):
            self._leaf(group, node_set, counts, above)
            return counts
        children = [self._group(child, node_set, above) for child in group.children]
        self.model.rule([*((child, 1) for child in children), (counts, -group.need)], least=0)
        return counts

    def _domains(self, group: Demand, node_set: NodeSet, counts: int) -> tuple[Rows, int]:
        assert group.topology is not None
        column = self._engine.state.column(group.topology)
        rows = np.arange(self._engine.state.rows) if node_set.rows is None else node_set.rows
        code = pinned(self._engine, group)
        codes = column.codes[rows]
        used = np.unique(codes[codes > 0]) if code is None else np.array([code])
        place = np.full(self._engine.state.rows, -1, np.intp)
        inside = np.isin(codes, used)
        place[rows[inside]] = np.searchsorted(used, codes[inside])
        first = len(self.model.upper)
        taken = [self.model.unknown(1) for _ in used]
        self.model.rule([*((one, 1) for one in taken), (counts, -1)], least=0, most=0)
        return place, first

    def _leaf(self, leaf: Leaf, node_set: NodeSet, counts: int, above: tuple[tuple[Rows, int], ...]) -> None:
        if not leaf.missing:
            return
        mine: list[Item] = []
        for eq_class, count in leaf.eq_classes.items():
            upper = np.minimum(_room_of(self._engine, eq_class), min(count, leaf.missing))
            rows = np.flatnonzero(upper) if node_set.rows is None else node_set.rows[upper[node_set.rows] > 0]
            for place, _ in above:
                rows = rows[place[rows] >= 0]
            item = Item(leaf, eq_class, count, {row: self.model.unknown(int(upper[row])) for row in rows.tolist()})
            if len(self.model.upper) > self._size:
                raise NotExpressible(f"more than {self._size} unknowns")
            mine.append(item)
            if count < leaf.missing:
                self.model.rule([(one, 1) for one in item.at.values()], most=count)
        self.items += mine
        self.model.rule(
            [*((u, 1) for item in mine for u in item.at.values()), (counts, -leaf.missing)], least=0, most=0
        )
        for place, first in above:
            inside: dict[int, list[int]] = {}
            for item in mine:
                for row, unknown in item.at.items():
                    inside.setdefault(int(place[row]), []).append(unknown)
            for domain, unknowns in inside.items():
                self.model.rule([*((one, 1) for one in unknowns), (first + domain, -leaf.missing)], most=0)

    # ---- the nodes

    def _room(self) -> None:
        state = self._engine.state
        at_row: dict[int, list[tuple[Item, int]]] = {}
        for item in self.items:
            for row, unknown in item.at.items():
                at_row.setdefault(row, []).append((item, unknown))
        asks = {
            item.eq_class: dict(
                zip(item.eq_class.signature.columns.tolist(), item.eq_class.signature.amounts.tolist(), strict=True)
            )
            for item in self.items
        }
        columns = sorted({column for ask in asks.values() for column in ask})
        for row, here in at_row.items():
            for column in columns:
                terms = [(unknown, ask) for item, unknown in here if (ask := asks[item.eq_class].get(column, 0))]
                others = self._stays.get(row, ())
                terms += [(one.unknown, held) for one in others if (held := one.holds[row].get(column, 0))]
                free = int(state.alloc[row, column] - state.used[row, column])
                if sum(self.model.upper[unknown] * ask for unknown, ask in terms) > free:
                    self.model.rule(terms, most=free)

    def _apart(self) -> None:
        """In a domain of an anti-affinity term there may be carriers of the rule, or pods it speaks of, or one pod
        that is both."""
        for counter in {id(c): c for item in self.items for c in item.eq_class.pod_anti_affinity}.values():
            codes = self._engine.state.column(counter.term.key).codes
            for domain in self._by_domain(counter, codes).values():
                self._choose(domain)

    def _by_domain(self, counter: TermCounter, codes: Codes) -> dict[int, tuple[list[int], list[int], list[int]]]:
        found: dict[int, tuple[list[int], list[int], list[int]]] = {}
        for item in self.items:
            carries, matches = counter in item.eq_class.pod_anti_affinity, counter in item.eq_class.matched
            if not carries and not matches:
                continue
            sort = 2 if carries and matches else 0 if carries else 1
            for row, unknown in item.at.items():
                if codes[row]:
                    found.setdefault(int(codes[row]), ([], [], []))[sort].append(unknown)
        return found

    def _choose(self, domain: tuple[list[int], list[int], list[int]]) -> None:
        switches = []
        for sort, unknowns in enumerate(domain):
            if unknowns:
                switch = self.model.unknown(1)
                most = 1 if sort == 2 else sum(self.model.upper[one] for one in unknowns)
                self.model.rule([*((one, 1) for one in unknowns), (switch, -most)], most=0)
                switches.append(switch)
        if len(switches) > 1:
            self.model.rule([(one, 1) for one in switches], most=1)

    def _ports(self) -> None:
        with_ports = [item for item in self.items if item.eq_class.signature.ports]
        for one, other in combinations(with_ports, 2):
            held = NodeInfo("", {}, ports=dict.fromkeys(other.eq_class.signature.ports, 1))
            if ports_clash(one.eq_class.signature, held):
                for row in one.at.keys() & other.at.keys():
                    self.model.rule([(one.at[row], 1), (other.at[row], 1)], most=1)

    def _claims(self) -> None:
        claims = self._engine.state.claims
        users: dict[str, list[int]] = {}
        for item in self.items:
            for key in item.eq_class.signature.claims:
                if claims.get(key).once:
                    users.setdefault(key, []).extend(item.at.values())
        for unknowns in users.values():
            self.model.rule([(one, 1) for one in unknowns], most=1)


def _room_of(engine: Engine, eq_class: EquivalenceClass) -> Rows:
    """How many pods of the class each row takes by itself."""
    signature = eq_class.signature
    if eq_class.pod_affinity or any(spread.hard for spread in signature.spread_constraints):
        raise NotExpressible("required affinity or spread between its pods")
    fit, _ = engine.evaluate(signature)
    room = np.where(engine.feasible(eq_class, fit), fit.room, 0)
    return np.minimum(room, 1) if signature.ports else room
