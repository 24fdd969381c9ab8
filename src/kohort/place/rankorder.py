"""Ranks in order: which of a group's pods takes which of the seats that were found for them.

Pods of one class may trade their seats. They do, so that pods of neighbouring ranks share the narrowest domain that
can be: as few neighbours as possible are apart at the widest level, then at the next. Where all ranks are of one class
and none runs yet, walking the tree of domains in order is best at every level at once: each domain is entered once.
Otherwise each rank takes the seat nearest to its neighbours, trades are tried until none helps, and then other orders
as long as they are better so far: of few ranks that is every one that could be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from kohort.place.columns import Amounts
from kohort.place.demand import Rank
from kohort.place.levels import Hierarchy

_TRADES: Final = 5_000  # pairs looked at before a better order is given up on
_STEPS: Final = 160_000  # seats looked at in other orders


@dataclass(frozen=True, slots=True)
class Seat:
    """A rank and where it is. `kind` None: it runs there, and stays."""

    key: str
    rank: Rank
    place: int  # among the rows of the hierarchy
    kind: Hashable | None


def in_order(tree: Hierarchy, seats: Sequence[Seat]) -> dict[str, int]:
    """The seats dealt out by rank: key -> place. Those that stay are left out."""
    line = sorted(seats, key=lambda seat: (seat.rank, seat.key))
    kinds = {seat.kind for seat in line}
    if len(kinds) == 1 and None not in kinds:
        places = _walk(tree, [seat.place for seat in line])
    else:
        places = _Orders(tree, line).best(_traded(tree, line, _nearest(tree, line)))
    return {seat.key: place for seat, place in zip(line, places, strict=True) if seat.kind is not None}


def _walk(tree: Hierarchy, places: Sequence[int]) -> list[int]:
    """Places domain by domain, level by level; the domain of the first row first."""
    chosen = np.asarray(places, np.intp)
    first = [_first_seen(ids[chosen], chosen) for ids in tree.ids]
    found: list[int] = chosen[np.lexsort((chosen, *reversed(first)))].tolist()
    return found


def _first_seen(ids: Amounts, chosen: Amounts) -> Amounts:
    """For each place the lowest place of its domain: domains in the order of their rows."""
    _, inverse = np.unique(ids, return_inverse=True)
    lowest = np.full(int(inverse.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(lowest, inverse, chosen)
    return lowest[inverse]


class _Distance:
    """How far two places are apart: the levels they cross, the widest counting more than all narrower together."""

    def __init__(self, tree: Hierarchy, line: Sequence[Seat]) -> None:
        base, levels = len(line) + 1, len(tree.keys)
        weights = [base ** (levels - 1 - level) for level in range(levels)]
        self._from: list[int] = [
            sum(weights[level:]) for level in range(levels)
        ]  # who is apart at one is apart below it
        self.paths: list[tuple[int, ...]] = [tuple(ids) for ids in tree.ids.T.tolist()]

    def __call__(self, one: int, other: int) -> int:
        if one == other or (here := self.paths[one]) == (there := self.paths[other]):
            return 0
        return next(far for far, a, b in zip(self._from, here, there, strict=True) if a != b)


def _nearest(tree: Hierarchy, line: Sequence[Seat]) -> list[int]:
    """Rank by rank the nearest seat to the one before; among equally near ones, the one in the largest domain of what
    is left, and away from where later ranks that stay are."""
    free: dict[Hashable, list[int]] = {}
    for seat in line:
        if seat.kind is not None:
            free.setdefault(seat.kind, []).append(seat.place)
    left = {kind: np.asarray(_walk(tree, places), np.intp) for kind, places in free.items()}
    places: list[int] = []
    for position, seat in enumerate(line):
        if seat.kind is None:
            places.append(seat.place)
            continue
        open_ = left[seat.kind]
        before = places[-1] if places else None
        after = next((later.place for later in line[position + 1 :] if later.kind is None), None)
        index = _pick(tree, open_, before, after, alone=position + 1 < len(line) and line[position + 1].kind is None)
        places.append(int(open_[index]))
        left[seat.kind] = np.delete(open_, index)
    return places


def _pick(tree: Hierarchy, seats: Amounts, before: int | None, after: int | None, *, alone: bool) -> int:
    shared = np.zeros(len(seats), np.int64)  # levels shared with the rank before; a rank alone looks both ways
    if before is not None:
        shared += (tree.ids[:, seats] == tree.ids[:, [before]]).sum(axis=0)
    if after is not None:
        near = (tree.ids[:, seats] == tree.ids[:, [after]]).sum(axis=0)
        shared = shared * 2 + near if alone or before is None else shared * (2 * len(tree.keys) + 1) - near
    return int(shared.argmax())


def _traded(tree: Hierarchy, line: Sequence[Seat], places: list[int]) -> list[int]:
    """Two ranks of a kind trade seats where that brings neighbours together; until no trade helps."""
    far = _Distance(tree, line)
    last = len(line) - 1

    def around(*positions: int) -> int:
        edges = {edge for position in positions for edge in (position - 1, position) if 0 <= edge < last}
        return sum(far(places[edge], places[edge + 1]) for edge in edges)

    movable = [position for position, seat in enumerate(line) if seat.kind is not None]
    looked, better = 0, True
    while better and looked < _TRADES:
        better = False
        for index, one in enumerate(movable):
            if not around(one):
                continue
            for other in movable[:index] + movable[index + 1 :]:
                if line[one].kind != line[other].kind or places[one] == places[other]:
                    continue
                looked += 1
                was = around(one, other)
                places[one], places[other] = places[other], places[one]
                if around(one, other) < was:
                    better = True
                else:
                    places[one], places[other] = places[other], places[one]
            if looked >= _TRADES:
                break
    return places


class _Orders:
    """Other orders, rank by rank, given up where they cannot be better than the best one."""

    def __init__(self, tree: Hierarchy, line: Sequence[Seat]) -> None:
        self._line = line
        self._far = _Distance(tree, line)
        self._left: dict[Hashable, list[int]] = {}
        for seat in line:
            if seat.kind is not None:
                self._left.setdefault(seat.kind, []).append(seat.place)
        self._steps = _STEPS // len(line)
        self._places: list[int] = []

    def best(self, places: list[int]) -> list[int]:
        self._best = places
        self._least = sum(self._far(one, other) for one, other in pairwise(places))
        pending: list[tuple[Iterator[int], int]] = [(self._seats(), 0)]
        while pending and self._steps > 0 and self._least:
            self._steps -= 1
            seats, cost = pending[-1]
            del self._places[len(pending) - 1 :]
            place = next(seats, None)
            if place is None:
                pending.pop()
                continue
            more = cost + (self._far(self._places[-1], place) if self._places else 0)
            if more >= self._least:
                continue
            self._places.append(place)
            if len(self._places) == len(self._line):
                self._best, self._least = list(self._places), more
            else:
                pending.append((self._seats(), more))
        return self._best

    def _seats(self) -> Iterator[int]:
        """For the next rank: one of each narrowest domain that still has some, the nearest first."""
        seat = self._line[len(self._places)]
        if seat.kind is None:
            return iter((seat.place,))
        kinds = (one.kind for one in self._line)
        taken = Counter(place for place, kind in zip(self._places, kinds, strict=False) if kind == seat.kind)
        found: dict[tuple[int, ...], int] = {}
        for place in self._left[seat.kind]:
            if taken[place]:
                taken[place] -= 1
            else:
                found.setdefault(self._far.paths[place], place)
        last = self._places[-1] if self._places else None
        return iter(sorted(found.values(), key=lambda place: 0 if last is None else self._far(last, place)))
