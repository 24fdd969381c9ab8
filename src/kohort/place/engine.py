"""The engine: fits and scores per signature, kept warm, and trial placements that can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from kohort.place.columns import Amounts, Mask, Rows
from kohort.place.fit import SignatureFit
from kohort.place.interpod import Counts, EquivalenceClass
from kohort.place.interpodfilter import allowed, labelled, near, sized, spread_counts, spread_over
from kohort.place.nodesets import NodeSet
from kohort.place.profile import Profile
from kohort.place.reservations import Reservation, Reservations
from kohort.place.score import FULL, LOWEST, SignatureScore
from kohort.place.signatures import PodSignature
from kohort.place.state import ClusterState

_SORTED: Final = 100  # so many rows for each pod are sorted by name before any is chosen, and not after each
_FEW: Final = 8  # up to so many pods or rows, one after the other is cheaper than all at once
_SHAPES: Final = 256  # signatures kept warm


class NodeChooser(Protocol):
    """Another way to choose rows, and what it counts as room when domains are compared."""

    def assume(self, eq_class: EquivalenceClass, rows: Rows | None, count: int) -> list[int]: ...

    def room(self, eq_class: EquivalenceClass) -> Amounts: ...


Trail = list[tuple[EquivalenceClass, int, int] | tuple[EquivalenceClass, Rows, Amounts]]


@dataclass(slots=True)
class SuspendedTrial:
    """A trial that was taken back for now. `usage` and `offers`: how the state was without it."""

    trail: Trail
    chooser: NodeChooser | None
    expected: list[tuple[EquivalenceClass, Rows, Amounts]]
    pause: Callable[[], None] | None
    usage: int
    offers: tuple[int, ...]


class Respecting:
    """Within, room kept for other roots is taken. No generator: every decision is within one."""

    __slots__ = ("_engine", "_kept", "_mark")

    def __init__(self, engine: Engine, owner: str, priority: int) -> None:
        self._engine, self._mark = engine, 0
        self._kept = engine.reservations.against(owner, priority)

    def __enter__(self) -> list[Reservation]:
        self._mark = self._engine.mark()
        if self._kept:
            self._engine.expect(self._kept)
        return self._kept

    def __exit__(self, *_: object) -> None:
        self._engine.expect_none()
        self._engine.undo(self._mark)


class Engine:
    """Placement on one cluster state. Trials change the state; whoever made them keeps or undoes them."""

    def __init__(self, state: ClusterState, profile: Profile | None = None) -> None:
        self.state = state
        self.profile = profile or Profile()
        self.reservations = Reservations()
        self._known: dict[int, tuple[SignatureFit, SignatureScore]] = {}
        self._asked: set[int] = set()  # signatures, since it was tidied
        self._latest = -1  # of the signatures that were asked for
        self._trail: Trail = []
        self.chooser: NodeChooser | None = None
        self.pause: Callable[[], None] | None = None  # called where a trial may be suspended
        self._all_nodes: tuple[int, NodeSet] | None = None
        self._expected: list[tuple[EquivalenceClass, Rows, Amounts]] = []

    @property
    def all_nodes(self) -> NodeSet:
        """The whole cluster, divided by labels as they are now."""
        if self._all_nodes is None or self._all_nodes[0] != self.state.nodes.end:
            self._all_nodes = (self.state.nodes.end, NodeSet(self.state, None))
        return self._all_nodes[1]

    def evaluate(self, signature: PodSignature) -> tuple[SignatureFit, SignatureScore]:
        """Fit and score of a signature, up to date."""
        known = self._of(signature)
        known[1].refresh()
        return known

    def fit(self, signature: PodSignature) -> SignatureFit:
        """Fit alone, up to date."""
        return self._of(signature)[0]

    def _of(self, signature: PodSignature) -> tuple[SignatureFit, SignatureScore]:
        number = signature.number
        if number == self._latest:
            latest = self._known[number]
            latest[0].refresh()
            return latest
        known = self._known.pop(number, None)
        if known is None:
            if len(self._known) >= _SHAPES:
                del self._known[next(iter(self._known))]  # the one not looked at for longest
            fit = SignatureFit(self.state, signature)
            known = (fit, SignatureScore(self.state, fit, self.profile))
        self._known[number], self._latest = known, number
        self._asked.add(number)
        known[0].refresh()
        return known

    def tidy(self) -> int:
        """Forget what nobody has asked for since the last time, and the rules of pods that have gone; how many rules
        those are."""
        self._known = {number: one for number, one in self._known.items() if number in self._asked}
        self._asked.clear()
        self._latest = -1
        return self.state.interpod.tidy()

    def room(self, eq_class: EquivalenceClass) -> Amounts:
        """How many pods of the class each row takes by resources alone: an upper bound."""
        return self.fit(eq_class.signature).room

    def total(self, eq_class: EquivalenceClass) -> int:
        """The same of all rows."""
        return self._of(eq_class.signature)[0].total

    # ---- trials

    def mark(self) -> int:
        return len(self._trail)

    def assume_on(self, eq_class: EquivalenceClass, row: int) -> None:
        """Place a pod for now."""
        self._move(eq_class, row, 1)

    def remove(self, eq_class: EquivalenceClass, row: int) -> None:
        """Take a pod away for now."""
        self._move(eq_class, row, -1)

    def assume_many(self, eq_class: EquivalenceClass, rows: Rows, counts: Amounts) -> None:
        """Place so many pods on each of the rows (each given once; negative: take away) for now."""
        if len(rows) <= _FEW or _is_ruled(eq_class):
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
                self._move(eq_class, row, count)
        else:
            self.state.take_many(eq_class.signature, rows, counts)
            self._trail.append((eq_class, rows, counts))

    def _move(self, eq_class: EquivalenceClass, row: int, count: int) -> None:
        self.state.take(eq_class.signature, row, count)
        if eq_class.counts:
            self.state.interpod.place(eq_class, row, count)
        self._trail.append((eq_class, row, count))

    def undo(self, mark: int) -> None:
        """Take back everything done since the mark."""
        trail, state = self._trail, self.state
        while len(trail) > mark:
            eq_class, rows, counts = trail.pop()
            if isinstance(rows, int):
                if eq_class.counts:
                    state.interpod.place(eq_class, rows, -int(counts))
                state.take(eq_class.signature, rows, -int(counts))
            else:
                state.take_many(eq_class.signature, rows, -np.asarray(counts))

    @contextmanager
    def choosing(self, chooser: NodeChooser) -> Iterator[None]:
        """Within, rows are chosen by somebody else."""
        self.chooser = chooser
        try:
            yield
        finally:
            self.chooser = None

    # ---- trials that let others go first

    def suspend(self) -> SuspendedTrial:
        """Take back all trials until `resume`: meanwhile the state is as if there were none."""
        self._shift(self._trail, -1)
        state = self.state
        kept = SuspendedTrial(self._trail, self.chooser, self._expected, self.pause, state.usage.end, self._offers())
        self._trail, self.chooser, self._expected, self.pause = [], None, [], None
        return kept

    def resume(self, kept: SuspendedTrial) -> bool:
        """The trials again; False, and nothing done, if what they rest on has changed. Pods that have come since then
        are no harm as long as no node holds more than it has, and nobody has rules or ports."""
        if kept.offers != self._offers():
            return False
        changed = kept.usage != self.state.usage.end
        if changed and (self.state.interpod or any(_is_ruled(one[0]) for one in kept.trail)):
            return False
        rows = self._shift(kept.trail, 1)
        if changed and (self.state.used[rows] > self.state.alloc[rows]).any():
            self._shift(kept.trail, -1)
            return False
        self._trail, self.chooser, self._expected, self.pause = kept.trail, kept.chooser, kept.expected, kept.pause
        return True

    def _offers(self) -> tuple[int, ...]:
        """Versions of what nodes are, of rules between pods and of room that is kept."""
        state = self.state
        versions = (state.nodes.end, state.offers, state.interpod.renewals, state.claims.version)
        return (*versions, self.reservations.version)

    def _shift(self, trail: Trail, sign: int) -> Rows:
        """All of a trail at once, class by class; the rows that it is about."""
        sums: dict[EquivalenceClass, Amounts] = {}
        touched = np.zeros(self.state.rows, np.bool_)
        for eq_class, rows, counts in trail:
            if eq_class not in sums:
                sums[eq_class] = np.zeros(self.state.rows, np.int64)
            sums[eq_class][rows] += counts
        for eq_class, per_row in sums.items():
            rows = np.flatnonzero(per_row)
            touched[rows] = True
            if not _is_ruled(eq_class):
                self.state.take_many(eq_class.signature, rows, per_row[rows] * sign)
                continue
            for row in rows.tolist():
                self.state.take(eq_class.signature, row, int(per_row[row]) * sign)
                if eq_class.counts:
                    self.state.interpod.place(eq_class, row, int(per_row[row]) * sign)
        found: Rows = np.flatnonzero(touched)
        return found

    # ---- room kept for others

    def respecting_nominations(self, owner: str, priority: int) -> Respecting:
        """Within, room kept for other roots of equal or higher priority is taken."""
        return Respecting(self, owner, priority)

    def expect(self, kept: Iterable[Reservation]) -> None:
        """Take room that is kept for others, for now; `undo` gives it back."""
        self._expected = [seat for one in kept for seat in self.reservations.assignments(one, self.state)]
        for eq_class, rows, counts in self._expected:
            self.assume_many(eq_class, rows, counts)

    def expect_none(self) -> None:
        self._expected = []

    # ---- many pods of one class

    def assume(self, eq_class: EquivalenceClass, rows: Rows | None, count: int) -> list[int]:
        """Place up to `count` pods of a class on some rows (None: all), best first; where each went, in order."""
        if count <= 0:
            return []
        if self.chooser is not None:
            return self.chooser.assume(eq_class, rows, count)
        if not eq_class.is_plain:
            return self._one_by_one(eq_class, rows, count)
        fit, score = self.evaluate(eq_class.signature)
        if count <= _FEW:
            return self._few(eq_class, fit, score, rows, count)
        return self._many(eq_class, fit, score, rows, count)

    def _few(
        self, eq_class: EquivalenceClass, fit: SignatureFit, score: SignatureScore, rows: Rows | None, count: int
    ) -> list[int]:
        if rows is not None and len(rows) <= _SORTED * count:
            rows, in_order = self.state.by_name(rows), True
        else:
            in_order = rows is None
        room = fit.room if rows is None else fit.room[rows]
        scores = np.where(room > 0, score.total(rows), LOWEST)
        if rows is None and (named := self.state.named) is not None:
            scores, rows = scores[named], named  # of equals the first by name is meant
        taken: list[int] = []
        while len(taken) < count and len(scores):
            place = int(scores.argmax()) if in_order else self.state.foremost(scores, rows)
            if scores[place] == LOWEST:
                break
            row = place if rows is None else int(rows[place])
            self.assume_on(eq_class, row)
            taken.append(row)
            if len(taken) < count:  # it alone has changed, and by one pod
                scores[place] = score.now_at(row) if fit.room[row] > taken.count(row) else LOWEST
        return taken

    def _many(
        self, eq_class: EquivalenceClass, fit: SignatureFit, score: SignatureScore, rows: Rows | None, count: int
    ) -> list[int]:
        """The same choice as pod by pod, made at once.

        Pod by pod, the row with the highest score for its next pod is taken, the first by name among equals. So the
        j-th pod of a row comes when no row offers more than the lowest score among its first j: sorting by that
        score, then row, then j gives the order.
        """
        room = fit.room if rows is None else fit.room[rows]
        if rows is None and (named := self.state.named) is not None:
            free = named[(room > 0)[named]]
        else:
            free = np.flatnonzero(room > 0)
            if rows is not None and (ranks := self.state.ranks) is not None:
                free = free[np.argsort(ranks[rows[free]])]
        if len(free) > 2 * count:
            free = free[_foremost(score.total(free if rows is None else rows[free]), count)]
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
        self.assume_many(eq_class, chosen[where], taken[where])
        placed: list[int] = chosen[order].tolist()
        return placed

    def _one_by_one(self, eq_class: EquivalenceClass, rows: Rows | None, count: int) -> list[int]:
        """Rules between pods: each placement may change where the next may go."""
        taken: list[int] = []
        while len(taken) < count:
            fit, score = self.evaluate(eq_class.signature)
            free = self.feasible(eq_class, fit)
            row = score.best(free if rows is None else free[rows], rows, self._liking(eq_class, fit))
            if row is None:
                break
            self.assume_on(eq_class, row)
            taken.append(row)
        return taken

    def feasible(self, eq_class: EquivalenceClass, fit: SignatureFit) -> Mask:
        """Rows where one more pod of the class may go now."""
        if eq_class.is_plain:
            plain: Mask = fit.room > 0
            return plain
        free = allowed(self.state, eq_class, fit)
        if eq_class.pod_affinity and self._expected:
            free &= self._without_expected(eq_class)
        return free

    def _without_expected(self, eq_class: EquivalenceClass) -> Mask:
        """Where company is found without pods that are only expected: they may never come."""
        place = self.state.interpod.place
        assignments = [
            (one, row, count)
            for one, rows, counts in self._expected
            if one.counts
            for row, count in zip(rows.tolist(), counts.tolist(), strict=True)
        ]
        for one, row, count in assignments:
            place(one, row, -count)
        mask = near(self.state, eq_class)
        for one, row, count in assignments:
            place(one, row, count)
        return mask

    def _liking(self, eq_class: EquivalenceClass, fit: SignatureFit) -> Amounts | None:
        """Preferences between pods and preferred spread, each 0..100 times its weight, over nodes that suit."""
        return _plus(self._company(eq_class, fit), self._spreading(eq_class, fit))

    def _company(self, eq_class: EquivalenceClass, fit: SignatureFit) -> Amounts | None:
        preferring = [counter for counter in eq_class.matched if counter.preferring]
        if not eq_class.preferred_pod_affinity and not preferring:
            return None
        raw = np.zeros(self.state.rows, np.int64)
        for weight, counter in eq_class.preferred_pod_affinity:
            raw += self._by_row(counter.term.key, counter.matching) * weight
        for counter in preferring:
            raw += self._by_row(counter.term.key, counter.preference)
        return _brought(raw, fit.suits, self.profile.pod_affinity)

    def _by_row(self, key: str, per_domain: Counts) -> Amounts:
        codes = self.state.column(key).codes
        return np.where(codes != 0, sized(per_domain, self.state, key)[codes], 0).astype(np.int64)

    def _spreading(self, eq_class: EquivalenceClass, fit: SignatureFit) -> Amounts | None:
        raw: Amounts | None = None
        having: Mask | None = None
        for spread, counter in zip(eq_class.signature.spread_constraints, eq_class.spread_constraints, strict=True):
            if spread.hard:
                continue
            if having is None:
                having = labelled(self.state, eq_class.signature, hard=False)
            counted = spread_counts(self.state, counter, spread_over(self.state, having, fit, spread))
            codes = self.state.column(counter.term.key).codes
            without = 0 if spread.lenient else int(counted.max(initial=0)) + 1
            raw = _plus(raw, -np.where(codes != 0, counted[codes], without))
        return None if raw is None else _brought(raw, fit.suits, self.profile.spread)


def _is_ruled(eq_class: EquivalenceClass) -> bool:
    """Whether more than amounts is counted when its pods come to a row."""
    return bool(eq_class.counts or eq_class.signature.ports or eq_class.signature.claims)


def _plus(one: Amounts | None, other: Amounts | None) -> Amounts | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _brought(raw: Amounts, suits: Mask, weight: int) -> Amounts | None:
    """To 0..100 between the least and the most of the nodes that suit, times a weight."""
    seen: Iterable[int] = raw[suits].tolist()
    low, high = min(seen, default=0), max(seen, default=0)
    return None if low == high else np.clip(raw - low, 0, high - low) * FULL // (high - low) * weight


def _foremost(scores: Amounts, count: int) -> Mask:
    """Of rows in their order, by their scores for a first pod, those that any of so many pods may go to: there are at
    most twice as many. Whoever offers less than the last of the best has nothing that is better than theirs."""
    last = np.partition(scores, -count)[-count]
    taken: Mask = scores > last
    taken[np.flatnonzero(scores == last)[:count]] = True
    return taken


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
