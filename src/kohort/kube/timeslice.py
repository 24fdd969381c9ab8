"""Long work on the event loop in short slices, so that nobody else waits for it.

A list of 100,000 pods has to be selected, printed and written somewhere; a process of its own would first have to be
given all of them. So whoever works for long gives the loop back every few milliseconds, and at most one of them is let
on in each turn of the loop: forty lists at once take forty times as long, and delay others no more than one does.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Final

SECONDS: Final = 0.005


class TimeSlices:
    """Of one loop. `turn` waits for the next one that is free."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._granting = False

    async def turn(self) -> float:
        """When it comes back, work may go on until the moment that it gives back (of `time.perf_counter`)."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if not self._granting:
            self._granting = True
            loop.call_soon(self._grant)
        await turn
        return time.perf_counter() + SECONDS

    def _grant(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its client has gone
                turn.set_result(None)
                break
        self._granting = bool(self._waiting)
        if self._granting:
            asyncio.get_running_loop().call_soon(self._grant)
