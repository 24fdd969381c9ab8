"""Room held for a gang that has failed for long, so that small roots do not take each freed piece away from it.

One root at a time holds room: the first by priority and age among those whose patience has ended. It holds what is
free of its demand, and more as more is freed, against roots of equal or lower priority. It holds nothing if it would
not fit an empty cluster, and no longer than a limit; then others have their turn for as long.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np

from kohort.place.columns import Amounts, Mask
from kohort.place.demand import Demand, PendingPod
from kohort.place.engine import Engine
from kohort.place.interpod import EquivalenceClass
from kohort.place.reservations import Reservation
from kohort.scheduler.queue import QueuedRoot
from kohort.scheduler.queueinghint import QueueingHint, fits_empty, whole
from kohort.scheduler.settings import SchedulerSettings


class BackfillReservation:
    """Who holds room, since when."""

    def __init__(self, engine: Engine, settings: SchedulerSettings, freed: Callable[[], None] = lambda: None) -> None:
        self._engine = engine
        self._kept = engine.reservations
        self._settings = settings
        self._freed = freed
        self._entry: QueuedRoot | None = None
        self._demand: Demand | None = None
        self._since = 0.0
        self._resting: dict[str, float] = {}  # root -> until when nothing is held for it

    @property
    def root(self) -> str | None:
        return self._entry.key if self._entry is not None else None

    def failed(self, entry: QueuedRoot, hint: QueueingHint, now: float) -> None:
        """A root did not fit: is it time to hold room for it?"""
        if self._settings.patience <= 0 or entry.failing_since is None:
            return
        if now - entry.failing_since < self._settings.patience or self._resting.get(entry.key, 0.0) > now:
            return
        if self._entry is not None and self._entry.key != entry.key and self._entry.order < entry.order:
            return
        if sum(len(leaf.pods) for leaf in hint.demand.leaves()) < 2 or not fits_empty(self._engine, hint.demand):
            return
        if self._entry is None or self._entry.key != entry.key:
            self.release(now)
            self._since = now
        self._entry, self._demand = entry, hint.demand
        self.grow(now)

    def grow(self, now: float) -> None:
        """Something was freed: hold what is of use, as long as the time limit lasts."""
        if self._entry is None or self._demand is None:
            return
        if self.is_over(now):
            self._resting[self._entry.key] = now + self._settings.hold_limit
            self.release(now)
            return
        kept = self._kept.get(self._entry.key)
        if kept is not None and not kept.backfill:
            return  # nominated: it has what it needs
        with self._engine.respecting_nominations(self._entry.key, self._entry.priority):
            assignments = self._seize(self._demand)
        self._kept.put(Reservation(self._entry.key, self._entry.priority, assignments, backfill=True))

    def resting(self, now: float) -> set[str]:
        """Roots that have had room held, for which none is held again so soon."""
        return {root for root, until in self._resting.items() if until > now}

    def ends(self) -> float | None:
        """When whoever holds room has held it for long enough."""
        return None if self._entry is None else self._since + self._settings.hold_limit

    def is_over(self, now: float) -> bool:
        ends = self.ends()
        return ends is not None and ends <= now

    def release(self, now: float, root: str | None = None) -> None:
        """It landed, went away, or had its time."""
        if self._entry is None or (root is not None and root != self._entry.key):
            return
        kept = self._kept.get(self._entry.key)
        if kept is not None and kept.backfill:
            self._kept.drop(self._entry.key)
            self._freed()
        self._entry = self._demand = None
        self._resting = {key: until for key, until in self._resting.items() if until > now}

    # ---- inside

    def _seize(self, demand: Demand) -> dict[str, tuple[PendingPod, str]]:
        """As many pods as find room now, inside the domain that could hold most of them."""
        engine, state = self._engine, self._engine.state
        mark = engine.mark()
        assignments: dict[str, tuple[PendingPod, str]] = {}
        node_set = self._candidate_nodes(demand)
        runs = list(_runs(demand))
        for number, (eq_class, pods) in enumerate(runs, 1):
            room = engine.room(eq_class)
            rows = list(_roomiest(room if node_set is None else np.where(node_set, room, 0), len(pods)))
            for pod, row in zip(pods, rows, strict=False):
                assignments[pod.key] = (pod, state.node(row).name)
            if number < len(runs):  # for those that follow
                taken = Counter(rows)
                engine.assume_many(eq_class, np.array(list(taken), np.intp), np.array(list(taken.values()), np.int64))
        engine.undo(mark)
        return assignments

    def _candidate_nodes(self, demand: Demand) -> Mask | None:
        """The nodes to hold: of a group with a constraint, the domain that is largest for it. None: all."""
        state = self._engine.state
        key, eq_classes = demand.topology, demand.eq_classes
        if key is None or not eq_classes:
            return None
        column = state.column(key)
        sums = np.zeros(column.size, np.int64)
        for eq_class in eq_classes:
            np.add.at(sums, column.codes, whole(self._engine, eq_class))
        sums[0] = -1
        running = list(demand.running)
        best = int(column.codes[running[0]]) if running else int(sums.argmax())
        mask: Mask = state.alive & (column.codes == best)
        return mask


def _roomiest(room: Amounts, count: int) -> Iterator[int]:
    """So many times the row that has the most room then, the first of equal ones."""
    free = np.flatnonzero(room > 0)
    free = free[np.argsort(-room[free], kind="stable")[:count]]
    heap = list(zip((-room[free]).tolist(), free.tolist(), strict=True))  # in order, which is a heap
    for _ in range(count):
        if not heap:
            return
        left, row = heap[0]
        yield row
        if left < -1:
            heapq.heapreplace(heap, (left + 1, row))
        else:
            heapq.heappop(heap)


def _runs(demand: Demand) -> Iterator[tuple[EquivalenceClass, list[PendingPod]]]:
    """Pods of one class after another: each takes one from the room of its row. Not so of pods with claims, which may
    share a device: they come one by one."""
    for leaf in demand.leaves():
        for _, found in groupby(leaf.pods, key=lambda pod: id(pod.eq_class)):
            pods = list(found)
            if pods[0].eq_class.signature.claims:
                yield from ((pod.eq_class, [pod]) for pod in pods)
            else:
                yield pods[0].eq_class, pods
