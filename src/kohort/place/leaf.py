"""Placing the pods of one leaf on a given set of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from kohort.place.columns import Rows
from kohort.place.demand import Leaf, Outcome, Pod, Reason
from kohort.place.engine import Engine
from kohort.place.pairs import PairClass

Order = Sequence[Pod]


def seat_pods(engine: Engine, pods: Order, rows: Rows | None, count: int) -> dict[str, int]:
    """Place up to `count` of the pods, in their order; a pod that finds no node is passed over."""
    placed: dict[str, int] = {}
    for kind, run in groupby(pods, lambda pod: pod.kind):
        members = list(run)
        taken = engine.seat(kind, rows, min(len(members), count - len(placed)))
        placed.update(zip((pod.key for pod in members), taken, strict=False))
        if len(placed) >= count:
            break
    return placed


def seat_leaf(engine: Engine, leaf: Leaf, rows: Rows | None, count: int, least: int) -> dict[str, int] | None:
    """Place up to `count` pods of a leaf, at least `least` of them; None (and nothing placed) if that cannot be found.

    Pods of one class: found if it exists. Several classes: the order decides, so several orders are tried and the one
    that places most is kept.
    """
    if bound(engine, leaf, rows) < least:
        return None
    best: Order | None = None
    most = -1
    mark = engine.mark()
    for order in orders(leaf.pods):
        placed = seat_pods(engine, order, rows, count)
        if len(placed) >= min(count, len(leaf.pods)):
            return placed
        if len(placed) > most:
            best, most = order, len(placed)
        engine.undo(mark)
    if best is None or most < least:
        return None
    return seat_pods(engine, best, rows, count)


def bound(engine: Engine, leaf: Leaf, rows: Rows | None) -> int:
    """How many pods of the leaf could fit at the most: room class by class, as if each had the nodes for itself."""
    counts: dict[PairClass, int] = {}
    for pod in leaf.pods:
        counts[pod.kind] = counts.get(pod.kind, 0) + 1
    total = 0
    for kind, count in counts.items():
        room = engine.room(kind)
        total += min(int(np.minimum(room if rows is None else room[rows], count).sum()), count)
    return total


def orders(pods: Order) -> Iterator[Order]:
    """As queued; then the hardest to place first; then the smallest first, which places most of them."""
    yield pods
    kinds = {pod.kind for pod in pods}
    if len(kinds) > 1:
        weigh = {kind: _size(kind) for kind in kinds}
        yield sorted(pods, key=lambda pod: weigh[pod.kind], reverse=True)
        yield sorted(pods, key=lambda pod: weigh[pod.kind])


def _size(kind: PairClass) -> tuple[int, ...]:
    shape = kind.shape
    rules = len(shape.apart) + len(shape.together) + len(shape.spreads) + len(shape.selector)
    return (*(int(value) for value in shape.weight), rules, int(shape.amounts.sum()), -shape.number)


def why_not(engine: Engine, leaf: Leaf, rows: Rows | None) -> Outcome:
    """A leaf that did not fit: the cause that most of it failed for, with numbers."""
    pods = len(leaf.pods)
    if len(leaf.running) + pods < leaf.need:
        text = f"{len(leaf.running) + pods} of {leaf.need} members exist"
        return Outcome(False, reason=Reason.WAITING_FOR_MEMBERS, detail=text)
    matching, free = 0, 0
    for kind in {pod.kind for pod in leaf.pods}:
        fit, _ = engine.look(kind.shape)
        matching = max(matching, int((fit.suits if rows is None else fit.suits[rows]).sum()))
        free = max(free, int((fit.room if rows is None else fit.room[rows]).sum()))
    if not matching:
        nodes = int((engine.state.alive if rows is None else engine.state.alive[rows]).sum())
        return Outcome(False, reason=Reason.NO_MATCHING_NODE, detail=f"none of {nodes} nodes suits its pods")
    if bound(engine, leaf, rows) < leaf.missing:
        return _short(engine, leaf, rows, matching, free)
    text = f"room for {free} on {matching} nodes, but not for {leaf.missing} of its pods together"
    return Outcome(False, reason=Reason.FRAGMENTED, detail=text)


def _short(engine: Engine, leaf: Leaf, rows: Rows | None, matching: int, free: int) -> Outcome:
    """Too little room: is the total too small, or is it there in pieces too small for a pod?"""
    shape, state = leaf.pods[0].kind.shape, engine.state
    fit, _ = engine.look(shape)
    suited = np.flatnonzero(fit.suits) if rows is None else rows[fit.suits[rows]]
    where = np.ix_(suited, shape.columns)
    left = (state.alloc[where] - state.used[where]).clip(min=0).sum(axis=0)
    ratio = left // np.maximum(shape.amounts, 1)
    scarce = int(ratio.argmin())
    name = state.resources.names[int(shape.columns[scarce])]
    needed = leaf.missing
    if int(ratio.min()) < needed:
        total = needed * int(shape.amounts[scarce])
        text = f"{needed} pods need {total} {name}, {matching} nodes have {int(left[scarce])} free"
        return Outcome(False, reason=Reason.INSUFFICIENT, detail=text)
    text = f"{matching} nodes have {int(left[scarce])} {name} free, in pieces that take {free} of {needed} pods"
    return Outcome(False, reason=Reason.FRAGMENTED, detail=text)
