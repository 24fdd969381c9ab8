"""Which of the nodes that fit is best? Whole numbers only: least (or most) allocated, balanced, preferred terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kohort.place.columns import Amounts, Mask, Rows
from kohort.place.fit import ShapeFit
from kohort.place.selectors import node_meets_term, tolerates
from kohort.place.shapes import SCORED, Shape
from kohort.place.state import ClusterState

FULL = 100


@dataclass(frozen=True, slots=True)
class Profile:
    """What is weighed, and how much. The defaults are those of kube-scheduler's default profile."""

    strategy: Literal["least", "most"] = "least"
    resources: tuple[str, ...] = tuple(SCORED)
    allocated: int = 1
    balanced: int = 1
    affinity: int = 2
    taints: int = 3
    pairs: int = 2


class ShapeScore:
    """Scores of all rows for one shape, kept beside its fit."""

    __slots__ = ("_columns", "_fit", "_nodes", "_profile", "_state", "_weighed", "load", "static")

    def __init__(self, state: ClusterState, fit: ShapeFit, profile: Profile) -> None:
        self._state = state
        self._fit = fit
        self._profile = profile
        self._columns = np.array([state.resources.number(name) for name in profile.resources], np.intp)
        self._weighed = np.array([list(SCORED).index(name) for name in profile.resources], np.intp)
        self._nodes = -1
        self.load: Amounts = np.zeros(0, np.int64)
        self.static: Amounts | None = None  # None: the same everywhere

    def refresh(self, rows: list[int] | None) -> None:
        """After the fit was refreshed: the same rows, None for all."""
        if self._nodes != self._state.nodes.end:
            self._nodes = self._state.nodes.end
            self.static = self._static()
        if rows is None or len(self.load) != self._state.rows:
            self.load = np.zeros(self._state.rows, np.int64)
            self._update(np.arange(self._state.rows))
        elif len(rows) == 1:
            self.load[rows[0]] = self.of_row(rows[0])
        elif rows:
            self._update(np.array(rows))

    def _update(self, rows: Amounts) -> None:
        have = self._state.alloc[np.ix_(rows, self._columns)]
        taken = self._state.weighed[np.ix_(rows, self._weighed)] + self._fit.shape.weight[self._weighed]
        safe = np.maximum(have, 1)
        taken = np.where(have > 0, np.minimum(taken, have), 0)
        share = taken if self._profile.strategy == "most" else np.where(have > 0, have - taken, 0)
        allocated = (share * FULL // safe).sum(axis=1) // np.maximum((have > 0).sum(axis=1), 1)
        parts = taken * 10_000 // safe
        spread = (parts.max(axis=1) - parts.min(axis=1)) // FULL if len(self._columns) > 1 else 0
        self.load[rows] = allocated * self._profile.allocated + (FULL - spread // 2) * self._profile.balanced

    def of_row(self, row: int) -> int:
        """The load score of one row; the same arithmetic as for many, without arrays."""
        parts, shares, counted = [], 0, 0
        for column, weighed in zip(self._columns, self._weighed, strict=True):
            have = int(self._state.alloc[row, column])
            if have <= 0:
                parts.append(0)
                continue
            taken = min(int(self._state.weighed[row, weighed]) + int(self._fit.shape.weight[weighed]), have)
            shares += (taken if self._profile.strategy == "most" else have - taken) * FULL // have
            parts.append(taken * 10_000 // have)
            counted += 1
        spread = (max(parts) - min(parts)) // FULL if len(parts) > 1 else 0
        allocated = shares // max(counted, 1)
        return allocated * self._profile.allocated + (FULL - spread // 2) * self._profile.balanced

    def _static(self) -> Amounts | None:
        """Preferred node affinity and taints that are merely disliked, each brought to 0..100 over all nodes."""
        shape, state = self._fit.shape, self._state
        disliked = any(t.effect == "PreferNoSchedule" for facts in state.facts if facts for t in facts.taints)
        if not shape.preferred and not disliked:
            return None
        total = np.zeros(state.rows, np.int64)
        if shape.preferred:
            total += _scaled(_liking(shape, state)) * self._profile.affinity
        if disliked:
            total += (FULL - _scaled(_dislike(shape, state))) * self._profile.taints
        return total

    def total(self, rows: Rows | None, extra: Amounts | None = None) -> Amounts:
        """Scores of some rows, None for all."""
        total = self.load if rows is None else self.load[rows]
        for more in (self.static, extra):
            if more is not None:
                total = total + (more if rows is None else more[rows])
        return total

    def best(self, free: Mask, rows: Rows | None, extra: Amounts | None = None) -> int | None:
        """The best of the rows that are free (`free` goes with `rows`), the lowest among equals; None if none is."""
        if not len(free):
            return None
        place = int(np.where(free, self.total(rows, extra), -1).argmax())
        if not free[place]:
            return None
        return place if rows is None else int(rows[place])


def _liking(shape: Shape, state: ClusterState) -> Amounts:
    raw = np.zeros(state.rows, np.int64)
    for row, facts in enumerate(state.facts):
        if facts is not None:
            raw[row] = sum(w for w, term in shape.preferred if node_meets_term(term, facts.labels, facts.name))
    return raw


def _dislike(shape: Shape, state: ClusterState) -> Amounts:
    raw = np.zeros(state.rows, np.int64)
    for row, facts in enumerate(state.facts):
        for taint in facts.taints if facts else ():
            if taint.effect == "PreferNoSchedule" and not tolerates(shape.tolerations, taint.as_json()):
                raw[row] += 1
    return raw


def _scaled(raw: Amounts) -> Amounts:
    top = int(raw.max(initial=0))
    scaled: Amounts = raw * FULL // top if top > 0 else raw
    return scaled
