"""The question "does the tree fit?" as linear constraints over whole numbers, with every minimum exactly met.

Unknowns: how many pods of each class of each leaf go to each node; which groups count; which domain a keyed group
takes. Rules that depend on the order of placement (required affinity, spread) cannot be said so; `Unsaid` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from kohort.place.areas import Area
from kohort.place.between import ports_clash
from kohort.place.columns import Codes, Rows
from kohort.place.demand import Demand, Leaf
from kohort.place.domains import pinned
from kohort.place.engine import Engine
from kohort.place.pairs import Counter, PairClass
from kohort.place.state import NodeFacts


class Unsaid(Exception):  # noqa: N818 - a limit of the model, not a failure
    """A question the model has no words for, or one too large."""


@dataclass(slots=True)
class Model:
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
    kind: PairClass
    count: int
    at: dict[int, int]  # row -> unknown


@dataclass(slots=True)
class Stays:
    """Something lifted that would rather stay: what it holds, by row and column."""

    holds: dict[int, dict[int, int]]
    unknown: int = -1


class Question:
    """A tree in an area as a model, and the way back from its solution."""

    def __init__(self, engine: Engine, root: Demand, area: Area, size: int, stays: Sequence[Stays] = ()) -> None:
        self._engine, self._size = engine, size
        self.model = Model()
        self._stays: dict[int, list[Stays]] = {}
        for one in stays:
            one.unknown = self.model.unknown(1)
            for row in one.holds:
                self._stays.setdefault(row, []).append(one)
        self.items: list[Item] = []
        counts = self._group(root, area, ())
        self.model.rule([(counts, 1)], least=1)
        self._room()
        self._apart()
        self._ports()
        self._claims()

    def answer(self, values: Sequence[int]) -> dict[str, int]:
        """Pod -> row, pods of a class in the order of their leaf."""
        placed: dict[str, int] = {}
        for item in self.items:
            pods = iter([pod.key for pod in item.leaf.pods if pod.kind is item.kind])
            for row, unknown in item.at.items():
                for _ in range(values[unknown]):
                    placed[next(pods)] = row
        return placed

    # ---- the tree

    def _group(self, group: Demand, area: Area, above: tuple[tuple[Rows, int], ...]) -> int:
        """Unknown: whether the group counts. `above`: (domain of each row, first unknown of its domains) per key."""
        counts = self.model.unknown(1)
        if group.topology is not None:
            above = (*above, self._domains(group, area, counts))
        if isinstance(group, Leaf):
            self._leaf(group, area, counts, above)
            return counts
        children = [self._group(child, area, above) for child in group.children]
        self.model.rule([*((child, 1) for child in children), (counts, -group.need)], least=0)
        return counts

    def _domains(self, group: Demand, area: Area, counts: int) -> tuple[Rows, int]:
        assert group.topology is not None
        column = self._engine.state.column(group.topology)
        rows = np.arange(self._engine.state.rows) if area.rows is None else area.rows
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

    def _leaf(self, leaf: Leaf, area: Area, counts: int, above: tuple[tuple[Rows, int], ...]) -> None:
        if not leaf.missing:
            return
        mine: list[Item] = []
        for kind, count in leaf.kinds.items():
            upper = np.minimum(_room_of(self._engine, kind), min(count, leaf.missing))
            rows = np.flatnonzero(upper) if area.rows is None else area.rows[upper[area.rows] > 0]
            for place, _ in above:
                rows = rows[place[rows] >= 0]
            item = Item(leaf, kind, count, {row: self.model.unknown(int(upper[row])) for row in rows.tolist()})
            if len(self.model.upper) > self._size:
                raise Unsaid(f"more than {self._size} unknowns")
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
            item.kind: dict(zip(item.kind.shape.columns.tolist(), item.kind.shape.amounts.tolist(), strict=True))
            for item in self.items
        }
        columns = sorted({column for ask in asks.values() for column in ask})
        for row, here in at_row.items():
            for column in columns:
                terms = [(unknown, ask) for item, unknown in here if (ask := asks[item.kind].get(column, 0))]
                others = self._stays.get(row, ())
                terms += [(one.unknown, held) for one in others if (held := one.holds[row].get(column, 0))]
                free = int(state.alloc[row, column] - state.used[row, column])
                if sum(self.model.upper[unknown] * ask for unknown, ask in terms) > free:
                    self.model.rule(terms, most=free)

    def _apart(self) -> None:
        """In a domain of an anti-affinity term there may be carriers of the rule, or pods it speaks of, or one pod
        that is both."""
        for counter in {id(c): c for item in self.items for c in item.kind.apart}.values():
            codes = self._engine.state.column(counter.term.key).codes
            for domain in self._by_domain(counter, codes).values():
                self._choose(domain)

    def _by_domain(self, counter: Counter, codes: Codes) -> dict[int, tuple[list[int], list[int], list[int]]]:
        found: dict[int, tuple[list[int], list[int], list[int]]] = {}
        for item in self.items:
            carries, matches = counter in item.kind.apart, counter in item.kind.matched
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
        with_ports = [item for item in self.items if item.kind.shape.ports]
        for one, other in combinations(with_ports, 2):
            held = NodeFacts("", {}, ports=dict.fromkeys(other.kind.shape.ports, 1))
            if ports_clash(one.kind.shape, held):
                for row in one.at.keys() & other.at.keys():
                    self.model.rule([(one.at[row], 1), (other.at[row], 1)], most=1)

    def _claims(self) -> None:
        claims = self._engine.state.claims
        users: dict[str, list[int]] = {}
        for item in self.items:
            for key in item.kind.shape.claims:
                if claims.get(key).once:
                    users.setdefault(key, []).extend(item.at.values())
        for unknowns in users.values():
            self.model.rule([(one, 1) for one in unknowns], most=1)


def _room_of(engine: Engine, kind: PairClass) -> Rows:
    """How many pods of the class each row takes by itself."""
    shape = kind.shape
    if kind.together or any(spread.hard for spread in shape.spreads):
        raise Unsaid("required affinity or spread between its pods")
    fit, _ = engine.look(shape)
    room = np.where(engine.may(kind, fit), fit.room, 0)
    return np.minimum(room, 1) if shape.ports else room
