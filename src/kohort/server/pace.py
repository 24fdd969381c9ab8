"""How long one turn of the event loop lasts when many small requests come at once.

A controller sends fifty writes together and each is short; all of them in one turn are not. Requests that come when the
turn has lasted long enough wait for the next one, in their order.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

SECONDS: Final = 0.02


class Pace:
    """Of one loop."""

    def __init__(self) -> None:
        self._until = 0.0  # of this turn; 0: it has not begun

    async def turn(self) -> None:
        """Returns when there is time left in this turn of the loop."""
        while True:
            if not self._until:
                self._until = time.perf_counter() + SECONDS
                asyncio.get_running_loop().call_soon(self._next)
                return
            if time.perf_counter() < self._until:
                return
            await asyncio.sleep(0)

    def _next(self) -> None:
        self._until = 0.0
