"""Keys that need work: each at most once in line, never worked on by two at a time, sooner or later tried again."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kohort.kube.clock import REAL
from kohort.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from kohort.kube.clock import Clock, Timer
    from kohort.kube.limits import Bucket

K = TypeVar("K", bound="Hashable")

log = logging.getLogger(__name__)
_LEAST: Final = 1e-6  # seconds

FIRST: Final = 0.005
MOST: Final = 1000.0


def _one_group(_: object) -> Hashable:
    return None


class ClosedError(Exception):
    """The queue is closed and has nothing left."""


class WorkQueue(Generic[K]):
    """A key that is added while it is worked on comes back after that work. One event loop, no locks.

    `limit` bounds retries of all keys together; each key's own waits grow from `first` to `most` seconds.

    `group_of`: keys of different groups take turns, however many one of them has in line, and no more than `share` of
    one group are worked on at a time. `rests`: seconds for which a group has to let others work (`kohort.kube.shares`).
    """

    def __init__(
        self,
        *,
        clock: Clock = REAL,
        first: float = FIRST,
        most: float = MOST,
        limit: Bucket | None = None,
        group_of: Callable[[K], Hashable] | None = None,
        share: int | None = None,
        rests: Callable[[Hashable], float] | None = None,
    ) -> None:
        self._group_of = group_of or _one_group
        self._share = share
        self._rests = rests
        self._rested: Timer | None = None  # when somebody who rests may go on
        self._held: dict[Hashable, int] = {}  # keys of a group that are worked on
        self._clock = clock
        self._first = first
        self._most = most
        self._limit = limit
        self._ready: dict[Hashable, deque[K]] = {}  # by group, in the order of their turns
        self._wanted: set[K] = set()  # in line, or to come back when its work is done
        self._working: set[K] = set()
        self._later: dict[K, tuple[float, Timer]] = {}
        self._failures: dict[K, int] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        """Keys that could be worked on now."""
        return sum(map(len, self._ready.values()))

    def add(self, key: K) -> None:
        if self._closed or key in self._wanted:
            return
        self._wanted.add(key)
        if key not in self._working:
            self._ready.setdefault(self._group_of(key), deque()).append(key)
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Of several times for one key the earliest counts. A time that rounding left is long enough to pass."""
        if seconds <= 0:
            self.add(key)
            return
        seconds = max(seconds, _LEAST)
        due = self._clock.monotonic() + seconds
        known = self._later.get(key)
        if self._closed or (known is not None and known[0] <= due):
            return
        if known is not None:
            known[1].cancel()
        self._later[key] = (due, self._clock.call_later(seconds, lambda: self._due(key)))

    def retry(self, key: K, least: float = 0.0) -> float:
        """After a failure: again, later each time. The seconds until then."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        wait = max(least, min(self._most, self._first * 2.0 ** min(failures, 64)))
        if self._limit is not None:
            wait = max(wait, self._limit.reserve(self._clock.monotonic()))
        self.add_after(key, wait)
        return wait

    def forget(self, key: K) -> None:
        """After a success: the next failure is a first one."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key, now the caller's until `done`. ClosedError after the last one of a closed queue."""
        while (group := self._turn()) is None:
            if self._closed and not self._ready:
                raise ClosedError
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(woken)
            try:
                await woken
            except asyncio.CancelledError:
                if woken.done() and not woken.cancelled():
                    self._wake()  # the key that woke us is for somebody else then
                else:
                    self._waiting.remove(woken)
                raise
        line = self._ready.pop(group[0])
        key = line.popleft()
        if line:
            self._ready[group[0]] = line  # behind the others
        self._wanted.discard(key)
        self._working.add(key)
        self._held[group[0]] = self._held.get(group[0], 0) + 1
        return key

    def _turn(self) -> tuple[Hashable] | None:
        """The group whose turn it is, of those that have not had their share."""
        soonest = float("inf")
        for group in self._ready:
            if self._share is not None and self._held.get(group, 0) >= self._share:
                continue
            rest = self._rests(group) if self._rests is not None and not self._closed else 0.0
            if not rest:
                return (group,)
            soonest = min(soonest, rest)
        if soonest < float("inf") and self._rested is None:
            self._rested = self._clock.call_later(soonest, self._have_rested)
        return None

    def _have_rested(self) -> None:
        self._rested = None
        self._wake()

    def done(self, key: K) -> None:
        group = self._group_of(key)
        if key in self._working:
            self._working.discard(key)
            self._held[group] -= 1
            if not self._held[group]:
                del self._held[group]
        if key in self._wanted:
            self._ready.setdefault(group, deque()).append(key)
        if group in self._ready:
            self._wake()

    def close(self, *, drop: bool = False) -> None:
        """Nothing is added any more; what is in line is still given out, unless it is dropped."""
        self._closed = True
        if drop:
            self._ready.clear()
            self._wanted.clear()
        for _, timer in self._later.values():
            timer.cancel()
        self._later.clear()
        if self._rested is not None:
            self._rested.cancel()
        while self._waiting:
            self._wake()

    async def work(self, reconcile: Callable[[K], Awaitable[float | None]], *, workers: int = 1) -> None:
        """Call `reconcile` for each key until the queue is closed; it may return after how many seconds to come back.

        An exception is a retry. A conflict is one, too: somebody else wrote first, the cache will know soon.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(reconcile))

    async def _worker(self, reconcile: Callable[[K], Awaitable[float | None]]) -> None:
        while True:
            try:
                key = await self.get()
            except ClosedError:
                return
            try:
                again = await reconcile(key)
            except Exception as error:
                self._failed(key, error)
            else:
                self.forget(key)
                if again is not None:
                    self.add_after(key, again)
            finally:
                self.done(key)

    def _failed(self, key: K, error: Exception) -> None:
        told = error.retry_after if isinstance(error, ApiError) else None
        wait = self.retry(key, told or 0.0)
        if isinstance(error, ApiError) and error.conflict:
            log.debug("%s: %s; again in %.3f s", key, error, wait)
        else:
            log.warning("%s: %s; again in %.3f s", key, error, wait, exc_info=not isinstance(error, ApiError))

    def _due(self, key: K) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _wake(self) -> None:
        while self._waiting:
            woken = self._waiting.popleft()
            if not woken.done():
                woken.set_result(None)
                return
