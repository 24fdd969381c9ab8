"""Child processes that answer hard questions, so that the event loop, leases and other roots go on.

A process is started by the first question, and ends when it has been idle for a while. One that ends by itself, or
takes longer than it may, has found nothing: its root is told so, and the next question gets another process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Final

from kohort.childprocess import ChildEndedError, ChildProcess
from kohort.place.highs import SolverStatus
from kohort.place.solving import Verdict
from kohort.scheduler.hardquestions import HardQuestion
from kohort.scheduler.model import shown

log = logging.getLogger(__name__)
_MODULE: Final = "kohort.scheduler.solverprocess"
_IDLE: Final = 30.0  # seconds
_GRACE: Final = 10.0  # seconds beyond a search's own limit: starting a process, a busy machine
_NOTHING: Final = Verdict(SolverStatus.UNKNOWN)


class SolverProcesses:
    """Up to `count` of them; questions wait for their turn."""

    def __init__(self, count: int, seconds: float, answered: Callable[[HardQuestion, Verdict], None]) -> None:
        self._seconds, self._answered = seconds, answered
        self._turns = asyncio.Semaphore(max(count, 1))
        self._idle: list[tuple[ChildProcess, asyncio.TimerHandle]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.started = 0

    def ask(self, questions: Iterable[HardQuestion]) -> None:
        for question in questions:
            self._later(self._search(question))

    async def close(self) -> None:
        """Nobody waits for an answer any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        idle, self._idle = self._idle, []
        for process, timer in idle:
            timer.cancel()
            await process.end()

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _search(self, question: HardQuestion) -> None:
        async with self._turns:
            verdict = await self._verdict(question)
        self._answered(question, verdict)

    async def _verdict(self, question: HardQuestion) -> Verdict:
        process: ChildProcess | None = None
        whole = False
        try:
            async with asyncio.timeout(self._seconds + _GRACE):
                process = await self._process()
                await process.send([self._seconds, question.last, question.data])
                status, values = await process.read()
            whole = True
            return Verdict(SolverStatus(status), values)
        except (TimeoutError, ChildEndedError, OSError) as error:
            log.warning("the search for %s did not end: %r", shown(question.root), error)
            return _NOTHING
        finally:
            if process is not None:
                await self._done(process, whole=whole)

    async def _process(self) -> ChildProcess:
        while self._idle:
            process, timer = self._idle.pop()
            timer.cancel()
            if process.alive:
                return process
            await process.end()
        self.started += 1
        return await ChildProcess.run(_MODULE)

    async def _done(self, process: ChildProcess, *, whole: bool) -> None:
        if not whole:
            process.kill()
            await process.end()
            return
        timer = asyncio.get_running_loop().call_later(_IDLE, self._retire, process)
        self._idle.append((process, timer))

    def _retire(self, process: ChildProcess) -> None:
        self._idle = [one for one in self._idle if one[0] is not process]
        self._later(process.end())
