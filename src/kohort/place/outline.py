"""The outline of a large model: what happens within a few nodes is added up.

Nodes that no rule tells apart are put together, five or so at a time (`Bundle`). Of the model, so many of a kind on the
nodes of a bundle and so much of each amount are left: a small model, which is asked for an answer that leaves a little
of everything free in every bundle. It allows all that the model allows, and more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from kohort.place.effort import Effort
from kohort.place.highs import Floats, Program, SolverStatus, run
from kohort.place.linear import LinearModel

_NODES: Final = 6  # in a bundle, at the most
_FREE: Final = ((3.0, 3.0), (5.0, 1.0), (8.0, 0.3))  # percent left free in a bundle, and what that is worth
_GAP: Final = 0.05
_ROUGH: Final = 0.3  # the same, for a part
_HALF: Final = 0.5
_TREE: Final = 300  # nodes of the solver's tree in a part
_LARGE: Final = 1000  # factors that are scaled down


class NotSeparable(Exception):  # noqa: N818 - a limit, not a failure
    """A row joins some nodes of a bundle with others."""


@dataclass(slots=True)
class Bundle:
    """Some nodes, their unknowns by kind, and the rows that are about nothing else."""

    nodes: list[int]
    site: tuple[int, ...]
    kinds: dict[int, list[int]] = field(default_factory=dict)
    own: list[int] = field(default_factory=list)  # unknowns that only its rows know
    rows: list[int] = field(default_factory=list)

    @property
    def unknowns(self) -> list[int]:
        return [*(one for some in self.kinds.values() for one in some), *self.own]


def bundles(model: LinearModel) -> list[Bundle]:
    """By site, then in equal parts."""
    places: dict[tuple[int, ...], list[int]] = {}
    for node in sorted({node for node, _ in model.at.values()}):
        places.setdefault(tuple(model.sites.get(node, ())), []).append(node)
    found = []
    for site, nodes in places.items():
        parts = -(-len(nodes) // _NODES)
        found += [Bundle([int(one) for one in some], site) for some in np.array_split(np.array(nodes), parts)]
    bundle_of = {node: bundle for bundle in found for node in bundle.nodes}
    for unknown, (node, kind) in model.at.items():
        bundle_of[node].kinds.setdefault(kind, []).append(unknown)
    return found


class Outline:
    """The model with everything within a bundle added up. Unknowns: those that are on no node, then one for each kind
    in each bundle, then what is left free."""

    def __init__(self, model: LinearModel, parts: Sequence[Bundle]) -> None:
        self._model, self._parts = model, parts
        self._at = {
            unknown: (number, kind)
            for number, bundle in enumerate(parts)
            for kind, some in bundle.kinds.items()
            for unknown in some
        }
        self.number: dict[int, int] = {}  # unknown on no node -> unknown of the outline
        self.sums: dict[tuple[int, int], int] = {}  # bundle and kind -> unknown of the outline
        self._upper: list[float] = []
        self._cost: list[float] = []
        self._rows: list[tuple[float, float, dict[int, float]]] = []
        self._families: dict[tuple[int, tuple[object, ...]], list[int]] = {}
        self._forbidden: list[tuple[int, float, dict[int, float]]] = []  # bundle, the most, of which
        self.home: dict[int, set[int]] = {}  # unknown on no node -> the fewest bundles that a row of it is about
        self._sort_rows()
        for bundle in range(len(parts)):
            for kind, some in parts[bundle].kinds.items():
                self.sums[bundle, kind] = self._new(float(sum(model.upper[one] for one in some)))
        self._whole = len(self._upper)
        self._asked: dict[tuple[int, int], dict[int, float]] = {}
        held = {row for row in self._joined if self._asks(row)}
        for place, asked in self._asked.items():
            self._bound(place, asked)
        for row in self._joined:
            if row not in held:
                self._add(row)
        for (bundle, _), rows in self._families.items():
            self._add_up(bundle, rows)

    def _new(self, upper: float, cost: float = 0.0) -> int:
        self._upper.append(upper)
        self._cost.append(cost)
        return len(self._upper) - 1

    def _sort_rows(self) -> None:
        """Which rows are within one bundle, and which join several; and which unknowns are only in the first."""
        model, joined, inside = self._model, list[int](), dict[int, int]()
        for number, (_, _, unknowns, factors) in enumerate(model.rows):
            where = {self._at[one][0] for one in unknowns if one in self._at}
            if where and not self._covers(unknowns, factors):
                if len(where) > 1:
                    raise NotSeparable
                inside[number] = where.pop()
            else:
                joined.append(number)
        outside = {one for number in joined for one in model.rows[number][2]}
        for number, bundle in inside.items():
            own = [one for one in model.rows[number][2] if one not in self._at]
            part = self._parts[bundle]
            part.rows.append(number)
            part.own += [one for one in own if one not in outside and one not in part.own]
            if not own:
                self._families.setdefault((bundle, self._family(number)), []).append(number)
        local = {one for part in self._parts for one in part.own}
        for unknown in range(len(model.upper)):
            if unknown not in self._at and unknown not in local:
                self.number[unknown] = self._new(float(model.upper[unknown]))
        self._joined = joined
        for number, (_, _, unknowns, _) in enumerate(model.rows):
            where = {self._at[one][0] for one in unknowns if one in self._at} | {inside.get(number, -1)} - {-1}
            for one in unknowns:
                if where and one in self.number and len(where) < len(self.home.get(one, self._parts)):
                    self.home[one] = where

    def _covers(self, unknowns: Sequence[int], factors: Sequence[int]) -> bool:
        """Whether a row counts all of a kind in a bundle, and all alike."""
        seen: dict[tuple[int, int], tuple[int, int]] = {}
        for unknown, factor in zip(unknowns, factors, strict=True):
            if unknown in self._at:
                count, other = seen.get(self._at[unknown], (0, factor))
                if other != factor:
                    return False
                seen[self._at[unknown]] = (count + 1, factor)
        return all(count == len(self._parts[bundle].kinds[kind]) for (bundle, kind), (count, _) in seen.items())

    def _family(self, number: int) -> tuple[object, ...]:
        """Rows that say the same of several nodes are added up."""
        if number in self._model.amounts:
            return ("amount", self._model.amounts[number])
        least, most, unknowns, factors = self._model.rows[number]
        said = sorted((self._at[one][1], factor) for one, factor in zip(unknowns, factors, strict=True))
        supply = [kind for kind, factor in said if factor > 0]
        if most is None and len(supply) == 1:  # seats for groups on a node, which are not the same on every node
            return ("seats", supply[0])
        return (least is None, most is None, *said)

    def _asks(self, number: int) -> bool:
        """A row that says: at least as many of a kind in a bundle as groups there ask for. Then what is unknown is how
        many more; the others are no unknowns of their own."""
        least, most, unknowns, factors = self._model.rows[number]
        places = {self._at[one] for one in unknowns if one in self._at}
        if least != 0 or most is not None or len(places) != 1:
            return False
        (place,) = places
        terms = {self.number[one]: -float(by) for one, by in zip(unknowns, factors, strict=True) if one in self.number}
        counted = {by for one, by in zip(unknowns, factors, strict=True) if one in self._at}
        if place in self._asked or counted != {1} or any(by < 0 for by in terms.values()):
            return False
        self._asked[place] = terms
        return True

    def _bound(self, place: tuple[int, int], asked: dict[int, float]) -> None:
        most = self._upper[self.sums[place]]
        if sum(self._upper[one] * by for one, by in asked.items()) > most:
            self._rows.append((-np.inf, most, {self.sums[place]: 1.0, **asked}))

    def _counted(self, terms: dict[int, float], place: tuple[int, int], factor: float) -> None:
        """So many times what is of a kind in a bundle: what groups there ask for, and what more there is."""
        terms[self.sums[place]] = terms.get(self.sums[place], 0.0) + factor
        for one, by in self._asked.get(place, {}).items():
            terms[one] = terms.get(one, 0.0) + factor * by

    def total(self, values: Floats, bundle: int, kind: int) -> int:
        terms: dict[int, float] = {}
        self._counted(terms, (bundle, kind), 1.0)
        return round(sum(float(values[one]) * by for one, by in terms.items()))

    def _add(self, number: int) -> None:
        least, most, unknowns, factors = self._model.rows[number]
        terms: dict[int, float] = {}
        for place, factor in {
            self._at[one]: by for one, by in zip(unknowns, factors, strict=True) if one in self._at
        }.items():
            self._counted(terms, place, factor)
        for unknown, factor in zip(unknowns, factors, strict=True):
            if unknown in self.number:
                terms[self.number[unknown]] = terms.get(self.number[unknown], 0.0) + factor
        terms = {one: factor for one, factor in terms.items() if factor}
        scale = max((abs(one) for one in terms.values()), default=1.0) or 1.0
        scale = scale if scale > _LARGE else 1.0
        low, high = -np.inf if least is None else least / scale, np.inf if most is None else most / scale
        self._rows.append((low, high, {one: factor / scale for one, factor in terms.items()}))

    def _add_up(self, bundle: int, rows: Sequence[int]) -> None:
        """A node without such a row is bound by what its unknowns can be."""
        model, part = self._model, self._parts[bundle]
        factor_of: dict[int, int] = {}
        low, high, nodes = 0.0, 0.0, set[int]()
        for number in rows:
            least, most, unknowns, factors = model.rows[number]
            low += -np.inf if least is None else least
            high += np.inf if most is None else most
            nodes |= {model.at[one][0] for one in unknowns}
            factor_of |= {self._at[one][1]: factor for one, factor in zip(unknowns, factors, strict=True)}
        for kind, factor in factor_of.items():
            for unknown in part.kinds[kind]:
                if model.at[unknown][0] not in nodes:
                    low += min(factor * model.upper[unknown], 0)
                    high += max(factor * model.upper[unknown], 0)
        amount = rows[0] in model.amounts
        scale = max(high / 100, 1e-9) if amount else 1.0
        terms: dict[int, float] = {}
        for kind, factor in factor_of.items():
            self._counted(terms, (bundle, kind), factor / scale)
        if amount:
            for percent, worth in _FREE:
                terms[self._new(percent, -worth)] = 1.0
        self._rows.append((low / scale, high / scale, terms))

    def solved(self, effort: Effort, seed: int) -> Floats | None:
        """Groups get their places first, then sums become whole. A rough best is enough, or anything at all; another
        seed likes other bundles."""
        asked = self._program(seed)
        size, groups = len(self._upper), len(self.number)
        if groups:
            asked.continuous = np.arange(size) >= groups
            status, found = run(asked, effort.smaller(0.4), seed=seed, gap=_GAP)
            if status is SolverStatus.UNKNOWN:
                asked.cost = None
                status, found = run(asked, effort, seed=seed)
            if status is not SolverStatus.FOUND:
                return None
            asked = self._program(seed)
            asked.lower = np.zeros(size)
            asked.lower[:groups] = asked.upper[:groups] = found[:groups].round()
        asked.continuous = np.arange(size) >= self._whole
        status, found = run(asked, effort, seed=seed, gap=_GAP)
        return found if status is SolverStatus.FOUND else None

    def shifted(self, before: Floats, chosen: set[int], effort: Effort, seed: int) -> Floats | None:
        """Another outline, which differs within some bundles only."""
        size = len(self._upper)
        free = np.arange(size) >= self._whole
        for (bundle, _), mine in self.sums.items():
            free[mine] = bundle in chosen
        for unknown, where in self.home.items():
            free[self.number[unknown]] = where <= chosen
        asked = self._program(seed, chosen)
        kept = before.round()
        asked.lower, asked.upper = np.where(free, 0.0, kept), np.where(free, asked.upper, kept)
        asked.continuous = np.arange(size) >= self._whole
        status, found = run(asked, effort, seed=seed, gap=_ROUGH, nodes=_TREE)
        return found if status is SolverStatus.FOUND else None

    def take(self, plan: Floats, values: Floats, chosen: set[int]) -> None:
        """The plan as it is after some bundles were filled in another way."""
        for unknown, mine in self.number.items():
            plan[mine] = values[unknown]
        for (bundle, kind), mine in self.sums.items():
            if bundle in chosen:
                more = sum(plan[one] * by for one, by in self._asked.get((bundle, kind), {}).items())
                plan[mine] = values[self._parts[bundle].kinds[kind]].sum() - more

    def forbid(self, values: Floats, bundle: int) -> None:
        """What a bundle could not take, it is not given again, nor anything with one more."""
        some = [mine for (where, _), mine in self.sums.items() if where == bundle]
        some += [self.number[unknown] for unknown, where in self.home.items() if where == {bundle}]
        there = [mine for mine in some if values[mine] > _HALF]
        if there:
            total = float(sum(round(values[mine]) for mine in there))
            self._forbidden.append((bundle, total - 1, dict.fromkeys(there, 1.0)))

    def _program(self, seed: int, chosen: Collection[int] = ()) -> Program:
        cost = np.array(self._cost)
        if seed:
            cost *= np.random.default_rng(seed).uniform(0.5, 1.5, len(cost))
        starts, index, factor = [0], list[int](), list[float]()
        rows = [*self._rows, *((-np.inf, most, terms) for bundle, most, terms in self._forbidden if bundle in chosen)]
        for _, _, terms in rows:
            index += terms
            factor += terms.values()
            starts.append(len(index))
        low, high = (np.array([row[side] for row in rows]) for side in (0, 1))
        return Program(
            np.array(self._upper),
            np.array(starts, np.int64),
            np.array(index, np.int64),
            np.array(factor),
            low,
            high,
            cost,
        )
