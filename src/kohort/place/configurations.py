"""Groups to domains by configurations: which groups a domain can take together, and one configuration for each domain.

All that a domain might take is counted up by a few measures (what its nodes can hold of pods at this price and at
that). There may be many thousands, so only those are looked at that help (column generation): what a group is worth
follows from the groups that no configuration covers yet, and the domains offer what is worth most. Seen by many
measures, and then packed in fact, what a domain does not take is not offered again, nor anything with more.

That gives configurations in parts. To have whole ones, one after the other is settled, the surest first, and domains
may offer others for what is left. If that ends with a group that nobody takes, HiGHS is asked for a choice among all
that were offered; then it begins anew, in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from kohort.place.effort import Effort
from kohort.place.ejection import FULL, Takes
from kohort.place.highs import SolverStatus, run
from kohort.place.levelfit import Flags, Floats, Places
from kohort.place.masterproblem import MasterProblem
from kohort.place.offers import DomainOffers

_PART: Final = 1e-6
_WHOLE: Final = 0.999
_ROUNDS: Final = 400  # of asking domains for more
_AT_ONCE: Final = 3  # configurations that a domain offers in a round
_WORK: Final = 40  # looks at the clock of HiGHS while it chooses
_DIVES: Final = 30
_WRONG: Final = 4  # configurations that a dive may have to leave out
_NOISE: Final = 0.1


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
        free: dict[tuple[int, bytes], list[int]] = {}  # equal groups that may go to the same domains
        for group in np.flatnonzero(~fixed).tolist():
            free.setdefault((names[group], allowed[group].tobytes()), []).append(group)
        self._members = list(free.values())
        self._asks = np.array([asks[some[0]] for some in self._members]).reshape(len(self._members), asks.shape[1])
        self._may = np.array([allowed[some[0]] for some in self._members], bool).reshape(len(self._members), len(room))
        self._master = MasterProblem(len(room), [len(some) for some in self._members])
        self._columns: list[tuple[int, tuple[int, ...]]] = []  # domain and sorts
        self._sure: set[int] = set()
        self._offers: list[DomainOffers] = []
        self._dice = np.random.default_rng(0)

    def settled(self) -> Places | None:
        """A domain for every group; None if none was found."""
        if (self._room < 0).any():
            return None
        most = np.array([len(some) for some in self._members])
        for domain, room in enumerate(self._room):
            if self._expired():
                return None
            self._offers.append(DomainOffers(room, self._asks, most, self._may[:, domain], self._dice))
        if self._covered() is None:
            return None
        for dive in range(_DIVES):
            chosen = self._dived(dive) or self._chosen()
            if chosen is not None or self._expired():
                return None if chosen is None else self._places(chosen)
        return None

    # ---- configurations in parts

    def _covered(self) -> Floats | None:
        """How much of each configuration, so that every group is covered by such as domains take in fact; None if that
        cannot be, or time is up."""
        for _ in range(_ROUNDS):
            missing, values = self._master.solve()
            if self._expired():
                return None
            if missing > _PART:
                if not self._priced():
                    return None
            elif not self._refused(np.flatnonzero(values > _PART).tolist()):
                return values
        return None

    def _priced(self) -> bool:
        """Domains offer what is worth most; whether anybody did."""
        costs, worth = self._master.prices()
        any_new = False
        for domain, offers in enumerate(self._offers):
            for sorts in offers.best(worth, float(costs[domain]), _AT_ONCE):
                self._master.add(domain, sorts)
                self._columns.append((domain, sorts))
                any_new = True
        return any_new

    def _refused(self, columns: Sequence[int]) -> bool:
        """Whether a domain does not take one of these in fact."""
        wrong = [one for one in columns if one not in self._sure and not self._holds(one)]
        for column in wrong:
            domain, sorts = self._columns[column]
            self._offers[domain].refuse(sorts)
            for other, (where, more) in enumerate(self._columns):
                if where == domain and not Counter(sorts) - Counter(more):
                    self._master.bound(other, 0.0, 0.0)
        return bool(wrong)

    def _holds(self, column: int) -> bool:
        domain, sorts = self._columns[column]
        some = [self._members[sort][place] for sort, count in Counter(sorts).items() for place in range(count)]
        if not self._takes(domain, (*self._at(domain), *some)):
            return False
        self._sure.add(column)
        return True

    def _at(self, domain: int) -> list[int]:
        return [group for group, home in self._homes.items() if home == domain]

    # ---- whole ones

    def _dived(self, dive: int) -> list[int] | None:
        """One after the other, the surest first (later dives see that with some noise). One that would leave a group
        without cover is left out."""
        settled: list[int] = []
        barred: list[int] = []
        found: list[int] | None = None
        while found is None and len(barred) <= _WRONG and (values := self._covered()) is not None:
            values[settled] = 0.0
            part = np.flatnonzero((values > _PART) & (values < _WHOLE))
            if not len(part):
                found = [*settled, *np.flatnonzero(values >= _WHOLE).tolist()]
                break
            surest = int(part[(values[part] * np.exp(self._dice.normal(0, _NOISE * dive, len(part)))).argmax()])
            self._master.bound(surest, 1.0, 1.0)
            if self._covered() is not None:
                settled.append(surest)
            else:
                self._master.bound(surest, 0.0, 0.0)
                barred.append(surest)
        for column in (*settled, *barred):
            self._master.bound(column, 0.0, 1.0)
        return found

    def _chosen(self) -> list[int] | None:
        """Of those that were offered so far, by HiGHS."""
        for _ in range(_ROUNDS):
            status, values = run(self._master.program(), Effort(solver_work=_WORK, expired=self._expired))
            if status is not SolverStatus.FOUND or self._expired():
                return None
            columns = np.flatnonzero(values > _WHOLE).tolist()
            if not self._refused(columns):
                return columns
        return None

    def _places(self, chosen: list[int]) -> Places:
        places = np.zeros(len(self._allowed), np.intp)
        for group, home in self._homes.items():
            places[group] = home
        waiting = [list(some) for some in self._members]
        for column in chosen:
            domain, sorts = self._columns[column]
            for sort in sorts:
                if waiting[sort]:  # offered more often than it is there
                    places[waiting[sort].pop()] = domain
        return places
