"""Topology: the domains that a group may be placed in, the hopeless ones left out, the best first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kohort.place.columns import Amounts, Codes, Mask
from kohort.place.demand import Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.nodesets import NodeSet, Partition
from kohort.place.preferred import closest, preferred_levels, price
from kohort.place.signatures import SCORED

_COMPARED = 32  # domains of a required level, by what is preferred within them
_LARGE = 55  # sums above 2**55 lose their last bits before they are multiplied by 100


class TopologyConflict(ValueError):  # noqa: N818 - a state of the cluster, told to people
    """Members run where the group's constraint cannot hold: the cluster, not the search, is at fault."""


def domains(engine: Engine, group: Demand, node_set: NodeSet) -> Iterator[NodeSet]:
    """Candidate domains within the node set, the most promising first. Each is made when it is asked for."""
    if group.topology is None:
        yield from closest(engine, group, node_set)
        return
    parts = node_set.split(group.topology)
    code = pinned(engine, group)
    if code is not None:
        found = parts.find(code)
        if found is not None:
            yield from closest(engine, group, found)
        return
    for position in _preferred(engine, group, parts, Bounds(engine, group, parts)):
        yield from closest(engine, group, parts.node_set(position))


def _preferred(engine: Engine, group: Demand, parts: Partition, bounds: Bounds) -> list[int]:
    """Of the most promising domains, those first in which the group keeps closest together; but never one that takes
    fewer of its pods before one that takes all."""
    ranked = bounds.ranked()
    if len(ranked) < 2 or preferred_levels(engine, group) is None:
        return ranked
    first = ranked[:_COMPARED]
    prices = {position: price(engine, group, parts.node_set(position)) for position in first}
    partial = bounds.placed < bounds.wanted
    return sorted(first, key=lambda position: (partial[position], prices[position])) + ranked[_COMPARED:]


def pinned(engine: Engine, group: Demand) -> int | None:
    """The domain of running members, if there are any."""
    if group.topology is None:
        return None
    if group.lost:
        raise TopologyConflict(f"members of {group.name} run on a node that is not known, of no {group.topology}")
    rows = list(group.running)
    if not rows:
        return None
    codes: Codes = engine.state.column(group.topology).codes
    found = {int(codes[row]) for row in rows}
    if len(found) > 1 or 0 in found:
        where = "a node without that label" if 0 in found else f"{len(found)} domains"
        raise TopologyConflict(f"members of {group.name} run on {where} of {group.topology}")
    return found.pop()


class Bounds:
    """Per domain: how many pods could fit at the most, whether the minimum could be met, how full it would be."""

    def __init__(self, engine: Engine, group: Demand, parts: Partition) -> None:
        self._engine, self._group, self._parts = engine, group, parts
        self._room = {
            eq_class: np.minimum(parts.sum(np.minimum(engine.room(eq_class), count)), count)
            for eq_class, count in group.eq_classes.items()
        }
        self.wanted = sum(group.eq_classes.values())
        self.placed: Amounts = sum(self._room.values(), np.zeros(len(parts), np.int64))

    def ranked(self) -> list[int]:
        """Domains that take all pods before those that take fewer; then as kube-scheduler scores them."""
        found = np.flatnonzero(self.possible())
        if not len(found):
            return []
        score, partial = self._scores()[found], self.placed[found] < self.wanted
        order = np.lexsort((self._parts.ranks[found], -score, self._disturbed()[found], partial))
        return [int(place) for place in found[order]]

    def _disturbed(self) -> Amounts:
        """When somebody must make room: pods that find none which is free already."""
        chooser = self._engine.chooser
        short = np.zeros(len(self._parts), np.int64)
        if chooser is not None:
            for eq_class, count in self._group.eq_classes.items():
                free = self._parts.sum(np.minimum(chooser.room(eq_class), count))
                short += np.maximum(np.minimum(self._room[eq_class], count) - free, 0)
        return short

    def possible(self) -> Mask:
        return self._meets(self._group) & self._holds(self._group)

    def _meets(self, group: Demand) -> Mask:
        """Domains where every group on the way could reach its minimum if it had the room for itself."""
        if isinstance(group, Leaf):
            fits = np.zeros(len(self._parts), np.int64)
            for eq_class, count in group.eq_classes.items():
                fits += np.minimum(self._room[eq_class], count)
            return (fits >= group.missing) & (bool(group.pods) or not group.missing)
        if not group.children:
            return np.zeros(len(self._parts), np.bool_)
        met = np.zeros(len(self._parts), np.int64)
        alike: dict[tuple[object, ...], Mask] = {}
        for child in group.children:
            sort = _sort(child)
            if sort is None:
                met += self._meets(child)
                continue
            if sort not in alike:
                alike[sort] = self._meets(child)
            met += alike[sort]
        enough: Mask = met >= group.need
        return enough

    def _holds(self, group: Demand) -> Mask:
        """Domains where the minimums of the whole tree fit side by side, by count or, for unlike pods, by amount."""
        if isinstance(group, Leaf) or not group.eq_classes:
            return np.ones(len(self._parts), np.bool_)
        if len(group.eq_classes) == 1:
            return self.placed >= least_pods(group)
        state = self._engine.state
        ok: Mask = np.ones(len(self._parts), np.bool_)
        for column in {int(number) for eq_class in group.eq_classes for number in eq_class.signature.columns}:
            free = np.maximum(state.alloc[:, column] - state.used[:, column], 0)
            ok &= self._parts.sum(free) >= least_amount(group, column)
        return ok

    def _scores(self) -> Amounts:
        """kube-scheduler's two scorers: how full the domain's nodes get, and how many of the pods come in."""
        state, group = self._engine.state, self._group
        total = np.zeros(len(self._parts), np.int64)
        weights = np.zeros(len(self._parts), np.int64)
        for name, weight in self._engine.profile.weights.items():
            column = state.resources.number(name)
            counted = list(SCORED).index(name) if name in SCORED else None
            have = self._parts.offered(column)
            used = self._parts.sum(state.used[:, column] if counted is None else state.weighed[:, counted])
            asks = ((eq_class.signature, count) for eq_class, count in group.eq_classes.items())
            new = sum((s.ask(column) if counted is None else int(s.weight[counted])) * count for s, count in asks)
            share = _percent(used + new * self.placed // (self.wanted or 1), have)
            total += np.where(have > 0, share, 0) * weight
            weights += np.where(have > 0, weight, 0)
        running = len(list(group.running))
        most = int(self.placed.max(initial=0)) + running or 1
        return total // np.maximum(weights, 1) + (self.placed + running) * 100 // most


def _sort(group: Demand) -> tuple[object, ...] | None:
    """What a leaf asks for, so that equal leaves are looked at once."""
    if not isinstance(group, Leaf):
        return None
    return (group.missing, tuple((id(eq_class), count) for eq_class, count in group.eq_classes.items()))


def _percent(part: Amounts, whole: Amounts) -> Amounts:
    shift = max(int(whole.max(initial=0)).bit_length() - _LARGE, 0)
    share: Amounts = np.minimum((part >> shift) * 100 // np.maximum(whole >> shift, 1), 100)
    return share


def least_pods(group: Demand) -> int:
    """The fewest pods that meet the minimum of a group."""
    if isinstance(group, Leaf):
        return group.missing
    return sum(sorted(least_pods(child) for child in group.children)[: group.need])


def least_amount(group: Demand, column: int) -> int:
    """The least of one resource that meets the minimum of a group."""
    if isinstance(group, Leaf):
        asks = sorted((eq_class.signature.ask(column), count) for eq_class, count in group.eq_classes.items())
        total, left = 0, group.missing
        for amount, count in asks:
            total += amount * min(count, left)
            left -= min(count, left)
        return total
    return sum(sorted(least_amount(child, column) for child in group.children)[: group.need])
