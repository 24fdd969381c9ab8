"""The engine: fits and scores per shape, kept warm, and trial placements that can be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import numpy as np

from kohort.place.areas import Area
from kohort.place.between import allowed, near, sized, spread_counts, spread_over
from kohort.place.columns import Amounts, Mask, Rows
from kohort.place.fit import ShapeFit
from kohort.place.pairs import Counts, PairClass
from kohort.place.profile import Profile
from kohort.place.reserve import Reservation, Reservations
from kohort.place.score import FULL, LOWEST, ShapeScore
from kohort.place.shapes import Shape
from kohort.place.state import ClusterState

_FEW: Final = 8  # up to so many pods, looking at all rows again for each is cheaper than looking ahead
_SHAPES: Final = 256  # shapes kept warm


class Chooser(Protocol):
    """Another way to choose rows, and what it counts as room when domains are compared."""

    def seat(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]: ...

    def room(self, kind: PairClass) -> Amounts: ...


class Engine:
    """Placement on one cluster state. Trials change the state; whoever made them keeps or undoes them."""

    def __init__(self, state: ClusterState, profile: Profile | None = None) -> None:
        self.state = state
        self.profile = profile or Profile()
        self.reservations = Reservations()
        self._known: dict[int, tuple[ShapeFit, ShapeScore]] = {}
        self._trail: list[tuple[PairClass, int, int] | tuple[PairClass, Rows, Amounts]] = []
        self.chooser: Chooser | None = None
        self._area: tuple[int, Area] | None = None
        self._expected: list[tuple[PairClass, Rows, Amounts]] = []

    @property
    def area(self) -> Area:
        """The whole cluster, divided by labels as they are now."""
        if self._area is None or self._area[0] != self.state.nodes.end:
            self._area = (self.state.nodes.end, Area(self.state, None))
        return self._area[1]

    def look(self, shape: Shape) -> tuple[ShapeFit, ShapeScore]:
        """Fit and score of a shape, up to date."""
        known = self._known.pop(shape.number, None)
        if known is None:
            if len(self._known) >= _SHAPES:
                del self._known[next(iter(self._known))]  # the one not looked at for longest
            fit = ShapeFit(self.state, shape)
            known = (fit, ShapeScore(self.state, fit, self.profile))
        self._known[shape.number] = known
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

    def put_many(self, kind: PairClass, rows: Rows, counts: Amounts) -> None:
        """Place so many pods on each of the rows (each given once; negative: take away) for now."""
        if kind.counts or kind.shape.ports or kind.shape.claims:
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                self._move(kind, row, count)
        else:
            self.state.take_many(kind.shape, rows, counts)
            self._trail.append((kind, rows, counts))

    def _move(self, kind: PairClass, row: int, count: int) -> None:
        self.state.take(kind.shape, row, count)
        if kind.counts:
            self.state.pairs.place(kind, row, count)
        self._trail.append((kind, row, count))

    def undo(self, mark: int) -> None:
        """Take back everything done since the mark."""
        while len(self._trail) > mark:
            kind, rows, counts = self._trail.pop()
            if isinstance(rows, int):
                if kind.counts:
                    self.state.pairs.place(kind, rows, -int(counts))
                self.state.take(kind.shape, rows, -int(counts))
            else:
                self.state.take_many(kind.shape, rows, -np.asarray(counts))

    @contextmanager
    def choosing(self, chooser: Chooser) -> Iterator[None]:
        """Within, rows are chosen by somebody else."""
        self.chooser = chooser
        try:
            yield
        finally:
            self.chooser = None

    # ---- room kept for others

    @contextmanager
    def honouring(self, owner: str, priority: int) -> Iterator[list[Reservation]]:
        """Within, room kept for other roots of equal or higher priority is taken."""
        mark = self.mark()
        counted = self.reservations.against(owner, priority)
        self._expected = [seat for one in counted for seat in one.seats(self.state)]
        for kind, rows, counts in self._expected:
            self.put_many(kind, rows, counts)
        try:
            yield counted
        finally:
            self._expected = []
            self.undo(mark)

    # ---- many pods of one class

    def seat(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        """Place up to `count` pods of a class on some rows (None: all), best first; where each went, in order."""
        if count <= 0:
            return []
        if self.chooser is not None:
            return self.chooser.seat(kind, rows, count)
        if not kind.is_plain:
            return self._one_by_one(kind, rows, count)
        fit, score = self.look(kind.shape)
        if count <= _FEW:
            return self._few(kind, fit, score, rows, count)
        return self._many(kind, fit, score, rows, count)

    def _few(self, kind: PairClass, fit: ShapeFit, score: ShapeScore, rows: Rows | None, count: int) -> list[int]:
        room = fit.room if rows is None else fit.room[rows]
        scores = np.where(room > 0, score.total(rows), LOWEST)
        taken: list[int] = []
        while len(taken) < count and len(scores):
            place = int(scores.argmax())
            if scores[place] == LOWEST:
                break
            row = place if rows is None else int(rows[place])
            self.put(kind, row)
            taken.append(row)
            if len(taken) < count:
                self.look(kind.shape)
                scores[place] = score.at(row) if fit.room[row] > 0 else LOWEST
        return taken

    def _many(self, kind: PairClass, fit: ShapeFit, score: ShapeScore, rows: Rows | None, count: int) -> list[int]:
        """The same choice as pod by pod, made at once.

        Pod by pod, the row with the highest score for its next pod is taken, the lowest row among equals. So the
        j-th pod of a row comes when no row offers more than the lowest score among its first j: sorting by that
        score, then row, then j gives the order.
        """
        room = fit.room if rows is None else fit.room[rows]
        free = np.flatnonzero(room > 0)
        chosen = free if rows is None else rows[free]
        if not len(chosen):
            return []
        most = np.minimum(room[free], count)
        depth = 2 * -(-count // len(chosen)) + 1
        while True:
            depth = min(depth, int(most.max()))
            scores = score.levels(chosen, depth)
            if score.static is not None:
                scores = scores + score.static[chosen][:, None]
            order = _order(np.minimum.accumulate(scores, axis=1), np.minimum(most, depth), count)
            taken = np.bincount(order, minlength=len(chosen))
            if not ((taken == depth) & (most > depth)).any():
                break
            depth *= 2  # a row took all that was looked ahead: look further
        where = np.flatnonzero(taken)
        self.put_many(kind, chosen[where], taken[where])
        placed: list[int] = chosen[order].tolist()
        return placed

    def _one_by_one(self, kind: PairClass, rows: Rows | None, count: int) -> list[int]:
        """Rules between pods: each placement may change where the next may go."""
        taken: list[int] = []
        while len(taken) < count:
            fit, score = self.look(kind.shape)
            free = self.may(kind, fit)
            row = score.best(free if rows is None else free[rows], rows, self._liking(kind, fit))
            if row is None:
                break
            self.put(kind, row)
            taken.append(row)
        return taken

    def may(self, kind: PairClass, fit: ShapeFit) -> Mask:
        """Rows where one more pod of the class may go now."""
        if kind.is_plain:
            plain: Mask = fit.room > 0
            return plain
        free = allowed(self.state, kind, fit)
        if kind.together and self._expected:
            free &= self._without_expected(kind)
        return free

    def _without_expected(self, kind: PairClass) -> Mask:
        """Where company is found without pods that are only expected: they may never come."""
        place = self.state.pairs.place
        seats = [
            (one, row, count)
            for one, rows, counts in self._expected
            if one.counts
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
        ]
        for one, row, count in seats:
            place(one, row, -count)
        mask = near(self.state, kind)
        for one, row, count in seats:
            place(one, row, count)
        return mask

    def _liking(self, kind: PairClass, fit: ShapeFit) -> Amounts | None:
        """Preferences between pods and preferred spread, each 0..100 times its weight, over nodes that suit."""
        return _plus(self._company(kind, fit), self._spreading(kind, fit))

    def _company(self, kind: PairClass, fit: ShapeFit) -> Amounts | None:
        wished = [counter for counter in kind.matched if counter.wished]
        if not kind.liked and not wished:
            return None
        raw = np.zeros(self.state.rows, np.int64)
        for weight, counter in kind.liked:
            raw += self._by_row(counter.term.key, counter.matching) * weight
        for counter in wished:
            raw += self._by_row(counter.term.key, counter.wishing)
        return _brought(raw, fit.suits, self.profile.pairs)

    def _by_row(self, key: str, per_domain: Counts) -> Amounts:
        codes = self.state.column(key).codes
        return np.where(codes != 0, sized(per_domain, self.state, key)[codes], 0).astype(np.int64)

    def _spreading(self, kind: PairClass, fit: ShapeFit) -> Amounts | None:
        raw: Amounts | None = None
        for spread, counter in zip(kind.shape.spreads, kind.spreads, strict=True):
            if spread.hard:
                continue
            counted = spread_counts(self.state, counter, spread_over(self.state, kind.shape, fit, spread))
            codes = self.state.column(counter.term.key).codes
            without = 0 if spread.lenient else int(counted.max(initial=0)) + 1
            raw = _plus(raw, -np.where(codes != 0, counted[codes], without))
        return None if raw is None else _brought(raw, fit.suits, self.profile.spread)


def _plus(one: Amounts | None, other: Amounts | None) -> Amounts | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _brought(raw: Amounts, suits: Mask, weight: int) -> Amounts | None:
    """To 0..100 between the least and the most of the nodes that suit, times a weight."""
    seen: Iterable[int] = raw[suits].tolist()
    low, high = min(seen, default=0), max(seen, default=0)
    return None if low == high else np.clip(raw - low, 0, high - low) * FULL // (high - low) * weight


def _order(least: Amounts, most: Amounts, count: int) -> Rows:
    """Which row each of the first `count` pods goes to: by score, then row, then place in the row."""
    rows, depth = least.shape
    inside = np.arange(depth) < most[:, None]
    row, place = np.nonzero(inside)
    top = int(least.max(initial=0))
    keys = ((top - least[inside]) * rows + row) * depth + place
    if len(keys) > count:
        keep = np.argpartition(keys, count - 1)[:count]
        keys, row = keys[keep], row[keep]
    ordered: Rows = row[np.argsort(keys)]
    return ordered
