"""Topology: the domains that a group may be placed in, the hopeless ones left out, the best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kohort.place.columns import Amounts, Codes, Mask, Rows
from kohort.place.demand import Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.pairs import PairClass
from kohort.place.shapes import SCORED


class TwoDomains(ValueError):  # noqa: N818 - a state of the cluster, told to people
    """Members run where the group's constraint cannot hold: the cluster, not the search, is at fault."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The nodes that share one value of a label. `rows` None: every node; `value` None: no constraint."""

    rows: Rows | None
    value: str | None = None


def domains(engine: Engine, group: Demand, rows: Rows | None) -> Iterator[Domain]:
    """Candidate domains among the rows, the most promising first. Each is made when it is asked for."""
    if group.topology is None:
        yield Domain(rows)
        return
    column = engine.state.column(group.topology)
    codes = column.codes if rows is None else column.codes[rows]
    pinned = _pinned(column.codes, group)
    ranked = _Bound(engine, group, rows, codes, column.size).ranked() if pinned is None else [pinned]
    for code in ranked:
        inside = np.flatnonzero(codes == code)
        if len(inside):
            yield Domain(inside if rows is None else rows[inside], column.value(code))


def _pinned(codes: Codes, group: Demand) -> int | None:
    """The domain of running members, if there are any."""
    rows = list(group.running)
    if not rows:
        return None
    found = {int(codes[row]) for row in rows}
    if len(found) > 1 or 0 in found:
        where = "a node without that label" if 0 in found else f"{len(found)} domains"
        raise TwoDomains(f"members of {group.name} run on {where} of {group.topology}")
    return found.pop()


class _Bound:
    """Per domain: how many pods could fit at the most, whether the minimum could be met, how full it would be."""

    def __init__(self, engine: Engine, group: Demand, rows: Rows | None, codes: Codes, size: int) -> None:
        self._engine, self._rows, self._codes, self._size = engine, rows, codes, size
        counts = _by_class(group)
        self._room = {kind: self._sum(np.minimum(self._of(engine.room(kind)), count)) for kind, count in counts.items()}
        self._wanted = sum(counts.values())
        self._placed: Amounts = sum(
            (np.minimum(self._room[kind], count) for kind, count in counts.items()), np.zeros(size, np.int64)
        )
        self._possible = self._meets(group) & self._holds(group, counts)
        self._score = self._scores(counts, len(list(group.running)))

    def ranked(self) -> list[int]:
        """Domains that take all pods before those that take fewer; then as kube-scheduler scores them."""
        codes = np.flatnonzero(self._possible[1:]) + 1
        partial = self._placed[codes] < self._wanted
        return [int(code) for code in codes[np.lexsort((codes, -self._score[codes], partial))]]

    def _of(self, values: Amounts) -> Amounts:
        return values if self._rows is None else values[self._rows]

    def _sum(self, values: Amounts) -> Amounts:
        """Totals per domain. Exact: they stay far below 2**53."""
        return np.bincount(self._codes, weights=values, minlength=self._size).astype(np.int64)

    def _meets(self, group: Demand) -> Mask:
        """Domains where every group on the way could reach its minimum if it had the room for itself."""
        if isinstance(group, Leaf):
            fits = np.zeros(self._size, np.int64)
            for kind, count in _by_class(group).items():
                fits += np.minimum(self._room[kind], count)
            return (fits >= group.missing) & (bool(group.pods) or not group.missing)
        if not group.children:
            return np.zeros(self._size, np.bool_)
        enough: Mask = np.sum([self._meets(child) for child in group.children], axis=0) >= group.need
        return enough

    def _holds(self, group: Demand, counts: dict[PairClass, int]) -> Mask:
        """Domains where the minimums of the whole tree fit side by side, by count or, for unlike pods, by amount."""
        if isinstance(group, Leaf) or not counts:
            return np.ones(self._size, np.bool_)
        if len(counts) == 1:
            return self._placed >= least_pods(group)
        state = self._engine.state
        ok: Mask = np.ones(self._size, np.bool_)
        for column in {int(number) for kind in counts for number in kind.shape.columns}:
            free = self._of(np.maximum(state.alloc[:, column] - state.used[:, column], 0))
            ok &= self._sum(free) >= least_amount(group, column)
        return ok

    def _scores(self, counts: dict[PairClass, int], running: int) -> Amounts:
        """kube-scheduler's two scorers: how full the domain's nodes get, and how many of the pods come in."""
        state = self._engine.state
        total = np.zeros(self._size, np.int64)
        counted = np.zeros(self._size, np.int64)
        for name in self._engine.profile.resources:
            column, position = state.resources.number(name), list(SCORED).index(name)
            have = self._sum(self._of(state.alloc[:, column]))
            used = self._sum(self._of(state.weighed[:, position]))
            new = sum(int(kind.shape.weight[position]) * count for kind, count in counts.items())
            share = np.minimum((used + new * self._placed // (self._wanted or 1)) * 100 // np.maximum(have, 1), 100)
            total += np.where(have > 0, share, 0)
            counted += have > 0
        most = int(self._placed.max(initial=0)) + running or 1
        return total // np.maximum(counted, 1) + (self._placed + running) * 100 // most


def _by_class(group: Demand) -> dict[PairClass, int]:
    counts: dict[PairClass, int] = {}
    for leaf in group.leaves():
        for pod in leaf.pods:
            counts[pod.kind] = counts.get(pod.kind, 0) + 1
    return counts


def least_pods(group: Demand) -> int:
    """The fewest pods that meet the minimum of a group."""
    if isinstance(group, Leaf):
        return group.missing
    return sum(sorted(least_pods(child) for child in group.children)[: group.need])


def least_amount(group: Demand, column: int) -> int:
    """The least of one resource that meets the minimum of a group."""
    if isinstance(group, Leaf):
        asks = sorted(pod.kind.shape.ask(column) for pod in group.pods)
        return sum(asks[: group.missing])
    return sum(sorted(least_amount(child, column) for child in group.children)[: group.need])
