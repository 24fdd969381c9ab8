"""Few groups to few domains: every way, the largest group first, as long as each domain takes what it has so far.

A domain that does not take some groups does not take more either, so most ways end early. If all were looked at, that
there is none is a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kohort.place.ejection import FULL, Takes
from kohort.place.levelfit import LevelFit, Places


class Exhaustive:
    """One level: `fit` has the sums, `names` says which groups are equal, `takes` asks a domain."""

    def __init__(self, fit: LevelFit, names: Sequence[int], takes: Takes, expired: Callable[[], bool]) -> None:
        self._fit, self._names, self._takes, self._expired = fit, names, takes, expired
        size = fit.share.min(axis=1).max(axis=1)
        self._order = sorted(range(len(names)), key=lambda one: (-float(size[one]), names[one]))
        self._members: list[list[int]] = [[] for _ in range(fit.room.shape[0])]
        self._fill = np.zeros_like(fit.room)
        self._looks = 0

    def settled(self, looks: int) -> Places | None:
        """A domain for every group, or None after so many looks at the latest."""
        self._looks = looks
        if not self._next(0, 0):
            return None
        places = np.zeros(len(self._names), np.intp)
        for domain, members in enumerate(self._members):
            places[members] = domain
        return places

    def _next(self, place: int, first: int) -> bool:
        """`first`: of equal groups, each goes to the domain of the one before, or to one that was looked at later."""
        if place == len(self._order):
            return True
        group = self._order[place]
        after = self._fill + self._fit.share[group]
        fits = self._fit.allowed[group] & (after <= FULL).all(axis=1)
        domains = sorted(np.flatnonzero(fits).tolist(), key=lambda one: (-float(after[one].max()), one))
        following = self._order[place + 1] if place + 1 < len(self._order) else None
        equal = following is not None and self._names[following] == self._names[group]
        for domain in domains:
            if domain < first:
                continue
            self._looks -= 1
            if self._looks < 0 or self._expired():
                return False
            if self._takes(domain, (*self._members[domain], group)):
                self._members[domain].append(group)
                self._fill[domain] += self._fit.share[group, domain]
                if self._next(place + 1, domain if equal else 0):
                    return True
                self._members[domain].pop()
                self._fill[domain] -= self._fit.share[group, domain]
        return False
