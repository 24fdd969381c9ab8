"""Preferred topology: node sets that keep a group to as few domains as can be, the best first, the whole set last.

What a group prefers comes from three places: levels that somebody named for it; preferred affinity of its pods to each
other; and, for pods with ranks and without rules between them, the levels of the network, so that few neighbours are
apart. Seats per node are counted as the engine counts them. For pods of one plain class that is exact, and so is the
choice; for others it is an estimate, and more roomy sets are tried where one was too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kohort.place.columns import Amounts, Rows
from kohort.place.demand import Branch, Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.fewest import Chosen, Offer, fewest
from kohort.place.interpod import EquivalenceClass
from kohort.place.levels import HOSTNAME, Hierarchy, carried, ordered
from kohort.place.nodesets import NodeSet

_ROOMIER: Final = (100, 125, 150, 200)  # percent of what is needed, where seats are estimated
_PARTS: Final = 64  # of a pod, where seats are estimated
_LARGE: Final = 1 << 40  # amounts above lose their last bits before they are multiplied


@dataclass(frozen=True, slots=True)
class PreferredLevels:
    """Levels that a group wants few domains of: label keys, the widest first, and which count most."""

    keys: tuple[str, ...]
    importance: tuple[int, ...]


def preferred_levels(engine: Engine, group: Demand) -> PreferredLevels | None:
    """What a group prefers; None: nothing."""
    if not (group.preferred or group.ranked or _near(group)):
        return None
    named = list(dict.fromkeys(group.preferred)) or _company(group)
    near = [] if not _by_rank(group, named) else carried(engine.state, engine.profile.topology_levels)
    if not named and not near:
        return None
    near = [key for key in near if key != HOSTNAME and key not in named]
    order = ordered(engine.state, engine.profile.topology_levels, [*named, *near])
    keys = tuple(_above_slices(order, group))
    place = {key: position for position, key in enumerate(keys)}
    important = [key for key in keys if key in named] + [key for key in keys if key not in named]
    return PreferredLevels(keys, tuple(place[key] for key in important)) if keys else None


def _near(group: Demand) -> bool:
    """Whether some of its pods prefer company."""
    for eq_class in group.eq_classes:  # noqa: SIM110 - asked in every decision
        if eq_class.preferred_pod_affinity:
            return True
    return False


def _company(group: Demand) -> list[str]:
    """Label keys of domains that all of the group's pods prefer to share with each other."""
    if not _near(group):
        return []
    found: list[str] | None = None
    for eq_class in group.eq_classes:
        keys = [counter.term.key for _, counter in eq_class.preferred_pod_affinity if counter in eq_class.matched]
        found = keys if found is None else [key for key in found if key in keys]
    return found or []


def _by_rank(group: Demand, named: Sequence[str]) -> bool:
    """Whether neighbouring ranks decide: pods with rules between them have said what they want."""
    if not group.ranked:
        return False
    if isinstance(group, Branch) and not group.slices:
        return False  # each leaf has ranks of its own
    return bool(named) or all(eq_class.is_plain for eq_class in group.eq_classes)


def _above_slices(order: list[str], group: Demand) -> list[str]:
    """Of a group in slices: levels down to that of a slice."""
    if not isinstance(group, Branch) or not group.slices:
        return order
    key = next((child.topology for child in group.children), None)
    return order[: order.index(key) + 1] if key in order else order


def closest(engine: Engine, group: Demand, node_set: NodeSet) -> Iterator[NodeSet]:
    """Node sets within one, those with the fewest domains first, and at last the whole."""
    wanted = preferred_levels(engine, group)
    if wanted is not None:
        seen: set[tuple[int, ...]] = set()
        for chosen, parts in _plans(engine, group, node_set, wanted):
            key = tuple(sorted(chosen.domains))
            if key not in seen:
                seen.add(key)
                yield node_set.narrowed(parts)
    yield node_set


def price(engine: Engine, group: Demand, node_set: NodeSet) -> tuple[int, ...]:
    """What the best set within one costs: fewer domains are less; nothing, if the group prefers nothing."""
    wanted = preferred_levels(engine, group)
    if wanted is None:
        return ()
    best = next(_plans(engine, group, node_set, wanted), None)
    return (1,) if best is None else (0, *best[0].cost(wanted.importance))


def _plans(
    engine: Engine, group: Demand, node_set: NodeSet, wanted: PreferredLevels
) -> Iterator[tuple[Chosen, list[Rows]]]:
    tree = node_set.tree(wanted.keys)
    offer, exact = _offer(engine, group, tree)
    total = sum(group.eq_classes.values())
    for need in _needs(group, total, exact=exact):
        chosen = fewest(offer, need, wanted.importance)
        if chosen is not None and (chosen.domains or offer.used.any()):
            yield chosen, _filled(tree, offer, chosen)


def _filled(tree: Hierarchy, offer: Offer, chosen: Chosen) -> list[Rows]:
    """The rows of a choice in the order in which they are filled: domains in use, then all others but the largest, and
    that one at last, so that what is left over is left in one piece."""
    used = np.flatnonzero(offer.used[-1])
    new = [domain for domain in chosen.domains if not offer.used[-1, domain]]
    last = max(new, key=lambda domain: (int(offer.seats[domain]), domain), default=-1)
    parts = (used, [domain for domain in new if domain != last], [last])
    return [rows for part in parts if len(rows := tree.rows[np.isin(tree.ids[-1], part)])]


def _needs(group: Demand, total: int, *, exact: bool) -> list[int]:
    """Seats for all pods, else for the minimum."""
    least = group.missing if isinstance(group, Leaf) else total
    if exact:
        return list(dict.fromkeys((total, least)))
    return list(dict.fromkeys(-(-need * percent // 100) for need in (total, least) for percent in _ROOMIER))


def _offer(engine: Engine, group: Demand, tree: Hierarchy) -> tuple[Offer, bool]:
    """The narrowest domains of the tree with their seats, and whether those are certain."""
    seats, parts, exact = _seats(engine, group, tree.rows)
    own = tree.ids[-1]
    count = int(own.max(initial=-1)) + 1
    first = np.zeros(count, np.intp)
    first[own[::-1]] = np.arange(len(own))[::-1]
    summed, free = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.add.at(summed, own, seats)
    summed //= parts
    np.add.at(free, own, _free(engine, group, tree.rows))
    used = np.zeros((len(tree.keys), count), np.bool_)
    running = np.isin(tree.rows, np.asarray(list(group.running), np.intp)) if group.running else None
    if running is not None and running.any():
        for level, ids in enumerate(tree.ids):
            used[level] = np.isin(ids[first], ids[running])
    return Offer(tree.ids[:, first], summed, free, used), exact


def _free(engine: Engine, group: Demand, rows: Amounts) -> Amounts:
    """Room per row, in pods of all kinds: what is left behind of a domain that is broken into."""
    return sum((engine.room(eq_class)[rows] for eq_class in group.eq_classes), np.zeros(len(rows), np.int64))


def _seats(engine: Engine, group: Demand, rows: Amounts) -> tuple[Amounts, int, bool]:
    """How many pods of the group each row takes, in parts of a pod, how many parts that are, and whether it is
    certain."""
    counts = group.eq_classes
    if len(counts) == 1:
        ((eq_class, count),) = counts.items()
        room = np.minimum(_room(engine, eq_class)[rows], count)
        if isinstance(group, Branch) and group.slices:
            nested = any(isinstance(child, Branch) for child in group.children)
            return _in_slices(engine, group, rows, room), 1, eq_class.is_plain and not nested
        return room, 1, eq_class.is_plain
    return _by_amount(engine, group, rows), _PARTS, False


def _by_amount(engine: Engine, group: Demand, rows: Amounts) -> Amounts:
    """Of unlike pods: as many as what is free would do for, if they could be cut; in parts of a pod."""
    state = engine.state
    total = sum(group.eq_classes.values())
    takes = np.zeros(len(rows), np.int64)
    asked: dict[int, int] = {}
    for eq_class, count in group.eq_classes.items():
        takes += np.minimum(_room(engine, eq_class)[rows], count)
        for column in eq_class.signature.columns.tolist():
            asked[column] = asked.get(column, 0) + eq_class.signature.ask(column) * count
    seats = np.minimum(takes, total) * _PARTS
    for column, amount in asked.items():
        if amount:
            free = np.maximum(state.alloc[rows, column] - state.used[rows, column], 0)
            share = np.minimum(free, amount) * (total * _PARTS) // amount if amount < _LARGE else None
            if share is None:
                shift = amount.bit_length() - _LARGE.bit_length() + 1
                share = (np.minimum(free, amount) >> shift) * (total * _PARTS) // (amount >> shift)
            seats = np.minimum(seats, share)
    return seats


def _room(engine: Engine, eq_class: EquivalenceClass) -> Amounts:
    """Of pods that keep off each other on nodes, a node takes one."""
    room = engine.room(eq_class)
    apart = any(counter.term.key == HOSTNAME and counter in eq_class.matched for counter in eq_class.pod_anti_affinity)
    return np.minimum(room, 1) if apart else room


def _in_slices(engine: Engine, group: Branch, rows: Amounts, room: Amounts) -> Amounts:
    """Whole slices only: seats of a slice's domain, rounded down, all counted at its first row."""
    key = next((child.topology for child in group.children), None)
    sizes = (sum(len(leaf.pods) + leaf.members for leaf in child.leaves()) for child in group.children)
    size = max(sizes, default=1)
    if key is None or size < 2:
        return room
    codes = engine.state.column(key).codes[rows]
    names, first, where = np.unique(codes, return_index=True, return_inverse=True)
    total = np.zeros(len(names), np.int64)
    np.add.at(total, where, room)
    seats = np.zeros(len(rows), np.int64)
    seats[first] = np.where(names != 0, total // size * size, 0)
    return seats
