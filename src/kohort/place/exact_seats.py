"""Seats: how many pods of each class every node takes, and how the groups that ask for them share them.

Groups are held to nested node sets (a rack lies in a block), so it is enough that in every node set there are as many
seats of a class as the groups inside it ask for: the innermost are served first, whoever is left is freer in its
choice. Where node sets cross each other, the seats of each group are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kohort.place.columns import Amounts
from kohort.place.engine import Engine
from kohort.place.exact_rules import Item
from kohort.place.interpod import EquivalenceClass
from kohort.place.interpodfilter import allowed
from kohort.place.linear import LinearModel, NotExpressible
from kohort.place.nodesets import NodeSet


@dataclass(slots=True)
class KeptVictims:
    """Something removed that would rather stay: what it holds, by row and column."""

    holds: dict[int, dict[int, int]]
    unknown: int = -1


@dataclass(slots=True)
class Share:
    """Pods of a class that groups of one sort have in one node set: `each` times an unknown."""

    eq_class: EquivalenceClass
    node_set: NodeSet
    count: int
    each: int = 1

    @property
    def name(self) -> tuple[int, int]:
        return (self.count, id(self.eq_class))


@dataclass(slots=True)
class _Ring:
    """A node set, and those right inside it. Shares are of all classes."""

    rows: frozenset[int]
    shares: list[Share] = field(default_factory=list)
    inner: list[_Ring] = field(default_factory=list)

    def every(self) -> Iterator[Share]:
        yield from self.shares
        for ring in self.inner:
            yield from ring.every()

    def outwards(self) -> Iterator[_Ring]:
        for ring in self.inner:
            yield from ring.outwards()
        yield self


class Seats:
    """The seats of a question, and who takes them."""

    def __init__(self, engine: Engine, model: LinearModel, size: int) -> None:
        self._engine, self._model, self._size = engine, model, size
        self.shares: list[Share] = []
        self.items: list[Item] = []
        self._rooms: dict[EquivalenceClass, Amounts] = {}
        self._outer: _Ring | None = None
        self._own: dict[tuple[int, int], Item] = {}  # where node sets cross: share -> its seats

    def room_of(self, eq_class: EquivalenceClass) -> Amounts:
        """How many pods of the class each row takes by itself."""
        known = self._rooms.get(eq_class)
        if known is None:
            if eq_class.pod_affinity:
                raise NotExpressible("required affinity between its pods")
            fit, _ = self._engine.evaluate(eq_class.signature)
            room = np.where(allowed(self._engine.state, eq_class, fit, spread=False), fit.room, 0)
            known = self._rooms[eq_class] = np.minimum(room, 1) if eq_class.signature.ports else room
        return known

    def close(self, stays: Sequence[KeptVictims] = ()) -> None:
        """All shares are known: seats for them."""
        self._outer = _nested(self.shares, self._engine.state.rows)
        if self._outer is not None:
            self._nest(self._outer)
        else:
            self._name()
        self._room(stays)

    def _item(self, eq_class: EquivalenceClass, rows: Sequence[int], most: int) -> Item:
        room = self.room_of(eq_class)
        upper = ((row, min(int(room[row]), most)) for row in rows)
        item = Item(eq_class, {row: self._model.unknown(most) for row, most in upper if most})
        kind = self._model.kind()
        self._model.at.update({unknown: (row, kind) for row, unknown in item.at.items()})
        if len(self._model.upper) > self._size:
            raise NotExpressible(f"more than {self._size} unknowns")
        self.items.append(item)
        return item

    def _nest(self, outer: _Ring) -> None:
        asked: dict[EquivalenceClass, tuple[int, set[int]]] = {}
        for share in self.shares:
            most, rows = asked.setdefault(share.eq_class, (0, set()))
            rows |= _rows(share.node_set, self._engine.state.rows)
            asked[share.eq_class] = (most + self._model.upper[share.count] * share.each, rows)
        seats = {eq_class: self._item(eq_class, sorted(rows), most) for eq_class, (most, rows) in asked.items()}
        for ring in outer.outwards():
            if self._engine.pause is not None:
                self._engine.pause()
            wanted: dict[EquivalenceClass, list[tuple[int, int]]] = {}
            for share in ring.every():
                wanted.setdefault(share.eq_class, []).append((share.count, -share.each))
            for eq_class, counts in wanted.items():
                here = [(one, 1) for row, one in seats[eq_class].at.items() if row in ring.rows]
                # In all, nobody gets a seat that is not taken: rules between pods count them.
                self._model.rule([*here, *counts], least=0, most=0 if ring is outer else None)

    def _name(self) -> None:
        for share in self.shares:
            rows = sorted(_rows(share.node_set, self._engine.state.rows))
            most = self._model.upper[share.count] * share.each
            item = self._own[share.name] = self._item(share.eq_class, rows, most)
            unknowns = ((one, 1) for one in item.at.values())
            self._model.rule([*unknowns, (share.count, -share.each)], least=0, most=0)

    def _room(self, stays: Sequence[KeptVictims]) -> None:
        """No node gives more than it has free, to pods and to those that stay."""
        free = self._engine.state.alloc - self._engine.state.used
        staying: dict[int, list[KeptVictims]] = {}
        for one in stays:
            for row in one.holds:
                staying.setdefault(row, []).append(one)
        at_row: dict[int, list[tuple[EquivalenceClass, int]]] = {}
        for item in self.items:
            for row, unknown in item.at.items():
                at_row.setdefault(row, []).append((item.eq_class, unknown))
        asks = {
            eq_class: dict(zip(eq_class.signature.columns.tolist(), eq_class.signature.amounts.tolist(), strict=True))
            for eq_class in {item.eq_class: None for item in self.items}
        }
        columns = sorted({column for ask in asks.values() for column in ask})
        for row, here in at_row.items():
            for column in columns:
                terms = [(unknown, ask) for eq_class, unknown in here if (ask := asks[eq_class].get(column, 0))]
                others = staying.get(row, ())
                terms += [(one.unknown, held) for one in others if (held := one.holds[row].get(column, 0))]
                if sum(self._model.upper[unknown] * ask for unknown, ask in terms) > free[row, column]:
                    self._model.amounts[len(self._model.rows)] = column
                    self._model.rule(terms, most=int(free[row, column]))

    # ---- the way back

    def deal(self, values: Sequence[int]) -> dict[tuple[int, int], list[int]]:
        """Per share (by its name): the rows of its pods."""
        if self._outer is None:
            return {
                name: [row for row, unknown in item.at.items() for _ in range(values[unknown])]
                for name, item in self._own.items()
            }
        free = {item.eq_class: {row: values[unknown] for row, unknown in item.at.items()} for item in self.items}
        dealt: dict[tuple[int, int], list[int]] = {}
        for ring in self._outer.outwards():
            for share in ring.shares:
                dealt[share.name] = _take(free[share.eq_class], ring.rows, values[share.count] * share.each)
        return dealt


def _take(free: dict[int, int], rows: frozenset[int], count: int) -> list[int]:
    taken: list[int] = []
    for row, there in free.items():
        if row in rows and len(taken) < count:
            number = min(there, count - len(taken))
            free[row] = there - number
            taken += [row] * number
    return taken


def _rows(node_set: NodeSet, rows: int) -> frozenset[int]:
    return frozenset(range(rows)) if node_set.members is None else node_set.members


def _nested(shares: Sequence[Share], rows: int) -> _Ring | None:
    """The node sets as rings within rings; None if two of them cross."""
    everything = frozenset(range(rows))
    outer = _Ring(everything)
    rings: dict[frozenset[int], _Ring] = {everything: outer}
    innermost = dict.fromkeys(everything, outer)
    sets = {_rows(share.node_set, rows) for share in shares}
    for members in sorted(sets, key=lambda one: (-len(one), min(one))):
        if members not in rings:
            around = {id(innermost[row]) for row in members}
            if len(around) > 1:
                return None
            ring = rings[members] = _Ring(members)
            innermost[next(iter(members))].inner.append(ring)
            innermost.update(dict.fromkeys(members, ring))
    for share in shares:
        rings[_rows(share.node_set, rows)].shares.append(share)
    return outer
