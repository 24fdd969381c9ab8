"""The engine: fits and scores per shape, kept warm, and trial placements that can be taken back."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from kohort.place.between import allowed
from kohort.place.columns import Amounts, Rows
from kohort.place.fit import ShapeFit
from kohort.place.pairs import PairClass
from kohort.place.score import Profile, ShapeScore
from kohort.place.shapes import Shape
from kohort.place.state import ClusterState

_STEP = 1 << 12  # above every score
_FIRST = _STEP << 12
_FEW = 8  # up to so many pods, looking at all rows again for each is cheaper than a heap


class Engine:
    """Placement on one cluster state. Trials change the state; whoever made them keeps or undoes them."""

    def __init__(self, state: ClusterState, profile: Profile | None = None) -> None:
        self.state = state
        self.profile = profile or Profile()
        self._known: dict[int, tuple[ShapeFit, ShapeScore]] = {}
        self._trail: list[tuple[PairClass, int, int]] = []
        self._preferred: dict[PairClass, tuple[Amounts, Amounts]] = {}

    def look(self, shape: Shape) -> tuple[ShapeFit, ShapeScore]:
        """Fit and score of a shape, up to date."""
        known = self._known.get(shape.number)
        if known is None:
            fit = ShapeFit(self.state, shape)
            known = self._known[shape.number] = (fit, ShapeScore(self.state, fit, self.profile))
        fit, score = known
        score.refresh(fit.refresh())
        return known

    def room(self, kind: PairClass) -> Amounts:
        """How many pods of the class each row takes by resources alone: an upper bound."""
        return self.look(kind.shape)[0].room

    # ---- trials

    def mark(self) -> int:
        return len(self._trail)

    def put(self, kind: PairClass, row: int) -> None:
        """Place a pod for now."""
        self._move(kind, row, 1)

    def lift(self, kind: PairClass, row: int) -> None:
        """Take a pod away for now."""
        self._move(kind, row, -1)

    def _move(self, kind: PairClass, row: int, count: int) -> None:
        self.state.take(kind.shape, row, count)
        self.state.pairs.place(kind, row, count)
        self._trail.append((kind, row, count))

    def undo(self, mark: int) -> None:
        """Take back everything done since the mark."""
        while len(self._trail) > mark:
            kind, row, count = self._trail.pop()
            self.state.pairs.place(kind, row, -count)
            self.state.take(kind.shape, row, -count)

    @contextmanager
    def preferring(self, wishes: dict[PairClass, tuple[Amounts, Amounts]]) -> Iterator[None]:
        """Within, per class: nodes with free room (so many pods each) come first, then those with the lowest cost."""
        self._preferred = wishes
        try:
            yield
        finally:
            self._preferred = {}

    # ---- many pods of one class

    def seat(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        """Place up to `count` pods of a class on some rows (None: all), best first; where each went, in order."""
        if kind in self._preferred:
            return self._free_first(kind, rows, count)
        if not kind.is_plain:
            return self._one_by_one(kind, rows, count)
        fit, score = self.look(kind.shape)
        if count <= _FEW:
            return self._few(kind, fit, score, rows, count)
        return self._many(kind, fit, score, rows, count)

    def _few(self, kind: PairClass, fit: ShapeFit, score: ShapeScore, rows: Rows | None, count: int) -> list[int]:
        taken: list[int] = []
        while len(taken) < count:
            row = score.best((fit.room if rows is None else fit.room[rows]) > 0, rows)
            if row is None:
                break
            self.put(kind, row)
            taken.append(row)
            self.look(kind.shape)
        return taken

    def _many(self, kind: PairClass, fit: ShapeFit, score: ShapeScore, rows: Rows | None, count: int) -> list[int]:
        room = fit.room if rows is None else fit.room[rows]
        free = np.flatnonzero(room > 0)
        chosen = free if rows is None else rows[free]
        heap = list(zip((-score.total(rows)[free]).tolist(), chosen.tolist(), strict=True))
        heapq.heapify(heap)
        left = dict(zip(chosen.tolist(), room[free].tolist(), strict=True))
        taken: list[int] = []
        while heap and len(taken) < count:
            _, row = heap[0]
            self.put(kind, row)
            taken.append(row)
            left[row] -= 1
            if left[row]:
                fresh = score.of_row(row) + (0 if score.static is None else int(score.static[row]))
                heapq.heapreplace(heap, (-fresh, row))
            else:
                heapq.heappop(heap)
        return taken

    def _one_by_one(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        """Rules between pods: each placement may change where the next may go."""
        taken: list[int] = []
        while len(taken) < count:
            fit, score = self.look(kind.shape)
            free = allowed(self.state, kind, fit)
            row = score.best(free if rows is None else free[rows], rows, self._liking(kind))
            if row is None:
                break
            self.put(kind, row)
            taken.append(row)
        return taken

    def _free_first(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        """Where room is left without anybody going, then where the fewest must go."""
        left, cost = self._preferred[kind]
        taken: list[int] = []
        while len(taken) < count:
            fit, score = self.look(kind.shape)
            free = fit.room > 0 if kind.is_plain else allowed(self.state, kind, fit)
            wish = np.where(left > 0, _FIRST, _FIRST // 2 - cost * _STEP)
            row = score.best(free if rows is None else free[rows], rows, wish)
            if row is None:
                break
            self.put(kind, row)
            left[row] -= 1
            taken.append(row)
        return taken

    def _liking(self, kind: PairClass) -> Amounts | None:
        """Preferred pod affinity and soft spread, 0..100 times the profile's weight."""
        if not kind.liked and not any(not spread.hard for spread in kind.shape.spreads):
            return None
        raw = np.zeros(self.state.rows, np.int64)
        for weight, counter in kind.liked:
            codes = self.state.column(counter.term.key).codes
            counter.fits(self.state.column(counter.term.key).size)
            raw += np.where(codes != 0, counter.matching[codes].astype(np.int64) * weight, 0)
        for spread, counter in zip(kind.shape.spreads, kind.spreads, strict=True):
            if not spread.hard:
                codes = self.state.column(counter.term.key).codes
                counter.fits(self.state.column(counter.term.key).size)
                raw -= np.where(codes != 0, counter.matching[codes].astype(np.int64), int(counter.matching.max()) + 1)
        low, high = int(raw.min()), int(raw.max())
        return None if low == high else (raw - low) * 100 // (high - low) * self.profile.pairs
