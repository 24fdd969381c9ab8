"""Groups to domains by configurations: which groups a domain can take together, and one configuration for each domain.

All that a domain might take is counted up by many measures at once (what its nodes can hold of pods at this price and
at that), which leaves little that it does not take in fact. Which configurations have every group once is a question
for HiGHS; each that it chooses is asked for, and what a domain does not take is not offered again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kohort.place.effort import Effort
from kohort.place.ejection import FULL, Takes
from kohort.place.highs import Program, SolverStatus, run
from kohort.place.levelfit import Flags, Floats, Places
from kohort.place.patterns import Which

_STATES: Final = 250_000  # configurations of a domain that are counted up
_FEW: Final = 4  # measures by which they are counted up; those that leave least empty are looked at by all
_KEPT: Final = 3000
_OFFERED: Final = 400  # of a domain
_PART: Final = 1e-6
_ROUNDS: Final = 60
_UNSURE: Final = 5  # configurations nobody has asked for yet that a choice may have beside those it must


@dataclass(slots=True)
class _Offer:
    """What a domain might take beside the groups that must be there: sorts of groups, and what it leaves empty."""

    domain: int
    sorts: tuple[int, ...]
    waste: float
    sure: bool = False  # it was asked, and does


class Configurations:
    """`asks`: group × measure, the first is its price; `room`: domain × measure; `names`: equal for equal groups."""

    def __init__(
        self,
        asks: Floats,
        room: Floats,
        allowed: Flags,
        names: Sequence[int],
        takes: Takes,
        expired: Callable[[], bool],
    ) -> None:
        self._takes, self._expired, self._allowed = takes, expired, allowed
        fixed = allowed.sum(axis=1) == 1
        self._homes = {int(group): int(allowed[group].argmax()) for group in np.flatnonzero(fixed)}
        self._room = room * FULL
        for group, domain in self._homes.items():
            self._room[domain] -= asks[group]
        self._free: dict[tuple[int, bytes], list[int]] = {}  # equal groups that may go to the same domains
        for group in np.flatnonzero(~fixed).tolist():
            self._free.setdefault((names[group], allowed[group].tobytes()), []).append(group)
        self._members = list(self._free.values())
        self._asks = np.array([asks[some[0]] for some in self._members]).reshape(len(self._members), asks.shape[1])
        self._may = np.array([allowed[some[0]] for some in self._members], bool).reshape(len(self._members), len(room))

    def settled(self) -> Places | None:
        """A domain for every group; None if none was found, or there are too many configurations to look at."""
        offers = self._offers()
        if offers is None:
            return None
        chosen = self._chosen([one for some in offers for one in some])
        return None if chosen is None else self._places(chosen)

    def _offers(self) -> list[list[_Offer]] | None:
        """Per domain, those first that leave least of it empty."""
        found = []
        for domain in range(len(self._room)):
            own = self._counted(domain)
            if own is None or self._expired():
                return None
            found.append(own)
        return found

    def _counted(self, domain: int) -> list[_Offer] | None:
        """All that a domain might take, one group more at a time."""
        room, asks = self._room[domain], self._asks[:, :_FEW]
        if (room < 0).any():
            return None
        most = np.array([len(some) for some in self._members])
        sorts, left = np.zeros((1, 0), np.intp), room[None, :_FEW]
        found, seen = [_Offer(domain, (), float(room[0]))], 0
        while len(sorts):
            last = sorts[:, -1] if sorts.shape[1] else np.zeros(len(sorts), np.intp)
            which, more = self._next(left, last, domain)
            seen += len(which)
            if seen > _STATES:
                return None
            sorts, left = np.column_stack([sorts[which], more]), left[which] - asks[more]
            enough = (sorts == more[:, None]).sum(axis=1) <= most[more]
            sorts, left = sorts[enough], left[enough]
            best = np.argsort(left[:, 0], kind="stable")[:_KEPT]
            fits = best[(self._asks[sorts[best]].sum(axis=1) <= room).all(axis=1)]
            found += [_Offer(domain, tuple(sorts[one].tolist()), float(left[one, 0])) for one in fits.tolist()]
        return sorted(found, key=lambda one: (one.waste, one.sorts))[:_OFFERED]

    def _next(self, left: Floats, last: Which, domain: int) -> tuple[Which, Which]:
        """Which may take one sort more, and which sort: none that comes before those it has."""
        fits = np.zeros((len(left), len(self._asks)), bool)
        for sort in np.flatnonzero(self._may[:, domain]).tolist():
            fits[:, sort] = (last <= sort) & (left >= self._asks[sort, :_FEW]).all(axis=1)
        which, more = np.nonzero(fits)
        return which, more

    # ---- one for each domain

    def _chosen(self, offers: list[_Offer]) -> list[_Offer] | None:
        """In parts first, which is soon said and shows which are worth to be asked for; then one for each."""
        parts = True
        for _ in range(_ROUNDS):
            status, values = run(self._program(offers, parts=parts), _effort(self._expired), slack=_UNSURE)
            if status is not SolverStatus.FOUND or self._expired():
                return None
            chosen = [one for one, value in zip(offers, values.tolist(), strict=True) if value > _PART]
            new = [one for one in chosen if not one.sure]
            wrong = [one for one in new if not self._holds(one)]
            if not wrong and not parts:
                return chosen
            parts = parts and bool(new)
            offers = [one for one in offers if not any(_has(one, other) for other in wrong)]
        return None

    def _program(self, offers: list[_Offer], *, parts: bool) -> Program:
        """Every domain has one at the most, and every sort is there as often as there are groups of it."""
        rows: list[list[tuple[int, int]]] = [[] for _ in range(len(self._room) + len(self._members))]
        for column, offer in enumerate(offers):
            rows[offer.domain].append((column, 1))
            for sort, count in Counter(offer.sorts).items():
                rows[len(self._room) + sort].append((column, count))
        wanted = [float(len(some)) for some in self._members]
        return Program(
            np.ones(len(offers)),
            np.cumsum([0, *(len(row) for row in rows)]),
            np.array([column for row in rows for column, _ in row], np.int64),
            np.array([count for row in rows for _, count in row], float),
            np.array([*[-np.inf] * len(self._room), *wanted]),
            np.array([*[1.0] * len(self._room), *[np.inf] * len(wanted)]),
            cost=np.array([0.0 if one.sure else 1.0 for one in offers]),
            continuous=np.full(len(offers), parts),
        )

    def _holds(self, offer: _Offer) -> bool:
        some = [self._members[sort][place] for sort, count in Counter(offer.sorts).items() for place in range(count)]
        offer.sure = self._takes(offer.domain, (*self._at(offer.domain), *some))
        return offer.sure

    def _at(self, domain: int) -> list[int]:
        return [group for group, home in self._homes.items() if home == domain]

    def _places(self, chosen: list[_Offer]) -> Places:
        places = np.zeros(len(self._allowed), np.intp)
        for group, home in self._homes.items():
            places[group] = home
        waiting = [list(some) for some in self._members]
        for offer in chosen:
            for sort in offer.sorts:
                if waiting[sort]:  # offered more often than it is there
                    places[waiting[sort].pop()] = offer.domain
        return places


def _has(offer: _Offer, other: _Offer) -> bool:
    """Whether an offer has all that another has."""
    return offer.domain == other.domain and not Counter(other.sorts) - Counter(offer.sorts)


def _effort(expired: Callable[[], bool]) -> Effort:
    return Effort(solver_work=1 << 30, expired=expired)
