"""Placing the pods of one leaf on a given node set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

import numpy as np

from kohort.place.demand import Leaf, PendingPod
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass, TermCounter
from kohort.place.interpodfilter import sized
from kohort.place.nodesets import NodeSet
from kohort.place.thrift import prices, thriftiest

Order = Sequence[PendingPod]
_ALIKE: Final = attrgetter("eq_class", "nominated")  # pods that are placed together


def assume_pods(engine: Engine, pods: Order, node_set: NodeSet, count: int, least: int) -> dict[str, int]:
    """Place up to `count` of the pods, in their order; a pod that finds no node is passed over.

    Given up as soon as `least` are out of reach.
    """
    placed: dict[str, int] = {}
    spare = len(pods) - least
    for (eq_class, nominated), run in groupby(pods, _ALIKE):
        if engine.pause is not None:
            engine.pause()
        members = list(run)[: count - len(placed)]
        keys = [pod.key for pod in members]
        taken: list[int] = []
        if nominated is not None and node_set.holds(nominated):
            taken = engine.assume(eq_class, np.array([nominated]), len(keys))
        for rows in node_set.filled:
            taken += engine.assume(eq_class, rows, len(keys) - len(taken))
        placed.update(zip(keys, taken, strict=False))
        spare -= len(keys) - len(taken)
        if len(placed) >= count or spare < 0:
            break
    return placed


def assume_leaf(engine: Engine, leaf: Leaf, node_set: NodeSet, count: int, least: int) -> dict[str, int] | None:
    """Place up to `count` pods of a leaf, at least `least` of them; None (and nothing placed) if that cannot be found.

    Plain pods of one class: found if it exists. Several classes: the order decides, so several orders are tried and
    the one that places most is kept. Pods that want their own company: the first decides where, so that each domain
    is tried.
    """
    if least and bound(engine, leaf, node_set) < least:
        return None
    placed = _in_some_order(engine, leaf, node_set, count, least)
    if placed is not None or not least:
        return placed
    for key in _company(leaf):
        parts = node_set.split(key)
        for position in range(len(parts)):
            part = parts.node_set(position)
            if bound(engine, leaf, part) >= least:
                placed = _in_some_order(engine, leaf, part, count, least)
                if placed is not None:
                    return placed
    return None


def _company(leaf: Leaf) -> list[str]:
    """Label keys of domains that the leaf's pods want to share with their own kind, where none of it is yet."""
    wanted = (
        counter for eq_class in leaf.eq_classes for counter in eq_class.pod_affinity if counter in eq_class.matched
    )
    return list(dict.fromkeys(counter.term.key for counter in wanted if not counter.total))


def _in_some_order(engine: Engine, leaf: Leaf, node_set: NodeSet, count: int, least: int) -> dict[str, int] | None:
    best: Order | None = None
    most = -1
    mark = engine.mark()
    for order in _orders(engine, leaf, count):
        placed = assume_pods(engine, order, node_set, count, least)
        if len(placed) >= min(count, len(leaf.pods)):
            return placed
        if len(placed) > most:
            best, most = order, len(placed)
        engine.undo(mark)
    if best is None or most < least:
        return None
    return assume_pods(engine, best, node_set, count, least)


def _orders(engine: Engine, leaf: Leaf, count: int) -> Iterator[Order]:
    """Where room is scarce and not all pods are needed, the thriftiest first: others need what they leave."""
    packing = engine.chooser is not None
    if count < len(leaf.pods) and any(pod.nominated is not None for pod in leaf.pods):
        yield _nominated_first(engine, leaf)
    if packing and count < len(leaf.pods) and len(leaf.eq_classes) > 1:
        known = prices(engine, leaf.eq_classes)
        yield thriftiest(leaf, known, count)[::-1]
    yield from orders(leaf, packing=packing)


def _nominated_first(engine: Engine, leaf: Leaf) -> Order:
    """Whoever was told a node that is free by now, before those whose nodes are not: these would take the others'."""
    left: dict[tuple[EquivalenceClass, int], int] = {}
    seated: list[PendingPod] = []
    rest: list[PendingPod] = []
    for pod in leaf.pods:
        row = pod.nominated
        room = 0 if row is None else left.setdefault((pod.eq_class, row), int(engine.room(pod.eq_class)[row]))
        (seated if room > 0 else rest).append(pod)
        if row is not None and room > 0:
            left[pod.eq_class, row] = room - 1
    return [*seated, *rest]


def bound(engine: Engine, leaf: Leaf, node_set: NodeSet) -> int:
    """How many pods of the leaf could fit at the most: room class by class, as if each had the nodes for itself."""
    takes = {eq_class: _takes(engine, eq_class, node_set, count) for eq_class, count in leaf.eq_classes.items()}
    total = sum(takes.values())
    for counter in apart(leaf):
        own = [eq_class for eq_class in leaf.eq_classes if _keeps_apart(eq_class, counter)]
        together = sum(takes[eq_class] for eq_class in own)
        most = sum(separate(engine, leaf, node_set, counter))
        total = min(total, sum(takes.values()) - together + min(together, most))
    return total


def _takes(engine: Engine, eq_class: EquivalenceClass, node_set: NodeSet, count: int) -> int:
    """How many of so many pods of one class: either some node takes all of them, or the sum is what counts."""
    if node_set.rows is None:
        return min(engine.total(eq_class), count)
    return min(int(np.minimum(node_set.of(engine.room(eq_class)), count).sum()), count)


def apart(leaf: Leaf) -> list[TermCounter]:
    """Anti-affinity rules by which pods of the leaf keep off each other."""
    found: dict[TermCounter, None] = {}
    for eq_class in leaf.eq_classes:
        for counter in eq_class.pod_anti_affinity:
            if counter in eq_class.matched:
                found[counter] = None
    return list(found)


def _keeps_apart(eq_class: EquivalenceClass, counter: TermCounter) -> bool:
    return counter in eq_class.pod_anti_affinity and counter in eq_class.matched


def separate(engine: Engine, leaf: Leaf, node_set: NodeSet, counter: TermCounter) -> tuple[int, int]:
    """How many of the pods that keep off each other fit at the most: domains of the rule that take one, and pods on
    nodes that are in no domain."""
    state, key = engine.state, counter.term.key
    codes = state.column(key).codes
    codes = codes if node_set.rows is None else codes[node_set.rows]
    room = np.zeros(len(codes), np.int64)
    for eq_class, count in leaf.eq_classes.items():
        if _keeps_apart(eq_class, counter):
            room += np.minimum(node_set.of(engine.room(eq_class)), count)
    held = sized(counter.matching, state, key)[codes] > 0
    domains = np.unique(codes[(room > 0) & (codes != 0) & ~held])
    return len(domains), int(room[codes == 0].sum())


def orders(leaf: Leaf, *, packing: bool = False) -> Iterator[Order]:
    """As queued; then the hardest to place first; then the smallest first, which places most of them.

    Where the queue's order has no say (`packing`), it is left out.
    """
    if len(leaf.eq_classes) < 2 or not packing:
        yield leaf.pods
    if len(leaf.eq_classes) > 1:
        weigh = {eq_class: size(eq_class) for eq_class in leaf.eq_classes}
        yield sorted(leaf.pods, key=lambda pod: weigh[pod.eq_class], reverse=True)
        yield sorted(leaf.pods, key=lambda pod: weigh[pod.eq_class])


def size(eq_class: EquivalenceClass) -> tuple[int, ...]:
    """What makes a class hard to place: amounts, then rules. Different for different classes."""
    signature = eq_class.signature
    rules = (
        len(signature.pod_anti_affinity)
        + len(signature.pod_affinity)
        + len(signature.spread_constraints)
        + len(signature.selector)
        + len(signature.claims)
    )
    return (*(int(value) for value in signature.weight), rules, int(signature.amounts.sum()), -signature.number)
