"""Long work on the event loop in short slices, so that nobody else waits for it.

A list of 100,000 pods has to be selected, printed and written somewhere; a process of its own would first have to be
given all of them. So whoever works for long gives the loop back every few milliseconds, and one of them at a time is
let on: forty lists at once take forty times as long, and delay others no more than one does.

A request over HTTPS takes several turns of the loop, and what follows from it some tens. So between two slices there
are turns for others until one is empty, or for as long as the slice took. After one that could not be as short as it
should be there is a rest of that time in any case: others may wait for a disk or a client just then.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.kube.clock import Clock

SECONDS: Final = 0.005
_EMPTY: Final = 0.0001  # seconds of a turn in which nobody had anything to do
_OVER: Final = 2 * SECONDS


class TimeSlices:
    """Of one loop. `turn` waits for the next one that is free."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._busy = False  # somebody has a slice, or others have their turns after it

    async def turn(self) -> float:
        """When it comes back, work may go on until the moment that it gives back (of `time.perf_counter`)."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if not self._busy:
            self._busy = True
            loop.call_soon(self._grant)
        await turn
        return time.perf_counter() + SECONDS

    def _grant(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its client has gone
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._taken, time.perf_counter())  # right after it
                return
        self._busy = False

    def _taken(self, began: float) -> None:
        now, loop = time.perf_counter(), asyncio.get_running_loop()
        if now - began > _OVER:
            loop.call_later(now - began, self._grant)
        else:
            loop.call_soon(self._others, now, now + now - began)

    def _others(self, before: float, until: float) -> None:
        """Others have had a turn."""
        now = time.perf_counter()
        if now - before < _EMPTY or now >= until:
            self._grant()
        else:
            asyncio.get_running_loop().call_soon(self._others, now, until)


async def give_turns(clock: Clock, seconds: float) -> None:
    """Of the loop, for whoever waits: until nobody does, or for as long as we have worked. A request over HTTPS takes
    several turns: with one between two slices of a decision it would wait for as many slices."""
    now = clock.monotonic()
    end = now + seconds
    while now <= end:
        before = now
        await asyncio.sleep(0)
        now = clock.monotonic()
        if now - before < _EMPTY:
            return
