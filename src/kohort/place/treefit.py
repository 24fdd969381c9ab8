"""A tree of groups on a tree of domains, taken apart level by level.

Which groups go to which domain is decided by sums (`levelfit`); then each domain is asked by itself whether it takes
its groups, and a domain of few nodes has an exact answer (`smallfit`). Answers are kept: most groups and domains are
asked about again and again. Where a domain does not take its groups, some change places with others, until all do
(`ejection`). What is held to no domain is put in what the others leave (`coversearch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, product
from typing import Final

import numpy as np

from kohort.place.configurations import Configurations
from kohort.place.coversearch import CoverSearch, Ring
from kohort.place.ejection import FULL, Ejection, Takes
from kohort.place.exhaustive import Exhaustive
from kohort.place.levelfit import Flags, LevelFit, Places
from kohort.place.packing import Counts, PackGroup, Packing, Prices, trimmed
from kohort.place.patternchoice import choose
from kohort.place.patterns import Patterns
from kohort.place.sides import Sides
from kohort.place.smallfit import SmallFit

Rows = tuple[int, ...]
_FEW: Final = 8  # nodes that are filled one after the other
_WIDE: Final = 600  # states kept for them
_STEPS: Final = 2000  # of a search for patterns
_TRIES: Final = 600  # groups that look for a place at one level
_STARTS: Final = 4
_GROUPS: Final = 16  # up to so many,
_DOMAINS: Final = 8  # in so few domains, are tried in all ways
_LOOKS: Final = 4000
_WAYS: Final = 16  # of choosing what is needed that are tried
_MANY: Final = 400  # that are compared
_TARGETS: Final = (0.97, 0.93, 1.0, 0.9)


@dataclass(slots=True, eq=False)
class Placed:
    """Groups in a node set. `seats`: what is asked of these nodes by no ring within; `inner`: rings within."""

    rows: Rows
    loose: list[PackGroup]
    seats: Counts
    inner: list[Placed] = field(default_factory=list)
    patterns: dict[int, int] = field(default_factory=dict)  # node -> pattern


@dataclass(slots=True, eq=False)
class _Way:
    """What to place of a group: leaves that are held to no domain, groups that are."""

    price: float
    loose: list[PackGroup]
    held: list[PackGroup]

    @classmethod
    def of(cls, some: Sequence[_Way]) -> _Way:
        return cls(
            sum(one.price for one in some),
            [leaf for one in some for leaf in one.loose],
            [group for one in some for group in one.held],
        )


class TreeFit:
    """One question. Node sets are told apart by their nodes, groups by what they ask for."""

    def __init__(
        self, packing: Packing, patterns: Patterns, prices: Prices, expired: Callable[[], bool], seed: int = 0
    ) -> None:
        self._packing, self._patterns, self._prices, self._expired = packing, patterns, prices, expired
        free, asks = np.array(packing.free, np.float64), np.array(packing.asks, np.float64)
        scale = np.maximum(free.sum(axis=0), 1)
        self._measures = np.vstack([prices, (asks / scale).T * len(free)]).astype(np.float32)
        worth = patterns.best(prices)[1].astype(np.float64)
        self._room = np.column_stack([worth, free / scale * len(free)])  # node × measure
        self._levels = np.array(packing.levels, np.int64).reshape(len(packing.levels), len(free))
        self._small = SmallFit(patterns, self._measures)
        self._sides: Sides | None = None
        self._asked: set[tuple[tuple[Rows, ...], tuple[int, ...]]] = set()
        self._known: dict[tuple[Rows, bytes], list[int] | None] = {}
        self._takes: dict[tuple[Rows, int, tuple[int, ...]], bool] = {}
        self._names: dict[object, int] = {}
        self._named: dict[int, tuple[int, PackGroup]] = {}
        self._vectors: dict[int, Counts] = {}
        self._homes: dict[int, PackGroup] = {}
        self._known_ways: dict[int, tuple[list[_Way], PackGroup]] = {}
        self._dice = np.random.default_rng(seed)

    # ---- what groups ask for

    def _name(self, group: PackGroup) -> int:
        """The same number for groups that ask for the same."""
        known = self._named.get(id(group))
        if known is None:
            inner = tuple(sorted(self._name(child) for child in group.children))
            key = (group.need, group.level, group.code, tuple(sorted(group.pods.items())), inner)
            name = self._names.setdefault(key, len(self._names))
            known = self._named[id(group)] = (name, group)
        return known[0]

    def _least(self, group: PackGroup) -> Counts:
        """What a group asks for at the least, by measure."""
        name = self._name(group)
        found = self._vectors.get(name)
        if found is None:
            if group.children:
                each = np.sort(np.array([self._least(child) for child in group.children]), axis=0)
                found = each[: group.need].sum(axis=0)
            else:
                each = np.repeat(self._measures[:, list(group.pods)], list(group.pods.values()), axis=1)
                found = np.sort(each, axis=1)[:, : group.need].sum(axis=1)
            self._vectors[name] = found
        return found

    def _seats(self, leaves: Sequence[PackGroup]) -> Counts:
        return self._packing.demand(list(leaves)).astype(np.float32)

    # ---- one node set

    def place(self, rows: Rows, groups: Sequence[PackGroup]) -> Placed | None:
        """Groups within a node set (which has taken those that are held to it), in one of the cheapest ways."""
        for loose, held in self._ways(groups):
            found = self._one_way(rows, loose, held)
            if found is not None or self._expired():
                return found
        return None

    def _one_way(self, rows: Rows, loose: list[PackGroup], held: list[PackGroup]) -> Placed | None:
        if held:
            return self._level(rows, loose, held)
        seats = self._seats(loose)
        if not seats.any() or len(rows) > _FEW:
            return self._covered(Placed(rows, loose, seats)) if seats.any() else Placed(rows, loose, seats)
        key = (rows, seats.tobytes())
        if key not in self._known:
            self._known[key] = self._filled(rows, seats)
        found = self._known[key]
        return None if found is None else Placed(rows, loose, seats, [], dict(zip(rows, found, strict=True)))

    def _filled(self, rows: Rows, seats: Counts) -> list[int] | None:
        room = self._room[list(rows)].sum(axis=0)
        if (self._measures @ seats > room * FULL).any():
            return None
        return self._small.fit(rows, seats, _WIDE)[0]

    def _ways(self, groups: Sequence[PackGroup]) -> Iterator[tuple[list[PackGroup], list[PackGroup]]]:
        """What to place of some groups: leaves held to no domain, with the pods they need, and groups that are held.
        Where a branch has more children than it needs there are several ways, the cheapest first."""
        each = [self._ways_of(group) for group in groups]
        if all(len(ways) == 1 for ways in each):
            few = [tuple(ways[0] for ways in each)]
        else:
            width = max(2, round(_WAYS ** (1 / sum(len(ways) > 1 for ways in each))) + 1)
            few = sorted(product(*(ways[:width] for ways in each)), key=lambda way: sum(one.price for one in way))
        for way in few[:_WAYS]:
            yield [leaf for one in way for leaf in one.loose], [group for one in way for group in one.held]

    def _ways_of(self, group: PackGroup) -> list[_Way]:
        """Of one group."""
        known = self._known_ways.get(id(group))
        if known is not None:
            return known[0]
        found: list[_Way]
        if group.level >= 0:
            found = [_Way(float(self._least(group)[0]), [], [group])]
        elif not group.children:
            lean = trimmed(group, self._prices, self._dice, 0)
            found = [_Way(float(self._least(group)[0]), [lean] if lean.pods else [], [])]
        else:
            found = []
            inner = [self._ways_of(child) for child in group.children]
            for some in combinations(range(len(inner)), group.need):
                few = list(islice(product(*(inner[one] for one in some)), _WAYS))
                found += [_Way.of(way) for way in few]
                if len(found) > _MANY:
                    break
            found = sorted(found, key=lambda way: way.price)[:_WAYS]
        self._known_ways[id(group)] = (found, group)
        return found

    # ---- groups to domains

    def _level(self, rows: Rows, loose: list[PackGroup], held: list[PackGroup]) -> Placed | None:
        level = self._widest(rows, held)
        codes = self._levels[level][list(rows)]
        domains = [(code, tuple(np.array(rows)[codes == code].tolist())) for code in np.unique(codes) if code]
        asks = np.array([self._least(group) for group in held], np.float64)
        room = np.array([self._room[list(nodes)].sum(axis=0) for _, nodes in domains])
        allowed = self._allowed(held, domains) & (asks[:, None] <= room * FULL).all(axis=2)
        for start in range(_STARTS):
            fit = LevelFit(asks, room, allowed, _TARGETS[start % len(_TARGETS)])
            places = fit.begin(self._dice)
            if places is None:
                return None
            inner = self._seated(level, domains, held, fit, places, tight=not loose)
            if inner is not None:
                placed = Placed(rows, loose, self._seats(loose), inner)
                found = self._covered(placed) if loose else placed
                if found is not None:
                    return found
            if self._expired() or (not loose and len(held) <= _GROUPS and len(domains) <= _DOMAINS):
                return None
        return None

    def _widest(self, rows: Rows, held: Sequence[PackGroup]) -> int:
        """Of the labels that groups are held to, the one with the largest domains."""
        levels = {group.level for group in held}
        return min(levels, key=lambda level: len(np.unique(self._levels[level][list(rows)])))

    def _allowed(self, held: Sequence[PackGroup], domains: Sequence[tuple[int, Rows]]) -> Flags:
        """By the domain that a group must take, on this level or within it."""
        allowed = np.ones((len(held), len(domains)), bool)
        for place, group in enumerate(held):
            for code, label in self._codes(group):
                has = self._levels[label] == code
                allowed[place] &= [bool(has[list(nodes)].any()) for _, nodes in domains]
        return allowed

    def _codes(self, group: PackGroup) -> list[tuple[int, int]]:
        own = [(group.code, group.level)] if group.code else []
        return [*own, *(one for child in group.children for one in self._codes(child))]

    def _inside(self, level: int, nodes: Rows, groups: Sequence[PackGroup]) -> Placed | None:
        """A domain with its groups: those that are held to it are at home there."""
        opened = [self._at_home(group) if group.level == level else group for group in groups]
        return self.place(nodes, opened)

    def _at_home(self, group: PackGroup) -> PackGroup:
        return self._homes.setdefault(id(group), replace(group, level=-1, code=0))

    def _seated(
        self,
        level: int,
        domains: Sequence[tuple[int, Rows]],
        held: Sequence[PackGroup],
        fit: LevelFit,
        places: Places,
        *,
        tight: bool,
    ) -> list[Placed] | None:
        """Every domain is asked; groups that find no place push out others. `tight`: they have it to themselves."""
        known: dict[tuple[int, tuple[int, ...]], Placed | None] = {}
        names = [self._name(group) for group in held]

        def ask(domain: int, groups: tuple[int, ...]) -> Placed | None:
            key = (domain, tuple(sorted(groups)))
            if key not in known:
                known[key] = self._inside(level, domains[domain][1], [held[one] for one in groups])
            return known[key]

        def takes(domain: int, groups: tuple[int, ...]) -> bool:
            key = (domains[domain][1], level, tuple(sorted(names[one] for one in groups)))
            if key not in self._takes:
                self._takes[key] = ask(domain, groups) is not None
            return self._takes[key]

        if len(held) <= _GROUPS and len(domains) <= _DOMAINS:
            found = Exhaustive(fit, names, takes, self._expired).settled(_LOOKS)
        else:
            found = self._configured(domains, held, names, fit, takes) if tight else None
        if found is None and not (len(held) <= _GROUPS and len(domains) <= _DOMAINS) and not self._expired():
            places = fit.settle(places)
            found = Ejection(fit, takes, self._dice).settled(places, self._expired, _TRIES)
        if found is None:
            return None
        inner = [ask(domain, tuple(np.flatnonzero(found == domain).tolist())) for domain in range(len(domains))]
        return [one for one in inner if one is not None] if None not in inner else None

    def _configured(
        self,
        domains: Sequence[tuple[int, Rows]],
        held: Sequence[PackGroup],
        names: list[int],
        fit: LevelFit,
        takes: Takes,
    ) -> Places | None:
        """Once, and only where groups need all that they have: others have too many configurations."""
        asked = (tuple(nodes for _, nodes in domains), tuple(sorted(names)))
        if asked in self._asked or any(_has_choice(group) for group in held):
            return None
        self._asked.add(asked)
        if self._sides is None:
            self._sides = Sides(self._patterns, self._measures)
        asks = np.array([self._sides.least(group) for group in held])
        room = np.array([self._sides.room[list(nodes)].sum(axis=0) for _, nodes in domains])
        return Configurations(asks, room, fit.allowed, names, takes, self._expired).settled()

    # ---- what is held to no domain

    def _covered(self, placed: Placed) -> Placed | None:
        """Patterns for a node set whose inner rings have theirs already, so that there are seats for the others."""
        rings = [Ring(placed.seats)]
        position = {node: place for place, node in enumerate(placed.rows)}
        inner = np.zeros(len(placed.rows), np.intp)
        chosen = self._patterns.best(self._prices)[0]

        def add(one: Placed, around: int) -> None:
            for node, pattern in one.patterns.items():
                chosen[node] = pattern
            for ring in one.inner:
                mine = around
                if ring.seats.any():
                    mine = len(rings)
                    rings.append(Ring(ring.seats, around))
                    inner[[position[node] for node in ring.rows]] = mine
                add(ring, mine)

        add(placed, 0)
        everything = np.full(len(self._patterns.starts) - 1, -1, np.intp)
        everything[list(placed.rows)] = inner
        search = CoverSearch(self._patterns, rings, everything, self._prices, self._dice)
        found = search.search(chosen, _STEPS, self._expired)
        if found is not None:
            return replace(placed, patterns={node: int(found[node]) for node in placed.rows})
        whole = None if self._expired() else choose(self._patterns, rings, everything, self._prices, self._expired)
        return None if whole is None else replace(placed, patterns=whole)


def _has_choice(group: PackGroup) -> bool:
    """Whether some of its pods, or children, may be left out."""
    have = len(group.children) if group.children else sum(group.pods.values())
    return group.need < have or any(_has_choice(child) for child in group.children)
