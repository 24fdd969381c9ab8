"""What a failed root was missing: the certificate by which the queue knows when to try again.

Room by resources and labels is an upper bound of what can be placed. As long as even that is too small, another
attempt is not worth its cost. Where rules between pods or preemption play a part, any gain counts.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from kohort.place.columns import Amounts
from kohort.place.demand import Demand, Leaf
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass
from kohort.place.reservations import Reservation


@dataclass(frozen=True, slots=True)
class QueueingHint:
    """Roots that lack the same are equal."""

    signature: Hashable
    priority: int
    preempts: bool
    ruled: bool  # rules between pods have a say
    demand: Demand = field(compare=False, repr=False)
    known: int = field(init=False, compare=False, repr=False)  # its hash: it is a key, asked for at every gain

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", hash((self.signature, self.priority, self.preempts, self.ruled)))

    def __hash__(self) -> int:
        return self.known


def queueing_hint(demand: Demand, priority: int, *, preempts: bool) -> QueueingHint:
    ruled = any(not eq_class.is_plain for eq_class in demand.eq_classes)
    return QueueingHint(_signature(demand), priority, preempts, ruled, demand)


def may_fit_now(engine: Engine, hint: QueueingHint, lowest: int | None, root: str) -> bool:
    """Whether it may be met now, for this root. `lowest`: the lowest priority of a pod on a node."""
    if hint.ruled or (hint.preempts and lowest is not None and lowest < hint.priority):
        return True
    if not _some(engine, hint.demand) or not _enough(engine, hint.demand):
        return False
    if not engine.reservations.against(root, hint.priority):
        return True
    with engine.respecting_nominations(root, hint.priority):
        return _enough(engine, hint.demand)


class Waking:
    """Answers for many roots after one gain, as `may_fit_now` does. Room kept for others is taken out once for all
    that have to respect the same, not for each of them; within `with`, nothing else may touch the engine."""

    def __init__(self, engine: Engine, lowest: int | None) -> None:
        self._engine, self._lowest = engine, lowest
        self._respected: list[Reservation] = []
        self._within: AbstractContextManager[object] | None = None

    def __enter__(self) -> Waking:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def may_fit(self, hint: QueueingHint, root: str) -> bool:
        demand, kept = hint.demand, self._engine.reservations.against(root, hint.priority)
        if not kept or hint.ruled or not isinstance(demand, Leaf) or not demand.missing:
            self._leave()
            return may_fit_now(self._engine, hint, self._lowest, root)
        if hint.preempts and self._lowest is not None and self._lowest < hint.priority:
            return True
        if self._within is None or self._respected != kept:
            self._leave()
            self._within, self._respected = self._engine.respecting_nominations(root, hint.priority), kept
            self._within.__enter__()
        return _enough(self._engine, demand)

    def _leave(self) -> None:
        within, self._within = self._within, None
        if within is not None:
            within.__exit__(None, None, None)


def _some(engine: Engine, demand: Demand) -> bool:
    """Whether any pod of it finds room: of a group that has its minimum that is all that can be asked."""
    if isinstance(demand, Leaf) and demand.missing:
        return True  # which is more than some
    return any(engine.room(eq_class).any() for eq_class in demand.eq_classes)


def _signature(group: Demand) -> Hashable:
    if isinstance(group, Leaf):
        counts = tuple(sorted((id(eq_class), count) for eq_class, count in group.eq_classes.items()))
        return (group.minimum, group.topology, tuple(sorted(group.running)), counts)
    return (group.minimum, group.topology, tuple(_signature(child) for child in group.children))


def _enough(engine: Engine, group: Demand) -> bool:
    """Every group on the way could reach its minimum if it had the room for itself."""
    if not isinstance(group, Leaf):
        return sum(_enough(engine, child) for child in group.children) >= group.need
    if not group.missing:
        return True
    if not group.pods:
        return False
    counts = group.eq_classes
    if group.topology is None or group.running:
        found = 0
        for eq_class, count in counts.items():
            found += min(engine.total(eq_class), count)
        return found >= group.missing
    total: Amounts | int = 0
    for eq_class, count in counts.items():
        total = total + np.minimum(_by_domain(engine, engine.room(eq_class), group.topology), count)
    return int(np.max(total, initial=0)) >= group.missing


def whole(engine: Engine, eq_class: EquivalenceClass) -> Amounts:
    """How many pods of the class each node would take if it were empty."""
    return engine.fit(eq_class.signature).whole()


def fits_empty(engine: Engine, demand: Demand) -> bool:
    """Whether it would fit a cluster without pods, by resources and labels: if not, nobody's going would help."""
    if not isinstance(demand, Leaf):
        return sum(fits_empty(engine, child) for child in demand.children) >= demand.need
    if not demand.pods:
        return not demand.missing
    total: Amounts | int = 0
    for eq_class, count in demand.eq_classes.items():
        free = whole(engine, eq_class)
        by = free.sum() if demand.topology is None or demand.running else _by_domain(engine, free, demand.topology)
        total = total + np.minimum(by, count)
    return int(np.max(total, initial=0)) >= max(demand.missing, 1)


def placements(engine: Engine, demand: Demand) -> tuple[int, int] | None:
    """Of a group without groups below: how many domains there are, and how many may take its minimum.

    The second number is by room alone; kube-scheduler tries each domain and counts what it finds.
    """
    if not isinstance(demand, Leaf):
        return None
    if demand.topology is None or demand.running:
        return 1, int(_enough(engine, demand))
    column = engine.state.column(demand.topology)
    there = np.zeros(column.size, np.bool_)
    there[column.codes[engine.state.alive]] = True
    total = np.zeros(column.size - 1, np.int64)
    for eq_class, count in demand.eq_classes.items():
        total += np.minimum(_by_domain(engine, engine.room(eq_class), demand.topology), count)
    return int(there[1:].sum()), int((there[1:] & (total >= max(demand.missing, 1))).sum())


def _by_domain(engine: Engine, room: Amounts, key: str) -> Amounts:
    column = engine.state.column(key)
    sums = np.zeros(column.size, np.int64)
    np.add.at(sums, column.codes, room)
    return sums[1:]
