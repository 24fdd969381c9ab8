"""Child processes that answer hard questions, so that the event loop, leases and other roots go on.

A process is started by the first question, and ends when it has been idle for a while. One that ends by itself, or
takes longer than it may, has found nothing: its root is told so, and the next question gets another process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from kohort.childprocess import ChildEndedError, ChildPool
from kohort.place.highs import SolverStatus
from kohort.place.solving import Verdict
from kohort.scheduler.hardquestions import HardQuestion
from kohort.scheduler.model import shown

log = logging.getLogger(__name__)
_MODULE: Final = "kohort.scheduler.solverprocess"
_GRACE: Final = 10.0  # seconds beyond a search's own limit: starting a process, a busy machine
_NOTHING: Final = Verdict(SolverStatus.UNKNOWN)


class SolverProcesses:
    """Up to `count` of them; questions wait for their turn."""

    def __init__(self, count: int, seconds: float, answered: Callable[[HardQuestion, Verdict], None]) -> None:
        self._seconds, self._answered = seconds, answered
        self._pool = ChildPool(_MODULE, count)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def started(self) -> int:
        return self._pool.started

    def ask(self, questions: Iterable[HardQuestion]) -> None:
        for question in questions:
            task = asyncio.create_task(self._search(question))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Nobody waits for an answer any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._pool.close()

    async def _search(self, question: HardQuestion) -> None:
        self._answered(question, await self._verdict(question))

    async def _verdict(self, question: HardQuestion) -> Verdict:
        seconds = self._seconds if question.seconds is None else min(self._seconds, question.seconds)
        try:
            async with self._pool.borrowed() as process, asyncio.timeout(seconds + _GRACE):
                await process.send([seconds, question.last, question.kind, question.data])
                status, values = await process.read()
            return Verdict(SolverStatus(status), values)
        except (TimeoutError, ChildEndedError, OSError) as error:
            log.warning("the search for %s did not end: %r", shown(question.root), error)
            return _NOTHING
