"""How long a piece of work may take, with one timer for all that are under way.

Of requests within a process nearly none takes too long, and there are thousands in a second: a timer for each, started
and cancelled, took a tenth of the time of a short one. So they only note when they have to be over, and the one timer
goes off when the first of them would be.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from kohort.kube.perloop import PerLoop

if TYPE_CHECKING:
    from types import TracebackType

_NEVER: Final = float("inf")


class Deadline:
    """As `asyncio.timeout`: the task is cancelled when the time is over, and the block ends with a TimeoutError."""

    __slots__ = ("_at", "_cancelling", "_expired", "_of", "_task")

    def __init__(self, of: Deadlines, task: asyncio.Task[Any], at: float) -> None:
        self._of, self._task, self._at = of, task, at
        self._cancelling, self._expired = task.cancelling(), False

    @property
    def at(self) -> float:
        return self._at

    def expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def __enter__(self) -> None:
        self._of.open[self] = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._of.open.pop(self, None)
        # Whoever was cancelled by somebody else as well stays so.
        if self._expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error


class Deadlines:
    """Of one loop."""

    def __init__(self) -> None:
        self.open: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._at = _NEVER  # when the timer goes off

    def within(self, seconds: float) -> Deadline:
        """For a `with` block in a task."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is that of a task")
        at = loop.time() + seconds
        if at < self._at:
            self._set(loop, at)
        return Deadline(self, task, at)

    def _set(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at, self._timer = at, loop.call_at(at, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._at, self._timer, now = _NEVER, None, loop.time()
        for one in [one for one in self.open if one.at <= now]:
            del self.open[one]
            one.expire()
        if self.open:
            self._set(loop, min(one.at for one in self.open))


of_loop: Final = PerLoop(Deadlines)
