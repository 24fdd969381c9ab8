"""Placing the pods of one leaf on a given area."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from kohort.place.areas import Area
from kohort.place.demand import Leaf, Pod
from kohort.place.engine import Engine
from kohort.place.pairs import PairClass

Order = Sequence[Pod]


def seat_pods(engine: Engine, pods: Order, area: Area, count: int, least: int) -> dict[str, int]:
    """Place up to `count` of the pods, in their order; a pod that finds no node is passed over.

    Given up as soon as `least` are out of reach.
    """
    placed: dict[str, int] = {}
    spare = len(pods) - least
    for (kind, nominated), run in groupby(pods, lambda pod: (pod.kind, pod.nominated)):
        members = list(run)[: count - len(placed)]
        keys = [pod.key for pod in members]
        taken: list[int] = []
        if nominated is not None and area.holds(nominated):
            taken = engine.seat(kind, np.array([nominated]), len(keys))
        taken += engine.seat(kind, area.rows, len(keys) - len(taken))
        placed.update(zip(keys, taken, strict=False))
        spare -= len(keys) - len(taken)
        if len(placed) >= count or spare < 0:
            break
    return placed


def seat_leaf(engine: Engine, leaf: Leaf, area: Area, count: int, least: int) -> dict[str, int] | None:
    """Place up to `count` pods of a leaf, at least `least` of them; None (and nothing placed) if that cannot be found.

    Plain pods of one class: found if it exists. Several classes: the order decides, so several orders are tried and
    the one that places most is kept. Pods that want their own company: the first decides where, so that each domain
    is tried.
    """
    if least and bound(engine, leaf, area) < least:
        return None
    placed = _in_some_order(engine, leaf, area, count, least)
    if placed is not None or not least:
        return placed
    for key in _company(leaf):
        parts = area.split(key)
        for position in range(len(parts)):
            part = parts.area(position)
            if bound(engine, leaf, part) >= least:
                placed = _in_some_order(engine, leaf, part, count, least)
                if placed is not None:
                    return placed
    return None


def _company(leaf: Leaf) -> list[str]:
    """Label keys of domains that the leaf's pods want to share with their own kind, where none of it is yet."""
    wanted = (counter for kind in leaf.kinds for counter in kind.together if counter in kind.matched)
    return list(dict.fromkeys(counter.term.key for counter in wanted if not counter.total))


def _in_some_order(engine: Engine, leaf: Leaf, area: Area, count: int, least: int) -> dict[str, int] | None:
    best: Order | None = None
    most = -1
    mark = engine.mark()
    for order in orders(leaf, packing=engine.chooser is not None):
        placed = seat_pods(engine, order, area, count, least)
        if len(placed) >= min(count, len(leaf.pods)):
            return placed
        if len(placed) > most:
            best, most = order, len(placed)
        engine.undo(mark)
    if best is None or most < least:
        return None
    return seat_pods(engine, best, area, count, least)


def bound(engine: Engine, leaf: Leaf, area: Area) -> int:
    """How many pods of the leaf could fit at the most: room class by class, as if each had the nodes for itself."""
    total = 0
    for kind, count in leaf.kinds.items():
        total += min(int(np.minimum(area.of(engine.room(kind)), count).sum()), count)
    return total


def orders(leaf: Leaf, *, packing: bool = False) -> Iterator[Order]:
    """As queued; then the hardest to place first; then the smallest first, which places most of them.

    Where the queue's order has no say (`packing`), it is left out.
    """
    if len(leaf.kinds) < 2 or not packing:
        yield leaf.pods
    if len(leaf.kinds) > 1:
        weigh = {kind: size(kind) for kind in leaf.kinds}
        yield sorted(leaf.pods, key=lambda pod: weigh[pod.kind], reverse=True)
        yield sorted(leaf.pods, key=lambda pod: weigh[pod.kind])


def size(kind: PairClass) -> tuple[int, ...]:
    """What makes a class hard to place: amounts, then rules. Different for different classes."""
    shape = kind.shape
    rules = len(shape.apart) + len(shape.together) + len(shape.spreads) + len(shape.selector) + len(shape.claims)
    return (*(int(value) for value in shape.weight), rules, int(shape.amounts.sum()), -shape.number)
