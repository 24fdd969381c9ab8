"""Time, as a thing that is passed in: the real one, and one that a test or a simulation moves by hand."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

# How often other tasks may run between two moments of virtual time: the longest chain of awaits without a timer.
_TURNS = 50


class Timer(Protocol):
    """A call that has not happened yet."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Durations are seconds. `monotonic` never goes back; `now` is what people write into objects (UTC)."""

    def monotonic(self) -> float: ...

    def now(self) -> datetime: ...

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer: ...

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """TimeoutError if the block takes longer."""


class RealClock:
    """The time of this machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(max(0.0, seconds), call)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)


class LoopClock(RealClock):
    """The time of the event loop, whatever that takes it to be; `start` is what the calendar showed at its zero."""

    def __init__(self, start: datetime) -> None:
        self._start = start

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class _Entry:
    __slots__ = ("call",)

    def __init__(self, call: Callable[[], object]) -> None:
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        self.call = None


class VirtualClock:
    """Time that stands still until `advance` moves it; timers then fire in order, each at its own moment."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._seconds = 0.0
        self._timers: list[tuple[float, int, _Entry]] = []
        self._order = itertools.count()

    def monotonic(self) -> float:
        return self._seconds

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._seconds)

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        entry = _Entry(call)
        heapq.heappush(self._timers, (self._seconds + max(0.0, seconds), next(self._order), entry))
        return entry

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: _wake(woken))
        try:
            await woken
        finally:
            timer.cancel()

    @contextlib.asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[object]:
        async with asyncio.timeout(None) as limit:
            timer = self.call_later(seconds, lambda: limit.reschedule(asyncio.get_running_loop().time()))
            try:
                yield limit
            finally:
                timer.cancel()

    @property
    def next_timer(self) -> float | None:
        """Seconds until something happens by itself; None if nothing will."""
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] - self._seconds if self._timers else None

    async def advance(self, seconds: float = 0.0) -> None:
        """Let `seconds` pass: whoever can run does, before, between and after the timers that fire."""
        end = self._seconds + seconds
        await self.settle()
        while (wait := self.next_timer) is not None and self._seconds + wait <= end:
            self._seconds, _, entry = heapq.heappop(self._timers)
            call, entry.call = entry.call, None
            if call is not None:
                call()
            await self.settle()
        self._seconds = end

    async def settle(self, turns: int = _TURNS) -> None:
        """Let everybody run who can without time passing."""
        for _ in range(turns):
            await asyncio.sleep(0)


REAL = RealClock()
