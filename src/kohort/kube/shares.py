"""How much of the event loop each tenant has used of late, and who has to rest for it.

Turns alone are not enough: whoever is light needs many turns one after the other for one gang, and in each of them
somebody heavy would work as well. So while somebody lighter is at it, whoever has used the loop much works an eighth of
the time: after each piece of work comes seven times as long a rest. Alone, nobody ever rests, and a rest ends when
whoever is lighter has had nothing to do for a moment.

Work is whatever is done for a tenant on the loop: requests, reconciles, decisions about its pods, reading what has
changed. A tenant is a namespace, or a user outside of all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Coroutine, Generator, Hashable
from typing import Any, Final, Generic, TypeVar

from kohort.kube.perloop import PerLoop

T = TypeVar("T")

_REST: Final = 7.0  # times as long as the work before it
_LONGEST: Final = 0.2  # seconds of rest
_HEAVY: Final = 0.2  # of the loop's time of late
_LIGHTER: Final = 0.5  # of the use of whoever is to rest
_FADES: Final = 1.0  # seconds after which a third is left of what was used
_ACTIVE: Final = 0.04  # seconds since its last work
_MOST: Final = 1000  # tenants that are kept
_OF_THE_CLUSTER: Final = frozenset({"", "kube-system", "kube-node-lease", "kube-public"})


class _Account:
    """`used` as of `at`; `seen`: when it last worked, or asked to."""

    __slots__ = ("at", "rests_until", "seen", "used")

    def __init__(self, now: float) -> None:
        self.used, self.at, self.seen, self.rests_until = 0.0, now, now, 0.0

    def now(self, now: float) -> float:
        return self.used * math.exp((self.at - now) / _FADES)


class Shares:
    """Of one loop. Tenants are whatever can be told apart; the empty one is nobody and never rests."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def spent(self, tenant: str, seconds: float) -> None:
        if not tenant:
            return
        now = time.perf_counter()
        account = self._account(tenant, now)
        account.used, account.at, account.seen = account.now(now) + seconds, now, now
        account.rests_until = min(max(account.rests_until, now) + _REST * seconds, now + _LONGEST)

    def asks(self, tenant: str) -> float:
        """Seconds that it has to rest before it asks again: 0.0 for whoever is light, or alone."""
        if not tenant:
            return 0.0
        now = time.perf_counter()
        account = self._account(tenant, now)
        account.seen = now
        if account.rests_until <= now:
            return 0.0
        used = account.now(now)
        if used < _HEAVY or not self._disturbs(account, used, now):
            return 0.0
        return min(account.rests_until - now, _ACTIVE)

    def alone(self, tenants: Collection[str]) -> bool:
        """Whether nobody but them is at it."""
        now = time.perf_counter()
        return not any(now - one.seen < _ACTIVE for name, one in self._accounts.items() if name not in tenants)

    def _disturbs(self, account: _Account, used: float, now: float) -> bool:
        limit = used * _LIGHTER
        return any(
            now - one.seen < _ACTIVE and one.now(now) < limit for one in self._accounts.values() if one is not account
        )

    def _account(self, tenant: str, now: float) -> _Account:
        found = self._accounts.get(tenant)
        if found is None:
            if len(self._accounts) >= _MOST:
                self._accounts = {name: one for name, one in self._accounts.items() if now - one.seen < _FADES}
            found = self._accounts[tenant] = _Account(now)
        return found


of_loop: Final = PerLoop(Shares)


def tenant(namespace: str) -> str:
    """Empty: what is done there is for everybody."""
    return "" if namespace in _OF_THE_CLUSTER else namespace


def rests(namespace: Hashable) -> float:
    """For queues by namespace: seconds for which one has to rest."""
    return of_loop().asks(tenant(str(namespace)))


class Metered(Generic[T]):
    """A coroutine whose steps are timed: what it waits for is not."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], spent: Callable[[float], None]) -> None:
        self._coroutine, self._spent = coroutine, spent

    def __await__(self) -> Generator[Any, Any, T]:
        clock, used = time.perf_counter, 0.0
        inner = self._coroutine.__await__()
        step, given = inner.send, None
        try:
            while True:
                began = clock()
                try:
                    waits = step(given)
                except StopIteration as done:
                    return done.value  # type: ignore[no-any-return]
                finally:
                    used += clock() - began
                try:
                    given, step = (yield waits), inner.send
                except BaseException as error:
                    given, step = error, inner.throw
        finally:
            inner.close()
            self._spent(used)
