"""Topology: the domains that a group may be placed in, the hopeless ones left out, the best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kohort.place.columns import Amounts, Codes, Mask
from kohort.place.demand import Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.pairs import PairClass
from kohort.place.shapes import SCORED


class TwoDomains(ValueError):  # noqa: N818 - a state of the cluster, told to people
    """Members run where the group's constraint cannot hold: the cluster, not the search, is at fault."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The nodes that share one value of a label. `value` None: the whole of what the parent has."""

    mask: Mask | None
    value: str | None = None
    full: bool = True  # whether all pods of the group may fit, as far as a bound can tell


def domains(engine: Engine, group: Demand, mask: Mask | None) -> Iterator[Domain]:
    """Candidate domains inside a mask, the most promising first. Each is made when it is asked for."""
    if group.topology is None:
        yield Domain(mask)
        return
    state = engine.state
    column = state.column(group.topology)
    codes = column.codes if mask is None else np.where(mask, column.codes, 0)
    pinned = _pinned(column.codes, group)
    if pinned is not None:
        inside: Mask = codes == pinned
        if inside.any():
            yield Domain(inside, column.value(pinned))
        return
    for code, full in _Bound(engine, group, codes, column.size).ranked():
        yield Domain(codes == code, column.value(code), full)


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
    """Per domain: how many pods of each leaf could fit at the most, and how full it would be."""

    def __init__(self, engine: Engine, group: Demand, codes: Codes, size: int) -> None:
        self._engine = engine
        self._codes = codes
        self._size = size
        leaves = list(group.leaves())
        fits = [self._leaf(leaf) for leaf in leaves]
        self._possible = self._meets(group, dict(zip(map(id, leaves), fits, strict=True)))
        wanted = sum(len(leaf.pods) for leaf in leaves)
        placed: Amounts = sum(fits, np.zeros(size, np.int64))
        self._full = placed >= wanted
        self._score = self._scores(leaves, placed, wanted)

    def ranked(self) -> list[tuple[int, bool]]:
        codes = np.flatnonzero(self._possible[1:]) + 1
        order = np.lexsort((codes, -self._score[codes], ~self._full[codes]))
        return [(int(code), bool(self._full[code])) for code in codes[order]]

    def _count(self, values: Amounts) -> Amounts:
        # Exact: sums stay far below 2**53.
        return np.bincount(self._codes, weights=values, minlength=self._size).astype(np.int64)

    def _leaf(self, leaf: Leaf) -> Amounts:
        """How many of a leaf's pods fit into each domain, class by class, if nothing else wanted the room."""
        total = np.zeros(self._size, np.int64)
        for kind, count in _by_class(leaf):
            room = np.minimum(self._engine.room(kind), count)
            total += np.minimum(self._count(room), count)
        return total

    def _meets(self, group: Demand, fits: dict[int, Amounts]) -> Mask:
        """Domains where every group on the way could reach its minimum."""
        if isinstance(group, Leaf):
            met: Mask = fits[id(group)] >= group.missing
            if not group.pods and group.missing:
                met = np.zeros(self._size, np.bool_)
            return met
        children = [self._meets(child, fits) for child in group.children]
        enough: Mask = np.sum(children, axis=0) >= group.need if children else np.zeros(self._size, np.bool_)
        return enough

    def _scores(self, leaves: list[Leaf], placed: Amounts, wanted: int) -> Amounts:
        """kube-scheduler's two scorers: how full the domain's nodes get, and how many of the pods come in."""
        state = self._engine.state
        total = np.zeros(self._size, np.int64)
        counted = np.zeros(self._size, np.int64)
        counts = [item for leaf in leaves for item in _by_class(leaf)]
        for name in self._engine.profile.resources:
            column, position = state.resources.number(name), list(SCORED).index(name)
            have = self._count(state.alloc[:, column])
            used = self._count(state.weighed[:, position])
            new = sum(int(kind.shape.weight[position]) * count for kind, count in counts)
            share = np.minimum((used + new * placed // (wanted or 1)) * 100 // np.maximum(have, 1), 100)
            total += np.where(have > 0, share, 0)
            counted += have > 0
        running = sum(len(leaf.running) for leaf in leaves)
        most = int(placed.max(initial=0)) + running or 1
        return total // np.maximum(counted, 1) + (placed + running) * 100 // most


def _by_class(leaf: Leaf) -> list[tuple[PairClass, int]]:
    counts: dict[PairClass, int] = {}
    for pod in leaf.pods:
        counts[pod.kind] = counts.get(pod.kind, 0) + 1
    return list(counts.items())
