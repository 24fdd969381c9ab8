"""Which of the nodes that fit is best? Whole numbers only: least (or most) allocated, balanced, preferred terms."""

from __future__ import annotations

from math import isqrt

import numpy as np

from kohort.apimachinery.labels import tolerates
from kohort.place.columns import Amounts, Mask, Rows
from kohort.place.fit import SignatureFit, term_rows
from kohort.place.profile import Profile
from kohort.place.signatures import SCORED, PodSignature
from kohort.place.state import ClusterState

__all__ = ["FULL", "Profile", "SignatureScore"]
FULL = 100
LOWEST = -(1 << 62)  # of a row that is not in question
_FEW = 20  # up to so many rows, plain numbers are faster than arrays
_FINE = 10_000  # parts of a whole in which balance is measured


class _Scored:
    """One scored resource: its column, what the signature adds to it, and its weight."""

    __slots__ = ("ask", "column", "counted", "weighed", "weight")

    def __init__(self, state: ClusterState, signature: PodSignature, name: str, weight: int) -> None:
        self.column = state.resources.number(name)
        self.ask = signature.ask(self.column)
        self.weight = weight
        # cpu and memory count for something even if a pod asks for none; others are taken as they are.
        self.weighed = list(SCORED).index(name) if name in SCORED else None
        self.counted = self.ask if self.weighed is None else int(signature.weight[self.weighed])

    def terms(self) -> tuple[int, int, int, int, int, int]:
        """Its column, its places in a row's loads (as it is, as it counts), what is added to both, its weight."""
        place = self.column + len(SCORED)
        before = place if self.weighed is None else self.weighed
        return self.column, place, before, self.counted, self.ask, self.weight


class SignatureScore:
    """Scores of all rows for one signature, kept beside its fit. A row that has no room is scored when somebody asks:
    it may be chosen only by whoever makes room there, and is looked at again anyway once it has some."""

    __slots__ = ("_fit", "_nodes", "_profile", "_scored", "_state", "_terms", "_unscored", "_usage", "load", "static")

    def __init__(self, state: ClusterState, fit: SignatureFit, profile: Profile) -> None:
        self._state = state
        self._fit = fit
        self._profile = profile
        self._scored = [_Scored(state, fit.signature, name, weight) for name, weight in profile.weights.items()]
        self._terms = [one.terms() for one in self._scored]
        self._nodes = self._usage = -1  # how far the changes of the cluster were followed
        self._unscored: set[int] = set()  # rows without room that have changed
        self.load: Amounts = np.zeros(0, np.int64)
        self.static: Amounts | None = None  # None: the same everywhere

    def refresh(self) -> None:
        """Catch up with the cluster, after the fit did. Not every time: most who ask for room want no scores."""
        state = self._state
        nodes_end, usage_end = state.nodes.end, state.usage.end
        if self._usage == usage_end and self._nodes == nodes_end and len(self.load) == len(state.alive):
            return
        state.widen()
        nodes, usage = state.nodes.since(self._nodes), state.usage.since(self._usage)
        if self._nodes != nodes_end:
            self.static = self._static()
        self._nodes, self._usage = nodes_end, usage_end
        if nodes is None or usage is None or len(self.load) != state.rows:
            self.load = self.levels(np.arange(state.rows), 1)[:, 0]
            self._unscored.clear()
            return
        rows = usage if not nodes else list(dict.fromkeys((*nodes, *usage)))
        if self._fit.signature.claims:  # claims give room to rows that did not change
            self._rate(rows)
        elif len(rows) <= _FEW:
            for row in rows:
                if self._fit.room[row]:
                    self.load[row] = self.of_row(row)
                    self._unscored.discard(row)
                else:
                    self._unscored.add(row)
        else:
            self._unscored.update(rows)
            rows = [row for row, room in zip(rows, self._fit.room[rows].tolist(), strict=True) if room]
            self._unscored.difference_update(rows)
            self._rate(rows)

    def _rate(self, rows: list[int]) -> None:
        if len(rows) <= _FEW:
            for row in rows:
                self.load[row] = self.of_row(row)
        else:
            self.load[rows] = self.levels(np.array(rows), 1)[:, 0]

    def levels(self, rows: Rows, pods: int) -> Amounts:
        """Load scores of rows for the first, second, ... pod that would come to each: one line per row."""
        state, profile = self._state, self._profile
        shares = np.zeros((len(rows), pods), np.int64)
        weights = np.zeros((len(rows), 1), np.int64)
        parts: list[Amounts] = []
        there: list[Mask] = []
        step = np.arange(1, pods + 1)
        for one in self._scored:
            have = state.alloc[rows, one.column][:, None]
            exists, safe = have > 0, np.maximum(have, 1)
            used = state.used[rows, one.column][:, None]
            before = used if one.weighed is None else state.weighed[rows, one.weighed][:, None]
            taken = np.minimum(before + one.counted * step, have)
            share = (taken if profile.strategy == "most" else have - taken) * FULL // safe
            shares += np.where(exists, share * one.weight, 0)
            weights += np.where(exists, one.weight, 0)
            if profile.balanced:
                parts.append(np.where(exists, np.minimum(used + one.ask * step, have) * _FINE // safe, 0))
                there.append(exists)
        load = shares // np.maximum(weights, 1) * profile.allocated
        return load + _evenness(parts, there) * profile.balanced if profile.balanced else load

    def of_row(self, row: int) -> int:
        """The load score of one row; the same arithmetic as for many, without arrays."""
        state, most = self._state, self._profile.strategy == "most"
        shares, weights, parts = 0, 0, []
        offered, loads = state.alloc[row].tolist(), state.loads[row].tolist()
        for column, place, before, counted, ask, weight in self._terms:
            have = offered[column]
            if have <= 0:
                continue
            taken, used = loads[before] + counted, loads[place] + ask
            left = have - taken if taken < have else 0
            shares += (have - left if most else left) * FULL // have * weight
            weights += weight
            parts.append((used if used < have else have) * _FINE // have)
        load = shares // max(weights, 1) * self._profile.allocated
        return load + _evenness_of(parts) * self._profile.balanced if self._profile.balanced else load

    def _static(self) -> Amounts | None:
        """Preferred node affinity and taints that are merely disliked, each brought to 0..100 over suited nodes."""
        signature, state, suits = self._fit.signature, self._state, self._fit.suits
        disliked = any(taint.effect == "PreferNoSchedule" for taints in state.taints for taint in taints)
        if not signature.preferred and not disliked:
            return None
        total = np.zeros(state.rows, np.int64)
        if signature.preferred:
            total += _scaled(_liking(signature, state), suits) * self._profile.affinity
        if disliked:
            total += (FULL - _scaled(_dislike(signature, state), suits)) * self._profile.taints
        return total

    def total(self, rows: Rows | None, extra: Amounts | None = None) -> Amounts:
        """Scores of some rows, None for all; of those without room any number."""
        total = self.load if rows is None else self.load[rows]
        for more in (self.static, extra):
            if more is not None:
                total = total + (more if rows is None else more[rows])
        return total

    def now_at(self, row: int) -> int:
        """The score of one row as it is now, whoever has caught up."""
        return self.of_row(row) + (0 if self.static is None else int(self.static[row]))

    def best(self, free: Mask, rows: Rows | None, extra: Amounts | None = None) -> int | None:
        """The best of the free rows (`free` goes with `rows`), the first by name among equals; None if none is free.
        Free is what whoever asks says, whether it has room now or not."""
        if not len(free):
            return None
        if self._unscored:
            self._rate(list(self._unscored))
            self._unscored.clear()
        place = self._state.foremost(np.where(free, self.total(rows, extra), LOWEST), rows)
        if not free[place]:
            return None
        return place if rows is None else int(rows[place])


def _evenness(parts: list[Amounts], there: list[Mask]) -> Amounts:
    """100 less the standard deviation of the used parts of the resources that a node has."""
    count = np.maximum(sum(one.astype(np.int64) for one in there), 1)
    mean = sum(parts) // count
    variance = sum(np.where(exists, (part - mean) ** 2, 0) for part, exists in zip(parts, there, strict=True)) // count
    # The root of a number below 2**53 is rounded correctly: its whole part is exact.
    even: Amounts = (_FINE - np.sqrt(variance).astype(np.int64)) // FULL
    return even


def _evenness_of(parts: list[int]) -> int:
    if len(parts) == 2:  # cpu and memory: the most frequent question of all
        first, second = parts
        mean = (first + second) // 2
        return (_FINE - isqrt(((first - mean) ** 2 + (second - mean) ** 2) // 2)) // FULL
    if not parts:
        return FULL
    mean = sum(parts) // len(parts)
    return (_FINE - isqrt(sum((part - mean) ** 2 for part in parts) // len(parts))) // FULL


def _liking(signature: PodSignature, state: ClusterState) -> Amounts:
    raw = np.zeros(state.rows, np.int64)
    for weight, term in signature.preferred:
        raw += term_rows(state, term) * weight
    return raw


def _dislike(signature: PodSignature, state: ClusterState) -> Amounts:
    counts = [
        sum(t.effect == "PreferNoSchedule" and not tolerates(signature.tolerations, t.as_json()) for t in taints)
        for taints in state.taints
    ]
    raw: Amounts = np.array(counts, np.int64)[state.tainted]
    return raw


def _scaled(raw: Amounts, suits: Mask) -> Amounts:
    """To 0..100, where 100 is the most that a node in question has."""
    top = int(raw[suits].max(initial=0))
    scaled: Amounts = np.minimum(raw * FULL // top, FULL) if top > 0 else np.zeros_like(raw)
    return scaled
