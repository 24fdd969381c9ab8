"""Groups that ask for the same are one sort: a tree of many copies is a small tree of sorts and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kohort.place.demand import Demand, Leaf
from kohort.place.domains import pinned
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass


@dataclass(slots=True, eq=False)
class Sort:
    """What its groups ask for. `pinned`: the domain that running members hold them to.

    Groups whose minimum is met by what runs (`need` 0 of a leaf) ask for nothing.
    """

    number: int  # in the order in which they came: who sits where must not depend on addresses in memory
    key: tuple[object, ...]
    topology: str | None
    pinned: int | None
    need: int
    eq_classes: dict[EquivalenceClass, int]  # of a leaf: how many pods of each it has
    children: list[tuple[Sort, int]]  # of a branch: how many of each sort it has
    is_leaf: bool
    enough: bool = True  # False: it has too few pods or children, whatever room there is
    asks: dict[int, int] = field(default_factory=dict)  # column -> the least that one group takes


def sort_of(engine: Engine, group: Demand, known: dict[tuple[object, ...], Sort], of: dict[int, Sort]) -> Sort:
    """The sort of a group; `of` remembers it for every group of the tree by identity."""
    code = pinned(engine, group)
    children: list[tuple[Sort, int]] = []
    if isinstance(group, Leaf):
        need, classes = group.missing, dict(group.eq_classes)
        # Told apart by identity: the classes live as long as the tree.
        asked = tuple(sorted((id(eq_class), count) for eq_class, count in classes.items())) if need else ()
        key: tuple[object, ...] = ("leaf", group.topology if need else None, code if need else None, need, asked)
    else:
        need, classes = group.need, {}
        counts: dict[int, tuple[Sort, int]] = {}
        for child in group.children:
            sort = sort_of(engine, child, known, of)
            counts[id(sort)] = (sort, counts.get(id(sort), (sort, 0))[1] + 1)
        children = sorted(counts.values(), key=lambda one: one[0].number)
        key = ("branch", group.topology, code, need, tuple((sort.number, count) for sort, count in children))
    found = known.get(key)
    if found is None:
        found = Sort(len(known), key, group.topology, code, need, classes, children, isinstance(group, Leaf))
        _measure(found)
        known[key] = found
    of[id(group)] = found
    return found


def _measure(sort: Sort) -> None:
    if sort.is_leaf:
        sort.enough = sum(sort.eq_classes.values()) >= sort.need
        columns = {int(number) for eq_class in sort.eq_classes for number in eq_class.signature.columns}
        for column in columns:
            offers = [(eq_class.signature.ask(column), count) for eq_class, count in sort.eq_classes.items()]
            sort.asks[column] = cheapest(offers, sort.need)
        return
    usable = [(child, count) for child, count in sort.children if child.enough]
    sort.enough = sum(count for _, count in usable) >= sort.need
    for column in {column for child, _ in usable for column in child.asks}:
        sort.asks[column] = cheapest([(child.asks.get(column, 0), count) for child, count in usable], sort.need)


def cheapest(offers: Sequence[tuple[int, int]], need: int) -> int:
    """The least sum of so many, of (price, how many there are)."""
    total = 0
    for price, count in sorted(offers):
        total += price * min(count, need)
        need -= min(count, need)
    return total
