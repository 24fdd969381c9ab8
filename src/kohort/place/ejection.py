"""Groups to domains where every domain is asked whether it takes its groups: one without a place pushes out others.

A group that finds no domain takes the place of one or two that were hard to place least often, and these look for
another; every domain takes what it has at any time (guided ejection search, as it is known from routing vehicles).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final

import numpy as np

from kohort.place.levelfit import LevelFit, Places

Takes = Callable[[int, tuple[int, ...]], bool]  # domain and groups
_LOOKED: Final = 40  # domains asked for one group
_SHAKES: Final = 4  # exchanges between two steps
FULL: Final = 1.0001


class Ejection:
    """One level: `fit` has the sums, `takes` asks a domain."""

    def __init__(self, fit: LevelFit, takes: Takes, dice: np.random.Generator) -> None:
        self._fit, self._takes, self._dice = fit, takes, dice
        self._hard = np.ones(len(fit.allowed))  # how often a group found no place
        self._fixed = fit.allowed.sum(axis=1) == 1
        self._members: list[list[int]] = []
        self._fill = np.zeros_like(fit.room)

    def settled(self, places: Places, expired: Callable[[], bool], steps: int) -> Places | None:
        """A domain for every group, from these on."""
        waiting = self._begin(places)
        for _ in range(steps):
            if not waiting:
                break
            if expired():
                return None
            group = waiting.pop()
            self._hard[group] += 1
            pushed = self._insert(group)
            if pushed is None:
                waiting.insert(0, group)
                self._shake(_SHAKES * 4)
            else:
                waiting += pushed
                self._shake(_SHAKES)
        if waiting:
            return None
        found = places.copy()
        for domain, members in enumerate(self._members):
            found[members] = domain
        return found

    def _begin(self, places: Places) -> list[int]:
        """Domains that say no give groups away, the smallest first, until they say yes."""
        waiting: list[int] = []
        self._members = [np.flatnonzero(places == domain).tolist() for domain in range(len(self._fill))]
        self._fill[:] = self._fit.fill(places)
        for domain, members in enumerate(self._members):
            movable = sorted((one for one in members if not self._fixed[one]), key=self._size)
            while movable and not self._takes(domain, tuple(members)):
                self._remove(movable[0], domain)
                waiting.append(movable.pop(0))
        return sorted(waiting, key=self._size)

    def _size(self, group: int) -> float:
        return float(self._fit.asks[group].sum())

    def _remove(self, group: int, domain: int) -> None:
        self._members[domain].remove(group)
        self._fill[domain] -= self._fit.share[group, domain]

    def _add(self, group: int, domain: int) -> None:
        self._members[domain].append(group)
        self._fill[domain] += self._fit.share[group, domain]

    def _insert(self, group: int) -> list[int] | None:
        """Where it goes, whoever must leave; None if there is nowhere."""
        for looked, (domain, out) in enumerate(self._offers(group)):
            if looked >= _LOOKED:
                break
            rest = [one for one in self._members[domain] if one not in out]
            if self._takes(domain, (*rest, group)):
                for one in out:
                    self._remove(one, domain)
                self._add(group, domain)
                return list(out)
        return None

    def _offers(self, group: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Domains that have room by sums; then with one group less, or two, the easiest to place first."""
        after = self._fill + self._fit.share[group]
        home = np.flatnonzero(self._fit.allowed[group])
        free = [int(one) for one in home if (after[one] <= FULL).all()]
        yield from ((domain, ()) for domain in sorted(free, key=lambda one: float(after[one].max())))
        found: list[tuple[float, int, tuple[int, ...]]] = []
        for domain in home.tolist():
            movable = [one for one in self._members[domain] if not self._fixed[one]]
            for count in (1, 2):
                for out in combinations(movable, count):
                    share = self._fit.share[list(out), domain].sum(axis=0)
                    if (after[domain] - share <= FULL).all():
                        price = float(self._hard[list(out)].sum()) + 0.3 * self._dice.random()
                        found.append((price, domain, out))
        yield from ((domain, out) for _, domain, out in sorted(found))

    def _shake(self, times: int) -> None:
        """Two groups change their domains, if both take it."""
        movable = np.flatnonzero(~self._fixed)
        home = {one: domain for domain, members in enumerate(self._members) for one in members}
        for _ in range(times):
            one, other = (int(each) for each in self._dice.choice(movable, 2)) if len(movable) > 1 else (0, 0)
            here, there = home.get(one), home.get(other)
            if here is None or there is None or here == there or not self._may_swap(one, here, other, there):
                continue
            self._remove(one, here)
            self._remove(other, there)
            self._add(one, there)
            self._add(other, here)
            home[one], home[other] = there, here

    def _may_swap(self, one: int, here: int, other: int, there: int) -> bool:
        fit = self._fit
        if not (fit.allowed[one, there] and fit.allowed[other, here]):
            return False
        first = self._fill[here] - fit.share[one, here] + fit.share[other, here]
        second = self._fill[there] - fit.share[other, there] + fit.share[one, there]
        if (first > FULL).any() or (second > FULL).any():
            return False
        rest, others = ([each for each in self._members[at] if each not in (one, other)] for at in (here, there))
        return self._takes(here, (*rest, other)) and self._takes(there, (*others, one))
